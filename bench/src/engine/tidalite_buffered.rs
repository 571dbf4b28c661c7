//! Adapter for the buffered tables of Tidalite, through the public API.

use std::path::{Path, PathBuf};

use ::tidalite::table::{BufferedTable, BufferedTableMut};
use ::tidalite::{Database, Durability, Options};

use super::tidalite::{LogSyncs, durability};
use super::{Digest, Engine, Read, Reading, Result, Setup, Write, Writing, touch};

/// Name of the table.
const TABLE: &str = "pairs";

/// A Tidalite database with one buffered table.
pub(crate) struct Buffered {
    db: Option<Database>,
    path: PathBuf,
    durability: Durability,
    log: LogSyncs,
}

impl Buffered {
    pub(crate) fn open(dir: &Path, setup: &Setup) -> Result<Self> {
        let path = dir.join("bench.tdl");
        let db = Options::new().open(&path)?;
        let mut txn = db.begin_write()?;
        txn.buffered_table::<[u8], [u8]>(TABLE)?;
        txn.commit()?;
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

impl Engine for Buffered {
    fn write(&self, work: Writing<'_>) -> Result<()> {
        let mut txn = self.db()?.begin_write()?;
        work(&mut Writer(txn.buffered_table(TABLE)?))?;
        txn.commit_with(self.durability)?;
        Ok(())
    }

    fn read(&self, work: Reading<'_>) -> Result<()> {
        let txn = self.db()?.begin_read()?;
        let table = txn.buffered_table(TABLE)?.ok_or("the table is missing")?;
        work(&mut Reader(table))
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
        txn.buffered_table::<[u8], [u8]>(TABLE)?.compact()?;
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

struct Writer<'t>(BufferedTableMut<'t>);

impl Write for Writer<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.put(key, value)?;
        Ok(())
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<u64>> {
        Ok(self.0.get(key)?.map(|value| touch(&value)))
    }

    /// A buffered table removes a key without checking whether it exists.
    fn delete(&mut self, key: &[u8]) -> Result<bool> {
        let exists = self.0.contains(key)?;
        self.0.remove(key)?;
        Ok(exists)
    }
}

struct Reader<'t>(BufferedTable<'t>);

impl Read for Reader<'_> {
    fn get(&mut self, key: &[u8]) -> Result<Option<u64>> {
        Ok(self.0.get(key)?.map(|value| touch(&value)))
    }

    fn value(&mut self, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool> {
        Ok(self.0.get(key)?.map(|value| seen(&value)).is_some())
    }

    fn count(&mut self) -> Result<u64> {
        Ok(self.0.count()?)
    }

    fn scan(&mut self, from: &[u8], limit: u64) -> Result<Digest> {
        let mut digest = Digest::default();
        self.0.each_entry(from.., |key, value| {
            let is_wanted = digest.entries < limit;
            if is_wanted {
                digest.add(key, value);
            }
            is_wanted
        })?;
        Ok(digest)
    }
}
