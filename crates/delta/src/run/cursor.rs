//! Iterates over the rows of a run block by block, and tests a run for rows of one series.
//!
//! A cursor holds no borrow of the file: the caller may write between two calls. Runs are immutable, so data read
//! earlier stays valid.

use crate::key::Key;
use crate::run::block::Block;
use crate::run::descriptor::Run;
use crate::run::directory::{Entry, entries_from};
use tidalite_base::SeriesId;
use tidalite_codec::ColumnType;
use tidalite_kv::Tree;
use tidalite_pager::{PageRead, Result};

/// Number of directory entries that a cursor reads at once when it moves past its first block.
const ENTRIES_AHEAD: usize = 16;

/// A position in a run: either at a row or at the end of the run.
#[derive(Debug)]
pub(crate) struct RunCursor {
    directory: Tree,
    entries: Vec<Entry>,
    next_entry: usize,
    pub(crate) block: Block,
    pub(crate) row: usize,
    /// Key at which reading the directory continues; `None` if the directory has no more entries.
    resume: Option<Key>,
}

impl RunCursor {
    /// Creates a cursor at the first row at or after `key`.
    pub(crate) fn seek<R: PageRead>(
        r: &R,
        run: &Run,
        layouts: &[Box<[ColumnType]>],
        key: &Key,
    ) -> Result<Self> {
        Self::seek_with(r, run, layouts, key, Block::default())
    }

    /// Like [`seek`](Self::seek), but reuses the memory of a decoded block.
    pub(crate) fn seek_with<R: PageRead>(
        r: &R,
        run: &Run,
        layouts: &[Box<[ColumnType]>],
        key: &Key,
        block: Block,
    ) -> Result<Self> {
        let mut cursor = Self {
            directory: run.directory,
            entries: Vec::new(),
            next_entry: 0,
            block,
            row: 0,
            resume: Some(*key),
        };
        // Reads two directory entries: the second one shows whether the first block has all rows of its last series.
        cursor.load(r, layouts, 2)?;
        cursor.row = cursor.block.lower_bound(key);
        // According to the directory the block ends at or after the key, but a damaged directory may be wrong.
        if cursor.row >= cursor.block.len() {
            cursor.load(r, layouts, 1)?;
        }
        debug_assert!(
            cursor.row <= cursor.block.len(),
            "a row of the block, or its end"
        );
        Ok(cursor)
    }

    /// Loads the next block of the run; after the last block, the block of the cursor becomes empty.
    pub(crate) fn load<R: PageRead>(
        &mut self,
        r: &R,
        layouts: &[Box<[ColumnType]>],
        ahead: usize,
    ) -> Result<()> {
        self.row = 0;
        if self.next_entry == self.entries.len() {
            self.entries.clear();
            self.next_entry = 0;
            if let Some(key) = self.resume.take() {
                entries_from(&self.directory, r, &key, ahead, &mut self.entries)?;
                let last = self.entries.last().filter(|_| self.entries.len() == ahead);
                self.resume = last.and_then(|entry| entry.last.next());
            }
        }
        match self.entries.get(self.next_entry) {
            Some(entry) => {
                self.block.read(r, &entry.ptr, layouts, true)?;
                self.next_entry += 1;
            }
            None => self.block.series.clear(),
        }
        Ok(())
    }

    /// Class and series of the row at the cursor; `None` at the end of the run.
    pub(crate) fn place(&self) -> Option<(u32, SeriesId)> {
        (self.row < self.block.len()).then(|| self.block.key(self.row).place())
    }

    /// Advances by `rows` rows within the block; at the end of the block, the caller must call `load_next`.
    pub(crate) fn pass(&mut self, rows: usize) {
        self.row += rows;
        debug_assert!(
            self.row <= self.block.len(),
            "the cursor stays in its block"
        );
    }

