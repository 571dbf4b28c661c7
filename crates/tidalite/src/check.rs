//! Checking a whole database: every page reached once, every structure sound, the rooms in agreement.

use crate::catalog::{self, SeriesInfo};
use crate::database::Database;
use crate::error::{Error, Result};
use crate::leaves::stored_tree;
use crate::name::SeriesPattern;
use crate::roots::Roots;
use crate::write::decode_table_entry;
use std::collections::BTreeMap;
use std::sync::Arc;
use tidalite_base::SeriesId;
use tidalite_kv::{Claim, Tree};
use tidalite_pager::{Check, Snapshot};
use tidalite_runs::{Front, Held};

/// What a check found.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CheckReport {
    /// What is wrong, one sentence each; empty for a sound file.
    pub problems: Vec<String>,
    /// Pages of the file.
    pub pages_total: u64,
    /// Pages that are neither free nor waiting, the head of the file included.
    pub pages_used: u64,
    /// Pages that can be allocated.
    pub pages_free: u64,
    /// Pages that are dead but still seen by a snapshot or needed by the newest durable states.
    pub pages_pending: u64,
    /// Tables of the user.
    pub tables: u64,
    /// Series.
    pub series: u64,
    /// Leaves of series.
    pub leaves: u64,
    /// Rows in leaves.
    pub leaf_rows: u64,
    /// Runs of the front.
    pub runs: u64,
    /// Merges of runs that are under way.
    pub merges: u64,
    /// Rows in the front.
    pub front_rows: u64,
}

impl CheckReport {
    /// True when nothing is wrong.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }
}

impl Database {
    /// Checks everything that the newest commit reaches: every page and block is read and verified, order,
    /// counts and statistics are recomputed, and every page has to be reached exactly once or be free.
    /// Waits for a write transaction under way; nothing is committed meanwhile.
    ///
    /// # Errors
    /// What cannot be read at all; damage is in the report.
    pub fn check(&self) -> Result<CheckReport> {
        let mut check = self.pager.begin_check()?;
        let snapshot = check.snapshot().clone();
        let mut report = CheckReport::default();
        match Roots::decode(tidalite_pager::Snapshot::app(&snapshot)) {
            Ok(roots) => Walk {
                check: &mut check,
                pages: &snapshot,
                roots: &roots,
            }
            .all(&mut report)?,
            Err(error) => check.problem(error),
        }
        drop(snapshot);
        let pages = check.finish();
        report.problems = pages.problems;
        report.pages_total = pages.pages_total;
        report.pages_used = pages.pages_total - pages.pages_free - pages.pages_pending;
        report.pages_free = pages.pages_free;
        report.pages_pending = pages.pages_pending;
        Ok(report)
    }
}

struct Walk<'a> {
    check: &'a mut Check,
    pages: &'a Snapshot,
    roots: &'a Roots,
}

