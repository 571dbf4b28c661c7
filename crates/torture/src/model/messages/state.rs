//! The content of all tables of messages.

use super::bucket::Bucket;
use super::containers::Containers;
use super::queue::Queue;
use super::topics::Topics;
use crate::model::clock::START;
use std::sync::Arc;

/// Name of the table of topics.
pub(crate) const BROKER: &str = "broker";
/// Name of the queue.
pub(crate) const JOBS: &str = "jobs";
/// Name of the bucket.
pub(crate) const FILES: &str = "files";
/// Name of the table of containers.
pub(crate) const DEVICES: &str = "devices";

/// Expected content of the topics, of the queue, of the bucket and of the containers; `None` for a table that does not
/// exist.
#[derive(Clone, Debug)]
pub struct Messages {
    /// Time of the last call, in nanoseconds since 1970.
    pub now: i64,
    /// The topics.
    pub topics: Option<Arc<Topics>>,
    /// The queue.
    pub queue: Option<Arc<Queue>>,
    /// The bucket.
    pub bucket: Option<Arc<Bucket>>,
    /// The containers.
    pub containers: Option<Arc<Containers>>,
}

impl Messages {
    /// Whether there are topics, a queue, a bucket or containers.
    #[must_use]
    pub fn exist(&self) -> bool {
        let of_tables = self.topics.is_some() || self.queue.is_some();
        of_tables || self.bucket.is_some() || self.containers.is_some()
    }
}

impl Default for Messages {
    fn default() -> Self {
        Self {
            now: START,
            topics: None,
            queue: None,
            bucket: None,
            containers: None,
        }
    }
}
