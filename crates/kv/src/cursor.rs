//! A place among the rows of a table under a snapshot.
//!
//! Invariants:
//! 1. `place` is `At` exactly when `frames` is the whole way from root to leaf, each with a valid index,
//!    and `key` holds the row's whole key.
//! 2. A cursor that ran off an end remembers which, so that a loop on `next` or `previous` ends once.
//! 3. After an error the cursor is off the table, before its first row.

use crate::node::{Node, Shape, damaged};
use crate::tree::Tree;
use crate::value::{self, Value};
use tidalite_pager::{PageRead, PageRef, Ptr, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Before,
    At,
    After,
}

struct Frame<'r> {
    page: PageRef<'r>,
    shape: Shape,
    at: u64,
    index: usize,
}

impl<'r> Frame<'r> {
    fn node(&self) -> Node<'_> {
        Node::with(&self.page, self.shape, self.at)
    }
}

/// Which entry to take on the way down.
#[derive(Clone, Copy)]
enum Way<'k> {
    First,
    Last,
    /// Towards a key; in the leaf the first entry that is not below it, which may be one past the last.
    To(&'k [u8]),
}

/// Steps through a table in either direction and finds places in it.
///
/// Every move returns whether the cursor is at a row afterwards. A new cursor is before the first row.
pub struct Cursor<'r, R> {
    tree: Tree,
    reader: &'r R,
    frames: Vec<Frame<'r>>,
    key: Vec<u8>,
    /// Bytes of `key` that all rows of the leaf share.
    prefix_len: usize,
    place: Place,
}

impl Tree {
    /// A cursor before the first row.
    pub fn cursor<'r, R: PageRead>(&self, r: &'r R) -> Cursor<'r, R> {
        Cursor {
            tree: *self,
            reader: r,
            frames: Vec::new(),
            key: Vec::new(),
            prefix_len: 0,
            place: Place::Before,
        }
    }
}

impl<'r, R: PageRead> Cursor<'r, R> {
    /// True when the cursor is at a row.
    #[must_use]
    pub fn is_at_row(&self) -> bool {
        self.place == Place::At
    }

    /// The row's key.
    ///
    /// # Panics
    /// When the cursor is not at a row.
    #[must_use]
    #[inline]
    pub fn key(&self) -> &[u8] {
        assert!(self.place == Place::At, "the cursor is not at a row");
        &self.key
    }

