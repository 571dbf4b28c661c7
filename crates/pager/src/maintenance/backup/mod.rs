//! Backups: pages as a stream, and a file made of such streams.

mod copy;
mod format;
mod restore;

pub use format::{BackupInfo, OnMoved};
pub use restore::restore;
