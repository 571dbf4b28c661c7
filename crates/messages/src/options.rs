//! Options of all structures as numbers of the file, where one number stands for none: the greatest one for a maximum,
//! 0 for a duration.

use std::time::Duration;
use tidalite_pager::{Error, Refusal, Result};

/// A duration in nanoseconds; a longer one gives the greatest number.
#[must_use]
pub fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// Whether a duration can be stored: whether its nanoseconds are a positive `i64`, or 0.
pub(crate) fn is_storable(duration: Duration) -> bool {
    i64::try_from(duration.as_nanos()).is_ok()
}

/// The duration of a stored number of nanoseconds; `None` for a negative number.
pub(crate) fn duration(nanoseconds: i64) -> Option<Duration> {
    u64::try_from(nanoseconds).ok().map(Duration::from_nanos)
}

/// Like `duration`, for a number of which 0 stands for no duration.
pub(crate) fn optional_duration(nanoseconds: i64) -> Option<Option<Duration>> {
    duration(nanoseconds).map(|duration| Some(duration).filter(|duration| !duration.is_zero()))
}

/// A maximum as a number of the file.
pub(crate) fn most(maximum: Option<u64>) -> u64 {
    maximum.unwrap_or(u64::MAX)
}

/// The maximum of a number of the file.
pub(crate) fn maximum(stored: u64) -> Option<u64> {
    Some(stored).filter(|stored| *stored < u64::MAX)
}

/// Returns a text about a maximum that cannot be stored, because its number stands for none.
pub(crate) fn problem_of(maxima: &[Option<u64>]) -> Option<String> {
    let has_greatest = maxima.contains(&Some(u64::MAX));
    has_greatest.then(|| "a maximum of 2^64 - 1; leave it out for none".into())
}

/// Refuses options with a problem.
///
/// # Errors
/// `InvalidInput` if there is a problem.
pub fn check(problem: Option<String>) -> Result<()> {
    match problem {
        Some(found) => Err(Error::refused(
            Refusal::InvalidInput,
            found,
            "options that can be used",
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ContainerOptions, ContainerTableOptions};

    #[test]
    fn the_longest_durations_can_be_stored() {
        let longest = Duration::from_nanos(i64::MAX.unsigned_abs());
        for nanos in [0, 1, i64::MAX] {
            assert_eq!(duration(nanos).map(nanoseconds), Some(nanos));
        }
        assert_eq!((duration(-1), optional_duration(-1)), (None, None));
        assert_eq!(optional_duration(0), Some(None));
        assert!(is_storable(longest) && !is_storable(longest + Duration::from_nanos(1)));
        let options = ContainerTableOptions {
            idempotency_window: Some(longest),
            defaults: ContainerOptions {
                ttl: Some(longest - Duration::from_nanos(1)),
                keep_deleted: longest,
                ..ContainerOptions::default()
            },
            ..ContainerTableOptions::default()
        };
        let decoded = ContainerTableOptions::decode(&options.encode());
        assert_eq!(decoded.ok(), Some(options));
        let forever = ContainerOptions {
            ttl: Some(longest),
            ..ContainerOptions::default()
        };
        assert!(
            forever.problem().is_some(),
            "the greatest number stands for none"
        );
    }
}
