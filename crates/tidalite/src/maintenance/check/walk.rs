//! The walk of a check over one version: claims every page it reaches, and records every problem as a finding.

use super::finding::{Finding, Place};
use super::report::CheckReport;
use super::waiting::Waiting;
use crate::catalog::entries::{self, SeriesInfo};
use crate::catalog::roots::Roots;
use crate::catalog::table_roots::decode_table_entry;
use crate::maintenance::watch::Watched;
use crate::txn::leaves::stored_tree;
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use crate::types::interval::EVER;
use crate::types::table_types::TableLayout;
use std::collections::BTreeMap;
use std::sync::Arc;
use tidalite_base::SeriesId;
use tidalite_delta::{Delta, LiveRows};
use tidalite_index::{BufferedReader, HashReader};
use tidalite_kv::{Damage, Tree, UsedPages};
use tidalite_messages::{BucketReader, ContainersReader, QueueReader, TopicsReader};
use tidalite_pager::{Check, PageRead};
use tidalite_relations::RelationReader;

/// Maximum number of findings kept; further findings are only counted.
const FINDINGS_MAX: usize = 1000;

/// Whether a damaged table belongs to the catalog or to the user.
#[derive(Clone, Copy)]
enum Whose {
    Catalog,
    User,
}

pub(super) struct Walk<'a, 'w> {
    check: &'a mut Check,
    pub(super) pages: &'a Watched<'a, 'w>,
    pub(super) roots: &'a Roots,
    version: Option<&'a str>,
    pub(super) findings: Vec<Finding>,
    more: u64,
    /// Whether all series are known, because no page of the catalog is damaged.
    pub(super) catalog_is_whole: bool,
}

impl<'a, 'w> Walk<'a, 'w> {
    pub(super) fn new(
        check: &'a mut Check,
        pages: &'a Watched<'a, 'w>,
        roots: &'a Roots,
        version: Option<&'a str>,
    ) -> Self {
        Self {
            check,
            pages,
            roots,
            version,
            findings: Vec::new(),
            more: 0,
            catalog_is_whole: true,
        }
    }

    /// Checks all structures of this version. The report contains the findings so far even if the walk ends early.
    pub(super) fn all(mut self, report: &mut CheckReport) -> Result<()> {
        let walked = self.structures(report);
        if self.more > 0 {
            let more = format!("and {} more problems", self.more);
            self.findings.push(Finding::new(Place::File, more));
        }
        report.findings.append(&mut self.findings);
        walked
    }

