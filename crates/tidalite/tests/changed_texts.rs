//! Changed rows are found by comparing texts by content: writing an equal text again is not a change, wherever the text
//! is stored, and neither is a new column that reads as its default. The reported ranges are compared with the rows of
//! both versions.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::sync::Arc;
use tidalite::maintenance::Change;
use tidalite::storage::{MemoryStorage, Storage};
use tidalite::{
    Column, ColumnType, Database, MergePolicy, Options, ReadTxn, Schema, Steps, Unit, Value,
};
use tidalite_testkit::rng::Rng;

const NAME: &str = "log";
const TIMES: i64 = 60;

type Rows = BTreeMap<i64, Vec<Value>>;

fn open(storage: &Arc<MemoryStorage>) -> Database {
    tidalite_testkit::watch();
    let storage: Arc<dyn Storage> = Arc::<MemoryStorage>::clone(storage);
    Options::new()
        .page_size(1024)
        .open_storage(storage)
        .unwrap()
}

fn columns() -> Vec<Column> {
    vec![
        Column::new("number", ColumnType::F64),
        Column::new("message", ColumnType::String),
        Column::nullable("note", ColumnType::String),
        Column::new("raw", ColumnType::Bytes),
        Column::new("source", ColumnType::Guid),
    ]
}

/// The columns that are added to the series later, one after the other.
fn later() -> Vec<Column> {
    vec![
        Column::new("late message", ColumnType::String),
        Column::nullable("late note", ColumnType::String),
        Column::new("late raw", ColumnType::Bytes),
        Column::new("late source", ColumnType::Guid),
        Column::nullable("late guid", ColumnType::Guid),
        Column::new("late number", ColumnType::I64),
    ]
}

/// The value in a new column of a row that was written before the column was added.
fn default(column: &Column) -> Value {
    match column.ty {
        _ if column.nullable => Value::Null,
        ColumnType::String => "".into(),
        ColumnType::Bytes => Value::Bytes(Vec::new()),
        ColumnType::Guid => Value::Guid([0; 16]),
        ColumnType::F64 => 0.0.into(),
        _ => 0i64.into(),
    }
}

/// A random value of a few, so that rows are often overwritten with equal values. The lengths of texts lie on both
/// sides of the dictionary's maximum.
fn value(rng: &mut Rng, column: &Column) -> Value {
    if rng.one_in(4) {
        return default(column);
    }
    let length = *rng.pick(&[1, 127, 128, 129, 130, 4000]);
    let letter = *rng.pick(b"ab");
    match column.ty {
        ColumnType::String => String::from_utf8(vec![letter; length]).unwrap().into(),
        ColumnType::Bytes => Value::Bytes(vec![letter; length]),
        ColumnType::Guid => Value::Guid([letter; 16]),
        ColumnType::F64 => (*rng.pick(&[0.0, -0.0, 1.5])).into(),
        _ => rng.between(0, 1).into(),
    }
}

/// A snapshot of one version of the database, its expected rows, and its number of columns.
struct Version {
    snap: ReadTxn,
    rows: Rows,
    columns: usize,
}

fn said(version: &Version, all: &[Column], columns: usize) -> BTreeMap<i64, String> {
    let defaults = all[version.columns..columns].iter().map(default);
    let defaults: Vec<Value> = defaults.collect();
    let text = |values: &[Value]| format!("{:?}", [values, &defaults].concat());
    version
        .rows
        .iter()
        .map(|(time, values)| (*time, text(values)))
        .collect()
}

fn compare(new: &Version, old: &Version, all: &[Column], what: &str) {
    let id = new.snap.series(NAME).unwrap().unwrap().info().id;
    let (now, before) = (said(new, all, new.columns), said(old, all, new.columns));
    let mut times: Vec<i64> = now.keys().chain(before.keys()).copied().collect();
    times.sort_unstable();
    times.dedup();
    let differs = |time: &&i64| now.get(time) != before.get(time);
    let expected: Vec<i64> = times.iter().filter(differs).copied().collect();
    let told = |ranges: &[(i64, i64)]| -> Vec<i64> {
        let inside = |time: &&i64| ranges.iter().any(|(from, to)| (from..=to).contains(time));
        times.iter().filter(inside).copied().collect()
    };
    let ranges = new.snap.changed_ranges(&old.snap, id).unwrap();
    assert_eq!(told(&ranges), expected, "{what}: {ranges:?}");
    let mut ranges = Vec::new();
    new.snap
        .diff(&old.snap, &mut |change| {
            if let Change::Rows { from, to, .. } = change {
                ranges.push((from, to));
            }
            Ok(())
        })
        .unwrap();
    assert_eq!(told(&ranges), expected, "{what}: {ranges:?}");
}

