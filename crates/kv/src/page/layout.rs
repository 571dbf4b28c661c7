//! The layout of one page of an ordered table.
//!
//! ```text
//! 0        32      34      35      36     40     44           48
//! | header | count | level | flags | heap | dead | prefix len | prefix | slots ... free | cells       |
//! |  32 B  |  u16  |  u8   |  u8   | u32  | u32  |    u32     |        |                | newest lowest |
//!
//! slots of a leaf:    | heads u32 * count |                        | offsets u16 * count |
//! slots of a branch:  | heads u32 * count | children 26 B * count  | offsets u16 * count |
//!                     (offsets are u32 in pages above 64 KiB)
//!
//! leaf cell    | key length varint | tag varint | key suffix | value, reference, nested table |
//! branch cell  | key length varint | key suffix |
//!              (for a key longer than `key_bytes_max` the highest bit of the length is set; the length counts
//!              the first bytes of the key only, and the reference to the rest follows them)
//! child        | page u48 | birth u48 | checksum u64 | rows u48 |
//! ```
//!
//! The prefix lies beside the header, not among the cells: a search then touches one cache line less. The
//! children lie beside the heads for the same reason: a descent reads no cell, unless heads are equal.
//!
//! Invariants of a stored page:
//! 1. Level 0 is a leaf (`Kind::KvLeaf`), the levels above are branches (`Kind::KvBranch`). A child is exactly
//!    one level below its parent, so no damage can make a descent endless.
//! 2. There is at least one entry. Keys ascend strictly. Every key is prefix + suffix.
//! 3. The key of a branch's first entry is stored empty and means "below everything"; it is ignored when the
//!    prefix is computed.
//! 4. `heads[i]` holds the first four bytes of suffix i, padded with zeros, as a big-endian number
//!    (stored little-endian like every integer). For a spilled key, suffix i is the part in the page. It has at
//!    least four bytes, because a prefix is never longer than `prefix_bytes_max`.
//! 5. Cells lie in `heap .. page size`, do not overlap, and with `dead` bytes fill it.
//! 6. A cell with its slot takes at most half of a page's space (`cell_bytes_max`), so
//!    an overfull page can always be split in two.
//! 7. A leaf that contains a nested table, inline or not, has the flag `NESTED`. Code that seals, frees or checks pages
//!    reads only the cells of these leaves.
//! 8. The flags `WHOSE` describe the table: each of its pages has them.
//! 9. `ASCENDS` is a hint on leaves (`table/sequential.rs`); nothing else depends on it.

use tidalite_base::limits::{PAGE_SIZE_MAX, PAGE_SIZE_MIN};
use tidalite_base::{TxnId, get_u64, put_u64};
use tidalite_pager::{HEADER_BYTES, Kind, PTR_BYTES, Ptr};

pub(crate) const COUNT_AT: usize = HEADER_BYTES;
pub(crate) const LEVEL_AT: usize = COUNT_AT + 2;
pub(crate) const FLAGS_AT: usize = LEVEL_AT + 1;
pub(crate) const HEAP_AT: usize = FLAGS_AT + 1;
pub(crate) const DEAD_AT: usize = HEAP_AT + 4;
pub(crate) const PREFIX_LEN_AT: usize = DEAD_AT + 4;
pub(crate) const PREFIX_AT: usize = PREFIX_LEN_AT + 4;
const _: () = assert!(PREFIX_AT == 48);

/// Size in bytes of a head, the first four bytes of a key suffix.
pub(crate) const HEAD_BYTES: usize = 4;
/// Size in bytes of a child entry in a branch: page, birth, checksum, number of rows.
pub(crate) const CHILD_BYTES: usize = 6 + 6 + 8 + 6;
/// Largest page size in bytes at which cell offsets take two bytes.
pub(super) const NARROW_PAGE_MAX: usize = 1 << 16;
/// Flag of a leaf in which at least one cell holds a nested table.
pub(crate) const NESTED: u8 = 1;
/// Flag of every page of a nested table. Such a page carries the id of the outermost table; without this flag, a page
/// that salvage finds without its tree would be taken for a page of the outermost table.
pub(crate) const INNER_PAGE: u8 = 2;
/// Flag of every page of a table of sets (sets of values under each key), but not of the pages of these sets.
pub(crate) const SETS: u8 = 4;
/// Flag of a leaf: rows were inserted in ascending order at its end.
pub(crate) const ASCENDS: u8 = 8;
/// The flags that identify the kind of table, independent of the page's content.
pub(crate) const WHOSE: u8 = INNER_PAGE | SETS;

#[inline(always)]
pub(crate) const fn offset_bytes(page_size: usize) -> usize {
    if page_size <= NARROW_PAGE_MAX { 2 } else { 4 }
}

