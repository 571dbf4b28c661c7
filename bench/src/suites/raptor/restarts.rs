//! Tests that close the database and open it again: `One_Million_Set_Shutdown_Get` and `RemoveKeyTest`.

use std::time::Instant;

use tidalite::Durability;
use tidalite::hash_table::HashTableOptions;

use super::guids::{Guid, PAIR_BYTES, Text, guid};
use super::own::{BATCH, GETS, Own, SETS, TABLE, get_texts, open, read, set_texts};
use crate::engine::Result;
use crate::engine::data::Random;
use crate::meter::{Latencies, Meter, Sample};

/// Set, close, open, get.
pub(super) fn shutdown(own: &mut Own<'_>) -> Result<()> {
    let count = own.scaled(1_000_000);
    let dir = own.dir(count, PAIR_BYTES)?;
    let db = open(dir.path())?;
    let meter = Meter::start(dir.path());
    let latencies = set_texts(&db, &HashTableOptions::new(), 0..count)?;
    let sample = meter.finish(count, db.metrics().appends, latencies);
    own.tell("restart-set", SETS, count, sample);
    drop(db);
    let begin = Instant::now();
    let db = open(dir.path())?;
    drop(db.begin_read()?);
    let elapsed = begin.elapsed().as_secs_f64();
    own.tell(
        "restart-open",
        ("ms", true),
        count,
        Sample::of(elapsed * 1e3),
    );
    let meter = Meter::start(dir.path());
    let latencies = read(&db, |table| {
        get_texts(table, &mut Random::new(6), count, count)
    })?;
    let sample = meter.finish(count, 0, latencies);
    own.tell("restart-get", GETS, count, sample);
    Ok(())
}

/// Removes every fourth GUID, a third of these in each opening, and gets all GUIDs after the next opening.
pub(super) fn removals(own: &mut Own<'_>) -> Result<()> {
    const OPENINGS: u64 = 3;
    let count = own.scaled(1_000_000);
    let dir = own.dir(count, PAIR_BYTES)?;
    set_texts(&open(dir.path())?, &HashTableOptions::new(), 0..count)?;
    let is_removed = |n: u64, openings: u64| n.is_multiple_of(4) && n / 4 % OPENINGS < openings;
    let (mut removing, mut getting) = (0.0, 0.0);
    let mut removed = 0;
    for opening in 0..OPENINGS {
        let db = open(dir.path())?;
        let meter = Meter::start(dir.path());
        let new: Vec<u64> = (0..count)
            .filter(|n| is_removed(*n, opening + 1) && !is_removed(*n, opening))
            .collect();
        for batch in new.chunks(BATCH as usize) {
            let mut txn = db.begin_write()?;
            let mut table = txn.hash_table::<Guid, str>(TABLE)?;
            for n in batch {
                if !table.remove(&guid(*n))? {
                    return Err(format!("GUID {n} is not there to be removed").into());
                }
            }
            txn.commit_with(Durability::Durable)?;
        }
        removed += new.len() as u64;
        removing += new.len() as f64
            / meter
                .finish(new.len() as u64, 0, Latencies::default())
                .value;
        drop(db);
        let db = open(dir.path())?;
        let meter = Meter::start(dir.path());
        read(&db, |table| {
            for n in 0..count {
                let guid = guid(n);
                let expected = Text::of(&guid);
                let found = table.get(&guid)?;
                let is_there = found.as_deref().map(str::as_bytes) == Some(expected.bytes());
                if is_there == is_removed(n, opening + 1) || is_there != found.is_some() {
                    return Err(format!("GUID {n} leads to {found:?}").into());
                }
            }
            match table.count()? == count - removed {
                true => Ok(()),
                false => Err(format!("{} keys are left", table.count()?).into()),
            }
        })?;
        getting += count as f64 / meter.finish(count, 0, Latencies::default()).value;
    }
    let rate = Sample::of(removed as f64 / removing);
    own.tell("remove", ("removals/s", false), count, rate);
    let rate = Sample::of((OPENINGS * count) as f64 / getting);
    own.tell("remove-get", GETS, count, rate);
    Ok(())
}
