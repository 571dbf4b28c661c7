//! `cpu`: a workload that is common in published benchmarks of time-series databases: metrics of processors. A hundred
//! hosts, three days, and a row of ten metrics for each host every ten seconds, in time order. Each metric is a random
//! walk between 0 and 100, as integers (`int`) or with two decimals (`dec`). Tidalite has a series of ten columns for
//! each host, with tags. SQLite, in WAL mode, has a table with the primary key (series, time), and the tags in a table
//! of hosts.
//!
//! | case | |
//! |---|---|
//! | `X-write` | rows/s, durable transactions of a million rows, prepared in memory |
//! | `X-bytes` | file bytes per value, including times, tags and everything else |
//! | `X-max-1-1` | maxima per minute of one metric of one host, one hour |
//! | `X-max-10-8` | maxima per minute of ten metrics of one host, eight hours |
//! | `X-mean-1`, `X-mean-10` | means per hour and host of one metric, of ten, all hosts, twelve hours |
//! | `X-latest` | the newest row of every host |
//! | `X-above` | rows of all hosts with one metric above 90, twelve hours |
//! | `X-sum` | sum and count of one metric over all rows |
//! | `X-buckets` | a thousand buckets of one metric of one host over all three days |
//! | `X-cold-bytes` | bytes per value stored for rare reads: ours cold and compacted, SQLite after `VACUUM` |
//! | `X-cold-above` | `X-above` in that storage |
//!
//! Query times are in milliseconds: the median of many warm queries, each at a random position. Every answer must equal
//! SQLite's.

mod ours;
mod shape;
mod sqlite;

use std::time::Instant;

use crate::args::Options;
use crate::contest::Contest;
use crate::engine::data::Random;
use crate::engine::{Kind, PEERS, Result, TIDALITE_SERIES};
use crate::meter::{Latencies, Meter, Sample};
use crate::os;
use crate::report::median;
use shape::{Answer, HOSTS, HOUR, METRICS, MINUTE, Question, Row, Side};

/// Time between two rows of a host in nanoseconds.
const STEP: i64 = 10_000_000_000;
/// The time of the first row, 2024-01-01, which is a full hour.
const BEGIN: i64 = 1_704_067_200_000_000_000;
/// Number of rows in a transaction.
const EACH: usize = 1_000_000;
/// Number of repetitions of a query; smaller for queries that are expensive for the slower engine.
const ASKED: usize = 21;

/// Runs the suite `cpu`.
pub(crate) fn run(options: &Options) -> Result<Contest> {
    let sqlite = PEERS.iter().copied().find(|kind| kind.name == "sqlite");
    let sqlite = sqlite.ok_or("SQLite is not among the peers")?;
    let mut contest = Contest::beside("cpu", TIDALITE_SERIES, sqlite, &options.peers)?;
    for (name, decimals) in [("int", false), ("dec", true)] {
        for round in 0..options.rounds {
            // Answers are compared within a round: each engine returns a list of its answers.
            let mut answers = Vec::new();
            for kind in contest.order(round) {
                let case = (name, decimals);
                answers.push(match kind.ours {
                    true => of_one::<ours::Series>(kind, case, options, &mut contest)?,
                    false => of_one::<sqlite::Table>(kind, case, options, &mut contest)?,
                });
            }
            same(&answers)?;
        }
    }
    Ok(contest)
}

/// All answers of an engine, with their queries.
type Answers = Vec<(Question, Answer)>;

fn same(answers: &[Answers]) -> Result<()> {
    let [first, second] = answers else {
        return Ok(());
    };
    for ((question, one), (_, other)) in first.iter().zip(second) {
        let near = (one.sum - other.sum).abs() <= one.sum.abs().max(1.0) * 1e-9;
        if one.found != other.found || !near {
            return Err(format!("{question:?}: {one:?} and {other:?}").into());
        }
    }
    Ok(())
}

fn of_one<S: Side>(
    kind: Kind,
    (name, decimals): (&str, bool),
    options: &Options,
    contest: &mut Contest,
) -> Result<Answers> {
    let dir = os::TempDir::within(&options.dir, kind.name)?;
    os::settle(dir.path())?;
    let rows = options.points / HOSTS as u64 * HOSTS as u64;
    let row_bytes = size_of::<Row>() as u64;
    os::touch_memory(rows * 120, rows * (100 + row_bytes));
    let mut side = S::create(dir.path(), decimals)?;
    // Creating a row takes 29 ns, half of the time to write the row, so rows are created before the measurement.
    let all: Vec<Row> = Feed::new(decimals).take(rows as usize).collect();
    let mut latencies = Latencies::default();
    let meter = Meter::start(dir.path());
    for part in all.chunks(EACH) {
        latencies.time(|| side.write(part))?;
    }
    let mut sample = meter.finish(rows, 0, latencies);
    drop(all);
    sample.file_bytes = os::disk_used(dir.path())?;
    let case = |what: &str| format!("{name}-{what}");
    contest.add(&case("write"), "rows/s", false, kind, sample);
    let values = (rows * METRICS as u64) as f64;
    let bytes = Sample::of(sample.file_bytes as f64 / values);
    contest.add(&case("bytes"), "bytes/value", true, kind, bytes);

    let span = rows as i64 / HOSTS as i64 * STEP;
    let mut answers = Vec::new();
    for what in [
        "max-1-1", "max-10-8", "mean-1", "mean-10", "latest", "above", "sum", "buckets",
    ] {
        let millis = asked(&side, what, span, &mut answers)?;
        contest.add(&case(what), "ms", true, kind, Sample::of(millis));
    }
    side.shrink()?;
    let bytes = Sample::of(os::disk_used(dir.path())? as f64 / values);
    contest.add(&case("cold-bytes"), "bytes/value", true, kind, bytes);
    let millis = asked(&side, "above", span, &mut answers)?;
    contest.add(&case("cold-above"), "ms", true, kind, Sample::of(millis));
    Ok(answers)
}

