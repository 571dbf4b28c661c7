//! Messages: topics, queues and buckets of objects. Each is a table with a special layout instead of plain rows.
//!
//! ```text
//! open         finds and creates tables with these layouts
//! open_topics, open_queue, open_bucket
//!              open topics, queues and buckets in a snapshot or a write transaction
//! topics       Topics: retained messages, searches, the feed of changes
//! topics_mut   TopicsMut: publishing, removing
//! queue        Queue: counters, peek, dead letters
//! queue_mut    QueueMut: push, lease, ack and nack, groups
//! bucket       Bucket: objects and their bytes
//! bucket_mut   BucketMut: objects, links, maintenance
//! uploads      BucketMut: uploads over several transactions
//! recover      rebuilds topics, queues and buckets for salvage
//! ```
//!
//! The writers of the crate below read their options and counters for each call, so a call for many messages costs much
//! less than a call for each of them. All times are [`Timestamp`](crate::Timestamp)s. The current time comes from the
//! commit clock ([`Database::clock`](crate::Database::clock)): a wall clock that jumps ahead ends no lease and expires
//! no message.

pub(crate) mod bucket;
pub(crate) mod bucket_mut;
pub(crate) mod open;
pub(crate) mod open_bucket;
pub(crate) mod open_queue;
pub(crate) mod open_topics;
pub(crate) mod queue;
pub(crate) mod queue_mut;
pub(crate) mod recover;
pub(crate) mod topics;
pub(crate) mod topics_mut;
pub(crate) mod uploads;
