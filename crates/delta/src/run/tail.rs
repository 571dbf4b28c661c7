//! The tail page: the newest rows, uncompressed, in commit order.
//!
//! ```text
//! 0        32     36     40
//! | header | rows | used | joins << 63 | class << 48 | series | time | one word per column | next row ...
//! |        | u32  | u32  |      u64                           | i64  | u64 each            |
//! ```
//!
//! `used` counts from the beginning of the page. A commit of a few rows copies the page and appends to it. A row
//! replaces all earlier rows with its series and time, unless it joins: a joining row directly follows a row of its
//! series with equal time, and both are kept. Bytes beyond `used` are zero.

use crate::key::Key;
use crate::limits::LAYOUTS_MAX;
use crate::run::block::row_bytes;
use tidalite_base::{Corrupt, SeriesId, get_i64, get_u32, get_u64, put_i64, put_u32, put_u64};
use tidalite_codec::{ColumnType, Rows, RowsRef};
use tidalite_pager::Error;
use tidalite_pager::{HEADER_BYTES, Kind, PageRead, PageWrite, Ptr, Result};

const ROWS_AT: usize = HEADER_BYTES;
const USED_AT: usize = ROWS_AT + 4;
const FIRST_ROW_AT: usize = USED_AT + 4;

const SERIES_BITS: u32 = 48;
/// Flag of a row that is kept in addition to the previous row of the same time; a row without it replaces earlier
/// rows.
const JOINS: u64 = 1 << 63;
const _: () = assert!(LAYOUTS_MAX < 1 << 15, "classes leave the highest bit free");

/// Maximum series id in the delta. The id of a row shares a 64-bit word with the class and a flag.
pub const SERIES_MAX: u64 = (1 << SERIES_BITS) - 1;

/// Returns an error if a series id exceeds `SERIES_MAX`.
pub(crate) fn expect_series(series: SeriesId) -> Result<()> {
    if series.0 <= SERIES_MAX {
        return Ok(());
    }
    Err(Error::Limit {
        what: "series id",
        found: series.0,
        limit: SERIES_MAX,
    })
}

/// Maximum size in bytes of the rows in a tail page.
pub(crate) fn tail_capacity(page_size: usize) -> usize {
    page_size - FIRST_ROW_AT
}

/// Rows of one series, read from the tail page or to be appended to it.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) class: u32,
    pub(crate) series: SeriesId,
    pub(crate) rows: Rows,
}

impl Piece {
    pub(crate) fn place(&self) -> (u32, SeriesId) {
        (self.class, self.series)
    }
}

/// Returns the size in bytes of the rows in the tail page. A null pointer stands for an empty tail page.
pub(crate) fn used<R: PageRead>(r: &R, tail: &Ptr) -> Result<usize> {
    if tail.is_null() {
        return Ok(0);
    }
    let page = r.page(tail)?;
    Ok(bounds(&page, tail)?.1 - FIRST_ROW_AT)
}

fn bounds(page: &[u8], tail: &Ptr) -> Result<(usize, usize)> {
    let (rows, used) = (
        get_u32(page, ROWS_AT) as usize,
        get_u32(page, USED_AT) as usize,
    );
    if used < FIRST_ROW_AT || used > page.len() || rows > (used - FIRST_ROW_AT) / 16 {
        let found = format!("{rows} rows in {used} bytes");
        return Err(Corrupt::new("tail page", tail.addr, found, "rows within the page").into());
    }
    Ok((rows, used))
}

