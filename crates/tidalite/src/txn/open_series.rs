//! The series that a write transaction has open, and those known from the previous transaction: opening an unknown
//! series takes a catalog lookup and the decoding of its entry, which costs more than inserting a row.
//!
//! Invariants:
//! 1. `index_of[id] - 1` is the index of series `id` in `series`, 0 means unknown; the few ids from `NEAR_IDS` on are
//!    in `far_index_of`.
//! 2. A series is open if its `turn` is the transaction's; its slot then belongs to the transaction's write buffer. For
//!    other series only the catalog entry is valid.
//! 3. The slot of a series that is not open is still valid in the write buffer if `epoch` is the buffer's epoch.
//! 4. Entries are kept for the next transaction only if the catalog's trees still have the roots that this transaction
//!    left: each root contains checksums that cover its whole tree, so no other writer has changed the catalog.

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

/// Series with an id below this are found by array index. Ids come from the file, so they must not determine how much
/// memory is used.
const NEAR_IDS: u64 = 1 << 22;

/// Maximum number of series kept for the next transaction, almost a KiB each.
const KEPT_MAX: usize = 1 << 20;

/// Maximum number of series kept if a transaction has not used at least half of them: a program that creates series in
/// many transactions, and seldom returns to one, needs no more memory.
const KEPT_UNUSED_MAX: usize = 1 << 17;

/// A known series. It begins at the start of a cache line, because writes that alternate between thousands of series
/// load all of these in every round.
#[repr(align(64))]
pub(crate) struct OneSeries {
    id: SeriesId,
    pub(crate) info: Arc<SeriesInfo>,
    pub(crate) slot: Slot,
    /// Epoch of the write buffer in which the slot was assigned.
    epoch: u64,
    /// Copy of the merge policy in `info`, which may not be in the processor's cache.
    merge: MergePolicy,
    /// Number of columns, copied from `info`: it is read whenever the series is selected, when `info` may not be in the
    /// processor's cache.
    pub(crate) columns: u32,
    /// Number of the transaction that has opened the series, counted by `OpenSeries::turn`.
    turn: u32,
    /// Index of the series' column types in `OpenSeries::layouts`.
    layout: u32,
    /// Whether any column is a text column.
    pub(crate) texts: bool,
    /// Whether rows may take the fast path for points: the series has two columns and no texts, and the merge policy
    /// `Replace`.
    pub(crate) point: bool,
    /// Whether a container may own the series, by its name.
    pub(crate) has_name_of_container: bool,
    /// Cached times of rows, if the merge policy needs them.
    pub(crate) guard: Option<Box<Guard>>,
    /// The schema function of the record type that was found to fit this series' columns. `record_unit` says whether
    /// its unit fits, too. Types with equal schemas may share one function, so only properties of the schema may be
    /// derived from it.
    record: Option<fn() -> Schema>,
    record_unit: bool,
}

/// The series that a write transaction knows, some of which are open in it; the head of this file lists the invariants.
#[derive(Default)]
pub(crate) struct OpenSeries {
    series: Vec<OneSeries>,
    index_of: Vec<u32>,
    far_index_of: HashMap<SeriesId, usize>,
    by_name: HashMap<String, usize>,
    /// The different lists of column types; most series share one list.
    layouts: Vec<Vec<ColumnType>>,
    turn: u32,
    /// Number of open series.
    open: usize,
    /// The catalog version that the entries belong to, while they are kept between two transactions.
    catalog: Option<Catalog>,
    /// Epoch of the write buffer of the last transaction that used these entries.
    buffered: u64,
}

/// The series that the last write transaction knew, for the next write transaction and for readers of the last commit.
#[derive(Default)]
pub(crate) struct WriterSeries(Mutex<Option<OpenSeries>>);

impl WriterSeries {
    fn lock(&self) -> MutexGuard<'_, Option<OpenSeries>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the known series for a new write transaction. Returns no series if the catalog has changed since the
    /// previous transaction.
    pub(crate) fn take(&self, roots: &Roots) -> OpenSeries {
        let kept = self.lock().take();
        kept.and_then(|kept| kept.again(roots)).unwrap_or_default()
    }

    /// Keeps the series of a transaction after its commit, which has these roots. `buffered` is the current epoch of
    /// the write buffer.
    pub(crate) fn give(&self, mut open: OpenSeries, roots: &Roots, buffered: u64) {
        open.buffered = buffered;
        let kept = open.kept(roots);
        *self.lock() = kept;
    }

