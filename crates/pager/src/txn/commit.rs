//! Commit: data, sync, meta, sync. docs/durability.md argues it case by case.

use super::WriteTxn;
use super::dirty::write;
use crate::error::{Error, Result};
use crate::layout::{BLOCK_BYTES, meta_at};
use crate::meta::{APP_BYTES_MAX, Dead, Meta, Standing};
use crate::open::now_ns;
use crate::pager::State;
use crate::seeded::{Bug, active};
use crate::space::build::Built;
use crate::storage::Committed;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tidalite_base::TxnId;

/// What a commit promises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// It survives a power cut.
    #[default]
    Durable,
    /// It is seen by this process only, until the next durable commit stores it too. For bulk loads.
    None,
}

/// What a commit did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommitInfo {
    /// Its number. When nothing was changed, that of the commit it builds on.
    pub txn: TxnId,
    /// Whole pages written, those of the free-space structure included; meta blocks and extents not.
    pub pages_written: u64,
    /// All bytes written: pages, extents, meta blocks.
    pub bytes_written: u64,
    /// Pages of the free-space structure among the pages written.
    pub space_pages_written: u64,
}

/// What a durable commit writes besides the changed pages.
struct Prepared {
    meta: Meta,
    /// What it says about space.
    built: Built,
}

impl WriteTxn {
    /// Commits; `app` is what the layers above want to find again. All structures have sealed their pages.
    ///
    /// # Errors
    /// The error that failed the transaction before; `DiskFull` and `Io` from writing the data (the
    /// transaction is rolled back and the database goes on); any error of a sync or of writing the meta
    /// blocks (then nothing more is acknowledged until reopened).
    ///
    /// # Panics
    /// When a page of this transaction was changed after its last seal.
    pub fn commit(mut self, app: &[u8], durability: Durability) -> Result<CommitInfo> {
        self.check()?;
        self.inner.check_poison()?;
        if app.len() > APP_BYTES_MAX {
            return Err(Error::Limit {
                what: "bytes of the app area",
                found: app.len() as u64,
                limit: APP_BYTES_MAX as u64,
            });
        }
        for (page, pages) in self.epochs.finish() {
            self.release_own(page, pages);
        }
        let durable = durability == Durability::Durable || self.pins.any();
        if self.changes_nothing(app, durable) {
            return Ok(self.info(self.base.txn, 0, 0));
        }
        self.plan_pins(durable)?;
        if let Some(writer) = &self.writer {
            writer.check_reserve(&self.inner, &self.space)?;
        }
        let mut dead = self.space.dead(self.txn.0);
        let Some(writer) = &mut self.writer else {
            unreachable!("the writer state leaves with the transaction")
        };
        writer.space.stage(&self.space);
        self.staged = true;
        let (mut space_bytes, mut meta_bytes) = (0, 0);
        let mut replaced = Vec::new();
        if durable {
            let prepared = self.prepare(app, &dead)?;
            meta_bytes = self.write_durably(&prepared)?;
            self.staged = false;
            let (txn, page_size) = (self.txn.0, self.inner.page_size as u64);
            let writer = self.writer();
            space_bytes = prepared.built.pages() * page_size;
            replaced = prepared.built.replaced().to_vec();
            writer.install_lists(prepared.built);
            writer.meta = prepared.meta;
            writer.space.durable_committed(txn);
        } else {
            self.dirty.write_all(&*self.inner.storage)?;
            self.staged = false;
            let (txn, dead) = (self.txn.0, dead.clone());
            self.writer().space.committed(txn, dead);
        }
        dead.extend(replaced);
        self.tell(durable, &dead);
        let info = self.info(self.txn, space_bytes, meta_bytes);
        let freed = dead.iter().map(|range| range.pages).sum();
        self.finish(app, freed, durable);
        Ok(info)
    }

    /// True when there is nothing that the commit would add to the one it builds on.
    fn changes_nothing(&self, app: &[u8], durable: bool) -> bool {
        let Some(writer) = &self.writer else {
            return true;
        };
        self.dirty.is_empty()
            && self.space.is_empty()
            && app == &*self.base.app
            && self.user == self.base.user
            && !self.pins.any()
            && (!durable || writer.meta.txn == self.base.txn.0)
    }

    fn info(&self, txn: TxnId, space_bytes: u64, meta_bytes: u64) -> CommitInfo {
        let page_size = self.inner.page_size as u64;
        let space_pages = space_bytes / page_size;
        let pages = self.dirty.pages_written + space_pages;
        CommitInfo {
            txn,
            pages_written: pages,
            bytes_written: pages * page_size + self.extent_bytes_written + meta_bytes,
            space_pages_written: space_pages,
        }
    }

