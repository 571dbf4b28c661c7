//! Encoded vectors of up to 1024 values, and statistics over them.
//!
//! ```text
//! rows      Rows, RowsRef            a columnar batch: times, and one Vec<u64> of words a column
//! column    ColumnType               what the 64 bits of a word mean
//! chunk     Chunk                    32 bytes: everything a reader must know about a payload
//! encode    encode_times, _column    picks the cheapest encoding; Hint remembers the choice
//! layout    Layout, Laid             near a base, by steps or near a line; the last choice is tried first
//! slope     of                       the line that the times of a clock lie near
//! turns     encode_times_in_turns    times of several series behind one another, each near its line
//! short     lengths, put, get        whole numbers in few bytes, their lengths in front
//! nulls     Nulls                    which rows have no value, in front of the payload of the others
//! narrow    f32 as decimals, or four bytes each
//! fit       Fit                      which base, unit and width suit a vector of integers
//! float     Alp                      floats as decimals, or as ordered integers
//! encode/   correct, split, nested   units beside decimals; words cut in two; lists and runs
//! pack      1 to 64 bits a value     the layout in lanes
//! kernel    the loops above          for AVX-512, AVX2, NEON, any; as_floats, as_integers, fill_steps
//! kernel/   avx512: steps summed up in registers; neon: whole vectors unpacked
//! decode    decode_times, _column    payload -> words; any bytes give values or Corrupt
//! point     word_at, count_up_to     one word of a vector, without the others
//! cold      ColdColumn                many vectors as pages of pco, which share a model; a feature
//! line      Line                     vectors by a rule: a word is made when it is asked for
//! stats     Stats, Parts             count, sums, extremes with their times, first, last; or some of them
//! ```
//!
//! The bytes are described in section 6 of `docs/format.md`.
//!
//! ```
//! use tidalite_codec::{ColumnType, Hint, Stats, decode_column, encode_column};
//!
//! let times: Vec<i64> = (0..500).collect();
//! let words: Vec<u64> = (0..500).map(|i| (f64::from(i % 40) / 10.0).to_bits()).collect();
//! let (mut payload, mut hint) = (Vec::new(), Hint::default()); // keep one hint a column
//! let chunk = encode_column(ColumnType::F64, &words, &mut hint, &mut payload);
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
mod fit;
mod float;
mod hint;
mod hint_bytes;
mod kernel;
mod layout;
mod line;
mod narrow;
mod nulls;
mod pack;
mod point;
mod rows;
mod scan;
pub mod short;
mod slope;
mod stats;
mod turns;

pub use chunk::{CHUNK_BYTES, CHUNK_FIELDS, CHUNK_SHORT_BYTES_MAX, Chunk};
pub use cold::{COLD, ColdColumn, decode_cold, encode_cold};
pub use column::ColumnType;
pub use decode::{decode_column, decode_times};
pub use encode::{encode_column, encode_times};
pub use hint::Hint;
pub use hint_bytes::HINT_BYTES;
#[cfg(feature = "levels")]
pub use kernel::{LEVEL_VARIABLE, level_name};
pub use kernel::{as_floats, as_integers, fill_steps, is_ascending, sum_floats};
pub use kernel::{time_span, times_mut, words, words_mut};
pub use line::{Line, LineWords};
pub use point::{count_up_to, word_at};
pub use rows::{Rows, RowsRef};
pub use stats::Stats;
pub use stats::bytes::STATS_BYTES;
pub use stats::fields::{Anchors, Clock, STATS_FIELDS, WordForm, last_word};
pub use stats::parts::Parts;
pub use turns::{SHIFTS_BYTES_MAX, encode_times_in_turns, shift_at, unshift};

#[cfg(test)]
mod tests;
