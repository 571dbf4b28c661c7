//! The interface of all queues.

use crate::engine::Result;

/// Length of a payload in bytes.
pub(super) const PAYLOAD_BYTES: usize = 100;

/// A message: its id, which ascends in the order of the pushes, and its payload.
pub(super) type Delivered = (u64, Vec<u8>);

/// A message to push.
pub(super) struct Job {
    pub(super) payload: [u8; PAYLOAD_BYTES],
    pub(super) key: Option<[u8; 8]>,
}

/// An open queue. Each call is one durable transaction.
pub(super) trait Queue {
    fn push(&mut self, jobs: &[Job]) -> Result<()>;
    /// Leases the first ready messages of a group, at most `limit`.
    fn lease(&mut self, group: usize, limit: usize) -> Result<Vec<Delivered>>;
    /// Acknowledges leased messages of a group: all of them must be leased.
    fn ack(&mut self, group: usize, ids: &[u64]) -> Result<()>;
    /// Number of stored messages, in any state.
    fn left(&self) -> Result<u64>;
    /// Number of waits for the disk so far that are not calls of `fsync` or similar functions.
    fn silent_syncs(&self) -> u64;
}
