//! Columns of every type, with and without nulls, are compared with a plain map: random rows, late rows, overwrites,
//! deletes, reads inside the transaction, reopening.
#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(clippy::print_stdout, reason = "seeds belong in the log of a test")]

use std::collections::BTreeMap;
use std::sync::Arc;
use tidalite::limits::TEXT_BYTES_MAX;
use tidalite::maintenance::Salvage;
use tidalite::query::CandleSize;
use tidalite::retention::{Budget, Retention};
use tidalite::storage::{MemoryStorage, Storage};
use tidalite::{
    Column, ColumnType, Database, Decimal, Direction, ErrorKind, Options, Schema, Series,
    SeriesMut, Steps, Tuning, Unit, Value,
};
use tidalite_codec::ColumnType as WordType;
use tidalite_testkit::Monitor;
use tidalite_testkit::rng::Rng;

type Model = BTreeMap<i64, Vec<Value>>;

/// Whether two values are equal; floats are compared bit by bit.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::F64(a), Value::F64(b)) => a.to_bits() == b.to_bits(),
        (a, b) => a == b,
    }
}

fn every_type() -> Vec<ColumnType> {
    vec![
        ColumnType::F64,
        ColumnType::F32,
        ColumnType::I64,
        ColumnType::U64,
        ColumnType::Bool,
        ColumnType::Decimal(2),
        ColumnType::String,
        ColumnType::Bytes,
        ColumnType::Guid,
    ]
}

/// A schema with two columns of every type: one without nulls, one with nulls.
fn schema() -> Schema {
    let mut schema = Schema::new(Unit::Millis, []);
    for (i, ty) in every_type().into_iter().enumerate() {
        schema = schema
            .with(Column::new(format!("plain-{i}"), ty))
            .with(Column::nullable(format!("null-{i}"), ty));
    }
    schema
}

/// A random value of the column's type. `style` selects how values repeat, so that vectors are encoded differently.
fn a_value(rng: &mut Rng, column: &Column, style: u64, i: i64) -> Value {
    let share = [0, 1, 8, 40][(style % 4) as usize];
    if column.nullable && share > 0 && rng.one_in(share) {
        return Value::Null;
    }
    let value = match (column.ty, rng.below(20)) {
        (ColumnType::F64, 0) => Value::F64(f64::from_bits(rng.u64())),
        (ColumnType::F64, _) => Value::F64((rng.between(-9999, 9999)) as f64 / 100.0),
        (ColumnType::F32, 0) => f32::from_bits(rng.u64() as u32).into(),
        (ColumnType::F32, _) => (rng.between(-9999, 9999) as f32 / 100.0).into(),
        (ColumnType::I64, 0) => Value::I64(rng.u64() as i64),
        (ColumnType::I64, _) => Value::I64(i * 3),
        (ColumnType::U64, 0) => Value::U64(rng.u64()),
        (ColumnType::U64, _) => Value::U64(rng.below(100)),
        (ColumnType::Bool, _) => Value::Bool(rng.one_in(1 + style)),
        (ColumnType::Decimal(scale), _) => Value::Decimal(Decimal {
            units: rng.between(-100_000, 100_000),
            scale,
        }),
        // Some texts repeat, some do not, and some are long.
        (ColumnType::String, 0) => Value::String(format!("{i} is a text ").repeat(9)),
        (ColumnType::String, n) => Value::String(format!("state-{}", n * n % 7)),
        (ColumnType::Bytes, n) => Value::Bytes(i.to_le_bytes()[..(n % 9) as usize].to_vec()),
        (ColumnType::Guid, 0) => Value::Guid([0; 16]),
        (ColumnType::Guid, n) => Value::Guid(u128::from(rng.u64() % (1 << n)).to_be_bytes()),
        other => unreachable!("{other:?}"),
    };
    match column.word(&value) {
        _ if column.ty.is_text() => value,
        Ok(_) => value,
        // The value would be the bit pattern that is reserved for null, so null is used.
        Err(_) => Value::Null,
    }
}

