//! Records of an input in either form: CSV, or one JSON object per line. A record is a list of texts, one for each
//! column.
//!
//! The keys of nested objects are joined with dots: `{"wind": {"speed": 7}}` has a column `wind.speed`. A list becomes
//! its own text.

use crate::import::field::NOT_UTF_8;
use csv::{ByteRecord, Position};
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read};

/// Maximum length in bytes of one row, including the bytes after it that the reader has buffered.
pub(crate) const ROW_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Maximum depth of nested objects; an object that is nested deeper becomes its own text.
const DEPTH_MAX: usize = 16;

/// A reader of records in one of the two forms.
pub(crate) enum Records<R> {
    /// CSV: fields are separated by commas or by another character.
    Csv(csv::Reader<Fence<R>>),
    /// JSON lines: each line is an object.
    Json(JsonLines<R>),
}

impl<R: Read> Records<R> {
    pub(crate) fn csv(input: R, delimiter: u8, comment: Option<u8>) -> Self {
        let reader = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .comment(comment)
            .has_headers(false)
            .flexible(true)
            .buffer_capacity(128 * 1024)
            .from_reader(Fence {
                inner: input,
                since: 0,
            });
        Self::Csv(reader)
    }

    /// Reads the next record into `record`; returns `Ok(false)` at the end of the input. The inner error is for a line
    /// that is not a record.
    pub(crate) fn next(&mut self, record: &mut ByteRecord) -> io::Result<Result<bool, String>> {
        match self {
            Self::Csv(reader) => {
                reader.get_mut().since = 0;
                reader
                    .read_byte_record(record)
                    .map(Ok)
                    .map_err(io::Error::from)
            }
            Self::Json(lines) => lines.next(record),
        }
    }
}

/// A reader that fails if a row does not end: a quote that is opened and never closed would otherwise make the CSV
/// reader take the rest of the file into memory.
pub(crate) struct Fence<R> {
    inner: R,
    /// Number of bytes read since the current row began; the owner resets this number at each row.
    since: u64,
}

impl<R: Read> Read for Fence<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.inner.read(buffer)?;
        self.since += bytes as u64;
        if self.since > ROW_BYTES_MAX {
            return Err(endless("is a quote not closed?"));
        }
        Ok(bytes)
    }
}

pub(crate) fn endless(why: &str) -> io::Error {
    let most = ROW_BYTES_MAX >> 20;
    io::Error::other(format!("a row does not end within {most} MiB: {why}"))
}

/// A reader of JSON lines, which are one object per line.
pub(crate) struct JsonLines<R> {
    input: BufReader<R>,
    /// Index of each column by its key, in the order in which the keys were first seen.
    columns: HashMap<String, usize>,
    /// The keys of the columns, in the order of the columns.
    order: Vec<String>,
    /// Handling of keys that are not in `columns`.
    keys: Keys,
    line: Vec<u8>,
    number: u64,
    /// Number of bytes of all lines read so far.
    bytes: u64,
    fields: Vec<String>,
}

/// The handling of a key that is not a column yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keys {
    /// The key becomes a new column.
    Learn,
    /// The key is ignored, because the user has named the columns.
    PassOver,
    /// The line is rejected, because the value of the key would be lost.
    Refuse,
    /// There are no keys: each line is an array, whose elements are the fields in their order.
    Arrays,
}

impl<R: Read> JsonLines<R> {
    /// Creates a reader without columns, in which each new key becomes a column.
    pub(crate) fn new(input: R) -> Self {
        Self::of_columns(input, HashMap::new(), Keys::Learn)
    }

    /// Creates a reader of lines that are arrays.
    pub(crate) fn of_arrays(input: R) -> Self {
        Self::of_columns(input, HashMap::new(), Keys::Arrays)
    }

    /// Creates a reader with these columns.
    pub(crate) fn of_columns(input: R, columns: HashMap<String, usize>, keys: Keys) -> Self {
        Self {
            input: BufReader::with_capacity(128 * 1024, input),
            order: in_order(&columns),
            columns,
            keys,
            line: Vec::new(),
            number: 0,
            bytes: 0,
            fields: Vec::new(),
        }
    }

    /// The keys of the columns, in the order of the columns.
    pub(crate) fn names(&self) -> Vec<String> {
        in_order(&self.columns)
    }

    /// The columns that were found: the index of each key.
    pub(crate) fn into_columns(self) -> HashMap<String, usize> {
        self.columns
    }