    pub(super) fn find(&mut self, mut finding: Finding) {
        finding.version = self.version.map(str::to_owned);
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding);
        } else {
            self.more += 1;
        }
    }

    pub(super) fn problem(&mut self, problem: impl ToString) {
        self.find(Finding::new(Place::File, problem));
    }

    pub(super) fn at(&self, what: &str) {
        let mut running = self.pages.running.borrow_mut();
        running.at(what);
        running.done = self.check.pages_claimed() * self.pages.page_size() as u64;
    }

    fn structures(&mut self, report: &mut CheckReport) -> Result<()> {
        let roots = self.roots;
        let broken = self.tree("catalog of series", &roots.series, Whose::Catalog)?;
        self.catalog_is_whole = broken.is_empty();
        for (name, tree) in [
            ("table of tables", &roots.tables),
            ("names of series", &roots.names),
            ("GUIDs of series", &roots.guids),
            ("series records", &roots.records),
            ("extents table", &roots.extents),
            ("retention policies", &roots.policies),
        ] {
            self.tree(name, tree, Whose::Catalog)?;
        }
        let broken_texts = self.tree("texts", &roots.texts, Whose::Catalog)?;
        let broken_tags = self.tree("index of tags", &roots.tags, Whose::Catalog)?;
        let broken_annotations = self.tree("annotations", &roots.annotations, Whose::Catalog)?;
        let policies = crate::catalog::retention::policies(&roots.policies, self.pages);
        self.note("retention policies", policies)?;
        let containers = self.tables(report)?;
        let series = self.catalog(&broken)?;
        report.series = series.len() as u64;
        self.series(&series, report)?;
        self.texts(&series, &broken_texts)?;
        self.annotations(&series, &broken_annotations)?;
        if broken_tags.is_empty() {
            self.tags(&series)?;
        }
        self.delta(&series, report)?;
        for (name, tree) in containers {
            self.container_series(&name, &tree)?;
        }
        Ok(())
    }

    /// Records damage as a finding for the file and then returns `None`; returns all other errors.
    pub(super) fn note<T>(&mut self, what: &str, result: Result<T>) -> Result<Option<T>> {
        self.note_of(Place::File, what, result)
    }

    /// Records damage like `note`, but as a finding for `place`.
    fn note_of<T>(&mut self, place: Place, what: &str, result: Result<T>) -> Result<Option<T>> {
        let error = match result {
            Ok(value) => return Ok(Some(value)),
            Err(error) => error,
        };
        let found = match error.cause() {
            Cause::Store(tidalite_pager::Error::Corrupt(corrupt)) => {
                Finding::new(place, format!("{what}: {corrupt}")).at(corrupt.at)
            }
            Cause::Store(_) => return Err(error),
            _ => Finding::new(place, format!("{what}: {error}")),
        };
        self.find(found);
        Ok(None)
    }

    /// Checks a tree, records each damage of it as a finding, and returns the damages.
    fn tree(&mut self, what: &str, tree: &Tree, whose: Whose) -> Result<Vec<Damage>> {
        let full = match whose {
            Whose::Catalog => what.to_owned(),
            Whose::User => format!("table {what}"),
        };
        self.at(&full);
        let check = &mut *self.check;
        let running = self.pages.running;
        let page_size = self.pages.page_size() as u64;
        let mut claim = |claim: UsedPages| {
            check.claim(claim.addr, claim.pages, &format!("{full}: {}", claim.what));
            running.borrow_mut().done += claim.pages * page_size;
        };
        let mut damages = Vec::new();
        tree.check_each(self.pages, &mut claim, &mut |damage| damages.push(damage))?;
        for damage in &damages {
            let (from, to) = (damage.from.clone(), damage.to.clone());
            let name = what.to_owned();
            let place = match whose {
                Whose::Catalog => Place::Catalog { name, from, to },
                Whose::User => Place::Table { name, from, to },
            };
            self.find(Finding::new(place, &damage.corrupt).at(damage.corrupt.at));
        }
        Ok(damages)
    }

    /// Checks all tables; returns the names and roots of the tables of containers that are sound.
    fn tables(&mut self, report: &mut CheckReport) -> Result<Vec<(String, Tree)>> {
        let mut found = Vec::new();
        let mut containers = Vec::new();
        let entries = self.entries(&self.roots.tables.clone());
        for (name, entry) in self.note("table of tables", entries)?.unwrap_or_default() {
            let name = String::from_utf8_lossy(&name).into_owned();
            let all = Place::Table {
                name: name.clone(),
                from: Vec::new(),
                to: None,
            };
            if let Some(entry) = self.note_of(all, "its root", decode_table_entry(&entry))? {
                let id = entry.id;
                let inline = self.roots.inline.iter().find(|(inline, _)| *inline == id);
                let layout = entry.types.map(|types| types.layout());
                let tree = inline.map_or(entry.tree, |(_, tree)| *tree);
                found.push((id, name, tree, layout));
            }
        }
        for (id, _) in &self.roots.inline {
            if !found.iter().any(|(known, ..)| known == id) {
                self.problem(format!("inline root of table {id}, which has no name"));
            }
        }
        report.tables = found.len() as u64;
        for (id, name, tree, layout) in found {
            if id >= self.roots.next_table || tree.id() != id {
                self.problem(format!("table {name}: its number {id} cannot be"));
            }
            let damages = self.tree(&name, &tree, Whose::User)?;
            if let Some(layout) = layout.filter(|_| damages.is_empty())
                && self.check_layout(layout, &name, &tree)?
                && layout == TableLayout::Containers
            {
                containers.push((name, tree));
            }
        }
        Ok(containers)
    }

    /// Checks the parts of a table with a layout of its own (containers without their series); returns whether it is
    /// sound.
    fn check_layout(&mut self, layout: TableLayout, name: &str, tree: &Tree) -> Result<bool> {
        let (mut problems, r) = (Vec::new(), self.pages);
        let push = &mut |problem| problems.push(problem);
        let (what, checked) = match layout {
            TableLayout::Rows => return Ok(true),
            TableLayout::Hash => (
                "hash table",
                HashReader::open(tree, r).and_then(|table| table.check(push)),
            ),
            TableLayout::Buffered => (
                "buffered table",
                BufferedReader::open(tree, r).and_then(|table| table.check(push)),
            ),
            TableLayout::Topics => (
                "topics",
                TopicsReader::open(tree, r).and_then(|topics| topics.check(push)),
            ),
            TableLayout::Queue => (
                "queue",
                QueueReader::open(tree, r).and_then(|queue| queue.check(push)),
            ),
            TableLayout::Bucket => (
                "bucket",
                BucketReader::open(tree, r).and_then(|bucket| bucket.check(push)),
            ),
            TableLayout::Containers => (
                "containers",
                ContainersReader::open(tree, r).and_then(|table| table.check(push)),
            ),
            TableLayout::Relation => (
                "relation",
                RelationReader::open(tree, r).and_then(|relation| relation.check(push)),
            ),
        };
        let (what, is_sound) = (format!("{what} {name}"), problems.is_empty());
        for problem in problems {
            self.problem(format!("{what}: {problem}"));
        }
        let checked = self.note(&what, checked.map_err(Into::into))?;
        Ok(is_sound && checked.is_some())
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

    /// Reads all readable entries of the catalog of series, skipping the damage in `broken`, which is already reported.
    fn listed(&mut self, broken: &[Damage]) -> Result<Vec<Arc<SeriesInfo>>> {
        let mut listed = Vec::new();
        let whole = self.around("catalog of series", broken, &mut |walk, at| {
            entries::each_from(walk.roots, walk.pages, at, &mut |info| {
                listed.push(Arc::new(info));
            })
        })?;
        self.catalog_is_whole &= whole;
        Ok(listed)
    }

    /// Checks the series of the catalog, and that the trees of names and GUIDs match the series exactly.
    fn catalog(&mut self, broken: &[Damage]) -> Result<BTreeMap<SeriesId, Arc<SeriesInfo>>> {
        let listed = self.listed(broken)?;
        let (mut named, mut with_guid) = (0, 0);
        for info in &listed {
            if info.id.0 >= self.roots.next_series {
                self.problem(format!("{} is beyond the numbers given out", info.id));
            }
            let keys = [
                info.name.as_ref().map(entries::SeriesKey::Name),
                info.guid.as_ref().map(entries::SeriesKey::Guid),
            ];
            named += u64::from(keys[0].is_some());
            with_guid += u64::from(keys[1].is_some());
            for key in keys.into_iter().flatten() {
                let found = entries::find(self.roots, self.pages, key);
                let found = self.note("names of series", found)?.flatten();
                if found != Some(info.id) {
                    self.problem(format!("{} is not found as {}", info.id, info.label()));
                }
            }
        }
        let known = (self.roots.names.len(), self.roots.guids.len());
        if self.catalog_is_whole && (named, with_guid) != known {
            self.problem("names or GUIDs lead to series that are not in the catalog");
        }
        Ok(listed.into_iter().map(|info| (info.id, info)).collect())
    }

    /// Checks the tree of every series, and the tree of extents.
    fn series(
        &mut self,
        series: &BTreeMap<SeriesId, Arc<SeriesInfo>>,
        report: &mut CheckReport,
    ) -> Result<()> {
        let mut leaves = tidalite_series::Check::new();
        let mut records = 0;
        for (id, info) in series {
            let types = info.schema.word_types();
            let tree = stored_tree(&self.roots.records, self.pages, *id, &types);
            let all = Place::series(info, None, Some(EVER));
            let Some(tree) = self.note_of(all, "its record", tree.map_err(Error::from))? else {
                continue;
            };
            records += u64::from(self.has_record(*id)?);
            if tree.types() != types {
                self.problem(format!(
                    "{}: record and catalog disagree on columns",
                    info.label()
                ));
            }
            let check = &mut *self.check;
            let mut claim = |claim: UsedPages| {
                check.claim(claim.addr, claim.pages, claim.what);
            };
            leaves.allow_equal_times(info.several);
            leaves.tree(self.pages, &tree, &mut claim)?;
            self.at(&format!("series {}", info.label()));
        }
        if self.catalog_is_whole && records != self.roots.records.len() {
            self.problem("there are records of series that are not in the catalog");
        }
        let check = &mut *self.check;
        let mut claim = |claim: UsedPages| {
            check.claim(claim.addr, claim.pages, claim.what);
        };
        let found = leaves.extents(self.pages, &self.roots.extents, &mut claim)?;
        report.leaves = found.leaves;
        report.leaf_rows = found.rows;
        for damage in found.damages {
            let info = damage.series.and_then(|id| series.get(&id));
            let place = match info {
                Some(info) => Place::series(info, damage.column, damage.span),
                None => Place::File,
            };
            self.find(Finding::new(place, damage.problem).at(damage.addr));
        }
        Ok(())
    }

    fn has_record(&mut self, id: SeriesId) -> Result<bool> {
        let key = entries::id_key(id);
        let found = self
            .roots
            .records
            .contains(self.pages, &key)
            .map_err(Error::from);
        Ok(self.note("series records", found)?.unwrap_or(false))
    }

    /// Checks the delta: its own invariants, and that its rows belong to series of the catalog.
    fn delta(
        &mut self,
        series: &BTreeMap<SeriesId, Arc<SeriesInfo>>,
        report: &mut CheckReport,
    ) -> Result<()> {
        let delta = Delta::load(self.pages, &self.roots.delta).map_err(Error::from);
        let Some(delta) = self.note_of(Place::whole_delta(), "front", delta)? else {
            return Ok(());
        };
        self.at("front");
        let check = &mut *self.check;
        let mut held = Vec::<LiveRows>::new();
        let mut damages = Vec::new();
        let found = delta.check_each(
            self.pages,
            &mut |claim| {
                check.claim(claim.addr, claim.pages, claim.what);
            },
            &mut |rows| held.push(rows),
            &mut |damage| damages.push(damage),
        )?;
        let mut waiting = Waiting::new(&delta, series.values(), self.catalog_is_whole);
        for damage in damages {
            if self.findings.len() < FINDINGS_MAX {
                let address = damage.corrupt.at;
                let place = waiting.place(damage.hit);
                self.find(Finding::new(place, damage.corrupt).at(address));
            } else {
                self.more += 1;
            }
        }
        report.runs = found.runs;
        report.compactions = found.compactions;
        report.delta_rows = found.rows + found.tail_rows;
        for held in held {
            let Some(info) = series.get(&held.series) else {
                if !self.catalog_is_whole {
                    continue;
                }
                self.problem(format!(
                    "the delta holds rows of {}, which is unknown",
                    held.series
                ));
                continue;
            };
            let (found, own) = (delta.layout(held.class), info.schema.word_types());
            if found != Some(&own[..]) {
                self.problem(format!(
                    "the delta holds rows of {} with the columns {found:?}, its catalog entry says {own:?}",
                    info.label()
                ));
            }
        }
        Ok(())
    }
}
