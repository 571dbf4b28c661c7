//! Appending messages: arguments and results.

use crate::containers::keys::MessageKey;
use crate::containers::message::StoredMessage;
use crate::containers::sweep::RemovedMessage;
use tidalite_time::Timestamp;

/// A message to append.
#[derive(Clone, Copy, Debug)]
pub struct Append<'a> {
    /// Name of the container.
    pub container: &'a str,
    /// Time of the message.
    pub time: Timestamp,
    /// The fields.
    pub document: &'a crate::containers::document::Document,
    /// A key that is unique for this message within its container. A second message with the same key within the window
    /// of the table's options is not stored.
    pub idempotency_key: Option<&'a [u8]>,
}

impl<'a> Append<'a> {
    /// A message without idempotency key.
    #[must_use]
    pub fn new(
        container: &'a str,
        time: Timestamp,
        document: &'a crate::containers::document::Document,
    ) -> Self {
        Self {
            container,
            time,
            document,
            idempotency_key: None,
        }
    }
}

/// The reason why a message was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The container does not exist, and either the options of the table do not let messages create containers, or the
    /// table has its maximum number of containers.
    NoContainer,
    /// The container is full and rejects messages, or the message alone exceeds the maximum size of the container.
    ContainerFull,
    /// Merging the message with the earlier one would give a document that exceeds the maximum size.
    MergedTooLarge,
    /// There are already 2^32 messages of this time.
    TooManyTies,
}

/// Outcome of one appended message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppendOutcome {
    /// The message was stored as a new one.
    Stored {
        /// The new message.
        key: MessageKey,
    },
    /// The message replaced an earlier one of the same time.
    Replaced {
        /// The message as it was before.
        old: StoredMessage,
    },
    /// The message was merged with an earlier one of the same time.
    Merged {
        /// The message as it was before.
        old: StoredMessage,
        /// The merged document, encoded.
        document: Vec<u8>,
    },
    /// The message was not stored, because the container keeps the first message of each time and already has one of
    /// this time.
    Ignored,
    /// The message was not stored: its idempotency key was seen within the window.
    Repeated,
    /// The message was not stored, because its time to live is 0 or had passed on arrival. It has set the latest
    /// values.
    NotStored,
    /// The message was rejected and not stored.
    Rejected(Rejection),
}

/// Result of appending messages.
///
/// The changes happened in this order: first the messages in `expired` were removed; then each message was handled, by
/// container and time, and for equal times in the order of the call; finally the messages in `rotated` were removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Appended {
    /// Outcome of each message, in the order of the call.
    pub outcomes: Vec<AppendOutcome>,
    /// Names and numbers of the containers that were created.
    pub created: Vec<(String, u32)>,
    /// Expired messages that were removed before the new ones were stored, to make room in full containers.
    pub expired: Vec<RemovedMessage>,
    /// Messages that were removed after the new ones had been stored, because they were the oldest of a full container
    /// or had expired. Messages of this call can be among them.
    pub rotated: Vec<RemovedMessage>,
}

/// The changes that an append has made.
#[derive(Clone, Debug, Default)]
pub struct AppendChanges<'n> {
    /// The result for the caller.
    pub appended: Appended,
    /// The containers that received messages, by name, each with the time of the newest message before the call;
    /// `i64::MIN` if the container was empty.
    pub newest_before: Vec<(&'n str, i64)>,
}
