//! The atomics used by [`super::protocol`]; a model checker replaces this file by its own.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};
