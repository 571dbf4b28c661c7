//! Moves messages of a queue to containers, in the transaction that acknowledges them.

use crate::txn::write::WriteTxn;
use crate::types::error::Result;
use crate::types::error::kind::ErrorKind;
use std::time::Duration;
use tidalite_messages::{Append, AppendOutcome, Document, LeaseLimits, QueueMessage, Rejection};
use tidalite_time::Timestamp;

/// Name of the consumer that holds messages while they are handed over.
const CONSUMER: &str = "hand-over";

/// Delay before the next attempt for a message that its container had no room for.
const AGAIN_AFTER: Duration = Duration::from_secs(60);

/// A message for a container, made from a message of a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Handed {
    /// Name of the container.
    pub container: String,
    /// Time of the message.
    pub time: Timestamp,
    /// The fields.
    pub document: Document,
}

/// Result of handing messages over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandOver {
    /// Number of messages that were acknowledged: they were appended, or their container did not need them.
    pub done: u64,
    /// Number of messages that became dead letters of the group, because `make` returned no document or one that cannot
    /// be stored.
    pub dead: u64,
    /// Number of messages that their container rejected. The group gets them again after a minute.
    pub rejected: u64,
}

impl WriteTxn {
    /// Moves messages of a queue's group to containers: `make` converts each message to a document, which is appended,
    /// and the message is acknowledged, all in this transaction. So each message reaches its container exactly once,
    /// even after a failure at any point. A message for which `make` returns `None` becomes a dead letter.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// use tidalite::Timestamp;
    /// use tidalite::containers::{Document, Handed};
    /// use tidalite::queue::{DEFAULT_GROUP, LeaseLimits, NewMessage};
    ///
    /// let mut tx = db.begin_write()?;
    /// tx.queue("inbox")?.push(&NewMessage::new(br#"{"device": "pump 3", "time": 17, "level": 0.5}"#))?;
    /// tx.queue("inbox")?.push(&NewMessage::new(b"noise"))?;
    /// let handed = tx.hand_over("inbox", DEFAULT_GROUP, LeaseLimits::messages(100), "devices", &mut |message| {
    ///     let text = std::str::from_utf8(&message.payload).ok()?;
    ///     let mut document = Document::from_json(text).ok()?;
    ///     let container = document.remove("device")?.as_text()?.to_owned();
    ///     let nanos = document.remove("time")?.as_integer()?;
    ///     Some(Handed { container, time: Timestamp(nanos.try_into().ok()?), document })
    /// })?;
    /// assert_eq!((handed.done, handed.dead), (1, 1));
    /// assert_eq!(tx.containers("devices")?.view()?.stat()?.messages, 1);
    /// tx.commit()?;
    /// # Ok::<(), tidalite::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` for a group that does not exist; as for
    /// [`ContainersMut::append_batch`](crate::containers::ContainersMut::append_batch). An error breaks the
    /// transaction.
    pub fn hand_over(
        &mut self,
        queue: &str,
        group: &str,
        limits: LeaseLimits,
        containers: &str,
        make: &mut dyn FnMut(&QueueMessage) -> Option<Handed>,
    ) -> Result<HandOver> {
        // If an error occurs in between, the messages would stay leased.
        self.changing(|txn| txn.hand_over_leased(queue, (group, limits), containers, make))
    }

    fn hand_over_leased(
        &mut self,
        queue: &str,
        (group, limits): (&str, LeaseLimits),
        containers: &str,
        make: &mut dyn FnMut(&QueueMessage) -> Option<Handed>,
    ) -> Result<HandOver> {
        let lease = Duration::from_secs(3600);
        let leased = self.queue(queue)?.lease(group, CONSUMER, lease, limits)?;
        let (mut ids, mut made, mut dead) = (Vec::new(), Vec::new(), Vec::new());
        for delivery in &leased {
            let handed = make(&delivery.message);
            match handed {
                Some(handed) => {
                    ids.push(delivery.message.id);
                    made.push(handed);
                }
                None => dead.push(delivery.message.id),
            }
        }
        let messages: Vec<Append<'_>> = made
            .iter()
            .map(|handed| Append::new(&handed.container, handed.time, &handed.document))
            .collect();
        let outcomes = self.append_each(containers, &messages)?;
        let (mut done, mut rejected) = (Vec::new(), Vec::new());
        for (id, outcome) in ids.into_iter().zip(&outcomes) {
            match outcome {
                Some(AppendOutcome::Rejected(
                    Rejection::MergedTooLarge | Rejection::TooManyTies,
                )) => dead.push(id),
                Some(AppendOutcome::Rejected(_)) => rejected.push(id),
                Some(_) => done.push(id),
                None => dead.push(id),
            }
        }
        let mut queue = self.queue(queue)?;
        queue.ack(group, CONSUMER, &done)?;
        queue.reject(group, CONSUMER, &dead)?;
        queue.nack(group, CONSUMER, &rejected, AGAIN_AFTER)?;
        Ok(HandOver {
            done: done.len() as u64,
            dead: dead.len() as u64,
            rejected: rejected.len() as u64,
        })
    }

    /// Appends messages; the result is `None` for a message that cannot be stored.
    fn append_each(
        &mut self,
        containers: &str,
        messages: &[Append<'_>],
    ) -> Result<Vec<Option<AppendOutcome>>> {
        let mut containers = self.containers(containers)?;
        let refused = |kind| {
            matches!(
                kind,
                ErrorKind::Limit
                    | ErrorKind::InvalidName
                    | ErrorKind::InvalidInput
                    | ErrorKind::AlreadyExists
            )
        };
        match containers.append_batch(messages) {
            Ok(appended) => return Ok(appended.outcomes.into_iter().map(Some).collect()),
            Err(error) if !refused(error.kind()) => return Err(error),
            Err(_) => {}
        }
        // Nothing has changed. The messages are appended one by one to find the refused ones.
        let mut outcomes = Vec::with_capacity(messages.len());
        for message in messages {
            outcomes.push(match containers.append(message) {
                Ok(outcome) => Some(outcome),
                Err(error) if refused(error.kind()) => None,
                Err(error) => return Err(error),
            });
        }
        Ok(outcomes)
    }
}
