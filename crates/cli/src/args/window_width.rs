//! The width of windows: of a fixed length, or of the calendar.

use crate::time::width_nanos;

/// The width given with `--by`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WindowWidth {
    /// A fixed length, in nanoseconds.
    Fixed(i64),
    /// Local days.
    Days(i64),
    /// Weeks, from Monday on.
    Weeks(i64),
    Months(i64),
    Quarters(i64),
    Years(i64),
}

impl std::fmt::Display for WindowWidth {
    /// Writes the shortest form: `15m`, `1d`, `1mo`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (count, unit) = match *self {
            Self::Fixed(nanos) => return tidalite::Grid::nanos(nanos).fmt(f),
            Self::Days(count) => (count, "d"),
            Self::Weeks(count) => (count, "w"),
            Self::Months(count) => (count, "mo"),
            Self::Quarters(count) => (count, "q"),
            Self::Years(count) => (count, "y"),
        };
        write!(f, "{count}{unit}")
    }
}

/// Parses a width: `15m`, `1h30m`, `1d`, `1w`, `1mo`, `1q`, `1y`.
pub(crate) fn window_width(text: &str) -> Result<WindowWidth, String> {
    let digits = text.trim().bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.trim().split_at(digits);
    let make = match unit {
        "d" | "day" | "days" => WindowWidth::Days,
        "w" | "week" | "weeks" => WindowWidth::Weeks,
        "mo" | "month" | "months" => WindowWidth::Months,
        "q" | "quarter" | "quarters" => WindowWidth::Quarters,
        "y" | "year" | "years" => WindowWidth::Years,
        _ => return width_nanos(text).map(WindowWidth::Fixed),
    };
    match number.parse() {
        Ok(count) if (1..=100_000).contains(&count) => Ok(make(count)),
        _ => Err(format!(
            "`{text}`: give a whole number from 1 to 100000 before the unit, as in 1d, 2w, 1mo, 1q or 1y"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_fixed_or_of_the_calendar() {
        use WindowWidth::*;
        for (text, width) in [
            ("1d", Days(1)),
            ("7days", Days(7)),
            ("2w", Weeks(2)),
            ("1mo", Months(1)),
            ("1q", Quarters(1)),
            ("10y", Years(10)),
            ("24h", Fixed(86_400_000_000_000)),
            ("1d12h", Fixed(129_600_000_000_000)),
            ("15m", Fixed(900_000_000_000)),
        ] {
            assert_eq!(window_width(text), Ok(width), "{text}");
        }
        for wrong in [
            "",
            "d",
            "0d",
            "0mo",
            "-1d",
            "1.5mo",
            "1mo2d",
            "9999999999y",
            "1x",
        ] {
            assert!(window_width(wrong).is_err(), "{wrong}");
        }
    }
}
