//! Encodes statistics in 104 bytes.
//!
//! ```text
//! offset size
//!      0    8  count        rows, NaN and null included
//!      8    8  nan_count
//!     16   16  sum          f64: hi, lo, in one of two forms (sums.rs);  else i128
//!     32   16  squares      hi, lo: the sum of the squared values, in one of two forms (squares.rs)
//!     48    8  min          the word; 0 without values
//!     56    8  min_time     its earliest time
//!     64    8  max
//!     72    8  max_time
//!     80    8  first        the word of the first row, NaN and null included
//!     88    8  last
//!     96    1  column type
//!     97    7  null_count   low bytes first; 0 in a column without nulls
//! ```

use super::Stats;
use crate::ColumnType;
use crate::loops::dd::Dd;
use crate::loops::parts::Parts;
use tidalite_base::{Corrupt, get_i64, get_u64, put_i64, put_u64};

/// Length in bytes of encoded [`Stats`].
pub const STATS_BYTES: usize = 104;

const COUNT: usize = 0;
const NAN_COUNT: usize = COUNT + 8;
const SUM: usize = NAN_COUNT + 8;
const SQUARES: usize = SUM + 16;
const MIN: usize = SQUARES + 16;
const MIN_TIME: usize = MIN + 8;
const MAX: usize = MIN_TIME + 8;
const MAX_TIME: usize = MAX + 8;
const FIRST: usize = MAX_TIME + 8;
const LAST: usize = FIRST + 8;
const TYPE: usize = LAST + 8;
const NULL_COUNT: usize = TYPE + 1;
const NULL_COUNT_BYTES: usize = 7;
const _: () = assert!(NULL_COUNT + NULL_COUNT_BYTES == STATS_BYTES);
/// The largest value of the field null_count, which is more than the rows of any file.
pub(super) const NULL_COUNT_MAX: u64 = (1 << (8 * NULL_COUNT_BYTES)) - 1;

impl Stats {
    /// Encodes the statistics to 104 bytes.
    ///
    /// # Panics
    /// If the statistics lack a figure, because only some were requested.
    pub fn encode(&self, bytes: &mut [u8; STATS_BYTES]) {
        assert!(self.parts == Parts::ALL, "what is kept has all figures");
        put_u64(bytes, COUNT, self.count);
        put_u64(bytes, NAN_COUNT, self.nan_count);
        if self.ty.is_float() {
            put_dd(bytes, SUM, self.float_sum);
        } else {
            bytes[SUM..SUM + 16].copy_from_slice(&self.int_sum.to_le_bytes());
        }
        put_dd(bytes, SQUARES, self.squares);
        put_u64(bytes, MIN, self.min);
        put_i64(bytes, MIN_TIME, self.min_time);
        put_u64(bytes, MAX, self.max);
        put_i64(bytes, MAX_TIME, self.max_time);
        put_u64(bytes, FIRST, self.first);
        put_u64(bytes, LAST, self.last);
        bytes[TYPE] = self.ty.code();
        let nulls = self.null_count.min(NULL_COUNT_MAX).to_le_bytes();
        bytes[NULL_COUNT..].copy_from_slice(&nulls[..NULL_COUNT_BYTES]);
    }

    /// The statistics encoded in 104 bytes.
    ///
    /// # Panics
    /// If the statistics lack a figure, because only some were requested.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; STATS_BYTES] {
        let mut bytes = [0; STATS_BYTES];
        self.encode(&mut bytes);
        bytes
    }

    /// Decodes statistics of a column of type `ty` from the first 104 bytes.
    ///
    /// # Errors
    /// [`Corrupt`], with the offset inside `bytes` as address: too few bytes, another type, more
    /// NaN than rows, or bytes that must be zero.
    pub fn decode(ty: ColumnType, bytes: &[u8]) -> Result<Self, Corrupt> {
        Self::decoded(ty, bytes).ok_or_else(|| odd_bytes(ty, bytes))
    }

    /// Merges the statistics of later rows, encoded in the first 104 bytes, like [`merge_after`](Self::merge_after).
    ///
    /// # Errors
    /// As for [`decode`](Self::decode).
    #[inline]
    pub fn merge_bytes(&mut self, bytes: &[u8]) -> Result<(), Corrupt> {
        // The result stays an `Option` until an error is certain: error values are large, and the compiler keeps a
        // value that may be an error in memory instead of registers.
        let Some(later) = Self::decoded(self.ty, bytes) else {
            return Err(odd_bytes(self.ty, bytes));
        };
        match self.parts {
            Parts::SUM => self.take(Parts::SUM, &later),
            _ => self.merge_after(&later),
        }
        Ok(())
    }

    #[inline(always)]
    fn decoded(ty: ColumnType, bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..STATS_BYTES)?;
        let null_count = null_count(bytes);
        let has_nulls = ty.null().is_some() || null_count == 0;
        let mut stats = Self {
            count: get_u64(bytes, COUNT),
            nan_count: get_u64(bytes, NAN_COUNT),
            null_count,
            squares: get_dd(bytes, SQUARES),
            min: get_u64(bytes, MIN),
            min_time: get_i64(bytes, MIN_TIME),
            max: get_u64(bytes, MAX),
            max_time: get_i64(bytes, MAX_TIME),
            first: get_u64(bytes, FIRST),
            last: get_u64(bytes, LAST),
            ..Self::empty(ty)
        };
        let without = stats.nan_count.checked_add(null_count)?;
        if bytes[TYPE] != ty.code() || !has_nulls || without > stats.count {
            return None;
        }
        if ty.is_float() {
            stats.float_sum = get_dd(bytes, SUM);
        } else {
            let mut field = [0; 16];
            field.copy_from_slice(&bytes[SUM..SUM + 16]);
            stats.int_sum = i128::from_le_bytes(field);
        }
        Some(stats)
    }
}

fn null_count(bytes: &[u8]) -> u64 {
    let mut nulls = [0; 8];
    nulls[..NULL_COUNT_BYTES].copy_from_slice(&bytes[NULL_COUNT..][..NULL_COUNT_BYTES]);
    u64::from_le_bytes(nulls)
}

/// Creates the error that describes bytes that are not valid statistics.
#[cold]
#[inline(never)]
fn odd_bytes(ty: ColumnType, bytes: &[u8]) -> Corrupt {
    if bytes.len() < STATS_BYTES {
        return Corrupt::new("statistics", 0, bytes.len(), "104 bytes");
    }
    if bytes[TYPE] != ty.code() {
        let (at, found) = (TYPE as u64, bytes[TYPE]);
        return Corrupt::new("type of statistics", at, found, ty.code());
    }
    let nulls = null_count(bytes);
    if nulls > 0 && ty.null().is_none() {
        let (at, expected) = (NULL_COUNT as u64, "0 in a column without nulls");
        return Corrupt::new("null count", at, nulls, expected);
    }
    let found = format!("{}, and {nulls} nulls", get_u64(bytes, NAN_COUNT));
    let expected = format!("at most {}", get_u64(bytes, COUNT));
    Corrupt::new("NaN count", NAN_COUNT as u64, found, expected)
}

fn put_dd(bytes: &mut [u8], at: usize, x: Dd) {
    put_u64(bytes, at, x.hi.to_bits());
    put_u64(bytes, at + 8, x.lo.to_bits());
}

fn get_dd(bytes: &[u8], at: usize) -> Dd {
    Dd {
        hi: f64::from_bits(get_u64(bytes, at)),
        lo: f64::from_bits(get_u64(bytes, at + 8)),
    }
}
