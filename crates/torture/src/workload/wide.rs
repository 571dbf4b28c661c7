//! Operations on series of several columns: rows with texts and nulls, added columns, changed policies, renames
//! and removal.

use super::names::{TIME_MAX, any_series, keeps_several, value_of};
use super::points::annotate_one;
use super::shape::{Shape, chance};
use crate::model::Model;
use crate::model::wide::{Wide, WideRow, differs, wide_of};
use std::sync::Arc;
use tidalite::{
    Column, ColumnType, Decimal, ErrorKind, MergePolicy, Result, SeriesMut, Steps, Value, WriteTxn,
};
use tidalite_testkit::rng::Rng;

/// Number of different names of series.
pub(crate) const WIDE: u64 = 4;
/// Maximum number of rows of a series; a series with more rows gets no more batches.
const ROWS_MAX: u64 = 1_500;
/// Minimum and maximum number of rows of a batch; a batch may have fewer rows than justify a leaf, or more.
const STRETCH: (i64, i64) = (300, 1_100);
/// Maximum number of rows at one time that single inserts create.
const SAME_TIME_MAX: usize = 60;
/// Minimum and maximum number of columns of a new series.
const BEGIN_WITH: (i64, i64) = (3, 8);
/// Number of different texts that occur often.
const WORDS: u64 = 40;

/// All columns, in the order in which they are added to a series.
fn all_columns() -> Vec<Column> {
    vec![
        Column::nullable("value", ColumnType::F64),
        Column::nullable("text", ColumnType::String),
        Column::new("open", ColumnType::Bool),
        Column::nullable("price", ColumnType::Decimal(2)),
        Column::nullable("raw", ColumnType::Bytes),
        Column::new("small", ColumnType::F32),
        Column::nullable("unit", ColumnType::Guid),
        Column::nullable("count", ColumnType::U64),
        Column::new("note", ColumnType::String),
        Column::new("level", ColumnType::I64),
    ]
}

pub(crate) fn wide_name(i: u64) -> String {
    format!("w{i}{{site=\"s{}\"}}", i % 2)
}

fn any_name(rng: &mut Rng) -> String {
    wide_name(rng.below(WIDE))
}

/// The name of a random existing series of several columns; `None` if there are none.
fn any_there(model: &Model, rng: &mut Rng) -> Option<String> {
    let names: Vec<&String> = model.wide.keys().collect();
    (!names.is_empty()).then(|| (*rng.pick(&names)).clone())
}

/// Performs one random operation on a series of several columns.
pub(crate) fn work(
    tx: &mut WriteTxn,
    next: &mut Model,
    rng: &mut Rng,
    shape: &Shape,
) -> Result<()> {
    match rng.below(18) {
        0 => more_columns(tx, next, rng),
        1 => another_policy(tx, next, rng),
        2 => remove(tx, next, rng),
        3 => rename(tx, next, rng),
        4 => delete(tx, next, rng),
        5 => aside(tx, next, rng),
        6..=8 => late(tx, next, rng),
        _ => append(tx, next, rng, shape),
    }
}

/// Opens the series with this name; a new series gets some of the columns.
fn open<'t, 'm>(
    tx: &'t mut WriteTxn,
    next: &'m mut Model,
    rng: &mut Rng,
    name: &str,
) -> Result<(SeriesMut<'t>, &'m mut Wide)> {
    let wide = next.wide.entry(name.to_owned()).or_insert_with(|| {
        let (least, most) = BEGIN_WITH;
        let mut columns = all_columns();
        columns.truncate(rng.between(least, most) as usize);
        Arc::new(Wide {
            columns,
            merge: *rng.pick(&MergePolicy::ALL),
            rows: Default::default(),
        })
    });
    let series = tx
        .open_series(name)
        .schema(&wide.schema())
        .merge(wide.merge)
        .open()?;
    Ok((series, Arc::make_mut(wide)))
}

fn any<'t, 'm>(
    tx: &'t mut WriteTxn,
    next: &'m mut Model,
    rng: &mut Rng,
) -> Result<(SeriesMut<'t>, &'m mut Wide)> {
    let name = any_name(rng);
    open(tx, next, rng, &name)
}

/// Creates a random text: most are common, some are new, a few are longer than a page.
fn text(rng: &mut Rng, long_one_in: u64) -> String {
    if rng.one_in(long_one_in) {
        let part = format!("a long text, number {} ", rng.u64());
        return part.repeat(1 + rng.index(60));
    }
    match rng.below(5) {
        0 => format!("new {}", rng.u64()),
        1 if rng.one_in(4) => String::new(),
        _ => format!("word {}", rng.below(WORDS)),
    }
}

