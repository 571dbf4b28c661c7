//! `time_bucket`, and the rewrites to `date_bin`.

use super::*;

/// A session with a table `t` that contains these times.
fn session_of(texts: &[&str], ty: &DataType) -> SessionContext {
    let context = session(1);
    register(&context, "t", &[("time", times(texts, ty))], 1);
    context
}

#[test]
fn fixed_bins_have_each_unit_and_reach_before_1970() {
    let texts = [
        "2024-03-31T10:17:59Z",
        "1969-12-31T23:59:59Z",
        "1969-12-29T00:00:00Z",
        "null",
    ];
    let units = [
        TimeUnit::Second,
        TimeUnit::Millisecond,
        TimeUnit::Microsecond,
        TimeUnit::Nanosecond,
    ];
    for unit in units {
        for ty in [utc(unit), DataType::Timestamp(unit, None)] {
            let context = session_of(&texts, &ty);
            let z = if ty == utc(unit) { "Z" } else { "" };
            let sql = "SELECT time_bucket('15 minutes', time), time_bucket(INTERVAL '1 week', time) FROM t";
            assert_eq!(
                rows(&context, sql),
                [
                    format!("2024-03-31T10:15:00{z} 2024-03-25T00:00:00{z}"),
                    format!("1969-12-31T23:45:00{z} 1969-12-29T00:00:00{z}"),
                    format!("1969-12-29T00:00:00{z} 1969-12-29T00:00:00{z}"),
                    "null null".to_owned(),
                ]
            );
            let schema = run(&context, sql).unwrap()[0].schema();
            assert_eq!(*schema.field(0).data_type(), ty);
        }
    }
}

#[test]
fn months_and_years_begin_in_january() {
    let texts = [
        "2024-03-31T10:17:59Z",
        "1999-12-31T23:59:59Z",
        "1955-06-01T00:00:00Z",
    ];
    let context = session_of(&texts, &utc(TimeUnit::Microsecond));
    let sql = "SELECT time_bucket('1 month', time), time_bucket('3 months', time), time_bucket('1 year', time), \
               time_bucket('7 months', time) FROM t";
    assert_eq!(
        rows(&context, sql),
        [
            "2024-03-01T00:00:00Z 2024-01-01T00:00:00Z 2024-01-01T00:00:00Z 2023-12-01T00:00:00Z",
            "1999-12-01T00:00:00Z 1999-10-01T00:00:00Z 1999-01-01T00:00:00Z 1999-06-01T00:00:00Z",
            "1955-06-01T00:00:00Z 1955-04-01T00:00:00Z 1955-01-01T00:00:00Z 1955-02-01T00:00:00Z",
        ]
    );
}

#[test]
fn an_origin_shifts_the_bins() {
    let context = session_of(&["2024-03-31T10:17:59Z"], &utc(TimeUnit::Millisecond));
    let sql = "SELECT time_bucket('1 hour', time, timestamp '2020-01-01T00:20:00'), \
               time_bucket('1 week', time, '2024-01-07'), \
               time_bucket('1 month', time, '2020-01-15T06:00:00'), \
               time_bucket('1 day', time, 'Europe/Berlin', TIMESTAMP '2024-01-01T05:00:00'), \
               time_bucket('1 day', time, NULL) FROM t";
    assert_eq!(
        rows(&context, sql),
        [
            "2024-03-31T09:20:00Z 2024-03-31T00:00:00Z 2024-03-15T06:00:00Z 2024-03-31T04:00:00Z 2024-03-31T00:00:00Z"
        ]
    );
}

