//! Restores a backup and its increment while system calls fail or kill the process. Afterwards the target file must be
//! missing or be the whole database.
//!
//! After an error, no file of the attempt may remain. After a kill, unfinished files may remain under other names, or
//! under the name of the second file.

use super::strace::{is_killed, is_met, own_path, strace};
use crate::arguments::{Arguments, say};
use crate::model::{Model, digest_of};
use crate::workload::script::{Oracle, Script, number_of, small_steps};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use tidalite::Durability;

/// The system calls, each with the errors that it may return. Calls that load the program are not in the list, because
/// they would be the first calls to fail.
const CALLS: [(&str, &[&str]); 8] = [
    ("fdatasync", &["EIO", "ENOSPC"]),
    ("fsync", &["EIO", "ENOSPC"]),
    ("pwrite64", &["EIO", "ENOSPC", "EINTR"]),
    ("pwritev2", &["EIO", "ENOSPC"]),
    ("fallocate", &["ENOSPC", "EOPNOTSUPP"]),
    ("ftruncate", &["EIO", "ENOSPC"]),
    ("linkat", &["EIO", "EPERM"]),
    ("unlink", &[]),
];
/// Number of commits before the pin, and minimum number of commits after it.
const COMMITS: u64 = 6;
/// Maximum number of commits that are made until a value is in the second file.
const COMMITS_MAX: u64 = 500;
/// Minimum size in bytes of values that are in the second file.
const LARGE_BYTES: u64 = 600;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) runs: u64,
    pub(crate) errors: u64,
    pub(crate) killed: u64,
}

/// The backups that are restored again and again.
struct Backups {
    folder: PathBuf,
    /// Number of the last commit in the backups.
    number: u64,
    digest: u64,
    tally: Tally,
}

/// Tests all errors of all calls, at every `step`-th call.
pub(super) fn search(folder: &Path, seed: u64, step: u64) -> Result<Tally, String> {
    let mut backups = Backups::made(&folder.join("restore"), seed)
        .map_err(|error| format!("a backup: {error}"))?;
    for (call, errors) in CALLS {
        for error in errors.iter().copied().chain(["KILL"]) {
            let mut at = 1;
            while backups
                .one(call, error, at)
                .map_err(|problem| format!("seed {seed}, {call} {error} {at}: {problem}"))?
            {
                at += step;
            }
        }
    }
    println!("restore: {:?}", backups.tally);
    Ok(backups.tally)
}

/// The program that runs under strace: restores the backups `full` and `increment` in a folder to `new.tdl` in that
/// folder.
///
/// # Errors
/// If arguments are invalid, or the restore fails.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let folder = Path::new(arguments.text("--folder").ok_or("--folder is needed")?);
    let open = |name: &str| File::open(folder.join(name)).map_err(|error| error.to_string());
    let chain = [open("full")?, open("increment")?];
    let restored = tidalite::maintenance::Restore::from(chain).to(folder.join("new.tdl"));
    let info = restored.map_err(|error| format!("e {error}"))?;
    say(&format!("r {}", info.txn.0));
    Ok(())
}

/// True if a value of the model is so large that it is in the second file.
fn is_large(model: &Model) -> bool {
    let mut values = model.tables.values().flat_map(|table| table.values());
    values.any(|value| value.len() as u64 >= LARGE_BYTES)
}

impl Backups {
    fn made(folder: &Path, seed: u64) -> Result<Self, Box<dyn std::error::Error>> {
        fs::create_dir_all(folder)?;
        let path = folder.join("old.tdl");
        let script = Script::new(seed);
        let mut oracle = Oracle::new(script)?;
        let db = small_steps()
            .large_values(folder.join("old.tdl-large"), LARGE_BYTES)
            .open(&path)?;
        let mut model = Model::default();
        let (mut number, mut digest) = (0, 0);
        while number < 2 * COMMITS || !is_large(&model) {
            number += 1;
            if number > COMMITS_MAX {
                return Err("this seed leaves no value in the second file".into());
            }
            model = script.step(&db, number, &model, Durability::Durable, || ())?;
            digest = oracle.digest(number)?;
            if number == COMMITS {
                // Makes sure that both backups contain values in both files.
                let mut tx = db.begin_write()?;
                tx.pin("base")?;
                tx.commit()?;
                db.backup()
                    .of("base")
                    .to_writer(&mut File::create(folder.join("full"))?)?;
            }
        }
        let mut increment = File::create(folder.join("increment"))?;
        db.backup().since("base").to_writer(&mut increment)?;
        drop(db);
        for name in ["old.tdl", "old.tdl-large", "old.tdl-lock"] {
            drop(fs::remove_file(folder.join(name)));
        }
        Ok(Self {
            folder: folder.to_owned(),
            number,
            digest,
            tally: Tally::default(),
        })
    }

    /// Performs one run; returns false if the run ended before it reached the call.
    fn one(&mut self, call: &str, error: &str, at: u64) -> Result<bool, String> {
        let log = self.folder.with_extension("log");
        let output = strace(&log, call, error, &at.to_string())
            .arg(own_path()?)
            .arg("restore")
            .arg("--folder")
            .arg(&self.folder)
            .output()
            .map_err(|error| format!("strace: {error}"))?;
        let (met, calls) = is_met(&log, &output)?;
        let killed = is_killed(&output);
        let done = output.status.success();
        self.tally.runs += 1;
        self.tally.killed += u64::from(killed);
        self.tally.errors += u64::from(!done && !killed);
        let judged = self.judge(done, killed);
        let judged = match (killed, error == "KILL" && met) {
            (true, false) | (false, true) => Err(format!("ended with {}", output.status)),
            _ if !met && !done => Err("failed by itself".to_owned()),
            _ => judged,
        };
        judged.map_err(|problem| {
            let said = String::from_utf8_lossy(&output.stdout);
            format!("{problem}; it said {said:?}, called\n{calls}")
        })?;
        Ok(met)
    }

    /// Checks the files that a run has left, and removes them.
    fn judge(&self, done: bool, killed: bool) -> Result<(), String> {
        let text = |error: tidalite::Error| format!("restored: {error}");
        let new = self.folder.join("new.tdl");
        if new.exists() {
            let db = small_steps().open(&new).map_err(text)?;
            let number = number_of(&db.begin_read().map_err(text)?).map_err(text)?;
            if number != self.number || digest_of(&db).map_err(text)? != self.digest {
                return Err(format!("the content is not that of {}", self.number));
            }
            let report = db.check().map_err(text)?;
            if !report.is_clean() {
                return Err(format!("check: {:?}", report.problems));
            }
            if !done && !killed {
                return Err("it is there after an error".to_owned());
            }
        } else if done {
            return Err("it is not there".to_owned());
        }
        let mut left = BTreeSet::<OsString>::new();
        for entry in fs::read_dir(&self.folder).map_err(|error| error.to_string())? {
            let entry = entry.map_err(|error| error.to_string())?;
            if entry.file_name() != "full" && entry.file_name() != "increment" {
                left.insert(entry.file_name());
                fs::remove_file(entry.path()).map_err(|error| error.to_string())?;
            }
        }
        if !done && !killed && !left.is_empty() {
            return Err(format!("an error left {left:?}"));
        }
        Ok(())
    }
}
