//! `scan --frequent`: prints the most frequent values.
//!
//! ```text
//! if the distinct values fit in memory   exact count for each
//! otherwise                              second pass with the Space-Saving algorithm: between at_least and at_most
//! ```

use crate::args::ScanArgs;
use crate::columns::column_of;
use crate::database::{Reader, Span, value_cell};
use crate::exit::Outcome;
use crate::output::{Cell, Column};
use crate::terminal::Terminal;
use std::collections::HashMap;
use tidalite::{Column as Own, ColumnType, Query, Series, Steps, Value};

/// Maximum memory in bytes for exact counters.
const EXACT_BYTES_MAX: usize = 256 << 20;

/// Approximate memory in bytes for each number: the word and its count. It is counted three times, because the map may
/// be half full and is copied when it grows.
const NUMBER_BYTES: usize = 48;

/// Approximate memory in bytes for each text, in addition to its own bytes: as for a number, plus the location of the
/// text.
const TEXT_BYTES: usize = 120;

/// Number of counters for an estimate. With this number, a count is too high by at most a thousandth of the number of
/// all values.
const COUNTERS: usize = 1_000;

/// The number of occurrences of a value: exact, or as bounds.
enum Often {
    Exactly(u64),
    Between(u64, u64),
}

impl Often {
    /// The cells of the columns `count`, `at_least` and `at_most`.
    fn cells(&self) -> [Cell; 3] {
        match *self {
            Self::Exactly(count) => [count, count, count].map(Cell::Unsigned),
            Self::Between(low, high) => [Cell::Missing, Cell::Unsigned(low), Cell::Unsigned(high)],
        }
    }
}

pub(crate) fn run(args: &ScanArgs, values: usize, terminal: &mut Terminal<'_>) -> Outcome {
    let reader = Reader::open(&args.file)?;
    let infos = reader.select(&args.which.pattern)?;
    let span = Span::of(&args.range)?;
    let mut lines = Vec::new();
    let mut any = values == 0;
    let mut estimated = false;
    for info in &infos {
        let column = column_of(info, &args.column)?;
        let series = reader.series(info)?;
        let Some((from, to)) = span.in_series(&series) else {
            continue;
        };
        let fail = |error: tidalite::Error| reader.fail(&error);
        let range = series.query(Steps(from)..=Steps(to));
        let exact = exactly(&series, &range, column, EXACT_BYTES_MAX).map_err(fail)?;
        let found = match exact {
            Some(mut found) => {
                found.truncate(values);
                found
            }
            None => {
                estimated = true;
                let note = terminal.messages.warning("note:");
                let label = crate::output::printable(&info.label());
                eprintln!(
                    "{note} {label} has too many distinct values to count them all: the counts are estimates, from at_least to at_most"
                );
                roughly(&range, column, values).map_err(fail)?
            }
        };
        for (value, often) in found {
            any = true;
            lines.push((Cell::series(info), value_cell(value), often));
        }
    }
    if !any {
        return Err(span.nothing());
    }
    // A printed table omits columns that would be empty or the same on each line.
    let format = args.format.format;
    let with_series = format.names_series(infos.len());
    let all = !format.is_table();
    let shown = [
        true,
        all || !estimated
            || lines
                .iter()
                .any(|(.., often)| matches!(often, Often::Exactly(_))),
        all || estimated,
        all || estimated,
    ];
    let names = ["value", "count", "at_least", "at_most"].map(Column::number);
    let columns = with_series.then(|| Column::text("series")).into_iter();
    let columns = columns.chain(chosen(names, shown)).collect();
    let mut sheet = terminal.sheet(format, columns);
    for (name, value, often) in lines {
        let name = with_series.then_some(name).into_iter();
        let [count, low, high] = often.cells();
        let cells = chosen([value, count, low, high], shown);
        sheet.row(&name.chain(cells).collect::<Vec<_>>())?;
    }
    Ok(sheet.finish()?)
}

fn chosen<T>(all: [T; 4], shown: [bool; 4]) -> impl Iterator<Item = T> {
    let all = all.into_iter().zip(shown);
    all.filter_map(|(one, shown)| shown.then_some(one))
}

/// Counts every value. The most frequent value comes first; equally frequent values are in ascending order. Returns
/// `None` if the values need more memory than `bytes_max`.
fn exactly(
    series: &Series<'_>,
    range: &Query<'_>,
    column: usize,
    bytes_max: usize,
) -> tidalite::Result<Option<Vec<(Value, Often)>>> {
    let own = &series.info().schema.columns[column];
    let found = match own.ty.is_text() {
        true => texts(series, range, column, bytes_max)?,
        false => numbers(own, range, column, bytes_max)?,
    };
    let Some(mut found) = found else {
        return Ok(None);
    };
    found.sort_by(|(a, often), (b, other)| other.cmp(often).then_with(|| in_order(a, b)));
    let found = found.into_iter();
    Ok(Some(
        found
            .map(|(value, count)| (value, Often::Exactly(count)))
            .collect(),
    ))
}

type Counted = Option<Vec<(Value, u64)>>;

