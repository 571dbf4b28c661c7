//! The storage of a table: pages of its own, or inline in the row of its parent table.
//!
//! ```text
//! TableRepr::Pages     a tree, perhaps empty; its root is a row of its parent, or a root of the catalog
//! TableRepr::Inline    for reading: the bytes in the parent's leaf (InlineBytes), in one of the forms of inline_table
//!                      for changing: entries in memory (InlineTable), written back into the parent's row
//! ```
//!
//! The payload of a set with one value is that value (`sets/values.rs`); only sets with more values are tables.

use crate::error::unexpected;
use crate::inline::inline_table::{self, InlineTable};
use crate::page::layout::{Payload, tag};
use crate::page::overflow::PageSlice;
use crate::page::row_count;
use crate::table::tree::Tree;
use tidalite_pager::{PageRead, Result};

/// Where the rows of a table are stored; `I` holds the rows of an inline table.
#[derive(Clone, Debug)]
pub(crate) enum TableRepr<I> {
    Pages(Tree),
    Inline(I),
}

/// The bytes of an inline table, in the leaf of its parent table.
#[derive(Clone, Debug)]
pub(crate) struct InlineBytes<'r> {
    pub(crate) bytes: PageSlice<'r>,
    /// The id that the pages of this table's nested tables carry.
    pub(crate) id: u64,
    /// Address of the leaf in the file.
    pub(crate) at: u64,
}

/// Access to the rows of an inline table, stored as bytes or as a list of entries.
pub(crate) trait InlineRows {
    /// Number of rows.
    fn count(&self) -> u64;

    /// The next number of the table's sequence.
    fn sequence(&self) -> u64;

    /// True if the key exists.
    ///
    /// # Errors
    /// `Corrupt` for damaged bytes.
    fn has(&self, key: &[u8]) -> Result<bool>;
}

impl InlineRows for InlineBytes<'_> {
    fn count(&self) -> u64 {
        row_count::count(&self.bytes)
    }

    fn sequence(&self) -> u64 {
        inline_table::sequence(&self.bytes)
    }

    fn has(&self, key: &[u8]) -> Result<bool> {
        Ok(inline_table::find(&self.bytes, key, self.at)?.is_some())
    }
}

impl InlineRows for InlineTable {
    fn count(&self) -> u64 {
        self.entries.len() as u64
    }

    fn sequence(&self) -> u64 {
        self.sequence
    }

    fn has(&self, key: &[u8]) -> Result<bool> {
        Ok(self.place(key).is_ok())
    }
}

impl<I: InlineRows> TableRepr<I> {
    /// Decodes the nested table in a payload of the leaf at `leaf_at`; for an inline table, calls `inline` with the
    /// table's bytes.
    pub(crate) fn decode(
        payload: Payload<'_>,
        id: u64,
        page_size: usize,
        leaf_at: u64,
        inline: impl FnOnce() -> Result<I>,
    ) -> Result<Self> {
        match tag::kind(payload.tag) {
            tag::NESTED => inline().map(Self::Inline),
            tag::ROOT => {
                let tree = Tree::decode_nested_root(payload.bytes, id, page_size, leaf_at)?;
                debug_assert!(!tree.is_empty(), "an empty table is inline");
                Ok(Self::Pages(tree))
            }
            _ => Err(unexpected("a value", "a nested table")),
        }
    }

    /// The tree, if the table has pages of its own.
    pub(crate) fn tree(&self) -> Option<&Tree> {
        match self {
            Self::Pages(tree) => Some(tree),
            Self::Inline(_) => None,
        }
    }

    /// Number of rows. Reads no page.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Pages(tree) => tree.len(),
            Self::Inline(rows) => rows.count(),
        }
    }

    /// The next number of the table's sequence. Reads no page.
    pub(crate) fn sequence(&self) -> u64 {
        match self {
            Self::Pages(tree) => tree.sequence(),
            Self::Inline(rows) => rows.sequence(),
        }
    }

    /// True if the table has no rows and its sequence has not begun, like a table that was never created.
    pub(crate) fn is_unused(&self) -> bool {
        self.len() == 0 && self.sequence() == 0
    }

    /// True if the key exists.
    pub(crate) fn contains<R: PageRead>(&self, r: &R, key: &[u8]) -> Result<bool> {
        match self {
            Self::Pages(tree) => tree.contains(r, key),
            Self::Inline(rows) => rows.has(key),
        }
    }
}
