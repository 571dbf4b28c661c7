//! The unit of time of the workload.

/// A unit of time of the workload in nanoseconds. Most leases, delays and expiries last a few units.
pub(super) const UNIT: i64 = 10_000_000;
