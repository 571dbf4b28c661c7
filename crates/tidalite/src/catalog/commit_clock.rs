//! The commit clock: the one place that decides how far to trust the wall clock. Retention by age uses this clock.
//!
//! Every commit stores the time of this clock (`roots.rs`) and the system's uptime, so that any process in the same
//! boot session can compute the real time elapsed since the commit:
//!
//! ```text
//! 0         8      16              24      32
//! | time ns | boot | since boot ns | ahead |
//! |   i64   | u64  |      u64      |  u64  |
//! ```
//!
//! Invariants
//! 1. The clock never advances past the newest commit by more than the elapsed time plus `STEP_NS`, one hour: a wall
//!    clock that shows more is *ahead*. The clock then ignores the wall clock and advances by the elapsed time alone,
//!    without the hour.
//! 2. A commit made while the wall clock is ahead stores the commit clock, not the wall clock: commits alone never
//!    catch up with a jump, however many there are.
//! 3. A wall clock behind the commit clock is trusted at once, and the next commit stores the wall clock: an earlier
//!    time can only make fewer rows too old.
//! 4. Elapsed time is derived from uptime. For a commit of an earlier boot, or of another computer, only the time since
//!    this handle was opened is known.

use crate::types::error::Result;
use tidalite_base::{Corrupt, get_i64, get_u64, put_i64, put_u64};
use tidalite_pager::{Clocks, Event};
use tidalite_time::Timestamp;

/// Tolerance of the wall clock beyond the elapsed time, one hour in nanoseconds: covers daylight-saving time set by
/// hand, and drift.
const STEP_NS: i64 = 3_600_000_000_000;

const TIME_AT: usize = 0;
const BOOT_AT: usize = TIME_AT + 8;
const SINCE_BOOT_AT: usize = BOOT_AT + 8;
const AHEAD_AT: usize = SINCE_BOOT_AT + 8;
/// Size in bytes of the commit clock as stored in the app area with the roots.
pub(crate) const CLOCK_BYTES: usize = AHEAD_AT + 8;

/// The commit clock as it was stored with one commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CommitClock {
    pub(crate) time_ns: i64,
    pub(crate) boot: u64,
    pub(crate) since_boot_ns: u64,
    /// Whether the wall clock was ahead when the commit was made.
    pub(crate) ahead: bool,
}

impl CommitClock {
    /// Decodes a stored clock. All zeros mean that no clock was stored, because the file is new.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Option<Self>> {
        let ahead = get_u64(bytes, AHEAD_AT);
        if ahead > 1 {
            let found = format!("{ahead}");
            return Err(Corrupt::new("commit clock", 0, found, "0 or 1").into());
        }
        let clock = Self {
            time_ns: get_i64(bytes, TIME_AT),
            boot: get_u64(bytes, BOOT_AT),
            since_boot_ns: get_u64(bytes, SINCE_BOOT_AT),
            ahead: ahead == 1,
        };
        Ok(bytes.iter().any(|&byte| byte != 0).then_some(clock))
    }

    pub(crate) fn encode(&self) -> [u8; CLOCK_BYTES] {
        let mut bytes = [0; CLOCK_BYTES];
        put_i64(&mut bytes, TIME_AT, self.time_ns);
        put_u64(&mut bytes, BOOT_AT, self.boot);
        put_u64(&mut bytes, SINCE_BOOT_AT, self.since_boot_ns);
        put_u64(&mut bytes, AHEAD_AT, self.ahead.into());
        bytes
    }

    /// The clock to assume for a commit that stored none: the commit's time is known, the boot session and the uptime
    /// are not.
    pub(crate) fn at(time_ns: i64) -> Self {
        Self {
            time_ns,
            boot: 0,
            since_boot_ns: 0,
            ahead: false,
        }
    }

    /// Nanoseconds known to have passed since this commit, for a handle that was opened at `opened`: in another boot
    /// session, only the time since the opening is known.
    fn passed_ns(&self, now: &Clocks, opened: &Clocks) -> i64 {
        let same = self.boot == now.boot && self.boot != 0;
        let passed = match now.since_boot_ns.checked_sub(self.since_boot_ns) {
            Some(passed) if same => passed,
            _ => now.since_boot_ns.saturating_sub(opened.since_boot_ns),
        };
        i64::try_from(passed).unwrap_or(i64::MAX)
    }

    pub(crate) fn read(&self, now: &Clocks, opened: &Clocks) -> ClockReading {
        let commits_ns = self.time_ns.saturating_add(self.passed_ns(now, opened));
        ClockReading {
            wall: Timestamp(now.wall_ns),
            commits: Timestamp(commits_ns),
            is_ahead: now.wall_ns > commits_ns.saturating_add(STEP_NS),
        }
    }
}

