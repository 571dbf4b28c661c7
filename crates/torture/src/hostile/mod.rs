//! Hostile files: valid files in which fields, bytes, ranges or pointers were changed and checksums made correct again.
//!
//! ```text
//! errors       the first error of several steps
//! options      how every file is opened
//! files        one file, or the two of one database
//! graph        block references; seals a change up to the meta block
//! mutate       turns input bytes into changes
//! base_file files in memory
//! bases        valid files with every kind of block
//! read         reads everything in a snapshot
//! messages_*   a file with topics, a queue and a bucket; calls to all their methods
//! containers_* a file with containers; calls to all their methods
//! relations    a file with relations; calls to all their methods
//! batch_reads  batches, ranks, parts, windows: reads that answer many at once
//! write        writes to every table and series
//! maintenance  pages by owner, differences, backups, copies, salvage, compaction
//! exercise     open, check, read, write, again
//! ```
//!
//! Each case runs in a child process with a memory limit, and the parent process enforces a time limit. A
//! panic, an abort, too much memory or a hang is a finding; any typed error or answer is fine.

#![expect(clippy::print_stdout, reason = "a program talks")]

mod base_file;
pub mod bases;
pub mod batch_reads;
mod containers_base;
mod containers_read;
mod containers_write;
mod errors;
pub mod exercise;
pub mod files;
pub mod graph;
pub mod maintenance;
mod messages_base;
mod messages_read;
mod messages_write;
pub mod mutate;
mod options;
mod read;
mod relations;
mod write;

use crate::arguments::{Arguments, folder, own_program};
use exercise::{Went, exercise};
use files::Files;
use mutate::derive;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tidalite_testkit::rng::{Rng, mix};

/// Number of bytes of memory that a case may use, in addition to the memory of the process before the first case.
const MEMORY_BYTES: u64 = 256 << 20;
/// Time limit of a case, far above the normal time, because machines may be busy. Every `LOOK_TIME` the parent process
/// checks the time. Each check counts at most twice that interval, so that a program that is suspended as a whole is
/// not reported as a hang.
const CASE_TIME: Duration = Duration::from_secs(10);
const LOOK_TIME: Duration = Duration::from_millis(10);
/// Number of input bytes that determine the changes of a file.
const INPUT_BYTES: usize = 96;
/// Number of cases that one child process runs.
const CASES_OF_A_CHILD: u64 = 2_000;

fn input(seed: u64, case: u64) -> Vec<u8> {
    let mut bytes = vec![0; INPUT_BYTES];
    Rng::new(mix(seed ^ mix(case))).fill(&mut bytes);
    bytes
}

/// Runs the search: `--files`, `--seed`, `--threads`, `--failures` (number of failures after which the search stops).
///
/// # Errors
/// Returns the failures that the search found.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let files = arguments.number("--files", 100_000)?;
    let seed = arguments.number("--seed", 0)?;
    let first = arguments.number("--first", 0)?;
    let threads = arguments.number("--threads", 2)?;
    let failures_max = arguments.number("--failures", 1)? as usize;
    let started = Instant::now();
    let next = AtomicU64::new(first);
    let copies = folder("hostile").map_err(|error| error.to_string())?;
    let (went, found) = (Mutex::new(BTreeMap::new()), Mutex::new(Vec::new()));
    let count =
        |found: &Mutex<Vec<String>>| found.lock().unwrap_or_else(PoisonError::into_inner).len();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let from = next.fetch_add(CASES_OF_A_CHILD, Ordering::Relaxed);
                    let to = (from + CASES_OF_A_CHILD).min(first + files);
                    if from >= to || count(&found) >= failures_max {
                        return;
                    }
                    watch((seed, &copies), (from, to), failures_max, &went, &found);
                }
            });
        }
    });
    let _ = std::fs::remove_dir_all(&copies);
    let went = went.into_inner().unwrap_or_else(PoisonError::into_inner);
    let cases: u64 = went.values().sum();
    println!(
        "{cases} hostile files, seed {seed} from {first}: {went:?}, {:.1} s",
        started.elapsed().as_secs_f64()
    );
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    if found.is_empty() {
        Ok(())
    } else {
        Err(found.join("\n"))
    }
}

