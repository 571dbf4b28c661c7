//! Moves a table's pages to lower addresses, so that the end of the file becomes free: pages and extents at or beyond a
//! boundary are copied, and so are the branches above them. One step moves a bounded number of pages and returns the
//! key at which the next step begins.
//!
//! 1. Contents, order and counts stay unchanged; only addresses change.
//! 2. Branches are read; leaves are read only if they lie beyond the boundary or may refer to extents or nested tables.
//! 3. Each branch is visited once, even in a hostile file; nested tables are visited up to the maximum depth.

use crate::inline::inline_table;
use crate::page::layout::{Payload, kind_of, tag};
use crate::page::node::Node;
use crate::page::overflow::Reference;
use crate::page::{edit, key};
use crate::table::free::VisitedPages;
use crate::table::tree::{HAS_REFERENCES, Tree, check_depth};
use crate::value;
use tidalite_pager::{Extent, PageWrite, Ptr, Result, in_second_file};

/// Limits of one step of relocation.
#[derive(Clone, Copy, Debug)]
pub struct Relocation {
    /// Address in bytes: pages and extents of the first file from this address on are moved.
    pub boundary: u64,
    /// The boundary in the second file, in which a value is moved only if it gets a lower address; `u64::MAX` if no
    /// value is moved there.
    pub second_boundary: u64,
    /// Number of pages that this step may still move. A step may exceed it slightly.
    pub pages: u64,
    /// Number of pages that this step may still read in search of pages to move.
    pub reads: u64,
}

impl Relocation {
    /// True if this step has reached a limit.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.pages == 0 || self.reads == 0
    }

    /// Subtracts a number of moved pages from the limit.
    pub fn moved(&mut self, pages: u64) {
        self.pages = self.pages.saturating_sub(pages);
    }

    fn count_read(&mut self) {
        self.reads = self.reads.saturating_sub(1);
    }
}

struct Relocator<'a> {
    tree: Tree,
    step: &'a mut Relocation,
    /// The key at which the previous step ended, and this step begins.
    from: &'a [u8],
    /// Keys of the values whose extents are to be moved, with these extents.
    large: Vec<(Vec<u8>, Extent)>,
    passed: &'a mut VisitedPages,
}

impl Tree {
    /// Moves pages at and beyond the boundary, for keys from `from` on. Returns the key at which to continue, or `None`
    /// if the whole table is done.
    ///
    /// # Errors
    /// `DiskFull`, `Io`, `Corrupt`; the transaction must then be rolled back.
    ///
    /// # Cost
    /// The moved pages and the branches above them are written; the branches in between are read. A value in an extent
    /// is held in memory while it is moved.
    pub fn relocate<W: PageWrite>(
        &mut self,
        w: &mut W,
        step: &mut Relocation,
        from: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        self.relocate_once(w, step, from, &mut VisitedPages::default())
    }

    fn relocate_once<W: PageWrite>(
        &mut self,
        w: &mut W,
        step: &mut Relocation,
        from: &[u8],
        passed: &mut VisitedPages,
    ) -> Result<Option<Vec<u8>>> {
        let Some(level) = self.height.checked_sub(1) else {
            return Ok(None);
        };
        let mut relocator = Relocator {
            tree: *self,
            step,
            from,
            large: Vec::new(),
            passed,
        };
        let (root, stop) = relocator.page(w, &self.root, level, &[])?;
        let large = std::mem::take(&mut relocator.large);
        self.root = root;
        for (key, extent) in large {
            // Values that were moved before this one may have used the free space that was found for it.
            if in_second_file(extent.addr) && !w.value_gets_lower(&extent) {
                continue;
            }
            let value = match self.get(w, &key)? {
                Some(value) => value.to_vec()?,
                None => continue,
            };
            self.insert(w, &key, &value)?;
        }
        Ok(stop)
    }
}