    /// The entry of a series in this version of the catalog, if the last write transaction knew it.
    pub(crate) fn info(&self, catalog: &Catalog, id: SeriesId) -> Option<Arc<SeriesInfo>> {
        let kept = self.0.try_lock().ok()?;
        let kept = kept.as_ref()?;
        if kept.catalog.as_ref() != Some(catalog) {
            return None;
        }
        Some(Arc::clone(&kept.series[kept.known(id)?].info))
    }
}

/// The cache of times for a series when a transaction begins: empty, or `None` if the policy `Replace` needs none.
fn guard_of(merge: MergePolicy) -> Option<Box<Guard>> {
    (merge != MergePolicy::Replace).then(Box::default)
}

impl OneSeries {
    /// Updates the copies of the series' properties after a change of its catalog entry.
    pub(crate) fn learn(&mut self, info: Arc<SeriesInfo>) {
        self.merge = info.merge;
        self.columns = info.schema.columns.len() as u32;
        self.texts = info.schema.columns.iter().any(|column| column.ty.is_text());
        self.has_name_of_container = {
            let name = info.name.as_ref();
            name.is_some_and(|name| name.container().is_some())
        };
        self.point = self.columns == 2 && !self.texts && self.merge == MergePolicy::Replace;
        self.info = info;
    }

    /// Checks that a record type fits the series, and remembers the result: comparing names for every record would cost
    /// more than storing it.
    ///
    /// # Errors
    /// `Schema` if the series has other columns, or another unit and `any_unit` is false.
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
    /// Whether the transaction has no series open.
    pub(crate) fn is_empty(&self) -> bool {
        self.open == 0
    }

    /// Whether this write buffer is the one of the previous transaction, unchanged. Its slots then belong to the known
    /// series.
    pub(crate) fn is_of(&self, write_buffer: &WriteBuffer) -> bool {
        self.buffered == write_buffer.epoch()
    }

    /// Number of series that the transaction has open.
    pub(crate) fn count(&self) -> usize {
        self.open
    }

    /// Forgets all known series.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Prepares the known series for being kept after the commit with these roots. Returns `None` if there are too
    /// many.
    fn kept(mut self, roots: &Roots) -> Option<Self> {
        let known = self.series.len();
        if known > KEPT_MAX || known > KEPT_UNUSED_MAX && self.open < known / 2 {
            return None;
        }
        // One series can have many entries, because its name can be written in many ways.
        if self.by_name.len() > KEPT_MAX {
            self.by_name.clear();
        }
        self.catalog = Some(roots.catalog());
        Some(self)
    }

    /// Prepares the known series for the next transaction: no series is open. Returns `None` if the catalog has
    /// changed.
    fn again(mut self, roots: &Roots) -> Option<Self> {
        if self.catalog != Some(roots.catalog()) {
            return None;
        }
        self.turn = self.turn.checked_add(1)?;
        self.open = 0;
        Some(self)
    }

    /// Index of a series, if it is open in this transaction.
    #[inline]
    pub(crate) fn index(&self, id: SeriesId) -> Option<usize> {
        let index = self.known(id)?;
        (self.series.get(index)?.turn == self.turn).then_some(index)
    }

    /// Index of a series, if it is known, open or not.
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

    /// Index of the series that was once requested by exactly this text. It is known, but perhaps not open.
    pub(crate) fn named(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Remembers the text of a name by which a series was requested.
    pub(crate) fn name(&mut self, name: &str, index: usize) {
        self.by_name.insert(name.to_owned(), index);
    }

    /// Opens a known series, unless it is open already.
    pub(crate) fn turn_to(&mut self, index: usize, write_buffer: &mut WriteBuffer) {
        let one = &mut self.series[index];
        if one.turn != self.turn {
            if one.epoch != write_buffer.epoch() {
                one.slot = write_buffer.slot(one.id, &self.layouts[one.layout as usize]);
                one.epoch = write_buffer.epoch();
            }
            write_buffer.keep_all(one.slot, one.merge.keeps_several());
            one.turn = self.turn;
            one.guard = guard_of(one.merge);
            self.open += 1;
        }
    }

    /// Opens a series that is not known yet, and returns its index.
    pub(crate) fn enter(&mut self, info: Arc<SeriesInfo>, write_buffer: &mut WriteBuffer) -> usize {
        let id = info.id;
        let types = info.schema.word_types();
        let slot = write_buffer.slot(id, &types);
        write_buffer.keep_all(slot, info.merge.keeps_several());
        let layout = self.layout(types);
        let mut one = OneSeries {
            id,
            layout,
            columns: 0,
            texts: false,
            point: false,
            has_name_of_container: false,
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

    /// Updates a series after columns were added, with its new catalog entry and slot.
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

    /// Updates a series after it was renamed.
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
