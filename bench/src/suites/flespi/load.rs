//! The parts `load` and `layouts`: many different topics, found by filters. Each store runs in a process of its own, so
//! that its memory can be measured.
//!
//! `load` compares our topics with LMDB, by default with ten million topics. `layouts` compares our single ordered
//! keyspace with nested tables, with a plain table and with LMDB ([`store`]), by default with a million topics, and
//! also overwrites all topics.
//!
//! | case | |
//! |---|---|
//! | `...-load` | topics/s, ten of a random device at a time, in durable transactions of 100,000 |
//! | `...-load-written` | bytes per topic that the store passes to `write` and similar calls during the load |
//! | `...-memory` | MiB of anonymous memory, the maximum during the load; some 20 of them are the names of a transaction |
//! | `...-bytes` | file bytes per topic, after closing |
//! | `...-overwrite` | topics/s, `layouts` only: all topics once, in durable transactions of `--batch` topics |
//! | `...-overwrite-written` | bytes per topic during that |
//! | `...-reopen`, `...-reopen-cold` | ms to open the store and to get one topic, with the file in the page cache and without |
//! | `...-memory-open` | MiB of anonymous memory after reopening and reading |
//! | `...-get` | random gets/s of whole topics |
//! | `...-a-b-plus-4`, `...-a-all`, `...-plus-plus-x`, `...-all` | ms for `a/b/+/4`, `a/#`, `+/+/x` and `#`, which is the full scan; the median of some repetitions |
//! | `...-rows`, `...-pages` of these | rows compared with the filter, and pages read if the store counts them |
//!
//! In a first pass, every result of a get and every match is compared with the name and the payload of its topic. Sums
//! over the matches must be the same in the measured passes, and for all stores.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use ::tidalite::topics::Message;

use super::face::{Store, Work};
use super::names::{Payload, Question, Sites, parsed, payload};
use super::store;
use crate::args::Options;
use crate::child::{self, Unit};
use crate::contest::Contest;
use crate::engine::data::Random;
use crate::engine::{Kind, Result};
use crate::meter::{Latencies, MemoryPeak, Meter, Sample};
use crate::os;
use crate::report::median;

/// Number of topics in a transaction of the load.
const LOADED_EACH: usize = 100_000;
/// Maximum number of gets. The same number of gets warms the caches before the measurement.
const GETS_MAX: u64 = 1_000_000;
/// Number of repetitions of a question; the median is reported. The full scan is not repeated.
const REPETITIONS: usize = 9;
/// Maximum size in bytes of a topic and its payload in a file.
const TOPIC_BYTES: u64 = 200;

/// The units of the cases.
const UNITS: [Unit; 7] = [
    ("topics/s", false),
    ("gets/s", false),
    ("bytes/topic", true),
    ("ms", true),
    ("MiB", true),
    ("rows", true),
    ("pages", true),
];

/// Runs a part for one store in a directory, and adds its samples to the contest.
pub(super) type Run<'r> =
    &'r mut dyn FnMut(Kind, &str, &Path, &Options, &mut Contest) -> Result<()>;

/// Runs a part: `load` or `layouts`.
pub(super) fn run(
    part: &str,
    options: &Options,
    round: usize,
    one: Run<'_>,
    contest: &mut Contest,
) -> Result<()> {
    let mut kinds = match part {
        "load" => store::beside_lmdb(&options.peers)?,
        _ => store::layouts(&options.peers)?,
    };
    let count = kinds.len();
    kinds.rotate_left(round % count);
    let topics = topics_of(part, options);
    for kind in kinds {
        let dir = os::TempDir::within(&options.dir, kind.name)?;
        os::expect_disk(dir.path(), topics * 2 * TOPIC_BYTES + (64 << 20))
            .map_err(|short| format!("{short}: use --keys and --topics"))?;
        os::settle(dir.path())?;
        // Only memory for the page cache is touched, because the heap belongs to another process.
        os::touch_memory(topics * 2 * TOPIC_BYTES, 0);
        one(kind, part, dir.path(), options, contest)?;
    }
    Ok(())
}

fn topics_of(part: &str, options: &Options) -> u64 {
    if part == "load" {
        options.keys
    } else {
        options.topics
    }
}

/// Runs one store in a process of its own.
pub(super) fn in_a_process(
    kind: Kind,
    part: &str,
    dir: &Path,
    options: &Options,
    contest: &mut Contest,
) -> Result<()> {
    let mut child = Command::new(std::env::current_exe()?);
    child.args(["flespi-one", "--only", part, "--peers", kind.name]);
    child.arg("--dir").arg(dir);
    for (option, value) in [
        ("--keys", options.keys),
        ("--topics", options.topics),
        ("--batch", options.batch),
    ] {
        child.args([option, &value.to_string()]);
    }
    let output = child.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("{}: {}", kind.name, output.status).into());
    }
    for line in String::from_utf8(output.stdout)?.lines() {
        child::take(line, kind, &UNITS, contest)?;
    }
    Ok(())
}

