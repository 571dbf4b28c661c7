//! Runs a few queries and compares the answers with the model: after a crash not only the rows but also the statistics
//! must be right.

use super::relations;
use crate::model::Model;
use crate::model::wide::same_row;
use crate::workload::TIME_MAX;
use tidalite::{Aggregate, Column, Database, ReadTxn, Result, Row, Schema, Series, Steps, Value};
use tidalite_testkit::rng::Rng;

/// Maximum number of rows that a cursor reads backwards.
const BACK_MAX: usize = 40;

/// The rows of a series according to the model, in order.
struct Known {
    columns: Vec<Column>,
    rows: Vec<(i64, Vec<Value>)>,
}

impl Known {
    fn of_points(model: &Model, name: &str) -> Self {
        let columns = Schema::point().columns;
        let rows = model.series[name].iter();
        let rows = rows.flat_map(|(&time, rows)| rows.iter().map(move |words| (time, words)));
        let values = |words: &[u64; 2]| -> Vec<Value> {
            let words = columns.iter().zip(words);
            words.map(|(column, &word)| column.value(word)).collect()
        };
        Self {
            rows: rows.map(|(time, words)| (time, values(words))).collect(),
            columns,
        }
    }

    fn of_wide(model: &Model, name: &str) -> Self {
        let wide = &model.wide[name];
        let rows = wide.rows.iter();
        let rows = rows.flat_map(|(&time, rows)| rows.iter().map(move |row| (time, row.to_vec())));
        Self {
            columns: wide.columns.clone(),
            rows: rows.collect(),
        }
    }

    /// For each row in the interval, the time and the numeric value of one column.
    fn within(&self, (from, to): (i64, i64), column: usize) -> Vec<(i64, Option<f64>)> {
        let rows = self.rows.iter();
        let rows = rows.filter(|(time, _)| (from..to).contains(time));
        rows.map(|(time, row)| (*time, number(&row[column])))
            .collect()
    }
}

/// The value as a number; `None` for null.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::F64(x) => Some(*x),
        Value::I64(x) => Some(*x as f64),
        Value::U64(x) => Some(*x as f64),
        Value::Bool(x) => Some(f64::from(u8::from(*x))),
        Value::Decimal(x) => Some(x.to_f64()),
        _ => None,
    }
}

/// Queries one series and one relation of the model, and compares the answers of the database with the model.
///
/// # Errors
/// Returns the query with a wrong answer, or an error of the database.
pub(crate) fn ask(db: &Database, model: &Model, rng: &mut Rng) -> std::result::Result<(), String> {
    let mut asked = || -> Result<Option<String>> {
        let snap = db.begin_read()?;
        Ok(series(&snap, model, rng)?.or(relations::ask(&snap, model, rng)?))
    };
    asked()
        .unwrap_or_else(|error| Some(error.to_string()))
        .map_or(Ok(()), |wrong| Err(format!("questions to {wrong}")))
}

/// Queries one series of the model, and describes the first wrong answer.
fn series(snap: &ReadTxn, model: &Model, rng: &mut Rng) -> Result<Option<String>> {
    let names: Vec<&String> = model.series.keys().chain(model.wide.keys()).collect();
    if names.is_empty() {
        return Ok(None);
    }
    let name = rng.pick(&names).as_str();
    let known = match model.wide.contains_key(name) {
        true => Known::of_wide(model, name),
        false => Known::of_points(model, name),
    };
    let wrong = answers(snap, name, &known, rng)?;
    Ok(wrong.map(|wrong| format!("{name}: {wrong}")))
}

/// Runs the queries on a series and describes the first wrong answer; `None` if all answers are right.
fn answers(snap: &ReadTxn, name: &str, known: &Known, rng: &mut Rng) -> Result<Option<String>> {
    let Some(series) = snap.series(name)? else {
        return Ok(Some("it is not there".to_owned()));
    };
    let numbers: Vec<usize> = (0..known.columns.len())
        .filter(|&c| !known.columns[c].ty.is_text())
        .collect();
    let column = *rng.pick(&numbers);
    let from = rng.between(-1, TIME_MAX);
    let interval = (from, from + rng.between(0, TIME_MAX));
    Ok(aggregate(&series, known, interval, column)?
        .or(windows(&series, known, interval, column, rng)?)
        .or(newest(snap, &series, known)?)
        .or(backward(&series, known)?)
        .or(matching(&series, known, interval, column, rng)?)
        .or(texts(&series, known, rng)?))
}

