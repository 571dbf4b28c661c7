//! Preview of maintenance: reports what would be removed, without changing anything.

use super::age::waits;
use super::budget::Budget;
use super::cuts::{Cuts, add_cut};
use super::size::{Unit, cuts_of, oldest, used_bytes};
use crate::catalog::commit_clock::ClockReading;
use crate::catalog::entries::SeriesInfo;
use crate::database::handle::Database;
use crate::txn::read::ReadTxn;
use crate::types::error::Result;
use crate::types::instant::Steps;
use std::sync::Arc;

/// The rows of one series that maintenance would remove.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Removal {
    /// The series that would lose rows.
    pub series: Arc<SeriesInfo>,
    /// Number of rows that would be removed.
    pub rows: u64,
    /// Raw time of the first row to be removed, in the series' unit.
    pub from: i64,
    /// Raw time of the last row to be removed, in the series' unit.
    pub to: i64,
    /// Bytes of the leaves that would be removed, and a share of the bytes of a leaf that would lose some of its rows.
    /// Rows in the delta do not count.
    pub bytes: u64,
}

/// The rows that [`Database::maintain`] would remove.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Preview {
    /// The removals, one for each series that would lose rows.
    pub removals: Vec<Removal>,
    /// Total number of rows that would be removed.
    pub rows: u64,
    /// Total bytes of the leaves that would be removed, as in [`Removal::bytes`].
    pub bytes: u64,
    /// The clocks, if the wall clock is ahead and more would be removed by the wall clock: see [`Database::clock`].
    pub clock_ahead: Option<ClockReading>,
}

impl Database {
    /// Reports the rows that [`maintain`](Self::maintain) with this budget would remove, without changing anything. The
    /// result is exact for policies by age, except that it counts the row per column that downsampling keeps; for a cap
    /// it may differ by a leaf of a series, because the bytes freed by a removal are known only afterwards.
    ///
    /// # Errors
    /// `InvalidInput` as for `maintain`, except while another writer is active or with a read-only handle; as for
    /// [`begin_read`](Self::begin_read); damage in a series that would lose rows.
    ///
    /// # Cost
    /// Reads the records of the series that policies select, and the nodes of series that would lose rows.
    pub fn preview_maintenance(&self, budget: &Budget) -> Result<Preview> {
        let (now, ahead) = self.now_for(budget)?;
        let snap = self.begin_read()?;
        let mut cuts = snap.cuts_by_age(now)?;
        let mut preview = Preview::default();
        if let Some(reading) = ahead
            && waits(&snap, &cuts, reading.wall)?
        {
            preview.clock_ahead = ahead;
        }
        self.cut_by_caps(&snap, &mut cuts)?;
        for (id, cut) in cuts {
            let Some(removal) = snap.removal(id, cut)? else {
                continue;
            };
            preview.rows += removal.rows;
            preview.bytes = preview.bytes.saturating_add(removal.bytes);
            preview.removals.push(removal);
        }
        Ok(preview)
    }

    /// Adds the removals that caps on bytes require beyond the existing cuts.
    fn cut_by_caps(&self, snap: &ReadTxn, cuts: &mut Cuts) -> Result<()> {
        let mut file_cap = u64::MAX;
        for (_, policy) in snap.retentions()? {
            let Some(cap) = policy.bytes else { continue };
            if policy.pattern.is_empty() {
                file_cap = cap.min(file_cap);
            } else {
                let used = snap.series_bytes(&policy.pattern)?;
                add_units(snap, &policy.pattern, used.saturating_sub(cap), cuts)?;
            }
        }
        if file_cap < u64::MAX {
            if !self.pager.options().read_only {
                self.expect_possible(file_cap, &|| self.try_begin_write())?;
            }
            let used = used_bytes(&self.pager.stat()?, file_cap);
            let excess = used.saturating_sub(file_cap);
            if excess > 0 {
                add_units(snap, "", excess.saturating_sub(snap.dead_room()?), cuts)?;
            }
        }
        Ok(())
    }
}

/// If the existing cuts remove less than `excess` bytes from the pattern's series, adds cuts of the oldest rows that
/// remain.
fn add_units(snap: &ReadTxn, pattern: &str, excess: u64, cuts: &mut Cuts) -> Result<()> {
    let mut gone = 0u64;
    for info in snap.list_for_policies(pattern)? {
        if let Some(&cut) = cuts.get(&info.id) {
            gone = gone.saturating_add(snap.leaf_bytes_before(&info, cut)?);
        }
    }
    let excess = excess.saturating_sub(gone);
    if excess == 0 {
        return Ok(());
    }
    // The oldest units include units that existing cuts already remove. So the bytes of these are requested in
    // addition, and these units are then filtered out.
    let units = snap
        .units(pattern, excess.saturating_add(gone))?
        .into_iter();
    let beyond = |unit: &Unit| cuts.get(&unit.id).is_none_or(|&cut| cut < unit.cut);
    let units: Vec<Unit> = units.filter(beyond).collect();
    for (id, cut) in cuts_of(&oldest(units, excess)) {
        add_cut(cuts, id, cut);
    }
    Ok(())
}

impl ReadTxn {
    /// Bytes of the leaves of a series before a raw time. The leaf that contains this time counts in proportion to the
    /// part of its time span before it.
    fn leaf_bytes_before(&self, info: &SeriesInfo, cut: i64) -> Result<u64> {
        let mut bytes = 0u64;
        self.tree_of(info)?
            .for_each_leaf_while(&self.pages, |leaf| {
                let share = if leaf.end < cut {
                    leaf.bytes
                } else if leaf.begin < cut {
                    let (from, to) = (i128::from(leaf.begin), i128::from(leaf.end));
                    let part = (i128::from(cut) - from) as f64 / (to - from + 1) as f64;
                    (leaf.bytes as f64 * part) as u64
                } else {
                    return false;
                };
                bytes = bytes.saturating_add(share);
                true
            })?;
        Ok(bytes)
    }

    /// The rows of a series before a raw time; `None` if there are no such rows.
    fn removal(&self, id: tidalite_base::SeriesId, cut: i64) -> Result<Option<Removal>> {
        let Some(series) = self.series_by_id(id)? else {
            return Ok(None);
        };
        let range = series.query(..Steps(cut));
        let rows = range.count()?;
        let mut cursor = series.cursor();
        let from = cursor.first()?.map(|row| row.time);
        let to = match rows.checked_sub(1) {
            Some(last) => cursor.nth(last)?.map(|row| row.time),
            None => None,
        };
        let (Some(from), Some(to)) = (from, to) else {
            return Ok(None);
        };
        let info = series.info();
        let bytes = self.leaf_bytes_before(info, cut)?;
        Ok(self.info(id)?.map(|series| Removal {
            series,
            rows,
            from,
            to,
            bytes,
        }))
    }
}
