//! Freed ranges in the file: one stack of list pages per holder (the transaction of a snapshot, pin or savepoint),
//! and a directory of the stacks.
//!
//! ```text
//! directory (FreeDead, owner = number of directory pages behind it)
//!   0..32 header | 32 next Ptr | 64 entries u32 | 68 0 | 128 entries of 72 bytes
//!   entry: 0 holder u64 | 8 lists u64 | 16 freed pages u64 | 24 newest birth u64 | 32 oldest freed u64
//!          40 top list Ptr
//!
//! list (FreePending, owner = number of lists below it)
//!   flags 0, ranges:  0..32 header | 32 Ptr of the list below | 64 ranges u32 | 68 0
//!                     72 entries of 32 bytes: page, pages, birth, freed
//!   flags 1, bits:    0..32 header | 32 Ptr of the list below | 64 first page u64 | 72 birth u64 | 80 freed u64
//!                     88 pages u64 | 96 one bit a page, set = freed, bit i of byte j = page first + 8j + i
//! ```
//!
//! A list is never changed: lists are pushed on top of a stack, and popped from there. The owner numbers count down
//! towards the bottom, so that damage cannot make a walk endless. Lists of bits are for many ranges close together: the
//! ranges freed by one transaction take at most one list page per `window` pages, however fragmented they are.

use super::ranges::RangeSet;
use super::read::damaged;
use crate::error::Result;
use crate::format::header::Header;
use crate::format::kind::Kind;
use crate::format::meta::{FreedRange, PENDING_BYTES};
use crate::format::ptr::{PTR_BYTES, Ptr};
use tidalite_base::limits::PAGE_SIZE_MIN;
use tidalite_base::{get_u32, get_u64, put_u32, put_u64};

const NEXT_AT: usize = 32;
const COUNT_AT: usize = NEXT_AT + PTR_BYTES;
const RANGES_AT: usize = COUNT_AT + 8;
const BITS_FIRST_AT: usize = NEXT_AT + PTR_BYTES;
const BITS_BIRTH_AT: usize = BITS_FIRST_AT + 8;
const BITS_FREED_AT: usize = BITS_BIRTH_AT + 8;
const BITS_PAGES_AT: usize = BITS_FREED_AT + 8;
const BITS_AT: usize = 96;
const ENTRIES_AT: usize = 128;
const ENTRY_BYTES: usize = 40 + PTR_BYTES;
const _: () = assert!(BITS_PAGES_AT + 8 <= BITS_AT);
const _: () =
    assert!(window(PAGE_SIZE_MIN).is_multiple_of(64) && ranges_per_list(PAGE_SIZE_MIN) > 0);
const _: () = assert!(entries_per_directory(PAGE_SIZE_MIN) > 0);

/// Header flag of a list page that stores freed pages as bits, not as ranges.
pub(super) const BITS: u8 = 1;

/// Maximum number of ranges in one list page.
pub(super) const fn ranges_per_list(page_size: usize) -> usize {
    (page_size - RANGES_AT) / PENDING_BYTES
}

/// Number of pages that the bits of one list page cover.
pub(super) const fn window(page_size: usize) -> u64 {
    (page_size - BITS_AT) as u64 * 8
}

pub(super) const fn entries_per_directory(page_size: usize) -> usize {
    (page_size - ENTRIES_AT) / ENTRY_BYTES
}

/// Stack of list pages with the freed ranges of one holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stack {
    pub(crate) snapshot_txn: u64,
    /// Number of list pages of the stack.
    pub(crate) lists: u64,
    /// Number of freed pages in the ranges of the stack.
    pub(crate) pages: u64,
    /// Upper bound of the births of the ranges in the stack.
    pub(crate) newest_birth: u64,
    /// Lower bound of the transactions that freed the ranges in the stack.
    pub(crate) oldest_freed: u64,
    pub(crate) top: Ptr,
    /// Whether a list page of the stack could not be read: the pages listed on it and below it then stay in use. The
    /// flag is not stored in the file.
    pub(crate) broken: bool,
}

/// A list of freed ranges, which was read from a list page or is to be written to one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct List {
    pub(crate) ranges: Vec<FreedRange>,
    pub(crate) bits: bool,
    /// Number of lists below this list in the stack, followed by the pointer to the topmost of them (`next`).
    pub(crate) below: u64,
    pub(crate) next: Ptr,
}

/// Whether two ranges were born and freed by the same transactions, so that the same snapshots hold both ranges.
pub(super) fn same_life(a: &FreedRange, b: &FreedRange) -> bool {
    (a.birth, a.freed) == (b.birth, b.freed)
}

