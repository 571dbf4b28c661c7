//! A column in cold form.

use crate::chunk::Chunk;

/// A column in cold form.
#[derive(Clone, Debug, Default)]
pub struct ColdColumn {
    /// The bytes of the pco model, which every vector of the column needs for decoding.
    pub model: Vec<u8>,
    /// Chunk and payload of each vector. `None` for a vector in which all words are equal: the cold form would not be
    /// smaller.
    pub vectors: Vec<Option<(Chunk, Vec<u8>)>>,
}
