//! The database: one file, opened.

use crate::catalog::roots::Roots;
use crate::database::background::Background;
use crate::database::verify as unrecorded;
use crate::maintenance::compact::Pass;
use crate::maintenance::watch::Watch;
use crate::series::parallel::{SCAN_THREADS_MAX, scan_threads_default};
use crate::txn::read::{Newest, ReadTxn};
use crate::txn::write::{OpenTable, WriteTxn};
use crate::types::error::Result;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidalite_base::limits::{LEAF_VECTORS_MAX, PAGE_SIZE_DEFAULT};
use tidalite_pager::{Clocks, LockMemory, Pager, Storage};
use tidalite_runs::{STAGING_BYTES_DEFAULT, Staging};

pub use tidalite_pager::{OpenMode, ReadAhead, Verify};

/// More threads than this would only wait for the one that writes.
const SEALING_THREADS_MAX: usize = 64;

/// Appenders' memory that is kept.
const APPENDING_KEPT_MAX: usize = 64;

/// How a database is opened.
///
/// ```no_run
/// use tidalite::{OpenMode, Options};
/// let db = Options::new().mode(OpenMode::Open).read_only(true).open("plant.tdl")?;
/// # Ok::<(), tidalite::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Options {
    pub(crate) store: tidalite_pager::Options,
    staging_bytes: usize,
    leaf_vectors: usize,
    sealing_threads: usize,
    scan_threads: Option<usize>,
    maintain_every: Option<Duration>,
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

impl Options {
    /// Create or open, writable, pages of 4 KiB when created, verified on first touch.
    pub fn new() -> Self {
        let store = tidalite_pager::Options {
            page_size: PAGE_SIZE_DEFAULT,
            roots: Some(Roots::pages),
            verifier: Some(unrecorded::verifier()),
            ..Default::default()
        };
        Self {
            store,
            staging_bytes: STAGING_BYTES_DEFAULT,
            leaf_vectors: LEAF_VECTORS_MAX,
            sealing_threads: 0,
            scan_threads: None,
            maintain_every: None,
        }
    }

    /// Whether the file must, may or must not exist.
    pub fn mode(mut self, mode: OpenMode) -> Self {
        self.store.mode = mode;
        self
    }

