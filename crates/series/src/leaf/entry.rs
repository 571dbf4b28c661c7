//! Entries of a leaf's directory: each describes the times, or one column, of one vector.
//!
//! ```text
//! of a column   | statistics: 12 short integers                                        | chunk | checksum u64 |
//! of the times  | gap, length, missing: 3 short integers                               | chunk | checksum u64 |
//!                                                                 only if the payload has bytes
//! statistics   `Stats::to_fields`, whose times are row numbers if the times are stepped, otherwise units of time since
//!              the vector's begin
//! gap          begin less the end of the vector before; in the first vector 0
//! length       end less begin
//! missing      1024 less the number of rows
//! chunk        `Chunk::put`
//! ```
//!
//! Statistics and spans come first, because queries read thousands of them and need no chunk (the description that
//! decodes a payload). The row counts of chunk and statistics equal the vector's row count; the payload length is
//! stored before the entries (directory.rs).

use crate::leaf::directory::EntryPosition;
use crate::leaf::open_vector::OpenVector;
use tidalite_base::limits::VECTOR_ROWS;
use tidalite_base::{Corrupt, get_u64};
use tidalite_codec::short;
use tidalite_codec::{CHUNK_BYTES_MAX, Chunk, Clock, ColumnType, STATS_FIELDS, Stats};

/// Number of integers that describe the time span of a vector: gap, length and number of missing rows.
const SPAN_FIELDS: usize = 3;
const CHECKSUM_BYTES: usize = 8;

/// Length in bytes of the largest entry of a column.
pub(super) const COLUMN_ENTRY_BYTES_MAX: usize =
    short::bytes_max(STATS_FIELDS) + CHUNK_BYTES_MAX + CHECKSUM_BYTES;
/// Length in bytes of the largest entry of times.
pub(super) const TIME_ENTRY_BYTES_MAX: usize =
    short::bytes_max(SPAN_FIELDS) + CHUNK_BYTES_MAX + CHECKSUM_BYTES;
const _: () = assert!(COLUMN_ENTRY_BYTES_MAX == 140 && TIME_ENTRY_BYTES_MAX == 64);
/// Asserts that the length of an entry fits one byte.
const _: () = assert!(COLUMN_ENTRY_BYTES_MAX <= u8::MAX as usize);

/// Time span and row count of a vector, as the statistics of its columns need them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) begin: i64,
    pub(super) end: i64,
    pub(super) rows: usize,
    /// The constant step between the timestamps of the leaf, if there is one.
    pub(super) step: Option<u64>,
}

impl Span {
    #[inline]
    fn clock(&self) -> Clock {
        debug_assert!(self.rows > 0 && self.begin <= self.end, "rows in a span");
        match self.step {
            None => Clock::units(self.begin, self.end),
            // All rows have the same time, so times are numbered as a single tick.
            Some(0) => Clock {
                begin: self.begin,
                step: 1,
                last: 0,
            },
            Some(step) => Clock {
                begin: self.begin,
                step,
                last: self.rows as u64 - 1,
            },
        }
    }
}

/// An entry of a directory, for a column or for times, that is not decoded yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'b> {
    block: &'b [u8],
    position: EntryPosition,
}

impl<'b> Entry<'b> {
    /// The entry at this position of the directory in `block`.
    #[inline(always)]
    pub(super) fn at(block: &'b [u8], position: EntryPosition) -> Self {
        debug_assert!(position.end <= block.len(), "inside the directory");
        Self { block, position }
    }

    /// Position of the entry and of its payload.
    #[inline(always)]
    pub(super) fn position(&self) -> &EntryPosition {
        &self.position
    }

    #[cold]
    #[inline(never)]
    fn malformed(&self, expected: &str) -> Corrupt {
        let EntryPosition { at, end, .. } = self.position;
        let found = format!("{} bytes", end.saturating_sub(at));
        Corrupt::new("entry of a vector", at as u64, found, expected)
    }

    /// For a column of a vector with `rows` rows: the chunk that decodes the payload, and the checksum of the payload
    /// (0 if the payload has no bytes).
    #[inline]
    pub(super) fn column_chunk(&self, rows: usize) -> Result<(Chunk, u64), Corrupt> {
        self.chunk_at(
            short::end::<STATS_FIELDS>(self.block, self.position.at),
            rows,
        )
    }

