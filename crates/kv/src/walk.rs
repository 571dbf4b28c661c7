//! Walking over a table's pages by their pointers: a caller decides from pointer, level and keys whether to go
//! further down, and damage costs what is below it and nothing else. This is how two versions are compared (by
//! birth) and how a damaged table is saved.

use crate::node::{Node, damaged};
use crate::tree::{LEADS_ON, Tree};
use crate::value;
use tidalite_base::Corrupt;
use tidalite_pager::{Error, Extent, Header, Kind, PageRead, Ptr, Result};

/// A page of a table, seen from above.
#[derive(Clone, Copy, Debug)]
pub struct PageAt<'k> {
    /// Where it is and when it was written.
    pub ptr: Ptr,
    /// 0 for a leaf.
    pub level: u8,
    /// Rows below.
    pub rows: u64,
    /// No key below is less.
    pub from: &'k [u8],
    /// Every key below is less; `None`: no bound.
    pub to: Option<&'k [u8]>,
}

/// Who walks.
pub trait Walk {
    /// A page is reached, not yet read. True to read it and what is below.
    ///
    /// # Errors
    /// Ends the walk.
    fn enter(&mut self, page: &PageAt<'_>) -> Result<bool>;

    /// A value in an extent of its own, in a leaf that was entered.
    ///
    /// # Errors
    /// Ends the walk.
    fn large_value(&mut self, key: &[u8], extent: &Extent) -> Result<()> {
        let _ = (key, extent);
        Ok(())
    }

    /// The page that was entered cannot be used: everything below is skipped.
    ///
    /// # Errors
    /// Ends the walk.
    fn damaged(&mut self, page: &PageAt<'_>, corrupt: Corrupt) -> Result<()>;
}

impl Tree {
    /// Walks over the table's pages, top-down, in the order of keys.
    ///
    /// # Errors
    /// `Io`, and what the visitor returns.
    ///
    /// # Cost
    /// The pages that were entered.
    pub fn walk<R: PageRead>(&self, r: &R, visitor: &mut dyn Walk) -> Result<()> {
        let Some(level) = self.height.checked_sub(1) else {
            return Ok(());
        };
        let root = PageAt {
            ptr: self.root,
            level,
            rows: self.rows,
            from: &[],
            to: None,
        };
        below(r, &root, visitor)
    }

    /// A leaf without a tree above it, as a table of its own: for saving what a lost branch led to.
    ///
    /// # Errors
    /// `Corrupt` when the pointer leads to no leaf of a table; `Io`.
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
        Ok(Self {
            root: *ptr,
            rows: node.count() as u64,
            height: 1,
            flags: LEADS_ON,
            ..Self::new(Header::decode(&page).owner)
        })
    }
}

/// Recursion is as deep as the tree is high.
fn below<R: PageRead>(r: &R, at: &PageAt<'_>, visitor: &mut dyn Walk) -> Result<()> {
    if !visitor.enter(at)? {
        return Ok(());
    }
    let parts = r.page(&at.ptr).and_then(|page| {
        let node = Node::open(&page, at.level, at.ptr.addr)?;
        Ok(if at.level == 0 {
            (large_values(r, &node)?, Vec::new())
        } else {
            (Vec::new(), children(&node, at)?)
        })
    });
    let (values, children) = match parts {
        Ok(parts) => parts,
        Err(Error::Corrupt(corrupt)) => return visitor.damaged(at, corrupt),
        Err(error) => return Err(error),
    };
    for (key, extent) in &values {
        visitor.large_value(key, extent)?;
    }
    for (index, (key, ptr, rows)) in children.iter().enumerate() {
        let child = PageAt {
            ptr: *ptr,
            level: at.level - 1,
            rows: *rows,
            from: if index == 0 { at.from } else { key },
            to: children.get(index + 1).map(|next| &next.0[..]).or(at.to),
        };
        below(r, &child, visitor)?;
    }
    Ok(())
}

/// The children of a branch: key, pointer, rows. Separators ascend inside the parent's: so no page with more than
/// one child is walked twice, whatever a hostile file says.
fn children(node: &Node<'_>, at: &PageAt<'_>) -> Result<Vec<(Vec<u8>, Ptr, u64)>> {
    let mut found: Vec<(Vec<u8>, Ptr, u64)> = Vec::with_capacity(node.count());
    for index in 0..node.count() {
        let (ptr, rows) = node.child(index)?;
        let key = node.key(index)?;
        let after = if index == 1 {
            at.from
        } else {
            found.last().map_or(&[][..], |last| &last.0)
        };
        let inside = key.as_slice() > after && at.to.is_none_or(|to| key.as_slice() < to);
        if index > 0 && !inside {
            let what = format!("entry {index}");
            let expected = "keys that ascend inside their parent's separators";
            return Err(damaged("order of a table page", node.at(), what, expected));
        }
        found.push((key, ptr, rows));
    }
    Ok(found)
}

fn large_values<R: PageRead>(r: &R, node: &Node<'_>) -> Result<Vec<(Vec<u8>, Extent)>> {
    let mut found = Vec::new();
    for index in 0..node.count() {
        let cell = node.cell(index)?;
        if let Some(reference) = value::reference(cell.tag, cell.payload, r.page_size(), node.at())?
        {
            found.push((node.key(index)?, reference.extent()));
        }
    }
    Ok(found)
}
