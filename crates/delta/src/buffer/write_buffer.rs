//! The write buffer: rows of the open transaction that have not been flushed yet.
//!
//! ```text
//! push --> log (one per layout) - one series, enough rows for a leaf ---------> flushed early, while in cache
//!           |        \--- whole vectors of many series written in turn -----> grouped, flushed
//!           |        \--- budget reached, or commit: grouped by series -----> flushed to leaves, run, or tail
//!           `-- series is read or deleted from: its rows move to ...
//! push ----------> overlay (one per series that was read): sorted when read, grouped with the rest
//! ```
//!
//! A series that keeps all rows with the same time has an overlay as soon as one of its rows is not later than all
//! others.
//!
//! Invariants:
//! 1. If a slot has an overlay, the log has no rows of it; later pushes go to the overlay.
//! 2. Buffered rows are newer than all rows of their series in the delta and in the leaves.
//! 3. Between two flush calls, the log exceeds its budget by at most `CHECK_ROWS` rows per layout.
//! 4. `overlay_bytes` is the sum of the bytes of all overlays, so that a flush check after each row of a series with an
//!    overlay takes constant time.
//! 5. If a series keeps all rows with the same time, its rows in the log ascend strictly in time, so no two of them
//!    have the same time.

use crate::buffer::log::{Fill, Log};
use crate::buffer::overlay::Overlay;
use crate::buffer::slot::{BATCH_BYTES, NO_OVERLAY, NO_SLOT, SlotState};
use crate::buffer::{copies, group};
use crate::compaction::memory::CompactionScratch;
use crate::limits::LEAF_ROWS;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use tidalite_base::SeriesId;
use tidalite_codec::{ColumnType, EncoderState, Rows, RowsRef};

/// Default memory budget: size in bytes of the buffered rows at which they are flushed.
pub const WRITE_BUFFER_BYTES_DEFAULT: usize = 256 << 20;

/// Number of rows after which a layout's log checks the memory budget again.
const CHECK_ROWS: usize = 4096;

/// Number of rows after which an overlay checks the memory budget again.
const OVERLAY_CHECK_ROWS: usize = 256;

/// Number of series for which the table of slots always keeps its memory for the next transaction.
const SLOTS_FEW: usize = 1024;

/// Hasher for dense series ids. Neighbouring ids map to neighbouring buckets, so that looking up series in order does
/// not cause a cache miss for each.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(self.0 ^ u64::from(byte));
        }
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        let spread = |word: u64| word.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // The hash table takes the bucket from the low bits, and from the high bits the tag that distinguishes entries
        // of a bucket.
        let place = word ^ spread(word >> 12) >> 32;
        self.0 = (place & (u64::MAX >> 7)) | (spread(word) & !(u64::MAX >> 7));
    }
}

/// Returns a new value for `WriteBuffer::epoch`, unique in the process.
fn next_epoch() -> u64 {
    static EPOCHS: AtomicU64 = AtomicU64::new(1);
    EPOCHS.fetch_add(1, Ordering::Relaxed)
}

/// Handle for pushing rows of a series, valid only for the write buffer that returned it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    pub(super) layout: u32,
    pub(super) index: u32,
}

/// The write buffer: rows of the open transaction that are not yet in the delta or in leaves. The head of
/// `write_buffer.rs` shows how rows move.
#[derive(Debug)]
pub struct WriteBuffer {
    pub(crate) logs: Vec<Log>,
    pub(super) by_series: HashMap<SeriesId, Slot, BuildHasherDefault<IdHasher>>,
    pub(super) overlays: Vec<Overlay>,
    /// Sum of `Overlay::bytes`.
    pub(super) overlay_bytes: usize,
    pub(super) budget_bytes: usize,
    pub(super) fill: Fill,
    pub(super) grouping: group::GroupScratch,
    pub(super) copies: copies::Copies,
    pub(super) flush_count: u64,
    /// Number that identifies the generation of slots: slots returned before this value was set are invalid. No two
    /// write buffers of the process have the same epoch.
    epoch: u64,
    /// Size in bytes of the rows that are lent to helper threads.
    pub(crate) lent_bytes: usize,
    /// Memory for the log that will replace the next lent log.
    pub(super) spare: Option<Log>,
    /// Memory that run writers and compactions reuse across transactions.
    scratch: CompactionScratch,
    /// Whether `WriteBuffer::flush` has installed rows as leaves since the write buffer was empty.
    pub(crate) linked: bool,
}

impl Default for WriteBuffer {
    fn default() -> Self {
        Self::new(WRITE_BUFFER_BYTES_DEFAULT)
    }
}

