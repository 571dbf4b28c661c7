//! Clocks of a handle: the wall clock, and the time since the system started.
//!
//! The wall clock may be set forward or back at any time. The time since the start only increases, also while the
//! system sleeps, but has no meaning after a restart: the boot number identifies the start to which it belongs. Tests
//! replace both clocks by a function.

use rustix::time::{ClockId, clock_gettime};
use std::fmt;
use std::fs;
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};
use tidalite_base::get_u64;

/// Readings of the clocks at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clocks {
    /// The wall clock, in nanoseconds since 1970.
    pub wall_ns: i64,
    /// Time since the system started, in nanoseconds, including the time while it slept.
    pub since_boot_ns: u64,
    /// Random number that identifies the current boot of the system; 0 if unknown.
    pub boot: u64,
}

/// Source of the time for a handle: the system's clocks unless a function was given.
#[derive(Clone, Default)]
pub struct ClockSource {
    given: Option<Arc<dyn Fn() -> Clocks + Send + Sync>>,
}

impl ClockSource {
    /// Creates a source that returns the results of `read`.
    pub fn new(read: impl Fn() -> Clocks + Send + Sync + 'static) -> Self {
        Self {
            given: Some(Arc::new(read)),
        }
    }

    /// Reads all clocks.
    #[must_use]
    pub fn read(&self) -> Clocks {
        match &self.given {
            Some(read) => read(),
            None => Clocks {
                wall_ns: wall_ns(),
                since_boot_ns: since_boot_ns(),
                boot: boot(),
            },
        }
    }

    /// Reads the wall clock, in nanoseconds since 1970.
    #[must_use]
    pub fn wall_ns(&self) -> i64 {
        self.given
            .as_ref()
            .map_or_else(wall_ns, |read| read().wall_ns)
    }
}

impl fmt::Debug for ClockSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.given {
            Some(_) => "ClockSource(given)",
            None => "ClockSource(system)",
        })
    }
}

/// Returns the wall clock of the system, in nanoseconds since 1970.
pub fn wall_ns() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |since| {
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    })
}

/// Returns a random number that identifies the current boot of the system; it is constant while the process runs.
fn boot() -> u64 {
    static BOOT: OnceLock<u64> = OnceLock::new();
    *BOOT.get_or_init(|| get_u64(&boot_id(), 0))
}

fn since_boot_ns() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

/// Returns the time since the system started in nanoseconds, accurate to a few milliseconds; the same clock for all
/// processes.
pub fn now_ns() -> u64 {
    #[cfg(miri)]
    return 0;
    #[cfg(not(miri))]
    {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse);
        now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
    }
}

/// Returns the id of the current boot of the system; zeros if it is unknown.
pub fn boot_id() -> [u8; 16] {
    let mut id = [0; 16];
    let Ok(text) = fs::read_to_string("/proc/sys/kernel/random/boot_id") else {
        return id;
    };
    let digits: Vec<u8> = text
        .chars()
        .filter_map(|c| c.to_digit(16).map(|digit| digit as u8))
        .collect();
    for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = pair[0] << 4 | pair[1];
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_says_how_long_it_runs_and_which_start_it_is() {
        let source = ClockSource::default();
        let (first, second) = (source.read(), source.read());
        assert_eq!(first.boot, second.boot);
        assert!(first.since_boot_ns > 0 && first.since_boot_ns <= second.since_boot_ns);
        assert!(second.wall_ns - first.wall_ns < 60_000_000_000);
    }

    #[test]
    fn a_given_clock_is_all_there_is() {
        let shown = Clocks {
            wall_ns: -5,
            since_boot_ns: 7,
            boot: 9,
        };
        let source = ClockSource::new(move || shown);
        assert_eq!((source.read(), source.wall_ns()), (shown, -5));
    }
}
