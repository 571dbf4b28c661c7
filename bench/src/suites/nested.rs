//! `nested`: many small nested tables, and topics that are found level by level. The peer is LMDB, which has no nested
//! tables. In LMDB a path becomes one flat key, with its levels joined by `/`, and a wildcard level is processed by
//! seeking from one name to the next.
//!
//! | case | |
//! |---|---|
//! | `tables-write` | nested tables/s, three entries of 8 bytes each, durable transactions of 10,000 |
//! | `tables-bytes` | file bytes for each table |
//! | `tables-open` | tables/s, opened in random order, one entry read from each |
//! | `tables-put` | entries changed per second, in random tables, durable transactions of 10,000 |
//! | `topics-write` | topics/s: `site/room/device/metric`, ten of a random device, durable, 1,000 devices each |
//! | `topics-bytes` | file bytes for each topic |
//! | `topics-get` | single topics found per second |
//! | `topics-plus` | lookups/s of `site/room/+/metric`, each of which finds one metric of all devices of a room |
//!
//! The number of tables is a fifth of the number of pairs; the number of topics equals the number of pairs. Every
//! answer is compared.

use std::path::Path;

use ::tidalite::{Database, ReadTxn, Table};

use crate::args::Options;
use crate::contest::Contest;
use crate::engine::data::Random;
use crate::engine::{Kind, LMDB, Result, TIDALITE, touch};
use crate::lmdb_engine::lmdb::{Env, Txn};
use crate::meter::{Latencies, Meter, Sample};
use crate::os;

const FIELDS: [&str; 3] = ["lat", "lon", "speed"];
const METRICS: [&str; 10] = [
    "battery", "co2", "door", "humidity", "level", "light", "noise", "power", "rssi", "temp",
];
/// Number of nested tables in a transaction.
const EACH: u64 = 10_000;
/// Number of devices in a transaction.
const DEVICES_EACH: u64 = 1000;
/// Number of queries of each kind.
const QUESTIONS: u64 = 100_000;

/// A database whose entries lie in tables at paths of names.
trait Paths {
    /// Runs a write transaction and commits it durably.
    fn write(&self, work: &mut dyn FnMut(&mut dyn Put) -> Result<()>) -> Result<()>;
    /// Runs work that reads from one snapshot.
    fn read(&self, work: &mut dyn FnMut(&dyn Get) -> Result<()>) -> Result<()>;
}

trait Put {
    /// Stores entries in the table at a path.
    fn put(&mut self, path: &[&str], entries: &mut dyn Iterator<Item = (&str, u64)>) -> Result<()>;
}

trait Get {
    /// The value of an entry in the table at a path; `None` if it does not exist.
    fn get(&self, path: &[&str], name: &str) -> Result<Option<u64>>;
    /// Looks up an entry in all tables one level below the path; returns the number of entries found, and the sum of
    /// their values.
    fn get_plus(&self, path: &[&str], name: &str) -> Result<(u64, u64)>;
}

/// Tidalite, which stores the paths as nested tables.
struct Nested(Database);

impl Paths for Nested {
    fn write(&self, work: &mut dyn FnMut(&mut dyn Put) -> Result<()>) -> Result<()> {
        let mut txn = self.0.begin_write()?;
        work(&mut txn)?;
        txn.commit()?;
        Ok(())
    }

    fn read(&self, work: &mut dyn FnMut(&dyn Get) -> Result<()>) -> Result<()> {
        let snapshot: ReadTxn = self.0.begin_read()?;
        match snapshot.table("paths")? {
            Some(table) => work(&table),
            None => Err("there is no table".into()),
        }
    }
}

impl Put for ::tidalite::WriteTxn {
    fn put(&mut self, path: &[&str], entries: &mut dyn Iterator<Item = (&str, u64)>) -> Result<()> {
        let mut outermost = self.table("paths")?;
        let entries = entries.map(|(name, value)| (name, value.to_le_bytes()));
        outermost.nested_at(path).extend(entries)?;
        Ok(())
    }
}

impl Get for Table<'_> {
    fn get(&self, path: &[&str], name: &str) -> Result<Option<u64>> {
        let Some(table) = self.nested_at(path)? else {
            return Ok(None);
        };
        Ok(table.get_ref(name.as_bytes())?.map(|value| touch(&value)))
    }

    fn get_plus(&self, path: &[&str], name: &str) -> Result<(u64, u64)> {
        let (mut found, mut sum) = (0, 0u64);
        let Some(level) = self.nested_at(path)? else {
            return Ok((0, 0));
        };
        let mut cursor = level.cursor();
        let mut more = cursor.first()?;
        while more {
            if let Some(table) = cursor.nested()?
                && let Some(value) = table.get_ref(name.as_bytes())?
            {
                (found, sum) = (found + 1, sum.wrapping_add(touch(&value)));
            }
            more = cursor.next()?;
        }
        Ok((found, sum))
    }
}

/// LMDB, which stores each path as one flat key.
struct Flat(Env);

