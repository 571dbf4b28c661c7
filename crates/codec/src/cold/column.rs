//! A column in cold form, which is smaller but slower to read: all vectors share one model.

use crate::chunk::Chunk;

/// A column in cold form: the encoded vectors and the model that they share.
#[derive(Clone, Debug, Default)]
pub struct ColdColumn {
    /// The bytes of the model of the compressor pco, which every vector of the column needs for decoding.
    pub model: Vec<u8>,
    /// Chunk and payload of each vector. `None` for a vector in which all words are equal, because the cold form of
    /// such a vector would not be smaller.
    pub vectors: Vec<Option<(Chunk, Vec<u8>)>>,
}
