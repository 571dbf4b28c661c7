//! Files with series: all column types and encodings, a tree of several levels, leaves in cold form, the delta.

use super::tables::noise;
use super::{Made, make, small, small_tuning};
use tidalite::{
    Column, ColumnType, Database, Decimal, MergePolicy, Schema, Steps, Unit, Value, WriteTxn,
};

/// A schema with all column types, with and without nulls.
fn all_types() -> Schema {
    let types = [
        ColumnType::F64,
        ColumnType::I64,
        ColumnType::U64,
        ColumnType::F32,
        ColumnType::Bool,
        ColumnType::Decimal(3),
        ColumnType::String,
        ColumnType::Bytes,
        ColumnType::Guid,
    ];
    let mut schema = Schema::new(Unit::Millis, []);
    for ty in types {
        schema = schema
            .with(Column::new(ty.name(), ty))
            .with(Column::nullable(format!("{} or null", ty.name()), ty));
    }
    schema
}

fn value(ty: ColumnType, i: i64) -> Value {
    let bytes = noise(i as u64 % 7, 3 + i as usize % 5);
    match ty {
        ColumnType::F64 => Value::F64((i * i % 1000) as f64 / 100.0),
        ColumnType::I64 => Value::I64(i * i - 5000),
        ColumnType::U64 => Value::U64(u64::MAX / 2 + i as u64),
        ColumnType::F32 => Value::from((i as f32).sqrt()),
        ColumnType::Bool => Value::Bool(i % 3 == 0),
        ColumnType::Decimal(scale) => Value::Decimal(Decimal {
            units: i * 25 - 400,
            scale,
        }),
        ColumnType::String => Value::String(format!("text {}", i % 9)),
        ColumnType::Bytes => Value::Bytes(bytes),
        _ => {
            let mut guid = [0; 16];
            guid.copy_from_slice(&noise(i as u64 % 4, 16));
            Value::Guid(guid)
        }
    }
}

/// The float of row `i`; a writer chooses a different encoding for each `form`.
fn float(form: usize, i: usize, random: u64) -> f64 {
    let x = i as f64;
    let bits = random >> 12;
    match form {
        0 => 5.25,
        1 => f64::from_bits(random & !(0x7ff << 52) | 0x3ff << 52 | (random >> 3 & 0xff) << 52),
        2 => (20_000 + random % 900) as f64 / 100.0,
        3 => (1_000_000 + 37 * i as u64 + random % 3) as f64 / 1000.0,
        4 => x * 0.25 + (random % 16) as f64 / 4.0,
        5 => (x / 40.0).sin(),
        6 => [1.5, -2.5e10, 3.25e-7, 0.1, 7.7][random as usize % 5],
        7 => [1.5, -2.5e10, 3.25e-7][i / 100 % 3],
        8 => f64::from((x / 17.0).cos() as f32),
        9 => [f64::NAN, f64::INFINITY, -0.0, 0.0, 1.0e300, -1.0e300][random as usize % 6],
        10 if i % 97 == 13 => 1.0 / (x + 3.0),
        10 => (random % 100) as f64 / 10.0,
        11 => 3.0e8 + bits as f64 / 4.5e15,
        _ => (random % 1000) as f64 / 7.0,
    }
}

const FLOAT_FORMS: usize = 13;

/// The signed integer of row `i`; a writer chooses a different encoding for each `form`.
fn integer(form: usize, i: usize, random: u64) -> i64 {
    let i = i as i64;
    match form {
        0 => -7,
        1 => random.cast_signed(),
        2 => 1_000_000 + (random % 50).cast_signed() * 1000,
        3 => i * 300 + (random % 9).cast_signed(),
        4 => [i64::MIN, 5, i64::MAX][random as usize % 3],
        5 => i / 150,
        _ if i % 50 == 7 => random.cast_signed() >> 8,
        _ => (random % 30).cast_signed(),
    }
}

