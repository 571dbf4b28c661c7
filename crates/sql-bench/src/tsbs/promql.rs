//! The queries in PromQL, as requests: `range BEGIN END STEP EXPRESSION`, `instant TIME EXPRESSION` or
//! `export BEGIN END SELECTOR`, with times in seconds since 1970.
//!
//! A window `[60s]` at a time `t` covers `t - 60 < time <= t`. All rows are at multiples of 10 s, so the window that
//! ends one second before the end of a bin contains exactly the rows of that bin.
//!
//! In two queries the server gets more information than with SQL: the last minutes are requested by their times, and
//! the last rows must be at most five minutes old. The last rows ordered by time (`newest`) cannot be expressed.

use crate::tsbs::data::{BEGIN, COLUMNS, STEP};
use crate::tsbs::queries::{Kind, Place};

/// The request of a query; `None` if PromQL cannot express it.
pub(crate) fn text(kind: Kind, place: &Place) -> Option<String> {
    let (from, to, last) = (place.from, place.to, place.end - 1);
    let all = COLUMNS.len();
    let everything = place.end - BEGIN;
    Some(match kind {
        Kind::Empty => format!("instant {last} 1"),
        Kind::Maxima { metrics, bin } => {
            let width = bin.seconds();
            let values = selector(metrics, place);
            bins(
                from,
                to,
                width,
                &format!("max(max_over_time({values}[{width}s])) by (__name__)"),
            )
        }
        Kind::Means { metrics } => {
            let values = selector(metrics, place);
            bins(from, to, 3600, &format!("avg_over_time({values}[3600s])"))
        }
        Kind::High => format!(
            "range {from} {} {STEP} {} and on (host) ({} > 90)",
            to - STEP,
            selector(all, place),
            selector(1, place)
        ),
        Kind::LastPoint => format!("instant {last} {}", selector(all, place)),
        Kind::LastMinutes => bins(to - 300, to, 60, "max(max_over_time(cpu_usage_user[60s]))"),
        Kind::Sum => format!("instant {last} sum(sum_over_time(cpu_usage_user[{everything}s]))"),
        Kind::Newest => return None,
        Kind::Scan => format!("export {BEGIN} {last} {}", selector(all, place)),
        Kind::Check => {
            let values = format!("cpu_usage_guest_nice[{everything}s]");
            format!("instant {last} sum(count_over_time({values})) + sum(sum_over_time({values}))")
        }
    })
}

/// The request that evaluates an expression in each bin of an interval.
fn bins(from: i64, to: i64, width: i64, expression: &str) -> String {
    format!("range {} {} {width} {expression}", from + width - 1, to - 1)
}

/// The selector for the series of the first metrics of the hosts.
fn selector(metrics: usize, place: &Place) -> String {
    let names = COLUMNS[..metrics].iter();
    let names: Vec<_> = names.map(|name| format!("cpu_{name}")).collect();
    let mut labels = vec![format!(r#"__name__=~"{}""#, names.join("|"))];
    if !place.hosts.is_empty() {
        labels.push(format!(r#"host=~"{}""#, place.hosts.join("|")));
    }
    format!("{{{}}}", labels.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tsbs::queries::Bin;

    #[test]
    fn windows_end_one_second_before_their_bins() {
        let place = Place {
            hosts: vec!["host_3".to_owned(), "host_5".to_owned()],
            from: BEGIN,
            to: BEGIN + 3600,
            end: BEGIN + 7200,
            round: 1,
        };
        let kind = Kind::Maxima {
            metrics: 2,
            bin: Bin::Minute,
        };
        let expected = "range 1451606459 1451609999 60 max(max_over_time(\
                        {__name__=~\"cpu_usage_user|cpu_usage_system\",host=~\"host_3|host_5\"}[60s])) by (__name__)";
        assert_eq!(text(kind, &place).as_deref(), Some(expected));
        let expected = "instant 1451613599 sum(sum_over_time(cpu_usage_user[7200s]))";
        assert_eq!(text(Kind::Sum, &place).as_deref(), Some(expected));
        assert_eq!(text(Kind::Newest, &place), None);
    }
}
