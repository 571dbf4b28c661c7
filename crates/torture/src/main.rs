//! `tidalite-torture`: long-running searches for failures. The text `USAGE` lists them.
//!
//! When a search fails, it prints its seed; the same seed gives the same failure on every machine.

#![expect(clippy::print_stdout, reason = "a program talks")]

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;
use tidalite_torture::arguments::Arguments;
use tidalite_torture::crash::{Plan, Tally, describe, examine, watch};
use tidalite_torture::{flips, hostile, inject, kills, long_reader, powercut, seeded};

/// The text that `--help` prints.
const USAGE: &str = "\
tidalite-torture crash [--states N] [--seed S] [--threads T] [--page-size B] [--flush-threads N] [--bug NAME]   (with a deliberate bug)
tidalite-torture watch [--seeds N] [--seed S] [--bug NAME]
tidalite-torture show [--seed S]
tidalite-torture bugs [--bug NAME] [--seed S]   (how soon each deliberate bug is found, from seed S on)
tidalite-torture flips [--seed S] [--threads T] [--file N]   (from the N-th kind of file on)
tidalite-torture powercut [--cuts N] [--seed S] [--flavour NAME] [--verbose] [--bug NAME]   (as root, with FUSE and loop devices)
tidalite-torture hostile [--files N] [--seed S] [--threads T] [--failures N]
tidalite-torture hostile-cases --seed S --first N [--verbose] [--save F]   (one case again)
tidalite-torture fuzz [--input F] [--raw]       (one file from the bytes of a fuzzer)
tidalite-torture kills [--readers N] [--writers N] [--seed S] [--bug NAME]
tidalite-torture inject [--seed S] [--step N] [--rounds N]
tidalite-torture long-reader [--pairs N] [--value-bytes B] [--overwrites N] [--per-commit N] [--seed S]
tidalite-torture write --file F --script S      (what the above runs in a process of its own)
tidalite-torture restore --folder F             (and this)";

/// Examines one seed after another on several threads, until the requested number of crash states is reached.
fn crash(arguments: &Arguments) -> Result<(), String> {
    let states = arguments.number("--states", 100_000)?;
    let first = arguments.number("--seed", 0)?;
    let threads = arguments.number("--threads", 2)?;
    let page_size = arguments.number("--page-size", 512)? as usize;
    let flush_threads = arguments.number("--flush-threads", 0)? as usize;
    let plan_of = |seed| match flush_threads {
        0 => Plan::of_seed(seed, page_size),
        threads => Plan::of_seed(seed, page_size).helped(threads),
    };
    let bug = arguments.text("--bug");
    bug.map_or(Ok(()), |name| seeded::switch(name).map(drop))?;
    let (tally, next, failed) = (
        Tally::default(),
        AtomicU64::new(first),
        AtomicBool::new(false),
    );
    let started = Instant::now();
    let problems: Vec<String> = std::thread::scope(|scope| {
        let work = || {
            // A deliberate bug affects only the thread that enables it, so each thread enables it.
            if let Some(switch) = bug.and_then(|name| seeded::switch(name).ok()) {
                (switch.1)(true);
            }
            let mut problem = None;
            while tally.states.load(Ordering::Relaxed) < states && !failed.load(Ordering::Relaxed) {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if let Err(error) = examine(seed, &plan_of(seed), &tally) {
                    failed.store(true, Ordering::Relaxed);
                    problem = Some(format!("seed {seed}: {error}"));
                }
            }
            problem
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .filter_map(|worker| {
                let failed = |_| Some("a failed assertion, which stands above".to_owned());
                worker.join().unwrap_or_else(failed)
            })
            .collect()
    });
    println!(
        "{} crash states of {} seeds (from {first}), {} of them inside or after a reopening, {} times one in that, {} asked questions, {} used up their messages, {} with rows of relations and an index, {} checked before a writer opened them, {} with commits in the log, {} with leaves and {} with blocks of appenders, in {:.1} s",
        tally.states.load(Ordering::Relaxed),
        next.load(Ordering::Relaxed) - first,
        tally.nested.load(Ordering::Relaxed),
        tally.deep.load(Ordering::Relaxed),
        tally.asked.load(Ordering::Relaxed),
        tally.used_up.load(Ordering::Relaxed),
        tally.related.load(Ordering::Relaxed),
        tally.read_only.load(Ordering::Relaxed),
        tally.replayed.load(Ordering::Relaxed),
        tally.leaves.load(Ordering::Relaxed),
        tally.blocks.load(Ordering::Relaxed),
        started.elapsed().as_secs_f64()
    );
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems.join("\n"))
    }
}

