//! Grouping the staged rows of one layout or of all, those of overlays included.

use crate::buffer::group::{Group, Grouped, Kept, Plan, Sorting};
use crate::buffer::slot::{NO_OVERLAY, STRETCH_BYTES};
use crate::buffer::staging::{Slot, Staging};
use crate::run::block::row_bytes;
use tidalite_base::limits::VECTOR_ROWS;
use tidalite_codec::ColumnType;
use tidalite_pager::Result;

/// What would be left after whole vectors were taken away.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Remainder {
    /// Bytes of the rows in a tail page.
    pub(crate) row_bytes: usize,
    /// Bytes that they cost when they stay staged.
    pub(crate) staged_bytes: usize,
}

impl Staging {
    /// The layouts that have rows or overlays.
    pub(crate) fn layouts(&self) -> impl Iterator<Item = (usize, &[ColumnType])> {
        let logs = self.logs.iter().enumerate();
        logs.filter(|(_, log)| !log.slots.is_empty())
            .map(|(layout, log)| (layout, &*log.types))
    }

    /// What would be left if all whole vectors of each series were taken away; at most, since repeated times are counted as often as they were pushed.
    pub(crate) fn remainder(&mut self) -> Remainder {
        self.left_of(|rows| rows % VECTOR_ROWS)
    }

    /// The same where `left` says how many rows would be left of so many of a series.
    pub(crate) fn left_of(&mut self, left: impl Fn(usize) -> usize) -> Remainder {
        let mut all = Remainder::default();
        for log in &mut self.logs {
            log.close_stretch();
            let (rows, series) = match log.lone_round() {
                Some(slots) if self.overlays.is_empty() => (slots.len(), slots.len()),
                _ => {
                    let mut rows = log.rows_by_slot();
                    for (rows, state) in rows.iter_mut().zip(&log.slots) {
                        if let Some(overlay) = self.overlays.get(state.overlay as usize) {
                            *rows = overlay.len();
                        }
                    }
                    let left = rows.iter().map(|&rows| left(rows));
                    left.fold((0, 0), |(rows, series), left| {
                        (rows + left, series + usize::from(left > 0))
                    })
                }
            };
            all.row_bytes += rows * row_bytes(log.types.len()) as usize;
            all.staged_bytes += rows * 8 * (1 + log.types.len()) + series * STRETCH_BYTES;
        }
        all
    }

    /// Calls `f` with every series of a layout that has rows, in the order of series ids. `f` answers how many
    /// rows it took (the first ones); the others stay staged.
    pub(crate) fn group(
        &mut self,
        layout: usize,
        mut f: impl FnMut(Group<'_>) -> Result<usize>,
    ) -> Result<()> {
        self.group_all(layout, true, 0, one_by_one(&mut f))
    }

    /// The same; series that have up to `rows_max` rows may come together, and all their rows are taken.
    pub(crate) fn group_few(
        &mut self,
        layout: usize,
        rows_max: usize,
        f: impl FnMut(Grouped<'_>) -> Result<usize>,
    ) -> Result<()> {
        self.group_all(layout, true, rows_max, f)
    }

    /// The same of the series alone that have no overlay.
    pub(crate) fn group_log(
        &mut self,
        layout: usize,
        mut f: impl FnMut(Group<'_>) -> Result<usize>,
    ) -> Result<()> {
        self.group_all(layout, false, 0, one_by_one(&mut f))
    }

    pub(crate) fn group_all(
        &mut self,
        layout: usize,
        with_overlays: bool,
        rows_max: usize,
        mut f: impl FnMut(Grouped<'_>) -> Result<usize>,
    ) -> Result<()> {
        let Self {
            logs,
            overlays,
            hand_overs,
            grouping: scratch,
            copies,
            away_bytes,
            fill,
            ..
        } = self;
        assert!(*away_bytes == 0, "what is away comes first");
        *hand_overs += 1;
        let log = &mut logs[layout];
        log.close_stretch();
        // Where each commit has a row of each series, the next one will as well.
        let rounds = log.rounds.whole().or_else(|| log.one_round());
        if rows_max > 0
            && overlays.is_empty()
            && let Some(slots) = log.lone_round()
        {
            // They lie as they are wanted.
            let series = slots.iter().map(|&slot| log.slots[slot as usize].series.0);
            let series: Vec<u64> = series.collect();
            log.with_rows(0, series.len(), fill, |rows| {
                f(Grouped::Few {
                    series: &series,
                    rows,
                })
            })?;
            log.clear();
            if let Some(slots) = rounds {
                log.resume_rounds(slots);
            }
            return Ok(());
        }
        let plan = Plan::of(log, std::mem::take(scratch));
        let mut kept = Kept::new(log.types.len());
        let mut sorting = Sorting::new(log.types.len());
        let mut few = Vec::new();
        for part in 0..plan.parts() {
            if rows_max > 0 && plan.copy_few(log, part, copies, rows_max, &mut few) {
                copies.with_rows(log, 0, few.len(), |rows| {
                    f(Grouped::Few { series: &few, rows })
                })?;
                continue;
            }
            plan.part(log, part, copies, |slot, rows| {
                let state = log.slots[slot as usize];
                let series = state.series;
                if state.overlay != NO_OVERLAY {
                    let overlay = &mut overlays[state.overlay as usize];
                    if with_overlays && overlay.len() > 0 {
                        let rows = overlay.sorted();
                        let taken = f(Grouped::One(Group { series, rows }))?;
                        overlay.keep_from(taken);
                    }
                    return Ok(());
                }
                if rows.is_empty() {
                    return Ok(());
                }
                sorting.with(rows, |rows| {
                    let taken = f(Grouped::One(Group { series, rows }))?;
                    kept.keep(slot, rows, taken);
                    Ok(())
                })
            })?;
        }
        *scratch = plan.into_scratch();
        log.late |= sorting.late;
        log.clear();
        kept.stage(log);
        if let Some(slots) = rounds {
            log.resume_rounds(slots);
        }
        Ok(())
    }

    /// Ends a grouping of all layouts: everything is looked at anew.
    pub(crate) fn grouped(&mut self) {
        let _ = self.ready();
    }

    /// How many series are registered.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.by_series.len()
    }

    /// The columns of a slot.
    ///
    /// # Panics
    /// When the slot is not of this staging.
    #[must_use]
    pub fn types(&self, slot: Slot) -> &[ColumnType] {
        &self.logs[slot.layout as usize].types
    }
}

fn one_by_one(
    f: &mut impl FnMut(Group<'_>) -> Result<usize>,
) -> impl FnMut(Grouped<'_>) -> Result<usize> {
    move |grouped| match grouped {
        Grouped::One(group) => f(group),
        Grouped::Few { .. } => unreachable!("nobody asked for several at once"),
    }
}
