//! Topics, a queue and a bucket of objects in the model.
//!
//! ```text
//! topics    retained messages and the feed of changes
//! queue     messages and their states in each group; queue_groups: time, purges, groups
//! bucket    objects and uploads
//! ledger    state that the database does not tell, as rows of an ordinary table
//! expected  the answers that follow from the model
//! answers   the same answers, read from a snapshot
//! ```

mod answers;
pub(crate) mod bucket;
mod expected;
mod ledger;
pub(crate) mod queue;
mod queue_groups;
pub(crate) mod topics;

pub(crate) use answers::{add_to_model, answers};
pub(crate) use ledger::LEDGER;
pub(crate) use ledger::rows_of;
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
    pub topics: Option<Arc<topics::Topics>>,
    /// The queue.
    pub queue: Option<Arc<queue::Queue>>,
    /// The bucket.
    pub bucket: Option<Arc<bucket::Bucket>>,
}

impl Default for Messages {
    fn default() -> Self {
        Self {
            now: super::clock::START,
            topics: None,
            queue: None,
            bucket: None,
        }
    }
}
