//! Writes rows to standard output: an aligned table, CSV, or JSON lines.
//!
//! Invariants:
//! 1. CSV and JSON have every number in the shortest form that reads back to the same bits. JSON has no NaN or infinite
//!    numbers, so these are written as texts ([`beyond_json`]); `null` is a missing value.
//! 2. The output format *table* never contains a control character, because names may come from hostile files.
//! 3. Rows are streamed: for the format *table*, at most [`MEASURED_ROWS`] rows are buffered to find the column widths.

use crate::style::Palette;
pub(crate) use crate::wording::{
    bytes_text, computed_text, float_text, grouped, plural, printable, rate_text, rounded_text,
};
use clap::ValueEnum;
use serde_json::Value;
use std::io::{self, Write};
use std::sync::Arc;
use tidalite::SeriesInfo;

/// Number of rows from which the widths of the columns are computed in the output format *table*.
const MEASURED_ROWS: usize = 500;

/// Format in which rows are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Aligned columns, for reading: figures are rounded to six significant digits, and large ones to one decimal
    /// place; sizes have units. The column `series` is omitted if there is only one
    #[default]
    Table,
    /// Comma-separated with a header line, every digit; the columns do not depend on the data
    Csv,
    /// One JSON object a line, every digit; the names do not depend on the data
    Json,
}

impl Format {
    /// Whether each printed row names its series, if there are this many series. CSV and JSON rows always do, so that a
    /// script finds the same columns whatever a pattern matches; in the output format *table* the name of an only
    /// series is omitted.
    pub(crate) fn names_series(self, series: usize) -> bool {
        series > 1 || !self.is_table()
    }

    /// Whether this is the output format *table*, in which columns without information may be omitted.
    pub(crate) fn is_table(self) -> bool {
        self == Self::Table
    }
}

/// One cell of the output.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    /// A name, a time or another text.
    Text(String),
    /// The series of the row. JSON also has its metric, and its tags as an object.
    Series(SeriesText),
    /// A value as it is stored; it is printed with all digits.
    Float(f64),
    /// A computed value; the output format *table* rounds it, see [`computed_text`].
    Computed(f64),
    /// A signed integer, printed with all digits.
    Int(i64),
    /// An unsigned integer, printed with all digits.
    Unsigned(u64),
    /// A truth value.
    Bool(bool),
    /// A decimal with a fixed number of digits after the decimal point.
    Decimal(tidalite::Decimal),
    /// A count; the output format *table* separates the thousands with commas.
    Count(u64),
    /// A number of bytes; the output format *table* prints it with a unit, such as `9.29 MiB`.
    Bytes(u64),
    /// A missing value, printed as `-`, as an empty CSV field, or as `null` in JSON.
    Missing,
}

/// The name of a series, prepared for many rows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SeriesText(Arc<SeriesForms>);

#[derive(Debug, PartialEq)]
struct SeriesForms {
    label: String,
    /// The value of the field `series` of a JSON object, and the fields after it.
    json: String,
}

impl SeriesText {
    pub(crate) fn new(info: &SeriesInfo) -> Self {
        let label = info.label();
        let name = info.name.as_ref();
        let tags = name.map_or(&[][..], |name| name.tags());
        let tags: serde_json::Map<String, Value> = tags
            .iter()
            .map(|(key, value)| (key.clone(), Value::from(value.as_str())))
            .collect();
        let (series, metric) = (
            Value::from(label.as_str()),
            Value::from(name.map(|name| name.metric())),
        );
        let json = format!(
            "{series},\"metric\":{metric},\"tags\":{}",
            Value::from(tags)
        );
        Self(Arc::new(SeriesForms { label, json }))
    }
}

#[cfg(feature = "sql")]
impl SeriesText {
    /// The name, or the GUID of a series without a name.
    pub(crate) fn label(&self) -> &str {
        &self.0.label
    }
}

impl Cell {
    /// The series of a row.
    pub(crate) fn series(info: &SeriesInfo) -> Self {
        Self::Series(SeriesText::new(info))
    }
}

/// A column of the output: its header and its alignment.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    name: String,
    right: bool,
}

impl Column {
    /// Creates a left-aligned column, for texts.
    pub(crate) fn text(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            right: false,
        }
    }

    /// Creates a right-aligned column, for numbers.
    pub(crate) fn number(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            right: true,
        }
    }
}

/// Writes rows in one of the output formats, under a header.
pub(crate) struct Sheet<W: Write> {
    out: W,
    format: Format,
    palette: Palette,
    columns: Vec<Column>,
    held: Vec<Vec<String>>,
    widths: Vec<usize>,
    started: bool,
}

