//! Seeded transactions over tables and series, applied to a database and to the model alike.

use super::wide::{self, WIDE, wide_name};
use super::{appenders, round_robin, table_calls};
use crate::model::{Model, Rows, TOPICS};
use std::collections::BTreeMap;
use std::time::Duration;
use tidalite::{Durability, Error, MergePolicy, Result, Retention, Schema, SeriesMut, WriteTxn};
use tidalite_testkit::rng::Rng;

/// Series that a workload appends to in a transaction's own thread, of every merge policy.
pub(crate) const SERIES: u64 = 5;
/// Series beyond these that appenders fill (`appenders.rs`), and everything else touches.
pub(crate) const APPENDED: u64 = 6;
/// Tables that a workload uses.
pub(crate) const TABLES: u64 = 2;
/// Names of pins that a workload uses.
const PINS: u64 = 2;
/// Latest time that a workload reaches; small, so that late rows and overwrites happen.
pub const TIME_MAX: i64 = 6_000;
/// Keys of a table of multi-values, and values that a key may have.
pub(crate) const MULTI_KEYS: u64 = 4;
pub(crate) const MULTI_VALUES: u64 = 200;
/// Nested tables.
const TOPIC_KEYS: u64 = 6;

/// Shapes a workload.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Operations of a transaction at most.
    pub operations_max: u64,
    /// One of so many appends is a stretch of more than a vector; 0 = never.
    pub bulk_one_in: u64,
    /// One of so many commits is `None`; 0 = never.
    pub none_one_in: u64,
    /// One of so many others is `Lazy`; 0 = never.
    pub lazy_one_in: u64,
    /// One of so many others has one barrier; 0 = never.
    pub one_flush_one_in: u64,
    /// One of so many transactions pins what it commits, and as many take a pin away; 0 = never.
    pub pin_one_in: u64,
    /// One of so many transactions is rolled back; 0 = never.
    pub rollback_one_in: u64,
    /// One of so many operations lends the transaction to appenders; 0 = never.
    pub appenders_one_in: u64,
    /// One of so many operations feeds series in turn (`round_robin.rs`); 0 = never.
    pub turns_one_in: u64,
    /// Appenders have threads of their own: what the file holds is the same each time, where it lies is not. Else one thread calls them in
    /// an order that the seed gives.
    pub threads: bool,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            operations_max: 6,
            bulk_one_in: 12,
            none_one_in: 5,
            lazy_one_in: 5,
            one_flush_one_in: 3,
            pin_one_in: 9,
            rollback_one_in: 9,
            appenders_one_in: 10,
            turns_one_in: 0,
            threads: false,
        }
    }
}

impl Shape {
    /// Small transactions, nearly all of them durable.
    #[must_use]
    pub fn small_and_durable() -> Self {
        Self {
            operations_max: 2,
            bulk_one_in: 60,
            none_one_in: 30,
            lazy_one_in: 20,
            one_flush_one_in: 2,
            pin_one_in: 30,
            rollback_one_in: 9,
            appenders_one_in: 20,
            turns_one_in: 0,
            threads: false,
        }
    }
}

/// True one time in `one_in`; never when that is 0.
pub(crate) fn chance(rng: &mut Rng, one_in: u64) -> bool {
    one_in > 0 && rng.one_in(one_in)
}

/// The name of a workload's series.
#[must_use]
pub fn series_name(i: u64) -> String {
    format!("m{i}{{site=\"s{}\"}}", i % 2)
}

/// Rows of a series that keeps all beyond which it is not given thousands more.
pub(crate) const KEPT_ROWS_MAX: u64 = 8_000;

/// What the series with this name does with rows at times that are taken.
#[must_use]
pub fn merge_of(name: &str) -> MergePolicy {
    match name.as_bytes() {
        [b'm', b'1', b'{', ..] => MergePolicy::KeepDistinct,
        [b'm', b'2', ..] => MergePolicy::KeepAll,
        [b'm', b'3', ..] => MergePolicy::KeepFirst,
        [b'm', b'4', ..] => MergePolicy::Error,
        _ => MergePolicy::Replace,
    }
}

/// Whether a series with this policy has several rows of one time.
pub(crate) fn keeps_several(merge: MergePolicy) -> bool {
    matches!(merge, MergePolicy::KeepAll | MergePolicy::KeepDistinct)
}

/// Any of the workload's series of points.
pub(crate) fn any_series(rng: &mut Rng) -> String {
    series_name(rng.below(SERIES + APPENDED))
}

pub(crate) fn series<'t>(tx: &'t mut WriteTxn, name: &str) -> Result<SeriesMut<'t>> {
    tx.series_merging(name, &Schema::point(), merge_of(name))
}

/// Inserts a point into a series and its model.
pub(crate) fn insert(
    series: &mut SeriesMut<'_>,
    rows: &mut Rows,
    (time, flags, value): (i64, i64, f64),
) -> Result<()> {
    let done = series.insert_point(time, flags, value);
    let row = [flags as u64, value.to_bits()];
    inserted(series.info().merge, rows, (time, row), done)
}

