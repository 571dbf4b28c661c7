//! Options for opening a file.

pub(crate) mod event;
pub(crate) mod long_reader;
pub(crate) mod unrecorded;

use crate::format::ptr::Ptr;
use event::Logger;
use long_reader::{OnLongReader, OnWait};
use std::path::PathBuf;
use std::time::Duration;
use tidalite_base::limits::PAGE_SIZE_DEFAULT;
use tidalite_disk::storage::ReadAhead;
use tidalite_disk::system::ClockSource;
use unrecorded::Verifier;

/// Determines when pages and blocks are verified against the checksums in the pointers to them. (The values of a
/// series have checksums of their own, which are verified on every read, as are the extents that a write transaction
/// reads.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// Pages and blocks are verified on the first access through this handle. A page written through this handle
    /// counts as verified from its commit on, because its checksum was computed from the bytes that were passed to
    /// the system. Later damage on the medium is found by the next open, and by a check.
    #[default]
    OnFirstTouch,
    /// Pages and blocks are verified on every access.
    Always,
    /// Pages and blocks are never verified.
    Never,
}

/// Determines whether the file must, may or must not exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OpenMode {
    /// The file is opened, or created if it does not exist.
    #[default]
    CreateOrOpen,
    /// The file is created. Opening fails if it exists.
    Create,
    /// The file is opened. Opening fails if it does not exist.
    Open,
}

/// Function that returns pointers to the pages to which the app area of a meta record points.
pub type RootsOf = fn(app: &[u8]) -> Vec<Ptr>;