impl WriteBuffer {
    /// Creates an empty write buffer with a memory budget of `budget_bytes`.
    #[must_use]
    pub fn new(budget_bytes: usize) -> Self {
        Self {
            logs: Vec::new(),
            by_series: HashMap::default(),
            overlays: Vec::new(),
            overlay_bytes: 0,
            budget_bytes,
            fill: Fill::default(),
            grouping: group::GroupScratch::default(),
            copies: copies::Copies::default(),
            flush_count: 0,
            epoch: next_epoch(),
            lent_bytes: 0,
            spare: None,
            scratch: CompactionScratch::default(),
            linked: false,
        }
    }

    /// The memory that run writers and compactions reuse across transactions.
    pub(crate) fn scratch(&mut self) -> &mut CompactionScratch {
        &mut self.scratch
    }

    /// Returns the encoder states with which new runs encode rows of the layout `types`.
    pub(crate) fn run_encoder_states(&self, types: &[ColumnType]) -> Vec<EncoderState> {
        let scratch = self.scratch.writer(CompactionScratch::NEW);
        scratch.map_or(Vec::new(), |scratch| {
            scratch.encoder_states_of(types).to_vec()
        })
    }

    /// Copies the encoder states for new runs from the write buffer `other`.
    pub fn copy_encoder_states_from(&mut self, other: &Self) {
        let mut scratch = self.scratch.take_writer(CompactionScratch::NEW);
        match other.scratch.writer(CompactionScratch::NEW) {
            Some(theirs) => scratch.copy_encoder_states_from(theirs),
            None => scratch.set_encoder_states(&[], Vec::new()),
        }
        self.scratch.return_writer(CompactionScratch::NEW, scratch);
    }

    /// Removes rows and slots; keeps the memory of the logs for the next transaction (fresh memory costs more than
    /// everything else that a push does).
    pub fn reset(&mut self) {
        self.forget_rows();
        self.epoch = next_epoch();
        for log in &mut self.logs {
            log.slots.clear();
            log.round_robin.reset();
        }
        // Clearing a hash table takes time proportional to its capacity, even if it has few entries. A nearly empty
        // one is replaced.
        let few = self.by_series.len() < self.by_series.capacity() / 64;
        self.by_series.clear();
        if few {
            self.by_series.shrink_to(SLOTS_FEW);
        }
    }

    /// Removes the rows; slots stay valid for the next transaction. If the last rows arrived in rounds (one row per
    /// series in turn), the next rows are expected to do so, too.
    ///
    /// Cost: a pass over the slots if series were read or written out of order. If the caller will use only few of
    /// the slots, `reset` is better.
    pub fn forget_rows(&mut self) {
        self.flush_count += 1;
        self.lent_bytes = 0;
        self.linked = false;
        for log in &mut self.logs {
            let rounds = log
                .round_robin
                .slots_at_round_start()
                .filter(|_| log.rows() == 0);
            log.clear();
            log.lent_slots = 0;
            log.late = false;
            if !self.overlays.is_empty() {
                log.slots
                    .iter_mut()
                    .for_each(|slot| slot.overlay = NO_OVERLAY);
            }
            if let Some(slots) = rounds {
                log.resume_round_robin(slots);
            }
        }
        self.overlays.clear();
        self.overlay_bytes = 0;
        debug_assert!(self.is_empty(), "no rows are left");
    }

    /// Returns a number that changes whenever previously returned slots become invalid.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns the slot of a series; registers the series on first use.
    ///
    /// # Panics
    /// If the series was registered with other columns.
    pub fn slot(&mut self, series: SeriesId, types: &[ColumnType]) -> Slot {
        if let Some(&slot) = self.by_series.get(&series) {
            assert_eq!(
                *self.logs[slot.layout as usize].types, *types,
                "{series} has one layout"
            );
            return slot;
        }
        let known = self.logs.iter().position(|log| *log.types == *types);
        let layout = known.unwrap_or_else(|| {
            self.logs.push(Log::new(types, self.budget_bytes));
            self.logs.len() - 1
        });
        let slots = &mut self.logs[layout].slots;
        assert!(
            slots.len() < NO_SLOT as usize,
            "slots are numbered in 32 bits"
        );
        let slot = Slot {
            layout: layout as u32,
            index: slots.len() as u32,
        };
        slots.push(SlotState {
            series,
            time_max: i64::MIN,
            buffered: false,
            keeps_all: false,
            overlay: NO_OVERLAY,
        });
        self.by_series.insert(series, slot);
        slot
    }

