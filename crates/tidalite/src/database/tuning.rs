//! Settings that few programs need. `durability.rs`, `readers.rs` and `clock.rs` add further ones.

use std::time::Duration;
use tidalite_base::limits::{LEAF_VECTORS_MAX, PAGE_SIZE_DEFAULT};
use tidalite_delta::WRITE_BUFFER_BYTES_DEFAULT;
use tidalite_index::RUN_BYTES_DEFAULT;
use tidalite_pager::{ReadAhead, Verify};

/// Settings for [`Options::tuning`](crate::Options::tuning): memory, growth of the file, ways of reading and writing,
/// lazy commits, long-lived readers. The defaults suit most programs. All of them belong to the handle: none is stored
/// in the file.
///
/// ```
/// # use std::sync::Arc;
/// use tidalite::{Options, Tuning, storage::MemoryStorage};
/// let little_memory = Tuning::new().write_buffer_bytes(8 << 20).dirty_bytes(4 << 20);
/// let db = Options::new().tuning(little_memory).open_storage(Arc::new(MemoryStorage::new()))?;
/// # Ok::<(), tidalite::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Tuning {
    /// Options of the pager. If [`Options`](crate::Options) sets an option itself, the option keeps its default value
    /// here.
    pub(super) store: tidalite_pager::Options,
    pub(super) write_buffer_bytes: usize,
    pub(super) leaf_vectors: usize,
    pub(super) run_bytes: u64,
}

impl Default for Tuning {
    fn default() -> Self {
        Self::new()
    }
}

impl Tuning {
    /// Creates the default settings.
    pub fn new() -> Self {
        Self {
            store: tidalite_pager::Options {
                page_size: PAGE_SIZE_DEFAULT,
                ..Default::default()
            },
            write_buffer_bytes: WRITE_BUFFER_BYTES_DEFAULT,
            leaf_vectors: LEAF_VECTORS_MAX,
            run_bytes: RUN_BYTES_DEFAULT,
        }
    }

    /// Sets when pages are verified by their checksums.
    pub fn verify(mut self, verify: Verify) -> Self {
        self.store.verify = verify;
        self
    }

    /// Sets the operating system's readahead around a page of the memory map that is not in memory (default: by file
    /// size).
    pub fn read_ahead(mut self, read_ahead: ReadAhead) -> Self {
        self.store.read_ahead = read_ahead;
        self
    }

    /// If true (the default), reads borrow pages from a read-only memory map. If false, every page is read with
    /// `pread`, which is slower, but makes every media error a typed error instead of a signal.
    pub fn map(mut self, map: bool) -> Self {
        self.store.map = map;
        self
    }

    /// If true (the default), frequently overwritten pages of lazy commits, and of small durable ones that go to the
    /// log, are copied into a writable memory map of the file; if false, every page is passed to the system. The map
    /// saves a third of a lazy commit's time; but a stray write of this program, in `unsafe` code or in C, can then
    /// reach the file, as in LMDB with `MDB_WRITEMAP`. Checksums detect such a write. The writable map is used only
    /// with `map`, only on file systems that overwrite blocks in place (ext4, tmpfs), and not for larger durable
    /// commits. A file system that fails as a whole (is made read-only after a disk error) then raises a signal, as it
    /// may for reads.
    pub fn map_writes(mut self, map_writes: bool) -> Self {
        self.store.map_writes = map_writes;
        self
    }

    /// Maximum length in bytes of the redo log inside the file (default: 4 MiB; 0: no log). Consecutive small durable
    /// commits go to this log: each costs one barrier instead of two, and a block or two instead of all pages that it
    /// changes. The log is created when useful. It takes half the size of the file, at least 2 MiB, at most this
    /// maximum and at most an eighth of the file's maximum length. It is emptied when full, at an opening after a
    /// crash, and at [`Database::close`](crate::Database::close), which returns the pages of the log if they are a
    /// large part of a small file.
    pub fn log_bytes(mut self, most: u64) -> Self {
        self.store.log_bytes = most;
        self
    }

    /// The file grows by at least `min` bytes at a time (default: 1 MiB), a shorter file by its own length, and by at
    /// most `max` bytes more than a transaction needs (default: 8 MiB). Like all options about the file's length, this
    /// applies to this handle: it is not stored in the file, and each writing process sets its own.
    pub fn growth_bytes(mut self, min: u64, max: u64) -> Self {
        self.store.growth_bytes_min = min;
        self.store.growth_bytes_max = max;
        self
    }

