//! Removal by age: for each series, the time before which the policies remove rows.

use super::cuts::{Cuts, add_cut, clock_of, raw_time};
use super::run::Run;
use crate::catalog::commit_clock::ClockReading;
use crate::catalog::entries::SeriesInfo;
use crate::catalog::retention::{KeepFrom, Retention, nanos};
use crate::catalog::rules::Rules;
use crate::txn::leaves::stored_tree;
use crate::txn::read::ReadTxn;
use crate::types::error::Result;
use crate::types::instant::Steps;
use crate::types::interval::EVER;
use std::collections::BTreeMap;
use std::sync::Arc;
use tidalite_base::SeriesId;
use tidalite_series::{KeptHot, SeriesTree};
use tidalite_time::Timestamp;

/// A series that a policy selects, with the times of its rows and the place where they are stored.
pub(super) struct Candidate {
    pub(super) info: Arc<SeriesInfo>,
    pub(super) tree: SeriesTree,
    /// Time of the first row, in leaves or in the delta.
    pub(super) begin: i64,
    pub(super) end: i64,
    /// Number of rows in the delta, and the times of the first and last of them; `None` if there are no such rows.
    pub(super) waiting: Option<(u64, i64, i64)>,
}

/// Number of rows of each series in the delta: committed rows that are not in leaves yet.
pub(super) type Waiting = BTreeMap<SeriesId, u64>;

impl ReadTxn {
    pub(crate) fn tree_of(&self, info: &SeriesInfo) -> Result<SeriesTree> {
        let types = info.schema.word_types();
        let records = &self.cache.roots.records;
        Ok(stored_tree(records, &self.pages, info.id, &types)?)
    }

    /// Counts the rows of each series in the delta. A series that never filled a leaf has its oldest rows there.
    pub(super) fn waiting(&self) -> Result<Waiting> {
        Ok(self.cache.delta.series_row_counts(&self.pages)?)
    }

    /// The series with the times of its rows; `None` if it has no rows.
    pub(super) fn candidate(
        &self,
        info: Arc<SeriesInfo>,
        waiting: &Waiting,
    ) -> Result<Option<Candidate>> {
        let tree = self.tree_of(&info)?;
        let mut span = tree.span();
        let mut own = None;
        if let Some(&rows) = waiting.get(&info.id) {
            let types = info.schema.word_types();
            let (delta, pages) = (&self.cache.delta, &self.pages);
            let first = delta.first(pages, info.id, &types, i64::MIN)?;
            let last = delta.latest(pages, info.id, &types, EVER)?;
            if let (Some((first, _)), Some((last, _))) = (first, last) {
                let (begin, end) = span.unwrap_or((first, last));
                span = Some((begin.min(first), end.max(last)));
                own = Some((rows, first, last));
            }
        }
        Ok(span.map(|(begin, end)| Candidate {
            info,
            tree,
            begin,
            end,
            waiting: own,
        }))
    }

    /// For each series, the time before which the policies by age remove rows at the time `now`.
    pub(super) fn cuts_by_age(&self, now: Timestamp) -> Result<Cuts> {
        let mut cuts = Cuts::new();
        let policies = self.retentions()?;
        if policies.iter().all(|(_, policy)| policy.keep.is_none()) {
            return Ok(cuts);
        }
        let waiting = self.waiting()?;
        let rules = Rules::of_policies(policies.clone())?;
        for (_, policy) in policies {
            self.cut_by_age(&policy, now, (&waiting, &rules), &mut cuts)?;
        }
        self.align(&rules, &mut cuts)?;
        Ok(cuts)
    }

    fn cut_by_age(
        &self,
        policy: &Retention,
        now: Timestamp,
        (waiting, rules): (&Waiting, &Rules),
        cuts: &mut Cuts,
    ) -> Result<()> {
        let Some(keep) = policy.keep else {
            return Ok(());
        };
        let keep = i128::from(nanos(keep));
        for info in self.list_for_policies(&policy.pattern)? {
            // A downsampling policy does not remove rows that it cannot replace, such as windows and texts.
            if policy.downsample.is_some() && rules.of(&info).is_empty() {
                continue;
            }
            let Some(own) = self.candidate(info, waiting)? else {
                continue;
            };
            let unit = own.info.schema.unit;
            let from = match policy.keep_from {
                KeepFrom::Now => i128::from(now.0),
                KeepFrom::Newest => clock_of(unit, own.end),
            };
            let raw = raw_time(unit, from - keep);
            if own.begin < raw {
                add_cut(cuts, own.info.id, raw);
            }
        }
        Ok(())
    }

    /// The series of the pattern that have leaves whose rows are all before `nanos` and that are neither cold nor in
    /// `kept`; each with that limit in the series' unit.
    pub(crate) fn warm_series(
        &self,
        pattern: &str,
        nanos: i128,
        kept: &KeptHot,
    ) -> Result<Vec<(SeriesId, i64)>> {
        let mut warm = Vec::new();
        for info in self.list(pattern)? {
            let tree = self.tree_of(&info)?;
            let raw = raw_time(info.schema.unit, nanos);
            if tree.has_warm_leaves(&self.pages, raw, kept)? {
                warm.push((info.id, raw));
            }
        }
        Ok(warm)
    }
}

/// The series with leaves that the policies make cold at the time `now`, each with the raw time of the limit.
pub(super) fn due_to_cool(
    snap: &ReadTxn,
    now: Timestamp,
    kept: &KeptHot,
) -> Result<Vec<(SeriesId, i64)>> {
    let mut due = Cuts::new();
    for (_, policy) in snap.retentions()? {
        if let Some(cold) = policy.cold {
            let horizon = i128::from(now.0) - i128::from(nanos(cold));
            for (id, raw) in snap.warm_series(&policy.pattern, horizon, kept)? {
                add_cut(&mut due, id, raw);
            }
        }
    }
    Ok(due.into_iter().collect())
}

impl Run<'_> {
    /// Removes rows that are too old. Records whether more rows would be removed if a wall clock that is ahead were
    /// trusted. Returns false if the call of `maintain` must end here.
    pub(super) fn by_age(&mut self, now: Timestamp, ahead: Option<ClockReading>) -> Result<bool> {
        let snap = self.database.begin_read()?;
        let cuts = snap.cuts_by_age(now)?;
        if let Some(reading) = ahead
            && waits(&snap, &cuts, reading.wall)?
        {
            self.done.clock_ahead = ahead;
        }
        let rules = snap.rules()?;
        let mut replaced = Cuts::new();
        let mut removed = Cuts::new();
        for (id, cut) in cuts {
            let info = snap.info(id)?;
            let is_replaced = info.is_some_and(|info| !rules.of(&info).is_empty());
            let cuts = if is_replaced {
                &mut replaced
            } else {
                &mut removed
            };
            cuts.insert(id, cut);
        }
        drop(snap);
        Ok(self.replace(replaced, &rules)? && self.remove(removed)?)
    }
}

/// Whether some series has rows that are too old by the wall clock and that `cuts` does not remove.
pub(super) fn waits(snap: &ReadTxn, cuts: &Cuts, wall: Timestamp) -> Result<bool> {
    for (id, raw) in snap.cuts_by_age(wall)? {
        let Some(series) = snap.series_by_id(id)? else {
            continue;
        };
        let kept = cuts.get(&id).copied().unwrap_or(i64::MIN);
        if kept < raw && series.query(Steps(kept)..Steps(raw)).count()? > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}
