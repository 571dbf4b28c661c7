//! The series that a write transaction has open, and those that the one before had: to open a series is to look for it in the
//! catalog and to decode its entry, which costs more than to insert a row.
//!
//! Invariants:
//! 1. `index_of[id] - 1` is the place of series `id` in `series`, 0 where it is not known; the few with a number beyond
//!    `NEAR_IDS` stand in `far_index_of`.
//! 2. A series is open when its `turn` is that of the transaction: its slot is one of the transaction's staging then. Of the others
//!    only what the catalog says is known.
//! 3. The slot of a series that is not open is still one of the staging if `epoch` is that of the staging.
//! 4. From one transaction to the next they are kept only where the trees of the catalog have the roots that the first one left: a
//!    root names its tree's contents by checksums, so nobody else has changed them.

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
use tidalite_runs::{Slot, Staging};

/// Series with a number below this are found by an array index. Numbers come from the file: they must not
/// decide how much memory is taken.
const NEAR_IDS: u64 = 1 << 22;

/// Series that are kept for the next transaction at most; half a KiB each, about.
const KEPT_MAX: usize = 1 << 20;

/// A series that is known. In one line of the cache: series in turn bring thousands of them there with every round.
#[repr(align(64))]
pub(crate) struct OneSeries {
    id: SeriesId,
    pub(crate) info: Arc<SeriesInfo>,
    pub(crate) slot: Slot,
    /// The staging's when it gave the slot.
    epoch: u64,
    /// As `info` has it, which may not be in the cache.
    merge: MergePolicy,
    /// How many its schema has: looked up with every turn to the series, where `info` may not be in the cache.
    pub(crate) columns: u32,
    /// The transaction that has it open.
    turn: u32,
    /// Which of `layouts` its columns are.
    layout: u32,
    /// Whether one of the columns is of texts.
    pub(crate) texts: bool,
    /// Two columns, none of texts, and a row simply takes the place of another: rows may go the easy way.
    pub(crate) point: bool,
    /// What is known of its times, where its merge policy asks.
    pub(crate) guard: Option<Box<Guard>>,
    /// The schema of the record type that was found to have this series' columns, and whether its unit is this series'. Types whose
    /// schemas are the same may have one function: only what follows from the schema may be told by it.
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
    /// The different lists of column types: most series have the same.
    layouts: Vec<Vec<ColumnType>>,
    turn: u32,
    /// How many are open.
    open: usize,
    /// The catalog that they are of, while nobody has them open.
    catalog: Option<Catalog>,
    /// The epoch of the staging of the transaction that had them open last.
    staged: u64,
}

/// The series that the last write transaction knew: for the next one, and for who reads what it has left.
#[derive(Default)]
pub(crate) struct Kept(Mutex<Option<OpenSeries>>);

impl Kept {
    fn lock(&self) -> MutexGuard<'_, Option<OpenSeries>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For a write transaction, if the catalog is still the one that the one before left.
    pub(crate) fn take(&self, roots: &Roots) -> OpenSeries {
        let kept = self.lock().take();
        kept.and_then(|kept| kept.again(roots)).unwrap_or_default()
    }

    /// After the commit of these roots; the staging has this epoch now.
    pub(crate) fn give(&self, mut open: OpenSeries, roots: &Roots, staged: u64) {
        open.staged = staged;
        let kept = open.kept(roots);
        *self.lock() = kept;
    }

    /// The entry of a series in this version of the catalog, if it is at hand.
    pub(crate) fn info(&self, catalog: &Catalog, id: SeriesId) -> Option<Arc<SeriesInfo>> {
        let kept = self.0.try_lock().ok()?;
        let kept = kept.as_ref()?;
        if kept.catalog.as_ref() != Some(catalog) {
            return None;
        }
        Some(Arc::clone(&kept.series[kept.known(id)?].info))
    }
}

