//! Reads everything in a snapshot.

use super::errors::keep;
use super::{containers_read, messages_read, relations};
use crate::model::layout_of;
use tidalite::{Database, Result, Steps, TableLayout};

/// Maximum number of windows of a query, whatever the time span of a hostile file.
const WINDOWS_MAX: i64 = 4_096;

/// Reads everything in the newest snapshot.
pub(super) fn read(db: &Database) -> Result<()> {
    read_from(&db.begin_read()?)
}

/// Reads everything in a snapshot.
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
            series.query(..).for_each(|_, _| ()).map(|_| ())
        };
        keep(&mut seen, series());
        keep(&mut seen, questions(snap, info.id));
    }
    for pattern in PATTERNS {
        keep(&mut seen, snap.list(pattern).map(drop));
    }
    keep(&mut seen, tags(snap));
    seen
}

/// Patterns that the index of tags answers, each in another way.
const PATTERNS: [&str; 9] = [
    "*",
    "wind",
    "w*",
    r#"{site="a"}"#,
    r#"{site=""}"#,
    r#"{site!=""}"#,
    r#"{site!="a"}"#,
    r#"{site="a"*}"#,
    r#"{site=~"[a-z]+",host!~"x.*"}"#,
];

/// Maximum number of metrics, tag keys and values that are listed.
const LISTED_MAX: usize = 1_000;

fn tags(snap: &tidalite::ReadTxn) -> Result<()> {
    let mut seen = snap.cardinality().map(drop);
    keep(&mut seen, snap.metrics("", LISTED_MAX).map(drop));
    for key in snap.tag_keys("", LISTED_MAX)? {
        keep(
            &mut seen,
            snap.tag_values(&key.text, "a", LISTED_MAX).map(drop),
        );
    }
    seen
}

fn table(snap: &tidalite::ReadTxn, name: &str) -> Result<()> {
    if snap.is_set_table(name)? == Some(true) {
        return multi(snap, name);
    }
    match layout_of(snap, name)? {
        TableLayout::Hash => return hash(snap, name),
        TableLayout::Buffered => return buffered(snap, name),
        TableLayout::Topics => return raw_and(snap, name, messages_read::topics),
        TableLayout::Queue => return raw_and(snap, name, messages_read::queue),
        TableLayout::Bucket => return raw_and(snap, name, messages_read::bucket),
        TableLayout::Containers => return raw_and(snap, name, containers_read::containers),
        TableLayout::Relation => return raw_and(snap, name, relations::read),
        TableLayout::Rows => {}
    }
    let Some(table) = snap.table(name)? else {
        return Ok(());
    };
    rows(&table, &mut 5_000)
}

/// Reads the rows of a table as plain pairs, and then reads the table with `read`.
fn raw_and(
    snap: &tidalite::ReadTxn,
    name: &str,
    read: fn(&tidalite::ReadTxn, &str) -> Result<()>,
) -> Result<()> {
    let mut seen = Ok(());
    if let Some(raw) = snap.raw_table(name)? {
        keep(&mut seen, rows(&raw, &mut 5_000));
    }
    keep(&mut seen, read(snap, name));
    seen
}

/// Calls every method of a buffered table.
fn buffered(snap: &tidalite::ReadTxn, name: &str) -> Result<()> {
    let mut seen = Ok(());
    if let Some(raw) = snap.raw_table(name)? {
        keep(&mut seen, rows(&raw, &mut 5_000));
    }
    let Some(table) = snap.buffered_table::<[u8], [u8]>(name)? else {
        return seen;
    };
    let keys = [&b""[..], b"k014", b"k049", b"k long", b"none"];
    keep(&mut seen, table.stat().map(drop));
    keep(&mut seen, table.count().map(drop));
    keep(&mut seen, table.is_empty().map(drop));
    keep(&mut seen, table.first().map(drop));
    keep(&mut seen, table.last().map(drop));
    keep(&mut seen, table.get_many(&keys).map(drop));
    for key in keys {
        keep(&mut seen, table.contains(key).map(drop));
    }
    let ranges = || -> Result<()> {
        for range in [table.range(..)?, table.range(&b"k02"[..]..&b"k2"[..])?] {
            range.take(5_000).try_for_each(|entry| entry.map(drop))?;
        }
        let reversed = table.range_reversed(..&b"k2"[..])?;
        reversed.take(5_000).try_for_each(|entry| entry.map(drop))
    };
    keep(&mut seen, ranges());
    seen
}

