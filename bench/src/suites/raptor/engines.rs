//! Measures one engine of the contest: loads GUIDs and texts, reopens the database, and gets values before and after
//! the engine has merged the runs of the load.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::guids::{Guid, PAIR_BYTES, Text, guid};
use crate::args::Options;
use crate::child::{self, Unit};
use crate::contest::Contest;
use crate::engine::data::Random;
use crate::engine::{Engine, Kind, Promise, Read, Result, Setup};
use crate::meter::{Latencies, MemoryPeak, Meter, Sample, side_by_side};
use crate::os;

/// Number of sets in a transaction.
const BATCH: u64 = 10_000;
/// Maximum number of keys of a part.
const PART_MAX: u64 = 1_000_000;
/// Maximum number of gets of a case. The same number of gets warms the caches before the measurement.
const GETS_MAX: u64 = 2_000_000;
/// Number of keys in a call that gets many.
const MANY: usize = 100;
/// Number of gets in each snapshot while another thread writes.
const GETS_OF_SNAPSHOT: u64 = 1000;

/// Function that runs one engine in a directory and adds its samples to the contest.
pub(super) type Run<'r> = &'r mut dyn FnMut(Kind, &Path, &Options, &mut Contest) -> Result<()>;

/// The units of the cases.
const UNITS: [Unit; 6] = [
    ("sets/s", false),
    ("gets/s", false),
    ("bytes/key", true),
    ("ms", true),
    ("s", true),
    ("MiB", true),
];

/// Runs the engine in a process of its own, so that its memory can be measured.
pub(super) fn in_a_process(
    kind: Kind,
    dir: &Path,
    options: &Options,
    contest: &mut Contest,
) -> Result<()> {
    let mut child = Command::new(std::env::current_exe()?);
    child.args(["raptor-one", "--peers", kind.name]);
    child.arg("--dir").arg(dir);
    child.args(["--keys", &options.keys.to_string()]);
    let output = child.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("{}: {}", kind.name, output.status).into());
    }
    for line in String::from_utf8(output.stdout)?.lines() {
        child::take(line, kind, &UNITS, contest)?;
    }
    Ok(())
}

/// Runs the engine in this process.
#[cfg(test)]
pub(super) fn in_this_process(
    kind: Kind,
    dir: &Path,
    options: &Options,
    contest: &mut Contest,
) -> Result<()> {
    measure(kind, dir, options, &mut |case, unit, sample| {
        let known = UNITS.iter().find(|(known, _)| *known == unit);
        let (unit, less_is_better) = known.ok_or("an unknown unit")?;
        contest.add(case, unit, *less_is_better, kind, sample);
        Ok(())
    })
}

/// Callback that receives the name of a case, its unit, and a sample.
type Tell<'t> = &'t mut dyn FnMut(&str, &str, Sample) -> Result<()>;

/// Measures all cases with one engine, whose files are in `dir`.
pub(super) fn measure(kind: Kind, dir: &Path, options: &Options, tell: Tell<'_>) -> Result<()> {
    let memory = MemoryPeak::start();
    let sizes = Sizes::of(options.keys);
    let Sizes { keys, part, .. } = sizes;
    let setup = Setup::new(Promise::Synced, (keys + part) * PAIR_BYTES);
    let open = || -> Result<_> {
        let engine = (kind.open)(dir, &setup)?;
        Ok(One { engine, dir, sizes })
    };
    open()?.load(tell)?;
    tell("bytes", "bytes/key", Sample::of(per_key(dir, keys)?))?;
    let begin = Instant::now();
    let one = open()?;
    one.engine.begin_read()?;
    let elapsed = begin.elapsed().as_secs_f64();
    tell("reopen", "ms", Sample::of(elapsed * 1e3))?;
    let seconds = one.count(keys)?;
    tell("count", "ms", Sample::of(seconds * 1e3))?;
    one.gets("", tell)?;
    one.gets_beside_sets(tell)?;
    one.count(keys + part)?;
    let begin = Instant::now();
    one.engine.settle()?;
    let elapsed = begin.elapsed().as_secs_f64();
    tell("settle", "s", Sample::of(elapsed))?;
    one.count(keys + part)?;
    one.gets("settled-", tell)?;
    drop(one);
    let bytes = per_key(dir, keys + part)?;
    tell("settled-bytes", "bytes/key", Sample::of(bytes))?;
    let mib = memory.finish()? as f64 / f64::from(1 << 20);
    tell("memory", "MiB", Sample::of(mib))
}

