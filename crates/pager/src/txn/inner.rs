//! The open file and its writer state.
//!
//! Invariants
//! 1. A thread that has the writer lock owns the writer state, which is in `writer` whenever the lock is free. The
//!    writer state belongs to the newest commit, unless another handle has had the lock since; then it is read again.

use super::wakers::Wakers;
use super::writer::Writer;
use crate::commit::files::Files;
use crate::commit::found::{Found, Recovery};
use crate::commit::heal::{check_length, heal_metas};
use crate::commit::pipeline::Pipeline;
use crate::commit::shared::Shared;
use crate::commit::versions::{State, Versions};
use crate::commit::{lost_commits, redo};
use crate::error::{Error, Result};
use crate::format::meta_blocks::MetaBlocks;
use crate::format::superblock::{Superblock, read_failed};
use crate::options::Options;
use crate::options::event::Event;
use std::ops::Deref;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tidalite_base::{TxnId, Worker};
use tidalite_disk::lock::Lock;
use tidalite_disk::storage::Storage;

enum WriterSlot {
    /// The free space has not been read yet, or other handles have changed it since.
    Unread,
    Present(Box<Writer>),
    /// The thread that has the writer lock has taken the writer state.
    Taken,
}

/// An open database file. Clones share one handle.
#[derive(Clone)]
pub struct Pager {
    pub(crate) inner: Arc<Inner>,
}

/// State shared by the clones of a [`Pager`], its snapshots and its write transaction.
pub(crate) struct Inner {
    writer: Mutex<WriterSlot>,
    pub(crate) wakers: Wakers,
    pub(crate) recovery: Recovery,
    flusher: OnceLock<Worker>,
    /// The data that readers and waiting threads use, without the writer state. This field is dropped last.
    pub(crate) shared: Shared,
}

impl Deref for Inner {
    type Target = Shared;

    #[inline(always)]
    fn deref(&self) -> &Shared {
        &self.shared
    }
}

impl Drop for Inner {
    /// Truncates the space at the end of the file that was reserved for growth (`Writer::cut_at_close`). That is
    /// safe: the handle has no readers any more, and the newest durable meta record does not count these pages.
    fn drop(&mut self) {
        let moved = self.files.known_moved().is_err();
        if self.files.options.read_only || self.files.is_poisoned() || moved {
            return;
        }
        let slot = self
            .writer
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        let WriterSlot::Present(mut writer) = std::mem::replace(slot, WriterSlot::Taken) else {
            return;
        };
        if self.files.lock.is_last_writer() {
            let shared = &self.shared;
            self.files.lock.if_alone(|| writer.cut_at_close(shared));
        }
    }
}

impl Inner {
    pub(crate) fn new(
        storage: Arc<dyn Storage>,
        superblock: Superblock,
        options: Options,
        found: Found,
        lock: Lock,
    ) -> Self {
        let known = lock.area.durable().load(Ordering::Acquire);
        let pipeline = Pipeline::new(&found, known == found.durable.txn);
        let state = State::of(found, superblock.page_size, options.read_only);
        Self {
            writer: Mutex::new(WriterSlot::Unread),
            wakers: Wakers::default(),
            recovery: Recovery::default(),
            flusher: OnceLock::new(),
            shared: Shared {
                versions: Versions::new(state),
                pipeline,
                files: Files::new(storage, superblock, options, lock),
            },
        }
    }

    pub(crate) fn set_flusher(&self, flusher: Option<Worker>) {
        if let Some(flusher) = flusher {
            let _ = self.flusher.set(flusher);
        }
    }

    /// Wakes the background flusher; returns false if there is none.
    pub(super) fn wake_flusher(&self) -> bool {
        let flusher = self.flusher.get();
        flusher.inspect(|flusher| flusher.wake()).is_some()
    }

    /// Reads the newest meta record of the file and repairs damaged blocks. The caller must hold the writer lock.
    fn find(&self) -> Result<Found> {
        let refreshed = self.files.storage.refresh();
        refreshed.map_err(|error| read_failed(0, error))?;
        if let Some(large) = &self.files.large {
            large.touched_by_others()?;
        }
        let mut blocks = MetaBlocks::load(&*self.files.storage, &self.files.superblock.uuid);
        let found = Found::newest(&blocks)?;
        check_length(&*self.files.storage, &self.files.superblock, &found.meta)?;
        let healed = heal_metas(&*self.files.storage, &mut blocks, &found.meta);
        for at in healed.inspect_err(|error| self.files.poison(error))? {
            self.files.log(&Event::Healed { at });
        }
        let found = Found::newest(&blocks)?.with_unsynced(
            &*self.files.storage,
            self.files.page_size,
            &self.files.lock,
        )?;
        let logged = found.logged(&*self.files.storage, self.files.page_size)?;
        if let Some(lost) = found.lost(
            &*self.files.storage,
            self.files.page_size,
            &self.files.options,
            &logged,
        ) {
            lost_commits::refuse(Some(lost), &self.files.options)?;
            // A loss of commits that was found at opening was already reported.
            if self.recovery.lost != Some(lost) {
                self.files.log(&Event::WentBack(lost));
            }
        }
        let Some(replayed) = logged.replayed else {
            return Ok(found);
        };
        // The process that wrote the redo log was killed before it wrote the next meta record.
        let settled = redo::write_replayed(
            &*self.files.storage,
            self.files.page_size,
            &found.durable,
            &replayed,
        );
        let record = settled.inspect_err(|error| self.files.poison(error))?;
        self.files.note_durable(record.txn);
        let (commits, txn) = (replayed.commits, TxnId(record.txn));
        self.files.log(&Event::Replayed { commits, txn });
        Found::newest(&MetaBlocks::load(
            &*self.files.storage,
            &self.files.superblock.uuid,
        ))
    }

    /// Takes the writer state. Reads the free space the first time, and after other handles have written. The caller
    /// must hold the writer lock. `held` is the newest commit, whose pages the caller retains; a read-only handle
    /// reads the free space of that commit.
    pub(crate) fn take_writer(&self, held: &State) -> Result<Box<Writer>> {
        let mut slot = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if self.files.options.read_only || !self.files.lock.was_last_writer() {
            *slot = WriterSlot::Unread;
        }
        match std::mem::replace(&mut *slot, WriterSlot::Taken) {
            WriterSlot::Present(writer) => Ok(writer),
            WriterSlot::Unread => {
                let found = match &held.found {
                    Some(found) => Ok(Found::clone(found)),
                    None => self.find(),
                };
                let loaded = found.and_then(|found| {
                    if !self.files.options.read_only {
                        let state = State::of_meta(&found.meta, self.files.page_size);
                        let known = self.files.lock.area.durable().load(Ordering::Acquire);
                        let on_medium = known == found.durable.txn;
                        self.pipeline.reset(&found, &Arc::new(state), on_medium);
                        self.versions.unwritten.lock().bury_all();
                    }
                    Writer::load(&self.files, found).map(Box::new)
                });
                if loaded.is_err() {
                    *slot = WriterSlot::Unread;
                }
                loaded
            }
            WriterSlot::Taken => Err(Error::Poisoned {
                first: "a panic lost the state of the writer".into(),
            }),
        }
    }

    pub(crate) fn put_writer(&self, writer: Box<Writer>) {
        let mut slot = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        *slot = WriterSlot::Present(writer);
    }
}
