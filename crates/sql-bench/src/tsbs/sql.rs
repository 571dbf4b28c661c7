//! The queries in the dialects of SQL.

use crate::tsbs::data::COLUMNS;
use crate::tsbs::queries::{Bin, Kind, Place};

/// The syntax of an engine for times, bins and the query of the last rows.
pub(crate) struct Dialect {
    /// The name of the table, used in conditions on hosts and times.
    table: &'static str,
    time: fn(i64) -> String,
    minute: &'static str,
    hour: &'static str,
    lastpoint: fn() -> String,
}

pub(crate) const OURS: Dialect = Dialect {
    table: "cpu",
    time: |seconds| format!("to_timestamp({seconds})"),
    minute: "date_bin(INTERVAL '1 minute', time)",
    hour: "date_bin(INTERVAL '1 hour', time)",
    lastpoint: || last_by_host("last"),
};

pub(crate) const DUCKDB: Dialect = Dialect {
    table: "cpu",
    time: |seconds| format!("make_timestamp({seconds}000000)"),
    minute: "time_bucket(INTERVAL '1 minute', time)",
    hour: "time_bucket(INTERVAL '1 hour', time)",
    lastpoint: || last_by_host("arg_max"),
};

/// SQLite uses the index on times for every interval, although the primary key is two to four times as fast, unless a
/// query needs only a few rows at the end of an interval.
pub(crate) const SQLITE: Dialect = Dialect {
    table: "cpu INDEXED BY sqlite_autoindex_cpu_1",
    time: |seconds| seconds.to_string(),
    minute: "time / 60 * 60",
    hour: "time / 3600 * 3600",
    lastpoint: || {
        format!(
            "SELECT h.host, c.time, {} FROM (SELECT DISTINCT host FROM hosts) h JOIN cpu c ON c.host = h.host \
             AND c.time = (SELECT max(time) FROM cpu WHERE host = h.host)",
            COLUMNS.join(", ")
        )
    },
};

pub(crate) const CHDB: Dialect = Dialect {
    table: "cpu",
    time: |seconds| format!("toDateTime({seconds}, 'UTC')"),
    minute: "toStartOfMinute(time)",
    hour: "toStartOfHour(time)",
    lastpoint: || last_by_host("argMax"),
};

/// QuestDB interprets integers as microseconds since 1970.
pub(crate) const QUESTDB: Dialect = Dialect {
    table: "cpu",
    time: |seconds| format!("{seconds}000000"),
    minute: "timestamp_floor('1m', time)",
    hour: "timestamp_floor('1h', time)",
    lastpoint: || {
        format!(
            "SELECT host, time, {} FROM cpu LATEST ON time PARTITION BY host",
            COLUMNS.join(", ")
        )
    },
};

impl Dialect {
    /// The text of a query at a place. It contains the round in a comment, because engines cache plans by text.
    pub(crate) fn text(&self, kind: Kind, place: &Place) -> String {
        format!("{} /* {} */", self.statement(kind, place), place.round)
    }

    fn statement(&self, kind: Kind, place: &Place) -> String {
        let table = self.table;
        let columns = || COLUMNS.join(", ");
        let filter = || self.filter(place);
        let to = || (self.time)(place.to);
        match kind {
            Kind::Empty => "SELECT 1 AS one".to_owned(),
            Kind::Maxima { metrics, bin } => {
                let bin = match bin {
                    Bin::Minute => self.minute,
                    Bin::Hour => self.hour,
                };
                format!(
                    "SELECT {bin} AS bin, {} FROM {table} WHERE {} GROUP BY 1 ORDER BY 1",
                    figures("max", metrics),
                    filter()
                )
            }
            Kind::Means { metrics } => format!(
                "SELECT {} AS bin, host, {} FROM {table} WHERE {} GROUP BY 1, 2 ORDER BY 1, 2",
                self.hour,
                figures("avg", metrics),
                filter()
            ),
            Kind::High => format!(
                "SELECT time, host, {} FROM {table} WHERE usage_user > 90 AND {}",
                columns(),
                filter()
            ),
            Kind::LastPoint => (self.lastpoint)(),
            Kind::LastMinutes => format!(
                "SELECT {} AS bin, max(usage_user) FROM {table} WHERE time < {} GROUP BY 1 ORDER BY 1 DESC LIMIT 5",
                self.minute,
                to()
            ),
            Kind::Sum => "SELECT sum(usage_user) FROM cpu".to_owned(),
            Kind::Newest => format!(
                "SELECT time, host, usage_user FROM cpu WHERE time < {} ORDER BY time DESC, host LIMIT 10",
                to()
            ),
            Kind::Scan => format!("SELECT {} FROM cpu", columns()),
            Kind::Check => {
                "SELECT count(*), sum(usage_guest_nice) FROM cpu WHERE host <> ''".to_owned()
            }
        }
    }

    fn filter(&self, place: &Place) -> String {
        let (from, to) = ((self.time)(place.from), (self.time)(place.to));
        let times = format!("time >= {from} AND time < {to}");
        let hosts: Vec<_> = place.hosts.iter().map(|host| format!("'{host}'")).collect();
        match hosts.is_empty() {
            true => times,
            false => format!("host IN ({}) AND {times}", hosts.join(", ")),
        }
    }
}

/// The query for the last row of each host, using an aggregate function of a value and a time.
fn last_by_host(function: &str) -> String {
    let columns = COLUMNS.map(|column| format!("{function}({column}, time)"));
    format!(
        "SELECT host, max(time), {} FROM cpu GROUP BY host",
        columns.join(", ")
    )
}

fn figures(function: &str, metrics: usize) -> String {
    let columns = COLUMNS[..metrics].iter();
    columns
        .map(|column| format!("{function}({column})"))
        .collect::<Vec<_>>()
        .join(", ")
}