fn a_row(rng: &mut Rng, schema: &Schema, style: u64, i: i64) -> Vec<Value> {
    let columns = schema.columns.iter();
    columns
        .map(|column| a_value(rng, column, style, i))
        .collect()
}

fn change(rng: &mut Rng, series: &mut SeriesMut<'_>, model: &mut Model) {
    let schema = series.info().schema.clone();
    let style = rng.below(5);
    let last = model.last_key_value().map_or(0, |(&time, _)| time);
    match rng.below(10) {
        0..=4 => {
            let rows = *rng.pick(&[3, 100, 1500, 3000]);
            for i in 1..=rows {
                let row = a_row(rng, &schema, style, i);
                series.insert_values(Steps(last + i * 10), &row).unwrap();
                model.insert(last + i * 10, row);
            }
        }
        5..=7 => {
            for _ in 0..rng.below(60) {
                let time = rng.between(-50, last + 50);
                let row = a_row(rng, &schema, style, time);
                series.insert_values(Steps(time), &row).unwrap();
                model.insert(time, row);
            }
        }
        _ => {
            let from = rng.between(0, last + 1);
            let to = from + rng.between(0, last / 4 + 10);
            let removed = series.delete(Steps(from)..=Steps(to)).unwrap();
            let before = model.len();
            model.retain(|&time, _| !(from..=to).contains(&time));
            assert_eq!(removed, (before - model.len()) as u64);
        }
    }
}

/// Adds a column; existing rows read null in it, or zero if the column is not nullable.
fn add_columns(rng: &mut Rng, series: &mut SeriesMut<'_>, model: &mut Model) {
    let number = series.info().schema.columns.len();
    let ty = *rng.pick(&every_type());
    let column = Column {
        nullable: rng.one_in(2),
        ..Column::new(format!("added-{number}"), ty)
    };
    let old = match (column.nullable, ty) {
        (true, _) => Value::Null,
        (_, ColumnType::String) => Value::String(String::new()),
        (_, ColumnType::Bytes) => Value::Bytes(Vec::new()),
        (_, ColumnType::Guid) => Value::Guid([0; 16]),
        _ => column.value(0),
    };
    series.add_columns(&[column]).unwrap();
    for row in model.values_mut() {
        row.push(old.clone());
    }
}

