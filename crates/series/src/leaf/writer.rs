//! Rows in, leaf bytes out.

use super::{
    BEGIN_AT, COLUMN_CHECKSUM, COLUMN_CHUNK, COLUMN_ENTRY_BYTES, COLUMN_OFFSET, COLUMN_STATS,
    COLUMNS_AT, DATA_BYTES_AT, DATA_BYTES_SOFT, DIRECTORY_BYTES_AT, END_AT, MODE_VECTORS,
    MODE_WHOLE, MODES_AT, ROWS_AT, TIME_BEGIN, TIME_CHECKSUM, TIME_CHUNK, TIME_END,
    TIME_ENTRY_BYTES, TIME_MODE_AT, TIME_OFFSET, VECTORS_AT, modes_bytes, vectors_max,
};
use crate::link::{Entry, Link};
use crate::packer::{Packer, aligned};
use tidalite_base::limits::VECTOR_ROWS;
use tidalite_base::{checksum, put_i64, put_u32, put_u64};
use tidalite_codec::{Chunk, ColumnType, Hint, RowsRef, Stats, encode_column, encode_times};
use tidalite_pager::{PageWrite, Result};

struct Payload {
    chunk: Chunk,
    offset: usize,
}

/// Turns rows into leaves; its buffers are used again and again.
#[derive(Default)]
pub(crate) struct LeafWriter {
    payloads: Vec<u8>,
    times: Vec<Payload>,
    /// Vector after vector, all columns that are not constant.
    columns: Vec<(Payload, Stats)>,
    bytes: Vec<u8>,
}

impl LeafWriter {
    /// Writes one leaf with the first rows of `rows` and returns its link and how many rows it took. `hints`: one a
    /// column, and that of the times.
    ///
    /// # Panics
    /// When there is no row.
    pub(crate) fn write<W: PageWrite>(
        &mut self,
        w: &mut W,
        packer: &mut Packer,
        owner: u64,
        types: &[ColumnType],
        hints: &mut [Hint],
        rows: RowsRef<'_>,
    ) -> Result<(Entry, usize)> {
        assert!(!rows.is_empty(), "a leaf has rows");
        let rows = rows.slice(0..rows.len().min(vectors_max(types.len()) * VECTOR_ROWS));
        let step = constant_step(rows.times());
        let constant: Vec<Option<u64>> =
            (0..types.len()).map(|c| one_word(rows.column(c))).collect();

        self.payloads.clear();
        self.times.clear();
        self.columns.clear();
        let mut stats: Vec<Stats> = types.iter().map(|&ty| Stats::empty(ty)).collect();
        let mut at = 0;
        let mut vectors = 0;
        // A last part of a vector is always taken in: it would make a leaf of few rows.
        while at < rows.len()
            && (self.payloads.len() < DATA_BYTES_SOFT || rows.len() - at < VECTOR_ROWS)
        {
            let vector = rows.slice(at..rows.len().min(at + VECTOR_ROWS));
            if step.is_none() {
                let offset = self.payloads.len();
                let chunk =
                    encode_times(vector.times(), &mut hints[types.len()], &mut self.payloads);
                self.times.push(Payload { chunk, offset });
            }
            for (c, &ty) in types.iter().enumerate() {
                let own = Stats::of(ty, vector.times(), vector.column(c));
                stats[c].merge_after(&own);
                if constant[c].is_none() {
                    let offset = self.payloads.len();
                    let words = vector.column(c);
                    let chunk = encode_column(ty, words, &mut hints[c], &mut self.payloads);
                    self.columns.push((Payload { chunk, offset }, own));
                }
            }
            at += vector.len();
            vectors += 1;
        }
        let rows = rows.slice(0..at);
        let directory = self.assemble(rows, vectors, step, &constant);
        let (begin, end) = (rows.times()[0], rows.times()[at - 1]);
        let bytes = aligned(self.bytes.len()) as u64;
        let ptr = packer.append(w, &mut self.bytes, directory, owner, end)?;
        let link = Link {
            ptr,
            begin,
            end,
            count: at as u64,
            data_txn: w.txn(),
            bytes,
        };
        Ok((Entry { link, stats }, at))
    }

