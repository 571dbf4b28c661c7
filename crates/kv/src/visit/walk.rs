//! Walks over a table's pages by their pointers. A visitor decides from pointer, level and keys whether to descend
//! further, and a damaged page costs only the rows below it. Used to compare two versions of a table (by the
//! transactions that wrote their pages) and to salvage a damaged table.

use crate::error::damaged;
use crate::inline::inline_table;
use crate::page::key;
use crate::page::layout::{FLAGS_AT, INNER_PAGE, SETS, tag};
use crate::page::node::Node;
use crate::table::tree::{DEPTH_MAX, HAS_REFERENCES, INNER, MULTI, Tree};
use crate::value;
use std::collections::HashSet;
use tidalite_base::{Corrupt, TxnId};
use tidalite_pager::{Error, Extent, Header, Kind, PageRead, Ptr, Result};

/// A page of a table, before it is read.
#[derive(Clone, Copy, Debug)]
pub struct VisitedPage<'k> {
    /// The pointer to the page, with its address and birth.
    pub ptr: Ptr,
    /// Level of the page in the tree; 0 for a leaf.
    pub level: u8,
    /// Number of rows in or below the page.
    pub rows: u64,
    /// Lower bound of all keys in or below the page, inclusive.
    pub from: &'k [u8],
    /// Upper bound of all keys in or below the page, exclusive; `None` if there is no bound.
    pub to: Option<&'k [u8]>,
    /// The keys under which the page's table is nested, the outermost first; empty for the outermost table itself.
    pub path: &'k [Vec<u8>],
}

/// Callback that receives ranges of keys: the first key of the range, and the first key after the range (`None`: the
/// range has no end).
pub type OnRange<'f> = dyn FnMut(&[u8], Option<&[u8]>) -> Result<()> + 'f;

/// Receives the pages, values and damage that a walk meets.
pub trait PageVisitor {
    /// Called for a page that was reached but is not read yet. Returns true to read the page and everything below it.
    ///
    /// # Errors
    /// An error ends the walk.
    fn enter(&mut self, page: &VisitedPage<'_>) -> Result<bool>;

    /// Called for a value with an extent of its own, in a leaf that was entered. `path` holds the keys that lead to the
    /// value; the last one is the key of the value.
    ///
    /// # Errors
    /// An error ends the walk.
    fn large_value(&mut self, path: &[Vec<u8>], extent: &Extent) -> Result<()> {
        let _ = (path, extent);
        Ok(())
    }

    /// Called for an extent with the remaining bytes of a long key, or of a long separator in a branch.
    ///
    /// # Errors
    /// An error ends the walk.
    fn long_key(&mut self, extent: &Extent) -> Result<()> {
        let _ = extent;
        Ok(())
    }

    /// Called for an entered page that is damaged: everything below the page is skipped.
    ///
    /// # Errors
    /// An error ends the walk.
    fn damaged(&mut self, page: &VisitedPage<'_>, corrupt: Corrupt) -> Result<()>;
}

impl Tree {
    /// Walks over the pages of the table and of its nested tables, top-down, in the order of keys.
    ///
    /// # Errors
    /// `Io`, and errors of the visitor.
    ///
    /// # Cost
    /// Reads the pages for which the visitor's `enter` returned true.
    pub fn walk<R: PageRead>(&self, r: &R, visitor: &mut dyn PageVisitor) -> Result<()> {
        let Some(level) = self.height.checked_sub(1) else {
            return Ok(());
        };
        let mut walker = Walker {
            r,
            id: self.id,
            visitor,
            path: Vec::new(),
            seen: HashSet::new(),
        };
        walker.below(&self.root, (level, self.rows), (&[], None))
    }

    /// Calls `f` with each leaf that was written after transaction `since`, in key order; each leaf is passed as a
    /// table of its own.
    ///
    /// # Errors
    /// `Corrupt`, `Io`, and errors of `f`.
    ///
    /// # Cost
    /// Reads the branches and leaves written after `since`.
    pub fn leaves_since<R: PageRead>(
        &self,
        r: &R,
        since: TxnId,
        f: &mut dyn FnMut(&Self) -> Result<()>,
    ) -> Result<()> {
        let mut leaves = LeavesSince { r, since, f };
        self.walk(r, &mut leaves)
    }

    /// Reads a single leaf as a table of its own. Used to salvage leaves below a lost branch.
    ///
    /// # Errors
    /// `Corrupt` if the pointer does not lead to a leaf of a table; `Io`.
    pub fn of_leaf<R: PageRead>(r: &R, ptr: &Ptr) -> Result<Self> {
        if ptr.kind != Kind::KvLeaf {
            let found = format!("a pointer to {:?}", ptr.kind);
            return Err(damaged("table leaf", ptr.addr, found, "a leaf"));
        }
        let page = r.page(ptr)?;
        let node = Node::open(&page, 0, ptr.addr)?;
        for index in 0..node.count() {
            node.cell(index)?;
        }
        let said = page[FLAGS_AT];
        let flag = |of_page: u8, of_tree: u8| if said & of_page != 0 { of_tree } else { 0 };
        let tree = Self {
            root: *ptr,
            height: 1,
            flags: HAS_REFERENCES | flag(INNER_PAGE, INNER) | flag(SETS, MULTI),
            ..Self::new(Header::decode(&page).owner)
        };
        let rows = tree.leaf_rows(&node, 0..node.count())?;
        Ok(Self { rows, ..tree })
    }
}

/// Visitor that passes the leaves written after transaction `since` to `f`, and skips their contents.
struct LeavesSince<'a, R> {
    r: &'a R,
    since: TxnId,
    f: &'a mut dyn FnMut(&Tree) -> Result<()>,
}

impl<R: PageRead> PageVisitor for LeavesSince<'_, R> {
    fn enter(&mut self, page: &VisitedPage<'_>) -> Result<bool> {
        if page.ptr.birth <= self.since {
            return Ok(false);
        }
        if page.level > 0 {
            return Ok(true);
        }
        (self.f)(&Tree::of_leaf(self.r, &page.ptr)?)?;
        Ok(false)
    }

