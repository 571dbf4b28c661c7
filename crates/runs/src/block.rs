//! A block of a run: up to 1024 rows of one layout, sorted by series and time.
//!
//! ```text
//! 0        32     34        35       36      40
//! | header | rows | columns | shifts | class | short chunks: series ids, | shifts of  | payloads, in the |
//! |        | u16  | u8      | u8     | u32   | times, a column each      | the times  | order of chunks  |
//! ```
//!
//! `shifts` are the bytes of the shifts: what is added to the times of each series but the first, where the times of each lie near a line of
//! their own (`encode_times_in_turns`). They are read behind the series ids, which say whose shift is whose; a time of the chunk is none without them.
//!
//! The header is that of every block (kind RunBlock); its checksum covers everything. A block lies at a
//! multiple of 8 inside its extent, is at most 64 KiB long and ends with its last payload.

use crate::key::Key;
use crate::work::BLOCK_BYTES_MAX;
use std::cell::RefCell;
use tidalite_base::limits::VECTOR_ROWS;
use tidalite_base::{Corrupt, SeriesId, get_u16, get_u32, put_u16, put_u32};
use tidalite_codec::{
    CHUNK_SHORT_BYTES_MAX, Chunk, ColumnType, Hint, Rows, RowsRef, SHIFTS_BYTES_MAX, decode_column,
    decode_times, encode_column, encode_times_in_turns, unshift,
};
use tidalite_pager::{Counters, HEADER_BYTES, PageRead, PageRef, Ptr, Result};

const ROWS_AT: usize = HEADER_BYTES;
const COLUMNS_AT: usize = ROWS_AT + 2;
const SHIFTS_AT: usize = COLUMNS_AT + 1;
const CLASS_AT: usize = SHIFTS_AT + 1;
const CHUNKS_AT: usize = CLASS_AT + 4;
const _: () = assert!(SHIFTS_BYTES_MAX <= u8::MAX as usize);

/// Bytes that an encoding may need beyond eight a value: alignment, tables of exceptions.
const ENCODING_SLACK: usize = 64;

/// Rows that a block of this many columns holds at most: 1024, fewer when that many could exceed 64 KiB.
pub(crate) fn block_rows_max(columns: usize) -> usize {
    let vectors = columns + 2;
    // Shifts need none: with the times they take eight bytes a row at most.
    let room = BLOCK_BYTES_MAX - CHUNKS_AT - vectors * (CHUNK_SHORT_BYTES_MAX + ENCODING_SLACK);
    (room / (8 * vectors)).min(VECTOR_ROWS)
}

/// Rows of one time of a series of this many columns at most: they are in one block, and in one vector of a leaf.
#[must_use]
pub fn time_rows_max(columns: usize) -> usize {
    block_rows_max(columns)
}

/// Appends an encoded block to `out`; the header is written when its address is known.
pub(crate) fn encode_block(
    class: u32,
    types: &[ColumnType],
    series: &[u64],
    rows: RowsRef<'_>,
    hints: &mut Vec<Hint>,
    out: &mut Vec<u8>,
) {
    let columns = types.len();
    debug_assert!(series.len() == rows.len() && rows.column_count() == columns);
    assert!(
        !rows.is_empty() && rows.len() <= block_rows_max(columns),
        "a block's rows"
    );
    hints.resize(columns + 2, Hint::default()); // columns, series ids, times
    DESK.with_borrow_mut(|desk| {
        let Desk {
            chunks,
            shifts,
            payloads,
        } = desk;
        chunks.clear();
        payloads.clear();
        let chunk = encode_column(ColumnType::U64, series, &mut hints[columns], payloads);
        chunk.put_short(chunks);
        let hint = &mut hints[columns + 1];
        let chunk = encode_times_in_turns(series, rows.times(), hint, shifts, payloads);
        chunk.put_short(chunks);
        for (i, &ty) in types.iter().enumerate() {
            let chunk = encode_column(ty, rows.column(i), &mut hints[i], payloads);
            chunk.put_short(chunks);
        }
        let start = out.len();
        out.resize(start + CHUNKS_AT, 0);
        put_u16(out, start + ROWS_AT, rows.len() as u16);
        out[start + COLUMNS_AT] = columns as u8;
        out[start + SHIFTS_AT] = shifts.len() as u8;
        put_u32(out, start + CLASS_AT, class);
        out.extend_from_slice(chunks);
        out.extend_from_slice(shifts);
        out.extend_from_slice(payloads);
        assert!(out.len() - start <= BLOCK_BYTES_MAX, "a block's bytes");
    });
}

/// The parts of a block while it is encoded: how long its chunks are is known when the payloads are.
#[derive(Default)]
struct Desk {
    chunks: Vec<u8>,
    shifts: Vec<u8>,
    payloads: Vec<u8>,
}

thread_local! {
    static DESK: RefCell<Desk> = RefCell::default();
}

/// The chunks of a block of so many columns, and where they end.
fn chunks(bytes: &[u8], columns: usize) -> Option<(Vec<Chunk>, usize)> {
    let rows = usize::from(get_u16(bytes.get(..CHUNKS_AT)?, ROWS_AT));
    let mut at = CHUNKS_AT;
    let mut chunks = Vec::with_capacity(columns + 2);
    for _ in 0..columns + 2 {
        let (chunk, end) = Chunk::get_short(bytes, at, rows)?;
        chunks.push(chunk);
        at = end;
    }
    Some((chunks, at))
}

