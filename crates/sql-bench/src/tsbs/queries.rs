//! The queries, by the names that the suite gives them, shortened.

use crate::options::Options;
use crate::tsbs::data::{BEGIN, COLUMNS};
use tidalite_testkit::rng::Rng;

/// A query, in the dialects of the engines.
pub(crate) struct Query {
    pub(crate) name: &'static str,
    /// A description of the query, for the report.
    pub(crate) about: &'static str,
    /// One text for each round.
    pub(crate) ours: Vec<String>,
    pub(crate) duckdb: Vec<String>,
    pub(crate) sqlite: Vec<String>,
}

/// The hosts and the interval of one round.
struct Place {
    hosts: Vec<String>,
    /// Seconds since 1970; the end is excluded.
    from: i64,
    to: i64,
}

/// How an engine writes times and bins.
struct Dialect {
    time: fn(i64) -> String,
    minute: &'static str,
    hour: &'static str,
}

const OURS: Dialect = Dialect {
    time: |seconds| format!("to_timestamp({seconds})"),
    minute: "date_bin(INTERVAL '1 minute', time)",
    hour: "date_bin(INTERVAL '1 hour', time)",
};

const DUCKDB: Dialect = Dialect {
    time: |seconds| format!("make_timestamp({seconds}000000)"),
    minute: "time_bucket(INTERVAL '1 minute', time)",
    hour: "time_bucket(INTERVAL '1 hour', time)",
};

const SQLITE: Dialect = Dialect {
    time: |seconds| seconds.to_string(),
    minute: "time / 60 * 60",
    hour: "time / 3600 * 3600",
};

