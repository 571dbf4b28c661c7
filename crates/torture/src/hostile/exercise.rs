//! Uses a file in every way that a user would. An error is an answer; a panic is not.

use super::batch_reads;
use super::files::Files;
use super::maintenance::{around, compacted};
use tidalite::{ColumnType, Database, Decimal, Options, Result, Schema, SeriesMut, Value};

/// Rows written to each series, enough for a vector.
const ROWS: i64 = 1_100;
/// Widths of windows that a hostile span cannot make many.
const WINDOWS_MAX: i64 = 4_096;

/// How a file went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Went {
    /// It was not opened.
    Refused,
    /// Opened; reading it met an error.
    Unreadable,
    /// All of it was read, but a write was refused.
    Unwritable,
    /// All was done.
    Used,
}

pub(super) fn options() -> Options {
    Options::new()
        .growth_bytes(16 << 10, 64 << 10)
        .dirty_bytes(64 << 10)
        .early_bytes(32 << 10)
        .staging_bytes(256 << 10)
}

/// Opens, checks, reads and writes it, and does so again; and once more from the beginning, to make it compact.
#[must_use]
pub fn exercise(files: &Files) -> Went {
    exercise_telling(files).0
}

/// As [`exercise`], with the first error.
///
/// # Errors
/// Beside how it went.
pub fn exercise_telling(files: &Files) -> (Went, Result<()>) {
    let stored = files.stored();
    let db = match stored.open() {
        Ok(db) => db,
        Err(error) => return (Went::Refused, Err(error)),
    };
    let clean = db.check().is_ok_and(|report| report.is_clean());
    let mut first = around(&db, files, &stored);
    keep(&mut first, batch_reads::all(&db));
    let _ = db.stat().map(|stat| (stat.rows(), stat.bytes_per_row()));
    let read = read(&db);
    let write = write(&db);
    let _ = db.check();
    drop(db);
    if let Ok(db) = stored.open() {
        let _ = db.check();
        let _ = self::read(&db);
    }
    let compacted = compacted(&files.stored());
    let went = match (&read, &write) {
        (Err(_), _) => Went::Unreadable,
        (_, Err(_)) => Went::Unwritable,
        _ if clean => Went::Used,
        _ => Went::Unreadable,
    };
    for result in [read, write, compacted] {
        keep(&mut first, result);
    }
    (went, first)
}

/// Notes the first error.
pub(super) fn keep(first: &mut Result<()>, next: Result<()>) {
    if first.is_ok() {
        *first = next;
    }
}

/// Everything that the newest snapshot shows.
pub(super) fn read(db: &Database) -> Result<()> {
    read_from(&db.begin_read()?)
}

/// Everything that a snapshot shows.
pub(super) fn read_from(snap: &tidalite::ReadTxn) -> Result<()> {
    let mut seen = Ok(());
    for name in snap.tables()? {
        keep(&mut seen, table(snap, &name));
    }
    for info in snap.list("")? {
        let series = || -> Result<()> {
            let Some(series) = snap.series_by_id(info.id)? else {
                return Ok(());
            };
            series.all().for_each(|_, _| ()).map(|_| ())
        };
        keep(&mut seen, series());
        keep(&mut seen, questions(snap, info.id));
    }
    seen
}

fn multi(snap: &tidalite::ReadTxn, name: &str) -> Result<()> {
    let Some(table) = snap.multi_table(name)? else {
        return Ok(());
    };
    let mut cursor = table.cursor();
    let mut steps = 0;
    while steps < 5_000 && cursor.next_pair()? {
        let _ = (cursor.key().len(), cursor.value().len(), cursor.count());
        steps += 1;
    }
    let _ = (table.count(), table.count_keys(), table.count_of(b"m\0")?);
    table.contains(b"m\x01", &[7; 9])?;
    cursor.seek_le(b"k1", b"5")?;
    cursor.prev_nodup()?;
    cursor.seek_ge(b"k1", b"5")?;
    cursor.next_dup()?;
    Ok(())
}

fn table(snap: &tidalite::ReadTxn, name: &str) -> Result<()> {
    if snap.is_multi_table(name)? == Some(true) {
        return multi(snap, name);
    }
    let Some(table) = snap.table(name)? else {
        return Ok(());
    };
    rows(&table, &mut 5_000)
}

/// Rows of a table and of those in it, as many as there are left to look at.
fn rows(table: &tidalite::Table<'_>, left: &mut usize) -> Result<()> {
    let mut cursor = table.cursor();
    let mut all = Ok(());
    while *left > 0 && cursor.next()? {
        *left -= 1;
        if cursor.is_nested() {
            if let Some(below) = table.nested(cursor.key())? {
                keep(&mut all, rows(&below, left));
            }
        } else {
            keep(&mut all, cursor.value().map(drop));
        }
    }
    let mut cursor = table.cursor();
    let mut steps = 0;
    let mut more = cursor.last()?;
    while more && steps < 5_000 {
        let _ = cursor.value();
        steps += 1;
        more = cursor.previous()?;
    }
    cursor.seek_ge(b"k1")?;
    cursor.seek_le(b"k1")?;
    cursor.seek_le(b"")?;
    let _ = table.get(b"k100")?;
    all
}

