//! One file or folder for each suite.

pub(crate) mod akumuli;
pub(crate) mod beyond_memory;
pub(crate) mod buffered;
pub(crate) mod catalog;
pub(crate) mod codec;
pub(crate) mod commit;
pub(crate) mod cpu;
pub(crate) mod flespi;
mod floor;
pub(crate) mod growth;
pub(crate) mod harlinn;
pub(crate) mod import;
pub(crate) mod ioarena;
pub(crate) mod long_reader;
pub(crate) mod mdbx;
mod multi_values;
pub(crate) mod nested;
pub(crate) mod raptor;
pub(crate) mod ticks;