    /// For the times of a vector with `rows` rows: the chunk that decodes the payload, and the checksum of the payload
    /// (0 if the payload has no bytes).
    #[inline]
    pub(super) fn time_chunk(&self, rows: usize) -> Result<(Chunk, u64), Corrupt> {
        self.chunk_at(
            short::end::<SPAN_FIELDS>(self.block, self.position.at),
            rows,
        )
    }

    #[inline(always)]
    fn chunk_at(&self, at: Option<usize>, rows: usize) -> Result<(Chunk, u64), Corrupt> {
        let of = (rows, self.position.payload_bytes);
        let chunk = at.and_then(|at| Chunk::get(self.block, at, of));
        match chunk {
            Some((chunk, end)) if of.1 == 0 && end == self.position.end => Ok((chunk, 0)),
            Some((chunk, end)) if of.1 != 0 && end + CHECKSUM_BYTES == self.position.end => {
                Ok((chunk, get_u64(self.block, end)))
            }
            _ => Err(self.malformed("a chunk, and a checksum up to the end")),
        }
    }

    /// The statistics of a vector's column.
    pub(super) fn stats(&self, ty: ColumnType, span: &Span) -> Result<Stats, Corrupt> {
        let fields = self.fields();
        fields
            .and_then(|own| Stats::of_fields(ty, span.rows as u64, &own, &span.clock()))
            .ok_or_else(|| self.malformed_stats(ty, span))
    }

    #[inline(always)]
    fn fields<const N: usize>(&self) -> Option<[u64; N]> {
        short::get(self.block, self.position.at).map(|(fields, _)| fields)
    }

    #[cold]
    #[inline(never)]
    fn malformed_stats(&self, ty: ColumnType, span: &Span) -> Corrupt {
        match self.fields() {
            Some(own) => Stats::odd_fields(ty, span.rows as u64, &own, &span.clock()),
            None => self.malformed("statistics of 0 to 8 bytes a number"),
        }
    }

    /// Merges the statistics of a vector's column into `all`, which covers the preceding rows. Only the statistics that
    /// `all` was created with are merged.
    ///
    /// One query reads thousands of entries, so errors are constructed only on failure: error values are large, and a
    /// result that may hold one is passed in memory.
    #[inline(always)]
    pub(super) fn merge_stats(&self, span: &Span, all: &mut Stats) -> Result<(), Corrupt> {
        let merged = all.merge_fields(span.rows as u64, &span.clock(), || self.fields());
        match merged {
            Some(()) => Ok(()),
            None => Err(self.malformed_stats(all.column_type(), span)),
        }
    }

    /// First time, last time and row count of a vector, decoded from the entry of its times. `before` is the last time
    /// of the vector before.
    #[inline(always)]
    pub(super) fn span(&self, before: i64) -> Result<Span, Corrupt> {
        let Some([gap, length, missing]) = self.fields() else {
            return Err(self.malformed("a span of 0 to 8 bytes a number"));
        };
        let begin = before.checked_add_unsigned(gap);
        let end = begin.and_then(|begin| begin.checked_add_unsigned(length));
        match (begin, end) {
            (Some(begin), Some(end)) if missing < VECTOR_ROWS as u64 => Ok(Span {
                begin,
                end,
                rows: VECTOR_ROWS - missing as usize,
                step: None,
            }),
            _ => Err(self.malformed_span(before, [gap, length, missing])),
        }
    }

    #[cold]
    #[inline(never)]
    fn malformed_span(&self, before: i64, [gap, length, missing]: [u64; SPAN_FIELDS]) -> Corrupt {
        let found = format!("{missing} rows missing, {gap} behind {before}, over {length}");
        let expected = "1 to 1024 rows of 64-bit times";
        Corrupt::new("entry of times", self.position.at as u64, found, expected)
    }

    /// True if the entry of a column has the canonical form that a writer produces.
    pub(super) fn is_column_form(&self, ty: ColumnType, span: &Span) -> Result<bool, Corrupt> {
        let (chunk, checksum) = self.column_chunk(span.rows)?;
        let vector = OpenVector {
            chunk,
            offset: 0,
            checksum,
            summary: self.stats(ty, span)?,
        };
        let mut bytes = Vec::new();
        put_column(&mut bytes, &vector, span);
        Ok(bytes == self.block[self.position.at..self.position.end])
    }

    /// True if this entry of times has the canonical form that a writer produces; `before` is the last time of the
    /// vector before.
    pub(super) fn is_time_form(&self, span: &Span, before: i64) -> Result<bool, Corrupt> {
        let (chunk, checksum) = self.time_chunk(span.rows)?;
        let vector = OpenVector {
            chunk,
            offset: 0,
            checksum,
            summary: (span.begin, span.end),
        };
        let mut bytes = Vec::new();
        put_times(&mut bytes, &vector, before);
        Ok(bytes == self.block[self.position.at..self.position.end])
    }
}

