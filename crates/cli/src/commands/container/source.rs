//! Takes the time, the container and the idempotency key of a message from its fields, as the options specify.

use super::place::name_problem;
use crate::args::MessageFieldArgs;
use crate::exit::{Failure, Outcome};
use crate::import::time_columns::format_of_texts;
use crate::output::printable;
use crate::time::{Moment, TimeFormat, TimeReader, TimeShow};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::sync::Arc;
use tidalite::Timestamp;
use tidalite::containers::{Document, FieldValue, MESSAGE_IDEMPOTENCY_KEY_BYTES_MAX};

/// Names of fields that are searched for the time if the user names no field.
const TIME_FIELDS: [&str; 2] = ["time", "timestamp"];

/// A message whose time has not been parsed yet.
pub(super) struct Unread {
    document: Document,
    /// The field with the time, and its text; `None` if the message has no such field.
    time: Option<(String, String)>,
}

impl Unread {
    /// The text of the time.
    pub(super) fn time_text(&self) -> Option<&str> {
        self.time.as_ref().map(|(_, text)| &**text)
    }
}

/// A message that is ready to be stored.
#[derive(Debug, PartialEq)]
pub(super) struct Taken {
    pub container: String,
    pub time: Timestamp,
    pub key: Option<Vec<u8>>,
    pub document: Document,
}

/// Takes the times, containers and keys from messages.
pub(super) struct Source<'a> {
    pub args: &'a MessageFieldArgs,
    /// Name of the table.
    pub table: &'a str,
    /// Name of the container, unless the name is in a field.
    pub name: Option<&'a str>,
    /// Name of the field with the idempotency key.
    pub key: Option<&'a str>,
    /// Time given to messages without a time field; if `None`, such a message is an error.
    pub time: Option<Timestamp>,
    reader: Option<TimeReader>,
}

/// The value of a field as text, if it is a text or an integer.
fn text_of(field: &str, value: Option<&FieldValue>) -> Result<String, String> {
    match value {
        Some(FieldValue::Text(text)) => Ok(text.clone()),
        Some(FieldValue::Integer(number)) => Ok(number.to_string()),
        Some(_) => Err(format!("`{field}` is neither a text nor an integer")),
        None => Err(format!("there is no field `{field}`")),
    }
}

/// The source text of the value at a path of a JSON object. Paths are read by the rule of [`Document::find`].
fn written<'t>(object: &'t str, path: &str) -> Option<&'t str> {
    let fields: HashMap<String, &RawValue> = serde_json::from_str(object).ok()?;
    if let Some(value) = fields.get(path) {
        return Some(value.get());
    }
    path.rmatch_indices('.').find_map(|(at, _)| {
        let inner = fields.get(&path[..at])?;
        written(inner.get(), &path[at + 1..])
    })
}

/// Removes the value at a path of an object. An object that becomes empty is kept.
fn remove_from(fields: &mut Vec<(Arc<str>, FieldValue)>, path: &str) -> bool {
    if let Some(at) = fields.iter().position(|(name, _)| **name == *path) {
        fields.remove(at);
        return true;
    }
    path.rmatch_indices('.').any(|(at, _)| {
        let (head, rest) = (&path[..at], &path[at + 1..]);
        fields.iter_mut().any(|(name, value)| match value {
            FieldValue::Object(inner) if **name == *head => remove_from(inner, rest),
            _ => false,
        })
    })
}

/// Removes the value at a path of a message.
fn take_out(document: &mut Document, path: &str) {
    if document.remove(path).is_some() {
        return;
    }
    for (at, _) in path.rmatch_indices('.') {
        let (head, rest) = (&path[..at], &path[at + 1..]);
        if let Some(FieldValue::Object(inner)) = document.get(head) {
            let mut inner = inner.clone();
            if remove_from(&mut inner, rest) {
                document.set(head, FieldValue::Object(inner));
                return;
            }
        }
    }
}

impl<'a> Source<'a> {
    /// A source for messages of the container `name`, or of containers whose names are in a field. `now` is the current
    /// time of the database's clock.
    pub(super) fn new(
        args: &'a MessageFieldArgs,
        table: &'a str,
        name: Option<&'a str>,
        now: Timestamp,
    ) -> Self {
        let reader = args.time_format.clone();
        Self {
            args,
            table,
            name,
            key: None,
            time: args.at.map(|at| at.at(now)),
            reader: reader.map(|format| TimeReader::new(format, args.zone.tz.clone())),
        }
    }

