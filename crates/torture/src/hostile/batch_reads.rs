//! Queries that return many results at once or find entries by position: batches of keys, ranks, partial ranges,
//! windows, several series together.
//!
//! A count in a hostile file may be any number. Loops here stop after `STEPS_MAX`; loops inside the database must end
//! by themselves.

use super::errors::keep;
use crate::model::layout_of;
use tidalite::query::{CandleSize, Join};
use tidalite::{
    Database, Direction, ErrorKind, Grid, Query, ReadTxn, Result, Series, SeriesId, SetTable,
    Steps, Table, TableLayout,
};

/// Maximum number of entries that are read from a range.
const STEPS_MAX: usize = 500;
/// Maximum number of nested tables that are queried.
const NESTED_MAX: usize = 20;
/// Number of parts into which a range is split.
const PARTS: usize = 5;
/// Number of parts that exceeds the number of entries of most tables.
const PARTS_MANY: usize = 200;
/// Maximum number of windows of a query, whatever the time span of a hostile file.
const WINDOWS_MAX: i64 = 512;
/// Minimum width of a window, in the time unit of the series.
const WIDTH_MIN: i64 = 100;

/// The keys of a batch: existing and missing keys, unsorted, one of them twice.
fn keys() -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = (0..40)
        .map(|i| format!("k{:03}", i * 37 % 200).into_bytes())
        .collect();
    keys.extend([
        b"k long".to_vec(),
        b"a".to_vec(),
        b"".to_vec(),
        b"k000".to_vec(),
        b"key 90 0004".to_vec(),
        vec![b'm', 1],
    ]);
    keys
}

/// Ranks (positions) below and above the number of entries of a table.
fn ranks(count: u64) -> [u64; 7] {
    let last = count.wrapping_sub(1);
    [
        0,
        1,
        count / 2,
        last,
        count,
        count.wrapping_add(7),
        u64::MAX,
    ]
}

fn each<T>(entries: impl Iterator<Item = Result<T>>) -> Result<()> {
    for entry in entries.take(STEPS_MAX) {
        entry?;
    }
    Ok(())
}

/// Runs all these queries on the newest snapshot.
pub fn all(db: &Database) -> Result<()> {
    let snap = db.begin_read()?;
    let mut first = Ok(());
    for name in snap.tables()? {
        let asked = || match snap.is_set_table(&name)? {
            Some(true) => snap.set_table(&name)?.map_or(Ok(()), |own| multi(&own)),
            _ if layout_of(&snap, &name)? != TableLayout::Rows => Ok(()),
            _ => snap.table(&name)?.map_or(Ok(()), |own| tables(&own)),
        };
        keep(&mut first, asked());
    }
    for info in snap.list("")? {
        keep(&mut first, series(&snap, info.id));
    }
    keep(&mut first, together(&snap));
    first
}

/// Queries a table and the tables nested in it.
fn tables(table: &Table<'_>) -> Result<()> {
    let mut below = Vec::new();
    let mut cursor = table.cursor();
    let mut more = cursor.first()?;
    while more && below.len() < NESTED_MAX {
        below.extend(cursor.nested()?);
        more = cursor.next()?;
    }
    let mut first = Ok(());
    // A key with a nested table has no value: `get` fails for it even in a valid file.
    let asked = self::table(table);
    if below.is_empty() {
        keep(&mut first, asked);
    }
    for below in below {
        let asked = self::table(&below);
        if !has_tables(&below)? {
            keep(&mut first, asked);
        }
    }
    first
}

