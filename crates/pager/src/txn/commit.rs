//! Commit of a write transaction: gathers the facts, lets `commit_plan.rs` make a plan, then executes the plan. The
//! commit writes pages to the file and passes a meta record to the pipeline. docs/durability.md argues its crash
//! safety case by case.

use super::WriteTxn;
use super::commit_plan::{CommitFacts, CommitPlan, PageDestination, granted};
use super::dirty::write;
use super::durability::{CommitInfo, Durability};
use crate::commit::metrics::{Metrics, Phase};
use crate::commit::pipeline::{Recorded, Until};
use crate::commit::redo::Entry;
use crate::commit::unwritten_pages::Waiting;
use crate::commit::versions::State;
use crate::error::{Error, Result};
use crate::format::layout::is_large_page;
use crate::format::meta::{APP_BYTES_MAX, FreedRange, LazyBase, Meta};
use crate::format::ptr::Ptr;
use crate::options::Verify;
use crate::seeded::{Bug, active};
use crate::space::build::Built;
use crate::space::large::LargeWhat;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tidalite_base::TxnId;
use tidalite_disk::storage::Committed;

/// The meta record of a commit and the pages that must be written for it, besides the changed pages.
struct Prepared {
    meta: Arc<Meta>,
    /// The free-space part of the meta record, with its pages.
    built: Built,
}

impl WriteTxn {
    /// Starts writing the leaves of a large transaction to the file, in the background if possible, while the caller
    /// seals the pages above them. Should be called when only sealing and a durable commit are left to do. Pages may
    /// still be changed, but are then written twice.
    ///
    /// # Errors
    /// The error that failed the transaction earlier; I/O errors.
    pub fn write_leaves(&mut self) -> Result<()> {
        self.check_usable()?;
        // Changes that fit into the redo log need no early writes, since their commit does not sync the pages.
        if !self.is_large() {
            return Ok(());
        }
        let (storage, write_behind_bytes) = (
            &self.inner.files.storage,
            self.inner.files.options.write_behind_bytes,
        );
        let done = self.dirty.write_leaves(storage, write_behind_bytes);
        done.map_err(|error| self.fail(error))
    }

    /// Performs the whole commit except for the wait until it is durable; a lazy commit is complete then. `wanted` is
    /// the condition for which the caller will wait, and `begun` the start of the call. Also returns the durability
    /// that was actually used. Afterwards the transaction may only be dropped.
    pub(crate) fn enqueue(
        &mut self,
        app: &[u8],
        requested: Durability,
        wanted: Until,
        begun: Instant,
    ) -> Result<(CommitInfo, Durability)> {
        self.check_usable()?;
        self.inner.files.check_poison()?;
        if app.len() > APP_BYTES_MAX {
            return Err(Error::Limit {
                what: "bytes of the app area",
                found: app.len() as u64,
                limit: APP_BYTES_MAX as u64,
            });
        }
        self.dirty.drain().map_err(|error| self.fail(error))?;
        for (page, pages) in self.epochs.finish() {
            self.release_own(page, pages);
        }
        let durability = granted(requested, self.pins.any());
        if self.changes_nothing(app, durability.has_meta()) {
            if durability.is_durable() {
                let pipeline = &self.inner.pipeline;
                pipeline.keep_writer_lock(&self.inner.files, (self.base.txn.0, wanted));
            }
            return Ok((self.info(self.base.txn, 0, 0), durability));
        }
        self.plan_pins(durability.is_durable())?;
        let facts = self.facts(durability);
        let (pipeline, base) = (&self.inner.pipeline, self.base.txn.0);
        let plan = CommitPlan::of(&facts, |at_once| pipeline.log_for(base, at_once));
        Ok((self.execute(app, &plan, begun)?, durability))
    }

