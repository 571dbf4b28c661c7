//! Runs the rounds. In each round, Tidalite and the peer in turn perform the same steps: write and commit, read,
//! for-each, sum, close, measure the file size, drop the file from the page cache, reopen and read. The file of one
//! engine is removed before the other engine begins.

use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

use super::digest::Record;
use super::ours::{Columns, Tidalite};
use super::peer::Lmdb;
use super::plan::{self, Order, Plan, Result};
use super::side::{Expected, Side};
use crate::os;
use crate::records::{Counting, Reading, Source, Trade, Walks};
use crate::report::Line;

/// Options of the suite `harlinn`.
pub(crate) struct Options {
    /// Number of points per case.
    pub(crate) points: u64,
    /// Number of rounds.
    pub(crate) rounds: usize,
    /// Names of the cases to run; all cases if empty.
    pub(crate) only: Vec<String>,
    /// True if the peer takes part; without the peer nothing is compared.
    pub(crate) with_peer: bool,
    /// Directory in which the engines create their files.
    pub(crate) dir: PathBuf,
}

/// Seed of the data sets that are harder to compress.
const SEED: u64 = 1;

/// Times in seconds of the steps of one engine in one round, and the size of its file in bytes.
#[derive(Clone, Copy)]
struct Round {
    write: f64,
    read: f64,
    for_each: f64,
    sum: f64,
    cold: f64,
    bytes: u64,
    /// Number of bytes written during the write step: passed to the kernel, or made dirty in a memory map.
    written: u64,
}

/// The rounds of Tidalite and of the peer in one case.
struct Outcome {
    plan: Plan,
    ours: Vec<Round>,
    theirs: Vec<Round>,
}

/// Runs the chosen cases; passes the lines of each case to `report` when the case is complete.
pub(crate) fn run(
    options: &Options,
    mut report: impl FnMut(Vec<Line>) -> Result<()>,
) -> Result<()> {
    let chosen = |name: &str| options.only.is_empty() || options.only.iter().any(|o| o == name);
    let plans = plan::all(options.points);
    for name in &options.only {
        let known = plans.iter().any(|plan| plan.name == name) || is_05(name);
        if !known {
            return Err(
                format!("there is no case {name}: 01, 03, 04, 05, 06, each also with r; 01-again, 01-desc, 01-late, 04-2").into(),
            );
        }
    }
    let mut of_05: Vec<Outcome> = Vec::new();
    for plan in plans {
        let hard = if plan.hard { "r" } else { "" };
        let name_05 = format!("05{hard}");
        let for_05 =
            chosen(&name_05) && matches!(&plan.name[..2], "03" | "04") && plan.sealing == 0;
        if !chosen(plan.name) && !for_05 {
            continue;
        }
        let outcome = run_case(&plan, options)?;
        if chosen(plan.name) {
            report(outcome.lines())?;
        }
        if for_05 {
            of_05.push(outcome);
        }
    }
    for name in ["05", "05r"] {
        let parts: Vec<_> = of_05
            .iter()
            .filter(|o| o.plan.hard == name.ends_with('r'))
            .collect();
        if !parts.is_empty() {
            report(vec![cold_line(name, &parts)])?;
        }
    }
    Ok(())
}

fn is_05(name: &str) -> bool {
    matches!(name, "05" | "05r")
}

fn run_case(plan: &Plan, options: &Options) -> Result<Outcome> {
    match (plan.trades, plan.hard) {
        (false, false) => rounds::<Reading, _>(plan, options, || Counting),
        (false, true) => rounds::<Reading, _>(plan, options, || Walks::new(SEED, plan.series)),
        (true, false) => rounds::<Trade, _>(plan, options, || Counting),
        (true, true) => rounds::<Trade, _>(plan, options, || Walks::new(SEED, plan.series)),
    }
}

fn rounds<P: Columns, S: Source<P>>(
    plan: &Plan,
    options: &Options,
    source: impl Fn() -> S,
) -> Result<Outcome> {
    let Plan {
        name,
        series,
        rows_each,
        batch,
        ..
    } = plan;
    eprintln!("{name}: {series} series x {rows_each} points in batches of {batch}");
    let expected = Expected::of(plan, &mut source());
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for n in 0..options.rounds {
        for turn in 0..2 {
            // The engine that goes first alternates between rounds.
            if (n + turn) % 2 == 0 {
                ours.push(round::<P, Tidalite>(
                    "ours",
                    plan,
                    options,
                    &mut source(),
                    &expected,
                )?);
            } else if options.with_peer {
                theirs.push(round::<P, Lmdb<P>>(
                    "lmdb",
                    plan,
                    options,
                    &mut source(),
                    &expected,
                )?);
            }
        }
    }
    Ok(Outcome {
        plan: *plan,
        ours,
        theirs,
    })
}

