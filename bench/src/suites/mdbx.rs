//! `mdbx`: the published workloads of libmdbx and redb.
//!
//! Small database, 16 + 32 bytes, as on the libmdbx page. A transaction inserts two pairs, updates one, reads
//! one and deletes one:
//!
//! | case | |
//! |---|---|
//! | `crud-synced`, `crud-lazy`, `crud-unsynced` | 10,000, 100,000 and 1,000,000 transactions, starting empty |
//! | `crud-get-N` | reads/s of N threads in the database of `crud-lazy` |
//!
//! Large database, as in redb's table: `a-` pairs of 24 + 150 bytes, `b-` of 16 + 8:
//!
//! | case | |
//! |---|---|
//! | `load` | all pairs in key order, one durable transaction; then `scan-loaded`, `get-loaded`, `bytes-loaded` |
//! | `fill` | all pairs in random order, durable transactions of 10,000; then `bytes-filled` |
//! | `get-N` | random gets of N threads |
//! | `range` | ten entries from a random key on, in entries/s |
//! | `scan` | all entries |
//! | `put`, `batch` | durable transactions of 1 and of 1,000 pairs, in pairs/s |
//! | `crud` | the small transactions in this database, durable |
//! | `remove` | half of the pairs in random order, durable transactions of 10,000; then `bytes-removed` |
//! | `compact` | seconds for the engine's own compaction; then `bytes-compacted` |
//!
//! The multi-value cases are in `src/suites/multi_values.rs`.
//!
//! Sizes are measured after closing. Every engine's answers are compared with the answers of the first.

use std::path::Path;
use std::time::Instant;

use super::multi_values;
use crate::args::Options;
use crate::contest::Contest;
use crate::engine::data::{Data, Random, Shape};
use crate::engine::{Engine, Kind, Promise, Result, Setup, TIDALITE, TIDALITE_ONE_FLUSH, Write};
use crate::meter::{Latencies, Meter, Sample, side_by_side};
use crate::os;

const SMALL: Shape = Shape {
    key_bytes: 16,
    value_bytes: 32,
};
/// The shapes of the pairs in the large database, with the prefixes of the names of their cases.
const LARGE: [(&str, Shape); 2] = [
    (
        "a",
        Shape {
            key_bytes: 24,
            value_bytes: 150,
        },
    ),
    (
        "b",
        Shape {
            key_bytes: 16,
            value_bytes: 8,
        },
    ),
];
/// Number of pairs in the published runs; other numbers are scaled in proportion to `--pairs`.
const PAIRS_FULL: u64 = 5_000_000;
/// Number of pairs in a transaction of the cases `fill` and `remove`.
const FILL: u64 = 10_000;
/// Numbers of threads that read at the same time, one case for each number.
const THREADS: [u64; 4] = [1, 2, 4, 8];

/// Runs the suite `mdbx`.
pub(crate) fn run(options: &Options) -> Result<Contest> {
    let mut contest = Contest::new("mdbx", &[TIDALITE, TIDALITE_ONE_FLUSH], &options.peers)?;
    for round in 0..options.rounds {
        for kind in contest.order(round) {
            for (promise, name, txns) in [
                (Promise::Synced, "crud-synced", 10_000),
                (Promise::Lazy, "crud-lazy", 100_000),
                (Promise::Unsynced, "crud-unsynced", 1_000_000),
            ] {
                if kind.name == TIDALITE_ONE_FLUSH.name && promise != Promise::Synced {
                    continue;
                }
                let reads = promise == Promise::Lazy && options.chosen("crud-get");
                if options.chosen(name) || reads {
                    small(kind, promise, (name, txns), options, &mut contest)?;
                }
            }
        }
    }
    for (prefix, shape) in LARGE {
        let data = Data::new(shape);
        for round in 0..options.rounds {
            for kind in contest.order(round) {
                let large = Large {
                    kind,
                    prefix,
                    data: &data,
                    pairs: options.pairs,
                    options,
                };
                large.loaded(&mut contest)?;
                large.filled(&mut contest)?;
            }
        }
    }
    multi_values::run(options, &mut contest)?;
    Ok(contest)
}

/// Scales the number `full` in proportion to the number of pairs, but not below 20.
fn scaled(full: u64, options: &Options) -> u64 {
    (full * options.pairs / PAIRS_FULL).clamp(20, full)
}

