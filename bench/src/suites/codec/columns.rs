//! The columns to measure. `columns.toml`, next to the manifest, lists them; the environment variable
//! TIDALITE_TEST_DATA is the folder of the files.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use flate2::read::{DeflateDecoder, MultiGzDecoder};

use crate::engine::Result;

/// Type of the values in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Float,
    Integer,
    /// Timestamps, which are reported separately from values.
    Time,
}

/// The group to which a column belongs in the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    /// A real column that was used to design the codec.
    Known,
    /// A generated column that is used for choices in the codec.
    Tuning,
    /// A generated column that is only reported, and not used for choices.
    Judging,
}

impl Half {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Known => "known",
            Self::Tuning => "tuning",
            Self::Judging => "judging",
        }
    }
}

/// A column, as the words of one or several series.
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) half: Half,
    /// The kind of values of a generated column; "real" for a real one.
    pub(crate) family: &'static str,
    pub(crate) series: Vec<Vec<u64>>,
}

impl Column {
    /// Number of values in all series.
    pub(crate) fn values(&self) -> usize {
        self.series.iter().map(Vec::len).sum()
    }
}

/// A plan to read columns from a set of files.
struct Plan {
    paths: Vec<String>,
    header: bool,
    by: Option<String>,
    columns: Vec<(String, Kind)>,
}

/// Reads all columns, or only the columns whose names contain one of the texts in `only`.
pub(crate) fn read(folder: &Path, only: &[String]) -> Result<Vec<Column>> {
    let mut columns = Vec::new();
    for plan in plans(include_str!("../../../columns.toml"))? {
        for path in &plan.paths {
            let mut plan_of_file = Vec::new();
            for (name, kind) in &plan.columns {
                let full = format!("{path}:{name}");
                if only.is_empty() || only.iter().any(|only| full.contains(only.as_str())) {
                    plan_of_file.push((name.clone(), *kind));
                }
            }
            if plan_of_file.is_empty() {
                continue;
            }
            let read = lines(&folder.join(path))
                .and_then(|lines| of_file(lines, path, &plan, &plan_of_file));
            columns.extend(read.map_err(|error| format!("{path}: {error}"))?);
        }
    }
    Ok(columns)
}

fn plans(text: &str) -> Result<Vec<Plan>> {
    let table: toml::Table = text.parse()?;
    let words = |entry: &toml::Value, key: &str| -> Vec<String> {
        let list = entry.get(key).and_then(toml::Value::as_array);
        let words = list.into_iter().flatten().filter_map(toml::Value::as_str);
        words.map(str::to_owned).collect()
    };
    let entries = table.get("file").and_then(toml::Value::as_array);
    let mut plans = Vec::new();
    for entry in entries.ok_or("columns.toml: no [[file]]")? {
        let mut columns = Vec::new();
        for (key, kind) in [
            ("columns", Kind::Float),
            ("integers", Kind::Integer),
            ("times", Kind::Time),
        ] {
            columns.extend(words(entry, key).into_iter().map(|name| (name, kind)));
        }
        plans.push(Plan {
            paths: words(entry, "paths"),
            header: entry.get("header").and_then(toml::Value::as_bool) != Some(false),
            by: entry
                .get("by")
                .and_then(toml::Value::as_str)
                .map(str::to_owned),
            columns,
        });
    }
    Ok(plans)
}

/// Opens a file, decompresses it if necessary, and returns its lines.
fn lines(path: &Path) -> Result<Box<dyn BufRead>> {
    let mut file = BufReader::new(File::open(path)?);
    Ok(match path.extension().and_then(|e| e.to_str()) {
        Some("gz") => Box::new(BufReader::new(MultiGzDecoder::new(file))),
        Some("zip") => {
            // A zip file begins with a local header of 30 bytes; then come name and extra field, then the compressed
            // data.
            let mut header = [0; 30];
            file.read_exact(&mut header)?;
            if header[..4] != *b"PK\x03\x04" || header[8] != 8 {
                return Err("no deflated file at its beginning".into());
            }
            let length = |at: usize| i64::from(u16::from_le_bytes([header[at], header[at + 1]]));
            file.seek_relative(length(26) + length(28))?;
            Box::new(BufReader::new(DeflateDecoder::new(file)))
        }
        _ => Box::new(file),
    })
}

