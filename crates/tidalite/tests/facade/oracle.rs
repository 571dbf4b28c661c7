//! The expected results of queries of a series, computed by brute force from a plain map.

use crate::common::Rows;
use std::ops::Bound;
use tidalite::{Aggregate, ColumnType, Cursor, Figure, Query, Row, Series, Steps, Window};
use tidalite_testkit::rng::Rng;

/// Maximum error of a sum, relative to the sum of the magnitudes; the docs of `Aggregate` promise it.
const SUM_BOUND: f64 = 1.0 / (1u64 << 50) as f64;
/// Maximum error of the variance, relative to the mean square. It is a difference of two sums with this error; the docs
/// of `Aggregate` promise it.
const VARIANCE_BOUND: f64 = 8.0 * SUM_BOUND;

/// A sum in twice the precision of a float, to judge the error of a sum of floats.
#[derive(Clone, Copy, Default)]
struct Exact {
    high: f64,
    low: f64,
}

impl Exact {
    fn add(&mut self, x: f64) {
        let sum = self.high + x;
        let part = sum - self.high;
        self.low += (self.high - (sum - part)) + (x - part);
        self.high = sum;
    }

    fn get(self) -> f64 {
        let sum = self.high + self.low;
        if sum.is_finite() { sum } else { self.high }
    }
}

fn float(ty: ColumnType, word: u64) -> f64 {
    match ty {
        ColumnType::F64 => f64::from_bits(word),
        ColumnType::I64 => word as i64 as f64,
        _ => word as f64,
    }
}

/// Whether value `a` is before `b` in the order of this type, with -0.0 before 0.0.
fn before(ty: ColumnType, a: u64, b: u64) -> bool {
    match ty {
        ColumnType::F64 => f64::from_bits(a).total_cmp(&f64::from_bits(b)).is_lt(),
        ColumnType::I64 => (a as i64) < (b as i64),
        _ => a < b,
    }
}

fn near(found: f64, expected: f64, tolerance: f64) -> bool {
    found == expected
        || (found.is_nan() && expected.is_nan())
        || (found - expected).abs() <= tolerance
}

const FIGURES: [Figure; 8] = [
    Figure::Count,
    Figure::Sum,
    Figure::Mean,
    Figure::Stddev,
    Figure::Min,
    Figure::Max,
    Figure::First,
    Figure::Last,
];