/// Number of bytes that an entry takes in each array of the slots, in the order of the arrays: heads, children,
/// offsets. A leaf has no children.
#[inline(always)]
pub(crate) const fn slot_parts(leaf: bool, page_size: usize) -> [usize; 3] {
    let child = if leaf { 0 } else { CHILD_BYTES };
    [HEAD_BYTES, child, offset_bytes(page_size)]
}

/// Number of bytes that an entry takes outside its cell: head, child pointer and cell offset.
#[inline(always)]
pub(crate) const fn slot_bytes(leaf: bool, page_size: usize) -> usize {
    let [head, child, offset] = slot_parts(leaf, page_size);
    head + child + offset
}

/// Mask of the low 48 bits of a number.
pub(super) const U48: u64 = (1 << 48) - 1;

/// The stored form of a child pointer: only the fields that do not follow from the branch itself.
pub(crate) fn child_bytes(ptr: &Ptr, rows: u64) -> [u8; CHILD_BYTES] {
    debug_assert!(!ptr.is_null(), "a child has a page");
    debug_assert!(ptr.birth.0 <= U48, "births have 48 bits");
    let mut bytes = [0; CHILD_BYTES];
    let page = ptr.addr / u64::from(ptr.len.max(1));
    put_u64(&mut bytes, 0, page & U48 | ptr.birth.0 << 48);
    put_u64(&mut bytes, 18, rows << 16);
    // The upper 32 of the 48 bits of the birth are stored in bytes 8 to 11; the checksum follows them.
    bytes[8..12].copy_from_slice(&((ptr.birth.0 >> 16) as u32).to_le_bytes());
    put_u64(&mut bytes, 12, ptr.checksum);
    bytes
}

/// Decodes the pointer to a child of this level, and the number of rows below the child. `bytes` must have at least
/// `CHILD_BYTES`.
#[inline(always)]
pub(crate) fn child_of(bytes: &[u8], level: u8, page_size: usize) -> (Ptr, u64) {
    debug_assert!(bytes.len() >= CHILD_BYTES, "a whole child");
    let ptr = Ptr {
        addr: (get_u64(bytes, 0) & U48).saturating_mul(page_size as u64),
        len: page_size as u32,
        kind: kind_of(level),
        checksum: get_u64(bytes, 12),
        birth: TxnId(get_u64(bytes, 6) & U48),
    };
    (ptr, child_rows(&bytes[..CHILD_BYTES]))
}

/// Number of rows below a child, decoded from the child's entry in its branch.
#[inline]
pub(crate) fn child_rows(bytes: &[u8]) -> u64 {
    get_u64(bytes, CHILD_BYTES - 8) >> 16
}

/// Length in bytes of the longest varint of 32 bits.
pub(crate) const VARINT_BYTES_MAX: usize = 5;

// Even the smallest entries (two varints and a slot each) cannot overflow the u16 entry count of a page.
const _: () = assert!((PAGE_SIZE_MAX - PREFIX_AT) / (HEAD_BYTES + 4 + 2) < u16::MAX as usize);
const _: () = assert!((NARROW_PAGE_MAX - PREFIX_AT) / (HEAD_BYTES + 2 + 2) < u16::MAX as usize);

/// Bit in a cell's key length that marks a spilled key: one whose last bytes are stored outside the page.
pub(crate) const SPILLED: u32 = 1 << 31;

/// Length in bytes of the longest key that is stored whole in a page of this size: a third of a page, rounded up. The
/// remaining bytes of a longer key lie in an extent of their own.
#[must_use]
pub const fn key_bytes_max(page_size: usize) -> usize {
    page_size.div_ceil(3)
}

/// Maximum length in bytes of one entry with its slot: half of the page's space (invariant 6).
pub(crate) const fn cell_bytes_max(page_size: usize) -> usize {
    debug_assert!(page_size > PREFIX_AT, "a page is larger than its header");
    (page_size - PREFIX_AT) / 2
}

// Asserts that the longest key in the page fits beside a child pointer and beside a reference to a large value.
const _: () = {
    let key = key_bytes_max(PAGE_SIZE_MIN);
    let varint = VARINT_BYTES_MAX;
    assert!(slot_bytes(false, PAGE_SIZE_MIN) + varint + key <= cell_bytes_max(PAGE_SIZE_MIN));
    let fixed = slot_bytes(true, PAGE_SIZE_MIN) + varint + 2;
    assert!(fixed + REFERENCE_BYTES + key <= cell_bytes_max(PAGE_SIZE_MIN));
    assert!(fixed + ROOT_BYTES + key <= cell_bytes_max(PAGE_SIZE_MIN));
};

