//! Entries of a directory: the description of the times, or of one column, of a vector.
//!
//! ```text
//! of a column   | lengths 8 B | encoding u8 | width u8 | checksum u64 | numbers |
//! of the times  | lengths 3 B | encoding u8 | width u8 | checksum u64 | numbers |
//!                                                        only if the payload has bytes
//! numbers, each in the minimum number of bytes (short.rs); `lengths` holds these numbers of bytes:
//!   column   details, base, start of the chunk (`Chunk::to_fields`); then the statistics from `first`, `min` on
//!            (`Stats::to_fields`), whose times are row numbers if the times are stepped, otherwise units of time since
//!            the vector's begin. The place of a sixteenth length holds the form of the first, least, greatest and last
//!            value (`WordForm`): 1 if they are integers of the chunk's decimal rule
//!   times    details, base, start of the chunk; begin less the end of the vector before; end less begin; 1024 less the
//!            number of rows
//! ```
//!
//! The row counts of chunk and statistics equal the vector's row count; the first and last value of the chunk equal
//! the values in the statistics; the payload length is stored before the entries (directory.rs).

use crate::leaf::directory::Place;
use crate::leaf::open_vector::OpenVector;
use tidalite_base::limits::VECTOR_ROWS;
use tidalite_base::{Corrupt, get_u64};
use tidalite_codec::short;
use tidalite_codec::{
    Anchors, CHUNK_FIELDS, Chunk, Clock, ColumnType, STATS_FIELDS, Stats, WordForm,
};

/// Number of numbers in a column's entry.
const COLUMN_FIELDS: usize = CHUNK_FIELDS + STATS_FIELDS;
/// Numbers that are needed to decode the chunk: its own, and the base values they are relative to.
const ANCHORED_FIELDS: usize = CHUNK_FIELDS + 2;
/// Number of numbers in a times entry.
const TIME_FIELDS: usize = CHUNK_FIELDS + 3;

const COLUMN_LENGTHS_BYTES: usize = COLUMN_FIELDS.div_ceil(2);
/// Position of the form of the values, after the lengths of a column's numbers.
const FORM_BITS_AT: usize = 4 * COLUMN_FIELDS;
const _: () = assert!(FORM_BITS_AT + 4 == 8 * COLUMN_LENGTHS_BYTES);
const TIME_LENGTHS_BYTES: usize = TIME_FIELDS.div_ceil(2);
/// Encoding and width.
const RULE_BYTES: usize = 2;
const CHECKSUM_BYTES: usize = 8;

/// Bytes of the largest entry of a column.
pub(super) const COLUMN_ENTRY_BYTES_MAX: usize =
    COLUMN_LENGTHS_BYTES + RULE_BYTES + CHECKSUM_BYTES + 8 * COLUMN_FIELDS;
/// Bytes of the largest entry of times.
pub(super) const TIME_ENTRY_BYTES_MAX: usize =
    TIME_LENGTHS_BYTES + RULE_BYTES + CHECKSUM_BYTES + 8 * TIME_FIELDS;
const _: () = assert!(COLUMN_ENTRY_BYTES_MAX == 138 && TIME_ENTRY_BYTES_MAX == 61);
/// The length of an entry fits one byte.
const _: () = assert!(COLUMN_ENTRY_BYTES_MAX <= u8::MAX as usize);

/// Time span of a vector's rows, as used by its columns' statistics.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) begin: i64,
    pub(super) end: i64,
    pub(super) rows: usize,
    /// The step of the leaf, if it has one.
    pub(super) step: Option<u64>,
}