/// All queries.
pub(crate) fn all(options: &Options) -> Vec<Query> {
    let mut rng = Rng::new(0x5eed);
    let mut queries = Vec::new();
    let mut add =
        |name, about, hosts: usize, hours: i64, text: &dyn Fn(&Dialect, &Place) -> String| {
            let places: Vec<Place> = (0..options.rounds)
                .map(|_| place(&mut rng, options, hosts, hours))
                .collect();
            let texts =
                |dialect: &Dialect| places.iter().map(|place| text(dialect, place)).collect();
            queries.push(Query {
                name,
                about,
                ours: texts(&OURS),
                duckdb: texts(&DUCKDB),
                sqlite: texts(&SQLITE),
            });
        };
    for (name, about, metrics, hosts, hours) in [
        (
            "sg-1-1-1",
            "maxima by minute: 1 metric, 1 host, 1 hour",
            1,
            1,
            1,
        ),
        ("sg-1-1-12", "1 metric, 1 host, 12 hours", 1, 1, 12),
        ("sg-1-8-1", "1 metric, 8 hosts, 1 hour", 1, 8, 1),
        ("sg-5-1-1", "5 metrics, 1 host, 1 hour", 5, 1, 1),
        ("sg-5-1-12", "5 metrics, 1 host, 12 hours", 5, 1, 12),
        ("sg-5-8-1", "5 metrics, 8 hosts, 1 hour", 5, 8, 1),
    ] {
        add(name, about, hosts, hours, &|dialect, place| {
            let minute = dialect.minute;
            let figures = figures("max", metrics);
            format!(
                "SELECT {minute} AS bin, {figures} FROM cpu WHERE {} GROUP BY 1 ORDER BY 1",
                place.filter(dialect)
            )
        });
    }
    for (name, about, hosts) in [
        (
            "max-all-1",
            "maxima of all metrics by hour: 1 host, 8 hours",
            1,
        ),
        ("max-all-8", "8 hosts", 8),
    ] {
        add(name, about, hosts, 8, &|dialect, place| {
            let (hour, figures) = (dialect.hour, figures("max", 10));
            format!(
                "SELECT {hour} AS bin, {figures} FROM cpu WHERE {} GROUP BY 1 ORDER BY 1",
                place.filter(dialect)
            )
        });
    }
    for (name, about, metrics) in [
        (
            "dg-1",
            "means by host and hour, all hosts, 12 hours: 1 metric",
            1,
        ),
        ("dg-5", "5 metrics", 5),
        ("dg-all", "all metrics", 10),
    ] {
        add(name, about, 0, 12, &|dialect, place| {
            let (hour, figures) = (dialect.hour, figures("avg", metrics));
            format!(
                "SELECT {hour} AS bin, host, {figures} FROM cpu WHERE {} GROUP BY 1, 2 ORDER BY 1, 2",
                place.filter(dialect)
            )
        });
    }
    for (name, about, hosts) in [
        (
            "high-1",
            "rows with usage_user above 90: 1 host, 12 hours",
            1,
        ),
        ("high-all", "all hosts", 0),
    ] {
        add(name, about, hosts, 12, &|dialect, place| {
            format!(
                "SELECT time, host, {} FROM cpu WHERE usage_user > 90 AND {}",
                COLUMNS.join(", "),
                place.filter(dialect)
            )
        });
    }
    let last = COLUMNS.iter();
    let ours: Vec<_> = last
        .clone()
        .map(|column| format!("last({column}, time)"))
        .collect();
    let duckdb: Vec<_> = last
        .map(|column| format!("arg_max({column}, time)"))
        .collect();
    let repeat = |text: String| vec![text; options.rounds];
    queries.push(Query {
        name: "lastpoint",
        about: "the last row of each host",
        ours: repeat(format!("SELECT host, max(time), {} FROM cpu GROUP BY host", ours.join(", "))),
        duckdb: repeat(format!("SELECT host, max(time), {} FROM cpu GROUP BY host", duckdb.join(", "))),
        sqlite: repeat(format!(
            "SELECT h.host, c.time, {} FROM (SELECT DISTINCT host FROM hosts) h JOIN cpu c ON c.host = h.host \
             AND c.time = (SELECT max(time) FROM cpu WHERE host = h.host)",
            COLUMNS.join(", ")
        )),
    });
    let mut add = |name, about, text: &dyn Fn(&Dialect, &Place) -> String| {
        let places: Vec<Place> = (0..options.rounds)
            .map(|_| place(&mut rng, options, 1, 12))
            .collect();
        let texts = |dialect: &Dialect| places.iter().map(|place| text(dialect, place)).collect();
        queries.push(Query {
            name,
            about,
            ours: texts(&OURS),
            duckdb: texts(&DUCKDB),
            sqlite: texts(&SQLITE),
        });
    };
    add(
        "gol",
        "maxima of all hosts by minute, the last 5 before a time",
        &|dialect, place| {
            let (minute, to) = (dialect.minute, (dialect.time)(place.to));
            format!(
                "SELECT {minute} AS bin, max(usage_user) FROM cpu WHERE time < {to} GROUP BY 1 ORDER BY 1 DESC LIMIT 5"
            )
        },
    );
    add("sum", "the sum of a column over everything", &|_, _| {
        "SELECT sum(usage_user) FROM cpu".to_owned()
    });
    add(
        "newest",
        "the last 10 rows of all hosts before a time",
        &|dialect, place| {
            let to = (dialect.time)(place.to);
            format!(
                "SELECT time, host, usage_user FROM cpu WHERE time < {to} ORDER BY time DESC, host LIMIT 10"
            )
        },
    );
    add("scan", "all values of all hosts", &|_, _| {
        format!("SELECT {} FROM cpu", COLUMNS.join(", "))
    });
    queries
}

/// A random interval of whole hours, and random hosts; all of them if `hosts` is 0.
fn place(rng: &mut Rng, options: &Options, hosts: usize, hours: i64) -> Place {
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
    }
}

impl Place {
    fn filter(&self, dialect: &Dialect) -> String {
        let (from, to) = ((dialect.time)(self.from), (dialect.time)(self.to));
        let times = format!("time >= {from} AND time < {to}");
        let hosts: Vec<_> = self.hosts.iter().map(|host| format!("'{host}'")).collect();
        match hosts.is_empty() {
            true => times,
            false => format!("host IN ({}) AND {times}", hosts.join(", ")),
        }
    }
}

fn figures(function: &str, metrics: usize) -> String {
    let columns = COLUMNS[..metrics].iter();
    columns
        .map(|column| format!("{function}({column})"))
        .collect::<Vec<_>>()
        .join(", ")
}
