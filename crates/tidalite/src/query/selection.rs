//! Many series at once: selected by a pattern, grouped by tags, read on a common clock.
//!
//! Series may have different units. Here everything is in nanoseconds since 1970 ([`Timestamp`](crate::Timestamp)),
//! because every unit's step is a whole number of nanoseconds.

use crate::query::units;
use crate::series::aggregate::Aggregate;
use crate::series::helpers::{Helpers, VECTORS_MIN};
use crate::series::read::Series;
use crate::txn::pages::ReadSource;
use crate::txn::read::Reading;
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use crate::types::interval::Interval;
use crate::types::row::Row;
use std::collections::BTreeMap;
use tidalite_codec::Parts;

/// Series opened together in one snapshot; series selected by a pattern are ordered by id.
pub struct Selection<'t> {
    pub(super) series: Vec<Series<'t>>,
}

impl<S: ReadSource> Reading<S> {
    /// Opens the series that a pattern selects; see [`Reading::list`]. Reads the record of each and its rows in the
    /// delta.
    ///
    /// # Errors
    /// `InvalidName` for an invalid pattern; a damaged or unreadable page.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{Database, Grid, Options, Timestamp};
    /// use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// for (host, load) in [("a", 0.5), ("b", 1.5)] {
    ///     let mut series = tx.series(&format!(r#"load{{host="{host}",site="north"}}"#))?;
    ///     series.insert("2014-06-01T00:10:00Z", load)?;
    /// }
    /// tx.commit()?;
    /// let snap = db.begin_read()?;
    /// let chosen = snap.select("load")?;
    /// for group in chosen.groups(&["site"]) {
    ///     let hours = group.windows("value", .., &Grid::hours(1))?;
    ///     assert_eq!(hours[0].aggregate.mean(), Some(1.0));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn select(&self, pattern: &str) -> Result<Selection<'_>> {
        let mut series = Vec::new();
        for info in self.list(pattern)? {
            series.extend(self.open_series(info)?);
        }
        Ok(Selection { series })
    }
}

impl<'t> Selection<'t> {
    /// These series, in this order.
    #[must_use]
    pub fn of(series: Vec<Series<'t>>) -> Self {
        Self { series }
    }

    /// The series, in their order.
    #[must_use]
    pub fn series(&self) -> &[Series<'t>] {
        &self.series
    }

    /// Number of series.
    #[must_use]
    pub fn len(&self) -> usize {
        self.series.len()
    }

    /// True if the pattern selected no series.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// The newest row of each series, in their order; `None` for one without rows.
    ///
    /// # Errors
    /// A damaged or unreadable block.
    pub fn latest(&self) -> Result<Vec<Option<Row>>> {
        self.series.iter().map(Series::latest).collect()
    }

    /// All series as one group.
    #[must_use]
    pub fn as_group(&self) -> Group<'_, 't> {
        Group {
            tags: Vec::new(),
            series: self.series.iter().collect(),
        }
    }

    /// Each series as a group of its own.
    #[must_use]
    pub fn each(&self) -> Vec<Group<'_, 't>> {
        let group = |series| Group {
            tags: Vec::new(),
            series: vec![series],
        };
        self.series.iter().map(group).collect()
    }

    /// One group for each combination of values of these tags, ordered by the values. A series without the tag counts
    /// as having an empty value.
    #[must_use]
    pub fn groups(&self, tags: &[&str]) -> Vec<Group<'_, 't>> {
        self.grouped(|series| {
            let value = |&tag: &&str| (tag.to_owned(), tag_value(series, tag).to_owned());
            tags.iter().map(value).collect()
        })
    }

    /// One group for each combination of metric and tags, ignoring these tags.
    #[must_use]
    pub fn groups_without(&self, tags: &[&str]) -> Vec<Group<'_, 't>> {
        self.grouped(|series| {
            let Some(name) = &series.info().name else {
                return vec![(String::new(), series.info().label())];
            };
            let kept = name
                .tags()
                .iter()
                .filter(|(key, _)| !tags.contains(&key.as_str()));
            // The metric has the empty key, which no tag can have.
            let metric = (String::new(), name.metric().to_owned());
            [metric].into_iter().chain(kept.cloned()).collect()
        })
    }

