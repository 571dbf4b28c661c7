//! Row-by-row functions are compared with a plain computation, wherever the rows are stored.

use crate::aged;
use std::sync::Arc;
use tidalite::functions::{Dot, DotFunctions};
use tidalite::query::Join;
use tidalite::storage::{MemoryStorage, Storage};
use tidalite::{
    Column, ColumnType, Database, Figure, Options, Result, Schema, Steps, Timestamp, Unit, Value,
};
use tidalite_testkit::rng::Rng;

type Plain = Vec<(i64, Option<f64>)>;

fn schema(unit: Unit) -> Schema {
    Schema::new(unit, [("count", ColumnType::I64)])
        .with(Column::nullable("level", ColumnType::Decimal(1)))
}

/// Fills a series with late, overwritten and null rows, some of them in leaves and some in the delta.
fn fill(db: &Database, name: &str, rng: &mut Rng) -> Plain {
    let mut rows = std::collections::BTreeMap::new();
    for _ in 0..4 {
        let mut tx = db.begin_write().expect("a transaction");
        let mut series = tx
            .series_with(name, &schema(Unit::Nanos))
            .expect("a series");
        let start = rng.between(0, 3000);
        for i in 0..rng.between(1, 1500) {
            let time = if rng.one_in(9) {
                rng.between(0, 6000)
            } else {
                start + 2 * i
            };
            let level = (!rng.one_in(10)).then(|| rng.between(-900, 900));
            let units = |units: i64| Value::from(tidalite::Decimal { units, scale: 1 });
            let value = level.map_or(Value::Null, units);
            let words = [Value::from(time % 97), value];
            series.insert_values(Steps(time), &words).expect("a row");
            rows.insert(time, level.map(|units| units as f64 / 10.0));
        }
        tx.commit().expect("a commit");
        if rng.one_in(3) {
            let (now, keep) = (rng.between(1000, 4000), rng.between(500, 4000));
            let cut = aged::cut(db, name, now, keep);
            let before = rows.len();
            rows.retain(|&time, _| time >= now - keep);
            assert_eq!(cut, (before - rows.len()) as u64);
        }
    }
    rows.into_iter().collect()
}

fn all(dots: impl Iterator<Item = Result<Dot>>) -> Vec<(i64, f64)> {
    dots.map(|dot| dot.map(|dot| (dot.time, dot.value)))
        .collect::<Result<_>>()
        .expect("dots")
}

fn close(found: &[(i64, f64)], expected: &[(i64, f64)], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found.0, expected.0, "{what}");
        let near = (found.1 - expected.1).abs() <= 1e-9 * expected.1.abs().max(1.0);
        assert!(near, "{what}: {found:?}, expected {expected:?}");
    }
}

fn memory() -> Database {
    tidalite_testkit::watch();
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    Options::new().open_storage(storage).expect("a fresh file")
}

#[test]
fn functions_over_rows_equal_brute_force() {
    for seed in 0..6 {
        let mut rng = Rng::new(seed);
        let db = memory();
        let plain = fill(&db, "a", &mut rng);
        let snap = db.begin_read().unwrap();
        let series = snap.series("a").unwrap().unwrap();
        let from = rng.between(0, 2000);
        let to = from + rng.between(0, 5000);
        let dots = || series.query(Steps(from)..Steps(to)).dots(1).unwrap();
        let inside = plain.iter().filter(|(time, _)| (from..to).contains(time));
        let values: Vec<(i64, f64)> = inside.filter_map(|&(t, v)| Some((t, v?))).collect();
        assert_eq!(all(dots()), values, "seed {seed}");
        let pairs = || values.windows(2).map(|pair| (pair[0], pair[1]));
        let difference: Vec<_> = pairs().map(|(a, b)| (b.0, b.1 - a.1)).collect();
        assert_eq!(all(dots().difference()), difference, "seed {seed}");
        let slope =
            |(a, b): ((i64, f64), (i64, f64))| (b.0, (b.1 - a.1) / (b.0 - a.0) as f64 * 5.0);
        let derivative: Vec<_> = pairs().map(slope).collect();
        close(&all(dots().derivative(5)), &derivative, "derivative");
        let began = |(a, b): ((i64, f64), (i64, f64))| {
            let risen = if b.1 < a.1 { b.1 } else { b.1 - a.1 };
            (b.0, risen / (b.0 - a.0) as f64 * 5.0)
        };
        let rate: Vec<_> = pairs().map(began).collect();
        close(&all(dots().rate(5)), &rate, "rate");
        let mean =
            |last: &[(i64, f64)]| last.iter().map(|dot| dot.1).sum::<f64>() / last.len() as f64;
        for count in [0, 1, 2, 7, 400] {
            let last = |i: usize| &values[(i + 1).saturating_sub(count.max(1))..=i];
            let means: Vec<_> = (0..values.len())
                .map(|i| (values[i].0, mean(last(i))))
                .collect();
            close(&all(dots().moving_mean(count)), &means, "moving mean");
        }
        for width in [0, 1, 2, 37, 3000, i64::MAX] {
            let means: Vec<_> = (0..values.len())
                .map(|i| {
                    let time = values[i].0;
                    let first = values[..i].partition_point(|dot| time - dot.0 >= width.max(1));
                    (time, mean(&values[first..=i]))
                })
                .collect();
            close(
                &all(dots().moving_mean_over(width)),
                &means,
                "moving mean over time",
            );
        }
        exponential_means_and_errors(&values, dots, &mut rng);
        let mut sum = 0.0;
        let sums: Vec<_> = values
            .iter()
            .map(|dot| {
                sum += dot.1;
                (dot.0, sum)
            })
            .collect();
        close(&all(dots().cumulative_sum()), &sums, "cumulative sum");
    }
}