const INTEGER_FORMS: usize = 7;

fn numbers(seed: u64, count: usize) -> Vec<u64> {
    let bytes = noise(seed, 8 * count);
    let words = bytes.chunks_exact(8);
    words
        .map(|word| word.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)))
        .collect()
}

/// Creates times that are near a line, on a line, or neither, depending on `form`.
fn times(form: usize, count: usize) -> Vec<i64> {
    let random = numbers(form as u64 + 50, count);
    let mut now = 1_700_000_000_000;
    let times = random.into_iter().enumerate().map(|(i, random)| {
        now += 1 + (random % 100_000).cast_signed();
        match form {
            0 => 1000 * i as i64 - 4000,
            1 => 60_000 * i as i64 + (random % 50).cast_signed(),
            _ => now,
        }
    });
    times.collect()
}

pub(crate) fn types() -> Made {
    make(&small(512), |db| {
        let mut tx = db.begin_write().unwrap();
        let schema = all_types();
        let mut series = tx.series_with("types", &schema).unwrap();
        for i in 0..60 {
            let cells = schema.columns.iter().enumerate().map(|(number, column)| {
                match (i + number as i64) % 4 {
                    0 if column.nullable => Value::Null,
                    _ => value(column.ty, i),
                }
            });
            let cells: Vec<Value> = cells.collect();
            series.insert_values(Steps(i * 1000), &cells).unwrap();
        }
        tx.commit().unwrap();

        // Adds columns to a series that already has rows in leaves.
        let mut tx = db.begin_write().unwrap();
        let mut series = tx.series_with("grown", &Schema::point()).unwrap();
        append(&mut series, 0, 1500, |_, i, random| {
            float(2, i, random).to_bits()
        });
        let added = [
            Column::new("added", ColumnType::I64),
            Column::nullable("added or null", ColumnType::F64),
        ];
        series.add_columns(&added).unwrap();
        series
            .insert_values(
                Steps(i64::MAX / 4),
                &[Value::I64(1), Value::F64(2.5), Value::I64(3), Value::Null],
            )
            .unwrap();
        tx.commit().unwrap();

        encodings(db);
    })
}

fn append(
    series: &mut tidalite::SeriesMut<'_>,
    form: usize,
    count: usize,
    word: impl Fn(usize, usize, u64) -> u64,
) {
    let columns = series.info().schema.columns.len();
    let columns: Vec<Vec<u64>> = (0..columns)
        .map(|column| {
            let random = numbers(column as u64 + 1, count).into_iter().enumerate();
            random.map(|(i, random)| word(column, i, random)).collect()
        })
        .collect();
    let columns: Vec<&[u64]> = columns.iter().map(Vec::as_slice).collect();
    series.append_rows(&times(form, count), &columns).unwrap();
}

/// Creates series whose columns need every encoding.
fn encodings(db: &Database) {
    let mut tx = db.begin_write().unwrap();
    for (form, count) in [(0, 1024), (1, 1100), (2, 300)] {
        let name = |kind: &str, column: usize| format!("{kind} {column}");
        let mut floats = Schema::new(Unit::Millis, []);
        for column in 0..FLOAT_FORMS {
            floats = floats.with(Column::new(name("float", column), ColumnType::F64));
        }
        let mut series = tx.series_with(&format!("floats.{form}"), &floats).unwrap();
        append(&mut series, form, count, |column, i, random| {
            float(column, i, random).to_bits()
        });
        let mut integers = Schema::new(Unit::Millis, []);
        for column in 0..INTEGER_FORMS {
            integers = integers.with(Column::new(name("integer", column), ColumnType::I64));
        }
        let mut series = tx
            .series_with(&format!("integers.{form}"), &integers)
            .unwrap();
        append(&mut series, form, count, |column, i, random| {
            integer(column, i, random).cast_unsigned()
        });
    }
    tx.commit().unwrap();
}

