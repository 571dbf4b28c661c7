//! The cold form of a column: the vectors of a leaf as the pages of one chunk of `pco`, which share a *model*.
//!
//! ```text
//! model     0       1         3
//!           | kind  | version | modes and bins of pco, to the end |
//!           | u8    | 2 B     |
//! kind: number type for pco: 0 f64, 1 i64, 2 u64, 3 f32 (only if every word is a widened f32)
//! vector    chunk: encoding 13, rows, length, the flag nulls; all else zero
//!           payload: a page of pco, after the map of nulls, if there are some (nulls.rs)
//! ```
//!
//! The feature `cold` adds the dependency on pco. Without the feature, the cold form is never written, and reading it
//! is an error; callers check [`COLD`] first, to report an error of their own.

use crate::chunk::Chunk;
use crate::column::ColumnType;
use tidalite_base::Corrupt;

mod column;
#[cfg(feature = "cold")]
mod pages;

pub use column::ColdColumn;

/// Whether this build reads and writes the cold form of columns (feature `cold`).
pub const COLD: bool = cfg!(feature = "cold");

/// Encodes the vectors of a column in cold form; each vector has 1 to 1024 words. Returns `None` if the vectors cannot
/// be encoded, if the result would not be smaller, or if the build lacks the feature `cold`.
///
/// Cost: about 60 ns per value.
#[must_use]
pub fn encode_cold(ty: ColumnType, vectors: &[&[u64]]) -> Option<ColdColumn> {
    #[cfg(feature = "cold")]
    return pages::encode(ty, vectors);
    #[cfg(not(feature = "cold"))]
    {
        let _ = (ty, vectors);
        None
    }
}

/// Decodes a vector in cold form; `out` must have exactly `chunk.rows()` elements.
///
/// [`Corrupt`] if model, chunk and payload contradict each other or the length of `out`, and in a build without the
/// feature `cold`. The contents of `out` are then unspecified.
pub fn decode_cold(
    model: &[u8],
    chunk: &Chunk,
    bytes: &[u8],
    out: &mut [u64],
) -> Result<(), Corrupt> {
    #[cfg(feature = "cold")]
    return pages::decode(model, chunk, bytes, out);
    #[cfg(not(feature = "cold"))]
    {
        let _ = (model, chunk, bytes, out);
        let found = "a build without the feature `cold`";
        Err(Corrupt::new("cold vector", 0, found, "one that has it"))
    }
}
