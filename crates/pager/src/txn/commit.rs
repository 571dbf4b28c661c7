//! Commit: writes pages to the file and passes a record to the pipeline. docs/durability.md argues it case by case.

use super::WriteTxn;
use super::dirty::{WriteHint, write};
use crate::commit::metrics::{Metrics, Phase};
use crate::commit::pipeline::flush::write_meta;
use crate::commit::pipeline::{LogUse, Recorded, Until};
use crate::commit::redo::Entry;
use crate::commit::unwritten_pages::Waiting;
use crate::commit::versions::State;
use crate::error::{Error, Result};
use crate::format::layout::{BLOCK_BYTES, meta_at};
use crate::format::meta::{APP_BYTES_MAX, FreedRange, LazyBase, Meta};
use crate::format::ptr::Ptr;
use crate::options::Verify;
use crate::seeded::{Bug, active};
use crate::space::build::Built;
use crate::space::large::LargeWhat;
use crate::storage::Committed;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tidalite_base::TxnId;

/// Guarantee of a commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The commit survives a power cut. It takes two barriers, shared by the commits of many threads, or one, if small
    /// commits follow each other and the log takes them (`Options::log_bytes`); each log block is then written twice.
    #[default]
    Durable,
    /// Like `Durable`, but small commits go to the log from the second one on, and each log block is written once. The
    /// price: if one of these blocks is damaged before the log is emptied, and the file is opened after a crash, it
    /// goes back to the commit before (and reports this: `recovery` of the open database).
    OneFlush,
    /// The commit is visible to all processes and survives the death of this one. After a system crash the file is as
    /// of the last durable commit. No barrier; the commit becomes durable later: with the next durable commit, by
    /// `sync` of the open database, or after the bytes and time set in the options.
    Lazy,
    /// The commit is visible to this process only, until the next commit of another kind stores it too. For bulk loads.
    None,
}

impl Durability {
    pub(crate) fn is_durable(self) -> bool {
        matches!(self, Self::Durable | Self::OneFlush)
    }
}

/// Result of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommitInfo {
    /// Its number; if nothing was changed, the number of the commit it builds on.
    pub txn: TxnId,
    /// Whole pages written, including the free-space structure, without meta blocks and extents.
    pub pages_written: u64,
    /// All bytes written: pages, extents, meta blocks.
    pub bytes_written: u64,
    /// Pages of the free-space structure among the pages written.
    pub space_pages_written: u64,
}

/// After this many commits without a record, their changes to the free space are no longer listed; the structure is
/// rewritten.
const LONG_CHAIN: u64 = 64;

/// Content that a durable commit writes besides the changed pages.
struct Prepared {
    meta: Arc<Meta>,
    /// The space part of the record.
    built: Built,
}

impl WriteTxn {
    /// Announces that only seals and a durable commit follow: the leaves of a large transaction are written to the file
    /// while the pages that lead to them are sealed. A hint; the pages may still be changed.
    ///
    /// # Errors
    /// The error that failed the transaction earlier; I/O errors.
    pub fn hand_over(&mut self) -> Result<()> {
        self.check_usable()?;
        // Changes that fit into the log are not written twice.
        if !self.is_large() {
            return Ok(());
        }
        let (storage, write_behind_bytes) = (
            &self.inner.files.storage,
            self.inner.files.options.write_behind_bytes,
        );
        let done = self.dirty.hand_over(storage, write_behind_bytes);
        done.map_err(|error| self.fail(error))
    }

