//! A run: an immutable sorted batch of rows, as the record describes it.
//!
//! ```text
//! 0     8           72     80      88        96        104       124       144        152        160
//! | seq | directory | rows | bytes | oldest  | newest  | first   | last    | least    | greatest |
//! | u64 | tree 64 B | u64  | u64   | txn u64 | txn u64 | key 20  | key 20  | time i64 | time i64 |
//! ```
//!
//! `bytes` is what the rows weigh raw: 8 for the series, 8 for the time, 8 a column. The two keys and the two
//! times are bounds: after a delete they may be wider than the rows.

use crate::bugs::{Bug, active};
use crate::counters::{BLOCK_BYTES_MAX, Work};
use crate::key::{KEY_BYTES, Key};
use crate::run::block::{block_rows_max, encode_block};
use crate::run::directory::{self, Entry};
use crate::step_sizes::extent_bytes;
use tidalite_base::{Corrupt, SeriesId, TxnId, get_i64, get_u64, put_i64, put_u64};
use tidalite_codec::{ColumnType, Hint, Rows, RowsRef, time_span};
use tidalite_kv::{TREE_BYTES, Tree};
use tidalite_pager::{Error, Extent, Header, Kind, PageWrite, Result, seal_block};

const SEQ_AT: usize = 0;
const DIRECTORY_AT: usize = SEQ_AT + 8;
const ROWS_AT: usize = DIRECTORY_AT + TREE_BYTES;
const BYTES_AT: usize = ROWS_AT + 8;
const OLDEST_AT: usize = BYTES_AT + 8;
const NEWEST_AT: usize = OLDEST_AT + 8;
const FIRST_AT: usize = NEWEST_AT + 8;
const LAST_AT: usize = FIRST_AT + KEY_BYTES;
const LEAST_AT: usize = LAST_AT + KEY_BYTES;
const GREATEST_AT: usize = LEAST_AT + 8;

/// Bytes of a run in the record.
pub(crate) const RUN_BYTES: usize = GREATEST_AT + 8;

/// Directories are owned by this number plus the run's; tables and series count from 1.
const DIRECTORY_OWNER: u64 = 1 << 47;

/// Where a block begins inside an extent: multiples of this.
pub(crate) const BLOCK_ALIGN: usize = 8;

/// Raw bytes of a row in a layout of so many columns.
pub(crate) fn row_bytes(columns: usize) -> u64 {
    8 * (2 + columns as u64)
}

/// See the head of this file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) seq: u64,
    pub(crate) directory: Tree,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) txn_oldest: TxnId,
    pub(crate) txn_newest: TxnId,
    pub(crate) first: Key,
    pub(crate) last: Key,
    pub(crate) time_least: i64,
    pub(crate) time_greatest: i64,
}

impl Run {
    pub(crate) fn new(seq: u64, txn_oldest: TxnId, txn_newest: TxnId) -> Self {
        Self {
            seq,
            directory: Tree::new(DIRECTORY_OWNER + (seq & (DIRECTORY_OWNER - 1))),
            rows: 0,
            bytes: 0,
            txn_oldest,
            txn_newest,
            first: Key::new(u32::MAX, SeriesId(u64::MAX), i64::MAX),
            last: Key::MIN,
            time_least: i64::MAX,
            time_greatest: i64::MIN,
        }
    }

    pub(crate) fn encode(&self, bytes: &mut [u8]) {
        put_u64(bytes, SEQ_AT, self.seq);
        bytes[DIRECTORY_AT..ROWS_AT].copy_from_slice(&self.directory.encode());
        put_u64(bytes, ROWS_AT, self.rows);
        put_u64(bytes, BYTES_AT, self.bytes);
        put_u64(bytes, OLDEST_AT, self.txn_oldest.0);
        put_u64(bytes, NEWEST_AT, self.txn_newest.0);
        bytes[FIRST_AT..LAST_AT].copy_from_slice(&self.first.encode());
        bytes[LAST_AT..LEAST_AT].copy_from_slice(&self.last.encode());
        put_i64(bytes, LEAST_AT, self.time_least);
        put_i64(bytes, GREATEST_AT, self.time_greatest);
    }

