//! A query of many series: selected by a pattern, grouped by tags, with all times on one clock.

use crate::query::selection::Selection;
use crate::query::units;
use crate::series::aggregate::Aggregate;
use crate::series::figures::{AllFigures, Figures};
use crate::series::filter::ValueFilter;
use crate::series::helpers::{Helpers, VECTORS_MIN};
use crate::series::nearest::Direction;
use crate::series::query::Query;
use crate::series::read::Series;
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use crate::types::interval::{Ends, Interval};
use crate::types::into_column::IntoColumn;
use std::collections::BTreeMap;
use std::ops::RangeBounds;
use std::sync::Arc;
use tidalite_series::ValueRange;

/// Estimated cost of reading the statistics of an interval from a series' tree, in vectors visited: two nodes of each
/// level, two leaves and two vectors are read.
const VECTORS_OF_INTERVAL: u64 = 4;

/// A series of the query, with the filters on its rows.
#[derive(Clone)]
pub(super) struct Member<'s, 't> {
    pub(super) series: &'s Series<'t>,
    pub(super) filters: Vec<ValueRange>,
}

/// A query of the rows of several series in an interval, read as if they were one series; returned by
/// [`Selection::query`]. All times are nanoseconds since 1970. The query is built step by step, as a [`Query`] of one
/// series is, and reads no rows until a call asks for rows or statistics, which also reports the errors of the steps.
///
/// Rows of one time are in the order of the series: the first row of an interval or a window belongs to the first
/// series with a row at the first time, the last row to the last series with a row at the last time.
#[derive(Clone)]
pub struct SelectionQuery<'s, 't, F = AllFigures> {
    tags: Vec<(String, String)>,
    pub(super) members: Vec<Member<'s, 't>>,
    times: Ends,
    pub(super) direction: Direction,
    pub(super) figures: F,
    /// The error of a step that built the query; the call that asks for rows or statistics reports it.
    refused: Option<Arc<Error>>,
}

impl<'t> Selection<'t> {
    /// Creates a query of the rows of all series in an [`Interval`]. Opens the series if no query has done so before.
    /// If that fails, or if an end of the interval is a text that is not a time, the call that asks for rows or
    /// statistics reports the error.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{Figure, Grid, Options, Timestamp};
    /// use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// for (host, load) in [("a", 0.5), ("b", 1.5)] {
    ///     tx.series(&format!(r#"load{{host="{host}"}}"#))?.insert(Timestamp(7), load)?;
    /// }
    /// tx.commit()?;
    /// let snap = db.begin_read()?;
    /// let load = snap.select("load")?;
    /// let means = load.query(..).figures(Figure::Mean).windows(&Grid::hours(1), "value")?;
    /// assert_eq!((means[0].start, means[0].aggregate), (Timestamp(0), Some(1.0)));
    /// for host in load.query(..).filter("value", 1.0..).group_by(["host"]) {
    ///     let rows = host.aggregate("value")?.map_or(0, |all| all.count());
    ///     assert_eq!(rows, u64::from(host.tags()[0].1 == "b"));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn query(&self, times: impl Interval) -> SelectionQuery<'_, 't> {
        let refuse = |error| Some(Arc::new(error));
        let (times, wrong_times) = match times.ends() {
            Ok(times) => (times, None),
            Err(error) => (Ends::ALL, refuse(error)),
        };
        let (series, unreadable) = match self.series() {
            Ok(series) => (series, None),
            Err(error) => (&[][..], refuse(error)),
        };
        let member = |series| Member {
            series,
            filters: Vec::new(),
        };
        SelectionQuery {
            tags: Vec::new(),
            members: series.iter().map(member).collect(),
            times,
            direction: Direction::Forward,
            figures: AllFigures,
            refused: wrong_times.or(unreadable),
        }
    }
}

impl<'s, 't, F: Figures> SelectionQuery<'s, 't, F> {
    /// Reverses the order of [rows](Self::rows) and [joined rows](Self::join): the last rows come first.
    #[must_use]
    pub fn reverse(mut self) -> Self {
        self.direction = match self.direction {
            Direction::Forward => Direction::Backward,
            Direction::Backward => Direction::Forward,
        };
        self
    }