/// Runs the workload of the small database, which is empty at first.
fn small(
    kind: Kind,
    promise: Promise,
    (name, txns): (&str, u64),
    options: &Options,
    contest: &mut Contest,
) -> Result<()> {
    let txns = scaled(txns, options);
    let data = Data::new(SMALL);
    let dir = os::TempDir::within(&options.dir, kind.name)?;
    os::settle(dir.path())?;
    os::touch_memory(txns * 256 + (64 << 20), txns * 128 + (64 << 20));
    let setup = Setup::new(promise, txns * SMALL.pair_bytes() + (16 << 20));
    let engine = (kind.open)(dir.path(), &setup)?;
    let mut crud = Crud::new(&data, 0);
    let mut sample = crud.run(&*engine, dir.path(), txns)?;
    sample.file_bytes = os::disk_used(dir.path())?;
    contest.add(name, "txn/s", false, kind, sample);
    contest.check(name, 0, kind, crud.answer)?;
    if promise == Promise::Lazy && options.chosen("crud-get") {
        for threads in THREADS {
            let live = crud.live();
            let gets = Gets {
                data: &data,
                key: &|data, random| data.scattered(live.0 + random.below(live.1 - live.0)),
                each: scaled(1_000_000, options) / threads,
            };
            let case = format!("crud-get-{threads}");
            let (sample, answer) = gets.run(&*engine, dir.path(), threads)?;
            contest.add(&case, "gets/s", false, kind, sample);
            contest.check(&case, 0, kind, answer)?;
        }
    }
    Ok(())
}

/// The transactions of the small workload. Transaction n inserts pairs 2n and 2n + 1 after the existing pairs, and
/// deletes pair n, so that each transaction adds one pair.
struct Crud<'d> {
    data: &'d Data,
    before: u64,
    done: u64,
    random: Random,
    answer: u64,
}

impl<'d> Crud<'d> {
    fn new(data: &'d Data, before: u64) -> Self {
        Self {
            data,
            before,
            done: 0,
            random: Random::new(11),
            answer: 0,
        }
    }

    /// Number of the first existing pair, and the number after the last existing pair.
    fn live(&self) -> (u64, u64) {
        (self.done, self.before + 2 * self.done)
    }

    fn run(&mut self, engine: &dyn Engine, dir: &Path, txns: u64) -> Result<Sample> {
        let mut latencies = Latencies::default();
        let meter = Meter::of(engine, dir);
        for _ in 0..txns {
            latencies.time(|| engine.write(&mut |txn| self.one(txn)))?;
        }
        Ok(meter.finish(txns, engine.silent_syncs(txns), latencies))
    }

    fn one(&mut self, txn: &mut dyn Write) -> Result<()> {
        let Self { data, random, .. } = self;
        let (first, next) = (self.done, self.before + 2 * self.done);
        for n in [next, next + 1] {
            txn.put(data.scattered(n).as_ref(), data.value(n, 0))?;
        }
        // Chooses among pairs that will still exist after this transaction.
        let mut any = || first + 1 + random.below(next + 1 - first);
        let (update, read) = (any(), any());
        txn.put(
            data.scattered(update).as_ref(),
            data.value(update, self.done + 1),
        )?;
        let got = txn.get(data.scattered(read).as_ref())?;
        self.answer = self
            .answer
            .wrapping_add(got.ok_or("a pair that was put is missing")?);
        txn.delete(data.scattered(first).as_ref())?;
        self.done += 1;
        Ok(())
    }
}

/// Random gets on several threads, each in its own snapshot.
struct Gets<'g> {
    data: &'g Data,
    key: &'g (dyn Fn(&Data, &mut Random) -> crate::engine::data::Key + Sync),
    each: u64,
}

impl Gets<'_> {
    /// Runs the gets; returns the sample, and the sum of the answers.
    fn run(&self, engine: &dyn Engine, dir: &Path, threads: u64) -> Result<(Sample, u64)> {
        let meter = Meter::start(dir);
        let of_thread = |thread| self.of_thread(engine, thread);
        let (latencies, answer) = side_by_side(threads, of_thread)?;
        Ok((meter.finish(self.each * threads, 0, latencies), answer))
    }

    fn of_thread(&self, engine: &dyn Engine, thread: u64) -> Result<(Latencies, u64)> {
        let mut latencies = Latencies::default();
        let mut answer = 0u64;
        let mut random = Random::new(100 + thread);
        engine.read(&mut |reader| {
            for n in 0..self.each {
                let key = (self.key)(self.data, &mut random);
                let got = latencies.time_some(n, || reader.get(key.as_ref()))?;
                answer = answer.wrapping_add(got.map_or(1, |got| got | 2));
            }
            Ok(())
        })?;
        Ok((latencies, answer))
    }
}

/// An open database of an engine, and the directory of its files.
type Side<'s> = (&'s dyn Engine, &'s Path);

/// One engine with one shape of pairs in the large database.
struct Large<'l> {
    kind: Kind,
    prefix: &'l str,
    data: &'l Data,
    pairs: u64,
    options: &'l Options,
}

