//! `akumuli`: the measurements of the article "Akumuli: Numeric B+tree". Only Tidalite is measured, with durable
//! commits; the figures of the article are quoted beside the results.
//!
//! The article uses four threads, each with its own trees. Here four appenders of one transaction take their place,
//! each with its part of the series. `steps`: times and values count up. `walk`: times jitter, values walk by
//! hundredths.
//!
//! | case | |
//! |---|---|
//! | `turns-N-steps`, `turns-N-walk` | points/s: one point to each series of a part in turn, 10,000, 100 or 1 series |
//! | `after-N-steps`, `after-N-walk` | points/s: one series after another |
//! | `...-bytes`, `...-written` | bytes per point: in the file, and passed to the kernel |
//! | `killed-open` | us to open a file of 10,000 series after its writer was killed, and to take a snapshot |
//! | `aggregate` | us for any interval of a series, all functions, while rows of other series are in the delta |
//! | `windows` | us for a thousand windows in an interval, likewise |
//! | `windows-alone` | the windows on the calling thread only; otherwise other cores share the work |
//! | `windows-mean`, `windows-band` | the windows with the mean only, and with minimum and maximum only |

use std::hint::black_box;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use ::tidalite::{Appender, Database, Figure, Options as OpenOptions, SeriesId, Steps};

use crate::args::Options;
use crate::contest::Contest;
use crate::engine::data::Random;
use crate::engine::{Result, TIDALITE_SERIES};
use crate::meter::{Latencies, Meter, Sample};
use crate::os;

/// Number of parts into which the series are divided: one for each thread in the published article on Akumuli.
const PARTS: usize = 4;
/// Number of points that a thread appends in one transaction.
const EACH: u64 = 1_000_000;
const MANY: u64 = 10_000;
const OPENS: usize = 11;
const QUESTIONS: usize = 1001;
const SECOND: i64 = 1_000_000_000;

/// Figures from the published article on Akumuli, and from running the article's program on a machine with two cores.
const QUOTED: &str = "\
quoted, not measured here: four threads in turn 1.9 M points/s (10,000 series), 5.0 M (100), one thread 1.3 M (1);
a series after the other 4.3 M (10,000), 4.25 M (100); a billion points in 10,000 series are recovered in less than 10 s.
On a machine of this kind, without syncs: 14 to 25 M points/s at 0.2 to 0.8 bytes (steps); 2 M at 10.7 bytes (walk, 10,000 series).
ours: four threads append to one transaction (one for one series), a million points each; every transaction synced.";

/// Runs the suite `akumuli`.
pub(crate) fn run(options: &Options) -> Result<Contest> {
    let mut contest = Contest::among("akumuli", &[TIDALITE_SERIES]);
    for _ in 0..options.rounds {
        for (order, series) in [
            ("turns", MANY),
            ("turns", 100),
            ("turns", 1),
            ("after", MANY),
            ("after", 100),
        ] {
            let series = series.min(options.points);
            for walk in [false, true] {
                let data = if walk { "walk" } else { "steps" };
                let case = format!("{order}-{series}-{data}");
                if options.chosen(order) || options.chosen(&case) {
                    written(&case, order == "turns", series, walk, options, &mut contest)?;
                }
            }
        }
        if options.chosen("killed") {
            killed(options, &mut contest)?;
        }
        if options.chosen("questions") {
            questions(options, &mut contest)?;
        }
    }
    eprintln!("{QUOTED}");
    Ok(contest)
}

/// Generates the points of one series.
#[derive(Clone, Copy)]
struct Walker {
    round: i64,
    hundredths: i64,
}

/// Generates the points of many series.
struct Source {
    walkers: Vec<Walker>,
    random: Random,
    walk: bool,
}

impl Source {
    fn new(series: usize, walk: bool) -> Self {
        let start = Walker {
            round: 0,
            hundredths: 10_000,
        };
        Self {
            walkers: vec![start; series],
            random: Random::new(37),
            walk,
        }
    }

