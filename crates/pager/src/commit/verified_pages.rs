//! Remembers which pages and blocks this handle has already verified, or has sealed and committed itself, in a
//! lock-free, direct-mapped table of 16-bit marks.
//!
//! A mark means that the bytes matched the pointer once, when they were read or passed on for writing; it does not
//! mean that they are unchanged since. Marks live in memory only and end with the open database, because others may
//! change the file between a close and the next open, even in the same process.
//!
//! A mark covers (page, expected checksum, kind, birth); the mark of a block is stored at the page in which the block
//! begins. If several blocks begin in one page, only the last keeps its mark; such blocks are short and are verified
//! again. When a page is rewritten, its pointers carry another checksum. An old mark would vouch for new bytes only if
//! it collided in 15 bits and the new bytes were damaged too. With two bytes a page, the marks of a gigabyte take half
//! a mebibyte and stay in the processor cache; with eight bytes, a `get` waited for its marks as long as for its pages.

use crate::format::ptr::Ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};

/// Number of parts of the table. The table has marks for 256 GiB of 4 KiB pages; its parts are allocated on demand,
/// so a small file takes little memory.
const PARTS: usize = 2048;
const PART_SLOTS: usize = 32 * 1024;
const _: () = assert!((PARTS * PART_SLOTS).is_power_of_two());

type Part = Box<[AtomicU16]>;

#[derive(Debug)]
pub(crate) struct Verified {
    parts: Box<[OnceLock<Part>]>,
    page_shift: u32,
}

impl Verified {
    pub(crate) fn new(page_size: usize) -> Self {
        assert!(
            page_size.is_power_of_two(),
            "pages are addressed by a shift"
        );
        Self {
            parts: (0..PARTS).map(|_| OnceLock::new()).collect(),
            page_shift: page_size.trailing_zeros(),
        }
    }

    /// Returns the part of the table, the slot in the part, and the mark for a page or block. Neighbouring pages
    /// share a part.
    #[inline]
    fn place(&self, ptr: &Ptr) -> (usize, usize, u16) {
        let page = ptr.addr >> self.page_shift;
        let rest = ptr.birth.0 << 8 | ptr.kind as u64;
        let mark = ptr.checksum
            ^ page.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ rest.wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
        let mark = mark.wrapping_mul(0x9fb2_1c65_1e98_df25) >> 48;
        let slot = page as usize % (PARTS * PART_SLOTS);
        // A mark is never zero, since zero denotes an empty slot.
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
