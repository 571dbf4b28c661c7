//! Databases with one table that has a set of values under each key, with a common interface of their own. Keys and
//! values have eight bytes.
//!
//! LMDB and libmdbx use values of fixed length (`DUPFIXED`); redb uses its multimap.

use std::path::{Path, PathBuf};

use ::redb::{MultimapTableDefinition, ReadableDatabase};
use ::tidalite::{Database, Durability};
use lmdb_master_sys as sys;

pub(crate) use super::sets_face::{Pairs, ReadSets, ReadingSets, Sets, Word};
use super::{Digest, Kind, Result, Setup, mdbx};
use crate::lmdb_engine::lmdb::Env;

/// Opens or creates the database of an engine; `None` if the engine has no sets of values, or not in this mode.
pub(crate) fn open(kind: Kind, dir: &Path, setup: &Setup) -> Result<Option<Box<dyn Sets>>> {
    Ok(Some(match kind.name {
        "tidalite" => Box::new(Ours::open(dir)?),
        "lmdb" => Box::new(Lmdb::open(dir, setup)?),
        "libmdbx" => Box::new(mdbx::Sets::open(dir, setup)?),
        "redb" => Box::new(Redb::open(dir, setup)?),
        _ => return Ok(None),
    }))
}

const TABLE: &str = "sets";

struct Ours(Database);

impl Ours {
    fn open(dir: &Path) -> Result<Self> {
        let path: PathBuf = dir.join("bench.tdl");
        let db = ::tidalite::Options::new().open(path)?;
        let mut txn = db.begin_write()?;
        txn.set_table(TABLE)?;
        txn.commit()?;
        Ok(Self(db))
    }
}

impl Sets for Ours {
    fn load(&self, pairs: Pairs<'_>) -> Result<()> {
        let mut txn = self.0.begin_write()?;
        txn.set_table(TABLE)?.extend(pairs)?;
        txn.commit_with(Durability::Durable)?;
        Ok(())
    }

    fn put(&self, pairs: Pairs<'_>) -> Result<()> {
        let mut txn = self.0.begin_write()?;
        let mut table = txn.set_table(TABLE)?;
        for (key, value) in pairs {
            table.put(&key, &value)?;
        }
        txn.commit_with(Durability::Durable)?;
        Ok(())
    }

    fn read(&self, work: ReadingSets<'_>) -> Result<()> {
        let txn = self.0.begin_read()?;
        let mut table = txn.set_table(TABLE)?.ok_or("the table is missing")?;
        work(&mut table)
    }
}

impl ReadSets for ::tidalite::SetTable<'_> {
    fn scan(&mut self) -> Result<Digest> {
        let mut digest = Digest::default();
        self.for_each(|key, value| digest.add(key, value))?;
        Ok(digest)
    }

    fn values(&mut self, key: &Word) -> Result<Digest> {
        let mut digest = Digest::default();
        self.for_each_value(key, |value| digest.add(key, value))?;
        Ok(digest)
    }
}

struct Lmdb(Env);

impl Lmdb {
    fn open(dir: &Path, setup: &Setup) -> Result<Self> {
        let map_bytes = setup.data_bytes * 8 + (1 << 30);
        let env = Env::open_sets(dir, map_bytes as usize, sys::MDB_NORDAHEAD)?;
        Ok(Self(env))
    }
}

impl Sets for Lmdb {
    fn load(&self, pairs: Pairs<'_>) -> Result<()> {
        let mut txn = self.0.begin(true)?;
        let mut last = None;
        for (key, value) in pairs {
            if last == Some(key) {
                txn.append_to_set(&key, &value)?;
            } else {
                txn.append(&key, &value)?;
            }
            last = Some(key);
        }
        Ok(txn.commit()?)
    }

    fn put(&self, pairs: Pairs<'_>) -> Result<()> {
        let mut txn = self.0.begin(true)?;
        for (key, value) in pairs {
            txn.put(&key, &value)?;
        }
        Ok(txn.commit()?)
    }

    fn read(&self, work: ReadingSets<'_>) -> Result<()> {
        let txn = self.0.begin(false)?;
        let mut cursor = txn.cursor()?;
        work(&mut cursor)
    }

    fn silent_syncs(&self) -> u64 {
        1
    }
}

impl ReadSets for crate::lmdb_engine::lmdb::Cursor<'_> {
    fn scan(&mut self) -> Result<Digest> {
        let mut digest = Digest::default();
        let mut pair = self.seek(&[0])?;
        while let Some((key, value)) = pair {
            digest.add(key, value);
            pair = self.next()?;
        }
        Ok(digest)
    }

    fn values(&mut self, key: &Word) -> Result<Digest> {
        let mut digest = Digest::default();
        let mut pair = self.seek_exactly(key)?;
        while let Some((key, value)) = pair {
            digest.add(key, value);
            pair = self.next_of_set()?;
        }
        Ok(digest)
    }
}

const SETS: MultimapTableDefinition<'_, &[u8], &[u8]> = MultimapTableDefinition::new(TABLE);

struct Redb(::redb::Database);

impl Redb {
    fn open(dir: &Path, setup: &Setup) -> Result<Self> {
        let db = ::redb::Builder::new()
            .set_cache_size(setup.cache_bytes as usize)
            .create(dir.join("bench.redb"))?;
        let txn = db.begin_write()?;
        txn.open_multimap_table(SETS)?;
        txn.commit()?;
        Ok(Self(db))
    }
}

impl Sets for Redb {
    fn load(&self, pairs: Pairs<'_>) -> Result<()> {
        self.put(pairs)
    }

    fn put(&self, pairs: Pairs<'_>) -> Result<()> {
        let txn = self.0.begin_write()?;
        {
            let mut table = txn.open_multimap_table(SETS)?;
            for (key, value) in pairs {
                table.insert(&key[..], &value[..])?;
            }
        }
        Ok(txn.commit()?)
    }

    fn read(&self, work: ReadingSets<'_>) -> Result<()> {
        work(&mut self.0.begin_read()?.open_multimap_table(SETS)?)
    }
}

impl ReadSets for ::redb::ReadOnlyMultimapTable<&'static [u8], &'static [u8]> {
    fn scan(&mut self) -> Result<Digest> {
        let mut digest = Digest::default();
        for entry in self.range::<&[u8]>(..)? {
            let (key, values) = entry?;
            for value in values {
                digest.add(key.value(), value?.value());
            }
        }
        Ok(digest)
    }

    fn values(&mut self, key: &Word) -> Result<Digest> {
        let mut digest = Digest::default();
        for value in self.get(&key[..])? {
            digest.add(key, value?.value());
        }
        Ok(digest)
    }
}
