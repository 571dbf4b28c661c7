//! When rows may become leaves, and who takes them.

pub(crate) mod obstacles;
pub(crate) mod sink;
pub(crate) mod threshold;
