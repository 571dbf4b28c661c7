//! The content of all tables of messages.

use super::bucket::Bucket;
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

/// Expected content of the topics, of the queue and of the bucket; `None` for a table that does not exist.
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
}

impl Default for Messages {
    fn default() -> Self {
        Self {
            now: START,
            topics: None,
            queue: None,
            bucket: None,
        }
    }
}