impl Paths for Flat {
    fn write(&self, work: &mut dyn FnMut(&mut dyn Put) -> Result<()>) -> Result<()> {
        let mut txn = self.0.begin(true)?;
        work(&mut txn)?;
        Ok(txn.commit()?)
    }

    fn read(&self, work: &mut dyn FnMut(&dyn Get) -> Result<()>) -> Result<()> {
        work(&self.0.begin(false)?)
    }
}

fn joined(path: &[&str]) -> String {
    let mut key = String::with_capacity(40);
    for name in path {
        key.push_str(name);
        key.push('/');
    }
    key
}

impl Put for Txn<'_> {
    fn put(&mut self, path: &[&str], entries: &mut dyn Iterator<Item = (&str, u64)>) -> Result<()> {
        let mut key = joined(path);
        let len = key.len();
        for (name, value) in entries {
            key.truncate(len);
            key.push_str(name);
            Txn::put(self, key.as_bytes(), &value.to_le_bytes())?;
        }
        Ok(())
    }
}

impl Get for Txn<'_> {
    fn get(&self, path: &[&str], name: &str) -> Result<Option<u64>> {
        let key = joined(path) + name;
        Ok(Txn::get(self, key.as_bytes())?.map(touch))
    }

    fn get_plus(&self, path: &[&str], name: &str) -> Result<(u64, u64)> {
        let (mut found, mut sum) = (0, 0u64);
        let prefix = joined(path).into_bytes();
        let mut cursor = self.cursor()?;
        let mut wanted = prefix.clone();
        while let Some((key, _)) = cursor.seek(&wanted)? {
            let Some(rest) = key.strip_prefix(prefix.as_slice()) else {
                break;
            };
            let end = rest.iter().position(|byte| *byte == b'/');
            let end = prefix.len() + end.ok_or("a path is too short")?;
            wanted.clear();
            wanted.extend_from_slice(&key[..=end]);
            wanted.extend_from_slice(name.as_bytes());
            if let Some((key, value)) = cursor.seek(&wanted)?
                && key == wanted
            {
                (found, sum) = (found + 1, sum.wrapping_add(touch(value)));
            }
            // Skips all keys below this name: seeks the key after the name's slash.
            wanted.truncate(end);
            wanted.push(b'/' + 1);
        }
        Ok((found, sum))
    }
}

fn open(kind: Kind, dir: &Path, bytes: u64) -> Result<Box<dyn Paths>> {
    Ok(if kind.ours {
        Box::new(Nested(Database::open(dir.join("bench.tdl"))?))
    } else {
        let map_bytes = bytes * 8 + (1 << 30);
        Box::new(Flat(Env::open_with(dir, map_bytes as usize, 0)?))
    })
}

/// Runs the suite `nested`.
pub(crate) fn run(options: &Options) -> Result<Contest> {
    let mut contest = Contest::beside("nested", TIDALITE, LMDB, &options.peers)?;
    for round in 0..options.rounds {
        for kind in contest.order(round) {
            tables(kind, options, &mut contest)?;
        }
        for kind in contest.order(round) {
            topics(kind, options, &mut contest)?;
        }
    }
    Ok(contest)
}

/// A participant of the contest, with its database.
struct Peer {
    kind: Kind,
    dir: os::TempDir,
    paths: Box<dyn Paths>,
}

impl Peer {
    fn prepared(kind: Kind, options: &Options, bytes: u64) -> Result<Self> {
        let dir = os::TempDir::within(&options.dir, kind.name)?;
        os::settle(dir.path())?;
        os::touch_memory((bytes * 4).min(8 << 30), 1 << 30);
        let paths = open(kind, dir.path(), bytes)?;
        Ok(Self { kind, dir, paths })
    }

    /// Runs this many queries of a case in one snapshot; the sum of the answers must be the same for all participants.
    fn ask(
        &self,
        (case, unit): (&'static str, &'static str),
        questions: u64,
        contest: &mut Contest,
        question: &mut dyn FnMut(&dyn Get) -> Result<u64>,
    ) -> Result<()> {
        let mut sum = 0u64;
        let meter = Meter::start(self.dir.path());
        self.paths.read(&mut |snapshot| {
            for _ in 0..questions {
                sum = sum.wrapping_add(question(snapshot)?);
            }
            Ok(())
        })?;
        let sample = meter.finish(questions, 0, Latencies::default());
        contest.add(case, unit, false, self.kind, sample);
        contest.check(case, 0, self.kind, sum)
    }
}

