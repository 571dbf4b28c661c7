//! A block of a run: up to 1024 rows of one layout, sorted by series and time.
//!
//! ```text
//! 0        32     34        35       36      40
//! | header | rows | columns | shifts | class | lengths    | chunks: series ids, | shifts of  | payloads, in the |
//! |        | u16  | u8      | u8     | u32   | u16: of    | times, one per      | the times  | order of chunks  |
//!                                            | a payload  | column              |
//! ```
//!
//! `shifts` is the length of the shifts in bytes. A shift is added to the times of each series except the first, if the
//! times of each series lie near a line of their own (`encode_times_of_series`). Shifts are read after the series ids,
//! which assign them to series; without them the values of the times chunk are not times.
//!
//! The header is the standard block header (kind RunBlock); its checksum covers the whole block. A block starts at a
//! multiple of 8 inside its extent, is at most 64 KiB long and ends with its last payload.

use crate::key::Key;
use crate::limits::BLOCK_BYTES_MAX;
use std::cell::RefCell;
use tidalite_base::limits::VECTOR_ROWS;
use tidalite_base::{Corrupt, SeriesId, get_u16, get_u32, put_u16, put_u32};
use tidalite_codec::{
    CHUNK_BYTES_MAX, Chunk, ColumnType, EncoderState, Rows, RowsRef, SHIFTS_BYTES_MAX, count_up_to,
    decode_column, decode_times, encode_column, encode_times_of_series, shift_at, unshift, word_at,
};
use tidalite_pager::{Counters, HEADER_BYTES, PageRead, PageRef, Ptr, Result};

const ROWS_AT: usize = HEADER_BYTES;
const COLUMNS_AT: usize = ROWS_AT + 2;
const SHIFTS_AT: usize = COLUMNS_AT + 1;
const CLASS_AT: usize = SHIFTS_AT + 1;
const LENGTHS_AT: usize = CLASS_AT + 4;
/// Length in bytes of the field for the length of a payload.
const LENGTH_BYTES: usize = 2;
const _: () = assert!(SHIFTS_BYTES_MAX <= u8::MAX as usize);

/// Number of bytes that an encoded vector may need beyond eight per value, for alignment and tables of exceptions.
const ENCODING_SLACK: usize = 64;

/// Maximum number of bytes that a vector needs in a block beyond eight per value.
const VECTOR_BYTES_MAX: usize = LENGTH_BYTES + CHUNK_BYTES_MAX + ENCODING_SLACK;

/// Alignment in bytes of blocks inside an extent.
pub(crate) const BLOCK_ALIGN: usize = 8;

/// Size in bytes of an uncompressed row with this number of columns: series, time and columns take 8 bytes each.
pub(crate) fn row_bytes(columns: usize) -> u64 {
    8 * (2 + columns as u64)
}

/// Maximum number of rows in a block with this many columns: 1024, or fewer if 1024 rows could exceed 64 KiB.
pub(crate) fn block_rows_max(columns: usize) -> usize {
    let vectors = columns + 2;
    // The shifts of times need no extra room: together with the times they take at most eight bytes per row.
    let room = BLOCK_BYTES_MAX - LENGTHS_AT - vectors * VECTOR_BYTES_MAX;
    (room / (8 * vectors)).min(VECTOR_ROWS)
}

/// Maximum number of rows with equal time in a series with this many columns. All such rows must fit into one block,
/// and into one vector of a leaf.
#[must_use]
pub fn time_rows_max(columns: usize) -> usize {
    block_rows_max(columns)
}

