//! Opens an input as rows: finds out its encoding, its format, and the roles of its columns from its first bytes.

use crate::exit::{Exit, Failure, Outcome};
use crate::import::advice::{self, foreign};
use crate::import::batch::BadRow;
use crate::import::blocks::{Blocks, Ends, empty_lines, lines_in, open_quote};
use crate::import::encoding::{self, Decoded};
use crate::import::field::{Nulls, field};
use crate::import::head;
use crate::import::json_values::JsonValues;
use crate::import::layout::{Layout, Wishes};
use crate::import::line_rows;
use crate::import::local_times::Policy;
use crate::import::record::{JsonLines, Keys, Records};
use crate::import::rows::{Known, Reading, unreadable};
use crate::time::Epoch;
use csv::ByteRecord;
use encoding_rs::Encoding;
use std::collections::VecDeque;
use std::io::{Chain, Cursor, Read};

/// Number of rows in the sample from which the roles of the columns are decided.
const SAMPLE_ROWS: usize = 1000;

/// Maximum number of bytes in the sample from which the roles of the columns are decided.
const SAMPLE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Number of bytes that are read to recognise the format of an input.
const HEAD_BYTES: u64 = 64 * 1024;

/// Number of bytes that are read after a zero byte was found, to find out whether compressed data are damaged.
const DAMAGE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// The byte order mark with which UTF-8 text may begin.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The format of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// CSV with this delimiter; with `None`, the first line shows the delimiter.
    Csv(Option<u8>),
    /// JSON: one object per line, objects over several lines, or an array.
    Json,
    /// The line protocol, with the unit of its timestamps if it is given.
    Line(Option<Epoch>),
    /// The records of a typed file, as CSV with the names of the columns in the first line.
    Typed,
}

/// The user's options about the text of an input.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Format {
    /// The format; if it is not given, an input is JSON if its first character is a bracket.
    pub form: Option<Form>,
    /// The option `--encoding`; if it is not given, UTF-8 unless a byte order mark shows another.
    pub encoding: Option<&'static Encoding>,
    /// The option `--comment`: the character that begins comment lines.
    pub comment: Option<u8>,
    /// The option `--skip-lines`: number of lines to leave out at the beginning.
    pub skip_lines: u64,
    /// The option `--units`: whether the line after the names holds units even if it is not recognised.
    pub has_units: bool,
}

type Input<'a> = Box<dyn Read + Send + 'a>;

/// A reader of the whole input, beginning with the bytes that were already read to inspect it.
type Whole<'a> = Chain<Cursor<Vec<u8>>, Chain<Cursor<Vec<u8>>, Input<'a>>>;

/// An input with known columns: its blocks, and the way to parse them.
pub(crate) struct Rows<'a> {
    pub(crate) blocks: Blocks<Whole<'a>>,
    pub(crate) reading: Reading,
    /// The unit of each column, if the input has a line of units.
    pub(crate) units: Vec<Option<String>>,
    /// Properties of the input that were detected and that the user should know about.
    pub(crate) notes: Vec<String>,
    /// The names of all columns.
    pub(crate) names: Vec<String>,
    /// The first rows.
    pub(crate) sample: Vec<ByteRecord>,
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

/// The beginning of an input, and the properties found there.
struct Begun<'a> {
    head: Vec<u8>,
    input: Input<'a>,
    shape: Shape,
    /// Number of the first line of `head`.
    line: u64,
    /// Whether the line after the names holds units.
    has_units: bool,
    /// Number of further lines before the rows.
    skipped: usize,
    notes: Vec<String>,
}

/// The format of an input, as far as its first bytes show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Csv {
        delimiter: u8,
        comment: Option<u8>,
    },
    /// Objects, and the word for one of them in messages.
    Objects(&'static str),
    /// An array of arrays.
    Arrays,
    /// The line protocol, with the unit of its timestamps if it is given.
    Line(Option<Epoch>),
}

