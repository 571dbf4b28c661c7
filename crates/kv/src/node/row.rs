//! A row of a leaf by its number, taken apart in as few steps as can be: for walks.

use super::{CELL_AHEAD_BYTES, Shape, offset_bytes, tag, varint};
use std::ops::Range;
use tidalite_base::{get_u16, get_u32};

impl Shape {
    /// Where the cell of row `index` begins, if there is one; perhaps not among the cells.
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

    /// Tag, place of the suffix, and place of the payload of row `index` of a leaf. `None`: there is no such row, or its key is spilled,
    /// or the page is damaged.
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
            // Both lengths in a byte each: the most common rows.
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

    /// Asks the processor for the beginning of a cell.
    #[inline(always)]
    pub(crate) fn ask_for(&self, page: &[u8], index: usize) {
        if let Some(offset) = self.row_offset(page, index) {
            let end = (offset + CELL_AHEAD_BYTES).min(page.len());
            tidalite_base::prefetch(&page[offset.min(end)..end]);
        }
    }
}
