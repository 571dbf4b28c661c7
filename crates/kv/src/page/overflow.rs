//! Bytes in extents of their own: large values, and the rests of long keys.
//!
//! A leaf cell holds the value itself (`value.rs`) while the whole entry takes at most half of a page's space.
//! Otherwise the cell holds a reference of 40 bytes:
//!
//! ```text
//! 0                    32      40
//! | pointer to chunk 0 | length |
//! |        32 B        |  u64   |
//! ```
//!
//! The extent begins at chunk 0 and has as few pages as possible. The whole extent is cut into
//! chunks of 64 KiB, the last one shorter; each is a block with header and checksum (`Kind::KvValue`):
//!
//! ```text
//! 0        32              40      44  48
//! | header | next checksum | index | 0 | data, then zeros |
//! |  32 B  |      u64      |  u32  |u32|                  |
//! ```
//!
//! `next checksum` is the checksum of the following chunk (0 in the last), so the pointer in the leaf
//! verifies all chunks, one after the other; every other field of the next pointer follows from the first.

use crate::error::damaged;
use crate::page::layout::REFERENCE_BYTES;
use std::cmp::Ordering;
use std::ops::{Deref, Range};
use tidalite_base::limits::CHECKSUM_SPAN_MAX;
use tidalite_base::{TxnId, get_u32, get_u64, put_u32, put_u64};
use tidalite_pager::{
    Extent, HEADER_BYTES, Header, Kind, PTR_BYTES, PageRead, PageRef, PageWrite, Ptr, Result,
    seal_block,
};

/// Maximum length in bytes of a value: 4 GiB.
pub const VALUE_BYTES_MAX: u64 = 4 << 30;

/// Length in bytes of a chunk of a large value, header included: the maximum that one checksum covers.
pub const VALUE_CHUNK_BYTES: usize = CHECKSUM_SPAN_MAX;

const NEXT_AT: usize = HEADER_BYTES;
const INDEX_AT: usize = NEXT_AT + 8;
const ZERO_AT: usize = INDEX_AT + 4;
const DATA_AT: usize = ZERO_AT + 4;
const DATA_BYTES: usize = VALUE_CHUNK_BYTES - DATA_AT;

/// Number of chunks that are requested from the disk at a time when a value is read in order: 1 MiB.
const AHEAD_CHUNKS: u64 = 16;

/// Bytes at the beginning of a value, and on either side of a place in it, that `prefetch` fetches.
const SHARE_HEAD_BYTES: usize = 32;
const SHARE_GUESS_BYTES: u64 = 192;

const LENGTH_AT: usize = PTR_BYTES;
const _: () = assert!(LENGTH_AT + 8 == REFERENCE_BYTES);

/// The location in the file of a value that has an extent of its own, and the value's division into chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    /// Pointer to the first chunk.
    first: Ptr,
    /// Length in bytes of the value.
    pub(crate) len: u64,
    /// Length in bytes of the extent.
    extent_bytes: u64,
    page_size: u64,
}

impl Reference {
    fn extent_bytes(len: u64, page_size: u64) -> u64 {
        let data = DATA_BYTES as u64;
        let rest = match len % data {
            0 => 0,
            rest => rest + DATA_AT as u64,
        };
        (len / data * VALUE_CHUNK_BYTES as u64 + rest).next_multiple_of(page_size)
    }

    pub(crate) fn decode(bytes: &[u8], page_size: usize, leaf_at: u64) -> Result<Self> {
        if bytes.len() != REFERENCE_BYTES {
            let found = format!("{} bytes", bytes.len());
            return Err(damaged(
                "reference to a large value",
                leaf_at,
                found,
                REFERENCE_BYTES,
            ));
        }
        let first = Ptr::decode(bytes, 0);
        let len = get_u64(bytes, LENGTH_AT);
        let page_size = page_size as u64;
        let plausible = (1..=VALUE_BYTES_MAX).contains(&len)
            && first.kind == Kind::KvValue
            && first.addr.checked_add(VALUE_BYTES_MAX * 2).is_some()
            && !first.is_null();
        let mut this = Self {
            first,
            len,
            extent_bytes: 0,
            page_size,
        };
        if plausible {
            this.extent_bytes = Self::extent_bytes(len, page_size);
        }
        if !plausible || u64::from(first.len) != this.chunk_len(0) {
            return Err(damaged(
                "reference to a large value",
                leaf_at,
                format!("{len} bytes, {first:?}"),
                "a value's length and its first chunk",
            ));
        }
        Ok(this)
    }

