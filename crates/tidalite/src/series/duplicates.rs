//! Merge policies: the treatment of a new row whose time already has a row.
//!
//! ```text
//! row ──> newer than every row? ──yes────────────────────────────> buffered, as any row
//!             └─no──> time taken? (cached times, else a search) ──no──┘
//!                         └─yes──> KeepFirst: ignored     Error: refused, nothing is changed
//!                                  KeepAll: buffered after the others of its time (keep_all.rs)
//!                                  KeepDistinct: likewise, unless one of them is equal: then ignored (distinct.rs)
//! ```
//!
//! The decision is made before a row is buffered, not where rows meet later. All lower layers (write buffer, tail,
//! runs, leaves) follow one rule: of two places the newer one has all rows of a time. All readers therefore agree by
//! construction, and a policy can be changed at any time. The policy `Replace` needs no check.
//!
//! The cache of times and its invariants are in `txn/known_times.rs`.

use crate::series::write::SeriesMut;
use crate::txn::known_times::{Guard, Taken};
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use crate::types::merge_policy::MergePolicy;
use std::collections::BTreeSet;

/// When the time of a late row is looked up, the times of this many rows on each side of it are cached, because the
/// next late row is often near.
const KNOWN_ROWS: usize = 512;

impl SeriesMut<'_> {
    /// Decides by the merge policy whether a row at `time` may be buffered. Changes only the cache.
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

    /// Updates the cache of times after a row at `time` was buffered.
    pub(crate) fn note(&mut self, time: i64) {
        self.guard().note(time);
    }

    fn refuse(&self, time: i64) -> Result<Taken> {
        match self.info().merge {
            MergePolicy::Error => Err(Error::from(Cause::TimeTaken {
                series: self.info().label(),
                time,
            })),
            MergePolicy::KeepFirst
            | MergePolicy::Replace
            | MergePolicy::KeepAll
            | MergePolicy::KeepDistinct => Ok(Taken::LeftOut),
        }
    }

    /// Caches the times of the rows around `time`; returns whether a row has exactly this time.
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
        // Caches the times of the rows after the row at or before `time`, then the times of the rows before that row.
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

    /// The indices of the rows that may be buffered, of rows in any order; the indices ascend. Returns `None` if all
    /// rows may.
    ///
    /// Cost: rows that ascend after the newest row need one check in total; each other row needs a search, in time
    /// order.
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

    /// Updates the cache of times after rows at these times were buffered.
    pub(crate) fn note_all(&mut self, times: impl Iterator<Item = i64>) {
        // The cached interval may lack some of these times, so it is dropped; the newest time is still known.
        let greatest = times.max();
        let guard = self.guard();
        guard.times = None;
        if let (Some(newest), Some(greatest)) = (&mut guard.newest, greatest) {
            *newest = Some(newest.map_or(greatest, |newest| newest.max(greatest)));
        }
    }
}