fn value(column: &Column, rng: &mut Rng, long_one_in: u64) -> Value {
    if column.nullable && rng.one_in(4) {
        return Value::Null;
    }
    match column.ty {
        ColumnType::F32 => (value_of(rng) as f32).into(),
        ColumnType::F64 => Value::F64(match rng.below(60) {
            0 => f64::NAN,
            1 => -0.0,
            _ => value_of(rng),
        }),
        ColumnType::Bool => Value::Bool(rng.one_in(2)),
        ColumnType::Decimal(scale) => Value::Decimal(Decimal {
            units: rng.between(-5_000, 5_000),
            scale,
        }),
        ColumnType::U64 => Value::U64(rng.below(1_000)),
        ColumnType::String => Value::String(text(rng, long_one_in)),
        ColumnType::Bytes => Value::Bytes(text(rng, long_one_in).into_bytes()),
        ColumnType::Guid => {
            let few = if rng.one_in(4) { u64::MAX } else { WORDS };
            Value::Guid(u128::from(rng.below(few)).to_be_bytes())
        }
        _ => Value::I64(rng.between(-100, 100)),
    }
}

fn row(columns: &[Column], rng: &mut Rng, long_one_in: u64) -> WideRow {
    let values = columns.iter();
    values
        .map(|column| value(column, rng, long_one_in))
        .collect()
}

fn insert(series: &mut SeriesMut<'_>, wide: &mut Wide, time: i64, row: WideRow) -> Result<()> {
    let done = series.insert_values(Steps(time), &row);
    wide.inserted(time, row, done)
}

fn append(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng, shape: &Shape) -> Result<()> {
    let (mut series, wide) = any(tx, next, rng)?;
    if chance(rng, shape.bulk_one_in) && wide.count() < ROWS_MAX {
        return stretch(&mut series, wide, rng);
    }
    let last = wide.rows.last_key_value().map_or(0, |(&time, _)| time);
    let (count, step) = (rng.between(1, 12), rng.between(1, 9));
    let start = match last + step * count > TIME_MAX {
        true => rng.between(0, TIME_MAX / 2),
        false => last + step,
    };
    for i in 0..count {
        let row = row(&wide.columns, rng, 20);
        insert(&mut series, wide, start + i * step, row)?;
    }
    // Reads the series inside the transaction, which must see its own writes.
    if rng.one_in(8) {
        let found = Arc::new(wide_of(&series.view()?)?);
        let differs = differs(Some(&Arc::new(wide.clone())), Some(&found));
        assert_eq!(differs, None, "own rows");
    }
    Ok(())
}

/// Inserts hundreds of rows as columns in one call.
fn stretch(series: &mut SeriesMut<'_>, wide: &mut Wide, rng: &mut Rng) -> Result<()> {
    let count = rng.between(STRETCH.0, STRETCH.1);
    let last = wide.rows.last_key_value().map_or(0, |(&time, _)| time);
    // If the policy refuses one row, it refuses the whole batch, so the batch must begin after all existing rows.
    let start = match wide.merge {
        MergePolicy::Error => last + 1,
        _ => rng.between(0, last + 1),
    };
    let times: Vec<i64> = (start..start + count).collect();
    let mut columns = vec![Vec::new(); wide.columns.len()];
    let mut rows = Vec::new();
    for _ in &times {
        let row = row(&wide.columns, rng, 200);
        for (c, value) in row.iter().enumerate() {
            columns[c].push(series.word(c, value)?);
        }
        rows.push(row);
    }
    let columns: Vec<&[u64]> = columns.iter().map(|column| &column[..]).collect();
    series.append_rows(&times, &columns)?;
    for (time, row) in times.into_iter().zip(rows) {
        wide.inserted(time, row, Ok(()))?;
    }
    Ok(())
}

fn late(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
    let (mut series, wide) = any(tx, next, rng)?;
    for _ in 0..rng.below(6) {
        let time = match wide.rows.last_key_value() {
            // Begins at the last times of earlier transactions, to test the order of arrival of rows at one time.
            Some((&last, _)) if keeps_several(wide.merge) => rng.between((last - 3).max(0), last),
            _ => rng.between(0, TIME_MAX),
        };
        let there = wide.rows.get(&time);
        if there.is_some_and(|rows| rows.len() > SAME_TIME_MAX) {
            continue;
        }
        // Half of the rows duplicate an existing row.
        let again = there.filter(|_| rng.one_in(2));
        let again = again.map(|rows| rng.pick(rows).clone());
        let row = again.unwrap_or_else(|| row(&wide.columns, rng, 20));
        insert(&mut series, wide, time, row)?;
    }
    Ok(())
}

fn more_columns(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
    let (mut series, wide) = any(tx, next, rng)?;
    let all = all_columns();
    let to = all.len().min(wide.columns.len() + 1 + rng.index(2));
    let added = &all[wide.columns.len()..to];
    series.add_columns(added)?;
    added.iter().for_each(|column| wide.widen(column.clone()));
    Ok(())
}

fn another_policy(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
    let (mut series, wide) = any(tx, next, rng)?;
    wide.merge = *rng.pick(&MergePolicy::ALL);
    series.set_merge(wide.merge)
}

/// Removes a series of several columns or of points, with its annotations.
fn remove(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
    let (name, there) = if rng.one_in(3) {
        let name = any_series(rng);
        let there = next.series.remove(&name).is_some();
        (name, there)
    } else {
        let name = any_name(rng);
        let there = next.wide.remove(&name).is_some();
        (name, there)
    };
    let was = tx.remove_series(&name)?;
    assert_eq!(was, there, "removing tells whether there was a series");
    next.annotations.retain(|(of, _), _| *of != name);
    Ok(())
}