    /// Gathers the facts that decide how the commit is made.
    fn facts(&mut self, durability: Durability) -> CommitFacts {
        let redo = self.writer().meta.redo;
        let log_is_in_the_way =
            durability.is_durable() && redo.is_some_and(|redo| self.log_is_in_the_way(redo));
        let inner = Arc::clone(&self.inner);
        let options = &inner.files.options;
        let pages_kept = self.dirty.pages_in_memory() + inner.versions.unwritten.len();
        let written = self.base.written.min(self.base.txn.0);
        let writer = self.writer();
        let needs_meta = writer.freed.needs_meta(inner.files.page_size, options);
        let length_unsynced = writer.length_unsynced;
        CommitFacts {
            durability,
            changes_pins: self.pins.any(),
            is_large: self.is_large(),
            writes_second_file: self.space.own.iter().any(|(page, _)| is_large_page(page)),
            compacts: self.space.compacts,
            space_unsynced: self.space.took_reserve || length_unsynced,
            log_is_enabled: options.log_bytes > 0,
            has_log: redo.is_some(),
            log_is_in_the_way,
            needs_meta,
            bytes_kept: pages_kept * inner.files.page_size,
            bytes_kept_max: options.unwritten_bytes_max,
            commits_unwritten: self.txn.0 - written,
        }
    }

    /// Executes the plan. If the commit needs a flush, it then waits in the pipeline for the flush.
    fn execute(&mut self, app: &[u8], plan: &CommitPlan, begun: Instant) -> Result<CommitInfo> {
        self.change_log(plan)?;
        if let Some(writer) = &self.writer {
            writer.check_reserve(&self.inner.files, &self.space)?;
        }
        let large = if plan.durability.has_meta() {
            self.write_large()?
        } else {
            Vec::new()
        };
        let inner = Arc::clone(&self.inner);
        let metrics = &inner.pipeline.metrics;
        let freed_ranges = self.space.freed_ranges(self.txn.0);
        let Some(writer) = &mut self.writer else {
            unreachable!("the writer state leaves with the transaction")
        };
        assert!(!self.staged, "a commit begins once");
        writer.space.stage(&self.space);
        self.staged = true;
        let (mut prepared, mut lap) = (None, begun);
        if plan.durability.has_meta() {
            prepared = Some(self.prepare(app, &freed_ranges, large.last())?);
            lap = metrics.lap(Phase::Seal, begun);
        }
        self.dirty.expect_sealed()?;
        self.write_unsynced_meta_early(plan, prepared.as_ref());
        let waiting = self.write_pages(plan, prepared.as_ref())?;
        if plan.writes_pages() {
            lap = metrics.lap(Phase::Write, lap);
        }
        let entry = match &prepared {
            Some(ready) if plan.is_logged() => {
                let entry = self.log_entry(&ready.meta, plan.writes_log_twice())?;
                metrics.lap(Phase::Seal, lap);
                entry
            }
            _ => None,
        };
        // From here on no step can fail: the commit is complete.
        self.learn_written(&waiting);
        self.staged = false;
        Ok(self.complete(app, plan, prepared, freed_ranges, &large, entry))
    }

    /// Writes the changed pages, unwritten pages of earlier commits, and the pages of the free-space structure.
    /// Returns the pages of earlier commits.
    fn write_pages(
        &mut self,
        plan: &CommitPlan,
        prepared: Option<&Prepared>,
    ) -> Result<Vec<(u64, Waiting)>> {
        let storage = &*self.inner.files.storage;
        let mut waiting = Vec::new();
        if let PageDestination::File(hint) = plan.pages {
            waiting = self.waiting();
            self.dirty.write_all(storage, &waiting, hint)?;
        }
        for (at, bytes) in prepared.iter().flat_map(|ready| &ready.built.writes) {
            write(storage, *at, bytes)?;
        }
        Ok(waiting)
    }

    /// Marks the pages that were just written as verified, so that this process need not verify them when it reads
    /// them. `waiting` are the written pages of earlier commits.
    fn learn_written(&self, waiting: &[(u64, Waiting)]) {
        let files = &self.inner.files;
        if files.options.verify != Verify::OnFirstTouch {
            return;
        }
        self.dirty.for_each_sealed(|ptr| files.verified.learn(ptr));
        for (number, page) in waiting {
            files.verified.learn(&Ptr {
                addr: number * files.page_size as u64,
                len: files.page_size as u32,
                kind: page.kind,
                checksum: page.checksum,
                birth: page.birth,
            });
        }
    }

