//! Groups the buffered rows of one layout or of all layouts, including rows in overlays.

use crate::buffer::group::{Group, Grouped, KeptRows, Plan, Sorting};
use crate::buffer::slot::{BATCH_BYTES, NO_OVERLAY};
use crate::buffer::write_buffer::{Slot, WriteBuffer};
use crate::run::block::row_bytes;
use tidalite_base::limits::VECTOR_ROWS;
use tidalite_codec::ColumnType;
use tidalite_pager::Result;

/// Estimate of the size of the rows that stay in the write buffer after whole vectors are removed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Remainder {
    /// Size in bytes of these rows in a tail page.
    pub(crate) row_bytes: usize,
    /// Size in bytes of these rows in the write buffer.
    pub(crate) buffered_bytes: usize,
}

impl WriteBuffer {
    /// Index and column types of each layout whose series have rows or overlays in the write buffer.
    pub(crate) fn layouts(&self) -> impl Iterator<Item = (usize, &[ColumnType])> {
        let logs = self.logs.iter().enumerate();
        logs.filter(|(_, log)| !log.slots.is_empty())
            .map(|(layout, log)| (layout, &*log.types))
    }

    /// Returns an upper bound on the size of the rows that remain after all whole vectors of each series are removed.
    /// Repeated times are counted as often as they were pushed.
    pub(crate) fn remainder(&mut self) -> Remainder {
        self.left_of(|rows| rows % VECTOR_ROWS)
    }

    /// Like [`remainder`](Self::remainder), but `left` maps the row count of a series to the number of rows that
    /// would remain.
    pub(crate) fn left_of(&mut self, left: impl Fn(usize) -> usize) -> Remainder {
        let mut all = Remainder::default();
        for log in &mut self.logs {
            log.close_batch();
            let (rows, series) = match log.only_round() {
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
            all.buffered_bytes += rows * 8 * (1 + log.types.len()) + series * BATCH_BYTES;
        }
        all
    }

    /// Calls `f` with every series of a layout that has rows, ordered by series id. `f` returns how many of the first
    /// rows it consumed; the other rows stay in the write buffer. Without `with_overlays`, series whose rows are in an
    /// overlay are skipped.
    pub(crate) fn group(
        &mut self,
        layout: usize,
        with_overlays: bool,
        mut f: impl FnMut(Group<'_>) -> Result<usize>,
    ) -> Result<()> {
        self.group_all(layout, with_overlays, 0, |grouped| match grouped {
            Grouped::One(group) => f(group),
            Grouped::Few { .. } => unreachable!("groups of several series were not requested"),
        })
    }

    /// Like `group`, but series with at most `rows_max` rows may be delivered in one batch, which consumes all their
    /// rows.
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
            overlay_bytes,
            flush_count,
            grouping: scratch,
            copies,
            lent_bytes,
            fill,
            ..
        } = self;
        assert!(*lent_bytes == 0, "what is away comes first");
        *flush_count += 1;
        let log = &mut logs[layout];
        log.close_batch();
        // If this commit has one row per series, the next commit is expected to have the same series in the same
        // order.
        let rounds = log
            .round_robin
            .slots_at_round_start()
            .or_else(|| log.batches_as_round());
        if rows_max > 0
            && overlays.is_empty()
            && let Some(slots) = log.only_round()
        {
            // If all rows of the log belong to one round, they are already ordered by series.
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
                log.resume_round_robin(slots);
            }
            return Ok(());
        }
        let plan = Plan::of(log, std::mem::take(scratch));
        let mut kept = KeptRows::new(log.types.len());
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
                        let before = overlay.bytes();
                        let rows = overlay.sorted();
                        debug_assert!(rows.is_sorted(), "rows of a group are sorted by time");
                        let taken = f(Grouped::One(Group { series, rows }))?;
                        debug_assert!(
                            taken <= overlay.len(),
                            "no more rows are taken than there are"
                        );
                        overlay.keep_from(taken);
                        *overlay_bytes = *overlay_bytes - before + overlay.bytes();
                    }
                    return Ok(());
                }
                if rows.is_empty() {
                    return Ok(());
                }
                sorting.with(rows, |rows| {
                    debug_assert!(rows.is_sorted_unique(), "a group has one row a time");
                    let taken = f(Grouped::One(Group { series, rows }))?;
                    kept.keep(slot, rows, taken);
                    Ok(())
                })
            })?;
        }
        *scratch = plan.scratch;
        log.late |= sorting.late;
        log.clear();
        kept.push_to(log);
        if let Some(slots) = rounds {
            log.resume_round_robin(slots);
        }
        Ok(())
    }

    /// Must be called after all layouts have been grouped: computes again at which row counts the next checks for a
    /// flush are due.
    pub(crate) fn grouped(&mut self) {
        let _ = self.ready();
    }

    /// Number of series that are registered with the write buffer.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.by_series.len()
    }

    /// The column types of the series of a slot.
    ///
    /// # Panics
    /// If the slot does not belong to this write buffer.
    #[must_use]
    pub fn types(&self, slot: Slot) -> &[ColumnType] {
        &self.logs[slot.layout as usize].types
    }
}
