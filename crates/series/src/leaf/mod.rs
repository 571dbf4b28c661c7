//! A leaf: up to 16 vectors of rows, column after column, under one directory.

pub(crate) mod assemble;
pub(crate) mod capacity;
pub(crate) mod cold;
pub(crate) mod directory;
pub(crate) mod encoded;
pub(crate) mod entry;
pub(crate) mod layout;
pub(crate) mod open_vector;
pub(crate) mod reader;
pub(crate) mod stats;
pub(crate) mod writer;
