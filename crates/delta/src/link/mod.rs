//! Decides when rows may become leaves, and defines the trait that receives such rows.

pub(crate) mod overlap;
pub(crate) mod sink;
pub(crate) mod threshold;
