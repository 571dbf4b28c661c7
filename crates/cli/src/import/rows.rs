//! Converts records to rows, each with a time, tags and values. A line that cannot be converted is reported with its
//! number; the caller decides whether the import continues.

use crate::exit::{Exit, Failure, Outcome};
use crate::import::advice::{self, foreign, json_array, lines_to_skip};
use crate::import::batch::{BadRow, Batch, Combinations};
use crate::import::blocks::{Block, Blocks, Ends, LinesBefore, empty_lines, lines_in, open_quote};
use crate::import::field::{Nulls, field, read_value, whole_field};
use crate::import::layout::{Layout, Named, Wishes};
use crate::import::local_times::Policy;
use crate::import::number::Number;
use crate::import::record::{JsonLines, Keys, Records};
use crate::import::texts::{NO_TEXT, Texts};
use crate::output::printable;
use crate::time::Nanos;
use csv::ByteRecord;
use std::collections::{HashMap, VecDeque};
use std::io::{Chain, Cursor, Read};
use tidalite::limits::TEXT_BYTES_MAX;
use tidalite::{Column, ColumnType, SeriesName, Value};

/// Number of rows in the sample from which the roles of the columns are decided.
const SAMPLE_ROWS: usize = 1000;

/// Maximum number of bytes in the sample from which the roles of the columns are decided.
const SAMPLE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Number of bytes that are read after a zero byte was found, to find out whether compressed data are damaged.
const DAMAGE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// The byte order mark with which UTF-8 text may begin.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The format of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// CSV with this delimiter; with `None`, the first line shows the delimiter.
    Csv(Option<u8>),
    /// JSON lines: one object per line.
    JsonLines,
}

/// A reader of the whole input, beginning with the bytes that were already read to inspect it.
type Whole<R> = Chain<Cursor<Vec<u8>>, Chain<Cursor<Vec<u8>>, R>>;

/// An input with known columns: its blocks, and the way to parse them.
pub(crate) struct Rows<R> {
    pub(crate) blocks: Blocks<Whole<R>>,
    pub(crate) reading: Reading,
    /// Advice about the first lines, for the case that one of them cannot be parsed.
    pub(crate) advice: Option<String>,
}

/// Converts blocks of an input to rows.
#[derive(Debug)]
pub(crate) struct Reading {
    /// Name of the input, for messages.
    what: String,
    form: Known,
    /// Whether the first record holds the names of the columns.
    header: bool,
    layout: Layout,
    nulls: Nulls,
    /// Policy for local times that clocks repeat or skip.
    policy: Policy,
    /// Whether a bad cell of a value column is stored as null.
    bad_cells_are_null: bool,
}

/// The format of an input, with everything that is needed to parse it.
#[derive(Debug)]
enum Known {
    Csv {
        delimiter: u8,
    },
    Json {
        columns: HashMap<String, usize>,
        keys: Keys,
    },
}

/// A reader that keeps all bytes that are read through it.
struct Kept<R> {
    inner: R,
    bytes: Vec<u8>,
}

impl<R: Read> Read for Kept<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.bytes.extend_from_slice(&buffer[..read]);
        Ok(read)
    }
}