    /// Nothing is written, beside whoever writes. For that one must be able to write to the lock file, in which the readers stand: it is made for the
    /// owner of the database and for the group that may read it (SECURITY.md). Who cannot, in a folder that cannot be written to perhaps, reads
    /// while nobody else has the database open (else: `StoreError::LockRefused`), and nobody may write meanwhile.
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.store.read_only = read_only;
        if read_only {
            self.store.mode = OpenMode::Open;
        }
        self
    }

    /// Nobody else at all, not even a reader beside a reader. Needed on a network file system (else: `StoreError::NetworkFileSystem`): its locks, where
    /// it has such, keep other computers out.
    pub fn exclusive(mut self, exclusive: bool) -> Self {
        self.store.exclusive = exclusive;
        self
    }

    /// Opens what the durable commit *before* the newest one shows, read-only and with nobody else: see [`look`](crate::look). Whoever
    /// opens the file next finds the newest again. All of it is there where writers had [`keep_older`](Self::keep_older); else what the
    /// newest has written over is reported as damage.
    pub fn older_record(mut self) -> Self {
        self.store.older_record = true;
        self.exclusive(true).read_only(true)
    }

    /// What the durable commit before the newest one shows is kept whole until there is another one (no): see
    /// [`keep_older`](tidalite_pager::Options::keep_older).
    pub fn keep_older(mut self, keep_older: bool) -> Self {
        self.store.keep_older = keep_older;
        self
    }

    /// Opens the file for writing although durable commits are missing (no): without it such a file is refused with
    /// [`StoreError::CommitsLost`](crate::StoreError::CommitsLost), because the next durable commit writes over the evidence. A handle that
    /// only reads opens it either way. [`Database::recovery`] says what is missing.
    pub fn accept_lost_commits(mut self, accept: bool) -> Self {
        self.store.accept_lost_commits = accept;
        self
    }

    /// Where the lock file is, instead of `name.tdl-lock` beside `name.tdl`: on a faster file system, or because the database is a
    /// block device. All who open the database must say the same, and no other database may use that file.
    pub fn lock_path(mut self, path: impl Into<std::path::PathBuf>) -> Self {
        self.store.lock_path = Some(path.into());
        self
    }

    /// With [`OpenMode::Create`] on a block device: whatever it holds is lost. Otherwise only a device is made a database whose
    /// first and last MiB are zeros.
    pub fn overwrite_device(mut self, overwrite: bool) -> Self {
        self.store.overwrite_device = overwrite;
        self
    }

    /// How much the system reads around a page of the map that is not in memory (as the file's size suggests).
    pub fn read_ahead(mut self, read_ahead: ReadAhead) -> Self {
        self.store.read_ahead = read_ahead;
        self
    }

    /// Single pages that became free last are taken first, not the lowest ones side by side (no): see
    /// [`recent_first`](tidalite_pager::Options::recent_first).
    pub fn recent_first(mut self, recent_first: bool) -> Self {
        self.store.recent_first = recent_first;
        self
    }

    /// Pages that become free are overwritten with a pattern (no), so that a pointer to what is gone shows at once.
    pub fn spoil_freed(mut self, spoil_freed: bool) -> Self {
        self.store.spoil_freed = spoil_freed;
        self
    }

    /// Puts values of tables of `min` bytes and more into a second file, on another disk perhaps; it is made when it is not there. The
    /// database remembers it: later it need be named only when it was moved. What is stored already stays where it is. One commit covers
    /// both files, and costs one more sync when it wrote to the second one.
    ///
    /// Everything but that file's bytes is in the first one; each is worth nothing without the other. backups carry both,
    /// and compaction packs both. `copy_to` and salvage bring both together in one file; an image of the file is refused
    /// (`StoreError::LargeFile`).
    pub fn large_values(mut self, path: impl Into<std::path::PathBuf>, min: u64) -> Self {
        self.store.large_values_path = Some(path.into());
        self.store.large_values_min = min;
        self
    }

    /// Bytes of a page, a power of two from 512 to 256 KiB; used when the file is created.
    pub fn page_size(mut self, bytes: usize) -> Self {
        self.store.page_size = bytes;
        self
    }

    /// How pages are checked against their checksums.
    pub fn verify(mut self, verify: Verify) -> Self {
        self.store.verify = verify;
        self
    }

    /// Lend pages from a read-only map (default), or read every page with `pread`: slower, but then
    /// every media error is a typed error.
    pub fn map(mut self, map: bool) -> Self {
        self.store.map = map;
        self
    }

    /// Copy pages of lazy commits, and of small durable ones that go to the log, that are written over again and again into a writable map of the file (default), or hand every page to
    /// the system. The map takes a third of a lazy commit's time away; but a stray write of this program, in `unsafe` code or in C, can
    /// then reach the file, as it can in LMDB with `MDB_WRITEMAP`. Checksums tell of it. It is used only with `map`, only on file systems that write
    /// over blocks where they are (ext4, tmpfs), and not for larger durable commits. A file system that fails as a whole (is made read-only after an
    /// error of the disk) is then a signal, as it may be for reads.
    pub fn map_writes(mut self, map_writes: bool) -> Self {
        self.store.map_writes = map_writes;
        self
    }

    /// Small durable commits that follow each other go to a log inside the file: one barrier instead of two, and a block or two instead of all the
    /// pages that they change. It is made when it is of use, takes half as much as the file has, 2 MiB at least, this much at most (4
    /// MiB), and an eighth of what the file may have; it is emptied when it is full and at [`Database::close`](crate::Database::close), which gives its pages back where they are much of a small file; opening after a crash empties it, too. 0: none.
    pub fn log_bytes(mut self, most: u64) -> Self {
        self.store.log_bytes = most;
        self
    }

    /// The file grows by at least `min` bytes at a time, a shorter file by its own length, and at most `max` more than it needs (1 and 8 MiB). As with all options about the file's length, this
    /// is what this handle does: it is not stored in the file, and each process that writes says it for itself.
    pub fn growth_bytes(mut self, min: u64, max: u64) -> Self {
        self.store.growth_bytes_min = min;
        self.store.growth_bytes_max = max;
        self
    }

    /// The file is at least `min` bytes long, free or not (0), and at most `max` (no bound): growing further is `StoreError::FileFull`, the
    /// transaction is rolled back, and the database goes on. Of this handle, not of the file; [`Database::set_file_bytes`] changes it while it is open.
    pub fn file_bytes(mut self, min: u64, max: u64) -> Self {
        self.store.file_bytes_min = min;
        self.store.file_bytes_max = max;
        self
    }

    /// When so many bytes are free at the file's end it is cut off, and when so many are free inside, stretches of 1 MiB and more
    /// are given back to the file system (16 MiB). Done with commits, as soon as no snapshot needs what lies there. Of this handle, not of the file.
    pub fn shrink_bytes(mut self, bytes: u64) -> Self {
        self.store.shrink_bytes = bytes;
        self
    }

    /// Bytes that stay written and free in the file for transactions that delete, so that they work on a full disk
    /// (1 MiB; in smaller files a quarter of the pages in use, at least 64 pages, or as many as there are in use and 4 if that is less).
    pub fn reserve_bytes(mut self, bytes: u64) -> Self {
        self.store.reserve_bytes = bytes;
        self
    }

    /// Bytes of changed pages that a write transaction keeps before it writes some of them early (64 MiB).
    pub fn dirty_bytes(mut self, bytes: usize) -> Self {
        self.store.dirty_bytes_max = bytes;
        self
    }

    /// After a durable transaction that changed this many bytes the next one has pages of tables written while it is still open, so
    /// that the disk works meanwhile, and so has the commit of one that changed as much (8 MiB; 0: never). A thread does it, for as long as
    /// the transaction lasts, where there are two processors.
    pub fn early_bytes(mut self, bytes: u64) -> Self {
        self.store.early_bytes = bytes;
        self
    }

    /// Bytes of pages that commits of [`Durability::None`](crate::Durability::None) keep in memory until a commit of another kind writes
    /// them, or [`Database::sync`](crate::Database::sync) does (128 MiB). What is changed again before that is written once; beyond the bound
    /// the commit writes. With 0 each of them writes at once.
    pub fn unwritten_bytes(mut self, bytes: usize) -> Self {
        self.store.unwritten_bytes_max = bytes;
        self
    }

    /// Calls `f` when something happens to the file ([`Event`](crate::Event)): opened, healed, recovered, grown, cut, poisoned; a commit that took
    /// longer than a second ([`slow_commit`](Self::slow_commit)); a reader that is in the way. From whatever thread; it must not
    /// use the database.
    pub fn logger(mut self, f: impl Fn(&tidalite_pager::Event) + Send + Sync + 'static) -> Self {
        self.store.logger = Some(tidalite_pager::Logger::new(f));
        self
    }

    /// The logger hears of commits that take longer than this (a second).
    pub fn slow_commit(mut self, took: Duration) -> Self {
        self.store.slow_commit = took;
        self
    }

    /// At least so often a durable commit notes its time, so that [`Database::txn_at`] finds it (a minute).
    pub fn clock_step(mut self, step: std::time::Duration) -> Self {
        self.store.clock_step = step;
        self
    }

    /// Bytes of rows that a write transaction holds before it hands whole vectors over (256 MiB).
    pub fn staging_bytes(mut self, bytes: usize) -> Self {
        self.staging_bytes = bytes;
        self
    }

    /// Leaves of series are written with up to this many vectors of 1024 rows, between 1 and 16 (the default). Large leaves take fewer bytes and less
    /// to find; with small ones a row that comes late, or goes, rewrites less. Leaves that are there stay as they are.
    pub fn leaf_vectors(mut self, vectors: usize) -> Self {
        self.leaf_vectors = vectors.clamp(1, LEAF_VECTORS_MAX);
        self
    }

    /// Threads that help a write transaction when it hands many rows over. They sort and encode; the transaction's own thread links
    /// what they have encoded. Where series are fed a row each in turn, they work while the transaction goes on: it waits for
    /// them, and helps, when the next rows are due, when a series is read, deleted from or otherwise looked at whose rows they have, and at a savepoint.
    /// Else they are begun when `staging_bytes` are staged, and at a commit of 1 MiB of rows and more, and have ended when the call
    /// returns. None outlives the transaction: dropping it waits for the piece that each has in hand.
    ///
    /// What they have counts towards `staging_bytes`. Beside that up to a million encoded rows wait to be linked; and the memory of rows,
    /// which the database keeps for the next transaction, may come to twice `staging_bytes`, since there are two to fill in turn.
    ///
    /// As many as there are cores besides that one are of use (none): a database takes no cores that it was
    /// not given. The rows are the same with any number; where in the file they lie is not. A panic of one is one of the transaction's
    /// thread, and breaks the transaction.
    pub fn sealing_threads(mut self, threads: usize) -> Self {
        self.sealing_threads = threads.min(SEALING_THREADS_MAX);
        self
    }

    /// Threads that help the one that asks a snapshot for many windows of a series, for windows or statistics of many series, or
    /// [in parallel](crate::Selection::in_parallel): where a question takes a millisecond or more. They are begun for the question and end with
    /// it. Answers are the same with any number, bit by bit; in a write transaction nobody helps.
    ///
    /// As many as there are cores besides that of the asker, seven at most, unless said otherwise; 0: none.
    pub fn scan_threads(mut self, threads: usize) -> Self {
        self.scan_threads = Some(threads.min(SCAN_THREADS_MAX));
        self
    }

    /// Keeps to the retention policies in a thread of its own that calls [`Database::maintain`] so often, a second of
    /// work at most each time (not at all). It waits in line for the write transaction, and gets it however busy the writers are. What they commit between two rounds, and
    /// while one is under way, comes on top of a cap. The thread ends with the last clone of the database.
    pub fn maintain_every(mut self, every: Duration) -> Self {
        self.maintain_every = Some(every);
        self
    }

    /// Opens the file.
    ///
    /// # Errors
    /// `Store` with: the system's reason; not a database; another version; damaged; open elsewhere; replaced while another
    /// process has the old file open (`FileReplaced`); on a network file system (`NetworkFileSystem`).
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Database> {
        self.wrap(Pager::open(path, &self.store)?)
    }

    /// Opens what is in a storage of one's own: memory, or the simulated disk of the tests.
    ///
    /// # Errors
    /// As for `open`.
    pub fn open_storage(&self, storage: Arc<dyn Storage>) -> Result<Database> {
        self.wrap(Pager::open_storage(storage, &self.store)?)
    }

    /// Opens what is in a storage beside others who have it open with the same lock area, as several processes would
    /// open a file.
    ///
    /// # Errors
    /// As for `open`.
    pub fn open_storage_with(
        &self,
        storage: Arc<dyn Storage>,
        memory: &LockMemory,
    ) -> Result<Database> {
        self.wrap(Pager::open_storage_with(storage, memory, &self.store)?)
    }

    /// The same with a second storage for large values, as [`large_values`](Self::large_values) is for files; with the bound that was
    /// given there.
    ///
    /// # Errors
    /// As for `open`.
    pub fn open_storages(
        &self,
        storage: Arc<dyn Storage>,
        large: Arc<dyn Storage>,
        memory: &LockMemory,
    ) -> Result<Database> {
        let opened = Pager::open_storages(storage, Some(large), memory, &self.store);
        self.wrap(opened?)
    }

    fn wrap(&self, pager: Pager) -> Result<Database> {
        let opened = pager.clocks();
        let staging = Mutex::new(None);
        let (staging_bytes, leaf_vectors) = (self.staging_bytes, self.leaf_vectors);
        let scan_threads = self.scan_threads.unwrap_or_else(scan_threads_default);
        let mut database = Database {
            pager,
            shared: Arc::new(Shared {
                staging,
                staging_bytes,
                leaf_vectors,
                sealing_threads: self.sealing_threads,
                appending: Mutex::default(),
                left: Mutex::new(None),
                pass: Mutex::new(None),
                compacted: AtomicU64::new(0),
                scan_threads,
                newest: Newest::default(),
                opened,
            }),
            background: None,
        };
        if let Some(every) = self.maintain_every.filter(|_| !self.store.read_only) {
            let thread = Background::start(database.clone(), every)?;
            database.background = Some(Arc::new(thread));
        }
        Ok(database)
    }
}