/// Moves ranges that are close together into list pages of bits, which are returned. The ranges must be in ascending
/// order, and born and freed by the same transactions. The other ranges are left in `rest`, for list pages of ranges.
pub(super) fn cut(
    page_size: usize,
    ranges: &[FreedRange],
    rest: &mut Vec<FreedRange>,
) -> Vec<List> {
    let (most, window) = (ranges_per_list(page_size), window(page_size));
    debug_assert!(
        ranges.is_sorted_by_key(|range| range.page),
        "ranges of a list are not ascending"
    );
    debug_assert!(
        ranges.windows(2).all(|pair| same_life(&pair[0], &pair[1])),
        "a list of bits has ranges of one life"
    );
    let mut lists = Vec::new();
    let mut left = ranges.iter().copied();
    let mut next = left.next();
    while let Some(head) = next {
        let first = head.page / 64 * 64;
        let end = first + window;
        let mut here = Vec::new();
        while let Some(range) = next {
            if range.page >= end {
                break;
            }
            let inside = range.pages.min(end - range.page);
            here.push(FreedRange {
                pages: inside,
                ..range
            });
            next = if inside < range.pages {
                Some(FreedRange {
                    page: end,
                    pages: range.pages - inside,
                    ..range
                })
            } else {
                left.next()
            };
        }
        if here.len() > most {
            lists.push(List {
                ranges: here,
                bits: true,
                below: 0,
                next: Ptr::NULL,
            });
        } else {
            for range in here {
                match rest.last_mut() {
                    Some(last)
                        if last.page + last.pages == range.page && same_life(last, &range) =>
                    {
                        last.pages += range.pages;
                    }
                    _ => rest.push(range),
                }
            }
        }
    }
    lists
}

impl List {
    /// Encodes the list as a page, without the page header.
    pub(super) fn encode(&self, page_size: usize) -> Vec<u8> {
        assert!(!self.ranges.is_empty(), "a list has ranges");
        assert!(
            self.bits || self.ranges.len() <= ranges_per_list(page_size),
            "a list of more ranges than a page holds"
        );
        assert_eq!(
            self.next.is_null(),
            self.below == 0,
            "a list leads to the one below it"
        );
        let mut bytes = vec![0u8; page_size];
        self.next.encode(&mut bytes, NEXT_AT);
        if !self.bits {
            put_u32(&mut bytes, COUNT_AT, self.ranges.len() as u32);
            for (i, range) in self.ranges.iter().enumerate() {
                let at = RANGES_AT + i * PENDING_BYTES;
                range.encode(&mut bytes, at);
            }
            return bytes;
        }
        let first = self.ranges.first().map_or(0, |range| range.page / 64 * 64);
        assert!(
            self.ranges
                .last()
                .is_none_or(|last| last.page + last.pages <= first + window(page_size)),
            "a range outside of the bits of its list"
        );
        put_u64(&mut bytes, BITS_FIRST_AT, first);
        let life = self.ranges.first().map(|range| (range.birth, range.freed));
        let (birth, freed) = life.unwrap_or_default();
        put_u64(&mut bytes, BITS_BIRTH_AT, birth);
        put_u64(&mut bytes, BITS_FREED_AT, freed);
        let pages: u64 = self.ranges.iter().map(|range| range.pages).sum();
        put_u64(&mut bytes, BITS_PAGES_AT, pages);
        for range in &self.ranges {
            for page in range.page - first..range.page - first + range.pages {
                bytes[BITS_AT + (page / 8) as usize] |= 1 << (page % 8);
            }
        }
        bytes
    }

    /// Decodes a list page whose checksum was verified. `below` is the number of lists that must lie below this page
    /// in its stack.
    pub(crate) fn decode(bytes: &[u8], at: &Ptr, below: u64) -> Result<Self> {
        let header = Header::decode(bytes);
        if header.owner != below {
            let expected = format!("{below} lists below it");
            return Err(damaged(
                "list of pending ranges",
                at,
                header.owner,
                &expected,
            ));
        }
        let next = Ptr::decode(bytes, NEXT_AT);
        if next.is_null() != (below == 0) {
            let expected = if below == 0 { "none" } else { "one" };
            return Err(damaged(
                "next list of pending ranges",
                at,
                next.addr,
                expected,
            ));
        }
        let bits = header.flags == BITS;
        let ranges = if bits {
            bits_of(bytes, at)?
        } else {
            let count = get_u32(bytes, COUNT_AT) as usize;
            let most = ranges_per_list(bytes.len());
            if count == 0 || count > most {
                let expected = format!("1 to {most} ranges");
                return Err(damaged("list of pending ranges", at, count, &expected));
            }
            let range = |i: usize| FreedRange::decode(bytes, RANGES_AT + i * PENDING_BYTES);
            (0..count).map(range).collect()
        };
        let mut seen = RangeSet::default();
        for range in &ranges {
            let end = range.page.checked_add(range.pages);
            if range.pages == 0
                || end.is_none()
                || range.birth >= range.freed
                || !seen.insert(range.page, range.pages)
            {
                return Err(damaged(
                    "pending range",
                    at,
                    format!("{range:?}"),
                    "pages, once",
                ));
            }
        }
        Ok(Self {
            ranges,
            bits,
            below,
            next,
        })
    }
}

