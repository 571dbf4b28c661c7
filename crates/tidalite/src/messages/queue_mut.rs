//! Queues of jobs, for changes.

use crate::messages::queue::Queue;
use crate::tables::open_write::Found;
use crate::txn::write::WriteTxn;
use crate::types::error::Result;
use std::time::Duration;
use tidalite_messages::{
    Answered, Delivery, GroupStart, LeaseLimits, NewMessage, Pushed, QueueMaintenance,
    QueueOptions, QueueReader, QueueRecovery, QueueWriter, nanoseconds, recover_queue,
};
use tidalite_pager::WriteTxn as PagesMut;
use tidalite_time::Timestamp;

/// A queue in a write transaction, for changes. [`WriteTxn::queue`](crate::WriteTxn::queue) opens it.
///
/// All changes are part of the transaction. If it is rolled back, its leases were never taken. If an acknowledgement
/// commits together with the result of the work, the work counts exactly once.
pub struct QueueMut<'t> {
    txn: &'t mut WriteTxn,
    index: usize,
}

impl<'t> QueueMut<'t> {
    pub(super) fn new(txn: &'t mut WriteTxn, index: usize) -> Self {
        Self { txn, index }
    }

    fn change<T>(
        &mut self,
        change: impl FnOnce(&mut QueueWriter<'_, PagesMut>, i64) -> tidalite_pager::Result<T>,
    ) -> Result<T> {
        let now = self.txn.now_ns();
        self.txn.change_table(self.index, |tree, pages| {
            change(&mut QueueWriter::open(tree, pages)?, now)
        })
    }

    /// The options.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn options(&self) -> Result<QueueOptions> {
        let (tree, pages) = self.txn.table_tree(self.index)?;
        Ok(*QueueReader::open(tree, pages)?.options())
    }

