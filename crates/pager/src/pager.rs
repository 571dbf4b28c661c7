//! The open file.
//!
//! Invariants
//! 1. `state` is the newest commit that this handle knows, and `local` its transaction. It is the newest one
//!    of all exactly while its `word` is what the lock area calls published. A state that is not the newest
//!    gets no new readers.
//! 2. Whoever holds the turn owns the writer state; it is in `writer` whenever nobody holds the turn. It
//!    stands on the newest commit unless another handle has had the turn since: then it is read anew.
//! 3. After a failed sync or meta write `poisoned` is set for good, and with it the word in the lock area:
//!    nothing more is acknowledged, by anybody who has the file open.

use crate::error::{Error, Result};
use crate::event::Event;
use crate::large_file::LargeFile;
use crate::layout::{HEAD_BYTES, LARGE_AT};
use crate::lock::Lock;
use crate::lock::protocol;
use crate::meta::{Confirmation, Meta, MetaBlocks};
use crate::metrics::{MetricsReport, Phase};
use crate::one_flush::{self, Recovery};
use crate::open::{check_length, heal_metas};
use crate::options::{Options, Verify};
use crate::pages::PageRef;
use crate::pins::Pin;
use crate::pipeline::{Pipeline, Weak, checksum_of};
use crate::ptr::Ptr;
use crate::readers::OnWait;
use crate::seeded::{Bug, active};
use crate::snapshot::Snapshot;
use crate::space::large::Large;
use crate::storage::{Observer, Storage};
use crate::superblock::{Superblock, read_failed};
use crate::turns::{Turn, Turns};
use crate::txn::{Wakers, WriteTxn, make_durable};
use crate::unwritten::Unwritten;
use crate::verified::Verified;
use crate::verify_block;
use crate::writer::Writer;
use arc_swap::ArcSwap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};
use tidalite_base::{Corrupt, TxnId};

/// What the file and the lock area hold.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// The newest state: `durable`, or a weak record that stands on it.
    pub(crate) meta: Meta,
    pub(crate) durable: Meta,
    /// The transaction of the durable record before.
    pub(crate) before: u64,
    /// How the durable record is rewritten.
    pub(crate) confirmation: Confirmation,
    pub(crate) weak: Option<Weak>,
}

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

enum WriterSlot {
    /// The free space was not read yet, or others have changed it since.
    Unread,
    Here(Box<Writer>),
    /// Whoever holds the turn has it.
    Taken,
}

pub(crate) struct Inner {
    pub(crate) storage: Arc<dyn Storage>,
    /// The second file, if the database has one.
    pub(crate) large: Option<LargeFile>,
    pub(crate) superblock: Superblock,
    pub(crate) page_size: usize,
    pub(crate) options: Options,
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
    writer: Mutex<WriterSlot>,
    poisoned: OnceLock<String>,
    pub(crate) observed: bool,
    pub(crate) lock: Arc<Lock>,
}

/// One open file. Clones share it.
#[derive(Clone)]
pub struct Pager {
    pub(crate) inner: Arc<Inner>,
}

/// The system reads ahead no more than this at once, whatever it is asked for.
const WARM_BYTES: u64 = 128 << 10;
/// A record that was published is looked for this long.
const PUBLISHED_WAIT: Duration = Duration::from_secs(2);

impl Found {
    /// The newest record of the file.
    pub(crate) fn newest(blocks: &MetaBlocks) -> Result<Self> {
        let (meta, older) = blocks.newest()?;
        // Without a readable older record, everything pending counts as needed by it.
        let before = older.map_or(meta.txn.saturating_sub(1), |older| older.txn);
        let confirmation = Confirmation::after(blocks.confirmations(&meta));
        Ok(Self {
            durable: meta.clone(),
            meta,
            before,
            confirmation,
            weak: None,
        })
    }

    /// The same with the newest weak record that stands on it, if there is one.
    pub(crate) fn with_weak(
        mut self,
        storage: &dyn Storage,
        page_size: usize,
        lock: &Lock,
    ) -> Result<Self> {
        let len = storage.len().map_err(|error| read_failed(0, error))?;
        for slot in [0, 1] {
            if let Some(record) = weak_record(lock, slot, &self.durable)
                && record.txn > self.meta.txn
                && record.pages <= len / page_size as u64
            {
                self.weak = Some(Weak {
                    txn: record.txn,
                    slot,
                });
                self.meta = record;
            }
        }
        Ok(self)
    }

