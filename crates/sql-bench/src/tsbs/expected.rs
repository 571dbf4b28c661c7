//! The results that every engine must find, computed from the rows.

use crate::tsbs::data::{BEGIN, STEP};
use crate::tsbs::files::Values;
use crate::tsbs::queries::{Kind, Place, Query};

/// The ten values of a host at a time.
type Row = [i64; 10];

/// The number of rows of a result, and the sum of all its numbers except times.
pub(crate) type Summary = (usize, f64);

/// The correct results of a query.
pub(crate) struct Expected {
    kind: Kind,
    /// The result of each round.
    rounds: Vec<Summary>,
}

impl Expected {
    pub(crate) fn new(query: &Query, values: &Values) -> Self {
        let places = query.places.iter();
        Self {
            kind: query.kind,
            rounds: places
                .map(|place| summary(query.kind, place, values))
                .collect(),
        }
    }

    /// Whether an engine found the correct results in all rounds that it ran.
    pub(crate) fn agrees(&self, found: &[Summary]) -> bool {
        // Sums of integers are exact in `f64`; sums of means depend on their order.
        let equal = |one: f64, other: f64| match self.kind {
            Kind::Means { .. } => (one - other).abs() <= 1e-9 * one.abs(),
            _ => one == other,
        };
        let mut rounds = self.rounds.iter().zip(found);
        !found.is_empty() && rounds.all(|(one, other)| one.0 == other.0 && equal(one.1, other.1))
    }
}

/// The correct result of a query at a place.
fn summary(kind: Kind, place: &Place, values: &Values) -> Summary {
    let of_place = || within(values, place, place.from);
    match kind {
        Kind::Empty => (1, 1.0),
        Kind::Maxima { metrics, bin } => maxima(&of_place(), metrics, bin.seconds()),
        Kind::Means { metrics } => means(&of_place(), metrics),
        Kind::High => {
            let rows = of_place().into_iter().flatten();
            total(rows.filter(|row| row[0] > 90))
        }
        Kind::LastPoint => total(values.iter().filter_map(|host| host.last())),
        Kind::LastMinutes => maxima(&within(values, place, place.to - 300), 1, 60),
        Kind::Sum => {
            let sum: i64 = values.iter().flatten().map(|row| row[0]).sum();
            (1, sum as f64)
        }
        Kind::Newest => newest(values, place),
        Kind::Scan => total(values.iter().flatten()),
        Kind::Check => {
            let (rows, sum) = rows_and_sum(values);
            (1, (rows + sum) as f64)
        }
    }
}

/// The number of all rows, and the sum of the values in their last column.
pub(crate) fn rows_and_sum(values: &Values) -> (i64, i64) {
    let rows = || values.iter().flatten();
    (rows().count() as i64, rows().map(|row| row[9]).sum())
}

/// The rows of each host of a place, from the time `from` to the end of the place.
fn within<'a>(values: &'a Values, place: &Place, from: i64) -> Vec<&'a [Row]> {
    let row = |time: i64| ((time - BEGIN) / STEP) as usize;
    let hosts = values.iter().enumerate();
    let hosts = hosts.filter(|(host, _)| {
        place.hosts.is_empty() || place.hosts.contains(&format!("host_{host}"))
    });
    hosts
        .map(|(_, rows)| &rows[row(from)..row(place.to)])
        .collect()
}

/// One row for each bin, with the maxima of the first metrics over all hosts.
fn maxima(hosts: &[&[Row]], metrics: usize, bin_seconds: i64) -> Summary {
    let bin_rows = (bin_seconds / STEP) as usize;
    let bins = hosts[0].len() / bin_rows;
    let maximum = |bin: usize, metric: usize| {
        let rows = hosts
            .iter()
            .flat_map(|rows| &rows[bin * bin_rows..][..bin_rows]);
        rows.map(|row| row[metric]).max().unwrap_or_default()
    };
    let maxima = (0..bins).flat_map(|bin| (0..metrics).map(move |metric| (bin, metric)));
    let sum: i64 = maxima.map(|(bin, metric)| maximum(bin, metric)).sum();
    (bins, sum as f64)
}

/// One row for each host and hour, with the means of the first metrics.
fn means(hosts: &[&[Row]], metrics: usize) -> Summary {
    let hours = hosts
        .iter()
        .flat_map(|rows| rows.chunks(3600 / STEP as usize));
    let (mut rows, mut sum) = (0, 0.0);
    for hour in hours {
        rows += 1;
        for metric in 0..metrics {
            let values: i64 = hour.iter().map(|row| row[metric]).sum();
            sum += values as f64 / hour.len() as f64;
        }
    }
    (rows, sum)
}

/// The first metric of the last ten rows before the end of a place; rows with the same time are ordered by host name.
fn newest(values: &Values, place: &Place) -> Summary {
    let mut hosts: Vec<usize> = (0..values.len()).collect();
    hosts.sort_by_key(|host| format!("host_{host}"));
    let end = ((place.to - BEGIN) / STEP) as usize;
    let rows = (0..end)
        .rev()
        .flat_map(|row| hosts.iter().map(move |&host| (host, row)));
    let sum: i64 = rows.take(10).map(|(host, row)| values[host][row][0]).sum();
    (10, sum as f64)
}

/// The number of rows, and the sum of all their values.
fn total<'a>(rows: impl Iterator<Item = &'a Row>) -> Summary {
    let (mut count, mut sum) = (0, 0);
    for row in rows {
        count += 1;
        sum += row.iter().sum::<i64>();
    }
    (count, sum as f64)
}