impl<R: Read> Rows<R> {
    /// Reads the header and a sample, and decides the roles of the columns. `what` is the name of the input in
    /// messages. If `form` is not given, an input whose first byte is a brace is read as JSON lines.
    pub(crate) fn open(
        mut input: R,
        what: &str,
        form: Option<Form>,
        wishes: &Wishes,
        nulls: Nulls,
    ) -> Outcome<Self> {
        let mut head = read_head(&mut input).map_err(|error| unreadable(what, &error))?;
        refuse_what_is_no_text(&head, &mut input, what)?;
        // Editors on Windows write the byte order mark before JSON, too.
        if head.starts_with(BYTE_ORDER_MARK) {
            head.drain(..BYTE_ORDER_MARK.len());
        }
        if form.is_none()
            && let Some(failure) = json_array(&head, what)
        {
            return Err(failure);
        }
        let form = form.unwrap_or(if head.trim_ascii_start().first() == Some(&b'{') {
            Form::JsonLines
        } else {
            Form::Csv(None)
        });
        let delimiter = match form {
            Form::Csv(delimiter) => Some(delimiter.unwrap_or_else(|| likely_delimiter(&head))),
            Form::JsonLines => None,
        };
        let mut kept = Kept {
            inner: Cursor::new(head).chain(input),
            bytes: Vec::new(),
        };
        let mut records = match delimiter {
            Some(delimiter) => Records::csv(&mut kept, delimiter),
            None => Records::Json(JsonLines::new(&mut kept)),
        };
        let mut sample = take_sample(&mut records, what)?;
        let (names, form, ends) = match (records, delimiter) {
            (Records::Json(lines), _) => {
                let named = !wishes.values.is_empty() || !wishes.columns.is_empty();
                let keys = if named { Keys::PassOver } else { Keys::Refuse };
                let names = lines.names();
                let columns = lines.into_columns();
                (names, Known::Json { columns, keys }, Ends::Lines)
            }
            (Records::Csv(_), delimiter) => {
                let delimiter = delimiter.unwrap_or(b',');
                let names = names_of(&mut sample, wishes, what)?;
                (names, Known::Csv { delimiter }, Ends::Csv { delimiter })
            }
        };
        let header = wishes.header && ends != Ends::Lines;
        for record in sample.iter_mut().flatten() {
            // The first lines were parsed before all keys were known, so their records are too short.
            while ends == Ends::Lines && record.len() < names.len() {
                record.push_field(b"");
            }
        }
        let good: Vec<ByteRecord> = sample.iter().flatten().cloned().collect();
        if good.is_empty() {
            let why = sample.into_iter().find_map(Result::err);
            if why
                .as_ref()
                .is_some_and(|bad| bad.why.contains("EOF while parsing"))
            {
                return Err(Failure::bad_input(format!(
                    "{what} has no line with a JSON object"
                ))
                .hint(
                    "JSON that spans several lines: jq -c . FILE | tidalite import DATABASE.tdl -",
                ));
            }
            let why = why.map_or(String::new(), |bad| {
                format!(": line {}: {}", bad.line, bad.why)
            });
            return Err(Failure::bad_input(format!("{what} has no rows{why}")).hint(
                "CSV has a line of column names, then rows; JSON lines have one object per line",
            ));
        }
        let layout = Layout::decide(&names, &good, wishes, &nulls).map_err(|failure| {
            let failure = failure.about(what);
            match (ends, failure.exit) {
                (Ends::Csv { delimiter }, Exit::BadInput) => {
                    explained(failure, &kept.bytes, delimiter, what)
                }
                _ => failure,
            }
        })?;
        let advice = match ends {
            Ends::Csv { .. } => lines_to_skip(&kept.bytes, None),
            Ends::Lines => None,
        };
        // The sample is parsed again with the rest of the input. Empty lines are skipped, so that the first record (the
        // names) is in the first block.
        let empty = match ends {
            Ends::Csv { .. } => empty_lines(&kept.bytes),
            Ends::Lines => 0,
        };
        let line = 1 + lines_in(&kept.bytes[..empty]);
        kept.bytes.drain(..empty);
        let whole = Cursor::new(kept.bytes).chain(kept.inner);
        Ok(Self {
            advice,
            blocks: Blocks::new(whole, ends).begin_at_line(line),
            reading: Reading {
                what: what.to_owned(),
                form,
                header,
                layout,
                nulls,
                policy: wishes.local_times,
                bad_cells_are_null: wishes.bad_cells_are_null,
            },
        })
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.reading.layout
    }
}