    /// The record of what is published; `None` when that is `known`.
    pub(crate) fn published(
        storage: &dyn Storage,
        superblock: &Superblock,
        lock: &Lock,
        known: Option<u64>,
    ) -> Result<Option<Self>> {
        let begun = Instant::now();
        let mut wanted = 0;
        loop {
            let word = lock.area.published().load(Ordering::SeqCst);
            if known == Some(word) {
                return Ok(None);
            }
            // While it is being read, two more commits may write over it; then there is a newer one.
            let blocks = MetaBlocks::load(storage, &superblock.uuid);
            let found = Self::of_txn(&blocks, word).or_else(|| Self::of_weak(&blocks, lock, word));
            if let Some(found) = found {
                storage.refresh().map_err(|error| read_failed(0, error))?;
                check_length(storage, superblock, &found.meta)?;
                return Ok(Some(found));
            }
            if wanted == word && begun.elapsed() > PUBLISHED_WAIT {
                return Err(match blocks.newest() {
                    Err(error) => error,
                    Ok((newest, _)) => {
                        let found = format!("transaction {} as the newest one", newest.txn);
                        let wanted = format!("transaction {word}, which was published");
                        Corrupt::new("meta records", 0, found, wanted).into()
                    }
                });
            }
            wanted = word;
            std::thread::yield_now();
        }
    }

    /// The record of a transaction, if one of its copies can be read.
    fn of_txn(blocks: &MetaBlocks, txn: u64) -> Option<Self> {
        let mut copies = blocks.copies.iter().flatten().flatten();
        let meta = copies.find(|meta| meta.txn == txn)?.clone();
        let copies = blocks.copies.iter().flatten().flatten();
        let older = copies.map(|copy| copy.txn).filter(|&other| other < txn);
        Some(Self {
            before: older.max().unwrap_or(txn.saturating_sub(1)),
            confirmation: Confirmation::after(blocks.confirmations(&meta)),
            durable: meta.clone(),
            meta,
            weak: None,
        })
    }

    /// The weak record of a transaction.
    fn of_weak(blocks: &MetaBlocks, lock: &Lock, txn: u64) -> Option<Self> {
        let found = Self::newest(blocks).ok()?;
        let record = |slot| weak_record(lock, slot, &found.durable);
        let slot = [0, 1]
            .into_iter()
            .find(|&slot| record(slot).is_some_and(|record| record.txn == txn))?;
        Some(Self {
            meta: record(slot)?,
            weak: Some(Weak { txn, slot }),
            ..found
        })
    }
}

/// What a slot for weak records holds, if it stands on this durable record.
fn weak_record(lock: &Lock, slot: usize, durable: &Meta) -> Option<Meta> {
    let record = Meta::decode(&lock.area.weak(slot), 0, &durable.uuid).ok()?;
    let standing = &record.standing;
    let checksum = checksum_of(durable);
    let same_boot = standing.boot_id == lock.area.identity().boot && standing.boot_id != [0; 16];
    let on_it = (standing.sequence, standing.checksum) == (durable.sequence, checksum);
    let on_the_one_before =
        standing.sequence + 1 == durable.sequence && standing.next_checksum == checksum;
    (same_boot && (on_it || on_the_one_before)).then_some(record)
}

/// Figures about the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stat {
    /// Bytes of a page.
    pub page_size: usize,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Pages of the file, its head included.
    pub pages_total: u64,
    /// Pages that can be allocated now.
    pub pages_free: u64,
    /// Pages that are dead but seen by a snapshot or needed by the newest durable states, in both files.
    pub pages_pending: u64,
    /// The longest free stretch, at most.
    pub longest_free_pages: u64,
    /// Bytes of the second file, for large values, as of the newest commit; 0 without one.
    pub large_bytes: u64,
    /// Pages of the second file that can be allocated now.
    pub large_pages_free: u64,
    /// The newest commit.
    pub txn: TxnId,
    /// Its wall-clock time, nanoseconds since 1970.
    pub commit_time_ns: i64,
    /// The file's identity.
    pub uuid: [u8; 16],
}

impl Pager {
    /// A snapshot of the newest commit of any process; any number, in any thread. Waits for nobody: about as
    /// long as a miss of the cache, unless another process has committed since the last one.
    ///
    /// # Errors
    /// `Limit` when too many snapshots are held, in all processes together; `Forked`; after a commit of another
    /// process `Io` and `Corrupt` from reading its record.
    pub fn begin_read(&self) -> Result<Snapshot> {
        Snapshot::begin(&self.inner, 0)
    }