#[test]
fn days_follow_the_clocks_of_a_zone() {
    let texts = [
        "2024-03-30T22:59:59Z",
        "2024-03-30T23:00:00Z",
        "2024-03-31T21:59:59Z",
        "2024-03-31T22:00:00Z",
        "2024-10-26T22:00:00Z",
        "2024-10-27T22:59:59Z",
        "2024-10-27T23:00:00Z",
    ];
    let context = session_of(&texts, &utc(TimeUnit::Second));
    let sql = "SELECT time_bucket('1 day', time, 'Europe/Berlin'), time_bucket('1 month', time, 'Europe/Berlin') FROM t";
    assert_eq!(
        rows(&context, sql),
        [
            "2024-03-29T23:00:00Z 2024-02-29T23:00:00Z",
            "2024-03-30T23:00:00Z 2024-02-29T23:00:00Z",
            "2024-03-30T23:00:00Z 2024-02-29T23:00:00Z",
            "2024-03-31T22:00:00Z 2024-03-31T22:00:00Z",
            "2024-10-26T22:00:00Z 2024-09-30T22:00:00Z",
            "2024-10-26T22:00:00Z 2024-09-30T22:00:00Z",
            "2024-10-27T23:00:00Z 2024-09-30T22:00:00Z",
        ]
    );
}

#[test]
fn short_bins_follow_the_clocks_of_a_zone() {
    // Clocks show 02:30 twice in October, and go from 02:00 to 03:00 in March.
    let texts = [
        "2024-10-27T00:30:00Z",
        "2024-10-27T01:30:00Z",
        "2024-10-27T02:30:00Z",
        "2024-03-31T00:30:00Z",
        "2024-03-31T01:15:00Z",
    ];
    let context = session_of(&texts, &utc(TimeUnit::Nanosecond));
    let sql = "SELECT time_bucket('1 hour', time, 'Europe/Berlin'), time_bucket('6 hours', time, 'Europe/Berlin'), \
               time_bucket('2 hours', time, 'Europe/Berlin') FROM t";
    assert_eq!(
        rows(&context, sql),
        [
            "2024-10-27T00:00:00Z 2024-10-26T22:00:00Z 2024-10-27T00:00:00Z",
            "2024-10-27T01:00:00Z 2024-10-26T22:00:00Z 2024-10-27T01:00:00Z",
            "2024-10-27T02:00:00Z 2024-10-26T22:00:00Z 2024-10-27T01:00:00Z",
            "2024-03-31T00:00:00Z 2024-03-30T23:00:00Z 2024-03-30T23:00:00Z",
            "2024-03-31T01:00:00Z 2024-03-30T23:00:00Z 2024-03-31T01:00:00Z",
        ]
    );
}

#[test]
fn bins_in_zones_have_no_gaps_and_no_overlaps() {
    use crate::functions::bucket::Buckets;
    use datafusion::common::ScalarValue;
    let ty = utc(TimeUnit::Nanosecond);
    let zones = [
        "Europe/Berlin",
        "America/St_Johns",
        "Pacific/Apia",
        "Africa/Casablanca",
        "Asia/Kolkata",
        "-03:30",
    ];
    // Clocks in these zones change in the following months.
    let starts = [
        1_711_000_000_i128,
        1_729_000_000,
        1_325_000_000,
        562_000_000,
        1_162_000_000,
    ];
    for zone in zones {
        for width in [
            "40 minutes",
            "1 hour",
            "2 hours",
            "1 day",
            "36 hours",
            "1 week",
            "1 month",
        ] {
            let options = [ScalarValue::from(zone)];
            let buckets = Buckets::new("f", &ScalarValue::from(width), &ty, &options);
            let buckets = buckets.unwrap().unwrap();
            for start in starts {
                let minute = 60_000_000_000;
                let first = buckets.begin(start * 1_000_000_000).unwrap();
                let mut bin = first..buckets.next(first).unwrap();
                for time in (0..30 * 96).map(|step| start * 1_000_000_000 + step * 15 * minute) {
                    while bin.end <= time {
                        bin = bin.end..buckets.next(bin.end).unwrap();
                    }
                    let text = format!("{zone} {width} {time}");
                    assert_eq!(buckets.begin(time).unwrap(), bin.start, "{text}");
                    assert_eq!(buckets.begin(bin.end - 1).unwrap(), bin.start, "{text}");
                    assert_eq!(buckets.begin(bin.start).unwrap(), bin.start, "{text}");
                }
            }
        }
    }
}

