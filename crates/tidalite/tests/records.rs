//! `#[derive(Record)]`: values of every kind of field are read back as they were written.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;
use tidalite::record::{Field, RowReader, RowWriter};
use tidalite::storage::MemoryStorage;
use tidalite::{
    Column, ColumnType, Database, Decimal, Error, ErrorKind, Options, Record, Result, Schema,
    Steps, Timestamp, Unit,
};

#[derive(Record, Clone, Debug, Default, PartialEq)]
#[record(unit = "ticks")]
struct Everything {
    a: f64,
    b: f32,
    c: i64,
    d: i8,
    e: u64,
    f: u16,
    #[record(time)]
    at: i64,
    g: bool,
    #[record(scale = 3)]
    h: Decimal,
    #[record(scale = 2, name = "price in units")]
    i: i64,
    j: Option<f64>,
    k: Option<bool>,
    l: Option<u64>,
    #[record(scale = 1)]
    m: Option<Decimal>,
    r#type: Option<i32>,
    n: String,
    o: Option<Vec<u8>>,
    p: [u8; 16],
    q: Option<String>,
}

fn db() -> Database {
    tidalite_testkit::watch();
    let storage = Arc::new(MemoryStorage::new());
    Options::new().open_storage(storage).unwrap()
}

fn written(record: &Everything) -> Result<Vec<Everything>> {
    let db = db();
    let mut tx = db.begin_write()?;
    tx.series_of::<Everything>("x")?.insert_record(record)?;
    tx.commit()?;
    let snap = db.begin_read()?;
    let series = snap.series("x")?.unwrap();
    let mut found = Vec::new();
    series
        .query(..)
        .for_each_record(|record| found.push(record))?;
    Ok(found)
}

fn decimal(units: i64, scale: u8) -> Decimal {
    Decimal { units, scale }
}

#[test]
fn every_kind_of_field_round_trips() {
    let first = Everything {
        a: -0.0,
        b: 7.12,
        c: i64::MIN,
        d: -128,
        e: u64::MAX,
        f: 65_535,
        at: 5,
        g: true,
        h: decimal(-1, 3),
        i: 1999,
        j: Some(f64::INFINITY),
        k: Some(false),
        l: Some(0),
        m: Some(decimal(55, 1)),
        r#type: Some(-7),
        n: "größe".to_owned(),
        o: Some(vec![0, 255]),
        p: *b"0123456789abcdef",
        q: Some(String::new()),
    };
    let mut second = Everything {
        at: 6,
        h: decimal(0, 3),
        ..Everything::default()
    };
    for record in [&first, &second] {
        assert_eq!(written(record).unwrap(), std::slice::from_ref(record));
    }
    // A decimal with another scale than the column is converted, or refused if a digit would be lost.
    second.h = decimal(15, 1);
    assert_eq!(written(&second).unwrap()[0].h, decimal(1500, 3));
    second.h = decimal(1, 4);
    assert!(matches!(written(&second), Err(ref error) if error.kind() == ErrorKind::Schema));
    // The word reserved for null cannot be stored as a value.
    second.h = decimal(0, 3);
    second.l = Some(u64::MAX);
    assert!(matches!(written(&second), Err(ref error) if error.kind() == ErrorKind::Schema));
}

#[test]
fn the_schema_is_that_of_the_struct() {
    let schema = Everything::schema();
    assert_eq!(schema.unit, Unit::Ticks);
    let columns = &schema.columns;
    assert_eq!(columns[1], Column::new("b", ColumnType::F32));
    assert_eq!(columns[3], Column::new("d", ColumnType::I64));
    assert_eq!(columns[7], Column::new("h", ColumnType::Decimal(3)));
    assert_eq!(
        columns[8],
        Column::new("price in units", ColumnType::Decimal(2))
    );
    assert_eq!(columns[10], Column::nullable("k", ColumnType::Bool));
    assert_eq!(columns[13], Column::nullable("type", ColumnType::I64));
    assert_eq!(columns[14], Column::new("n", ColumnType::String));
    assert_eq!(columns[15], Column::nullable("o", ColumnType::Bytes));
    assert_eq!(columns[16], Column::new("p", ColumnType::Guid));
    assert_eq!(columns.len(), 18);
}

#[derive(Record, Debug, PartialEq)]
struct Old {
    time: Timestamp,
    a: i64,
}

#[derive(Record, Debug, PartialEq)]
struct New {
    time: Timestamp,
    a: i64,
    b: Option<f32>,
    c: bool,
}