impl Large<'_> {
    fn one_flush(&self) -> bool {
        self.kind.name == TIDALITE_ONE_FLUSH.name
    }

    fn case(&self, name: &str) -> String {
        format!("{}-{name}", self.prefix)
    }

    fn chosen(&self, name: &str) -> bool {
        self.options.chosen(name) || self.options.chosen(&self.case(name))
    }

    fn open(&self, dir: &Path) -> Result<Box<dyn Engine>> {
        let bytes = self.pairs * self.data.shape.pair_bytes() + (16 << 20);
        (self.kind.open)(dir, &Setup::new(Promise::Synced, bytes))
    }

    fn start(&self) -> Result<os::TempDir> {
        let dir = os::TempDir::within(&self.options.dir, self.kind.name)?;
        os::settle(dir.path())?;
        let bytes = self.pairs * (self.data.shape.pair_bytes() + 32);
        os::touch_memory(bytes * 3, bytes);
        Ok(dir)
    }

    /// True if at least one of these cases is to run.
    fn any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.chosen(name))
    }

    /// Loads the pairs in key order, and runs the cases that need the loaded database.
    fn loaded(&self, contest: &mut Contest) -> Result<()> {
        // Barriers (flushes of the disk) do not affect these cases, so one mode of Tidalite is enough.
        if self.one_flush() {
            return Ok(());
        }
        if !self.any(&["load", "bytes-loaded", "get-loaded", "scan-loaded"]) {
            return Ok(());
        }
        let dir = self.start()?;
        let engine = self.open(dir.path())?;
        let meter = Meter::of(&*engine, dir.path());
        engine.load(self.data.load(self.pairs))?;
        let sample = meter.finish(self.pairs, engine.silent_syncs(1), Latencies::default());
        let (kind, add) = (self.kind, "pairs/s");
        contest.add(&self.case("load"), add, false, kind, sample);
        drop(engine);
        self.bytes("bytes-loaded", dir.path(), contest)?;
        let engine = self.open(dir.path())?;
        self.scan("scan-loaded", (&*engine, dir.path()), contest)?;
        let pairs = self.pairs;
        let gets = Gets {
            data: self.data,
            key: &|data, random| data.ascending(random.below(pairs)),
            each: scaled(1_000_000, self.options),
        };
        self.gets("get-loaded", &gets, (&*engine, dir.path()), 1, contest)
    }

    /// Fills the database in random order, and runs all cases that follow.
    fn filled(&self, contest: &mut Contest) -> Result<()> {
        let reads = [
            "get-1",
            "get-2",
            "get-4",
            "get-8",
            "range",
            "scan",
            "bytes-filled",
        ];
        let writes = ["fill", "put", "batch", "crud", "remove", "compact"];
        if !self.any(&reads) && !self.any(&writes) {
            return Ok(());
        }
        let dir = self.start()?;
        let engine = self.open(dir.path())?;
        self.puts(
            "fill",
            (&*engine, dir.path()),
            (0, self.pairs),
            FILL,
            contest,
        )?;
        drop(engine);
        self.bytes("bytes-filled", dir.path(), contest)?;
        let mut engine = self.open(dir.path())?;
        if !self.one_flush() {
            self.reads((&*engine, dir.path()), contest)?;
        }
        let (single, batches) = (scaled(2000, self.options), scaled(100, self.options));
        self.puts("put", (&*engine, dir.path()), (1 << 40, single), 1, contest)?;
        self.puts(
            "batch",
            (&*engine, dir.path()),
            (1 << 41, batches * 1000),
            1000,
            contest,
        )?;
        if self.chosen("crud") {
            let mut crud = Crud::new(self.data, self.pairs);
            let sample = crud.run(&*engine, dir.path(), scaled(2000, self.options))?;
            let case = self.case("crud");
            contest.add(&case, "txn/s", false, self.kind, sample);
            contest.check(&case, 0, self.kind, crud.answer)?;
        }
        if self.one_flush() {
            return Ok(());
        }
        if self.any(&["remove", "compact"]) {
            self.removed((&*engine, dir.path()), contest)?;
            drop(engine);
            self.bytes("bytes-removed", dir.path(), contest)?;
            engine = self.open(dir.path())?;
        }
        if self.chosen("compact") {
            let start = Instant::now();
            if engine.compact()? {
                let sample = Sample::of(start.elapsed().as_secs_f64());
                contest.add(&self.case("compact"), "s", true, self.kind, sample);
                // Engines that write a compacted copy replace the file by that copy at the next opening.
                drop(engine);
                drop(self.open(dir.path())?);
                self.bytes("bytes-compacted", dir.path(), contest)?;
                let engine = self.open(dir.path())?;
                self.scan("scan-compacted", (&*engine, dir.path()), contest)?;
            }
        }
        Ok(())
    }

    fn reads(&self, side: Side<'_>, contest: &mut Contest) -> Result<()> {
        let pairs = self.pairs;
        for threads in THREADS {
            let gets = Gets {
                data: self.data,
                key: &|data, random| data.scattered(random.below(pairs)),
                each: scaled(1_000_000, self.options) / threads,
            };
            self.gets(&format!("get-{threads}"), &gets, side, threads, contest)?;
        }
        self.ranges(side, contest)?;
        self.scan("scan", side, contest)
    }

    fn gets(
        &self,
        name: &str,
        gets: &Gets<'_>,
        (engine, dir): Side<'_>,
        threads: u64,
        contest: &mut Contest,
    ) -> Result<()> {
        if !self.chosen(name) {
            return Ok(());
        }
        let case = self.case(name);
        let (sample, answer) = gets.run(engine, dir, threads)?;
        contest.add(&case, "gets/s", false, self.kind, sample);
        contest.check(&case, 0, self.kind, answer)
    }

    fn ranges(&self, (engine, dir): Side<'_>, contest: &mut Contest) -> Result<()> {
        if !self.chosen("range") {
            return Ok(());
        }
        let (mut latencies, mut random) = (Latencies::default(), Random::new(13));
        let (mut entries, mut answer) = (0, 0u64);
        let meter = Meter::start(dir);
        engine.read(&mut |reader| {
            for n in 0..scaled(500_000, self.options) {
                let from = self.data.scattered(random.below(self.pairs));
                let digest = latencies.time_some(n, || reader.scan(from.as_ref(), 10))?;
                entries += digest.entries;
                answer = answer.wrapping_add(digest.answer());
            }
            Ok(())
        })?;
        let case = self.case("range");
        let sample = meter.finish(entries, 0, latencies);
        contest.add(&case, "entries/s", false, self.kind, sample);
        contest.check(&case, 0, self.kind, answer)
    }

    fn scan(&self, name: &str, (engine, dir): Side<'_>, contest: &mut Contest) -> Result<()> {
        if !self.chosen(name) {
            return Ok(());
        }
        let case = self.case(name);
        engine.read(&mut |reader| {
            let meter = Meter::start(dir);
            let digest = reader.scan(&[], u64::MAX >> 1)?;
            let sample = meter.finish(digest.entries, 0, Latencies::default());
            contest.add(&case, "entries/s", false, self.kind, sample);
            contest.check(&case, 0, self.kind, digest.answer())
        })
    }

    /// Stores `count` pairs from number `first` on, in transactions of a given number of pairs.
    fn puts(
        &self,
        name: &str,
        (engine, dir): Side<'_>,
        (first, count): (u64, u64),
        each: u64,
        contest: &mut Contest,
    ) -> Result<()> {
        // The case `fill` always runs, because the cases that read need the filled table.
        if !self.chosen(name) && name != "fill" {
            return Ok(());
        }
        let (mut latencies, mut txns) = (Latencies::default(), 0);
        let meter = Meter::of(engine, dir);
        let mut at = first;
        while at < first + count {
            let end = (at + each).min(first + count);
            latencies.time(|| {
                engine.write(&mut |txn| {
                    (at..end).try_for_each(|n| {
                        txn.put(self.data.scattered(n).as_ref(), self.data.value(n, 0))
                    })
                })
            })?;
            (at, txns) = (end, txns + 1);
        }
        let sample = meter.finish(count, engine.silent_syncs(txns), latencies);
        contest.add(&self.case(name), "pairs/s", false, self.kind, sample);
        Ok(())
    }

    /// Removes every second pair in random order.
    fn removed(&self, (engine, dir): Side<'_>, contest: &mut Contest) -> Result<()> {
        let (mut latencies, mut txns, count) = (Latencies::default(), 0, self.pairs / 2);
        let meter = Meter::of(engine, dir);
        let mut at = 0;
        while at < count {
            let end = (at + FILL).min(count);
            latencies.time(|| {
                engine.write(&mut |txn| {
                    (at..end)
                        .try_for_each(|n| txn.delete(self.data.scattered(2 * n).as_ref()).map(drop))
                })
            })?;
            (at, txns) = (end, txns + 1);
        }
        let sample = meter.finish(count, engine.silent_syncs(txns), latencies);
        contest.add(&self.case("remove"), "pairs/s", false, self.kind, sample);
        Ok(())
    }

    fn bytes(&self, name: &str, dir: &Path, contest: &mut Contest) -> Result<()> {
        let sample = Sample::of(os::disk_used(dir)? as f64);
        contest.add(&self.case(name), "bytes", true, self.kind, sample);
        Ok(())
    }
}
