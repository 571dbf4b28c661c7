//! How a file is opened.

pub(crate) mod event;
pub(crate) mod laggard;
pub(crate) mod unrecorded;

use crate::format::ptr::Ptr;
use crate::storage::file::ReadAhead;
use crate::system::clock::ClockSource;
use event::Logger;
use laggard::{OnLaggard, OnWait};
use std::path::PathBuf;
use std::time::Duration;
use tidalite_base::limits::PAGE_SIZE_DEFAULT;
use unrecorded::Verifier;

/// How pages and blocks are checked against the checksums in the pointers to them. (The values of a series are under checksums of their
/// own, which are looked at every time, and so is what a write transaction reads of an extent.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// When a page or block is touched for the first time since the database was opened here. A page that was written through this open
    /// database counts as touched from its commit on: its checksum was computed from the very bytes that were handed over. What the medium does
    /// to a page after that is found by whoever opens the file next, and by a check.
    #[default]
    OnFirstTouch,
    /// Every time.
    Always,
    /// Not at all.
    Never,
}

/// Whether the file must, may or must not exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OpenMode {
    /// Open it, or create it.
    #[default]
    CreateOrOpen,
    /// Create it; it must not exist.
    Create,
    /// Open it; it must exist.
    Open,
}

/// Tells which pages the app area of a record points to.
pub type RootsOf = fn(app: &[u8]) -> Vec<Ptr>;

