//! Adapter for Tidalite: points of series. A key is a series and a time, and a value begins with a float. Only writes
//! are supported, because the suite `harlinn` measures reads of series.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use ::tidalite::{Database, Durability, SeriesId, Steps, WriteTxn};

use super::tidalite::LogSyncs;
use super::{Engine, Reading, Result, Write, Writing, point_of};

/// A Tidalite database with series.
pub(crate) struct Points {
    db: Database,
    durability: Durability,
    pages: AtomicU64,
    log: LogSyncs,
}

impl Points {
    /// Opens a database whose commits have this durability.
    pub(crate) fn with(dir: &Path, durability: Durability) -> Result<Self> {
        Ok(Self {
            db: Database::open(dir.join("bench.tdl"))?,
            durability,
            pages: AtomicU64::new(0),
            log: LogSyncs::default(),
        })
    }
}

impl Engine for Points {
    fn write(&self, work: Writing<'_>) -> Result<()> {
        let mut txn = self.db.begin_write()?;
        work(&mut Writer(&mut txn))?;
        let commit = txn.commit_with(self.durability)?;
        self.pages.store(commit.pages_written, Ordering::Relaxed);
        Ok(())
    }

    fn read(&self, _: Reading<'_>) -> Result<()> {
        Err("series are not read here".into())
    }

    fn begin_read(&self) -> Result<()> {
        drop(std::hint::black_box(self.db.begin_read()?));
        Ok(())
    }

    fn silent_syncs(&self, _: u64) -> u64 {
        self.log.since(&self.db)
    }

    fn pages_of_last_commit(&self) -> Option<u64> {
        Some(self.pages.load(Ordering::Relaxed))
    }

    fn flush(&self) -> Result<()> {
        self.db.begin_write()?.commit()?;
        Ok(())
    }
}

struct Writer<'t>(&'t mut WriteTxn);

impl Write for Writer<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (series, time) = point_of(key)?;
        let value = f64::from_bits(super::touch(value));
        // Series are numbered in the order of their creation, from 0.
        match self.0.series_by_id(SeriesId(series)) {
            Ok(mut series) => series.insert_point(Steps(time), 0, value)?,
            Err(error) if error.kind() == ::tidalite::ErrorKind::NotFound => {
                let mut series = self.0.series(&format!("s{series}"))?;
                series.insert_point(Steps(time), 0, value)?;
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn get(&mut self, _: &[u8]) -> Result<Option<u64>> {
        Err("series are not read here".into())
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool> {
        let (series, time) = point_of(key)?;
        let mut series = self.0.series_by_id(SeriesId(series))?;
        Ok(series.delete(Steps(time)..=Steps(time))? == 1)
    }
}