/// Calls `f` with every row of the tail page, oldest first: its key, whether it is kept in addition to the row before
/// it, and one word per column.
fn each_row<'p>(
    page: &'p [u8],
    tail: &Ptr,
    layouts: &[Box<[ColumnType]>],
    mut f: impl FnMut(Key, bool, &'p [u8]),
) -> Result<()> {
    let (rows, used) = bounds(page, tail)?;
    let mut at = FIRST_ROW_AT;
    let damaged = |found: String| Corrupt::new("tail page", tail.addr, found, "whole rows");
    for row in 0..rows {
        if used - at < 16 {
            return Err(damaged(format!("row {row} cut off")).into());
        }
        let (place, time) = (get_u64(page, at), get_i64(page, at + 8));
        let class = ((place & !JOINS) >> SERIES_BITS) as u32;
        let Some(types) = layouts.get(class as usize) else {
            return Err(damaged(format!("row {row} of class {class}")).into());
        };
        let end = at + row_bytes(types.len()) as usize;
        if end > used {
            return Err(damaged(format!("row {row} cut off")).into());
        }
        let key = Key::new(class, SeriesId(place & SERIES_MAX), time);
        f(key, place & JOINS != 0, &page[at + 16..end]);
        at = end;
    }
    if at != used {
        return Err(damaged(format!("{} bytes after the last row", used - at)).into());
    }
    Ok(())
}

fn push_words(rows: &mut Rows, time: i64, words: &[u8]) {
    rows.times.push(time);
    for (column, word) in rows.columns.iter_mut().zip(words.chunks_exact(8)) {
        column.push(get_u64(word, 0));
    }
}

/// Returns all rows of the tail page ordered by class, series and time. If a time is repeated, only the newest row of
/// that time is returned, together with the rows that joined it (are kept in addition).
pub(crate) fn pieces<R: PageRead>(
    r: &R,
    tail: &Ptr,
    layouts: &[Box<[ColumnType]>],
) -> Result<Vec<Piece>> {
    if tail.is_null() {
        return Ok(Vec::new());
    }
    let page = r.page(tail)?;
    let mut all: Vec<(Key, bool, &[u8])> = Vec::new();
    each_row(&page, tail, layouts, |key, joins, words| {
        all.push((key, joins, words));
    })?;
    all.sort_by_key(|(key, ..)| *key); // The sort is stable: of rows with equal keys, the newest is last.
    let mut pieces: Vec<Piece> = Vec::new();
    for (i, (key, _, words)) in all.iter().enumerate() {
        // A newer row with the same key replaces the row, unless the newer row joins it (both are kept).
        let mut newer = all[i + 1..].iter().take_while(|(next, ..)| next == key);
        if newer.any(|(_, joins, _)| !joins) {
            continue;
        }
        if pieces.last().map(Piece::place) != Some(key.place()) {
            pieces.push(Piece {
                class: key.class,
                series: key.series,
                rows: Rows::new(layouts[key.class as usize].len()),
            });
        }
        if let Some(piece) = pieces.last_mut() {
            push_words(&mut piece.rows, key.time, words);
        }
    }
    debug_assert!(
        pieces.is_sorted_by(|a, b| a.place() < b.place()),
        "a piece for each series, in order"
    );
    Ok(pieces)
}

/// Appends the rows of one series with `from <= time <= to` to `out`, oldest first, unsorted. Appends to `begins` the
/// index of each row that replaces earlier rows of its time instead of joining them.
pub(crate) fn series_rows<R: PageRead>(
    r: &R,
    tail: &Ptr,
    layouts: &[Box<[ColumnType]>],
    place: (u32, SeriesId),
    (from, to): (i64, i64),
    (out, begins): (&mut Rows, &mut Vec<usize>),
) -> Result<()> {
    if tail.is_null() {
        return Ok(());
    }
    let page = r.page(tail)?;
    each_row(&page, tail, layouts, |key, joins, words| {
        if key.place() == place && from <= key.time && key.time <= to {
            if !joins {
                begins.push(out.len());
            }
            push_words(out, key.time, words);
        }
    })
}

