//! What programs are asked and told about readers that hold much space, and about writers that wait.

use crate::lock::readers::{Reader, WriterSeen};
use std::fmt;
use std::sync::Arc;

/// A reader that is in the writer's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Laggard {
    /// Who it is, and what it holds.
    pub reader: Reader,
    /// How often the writer has asked within this need for space.
    pub retries: u32,
    /// The disk is full; otherwise the file would grow.
    pub disk_full: bool,
}

/// What the writer does about a laggard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaggardAction {
    /// Looks again a few milliseconds later.
    Wait,
    /// Takes its snapshot away, if it is evictable or parked; otherwise that of the one of these that holds most; without any, as for
    /// `GiveUp`.
    Evict,
    /// Lets the file grow; with a full disk, the transaction fails.
    GiveUp,
}

/// Is asked what to do about a laggard; see [`Options::on_laggard`](crate::Options::on_laggard).
#[derive(Clone)]
pub struct OnLaggard(pub Arc<dyn Fn(&Laggard) -> LaggardAction + Send + Sync>);

impl fmt::Debug for OnLaggard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnLaggard(..)")
    }
}

/// Is told, once a second, for whom a writer waits; see [`Options::on_wait`](crate::Options::on_wait).
#[derive(Clone)]
pub struct OnWait(pub Arc<dyn Fn(&WriterSeen) + Send + Sync>);

impl fmt::Debug for OnWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnWait(..)")
    }
}
