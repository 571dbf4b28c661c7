//! The atomics that [`super::protocol`] is written with; a model checker puts its own here.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};
