//! Messages as JSON objects (RFC 8259).
//!
//! serde_json checks the grammar of one object at a time and returns the text of each value; numbers are read from this
//! text. So integers are exact and never become floats, and a float is the one nearest to its digits. A number without
//! fraction and exponent is an integer (`-0` is 0), any other number is a float. Floats are written with the fewest
//! digits that read back as the same float, and always with a fraction or an exponent.

use crate::containers::document::{
    DOCUMENT_FIELDS_MAX, DOCUMENT_VALUES_MAX, Document, check_level, check_name, count_values,
    duplicate, duplicate_name, is_integer,
};
use crate::containers::value::FieldValue;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use tidalite_pager::{Error, Refusal, Result};

impl Document {
    /// Reads one JSON object, which may be surrounded by white space.
    ///
    /// # Errors
    /// `InvalidInput` for a text that is not one JSON object, with line and column; for two fields of an object with
    /// the same name; for integers outside `i64::MIN..=u64::MAX`, which are never rounded, and for numbers too large
    /// for an `f64`. Errors of names and limits as in [`Document::check`].
    ///
    /// # Cost
    /// Reads the text of a value once for each object and list that contains it, at most 32 times.
    ///
    /// ```
    /// use tidalite_messages::{Document, FieldValue};
    ///
    /// let message = Document::from_json(r#"{"serial": 18446744073709551615, "battery": 12.5}"#)?;
    /// assert_eq!(message.get("serial"), Some(&FieldValue::Integer(u64::MAX.into())));
    /// assert_eq!(message.to_json()?, r#"{"serial":18446744073709551615,"battery":12.5}"#);
    /// # Ok::<(), tidalite_pager::Error>(())
    /// ```
    pub fn from_json(text: &str) -> Result<Self> {
        let mut values = 0;
        let source = Source { text };
        let fields = source.fields(text, 1, &mut values)?;
        Ok(Self::of_checked(fields))
    }

    /// Reads one JSON object from each line; blank lines are skipped.
    ///
    /// # Errors
    /// As [`Document::from_json`], with the number of the line, from 1. The iterator then goes on with the next line.
    pub fn from_json_lines(text: &str) -> impl Iterator<Item = Result<Self>> {
        let lines = text.lines().enumerate();
        let lines = lines.filter(|(_, line)| !line.trim().is_empty());
        lines.map(|(at, line)| {
            Self::from_json(line).map_err(|error| {
                let (reason, found, expected) = match error {
                    Error::Refused {
                        reason,
                        found,
                        expected,
                    } => (reason, found, expected),
                    error => (
                        Refusal::InvalidInput,
                        error.to_string(),
                        "a message within the limits".to_owned(),
                    ),
                };
                Error::refused(reason, format!("line {}: {found}", at + 1), expected)
            })
        })
    }

    /// Writes the message as one line of JSON, without spaces.
    ///
    /// # Errors
    /// As for [`Document::check`].
    pub fn to_json(&self) -> Result<String> {
        self.check()?;
        serde_json::to_string(&FieldsJson(self.fields())).map_err(|error| {
            Error::refused(
                Refusal::InvalidInput,
                format!("a message that JSON cannot hold: {error}"),
                "texts and finite numbers",
            )
        })
    }
}

/// The whole text of a message, used to find the places of errors.
#[derive(Clone, Copy)]
struct Source<'t> {
    text: &'t str,
}

impl<'t> Source<'t> {
    /// Reads the fields of an object at level `level`.
    fn fields(
        self,
        object: &'t str,
        level: usize,
        values: &mut usize,
    ) -> Result<Vec<(Arc<str>, FieldValue)>> {
        let limit = if level == 1 {
            DOCUMENT_FIELDS_MAX
        } else {
            DOCUMENT_VALUES_MAX
        };
        let raw = self.split_object(object, limit)?;
        count_values(values, raw.len())?;
        let mut fields = Vec::with_capacity(raw.len());
        for (name, value) in raw {
            check_name(&name.0)?;
            let value = self.value(value.get(), level, values)?;
            fields.push((Arc::from(name.0), value));
        }
        match duplicate_name(&fields) {
            Some(name) => Err(duplicate(name)),
            None => Ok(fields),
        }
    }