/// Appends the entry of a vector's column to a directory.
pub(super) fn put_column(out: &mut Vec<u8>, vector: &OpenVector<Stats>, span: &Span) {
    debug_assert_eq!(vector.chunk.rows(), span.rows, "the rows of the vector");
    put(out, &vector.summary.to_fields(&span.clock()), vector);
}

/// Appends the entry of a vector's times to a directory; `before` is the last time of the vector before.
pub(super) fn put_times(out: &mut Vec<u8>, vector: &OpenVector<(i64, i64)>, before: i64) {
    let (begin, end) = vector.summary;
    debug_assert!(before <= begin && begin <= end, "vectors ascend");
    let gap = begin.wrapping_sub(before) as u64;
    let missing = (VECTOR_ROWS - vector.chunk.rows()) as u64;
    let over = end.wrapping_sub(begin) as u64;
    put(out, &[gap, over, missing], vector);
}

fn put<T>(out: &mut Vec<u8>, numbers: &[u64], vector: &OpenVector<T>) {
    debug_assert!(
        !vector.chunk.is_empty() || vector.checksum == 0,
        "only a payload with bytes has a checksum"
    );
    short::put(numbers, out);
    vector.chunk.put(out);
    if !vector.chunk.is_empty() {
        out.extend_from_slice(&vector.checksum.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidalite_codec::{EncoderState, encode_column, encode_times};
    use tidalite_testkit::rng::Rng;

    fn position(entry: &[u8], chunk: &Chunk) -> EntryPosition {
        EntryPosition {
            at: 0,
            end: entry.len(),
            offset: 0,
            payload_bytes: chunk.len(),
        }
    }

    fn vector<T>(chunk: Chunk, summary: T) -> OpenVector<T> {
        OpenVector {
            chunk,
            offset: 0,
            checksum: if chunk.is_empty() {
                0
            } else {
                0x1122_3344_5566_7788
            },
            summary,
        }
    }

    fn span_of(times: &[i64], step: Option<u64>) -> Span {
        Span {
            begin: times[0],
            end: times[times.len() - 1],
            rows: times.len(),
            step,
        }
    }

    /// Entries of vectors of every column type, of edge cases, of one row and of many rows.
    #[test]
    fn entries_round_trip() {
        let seed = 4210;
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        for round in 0..3000 {
            let ty = *rng.pick(&ColumnType::ALL);
            let rows = *rng.pick(&[1, 2, 3, 100, 1024]);
            let step = *rng.pick(&[1, 10, 1 << 40]);
            let begin = *rng.pick(&[0, -5, i64::MIN, i64::MAX - (1 << 51)]);
            let mut times: Vec<i64> = (0..rows).map(|i| begin + i * step).collect();
            let even = rng.one_in(2);
            if !even && begin < i64::MAX - 1000 {
                times[rows as usize - 1] += 1;
            }
            let odd = [
                0,
                1,
                u64::MAX,
                1 << 63,
                (1 << 63) - 1,
                f64::NAN.to_bits(),
                ty.fill(),
            ];
            let some = rng.u64();
            let style = rng.below(4);
            let words: Vec<u64> = (0..rows as u64)
                .map(|i| match style {
                    0 => *rng.pick(&odd),
                    1 => some,
                    2 => some.wrapping_add(i * 3),
                    _ => (rng.below(1000) as f64 / 10.0).to_bits(),
                })
                .collect();
            let stats = Stats::of(ty, &times, &words);
            let mut payload = Vec::new();
            let chunk = encode_column(ty, &words, &mut EncoderState::default(), &mut payload);
            let span = span_of(&times, even.then_some(step as u64));
            let own = vector(chunk, stats);
            let mut bytes = Vec::new();
            put_column(&mut bytes, &own, &span);
            assert!(bytes.len() <= COLUMN_ENTRY_BYTES_MAX);
            let entry = Entry::at(&bytes, position(&bytes, &chunk));
            let read = entry.column_chunk(words.len()).unwrap();
            assert_eq!(read, (chunk, own.checksum), "round {round}");
            assert_eq!(entry.stats(ty, &span).unwrap().to_bytes(), stats.to_bytes());
            assert!(entry.is_column_form(ty, &span).unwrap(), "round {round}");

            let before = if rng.one_in(2) {
                begin
            } else {
                begin.saturating_sub(some as i64 >> 1)
            };
            let before = before.min(begin);
            let chunk = encode_times(&times, &mut EncoderState::default(), &mut payload);
            let own = vector(chunk, (span.begin, span.end));
            bytes.clear();
            put_times(&mut bytes, &own, before);
            assert!(bytes.len() <= TIME_ENTRY_BYTES_MAX);
            let entry = Entry::at(&bytes, position(&bytes, &chunk));
            let found = entry.span(before).unwrap();
            assert_eq!(
                (found.begin, found.end, found.rows),
                (span.begin, span.end, span.rows)
            );
            let read = entry.time_chunk(found.rows).unwrap();
            assert_eq!(read, (chunk, own.checksum));
            assert!(entry.is_time_form(&found, before).unwrap());
        }
    }

    /// Entries with lengths, times or counts out of range are rejected; entries that are only longer than necessary are
    /// readable but not canonical.
    #[test]
    fn entries_not_in_canonical_form_are_detected() {
        let (ty, times) = (ColumnType::I64, [10, 20, 30]);
        let words = [7, 8, 10];
        let chunk = encode_column(ty, &words, &mut EncoderState::default(), &mut Vec::new());
        let own = vector(chunk, Stats::of(ty, &times, &words));
        let span = span_of(&times, Some(10));
        let mut bytes = Vec::new();
        put_column(&mut bytes, &own, &span);
        let read = |bytes: &[u8]| {
            let entry = Entry::at(bytes, position(bytes, &chunk));
            entry.stats(ty, &span)?;
            entry.is_column_form(ty, &span)
        };
        assert!(!chunk.is_empty() && read(&bytes).unwrap());
        // The bytes of the entry end early, or continue after the checksum.
        for len in 0..bytes.len() {
            assert!(read(&bytes[..len]).is_err(), "{len} bytes");
        }
        let mut long = bytes.clone();
        long.push(0);
        assert!(read(&long).is_err());
        // An invalid length at each position of the statistics.
        for field in 0..STATS_FIELDS {
            let mut altered = bytes.clone();
            altered[field / 2] |= 0x0f << (4 * (field % 2));
            assert!(read(&altered).is_err(), "field {field}");
        }
        // The last number of the statistics (nulls, 0 here) is encoded as one zero byte instead of no byte: readable,
        // but not the form that the writer produces.
        let numbers_end = short::end::<STATS_FIELDS>(&bytes, 0).unwrap();
        let mut long = bytes.clone();
        assert_eq!(long[STATS_FIELDS / 2 - 1] >> 4, 0, "no nulls");
        long[STATS_FIELDS / 2 - 1] |= 1 << 4;
        long.insert(numbers_end, 0);
        assert!(!read(&long).unwrap());
        // Invalid statistics: more NaNs than rows, nulls in a column without nulls, or an extreme at a nonexistent row.
        let with = |field: usize, number: u64| {
            let mut numbers = own.summary.to_fields(&span.clock());
            numbers[field] = number;
            let mut bytes = Vec::new();
            put(&mut bytes, &numbers, &own);
            read(&bytes)
        };
        for (field, number) in [
            (4, 3),
            (5, u64::MAX),
            (10, 4),
            (10, u64::MAX),
            (11, 1),
            (11, 32),
        ] {
            assert!(with(field, number).is_err(), "field {field}: {number}");
        }
        assert!(with(4, 2).is_ok());
    }

    /// The reader rejects times that would overflow 64 bits, and vectors without rows.
    #[test]
    fn spans_beyond_the_range_of_times_are_refused() {
        let span = |gap: u64, over: u64, missing: u64, before: i64| {
            let mut bytes = Vec::new();
            let none = vector(Chunk::default(), ());
            put(&mut bytes, &[gap, over, missing], &none);
            Entry::at(&bytes, position(&bytes, &none.chunk))
                .span(before)
                .map(|span| (span.begin, span.end, span.rows))
        };
        assert_eq!(
            span(0, u64::MAX, 0, i64::MIN).unwrap(),
            (i64::MIN, i64::MAX, 1024)
        );
        assert_eq!(
            span(u64::MAX, 0, 1023, i64::MIN).unwrap(),
            (i64::MAX, i64::MAX, 1)
        );
        assert!(span(1, u64::MAX, 0, i64::MIN).is_err());
        assert!(span(1, 0, 0, i64::MAX).is_err());
        assert!(span(0, 0, 1024, 0).is_err());
        assert!(span(0, 0, u64::MAX, 0).is_err());
    }
}
