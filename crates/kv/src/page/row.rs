//! Decodes a row of a leaf by its index in as few steps as possible: for scans.

use crate::page::header::Shape;
use crate::page::layout::{offset_bytes, tag, varint};
use crate::page::prefetch::CELL_AHEAD_BYTES;
use std::ops::Range;
use tidalite_base::{get_u16, get_u32, prefetch_at};

/// Key suffixes up to this length in bytes are copied as one block of this fixed length.
pub(crate) const BLOCK_BYTES: usize = 32;

/// Length in bytes of the longest short row, up to the end of its suffix: the key length in one byte, the tag in up to
/// two bytes, and a suffix of one block.
const SHORT_BYTES: usize = 1 + 2 + BLOCK_BYTES;

/// A decoded row whose key is short.
pub(crate) struct ShortRow<'p> {
    pub(crate) tag: u32,
    /// The key suffix, and the bytes of the page after it.
    pub(crate) suffix: &'p [u8; BLOCK_BYTES],
    pub(crate) suffix_len: usize,
    /// Offset of the payload in the page.
    pub(crate) payload_at: usize,
    /// Length in bytes of the cell.
    pub(crate) bytes: usize,
}

impl<'p> ShortRow<'p> {
    /// Decodes the row whose two-byte offset lies at `slot`, in a leaf with cells from `heap` on. `None` if the row is
    /// not short, if it lies within the last bytes of the page, or if the page is damaged. Makes the same checks as
    /// `plain_row`.
    #[inline(always)]
    pub(crate) fn at(page: &'p [u8], heap: usize, slot: usize) -> Option<Self> {
        let offset = page.get(slot..)?.first_chunk()?;
        let offset = usize::from(u16::from_le_bytes(*offset));
        if offset < heap {
            return None;
        }
        let cell: &[u8; SHORT_BYTES] = page.get(offset..)?.first_chunk()?;
        let (suffix_len, low, high) = (usize::from(cell[0]), cell[1], cell[2]);
        let (tag, lengths, suffix) = if low < 0x80 {
            (u32::from(low), 2, cell[2..].first_chunk()?)
        } else if high < 0x80 {
            let tag = u32::from(low & 0x7f) | u32::from(high) << 7;
            (tag, 3, cell[3..].first_chunk()?)
        } else {
            return None;
        };
        let bytes = lengths + suffix_len + tag::len(tag);
        if suffix_len > BLOCK_BYTES || offset + bytes > page.len() {
            return None;
        }
        Some(Self {
            tag,
            suffix,
            suffix_len,
            payload_at: offset + lengths + suffix_len,
            bytes,
        })
    }
}

impl Shape {
    /// Offset of the cell of the row at `index`, if that row exists; the offset is not checked to lie in the cell area.
    #[inline(always)]
    fn row_offset(&self, page: &[u8], index: usize) -> Option<usize> {
        if index >= self.count {
            return None;
        }
        let behind = self.count - index;
        Some(if offset_bytes(page.len()) == 2 {
            usize::from(get_u16(page, self.slots_end - 2 * behind))
        } else {
            get_u32(page, self.slots_end - 4 * behind) as usize
        })
    }

    /// The tag, the range of the key suffix, and the offset of the payload of the row at `index` of a leaf. `None` for
    /// a missing row, a key that is too long for its page, or a damaged page.
    #[inline(always)]
    pub(crate) fn plain_row(
        &self,
        page: &[u8],
        index: usize,
    ) -> Option<(u32, Range<usize>, usize)> {
        let offset = self.row_offset(page, index)?;
        if offset < self.heap {
            return None;
        }
        let (tag, len, at) = match page.get(offset..)? {
            // Fast path for the most common rows, whose key length and tag take one byte each.
            &[len, tag, ..] if (len | tag) < 0x80 => (u32::from(tag), usize::from(len), offset + 2),
            _ => {
                let (len, at) = varint(page, offset)?;
                let (tag, at) = varint(page, at)?;
                (tag, len as usize, at)
            }
        };
        let payload_at = at + len;
        (payload_at + tag::len(tag) <= page.len()).then_some((tag, at..payload_at, payload_at))
    }

    /// Prefetches the beginnings of cells: for each, the cache line in which it begins, and the line in which a cell of
    /// average length (at most `CELL_AHEAD_BYTES`) would end.
    #[inline(always)]
    pub(crate) fn prefetch_rows(&self, page: &[u8], rows: Range<usize>) {
        let cells = page.len().saturating_sub(self.heap + self.dead);
        let len = (cells / self.count.max(1)).min(CELL_AHEAD_BYTES);
        for row in rows.start..rows.end.min(self.count) {
            if let Some(offset) = self.row_offset(page, row) {
                prefetch_at(page, offset);
                prefetch_at(page, offset + len.saturating_sub(1));
            }
        }
    }

    /// Prefetches the beginning of the cell of the row at `index` into the processor's cache.
    #[inline(always)]
    pub(crate) fn prefetch_cell(&self, page: &[u8], index: usize) {
        if let Some(offset) = self.row_offset(page, index) {
            let end = (offset + CELL_AHEAD_BYTES).min(page.len());
            tidalite_base::prefetch(&page[offset.min(end)..end]);
        }
    }
}
