//! A column in cold form.

use crate::chunk::Chunk;

/// A column in cold form.
#[derive(Clone, Debug, Default)]
pub struct ColdColumn {
    /// Required to decode every vector.
    pub model: Vec<u8>,
    /// Chunk and payload of each vector; `None` if the vector has one word only and nothing can be gained.
    pub vectors: Vec<Option<(Chunk, Vec<u8>)>>,
}
