//! The atomics used by [`super::protocol`]; a model checker replaces this file by its own.

pub(super) use std::sync::atomic::{AtomicU64, Ordering, fence};