/// What a write transaction has committed.
struct Left {
    bytes: Vec<u8>,
    /// The bytes taken apart.
    roots: Box<Roots>,
    /// Of the tables that it had open.
    tables: Vec<OpenTable>,
}

/// What the transactions of an open database share.
pub(crate) struct Shared {
    /// The memory of the last write transaction's staging: fresh memory costs more than all the rest.
    staging: Mutex<Option<Box<Staging>>>,
    staging_bytes: usize,
    pub(crate) leaf_vectors: usize,
    pub(crate) sealing_threads: usize,
    pub(crate) scan_threads: usize,
    /// The memory of appenders, as above.
    appending: Mutex<Vec<Staging>>,
    /// What the last write transaction left.
    left: Mutex<Option<Left>>,
    /// Where compaction goes on.
    pub(crate) pass: Mutex<Option<Pass>>,
    /// The newest commit when a compaction of this handle came to its end; 0: none has.
    pub(crate) compacted: AtomicU64,
    pub(crate) newest: Newest,
    /// What the clocks showed when the file was opened.
    pub(crate) opened: Clocks,
}

impl Shared {
    pub(crate) fn take_staging(&self) -> Box<Staging> {
        let kept = self
            .staging
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        kept.unwrap_or_else(|| Box::new(Staging::new(self.staging_bytes)))
    }