/// The model after a row was inserted, if that ended as the merge policy says.
pub(crate) fn inserted(
    merge: MergePolicy,
    rows: &mut Rows,
    (time, row): (i64, [u64; 2]),
    done: Result<()>,
) -> Result<()> {
    match merge {
        MergePolicy::Error if rows.contains_key(&time) => {
            return match done {
                Err(Error::TimeTaken { time: at, .. }) if at == time => Ok(()),
                Ok(()) => panic!("a row at {time} is taken twice"),
                // A disk that fails on the way to that.
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

/// A word about a series, if it is what the model says.
fn annotate(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
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

/// Pins the transaction, or takes a pin away; true when its commit will be durable for that.
///
/// # Errors
/// What the database reports.
pub fn pins(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng, shape: &Shape) -> Result<bool> {
    let name = format!("p{}", rng.below(PINS));
    if chance(rng, shape.pin_one_in) {
        tx.pin(&name)?;
        next.pins.insert(name, next.content_digest());
        return Ok(true);
    }
    if chance(rng, shape.pin_one_in) {
        let was = tx.unpin(&name)?;
        let removed = next.pins.remove(&name);
        assert_eq!(was, removed.is_some(), "unpin tells whether there was one");
        return Ok(was);
    }
    Ok(false)
}

/// Random operations within a transaction, applied to `next` too.
///
/// # Errors
/// What the database reports.
pub fn operations(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng, shape: &Shape) -> Result<()> {
    for _ in 0..=rng.below(shape.operations_max) {
        match () {
            () if chance(rng, shape.appenders_one_in) => appenders::lend(tx, next, rng, shape)?,
            () if chance(rng, shape.turns_one_in) => round_robin::feed(tx, next, rng)?,
            () => operation(tx, next, rng, shape)?,
        }
    }
    Ok(())
}

/// A durability by chance.
pub fn durability(rng: &mut Rng, shape: &Shape) -> Durability {
    match () {
        () if chance(rng, shape.none_one_in) => Durability::None,
        () if chance(rng, shape.lazy_one_in) => Durability::Lazy,
        () if chance(rng, shape.one_flush_one_in) => Durability::OneFlush,
        () => Durability::Durable,
    }
}

fn operation(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng, shape: &Shape) -> Result<()> {
    match rng.below(20) {
        0..=2 => put(tx, next, rng),
        3 => remove(tx, next, rng),
        4 => delete(tx, next, rng),
        5..=6 => late(tx, next, rng),
        7 if rng.one_in(2) => multi(tx, next, rng),
        7 => table_calls::call(tx, next, rng),
        8 => topic(tx, next, rng),
        9 => match rng.below(7) {
            0 => policy(tx, next, rng),
            5 => annotate(tx, next, rng),
            6 => cool(tx, next, rng),
            1..=2 => remove_range(tx, next, rng),
            _ => remove_many(tx, next, rng),
        },
        10..=13 => wide::work(tx, next, rng, shape),
        _ => append(tx, next, rng, shape),
    }
}

/// A few or many values of one key.
fn multi(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
    let key = vec![b'm', rng.below(MULTI_KEYS) as u8];
    let keys = next.multis.entry("m0".to_owned()).or_default();
    let count = if rng.one_in(6) { 40 } else { 3 };
    let mut table = tx.multi_table("m0")?;
    for _ in 0..=rng.below(count) {
        let value = vec![rng.below(MULTI_VALUES) as u8; 9];
        let added = table.put(&key, &value)?;
        let values = keys.entry(key.clone()).or_default();
        assert_eq!(added, values.insert(value), "put tells whether it is new");
    }
    Ok(())
}

fn topic(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
    let topic = vec![b'a' + rng.below(TOPIC_KEYS) as u8];
    let mut topics = tx.table(TOPICS)?;
    let mut table = topics.nested(&topic);
    let pairs = next.topics.entry(topic).or_default();
    for _ in 0..=rng.below(8) {
        let key = vec![b'k', rng.below(60) as u8];
        let long = rng.one_in(20);
        let mut value = vec![0; rng.index(if long { 1_500 } else { 30 })];
        rng.fill(&mut value);
        table.put(&key, &value)?;
        pairs.insert(key, value);
    }
    Ok(())
}

/// Whole keys of what is nested or has many values.
fn remove_many(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
    if rng.one_in(2) {
        let topic = vec![b'a' + rng.below(TOPIC_KEYS) as u8];
        let was = tx.table(TOPICS)?.remove(&topic)?;
        let there = next.topics.remove(&topic).is_some();
        assert_eq!(was, there, "remove tells whether there was a table");
        return Ok(());
    }
    let key = vec![b'm', rng.below(MULTI_KEYS) as u8];
    let keys = next.multis.entry("m0".to_owned()).or_default();
    let mut table = tx.multi_table("m0")?;
    let removed = if rng.one_in(2) {
        let value = vec![rng.below(MULTI_VALUES) as u8; 9];
        let was = keys.get_mut(&key).is_some_and(|set| set.remove(&value));
        if keys.get(&key).is_some_and(|values| values.is_empty()) {
            keys.remove(&key);
        }
        (u64::from(table.remove(&key, &value)?), u64::from(was))
    } else {
        let values = keys.remove(&key).map_or(0, |values| values.len());
        (table.remove_all(&key)?, values as u64)
    };
    assert_eq!(removed.0, removed.1, "removals tell how much went");
    Ok(())
}

fn remove_range(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
    let name = format!("t{}", rng.below(TABLES));
    let from = rng.below(150);
    let to = format!("k{:03}", from + rng.below(40)).into_bytes();
    let from = format!("k{from:03}").into_bytes();
    let pairs = next.tables.entry(name.clone()).or_default();
    let before = pairs.len();
    pairs.retain(|key, _| *key < from || *key >= to);
    let removed = tx.table(&name)?.remove_range(from..to)?;
    assert_eq!(
        removed as usize,
        before - pairs.len(),
        "as many as were there"
    );
    Ok(())
}

/// What the policies keep is cut by `Database::maintain` only.
fn policy(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
    let name = format!("r{}", rng.below(2));
    if rng.one_in(3) {
        let was = tx.remove_retention(&name)?;
        let there = next.retentions.remove(&name).is_some();
        assert_eq!(was, there, "removing tells whether there was a policy");
        return Ok(());
    }
    let metric = match rng.one_in(3) {
        true => wide_name(rng.below(WIDE)),
        false => any_series(rng),
    };
    let policy = Retention {
        pattern: metric.split('{').next().unwrap_or_default().to_owned(),
        keep: Some(Duration::from_nanos(100 + rng.below(TIME_MAX as u64))),
        cold: (rng.below(4) == 0).then(|| Duration::from_nanos(1 + rng.below(TIME_MAX as u64))),
        ..Retention::default()
    };
    tx.set_retention(&name, &policy)?;
    next.retentions.insert(name, policy);
    Ok(())
}

pub(crate) fn put(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
    let name = format!("t{}", rng.below(TABLES));
    let key = format!("k{:03}", rng.below(150)).into_bytes();
    let long = rng.one_in(8);
    let mut value = vec![0u8; rng.index(if long { 3_000 } else { 40 })];
    rng.fill(&mut value);
    tx.table(&name)?.put(&key, &value)?;
    next.tables.entry(name).or_default().insert(key, value);
    Ok(())
}

fn remove(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
    let name = format!("t{}", rng.below(TABLES));
    let key = format!("k{:03}", rng.below(150)).into_bytes();
    let was = tx.table(&name)?.remove(&key)?;
    let removed = next.tables.entry(name).or_default().remove(&key);
    assert_eq!(
        was,
        removed.is_some(),
        "remove tells whether the key was there"
    );
    Ok(())
}

pub(crate) fn value_of(rng: &mut Rng) -> f64 {
    (rng.between(-5_000, 5_000) as f64) / 100.0
}

fn append(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng, shape: &Shape) -> Result<()> {
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

/// A stretch with several rows of a time, also of times that are there.
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

pub(crate) fn rows_in(rows: &Rows) -> u64 {
    rows.values().map(|rows| rows.len() as u64).sum()
}

fn late(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
    let name = any_series(rng);
    let rows = next.series.entry(name.clone()).or_default();
    let mut series = series(tx, &name)?;
    for _ in 0..rng.below(6) {
        let at = match rows.last_key_value() {
            // The order of arrival counts: rows of one time across transactions.
            Some((&last, _)) if keeps_several(series.info().merge) => {
                rng.between((last - 3).max(0), last)
            }
            _ => rng.between(0, TIME_MAX),
        };
        let mut point = (at, 0, value_of(rng));
        // Every other one is there already.
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

/// Some or all leaves of a series in cold form: its rows stay what they are.
fn cool(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
    let name = any_series(rng);
    next.series.entry(name.clone()).or_default();
    let rows_max = *rng.pick(&[0, 1, u64::MAX]);
    series(tx, &name)?.rewrite_cold(rng.between(0, 2 * TIME_MAX), rows_max)?;
    Ok(())
}

fn delete(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
    let name = any_series(rng);
    let rows = next.series.entry(name.clone()).or_default();
    let from = rng.between(0, TIME_MAX);
    let span = if rng.one_in(6) { TIME_MAX } else { 300 };
    let to = from + rng.between(0, span);
    let before = rows_in(rows);
    rows.retain(|&time, _| time < from || time >= to);
    let removed = series(tx, &name)?.delete(from..to)?;
    assert_eq!(
        removed,
        before - rows_in(rows),
        "delete tells how many rows went"
    );
    Ok(())
}
