//! Free pages lose what they held, for who looks for reads of what is gone.

use super::Writer;
use crate::commit::shared::Shared;

/// What a free page is filled with.
const PATTERN: u8 = 0xdb;
/// Bytes that are written at a time.
const WRITE_BYTES: usize = 64 << 10;

impl Writer {
    /// Overwrites what became free. That it fails does not matter to anybody: nothing reads there.
    pub(super) fn spoil(&mut self, shared: &Shared) {
        if !shared.files.options.spoil_freed || shared.files.options.read_only {
            return;
        }
        let page_bytes = shared.files.page_size as u64;
        let pattern = vec![PATTERN; WRITE_BYTES];
        for (page, pages) in self.space.freed() {
            let (mut at, end) = (page * page_bytes, (page + pages) * page_bytes);
            while at < end {
                let len = (end - at).min(WRITE_BYTES as u64);
                drop(shared.files.storage.write_at(at, &pattern[..len as usize]));
                at += len;
            }
        }
    }
}