/// Median time in milliseconds of one kind of query.
fn asked<S: Side>(side: &S, what: &str, span: i64, answers: &mut Answers) -> Result<f64> {
    let mut random = Random::new(37);
    let mut millis = Vec::new();
    for _ in 0..ASKED {
        let question = question(what, span, &mut random);
        let start = Instant::now();
        let answer = side.ask(question)?;
        millis.push(start.elapsed().as_secs_f64() * 1000.0);
        answers.push((question, answer));
    }
    Ok(median(&millis))
}

/// A query of this kind at a random position within `span`, beginning at a full minute.
fn question(what: &str, span: i64, random: &mut Random) -> Question {
    let host = random.below(HOSTS as u64) as usize;
    let mut within = |length: i64| {
        let length = length.min(span);
        let room = ((span - length) / MINUTE + 1) as u64;
        let from = BEGIN + random.below(room) as i64 * MINUTE;
        (from, from + length)
    };
    let max = |metrics, (from, to), width| Question::Max {
        host,
        metrics,
        from,
        to,
        width,
    };
    match what {
        "max-1-1" => max(1, within(HOUR), MINUTE),
        "max-10-8" => max(METRICS, within(8 * HOUR), MINUTE),
        "buckets" => max(1, (BEGIN, BEGIN + span), (span / 1000).max(STEP)),
        "latest" => Question::Latest,
        "sum" => Question::Sum,
        "above" => {
            let (from, to) = within(12 * HOUR);
            Question::Above { from, to }
        }
        mean => {
            let (from, to) = within(12 * HOUR);
            let metrics = if mean == "mean-1" { 1 } else { METRICS };
            Question::Mean { metrics, from, to }
        }
    }
}

/// Iterator over the rows in time order: every ten seconds a row of each host.
struct Feed {
    random: Random,
    walks: Vec<[i32; METRICS]>,
    step: i32,
    most: i32,
    next: usize,
    time: i64,
}

impl Feed {
    fn new(decimals: bool) -> Self {
        let (step, most) = if decimals { (100, 10_000) } else { (1, 100) };
        let mut random = Random::new(41);
        let mut walk = || std::array::from_fn(|_| random.below(most as u64 + 1) as i32);
        let walks = (0..HOSTS).map(|_| walk()).collect();
        Self {
            walks,
            random,
            step,
            most,
            next: 0,
            time: BEGIN,
        }
    }
}

impl Iterator for Feed {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        let mut bits = self.random.next();
        let wide = self.random.next();
        let walk = &mut self.walks[self.next];
        for (n, value) in walk.iter_mut().enumerate() {
            // The value changes by a random number from -step to step, in hundredths or as an integer.
            let noise = (bits ^ (wide >> n)) % (2 * self.step as u64 + 1);
            *value = (*value + noise as i32 - self.step).clamp(0, self.most);
            bits = bits.rotate_right(7);
        }
        let row = Row {
            host: self.next,
            time: self.time,
            metrics: *walk,
        };
        self.next += 1;
        if self.next == HOSTS {
            (self.next, self.time) = (0, self.time + STEP);
        }
        Some(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_answer_alike() {
        for decimals in [false, true] {
            let dirs = [
                os::TempDir::new("cpu").unwrap(),
                os::TempDir::new("cpu").unwrap(),
            ];
            let mut ours = ours::Series::create(dirs[0].path(), decimals).unwrap();
            let mut theirs = sqlite::Table::create(dirs[1].path(), decimals).unwrap();
            let rows = HOSTS * 800;
            let rows: Vec<Row> = Feed::new(decimals).take(rows).collect();
            ours.write(&rows).unwrap();
            theirs.write(&rows).unwrap();
            let mut random = Random::new(43);
            for what in [
                "max-1-1", "max-10-8", "mean-10", "latest", "above", "sum", "buckets", "shrink",
                "above", "sum",
            ] {
                if what == "shrink" {
                    ours.shrink().unwrap();
                    theirs.shrink().unwrap();
                    continue;
                }
                let question = question(what, 800 * STEP, &mut random);
                let (one, other) = (ours.ask(question).unwrap(), theirs.ask(question).unwrap());
                assert!(one.found > 0, "{question:?}");
                same(&[vec![(question, one)], vec![(question, other)]]).unwrap();
            }
        }
    }
}