    /// Selects the rows whose value in the column called `column` lies in `values`, as [`Query::filter`] does. All
    /// series must have the column.
    #[must_use]
    pub fn filter(mut self, column: &str, values: impl RangeBounds<f64>) -> Self {
        let bounds = (values.start_bound().cloned(), values.end_bound().cloned());
        for place in 0..self.members.len() {
            self = self.filter_series(place, column, bounds);
        }
        self
    }

    /// Selects rows like [`filter`](Self::filter), in the series with this index. In a [join](Self::join) a result then
    /// requires that this series has a row there, and that the value of this row matches.
    #[must_use]
    pub fn filter_series(
        mut self,
        series: usize,
        column: impl IntoColumn,
        values: impl RangeBounds<f64>,
    ) -> Self {
        let count = self.members.len();
        let range = self.members.get(series).map_or_else(
            || {
                let problem = format!("there are {count} series, filtered is number {series}");
                Err(Error::from(Cause::Schema { problem }))
            },
            |member| {
                let column = member.series.column(column)?;
                ValueFilter::new(column, values).range(&member.series.info().schema.columns)
            },
        );
        match range {
            Ok(range) => self.members[series].filters.push(range),
            Err(error) => {
                self.refused.get_or_insert_with(|| Arc::new(error));
            }
        }
        self
    }

    /// Restricts the query to these statistics, as [`Query::figures`] does.
    #[must_use]
    pub fn figures<G: Figures>(self, figures: G) -> SelectionQuery<'s, 't, G> {
        SelectionQuery {
            tags: self.tags,
            members: self.members,
            times: self.times,
            direction: self.direction,
            figures,
            refused: self.refused,
        }
    }

    /// Restricts the query to the series with this metric. A series without a name has no metric.
    #[must_use]
    pub fn metric(mut self, metric: &str) -> Self {
        self.members.retain(|member| {
            let name = member.series.info().name.as_ref();
            name.is_some_and(|name| name.metric() == metric)
        });
        self
    }

    /// Divides the query into one query for each series.
    #[must_use]
    pub fn each(self) -> Vec<Self> {
        if self.members.is_empty() && self.refused.is_some() {
            return vec![self];
        }
        let one = |member: &Member<'s, 't>| self.of(Vec::new(), vec![member.clone()]);
        self.members.iter().map(one).collect()
    }

    /// Divides the query into one query for each combination of values of these tags, ordered by the values. A series
    /// without one of the tags counts as having an empty value.
    #[must_use]
    pub fn group_by<T: AsRef<str>>(self, tags: impl IntoIterator<Item = T>) -> Vec<Self> {
        let tags: Vec<T> = tags.into_iter().collect();
        self.grouped(|series| {
            let value = |tag: &T| {
                let tag = tag.as_ref();
                (tag.to_owned(), tag_value(series, tag).to_owned())
            };
            tags.iter().map(value).collect()
        })
    }

    /// Divides the query into one query for each combination of metric and tags, ignoring these tags.
    #[must_use]
    pub fn without<T: AsRef<str>>(self, tags: impl IntoIterator<Item = T>) -> Vec<Self> {
        let tags: Vec<T> = tags.into_iter().collect();
        self.grouped(|series| {
            let Some(name) = &series.info().name else {
                return vec![(String::new(), series.info().label())];
            };
            let ignored = |key: &str| tags.iter().any(|tag| tag.as_ref() == key);
            let kept = name.tags().iter().filter(|(key, _)| !ignored(key));
            // The metric is stored under the empty key, which no tag can have.
            let metric = (String::new(), name.metric().to_owned());
            [metric].into_iter().chain(kept.cloned()).collect()
        })
    }

