//! Decides when rows may become leaves, and defines the sink that receives them.

pub(crate) mod overlap;
pub(crate) mod sink;
pub(crate) mod threshold;
