//! `buffered`: random keys into a buffered table, beside a plain table and the peers.
//!
//! Keys are 16 bytes in random order, values 64 to 100 random bytes, in durable transactions of 10,000 pairs.
//!
//! | case | |
//! |---|---|
//! | `fill` | pairs/s of the whole load |
//! | `written` | bytes per pair that the engine passes to `write` and similar calls during the load |
//! | `get`, `scan` | random gets/s and entries/s of a scan, hot, right after the load |
//! | `settle` | seconds that the engine needs to merge the runs of the load |
//! | `settled-get`, `settled-scan` | the same after that |
//! | `bytes` | file bytes per pair at the end, after closing |
//!
//! The answers of all engines are compared with the answers of the first engine.

use std::time::Instant;

use crate::args::Options;
use crate::contest::Contest;
use crate::engine::data::{Data, Random, Shape};
use crate::engine::{Digest, Engine, Kind, Promise, Result, Setup, TIDALITE, TIDALITE_BUFFERED};
use crate::meter::{Latencies, Meter, Sample};
use crate::os;

const SHAPE: Shape = Shape {
    key_bytes: 16,
    value_bytes: 100,
};
/// Minimum length of a value in bytes; `SHAPE` has the maximum.
const VALUE_BYTES_MIN: usize = 64;
/// Number of pairs in a transaction.
const BATCH: u64 = 10_000;
/// Number of gets of a case; the same number of gets beforehand warms the caches.
const GETS: u64 = 1_000_000;

/// Runs the suite `buffered`, with LMDB and fjall as peers unless others are named.
pub(crate) fn run(options: &Options) -> Result<Contest> {
    let peers = match options.peers.as_slice() {
        [] => ["lmdb", "fjall"].map(str::to_owned).to_vec(),
        named => named.to_vec(),
    };
    let mut contest = Contest::new("buffered", &[TIDALITE_BUFFERED, TIDALITE], &peers)?;
    let data = Data::new(SHAPE);
    for round in 0..options.rounds {
        for kind in contest.order(round) {
            of_one(kind, &data, options, &mut contest)?;
        }
    }
    Ok(contest)
}

/// The value of pair `n`.
fn value(data: &Data, n: u64) -> &[u8] {
    let lengths = (SHAPE.value_bytes - VALUE_BYTES_MIN + 1) as u64;
    &data.value(n, 0)[..VALUE_BYTES_MIN + (n % lengths) as usize]
}

fn of_one(kind: Kind, data: &Data, options: &Options, contest: &mut Contest) -> Result<()> {
    let pairs = options.pairs;
    let dir = os::TempDir::within(&options.dir, kind.name)?;
    os::settle(dir.path())?;
    let setup = Setup::new(Promise::Synced, pairs * SHAPE.pair_bytes());
    os::touch_memory(setup.data_bytes * 3, setup.data_bytes * 2);
    let engine = (kind.open)(dir.path(), &setup)?;
    let mut latencies = Latencies::default();
    let meter = Meter::of(&*engine, dir.path());
    for from in (0..pairs).step_by(BATCH as usize) {
        latencies.time(|| {
            engine.write(&mut |txn| {
                (from..(from + BATCH).min(pairs))
                    .try_for_each(|n| txn.put(data.scattered(n).as_ref(), value(data, n)))
            })
        })?;
    }
    let silent = engine.silent_syncs(pairs.div_ceil(BATCH));
    let sample = meter.finish(pairs, silent, latencies);
    let written = sample.written.handed as f64 / pairs as f64;
    contest.add("fill", "pairs/s", false, kind, sample);
    contest.add("written", "bytes/pair", true, kind, Sample::of(written));
    reads(
        ("get", "scan"),
        &*engine,
        (kind, data, dir.path()),
        pairs,
        contest,
    )?;
    let begin = Instant::now();
    engine.settle()?;
    let seconds = begin.elapsed().as_secs_f64();
    contest.add("settle", "s", true, kind, Sample::of(seconds));
    let names = ("settled-get", "settled-scan");
    reads(names, &*engine, (kind, data, dir.path()), pairs, contest)?;
    drop(engine);
    let bytes = os::disk_used(dir.path())? as f64 / pairs as f64;
    contest.add("bytes", "bytes/pair", true, kind, Sample::of(bytes));
    Ok(())
}

/// Random gets, and a scan of all entries.
fn reads(
    (get, scan): (&str, &str),
    engine: &dyn Engine,
    (kind, data, dir): (Kind, &Data, &std::path::Path),
    pairs: u64,
    contest: &mut Contest,
) -> Result<()> {
    // The first pass warms the caches.
    for is_warm in [false, true] {
        let mut random = Random::new(100 + u64::from(is_warm));
        let (mut latencies, mut answer) = (Latencies::default(), 0u64);
        let gets = pairs.min(GETS);
        let meter = Meter::start(dir);
        engine.read(&mut |reader| {
            for n in 0..gets {
                let key = data.scattered(random.below(pairs));
                let got = latencies.time_some(n, || reader.get(key.as_ref()))?;
                answer = answer.wrapping_add(got.ok_or("a pair is missing")?);
            }
            Ok(())
        })?;
        if is_warm {
            contest.add(get, "gets/s", false, kind, meter.finish(gets, 0, latencies));
            contest.check(get, 0, kind, answer)?;
        }
    }
    for is_warm in [false, true] {
        let meter = Meter::start(dir);
        let mut digest = Digest::default();
        engine.read(&mut |reader| {
            digest = reader.scan(&[], u64::from(u32::MAX))?;
            Ok(())
        })?;
        if is_warm {
            let sample = meter.finish(digest.entries, 0, Latencies::default());
            contest.add(scan, "entries/s", false, kind, sample);
            contest.check(scan, 0, kind, digest.answer())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse;
    use crate::engine::PEERS;

    #[test]
    fn every_engine_gives_the_same_answers() {
        let dir = os::TempDir::new("buffered").unwrap();
        let place = dir.path().to_str().unwrap();
        let peers: Vec<&str> = PEERS.iter().map(|peer| peer.name).collect();
        let peers = peers.join(",");
        let line = [
            "buffered", "--pairs", "25000", "--rounds", "1", "--peers", &peers, "--dir", place,
        ];
        let options = parse(line.map(str::to_owned)).unwrap().unwrap();
        let contest = run(&options).unwrap();
        for case in [
            "fill",
            "written",
            "get",
            "scan",
            "settle",
            "settled-get",
            "settled-scan",
            "bytes",
        ] {
            assert!(
                contest.median(case, TIDALITE_BUFFERED.name).is_some(),
                "{case}"
            );
        }
    }
}