    #[inline]
    fn next(&mut self, at: usize) -> (i64, f64) {
        let walker = &mut self.walkers[at];
        walker.round += 1;
        if !self.walk {
            return (walker.round * SECOND, walker.round as f64);
        }
        let bits = self.random.next();
        walker.hundredths += ((bits >> 32) % 101) as i64 - 50;
        let time = walker.round * SECOND + (bits & 0xf_ffff) as i64 * 100;
        (time, walker.hundredths as f64 / 100.0)
    }
}

/// Creates a file with this many series.
fn created(path: &Path, series: u64) -> Result<(Database, Vec<SeriesId>)> {
    let db = Database::open(path)?;
    let mut txn = db.begin_write()?;
    let mut ids = Vec::with_capacity(series as usize);
    for n in 0..series {
        ids.push(txn.series(&format!("n{n}"))?.id());
    }
    txn.commit()?;
    Ok((db, ids))
}

/// The series of one thread, and the source of their points.
struct Part {
    ids: Vec<SeriesId>,
    source: Source,
    /// Index of the current series. It changes after each point, or after `each_series` points.
    at: usize,
    each_series: u64,
    left: u64,
}

impl Part {
    /// Inserts the next `count` points of this part through an appender.
    fn feed(&mut self, count: u64, in_turn: bool, to: &mut Appender<'_>) -> ::tidalite::Result<()> {
        let mut done = 0;
        while done < count {
            let number = self.at % self.ids.len();
            // If `in_turn`, takes one point of each series; otherwise all remaining points of the series.
            let has = self.source.walkers[number].round as u64;
            let run = match in_turn {
                true => 1,
                false => self
                    .each_series
                    .saturating_sub(has)
                    .max(1)
                    .min(count - done),
            };
            let mut one = to.series_by_id(self.ids[number])?;
            for _ in 0..run {
                let (time, value) = self.source.next(number);
                one.insert_point(Steps(time), 0, value)?;
            }
            done += run;
            if in_turn || has + run >= self.each_series {
                self.at += 1;
            }
        }
        Ok(())
    }
}

/// Divides the series, and a total of `rows` rows, among the threads.
fn parts(ids: &[SeriesId], walk: bool, rows: u64) -> Vec<Part> {
    let len = ids.len().div_ceil(PARTS.min(ids.len()));
    let chunks = ids.chunks(len);
    chunks
        .map(|part| Part {
            ids: part.to_vec(),
            source: Source::new(part.len(), walk),
            at: 0,
            each_series: (rows / ids.len() as u64).max(1),
            left: rows * part.len() as u64 / ids.len() as u64,
        })
        .collect()
}

/// Appends all remaining points of the parts, each part on its own thread; `told` receives the number of rows after
/// each commit.
fn append(
    db: &Database,
    parts: &mut [Part],
    in_turn: bool,
    mut told: impl FnMut(u64) -> Result<()>,
) -> Result<Latencies> {
    let mut latencies = Latencies::default();
    let mut done = 0;
    while parts.iter().any(|part| part.left > 0) {
        latencies.time(|| -> Result<()> {
            let mut txn = db.begin_write()?;
            let appenders = txn.appenders(parts.len())?;
            let counts = std::thread::scope(|scope| {
                let threads: Vec<_> = parts
                    .iter_mut()
                    .zip(appenders)
                    .map(|(part, mut appender)| {
                        scope.spawn(move || {
                            let count = EACH.min(part.left);
                            part.left -= count;
                            part.feed(count, in_turn, &mut appender)?;
                            appender.finish()?;
                            Ok(count)
                        })
                    })
                    .collect();
                let joined = threads.into_iter().map(|thread| thread.join());
                joined.collect::<std::thread::Result<Vec<::tidalite::Result<u64>>>>()
            });
            for count in counts.map_err(|_| "a thread panicked")? {
                done += count?;
            }
            txn.commit()?;
            Ok(())
        })?;
        told(done)?;
    }
    Ok(latencies)
}

