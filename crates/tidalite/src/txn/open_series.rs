//! The series that a write transaction has open, and those known from the previous one: opening a series takes a
//! catalog lookup and the decoding of its entry, which costs more than inserting a row.
//!
//! Invariants:
//! 1. `index_of[id] - 1` is the index of series `id` in `series`, 0 means unknown; the few ids from `NEAR_IDS` on are
//!    in `far_index_of`.
//! 2. A series is open if its `turn` is the transaction's; its slot then belongs to the transaction's write buffer. For
//!    other series only the catalog entry is valid.
//! 3. The slot of a series that is not open is still valid in the write buffer if `epoch` is the buffer's epoch.
//! 4. Entries are kept for the next transaction only if the catalog's trees still have the roots that this one left: a
//!    root identifies its tree's contents by checksums, so no other writer has changed them.

use crate::catalog::entries::{SeriesInfo, expect_columns, expect_unit};
use crate::catalog::roots::{Catalog, Roots};
use crate::txn::known_times::Guard;
use crate::types::error::Result;
use crate::types::merge_policy::MergePolicy;
use crate::types::schema::Schema;
use std::collections::HashMap;
use std::ops::{Index, IndexMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidalite_base::SeriesId;
use tidalite_codec::ColumnType;
use tidalite_delta::{Slot, WriteBuffer};

/// Series with an id below this are found by array index. Ids come from the file and must not determine the memory
/// used.
const NEAR_IDS: u64 = 1 << 22;

/// Maximum number of series kept for the next transaction, about half a KiB each.
const KEPT_MAX: usize = 1 << 20;

/// A known series. Aligned to one cache line: writes that alternate between thousands of series load all of them in
/// every round.
#[repr(align(64))]
pub(crate) struct OneSeries {
    id: SeriesId,
    pub(crate) info: Arc<SeriesInfo>,
    pub(crate) slot: Slot,
    /// Epoch of the write buffer that assigned the slot.
    epoch: u64,
    /// Copy of the policy in `info`, which may not be in the cache.
    merge: MergePolicy,
    /// Number of columns; copied here because it is read whenever the series is selected and `info` may not be in the
    /// cache.
    pub(crate) columns: u32,
    /// The transaction that has opened the series.
    turn: u32,
    /// Index of the series' column types in `layouts`.
    layout: u32,
    /// Whether any column holds texts.
    pub(crate) texts: bool,
    /// Whether rows may take the fast path: the series has two columns and no texts, and its policy replaces rows.
    pub(crate) point: bool,
    /// Cached times of rows, if the merge policy needs them.
    pub(crate) guard: Option<Box<Guard>>,
    /// The schema of the record type found to have this series' columns, and whether it has this series' unit. Types
    /// with equal schemas may share one function: only properties of the schema may be derived from it.
    record: Option<fn() -> Schema>,
    record_unit: bool,
}

/// See the head of this file.
#[derive(Default)]
pub(crate) struct OpenSeries {
    series: Vec<OneSeries>,
    index_of: Vec<u32>,
    far_index_of: HashMap<SeriesId, usize>,
    by_name: HashMap<String, usize>,
    /// Distinct lists of column types; most series share one.
    layouts: Vec<Vec<ColumnType>>,
    turn: u32,
    /// Number of open series.
    open: usize,
    /// The catalog version of the entries while they are kept between two transactions.
    catalog: Option<Catalog>,
    /// Epoch of the write buffer of the last transaction that used these entries.
    buffered: u64,
}

/// The series known to the last write transaction: for the next one, and for readers of its commit.
#[derive(Default)]
pub(crate) struct WriterSeries(Mutex<Option<OpenSeries>>);

impl WriterSeries {
    fn lock(&self) -> MutexGuard<'_, Option<OpenSeries>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the known series for a new write transaction. There are none if the catalog has changed since the previous
    /// transaction.
    pub(crate) fn take(&self, roots: &Roots) -> OpenSeries {
        let kept = self.lock().take();
        kept.and_then(|kept| kept.again(roots)).unwrap_or_default()
    }

    /// Keeps the series of a transaction after the commit of `roots`. `buffered` is the current epoch of the write
    /// buffer.
    pub(crate) fn give(&self, mut open: OpenSeries, roots: &Roots, buffered: u64) {
        open.buffered = buffered;
        let kept = open.kept(roots);
        *self.lock() = kept;
    }

    /// The entry of a series in this version of the catalog, if available.
    pub(crate) fn info(&self, catalog: &Catalog, id: SeriesId) -> Option<Arc<SeriesInfo>> {
        let kept = self.0.try_lock().ok()?;
        let kept = kept.as_ref()?;
        if kept.catalog.as_ref() != Some(catalog) {
            return None;
        }
        Some(Arc::clone(&kept.series[kept.known(id)?].info))
    }
}

/// The guard of a series when a transaction begins: it knows no times yet.
fn guard_of(merge: MergePolicy) -> Option<Box<Guard>> {
    (merge != MergePolicy::Replace).then(Box::default)
}

impl OneSeries {
    /// Updates the series after a change of its catalog entry.
    pub(crate) fn learn(&mut self, info: Arc<SeriesInfo>) {
        self.merge = info.merge;
        self.columns = info.schema.columns.len() as u32;
        self.texts = info.schema.columns.iter().any(|column| column.ty.is_text());
        self.point = self.columns == 2 && !self.texts && self.merge == MergePolicy::Replace;
        self.info = info;
    }

    /// Checks a record type once: comparing names for every record would cost more than storing it.
    ///
    /// # Errors
    /// `Schema` if the series has other columns, or another unit where that matters.
    #[inline]
    pub(crate) fn expect_record(&mut self, schema: fn() -> Schema, any_unit: bool) -> Result<()> {
        let known = self.record;
        if known.is_some_and(|known| std::ptr::fn_addr_eq(known, schema))
            && (any_unit || self.record_unit)
        {
            return Ok(());
        }
        self.learn_record(schema, any_unit)
    }

    #[cold]
    fn learn_record(&mut self, schema: fn() -> Schema, any_unit: bool) -> Result<()> {
        let own = schema();
        expect_columns(&self.info, &own)?;
        if !any_unit {
            expect_unit(&self.info, &own)?;
        }
        self.record = Some(schema);
        self.record_unit = own.unit == self.info.schema.unit;
        Ok(())
    }
}

impl OpenSeries {
    /// Whether no series is open.
    pub(crate) fn is_empty(&self) -> bool {
        self.open == 0
    }

    /// Whether this write buffer is the previous transaction's, unchanged: its slots then belong to these series.
    pub(crate) fn is_of(&self, write_buffer: &WriteBuffer) -> bool {
        self.buffered == write_buffer.epoch()
    }

    /// Number of open series.
    pub(crate) fn count(&self) -> usize {
        self.open
    }

    /// Forgets all series.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Prepares the series to be kept, after the commit of these roots.
    fn kept(mut self, roots: &Roots) -> Option<Self> {
        if self.series.len() > KEPT_MAX {
            return None;
        }
        // One series can have many entries, because its name can be written in many ways.
        if self.by_name.len() > KEPT_MAX {
            self.by_name.clear();
        }
        self.catalog = Some(roots.catalog());
        Some(self)
    }

    /// Prepares the series for the next transaction, if it begins with this catalog version. None is open.
    fn again(mut self, roots: &Roots) -> Option<Self> {
        if self.catalog != Some(roots.catalog()) {
            return None;
        }
        self.turn = self.turn.checked_add(1)?;
        self.open = 0;
        Some(self)
    }

    /// Index of an open series.
    #[inline]
    pub(crate) fn index(&self, id: SeriesId) -> Option<usize> {
        let index = self.known(id)?;
        (self.series.get(index)?.turn == self.turn).then_some(index)
    }

    /// Index of a known series.
    #[inline]
    pub(crate) fn known(&self, id: SeriesId) -> Option<usize> {
        if id.0 >= NEAR_IDS {
            return self.far(id);
        }
        let place = self.index_of.get(id.0 as usize)?;
        (*place as usize).checked_sub(1)
    }

    #[cold]
    #[inline(never)]
    fn far(&self, id: SeriesId) -> Option<usize> {
        self.far_index_of.get(&id).copied()
    }

    /// The series once requested by exactly this text; known, but perhaps not open.
    pub(crate) fn named(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Remembers the text by which a series was requested.
    pub(crate) fn name(&mut self, name: &str, index: usize) {
        self.by_name.insert(name.to_owned(), index);
    }

    /// The slot of a known series whose buffered rows `turn_to` will move; those rows must not be in a worker thread.
    pub(crate) fn moved_by_turn(&self, index: usize, write_buffer: &WriteBuffer) -> Option<Slot> {
        let one = &self.series[index];
        let moved = one.turn != self.turn && one.epoch == write_buffer.epoch();
        (moved && one.merge.keeps_several()).then_some(one.slot)
    }

    /// Opens a known series, unless it is open.
    pub(crate) fn turn_to(&mut self, index: usize, write_buffer: &mut WriteBuffer) {
        let one = &mut self.series[index];
        if one.turn != self.turn {
            if one.epoch != write_buffer.epoch() {
                one.slot = write_buffer.slot(one.id, &self.layouts[one.layout as usize]);
                one.epoch = write_buffer.epoch();
            }
            if one.merge.keeps_several() {
                write_buffer.keep_all(one.slot, true);
            }
            one.turn = self.turn;
            one.guard = guard_of(one.merge);
            self.open += 1;
        }
    }

    /// Opens a series that is not known yet.
    pub(crate) fn enter(&mut self, info: Arc<SeriesInfo>, write_buffer: &mut WriteBuffer) -> usize {
        let id = info.id;
        let types = info.schema.word_types();
        let slot = write_buffer.slot(id, &types);
        if info.merge.keeps_several() {
            write_buffer.keep_all(slot, true);
        }
        let layout = self.layout(types);
        let mut one = OneSeries {
            id,
            layout,
            columns: 0,
            texts: false,
            point: false,
            slot,
            epoch: write_buffer.epoch(),
            guard: guard_of(info.merge),
            merge: info.merge,
            info: Arc::clone(&info),
            turn: self.turn,
            record: None,
            record_unit: false,
        };
        one.learn(info);
        self.series.push(one);
        self.open += 1;
        let index = self.series.len() - 1;
        if id.0 < NEAR_IDS {
            let place = id.0 as usize;
            if self.index_of.len() <= place {
                self.index_of.resize(place + 1, 0);
            }
            self.index_of[place] = index as u32 + 1;
        } else {
            self.far_index_of.insert(id, index);
        }
        index
    }

    /// Sets new columns of a series, and the slot assigned for them.
    pub(crate) fn widened(&mut self, index: usize, info: Arc<SeriesInfo>, slot: Slot) {
        let layout = self.layout(info.schema.word_types());
        let one = &mut self.series[index];
        one.learn(info);
        (one.slot, one.layout, one.record) = (slot, layout, None);
    }

    fn layout(&mut self, types: Vec<ColumnType>) -> u32 {
        let known = self.layouts.iter().position(|layout| *layout == types);
        known.unwrap_or_else(|| {
            self.layouts.push(types);
            self.layouts.len() - 1
        }) as u32
    }

    /// Updates a renamed series.
    pub(crate) fn renamed(&mut self, info: Arc<SeriesInfo>) {
        self.by_name.clear();
        if let Some(index) = self.known(info.id) {
            self.series[index].learn(info);
        }
    }
}

impl Index<usize> for OpenSeries {
    type Output = OneSeries;

    #[inline]
    fn index(&self, index: usize) -> &OneSeries {
        &self.series[index]
    }
}

impl IndexMut<usize> for OpenSeries {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut OneSeries {
        &mut self.series[index]
    }
}
