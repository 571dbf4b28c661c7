//! Derives from the seed of a file its transactions, and the options for opening it.

use crate::workload::Shape;
use crate::workload::script::{Script, small_tuning};
use std::path::Path;
use std::time::Duration;
use tidalite::{Database, Options, Tuning};

/// Age at which an evictable snapshot may be evicted.
const OLD: Duration = Duration::from_millis(1);
/// Values of at least this many bytes are in the second file, if there is one.
const LARGE_BYTES_MIN: u64 = 600;
/// One in this many operations appends to series in round robin, if the writer has helper threads.
const TURNS_ONE_IN: u64 = 30;

/// The transactions of a file.
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

/// Number of helper threads of a writer: one to three in half of the scripts.
pub(super) fn flush_threads(seed: u64) -> usize {
    match seed / 2 % 2 {
        0 => 0,
        _ => 1 + (seed / 4 % 3) as usize,
    }
}

/// In half of the scripts writers evict snapshots older than this, rather than let the file grow.
pub(super) fn oust_after(seed: u64) -> Option<Duration> {
    (seed / 16).is_multiple_of(2).then_some(OLD)
}

/// Options to open the file; half of the scripts keep large values in a second file.
pub(super) fn options(file: &Path, script: Script) -> Options {
    let options = Options::new().tuning(tuning(script.seed));
    match script.seed % 2 {
        0 => options.large_values(file.with_extension("large"), LARGE_BYTES_MIN),
        _ => options,
    }
}

/// The tuning of the options.
pub(super) fn tuning(seed: u64) -> Tuning {
    match oust_after(seed) {
        Some(age) => small_tuning().evictable_age_max(age),
        None => small_tuning(),
    }
}

pub(super) fn open(file: &Path, script: Script) -> tidalite::Result<Database> {
    options(file, script).open(file)
}