/// Measures one line of the tables in the published article on Akumuli.
fn written(
    case: &str,
    in_turn: bool,
    series: u64,
    walk: bool,
    options: &Options,
    contest: &mut Contest,
) -> Result<()> {
    let dir = os::TempDir::within(&options.dir, "akumuli")?;
    os::settle(dir.path())?;
    os::touch_memory((options.points * 6).min(4 << 30), 512 << 20);
    let (db, ids) = created(&dir.path().join("bench.tdl"), series)?;
    let mut parts = parts(&ids, walk, options.points);
    let meter = Meter::start(dir.path());
    let mut rows = 0;
    let latencies = append(&db, &mut parts, in_turn, |done| {
        rows = done;
        Ok(())
    })?;
    let mut sample = meter.finish(rows, 0, latencies);
    drop(db);
    sample.file_bytes = os::disk_used(dir.path())?;
    let kind = TIDALITE_SERIES;
    let of_point = |bytes: u64| Sample::of(bytes as f64 / rows as f64);
    contest.add(case, "points/s", false, kind, sample);
    let (file, handed) = (of_point(sample.file_bytes), of_point(sample.written.handed));
    contest.add(&format!("{case}-bytes"), "bytes/point", true, kind, file);
    contest.add(
        &format!("{case}-written"),
        "bytes/point",
        true,
        kind,
        handed,
    );
    Ok(())
}

/// The process that will be killed. It reports the number of acknowledged rows, and continues until its points are
/// written.
pub(crate) fn writer(options: &Options) -> Result<()> {
    let (db, ids) = created(&options.dir.join("bench.tdl"), MANY.min(options.points))?;
    let mut parts = parts(&ids, true, options.points);
    append(&db, &mut parts, true, |done| {
        println!("{done}");
        Ok(std::io::stdout().flush()?)
    })?;
    // The process keeps committing until it is killed.
    loop {
        let mut txn = db.begin_write()?;
        for part in &mut parts {
            for (number, id) in part.ids.iter().enumerate() {
                let (time, value) = part.source.next(number);
                txn.series_by_id(*id)?.insert_point(Steps(time), 0, value)?;
            }
        }
        txn.commit()?;
    }
}

fn killed(options: &Options, contest: &mut Contest) -> Result<()> {
    let dir = os::TempDir::within(&options.dir, "akumuli-killed")?;
    let mut child = Command::new(std::env::current_exe()?)
        .arg("akumuli-writer")
        .args(["--points", &options.points.to_string()])
        .arg("--dir")
        .arg(dir.path())
        .stdout(Stdio::piped())
        .spawn()?;
    let output = child.stdout.take().ok_or("no output of the writer")?;
    let mut acknowledged = 0;
    for line in BufReader::new(output).lines() {
        acknowledged = line?.trim().parse::<u64>()?;
        if acknowledged + (PARTS as u64) * MANY >= options.points {
            break;
        }
    }
    std::thread::sleep(std::time::Duration::from_millis(300));
    child.kill()?;
    child.wait()?;
    let path = dir.path().join("bench.tdl");
    let mut latencies = Latencies::default();
    let mut micros = Vec::new();
    for _ in 0..OPENS {
        let start = Instant::now();
        let db = Database::open(&path)?;
        black_box(db.begin_read()?);
        latencies.keep(start.elapsed());
        micros.push(start.elapsed().as_nanos() as f64 / 1000.0);
    }
    let snapshot = Database::open(&path)?.begin_read()?;
    let mut rows = 0;
    for n in 0..MANY.min(options.points) {
        let one = snapshot.series(&format!("n{n}"))?;
        rows += one
            .ok_or("a series is missing")?
            .query(..)
            .aggregate(1)?
            .count();
    }
    if rows < acknowledged {
        return Err(format!("{acknowledged} points were acknowledged, {rows} are there").into());
    }
    // Only the first opening after the kill has to recover the file, so only its time is reported.
    let kind = TIDALITE_SERIES;
    contest.add("killed-open", "us", true, kind, Sample::of(micros[0]));
    contest.add(
        "killed-rows",
        "points",
        false,
        kind,
        Sample::of(rows as f64),
    );
    Ok(())
}