    /// Fills `bytes` with everything but the header; returns the directory's length.
    fn assemble(
        &mut self,
        rows: RowsRef<'_>,
        vectors: usize,
        step: Option<u64>,
        constant: &[Option<u64>],
    ) -> usize {
        let modes = modes_bytes(constant.len());
        let times = step.map_or(vectors * TIME_ENTRY_BYTES, |_| 8);
        let columns: usize = constant
            .iter()
            .map(|word| word.map_or(vectors * COLUMN_ENTRY_BYTES, |_| 8))
            .sum();
        let directory = MODES_AT + modes + times + columns;
        let out = &mut self.bytes;
        out.clear();
        out.resize(directory, 0);
        put_u32(out, ROWS_AT, rows.len() as u32);
        out[VECTORS_AT] = vectors as u8;
        out[COLUMNS_AT] = constant.len() as u8;
        out[TIME_MODE_AT] = step.map_or(MODE_VECTORS, |_| MODE_WHOLE);
        put_u32(out, DIRECTORY_BYTES_AT, directory as u32);
        put_u32(out, DATA_BYTES_AT, self.payloads.len() as u32);
        put_i64(out, BEGIN_AT, rows.times()[0]);
        put_i64(out, END_AT, rows.times()[rows.len() - 1]);
        let mut at = MODES_AT + modes;
        if let Some(step) = step {
            put_u64(out, at, step);
        } else {
            for (v, Payload { chunk, offset }) in self.times.iter().enumerate() {
                let entry = at + v * TIME_ENTRY_BYTES;
                let last = rows.len().min((v + 1) * VECTOR_ROWS) - 1;
                put_i64(out, entry + TIME_BEGIN, rows.times()[v * VECTOR_ROWS]);
                put_i64(out, entry + TIME_END, rows.times()[last]);
                put_u32(out, entry + TIME_OFFSET, *offset as u32);
                let sum = payload_checksum(&self.payloads[*offset..*offset + chunk.len()]);
                put_u64(out, entry + TIME_CHECKSUM, sum);
                out[entry + TIME_CHUNK..entry + TIME_ENTRY_BYTES]
                    .copy_from_slice(&chunk.to_bytes());
            }
        }
        at += times;
        let varying = constant.iter().filter(|word| word.is_none()).count();
        let mut nth = 0;
        for (c, word) in constant.iter().enumerate() {
            if let Some(word) = word {
                out[MODES_AT + c] = MODE_WHOLE;
                put_u64(out, at, *word);
                at += 8;
                continue;
            }
            out[MODES_AT + c] = MODE_VECTORS;
            for v in 0..vectors {
                let (Payload { chunk, offset }, stats) = &self.columns[v * varying + nth];
                put_u32(out, at + COLUMN_OFFSET, *offset as u32);
                let sum = payload_checksum(&self.payloads[*offset..*offset + chunk.len()]);
                put_u64(out, at + COLUMN_CHECKSUM, sum);
                out[at + COLUMN_CHUNK..at + COLUMN_STATS].copy_from_slice(&chunk.to_bytes());
                out[at + COLUMN_STATS..at + COLUMN_ENTRY_BYTES].copy_from_slice(&stats.to_bytes());
                at += COLUMN_ENTRY_BYTES;
            }
            nth += 1;
        }
        debug_assert_eq!(at, directory, "the directory is full");
        out.extend_from_slice(&self.payloads);
        directory
    }
}

/// What the directory holds for a payload: its checksum, or 0 for no bytes.
pub(super) fn payload_checksum(bytes: &[u8]) -> u64 {
    if bytes.is_empty() { 0 } else { checksum(bytes) }
}

/// The one step between all neighbours; a single row has step 1.
fn constant_step(times: &[i64]) -> Option<u64> {
    let Some(&second) = times.get(1) else {
        return Some(1);
    };
    let step = second.wrapping_sub(times[0]);
    let same = |block: &[i64]| {
        let differ = block
            .windows(2)
            .fold(0, |any, pair| any | (pair[1].wrapping_sub(pair[0]) ^ step));
        differ == 0
    };
    // In pieces, so that irregular times are found out early and regular ones without a branch a row.
    let mut from = 0;
    while from + 1 < times.len() {
        let to = times.len().min(from + 256);
        if !same(&times[from..to]) {
            return None;
        }
        from = to - 1;
    }
    Some(step as u64)
}

/// The word that all rows have.
fn one_word(words: &[u64]) -> Option<u64> {
    let first = *words.first()?;
    let same = words
        .chunks(256)
        .all(|block| block.iter().fold(0, |any, word| any | (word ^ first)) == 0);
    same.then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_found_over_the_whole_range_of_times() {
        assert_eq!(constant_step(&[7]), Some(1));
        assert_eq!(constant_step(&[i64::MIN, i64::MAX]), Some(u64::MAX));
        let even: Vec<i64> = (0..1000).map(|i| i * 5).collect();
        assert_eq!(constant_step(&even), Some(5));
        for odd in [1, 255, 256, 257, 511, 512, 999] {
            let mut times = even.clone();
            times[odd] += 1;
            assert_eq!(constant_step(&times), None, "row {odd} is off");
        }
    }

    #[test]
    fn one_word_is_found() {
        let mut words = vec![3u64; 700];
        assert_eq!(one_word(&words), Some(3));
        words[699] = 4;
        assert_eq!(one_word(&words), None);
    }
}