    /// Updates the writer state for a commit whose pages have been written, and passes the commit to the pipeline.
    fn complete(
        &mut self,
        app: &[u8],
        plan: &CommitPlan,
        prepared: Option<Prepared>,
        mut freed_ranges: Vec<FreedRange>,
        large: &[(LargeWhat, Ptr)],
        entry: Option<Entry>,
    ) -> CommitInfo {
        let syncs_before = self.inner.pipeline.syncs_begun();
        let page_bytes = self.inner.files.page_size as u64;
        let (txn, mut space_bytes) = (self.txn.0, 0);
        let Some(writer) = &mut self.writer else {
            unreachable!("the writer state leaves with the transaction")
        };
        writer.last.passing = !plan.writes_for_sync();
        writer.last.lazy = !plan.durability.is_durable();
        let write_behind_bytes = self.inner.files.options.write_behind_bytes;
        let early = &mut writer.last.early;
        early.note(&self.dirty, plan.writes_for_sync(), write_behind_bytes);
        let freed = freed_ranges.iter().map(|range| range.pages);
        writer.freed.add(freed.sum());
        let meta = match prepared {
            Some(ready) => {
                space_bytes = ready.built.pages() * page_bytes;
                freed_ranges.extend_from_slice(ready.built.replaced());
                writer.install_lists(ready.built);
                if let Some(space) = writer.space.large.as_deref_mut() {
                    space.install(large);
                }
                writer.meta = Arc::clone(&ready.meta);
                Some(ready.meta)
            }
            None => {
                writer.space.committed(txn, &freed_ranges);
                None
            }
        };
        let meta_bytes = plan.meta_bytes(entry.as_ref().map(Entry::bytes_written));
        let info = self.info(self.txn, space_bytes, meta_bytes);
        self.count(plan.durability, &info, &freed_ranges);
        let later = if !plan.writes_pages() && self.inner.files.observed {
            self.dirty.numbers_unwritten()
        } else {
            Vec::new()
        };
        self.report(&freed_ranges, &later);
        let written = self.keep_or_drop_unwritten(plan, &freed_ranges);
        assert_eq!(
            meta.is_some(),
            plan.durability.has_meta(),
            "a commit has a meta record exactly if it was planned"
        );
        assert!(!self.staged, "the commit has ended");
        let recorded = meta.map(|meta| (meta, syncs_before, entry));
        self.finish(app, recorded, &info, plan.durability, written);
        info
    }

    /// Returns unwritten pages of earlier commits, without pages that this commit frees.
    fn waiting(&self) -> Vec<(u64, Waiting)> {
        let is_wanted = |number| !self.space.has_freed(number);
        self.inner.versions.unwritten.to_write(is_wanted)
    }

    /// Keeps the pages of this commit in memory, or, if the commit has written them, drops all unwritten pages.
    /// Returns the value of `State::written`.
    fn keep_or_drop_unwritten(&mut self, plan: &CommitPlan, freed_ranges: &[FreedRange]) -> u64 {
        let inner = Arc::clone(&self.inner);
        if plan.writes_pages() && inner.versions.unwritten.len() == 0 {
            return u64::MAX;
        }
        let mut pages = inner.versions.unwritten.lock();
        for range in freed_ranges
            .iter()
            .filter(|range| range.birth > self.base.written)
        {
            (range.page..range.page + range.pages).for_each(|number| pages.bury(number));
        }
        if let PageDestination::Memory { rewrites_space } = plan.pages {
            if rewrites_space && let Some(writer) = &mut self.writer {
                writer.space.rewrite();
            }
            let kept = self.dirty.take_unwritten();
            return pages.put(self.base.txn.0, kept, |bytes| self.dirty.reuse(bytes));
        }
        let Some(writer) = &mut self.writer else {
            unreachable!("the writer state leaves with the transaction")
        };
        let own = &self.space.own;
        let space = &mut writer.space;
        // A page beyond the end of the file is not used: it was free when the file was truncated.
        let mut is_used = |number| space.in_file(number, 1) && !space.any_free(number, 1);
        pages.written(|number| !own.contains(number, 1) && is_used(number));
        u64::MAX
    }

