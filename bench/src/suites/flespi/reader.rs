//! The thread that reads with wildcards while topics are overwritten.
//!
//! | case | filter | matches |
//! |---|---|---|
//! | `device` | `dev/<random device>/telemetry/+` | the parameters of a device |
//! | `parameter` | `dev/+/telemetry/<random parameter>` | the parameter of all devices |
//! | `speed` | `+/+/telemetry/speed` | the same, with leading wildcards |
//! | `tree` | `dev/1/#` | the topics of a device |
//!
//! Reads begin 20 times a second, with the kinds of reads in turn. The measured time includes taking the snapshot, the
//! search, and a copy of each topic and payload, as a client would need. After each read the matches are checked, which
//! is not measured: their number is correct, no topic occurs twice, every message belongs to its topic and matches the
//! filter, its round is complete or being written, and all messages of a device are of one round, because they were
//! committed together.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ::tidalite::topics::Filter;

use super::face::Store;
use super::names::{PARAMETERS, Telemetry, parsed};
use crate::engine::Result;
use crate::engine::data::Random;
use crate::meter::Latencies;

/// Time from the start of one read to the start of the next.
const EVERY: Duration = Duration::from_millis(50);

const KINDS: [&str; 4] = ["device", "parameter", "speed", "tree"];

/// Progress of the writer, with which the reader compares its matches.
#[derive(Default)]
pub(super) struct Progress {
    /// The last round whose messages are all committed.
    pub(super) complete: AtomicU64,
    /// The round that is being written.
    pub(super) current: AtomicU64,
    pub(super) has_ended: AtomicBool,
}

/// The times of the reads.
#[derive(Default)]
pub(super) struct Reads {
    pub(super) all: Latencies,
    pub(super) kinds: Vec<(&'static str, Latencies)>,
}

/// Copies of the matches of a read.
#[derive(Default)]
struct Found {
    topics: String,
    payloads: Vec<u8>,
    /// Ends of each topic and each payload.
    ends: Vec<(usize, usize)>,
}

/// Reads until the writer has finished, at least once with each filter.
pub(super) fn read_until_end(
    telemetry: Telemetry,
    names: &[String],
    store: &dyn Store,
    progress: &Progress,
) -> Result<Reads> {
    let mut reads = Reads {
        kinds: KINDS.map(|kind| (kind, Latencies::default())).into(),
        ..Reads::default()
    };
    let (mut random, mut found) = (Random::new(12), Found::default());
    for n in 0.. {
        if n >= KINDS.len() && progress.has_ended.load(Ordering::SeqCst) {
            break;
        }
        let begin = Instant::now();
        let kind = n % KINDS.len();
        let (filter, matches, is_of_device) = match kind {
            0 => {
                let device = random.below(telemetry.devices);
                (format!("dev/{device}/telemetry/+"), PARAMETERS, true)
            }
            1 => {
                let parameter = Telemetry::parameter(random.below(PARAMETERS));
                (
                    format!("dev/+/telemetry/{parameter}"),
                    telemetry.devices,
                    false,
                )
            }
            2 => ("+/+/telemetry/speed".to_owned(), telemetry.devices, false),
            _ => ("dev/1/#".to_owned(), PARAMETERS, true),
        };
        let complete = progress.complete.load(Ordering::SeqCst);
        found.read(store, &filter)?;
        let elapsed = begin.elapsed();
        let rounds = complete..=progress.current.load(Ordering::SeqCst);
        reads.all.keep(elapsed);
        reads.kinds[kind].1.keep(elapsed);
        let problem = found.problem(&Filter::parse(&filter)?, names, rounds, is_of_device)?;
        if let Some(problem) = problem {
            return Err(format!("{filter}: {problem}").into());
        }
        if found.ends.len() as u64 != matches {
            return Err(format!("{filter}: {} matches of {matches}", found.ends.len()).into());
        }
        thread::sleep(EVERY.saturating_sub(begin.elapsed()));
    }
    Ok(reads)
}

impl Found {
    fn read(&mut self, store: &dyn Store, filter: &str) -> Result<()> {
        self.topics.clear();
        self.payloads.clear();
        self.ends.clear();
        store.read(&mut |view| {
            view.find(filter, &mut |topic, payload| {
                self.topics.push_str(topic);
                self.payloads.extend_from_slice(payload);
                self.ends.push((self.topics.len(), self.payloads.len()));
            })?;
            Ok(())
        })
    }

    /// The first problem that is found in the matches.
    fn problem(
        &self,
        filter: &Filter,
        names: &[String],
        rounds: std::ops::RangeInclusive<u64>,
        is_of_device: bool,
    ) -> Result<Option<String>> {
        let (mut from, mut seen, mut one_round) = ((0, 0), Vec::new(), None);
        for end in &self.ends {
            let topic = &self.topics[from.0..end.0];
            let (round, n) = parsed(&self.payloads[from.1..end.1])?;
            from = *end;
            seen.push(n);
            let name = usize::try_from(n).ok().and_then(|n| names.get(n));
            if name.is_none_or(|name| name != topic) {
                return Ok(Some(format!("{topic} has the message of topic {n}")));
            }
            if !filter.matches(topic) {
                return Ok(Some(format!("{topic} does not match")));
            }
            if !rounds.contains(&round) {
                return Ok(Some(format!(
                    "{topic} is of round {round}, not of {rounds:?}"
                )));
            }
            if is_of_device && *one_round.get_or_insert(round) != round {
                return Ok(Some(format!("{topic} is of another round than its device")));
            }
        }
        seen.sort_unstable();
        let is_twice = seen.windows(2).any(|pair| pair[0] == pair[1]);
        Ok(is_twice.then(|| "a topic comes twice".to_owned()))
    }
}
