//! The common interface of all databases in the comparison: transactions of puts, gets and scans, and the durability of
//! commits.

use std::error::Error;
use std::path::Path;

use super::data::Ascending;

/// Result of every call of an engine.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// The durability of commits; each engine uses the setting that provides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promise {
    /// When the commit returns, it survives a power cut.
    Synced,
    /// After a power cut some of the last commits may be lost, but the database is intact. (LMDB guarantees this only
    /// on a file system that keeps the order of writes.)
    Lazy,
    /// There is no guarantee after a power cut; this is the fastest mode.
    Unsynced,
}

/// Options with which an engine opens its database.
#[derive(Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) promise: Promise,
    /// Maximum length in bytes of all keys and values together, for the size of memory maps.
    pub(crate) data_bytes: u64,
    /// Size of the cache in bytes, for engines that have their own cache.
    pub(crate) cache_bytes: u64,
    /// True if reads will be at random places; engines that can disable kernel readahead then do so.
    pub(crate) jumping: bool,
}

impl Setup {
    /// Options for data that fits in memory and is read at random places.
    pub(crate) fn new(promise: Promise, data_bytes: u64) -> Self {
        Self {
            promise,
            data_bytes,
            cache_bytes: (data_bytes * 3).clamp(64 << 20, 4 << 30),
            jumping: true,
        }
    }
}

/// Digest of the keys and values that a scan has visited, to compare answers of engines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Digest {
    pub(crate) entries: u64,
    pub(crate) sum: u64,
}

impl Digest {
    /// Adds a key and its value to the digest.
    #[inline]
    pub(crate) fn add(&mut self, key: &[u8], value: &[u8]) {
        self.entries += 1;
        self.sum = self
            .sum
            .wrapping_add(touch(&key[key.len().saturating_sub(8)..]))
            .wrapping_add(touch(value));
    }

    /// Reduces the digest to a single number.
    pub(crate) fn answer(self) -> u64 {
        self.sum.wrapping_add(self.entries)
    }
}

/// The first eight bytes as a number.
#[inline]
pub(crate) fn touch(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<8>() {
        Some(chunk) => u64::from_le_bytes(*chunk),
        None => bytes.len() as u64,
    }
}

/// Number of bytes of the pages in the newest commit, and of all pages that cannot be reused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InUse {
    pub(crate) newest: u64,
    pub(crate) held: u64,
}

/// An open database of an engine; dropping it closes the database.
pub(crate) trait Engine: Sync {
    /// Runs a write transaction: `work`, then the commit. Rolls back if `work` fails.
    fn write(&self, work: Writing<'_>) -> Result<()>;
    /// Runs a read transaction.
    fn read(&self, work: Reading<'_>) -> Result<()>;
    /// Begins and ends a read transaction.
    fn begin_read(&self) -> Result<()> {
        self.read(&mut |_| Ok(()))
    }
    /// Stores pairs with ascending keys, above all existing keys, in one transaction, by the engine's fastest method.
    fn load(&self, pairs: Ascending<'_>) -> Result<()> {
        self.write(&mut |txn| {
            pairs
                .clone()
                .try_for_each(|(key, value)| txn.put(key.as_ref(), value))
        })
    }
    /// Makes earlier commits of lower durability durable.
    fn flush(&self) -> Result<()>;
    /// Makes the file as small as the engine can; returns `false` if the engine cannot. Engines that can only write a
    /// compacted copy replace the file with that copy at the next opening.
    fn compact(&mut self) -> Result<bool> {
        Ok(false)
    }
    /// Finishes the merging that an engine otherwise leaves to its background threads or to later writes. Engines that
    /// merge nothing do nothing.
    fn settle(&self) -> Result<()> {
        Ok(())
    }
    /// Number of bytes of pages in use; `None` if the engine does not report it.
    fn in_use(&self) -> Result<Option<InUse>> {
        Ok(None)
    }
    /// Number of pages that the last commit has written; `None` if the engine does not report it.
    fn pages_of_last_commit(&self) -> Option<u64> {
        None
    }
    /// Number of waits for the disk since the last call of this function, within `commits` commits, that are not calls
    /// of `fsync` or similar functions and therefore are not counted otherwise.
    fn silent_syncs(&self, commits: u64) -> u64 {
        let _ = commits;
        0
    }
}

/// Function that is called inside a write transaction.
pub(crate) type Writing<'w> = &'w mut dyn FnMut(&mut dyn Write) -> Result<()>;

/// Function that is called inside a read transaction.
pub(crate) type Reading<'w> = &'w mut dyn FnMut(&mut dyn Read) -> Result<()>;

/// A write transaction of an engine.
pub(crate) trait Write {
    /// Stores a pair, or overwrites its value.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;
    /// The first bytes of the value as a number, as [`touch`] computes it; `None` if the key does not exist.
    fn get(&mut self, key: &[u8]) -> Result<Option<u64>>;
    /// Removes a key; returns true if it existed.
    fn delete(&mut self, key: &[u8]) -> Result<bool>;
}

/// A snapshot of an engine's database.
pub(crate) trait Read {
    /// The first bytes of the value as a number, as [`touch`] computes it; `None` if the key does not exist.
    fn get(&mut self, key: &[u8]) -> Result<Option<u64>>;
    /// Passes the whole value of a key to `seen`; returns false if the key does not exist.
    fn value(&mut self, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool>;
    /// Gets many keys with a single call of the engine, and passes each value to `seen` with the index of its key.
    /// Returns false, and gets nothing, if the engine has no such call.
    fn values(&mut self, keys: &[&[u8]], seen: &mut dyn FnMut(usize, &[u8])) -> Result<bool> {
        let _ = (keys, seen);
        Ok(false)
    }
    /// Number of keys, by the engine's fastest exact method: a scan if it has none.
    fn count(&mut self) -> Result<u64> {
        Ok(self.scan(&[], u64::MAX >> 1)?.entries)
    }
    /// Visits at most `limit` entries, starting with the first entry at or after `from`.
    fn scan(&mut self, from: &[u8], limit: u64) -> Result<Digest>;
}

/// The series and the time in a key that was created by `data::Key::of_point`.
pub(crate) fn point_of(key: &[u8]) -> Result<(u64, i64)> {
    let (series, time) = key.split_at_checked(8).ok_or("a short key")?;
    Ok((
        u64::from_be_bytes(series.try_into()?),
        i64::from_be_bytes(time.try_into()?),
    ))
}

/// An engine that can take part in a contest.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// True if the engine is Tidalite, in one of its modes.
    pub(crate) ours: bool,
    /// Function that opens or creates the database in a directory.
    pub(crate) open: fn(&Path, &Setup) -> Result<Box<dyn Engine>>,
}
