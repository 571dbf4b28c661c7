//! The delta: the tail page, the tiers of runs, and the open compactions.
//!
//! ```text
//! newest                                                                        oldest
//! tail page | tier 0: run run run ... | tier 1: run run ... | tier 2 ... | leaves
//!           |         `-- the K oldest become the newest run of ------^
//! ```
//!
//! Invariants:
//! 1. Age is a total order: every row of the tail is newer than every row of the same series in a run; of two runs in a
//!    tier, the later in the list is newer; every run of a tier is newer than the runs of higher tiers.
//! 2. An open compaction takes the oldest runs of its tier. Its output holds the rows of the inputs up to the
//!    watermark, except linked rows; readers ignore the rows of the inputs up to the watermark.
//! 3. Within a series, no live run (nor the tail) holds a row older than a leaf row with the same time. This follows
//!    from the rule for linking: rows are linked only if the delta has no older row within their time span.
//! 4. A tier has at most `TIER_RUNS_MAX` runs.
//! 5. `record` and the directories may be changed in memory only; `commit` seals and writes them.

use crate::counters::Work;
use crate::key::Key;
use crate::limits::LAYOUTS_MAX;
use crate::record::{DeltaRoot, Record, record_extent};
use crate::run::block::row_bytes;
use crate::run::descriptor::Run;
use std::collections::HashSet;
use std::sync::Arc;
use tidalite_base::limits::COLUMNS_MAX;
use tidalite_base::{SeriesId, TxnId};
use tidalite_codec::ColumnType;
use tidalite_pager::{Error, PageRead, PageWrite, Ptr, Result};

/// The layouts of a file: lists of column types. The index in this list is the class of a layout.
pub(crate) type Layouts = Arc<Vec<Box<[ColumnType]>>>;

/// The delta (write-optimised tier) as seen by one snapshot or write transaction. See the head of `delta.rs`.
#[derive(Clone, Debug)]
pub struct Delta {
    pub(crate) tail: Ptr,
    pub(crate) tail_rows: u64,
    pub(crate) layouts: Layouts,
    /// The record of the delta as the next commit writes it; its layouts are in `layouts`.
    pub(crate) record: Record,
    pub(crate) record_ptr: Ptr,
    /// Whether runs, compactions or layouts have changed since the record of the delta was last written.
    pub(crate) changed: bool,
    pub(crate) work: Work,
    /// Series with rows that this transaction has installed as leaves.
    pub(crate) linked: HashSet<SeriesId>,
}

impl Delta {
    /// Loads the record of the delta to which the root points.
    ///
    /// # Errors
    /// `Corrupt` when the record is damaged; `Io`.
    ///
    /// # Cost
    /// Reads one block of at most 64 KiB, or no block if there are no runs.
    pub fn load<R: PageRead>(r: &R, root: &DeltaRoot) -> Result<Self> {
        let mut record = Record::read(r, &root.record)?;
        Ok(Self {
            tail: root.tail,
            tail_rows: root.tail_rows,
            layouts: Arc::new(std::mem::take(&mut record.layouts)),
            record,
            record_ptr: root.record,
            changed: false,
            work: Work::default(),
            linked: HashSet::new(),
        })
    }

    /// Work counters since the delta was loaded or last committed.
    #[must_use]
    pub fn work(&self) -> Work {
        self.work
    }

    /// Number of live runs per tier, without the outputs of open compactions.
    #[must_use]
    pub fn tier_runs(&self) -> Vec<usize> {
        self.record
            .tiers
            .iter()
            .map(|tier| tier.runs.len())
            .collect()
    }

    /// Number of runs in all tiers, including the outputs of open compactions.
    #[must_use]
    pub fn run_count(&self) -> usize {
        self.runs().count()
    }

    /// Number of rows in runs. Rows that an open compaction has copied to its output are counted twice.
    #[must_use]
    pub fn run_rows(&self) -> u64 {
        self.runs()
            .fold(0, |rows, run| rows.saturating_add(run.rows))
    }

    /// Number of rows in the tail page.
    #[must_use]
    pub fn tail_rows(&self) -> u64 {
        self.tail_rows
    }