impl Reading {
    /// The failure if the input cannot be read.
    pub(crate) fn unreadable(&self, error: &std::io::Error) -> Failure {
        unreadable(&self.what, error)
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
        // The CSV reader strips a byte order mark at the beginning of its input. In later blocks such bytes are part of
        // a field, so a line feed is put in front.
        let front: &[u8] = if batch.block.number == 0 { b"" } else { b"\n" };
        let bytes = std::mem::take(&mut batch.block.bytes);
        let input = front.chain(&bytes[..]);
        let mut records = match &self.form {
            Known::Csv { delimiter } => Records::csv(input, *delimiter),
            Known::Json { columns, keys } => {
                Records::Json(JsonLines::of_columns(input, columns.clone(), *keys))
            }
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
        let (mut tags, mut bad_cells) = (Vec::new(), Vec::new());
        let mut before = LinesBefore::default();
        let mut skip = self.header && batch.block.number == 0;
        loop {
            let read = records
                .next(&mut record)
                .map_err(|error| self.unreadable(&error))?;
            if read == Ok(false) {
                return Ok(());
            }
            if std::mem::take(&mut skip) {
                continue;
            }
            let start = record.position().map_or(0, csv::Position::byte);
            let start = usize::try_from(start).unwrap_or(0).saturating_sub(front);
            let row = match batch.block.is_open {
                true => Err("a quote is not closed".to_owned()),
                false => {
                    read.and_then(|_| self.read_row(&record, &mut tags, &mut bad_cells, batch))
                }
            };
            match row {
                Ok(time) => {
                    for why in bad_cells.drain(..) {
                        let line = batch.block.line_in(bytes, start, &mut before);
                        let row = batch.times.len();
                        batch.bad_cells.push((row, BadRow { line, why }));
                    }
                    let number = known.number(&tags, batch);
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
        tags: &mut Vec<String>,
        bad_cells: &mut Vec<String>,
        batch: &mut Batch,
    ) -> Result<Nanos, String> {
        let (layout, nulls) = (&self.layout, &self.nulls);
        if record.len() != layout.width {
            return Err(format!(
                "{} fields instead of {}",
                record.len(),
                layout.width
            ));
        }
        let time = field(record, layout.time.index)?;
        if nulls.contains(time) {
            return Err(format!("no time in column {}", layout.time.index + 1));
        }
        let moment = layout.reader.read(time).map_err(|why| printable(&why))?;
        let zone = layout.reader.zone();
        let time = batch
            .local
            .settle(moment, self.policy, &printable(time), zone)?;
        tags.resize_with(layout.tags.len(), String::new);
        for (slot, column) in tags.iter_mut().zip(&layout.tags) {
            let text = field(record, column.index)?;
            // If the series name is the same as in the last row, it is not parsed again: rows of a series often follow
            // each other.
            if layout.names_series && text != slot {
                slot.clear();
                SeriesName::parse(text).map_err(|error| {
                    format!(
                        "column `{}`: {}",
                        printable(&column.name),
                        printable(&error.to_string())
                    )
                })?;
            }
            slot.clear();
            if layout.names_series || !nulls.contains(text) {
                slot.push_str(text);
            }
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

    fn read_values(
        &self,
        record: &ByteRecord,
        bad_cells: &mut Vec<String>,
        batch: &mut Batch,
    ) -> Result<(), String> {
        let (layout, nulls) = (&self.layout, &self.nulls);
        for (named, column) in layout.values.iter().zip(&layout.typed) {
            let word = match typed(record, named, column, nulls, &mut batch.texts) {
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
        for column in &layout.values {
            let number = match number(record, column, nulls) {
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

/// Parses the number in a field; `None` if the field is null.
fn number(record: &ByteRecord, column: &Named, nulls: &Nulls) -> Result<Option<Number>, String> {
    let text = field(record, column.index)?;
    if nulls.contains(text) {
        return Ok(None);
    }
    let number = Number::read(text).map_err(|why| {
        let (text, name) = (printable(text), printable(&column.name));
        format!("`{text}` in column `{name}` {why}")
    });
    number.map(Some)
}

/// The 64-bit word that stores null in this column; an error if the column is not nullable.
fn null_word(column: &Column) -> Result<u64, String> {
    match column.ty.is_text() {
        true => Ok(NO_TEXT),
        false => column.word(&Value::Null).map_err(|error| error.to_string()),
    }
}

fn line_of(record: &ByteRecord) -> u64 {
    record.position().map_or(0, csv::Position::line)
}

fn bad_row(record: &ByteRecord, why: String) -> BadRow {
    let line = line_of(record);
    BadRow { line, why }
}

fn take_sample<R: Read>(
    records: &mut Records<R>,
    what: &str,
) -> Outcome<VecDeque<Result<ByteRecord, BadRow>>> {
    let (mut sample, mut bytes) = (VecDeque::new(), 0);
    while sample.len() <= SAMPLE_ROWS && bytes < SAMPLE_BYTES_MAX {
        let mut record = ByteRecord::new();
        match records
            .next(&mut record)
            .map_err(|error| unreadable(what, &error))?
        {
            Ok(false) => break,
            Ok(true) => {
                bytes += record.as_slice().len();
                sample.push_back(Ok(record));
            }
            Err(why) => sample.push_back(Err(bad_row(&record, why))),
        }
    }
    Ok(sample)
}

/// Converts a field of a typed column to a word; for a text, the word is its number in `texts`.
fn typed(
    record: &ByteRecord,
    named: &Named,
    column: &Column,
    nulls: &Nulls,
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
    let value = if is_null {
        None
    } else {
        read_value(text, column.ty)
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

/// Reads the first bytes of the input, enough to recognise its format.
fn read_head(input: &mut impl Read) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    input.take(64 * 1024).read_to_end(&mut head)?;
    Ok(head)
}

fn refuse_what_is_no_text(head: &[u8], rest: &mut impl Read, what: &str) -> Outcome {
    if head.is_empty() {
        return Err(Failure::bad_input(format!("{what} is empty"))
            .hint("CSV begins with a line of column names, JSON lines with {"));
    }
    if let Some(failure) = foreign(head, what) {
        return Err(failure);
    }
    if let Some(at) = head.iter().position(|byte| *byte == 0) {
        // Damaged compressed data may decompress to arbitrary bytes before the damage is detected, so the input is read
        // on.
        let read = std::io::copy(&mut rest.take(DAMAGE_BYTES_MAX), &mut std::io::sink());
        read.map_err(|error| unreadable(what, &error))?;
        let line = 1 + lines_in(&head[..at]);
        return Err(
            Failure::bad_input(format!("{what} is not CSV or JSON: it holds binary data (a zero byte in line {line})")).hint(
                "the input must be UTF-8 text, plain or compressed with gzip or zstd; decompress or convert other formats first",
            ),
        );
    }
    Ok(())
}

/// Improves the error for columns that were not found, if the first bytes show the reason.
fn explained(failure: Failure, bytes: &[u8], delimiter: u8, what: &str) -> Failure {
    if let Some(line) = open_quote(bytes, delimiter) {
        return Failure::bad_input(format!(
            "{what}: a quote that begins in line {line} is not closed"
        ))
        .hint(format!("close it: sed -n {line}p FILE shows the line"));
    }
    match lines_to_skip(bytes, None) {
        Some(next) => failure.hint(next),
        None => failure,
    }
}

/// Guesses the separator of fields: the one that occurs most often in the first line.
fn likely_delimiter(head: &[u8]) -> u8 {
    let first_line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let count = |wanted: u8| first_line.iter().filter(|byte| **byte == wanted).count();
    // The comma comes last, because `max_by_key` returns the last of several maxima.
    *[b'|', b'\t', b';', b',']
        .iter()
        .max_by_key(|byte| count(**byte))
        .unwrap_or(&b',')
}

fn names_of(
    sample: &mut VecDeque<Result<ByteRecord, BadRow>>,
    wishes: &Wishes,
    what: &str,
) -> Outcome<Vec<String>> {
    let Some(Ok(first)) = sample.front() else {
        return Err(Failure::bad_input(format!("{what} holds no line"))
            .hint("CSV begins with a line of column names, JSON lines with {"));
    };
    let texts = (0..first.len())
        .map(|index| field(first, index).map(str::to_owned))
        .collect::<Result<Vec<String>, String>>()
        .map_err(|why| {
            Failure::bad_input(format!("{what}: the first line is not text: {why}"))
                .hint(advice::NOT_UTF_8)
        })?;
    if !wishes.header {
        return Ok((1..=texts.len())
            .map(|number| format!("column{number}"))
            .collect());
    }
    let numbers = texts
        .iter()
        .filter(|text| text.parse::<f64>().is_ok())
        .count();
    let times = texts
        .iter()
        .filter(|text| crate::time::looks_like_date(text))
        .count();
    if numbers + times > 0 && (numbers + times) * 2 >= texts.len() {
        return Err(
            Failure::bad_input(format!("{what}: the first line holds data, not names"))
                .hint("use --no-header and give columns by number: --time 1 --value 2=temperature"),
        );
    }
    sample.pop_front();
    if sample.is_empty() {
        return Err(Failure::bad_input(format!(
            "{what} has column names but no rows"
        )));
    }
    Ok(texts)
}

fn unreadable(what: &str, error: &std::io::Error) -> Failure {
    let failure = Failure::bad_input(format!("cannot read {what}: {error}"));
    match error.kind() {
        std::io::ErrorKind::InvalidInput
        | std::io::ErrorKind::InvalidData
        | std::io::ErrorKind::UnexpectedEof => failure
            .hint("the compressed data is damaged or incomplete: check it with `gzip -t` or `zstd -t`, and fetch the file again"),
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;
    use crate::import::blocks::BLOCK_BYTES;
    use crate::import::record::ROW_BYTES_MAX;

    const WEATHER: &str = "origin,time_hour,temp\n\
        EWR,2013-01-01T06:00:00Z,39.02\n\
        EWR,2013-01-01T07:00:00Z,NA\n\
        JFK,yesterday,1\n\
        JFK,2013-01-01T07:00:00Z,warm\n\
        JFK,2013-01-01T08:00:00Z\n\
        ,2013-01-01T09:00:00Z,-1\n";

    fn wishes() -> Wishes {
        Wishes {
            header: true,
            tags: vec!["origin".into()],
            ..Wishes::default()
        }
    }

    fn read_all(text: &str, wishes: &Wishes) -> Outcome<(Vec<String>, Vec<BadRow>)> {
        let whole = read_in_blocks(text, wishes, BLOCK_BYTES)?;
        // The rows and line numbers must not depend on where the blocks end.
        for size in [1, 40, 150] {
            assert_eq!(
                read_in_blocks(text, wishes, size)?,
                whole,
                "blocks of {size}"
            );
        }
        Ok(whole)
    }

    fn read_in_blocks(
        text: &str,
        wishes: &Wishes,
        size: usize,
    ) -> Outcome<(Vec<String>, Vec<BadRow>)> {
        let rows = Rows::open(text.as_bytes(), "a.csv", None, wishes, Nulls::default())?;
        let mut blocks = rows.blocks.of_bytes(size);
        let (mut good, mut bad) = (Vec::new(), Vec::new());
        let mut known = Combinations::default();
        let (mut batch, mut tags) = (Batch::default(), Vec::new());
        while let Some(block) = blocks.next().unwrap() {
            rows.reading.read(block, &mut known, &mut batch)?;
            tags.append(&mut batch.combinations);
            let width = rows.reading.layout.values.len();
            for (row, time) in batch.times.iter().enumerate() {
                let tags = &tags[batch.tags[row] as usize];
                let values = &batch.values[row * width..(row + 1) * width];
                good.push(format!("{time} {tags:?} {values:?}"));
            }
            bad.extend(batch.bad.drain(..).map(|(_, bad)| bad));
        }
        Ok((good, bad))
    }

    #[test]
    fn rows_and_complaints_with_line_numbers() {
        let wishes = Wishes {
            values: vec!["temp".into()],
            ..wishes()
        };
        let (good, bad) = read_all(WEATHER, &wishes).unwrap();
        assert_eq!(
            good,
            [
                "1357020000000000000 [\"EWR\"] [Some(Float(39.02))]",
                "1357023600000000000 [\"EWR\"] [None]",
                "1357030800000000000 [\"\"] [Some(Float(-1.0))]",
            ]
        );
        let lines: Vec<u64> = bad.iter().map(|row| row.line).collect();
        assert_eq!(lines, [4, 5, 6]);
        assert!(bad[0].why.contains("`yesterday`"), "{}", bad[0].why);
        assert_eq!(bad[1].why, "`warm` in column `temp` is not a number");
        assert_eq!(bad[2].why, "2 fields instead of 3");
    }

    #[test]
    fn json_lines_are_rows_like_any() {
        let text = "{\"time\":\"2013-01-01T06:00:00Z\",\"origin\":\"EWR\",\"temp\":39.02}\n\
                    {\"origin\":\"EWR\",\"time\":\"2013-01-01T07:00:00Z\",\"temp\":null,\"gust\":3}\n\
                    oops\n{\"time\":\"2013-01-01T08:00:00Z\",\"gust\":1e1}\n";
        let (good, bad) = read_all(text, &wishes()).unwrap();
        assert_eq!(
            good,
            [
                "1357020000000000000 [\"EWR\"] [Some(Float(39.02)), None]",
                "1357023600000000000 [\"EWR\"] [None, Some(Float(3.0))]",
                "1357027200000000000 [\"\"] [None, Some(Float(10.0))]",
            ]
        );
        assert_eq!((bad.len(), bad[0].line), (1, 3));
        assert!(read_all("{oops\n", &wishes()).is_err());
    }

    #[test]
    fn semicolons_a_byte_order_mark_and_windows_line_ends() {
        let text = "\u{feff}time;a;b\r\n2014-06-01;1;2\r\n2014-06-02;3;4\r\n";
        let (good, bad) = read_all(
            text,
            &Wishes {
                header: true,
                ..Wishes::default()
            },
        )
        .unwrap();
        assert_eq!(good.len(), 2);
        assert!(
            good[0].ends_with("[Some(Float(1.0)), Some(Float(2.0))]"),
            "{}",
            good[0]
        );
        assert!(bad.is_empty());
    }

    #[test]
    fn without_a_header_columns_have_numbers() {
        let text = "1401581400,1.5\n1401581460,2.5\n";
        let with_header = read_all(
            text,
            &Wishes {
                header: true,
                ..Wishes::default()
            },
        );
        let failure = with_header.unwrap_err();
        assert!(failure.hint.unwrap().contains("--no-header"));
        let wishes = Wishes {
            time: Some("1".into()),
            ..Wishes::default()
        };
        let (good, _) = read_all(text, &wishes).unwrap();
        assert_eq!(good[1], "1401581460000000000 [] [Some(Float(2.5))]");
    }

    #[test]
    fn malformed_csv_is_refused() {
        for (text, says) in [
            ("", "is empty"),
            ("\0\u{1}\u{2}", "binary"),
            ("a,b\n", "no rows"),
            ("hello\nworld\n", "no column contains times"),
        ] {
            let failure = read_all(text, &wishes()).unwrap_err();
            assert!(
                failure.message.contains(says),
                "{text:?}: {}",
                failure.message
            );
            assert_eq!(failure.exit, Exit::BadInput);
        }
    }

    #[test]
    fn a_quote_that_stays_open_does_not_fill_the_memory() {
        let wishes = Wishes {
            header: true,
            ..Wishes::default()
        };
        let endless = "time,a\n2014-06-01,1\n\""
            .as_bytes()
            .chain(std::io::repeat(b'x'));
        let Err(failure) = Rows::open(endless, "x", None, &wishes, Nulls::default()) else {
            panic!("read to the end of an endless row");
        };
        assert!(failure.message.contains("a quote"), "{}", failure.message);
        assert_eq!(failure.exit, Exit::BadInput);
        // The reader buffers 128 KiB, so a row whose length is below the limit by twice this much can always be read.
        let note = "x".repeat(usize::try_from(ROW_BYTES_MAX).unwrap() - 2 * 128 * 1024);
        let long = format!("time,a,note\n2014-06-01,1,{note}\n2014-06-02,2,y\n");
        let read = read_in_blocks(&long, &wishes, BLOCK_BYTES).unwrap();
        assert_eq!(read.0.len(), 2);
    }

    /// The inputs have line feeds alone or Windows line ends, and empty lines between the rows.
    #[test]
    fn line_numbers_match_the_input() {
        let wishes = Wishes {
            header: true,
            ..Wishes::default()
        };
        for (end, quoted) in [("\n", "\n"), ("\r\n", "\r\n")] {
            let text = end.repeat(2)
                + &["time,a,n", "2014-06-01,1,x", "", "2014-06-02,y,x"].join(end)
                + &format!(
                    "{end}2014-06-03,2,\"a{quoted}b\"\"{quoted}\"{end}{end}z,3,{end}\u{feff}2014-06-04,4,\"\"{end}2014-06-05,5,"
                );
            let (good, bad) = read_all(
                &text,
                &Wishes {
                    values: vec!["a".into()],
                    ..wishes.clone()
                },
            )
            .unwrap();
            assert_eq!(good.len(), 3, "{good:?}");
            let lines: Vec<u64> = bad.iter().map(|bad| bad.line).collect();
            // The time in the last bad row begins with a byte order mark.
            assert_eq!(lines, [6, 11, 12], "{bad:?}");
        }
    }

    #[test]
    fn random_bytes_never_panic() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..2000 {
            let mut text = Vec::new();
            for _ in 0..(state % 200) {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                let alphabet = b"time,;\"\n\r0123-:TZ.NAx\xff";
                text.push(alphabet[(state % alphabet.len() as u64) as usize]);
            }
            state = state.wrapping_add(0x1234_5678_9abc_def1);
            let wishes = Wishes {
                header: state.is_multiple_of(2),
                ..Wishes::default()
            };
            let opened = Rows::open(&text[..], "x", None, &wishes, Nulls::default());
            let Ok(rows) = opened else { continue };
            let (mut blocks, mut batch) = (rows.blocks.of_bytes(64), Batch::default());
            let mut known = Combinations::default();
            while let Ok(Some(block)) = blocks.next() {
                let _ = rows.reading.read(block, &mut known, &mut batch);
            }
        }
    }
}
