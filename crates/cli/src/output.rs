//! Writes rows to standard output: an aligned table, CSV, or JSON lines.
//!
//! Invariants:
//! 1. CSV and JSON have every number in the shortest form that reads back to the same bits. JSON has no NaN or infinite
//!    numbers, so these are written as texts ([`beyond_json`]); `null` is a missing value.
//! 2. The output format *table* never contains a control character, because names come from files that may be made to
//!    attack.
//! 3. Rows are streamed: for the format *table*, at most [`MEASURED_ROWS`] rows are buffered to find the column widths.

use crate::style::Palette;
use clap::ValueEnum;
use std::io::{self, Write};

/// Number of rows from which the widths of the columns are computed in the output format *table*.
const MEASURED_ROWS: usize = 500;

/// Format in which rows are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Aligned columns, for reading: computed figures are rounded to six significant digits, and large ones to one
    /// decimal place. The column `series` is omitted if there is only one
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
    /// A missing value, printed as `-`, as an empty CSV field, or as `null` in JSON.
    Missing,
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

/// Escapes control characters in a text, so that a name cannot move the terminal's cursor or change colours.
pub(crate) fn printable(text: &str) -> String {
    if !text.chars().any(char::is_control) {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if c.is_control() {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Formats a float as the shortest text that reads back to the same float, with an exponent where plain digits would be
/// long.
pub(crate) fn float_text(value: f64) -> String {
    let mut text = format!("{value:?}");
    if text.ends_with(".0") {
        text.truncate(text.len() - 2);
    }
    text
}

/// Formats a float with six significant digits, without trailing zeros.
pub(crate) fn rounded_text(value: f64) -> String {
    if !value.is_finite() || value == 0.0 {
        return float_text(value);
    }
    let magnitude = value.abs().log10().floor();
    if !(-5.0..15.0).contains(&magnitude) {
        let text = format!("{value:.5e}");
        let rounded: f64 = text.parse().unwrap_or(value);
        return float_text(rounded);
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "in 0..=10"
    )]
    let places = (5.0 - magnitude).max(0.0) as usize;
    let text = format!("{value:.places$}");
    if text.contains('.') {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    text
}

/// Formats a float with six significant digits, or with one decimal place if it is large. A value that is exact in
/// fewer digits is printed with those; a rounded value keeps its zeros: `0.3` is exactly 0.3, and `0.300000` is
/// approximate.
pub(crate) fn computed_text(value: f64) -> String {
    let exact = float_text(value);
    if !value.is_finite() || value == 0.0 {
        return exact;
    }
    let magnitude = value.abs().log10().floor();
    if !(-5.0..15.0).contains(&magnitude) {
        let rounded = format!("{value:.5e}");
        return if rounded.len() < exact.len() {
            rounded
        } else {
            exact
        };
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "in 1..=10"
    )]
    let places = (5.0 - magnitude).max(1.0) as usize;
    let rounded = format!("{value:.places$}");
    match rounded.parse::<f64>() {
        Ok(same) if value == same => exact,
        _ => rounded,
    }
}

/// Formats a count with the matching noun: `1 row`, `2 rows`, `1,234 rows`.
pub(crate) fn plural(count: u64, one: &str, many: &str) -> String {
    let noun = if count == 1 { one } else { many };
    format!("{} {noun}", grouped(count))
}

/// Formats a count with commas between the thousands: `1,234,567`.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// Formats a number of bytes with a unit: 1536 as `1.5 KiB`.
#[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
pub(crate) fn bytes_text(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if value < 10.0 {
        format!("{value:.2} {}", UNITS[unit])
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

fn table_text(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) => printable(text),
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
        Cell::Float(value) | Cell::Computed(value) => float_text(*value),
        Cell::Int(value) => value.to_string(),
        Cell::Unsigned(value) | Cell::Count(value) => value.to_string(),
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
            Cell::Unsigned(value) | Cell::Count(value) => serde_json::to_writer(&mut *out, value)?,
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

/// Formats a large number with three digits: 1234567 as `1.23 million`.
pub(crate) fn rate_text(rate: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "below a million"
    )]
    if rate < 1e6 {
        grouped(rate as u64)
    } else if rate < 1e8 {
        format!("{:.2} million", rate / 1e6)
    } else {
        format!("{:.0} million", rate / 1e6)
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

    #[test]
    fn a_hostile_name_is_made_visible() {
        assert_eq!(printable("a\u{1b}[31mb\n"), "a\\u{1b}[31mb\\n");
    }

    #[test]
    fn numbers_for_eyes() {
        assert_eq!(float_text(39.0), "39");
        assert_eq!(float_text(-0.0), "-0");
        assert_eq!(float_text(1e300), "1e300");
        assert_eq!(rounded_text(61.640_123_4), "61.6401");
        assert_eq!(rounded_text(0.000_123_456_78), "0.000123457");
        assert_eq!(rounded_text(123_456_789.0), "123456789");
        assert_eq!(rounded_text(1.0e-9), "1e-9");
        assert_eq!(rounded_text(1_048.360_58), "1048.36");
        assert_eq!(rounded_text(f64::INFINITY), "inf");
        for (value, shown) in [
            (8.5295, "8.5295"),
            (0.1 + 0.2, "0.300000"),
            (61.640_123_4, "61.6401"),
            (16_688_623_782.547_45, "16688623782.5"),
            (123_456.04, "123456.0"),
            (123_456_789.0, "123456789"),
            (-1e300, "-1e300"),
            (-1.234_567_8e-9, "-1.23457e-9"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(computed_text(value), shown);
        }
        assert_eq!(plural(1, "row", "rows"), "1 row");
        assert_eq!(plural(0, "row", "rows"), "0 rows");
        assert_eq!(plural(1_234, "row", "rows"), "1,234 rows");
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(10_000_000), "10,000,000");
        assert_eq!(bytes_text(999), "999 B");
        assert_eq!(bytes_text(1536), "1.50 KiB");
        assert_eq!(bytes_text(2_294_215), "2.19 MiB");
    }
}
