//! How a database is opened. `durability.rs`, `readers.rs`, `clock.rs` and `maintenance/policies` add an option or two.

use crate::catalog::roots::Roots;
use crate::database::background::Round;
use crate::database::handle::Database;
use crate::database::verify;
use crate::series::helpers::SCAN_THREADS_MAX;
use std::time::Duration;
use tidalite_base::limits::{LEAF_VECTORS_MAX, PAGE_SIZE_DEFAULT};
pub use tidalite_pager::{OpenMode, ReadAhead, Verify};
use tidalite_runs::STAGING_BYTES_DEFAULT;

/// More threads than this would only wait for the one that writes.
const SEALING_THREADS_MAX: usize = 64;

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
    pub(super) staging_bytes: usize,
    pub(super) leaf_vectors: usize,
    pub(super) sealing_threads: usize,
    pub(super) scan_threads: Option<usize>,
    /// Work that a thread of the database repeats.
    pub(crate) background: Option<Schedule>,
}

/// How often a thread of the database does a round of its work, and what that is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    pub(crate) every: Duration,
    pub(crate) work: fn(Database) -> Round,
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
            verifier: Some(verify::verifier()),
            ..Default::default()
        };
        Self {
            store,
            staging_bytes: STAGING_BYTES_DEFAULT,
            leaf_vectors: LEAF_VECTORS_MAX,
            sealing_threads: 0,
            scan_threads: None,
            background: None,
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
}
