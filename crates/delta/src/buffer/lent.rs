//! Lends a log to helper threads, and takes back the rows that they held back (`flush/threads.rs`).
//!
//! Invariants:
//! 1. While a layout's log is lent, another log with the same slots replaces it. The first `away` of these slots may
//!    have rows in the lent log.
//! 2. Returned rows are older than rows pushed in the meantime, and are inserted before them.

use crate::buffer::group::KeptRows;
use crate::buffer::log::{Fill, Log};
use crate::buffer::slot::{Batch, NO_OVERLAY, NO_SLOT};
use crate::buffer::write_buffer::{Slot, WriteBuffer};
use tidalite_base::SeriesId;
use tidalite_pager::Result;

/// Number of rows that are moved at once.
const MOVED_ROWS: usize = 1 << 12;

impl WriteBuffer {
    /// Whether a log is lent to helper threads.
    pub(crate) fn has_lent_log(&self) -> bool {
        self.lent_bytes > 0
    }

    /// Takes the log of a layout, with all rows except those in overlays. A fresh log replaces it and receives new
    /// rows meanwhile.
    pub(crate) fn lend_log(&mut self, layout: usize) -> Log {
        assert!(self.lent_bytes == 0, "one log is away at a time");
        self.flush_count += 1;
        let log = &mut self.logs[layout];
        log.close_batch();
        let rounds = log.round_robin.slots_at_round_start();
        let spare = self.spare.take_if(|spare| spare.types == log.types);
        let mut fresh = spare.unwrap_or_else(|| Log::new(&log.types, self.budget_bytes));
        fresh.slots.clone_from(&log.slots);
        fresh.clear();
        fresh.late = log.late;
        fresh.lent_slots = fresh.slots.len();
        if let Some(slots) = rounds {
            fresh.resume_round_robin(slots);
        }
        let lent = std::mem::replace(log, fresh);
        self.lent_bytes = lent.bytes_taken();
        debug_assert!(self.lent_bytes > 0, "a lent log has rows");
        debug_assert_eq!(
            self.logs[layout].slots.len(),
            lent.slots.len(),
            "the same slots"
        );
        lent
    }

    /// Takes back the memory of a lent log and the rows that its threads held back. `late` is true if some of its
    /// rows did not simply follow the rows already there.
    pub(crate) fn take_back_log<'k>(
        &mut self,
        layout: usize,
        mut memory: Log,
        kept: impl IntoIterator<Item = &'k KeptRows>,
        late: bool,
    ) {
        let log = &mut self.logs[layout];
        debug_assert_eq!(*log.types, *memory.types, "a log returns to its layout");
        debug_assert!(
            memory.slots.len() <= log.slots.len(),
            "slots are only added while a log is lent"
        );
        self.lent_bytes = 0;
        log.lent_slots = 0;
        log.late |= late;
        let mut kept = kept.into_iter().filter(|kept| !kept.is_empty()).peekable();
        // If the new log is still empty, keeps the returned memory in use: it has been written before, so the system
        // has mapped its pages.
        if kept.peek().is_some() || log.rows() == 0 {
            self.flush_count += 1;
            log.close_batch();
            memory.clear();
            memory.slots.clone_from(&log.slots);
            memory.late = log.late;
            for kept in kept {
                kept.push_to(&mut memory);
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

    /// The layouts with rows in their log.
    pub(crate) fn layouts_with_rows(&self) -> Vec<usize> {
        let layouts = 0..self.logs.len();
        layouts
            .filter(|&layout| self.logs[layout].rows() > 0)
            .collect()
    }

    /// Whether at least half the rows of a layout belong to series that have at least `rows_min` of them.
    pub(crate) fn is_mostly_long(&self, layout: usize, rows_min: usize) -> bool {
        let log = &self.logs[layout];
        let rows = log.rows_by_slot().into_iter();
        let long: usize = rows.filter(|&rows| rows >= rows_min).sum();
        long >= log.rows().div_ceil(2)
    }

    /// Bytes of the rows that are lent to helper threads.
    #[must_use]
    pub fn lent_bytes(&self) -> usize {
        self.lent_bytes
    }

    /// Whether rows of this slot may be lent. The caller must take them back before it reads the slot, or changes its
    /// rows otherwise than by pushing.
    #[must_use]
    pub fn is_lent(&self, slot: Slot) -> bool {
        let log = &self.logs[slot.layout as usize];
        (slot.index as usize) < log.lent_slots
            && log.slots[slot.index as usize].overlay == NO_OVERLAY
    }
}

impl Log {
    /// Calls `f` with the series and the row count of every slot. The count is an upper bound, since repeated times are
    /// counted as often as they were pushed.
    pub(crate) fn each_slot(&self, mut f: impl FnMut(SeriesId, usize) -> Result<()>) -> Result<()> {
        debug_assert!(self.open == NO_SLOT, "the last batch is closed");
        let rows = self.rows_by_slot();
        self.slots
            .iter()
            .zip(rows)
            .try_for_each(|(slot, rows)| f(slot.series, rows))
    }

    /// Appends the rows of a log whose last batch is closed, and takes over its round-robin state. Both logs have the
    /// same slots.
    fn append_log(&mut self, newer: &mut Log, fill: &mut Fill) {
        self.close();
        let before = self.rows();
        debug_assert!(
            newer.open == NO_SLOT,
            "the last batch of the newer log is closed"
        );
        for from in (0..newer.rows()).step_by(MOVED_ROWS) {
            let to = newer.rows().min(from + MOVED_ROWS);
            newer.with_rows(from, to, fill, |rows| self.extend(rows));
        }
        let batches = newer.batches.iter().map(|own| Batch {
            slot: own.slot,
            start: own.start + before as u32,
        });
        self.batches.extend(batches);
        self.open = NO_SLOT;
        self.open_start = before + newer.open_start;
        debug_assert!(self.batches_ascend(), "batches of the newer log follow");
        self.round_robin.take_over(&mut newer.round_robin, before);
        if self.round_robin.is_active() {
            self.round_robin.flush_at = self.round_robin_flush_at();
        }
    }
}
