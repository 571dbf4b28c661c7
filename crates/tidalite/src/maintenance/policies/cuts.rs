//! Cuts: for each series, the time before which rows are removed.

use crate::types::schema::Unit;
use std::collections::BTreeMap;
use tidalite_base::SeriesId;

/// For each series, the raw time before which rows are removed.
pub(super) type Cuts = BTreeMap<SeriesId, i64>;

/// Adds a cut; if the series has a cut already, the later one counts.
pub(super) fn add_cut(cuts: &mut Cuts, id: SeriesId, raw: i64) {
    let cut = cuts.entry(id).or_insert(raw);
    *cut = raw.max(*cut);
}

/// Converts a raw time of the unit to nanoseconds since 1970, in 128 bits, which hold the times of every unit.
pub(super) fn clock_of(unit: Unit, raw: i64) -> i128 {
    (i128::from(raw) - i128::from(unit.steps_to_1970())) * i128::from(unit.nanos())
}

/// The first raw time of the unit at or after `nanos`, which is nanoseconds since 1970.
pub(crate) fn raw_time(unit: Unit, nanos: i128) -> i64 {
    let raw = -(-nanos).div_euclid(unit.nanos().into()) + i128::from(unit.steps_to_1970());
    raw.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}
