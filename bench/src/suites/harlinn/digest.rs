//! Digests of the rows that were read, with which Tidalite, the peer and the data itself are compared.
//!
//! The consumer of `read` and `cold` processes every column of every row: floats are summed with eight accumulators,
//! times and integers are xor-ed. It does the same work over rows for the peer, and over columns for Tidalite. For both
//! it is compiled for the widest vectors of this machine, like a program built for the machine: when compiled for the
//! baseline, its loop took 44 % of the samples in a profile of Tidalite.

#![expect(unsafe_code, reason = "functions compiled for what the machine has")]

use crate::lmdb_engine::Point;
use crate::records::{Reading, Trade};

/// A record with one float and some integers.
pub(crate) trait Record: Point {
    /// The float of the record.
    fn float(&self) -> f64;
    /// All other fields of the record, xor-ed.
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

/// Defines a function that is also compiled for AVX-512 and AVX2, and selects the best version for the machine.
macro_rules! for_this_machine {
    ($(#[$doc:meta])* fn $name:ident<$($p:ident: $bound:ident)?>($($arg:ident: $ty:ty),*) $(-> $out:ty)? $body:block) => {
        $(#[$doc])*
        #[inline]
        fn $name$(<$p: $bound>)?($($arg: $ty),*) $(-> $out)? {
            #[inline(always)]
            fn plain$(<$p: $bound>)?($($arg: $ty),*) $(-> $out)? $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f")]
                fn avx512$(<$p: $bound>)?($($arg: $ty),*) $(-> $out)? {
                    plain($($arg),*)
                }
                #[target_feature(enable = "avx2")]
                fn avx2$(<$p: $bound>)?($($arg: $ty),*) $(-> $out)? {
                    plain($($arg),*)
                }
                if is_x86_feature_detected!("avx512f") {
                    // SAFETY: the machine has the processor features for which the function is compiled.
                    return unsafe { avx512($($arg),*) };
                }
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: the machine has the processor features for which the function is compiled.
                    return unsafe { avx2($($arg),*) };
                }
            }
            plain($($arg),*)
        }
    };
}

for_this_machine! {
    /// Adds the floats of rows to eight sums, and xors all their other fields.
    fn touch_rows<P: Record>(rows: &[P], sums: &mut [f64; 8], bits: &mut u64) {
        let (mut own, mut all) = (*sums, *bits);
        let (eights, rest) = rows.as_chunks::<8>();
        for eight in eights {
            for (sum, row) in own.iter_mut().zip(eight) {
                *sum += row.float();
                all ^= row.bits();
            }
        }
        for (sum, row) in own.iter_mut().zip(rest) {
            *sum += row.float();
            all ^= row.bits();
        }
        (*sums, *bits) = (own, all);
    }
}

for_this_machine! {
    /// Adds a column of floats to eight sums.
    fn touch_floats<>(floats: &[f64], sums: &mut [f64; 8]) {
        let mut own = *sums;
        let (eights, rest) = floats.as_chunks::<8>();
        for eight in eights {
            for (sum, float) in own.iter_mut().zip(eight) {
                *sum += float;
            }
        }
        for (sum, float) in own.iter_mut().zip(rest) {
            *sum += float;
        }
        *sums = own;
    }
}

for_this_machine! {
    /// Xors all words of a column.
    fn touch_words<>(words: &[u64]) -> u64 {
        words.iter().fold(0, |bits, word| bits ^ word)
    }
}

for_this_machine! {
    /// Xors all times of the time column.
    fn touch_times<>(times: &[i64]) -> u64 {
        times.iter().fold(0, |bits, time| bits ^ *time as u64)
    }
}

/// State of a pass over one series: eight sums of floats and one xor of all other columns.
#[derive(Default)]
pub(crate) struct Touch {
    sums: [f64; 8],
    bits: u64,
    digest: Digest,
}

/// Result of a pass over all rows of all series: digest of the values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Digest {
    /// Number of rows.
    pub(crate) rows: u64,
    /// Sum of the floats.
    pub(crate) sum: f64,
    /// The xors of the series, mixed in the order of the series, because the xors of ten thousand equal series would
    /// otherwise cancel out.
    pub(crate) bits: u64,
}

impl Touch {
    /// Adds rows of the current series.
    #[inline]
    pub(crate) fn rows<P: Record>(&mut self, rows: &[P]) {
        touch_rows(rows, &mut self.sums, &mut self.bits);
        self.digest.rows += rows.len() as u64;
    }

    /// Adds a column of floats of the current series.
    #[inline]
    pub(crate) fn floats(&mut self, floats: &[f64]) {
        touch_floats(floats, &mut self.sums);
    }

    /// Adds a column of words of the current series.
    #[inline]
    pub(crate) fn words(&mut self, words: &[u64]) {
        self.bits ^= touch_words(words);
    }

    /// Adds the time column of the current series, which also counts the rows.
    #[inline]
    pub(crate) fn times(&mut self, times: &[i64]) {
        self.bits ^= touch_times(times);
        self.digest.rows += times.len() as u64;
    }

    /// Ends the current series and adds its sums to the digest.
    pub(crate) fn end_series(&mut self) {
        self.digest.sum += self.sums.iter().sum::<f64>();
        self.digest.bits = (self.digest.bits ^ self.bits).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (self.sums, self.bits) = ([0.0; 8], 0);
    }

    /// The digest of all series.
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