fn questions(options: &Options, contest: &mut Contest) -> Result<()> {
    let dir = os::TempDir::within(&options.dir, "akumuli-ask")?;
    let path = dir.path().join("bench.tdl");
    let (db, ids) = created(&path, 1)?;
    let mut parts = parts(&ids, true, options.points);
    append(&db, &mut parts, true, |_| Ok(()))?;
    // Adds rows of a thousand other series and of the queried series to the delta (rows that are in no leaf yet).
    let mut txn = db.begin_write()?;
    let mut others = Vec::new();
    for n in 0..1000 {
        others.push(txn.series(&format!("other{n}"))?.id());
    }
    txn.commit()?;
    for round in 1..=32 {
        let mut txn = db.begin_write()?;
        for id in &others {
            txn.series_by_id(*id)?
                .insert_point(Steps(round * SECOND), 0, round as f64)?;
        }
        let (time, value) = parts[0].source.next(0);
        txn.series_by_id(ids[0])?
            .insert_point(Steps(time), 0, value)?;
        txn.commit()?;
    }
    let snapshot = db.begin_read()?;
    let one = snapshot
        .series_by_id(ids[0])?
        .ok_or("the series is missing")?;
    let alone = OpenOptions::new().scan_threads(0).open(&path)?;
    let alone = alone.begin_read()?;
    let alone = alone.series_by_id(ids[0])?.ok_or("the series is missing")?;
    let (from, to) = one.span().ok_or("the series is empty")?;
    let mut random = Random::new(41);
    let mut ask = |what: &str, count: usize| -> Result<Sample> {
        let one = match what {
            "windows-alone" => &alone,
            _ => &one,
        };
        let mut latencies = Latencies::default();
        let mut all = Vec::new();
        for _ in 0..count {
            let mut at = || from + random.below((to - from) as u64) as i64;
            let (a, b) = (at(), at());
            let (a, b) = match what {
                "aggregate" => (a.min(b), a.max(b)),
                _ => (from + (a - from) / 4, to - (to - b) / 4),
            };
            let start = Instant::now();
            let (between, width) = (one.query(Steps(a)..=Steps(b)), (b - a) / 1000 + 1);
            match what {
                "aggregate" => drop(black_box(between.aggregate(1)?)),
                "windows-mean" => {
                    let means = between.figures(Figure::Mean);
                    drop(black_box(means.windows((Steps(width), Steps(a)), 1)?));
                }
                "windows-band" => {
                    let bands = between.figures([Figure::Min, Figure::Max]);
                    drop(black_box(bands.windows((Steps(width), Steps(a)), 1)?));
                }
                _ => drop(black_box(between.windows((Steps(width), Steps(a)), 1)?)),
            }
            latencies.keep(start.elapsed());
            all.push(start.elapsed().as_nanos() as f64 / 1000.0);
        }
        let meter = Meter::start(dir.path());
        let mut sample = meter.finish(count as u64, 0, latencies);
        sample.value = crate::report::median(&all);
        Ok(sample)
    };
    let kind = TIDALITE_SERIES;
    let sample = ask("aggregate", QUESTIONS)?;
    contest.add("aggregate", "us", true, kind, sample);
    for what in ["windows", "windows-alone", "windows-mean", "windows-band"] {
        let sample = ask(what, QUESTIONS / 10)?;
        contest.add(what, "us for 1,000", true, kind, sample);
    }
    Ok(())
}