fn compare(rng: &mut Rng, series: &Series<'_>, model: &Model) {
    let columns = &series.info().schema.columns;
    let mut cursor = series.cursor();
    let mut row = cursor.first().unwrap();
    for (&time, expected) in model {
        let found = row.unwrap_or_else(|| panic!("no row at {time}"));
        assert_eq!(found.time, time);
        let values = series.values(&found).unwrap();
        for ((found, expected), column) in values.iter().zip(expected).zip(columns) {
            assert!(
                same(found, expected),
                "{} at {time}: {found:?} {expected:?}",
                column.name
            );
        }
        row = cursor.next().unwrap();
    }
    assert!(row.is_none());
    let mut row = cursor.last().unwrap();
    for (&time, expected) in model.iter().rev() {
        let found = row.unwrap_or_else(|| panic!("no row at {time}, backwards"));
        assert_eq!(found.time, time);
        let values = series.values(&found).unwrap();
        assert!(values.iter().zip(expected).all(|(a, b)| same(a, b)));
        row = cursor.previous().unwrap();
    }
    assert!(row.is_none());
    let latest = series.latest().unwrap();
    assert_eq!(
        latest.map(|row| row.time),
        model.last_key_value().map(|(&time, _)| time)
    );

    let last = model.last_key_value().map_or(0, |(&time, _)| time);
    for _ in 0..4 {
        let (a, b) = (rng.between(-60, last + 60), rng.between(-60, last + 60));
        let (from, to) = (a.min(b), a.max(b));
        let rows: Vec<_> = model.range(from..=to).collect();
        let range = series.query(Steps(from)..=Steps(to));
        assert_eq!(range.count().unwrap(), rows.len() as u64);
        let c = rng.index(columns.len());
        let column = &columns[c];
        backward(series, &range, c, &rows);
        candles(&range, column, c, &rows);
        if column.ty.is_text() {
            let mut at = 0;
            range
                .clone()
                .columns([c])
                .for_each_vector(|vector| {
                    for &word in vector.words(c) {
                        assert_eq!(series.value(c, word).unwrap(), rows[at].1[c]);
                        at += 1;
                    }
                })
                .unwrap();
            assert_eq!(at, rows.len());
            assert_aggregate(&range.aggregate(c).unwrap(), column, c, &rows);
            figures_alone(
                &range,
                c,
                &range.windows((Steps(997), Steps(13)), c).unwrap(),
            );
            continue;
        }
        let words = |row: &Vec<Value>| column.word(&row[c]).unwrap();
        // The vectors contain only the requested column.
        let mut read = Vec::new();
        range
            .clone()
            .columns([c])
            .for_each_vector(|vector| {
                read.extend_from_slice(vector.words(c));
                assert!(vector.words((c + 1) % columns.len()).is_empty());
            })
            .unwrap();
        let expected: Vec<u64> = rows.iter().map(|(_, row)| words(row)).collect();
        assert_eq!(read, expected);
        assert_aggregate(&range.aggregate(c).unwrap(), column, c, &rows);
        let windows = range.windows((Steps(997), Steps(13)), c).unwrap();
        figures_alone(&range, c, &windows);
        let mut at = 0;
        for window in &windows {
            let held = rows[at..].partition_point(|(time, _)| **time <= window.last);
            assert!(held > 0);
            assert_aggregate(&window.aggregate, column, c, &rows[at..at + held]);
            at += held;
        }
        assert_eq!(at, rows.len());
        if column.f64(0).is_some() {
            let (low, high) = (rng.between(-500, 500), rng.between(-500, 2000));
            let (low, high) = (low as f64 / 10.0, high as f64 / 10.0);
            let wanted = |value: f64| low <= value && value <= high;
            let expected: Vec<i64> = rows
                .iter()
                .filter(|(_, row)| column.f64(words(row)).is_some_and(wanted))
                .map(|(time, _)| **time)
                .collect();
            for direction in [Direction::Forward, Direction::Backward] {
                let mut found = Vec::new();
                let query = range.clone().filter(c, low..=high);
                let query = match direction {
                    Direction::Forward => query,
                    Direction::Backward => query.reverse(),
                };
                query
                    .columns([c])
                    .for_each_vector(|vector| {
                        found.push(vector.times().to_vec());
                    })
                    .unwrap();
                // Rows within a vector ascend in both directions.
                if direction == Direction::Backward {
                    found.reverse();
                }
                assert_eq!(
                    found.concat(),
                    expected,
                    "{} in {low} to {high}",
                    column.name
                );
            }
        }
    }
}

/// Checks reading the rows of an interval from the last to the first: by vectors, and the last rows also by a cursor.
fn backward(
    series: &Series<'_>,
    range: &tidalite::Query<'_>,
    c: usize,
    rows: &[(&i64, &Vec<Value>)],
) {
    let mut at = rows.len();
    let told = range.clone().reverse().for_each_vector(|vector| {
        let words = vector.times().iter().zip(vector.words(c));
        for (&time, &word) in words.rev() {
            at -= 1;
            let found = series.value(c, word).unwrap();
            assert_eq!(time, *rows[at].0);
            assert!(same(&found, &rows[at].1[c]), "at {time}: {found:?}");
        }
    });
    assert_eq!((told.unwrap(), at), (rows.len() as u64, 0));
    let Some((last, _)) = rows.last() else { return };
    let mut cursor = series.cursor();
    let mut row = cursor.search(Steps(**last)).unwrap();
    for (time, expected) in rows.iter().rev().take(50) {
        let found = row.expect("a row before it");
        assert_eq!(found.time, **time);
        let value = series.value(c, found.words[c]).unwrap();
        assert!(same(&value, &expected[c]), "at {time}: {value:?}");
        row = cursor.previous().unwrap();
    }
}