impl<'a> Begun<'a> {
    fn new(
        input: impl Read + Send + 'a,
        what: &str,
        format: &Format,
        header: bool,
        nulls: &Nulls,
    ) -> Outcome<Self> {
        let fail = |error: std::io::Error| unreadable(what, &error);
        let mut input: Input<'a> = Box::new(input);
        if format.form == Some(Form::Typed) {
            let head = read_head(&mut input).map_err(fail)?;
            return Ok(Self {
                shape: shape_of(&head, format, what)?,
                head,
                input,
                // The first row is row 1.
                line: 0,
                has_units: false,
                skipped: 0,
                notes: Vec::new(),
            });
        }
        let mut notes = Vec::new();
        let mut head = read_head(&mut input).map_err(fail)?;
        let marked = encoding::marked(&head).filter(|_| format.encoding.is_none());
        if let Some(encoding) = format.encoding.or(marked) {
            input = Box::new(Decoded::new(Cursor::new(head).chain(input), encoding));
            head = read_head(&mut input).map_err(fail)?;
        }
        if let Some(encoding) = marked {
            notes.push(format!("the text is in {}", encoding.name()));
        }
        refuse_what_is_no_text(&head, &mut input, what)?;
        // Editors on Windows write the byte order mark before JSON, too.
        if head.starts_with(BYTE_ORDER_MARK) {
            head.drain(..BYTE_ORDER_MARK.len());
        }
        let mut line = 1;
        for _ in 0..format.skip_lines {
            let Some(end) = head.iter().position(|byte| *byte == b'\n') else {
                let lines = line - u64::from(head.is_empty());
                return Err(Failure::bad_input(format!(
                    "{what} has only {lines} lines in its first 64 KiB"
                ))
                .hint("give a smaller number with --skip-lines"));
            };
            head.drain(..=end);
            line += 1;
        }
        let mut begun = Self {
            shape: shape_of(&head, format, what)?,
            head,
            input,
            line,
            has_units: format.has_units,
            skipped: 0,
            notes,
        };
        match begun.shape {
            Shape::Csv { .. } if header => begun.find_names(format, nulls),
            Shape::Csv { .. } | Shape::Objects("line") | Shape::Line(_) => {}
            Shape::Objects("object") => begun.divide(JsonValues::of_sequence, what)?,
            _ => begun.divide(JsonValues::of_array, what)?,
        }
        Ok(begun)
    }

    /// Skips the lines before the names of the columns.
    fn find_names(&mut self, format: &Format, nulls: &Nulls) {
        let given = match format.form {
            Some(Form::Csv(delimiter)) => delimiter,
            _ => None,
        };
        let found = head::find(&self.head, given, format.comment, self.has_units, nulls);
        if let Some(found) = &found {
            self.shape = Shape::Csv {
                delimiter: found.delimiter,
                comment: format.comment.or(found.comment),
            };
            if found.lines > 0 {
                let last = self.line + found.lines as u64 - 1;
                let lines = match last == self.line {
                    true => format!("line {last}"),
                    false => format!("lines {} to {last}", self.line),
                };
                self.notes.push(format!(
                    "{lines} skipped: the names of the columns are in line {}",
                    last + 1
                ));
            }
            self.head.drain(..found.bytes);
            self.line += found.lines as u64;
            self.has_units |= found.has_units;
            self.skipped = found.skipped;
            if found.skipped > 0 {
                self.notes.push(format!(
                    "line {} skipped: it tells how the logger computed the values",
                    self.line + 2
                ));
            }
        }
        // The line of the names may begin like a comment: `# time,value`.
        if format.comment.is_none() && self.head.first() == Some(&b'#') {
            self.head[0] = b' ';
        }
    }

    /// Puts each value of a JSON text on a line of its own.
    fn divide<V: Read + Send + 'a>(
        &mut self,
        values: impl FnOnce(Chain<Cursor<Vec<u8>>, Input<'a>>) -> V,
        what: &str,
    ) -> Outcome {
        let input = std::mem::replace(&mut self.input, Box::new(std::io::empty()));
        let head = std::mem::take(&mut self.head);
        self.input = Box::new(values(Cursor::new(head).chain(input)));
        self.line = 1;
        self.head = read_head(&mut self.input).map_err(|error| unreadable(what, &error))?;
        Ok(())
    }
}