/// Describes a difference between statistics and the rows to which they apply; `None` if there is no difference.
fn wrong_figures(found: &Aggregate, rows: &[(i64, Option<f64>)]) -> Option<String> {
    let values = || {
        rows.iter()
            .filter_map(|&(time, value)| Some((value?, time)))
    };
    let plain = || values().filter(|(value, _)| !value.is_nan());
    let count = values().count() as u64;
    let counts = (
        count,
        rows.len() as u64 - count,
        count - plain().count() as u64,
    );
    let told = (found.count(), found.null_count(), found.nan_count());
    if told != counts {
        return Some(format!("values, nulls, NaN are {told:?}, not {counts:?}"));
    }
    let sum: f64 = plain().map(|(value, _)| value).sum();
    let size: f64 = plain().map(|(value, _)| value.abs()).sum();
    if (found.sum() - sum).abs() > size * 1e-12 {
        return Some(format!("the sum is {}, not {sum}", found.sum()));
    }
    // Of several equal extremes, the earliest counts.
    let by = |a: &(f64, i64), b: &(f64, i64)| a.0.total_cmp(&b.0);
    let least = plain().min_by(by);
    let most = plain().max_by(|a, b| by(a, b).then(b.1.cmp(&a.1)));
    for (what, told, wanted) in [("min", found.min(), least), ("max", found.max(), most)] {
        let bits = |of: Option<(f64, i64)>| of.map(|(value, time)| (value.to_bits(), time));
        if bits(told) != bits(wanted) {
            return Some(format!("{what} is {told:?}, not {wanted:?}"));
        }
    }
    let ends = |row: Option<&(i64, Option<f64>)>| row.and_then(|row| row.1.map(f64::to_bits));
    let wanted = (ends(rows.first()), ends(rows.last()));
    let told = (
        found.first().map(f64::to_bits),
        found.last().map(f64::to_bits),
    );
    if told != wanted {
        return Some(format!("first and last are {told:?}, not {wanted:?}"));
    }
    let times = rows.first().zip(rows.last());
    let times = times.map(|(first, last)| (first.0, last.0));
    (found.times() != times).then(|| format!("times are {:?}, not {times:?}", found.times()))
}

fn aggregate(
    series: &Series<'_>,
    known: &Known,
    (from, to): (i64, i64),
    column: usize,
) -> Result<Option<String>> {
    let rows = known.within((from, to), column);
    let range = series.query(Steps(from)..Steps(to));
    let count = range.count()?;
    if count != rows.len() as u64 {
        return Ok(Some(format!(
            "{count} rows in {from}..{to}, not {}",
            rows.len()
        )));
    }
    let wrong = wrong_figures(&range.aggregate(column)?, &rows);
    Ok(wrong.map(|wrong| format!("column {column} in {from}..{to}: {wrong}")))
}

fn windows(
    series: &Series<'_>,
    known: &Known,
    (from, to): (i64, i64),
    column: usize,
    rng: &mut Rng,
) -> Result<Option<String>> {
    let (width, origin) = (rng.between(1, 2_000), rng.between(-50, 50));
    let rows = known.within((from, to), column);
    let window = |time: i64| (time - origin).div_euclid(width);
    let wanted: Vec<_> = rows.chunk_by(|a, b| window(a.0) == window(b.0)).collect();
    let found = series
        .query(Steps(from)..Steps(to))
        .windows((Steps(width), Steps(origin)), column)?;
    let place = format!("windows of {width} from {origin} on, column {column} in {from}..{to}");
    if found.len() != wanted.len() {
        let (found, wanted) = (found.len(), wanted.len());
        return Ok(Some(format!("{place}: {found}, not {wanted}")));
    }
    for (found, rows) in found.iter().zip(wanted) {
        let start = origin + window(rows[0].0) * width;
        if found.start != start {
            return Ok(Some(format!(
                "{place}: one from {}, not {start}",
                found.start
            )));
        }
        if let Some(wrong) = wrong_figures(&found.aggregate, rows) {
            return Ok(Some(format!("{place}, that from {start}: {wrong}")));
        }
    }
    Ok(None)
}

/// True if a row equals this row of the model.
fn is(
    series: &Series<'_>,
    found: Option<&Row>,
    wanted: Option<&(i64, Vec<Value>)>,
) -> Result<bool> {
    Ok(match (found, wanted) {
        (Some(found), Some((time, row))) => {
            found.time == *time && same_row(&series.values(found)?, row)
        }
        (None, None) => true,
        _ => false,
    })
}

fn newest(snap: &ReadTxn, series: &Series<'_>, known: &Known) -> Result<Option<String>> {
    let wanted = known.rows.last();
    for found in [series.latest()?, snap.latest(series.id())?] {
        if !is(series, found.as_ref(), wanted)? {
            return Ok(Some(format!("the newest row is {found:?}, not {wanted:?}")));
        }
    }
    let ends = known.rows.first().zip(wanted);
    let span = ends.map(|(first, last)| (first.0, last.0));
    Ok((series.span() != span).then(|| format!("it spans {:?}, not {span:?}", series.span())))
}

/// Reads all rows backwards in vectors, and the last rows with a cursor; describes the first difference from the model.
fn backward(series: &Series<'_>, known: &Known) -> Result<Option<String>> {
    let mut times = Vec::<i64>::new();
    let rows = series.query(..).reverse().for_each_vector(|vector| {
        times.extend(vector.times().iter().rev());
    })?;
    let wanted = known.rows.iter().rev().map(|(time, _)| *time);
    if rows != known.rows.len() as u64 || !wanted.eq(times.iter().copied()) {
        return Ok(Some(format!(
            "{rows} rows backwards, or their times, are wrong"
        )));
    }
    let mut cursor = series.cursor();
    let mut found = cursor.last()?;
    for wanted in known.rows.iter().rev().take(BACK_MAX) {
        if !is(series, found.as_ref(), Some(wanted))? {
            return Ok(Some(format!("backwards comes {found:?}, not {wanted:?}")));
        }
        found = cursor.previous()?;
    }
    Ok(None)
}