/// Checks for every size of candles that they contain all rows of an interval, and that each contains the rows between
/// its first and last time.
fn candles(range: &tidalite::Query<'_>, column: &Column, c: usize, rows: &[(&i64, &Vec<Value>)]) {
    for size in [
        CandleSize::Level(0),
        CandleSize::Level(1),
        CandleSize::Width(700),
        CandleSize::Width(50_000),
    ] {
        let mut rest = rows;
        for candle in range.candles(size, c).unwrap() {
            let held = rest.partition_point(|(time, _)| **time <= candle.last_time);
            let (own, behind) = rest.split_at(held);
            let ends = own.first().zip(own.last());
            let ends = ends.map(|(first, last)| (*first.0, *last.0));
            assert_eq!(
                ends,
                Some((candle.first_time, candle.last_time)),
                "{size:?}"
            );
            assert_aggregate(&candle.aggregate, column, c, own);
            rest = behind;
        }
        assert!(
            rest.is_empty(),
            "{size:?}: {} rows in no candle",
            rest.len()
        );
    }
}

/// Checks that single figures and pairs of figures equal the figures of whole aggregates, bit by bit.
fn figures_alone(range: &tidalite::Query<'_>, c: usize, windows: &[tidalite::Window]) {
    use tidalite::Figure::{Count, First, Last, Max, Mean, Min, Stddev, Sum};
    let bits = |value: Option<f64>| value.map(f64::to_bits);
    let whole = range.aggregate(c).unwrap();
    let all = [Count, Sum, Mean, Stddev, Min, Max, First, Last];
    for (one, other) in all
        .into_iter()
        .zip([Max, Min, Last, Count, Sum, Mean, First, Stddev])
    {
        let alone = range.clone().figures(one);
        assert_eq!(bits(alone.aggregate(c).unwrap()), bits(one.of(&whole)));
        let found = alone.windows((Steps(997), Steps(13)), c).unwrap();
        let both = range
            .clone()
            .figures([one, other])
            .windows((Steps(997), Steps(13)), c)
            .unwrap();
        assert_eq!((found.len(), both.len()), (windows.len(), windows.len()));
        for ((alone, both), window) in found.iter().zip(&both).zip(windows) {
            let expected = [one, other].map(|figure| bits(figure.of(&window.aggregate)));
            assert_eq!(bits(alone.aggregate), expected[0], "{one:?}");
            assert_eq!(both.aggregate.map(bits), expected, "{one:?} and {other:?}");
        }
    }
}

