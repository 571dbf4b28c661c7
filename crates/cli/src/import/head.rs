//! Finds the line with the names of the columns: comments and titles may stand before it, and units after it.
//!
//! ```text
//! # Station 7, Berlin          before the names: skipped
//! time;temp;wind               the names
//! UTC;°C;m/s                   units
//! 2014-06-01 00:10;21,5;3,2    rows
//! ```
//!
//! A line holds names if none of its fields begins with a digit and the next line has as many fields, half of which
//! begin with a digit. If these two lines are the first of an input, nothing is skipped. A line between the names and
//! the first row holds units only if one of the names suggests a time: the two lines could also be a title and names.

use crate::import::field::Nulls;
use crate::import::record::Records;
use csv::ByteRecord;

/// Number of lines at the beginning of an input that are searched for the header.
const LINES_MAX: usize = 200;

/// The character that begins comments if it is not given: it is looked for only in the lines before the names.
const COMMENT: u8 = b'#';

/// The result of the search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    /// Number of lines before the names.
    pub lines: usize,
    /// Number of bytes of these lines.
    pub bytes: usize,
    /// The separator of fields.
    pub delimiter: u8,
    /// Whether the line after the names holds units.
    pub has_units: bool,
    /// Number of lines after the units that are neither units nor rows.
    pub skipped: usize,
    /// The character that begins comment lines, if a line before the names is a comment.
    pub comment: Option<u8>,
}

/// Searches the first bytes of an input for the names of its columns. `None` if the first line holds them, or if no
/// line does. With `has_units`, the line after the names holds units even if it cannot be recognised.
pub(crate) fn find(
    head: &[u8],
    delimiter: Option<u8>,
    comment: Option<u8>,
    has_units: bool,
    nulls: &Nulls,
) -> Option<Header> {
    let mut lines: Vec<(usize, &[u8])> = Vec::new();
    let mut at = 0;
    for line in head.split_inclusive(|byte| *byte == b'\n').take(LINES_MAX) {
        lines.push((at, line.trim_ascii()));
        at += line.len();
    }
    if let Some(found) = of_toa5(&lines) {
        return Some(found);
    }
    let delimiters = match delimiter {
        Some(delimiter) => vec![delimiter],
        None => vec![b',', b';', b'\t', b'|'],
    };
    let found = delimiters
        .into_iter()
        .find_map(|delimiter| with_delimiter(&lines, delimiter, comment, has_units, nulls))?;
    (found.lines > 0 || found.has_units).then_some(found)
}

/// The header of a file of a Campbell Scientific logger: the station, the names, the units, perhaps the way in which
/// the logger computed the values, and then rows.
fn of_toa5(lines: &[(usize, &[u8])]) -> Option<Header> {
    let [(_, first), (bytes, names), (_, units), (_, fourth), ..] = lines else {
        return None;
    };
    let is_toa5 = first.starts_with(b"TOA5,") || first.starts_with(b"\"TOA5\",");
    let is_row = |line: &[u8]| is_data(&fields(line, b','));
    if !is_toa5 || is_row(names) || is_row(units) {
        return None;
    }
    Some(Header {
        lines: 1,
        bytes: *bytes,
        delimiter: b',',
        has_units: true,
        skipped: usize::from(!is_row(fourth)),
        comment: None,
    })
}

fn with_delimiter(
    lines: &[(usize, &[u8])],
    delimiter: u8,
    comment: Option<u8>,
    must_have_units: bool,
    nulls: &Nulls,
) -> Option<Header> {
    let is_comment = |line: &[u8]| comment.is_some() && line.first().copied() == comment;
    // Blank lines and comments do not count.
    let rows: Vec<(usize, Vec<String>)> = lines
        .iter()
        .enumerate()
        .filter(|(_, (_, line))| !line.is_empty() && !is_comment(line))
        .map(|(number, (_, line))| (number, fields(line, delimiter)))
        .collect();
    let is_row = |at: usize, width: usize| {
        rows.get(at)
            .is_some_and(|(_, row)| row.len() == width && is_data(row))
    };
    for (at, (number, names)) in rows.iter().enumerate() {
        if !is_names(names, nulls) {
            continue;
        }
        let width = names.len();
        let has_units = !is_row(at + 1, width)
            && is_row(at + 2, width)
            && rows.get(at + 1).is_some_and(|(_, row)| {
                row.len() == width
                    && is_units(row, nulls)
                    && (must_have_units || has_time(names) && !has_time(row))
            });
        if !has_units && !is_row(at + 1, width) {
            continue;
        }
        // Words that are not units make the row invalid; the error names its line.
        let units = rows.get(at + 1).map_or(&[][..], |(_, row)| row);
        let has_units = has_units && (must_have_units || has_unit_of_time(names, units));
        let before = lines[..*number].iter();
        let is_marked = |(_, line): &(usize, &[u8])| line.first() == Some(&COMMENT);
        return Some(Header {
            lines: match at {
                0 => 0,
                _ => *number,
            },
            bytes: match at {
                0 => 0,
                _ => lines[*number].0,
            },
            delimiter,
            has_units,
            skipped: 0,
            comment: before.clone().any(is_marked).then_some(COMMENT),
        });
    }
    None
}

