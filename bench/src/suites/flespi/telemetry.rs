//! The parts `topics` and `topics-max`: all retained topics are overwritten repeatedly, while another thread reads with
//! wildcards.
//!
//! In each round every device sends one message, which overwrites the topics of its 50 parameters; the order of the
//! devices changes from round to round. A durable commit contains the messages of `--batch` topics. In `topics` a round
//! takes a second, unless the store is slower; in `topics-max` commits follow each other without a pause.
//!
//! | case | |
//! |---|---|
//! | `...-rate` | overwritten topics/s of the whole time; a latency covers a transaction with its commit |
//! | `...-first`, `...-last` | overwritten topics/s of the first and of the last tenth of the time: a minute of ten |
//! | `...-commit` | p99 of the commit alone, in ms |
//! | `...-written` | bytes per overwritten topic that the store passes to `write` and similar calls |
//! | `...-bytes` | file bytes per topic at the end |
//! | `...-read` | p99 of all wildcard reads, in ms |
//! | `...-read-device`, `...-read-parameter`, `...-read-speed`, `...-read-tree` | p99 of one kind of read ([`reader`](super::reader)) |
//!
//! At the end a scan checks that every topic has the message of the last round or of the previous one.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use ::tidalite::topics::Message;

use super::face::Store;
use super::names::{PARAMETERS, Payload, Telemetry, parsed, payload};
use super::reader::{self, Progress, Reads};
use super::store;
use crate::args::Options;
use crate::contest::Contest;
use crate::engine::data::Random;
use crate::engine::{Kind, Result};
use crate::meter::{Latencies, Meter, Sample};
use crate::os;

/// Maximum bytes of a topic in a file in which a reader holds pages.
const TOPIC_BYTES: u64 = 1000;

/// Runs a part. If `is_paced`, a round takes a second.
pub(super) fn run(
    part: &str,
    is_paced: bool,
    options: &Options,
    round: usize,
    contest: &mut Contest,
) -> Result<()> {
    let telemetry = Telemetry::of(options.topics);
    let topics = telemetry.all();
    let mut kinds = store::beside_lmdb(&options.peers)?;
    let count = kinds.len();
    kinds.rotate_left(round % count);
    for kind in kinds {
        let dir = os::TempDir::within(&options.dir, kind.name)?;
        os::expect_disk(
            dir.path(),
            telemetry.topics() * 2 * TOPIC_BYTES + (64 << 20),
        )
        .map_err(|short| format!("{short}: use --topics"))?;
        os::settle(dir.path())?;
        os::touch_memory(telemetry.topics() * TOPIC_BYTES, telemetry.topics() * 600);
        let store = store::open(kind, dir.path(), telemetry.topics() * TOPIC_BYTES)?;
        let one = One {
            telemetry,
            topics: &topics,
            store: &*store,
            dir: dir.path(),
            each: (options.batch / PARAMETERS).max(1) as usize,
        };
        let (written, reads) = one.overwrite(is_paced, Duration::from_secs(options.seconds))?;
        one.check(&written)?;
        drop(store);
        let file_bytes = os::disk_used(dir.path())?;
        let names = Cases {
            part,
            kind,
            contest,
        };
        names.tell(
            written,
            reads,
            file_bytes as f64 / telemetry.topics() as f64,
        );
    }
    Ok(())
}

/// A store whose topics are overwritten.
struct One<'s> {
    telemetry: Telemetry,
    topics: &'s [String],
    store: &'s dyn Store,
    dir: &'s Path,
    /// Number of devices in a commit.
    each: usize,
}

/// A commit: the start of its transaction, relative to the start of the measurement, and its number of topics.
struct Commit {
    begin: Duration,
    topics: u64,
}

/// Measurements of the writer.
struct Written {
    sample: Sample,
    commits: Vec<Commit>,
    /// The time at which the transaction after the last one would have begun.
    end: Duration,
    commit_times: Latencies,
    rounds: u64,
}

