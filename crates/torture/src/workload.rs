//! Seeded transactions over tables and series, applied to a database and to the model alike.

use crate::model::Model;
use tidalite::{Database, Durability, Result, WriteTxn};
use tidalite_testkit::rng::Rng;

/// Series that a workload uses.
const SERIES: u64 = 5;
/// Tables that a workload uses.
const TABLES: u64 = 2;
/// Names of pins that a workload uses.
const PINS: u64 = 2;
/// Latest time that a workload reaches; small, so that late rows and overwrites happen.
const TIME_MAX: i64 = 6_000;

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Acknowledged with this durability.
    Committed(Durability),
    /// Rolled back by dropping it.
    RolledBack,
}

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
    /// One of so many transactions pins what it commits, and as many take a pin away; 0 = never.
    pub pin_one_in: u64,
    /// One of so many transactions is rolled back; 0 = never.
    pub rollback_one_in: u64,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            operations_max: 6,
            bulk_one_in: 12,
            none_one_in: 5,
            lazy_one_in: 6,
            pin_one_in: 9,
            rollback_one_in: 9,
        }
    }
}

fn chance(rng: &mut Rng, one_in: u64) -> bool {
    one_in > 0 && rng.one_in(one_in)
}

/// The name of a workload's series.
#[must_use]
pub fn series_name(i: u64) -> String {
    format!("m{i}{{site=\"s{}\"}}", i % 2)
}

/// Runs one random transaction on `db` and returns the model after it (`model` where it was rolled back).
///
/// `begun` is called with the new content just before the commit, so that a harness knows it even if
/// the commit does not return.
///
/// # Errors
/// What the database reports; the model is then unchanged.
pub fn transaction(
    db: &Database,
    model: &Model,
    rng: &mut Rng,
    shape: &Shape,
    begun: impl FnOnce(&Model, Durability),
) -> Result<(Model, Ended)> {
    let mut next = model.clone();
    let mut tx = db.begin_write()?;
    operations(&mut tx, &mut next, rng, shape)?;
    if chance(rng, shape.rollback_one_in) {
        return Ok((model.clone(), Ended::RolledBack));
    }
    let pinned = pins(&mut tx, &mut next, rng, shape)?;
    let durability = match () {
        () if pinned => Durability::Durable,
        () if chance(rng, shape.none_one_in) => Durability::None,
        () if chance(rng, shape.lazy_one_in) => Durability::Lazy,
        () => Durability::Durable,
    };
    begun(&next, durability);
    tx.commit_with(durability)?;
    Ok((next, Ended::Committed(durability)))
}

/// Pins the transaction, or takes a pin away; true when its commit will be durable for that.
fn pins(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng, shape: &Shape) -> Result<bool> {
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
        operation(tx, next, rng, shape)?;
    }
    Ok(())
}

fn operation(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng, shape: &Shape) -> Result<()> {
    match rng.below(10) {
        0..=1 => put(tx, next, rng),
        2 => remove(tx, next, rng),
        3 => delete(tx, next, rng),
        4..=5 => late(tx, next, rng),
        _ => append(tx, next, rng, shape),
    }
}

fn put(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
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

fn value_of(rng: &mut Rng) -> f64 {
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
    let mut series = tx.series(&name)?;
    for i in 0..count {
        let (time, flags, value) = (start + i * step, i64::from(rng.one_in(50)), value_of(rng));
        series.insert_point(time, flags, value)?;
        rows.insert(time, [flags as u64, value.to_bits()]);
    }
    Ok(())
}

fn late(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
    let name = series_name(rng.below(SERIES));
    let rows = next.series.entry(name.clone()).or_default();
    let mut series = tx.series(&name)?;
    for _ in 0..rng.below(6) {
        let (time, value) = (rng.between(0, TIME_MAX), value_of(rng));
        series.insert_point(time, 0, value)?;
        rows.insert(time, [0, value.to_bits()]);
    }
    Ok(())
}

fn delete(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
    let name = series_name(rng.below(SERIES));
    let rows = next.series.entry(name.clone()).or_default();
    let from = rng.between(0, TIME_MAX);
    let span = if rng.one_in(6) { TIME_MAX } else { 300 };
    let to = from + rng.between(0, span);
    let before = rows.len();
    rows.retain(|&time, _| time < from || time >= to);
    let removed = tx.series(&name)?.delete(from..to)?;
    assert_eq!(
        removed as usize,
        before - rows.len(),
        "delete tells how many rows went"
    );
    Ok(())
}