    /// The whole commit except the wait for the medium (`wanted`). A lazy commit is complete then. Also returns the
    /// durability actually used. `begun`: start of the call. Afterwards the transaction may only be dropped.
    pub(crate) fn enqueue(
        &mut self,
        app: &[u8],
        durability: Durability,
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
        // Pins are promised to survive.
        let durability = if self.pins.any() {
            Durability::Durable
        } else {
            durability
        };
        let with_meta = durability != Durability::None;
        if self.changes_nothing(app, with_meta) {
            if durability.is_durable() {
                let wanted = (self.base.txn.0, wanted);
                self.inner
                    .pipeline
                    .keep_writer_lock(&self.inner.files, wanted);
            }
            return Ok((self.info(self.base.txn, 0, 0), durability));
        }
        self.plan_pins(durability.is_durable())?;
        let logged = self.plan_log(durability)? == LogUse::Append;
        if let Some(writer) = &self.writer {
            writer.check_reserve(&self.inner, &self.space)?;
        }
        let large = if with_meta {
            self.write_large()?
        } else {
            Vec::new()
        };
        let inner = Arc::clone(&self.inner);
        let metrics = &inner.pipeline.metrics;
        let mut freed_ranges = self.space.freed_ranges(self.txn.0);
        let Some(writer) = &mut self.writer else {
            unreachable!("the writer state leaves with the transaction")
        };
        writer.space.stage(&self.space);
        self.staged = true;
        let (mut prepared, mut lap) = (None, begun);
        if with_meta {
            let ready = self.prepare(app, &freed_ranges, large.last())?;
            lap = metrics.lap(Phase::Seal, begun);
            if active(Bug::MetaBeforeData) && durability.is_durable() {
                self.write_meta_early(&ready)?;
            }
            if active(Bug::UnsyncedMetaBeforeData) && durability == Durability::Lazy {
                inner
                    .pipeline
                    .write_unsynced_meta_early(&inner.files, &ready.meta);
            }
            prepared = Some(ready);
        }
        self.dirty.expect_sealed()?;
        let page_bytes = inner.files.page_size;
        let kept = self.dirty.pages_in_memory() + inner.versions.unwritten.len();
        let keeps = !with_meta && kept * page_bytes <= inner.files.options.unwritten_bytes_max;
        let waiting = if keeps { Vec::new() } else { self.waiting() };
        let hint = match durability {
            Durability::None => WriteHint::Plain,
            _ if logged || durability == Durability::Lazy => WriteHint::Passing,
            _ => WriteHint::ForSync,
        };
        if !keeps {
            self.dirty
                .write_all(&*inner.files.storage, &waiting, hint)?;
        }
        for (at, bytes) in prepared.iter().flat_map(|ready| &ready.built.writes) {
            write(&*inner.files.storage, *at, bytes)?;
        }
        if !keeps {
            lap = metrics.lap(Phase::Write, lap);
        }
        let entry = match &prepared {
            Some(ready) if logged => {
                let twice = durability != Durability::OneFlush;
                let entry = self.log_entry(&ready.meta, twice)?;
                metrics.lap(Phase::Seal, lap);
                entry
            }
            _ => None,
        };
        // Nothing fails from here on: the commit is complete.
        if inner.files.options.verify == Verify::OnFirstTouch {
            // Pages just written by this process need no verification when it reads them.
            self.dirty
                .for_each_sealed(|ptr| inner.files.verified.learn(ptr));
            for (number, page) in &waiting {
                inner.files.verified.learn(&Ptr {
                    addr: number * page_bytes as u64,
                    len: page_bytes as u32,
                    kind: page.kind,
                    checksum: page.checksum,
                    birth: page.birth,
                });
            }
        }
        self.staged = false;
        let syncs_before = inner.pipeline.syncs_begun();
        let (txn, mut space_bytes) = (self.txn.0, 0);
        let Some(writer) = &mut self.writer else {
            unreachable!("the writer state leaves with the transaction")
        };
        let for_sync = hint == WriteHint::ForSync;
        writer.last.passing = !for_sync;
        writer.last.lazy = !durability.is_durable();
        let write_behind_bytes = inner.files.options.write_behind_bytes;
        let early = &mut writer.last.early;
        early.note(&self.dirty, for_sync, write_behind_bytes);
        writer
            .freed
            .add(freed_ranges.iter().map(|range| range.pages).sum());
        let record = match prepared {
            Some(ready) => {
                space_bytes = ready.built.pages() * inner.files.page_size as u64;
                freed_ranges.extend_from_slice(ready.built.replaced());
                writer.install_lists(ready.built);
                if let Some(space) = writer.space.large.as_deref_mut() {
                    space.install(&large);
                }
                writer.meta = Arc::clone(&ready.meta);
                Some(ready.meta)
            }
            None => {
                writer.space.committed(txn, freed_ranges.clone());
                None
            }
        };
        let meta_bytes = match durability {
            Durability::Durable | Durability::OneFlush => {
                let of_log = entry.as_ref().map(Entry::bytes_written);
                of_log.unwrap_or(2 * BLOCK_BYTES as u64)
            }
            Durability::Lazy => BLOCK_BYTES as u64,
            Durability::None => 0,
        };
        let info = self.info(self.txn, space_bytes, meta_bytes);
        self.count(durability, &info, &freed_ranges);
        let later = if keeps && inner.files.observed {
            self.dirty.numbers_unwritten()
        } else {
            Vec::new()
        };
        self.tell(&freed_ranges, &later);
        let written = self.keep_or_drop_unwritten(keeps, &freed_ranges);
        let recorded = record.map(|record| (record, syncs_before, entry));
        self.finish(app, recorded, &info, durability, written);
        Ok((info, durability))
    }

