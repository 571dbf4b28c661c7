//! When rows may become leaves, and the sink that receives them.

pub(crate) mod overlap;
pub(crate) mod sink;
pub(crate) mod threshold;