/// A file with a tree of two levels of nodes, leaves in cold form, and deleted rows.
pub(crate) fn tree() -> Made {
    let tuning = small_tuning(512).leaf_vectors(1);
    make(&small(512).tuning(tuning), |db| {
        let constant = Schema::new(Unit::Seconds, [("value", ColumnType::F64)]);
        let mut tx = db.begin_write().unwrap();
        let mut series = tx.series_with("steps", &constant).unwrap();
        let times: Vec<i64> = (0..76 * 1024).collect();
        let words = vec![2.5_f64.to_bits(); times.len()];
        series.append_rows(&times, &[&words]).unwrap();
        tx.commit().unwrap();

        let two = Schema::new(
            Unit::Millis,
            [("level", ColumnType::F64), ("count", ColumnType::U64)],
        );
        let mut tx = db.begin_write().unwrap();
        let mut series = tx.series_with("cold", &two).unwrap();
        append(&mut series, 2, 4000, |column, i, random| match column {
            0 => ((i as f64 / 90.0).sin() * 1000.0).round().to_bits(),
            _ => random % 1000,
        });
        tx.commit().unwrap();
        let mut tx = db.begin_write().unwrap();
        let mut series = tx.series_with("cold", &two).unwrap();
        series.rewrite_cold(i64::MAX, 3000).unwrap();
        tx.commit().unwrap();

        let mut tx = db.begin_write().unwrap();
        let mut series = tx.series_with("steps", &constant).unwrap();
        series.delete(Steps(5000)..Steps(9000)).unwrap();
        for i in 0..100 {
            let row = [(i as f64).to_bits()];
            series.insert_row(Steps(20_000 + 5 * i), &row).unwrap();
        }
        tx.commit().unwrap();
    })
}

fn insert_some(tx: &mut WriteTxn, from: i64, count: i64) {
    for number in 0..5 {
        let name = format!("delta.{number}");
        let mut series = tx.series(&name).unwrap();
        for i in 0..count {
            let time = Steps((from + i) * 1_000_000 + number);
            series
                .insert(time, (from + i + number) as f64 / 8.0)
                .unwrap();
        }
    }
}

/// A file with a tail page, runs of several tiers, and a run with other columns; with rows of equal times, and rows
/// that replace other rows.
pub(crate) fn delta() -> Made {
    make(&small(512), |db| {
        for round in 0..40 {
            let mut tx = db.begin_write().unwrap();
            insert_some(&mut tx, round * 3, 5);
            if round % 8 == 0 {
                let schema = Schema::new(
                    Unit::Seconds,
                    [("a", ColumnType::I64), ("b", ColumnType::F32)],
                )
                .with(Column::nullable("c", ColumnType::String));
                let mut series = tx.series_with("wide", &schema).unwrap();
                for i in 0..6 {
                    let cells = [
                        Value::I64(round - i),
                        Value::from(round as f32 / 3.0),
                        if i == 2 {
                            Value::Null
                        } else {
                            Value::from("text")
                        },
                    ];
                    series.insert_values(Steps(round * 4 + i), &cells).unwrap();
                }
            }
            tx.commit().unwrap();
        }
        for round in 0..12 {
            let mut tx = db.begin_write().unwrap();
            let mut series = tx
                .open_series("equal")
                .schema(&Schema::point())
                .merge(MergePolicy::KeepAll)
                .open()
                .unwrap();
            for i in 0..4_i64 {
                let time = Steps(i / 2 + round / 3);
                series.insert(time, (round * 10 + i) as f64).unwrap();
            }
            tx.commit().unwrap();
        }
        let mut tx = db.begin_write().unwrap();
        let mut series = tx.series("delta.2").unwrap();
        series.delete(Steps(10_000_000)..Steps(20_000_000)).unwrap();
        series.insert(Steps(12_000_000), -1.0).unwrap();
        tx.commit().unwrap();
    })
}