    /// The roots that these bytes stand for, and tables as they are there, of those that are known.
    pub(crate) fn take_roots(&self, bytes: &[u8]) -> Result<(Box<Roots>, Vec<OpenTable>)> {
        let left = self
            .left
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        match left {
            Some(left) if left.bytes == bytes => Ok((left.roots, left.tables)),
            _ => Ok((Box::new(Roots::decode(bytes)?), Vec::new())),
        }
    }

    pub(crate) fn give_roots(&self, bytes: Vec<u8>, roots: Box<Roots>, tables: Vec<OpenTable>) {
        debug_assert!(
            Roots::decode(&bytes).is_ok_and(|decoded| decoded == *roots),
            "the roots are what was committed"
        );
        let left = Left {
            bytes,
            roots,
            tables,
        };
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = Some(left);
    }

    /// For an appender.
    pub(crate) fn take_appending(&self, bytes: usize) -> Staging {
        let mut kept = self
            .appending
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // Another number of appenders asks for another size.
        kept.retain(|staging| staging.budget_bytes() == bytes);
        kept.pop().unwrap_or_else(|| Staging::new(bytes))
    }

    pub(crate) fn give_appending(&self, mut staging: Staging) {
        staging.reset();
        let mut kept = self
            .appending
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if kept.len() < APPENDING_KEPT_MAX {
            kept.push(staging);
        }
    }

