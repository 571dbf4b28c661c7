//! Sequential reading of an object.

use crate::objects::keys::{chunk_key, chunk_len};
use crate::objects::manifest::ObjectInfo;
use crate::objects::parts::{Part, damaged, part};
use std::io;
use tidalite_kv::{Chunks, PageSlice, TableReader, Tree};
use tidalite_pager::{PageRead, Result};

/// A position in the contents of an object. It holds one slice of at most 64 KiB, which is borrowed from the file if
/// the file is memory-mapped.
pub struct ObjectCursor<'r, R> {
    r: &'r R,
    chunks: TableReader<'r>,
    content: u64,
    size: u64,
    chunk_bytes: u32,
    /// Offset of the next byte.
    at: u64,
    /// Index of the next chunk if the object is read sequentially.
    next_chunk: Option<u64>,
    /// The chunk that is being read: its index, its remaining slices, and the offset of the first remaining slice.
    open: Option<(u64, Chunks<'r>, u64)>,
    /// The slice that was read last, and its offset.
    slice: Option<(u64, PageSlice<'r>)>,
}

impl<'r, R: PageRead> ObjectCursor<'r, R> {
    pub(crate) fn new(root: &Tree, r: &'r R, info: &ObjectInfo) -> Result<Self> {
        Ok(Self {
            r,
            chunks: part(root, r, Part::Chunks)?,
            content: info.content,
            size: info.size,
            chunk_bytes: info.chunk_bytes,
            at: 0,
            next_chunk: None,
            open: None,
            slice: None,
        })
    }

    /// Size in bytes of the object.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Offset of the next byte.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.at
    }

    /// Moves to an offset, which may be beyond the end. Reads nothing.
    pub fn seek(&mut self, offset: u64) {
        self.at = offset;
    }

    /// The next bytes: at least one, and at most the smaller of `most` and 64 KiB; `None` at the end of the object.
    ///
    /// # Errors
    /// A damaged or unreadable page; `Corrupt` if a chunk is missing.
    ///
    /// # Cost
    /// Reads one block. After a seek into a chunk, also reads the blocks of this chunk before the position.
    pub fn next_slice(&mut self, most: u64) -> Result<Option<&[u8]>> {
        if self.at >= self.size || most == 0 {
            return Ok(None);
        }
        while !self.has_slice() {
            self.step()?;
        }
        let Some((begin, slice)) = &self.slice else {
            return Ok(None);
        };
        let from = self.at - begin;
        let len = (slice.len() as u64 - from).min(most);
        self.at += len;
        Ok(Some(&slice[from as usize..(from + len) as usize]))
    }

    /// Whether the slice in memory contains the next byte.
    fn has_slice(&self) -> bool {
        let slice = self.slice.as_ref();
        slice.is_some_and(|(begin, slice)| (*begin..begin + slice.len() as u64).contains(&self.at))
    }

    /// Reads the next slice of the chunk that contains the next byte.
    fn step(&mut self) -> Result<()> {
        let index = self.at / u64::from(self.chunk_bytes);
        let mut open = match self.open.take() {
            Some(open) if open.0 == index && open.2 <= self.at => open,
            _ => {
                let open = self.open_chunk(index)?;
                if self.next_chunk == Some(index) {
                    // This is only a hint: damage of the next chunk is reported when that chunk is read.
                    let _ = self.request_chunk(index + 1);
                }
                self.next_chunk = Some(index + 1);
                open
            }
        };
        let Some(slice) = open.1.next() else {
            return Err(self.missing(index, "fewer bytes"));
        };
        let slice = slice?;
        let begin = open.2;
        open.2 += slice.len() as u64;
        self.slice = Some((begin, slice));
        self.open = Some(open);
        Ok(())
    }

    /// Requests the beginning of a chunk from the disk while the previous chunk is being read.
    fn request_chunk(&self, index: u64) -> Result<()> {
        if index * u64::from(self.chunk_bytes) < self.size
            && let Some(value) = self
                .chunks
                .get(self.r, &chunk_key(self.content, index as u32))?
        {
            value.request();
        }
        Ok(())
    }

    fn open_chunk(&self, index: u64) -> Result<(u64, Chunks<'r>, u64)> {
        let key = chunk_key(self.content, index as u32);
        let Some(value) = self.chunks.get(self.r, &key)? else {
            return Err(self.missing(index, "no such row"));
        };
        if value.len() != chunk_len(self.size, self.chunk_bytes, index) {
            return Err(self.missing(index, format!("{} bytes", value.len())));
        }
        let begin = index * u64::from(self.chunk_bytes);
        Ok((index, value.chunks(), begin))
    }

    #[cold]
    fn missing(&self, index: u64, found: impl std::fmt::Display) -> tidalite_pager::Error {
        let len = chunk_len(self.size, self.chunk_bytes, index);
        let what = format!("chunk {index} of contents {}", self.content);
        damaged(&what, found, format!("{len} bytes"))
    }
}

impl<R: PageRead> io::Read for ObjectCursor<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.next_slice(buffer.len() as u64) {
            Ok(Some(slice)) => {
                buffer[..slice.len()].copy_from_slice(slice);
                Ok(slice.len())
            }
            Ok(None) => Ok(0),
            Err(error) => Err(io::Error::other(error)),
        }
    }
}

impl<R> std::fmt::Debug for ObjectCursor<'_, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ObjectCursor")
            .field("at", &self.at)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}
