//! Grouping the log by series: rows that lie scattered in the order of pushing come out series by series.
//!
//! Two steps, so that neither touches more places at once than the cache and the TLB hold: first the stretches
//! are distributed (stable) to parts of `PART_SLOTS` neighbouring series, then each part copies its rows to where
//! they belong. Ten thousand series fed in turn have neighbours next to each other in the log, so that a part
//! reads whole cache lines and writes to 128 places. Where they come in regular turns, `Turns` does without stretches.

use crate::buffer::copies::{Copies, PART_SLOTS, Places, Route};
use crate::buffer::log::Log;
use crate::buffer::slot::{NO_OVERLAY, NO_SLOT};
use crate::buffer::transposed::Turns;
use tidalite_base::SeriesId;
use tidalite_codec::{Rows, RowsRef, is_ascending};
use tidalite_pager::Result;

/// The rows of one series, sorted by time, of each those that count.
pub(crate) struct Group<'a> {
    pub(crate) series: SeriesId,
    pub(crate) rows: RowsRef<'a>,
}

/// What grouping hands out.
pub(crate) enum Grouped<'a> {
    One(Group<'a>),
    /// All rows of several series that have few each: in the order of the series, of each sorted by time and no time twice.
    Few {
        /// That of each row.
        series: &'a [u64],
        rows: RowsRef<'a>,
    },
}

/// Memory for grouping, kept: where each row goes.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// Slots in the order of their series.
    order: Vec<u32>,
    /// Place of a slot in `order`.
    rank: Vec<u32>,
    /// Stretches by part.
    index: Vec<Route>,
    parts: Vec<u32>,
}

/// Rows that stay staged, by slot.
pub(crate) struct Kept {
    rows: Rows,
    slots: Vec<(u32, usize)>,
}

impl Kept {
    pub(crate) fn new(columns: usize) -> Self {
        Self {
            rows: Rows::new(columns),
            slots: Vec::new(),
        }
    }

    /// Whether it keeps none.
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Keeps the rows of a slot from `taken` on.
    pub(crate) fn keep(&mut self, slot: u32, rows: RowsRef<'_>, taken: usize) {
        if taken < rows.len() {
            self.rows.extend(rows.slice(taken..rows.len()));
            self.slots.push((slot, rows.len() - taken));
        }
    }

    /// Stages them once more.
    pub(super) fn stage(&self, log: &mut Log) {
        let mut at = 0;
        for &(slot, rows) in &self.slots {
            log.switch(slot, usize::MAX / 2);
            log.extend(self.rows.slice(at..at + rows));
            at += rows;
        }
        log.close();
    }
}

/// Where the rows of a log are.
pub(crate) struct Plan {
    scratch: Scratch,
    turns: Option<Turns>,
    part_slots: usize,
}

impl Plan {
    /// Of a log whose last stretch is closed.
    pub(crate) fn of(log: &Log, mut scratch: Scratch) -> Self {
        scratch.rank(log);
        let turns = Turns::of(log, &scratch.rank);
        let part_slots = match &turns {
            Some(turns) => {
                let varying = log.columns.iter().filter(|column| !column.constant);
                turns.slots_at_once(8 * (1 + varying.count()))
            }
            None => PART_SLOTS,
        };
        scratch.distribute(log, part_slots);
        Self {
            scratch,
            turns,
            part_slots,
        }
    }

    /// The memory, for the next one.
    pub(super) fn into_scratch(self) -> Scratch {
        self.scratch
    }

    /// The part that a slot is in.
    pub(crate) fn part_of(&self, slot: u32) -> usize {
        self.scratch.rank[slot as usize] as usize / self.part_slots
    }

    pub(crate) fn parts(&self) -> usize {
        self.scratch.parts.len().saturating_sub(1)
    }

    /// Calls `f` with each slot of a part that has rows or an overlay, and the rows in the order in which they were pushed.
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

    /// Where the rows of each series of a part are in the log, if none has more than one stretch there: they need not be copied.
    fn places_in_log(&self, part: usize) -> Option<Places> {
        let stretches = self.stretches(part);
        if self.turns.is_some() || stretches.len() > self.part_slots {
            return None;
        }
        let mut places = [(0, 0); PART_SLOTS];
        for route in stretches {
            let place = &mut places[route.place()];
            if place.0 < place.1 {
                return None;
            }
            *place = (route.start(), route.start() + route.rows());
        }
        Some(places)
    }

    /// The slots of a part, in the order of their series.
    fn slots(&self, log: &Log, part: usize) -> &[u32] {
        let first = part * self.part_slots;
        let count = self.part_slots.min(log.slots.len() - first);
        &self.scratch.order[first..first + count]
    }

