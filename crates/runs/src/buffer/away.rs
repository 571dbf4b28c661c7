//! A log goes to other threads, and what they held back comes home (`flush/threads.rs`).
//!
//! Invariants:
//! 1. While a layout's log is away, another takes its place, with the same slots. Of these the first `away` may have rows in
//!    the one that is away.
//! 2. What comes back is older than what has come since: it goes before it.

use crate::buffer::group::Kept;
use crate::buffer::log::{Fill, Log};
use crate::buffer::slot::{NO_OVERLAY, NO_SLOT, Stretch};
use crate::buffer::staging::{Slot, Staging};
use tidalite_base::SeriesId;
use tidalite_pager::Result;

/// Rows that are moved at a time.
const MOVED_ROWS: usize = 1 << 12;

impl Staging {
    /// Whether a log is away.
    pub(crate) fn has_away(&self) -> bool {
        self.away_bytes > 0
    }

    /// Takes the rows of a layout out, all but those of overlays; others come into a log of their own meanwhile.
    pub(crate) fn take_away(&mut self, layout: usize) -> Log {
        assert!(self.away_bytes == 0, "one log is away at a time");
        self.hand_overs += 1;
        let log = &mut self.logs[layout];
        log.close_stretch();
        let rounds = log.rounds.whole();
        let spare = self.spare.take_if(|spare| spare.types == log.types);
        let mut fresh = spare.unwrap_or_else(|| Log::new(&log.types, self.budget_bytes));
        fresh.slots.clone_from(&log.slots);
        fresh.clear();
        fresh.late = log.late;
        fresh.away = fresh.slots.len();
        if let Some(slots) = rounds {
            fresh.resume_rounds(slots);
        }
        let away = std::mem::replace(log, fresh);
        self.away_bytes = away.bytes_taken();
        away
    }

    /// A log is back: its memory, and of its rows those that were held back. `late`: not all simply followed what was there.
    pub(crate) fn bring_back<'k>(
        &mut self,
        layout: usize,
        mut memory: Log,
        kept: impl IntoIterator<Item = &'k Kept>,
        late: bool,
    ) {
        let log = &mut self.logs[layout];
        self.away_bytes = 0;
        log.away = 0;
        log.late |= late;
        let mut kept = kept.into_iter().filter(|kept| !kept.is_empty()).peekable();
        // Where nothing came meanwhile, the memory that is used next is the one that has been written before.
        if kept.peek().is_some() || log.rows() == 0 {
            self.hand_overs += 1;
            log.close_stretch();
            memory.clear();
            memory.slots.clone_from(&log.slots);
            memory.late = log.late;
            for kept in kept {
                kept.stage(&mut memory);
            }
            memory.append_log(log, &mut self.fill);
            std::mem::swap(log, &mut memory);
        } else if late {
            log.note_late();
        }
        memory.slots.clear();
        memory.clear();
        self.spare = Some(memory);
        self.grouped();
    }

    /// The layouts that have rows in a log.
    pub(crate) fn logged(&self) -> Vec<usize> {
        let layouts = 0..self.logs.len();
        layouts
            .filter(|&layout| self.logs[layout].rows() > 0)
            .collect()
    }

    /// Whether half the rows of a layout, or more, are of series that have at least `rows_min` of them.
    pub(crate) fn is_mostly_long(&self, layout: usize, rows_min: usize) -> bool {
        let log = &self.logs[layout];
        let rows = log.rows_by_slot().into_iter();
        let long: usize = rows.filter(|&rows| rows >= rows_min).sum();
        long >= log.rows().div_ceil(2)
    }

    /// Bytes that the rows cost which are away.
    #[must_use]
    pub fn bytes_away(&self) -> usize {
        self.away_bytes
    }

    /// Whether rows of a slot may be away: before it is read, or its rows change otherwise than by pushing, they must be back.
    #[must_use]
    pub fn is_away(&self, slot: Slot) -> bool {
        let log = &self.logs[slot.layout as usize];
        (slot.index as usize) < log.away && log.slots[slot.index as usize].overlay == NO_OVERLAY
    }
}

impl Log {
    /// Calls `f` with the series of every slot, and how many rows it has here; at most, since repeated times are counted as often
    /// as they were pushed.
    pub(crate) fn each_slot(&self, mut f: impl FnMut(SeriesId, usize) -> Result<()>) -> Result<()> {
        let rows = self.rows_by_slot();
        self.slots
            .iter()
            .zip(rows)
            .try_for_each(|(slot, rows)| f(slot.series, rows))
    }

    /// Appends the rows of a log whose last stretch is closed, and goes on as it would. The slots are the same.
    fn append_log(&mut self, newer: &mut Log, fill: &mut Fill) {
        self.close();
        let before = self.rows();
        for from in (0..newer.rows()).step_by(MOVED_ROWS) {
            let to = newer.rows().min(from + MOVED_ROWS);
            newer.with_rows(from, to, fill, |rows| self.extend(rows));
        }
        let stretches = newer.stretches.iter().map(|own| Stretch {
            slot: own.slot,
            start: own.start + before as u32,
        });
        self.stretches.extend(stretches);
        self.open = NO_SLOT;
        self.open_start = before + newer.open_start;
        self.rounds.go_on_as(&mut newer.rounds, before);
        if self.rounds.are_on() {
            self.rounds.due = self.due();
        }
    }
}
