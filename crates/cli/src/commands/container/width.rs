//! Durations as text, in the format of the command line.

use std::time::Duration;

/// Units and their lengths in nanoseconds, longest first.
const UNITS: [(&str, i64); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// A duration such as 1h30m.
pub(super) fn width_text(nanos: i64) -> String {
    let (mut left, mut text) = (nanos.max(0), String::new());
    for (unit, length) in UNITS {
        if left >= length {
            text += &format!("{}{unit}", left / length);
            left %= length;
        }
    }
    match text.is_empty() {
        true => "0".to_owned(),
        false => text,
    }
}

/// The duration as text, as `width_text` writes it.
pub(super) fn duration_text(duration: Duration) -> String {
    width_text(nanos(duration))
}

/// The number of nanoseconds, at most the greatest number.
pub(super) fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::width_nanos;

    #[test]
    fn durations_can_be_typed() {
        for text in ["10m", "1h30m", "3d", "1d2h3m4s5ms6us7ns"] {
            assert_eq!(width_nanos(text).map(width_text), Ok(text.to_owned()));
        }
        assert_eq!(width_nanos("1w").map(width_text), Ok("7d".to_owned()));
        assert_eq!(width_nanos(&width_text(i64::MAX)), Ok(i64::MAX));
        assert_eq!(width_text(0), "0");
    }
}
