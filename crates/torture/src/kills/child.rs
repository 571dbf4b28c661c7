//! The processes that are killed: writers take turns, readers hold snapshots. They report to the parent process in
//! lines:
//!
//! ```text
//! o                 the file is open
//! a number          this transaction is acknowledged
//! s number digest   content of a snapshot that was held for a while
//! x                 a writer has evicted the snapshot
//! e text            an error, or a snapshot that changed
//! ```

use super::setup::{flush_threads, options, script, tuning};
use crate::arguments::{Arguments, say};
use crate::model::{Model, digest_of_snapshot, model_of};
use crate::seeded::enable_by_name;
use crate::workload::round_robin::WRITE_BUFFER_BYTES;
use crate::workload::script::number_of;
use std::path::Path;
use std::time::Duration;
use tidalite::{Database, ReadTxn, Result};
use tidalite_testkit::rng::Rng;

/// A line that a child process has reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// The child process has opened the file.
    Opened,
    /// The commit of the transaction with this number is acknowledged.
    Acknowledged(u64),
    /// A snapshot of the transaction with this number has this digest.
    Seen(u64, u64),
    /// A writer has evicted the reader's snapshot.
    Evicted,
    /// An error occurred, or a snapshot changed.
    Failed(String),
}

impl Said {
    /// Parses a line from a child process.
    #[must_use]
    pub fn parse(line: &str) -> Self {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |i: usize| words.get(i).and_then(|word: &&str| word.parse().ok());
        match (words[0], number(1), number(2)) {
            ("o", ..) => Self::Opened,
            ("a", Some(number), _) => Self::Acknowledged(number),
            ("s", Some(number), Some(digest)) => Self::Seen(number, digest),
            ("x", None, None) => Self::Evicted,
            _ => Self::Failed(line.to_owned()),
        }
    }
}

/// Writes or reads the file until this process is killed.
///
/// # Errors
/// If arguments are invalid.
pub fn run(arguments: &Arguments) -> std::result::Result<(), String> {
    let path = Path::new(arguments.text("--file").ok_or("--file is needed")?);
    let seed = arguments.number("--script", 0)?;
    if let Some(name) = arguments.text("--bug") {
        enable_by_name(name)?;
    }
    let mut rng = Rng::new(arguments.number("--seed", 0)?);
    let evictable = arguments.has("--evictable");
    let reader = evictable || arguments.has("--reader");
    let mut options = options(path, script(seed));
    if !reader && flush_threads(seed) > 0 {
        options = options
            .flush_threads(flush_threads(seed))
            .tuning(tuning(seed).write_buffer_bytes(WRITE_BUFFER_BYTES));
    }
    let result = options.open(path).and_then(|db| {
        say("o");
        if reader {
            read(&db, evictable, &mut rng)
        } else {
            write(&db, seed, &mut rng)
        }
    });
    if let Err(error) = result {
        say(&format!("e {}", error.to_string().replace('\n', " ")));
    }
    Ok(())
}

/// Maximum pause of a writer between two transactions, in microseconds.
const PAUSE_US: u64 = 600;

fn write(db: &Database, seed: u64, rng: &mut Rng) -> Result<()> {
    let script = script(seed);
    let mut known: Option<(u64, Model)> = None;
    loop {
        let mut tx = db.begin_write()?;
        // This process holds the writer lock, so the snapshot stays the newest version.
        let snap = db.begin_read()?;
        let last = number_of(&snap)?;
        let model = match known.take() {
            Some((number, model)) if number == last => model,
            _ => model_of(&snap)?,
        };
        drop(snap);
        let next = script.fill(&mut tx, last + 1, &model)?;
        tx.commit_with(script.durability(last + 1))?;
        say(&format!("a {}", last + 1));
        known = Some((last + 1, next));
        // Limits the rate of commits, because the parent process repeats and judges all transactions on one processor.
        std::thread::sleep(Duration::from_micros(rng.below(PAUSE_US)));
    }
}

/// Maximum time that a reader holds a snapshot before it reads it again, in microseconds.
const KEEP_US: u64 = 3_000;
/// Maximum time in microseconds that a reader holds an evictable snapshot: long enough to make eviction worthwhile.
const KEEP_LONG_US: u64 = 20_000;

fn read(db: &Database, evictable: bool, rng: &mut Rng) -> Result<()> {
    let keep_us = if evictable { KEEP_LONG_US } else { KEEP_US };
    loop {
        let snap = match evictable {
            true => db.begin_read_evictable()?,
            false => db.begin_read()?,
        };
        let own = snap.txn();
        match look(&snap, keep_us, rng) {
            Ok(words) => say(&words),
            Err(error) if evictable && error.txn() == Some(own) => say("x"),
            Err(error) => return Err(error),
        }
    }
}

/// The transaction number and the digest of a snapshot, which is read twice to show that it does not change.
fn look(snap: &ReadTxn, keep_us: u64, rng: &mut Rng) -> Result<String> {
    let (number, digest) = (number_of(snap)?, digest_of_snapshot(snap)?);
    std::thread::sleep(Duration::from_micros(rng.below(keep_us)));
    let again = digest_of_snapshot(snap)?;
    Ok(if again == digest {
        format!("s {number} {digest}")
    } else {
        format!("e the snapshot of {number} changed")
    })
}
