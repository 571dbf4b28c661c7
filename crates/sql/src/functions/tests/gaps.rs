//! Tests of gap filling.

use super::*;
use arrow::array::{StringArray, TimestampSecondArray};

/// A session with a table `t`: a host, a time in minutes since 2024-01-01, and a value.
fn session_of(partitions: usize, rows: &[(&str, i64, Option<f64>)]) -> SessionContext {
    const START: i64 = 1_704_067_200;
    let context = session(partitions);
    let seconds = rows.iter().map(|row| START + row.1 * 60);
    let seconds = TimestampSecondArray::from_iter_values(seconds).with_timezone("UTC");
    let columns: [(&str, ArrayRef); 3] = [
        (
            "host",
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.0))),
        ),
        ("time", Arc::new(seconds)),
        ("v", floats(rows.iter().map(|row| row.2))),
    ];
    register(&context, "t", &columns, partitions);
    context
}

fn two_hosts(partitions: usize) -> SessionContext {
    session_of(
        partitions,
        &[
            ("a", 70, Some(10.0)),
            ("a", 130, Some(20.0)),
            ("a", 135, Some(40.0)),
            ("a", 310, Some(90.0)),
            ("b", 190, Some(7.0)),
            ("b", 250, None),
        ],
    )
}

/// A condition that selects the first six hours of 2024.
const DAY: &str = "WHERE time >= '2024-01-01T00:00:00Z' AND time < '2024-01-01T06:00:00Z'";

#[test]
fn each_group_is_filled_by_itself() {
    for partitions in [1, 4] {
        let context = two_hosts(partitions);
        let sql = format!(
            "SELECT to_char(time_bucket_gapfill('1 hour', time), '%H:%M') AS hour, host, avg(v), count(*), \
             locf(avg(v)), interpolate(avg(v)) FROM t {DAY} GROUP BY time_bucket_gapfill('1 hour', time), host \
             ORDER BY host, hour"
        );
        assert_eq!(
            rows(&context, &sql),
            [
                "00:00 a null null null null",
                "01:00 a 10.0 1 10.0 10.0",
                "02:00 a 30.0 2 30.0 30.0",
                "03:00 a null null 30.0 50.0",
                "04:00 a null null 30.0 70.0",
                "05:00 a 90.0 1 90.0 90.0",
                "00:00 b null null null null",
                "01:00 b null null null null",
                "02:00 b null null null null",
                "03:00 b 7.0 1 7.0 7.0",
                "04:00 b null 1 7.0 null",
                "05:00 b null null 7.0 null",
            ]
        );
    }
}

#[test]
fn names_and_orders_are_those_of_the_query() {
    let context = two_hosts(4);
    let sql = format!(
        "SELECT time_bucket_gapfill('2 hours', time) AS b, locf(sum(v)), max(v) + 1 AS m FROM t {DAY} \
         GROUP BY b ORDER BY b DESC LIMIT 2"
    );
    assert_eq!(
        rows(&context, &sql),
        [
            "2024-01-01T04:00:00Z 90.0 91.0",
            "2024-01-01T02:00:00Z 67.0 41.0"
        ]
    );
    let schema = run(&context, &sql).unwrap()[0].schema();
    let names = schema
        .fields()
        .iter()
        .map(|field| field.name().as_str())
        .collect::<Vec<_>>();
    assert_eq!(names, ["b", "locf(sum(t.v))", "m"]);
    assert_eq!(*schema.field(0).data_type(), utc(TimeUnit::Second));
}

