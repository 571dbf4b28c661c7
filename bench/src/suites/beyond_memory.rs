//! `beyond-memory`: a file eight times as large as the memory available to its process.
//!
//! Each engine runs in a process of its own, in a memory group (cgroup) that limits the memory of the process and
//! its page cache. Each step is a new process, and the file is dropped from the page cache
//! before it. If no group can be created, the suite reports that and measures nothing.
//!
//! | case | |
//! |---|---|
//! | `load` | ascending pairs of 16 + 484 bytes, durable transactions of 20,000, in pairs/s |
//! | `get` | random gets/s in the steady state: the second half of two minutes |
//! | `get-60s` | the rate at the end of the first minute after the cold opening, as a fraction of `get` |
//! | `scan` | all entries, after a cold opening, in entries/s |

mod group;

use std::process::Command;
use std::time::{Duration, Instant};

use crate::args::Options;
use crate::child;
use crate::contest::Contest;
use crate::engine::data::{Data, Random, Shape};
use crate::engine::{Kind, LMDB, PEERS, Promise, Result, Setup, TIDALITE};
use crate::meter::{Latencies, Meter, Sample};
use crate::os;
use group::Group;

const SHAPE: Shape = Shape {
    key_bytes: 16,
    value_bytes: 484,
};
/// Number of pairs in a transaction of the load.
const FILL: u64 = 20_000;
/// Duration of the gets in seconds at the default file size; with smaller files the gets take less time.
const GET_SECONDS: f64 = 120.0;
const MIB_FULL: f64 = 8192.0;
/// Number of time windows into which the gets are divided; the first minute is half of them.
const WINDOWS: usize = 24;

/// Runs the suite `beyond-memory`, with LMDB as the only peer unless other peers are named. Returns `None` if memory
/// cannot be limited on this machine.
pub(crate) fn run(options: &Options) -> Result<Option<Contest>> {
    let peers = match options.peers.as_slice() {
        [] => vec![LMDB.name.to_owned()],
        named => named.to_vec(),
    };
    let mut contest = Contest::new("beyond-memory", &[TIDALITE], &peers)?;
    let group = match options.memory_mib {
        0 => None,
        mib => match Group::with_memory(mib << 20) {
            Ok(group) => Some(group),
            Err(why) => {
                println!("beyond-memory: skipped: memory cannot be bounded here: {why}");
                return Ok(None);
            }
        },
    };
    for round in 0..options.rounds {
        for kind in contest.order(round) {
            of_one(kind, group.as_ref(), options, &mut contest)?;
        }
    }
    Ok(Some(contest))
}

fn of_one(
    kind: Kind,
    group: Option<&Group>,
    options: &Options,
    contest: &mut Contest,
) -> Result<()> {
    let dir = os::TempDir::within(&options.dir, kind.name)?;
    os::expect_disk(dir.path(), (options.mib << 20) * 3 / 2)
        .map_err(|short| format!("{short}: use --mib"))?;
    os::settle(dir.path())?;
    for step in ["load", "get", "scan"] {
        if !options.chosen(step) && step != "load" {
            continue;
        }
        let mut child = Command::new(std::env::current_exe()?);
        child.args(["beyond-memory-one", "--only", step, "--peers", kind.name]);
        child.arg("--dir").arg(dir.path());
        child.args(["--mib", &options.mib.to_string()]);
        child.args(["--memory-mib", &options.memory_mib.to_string()]);
        if let Some(group) = group {
            child.env(group::VARIABLE, group.path());
        }
        let output = child.stderr(std::process::Stdio::inherit()).output()?;
        if !output.status.success() {
            return Err(format!("{} {step}: {}", kind.name, output.status).into());
        }
        for line in String::from_utf8(output.stdout)?.lines() {
            child::take(line, kind, &UNITS, contest)?;
        }
        os::make_cold(dir.path())?;
    }
    Ok(())
}

/// The units of the cases, in which the child process reports.
const UNITS: [child::Unit; 4] = [
    ("pairs/s", false),
    ("gets/s", false),
    ("of-steady", false),
    ("entries/s", false),
];

/// The code of the child process: one step of one engine.
pub(crate) fn one(options: &Options) -> Result<()> {
    group::enter()?;
    let ([step], [name]) = (options.only.as_slice(), options.peers.as_slice()) else {
        return Err("one step and one engine are wanted".into());
    };
    let mut kinds = [TIDALITE].into_iter().chain(PEERS.iter().copied());
    let kind = kinds
        .find(|kind| kind.name == name)
        .ok_or("there is no such engine")?;
    let data = Data::new(SHAPE);
    let bytes = options.mib << 20;
    let pairs = bytes / SHAPE.pair_bytes();
    let setup = Setup {
        promise: Promise::Synced,
        data_bytes: bytes,
        cache_bytes: match options.memory_mib {
            0 => bytes / 8,
            mib => mib << 19,
        },
        jumping: step == "get",
    };
    let engine = (kind.open)(&options.dir, &setup)?;
    match step.as_str() {
        "load" => {
            let (mut latencies, mut txns) = (Latencies::default(), 0);
            let meter = Meter::start(&options.dir);
            for from in (0..pairs).step_by(FILL as usize) {
                let some = data.between(from, (from + FILL).min(pairs));
                latencies.time(|| engine.load(some))?;
                txns += 1;
            }
            let mut sample = meter.finish(pairs, engine.silent_syncs(txns), latencies);
            drop(engine);
            sample.file_bytes = os::disk_used(&options.dir)?;
            child::tell("load", "pairs/s", &sample);
        }
        "get" => {
            let seconds = (GET_SECONDS * options.mib as f64 / MIB_FULL).clamp(1.0, GET_SECONDS);
            let window = Duration::from_secs_f64(seconds / WINDOWS as f64);
            let (mut latencies, mut random) = (Latencies::default(), Random::new(19));
            let mut rates = Vec::new();
            let meter = Meter::start(&options.dir);
            let mut gets = 0;
            engine.read(&mut |reader| {
                for _ in 0..WINDOWS {
                    let (start, before) = (Instant::now(), gets);
                    while start.elapsed() < window {
                        let n = random.below(pairs);
                        let key = data.ascending(n);
                        let got = latencies.time(|| reader.get(key.as_ref()))?;
                        if got != Some(crate::engine::touch(data.value(n, 0))) {
                            return Err(format!("pair {n}: {got:?}").into());
                        }
                        gets += 1;
                    }
                    rates.push((gets - before) as f64 / start.elapsed().as_secs_f64());
                }
                Ok(())
            })?;
            let sample = meter.finish(gets, 0, latencies);
            let course: Vec<_> = rates.iter().map(|rate| format!("{rate:.0}")).collect();
            eprintln!("  {} gets/s in turn: {}", kind.name, course.join(" "));
            let (first, second) = rates.split_at(WINDOWS / 2);
            let steady = crate::report::median(second);
            let then = crate::report::median(&first[first.len() - 2..]);
            child::tell(
                "get",
                "gets/s",
                &Sample {
                    value: steady,
                    ..sample
                },
            );
            child::tell("get-60s", "of-steady", &Sample::of(then / steady));
        }
        "scan" => engine.read(&mut |reader| {
            let meter = Meter::start(&options.dir);
            let digest = reader.scan(&[], u64::MAX >> 1)?;
            let sample = meter.finish(digest.entries, 0, Latencies::default());
            child::tell("scan", "entries/s", &sample);
            child::answer("scan", digest.answer());
            Ok(())
        })?,
        other => return Err(format!("there is no step {other}").into()),
    }
    Ok(())
}