/// Nothing is known of a series' times when a transaction begins.
fn guard_of(merge: MergePolicy) -> Option<Box<Guard>> {
    (merge != MergePolicy::Replace).then(Box::default)
}

impl OneSeries {
    /// The catalog's entry has changed.
    pub(crate) fn learn(&mut self, info: Arc<SeriesInfo>) {
        self.merge = info.merge;
        self.columns = info.schema.columns.len() as u32;
        self.texts = info.schema.columns.iter().any(|column| column.ty.is_text());
        self.point = self.columns == 2 && !self.texts && self.merge == MergePolicy::Replace;
        self.info = info;
    }

    /// Checks a record type once: comparing names with every record would cost more than storing it.
    ///
    /// # Errors
    /// `Schema` when the series has other columns, or another unit where that counts.
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
    /// Whether none is open.
    pub(crate) fn is_empty(&self) -> bool {
        self.open == 0
    }

    /// Whether this staging is the one that the transaction before had, as it left it: its slots are of these series then.
    pub(crate) fn is_of(&self, staging: &Staging) -> bool {
        self.staged == staging.epoch()
    }

    /// How many are open.
    pub(crate) fn count(&self) -> usize {
        self.open
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// To be kept, after the commit of these roots.
    fn kept(mut self, roots: &Roots) -> Option<Self> {
        if self.series.len() > KEPT_MAX {
            return None;
        }
        // One series can be written in many ways.
        if self.by_name.len() > KEPT_MAX {
            self.by_name.clear();
        }
        self.catalog = Some(roots.catalog());
        Some(self)
    }

    /// For the next transaction, if it begins with this catalog. None is open.
    fn again(mut self, roots: &Roots) -> Option<Self> {
        if self.catalog != Some(roots.catalog()) {
            return None;
        }
        self.turn = self.turn.checked_add(1)?;
        self.open = 0;
        Some(self)
    }

    /// Where an open series stands.
    #[inline]
    pub(crate) fn index(&self, id: SeriesId) -> Option<usize> {
        let index = self.known(id)?;
        (self.series.get(index)?.turn == self.turn).then_some(index)
    }

    /// Where a series stands that is known.
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

    /// The series that was asked for by just this text, known but perhaps not open.
    pub(crate) fn named(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Notes the text that a series was asked for by.
    pub(crate) fn name(&mut self, name: &str, index: usize) {
        self.by_name.insert(name.to_owned(), index);
    }

    /// The slot of a known series that `turn_to` does not only open: it moves what is staged of it, which must not be away.
    pub(crate) fn moved_by_turn(&self, index: usize, staging: &Staging) -> Option<Slot> {
        let one = &self.series[index];
        let moved = one.turn != self.turn && one.epoch == staging.epoch();
        (moved && one.merge.keeps_several()).then_some(one.slot)
    }

    /// Opens a series that is known, unless it is open.
    pub(crate) fn turn_to(&mut self, index: usize, staging: &mut Staging) {
        let one = &mut self.series[index];
        if one.turn != self.turn {
            if one.epoch != staging.epoch() {
                one.slot = staging.slot(one.id, &self.layouts[one.layout as usize]);
                one.epoch = staging.epoch();
            }
            if one.merge.keeps_several() {
                staging.keep_all(one.slot, true);
            }
            one.turn = self.turn;
            one.guard = guard_of(one.merge);
            self.open += 1;
        }
    }

    /// Opens a series that is not known.
    pub(crate) fn enter(&mut self, info: Arc<SeriesInfo>, staging: &mut Staging) -> usize {
        let id = info.id;
        let types = info.schema.word_types();
        let slot = staging.slot(id, &types);
        if info.merge.keeps_several() {
            staging.keep_all(slot, true);
        }
        let layout = self.layout(types);
        let mut one = OneSeries {
            id,
            layout,
            columns: 0,
            texts: false,
            point: false,
            slot,
            epoch: staging.epoch(),
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

    /// A series has other columns, for which it has got this slot.
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

    /// A series has another name.
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
