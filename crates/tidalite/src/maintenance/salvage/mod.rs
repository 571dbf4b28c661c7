//! Recovers the intact data of a damaged file into a new one.
//!
//! With a readable meta record, every structure is walked from its root, and damage hides the data below it; that data
//! is then searched by headers: pages and blocks carry their kind, owner, place, birth and a checksum of their own.
//! Without any record, headers are the only source.
//!
//! A page found by its header may be an older version of one that is damaged or was freed. Therefore the newest leaf of
//! a table is authoritative for the keys between its first and its last, and the newest leaf of a series for its times;
//! an older leaf adds only data outside. Deleted rows may reappear where no newer leaf covers their place; the report
//! gives the number of rows from headers.

mod collect;
mod delta;
mod report;
mod rescue;
mod series;
mod tables;

pub use report::{SalvageReport, Saved};

use crate::catalog::retention::policy_of;
use crate::catalog::roots::{Roots, owner};
use crate::catalog::texts::TextCache;
use crate::database::handle::Database;
use crate::database::options::{OpenMode, Options};
use crate::maintenance::watch::{Running, Watch};
use crate::types::error::Result;
use collect::Collected;
use rescue::Rescue;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use tidalite_pager::{PageRead, RawFile, Storage};

/// Recovers the intact data of a damaged file into a new one, which must not exist. The damaged file is only read; no
/// other process should have it open. The new file appears with one commit.
///
/// # Errors
/// If nothing in the file can be recognised, or the new one exists or cannot be written; `Cancelled`.
pub fn salvage(
    damaged: impl AsRef<Path>,
    to: impl AsRef<Path>,
    watch: Watch<'_>,
) -> Result<SalvageReport> {
    save_new(&RawFile::open(damaged)?, to.as_ref(), watch)
}

/// Like [`salvage`], for a database with large values in a second file, whose current path is given because the damaged
/// file may no longer contain it. The new file stores these values itself.
///
/// # Errors
/// As for `salvage`; if the second file cannot be read at all.
pub fn salvage_in_two(
    damaged: impl AsRef<Path>,
    second: impl AsRef<Path>,
    to: impl AsRef<Path>,
    watch: Watch<'_>,
) -> Result<SalvageReport> {
    save_new(&RawFile::open_in_two(damaged, second)?, to.as_ref(), watch)
}

fn save_new(raw: &RawFile, to: &Path, watch: Watch<'_>) -> Result<SalvageReport> {
    let db = Options::new()
        .mode(OpenMode::Create)
        // The new file may be on a network file system, where only exclusive access is possible.
        .exclusive(true)
        .page_size(raw.page_size())
        .open(to)?;
    let saved = save(raw, &db, watch);
    drop(db);
    if saved.is_err() {
        crate::maintenance::copy::discard(to);
    }
    saved
}

/// Like [`salvage`], from a custom storage into an open, empty database.
///
/// # Errors
/// As for `salvage`.
pub fn salvage_storage(
    damaged: Arc<dyn Storage>,
    to: &Database,
    watch: Watch<'_>,
) -> Result<SalvageReport> {
    save(&RawFile::of_storage(damaged)?, to, watch)
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
    if let Some(state) = raw.state() {
        match Roots::decode(&state.app) {
            Ok(roots) => {
                rescue.report.txn = Some(state.txn);
                // A wall clock that is ahead of the damaged file's commits is not trusted in the new file either.
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
    let Rescue { tx, report, .. } = rescue;
    tx.commit()?;
    Ok(report)
}

impl Rescue<'_, '_> {
    /// Policies that can still be read. Without roots they cannot be found.
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
