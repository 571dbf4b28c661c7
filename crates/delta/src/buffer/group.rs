//! Groups the rows of a log of the write buffer by series. The log itself holds them in the order in which they were
//! pushed.
//!
//! Two steps keep the number of memory locations in use within the cache and the TLB. First the batches are
//! distributed (stably) to parts of `PART_SLOTS` neighbouring series; then each part copies its rows to their target
//! positions. If ten thousand series are written in turn, neighbours are adjacent in the log, so a part reads whole
//! cache lines and writes to 128 places. Rows in regular round-robin order need no batches; see `TransposedBatch`.

use crate::buffer::copies::{Copies, PART_SLOTS, Places, Route};
use crate::buffer::log::Log;
use crate::buffer::slot::{NO_OVERLAY, NO_SLOT};
use crate::buffer::transposed::TransposedBatch;
use tidalite_base::SeriesId;
use tidalite_codec::{Rows, RowsRef, is_ascending};
use tidalite_pager::Result;

/// The rows of one series, sorted by time, without rows that a newer one has replaced.
pub(crate) struct Group<'a> {
    pub(crate) series: SeriesId,
    pub(crate) rows: RowsRef<'a>,
}

/// Rows that grouping passes to its callback.
pub(crate) enum Grouped<'a> {
    One(Group<'a>),
    /// All rows of several series with few rows each: ordered by series, then by time, without repeated times.
    Few {
        /// Series id of each row.
        series: &'a [u64],
        rows: RowsRef<'a>,
    },
}

/// Reusable memory for grouping the rows of a log by series.
#[derive(Debug, Default)]
pub(crate) struct GroupScratch {
    /// Slots of the log, ordered by series id.
    order: Vec<u32>,
    /// Rank of each slot in `order`, by slot number.
    rank: Vec<u32>,
    /// References to the batches of the log, ordered by part (a group of neighbouring series that are copied
    /// together).
    index: Vec<Route>,
    parts: Vec<u32>,
}

/// Rows that stay in the write buffer, by slot.
pub(crate) struct KeptRows {
    rows: Rows,
    slots: Vec<(u32, usize)>,
}

impl KeptRows {
    pub(crate) fn new(columns: usize) -> Self {
        Self {
            rows: Rows::new(columns),
            slots: Vec::new(),
        }
    }

    /// Whether the write buffer keeps no rows after this grouping.
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Records that the rows of `slot` from index `taken` on stay in the write buffer.
    pub(crate) fn keep(&mut self, slot: u32, rows: RowsRef<'_>, taken: usize) {
        debug_assert!(taken <= rows.len(), "no more rows are taken than there are");
        if taken < rows.len() {
            self.rows.extend(rows.slice(taken..rows.len()));
            self.slots.push((slot, rows.len() - taken));
        }
    }

    /// Pushes the rows that stay in the write buffer to the emptied log again.
    pub(super) fn push_to(&self, log: &mut Log) {
        let mut at = 0;
        for &(slot, rows) in &self.slots {
            log.switch(slot);
            log.extend(self.rows.slice(at..at + rows));
            at += rows;
        }
        log.close();
        debug_assert_eq!(at, self.rows.len(), "every kept row is pushed again");
    }
}

/// Plan for reading the rows of a log grouped by series: the batches of each series and the rows that arrived in
/// rounds.
pub(crate) struct Plan {
    pub(super) scratch: GroupScratch,
    transposed: Option<TransposedBatch>,
    part_slots: usize,
}

impl Plan {
    /// Creates a plan for a log whose last batch is closed.
    pub(crate) fn of(log: &Log, mut scratch: GroupScratch) -> Self {
        debug_assert!(log.open == NO_SLOT, "the last batch is closed");
        debug_assert!(
            log.batches_ascend(),
            "batches ascend and end before the open one"
        );
        scratch.rank(log);
        let transposed = TransposedBatch::of(log, &scratch.rank);
        let part_slots = match &transposed {
            Some(transposed) => {
                let varying = log.columns.iter().filter(|column| !column.constant);
                transposed.slots_at_once(8 * (1 + varying.count()))
            }
            None => PART_SLOTS,
        };
        scratch.distribute(log, part_slots);
        Self {
            scratch,
            transposed,
            part_slots,
        }
    }

