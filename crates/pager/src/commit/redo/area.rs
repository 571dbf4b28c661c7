//! Where the log is, and how long it and what goes to it may be.

use crate::format::layout::BLOCK_BYTES;
use crate::format::meta::Meta;

/// The log is so long at least, unless the options allow less ...
pub(crate) const BYTES_MIN: u64 = 2 << 20;
/// ... and at most this part of the file.
pub(crate) const PART_OF_FILE: u64 = 2;
/// A log is never longer: it is read whole.
pub(crate) const BYTES_MAX: u64 = 64 << 20;
/// A commit that changes more of the file does not go to the log: what two barriers cost is little beside the rest of it, and the log would be
/// full after a few of them.
pub(crate) const COMMIT_PAGE_BYTES_MAX: u64 = 256 << 10;
/// The record of a commit in the log is no longer.
pub(crate) const COMMIT_BYTES_MAX: usize = 32 << 10;
/// Pages that one log leads to, in bytes: what opening may need.
pub(crate) const REPLAY_BYTES_MAX: u64 = 64 << 20;

/// Where the log is: pages of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Area {
    pub(crate) at: u64,
    pub(crate) bytes: u64,
}

impl Area {
    pub(crate) fn of(meta: &Meta, page_size: usize) -> Option<Self> {
        let redo = meta.redo?;
        Some(Self {
            at: redo.page.checked_mul(page_size as u64)?,
            bytes: redo.pages.checked_mul(page_size as u64)?,
        })
    }

    pub(super) fn blocks(&self) -> u64 {
        self.bytes / BLOCK_BYTES as u64
    }
}
