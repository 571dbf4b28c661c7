//! Rows that are put in one by one behind the last one: an [`Ending`] remembers where that is.
//!
//! Invariants
//! 1. What an `Ending` remembers is true of the table whose root and rows it names, as long as every other change of the table is followed
//!    by `forget`. It is a hint for speed: without one the row is put in by a descent.
//! 2. The way that it remembers is the transaction's own; pages that have come to be held since are seen by `may_change`.

use crate::bulk::append::inline;
use crate::bulk::leaf_builder::Filling;
use crate::page::edit::{self, Placed};
use crate::page::key::Key;
use crate::page::layout::Payload;
use crate::table::free::Old;
use crate::table::path::Step;
use crate::table::tree::Tree;
use crate::value::Stored;
use tidalite_pager::{PageWrite, Ptr, Result};

/// Where the last row of a table lies, while rows are put in behind it. Of one transaction. A clone remembers nothing.
#[derive(Debug, Default)]
pub struct Ending {
    /// Rows that were put in at the end by a descent, one after the other.
    descents: u32,
    place: Option<Place>,
}

#[derive(Debug)]
pub(crate) struct Place {
    root: Ptr,
    pub(crate) rows: u64,
    /// The branches above the leaf.
    pub(crate) way: Vec<Step>,
    pub(crate) leaf: Ptr,
    pub(crate) last_key: Vec<u8>,
    /// Of a table of multi-values: where the last value of the last key lies, if its set has pages.
    pub(crate) set: Box<Ending>,
}

impl Clone for Ending {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Ending {
    /// The table was changed otherwise.
    #[inline]
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// The place, if it is that of the last row of this table as it is now.
    pub(crate) fn place_of(&mut self, tree: &Tree) -> Option<&mut Place> {
        self.place.as_mut().filter(|place| place.is_of(tree))
    }

    /// A row was put in by a descent; `last`: at the end.
    pub(crate) fn descended<W: PageWrite>(&mut self, tree: &Tree, w: &W, last: bool) -> Result<()> {
        self.place = None;
        self.descents = if last { self.descents + 1 } else { 0 };
        // One row alone is not worth looking where it went.
        if self.descents > 1 {
            self.remember(tree, w)?;
        }
        Ok(())
    }

    /// Looks where the last row lies.
    pub(crate) fn remember<W: PageWrite>(&mut self, tree: &Tree, w: &W) -> Result<()> {
        self.place = tree.tail(w)?.map(|tail| Place {
            root: tree.root,
            rows: tree.rows,
            way: tail.way,
            leaf: tail.leaf,
            last_key: tail.last_key,
            set: Box::default(),
        });
        Ok(())
    }
}

impl Place {
    fn is_of(&self, tree: &Tree) -> bool {
        self.root == tree.root && self.rows == tree.rows
    }

    /// Whether all pages of it may be changed as they are.
    pub(crate) fn may_change<W: PageWrite>(&self, w: &W) -> bool {
        w.may_change(&self.leaf) && self.way.iter().all(|step| w.may_change(&step.ptr))
    }

    /// Adds a row at the end of the leaf; false when it does not fit as it is. Nothing is counted.
    pub(crate) fn push<W: PageWrite>(
        &mut self,
        w: &mut W,
        key: &[u8],
        payload: Payload<'_>,
    ) -> Result<bool> {
        let at = self.leaf.addr;
        let page = w.page_mut(&self.leaf)?;
        let (count, _) = edit::fill(page, 0, at)?;
        let placed = edit::try_insert(page, 0, at, count, Key::plain(key), payload)?;
        if placed == Placed::No {
            return Ok(false);
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.set.forget();
        Ok(true)
    }
}

impl Tree {
    /// As `insert`, with a hint: rows that ascend behind the last one need neither descent nor search.
    ///
    /// # Errors
    /// As for `insert`.
    ///
    /// # Cost
    /// Behind the last row: a comparison of keys, a copy, and a count in each branch above.
    pub fn insert_near_end<W: PageWrite>(
        &mut self,
        w: &mut W,
        ending: &mut Ending,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool> {
        if let Some(place) = &mut ending.place
            && self.put_behind(w, place, key, value)?
        {
            return Ok(false);
        }
        ending.place = None;
        let stored = Stored::put(w, self.id, key, value)?;
        let put = self.put_payload_anywhere(w, key, stored.payload(), Old::Free);
        let (before, at_end) = stored.unless_refused(w, put)?;
        ending.descended(self, w, at_end)?;
        Ok(before > 0)
    }

    /// Puts a row in behind all others; false, and nothing changed, when its key is not above the last one. `ending` is as for
    /// `insert_near_end`.
    ///
    /// # Errors
    /// As for `insert`.
    pub fn append_near_end<W: PageWrite>(
        &mut self,
        w: &mut W,
        ending: &mut Ending,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool> {
        let known = ending.place.as_ref().filter(|place| place.is_of(self));
        let above = match known {
            Some(place) => key > place.last_key.as_slice(),
            None => {
                let mut last = self.cursor(&*w);
                !last.last()? || key > last.key()
            }
        };
        if above {
            self.insert_near_end(w, ending, key, value)?;
        }
        Ok(above)
    }

    /// Puts a row in behind the last one; false, and nothing has changed, when it is to go elsewhere, or does not fit the leaf as it is.
    fn put_behind<W: PageWrite>(
        &mut self,
        w: &mut W,
        place: &mut Place,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool> {
        if !place.is_of(self)
            || key <= place.last_key.as_slice()
            || !Filling::takes(w.page_size(), key, inline(value))
            || !place.may_change(w)
            || !place.push(w, key, inline(value))?
        {
            return Ok(false);
        }
        self.count_rows(w, &place.way, 1)?;
        place.rows = self.rows;
        Ok(true)
    }
}