impl Relocator<'_> {
    fn beyond(&self, addr: u64) -> bool {
        addr >= self.step.boundary && !in_second_file(addr)
    }

    /// True if the extent of a value or of a long key is to be moved.
    fn extent_beyond<W: PageWrite>(&self, w: &mut W, extent: &Extent) -> bool {
        if in_second_file(extent.addr) {
            return extent.addr >= self.step.second_boundary && w.value_gets_lower(extent);
        }
        self.reaches_beyond(w, extent)
    }

    /// True if an extent of the first file ends beyond the boundary.
    fn reaches_beyond<W: PageWrite>(&self, w: &W, extent: &Extent) -> bool {
        let end = extent
            .addr
            .saturating_add(extent.pages.saturating_mul(w.page_size() as u64));
        end > self.step.boundary
    }

    /// Relocates a page and everything below it; `lower` is the least key that the page can hold.
    fn page<W: PageWrite>(
        &mut self,
        w: &mut W,
        ptr: &Ptr,
        level: u8,
        lower: &[u8],
    ) -> Result<(Ptr, Option<Vec<u8>>)> {
        if self.step.is_over() {
            return Ok((*ptr, Some(lower.to_vec())));
        }
        debug_assert!(ptr.kind == kind_of(level), "a page of this level");
        if level > 0 {
            self.passed.visit(ptr)?;
        }
        let mut own = *ptr;
        if self.beyond(ptr.addr) {
            own = w.shadow(ptr)?;
            self.step.moved(1);
        }
        if level == 0 {
            return self.leaf(w, own, lower);
        }
        self.step.count_read();
        own = self.rests(w, own, level)?;
        // Allows at least one leaf, however many pages the extents of long keys took; otherwise the next step would
        // make no progress.
        self.step.pages = self.step.pages.max(1);
        let children = {
            let page = w.page(&own)?;
            let node = Node::open(&page, level, own.addr)?;
            (0..node.count())
                .map(|i| Ok((node.key(w, i)?, node.child(i)?.0)))
                .collect::<Result<Vec<_>>>()?
        };
        for (index, (key, child)) in children.iter().enumerate() {
            let next = children.get(index + 1);
            if next.is_some_and(|(key, _)| key.as_slice() <= self.from) {
                continue;
            }
            let lower = if index == 0 { lower } else { key };
            let (moved, stop) = self.page(w, child, level - 1, lower)?;
            if moved != *child {
                own = w.shadow(&own)?;
                let at = own.addr;
                edit::set_child_ptr(w.page_mut(&own)?, level, at, index, &moved)?;
            }
            if stop.is_some() {
                return Ok((own, stop));
            }
        }
        Ok((own, None))
    }

    /// Moves the extents that hold the remaining bytes of a page's long keys.
    fn rests<W: PageWrite>(&mut self, w: &mut W, mut own: Ptr, level: u8) -> Result<Ptr> {
        if self.tree.flags & HAS_REFERENCES == 0 {
            return Ok(own);
        }
        let rests = {
            let page = w.page(&own)?;
            Node::open(&page, level, own.addr)?.rests()?
        };
        for rest in rests {
            let old = key::reference(&rest, w.page_size(), own.addr)?;
            if !self.extent_beyond(w, &old.extent()) {
                continue;
            }
            own = w.shadow(&own)?;
            let mut bytes = Vec::new();
            key::read_rest(w, &rest, own.addr, &mut bytes)?;
            let new = Reference::write(w, self.tree.id, &bytes)?.encode();
            edit::replace_rest(w.page_mut(&own)?, level, own.addr, (&rest, &new))?;
            w.free_extent(&old.extent());
            self.step.moved(old.extent().pages);
        }
        Ok(own)
    }

    /// Relocates the pages and extents to which a leaf refers. Returns the leaf's pointer, and the key at which to
    /// continue if the step ends here.
    fn leaf<W: PageWrite>(
        &mut self,
        w: &mut W,
        mut own: Ptr,
        lower: &[u8],
    ) -> Result<(Ptr, Option<Vec<u8>>)> {
        if self.tree.flags & HAS_REFERENCES == 0 {
            return Ok((own, None));
        }
        self.step.count_read();
        own = self.rests(w, own, 0)?;
        let (mut nested, mut large) = (Vec::new(), Vec::new());
        {
            let page = w.page(&own)?;
            let node = Node::open(&page, 0, own.addr)?;
            for index in 0..node.count() {
                let cell = node.cell(index)?;
                let reference = value::reference(cell.tag, cell.payload, page.len(), own.addr)?;
                if let Some(reference) = reference {
                    let extent = reference.extent();
                    let beyond = match in_second_file(extent.addr) {
                        true => extent.addr >= self.step.second_boundary,
                        false => self.reaches_beyond(w, &extent),
                    };
                    if beyond && !self.tree.is_multi() {
                        large.push((node.key(w, index)?, extent));
                    }
                } else if tag::kind(cell.tag) >= tag::NESTED {
                    nested.push((index, cell.tag, cell.payload.to_vec()));
                }
            }
        }
        let mut any = false;
        for (key, extent) in large {
            // The previous step has moved the values before `from` as far as possible.
            if key.as_slice() >= self.from && self.extent_beyond(w, &extent) {
                // Allows at least one value, however many pages the extents of long keys took; otherwise the next step
                // would make no progress.
                if self.step.pages == 0 && any {
                    return Ok((own, Some(key)));
                }
                any = true;
                self.step.moved(extent.pages);
                self.large.push((key, extent));
            }
        }
        for (index, tag, mut bytes) in nested {
            let (moved, stop) = self.nested(w, tag, &mut bytes, own.addr)?;
            if moved {
                own = w.shadow(&own)?;
                let (at, bytes) = (own.addr, &bytes[..]);
                edit::overwrite(w.page_mut(&own)?, at, index, Payload { tag, bytes })?;
            }
            if stop {
                return Ok((own, Some(lower.to_vec())));
            }
        }
        Ok((own, None))
    }

    /// Relocates the pages of a nested table, given its payload in the leaf at `leaf_at`, and updates the pointers in
    /// the payload. Returns whether the payload changed, and whether the step ends here.
    fn nested<W: PageWrite>(
        &mut self,
        w: &mut W,
        tag: u32,
        bytes: &mut [u8],
        leaf_at: u64,
    ) -> Result<(bool, bool)> {
        check_depth(self.passed.depth)?;
        self.passed.depth += 1;
        let done = if tag::kind(tag) == tag::ROOT {
            self.encode_nested_root(w, bytes, leaf_at)?
        } else {
            self.nested_small(w, bytes, leaf_at)?
        };
        debug_assert!(self.passed.depth > 0, "depths are balanced");
        self.passed.depth -= 1;
        Ok(done)
    }

    fn encode_nested_root<W: PageWrite>(
        &mut self,
        w: &mut W,
        bytes: &mut [u8],
        leaf_at: u64,
    ) -> Result<(bool, bool)> {
        let mut tree = Tree::decode_nested_root(bytes, self.tree.id, w.page_size(), leaf_at)?;
        let before = tree.root;
        if tree.height == 1 {
            self.passed.visit(&before)?;
        }
        // The next step searches this nested table from its start again. So only the number of moved pages may end this
        // step: if the number of reads could, each step might end at the same place, without progress.
        let mut step = Relocation {
            reads: u64::MAX,
            ..*self.step
        };
        let stop = tree.relocate_once(w, &mut step, &[], self.passed)?;
        self.step.pages = step.pages;
        bytes.copy_from_slice(&tree.encode_nested_root());
        Ok((tree.root != before, stop.is_some()))
    }

    /// Relocates the nested tables inside an inline table. Values in extents are not moved: if such a value cannot get
    /// a lower address, every step would begin with it again.
    fn nested_small<W: PageWrite>(
        &mut self,
        w: &mut W,
        bytes: &mut [u8],
        leaf_at: u64,
    ) -> Result<(bool, bool)> {
        if inline_table::is_packed(bytes) {
            return Ok((false, false));
        }
        let mut relocator = Vec::new();
        for cell in inline_table::cells(bytes, leaf_at)? {
            let cell = cell?;
            if tag::kind(cell.tag) >= tag::NESTED {
                let end = cell.payload_at + cell.payload.len();
                relocator.push((cell.tag, cell.payload_at..end));
            }
        }
        let mut any = false;
        for (tag, range) in relocator {
            let (moved, stop) = self.nested(w, tag, &mut bytes[range], leaf_at)?;
            any |= moved;
            if stop {
                return Ok((any, true));
            }
        }
        Ok((any, false))
    }
}
