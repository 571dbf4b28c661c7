//! Backups: pages as a stream, and restored files.

mod copy;
mod format;
mod restore;

pub use format::{BackupInfo, OnMoved};
pub use restore::restore;