    fn damaged(&mut self, _: &VisitedPage<'_>, corrupt: Corrupt) -> Result<()> {
        Err(corrupt.into())
    }
}

/// A reference in a leaf to a value in an extent, or to a nested table.
enum LeafReference {
    Value(Vec<u8>, Extent),
    /// A nested table, with its key and its payload.
    Table(Vec<u8>, (u32, Vec<u8>)),
}

/// State of a walk over a table and its nested tables.
struct Walker<'a, R> {
    r: &'a R,
    id: u64,
    visitor: &'a mut dyn PageVisitor,
    /// Keys that lead from the outermost table to the current nested table.
    path: Vec<Vec<u8>>,
    /// Roots of nested tables that were visited, because a hostile file may refer to one twice.
    seen: HashSet<u64>,
}

impl<R: PageRead> Walker<'_, R> {
    /// Walks over a page and everything below it. The recursion depth is the height of the tree plus the heights of
    /// nested tables.
    fn below(
        &mut self,
        ptr: &Ptr,
        (level, rows): (u8, u64),
        (from, to): (&[u8], Option<&[u8]>),
    ) -> Result<()> {
        let at = VisitedPage {
            ptr: *ptr,
            level,
            rows,
            from,
            to,
            path: &self.path,
        };
        if !self.visitor.enter(&at)? {
            return Ok(());
        }
        let parts = self.r.page(ptr).and_then(|page| {
            let node = Node::open(&page, level, ptr.addr)?;
            let rests = node.rests()?.into_iter();
            let rests = rests.map(|rest| key::reference(&rest, page.len(), ptr.addr));
            let rests: Vec<_> = rests.collect::<Result<_>>()?;
            Ok(if level == 0 {
                (rests, leaf_references(self.r, &node)?, Vec::new())
            } else {
                (rests, Vec::new(), children(self.r, &node, from, to)?)
            })
        });
        let (rests, leaf_references, children) = match parts {
            Ok(parts) => parts,
            Err(Error::Corrupt(corrupt)) => return self.visitor.damaged(&at, corrupt),
            Err(error) => return Err(error),
        };
        for rest in rests {
            self.visitor.long_key(&rest.extent())?;
        }
        for entry in leaf_references {
            let (key, below) = match entry {
                LeafReference::Value(key, extent) => (key, Err(extent)),
                LeafReference::Table(key, payload) => (key, Ok(payload)),
            };
            self.path.push(key);
            let done = match below {
                Err(extent) => self.visitor.large_value(&self.path, &extent),
                Ok((tag, payload)) => self.table(tag, &payload, ptr),
            };
            match done {
                Err(Error::Corrupt(corrupt)) => {
                    let key = self.path.pop().unwrap_or_default();
                    let next = [&key[..], &[0]].concat();
                    let at = VisitedPage {
                        ptr: *ptr,
                        level,
                        rows,
                        from: &key,
                        to: Some(&next),
                        path: &self.path,
                    };
                    self.visitor.damaged(&at, corrupt)?;
                }
                done => {
                    self.path.pop();
                    done?;
                }
            }
        }
        for (index, (key, child, rows)) in children.iter().enumerate() {
            let from = if index == 0 { from } else { key };
            let to = children.get(index + 1).map(|next| &next.0[..]).or(to);
            self.below(child, (level - 1, *rows), (from, to))?;
        }
        Ok(())
    }

    /// Walks over a nested table that has pages; searches an inline table for references.
    fn table(&mut self, tag: u32, payload: &[u8], leaf: &Ptr) -> Result<()> {
        if self.path.len() > DEPTH_MAX {
            return Err(damaged(
                "nested table",
                leaf.addr,
                self.path.len(),
                DEPTH_MAX,
            ));
        }
        debug_assert!(!self.path.is_empty(), "a nested table has a key");
        if tag::kind(tag) == tag::ROOT {
            let tree = Tree::decode_nested_root(payload, self.id, self.r.page_size(), leaf.addr)?;
            if !self.seen.insert(tree.root.addr) {
                let found = "a root that was visited before";
                return Err(damaged("nested table", leaf.addr, found, "each once"));
            }
            return self.below(&tree.root, (tree.height - 1, tree.rows), (&[], None));
        }
        for cell in inline_table::cells(payload, leaf.addr)? {
            let cell = cell?;
            if tag::kind(cell.tag) == tag::INLINE {
                continue;
            }
            self.path.push(cell.key.to_vec());
            let page_size = self.r.page_size();
            let done = match value::reference(cell.tag, cell.payload, page_size, leaf.addr) {
                Ok(Some(found)) => self.visitor.large_value(&self.path, &found.extent()),
                Ok(None) => self.table(cell.tag, cell.payload, leaf),
                Err(error) => Err(error),
            };
            self.path.pop();
            done?;
        }
        Ok(())
    }
}