    /// The row's value.
    ///
    /// # Errors
    /// `Corrupt`.
    ///
    /// # Panics
    /// When the cursor is not at a row.
    pub fn value(&self) -> Result<Value<'r>> {
        let Some(leaf) = self.frames.last().filter(|_| self.place == Place::At) else {
            panic!("the cursor is not at a row");
        };
        let cell = leaf.node().cell(leaf.index)?;
        let page_size = self.reader.page_size();
        if let Some(found) = value::reference(cell.tag, cell.payload, page_size, leaf.at)? {
            return Ok(Value::referenced(self.reader, found));
        }
        let range = cell.payload_at..cell.payload_at + cell.payload.len();
        Ok(Value::inline(leaf.page.clone(), range))
    }

    /// The row's value where it lies in the leaf; `None` for one in an extent.
    ///
    /// # Errors
    /// `Corrupt`.
    ///
    /// # Panics
    /// When the cursor is not at a row.
    pub fn inline_value(&self) -> Result<Option<&[u8]>> {
        let Some(leaf) = self.frames.last().filter(|_| self.place == Place::At) else {
            panic!("the cursor is not at a row");
        };
        let cell = leaf.node().cell(leaf.index)?;
        Ok((cell.tag != crate::node::REFERENCE_TAG)
            .then(|| &leaf.page[cell.payload_at..cell.payload_at + cell.payload.len()]))
    }

    /// To the first row.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn first(&mut self) -> Result<bool> {
        self.descend_from_root(Way::First)?;
        self.settle(Place::Before)
    }

    /// To the last row.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn last(&mut self) -> Result<bool> {
        self.descend_from_root(Way::Last)?;
        self.settle(Place::After)
    }

    /// To the row with the smallest key that is not below `key` (its ceiling).
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn seek_ge(&mut self, key: &[u8]) -> Result<bool> {
        self.seek_place(key)?;
        if self.off_leaf_end() {
            return self.climb_forward();
        }
        self.settle(Place::After)
    }

    /// To the row with the smallest key above `key`.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn seek_gt(&mut self, key: &[u8]) -> Result<bool> {
        if self.seek_ge(key)? && self.key == key {
            return self.next();
        }
        Ok(self.is_at_row())
    }

    /// To the row with the greatest key that is not above `key` (its floor).
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn seek_le(&mut self, key: &[u8]) -> Result<bool> {
        let found = self.seek_place(key)?;
        if found {
            return self.settle(Place::Before);
        }
        self.step_back()
    }

    /// To the row with the greatest key below `key`.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn seek_lt(&mut self, key: &[u8]) -> Result<bool> {
        self.seek_place(key)?;
        self.step_back()
    }

    /// To the row with exactly this key; without one the cursor stands where `seek_ge` leaves it, and the
    /// answer is false.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn seek(&mut self, key: &[u8]) -> Result<bool> {
        Ok(self.seek_ge(key)? && self.key == key)
    }

    /// To the next row; from before the first row to the first.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    #[expect(
        clippy::should_implement_trait,
        reason = "a cursor goes both ways and can fail"
    )]
    pub fn next(&mut self) -> Result<bool> {
        match self.place {
            Place::Before => self.first(),
            Place::After => Ok(false),
            Place::At => {
                let Some(leaf) = self.frames.last_mut() else {
                    return Ok(false);
                };
                leaf.index += 1;
                if leaf.index < leaf.shape.count {
                    return self.settle_in_leaf();
                }
                self.climb_forward()
            }
        }
    }

    /// To the row before; from behind the last row to the last.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn previous(&mut self) -> Result<bool> {
        match self.place {
            Place::Before => Ok(false),
            Place::After => self.last(),
            Place::At => self.step_back(),
        }
    }

    /// Descends to the leaf that would hold `key`; in it to the first entry not below `key`, perhaps
    /// one past the last. True when that is `key`.
    fn seek_place(&mut self, key: &[u8]) -> Result<bool> {
        self.descend_from_root(Way::To(key))
    }

    fn off_leaf_end(&self) -> bool {
        let leaf = self.frames.last();
        leaf.is_some_and(|leaf| leaf.index >= leaf.shape.count)
    }

    fn descend_from_root(&mut self, way: Way<'_>) -> Result<bool> {
        self.frames.clear();
        self.place = Place::Before;
        if self.tree.root.is_null() {
            return Ok(false);
        }
        self.descend(self.tree.root, self.tree.height - 1, way)
    }

    /// Adds frames from this page down to a leaf. True when the way led to its very key.
    fn descend(&mut self, mut ptr: Ptr, mut level: u8, way: Way<'_>) -> Result<bool> {
        loop {
            let page = self.reader.page(&ptr)?;
            let node = Node::open(&page, level, ptr.addr)?;
            let shape = node.shape();
            let (index, found) = match way {
                Way::First => (0, false),
                Way::Last => (node.count() - 1, false),
                Way::To(key) if level > 0 => (node.find_child(key)?, false),
                Way::To(key) => node.find(key)?,
            };
            let child = (level > 0).then(|| node.child(index)).transpose()?;
            self.frames.push(Frame {
                page,
                shape,
                at: ptr.addr,
                index,
            });
            let Some((child, _)) = child else {
                return Ok(found);
            };
            ptr = child;
            level -= 1;
        }
    }

    /// From past the end of a leaf to the first row of the next one.
    fn climb_forward(&mut self) -> Result<bool> {
        self.place = Place::Before;
        self.frames.pop();
        while let Some(frame) = self.frames.last_mut() {
            frame.index += 1;
            if frame.index < frame.shape.count {
                let (child, _) = frame.node().child(frame.index)?;
                let level = frame.shape.level - 1;
                self.descend(child, level, Way::First)?;
                return self.settle(Place::After);
            }
            self.frames.pop();
        }
        self.place = Place::After;
        Ok(false)
    }

    /// From a place in a leaf, perhaps past its end, to the row before.
    fn step_back(&mut self) -> Result<bool> {
        let Some(leaf) = self.frames.last_mut() else {
            self.place = Place::Before;
            return Ok(false);
        };
        if leaf.index > 0 {
            leaf.index -= 1;
            if self.place == Place::At {
                return self.settle_in_leaf();
            }
            return self.settle(Place::Before);
        }
        self.place = Place::Before;
        self.frames.pop();
        while let Some(frame) = self.frames.last_mut() {
            if frame.index > 0 {
                frame.index -= 1;
                let (child, _) = frame.node().child(frame.index)?;
                let level = frame.shape.level - 1;
                self.descend(child, level, Way::Last)?;
                return self.settle(Place::Before);
            }
            self.frames.pop();
        }
        Ok(false)
    }

    /// Takes the key of the row that the frames lead to, in a leaf just entered. Without frames the cursor
    /// is at `end`.
    fn settle(&mut self, end: Place) -> Result<bool> {
        let Some(leaf) = self.frames.last() else {
            self.place = end;
            return Ok(false);
        };
        self.key.clear();
        self.key.extend_from_slice(leaf.node().prefix());
        self.prefix_len = self.key.len();
        self.settle_in_leaf()
    }

    /// Takes the key of another row of the same leaf.
    #[inline]
    fn settle_in_leaf(&mut self) -> Result<bool> {
        self.place = Place::Before;
        let Some(leaf) = self.frames.last() else {
            return Err(damaged("cursor", 0, "no leaf", "a leaf"));
        };
        let suffix = leaf.node().cell(leaf.index)?.suffix;
        self.key.truncate(self.prefix_len);
        self.key.extend_from_slice(suffix);
        self.place = Place::At;
        Ok(true)
    }
}
