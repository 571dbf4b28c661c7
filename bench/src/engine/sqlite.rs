//! Adapter for SQLite (public domain), through `rusqlite` with its bundled library: a table without row ids, in WAL
//! mode.
//!
//! `Synced`: `synchronous=FULL`. `Lazy`: `NORMAL`. `Unsynced`: `OFF`. The memory map covers the whole file.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, OptionalExtension};

use super::{Digest, Engine, Promise, Read, Reading, Result, Setup, Write, Writing, touch};

/// One write connection, and one connection for each concurrent reader.
pub(crate) struct Sqlite {
    writer: Mutex<Connection>,
    readers: Mutex<Vec<Connection>>,
    path: PathBuf,
    setup: Setup,
}

impl Sqlite {
    pub(crate) fn open(dir: &Path, setup: &Setup) -> Result<Self> {
        let path = dir.join("bench.sqlite");
        let writer = connect(&path, setup)?;
        writer.execute_batch(
            "CREATE TABLE IF NOT EXISTS pairs(k BLOB PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID",
        )?;
        Ok(Self {
            writer: Mutex::new(writer),
            readers: Mutex::default(),
            path,
            setup: *setup,
        })
    }

    fn with_reader(&self, work: impl FnOnce(&Connection) -> Result<()>) -> Result<()> {
        let kept = locked(&self.readers).pop();
        let connection = match kept {
            Some(connection) => connection,
            None => connect(&self.path, &self.setup)?,
        };
        connection.prepare_cached("BEGIN")?.execute([])?;
        let result = work(&connection);
        connection.prepare_cached("COMMIT")?.execute([])?;
        locked(&self.readers).push(connection);
        result
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn connect(path: &Path, setup: &Setup) -> Result<Connection> {
    let connection = Connection::open(path)?;
    connection.set_prepared_statement_cache_capacity(16);
    let synchronous = match setup.promise {
        Promise::Synced => "FULL",
        Promise::Lazy => "NORMAL",
        Promise::Unsynced => "OFF",
    };
    let (cache_kib, map) = (setup.cache_bytes >> 10, setup.data_bytes * 4);
    connection.execute_batch(&format!(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous={synchronous}; PRAGMA cache_size=-{cache_kib};
         PRAGMA mmap_size={map};"
    ))?;
    Ok(connection)
}

impl Engine for Sqlite {
    fn write(&self, work: Writing<'_>) -> Result<()> {
        let connection = locked(&self.writer);
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        match work(&mut Writer(&connection)) {
            Ok(()) => {
                connection.prepare_cached("COMMIT")?.execute([])?;
                Ok(())
            }
            Err(error) => {
                connection.execute_batch("ROLLBACK")?;
                Err(error)
            }
        }
    }

    fn read(&self, work: Reading<'_>) -> Result<()> {
        self.with_reader(|connection| work(&mut Reader(connection)))
    }

    /// Runs a statement, because SQLite takes the snapshot only with the first statement of a transaction.
    fn begin_read(&self) -> Result<()> {
        self.with_reader(|connection| {
            let mut any = connection.prepare_cached("SELECT 1 FROM pairs LIMIT 1")?;
            any.query_row([], |_| Ok(())).optional()?;
            Ok(())
        })
    }

    fn flush(&self) -> Result<()> {
        locked(&self.writer).query_row("PRAGMA wal_checkpoint(FULL)", [], |_| Ok(()))?;
        Ok(())
    }

    fn compact(&mut self) -> Result<bool> {
        locked(&self.readers).clear();
        locked(&self.writer).execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE);")?;
        Ok(true)
    }
}

fn get(connection: &Connection, key: &[u8]) -> Result<Option<u64>> {
    let mut statement = connection.prepare_cached("SELECT v FROM pairs WHERE k = ?")?;
    Ok(statement
        .query_row([key], |row| Ok(touch(row.get_ref(0)?.as_blob()?)))
        .optional()?)
}

struct Writer<'t>(&'t Connection);

impl Write for Writer<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let sql = "INSERT INTO pairs VALUES(?, ?) ON CONFLICT(k) DO UPDATE SET v = excluded.v";
        self.0.prepare_cached(sql)?.execute([key, value])?;
        Ok(())
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<u64>> {
        get(self.0, key)
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool> {
        let mut statement = self.0.prepare_cached("DELETE FROM pairs WHERE k = ?")?;
        Ok(statement.execute([key])? == 1)
    }
}

struct Reader<'t>(&'t Connection);

impl Read for Reader<'_> {
    fn get(&mut self, key: &[u8]) -> Result<Option<u64>> {
        get(self.0, key)
    }

    fn value(&mut self, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let mut statement = self.0.prepare_cached("SELECT v FROM pairs WHERE k = ?")?;
        let mut rows = statement.query([key])?;
        match rows.next()? {
            Some(row) => seen(row.get_ref(0)?.as_blob()?),
            None => return Ok(false),
        }
        Ok(true)
    }

    fn scan(&mut self, from: &[u8], limit: u64) -> Result<Digest> {
        let mut digest = Digest::default();
        let sql = "SELECT k, v FROM pairs WHERE k >= ? ORDER BY k LIMIT ?";
        let mut statement = self.0.prepare_cached(sql)?;
        let mut rows = statement.query((from, i64::try_from(limit).unwrap_or(i64::MAX)))?;
        while let Some(row) = rows.next()? {
            digest.add(row.get_ref(0)?.as_blob()?, row.get_ref(1)?.as_blob()?);
        }
        Ok(digest)
    }
}
