//! What a write transaction knows of the times of a series whose merge policy asks for them.
//!
//! Invariants: 1. No row of the series, as its transaction sees it, is newer than `newest`, once that is known. 2. `times` holds
//! exactly the times of rows within `from..=to`. 3. Whatever changes a series other than by inserting (deletes, going back to
//! a savepoint) drops its `Guard` or keeps both true. 4. `Seen` tells of all rows of `of.0`, while `Staging::hand_overs` is `of.1`;
//! whoever changes rows otherwise than by `keep_distinct` drops it.

use std::collections::BTreeSet;
use tidalite_codec::Rows;

/// Times that are remembered at most; beyond, the stretch is looked up anew.
const KNOWN_ROWS_MAX: usize = 1 << 16;

/// What is known of the times of a series that may not replace rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Guard {
    /// `None` while nothing was looked up; `Some(None)`: there is no row.
    pub(crate) newest: Option<Option<i64>>,
    pub(crate) from: i64,
    pub(crate) to: i64,
    pub(crate) times: Option<BTreeSet<i64>>,
    /// Of a series that keeps all: the time of the last row, its rows, and when they were last seen staged.
    pub(crate) last: Option<LastTime>,
    /// Of a series that keeps what differs: the rows of the last time that was asked about.
    pub(crate) seen: Option<Box<Seen>>,
}

/// A time of which all rows are staged while nothing is handed over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastTime {
    pub(crate) time: i64,
    pub(crate) rows: usize,
    pub(crate) hand_overs: u64,
}

impl Guard {
    /// The newest time, once it is known.
    pub(crate) fn newest(&self) -> Option<Option<i64>> {
        self.newest
    }

    pub(crate) fn learn(&mut self, newest: Option<i64>) {
        self.newest = Some(newest);
    }

    /// Whether the time is behind all rows; `None` when nothing is known.
    pub(crate) fn is_newer(&self, time: i64) -> Option<bool> {
        self.newest
            .map(|newest| newest.is_none_or(|newest| newest < time))
    }

    /// Whether there is a row at the time; `None` when it is not known.
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

/// Rows of one time, in the order in which they arrived, and what finds one that is equal.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// The time, and the count of hand-overs when it was looked up.
    pub(crate) of: Option<(i64, u64)>,
    /// Whether they are staged; else they are stored, or there are none.
    pub(crate) staged: bool,
    pub(crate) rows: Rows,
    /// The print of each row, with its place. Equal rows have equal prints; rows with equal prints are compared.
    pub(crate) prints: BTreeSet<(u64, u32)>,
}

impl Seen {
    pub(crate) fn new(columns: usize) -> Self {
        Self {
            of: None,
            staged: false,
            rows: Rows::new(columns),
            prints: BTreeSet::new(),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.of = None;
        self.staged = false;
        self.rows.clear();
        self.prints.clear();
    }

    pub(crate) fn add(&mut self, print: u64, time: i64, words: &[u64]) {
        self.prints.insert((print, self.rows.len() as u32));
        self.rows.push_row(time, words);
    }
}

/// What is to be done with a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Stage it.
    Free,
    /// Leave it out.
    LeftOut,
}
