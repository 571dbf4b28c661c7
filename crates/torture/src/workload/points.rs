//! Operations on series with the default schema (flags and value), and on annotations of series.

use super::names::{SERIES, TIME_MAX, any_series, keeps_several, merge_of, series_name, value_of};
use super::shape::{Shape, chance};
use crate::model::{Model, Rows};
use std::collections::BTreeMap;
use tidalite::{MergePolicy, Result, SeriesMut, Steps, WriteTxn};
use tidalite_testkit::rng::Rng;

/// Maximum number of rows of a series that keeps duplicates; a series with more rows gets no more batches.
pub(crate) const KEPT_ROWS_MAX: u64 = 8_000;

pub(crate) fn series<'t>(tx: &'t mut WriteTxn, name: &str) -> Result<SeriesMut<'t>> {
    tx.open_series(name).merge(merge_of(name)).open()
}

/// Inserts a row into a series and into the model of the series.
pub(crate) fn insert(
    series: &mut SeriesMut<'_>,
    rows: &mut Rows,
    (time, flags, value): (i64, i64, f64),
) -> Result<()> {
    let done = series.insert_point(Steps(time), flags, value);
    let row = [flags as u64, value.to_bits()];
    inserted(series.info().merge, rows, (time, row), done)
}

/// Applies an insert to the model, and checks that the result of the insert follows the merge policy.
pub(crate) fn inserted(
    merge: MergePolicy,
    rows: &mut Rows,
    (time, row): (i64, [u64; 2]),
    done: Result<()>,
) -> Result<()> {
    match merge {
        MergePolicy::Error if rows.contains_key(&time) => {
            return match done {
                Err(error) if error.time() == Some(time) => Ok(()),
                Ok(()) => panic!("a row at {time} is taken twice"),
                // The insert may fail with a disk error before the database checks the time.
                Err(error) => Err(error),
            };
        }
        MergePolicy::KeepFirst => {
            rows.entry(time).or_insert_with(|| vec![row]);
        }
        MergePolicy::KeepAll => rows.entry(time).or_default().push(row),
        MergePolicy::KeepDistinct => {
            let same = rows.entry(time).or_default();
            if !same.contains(&row) {
                same.push(row);
            }
        }
        _ => {
            rows.insert(time, vec![row]);
        }
    }
    done
}

pub(crate) fn rows_in(rows: &Rows) -> u64 {
    rows.values().map(|rows| rows.len() as u64).sum()
}

pub(super) fn append(
    tx: &mut WriteTxn,
    next: &mut Model,
    rng: &mut Rng,
    shape: &Shape,
) -> Result<()> {
    let name = series_name(rng.below(SERIES));
    let rows = next.series.entry(name.clone()).or_default();
    let last = rows.last_key_value().map_or(0, |(&time, _)| time);
    let bulk = chance(rng, shape.bulk_one_in);
    let count = if bulk {
        rng.between(1_024, 2_100)
    } else {
        rng.between(1, 20)
    };
    let step = if bulk { 1 } else { rng.between(1, 9) };
    let start = if last + step * count > TIME_MAX {
        rng.between(0, TIME_MAX / 2)
    } else {
        last + step
    };
    let mut series = series(tx, &name)?;
    if bulk && keeps_several(series.info().merge) {
        return append_kept(&mut series, rows, rng, (start, count));
    }
    for i in 0..count {
        let point = (start + i * step, i64::from(rng.one_in(50)), value_of(rng));
        insert(&mut series, rows, point)?;
    }
    Ok(())
}

/// Appends a batch with several rows for each time; some of the times already exist.
fn append_kept(
    series: &mut SeriesMut<'_>,
    rows: &mut Rows,
    rng: &mut Rng,
    (start, count): (i64, i64),
) -> Result<()> {
    if rows_in(rows) > KEPT_ROWS_MAX {
        return Ok(());
    }
    let each = rng.between(1, 30);
    let times: Vec<i64> = (0..count).map(|i| start - 1 + i / each).collect();
    let flags = vec![0; times.len()];
    let mut values: Vec<u64> = times.iter().map(|_| value_of(rng).to_bits()).collect();
    let merge = series.info().merge;
    for at in 0..times.len() {
        if merge == MergePolicy::KeepDistinct && at > 0 && rng.one_in(3) {
            values[at] = values[rng.index(at)];
        }
        inserted(merge, rows, (times[at], [0, values[at]]), Ok(()))?;
    }
    series.append_rows(&times, &[&flags, &values])
}

pub(super) fn late(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
    let name = any_series(rng);
    let rows = next.series.entry(name.clone()).or_default();
    let mut series = series(tx, &name)?;
    for _ in 0..rng.below(6) {
        let at = match rows.last_key_value() {
            // Begins at the last times of earlier transactions, to test the order of arrival of rows at one time.
            Some((&last, _)) if keeps_several(series.info().merge) => {
                rng.between((last - 3).max(0), last)
            }
            _ => rng.between(0, TIME_MAX),
        };
        let mut point = (at, 0, value_of(rng));
        // Half of the rows duplicate an existing row.
        if series.info().merge == MergePolicy::KeepDistinct
            && rng.one_in(2)
            && let Some(same) = rows.get(&at)
        {
            let [flags, value] = *rng.pick(same);
            point = (at, flags as i64, f64::from_bits(value));
        }
        insert(&mut series, rows, point)?;
    }
    Ok(())
}

pub(super) fn delete(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
    let name = any_series(rng);
    let rows = next.series.entry(name.clone()).or_default();
    let from = rng.between(0, TIME_MAX);
    let span = if rng.one_in(6) { TIME_MAX } else { 300 };
    let to = from + rng.between(0, span);
    let before = rows_in(rows);
    rows.retain(|&time, _| time < from || time >= to);
    let removed = series(tx, &name)?.delete(Steps(from)..Steps(to))?;
    assert_eq!(
        removed,
        before - rows_in(rows),
        "delete tells how many rows went"
    );
    Ok(())
}

/// Rewrites some or all leaves of a series in cold form, which does not change the rows.
pub(super) fn cool(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
    let name = any_series(rng);
    next.series.entry(name.clone()).or_default();
    let rows_max = *rng.pick(&[0, 1, u64::MAX]);
    series(tx, &name)?.rewrite_cold(rng.between(0, 2 * TIME_MAX), rows_max)?;
    Ok(())
}

/// Sets or removes an annotation of a series, and checks the previous text against the model.
pub(super) fn annotate(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
    let name = any_series(rng);
    next.series.entry(name.clone()).or_default();
    let mut series = series(tx, &name)?;
    annotate_one(&mut series, &name, &mut next.annotations, rng)
}

pub(crate) fn annotate_one(
    series: &mut SeriesMut<'_>,
    name: &str,
    annotations: &mut BTreeMap<(String, String), String>,
    rng: &mut Rng,
) -> Result<()> {
    let key = format!("k{}", rng.below(3));
    let place = (name.to_owned(), key.clone());
    let expected = annotations.get(&place).map(String::as_str);
    let text = (!rng.one_in(4)).then(|| format!("text {}", rng.below(1000)));
    let done = series.compare_annotation(&key, expected, text.as_deref())?;
    assert!(done, "annotation {key} was {expected:?}");
    match text {
        Some(text) => annotations.insert(place, text),
        None => annotations.remove(&place),
    };
    Ok(())
}
