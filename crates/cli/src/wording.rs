//! Numbers and names as text, for people.

/// Escapes control characters in a text, so that a name cannot move the terminal's cursor or change colours.
pub(crate) fn printable(text: &str) -> String {
    if !text.chars().any(char::is_control) {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if c.is_control() {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Formats a float as the shortest text that reads back to the same float, with an exponent where plain digits would be
/// long.
pub(crate) fn float_text(value: f64) -> String {
    let mut text = format!("{value:?}");
    if text.ends_with(".0") {
        text.truncate(text.len() - 2);
    }
    text
}

/// Formats a float with six significant digits, without trailing zeros.
pub(crate) fn rounded_text(value: f64) -> String {
    if !value.is_finite() || value == 0.0 {
        return float_text(value);
    }
    let magnitude = value.abs().log10().floor();
    if !(-5.0..15.0).contains(&magnitude) {
        let text = format!("{value:.5e}");
        let rounded: f64 = text.parse().unwrap_or(value);
        return float_text(rounded);
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "in 0..=10"
    )]
    let places = (5.0 - magnitude).max(0.0) as usize;
    let text = format!("{value:.places$}");
    if text.contains('.') {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    text
}

/// Formats a float with six significant digits, or with one decimal place if it is large. A value that is exact in
/// fewer digits is printed with those; a rounded value keeps its zeros: `0.3` is exactly 0.3, and `0.300000` is
/// approximate.
pub(crate) fn computed_text(value: f64) -> String {
    let exact = float_text(value);
    if !value.is_finite() || value == 0.0 {
        return exact;
    }
    let magnitude = value.abs().log10().floor();
    if !(-5.0..15.0).contains(&magnitude) {
        let rounded = format!("{value:.5e}");
        return if rounded.len() < exact.len() {
            rounded
        } else {
            exact
        };
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "in 1..=10"
    )]
    let places = (5.0 - magnitude).max(1.0) as usize;
    let rounded = format!("{value:.places$}");
    match rounded.parse::<f64>() {
        Ok(same) if value == same => exact,
        _ => rounded,
    }
}

/// Formats a count with the matching noun: `1 row`, `2 rows`, `1,234 rows`.
pub(crate) fn plural(count: u64, one: &str, many: &str) -> String {
    let noun = if count == 1 { one } else { many };
    format!("{} {noun}", grouped(count))
}

/// Formats a count with commas between the thousands: `1,234,567`.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// Formats a number of bytes with a unit: 1536 as `1.5 KiB`.
#[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
pub(crate) fn bytes_text(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if value < 10.0 {
        format!("{value:.2} {}", UNITS[unit])
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

/// Formats a large number with three digits: 1234567 as `1.23 million`.
pub(crate) fn rate_text(rate: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "below a million"
    )]
    if rate < 1e6 {
        grouped(rate as u64)
    } else if rate < 1e8 {
        format!("{:.2} million", rate / 1e6)
    } else {
        format!("{:.0} million", rate / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_is_made_visible() {
        assert_eq!(printable("a\u{1b}[31mb\n"), "a\\u{1b}[31mb\\n");
    }

    #[test]
    fn numbers_for_eyes() {
        assert_eq!(float_text(39.0), "39");
        assert_eq!(float_text(-0.0), "-0");
        assert_eq!(float_text(1e300), "1e300");
        assert_eq!(rounded_text(61.640_123_4), "61.6401");
        assert_eq!(rounded_text(0.000_123_456_78), "0.000123457");
        assert_eq!(rounded_text(123_456_789.0), "123456789");
        assert_eq!(rounded_text(1.0e-9), "1e-9");
        assert_eq!(rounded_text(1_048.360_58), "1048.36");
        assert_eq!(rounded_text(f64::INFINITY), "inf");
        for (value, shown) in [
            (8.5295, "8.5295"),
            (0.1 + 0.2, "0.300000"),
            (61.640_123_4, "61.6401"),
            (16_688_623_782.547_45, "16688623782.5"),
            (123_456.04, "123456.0"),
            (123_456_789.0, "123456789"),
            (-1e300, "-1e300"),
            (-1.234_567_8e-9, "-1.23457e-9"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(computed_text(value), shown);
        }
        assert_eq!(plural(1, "row", "rows"), "1 row");
        assert_eq!(plural(0, "row", "rows"), "0 rows");
        assert_eq!(plural(1_234, "row", "rows"), "1,234 rows");
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(10_000_000), "10,000,000");
        assert_eq!(bytes_text(999), "999 B");
        assert_eq!(bytes_text(1536), "1.50 KiB");
        assert_eq!(bytes_text(2_294_215), "2.19 MiB");
    }
}
