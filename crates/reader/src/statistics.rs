//! Reads statistics of rows (section 6 of docs/format.md). A reader does not need them to show rows; this reader
//! compares them with the rows.

use crate::bytes::{Fields, unzigzag};
use crate::chunk::words;
use crate::error::{Error, Result};

/// Statistics of consecutive rows of one column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistics {
    /// Number of the type of the words.
    pub kind: u8,
    /// Number of rows, including NaN and null.
    pub count: u64,
    nan_count: u64,
    null_count: u64,
    sum: Sum,
    squares: [f64; 2],
    min: u64,
    min_time: i64,
    max: u64,
    max_time: i64,
    first: u64,
    last: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Sum {
    Float([f64; 2]),
    Integer(i128),
}

/// Decodes a double whose bytes were stored in reverse order.
fn turned(word: u64) -> f64 {
    f64::from_bits(word.swap_bytes())
}

impl Statistics {
    /// Reads statistics of 104 bytes.
    ///
    /// # Errors
    /// If the type is unknown, or counts contradict each other.
    pub fn read(fields: &mut Fields<'_>) -> Result<Self> {
        let count = fields.u64()?;
        let nan_count = fields.u64()?;
        let sum = [fields.u64()?, fields.u64()?];
        let squares = [fields.u64()?, fields.u64()?].map(f64::from_bits);
        let min = fields.u64()?;
        let min_time = fields.i64()?;
        let max = fields.u64()?;
        let max_time = fields.i64()?;
        let first = fields.u64()?;
        let last = fields.u64()?;
        let kind = fields.u8()?;
        let null_count = crate::bytes::little(fields.take(7)?);
        fields.require(words::exists(kind), "the type of statistics")?;
        let sum = if words::is_float(kind) {
            Sum::Float(sum.map(f64::from_bits))
        } else {
            let wide = u128::from(sum[1]) << 64 | u128::from(sum[0]);
            Sum::Integer(wide.cast_signed())
        };
        Ok(Self {
            kind,
            count,
            nan_count,
            null_count,
            sum,
            squares,
            min,
            min_time,
            max,
            max_time,
            first,
            last,
        })
    }

    /// Reads statistics stored as twelve short numbers, in which times count from `begin` in steps of `step`.
    ///
    /// # Errors
    /// If the short numbers are damaged.
    pub fn read_short(
        fields: &mut Fields<'_>,
        kind: u8,
        count: u64,
        begin: i64,
        step: i64,
    ) -> Result<Self> {
        let n = fields.short_numbers::<12>()?;
        let float = words::is_float(kind);
        let (null_count, form) = (n[11] / 32, n[11] % 32);
        if form > if float { 16 } else { 0 } {
            let field = "form of short statistics";
            return Err(Error::Unknown { field, value: form });
        }
        // The number to which the stored differences are added.
        let base = match kind & !words::WITH_NULLS {
            words::U64 => n[1],
            _ => unzigzag(n[1]),
        };
        let word_of = |integer: u64| match form {
            0 => integer,
            _ => (integer.cast_signed() as f64 / 10_f64.powi(form as i32 - 1)).to_bits(),
        };
        let plain = float && form == 0;
        let min = if plain {
            turned(n[1]).to_bits()
        } else {
            word_of(base)
        };
        let word = |number: u64| {
            if plain {
                turned(number).to_bits()
            } else {
                word_of(base.wrapping_add(number))
            }
        };
        let empty = n[10] + null_count >= count;
        let time = |number: u64| {
            if empty {
                return 0;
            }
            begin.wrapping_add(number.cast_signed().wrapping_mul(step))
        };
        let wide = u128::from(n[7]) << 64 | u128::from(n[6]);
        Ok(Self {
            kind,
            count,
            nan_count: n[10],
            null_count,
            sum: if float {
                Sum::Float([turned(n[6]), turned(n[7])])
            } else {
                Sum::Integer((wide >> 1).cast_signed() ^ -(wide & 1).cast_signed())
            },
            squares: [turned(n[8]), turned(n[9])],
            min: if empty { 0 } else { min },
            min_time: time(n[4]),
            max: if empty { 0 } else { word(n[2]) },
            max_time: time(n[5]),
            first: word(n[0]),
            last: word(n[3]),
        })
    }

    /// True if the statistics match these rows: sums of floats approximately, all other figures exactly.
    #[must_use]
    pub fn describe(&self, times: &[i64], rows: &[u64]) -> bool {
        let null = words::null(self.kind);
        let float = words::is_float(self.kind);
        let value = |word: u64| match self.kind & !words::WITH_NULLS {
            words::I64 => word.cast_signed() as f64,
            words::U64 => word as f64,
            _ => f64::from_bits(word),
        };
        let less = |a: u64, b: u64| match self.kind & !words::WITH_NULLS {
            words::I64 => a.cast_signed() < b.cast_signed(),
            words::U64 => a < b,
            _ => f64::from_bits(a).total_cmp(&f64::from_bits(b)).is_lt(),
        };
        let (mut nulls, mut nans, mut integers) = (0, 0, 0_i128);
        let (mut sum, mut magnitudes, mut squares) = (0.0, 0.0, 0.0);
        let mut min: Option<(u64, i64)> = None;
        let mut max: Option<(u64, i64)> = None;
        for (&time, &word) in times.iter().zip(rows) {
            if null == Some(word) {
                nulls += 1;
                continue;
            }
            if float && f64::from_bits(word).is_nan() {
                nans += 1;
                continue;
            }
            if min.is_none_or(|(least, _)| less(word, least)) {
                min = Some((word, time));
            }
            if max.is_none_or(|(most, _)| less(most, word)) {
                max = Some((word, time));
            }
            integers = integers.wrapping_add(match self.kind & !words::WITH_NULLS {
                words::I64 => i128::from(word.cast_signed()),
                _ => i128::from(word),
            });
            sum += value(word);
            magnitudes += value(word).abs();
            squares += value(word) * value(word);
        }
        let near = |[hi, lo]: [f64; 2], expected: f64, size: f64| {
            // Sums that exceed the range of doubles are stored in other forms, which are not compared.
            let plain = hi >= 0.0 || hi.abs() >= lo.abs();
            !size.is_finite() || !plain || (hi + lo - expected).abs() <= size * 1e-12
        };
        let sums = match self.sum {
            Sum::Float(kept) => near(kept, sum, magnitudes),
            Sum::Integer(kept) => kept == integers,
        };
        let (min, min_time) = min.unwrap_or((0, 0));
        let (max, max_time) = max.unwrap_or((0, 0));
        self.count == rows.len() as u64
            && (self.nan_count, self.null_count) == (nans, nulls)
            && sums
            && (self.squares[0] < 0.0 || near(self.squares, squares, squares + 1e-280))
            && (self.min, self.min_time) == (min, min_time)
            && (self.max, self.max_time) == (max, max_time)
            && rows.first() == Some(&self.first)
            && rows.last() == Some(&self.last)
    }
}
