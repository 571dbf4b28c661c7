//! A get that remembers its way: while the pages on it are the same, so is what it found.
//!
//! A page that a commit has left never changes, and a pointer to it carries the checksum of its bytes, among them the pointers and checksums of
//! its children. So a pointer that leads towards a key and equals one of the way that was gone for it before leads to the same answer.
//!
//! 1. A way holds the pointers towards one key from the root to the leaf, the last one the leaf's.
//! 2. In place of a page that may still change there is the null pointer, which no page has. The root of an empty table is null as well: no
//!    way begins there.

use crate::error::holds_a_table;
use crate::page::node::Node;
use crate::page::prefetch::{HEADS_AHEAD_BYTES, slots_ahead};
use crate::table::tree::Tree;
use crate::value::Value;
use tidalite_base::TxnId;
use tidalite_pager::{PageRead, Ptr, Result};

/// The pointers towards a key, as they were when it was looked for. Empty to begin with.
#[derive(Clone, Debug, Default)]
pub struct Way(Vec<Ptr>);

impl Way {
    /// Whether the way is known to lead to what it did from this root on. Reads nothing.
    #[inline]
    #[must_use]
    pub fn begins_at(&self, tree: &Tree, before: TxnId) -> bool {
        let root = &tree.root;
        !root.is_null() && self.0.first() == Some(root) && root.birth <= before
    }
}

/// What going a way again has brought.
pub enum Again<'r> {
    /// The pages from some branch on are those of the way before, and so is the answer.
    Same,
    /// It was looked for.
    Found(Option<Value<'r>>),
}

impl Tree {
    /// As [`get`](Self::get), where the way of an earlier search for the same key is known; gives the way of this one. Pages
    /// born after `before` may still change: they are not remembered.
    ///
    /// # Errors
    /// As for `get`; `IsTable` where a nested table is.
    ///
    /// # Cost
    /// One page for each level above the first page that has not changed since, else as `get`.
    pub fn get_again<'r, R: PageRead>(
        &self,
        r: &'r R,
        key: &[u8],
        before: TxnId,
        known: &Way,
    ) -> Result<(Again<'r>, Way)> {
        let mut way = Way::default();
        if self.root.is_null() {
            return Ok((Again::Found(None), way));
        }
        let (mut ptr, mut ahead) = (self.root, HEADS_AHEAD_BYTES);
        for level in (0..self.height).rev() {
            let kept = ptr.birth <= before;
            let from = known.0.len().checked_sub(usize::from(level) + 1);
            if let Some(from) = from.filter(|from| kept && known.0[*from] == ptr) {
                way.0.extend_from_slice(&known.0[from..]);
                return Ok((Again::Same, way));
            }
            way.0.push(if kept { ptr } else { Ptr::NULL });
            if level > 0 {
                let page = r.page(&ptr)?;
                let node = Node::open(&page, level, ptr.addr)?;
                let (child, rows) = node.child(node.find_child(r, key)?)?;
                (ptr, ahead) = (child, slots_ahead(level, rows));
            }
        }
        Ok((
            Again::Found(Self::value_in(r, (&ptr, ahead), key, holds_a_table)?),
            way,
        ))
    }
}
