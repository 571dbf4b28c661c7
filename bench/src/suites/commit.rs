//! The suite `commit`: the costs of durable rows. A row is a series, a time, a float and a word of flags. Tidalite
//! stores it as a point of a series and, like the peers, as a pair of 16 + 16 bytes in a table.
//!
//! | case | measured quantity |
//! |---|---|
//! | `1-row`, `10-rows`, `1000-rows` | commits/s of one thread, each on disk before the next begins |
//! | `threads-N` | commits/s of one row, N threads together |
//! | `begin-read` | nanoseconds to take a snapshot and release it |
//! | `disk-...` | the same on the bare disk, see `floor` |
//!
//! Before the measurement, every engine has 100 series of 1,000 rows on disk, and has made a tenth of its commits. Rows
//! are appended to the series in turn.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::floor;
use crate::args::Options;
use crate::contest::Contest;
use crate::engine::data::Key;
use crate::engine::{
    Engine, Kind, Promise, Result, Setup, TIDALITE, TIDALITE_ONE_FLUSH, TIDALITE_SERIES,
    TIDALITE_SERIES_ONE_FLUSH, TIDALITE_TWO_BARRIERS, Write,
};
use crate::meter::{Latencies, Meter, Sample, side_by_side};
use crate::os;

/// Number of series.
const SERIES: u64 = 100;
/// Number of rows in each series before the measurement.
const ROWS_BEFORE: u64 = 1000;
/// Numbers of threads that commit at the same time, one case for each number.
const THREADS: [u64; 5] = [1, 2, 4, 8, 16];
/// Factor by which the number of commits may grow with the number of threads: threads share syncs, and the measurement
/// would otherwise be too short.
const THREADS_MORE: u64 = 4;
/// Divisor of the number of commits for transactions of a thousand rows, which are more expensive.
const LARGE_FEWER: u64 = 10;

/// Modes of Tidalite: with the default durability (the redo log with each block twice, or two flushes of the disk),
/// without the redo log, and with each block of the log once.
const OURS: [Kind; 5] = [
    TIDALITE,
    TIDALITE_SERIES,
    TIDALITE_TWO_BARRIERS,
    TIDALITE_ONE_FLUSH,
    TIDALITE_SERIES_ONE_FLUSH,
];

/// Runs the suite `commit`.
pub(crate) fn run(options: &Options) -> Result<Contest> {
    let mut contest = Contest::new("commit", &OURS, &options.peers)?;
    for round in 0..options.rounds {
        for kind in contest.order(round) {
            of_one(kind, options, &mut contest)?;
        }
        floor::run(options, &mut contest)?;
    }
    Ok(contest)
}

/// Runs all cases of one engine in one round.
fn of_one(kind: Kind, options: &Options, contest: &mut Contest) -> Result<()> {
    let dir = os::TempDir::within(&options.dir, kind.name)?;
    os::settle(dir.path())?;
    os::touch_memory(256 << 20, 64 << 20);
    let engine = (kind.open)(dir.path(), &Setup::new(Promise::Synced, 1 << 30))?;
    let side = Side {
        engine: &*engine,
        dir: dir.path(),
        next: AtomicU64::new(0),
    };
    side.commit(SERIES * ROWS_BEFORE)?;
    for _ in 0..options.commits / 10 {
        side.commit(1)?;
    }
    for (case, rows, commits) in [
        ("1-row", 1, options.commits),
        ("10-rows", 10, options.commits),
        ("1000-rows", 1000, options.commits.div_ceil(LARGE_FEWER)),
    ] {
        if options.chosen(case) {
            let mut sample = side.commits(commits, rows)?;
            sample.file_bytes = os::disk_used(dir.path())?;
            contest.add(case, "commits/s", false, kind, sample);
        }
    }
    for threads in THREADS {
        let case = format!("threads-{threads}");
        if options.chosen(&case) {
            let commits = options.commits * threads.min(THREADS_MORE);
            let sample = side.threads(threads, commits)?;
            contest.add(&case, "commits/s", false, kind, sample);
        }
    }
    if options.chosen("begin-read") {
        let times = options.commits * 20;
        let start = Instant::now();
        for _ in 0..times {
            side.engine.begin_read()?;
        }
        let nanos = start.elapsed().as_nanos() as f64 / times as f64;
        contest.add("begin-read", "ns", true, kind, Sample::of(nanos));
    }
    if ![TIDALITE_SERIES.name, TIDALITE_SERIES_ONE_FLUSH.name].contains(&kind.name) {
        side.engine.read(&mut |reader| {
            let digest = reader.scan(&[], u64::MAX >> 1)?;
            contest.check("rows", 0, kind, digest.answer())
        })?;
    }
    Ok(())
}

/// An engine, and the number of the next row.
struct Side<'e> {
    engine: &'e dyn Engine,
    dir: &'e Path,
    next: AtomicU64,
}

impl Side<'_> {
    /// Commits one transaction of this many rows.
    fn commit(&self, rows: u64) -> Result<()> {
        let from = self.next.fetch_add(rows, Ordering::Relaxed);
        self.engine
            .write(&mut |txn| (from..from + rows).try_for_each(|n| put(txn, n)))
    }

    fn commits(&self, commits: u64, rows: u64) -> Result<Sample> {
        let mut latencies = Latencies::default();
        let meter = Meter::of(self.engine, self.dir);
        for _ in 0..commits {
            latencies.time(|| self.commit(rows))?;
        }
        Ok(meter.finish(commits, self.engine.silent_syncs(commits), latencies))
    }

    fn threads(&self, threads: u64, commits: u64) -> Result<Sample> {
        let each = commits.div_ceil(threads);
        let meter = Meter::of(self.engine, self.dir);
        let (latencies, _) = side_by_side(threads, |_| {
            let mut latencies = Latencies::default();
            for _ in 0..each {
                latencies.time(|| self.commit(1))?;
            }
            Ok((latencies, 0))
        })?;
        let commits = each * threads;
        Ok(meter.finish(commits, self.engine.silent_syncs(commits), latencies))
    }
}

/// Writes the row with number `n`.
fn put(txn: &mut dyn Write, n: u64) -> Result<()> {
    let (series, row) = (n % SERIES, n / SERIES);
    let key = Key::of_point(series, row as i64 * 1_000_000_000);
    let mut value = [0; 16];
    value[..8].copy_from_slice(&(row as f64 * 0.25 + series as f64).to_le_bytes());
    txn.put(key.as_ref(), &value)
}
