//! Adapter for Tidalite: an ordered table, through the public API.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use ::tidalite::{Database, Durability, Options, Table, TableMut, Tuning};

use super::data::Ascending;
use super::{Digest, Engine, InUse, Promise, Read, Reading, Result, Setup, Write, Writing, touch};

/// Name of the table.
const TABLE: &str = "pairs";

/// A Tidalite database with one table.
pub(crate) struct Tables {
    db: Option<Database>,
    path: PathBuf,
    durability: Durability,
    log: LogSyncs,
}

/// Counts the waits of small commits for the disk. These commits are written to the redo log with `RWF_DSYNC`, which
/// waits for the disk without a call of `fsync`.
#[derive(Default)]
pub(super) struct LogSyncs(AtomicU64);

impl LogSyncs {
    /// Number of waits since the last call of this function.
    pub(super) fn since(&self, db: &Database) -> u64 {
        let now = db.metrics().appends;
        now.saturating_sub(self.0.swap(now, Ordering::Relaxed))
    }
}

impl Tables {
    pub(crate) fn open(dir: &Path, setup: &Setup) -> Result<Self> {
        Self::with(dir, durability(setup.promise))
    }

    /// Opens a database whose commits have this durability.
    pub(crate) fn with(dir: &Path, durability: Durability) -> Result<Self> {
        Self::opened(dir, durability, &Options::new())
    }

    /// Like `open`, but without the redo log: every durable commit writes a meta record, with two barriers (flushes of
    /// the disk).
    pub(crate) fn without_log(dir: &Path, setup: &Setup) -> Result<Self> {
        let options = Options::new().tuning(Tuning::new().log_bytes(0));
        Self::opened(dir, durability(setup.promise), &options)
    }

    fn opened(dir: &Path, durability: Durability, options: &Options) -> Result<Self> {
        let path = dir.join("bench.tdl");
        let db = options.open(&path)?;
        let mut txn = db.begin_write()?;
        txn.table(TABLE)?;
        txn.commit()?;
        Ok(Self {
            db: Some(db),
            path,
            durability,
            log: LogSyncs::default(),
        })
    }

    fn db(&self) -> Result<&Database> {
        self.db
            .as_ref()
            .ok_or_else(|| "the database is closed".into())
    }
}

/// The durability setting of Tidalite with which commits keep this promise.
pub(crate) fn durability(promise: Promise) -> Durability {
    match promise {
        Promise::Synced => Durability::Durable,
        Promise::Lazy => Durability::Lazy,
        Promise::Unsynced => Durability::None,
    }
}

/// Like `durability`, but with one barrier (flush of the disk) instead of two.
pub(crate) fn one_flush(promise: Promise) -> Durability {
    match promise {
        Promise::Synced => Durability::OneFlush,
        other => durability(other),
    }
}

impl Engine for Tables {
    fn write(&self, work: Writing<'_>) -> Result<()> {
        let mut txn = self.db()?.begin_write()?;
        work(&mut Writer(txn.table(TABLE)?))?;
        txn.commit_with(self.durability)?;
        Ok(())
    }

    fn read(&self, work: Reading<'_>) -> Result<()> {
        let txn = self.db()?.begin_read()?;
        let table = txn.table(TABLE)?.ok_or("the table is missing")?;
        work(&mut Reader(table))
    }

    fn begin_read(&self) -> Result<()> {
        drop(std::hint::black_box(self.db()?.begin_read()?));
        Ok(())
    }

    fn silent_syncs(&self, _: u64) -> u64 {
        self.db.as_ref().map_or(0, |db| self.log.since(db))
    }

    fn load(&self, pairs: Ascending<'_>) -> Result<()> {
        let mut txn = self.db()?.begin_write()?;
        txn.table(TABLE)?.extend(pairs)?;
        txn.commit_with(self.durability)?;
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        self.db()?.begin_write()?.commit()?;
        Ok(())
    }

    fn in_use(&self) -> Result<Option<InUse>> {
        let stat = self.db()?.stat()?;
        let held = stat.pages_total - stat.pages_free;
        let bytes = |pages: u64| pages * stat.page_size as u64;
        Ok(Some(InUse {
            newest: bytes(held - stat.pages_pending),
            held: bytes(held),
        }))
    }

    /// Replaces the file by a compacted copy.
    fn compact(&mut self) -> Result<bool> {
        let copy = self.path.with_extension("copy");
        self.db()?.copy().to(&copy)?;
        self.db = None;
        std::fs::rename(copy, &self.path)?;
        self.db = Some(Options::new().open(&self.path)?);
        Ok(true)
    }
}

struct Writer<'t>(TableMut<'t>);

impl Write for Writer<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.put(key, value)?;
        Ok(())
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<u64>> {
        Ok(self.0.get(key)?.map(|value| touch(&value)))
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool> {
        Ok(self.0.remove(key)?)
    }
}

struct Reader<'t>(Table<'t>);

impl Read for Reader<'_> {
    fn get(&mut self, key: &[u8]) -> Result<Option<u64>> {
        Ok(self.0.get_ref(key)?.map(|value| touch(&value)))
    }

    fn value(&mut self, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool> {
        Ok(self.0.get_ref(key)?.map(|value| seen(&value)).is_some())
    }

    fn count(&mut self) -> Result<u64> {
        Ok(self.0.count())
    }

    fn scan(&mut self, from: &[u8], limit: u64) -> Result<Digest> {
        let mut digest = Digest::default();
        let mut cursor = self.0.cursor();
        let mut found = cursor.seek_ge(from)?;
        while found && digest.entries < limit {
            match cursor.value_ref() {
                Some(value) => digest.add(cursor.key(), value),
                None => digest.add(cursor.key(), &cursor.value()?),
            }
            found = cursor.next()?;
        }
        Ok(digest)
    }
}