/// Calls every method of a hash table.
fn hash(snap: &tidalite::ReadTxn, name: &str) -> Result<()> {
    let mut seen = Ok(());
    if let Some(raw) = snap.raw_table(name)? {
        keep(&mut seen, rows(&raw, &mut 5_000));
    }
    let Some(table) = snap.hash_table::<[u8], [u8]>(name)? else {
        return seen;
    };
    let mut keys: Vec<Vec<u8>> = vec![Vec::new(), b"k014".to_vec(), b"K long".to_vec()];
    keep(&mut seen, table.stat().map(drop));
    keep(&mut seen, table.count().map(drop));
    keep(&mut seen, table.count_records().map(drop));
    keep(&mut seen, table.is_empty().map(drop));
    let all = table.each_record(0, |record| {
        keys.push(record.key);
        keys.len() < 500
    });
    keep(&mut seen, all);
    keep(&mut seen, table.each_record(100, |_| true));
    for key in &keys {
        keep(&mut seen, table.get(key).map(drop));
        keep(&mut seen, table.contains(key).map(drop));
        keep(&mut seen, table.duplicates(key).map(drop));
        keep(&mut seen, table.history(key).map(drop));
    }
    keep(&mut seen, table.get_many(&keys).map(drop));
    for number in [0, 1, 7, 200, u64::MAX] {
        keep(&mut seen, table.record(number).map(drop));
    }
    let part = || -> Result<()> {
        for item in table.range(..)?.take(5_000) {
            item?;
        }
        table.records_in(..).map(drop)
    };
    keep(&mut seen, part());
    // Tables of hashed keys refuse a range.
    match table.records_in(&b"k014"[..]..&b"k200"[..]) {
        Err(error) if error.kind() == tidalite::ErrorKind::WrongType => {}
        done => keep(&mut seen, done.map(drop)),
    }
    seen
}

fn multi(snap: &tidalite::ReadTxn, name: &str) -> Result<()> {
    let Some(table) = snap.set_table(name)? else {
        return Ok(());
    };
    let mut cursor = table.cursor();
    let mut steps = 0;
    while steps < 5_000 && cursor.next()? {
        let _ = (cursor.key().len(), cursor.value().len(), cursor.count());
        steps += 1;
    }
    let _ = (table.count(), table.count_keys(), table.count_of(b"m\0")?);
    table.contains(b"m\x01", &[7; 9])?;
    cursor.seek_le(b"k1", b"5")?;
    cursor.previous_key()?;
    cursor.seek_ge(b"k1", b"5")?;
    cursor.next_value()?;
    Ok(())
}

/// Reads at most `left` rows of a table and of the tables nested in it.
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
        keep(&mut seen, series.query(..).aggregate(column).map(drop));
        keep(
            &mut seen,
            series
                .query(Steps(100)..Steps(1_700))
                .aggregate(column)
                .map(drop),
        );
        let (first, last) = series.span().unwrap_or((0, 0));
        let width = (last.saturating_sub(first) / WINDOWS_MAX).max(100);
        keep(
            &mut seen,
            series.query(..).windows(Steps(width), column).map(drop),
        );
    }
    keep(
        &mut seen,
        series.query(..).reverse().for_each_vector(|_| ()).map(drop),
    );
    keep(
        &mut seen,
        series
            .query(Steps(500)..Steps(900))
            .for_each(|_, _| ())
            .map(drop),
    );
    let mut cursor = series.cursor();
    keep(&mut seen, cursor.search(Steps(1_000)).map(drop));
    for _ in 0..20 {
        keep(&mut seen, cursor.next().map(drop));
    }
    keep(&mut seen, cursor.last().map(drop));
    for _ in 0..20 {
        keep(&mut seen, cursor.previous().map(drop));
    }
    seen
}