fn tables(kind: Kind, options: &Options, contest: &mut Contest) -> Result<()> {
    let count = (options.pairs / 5).max(1);
    let peer = Peer::prepared(kind, options, count * 100)?;
    let (dir, paths) = (&peer.dir, &peer.paths);
    let silent = u64::from(!kind.ours);
    let name = |n: u64| format!("unit-{n:07}");

    let (mut latencies, meter) = (Latencies::default(), Meter::start(dir.path()));
    for from in (0..count).step_by(EACH as usize) {
        latencies.time(|| {
            paths.write(&mut |txn| {
                (from..(from + EACH).min(count)).try_for_each(|n| {
                    let fields = FIELDS.iter().zip(n..);
                    txn.put(
                        &[&name(n)],
                        &mut fields.map(|(field, value)| (*field, value)),
                    )
                })
            })
        })?;
    }
    let sample = meter.finish(count, silent * count.div_ceil(EACH), latencies);
    contest.add("tables-write", "tables/s", false, kind, sample);
    let bytes = Sample::of(os::disk_used(dir.path())? as f64 / count as f64);
    contest.add("tables-bytes", "bytes/table", true, kind, bytes);

    let mut random = Random::new(5);
    let case = ("tables-open", "tables/s");
    peer.ask(case, QUESTIONS, contest, &mut |snapshot| {
        let n = random.below(count);
        let value = snapshot.get(&[&name(n)], FIELDS[n as usize % 3])?;
        Ok(value.ok_or("a table is missing")?)
    })?;

    let (mut latencies, mut random) = (Latencies::default(), Random::new(6));
    let puts = count.min(QUESTIONS);
    let meter = Meter::start(dir.path());
    for from in (0..puts).step_by(EACH as usize) {
        latencies.time(|| {
            paths.write(&mut |txn| {
                (from..(from + EACH).min(puts)).try_for_each(|value| {
                    let n = random.below(count);
                    let entry = (FIELDS[n as usize % 3], value);
                    txn.put(&[&name(n)], &mut std::iter::once(entry))
                })
            })
        })?;
    }
    let sample = meter.finish(puts, silent * puts.div_ceil(EACH), latencies);
    contest.add("tables-put", "entries/s", false, kind, sample);
    Ok(())
}

/// Number of names on each level of the topics.
struct Levels {
    sites: u64,
    rooms: u64,
    devices: u64,
}

impl Levels {
    fn of(topics: u64) -> Self {
        let metrics = METRICS.len() as u64;
        let each = if topics < 100 * 100 * metrics {
            10
        } else {
            100
        };
        Self {
            sites: (topics / (each * each * metrics)).max(1),
            rooms: each,
            devices: each,
        }
    }

    fn all_devices(&self) -> u64 {
        self.sites * self.rooms * self.devices
    }

    /// The names on the levels above the metrics for device number `n`.
    fn names(&self, n: u64) -> [String; 3] {
        let (room, device) = (n / self.devices, n % self.devices);
        [
            format!("site-{:04}", room / self.rooms),
            format!("room-{:03}", room % self.rooms),
            format!("{:08x}", device * 0x0101_0101),
        ]
    }
}

fn topics(kind: Kind, options: &Options, contest: &mut Contest) -> Result<()> {
    let levels = Levels::of(options.pairs / 5);
    let (devices, metrics) = (levels.all_devices(), METRICS.len() as u64);
    let peer = Peer::prepared(kind, options, devices * metrics * 50)?;
    let (dir, paths) = (&peer.dir, &peer.paths);
    let silent = u64::from(!kind.ours);

    let (mut latencies, meter) = (Latencies::default(), Meter::start(dir.path()));
    for from in (0..devices).step_by(DEVICES_EACH as usize) {
        latencies.time(|| {
            paths.write(&mut |txn| {
                (from..(from + DEVICES_EACH).min(devices)).try_for_each(|n| {
                    // With steps of a prime length, each device is visited once.
                    let n = n * 7919 % devices;
                    let [site, room, device] = levels.names(n);
                    let values = METRICS.iter().zip(n..);
                    let mut values = values.map(|(metric, value)| (*metric, value));
                    txn.put(&[&site, &room, &device], &mut values)
                })
            })
        })?;
    }
    let commits = devices.div_ceil(DEVICES_EACH);
    let sample = meter.finish(devices * metrics, silent * commits, latencies);
    contest.add("topics-write", "topics/s", false, kind, sample);
    let bytes = os::disk_used(dir.path())? as f64 / (devices * metrics) as f64;
    contest.add("topics-bytes", "bytes/topic", true, kind, Sample::of(bytes));

    let mut random = Random::new(7);
    let case = ("topics-get", "topics/s");
    peer.ask(case, QUESTIONS, contest, &mut |snapshot| {
        let [site, room, device] = levels.names(random.below(devices));
        let metric = METRICS[random.below(metrics) as usize];
        let value = snapshot.get(&[&site, &room, &device], metric)?;
        Ok(value.ok_or("a topic is missing")?)
    })?;

    let case = ("topics-plus", "lookups/s");
    let questions = QUESTIONS / levels.devices;
    peer.ask(case, questions, contest, &mut |snapshot| {
        let [site, room, _] = levels.names(random.below(devices));
        let metric = METRICS[random.below(metrics) as usize];
        let (found, values) = snapshot.get_plus(&[&site, &room], metric)?;
        if found == levels.devices {
            Ok(values)
        } else {
            let expected = levels.devices;
            Err(format!("{found} devices in a room of {expected}").into())
        }
    })
}