/// Appends an encoded block to `out`. The header stays empty until the address of the block is known.
pub(crate) fn encode_block(
    class: u32,
    types: &[ColumnType],
    series: &[u64],
    rows: RowsRef<'_>,
    encoder_states: &mut Vec<EncoderState>,
    out: &mut Vec<u8>,
) {
    let columns = types.len();
    debug_assert!(series.len() == rows.len() && rows.column_count() == columns);
    assert!(
        !rows.is_empty() && rows.len() <= block_rows_max(columns),
        "a block's rows"
    );
    encoder_states.resize(columns + 2, EncoderState::default()); // columns, series ids, times
    ENCODE_SCRATCH.with_borrow_mut(|scratch| {
        let EncodeScratch {
            lengths,
            chunks,
            shifts,
            payloads,
        } = scratch;
        for part in [&mut *lengths, chunks, payloads] {
            part.clear();
        }
        let mut put = |chunk: Chunk| {
            // The length of a chunk and its payload fits into 16 bits, since a block with its header is at most 64
            // KiB long.
            lengths.extend_from_slice(&(chunk.len() as u16).to_le_bytes());
            chunk.put(chunks);
        };
        put(encode_column(
            ColumnType::U64,
            series,
            &mut encoder_states[columns],
            payloads,
        ));
        let state = &mut encoder_states[columns + 1];
        put(encode_times_of_series(
            series,
            rows.times(),
            state,
            shifts,
            payloads,
        ));
        for (i, &ty) in types.iter().enumerate() {
            put(encode_column(
                ty,
                rows.column(i),
                &mut encoder_states[i],
                payloads,
            ));
        }
        let start = out.len();
        out.resize(start + LENGTHS_AT, 0);
        put_u16(out, start + ROWS_AT, rows.len() as u16);
        out[start + COLUMNS_AT] = columns as u8;
        out[start + SHIFTS_AT] = shifts.len() as u8;
        put_u32(out, start + CLASS_AT, class);
        for part in [&mut *lengths, chunks, shifts, payloads] {
            out.append(part);
        }
        assert!(out.len() - start <= BLOCK_BYTES_MAX, "a block's bytes");
    });
}

/// Memory for encoding a block. The chunk lengths, which precede the payloads, are known only after these are
/// encoded.
#[derive(Default)]
struct EncodeScratch {
    lengths: Vec<u8>,
    chunks: Vec<u8>,
    shifts: Vec<u8>,
    payloads: Vec<u8>,
}

thread_local! {
    static ENCODE_SCRATCH: RefCell<EncodeScratch> = RefCell::default();
}

/// Decodes the chunks (encoding descriptions) of a block with this many columns; also returns the offset of their
/// end.
fn chunks(bytes: &[u8], columns: usize) -> Option<(Vec<Chunk>, usize)> {
    let mut at = LENGTHS_AT + LENGTH_BYTES * (columns + 2);
    let head = bytes.get(..at)?;
    let rows = usize::from(get_u16(head, ROWS_AT));
    let mut chunks = Vec::with_capacity(columns + 2);
    for vector in 0..columns + 2 {
        let len = usize::from(get_u16(head, LENGTHS_AT + LENGTH_BYTES * vector));
        let (chunk, end) = Chunk::get(bytes, at, (rows, len))?;
        chunks.push(chunk);
        at = end;
    }
    Some((chunks, at))
}

/// Computes the length in bytes of the block at the beginning of `bytes` from the fields of the block; `None` if
/// `bytes` is shorter.
pub(crate) fn encoded_len(bytes: &[u8]) -> Option<usize> {
    let (_, columns) = Block::layout(bytes);
    let (chunks, at) = chunks(bytes, columns)?;
    let payloads = chunks.iter().map(Chunk::len).sum::<usize>();
    let len = at + usize::from(bytes[SHIFTS_AT]) + payloads;
    (len <= bytes.len()).then_some(len)
}

/// A decoded block of a run. Its memory is reused for the next block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    pub(crate) class: u32,
    pub(crate) series: Vec<u64>,
    pub(crate) rows: Rows,
    /// Memory for decoding a vector when only one of its values is needed.
    scratch: Vec<u64>,
}

impl Block {
    pub(crate) fn len(&self) -> usize {
        self.series.len()
    }