    pub(crate) fn decode(bytes: &[u8], at: u64) -> Result<Self> {
        let key = |from: usize| {
            Key::decode(&bytes[from..from + KEY_BYTES])
                .ok_or_else(|| Corrupt::new("run in the front's record", at, "no key", "a key"))
        };
        Ok(Self {
            seq: get_u64(bytes, SEQ_AT),
            directory: Tree::decode(&bytes[DIRECTORY_AT..ROWS_AT])?,
            rows: get_u64(bytes, ROWS_AT),
            bytes: get_u64(bytes, BYTES_AT),
            txn_oldest: TxnId(get_u64(bytes, OLDEST_AT)),
            txn_newest: TxnId(get_u64(bytes, NEWEST_AT)),
            first: key(FIRST_AT)?,
            last: key(LAST_AT)?,
            time_least: get_i64(bytes, LEAST_AT),
            time_greatest: get_i64(bytes, GREATEST_AT),
        })
    }

    /// Whether a row of the series within these times is possible at all.
    pub(crate) fn may_hold(&self, place: (u32, SeriesId), from: i64, to: i64) -> bool {
        self.rows > 0
            && from <= to
            && self.first.place() <= place
            && place <= self.last.place()
            && self.time_least <= to
            && from <= self.time_greatest
    }

    /// Counts rows that were written to it, of so many columns.
    pub(crate) fn count(
        &mut self,
        (rows, columns): (u64, usize),
        (first, last): (Key, Key),
        (least, greatest): (i64, i64),
    ) {
        let bytes = rows * row_bytes(columns);
        self.rows = self.rows.saturating_add(rows);
        self.bytes = self.bytes.saturating_add(bytes);
        self.first = self.first.min(first);
        self.last = self.last.max(last);
        self.time_least = self.time_least.min(least);
        self.time_greatest = self.time_greatest.max(greatest);
    }

    /// Frees everything that the run owns.
    pub(crate) fn free<W: PageWrite>(mut self, w: &mut W) -> Result<()> {
        let mut extents = Vec::new();
        directory::each_extent(&self.directory, w, |extent, _| {
            extents.push(extent);
            Ok(())
        })?;
        for extent in &extents {
            w.free_extent(extent);
        }
        self.directory.clear(w)
    }
}

/// Collects encoded blocks and writes them as extents of a run.
#[derive(Debug, Default)]
pub(crate) struct BlockStore {
    buffer: Vec<u8>,
    /// Where each block lies in the buffer, and its entry; the pointer is still null.
    blocks: Vec<(usize, usize, Entry)>,
}

impl BlockStore {
    pub(crate) fn add<W: PageWrite>(
        &mut self,
        run: &mut Run,
        w: &mut W,
        work: &mut Work,
        entry: Entry,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> Result<()> {
        let start = self.buffer.len().next_multiple_of(BLOCK_ALIGN);
        self.buffer.resize(start, 0);
        encode(&mut self.buffer);
        self.blocks.push((start, self.buffer.len() - start, entry));
        if self.buffer.len() + BLOCK_BYTES_MAX > extent_bytes() {
            self.flush(run, w, work)?;
        }
        Ok(())
    }

    /// Writes what was collected as one extent.
    pub(crate) fn flush<W: PageWrite>(
        &mut self,
        run: &mut Run,
        w: &mut W,
        work: &mut Work,
    ) -> Result<()> {
        if self.blocks.is_empty() {
            return Ok(());
        }
        let pages = self.buffer.len().div_ceil(w.page_size()) as u64;
        self.buffer.resize(pages as usize * w.page_size(), 0);
        let extent: Extent = w.alloc_extent(pages)?;
        for (start, len, entry) in &mut self.blocks {
            let header = Header {
                kind: Kind::RunBlock,
                flags: 0,
                owner: run.directory.id(),
                address: extent.addr + *start as u64,
                birth: w.txn(),
            };
            entry.ptr = seal_block(&mut self.buffer[*start..*start + *len], &header);
        }
        w.write_extent(extent.addr, &self.buffer)?;
        for (_, _, entry) in &self.blocks {
            directory::put_entry(&mut run.directory, w, entry)?;
        }
        directory::put_extent(&mut run.directory, w, &extent, self.blocks.len() as u64)?;
        work.blocks_written += self.blocks.len() as u64;
        work.extent_pages_written += pages;
        self.blocks.clear();
        self.buffer.clear();
        Ok(())
    }
}

/// The memory of a writer, and what it has learned of the rows: for the next one that writes rows of this kind.
#[derive(Debug, Default)]
pub(crate) struct Kit {
    store: BlockStore,
    /// The layout that `rows` and `hints` are of.
    types: Box<[ColumnType]>,
    series: Vec<u64>,
    rows: Rows,
    hints: Vec<Hint>,
}

impl Kit {
    /// What was learned of rows of this layout.
    pub(crate) fn hints_of(&self, types: &[ColumnType]) -> &[Hint] {
        match *self.types == *types {
            true => &self.hints,
            false => &[],
        }
    }