    /// A snapshot that the writer may take away when it holds space for too long
    /// ([`Options::evictable_age_max`], [`Options::on_laggard`], a full disk): every read copies, looks whether the snapshot is
    /// still there, and gives `Evicted` when it is not.
    ///
    /// # Errors
    /// As for `begin_read`.
    pub fn begin_read_evictable(&self) -> Result<Snapshot> {
        Snapshot::begin(&self.inner, protocol::EVICTABLE)
    }

    /// A snapshot of a pinned version; `None` when there is no pin of that name.
    ///
    /// # Errors
    /// As for `begin_read`; damage in the table of pins or in the pin's record.
    pub fn begin_read_at(&self, pin: &str) -> Result<Option<Snapshot>> {
        Snapshot::begin_at(&self.inner, pin)
    }

    /// All pins of the newest commit, the oldest first.
    ///
    /// # Errors
    /// As for `begin_read`; damage in the table of pins.
    pub fn pins(&self) -> Result<Vec<Pin>> {
        self.begin_read()?.pins()
    }

    /// The newest commit that is known to have been done at or before this time (nanoseconds since 1970, by the wall
    /// clock of the writers), with its time. Known are the newest commit, the pins, and about one a minute, fewer
    /// where they are old.
    ///
    /// # Errors
    /// As for `begin_read`; damage in the clock.
    pub fn txn_at(&self, time_ns: i64) -> Result<Option<(TxnId, i64)>> {
        self.begin_read()?.txn_at(time_ns)
    }

    /// Begins the write transaction; waits for others in all processes, first come first served.
    ///
    /// # Errors
    /// `ReadOnly`, `Poisoned`, `Forked`; what reading the free space or confirming the newest state meets.
    pub fn begin_write(&self) -> Result<WriteTxn> {
        self.inner.check_writable()?;
        let metrics = &self.inner.pipeline.metrics;
        let turn = metrics.time(Phase::WaitForWriter, || self.inner.turn())?;
        WriteTxn::begin(Arc::clone(&self.inner), turn)
    }

    /// Begins the write transaction unless others have it for longer than this.
    ///
    /// # Errors
    /// `WriterBusy`, which names the writer; else as for `begin_write`.
    pub fn begin_write_within(&self, patience: Duration) -> Result<WriteTxn> {
        self.inner.check_writable()?;
        self.inner.let_others()?;
        let until = Instant::now().checked_add(patience);
        match self.inner.turns.wait(until, &mut || ())? {
            Some(turn) => WriteTxn::begin(Arc::clone(&self.inner), turn),
            None => Err(self.inner.writer_busy()),
        }
    }

    /// Begins the write transaction unless another one is under way in any process (then `None`).
    ///
    /// # Errors
    /// As for `begin_write`.
    pub fn try_begin_write(&self) -> Result<Option<WriteTxn>> {
        self.inner.check_writable()?;
        let Some(turn) = self.inner.turns.try_take()? else {
            return Ok(None);
        };
        WriteTxn::begin(Arc::clone(&self.inner), turn).map(Some)
    }

    /// What opening had to do to find a state that is whole.
    #[must_use]
    pub fn recovery(&self) -> Recovery {
        self.inner.recovery
    }

    /// Makes every commit so far durable. Waits for a write transaction under way when there are lazy or `None`
    /// commits, so it must not be called by who holds one. Returns the newest commit.
    ///
    /// # Errors
    /// `Poisoned`; any error of a sync or of writing the record (then nothing more is acknowledged until
    /// reopened).
    pub fn sync(&self) -> Result<TxnId> {
        self.inner.check_writable()?;
        let newest = self.inner.pipeline.base(self.inner.state()).txn;
        make_durable(&self.inner, newest, None)?;
        Ok(newest)
    }

    /// Makes everything durable and closes this handle. (Others, and snapshots, keep the file open.)
    ///
    /// # Errors
    /// As for `sync`.
    pub fn close(self) -> Result<()> {
        if self.inner.options.read_only {
            return Ok(());
        }
        self.sync().map(|_| ())
    }

    /// Closes this handle without a sync, as dropping it does: lazy commits survive the process, not a power cut;
    /// `None` commits are lost.
    pub fn close_without_sync(self) {}