impl<W: Write> Sheet<W> {
    pub(crate) fn new(out: W, format: Format, palette: Palette, columns: Vec<Column>) -> Self {
        Self {
            out,
            format,
            palette,
            columns,
            held: Vec::new(),
            widths: Vec::new(),
            started: false,
        }
    }

    /// Writes one row; it must have as many cells as there are columns.
    pub(crate) fn row(&mut self, cells: &[Cell]) -> io::Result<()> {
        assert_eq!(
            cells.len(),
            self.columns.len(),
            "a row has one cell for every column"
        );
        match self.format {
            Format::Table => {
                let texts: Vec<String> = cells.iter().map(table_text).collect();
                if self.widths.is_empty() {
                    self.held.push(texts);
                    if self.held.len() == MEASURED_ROWS {
                        self.release()?;
                    }
                    return Ok(());
                }
                self.table_line(&texts, false)
            }
            Format::Csv => {
                if !self.started {
                    let names: Vec<String> = self.columns.iter().map(|c| c.name.clone()).collect();
                    csv_line(&mut self.out, &names)?;
                }
                self.started = true;
                let texts: Vec<String> = cells.iter().map(exact_text).collect();
                csv_line(&mut self.out, &texts)
            }
            Format::Json => {
                self.started = true;
                json_line(&mut self.out, &self.columns, cells)
            }
        }
    }

    /// Writes the rows that are still buffered, before the command waits for more.
    pub(crate) fn show(&mut self) -> io::Result<()> {
        if self.format == Format::Table && self.widths.is_empty() && !self.held.is_empty() {
            self.release()?;
        }
        self.out.flush()
    }

    /// Writes the rows that are still buffered, and the header if there was no row.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        match self.format {
            Format::Table if self.widths.is_empty() => self.release()?,
            Format::Csv if !self.started => {
                let names: Vec<String> = self.columns.iter().map(|c| c.name.clone()).collect();
                csv_line(&mut self.out, &names)?;
            }
            _ => {}
        }
        self.out.flush()
    }

    fn release(&mut self) -> io::Result<()> {
        let names: Vec<String> = self
            .columns
            .iter()
            .map(|column| column.name.clone())
            .collect();
        self.widths = names.iter().map(|name| name.chars().count()).collect();
        for row in &self.held {
            for (width, text) in self.widths.iter_mut().zip(row) {
                *width = (*width).max(text.chars().count());
            }
        }
        self.table_line(&names, true)?;
        for row in std::mem::take(&mut self.held) {
            self.table_line(&row, false)?;
        }
        Ok(())
    }

    fn table_line(&mut self, texts: &[String], header: bool) -> io::Result<()> {
        let mut line = String::new();
        for (index, text) in texts.iter().enumerate() {
            let room = self.widths[index].saturating_sub(text.chars().count());
            if index > 0 {
                line.push_str("  ");
            }
            let pad = |line: &mut String| line.extend(std::iter::repeat_n(' ', room));
            if self.columns[index].right {
                pad(&mut line);
                line.push_str(text);
            } else {
                line.push_str(text);
                pad(&mut line);
            }
        }
        let line = line.trim_end();
        if header {
            writeln!(self.out, "{}", self.palette.bold(line))
        } else {
            writeln!(self.out, "{line}")
        }
    }
}

fn table_text(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) => printable(text),
        Cell::Series(series) => printable(&series.0.label),
        Cell::Bytes(bytes) => bytes_text(*bytes),
        Cell::Computed(value) => computed_text(*value),
        Cell::Count(count) => grouped(*count),
        Cell::Missing => "-".to_owned(),
        Cell::Float(_) | Cell::Int(_) | Cell::Unsigned(_) | Cell::Bool(_) | Cell::Decimal(_) => {
            exact_text(cell)
        }
    }
}

fn exact_text(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) => text.clone(),
        Cell::Series(series) => series.0.label.clone(),
        Cell::Float(value) | Cell::Computed(value) => float_text(*value),
        Cell::Int(value) => value.to_string(),
        Cell::Unsigned(value) | Cell::Count(value) | Cell::Bytes(value) => value.to_string(),
        Cell::Bool(value) => value.to_string(),
        Cell::Decimal(value) => value.to_string(),
        Cell::Missing => String::new(),
    }
}

/// Writes a line of CSV. As in RFC 4180, a field with a comma, a quote or a line end is quoted.
fn csv_line(out: &mut impl Write, fields: &[String]) -> io::Result<()> {
    for (index, field) in fields.iter().enumerate() {
        if index > 0 {
            out.write_all(b",")?;
        }
        if field.contains(['"', ',', '\n', '\r']) {
            write!(out, "\"{}\"", field.replace('"', "\"\""))?;
        } else {
            out.write_all(field.as_bytes())?;
        }
    }
    out.write_all(b"\n")
}