/// The main function of the child process, which measures one store in one part.
pub(super) fn one(options: &Options) -> Result<()> {
    let ([name], [part]) = (options.peers.as_slice(), options.only.as_slice()) else {
        return Err("one store and one part are wanted".into());
    };
    let mut kinds = store::layouts(&[])?.into_iter();
    let kind = kinds.find(|kind| kind.name == name);
    let kind = kind.ok_or("there is no such store")?;
    let mut tell = |told: Told<'_>| {
        match told {
            Told::Sample(case, unit, sample) => child::tell(case, unit, &sample),
            Told::Answer(case, answer) => child::answer(case, answer),
        }
        Ok(())
    };
    One::measure(kind, part, &options.dir, options, &mut tell)
}

/// Runs one store in this process.
#[cfg(test)]
pub(super) fn in_this_process(
    kind: Kind,
    part: &str,
    dir: &Path,
    options: &Options,
    contest: &mut Contest,
) -> Result<()> {
    let mut tell = |told: Told<'_>| match told {
        Told::Sample(case, unit, sample) => {
            let known = UNITS.iter().find(|(known, _)| *known == unit);
            let (unit, less_is_better) = known.ok_or("an unknown unit")?;
            contest.add(case, unit, *less_is_better, kind, sample);
            Ok(())
        }
        Told::Answer(case, answer) => contest.check(case, 0, kind, answer),
    };
    One::measure(kind, part, dir, options, &mut tell)
}

/// A result that is sent to the parent process.
enum Told<'t> {
    /// A case, its unit and its sample.
    Sample(&'t str, &'static str, Sample),
    /// A case and its answer, which must be the same for all stores.
    Answer(&'t str, u64),
}

/// A store that is being measured.
struct One<'o> {
    kind: Kind,
    part: &'o str,
    dir: &'o Path,
    sites: Sites,
    tell: &'o mut dyn FnMut(Told<'_>) -> Result<()>,
}