/// Compares exponential means with their definition, a weighted sum over all values so far, and compares the errors of
/// every kind of mean.
fn exponential_means_and_errors<'s>(
    values: &[(i64, f64)],
    dots: impl Fn() -> tidalite::functions::Dots<'s>,
    rng: &mut Rng,
) {
    let weighted = |weight: &dyn Fn(usize, usize) -> f64| -> Vec<(i64, f64)> {
        let mean = |at: usize| {
            // Older rows are left out of the expected value: in every query here their weight is below 2^-53, the
            // precision of a float.
            let rows = at.saturating_sub(2500)..=at;
            let weights = rows.clone().map(|i| weight(i, at)).sum::<f64>();
            rows.map(|i| weight(i, at) * values[i].1).sum::<f64>() / weights
        };
        (0..values.len())
            .map(|at| (values[at].0, mean(at)))
            .collect()
    };
    let errors = |means: &[(i64, f64)]| -> Vec<(i64, f64)> {
        let pairs = values.iter().skip(1).zip(means);
        pairs
            .map(|(value, mean)| (value.0, value.1 - mean.1))
            .collect()
    };
    for span in [0, 1, 2, 10, 100] {
        let factor = (span.max(1) as f64 - 1.0) / (span.max(1) as f64 + 1.0);
        let means = weighted(&|i, at| factor.powi((at - i) as i32));
        close(&all(dots().exponential_mean(span)), &means, "exponential");
        let found = all(dots().exponential_mean(span).errors());
        close(&found, &errors(&means), "errors of exponential");
    }
    for constant in [0, 1, 30, 200] {
        let means = weighted(&|i, at| {
            let age = (values[at].0 - values[i].0) as f64;
            match constant {
                0 => f64::from(u8::from(i == at)),
                _ => (-age / f64::from(constant)).exp(),
            }
        });
        let over = || dots().exponential_mean_over(constant.into());
        close(&all(over()), &means, "exponential over time");
        close(&all(over().errors()), &errors(&means), "errors of that");
    }
    let (count, width) = (rng.between(1, 20) as usize, rng.between(1, 200));
    let means = all(dots().moving_mean(count));
    close(
        &all(dots().moving_mean(count).errors()),
        &errors(&means),
        "errors of moving",
    );
    let means = all(dots().moving_mean_over(width));
    let found = all(dots().moving_mean_over(width).errors());
    close(&found, &errors(&means), "errors of moving over time");
}

