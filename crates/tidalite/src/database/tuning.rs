//! Settings that few programs need. `durability.rs`, `readers.rs` and `clock.rs` add further ones.

use std::time::Duration;
use tidalite_base::limits::{LEAF_VECTORS_MAX, PAGE_SIZE_DEFAULT};
use tidalite_delta::WRITE_BUFFER_BYTES_DEFAULT;
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
    /// The fields that [`Options`](crate::Options) sets have their defaults here.
    pub(super) store: tidalite_pager::Options,
    pub(super) write_buffer_bytes: usize,
    pub(super) leaf_vectors: usize,
}

impl Default for Tuning {
    fn default() -> Self {
        Self::new()
    }
}

impl Tuning {
    /// The defaults.
    pub fn new() -> Self {
        Self {
            store: tidalite_pager::Options {
                page_size: PAGE_SIZE_DEFAULT,
                ..Default::default()
            },
            write_buffer_bytes: WRITE_BUFFER_BYTES_DEFAULT,
            leaf_vectors: LEAF_VECTORS_MAX,
        }
    }

    /// Verification of pages by their checksums.
    pub fn verify(mut self, verify: Verify) -> Self {
        self.store.verify = verify;
        self
    }

    /// The system's readahead around a page of the map that is not in memory (default: by file size).
    pub fn read_ahead(mut self, read_ahead: ReadAhead) -> Self {
        self.store.read_ahead = read_ahead;
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

    /// Keeps the state of the durable commit before the newest one complete until the next durable commit (default:
    /// no): see [`keep_older`](tidalite_pager::Options::keep_older).
    pub fn keep_older(mut self, keep_older: bool) -> Self {
        self.store.keep_older = keep_older;
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

    /// A durable commit records its time, for [`Database::txn_at`](crate::Database::txn_at), if the last record is at
    /// least this old (a minute).
    pub fn clock_step(mut self, step: Duration) -> Self {
        self.store.clock_step = step;
        self
    }
}
