//! Rows of the open transaction that have not been handed over yet.
//!
//! ```text
//! push --> log (one a layout) --- a leaf's worth of one series, ascending ---> handed over from cache
//!           |        \--- whole vectors of many series that are fed in turn --> grouped, handed over
//!           |        \--- budget reached, or commit: grouped by series -----> handed over, run, or tail
//!           `-- series is read or deleted from: its rows move to ...
//! push ----------> overlay (one a series that was read): sorted when read, grouped with the rest
//! ```
//!
//! Invariants:
//! 1. Of a slot with an overlay, no row is in the log; later pushes go to the overlay.
//! 2. Staged rows are newer than everything that the front and the series hold of their series.
//! 3. Between two calls that hand over, the log grows past its budget by no more than `LOOK_ROWS` rows a layout.

use crate::buffer::log::{Fill, Log};
use crate::buffer::overlay::Overlay;
use crate::buffer::slot::{NO_OVERLAY, NO_SLOT, STRETCH_BYTES, SlotState};
use crate::buffer::{copies, group};
use crate::compaction::memory::Merging;
use crate::limits::LEAF_ROWS;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use tidalite_base::SeriesId;
use tidalite_codec::{ColumnType, Hint, Rows, RowsRef};

/// Bytes of staged rows at which they are handed over, if nothing else is asked for.
pub const STAGING_BYTES_DEFAULT: usize = 256 << 20;

/// Rows after which a layout's log looks at the budget again.
const LOOK_ROWS: usize = 4096;

/// The same for an overlay.
const OVERLAY_LOOK_ROWS: usize = 256;

/// Series for which room is kept however few there were.
const SLOTS_FEW: usize = 1024;

/// Numbers of series are dense: neighbours go to neighbouring places, so that series opened one after the other do not each
/// wait for memory.
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
        // The table takes places from the low bits, and from the high ones what tells apart those of one place.
        let place = word ^ spread(word >> 12) >> 32;
        self.0 = (place & (u64::MAX >> 7)) | (spread(word) & !(u64::MAX >> 7));
    }
}

/// Numbers for `Staging::epoch`.
fn next_epoch() -> u64 {
    static EPOCHS: AtomicU64 = AtomicU64::new(1);
    EPOCHS.fetch_add(1, Ordering::Relaxed)
}

/// Where a series stages its rows; valid for the staging that gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    pub(super) layout: u32,
    pub(super) index: u32,
}

/// The transaction's rows that are not yet in place. See the head of `staging.rs`.
#[derive(Debug)]
pub struct Staging {
    pub(crate) logs: Vec<Log>,
    pub(super) by_series: HashMap<SeriesId, Slot, BuildHasherDefault<IdHasher>>,
    pub(super) overlays: Vec<Overlay>,
    pub(super) budget_bytes: usize,
    pub(super) fill: Fill,
    pub(super) grouping: group::Scratch,
    pub(super) copies: copies::Copies,
    pub(super) hand_overs: u64,
    /// Which slots are valid: those that were given since this was set. No two stagings have the same.
    epoch: u64,
    /// What the rows cost that are away.
    pub(super) away_bytes: usize,
    /// Memory for the next log that goes away.
    pub(super) spare: Option<Log>,
    /// Memory for what the rows go through afterwards.
    merging: Merging,
    /// Whether rows were linked by `Staging::flush` since it was empty.
    pub(crate) linked: bool,
}

impl Default for Staging {
    fn default() -> Self {
        Self::new(STAGING_BYTES_DEFAULT)
    }
}

impl Staging {
    /// Nothing staged; rows of up to `budget_bytes` are held.
    #[must_use]
    pub fn new(budget_bytes: usize) -> Self {
        Self {
            logs: Vec::new(),
            by_series: HashMap::default(),
            overlays: Vec::new(),
            budget_bytes,
            fill: Fill::default(),
            grouping: group::Scratch::default(),
            copies: copies::Copies::default(),
            hand_overs: 0,
            epoch: next_epoch(),
            away_bytes: 0,
            spare: None,
            merging: Merging::default(),
            linked: false,
        }
    }

    /// Memory for runs and merges.
    pub(crate) fn merging(&mut self) -> &mut Merging {
        &mut self.merging
    }

    /// What the writers of new runs have learned of rows of a layout.
    pub(crate) fn run_hints(&self, types: &[ColumnType]) -> Vec<Hint> {
        let kit = self.merging.kit(Merging::NEW);
        kit.map_or(Vec::new(), |kit| kit.hints_of(types).to_vec())
    }

