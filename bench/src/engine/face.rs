//! The interface of every database in the comparison: transactions of puts, gets and scans, and the durability of
//! commits.

use std::error::Error;
use std::path::Path;

use super::data::Ascending;

/// Result of every call.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Durability of commits; each engine uses the setting that provides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promise {
    /// The commit survives a power cut when it returns.
    Synced,
    /// After a power cut some of the last commits may be lost; the rest is intact. (LMDB guarantees this only on
    /// a file system that keeps the order of writes.)
    Lazy,
    /// No guarantee after a power cut; the fastest mode.
    Unsynced,
}

/// Options with which an engine opens its database.
#[derive(Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) promise: Promise,
    /// Maximum size of all keys and values in bytes, for sizing maps.
    pub(crate) data_bytes: u64,
    /// Cache size in bytes, for engines with their own cache.
    pub(crate) cache_bytes: u64,
    /// Whether reads will be random; engines that can disable kernel readahead then do so.
    pub(crate) jumping: bool,
}

impl Setup {
    /// Options for data that fits in memory and is read at random.
    pub(crate) fn new(promise: Promise, data_bytes: u64) -> Self {
        Self {
            promise,
            data_bytes,
            cache_bytes: (data_bytes * 3).clamp(64 << 20, 4 << 30),
            jumping: true,
        }
    }
}

/// Digest of the keys and values visited by a scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Digest {
    pub(crate) entries: u64,
    pub(crate) sum: u64,
}

impl Digest {
    /// Adds a key and a value.
    #[inline]
    pub(crate) fn add(&mut self, key: &[u8], value: &[u8]) {
        self.entries += 1;
        self.sum = self
            .sum
            .wrapping_add(touch(&key[key.len().saturating_sub(8)..]))
            .wrapping_add(touch(value));
    }

    /// A single number for the digest.
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

/// Bytes of pages in the newest commit, and bytes of all pages that cannot be reused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InUse {
    pub(crate) newest: u64,
    pub(crate) held: u64,
}

/// An open database; dropping it closes it.
pub(crate) trait Engine: Sync {
    /// Runs a write transaction: `work`, then the commit. Rolls back if `work` fails.
    fn write(&self, work: Writing<'_>) -> Result<()>;
    /// Runs a read transaction.
    fn read(&self, work: Reading<'_>) -> Result<()>;
    /// Begins and ends a read transaction.
    fn begin_read(&self) -> Result<()> {
        self.read(&mut |_| Ok(()))
    }
    /// Stores ascending pairs above all others in one transaction, by the engine's fastest method.
    fn load(&self, pairs: Ascending<'_>) -> Result<()> {
        self.write(&mut |txn| {
            pairs
                .clone()
                .try_for_each(|(key, value)| txn.put(key.as_ref(), value))
        })
    }
    /// Makes earlier, less durable commits durable.
    fn flush(&self) -> Result<()>;
    /// Makes the file as small as the engine can; `false` if unsupported. Engines that can only
    /// write a compacted copy replace the file with it at the next opening.
    fn compact(&mut self) -> Result<bool> {
        Ok(false)
    }
    /// Bytes of pages in use; `None` if the engine does not report them.
    fn in_use(&self) -> Result<Option<InUse>> {
        Ok(None)
    }
    /// Pages written by the last commit; `None` if the engine does not report them.
    fn pages_of_last_commit(&self) -> Option<u64> {
        None
    }
    /// Number of waits on the disk since the last call, within `commits` commits, that are not calls of `fsync` or
    /// similar functions and so are not counted otherwise.
    fn silent_syncs(&self, commits: u64) -> u64 {
        let _ = commits;
        0
    }
}

/// Work inside a write transaction.
pub(crate) type Writing<'w> = &'w mut dyn FnMut(&mut dyn Write) -> Result<()>;

/// Work inside a read transaction.
pub(crate) type Reading<'w> = &'w mut dyn FnMut(&mut dyn Read) -> Result<()>;

/// A write transaction.
pub(crate) trait Write {
    /// Stores a pair, or overwrites its value.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;
    /// The first bytes of the value as a number, as [`touch`] makes it.
    fn get(&mut self, key: &[u8]) -> Result<Option<u64>>;
    /// Removes a key; returns whether it existed.
    fn delete(&mut self, key: &[u8]) -> Result<bool>;
}

/// A snapshot.
pub(crate) trait Read {
    /// The first bytes of the value as a number, as [`touch`] makes it.
    fn get(&mut self, key: &[u8]) -> Result<Option<u64>>;
    /// Visits at most `limit` entries, starting with the first one at or after `from`.
    fn scan(&mut self, from: &[u8], limit: u64) -> Result<Digest>;
}

/// The series and the time of a key made by `data::Key::of_point`.
pub(crate) fn point_of(key: &[u8]) -> Result<(u64, i64)> {
    let (series, time) = key.split_at_checked(8).ok_or("a short key")?;
    Ok((
        u64::from_be_bytes(series.try_into()?),
        i64::from_be_bytes(time.try_into()?),
    ))
}

/// An engine that can participate.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// Whether this is Tidalite, in one of its modes.
    pub(crate) ours: bool,
    /// Opens or creates the database in a directory.
    pub(crate) open: fn(&Path, &Setup) -> Result<Box<dyn Engine>>,
}