    /// Remembers what was learned of rows of a layout.
    pub(crate) fn learn(&mut self, types: &[ColumnType], hints: Vec<Hint>) {
        self.turn_to(types);
        self.hints = hints;
    }

    /// Remembers what another writer has learned.
    pub(crate) fn learn_from(&mut self, other: &Self) {
        self.learn(&other.types, other.hints.clone());
    }

    fn turn_to(&mut self, types: &[ColumnType]) {
        if *self.types != *types {
            self.types = types.into();
            self.rows = Rows::new(types.len());
            self.hints.clear();
        }
    }
}

/// Appends rows, in the order of their keys, to a run.
#[derive(Debug)]
pub(crate) struct RunWriter<'l> {
    run: Run,
    layouts: &'l [Box<[ColumnType]>],
    class: u32,
    kit: Kit,
}

impl<'l> RunWriter<'l> {
    /// Goes on with a run, or begins one.
    pub(crate) fn new(run: Run, layouts: &'l [Box<[ColumnType]>], kit: Kit) -> Self {
        debug_assert!(kit.rows.is_empty(), "its last rows were written");
        Self {
            run,
            layouts,
            class: u32::MAX,
            kit,
        }
    }

    /// Appends rows of one series, which lie after everything before.
    pub(crate) fn push<W: PageWrite>(
        &mut self,
        w: &mut W,
        work: &mut Work,
        place: (u32, SeriesId),
        rows: RowsRef<'_>,
    ) -> Result<()> {
        let (Some(&least), Some(&greatest)) = (rows.times().first(), rows.times().last()) else {
            return Ok(());
        };
        let (class, series) = place;
        let first = Key::new(class, series, least);
        self.begin(w, work, class, first)?;
        let columns = self.kit.rows.columns.len();
        let max = block_rows_max(columns);
        let mut from = 0;
        while from < rows.len() {
            // Rows of one time are in one block: readers look for the first of them by its key.
            let rest = rows.slice(from..rows.len());
            let taken = rest.cut(max - self.kit.rows.len());
            if taken == 0 && self.kit.rows.is_empty() {
                return Err(Error::Limit {
                    what: "rows of one time",
                    found: rest.between(rest.times()[0], rest.times()[0]).len() as u64,
                    limit: max as u64,
                });
            }
            self.kit.rows.extend(rest.slice(0..taken));
            self.kit.series.resize(self.kit.rows.len(), series.0);
            from += taken;
            if self.kit.rows.len() == max || taken < rest.len() {
                self.cut(w, work)?;
            }
        }
        let last = Key::new(class, series, greatest);
        self.count(rows.len(), (first, last), (least, greatest));
        Ok(())
    }