    /// Begins with what the writers of new runs have learned elsewhere.
    pub fn learn_from(&mut self, other: &Self) {
        let mut kit = self.merging.take_kit(Merging::NEW);
        match other.merging.kit(Merging::NEW) {
            Some(theirs) => kit.learn_from(theirs),
            None => kit.learn(&[], Vec::new()),
        }
        self.merging.give_kit(Merging::NEW, kit);
    }

    /// Forgets rows and slots; keeps the memory of the logs for the next transaction (fresh memory costs more
    /// than everything else that a push does).
    pub fn reset(&mut self) {
        self.forget_rows();
        self.epoch = next_epoch();
        for log in &mut self.logs {
            log.slots.clear();
            log.rounds.forget();
        }
        // To clear a table takes as long as it is large, however few are in it.
        let few = self.by_series.len() < self.by_series.capacity() / 64;
        self.by_series.clear();
        if few {
            self.by_series.shrink_to(SLOTS_FEW);
        }
    }

    /// Forgets rows; slots stay as they are for the next transaction, and where the last rows came in rounds (a row of each
    /// series in turn), the next ones are expected to.
    ///
    /// Cost: a pass over the slots where series were read, or fed out of order: not for who will use few of them.
    pub fn forget_rows(&mut self) {
        self.hand_overs += 1;
        self.away_bytes = 0;
        self.linked = false;
        for log in &mut self.logs {
            let rounds = log.rounds.whole().filter(|_| log.rows() == 0);
            log.clear();
            log.away = 0;
            log.late = false;
            if !self.overlays.is_empty() {
                log.slots
                    .iter_mut()
                    .for_each(|slot| slot.overlay = NO_OVERLAY);
            }
            if let Some(slots) = rounds {
                log.resume_rounds(slots);
            }
        }
        self.overlays.clear();
    }