    /// Unwritten pages of earlier commits, without the pages freed by this one.
    fn waiting(&self) -> Vec<(u64, Waiting)> {
        let is_wanted = |number| !self.space.has_freed(number);
        self.inner.versions.unwritten.to_write(is_wanted)
    }

    /// Keeps the pages of this commit in memory, or drops the pages that it has written. Returns `State::written`.
    fn keep_or_drop_unwritten(&mut self, keeps: bool, freed_ranges: &[FreedRange]) -> u64 {
        let inner = Arc::clone(&self.inner);
        if !keeps && inner.versions.unwritten.len() == 0 {
            return u64::MAX;
        }
        let mut pages = inner.versions.unwritten.lock();
        for range in freed_ranges
            .iter()
            .filter(|range| range.birth > self.base.written)
        {
            (range.page..range.page + range.pages).for_each(|number| pages.bury(number));
        }
        if keeps {
            let written = self.base.written.min(self.base.txn.0);
            if self.txn.0 - written > LONG_CHAIN
                && let Some(writer) = &mut self.writer
            {
                // The next record could not hold the list of their changes.
                writer.space.rewrite();
            }
            let kept = self.dirty.take_unwritten();
            return pages.put(self.base.txn.0, kept, |bytes| self.dirty.reuse(bytes));
        }
        let Some(writer) = &mut self.writer else {
            unreachable!("the writer state leaves with the transaction")
        };
        let own = &self.space.own;
        pages.written(|number| !own.contains(number, 1) && !writer.space.any_free(number, 1));
        u64::MAX
    }

    /// True if the commit would change nothing compared with the one it builds on.
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
            bytes_written: pages * page_size + self.extent_bytes_written + meta_bytes,
            space_pages_written: space_pages,
        }
    }

    /// Builds the meta record and, if its inline lists are full, pages of the free-space structure.
    fn prepare(
        &mut self,
        app: &[u8],
        freed_ranges: &[FreedRange],
        large: Option<&(LargeWhat, Ptr)>,
    ) -> Result<Prepared> {
        let Some(writer) = &mut self.writer else {
            unreachable!("the writer state leaves with the transaction")
        };
        let (number, leaves_log) = (self.txn.0, self.leaves_log);
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
            redo: self.new_log.or(writer.meta.redo.filter(|_| !leaves_log)),
            standing: LazyBase::default(),
            user: Arc::clone(&self.user),
            app: app.into(),
            changes: lists.changes,
            pendings: lists.pendings,
            confirmations: 0,
        };
        self.record_pins(&mut meta)?;
        let meta = Arc::new(meta);
        Ok(Prepared { meta, built })
    }

    /// Implements `Bug::MetaBeforeData`.
    fn write_meta_early(&self, ready: &Prepared) -> Result<()> {
        let record = Meta {
            sequence: self.inner.pipeline.durable().sequence + 1,
            ..Meta::clone(&ready.meta)
        };
        let block = record.encode(meta_at(record.pair(), 0));
        write_meta(&*self.inner.files.storage, &record, &block)
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
        let bytes = info.pages_written * page_size + self.extent_bytes_written;
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

    /// `later`: allocated pages that are not yet written.
    fn tell(&self, freed_ranges: &[FreedRange], later: &[u64]) {
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

    /// Passes the commit to the pipeline and returns the writer state, before the next writer begins.
    fn finish(
        &mut self,
        app: &[u8],
        record: Option<(Arc<Meta>, u64, Option<Entry>)>,
        info: &CommitInfo,
        durability: Durability,
        written: u64,
    ) {
        let pins = self.take_pins();
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