fn per_key(dir: &Path, keys: u64) -> Result<f64> {
    Ok(os::disk_used(dir)? as f64 / keys as f64)
}

/// Numbers of keys: all of the load, of a transaction, and of a part.
#[derive(Clone, Copy)]
struct Sizes {
    keys: u64,
    batch: u64,
    part: u64,
}

impl Sizes {
    fn of(keys: u64) -> Self {
        let batch = BATCH.min(keys.div_ceil(10));
        let part = (keys / 10).clamp(batch, PART_MAX);
        Self { keys, batch, part }
    }
}

/// An open engine.
struct One<'o> {
    engine: Box<dyn Engine>,
    dir: &'o Path,
    sizes: Sizes,
}

impl One<'_> {
    /// Sets the keys `first..end` in one durable transaction.
    fn set(&self, first: u64, end: u64) -> Result<()> {
        self.engine.write(&mut |txn| {
            for n in first..end {
                let guid = guid(n);
                txn.put(&guid, Text::of(&guid).bytes())?;
            }
            Ok(())
        })
    }

    /// Sets all keys.
    fn load(&self, tell: Tell<'_>) -> Result<()> {
        let mut latencies = Latencies::default();
        // The number of keys that exist at each time.
        let mut course = vec![(0, Duration::ZERO)];
        let meter = Meter::of(&*self.engine, self.dir);
        let begin = Instant::now();
        let mut first = 0;
        while first < self.sizes.keys {
            let end = (first + self.sizes.batch).min(self.sizes.keys);
            latencies.time(|| self.set(first, end))?;
            course.push((end, begin.elapsed()));
            first = end;
        }
        let transactions = course.len() as u64 - 1;
        let silent = self.engine.silent_syncs(transactions);
        let sample = meter.finish(self.sizes.keys, silent, latencies);
        let written = sample.written.handed as f64 / self.sizes.keys as f64;
        tell("set", "sets/s", sample)?;
        let rate = |from: (u64, Duration), to: (u64, Duration)| {
            Sample::of((to.0 - from.0) as f64 / (to.1 - from.1).as_secs_f64())
        };
        let transactions_of_part = (self.sizes.part / self.sizes.batch) as usize;
        let (start, end) = (course[0], course[course.len() - 1]);
        let early = course[transactions_of_part];
        let late = course[course.len() - 1 - transactions_of_part];
        tell("set-first", "sets/s", rate(start, early))?;
        tell("set-last", "sets/s", rate(late, end))?;
        tell("written", "bytes/key", Sample::of(written))
    }

    /// Counts the keys and compares their number with `expected`; returns the seconds.
    fn count(&self, expected: u64) -> Result<f64> {
        let (begin, mut count) = (Instant::now(), 0);
        self.engine.read(&mut |reader| {
            count = reader.count()?;
            Ok(())
        })?;
        match count == expected {
            true => Ok(begin.elapsed().as_secs_f64()),
            false => Err(format!("{count} keys are counted, {expected} were set").into()),
        }
    }

    /// Random gets of one and of two threads, and of many keys at once.
    fn gets(&self, prefix: &str, tell: Tell<'_>) -> Result<()> {
        for threads in [1, 2] {
            let case = match threads {
                1 => format!("{prefix}get"),
                _ => format!("{prefix}get-{threads}"),
            };
            let each = self.sizes.keys.min(GETS_MAX) / threads;
            // The first pass warms the caches.
            for is_warm in [false, true] {
                let meter = Meter::start(self.dir);
                let (latencies, gets) = side_by_side(threads, |thread| {
                    let mut random = Random::new(100 + thread + 10 * u64::from(is_warm));
                    self.single_gets(&mut random, self.sizes.keys, each)
                })?;
                if is_warm {
                    tell(&case, "gets/s", meter.finish(gets, 0, latencies))?;
                }
            }
        }
        let calls = self.sizes.keys.min(GETS_MAX).div_ceil(MANY as u64);
        let mut random = Random::new(200);
        let (mut latencies, mut gets) = (Latencies::default(), 0);
        let meter = Meter::start(self.dir);
        self.engine.read(&mut |reader| {
            for _ in 0..calls {
                match latencies.time(|| many_gets(reader, &mut random, self.sizes.keys))? {
                    true => gets += MANY as u64,
                    false => break,
                }
            }
            Ok(())
        })?;
        if gets == 0 {
            return Ok(());
        }
        let sample = meter.finish(gets, 0, latencies);
        tell(&format!("{prefix}get-many"), "gets/s", sample)
    }

    /// Gets random keys among the first `there` keys in one snapshot; returns the number of gets.
    fn single_gets(&self, random: &mut Random, there: u64, gets: u64) -> Result<(Latencies, u64)> {
        let mut latencies = Latencies::default();
        self.engine.read(&mut |reader| {
            for n in 0..gets {
                let guid = guid(random.below(there));
                let expected = Text::of(&guid);
                let mut is_right = false;
                latencies.time_some(n, || {
                    reader.value(&guid, &mut |value| is_right = value == expected.bytes())
                })?;
                if !is_right {
                    return Err(format!("no or a wrong value of {guid:?}").into());
                }
            }
            Ok(())
        })?;
        Ok((latencies, gets))
    }

    /// Sets one more part, while another thread gets keys.
    fn gets_beside_sets(&self, tell: Tell<'_>) -> Result<()> {
        let there = AtomicU64::new(self.sizes.keys);
        let is_done = AtomicBool::new(false);
        let (sets, gets) = thread::scope(|scope| {
            let reading = scope.spawn(|| -> Result<Sample> {
                let mut random = Random::new(300);
                let (mut latencies, mut gets) = (Latencies::default(), 0);
                let meter = Meter::start(self.dir);
                loop {
                    let is_last = is_done.load(Ordering::Acquire);
                    // When a commit has returned, its keys are in every snapshot that begins afterwards.
                    let there = there.load(Ordering::Acquire);
                    let (times, new) = self.single_gets(&mut random, there, GETS_OF_SNAPSHOT)?;
                    latencies.join(times);
                    gets += new;
                    if is_last {
                        return Ok(meter.finish(gets, 0, latencies));
                    }
                }
            });
            let writing = self.more_sets(&there);
            is_done.store(true, Ordering::Release);
            let reading = reading.join();
            (
                writing,
                reading.unwrap_or_else(|_| Err("the reader panicked".into())),
            )
        });
        tell("set-beside", "sets/s", sets?)?;
        tell("get-loading", "gets/s", gets?)
    }

    fn more_sets(&self, there: &AtomicU64) -> Result<Sample> {
        let mut latencies = Latencies::default();
        let meter = Meter::of(&*self.engine, self.dir);
        let (mut first, last) = (self.sizes.keys, self.sizes.keys + self.sizes.part);
        let mut transactions = 0;
        while first < last {
            let end = (first + self.sizes.batch).min(last);
            latencies.time(|| self.set(first, end))?;
            there.store(end, Ordering::Release);
            first = end;
            transactions += 1;
        }
        let silent = self.engine.silent_syncs(transactions);
        Ok(meter.finish(self.sizes.part, silent, latencies))
    }
}

/// Gets many random keys among the first `there` keys with one call; returns false if the engine has no such call.
fn many_gets(reader: &mut dyn Read, random: &mut Random, there: u64) -> Result<bool> {
    let mut guids: [Guid; MANY] = [[0; 16]; MANY];
    for to in &mut guids {
        *to = guid(random.below(there));
    }
    let keys: [&[u8]; MANY] = std::array::from_fn(|at| &guids[at][..]);
    let mut right = 0;
    let has_call = reader.values(&keys, &mut |at, value| {
        right += usize::from(value == Text::of(&guids[at]).bytes());
    })?;
    match right == MANY || !has_call {
        true => Ok(has_call),
        false => Err(format!("{} of {MANY} values are missing or wrong", MANY - right).into()),
    }
}