impl Span {
    #[inline]
    fn clock(&self) -> Clock {
        match self.step {
            None => Clock::units(self.begin, self.end),
            // Rows with equal times: only the first tick exists.
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

#[cold]
#[inline(never)]
fn too_short(place: &Place) -> Corrupt {
    let found = format!("{} bytes", place.end.saturating_sub(place.at));
    let at = place.at as u64;
    Corrupt::new("entry of a vector", at, found, "its fixed fields")
}

/// An entry of a column or of times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'b> {
    block: &'b [u8],
    at: usize,
    end: usize,
    lengths: u64,
    rule: [u8; RULE_BYTES],
    numbers_at: usize,
    /// Checksum of the payload; 0 if it has no bytes.
    pub(super) checksum: u64,
    payload_bytes: usize,
}

impl<'b> Entry<'b> {
    /// Reads the entry of a column at this place of a directory.
    #[inline(always)]
    pub(super) fn of_column(block: &'b [u8], place: &Place) -> Result<Self, Corrupt> {
        Self::read::<COLUMN_LENGTHS_BYTES>(block, place).ok_or_else(|| too_short(place))
    }

    /// Reads the entry of times at this place of a directory.
    #[inline(always)]
    pub(super) fn of_times(block: &'b [u8], place: &Place) -> Result<Self, Corrupt> {
        Self::read::<TIME_LENGTHS_BYTES>(block, place).ok_or_else(|| too_short(place))
    }

    #[inline(always)]
    fn read<const LENGTHS: usize>(block: &'b [u8], place: &Place) -> Option<Self> {
        let has_checksum = place.payload_bytes != 0;
        let checksum_bytes = if has_checksum { CHECKSUM_BYTES } else { 0 };
        let fixed = LENGTHS + RULE_BYTES + checksum_bytes;
        let entry = block.get(place.at..place.end);
        let entry = entry.filter(|entry| entry.len() >= fixed)?;
        let lengths = entry[..LENGTHS].iter().rev();
        Some(Self {
            block,
            at: place.at,
            end: place.end,
            lengths: lengths.fold(0, |all, &byte| all << 8 | u64::from(byte)),
            rule: [entry[LENGTHS], entry[LENGTHS + 1]],
            numbers_at: place.at + fixed,
            checksum: match has_checksum {
                true => get_u64(entry, LENGTHS + RULE_BYTES),
                false => 0,
            },
            payload_bytes: place.payload_bytes,
        })
    }

    #[inline(always)]
    fn numbers<const N: usize>(&self) -> Result<[u64; N], Corrupt> {
        short::get(self.block, self.numbers_at, self.lengths).ok_or_else(|| self.odd())
    }

    /// The numbers after the chunk's numbers.
    #[inline(always)]
    fn behind_chunk<const N: usize>(&self) -> Option<[u64; N]> {
        short::get_from::<CHUNK_FIELDS, N>(self.block, self.numbers_at, self.lengths)
    }

    #[cold]
    #[inline(never)]
    fn odd(&self) -> Corrupt {
        let found = format!("lengths {:x}", self.lengths);
        let expected = "0 to 8 bytes a number, and a form that suits the chunk";
        Corrupt::new("entry of a vector", self.at as u64, found, expected)
    }

    /// The chunk of a column's vector with `rows` rows.
    #[inline]
    pub(super) fn column_chunk(&self, ty: ColumnType, rows: usize) -> Result<Chunk, Corrupt> {
        let numbers: [u64; ANCHORED_FIELDS] = self.numbers()?;
        let [details, base, start, first, min] = numbers;
        let fields = [details, base, start];
        let form = self.form_of(details).ok_or_else(|| self.odd())?;
        let anchors = Anchors::of_fields(ty, form, [first, min]);
        let of = (rows, self.payload_bytes);
        Ok(Chunk::from_fields(self.rule, of, &fields, anchors))
    }

    /// The statistics of a column's vector.
    pub(super) fn stats(&self, ty: ColumnType, span: &Span) -> Result<Stats, Corrupt> {
        self.stats_if(ty, span)
            .ok_or_else(|| self.odd_stats(ty, span))
    }

    fn stats_if(&self, ty: ColumnType, span: &Span) -> Option<Stats> {
        let (own, form) = self.stats_and_form()?;
        Stats::of_fields((ty, form), span.rows as u64, &own, &span.clock())
    }

    /// The statistics of a column's vector, and the form of the values in them.
    #[inline(always)]
    fn stats_and_form(&self) -> Option<([u64; STATS_FIELDS], WordForm)> {
        let all: [u64; COLUMN_FIELDS] = short::get(self.block, self.numbers_at, self.lengths)?;
        let [details, _, _, own @ ..] = all;
        Some((own, self.form_of(details)?))
    }

    #[inline(always)]
    fn form_of(&self, details: u64) -> Option<WordForm> {
        WordForm::of_code(self.lengths >> FORM_BITS_AT, self.rule[0], details)
    }

    #[cold]
    #[inline(never)]
    fn odd_stats(&self, ty: ColumnType, span: &Span) -> Corrupt {
        match self.stats_and_form() {
            Some((own, _)) => Stats::odd_fields(ty, span.rows as u64, &own, &span.clock()),
            None => self.odd(),
        }
    }

    /// Merges the statistics of a column's vector into `all`, which covers the preceding rows; only the parts that
    /// `all` has.
    ///
    /// One query reads thousands of entries, so errors are constructed only on failure: error values are large, and a
    /// result that may hold one is passed in memory.
    #[inline(always)]
    pub(super) fn merge_stats(
        block: &'b [u8],
        place: &Place,
        span: &Span,
        all: &mut Stats,
    ) -> Result<(), Corrupt> {
        let Some(entry) = Self::read::<COLUMN_LENGTHS_BYTES>(block, place) else {
            return Err(too_short(place));
        };
        let (numbers, with_form) = (|| entry.behind_chunk(), || entry.stats_and_form());
        let merged = all.merge_fields(span.rows as u64, &span.clock(), numbers, with_form);
        match merged {
            Some(()) => Ok(()),
            None => Err(entry.odd_stats(all.column_type(), span)),
        }
    }

    /// Begin, end and row count of the vector of times at this place of a directory, after a vector that ends at
    /// `before`.
    #[inline(always)]
    pub(super) fn span_at(block: &'b [u8], place: &Place, before: i64) -> Result<Span, Corrupt> {
        let Some(entry) = Self::read::<TIME_LENGTHS_BYTES>(block, place) else {
            return Err(too_short(place));
        };
        let Some([gap, length, missing]) = entry.behind_chunk() else {
            return Err(entry.odd());
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
            _ => Err(entry.no_span(before, [gap, length, missing])),
        }
    }

    #[cold]
    #[inline(never)]
    fn no_span(&self, before: i64, [gap, length, missing]: [u64; 3]) -> Corrupt {
        let found = format!("{missing} rows missing, {gap} behind {before}, over {length}");
        let expected = "1 to 1024 rows of 64-bit times";
        Corrupt::new("entry of times", self.at as u64, found, expected)
    }

    /// The chunk of a vector of times.
    #[inline]
    pub(super) fn time_chunk(&self, span: &Span) -> Result<Chunk, Corrupt> {
        let fields: [u64; CHUNK_FIELDS] = self.numbers()?;
        let anchors = Anchors::words(span.begin as u64, span.begin as u64);
        let of = (span.rows, self.payload_bytes);
        Ok(Chunk::from_fields(self.rule, of, &fields, anchors))
    }

    /// Whether the entry of a column has the canonical form that a writer produces.
    pub(super) fn is_column_form(&self, ty: ColumnType, span: &Span) -> Result<bool, Corrupt> {
        let vector = OpenVector {
            chunk: self.column_chunk(ty, span.rows)?,
            offset: 0,
            checksum: self.checksum,
            what: self.stats(ty, span)?,
        };
        let mut bytes = Vec::new();
        put_column(&mut bytes, &vector, span);
        Ok(bytes == self.block[self.at..self.end])
    }

    /// Whether the entry of times, after a vector that ends at `before`, has the canonical form.
    pub(super) fn is_time_form(&self, span: &Span, before: i64) -> Result<bool, Corrupt> {
        let vector = OpenVector {
            chunk: self.time_chunk(span)?,
            offset: 0,
            checksum: self.checksum,
            what: (span.begin, span.end),
        };
        let mut bytes = Vec::new();
        put_times(&mut bytes, &vector, before);
        Ok(bytes == self.block[self.at..self.end])
    }
}

/// Appends the entry of a column's vector.
pub(super) fn put_column(out: &mut Vec<u8>, vector: &OpenVector<Stats>, span: &Span) {
    let form = WordForm::beside(&vector.chunk, &vector.what);
    let stats = vector.what.to_fields(&span.clock(), form);
    let [first, min, ..] = stats;
    let anchors = Anchors::of_fields(vector.what.column_type(), form, [first, min]);
    let (rule, chunk) = vector.chunk.to_fields(anchors);
    let mut numbers = [0; COLUMN_FIELDS];
    numbers[..CHUNK_FIELDS].copy_from_slice(&chunk);
    numbers[CHUNK_FIELDS..].copy_from_slice(&stats);
    put::<COLUMN_LENGTHS_BYTES, _>(out, rule, vector, &numbers, form.code());
}

/// Appends the entry of a vector of times, after a vector that ends at `before`.
pub(super) fn put_times(out: &mut Vec<u8>, vector: &OpenVector<(i64, i64)>, before: i64) {
    let (begin, end) = vector.what;
    let anchors = Anchors::words(begin as u64, begin as u64);
    let (rule, [details, base, start]) = vector.chunk.to_fields(anchors);
    let gap = begin.wrapping_sub(before) as u64;
    let missing = (VECTOR_ROWS - vector.chunk.rows()) as u64;
    let over = end.wrapping_sub(begin) as u64;
    let numbers = [details, base, start, gap, over, missing];
    put::<TIME_LENGTHS_BYTES, _>(out, rule, vector, &numbers, 0);
}

fn put<const LENGTHS: usize, T>(
    out: &mut Vec<u8>,
    rule: [u8; RULE_BYTES],
    vector: &OpenVector<T>,
    numbers: &[u64],
    form: u64,
) {
    let lengths = short::lengths(numbers) | form << FORM_BITS_AT;
    out.extend_from_slice(&lengths.to_le_bytes()[..LENGTHS]);
    out.extend_from_slice(&rule);
    if !vector.chunk.is_empty() {
        out.extend_from_slice(&vector.checksum.to_le_bytes());
    }
    short::put(numbers, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidalite_codec::{Hint, encode_column, encode_times};
    use tidalite_testkit::rng::Rng;

    fn place(entry: &[u8], chunk: &Chunk) -> Place {
        Place {
            at: 0,
            end: entry.len(),
            offset: 0,
            payload_bytes: chunk.len(),
        }
    }

    fn vector<T>(chunk: Chunk, what: T) -> OpenVector<T> {
        OpenVector {
            chunk,
            offset: 0,
            checksum: if chunk.is_empty() {
                0
            } else {
                0x1122_3344_5566_7788
            },
            what,
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

    /// Entries of vectors of every type, of edge cases, of one row and of many.
    #[test]
    fn entries_say_what_was_put() {
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
            let style = rng.below(5);
            let words: Vec<u64> = (0..rows as u64)
                .map(|i| match style {
                    0 => *rng.pick(&odd),
                    1 => some,
                    2 => some.wrapping_add(i * 3),
                    // Decimals, and occasionally a value that is not a decimal, also at an end or as an extreme.
                    3 if rng.below(100) == 0 => *rng.pick(&odd),
                    _ => (rng.below(1000) as f64 / 10.0).to_bits(),
                })
                .collect();
            let stats = Stats::of(ty, &times, &words);
            let mut payload = Vec::new();
            let chunk = encode_column(ty, &words, &mut Hint::default(), &mut payload);
            let span = span_of(&times, even.then_some(step as u64));
            let own = vector(chunk, stats);
            let mut bytes = Vec::new();
            put_column(&mut bytes, &own, &span);
            assert!(bytes.len() <= COLUMN_ENTRY_BYTES_MAX);
            let entry = Entry::of_column(&bytes, &place(&bytes, &chunk)).unwrap();
            assert_eq!(
                entry.column_chunk(ty, words.len()).unwrap(),
                chunk,
                "round {round}"
            );
            assert_eq!(entry.stats(ty, &span).unwrap().to_bytes(), stats.to_bytes());
            assert_eq!(entry.checksum, own.checksum);
            assert!(entry.is_column_form(ty, &span).unwrap(), "round {round}");

            let before = if rng.one_in(2) {
                begin
            } else {
                begin.saturating_sub(some as i64 >> 1)
            };
            let before = before.min(begin);
            let chunk = encode_times(&times, &mut Hint::default(), &mut payload);
            let own = vector(chunk, (span.begin, span.end));
            bytes.clear();
            put_times(&mut bytes, &own, before);
            assert!(bytes.len() <= TIME_ENTRY_BYTES_MAX);
            let at = place(&bytes, &chunk);
            let found = Entry::span_at(&bytes, &at, before).unwrap();
            let entry = Entry::of_times(&bytes, &at).unwrap();
            assert_eq!(
                (found.begin, found.end, found.rows),
                (span.begin, span.end, span.rows)
            );
            assert_eq!(entry.time_chunk(&found).unwrap(), chunk);
            assert!(entry.is_time_form(&found, before).unwrap());
        }
    }

    /// Entries with lengths, times or counts out of range are rejected; entries that are only longer than necessary are
    /// not canonical.
    #[test]
    fn entries_that_no_writer_makes_are_found() {
        let (ty, times) = (ColumnType::I64, [10, 20, 30]);
        let words = [7, 8, 9];
        let chunk = encode_column(ty, &words, &mut Hint::default(), &mut Vec::new());
        let own = vector(chunk, Stats::of(ty, &times, &words));
        let span = span_of(&times, Some(10));
        let mut bytes = Vec::new();
        put_column(&mut bytes, &own, &span);
        let fixed = COLUMN_LENGTHS_BYTES + RULE_BYTES;
        for len in 0..fixed {
            assert!(Entry::of_column(&bytes[..len], &place(&bytes[..len], &chunk)).is_err());
        }
        let read = |bytes: &[u8]| {
            let entry = Entry::of_column(bytes, &place(bytes, &chunk))?;
            entry.stats(ty, &span)?;
            entry.is_column_form(ty, &span)
        };
        assert!(read(&bytes).unwrap());
        // An invalid length, in each place.
        for place in 0..COLUMN_FIELDS {
            let mut odd = bytes.clone();
            odd[place / 2] |= 0x0f << (4 * (place % 2));
            assert!(read(&odd).is_err(), "place {place}");
        }
        // The bytes end before the numbers end.
        assert!(read(&bytes[..bytes.len() - 1]).is_err());
        // An extra byte after the numbers; an extra zero byte within a number, with a matching length.
        let mut long = bytes.clone();
        long.push(0);
        assert!(!read(&long).unwrap());
        // The last field of the lengths is a form; integers have only one form.
        for form in 1..16u8 {
            let mut odd = bytes.clone();
            odd[COLUMN_LENGTHS_BYTES - 1] |= form << 4;
            assert!(read(&odd).is_err());
        }
        // Decimal values: only one form is valid.
        let words: Vec<u64> = (0..200)
            .map(|i| (f64::from(i * 7919 % 1000) / 100.0).to_bits())
            .collect();
        let floats = ColumnType::F64;
        let chunk = encode_column(floats, &words, &mut Hint::default(), &mut Vec::new());
        let all: Vec<i64> = (0..words.len() as i64).collect();
        let decimals = vector(chunk, Stats::of(floats, &all, &words));
        let whole = span_of(&all, Some(1));
        let mut bytes = Vec::new();
        put_column(&mut bytes, &decimals, &whole);
        for form in 0..16u8 {
            let mut odd = bytes.clone();
            odd[COLUMN_LENGTHS_BYTES - 1] = odd[COLUMN_LENGTHS_BYTES - 1] & 15 | form << 4;
            let place = place(&odd, &chunk);
            let entry = Entry::of_column(&odd, &place).unwrap();
            let mut merged = Stats::empty(floats);
            let merged = Entry::merge_stats(&odd, &place, &whole, &mut merged);
            assert_eq!(merged.is_ok(), form < 2, "form {form}");
            assert_eq!(entry.column_chunk(floats, words.len()).is_ok(), form < 2);
            match form {
                1 => assert!(entry.is_column_form(floats, &whole).unwrap()),
                // The same numbers describe other values.
                0 => assert_ne!(entry.stats(floats, &whole).unwrap(), decimals.what),
                _ => assert!(entry.is_column_form(floats, &whole).is_err()),
            }
        }
        // The same values in raw form.
        let stats = decimals.what.to_fields(&whole.clock(), WordForm::OF_TYPE);
        let (rule, fields) = chunk.to_fields(Anchors::words(words[0], 0));
        let mut long = Vec::new();
        let numbers = [&fields[..], &stats].concat();
        put::<COLUMN_LENGTHS_BYTES, _>(&mut long, rule, &decimals, &numbers, 0);
        let entry = Entry::of_column(&long, &place(&long, &chunk)).unwrap();
        assert_eq!(entry.column_chunk(floats, words.len()).unwrap(), chunk);
        assert_eq!(entry.stats(floats, &whole).unwrap(), decimals.what);
        assert!(!entry.is_column_form(floats, &whole).unwrap());
        // More NaNs than rows; nulls in a column without nulls; an extreme at a nonexistent row.
        let with = |field: usize, number: u64| {
            let mut numbers = own.what.to_fields(&span.clock(), WordForm::OF_TYPE);
            numbers[field] = number;
            let mut all = [0; COLUMN_FIELDS];
            all[CHUNK_FIELDS..].copy_from_slice(&numbers);
            let mut bytes = Vec::new();
            put::<COLUMN_LENGTHS_BYTES, _>(&mut bytes, [4, 0], &own, &all, 0);
            read(&bytes)
        };
        for (field, number) in [(4, 3), (5, u64::MAX), (10, 4), (10, u64::MAX), (11, 1)] {
            assert!(with(field, number).is_err(), "field {field}: {number}");
        }
        assert!(with(4, 2).is_ok());
    }

    /// Times that would overflow 64 bits, and vectors without rows.
    #[test]
    fn spans_stay_within_the_times_there_are() {
        let span = |gap: u64, over: u64, missing: u64, before: i64| {
            let mut bytes = Vec::new();
            let numbers = [0, 0, 0, gap, over, missing];
            let none = vector(Chunk::default(), ());
            put::<TIME_LENGTHS_BYTES, _>(&mut bytes, [4, 0], &none, &numbers, 0);
            Entry::span_at(&bytes, &place(&bytes, &none.chunk), before)
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
