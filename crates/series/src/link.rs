//! Links: each describes a leaf or a lower node, in a tree node or in the series record.
//!
//! ```text
//! 0      32      40    48      56         64      72
//! | ptr  | begin | end | count | data txn | bytes |
//! | 32 B |  i64  | i64 |  u64  |   u64    |  u64  |
//! ```
//!
//! `begin` and `end` are the first and the last timestamp below the link, both included. `data txn` is the newest
//! transaction with rows below the link. `bytes` is the size of the leaves below in their packed extents, including
//! alignment; a range delete subtracts it from an extent's live bytes without reading the leaves.

use crate::row::Row;
use tidalite_base::{TxnId, get_i64, get_u64, put_i64, put_u64};
use tidalite_codec::Stats;
use tidalite_pager::{PTR_BYTES, Ptr};

const BEGIN_AT: usize = PTR_BYTES;
const END_AT: usize = BEGIN_AT + 8;
const COUNT_AT: usize = END_AT + 8;
const DATA_TXN_AT: usize = COUNT_AT + 8;
const BYTES_AT: usize = DATA_TXN_AT + 8;

/// Length in bytes of an encoded link.
pub(crate) const LINK_BYTES: usize = BYTES_AT + 8;

/// A link to a leaf or to a node of a series' tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Pointer to the leaf's header and directory, or to the node's spine (its list of links).
    pub ptr: Ptr,
    /// First timestamp of the rows below the link.
    pub begin: i64,
    /// Last timestamp of the rows below the link.
    pub end: i64,
    /// Number of rows below the link.
    pub count: u64,
    /// The newest transaction that added or changed rows below the link.
    pub data_txn: TxnId,
    /// Length in bytes of all leaves below the link.
    pub bytes: u64,
}

impl Link {
    pub(crate) fn encode(&self, out: &mut [u8], at: usize) {
        assert!(self.begin <= self.end, "the first row is the earliest");
        self.ptr.encode(out, at);
        put_i64(out, at + BEGIN_AT, self.begin);
        put_i64(out, at + END_AT, self.end);
        put_u64(out, at + COUNT_AT, self.count);
        put_u64(out, at + DATA_TXN_AT, self.data_txn.0);
        put_u64(out, at + BYTES_AT, self.bytes);
    }

    #[inline]
    pub(crate) fn decode(bytes: &[u8], at: usize) -> Self {
        Self {
            ptr: Ptr::decode(bytes, at),
            begin: get_i64(bytes, at + BEGIN_AT),
            end: get_i64(bytes, at + END_AT),
            count: get_u64(bytes, at + COUNT_AT),
            data_txn: TxnId(get_u64(bytes, at + DATA_TXN_AT)),
            bytes: get_u64(bytes, at + BYTES_AT),
        }
    }

    /// True if the interval `from ..= to` contains every row below the link.
    pub(crate) fn inside(&self, from: i64, to: i64) -> bool {
        debug_assert!(from <= to, "an interval");
        from <= self.begin && self.end <= to
    }

    /// True if no row below the link can lie in the interval `from ..= to`.
    pub(crate) fn outside(&self, from: i64, to: i64) -> bool {
        debug_assert!(from <= to, "an interval");
        self.end < from || to < self.begin
    }
}

/// A link with the statistics of every column; used while a tree is modified.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) link: Link,
    pub(crate) stats: Vec<Stats>,
}

impl Entry {
    /// Creates an entry from a link whose statistics were not read.
    pub(crate) fn without_stats(link: Link) -> Self {
        Self {
            link,
            stats: Vec::new(),
        }
    }

    /// The last row below the link, taken from the statistics, which include the last value of each column.
    pub(crate) fn last_row(&self) -> Option<Row> {
        let words = self.stats.iter().map(Stats::last);
        Some(Row {
            time: self.link.end,
            words: words.collect::<Option<_>>()?,
        })
    }
}