fn json_line(out: &mut impl Write, columns: &[Column], cells: &[Cell]) -> io::Result<()> {
    out.write_all(b"{")?;
    for (index, (column, cell)) in columns.iter().zip(cells).enumerate() {
        if index > 0 {
            out.write_all(b",")?;
        }
        serde_json::to_writer(&mut *out, &column.name)?;
        out.write_all(b":")?;
        match cell {
            Cell::Text(text) => serde_json::to_writer(&mut *out, text)?,
            Cell::Float(value) | Cell::Computed(value) => match beyond_json(*value) {
                Some(text) => serde_json::to_writer(&mut *out, text)?,
                None => serde_json::to_writer(&mut *out, value)?,
            },
            Cell::Int(value) => serde_json::to_writer(&mut *out, value)?,
            Cell::Unsigned(value) | Cell::Count(value) | Cell::Bytes(value) => {
                serde_json::to_writer(&mut *out, value)?;
            }
            Cell::Series(series) => out.write_all(series.0.json.as_bytes())?,
            Cell::Bool(value) => write!(out, "{value}")?,
            Cell::Decimal(value) => write!(out, "{value}")?,
            Cell::Missing => out.write_all(b"null")?,
        }
    }
    out.write_all(b"}\n")
}

/// The text that stands for a number that JSON does not have (as in JavaScript, Python and Protocol Buffers); `import`
/// can read it. `None` for all other numbers.
fn beyond_json(value: f64) -> Option<&'static str> {
    match value {
        f64::INFINITY => Some("Infinity"),
        f64::NEG_INFINITY => Some("-Infinity"),
        value if value.is_nan() => Some("NaN"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(format: Format, rows: &[Vec<Cell>]) -> String {
        let mut bytes = Vec::new();
        let columns = vec![Column::text("name"), Column::number("value")];
        let mut sheet = Sheet::new(&mut bytes, format, Palette::PLAIN, columns);
        for row in rows {
            sheet.row(row).unwrap();
        }
        sheet.finish().unwrap();
        String::from_utf8(bytes).unwrap()
    }

    fn sample() -> Vec<Vec<Cell>> {
        vec![
            vec![Cell::Text("a".into()), Cell::Float(10.357_019_999_999_999)],
            vec![Cell::Text("say \"hi\", you".into()), Cell::Count(1_234_567)],
            vec![Cell::Missing, Cell::Float(f64::NAN)],
        ]
    }

    #[test]
    fn a_table_aligns() {
        assert_eq!(
            written(Format::Table, &sample()),
            "name                        value\n\
             a              10.357019999999999\n\
             say \"hi\", you           1,234,567\n\
             -                             NaN\n"
        );
        assert_eq!(written(Format::Table, &[]), "name  value\n");
    }

    #[test]
    fn csv_quotes_only_where_needed() {
        assert_eq!(
            written(Format::Csv, &sample()),
            "name,value\na,10.357019999999999\n\"say \"\"hi\"\", you\",1234567\n,NaN\n"
        );
        assert_eq!(written(Format::Csv, &[]), "name,value\n");
    }

    #[test]
    fn json_is_json() {
        let text = written(Format::Json, &sample());
        let lines: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert!(
            text.starts_with("{\"name\":\"a\",\"value\":10.357019999999999}\n"),
            "{text}"
        );
        assert_eq!(lines[1]["name"], "say \"hi\", you");
        assert!(lines[2]["name"].is_null());
        assert_eq!(lines[2]["value"], "NaN");
        let infinite = [f64::INFINITY, f64::NEG_INFINITY];
        let rows = infinite.map(|value| vec![Cell::Missing, Cell::Computed(value)]);
        assert_eq!(
            written(Format::Json, &rows),
            "{\"name\":null,\"value\":\"Infinity\"}\n{\"name\":null,\"value\":\"-Infinity\"}\n"
        );
        assert_eq!(written(Format::Json, &[]), "");
    }

    #[test]
    fn long_tables_are_streamed_with_the_widths_of_their_head() {
        let rows: Vec<Vec<Cell>> = (0..MEASURED_ROWS as i64 + 10)
            .map(|n| vec![Cell::Text("x".into()), Cell::Int(n)])
            .collect();
        let text = written(Format::Table, &rows);
        assert_eq!(text.lines().count(), rows.len() + 1);
        assert!(text.ends_with("x       509\n"));
    }
}
