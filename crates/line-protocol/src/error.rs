//! Errors, with the column of the line.

use std::fmt::{Display, Formatter};

/// A line that does not follow the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The character of the line at which the problem was found, counted from 1.
    pub column: usize,
    /// The problem.
    pub problem: Problem,
}

/// The reason why a line cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The line begins with a comma or a blank: there is no measurement.
    NoMeasurement,
    /// A tag has no key, no equals sign, or no value; the text is the tag.
    BadTag(String),
    /// There is no blank after the measurement and its tags, or nothing follows it.
    NoFields,
    /// A field has no key or no equals sign; the text is the field.
    BadField(String),
    /// A value is neither a number, a boolean nor a string; the text is the value.
    BadValue(String),
    /// An integer does not fit into 64 bits.
    IntegerTooLarge(String),
    /// The string that begins here has no closing quote.
    OpenString,
    /// A string is followed by something other than a comma or a blank.
    AfterString,
    /// The text after the fields is not an integer of 64 bits.
    BadTimestamp(String),
}

impl Error {
    /// The error at this byte of a line.
    pub(crate) fn at(line: &str, byte: usize, problem: Problem) -> Self {
        let before = line.get(..byte).unwrap_or(line);
        Self {
            column: before.chars().count() + 1,
            problem,
        }
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "column {}: ", self.column)?;
        match &self.problem {
            Problem::NoMeasurement => write!(f, "the line has no measurement"),
            Problem::BadTag(tag) => write!(f, "`{tag}` is not a tag such as site=north"),
            Problem::NoFields => write!(f, "the line has no fields after its tags"),
            Problem::BadField(field) => write!(f, "`{field}` is not a field such as temp=21.5"),
            Problem::BadValue(value) => write!(
                f,
                "`{value}` is not a value: write 1.5, 7i, 7u, true or \"text\""
            ),
            Problem::IntegerTooLarge(value) => write!(f, "`{value}` has more than 64 bits"),
            Problem::OpenString => write!(f, "a string is not closed"),
            Problem::AfterString => write!(f, "a comma or a blank must follow a string"),
            Problem::BadTimestamp(text) => {
                write!(f, "`{text}` is not a timestamp, which is an integer")
            }
        }
    }
}

impl std::error::Error for Error {}