    /// Loads the next block if the cursor is at the end of its block.
    pub(crate) fn load_next<R: PageRead>(
        &mut self,
        r: &R,
        layouts: &[Box<[ColumnType]>],
    ) -> Result<()> {
        if self.row >= self.block.len() && self.may_go_on() {
            self.load(r, layouts, ENTRIES_AHEAD)?;
        }
        Ok(())
    }

    /// Whether the run may have blocks after the block of the cursor.
    pub(crate) fn may_go_on(&self) -> bool {
        self.next_entry < self.entries.len() || self.resume.is_some()
    }

    /// Returns a lower bound of the series that may have rows after the block of the cursor: smaller series have no
    /// more rows. Returns 0 if the block is empty.
    pub(crate) fn series_bound(&self) -> u64 {
        let Some(&last) = self.block.series.last() else {
            return 0;
        };
        let ends = match self.entries.get(self.next_entry) {
            Some(next) => next.first.place() > (self.block.class, SeriesId(last)),
            None => self.resume.is_none(),
        };
        last.saturating_add(u64::from(ends))
    }

    /// Whether the cursor is inside a block, with rows before and after it.
    pub(crate) fn is_amid(&self) -> bool {
        self.row > 0 && self.row < self.block.len()
    }

    /// Whether the run may have rows at or after the cursor.
    pub(crate) fn may_have_rows(&self) -> bool {
        self.row < self.block.len() || self.may_go_on()
    }

    /// Advances by `rows` rows, within the block or to the first row of the next block.
    pub(crate) fn advance<R: PageRead>(
        &mut self,
        r: &R,
        layouts: &[Box<[ColumnType]>],
        rows: usize,
    ) -> Result<()> {
        self.row += rows;
        debug_assert!(
            self.row <= self.block.len(),
            "the cursor passes rows of its block"
        );
        if self.row >= self.block.len() {
            self.load(r, layouts, ENTRIES_AHEAD)?;
        }
        Ok(())
    }
}

/// Tests, for ascending series, whether a run has rows of a series in an interval. The block of the previous test is
/// kept.
#[derive(Debug)]
pub(crate) struct Probe {
    run: Run,
    /// Watermark of the open compaction that reads the run; rows at or before this key are hidden.
    after: Option<Key>,
    entry: Option<Entry>,
    block: Block,
    block_of: u64,
}

impl Probe {
    pub(crate) fn new(run: &Run, after: Option<Key>) -> Self {
        Self {
            run: *run,
            after,
            entry: None,
            block: Block::default(),
            block_of: 0,
        }
    }

    pub(crate) fn has_rows<R: PageRead>(
        &mut self,
        r: &R,
        layouts: &[Box<[ColumnType]>],
        place: (u32, SeriesId),
        from: i64,
        to: i64,
    ) -> Result<bool> {
        if !self.run.may_hold(place, from, to) {
            return Ok(false);
        }
        let mut low = Key::new(place.0, place.1, from);
        let high = Key::new(place.0, place.1, to);
        if let Some(after) = self.after {
            if high <= after {
                return Ok(false);
            }
            if low <= after {
                let Some(next) = after.next() else {
                    return Ok(false);
                };
                low = next;
            }
        }
        let known = self
            .entry
            .filter(|entry| entry.first <= low && low <= entry.last);
        let entry = match known {
            Some(entry) => entry,
            None => {
                let mut entries = Vec::new();
                entries_from(&self.run.directory, r, &low, 1, &mut entries)?;
                let Some(&entry) = entries.first() else {
                    return Ok(false);
                };
                self.entry = Some(entry);
                entry
            }
        };
        if entry.first >= low {
            return Ok(entry.first <= high);
        }
        if self.block_of != entry.ptr.addr {
            self.block.read(r, &entry.ptr, layouts, false)?;
            self.block_of = entry.ptr.addr;
        }
        let row = self.block.lower_bound(&low);
        Ok(row < self.block.len() && self.block.key(row) <= high)
    }
}
