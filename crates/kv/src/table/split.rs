//! Full pages: rewrites a page, splits it, and propagates the split upward to a new root.

use crate::error::damaged;
use crate::page::edit::{self, Placed};
use crate::page::entries::{Bias, Entry, Group, common};
use crate::page::key::{Key, KeyBuf};
use crate::page::layout::{Payload, child_bytes};
use crate::page::node::Node;
use crate::table::path::Step;
use crate::table::tree::{HEIGHT_MAX, Tree};
use tidalite_pager::{Counters, Error, PageWrite, Ptr, Result};

/// Result of a page split, from which the entry for the new right page is made.
pub(crate) struct Split {
    pub(crate) left_rows: u64,
    pub(crate) separator: KeyBuf,
    pub(crate) right: Ptr,
    pub(crate) right_rows: u64,
}

impl Tree {
    /// Inserts an entry at `index` of an owned page: in place, by rewriting the page, or by a split, which is returned.
    #[expect(clippy::too_many_arguments, reason = "a place, an entry and a hint")]
    pub(crate) fn insert_or_split<W: PageWrite>(
        &self,
        w: &mut W,
        ptr: &Ptr,
        level: u8,
        index: usize,
        key: Key<'_>,
        payload: Payload<'_>,
        bias: Bias,
    ) -> Result<Option<Split>> {
        debug_assert!(w.may_change(ptr), "the transaction owns the page");
        let page = w.page_mut(ptr)?;
        if edit::try_insert(page, level, ptr.addr, index, key, payload)? == Placed::Yes {
            return Ok(None);
        }
        let copy = page.to_vec();
        let mut group = self.group(level == 0, copy.len());
        if edit::fill(&copy, level, ptr.addr)?.0 > 0 {
            let node = Node::open(&copy, level, ptr.addr)?;
            group.add_page(&node, Key::plain(&[]))?;
        }
        group.entries.insert(index, Entry::new(key, payload));
        let count = group.entries.len();
        if group.page_bytes(0..count) <= copy.len() {
            let page = w.page_mut(ptr)?;
            group.write(0..count, level, page);
            edit::keep_mark(page, &copy);
            return Ok(None);
        }
        self.split(w, ptr, None, level, &group, bias).map(Some)
    }

    /// Distributes a group of entries over two owned pages; allocates the right page unless `right` is given.
    pub(crate) fn split<W: PageWrite>(
        &self,
        w: &mut W,
        left: &Ptr,
        right: Option<Ptr>,
        level: u8,
        group: &Group<'_>,
        bias: Bias,
    ) -> Result<Split> {
        let count = group.entries.len();
        let Some(at) = group.split_point(w.page_size(), bias) else {
            return Err(damaged(
                "table page",
                left.addr,
                format!("{count} entries that two pages cannot hold"),
                "entries of at most half a page",
            ));
        };
        self.split_at(w, left, right, level, group, at)
    }

    /// As `split`, at a given index: the right page begins with entry `at`. Both pages must have room for their
    /// entries.
    pub(crate) fn split_at<W: PageWrite>(
        &self,
        w: &mut W,
        left: &Ptr,
        right: Option<Ptr>,
        level: u8,
        group: &Group<'_>,
        at: usize,
    ) -> Result<Split> {
        let count = group.entries.len();
        let right = match right {
            Some(right) => right,
            None => {
                Counters::bump(&w.counters().pages_split);
                self.new_page(w, level)?
            }
        };
        debug_assert!(0 < at && at < count, "both pages get entries");
        debug_assert!(left.addr != right.addr, "two pages");
        let separator = self.separator(w, group, at)?;
        group.write(0..at, level, w.page_mut(left)?);
        group.write(at..count, level, w.page_mut(&right)?);
        Ok(Split {
            left_rows: group.rows(0..at),
            separator,
            right,
            right_rows: group.rows(at..count),
        })
    }

    /// The shortest separator between two neighbouring entries; a separator that is too long for a page gets an extent.
    pub(crate) fn separator<W: PageWrite>(
        &self,
        w: &mut W,
        group: &Group<'_>,
        at: usize,
    ) -> Result<KeyBuf> {
        if let Some(separator) = group.separator(at) {
            return Ok(separator);
        }
        let (before, mut key) = (group.whole_key(w, at - 1)?, group.whole_key(w, at)?);
        key.truncate(common(&before, &key) + 1);
        KeyBuf::store(w, self.id, key)
    }

    /// Propagates a split of `page`, which lies below the last branch of `steps`, upward. `level` is the level of that
    /// branch.
    pub(crate) fn propagate_split<W: PageWrite>(
        &mut self,
        w: &mut W,
        mut steps: Vec<Step>,
        mut page: Ptr,
        mut level: u8,
        mut split: Option<Split>,
        bias: Bias,
    ) -> Result<()> {
        debug_assert!(
            steps.len() + usize::from(level) == usize::from(self.height),
            "the steps lead from the root to this level"
        );
        while let Some(done) = split {
            let Some(parent) = steps.pop() else {
                return self.grow_root(w, &page, level, &done);
            };
            let bytes = w.page_mut(&parent.ptr)?;
            let at = parent.ptr.addr;
            edit::set_child(bytes, level, at, parent.index, &page, done.left_rows)?;
            split = self.insert_child(w, &parent, level, &done, bias)?;
            page = parent.ptr;
            level += 1;
        }
        Ok(())
    }

    /// Inserts the entry of the right half of a split after the entry of its left half.
    pub(crate) fn insert_child<W: PageWrite>(
        &self,
        w: &mut W,
        parent: &Step,
        level: u8,
        split: &Split,
        bias: Bias,
    ) -> Result<Option<Split>> {
        debug_assert!(level > 0, "only branches have children");
        let child = child_bytes(&split.right, split.right_rows);
        let payload = Payload {
            tag: 0,
            bytes: &child,
        };
        let index = parent.index + 1;
        self.insert_or_split(
            w,
            &parent.ptr,
            level,
            index,
            split.separator.key(),
            payload,
            bias,
        )
    }

    /// Creates a new root above the two halves of the old root.
    pub(crate) fn grow_root<W: PageWrite>(
        &mut self,
        w: &mut W,
        left: &Ptr,
        level: u8,
        split: &Split,
    ) -> Result<()> {
        debug_assert!(level == self.height, "the root is above all pages");
        if self.height >= HEIGHT_MAX {
            return Err(Error::Limit {
                what: "levels of a table",
                found: u64::from(self.height) + 1,
                limit: u64::from(HEIGHT_MAX),
            });
        }
        let root = self.new_page(w, level)?;
        let child = child_bytes(left, split.left_rows);
        let payload = Payload {
            tag: 0,
            bytes: &child,
        };
        let first =
            self.insert_or_split(w, &root, level, 0, Key::plain(&[]), payload, Bias::Balance)?;
        let step = Step {
            ptr: root,
            index: 0,
        };
        let second = self.insert_child(w, &step, level, split, Bias::Balance)?;
        if first.is_some() || second.is_some() {
            let found = format!("a separator of {} bytes", split.separator.inline.len());
            return Err(damaged("table page", left.addr, found, "a shorter one"));
        }
        self.root = root;
        self.height += 1;
        Ok(())
    }
}