    /// Length in bytes of the chunk at `index`; 0 beyond the last chunk.
    fn chunk_len(&self, index: u64) -> u64 {
        debug_assert!(
            self.extent_bytes.is_multiple_of(self.page_size),
            "whole pages"
        );
        let chunk = VALUE_CHUNK_BYTES as u64;
        self.extent_bytes.saturating_sub(index * chunk).min(chunk)
    }

    fn count(&self) -> u64 {
        self.extent_bytes.div_ceil(VALUE_CHUNK_BYTES as u64)
    }

    /// The range of the value's bytes that the chunk at `index` holds.
    fn part(&self, index: u64) -> Range<u64> {
        let from = (index * DATA_BYTES as u64).min(self.len);
        from..(from + DATA_BYTES as u64).min(self.len)
    }

    fn chunk_ptr(&self, index: u64, checksum: u64) -> Ptr {
        debug_assert!(index < self.count(), "the chunk exists");
        Ptr {
            addr: self.first.addr + index * VALUE_CHUNK_BYTES as u64,
            len: self.chunk_len(index) as u32,
            checksum,
            ..self.first
        }
    }

    pub(crate) fn extent(&self) -> Extent {
        Extent {
            addr: self.first.addr,
            pages: self.extent_bytes / self.page_size,
            birth: self.first.birth,
        }
    }

    /// Length in bytes of the value.
    pub(crate) fn bytes(&self) -> u64 {
        self.len
    }

    /// Encodes the reference in the form that a leaf cell stores.
    pub(crate) fn encode(&self) -> [u8; REFERENCE_BYTES] {
        let mut bytes = [0; REFERENCE_BYTES];
        self.first.encode(&mut bytes, 0);
        put_u64(&mut bytes, LENGTH_AT, self.len);
        bytes
    }

    /// Iterates over the chunks of the value.
    pub(crate) fn has_one_chunk(&self) -> bool {
        self.len <= DATA_BYTES as u64
    }

    /// Address of the first byte of the value in the file.
    pub(crate) fn data_addr(&self) -> u64 {
        self.first.addr + DATA_AT as u64
    }

    /// Fetches the header of the first chunk into the processor's cache, and the data around `share` of its length.
    #[inline]
    pub(crate) fn prefetch<R: PageRead>(&self, r: &R, share: Option<f32>) {
        r.prefetch_bytes(self.first.addr, DATA_AT + SHARE_HEAD_BYTES);
        let len = self.part(0).end - self.part(0).start;
        if let Some(share) = share {
            let at = (share * len as f32) as u64;
            let from = at.saturating_sub(SHARE_GUESS_BYTES).min(len);
            let to = (at + SHARE_GUESS_BYTES).min(len);
            r.prefetch_bytes(
                self.first.addr + DATA_AT as u64 + from,
                (to - from) as usize,
            );
        }
    }

