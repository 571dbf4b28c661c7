//! Values of a table: stored in the leaf, or in an extent of their own (`page/overflow.rs`).

use crate::page::key::{self, stored_bytes};
use crate::page::layout::{Payload, REFERENCE_BYTES, cell_bytes_max, cell_size, slot_bytes, tag};
use crate::page::overflow::{Chunks, PageSlice, Reference, VALUE_BYTES_MAX};
use std::borrow::Cow;
use std::ops::Range;
use tidalite_pager::{Error, PageRead, PageRef, PageWrite, Result};

/// Maximum size in bytes of the buffer that is allocated for a value in advance. For a longer value the buffer grows
/// with the bytes read, because the length in the leaf may be damaged.
const TRUSTED_BYTES_MAX: u64 = 1 << 20;

/// Checks a value's length, before a transaction changes anything.
pub(crate) fn check_len(len: u64) -> Result<()> {
    if len > VALUE_BYTES_MAX {
        return Err(Error::Limit {
            what: "bytes of a table's value",
            found: len,
            limit: VALUE_BYTES_MAX,
        });
    }
    Ok(())
}

/// A value in the form in which a leaf cell will store it.
pub(crate) enum Stored<'v> {
    Inline(&'v [u8]),
    Reference([u8; REFERENCE_BYTES]),
}

impl<'v> Stored<'v> {
    /// Checks the lengths of key and value before anything is changed. Writes the value to an extent if it is too large
    /// for a cell with this key.
    pub(crate) fn put<W: PageWrite>(
        w: &mut W,
        owner: u64,
        key: &[u8],
        value: &'v [u8],
    ) -> Result<Self> {
        key::check_len(key)?;
        check_len(value.len() as u64)?;
        let most = cell_bytes_max(w.page_size());
        if value.len() < most {
            let stored = Self::Inline(value);
            let key = stored_bytes(w.page_size(), key.len());
            if slot_bytes(true, w.page_size()) + cell_size(true, key, stored.payload()) <= most {
                return Ok(stored);
            }
        }
        Ok(Self::Reference(Reference::write(w, owner, value)?.encode()))
    }

    /// Frees the extent of a value that was not stored because its key holds a nested table.
    pub(crate) fn free_if_refused<W: PageWrite, T>(&self, w: &mut W, put: Result<T>) -> Result<T> {
        if let (Err(Error::IsTable { .. }), Self::Reference(bytes)) = (&put, self) {
            let reference = Reference::decode(bytes, w.page_size(), 0)?;
            w.free_extent(&reference.extent());
        }
        put
    }

    pub(crate) fn payload(&self) -> Payload<'_> {
        match self {
            Self::Inline(bytes) => Payload::inline(bytes),
            Self::Reference(bytes) => Payload {
                tag: tag::of(tag::REFERENCE, bytes.len()),
                bytes,
            },
        }
    }
}

/// Decodes the reference to the extent of a value; `None` for a value that is stored in the leaf.
pub(crate) fn reference(
    tag: u32,
    payload: &[u8],
    page_size: usize,
    leaf_at: u64,
) -> Result<Option<Reference>> {
    if tag::kind(tag) != tag::REFERENCE {
        return Ok(None);
    }
    Reference::decode(payload, page_size, leaf_at).map(Some)
}

/// A value in a snapshot: borrowed from its leaf, or read from its extent on demand.
#[derive(Clone)]
pub struct Value<'r>(ValueRepr<'r>);

#[derive(Clone)]
enum ValueRepr<'r> {
    Inline(PageSlice<'r>),
    Extent(&'r dyn PageRead, Reference),
}

impl<'r> Value<'r> {
    pub(crate) fn inline(page: PageRef<'r>, range: Range<usize>) -> Self {
        Self(ValueRepr::Inline(PageSlice::new(page, range)))
    }

    /// An inline value that consists of `range` of `slice`.
    pub(crate) fn part(slice: &PageSlice<'r>, range: Range<usize>) -> Self {
        let (page, range) = slice.within(range);
        Self::inline(page.clone(), range)
    }

    pub(crate) fn referenced(reader: &'r dyn PageRead, reference: Reference) -> Self {
        Self(ValueRepr::Extent(reader, reference))
    }

    /// Length of the value in bytes. Reads no page.
    #[must_use]
    pub fn len(&self) -> u64 {
        match &self.0 {
            ValueRepr::Inline(slice) => slice.len() as u64,
            ValueRepr::Extent(_, reference) => reference.len,
        }
    }

    /// True if the value has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of a value that is stored in the leaf, borrowed from there; `None` for a value in an extent.
    #[must_use]
    pub fn as_slice(&self) -> Option<&[u8]> {
        match &self.0 {
            ValueRepr::Inline(slice) => Some(slice),
            ValueRepr::Extent(..) => None,
        }
    }

    /// The bytes of the value: borrowed from the leaf, or read from the extent into memory.
    ///
    /// # Errors
    /// As for `to_vec`.
    pub fn bytes(&self) -> Result<Cow<'_, [u8]>> {
        match self.as_slice() {
            Some(bytes) => Ok(Cow::Borrowed(bytes)),
            None => self.to_vec().map(Cow::Owned),
        }
    }

    /// The bytes of a value that is stored in the leaf, borrowed from there; returns the `Value` itself if it lies in
    /// an extent.
    ///
    /// # Errors
    /// The `Value` itself, if it lies in an extent.
    #[inline]
    pub fn into_piece(self) -> std::result::Result<PageSlice<'r>, Self> {
        match self.0 {
            ValueRepr::Inline(slice) => Ok(slice),
            extent @ ValueRepr::Extent(..) => Err(Self(extent)),
        }
    }

    /// Verifies a value that lies in one piece in an extent, and returns the address of its first byte in the file, for
    /// callers that read parts of it by `PageRead::bytes`. `None` for any other value.
    ///
    /// # Errors
    /// As for `to_vec`.
    pub fn verified_place(&self) -> Result<Option<u64>> {
        match &self.0 {
            ValueRepr::Extent(reader, reference) if reference.has_one_chunk() => {
                if let Some(chunk) = reference.chunks(*reader).next() {
                    chunk?;
                }
                Ok(Some(reference.data_addr()))
            }
            ValueRepr::Extent(..) | ValueRepr::Inline(_) => Ok(None),
        }
    }

    /// Requests the beginning of a large value from the disk, for a caller that will read it soon. This is only a hint.
    pub fn request(&self) {
        if let ValueRepr::Extent(reader, reference) = &self.0 {
            reference.request(*reader);
        }
    }

    /// Copies the whole value into memory.
    ///
    /// # Errors
    /// `Corrupt` when a chunk does not match the reference; `Io`.
    pub fn to_vec(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(self.len().min(TRUSTED_BYTES_MAX) as usize);
        for slice in self.chunks() {
            bytes.extend_from_slice(&slice?);
        }
        Ok(bytes)
    }

    /// Iterates over the value in chunks of at most 64 KiB; a value stored in the leaf is one chunk.
    #[must_use]
    pub fn chunks(&self) -> Chunks<'r> {
        match &self.0 {
            ValueRepr::Inline(slice) => Chunks::of_inline(slice.clone()),
            ValueRepr::Extent(reader, reference) => reference.chunks(*reader),
        }
    }
}

impl std::fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            ValueRepr::Inline(slice) => f.debug_tuple("Inline").field(&&**slice).finish(),
            ValueRepr::Extent(_, reference) => f.debug_tuple("Extent").field(reference).finish(),
        }
    }
}