/// Options for opening a file.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether the file must, may or must not exist.
    pub mode: OpenMode,
    /// Page size in bytes, a power of two; used when the file is created.
    pub page_size: usize,
    /// Opens the file without writing to it. To share the file with a writer, this requires write permission on the
    /// lock file, where readers are registered. Readers without that permission can share the file only among
    /// themselves.
    pub read_only: bool,
    /// Excludes every other handle, including readers. Required on a network file system; without this option,
    /// opening fails there with `NetworkFileSystem`. If the network file system has locks, they keep handles of other
    /// computers out.
    pub exclusive: bool,
    /// Opens the database at the durable meta record *before* the newest one, to inspect or copy it when the newest
    /// commit is unwanted. All its pages are intact if writers had set [`keep_older`](Self::keep_older); otherwise
    /// some of them may have been overwritten, and reading such a page reports damage. Requires `read_only` and
    /// `exclusive`. The file is not written, and the next open uses the newest meta record.
    pub older_record: bool,
    /// Keeps all pages of the durable meta record before the newest one until the next meta record is written, so
    /// that [`older_record`](Self::older_record) finds them intact. Without this option, these pages are reused as
    /// soon as the newest meta record is on the medium, and a file that mostly changes with every commit is a quarter
    /// shorter.
    pub keep_older: bool,
    /// Opens the file for writing although durable commits are missing. Without this option, opening such a file
    /// fails with [`Error::CommitsLost`](crate::Error::CommitsLost), because the next durable commit would overwrite
    /// the evidence; a handle with `read_only` opens it either way. [`Pager::recovery`](crate::Pager::recovery)
    /// reports the missing commits.
    pub accept_lost_commits: bool,
    /// Function that returns pointers to the pages to which the app area points. Opening inspects these pages: if a
    /// later commit has overwritten one of them, the meta record that was found is not the newest durable one.
    pub roots: Option<RootsOf>,
    /// Path of the lock file; `None` means `name.tdl-lock` beside `name.tdl`. All handles of the database must use
    /// the same path (otherwise opening fails with `OpenElsewhere`), and no other database may use the lock file. The
    /// path is required for a block device.
    pub lock_path: Option<PathBuf>,
    /// With [`OpenMode::Create`] on a block device, discards the contents of the device. Without this option, a
    /// database is created only on a device whose first and last MiB are zeros.
    pub overwrite_device: bool,
    /// Path of a second file for large values, possibly on another disk. The file is created if it is missing and
    /// belongs to this database alone. `None` means the second file whose name the database has stored, if any: after
    /// the first use of this option, the second file is found without the option, unless the file is moved.
    pub large_values_path: Option<PathBuf>,
    /// Minimum length in bytes of values that are stored in the second file. Values that are already stored are not
    /// moved.
    pub large_values_min: u64,
    /// Determines when pages are verified.
    pub verify: Verify,
    /// Maps the file read-only into memory and borrows pages from the map. Without the map, every read is a `pread`,
    /// and an error of the medium is a typed error instead of a signal.
    pub map: bool,
    /// With `map`, copies pages of lazy or logged commits that are overwritten repeatedly into a writable map instead
    /// of writing them by system calls. Has an effect only on file systems that overwrite blocks in place (ext4,
    /// tmpfs). If this option is off, no stray write of the program can reach the file.
    pub map_writes: bool,
    /// Readahead mode: how much the system reads around a mapped page that is not in memory.
    pub read_ahead: ReadAhead,
    /// Allocates the most recently freed single pages first instead of the lowest contiguous ones. Such pages were
    /// written recently and are still in the caches of system and disk. The disadvantages are that the file is
    /// shortened later, and that a commit writes more separate ranges. After a commit that was lazy or went to the
    /// redo log, such pages are always allocated first.
    pub recent_first: bool,
    /// Detects reads of freed pages: overwrites freed pages with a pattern, so that the checksum of a page that is
    /// read by an old pointer does not match. Costs a write of every freed page.
    pub poison_freed: bool,
    /// Size in bytes of the dirty pages that a transaction keeps in memory before it writes some of them early.
    pub dirty_bytes_max: usize,
    /// Threshold for writing leaves early, in bytes; 0 turns early writing off. After a durable transaction that
    /// changed this many bytes, the leaves of the next transaction are written while that transaction is still open.
    /// If a transaction has this many bytes in memory at the start of its commit, its leaves are written while the
    /// other pages are sealed. A background thread writes the leaves if there are two processors.
    pub write_behind_bytes: u64,
    /// Maximum size in bytes of the pages that commits with [`Durability::None`](crate::Durability::None) keep in
    /// memory, readable by this process, until a commit of another durability writes them. A commit that would exceed
    /// this maximum writes the pages.
    pub unwritten_bytes_max: usize,
    /// Verifies a lazy commit of a dead process that only the lock file names. Its pages may be missing if the data
    /// file was replaced, copied or truncated since. Without a verifier, the first handle that opens the file drops
    /// such a commit and uses the newest durable commit.
    pub verifier: Option<Verifier>,
    /// Callback that receives the events of the file, for logging.
    pub logger: Option<Logger>,
    /// Commits that take longer than this are reported to the logger.
    pub slow_commit: Duration,
    /// Clocks that determine the times of commits.
    pub clock: ClockSource,
    /// Minimum age of the last recorded commit time for a durable commit to record its own time, which `txn_at`
    /// reads.
    pub clock_step: Duration,
    /// Minimum number of bytes by which the file grows at once. A file shorter than this number grows by its own
    /// length.
    pub growth_bytes_min: u64,
    /// Maximum number of bytes by which the file grows at once beyond the space that is needed.
    pub growth_bytes_max: u64,
    /// Maximum age of evictable and parked readers that retain pages. Older readers are evicted when the file would
    /// otherwise have to grow. (When the disk is full, evictable and parked readers are evicted at any age.) `None`
    /// means no limit.
    pub evictable_age_max: Option<Duration>,
    /// A reader that retains at least this many bytes is a long-lived reader: `on_long_reader` is called before the
    /// file grows.
    pub long_reader_bytes: u64,
    /// Callback that decides about the reader that retains most. The writer calls the callback inside its transaction
    /// when the file would have to grow and the reader retains `long_reader_bytes`, or when the disk is full. The
    /// callback must not begin a write transaction.
    pub on_long_reader: Option<OnLongReader>,
    /// Callback that is called once a second while `begin_write` waits for the writer lock. The callback gets a
    /// description of the process that has the lock, which may be suspended.
    pub on_wait: Option<OnWait>,
    /// Minimum length of the file in bytes, even if part of the file is free. The first write grows the file to this
    /// length.
    pub file_bytes_min: u64,
    /// Maximum length of the file in bytes; a write that needs more fails with
    /// [`Error::FileFull`](crate::Error::FileFull). Space before the end of the pages in use can always be used, even
    /// if the file is already longer than this maximum.
    pub file_bytes_max: u64,
    /// If at least this many bytes at the end of the file are free, the file is truncated; if at least this many
    /// bytes inside the file are free, free ranges of 1 MiB and more are returned to the file system.
    pub shrink_bytes: u64,
    /// Maximum size in bytes of the reserve: space that is allocated and kept free in the file for transactions that
    /// free space ([`WriteTxn::free_space`](crate::WriteTxn::free_space)), so that they work on a full disk. In a
    /// small file the reserve is a quarter of the pages in use, but at least 64 pages, or the number of pages in use
    /// plus 4 if that is less.
    pub reserve_bytes: u64,
    /// Maximum length in bytes of the redo log inside the file; 0 means no redo log. Consecutive small durable
    /// commits go to the redo log. This takes one sync instead of two. The redo log is emptied when it is full. It is
    /// created once there were several such commits in a row. Its length is half the file length, at least 2 MiB, and
    /// at most this many bytes and an eighth of [`Options::file_bytes_max`].
    pub log_bytes: u64,
    /// Makes non-durable commits durable once they have written this many bytes. `None` means no limit by bytes.
    pub sync_bytes: Option<u64>,
    /// Makes non-durable commits durable once the oldest of them has this age, which is checked at each commit, or by
    /// the background flusher. `None` means no limit by age.
    pub sync_after: Option<Duration>,
    /// Interval at which a background thread makes lazy commits durable. `None` means that no such thread is started.
    /// If a handle is dropped during such a flush, the file is closed when the flush ends. An
    /// [`exclusive`](Self::exclusive) open right after the drop may therefore fail with `OpenElsewhere`.
    pub background_flush: Option<Duration>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mode: OpenMode::default(),
            page_size: PAGE_SIZE_DEFAULT,
            read_only: false,
            exclusive: false,
            older_record: false,
            keep_older: false,
            accept_lost_commits: false,
            roots: None,
            lock_path: None,
            overwrite_device: false,
            large_values_path: None,
            large_values_min: 64 << 10,
            verify: Verify::default(),
            map: true,
            map_writes: true,
            read_ahead: ReadAhead::default(),
            recent_first: false,
            poison_freed: false,
            dirty_bytes_max: 64 << 20,
            write_behind_bytes: 8 << 20,
            unwritten_bytes_max: 128 << 20,
            verifier: None,
            logger: None,
            slow_commit: Duration::from_secs(1),
            clock: ClockSource::default(),
            clock_step: Duration::from_secs(60),
            growth_bytes_min: 1 << 20,
            growth_bytes_max: 8 << 20,
            evictable_age_max: None,
            long_reader_bytes: 64 << 20,
            on_long_reader: None,
            on_wait: None,
            file_bytes_min: 0,
            file_bytes_max: u64::MAX,
            shrink_bytes: 16 << 20,
            reserve_bytes: 1 << 20,
            log_bytes: 4 << 20,
            sync_bytes: None,
            sync_after: None,
            background_flush: None,
        }
    }
}