fn watched(arguments: &Arguments) -> Result<(), String> {
    let (seeds, first) = (
        arguments.number("--seeds", 200)?,
        arguments.number("--seed", 0)?,
    );
    if let Some(bug) = arguments.text("--bug") {
        seeded::enable_by_name(bug)?;
    }
    let plan = Plan {
        steps: 40,
        ..Plan::default()
    };
    for seed in first..first + seeds {
        watch(seed, &plan).map_err(|error| format!("seed {seed}: {error}"))?;
    }
    println!("{seeds} runs under the write-protocol monitor (from seed {first}), no violation");
    Ok(())
}

/// Checks that the crash search finds the deliberate bugs, or only the bug named by `--bug`.
fn bugs(arguments: &Arguments) -> Result<(), String> {
    let first = arguments.number("--seed", 0)?;
    let switches = match arguments.text("--bug") {
        Some(name) => vec![seeded::switch(name)?],
        None => seeded::switches(),
    };
    let mut missed = Vec::new();
    for switch in switches {
        let finding = seeded::find(&switch, first);
        match finding.found {
            Some(_) => println!("{finding}"),
            None => missed.push(finding.bug),
        }
    }
    if missed.is_empty() {
        Ok(())
    } else {
        Err(format!("not found: {missed:?}"))
    }
}

fn flips(arguments: &Arguments) -> Result<(), String> {
    let threads = arguments.number("--threads", 2)? as usize;
    let seed = arguments.number("--seed", 0)?;
    let first = arguments.number("--file", 0)? as usize;
    for &contents in flips::Contents::ALL.iter().skip(first) {
        let started = Instant::now();
        let told = |problem| format!("{contents:?}, seed {seed}: {problem}");
        let found = flips::examine(contents, seed, flips::Depth::EveryBitAndContent, threads)
            .map_err(told)?;
        let seconds = started.elapsed().as_secs_f64();
        println!("{contents:?}: {found:?} in {seconds:.1} s, no wrong answer");
        let started = Instant::now();
        let healed = flips::heal(contents, seed, flips::Depth::EveryBit, threads).map_err(told)?;
        let seconds = started.elapsed().as_secs_f64();
        println!("{contents:?}: {healed} flips in the head healed in {seconds:.1} s");
    }
    Ok(())
}

fn show(arguments: &Arguments) -> Result<(), String> {
    let page_size = arguments.number("--page-size", 512)? as usize;
    let seed = arguments.number("--seed", 0)?;
    println!("{}", describe(seed, &Plan::of_seed(seed, page_size))?);
    Ok(())
}

/// Runs the measurement `long-reader`; the defaults are 200 MB of pairs and a million overwritten values.
fn long_reader(arguments: &Arguments) -> Result<(), String> {
    let pairs = arguments.number("--pairs", 1_500_000)?;
    let value_bytes = arguments.number("--value-bytes", 100)? as usize;
    let overwrites = arguments.number("--overwrites", 1_000_000)?;
    let per_commit = arguments.number("--per-commit", 100)?;
    let seed = arguments.number("--seed", 1)?;
    let path = std::env::temp_dir().join("tidalite-long-reader.tdl");
    drop(std::fs::remove_file(&path));
    let held = long_reader::long_reader(&path, pairs, value_bytes, overwrites, per_commit, seed)
        .map_err(|error| error.to_string())?;
    drop(std::fs::remove_file(&path));
    drop(std::fs::remove_file(path.with_extension("tdl-lock")));
    println!("{held:#?}");
    println!("held {:.3} of what two versions take", held.ratio());
    if held.ratio() > 1.15 {
        return Err("more than 1.15".to_owned());
    }
    Ok(())
}

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let command = if arguments.is_empty() {
        String::new()
    } else {
        arguments.remove(0)
    };
    let arguments = Arguments(arguments);
    let asks = |text: &str| matches!(text, "--help" | "-h" | "help");
    if asks(&command) || arguments.0.iter().any(|argument| asks(argument)) {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let result = match command.as_str() {
        "crash" => crash(&arguments),
        "watch" => watched(&arguments),
        "show" => show(&arguments),
        "bugs" => bugs(&arguments),
        "flips" => flips(&arguments),
        "powercut" => powercut::run(&arguments),
        "hostile" => hostile::run(&arguments),
        "hostile-cases" => hostile::cases(&arguments),
        "hostile-kinds" => hostile::kinds().map(|kinds| println!("{kinds:?}")),
        "fuzz" => hostile::fuzz(&arguments),
        "kills" => kills::run(&arguments),
        "kills-child" => kills::child::run(&arguments),
        "inject" => inject::run(&arguments),
        "restore" => inject::restore::run(&arguments),
        "long-reader" => long_reader(&arguments),
        "write" => powercut::writer::run(&arguments),
        _ => Err(USAGE.to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            println!("{problem}");
            ExitCode::FAILURE
        }
    }
}
