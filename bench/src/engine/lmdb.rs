//! Adapter for LMDB (OpenLDAP Public License), through the crate `lmdb-master-sys`.
//!
//! `Synced`: the default of LMDB, `pwrite` and `fdatasync`, then the meta page through a descriptor with `O_DSYNC`.
//! `Lazy`: `MDB_NOSYNC`. `Unsynced`: `MDB_NOSYNC` and a writable map.

use std::path::{Path, PathBuf};

use lmdb_master_sys as sys;

use super::data::Ascending;
use super::{Digest, Engine, Promise, Read, Reading, Result, Setup, Write, Writing, touch};
use crate::lmdb_engine::lmdb::{Env, Txn};

/// An LMDB environment, which is one database.
pub(crate) struct Lmdb {
    env: Env,
    dir: PathBuf,
    promise: Promise,
}

impl Lmdb {
    pub(crate) fn open(dir: &Path, setup: &Setup) -> Result<Self> {
        let compacted = dir.join("compacted");
        if compacted.exists() {
            std::fs::rename(compacted.join("data.mdb"), dir.join("data.mdb"))?;
            std::fs::remove_dir_all(compacted)?;
        }
        let flags = match setup.promise {
            Promise::Synced => 0,
            Promise::Lazy => sys::MDB_NOSYNC,
            Promise::Unsynced => sys::MDB_NOSYNC | sys::MDB_WRITEMAP,
        };
        let ahead = if setup.jumping { sys::MDB_NORDAHEAD } else { 0 };
        // The memory map has room for half-filled pages, pages that readers hold, and many transactions.
        let map_bytes = setup.data_bytes * 8 + (1 << 30);
        Ok(Self {
            env: Env::open_with(dir, map_bytes as usize, flags | ahead)?,
            dir: dir.to_owned(),
            promise: setup.promise,
        })
    }
}

impl Engine for Lmdb {
    fn write(&self, work: Writing<'_>) -> Result<()> {
        let mut writer = Writer(self.env.begin(true)?);
        work(&mut writer)?;
        Ok(writer.0.commit()?)
    }

    fn read(&self, work: Reading<'_>) -> Result<()> {
        let txn = self.env.begin(false)?;
        work(&mut Reader(&txn))
    }

    fn load(&self, pairs: Ascending<'_>) -> Result<()> {
        let mut txn = self.env.begin(true)?;
        for (key, value) in pairs {
            txn.append(key.as_ref(), value)?;
        }
        Ok(txn.commit()?)
    }

    fn flush(&self) -> Result<()> {
        Ok(self.env.sync()?)
    }

    fn compact(&mut self) -> Result<bool> {
        let to = self.dir.join("compacted");
        std::fs::create_dir(&to)?;
        self.env.copy_compacted(&to)?;
        Ok(true)
    }

    fn silent_syncs(&self, commits: u64) -> u64 {
        commits * u64::from(self.promise == Promise::Synced)
    }
}

struct Writer<'t>(Txn<'t>);

impl Write for Writer<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(self.0.put(key, value)?)
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<u64>> {
        Ok(self.0.get(key)?.map(touch))
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool> {
        Ok(self.0.remove(key)?)
    }
}

struct Reader<'t>(&'t Txn<'t>);

impl Read for Reader<'_> {
    fn get(&mut self, key: &[u8]) -> Result<Option<u64>> {
        Ok(self.0.get(key)?.map(touch))
    }

    fn value(&mut self, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool> {
        Ok(self.0.get(key)?.map(seen).is_some())
    }

    fn count(&mut self) -> Result<u64> {
        Ok(self.0.entries()?)
    }

    fn scan(&mut self, from: &[u8], limit: u64) -> Result<Digest> {
        let mut digest = Digest::default();
        let mut cursor = self.0.cursor()?;
        // LMDB does not accept an empty key, so the smallest possible key stands for "from the first key".
        let from = if from.is_empty() { &[0][..] } else { from };
        let mut entry = cursor.seek(from)?;
        while let Some((key, value)) = entry {
            if digest.entries == limit {
                break;
            }
            digest.add(key, value);
            entry = cursor.next()?;
        }
        Ok(digest)
    }
}
