//! Stored forms of a key: whole, or, beyond a third of a page, its first bytes and a reference to the rest.
//!
//! ```text
//! plain     | key                                        |   up to `key_bytes_max`, a third of a page
//! spilled   | first bytes | reference to the rest (40 B) |   together as long as the longest plain key
//! ```
//!
//! The rest lies in an extent of its own, cut into chunks like a large value. The order of keys is exact: if the first
//! bytes of two keys are equal, their rests are read and compared. A separator of a branch that must be this long has
//! its own extent, too; the extent moves with the separator from page to page and is freed with it.
//!
//! A search for a plain key among plain keys never runs this code. Decoded as plain, a spilled cell looks like a cell
//! that is too long for its page; only then is its `SPILLED` bit tested.

use crate::error::damaged;
use crate::page::layout::{REFERENCE_BYTES, key_bytes_max};
use crate::page::overflow::Reference;
use tidalite_pager::{Error, PageRead, PageWrite, Result};

/// Maximum length in bytes of a key.
pub const KEY_BYTES_MAX: usize = 16 << 20;

/// Minimum length in bytes of the part of a spilled (long) key's suffix that lies in its page; the page's prefix is
/// kept short enough for it. With four bytes the head, which sorts the entries, is exact.
const SUFFIX_BYTES_MIN: usize = 4;

/// Number of bytes of a spilled (long) key that lie in the page.
pub(crate) const fn inline_bytes(page_size: usize) -> usize {
    key_bytes_max(page_size) - REFERENCE_BYTES
}

/// Maximum length in bytes of a page's prefix, so that any page can take a spilled (long) key.
pub(crate) const fn prefix_bytes_max(page_size: usize) -> usize {
    inline_bytes(page_size) - SUFFIX_BYTES_MIN
}

/// For a key of this length: the number of key bytes in its cell, and the number of bytes of the reference to the rest.
pub(crate) const fn stored_bytes(page_size: usize, key_len: usize) -> (usize, usize) {
    if key_len <= key_bytes_max(page_size) {
        (key_len, 0)
    } else {
        (inline_bytes(page_size), REFERENCE_BYTES)
    }
}

/// The reference to the rest of a spilled key: the bytes of a long key that do not lie in the page.
pub(crate) type Rest = [u8; REFERENCE_BYTES];

/// A key in its stored form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key<'a> {
    /// The whole key, or its first bytes.
    pub(crate) inline: &'a [u8],
    /// The reference to the bytes outside the page; empty if the key is stored whole.
    pub(crate) rest: &'a [u8],
}

impl<'a> Key<'a> {
    pub(crate) const fn plain(inline: &'a [u8]) -> Self {
        Self { inline, rest: &[] }
    }

    /// The stored form of a key; `rest` is the reference to its remaining bytes if it is too long for a page.
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

/// A key in its stored form, like [`Key`], but with its own copy of the bytes.
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

    /// Converts a key to its stored form: writes the remaining bytes to an extent if the key is too long for a page.
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

/// Checks a key's length, before a transaction changes anything.
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

/// Writes the remaining bytes of a key that is too long for a page to an extent, and returns the reference to them;
/// `None` for a key that is stored whole.
#[inline]
pub(crate) fn spill<W: PageWrite>(w: &mut W, owner: u64, key: &[u8]) -> Result<Option<Rest>> {
    if key.len() <= key_bytes_max(w.page_size()) {
        return Ok(None);
    }
    let rest = &key[inline_bytes(w.page_size())..];
    debug_assert!(key.len() <= KEY_BYTES_MAX, "the length was checked");
    Ok(Some(Reference::write(w, owner, rest)?.encode()))
}

/// Decodes the reference to the extent of a key that is too long for its page.
#[cold]
pub(crate) fn reference(rest: &[u8], page_size: usize, at: u64) -> Result<Reference> {
    let found = Reference::decode(rest, page_size, at)?;
    let most = (KEY_BYTES_MAX - inline_bytes(page_size)) as u64;
    if found.bytes() > most {
        return Err(damaged("rest of a table's key", at, found.bytes(), most));
    }
    Ok(found)
}

/// Reads the remaining bytes of a long key from their extent and appends them to `key`.
#[cold]
pub(crate) fn read_rest(r: &dyn PageRead, rest: &[u8], at: u64, key: &mut Vec<u8>) -> Result<()> {
    let found = reference(rest, r.page_size(), at)?;
    for slice in found.chunks(r) {
        key.extend_from_slice(&slice?);
    }
    Ok(())
}

/// Frees the extent with the remaining bytes of a long key; does nothing for a key that is stored whole.
pub(crate) fn free_rest<W: PageWrite>(w: &mut W, rest: &[u8], at: u64) -> Result<()> {
    if !rest.is_empty() {
        let found = reference(rest, w.page_size(), at)?;
        w.free_extent(&found.extent());
    }
    Ok(())
}