#[test]
fn limits_come_from_arguments_or_conditions() {
    let context = two_hosts(1);
    let first_last = |limits: &str, condition: &str| {
        let sql = format!(
            "SELECT to_char(min(b), '%d %H:%M') || ' ' || to_char(max(b), '%d %H:%M') FROM (SELECT \
             time_bucket_gapfill('1 hour', time{limits}) AS b FROM t {condition} GROUP BY b)"
        );
        rows(&context, &sql).join(",")
    };
    let from = "time >= '2024-01-01T00:30:00Z'";
    let cases = [
        (
            "",
            format!("WHERE {from} AND time < '2024-01-01T08:00:00Z'"),
            "01 00:00 01 07:00",
        ),
        (
            "",
            format!("WHERE {from} AND time <= '2024-01-01T08:00:00Z'"),
            "01 00:00 01 08:00",
        ),
        (
            "",
            format!("WHERE {from} AND time < '2024-01-01T08:00:00.5Z'"),
            "01 00:00 01 08:00",
        ),
        (
            "",
            "WHERE time > '2024-01-01T00:59:59Z' AND time < '2024-01-01T08:00:00Z'".into(),
            "01 01:00 01 07:00",
        ),
        (
            "",
            "WHERE time > '2024-01-01T00:59:58.9Z' AND time < '2024-01-01T08:00:00Z'".into(),
            "01 00:00 01 07:00",
        ),
        (
            "",
            "WHERE '2024-01-01T00:00:00Z' < time AND '2024-01-01T07:00:00Z' > time".into(),
            "01 00:00 01 06:00",
        ),
        (
            "",
            "WHERE time BETWEEN '2024-01-01T00:10:00Z' AND '2024-01-01T08:00:00Z'".into(),
            "01 00:00 01 08:00",
        ),
        (
            "",
            format!(
                "WHERE {from} AND time >= '2024-01-01' AND time < '2024-01-03' AND time < '2024-01-02' AND v > 0"
            ),
            "01 00:00 01 23:00",
        ),
        (
            ", '2024-01-01', '2024-01-01 09:00:00'",
            String::new(),
            "01 00:00 01 08:00",
        ),
        (
            ", timestamp '2024-01-01', NULL",
            "WHERE time < '2024-01-01T10:00:00Z'".into(),
            "01 00:00 01 09:00",
        ),
        (
            ", NULL, timestamp '2024-01-01' + INTERVAL '1 day'",
            format!("WHERE {from}"),
            "01 00:00 01 23:00",
        ),
        // Rows outside the range are kept.
        (
            ", '2024-01-01T03:00:00', '2024-01-01T04:00:00'",
            String::new(),
            "01 01:00 01 05:00",
        ),
        // An empty range.
        (
            ", '2024-01-01T05:00:00', '2024-01-01T04:00:00'",
            String::new(),
            "01 01:00 01 05:00",
        ),
    ];
    for (limits, condition, expected) in cases {
        assert_eq!(
            first_last(limits, &condition),
            expected,
            "{limits} {condition}"
        );
    }
    // Conditions in a subquery, and now().
    let sql = "SELECT count(*) FROM (SELECT time_bucket_gapfill('1 hour', u.time) FROM (SELECT time, v AS w FROM t \
               WHERE time >= '2024-01-01' AND time < '2024-01-02') AS u GROUP BY 1)";
    assert_eq!(rows(&context, sql), ["24"]);
    let sql = "SELECT count(*) BETWEEN 48 AND 49 FROM (SELECT time_bucket_gapfill('1 hour', time) FROM t \
               WHERE time >= now() - INTERVAL '2 days' AND time < now() GROUP BY 1)";
    assert_eq!(rows(&context, sql), ["true"]);
}

#[test]
fn bins_of_days_and_months_follow_a_zone() {
    let context = two_hosts(1);
    let starts = |width: &str, zone: &str, from: &str, to: &str| {
        let sql = format!(
            "SELECT time_bucket_gapfill('{width}', time, '{zone}', '{from}', '{to}') AS b FROM t WHERE false GROUP BY b"
        );
        rows(&context, &sql)
    };
    assert_eq!(
        starts(
            "1 day",
            "Europe/Berlin",
            "2024-03-30T12:00:00Z",
            "2024-04-02T00:00:00Z"
        ),
        [
            "2024-03-29T23:00:00Z",
            "2024-03-30T23:00:00Z",
            "2024-03-31T22:00:00Z",
            "2024-04-01T22:00:00Z"
        ]
    );
    assert_eq!(
        starts(
            "1 day",
            "Europe/Berlin",
            "2024-10-26T12:00:00Z",
            "2024-10-28T12:00:00Z"
        ),
        [
            "2024-10-25T22:00:00Z",
            "2024-10-26T22:00:00Z",
            "2024-10-27T23:00:00Z"
        ]
    );
    assert_eq!(
        starts(
            "1 hour",
            "Europe/Berlin",
            "2024-10-26T23:00:00Z",
            "2024-10-27T03:00:00Z"
        ),
        [
            "2024-10-26T23:00:00Z",
            "2024-10-27T00:00:00Z",
            "2024-10-27T01:00:00Z",
            "2024-10-27T02:00:00Z"
        ]
    );
    assert_eq!(
        starts(
            "1 month",
            "UTC",
            "2023-12-15T00:00:00Z",
            "2024-03-01T00:00:00Z"
        ),
        [
            "2023-12-01T00:00:00Z",
            "2024-01-01T00:00:00Z",
            "2024-02-01T00:00:00Z"
        ]
    );
    assert_eq!(
        starts(
            "1 month",
            "Europe/Berlin",
            "2024-02-15T00:00:00Z",
            "2024-04-01T00:00:00Z"
        ),
        [
            "2024-01-31T23:00:00Z",
            "2024-02-29T23:00:00Z",
            "2024-03-31T22:00:00Z"
        ]
    );
}

#[test]
fn a_query_without_rows_is_filled_if_it_has_no_other_keys() {
    let context = session_of(1, &[]);
    let sql = format!(
        "SELECT time_bucket_gapfill('3 hours', time) AS b, locf(max(host)), interpolate(count(*)) FROM t {DAY} GROUP BY b"
    );
    assert_eq!(
        rows(&context, &sql),
        [
            "2024-01-01T00:00:00Z null null",
            "2024-01-01T03:00:00Z null null"
        ]
    );
    let sql = format!(
        "SELECT time_bucket_gapfill('3 hours', time) AS b, host FROM t {DAY} GROUP BY b, host"
    );
    assert!(rows(&context, &sql).is_empty());
}

