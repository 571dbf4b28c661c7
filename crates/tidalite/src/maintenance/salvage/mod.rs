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
mod series;
mod tables;

use crate::catalog::entries::SeriesInfo;
use crate::catalog::roots::{Roots, owner};
use crate::catalog::texts::TextCache;
use crate::database::handle::Database;
use crate::database::options::{OpenMode, Options};
use crate::maintenance::check::Finding;
use crate::maintenance::retention::policy_of;
use crate::maintenance::watch::{Running, Watch};
use crate::txn::write::WriteTxn;
use crate::types::error::Result;
use crate::types::merge_policy::MergePolicy;
use collect::Collected;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use tidalite_base::SeriesId;
use tidalite_pager::{PageRead, RawFile, Storage};

/// Descriptions of loss that are kept; the rest are counted.
const LOST_MAX: usize = 1000;

/// What was saved and what was lost.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SalvageReport {
    /// The commit whose record was found; `None`: everything was saved by headers.
    pub txn: Option<tidalite_base::TxnId>,
    /// Tables, each with its rows.
    pub tables: Vec<Saved>,
    /// Series, each with its rows.
    pub series: Vec<Saved>,
    /// Retention policies.
    pub retentions: u64,
    /// What could not be read, and what it takes along.
    pub lost: Vec<Finding>,
    /// Losses beyond those in `lost`.
    pub more_lost: u64,
    /// Pages and blocks found by their headers, whatever they were.
    pub headers: u64,
}

/// What was saved of a table or a series.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Saved {
    /// Its name; made up where that was lost.
    pub name: String,
    /// Rows written, of both kinds below.
    pub rows: u64,
    /// Rows among them that were found by headers alone: some may be of an older version.
    pub rows_by_headers: u64,
}

impl SalvageReport {
    /// Rows and table entries in all.
    #[must_use]
    pub fn rows(&self) -> u64 {
        let all = self.tables.iter().chain(&self.series);
        all.map(|saved| saved.rows).sum()
    }

    /// True when nothing was found to be missing.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.lost.is_empty() && self.txn.is_some()
    }

    fn lose(&mut self, finding: Finding) {
        self.lose_with(|| finding);
    }

    /// As `lose`, of what takes time to tell.
    fn lose_with(&mut self, tell: impl FnOnce() -> Finding) {
        if self.lost.len() < LOST_MAX {
            self.lost.push(tell());
        } else {
            self.more_lost += 1;
        }
    }
}

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

/// A rescue under way.
struct Rescue<'r, 'a> {
    raw: &'r RawFile,
    /// The roots of the newest record, where there is one.
    roots: Option<Roots>,
    tx: WriteTxn,
    found: Collected,
    /// The damaged file's numbers of series and the new one's, with the place in the report.
    ids: HashMap<SeriesId, (SeriesId, usize)>,
    /// What the damaged file says of its series, by its numbers.
    infos: HashMap<SeriesId, SeriesInfo>,
    /// Of all its series.
    infos_are_whole: bool,
    /// Columns of each series, by the damaged file's number.
    columns: HashMap<SeriesId, usize>,
    text_cache: TextCache,
    /// The new file's numbers of series, with the policy that each is to have in the end.
    merges: Vec<(SeriesId, MergePolicy)>,
    /// Times for which a leaf spoke, and its birth; kept where headers are all there is.
    spans: HashMap<SeriesId, Vec<(i64, i64, u64)>>,
    report: SalvageReport,
    running: Running<'a>,
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

    fn lose_file(&mut self, problem: impl ToString) {
        self.report.lose(Finding::new(
            crate::maintenance::check::Place::File,
            problem,
        ));
    }
}
