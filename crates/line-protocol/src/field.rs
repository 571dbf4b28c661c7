//! The fields of a line.

use crate::error::{Error, Problem};
use crate::escape::{find, name, unescaped};
use std::borrow::Cow;

/// A field: a key and a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Field<'a> {
    /// The key as written, with its escapes.
    pub written: &'a str,
    /// The value.
    pub value: Value<'a>,
}

impl<'a> Field<'a> {
    /// The key without escapes.
    #[must_use]
    pub fn key(&self) -> Cow<'a, str> {
        name(self.written)
    }
}

/// A value of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// A finite number: `1.5`, `1e3`, `7`.
    Float(f64),
    /// `7i`.
    Integer(i64),
    /// `7u`.
    Unsigned(u64),
    /// `t`, `true`, `F`, `FALSE` and so on.
    Boolean(bool),
    /// A text in quotes, without its escapes.
    String(Cow<'a, str>),
}

/// An iterator over the fields of a line. It ends after the first error.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    line: &'a str,
    rest: &'a str,
    /// Offset of `rest` in the line.
    at: usize,
    ended: bool,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(line: &'a str, fields: &'a str, at: usize) -> Self {
        Self {
            line,
            rest: fields,
            at,
            ended: false,
        }
    }

    fn fail(&self, byte: usize, problem: Problem) -> Error {
        Error::at(self.line, self.at + byte, problem)
    }

    fn field(&mut self) -> Result<Field<'a>, Error> {
        let rest = self.rest;
        // A key ends at its equals sign; a comma before it ends a field without a value.
        let equals = find(rest, |byte| matches!(byte, b'=' | b',')).unwrap_or(rest.len());
        let (written, after) = rest.split_at(equals);
        let Some(after) = after.strip_prefix('=').filter(|_| !written.is_empty()) else {
            let end = find(rest, |byte| byte == b',').unwrap_or(rest.len());
            return Err(self.fail(0, Problem::BadField(rest[..end].to_owned())));
        };
        let start = equals + 1;
        let (value, end) = match after.strip_prefix('"') {
            Some(text) => {
                let end =
                    end_of_string(text).ok_or_else(|| self.fail(start, Problem::OpenString))?;
                let text = unescaped(&text[..end], |c| matches!(c, '"' | '\\'));
                (Value::String(text), end + 2)
            }
            None => {
                let end = after.find([',', ' ']).unwrap_or(after.len());
                let value = scalar(&after[..end]).map_err(|problem| self.fail(start, problem))?;
                (value, end)
            }
        };
        let next = &after[end..];
        let byte = start + end;
        match next.strip_prefix(',') {
            Some(more) => (self.rest, self.at) = (more, self.at + byte + 1),
            None if next.is_empty() => self.ended = true,
            None => {
                return Err(match value {
                    Value::String(_) => self.fail(byte, Problem::AfterString),
                    _ => self.fail(byte + 1, Problem::BadTimestamp(next.trim().to_owned())),
                });
            }
        }
        Ok(Field { written, value })
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let field = self.field();
        self.ended |= field.is_err();
        Some(field)
    }
}

/// Offset of the closing quote of a string whose opening quote precedes the text.
fn end_of_string(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })
}

/// Parses a value that is not a string.
fn scalar(text: &str) -> Result<Value<'static>, Problem> {
    let bad = || Problem::BadValue(text.to_owned());
    let (digits, last) = match text.as_bytes() {
        [.., last @ (b'i' | b'u')] => (&text[..text.len() - 1], *last),
        _ => (text, 0),
    };
    let is_integer = |digits: &str| {
        let digits = digits.strip_prefix('-').unwrap_or(digits);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    match (last, text) {
        (_, "t" | "T" | "true" | "True" | "TRUE") => Ok(Value::Boolean(true)),
        (_, "f" | "F" | "false" | "False" | "FALSE") => Ok(Value::Boolean(false)),
        (b'i' | b'u', _) if !is_integer(digits) => Err(bad()),
        (b'i', _) => match digits.parse() {
            Ok(value) => Ok(Value::Integer(value)),
            Err(_) => Err(Problem::IntegerTooLarge(text.to_owned())),
        },
        (b'u', _) if digits.starts_with('-') => Err(bad()),
        (b'u', _) => match digits.parse() {
            Ok(value) => Ok(Value::Unsigned(value)),
            Err(_) => Err(Problem::IntegerTooLarge(text.to_owned())),
        },
        // Rust also reads the words for infinities and NaN as numbers.
        _ if text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.')) => {
            let number: f64 = text.parse().map_err(|_| bad())?;
            match number.is_finite() {
                true => Ok(Value::Float(number)),
                false => Err(bad()),
            }
        }
        _ => Err(bad()),
    }
}
