//! The header fields of a table page, read and checked before the rest of the page.

use crate::error::damaged;
use crate::page::layout::{
    COUNT_AT, DEAD_AT, HEAP_AT, LEVEL_AT, PREFIX_AT, PREFIX_LEN_AT, slot_bytes,
};
use tidalite_base::{get_u16, get_u32};
use tidalite_pager::{Error, Result};

/// The header fields of a table page, checked against the length of the page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) count: usize,
    pub(crate) level: u8,
    /// Offset of the lowest cell in the page.
    pub(crate) heap: usize,
    /// Offset of the array of heads (the first four bytes of each key suffix), which begins just after the prefix.
    pub(crate) heads: usize,
    /// Number of unused bytes among the cells.
    pub(crate) dead: usize,
    /// Offset of the end of the slots, where the free bytes of the page begin.
    pub(crate) slots_end: usize,
}

impl Shape {
    /// Reads and checks the header fields of a page; the page may have no entries. Returns `None` if the fields do not
    /// fit a page of this level and length.
    #[inline(always)]
    pub(crate) fn whole(bytes: &[u8], level: u8) -> Option<Self> {
        let shape = Self::read(bytes, level)?;
        let whole = shape.level == level
            && shape.heap <= bytes.len()
            && shape.slots_end <= shape.heap
            && shape.dead <= bytes.len() - shape.heap;
        whole.then_some(shape)
    }

    /// Reads the header fields without checking them.
    #[inline(always)]
    fn read(bytes: &[u8], level: u8) -> Option<Self> {
        let page_size = bytes.len();
        let bytes: &[u8; PREFIX_AT] = bytes.first_chunk()?;
        let count = usize::from(get_u16(bytes, COUNT_AT));
        let heads = PREFIX_AT + get_u32(bytes, PREFIX_LEN_AT) as usize;
        Some(Self {
            count,
            level: bytes[LEVEL_AT],
            heap: get_u32(bytes, HEAP_AT) as usize,
            heads,
            dead: get_u32(bytes, DEAD_AT) as usize,
            slots_end: heads + count * slot_bytes(level == 0, page_size),
        })
    }

    /// Reads and checks the header fields of the page at `at`, which may have no entries.
    #[inline(always)]
    pub(crate) fn of(bytes: &[u8], level: u8, at: u64) -> Result<Self> {
        match Self::whole(bytes, level) {
            Some(shape) => Ok(shape),
            None => Err(Self::damaged(bytes, level, at)),
        }
    }

    #[cold]
    fn damaged(bytes: &[u8], level: u8, at: u64) -> Error {
        let expected = format!("level {level} and cells inside {} bytes", bytes.len());
        match Self::read(bytes, level) {
            Some(shape) => damaged("table page header", at, format!("{shape:?}"), expected),
            None => damaged("table page", at, bytes.len(), "a whole page"),
        }
    }
}
