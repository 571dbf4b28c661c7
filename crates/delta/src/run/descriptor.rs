//! A run: an immutable sorted batch of rows, as described in the record.
//!
//! ```text
//! 0     8           72     80      88        96        104       124       144        152        160
//! | seq | directory | rows | bytes | oldest  | newest  | first   | last    | least    | greatest |
//! | u64 | tree 64 B | u64  | u64   | txn u64 | txn u64 | key 20  | key 20  | time i64 | time i64 |
//! ```
//!
//! `bytes` is the raw size of the rows: 8 for the series, 8 for the time, 8 per column. The two keys and the two times
//! are bounds: after a delete they may be wider than the rows.

use crate::key::{KEY_BYTES, Key};
use crate::run::block::row_bytes;
use crate::run::directory;
use tidalite_base::{Corrupt, SeriesId, TxnId, get_i64, get_u64, put_i64, put_u64};
use tidalite_kv::{TREE_BYTES, Tree};
use tidalite_pager::{PageWrite, Result};

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

/// Length in bytes of the description of a run in the record.
pub(crate) const RUN_BYTES: usize = GREATEST_AT + 8;

/// The owner id in the pages of a directory is this number plus the number of its run, so that it differs from the
/// ids of tables and series, which count from 1.
const DIRECTORY_OWNER: u64 = 1 << 47;

/// Description of a run: its directory, counts, bounds and age. The head of this file shows the file format.
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
                .ok_or_else(|| Corrupt::new("run in the delta's record", at, "no key", "a key"))
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

    /// Whether the run may have a row of the series with `from <= time <= to`, judged by the bounds of the run.
    pub(crate) fn may_hold(&self, place: (u32, SeriesId), from: i64, to: i64) -> bool {
        self.rows > 0
            && from <= to
            && self.first.place() <= place
            && place <= self.last.place()
            && self.time_least <= to
            && from <= self.time_greatest
    }

    /// Adds rows that were written to the run, with this many columns, to the counts and bounds of the run.
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

    /// Frees the extents and the directory of the run.
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