/// Writes a new tail page with the rows of the old page followed by `pieces`; returns the sealed page and its number
/// of rows. The caller must make sure that the rows fit.
pub(crate) fn append<W: PageWrite>(w: &mut W, tail: &Ptr, pieces: &[Piece]) -> Result<(Ptr, u64)> {
    let ptr = if tail.is_null() {
        let ptr = w.new_page(Kind::Tail, 0)?;
        put_u32(w.page_mut(&ptr)?, USED_AT, FIRST_ROW_AT as u32);
        ptr
    } else {
        w.shadow(tail)?
    };
    let page = w.page_mut(&ptr)?;
    let (mut count, used) = bounds(page, tail)?;
    debug_assert!(used <= page.len(), "the used bytes end within the page");
    let mut at = used;
    for piece in pieces {
        at = write_rows(page, at, piece.class, piece.series, piece.rows.view());
        count += piece.rows.len();
    }
    assert!(at <= page.len(), "the rows fit in the page");
    put_u32(page, ROWS_AT, count as u32);
    put_u32(page, USED_AT, at as u32);
    Ok((w.seal_page(&ptr)?, count as u64))
}

fn write_rows(
    page: &mut [u8],
    mut at: usize,
    class: u32,
    series: SeriesId,
    rows: RowsRef<'_>,
) -> usize {
    debug_assert!(
        series.0 <= SERIES_MAX,
        "series ids leave room for the class"
    );
    debug_assert!(
        (class as usize) < LAYOUTS_MAX,
        "classes leave the highest bit free"
    );
    for (i, &time) in rows.times().iter().enumerate() {
        let joins = match i.checked_sub(1) {
            Some(before) if rows.times()[before] == time => JOINS,
            _ => 0,
        };
        put_u64(page, at, joins | u64::from(class) << SERIES_BITS | series.0);
        put_i64(page, at + 8, time);
        for column in 0..rows.column_count() {
            put_u64(page, at + 16 + 8 * column, rows.column(column)[i]);
        }
        at += row_bytes(rows.column_count()) as usize;
    }
    at
}

/// Writes a new tail page without the rows of one series with `from <= time <= to`. Returns the page (null if no row
/// is left), the number of its rows, and the removed times. Returns `None` if the page has no such rows.
pub(crate) fn delete<W: PageWrite>(
    w: &mut W,
    tail: &Ptr,
    layouts: &[Box<[ColumnType]>],
    place: (u32, SeriesId),
    (from, to): (i64, i64),
) -> Result<Option<(Ptr, u64, Vec<i64>)>> {
    if tail.is_null() {
        return Ok(None);
    }
    let mut removed = Vec::new();
    let (mut kept, mut count) = (Vec::new(), 0u64);
    let page = w.page(tail)?;
    each_row(&page, tail, layouts, |key, joins, words| {
        if key.place() == place && from <= key.time && key.time <= to {
            removed.push(key.time);
        } else {
            let head = u64::from(key.class) << SERIES_BITS | key.series.0;
            let joins = if joins { JOINS } else { 0 };
            kept.extend_from_slice(&(joins | head).to_le_bytes());
            kept.extend_from_slice(&key.time.to_le_bytes());
            kept.extend_from_slice(words);
            count += 1;
        }
    })?;
    drop(page);
    if removed.is_empty() {
        return Ok(None);
    }
    if count == 0 {
        w.free_page(tail);
        return Ok(Some((Ptr::NULL, 0, removed)));
    }
    let ptr = w.shadow(tail)?;
    let page = w.page_mut(&ptr)?;
    let end = FIRST_ROW_AT + kept.len();
    page[FIRST_ROW_AT..end].copy_from_slice(&kept);
    page[end..].fill(0);
    put_u32(page, ROWS_AT, count as u32);
    put_u32(page, USED_AT, end as u32);
    Ok(Some((w.seal_page(&ptr)?, count, removed)))
}

/// Number of rows in the tail page, including repeated timestamps.
pub(crate) fn row_count<R: PageRead>(r: &R, tail: &Ptr) -> Result<u64> {
    Ok(bounds(&r.page(tail)?, tail)?.0 as u64)
}
