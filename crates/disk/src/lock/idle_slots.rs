//! The unused reader slots that a handle keeps for its next snapshots, and the number of snapshots that share each
//! slot.

use super::layout::READERS_MAX;
use std::sync::atomic::AtomicU64;

pub(super) const GROUPS: usize = 64;
const _: () = assert!(READERS_MAX == GROUPS * 64);

#[derive(Debug)]
pub(super) struct Slots {
    /// Bitmap of the idle slots that the handle keeps: slot s is bit s / 64 of word s % 64. Each thread begins its
    /// search at a different word.
    pub(super) idle: Box<[AtomicU64]>,
    pub(super) users: Box<[AtomicU64]>,
}

impl Slots {
    pub(super) fn new() -> Self {
        Self {
            idle: (0..GROUPS).map(|_| AtomicU64::new(0)).collect(),
            users: (0..READERS_MAX).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}