/// Compares an aggregate with the result of brute force over these rows.
pub(crate) fn assert_aggregate(found: &Aggregate, ty: ColumnType, rows: &[(i64, u64)]) {
    let values: Vec<_> = rows
        .iter()
        .filter(|(_, word)| !(ty == ColumnType::F64 && f64::from_bits(*word).is_nan()))
        .copied()
        .collect();
    let stats = found.stats();
    assert_eq!(found.count(), rows.len() as u64, "count");
    assert_eq!(found.nan_count(), (rows.len() - values.len()) as u64, "NaN");
    assert_eq!(stats.first(), rows.first().map(|row| row.1), "first");
    assert_eq!(stats.last(), rows.last().map(|row| row.1), "last");
    let extreme = |better: &dyn Fn(u64, u64) -> bool| {
        let pick =
            |best: (i64, u64), row: &(i64, u64)| if better(row.1, best.1) { *row } else { best };
        let (first, rest) = values.split_first()?;
        let (time, word) = rest.iter().fold(*first, pick);
        Some((word, time))
    };
    assert_eq!(stats.min(), extreme(&|a, b| before(ty, a, b)), "min");
    assert_eq!(stats.max(), extreme(&|a, b| before(ty, b, a)), "max");
    if ty != ColumnType::F64 {
        let exact: i128 = values
            .iter()
            .map(|&(_, word)| {
                if ty == ColumnType::I64 {
                    i128::from(word as i64)
                } else {
                    i128::from(word)
                }
            })
            .sum();
        assert_eq!(stats.int_sum(), Some(exact), "integer sum");
        let tolerance = exact as f64 * SUM_BOUND;
        assert!(
            near(found.sum(), exact as f64, tolerance.abs()),
            "{} and {exact}",
            found.sum()
        );
    }
    let floats: Vec<f64> = values.iter().map(|&(_, word)| float(ty, word)).collect();
    let (mut sum, mut magnitude, mut squares) = (Exact::default(), 0.0, 0.0);
    for &x in &floats {
        sum.add(x);
        magnitude += x.abs();
        squares += x * x;
    }
    let n = floats.len() as f64;
    if magnitude.is_finite() {
        let sum = sum.get();
        assert!(
            near(found.sum(), sum, magnitude * SUM_BOUND),
            "sum {:e}, expected {sum:e}",
            found.sum()
        );
        if let Some(mean) = found.mean() {
            assert!(
                near(mean, sum / n, magnitude * SUM_BOUND / n),
                "mean {mean:e}"
            );
        }
    } else {
        let plain: f64 = floats.iter().sum();
        let found = found.sum();
        assert!(
            found == plain || found.is_nan() && plain.is_nan(),
            "sum {found}, expected {plain}"
        );
    }
    assert_eq!(found.mean().is_some(), !floats.is_empty(), "mean");
    assert_eq!(found.stddev().is_some(), !floats.is_empty(), "stddev");
    if squares.is_infinite() && magnitude.is_finite() {
        // The squares may overflow, so the values are scaled down first.
        let down = 2f64.powi(-600);
        let (mut spread, mut squares) = (Exact::default(), 0.0);
        for x in floats.iter().map(|x| x * down) {
            let distance = x - sum.get() * down / n;
            spread.add(distance * distance);
            squares += x * x;
        }
        let (stddev, expected) = (found.stddev().unwrap() * down, spread.get() / n);
        let tolerance = squares / n * VARIANCE_BOUND;
        assert!(
            near(stddev * stddev, expected, tolerance),
            "deviation {stddev:e} * 2^600, expected the root of {expected:e}"
        );
    } else if squares.is_finite() && !floats.is_empty() {
        let mean = sum.get() / n;
        let mut spread = Exact::default();
        for &x in &floats {
            spread.add((x - mean) * (x - mean));
        }
        let (variance, expected) = (stats.variance().unwrap(), spread.get() / n);
        let tolerance = squares / n * VARIANCE_BOUND;
        assert!(
            near(variance, expected, tolerance),
            "variance {variance:e}, expected {expected:e}"
        );
        assert!(near(found.stddev().unwrap(), variance.sqrt(), 0.0));
    }
}

/// A random time worth testing: the time of a row, a time next to one, an end of the range, or any time.
pub(crate) fn a_time(rng: &mut Rng, rows: &Rows) -> i64 {
    let inside = |rng: &mut Rng| {
        let (Some((&first, _)), Some((&last, _))) = (rows.first_key_value(), rows.last_key_value())
        else {
            return 0;
        };
        let near = rng.between(first, last);
        let at_or_after = rows.range(near..).next();
        at_or_after.map_or(last, |(&time, _)| time)
    };
    match rng.below(12) {
        0 => i64::MIN,
        1 => i64::MAX,
        2 => rng.u64() as i64,
        3..=5 => inside(rng).saturating_add(rng.between(-2, 2)),
        _ => inside(rng),
    }
}

fn interval(rows: &Rows, from: i64, to: i64) -> Vec<(i64, &[u64])> {
    if from > to {
        return Vec::new();
    }
    let range = rows.range((Bound::Included(from), Bound::Included(to)));
    range.map(|(&time, words)| (time, &words[..])).collect()
}

