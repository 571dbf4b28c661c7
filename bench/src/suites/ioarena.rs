//! `ioarena`: the six benchmarks of the program IOArena, which is used for published figures of libmdbx and others.
//! They run with three degrees of durability and IOArena's defaults: keys of 16 bytes in random order, values of 32
//! bytes, and **every operation, even a read, in a transaction of its own**; 10,000 operations synced, 100,000 lazy,
//! 1,000,000 unsynced.
//!
//! | case | one operation |
//! |---|---|
//! | `set` | stores a pair, starting with an empty database |
//! | `get`, `get-N` | takes a snapshot and gets a pair; N threads, in the lazy database |
//! | `iterate` | one entry of a scan over all entries, in one snapshot |
//! | `crud` | one transaction: stores a new pair, overwrites an old one, deletes the new one, gets the old one |
//! | `batch` | the four steps of `crud`, 500 times in a transaction |
//! | `delete` | removes a pair |
//!
//! The name of a case starts with the degree of durability, as in `sync-crud`. The behaviour of IOArena was read from
//! its source (pmwkaa/ioarena, BSD). This is our own code with our own interface, so that all engines are called in
//! the same way and their answers can be compared. A wrong answer ends the run, whereas IOArena only counts it.

use std::path::Path;

use crate::args::Options;
use crate::contest::Contest;
use crate::engine::data::{Data, Shape};
use crate::engine::{Engine, Kind, Promise, Result, Setup, TIDALITE, TIDALITE_ONE_FLUSH, Write};
use crate::meter::{Latencies, Meter, Sample, side_by_side};
use crate::os;

const SHAPE: Shape = Shape {
    key_bytes: 16,
    value_bytes: 32,
};
/// The degrees of durability, and the numbers of operations in the published runs of IOArena.
const DEGREES: [(Promise, &str, u64); 3] = [
    (Promise::Synced, "sync", 10_000),
    (Promise::Lazy, "lazy", 100_000),
    (Promise::Unsynced, "nosync", 1_000_000),
];
/// Number of repetitions of the four steps in a transaction of the case `batch`.
const BATCH: u64 = 500;
/// Numbers of threads that read at the same time, one case for each number.
const THREADS: [u64; 4] = [1, 2, 4, 8];
/// The value of `--pairs` that corresponds to the published numbers of operations.
const PAIRS_FULL: u64 = 5_000_000;

/// Runs the suite `ioarena`.
pub(crate) fn run(options: &Options) -> Result<Contest> {
    let ours = [TIDALITE, TIDALITE_ONE_FLUSH];
    let mut contest = Contest::new("ioarena", &ours, &options.peers)?;
    for (promise, degree, full) in DEGREES {
        let count = (full * options.pairs / PAIRS_FULL).clamp(20, full);
        for round in 0..options.rounds {
            for kind in contest.order(round) {
                // Without syncs the mode with one flush of the disk does not differ from the default, so it is left
                // out.
                if kind.name != TIDALITE_ONE_FLUSH.name || promise == Promise::Synced {
                    Arena::run(kind, (promise, degree), count, options, &mut contest)?;
                }
            }
        }
    }
    Ok(contest)
}

/// A database of one engine with one degree of durability.
struct Arena<'a> {
    kind: Kind,
    engine: &'a dyn Engine,
    dir: &'a Path,
    data: &'a Data,
    degree: &'a str,
    count: u64,
    options: &'a Options,
}