    fn value(self, value: &'t str, level: usize, values: &mut usize) -> Result<FieldValue> {
        Ok(match value.as_bytes().first() {
            Some(b'n') => FieldValue::Null,
            Some(b't') => FieldValue::Bool(true),
            Some(b'f') => FieldValue::Bool(false),
            Some(b'"') => {
                let text = serde_json::from_str(value);
                FieldValue::Text(
                    text.map_err(|error| self.wrong(value, &without_place(&error), "a text"))?,
                )
            }
            Some(b'[') => {
                check_level(level + 1)?;
                let raw = self.split_list(value, DOCUMENT_VALUES_MAX)?;
                count_values(values, raw.len())?;
                let items = raw.into_iter();
                let items = items.map(|item| self.value(item.get(), level + 1, values));
                FieldValue::List(items.collect::<Result<_>>()?)
            }
            Some(b'{') => {
                check_level(level + 1)?;
                FieldValue::Object(self.fields(value, level + 1, values)?)
            }
            _ => self.number(value)?,
        })
    }

    fn number(self, digits: &str) -> Result<FieldValue> {
        if digits.contains(['.', 'e', 'E']) {
            let number = digits
                .parse()
                .ok()
                .filter(|number: &f64| number.is_finite());
            let expected = "a number within the range of 64-bit floating-point numbers";
            return match number {
                Some(number) => Ok(FieldValue::Float(number)),
                None => Err(self.wrong(digits, &shortened(digits), expected)),
            };
        }
        match digits.parse().ok().filter(|&number| is_integer(number)) {
            Some(number) => Ok(FieldValue::Integer(number)),
            None => {
                let expected = format!(
                    "an integer from {} to {}: write a longer one as a text, or with a fraction",
                    i64::MIN,
                    u64::MAX
                );
                Err(self.wrong(digits, &shortened(digits), &expected))
            }
        }
    }

    /// Splits an object into names and the texts of their values, at most `limit` pairs.
    fn split_object(self, object: &'t str, limit: usize) -> Result<Vec<(Name<'t>, &'t RawValue)>> {
        let (mut reader, mut is_over) = (serde_json::Deserializer::from_str(object), false);
        let parts: Parts<'_, (Name<'_>, &RawValue)> = Parts {
            limit,
            is_over: &mut is_over,
            parts: vec![],
        };
        let read = reader.deserialize_map(parts);
        let read = read.and_then(|parts| reader.end().map(|()| parts));
        read.map_err(|error| self.unreadable(object, &error, is_over, limit))
    }

    /// Splits a list into the texts of its values, at most `limit` texts.
    fn split_list(self, list: &'t str, limit: usize) -> Result<Vec<&'t RawValue>> {
        let (mut reader, mut is_over) = (serde_json::Deserializer::from_str(list), false);
        let parts: Parts<'_, &RawValue> = Parts {
            limit,
            is_over: &mut is_over,
            parts: vec![],
        };
        let read = reader.deserialize_seq(parts);
        read.map_err(|error| self.unreadable(list, &error, is_over, limit))
    }

    #[cold]
    fn unreadable(
        self,
        part: &str,
        error: &serde_json::Error,
        is_over: bool,
        limit: usize,
    ) -> Error {
        if is_over {
            let what = if limit == DOCUMENT_FIELDS_MAX {
                "fields of a message"
            } else {
                "values of a message"
            };
            let limit = limit as u64;
            let found = limit + 1;
            return Error::Limit { what, found, limit };
        }
        if part.len() == self.text.len() {
            return Error::refused(
                Refusal::InvalidInput,
                format!("a text that is not a JSON object: {error}"),
                "one JSON object: {\"name\": value, ...}",
            );
        }
        self.wrong(part, &without_place(error), "a JSON value")
    }

    /// Creates the error for a value; `value` must be a part of the text.
    #[cold]
    fn wrong(self, value: &str, found: &str, expected: &str) -> Error {
        let at = (value.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        let before = self.text.get(..at).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.matches('\n').count() + 1;
        let column = before[line_start..].chars().count() + 1;
        Error::refused(
            Refusal::InvalidInput,
            format!("{found} at line {line} column {column}"),
            expected,
        )
    }
}

