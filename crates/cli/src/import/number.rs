//! Numbers of an input, without loss of digits.
//!
//! Most numbers are stored as doubles. From 2^53 on a double cannot represent every whole number, so such a number
//! keeps its digits until the type of its series is known; a series that begins with such numbers stores whole numbers.
//! A number that could not be read back as it was written is rejected: one with digits that a double does not have, or
//! with a magnitude beyond the range of doubles.

use crate::output::printable;
use tidalite::ColumnType;

/// 2^53: from this number on a double cannot represent every whole number.
const EXACT_BELOW: f64 = 9_007_199_254_740_992.0;

/// A number of an input, in a type that represents it exactly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    /// A double: a fraction, a whole number below 2^53, or one beyond 64 bits that a double represents exactly.
    Float(f64),
    /// A whole number of a signed type. `read` returns it only for magnitudes from 2^53 on.
    Int(i64),
    /// A whole number of an unsigned type. `read` returns it only for numbers from 2^63 on.
    UInt(u64),
    /// True or false; a series of numbers stores 1 or 0.
    Bool(bool),
    /// A text, as its number in the texts of its batch.
    Text(u64),
}

/// The double nearest to a number.
///
/// # Errors
/// The end of a sentence about the text, such as `is not a number`, or that it is beyond the range of doubles.
pub(crate) fn double(text: &str) -> Result<f64, &'static str> {
    let float: f64 = text.parse().map_err(|_| "is not a number")?;
    if float.is_finite() && float != 0.0 {
        return Ok(float);
    }
    let mut digits = text.split(['e', 'E']).next().unwrap_or_default().bytes();
    if float == 0.0 && digits.any(|byte| matches!(byte, b'1'..=b'9')) {
        return Err("is too small for a double, which would round it to zero");
    }
    if float.is_infinite() && text.bytes().any(|byte| byte.is_ascii_digit()) {
        return Err("is too large for a double, which would round it to infinity");
    }
    Ok(float)
}

impl Number {
    /// Parses a number.
    ///
    /// # Errors
    /// The end of a sentence about the text, such as `is not a number`.
    pub(crate) fn read(text: &str) -> Result<Self, &'static str> {
        let float = double(text)?;
        // For nearly all numbers this single comparison decides.
        if float.abs() < EXACT_BELOW || !float.is_finite() {
            return Ok(Self::Float(float));
        }
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(Self::Float(float));
        }
        if let Ok(whole) = text.parse() {
            return Ok(Self::Int(whole));
        }
        if let Ok(whole) = text.parse() {
            return Ok(Self::UInt(whole));
        }
        match format!("{:.0}", float.abs()) == digits.trim_start_matches('0') {
            true => Ok(Self::Float(float)),
            false => Err("has more digits than 64 bits or a double can hold"),
        }
    }

    /// The type of a new series whose first value is this one. Whole numbers are stored as doubles, unless the input
    /// distinguishes integers from floats (`has_types`).
    pub(crate) fn type_alone(self, has_types: bool) -> ColumnType {
        match self {
            Self::Bool(_) => ColumnType::Bool,
            Self::Text(_) => ColumnType::String,
            Self::Int(_) if has_types => ColumnType::I64,
            Self::UInt(_) if has_types => ColumnType::U64,
            _ => ColumnType::F64,
        }
    }

    /// The number that a stored word of a column stands for.
    fn of(word: u64, ty: ColumnType) -> Self {
        match ty {
            ColumnType::I64 => Self::Int(word.cast_signed()),
            ColumnType::U64 => Self::UInt(word),
            ColumnType::Bool => Self::Bool(word != 0),
            _ => Self::Float(f64::from_bits(word)),
        }
    }

    /// The word that a column of this type stores for the number.
    ///
    /// # Errors
    /// The reason why a column of this type cannot store the number.
    pub(crate) fn word(self, ty: ColumnType) -> Result<u64, String> {
        match ty {
            ColumnType::I64 => match self.whole().and_then(|whole| i64::try_from(whole).ok()) {
                Some(whole) => Ok(whole.cast_unsigned()),
                None => Err(self.refused("holds whole numbers (i64)")),
            },
            ColumnType::U64 => match self.whole().and_then(|whole| u64::try_from(whole).ok()) {
                Some(whole) => Ok(whole),
                None => Err(self.refused("holds unsigned whole numbers (u64)")),
            },
            ColumnType::Bool => match self {
                Self::Bool(value) => Ok(u64::from(value)),
                _ => Err(self.refused("holds true and false (bool)")),
            },
            ColumnType::String => Err(self.refused("holds texts")),
            _ => match self.double() {
                Some(double) => Ok(double.to_bits()),
                None => Err(self.refused("holds doubles, which have 53 bits")),
            },
        }
    }

    /// The number as a whole number; `None` for a fraction and for negative zero.
    fn whole(self) -> Option<i128> {
        match self {
            Self::Int(whole) => Some(whole.into()),
            Self::UInt(whole) => Some(whole.into()),
            Self::Bool(value) => Some(value.into()),
            Self::Text(_) => None,
            #[expect(clippy::cast_possible_truncation, reason = "a whole number below 2^53")]
            Self::Float(float) => {
                let fits = float.abs() < EXACT_BELOW && float.fract() == 0.0;
                let is_minus_zero = float == 0.0 && float.is_sign_negative();
                (fits && !is_minus_zero).then_some(float as i128)
            }
        }
    }

    /// The double that is exactly equal to the number; `None` if there is none.
    fn double(self) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "compared with what it was")]
        #[expect(clippy::cast_possible_truncation, reason = "below 2^65")]
        let exact = |whole: i128| {
            let double = whole as f64;
            (double as i128 == whole).then_some(double)
        };
        match self {
            Self::Float(float) => Some(float),
            Self::Int(whole) => exact(whole.into()),
            Self::UInt(whole) => exact(whole.into()),
            Self::Bool(value) => Some(f64::from(u8::from(value))),
            Self::Text(_) => None,
        }
    }

    fn refused(self, holds: &str) -> String {
        let text = match self {
            Self::Float(float) => float.to_string(),
            Self::Int(whole) => whole.to_string(),
            Self::UInt(whole) => whole.to_string(),
            Self::Bool(value) => value.to_string(),
            Self::Text(_) => "text".to_owned(),
        };
        format!(
            "{} cannot be stored in a series that {holds}",
            printable(&text)
        )
    }
}