    /// Whether the delta holds no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tail.is_null() && self.runs().all(|run| run.rows == 0)
    }

    fn runs(&self) -> impl Iterator<Item = &Run> {
        self.record.tiers.iter().flat_map(|tier| {
            let output = tier
                .compaction
                .as_ref()
                .and_then(|compaction| compaction.output.as_ref());
            tier.runs.iter().chain(output)
        })
    }

    /// Returns the runs of the tiers from `tier` on, newest first, each with its watermark if an open compaction
    /// reads it. Rows of the run up to the watermark are hidden.
    pub(crate) fn live_runs(&self, tier: usize) -> impl Iterator<Item = (&Run, Option<Key>)> {
        let tiers = self.record.tiers.get(tier..).unwrap_or_default();
        tiers.iter().flat_map(|tier| {
            let compaction = tier.compaction.as_ref();
            let inputs = compaction.map_or(0, |compaction| compaction.inputs);
            let watermark = compaction.and_then(|compaction| compaction.watermark);
            let runs = tier.runs.iter().enumerate().rev();
            let runs = runs.map(move |(i, run)| (run, watermark.filter(|_| i < inputs)));
            let output = compaction.and_then(|compaction| compaction.output.as_ref());
            runs.chain(output.map(|run| (run, None)))
        })
    }

    /// The column types of a class (`LiveRows::class`), if the class exists.
    #[must_use]
    pub fn layout(&self, class: u32) -> Option<&[ColumnType]> {
        self.layouts.get(class as usize).map(|layout| &**layout)
    }

    /// Returns the class of a layout, if rows with this layout were ever stored in the delta.
    #[must_use]
    pub fn class_of(&self, types: &[ColumnType]) -> Option<u32> {
        let known = self.layouts.iter().position(|layout| **layout == *types);
        known.map(|class| class as u32)
    }

    /// Returns the class of a layout; adds a new class if the layout is unknown.
    pub(crate) fn add_class(&mut self, types: &[ColumnType]) -> Result<u32> {
        if let Some(class) = self.class_of(types) {
            return Ok(class);
        }
        if types.len() > COLUMNS_MAX {
            return Err(Error::Limit {
                what: "columns of a series",
                found: types.len() as u64,
                limit: COLUMNS_MAX as u64,
            });
        }
        if self.layouts.len() == LAYOUTS_MAX {
            return Err(Error::Limit {
                what: "different layouts in a file",
                found: LAYOUTS_MAX as u64 + 1,
                limit: LAYOUTS_MAX as u64,
            });
        }
        Arc::make_mut(&mut self.layouts).push(types.into());
        assert!(self.layouts.len() <= LAYOUTS_MAX, "layouts are bounded");
        self.changed = true;
        Ok(self.layouts.len() as u32 - 1)
    }

    pub(crate) fn next_run(&mut self) -> u64 {
        self.record.next_run = self.record.next_run.wrapping_add(1);
        self.record.next_run
    }

    /// Seals the directories of the runs, writes the record of the delta if it changed, and returns the root of the
    /// delta.
    pub(crate) fn seal<W: PageWrite>(&mut self, w: &mut W) -> Result<DeltaRoot> {
        if self.changed {
            for tier in &mut self.record.tiers {
                for run in tier.runs_and_output_mut() {
                    run.directory.seal(w)?;
                }
            }
            if !self.record_ptr.is_null() {
                w.free_extent(&record_extent(&self.record_ptr, w.page_size()));
            }
            self.record.layouts.clone_from(&self.layouts);
            let (ptr, pages) = self.record.write(w)?;
            self.record_ptr = ptr;
            self.work.extent_pages_written += pages;
            self.changed = false;
        }
        Ok(DeltaRoot {
            tail: self.tail,
            record: self.record_ptr,
            tail_rows: self.tail_rows,
            run_rows: self.run_rows(),
        })
    }

    /// Returns a lower bound for the oldest transaction whose rows are in the tail page, for the new run that takes
    /// over these rows.
    pub(crate) fn tail_oldest<W: PageWrite>(&self, w: &W) -> TxnId {
        // Rows of the tail page are newer than the newest run; their exact age is not stored.
        match self.live_runs(0).next() {
            _ if self.tail.is_null() => w.txn(),
            Some((run, _)) => run.txn_newest,
            None => TxnId(1),
        }
    }

    /// Frees the tail page, whose rows have been moved elsewhere.
    pub(crate) fn free_tail<W: PageWrite>(&mut self, w: &mut W) {
        if !self.tail.is_null() {
            w.free_page(&self.tail);
            self.tail = Ptr::NULL;
            self.tail_rows = 0;
        }
    }

    /// Counts rows that were installed as leaves, and records that their series has such rows.
    pub(crate) fn note_linked(&mut self, series: SeriesId, rows: usize, columns: usize) {
        debug_assert!(rows > 0, "linked rows are counted");
        let rows = rows as u64;
        self.work.rows_flushed += rows;
        self.work.rows_linked += rows;
        self.work.bytes_flushed += rows * row_bytes(columns);
        self.linked.insert(series);
    }
}
