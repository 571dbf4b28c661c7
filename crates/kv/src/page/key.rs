//! Keys as pages store them: whole, or, beyond a third of a page, their beginning and a reference to the rest.
//!
//! ```text
//! plain     | key                                        |   up to `key_bytes_max`, a third of a page
//! spilled   | first bytes | reference to the rest (40 B) |   together as long as the longest plain key
//! ```
//!
//! The rest lies in an extent of its own, cut into chunks like a large value. Its order is exact: where the first bytes
//! decide nothing, the rest is read. A separator of a branch that must be so long has an extent of its own, too; it goes
//! with the separator from page to page and is freed when the separator is given up.
//!
//! Who looks for plain keys among plain keys never comes here: a spilled cell looks like one that is too long for its
//! page, and only then is it asked whether it is spilled.

use crate::error::damaged;
use crate::page::layout::{REFERENCE_BYTES, key_bytes_max};
use crate::page::overflow::Reference;
use tidalite_pager::{Error, PageRead, PageWrite, Result};

/// Bytes of a key at most.
pub const KEY_BYTES_MAX: usize = 16 << 20;

/// Bytes of a suffix that a page's prefix leaves of a spilled key at least: those of a head, which is then exact.
const SUFFIX_BYTES_MIN: usize = 4;

/// Bytes of a spilled key that lie in the page.
pub(crate) const fn inline_bytes(page_size: usize) -> usize {
    key_bytes_max(page_size) - REFERENCE_BYTES
}

/// Bytes of a page's prefix at most, so that a spilled key may come into any page.
pub(crate) const fn prefix_bytes_max(page_size: usize) -> usize {
    inline_bytes(page_size) - SUFFIX_BYTES_MIN
}

/// Bytes of a key of this length in a cell: those of it, and those of its reference.
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

    /// The stored form of a key whose rest was written.
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

/// The same, owned.
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

    /// Stores a key: writes its rest where it is too long.
    pub(crate) fn store<W: PageWrite>(w: &mut W, owner: u64, mut key: Vec<u8>) -> Result<Self> {
        let Some(rest) = spill(w, owner, &key)? else {
            return Ok(Self::plain(key));
        };
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

/// Writes the rest of a key that is too long for a page; `None` for a plain one.
#[inline]
pub(crate) fn spill<W: PageWrite>(w: &mut W, owner: u64, key: &[u8]) -> Result<Option<Rest>> {
    if key.len() <= key_bytes_max(w.page_size()) {
        return Ok(None);
    }
    let rest = &key[inline_bytes(w.page_size())..];
    Ok(Some(Reference::write(w, owner, rest)?.encode()))
}

/// The extent of a spilled key.
#[cold]
pub(crate) fn reference(rest: &[u8], page_size: usize, at: u64) -> Result<Reference> {
    let found = Reference::decode(rest, page_size, at)?;
    let most = (KEY_BYTES_MAX - inline_bytes(page_size)) as u64;
    if found.bytes() > most {
        return Err(damaged("rest of a table's key", at, found.bytes(), most));
    }
    Ok(found)
}

/// Reads the rest of a key and adds it to `key`.
#[cold]
pub(crate) fn read_rest(r: &dyn PageRead, rest: &[u8], at: u64, key: &mut Vec<u8>) -> Result<()> {
    let found = reference(rest, r.page_size(), at)?;
    for piece in found.chunks(r) {
        key.extend_from_slice(&piece?);
    }
    Ok(())
}

/// Frees the rest of a key; nothing to do for a plain one.
pub(crate) fn free_rest<W: PageWrite>(w: &mut W, rest: &[u8], at: u64) -> Result<()> {
    if !rest.is_empty() {
        let found = reference(rest, w.page_size(), at)?;
        w.free_extent(&found.extent());
    }
    Ok(())
}
