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
use crate::limits::BLOCK_BYTES_MAX;
use std::cell::RefCell;
use tidalite_base::limits::VECTOR_ROWS;
use tidalite_base::{Corrupt, SeriesId, get_u16, get_u32, put_u16, put_u32};
use tidalite_codec::{
    CHUNK_SHORT_BYTES_MAX, Chunk, ColumnType, Hint, Rows, RowsRef, SHIFTS_BYTES_MAX, count_up_to,
    decode_column, decode_times, encode_column, encode_times_in_turns, shift_at, unshift, word_at,
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

/// Where a block begins inside an extent: multiples of this.
pub(crate) const BLOCK_ALIGN: usize = 8;

/// Raw bytes of a row in a layout of so many columns.
pub(crate) fn row_bytes(columns: usize) -> u64 {
    8 * (2 + columns as u64)
}

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
    /// For a vector of which one word is wanted.
    scratch: Vec<u64>,
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
        let encoded = Encoded::of(&bytes, ptr.addr, layouts)?;
        let (rows, count) = (encoded.rows, encoded.columns);
        self.class = encoded.class;
        self.series.resize(rows, 0);
        self.rows.times.resize(rows, 0);
        self.rows.columns.resize_with(count, Vec::new);
        encoded.each(|vector, chunk, payload| match vector {
            0 => decode_column(chunk, payload, &mut self.series),
            1 => {
                let times = &mut self.rows.times;
                decode_times(chunk, payload, times)?;
                match encoded.shifts {
                    [] => Ok(()),
                    shifts => unshift(&self.series, shifts, times),
                }
            }
            _ => {
                let column = &mut self.rows.columns[vector - 2];
                column.clear();
                if columns {
                    column.resize(rows, 0);
                    decode_column(chunk, payload, column)?;
                }
                Ok(())
            }
        })?;
        Counters::bump(&r.counters().vectors_decoded);
        Ok(())
    }

    /// Reads and verifies a block for the last row of a series in it, and decodes no more than that takes: of each vector one
    /// word, where its encoding has single words. What this block holds stays.
    pub(crate) fn read_last<R: PageRead>(
        &mut self,
        r: &R,
        ptr: &Ptr,
        layouts: &[Box<[ColumnType]>],
        (class, series): (u32, SeriesId),
    ) -> Result<Option<(i64, Vec<u64>)>> {
        let bytes: PageRef<'_> = r.block(ptr)?;
        let encoded = Encoded::of(&bytes, ptr.addr, layouts)?;
        if encoded.class != class {
            return Ok(None);
        }
        let (rows, scratch) = (encoded.rows, &mut self.scratch);
        // The row and the shift of its time, once the ids have told them; then its time and its words.
        let (mut found, mut shift, mut time) = (None, 0, 0);
        let mut words = Vec::with_capacity(encoded.columns);
        encoded.each(|vector, chunk, payload| {
            if vector == 0 {
                // Whose shift is whose only all ids tell.
                let end = match encoded.shifts {
                    [] => count_up_to(chunk, payload, rows, series.0)?,
                    _ => None,
                };
                found = match end {
                    Some(0) => None,
                    Some(end) => {
                        let id = single(chunk, payload, rows, end - 1, scratch)?;
                        (id == series.0).then_some(end - 1)
                    }
                    None => {
                        let ids = decoded(chunk, payload, rows, scratch)?;
                        let end = ids.partition_point(|&id| id <= series.0);
                        let row = end.checked_sub(1).filter(|&row| ids[row] == series.0);
                        if !encoded.shifts.is_empty() {
                            shift = shift_at(ids, encoded.shifts, row.unwrap_or(0))?;
                        }
                        row
                    }
                };
                return Ok(());
            }
            let Some(row) = found else { return Ok(()) };
            let word = single(chunk, payload, rows, row, scratch)?;
            match vector {
                1 => time = (word as i64).wrapping_add(shift),
                _ => words.push(word),
            }
            Ok(())
        })?;
        Counters::bump(&r.counters().vectors_decoded);
        Ok(found.map(|_| (time, words)))
    }
}