    /// Has the system read the file into memory ahead, from its beginning, up to `bytes_max` bytes; returns how many that is. It does not
    /// wait for them. Where the file is larger than what memory is to spare, nothing is gained beyond that.
    ///
    /// # Errors
    /// `Io` when the system refuses.
    pub fn warm_up(&self, bytes_max: u64) -> Result<u64> {
        let bytes = self.inner.state().bytes.min(bytes_max);
        for at in (0..bytes).step_by(WARM_BYTES as usize) {
            let len = (bytes - at).min(WARM_BYTES);
            let asked = self.inner.storage.read_ahead(at, len);
            asked.map_err(|source| Error::Io {
                what: "reading ahead".into(),
                at,
                source,
            })?;
        }
        Ok(bytes)
    }

    /// Counters and times of what was committed since the file was opened by this handle.
    #[must_use]
    pub fn metrics(&self) -> MetricsReport {
        self.inner.pipeline.metrics.report()
    }

    /// Bytes of a page.
    #[must_use]
    pub fn page_size(&self) -> usize {
        self.inner.page_size
    }

    /// The file's identity.
    #[must_use]
    pub fn uuid(&self) -> [u8; 16] {
        self.inner.superblock.uuid
    }

    /// How the file was opened.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.inner.options
    }

    /// Figures about the file. Waits for a write transaction under way.
    ///
    /// # Errors
    /// What reading the free space meets.
    pub fn stat(&self) -> Result<Stat> {
        let _turn = self.inner.turn()?;
        // What a handle that only reads finds its free space in must stay as it is meanwhile.
        let snapshot = self.begin_read()?;
        let mut writer = self.inner.take_writer(snapshot.state())?;
        writer.reclaim(&self.inner);
        let state = Arc::clone(snapshot.state());
        let large = writer.space.large.as_deref();
        let stat = Stat {
            page_size: self.inner.page_size,
            file_bytes: writer.space.pages() * self.inner.page_size as u64,
            pages_total: writer.space.pages(),
            pages_free: writer.space.free_pages(),
            pages_pending: writer.space.held_pages(),
            longest_free_pages: writer.space.longest_free(),
            large_bytes: large.map_or(0, |large| large.pages() * self.inner.page_size as u64),
            large_pages_free: large.map_or(0, Large::free_pages),
            txn: state.txn,
            commit_time_ns: state.time_ns,
            uuid: self.inner.superblock.uuid,
        };
        self.inner.put_writer(writer);
        Ok(stat)
    }
}

