//! The queries, with the names that they have in the suite, shortened.

use crate::options::Options;
use crate::tsbs::data::BEGIN;
use tidalite_testkit::rng::Rng;

/// A query: all engines run the same query, in each round at another place.
pub(crate) struct Query {
    pub(crate) name: &'static str,
    /// A description of the query, for the report.
    pub(crate) about: &'static str,
    pub(crate) kind: Kind,
    /// One place for each round.
    pub(crate) places: Vec<Place>,
}

/// The kind of a query; `metrics` is the number of columns, beginning with the first one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// A constant, which measures the overhead of the engine's interface.
    Empty,
    /// Maxima by bin, over all hosts of the place.
    Maxima { metrics: usize, bin: Bin },
    /// Means by host and hour.
    Means { metrics: usize },
    /// Rows with a high first column.
    High,
    /// The last row of each host.
    LastPoint,
    /// Maxima by minute, for the last 5 minutes before the end of the place.
    LastMinutes,
    /// The sum of the first column.
    Sum,
    /// The last 10 rows before the end of the place.
    Newest,
    /// All values.
    Scan,
    /// The number of rows and the sum of the last column, which check a load.
    Check,
}

/// The width of a bin.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bin {
    Minute,
    Hour,
}

/// The hosts and the interval that a query selects in one round.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The names of the hosts; empty for all hosts.
    pub(crate) hosts: Vec<String>,
    /// The interval in seconds since 1970; the end is excluded.
    pub(crate) from: i64,
    pub(crate) to: i64,
    /// The end of the rows of all hosts, excluded.
    pub(crate) end: i64,
    /// The number of the round, from 1; 0 for the run before the measurement.
    pub(crate) round: usize,
}

impl Bin {
    /// The width in seconds.
    pub(crate) fn seconds(self) -> i64 {
        match self {
            Self::Minute => 60,
            Self::Hour => 3600,
        }
    }
}

impl Query {
    /// The place of the run before the measurement, which is also the place of the first round.
    pub(crate) fn beforehand(&self) -> Place {
        Place {
            round: 0,
            ..self.places[0].clone()
        }
    }
}

/// All queries.
pub(crate) fn all(options: &Options) -> Vec<Query> {
    let maxima = |metrics, bin| Kind::Maxima { metrics, bin };
    let by_minute = |metrics| maxima(metrics, Bin::Minute);
    let by_hour = maxima(10, Bin::Hour);
    let means = |metrics| Kind::Means { metrics };
    let kinds = [
        ("empty", "a constant", Kind::Empty, 1, 1),
        (
            "sg-1-1-1",
            "maxima by minute: 1 metric, 1 host, 1 hour",
            by_minute(1),
            1,
            1,
        ),
        (
            "sg-1-1-12",
            "1 metric, 1 host, 12 hours",
            by_minute(1),
            1,
            12,
        ),
        ("sg-1-8-1", "1 metric, 8 hosts, 1 hour", by_minute(1), 8, 1),
        ("sg-5-1-1", "5 metrics, 1 host, 1 hour", by_minute(5), 1, 1),
        (
            "sg-5-1-12",
            "5 metrics, 1 host, 12 hours",
            by_minute(5),
            1,
            12,
        ),
        ("sg-5-8-1", "5 metrics, 8 hosts, 1 hour", by_minute(5), 8, 1),
        (
            "max-all-1",
            "maxima of all metrics by hour: 1 host, 8 hours",
            by_hour,
            1,
            8,
        ),
        ("max-all-8", "8 hosts", by_hour, 8, 8),
        (
            "dg-1",
            "means by host and hour, all hosts, 12 hours: 1 metric",
            means(1),
            0,
            12,
        ),
        ("dg-5", "5 metrics", means(5), 0, 12),
        ("dg-all", "all metrics", means(10), 0, 12),
        (
            "high-1",
            "rows with usage_user above 90: 1 host, 12 hours",
            Kind::High,
            1,
            12,
        ),
        ("high-all", "all hosts", Kind::High, 0, 12),
        (
            "lastpoint",
            "the last row of each host",
            Kind::LastPoint,
            0,
            12,
        ),
        (
            "gol",
            "maxima of all hosts by minute, the last 5 before a time",
            Kind::LastMinutes,
            0,
            12,
        ),
        (
            "sum",
            "the sum of a column over everything",
            Kind::Sum,
            0,
            12,
        ),
        (
            "newest",
            "the last 10 rows of all hosts before a time",
            Kind::Newest,
            0,
            12,
        ),
        ("scan", "all values of all hosts", Kind::Scan, 0, 12),
    ];
    let mut rng = Rng::new(0x5eed);
    let mut queries = Vec::new();
    for (name, about, kind, hosts, hours) in kinds {
        let places = (1..=options.rounds)
            .map(|round| place(&mut rng, options, (hosts, hours), round))
            .collect();
        queries.push(Query {
            name,
            about,
            kind,
            places,
        });
    }
    queries
}

/// The query that checks a load.
pub(crate) fn check(options: &Options) -> Query {
    Query {
        name: "check",
        about: "rows and a sum",
        kind: Kind::Check,
        places: vec![place(&mut Rng::new(1), options, (0, 12), 1)],
    }
}

/// A random interval of whole hours, and random hosts; all of them if `hosts` is 0.
fn place(rng: &mut Rng, options: &Options, (hosts, hours): (usize, i64), round: usize) -> Place {
    let hours = hours.min(options.hours as i64 - 1);
    let first = rng.below((options.hours as i64 - hours) as u64) as i64;
    let mut names: Vec<String> = Vec::new();
    while names.len() < hosts {
        let name = format!("host_{}", rng.below(options.hosts as u64));
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Place {
        hosts: names,
        from: BEGIN + first * 3600,
        to: BEGIN + (first + hours) * 3600,
        end: BEGIN + options.hours as i64 * 3600,
        round,
    }
}
