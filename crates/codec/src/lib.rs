//! Encoded vectors of up to 1024 values, and statistics over them.
//!
//! ```text
//! rows      Rows, RowsRef            a columnar batch: times, and one Vec<u64> of words a column
//! column    ColumnType               what the 64 bits of a word mean
//! chunk     Chunk                    32 bytes: everything a reader must know about a payload
//! encode    encode_times, _column    picks the cheapest encoding; Hint remembers the choice
//! fit       Fit                      which base, unit and width suit a vector of integers
//! float     Alp                      floats as decimals, or as ordered integers
//! pack      1 to 64 bits a value     the layout in lanes
//! kernel    the loops above          for AVX-512, AVX2, any; as_floats, as_integers
//! decode    decode_times, _column    payload -> words; any bytes give values or Corrupt
//! stats     Stats                    count, sums, extremes with their times, first, last
//! ```
//!
//! The bytes are described in section 6 of `docs/format.md`.

mod chunk;
mod column;
mod decode;
mod encode;
mod fit;
mod float;
mod hint;
mod kernel;
mod pack;
mod rows;
mod scan;
mod stats;

pub use chunk::{CHUNK_BYTES, Chunk};
pub use column::ColumnType;
pub use decode::{decode_column, decode_times};
pub use encode::{encode_column, encode_times};
pub use hint::Hint;
pub use kernel::{as_floats, as_integers};
pub use rows::{Rows, RowsRef};
pub use stats::{STATS_BYTES, Stats};

#[cfg(test)]
mod tests;
