//! Writes to every table and series of a file, and creates new ones.

use super::errors::keep;
use super::{containers_write, messages_write, relations};
use crate::model::layout_of;
use tidalite::{
    ColumnType, Database, Decimal, ErrorKind, Result, Schema, SeriesMut, Steps, TableLayout, Value,
};

/// Number of rows written to each series, enough for a vector.
const ROWS: i64 = 1_100;

pub(super) fn write(db: &Database) -> Result<()> {
    let names = db.begin_read()?.tables()?;
    let mut first = Ok(());
    for name in &names {
        keep(&mut first, write_table(db, name));
    }
    // The series of containers have gone with these.
    let ids: Vec<_> = db.begin_read()?.list("")?.iter().map(|i| i.id).collect();
    for &id in &ids {
        keep(&mut first, write_series(db, id));
    }
    keep(&mut first, fresh(db));
    keep(&mut first, tags(db));
    first
}

/// Changes the tags of all series.
fn tags(db: &Database) -> Result<()> {
    let mut tx = db.begin_write()?;
    for value in [Some("x"), None] {
        match tx.set_tag("", "hostile", value) {
            // Without the tag two series may have one name.
            Err(error) if error.kind() == ErrorKind::InvalidName => {}
            done => drop(done?),
        }
    }
    tx.commit()?;
    Ok(())
}

fn write_table(db: &Database, name: &str) -> Result<()> {
    match layout_of(&db.begin_read()?, name)? {
        TableLayout::Hash => return write_hash(db, name),
        TableLayout::Buffered => return write_buffered(db, name),
        TableLayout::Topics => return messages_write::topics(db, name),
        TableLayout::Queue => return messages_write::queue(db, name),
        TableLayout::Bucket => return messages_write::bucket(db, name),
        TableLayout::Containers => return containers_write::containers(db, name),
        TableLayout::Relation => return relations::write(db, name),
        TableLayout::Rows => {}
    }
    let mut tx = db.begin_write()?;
    if tx.table_if_exists(name).is_err() {
        let mut table = tx.set_table(name)?;
        for i in 0..24 {
            table.put(format!("k{:03}", i * 7).as_bytes(), &[i; 8])?;
        }
        table.remove_range_of_pairs(("k020", "b")..("k030", "c"))?;
        table.remove_range("k050".."k100")?;
        table.remove_all(b"k000")?;
        tx.commit()?;
        let mut tx = db.begin_write()?;
        tx.set_table(name)?.clear()?;
        tx.commit()?;
        return Ok(());
    }
    let mut table = tx.table(name)?;
    for path in [&[b"a"][..], &[b"b", b"c"], &[b"c", b"a", b"b"]] {
        let mut below = table.nested_at(path);
        // The file may hold a value where a nested table is expected, or a nested table in place of a value.
        match below.put(b"k123", &[3; 300]) {
            Err(error) if error.kind() == ErrorKind::WrongType => {
                continue;
            }
            done => done?,
        };
        below.remove_range(&b"k1"[..]..&b"k3"[..])?;
    }
    for i in 0..24 {
        table.put(format!("k{:03}", i * 7).as_bytes(), &[i; 60])?;
    }
    table.put(b"k long", &[7; 5_000])?;
    for i in 0..24 {
        table.remove(format!("k{:03}", i * 5).as_bytes())?;
        table.remove(format!("key 90 {:04}", i * 2).as_bytes())?;
    }
    tx.commit()?;
    let mut tx = db.begin_write()?;
    tx.table(name)?.clear()?;
    tx.commit()?;
    Ok(())
}

/// Changes a hash table by every call, with one transaction for each kind of change.
fn write_hash(db: &Database, name: &str) -> Result<()> {
    let types = db.begin_read()?.table_types(name)?;
    if types.is_none_or(|types| (types.key(), types.value()) != ("bytes", "bytes")) {
        return Ok(());
    }
    let mut first = Ok(());
    for step in 0..7 {
        let change = || -> Result<()> {
            let mut tx = db.begin_write()?;
            let mut table = tx.hash_table::<[u8], [u8]>(name)?;
            match step {
                0 | 1 => {
                    for i in 0..200_u64 {
                        let key = format!("k{:03}", i * 7 % 300);
                        table.set(key.as_bytes(), &i.to_be_bytes())?;
                    }
                    table.insert(b"new", &[5; 2_000])?;
                }
                2 => {
                    for i in 0..40 {
                        table.remove(format!("k{:03}", i * 14).as_bytes())?;
                    }
                }
                3 => {
                    let numbers = table.view()?.duplicates(b"k007")?;
                    for number in numbers.iter().take(20) {
                        match table.remove_record(b"k007", number) {
                            Err(error) if error.kind() == ErrorKind::WrongType => break,
                            done => drop(done?),
                        }
                    }
                }
                4 => table.compact()?,
                5 => table.rebuild()?,
                _ => table.clear()?,
            }
            tx.commit()?;
            Ok(())
        };
        keep(&mut first, change());
    }
    first
}