fn numbers(
    own: &Own,
    range: &Query<'_>,
    column: usize,
    bytes_max: usize,
) -> tidalite::Result<Counted> {
    let mut counts: HashMap<u64, u64> = HashMap::new();
    let mut fits = true;
    range.clone().columns([column]).for_each_vector(|vector| {
        if fits {
            for &word in vector.words(column) {
                *counts.entry(one_word(own, word)).or_default() += 1;
            }
            fits = counts.len() <= bytes_max / NUMBER_BYTES;
        }
    })?;
    let counted = counts
        .into_iter()
        .map(|(word, count)| (own.value(word), count));
    Ok(fits.then(|| counted.filter(|(value, _)| *value != Value::Null).collect()))
}

/// The word under which a value is counted. All NaN that are not null are counted as one word, and so are both zeros.
fn one_word(own: &Own, word: u64) -> u64 {
    if !matches!(own.ty, ColumnType::F64 | ColumnType::F32) {
        return word;
    }
    let value = f64::from_bits(word);
    if value == 0.0 {
        0
    } else if value.is_nan() && own.value(word) != Value::Null {
        f64::NAN.to_bits()
    } else {
        word
    }
}

fn texts(
    series: &Series<'_>,
    range: &Query<'_>,
    column: usize,
    bytes_max: usize,
) -> tidalite::Result<Counted> {
    let mut counts: HashMap<String, (Value, u64)> = HashMap::new();
    let mut bytes = 0;
    let mut failed = None;
    range.clone().columns([column]).for_each_vector(|vector| {
        if failed.is_some() || bytes > bytes_max {
            return;
        }
        // Words are counted first, so that each distinct text of a vector is looked up once.
        let mut words: HashMap<u64, u64> = HashMap::new();
        for &word in vector.words(column) {
            *words.entry(word).or_default() += 1;
        }
        for (word, count) in words {
            let value = match series.value(column, word) {
                Ok(Value::Null) => continue,
                Ok(value) => value,
                Err(error) => {
                    failed = Some(error);
                    return;
                }
            };
            let text = value.to_string();
            let length = text.len();
            let (_, so_far) = counts.entry(text).or_insert_with(|| {
                bytes += 2 * length + TEXT_BYTES;
                (value, 0)
            });
            *so_far += count;
        }
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    Ok((bytes <= bytes_max).then(|| counts.into_values().collect()))
}

/// Compares two values: as values of their type if both have the same type, otherwise as texts.
fn in_order(a: &Value, b: &Value) -> std::cmp::Ordering {
    match (a, b) {
        (Value::F64(a), Value::F64(b)) => a.total_cmp(b),
        (Value::I64(a), Value::I64(b)) => a.cmp(b),
        (Value::U64(a), Value::U64(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Decimal(a), Value::Decimal(b)) => a.units.cmp(&b.units),
        (a, b) => a.to_string().cmp(&b.to_string()),
    }
}

/// Finds the most frequent values with estimated counts, in little memory.
fn roughly(
    range: &Query<'_>,
    column: usize,
    values: usize,
) -> tidalite::Result<Vec<(Value, Often)>> {
    let found = range.frequent_items(column, COUNTERS.max(values))?;
    let found = found.into_iter().take(values);
    // The floats are counts of rows, so they are whole numbers.
    let between = |low: f64, high: f64| Often::Between(low as u64, high as u64);
    Ok(found
        .map(|one| {
            let often = between(one.at_least(), one.weight);
            (one.item, often)
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tidalite::storage::MemoryStorage;
    use tidalite::{Options, Schema, Unit};

    #[test]
    fn values_are_counted_while_they_fit_the_memory() {
        tidalite_testkit::watch();
        let storage = Arc::new(MemoryStorage::new());
        let database = Options::new().open_storage(storage).unwrap();
        let mut txn = database.begin_write().unwrap();
        let columns = [("x", ColumnType::F64), ("text", ColumnType::String)];
        let schema = Schema::new(Unit::Seconds, columns);
        let mut series = txn.series_with("a", &schema).unwrap();
        // Every value occurs once or twice, and one value a hundred times.
        for row in 0..20_000_i64 {
            let x = if row % 200 == 0 {
                42.5
            } else {
                (row % 15_000) as f64
            };
            let text = format!("{x}");
            series
                .insert_values(Steps(row), &[x.into(), text.as_str().into()])
                .unwrap();
        }
        let series = series.view().unwrap();
        let range = series.query(..);
        for column in [0, 1] {
            let all = exactly(&series, &range, column, EXACT_BYTES_MAX).unwrap();
            let all = all.unwrap();
            assert_eq!(all[0].0.to_string(), "42.5");
            assert!(matches!(all[0].1, Often::Exactly(100)));
            assert!(matches!(all[1].1, Often::Exactly(2)));
            assert_eq!(all.len(), 14_926);
            let none = exactly(&series, &range, column, 100_000).unwrap();
            assert!(none.is_none());
            let rough = roughly(&range, column, 3).unwrap();
            assert_eq!(rough.len(), 3);
            assert!(rough.iter().all(|(_, often)| match often {
                Often::Between(low, high) => low <= high && *high <= 100 + 20,
                Often::Exactly(_) => false,
            }));
        }
    }
}
