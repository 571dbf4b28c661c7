//! `Multithread_test`: two threads set a million GUIDs each, while a reader gets two million. Each writer runs one
//! transaction after the other; the reader takes a new snapshot every 1,000 gets, and must find every key whose commit
//! has returned.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use tidalite::Database;
use tidalite::Durability;

use super::guids::{Guid, PAIR_BYTES, Text, guid};
use super::own::{BATCH, GETS, Own, SETS, TABLE, open, read};
use crate::engine::Result;
use crate::engine::data::Random;
use crate::meter::{Latencies, Meter, Sample};

const WRITERS: u64 = 2;
/// Number of gets in a snapshot.
const GETS_OF_SNAPSHOT: u64 = 1000;

/// GUID number `n` of a writer.
fn guid_of(writer: u64, n: u64) -> Guid {
    guid(writer << 40 | n)
}

pub(super) fn run(own: &mut Own<'_>) -> Result<()> {
    let each = own.scaled(1_000_000);
    let dir = own.dir(WRITERS * each, PAIR_BYTES)?;
    let db = open(dir.path())?;
    // Creates an empty table, so that the reader finds it.
    let mut txn = db.begin_write()?;
    txn.hash_table::<Guid, str>(TABLE)?;
    txn.commit()?;
    // Number of keys of each writer whose commits have returned.
    let there: [AtomicU64; WRITERS as usize] = Default::default();
    let (writing, reading) = thread::scope(|scope| {
        let meter = Meter::start(dir.path());
        let (db, there) = (&db, &there);
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| scope.spawn(move || write(db, writer, each, &there[writer as usize])))
            .collect();
        let reader = scope.spawn(|| get(db, dir.path(), there, WRITERS * each));
        let mut written: Result<_> = Ok(Latencies::default());
        for writer in writers {
            let latencies = writer
                .join()
                .unwrap_or_else(|_| Err("a writer panicked".into()));
            written = written.and_then(|mut all| {
                all.join(latencies?);
                Ok(all)
            });
            // If a writer fails, the reader must not wait for its keys.
            if written.is_err() {
                there[0].store(u64::MAX, Ordering::Release);
            }
        }
        let written = written.map(|all| meter.finish(WRITERS * each, db.metrics().appends, all));
        let read = reader.join();
        (
            written,
            read.unwrap_or_else(|_| Err("the reader panicked".into())),
        )
    });
    own.tell("writers-set", SETS, WRITERS * each, writing?);
    own.tell("writers-get", GETS, WRITERS * each, reading?);
    if read(&db, |table| Ok(table.count()?))? != WRITERS * each {
        return Err("keys of a writer are missing".into());
    }
    Ok(())
}

fn write(db: &Database, writer: u64, each: u64, there: &AtomicU64) -> Result<Latencies> {
    let mut latencies = Latencies::default();
    for first in (0..each).step_by(BATCH as usize) {
        let end = (first + BATCH).min(each);
        latencies.time(|| -> Result<()> {
            let mut txn = db.begin_write()?;
            let mut table = txn.hash_table::<Guid, str>(TABLE)?;
            for n in first..end {
                let guid = guid_of(writer, n);
                table.set(&guid, Text::of(&guid).text()?)?;
            }
            txn.commit_with(Durability::Durable)?;
            Ok(())
        })?;
        there.store(end, Ordering::Release);
    }
    Ok(latencies)
}

/// Gets keys of both writers, as soon as some keys exist.
fn get(
    db: &Database,
    dir: &std::path::Path,
    there: &[AtomicU64; WRITERS as usize],
    gets: u64,
) -> Result<Sample> {
    let numbers = || [0, 1].map(|writer: usize| there[writer].load(Ordering::Acquire));
    while numbers().contains(&0) && !numbers().contains(&u64::MAX) {
        thread::yield_now();
    }
    let (mut random, mut latencies) = (Random::new(8), Latencies::default());
    let (mut left, meter) = (gets, Meter::start(dir));
    while left > 0 {
        let there = numbers();
        if there.contains(&u64::MAX) {
            return Err("a writer has failed".into());
        }
        let some = left.min(GETS_OF_SNAPSHOT);
        read(db, |table| {
            for n in 0..some {
                let writer = random.below(WRITERS);
                let guid = guid_of(writer, random.below(there[writer as usize]));
                let found = latencies.time_some(n, || table.get(&guid))?;
                if found.as_deref().map(str::as_bytes) != Some(Text::of(&guid).bytes()) {
                    return Err(format!("a GUID of writer {writer} leads to {found:?}").into());
                }
            }
            Ok(())
        })?;
        left -= some;
    }
    Ok(meter.finish(gets, 0, latencies))
}
