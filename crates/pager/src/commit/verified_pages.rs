//! Which pages and blocks this open database has verified already, or has itself sealed and committed: a direct-mapped table of 16-bit marks
//! without locks.
//!
//! A mark means that the bytes agreed with the pointer once, when they were read, or when they were handed over to be written; not that
//! nothing has happened to them since. It is in memory alone and ends with the open database, because others may change the file between
//! a closing and the next opening, in the same process too.
//!
//! A mark stands for (page, expected checksum, kind, birth); that of a block is at the page in which it begins. Of several blocks that
//! begin in one page it is that of the last: these are short, and verified again. When a page is written anew, the pointers to
//! it carry another checksum, so an old mark does not speak for new bytes: it would have to agree in 15 bits,
//! and those bytes to be damaged besides. Two bytes a page keep the marks of a gigabyte in half a mebibyte,
//! near the processor; with eight, a `get` waited for its marks as for its pages.

use crate::format::ptr::Ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};

/// Marks for 256 GiB of 4 KiB pages. In parts that are made when needed, so that a small file takes little.
const PARTS: usize = 2048;
const PART_SLOTS: usize = 32 * 1024;

type Part = Box<[AtomicU16]>;

#[derive(Debug)]
pub(crate) struct Verified {
    parts: Box<[OnceLock<Part>]>,
    page_shift: u32,
}

impl Verified {
    pub(crate) fn new(page_size: usize) -> Self {
        Self {
            parts: (0..PARTS).map(|_| OnceLock::new()).collect(),
            page_shift: page_size.trailing_zeros(),
        }
    }

    /// Part, slot and mark. Neighbouring pages share a part.
    #[inline]
    fn place(&self, ptr: &Ptr) -> (usize, usize, u16) {
        let page = ptr.addr >> self.page_shift;
        let rest = ptr.birth.0 << 8 | ptr.kind as u64;
        let mark = ptr.checksum
            ^ page.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ rest.wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
        let mark = mark.wrapping_mul(0x9fb2_1c65_1e98_df25) >> 48;
        let slot = page as usize % (PARTS * PART_SLOTS);
        // Zero is the empty slot.
        (slot / PART_SLOTS, slot % PART_SLOTS, mark as u16 | 1)
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
            self.parts[part].get_or_init(|| (0..PART_SLOTS).map(|_| AtomicU16::new(0)).collect());
        part[slot].store(mark, Ordering::Relaxed);
    }
}
