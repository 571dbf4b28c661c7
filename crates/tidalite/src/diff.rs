//! What changed between two versions. What both have is recognised by its pointer and not read.

use crate::catalog::{SeriesInfo, decode_id};
use crate::error::Result;
use crate::pages::Pages;
use crate::range::Range;
use crate::read::ReadTxn;
use crate::retention::Retention;
use crate::series::{EVER, Series};
use crate::write::find_table;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use tidalite_base::{Corrupt, SeriesId};
use tidalite_kv::{Cursor, DEPTH_MAX, Sub, Tree, Value};
use tidalite_pager::Snapshot;

/// One difference between a version and an older one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change<'a> {
    /// A table that the older version does not have. Its entries follow as `Inserted`.
    TableCreated(&'a str),
    /// A table that only the older version has. Its entries are not told one by one.
    TableDropped(&'a str),
    /// An entry that the older version does not have. A nested table is one; its own entries follow.
    Inserted {
        /// Which table.
        table: &'a str,
        /// The keys under which it is nested; empty but for entries of nested tables and of multi-values.
        path: &'a [Vec<u8>],
        /// Its key. Of a table of multi-values its value: its key is then in `path`.
        key: &'a [u8],
    },
    /// An entry whose value differs, or that is a value in one version and a nested table in the other.
    Changed {
        /// Which table.
        table: &'a str,
        /// The keys under which it is nested; empty but for entries of nested tables and of multi-values.
        path: &'a [Vec<u8>],
        /// Its key. Of a table of multi-values its value: its key is then in `path`.
        key: &'a [u8],
    },
    /// An entry that only the older version has. Of a nested table its own entries are not told one by one.
    Removed {
        /// Which table.
        table: &'a str,
        /// The keys under which it is nested; empty but for entries of nested tables and of multi-values.
        path: &'a [Vec<u8>],
        /// Its key. Of a table of multi-values its value: its key is then in `path`.
        key: &'a [u8],
    },
    /// A series that the older version does not have. Its rows follow.
    SeriesCreated(&'a SeriesInfo),
    /// A series that has another name than in the older version.
    SeriesRenamed {
        /// As it was.
        before: &'a SeriesInfo,
        /// As it is.
        after: &'a SeriesInfo,
    },
    /// A series with another merge policy than in the older version, or with more columns.
    SeriesChanged {
        /// As it was.
        before: &'a SeriesInfo,
        /// As it is.
        after: &'a SeriesInfo,
    },
    /// A series that only the older version has. Neither its rows nor its annotations are told.
    SeriesRemoved(&'a SeriesInfo),
    /// An annotation that was set, changed or removed.
    Annotation {
        /// Which series.
        series: &'a SeriesInfo,
        /// Its key.
        key: &'a str,
        /// Its text in the older version; `None` where it was not there.
        before: Option<&'a str>,
        /// Its text; `None` where it is gone.
        after: Option<&'a str>,
    },
    /// A retention policy that was set, changed or removed.
    Retention {
        /// Its name.
        name: &'a str,
        /// As it was, if it was there.
        before: Option<&'a Retention>,
        /// As it is, if it is there.
        after: Option<&'a Retention>,
    },
    /// Rows that differ: of those of both versions from the first to the last time, both included, none is alike.
    Rows {
        /// Which series.
        series: &'a SeriesInfo,
        /// First time.
        from: i64,
        /// Last time.
        to: i64,
    },
}

type Tell<'f> = dyn FnMut(Change<'_>) -> Result<()> + 'f;

impl ReadTxn {
    /// Tells what changed from `base`, an older version of the same file (a pin, or a snapshot that is still held), to
    /// this one: tables first, then retention policies, then series, each with its annotations before its rows; keys and times
    /// ascend. Memory stays bounded however much changed.
    ///
    /// # Errors
    /// Damage in what changed; what `f` returns.
    ///
    /// # Cost
    /// Pages that only one of the two versions has. The names of all tables are walked.
    pub fn diff(&self, base: &Self, f: &mut dyn FnMut(Change<'_>) -> Result<()>) -> Result<()> {
        self.diff_tables(base, f)?;
        self.diff_retentions(base, f)?;
        self.diff_series(base, f)
    }

    fn diff_retentions(&self, base: &Self, f: &mut Tell<'_>) -> Result<()> {
        if self.begun.roots.policies.encode() == base.begun.roots.policies.encode() {
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
            let new = find_table(&self.begun.roots, &self.pages, name)?;
            let old = find_table(&base.begun.roots, &base.pages, name)?;
            match (new, old) {
                (Some((id, tree)), Some((old_id, old_tree))) if id == old_id => {
                    self.diff_table(base, name, &tree, &old_tree, f)?;
                }
                (new, old) => {
                    if old.is_some() {
                        f(Change::TableDropped(name))?;
                    }
                    if let Some((id, tree)) = new {
                        f(Change::TableCreated(name))?;
                        self.diff_table(base, name, &tree, &Tree::new(id), f)?;
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
        new: &Tree,
        old: &Tree,
        f: &mut Tell<'_>,
    ) -> Result<()> {
        let mut sides = Sides {
            new: &self.pages,
            old: &base.pages,
            table,
            path: Vec::new(),
            multi: new.is_multi(),
            f,
        };
        sides.tables(&Sub::of(*new), &Sub::of(*old))
    }

    fn diff_series(&self, base: &Self, f: &mut Tell<'_>) -> Result<()> {
        // Series that are new or gone, where the trees of a series may differ, and where its rows in the front may.
        let mut ids = BTreeSet::new();
        // The keys of all three trees begin with the series' number.
        let trees = |txn: &Self| {
            [
                txn.begun.roots.series,
                txn.begun.roots.records,
                txn.begun.roots.annotations,
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
        self.begun.front.changed_since(
            &self.pages,
            &base.begun.front,
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
            diff_series(&series, older.as_ref(), late, f)?;
        }
        Ok(())
    }

    /// The times, first and last of each range included, at which the rows of a series differ from those of `base`,
    /// an older version of the same file: of the rows of both versions within a range none is alike. Ascending;
    /// nothing for a series that neither has.
    ///
    /// # Errors
    /// Damage in what changed.
    ///
    /// # Cost
    /// Leaves and waiting rows that only one of the versions has.
    pub fn changed_ranges(&self, base: &Self, id: SeriesId) -> Result<Vec<(i64, i64)>> {
        let (series, older) = (self.series_by_id(id)?, base.series_by_id(id)?);
        // From nothing to a series and from a series to nothing the same rows differ.
        let (series, older) = match (series, older) {
            (Some(series), older) => (series, older),
            (None, Some(older)) => (older, None),
            (None, None) => return Ok(Vec::new()),
        };
        let mut late = Vec::new();
        self.begun.front.changed_since(
            &self.pages,
            &base.begun.front,
            &base.pages,
            &mut |changed, from, to| {
                if changed == id {
                    merge_range(&mut late, (from, to));
                }
                Ok(())
            },
        )?;
        let mut ranges = Vec::new();
        diff_series(&series, older.as_ref(), late, &mut |change| {
            if let Change::Rows { from, to, .. } = change {
                ranges.push((from, to));
            }
            Ok(())
        })?;
        Ok(ranges)
    }
}

/// Calls `f` with what only one of two lists has, or both with different values; they are in the order of their keys.
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

/// Tells the rows that differ. `ranges`: where the front may differ.
fn diff_series(
    series: &Series<'_>,
    older: Option<&Series<'_>>,
    mut ranges: Vec<(i64, i64)>,
    f: &mut Tell<'_>,
) -> Result<()> {
    match older {
        Some(older) => series.leaves_changed_since(older, &mut ranges)?,
        None => ranges = vec![EVER],
    }
    ranges.sort_unstable();
    for (from, to) in joined(ranges) {
        diff_rows(series, older, (from, to), f)?;
    }
    Ok(())
}

/// Two versions of a table while they are compared.
struct Sides<'a, 'f> {
    new: &'a Snapshot,
    old: &'a Snapshot,
    table: &'a str,
    /// Keys of the nested tables on the way.
    path: Vec<Vec<u8>>,
    /// Sets of values are told value by value, and not as tables.
    multi: bool,
    f: &'a mut Tell<'f>,
}

impl Sides<'_, '_> {
    /// Compares two versions of a table, nested or not. Recursion is as deep as tables are nested.
    fn tables(&mut self, new: &Sub<'_>, old: &Sub<'_>) -> Result<()> {
        if self.path.len() > DEPTH_MAX {
            let found = format!("{} tables in one another", self.path.len());
            return Err(Corrupt::new("nested table", 0, found, DEPTH_MAX).into());
        }
        let (Some(new_tree), Some(old_tree)) = (new.tree(), old.tree()) else {
            return self.entries((new, old), (&[], None));
        };
        let mut failed = None;
        let (pages, base) = (self.new, self.old);
        let walked = new_tree.changed_since(pages, old_tree, base, &mut |from, to| {
            self.entries((new, old), (from, to)).map_err(|error| {
                failed = Some(error);
                tidalite_pager::Error::Cancelled
            })
        });
        match failed {
            Some(error) => Err(error),
            None => Ok(walked?),
        }
    }

    /// Merges the entries of a range of keys.
    fn entries(
        &mut self,
        (new, old): (&Sub<'_>, &Sub<'_>),
        (from, to): (&[u8], Option<&[u8]>),
    ) -> Result<()> {
        let inside = |key: &[u8]| to.is_none_or(|to| key < to);
        let (mut a, mut b) = (new.cursor(self.new)?, old.cursor(self.old)?);
        let mut there_a = a.seek_ge(from)? && inside(a.key());
        let mut there_b = b.seek_ge(from)? && inside(b.key());
        while there_a || there_b {
            let order = match (there_a, there_b) {
                (true, true) => a.key().cmp(b.key()),
                (true, false) => Ordering::Less,
                _ => Ordering::Greater,
            };
            match order {
                Ordering::Less => self.entry(Some(&a), None)?,
                Ordering::Greater => self.entry(None, Some(&b))?,
                Ordering::Equal => self.entry(Some(&a), Some(&b))?,
            }
            if order.is_le() {
                there_a = a.next()? && inside(a.key());
            }
            if order.is_ge() {
                there_b = b.next()? && inside(b.key());
            }
        }
        Ok(())
    }

    /// One key in both versions, or in one.
    fn entry(&mut self, new: Option<&At<'_>>, old: Option<&At<'_>>) -> Result<()> {
        if self.multi && self.path.is_empty() {
            return self.sets(new, old);
        }
        let (table, path) = (self.table, &self.path[..]);
        match (new, old) {
            (Some(new), None) => {
                let key = new.key();
                (self.f)(Change::Inserted { table, path, key })?;
                if new.is_nested() {
                    let below = new.nested()?;
                    return self.below(new.key(), &below, &Sub::of(Tree::new(0)));
                }
                Ok(())
            }
            (None, Some(old)) => {
                let key = old.key();
                (self.f)(Change::Removed { table, path, key })
            }
            (Some(new), Some(old)) => {
                if new.is_nested() && old.is_nested() {
                    return self.below(new.key(), &new.nested()?, &old.nested()?);
                }
                let same =
                    !new.is_nested() && !old.is_nested() && alike(&new.value()?, &old.value()?)?;
                if same {
                    return Ok(());
                }
                let key = new.key();
                (self.f)(Change::Changed { table, path, key })?;
                if new.is_nested() {
                    let below = new.nested()?;
                    return self.below(new.key(), &below, &Sub::of(Tree::new(0)));
                }
                Ok(())
            }
            (None, None) => Ok(()),
        }
    }

    fn below(&mut self, key: &[u8], new: &Sub<'_>, old: &Sub<'_>) -> Result<()> {
        self.path.push(key.to_vec());
        let done = self.tables(new, old);
        self.path.pop();
        done
    }

    /// The values of a key in both versions, or in one.
    fn sets(&mut self, new: Option<&At<'_>>, old: Option<&At<'_>>) -> Result<()> {
        let Some(key) = new.or(old).map(|at| at.key().to_vec()) else {
            return Ok(());
        };
        let (new, old) = (Set::of(new)?, Set::of(old)?);
        if let (Set::Table(new), Set::Table(old)) = (&new, &old) {
            return self.below(&key, new, old);
        }
        // One of the two is a single value, which stands in the row itself.
        let (pages, base) = (self.new, self.old);
        self.path.push(key);
        let done = new.each(pages, &mut |key| {
            if !old.has(base, key)? {
                let (table, path) = (self.table, &self.path[..]);
                (self.f)(Change::Inserted { table, path, key })?;
            }
            Ok(())
        });
        let done = done.and_then(|()| {
            old.each(base, &mut |key| {
                if !new.has(pages, key)? {
                    let (table, path) = (self.table, &self.path[..]);
                    (self.f)(Change::Removed { table, path, key })?;
                }
                Ok(())
            })
        });
        self.path.pop();
        done
    }
}

/// A place in one version.
type At<'p> = Cursor<'p, Snapshot>;

/// The values of a key.
enum Set<'p> {
    None,
    One(Vec<u8>),
    Table(Sub<'p>),
}

impl<'p> Set<'p> {
    fn of(at: Option<&At<'p>>) -> Result<Self> {
        Ok(match at {
            None => Self::None,
            Some(at) if at.is_nested() => Self::Table(at.nested()?),
            Some(at) => Self::One(at.value()?.to_vec()?),
        })
    }

    fn has(&self, pages: &Snapshot, value: &[u8]) -> Result<bool> {
        match self {
            Self::None => Ok(false),
            Self::One(one) => Ok(one == value),
            Self::Table(set) => Ok(set.contains(pages, value)?),
        }
    }

    fn each(&self, pages: &Snapshot, f: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        match self {
            Self::None => Ok(()),
            Self::One(one) => f(one),
            Self::Table(set) => {
                let mut cursor = set.cursor(pages)?;
                while cursor.next()? {
                    f(cursor.key())?;
                }
                Ok(())
            }
        }
    }
}

fn alike(a: &Value<'_>, b: &Value<'_>) -> Result<bool> {
    if a.len() != b.len() {
        return Ok(false);
    }
    if let (Some(a), Some(b)) = (a.as_slice(), b.as_slice()) {
        return Ok(a == b);
    }
    // Values of one length in extents are cut alike; an inline one is a single piece.
    let (mut a, mut b) = (a.chunks(), b.chunks());
    let (mut left, mut right): (Vec<u8>, Vec<u8>) = (Vec::new(), Vec::new());
    loop {
        if left.is_empty() {
            match a.next() {
                Some(piece) => left.extend_from_slice(&piece?),
                None => return Ok(right.is_empty() && b.next().is_none()),
            }
        }
        if right.is_empty() {
            match b.next() {
                Some(piece) => right.extend_from_slice(&piece?),
                None => return Ok(false),
            }
        }
        let common = left.len().min(right.len());
        if left[..common] != right[..common] {
            return Ok(false);
        }
        left.drain(..common);
        right.drain(..common);
    }
}

/// Ranges of a series that are kept apart; beyond that they are joined to one.
const RANGES_MAX: usize = 1024;

fn merge_range(ranges: &mut Vec<(i64, i64)>, new: (i64, i64)) {
    ranges.push(new);
    if ranges.len() > RANGES_MAX {
        ranges.sort_unstable();
        *ranges = joined(std::mem::take(ranges));
        if ranges.len() > RANGES_MAX / 2 {
            let last = ranges.iter().map(|(_, to)| *to).max().unwrap_or_default();
            *ranges = vec![(ranges[0].0, last)];
        }
    }
}

/// Sorted ranges without overlap.
fn joined(sorted: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    let mut found: Vec<(i64, i64)> = Vec::new();
    for (from, to) in sorted {
        match found.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => found.push((from, to)),
        }
    }
    found
}

/// One version's rows, a vector at a time.
struct Side<'s> {
    scan: Option<tidalite_series::Scan<'s, Pages<'s>>>,
    times: Vec<i64>,
    words: Vec<Vec<u64>>,
    at: usize,
}

impl<'s> Side<'s> {
    fn new(range: Option<&'s Range<'s>>) -> Self {
        Self {
            scan: range.map(|range| range.scan()),
            times: Vec::new(),
            words: Vec::new(),
            at: 0,
        }
    }

    /// `fills`: a word a column, for those that a version does not have yet.
    fn time(&mut self, fills: &[u64]) -> Result<Option<i64>> {
        if self.at == self.times.len()
            && let Some(scan) = &mut self.scan
        {
            self.at = 0;
            self.times.clear();
            self.words.clear();
            match scan.next()? {
                Some(vector) => {
                    self.times.extend_from_slice(vector.times());
                    let rows = vector.times().len();
                    let column = |(c, &fill): (usize, &u64)| {
                        let words = vector.words(c);
                        if words.is_empty() {
                            vec![fill; rows]
                        } else {
                            words.to_vec()
                        }
                    };
                    self.words = fills.iter().enumerate().map(column).collect();
                }
                None => self.scan = None,
            }
        }
        Ok(self.times.get(self.at).copied())
    }

    fn alike(&self, other: &Self) -> bool {
        let columns = self.words.iter().zip(&other.words);
        columns.into_iter().all(|(a, b)| a[self.at] == b[other.at])
    }
}

fn diff_rows(
    new: &Series<'_>,
    old: Option<&Series<'_>>,
    (from, to): (i64, i64),
    f: &mut Tell<'_>,
) -> Result<()> {
    let types = new.info().schema.word_types();
    let fills: Vec<u64> = types.iter().map(|ty| ty.fill()).collect();
    let new_range = new.between(from..=to);
    let old_range = old.map(|old| old.between(from..=to));
    let (mut a, mut b) = (Side::new(Some(&new_range)), Side::new(old_range.as_ref()));
    let mut open: Option<(i64, i64)> = None;
    let mut close = |open: &mut Option<(i64, i64)>| match open.take() {
        Some((from, to)) => f(Change::Rows {
            series: new.info(),
            from,
            to,
        }),
        None => Ok(()),
    };
    loop {
        let (left, right) = (a.time(&fills)?, b.time(&fills)?);
        let time = match (left, right) {
            (None, None) => break,
            (Some(a), Some(b)) => a.min(b),
            (Some(t), None) | (None, Some(t)) => t,
        };
        if left == right && a.alike(&b) {
            close(&mut open)?;
        } else {
            open.get_or_insert((time, time)).1 = time;
        }
        a.at += usize::from(left == Some(time));
        b.at += usize::from(right == Some(time));
    }
    close(&mut open)
}