    /// A view of the queue in its current state, for reading.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn view(&self) -> Result<Queue<'_>> {
        self.txn.check_usable()?;
        let found = Found::open(&self.txn.tables[self.index]);
        Queue::of(self.txn.pages_view(), found, self.txn.now_ns())
    }

    /// Changes the options. They hold for later calls: messages beyond a lower maximum stay, and messages older than a
    /// shorter retention are removed by [`maintain`](Self::maintain).
    ///
    /// # Errors
    /// `InvalidInput` for options that cannot be used; a damaged page, a full disk.
    pub fn set_options(&mut self, options: &QueueOptions) -> Result<()> {
        self.change(|queue, _| queue.set_options(*options))
    }

    /// Pushes a message. Returns its id, or reports that it was not stored because its idempotency key was pushed
    /// before, or because the queue is full and drops new messages.
    ///
    /// # Errors
    /// [`Limit`](crate::ErrorKind::Limit) for a message that is too large, and for a full queue that rejects messages:
    /// nothing has changed then. A damaged page, a full disk.
    ///
    /// # Cost
    /// Writes a few rows; many messages in one call ([`push_many`](Self::push_many)) cost less each.
    pub fn push(&mut self, message: &NewMessage<'_>) -> Result<Pushed> {
        self.change(|queue, now| queue.push(message, now))
    }

    /// Pushes many messages; stores all or none of them if the queue rejects messages when it is full. Returns a result
    /// for each.
    ///
    /// # Errors
    /// As for `push`.
    pub fn push_many(&mut self, messages: &[NewMessage<'_>]) -> Result<Vec<Pushed>> {
        self.change(|queue, now| queue.push_many(messages, now))
    }

    /// Leases ready messages of a group to a consumer for some time, in the order of their priority and then of their
    /// ids. A message that is not acknowledged when its lease lapses is delivered again.
    ///
    /// # Errors
    /// `NotFound` for a group that does not exist; `Limit` for too many messages or a long name of a consumer. A
    /// damaged page, a full disk.
    ///
    /// # Cost
    /// One or two rows for each 64 consecutive ids, and a row for each lease.
    pub fn lease(
        &mut self,
        group: &str,
        consumer: &str,
        duration: Duration,
        limits: LeaseLimits,
    ) -> Result<Vec<Delivery>> {
        let duration = nanoseconds(duration);
        self.change(|queue, now| queue.lease(group, consumer, duration, limits, now))
    }

    /// Takes messages of a group without a lease: the commit of this transaction acknowledges them. A consumer that
    /// fails after the commit loses the messages, unless it has stored its result in the same transaction.
    ///
    /// # Errors
    /// As for `lease`.
    pub fn take(&mut self, group: &str, limits: LeaseLimits) -> Result<Vec<Delivery>> {
        self.change(|queue, now| queue.take(group, limits, now))
    }

    /// Acknowledges messages that a consumer has leased: the group does not get them again. Returns a result for each
    /// id.
    ///
    /// # Errors
    /// `NotFound` for a group that does not exist; `Limit` for too many ids. A damaged page, a full disk.
    ///
    /// # Cost
    /// One or two rows for each 64 consecutive ids.
    pub fn ack(&mut self, group: &str, consumer: &str, ids: &[u64]) -> Result<Vec<Answered>> {
        self.txn.free_space();
        self.change(|queue, now| queue.ack(group, consumer, ids, now))
    }

    /// Returns leased messages to the group: they are ready again after a delay. A message that was delivered as often
    /// as the queue permits becomes a dead letter.
    ///
    /// # Errors
    /// As for `ack`.
    pub fn nack(
        &mut self,
        group: &str,
        consumer: &str,
        ids: &[u64],
        delay: Duration,
    ) -> Result<Vec<Answered>> {
        let delay = nanoseconds(delay);
        self.change(|queue, now| queue.nack(group, consumer, ids, delay, now))
    }

    /// Turns messages into dead letters of the group, regardless of the number of their deliveries.
    ///
    /// # Errors
    /// As for `ack`.
    pub fn reject(&mut self, group: &str, consumer: &str, ids: &[u64]) -> Result<Vec<Answered>> {
        self.change(|queue, now| queue.reject(group, consumer, ids, now))
    }

    /// Extends leases: they lapse when this duration has passed from now on.
    ///
    /// # Errors
    /// As for `ack`.
    pub fn extend(
        &mut self,
        group: &str,
        consumer: &str,
        ids: &[u64],
        duration: Duration,
    ) -> Result<Vec<Answered>> {
        let duration = nanoseconds(duration);
        self.change(|queue, now| queue.extend(group, consumer, ids, duration, now))
    }

    /// Makes dead letters ready again, as if they had never been delivered.
    ///
    /// # Errors
    /// As for `ack`.
    pub fn requeue_dead(&mut self, group: &str, ids: &[u64]) -> Result<Vec<Answered>> {
        self.change(|queue, now| queue.requeue_dead(group, ids, now))
    }

    /// Removes dead letters from the group.
    ///
    /// # Errors
    /// As for `ack`.
    pub fn drop_dead(&mut self, group: &str, ids: &[u64]) -> Result<Vec<Answered>> {
        self.txn.free_space();
        self.change(|queue, now| queue.drop_dead(group, ids, now))
    }

    /// Creates a group of consumers, which gets the stored messages or only later ones. Returns false if it already
    /// exists. A queue without groups has the group [`DEFAULT_GROUP`](crate::queue::DEFAULT_GROUP).
    ///
    /// # Errors
    /// `Limit` for too many groups or a long name; `InvalidName` for a name that groups cannot have. A damaged page, a
    /// full disk.
    pub fn create_group(&mut self, name: &str, start: GroupStart) -> Result<bool> {
        self.change(|queue, now| queue.create_group(name, start, now))
    }

    /// Drops a group; returns false if it does not exist. Messages that only this group needed are removed by
    /// [`maintain`](Self::maintain).
    ///
    /// # Errors
    /// A damaged page, a full disk.
    pub fn drop_group(&mut self, name: &str) -> Result<bool> {
        self.txn.free_space();
        self.change(|queue, _| queue.drop_group(name))
    }

    /// Removes the oldest messages, in any state, at most `limit`; returns whether more messages remain.
    ///
    /// # Errors
    /// A damaged page, a full disk.
    pub fn purge(&mut self, limit: usize) -> Result<bool> {
        self.txn.free_space();
        self.change(|queue, now| queue.purge(limit, now))
    }

    /// Removes the oldest messages of a group, including dead letters, at most `limit`; returns whether more messages
    /// remain.
    ///
    /// # Errors
    /// `NotFound` for a group that does not exist. A damaged page, a full disk.
    pub fn purge_group(&mut self, group: &str, limit: usize) -> Result<bool> {
        self.txn.free_space();
        self.change(|queue, now| queue.purge_group(group, limit, now))
    }

    /// Does periodic maintenance: removes messages that are expired or too old, forgets idempotency keys, frees the
    /// messages of dropped groups, and ends leases and delays that have lapsed. Handles at most `limit` messages of
    /// each kind. Leasing ends lapsed leases, too. Call it from time to time, repeatedly until nothing is left to do;
    /// [`Database::maintain`](crate::Database::maintain) does this for all tables.
    ///
    /// # Errors
    /// A damaged page, a full disk.
    pub fn maintain(&mut self, limit: u64) -> Result<QueueMaintenance> {
        self.maintain_at(Timestamp(self.txn.now_ns()), limit)
    }

    pub(crate) fn maintain_at(&mut self, now: Timestamp, limit: u64) -> Result<QueueMaintenance> {
        self.txn.free_space();
        self.change(|queue, _| queue.maintain(limit, now.0))
    }

    /// Repairs a queue that may have lost parts. If its options are lost, it gets the default ones.
    pub(crate) fn recover(&mut self) -> Result<QueueRecovery> {
        self.txn.change_table(self.index, |tree, pages| {
            recover_queue(tree, pages, Some(QueueOptions::default()))
        })
    }
}
