//! `growth`: tests whether anything slows down as a database grows. Only Tidalite is measured.
//!
//! By points: one series of 10^6, 10^7, ... points. By series: 1, 10, ... 10^6 series that get one row each in turn;
//! the total number of rows is a tenth of the largest number of points, with at least two rows in each series.
//!
//! | case | |
//! |---|---|
//! | `points-N-append`, `series-N-append` | points/s, durable transactions of a million |
//! | `...-open` | microseconds to open the cached file and take a snapshot |
//! | `...-aggregate` | microseconds for the sum over the middle half of a series |
//! | `...-first-latest` | microseconds for the newest row of a series by id, the first query after opening |
//! | `...-latest` | the same in a snapshot that has answered it before; the series is open nowhere |
//! | `points-open` and so on | the slowest of a sequence relative to its first, the smallest database |
//!
//! Short times are the median of many measurements. Values walk by hundredths, and times jitter.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use ::tidalite::{Database, ReadTxn, SeriesId, Steps};

use crate::args::Options;
use crate::contest::Contest;
use crate::engine::data::Random;
use crate::engine::{Result, TIDALITE_SERIES};
use crate::meter::{Latencies, Meter, Sample};
use crate::os;
use crate::report::median;

/// Number of points in the smallest database.
const POINTS_MIN: u64 = 1_000_000;
const SERIES_MAX: u64 = 1_000_000;
/// Number of rows in a transaction.
const EACH: u64 = 1_000_000;
/// Number of openings that are measured, and (below) of queries.
const OPENS: usize = 21;
const QUESTIONS: usize = 1001;
/// Number of queries that are measured as the first query after an opening, each on a newly opened file.
const FIRSTS: usize = 201;

/// Runs the suite `growth`.
pub(crate) fn run(options: &Options) -> Result<Contest> {
    let mut contest = Contest::among("growth", &[TIDALITE_SERIES]);
    for _ in 0..options.rounds {
        let first = POINTS_MIN.min(options.points);
        let sizes = tenfold(first, options.points).map(|points| (points, 1, points));
        axis("points", sizes, options, &mut contest)?;
        let rows = options.points / 10;
        let most = SERIES_MAX.min(rows);
        let sizes = tenfold(1, most).map(|series| (series, series, rows.max(2 * series)));
        axis("series", sizes, options, &mut contest)?;
    }
    Ok(contest)
}

/// `first` times 1, 10, 100 ..., up to `last`.
fn tenfold(first: u64, last: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(first.max(1)), |n| n.checked_mul(10)).take_while(move |n| *n <= last)
}

/// Results for one database: speed of appends, and times in microseconds.
struct Figures {
    append: Sample,
    open: f64,
    aggregate: f64,
    first_latest: f64,
    latest: f64,
}

/// Measures databases of growing size: name, number of series, number of rows.
fn axis(
    name: &str,
    sizes: impl Iterator<Item = (u64, u64, u64)>,
    options: &Options,
    contest: &mut Contest,
) -> Result<()> {
    if !options.chosen(name) {
        return Ok(());
    }
    let mut all = Vec::new();
    for (size, series, rows) in sizes {
        let dir = os::TempDir::within(&options.dir, "growth")?;
        os::settle(dir.path())?;
        os::touch_memory((rows * 4).min(8 << 30), 1 << 30);
        let figures = of_one(dir.path(), series, rows)?;
        let case = |what: &str| format!("{name}-{size}-{what}");
        let kind = TIDALITE_SERIES;
        contest.add(&case("append"), "points/s", false, kind, figures.append);
        for (what, micros) in [
            ("open", figures.open),
            ("aggregate", figures.aggregate),
            ("first-latest", figures.first_latest),
            ("latest", figures.latest),
        ] {
            contest.add(&case(what), "us", true, kind, Sample::of(micros));
        }
        all.push(figures);
    }
    let Some(first) = all.first() else {
        return Ok(());
    };
    let worst =
        |what: &dyn Fn(&Figures) -> f64| all.iter().map(what).fold(0.0, f64::max) / what(first);
    let slowest = all.iter().map(|f| f.append.value).fold(f64::MAX, f64::min);
    for (what, factor) in [
        ("append", first.append.value / slowest),
        ("open", worst(&|f| f.open)),
        ("aggregate", worst(&|f| f.aggregate)),
        ("first-latest", worst(&|f| f.first_latest)),
        ("latest", worst(&|f| f.latest)),
    ] {
        let (case, sample) = (format!("{name}-{what}"), Sample::of(factor));
        contest.add(&case, "x smallest", true, TIDALITE_SERIES, sample);
    }
    Ok(())
}

