//! Converts records to rows, each with a time, tags and values. A line that cannot be converted is reported with its
//! number; the caller decides whether the import continues.

use crate::exit::{Failure, Outcome};
use crate::import::batch::{BadRow, Batch, Combinations, END_OF_TAG};
use crate::import::blocks::{Block, LinesBefore};
use crate::import::digits::Digits;
use crate::import::field::{Nulls, boolean, field, read_value, whole_field};
use crate::import::given::{self, Given};
use crate::import::layout::Layout;
use crate::import::line_rows;
use crate::import::local_times::Policy;
use crate::import::number::Number;
use crate::import::record::{JsonLines, Keys, Records};
use crate::import::table::Named;
use crate::import::texts::{NO_TEXT, Texts};
use crate::output::printable;
use crate::time::{Epoch, Moment, Nanos, TimeReader};
use csv::ByteRecord;
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Read;
use tidalite::limits::TEXT_BYTES_MAX;
use tidalite::{Column, ColumnType, SeriesName, Value};

/// Converts blocks of an input to rows.
#[derive(Debug)]
pub(crate) struct Reading {
    /// Name of the input, for messages.
    pub(crate) what: String,
    pub(crate) form: Known,
    /// The word for a line of the input in messages: its lines may be elements of an array.
    pub(crate) counts: &'static str,
    /// Number of records before the rows: the names of the columns and their units.
    pub(crate) header_records: usize,
    pub(crate) layout: Layout,
    pub(crate) nulls: Nulls,
    /// Policy for local times that clocks repeat or skip.
    pub(crate) policy: Policy,
    /// Whether a bad cell of a value column is stored as null.
    pub(crate) bad_cells_are_null: bool,
}

/// The format of an input, with everything that is needed to parse it.
#[derive(Debug)]
pub(crate) enum Known {
    Csv {
        delimiter: u8,
        /// The character with which lines of comments begin.
        comment: Option<u8>,
    },
    /// One JSON object per line.
    Objects {
        columns: HashMap<String, usize>,
        keys: Keys,
    },
    /// One JSON array per line.
    Arrays,
    /// The line protocol, with the unit of its timestamps.
    Line(Epoch),
}

impl Reading {
    /// The failure if the input cannot be read.
    pub(crate) fn unreadable(&self, error: &std::io::Error) -> Failure {
        unreadable(&self.what, error)
    }

    /// Whether the values of the input have types of their own.
    pub(crate) fn has_types(&self) -> bool {
        matches!(self.form, Known::Line(_)) || !self.layout.given.is_empty()
    }

    /// Parses the rows of a block into a batch.
    ///
    /// # Errors
    /// A record that does not end; the rows before that record are in the batch.
    pub(crate) fn read(
        &self,
        block: Block,
        known: &mut Combinations,
        batch: &mut Batch,
    ) -> Outcome {
        batch.begin(block, known.reader);
        if let Known::Line(epoch) = self.form {
            let bytes = std::mem::take(&mut batch.block.bytes);
            line_rows::read(&bytes, epoch, known, batch);
            batch.block.bytes = bytes;
            return Ok(());
        }
        // The CSV reader strips a byte order mark at the beginning of its input. In later blocks such bytes are part of
        // a field, so a line feed is put in front.
        let front: &[u8] = if batch.block.number == 0 { b"" } else { b"\n" };
        let bytes = std::mem::take(&mut batch.block.bytes);
        let input = front.chain(&bytes[..]);
        let mut records = match &self.form {
            Known::Csv { delimiter, comment } => Records::csv(input, *delimiter, *comment),
            Known::Objects { columns, keys } => {
                Records::Json(JsonLines::of_columns(input, columns.clone(), *keys))
            }
            Known::Arrays | Known::Line(_) => Records::Json(JsonLines::of_arrays(input)),
        };
        let done = self.read_all(&mut records, (front.len(), &bytes), known, batch);
        batch.block.bytes = bytes;
        done
    }