    fn next(&mut self, record: &mut ByteRecord) -> io::Result<Result<bool, String>> {
        let start = loop {
            self.line.clear();
            let limit = ROW_BYTES_MAX + 1;
            let read = self
                .input
                .by_ref()
                .take(limit)
                .read_until(b'\n', &mut self.line)?;
            if read as u64 == limit {
                return Err(endless("is this one JSON object per line?"));
            }
            if read == 0 {
                return Ok(Ok(false));
            }
            self.number += 1;
            let start = self.bytes;
            self.bytes += read as u64;
            if !self.line.trim_ascii().is_empty() {
                break start;
            }
        };
        let told = match self.keys {
            Keys::Arrays => self.array(),
            _ => self.object(),
        };
        record.clear();
        for field in &self.fields {
            record.push_field(field.as_bytes());
        }
        let mut position = Position::new();
        position.set_line(self.number).set_byte(start);
        record.set_position(Some(position));
        Ok(told.map(|()| true))
    }

    /// Parses the line that was read as an array, into one field for each element.
    fn array(&mut self) -> Result<(), String> {
        self.fields.clear();
        let line = std::str::from_utf8(self.line.trim_ascii())
            .map_err(|_| format!("the line {NOT_UTF_8}"))?;
        let fail = |error: serde_json::Error| format!("no JSON array: {error}");
        let elements: Vec<&RawValue> = serde_json::from_str(line).map_err(fail)?;
        for element in elements {
            let mut field = String::new();
            set(&mut field, element.get()).map_err(fail)?;
            self.fields.push(field);
        }
        Ok(())
    }

    /// Parses the line that was read into the fields of its columns.
    fn object(&mut self) -> Result<(), String> {
        for field in &mut self.fields {
            field.clear();
        }
        self.fields.resize(self.columns.len(), String::new());
        let line = std::str::from_utf8(self.line.trim_ascii())
            .map_err(|_| format!("the line {NOT_UTF_8}"))?;
        let mut flat = Flat {
            columns: &mut self.columns,
            order: &self.order,
            next: 0,
            fields: &mut self.fields,
            keys: self.keys,
            prefix: String::new(),
            depth: 0,
            unknown: None,
        };
        flat.read(line)
            .map_err(|error| format!("no JSON object: {error}"))?;
        match flat.unknown {
            Some(key) => Err(format!(
                "key `{key}` is not among those of the first lines; name the columns with --value or --columns"
            )),
            None => Ok(()),
        }
    }
}

/// Writes the values of a JSON object, and of objects nested in it, to the fields of their columns.
struct Flat<'a> {
    columns: &'a mut HashMap<String, usize>,
    /// The keys of the columns that were known before this object, in the order of the columns.
    order: &'a [String],
    /// The column of the next key if this object has its keys in the order of the columns, as most have.
    next: usize,
    fields: &'a mut Vec<String>,
    keys: Keys,
    prefix: String,
    depth: usize,
    unknown: Option<String>,
}

impl Flat<'_> {
    fn read(&mut self, object: &str) -> Result<(), serde_json::Error> {
        let mut reader = serde_json::Deserializer::from_str(object);
        reader.deserialize_map(&mut *self)?;
        reader.end()
    }

    fn value(&mut self, key: &str, value: &str) -> Result<(), serde_json::Error> {
        if value.starts_with('{') && self.depth < DEPTH_MAX {
            let length = self.prefix.len();
            self.prefix.push_str(key);
            self.prefix.push('.');
            self.depth += 1;
            let done = self.read(value);
            self.depth -= 1;
            self.prefix.truncate(length);
            return done;
        }
        let expected = Some(self.next).filter(|next| {
            self.prefix.is_empty() && self.order.get(*next).is_some_and(|own| own == key)
        });
        let known = if let Some(next) = &expected {
            Some(next)
        } else if self.prefix.is_empty() {
            self.columns.get(key)
        } else {
            self.columns.get(&(self.prefix.clone() + key))
        };
        let index = match (known, self.keys) {
            (Some(index), _) => *index,
            (None, Keys::Learn) => {
                let index = self.columns.len();
                self.columns.insert(self.prefix.clone() + key, index);
                self.fields.push(String::new());
                index
            }
            (None, Keys::PassOver | Keys::Arrays) => return Ok(()),
            (None, Keys::Refuse) => {
                self.unknown = Some(self.prefix.clone() + key);
                return Ok(());
            }
        };
        self.next = index + 1;
        set(&mut self.fields[index], value)
    }
}

/// The keys of columns, in the order of the columns.
fn in_order(columns: &HashMap<String, usize>) -> Vec<String> {
    let mut names = vec![String::new(); columns.len()];
    for (name, index) in columns {
        names[*index].clone_from(name);
    }
    names
}

