//! Loops over values in plain Rust, which `kernel` compiles for each kind of processor.

pub(crate) mod dd;
pub(crate) mod float;
pub(crate) mod fold;
pub(crate) mod pack;
pub(crate) mod parts;
pub(crate) mod scan;
pub(crate) mod single;
pub(crate) mod slope;
