//! Options for opening a database. `durability.rs`, `readers.rs`, `clock.rs` and `maintenance/policies` add further
//! options.

use crate::catalog::roots::Roots;
use crate::database::background::Round;
use crate::database::handle::Database;
use crate::database::verify;
use crate::series::helpers::SCAN_THREADS_MAX;
use std::sync::Arc;
use std::time::Duration;
use tidalite_base::limits::{LEAF_VECTORS_MAX, PAGE_SIZE_DEFAULT};
use tidalite_delta::WRITE_BUFFER_BYTES_DEFAULT;
pub use tidalite_pager::{OpenMode, ReadAhead, Verify};

/// More threads would only wait for the writing one.
const FLUSH_THREADS_MAX: usize = 64;

/// Options for opening a database.
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
    pub(super) write_buffer_bytes: usize,
    pub(super) leaf_vectors: usize,
    pub(super) flush_threads: usize,
    pub(super) scan_threads: Option<usize>,
    /// Work repeated by a thread of the database.
    pub(crate) background: Option<Schedule>,
}

/// The interval and the work of a thread of the database.
#[derive(Clone)]
pub(crate) struct Schedule {
    pub(crate) every: Duration,
    pub(crate) work: Arc<dyn Fn(Database) -> Round + Send + Sync>,
}