impl<'a> Rows<'a> {
    /// Reads the header and a sample, and decides the roles of the columns. `what` is the name of the input in
    /// messages.
    pub(crate) fn open(
        input: impl Read + Send + 'a,
        what: &str,
        format: &Format,
        wishes: &Wishes,
        nulls: Nulls,
    ) -> Outcome<Self> {
        let Begun {
            head,
            input,
            shape,
            line,
            has_units,
            skipped,
            mut notes,
        } = Begun::new(input, what, format, wishes.header, &nulls)?;
        if let Shape::Line(epoch) = shape {
            if epoch.is_none() {
                refuse_lines_near_1970(&head, what)?;
            }
            return Ok(Self::of_line_protocol(
                what,
                (head, input),
                epoch.unwrap_or(Epoch::Nanos),
                line,
                notes,
            ));
        }
        let mut kept = Kept {
            inner: Cursor::new(head).chain(input),
            bytes: Vec::new(),
        };
        let mut records = match shape {
            Shape::Csv { delimiter, comment } => Records::csv(&mut kept, delimiter, comment),
            Shape::Objects(_) => Records::Json(JsonLines::new(&mut kept)),
            Shape::Arrays | Shape::Line(_) => Records::Json(JsonLines::of_arrays(&mut kept)),
        };
        let mut sample = take_sample(&mut records, what)?;
        let has_header = wishes.header && !matches!(shape, Shape::Objects(_));
        let (names, form, ends) = match (records, shape) {
            (Records::Json(lines), Shape::Objects(_)) => {
                let named = !wishes.values.is_empty() || !wishes.columns.is_empty();
                let keys = if named { Keys::PassOver } else { Keys::Refuse };
                let names = lines.names();
                let columns = lines.into_columns();
                (names, Known::Objects { columns, keys }, Ends::Lines)
            }
            (_, Shape::Csv { delimiter, comment }) => {
                let names = names_of(&mut sample, wishes, what)?;
                let ends = Ends::Csv { delimiter, comment };
                (names, Known::Csv { delimiter, comment }, ends)
            }
            _ => {
                let names = names_of(&mut sample, wishes, what)?;
                (names, Known::Arrays, Ends::Lines)
            }
        };
        let units = match has_units && has_header {
            true => units_of(sample.pop_front(), names.len(), line, &mut notes),
            false => Vec::new(),
        };
        sample.drain(..skipped.min(sample.len()));
        if let Known::Objects { .. } = form {
            // The first lines were parsed before all keys were known, so their records are too short.
            for record in sample.iter_mut().flatten() {
                while record.len() < names.len() {
                    record.push_field(b"");
                }
            }
        }
        let good: Vec<ByteRecord> = sample.iter().flatten().cloned().collect();
        if good.is_empty() {
            let why = sample.into_iter().find_map(Result::err);
            let why = why.map_or(String::new(), |bad| {
                format!(": line {}: {}", bad.line, bad.why)
            });
            return Err(Failure::bad_input(format!("{what} has no rows{why}")).hint(
                "CSV has a line of column names, then rows; JSON lines have one object per line",
            ));
        }
        let wishes = &Wishes {
            has_semicolons: matches!(
                shape,
                Shape::Csv {
                    delimiter: b';',
                    ..
                }
            ),
            ..wishes.clone()
        };
        let layout = Layout::decide(&names, &good, wishes, &nulls).map_err(|failure| {
            let failure = failure.about(what);
            match (ends, failure.exit) {
                (Ends::Csv { delimiter, .. }, Exit::BadInput) => {
                    explained(failure, &kept.bytes, delimiter, line, what)
                }
                _ => failure,
            }
        })?;
        notes.extend(layout.notes.iter().cloned());
        // The sample is parsed again with the rest of the input. Empty lines are skipped, so that the first record (the
        // names) is in the first block.
        let empty = match ends {
            Ends::Csv { .. } => empty_lines(&kept.bytes),
            Ends::Lines | Ends::LineProtocol => 0,
        };
        let line = line + lines_in(&kept.bytes[..empty]);
        kept.bytes.drain(..empty);
        let whole = Cursor::new(kept.bytes).chain(kept.inner);
        Ok(Self {
            blocks: Blocks::new(whole, ends).begin_at_line(line),
            reading: Reading {
                what: what.to_owned(),
                form,
                counts: match shape {
                    Shape::Csv { .. } if format.form == Some(Form::Typed) => "row",
                    Shape::Csv { .. } => "line",
                    Shape::Objects(word) => word,
                    Shape::Arrays | Shape::Line(_) => "element",
                },
                header_records: usize::from(has_header) + usize::from(!units.is_empty()) + skipped,
                layout,
                nulls,
                policy: wishes.local_times,
                bad_cells_are_null: wishes.bad_cells_are_null,
            },
            units,
            notes,
            names,
            sample: good,
        })
    }

