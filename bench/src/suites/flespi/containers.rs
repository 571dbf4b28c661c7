//! The part `containers`: messages of 20 fields, stored as JSON documents by device and time, compared with a table in
//! SQLite.
//!
//! | case | |
//! |---|---|
//! | `...-write` | messages/s in durable commits of 10,000, of documents that were prepared before |
//! | `...-write-json` | the same of JSON texts, which are parsed within the time |
//! | `...-bytes` | file bytes per message, after closing |
//! | `...-blocks` | messages/s: all messages of an interval of a device, at most 10,000, each decoded to a document |
//! | `...-fields` | the same with three fields of each message |
//! | `...-filter` | messages examined/s with the filter [`feed::FILTER`], which one in eight matches |
//! | `...-random` | messages/s: 10 messages each of 10,000 random devices, or of random times of the one device |
//! | `...-latest` | devices/s: latest values of 10,000 random devices |
//! | `...-hours` | messages/s: count, sum and maximum of a number for each hour of a device, from its series; SQLite from the column |
//! | `...-hours-documents` | the same from the documents |
//!
//! `containers-...`: 10,000 devices that each send a message once a minute, in turn, so that a commit has one message
//! of each device. `containers-ten-...`: the same devices, each of which collects ten messages and sends them together.
//! `containers-one-...`: one device that sends every second. All reads are measured first cold, including opening the
//! store, and then hot, in the same snapshot (with and without the suffix `-cold`).
//!
//! SQLite ([`sqlite`]) does not store latest values; the last message is read instead. For `...-blocks` and
//! `...-random`, `sqlite` returns messages as texts; `sqlite-parsed` also parses each text to the same document as
//! ours. Latest and filtered messages are always parsed. The generation of the messages is not measured: the write rate
//! includes only the time in commits. Every answer is compared with the answer expected from the written messages:
//! counts, and sums of times and numbers.

mod answer;
mod face;
mod feed;
mod ours;
mod sqlite;
mod stores;

use std::path::Path;
use std::time::{Duration, Instant};

use answer::{Answer, Form, Reading, Source};
use face::Reader;
use feed::{Feed, Known, Plan, Telemetry};

use crate::args::Options;
use crate::contest::{Contest, takes_part};
use crate::engine::data::Random;
use crate::engine::{Kind, Result, TIDALITE};
use crate::meter::{Latencies, Meter, Sample};
use crate::os;

/// Number of messages in a transaction.
const BATCH: usize = 10_000;
/// Maximum number of messages of a read in `...-blocks`.
const BLOCK: u64 = 10_000;
/// Number of messages of a random read.
const FEW: u64 = 10;
/// Maximum number of random reads.
const READINGS_MAX: u64 = 10_000;
/// Maximum bytes of a message in a file.
const MESSAGE_BYTES: u64 = 1000;

/// SQLite with a table of messages.
const SQLITE: Kind = Kind {
    name: "sqlite",
    ours: false,
    open: |_, _| Err("a store of messages".into()),
};

/// The same, but the caller parses the texts.
const SQLITE_PARSED: Kind = Kind {
    name: "sqlite-parsed",
    ..SQLITE
};

/// A store of one kind in a directory, with the messages of a plan.
struct Stored<'s> {
    kind: Kind,
    dir: &'s Path,
    plan: Plan,
    prefix: &'static str,
}

/// Runs the part.
pub(super) fn run(options: &Options, round: usize, contest: &mut Contest) -> Result<()> {
    let mut kinds = vec![TIDALITE];
    if takes_part(SQLITE.name, &options.peers)? {
        kinds.push(SQLITE);
    }
    let count = kinds.len();
    kinds.rotate_left(round % count);
    for (prefix, plan) in [
        ("containers", Plan::many(options.documents)),
        ("containers-ten", Plan::collected(options.documents)),
        ("containers-one", Plan::single(options.documents)),
    ] {
        for kind in &kinds {
            for form in [Form::Text, Form::Prepared] {
                one(*kind, prefix, plan, form, options, contest)
                    .map_err(|error| format!("{prefix}: {}: {error}", kind.name))?;
            }
        }
    }
    Ok(())
}

/// Writes all messages in one form, and then reads them if the form is `Prepared`.
fn one(
    kind: Kind,
    prefix: &'static str,
    plan: Plan,
    form: Form,
    options: &Options,
    contest: &mut Contest,
) -> Result<()> {
    let dir = os::TempDir::within(&options.dir, kind.name)?;
    let stored = Stored {
        kind,
        dir: dir.path(),
        plan,
        prefix,
    };
    os::expect_disk(stored.dir, stored.data_bytes() * 2 + (64 << 20))
        .map_err(|short| format!("{short}: use --documents"))?;
    os::settle(stored.dir)?;
    os::touch_memory(stored.data_bytes(), stored.data_bytes() / 2);
    let (sample, known) = stored.write(form)?;
    if form == Form::Text {
        stored.add(contest, "write-json", kind, sample);
        // All messages are read once, to check the parsed documents as well.
        return stored.with_reader(&mut |reader| {
            let answer = stored.blocks(reader, Reading::Documents, &mut Latencies::default())?;
            expect("blocks", answer, known.documents)
        });
    }
    stored.add(contest, "write", kind, sample);
    let bytes = os::disk_used(stored.dir)? as f64 / plan.messages() as f64;
    let case = format!("{prefix}-bytes");
    contest.add(&case, "bytes/message", true, kind, Sample::of(bytes));
    stored.read_blocks(&known, contest)?;
    stored.read_at_random(&known, contest)?;
    stored.read_hours(&known, contest)
}