/// The first type that can represent `more` and all of `words`, which are stored in the type `of`; and `words`
/// converted to that type. `None` if there is no such type.
pub(crate) fn type_of_all(
    words: &[u64],
    of: ColumnType,
    more: Number,
) -> Option<(ColumnType, Vec<u64>)> {
    // True and false do not become numbers: a 1 next to a 5 would not show that it was true.
    if matches!(of, ColumnType::String | ColumnType::Bool) {
        return None;
    }
    let types = [ColumnType::F64, ColumnType::I64, ColumnType::U64];
    types.into_iter().find_map(|ty| {
        more.word(ty).ok()?;
        let words = words.iter().map(|word| Number::of(*word, of).word(ty).ok());
        Some((ty, words.collect::<Option<_>>()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truth_values_and_numbers_have_no_common_type() {
        let five = Number::read("5").unwrap();
        assert_eq!(type_of_all(&[0, 1], ColumnType::Bool, five), None);
        assert_eq!(
            type_of_all(&[0, 1], ColumnType::I64, five),
            Some((ColumnType::F64, vec![0, 1.0_f64.to_bits()]))
        );
    }

    #[test]
    fn numbers_that_do_not_round_trip_are_refused() {
        for text in ["1e400", "-1e400", "1e-400", "0.0001e-330"] {
            assert!(Number::read(text).is_err(), "{text}");
        }
        for text in ["36893488147419103233", "-9223372036854775809"] {
            assert!(Number::read(text).unwrap_err().contains("more digits"));
        }
        for text in ["0", "-0.0", "0e-999", "000", "NaN", "inf", "-infinity"] {
            assert!(matches!(Number::read(text), Ok(Number::Float(_))), "{text}");
        }
        assert_eq!(Number::read("x"), Err("is not a number"));
        assert_eq!(Number::read(""), Err("is not a number"));
        // The number exceeds 64 bits, but a double represents it exactly, because it is a power of two.
        assert_eq!(
            Number::read("36893488147419103232"),
            Ok(Number::Float(36_893_488_147_419_103_232.0))
        );
    }

    #[test]
    fn whole_numbers_keep_their_digits() {
        let largest = i64::MAX.to_string();
        for (text, number) in [
            ("9007199254740991", Number::Float(9_007_199_254_740_991.0)),
            ("9007199254740992", Number::Int(9_007_199_254_740_992)),
            ("+9007199254740993", Number::Int(9_007_199_254_740_993)),
            ("-9007199254740993", Number::Int(-9_007_199_254_740_993)),
            (&largest, Number::Int(i64::MAX)),
            ("18446744073709551615", Number::UInt(u64::MAX)),
            ("9007199254740993.0", Number::Float(9_007_199_254_740_992.0)),
        ] {
            assert_eq!(Number::read(text), Ok(number), "{text}");
        }
    }

    #[test]
    fn words_are_exact_or_absent() {
        use ColumnType::{F64, I64, U64};
        let read = |text| Number::read(text).unwrap();
        assert_eq!(
            read("9007199254740993").word(I64),
            Ok(9_007_199_254_740_993)
        );
        assert!(read("9007199254740993").word(F64).is_err());
        let even = 9_007_199_254_740_994.0_f64;
        assert_eq!(read("9007199254740994").word(F64), Ok(even.to_bits()));
        assert_eq!(read("-7").word(I64), Ok((-7_i64).cast_unsigned()));
        for (text, ty) in [("-7", U64), ("0.5", I64), ("-0.0", I64), ("NaN", I64)] {
            assert!(read(text).word(ty).is_err(), "{text}");
        }
        assert!(read("18446744073709551615").word(I64).is_err());
        assert!(read("18446744073709551615").word(F64).is_err());
        assert_eq!(read("18446744073709551615").word(U64), Ok(u64::MAX));
    }

    #[test]
    fn the_type_is_one_that_all_allow() {
        use ColumnType::{F64, I64, U64};
        let words = |numbers: &[i64]| numbers.iter().map(|own| own.cast_unsigned()).collect();
        let doubles = [1.0_f64.to_bits(), 2.0_f64.to_bits()];
        let large = Number::Int(9_007_199_254_740_993);
        assert_eq!(
            type_of_all(&doubles, F64, large),
            Some((I64, words(&[1, 2])))
        );
        let largest = Number::UInt(u64::MAX);
        assert_eq!(
            type_of_all(&doubles, F64, largest),
            Some((U64, words(&[1, 2])))
        );
        assert_eq!(type_of_all(&[7], I64, largest), Some((U64, vec![7])));
        // A double can represent these whole numbers, too.
        let half = Number::Float(0.5);
        let even = 1_u64 << 60;
        assert_eq!(
            type_of_all(&[even], I64, half),
            Some((F64, vec![(even as f64).to_bits()]))
        );
        assert_eq!(type_of_all(&[even + 1], I64, half), None);
        assert_eq!(type_of_all(&words(&[-1]), I64, largest), None);
        assert_eq!(type_of_all(&[0.5_f64.to_bits()], F64, large), None);
    }
}
