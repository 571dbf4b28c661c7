//! Equal timestamps: what becomes of a row whose time is taken.
//!
//! ```text
//! row ──> newer than every row? ──yes────────────────────────────> staged, as any row
//!             └─no──> time taken? (known stretch, else a search) ──no──┘
//!                         └─yes──> KeepFirst: left out    Error: refused, nothing is changed
//!                                  KeepAll: staged behind the others of its time (keep_all.rs)
//!                                  KeepDistinct: so, unless one of them is equal: then left out (distinct.rs)
//! ```
//!
//! The question is answered before a row is staged, not where rows meet later: everything below (staging, tail, runs, leaves)
//! knows one rule, that of two places the newer one has all there is of a time. So every reader agrees by construction, and
//! a policy can be changed at any time. `Replace` asks nothing.
//!
//! Invariants: 1. No row of the series, as its transaction sees it, is newer than `newest`, once that is known. 2. `times` holds
//! exactly the times of rows within `from..=to`. 3. Whatever changes a series other than by inserting (deletes, going back to
//! a savepoint) drops its `Guard` or keeps both true.

use crate::series::distinct::Seen;
use crate::series::write::SeriesMut;
use crate::types::error::{Error, Result};
use std::collections::BTreeSet;
use tidalite_base::limits::COLUMNS_MAX;

/// What a series does with a row at a time that it has a row at. Stored with the series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MergePolicy {
    /// The new row takes the place of the old one. Inserting then never has to look.
    #[default]
    Replace,
    /// The old row stays, the new one is left out without a word.
    KeepFirst,
    /// The call is refused with [`Error::TimeTaken`] and changes nothing; the transaction goes on.
    Error,
    /// Both stay, in the order in which they arrived, across transactions too. All rows of a time are counted, aggregated,
    /// scanned and deleted; what names one row by its time ([`Series::at`](crate::Series::at), a search, a join) takes the last
    /// to arrive. A time has room for 1024 rows, for fewer in a series of more than five columns ([`time_rows_max`]);
    /// one more is refused as beyond a limit. Changed to another policy, a series keeps the rows that it has: a row that replaces takes
    /// the place of all at its time.
    KeepAll,
    /// As [`KeepAll`](Self::KeepAll), but a row that is equal to one of those at its time is left out without a word: the rows
    /// of a time are a set, in the order in which each first arrived. So what is loaded twice is there once, and what differs is lost to
    /// nobody. [`Replace`](Self::Replace) and [`KeepFirst`](Self::KeepFirst) keep one row of a time, whatever others say.
    ///
    /// Rows are equal when all their columns are: numbers by their bits (a NaN is equal to the same NaN, 0.0 is not -0.0), null to
    /// null, texts by what they say. Of A, B, A the second A is left out, wherever the first one lies by then, and B stays the last
    /// to arrive. A row that is left out needs no room. Rows that were there before the series had this policy stay, equal ones too.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{MemoryStorage, MergePolicy, Options, Schema};
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// for _ in 0..2 {
    ///     let mut tx = db.begin_write()?;
    ///     let mut series = tx.series_merging("loads", &Schema::point(), MergePolicy::KeepDistinct)?;
    ///     for (time, value) in [(1_i64, 0.5), (2, 0.75), (2, 0.8), (2, 0.75)] {
    ///         series.insert(time, value)?;
    ///     }
    ///     tx.commit()?;
    /// }
    /// let snap = db.begin_read()?;
    /// assert_eq!(snap.series("loads")?.ok_or("no such series")?.count()?, 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    KeepDistinct,
}

/// Rows of one time that a series of so many columns takes at most under [`MergePolicy::KeepAll`] and
/// [`MergePolicy::KeepDistinct`].
#[must_use]
pub fn time_rows_max(columns: usize) -> usize {
    tidalite_runs::time_rows_max(columns.clamp(1, COLUMNS_MAX))
}

impl MergePolicy {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Replace,
        Self::KeepFirst,
        Self::Error,
        Self::KeepAll,
        Self::KeepDistinct,
    ];

    /// As the program writes it: `replace`, `keep-first`, `error`, `keep-all`, `keep-distinct`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Replace => "replace",
            Self::KeepFirst => "keep-first",
            Self::Error => "error",
            Self::KeepAll => "keep-all",
            Self::KeepDistinct => "keep-distinct",
        }
    }

    /// Whether several rows of one time stay.
    pub(crate) fn keeps_several(self) -> bool {
        matches!(self, Self::KeepAll | Self::KeepDistinct)
    }

    /// Three bits of a catalog entry.
    pub(crate) fn bits(self) -> u8 {
        match self {
            Self::Replace => 0,
            Self::KeepFirst => 1,
            Self::Error => 2,
            Self::KeepAll => 3,
            Self::KeepDistinct => 4,
        }
    }

    pub(crate) fn of_bits(bits: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.bits() == bits)
    }
}

/// Rows on each side of a late one whose times are remembered: the next late row is often near.
const KNOWN_ROWS: usize = 512;

/// Times that are remembered at most; beyond, the stretch is looked up anew.
const KNOWN_ROWS_MAX: usize = 1 << 16;