impl Drop for Inner {
    /// Gives space back that the file grew ahead by, when it is a step or more. Nobody reads any more;
    /// the newest durable record does not count these pages.
    fn drop(&mut self) {
        let slot = self
            .writer
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        if self.options.read_only || self.poisoned.get().is_some() {
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
        let pipeline = Pipeline::new(&found);
        let state = State::of(found, superblock.page_size, options.read_only);
        let lock = Arc::new(lock);
        Self {
            observed: storage.observer().is_some(),
            storage,
            large: None,
            page_size: superblock.page_size,
            verified: Verified::new(superblock.page_size),
            unwritten: Unwritten::default(),
            superblock,
            options,
            local: AtomicU64::new(state.txn.0),
            state: ArcSwap::from_pointee(state),
            publishing: Mutex::new(()),
            wakers: Wakers::default(),
            turns: Arc::new(Turns::new(Arc::clone(&lock))),
            pipeline,
            recovery: Recovery::default(),
            flusher: OnceLock::new(),
            writer: Mutex::new(WriterSlot::Unread),
            poisoned: OnceLock::new(),
            lock,
        }
    }

    /// The turn; of a handle that only reads, the turn among its own threads.
    pub(crate) fn turn(&self) -> Result<Turn> {
        self.lock.check_process()?;
        if self.options.read_only {
            return Ok(self.turns.wait_as_reader());
        }
        self.let_others()?;
        let (begun, mut told) = (Instant::now(), 0);
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
        match self.turns.wait(None, &mut waiting)? {
            Some(turn) => Ok(turn),
            None => Err(self.writer_busy()),
        }
    }

    /// Where commits of this handle wait for a flush that others share, the turn among the handles stays here; without an end where new
    /// ones keep coming. So who wants to write while another handle waits first sees to it that what is here becomes durable and the turn
    /// goes on, and queues behind.
    fn let_others(&self) -> Result<()> {
        if !self.turns.keeps() || !self.lock.others_wait() {
            return Ok(());
        }
        if let Some(newest) = self.pipeline.newest_recorded() {
            // Whatever comes of it: the turn is asked for next.
            let _ = self.pipeline.wait(self, newest, None)?;
        }
        Ok(())
    }

    fn writer_busy(&self) -> Error {
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

    fn show(&self, state: State) {
        let txn = state.txn.0;
        self.state.store(Arc::new(state));
        self.local.store(txn, Ordering::SeqCst);
    }

    /// Shows a commit of this handle: to all, or to this process alone. Only while this handle has the turn. What is
    /// shown already is never taken back for an older commit.
    pub(crate) fn publish(&self, state: &State, to_all: bool) {
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
        let newest = if state.txn > shown.txn {
            state.clone()
        } else {
            State::clone(&shown)
        };
        self.show(State { word, ..newest });
        if word > before {
            protocol::publish(published, word);
        }
    }

    pub(crate) fn set_flusher(&self, flusher: Option<Thread>) {
        if let Some(flusher) = flusher {
            let _ = self.flusher.set(flusher);
        }
    }

    /// Makes lazy commits durable when they have grown too many or too old.
    pub(crate) fn sync_if_due(self: &Arc<Self>) -> Result<()> {
        let (bytes, age) = self.pipeline.unsynced();
        let by_bytes = self.options.sync_bytes.is_some_and(|most| bytes >= most);
        let by_age = self.options.sync_after.is_some_and(|most| age >= most);
        if !by_bytes && !by_age {
            return Ok(());
        }
        if let Some(flusher) = self.flusher.get() {
            flusher.unpark();
            return Ok(());
        }
        let newest = self.pipeline.base(self.state()).txn;
        make_durable(self, newest, None).map(|_| ())
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
            self.show(State::of(found, self.page_size, self.options.read_only));
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
        let in_flight = self.lock.area.in_flight().load(Ordering::SeqCst);
        if in_flight != 0 || self.lock.area.durable().load(Ordering::Acquire) == 0 {
            // Nobody who is alive has said that the newest record is whole.
            one_flush::verify(&*self.storage, self.page_size, in_flight, &mut blocks)?;
        }
        let found = Found::newest(&blocks)?;
        check_length(&*self.storage, &self.superblock, &found.meta)?;
        let healed = heal_metas(&*self.storage, &mut blocks, &found.meta);
        for at in healed.inspect_err(|error| self.poison(error))? {
            self.log(&Event::Healed { at });
        }
        Found::newest(&blocks)?.with_weak(&*self.storage, self.page_size, &self.lock)
    }

    /// The transactions that readers in all processes hold, and the newest ones, ascending.
    pub(crate) fn live(&self) -> Vec<u64> {
        let mut live = vec![self.local.load(Ordering::SeqCst)];
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

    pub(crate) fn check_poison(&self) -> Result<()> {
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
        self.log(&Event::Poisoned {
            first: error.to_string(),
        });
        let _ = self.poisoned.set(error.to_string());
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
                        self.pipeline.reset(&found, &Arc::new(state));
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

    /// Bytes of the file between the head and `end`.
    #[inline]
    pub(crate) fn bytes(&self, addr: u64, len: usize, end: u64) -> Result<PageRef<'_>> {
        match self.lent(addr, len, end) {
            Some(bytes) => Ok(PageRef::Borrowed(bytes)),
            None if addr >= LARGE_AT => self.large_bytes(addr, len, true),
            None => self.read_owned(addr, len, end),
        }
    }

    /// Bytes of the second file.
    #[cold]
    fn large_bytes(&self, addr: u64, len: usize, lend: bool) -> Result<PageRef<'_>> {
        match &self.large {
            Some(large) => large.bytes(addr, len, lend),
            None => {
                // Or the database came to have one after it was opened here.
                let found = format!("{len} bytes in a second file");
                let expected =
                    "an address of this file; the database was opened without a second one";
                Err(Corrupt::new("pointer", addr, found, expected).into())
            }
        }
    }

    /// Bytes lent from the map. `None`: outside, or not mapped.
    #[inline]
    fn lent(&self, addr: u64, len: usize, end: u64) -> Option<&[u8]> {
        let inside = addr.checked_add(len as u64).is_some_and(|to| to <= end);
        if !inside || addr < HEAD_BYTES {
            return None;
        }
        self.storage.mapped(addr, len)
    }

    /// A page lent from the map of pages.
    #[inline]
    fn lent_page(&self, addr: u64, end: u64) -> Option<&[u8]> {
        let inside = addr
            .checked_add(self.page_size as u64)
            .is_some_and(|to| to <= end);
        if !inside || addr < HEAD_BYTES {
            return None;
        }
        self.storage.mapped_page(addr, self.page_size)
    }

    #[cold]
    pub(crate) fn read_owned(&self, addr: u64, len: usize, end: u64) -> Result<PageRef<'_>> {
        if addr >= LARGE_AT {
            return self.large_bytes(addr, len, false);
        }
        let inside = addr.checked_add(len as u64).is_some_and(|to| to <= end);
        if !inside || addr < HEAD_BYTES {
            return Err(outside(addr, len, end));
        }
        let mut bytes = vec![0u8; len];
        match self.storage.read_at(addr, &mut bytes) {
            Ok(()) => Ok(PageRef::Owned(bytes.into())),
            Err(source) => Err(Error::Io {
                what: format!("read of {len} bytes"),
                at: addr,
                source,
            }),
        }
    }

    /// Asks the processor for the beginning of a page.
    #[inline]
    pub(crate) fn prefetch(&self, ptr: &Ptr, bytes: usize, end: u64) {
        if let Some(page) = self.lent_page(ptr.addr, end) {
            tidalite_base::prefetch(&page[..bytes.min(self.page_size)]);
        }
    }

    #[inline]
    pub(crate) fn expect_page(&self, ptr: &Ptr) -> Result<()> {
        if ptr.len as usize != self.page_size || ptr.addr & (self.page_size as u64 - 1) != 0 {
            return Err(not_a_page(ptr, self.page_size));
        }
        Ok(())
    }

    /// A block or page as a copy that never was in the map: what nobody holds may be cut off the file at any time, and
    /// touching the map there would be a signal.
    #[cold]
    pub(crate) fn copied(&self, ptr: &Ptr, end: u64) -> Result<PageRef<'_>> {
        let bytes = self.read_owned(ptr.addr, ptr.len as usize, end)?;
        if self.options.verify != Verify::Never {
            verify_block(&bytes, ptr)?;
        }
        Ok(bytes)
    }