#[test]
fn a_stretch_has_the_bins_that_follow_one_another() {
    use crate::functions::bucket::Buckets;
    use datafusion::common::ScalarValue;
    let ty = utc(TimeUnit::Nanosecond);
    let zones = [
        "UTC",
        "Europe/Berlin",
        "America/St_Johns",
        "Pacific/Apia",
        "Australia/Lord_Howe",
        "Asia/Kathmandu",
        "-03:30",
    ];
    let widths = [
        "25 minutes",
        "1 hour",
        "3 hours",
        "1 day",
        "36 hours",
        "1 week",
        "1 month",
        "7 months",
    ];
    let day = 86_400_000_000_000_i128;
    for zone in zones {
        for width in widths {
            let options = [ScalarValue::from(zone)];
            let buckets = Buckets::new("f", &ScalarValue::from(width), &ty, &options);
            let buckets = buckets.unwrap().unwrap();
            // Kathmandu changed its offset in 1986, and Apia skipped a date in 2011.
            for year in [1985_i128, 2011] {
                let from = (year - 1970) * 365 * day;
                let mut begin = buckets.begin(from).unwrap();
                let mut stretches = 0;
                let mut bins = 0;
                while begin < from + 500 * day {
                    let stretch = buckets.stretch(begin);
                    stretches += 1;
                    while begin < stretch.end.min(from + 500 * day) {
                        let next = buckets.next(begin).unwrap();
                        let text = format!("{zone} {width} {begin}");
                        assert_eq!(next - begin, stretch.length, "{text}");
                        begin = next;
                        bins += 1;
                    }
                    if stretch.end < from + 500 * day {
                        assert_eq!(begin, stretch.end, "{zone} {width}");
                    }
                }
                // Clocks change at most four times, and each change affects at most two bins.
                let months = width.contains("month");
                assert!(
                    stretches <= 13 || months && stretches == bins,
                    "{zone} {width}"
                );
            }
        }
    }
}

#[test]
fn bins_without_a_zone_become_date_bin() {
    let context = session_of(&["2024-03-31T10:17:59Z"], &utc(TimeUnit::Microsecond));
    let text = plan(&context, "SELECT time_bucket('15 minutes', time) FROM t");
    assert!(
        text.contains("date_bin(IntervalMonthDayNano") && !text.contains(", TimestampNanosecond"),
        "{text}"
    );
    assert!(
        text.contains("AS time_bucket(Utf8(\"15 minutes\"),t.time)"),
        "{text}"
    );
    let text = plan(
        &context,
        "SELECT time_bucket('1 week', time, 'UTC') AS week FROM t",
    );
    assert!(
        text.contains("date_bin(") && text.contains("TimestampNanosecond(946857600000000000"),
        "{text}"
    );
    let text = plan(
        &context,
        "SELECT time_bucket('1 day', time, 'Europe/Berlin') AS week FROM t",
    );
    assert!(!text.contains("date_bin("), "{text}");
}