    pub(crate) fn key(&self, row: usize) -> Key {
        Key::new(self.class, SeriesId(self.series[row]), self.rows.times[row])
    }

    /// Returns the index of the first row at or after `key`, or the number of rows if all are before `key`.
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

    /// Returns the class and the number of columns of the block in `bytes`; 0 and 0 if `bytes` is too short.
    pub(crate) fn layout(bytes: &[u8]) -> (u32, usize) {
        if bytes.len() < LENGTHS_AT {
            return (0, 0);
        }
        (get_u32(bytes, CLASS_AT), usize::from(bytes[COLUMNS_AT]))
    }

    /// Returns the index after the last row of `series`, whose rows begin at or after `from`.
    pub(crate) fn series_end(&self, from: usize, series: SeriesId) -> usize {
        from + self.series[from..].partition_point(|&s| s <= series.0)
    }

    /// Reads, verifies and decodes a block, with its columns or only its keys.
    pub(crate) fn read<R: PageRead>(
        &mut self,
        r: &R,
        ptr: &Ptr,
        layouts: &[Box<[ColumnType]>],
        columns: bool,
    ) -> Result<()> {
        let bytes: PageRef<'_> = r.block(ptr)?;
        let encoded = EncodedBlock::of(&bytes, ptr.addr, layouts)?;
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

    /// Reads and verifies a block, but decodes only the last row of a series: if the encoding of a vector has random
    /// access, only one value of that vector. The decoded contents of `self` are unchanged.
    pub(crate) fn read_last<R: PageRead>(
        &mut self,
        r: &R,
        ptr: &Ptr,
        layouts: &[Box<[ColumnType]>],
        (class, series): (u32, SeriesId),
    ) -> Result<Option<(i64, Vec<u64>)>> {
        let bytes: PageRef<'_> = r.block(ptr)?;
        let encoded = EncodedBlock::of(&bytes, ptr.addr, layouts)?;
        if encoded.class != class {
            return Ok(None);
        }
        let (rows, scratch) = (encoded.rows, &mut self.scratch);
        // The series ids give the index of the row and the shift of its time. The vectors of times and values follow
        // the ids.
        let (mut found, mut shift, mut time) = (None, 0, 0);
        let mut words = Vec::with_capacity(encoded.columns);
        encoded.each(|vector, chunk, payload| {
            if vector == 0 {
                // Shifts are stored per series, so finding the shift of a series requires that all series ids are
                // decoded.
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

/// Returns value `row` of a vector; decodes the vector into `scratch` if its encoding has no random access.
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

/// Decodes a vector into `scratch`, which only grows: clearing it each time would take as long as decoding.
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

/// An encoded block with all fields before the payloads parsed.
struct EncodedBlock<'b> {
    bytes: &'b [u8],
    addr: u64,
    class: u32,
    rows: usize,
    columns: usize,
    chunks: Vec<Chunk>,
    shifts: &'b [u8],
    payloads_at: usize,
}

impl<'b> EncodedBlock<'b> {
    fn of(
        bytes: &'b [u8],
        addr: u64,
        layouts: &[Box<[ColumnType]>],
    ) -> std::result::Result<Self, Corrupt> {
        if bytes.len() < LENGTHS_AT {
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
            // If the shifts are truncated, the first payload is, too, and an error is reported for that payload.
            shifts: bytes.get(shifts_at..payloads_at).unwrap_or_default(),
            payloads_at,
        })
    }

    /// Calls `f` with the index of each vector (series ids, times, columns), its chunk and its payload.
    fn each(
        &self,
        mut f: impl FnMut(usize, &Chunk, &[u8]) -> std::result::Result<(), Corrupt>,
    ) -> std::result::Result<(), Corrupt> {
        let (bytes, mut at) = (self.bytes, self.payloads_at);
        for (vector, chunk) in self.chunks.iter().enumerate() {
            let Some(payload) = bytes.get(at..at + chunk.len()) else {
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
