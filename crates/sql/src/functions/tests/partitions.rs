//! States of aggregates: the same rows give equal results in one partition, in eight partitions, and with plain loops.

use super::*;
use arrow::array::{Int64Array, TimestampMillisecondArray};

/// A small random number generator (xorshift), so that a seed identifies a test.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

struct Row {
    key: i64,
    time: i64,
    value: Option<f64>,
}

/// Rows with different times, in random order. Values are multiples of a quarter, so that sums are exact.
fn random_rows(random: &mut Random) -> Vec<Row> {
    let count = 1 + random.below(400);
    let keys = 1 + random.below(30);
    let mut rows = (0..count)
        .map(|number| Row {
            key: random.below(keys) as i64,
            time: (number * 1_000 + random.below(1_000)) as i64 - 200_000,
            value: match random.below(10) {
                0 => None,
                1 => Some(f64::NAN),
                _ => Some(random.below(4_000) as f64 / 4.0 - 200.0),
            },
        })
        .collect::<Vec<_>>();
    for row in 0..rows.len() {
        let other = random.below(rows.len() as u64) as usize;
        rows.swap(row, other);
    }
    rows
}

const SQL: &str = "SELECT k, first(v, time), last(v, time), delta(v, time), increase(v, time), \
    integral(v, time), integral(v, time, 'linear', 'hour'), time_weighted_avg(v, time), rate(v, time), \
    histogram(v, -100, 500, 7), lttb(time, v, 5) FROM t GROUP BY k ORDER BY k";

/// The figures other than the histogram, computed with plain loops.
fn expected(rows: &[Row], key: i64) -> String {
    let mut rows = rows.iter().filter(|row| row.key == key).collect::<Vec<_>>();
    rows.sort_by_key(|row| row.time);
    let text = |value: Option<f64>| match value {
        None => "null".to_owned(),
        Some(value) => {
            let value = floats([Some(value)]);
            let options = FormatOptions::new();
            ArrayFormatter::try_new(&value, &options)
                .unwrap()
                .value(0)
                .to_string()
        }
    };
    let (first, last) = (rows[0].value, rows[rows.len() - 1].value);
    let points = rows
        .iter()
        .filter_map(|row| Some((row.time as f64 / 1e3, row.value?)));
    let points = points.filter(|point| !point.1.is_nan()).collect::<Vec<_>>();
    let (mut increase, mut locf, mut linear) = (0.0, 0.0, 0.0);
    for pair in points.windows(2) {
        let [(t0, v0), (t1, v1)] = pair else {
            unreachable!()
        };
        increase += if v1 < v0 { *v1 } else { v1 - v0 };
        locf += v0 * (t1 - t0);
        linear += (v0 + v1) / 2.0 * (t1 - t0);
    }
    let mut values = vec![first, last];
    if let [(t0, v0), .., (t1, v1)] = points[..] {
        let seconds = t1 - t0;
        values.extend(
            [
                v1 - v0,
                increase,
                locf,
                linear / 3_600.0,
                locf / seconds,
                increase / seconds,
            ]
            .map(Some),
        );
    } else {
        values.extend([None; 6]);
    }
    format!(
        "{key} {}",
        values.into_iter().map(text).collect::<Vec<_>>().join(" ")
    )
}

/// Whether two texts are equal, except that numbers may differ by rounding.
fn nearly_equal(a: &str, b: &str) -> bool {
    let (mut a, mut b) = (a.split(' '), b.split(' '));
    loop {
        match (a.next(), b.next()) {
            (None, None) => return true,
            (Some(a), Some(b)) if a == b => {}
            (Some(a), Some(b)) => match (a.parse::<f64>(), b.parse::<f64>()) {
                (Ok(a), Ok(b)) if (a - b).abs() <= 1e-9 * a.abs().max(1.0) => {}
                _ => return false,
            },
            _ => return false,
        }
    }
}

#[test]
fn results_do_not_depend_on_partitions() {
    for seed in 1..=40_u64 {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let input = random_rows(&mut random);
        let time = TimestampMillisecondArray::from_iter_values(input.iter().map(|row| row.time));
        let columns: [(&str, ArrayRef); 3] = [
            (
                "k",
                Arc::new(Int64Array::from_iter_values(
                    input.iter().map(|row| row.key),
                )),
            ),
            ("time", Arc::new(time.with_timezone("UTC"))),
            ("v", floats(input.iter().map(|row| row.value))),
        ];
        let of = |partitions: usize| {
            let context = session(partitions);
            register(&context, "t", &columns, partitions);
            let all = rows(
                &context,
                "SELECT first(v, time), last(v, time), rate(v, time), lttb(time, v, 9) FROM t",
            );
            (rows(&context, SQL), all)
        };
        let (one, eight) = (of(1), of(8));
        assert_eq!(one, eight, "seed {seed}");
        for row in &one.0 {
            let key = row.split(' ').next().unwrap().parse().unwrap();
            let figures = &row[..row
                .find(" [")
                .or(row.find(" null null\n"))
                .unwrap_or(row.len())];
            let figures = figures
                .strip_suffix(" null null")
                .filter(|_| !row.contains('['))
                .unwrap_or(figures);
            let expected = expected(&input, key);
            assert!(
                nearly_equal(figures, &expected),
                "seed {seed}: {figures}, expected {expected}"
            );
        }
    }
}