    /// An input in the line protocol, which needs no sample.
    fn of_line_protocol(
        what: &str,
        (head, input): (Vec<u8>, Input<'a>),
        epoch: Epoch,
        line: u64,
        notes: Vec<String>,
    ) -> Self {
        let whole = Cursor::new(head).chain(Cursor::new(Vec::new()).chain(input));
        Self {
            blocks: Blocks::new(whole, Ends::LineProtocol).begin_at_line(line),
            reading: Reading {
                what: what.to_owned(),
                form: Known::Line(epoch),
                counts: "line",
                header_records: 0,
                layout: Layout::of_line_protocol(epoch),
                nulls: Nulls::default(),
                policy: Policy::default(),
                bad_cells_are_null: false,
            },
            units: Vec::new(),
            notes,
            names: Vec::new(),
            sample: Vec::new(),
        }
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.reading.layout
    }
}

/// Recognises the format of an input by its first bytes.
fn shape_of(head: &[u8], format: &Format, what: &str) -> Outcome<Shape> {
    let text = head.trim_ascii_start();
    let csv = |delimiter: Option<u8>| Shape::Csv {
        delimiter: delimiter.unwrap_or_else(|| likely_delimiter(head, format.comment)),
        comment: format.comment,
    };
    match format.form {
        Some(Form::Csv(delimiter)) => return Ok(csv(delimiter)),
        Some(Form::Typed) => return Ok(csv(Some(b','))),
        _ => {}
    }
    if let Some(Form::Line(epoch)) = format.form {
        return Ok(Shape::Line(epoch));
    }
    let is_json = format.form == Some(Form::Json);
    match text {
        [b'{', ..] => {
            let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
            let whole = serde_json::from_slice::<serde::de::IgnoredAny>(line);
            Ok(match whole {
                Err(error) if error.is_eof() && text.len() > line.len() + 1 => Shape::Objects("object"),
                _ => Shape::Objects("line"),
            })
        }
        [b'[', inner @ ..] => match inner.trim_ascii_start() {
            [b'{', ..] => Ok(Shape::Objects("element")),
            [b'[', ..] => Ok(Shape::Arrays),
            [b'"' | b'0'..=b'9' | b'-' | b']', ..] => Err(Failure::bad_input(format!(
                "{what} is a JSON array without objects or arrays"
            ))
            .hint(
                "its elements must be rows, such as {\"time\":\"2014-06-01T00:10:00Z\",\"value\":1.5}",
            )),
            // The bracket belongs to the name of a column.
            _ if !is_json => Ok(csv(None)),
            _ => Ok(Shape::Objects("element")),
        },
        _ if is_json => Ok(Shape::Objects("line")),
        _ => Ok(csv(None)),
    }
}

/// Refuses lines of the line protocol without a unit of their timestamps if these are too small for nanoseconds.
fn refuse_lines_near_1970(head: &[u8], what: &str) -> Outcome {
    // The last line may be cut off, and with it its timestamp.
    let whole = match head.iter().rposition(|byte| *byte == b'\n') {
        Some(end) if head.len() as u64 >= HEAD_BYTES => &head[..end],
        _ => head,
    };
    match line_rows::near_1970(whole) {
        Some((time, likely)) => Err(advice::line_near_1970(what, time, likely)),
        None => Ok(()),
    }
}

fn units_of(
    record: Option<Result<ByteRecord, BadRow>>,
    width: usize,
    line: u64,
    notes: &mut Vec<String>,
) -> Vec<Option<String>> {
    let Some(Ok(record)) = record else {
        return Vec::new();
    };
    notes.push(format!(
        "line {} holds units: they are stored as the annotation `unit` of new series",
        line - 1 + line_of(&record)
    ));
    let unit = |index: usize| {
        let text = field(&record, index).ok()?;
        let text = match (text.get(..1), text.get(text.len().saturating_sub(1)..)) {
            (Some("["), Some("]")) | (Some("("), Some(")")) => text[1..text.len() - 1].trim(),
            _ => text,
        };
        (!matches!(text, "" | "-")).then(|| text.to_owned())
    };
    (0..width).map(unit).collect()
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

/// Reads the first bytes of the input, enough to recognise its format.
fn read_head(input: &mut impl Read) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    input.take(HEAD_BYTES).read_to_end(&mut head)?;
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
fn explained(failure: Failure, bytes: &[u8], delimiter: u8, first: u64, what: &str) -> Failure {
    match open_quote(bytes, delimiter) {
        Some(line) => {
            let line = first - 1 + line;
            Failure::bad_input(format!(
                "{what}: a quote that begins in line {line} is not closed"
            ))
            .hint(format!("close it: sed -n {line}p FILE shows the line"))
        }
        None => failure,
    }
}

/// Guesses the separator of fields: the one that occurs most often in the first line.
fn likely_delimiter(head: &[u8], comment: Option<u8>) -> u8 {
    let mut lines = head.split(|byte| *byte == b'\n');
    let is_comment = |line: &[u8]| comment.is_some() && line.first().copied() == comment;
    let first_line = lines.find(|line| !line.trim_ascii().is_empty() && !is_comment(line));
    let first_line = first_line.unwrap_or_default();
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
            .hint("CSV begins with a line of column names, JSON with {"));
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
    let is_certain = !wishes.given.is_empty();
    if !is_certain && numbers + times > 0 && (numbers + times) * 2 >= texts.len() {
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

#[cfg(test)]
mod tests;