    fn read_all<R: Read>(
        &self,
        records: &mut Records<R>,
        (front, bytes): (usize, &[u8]),
        known: &mut Combinations,
        batch: &mut Batch,
    ) -> Outcome {
        let mut record = ByteRecord::new();
        let (mut tags, mut bad_cells, mut last) = (Vec::new(), Vec::new(), LastTime::default());
        let mut before = LinesBefore::default();
        let mut skip = match batch.block.number {
            0 => self.header_records,
            _ => 0,
        };
        loop {
            let read = records
                .next(&mut record)
                .map_err(|error| self.unreadable(&error))?;
            if read == Ok(false) {
                return Ok(());
            }
            if skip > 0 {
                skip -= 1;
                continue;
            }
            let start = record.position().map_or(0, csv::Position::byte);
            let start = usize::try_from(start).unwrap_or(0).saturating_sub(front);
            let row = match batch.block.is_open {
                true => Err("a quote is not closed".to_owned()),
                false => {
                    let parts = (&mut tags, &mut bad_cells, &mut last);
                    read.and_then(|_| self.read_row(&record, parts, known, batch))
                }
            };
            match row {
                Ok(time) => {
                    for why in bad_cells.drain(..) {
                        let line = batch.block.line_in(bytes, start, &mut before);
                        let row = batch.times.len();
                        batch.bad_cells.push((row, BadRow { line, why }));
                    }
                    let number = known.number_of_tags(&tags, batch);
                    batch.end_row(time, start, number);
                }
                Err(why) => {
                    let line = batch.block.line_in(bytes, start, &mut before);
                    batch.bad.push((batch.times.len(), BadRow { line, why }));
                }
            }
        }
    }

    /// Parses a record: returns its time, and appends its values to the batch. If the record is bad, nothing is
    /// appended.
    fn read_row(
        &self,
        record: &ByteRecord,
        (tags, bad_cells, last): (&mut Vec<u8>, &mut Vec<String>, &mut LastTime),
        known: &Combinations,
        batch: &mut Batch,
    ) -> Result<Nanos, String> {
        let (layout, nulls) = (&self.layout, &self.nulls);
        // Some programs write a separator after the last field of a row, but not after the names.
        let has_more = (layout.width..record.len()).any(|index| field(record, index) != Ok(""));
        if record.len() < layout.width || has_more {
            return Err(format!(
                "{} {} instead of {}",
                record.len(),
                if record.len() == 1 { "field" } else { "fields" },
                layout.width
            ));
        }
        let time = layout.time.text(record, nulls)?;
        let moment = last.read(&time, &layout.reader)?;
        let zone = layout.reader.zone();
        let time = batch
            .local
            .settle(moment, self.policy, &printable(&time), zone)?;
        tags.clear();
        for column in &layout.tags {
            let text = field(record, column.index)?;
            if layout.names_series || !nulls.contains(text) {
                tags.extend_from_slice(text.as_bytes());
            }
            tags.push(END_OF_TAG);
        }
        // The name of a series is parsed only when it occurs for the first time.
        if layout.names_series && known.of_tags(tags).is_none() {
            self.check_name(record)?;
        }
        let (values, words, texts) = (batch.values.len(), batch.words.len(), batch.texts.len());
        bad_cells.clear();
        self.read_values(record, bad_cells, batch)
            .inspect_err(|_| {
                batch.values.truncate(values);
                batch.words.truncate(words);
                batch.texts.truncate(texts);
            })?;
        batch.local.note(batch.times.len(), moment, self.policy);
        Ok(time)
    }

    /// Checks the field that holds the name of the row's series.
    fn check_name(&self, record: &ByteRecord) -> Result<(), String> {
        let Some(column) = self.layout.tags.first() else {
            return Ok(());
        };
        let checked = SeriesName::parse(field(record, column.index)?);
        checked.map(drop).map_err(|error| {
            let (name, why) = (printable(&column.name), printable(&error.to_string()));
            format!("column `{name}`: {why}")
        })
    }

    fn read_values(
        &self,
        record: &ByteRecord,
        bad_cells: &mut Vec<String>,
        batch: &mut Batch,
    ) -> Result<(), String> {
        let (layout, nulls) = (&self.layout, &self.nulls);
        for (named, column) in layout.values.iter().zip(&layout.typed) {
            let styles = (nulls, layout.digits);
            let word = match typed(record, named, column, styles, &mut batch.texts) {
                Err(why) if self.bad_cells_are_null && column.nullable => {
                    bad_cells.push(why);
                    null_word(column)?
                }
                word => word?,
            };
            batch.words.push(word);
        }
        if !layout.typed.is_empty() {
            return Ok(());
        }
        let columns = layout.values.iter().zip(&layout.booleans);
        for (place, (column, is_boolean)) in columns.enumerate() {
            let number = match (layout.given.get(place), is_boolean) {
                (Some(&kind @ (Given::Whole | Given::Unsigned)), _) => {
                    given::whole(record, column, kind, nulls)
                }
                (Some(Given::Text), _) => given::text(record, column, nulls, &mut batch.texts),
                (_, true) => truth(record, column, nulls),
                (_, false) => number(record, column, nulls, layout.digits),
            };
            let number = match number {
                Err(why) if self.bad_cells_are_null => {
                    bad_cells.push(why);
                    None
                }
                number => number?,
            };
            batch.values.push(number);
        }
        Ok(())
    }
}

/// The time of the previous row: rows of several devices often follow each other with the same time.
#[derive(Debug, Default)]
struct LastTime {
    text: String,
    moment: Option<Moment>,
}