/// Returns an error if an answer differs from the expected one.
fn expect<T: PartialEq + std::fmt::Debug>(case: &str, found: T, right: T) -> Result<()> {
    match found == right {
        true => Ok(()),
        false => {
            Err(format!("{case}: the answer is {found:?}, the messages have {right:?}").into())
        }
    }
}

impl Stored<'_> {
    fn data_bytes(&self) -> u64 {
        self.plan.messages() * MESSAGE_BYTES
    }

    fn add(&self, contest: &mut Contest, case: &str, kind: Kind, sample: Sample) {
        let case = format!("{}-{case}", self.prefix);
        contest.add(&case, "messages/s", false, kind, sample);
    }

    fn with_reader(&self, work: &mut dyn FnMut(&dyn Reader) -> Result<()>) -> Result<()> {
        let devices = self.plan.devices;
        stores::with_reader(self.kind, self.dir, devices, self.data_bytes(), work)
    }

    /// The reads in which the store takes part, each with the kind under which its results are reported.
    fn readings(&self) -> &'static [(Reading, Kind)] {
        match self.kind.ours {
            true => &[(Reading::Documents, TIDALITE)],
            false => &[
                (Reading::Texts, SQLITE),
                (Reading::Documents, SQLITE_PARSED),
            ],
        }
    }

    fn write(&self, form: Form) -> Result<(Sample, Known)> {
        let data_bytes = self.data_bytes();
        let mut store = stores::create(self.kind, self.dir, self.plan.devices, data_bytes)?;
        let mut feed = Feed::new(self.plan);
        let (mut latencies, mut time, mut cpu_seconds) =
            (Latencies::default(), Duration::ZERO, 0.0);
        let silent = store.silent_syncs();
        let meter = Meter::start(self.dir);
        loop {
            let messages: Vec<Telemetry> = feed.by_ref().take(BATCH).collect();
            if messages.is_empty() {
                break;
            }
            if form == Form::Prepared {
                store.prepare(&messages)?;
            }
            let (cpu, begin) = (os::cpu_seconds(), Instant::now());
            store.append(&messages, form)?;
            let spent = begin.elapsed();
            latencies.keep(spent);
            time += spent;
            cpu_seconds += os::cpu_seconds() - cpu;
        }
        let silent = store.silent_syncs() - silent;
        let messages = self.plan.messages();
        let sample = Sample {
            value: messages as f64 / time.as_secs_f64(),
            cpu_seconds,
            ..meter.finish(messages, silent, latencies)
        };
        Ok((sample, feed.known()))
    }

    /// Measures `work` with a cold store, and again with the store hot. `work` returns the number of its operations.
    fn cold_and_hot(
        &self,
        work: &mut dyn FnMut(&dyn Reader, &mut Latencies) -> Result<u64>,
    ) -> Result<[Sample; 2]> {
        os::make_cold(self.dir)?;
        let mut samples = [Sample::default(); 2];
        let mut cold = Some(Meter::start(self.dir));
        self.with_reader(&mut |reader| {
            for sample in &mut samples {
                let meter = cold.take().unwrap_or_else(|| Meter::start(self.dir));
                let mut latencies = Latencies::default();
                let operations = work(reader, &mut latencies)?;
                *sample = meter.finish(operations, 0, latencies);
            }
            Ok(())
        })?;
        Ok(samples)
    }

    fn add_both(
        &self,
        contest: &mut Contest,
        (case, unit): (&str, &'static str),
        kind: Kind,
        [cold, hot]: [Sample; 2],
    ) {
        let case = format!("{}-{case}", self.prefix);
        contest.add(&format!("{case}-cold"), unit, false, kind, cold);
        contest.add(&case, unit, false, kind, hot);
    }

    /// Reads all messages, one device after the other.
    fn blocks(
        &self,
        reader: &dyn Reader,
        reading: Reading,
        latencies: &mut Latencies,
    ) -> Result<Answer> {
        let mut answer = Answer::default();
        for device in 0..self.plan.devices {
            for from in (0..self.plan.each).step_by(BLOCK as usize) {
                let nth = from..(from + BLOCK).min(self.plan.each);
                let span = self.plan.span(device, &nth);
                answer.join(latencies.time(|| reader.read(span, reading))?);
            }
        }
        Ok(answer)
    }

    fn read_blocks(&self, known: &Known, contest: &mut Contest) -> Result<()> {
        let whole = self
            .readings()
            .iter()
            .map(|(reading, kind)| ("blocks", *reading, *kind, known.documents));
        let others = [
            ("fields", Reading::Projected, self.kind, known.projected),
            ("filter", Reading::Filtered, self.kind, known.filtered),
        ];
        for (case, reading, kind, right) in whole.chain(others) {
            let samples = self.cold_and_hot(&mut |reader, latencies| {
                expect(case, self.blocks(reader, reading, latencies)?, right)?;
                Ok(self.plan.messages())
            })?;
            self.add_both(contest, (case, "messages/s"), kind, samples);
        }
        Ok(())
    }

    /// Devices in a random order, each with the same frequency, and the first message to be read for each.
    fn places(&self) -> Vec<(u64, u64)> {
        let mut random = Random::new(67);
        let mut devices: Vec<u64> = (0..self.plan.devices).collect();
        for i in (1..devices.len()).rev() {
            devices.swap(i, random.below(i as u64 + 1) as usize);
        }
        let count = (self.plan.messages() / FEW).min(READINGS_MAX) as usize;
        let places = devices.into_iter().cycle().take(count);
        places
            .map(|device| (device, random.below(self.plan.each - FEW + 1)))
            .collect()
    }

    fn read_at_random(&self, known: &Known, contest: &mut Contest) -> Result<()> {
        let places = self.places();
        let mut right = Answer::default();
        for (device, first) in &places {
            right.join(known.of(*device, *first..first + FEW));
        }
        for (reading, kind) in self.readings() {
            let samples = self.cold_and_hot(&mut |reader, latencies| {
                let mut answer = Answer::default();
                for (device, first) in &places {
                    let span = self.plan.span(*device, &(*first..first + FEW));
                    answer.join(latencies.time(|| reader.read(span, *reading))?);
                }
                expect("random", answer, right)?;
                Ok(answer.found)
            })?;
            self.add_both(contest, ("random", "messages/s"), *kind, samples);
        }
        if self.plan.devices == 1 {
            return Ok(());
        }
        let mut right = Answer::default();
        for (device, _) in &places {
            right.join(known.of(*device, self.plan.each - 1..self.plan.each));
        }
        let samples = self.cold_and_hot(&mut |reader, latencies| {
            let mut answer = Answer::default();
            for (device, _) in &places {
                answer.join(latencies.time(|| reader.latest(*device as usize))?);
            }
            expect("latest", answer, right)?;
            Ok(answer.found)
        })?;
        self.add_both(contest, ("latest", "devices/s"), self.kind, samples);
        Ok(())
    }

    fn read_hours(&self, known: &Known, contest: &mut Contest) -> Result<()> {
        let right: Vec<_> = (0..self.plan.devices)
            .map(|device| known.hours(device))
            .collect();
        for (case, source) in [
            ("hours", Source::Series),
            ("hours-documents", Source::Documents),
        ] {
            let samples = self.cold_and_hot(&mut |reader, latencies| {
                for (device, right) in (0..).zip(&right) {
                    let span = self.plan.span(device, &(0..self.plan.each));
                    let hours = latencies.time(|| reader.hours(span, source))?;
                    expect(case, &hours, right)?;
                }
                Ok(self.plan.messages())
            })?;
            self.add_both(contest, (case, "messages/s"), self.kind, samples);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::tidalite::containers::{Document, Expression};

    #[test]
    fn collected_messages_are_those_of_the_same_devices() {
        let plan = Plan::collected(3000);
        assert_eq!((plan.devices, plan.each, plan.together), (150, 20, 10));
        let mut feed = Feed::new(plan);
        let devices: Vec<usize> = feed.by_ref().map(|message| message.device).collect();
        assert!(
            devices[..1500]
                .chunks(10)
                .zip(0..)
                .all(|(ten, device)| ten == [device; 10])
        );
        assert!(devices[..1500] == devices[1500..]);
        let known = feed.known();
        let mut all = answer::Answer::default();
        for device in 0..plan.devices {
            all.join(known.of(device, 0..plan.each));
        }
        assert_eq!(all, known.documents);
    }

    #[test]
    fn messages_have_twenty_fields_and_about_300_bytes() {
        let plan = Plan::many(3000);
        assert_eq!((plan.devices, plan.each), (150, 20));
        let mut feed = Feed::new(plan);
        let (mut bytes, mut found) = (0, 0);
        let filter = Expression::parse(feed::FILTER).unwrap();
        for message in feed.by_ref() {
            bytes += message.text.len();
            let document = Document::from_json(&message.text).unwrap();
            assert_eq!(document.len(), 20, "{}", message.text);
            assert_eq!(document.numbers().count(), 18);
            assert_eq!(document.get("speed").unwrap(), &message.speed.into());
            found += u64::from(filter.matches(&document).unwrap());
        }
        let each = bytes as u64 / plan.messages();
        assert!((290..=330).contains(&each), "{each} bytes");
        let known = feed.known();
        assert_eq!(known.filtered.found, found);
        assert_eq!(known.documents.found, 3000);
        let hours = known.hours(7);
        assert_eq!(hours.iter().map(|hour| hour.count).sum::<u64>(), 20);
    }
}
