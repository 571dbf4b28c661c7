//! Queues of jobs: many writers, groups of consumers, leases, retries, dead letters.
//!
//! ```text
//! parts, keys     the tables of a queue, and the keys of their rows
//! options         options and limits
//! message         the encoded form of messages
//! counters        counters of the queue (state) and of each group (group)
//! mark            the state of messages in a group, in blocks of 64 ids
//! sets            sets of ids under keys, as Roaring bitmaps
//! lease_row       the leases of a group
//! seen            idempotency keys
//! store           the rows of messages
//! edit            changes of one group: transitions of messages from one state to another
//! writer          QueueWriter; each kind of call has a file of its own:
//!  ├ push             pushing, idempotency, overflow
//!  ├ lease, due       leasing; leases and delays that have lapsed
//!  ├ answer           ack, nack, reject, extend
//!  ├ dead             dead letters: requeue and drop
//!  ├ groups           creating and dropping groups
//!  └ remove           purging, expiry, retention
//! read            QueueReader: counters, peek, dead letters
//! derive          the rows that are derived from the primary rows
//! check           compares the derived rows with the stored ones
//! repair, recover read the primary rows of a damaged queue, and write all rows again
//! ```
//!
//! ```text
//!            push                      lease                     ack
//!   (writer) ────> ready ────────────────────────> leased ────────────────> removed, if no other group needs it
//!                  ^ ^ ^                            │ │ │
//!    delay is over │ │ └──── lease has lapsed ──────┘ │ └─ too many deliveries, reject ─> dead ─ drop ─> removed
//!            delayed │                                │                                    │
//!                  ^ └───────── nack ─────────────────┤                                    │ requeue
//!                  └─────────── nack with a delay ────┘              ready, or waiting <───┘
//!
//!   waiting: an earlier message with the same ordering key is ready, delayed or leased
//! ```
//!
//! Invariants:
//! 1. Ids ascend from 1 and are never used again. The row of a message never changes.
//! 2. The primary rows are the messages, the sets of open ids, the marks, the leases and the rows of the groups. The
//!    sets by state, the heads of lanes and the counts of states are derived from them (`derive`). The options, the
//!    totals in the state and the idempotency keys of removed messages cannot be derived.
//! 3. An id is open in a group until the group has acknowledged it; dead letters are open, too. A message is stored
//!    exactly as long as its id is open in a group.
//! 4. An open id without a mark is ready and was never delivered.
//! 5. In a group, at most one message of an ordering key is ready, delayed or leased: the head of its lane. All other
//!    messages of the key are waiting or dead.
//! 6. A queue without groups has one group without a name. The first use of the default group renames it. Otherwise the
//!    first group that is created replaces it: the group is renamed if that group starts at the oldest message, and
//!    dropped if it starts at the newest one.

pub(crate) mod answer;
pub(crate) mod check;
pub(crate) mod counters;
pub(crate) mod dead;
pub(crate) mod derive;
pub(crate) mod due;
pub(crate) mod edit;
pub(crate) mod groups;
pub(crate) mod keys;
pub(crate) mod lease;
pub(crate) mod lease_row;
pub(crate) mod leaves;
pub(crate) mod mark;
pub(crate) mod message;
pub(crate) mod options;
pub(crate) mod parts;
pub(crate) mod push;
pub(crate) mod read;
pub(crate) mod recover;
pub(crate) mod remove;
pub(crate) mod repair;
pub(crate) mod seen;
pub(crate) mod sets;
pub(crate) mod store;
pub(crate) mod writer;

#[cfg(test)]
mod tests;