    /// Changes when slots are no longer valid that were given before.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The slot of a series; registers it the first time.
    ///
    /// # Panics
    /// When the series was registered with other columns.
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
        let slot = Slot {
            layout: layout as u32,
            index: slots.len() as u32,
        };
        slots.push(SlotState {
            series,
            time_max: i64::MIN,
            staged: false,
            overlay: NO_OVERLAY,
        });
        self.by_series.insert(series, slot);
        slot
    }

    /// A new slot for a series whose columns have changed; it must have no staged rows.
    ///
    /// # Panics
    /// When it has.
    pub fn renew(&mut self, series: SeriesId, types: &[ColumnType]) -> Slot {
        if let Some(old) = self.by_series.remove(&series) {
            assert!(!self.has_rows(old), "rows of {series} are staged");
        }
        self.slot(series, types)
    }

    /// The slot of a series that was registered.
    #[must_use]
    pub fn find(&self, series: SeriesId) -> Option<Slot> {
        self.by_series.get(&series).copied()
    }

    /// The series of a slot.
    ///
    /// # Panics
    /// When the slot is not of this staging.
    #[must_use]
    pub fn series(&self, slot: Slot) -> SeriesId {
        self.logs[slot.layout as usize].slots[slot.index as usize].series
    }

    /// Stages a row. True when something may be ready to be handed over: the caller then calls
    /// `Front::flush`, at the latest before it has pushed another few thousand rows.
    ///
    /// # Panics
    /// When there is not one word a column.
    #[inline]
    #[must_use]
    pub fn push(&mut self, slot: Slot, time: i64, words: &[u64]) -> bool {
        let log = &mut self.logs[slot.layout as usize];
        assert_eq!(words.len(), log.columns.len(), "one word a column");
        if log.open != slot.index {
            return self.push_elsewhere(slot, time, words);
        }
        log.push(time, words);
        log.rows() >= log.look_at()
    }

    /// `push` of another series than the last one.
    #[inline(never)]
    fn push_elsewhere(&mut self, slot: Slot, time: i64, words: &[u64]) -> bool {
        let log = &mut self.logs[slot.layout as usize];
        if log.rounds.expected == slot.index {
            log.push_expected(time, words);
        } else if Self::open(log, slot, self.budget_bytes) {
            log.push(time, words);
        } else {
            return self.push_overlay(slot, time, words);
        }
        log.rows() >= log.look_at()
    }

    /// Stages a point of two columns, if the series is the one that was pushed to last, or the one whose turn it is, and nothing
    /// is out of the ordinary: then nothing is to be handed over either. Else answers false and has done nothing: `push_point`
    /// it must be.
    #[inline(always)]
    #[must_use]
    pub fn push_easy(&mut self, slot: Slot, time: i64, flags: u64, value: u64) -> bool {
        let Some(log) = self.logs.get_mut(slot.layout as usize) else {
            return false;
        };
        if log.open == slot.index {
            return log.push_easy(time, flags, value);
        }
        log.push_round(slot.index, time, flags, value)
    }

    /// `push` for the default point of two columns.
    ///
    /// # Panics
    /// When the series has not two columns.
    #[inline]
    #[must_use]
    pub fn push_point(&mut self, slot: Slot, time: i64, flags: u64, value: u64) -> bool {
        let log = &mut self.logs[slot.layout as usize];
        if log.push_round(slot.index, time, flags, value)
            || log.push_turn(slot.index, time, flags, value)
        {
            return false;
        }
        // The first row of a stretch may be as easy as the others.
        if log.rounds.expected != slot.index
            && (log.open == slot.index || Self::open(log, slot, self.budget_bytes))
            && log.push_easy(time, flags, value)
        {
            return false;
        }
        self.push_and_ease(slot, time, [flags, value])
    }

    #[inline(never)]
    fn push_and_ease(&mut self, slot: Slot, time: i64, words: [u64; 2]) -> bool {
        let look = self.push(slot, time, &words);
        self.logs[slot.layout as usize].ease();
        look
    }

    /// Stages rows in any order, as many as fit before something should be handed over; answers how many.
    /// The caller flushes and goes on with the rest.
    ///
    /// # Panics
    /// When the columns are not those of the series.
    #[must_use]
    pub fn append(&mut self, slot: Slot, rows: RowsRef<'_>) -> usize {
        let log = &mut self.logs[slot.layout as usize];
        assert_eq!(rows.column_count(), log.columns.len(), "the same columns");
        if log.rounds.expected == slot.index && rows.len() == 1 {
            log.extend(rows);
            log.rounds.turn();
            return 1;
        }
        if log.open != slot.index && !Self::open(log, slot, self.budget_bytes) {
            let index = log.slots[slot.index as usize].overlay;
            self.overlays[index as usize].extend(rows);
            return rows.len();
        }
        let room = log.look_at().saturating_sub(log.rows());
        let taken = room.clamp(1, LEAF_ROWS).min(rows.len());
        log.extend(rows.slice(0..taken));
        taken
    }

    /// Opens a stretch for the slot; false when it has an overlay.
    #[inline]
    fn open(log: &mut Log, slot: Slot, budget_bytes: usize) -> bool {
        if log.slots[slot.index as usize].overlay != NO_OVERLAY {
            return false;
        }
        if log.budget_at == 0 {
            log.budget_at = LOOK_ROWS.min((budget_bytes / 64).max(1));
        }
        log.switch(slot.index, LEAF_ROWS);
        true
    }

    #[cold]
    #[inline(never)]
    fn push_overlay(&mut self, slot: Slot, time: i64, words: &[u64]) -> bool {
        let index = self.logs[slot.layout as usize].slots[slot.index as usize].overlay;
        let overlay = &mut self.overlays[index as usize];
        overlay.push(time, words);
        overlay.len().is_multiple_of(OVERLAY_LOOK_ROWS)
    }

    /// Rows staged, repeated timestamps counted as often as they were pushed.
    #[must_use]
    pub fn len(&self) -> usize {
        let logged: usize = self.logs.iter().map(Log::live_rows).sum();
        logged + self.overlays.iter().map(Overlay::len).sum::<usize>()
    }

    /// Whether nothing is staged.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that the staged rows cost.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let logged: usize = self.logs.iter().map(Log::bytes).sum();
        logged + self.overlays.iter().map(Overlay::bytes).sum::<usize>()
    }

    /// The rows of a series that are staged, sorted, of each time those that count. From now on the series has an
    /// overlay of its own.
    ///
    /// Cost: the first time one pass over the stretches; later only what was pushed since is sorted in.
    pub fn rows(&mut self, slot: Slot) -> RowsRef<'_> {
        self.overlay(slot).sorted()
    }

    /// Keeps rows of one time side by side, in the order in which they are pushed, or lets the newest one stay, from the next
    /// row on.
    ///
    /// The rows of a time that are staged take the place of all that are stored: before another row is to stand beside these,
    /// they are to be pushed themselves, unless `rows_at` says that the time is staged already.
    pub fn keep_all(&mut self, slot: Slot, keeps_all: bool) {
        self.overlay(slot).keep_all(keeps_all);
    }

    /// How many rows of one time are staged. As `rows`, moves what is staged of the series to an overlay.
    pub fn rows_at(&mut self, slot: Slot, time: i64) -> usize {
        self.overlay(slot).rows_at(time)
    }

    /// Appends the staged rows of one time to `rows`, in the order in which they came, of a series whose rows of one time are kept side by
    /// side. As `rows`, moves what is staged of the series to an overlay.
    pub fn copy_rows_at(&mut self, slot: Slot, time: i64, rows: &mut Rows) {
        self.overlay(slot).copy_rows_at(time, rows);
    }

    /// Stages sorted rows in place of all that are staged or stored at their times.
    pub fn replace_times(&mut self, slot: Slot, rows: RowsRef<'_>) {
        self.overlay(slot).replace_times(rows);
    }

    /// Counts how often staged rows were handed over or removed: what was staged may be staged no longer when it changes.
    #[must_use]
    pub fn hand_overs(&self) -> u64 {
        self.hand_overs
    }

    /// Whether the series has staged rows, or may have some that are away.
    #[must_use]
    pub fn has_rows(&self, slot: Slot) -> bool {
        let log = &self.logs[slot.layout as usize];
        let state = &log.slots[slot.index as usize];
        state.staged
            || self.is_away(slot)
            || (log.open == slot.index && log.rows() > log.open_start)
            || log.rounds_have(slot.index)
            || (state.overlay != NO_OVERLAY && self.overlays[state.overlay as usize].len() > 0)
    }

    /// Removes the staged rows with `from <= time <= to`; answers how many different times they had.
    pub fn delete(&mut self, slot: Slot, from: i64, to: i64) -> u64 {
        if !self.has_rows(slot) {
            return 0;
        }
        self.hand_overs += 1;
        self.overlay(slot).delete(from, to)
    }

    fn overlay(&mut self, slot: Slot) -> &mut Overlay {
        assert!(!self.is_away(slot), "rows of the series are away");
        let log = &mut self.logs[slot.layout as usize];
        if log.slots[slot.index as usize].overlay == NO_OVERLAY {
            let rows = log.take(slot.index);
            log.slots[slot.index as usize].overlay = self.overlays.len() as u32;
            self.overlays.push(Overlay::new(rows));
        }
        let index = self.logs[slot.layout as usize].slots[slot.index as usize].overlay;
        &mut self.overlays[index as usize]
    }

    /// Looks, after a push said so, what is ready.
    pub(crate) fn ready(&mut self) -> Ready {
        for (layout, log) in self.logs.iter().enumerate() {
            if log.open_is_leaf(LEAF_ROWS) {
                return Ready::Leaf(layout);
            }
            if log.is_due() {
                return Ready::Rounds(layout);
            }
        }
        let bytes = self.bytes() + self.away_bytes;
        if bytes >= self.budget_bytes {
            return Ready::Budget;
        }
        let left_bytes = self.budget_bytes - bytes;
        for log in &mut self.logs {
            // Half of what is left, in rows that cost the most they can: no layout can outrun the budget.
            let row_bytes = 8 * (1 + log.types.len()) + STRETCH_BYTES;
            let step = (left_bytes / row_bytes / 2).clamp(1, LOOK_ROWS);
            log.budget_at = log.rows() + step;
            // A stretch that is long but no leaf (late rows in it) is closed, so that the next one may be.
            if log.open != NO_SLOT && log.rows() - log.open_start >= LEAF_ROWS {
                let slot = log.open;
                log.switch(slot, LEAF_ROWS);
            }
            log.seek_rounds();
            log.look_later(LEAF_ROWS);
        }
        Ready::Nothing
    }

    /// The open stretch of a layout.
    pub(crate) fn with_leaf<T>(
        &mut self,
        layout: usize,
        f: impl FnOnce(SeriesId, &[ColumnType], RowsRef<'_>) -> T,
    ) -> T {
        let log = &self.logs[layout];
        let series = log.slots[log.open as usize].series;
        log.with_rows(log.open_start, log.rows(), &mut self.fill, |rows| {
            f(series, &log.types, rows)
        })
    }

    /// The open stretch was linked: its memory is used again.
    pub(crate) fn leaf_linked(&mut self, layout: usize) {
        let log = &mut self.logs[layout];
        log.rewind(log.open_start);
        log.look_later(LEAF_ROWS);
    }

    /// The open stretch must wait for the grouping: another begins.
    pub(crate) fn leaf_refused(&mut self, layout: usize) {
        let log = &mut self.logs[layout];
        let slot = log.open;
        log.switch(slot, LEAF_ROWS);
    }

    /// Rows of a layout did not simply follow those that were there.
    pub(crate) fn note_late(&mut self, layout: usize) {
        self.logs[layout].note_late();
    }

    /// What the staged rows may cost.
    #[must_use]
    pub fn budget_bytes(&self) -> usize {
        self.budget_bytes
    }
}

/// What is to be handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ready {
    Nothing,
    /// The open stretch of this layout is a leaf.
    Leaf(usize),
    /// The series of this layout that are fed in turn have whole vectors.
    Rounds(usize),
    /// The budget is reached.
    Budget,
}
