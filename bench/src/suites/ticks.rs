//! `ticks`: continuous arrival of data. Every series gets one point in every commit, and every commit is durable.
//!
//! | case | |
//! |---|---|
//! | `10000`, `100000`, `100` | points/s with this many series; with 100,000 a tenth of the commits |
//! | `N-commits` | the same in commits/s |
//! | `N-bytes` | bytes written per point, over all commits, compactions included |
//! | `N-pages` | pages of the largest commit relative to the median one (ours) |
//! | `10-ms` | one thread sends points to 10,000 series in turn, and commits every 10 ms: points/s |
//!
//! The series exist before the measurement, with one point each. The peer is a published time series engine on LMDB.
//! Each engine stops after a minute. The points of a series are a second apart, with up to a millisecond of jitter;
//! values change in steps of a hundredth.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::args::Options;
use crate::contest::Contest;
use crate::engine::data::{Key, Random};
use crate::engine::{Engine, Kind, LMDB_SERIES, Promise, Result, Setup, TIDALITE_SERIES, Write};
use crate::meter::{Latencies, Meter, Sample};
use crate::os;

/// For each case its name, the number of series, and the divisor of the number of commits.
const CASES: [(&str, u64, u64); 3] = [
    ("10000", 10_000, 1),
    ("100000", 100_000, 10),
    ("100", 100, 1),
];
/// Maximum duration of a measurement.
const LONGEST: Duration = Duration::from_secs(60);
/// Number of commits below which, as in a trial run, the number of series is reduced.
const COMMITS_FULL: u64 = 10_000;

/// Runs the suite `ticks`.
pub(crate) fn run(options: &Options) -> Result<Contest> {
    let mut contest = Contest::beside("ticks", TIDALITE_SERIES, LMDB_SERIES, &options.peers)?;
    for (case, series, fewer) in CASES {
        // In a trial run the creation of all series would take most of the time, so there are fewer series.
        let series = (series * options.commits / COMMITS_FULL).clamp(series.min(100), series);
        let commits = options.commits.div_ceil(fewer);
        for round in 0..options.rounds {
            for kind in contest.order(round) {
                if options.chosen(case) {
                    of_one(kind, (case, series, commits), options, &mut contest)?;
                }
            }
        }
    }
    for round in 0..options.rounds {
        for kind in contest.order(round) {
            if options.chosen("10-ms") {
                sender(kind, options, &mut contest)?;
            }
        }
    }
    Ok(contest)
}

fn open(kind: Kind, dir: &Path, points: u64) -> Result<Box<dyn Engine>> {
    os::settle(dir)?;
    os::touch_memory((points * 32).min(4 << 30), 2 << 30);
    (kind.open)(dir, &Setup::new(Promise::Synced, points * 32))
}

fn of_one(
    kind: Kind,
    (case, series, commits): (&str, u64, u64),
    options: &Options,
    contest: &mut Contest,
) -> Result<()> {
    let dir = os::TempDir::within(&options.dir, kind.name)?;
    let engine = open(kind, dir.path(), series * commits)?;
    let mut feed = Feed::new(series);
    engine.write(&mut |txn| feed.all(txn))?;
    let mut latencies = Latencies::default();
    let mut pages = Vec::new();
    let mut done = 0;
    let (start, meter) = (Instant::now(), Meter::of(&*engine, dir.path()));
    while done < commits && start.elapsed() < LONGEST {
        latencies.time(|| engine.write(&mut |txn| feed.all(txn)))?;
        pages.extend(engine.pages_of_last_commit());
        done += 1;
    }
    let points = done * series;
    let mut sample = meter.finish(points, engine.silent_syncs(done), latencies);
    drop(engine);
    sample.file_bytes = os::disk_used(dir.path())?;
    contest.add(case, "points/s", false, kind, sample);
    let named = |what: &str| format!("{case}-{what}");
    let rate = Sample::of(sample.value / series as f64);
    contest.add(&named("commits"), "commits/s", false, kind, rate);
    // The peer, the published time series engine on LMDB, writes through a memory map, so its written bytes are counted
    // at the disk.
    let bytes = match kind.ours {
        true => sample.written.handed,
        false => sample.written.disk,
    };
    let bytes = Sample::of(bytes as f64 / points as f64);
    contest.add(&named("bytes"), "bytes/point", true, kind, bytes);
    pages.sort_unstable();
    if let (Some(most), Some(middle)) = (pages.last(), pages.get(pages.len() / 2)) {
        let factor = Sample::of(*most as f64 / (*middle).max(1) as f64);
        contest.add(&named("pages"), "x median", true, kind, factor);
    }
    Ok(())
}

/// One thread sends single points at full speed, and commits every 10 milliseconds.
fn sender(kind: Kind, options: &Options, contest: &mut Contest) -> Result<()> {
    let dir = os::TempDir::within(&options.dir, kind.name)?;
    let commits = options.commits.div_ceil(10);
    let series = (options.commits).clamp(100, 10_000);
    let engine = open(kind, dir.path(), commits * series)?;
    let mut feed = Feed::new(series);
    engine.write(&mut |txn| feed.all(txn))?;
    let (mut latencies, mut points) = (Latencies::default(), 0);
    let (start, meter) = (Instant::now(), Meter::start(dir.path()));
    let mut due = start;
    for _ in 0..commits {
        due += Duration::from_millis(10);
        let sending = Instant::now();
        engine.write(&mut |txn| {
            // Reading the clock costs as much as a point, so the clock is read only after every 32 points.
            loop {
                for _ in 0..32 {
                    feed.one(txn)?;
                }
                points += 32;
                if Instant::now() >= due {
                    break Ok(());
                }
            }
        })?;
        latencies.keep(sending.elapsed());
        if start.elapsed() > LONGEST {
            break;
        }
    }
    let sample = meter.finish(points, 0, latencies);
    contest.add("10-ms", "points/s", false, kind, sample);
    Ok(())
}

/// The points to write: in each round one point of each series.
struct Feed {
    random: Random,
    /// The current value of each series, in hundredths.
    values: Vec<i32>,
    next: usize,
    round: i64,
}

impl Feed {
    fn new(series: u64) -> Self {
        Self {
            random: Random::new(23),
            values: vec![10_000; series as usize],
            next: 0,
            round: 0,
        }
    }

    /// Writes the next point.
    fn one(&mut self, txn: &mut dyn Write) -> Result<()> {
        let bits = self.random.next();
        let jitter = (bits & 1023) as i64 * 1000;
        let time = self.round * 1_000_000_000 + jitter;
        let value = &mut self.values[self.next];
        *value += ((bits >> 32) % 101) as i32 - 50;
        let bytes = (f64::from(*value) / 100.0).to_le_bytes();
        txn.put(Key::of_point(self.next as u64, time).as_ref(), &bytes)?;
        self.next += 1;
        if self.next == self.values.len() {
            (self.next, self.round) = (0, self.round + 1);
        }
        Ok(())
    }

    /// Writes one point to each series.
    fn all(&mut self, txn: &mut dyn Write) -> Result<()> {
        (0..self.values.len()).try_for_each(|_| self.one(txn))
    }
}
