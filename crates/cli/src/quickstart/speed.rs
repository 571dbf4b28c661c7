//! Measures the speed with generated points: they are written, committed, aggregated and read.

use super::files::remove_database;
use crate::args::QuickstartArgs;
use crate::database::failure;
use crate::exit::{Exit, Failure, Outcome};
use crate::output::{plural, rate_text, rounded_text};
use crate::terminal::Terminal;
use std::path::Path;
use std::time::{Duration, Instant};
use tidalite::{OpenMode, Options, Series, Steps};

const FILE_NAME: &str = "quickstart-generated.tdl";

const SERIES: &str = "generated.walk";

/// Number of points that are generated at a time.
const BATCH: usize = 64 * 1024;

/// Time of the first point, 2020-01-01, in nanoseconds since 1970; the points follow at intervals of one second.
const START: i64 = 1_577_836_800_000_000_000;
const STEP: i64 = 1_000_000_000;

/// Writes the points to a separate file, which is removed at the end, and prints the durations.
pub(crate) fn run(args: &QuickstartArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let path = args.dir.join(FILE_NAME);
    if path.exists() {
        remove_database(&path)?;
    }
    let points = plural(args.points, "generated point", "generated points");
    let heading = format!("{points} on this machine");
    writeln!(
        terminal.out,
        "\n{}\nA random walk with two decimals, one point a second, in one thread; generating is not counted.",
        terminal.palette.bold(heading)
    )?;
    // The heading is flushed before the work begins, because standard output may be buffered.
    terminal.out.flush()?;
    let measured = measure(&path, args.points, terminal);
    let removed = remove_database(&path);
    measured.and(removed)
}

fn measure(path: &Path, points: u64, terminal: &mut Terminal<'_>) -> Outcome {
    let fail = |error: tidalite::Error| failure(path, &error);
    let database = Options::new()
        .mode(OpenMode::Create)
        .open(path)
        .map_err(fail)?;
    let (sum, took) = write(&database, points).map_err(fail)?;
    #[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
    let count = points as f64;
    let mut line = |what: &str, took: Duration, note: String| {
        let seconds = took.as_secs_f64().max(1e-9);
        writeln!(
            terminal.out,
            "  {what:<34} {:>10}  {note}",
            time_text(seconds)
        )
    };
    let rate = |took: Duration| {
        format!(
            "{} points/s",
            rate_text(count / took.as_secs_f64().max(1e-9))
        )
    };
    line("written, one durable commit", took, rate(took))?;

    let txn = database.begin_read().map_err(fail)?;
    let series = txn.series(SERIES).map_err(fail)?;
    let series = series.ok_or_else(|| Failure::new(Exit::Failure, "the series is gone"))?;
    let began = Instant::now();
    let whole = series.query(..).aggregate(1).map_err(fail)?;
    line(
        "summed up by the tree",
        began.elapsed(),
        format!("mean {}", text(whole.mean())),
    )?;
    let began = Instant::now();
    let (from, to) = middle(&series);
    let part = series
        .query(Steps(from)..Steps(to))
        .aggregate(1)
        .map_err(fail)?;
    let note = format!(
        "mean {} of {}",
        text(part.mean()),
        plural(part.count(), "point", "points")
    );
    line("any part of it, by the tree", began.elapsed(), note)?;
    let began = Instant::now();
    let read_sum = read(&series).map_err(fail)?;
    let took = began.elapsed();
    line("every point read and added up", took, rate(took))?;
    drop(series);
    drop(txn);

    let bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    #[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
    let a_point = bytes as f64 / count;
    writeln!(
        terminal.out,
        "  {a_point:.2} bytes a point in the file, where 16 go in; it is removed again."
    )?;
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * count * 1e3;
    if whole.count() != points || !close(whole.sum(), sum) || !close(read_sum, sum) {
        return Err(
            Failure::new(Exit::Damage, "the sums written, read and summed up differ")
                .hint("this must not happen: please report it with the machine and file system"),
        );
    }
    Ok(())
}

fn text(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), rounded_text)
}

/// Formats a duration: 0.000123 as `123 µs`.
fn time_text(seconds: f64) -> String {
    if seconds < 1e-3 {
        format!("{:.0} µs", seconds * 1e6)
    } else if seconds < 1.0 {
        format!("{:.1} ms", seconds * 1e3)
    } else {
        format!("{seconds:.2} s")
    }
}

/// Writes the points. Returns the sum of their values and the time for writing, without the time for generating them.
fn write(database: &tidalite::Database, points: u64) -> tidalite::Result<(f64, Duration)> {
    let mut walk = Walk {
        state: 1,
        hundredths: 0,
    };
    let flags = vec![0_u64; BATCH];
    let (mut times, mut words) = (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH));
    let mut sum = 0.0;
    let mut took = Duration::ZERO;
    let mut txn = database.begin_write()?;
    let id = txn.series(SERIES)?.id();
    let mut time = START;
    let mut left = points;
    while left > 0 {
        let batch = usize::try_from(left).unwrap_or(BATCH).min(BATCH);
        times.clear();
        words.clear();
        for _ in 0..batch {
            let value = walk.next();
            sum += value;
            times.push(time);
            words.push(value.to_bits());
            time += STEP;
        }
        let began = Instant::now();
        txn.series_by_id(id)?
            .append_rows(&times, &[&flags[..batch], &words])?;
        took += began.elapsed();
        left -= batch as u64;
    }
    let began = Instant::now();
    txn.commit()?;
    Ok((sum, took + began.elapsed()))
}

fn read(series: &Series<'_>) -> tidalite::Result<f64> {
    let mut sums = [0.0; 8];
    series.query(..).for_each_vector(|vector| {
        // Eight sums are kept, so that the additions do not depend on each other.
        let mut eights = vector.f64(1).chunks_exact(8);
        for eight in &mut eights {
            for (sum, value) in sums.iter_mut().zip(eight) {
                *sum += value;
            }
        }
        sums[0] += eights.remainder().iter().sum::<f64>();
    })?;
    Ok(sums.iter().sum())
}

/// First and last time of the middle third of the series.
fn middle(series: &Series<'_>) -> (i64, i64) {
    let (first, last) = series.span().unwrap_or((0, 3));
    let third = (last - first) / 3;
    (first + third, last - third + 1)
}

/// A random walk with steps of up to half a unit up or down, in values with two decimal places.
struct Walk {
    state: u64,
    hundredths: i64,
}

impl Walk {
    /// Returns the next value. The algorithm of the random numbers is splitmix64.
    fn next(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        let step = i64::try_from(z % 101).unwrap_or(50) - 50;
        self.hundredths += step;
        #[expect(clippy::cast_precision_loss, reason = "small integers")]
        let value = self.hundredths as f64 / 100.0;
        value
    }
}