    /// How many rows a part has; of rounds the last one counts as whole.
    fn rows_about(&self, log: &Log, part: usize) -> usize {
        let routes = self.stretches(part).iter().map(|route| route.rows());
        let first = part * self.part_slots;
        let in_turn = self.turns.as_ref().map_or(0, |turns| {
            let places = turns.places(first..first + self.slots(log, part).len());
            places.len() * turns.rows_of(0)
        });
        routes.sum::<usize>() + in_turn
    }

    /// The stretches of a part.
    fn stretches(&self, part: usize) -> &[Route] {
        let ends = &self.scratch.parts;
        let from = part.checked_sub(1).map_or(0, |before| ends[before]) as usize;
        &self.scratch.index[from..ends[part] as usize]
    }

    /// Copies the rows of a part, one series after the other; answers where those of each are.
    fn copy(&self, log: &Log, part: usize, copies: &mut Copies) -> Places {
        let first = part * self.part_slots;
        let ranks = first..first + self.slots(log, part).len();
        let turns = self.turns.as_ref();
        let turns = turns.map(|turns| (turns, turns.places(ranks)));
        copies.copy_part(log, self.stretches(part), first, turns)
    }

    /// Copies the rows of a part, as `copy` does, and writes the series of each row to `series`, if none of its series has more than
    /// `rows_max` rows, or rows in an overlay, or rows that are not in order; answers whether it is so.
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
        // Many rows are not copied in vain.
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
        true
    }
}

/// Memory for rows that did not come in the order of their times.
pub(crate) struct Sorting {
    rows: Rows,
    /// Whether there were any.
    pub(crate) late: bool,
}

impl Sorting {
    pub(crate) fn new(columns: usize) -> Self {
        Self {
            rows: Rows::new(columns),
            late: false,
        }
    }

    /// Calls `f` with rows that are sorted, the newest of each time.
    pub(crate) fn with<T>(&mut self, rows: RowsRef<'_>, f: impl FnOnce(RowsRef<'_>) -> T) -> T {
        if rows.is_sorted_unique() {
            return f(rows);
        }
        self.late = true;
        self.rows.clear();
        self.rows.extend(rows);
        self.rows.sort_newest();
        f(self.rows.view())
    }
}

impl Scratch {
    fn rank(&mut self, log: &Log) {
        let slots = &log.slots;
        self.order.clear();
        self.order.extend(0..slots.len() as u32);
        if !slots.is_sorted_by_key(|slot| slot.series) {
            self.order
                .sort_unstable_by_key(|&slot| slots[slot as usize].series);
        }
        self.rank.resize(slots.len(), 0);
        for (rank, &slot) in self.order.iter().enumerate() {
            self.rank[slot as usize] = rank as u32;
        }
    }

    /// Distributes the stretches to parts of `part_slots` series.
    fn distribute(&mut self, log: &Log, part_slots: usize) {
        let parts = log.slots.len().div_ceil(part_slots);
        self.parts.clear();
        self.parts.resize(parts + 1, 0);
        let mut live = 0;
        for stretch in &log.stretches {
            if stretch.slot != NO_SLOT {
                let part = self.rank[stretch.slot as usize] as usize / part_slots;
                self.parts[part + 1] += 1;
                live += 1;
            }
        }
        for part in 1..=parts {
            self.parts[part] += self.parts[part - 1];
        }
        self.index.clear();
        self.index.resize(live, Route::default());
        for (at, stretch) in log.stretches.iter().enumerate() {
            if stretch.slot != NO_SLOT {
                let rank = self.rank[stretch.slot as usize] as usize;
                let start = stretch.start as usize;
                let rows = log.stretch_end(at) - start;
                let next = &mut self.parts[rank / part_slots];
                self.index[*next as usize] = Route::new(start, rows, rank % part_slots);
                *next += 1;
            }
        }
        // Each entry now says where its part ends, which is where the next one begins.
    }
}

impl Log {
    /// How many rows each slot has, those of the open stretch not counted.
    pub(super) fn rows_by_slot(&self) -> Vec<usize> {
        let mut rows = vec![0usize; self.slots.len()];
        for (at, stretch) in self.stretches.iter().enumerate() {
            if stretch.slot != NO_SLOT {
                rows[stretch.slot as usize] += self.stretch_end(at) - stretch.start as usize;
            }
        }
        self.each_in_rounds(|slot, count| rows[slot as usize] += count);
        rows
    }

    /// Rows that are not marked as gone.
    pub(super) fn live_rows(&self) -> usize {
        let gone = self.stretches.iter().enumerate();
        let gone = gone.filter(|(_, stretch)| stretch.slot == NO_SLOT);
        let gone: usize = gone
            .map(|(at, stretch)| self.stretch_end(at) - stretch.start as usize)
            .sum();
        self.rows() - gone
    }
}
