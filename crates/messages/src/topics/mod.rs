//! Topics with retained messages, as in MQTT 5.
//!
//! ```text
//! varint, expiry, feed, record     rows: numbers of variable length, times of expiry, changes, messages
//! key          topics and their keys
//! message      messages, as published and received by callers
//! options      limits, and the size of the feed
//! state        totals and the next numbers
//! filter       filters with wildcards
//! steps        skips from a key to the next one that may match
//! terms        sets of topics by the name of one level
//! batch        changes of one call, sorted by key
//! old, follow  the messages before a batch; resulting changes of the other parts
//! apply        applies a batch to all parts
//! read         single messages, totals, changes
//! plan         chooses the method with which matches are found
//! token        the position of a search, as bytes
//! found        options and results of a search
//! search       finds all matches of several filters, a page at a time
//! list         listing and counting by filter
//! write        publishing, setting, removing
//! remove       purging expired messages, removing by filter
//! check        checks every rule of the format
//! recover      rebuilds everything else from the messages
//! ```
//!
//! Invariants:
//! 1. A topic has at most one message. It is assigned an id when it gets a message, and keeps the id while it has one.
//!    Ids are not used again.
//! 2. Sequence numbers ascend from 1 without gaps: one for each message that is set, replaced or removed. Only a
//!    recovery skips numbers.
//! 3. Each message has a row in `Ids`, and is in one set of `Terms` for each level of its topic. If it expires, it has
//!    one row in `Expiry`, whose time is not later than its expiry.
//! 4. All other parts except the options can be rebuilt from the messages. The feed then starts over, and only lower
//!    bounds of the next numbers are known.
//! 5. A feed contains every change from number `State::feed_from` on.

mod apply;
mod batch;
mod check;
mod expiry;
mod feed;
mod filter;
mod follow;
mod found;
mod key;
mod leaves;
mod list;
mod message;
mod old;
mod options;
mod parts;
mod plan;
mod read;
mod record;
mod recover;
mod remove;
mod search;
mod state;
mod steps;
mod terms;
mod token;
mod varint;
mod write;

pub use apply::Published;
pub use feed::TopicChange;
pub use filter::{Filter, matches};
pub use found::{Match, SearchCounters, SearchOptions, SearchPage};
pub use key::{TOPIC_BYTES_MAX, TOPIC_LEVELS_MAX, topic_of_bytes};
pub use leaves::part_of_topic_rows;
pub use list::{TopicCount, TopicList};
pub use message::{
    Message, PROPERTIES_BYTES_MAX, PROPERTY_BYTES_MAX, Properties, Qos, Retained,
    TOPIC_PAYLOAD_BYTES_MAX,
};
pub use options::TopicOptions;
pub use parts::topic_rows;
pub use read::{FoundMessage, TopicChanges, TopicsReader, TopicsStat};
pub use recover::RecoveredTopics;
pub use remove::{Removed, TopicsMaintenance};
pub use search::TopicSearch;
pub use write::TopicsWriter;

#[cfg(test)]
mod tests;
