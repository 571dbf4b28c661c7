//! The open file: its newest state, the writer state, and what ends it.
//!
//! Invariants
//! 1. `state` is the newest commit that this handle knows, and `local` its transaction. It is the newest one
//!    of all exactly while its `word` is what the lock area calls published. A state that is not the newest
//!    gets no new readers.
//! 2. Whoever holds the turn owns the writer state; it is in `writer` whenever nobody holds the turn. It
//!    stands on the newest commit unless another handle has had the turn since: then it is read anew.
//! 3. After a failed sync or meta write `poisoned` is set for good, and with it the word in the lock area:
//!    nothing more is acknowledged, by anybody who has the file open.

use super::writer::Writer;
use crate::commit::found::Found;
use crate::commit::found::Recovery;
use crate::commit::heal::{check_length, heal_metas};
use crate::commit::lost_commits;
use crate::commit::pipeline::{Pipeline, StandingLeader, Until};
use crate::commit::redo;
use crate::commit::second_file::LargeFile;
use crate::commit::unwritten_pages::Unwritten;
use crate::commit::verified_pages::Verified;
use crate::error::{Error, Result};
use crate::format::meta::Meta;
use crate::format::meta_blocks::MetaBlocks;
use crate::format::ptr::Ptr;
use crate::format::superblock::{Superblock, read_failed};
use crate::lock::Patience;
use crate::lock::handle::Lock;
use crate::lock::protocol;
use crate::lock::writer_lock::{Came, Enough, Turn, Turns};
use crate::options::Options;
use crate::options::event::Event;
use crate::options::laggard::OnWait;
use crate::seeded::{Bug, active};
use crate::storage::{Look, Named, Observer, Storage};
use crate::txn::{Wakers, make_durable};
use arc_swap::ArcSwap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};
use tidalite_base::TxnId;

/// One commit as readers see it.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) txn: TxnId,
    /// What the lock area calls published while this is the newest state. (Another one only for commits that
    /// this process alone sees.)
    pub(crate) word: u64,
    pub(crate) bytes: u64,
    /// What was born up to here is in the file; of what is younger, pages may be in `Inner::unwritten`.
    pub(crate) written: u64,
    pub(crate) app: Arc<[u8]>,
    pub(crate) user: Arc<[u8]>,
    pub(crate) time_ns: i64,
    /// Its table of pins, and its clock.
    pub(crate) pins: Ptr,
    pub(crate) clock: Ptr,
    /// In a handle that only reads: where the free space of this state is found.
    pub(crate) found: Option<Arc<Found>>,
}

impl State {
    pub(crate) fn of_meta(meta: &Meta, page_size: usize) -> Self {
        Self {
            txn: TxnId(meta.txn),
            word: meta.txn,
            bytes: meta.pages * page_size as u64,
            written: u64::MAX,
            app: Arc::clone(&meta.app),
            user: Arc::clone(&meta.user),
            time_ns: meta.time_ns,
            pins: meta.pins,
            clock: meta.clock,
            found: None,
        }
    }

    fn of(found: Found, page_size: usize, read_only: bool) -> Self {
        let mut state = Self::of_meta(&found.meta, page_size);
        state.found = read_only.then(|| Arc::new(found));
        state
    }
}

/// Room for the transactions that are held, as many as there are mostly.
const LIVE: usize = 16;

enum WriterSlot {
    /// The free space was not read yet, or others have changed it since.
    Unread,
    Here(Box<Writer>),
    /// Whoever holds the turn has it.
    Taken,
}

/// How long the file may and has to be; changed while it is open.
#[derive(Debug)]
pub(crate) struct Bounds {
    least_bytes: AtomicU64,
    most_bytes: AtomicU64,
}

impl Bounds {
    fn new(options: &Options) -> Self {
        Self {
            least_bytes: AtomicU64::new(options.file_bytes_min),
            most_bytes: AtomicU64::new(options.file_bytes_max),
        }
    }

    pub(crate) fn set(&self, least_bytes: u64, most_bytes: u64) {
        self.least_bytes.store(least_bytes, Ordering::Relaxed);
        self.most_bytes.store(most_bytes, Ordering::Relaxed);
    }