#[test]
fn rows_of_equal_text_are_not_reported() {
    for seed in 0..24 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let storage = Arc::new(MemoryStorage::new());
        let mut db = open(&storage);
        let all = [columns(), later()].concat();
        let mut rows = Rows::new();
        let mut many = columns().len();
        let mut versions: Vec<Version> = Vec::new();
        let schema = Schema {
            columns: columns(),
            ..Schema::new(Unit::Nanos, [("number", ColumnType::F64)])
        };
        let mut id = None;
        for round in 0..14 {
            let mut tx = db.begin_write().unwrap();
            let mut series = match id {
                None => tx
                    .open_series(NAME)
                    .schema(&schema)
                    .merge(MergePolicy::Replace)
                    .open()
                    .unwrap(),
                Some(id) => tx.series_by_id(id).unwrap(),
            };
            id = Some(series.id());
            if round > 0 && many < all.len() && rng.one_in(2) {
                series.add_columns(&all[many..=many]).unwrap();
                rows.values_mut()
                    .for_each(|row| row.push(default(&all[many])));
                many += 1;
            }
            if rng.one_in(3) {
                let from = rng.between(0, TIMES);
                let to = from + rng.between(0, 8);
                series.delete(Steps(from)..Steps(to)).unwrap();
                rows.retain(|time, _| !(from..to).contains(time));
            }
            for _ in 0..rng.below(if round == 0 { 400 } else { 40 }) {
                let time = rng.between(0, TIMES);
                // Rewrites an existing row, or writes another one.
                let row = match rows.get(&time) {
                    Some(row) if rng.one_in(2) => row.clone(),
                    _ => all[..many]
                        .iter()
                        .map(|column| value(&mut rng, column))
                        .collect(),
                };
                series.insert_values(Steps(time), &row).unwrap();
                rows.insert(time, row);
            }
            tx.commit().unwrap();
            let new = Version {
                snap: db.begin_read().unwrap(),
                rows: rows.clone(),
                columns: many,
            };
            for old in &versions {
                compare(&new, old, &all, &format!("seed {seed} round {round}"));
            }
            versions.push(new);
            if versions.len() > 4 {
                versions.remove(rng.index(4));
            }
            if rng.one_in(5) {
                // Reopening clears the caches of texts, so that texts are compared as they are stored.
                versions.clear();
                db.close().unwrap();
                db = open(&storage);
                versions.push(Version {
                    snap: db.begin_read().unwrap(),
                    rows: rows.clone(),
                    columns: many,
                });
            }
        }
        assert!(db.check().unwrap().is_clean());
    }
}

/// Writing a row again with an equal text is not a change, and with a longer text it is one. Lengths around the
/// dictionary's maximum cover both ways of storing a text.
#[test]
fn a_text_written_again_is_not_a_change() {
    let db = open(&Arc::new(MemoryStorage::new()));
    let schema = Schema::new(Unit::Nanos, [("message", ColumnType::String)]);
    for length in [0, 1, 127, 128, 129, 130, 40_000] {
        let write = |text: String| {
            let mut tx = db.begin_write().unwrap();
            let mut series = tx.series_with("s", &schema).unwrap();
            let id = series.id();
            series.insert_values(Steps(1), &[text.into()]).unwrap();
            tx.commit().unwrap();
            (db.begin_read().unwrap(), id)
        };
        let (first, id) = write("x".repeat(length));
        let (again, _) = write("x".repeat(length));
        assert_eq!(
            again.changed_ranges(&first, id).unwrap(),
            [],
            "{length} bytes"
        );
        let (other, _) = write("x".repeat(length) + "y");
        assert_eq!(
            other.changed_ranges(&again, id).unwrap(),
            [(1, 1)],
            "{length} bytes"
        );
    }
}
