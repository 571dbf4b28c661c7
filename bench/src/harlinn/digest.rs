//! What the consumers make of the rows, so that both sides can be held against each other and
//! against the data itself.
//!
//! The consumer of `read` and `cold` touches every column of every row: the floats are summed
//! with eight accumulators, times and integers are xor-ed. It is the same work on both sides, over
//! rows here and over columns there.

use super::records::{Reading, Trade};
use crate::lmdb_engine::Point;

/// A record with one float and some integers.
pub(crate) trait Record: Point {
    /// The float.
    fn float(&self) -> f64;
    /// All the rest, xor-ed.
    fn bits(&self) -> u64;
}

impl Record for Reading {
    #[inline]
    fn float(&self) -> f64 {
        self.value
    }

    #[inline]
    fn bits(&self) -> u64 {
        self.time as u64 ^ self.flags as u64
    }
}

impl Record for Trade {
    #[inline]
    fn float(&self) -> f64 {
        self.volume
    }

    #[inline]
    fn bits(&self) -> u64 {
        self.time as u64 ^ self.bid ^ self.offer ^ self.price as u64
    }
}

/// Eight sums of floats and one xor of everything else.
#[derive(Default)]
pub(crate) struct Touch {
    sums: [f64; 8],
    bits: u64,
    digest: Digest,
}

/// The result of a pass over all rows of all series.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Digest {
    /// Number of rows.
    pub(crate) rows: u64,
    /// Sum of the floats.
    pub(crate) sum: f64,
    /// The xors of the series, mixed in their order (ten thousand equal series would cancel out).
    pub(crate) bits: u64,
}

impl Touch {
    /// Takes rows.
    #[inline]
    pub(crate) fn rows<P: Record>(&mut self, rows: &[P]) {
        let (mut sums, mut bits) = (self.sums, self.bits);
        let (eights, rest) = rows.as_chunks::<8>();
        for eight in eights {
            for (sum, row) in sums.iter_mut().zip(eight) {
                *sum += row.float();
                bits ^= row.bits();
            }
        }
        for (sum, row) in sums.iter_mut().zip(rest) {
            *sum += row.float();
            bits ^= row.bits();
        }
        (self.sums, self.bits) = (sums, bits);
        self.digest.rows += rows.len() as u64;
    }

    /// Takes a column of floats.
    #[inline]
    pub(crate) fn floats(&mut self, floats: &[f64]) {
        let mut sums = self.sums;
        let (eights, rest) = floats.as_chunks::<8>();
        for eight in eights {
            for (sum, float) in sums.iter_mut().zip(eight) {
                *sum += float;
            }
        }
        for (sum, float) in sums.iter_mut().zip(rest) {
            *sum += float;
        }
        self.sums = sums;
    }

    /// Takes a column of words.
    #[inline]
    pub(crate) fn words(&mut self, words: &[u64]) {
        self.bits ^= words.iter().fold(0, |bits, word| bits ^ word);
    }

    /// Takes the column of times, which also counts the rows.
    #[inline]
    pub(crate) fn times(&mut self, times: &[i64]) {
        self.bits ^= times.iter().fold(0, |bits, time| bits ^ time) as u64;
        self.digest.rows += times.len() as u64;
    }

    /// Ends a series.
    pub(crate) fn end_series(&mut self) {
        self.digest.sum += self.sums.iter().sum::<f64>();
        self.digest.bits = (self.digest.bits ^ self.bits).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (self.sums, self.bits) = ([0.0; 8], 0);
    }

    /// What came of all series.
    pub(crate) fn finish(self) -> Digest {
        self.digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_columns_give_the_same() {
        let reading = |n: i64| Reading {
            time: n * n,
            flags: n % 3,
            value: n as f64,
        };
        let rows: Vec<_> = (0..1003).map(reading).collect();
        let mut by_row = Touch::default();
        rows.chunks(77).for_each(|rows| by_row.rows(rows));
        by_row.end_series();
        let mut by_column = Touch::default();
        for rows in rows.chunks(64) {
            by_column.times(&rows.iter().map(|r| r.time).collect::<Vec<_>>());
            by_column.words(&rows.iter().map(|r| r.flags as u64).collect::<Vec<_>>());
            by_column.floats(&rows.iter().map(|r| r.value).collect::<Vec<_>>());
        }
        by_column.end_series();
        assert_eq!(by_row.finish(), by_column.finish());
    }
}
