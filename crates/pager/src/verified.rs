//! Which pages this process has verified already: a direct-mapped table of 64-bit marks without locks.
//!
//! A mark stands for (page, expected checksum, kind, birth). When a page is written anew, the pointers to
//! it carry another checksum, so an old mark never speaks for new bytes.

use crate::ptr::Ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Marks: 1 MiB of them know 512 MiB of 4 KiB pages. In parts, so that a small file takes little.
const PARTS: usize = 32;
const PART_SLOTS: usize = 4096;

type Part = Box<[AtomicU64]>;

#[derive(Debug)]
pub(crate) struct Verified {
    parts: [OnceLock<Part>; PARTS],
    page_shift: u32,
}

impl Verified {
    pub(crate) fn new(page_size: usize) -> Self {
        Self {
            parts: [const { OnceLock::new() }; PARTS],
            page_shift: page_size.trailing_zeros(),
        }
    }

    /// Part, slot and mark. Neighbouring pages share a part.
    #[inline]
    fn place(&self, ptr: &Ptr) -> (usize, usize, u64) {
        let page = ptr.addr >> self.page_shift;
        let rest = ptr.birth.0 << 8 | ptr.kind as u64;
        let mark = ptr.checksum
            ^ page.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ rest.wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
        let slot = page as usize % (PARTS * PART_SLOTS);
        // Zero is the empty slot.
        (slot / PART_SLOTS, slot % PART_SLOTS, mark | 1)
    }

    #[inline]
    pub(crate) fn knows(&self, ptr: &Ptr) -> bool {
        let (part, slot, mark) = self.place(ptr);
        let part = self.parts[part].get();
        part.is_some_and(|part| part[slot].load(Ordering::Relaxed) == mark)
    }

    pub(crate) fn learn(&self, ptr: &Ptr) {
        let (part, slot, mark) = self.place(ptr);
        let part =
            self.parts[part].get_or_init(|| (0..PART_SLOTS).map(|_| AtomicU64::new(0)).collect());
        part[slot].store(mark, Ordering::Relaxed);
    }
}