/// Sets a field to the text of a JSON value.
fn set(field: &mut String, value: &str) -> Result<(), serde_json::Error> {
    field.clear();
    if value.starts_with('"') {
        let text: Text<'_> = serde_json::from_str(value)?;
        field.push_str(&text.0);
    } else if value != "null" {
        field.push_str(value);
    }
    Ok(())
}

impl<'de> Visitor<'de> for &mut Flat<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Text<'de>>()? {
            let value: &RawValue = map.next_value()?;
            self.value(&key.0, value.get())
                .map_err(serde::de::Error::custom)?;
        }
        Ok(())
    }
}

/// A JSON text, which is borrowed unless it contains escapes.
struct Text<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> serde::Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Lent;
        impl<'de> Visitor<'de> for Lent {
            type Value = Text<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "a text")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Lent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(
        text: &str,
        keys: Keys,
        learn: usize,
    ) -> (Vec<String>, Vec<Result<Vec<String>, String>>) {
        let mut lines = JsonLines::new(text.as_bytes());
        let (mut record, mut read) = (ByteRecord::new(), Vec::new());
        loop {
            if read.len() == learn {
                lines.keys = keys;
            }
            match lines.next(&mut record).unwrap() {
                Ok(false) => return (lines.names(), read),
                Ok(true) => read.push(Ok(record
                    .iter()
                    .map(|field| String::from_utf8(field.to_vec()).unwrap())
                    .collect())),
                Err(why) => read.push(Err(why)),
            }
        }
    }

    #[test]
    fn objects_become_records() {
        let text = "{\"t\":1,\"wind\":{\"speed\":7.50,\"from\":\"N\\u0057\"}}\n\n\
                    {\"wind\":{\"speed\":null},\"t\":2,\"ok\":true,\"list\":[1, 2]}\r\n{\"new\":1}\n[1]\n{\"t\":3}";
        let (names, read) = all(text, Keys::Refuse, 2);
        assert_eq!(names, ["t", "wind.speed", "wind.from", "ok", "list"]);
        let row = |texts: [&str; 5]| Ok(texts.map(str::to_owned).to_vec());
        assert_eq!(read[0], Ok(["1", "7.50", "NW"].map(str::to_owned).to_vec()));
        assert_eq!(read[1], row(["2", "", "", "true", "[1, 2]"]));
        assert!(read[2].as_ref().unwrap_err().contains("key `new`"));
        assert!(read[3].as_ref().unwrap_err().contains("no JSON object"));
        assert_eq!(read[4], row(["3", "", "", "", ""]));
        let (_, read) = all(text, Keys::PassOver, 2);
        assert_eq!(read[2], row(["", "", "", "", ""]));
    }

    #[test]
    fn depth_and_length_have_bounds() {
        let deep = format!("{}1{}", "{\"a\":".repeat(5000), "}".repeat(5000));
        let (names, read) = all(&deep, Keys::Learn, 9);
        assert_eq!(names, [vec!["a"; DEPTH_MAX + 1].join(".")]);
        assert!(read[0].as_ref().unwrap()[0].starts_with("{\"a\":"));
        let mut endless = JsonLines::new(io::repeat(b' '));
        let error = endless.next(&mut ByteRecord::new()).unwrap_err();
        assert!(error.to_string().contains("does not end"), "{error}");
    }

    /// The test reads a row of the maximum length, and one that is a byte longer.
    #[test]
    fn a_row_has_so_many_bytes_and_not_one_more() {
        let most = ROW_BYTES_MAX as usize;
        for (bytes, fits) in [(most, true), (most + 1, false)] {
            let mut fence = Fence {
                inner: io::repeat(b'x').take(bytes as u64),
                since: 0,
            };
            let read = io::copy(&mut fence, &mut io::sink());
            assert_eq!(read.is_ok(), fits, "a row of CSV of {bytes} bytes");
            let mut line = String::from("{\"a\":\"");
            line += &"x".repeat(bytes - line.len() - 3);
            line += "\"}\n";
            assert_eq!(line.len(), bytes);
            let mut lines = JsonLines::new(line.as_bytes());
            let mut record = ByteRecord::new();
            let read = lines.next(&mut record);
            assert_eq!(read.is_ok(), fits, "a JSON line of {bytes} bytes");
            match read {
                Ok(told) => assert_eq!((told, record[0].len()), (Ok(true), bytes - 9)),
                Err(error) => assert!(error.to_string().contains("4 MiB"), "{error}"),
            }
        }
    }
}