    /// `used`: of so many series the transaction had slots. Answers its epoch.
    pub(crate) fn give_staging(&self, mut staging: Box<Staging>, used: usize) -> u64 {
        // What each use of staging costs grows with its slots.
        if used >= staging.slots() / 2 {
            staging.forget_rows();
        } else if used > 0 || !staging.is_empty() {
            staging.reset();
        }
        let epoch = staging.epoch();
        *self.staging.lock().unwrap_or_else(PoisonError::into_inner) = Some(staging);
        epoch
    }
}

/// An open database. Clones share it; it is closed when the last clone and the last transaction are gone.
#[derive(Clone)]
pub struct Database {
    pub(crate) pager: Pager,
    pub(crate) shared: Arc<Shared>,
    background: Option<Arc<Background>>,
}

impl Database {
    /// Opens a database, or creates it.
    ///
    /// # Errors
    /// As for [`Options::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Options::new().open(path)
    }

    /// The identity of the file: random bytes that it got when it was created and keeps for ever. A byte-for-byte copy has the same ([`copy_image`](Self::copy_image)); one that was made by `copy_to`
    /// or [`restore`](crate::restore) has one of its own. [`Look::uuid`](crate::Look::uuid) tells it of a file that is not opened.
    #[must_use]
    pub fn uuid(&self) -> [u8; 16] {
        self.pager.uuid()
    }

    /// Bounds the file's length anew, as [`Options::file_bytes`] does when it is opened: at least `min` bytes, free or not, and at most `max`. For what this handle and its clones do from
    /// now on; a transaction under way may go by either. A file that is longer than `max` already only grows no further, until free space at its end is cut off.
    pub fn set_file_bytes(&self, min: u64, max: u64) {
        self.pager.set_file_bytes(min, max);
    }

    /// Takes a snapshot of the newest commit of any process. Never waits.
    ///
    /// # Errors
    /// `Store` with: too many snapshots (`Limit`); a forked child (`Forked`); damage in the roots or in the front's record.
    pub fn begin_read(&self) -> Result<ReadTxn> {
        let shared = &self.shared;
        if let Some(read) = shared.newest.begin(&self.pager)? {
            return Ok(read);
        }
        ReadTxn::begin_again(
            self.pager.begin_read()?,
            &shared.newest,
            shared.scan_threads,
        )
    }

    /// Begins the write transaction; waits for others, first come first served among processes. Of the threads of one handle who is awake
    /// when the turn becomes free may have it before who sleeps and waits for it, for 5 ms at most: so many threads commit faster.
    ///
    /// # Errors
    /// `Store` with: read-only; poisoned by a failed sync; a forked child; damage in the roots.
    pub fn begin_write(&self) -> Result<WriteTxn> {
        WriteTxn::begin(Arc::clone(&self.shared), self.pager.begin_write()?)
    }

    /// Begins the write transaction; waits for others no longer than `patience`.
    ///
    /// # Errors
    /// `Store(WriterBusy)`, which names the writer; else as for `begin_write`.
    pub fn begin_write_within(&self, patience: Duration) -> Result<WriteTxn> {
        let pages = self.pager.begin_write_within(patience)?;
        WriteTxn::begin(Arc::clone(&self.shared), pages)
    }

    /// Begins the write transaction unless another one is under way in any process.
    ///
    /// # Errors
    /// As for `begin_write`.
    pub fn try_begin_write(&self) -> Result<Option<WriteTxn>> {
        let Some(pages) = self.pager.try_begin_write()? else {
            return Ok(None);
        };
        WriteTxn::begin(Arc::clone(&self.shared), pages).map(Some)
    }

    /// As `begin_write`; `None` when `goes_on` says no while it waits.
    pub(crate) fn begin_write_while(&self, goes_on: &dyn Fn() -> bool) -> Result<Option<WriteTxn>> {
        let Some(pages) = self.pager.begin_write_while(goes_on)? else {
            return Ok(None);
        };
        WriteTxn::begin(Arc::clone(&self.shared), pages).map(Some)
    }

    /// What maintenance in the background failed with last; asked once, it is forgotten.
    #[must_use]
    pub fn take_maintenance_error(&self) -> Option<crate::Error> {
        self.background.as_ref()?.take_error()
    }

    /// Writes what the newest commit shows to a new file while writing goes on; returns its bytes.
    ///
    /// # Errors
    /// As for [`ReadTxn::copy_to`].
    pub fn copy_to(&self, path: impl AsRef<Path>) -> Result<u64> {
        self.begin_read()?.copy_to(path)
    }

    /// As [`copy_to`](Self::copy_to), watched, and no faster than the watch allows.
    ///
    /// # Errors
    /// As for [`ReadTxn::copy_to_watched`].
    pub fn copy_to_watched(&self, path: impl AsRef<Path>, watch: Watch<'_>) -> Result<u64> {
        self.begin_read()?.copy_to_watched(path, watch)
    }
}