fn round<P: Record, S: Side<P>>(
    who: &str,
    plan: &Plan,
    options: &Options,
    source: &mut impl Source<P>,
    expected: &Expected,
) -> Result<Round> {
    let dir = os::TempDir::within(&options.dir, who)?;
    os::expect_disk(dir.path(), plan.file_bytes() + (256 << 20))
        .map_err(|short| format!("{}: {short}: use --dir, or fewer --points", plan.name))?;
    os::settle(dir.path())?;
    os::touch_memory(plan.file_bytes(), plan.heap_bytes());
    let what = |pass: &str| format!("{}-{pass} of {who}", plan.name);

    let side = S::open(dir.path(), plan)?;
    side.prepare(plan);
    if plan.order == Order::Again {
        side.write(plan, source)?;
    }
    let (before, spent) = (os::written(dir.path()), os::Spent::so_far());
    let (write, ()) = timed(|| side.write(plan, source))?;
    let (after, spent) = (os::written(dir.path()), os::Spent::since(&spent));
    let handed = after.handed - before.handed;
    let written = handed.max(after.dirtied - before.dirtied);
    let (read, digest) = timed(|| side.read(plan))?;
    expected.check_read(&what("read"), digest);
    let (for_each, total) = timed(|| side.for_each(plan))?;
    expected.check_for_each(&what("foreach"), total);
    let (sum, total) = timed(|| side.sum(plan))?;
    expected.check_sum(&what("sum"), total);
    drop(side);

    let bytes = os::disk_used(dir.path())?;
    os::make_cold(dir.path())?;
    os::touch_memory(plan.file_bytes(), plan.heap_bytes());
    let (cold, digest) = timed(|| S::open(dir.path(), plan)?.read(plan))?;
    expected.check_read(&what("cold"), digest);
    let rate = |seconds: f64| plan.rows() as f64 / seconds / 1e6;
    eprintln!(
        "  {who:<5} write {:8.2} ({spent})  read {:8.1}  foreach {:8.1}  cold {:8.1} M/s  {:6.3} bytes/point",
        rate(write),
        rate(read),
        rate(for_each),
        rate(cold),
        bytes as f64 / plan.rows() as f64,
    );
    Ok(Round {
        write,
        read,
        for_each,
        sum,
        cold,
        bytes,
        written,
    })
}

/// Runs `work`; returns its time in seconds and its result.
fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<(f64, T)> {
    let start = Instant::now();
    let result = black_box(work()?);
    Ok((start.elapsed().as_secs_f64(), result))
}

impl Outcome {
    fn lines(&self) -> Vec<Line> {
        let rows = self.plan.rows() as f64;
        if self.plan.sealing > 0 {
            let rates = |rounds: &[Round]| rounds.iter().map(|r| rows / r.write / 1e6).collect();
            return vec![Line {
                suite: "harlinn",
                case: format!("{}-write-{}", &self.plan.name[..2], 1 + self.plan.sealing),
                unit: "Mpoints/s",
                peer: "lmdb",
                ours: rates(&self.ours),
                theirs: rates(&self.theirs),
                less_is_better: false,
            }];
        }
        let line = |pass: &str, unit, less_is_better, value: &dyn Fn(&Round) -> f64| Line {
            suite: "harlinn",
            case: format!("{}-{pass}", self.plan.name),
            unit,
            peer: "lmdb",
            ours: self.ours.iter().map(value).collect(),
            theirs: self.theirs.iter().map(value).collect(),
            less_is_better,
        };
        let rate = |pass: &str, seconds: &dyn Fn(&Round) -> f64| {
            line(pass, "Mpoints/s", false, &|round| {
                rows / seconds(round) / 1e6
            })
        };
        vec![
            rate("write", &|round| round.write),
            rate("read", &|round| round.read),
            rate("foreach", &|round| round.for_each),
            rate("sum", &|round| round.sum),
            rate("cold", &|round| round.cold),
            line("bytes", "bytes/point", true, &|round| {
                round.bytes as f64 / rows
            }),
            line("written", "bytes/point", true, &|round| {
                round.written as f64 / rows
            }),
        ]
    }
}

/// The line for program 05 of the article that this suite reproduces. The program reads a reopened file: the files of
/// programs 03 and 04 count as one.
fn cold_line(name: &str, parts: &[&Outcome]) -> Line {
    let rows: u64 = parts.iter().map(|part| part.plan.rows()).sum();
    let rates = |side: &dyn Fn(&Outcome) -> &[Round]| -> Vec<f64> {
        let rounds = parts.iter().map(|part| side(part).len()).min().unwrap_or(0);
        let seconds = |n: usize| parts.iter().map(|part| side(part)[n].cold).sum::<f64>();
        (0..rounds)
            .map(|n| rows as f64 / seconds(n) / 1e6)
            .collect()
    };
    Line {
        suite: "harlinn",
        case: format!("{name}-cold"),
        unit: "Mpoints/s",
        peer: "lmdb",
        ours: rates(&|part| &part.ours),
        theirs: rates(&|part| &part.theirs),
        less_is_better: false,
    }
}