#[test]
fn fills_work_in_having_and_on_expressions() {
    let context = two_hosts(4);
    let sql = format!(
        "SELECT host, time_bucket_gapfill('1 hour', time) AS b, locf(sum(v) / count(*)), interpolate(max(v)) * 2, \
         sum(locf(min(v))) OVER (PARTITION BY host ORDER BY time_bucket_gapfill('1 hour', time)) \
         FROM t {DAY} GROUP BY host, b HAVING locf(max(v)) > 15 ORDER BY host, b"
    );
    assert_eq!(
        rows(&context, &sql),
        [
            "a 2024-01-01T02:00:00Z 30.0 80.0 20.0",
            "a 2024-01-01T03:00:00Z 30.0 113.33333333333334 40.0",
            "a 2024-01-01T04:00:00Z 30.0 146.66666666666669 60.0",
            "a 2024-01-01T05:00:00Z 90.0 180.0 150.0",
        ]
    );
}

#[test]
fn fills_of_the_same_aggregate_with_other_types_stay_apart() {
    let context = two_hosts(1);
    let sql = format!(
        "SELECT time_bucket_gapfill('1 hour', time) AS b, locf(max(v) / 4), locf((max(v) / 4)::int) AS i FROM t {DAY} \
         AND host = 'a' GROUP BY b ORDER BY b DESC LIMIT 1"
    );
    assert_eq!(rows(&context, &sql), ["2024-01-01T05:00:00Z 22.5 22"]);
}

#[test]
fn long_ranges_are_delivered_in_parts() {
    let context = session_of(1, &[("a", 0, Some(0.0)), ("a", 99_999, Some(99_999.0))]);
    let sql = "SELECT count(*), sum(i), max(l) FROM (SELECT time_bucket_gapfill('1 minute', time, '2024-01-01', \
               timestamp '2024-01-01' + INTERVAL '100000 minutes') AS b, host, interpolate(avg(v)) AS i, \
               locf(avg(v)) AS l FROM t GROUP BY b, host)";
    let expected = format!("100000 {:?} 99999.0", 99_999.0 * 50_000.0);
    let found = rows(&context, sql);
    let parts = found[0].split(' ').collect::<Vec<_>>();
    assert_eq!((parts[0], parts[2]), ("100000", "99999.0"), "{expected}");
    assert!(
        (parts[1].parse::<f64>().unwrap() / (99_999.0 * 50_000.0) - 1.0).abs() < 1e-9,
        "{found:?}"
    );
}

#[test]
fn wrong_calls_are_refused() {
    let context = two_hosts(1);
    let cases = [
        (
            "SELECT time_bucket_gapfill('1 hour', time) AS b FROM t GROUP BY b",
            "the start is missing: give it as an argument, or as a condition in WHERE, t.time >= '2024-01-01'",
        ),
        (
            "SELECT time_bucket_gapfill('1 hour', time) AS b FROM t WHERE time >= '2024-01-01' GROUP BY b",
            "the finish is missing: give it as an argument, or as a condition in WHERE, t.time < '2024-01-01'",
        ),
        (
            "SELECT time_bucket_gapfill('1 hour', time) AS b FROM t WHERE time > '2024-01-01' OR time < '2025-01-01' GROUP BY b",
            "the start is missing",
        ),
        (
            "SELECT time_bucket_gapfill('1 hour', time, time, time) AS b FROM t GROUP BY b, time",
            "the start is t.time, expected a constant",
        ),
        (
            "SELECT time_bucket_gapfill('1 hour', time) FROM t",
            "must be one of the expressions of GROUP BY",
        ),
        (
            "SELECT time_bucket_gapfill('1 hour', time, '2024-01-01', '2024-01-02') AS b FROM t GROUP BY ROLLUP(b)",
            "must be one of the expressions of GROUP BY",
        ),
        (
            "SELECT locf(avg(v)) FROM t",
            "locf must be in the select list or in HAVING",
        ),
        (
            "SELECT avg(interpolate(v)) FROM t",
            "interpolate must be in the select list or in HAVING",
        ),
        (
            "SELECT time_bucket_gapfill('1 hour', time, '2024-01-01', '2024-01-02', '2024-01-02', 'x') AS b FROM t GROUP BY b",
            "found 6 arguments, expected 2 to 5",
        ),
        (
            "SELECT time_bucket_gapfill('x', time, '2024-01-01', '2024-01-02') AS b FROM t GROUP BY b",
            "the width is 'x', expected an interval",
        ),
        (
            "SELECT time_bucket_gapfill('1 day', time, '2024-01-01', '2024-01-02') AS b, interpolate(max(host)) FROM t GROUP BY b",
            "the value is a Utf8, expected a number",
        ),
    ];
    for (sql, expected) in cases {
        let found = error(&context, sql);
        assert!(found.contains(expected), "{sql}: {found}");
    }
}
