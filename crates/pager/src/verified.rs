//! Which pages this process has verified already: a direct-mapped table of 64-bit marks without locks.
//!
//! A mark stands for (page, expected checksum, kind, birth). When a page is written anew, the pointers to
//! it carry another checksum, so an old mark never speaks for new bytes.

use crate::ptr::Ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// Marks: 1 MiB of them know 512 MiB of 4 KiB pages.
const SLOTS: usize = 1 << 17;

#[derive(Debug)]
pub(crate) struct Verified {
    slots: Box<[AtomicU64]>,
    page_shift: u32,
}

impl Verified {
    pub(crate) fn new(page_size: usize) -> Self {
        Self {
            slots: (0..SLOTS).map(|_| AtomicU64::new(0)).collect(),
            page_shift: page_size.trailing_zeros(),
        }
    }

    #[inline]
    fn slot_and_mark(&self, ptr: &Ptr) -> (&AtomicU64, u64) {
        let page = ptr.addr >> self.page_shift;
        let rest = ptr.birth.0 << 8 | ptr.kind as u64;
        let mark = ptr.checksum
            ^ page.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ rest.wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
        // Zero is the empty slot.
        (&self.slots[page as usize % SLOTS], mark | 1)
    }

    #[inline]
    pub(crate) fn knows(&self, ptr: &Ptr) -> bool {
        let (slot, mark) = self.slot_and_mark(ptr);
        slot.load(Ordering::Relaxed) == mark
    }

    pub(crate) fn learn(&self, ptr: &Ptr) {
        let (slot, mark) = self.slot_and_mark(ptr);
        slot.store(mark, Ordering::Relaxed);
    }
}