    /// Reads a message; if the text is not a message, the error text gives the reason.
    pub(super) fn read(&self, json: &str) -> Result<Unread, String> {
        let document = Document::from_json(json).map_err(|error| error.to_string())?;
        if self.args.at.is_some() {
            return Ok(Unread {
                document,
                time: None,
            });
        }
        let fields = match &self.args.time {
            Some(field) => std::slice::from_ref(field).iter().map(|f| &**f).collect(),
            None => TIME_FIELDS.to_vec(),
        };
        let found = fields.into_iter().find_map(|field| {
            let value = document.find(field)?;
            Some((field.to_owned(), value))
        });
        let time = match found {
            None => None,
            Some((field, FieldValue::Text(text))) => Some((field, text.clone())),
            Some((field, FieldValue::Integer(number))) => Some((field, number.to_string())),
            Some((field, FieldValue::Float(_))) => {
                // Floats have too few digits for nanoseconds since 1970.
                let text = written(json, &field).unwrap_or_default().to_owned();
                Some((field, text))
            }
            Some((field, _)) => return Err(format!("`{field}` is not a time")),
        };
        Ok(Unread { document, time })
    }

    /// Detects the format of the times, unless the user has specified it. If there are no times, the format remains
    /// unknown.
    pub(super) fn detect(&mut self, texts: &[&str]) -> Outcome {
        if self.reader.is_some() || texts.is_empty() {
            return Ok(());
        }
        let place = match &self.args.time {
            Some(field) => format!("field `{}`", printable(field)),
            None => "the field with the time".to_owned(),
        };
        let format = format_of_texts(&place, texts)?;
        self.reader = Some(TimeReader::new(format, self.args.zone.tz.clone()));
        Ok(())
    }

    /// Discards the detected format of times, before the next input is read.
    pub(super) fn forget_format(&mut self) {
        if self.args.time_format.is_none() {
            self.reader = None;
        }
    }

    fn time_of(&self, field: &str, text: &str) -> Result<Timestamp, String> {
        let fallback;
        let reader = match &self.reader {
            Some(reader) => reader,
            None => {
                fallback = TimeReader::new(TimeFormat::Iso, self.args.zone.tz.clone());
                &fallback
            }
        };
        let moment = reader
            .read(text)
            .map_err(|problem| format!("`{field}`: {problem}"))?;
        let show = || TimeShow::new(self.args.zone.tz.clone());
        let time = match moment {
            Moment::At(time) => time,
            Moment::Ambiguous { earlier, later } => {
                return Err(format!(
                    "`{field}`: the local time {text} came twice, as {} and as {}; write times with an offset or in UTC",
                    show().show(earlier),
                    show().show(later)
                ));
            }
            Moment::Missing { .. } => {
                return Err(format!(
                    "`{field}`: clocks skipped the local time {text}; write times with an offset or in UTC"
                ));
            }
        };
        i64::try_from(time).map(Timestamp).map_err(|_| {
            format!("`{field}`: {text} is beyond the times that can be stored: 1677 to 2262")
        })
    }

    /// Takes the time, the container and the key from a message.
    pub(super) fn take(&self, unread: Unread) -> Result<Taken, String> {
        let Unread { mut document, time } = unread;
        let at = match (&time, self.time) {
            (Some((field, text)), _) => self.time_of(field, text)?,
            (None, Some(time)) => time,
            (None, None) => {
                return Err(match &self.args.time {
                    Some(field) => format!("there is no field `{field}` with the time"),
                    None => {
                        "there is no field `time` or `timestamp`: --time names another, --at gives a time"
                            .to_owned()
                    }
                });
            }
        };
        let container = match (self.name, &self.args.container_field) {
            (Some(name), _) => name.to_owned(),
            (None, Some(field)) => text_of(field, document.find(field))?,
            (None, None) => String::new(),
        };
        if let Some(problem) = name_problem(self.table, &container) {
            return Err(problem);
        }
        let key = match self.key {
            Some(field) => Some(text_of(field, document.find(field))?.into_bytes()),
            None => None,
        };
        if let Some(key) = key
            .as_ref()
            .filter(|key| key.len() > MESSAGE_IDEMPOTENCY_KEY_BYTES_MAX)
        {
            return Err(format!(
                "a key of {} bytes; up to {MESSAGE_IDEMPOTENCY_KEY_BYTES_MAX} are possible",
                key.len()
            ));
        }
        if !self.args.keep_fields {
            if let Some((field, _)) = &time {
                take_out(&mut document, field);
            }
            if let Some(field) = &self.args.container_field {
                take_out(&mut document, field);
            }
        }
        Ok(Taken {
            container,
            time: at,
            key,
            document,
        })
    }
}

/// Splits the arguments of a command into the name of the container and the other words. With `--container-field` there
/// is no name, so the first word is one of the others.
pub(super) fn name_and_inputs<'a>(
    fields: &MessageFieldArgs,
    name: Option<&'a str>,
    inputs: &'a [String],
) -> (Option<&'a str>, Vec<&'a str>) {
    let others = inputs.iter().map(|input| &**input);
    match &fields.container_field {
        Some(_) => (None, name.into_iter().chain(others).collect()),
        None => (name, others.collect()),
    }
}