    /// Returns the number of the part that contains a slot.
    pub(crate) fn part_of(&self, slot: u32) -> usize {
        self.scratch.rank[slot as usize] as usize / self.part_slots
    }

    pub(crate) fn parts(&self) -> usize {
        self.scratch.parts.len().saturating_sub(1)
    }

    /// Calls `f` with each slot of a part that has rows or an overlay, and with the log rows of the slot in push
    /// order.
    pub(crate) fn part(
        &self,
        log: &Log,
        part: usize,
        copies: &mut Copies,
        mut f: impl FnMut(u32, RowsRef<'_>) -> Result<()>,
    ) -> Result<()> {
        if let Some(places) = self.places_in_log(part) {
            for (&slot, (from, to)) in self.slots(log, part).iter().zip(places) {
                if from < to || log.slots[slot as usize].overlay != NO_OVERLAY {
                    log.with_rows(from, to, &mut copies.fill, |rows| f(slot, rows))?;
                }
            }
            return Ok(());
        }
        let places = self.copy(log, part, copies);
        for (&slot, (from, to)) in self.slots(log, part).iter().zip(places) {
            if from == to && log.slots[slot as usize].overlay == NO_OVERLAY {
                continue;
            }
            copies.with_rows(log, from, to, |rows| f(slot, rows))?;
        }
        Ok(())
    }

    /// Returns the row range of each series of a part in the log, if no series has more than one batch: such rows can
    /// be read from the log directly, without a copy. Returns `None` otherwise.
    fn places_in_log(&self, part: usize) -> Option<Places> {
        let batches = self.batches(part);
        if self.transposed.is_some() || batches.len() > self.part_slots {
            return None;
        }
        let mut places = [(0, 0); PART_SLOTS];
        for route in batches {
            let place = &mut places[route.place()];
            if place.0 < place.1 {
                return None;
            }
            *place = (route.start(), route.start() + route.rows());
        }
        Some(places)
    }

    /// The slots of the series in a part, ordered by series id.
    fn slots(&self, log: &Log, part: usize) -> &[u32] {
        let first = part * self.part_slots;
        debug_assert!(first <= log.slots.len(), "a part has slots of its log");
        let count = self.part_slots.min(log.slots.len() - first);
        &self.scratch.order[first..first + count]
    }

    /// Approximate number of rows in a part. An incomplete last round is counted as complete.
    fn rows_about(&self, log: &Log, part: usize) -> usize {
        let routes = self.batches(part).iter().map(|route| route.rows());
        let first = part * self.part_slots;
        let in_turn = self.transposed.as_ref().map_or(0, |transposed| {
            let places = transposed.places(first..first + self.slots(log, part).len());
            places.len() * transposed.rows_of(0)
        });
        routes.sum::<usize>() + in_turn
    }

    /// References to the batches of the series in a part.
    fn batches(&self, part: usize) -> &[Route] {
        let ends = &self.scratch.parts;
        let from = part.checked_sub(1).map_or(0, |before| ends[before]) as usize;
        &self.scratch.index[from..ends[part] as usize]
    }

    /// Copies the rows of a part, grouped by series; returns the row range of each series.
    fn copy(&self, log: &Log, part: usize, copies: &mut Copies) -> Places {
        let first = part * self.part_slots;
        let ranks = first..first + self.slots(log, part).len();
        let transposed = self.transposed.as_ref();
        let transposed = transposed.map(|transposed| (transposed, transposed.places(ranks)));
        copies.copy_part(log, self.batches(part), first, transposed)
    }

    /// Like `copy`, and also writes the series of each row to `series`. Returns false if a series of the part has more
    /// than `rows_max` rows, rows in an overlay, or unsorted rows.
    pub(super) fn copy_few(
        &self,
        log: &Log,
        part: usize,
        copies: &mut Copies,
        rows_max: usize,
        series: &mut Vec<u64>,
    ) -> bool {
        let slots = self.slots(log, part);
        if slots
            .iter()
            .any(|&slot| log.slots[slot as usize].overlay != NO_OVERLAY)
        {
            return false;
        }
        // Stops before any row is copied if the part has too many rows, since the copies would not be used.
        if self.rows_about(log, part) > slots.len() * rows_max {
            return false;
        }
        let places = self.copy(log, part, copies);
        series.clear();
        for (&slot, (from, to)) in slots.iter().zip(places) {
            let times = &copies.times[from..to];
            if times.len() > rows_max || (times.len() > 1 && !is_ascending(times)) {
                return false;
            }
            series.resize(to, log.slots[slot as usize].series.0);
        }
        debug_assert!(series.is_sorted(), "the series of a part ascend");
        true
    }
}

/// Reusable memory for sorting rows that were not pushed in time order.
pub(crate) struct Sorting {
    rows: Rows,
    /// Whether any rows had to be sorted because they were pushed out of time order.
    pub(crate) late: bool,
}

impl Sorting {
    pub(crate) fn new(columns: usize) -> Self {
        Self {
            rows: Rows::new(columns),
            late: false,
        }
    }

