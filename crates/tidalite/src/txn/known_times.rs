//! Cache of a series' times in a write transaction, for merge policies that must check for existing rows.
//!
//! Invariants: 1. No row of the series, as its transaction sees it, is newer than `newest`, once `newest` is set. 2.
//! `times` holds exactly the times of rows within `from..=to`. 3. Any change of a series other than an insert (a
//! delete, a rollback to a savepoint) drops its `Guard` or keeps 1 and 2 true. 4. `Seen` holds all rows of time `of.0`,
//! while `WriteBuffer::flush_count` is `of.1`; any change of rows other than by `keep_distinct` drops it.

use std::collections::BTreeSet;
use tidalite_codec::Rows;

/// Maximum number of cached times. Beyond this the cached times are dropped, and looked up again when needed.
const KNOWN_ROWS_MAX: usize = 1 << 16;

/// A cache of times at which a series has rows, for a merge policy other than `Replace`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Guard {
    /// Time of the newest row of the series: `None` before the first lookup, `Some(None)` if there are no rows.
    pub(crate) newest: Option<Option<i64>>,
    pub(crate) from: i64,
    pub(crate) to: i64,
    pub(crate) times: Option<BTreeSet<i64>>,
    /// With the policy `KeepAll`: the time to which a row was added last, the number of rows of that time, and the
    /// flush counter at that moment.
    pub(crate) last: Option<LastTime>,
    /// With the policy `KeepDistinct`: the rows of the time that was looked up last.
    pub(crate) seen: Option<Box<Seen>>,
}

/// A time whose rows are all in the write buffer until the next flush.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastTime {
    pub(crate) time: i64,
    pub(crate) rows: usize,
    pub(crate) flush_count: u64,
}

impl Guard {
    /// The time of the newest row, if known; `Some(None)` if there are no rows.
    pub(crate) fn newest(&self) -> Option<Option<i64>> {
        self.newest
    }

    pub(crate) fn learn(&mut self, newest: Option<i64>) {
        self.newest = Some(newest);
    }

    /// Whether `time` is later than all rows; `None` if this is not known.
    pub(crate) fn is_newer(&self, time: i64) -> Option<bool> {
        self.newest
            .map(|newest| newest.is_none_or(|newest| newest < time))
    }

    /// Whether there is a row at `time`; `None` if this is not known.
    pub(crate) fn known(&self, time: i64) -> Option<bool> {
        let times = self.times.as_ref()?;
        (self.from <= time && time <= self.to).then(|| times.contains(&time))
    }

    pub(crate) fn note(&mut self, time: i64) {
        let Some(newest) = &mut self.newest else {
            return;
        };
        if let Some(times) = &mut self.times
            && self.from <= time
            && time <= self.to
        {
            times.insert(time);
            if times.len() > KNOWN_ROWS_MAX {
                self.times = None;
            }
        }
        *newest = Some(newest.map_or(time, |newest| newest.max(time)));
    }
}

/// The rows at one time, in order of arrival, with an index to find an equal row.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// The time of the rows, and the value of the flush counter when the rows were looked up.
    pub(crate) of: Option<(i64, u64)>,
    /// Whether the rows are in the write buffer. Otherwise they are already in pages, or there are none.
    pub(crate) buffered: bool,
    pub(crate) rows: Rows,
    /// The fingerprint of each row, with its position. Equal rows have equal fingerprints; rows with equal fingerprints
    /// are compared.
    pub(crate) prints: BTreeSet<(u64, u32)>,
}

impl Seen {
    pub(crate) fn new(columns: usize) -> Self {
        Self {
            of: None,
            buffered: false,
            rows: Rows::new(columns),
            prints: BTreeSet::new(),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.of = None;
        self.buffered = false;
        self.rows.clear();
        self.prints.clear();
    }

    pub(crate) fn add(&mut self, print: u64, time: i64, words: &[u64]) {
        self.prints.insert((print, self.rows.len() as u32));
        self.rows.push_row(time, words);
    }
}

/// The decision of the merge policy about a new row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// The row is to be added to the write buffer.
    Free,
    /// The row is to be ignored.
    LeftOut,
}