/// Changes a buffered table by every call, with one transaction for each kind of change.
fn write_buffered(db: &Database, name: &str) -> Result<()> {
    let mut first = Ok(());
    for step in 0..6 {
        let change = || -> Result<()> {
            let mut tx = db.begin_write()?;
            let Some(mut table) = tx.raw_buffered_table(name)? else {
                return Ok(());
            };
            match step {
                0 | 1 => {
                    for i in 0..200_u64 {
                        let key = format!("k{:03}", i * 7 % 300);
                        table.put(key.as_bytes(), &i.to_be_bytes())?;
                    }
                    table.put(b"new", &[5; 2_000])?;
                }
                2 => {
                    for i in 0..40 {
                        table.remove(format!("k{:03}", i * 14).as_bytes())?;
                    }
                    table.get(b"k007")?;
                    table.contains(b"k014")?;
                    table.view()?.count()?;
                }
                3 => table.store()?,
                4 => table.compact()?,
                _ => table.clear()?,
            }
            tx.commit()?;
            Ok(())
        };
        keep(&mut first, change());
    }
    first
}

/// A row with the value three in each column: as raw words, or as values if there are text columns, in which a raw word
/// would be the number of a text.
enum Row {
    Words(Vec<u64>),
    Values(Vec<Value>),
}

impl Row {
    fn of(schema: &Schema) -> Self {
        if !schema.columns.iter().any(|column| column.ty.is_text()) {
            return Self::Words(vec![3; schema.columns.len()]);
        }
        let three = |ty| match ty {
            ColumnType::F64 | ColumnType::F32 => Value::F64(3.0),
            ColumnType::I64 => Value::I64(3),
            ColumnType::U64 => Value::U64(3),
            ColumnType::Bool => Value::Bool(true),
            ColumnType::Decimal(scale) => Value::Decimal(Decimal { units: 3, scale }),
            ColumnType::String => Value::String("three".to_owned()),
            ColumnType::Bytes => Value::Bytes(vec![3; 3]),
            ColumnType::Guid => Value::Guid([3; 16]),
            _ => Value::Null,
        };
        let columns = schema.columns.iter();
        Self::Values(columns.map(|column| three(column.ty)).collect())
    }

    fn put(&self, series: &mut SeriesMut<'_>, time: i64) -> Result<()> {
        match self {
            Self::Words(words) => series.insert_row(Steps(time), words),
            Self::Values(values) => series.insert_values(Steps(time), values),
        }
    }
}

fn write_series(db: &Database, id: tidalite::SeriesId) -> Result<()> {
    let mut tx = db.begin_write()?;
    let mut series = tx.series_by_id(id)?;
    let row = Row::of(&series.info().schema);
    for i in 0..30 {
        match row.put(&mut series, i * 50 + 7) {
            // The merge policy of the series may refuse a second row at an existing time.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            done => done?,
        }
    }
    for i in 0..ROWS {
        row.put(&mut series, 500_000 + i)?;
    }
    series.delete(Steps(300)..Steps(800))?;
    tx.commit()?;
    let mut tx = db.begin_write()?;
    tx.series_by_id(id)?.delete(..)?;
    tx.commit()?;
    Ok(())
}

fn fresh(db: &Database) -> Result<()> {
    let mut tx = db.begin_write()?;
    tx.table("fresh")?.put(b"k", b"v")?;
    tx.series("fresh")?.insert_point(Steps(1), 0, 1.0)?;
    tx.series_of_guid(*b"fifteen and one.", &Schema::point())?
        .insert(Steps(1), 1.0)?;
    tx.commit()?;
    Ok(())
}
