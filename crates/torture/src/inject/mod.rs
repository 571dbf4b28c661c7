//! Makes system calls of a real writing process fail, or kills the process at them, one call after another, with
//! `strace -e inject`.
//!
//! For each kind of call and each error, the N-th such call fails, once or from then on, N = 1, 2, 3, ... with growing
//! gaps, until a run ends without reaching it. (Without a memory map a run makes 270 similar calls of `pread64`, and a
//! dozen calls of any other kind.) Each run continues with the file of the previous one. After each run the file must
//! open, its check must be clean, and it must have the content of the last acknowledged transaction or of a later one
//! that had begun. An error may cost lazy commits, so after an error only transactions acknowledged as durable count.
//! The process must end by itself with a typed error, unless the call was to kill it. The same is done with the restore
//! of a backup (`restore.rs`).

#![expect(clippy::print_stdout, reason = "a program talks")]

pub mod restore;
mod strace;

use crate::arguments::{Arguments, folder};
use crate::model::{digest_of, model_of};
use crate::powercut::writer::{Said, options};
use crate::workload::script::{Oracle, Script, number_of};
use std::path::Path;
use std::process::{Command, Output};
use std::time::Instant;
use strace::{is_killed, is_met, own_path, strace};
use tidalite_testkit::rng::Rng;

/// The system calls, each with the errors that it may return. Short writes of `pwrite64` are not simulated, because
/// strace would report bytes that were not written.
const CALLS: [(&str, &[&str]); 12] = [
    ("fdatasync", &["EIO", "ENOSPC"]),
    ("fsync", &["EIO", "ENOSPC"]),
    ("pwrite64", &["EIO", "ENOSPC", "EDQUOT", "EINTR"]),
    ("pwritev", &["EIO", "ENOSPC", "EDQUOT", "EINTR"]),
    ("pwritev2", &["EIO", "ENOSPC", "EINTR", "EOPNOTSUPP"]),
    ("pread64", &["EIO"]),
    ("fallocate", &["ENOSPC", "EIO", "EOPNOTSUPP"]),
    ("ftruncate", &["EIO", "ENOSPC"]),
    ("mmap", &["ENOMEM"]),
    ("openat", &["EIO", "EMFILE", "EACCES"]),
    ("fcntl", &["ENOLCK"]),
    ("statx", &["EIO"]),
];
/// Number of commits in one run of the process.
const COMMITS: u64 = 5;
/// Maximum number of calls of one kind that are tested.
const CALLS_MAX: u64 = 1000;
/// The gap from the N-th call to the next call that fails is at most N / `APART`.
const APART: u64 = 8;
/// Number of scripts of transactions in a full search, each on a file of its own.
const ROUNDS: u64 = 4;

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    runs: u64,
    errors: u64,
    killed: u64,
    not_met: u64,
    acknowledged: u64,
    lazy: u64,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.runs += other.runs;
        self.errors += other.errors;
        self.killed += other.killed;
        self.not_met += other.not_met;
        self.acknowledged += other.acknowledged;
        self.lazy += other.lazy;
    }
}

struct Search<'a> {
    file: &'a Path,
    script: Script,
    oracle: Oracle,
    /// Number of the last transaction that was acknowledged as durable, or found in the file.
    acknowledged: u64,
    tally: Tally,
}

/// Runs this search. For a short run, `--step N` tests only every N-th call, and `--rounds N` sets the number of
/// scripts.
///
/// # Errors
/// Returns the failure that the search found.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let probe = Command::new("strace")
        .args(["-f", "--seccomp-bpf", "-qq"])
        .args(["-e", "inject=sync:error=EIO", "true"])
        .output();
    match probe {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            println!(
                "skipped: strace: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            );
            return Ok(());
        }
        Err(error) => {
            println!("skipped: strace: {error}");
            return Ok(());
        }
    }
    let seed = arguments.number("--seed", 0)?;
    let step = arguments.number("--step", 1)?;
    let rounds = arguments.number("--rounds", ROUNDS)?;
    let folder = folder("inject").map_err(|error| error.to_string())?;
    let started = Instant::now();
    let mut rng = Rng::new(seed);
    let mut total = Tally::default();
    for (call, errors) in CALLS {
        let mut of_call = Tally::default();
        for round in 0..rounds {
            let file = folder.join(format!("{call}-{round}.tdl"));
            let found = through(&file, (call, errors), step, &mut rng);
            of_call.add(found.map_err(|problem| format!("seed {seed}, {call} {problem}"))?);
        }
        println!("{call}: {of_call:?}");
        total.add(of_call);
    }
    let restored = restore::search(&folder, seed, step)?;
    let _ = std::fs::remove_dir_all(&folder);
    println!(
        "{} runs, {} ended with an error, {} killed; {} acknowledged commits, {} lazy ones; {} restores, {} ended with an error, {} killed; seed {seed}, {:.1} s, nothing lost",
        total.runs,
        total.errors,
        total.killed,
        total.acknowledged,
        total.lazy,
        restored.runs,
        restored.errors,
        restored.killed,
        started.elapsed().as_secs_f64()
    );
    Ok(())
}

