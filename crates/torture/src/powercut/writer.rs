//! The writing process, which reports to the oracle (the judging process) through a pipe that survives power cuts.
//!
//! ```text
//! o            the file is open (created, if it was missing)
//! b number     the durable commit of this transaction begins, or a sync of it
//! a number     it is acknowledged
//! t number     the lazy commit of this transaction begins
//! l number     it is acknowledged
//! v number     this transaction is committed, visible only in this process
//! e text       an error; `again text` result of the next attempt to commit
//! ```

use crate::arguments::{Arguments, say};
use crate::model::model_of;
use crate::seeded::enable_by_name;
use crate::workload::script::{Script, number_of, small_tuning};
use std::path::Path;
use tidalite::{Database, Durability, Options, Result};

/// A line that the writer has reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// The writer has opened the file.
    Opened,
    /// The durable commit of the transaction with this number begins, or a sync that makes it durable.
    Begun(u64),
    /// The commit or sync of this transaction is acknowledged as durable.
    Acknowledged(u64),
    /// The lazy commit of this transaction begins.
    Trying(u64),
    /// The lazy commit of this transaction is acknowledged: it survives the death of this process.
    Lazy(u64),
    /// The transaction with this number is committed, but visible only in this process.
    Visible(u64),
    /// An error occurred.
    Failed(String),
    /// Result of the next attempt to commit after an error.
    Again(String),
}

impl Said {
    /// Parses a line from the writer; `None` for an incomplete line.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        Some(match word {
            "o" => Self::Opened,
            "b" => Self::Begun(rest.parse().ok()?),
            "a" => Self::Acknowledged(rest.parse().ok()?),
            "t" => Self::Trying(rest.parse().ok()?),
            "l" => Self::Lazy(rest.parse().ok()?),
            "v" => Self::Visible(rest.parse().ok()?),
            "e" => Self::Failed(rest.to_owned()),
            "again" => Self::Again(rest.to_owned()),
            _ => return None,
        })
    }
}

/// A lazy transaction whose number is a multiple of this number is made durable by a sync.
const SYNCED: u64 = 5;

fn one_line(error: &tidalite::Error) -> String {
    error.to_string().replace('\n', " ")
}

/// Options with which the writer and the oracle open the file.
pub fn options(map: bool) -> Options {
    Options::new().tuning(small_tuning().map(map))
}

/// Runs transactions until an error occurs, or for `--commits` transactions, and reports each step. `--bug` enables a
/// deliberate bug.
///
/// # Errors
/// If arguments are invalid.
pub fn run(arguments: &Arguments) -> std::result::Result<(), String> {
    let path = arguments.text("--file").ok_or("--file is needed")?;
    let script = Script::new(arguments.number("--script", 0)?);
    let map = arguments.number("--map", 1)? != 0;
    let commits = arguments.number("--commits", u64::MAX)?;
    if let Some(name) = arguments.text("--bug") {
        enable_by_name(name)?;
    }
    let path = Path::new(path);
    let mut options = options(map);
    if let Some(lock) = arguments.text("--lock") {
        options = options.lock_path(lock);
    }
    let mut opened = None;
    if let Err(error) = write(path, &script, &options, commits, &mut opened) {
        say(&format!("e {}", one_line(&error)));
        // After a failed sync no commit may succeed; after any other error a commit may succeed.
        if let Some((db, next)) = opened {
            let again = again(&db, &script, next);
            say(&match again {
                Ok(()) => "again committed".to_owned(),
                Err(error) => format!("again {}", one_line(&error)),
            });
        }
    }
    Ok(())
}

fn write(
    path: &Path,
    script: &Script,
    options: &Options,
    commits: u64,
    opened: &mut Option<(Database, u64)>,
) -> Result<()> {
    let db = options.open(path)?;
    say("o");
    let snap = db.begin_read()?;
    let (mut model, first) = (model_of(&snap)?, number_of(&snap)? + 1);
    drop(snap);
    for number in first..first.saturating_add(commits) {
        *opened = Some((db.clone(), number));
        let how = script.durability(number);
        let (before, after) = match how {
            Durability::None => (None, "v"),
            Durability::Lazy => (Some("t"), "l"),
            _ => (Some("b"), "a"),
        };
        let begun = || {
            before
                .into_iter()
                .for_each(|word| say(&format!("{word} {number}")))
        };
        model = script.step(&db, number, &model, how, begun)?;
        say(&format!("{after} {number}"));
        if how == Durability::Lazy && number.is_multiple_of(SYNCED) {
            *opened = Some((db.clone(), number + 1));
            say(&format!("b {number}"));
            db.sync()?;
            say(&format!("a {number}"));
        }
    }
    Ok(())
}

fn again(db: &Database, script: &Script, number: u64) -> Result<()> {
    let model = model_of(&db.begin_read()?)?;
    // The commit is reported before it begins, because it may survive a power cut.
    let begun = || say(&format!("b {number}"));
    script.step(db, number, &model, Durability::Durable, begun)?;
    say(&format!("a {number}"));
    Ok(())
}
