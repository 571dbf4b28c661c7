//! The random operations of a transaction, with pins, retention policies and durability.

use super::names::{TIME_MAX, any_series};
use super::shape::{Shape, chance};
use super::wide::{self, WIDE, wide_name};
use super::{
    appenders, buffered, hashes, messages, points, relations, round_robin, table_calls, tables,
};
use crate::model::Model;
use std::time::Duration;
use tidalite::retention::Retention;
use tidalite::{Durability, Result, WriteTxn};
use tidalite_testkit::rng::Rng;

/// Number of different names of pins.
const PINS: u64 = 2;

/// Pins the commit of the transaction, or removes a pin. Returns true if this makes the commit durable.
///
/// # Errors
/// An error of the database.
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

/// Performs random operations in a transaction, and applies them to `next`.
///
/// # Errors
/// An error of the database.
pub fn operations(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng, shape: &Shape) -> Result<()> {
    for _ in 0..=rng.below(shape.operations_max) {
        match () {
            () if chance(rng, shape.appenders_one_in) => appenders::lend(tx, next, rng, shape)?,
            () if chance(rng, shape.hashes_one_in) => hashes::work(tx, next, rng)?,
            () if chance(rng, shape.buffered_one_in) => buffered::work(tx, next, rng)?,
            () if chance(rng, shape.messages_one_in) => messages::work(tx, next, rng)?,
            () if chance(rng, shape.relations_one_in) => relations::work(tx, next, rng)?,
            () if chance(rng, shape.turns_one_in) => round_robin::feed(tx, next, rng)?,
            () => operation(tx, next, rng, shape)?,
        }
    }
    Ok(())
}

/// Chooses a random durability for a commit.
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
        0..=2 => tables::put(tx, next, rng),
        3 => tables::remove(tx, next, rng),
        4 => points::delete(tx, next, rng),
        5..=6 => points::late(tx, next, rng),
        7 if rng.one_in(2) => tables::multi(tx, next, rng),
        7 => table_calls::call(tx, next, rng),
        8 => tables::topic(tx, next, rng),
        9 => match rng.below(7) {
            0 => policy(tx, next, rng),
            5 => points::annotate(tx, next, rng),
            6 => points::cool(tx, next, rng),
            1..=2 => tables::remove_range(tx, next, rng),
            _ => tables::remove_many(tx, next, rng),
        },
        10..=13 => wide::work(tx, next, rng, shape),
        _ => points::append(tx, next, rng, shape),
    }
}

/// Adds or removes a retention policy. Only `Database::maintain` applies policies.
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
