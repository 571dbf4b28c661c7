//! Recognises inputs that cannot be imported as they are, and advises the user how to convert them.

use crate::exit::Failure;
use crate::output::printable;

/// The first bytes of formats that are not text, each with the name of the format and advice on how to convert it to
/// CSV.
const FORMATS: [(&[u8], &str, &str); 14] = [
    (b"PAR1", "a Parquet file", PARQUET),
    (b"ARROW1", "an Arrow (Feather) file", ARROW),
    (b"FEA1", "a Feather file", ARROW),
    (
        b"BZh",
        "compressed with bzip2",
        "decompress it: bzip2 -dc FILE | tidalite import DATABASE.tdl -",
    ),
    (
        b"\xfd7zXZ\0",
        "compressed with xz",
        "decompress it: xz -dc FILE | tidalite import DATABASE.tdl -",
    ),
    (
        b"\x04\x22\x4d\x18",
        "compressed with lz4",
        "decompress it: lz4 -dc FILE | tidalite import DATABASE.tdl -",
    ),
    (
        b"7z\xbc\xaf\x27\x1c",
        "a 7-Zip archive",
        "decompress it: 7z x -so FILE | tidalite import DATABASE.tdl -",
    ),
    (b"\xd0\xcf\x11\xe0", "an Excel workbook (.xls)", EXCEL),
    (
        b"\x89HDF\r\n\x1a\n",
        "an HDF5 file",
        "write its tables as CSV first, for example with pandas: read_hdf, to_csv",
    ),
    (b"CDF\x01", "a NetCDF file", NETCDF),
    (b"CDF\x02", "a NetCDF file", NETCDF),
    (
        b"SQLite format 3\0",
        "an SQLite database",
        "write a table as CSV: sqlite3 -header -csv FILE 'select * from TABLE' | tidalite import DATABASE.tdl -",
    ),
    (b"\xff\xfe", "text in UTF-16", UTF_16),
    (b"\xfe\xff", "text in UTF-16", UTF_16),
];

const PARQUET: &str = "write it as CSV first, for example: duckdb -c \"copy 'FILE' to 'data.csv'\"";
const ARROW: &str = "write it as CSV first, for example with pandas: read_feather, to_csv";
const EXCEL: &str = "save the sheet as CSV in the spreadsheet program, and import the CSV file";
const NETCDF: &str =
    "write its variables as CSV first, for example with xarray: to_dataframe, to_csv";
const UTF_16: &str = "convert it: iconv -f utf-16 -t utf-8 FILE | tidalite import DATABASE.tdl -";

/// Advice for an input whose text is not UTF-8.
pub(crate) const NOT_UTF_8: &str =
    "convert the file: iconv -f latin1 -t utf-8 FILE | tidalite import DATABASE.tdl -";

/// The numbers by which Excel counts the days between the years 1954 and 2119.
const EXCEL_DAYS: std::ops::RangeInclusive<f64> = 20_000.0..=80_000.0;

/// Maximum number of example cells that a message shows.
const EXAMPLES_MAX: usize = 5;

/// Number of lines at the beginning of an input that are searched for the header.
const LINES_MAX: usize = 200;

/// The error for an input whose first bytes belong to another format.
pub(crate) fn foreign(head: &[u8], what: &str) -> Option<Failure> {
    let refuse = |is: &str, next: &str| {
        Some(Failure::bad_input(format!("{what} is {is}, not CSV or JSON")).hint(next))
    };
    if head.starts_with(b"PK\x03\x04") {
        let holds = |part: &[u8]| head.windows(part.len()).any(|bytes| bytes == part);
        return match holds(b"xl/") || holds(b"[Content_Types].xml") {
            true => refuse("an Excel workbook (.xlsx)", EXCEL),
            false => refuse(
                "a ZIP archive",
                "decompress it: unzip -p FILE | tidalite import DATABASE.tdl -",
            ),
        };
    }
    let (_, is, next) = FORMATS.iter().find(|(magic, ..)| head.starts_with(magic))?;
    refuse(is, next)
}

/// The error for a time column of numbers: they were guessed to count from 1970, but then all of them would lie in the
/// first days of 1970.
pub(crate) fn near_1970(column: &str, first: &str, last: &str, unit: &str) -> Failure {
    let is_day = |text: &str| text.parse().is_ok_and(|day: f64| EXCEL_DAYS.contains(&day));
    let failure = Failure::bad_input(format!(
        "column {column} holds numbers (`{}`, `{}`) that are all within days of 1970-01-01 if they are {unit}",
        printable(first),
        printable(last)
    ));
    match is_day(first) && is_day(last) {
        true => failure.hint(
            "they look like day numbers of Excel (45292.5 is noon of 2024-01-01): format the column as yyyy-mm-dd hh:mm:ss before \
             saving as CSV; if they do count from 1970, say in what: --time-format s, ms, us or ns",
        ),
        false => failure.hint("if they count from 1970, give their unit: --time-format s, ms, us or ns; or choose another column with --time"),
    }
}