/// The text of an error without its position, which is relative to a value and would mislead.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ")
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// Digits as an error shows them, shortened if there are many.
fn shortened(digits: &str) -> String {
    match digits.get(..40) {
        Some(start) if digits.len() > 40 => format!("the number {start}..."),
        _ => format!("the number {digits}"),
    }
}

/// The parts of an object or a list, collected up to a limit.
struct Parts<'p, T> {
    limit: usize,
    is_over: &'p mut bool,
    parts: Vec<T>,
}

impl<T> Parts<'_, T> {
    /// Adds a part; returns false if the limit is exceeded.
    fn push(&mut self, part: T) -> bool {
        *self.is_over = self.parts.len() == self.limit;
        if !*self.is_over {
            self.parts.push(part);
        }
        !*self.is_over
    }
}

const TOO_MANY: &str = "too many values";

/// The name of a field. It is copied only if it contains escapes.
struct Name<'t>(Cow<'t, str>);

impl<'t> Deserialize<'t> for Name<'t> {
    fn deserialize<D: Deserializer<'t>>(from: D) -> Result<Self, D::Error> {
        struct Names;
        impl<'t> Visitor<'t> for Names {
            type Value = Name<'t>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a field")
            }

            fn visit_borrowed_str<E>(self, name: &'t str) -> Result<Name<'t>, E> {
                Ok(Name(name.into()))
            }

            fn visit_str<E>(self, name: &str) -> Result<Name<'t>, E> {
                Ok(Name(name.to_owned().into()))
            }
        }
        from.deserialize_str(Names)
    }
}

impl<'t> Visitor<'t> for Parts<'_, (Name<'t>, &'t RawValue)> {
    type Value = Vec<(Name<'t>, &'t RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'t>>(mut self, mut map: A) -> Result<Self::Value, A::Error> {
        while let Some(part) = map.next_entry()? {
            if !self.push(part) {
                return Err(serde::de::Error::custom(TOO_MANY));
            }
        }
        Ok(self.parts)
    }
}

impl<'t> Visitor<'t> for Parts<'_, &'t RawValue> {
    type Value = Vec<&'t RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'t>>(mut self, mut list: A) -> Result<Self::Value, A::Error> {
        while let Some(part) = list.next_element()? {
            if !self.push(part) {
                return Err(serde::de::Error::custom(TOO_MANY));
            }
        }
        Ok(self.parts)
    }
}

/// Serializes a value as JSON. Its numbers must have been checked.
struct ValueJson<'v>(&'v FieldValue);

impl Serialize for ValueJson<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            FieldValue::Null => out.serialize_unit(),
            FieldValue::Bool(value) => out.serialize_bool(*value),
            FieldValue::Integer(number) => match u64::try_from(*number) {
                Ok(number) => out.serialize_u64(number),
                Err(_) => out.serialize_i64(*number as i64),
            },
            FieldValue::Float(number) => out.serialize_f64(*number),
            FieldValue::Text(text) => out.serialize_str(text),
            FieldValue::List(items) => {
                let mut list = out.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(&ValueJson(item))?;
                }
                list.end()
            }
            FieldValue::Object(fields) => FieldsJson(fields).serialize(out),
        }
    }
}

/// Serializes fields as a JSON object.
struct FieldsJson<'v>(&'v [(Arc<str>, FieldValue)]);

impl Serialize for FieldsJson<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let mut map = out.serialize_map(Some(self.0.len()))?;
        for (name, value) in self.0 {
            map.serialize_entry(&**name, &ValueJson(value))?;
        }
        map.end()
    }
}
