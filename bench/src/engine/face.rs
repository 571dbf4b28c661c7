//! What every database of the comparison can do: transactions of puts, gets and scans, and what a commit promises.

use std::error::Error;
use std::path::Path;

use super::data::Ascending;

/// What every call gives.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// What a commit promises, and the setting of each engine that promises it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promise {
    /// The commit survives a power cut when it returns.
    Synced,
    /// After a power cut some last commits may be gone; what is left is whole. (LMDB promises that only on
    /// a file system that keeps the order of writes.)
    Lazy,
    /// After a power cut nothing is promised; the fastest mode there is.
    Unsynced,
}

/// How a database is opened.
#[derive(Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) promise: Promise,
    /// Bytes of keys and values that will be in it at most: sizes maps.
    pub(crate) data_bytes: u64,
    /// Bytes of a cache of its own, for those who keep one.
    pub(crate) cache_bytes: u64,
    /// Reads will jump: those who can tell the kernel not to read ahead do.
    pub(crate) jumping: bool,
}

impl Setup {
    /// All in memory, at random.
    pub(crate) fn new(promise: Promise, data_bytes: u64) -> Self {
        Self {
            promise,
            data_bytes,
            cache_bytes: (data_bytes * 3).clamp(64 << 20, 4 << 30),
            jumping: true,
        }
    }
}

/// The keys and values that a scan went through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Digest {
    pub(crate) entries: u64,
    pub(crate) sum: u64,
}

impl Digest {
    /// Touches both.
    #[inline]
    pub(crate) fn add(&mut self, key: &[u8], value: &[u8]) {
        self.entries += 1;
        self.sum = self
            .sum
            .wrapping_add(touch(&key[key.len().saturating_sub(8)..]))
            .wrapping_add(touch(value));
    }

    /// One number for all of it.
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

/// Bytes of the pages that the newest commit shows, and of all that cannot be used anew.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InUse {
    pub(crate) newest: u64,
    pub(crate) held: u64,
}

/// An open database; dropping it closes it.
pub(crate) trait Engine: Sync {
    /// One write transaction: `work`, then the commit. Rolled back when `work` fails.
    fn write(&self, work: Writing<'_>) -> Result<()>;
    /// One read transaction.
    fn read(&self, work: Reading<'_>) -> Result<()>;
    /// Begins a read transaction and ends it.
    fn begin_read(&self) -> Result<()> {
        self.read(&mut |_| Ok(()))
    }
    /// Stores ascending pairs above all others in one transaction, by the engine's own way for that.
    fn load(&self, pairs: Ascending<'_>) -> Result<()> {
        self.write(&mut |txn| {
            pairs
                .clone()
                .try_for_each(|(key, value)| txn.put(key.as_ref(), value))
        })
    }
    /// Makes durable what was promised less.
    fn flush(&self) -> Result<()>;
    /// Makes the file as small as the engine can; `false` when it has no means to. Those that can only
    /// write a compacted copy put it in place of the file at the next opening.
    fn compact(&mut self) -> Result<bool> {
        Ok(false)
    }
    /// Bytes of pages in use; `None` where the engine does not tell.
    fn in_use(&self) -> Result<Option<InUse>> {
        Ok(None)
    }
    /// Pages that the last commit wrote; `None` where the engine does not tell.
    fn pages_of_last_commit(&self) -> Option<u64> {
        None
    }
    /// Waits on the disk since this was asked last, in so many commits, that no call of `fsync` and its like shows.
    fn silent_syncs(&self, commits: u64) -> u64 {
        let _ = commits;
        0
    }
}

/// What is done inside a write transaction.
pub(crate) type Writing<'w> = &'w mut dyn FnMut(&mut dyn Write) -> Result<()>;

/// What is done inside a read transaction.
pub(crate) type Reading<'w> = &'w mut dyn FnMut(&mut dyn Read) -> Result<()>;

/// A write transaction.
pub(crate) trait Write {
    /// Stores a pair, new or over the old value.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;
    /// The first bytes of the value as a number, as [`touch`] makes it.
    fn get(&mut self, key: &[u8]) -> Result<Option<u64>>;
    /// Removes a key; whether it was there.
    fn delete(&mut self, key: &[u8]) -> Result<bool>;
}

/// A snapshot.
pub(crate) trait Read {
    /// The first bytes of the value as a number, as [`touch`] makes it.
    fn get(&mut self, key: &[u8]) -> Result<Option<u64>>;
    /// Goes through at most `limit` entries from the first one at or after `from` on.
    fn scan(&mut self, from: &[u8], limit: u64) -> Result<Digest>;
}

/// The series and the time of a key that `data::Key::of_point` made.
pub(crate) fn point_of(key: &[u8]) -> Result<(u64, i64)> {
    let (series, time) = key.split_at_checked(8).ok_or("a short key")?;
    Ok((
        u64::from_be_bytes(series.try_into()?),
        i64::from_be_bytes(time.try_into()?),
    ))
}

/// An engine that can take part.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// Ours, in one of its modes.
    pub(crate) ours: bool,
    /// Opens or creates the database in a directory.
    pub(crate) open: fn(&Path, &Setup) -> Result<Box<dyn Engine>>,
}
