//! A get with a cached descent path: if the pages on the path are unchanged, the result of the get is unchanged, too.
//!
//! A committed page never changes, and a pointer to it carries the checksum of its bytes, which include the pointers
//! and checksums of its children. So if a pointer on the descent for a key equals the pointer in the cached path, the
//! rest of the path and the result are unchanged.
//!
//! 1. A path holds the pointers from the root to the leaf for one key, the leaf's pointer last.
//! 2. A page that may still change is represented by the null pointer, which equals no page's pointer. The root of an
//!    empty table is null as well, so a lookup in an empty table stores no path.

use crate::error::key_holds_table;
use crate::page::node::Node;
use crate::page::prefetch::{HEADS_AHEAD_BYTES, slots_ahead};
use crate::table::tree::Tree;
use crate::value::Value;
use tidalite_base::TxnId;
use tidalite_pager::{PageRead, Ptr, Result};

/// The pointers to the pages on the descent path of an earlier lookup of a key. Initially empty.
#[derive(Clone, Debug, Default)]
pub struct CachedPath(Vec<Ptr>);

impl CachedPath {
    /// True if the cached path is still valid from this root on. Reads no page.
    #[inline]
    #[must_use]
    pub fn begins_at(&self, tree: &Tree, before: TxnId) -> bool {
        let root = &tree.root;
        !root.is_null() && self.0.first() == Some(root) && root.birth <= before
    }
}

/// Result of a lookup with a cached path.
pub enum CachedLookup<'r> {
    /// From some page on, the descent path equals the cached path, so the result of the earlier lookup is still valid.
    Unchanged,
    /// The cached path was out of date; contains the result of a full lookup.
    Found(Option<Value<'r>>),
}

impl Tree {
    /// As [`get`](Self::get), with the path of an earlier lookup of the same key; also returns the new path. Pages
    /// written by transactions after `before` may still change and are not stored in the path.
    ///
    /// # Errors
    /// As for `get`; `IsTable` if the key holds a nested table.
    ///
    /// # Cost
    /// One page for each level above the first unchanged page; if there is no unchanged page, as `get`.
    pub fn get_cached<'r, R: PageRead>(
        &self,
        r: &'r R,
        key: &[u8],
        before: TxnId,
        known: &CachedPath,
    ) -> Result<(CachedLookup<'r>, CachedPath)> {
        let mut path = CachedPath::default();
        if self.root.is_null() {
            return Ok((CachedLookup::Found(None), path));
        }
        let (mut ptr, mut ahead) = (self.root, HEADS_AHEAD_BYTES);
        for level in (0..self.height).rev() {
            let kept = ptr.birth <= before;
            let from = known.0.len().checked_sub(usize::from(level) + 1);
            if let Some(from) = from.filter(|from| kept && known.0[*from] == ptr) {
                path.0.extend_from_slice(&known.0[from..]);
                debug_assert!(
                    path.0.len() == usize::from(self.height),
                    "a pointer per level"
                );
                return Ok((CachedLookup::Unchanged, path));
            }
            path.0.push(if kept { ptr } else { Ptr::NULL });
            if level > 0 {
                let page = r.page(&ptr)?;
                let node = Node::open(&page, level, ptr.addr)?;
                let (child, rows) = node.child(node.find_child(r, key)?)?;
                (ptr, ahead) = (child, slots_ahead(level, rows));
            }
        }
        debug_assert!(
            path.0.len() == usize::from(self.height),
            "a pointer per level"
        );
        Ok((
            CachedLookup::Found(Self::value_in(r, (&ptr, ahead), key, key_holds_table)?),
            path,
        ))
    }
}