fn questions(snap: &tidalite::ReadTxn, id: tidalite::SeriesId) -> Result<()> {
    let Some(series) = snap.series_by_id(id)? else {
        return Ok(());
    };
    let mut seen = Ok(());
    keep(&mut seen, series.latest().map(drop));
    keep(&mut seen, series.count().map(drop));
    let _ = (
        series.stored_bytes(),
        series.waiting_rows(),
        series.height(),
    );
    for column in 0..series.info().schema.columns.len() {
        keep(&mut seen, series.all().aggregate(column).map(drop));
        keep(
            &mut seen,
            series.between(100..1_700).aggregate(column).map(drop),
        );
        let (first, last) = series.span().unwrap_or((0, 0));
        let width = (last.saturating_sub(first) / WINDOWS_MAX).max(100);
        keep(&mut seen, series.all().windows(width, 0, column).map(drop));
    }
    keep(
        &mut seen,
        series.all().for_each_vector_reverse(|_| ()).map(drop),
    );
    keep(
        &mut seen,
        series.between(500..900).for_each(|_, _| ()).map(drop),
    );
    let mut cursor = series.cursor();
    keep(&mut seen, cursor.search(1_000_i64).map(drop));
    for _ in 0..20 {
        keep(&mut seen, cursor.next().map(drop));
    }
    keep(&mut seen, cursor.last().map(drop));
    for _ in 0..20 {
        keep(&mut seen, cursor.previous().map(drop));
    }
    seen
}

fn write(db: &Database) -> Result<()> {
    let names = db.begin_read()?.tables()?;
    let ids: Vec<_> = db.begin_read()?.list("")?.iter().map(|i| i.id).collect();
    let mut first = Ok(());
    for name in &names {
        keep(&mut first, write_table(db, name));
    }
    for &id in &ids {
        keep(&mut first, write_series(db, id));
    }
    keep(&mut first, fresh(db));
    first
}

fn write_table(db: &Database, name: &str) -> Result<()> {
    let mut tx = db.begin_write()?;
    if tx.table_if_exists(name).is_err() {
        let mut table = tx.multi_table(name)?;
        for i in 0..24 {
            table.put(format!("k{:03}", i * 7).as_bytes(), &[i; 8])?;
        }
        table.remove_range_of_pairs(("k020", "b")..("k030", "c"))?;
        table.remove_range("k050".."k100")?;
        table.remove_all(b"k000")?;
        tx.commit()?;
        let mut tx = db.begin_write()?;
        tx.multi_table(name)?.clear()?;
        tx.commit()?;
        return Ok(());
    }
    let mut table = tx.table(name)?;
    for path in [&[b"a"][..], &[b"b", b"c"], &[b"c", b"a", b"b"]] {
        let mut below = table.nested_at(path);
        // What lies there may be a value, or a table where a value is to be.
        match below.put(b"k123", &[3; 300]) {
            Err(
                tidalite::Error::Store(tidalite::StoreError::Unsupported { .. })
                | tidalite::Error::IsTable { .. },
            ) => continue,
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

/// A row of threes: words as they are, but where texts are among them, whose words are numbers of texts.
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
            Self::Words(words) => series.insert_row(time, words),
            Self::Values(values) => series.insert_values(time, values),
        }
    }
}

fn write_series(db: &Database, id: tidalite::SeriesId) -> Result<()> {
    let mut tx = db.begin_write()?;
    let mut series = tx.series_by_id(id)?;
    let row = Row::of(&series.info().schema);
    for i in 0..30 {
        match row.put(&mut series, i * 50 + 7) {
            // Its merge policy refuses another row at a time that is taken.
            Err(tidalite::Error::TimeTaken { .. }) => {}
            done => done?,
        }
    }
    for i in 0..ROWS {
        row.put(&mut series, 500_000 + i)?;
    }
    series.delete(300..800)?;
    tx.commit()?;
    let mut tx = db.begin_write()?;
    tx.series_by_id(id)?.delete(..)?;
    tx.commit()?;
    Ok(())
}

fn fresh(db: &Database) -> Result<()> {
    let mut tx = db.begin_write()?;
    tx.table("fresh")?.put(b"k", b"v")?;
    tx.series("fresh")?.insert_point(1, 0, 1.0)?;
    tx.series_of_guid(*b"fifteen and one.", &Schema::point())?
        .insert(1_i64, 1.0)?;
    tx.commit()?;
    Ok(())
}
