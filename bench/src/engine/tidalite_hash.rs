//! Adapter for the hash tables of Tidalite, through the public API. Keys and values are plain bytes, and the index
//! holds whole keys, so that scans are possible.

use std::path::{Path, PathBuf};

use ::tidalite::hash_table::{HashTable, HashTableMut};
use ::tidalite::{Database, Durability, Options};

use super::tidalite::{LogSyncs, durability};
use super::{Digest, Engine, Read, Reading, Result, Setup, Write, Writing, touch};

/// Name of the table.
const TABLE: &str = "pairs";

/// A Tidalite database with one hash table.
pub(crate) struct Hashes {
    db: Option<Database>,
    path: PathBuf,
    durability: Durability,
    log: LogSyncs,
}

impl Hashes {
    pub(crate) fn open(dir: &Path, setup: &Setup) -> Result<Self> {
        let path = dir.join("bench.tdl");
        let db = Options::new().open(&path)?;
        if db.begin_read()?.hash_table::<[u8], [u8]>(TABLE)?.is_none() {
            let mut txn = db.begin_write()?;
            txn.hash_table::<[u8], [u8]>(TABLE)?;
            txn.commit()?;
        }
        Ok(Self {
            db: Some(db),
            path,
            durability: durability(setup.promise),
            log: LogSyncs::default(),
        })
    }

    fn db(&self) -> Result<&Database> {
        self.db
            .as_ref()
            .ok_or_else(|| "the database is closed".into())
    }
}

impl Engine for Hashes {
    fn write(&self, work: Writing<'_>) -> Result<()> {
        let mut txn = self.db()?.begin_write()?;
        work(&mut Writer(txn.hash_table(TABLE)?))?;
        txn.commit_with(self.durability)?;
        Ok(())
    }

    fn read(&self, work: Reading<'_>) -> Result<()> {
        let txn = self.db()?.begin_read()?;
        let table = txn.hash_table(TABLE)?.ok_or("the table is missing")?;
        work(&mut Reader(table))
    }

    fn begin_read(&self) -> Result<()> {
        drop(std::hint::black_box(self.db()?.begin_read()?));
        Ok(())
    }

    fn silent_syncs(&self, _: u64) -> u64 {
        self.db.as_ref().map_or(0, |db| self.log.since(db))
    }

    fn flush(&self) -> Result<()> {
        self.db()?.begin_write()?.commit()?;
        Ok(())
    }

    fn settle(&self) -> Result<()> {
        let mut txn = self.db()?.begin_write()?;
        txn.hash_table::<[u8], [u8]>(TABLE)?.compact()?;
        txn.commit_with(self.durability)?;
        Ok(())
    }

    /// Replaces the file by a compacted copy.
    fn compact(&mut self) -> Result<bool> {
        self.settle()?;
        let copy = self.path.with_extension("copy");
        self.db()?.copy().to(&copy)?;
        self.db = None;
        std::fs::rename(copy, &self.path)?;
        self.db = Some(Options::new().open(&self.path)?);
        Ok(true)
    }
}

struct Writer<'t>(HashTableMut<'t>);

impl Write for Writer<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.set(key, value)?;
        Ok(())
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<u64>> {
        Ok(self.0.get(key)?.map(|value| touch(&value)))
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool> {
        Ok(self.0.remove(key)?)
    }
}

struct Reader<'t>(HashTable<'t>);

impl Read for Reader<'_> {
    fn get(&mut self, key: &[u8]) -> Result<Option<u64>> {
        Ok(self.0.get(key)?.map(|value| touch(&value)))
    }

    fn value(&mut self, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool> {
        Ok(self.0.get(key)?.map(|value| seen(&value)).is_some())
    }

    fn values(&mut self, keys: &[&[u8]], seen: &mut dyn FnMut(usize, &[u8])) -> Result<bool> {
        for (at, value) in self.0.get_many(keys)?.iter().enumerate() {
            if let Some(value) = value {
                seen(at, value);
            }
        }
        Ok(true)
    }

    fn count(&mut self) -> Result<u64> {
        Ok(self.0.count()?)
    }

    fn scan(&mut self, from: &[u8], limit: u64) -> Result<Digest> {
        let mut digest = Digest::default();
        for item in self.0.range(from..)?.take(usize::try_from(limit)?) {
            let (key, records) = item?;
            let number = records.max().ok_or("a key without a record")?;
            let record = self.0.record(number)?.ok_or("a record is missing")?;
            digest.add(&key, &record.value.ok_or("a removed record")?);
        }
        Ok(digest)
    }
}