fn fields(line: &[u8], delimiter: u8) -> Vec<String> {
    let mut record = ByteRecord::new();
    let _ = Records::csv(line, delimiter, None).next(&mut record);
    let fields = record.iter();
    fields
        .map(|field| String::from_utf8_lossy(field).trim().to_owned())
        .collect()
}

fn is_names(fields: &[String], nulls: &Nulls) -> bool {
    fields.len() > 1 && is_units(fields, nulls)
}

fn is_units(fields: &[String], nulls: &Nulls) -> bool {
    !fields
        .iter()
        .any(|field| begins_with_a_digit(field) || !field.is_empty() && nulls.contains(field))
}

/// Whether one of these names suggests a time.
fn has_time(names: &[String]) -> bool {
    names.iter().any(|name| suggests_time(name))
}

fn suggests_time(name: &str) -> bool {
    const PARTS: [&str; 5] = ["time", "date", "zeit", "datum", "stamp"];
    let name = name.to_lowercase();
    PARTS.iter().any(|part| name.contains(part))
}

/// Whether a column whose name suggests times has a text that may be their unit, zone or format: it is empty, an
/// abbreviation, or not a plain word.
fn has_unit_of_time(names: &[String], units: &[String]) -> bool {
    const WORDS: [&str; 25] = [
        "s", "sec", "second", "seconds", "ms", "us", "ns", "min", "minute", "minutes", "m", "h",
        "hr", "hour", "hours", "d", "day", "days", "year", "years", "utc", "gmt", "local", "iso",
        "unix",
    ];
    const ABBREVIATION_MAX: usize = 5;
    let may_be = |unit: &str| {
        let is_word = unit.bytes().all(|byte| byte.is_ascii_alphabetic());
        let is_upper = unit.bytes().all(|byte| byte.is_ascii_uppercase());
        let lower = unit.to_lowercase();
        let is_format = lower.bytes().all(|byte| b"ymdhs".contains(&byte));
        !is_word
            || is_format
            || is_upper && unit.len() <= ABBREVIATION_MAX
            || WORDS.contains(&lower.as_str())
    };
    let mut both = names.iter().zip(units);
    both.any(|(name, unit)| suggests_time(name) && may_be(unit))
}

/// Whether at least half of the fields that are not empty begin with a digit.
fn is_data(fields: &[String]) -> bool {
    let filled = fields.iter().filter(|field| !field.is_empty()).count();
    let numbers = fields
        .iter()
        .filter(|field| begins_with_a_digit(field))
        .count();
    numbers > 0 && numbers * 2 >= filled
}

fn begins_with_a_digit(field: &str) -> bool {
    let digits = field.strip_prefix(['-', '+']).unwrap_or(field);
    digits.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_before_the_names_are_found() {
        let found = |text: &str| find(text.as_bytes(), None, None, false, &Nulls::default());
        let header = |lines, bytes, delimiter, has_units, comment| {
            Some(Header {
                lines,
                bytes,
                delimiter,
                has_units,
                skipped: 0,
                comment,
            })
        };
        let three = "# Station 7\n# Berlin, Dahlem\n\ntime,v\n2014-06-01,1\n";
        assert_eq!(found(three), header(3, 30, b',', false, Some(b'#')));
        let german = "Station;7\nzeit;wert\n01.06.2014 00:10;1,5\n";
        assert_eq!(found(german), header(1, 10, b';', false, None));
        let units = "time;v\nUTC;m/s\n2014-06-01;1\n";
        assert_eq!(found(units), header(0, 0, b';', true, None));
        let names = "# a\n# time,v\n2014-06-01,1\n";
        assert_eq!(found(names), header(1, 4, b',', false, Some(b'#')));
        for plain in [
            "time,v\n2014-06-01,1\n",
            "#time,v\n2014-06-01,1\n",
            "time,v\nNA,NA\n2014-06-01,1\n",
            "time,temp\nfoo,bar\n2014-06-01,1\n",
            "time,v,note,site\n2014-06-01,1,a,b\n",
            "hello\nworld\n",
            "",
        ] {
            assert_eq!(found(plain), None, "{plain}");
        }
    }
}
