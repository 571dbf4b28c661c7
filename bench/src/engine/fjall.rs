//! Adapter for fjall (MIT or Apache-2.0), a log-structured tree with a journal, in its form with single-writer
//! transactions.
//!
//! `Synced`: the journal is synced (`fdatasync`) in each commit. `Lazy`: the journal is written to the system's cache
//! in each commit. `Unsynced`: the journal stays in a buffer of the process. Compression, filters and block sizes have
//! their defaults.

use std::path::Path;

use ::fjall::{
    KeyspaceCreateOptions, PersistMode, Readable, SingleWriterTxDatabase, SingleWriterTxKeyspace,
    Snapshot,
};

use super::data::Ascending;
use super::{Digest, Engine, Promise, Read, Reading, Result, Setup, Write, Writing, touch};

/// A fjall database with one keyspace.
pub(crate) struct Fjall {
    db: SingleWriterTxDatabase,
    pairs: SingleWriterTxKeyspace,
    persist: Option<PersistMode>,
}

impl Fjall {
    pub(crate) fn open(dir: &Path, setup: &Setup) -> Result<Self> {
        let db = SingleWriterTxDatabase::builder(dir.join("fjall"))
            .cache_size(setup.cache_bytes)
            .open()?;
        let pairs = db.keyspace("pairs", KeyspaceCreateOptions::default)?;
        let persist = match setup.promise {
            Promise::Synced => Some(PersistMode::SyncData),
            Promise::Lazy => Some(PersistMode::Buffer),
            Promise::Unsynced => None,
        };
        Ok(Self { db, pairs, persist })
    }
}

impl Engine for Fjall {
    fn write(&self, work: Writing<'_>) -> Result<()> {
        let txn = self.db.write_tx().durability(self.persist);
        let mut writer = Writer {
            txn,
            pairs: &self.pairs,
        };
        work(&mut writer)?;
        Ok(writer.txn.commit()?)
    }

    fn read(&self, work: Reading<'_>) -> Result<()> {
        work(&mut Reader {
            snapshot: self.db.read_tx(),
            pairs: &self.pairs,
        })
    }

    /// Loads sorted tables directly into the database, without the journal.
    fn load(&self, pairs: Ascending<'_>) -> Result<()> {
        let mut ingestion = self.pairs.inner().start_ingestion()?;
        for (key, value) in pairs {
            ingestion.write(key.as_ref(), value)?;
        }
        Ok(ingestion.finish()?)
    }

    fn flush(&self) -> Result<()> {
        Ok(self.db.persist(PersistMode::SyncAll)?)
    }

    fn settle(&self) -> Result<()> {
        self.pairs.inner().rotate_memtable_and_wait()?;
        Ok(self.pairs.inner().major_compact()?)
    }

    fn compact(&mut self) -> Result<bool> {
        self.settle()?;
        Ok(true)
    }
}

struct Writer<'t> {
    txn: ::fjall::SingleWriterWriteTx<'t>,
    pairs: &'t SingleWriterTxKeyspace,
}

impl Write for Writer<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.txn.insert(self.pairs, key, value);
        Ok(())
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<u64>> {
        Ok(self.txn.get(self.pairs, key)?.map(|value| touch(&value)))
    }

    /// fjall removes a key by writing a tombstone, without a lookup. So this function does not look the key up either,
    /// and returns true.
    fn delete(&mut self, key: &[u8]) -> Result<bool> {
        self.txn.remove(self.pairs, key);
        Ok(true)
    }
}

struct Reader<'t> {
    snapshot: Snapshot,
    pairs: &'t SingleWriterTxKeyspace,
}

impl Read for Reader<'_> {
    fn get(&mut self, key: &[u8]) -> Result<Option<u64>> {
        Ok(self
            .snapshot
            .get(self.pairs, key)?
            .map(|value| touch(&value)))
    }

    fn value(&mut self, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let value = self.snapshot.get(self.pairs, key)?;
        Ok(value.map(|value| seen(&value)).is_some())
    }

    fn scan(&mut self, from: &[u8], limit: u64) -> Result<Digest> {
        let mut digest = Digest::default();
        let entries = self.snapshot.range(self.pairs, from..);
        for entry in entries.take(usize::try_from(limit)?) {
            let (key, value) = entry.into_inner()?;
            digest.add(&key, &value);
        }
        Ok(digest)
    }
}
