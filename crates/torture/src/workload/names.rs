//! Names of tables and series, how many there are of each, and the values and times that they hold.

use tidalite::MergePolicy;
use tidalite_testkit::rng::Rng;

/// Series that a workload appends to in a transaction's own thread, of every merge policy.
pub(crate) const SERIES: u64 = 5;
/// Series beyond these that appenders fill (`appenders.rs`), and everything else touches.
pub(crate) const APPENDED: u64 = 6;
/// Tables that a workload uses.
pub(crate) const TABLES: u64 = 2;
/// Latest time that a workload reaches; small, so that late rows and overwrites happen.
pub const TIME_MAX: i64 = 6_000;
/// Keys of a table of multi-values, and values that a key may have.
pub(crate) const MULTI_KEYS: u64 = 4;
pub(crate) const MULTI_VALUES: u64 = 200;
/// Nested tables.
pub(super) const TOPIC_KEYS: u64 = 6;

/// The name of a workload's series.
#[must_use]
pub fn series_name(i: u64) -> String {
    format!("m{i}{{site=\"s{}\"}}", i % 2)
}

/// What the series with this name does with rows at times that are taken.
#[must_use]
pub fn merge_of(name: &str) -> MergePolicy {
    match name.as_bytes() {
        [b'm', b'1', b'{', ..] => MergePolicy::KeepDistinct,
        [b'm', b'2', ..] => MergePolicy::KeepAll,
        [b'm', b'3', ..] => MergePolicy::KeepFirst,
        [b'm', b'4', ..] => MergePolicy::Error,
        _ => MergePolicy::Replace,
    }
}

/// Whether a series with this policy has several rows of one time.
pub(crate) fn keeps_several(merge: MergePolicy) -> bool {
    matches!(merge, MergePolicy::KeepAll | MergePolicy::KeepDistinct)
}

/// Any of the workload's series of points.
pub(crate) fn any_series(rng: &mut Rng) -> String {
    series_name(rng.below(SERIES + APPENDED))
}

pub(crate) fn value_of(rng: &mut Rng) -> f64 {
    (rng.between(-5_000, 5_000) as f64) / 100.0
}
