//! The search of all series for old leaves that are not cold.
//!
//! The series are examined in the order of their ids, some thousands at a time, so that a call needs little memory and
//! ends in its time, however many series there are. Maintenance remembers in memory how far a call got, and the next
//! call continues from there.

use crate::catalog::entries::{SeriesInfo, decode_id, id_key};
use crate::catalog::retention::nanos;
use crate::database::handle::Database;
use crate::maintenance::cold::Cooled;
use crate::maintenance::policies::{Budget, raw_time};
use crate::txn::read::ReadTxn;
use crate::txn::write::WriteTxn;
use crate::types::error::Result;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Instant;
use tidalite_base::SeriesId;
use tidalite_codec::COLD;
use tidalite_series::KeptHot;
use tidalite_time::Timestamp;

/// Number of series that are examined in one snapshot, in about 10 ms if none has leaves to rewrite.
const SERIES_EACH: usize = 4096;

/// A part of the series, examined for old leaves.
struct Piece {
    /// The series with old leaves that are not cold, each with the raw time before which leaves are old.
    due: Vec<(SeriesId, i64)>,
    /// The first series that was not examined; `None` if there are no more.
    next: Option<SeriesId>,
}

impl Database {
    /// Rewrites old leaves in cold form if that saves enough, in series that no policy makes cold (`Budget::cold`).
    pub(super) fn cool_by_default(
        &self,
        now: Timestamp,
        kept: &mut KeptHot,
        budget: &Budget,
        begin: impl Fn() -> Result<Option<WriteTxn>>,
    ) -> Result<Cooled> {
        let Some(age) = budget.cold.filter(|_| COLD) else {
            return Ok(Cooled::default());
        };
        let horizon = i128::from(now.0) - i128::from(nanos(age));
        let chosen = self.begin_read()?.cold_by_policy()?;
        let position = &self.shared.cold_from;
        let mut from = SeriesId(position.load(Ordering::Relaxed));
        let cooled = self.cool_from(&mut from, horizon, &chosen, kept, budget, begin);
        position.store(from.0, Ordering::Relaxed);
        cooled
    }

    /// Rewrites leaves in cold form if all their rows are before `horizon` and that saves enough, in the series from
    /// the id `from` on, except the chosen ones, until the budget's time is over. Advances `from`, at the end to 0.
    pub(super) fn cool_from(
        &self,
        from: &mut SeriesId,
        horizon: i128,
        chosen: &BTreeSet<SeriesId>,
        kept: &mut KeptHot,
        budget: &Budget,
        begin: impl Fn() -> Result<Option<WriteTxn>>,
    ) -> Result<Cooled> {
        let start = Instant::now();
        let mut done = Cooled::default();
        loop {
            let piece = self
                .begin_read()?
                .old_leaves(*from, horizon, kept, chosen)?;
            done.join(self.cool_all(&piece.due, kept, &budget.left(start), &begin)?);
            if done.more {
                return Ok(done);
            }
            *from = piece.next.unwrap_or(SeriesId(0));
            done.more = piece.next.is_some();
            if !done.more || start.elapsed() >= budget.time {
                return Ok(done);
            }
        }
    }
}

impl ReadTxn {
    /// The series that a policy makes cold.
    fn cold_by_policy(&self) -> Result<BTreeSet<SeriesId>> {
        let mut chosen = BTreeSet::new();
        for (_, policy) in self.retentions()? {
            if policy.cold.is_some() {
                chosen.extend(self.list(&policy.pattern)?.iter().map(|info| info.id));
            }
        }
        Ok(chosen)
    }

    /// Examines some series from the id `from` on, except the chosen ones: leaves are old if all their rows are before
    /// `nanos`.
    fn old_leaves(
        &self,
        from: SeriesId,
        nanos: i128,
        kept: &KeptHot,
        chosen: &BTreeSet<SeriesId>,
    ) -> Result<Piece> {
        let mut due = Vec::new();
        let mut cursor = self.cache.roots.series.cursor(&self.pages);
        let mut there = cursor.seek_ge(&id_key(from))?;
        for _ in 0..SERIES_EACH {
            if !there {
                break;
            }
            let id = decode_id(cursor.key())?;
            if !chosen.contains(&id) {
                let info = SeriesInfo::decode(id, &cursor.value()?.bytes()?)?;
                let raw = raw_time(info.schema.unit, nanos);
                if self
                    .tree_of(&info)?
                    .has_warm_leaves(&self.pages, raw, kept)?
                {
                    due.push((id, raw));
                }
            }
            there = cursor.next()?;
        }
        let next = if there {
            Some(decode_id(cursor.key())?)
        } else {
            None
        };
        Ok(Piece { due, next })
    }
}
