//! Saving what is intact of a damaged file into a new one.
//!
//! With a meta record that can be read, every structure is walked from its root and damage costs what lies below it;
//! what lies below is then looked for by headers: pages and blocks say what they are, whose, where they belong, when
//! they were written, and carry a checksum of their own. Without any record, headers are all there is.
//!
//! Found by headers, a page may be an older version of one that is damaged or was freed. So in a table the newest leaf
//! speaks for the keys between its first and its last, in a series the newest leaf for its times; an older one adds
//! what lies outside. Rows that were deleted may come back where nothing newer speaks for their place; the report says
//! how many rows came from headers.

mod collect;
mod front;
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

/// Saves what is intact of a damaged file into a new one, which must not exist. The damaged file is only read; nobody
/// else should have it open. The new file appears with one commit.
///
/// # Errors
/// When nothing in the file can be recognised, when the new one exists or cannot be written; `Cancelled`.
pub fn salvage(
    damaged: impl AsRef<Path>,
    to: impl AsRef<Path>,
    watch: Watch<'_>,
) -> Result<SalvageReport> {
    save_new(&RawFile::open(damaged)?, to.as_ref(), watch)
}

/// As [`salvage`], of a database whose large values lie in a second file: where that is now, for the damaged file may no longer say
/// it. The new file holds them itself.
///
/// # Errors
/// As for `salvage`; when the second file cannot be read at all.
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
        // It may go to a network file system, where nothing else is opened.
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

/// As [`salvage`], from a storage of one's own into an open, empty database.
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
                // A wall clock that is ahead of the damaged file's commits is not believed in the new file either.
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
    rescue.front()?;
    rescue.notes()?;
    let Rescue { tx, report, .. } = rescue;
    tx.commit()?;
    Ok(report)
}

impl Rescue<'_, '_> {
    /// Policies that can still be read. Without roots there is nothing that leads to them.
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
