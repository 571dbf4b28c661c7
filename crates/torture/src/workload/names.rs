//! The names and numbers of tables and series, and the ranges of values and times.

use tidalite::MergePolicy;
use tidalite_testkit::rng::Rng;

/// Number of series to which the transaction's own thread appends; they have every merge policy.
pub(crate) const SERIES: u64 = 5;
/// Number of additional series, which appenders fill (`appenders.rs`) and every other operation uses, too.
pub(crate) const APPENDED: u64 = 6;
/// Number of tables with single values.
pub(crate) const TABLES: u64 = 2;
/// Largest time of a row; small, so that late rows and overwrites occur.
pub const TIME_MAX: i64 = 6_000;
/// Number of keys in a table of sets, and (below) number of different values of a key.
pub(crate) const MULTI_KEYS: u64 = 4;
pub(crate) const MULTI_VALUES: u64 = 200;
/// Number of nested tables.
pub(super) const TOPIC_KEYS: u64 = 6;

/// Name of the `i`-th series.
#[must_use]
pub fn series_name(i: u64) -> String {
    format!("m{i}{{site=\"s{}\"}}", i % 2)
}

/// Merge policy of the series with this name.
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

/// True if a series with this merge policy may have several rows at one time.
pub(crate) fn keeps_several(merge: MergePolicy) -> bool {
    matches!(merge, MergePolicy::KeepAll | MergePolicy::KeepDistinct)
}

/// Name of a random series with the default schema.
pub(crate) fn any_series(rng: &mut Rng) -> String {
    series_name(rng.below(SERIES + APPENDED))
}

pub(crate) fn value_of(rng: &mut Rng) -> f64 {
    (rng.between(-5_000, 5_000) as f64) / 100.0
}
