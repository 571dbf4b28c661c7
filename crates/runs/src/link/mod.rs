//! When rows may become leaves, and who takes them.

pub(crate) mod sink;
