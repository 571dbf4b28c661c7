//! Lends a log of the write buffer to helper threads that flush its rows (`flush/threads.rs`), and takes back the
//! rows that the threads did not flush.
//!
//! Invariants:
//! 1. While a layout's log is lent, another log with the same slots replaces it. The first `lent_slots` of these
//!    slots may have rows in the lent log.
//! 2. Returned rows are older than rows pushed in the meantime, and are inserted before them.

use crate::buffer::group::KeptRows;
use crate::buffer::log::{Fill, Log};
use crate::buffer::slot::{Batch, NO_OVERLAY, NO_SLOT};
use crate::buffer::write_buffer::{Slot, WriteBuffer};
use tidalite_base::SeriesId;
use tidalite_pager::Result;

/// Number of rows that are moved between two logs at once.
const MOVED_ROWS: usize = 1 << 12;

impl WriteBuffer {
    /// Whether a log is lent to helper threads.
    pub(crate) fn has_lent_log(&self) -> bool {
        self.lent_bytes > 0
    }

    /// Takes the log of a layout out of the write buffer, with all rows except those in overlays. An empty log with
    /// the same slots replaces it and receives the rows that are pushed meanwhile.
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

    /// Takes back the memory of a lent log, and the rows that the helper threads did not flush. `late` is true if
    /// some rows of the lent log overlapped stored rows or were out of order.
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
        // If no rows have to be inserted, keeps the memory of the returned log in use: the system has already mapped
        // its pages.
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

    /// Indices of the layouts whose log has rows.
    pub(crate) fn layouts_with_rows(&self) -> Vec<usize> {
        let layouts = 0..self.logs.len();
        layouts
            .filter(|&layout| self.logs[layout].rows() > 0)
            .collect()
    }

    /// Whether at least half the rows of a layout belong to series that have at least `rows_min` rows in the log.
    pub(crate) fn is_mostly_long(&self, layout: usize, rows_min: usize) -> bool {
        let log = &self.logs[layout];
        let rows = log.rows_by_slot().into_iter();
        let long: usize = rows.filter(|&rows| rows >= rows_min).sum();
        long >= log.rows().div_ceil(2)
    }

    /// Whether rows of this slot may be lent to helper threads. If so, the caller must take the log back before it
    /// reads the rows of the slot or changes them in any way but pushing.
    #[must_use]
    pub fn is_lent(&self, slot: Slot) -> bool {
        let log = &self.logs[slot.layout as usize];
        (slot.index as usize) < log.lent_slots
            && log.slots[slot.index as usize].overlay == NO_OVERLAY
    }
}

impl Log {
    /// Calls `f` with the series and the row count of every slot. The count is an upper bound on the number of
    /// distinct times, since repeated times are counted as often as they were pushed.
    pub(crate) fn each_slot(&self, mut f: impl FnMut(SeriesId, usize) -> Result<()>) -> Result<()> {
        debug_assert!(self.open == NO_SLOT, "the last batch is closed");
        let rows = self.rows_by_slot();
        self.slots
            .iter()
            .zip(rows)
            .try_for_each(|(slot, rows)| f(slot.series, rows))
    }

    /// Appends the rows of the log `newer`, whose last batch is closed, and takes over its round-robin state. The two
    /// logs must have the same slots.
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