impl One<'_> {
    fn measure(
        kind: Kind,
        part: &str,
        dir: &Path,
        options: &Options,
        tell: &mut dyn FnMut(Told<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut one = One {
            kind,
            part,
            dir,
            sites: Sites::of(topics_of(part, options)),
            tell,
        };
        one.load()?;
        let bytes = os::disk_used(dir)? as f64 / one.sites.topics() as f64;
        one.sample("bytes", "bytes/topic", Sample::of(bytes))?;
        let mut written = 0;
        if part == "layouts" {
            written = 1;
            let store = one.open()?;
            one.publish(&*store, "overwrite", written, options.batch.max(1) as usize)?;
        }
        // Free memory that remains from the load must not count as memory of the store.
        os::trim_heap();
        one.reopen("reopen", written)?;
        os::make_cold(dir)?;
        one.reopen("reopen-cold", written)?;
        let store = one.open()?;
        one.gets(&*store, written)?;
        for question in one.sites.questions() {
            one.ask(&*store, &question, written)?;
        }
        let memory = os::memory_anonymous() as f64 / f64::from(1 << 20);
        one.sample("memory-open", "MiB", Sample::of(memory))
    }

    fn open(&self) -> Result<Box<dyn Store>> {
        store::open(self.kind, self.dir, self.sites.topics() * TOPIC_BYTES)
    }

    fn sample(&mut self, case: &str, unit: &'static str, sample: Sample) -> Result<()> {
        (self.tell)(Told::Sample(&format!("{}-{case}", self.part), unit, sample))
    }

    fn load(&mut self) -> Result<()> {
        let memory = MemoryPeak::start();
        let store = self.open()?;
        self.publish(&*store, "load", 0, LOADED_EACH)?;
        drop(store);
        let memory = memory.finish()? as f64 / f64::from(1 << 20);
        self.sample("memory", "MiB", Sample::of(memory))
    }

    /// Publishes all topics, in transactions with this number of topics.
    fn publish(&mut self, store: &dyn Store, case: &str, round: u64, each: usize) -> Result<()> {
        let mut numbers = self.sites.scattered();
        let (mut latencies, silent) = (Latencies::default(), store.silent_syncs());
        let mut batch: Vec<(String, Payload)> = Vec::new();
        let meter = Meter::start(self.dir);
        loop {
            // The texts of the previous batch are reused.
            let mut len = 0;
            for n in numbers.by_ref().take(each) {
                if len == batch.len() {
                    batch.push((String::with_capacity(24), [0; 16]));
                }
                self.sites.name(n, &mut batch[len].0);
                batch[len].1 = payload(round, n);
                len += 1;
            }
            if len == 0 {
                break;
            }
            let messages: Vec<Message<'_>> = batch[..len]
                .iter()
                .map(|(topic, payload)| Message::new(topic, payload))
                .collect();
            latencies.time(|| store.publish(&messages))?;
        }
        let topics = self.sites.topics();
        let sample = meter.finish(topics, store.silent_syncs() - silent, latencies);
        let handed = sample.written.handed as f64 / topics as f64;
        self.sample(case, "topics/s", sample)?;
        self.sample(
            &format!("{case}-written"),
            "bytes/topic",
            Sample::of(handed),
        )
    }

    /// Opens the store and gets a topic.
    fn reopen(&mut self, case: &str, round: u64) -> Result<()> {
        let (mut name, n) = (String::new(), self.sites.topics() / 2);
        self.sites.name(n, &mut name);
        let begin = Instant::now();
        let store = self.open()?;
        let mut found = None;
        store.read(&mut |view| {
            found = view.get(&name)?;
            Ok(())
        })?;
        let elapsed = begin.elapsed().as_secs_f64();
        if found != Some(payload(round, n)) {
            return Err(format!("{name} is {found:?} after reopening").into());
        }
        self.sample(case, "ms", Sample::of(elapsed * 1e3))
    }

    fn gets(&mut self, store: &dyn Store, round: u64) -> Result<()> {
        let gets = self.sites.topics().min(GETS_MAX);
        for is_warm in [false, true] {
            let (mut random, mut name) = (Random::new(21), String::new());
            let mut latencies = Latencies::default();
            let meter = Meter::start(self.dir);
            store.read(&mut |view| {
                for i in 0..gets {
                    let n = random.below(self.sites.topics());
                    self.sites.name(n, &mut name);
                    let found = latencies.time_some(i, || view.get(&name))?;
                    if found != Some(payload(round, n)) {
                        return Err(format!("{name} is {found:?}").into());
                    }
                }
                Ok(())
            })?;
            if is_warm {
                self.sample("get", "gets/s", meter.finish(gets, 0, latencies))?;
            }
        }
        Ok(())
    }

    fn ask(&mut self, store: &dyn Store, question: &Question, round: u64) -> Result<()> {
        let filter = ::tidalite::topics::Filter::parse(question.filter)?;
        let (mut name, mut wrong, mut expected) = (String::new(), None, (0, 0u64));
        store.read(&mut |view| {
            view.find(question.filter, &mut |topic, payload| {
                let parsed = parsed(payload).ok();
                self.sites.name(parsed.map_or(0, |(_, n)| n), &mut name);
                if name != topic
                    || parsed.is_none_or(|(at, _)| at != round)
                    || !filter.matches(topic)
                {
                    wrong = Some(format!("{topic} has {parsed:?}"));
                }
                add(&mut expected, payload);
            })?;
            Ok(())
        })?;
        if let Some(wrong) = wrong {
            return Err(format!("{}: {wrong}", question.filter).into());
        }
        if expected.0 != question.matches {
            let (found, matches) = (expected.0, question.matches);
            return Err(format!("{}: {found} matches of {matches}", question.filter).into());
        }
        let repetitions = match question.filter {
            "#" => 1,
            _ => REPETITIONS,
        };
        let (mut times, mut work) = (Vec::new(), Work::default());
        for _ in 0..repetitions {
            let mut found = (0, 0);
            let begin = Instant::now();
            store.read(&mut |view| {
                work = view.find(question.filter, &mut |_, payload| add(&mut found, payload))?;
                Ok(())
            })?;
            times.push(begin.elapsed().as_secs_f64() * 1e3);
            if found != expected {
                return Err(format!("{} differs: {found:?}, {expected:?}", question.filter).into());
            }
        }
        let case = question.case;
        self.sample(case, "ms", Sample::of(median(&times)))?;
        let rows = Sample::of(work.rows as f64);
        self.sample(&format!("{case}-rows"), "rows", rows)?;
        if let Some(pages) = work.pages {
            let pages = Sample::of(pages as f64);
            self.sample(&format!("{case}-pages"), "pages", pages)?;
        }
        let case = format!("{}-{case}", self.part);
        (self.tell)(Told::Answer(&case, expected.0.wrapping_add(expected.1)))
    }
}

/// Adds a match: counts it, and adds its topic's number to a sum that distinguishes most sets of topics.
fn add((matches, sum): &mut (u64, u64), payload: &[u8]) {
    let n = parsed(payload).map_or(u64::MAX, |(_, n)| n);
    *matches += 1;
    *sum = sum.wrapping_add((n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31));
}