/// How a file is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether the file must, may or must not exist.
    pub mode: OpenMode,
    /// Bytes of a page, a power of two; used when the file is created.
    pub page_size: usize,
    /// Nothing is written; several processes may do so at once, while none writes.
    pub read_only: bool,
    /// Nobody else at all, not even readers beside a reader. Needed on a network file system (else `NetworkFileSystem`):
    /// its locks, where it has such, keep other computers out.
    pub exclusive: bool,
    /// Opens what the durable record *before* the newest one shows, to look at it or to copy it: the newest commit may be what one wants
    /// to be rid of. It is whole where writers had [`keep_older`](Self::keep_older); else pages of it may have been written over, which a read of them reports as
    /// damage. Only with `read_only` and `exclusive`; nothing is written, and whoever opens the file next finds the newest.
    pub older_record: bool,
    /// What the durable record before the newest one shows stays in the file until there is another one, so that
    /// [`older_record`](Self::older_record) finds it whole. Else its pages are used again as soon as the newest is on the medium: a file most of which
    /// changes with every commit is a quarter shorter.
    pub keep_older: bool,
    /// Opens the file for writing although durable commits are missing. Without it, such a file is refused with
    /// [`Error::CommitsLost`](crate::Error::CommitsLost), because the next durable commit writes over the evidence; a handle with
    /// `read_only` opens it either way. [`Pager::recovery`](crate::Pager::recovery) says what is missing.
    pub accept_lost_commits: bool,
    /// The pages that the app area points to. Opening looks at them: if a later commit has written over one, the record found is not the
    /// newest durable one.
    pub roots: Option<RootsOf>,
    /// Where the lock file is: `None` for `name.tdl-lock` beside `name.tdl`. All who open the database must say the same (else
    /// `OpenElsewhere`), and no other database may use that file. A block device needs one.
    pub lock_path: Option<PathBuf>,
    /// With [`OpenMode::Create`] on a block device: whatever it holds is lost. Without it, only a device whose first and last
    /// MiB are zeros is made a database.
    pub overwrite_device: bool,
    /// A second file, on another disk perhaps, for large values: made when it is not there, and of this database alone. `None`: the one that
    /// the database names, if it has one. Named once it is found again by itself, unless it is moved.
    pub large_values_path: Option<PathBuf>,
    /// Values of so many bytes and more go to the second file; those that are stored already stay where they are.
    pub large_values_min: u64,
    /// How pages are checked.
    pub verify: Verify,
    /// Lend pages from a read-only map. Off: every read is a `pread`, and every media error a typed error.
    pub map: bool,
    /// With `map`: pages of lazy commits, and of those that go to the log, that are written over again and again are copied into a writable map instead of being handed to the
    /// system, on file systems that write over blocks where they are (ext4, tmpfs). Off: no stray write of the program can reach the file.
    pub map_writes: bool,
    /// How much the system reads around a page of the map that is not in memory.
    pub read_ahead: ReadAhead,
    /// Single pages that became free last are taken first, not the lowest ones side by side: what is written over is then what was
    /// written a moment ago, and is in the caches of system and disk. The file is shortened later, and commits are more stretches. It is so without this
    /// after a commit that was lazy or went to the log.
    pub recent_first: bool,
    /// To find reads of what is gone: pages that become free are overwritten with a pattern, so that whoever still has a pointer to one
    /// meets a wrong checksum at once. Costs a write of everything that is freed.
    pub spoil_freed: bool,
    /// Bytes of changed pages that a transaction keeps in memory before it writes some of them early.
    pub dirty_bytes_max: usize,
    /// After a durable transaction that changed this many bytes the next one has leaves written while it is still open, and one that has this
    /// many in memory when it begins to commit has them written while the rest is sealed; by a thread, where there are two processors. 0: never.
    pub early_bytes: u64,
    /// Bytes of pages that `None` commits keep in memory, for this process to read, until a commit of another kind writes
    /// them. When there would be more the commit writes them.
    pub unwritten_bytes_max: usize,
    /// Verifies a state that only the lock file names: lazy commits of a process that is gone, whose pages need not be in the file if it was
    /// replaced, copied or cut off meanwhile. Without a verifier whoever opens the file first drops such a state and uses the newest durable commit.
    pub verifier: Option<Verifier>,
    /// Who is told when something happens to the file.
    pub logger: Option<Logger>,
    /// The logger hears of commits that take longer than this.
    pub slow_commit: Duration,
    /// Where the time of commits is read.
    pub clock: ClockSource,
    /// At least so often a durable commit notes its time, so that `txn_at` finds it.
    pub clock_step: Duration,
    /// The file grows by at least this many bytes at a time, a shorter file by its own length ...
    pub growth_bytes_min: u64,
    /// ... and at most this many more than it needs.
    pub growth_bytes_max: u64,
    /// Evictable and parked readers that are older than this lose their snapshot when the file would have to grow and
    /// they hold pages. (Whatever their age, they lose it when the disk is full.) `None`: no age is too old.
    pub evictable_age_max: Option<Duration>,
    /// A reader that holds this many bytes is a laggard: before the file grows, `on_laggard` is asked about it.
    pub laggard_bytes: u64,
    /// Is asked by the writer, inside its transaction, what to do about the reader that holds most: when the file
    /// would grow and it holds `laggard_bytes`, or when the disk is full. It must not begin a write transaction.
    pub on_laggard: Option<OnLaggard>,
    /// Is told once a second who has the write transaction that `begin_write` waits for, a frozen process perhaps.
    pub on_wait: Option<OnWait>,
    /// The file is at least this long, free or not: growth up to here is done when it is first written to.
    pub file_bytes_min: u64,
    /// The file grows no further than this: [`Error::FileFull`](crate::Error::FileFull). There is always room up to the end
    /// of what is in use.
    pub file_bytes_max: u64,
    /// When so much is free at the file's end it is cut off; when so much is free inside, stretches of 1 MiB and more are
    /// given back to the file system.
    pub shrink_bytes: u64,
    /// Written and kept free in the file for transactions that free space
    /// ([`WriteTxn::free_space`](crate::WriteTxn::free_space)), so that they work on a full disk. In a smaller file
    /// a quarter of the pages in use, at least 64 pages, or as many as there are in use and 4 if that is less.
    pub reserve_bytes: u64,
    /// Small durable commits that follow each other go to a log inside the file, which takes one barrier instead of two, and is emptied when it is
    /// full. It is made when it is of use, takes half as much as the file has, 2 MiB at least, this much at most, and an
    /// eighth of [`Options::file_bytes_max`]; 0: none.
    pub log_bytes: u64,
    /// Commits that are not durable are made so when they have written this many bytes. `None`: not by bytes.
    pub sync_bytes: Option<u64>,
    /// ... or when the oldest of them is this old; looked at when something is committed, or by the background flusher.
    pub sync_after: Option<Duration>,
    /// A thread of its own makes lazy commits durable, this long after the last time. `None`: no thread. A handle that is let go while it flushes is
    /// closed at the end of that flush: who opens the file again at once may meet it (`OpenElsewhere`, where [`exclusive`](Self::exclusive)).
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
            spoil_freed: false,
            dirty_bytes_max: 64 << 20,
            early_bytes: 8 << 20,
            unwritten_bytes_max: 128 << 20,
            verifier: None,
            logger: None,
            slow_commit: Duration::from_secs(1),
            clock: ClockSource::default(),
            clock_step: Duration::from_secs(60),
            growth_bytes_min: 1 << 20,
            growth_bytes_max: 8 << 20,
            evictable_age_max: None,
            laggard_bytes: 64 << 20,
            on_laggard: None,
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
