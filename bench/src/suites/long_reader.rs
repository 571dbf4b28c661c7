//! `long-reader`: one snapshot is held while its table is overwritten.
//!
//! A table of 200 bytes per pair is filled, and a snapshot is taken and held. Then a million overwrites of random pairs
//! are committed, a hundred in each transaction, and nothing is synced before the end. Only two versions are reachable
//! then, so all other pages that are held are wasted.
//!
//! | case | |
//! |---|---|
//! | `held` | ours: bytes of pages held at the end relative to the bytes of the two versions |
//! | `file` | file bytes at the end relative to the bytes before the overwrites |
//! | `overwrites` | pairs/s while the snapshot is held |
//! | `snapshot` | the snapshot still answers as before: entries/s of a scan |

use std::thread;

use crate::args::Options;
use crate::contest::Contest;
use crate::engine::data::{Data, Random, Shape};
use crate::engine::{Engine, Kind, LMDB, Promise, Result, Setup, TIDALITE};
use crate::meter::{Latencies, Meter, Sample};
use crate::os;

const SHAPE: Shape = Shape {
    key_bytes: 16,
    value_bytes: 184,
};
/// Number of overwritten pairs in a transaction.
const EACH: u64 = 100;
/// Number of pairs in a transaction of the load.
const FILL: u64 = 10_000;

/// Runs the suite `long-reader`, with LMDB as the only peer unless other peers are named.
pub(crate) fn run(options: &Options) -> Result<Contest> {
    let peers = match options.peers.as_slice() {
        [] => vec![LMDB.name.to_owned()],
        named => named.to_vec(),
    };
    let mut contest = Contest::new("long-reader", &[TIDALITE], &peers)?;
    let data = Data::new(SHAPE);
    for round in 0..options.rounds {
        for kind in contest.order(round) {
            of_one(kind, &data, options, &mut contest)?;
        }
    }
    Ok(contest)
}

fn of_one(kind: Kind, data: &Data, options: &Options, contest: &mut Contest) -> Result<()> {
    let pairs = options.pairs;
    let dir = os::TempDir::within(&options.dir, kind.name)?;
    os::settle(dir.path())?;
    let bytes = pairs * SHAPE.pair_bytes();
    os::touch_memory(bytes * 8, bytes);
    // LMDB needs room in its memory map for every version of every page.
    let setup = Setup::new(Promise::Lazy, bytes * 8 + options.commits * 400);
    let engine = (kind.open)(dir.path(), &setup)?;
    for from in (0..pairs).step_by(FILL as usize) {
        engine.write(&mut |txn| {
            (from..(from + FILL).min(pairs))
                .try_for_each(|n| txn.put(data.scattered(n).as_ref(), data.value(n, 0)))
        })?;
    }
    engine.flush()?;
    let before = os::disk_used(dir.path())?;
    let first_version = engine.in_use()?;
    engine.read(&mut |reader| {
        let first = reader.scan(&[], u64::MAX >> 1)?;
        let meter = Meter::start(dir.path());
        // The writes run on another thread, because some engines refuse to write on a thread that holds a snapshot.
        let written = thread::scope(|scope| {
            let writing = scope.spawn(|| overwrite(&*engine, data, options));
            writing.join()
        });
        let (done, latencies) = written.unwrap_or_else(|_| Err("a thread panicked".into()))?;
        engine.flush()?;
        let mut sample = meter.finish(done, 0, latencies);
        let after = os::disk_used(dir.path())?;
        sample.file_bytes = after;
        contest.add("overwrites", "pairs/s", false, kind, sample);
        let growth = Sample::of(after as f64 / before as f64);
        contest.add("file", "x before", true, kind, growth);
        if let (Some(first), Some(now)) = (first_version, engine.in_use()?) {
            let both = (first.newest + now.newest) as f64;
            let held = Sample {
                file_bytes: now.held,
                ..Sample::of(now.held as f64 / both)
            };
            contest.add("held", "x both versions", true, kind, held);
        }
        let meter = Meter::start(dir.path());
        let again = reader.scan(&[], u64::MAX >> 1)?;
        if again != first {
            return Err(format!("{}: the snapshot has changed", kind.name).into());
        }
        let sample = meter.finish(again.entries, 0, Latencies::default());
        contest.add("snapshot", "entries/s", false, kind, sample);
        contest.check("snapshot", 0, kind, again.answer())
    })
}

/// Overwrites all pairs; returns the number of overwritten pairs and the times of the transactions.
fn overwrite(engine: &dyn Engine, data: &Data, options: &Options) -> Result<(u64, Latencies)> {
    let (mut latencies, mut random) = (Latencies::default(), Random::new(17));
    let mut done = 0;
    while done < options.commits {
        latencies.time(|| {
            engine.write(&mut |txn| {
                (0..EACH).try_for_each(|n| {
                    let pair = random.below(options.pairs);
                    let value = data.value(pair, 1 + done + n);
                    txn.put(data.scattered(pair).as_ref(), value)
                })
            })
        })?;
        done += EACH;
    }
    Ok((done, latencies))
}
