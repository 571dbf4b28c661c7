//! Location of the redo log, and limits on its size and on the commits in it.

use crate::format::layout::BLOCK_BYTES;
use crate::format::meta::Meta;

/// Minimum length of the redo log in bytes, unless the options allow less.
pub(crate) const BYTES_MIN: u64 = 2 << 20;
/// A redo log longer than the minimum takes at most 1/`PART_OF_FILE` of the file.
pub(crate) const PART_OF_FILE: u64 = 2;
/// Maximum length of the redo log in bytes. It is bounded because opening reads the whole log.
pub(crate) const BYTES_MAX: u64 = 64 << 20;
/// Maximum number of bytes of pages that a commit in the redo log may change. For larger commits a second sync costs
/// little in comparison, and a few such commits would fill the redo log.
pub(crate) const COMMIT_PAGE_BYTES_MAX: u64 = 256 << 10;
/// Maximum length in bytes of the entry of a commit in the redo log.
pub(crate) const COMMIT_BYTES_MAX: usize = 32 << 10;
/// Maximum number of bytes of pages that one redo log can rebuild. Opening the file keeps these pages in memory.
pub(crate) const REPLAY_BYTES_MAX: u64 = 64 << 20;

const _: () = assert!(BYTES_MIN <= BYTES_MAX && REPLAY_BYTES_MAX >= 2 * COMMIT_PAGE_BYTES_MAX);

/// Byte range of the file that contains the redo log.
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