impl LastTime {
    /// Parses a time, unless it is the same text as before.
    fn read(&mut self, text: &str, reader: &TimeReader) -> Result<Moment, String> {
        if let Some(moment) = self.moment
            && self.text == text
        {
            return Ok(moment);
        }
        let moment = reader.read(text).map_err(|why| printable(&why))?;
        self.text.clear();
        self.text.push_str(text);
        self.moment = Some(moment);
        Ok(moment)
    }
}

/// Parses the number in a field; `None` if the field is null.
fn number(
    record: &ByteRecord,
    column: &Named,
    nulls: &Nulls,
    digits: Digits,
) -> Result<Option<Number>, String> {
    let text = field(record, column.index)?;
    if nulls.contains(text) {
        return Ok(None);
    }
    let number = match digits.is_plain() {
        true => Number::read(text).map_err(str::to_owned),
        false => match digits.plain(text) {
            Some(plain) => Number::read(&plain).map_err(str::to_owned),
            None => Err(format!("is not a number with {digits}")),
        },
    };
    let number = number.map_err(|why| {
        let (text, name) = (printable(text), printable(&column.name));
        format!("`{text}` in column `{name}` {why}")
    });
    number.map(Some)
}

/// Parses true or false in a field; `None` if the field is null.
fn truth(record: &ByteRecord, column: &Named, nulls: &Nulls) -> Result<Option<Number>, String> {
    let text = field(record, column.index)?;
    if nulls.contains(text) {
        return Ok(None);
    }
    let value = boolean(text).ok_or_else(|| {
        let (text, name) = (printable(text), printable(&column.name));
        format!("`{text}` in column `{name}` is neither true nor false")
    });
    value.map(|value| Some(Number::Bool(value)))
}

/// The 64-bit word that stores null in this column; an error if the column is not nullable.
fn null_word(column: &Column) -> Result<u64, String> {
    match column.ty.is_text() {
        true => Ok(NO_TEXT),
        false => column.word(&Value::Null).map_err(|error| error.to_string()),
    }
}

/// Converts a field of a typed column to a word; for a text, the word is its number in `texts`.
fn typed(
    record: &ByteRecord,
    named: &Named,
    column: &Column,
    (nulls, digits): (&Nulls, Digits),
    texts: &mut Texts,
) -> Result<u64, String> {
    // Blanks are part of a string. In a string column that is not nullable, words that mean null are strings, too.
    let is_string = column.ty == ColumnType::String;
    let text = if is_string {
        whole_field(record, named.index)?
    } else {
        field(record, named.index)?
    };
    let word = |value: &Value| column.word(value).map_err(|error| error.to_string());
    if column.nullable && nulls.contains(text) {
        return null_word(column);
    }
    let is_null = !is_string && !text.is_empty() && nulls.contains(text);
    if nulls.is_marked() && nulls.contains(text) {
        let name = printable(&named.name);
        return Err(format!(
            "column `{name}` has no value, and {} without ? needs one",
            column.ty.name()
        ));
    }
    let value = if is_null {
        None
    } else if digits.is_plain() || !is_numeric(column.ty) {
        read_value(text, column.ty)
    } else {
        let plain = digits.plain(text);
        plain.and_then(|plain: Cow<'_, str>| read_value(&plain, column.ty))
    };
    let value = value.ok_or_else(|| {
        format!(
            "`{}` in column `{}` is not a valid {}",
            printable(text),
            printable(&named.name),
            column.ty.name()
        )
    })?;
    if !column.ty.is_text() {
        return word(&value);
    }
    if text.len() / 2 > TEXT_BYTES_MAX || is_string && text.len() > TEXT_BYTES_MAX {
        let name = printable(&named.name);
        let most = TEXT_BYTES_MAX;
        return Err(format!(
            "the text in column `{name}` has more than {most} bytes"
        ));
    }
    Ok(match &value {
        Value::Bytes(bytes) => texts.push(bytes),
        Value::Guid(guid) => texts.push(guid),
        _ => texts.push(text.as_bytes()),
    })
}

fn is_numeric(ty: ColumnType) -> bool {
    use ColumnType::{Decimal, F32, F64, I64, U64};
    matches!(ty, F64 | F32 | I64 | U64 | Decimal(_))
}

/// The failure if an input cannot be read.
pub(crate) fn unreadable(what: &str, error: &std::io::Error) -> Failure {
    let failure = Failure::bad_input(format!("cannot read {what}: {error}"));
    match error.kind() {
        std::io::ErrorKind::InvalidInput
        | std::io::ErrorKind::InvalidData
        | std::io::ErrorKind::UnexpectedEof => failure
            .hint("the compressed data is damaged or incomplete: check it with `gzip -t` or `zstd -t`, and fetch the file again"),
        _ => failure,
    }
}
