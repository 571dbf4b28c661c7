//! The types that an input gives its columns, as Parquet and Arrow do. CSV and JSON give none: there, a sample shows
//! the use of a column.

use crate::import::field::{Nulls, field, whole_field};
use crate::import::number::Number;
use crate::import::table::Named;
use crate::import::texts::Texts;
use crate::output::printable;
use csv::ByteRecord;
use tidalite::limits::TEXT_BYTES_MAX;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "sql"),
    expect(dead_code, reason = "only builds with SQL read typed files")
)]
pub(crate) enum Given {
    /// A time or a date.
    Time,
    /// A float or a decimal.
    Number,
    /// A whole number of at most 64 bits with a sign.
    Whole,
    /// A whole number of 64 bits without a sign.
    Unsigned,
    /// True or false.
    Bool,
    /// A text, or another type that is read as text.
    Text,
    /// A type that cannot be stored in a series, or a column of row numbers.
    Unused,
}

impl Given {
    /// Whether a column of this type holds values unless the user says otherwise.
    pub(crate) fn is_value(self) -> bool {
        matches!(
            self,
            Self::Number | Self::Whole | Self::Unsigned | Self::Bool
        )
    }

    /// The name of the type in which a new series stores the values of such a column.
    pub(crate) fn stored_as(self) -> &'static str {
        match self {
            Self::Whole => "i64",
            Self::Unsigned => "u64",
            Self::Bool => "bool",
            Self::Text => "string",
            _ => "f64",
        }
    }
}

/// Reads a whole number; `None` if the field is null.
pub(crate) fn whole(
    record: &ByteRecord,
    column: &Named,
    kind: Given,
    nulls: &Nulls,
) -> Result<Option<Number>, String> {
    let text = field(record, column.index)?;
    if nulls.contains(text) {
        return Ok(None);
    }
    let number = match kind {
        Given::Unsigned => text.parse().map(Number::UInt),
        _ => text.parse().map(Number::Int),
    };
    number.map(Some).map_err(|_| {
        let (text, name) = (printable(text), printable(&column.name));
        format!("`{text}` in column `{name}` is not a whole number")
    })
}

/// Reads a text; `None` if the field is null.
pub(crate) fn text(
    record: &ByteRecord,
    column: &Named,
    nulls: &Nulls,
    texts: &mut Texts,
) -> Result<Option<Number>, String> {
    let text = whole_field(record, column.index)?;
    if nulls.contains(text) {
        return Ok(None);
    }
    if text.len() > TEXT_BYTES_MAX {
        let name = printable(&column.name);
        return Err(format!(
            "the text in column `{name}` has more than {TEXT_BYTES_MAX} bytes"
        ));
    }
    Ok(Some(Number::Text(texts.push(text.as_bytes()))))
}