fn assert_aggregate(
    found: &tidalite::Aggregate,
    column: &Column,
    c: usize,
    rows: &[(&i64, &Vec<Value>)],
) {
    let own = |row: &Vec<Value>| match column.ty.is_text() {
        true => 0,
        false => column.word(&row[c]).unwrap(),
    };
    let nulls = rows.iter().filter(|(_, row)| row[c] == Value::Null).count();
    assert_eq!(
        found.count(),
        (rows.len() - nulls) as u64,
        "{}",
        column.name
    );
    assert_eq!(found.null_count(), nulls as u64);
    let numbers = rows.iter().filter_map(|(time, row)| {
        let x = column.f64(own(row)).filter(|x| !x.is_nan())?;
        Some((x, **time))
    });
    let numbers: Vec<(f64, i64)> = numbers.collect();
    let nan = rows.len() - nulls - numbers.len();
    if column.f64(0).is_none() {
        assert_eq!((found.min(), found.max(), found.mean()), (None, None, None));
        return;
    }
    assert_eq!(found.nan_count(), nan as u64);
    let min = numbers
        .iter()
        .copied()
        .min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let max = numbers
        .iter()
        .copied()
        .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
    // Several integers may map to one float. The extreme then has the time of the exact integer.
    assert_eq!(
        found.min().map(|m| m.0),
        min.map(|m| m.0),
        "{}",
        column.name
    );
    assert_eq!(
        found.max().map(|m| m.0),
        max.map(|m| m.0),
        "{}",
        column.name
    );
    let sum: f64 = numbers.iter().map(|n| n.0).sum();
    let size: f64 = numbers.iter().map(|n| n.0.abs()).sum();
    let near = |a: f64, b: f64| a == b || !size.is_finite() || (a - b).abs() <= size * 1e-9;
    assert!(
        near(found.sum(), sum),
        "{}: {} {sum}",
        column.name,
        found.sum()
    );
    assert_eq!(found.mean().is_some(), !numbers.is_empty());
    let end = |row: Option<&(&i64, &Vec<Value>)>| row.and_then(|(_, row)| column.f64(own(row)));
    for (found, expected) in [
        (found.first(), end(rows.first())),
        (found.last(), end(rows.last())),
    ] {
        assert_eq!(found.map(f64::to_bits), expected.map(f64::to_bits));
    }
}

fn open(storage: &Arc<MemoryStorage>, options: &Options) -> Database {
    tidalite_testkit::watch();
    options
        .open_storage(Monitor::new(Arc::clone(storage) as Arc<dyn Storage>))
        .unwrap()
}

fn assert_clean(db: &Database) {
    let report = db.check().unwrap();
    assert!(report.is_clean(), "{:#?}", report.problems);
}