/// Bytes of the block at the beginning of `bytes`, by what it says of itself; `None` when there is not that much.
pub(crate) fn encoded_len(bytes: &[u8]) -> Option<usize> {
    let (_, columns) = Block::layout(bytes);
    let (chunks, at) = chunks(bytes, columns)?;
    let behind = chunks.iter().map(|chunk| chunk.len() as u64).sum::<u64>();
    let len = at as u64 + u64::from(bytes[SHIFTS_AT]) + behind;
    usize::try_from(len).ok().filter(|&len| len <= bytes.len())
}

/// A decoded block. Its memory is used again for the next one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    pub(crate) class: u32,
    pub(crate) series: Vec<u64>,
    pub(crate) rows: Rows,
}

impl Block {
    pub(crate) fn len(&self) -> usize {
        self.series.len()
    }

    pub(crate) fn key(&self, row: usize) -> Key {
        Key::new(self.class, SeriesId(self.series[row]), self.rows.times[row])
    }

    /// The first row at or after `key`; `len` when there is none.
    pub(crate) fn lower_bound(&self, key: &Key) -> usize {
        if self.class != key.class {
            return if self.class < key.class {
                self.len()
            } else {
                0
            };
        }
        let series = self.series.partition_point(|&s| s < key.series.0);
        let end = self.series_end(series, key.series);
        series + self.rows.times[series..end].partition_point(|&t| t < key.time)
    }

    /// Class and columns of the block that is in `bytes`; 0 and 0 when they are too few.
    pub(crate) fn layout(bytes: &[u8]) -> (u32, usize) {
        if bytes.len() < CHUNKS_AT {
            return (0, 0);
        }
        (get_u32(bytes, CLASS_AT), usize::from(bytes[COLUMNS_AT]))
    }

    /// Where the rows of `series` end that begin at `from`.
    pub(crate) fn series_end(&self, from: usize, series: SeriesId) -> usize {
        from + self.series[from..].partition_point(|&s| s <= series.0)
    }

    /// Reads and verifies a block, with its columns or only its keys.
    pub(crate) fn read<R: PageRead>(
        &mut self,
        r: &R,
        ptr: &Ptr,
        layouts: &[Box<[ColumnType]>],
        columns: bool,
    ) -> Result<()> {
        let bytes: PageRef<'_> = r.block(ptr)?;
        let damaged = |what: &str, found: String, expected: String| {
            Corrupt::new(format!("run block ({what})"), ptr.addr, found, expected)
        };
        if bytes.len() < CHUNKS_AT {
            let found = format!("{} bytes", bytes.len());
            return Err(damaged("length", found, "a block".into()).into());
        }
        let (rows, count) = (get_u16(&bytes, ROWS_AT), usize::from(bytes[COLUMNS_AT]));
        self.class = get_u32(&bytes, CLASS_AT);
        let layout = layouts.get(self.class as usize).map(|types| types.len());
        if layout != Some(count) {
            let found = format!("{count} columns of class {}", self.class);
            return Err(damaged("layout", found, format!("{layout:?}")).into());
        }
        let rows = usize::from(rows);
        let Some((chunks, shifts_at)) =
            chunks(&bytes, count).filter(|_| (1..=VECTOR_ROWS).contains(&rows))
        else {
            let found = format!("{rows} rows in {} bytes", bytes.len());
            return Err(damaged("size", found, "1 to 1024 rows, their chunks".into()).into());
        };
        let mut at = shifts_at + usize::from(bytes[SHIFTS_AT]);
        let shifts = bytes.get(shifts_at..at).unwrap_or_default();
        self.series.resize(rows, 0);
        self.rows.times.resize(rows, 0);
        self.rows.columns.resize_with(count, Vec::new);
        for (vector, chunk) in chunks.iter().enumerate() {
            let Some(payload) = bytes.get(at..at.saturating_add(chunk.len())) else {
                let found = format!("payload of {} bytes at {at}", chunk.len());
                return Err(damaged("payload", found, format!("{} bytes", bytes.len())).into());
            };
            at += chunk.len();
            let placed = |mut corrupt: Corrupt| {
                corrupt.at = ptr.addr;
                corrupt
            };
            match vector {
                0 => decode_column(chunk, payload, &mut self.series).map_err(placed)?,
                1 => {
                    let times = &mut self.rows.times;
                    decode_times(chunk, payload, times).map_err(placed)?;
                    if !shifts.is_empty() {
                        unshift(&self.series, shifts, times).map_err(placed)?;
                    }
                }
                _ => {
                    let column = &mut self.rows.columns[vector - 2];
                    if columns {
                        column.resize(rows, 0);
                        decode_column(chunk, payload, column).map_err(placed)?;
                    } else {
                        column.clear();
                    }
                }
            }
        }
        if at != bytes.len() {
            let found = format!("{} bytes", bytes.len());
            return Err(damaged("payloads", found, format!("{at} bytes")).into());
        }
        Counters::bump(&r.counters().vectors_decoded);
        Ok(())
    }
}