    /// The file is truncated when this many bytes are free at its end (default: 16 MiB). When this many are free
    /// inside, contiguous free ranges of 1 MiB and more are returned to the file system. Commits do both as soon as no
    /// snapshot needs the space. Applies to this handle, not to the file.
    pub fn shrink_bytes(mut self, bytes: u64) -> Self {
        self.store.shrink_bytes = bytes;
        self
    }

    /// Free bytes that stay allocated in the file for transactions that delete, so that deletions work on a full disk
    /// (1 MiB; in smaller files a quarter of the pages in use, at least 64 pages, or the pages in use and 4 more if
    /// that is less).
    pub fn reserve_bytes(mut self, bytes: u64) -> Self {
        self.store.reserve_bytes = bytes;
        self
    }

    /// Bytes of changed pages that a write transaction holds in memory before it writes some of them early (default: 64
    /// MiB).
    pub fn dirty_bytes(mut self, bytes: usize) -> Self {
        self.store.dirty_bytes_max = bytes;
        self
    }

    /// Bytes that a durable transaction must change so that the next transaction writes pages of tables while it is
    /// still open, which keeps the disk busy meanwhile (default: 8 MiB; 0: never). A transaction that changes this much
    /// also writes pages early during its commit. With two or more processors a thread does this, for the duration of
    /// the transaction.
    pub fn write_behind_bytes(mut self, bytes: u64) -> Self {
        self.store.write_behind_bytes = bytes;
        self
    }

    /// Bytes of pages that commits of [`Durability::None`](crate::Durability::None) keep in memory until a commit of
    /// another kind or [`Database::sync`](crate::Database::sync) writes them (default: 128 MiB). Pages changed again
    /// before that are written once; a commit beyond the bound writes them. With 0 every such commit writes
    /// immediately.
    pub fn unwritten_bytes(mut self, bytes: usize) -> Self {
        self.store.unwritten_bytes_max = bytes;
        self
    }

    /// Size of a write transaction's write buffer, in bytes of rows; a full buffer is flushed in whole vectors
    /// (default: 256 MiB).
    pub fn write_buffer_bytes(mut self, bytes: usize) -> Self {
        self.write_buffer_bytes = bytes;
        self
    }

    /// Maximum number of vectors of 1024 rows in a leaf of a series, between 1 and 16 (the default). Large leaves need
    /// fewer bytes per row and are faster to search; with small leaves a late or deleted row rewrites less. Existing
    /// leaves do not change.
    pub fn leaf_vectors(mut self, vectors: usize) -> Self {
        self.leaf_vectors = vectors.clamp(1, LEAF_VECTORS_MAX);
        self
    }

    /// Bytes of the runs of a hash table or a buffered table from which they are merged, into the main table of its
    /// index or into its rows (default: 1 MiB; more once these are larger than four times that). Two other limits
    /// follow from it: a step of a merge takes one entry for 256 of these bytes, at least 16 and at most 65,536, and a
    /// hash table removes dead records by itself when there is one for 16 of these bytes, at least 16. So with a small
    /// number, tests meet merges and compaction in small tables, and with `u64::MAX` tables are merged and compacted
    /// only on demand.
    pub fn run_bytes(mut self, bytes: u64) -> Self {
        self.run_bytes = bytes;
        self
    }

    /// Keeps the state of the durable commit before the newest one complete until the next durable commit (default:
    /// no), so that [`Options::older_record`](crate::Options::older_record) can open it.
    pub fn keep_older(mut self, keep_older: bool) -> Self {
        self.store.keep_older = keep_older;
        self
    }

    /// Allocates the pages that became free last, instead of the lowest adjacent ones (default: no). They are probably
    /// still in the caches of system and disk, but the file is shortened later.
    pub fn recent_first(mut self, recent_first: bool) -> Self {
        self.store.recent_first = recent_first;
        self
    }

    /// Overwrites freed pages with a pattern (default: no), so that a stale pointer is detected at once.
    pub fn poison_freed(mut self, poison_freed: bool) -> Self {
        self.store.poison_freed = poison_freed;
        self
    }

    /// Minimum interval between two recorded commit times (default: a minute): a durable commit records its time for
    /// [`Database::txn_at`](crate::Database::txn_at) if the last record is at least this old.
    pub fn clock_step(mut self, step: Duration) -> Self {
        self.store.clock_step = step;
        self
    }
}