#[test]
fn exponential_means_of_odd_values() {
    let dots = |values: &[f64]| {
        let dot = |(i, &value): (usize, &f64)| {
            Ok(Dot {
                time: i as i64 * i64::from(u32::MAX),
                value,
            })
        };
        values
            .iter()
            .enumerate()
            .map(dot)
            .collect::<Vec<_>>()
            .into_iter()
    };
    let values = |dots: Vec<(i64, f64)>| dots.into_iter().map(|dot| dot.1).collect::<Vec<_>>();
    // A value that is not finite affects only its own mean, not later ones.
    let found = values(all(
        dots(&[f64::NAN, 1.0, f64::INFINITY, 3.0]).exponential_mean(3)
    ));
    assert!(found[0].is_nan());
    assert_eq!(found[1..], [1.0, 1.0, (0.5 * 1.0 + 3.0) / 1.5]);
    // Values at the limit do not overflow, and a constant series has errors of exactly zero.
    let found = values(all(
        dots(&[f64::MAX, -f64::MAX, f64::MAX]).exponential_mean(1000)
    ));
    assert!(found.iter().all(|mean| mean.is_finite()), "{found:?}");
    let errors = values(all(dots(&[0.1; 50]).exponential_mean(7).errors()));
    assert_eq!(errors, [0.0; 49]);
    // A value must not affect the mean any more once it is far in the past, however large it was.
    let found = values(all(dots(&[1e300, 1.0]).exponential_mean_over(1000)));
    assert_eq!(found, [1e300, 1.0]);
    let ends = [(i64::MIN, 1.0), (i64::MAX, 2.0)].map(|(time, value)| Ok(Dot { time, value }));
    assert_eq!(
        values(all(ends.into_iter().exponential_mean_over(i64::MAX))).len(),
        2
    );
}

#[test]
fn a_moving_mean_drops_rows_that_leave_the_window() {
    let values = [1e300, f64::INFINITY, f64::NAN, -1e300, 1.0, 2.0, 3.0, 4.0];
    let dots = values.iter().enumerate();
    let dots = dots.map(|(i, &value)| {
        Ok(Dot {
            time: i as i64,
            value,
        })
    });
    let means = all(dots.moving_mean(2));
    assert_eq!(means[1].1, f64::INFINITY);
    assert!(means[2].1.is_nan() && means[3].1.is_nan());
    assert_eq!(means[5..], [(5, 1.5), (6, 2.5), (7, 3.5)]);
    // Small values are not lost beside a huge one, as they would be in a plain sum of floats.
    let dots = [1.0, 1e100, 1.0, -1e100].iter().enumerate();
    let dots = dots.map(|(i, &value)| {
        Ok(Dot {
            time: i as i64,
            value,
        })
    });
    assert_eq!(all(dots.cumulative_sum()).last(), Some(&(3, 2.0)));
}

#[test]
fn two_series_combine_and_the_first_of_many_lead() {
    for seed in 0..4 {
        let mut rng = Rng::new(seed);
        let db = memory();
        let names = ["a", "b", "c", "d", "e"];
        let plain: Vec<Plain> = names.iter().map(|name| fill(&db, name, &mut rng)).collect();
        let snap = db.begin_read().unwrap();
        let pair = snap.select("?").unwrap();
        assert!(
            pair.query(..)
                .combine(Join::Inner, ("level", "level"), |a, _| a)
                .is_err()
        );
        let [a, b] = ["a", "b"].map(|name| snap.series(name).unwrap().unwrap());
        let pair = tidalite::Selection::of(vec![a, b]);
        let joined = pair
            .query(..)
            .combine(Join::Inner, ("level", "count"), |a, b| a / (b + 1.0));
        let other: std::collections::BTreeMap<_, _> = plain[1].iter().copied().collect();
        let expected: Vec<_> = plain[0]
            .iter()
            .filter(|(time, _)| other.contains_key(time))
            .filter_map(|&(time, level)| Some((time, level? / ((time % 97) as f64 + 1.0))))
            .collect();
        close(&all(joined.unwrap()), &expected, "arithmetic");

        let chosen = snap.select("").unwrap();
        let (from, to) = (rng.between(0, 1500), rng.between(1500, 6000));
        let mean = |rows: &Plain| {
            let inside = rows.iter().filter(|(time, _)| (from..to).contains(time));
            let values: Vec<f64> = inside.filter_map(|row| row.1).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        let means = plain.iter().map(mean).enumerate();
        let mut means: Vec<_> = means.filter_map(|(i, mean)| Some((i, mean?))).collect();
        means.sort_by(|a, b| b.1.total_cmp(&a.1));
        let places = |found: Vec<(usize, f64)>| found.iter().map(|f| f.0).collect::<Vec<_>>();
        let times = Timestamp(from)..Timestamp(to);
        let query = chosen.query(times);
        let top = query.top(3, "level", Figure::Mean).unwrap();
        let expected: Vec<_> = means.iter().take(3).map(|mean| mean.0).collect();
        assert_eq!(places(top), expected, "seed {seed}");
        let bottom = query.bottom(2, "level", Figure::Mean).unwrap();
        let expected: Vec<_> = means.iter().rev().take(2).map(|mean| mean.0).collect();
        assert_eq!(places(bottom), expected, "seed {seed}");
    }
}