/// Length in bytes of `number` as a varint, which stores seven bits per byte, low bits first.
pub(crate) const fn varint_len(number: u32) -> usize {
    match number {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        0x4000..0x20_0000 => 3,
        0x20_0000..0x1000_0000 => 4,
        _ => VARINT_BYTES_MAX,
    }
}

/// Reads a varint at offset `at`; returns the number and the offset after it, or `None` if the bytes are no varint.
#[inline]
pub(crate) fn varint(bytes: &[u8], at: usize) -> Option<(u32, usize)> {
    let first = *bytes.get(at)?;
    if first < 0x80 {
        return Some((u32::from(first), at + 1));
    }
    let mut number = u64::from(first & 0x7f);
    for step in 1..VARINT_BYTES_MAX {
        let byte = *bytes.get(at + step)?;
        number |= u64::from(byte & 0x7f) << (7 * step);
        if byte < 0x80 {
            return Some((u32::try_from(number).ok()?, at + step + 1));
        }
    }
    None
}

/// The head of a key suffix: its first four bytes as a number that sorts like these bytes.
#[inline]
pub(crate) fn head_of(suffix: &[u8]) -> u32 {
    if let Some(first) = suffix.first_chunk::<4>() {
        return u32::from_be_bytes(*first);
    }
    let mut padded = [0u8; 4];
    padded[..suffix.len()].copy_from_slice(suffix);
    u32::from_be_bytes(padded)
}

/// The page kind for this level: leaf for level 0, branch for the levels above.
pub(crate) fn kind_of(level: u8) -> Kind {
    if level == 0 {
        Kind::KvLeaf
    } else {
        Kind::KvBranch
    }
}

/// Length in bytes of a reference to a value in an extent.
pub(crate) const REFERENCE_BYTES: usize = PTR_BYTES + 8;

/// Length in bytes of the root of a nested table: without a sequence number (first constant), and with one (second).
pub(crate) const ROOT_PLAIN_BYTES: usize = CHILD_BYTES + 2;
pub(crate) const ROOT_BYTES: usize = ROOT_PLAIN_BYTES + 8;

/// Converts a number that is known to be smaller than a page.
pub(crate) fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or_else(|_| unreachable!("pages are smaller than 4 GiB"))
}

/// The type of a leaf's payload: the low two bits of its tag.
pub(crate) mod tag {
    /// The payload is the value itself.
    pub(crate) const INLINE: u32 = 0;
    /// The payload is a reference to an extent that holds the value.
    pub(crate) const REFERENCE: u32 = 1;
    /// The payload is an inline table: a nested table that is small enough for the cell.
    pub(crate) const NESTED: u32 = 2;
    /// The payload is the root of a nested table with pages of its own.
    pub(crate) const ROOT: u32 = 3;

    /// The tag that encodes a payload of this kind and length.
    pub(crate) const fn of(kind: u32, len: usize) -> u32 {
        debug_assert!(kind <= ROOT, "a kind has two bits");
        debug_assert!(len < 1 << 30, "a length has thirty bits");
        (len as u32) << 2 | kind
    }

    pub(crate) const fn kind(tag: u32) -> u32 {
        tag & 3
    }

    pub(crate) const fn len(tag: u32) -> usize {
        (tag >> 2) as usize
    }
}

/// The content of an entry beside its key: in a leaf the payload with its tag, in a branch the child.
#[derive(Clone, Copy)]
pub(crate) struct Payload<'a> {
    /// In a leaf, the tag with type and length of the payload (see the module `tag`); in a branch, 0.
    pub(crate) tag: u32,
    pub(crate) bytes: &'a [u8],
}

impl<'a> Payload<'a> {
    /// The payload of a value that is stored in the cell itself.
    pub(crate) const fn inline(bytes: &'a [u8]) -> Self {
        Self {
            tag: tag::of(tag::INLINE, bytes.len()),
            bytes,
        }
    }

    /// True if the payload is a nested table, inline or with pages of its own.
    pub(crate) fn nested(&self) -> bool {
        tag::kind(self.tag) >= tag::NESTED
    }
}

/// Length in bytes of a cell without its slot, for a key suffix and, for a long key, the reference to its remaining
/// bytes.
pub(crate) fn cell_size(
    leaf: bool,
    (suffix_len, rest_len): (usize, usize),
    payload: Payload<'_>,
) -> usize {
    debug_assert!(
        rest_len == 0 || rest_len == REFERENCE_BYTES,
        "a spilled key has one reference"
    );
    let key = if rest_len == 0 {
        varint_len(small(suffix_len)) + suffix_len
    } else {
        VARINT_BYTES_MAX + suffix_len + rest_len
    };
    if leaf {
        key + varint_len(payload.tag) + payload.bytes.len()
    } else {
        key
    }
}