fn has_tables(table: &Table<'_>) -> Result<bool> {
    let mut cursor = table.cursor();
    for _ in 0..STEPS_MAX {
        if !cursor.next()? {
            return Ok(false);
        }
        if cursor.is_nested() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Runs batches, ranks, parts and ranges on a table.
fn table(table: &Table<'_>) -> Result<()> {
    let mut first = Ok(());
    keep(&mut first, table.get_many(&keys()).map(drop));
    for key in keys() {
        keep(&mut first, table.rank(&key).map(drop));
        keep(&mut first, table.contains(&key).map(drop));
    }
    keep(&mut first, table.count_range(&b"k050"[..]..).map(drop));
    keep(&mut first, table.count_range(..&b"k050"[..]).map(drop));
    let mut cursor = table.cursor();
    for rank in ranks(table.count()) {
        keep(&mut first, cursor.select(rank).map(drop));
        keep(&mut first, cursor.next().map(drop));
        keep(&mut first, cursor.previous().map(drop));
    }
    for parts in [0, 1, PARTS, PARTS_MANY] {
        let bounds = table.split(.., parts);
        keep(&mut first, bounds.map(drop));
    }
    let middle = || table.split(&b"k010"[..]..&b"k150"[..], PARTS);
    keep(&mut first, middle().map(drop));
    let range = || -> Result<()> {
        each(table.range(&b"k020"[..]..&b"k100"[..])?)?;
        each(table.prefix(b"k1")?.rev())
    };
    keep(&mut first, range());
    first
}

/// Runs batches, ranks and ranges on a table of sets.
fn multi(table: &SetTable<'_>) -> Result<()> {
    let mut first = Ok(());
    keep(&mut first, table.get_many(&keys()).map(drop));
    let mut pairs = 0;
    let taken = table.each_value_of(&keys(), |_, value| pairs += value.len());
    keep(&mut first, taken);
    for key in keys() {
        keep(&mut first, table.rank(&key).map(drop));
        keep(&mut first, table.rank_pair(&key, &[7; 9]).map(drop));
        keep(&mut first, table.get(&key).map(drop));
    }
    let mut cursor = table.cursor();
    for rank in ranks(table.count()) {
        keep(&mut first, cursor.select(rank).map(drop));
        keep(&mut first, cursor.next_values(64).map(drop));
        keep(&mut first, cursor.previous().map(drop));
    }
    for rank in ranks(table.count_keys()) {
        keep(&mut first, cursor.select_key(rank).map(drop));
        keep(&mut first, cursor.values(64).map(drop));
        keep(&mut first, cursor.select_value(b"m\x03", rank).map(drop));
        keep(&mut first, cursor.last_value().map(drop));
        keep(&mut first, cursor.next_key().map(drop));
    }
    keep(&mut first, table.count_range(&b"k050"[..]..).map(drop));
    for parts in [0, 1, PARTS, PARTS_MANY] {
        let bounds = table.split(.., parts);
        keep(&mut first, bounds.map(drop));
    }
    let range = || -> Result<()> {
        each(table.range(&b"k020"[..]..&b"k100"[..])?)?;
        each(table.values(b"m\x03")?)?;
        each(table.prefix(b"m")?.rev())
    };
    keep(&mut first, range());
    first
}

/// A window width that divides any span in the file into a few hundred windows at most.
fn width(series: &Series<'_>) -> i64 {
    let (first, last) = series.span().unwrap_or((0, 0));
    (last.saturating_sub(first) / WINDOWS_MAX).max(WIDTH_MIN)
}

/// Runs windows, filters, parts and positions on a series.
fn series(snap: &ReadTxn, id: SeriesId) -> Result<()> {
    let Some(series) = snap.series_by_id(id)? else {
        return Ok(());
    };
    let mut first = Ok(());
    let columns: Vec<usize> = (0..series.info().schema.columns.len()).collect();
    let width = width(&series);
    let all = series.query(..);
    keep(
        &mut first,
        all.clone()
            .columns(&columns)
            .for_each_window((Steps(width), Steps(13)), |_, _| ()),
    );
    keep(&mut first, all.count().map(drop));
    keep(&mut first, parts(&all));
    for column in columns {
        keep(&mut first, of_column(&series, column, width));
    }
    let mut cursor = series.cursor();
    for n in ranks(series.count().unwrap_or(0)) {
        keep(&mut first, cursor.nth(n).map(drop));
        keep(&mut first, cursor.next().map(drop));
    }
    for time in [i64::MIN, 0, 1_000, i64::MAX] {
        for direction in [Direction::Forward, Direction::Backward] {
            keep(&mut first, series.nearest(Steps(time), direction).map(drop));
        }
        keep(&mut first, series.at(Steps(time)).map(drop));
    }
    first
}

/// Reads the parts of an interval one after another, and in parallel.
fn parts(all: &Query<'_>) -> Result<()> {
    for parts in [1, PARTS] {
        for part in all.split(parts)? {
            part.count()?;
            part.aggregate(0)?;
        }
    }
    all.in_parallel(|part| part.for_each_vector(|_| ()).map(drop))?;
    Ok(())
}

fn of_column(series: &Series<'_>, column: usize, width: i64) -> Result<()> {
    let mut first = Ok(());
    let all = series.query(..);
    keep(
        &mut first,
        all.candles(CandleSize::Width(700), column).map(drop),
    );
    let some = series
        .query(Steps(100)..Steps(1_700))
        .windows((Steps(width), Steps(5)), column);
    keep(&mut first, some.map(drop));
    // The next two queries are errors for a text column even in a valid file.
    if series.info().schema.columns[column].ty.is_text() {
        return first;
    }
    let filtered = || -> Result<()> {
        let wanted = all.clone().filter(column, 0.0..30.0);
        wanted.count()?;
        wanted.windows(Steps(width), column)?;
        wanted.columns([column]).reverse().for_each_vector(|_| ())?;
        Ok(())
    };
    keep(&mut first, filtered());
    let dots = || -> Result<()> { each(all.dots(column)?) };
    keep(&mut first, dots());
    first
}

/// Queries all series of a snapshot together.
fn together(snap: &ReadTxn) -> Result<()> {
    let chosen = snap.select("")?;
    let mut first = Ok(());
    keep(&mut first, chosen.latest().map(drop));
    let spans = chosen.series()?.iter().map(width);
    let grid = Grid::seconds(spans.max().unwrap_or(1).max(1));
    for group in chosen.query(..).each() {
        match group.windows(&grid, "value") {
            // Series of containers have other columns.
            Err(error) if error.kind() == ErrorKind::Schema => {}
            found => keep(&mut first, found.map(drop)),
        }
    }
    let counted = chosen.in_parallel(|series| series.query(..).count());
    keep(&mut first, counted.map(drop));
    let merged = || -> Result<()> {
        let mut rows = chosen.query(..).rows()?;
        for _ in 0..STEPS_MAX {
            if rows.next()?.is_none() {
                break;
            }
        }
        let mut joined = chosen.query(..).join(Join::Outer)?;
        for _ in 0..STEPS_MAX {
            if joined.next()?.is_none() {
                break;
            }
        }
        Ok(())
    };
    keep(&mut first, merged());
    first
}
