//! Applies a retention policy between the other steps of a random test.

use std::time::Duration;
use tidalite::retention::{Budget, Retention};
use tidalite::{Database, Timestamp};

/// Lets a retention policy remove rows older than `now - keep` from the series that a pattern selects. Returns the
/// number of rows removed.
pub(crate) fn cut(db: &Database, pattern: &str, now: i64, keep: i64) -> u64 {
    let policy = Retention {
        pattern: pattern.to_owned(),
        keep: Some(Duration::from_nanos(keep.unsigned_abs())),
        ..Retention::default()
    };
    let mut tx = db.begin_write().expect("a transaction");
    tx.set_retention("by age", &policy).expect("a policy");
    tx.commit().expect("a commit");
    let budget = Budget {
        time: Duration::from_secs(600),
        now: Some(Timestamp(now)),
        ..Budget::default()
    };
    let done = db.maintain(&budget).expect("maintenance");
    assert!(!done.more);
    done.rows
}