    /// Registers a series whose columns have changed again and returns its new slot.
    ///
    /// # Panics
    /// If the series has buffered rows.
    pub fn renew(&mut self, series: SeriesId, types: &[ColumnType]) -> Slot {
        if let Some(old) = self.by_series.remove(&series) {
            assert!(!self.has_rows(old), "rows of {series} are buffered");
        }
        self.slot(series, types)
    }

    /// Returns the slot of a series if the series is registered.
    #[must_use]
    pub fn find(&self, series: SeriesId) -> Option<Slot> {
        self.by_series.get(&series).copied()
    }

    /// The series of a slot.
    ///
    /// # Panics
    /// If the slot does not belong to this write buffer.
    #[must_use]
    pub fn series(&self, slot: Slot) -> SeriesId {
        self.logs[slot.layout as usize].slots[slot.index as usize].series
    }

    /// Pushes a row. Returns true if rows may be ready to flush: the caller must then call `Delta::flush`, at the
    /// latest before it pushes a few thousand more rows.
    ///
    /// # Panics
    /// If `words` does not have one word per column.
    #[inline]
    #[must_use]
    pub fn push(&mut self, slot: Slot, time: i64, words: &[u64]) -> bool {
        let log = &mut self.logs[slot.layout as usize];
        assert_eq!(words.len(), log.columns.len(), "one word a column");
        debug_assert!(log.takes(slot.index, &[time]), "a late row has an overlay");
        if log.open != slot.index {
            return self.add_row(slot, time, words);
        }
        log.append_row(time, words);
        log.rows() >= log.fast.check_at()
    }

    /// Pushes a point, a row of the two columns flags and value; otherwise like `push`. If its series is the last one
    /// pushed to, or the expected one in round-robin order, the point is usually appended without a function call.
    ///
    /// # Panics
    /// If the series does not have two columns.
    #[inline(always)]
    #[must_use]
    pub fn push_point(&mut self, slot: Slot, time: i64, flags: u64, value: u64) -> bool {
        if let Some(log) = self.logs.get_mut(slot.layout as usize)
            && log.append_point(slot.index, time, flags, value)
        {
            return false;
        }
        self.add_point(slot, time, [flags, value])
    }

    /// Pushes a point that the inlined fast path of `push_point` has refused.
    #[inline(never)]
    fn add_point(&mut self, slot: Slot, time: i64, [flags, value]: [u64; 2]) -> bool {
        let log = &mut self.logs[slot.layout as usize];
        if log.append_to_next(slot.index, time, flags, value) {
            return false;
        }
        // The first row of a batch may take the fast path as well, once the batch is open.
        if log.round_robin.expected != slot.index
            && (log.open == slot.index || Self::open(log, slot, self.budget_bytes))
            && log.append_point(slot.index, time, flags, value)
        {
            return false;
        }
        let check = self.push(slot, time, &[flags, value]);
        self.logs[slot.layout as usize].refresh();
        check
    }

    /// Pushes a row of another series than the row before; the inlined part of `push` handles rows of the same
    /// series.
    #[inline(never)]
    fn add_row(&mut self, slot: Slot, time: i64, words: &[u64]) -> bool {
        let log = &mut self.logs[slot.layout as usize];
        if log.round_robin.expected == slot.index {
            log.append_row(time, words);
            log.round_robin.advance();
        } else if Self::open(log, slot, self.budget_bytes) {
            log.append_row(time, words);
        } else {
            return self.change_overlay(slot, |overlay| {
                overlay.push(time, words);
                overlay.len().is_multiple_of(OVERLAY_CHECK_ROWS)
            });
        }
        log.rows() >= log.fast.check_at()
    }

    /// Pushes rows in any order until a flush is due, and returns the number of pushed rows. The caller then flushes
    /// and calls again with the remaining rows.
    ///
    /// # Panics
    /// If the columns differ from the columns of the series.
    #[must_use]
    pub fn append(&mut self, slot: Slot, rows: RowsRef<'_>) -> usize {
        let log = &mut self.logs[slot.layout as usize];
        assert_eq!(rows.column_count(), log.columns.len(), "the same columns");
        debug_assert!(
            log.takes(slot.index, rows.times()),
            "late rows have an overlay"
        );
        if log.round_robin.expected == slot.index && rows.len() == 1 {
            log.extend(rows);
            log.round_robin.advance();
            return 1;
        }
        if log.open != slot.index && !Self::open(log, slot, self.budget_bytes) {
            self.change_overlay(slot, |overlay| overlay.extend(rows));
            return rows.len();
        }
        let room = log.fast.check_at().saturating_sub(log.rows());
        let taken = room.clamp(1, LEAF_ROWS).min(rows.len());
        log.extend(rows.slice(0..taken));
        taken
    }

