//! Salvage: copies the intact data of a damaged file into a new one.
//!
//! With a readable meta record, every structure is walked from its root. Damage hides the data below it; salvage
//! searches the file for that data by headers: pages and blocks carry their kind, owner, place, birth and a checksum of
//! their own. Without any record, headers are the only source.
//!
//! A page found by its header may be an older version of one that is damaged or was freed. Therefore the newest leaf of
//! a table decides about the keys between its first and its last key, and the newest leaf of a series about the times
//! in its span; an older leaf adds only data outside. Deleted rows may reappear where no newer leaf covers their place;
//! the report gives the number of rows from headers.
//!
//! A leaf of a nested table is saved only if a page leads to it, because the leaf does not name the table to which it
//! belongs. The nested tables of hash tables, buffered tables, topics, queues, buckets, containers and relations are an
//! exception: their rows identify the table (`inner.rs`). The rest of such a table is rebuilt: the index of a hash
//! table from its records, the list of the runs of a buffered table from their blocks, everything but messages,
//! manifests, chunks and records of containers from these, the indexes of a relation from its rows.

mod collect;
mod delta;
mod inner;
mod ranges;
mod report;
mod rescue;
mod series;
mod tables;

pub use report::{SalvageReport, Saved};

use crate::catalog::retention::policy_of;
use crate::catalog::roots::{Roots, owner};
use crate::catalog::texts::TextCache;
use crate::database::handle::Database;
use crate::maintenance::copy::into_new;
use crate::maintenance::watch::{Running, Watch};
use crate::types::error::Result;
use collect::Collected;
use rescue::Rescue;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidalite_pager::{PageRead, RawFile, Storage};

/// Recovers the intact data of a damaged file. The damaged file is only read; no other process should have it open.
///
/// The report lists the losses. Where newer data is lost, salvage may restore older data: rows that had been deleted
/// or replaced, if no newer page covers their keys, and, in a buffered table whose state is lost, values that newer
/// ones had replaced in a lost block. Nested tables below a lost page of the table around them are lost, but not the
/// records of a hash table, the rows and runs of a buffered table, the messages and objects of topics, queues, buckets
/// and containers, and the rows of relations. The series of containers are compared with the messages: a series that
/// differs is created again, and a series with rows or numbers that no message has is kept under another name, with the
/// tag `salvaged`.
///
/// ```no_run
/// use tidalite::maintenance::Salvage;
/// let report = Salvage::of("damaged.tdl").to("saved.tdl")?;
/// println!("{} rows saved", report.rows());
/// # Ok::<(), tidalite::Error>(())
/// ```
#[must_use]
pub struct Salvage<'a> {
    damaged: Damaged,
    large_values: Option<PathBuf>,
    watch: Watch<'a>,
}

enum Damaged {
    File(PathBuf),
    Storage(Arc<dyn Storage>),
}

impl<'a> Salvage<'a> {
    /// Prepares a salvage of a damaged file.
    pub fn of(path: impl Into<PathBuf>) -> Self {
        Self::new(Damaged::File(path.into()))
    }

    /// Prepares a salvage of a damaged custom storage.
    pub fn of_storage(storage: Arc<dyn Storage>) -> Self {
        Self::new(Damaged::Storage(storage))
    }

    fn new(damaged: Damaged) -> Self {
        Self {
            damaged,
            large_values: None,
            watch: Watch::new(),
        }
    }

    /// Sets the current path of the second file, if the database has large values in one (default: the path stored in
    /// the damaged file, if readable). The new database stores these values in its main file.
    pub fn large_values(mut self, path: impl Into<PathBuf>) -> Self {
        self.large_values = Some(path.into());
        self
    }

    /// Reports progress to this watch, and reads no faster than the rate it allows.
    pub fn watch(mut self, watch: Watch<'a>) -> Self {
        self.watch = watch;
        self
    }

    /// Saves the intact data into a new file, which must not exist. All data appears with one commit.
    ///
    /// # Errors
    /// Nothing in the damaged file can be recognised; the second file of the damaged database cannot be read at all;
    /// the new file exists or cannot be written; [`Cancelled`](crate::ErrorKind::Cancelled) if the watch stops the
    /// salvage.
    pub fn to(self, path: impl AsRef<Path>) -> Result<SalvageReport> {
        let raw = self.raw()?;
        into_new(path.as_ref(), raw.page_size(), |db| {
            save(&raw, db, self.watch)
        })
    }

    /// Saves the intact data into an open, empty database, with one commit.
    ///
    /// # Errors
    /// As for [`to`](Self::to).
    pub fn to_database(self, to: &Database) -> Result<SalvageReport> {
        save(&self.raw()?, to, self.watch)
    }

    fn raw(&self) -> Result<RawFile> {
        let mut raw = match &self.damaged {
            Damaged::File(path) => RawFile::open(path)?,
            Damaged::Storage(storage) => RawFile::of_storage(Arc::clone(storage))?,
        };
        if let Some(path) = &self.large_values {
            raw.use_large(path)?;
        }
        Ok(raw)
    }
}

fn save(raw: &RawFile, db: &Database, watch: Watch<'_>) -> Result<SalvageReport> {
    let mut running = Running::new(watch, 2 * raw.len());
    running.at("headers");
    let found = Collected::of(raw, &mut running)?;
    let mut rescue = Rescue {
        raw,
        roots: None,
        tx: db.begin_write()?,
        ids: HashMap::new(),
        infos: HashMap::new(),
        infos_are_whole: false,
        columns: HashMap::new(),
        text_cache: TextCache::default(),
        merges: Vec::new(),
        report: SalvageReport {
            headers: found.headers,
            ..SalvageReport::default()
        },
        found,
        running,
        spans: HashMap::new(),
    };
    rescue.tx.changes_containers = true;
    if let Some(state) = raw.state() {
        match Roots::decode(&state.app) {
            Ok(roots) => {
                rescue.report.txn = Some(state.txn);
                // If the wall clock is ahead of the commits in the damaged file, it must not be trusted in the new file
                // either: the commit clock is kept.
                rescue.tx.roots.clock = roots.clock;
                rescue.roots = Some(roots);
            }
            Err(error) => rescue.lose_file(error.finding()),
        }
    } else {
        rescue.lose_file("every meta record is lost: everything is saved by headers");
    }
    if let Some(lost) = raw.lost_commits() {
        rescue.lose_file(lost.to_string());
    }
    rescue.retentions()?;
    rescue.tables()?;
    rescue.series()?;
    rescue.delta()?;
    rescue.notes()?;
    rescue.container_series()?;
    let Rescue { tx, report, .. } = rescue;
    tx.commit()?;
    Ok(report)
}

impl Rescue<'_, '_> {
    /// Saves the retention policies that can still be read. Without the roots of the damaged file no policy can be
    /// found.
    fn retentions(&mut self) -> Result<()> {
        let Some(roots) = &self.roots else {
            return Ok(());
        };
        let mut saved = Vec::new();
        let tree = Some(&roots.policies);
        let lost = tables::values_of(
            self.raw,
            &self.found,
            owner::POLICIES,
            tree,
            &mut |key, value, _| {
                saved.extend(policy_of(key, value).ok());
                Ok(())
            },
        )?;
        if !lost.is_empty() {
            self.lose_file("retention policies: some cannot be read");
        }
        for (name, policy) in saved {
            self.tx.set_retention(&name, &policy)?;
            self.report.retentions += 1;
        }
        Ok(())
    }
}
