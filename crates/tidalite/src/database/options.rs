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

/// Maximum number of flush threads. More would only wait for the transaction's own thread, which installs the encoded
/// rows.
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
    /// Options of the pager, including the ones that `Tuning` sets.
    pub(crate) store: tidalite_pager::Options,
    pub(super) write_buffer_bytes: usize,
    pub(super) leaf_vectors: usize,
    pub(super) run_bytes: u64,
    pub(super) flush_threads: usize,
    pub(super) scan_threads: Option<usize>,
    /// Work that a background thread of the database repeats.
    pub(crate) background: Option<Schedule>,
}

/// The interval and the work of a background thread of the database.
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
            run_bytes,
        } = Tuning::new();
        Self {
            store: tidalite_pager::Options {
                roots: Some(Roots::pages),
                verifier: Some(verify::verifier()),
                ..store
            },
            write_buffer_bytes,
            leaf_vectors,
            run_bytes,
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

    /// Excludes every other handle: not even two readers may open the file. Required on a network file system (without
    /// this option: [`Unsupported`](crate::ErrorKind::Unsupported)): the locks of that file system, if it has any, keep
    /// other computers out.
    pub fn exclusive(mut self, exclusive: bool) -> Self {
        self.store.exclusive = exclusive;
        self
    }

    /// Opens the state of the durable commit *before* the newest one, read-only and exclusively: see
    /// [`inspect`](crate::monitor::inspect). The next normal opening finds the newest commit again. The older state is
    /// complete if writers had [`keep_older`](crate::Tuning::keep_older); otherwise pages overwritten since are
    /// reported as damage.
    pub fn older_record(mut self) -> Self {
        self.store.older_record = true;
        self.exclusive(true).read_only(true)
    }

    /// Opens the file for writing even if durable commits are missing (default: no). Without this option such a file is
    /// refused with [`CommitsLost`](crate::ErrorKind::CommitsLost), because the next durable commit overwrites the
    /// evidence. A read-only handle opens such a file in any case. [`Database::recovery`] reports the missing commits.
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

    /// With [`OpenMode::Create`] on a block device: creates the database whatever the device contains; its contents are
    /// lost. Without this option a database is created only on a device whose first and last MiB are zeros.
    pub fn overwrite_device(mut self, overwrite: bool) -> Self {
        self.store.overwrite_device = overwrite;
        self
    }

    /// Stores table values of `min` bytes and more in a second file, perhaps on another disk; the file is created if
    /// missing. The database remembers the path: give the path again only after the file was moved. Values already
    /// stored stay in place. One commit covers both files, and costs one more sync if it wrote to the second one.
    ///
    /// The first file contains everything except the values in the second file; each file is useless without the other.
    /// Backups contain both files, and compaction packs both. Copies and salvage combine both in one file; an image is
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

    /// Sets the bounds of the file's length: at least `min` bytes, free or not (default: 0), and at most `max`
    /// (default: unlimited). Growth beyond `max` fails with [`Full`](crate::ErrorKind::Full), the transaction is rolled
    /// back, and the database remains usable. Applies to this handle, not to the file; [`Database::set_file_bytes`]
    /// changes the bounds while the database is open.
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

    /// Number of threads that help a write transaction to flush many rows. They sort and encode; the transaction's own
    /// thread installs the encoded rows. If series are fed one row each in turn, the threads work while the transaction
    /// continues: the transaction waits for them, and helps, when the next rows are due, when a series whose rows they
    /// hold is read, deleted from or otherwise accessed, and at a savepoint. Otherwise the threads start when
    /// `write_buffer_bytes` are buffered, and at a commit of 1 MiB of rows and more, and have ended when that call
    /// returns. No thread outlives the transaction: dropping the transaction waits for the current piece of each.
    ///
    /// Rows held by the threads count towards `write_buffer_bytes`. In addition, up to a million encoded rows wait to
    /// be installed, and the row memory, which the database keeps for the next transaction, may reach twice
    /// `write_buffer_bytes`, because two buffers alternate.
    ///
    /// A useful number is the number of cores besides the transaction's own. The default is none: a database uses no
    /// cores that it was not given. The rows stored are the same for any number of threads; their place in the file is
    /// not. A panic of a helper thread panics the transaction's thread, and breaks the transaction.
    pub fn flush_threads(mut self, threads: usize) -> Self {
        self.flush_threads = threads.min(FLUSH_THREADS_MAX);
        self
    }

    /// Number of threads that help a query of a snapshot for many windows of a series, for windows or statistics of
    /// many series, or [in parallel](crate::Selection::in_parallel), if the query takes a millisecond or more. The
    /// threads start and end with the query. Results are equal for any number, bit by bit; queries in a write
    /// transaction use no such threads.
    ///
    /// Default: the number of cores besides the caller's, at most seven; 0 means no threads.
    pub fn scan_threads(mut self, threads: usize) -> Self {
        self.scan_threads = Some(threads.min(SCAN_THREADS_MAX));
        self
    }

    /// Sets all options that few programs need. If it is not called, the defaults of [`Tuning`] apply.
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
        self.run_bytes = tuning.run_bytes;
        self
    }
}
