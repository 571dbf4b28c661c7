//! Differences between two versions. Parts shared by both versions are recognised by their equal pointers and not read.
//!
//! ```text
//! tables    pairs of tables, nested ones and sets of values
//! buffered  entries of buffered tables
//! rows      rows of series
//! ```

mod buffered;
mod change;
mod rows;
mod tables;

pub use change::Change;

use crate::catalog::entries::decode_id;
use crate::catalog::table_roots::{TableEntry, find_table};
use crate::series::read::Series;
use crate::txn::read::ReadTxn;
use crate::types::error::Result;
use crate::types::table_types::{TableLayout, TableTypes};
use change::Tell;
use rows::{diff_series, joined, merge_range};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use tables::Sides;
use tidalite_base::SeriesId;
use tidalite_index::hash_records;
use tidalite_kv::{TableReader, Tree};
use tidalite_messages::{container_rows, object_rows, queue_rows, topic_rows};
use tidalite_relations::{RelationReader, relation_rows};

/// Opens the nested table of a table from which the rest of the table follows.
type PrimaryRows =
    for<'r> fn(&Tree, &'r tidalite_pager::Snapshot) -> tidalite_pager::Result<TableReader<'r>>;

impl ReadTxn {
    /// Reports to `f` the changes from `base`, an older version of the same file (a pin, or a snapshot still held), to
    /// this version: tables first, then retention policies, then series, each with its annotations before its rows;
    /// keys and times ascend. Memory is bounded for any amount of changes.
    ///
    /// Changes of a relation are its schema, if that differs, and then its rows one by one, as encoded keys and values.
    ///
    /// # Errors
    /// Damage in changed parts; errors returned by `f`.
    ///
    /// # Cost
    /// Reads the pages that only one of the two versions has; a changed buffered table is read completely in both
    /// versions. Walks the names of all tables.
    pub fn diff(&self, base: &Self, f: &mut dyn FnMut(Change<'_>) -> Result<()>) -> Result<()> {
        self.diff_tables(base, f)?;
        self.diff_retentions(base, f)?;
        self.diff_series(base, f)
    }

    fn diff_retentions(&self, base: &Self, f: &mut Tell<'_>) -> Result<()> {
        if self.cache.roots.policies.encode() == base.cache.roots.policies.encode() {
            return Ok(());
        }
        each_difference(
            &base.retentions()?,
            &self.retentions()?,
            |name, before, after| {
                f(Change::Retention {
                    name,
                    before,
                    after,
                })
            },
        )
    }

    fn diff_tables(&self, base: &Self, f: &mut Tell<'_>) -> Result<()> {
        let mut names: BTreeSet<String> = self.tables()?.into_iter().collect();
        names.extend(base.tables()?);
        for name in &names {
            let new = find_table(&self.cache.roots, &self.pages, name)?;
            let old = find_table(&base.cache.roots, &base.pages, name)?;
            match (new, old) {
                (Some(new), Some(old)) if new.id == old.id => {
                    self.diff_table(base, name, &new, &old.tree, f)?;
                }
                (new, old) => {
                    if old.is_some() {
                        f(Change::TableDropped(name))?;
                    }
                    if let Some(new) = new {
                        f(Change::TableCreated(name))?;
                        self.diff_table(base, name, &new, &Tree::new(new.id), f)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn diff_table(
        &self,
        base: &Self,
        table: &str,
        new: &TableEntry,
        old: &Tree,
        f: &mut Tell<'_>,
    ) -> Result<()> {
        let layout = new.types.as_ref().map(TableTypes::layout);
        let new = &new.tree;
        let mut sides = Sides {
            new: &self.pages,
            old: &base.pages,
            table,
            path: Vec::new(),
            multi: new.is_multi(),
            met: HashSet::new(),
            f,
        };
        if layout == Some(TableLayout::Hash) {
            let new = hash_records(new, &self.pages)?;
            return sides.tables(&new, &hash_records(old, &base.pages)?);
        }
        let primary: Option<PrimaryRows> = match layout {
            Some(TableLayout::Topics) => Some(topic_rows),
            Some(TableLayout::Queue) => Some(queue_rows),
            Some(TableLayout::Bucket) => Some(object_rows),
            Some(TableLayout::Containers) => Some(container_rows),
            Some(TableLayout::Relation) => Some(relation_rows),
            _ => None,
        };
        if layout == Some(TableLayout::Relation) && !old.is_empty() && new != old {
            let before = RelationReader::open(old, &base.pages)?;
            let after = RelationReader::open(new, &self.pages)?;
            let (before, after) = (before.schema(), after.schema());
            if before != after {
                (sides.f)(Change::SchemaChanged {
                    table,
                    before,
                    after,
                })?;
            }
        }
        if let Some(rows) = primary {
            let new = rows(new, &self.pages)?;
            return sides.tables(&new, &rows(old, &base.pages)?);
        }
        if layout == Some(TableLayout::Buffered) {
            if new == old {
                return Ok(());
            }
            return buffered::differences(table, (new, &self.pages), (old, &base.pages), sides.f);
        }
        sides.tables(&TableReader::of(*new), &TableReader::of(*old))
    }

    fn diff_series(&self, base: &Self, f: &mut Tell<'_>) -> Result<()> {
        // Ids of series that were created or removed, whose trees may differ, or whose rows in the delta may differ.
        let mut ids = BTreeSet::new();
        // The keys of all three trees begin with the series id.
        let trees = |txn: &Self| {
            [
                txn.cache.roots.series,
                txn.cache.roots.records,
                txn.cache.roots.annotations,
            ]
        };
        for (new, old) in trees(self).iter().zip(&trees(base)) {
            new.changed_since(&self.pages, old, &base.pages, &mut |from, to| {
                for (tree, pages) in [(new, &self.pages), (old, &base.pages)] {
                    let mut cursor = tree.cursor(pages);
                    let mut there = cursor.seek_ge(from)?;
                    while there && to.is_none_or(|to| cursor.key() < to) {
                        let key = cursor.key();
                        ids.insert(decode_id(key.get(..8).unwrap_or(key))?);
                        there = cursor.next()?;
                    }
                }
                Ok(())
            })?;
        }
        let mut late: BTreeMap<SeriesId, Vec<(i64, i64)>> = BTreeMap::new();
        self.cache.delta.changed_since(
            &self.pages,
            &base.cache.delta,
            &base.pages,
            &mut |id, from, to| {
                merge_range(late.entry(id).or_default(), (from, to));
                Ok(())
            },
        )?;
        ids.extend(late.keys());
        for id in ids {
            let (series, older) = (self.series_by_id(id)?, base.series_by_id(id)?);
            let Some(series) = series else {
                if let Some(older) = older {
                    f(Change::SeriesRemoved(older.info()))?;
                }
                continue;
            };
            match older.as_ref().map(Series::info) {
                None => f(Change::SeriesCreated(series.info()))?,
                Some(before) => {
                    let after = series.info();
                    if before.name != after.name {
                        f(Change::SeriesRenamed { before, after })?;
                    }
                    if (before.merge, &before.schema) != (after.merge, &after.schema) {
                        f(Change::SeriesChanged { before, after })?;
                    }
                }
            }
            let notes = match &older {
                Some(older) => older.annotations()?,
                None => Vec::new(),
            };
            each_difference(&notes, &series.annotations()?, |key, before, after| {
                f(Change::Annotation {
                    series: series.info(),
                    key,
                    before: before.map(String::as_str),
                    after: after.map(String::as_str),
                })
            })?;
            let late = late.remove(&id).unwrap_or_default();
            diff_series(&series, older.as_ref(), late, None, f)?;
        }
        Ok(())
    }

    /// The ranges of times, both ends included, in which the rows of a series differ from `base`, an older version of
    /// the same file: within a range no row is equal in both versions. The ranges ascend; none is returned for a series
    /// that neither version has.
    ///
    /// # Errors
    /// Damage in changed parts.
    ///
    /// # Cost
    /// Reads leaves and rows in the delta that only one of the versions has.
    pub fn changed_ranges(&self, base: &Self, id: SeriesId) -> Result<Vec<(i64, i64)>> {
        self.ranges_that_differ(base, id, None)
    }

    /// Like `changed_ranges`, but coarser and cheaper: the ranges contain every time at which rows differ, and possibly
    /// other times. Leaves that span at most `resolution` steps of the series are reported without a comparison, even
    /// if they were rewritten with equal rows, and ranges at most that far apart are joined. BTrDB calls these the
    /// changed ranges of a resolution (Andersen and Culler, FAST 2016).
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{Options, Steps};
    /// use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let mut series = tx.series("power")?;
    /// let id = series.id();
    /// for time in [0_i64, 25, 1_000] {
    ///     series.insert(Steps(time), 1.0)?;
    /// }
    /// tx.commit()?;
    /// let before = db.begin_read()?;
    /// let mut tx = db.begin_write()?;
    /// for time in [10_i64, 20, 30, 5_000] {
    ///     tx.series("power")?.insert(Steps(time), 2.0)?;
    /// }
    /// tx.commit()?;
    /// let now = db.begin_read()?;
    /// assert_eq!(now.changed_ranges(&before, id)?, [(10, 20), (30, 30), (5_000, 5_000)]);
    /// assert_eq!(now.changed_ranges_within(&before, id, 100)?, [(10, 30), (5_000, 5_000)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Damage in changed parts.
    ///
    /// # Cost
    /// Reads nodes and rows in the delta that only one of the versions has, and only those leaves that span more than
    /// `resolution`, alone or together with leaves that overlap them.
    pub fn changed_ranges_within(
        &self,
        base: &Self,
        id: SeriesId,
        resolution: u64,
    ) -> Result<Vec<(i64, i64)>> {
        self.ranges_that_differ(base, id, Some(resolution))
    }

    fn ranges_that_differ(
        &self,
        base: &Self,
        id: SeriesId,
        resolution: Option<u64>,
    ) -> Result<Vec<(i64, i64)>> {
        let (series, older) = (self.series_by_id(id)?, base.series_by_id(id)?);
        // If one version lacks the series, it does not matter which: every range with rows differs.
        let (series, older) = match (series, older) {
            (Some(series), older) => (series, older),
            (None, Some(older)) => (older, None),
            (None, None) => return Ok(Vec::new()),
        };
        let mut late = Vec::new();
        self.cache.delta.changed_since(
            &self.pages,
            &base.cache.delta,
            &base.pages,
            &mut |changed, from, to| {
                if changed == id {
                    merge_range(&mut late, (from, to));
                }
                Ok(())
            },
        )?;
        let mut ranges = Vec::new();
        diff_series(&series, older.as_ref(), late, resolution, &mut |change| {
            if let Change::Rows { from, to, .. } = change {
                ranges.push((from, to));
            }
            Ok(())
        })?;
        Ok(joined(ranges, resolution.unwrap_or(0)))
    }
}

/// Calls `f` with the items that only one of two lists has, or that have different values in the lists. Both lists must
/// be in key order.
fn each_difference<T: PartialEq>(
    before: &[(String, T)],
    after: &[(String, T)],
    mut f: impl FnMut(&str, Option<&T>, Option<&T>) -> Result<()>,
) -> Result<()> {
    let (mut before, mut after) = (before.iter().peekable(), after.iter().peekable());
    loop {
        let order = match (before.peek(), after.peek()) {
            (None, None) => return Ok(()),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((old, _)), Some((new, _))) => old.cmp(new),
        };
        let old = before.next_if(|_| order.is_le());
        let new = after.next_if(|_| order.is_ge());
        let (was, is) = (old.map(|(_, old)| old), new.map(|(_, new)| new));
        if let Some((key, _)) = old.or(new)
            && was != is
        {
            f(key, was, is)?;
        }
    }
}