/// Renames a series to a free name, or tries to rename it to a taken name, which must change nothing.
fn rename(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
    let Some(from) = any_there(next, rng) else {
        return Ok(());
    };
    let to = any_name(rng);
    let id = open(tx, next, rng, &from)?.0.id();
    let done = tx.rename_series(id, &to);
    if to != from && next.wide.contains_key(&to) {
        return match done {
            Err(error) if error.kind() == ErrorKind::InvalidName => Ok(()),
            Ok(()) => panic!("{from} took the name of {to}"),
            Err(error) => Err(error),
        };
    }
    done?;
    if let Some(wide) = next.wide.remove(&from) {
        next.wide.insert(to.clone(), wide);
    }
    let words = std::mem::take(&mut next.annotations).into_iter();
    next.annotations = words
        .map(|((of, key), text)| match of == from {
            true => ((to.clone(), key), text),
            false => ((of, key), text),
        })
        .collect();
    Ok(())
}

fn delete(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
    let (mut series, wide) = any(tx, next, rng)?;
    let from = rng.between(0, TIME_MAX / 2);
    let span = if rng.one_in(4) { TIME_MAX } else { 300 };
    let to = from + rng.between(0, span);
    let before = wide.count();
    wide.rows.retain(|&time, _| time < from || time >= to);
    let removed = series.delete(Steps(from)..Steps(to))?;
    assert_eq!(removed, before - wide.count(), "delete tells how many went");
    Ok(())
}

/// Sets an annotation of a series, or rewrites its leaves in cold form; the rows do not change.
fn aside(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
    let name = any_name(rng);
    let mut series = open(tx, next, rng, &name)?.0;
    if rng.one_in(2) {
        let rows_max = *rng.pick(&[0, 1, u64::MAX]);
        series.rewrite_cold(rng.between(0, 2 * TIME_MAX), rows_max)?;
        return Ok(());
    }
    annotate_one(&mut series, &name, &mut next.annotations, rng)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::wide::same_row;
    use crate::model::{digest_of, model_of};
    use crate::workload::script::small_steps;
    use std::collections::BTreeSet;
    use tidalite::storage::MemoryStorage;

    /// Number of commits in this test.
    const COMMITS: u64 = 300;

    #[test]
    fn rows_equal_the_model_and_every_call_occurs() {
        tidalite_testkit::watch();
        let storage = Arc::new(MemoryStorage::new());
        let db = small_steps().open_storage(storage).unwrap();
        let (mut model, mut rng) = (Model::default(), Rng::new(11));
        let shape = Shape::default();
        let (mut widths, mut policies, mut most) = (BTreeSet::new(), BTreeSet::new(), 0);
        for commit in 0..COMMITS {
            let mut tx = db.begin_write().unwrap();
            for _ in 0..4 {
                work(&mut tx, &mut model, &mut rng, &shape).unwrap();
            }
            tx.commit().unwrap();
            assert_eq!(digest_of(&db).unwrap(), model.digest(), "commit {commit}");
            for wide in model.wide.values() {
                widths.insert(wide.columns.len());
                policies.insert(wide.merge.name());
                most = most.max(wide.count());
            }
            if commit % 50 == 0 {
                let found = model_of(&db.begin_read().unwrap()).unwrap();
                assert_eq!(model.differs(&found), "");
                assert!(db.check().unwrap().is_clean());
            }
        }
        assert_eq!(policies.len(), MergePolicy::ALL.len());
        assert!(widths.contains(&all_columns().len()) && widths.len() > 3);
        assert!(most > 1_000, "{most} rows");
    }

    #[test]
    fn rows_compare_by_their_values() {
        let columns = all_columns();
        let row = row(&columns, &mut Rng::new(1), 20);
        let mut wide = Wide {
            columns,
            merge: MergePolicy::Replace,
            rows: [(1, vec![row])].into(),
        };
        let mut model = Model::default();
        model.wide.insert("w0".to_owned(), Arc::new(wide.clone()));
        let first = model.digest();
        // A change of a text, of the policy or of a time must change the digest.
        let mut digest = |wide: &Wide| {
            model.wide.insert("w0".to_owned(), Arc::new(wide.clone()));
            model.digest()
        };
        let mut other = wide.clone();
        let rows = other.rows.get_mut(&1).unwrap();
        let note = Value::String("another".to_owned());
        let mut values = rows[0].to_vec();
        values[8] = note;
        rows[0] = values.into();
        assert!(!same_row(&rows[0], &wide.rows[&1][0]));
        assert_ne!(digest(&other), first);
        let mut other = wide.clone();
        other.merge = MergePolicy::KeepAll;
        assert_ne!(digest(&other), first);
        let row = wide.rows.remove(&1).unwrap();
        wide.rows.insert(2, row);
        assert_ne!(digest(&wide), first);
    }
}