/// What is known of the times of a series that may not replace rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Guard {
    /// `None` while nothing was looked up; `Some(None)`: there is no row.
    newest: Option<Option<i64>>,
    from: i64,
    to: i64,
    times: Option<BTreeSet<i64>>,
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
    fn known(&self, time: i64) -> Option<bool> {
        let times = self.times.as_ref()?;
        (self.from <= time && time <= self.to).then(|| times.contains(&time))
    }

    fn note(&mut self, time: i64) {
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

/// What is to be done with a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Stage it.
    Free,
    /// Leave it out.
    LeftOut,
}

impl SeriesMut<'_> {
    /// Whether a row at `time` may be staged. Changes nothing but what is known.
    pub(crate) fn look(&mut self, time: i64) -> Result<Taken> {
        if self.keeps_several() {
            return Ok(Taken::Free);
        }
        if self.guard().is_newer(time) == Some(true) {
            return Ok(Taken::Free);
        }
        let taken = match self.guard().known(time) {
            Some(taken) => taken,
            None => self.look_around(time)?,
        };
        if taken {
            self.refuse(time)
        } else {
            Ok(Taken::Free)
        }
    }

    /// A row at `time` was staged.
    pub(crate) fn note(&mut self, time: i64) {
        self.guard().note(time);
    }

    fn refuse(&self, time: i64) -> Result<Taken> {
        match self.info().merge {
            MergePolicy::Error => Err(Error::TimeTaken {
                series: self.info().label(),
                time,
            }),
            MergePolicy::KeepFirst
            | MergePolicy::Replace
            | MergePolicy::KeepAll
            | MergePolicy::KeepDistinct => Ok(Taken::LeftOut),
        }
    }

    /// Learns the times around one; whether it is taken.
    #[cold]
    fn look_around(&mut self, time: i64) -> Result<bool> {
        let view = self.view()?;
        let newest = view.span().map(|(_, last)| last);
        let mut guard = Guard {
            newest: Some(newest),
            ..Guard::default()
        };
        if newest.is_none_or(|newest| newest < time) {
            *self.guard() = guard;
            return Ok(false);
        }
        let mut times = BTreeSet::new();
        let mut cursor = view.view().cursor();
        // Forward from the row at or before the time, and back from it.
        cursor.search(time)?;
        let mut there = cursor.time().is_some() || cursor.first()?;
        let start = cursor.time();
        (guard.from, guard.to) = (i64::MIN, i64::MAX);
        while there && let Some(at) = cursor.time() {
            times.insert(at);
            guard.to = at;
            if times.len() > KNOWN_ROWS && at >= time {
                break;
            }
            there = cursor.next()?;
        }
        if !there {
            guard.to = newest.unwrap_or(time);
        }
        if let Some(start) = start {
            cursor.search(start)?;
            let mut there = true;
            for _ in 0..KNOWN_ROWS {
                there = cursor.previous()?;
                let Some(at) = cursor.time().filter(|_| there) else {
                    break;
                };
                times.insert(at);
                guard.from = at;
            }
            if !there {
                guard.from = i64::MIN;
            }
        }
        drop(cursor);
        drop(view);
        let taken = times.contains(&time);
        guard.times = Some(times);
        *self.guard() = guard;
        Ok(taken)
    }

    /// Of rows in any order the places of those to be staged, in the order given; `None`: all of them.
    ///
    /// Cost: rows that ascend from behind the newest cost one look in all; others a search each, in order of time.
    pub(crate) fn admitted(&mut self, times: &[i64]) -> Result<Option<Vec<u32>>> {
        let Some(&first) = times.first() else {
            return Ok(None);
        };
        let newer = match self.guard().is_newer(first) {
            Some(newer) => newer,
            None => {
                self.look_around(first)?;
                self.guard().is_newer(first) == Some(true)
            }
        };
        if newer && times.is_sorted_by(|a, b| a < b) {
            return Ok(None);
        }
        let mut order: Vec<u32> = (0..times.len() as u32).collect();
        order.sort_by_key(|&place| times[place as usize]); // stable: of equal times the first comes first
        let newest = self.guard().newest.flatten();
        let mut admitted = Vec::with_capacity(times.len());
        let mut refused = None;
        {
            let view = self.view()?;
            let mut cursor = view.view().cursor();
            let mut before = None;
            for &place in &order {
                let time = times[place as usize];
                let late = newest.is_some_and(|newest| time <= newest);
                let taken = before == Some(time)
                    || (late && cursor.search(time)? == tidalite_series::Found::Exact);
                before = Some(time);
                if taken {
                    refused = refused.or(Some(time));
                } else {
                    admitted.push(place);
                }
            }
        }
        if let Some(time) = refused {
            self.refuse(time)?;
        }
        admitted.sort_unstable();
        Ok((admitted.len() < times.len()).then_some(admitted))
    }

    /// Rows at these times were staged.
    pub(crate) fn note_all(&mut self, times: impl Iterator<Item = i64>) {
        // What is known of a stretch may be incomplete now; the end is not.
        let greatest = times.max();
        let guard = self.guard();
        guard.times = None;
        if let (Some(newest), Some(greatest)) = (&mut guard.newest, greatest) {
            *newest = Some(newest.map_or(greatest, |newest| newest.max(greatest)));
        }
    }
}