type Shared<T> = Mutex<T>;

/// Runs cases `from..to` in child processes, a new process after each failure; the children may write files to the
/// folder `copies`.
fn watch(
    (seed, copies): (u64, &Path),
    (mut from, to): (u64, u64),
    failures_max: usize,
    went: &Shared<BTreeMap<String, u64>>,
    found: &Shared<Vec<String>>,
) {
    while from < to {
        let (last, problem) = child((seed, copies), from, to, went);
        let Some(problem) = problem else { return };
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        found.push(format!("seed {seed}, case {last}: {problem}"));
        if found.len() >= failures_max {
            return;
        }
        from = last + 1;
    }
}

/// Runs one child process; returns the number of the last case begun, and the failure of that case.
fn child(
    (seed, copies): (u64, &Path),
    from: u64,
    to: u64,
    went: &Shared<BTreeMap<String, u64>>,
) -> (u64, Option<String>) {
    let mut child = match spawn((seed, copies), from, to) {
        Ok(child) => child,
        Err(error) => return (from, Some(error)),
    };
    let case = Arc::new(AtomicU64::new(from));
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let listener = {
        let case = Arc::clone(&case);
        std::thread::spawn(move || {
            let mut tally: BTreeMap<String, u64> = BTreeMap::new();
            let lines = out.into_iter().flat_map(|out| BufReader::new(out).lines());
            for line in lines.map_while(Result::ok) {
                match line.parse() {
                    Ok(number) => case.store(number, Ordering::Relaxed),
                    Err(_) => *tally.entry(line).or_default() += 1,
                }
            }
            tally
        })
    };
    let complaints = std::thread::spawn(move || {
        let mut text = String::new();
        if let Some(mut err) = err {
            let _ = err.read_to_string(&mut text);
        }
        text
    });
    let hung = !ends(&mut child, &case);
    if hung {
        let _ = child.kill();
    }
    let status = child.wait();
    let tally = listener.join().unwrap_or_default();
    let mut went = went.lock().unwrap_or_else(PoisonError::into_inner);
    for (how, times) in tally {
        *went.entry(how).or_default() += times;
    }
    let last = case.load(Ordering::Relaxed);
    if hung {
        return (last, Some(format!("takes more than {CASE_TIME:?}")));
    }
    match status {
        Ok(status) if status.success() => (last, None),
        Ok(status) => {
            let said = complaints.join().unwrap_or_default();
            let lines: Vec<&str> = said.lines().filter(|l| !l.starts_with("note:")).collect();
            (last, Some(format!("{status}: {}", lines.join(" ").trim())))
        }
        Err(error) => (last, Some(error.to_string())),
    }
}