fn leaf_references<R: PageRead>(r: &R, node: &Node<'_>) -> Result<Vec<LeafReference>> {
    let mut found = Vec::new();
    for index in 0..node.count() {
        let cell = node.cell(index)?;
        if tag::kind(cell.tag) == tag::INLINE {
            continue;
        }
        let reference = value::reference(cell.tag, cell.payload, r.page_size(), node.at())?;
        found.push(match reference {
            Some(reference) => LeafReference::Value(node.key(r, index)?, reference.extent()),
            None => LeafReference::Table(node.key(r, index)?, (cell.tag, cell.payload.to_vec())),
        });
    }
    Ok(found)
}

/// The children of a branch, each with key, pointer and row count. Separators must ascend inside the parent's bounds,
/// so that even in a hostile file no page with more than one child is walked twice.
fn children<R: PageRead>(
    r: &R,
    node: &Node<'_>,
    from: &[u8],
    to: Option<&[u8]>,
) -> Result<Vec<(Vec<u8>, Ptr, u64)>> {
    let mut found: Vec<(Vec<u8>, Ptr, u64)> = Vec::with_capacity(node.count());
    for index in 0..node.count() {
        let (ptr, rows) = node.child(index)?;
        let key = node.key(r, index)?;
        let after = if index == 1 {
            from
        } else {
            found.last().map_or(&[][..], |last| &last.0)
        };
        let inside = key.as_slice() > after && to.is_none_or(|to| key.as_slice() < to);
        if index > 0 && !inside {
            let what = format!("entry {index}");
            let expected = "keys that ascend inside their parent's separators";
            return Err(damaged("order of a table page", node.at(), what, expected));
        }
        found.push((key, ptr, rows));
    }
    Ok(found)
}

