//! Overwrites freed pages with a pattern, to detect reads of freed pages.

use super::Writer;
use crate::commit::files::Files;

/// Byte with which freed pages are filled.
const PATTERN: u8 = 0xdb;
/// Number of bytes that are written by one call.
const WRITE_BYTES: usize = 64 << 10;

impl Writer {
    /// Overwrites pages that were freed since the last call. A failed write is ignored, since these pages should not
    /// be read.
    pub(super) fn poison(&mut self, files: &Files) {
        if !files.options.poison_freed || files.options.read_only {
            return;
        }
        let page_bytes = files.page_size as u64;
        let pattern = vec![PATTERN; WRITE_BYTES];
        for (page, pages) in self.space.freed() {
            let (mut at, end) = (page * page_bytes, (page + pages) * page_bytes);
            while at < end {
                let len = (end - at).min(WRITE_BYTES as u64);
                drop(files.storage.write_at(at, &pattern[..len as usize]));
                at += len;
            }
        }
    }
}