impl std::fmt::Debug for Schedule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Schedule")
            .field("every", &self.every)
            .finish_non_exhaustive()
    }
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
            write_buffer_bytes: WRITE_BUFFER_BYTES_DEFAULT,
            leaf_vectors: LEAF_VECTORS_MAX,
            flush_threads: 0,
            scan_threads: None,
            background: None,
        }
    }

    /// Whether the file must, may or must not exist.
    pub fn mode(mut self, mode: OpenMode) -> Self {
        self.store.mode = mode;
        self
    }

    /// Opens for reading only, concurrently with writers. Requires write permission on the lock file, where read
    /// snapshots are registered: it is created for the owner of the database and for the group that may read it
    /// (SECURITY.md). Without that permission, for example in a read-only folder, the database can be read only while
    /// no other process has it open (else: [`Locked`](crate::ErrorKind::Locked)), and no process may write meanwhile.
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.store.read_only = read_only;
        if read_only {
            self.store.mode = OpenMode::Open;
        }
        self
    }

    /// Excludes every other handle: not even two readers may open the file. Required on a network file system (else:
    /// [`Unsupported`](crate::ErrorKind::Unsupported)): its locks, if it has any, keep other computers out.
    pub fn exclusive(mut self, exclusive: bool) -> Self {
        self.store.exclusive = exclusive;
        self
    }

    /// Opens the state of the durable commit *before* the newest one, read-only and exclusively: see
    /// [`look`](crate::monitor::look). The next normal opening finds the newest again. The state is complete if writers
    /// had [`keep_older`](Self::keep_older); otherwise pages overwritten since are reported as damage.
    pub fn older_record(mut self) -> Self {
        self.store.older_record = true;
        self.exclusive(true).read_only(true)
    }

    /// Keeps the state of the durable commit before the newest one complete until the next durable commit (default:
    /// no): see [`keep_older`](tidalite_pager::Options::keep_older).
    pub fn keep_older(mut self, keep_older: bool) -> Self {
        self.store.keep_older = keep_older;
        self
    }

    /// Opens the file for writing even if durable commits are missing (default: no): without it such a file is refused
    /// with [`CommitsLost`](crate::ErrorKind::CommitsLost), because the next durable commit overwrites the
    /// evidence. A read-only handle opens it either way. [`Database::recovery`] reports the missing commits.
    pub fn accept_lost_commits(mut self, accept: bool) -> Self {
        self.store.accept_lost_commits = accept;
        self
    }

    /// Path of the lock file, instead of `name.tdl-lock` next to `name.tdl`: on a faster file system, or because the
    /// database is a block device. All processes that open the database must use one path, and no other database may
    /// use that file.
    pub fn lock_path(mut self, path: impl Into<std::path::PathBuf>) -> Self {
        self.store.lock_path = Some(path.into());
        self
    }

    /// With [`OpenMode::Create`] on a block device: its contents are lost. Without this option a database is created
    /// only on a device whose first and last MiB are zeros.
    pub fn overwrite_device(mut self, overwrite: bool) -> Self {
        self.store.overwrite_device = overwrite;
        self
    }

    /// The system's readahead around a page of the map that is not in memory (default: by file size).
    pub fn read_ahead(mut self, read_ahead: ReadAhead) -> Self {
        self.store.read_ahead = read_ahead;
        self
    }

    /// Allocates single pages in LIFO order of their freeing, instead of the lowest adjacent ones (default: no): see
    /// [`recent_first`](tidalite_pager::Options::recent_first).
    pub fn recent_first(mut self, recent_first: bool) -> Self {
        self.store.recent_first = recent_first;
        self
    }

    /// Overwrites freed pages with a pattern (default: no), so that a stale pointer is detected at once.
    pub fn poison_freed(mut self, poison_freed: bool) -> Self {
        self.store.poison_freed = poison_freed;
        self
    }

    /// Stores table values of `min` bytes and more in a second file, perhaps on another disk; it is created if missing.
    /// The database remembers its path: later it must be given only after a move. Values already stored stay in place.
    /// One commit covers both files, and costs one more sync if it wrote to the second one.
    ///
    /// The first file contains everything but the second file's bytes; each is useless without the other. Backups
    /// contain both, and compaction packs both. `copy_to` and salvage combine both in one file; an image of the file is
    /// refused ([`LargeFile`](crate::ErrorKind::LargeFile)).
    pub fn large_values(mut self, path: impl Into<std::path::PathBuf>, min: u64) -> Self {
        self.store.large_values_path = Some(path.into());
        self.store.large_values_min = min;
        self
    }

    /// Page size in bytes, a power of two from 512 to 256 KiB; used when the file is created.
    pub fn page_size(mut self, bytes: usize) -> Self {
        self.store.page_size = bytes;
        self
    }

    /// Verification of pages by their checksums.
    pub fn verify(mut self, verify: Verify) -> Self {
        self.store.verify = verify;
        self
    }

    /// Borrows pages from a read-only map (default), or reads every page with `pread`: slower, but then every media
    /// error is a typed error.
    pub fn map(mut self, map: bool) -> Self {
        self.store.map = map;
        self
    }

    /// Copies frequently overwritten pages of lazy commits, and of small durable ones that go to the log, into a
    /// writable map of the file (default), or passes every page to the system. The map saves a third of a lazy commit's
    /// time; but a stray write of this program, in `unsafe` code or in C, can then reach the file, as in LMDB with
    /// `MDB_WRITEMAP`. Checksums detect it. It is used only with `map`, only on file systems that overwrite blocks in
    /// place (ext4, tmpfs), and not for larger durable commits. A file system that fails as a whole (is made read-only
    /// after a disk error) then raises a signal, as it may for reads.
    pub fn map_writes(mut self, map_writes: bool) -> Self {
        self.store.map_writes = map_writes;
        self
    }

    /// Consecutive small durable commits go to a log inside the file: one barrier instead of two, and a block or two
    /// instead of all pages that they change. The log is created when useful. It takes half the size of the file, at
    /// least 2 MiB, at most this much (4 MiB) and at most an eighth of the file's maximum length. It is emptied when
    /// full and at [`Database::close`](crate::Database::close), which returns its pages if they are a large part of a
    /// small file; opening after a crash empties it, too. 0: no log.
    pub fn log_bytes(mut self, most: u64) -> Self {
        self.store.log_bytes = most;
        self
    }

    /// The file grows by at least `min` bytes at a time, a shorter file by its own length, and by at most `max` more
    /// than it needs (1 and 8 MiB). Like all options about the file's length, this applies to this handle: it is not
    /// stored in the file, and each writing process sets its own.
    pub fn growth_bytes(mut self, min: u64, max: u64) -> Self {
        self.store.growth_bytes_min = min;
        self.store.growth_bytes_max = max;
        self
    }

    /// The file is at least `min` bytes long, free or not (0), and at most `max` (unlimited): further growth fails with
    /// [`Full`](crate::ErrorKind::Full), the transaction is rolled back, and the database remains usable. Applies to this
    /// handle, not to the file; [`Database::set_file_bytes`] changes it while the database is open.
    pub fn file_bytes(mut self, min: u64, max: u64) -> Self {
        self.store.file_bytes_min = min;
        self.store.file_bytes_max = max;
        self
    }

    /// The file is truncated when this many bytes are free at its end; when this many are free inside, runs of 1 MiB
    /// and more are returned to the file system (16 MiB). Done with commits, as soon as no snapshot needs the space.
    /// Applies to this handle, not to the file.
    pub fn shrink_bytes(mut self, bytes: u64) -> Self {
        self.store.shrink_bytes = bytes;
        self
    }

    /// Bytes that stay allocated and free in the file for transactions that delete, so that they work on a full disk (1
    /// MiB; in smaller files a quarter of the pages in use, at least 64 pages, or as many as there are in use and 4 if
    /// that is less).
    pub fn reserve_bytes(mut self, bytes: u64) -> Self {
        self.store.reserve_bytes = bytes;
        self
    }

    /// Bytes of changed pages that a write transaction holds before it writes some of them early (64 MiB).
    pub fn dirty_bytes(mut self, bytes: usize) -> Self {
        self.store.dirty_bytes_max = bytes;
        self
    }

    /// After a durable transaction that changed this many bytes, pages of tables of the next one are written while it
    /// is still open, so that the disk works meanwhile; so are pages in the commit of a transaction that changed as
    /// much (8 MiB; 0: never). With two or more processors a thread does it, for the duration of the transaction.
    pub fn write_behind_bytes(mut self, bytes: u64) -> Self {
        self.store.write_behind_bytes = bytes;
        self
    }

    /// Bytes of pages that commits of [`Durability::None`](crate::Durability::None) keep in memory until a commit of
    /// another kind or [`Database::sync`](crate::Database::sync) writes them (128 MiB). Pages changed again before that
    /// are written once; beyond the bound the commit writes. With 0 every such commit writes immediately.
    pub fn unwritten_bytes(mut self, bytes: usize) -> Self {
        self.store.unwritten_bytes_max = bytes;
        self
    }

    /// Calls `f` on events of the file ([`Event`](crate::monitor::Event)): opened, healed, recovered, grown, truncated,
    /// poisoned; a commit that took longer than a second ([`slow_commit`](Self::slow_commit)); a reader that retains
    /// space. Called on any thread; `f` must not use the database.
    pub fn logger(mut self, f: impl Fn(&tidalite_pager::Event) + Send + Sync + 'static) -> Self {
        self.store.logger = Some(tidalite_pager::Logger::new(f));
        self
    }

    /// Duration from which commits are reported to the logger as slow (a second).
    pub fn slow_commit(mut self, took: Duration) -> Self {
        self.store.slow_commit = took;
        self
    }

    /// A durable commit records its time, for [`Database::txn_at`], if the last record is at least this old (a minute).
    pub fn clock_step(mut self, step: std::time::Duration) -> Self {
        self.store.clock_step = step;
        self
    }

    /// Size of a write transaction's write buffer, in bytes of rows, before it flushes whole vectors (256 MiB).
    pub fn write_buffer_bytes(mut self, bytes: usize) -> Self {
        self.write_buffer_bytes = bytes;
        self
    }

    /// Leaves of series are written with up to this many vectors of 1024 rows, between 1 and 16 (the default). Large
    /// leaves are smaller per row and faster to search; with small ones a late or deleted row rewrites less. Existing
    /// leaves do not change.
    pub fn leaf_vectors(mut self, vectors: usize) -> Self {
        self.leaf_vectors = vectors.clamp(1, LEAF_VECTORS_MAX);
        self
    }

    /// Threads that help a write transaction to flush many rows. They sort and encode; the transaction's own thread
    /// installs the encoded rows. If series are fed one row each in turn, they work while the transaction continues: it
    /// waits for them, and helps, when the next rows are due, when a series whose rows they hold is read, deleted from
    /// or otherwise accessed, and at a savepoint. Otherwise they start when `write_buffer_bytes` are buffered, and at a
    /// commit of 1 MiB of rows and more, and have ended when the call returns. None outlives the transaction: dropping
    /// it waits for the current piece of each.
    ///
    /// Rows held by the threads count towards `write_buffer_bytes`. In addition, up to a million encoded rows wait to
    /// be installed, and the row memory, which the database keeps for the next transaction, may reach twice
    /// `write_buffer_bytes`, because two buffers alternate.
    ///
    /// Useful are as many as there are cores besides the transaction's (default: none): a database uses no cores that
    /// it was not given. The rows are equal for any number; their place in the file is not. A panic of a helper thread
    /// panics the transaction's thread, and breaks the transaction.
    pub fn flush_threads(mut self, threads: usize) -> Self {
        self.flush_threads = threads.min(FLUSH_THREADS_MAX);
        self
    }

    /// Threads that help a query of a snapshot for many windows of a series, for windows or statistics of many series,
    /// or [in parallel](crate::Selection::in_parallel): if the query takes a millisecond or more. They start and end
    /// with the query. Results are equal for any number, bit by bit; queries in a write transaction use none.
    ///
    /// Default: as many as there are cores besides the caller's, at most seven; 0: none.
    pub fn scan_threads(mut self, threads: usize) -> Self {
        self.scan_threads = Some(threads.min(SCAN_THREADS_MAX));
        self
    }
}