fn run(seed: u64, options: &Options, transactions: usize) {
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    let storage = Arc::new(MemoryStorage::new());
    let mut db = open(&storage, options);
    let mut model = Model::new();
    for _ in 0..transactions {
        let before = model.clone();
        let snap = db.begin_read().unwrap();
        let stored = snap.series("all").unwrap();
        let stored = stored.map_or_else(schema, |series| series.info().schema.clone());
        drop(snap);
        let mut tx = db.begin_write().unwrap();
        let mut series = tx
            .open_series("all")
            .schema(&stored)
            .add_columns()
            .open()
            .unwrap();
        for _ in 0..1 + rng.below(3) {
            change(&mut rng, &mut series, &mut model);
            if rng.one_in(4) && series.info().schema.columns.len() < 40 {
                add_columns(&mut rng, &mut series, &mut model);
            }
        }
        if rng.one_in(3) {
            compare(&mut rng, &series.view().unwrap(), &model);
        }
        if rng.one_in(6) {
            drop(tx);
            model = before;
        } else {
            tx.commit().unwrap();
        }
        let snap = db.begin_read().unwrap();
        if let Some(series) = snap.series("all").unwrap() {
            compare(&mut rng, &series, &model);
        }
        drop(snap);
        if rng.one_in(5) {
            drop(db);
            db = open(&storage, options);
        }
    }
    assert_clean(&db);
    let folder = std::env::temp_dir().join(format!("tidalite-types-{}-{seed}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let copy = folder.join("copy.tdl");
    db.begin_read().unwrap().copy().to(&copy).unwrap();
    {
        let copy = Database::open(&copy).unwrap();
        assert_clean(&copy);
        let snap = copy.begin_read().unwrap();
        if let Some(series) = snap.series("all").unwrap() {
            compare(&mut rng, &series, &model);
        }
    }
    // A salvage of an undamaged file recovers everything.
    let saved = open(&Arc::new(MemoryStorage::new()), options);
    drop(db);
    let report = Salvage::of_storage(storage).to_database(&saved).unwrap();
    assert!(report.is_complete(), "{:?}", report.lost);
    assert_clean(&saved);
    let snap = saved.begin_read().unwrap();
    if let Some(series) = snap.series("all").unwrap() {
        compare(&mut rng, &series, &model);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn random_rows_of_every_type_equal_a_map() {
    for seed in 0..3 {
        run(seed, &Options::new(), 12);
    }
}

#[test]
fn random_rows_of_every_type_with_small_pages_and_little_staging() {
    for seed in 100..102 {
        let options = Options::new()
            .page_size(1024)
            .tuning(Tuning::new().write_buffer_bytes(20_000));
        run(seed, &options, 10);
    }
}

#[test]
fn values_of_a_wrong_type_are_refused_without_effect() {
    let db = open(&Arc::new(MemoryStorage::new()), &Options::new());
    let mut tx = db.begin_write().unwrap();
    let schema = Schema::new(Unit::Nanos, [("a", ColumnType::I64)])
        .with(Column::nullable("b", ColumnType::I64));
    let mut series = tx.series_with("x", &schema).unwrap();
    let refused = |series: &mut SeriesMut<'_>, values: &[Value]| {
        let error = series.insert_values(Steps(1), values).unwrap_err();
        assert!(error.kind() == ErrorKind::Schema, "{error}");
    };
    refused(&mut series, &[Value::I64(1)]);
    refused(&mut series, &[Value::Null, Value::Null]);
    refused(&mut series, &[Value::F64(1.0), Value::Null]);
    refused(&mut series, &[Value::I64(1), Value::I64(i64::MIN)]);
    assert_eq!(series.view().unwrap().count().unwrap(), 0);
    // A caller that writes words can store this pattern, which then means null.
    series
        .insert_values(Steps(2), &[Value::I64(i64::MIN), Value::Null])
        .unwrap();
    series
        .insert_row(Steps(3), &[1 << 63, WordType::NullI64.null().unwrap()])
        .unwrap();
    let view = series.view().unwrap();
    let first = view.at(Steps(2)).unwrap().unwrap();
    let second = view.at(Steps(3)).unwrap().unwrap();
    assert_eq!(first.words, second.words);
    assert_eq!(
        view.values(&first).unwrap(),
        [Value::I64(i64::MIN), Value::Null]
    );
}

/// A nullable column without a null takes no more bytes than a column that is not nullable, and a column of nulls takes
/// hardly any.
#[test]
fn nulls_that_are_not_there_cost_nothing() {
    let bytes = |nullable: bool, value: fn(i64) -> Value| {
        let db = open(&Arc::new(MemoryStorage::new()), &Options::new());
        let column = Column {
            nullable,
            ..Column::new("x", ColumnType::Decimal(2))
        };
        let mut tx = db.begin_write().unwrap();
        let schema = Schema::new(Unit::Seconds, []).with(column);
        let mut series = tx.series_with("x", &schema).unwrap();
        for i in 0..50_000 {
            series.insert_values(Steps(i), &[value(i)]).unwrap();
        }
        tx.commit().unwrap();
        let snap = db.begin_read().unwrap();
        snap.series("x").unwrap().unwrap().stored_bytes()
    };
    let walk = |i: i64| {
        let (units, scale) = (i * i % 1000, 2);
        Value::Decimal(Decimal { units, scale })
    };
    assert_eq!(bytes(false, walk), bytes(true, walk));
    assert!(bytes(true, |_| Value::Null) < 1000);
    let half = |i: i64| {
        if i % 2 == 0 {
            Value::Null
        } else {
            Value::I64(7)
        }
    };
    // The bound allows one bit per row, and an entry in the directory for each vector.
    assert!(bytes(true, half) < 50_000 / 8 + 50 * 170 + 2000);
}

fn texts() -> Schema {
    Schema::new(Unit::Nanos, [("text", ColumnType::String)])
        .with(Column::nullable("bytes", ColumnType::Bytes))
}

#[test]
fn texts_hold_at_their_limit_and_not_one_beyond() {
    let db = open(&Arc::new(MemoryStorage::new()), &Options::new());
    let mut tx = db.begin_write().unwrap();
    let mut series = tx.series_with("x", &texts()).unwrap();
    let long = "x".repeat(TEXT_BYTES_MAX);
    for (time, length) in [0, 1, 127, 128, 129, 40_000, TEXT_BYTES_MAX]
        .into_iter()
        .enumerate()
    {
        let bytes = vec![7u8; length];
        let values = [Value::from(&long[..length]), bytes.into()];
        series.insert_values(Steps(time as i64), &values).unwrap();
    }
    let beyond = [Value::String(format!("{long}x")), Value::Null];
    let refused = series.insert_values(Steps(9), &beyond).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Limit);
    let beyond = [Value::from("x"), Value::Bytes(vec![7; TEXT_BYTES_MAX + 1])];
    let refused = series.insert_values(Steps(9), &beyond).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Limit);
    let most = TEXT_BYTES_MAX as u64;
    assert_eq!(refused.limit(), Some((most + 1, most)));
    // Words that refer to no text are refused, so that no row has a dangling reference.
    for word in [1000, (1 << 62) + 99] {
        assert!(series.insert_row(Steps(9), &[word, u64::MAX]).is_err());
        assert!(series.append_rows(&[9], &[&[word], &[u64::MAX]]).is_err());
    }
    tx.commit().unwrap();
    assert_clean(&db);
    let snap = db.begin_read().unwrap();
    let series = snap.series("x").unwrap().unwrap();
    let last = series.latest().unwrap().unwrap();
    assert_eq!(last.time, 6);
    let values = series.values(&last).unwrap();
    assert_eq!(values[0], Value::String(long));
    assert_eq!(values[1], Value::Bytes(vec![7; TEXT_BYTES_MAX]));
    let whole = series.query(..).aggregate(0).unwrap();
    assert_eq!((whole.count(), whole.min(), whole.mean()), (7, None, None));
    assert!(series.query(..).filter(0, ..).count().is_err());
}

/// A repeated text takes the bytes of its number, other texts take their compressed size, and deleting rows frees the
/// texts that only they used.
#[test]
fn texts_take_their_length_and_are_removed_with_their_rows() {
    let storage = Arc::new(MemoryStorage::new());
    let db = open(&storage, &Options::new());
    let used = || {
        let weights = db.weights().unwrap();
        let of = |what: &str| {
            let own = weights.iter().filter(|weight| weight.what.contains(what));
            own.map(|weight| weight.pages * 4096).sum::<u64>()
        };
        of("texts")
    };
    let mut tx = db.begin_write().unwrap();
    let mut series = tx.series_with("log", &texts()).unwrap();
    for i in 0..20_000i64 {
        let state = ["running", "stopped", "failed"][(i % 3) as usize];
        series
            .insert_values(Steps(i), &[state.into(), Value::Null])
            .unwrap();
    }
    tx.commit().unwrap();
    assert!(used() <= 2 * 4096, "{}", used());
    let mut tx = db.begin_write().unwrap();
    let mut series = tx.series("log").unwrap();
    for i in 20_000..60_000i64 {
        let line = format!(
            "request {i} from 10.0.{}.{} took {} us",
            i % 256,
            i % 7,
            i * 37 % 9999
        );
        series
            .insert_values(Steps(i), &[line.into(), Value::Null])
            .unwrap();
    }
    tx.commit().unwrap();
    let full = used();
    println!("{full} bytes for 40,000 lines of 40 bytes");
    assert!(full < 40_000 * 30, "{full}");
    for cut in [30_000, 45_000, 59_999] {
        let mut tx = db.begin_write().unwrap();
        tx.series("log").unwrap().delete(..Steps(cut)).unwrap();
        tx.commit().unwrap();
        assert_clean(&db);
    }
    // The dictionary of 4096 texts with its lookup entries, and the last block, remain.
    assert!(
        used() < full / 2 && used() < 800_000,
        "{} of {full}",
        used()
    );
    let snap = db.begin_read().unwrap();
    let series = snap.series("log").unwrap().unwrap();
    let last = series.latest().unwrap().unwrap();
    let text = format!("{:?}", series.values(&last).unwrap()[0]);
    assert!(text.contains("request 59999"), "{text}");
    drop(snap);
    let mut tx = db.begin_write().unwrap();
    assert!(tx.remove_series("log").unwrap());
    tx.commit().unwrap();
    assert_clean(&db);
    assert_eq!(used(), 0);
}

/// Many small transactions extend the last block of texts, and no number is assigned twice, even after rollbacks.
#[test]
fn texts_of_small_commits_and_savepoints() {
    let db = open(&Arc::new(MemoryStorage::new()), &Options::new());
    let long = |i: i64| Value::String(format!("{i:0>200}"));
    for i in 0..100 {
        let mut tx = db.begin_write().unwrap();
        let mut series = tx.series_with("x", &texts()).unwrap();
        series
            .insert_values(Steps(i), &[long(i), Value::Null])
            .unwrap();
        if i % 9 == 4 {
            let savepoint = tx.savepoint().unwrap();
            let mut series = tx.series("x").unwrap();
            series
                .insert_values(
                    Steps(i),
                    &[long(-7), long(-8).to_string().into_bytes().into()],
                )
                .unwrap();
            tx.rollback_to(&savepoint).unwrap();
        }
        if i % 5 == 3 && i > 3 {
            let all = tx.series("x").unwrap().delete(..Steps(i - 3)).unwrap();
            assert!(all > 0);
        }
        tx.commit().unwrap();
    }
    assert_clean(&db);
    let snap = db.begin_read().unwrap();
    let series = snap.series("x").unwrap().unwrap();
    let mut cursor = series.cursor();
    let mut row = cursor.first().unwrap();
    let mut rows = 0;
    while let Some(found) = row {
        assert_eq!(
            series.values(&found).unwrap(),
            [long(found.time), Value::Null]
        );
        rows += 1;
        row = cursor.next().unwrap();
    }
    assert_eq!(rows, 100 - 95);
}

/// A cap in bytes counts texts, too: old rows are removed, and no more than necessary.
#[test]
fn a_cap_in_bytes_counts_texts() {
    let db = open(&Arc::new(MemoryStorage::new()), &Options::new());
    let mut tx = db.begin_write().unwrap();
    let cap = 2 << 20;
    let policy = Retention {
        pattern: "log".to_owned(),
        bytes: Some(cap),
        ..Retention::default()
    };
    tx.set_retention("cap", &policy).unwrap();
    tx.commit().unwrap();
    let mut rng = Rng::new(5);
    let mut times = 0i64;
    for _ in 0..30 {
        let mut tx = db.begin_write().unwrap();
        let mut series = tx.series_with("log", &texts()).unwrap();
        for _ in 0..1000 {
            times += 1_000_000_000;
            let bytes: Vec<u8> = (0..200).map(|_| rng.u64() as u8).collect();
            series
                .insert_values(Steps(times), &["x".into(), bytes.into()])
                .unwrap();
        }
        tx.commit().unwrap();
        db.maintain(&Budget::default()).unwrap();
    }
    assert_clean(&db);
    let weights = db.weights().unwrap();
    let texts = weights.iter().find(|weight| weight.what.contains("texts"));
    let bytes = texts.map_or(0, |weight| weight.pages * 4096);
    // The margin is needed because blocks take whole pages. The texts are too long for the dictionary.
    assert!(bytes < cap / 4 * 5, "{bytes} bytes of texts under {cap}");
    let snap = db.begin_read().unwrap();
    let rows = snap.series("log").unwrap().unwrap().count().unwrap();
    assert!(rows > cap / 200 / 2, "{rows} rows are left");
}
