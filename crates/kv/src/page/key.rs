//! Stored forms of a key: whole, or, beyond a third of a page, its first bytes and a reference to the rest.
//!
//! ```text
//! plain     | key                                        |   up to `key_bytes_max`, a third of a page
//! spilled   | first bytes | reference to the rest (40 B) |   together as long as the longest plain key
//! ```
//!
//! The rest lies in an extent of its own, cut into chunks like a large value. The order of keys is exact: if the first
//! bytes are equal, the rest is read. A separator of a branch that must be this long has its own extent, too; the
//! extent moves with the separator from page to page and is freed with it.
//!
//! A search for a plain key among plain keys never runs this code. Decoded as plain, a spilled cell looks like a cell
//! that is too long for its page; only then is its `SPILLED` bit tested.

use crate::error::damaged;
use crate::page::layout::{REFERENCE_BYTES, key_bytes_max};
use crate::page::overflow::Reference;
use tidalite_pager::{Error, PageRead, PageWrite, Result};

/// Maximum number of bytes of a key.
pub const KEY_BYTES_MAX: usize = 16 << 20;

/// Minimum length of the suffix of a spilled key in its page; the page's prefix is kept short enough for it. With four
/// bytes the head is exact.
const SUFFIX_BYTES_MIN: usize = 4;

/// Bytes of a spilled key that lie in the page.
pub(crate) const fn inline_bytes(page_size: usize) -> usize {
    key_bytes_max(page_size) - REFERENCE_BYTES
}

/// Maximum length of a page's prefix, so that any page can take a spilled key.
pub(crate) const fn prefix_bytes_max(page_size: usize) -> usize {
    inline_bytes(page_size) - SUFFIX_BYTES_MIN
}

/// Bytes of the key and bytes of the reference in a cell, for a key of this length.
pub(crate) const fn stored_bytes(page_size: usize, key_len: usize) -> (usize, usize) {
    if key_len <= key_bytes_max(page_size) {
        (key_len, 0)
    } else {
        (inline_bytes(page_size), REFERENCE_BYTES)
    }
}

/// The reference to the rest of a spilled key.
pub(crate) type Rest = [u8; REFERENCE_BYTES];

/// A key in its stored form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key<'a> {
    /// The whole key, or its first bytes.
    pub(crate) inline: &'a [u8],
    /// The reference to the rest; empty for a plain key.
    pub(crate) rest: &'a [u8],
}

impl<'a> Key<'a> {
    pub(crate) const fn plain(inline: &'a [u8]) -> Self {
        Self { inline, rest: &[] }
    }

    /// The stored form of a key; `rest` is the reference to its rest if it is spilled.
    pub(crate) fn of(key: &'a [u8], rest: Option<&'a Rest>, page_size: usize) -> Self {
        match rest {
            None => Self::plain(key),
            Some(rest) => Self {
                inline: &key[..inline_bytes(page_size)],
                rest,
            },
        }
    }
}

/// An owned [`Key`].
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyBuf {
    pub(crate) inline: Vec<u8>,
    pub(crate) rest: Vec<u8>,
}

impl KeyBuf {
    pub(crate) fn plain(inline: Vec<u8>) -> Self {
        Self {
            inline,
            rest: Vec::new(),
        }
    }

    pub(crate) fn key(&self) -> Key<'_> {
        Key {
            inline: &self.inline,
            rest: &self.rest,
        }
    }

    /// Makes the stored form of a key: writes the rest to an extent if the key is too long.
    pub(crate) fn store<W: PageWrite>(w: &mut W, owner: u64, mut key: Vec<u8>) -> Result<Self> {
        let Some(rest) = spill(w, owner, &key)? else {
            return Ok(Self::plain(key));
        };
        debug_assert!(
            key.len() > key_bytes_max(w.page_size()),
            "only long keys spill"
        );
        key.truncate(inline_bytes(w.page_size()));
        Ok(Self {
            inline: key,
            rest: rest.to_vec(),
        })
    }
}

/// Checks a key's length before anything is changed.
pub(crate) fn check_len(key: &[u8]) -> Result<()> {
    if key.len() > KEY_BYTES_MAX {
        return Err(Error::Limit {
            what: "bytes of a table's key",
            found: key.len() as u64,
            limit: KEY_BYTES_MAX as u64,
        });
    }
    Ok(())
}

/// Writes the rest of a key that is too long for a page; `None` for a plain key.
#[inline]
pub(crate) fn spill<W: PageWrite>(w: &mut W, owner: u64, key: &[u8]) -> Result<Option<Rest>> {
    if key.len() <= key_bytes_max(w.page_size()) {
        return Ok(None);
    }
    let rest = &key[inline_bytes(w.page_size())..];
    debug_assert!(key.len() <= KEY_BYTES_MAX, "the length was checked");
    Ok(Some(Reference::write(w, owner, rest)?.encode()))
}

/// Decodes the reference of a spilled key.
#[cold]
pub(crate) fn reference(rest: &[u8], page_size: usize, at: u64) -> Result<Reference> {
    let found = Reference::decode(rest, page_size, at)?;
    let most = (KEY_BYTES_MAX - inline_bytes(page_size)) as u64;
    if found.bytes() > most {
        return Err(damaged("rest of a table's key", at, found.bytes(), most));
    }
    Ok(found)
}

/// Reads the rest of a key and appends it to `key`.
#[cold]
pub(crate) fn read_rest(r: &dyn PageRead, rest: &[u8], at: u64, key: &mut Vec<u8>) -> Result<()> {
    let found = reference(rest, r.page_size(), at)?;
    for slice in found.chunks(r) {
        key.extend_from_slice(&slice?);
    }
    Ok(())
}

/// Frees the rest of a key; does nothing for a plain key.
pub(crate) fn free_rest<W: PageWrite>(w: &mut W, rest: &[u8], at: u64) -> Result<()> {
    if !rest.is_empty() {
        let found = reference(rest, w.page_size(), at)?;
        w.free_extent(&found.extent());
    }
    Ok(())
}
