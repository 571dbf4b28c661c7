//! Derives the transactions of a file, and the options with which it is opened, from the file's seed.

use crate::workload::Shape;
use crate::workload::script::{Script, small_tuning};
use std::path::Path;
use std::time::Duration;
use tidalite::{Database, Options, Tuning};

/// Minimum age of a snapshot that may be evicted.
const OLD: Duration = Duration::from_millis(1);
/// Minimum size in bytes of values that are in the second file, if there is one.
const LARGE_BYTES_MIN: u64 = 600;
/// One in this many operations appends to series in round robin, if the writer has helper threads.
const TURNS_ONE_IN: u64 = 30;

/// The transactions that are applied to the file with this seed.
#[must_use]
pub fn script(seed: u64) -> Script {
    let shape = Shape {
        bulk_one_in: 0,
        none_one_in: 0,
        threads: true,
        turns_one_in: if flush_threads(seed) > 0 {
            TURNS_ONE_IN
        } else {
            0
        },
        ..Shape::default()
    };
    Script { seed, shape }
}

/// Number of helper threads of a writer: one to three for half of the seeds, otherwise none.
pub(super) fn flush_threads(seed: u64) -> usize {
    match seed / 2 % 2 {
        0 => 0,
        _ => 1 + (seed / 4 % 3) as usize,
    }
}

/// For half of the seeds, the age from which writers evict snapshots instead of letting the file grow; otherwise
/// `None`.
pub(super) fn oust_after(seed: u64) -> Option<Duration> {
    (seed / 16).is_multiple_of(2).then_some(OLD)
}

/// Options with which the file is opened; for half of the seeds, large values are in a second file.
pub(super) fn options(file: &Path, script: Script) -> Options {
    let options = Options::new().tuning(tuning(script.seed));
    match script.seed % 2 {
        0 => options.large_values(file.with_extension("large"), LARGE_BYTES_MIN),
        _ => options,
    }
}

/// The tuning for the options of the file with this seed.
pub(super) fn tuning(seed: u64) -> Tuning {
    match oust_after(seed) {
        Some(age) => small_tuning().evictable_age_max(age),
        None => small_tuning(),
    }
}

pub(super) fn open(file: &Path, script: Script) -> tidalite::Result<Database> {
    options(file, script).open(file)
}