    fn grouped(self, key: impl Fn(&Series<'t>) -> Vec<(String, String)>) -> Vec<Self> {
        // A query of series that cannot be read stays one query, which returns the error.
        if self.members.is_empty() && self.refused.is_some() {
            return vec![self];
        }
        let mut groups: BTreeMap<Vec<(String, String)>, Vec<Member<'s, 't>>> = BTreeMap::new();
        for member in &self.members {
            let group = groups.entry(key(member.series)).or_default();
            group.push(member.clone());
        }
        let group = |(mut tags, members): (Vec<(String, String)>, _)| {
            tags.retain(|(key, _)| !key.is_empty());
            self.of(tags, members)
        };
        groups.into_iter().map(group).collect()
    }

    /// Returns this query, restricted to these series.
    fn of(&self, tags: Vec<(String, String)>, members: Vec<Member<'s, 't>>) -> Self {
        Self {
            tags,
            members,
            times: self.times,
            direction: self.direction,
            figures: self.figures,
            refused: self.refused.clone(),
        }
    }

    /// The tags that all series of this query have in common, as far as the query was grouped by them.
    #[must_use]
    pub fn tags(&self) -> &[(String, String)] {
        &self.tags
    }

    /// The series of this query, in the order of the selection.
    pub fn series(&self) -> impl ExactSizeIterator<Item = &'s Series<'t>> + use<'s, 't, '_, F> {
        self.members.iter().map(|member| member.series)
    }

    /// Returns the interval, or the error of a step that built the query.
    pub(super) fn times(&self) -> Result<Ends> {
        match &self.refused {
            Some(error) => Err(error.again()),
            None => Ok(self.times),
        }
    }

    /// The query of a single series, which is the series at index `place` or a copy of that series in another thread.
    pub(super) fn one<'n>(&self, place: usize, series: &'n Series<'n>) -> Query<'n> {
        let (from, to) = self.times.in_unit(series.info().schema.unit);
        Query {
            filters: self.members[place].filters.clone(),
            ..series.between(from, to)
        }
    }

    /// The number of the column called `name` in each series. All series must have the column, with the same type.
    pub(super) fn column(&self, name: &str) -> Result<Vec<usize>> {
        let mut ty = None;
        let column = |member: &Member<'_, '_>| {
            let series = member.series;
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
        self.members.iter().map(column).collect()
    }

    /// Calls `ask` for each series and returns the results in the order of the series. Uses several threads if the
    /// queries together visit enough vectors, as estimated by `vectors`.
    pub(super) fn ask_each<T: Send>(
        &self,
        vectors: impl Fn(&Series<'t>) -> Result<u64>,
        ask: impl Fn(usize, &Series<'_>) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let series: Vec<_> = self.series().collect();
        let alone = || {
            let each = series.iter().enumerate();
            each.map(|(at, series)| ask(at, series)).collect()
        };
        let Some(helpers) = Helpers::of_all(&series) else {
            return alone();
        };
        let mut sum = 0;
        for series in &series {
            sum += vectors(series)?;
        }
        match sum < VECTORS_MIN {
            true => alone(),
            false => helpers.ask_each(&series, ask),
        }
    }

    /// Statistics of the column called `column` over the rows of all series, read from their trees; `None` for a query
    /// without series. Times are nanoseconds since 1970.
    ///
    /// # Errors
    /// `Schema` if a series lacks the column or has it with another type; `InvalidInput` if a reported time does not
    /// fit nanoseconds; a damaged or unreadable block.
    pub fn aggregate(&self, column: &str) -> Result<Option<F::Values>> {
        self.times()?;
        let columns = self.column(column)?;
        let needs = self.figures.needs()?;
        let mut whole: Option<Aggregate> = None;
        let ask = |at: usize, series: &Series<'_>| {
            let own = self.one(at, series).summary(columns[at], needs)?;
            units::on_clock(own, series.info().schema.unit)
        };
        for own in self.ask_each(|_| Ok(VECTORS_OF_INTERVAL), ask)? {
            match &mut whole {
                Some(whole) => whole.merge_beside(&own),
                None => whole = Some(own),
            }
        }
        Ok(whole.map(|whole| self.figures.of(whole)))
    }
}

fn tag_value<'s>(series: &'s Series<'_>, tag: &str) -> &'s str {
    let name = series.info().name.as_ref();
    name.and_then(|name| name.tag(tag)).unwrap_or_default()
}
