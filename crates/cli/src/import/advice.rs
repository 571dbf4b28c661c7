//! Recognises inputs that cannot be imported as they are, and advises the user how to convert them.

use crate::exit::Failure;
use crate::output::printable;
use crate::time::{Epoch, TimeFormat};

/// The first bytes of formats that are not text, each with the name of the format and advice on how to convert it to
/// CSV.
const FORMATS: [(&[u8], &str, &str); 12] = [
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
];

const PARQUET: &str = "give the file itself, decompressed and not as standard input, to a build with the feature sql; or write it as CSV first, for example: duckdb -c \"copy 'FILE' to 'data.csv'\"";
const ARROW: &str = "give the file itself, decompressed and not as standard input, to a build with the feature sql; or write it as CSV first, for example with pandas: read_feather, to_csv";
const EXCEL: &str = "save the sheet as CSV in the spreadsheet program, and import the CSV file";
const NETCDF: &str =
    "write its variables as CSV first, for example with xarray: to_dataframe, to_csv";

/// Advice for an input whose text is not UTF-8.
pub(crate) const NOT_UTF_8: &str = "name its encoding: --encoding windows-1252 for Western Europe (Latin-1, too), windows-1250, windows-1251, shift_jis, gb18030 ...";

/// The numbers by which Excel counts the days between the years 1954 and 2119.
const EXCEL_DAYS: std::ops::RangeInclusive<f64> = 20_000.0..=80_000.0;

/// Maximum number of example cells that a message shows.
const EXAMPLES_MAX: usize = 5;

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
pub(crate) fn near_1970(place: &str, first: &str, last: &str, unit: &str) -> Failure {
    let is_day = |text: &str| text.parse().is_ok_and(|day: f64| EXCEL_DAYS.contains(&day));
    let failure = Failure::bad_input(format!(
        "{place} holds numbers (`{}`, `{}`) that are all within days of 1970-01-01 if they are {unit}",
        printable(first),
        printable(last)
    ));
    match is_day(first) && is_day(last) {
        true => failure.hint(
            "they look like day numbers of Excel (45292.5 is noon of 2024-01-01): --time-format excel reads them; if they do count from 1970, give their unit: --time-format s, ms, us, ns, min, h or d",
        ),
        false => failure.hint("if they count from 1970, give their unit: --time-format s, ms, us, ns, min, h or d; or choose another column with --time"),
    }
}

/// The error for numbers whose only separator may be a decimal separator or a thousands separator.
pub(crate) fn ambiguous_number(column: &str, cell: &str) -> Failure {
    let separator = if cell.contains('.') { '.' } else { ',' };
    let plain = |with: &str| printable(&cell.replace(separator, with));
    Failure::bad_input(format!(
        "column {column}: `{}` may be {} or {}",
        printable(cell),
        plain("."),
        plain("")
    ))
    .hint(format!(
        "name the separator: --decimal '{separator}' or --thousands '{separator}'; or leave the column out with --skip"
    ))
}

/// The error for timestamps of the line protocol whose unit is not given and that all lie within three years of 1970 if
/// they are nanoseconds. `likely` is the unit that fits their magnitude.
pub(crate) fn line_near_1970(what: &str, time: i64, likely: Epoch) -> Failure {
    let (unit, option) = match likely {
        Epoch::Millis => ("milliseconds", "ms"),
        Epoch::Micros => ("microseconds", "us"),
        _ => ("seconds", "s"),
    };
    Failure::bad_input(format!(
        "{what}: the timestamps (`{time}`) are all within three years of 1970-01-01 if they are nanoseconds"
    ))
    .hint(format!(
        "give their unit: --time-format {option} if they are {unit} since 1970, --time-format ns if they are nanoseconds"
    ))
}

/// The error for a time column of numbers that may be dates by `pattern` or count from 1970 in `unit`.
pub(crate) fn number_or_date(place: &str, text: &str, pattern: &str, unit: Epoch) -> Failure {
    let option = match unit {
        Epoch::Millis => "ms",
        Epoch::Micros => "us",
        Epoch::Nanos => "ns",
        _ => "s",
    };
    Failure::bad_input(format!(
        "{place}: `{}` may be a date ({pattern}) or a number of {}",
        printable(text),
        TimeFormat::Epoch(unit)
    ))
    .hint(format!(
        "give the format: --time-format '{pattern}' or --time-format {option}"
    ))
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