/// Compares every query of a random interval, and the moves of a cursor, with the map.
pub(crate) fn compare(rng: &mut Rng, series: &Series<'_>, rows: &Rows) {
    assert_eq!(series.count().unwrap(), rows.len() as u64, "count");
    let ends = rows.first_key_value().zip(rows.last_key_value());
    assert_eq!(
        series.span(),
        ends.map(|(first, last)| (*first.0, *last.0)),
        "span"
    );
    let newest = rows.last_key_value().map(|(&time, words)| Row {
        time,
        words: words.clone(),
    });
    assert_eq!(series.latest().unwrap(), newest, "latest");
    let (a, b) = (a_time(rng, rows), a_time(rng, rows));
    let (from, to) = match rng.below(8) {
        0 => (i64::MIN, i64::MAX),
        1 => (a, b), // perhaps the wrong way round
        _ => (a.min(b), a.max(b)),
    };
    let expected = interval(rows, from, to);
    assert_eq!(
        series.query(Steps(from)..=Steps(to)).count().unwrap(),
        expected.len() as u64
    );
    if to > i64::MIN {
        let without_last = expected.iter().filter(|(time, _)| *time < to).count();
        assert_eq!(
            series.query(Steps(from)..Steps(to)).count().unwrap(),
            without_last as u64
        );
    }
    scans(rng, series, (from, to), &expected);
    let types = series.info().schema.types();
    for (column, &ty) in types.iter().enumerate() {
        let words: Vec<_> = expected
            .iter()
            .map(|(time, words)| (*time, words[column]))
            .collect();
        let found = series
            .query(Steps(from)..=Steps(to))
            .aggregate(column)
            .unwrap();
        assert_aggregate(&found, ty, &words);
        windows(rng, series, (from, to), (column, ty), &words);
    }
    walk(rng, &mut series.cursor(), rows);
}

fn scans(rng: &mut Rng, series: &Series<'_>, (from, to): (i64, i64), expected: &[(i64, &[u64])]) {
    let range = series.query(Steps(from)..=Steps(to));
    let mut at = 0;
    let seen = range.for_each(|time, words| {
        assert_eq!((time, words), expected[at]);
        at += 1;
    });
    assert_eq!((seen.unwrap(), at), (expected.len() as u64, expected.len()));
    let columns = series.info().schema.columns.len();
    let wanted: Vec<usize> = (0..columns).filter(|_| rng.one_in(2)).collect();
    let mut at = 0;
    range
        .clone()
        .columns(&wanted)
        .for_each_vector(|vector| {
            assert!((1..=1024).contains(&vector.times().len()));
            for (row, &time) in vector.times().iter().enumerate() {
                assert_eq!(time, expected[at].0);
                for &column in &wanted {
                    assert_eq!(vector.words(column)[row], expected[at].1[column]);
                }
                at += 1;
            }
        })
        .unwrap();
    assert_eq!(at, expected.len());
    range
        .reverse()
        .for_each_vector(|vector| {
            for (row, &time) in vector.times().iter().enumerate().rev() {
                at -= 1;
                assert_eq!(time, expected[at].0);
                for (column, &word) in expected[at].1.iter().enumerate() {
                    assert_eq!(vector.words(column)[row], word);
                }
            }
        })
        .unwrap();
    assert_eq!(at, 0);
}

fn windows(
    rng: &mut Rng,
    series: &Series<'_>,
    (from, to): (i64, i64),
    (column, ty): (usize, ColumnType),
    rows: &[(i64, u64)],
) {
    let span = match (rows.first(), rows.last()) {
        (Some(first), Some(last)) => i128::from(last.0) - i128::from(first.0),
        _ => 1_000,
    };
    let width = match rng.below(12) {
        0 => 1,
        1 => i64::MAX,
        _ => (span / i128::from(rng.between(1, 400))).clamp(1, i64::MAX.into()) as i64,
    };
    let origin = match rng.below(6) {
        0 => i64::MIN,
        1 => i64::MAX,
        2 => 0,
        _ => rng.u64() as i64,
    };
    let number = |time: i64| (i128::from(time) - i128::from(origin)).div_euclid(width.into());
    let range = series.query(Steps(from)..=Steps(to));
    let found = range
        .windows((Steps(width), Steps(origin)), column)
        .unwrap();
    figures(rng, &range, (width, origin), column, &found);
    let mut found = found.iter();
    for part in rows.chunk_by(|a, b| number(a.0) == number(b.0)) {
        let window = found.next().unwrap();
        let start = i128::from(origin) + number(part[0].0) * i128::from(width);
        let last = start + i128::from(width) - 1;
        assert_eq!(
            i128::from(window.start),
            start.max(i64::MIN.into()),
            "start"
        );
        assert_eq!(i128::from(window.last), last.min(i64::MAX.into()), "last");
        assert_aggregate(&window.aggregate, ty, part);
    }
    assert!(found.next().is_none(), "a window without rows");
}