    /// The meta record; with it, when its inline lists are full, pages of the free-space structure.
    fn prepare(&mut self, app: &[u8], dead: &[Dead]) -> Result<Prepared> {
        let Some(writer) = &mut self.writer else {
            unreachable!("the writer state leaves with the transaction")
        };
        let number = self.txn.0;
        let built = writer.build_lists(&self.inner, &mut self.space, number, dead, 0)?;
        let lists = built.lists.clone();
        let mut meta = Meta {
            uuid: writer.meta.uuid,
            txn: self.txn.0,
            sequence: writer.meta.sequence + 1,
            time_ns: now_ns(),
            pages: lists.pages,
            free_root: lists.free_root,
            dead_directory: lists.dead_directory,
            pins: writer.meta.pins,
            clock: writer.meta.clock,
            standing: Standing::default(),
            user: Arc::clone(&self.user),
            app: app.into(),
            changes: lists.changes,
            pendings: lists.pendings,
            flushed: None,
            confirmations: 0,
        };
        self.record_pins(&mut meta)?;
        Ok(Prepared { meta, built })
    }

    fn write_durably(&mut self, prepared: &Prepared) -> Result<u64> {
        if active(Bug::MetaBeforeData) {
            self.write_meta(&prepared.meta)?;
        }
        let storage = &*self.inner.storage;
        self.dirty.write_all(storage)?;
        for (at, bytes) in &prepared.built.writes {
            write(storage, *at, bytes)?;
        }
        if !active(Bug::SkipSync) {
            self.sync(false)?;
        }
        if !active(Bug::MetaBeforeData) {
            self.write_meta(&prepared.meta)?;
        }
        self.sync(true)?;
        Ok(2 * BLOCK_BYTES as u64)
    }

    /// Both copies, in the pair that does not hold the newest durable record.
    fn write_meta(&self, meta: &Meta) -> Result<()> {
        for copy in [0, 1] {
            let copy = if active(Bug::CopiesInOneBlock) {
                0
            } else {
                copy
            };
            let at = meta_at(meta.pair(), copy);
            if let Err(source) = self.inner.storage.write_at(at, &meta.encode(at)) {
                // What the block holds now is unknown, and a later sync may make it count. (Even a full
                // disk is no ordinary error here.)
                let error = Error::Io {
                    what: "write of a meta block".into(),
                    at,
                    source,
                };
                self.inner.poison(&error);
                return Err(error);
            }
        }
        Ok(())
    }

    /// A barrier. Failure poisons: what is on the medium is unknown from then on, and a second sync might
    /// claim success for pages that the system has dropped.
    fn sync(&mut self, meta: bool) -> Result<()> {
        let inner = Arc::clone(&self.inner);
        let writer = self.writer();
        let synced = if writer.length_unsynced && !meta && !active(Bug::GrowthNotDurable) {
            inner.storage.sync_all()
        } else {
            inner.storage.sync()
        };
        match synced {
            Err(source) if !active(Bug::IgnoreFailedSync) => {
                let error = Error::Io {
                    what: "sync".into(),
                    at: 0,
                    source,
                };
                inner.poison(&error);
                Err(error)
            }
            _ => {
                if !meta {
                    writer.length_unsynced = false;
                }
                Ok(())
            }
        }
    }

    fn tell(&self, durable: bool, dead: &[Dead]) {
        let Some(observer) = self.inner.observer() else {
            return;
        };
        let page_size = self.inner.page_size as u64;
        let own = self.space.own.iter();
        let allocated: Vec<_> = own.map(|(at, n)| (at * page_size, n * page_size)).collect();
        let freed = dead.iter();
        let freed: Vec<_> = freed
            .map(|range| (range.page * page_size, range.pages * page_size, range.birth))
            .collect();
        observer.committed(&Committed {
            txn: self.txn.0,
            durable,
            allocated: &allocated,
            freed: &freed,
        });
    }

    /// Gives the writer state back and shows the commit to readers, before the next writer begins.
    fn finish(mut self, app: &[u8], freed: u64, durable: bool) {
        let pins = self.take_pins();
        let Some(mut writer) = self.writer.take() else {
            return;
        };
        if let Some(pins) = pins {
            writer.pins = pins;
        }
        let end = writer.note_end(self.txn.0);
        if durable {
            writer.tidy(&self.inner);
        }
        let freed_pages = self.inner.lock.area.freed_pages();
        freed_pages.fetch_add(freed, Ordering::Relaxed);
        let state = State {
            txn: self.txn,
            word: self.txn.0,
            bytes: end * self.inner.page_size as u64,
            app: app.into(),
            user: Arc::clone(&self.user),
            time_ns: now_ns(),
            pins: writer.pins.table,
            clock: writer.pins.clock_block,
            found: None,
        };
        if durable {
            self.inner.note_durable(self.txn.0);
        }
        self.inner.publish(state, durable);
        self.inner.put_writer(writer);
    }
}