    pub(crate) fn chunks<'r>(&self, reader: &'r dyn PageRead) -> Chunks<'r> {
        Chunks {
            inline: None,
            extent: Some(ChunkReader::new(reader, *self)),
        }
    }

    /// Compares the value with other bytes; reads only as many chunks as necessary.
    pub(crate) fn compare(&self, reader: &dyn PageRead, other: &[u8]) -> Result<Ordering> {
        let mut other = other;
        for slice in self.chunks(reader) {
            let slice = slice?;
            let both = slice.len().min(other.len());
            match slice[..both].cmp(&other[..both]) {
                Ordering::Equal if slice.len() > both => return Ok(Ordering::Greater),
                Ordering::Equal => other = &other[both..],
                decided => return Ok(decided),
            }
        }
        Ok(if other.is_empty() {
            Ordering::Equal
        } else {
            Ordering::Less
        })
    }

    /// Requests chunks from the disk in advance, if the kernel reads each page that is not in memory alone. A value of
    /// one chunk is not worth the call.
    fn read_ahead(&self, reader: &dyn PageRead, chunks: Range<u64>) {
        let chunk = VALUE_CHUNK_BYTES as u64;
        let from = self.extent_bytes.min(chunks.start * chunk);
        let to = self.extent_bytes.min(chunks.end * chunk);
        if from < to && !self.has_one_chunk() && reader.reads_single_pages() {
            reader.read_ahead(self.first.addr + from, to - from);
        }
    }

    /// Requests the beginning of the value from the disk in advance.
    pub(crate) fn request(&self, reader: &dyn PageRead) {
        self.read_ahead(reader, 0..2 * AHEAD_CHUNKS);
    }

    /// Writes a value into a new extent, the last chunk first, because each chunk stores the checksum of the next
    /// chunk.
    pub(crate) fn write<W: PageWrite>(w: &mut W, owner: u64, value: &[u8]) -> Result<Self> {
        let len = value.len() as u64;
        let page_size = w.page_size() as u64;

        debug_assert!(
            (1..=VALUE_BYTES_MAX).contains(&len),
            "the length was checked"
        );
        let extent_bytes = Self::extent_bytes(len, page_size);
        let extent = w.alloc_value(extent_bytes / page_size, len)?;
        debug_assert!(
            extent.pages * page_size == extent_bytes,
            "the extent has this size"
        );
        let mut this = Self {
            first: Ptr {
                addr: extent.addr,
                len: 0,
                kind: Kind::KvValue,
                checksum: 0,
                birth: extent.birth,
            },
            len,
            extent_bytes,
            page_size,
        };
        let mut chunk = vec![0; this.chunk_len(0) as usize];
        let mut next_checksum = 0;
        for index in (0..this.count()).rev() {
            let part = this.part(index);
            let data = &value[part.start as usize..part.end as usize];
            let bytes = &mut chunk[..this.chunk_len(index) as usize];
            put_u64(bytes, NEXT_AT, next_checksum);
            put_u32(bytes, INDEX_AT, index as u32);
            put_u32(bytes, ZERO_AT, 0);
            bytes[DATA_AT..DATA_AT + data.len()].copy_from_slice(data);
            bytes[DATA_AT + data.len()..].fill(0);
            let header = Header {
                kind: Kind::KvValue,
                flags: 0,
                owner,
                address: extent.addr + index * VALUE_CHUNK_BYTES as u64,
                birth: extent.birth,
            };
            let ptr = seal_block(bytes, &header);
            w.write_extent(ptr.addr, bytes)?;
            next_checksum = ptr.checksum;
            this.first = ptr;
        }
        debug_assert!(
            this.first.addr == extent.addr,
            "the first chunk is written last"
        );
        Ok(this)
    }
}

/// Consecutive bytes of a value in a page or block that stays readable while the slice exists.
#[derive(Clone, Debug)]
pub struct PageSlice<'r> {
    page: PageRef<'r>,
    range: Range<usize>,
}

impl<'r> PageSlice<'r> {
    pub(crate) fn new(page: PageRef<'r>, range: Range<usize>) -> Self {
        debug_assert!(range.start <= range.end, "the range is in order");
        debug_assert!(range.end <= page.len(), "the slice lies in its page");
        Self { page, range }
    }

    /// The page that holds this slice, and the range in the page that corresponds to `range` of the slice.
    pub(crate) fn within(&self, range: Range<usize>) -> (&PageRef<'r>, Range<usize>) {
        debug_assert!(range.end <= self.range.len(), "the part lies in the slice");
        let from = self.range.start;
        (&self.page, from + range.start..from + range.end)
    }
}