/// A page of one of the two compared versions that is still to be compared.
#[derive(Clone, Debug)]
struct PendingPage {
    ptr: Ptr,
    level: u8,
    from: Vec<u8>,
    to: Option<Vec<u8>>,
}

impl PendingPage {
    /// True if all keys of this page are below all keys of `other`.
    fn before(&self, other: &Self) -> bool {
        self.to.as_ref().is_some_and(|to| *to <= other.from)
    }

    /// True if the upper bound of this page's keys is at or below the bound of `other`.
    fn ends_first(&self, other: &Self) -> bool {
        match (&self.to, &other.to) {
            (Some(a), Some(b)) => a <= b,
            (_, None) => true,
            (None, Some(_)) => false,
        }
    }
}

impl Tree {
    fn open_root(&self) -> Vec<PendingPage> {
        let level = self.height.checked_sub(1);
        let root = level.map(|level| PendingPage {
            ptr: self.root,
            level,
            from: Vec::new(),
            to: None,
        });
        root.into_iter().collect()
    }

    /// The key ranges in which this version and `base` may differ. Calls `f(from, to)` with ascending, disjoint ranges
    /// `from <= key < to` that contain every row that was added, changed or removed; they may contain other rows. A
    /// page that both versions share is not read.
    ///
    /// # Errors
    /// `Io`, `Corrupt`, and errors of `f`.
    ///
    /// # Cost
    /// Reads the branches that only one of the two versions has.
    pub fn changed_since<R: PageRead, B: PageRead>(
        &self,
        r: &R,
        base: &Self,
        base_r: &B,
        f: &mut OnRange<'_>,
    ) -> Result<()> {
        let (mut new, mut old) = (self.open_root(), base.open_root());
        let mut range: Option<(Vec<u8>, Option<Vec<u8>>)> = None;
        loop {
            let take_new = match (new.last(), old.last()) {
                (None, None) => break,
                (Some(a), Some(b)) if a.ptr == b.ptr => {
                    new.pop();
                    old.pop();
                    continue;
                }
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (Some(a), Some(b)) if a.before(b) => true,
                (Some(a), Some(b)) if b.before(a) => false,
                (Some(a), Some(b)) if a.level != b.level => a.level > b.level,
                (Some(a), Some(b)) => a.ends_first(b),
            };
            let stack = if take_new { &mut new } else { &mut old };
            let Some(open) = stack.pop() else { break };
            if open.level > 0 {
                let below = if take_new {
                    expand(r, &open)?
                } else {
                    expand(base_r, &open)?
                };
                stack.extend(below.into_iter().rev());
                continue;
            }
            range = match range.take() {
                Some((from, to)) if to.as_ref().is_none_or(|to| open.from <= *to) => {
                    let to = to.zip(open.to).map(|(a, b)| a.max(b));
                    Some((from.min(open.from), to))
                }
                Some((from, to)) => {
                    f(&from, to.as_deref())?;
                    Some((open.from, open.to))
                }
                None => Some((open.from, open.to)),
            };
        }
        match range {
            Some((from, to)) => f(&from, to.as_deref()),
            None => Ok(()),
        }
    }
}

fn expand<R: PageRead>(r: &R, open: &PendingPage) -> Result<Vec<PendingPage>> {
    let page = r.page(&open.ptr)?;
    let node = Node::open(&page, open.level, open.ptr.addr)?;
    let found = children(r, &node, &open.from, open.to.as_deref())?;
    let below = |(index, (key, ptr, _)): (usize, &(Vec<u8>, Ptr, u64))| PendingPage {
        ptr: *ptr,
        level: open.level - 1,
        from: if index == 0 {
            open.from.clone()
        } else {
            key.clone()
        },
        to: found
            .get(index + 1)
            .map(|next| next.0.clone())
            .or_else(|| open.to.clone()),
    };
    Ok(found.iter().enumerate().map(below).collect())
}