#[test]
fn other_ways_to_write_bins_become_date_bin() {
    let texts = [
        "2024-03-31T10:17:59.123456Z",
        "1969-12-31T23:59:59.999999Z",
        "1970-01-01T00:00:00Z",
        "1901-12-31T10:59:59.000001Z",
        "2024-03-31T10:00:00Z",
        "2023-01-01T23:59:59Z",
        "2023-01-02T00:00:00Z",
        "1900-02-28T12:00:00Z",
        "null",
    ];
    for unit in [
        TimeUnit::Second,
        TimeUnit::Millisecond,
        TimeUnit::Microsecond,
        TimeUnit::Nanosecond,
    ] {
        let context = session_of(&texts, &utc(unit));
        let plain = SessionContext::new();
        register(&plain, "t", &[("time", times(&texts, &utc(unit)))], 1);
        let bins = [
            "date_trunc('second', time)",
            "date_trunc('minute', time)",
            "date_trunc('HOUR', time)",
            "date_trunc('day', time)",
            "date_trunc('millisecond', time)",
            "date_trunc('microsecond', time)",
            "date_trunc('week', time)",
            "date_trunc('Month', time)",
            "date_trunc('quarter', time)",
            "date_trunc('year', time)",
            "floor(extract(epoch from time)/60)*60",
            "300 * floor(extract(epoch from time)/300.0)",
            "floor(extract(epoch from time)/86400)*86400",
        ];
        for bin in bins {
            let sql = format!("SELECT {bin} FROM t");
            let text = plan(&context, &sql);
            assert!(
                text.contains("t.time)") || text.contains("t.time, "),
                "{text}"
            );
            assert!(text.contains("date_bin("), "{text}");
            assert_eq!(rows(&context, &sql), rows(&plain, &sql), "{sql}");
            let (own, other) = (run(&context, &sql).unwrap(), run(&plain, &sql).unwrap());
            let (own, other) = (own[0].schema(), other[0].schema());
            assert_eq!(own.field(0).name(), other.field(0).name());
            assert_eq!(own.field(0).data_type(), other.field(0).data_type());
            // The bin is also named in the GROUP BY clause.
            let sql = format!("SELECT {bin} AS b, count(*) FROM t GROUP BY {bin} ORDER BY 1");
            assert_eq!(rows(&context, &sql), rows(&plain, &sql), "{sql}");
        }
        for bin in [
            "date_bin(INTERVAL '1 hour', time)",
            "date_bin('1 week', time, timestamp '2024-01-01')",
        ] {
            let sql = format!("SELECT {bin} FROM t");
            assert!(!plan(&context, &sql).contains("CAST(t.time"), "{sql}");
            assert_eq!(rows(&context, &sql), rows(&plain, &sql), "{sql}");
            assert_eq!(
                *run(&context, &sql).unwrap()[0]
                    .schema()
                    .field(0)
                    .data_type(),
                utc(unit)
            );
        }
        let kept = [
            "(extract(epoch from time)/60)::bigint*60",
            "floor(extract(epoch from time)/60)*61",
            "date_trunc('day', time AT TIME ZONE 'Europe/Berlin')",
            "date_trunc('month', time AT TIME ZONE 'Europe/Berlin')",
        ];
        for bin in kept {
            let sql = format!("SELECT {bin} FROM t");
            assert!(!plan(&context, &sql).contains("date_bin("), "{sql}");
            assert_eq!(rows(&context, &sql), rows(&plain, &sql), "{sql}");
        }
    }
}

#[test]
fn the_type_of_bins_is_known_to_outer_queries() {
    for unit in [
        TimeUnit::Second,
        TimeUnit::Millisecond,
        TimeUnit::Microsecond,
        TimeUnit::Nanosecond,
    ] {
        let context = session_of(&["2024-03-31T10:17:59Z"], &utc(unit));
        for bin in [
            "time_bucket('3600.000s', time)",
            "time_bucket('1 hour', time)",
            "date_trunc('hour', time)",
            "date_bin('1 hour', time)",
        ] {
            let sql = format!(
                "SELECT max(b), min(b) FROM (SELECT {bin} AS b FROM t GROUP BY b) WHERE b > '2024-01-01'"
            );
            assert_eq!(
                rows(&context, &sql),
                ["2024-03-31T10:00:00Z 2024-03-31T10:00:00Z"]
            );
        }
    }
}

#[test]
fn wrong_arguments_are_refused() {
    let context = session_of(&["2024-03-31T10:17:59Z"], &utc(TimeUnit::Microsecond));
    let cases = [
        (
            "time_bucket('1 hour')",
            "found 1 arguments, expected 2 to 4",
        ),
        (
            "time_bucket('soon', time)",
            "the width is 'soon', expected an interval like '15 minutes'",
        ),
        (
            "time_bucket('5', time)",
            "the width is '5', expected an interval like '15 minutes'",
        ),
        ("time_bucket('0 hours', time)", "expected more than zero"),
        ("time_bucket('-1 hours', time)", "expected more than zero"),
        (
            "time_bucket('1 month 1 day', time)",
            "expected either months and years or days and parts of days",
        ),
        (
            "time_bucket(60, time)",
            "the width is a Int64, expected an interval",
        ),
        (
            "time_bucket('1 hour', 5)",
            "the time is a Int64, expected a timestamp",
        ),
        (
            "time_bucket('1 hour', time, 'Mars')",
            "'Mars' is neither a time zone nor a time for the origin",
        ),
        (
            "time_bucket('1 hour', time, 'UTC', 'UTC')",
            "UTC repeats an argument",
        ),
    ];
    for (call, expected) in cases {
        let found = error(&context, &format!("SELECT {call} FROM t"));
        assert!(found.contains(expected), "{call}: {found}");
    }
}