fn of_file(
    mut lines: Box<dyn BufRead>,
    path: &str,
    plan: &Plan,
    wanted: &[(String, Kind)],
) -> Result<Vec<Column>> {
    let mut line = String::new();
    let mut names = vec!["value".to_owned()];
    if plan.header {
        lines.read_line(&mut line)?;
        names = fields(&line).map(str::to_owned).collect();
    }
    let place = |name: &str| -> Result<usize> {
        let at = names.iter().position(|known| known == name);
        at.ok_or_else(|| format!("no column {name}").into())
    };
    let by = plan.by.as_deref().map(place).transpose()?;
    let mut places = Vec::new();
    let mut columns: Vec<Column> = Vec::new();
    for (name, kind) in wanted {
        places.push(place(name)?);
        columns.push(Column {
            name: format!("{path}:{name}"),
            kind: *kind,
            half: Half::Known,
            family: "real",
            series: Vec::new(),
        });
    }
    let mut series: HashMap<String, usize> = HashMap::new();
    loop {
        line.clear();
        if lines.read_line(&mut line)? == 0 {
            break;
        }
        let row: Vec<&str> = fields(&line).collect();
        if row.iter().all(|field| field.is_empty()) {
            continue;
        }
        let of = by.and_then(|at| row.get(at)).copied().unwrap_or("");
        let next = series.len();
        let at = *series.entry(of.to_owned()).or_insert(next);
        for (column, place) in columns.iter_mut().zip(&places) {
            if at == column.series.len() {
                column.series.push(Vec::new());
            }
            let field = row.get(*place).copied().unwrap_or("");
            column.series[at].push(word(field, column.kind)?);
        }
    }
    Ok(columns)
}

fn fields(line: &str) -> impl Iterator<Item = &str> {
    line.trim_end_matches(['\r', '\n'])
        .split(',')
        .map(|field| field.trim().trim_matches('"'))
}

fn word(field: &str, kind: Kind) -> Result<u64> {
    Ok(match kind {
        Kind::Float => field.parse::<f64>().unwrap_or(f64::NAN).to_bits(),
        Kind::Integer => field.parse::<i64>()? as u64,
        Kind::Time => match field.parse::<i64>() {
            Ok(time) => time as u64,
            Err(_) => seconds(field).ok_or_else(|| format!("no time: {field}"))? as u64,
        },
    })
}

/// Parses a time such as `2014-01-01T01:00:00`, with or without an offset after it, to seconds since 1970.
fn seconds(text: &str) -> Option<i64> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let offset = match text.get(19..20) {
        Some(sign @ ("+" | "-")) => {
            let of = 3600 * number(20, 22)? + 60 * number(23, 25)?;
            if sign == "+" { of } else { -of }
        }
        _ => 0,
    };
    // Counts days since 1970-03-01 in years that begin in March, so that a leap day is the last day of its year.
    let (shifted, month) = (year - i64::from(month < 3), (month + 9) % 12);
    let days = 365 * shifted + shifted.div_euclid(4) - shifted.div_euclid(100)
        + shifted.div_euclid(400)
        + (153 * month + 2) / 5
        + day
        - 1
        - 719_468;
    Some(days * 86_400 + hour * 3600 + minute * 60 + second - offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_can_be_read_and_names_no_column_twice() {
        let plans = plans(include_str!("../../../columns.toml")).unwrap();
        let mut names = Vec::new();
        for plan in &plans {
            for path in &plan.paths {
                names.extend(
                    plan.columns
                        .iter()
                        .map(|(name, _)| format!("{path}:{name}")),
                );
            }
        }
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
        assert!(all > 130, "{all}");
    }

    #[test]
    fn times_and_fields() {
        assert_eq!(seconds("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(seconds("2014-01-01T01:00:00+01:00"), Some(1_388_534_400));
        assert_eq!(seconds("2000-02-29 12:00:00"), Some(951_825_600));
        assert_eq!(seconds("NA"), None);
        let row: Vec<_> = fields("a,\"b\", 3\r\n").collect();
        assert_eq!(row, ["a", "b", "3"]);
        assert_eq!(word("7", Kind::Integer).unwrap(), 7);
        assert!(word("NA", Kind::Integer).is_err());
        assert!(f64::from_bits(word("NA", Kind::Float).unwrap()).is_nan());
    }
}