/// Word `row` of a vector, by decoding it into `scratch` where nothing else tells it.
fn single(
    chunk: &Chunk,
    payload: &[u8],
    rows: usize,
    row: usize,
    scratch: &mut Vec<u64>,
) -> std::result::Result<u64, Corrupt> {
    if let Some(word) = word_at(chunk, payload, rows, row)? {
        return Ok(word);
    }
    Ok(decoded(chunk, payload, rows, scratch)?[row])
}

/// A vector, decoded into `scratch`, which only grows: clearing it each time would take as long as decoding does.
fn decoded<'s>(
    chunk: &Chunk,
    payload: &[u8],
    rows: usize,
    scratch: &'s mut Vec<u64>,
) -> std::result::Result<&'s [u64], Corrupt> {
    if scratch.len() < rows {
        scratch.resize(rows, 0);
    }
    decode_column(chunk, payload, &mut scratch[..rows])?;
    Ok(&scratch[..rows])
}

/// A block's bytes, of which everything before the payloads has been read.
struct Encoded<'b> {
    bytes: &'b [u8],
    addr: u64,
    class: u32,
    rows: usize,
    columns: usize,
    chunks: Vec<Chunk>,
    shifts: &'b [u8],
    payloads_at: usize,
}

impl<'b> Encoded<'b> {
    fn of(
        bytes: &'b [u8],
        addr: u64,
        layouts: &[Box<[ColumnType]>],
    ) -> std::result::Result<Self, Corrupt> {
        if bytes.len() < CHUNKS_AT {
            let found = format!("{} bytes", bytes.len());
            return Err(damaged(addr, "length", found, "a block"));
        }
        let (class, columns) = Block::layout(bytes);
        let layout = layouts.get(class as usize).map(|types| types.len());
        if layout != Some(columns) {
            let found = format!("{columns} columns of class {class}");
            return Err(damaged(addr, "layout", found, &format!("{layout:?}")));
        }
        let rows = usize::from(get_u16(bytes, ROWS_AT));
        let Some((chunks, shifts_at)) =
            chunks(bytes, columns).filter(|_| (1..=VECTOR_ROWS).contains(&rows))
        else {
            let found = format!("{rows} rows in {} bytes", bytes.len());
            return Err(damaged(addr, "size", found, "1 to 1024 rows, their chunks"));
        };
        let payloads_at = shifts_at + usize::from(bytes[SHIFTS_AT]);
        Ok(Self {
            bytes,
            addr,
            class,
            rows,
            columns,
            chunks,
            // Where they are cut, so is the first payload.
            shifts: bytes.get(shifts_at..payloads_at).unwrap_or_default(),
            payloads_at,
        })
    }

    /// Calls `f` with the number of each vector (ids, times, columns), its chunk and its payload.
    fn each(
        &self,
        mut f: impl FnMut(usize, &Chunk, &[u8]) -> std::result::Result<(), Corrupt>,
    ) -> std::result::Result<(), Corrupt> {
        let (bytes, mut at) = (self.bytes, self.payloads_at);
        for (vector, chunk) in self.chunks.iter().enumerate() {
            let Some(payload) = bytes.get(at..at.saturating_add(chunk.len())) else {
                let found = format!("payload of {} bytes at {at}", chunk.len());
                let expected = format!("{} bytes", bytes.len());
                return Err(damaged(self.addr, "payload", found, &expected));
            };
            at += chunk.len();
            f(vector, chunk, payload).map_err(|mut corrupt| {
                corrupt.at = self.addr;
                corrupt
            })?;
        }
        if at != bytes.len() {
            let (found, expected) = (format!("{} bytes", bytes.len()), format!("{at} bytes"));
            return Err(damaged(self.addr, "payloads", found, &expected));
        }
        Ok(())
    }
}

#[cold]
fn damaged(addr: u64, what: &str, found: String, expected: &str) -> Corrupt {
    Corrupt::new(format!("run block ({what})"), addr, found, expected)
}