    /// Appends rows of many series, in the order of their keys, which lie after everything before: `series` has that of each row.
    pub(crate) fn push_many<W: PageWrite>(
        &mut self,
        w: &mut W,
        work: &mut Work,
        class: u32,
        series: &[u64],
        rows: RowsRef<'_>,
    ) -> Result<()> {
        debug_assert_eq!(series.len(), rows.len(), "a series a row");
        let times = rows.times();
        let Some(last) = rows.len().checked_sub(1) else {
            return Ok(());
        };
        let key = |row: usize| Key::new(class, SeriesId(series[row]), times[row]);
        self.begin(w, work, class, key(0))?;
        let max = block_rows_max(self.kit.rows.columns.len());
        let joins = |row: usize| series[row - 1] == series[row] && times[row - 1] == times[row];
        let mut from = 0;
        while from < rows.len() {
            // Rows of one time are in one block: readers look for the first of them by its key.
            let mut to = rows.len().min(from + max - self.kit.rows.len());
            while from < to && to < rows.len() && joins(to) {
                to -= 1;
            }
            if to == from && self.kit.rows.is_empty() {
                return Err(Error::Limit {
                    what: "rows of one time",
                    found: max as u64 + 1,
                    limit: max as u64,
                });
            }
            let is_whole = self.kit.rows.is_empty() && (to - from == max || to < rows.len());
            if is_whole {
                self.write_block(w, work, &series[from..to], rows.slice(from..to))?;
                from = to;
                continue;
            }
            self.kit.rows.extend(rows.slice(from..to));
            self.kit.series.extend_from_slice(&series[from..to]);
            from = to;
            if self.kit.rows.len() == max || from < rows.len() {
                self.cut(w, work)?;
            }
        }
        self.count(rows.len(), (key(0), key(last)), time_span(times));
        Ok(())
    }

    /// Sees that a run's rows are in order, and that those of another layout begin a block.
    fn begin<W: PageWrite>(
        &mut self,
        w: &mut W,
        work: &mut Work,
        class: u32,
        first: Key,
    ) -> Result<()> {
        // Rows come in order unless the runs that they are from are damaged.
        if self.run.rows > 0 && first <= self.run.last && !active(Bug::MergeForgetsWatermark) {
            let (found, expected) = (format!("{first:?}"), format!("after {:?}", self.run.last));
            return Err(Corrupt::new("rows for a run", 0, found, expected).into());
        }
        if class != self.class {
            self.cut(w, work)?;
            self.class = class;
            self.kit.turn_to(&self.layouts[class as usize]);
        }
        Ok(())
    }

    /// Counts rows that were appended.
    fn count(&mut self, rows: usize, span: (Key, Key), times: (i64, i64)) {
        let columns = self.kit.rows.columns.len();
        self.run.count((rows as u64, columns), span, times);
    }

    /// Makes the rows that were collected a block.
    fn cut<W: PageWrite>(&mut self, w: &mut W, work: &mut Work) -> Result<()> {
        let (series, rows) = (
            std::mem::take(&mut self.kit.series),
            std::mem::take(&mut self.kit.rows),
        );
        let written = self.write_block(w, work, &series, rows.view());
        (self.kit.series, self.kit.rows) = (series, rows);
        self.kit.series.clear();
        self.kit.rows.clear();
        written
    }

    fn write_block<W: PageWrite>(
        &mut self,
        w: &mut W,
        work: &mut Work,
        series: &[u64],
        rows: RowsRef<'_>,
    ) -> Result<()> {
        let Some(last) = rows.len().checked_sub(1) else {
            return Ok(());
        };
        let key = |row: usize| Key::new(self.class, SeriesId(series[row]), rows.times()[row]);
        let entry = Entry {
            first: key(0),
            last: key(last),
            ptr: tidalite_pager::Ptr::NULL,
            rows: rows.len() as u32,
        };
        let types = &self.layouts[self.class as usize];
        let hints = &mut self.kit.hints;
        self.kit.store.add(&mut self.run, w, work, entry, |out| {
            encode_block(self.class, types, series, rows, hints, out);
        })
    }

    /// Writes what is left and returns the run.
    pub(crate) fn finish<W: PageWrite>(mut self, w: &mut W, work: &mut Work) -> Result<(Run, Kit)> {
        self.cut(w, work)?;
        self.kit.store.flush(&mut self.run, w, work)?;
        Ok((self.run, self.kit))
    }
}