/// The wall clock and the commit clock at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClockReading {
    /// Time of the wall clock.
    pub wall: Timestamp,
    /// The commit clock: the time of the newest commit plus the elapsed time since then, as far as known.
    pub commits: Timestamp,
    /// Whether the wall clock is more than an hour ahead of the commit clock.
    pub is_ahead: bool,
}

impl ClockReading {
    /// The effective current time: the wall clock, unless it is ahead; then the commit clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        if self.is_ahead {
            self.commits
        } else {
            self.wall
        }
    }

    pub(crate) fn event(&self) -> Event {
        Event::ClockAhead {
            wall_ns: self.wall.0,
            commits_ns: self.commits.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = STEP_NS;

    fn clocks(wall_hours: i64, since_boot_hours: i64, boot: u64) -> Clocks {
        Clocks {
            wall_ns: wall_hours * HOUR,
            since_boot_ns: (since_boot_hours * HOUR).unsigned_abs(),
            boot,
        }
    }

    fn committed(at: &Clocks) -> CommitClock {
        CommitClock {
            time_ns: at.wall_ns,
            boot: at.boot,
            since_boot_ns: at.since_boot_ns,
            ahead: false,
        }
    }

    #[test]
    fn a_real_month_is_not_a_jump_while_the_system_runs() {
        let commit = committed(&clocks(1000, 10, 7));
        let later = clocks(1720, 730, 7);
        let reading = commit.read(&later, &later);
        assert!(!reading.is_ahead);
        assert_eq!(reading.now().0, 1720 * HOUR);
        // The tolerance is one hour: 1721 is within it, 1722 is a jump.
        assert!(!commit.read(&clocks(1721, 730, 7), &later).is_ahead);
        let jumped = commit.read(&clocks(1722, 730, 7), &later);
        assert!(jumped.is_ahead);
        assert_eq!(jumped.now().0, 1720 * HOUR);
    }

    #[test]
    fn after_a_restart_only_what_passed_since_opening_is_known() {
        let commit = committed(&clocks(1000, 10, 7));
        let opened = clocks(1720, 2, 8);
        let reading = commit.read(&clocks(1725, 7, 8), &opened);
        assert!(reading.is_ahead);
        assert_eq!(reading.now().0, 1005 * HOUR);
        // The result is the same if the current boot has the longer uptime.
        let opened = clocks(1720, 12, 8);
        let reading = commit.read(&clocks(1725, 17, 8), &opened);
        assert_eq!(reading.now().0, 1005 * HOUR);
    }

    #[test]
    fn a_clock_that_moves_back_is_trusted() {
        let commit = committed(&clocks(1000, 10, 7));
        let reading = commit.read(&clocks(5, 11, 7), &clocks(1000, 10, 7));
        assert!(!reading.is_ahead);
        assert_eq!(reading.now().0, 5 * HOUR);
    }

    #[test]
    fn the_stored_clock_round_trips() {
        for ahead in [false, true] {
            let clock = CommitClock {
                time_ns: -3,
                boot: u64::MAX,
                since_boot_ns: 5,
                ahead,
            };
            assert_eq!(CommitClock::decode(&clock.encode()).unwrap(), Some(clock));
        }
        assert_eq!(CommitClock::decode(&[0; CLOCK_BYTES]).unwrap(), None);
        let mut bytes = [0; CLOCK_BYTES];
        bytes[AHEAD_AT] = 2;
        assert!(CommitClock::decode(&bytes).is_err());
    }
}