impl Arena<'_> {
    fn run(
        kind: Kind,
        (promise, degree): (Promise, &str),
        count: u64,
        options: &Options,
        contest: &mut Contest,
    ) -> Result<()> {
        let data = Data::new(SHAPE);
        let dir = os::TempDir::within(&options.dir, kind.name)?;
        os::settle(dir.path())?;
        os::touch_memory(count * 256 + (64 << 20), count * 128 + (64 << 20));
        let setup = Setup::new(promise, 2 * count * SHAPE.pair_bytes() + (16 << 20));
        let engine = (kind.open)(dir.path(), &setup)?;
        let arena = Arena {
            kind,
            engine: &*engine,
            dir: dir.path(),
            data: &data,
            degree,
            count,
            options,
        };
        arena.all(promise == Promise::Lazy, contest)
    }

    fn all(&self, threads: bool, contest: &mut Contest) -> Result<()> {
        let (data, count) = (self.data, self.count);
        // This case always runs, because the other cases need the pairs that it stores.
        self.transactions("set", count, contest, &mut |txn, n| {
            txn.put(data.scattered(n).as_ref(), data.value(n, 0))?;
            Ok(0)
        })?;
        self.gets("get", 1, contest)?;
        for threads in THREADS.into_iter().filter(|_| threads) {
            self.gets(&format!("get-{threads}"), threads, contest)?;
        }
        self.iterate(contest)?;
        if self.options.chosen("crud") {
            self.transactions("crud", count, contest, &mut |txn, n| self.four(txn, n, 1))?;
        }
        if self.options.chosen("batch") {
            self.batches(contest)?;
        }
        if self.options.chosen("delete") {
            self.transactions("delete", count, contest, &mut |txn, n| {
                // The result is not checked, because engines that remove without a lookup cannot report whether the key
                // existed.
                txn.delete(data.scattered(n).as_ref())?;
                Ok(0)
            })?;
            // Checks that all pairs were deleted.
            let mut left = 0;
            self.engine.read(&mut |reader| {
                left = reader.scan(&[], 1)?.entries;
                Ok(())
            })?;
            if left > 0 {
                return Err(format!("{} has a pair that was deleted", self.kind.name).into());
            }
        }
        Ok(())
    }

    /// The four steps of `crud`. `n` is the number of the pair that is overwritten; the temporary pair has a number
    /// above the keys of all stored pairs.
    fn four(&self, txn: &mut dyn Write, n: u64, version: u64) -> Result<u64> {
        let (old, new) = (self.data.scattered(n), self.data.scattered(self.count + n));
        txn.put(new.as_ref(), self.data.value(self.count + n, version))?;
        txn.put(old.as_ref(), self.data.value(n, version))?;
        txn.delete(new.as_ref())?;
        let got = txn.get(old.as_ref())?;
        got.ok_or_else(|| "a pair that was put is missing".into())
    }

    /// Runs a number of operations, each in a transaction of its own.
    fn transactions(
        &self,
        name: &str,
        count: u64,
        contest: &mut Contest,
        one: &mut dyn FnMut(&mut dyn Write, u64) -> Result<u64>,
    ) -> Result<()> {
        let (mut latencies, mut answer) = (Latencies::default(), 0u64);
        let meter = Meter::of(self.engine, self.dir);
        for n in 0..count {
            latencies.time(|| {
                self.engine.write(&mut |txn| {
                    answer = answer.wrapping_add(one(txn, n)?);
                    Ok(())
                })
            })?;
        }
        let silent = self.engine.silent_syncs(count);
        let sample = meter.finish(count, silent, latencies);
        self.tell(name, sample, answer, contest)
    }

    fn batches(&self, contest: &mut Contest) -> Result<()> {
        let (mut latencies, mut answer) = (Latencies::default(), 0u64);
        let meter = Meter::of(self.engine, self.dir);
        for first in (0..self.count).step_by(BATCH as usize) {
            latencies.time(|| {
                self.engine.write(&mut |txn| {
                    for n in first..(first + BATCH).min(self.count) {
                        answer = answer.wrapping_add(self.four(txn, n, 2)?);
                    }
                    Ok(())
                })
            })?;
        }
        let silent = self.engine.silent_syncs(self.count.div_ceil(BATCH));
        let sample = meter.finish(self.count, silent, latencies);
        self.tell("batch", sample, answer, contest)
    }

    /// Gets pairs on several threads: each thread reads its share of the pairs, in the order in which they were stored.
    fn gets(&self, name: &str, threads: u64, contest: &mut Contest) -> Result<()> {
        if !self.options.chosen(name) {
            return Ok(());
        }
        let meter = Meter::start(self.dir);
        let of_thread = |thread| self.gets_of((thread, threads));
        let (latencies, answer) = side_by_side(threads, of_thread)?;
        let sample = meter.finish(self.count, 0, latencies);
        self.tell(name, sample, answer, contest)
    }

    fn gets_of(&self, (thread, threads): (u64, u64)) -> Result<(Latencies, u64)> {
        let (mut latencies, mut answer) = (Latencies::default(), 0u64);
        for n in (thread..self.count).step_by(threads as usize) {
            let key = self.data.scattered(n);
            latencies.time_some(n, || {
                self.engine.read(&mut |reader| {
                    let got = reader.get(key.as_ref())?;
                    answer = answer.wrapping_add(got.ok_or("a pair that was put is missing")?);
                    Ok(())
                })
            })?;
        }
        Ok((latencies, answer))
    }

    fn iterate(&self, contest: &mut Contest) -> Result<()> {
        if !self.options.chosen("iterate") {
            return Ok(());
        }
        let mut digest = Default::default();
        let meter = Meter::start(self.dir);
        self.engine.read(&mut |reader| {
            digest = reader.scan(&[], u64::MAX >> 1)?;
            Ok(())
        })?;
        let sample = meter.finish(digest.entries, 0, Latencies::default());
        self.tell("iterate", sample, digest.answer(), contest)
    }

    fn tell(&self, name: &str, sample: Sample, answer: u64, contest: &mut Contest) -> Result<()> {
        let case = format!("{}-{name}", self.degree);
        contest.add(&case, "op/s", false, self.kind, sample);
        contest.check(&case, 0, self.kind, answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse;

    #[test]
    fn every_engine_answers_alike_in_every_degree() {
        let dir = os::TempDir::new("ioarena").unwrap();
        let place = dir.path().to_str().unwrap();
        let line = [
            "ioarena", "--pairs", "10000", "--rounds", "1", "--dir", place,
        ];
        let options = parse(line.map(str::to_owned)).unwrap().unwrap();
        let contest = run(&options).unwrap();
        let lines = contest.json();
        let cases = [
            "sync-set",
            "lazy-get-8",
            "nosync-iterate",
            "sync-crud",
            "lazy-batch",
            "nosync-delete",
        ];
        for case in cases {
            let named = format!("\"{case}\"");
            assert!(lines.iter().any(|line| line.contains(&named)), "{case}");
        }
    }
}