impl One<'_> {
    /// Overwrites topics during this time, while another thread reads.
    fn overwrite(&self, is_paced: bool, time: Duration) -> Result<(Written, Reads)> {
        let progress = Progress::default();
        let mut devices: Vec<u64> = (0..self.telemetry.devices).collect();
        for devices in devices.chunks(self.each) {
            self.publish(0, devices)?;
        }
        os::settle(self.dir)?;
        thread::scope(|scope| {
            let reading = scope.spawn(|| {
                reader::read_until_end(self.telemetry, self.topics, self.store, &progress)
            });
            let written = self.write(is_paced, time, &mut devices, &progress);
            progress.has_ended.store(true, Ordering::SeqCst);
            let reads = reading.join().map_err(|_| "the reader panicked")?;
            Ok((written?, reads?))
        })
    }

    fn write(
        &self,
        is_paced: bool,
        time: Duration,
        devices: &mut [u64],
        progress: &Progress,
    ) -> Result<Written> {
        let mut random = Random::new(11);
        let (mut commits, mut commit_times) = (Vec::new(), Latencies::default());
        let (mut transactions, mut count, mut rounds) = (Latencies::default(), 0, 0);
        let silent = self.store.silent_syncs();
        let meter = Meter::start(self.dir);
        let start = Instant::now();
        let end = 'rounds: loop {
            rounds += 1;
            progress.current.store(rounds, Ordering::SeqCst);
            for i in (1..devices.len()).rev() {
                devices.swap(i, random.below(i as u64 + 1) as usize);
            }
            for some in devices.chunks(self.each) {
                if is_paced {
                    let due = count as f64 / self.telemetry.topics() as f64;
                    let due = Duration::from_secs_f64(due);
                    thread::sleep(due.saturating_sub(start.elapsed()));
                }
                let begin = start.elapsed();
                if begin >= time {
                    break 'rounds begin;
                }
                let (transaction, commit) = self.publish(rounds, some)?;
                transactions.keep(transaction);
                commit_times.keep(commit);
                let topics = some.len() as u64 * PARAMETERS;
                count += topics;
                commits.push(Commit { begin, topics });
            }
            progress.complete.store(rounds, Ordering::SeqCst);
        };
        let silent = self.store.silent_syncs() - silent;
        Ok(Written {
            sample: meter.finish(count, silent, transactions),
            commits,
            end,
            commit_times,
            rounds,
        })
    }

    /// Publishes the messages of some devices in one transaction. Returns the time of the transaction, and the time of
    /// its commit alone.
    fn publish(&self, round: u64, devices: &[u64]) -> Result<(Duration, Duration)> {
        let numbers = devices
            .iter()
            .flat_map(|device| device * PARAMETERS..(device + 1) * PARAMETERS);
        let payloads: Vec<(usize, Payload)> =
            numbers.map(|n| (n as usize, payload(round, n))).collect();
        let messages: Vec<Message<'_>> = payloads
            .iter()
            .map(|(n, payload)| Message::new(&self.topics[*n], payload))
            .collect();
        let begin = Instant::now();
        let commit = self.store.publish(&messages)?;
        Ok((begin.elapsed(), commit))
    }

    /// Checks all topics after the last commit.
    fn check(&self, written: &Written) -> Result<()> {
        let mut seen = vec![false; self.topics.len()];
        let rounds = written.rounds - 1..=written.rounds;
        self.store.read(&mut |view| {
            let mut wrong = None;
            view.find("#", &mut |topic, payload| match parsed(payload) {
                Ok((round, n))
                    if rounds.contains(&round)
                        && self
                            .topics
                            .get(n as usize)
                            .is_some_and(|name| name == topic)
                        && !std::mem::replace(&mut seen[n as usize], true) => {}
                parsed => wrong = Some(format!("{topic} has {parsed:?}, expected {rounds:?}")),
            })?;
            match wrong {
                Some(wrong) => Err(wrong.into()),
                None if seen.contains(&false) => Err("a topic is missing".into()),
                None => Ok(()),
            }
        })
    }
}

/// Topics per second of the commits that begin in the first or last tenth of the time until `end`. A commit counts as
/// lasting until the next one begins, so that pauses are included.
fn rate(commits: &[Commit], end: Duration, is_last: bool) -> f64 {
    let tenth = end / 10;
    let (from, to) = match is_last {
        false => (0, commits.partition_point(|commit| commit.begin < tenth)),
        // A commit that takes longer than the last tenth is included as a whole.
        true => (
            commits
                .partition_point(|commit| commit.begin < end - tenth)
                .min(commits.len().saturating_sub(1)),
            commits.len(),
        ),
    };
    let begin_of = |n: usize| commits.get(n).map_or(end, |commit| commit.begin);
    let topics: u64 = commits[from..to].iter().map(|commit| commit.topics).sum();
    topics as f64 / (begin_of(to) - begin_of(from)).as_secs_f64()
}

/// Adds the samples of a store.
struct Cases<'c> {
    part: &'c str,
    kind: Kind,
    contest: &'c mut Contest,
}

impl Cases<'_> {
    fn tell(mut self, written: Written, reads: Reads, file_bytes: f64) {
        let topics: u64 = written.commits.iter().map(|commit| commit.topics).sum();
        let handed = written.sample.written.handed as f64 / topics.max(1) as f64;
        let [first, last] =
            [false, true].map(|is_last| rate(&written.commits, written.end, is_last));
        self.add("rate", "topics/s", false, written.sample);
        self.add("first", "topics/s", false, Sample::of(first));
        self.add("last", "topics/s", false, Sample::of(last));
        self.times("commit", written.commit_times);
        self.add("written", "bytes/topic", true, Sample::of(handed));
        self.add("bytes", "bytes/topic", true, Sample::of(file_bytes));
        self.times("read", reads.all);
        for (case, times) in reads.kinds {
            self.times(&format!("read-{case}"), times);
        }
    }

    /// Adds the p99 of the times, together with the other quantiles.
    fn times(&mut self, case: &str, times: Latencies) {
        let latency = times.spread();
        let sample = Sample {
            latency,
            ..Sample::of(latency.p99 / 1e3)
        };
        self.add(case, "ms", true, sample);
    }

    fn add(&mut self, case: &str, unit: &'static str, less_is_better: bool, sample: Sample) {
        let case = format!("{}-{case}", self.part);
        self.contest
            .add(&case, unit, less_is_better, self.kind, sample);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_the_first_and_last_tenth() {
        let commits: Vec<Commit> = (0..100)
            .map(|i| Commit {
                begin: Duration::from_millis(i * 100),
                topics: if i < 50 { 20 } else { 10 },
            })
            .collect();
        let of = |commits, seconds, is_last| {
            rate(commits, Duration::from_secs(seconds), is_last).round()
        };
        assert_eq!(of(&commits, 10, false), 200.0);
        assert_eq!(of(&commits, 10, true), 100.0);
        // The last of two commits takes 9.9 seconds.
        assert_eq!(of(&commits[..2], 10, false), 4.0);
        assert_eq!(of(&commits[..2], 10, true), 2.0);
    }
}