    /// Whether the commit would change nothing compared with the commit on which it builds.
    fn changes_nothing(&self, app: &[u8], with_meta: bool) -> bool {
        self.dirty.is_empty()
            && !self.space.compacts
            && self.space.is_empty()
            && app == &*self.base.app
            && self.user == self.base.user
            && !self.pins.any()
            && !(with_meta && self.second_changed())
            && (!with_meta || self.inner.pipeline.has_meta(self.base.txn.0))
    }

    fn info(&self, txn: TxnId, space_bytes: u64, meta_bytes: u64) -> CommitInfo {
        let page_size = self.inner.files.page_size as u64;
        let space_pages = space_bytes / page_size;
        let pages = self.dirty.pages_written + space_pages;
        CommitInfo {
            txn,
            pages_written: pages,
            bytes_written: pages * page_size + self.extents.bytes_written + meta_bytes,
            space_pages_written: space_pages,
        }
    }

    /// Builds the meta record and, if the lists in it would be too long, pages of the free-space structure.
    fn prepare(
        &mut self,
        app: &[u8],
        freed_ranges: &[FreedRange],
        large: Option<&(LargeWhat, Ptr)>,
    ) -> Result<Prepared> {
        let Some(writer) = &mut self.writer else {
            unreachable!("the writer state leaves with the transaction")
        };
        let (number, leaves_log) = (self.txn.0, self.log.is_left);
        let writer_txn = writer.meta.txn;
        let mut built = writer.build_lists(&self.inner, &mut self.space, number, freed_ranges)?;
        let lists = std::mem::take(&mut built.lists);
        let mut meta = Meta {
            uuid: writer.meta.uuid,
            txn: self.txn.0,
            sequence: 0,
            time_ns: self.inner.files.options.clock.wall_ns(),
            pages: lists.pages,
            free_root: lists.free_root,
            freed_directory: lists.freed_directory,
            pins: writer.meta.pins,
            clock: writer.meta.clock,
            large: large.map_or(writer.meta.large, |(_, root)| *root),
            redo: self.log.new.or(writer.meta.redo.filter(|_| !leaves_log)),
            lazy_base: LazyBase::default(),
            user: Arc::clone(&self.user),
            app: app.into(),
            changes: lists.changes,
            pendings: lists.pendings,
            confirmations: 0,
        };
        self.record_pins(&mut meta)?;
        assert!(
            meta.txn > writer_txn,
            "a meta record is newer than the one below it"
        );
        let meta = Arc::new(meta);
        Ok(Prepared { meta, built })
    }

    /// Writes the unsynced meta record before the pages, if the deliberate bug `Bug::UnsyncedMetaBeforeData` is
    /// switched on.
    fn write_unsynced_meta_early(&self, plan: &CommitPlan, prepared: Option<&Prepared>) {
        if let Some(ready) = prepared
            && active(Bug::UnsyncedMetaBeforeData)
            && plan.durability == Durability::Lazy
        {
            let pipeline = &self.inner.pipeline;
            pipeline.write_unsynced_meta_early(&self.inner.files, &ready.meta);
        }
    }

