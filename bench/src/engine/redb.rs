//! Adapter for redb (MIT or Apache-2.0).
//!
//! `Synced`: `Durability::Immediate`, which is the default of redb and flushes the disk once. `Lazy` and `Unsynced`:
//! `Durability::None`, which keeps commits in memory until a durable commit.

use std::path::Path;

use ::redb::{
    Builder, Database, Durability, ReadOnlyTable, ReadableDatabase, ReadableTable,
    ReadableTableMetadata, Table, TableDefinition,
};

use super::{Digest, Engine, Promise, Read, Reading, Result, Setup, Write, Writing, touch};

const PAIRS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("pairs");

/// A redb database.
pub(crate) struct Redb {
    db: Database,
    durability: Durability,
}

impl Redb {
    pub(crate) fn open(dir: &Path, setup: &Setup) -> Result<Self> {
        let db = Builder::new()
            .set_cache_size(setup.cache_bytes as usize)
            .create(dir.join("bench.redb"))?;
        let txn = db.begin_write()?;
        txn.open_table(PAIRS)?;
        txn.commit()?;
        let durability = match setup.promise {
            Promise::Synced => Durability::Immediate,
            Promise::Lazy | Promise::Unsynced => Durability::None,
        };
        Ok(Self { db, durability })
    }
}

impl Engine for Redb {
    fn write(&self, work: Writing<'_>) -> Result<()> {
        let mut txn = self.db.begin_write()?;
        txn.set_durability(self.durability)?;
        work(&mut Writer(txn.open_table(PAIRS)?))?;
        Ok(txn.commit()?)
    }

    fn read(&self, work: Reading<'_>) -> Result<()> {
        work(&mut Reader(self.db.begin_read()?.open_table(PAIRS)?))
    }

    fn begin_read(&self) -> Result<()> {
        drop(std::hint::black_box(self.db.begin_read()?));
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        Ok(self.db.begin_write()?.commit()?)
    }

    fn compact(&mut self) -> Result<bool> {
        self.db.compact()?;
        Ok(true)
    }
}

struct Writer<'t>(Table<'t, &'static [u8], &'static [u8]>);

impl Write for Writer<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.insert(key, value)?;
        Ok(())
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<u64>> {
        Ok(self.0.get(key)?.map(|value| touch(value.value())))
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool> {
        Ok(self.0.remove(key)?.is_some())
    }
}

struct Reader(ReadOnlyTable<&'static [u8], &'static [u8]>);

impl Read for Reader {
    fn get(&mut self, key: &[u8]) -> Result<Option<u64>> {
        Ok(self.0.get(key)?.map(|value| touch(value.value())))
    }

    fn value(&mut self, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let value = self.0.get(key)?;
        Ok(value.map(|value| seen(value.value())).is_some())
    }

    fn count(&mut self) -> Result<u64> {
        Ok(self.0.len()?)
    }

    fn scan(&mut self, from: &[u8], limit: u64) -> Result<Digest> {
        let mut digest = Digest::default();
        let entries = self.0.range::<&[u8]>(from..)?;
        for entry in entries.take(usize::try_from(limit)?) {
            let (key, value) = entry?;
            digest.add(key.value(), value.value());
        }
        Ok(digest)
    }
}
