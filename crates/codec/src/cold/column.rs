//! A column in cold form.

use crate::chunk::Chunk;

/// A column in cold form.
#[derive(Clone, Debug, Default)]
pub struct ColdColumn {
    /// What every vector needs to be read.
    pub model: Vec<u8>,
    /// Chunk and payload of each vector; `None` where there is nothing to gain: it has one word.
    pub vectors: Vec<Option<(Chunk, Vec<u8>)>>,
}