    /// Calls `f` with the rows sorted by time, keeping the newest row of each time.
    pub(crate) fn with<T>(&mut self, rows: RowsRef<'_>, f: impl FnOnce(RowsRef<'_>) -> T) -> T {
        if rows.is_sorted_unique() {
            return f(rows);
        }
        self.late = true;
        self.rows.clear();
        self.rows.extend(rows);
        self.rows.sort_newest();
        debug_assert!(
            self.rows.view().is_sorted_unique(),
            "times ascend once sorted"
        );
        f(self.rows.view())
    }
}

impl GroupScratch {
    fn rank(&mut self, log: &Log) {
        let slots = &log.slots;
        self.order.clear();
        self.order.extend(0..slots.len() as u32);
        if !slots.is_sorted_by_key(|slot| slot.series) {
            self.order
                .sort_unstable_by_key(|&slot| slots[slot as usize].series);
        }
        debug_assert!(
            self.order
                .is_sorted_by_key(|&slot| slots[slot as usize].series),
            "ranks follow the order of the series"
        );
        self.rank.resize(slots.len(), 0);
        for (rank, &slot) in self.order.iter().enumerate() {
            self.rank[slot as usize] = rank as u32;
        }
    }

    /// Distributes the references to the batches to parts, each of which covers `part_slots` series.
    fn distribute(&mut self, log: &Log, part_slots: usize) {
        let parts = log.slots.len().div_ceil(part_slots);
        self.parts.clear();
        self.parts.resize(parts + 1, 0);
        let mut live = 0;
        for batch in &log.batches {
            if batch.slot != NO_SLOT {
                let part = self.rank[batch.slot as usize] as usize / part_slots;
                self.parts[part + 1] += 1;
                live += 1;
            }
        }
        for part in 1..=parts {
            self.parts[part] += self.parts[part - 1];
        }
        self.index.clear();
        self.index.resize(live, Route::default());
        for (at, batch) in log.batches.iter().enumerate() {
            if batch.slot != NO_SLOT {
                let rank = self.rank[batch.slot as usize] as usize;
                let start = batch.start as usize;
                let rows = log.batch_end(at) - start;
                let next = &mut self.parts[rank / part_slots];
                self.index[*next as usize] = Route::new(start, rows, rank % part_slots);
                *next += 1;
            }
        }
        debug_assert!(
            parts == 0 || self.parts[parts - 1] as usize == live,
            "every live batch is in a part"
        );
        // Each entry of `parts` is now the end of its part in `index`, which is the start of the next part.
    }
}

impl Log {
    /// Number of rows in the log per slot, without the rows of the open batch.
    pub(super) fn rows_by_slot(&self) -> Vec<usize> {
        let mut rows = vec![0usize; self.slots.len()];
        for (at, batch) in self.batches.iter().enumerate() {
            if batch.slot != NO_SLOT {
                rows[batch.slot as usize] += self.batch_end(at) - batch.start as usize;
            }
        }
        self.each_round_robin_slot(|slot, count| rows[slot as usize] += count);
        debug_assert!(
            rows.iter().sum::<usize>() <= self.rows(),
            "the rows of the slots are rows of the log"
        );
        rows
    }

    /// Number of rows in the log without rows that were moved to an overlay.
    pub(super) fn live_rows(&self) -> usize {
        let gone = self.batches.iter().enumerate();
        let gone = gone.filter(|(_, batch)| batch.slot == NO_SLOT);
        let gone: usize = gone
            .map(|(at, batch)| self.batch_end(at) - batch.start as usize)
            .sum();
        debug_assert!(gone <= self.rows(), "removed rows were rows of the log");
        self.rows() - gone
    }
}
