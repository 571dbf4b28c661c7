//! A cursor over the entries of a run, or of the main table of an index, in ascending or descending order.

use crate::block::{Block, Entry, head, out_of_order};
use crate::runs::state::row_key;
use std::cmp::Ordering;
use tidalite_kv::{Cursor, TableReader};
use tidalite_pager::{PageRead, Result};

/// The order in which entries are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Ascending,
    Descending,
}

impl Order {
    /// The comparison of a later key with an earlier one in this order.
    pub(crate) fn later(self) -> Ordering {
        match self {
            Self::Ascending => Ordering::Greater,
            Self::Descending => Ordering::Less,
        }
    }
}

/// A cursor over blocks of entries. The keys of all rows have a common prefix: the number of the run, or nothing.
pub(crate) struct BlockCursor<'r, R: PageRead> {
    rows: Cursor<'r, R>,
    order: Order,
    prefix: Vec<u8>,
    /// The current block; empty at the end.
    bytes: Vec<u8>,
    at: usize,
    len: usize,
    head: u64,
}

impl<'r, R: PageRead> BlockCursor<'r, R> {
    /// A cursor at the first entry of a run whose key is `from` or greater.
    pub(crate) fn of_run(front: &TableReader<'r>, r: &'r R, run: u64, from: &[u8]) -> Result<Self> {
        let mut this = Self::new(front, r, run.to_be_bytes().to_vec(), Order::Ascending)?;
        this.seek_ge(&row_key(run, from), from)?;
        Ok(this)
    }

    /// A cursor that moves down, beginning at the last entry of a run whose key is less than `to`, or at the last entry
    /// of the run if `to` is `None`.
    pub(crate) fn of_run_below(
        front: &TableReader<'r>,
        r: &'r R,
        run: u64,
        to: Option<&[u8]>,
    ) -> Result<Self> {
        let mut this = Self::new(front, r, run.to_be_bytes().to_vec(), Order::Descending)?;
        let row = match to {
            Some(to) => row_key(run, to),
            None => row_key(run + 1, b""),
        };
        let there = this.rows.seek_lt(&row)?;
        this.load(there)?;
        if let (Some(to), true) = (to, this.len > 0) {
            // The key of the row is less than `to`, so the first entry of the row is less than `to`, too.
            let below = Block::parse(&this.bytes)?.lower_bound(to)?;
            this.at = below.saturating_sub(1);
            this.set_head()?;
        }
        Ok(this)
    }

    /// A cursor at the first entry of a table of blocks whose key is `from` or greater.
    pub(crate) fn of_table(table: &TableReader<'r>, r: &'r R, from: &[u8]) -> Result<Self> {
        let mut this = Self::new(table, r, Vec::new(), Order::Ascending)?;
        this.seek_ge(from, from)?;
        Ok(this)
    }

    fn new(table: &TableReader<'r>, r: &'r R, prefix: Vec<u8>, order: Order) -> Result<Self> {
        Ok(Self {
            rows: table.cursor(r)?,
            order,
            prefix,
            bytes: Vec::new(),
            at: 0,
            len: 0,
            head: 0,
        })
    }

    fn seek_ge(&mut self, row: &[u8], from: &[u8]) -> Result<()> {
        let mut there = self.rows.seek_le(row)?;
        if !there || !self.rows.key().starts_with(&self.prefix) {
            there = self.rows.seek_ge(row)?;
        }
        self.load(there)?;
        if self.len > 0 {
            self.at = Block::parse(&self.bytes)?.lower_bound(from)?;
            if self.at == self.len {
                let there = self.rows.next()?;
                self.load(there)?;
            }
        }
        self.set_head()
    }

    /// Reads the block at the cursor `rows`, if it is at a row that belongs to this run.
    fn load(&mut self, there: bool) -> Result<()> {
        (self.at, self.len) = (0, 0);
        if !there || !self.rows.key().starts_with(&self.prefix) {
            return Ok(());
        }
        let value = self.rows.value()?;
        self.bytes.clear();
        for chunk in value.chunks() {
            self.bytes.extend_from_slice(&chunk?);
        }
        self.len = Block::parse(&self.bytes)?.len();
        if self.order == Order::Descending {
            self.at = self.len - 1;
        }
        self.set_head()
    }

    fn set_head(&mut self) -> Result<()> {
        if self.len > 0 {
            self.head = head(self.entry()?.key);
        }
        Ok(())
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.len == 0
    }

    /// The first 8 bytes of the current key. The cursor must not be at the end.
    pub(crate) fn head(&self) -> u64 {
        self.head
    }

    /// The current entry. The cursor must not be at the end.
    pub(crate) fn entry(&self) -> Result<Entry<'_>> {
        Block::parse(&self.bytes)?.entry(self.at)
    }

    /// Moves to the next entry of the order.
    pub(crate) fn step(&mut self) -> Result<()> {
        let (is_last, last) = match self.order {
            Order::Ascending => (self.at + 1 == self.len, self.len - 1),
            Order::Descending => (self.at == 0, 0),
        };
        if !is_last {
            match self.order {
                Order::Ascending => self.at += 1,
                Order::Descending => self.at -= 1,
            }
            return self.set_head();
        }
        let last = Block::parse(&self.bytes)?.entry(last)?.key.to_vec();
        let there = match self.order {
            Order::Ascending => self.rows.next()?,
            Order::Descending => self.rows.previous()?,
        };
        self.load(there)?;
        if self.len == 0 {
            return Ok(());
        }
        // If keys are out of order, a merge could return entries out of order.
        let key = self.entry()?.key;
        let in_order = match self.order {
            Order::Ascending => key >= last.as_slice(),
            Order::Descending => key <= last.as_slice(),
        };
        match in_order {
            true => Ok(()),
            false => Err(out_of_order(key)),
        }
    }
}