/// Injects every error of one kind of call, and a kill, into runs of one new random script of transactions.
fn through(
    file: &Path,
    (call, errors): (&str, &[&str]),
    step: u64,
    rng: &mut Rng,
) -> Result<Tally, String> {
    let script = Script::new(rng.u64());
    let mut search = Search {
        file,
        script,
        oracle: Oracle::new(script).map_err(|error| error.to_string())?,
        acknowledged: 0,
        tally: Tally::default(),
    };
    for error in errors.iter().copied().chain(["KILL"]) {
        for forever in [false, true] {
            // A process is right to repeat an interrupted call forever, so EINTR is injected only once. A process can
            // be killed only once.
            if matches!(error, "KILL" | "EINTR") && forever {
                continue;
            }
            search
                .calls(call, error, forever, step, rng)
                .map_err(|problem| format!("{error}: {problem}"))?;
        }
    }
    Ok(search.tally)
}

impl Search<'_> {
    fn calls(
        &mut self,
        call: &str,
        error: &str,
        forever: bool,
        step: u64,
        rng: &mut Rng,
    ) -> Result<(), String> {
        let mut at = 1 + rng.below(step);
        // The calls differ between runs with a memory map and runs without one.
        let mut modes = vec![true, false];
        while at < CALLS_MAX && !modes.is_empty() {
            let mut met = Vec::new();
            for map in modes {
                if self.one(call, error, at, forever, map)? {
                    met.push(map);
                }
            }
            modes = met;
            at += step * (1 + rng.below(1 + at / APART));
        }
        Ok(())
    }

    /// Performs one run; returns false if the run ended before it reached the call.
    fn one(
        &mut self,
        call: &str,
        error: &str,
        at: u64,
        forever: bool,
        map: bool,
    ) -> Result<bool, String> {
        let until = if forever { "+" } else { "" };
        let log = self.file.with_extension("log");
        // Errors are injected only into calls on the database and its lock file, not into calls that load the program.
        let lock = format!("{}-lock", self.file.display());
        let output = strace(&log, call, error, &format!("{at}{until}"))
            .arg("-P")
            .arg(self.file)
            .args(["-P", &lock])
            .arg(own_path()?)
            .arg("write")
            .args(["--script", &self.script.seed.to_string()])
            .args(["--commits", &COMMITS.to_string()])
            .args(["--map", if map { "1" } else { "0" }])
            .arg("--file")
            .arg(self.file)
            .output()
            .map_err(|error| format!("strace: {error}"))?;
        let (met, calls) = is_met(&log, &output)?;
        self.tally.runs += 1;
        self.tally.not_met += u64::from(!met);
        self.judge(&output, error == "KILL", met)
            .map_err(|problem| {
                let said = String::from_utf8_lossy(&output.stdout);
                format!("call {at}{until}: {problem}; it said {said:?}, called\n{calls}")
            })?;
        Ok(met)
    }

    fn judge(&mut self, output: &Output, kill: bool, met: bool) -> Result<(), String> {
        // The transactions begun since the last durable acknowledgement, and the last lazy transaction that was
        // acknowledged.
        let (mut begun, mut lazy) = (Vec::new(), 0);
        let mut failed = false;
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            match Said::parse(line).ok_or_else(|| format!("says {line:?}"))? {
                Said::Opened | Said::Visible(_) | Said::Again(_) => {}
                Said::Begun(number) | Said::Trying(number) => begun.push(number),
                Said::Lazy(number) => {
                    lazy = number;
                    self.tally.lazy += 1;
                }
                Said::Acknowledged(number) => {
                    self.acknowledged = number;
                    self.tally.acknowledged += 1;
                    begun.clear();
                }
                Said::Failed(_) => failed = true,
            }
        }
        let status = output.status;
        let killed = is_killed(output);
        self.tally.errors += u64::from(failed);
        self.tally.killed += u64::from(killed);
        if killed != (kill && met) || !killed && status.code() != Some(0) {
            let complaint = String::from_utf8_lossy(&output.stderr);
            return Err(format!("ended with {status}: {complaint}"));
        }
        if !self.file.exists() {
            return if self.acknowledged == 0 {
                Ok(())
            } else {
                Err("the file is gone".to_owned())
            };
        }
        let text = |error: tidalite::Error| format!("reopened: {error}");
        let db = options(true).open(self.file).map_err(text)?;
        let number = number_of(&db.begin_read().map_err(text)?).map_err(text)?;
        let from = if failed { 0 } else { lazy };
        let known = number == self.acknowledged || begun.contains(&number);
        if !known || number < from {
            return Err(format!(
                "stands on {number}; {} was acknowledged, {from} lazily, begun were {begun:?}",
                self.acknowledged
            ));
        }
        if digest_of(&db).map_err(text)? != self.oracle.digest(number).map_err(text)? {
            let found = model_of(&db.begin_read().map_err(text)?).map_err(text)?;
            let differs = self.oracle.differs(number, &found);
            return Err(format!("the content is not that of {number}: {differs}"));
        }
        let report = db.check().map_err(text)?;
        if !report.is_clean() {
            return Err(format!("check: {:?}", report.problems));
        }
        // Makes the commit that was found durable, because it may be lazy and the next injected error might lose it.
        db.sync().map_err(text)?;
        self.acknowledged = number;
        Ok(())
    }
}
