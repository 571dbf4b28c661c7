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
//! What is known of the times, and the invariants of it, stand in `txn/known_times.rs`.

use crate::series::write::SeriesMut;
use crate::txn::known_times::{Guard, Taken};
use crate::types::error::{Error, Result};
use crate::types::merge_policy::MergePolicy;
use std::collections::BTreeSet;

/// Rows on each side of a late one whose times are remembered: the next late row is often near.
const KNOWN_ROWS: usize = 512;

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
