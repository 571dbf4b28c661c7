//! A queue in SQLite: a table of jobs with the deadline of the lease, and a partial index of the ready jobs. Each
//! commit syncs the write-ahead log (`synchronous=FULL`), as in `engine::sqlite`.

use std::path::Path;

use rusqlite::Connection;

use super::face::{Delivered, Job, Queue};
use crate::engine::Result;

/// A deadline after the end of any run.
const DEADLINE: i64 = i64::MAX;

pub(super) struct Sqlite(Connection);

impl Sqlite {
    pub(super) fn open(dir: &Path, data_bytes: u64) -> Result<Self> {
        let connection = Connection::open(dir.join("bench.sqlite"))?;
        let cache_kib = data_bytes.clamp(64 << 20, 4 << 30) >> 10;
        connection.execute_batch(&format!(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-{cache_kib};
             PRAGMA mmap_size={};
             CREATE TABLE jobs(id INTEGER PRIMARY KEY AUTOINCREMENT, deadline INTEGER, payload BLOB NOT NULL);
             CREATE INDEX ready ON jobs(id) WHERE deadline IS NULL;",
            data_bytes * 2
        ))?;
        Ok(Self(connection))
    }

    fn transaction<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        self.0.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        match work(&self.0) {
            Ok(done) => {
                self.0.prepare_cached("COMMIT")?.execute([])?;
                Ok(done)
            }
            Err(error) => {
                self.0.execute_batch("ROLLBACK")?;
                Err(error)
            }
        }
    }
}

impl Queue for Sqlite {
    fn push(&mut self, jobs: &[Job]) -> Result<()> {
        self.transaction(|connection| {
            let mut insert = connection.prepare_cached("INSERT INTO jobs(payload) VALUES(?)")?;
            for job in jobs {
                insert.execute([&job.payload[..]])?;
            }
            Ok(())
        })
    }

    fn lease(&mut self, _: usize, limit: usize) -> Result<Vec<Delivered>> {
        let mut found: Vec<Delivered> = self.transaction(|connection| {
            let mut update = connection.prepare_cached(
                "UPDATE jobs SET deadline = ?1 WHERE id IN
                 (SELECT id FROM jobs WHERE deadline IS NULL ORDER BY id LIMIT ?2) RETURNING id, payload",
            )?;
            let rows = update.query_map((DEADLINE, limit as i64), |row| {
                Ok((row.get::<_, i64>(0)? as u64, row.get(1)?))
            })?;
            Ok(rows.collect::<std::result::Result<_, _>>()?)
        })?;
        // The order of returned rows is not specified.
        found.sort_unstable_by_key(|(id, _)| *id);
        Ok(found)
    }

    fn ack(&mut self, _: usize, ids: &[u64]) -> Result<()> {
        self.transaction(|connection| {
            let sql = "DELETE FROM jobs WHERE id = ? AND deadline IS NOT NULL";
            let mut delete = connection.prepare_cached(sql)?;
            for id in ids {
                if delete.execute([*id as i64])? != 1 {
                    return Err(format!("message {id} is not leased").into());
                }
            }
            Ok(())
        })
    }

    fn left(&self) -> Result<u64> {
        let count: i64 = self
            .0
            .query_row("SELECT count(*) FROM jobs", [], |row| row.get(0))?;
        Ok(count as u64)
    }

    fn silent_syncs(&self) -> u64 {
        0
    }
}
