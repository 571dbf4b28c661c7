//! Encoded vectors of up to 1024 values, and statistics over them.
//!
//! ```text
//! column    ColumnType               meaning of the 64 bits of a word
//! short     put, get                 lists of variable-length integers, with their lengths in front
//! loops/    plain loops over values: pack (bit packing, 1 to 64 bits a value, in lanes), scan, float (floats as
//!           decimals or as ordered integers), slope (line through the times of a clock), fold (statistics)
//! kernel/   the loops compiled for AVX-512, AVX2, NEON and any processor; chosen once per process
//! chunk     Chunk                    description of a payload
//! places    row numbers in few bits
//! nulls     Nulls                    map of the null rows, in front of the payload of the other rows
//! narrow    f32 as decimals, or four bytes each
//! rows      Rows, RowsRef            a columnar batch: times, and one Vec<u64> of words per column
//! stats/    Stats, Parts             count, sums, extremes with their times, first, last; or a subset of these
//! decode/   decode_times, _column    payload to words; any bytes give values or Corrupt
//!           point: a single word of a vector; line: vectors whose words follow a rule
//! encode/   encode_times, _column    picks the cheapest encoding; EncoderState remembers the choice
//!           fit, layout: base, unit and width; batch: concatenated times of several series
//! cold/     ColdColumn               many vectors as pages of pco that share a model; an optional feature
//! ```
//!
//! Section 6 of `docs/format.md` describes the encoded bytes.
//!
//! ```
//! use tidalite_codec::{ColumnType, EncoderState, Stats, decode_column, encode_column};
//!
//! let times: Vec<i64> = (0..500).collect();
//! let words: Vec<u64> = (0..500).map(|i| (f64::from(i % 40) / 10.0).to_bits()).collect();
//! let (mut payload, mut state) = (Vec::new(), EncoderState::default()); // keep one state a column
//! let chunk = encode_column(ColumnType::F64, &words, &mut state, &mut payload);
//! assert!(payload.len() < 500); // 6 bits a value
//!
//! let mut back = vec![0; chunk.rows()];
//! decode_column(&chunk, &payload, &mut back)?;
//! assert_eq!(back, words);
//! assert_eq!(Stats::of(ColumnType::F64, &times, &words).max(), Some((3.9f64.to_bits(), 39)));
//! # Ok::<(), tidalite_base::Corrupt>(())
//! ```

mod chunk;
mod cold;
mod column;
mod decode;
mod encode;
mod kernel;
mod loops;
mod narrow;
mod nulls;
mod places;
mod rows;
pub mod short;
mod stats;

pub use chunk::{CHUNK_BYTES_MAX, Chunk};
pub use cold::{COLD, ColdColumn, decode_cold, encode_cold};
pub use column::ColumnType;
pub use decode::line::{Line, LineWords};
pub use decode::point::{count_up_to, word_at};
pub use decode::{decode_column, decode_times};
pub use encode::batch::{SHIFTS_BYTES_MAX, encode_times_of_series, shift_at, unshift};
pub use encode::encoder_state::EncoderState;
pub use encode::encoder_state_bytes::ENCODER_STATE_BYTES;
pub use encode::{encode_column, encode_times};
#[cfg(feature = "levels")]
pub use kernel::{LEVEL_VARIABLE, level_name};
pub use kernel::{as_floats, as_integers, fill_steps, is_ascending, sum_floats};
pub use kernel::{time_span, times_mut, words, words_mut};
pub use loops::parts::Parts;
pub use rows::{Rows, RowsRef};
pub use stats::Stats;
pub use stats::bytes::STATS_BYTES;
pub use stats::fields::{Clock, STATS_FIELDS, last_word};

#[cfg(test)]
mod tests;