/// The error if no column holds numbers. `cells` has the name of each column, and an example cell if there is one.
pub(crate) fn no_numbers(cells: &[(&str, Option<&str>)]) -> Failure {
    let shown: Vec<String> = cells
        .iter()
        .filter_map(|(name, cell)| Some((name, (*cell)?)))
        .take(EXAMPLES_MAX)
        .map(|(name, cell)| format!("`{}` in column `{}`", shortened(cell), printable(name)))
        .collect();
    if shown.is_empty() {
        return Failure::bad_input(
            "no column holds numbers: there are no columns besides the time and the tags",
        )
        .hint("if there are several columns, give their separator with --delimiter");
    }
    let failure = Failure::bad_input(format!(
        "no column holds numbers: found {}",
        shown.join(", ")
    ));
    let has_comma = |cell: &str| {
        cell.matches(',').count() == 1 && cell.replace(',', ".").parse::<f64>().is_ok()
    };
    if cells.iter().any(|(_, cell)| cell.is_some_and(has_comma)) {
        return failure.hint(
            "numbers need a decimal point; where fields are separated by semicolons: sed 's/,/./g' FILE | tidalite import DATABASE.tdl -",
        );
    }
    let (name, _) = cells
        .iter()
        .find(|(_, cell)| cell.is_some())
        .unwrap_or(&("state", None));
    failure.hint(format!(
        "text and true/false are stored with a name and types: --into NAME --columns '{}:string' (or :bool); \
         words that mean \"no value\" are named with --null",
        printable(name)
    ))
}

fn shortened(cell: &str) -> String {
    const CHARS_MAX: usize = 40;
    match cell.char_indices().nth(CHARS_MAX) {
        Some((at, _)) => format!("{}...", printable(&cell[..at])),
        None => printable(cell),
    }
}

/// Advice on skipping lines that stand before the header, or between the header and the rows.
pub(crate) fn lines_to_skip(head: &[u8], delimiter: Option<u8>) -> Option<String> {
    let text = String::from_utf8_lossy(head);
    let lines: Vec<&str> = text.lines().take(LINES_MAX).collect();
    let delimiters = match delimiter {
        Some(delimiter) => vec![char::from(delimiter)],
        None => vec![',', ';', '\t', '|'],
    };
    for delimiter in delimiters {
        let fields = |line: &str| -> Vec<String> {
            let fields = line.split(delimiter);
            fields
                .map(|field| field.trim().trim_matches('"').to_owned())
                .collect()
        };
        let is_data = |fields: &[String]| {
            let numbers = fields
                .iter()
                .filter(|field| begins_with_a_digit(field))
                .count();
            numbers * 2 >= fields.len()
        };
        let is_names = |fields: &[String]| {
            fields.len() > 1 && !fields.iter().any(|field| begins_with_a_digit(field))
        };
        let rows: Vec<Vec<String>> = lines.iter().map(|line| fields(line)).collect();
        let is_row = |at: usize, width: usize| {
            rows.get(at)
                .is_some_and(|row| row.len() == width && is_data(row))
        };
        for (at, names) in rows.iter().enumerate() {
            if !is_names(names) {
                continue;
            }
            let line = at + 1;
            let skip = format!("tail -n +{line} FILE");
            if is_row(at + 1, names.len()) {
                return (at > 0).then(|| {
                    format!("line {line} looks like the names of the columns: skip the lines before it: {skip} | tidalite import DATABASE.tdl -")
                });
            }
            // The line after the names may hold the units of the columns.
            if is_row(at + 2, names.len()) && rows[at + 1].len() == names.len() {
                let units = line + 1;
                let (skip, from) = match at {
                    0 => ("sed".to_owned(), " FILE"),
                    _ => (format!("{skip} | sed"), ""),
                };
                return Some(format!(
                    "line {units} holds neither names nor values (units?): leave it out: {skip} 2d{from} | tidalite import DATABASE.tdl -"
                ));
            }
        }
    }
    None
}

fn begins_with_a_digit(field: &str) -> bool {
    let digits = field.strip_prefix('-').unwrap_or(field);
    digits.starts_with(|c: char| c.is_ascii_digit())
}

/// The error for an input that is a single JSON array instead of JSON lines.
pub(crate) fn json_array(head: &[u8], what: &str) -> Option<Failure> {
    let inner = head
        .trim_ascii_start()
        .strip_prefix(b"[")?
        .trim_ascii_start();
    let next = match inner.first()? {
        b'{' => "write one object per line: jq -c '.[]' FILE | tidalite import DATABASE.tdl -",
        b'[' => {
            "write its rows as CSV: jq -r '.[] | @csv' FILE > data.csv; if the first row does not hold names, import that with --no-header \
             and choose columns by number: --time 1 --value 2=NAME"
        }
        b'"' | b'0'..=b'9' | b'-' | b']' => {
            "the input must have one JSON object per line, such as {\"time\":\"2014-06-01T00:10:00Z\",\"value\":1.5}"
        }
        // The bracket belongs to a column name, so the input is not a JSON array.
        _ => return None,
    };
    Some(Failure::bad_input(format!("{what} is a JSON array")).hint(next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_before_the_names_are_found() {
        let skip = |text: &str| lines_to_skip(text.as_bytes(), None);
        let three = "# Station 7\n# Berlin, Dahlem\n\ntime,v\n2014-06-01,1\n";
        assert!(skip(three).is_some_and(|told| told.contains("tail -n +4")));
        let german = "Station;7\nzeit;wert\n01.06.2014 00:10;1,5\n";
        assert!(skip(german).is_some_and(|told| told.contains("tail -n +2")));
        let units = skip("time;v\nUTC;m/s\n2014-06-01;1\n");
        assert!(units.is_some_and(|told| told.contains("line 2") && told.contains("sed 2d FILE")));
        assert_eq!(skip("time,v\n2014-06-01,1\n"), None);
        assert_eq!(skip("hello\nworld\n"), None);
    }

    #[test]
    fn arrays_of_objects_and_of_arrays_differ() {
        let hint = |text: &str| json_array(text.as_bytes(), "x").and_then(|failure| failure.hint);
        assert!(hint(" [\n {\"a\":1}]").is_some_and(|hint| hint.contains("'.[]'")));
        assert!(hint("[[1,2]]").is_some_and(|hint| hint.contains("@csv")));
        assert!(hint("[1]").is_some_and(|hint| hint.contains("one JSON object per line")));
        assert!(hint("[time],[v]\n").is_none());
    }
}