    /// Opens a batch for the slot in the log; returns false if the rows of the slot go to an overlay.
    #[inline]
    fn open(log: &mut Log, slot: Slot, budget_bytes: usize) -> bool {
        if log.slots[slot.index as usize].overlay != NO_OVERLAY {
            return false;
        }
        if !log.fast.has_budget() {
            let rows = CHECK_ROWS.min((budget_bytes / 64).max(1));
            log.fast.set_budget(rows);
        }
        log.switch(slot.index);
        true
    }

    /// Number of buffered rows; repeated timestamps are counted as often as they were pushed.
    #[must_use]
    pub fn len(&self) -> usize {
        debug_assert_eq!(
            self.overlays.iter().map(Overlay::bytes).sum::<usize>(),
            self.overlay_bytes,
            "all changes are counted"
        );
        let logged: usize = self.logs.iter().map(Log::live_rows).sum();
        logged + self.overlays.iter().map(Overlay::len).sum::<usize>()
    }

    /// Whether the write buffer is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Size in bytes of the buffered rows, as the memory budget counts them.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let logged: usize = self.logs.iter().map(Log::bytes).sum();
        logged + self.overlay_bytes
    }

    /// The buffered rows of a series, sorted, without rows that a newer one has replaced. Moves the rows of the
    /// series to an overlay, which also receives all later rows of the series.
    ///
    /// Cost: the first time, one pass over the batches; later, only sorting in the rows pushed since.
    pub fn rows(&mut self, slot: Slot) -> RowsRef<'_> {
        self.change_overlay(slot, Overlay::sort);
        let log = &self.logs[slot.layout as usize];
        self.overlays[log.slots[slot.index as usize].overlay as usize].view()
    }

    /// Chooses whether all rows with the same time are kept, in push order, or only the newest one, from the next row
    /// on.
    ///
    /// Buffered rows of a time replace all stored rows of that time. Before another row is added to a stored time, the
    /// caller must therefore push the stored rows, unless `rows_at` shows that the time is already buffered. If all
    /// rows are kept, `use_overlay` must precede a row that is not later than all other rows of the series.
    pub fn keep_all(&mut self, slot: Slot, keeps_all: bool) {
        let state = &self.logs[slot.layout as usize].slots[slot.index as usize];
        if state.keeps_all == keeps_all {
            return;
        }
        if state.overlay != NO_OVERLAY || self.has_rows(slot) {
            self.change_overlay(slot, |overlay| overlay.keep_all(keeps_all));
        }
        self.logs[slot.layout as usize].slots[slot.index as usize].keeps_all = keeps_all;
    }

    /// Moves the rows of a series to an overlay, which also receives all later rows of the series. Rows in any order
    /// may be pushed then.
    pub fn use_overlay(&mut self, slot: Slot) {
        self.change_overlay(slot, |_| ());
    }

    /// Number of buffered rows with this time. Like `rows`, moves the buffered rows of the series to an overlay.
    pub fn rows_at(&mut self, slot: Slot, time: i64) -> usize {
        self.change_overlay(slot, |overlay| overlay.rows_at(time))
    }

    /// Appends the buffered rows at one time to `rows`, in arrival order. Meant for a series that keeps all rows with
    /// the same time. Like `rows`, moves the buffered rows of the series to an overlay.
    pub fn copy_rows_at(&mut self, slot: Slot, time: i64, rows: &mut Rows) {
        self.change_overlay(slot, |overlay| overlay.copy_rows_at(time, rows));
    }

    /// Pushes sorted rows that replace all buffered and stored rows with the same times.
    pub fn replace_times(&mut self, slot: Slot, rows: RowsRef<'_>) {
        self.change_overlay(slot, |overlay| overlay.replace_times(rows));
    }

    /// Returns how often buffered rows were flushed or removed so far. If the count has changed, rows that were
    /// buffered before may be gone.
    #[must_use]
    pub fn flush_count(&self) -> u64 {
        self.flush_count
    }

    /// Whether the series has buffered rows, or may have rows that are lent to helper threads.
    #[must_use]
    pub fn has_rows(&self, slot: Slot) -> bool {
        let log = &self.logs[slot.layout as usize];
        let state = &log.slots[slot.index as usize];
        state.buffered
            || self.is_lent(slot)
            || (log.open == slot.index && log.rows() > log.open_start)
            || log.round_robin_has(slot.index)
            || (state.overlay != NO_OVERLAY && self.overlays[state.overlay as usize].len() > 0)
    }

    /// Removes the buffered rows with `from <= time <= to`; returns their number.
    pub fn delete(&mut self, slot: Slot, from: i64, to: i64) -> u64 {
        if !self.has_rows(slot) {
            return 0;
        }
        self.flush_count += 1;
        self.change_overlay(slot, |overlay| overlay.delete(from, to))
    }

    /// Changes the overlay of a series, which is created if there is none.
    fn change_overlay<T>(&mut self, slot: Slot, change: impl FnOnce(&mut Overlay) -> T) -> T {
        assert!(!self.is_lent(slot), "rows of the series are away");
        let log = &mut self.logs[slot.layout as usize];
        if log.slots[slot.index as usize].overlay == NO_OVERLAY {
            let rows = log.take(slot.index);
            let state = &mut log.slots[slot.index as usize];
            state.overlay = self.overlays.len() as u32;
            let overlay = Overlay::new(rows, state.keeps_all);
            self.overlay_bytes += overlay.bytes();
            self.overlays.push(overlay);
        }
        debug_assert!(
            !self.logs[slot.layout as usize].slots[slot.index as usize].buffered,
            "log and overlay never both hold a series"
        );
        let index = self.logs[slot.layout as usize].slots[slot.index as usize].overlay;
        let overlay = &mut self.overlays[index as usize];
        let before = overlay.bytes();
        let changed = change(overlay);
        self.overlay_bytes = self.overlay_bytes - before + overlay.bytes();
        changed
    }

    /// Determines which rows are ready to flush, after `push` or `append` has returned true.
    pub(crate) fn ready(&mut self) -> Ready {
        for (layout, log) in self.logs.iter().enumerate() {
            if log.open_is_leaf() {
                return Ready::Leaf(layout);
            }
            if log.round_robin_is_due() {
                return Ready::RoundRobin(layout);
            }
        }
        let bytes = self.bytes() + self.lent_bytes;
        if bytes >= self.budget_bytes {
            return Ready::Budget;
        }
        let left_bytes = self.budget_bytes - bytes;
        for log in &mut self.logs {
            // The next check is due after half of the remaining memory budget, counted in rows of maximum size, so no
            // layout can exceed the budget.
            let row_bytes = 8 * (1 + log.types.len()) + BATCH_BYTES;
            let step = (left_bytes / row_bytes / 2).clamp(1, CHECK_ROWS);
            log.fast.set_budget(log.rows() + step);
            // A batch that is long enough but contains late rows cannot become a leaf. It is closed, so that the next
            // one may.
            if log.open != NO_SLOT && log.rows() - log.open_start >= LEAF_ROWS {
                let slot = log.open;
                log.switch(slot);
            }
            log.detect_round_robin();
            log.refresh();
        }
        Ready::Nothing
    }

    /// Calls `f` with the series, the column types and the rows of a layout's open batch, which has enough rows for a
    /// leaf.
    pub(crate) fn with_leaf<T>(
        &mut self,
        layout: usize,
        f: impl FnOnce(SeriesId, &[ColumnType], RowsRef<'_>) -> T,
    ) -> T {
        let log = &self.logs[layout];
        assert!(log.open != NO_SLOT, "a leaf is in the open batch");
        let series = log.slots[log.open as usize].series;
        log.with_rows(log.open_start, log.rows(), &mut self.fill, |rows| {
            f(series, &log.types, rows)
        })
    }

    /// Removes the rows of the open batch, which were installed as a leaf; their memory is reused.
    pub(crate) fn leaf_linked(&mut self, layout: usize) {
        self.flush_count += 1;
        let log = &mut self.logs[layout];
        log.rewind(log.open_start);
        debug_assert!(log.rows() == log.open_start, "the linked rows are gone");
        log.refresh();
    }

    /// Opens another batch, since the rows of the current one cannot become a leaf and wait until all rows are
    /// grouped.
    pub(crate) fn leaf_refused(&mut self, layout: usize) {
        let log = &mut self.logs[layout];
        let slot = log.open;
        log.switch(slot);
    }

    /// Records that rows of a layout were out of time order or overlapped stored rows.
    pub(crate) fn note_late(&mut self, layout: usize) {
        self.logs[layout].note_late();
    }

    /// Memory budget in bytes for the buffered rows.
    #[must_use]
    pub fn budget_bytes(&self) -> usize {
        self.budget_bytes
    }
}

/// Reports which rows of the write buffer are ready to flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ready {
    Nothing,
    /// The open batch of this layout has enough rows for a leaf.
    Leaf(usize),
    /// The series of this layout are written in turn, and each has whole vectors.
    RoundRobin(usize),
    /// The memory budget is used up, so all rows should be flushed.
    Budget,
}