fn bits_of(bytes: &[u8], at: &Ptr) -> Result<Vec<FreedRange>> {
    let first = get_u64(bytes, BITS_FIRST_AT);
    let birth = get_u64(bytes, BITS_BIRTH_AT);
    let freed = get_u64(bytes, BITS_FREED_AT);
    if !first.is_multiple_of(64) || first > u64::MAX / 2 {
        return Err(damaged(
            "first page of dead bits",
            at,
            first,
            "a multiple of 64",
        ));
    }
    let mut ranges: Vec<FreedRange> = Vec::new();
    let mut pages = 0;
    for (i, &byte) in bytes[BITS_AT..].iter().enumerate() {
        let mut bits = byte;
        while bits != 0 {
            let page = first + i as u64 * 8 + u64::from(bits.trailing_zeros());
            bits &= bits - 1;
            pages += 1;
            match ranges.last_mut() {
                Some(last) if last.page + last.pages == page => last.pages += 1,
                _ => ranges.push(FreedRange {
                    page,
                    pages: 1,
                    birth,
                    freed,
                }),
            }
        }
    }
    if pages == 0 || pages != get_u64(bytes, BITS_PAGES_AT) {
        let expected = format!("{} bits set", get_u64(bytes, BITS_PAGES_AT));
        return Err(damaged("pending bits", at, pages, &expected));
    }
    Ok(ranges)
}

/// Encodes a directory page without its header. `next` points to the following directory page.
pub(super) fn encode_directory(page_size: usize, stacks: &[Stack], next: &Ptr) -> Vec<u8> {
    assert!(
        (1..=entries_per_directory(page_size)).contains(&stacks.len()),
        "a directory page has entries, and no more than fit"
    );
    let mut bytes = vec![0u8; page_size];
    next.encode(&mut bytes, NEXT_AT);
    put_u32(&mut bytes, COUNT_AT, stacks.len() as u32);
    for (i, stack) in stacks.iter().enumerate() {
        let at = ENTRIES_AT + i * ENTRY_BYTES;
        assert!(
            stack.lists > 0 && !stack.top.is_null(),
            "a stack without lists is not stored"
        );
        put_u64(&mut bytes, at, stack.snapshot_txn);
        put_u64(&mut bytes, at + 8, stack.lists);
        put_u64(&mut bytes, at + 16, stack.pages);
        put_u64(&mut bytes, at + 24, stack.newest_birth);
        put_u64(&mut bytes, at + 32, stack.oldest_freed);
        stack.top.encode(&mut bytes, at + 40);
    }
    bytes
}

/// Reads the directory of the stacks; returns pointers to its pages, and the stacks.
pub(super) fn load_directory(
    first: Ptr,
    pages: u64,
    read: super::ReadPage<'_>,
) -> Result<(Vec<Ptr>, Vec<Stack>)> {
    let (mut at, mut directory, mut stacks) = (first, Vec::new(), Vec::new());
    let mut behind = None;
    while !at.is_null() {
        let page = super::read::read_kind(read, &at, Kind::ReuseFreed)?;
        let owner = Header::decode(&page).owner;
        if behind.is_some_and(|expected| expected != owner) {
            return Err(damaged(
                "directory of pending ranges",
                &at,
                owner,
                "one page less",
            ));
        }
        let count = get_u32(&page, COUNT_AT) as usize;
        let most = entries_per_directory(page.len());
        if count == 0 || count > most {
            let expected = format!("1 to {most} entries");
            return Err(damaged(
                "directory of pending ranges",
                &at,
                count,
                &expected,
            ));
        }
        for i in 0..count {
            let entry = ENTRIES_AT + i * ENTRY_BYTES;
            let stack = Stack {
                snapshot_txn: get_u64(&page, entry),
                lists: get_u64(&page, entry + 8),
                pages: get_u64(&page, entry + 16),
                newest_birth: get_u64(&page, entry + 24),
                oldest_freed: get_u64(&page, entry + 32),
                top: Ptr::decode(&page, entry + 40),
                broken: false,
            };
            let sound = stack.lists > 0
                && stack.lists <= pages
                && stack.pages <= pages
                && stack.newest_birth <= stack.snapshot_txn
                && stack.oldest_freed > stack.snapshot_txn
                && !stack.top.is_null();
            if !sound {
                let found = format!("{stack:?}");
                return Err(damaged(
                    "entry of pending ranges",
                    &at,
                    found,
                    "a stack of lists",
                ));
            }
            stacks.push(stack);
        }
        directory.push(at);
        at = Ptr::decode(&page, NEXT_AT);
        if at.is_null() != (owner == 0) || directory.len() as u64 > pages {
            return Err(damaged(
                "directory of pending ranges",
                &directory[0],
                owner,
                "pages that end",
            ));
        }
        behind = Some(owner.wrapping_sub(1));
    }
    Ok((directory, stacks))
}