    fn count(&self, durability: Durability, info: &CommitInfo, freed_ranges: &[FreedRange]) {
        let metrics = &self.inner.pipeline.metrics;
        Metrics::add(&metrics.commits, 1);
        match durability {
            Durability::Durable | Durability::OneFlush => Metrics::add(&metrics.commits_durable, 1),
            Durability::Lazy => Metrics::add(&metrics.commits_lazy, 1),
            Durability::None => {}
        }
        let page_size = self.inner.files.page_size as u64;
        let bytes = info.pages_written * page_size + self.extents.bytes_written;
        Metrics::add(&metrics.bytes_data, bytes);
        Metrics::add(&metrics.writes, self.dirty.writes);
        Metrics::add(&metrics.pages_allocated, self.space.own_pages);
        let freed = freed_ranges.iter().map(|range| range.pages).sum();
        Metrics::add(&metrics.pages_freed, freed);
        let own = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        for (total, count) in [
            (&metrics.pages_copied, own(&self.counters.pages_copied)),
            (&metrics.pages_split, own(&self.counters.pages_split)),
            (&metrics.pages_merged, own(&self.counters.pages_merged)),
            (&metrics.pages_spilled, self.dirty.spilled),
            (&metrics.pages_read_back, self.dirty.read_back),
        ] {
            Metrics::add(total, count);
        }
        let freed_pages = self.inner.files.lock.area.freed_pages();
        freed_pages.fetch_add(freed, Ordering::Relaxed);
    }

    /// Reports the commit to the observer of the storage. `later` are allocated pages that are not written yet.
    fn report(&self, freed_ranges: &[FreedRange], later: &[u64]) {
        let Some(observer) = self.inner.files.observer() else {
            return;
        };
        let page_size = self.inner.files.page_size as u64;
        let own = self.space.own.iter();
        let allocated: Vec<_> = own.map(|(at, n)| (at * page_size, n * page_size)).collect();
        let freed = freed_ranges.iter();
        let freed: Vec<_> = freed
            .map(|range| (range.page * page_size, range.pages * page_size, range.birth))
            .collect();
        let later = later.iter();
        let later: Vec<_> = later.map(|page| (page * page_size, page_size)).collect();
        observer.committed(&Committed {
            txn: self.txn.0,
            allocated: &allocated,
            freed: &freed,
            unwritten: &later,
        });
    }

    /// Passes the commit to the pipeline and gives the writer state back, before the next writer begins.
    fn finish(
        &mut self,
        app: &[u8],
        record: Option<(Arc<Meta>, u64, Option<Entry>)>,
        info: &CommitInfo,
        durability: Durability,
        written: u64,
    ) {
        let pins = self.pins.next.take();
        let Some(mut writer) = self.writer.take() else {
            return;
        };
        if let Some(pins) = pins {
            writer.pins = pins;
        }
        let inner = &*self.inner;
        let recorded = record.as_ref().map(|(record, ..)| record.pages);
        let end = writer.note_end(self.txn.0, recorded);
        if record.is_some() {
            writer.trim(inner, self.space.compacts);
        }
        writer.spare = self.dirty.take_recycled();
        let state = Arc::new(State {
            txn: self.txn,
            word: self.txn.0,
            bytes: end * inner.files.page_size as u64,
            written,
            app: match &record {
                Some((record, ..)) => Arc::clone(&record.app),
                None => app.into(),
            },
            user: Arc::clone(&self.user),
            time_ns: record.as_ref().map_or_else(
                || inner.files.options.clock.wall_ns(),
                |(record, ..)| record.time_ns,
            ),
            pins: writer.pins.table,
            clock: writer.pins.clock_block,
            found: None,
        });
        let (recorded, entry) = record.map_or((None, None), |(record, syncs_before, entry)| {
            let recorded = Recorded {
                state: Arc::clone(&state),
                record,
                syncs_before,
            };
            let base = self.base.txn.0;
            (Some(Arc::new(recorded)), entry.map(|entry| (base, entry)))
        });
        let length_unsynced = recorded.is_some() && std::mem::take(&mut writer.length_unsynced);
        let lazy = durability == Durability::Lazy;
        let pipeline = &inner.pipeline;
        let written = (info.bytes_written, length_unsynced);
        pipeline.push(&inner.files, &state, recorded, written, entry, lazy);
        if lazy && let Some(observer) = inner.files.observer() {
            observer.unsynced_meta(self.txn.0);
        }
        if !durability.is_durable() {
            inner.publish(&state, lazy);
            pipeline.shown(&inner.files);
        }
        inner.put_writer(writer);
    }
}