    fn grouped(&self, key: impl Fn(&Series<'t>) -> Vec<(String, String)>) -> Vec<Group<'_, 't>> {
        let mut groups: BTreeMap<Vec<(String, String)>, Vec<&Series<'t>>> = BTreeMap::new();
        for series in &self.series {
            groups.entry(key(series)).or_default().push(series);
        }
        let group = |(mut tags, series): (Vec<(String, String)>, _)| {
            tags.retain(|(key, _)| !key.is_empty());
            Group { tags, series }
        };
        groups.into_iter().map(group).collect()
    }
}

fn tag_value<'s>(series: &'s Series<'_>, tag: &str) -> &'s str {
    let name = series.info().name.as_ref();
    name.and_then(|name| name.tag(tag)).unwrap_or_default()
}

/// Vectors visited for the statistics of an interval: two nodes of each level, two leaves, two vectors.
const VECTORS_OF_INTERVAL: u64 = 4;

/// Series read as if they were one. Rows of one time are in the order of the series, as in [`Selection::rows`]: the
/// first row of an interval or a window belongs to the first series with a row at the first time, the last row to the
/// last series with a row at the last time.
pub struct Group<'s, 't> {
    pub(super) tags: Vec<(String, String)>,
    pub(super) series: Vec<&'s Series<'t>>,
}

impl<'s, 't> Group<'s, 't> {
    /// The common tags of its series, as far as the grouping used them.
    #[must_use]
    pub fn tags(&self) -> &[(String, String)] {
        &self.tags
    }

    /// Its series, in the order of the selection.
    #[must_use]
    pub fn series(&self) -> &[&'s Series<'t>] {
        &self.series
    }

    /// The number of the column called `name` in each series; all must have it, with one type.
    pub(super) fn column(&self, name: &str) -> Result<Vec<usize>> {
        let mut ty = None;
        let column = |series: &&Series<'_>| {
            let schema = &series.info().schema;
            let problem = |problem: String| Error::from(Cause::Schema { problem });
            let label = series.info().label();
            let column = schema
                .column(name)
                .ok_or_else(|| problem(format!("{label} has no column {name}")))?;
            let own = &schema.columns[column];
            let own = (own.ty, own.nullable);
            let common = *ty.get_or_insert(own);
            if own == common {
                return Ok(column);
            }
            Err(problem(format!(
                "column {name} of {label} is {own:?} (type, nullable), that of the series before it {common:?}"
            )))
        };
        self.series.iter().map(column).collect()
    }

    /// Statistics of the column called `column` over the rows of all series in an interval, from their trees; `None`
    /// for a group without series. Times are nanoseconds since 1970.
    ///
    /// # Errors
    /// `Schema` if a series lacks the column or has it with another type; `Timestamp` if a reported time does not fit
    /// nanoseconds; a damaged or unreadable block.
    pub fn aggregate(&self, column: &str, times: impl Interval) -> Result<Option<Aggregate>> {
        self.summary(column, times, Parts::ALL)
    }

    /// Queries each series, in their order; on several threads if together they visit enough `vectors`.
    pub(super) fn ask_each<T: Send>(
        &self,
        vectors: impl Fn(&Series<'t>) -> Result<u64>,
        ask: impl Fn(usize, &Series<'_>) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let alone = || {
            let each = self.series.iter().enumerate();
            each.map(|(at, series)| ask(at, series)).collect()
        };
        let Some(helpers) = Helpers::of_all(&self.series) else {
            return alone();
        };
        let mut sum = 0;
        for series in &self.series {
            sum += vectors(series)?;
        }
        match sum < VECTORS_MIN {
            true => alone(),
            false => helpers.ask_each(&self.series, ask),
        }
    }

    /// Like `aggregate`, restricted to these figures.
    pub(super) fn summary(
        &self,
        column: &str,
        times: impl Interval,
        parts: Parts,
    ) -> Result<Option<Aggregate>> {
        let columns = self.column(column)?;
        let times = times.ends()?;
        let mut whole: Option<Aggregate> = None;
        let ask = |at: usize, series: &Series<'_>| {
            let unit = series.info().schema.unit;
            let (from, to) = times.in_unit(unit);
            let own = series.between(from, to).summary(columns[at], parts)?;
            units::on_clock(own, unit)
        };
        for own in self.ask_each(|_| Ok(VECTORS_OF_INTERVAL), ask)? {
            match &mut whole {
                Some(whole) => whole.merge_beside(&own),
                None => whole = Some(own),
            }
        }
        Ok(whole)
    }
}

impl Selection<'_> {
    /// Queries each series, on the available threads ([`Options::scan_threads`](crate::Options::scan_threads)), and
    /// returns the results in the order of the series.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tidalite::{Options, Steps};
    /// # use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// # let mut tx = db.begin_write()?;
    /// # for host in ["a", "b"] { tx.series(&format!(r#"load{{host="{host}"}}"#))?.insert(Steps(7), 0.5)?; }
    /// # tx.commit()?;
    /// let snap = db.begin_read()?;
    /// let greatest = snap.select("load")?.in_parallel(|host| Ok(host.query(..).aggregate(1)?.max()))?;
    /// assert_eq!(greatest, [Some((0.5, 7)), Some((0.5, 7))]);
    /// # Ok::<(), tidalite::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error of the first series that fails.
    ///
    /// # Panics
    /// If `ask` panics.
    pub fn in_parallel<T: Send>(
        &self,
        ask: impl Fn(&Series<'_>) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let series: Vec<_> = self.series().iter().collect();
        match Helpers::of_all(&series) {
            Some(helpers) => helpers.ask_each(&series, |_, series| ask(series)),
            None => series.into_iter().map(ask).collect(),
        }
    }
}
