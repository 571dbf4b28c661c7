//! The atomics that [`super::protocol`] uses; a model checker replaces this file with its own.

pub(super) use std::sync::atomic::{AtomicU64, Ordering, fence};