fn spawn((seed, copies): (u64, &Path), from: u64, to: u64) -> Result<Child, String> {
    own_program()
        .arg("hostile-cases")
        .env("RUST_BACKTRACE", "0")
        .env("TMPDIR", copies)
        .args(["--seed", &seed.to_string()])
        .args(["--first", &from.to_string(), "--end", &to.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())
}

/// Waits for the end of a child process; returns false if one case takes too long.
fn ends(child: &mut Child, case: &AtomicU64) -> bool {
    let (mut at, mut took) = (case.load(Ordering::Relaxed), Duration::ZERO);
    loop {
        let looked = Instant::now();
        std::thread::sleep(LOOK_TIME);
        if !matches!(child.try_wait(), Ok(None)) {
            return true;
        }
        let now = case.load(Ordering::Relaxed);
        if now != at {
            (at, took) = (now, Duration::ZERO);
        }
        took += looked.elapsed().min(2 * LOOK_TIME);
        if took > CASE_TIME {
            return false;
        }
    }
}

/// The code of the child process: runs cases `--first` to `--end`, and prints the number of each before it begins.
///
/// # Errors
/// If the valid files cannot be created.
pub fn cases(arguments: &Arguments) -> Result<(), String> {
    let (seed, first) = (
        arguments.number("--seed", 0)?,
        arguments.number("--first", 0)?,
    );
    let end = arguments.number("--end", first + 1)?;
    let bases = bases::all()?;
    limit_memory()?;
    let mut out = std::io::stdout().lock();
    for case in first..end {
        let base = &bases[case as usize % bases.len()];
        let (files, kind) = derive(base, &input(seed, case));
        if arguments.has("--verbose") {
            println!("case {case}: {}, {kind:?}", base.name);
        }
        if let Some(path) = arguments.text("--save") {
            let (first, second) = files.parts();
            std::fs::write(path, first).map_err(|error| error.to_string())?;
            if let Some(second) = second {
                let path = Path::new(path).with_extension("large");
                std::fs::write(path, second).map_err(|error| error.to_string())?;
            }
        }
        let _ = writeln!(out, "{case}").and_then(|()| out.flush());
        let _ = writeln!(out, "{}", word(exercise(&files)));
    }
    Ok(())
}

const fn word(went: Went) -> &'static str {
    match went {
        Went::Refused => "refused",
        Went::Unreadable => "damage found",
        Went::Unwritable => "not writable",
        Went::Used => "used",
    }
}

fn limit_memory() -> Result<(), String> {
    let statm = std::fs::read_to_string("/proc/self/statm").map_err(|error| error.to_string())?;
    let pages: u64 = statm
        .split(' ')
        .next()
        .and_then(|word| word.parse().ok())
        .unwrap_or(0);
    let bytes = pages * rustix::param::page_size() as u64 + MEMORY_BYTES;
    let limit = Rlimit {
        current: Some(bytes),
        maximum: getrlimit(Resource::As).maximum,
    };
    setrlimit(Resource::As, limit).map_err(|error| error.to_string())
}

/// Target of an external fuzzer: creates one file from input bytes. The first byte chooses a valid file, the others
/// change it. With `--raw`, the bytes are the file itself.
///
/// # Errors
/// If the input bytes cannot be read.
pub fn fuzz(arguments: &Arguments) -> Result<(), String> {
    let mut bytes = Vec::new();
    match arguments.text("--input") {
        Some(path) => bytes = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?,
        None => {
            std::io::stdin()
                .read_to_end(&mut bytes)
                .map_err(|error| error.to_string())?;
        }
    }
    println!("{}", word(fuzz_bytes(&bytes, arguments.has("--raw"))?));
    Ok(())
}

/// Like `fuzz`, for a fuzzer that runs in this process and passes the input bytes.
///
/// # Errors
/// If the valid files cannot be created.
pub fn fuzz_bytes(bytes: &[u8], raw: bool) -> Result<Went, String> {
    if raw {
        return Ok(exercise(&Files::one(bytes.to_vec())));
    }
    let bases = bases::all()?;
    let (first, rest) = bytes.split_first().unwrap_or((&0, &[]));
    let base = &bases[usize::from(*first) % bases.len()];
    Ok(exercise(&derive(base, rest).0))
}

/// Runs the operations of this test on each unchanged valid file; returns how far each file came, by name.
///
/// # Errors
/// If the valid files cannot be created; otherwise the first error of an operation.
pub fn sound() -> Result<Vec<(String, Went)>, String> {
    let mut all = Vec::new();
    for base in bases::all()? {
        let (went, done) = exercise::exercise_telling(&base.files);
        done.map_err(|error| format!("{}: {error}", base.name))?;
        all.push((base.name, went));
    }
    Ok(all)
}

/// The kinds of blocks in the valid files, with the number of blocks of each kind.
///
/// # Errors
/// If the valid files cannot be created.
pub fn kinds() -> Result<BTreeMap<String, usize>, String> {
    let mut kinds = BTreeMap::new();
    for base in bases::all()? {
        for kind in base.kinds() {
            *kinds.entry(format!("{kind:?}")).or_default() += 1;
        }
    }
    Ok(kinds)
}
