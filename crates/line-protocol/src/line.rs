//! A line and its parts.

use crate::error::{Error, Problem};
use crate::escape::{find, measurement, name};
use crate::field::Fields;
use std::borrow::Cow;

/// A line, divided into its parts.
///
/// ```
/// use tidalite_line_protocol::{Line, Value};
///
/// let line = Line::parse(r#"weather,site=north temp=21.5,n=7i 1401581400"#)?.ok_or("a comment")?;
/// assert_eq!(line.key(), "weather,site=north");
/// assert_eq!(line.time(), Some(1_401_581_400));
/// let series = line.series()?;
/// assert_eq!(series.measurement, "weather");
/// assert_eq!(series.tags, [("site".into(), "north".into())]);
/// let mut fields = line.fields();
/// assert_eq!(fields.next().ok_or("no field")??.value, Value::Float(21.5));
/// assert_eq!(fields.next().ok_or("no field")??.value, Value::Integer(7));
/// assert!(fields.next().is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    whole: &'a str,
    key: &'a str,
    /// The fields, and their offset in the line.
    fields: (&'a str, usize),
    time: Option<i64>,
}

/// The measurement and the tags of a line, without escapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series<'a> {
    /// The measurement.
    pub measurement: Cow<'a, str>,
    /// Keys and values of the tags, in the order of the line.
    pub tags: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

impl<'a> Line<'a> {
    /// Divides a line into its parts; the tags and the fields are parsed later. `None` for a line that is blank or a
    /// comment. A line feed at the end is ignored, with a carriage return before it.
    ///
    /// # Errors
    /// A line without measurement or fields, and a timestamp that is not an integer of 64 bits.
    pub fn parse(line: &'a str) -> Result<Option<Self>, Error> {
        let whole = line.trim_matches(['\r', '\n', ' ', '\t']);
        if whole.is_empty() || whole.starts_with('#') {
            return Ok(None);
        }
        let fail = |byte, problem| Err(Error::at(whole, byte, problem));
        if whole.starts_with(',') {
            return fail(0, Problem::NoMeasurement);
        }
        let Some(end) = find(whole, |byte| byte == b' ') else {
            return fail(whole.len(), Problem::NoFields);
        };
        let (key, rest) = whole.split_at(end);
        let fields = rest.trim_start_matches(' ');
        let start = whole.len() - fields.len();
        // A string or a key that contains a blank ends with something else than digits: with a quote or after an equals
        // sign. So the text after the last blank decides without a look at the fields.
        let (fields, time) = match fields.rsplit_once(' ') {
            Some((fields, last)) if !last.contains(['=', '"']) => match last.parse() {
                Ok(time) => (fields.trim_end_matches(' '), Some(time)),
                Err(_) => {
                    let byte = whole.len() - last.len();
                    return fail(byte, Problem::BadTimestamp(last.to_owned()));
                }
            },
            _ => (fields, None),
        };
        Ok(Some(Self {
            whole,
            key,
            fields: (fields, start),
            time,
        }))
    }

    /// The measurement and the tags as written: equal for all lines of a series that write its tags in the same order.
    #[must_use]
    pub fn key(&self) -> &'a str {
        self.key
    }

    /// The timestamp; its unit is agreed upon outside the protocol, and is nanoseconds by default.
    #[must_use]
    pub fn time(&self) -> Option<i64> {
        self.time
    }

    /// Parses the measurement and the tags.
    ///
    /// # Errors
    /// A tag without key or value.
    pub fn series(&self) -> Result<Series<'a>, Error> {
        let end = find(self.key, |byte| byte == b',').unwrap_or(self.key.len());
        let (written, mut rest) = self.key.split_at(end);
        let mut tags = Vec::new();
        while let Some(tag) = rest.strip_prefix(',') {
            let at = self.key.len() - tag.len();
            let end = find(tag, |byte| byte == b',').unwrap_or(tag.len());
            let (tag, after) = tag.split_at(end);
            rest = after;
            let equals = find(tag, |byte| byte == b'=');
            match equals.map(|equals| (&tag[..equals], &tag[equals + 1..])) {
                Some((key, value)) if !key.is_empty() && !value.is_empty() => {
                    tags.push((name(key), name(value)));
                }
                _ => return Err(Error::at(self.whole, at, Problem::BadTag(tag.to_owned()))),
            }
        }
        Ok(Series {
            measurement: measurement(written),
            tags,
        })
    }

    /// The fields, one after another.
    #[must_use]
    pub fn fields(&self) -> Fields<'a> {
        let (fields, start) = self.fields;
        Fields::new(self.whole, fields, start)
    }
}
