//! A block of a run: up to 1024 rows of one layout, sorted by series and time.
//!
//! ```text
//! 0        32     34        35  36       40             72           104
//! | header | rows | columns | 0 | class  | chunk of the | chunk of   | a chunk  | payloads, in the |
//! |        | u16  | u8      |   | u32    | series ids   | the times  | a column | order of chunks  |
//! ```
//!
//! The header is that of every block (kind RunBlock); its checksum covers everything. A block lies at a
//! multiple of 8 inside its extent, is at most 64 KiB long and ends with its last payload.

use crate::key::Key;
use crate::work::BLOCK_BYTES_MAX;
use tidalite_base::limits::VECTOR_ROWS;
use tidalite_base::{Corrupt, SeriesId, get_u16, get_u32, put_u16, put_u32};
use tidalite_codec::{
    CHUNK_BYTES, Chunk, ColumnType, Hint, Rows, RowsRef, decode_column, decode_times,
    encode_column, encode_times,
};
use tidalite_pager::{Counters, HEADER_BYTES, PageRead, PageRef, Ptr, Result};

const ROWS_AT: usize = HEADER_BYTES;
const COLUMNS_AT: usize = ROWS_AT + 2;
const CLASS_AT: usize = COLUMNS_AT + 2;
const CHUNKS_AT: usize = CLASS_AT + 4;

/// Bytes that an encoding may need beyond eight a value: alignment, tables of exceptions.
const ENCODING_SLACK: usize = 64;

/// Rows that a block of this many columns holds at most: 1024, fewer when that many could exceed 64 KiB.
pub(crate) fn block_rows_max(columns: usize) -> usize {
    let vectors = columns + 2;
    let room = BLOCK_BYTES_MAX - CHUNKS_AT - vectors * (CHUNK_BYTES + ENCODING_SLACK);
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
    let start = out.len();
    out.resize(start + CHUNKS_AT + (columns + 2) * CHUNK_BYTES, 0);
    put_u16(out, start + ROWS_AT, rows.len() as u16);
    out[start + COLUMNS_AT] = columns as u8;
    put_u32(out, start + CLASS_AT, class);
    let put = |out: &mut Vec<u8>, vector: usize, chunk: Chunk| {
        let at = start + CHUNKS_AT + vector * CHUNK_BYTES;
        out[at..at + CHUNK_BYTES].copy_from_slice(&chunk.to_bytes());
    };
    let chunk = encode_column(ColumnType::U64, series, &mut hints[columns], out);
    put(out, 0, chunk);
    let chunk = encode_times(rows.times(), &mut hints[columns + 1], out);
    put(out, 1, chunk);
    for (i, &ty) in types.iter().enumerate() {
        let chunk = encode_column(ty, rows.column(i), &mut hints[i], out);
        put(out, 2 + i, chunk);
    }
    assert!(out.len() - start <= BLOCK_BYTES_MAX, "a block's bytes");
}

/// Bytes of the block at the beginning of `bytes`, by what it says of itself; `None` when there is not that much.
pub(crate) fn encoded_len(bytes: &[u8]) -> Option<usize> {
    let vectors = usize::from(*bytes.get(COLUMNS_AT)?) + 2;
    let mut len = CHUNKS_AT + vectors * CHUNK_BYTES;
    bytes.get(..len)?;
    for vector in 0..vectors {
        let chunk = Chunk::decode_at(bytes, CHUNKS_AT + vector * CHUNK_BYTES);
        len = len.checked_add(chunk.len())?;
    }
    (len <= bytes.len()).then_some(len)
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
        if bytes.len() < CHUNKS_AT + 2 * CHUNK_BYTES {
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
        let payloads = CHUNKS_AT + (count + 2) * CHUNK_BYTES;
        if rows == 0 || rows > VECTOR_ROWS || bytes.len() < payloads {
            let found = format!("{rows} rows in {} bytes", bytes.len());
            return Err(damaged("size", found, "1 to 1024 rows".into()).into());
        }
        self.series.resize(rows, 0);
        self.rows.times.resize(rows, 0);
        self.rows.columns.resize_with(count, Vec::new);
        let mut at = payloads;
        for vector in 0..count + 2 {
            let chunk = Chunk::decode_at(&bytes, CHUNKS_AT + vector * CHUNK_BYTES);
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
                0 => decode_column(&chunk, payload, &mut self.series).map_err(placed)?,
                1 => decode_times(&chunk, payload, &mut self.rows.times).map_err(placed)?,
                _ => {
                    let column = &mut self.rows.columns[vector - 2];
                    if columns {
                        column.resize(rows, 0);
                        decode_column(&chunk, payload, column).map_err(placed)?;
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
