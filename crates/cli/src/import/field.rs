//! One field of a record: whether it is null, its text, and its value.

use crate::args::NULL_WORDS;
use crate::import::number::double;
use csv::ByteRecord;
use tidalite::{ColumnType, Decimal, Value};

/// The words that mean "no value". A field is trimmed and then compared exactly, with upper and lower case.
#[derive(Clone, Debug)]
pub(crate) struct Nulls {
    words: Vec<String>,
    /// For each byte, whether one of the null words begins with this byte. Most fields begin with another byte and need
    /// no comparison.
    begins: [bool; 256],
    /// Whether only [`NULL_MARK`] and the words are null: an empty field is an empty text then.
    is_marked: bool,
}

/// The text of null in records of a typed file. No text of a file of numbers is likely to be a single zero byte.
pub(crate) const NULL_MARK: &str = "\0";

impl Default for Nulls {
    fn default() -> Self {
        Self::new(NULL_WORDS.split(',').map(str::to_owned).collect())
    }
}

impl Nulls {
    /// Creates the set of these words. An empty field counts as null in any case.
    pub(crate) fn new(words: Vec<String>) -> Self {
        let mut begins = [false; 256];
        for byte in words.iter().filter_map(|word| word.bytes().next()) {
            begins[usize::from(byte)] = true;
        }
        Self {
            words,
            begins,
            is_marked: false,
        }
    }

    /// Creates the set for an input with typed columns: [`NULL_MARK`], and the words that differ from the default.
    pub(crate) fn marked(mut words: Vec<String>) -> Self {
        words.retain(|word| NULL_WORDS.split(',').all(|default| default != word));
        words.push(NULL_MARK.to_owned());
        Self {
            is_marked: true,
            ..Self::new(words)
        }
    }

    /// Whether null has a mark of its own, so that null is never a text.
    pub(crate) fn is_marked(&self) -> bool {
        self.is_marked
    }

    pub(crate) fn contains(&self, text: &str) -> bool {
        let Some(first) = text.bytes().next() else {
            return !self.is_marked;
        };
        self.begins[usize::from(first)] && self.words.iter().any(|word| word == text)
    }
}

/// Error text for a field whose bytes are not UTF-8.
pub(crate) const NOT_UTF_8: &str = "is not UTF-8 text";

/// The text of a field without white space at its ends.
pub(crate) fn field(record: &ByteRecord, index: usize) -> Result<&str, String> {
    whole_field(record, index).map(str::trim)
}

/// The text of a field with white space at its ends.
pub(crate) fn whole_field(record: &ByteRecord, index: usize) -> Result<&str, String> {
    let bytes = record.get(index).unwrap_or_default();
    std::str::from_utf8(bytes).map_err(|_| format!("field {} {NOT_UTF_8}", index + 1))
}

/// Parses a cell of a column without a type as true or false. Other words for these are not unambiguous enough.
pub(crate) fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// Parses the text of a field as a value of this type; `None` if that is not possible.
pub(crate) fn read_value(text: &str, ty: ColumnType) -> Option<Value> {
    Some(match ty {
        ColumnType::F64 => Value::F64(double(text).ok()?),
        ColumnType::F32 => Value::from(single(text)?),
        ColumnType::I64 => Value::I64(text.parse().ok()?),
        ColumnType::U64 => Value::U64(text.parse().ok()?),
        ColumnType::Bool => Value::Bool(match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "t" | "y" | "1" => true,
            "false" | "no" | "f" | "n" | "0" => false,
            _ => return None,
        }),
        ColumnType::Decimal(scale) => Value::Decimal(Decimal::parse(text, scale)?),
        ColumnType::String => Value::from(text),
        ColumnType::Bytes => Value::Bytes(hex(text)?),
        ColumnType::Guid => Value::Guid(hex(&text.replace('-', ""))?.try_into().ok()?),
        _ => return None,
    })
}

/// The 32-bit float nearest to a number; `None` if the number is out of the range of such floats.
fn single(text: &str) -> Option<f32> {
    let (double, single) = (double(text).ok()?, text.parse::<f32>().ok()?);
    let is_beyond = double.is_finite() != single.is_finite() || (double == 0.0) != (single == 0.0);
    (!is_beyond).then_some(single)
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = digits.chunks(2).map(|pair| match pair {
        [high, low] => u8::try_from(digit(*high)? * 16 + digit(*low)?).ok(),
        _ => None,
    });
    pairs.collect()
}