impl Walk<'_> {
    fn all(&mut self, report: &mut CheckReport) -> Result<()> {
        let roots = self.roots;
        for (name, tree) in [
            ("table of tables", &roots.tables),
            ("names of series", &roots.names),
            ("GUIDs of series", &roots.guids),
            ("catalog of series", &roots.series),
            ("series records", &roots.records),
            ("extents table", &roots.extents),
        ] {
            self.tree(name, tree)?;
        }
        self.tables(report)?;
        let series = self.catalog()?;
        report.series = series.len() as u64;
        self.series(&series, report)?;
        self.front(&series, report)
    }

    /// Notes damage; passes on what is not damage.
    fn note<T>(&mut self, what: &str, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(Error::Store(tidalite_pager::Error::Corrupt(corrupt))) => {
                self.check.problem(format!("{what}: {corrupt}"));
                Ok(None)
            }
            Err(Error::Store(error)) => Err(error.into()),
            Err(error) => {
                self.check.problem(format!("{what}: {error}"));
                Ok(None)
            }
        }
    }

    fn tree(&mut self, what: &str, tree: &Tree) -> Result<()> {
        let check = &mut *self.check;
        let mut claim = |claim: Claim| {
            check.claim(claim.addr, claim.pages, &format!("{what}: {}", claim.what));
        };
        let result = tree.check(self.pages, &mut claim);
        self.note(what, result.map_err(Error::from))?;
        Ok(())
    }

    fn tables(&mut self, report: &mut CheckReport) -> Result<()> {
        let mut found = Vec::new();
        let entries = self.entries(&self.roots.tables.clone());
        for (name, entry) in self.note("table of tables", entries)?.unwrap_or_default() {
            let name = String::from_utf8_lossy(&name).into_owned();
            if let Some((id, tree)) = self.note(&name, decode_table_entry(&entry))? {
                let inline = self.roots.inline.iter().find(|(inline, _)| *inline == id);
                found.push((id, name, inline.map_or(tree, |(_, tree)| *tree)));
            }
        }
        for (id, _) in &self.roots.inline {
            if !found.iter().any(|(known, ..)| known == id) {
                self.check
                    .problem(format!("inline root of table {id}, which has no name"));
            }
        }
        report.tables = found.len() as u64;
        for (id, name, tree) in found {
            if id >= self.roots.next_table || tree.id() != id {
                self.check
                    .problem(format!("table {name}: its number {id} cannot be"));
            }
            self.tree(&format!("table {name}"), &tree)?;
        }
        Ok(())
    }

    fn entries(&self, tree: &Tree) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let mut entries = Vec::new();
        let mut cursor = tree.cursor(self.pages);
        let mut found = cursor.first()?;
        while found {
            entries.push((cursor.key().to_vec(), cursor.value()?.to_vec()?));
            found = cursor.next()?;
        }
        Ok(entries)
    }

    /// The catalog's entries, and that names and GUIDs are exactly theirs.
    fn catalog(&mut self) -> Result<BTreeMap<SeriesId, Arc<SeriesInfo>>> {
        let all = SeriesPattern::parse("")?;
        let listed = catalog::list(self.roots, self.pages, &all);
        let listed = self.note("catalog of series", listed)?.unwrap_or_default();
        let (mut named, mut with_guid) = (0, 0);
        for info in &listed {
            if info.id.0 >= self.roots.next_series {
                self.check
                    .problem(format!("{} is beyond the numbers given out", info.id));
            }
            let keys = [
                info.name.as_ref().map(catalog::SeriesKey::Name),
                info.guid.as_ref().map(catalog::SeriesKey::Guid),
            ];
            named += u64::from(keys[0].is_some());
            with_guid += u64::from(keys[1].is_some());
            for key in keys.into_iter().flatten() {
                let found = catalog::find(self.roots, self.pages, key);
                let found = self.note("names of series", found)?.flatten();
                if found != Some(info.id) {
                    self.check
                        .problem(format!("{} is not found as {}", info.id, info.label()));
                }
            }
        }
        if (named, with_guid) != (self.roots.names.len(), self.roots.guids.len()) {
            self.check
                .problem("names or GUIDs lead to series that are not in the catalog");
        }
        Ok(listed.into_iter().map(|info| (info.id, info)).collect())
    }

    /// Every series tree and the extents.
    fn series(
        &mut self,
        series: &BTreeMap<SeriesId, Arc<SeriesInfo>>,
        report: &mut CheckReport,
    ) -> Result<()> {
        let mut leaves = tidalite_series::Check::new();
        let mut records = 0;
        for (id, info) in series {
            let types = info.schema.types();
            let tree = stored_tree(&self.roots.records, self.pages, *id, &types);
            let Some(tree) = self.note(&info.label(), tree.map_err(Error::from))? else {
                continue;
            };
            records += u64::from(self.has_record(*id)?);
            if tree.types() != types {
                self.check.problem(format!(
                    "{}: record and catalog disagree on columns",
                    info.label()
                ));
            }
            let check = &mut *self.check;
            let mut claim = |claim: Claim| {
                check.claim(claim.addr, claim.pages, claim.what);
            };
            leaves.tree(self.pages, &tree, &mut claim)?;
        }
        if records != self.roots.records.len() {
            self.check
                .problem("there are records of series that are not in the catalog");
        }
        let check = &mut *self.check;
        let mut claim = |claim: Claim| {
            check.claim(claim.addr, claim.pages, claim.what);
        };
        let found = leaves.extents(self.pages, &self.roots.extents, &mut claim)?;
        report.leaves = found.leaves;
        report.leaf_rows = found.rows;
        for problem in found.problems {
            self.check.problem(problem);
        }
        Ok(())
    }

    fn has_record(&mut self, id: SeriesId) -> Result<bool> {
        let key = catalog::id_key(id);
        let found = self
            .roots
            .records
            .contains(self.pages, &key)
            .map_err(Error::from);
        Ok(self.note("series records", found)?.unwrap_or(false))
    }

    /// The front: its own rules, that its rows belong to series of the catalog.
    fn front(
        &mut self,
        series: &BTreeMap<SeriesId, Arc<SeriesInfo>>,
        report: &mut CheckReport,
    ) -> Result<()> {
        let front = Front::load(self.pages, &self.roots.front).map_err(Error::from);
        let Some(front) = self.note("front", front)? else {
            return Ok(());
        };
        let check = &mut *self.check;
        let mut held = Vec::<Held>::new();
        let result = front.check(
            self.pages,
            &mut |claim| {
                check.claim(claim.addr, claim.pages, claim.what);
            },
            &mut |rows| held.push(rows),
        );
        let found = self
            .note("front", result.map_err(Error::from))?
            .unwrap_or_default();
        report.runs = found.runs;
        report.merges = found.merges;
        report.front_rows = found.rows + found.tail_rows;
        for held in held {
            if !series.contains_key(&held.series) {
                self.check.problem(format!(
                    "the front holds rows of {}, which is unknown",
                    held.series
                ));
            }
        }
        Ok(())
    }
}