    pub(crate) fn least_bytes(&self) -> u64 {
        self.least_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn most_bytes(&self) -> u64 {
        self.most_bytes.load(Ordering::Relaxed)
    }
}

pub(crate) struct Inner {
    pub(crate) storage: Arc<dyn Storage>,
    /// Of a file that was opened by its path, without links.
    pub(crate) path: Option<PathBuf>,
    /// The same with the file; `None` for a storage that is no file.
    pub(crate) named: Option<Named>,
    /// The second file, if the database has one.
    pub(crate) large: Option<LargeFile>,
    pub(crate) superblock: Superblock,
    pub(crate) page_size: usize,
    pub(crate) options: Options,
    pub(crate) bounds: Bounds,
    pub(crate) verified: Verified,
    pub(crate) unwritten: Unwritten,
    pub(crate) state: ArcSwap<State>,
    /// The transaction of `state`, for readers who look again.
    pub(crate) local: AtomicU64,
    /// Held while `state` changes.
    publishing: Mutex<()>,
    pub(crate) turns: Arc<Turns>,
    pub(crate) pipeline: Pipeline,
    pub(crate) wakers: Wakers,
    pub(crate) recovery: Recovery,
    flusher: OnceLock<Thread>,
    pub(crate) leader: StandingLeader,
    writer: Mutex<WriterSlot>,
    poisoned: OnceLock<String>,
    pub(crate) observed: bool,
    pub(crate) lock: Arc<Lock>,
}

impl Drop for Inner {
    /// Gives space back that the file grew ahead by, when it is a step or more. Nobody reads any more;
    /// the newest durable record does not count these pages.
    fn drop(&mut self) {
        if let Some(flusher) = self.flusher.get() {
            flusher.unpark();
        }
        self.leader.call();
        let moved = self.known_moved().is_err();
        let slot = self
            .writer
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        if self.options.read_only || self.poisoned.get().is_some() || moved {
            return;
        }
        let WriterSlot::Here(mut writer) = std::mem::replace(slot, WriterSlot::Taken) else {
            return;
        };
        if self.lock.is_last_writer() {
            self.lock.if_alone(|| writer.cut_at_close(self));
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
        let lock = Arc::new(lock);
        Self {
            observed: storage.observer().is_some(),
            storage,
            path: None,
            named: None,
            large: None,
            page_size: superblock.page_size,
            verified: Verified::new(superblock.page_size),
            unwritten: Unwritten::default(),
            superblock,
            bounds: Bounds::new(&options),
            options,
            local: AtomicU64::new(state.txn.0),
            state: ArcSwap::from_pointee(state),
            publishing: Mutex::new(()),
            wakers: Wakers::default(),
            turns: Arc::new(Turns::new(Arc::clone(&lock))),
            pipeline,
            recovery: Recovery::default(),
            flusher: OnceLock::new(),
            leader: StandingLeader::default(),
            writer: Mutex::new(WriterSlot::Unread),
            poisoned: OnceLock::new(),
            lock,
        }
    }

    /// The turn; of a handle that only reads, the turn among its own threads.
    pub(crate) fn turn(&self) -> Result<Turn> {
        self.turn_since(Instant::now())
    }

    /// The same for who has waited since then.
    pub(crate) fn turn_since(&self, begun: Instant) -> Result<Turn> {
        match self.turn_unless(begun, None)? {
            Came::Turn(turn) => Ok(turn),
            Came::Late | Came::Enough => Err(self.writer_busy()),
        }
    }

    /// The same, unless something else is enough (`Turns::wait_unless`).
    pub(crate) fn turn_unless(&self, begun: Instant, enough: Option<Enough<'_>>) -> Result<Came> {
        self.lock.check_process()?;
        if self.options.read_only {
            return Ok(Came::Turn(self.turns.wait_as_reader()));
        }
        self.let_others()?;
        let mut told = 0;
        let mut waiting = || {
            let seconds = begun.elapsed().as_secs();
            if seconds > told
                && let Some(OnWait(tell)) = &self.options.on_wait
                && let Some(writer) = self.lock.writer_now()
            {
                told = seconds;
                tell(&writer);
            }
        };
        let patience = Patience::default();
        self.turns.wait_unless(&patience, &mut waiting, enough)
    }

    /// Where commits of this handle wait for a flush that others share, the turn among the handles stays here; without an end where new
    /// ones keep coming. So who wants to write while another handle waits first sees to it that what is here becomes durable and the turn
    /// goes on, and queues behind.
    pub(crate) fn let_others(&self) -> Result<()> {
        if !self.turns.keeps() || !self.lock.others_wait() {
            return Ok(());
        }
        if let Some(newest) = self.pipeline.newest_recorded() {
            // Whatever comes of it: the turn is asked for next.
            let _ = self.pipeline.wait(self, (newest, Until::Kept), None)?;
        }
        Ok(())
    }

    pub(crate) fn writer_busy(&self) -> Error {
        let seen = self.lock.writer_now();
        Error::WriterBusy {
            process: seen.map_or(0, |seen| seen.process),
            thread: seen.map_or(0, |seen| seen.thread),
            since: seen.map_or(Duration::ZERO, |seen| seen.since),
        }
    }

    /// The newest state that this handle knows.
    pub(crate) fn state(&self) -> Arc<State> {
        self.state.load_full()
    }

    fn show(&self, state: Arc<State>) {
        let txn = state.txn.0;
        self.state.store(state);
        self.local.store(txn, Ordering::SeqCst);
    }

    /// Shows a commit of this handle: to all, or to this process alone. Only while this handle has the turn. What is
    /// shown already is never taken back for an older commit.
    pub(crate) fn publish(&self, state: &Arc<State>, to_all: bool) {
        let _publishing = self
            .publishing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let published = self.lock.area.published();
        let before = published.load(Ordering::SeqCst);
        let word = if to_all {
            state.txn.0.max(before)
        } else {
            before
        };
        let shown = self.state();
        let newest = if state.txn > shown.txn { state } else { &shown };
        if newest.word == word {
            self.show(Arc::clone(newest));
        } else {
            let newest = State::clone(newest);
            self.show(Arc::new(State { word, ..newest }));
        }
        if word > before {
            protocol::publish(published, word);
        }
    }

    pub(crate) fn set_flusher(&self, flusher: Option<Thread>) {
        if let Some(flusher) = flusher {
            let _ = self.flusher.set(flusher);
        }
    }

    /// Makes lazy commits durable when they have grown too many or too old; where a thread does that it is woken.
    pub(crate) fn sync_if_due(self: &Arc<Self>) -> Result<()> {
        if !self.sync_is_due(self.options.sync_after) {
            return Ok(());
        }
        if let Some(flusher) = self.flusher.get() {
            flusher.unpark();
            return Ok(());
        }
        let newest = self.pipeline.base(self.state()).txn;
        make_durable(self, (newest, Until::Kept), None).map(|_| ())
    }

    /// Whether lazy commits have grown too many, or older than this.
    fn sync_is_due(&self, age_max: Option<Duration>) -> bool {
        let (bytes, since) = self.pipeline.unsynced();
        let by_bytes = self.options.sync_bytes.is_some_and(|most| bytes >= most);
        let age = || since.map_or(Duration::ZERO, |since| since.elapsed());
        by_bytes || age_max.is_some_and(|most| age() >= most)
    }

    /// The same for a writer that keeps the turn: this is for itself to do, when a thread that makes them durable would, whether there is one or not.
    pub(crate) fn sync_is_due_in_turn(&self) -> bool {
        let ages = [self.options.sync_after, self.options.background_flush];
        self.sync_is_due(ages.into_iter().flatten().min())
    }

    /// A durable commit is on the medium.
    pub(crate) fn note_durable(&self, txn: u64) {
        self.lock.area.durable().store(txn, Ordering::Release);
    }

    /// Takes over what another handle has published since.
    #[cold]
    pub(crate) fn refresh(&self) -> Result<()> {
        let _publishing = self
            .publishing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let known = self.state.load().word;
        let (storage, superblock) = (&*self.storage, &self.superblock);
        if let Some(found) = Found::published(storage, superblock, &self.lock, Some(known))? {
            let state = State::of(found, self.page_size, self.options.read_only);
            self.show(Arc::new(state));
        }
        Ok(())
    }

    /// Reads the newest record of the file and heals damaged blocks. Only for who has the turn.
    fn find(&self) -> Result<Found> {
        let refreshed = self.storage.refresh();
        refreshed.map_err(|error| read_failed(0, error))?;
        if let Some(large) = &self.large {
            large.touched_by_others()?;
        }
        let mut blocks = MetaBlocks::load(&*self.storage, &self.superblock.uuid);
        let found = Found::newest(&blocks)?;
        check_length(&*self.storage, &self.superblock, &found.meta)?;
        let healed = heal_metas(&*self.storage, &mut blocks, &found.meta);
        for at in healed.inspect_err(|error| self.poison(error))? {
            self.log(&Event::Healed { at });
        }
        let found =
            Found::newest(&blocks)?.with_weak(&*self.storage, self.page_size, &self.lock)?;
        let logged = found.logged(&*self.storage, self.page_size)?;
        if let Some(lost) = found.lost(&*self.storage, self.page_size, &self.options, &logged) {
            lost_commits::refuse(Some(lost), &self.options)?;
            // Opening has told of what it found.
            if self.recovery.lost != Some(lost) {
                self.log(&Event::WentBack(lost));
            }
        }
        let Some(replayed) = logged.replayed else {
            return Ok(found);
        };
        // Its writer was killed before it could say so.
        let settled = redo::settle(&*self.storage, self.page_size, &found.durable, &replayed);
        let record = settled.inspect_err(|error| self.poison(error))?;
        self.note_durable(record.txn);
        let (commits, txn) = (replayed.commits, TxnId(record.txn));
        self.log(&Event::Replayed { commits, txn });
        Found::newest(&MetaBlocks::load(&*self.storage, &self.superblock.uuid))
    }

    /// The transactions that readers in all processes hold, and the newest ones, ascending.
    pub(crate) fn live(&self) -> Vec<u64> {
        let mut live = Vec::with_capacity(LIVE);
        live.push(self.local.load(Ordering::SeqCst));
        if !active(Bug::ReuseEarly) {
            live.push(self.lock.area.published().load(Ordering::SeqCst));
        }
        if !active(Bug::ForgetReaders) {
            self.lock.for_each_reader(|reader| live.push(reader.txn));
        }
        self.pipeline.holds(&mut live);
        live.sort_unstable();
        live.dedup();
        live
    }

    pub(crate) fn check_writable(&self) -> Result<()> {
        self.lock.check_process()?;
        if self.options.read_only {
            return Err(Error::ReadOnly);
        }
        self.check_poison()
    }

    /// Fails when the data file was found moved from its path.
    fn known_moved(&self) -> Result<()> {
        self.named.as_ref().map_or(Ok(()), Named::known)
    }

    /// Looks whether the data file is still the one at its path. Where not, what this handle alone sees is given up, and with it the turn among
    /// the handles that it may have kept for that. Not under the lock of the pipeline.
    pub(crate) fn check_moved(&self, look: Look) -> Result<()> {
        let Some(named) = &self.named else {
            return Ok(());
        };
        named.check(look).inspect_err(|_| self.pipeline.shown(self))
    }

    /// Fails when nothing more may be acknowledged: a sync has failed, or the data file was found moved from its path.
    pub(crate) fn check_poison(&self) -> Result<()> {
        self.known_moved()?;
        self.check_synced()
    }

    /// Fails when a sync has failed, here or in another process.
    pub(crate) fn check_synced(&self) -> Result<()> {
        if let Some(first) = self.poisoned.get() {
            return Err(Error::Poisoned {
                first: first.clone(),
            });
        }
        match self.lock.poisoned_by() {
            Some(process) => Err(Error::Poisoned {
                first: format!("a sync of process {process}, which had the same file open"),
            }),
            None => Ok(()),
        }
    }

    /// Tells the logger, if there is one.
    pub(crate) fn log(&self, event: &Event) {
        if let Some(logger) = &self.options.logger {
            logger.tell(event);
        }
    }

    /// From now on nothing more is acknowledged.
    pub(crate) fn poison(&self, error: &Error) {
        let first = error.to_string();
        self.poison_unlogged(&first);
        self.log(&Event::Poisoned { first });
    }

    /// The same without a word to the logger.
    pub(crate) fn poison_unlogged(&self, first: &str) {
        let _ = self.poisoned.set(first.to_owned());
        self.lock.poison();
    }

    pub(crate) fn observer(&self) -> Option<&dyn Observer> {
        if self.observed {
            self.storage.observer()
        } else {
            None
        }
    }

    /// The writer state; reads the free space the first time, and when others have written since. Only for who
    /// holds the turn. `held`: the newest state, which the caller holds; a handle that only reads takes the free space of that.
    pub(crate) fn take_writer(&self, held: &State) -> Result<Box<Writer>> {
        let mut slot = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if self.options.read_only || !self.lock.was_last_writer() {
            *slot = WriterSlot::Unread;
        }
        match std::mem::replace(&mut *slot, WriterSlot::Taken) {
            WriterSlot::Here(writer) => Ok(writer),
            WriterSlot::Unread => {
                let found = match &held.found {
                    Some(found) => Ok(Found::clone(found)),
                    None => self.find(),
                };
                let loaded = found.and_then(|found| {
                    if !self.options.read_only {
                        let state = State::of_meta(&found.meta, self.page_size);
                        let known = self.lock.area.durable().load(Ordering::Acquire);
                        let on_medium = known == found.durable.txn;
                        self.pipeline.reset(&found, &Arc::new(state), on_medium);
                        self.unwritten.lock().bury_all();
                    }
                    Writer::load(self, found).map(Box::new)
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
        *slot = WriterSlot::Here(writer);
    }
}
