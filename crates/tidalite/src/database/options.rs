//! Options for opening a database. `maintenance/policies` adds one more; `tuning.rs` has the settings that few programs
//! need.

use crate::catalog::roots::Roots;
use crate::database::background::Round;
use crate::database::handle::Database;
use crate::database::tuning::Tuning;
use crate::database::verify;
use crate::series::helpers::SCAN_THREADS_MAX;
use std::sync::Arc;
use std::time::Duration;
pub use tidalite_pager::{OpenMode, ReadAhead, Verify};

/// Maximum number of flush threads. More would only wait for the thread of the transaction.
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
    /// Options of the pager, including the fields of `tuning` that it has.
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
    /// The default options: the file is created if it does not exist, with pages of 4 KiB, and opened for writing; each
    /// page is verified when it is first read.
    pub fn new() -> Self {
        let Tuning {
            store,
            write_buffer_bytes,
            leaf_vectors,
        } = Tuning::new();
        Self {
            store: tidalite_pager::Options {
                roots: Some(Roots::pages),
                verifier: Some(verify::verifier()),
                ..store
            },
            write_buffer_bytes,
            leaf_vectors,
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
    /// [`inspect`](crate::monitor::inspect). The next normal opening finds the newest again. The state is complete if writers
    /// had [`keep_older`](crate::Tuning::keep_older); otherwise pages overwritten since are reported as damage.
    pub fn older_record(mut self) -> Self {
        self.store.older_record = true;
        self.exclusive(true).read_only(true)
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

    /// Stores table values of `min` bytes and more in a second file, perhaps on another disk; it is created if missing.
    /// The database remembers its path: later it must be given only after a move. Values already stored stay in place.
    /// One commit covers both files, and costs one more sync if it wrote to the second one.
    ///
    /// The first file contains everything but the second file's bytes; each is useless without the other. Backups
    /// contain both, and compaction packs both. Copies and salvage combine both in one file; an image of the file is
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

    /// The file is at least `min` bytes long, free or not (0), and at most `max` (unlimited): further growth fails with
    /// [`Full`](crate::ErrorKind::Full), the transaction is rolled back, and the database remains usable. Applies to this
    /// handle, not to the file; [`Database::set_file_bytes`] changes it while the database is open.
    pub fn file_bytes(mut self, min: u64, max: u64) -> Self {
        self.store.file_bytes_min = min;
        self.store.file_bytes_max = max;
        self
    }

    /// Calls `f` on events of the file ([`Event`](crate::monitor::Event)): opened, healed, recovered, grown, truncated,
    /// poisoned; a commit that took longer than a second; a reader that retains space. Called on any thread; `f` must
    /// not use the database.
    pub fn on_event(mut self, f: impl Fn(&tidalite_pager::Event) + Send + Sync + 'static) -> Self {
        self.store.logger = Some(tidalite_pager::Logger::new(f));
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

    /// Sets everything that few programs need; without it, the defaults of [`Tuning`] apply.
    pub fn tuning(mut self, tuning: Tuning) -> Self {
        let own = self.store;
        self.store = tidalite_pager::Options {
            mode: own.mode,
            read_only: own.read_only,
            exclusive: own.exclusive,
            older_record: own.older_record,
            accept_lost_commits: own.accept_lost_commits,
            lock_path: own.lock_path,
            overwrite_device: own.overwrite_device,
            large_values_path: own.large_values_path,
            large_values_min: own.large_values_min,
            page_size: own.page_size,
            file_bytes_min: own.file_bytes_min,
            file_bytes_max: own.file_bytes_max,
            logger: own.logger,
            roots: own.roots,
            verifier: own.verifier,
            ..tuning.store
        };
        self.write_buffer_bytes = tuning.write_buffer_bytes;
        self.leaf_vectors = tuning.leaf_vectors;
        self
    }
}