impl Deref for PageSlice<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.page[self.range.clone()]
    }
}

/// Iterator over the chunks of a value, in order; ends after an error.
pub struct Chunks<'r> {
    inline: Option<PageSlice<'r>>,
    extent: Option<ChunkReader<'r>>,
}

impl<'r> Chunks<'r> {
    /// An iterator over an inline value, which is returned as a single chunk.
    pub(crate) fn of_inline(slice: PageSlice<'r>) -> Self {
        Self {
            inline: Some(slice),
            extent: None,
        }
    }
}

impl<'r> Iterator for Chunks<'r> {
    type Item = Result<PageSlice<'r>>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(slice) = self.inline.take() {
            return Some(Ok(slice));
        }
        let chunks = self.extent.as_mut()?;
        if chunks.reference.part(chunks.index).is_empty() {
            return None;
        }
        let slice = chunks.step();
        if slice.is_err() {
            self.extent = None;
        }
        Some(slice)
    }
}

/// Reads the chunks of an extent; each chunk is verified by the checksum stored in the chunk before.
struct ChunkReader<'r> {
    reader: &'r dyn PageRead,
    reference: Reference,
    index: u64,
    checksum: u64,
}

impl<'r> ChunkReader<'r> {
    fn new(reader: &'r dyn PageRead, reference: Reference) -> Self {
        Self {
            reader,
            reference,
            index: 0,
            checksum: reference.first.checksum,
        }
    }

    fn step(&mut self) -> Result<PageSlice<'r>> {
        match self.index {
            // A reader of the beginning needs no more than this.
            0 => self.reference.read_ahead(self.reader, 0..1),
            1 => self.reference.read_ahead(self.reader, 1..2 * AHEAD_CHUNKS),
            index if index.is_multiple_of(AHEAD_CHUNKS) => {
                let next = index + AHEAD_CHUNKS;
                self.reference
                    .read_ahead(self.reader, next..next + AHEAD_CHUNKS);
            }
            _ => {}
        }
        let ptr = self.reference.chunk_ptr(self.index, self.checksum);
        let page = self.reader.block(&ptr)?;
        let part = self.reference.part(self.index);
        let end = DATA_AT + (part.end - part.start) as usize;
        let found = page
            .get(INDEX_AT..end)
            .map(|rest| u64::from(get_u32(rest, 0)));
        if found != Some(self.index) {
            return Err(damaged(
                "chunk of a large value",
                ptr.addr,
                format!("chunk {found:?} in {} bytes", page.len()),
                format!("chunk {}", self.index),
            ));
        }
        self.index += 1;
        self.checksum = get_u64(&page, NEXT_AT);
        Ok(PageSlice {
            page,
            range: DATA_AT..end,
        })
    }
}

/// Reads every chunk of a value, including chunks that hold only zeros (pages above 64 KiB), and checks
/// their owner and birth.
pub(crate) fn check_chunks(reader: &dyn PageRead, reference: Reference, owner: u64) -> Result<()> {
    let mut chunks = ChunkReader::new(reader, reference);
    while chunks.index < reference.count() {
        let at = chunks.reference.chunk_ptr(chunks.index, 0).addr;
        let slice = chunks.step()?;
        let found = Header::decode(&slice.page);
        let expected: (u64, TxnId) = (owner, reference.first.birth);
        if (found.owner, found.birth) != expected {
            return Err(damaged(
                "chunk of a large value",
                at,
                format!("owner {}, {}", found.owner, found.birth),
                format!("owner {owner}, {}", expected.1),
            ));
        }
    }
    if chunks.checksum != 0 {
        return Err(damaged(
            "last chunk of a large value",
            reference.first.addr,
            format!("a next checksum of {:016x}", chunks.checksum),
            0,
        ));
    }
    Ok(())
}
