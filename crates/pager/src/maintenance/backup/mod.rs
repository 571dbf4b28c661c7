//! Writes backups as streams of pages, and restores files from them.

mod copy;
mod format;
mod restore;

pub use format::{BackupInfo, OnMoved};
pub use restore::restore;