fn of_one(dir: &Path, series: u64, rows: u64) -> Result<Figures> {
    let path = dir.join("bench.tdl");
    let db = Database::open(&path)?;
    let mut txn = db.begin_write()?;
    let mut ids = Vec::with_capacity(series as usize);
    for n in 0..series {
        ids.push(txn.series(&format!("s{n}"))?.id());
    }
    txn.commit()?;
    let (append, expected) = appended(&db, dir, &ids, rows)?;
    drop(db);
    let mut opens = Vec::new();
    for _ in 0..OPENS {
        let start = Instant::now();
        let db = Database::open(&path)?;
        black_box(db.begin_read()?);
        opens.push(start.elapsed().as_nanos() as f64 / 1000.0);
    }
    let mut random = Random::new(31);
    let mut any = |_| ids[random.below(series) as usize];
    let asked: Vec<SeriesId> = (0..QUESTIONS).map(&mut any).collect();
    let mut firsts = Vec::new();
    for &id in &asked[..FIRSTS] {
        let db = Database::open(&path)?;
        latest(&db.begin_read()?, id, &mut firsts)?;
    }
    let db = Database::open(&path)?;
    let snapshot = db.begin_read()?;
    let mut latests = Vec::new();
    for _ in 0..2 {
        latests.clear();
        for &id in &asked {
            latest(&snapshot, id, &mut latests)?;
        }
    }
    let mut aggregates = Vec::new();
    for &id in &asked {
        let one = snapshot.series_by_id(id)?.ok_or("a series is missing")?;
        let (from, to) = one.span().ok_or("a series is empty")?;
        let quarter = (to - from) / 4;
        let start = Instant::now();
        let middle = one
            .query(Steps(from + quarter)..=Steps(to - quarter))
            .aggregate(1)?;
        aggregates.push(start.elapsed().as_nanos() as f64 / 1000.0);
        black_box(middle);
    }
    // The last row that was appended belongs to the last series in turn.
    let last = ids[(rows - 1) as usize % ids.len()];
    let found = snapshot.series_by_id(last)?.map(|one| one.latest());
    let found = found
        .transpose()?
        .flatten()
        .ok_or("the last row is missing")?;
    if found.f64(1) != expected {
        return Err(format!("the last value is {}, not {expected}", found.f64(1)).into());
    }
    Ok(Figures {
        append,
        open: median(&opens),
        aggregate: median(&aggregates),
        first_latest: median(&firsts),
        latest: median(&latests),
    })
}

/// Queries the newest row of a series, and adds the time in microseconds.
fn latest(snapshot: &ReadTxn, id: SeriesId, micros: &mut Vec<f64>) -> Result<()> {
    let start = Instant::now();
    let latest = snapshot.latest(id)?;
    micros.push(start.elapsed().as_nanos() as f64 / 1000.0);
    black_box(latest.ok_or("a series is empty")?);
    Ok(())
}

/// Appends all rows, one to each series in turn; also returns the value of the last row.
fn appended(db: &Database, dir: &Path, ids: &[SeriesId], rows: u64) -> Result<(Sample, f64)> {
    let mut random = Random::new(29);
    let mut values = vec![10_000i32; ids.len()];
    let (mut at, mut round, mut last) = (0, 0, 0.0);
    let mut latencies = Latencies::default();
    let meter = Meter::start(dir);
    for from in (0..rows).step_by(EACH as usize) {
        latencies.time(|| -> Result<()> {
            let mut txn = db.begin_write()?;
            for _ in from..(from + EACH).min(rows) {
                let bits = random.next();
                let time = round * 1_000_000_000 + (bits & 1023) as i64 * 1000;
                values[at] += ((bits >> 32) % 101) as i32 - 50;
                last = f64::from(values[at]) / 100.0;
                txn.series_by_id(ids[at])?
                    .insert_point(Steps(time), 0, last)?;
                at += 1;
                if at == ids.len() {
                    (at, round) = (0, round + 1);
                }
            }
            txn.commit()?;
            Ok(())
        })?;
    }
    let mut sample = meter.finish(rows, 0, latencies);
    sample.file_bytes = os::disk_used(dir)?;
    Ok((sample, last))
}

#[cfg(test)]
mod tests {
    #[test]
    fn sizes_grow_tenfold() {
        let sizes: Vec<u64> = super::tenfold(10, 5000).collect();
        assert_eq!(sizes, [10, 100, 1000]);
    }
}
