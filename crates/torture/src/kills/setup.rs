//! What follows from the seed of a file: its transactions, and how it is opened.

use crate::workload::Shape;
use crate::workload::script::{Script, small_steps};
use std::path::Path;
use std::time::Duration;
use tidalite::{Database, Options};

/// An evictable snapshot that is older may be taken away.
const OLD: Duration = Duration::from_millis(1);
/// Values from this size on are in the second file, where there is one.
const LARGE_BYTES_MIN: u64 = 600;
/// Of so many operations of a writer that has threads beside it one feeds series in turn.
const TURNS_ONE_IN: u64 = 30;

/// The transactions of a file.
#[must_use]
pub fn script(seed: u64) -> Script {
    let shape = Shape {
        bulk_one_in: 0,
        none_one_in: 0,
        threads: true,
        turns_one_in: if sealing_threads(seed) > 0 {
            TURNS_ONE_IN
        } else {
            0
        },
        ..Shape::default()
    };
    Script { seed, shape }
}

/// Threads that encode beside a writer of this script: in every other two of them one to three.
pub(super) fn sealing_threads(seed: u64) -> usize {
    match seed / 2 % 2 {
        0 => 0,
        _ => 1 + (seed / 4 % 3) as usize,
    }
}

/// Writers of every other script take evictable snapshots away that are older than this, rather than let the file grow.
pub(super) fn oust_after(seed: u64) -> Option<Duration> {
    (seed / 16).is_multiple_of(2).then_some(OLD)
}

/// Large values of a file of every other script are in a second one.
pub(super) fn options(file: &Path, script: Script) -> Options {
    let options = match script.seed % 2 {
        0 => small_steps().large_values(file.with_extension("large"), LARGE_BYTES_MIN),
        _ => small_steps(),
    };
    match oust_after(script.seed) {
        Some(age) => options.evictable_age_max(age),
        None => options,
    }
}

pub(super) fn open(file: &Path, script: Script) -> tidalite::Result<Database> {
    options(file, script).open(file)
}
