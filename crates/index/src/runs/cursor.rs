//! A cursor over the entries of a run, or of the main table of an index, in order.

use crate::block::{Block, Entry, head};
use crate::runs::state::row_key;
use tidalite_base::Corrupt;
use tidalite_kv::{Cursor, TableReader};
use tidalite_pager::{PageRead, Result};

/// A cursor over blocks of entries. The rows of all blocks have the same first bytes in their keys: the number of the
/// run, or nothing.
pub(crate) struct BlockCursor<'r, R: PageRead> {
    rows: Cursor<'r, R>,
    prefix: Vec<u8>,
    /// The block at the cursor; empty at the end.
    bytes: Vec<u8>,
    at: usize,
    len: usize,
    head: u64,
}

impl<'r, R: PageRead> BlockCursor<'r, R> {
    /// A cursor at the first entry of a run whose key is `from` or greater.
    pub(crate) fn of_run(front: &TableReader<'r>, r: &'r R, run: u64, from: &[u8]) -> Result<Self> {
        Self::new(
            front,
            r,
            run.to_be_bytes().to_vec(),
            &row_key(run, from),
            from,
        )
    }

    /// A cursor at the first entry of a table of blocks whose key is `from` or greater.
    pub(crate) fn of_table(table: &TableReader<'r>, r: &'r R, from: &[u8]) -> Result<Self> {
        Self::new(table, r, Vec::new(), from, from)
    }

    fn new(
        table: &TableReader<'r>,
        r: &'r R,
        prefix: Vec<u8>,
        row: &[u8],
        from: &[u8],
    ) -> Result<Self> {
        let mut this = Self {
            rows: table.cursor(r)?,
            prefix,
            bytes: Vec::new(),
            at: 0,
            len: 0,
            head: 0,
        };
        let mut there = this.rows.seek_le(row)?;
        if !there || !this.rows.key().starts_with(&this.prefix) {
            there = this.rows.seek_ge(row)?;
        }
        this.load(there)?;
        if this.len > 0 {
            this.at = Block::parse(&this.bytes)?.lower_bound(from)?;
            if this.at == this.len {
                let there = this.rows.next()?;
                this.load(there)?;
            }
            this.set_head()?;
        }
        Ok(this)
    }

    /// Reads the block at `rows`, if there is a row and it belongs to this run.
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
        Ok(())
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

    /// The first 8 bytes of the key at the cursor. The cursor must not be at the end.
    pub(crate) fn head(&self) -> u64 {
        self.head
    }

    /// The entry at the cursor, which must not be at the end.
    pub(crate) fn entry(&self) -> Result<Entry<'_>> {
        Block::parse(&self.bytes)?.entry(self.at)
    }

    /// Moves to the next entry.
    pub(crate) fn next(&mut self) -> Result<()> {
        self.at += 1;
        if self.at == self.len {
            let last = Block::parse(&self.bytes)?.entry(self.len - 1)?.key.to_vec();
            let there = self.rows.next()?;
            self.load(there)?;
            // Keys that do not ascend could make a merge return entries out of order.
            if self.len > 0 && self.entry()?.key < last.as_slice() {
                let found = self.entry()?.key.escape_ascii().to_string();
                return Err(Corrupt::new("keys of an index", 0, found, "keys that ascend").into());
            }
        }
        self.set_head()
    }
}