    /// A whole page as a state sees it.
    #[inline]
    pub(crate) fn page_of(&self, state: &State, ptr: &Ptr) -> Result<PageRef<'_>> {
        if ptr.birth.0 > state.written
            && let Some(bytes) = self.unwritten.get(ptr, self.page_size)
        {
            return Ok(PageRef::Owned(bytes));
        }
        self.page(ptr, state.bytes)
    }

    /// A whole page of the file, verified as the options say.
    #[inline]
    pub(crate) fn page(&self, ptr: &Ptr, end: u64) -> Result<PageRef<'_>> {
        self.expect_page(ptr)?;
        // The common case makes the result once and in one place: a `Result<PageRef>` that is passed
        // on is copied, and each copy waits for the stores before it.
        match self.lent_page(ptr.addr, end) {
            Some(bytes) => {
                if self.options.verify != Verify::OnFirstTouch || !self.verified.knows(ptr) {
                    self.verify(ptr, bytes)?;
                }
                Ok(PageRef::Borrowed(bytes))
            }
            None => {
                let bytes = self.read_owned(ptr.addr, self.page_size, end)?;
                if self.options.verify != Verify::OnFirstTouch || !self.verified.knows(ptr) {
                    self.verify(ptr, &bytes)?;
                }
                Ok(bytes)
            }
        }
    }

    #[cold]
    fn verify(&self, ptr: &Ptr, bytes: &[u8]) -> Result<()> {
        if self.options.verify != Verify::Never {
            verify_block(bytes, ptr)?;
            self.verified.learn(ptr);
        }
        Ok(())
    }

    /// A block inside an extent, verified unless the options say never.
    #[inline]
    pub(crate) fn block(&self, ptr: &Ptr, end: u64) -> Result<PageRef<'_>> {
        let bytes = self.bytes(ptr.addr, ptr.len as usize, end)?;
        if self.options.verify != Verify::Never {
            verify_block(&bytes, ptr)?;
        }
        Ok(bytes)
    }
}

#[cold]
fn outside(addr: u64, len: usize, end: u64) -> Error {
    Corrupt::new(
        "pointer",
        addr,
        format!("{len} bytes at {addr}"),
        format!("a range between {HEAD_BYTES} and {end}"),
    )
    .into()
}

#[cold]
fn not_a_page(ptr: &Ptr, page_size: usize) -> Error {
    Corrupt::new(
        format!("pointer to a {:?} page", ptr.kind),
        ptr.addr,
        format!("{} bytes", ptr.len),
        format!("{page_size} bytes at a multiple of that"),
    )
    .into()
}