/// Returns an error if the path of a field is empty.
pub(super) fn check_fields(fields: &MessageFieldArgs, key: Option<&str>) -> Outcome {
    let all = [
        ("--time", fields.time.as_deref()),
        ("--container-field", fields.container_field.as_deref()),
        ("--key", key),
    ];
    match all.into_iter().find(|(_, field)| *field == Some("")) {
        Some((option, _)) => Err(Failure::usage(format!(
            "{option}: give the name of a field"
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command, ContainerCommand};
    use clap::Parser;

    fn fields(options: &str) -> MessageFieldArgs {
        let line = format!("tidalite container put a.tdl c {options}");
        let cli = Cli::try_parse_from(line.split_whitespace()).unwrap();
        match cli.command {
            Command::Container(args) => match args.command {
                ContainerCommand::Put(args) => args.fields,
                _ => panic!("another command"),
            },
            _ => panic!("another command"),
        }
    }

    fn taken(options: &str, json: &str) -> Result<(i64, String), String> {
        let fields = fields(options);
        let name = fields.container_field.is_none().then_some("c");
        let mut source = Source::new(&fields, "containers", name, Timestamp(77));
        let unread = source.read(json)?;
        let texts: Vec<String> = unread.time_text().map(str::to_owned).into_iter().collect();
        let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
        source.detect(&texts).map_err(|failure| failure.message)?;
        let taken = source.take(unread)?;
        Ok((taken.time.0, taken.document.to_json().unwrap()))
    }

    #[test]
    fn times_are_taken_from_fields() {
        for (options, json, time, left) in [
            (
                "",
                r#"{"time":"2001-09-09T01:46:40Z","a":1}"#,
                1_000_000_000_000_000_000,
                r#"{"a":1}"#,
            ),
            (
                "",
                r#"{"timestamp":1000000000}"#,
                1_000_000_000_000_000_000,
                "{}",
            ),
            (
                "",
                r#"{"time":1000000000.000000001}"#,
                1_000_000_000_000_000_001,
                "{}",
            ),
            ("--time-format ms", r#"{"time":5}"#, 5_000_000, "{}"),
            (
                "--time ts --time-format ns",
                r#"{"ts":"17","time":5}"#,
                17,
                r#"{"time":5}"#,
            ),
            (
                "--time m.ts --time-format s",
                r#"{"m":{"ts":1.5,"x":1}}"#,
                1_500_000_000,
                r#"{"m":{"x":1}}"#,
            ),
            (
                "--time m.ts --time-format s",
                r#"{"m.ts":2,"m":{"ts":1}}"#,
                2_000_000_000,
                r#"{"m":{"ts":1}}"#,
            ),
            (
                "--keep-fields --time-format s",
                r#"{"time":1}"#,
                1_000_000_000,
                r#"{"time":1}"#,
            ),
            ("--at now", r#"{"time":5}"#, 77, r#"{"time":5}"#),
            (
                "--tz Europe/Berlin",
                r#"{"time":"2001-09-09 03:46:40"}"#,
                1_000_000_000_000_000_000,
                "{}",
            ),
        ] {
            let found = taken(options, json);
            assert_eq!(found, Ok((time, left.to_owned())), "{options} {json}");
        }
    }

    #[test]
    fn wrong_messages_are_explained() {
        let long = format!(r#"{{"d":"{}","time":"2001-09-09"}}"#, "x".repeat(513));
        for (options, json, told) in [
            ("", "{}", "--time names another"),
            ("--time ts", "{}", "no field `ts`"),
            ("", r#"{"time":true}"#, "is not a time"),
            ("", r#"{"time":null,"timestamp":5}"#, "is not a time"),
            ("", r#"{"time":5}"#, "within days of 1970"),
            ("", r#"{"time":"soon"}"#, "does not contain times"),
            ("--time-format iso", r#"{"time":"9999-01-01"}"#, "beyond"),
            (
                "--tz Europe/Berlin",
                r#"{"time":"2001-10-28 02:30"}"#,
                "came twice",
            ),
            (
                "--tz Europe/Berlin",
                r#"{"time":"2001-03-25 02:30"}"#,
                "skipped",
            ),
            (
                "--container-field d",
                r#"{"time":"2001-09-09"}"#,
                "no field `d`",
            ),
            (
                "--container-field d",
                r#"{"d":1.5,"time":"2001-09-09"}"#,
                "neither a text",
            ),
            (
                "--container-field d",
                r#"{"d":"","time":"2001-09-09"}"#,
                "cannot be the name",
            ),
            ("--container-field d", &long, "513 bytes"),
            ("", "[]", "found"),
            ("", r#"{"a":1,"a":2}"#, "found"),
            ("", r#"{"a":18446744073709551616}"#, "found"),
        ] {
            let problem = taken(options, json).unwrap_err();
            assert!(problem.contains(told), "{options} {json}: {problem}");
        }
    }
}
