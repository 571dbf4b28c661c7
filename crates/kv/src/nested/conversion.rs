//! The two forms of a nested table, inline and in pages: when and how a table changes from one form to the other.
//!
//! An inline table moves to pages when it takes more than a quarter of a page (or when it would make its row too
//! large), and back when it takes at most an eighth. So tables of a few rows cost a few bytes each, and a table near
//! the threshold does not move with every change.

use crate::inline::inline_table::{InlineEntry, InlineTable};
use crate::page::layout::{Payload, cell_bytes_max, cell_size, slot_bytes, tag};
use crate::page::node::Node;
use crate::page::{edit, key};
use crate::table::free::OldPayload;
use crate::table::tree::{HAS_REFERENCES, Tree};
use tidalite_pager::{PageRead, PageWrite, Result};

/// Maximum size of an inline table: 1/`INLINE_DIV` of a page.
const INLINE_DIV: usize = 4;

/// Maximum size at which a table in one leaf becomes inline again: 1/`SHRINK_DIV` of a page.
const SHRINK_DIV: usize = 8;

/// True if an inline table with these bytes is small enough, both by itself and in the row of a key of this length.
pub(crate) fn fits_row(page_size: usize, key_len: usize, inline: &[u8]) -> bool {
    let payload = Payload {
        tag: tag::of(tag::NESTED, inline.len()),
        bytes: inline,
    };
    let key = key::stored_bytes(page_size, key_len);
    let row = slot_bytes(true, page_size) + cell_size(true, key, payload);
    inline.len() <= inline_bytes_max(page_size) && row <= cell_bytes_max(page_size)
}

/// Maximum length in bytes of an inline table.
pub(crate) const fn inline_bytes_max(page_size: usize) -> usize {
    page_size / INLINE_DIV
}

/// The payload of the row that holds a nested table with pages: the table's root. For an empty table, the payload of an
/// empty inline table.
pub(crate) fn root_payload(tree: &Tree) -> (u32, Vec<u8>) {
    if tree.is_empty() {
        let none = InlineTable {
            sequence: tree.sequence,
            ..InlineTable::default()
        };
        let bytes = none.encode();
        return (tag::of(tag::NESTED, bytes.len()), bytes);
    }
    let bytes = tree.encode_nested_root();
    (tag::of(tag::ROOT, bytes.len()), bytes)
}

/// Writes the rows of an inline table to new pages, and returns the resulting tree.
pub(crate) fn to_pages<W: PageWrite>(w: &mut W, id: u64, inline: &InlineTable) -> Result<Tree> {
    let mut tree = Tree {
        sequence: inline.sequence,
        ..Tree::new_inner(id)
    };
    for entry in &inline.entries {
        tree.put_payload(w, &entry.key, entry.payload(), OldPayload::Keep)?;
    }
    Ok(tree)
}

/// If a table in pages has become small enough, returns its rows for an inline table, and frees its page. `None` if the
/// table stays in its pages.
pub(crate) fn shrink_to_inline<W: PageWrite>(
    w: &mut W,
    tree: &Tree,
) -> Result<Option<InlineTable>> {
    if tree.height != 1 {
        return Ok(None);
    }
    let page = w.page(&tree.root)?.to_vec();
    let (_, live) = edit::fill(&page, 0, tree.root.addr)?;
    if live > w.page_size() / SHRINK_DIV {
        return Ok(None);
    }
    let node = Node::open(&page, 0, tree.root.addr)?;
    if tree.flags & HAS_REFERENCES != 0 && !node.rests()?.is_empty() {
        return Ok(None);
    }
    let mut inline = InlineTable {
        sequence: tree.sequence,
        ..InlineTable::default()
    };
    for index in 0..node.count() {
        let cell = node.cell(index)?;
        inline.entries.push(InlineEntry {
            key: node.key(w, index)?,
            tag: cell.tag,
            payload: cell.payload.to_vec(),
        });
    }
    w.free_page(&tree.root);
    Ok(Some(inline))
}

impl Tree {
    /// The payload stored under a key, copied from its leaf; `None` if the key does not exist.
    pub(crate) fn find_payload<R: PageRead>(
        &self,
        r: &R,
        key: &[u8],
    ) -> Result<Option<InlineEntry>> {
        let row = self.find_row(r, key)?;
        Ok(row.map(|row| InlineEntry {
            key: key.to_vec(),
            tag: row.tag,
            payload: row.page[row.range].to_vec(),
        }))
    }
}