/// Checks that queries for selected figures return the same values as whole aggregates, bit by bit.
pub(crate) fn figures(
    rng: &mut Rng,
    range: &Query<'_>,
    (width, origin): (i64, i64),
    column: usize,
    whole: &[Window],
) {
    let wanted: Vec<Figure> = (0..rng.below(4)).map(|_| *rng.pick(&FIGURES)).collect();
    let bits = |value: Option<f64>| value.map(f64::to_bits);
    let of = |aggregate: &Aggregate| -> Vec<_> {
        wanted.iter().map(|one| bits(one.of(aggregate))).collect()
    };
    let own = |values: Vec<Option<f64>>| -> Vec<_> { values.into_iter().map(bits).collect() };
    let some = range.clone().figures(&wanted[..]);
    let all = range.aggregate(column).unwrap();
    assert_eq!(own(some.aggregate(column).unwrap()), of(&all), "{wanted:?}");
    let windows = some.windows((Steps(width), Steps(origin)), column).unwrap();
    assert_eq!(windows.len(), whole.len(), "windows");
    for (some, whole) in windows.into_iter().zip(whole) {
        assert_eq!((some.start, some.last), (whole.start, whole.last));
        assert_eq!(own(some.aggregate), of(&whole.aggregate), "{wanted:?}");
    }
    // Queries a single figure, and arrays of figures.
    let one = *rng.pick(&FIGURES);
    let found = range.clone().figures(one).aggregate(column).unwrap();
    assert_eq!(bits(found), bits(one.of(&all)), "{one:?}");
    let other = *rng.pick(&FIGURES);
    let found = range
        .clone()
        .figures([one, other])
        .aggregate(column)
        .unwrap();
    assert_eq!(found.map(bits), [one, other].map(|one| bits(one.of(&all))));
}

fn walk(rng: &mut Rng, cursor: &mut Cursor<'_>, rows: &Rows) {
    // Position -1 is before the first row; the number of rows is the position after the last.
    let times: Vec<i64> = rows.keys().copied().collect();
    let count = times.len() as i64;
    let mut at = -1i64;
    for _ in 0..12 {
        let (steps, kind) = match rng.below(6) {
            0..=1 => (1, 0),
            2 if count > 0 => (1, 1),
            3 if count > 0 => (1, 2),
            step => (rng.below(900), 3 + step % 2),
        };
        for _ in 0..steps {
            let found = match kind {
                0 => {
                    let t = a_time(rng, rows);
                    at = times.partition_point(|&time| time <= t) as i64 - 1;
                    cursor.search(Steps(t))
                }
                1 => {
                    at = 0;
                    cursor.first()
                }
                2 => {
                    at = count - 1;
                    cursor.last()
                }
                3 => {
                    at = (at + 1).min(count);
                    cursor.next()
                }
                _ => {
                    at = (at - 1).max(-1);
                    cursor.previous()
                }
            };
            let found = found.unwrap();
            let time = usize::try_from(at).ok().and_then(|at| times.get(at));
            assert_eq!(
                found.as_ref().map(|row| row.time),
                time.copied(),
                "row {at} of {count}"
            );
            assert_eq!(
                found.as_ref().map(|row| &row.words),
                time.map(|time| &rows[time])
            );
            assert_eq!(cursor.time(), time.copied());
            assert_eq!(cursor.current(), found);
            if found.is_none() {
                break;
            }
        }
    }
}