#[test]
fn a_record_grows_by_fields_at_its_end() {
    let db = db();
    let t = Timestamp;
    let mut tx = db.begin_write().unwrap();
    let mut series = tx
        .open_series("x")
        .schema(&Old::schema())
        .add_columns()
        .open()
        .unwrap();
    for i in 0..3000 {
        series.insert_record(&Old { time: t(i), a: i }).unwrap();
    }
    tx.commit().unwrap();
    let before = db.begin_read().unwrap();
    let mut tx = db.begin_write().unwrap();
    assert!(tx.series_of::<New>("x").is_err());
    let mut series = tx
        .open_series("x")
        .schema(&New::schema())
        .add_columns()
        .open()
        .unwrap();
    let new = New {
        time: t(2999),
        a: 1,
        b: Some(0.5),
        c: true,
    };
    series.insert_record(&new).unwrap();
    assert!(series.insert_record(&Old { time: t(1), a: 1 }).is_err());
    // Every way of opening the series shows the new columns, also opening it by id.
    let id = series.id();
    let again = tx.series_by_id(id).unwrap().insert_record(&new);
    again.unwrap();
    // The series has more columns than the older record type: nothing is added.
    tx.open_series("x")
        .schema(&New::schema())
        .add_columns()
        .open()
        .unwrap();
    assert!(
        tx.open_series("x")
            .schema(&Old::schema())
            .add_columns()
            .open()
            .is_err()
    );
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let series = snap.series("x").unwrap().unwrap();
    let (mut old, mut grown) = (Vec::new(), Vec::new());
    series
        .query(..)
        .for_each_record(|record: Old| old.push(record))
        .unwrap();
    series
        .query(..)
        .for_each_record(|record: New| grown.push(record))
        .unwrap();
    assert_eq!((old.len(), old[2999].a), (3000, 1));
    assert_eq!(grown[2999], new);
    assert_eq!((grown[7].b, grown[7].c), (None, false));
    assert_eq!(series.query(..).aggregate(1).unwrap().count(), 1);
    // A snapshot of the older version keeps its columns, and the diff reports only the row that was written.
    let older = before.series("x").unwrap().unwrap();
    assert_eq!(older.info().schema, Old::schema());
    assert!(older.query(..).for_each_record(|_: New| {}).is_err());
    let mut told = Vec::new();
    snap.diff(&before, &mut |change| {
        told.push(format!("{change:?}"));
        Ok(())
    })
    .unwrap();
    assert_eq!(told.len(), 2, "the columns and a row: {told:?}");
    assert!(told[0].contains("SeriesChanged"), "{told:?}");
    assert!(told[1].contains("from: 2999, to: 2999"), "{told:?}");
    assert!(db.check().unwrap().is_clean());
}

/// A field type whose trait is implemented by hand: a colour stored as a number.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Colour {
    Red,
    Green,
}

impl Field for Colour {
    const TYPE: ColumnType = ColumnType::U64;

    fn word(&self, _: &mut RowWriter<'_>) -> Result<u64> {
        Ok(*self as u64)
    }

    fn of_word(word: u64, row: &mut RowReader<'_>) -> Result<Self> {
        match word {
            0 => Ok(Self::Red),
            1 => Ok(Self::Green),
            other => {
                let problem = format!("{}: {other} is no colour", row.column().name);
                Err(Error::schema(problem))
            }
        }
    }
}

#[derive(Record, Debug, PartialEq)]
struct Light {
    time: i64,
    colour: Colour,
    next: Option<Colour>,
}

#[test]
fn custom_fields_and_invalid_words() {
    let db = db();
    let mut tx = db.begin_write().unwrap();
    let mut series = tx.series_of::<Light>("x").unwrap();
    let light = Light {
        time: 1,
        colour: Colour::Green,
        next: Some(Colour::Red),
    };
    series.insert_record(&light).unwrap();
    let mut found = Vec::new();
    let view = series.view().unwrap();
    view.query(..)
        .for_each_record(|light: Light| found.push(light))
        .unwrap();
    assert_eq!(found, [light]);
    series.insert_row(Steps(2), &[7, 0]).unwrap();
    let view = series.view().unwrap();
    let read = view.query(..).for_each_record(|_: Light| {});
    assert!(matches!(read, Err(ref error) if error.kind() == ErrorKind::Schema));
    let schema: Schema = Light::schema();
    assert!(schema.columns[1].nullable);
}