/// Queries the rows with a value in a range, forwards and backwards; describes the first difference from the model.
fn matching(
    series: &Series<'_>,
    known: &Known,
    (from, to): (i64, i64),
    column: usize,
    rng: &mut Rng,
) -> Result<Option<String>> {
    let low = (rng.between(-5_000, 5_000) as f64) / 100.0;
    let high = low + rng.between(0, 3_000) as f64 / 100.0;
    let rows = known.within((from, to), column).into_iter();
    let rows = rows.filter(|(_, value)| value.is_some_and(|value| (low..=high).contains(&value)));
    let wanted: Vec<i64> = rows.map(|(time, _)| time).collect();
    let range = series.query(Steps(from)..Steps(to));
    let matching = range.filter(column, low..=high);
    let (mut ahead, mut back) = (Vec::<i64>::new(), Vec::<i64>::new());
    matching
        .clone()
        .columns([column])
        .for_each_vector(|vector| {
            ahead.extend_from_slice(vector.times());
        })?;
    matching
        .clone()
        .columns([column])
        .reverse()
        .for_each_vector(|vector| {
            back.extend(vector.times().iter().rev());
        })?;
    back.reverse();
    let count = matching.count()?;
    let right = count == wanted.len() as u64 && ahead == wanted && back == wanted;
    let what = || {
        let (told, wanted) = ((count, ahead.len(), back.len()), wanted.len());
        format!(
            "{told:?} rows of {from}..{to} have column {column} in {low}..={high}, not {wanted}"
        )
    };
    Ok((!right).then(what))
}

/// Queries the rows with a text that contains a pattern; describes the first difference from the model.
fn texts(series: &Series<'_>, known: &Known, rng: &mut Rng) -> Result<Option<String>> {
    let strings = |column: &Column| column.ty == tidalite::ColumnType::String;
    let Some(column) = known.columns.iter().position(strings) else {
        return Ok(None);
    };
    let part = rng.below(10).to_string();
    let says = |row: &[Value]| matches!(&row[column], Value::String(text) if text.contains(&part));
    let rows = known.rows.iter().filter(|(_, row)| says(row));
    let wanted: Vec<i64> = rows.map(|(time, _)| *time).collect();
    let found = series
        .query(..)
        .text_matches(column, |text| text.contains(&part))?;
    let found: Vec<i64> = found.map(|row| Ok(row?.time)).collect::<Result<_>>()?;
    let counts = (found.len(), wanted.len());
    Ok((found != wanted)
        .then(|| format!("texts with {part} in {} rows, not {}", counts.0, counts.1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Relation;
    use crate::workload::Shape;
    use crate::workload::script::{Script, small_steps};
    use std::sync::Arc;
    use tidalite::Durability;
    use tidalite::relation::Cell;
    use tidalite::storage::MemoryStorage;

    #[test]
    fn wrong_answers_are_reported() {
        tidalite_testkit::watch();
        let storage = Arc::new(MemoryStorage::new());
        let db = small_steps().open_storage(storage).unwrap();
        let shape = Shape::default();
        let (script, mut model) = (Script { seed: 3, shape }, Model::default());
        let (mut rng, mut told) = (Rng::new(4), 0);
        let (mut relations, mut told_of_relations) = (0, 0);
        for number in 1..=60 {
            let none = || ();
            model = script
                .step(&db, number, &model, Durability::None, none)
                .unwrap();
            for _ in 0..4 {
                assert_eq!(ask(&db, &model, &mut rng), Ok(()), "transaction {number}");
            }
            // A copy of the model without the last row of each series, so that the queries must find a difference.
            let mut other = model.clone();
            for rows in other.series.values_mut() {
                rows.pop_last();
            }
            for wide in other.wide.values_mut() {
                Arc::make_mut(wide).rows.pop_last();
            }
            told += u64::from(ask(&db, &other, &mut rng).is_err());
            // A copy in which every row of the relations has another name.
            let mut other = model.clone();
            for relation in other.relations.values_mut() {
                let rows = Arc::make_mut(relation).rows.values_mut();
                rows.for_each(|row| row[1] = Cell::from("another"));
            }
            let has_rows = |relation: &Arc<Relation>| !relation.rows.is_empty();
            if other.relations.values().any(has_rows) {
                relations += 1;
                told_of_relations += u64::from(ask(&db, &other, &mut rng).is_err());
            }
        }
        assert!(told > 40, "{told} of 60 wrong answers were told");
        assert!(relations > 30, "{relations} transactions with relations");
        assert!(
            told_of_relations > relations * 2 / 3,
            "{told_of_relations} of {relations} wrong answers of relations were told"
        );
    }
}
