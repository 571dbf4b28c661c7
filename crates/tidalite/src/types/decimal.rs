//! Decimal numbers with a fixed number of fractional digits.

use std::fmt;

/// Maximum number of fractional digits of a decimal: 10^18 is the greatest power of ten that an `i64` holds.
pub const DECIMAL_SCALE_MAX: u8 = 18;

/// An exact number with a fixed number of fractional digits: `units` times 10^-`scale`.
///
/// ```
/// use tidalite::Decimal;
/// let price = Decimal { units: -1999, scale: 2 };
/// assert_eq!(price.to_string(), "-19.99");
/// assert_eq!(Decimal::parse("-19.9", 2).map(|d| d.units), Some(-1990));
/// assert_eq!(Decimal::parse("19.999", 2), None); // no digit is dropped
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Decimal {
    /// The number, counted in units of its last digit.
    pub units: i64,
    /// Number of fractional digits.
    pub scale: u8,
}

impl Decimal {
    /// Parses a number such as `-12.50`; `None` if the text is not a number, is out of range, or has more fractional
    /// digits than `scale`, not counting trailing zeros.
    #[must_use]
    pub fn parse(text: &str, scale: u8) -> Option<Self> {
        let (sign, digits) = match text.as_bytes().first()? {
            b'-' => (-1, &text[1..]),
            b'+' => (1, &text[1..]),
            _ => (1, text),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let fraction = fraction.trim_end_matches('0');
        let plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let any = digits.bytes().any(|byte| byte.is_ascii_digit());
        if !any || !plain(whole) || !plain(fraction) || fraction.len() > usize::from(scale) {
            return None;
        }
        let zeros = std::iter::repeat_n(b'0', usize::from(scale) - fraction.len());
        let mut units = 0i64;
        for digit in whole.bytes().chain(fraction.bytes()).chain(zeros) {
            // Digits are subtracted, not added, because `i64::MIN` has no positive counterpart.
            units = units.checked_mul(10)?;
            units = units.checked_sub(i64::from(digit - b'0'))?;
        }
        let units = if sign < 0 {
            units
        } else {
            units.checked_neg()?
        };
        Some(Self { units, scale })
    }

    /// The float nearest to this number.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        decimal_to_f64(self.units, self.scale)
    }

    /// Converts the number to another scale; `None` if that would drop a non-zero digit or overflow.
    #[must_use]
    pub fn with_scale(self, scale: u8) -> Option<Self> {
        let mut units = self.units;
        for _ in self.scale..scale {
            units = units.checked_mul(10)?;
        }
        for _ in scale..self.scale {
            units = (units % 10 == 0).then_some(units / 10)?;
        }
        Some(Self { units, scale })
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.units < 0 { "-" } else { "" };
        let scale = usize::from(self.scale);
        let digits = format!("{:0>width$}", self.units.unsigned_abs(), width = scale + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        let point = if scale > 0 { "." } else { "" };
        write!(f, "{sign}{whole}{point}{fraction}")
    }
}

/// The float nearest to `units` times 10^-`scale`.
#[inline]
pub(crate) fn decimal_to_f64(units: i64, scale: u8) -> f64 {
    /// Integers up to this are exact floats, so only the division rounds.
    const EXACT_MAX: u64 = 1 << f64::MANTISSA_DIGITS;
    if units.unsigned_abs() <= EXACT_MAX && scale <= DECIMAL_SCALE_MAX {
        return units as f64 / power_of_ten(scale);
    }
    large_decimal_to_f64(units, scale)
}

/// The slow conversion, for units beyond 2^53, which would be rounded before the division, and for more fractional
/// digits than a column can have.
#[cold]
#[inline(never)]
fn large_decimal_to_f64(units: i64, scale: u8) -> f64 {
    const TWO_64: f64 = 18_446_744_073_709_551_616.0;
    if scale > DECIMAL_SCALE_MAX {
        // No column has so large a scale, so the conversion goes through text.
        let text = Decimal { units, scale }.to_string();
        return text.parse().unwrap_or(f64::NAN);
    }
    let power = 10u128.pow(u32::from(scale));
    let dividend = u128::from(units.unsigned_abs()) << 64;
    // The quotient is at least 2^(53 + 64) / 10^18, so it has at least 57 bits, more than a float. Its last bit records
    // a remainder, so that the conversion, which rounds to nearest, does not mistake the number for a tie.
    let quotient = (dividend / power) | u128::from(dividend % power != 0);
    let magnitude = quotient as f64 / TWO_64;
    if units < 0 { -magnitude } else { magnitude }
}

/// Ten to the power of `scale`: exact, because all powers of ten up to 10^22 are doubles.
pub(crate) fn power_of_ten(scale: u8) -> f64 {
    10f64.powi(i32::from(scale))
}
