//! The interface of all stores of retained topics.

use std::time::Duration;

use ::tidalite::topics::Message;

use super::names::Payload;
use crate::engine::Result;

/// An open store; dropping it closes its file.
pub(super) trait Store: Sync {
    /// Stores messages, replacing the messages of their topics, in one durable transaction. Returns the time that the
    /// commit took.
    fn publish(&self, messages: &[Message<'_>]) -> Result<Duration>;
    /// Runs work that reads from one snapshot.
    fn read(&self, work: &mut dyn FnMut(&dyn View) -> Result<()>) -> Result<()>;
    /// Number of waits for the disk since the store was opened that are not calls of `fsync` or similar functions.
    fn silent_syncs(&self) -> u64;
}

/// Callback that receives the topics and payloads of matches.
pub(super) type Each<'e> = &'e mut dyn FnMut(&str, &[u8]);

/// A snapshot of a store.
pub(super) trait View {
    /// The payload of a topic; `None` if it has no message.
    fn get(&self, topic: &str) -> Result<Option<Payload>>;
    /// Passes all messages whose topics match a filter to `each`.
    fn find(&self, filter: &str, each: Each<'_>) -> Result<Work>;
}

/// Counters of the work of a search.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Work {
    /// Number of rows compared with the filter.
    pub(super) rows: u64,
    /// Number of pages read; `None` if the store does not count them.
    pub(super) pages: Option<u64>,
}
