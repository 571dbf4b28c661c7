//! Topics with retained messages, for changes.

use crate::messages::topics::Topics;
use crate::tables::open_write::Found;
use crate::txn::write::WriteTxn;
use crate::types::error::Result;
use tidalite_messages::{
    Filter, Message, Published, RecoveredTopics, Removed, TopicOptions, TopicsMaintenance,
    TopicsReader, TopicsWriter,
};
use tidalite_pager::WriteTxn as PagesMut;
use tidalite_time::Timestamp;

/// Topics in a write transaction, for changes. [`WriteTxn::topics`](crate::WriteTxn::topics) opens them.
///
/// A server publishes the messages of many clients in one transaction and acknowledges them after its commit: an
/// acknowledged message is therefore stored.
pub struct TopicsMut<'t> {
    txn: &'t mut WriteTxn,
    index: usize,
}

impl<'t> TopicsMut<'t> {
    pub(super) fn new(txn: &'t mut WriteTxn, index: usize) -> Self {
        Self { txn, index }
    }

    fn change<T>(
        &mut self,
        change: impl FnOnce(&mut TopicsWriter<'_, PagesMut>, i64) -> tidalite_pager::Result<T>,
    ) -> Result<T> {
        let now = self.txn.now_ns();
        self.txn.change_table(self.index, |tree, pages| {
            change(&mut TopicsWriter::open(tree, pages)?, now)
        })
    }

    /// The options.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn options(&self) -> Result<TopicOptions> {
        let (tree, pages) = self.txn.table_tree(self.index)?;
        Ok(*TopicsReader::open(tree, pages)?.options())
    }

    /// A view of the topics in their current state, for reading.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn view(&self) -> Result<Topics<'_>> {
        self.txn.check_usable()?;
        let found = Found::open(&self.txn.tables[self.index]);
        Topics::of(self.txn.pages_view(), found, self.txn.now_ns())
    }

    /// Changes the options. Messages that exceed a lower limit remain and can be removed. A feed that is turned on
    /// contains the changes from now on.
    ///
    /// # Errors
    /// `InvalidInput` for options that cannot be used; a damaged page, a full disk.
    pub fn set_options(&mut self, options: &TopicOptions) -> Result<()> {
        self.change(|topics, _| topics.set_options(*options))
    }

    /// Publishes a message by the rules of MQTT. Without the RETAIN flag nothing changes. With it the message replaces
    /// the message of its topic; an empty payload, or an expiry in the past, removes the topic's message.
    ///
    /// # Errors
    /// [`Limit`](crate::ErrorKind::Limit), `InvalidName` and `InvalidInput` for a message that the table does not take,
    /// whether or not the flag is set: nothing has changed then. A damaged page, a full disk.
    ///
    /// # Cost
    /// Two descents; for the first message of a topic also a row for each level. [`publish_batch`](Self::publish_batch)
    /// publishes many messages at a lower cost for each.
    pub fn publish(&mut self, message: &Message<'_>, retain: bool) -> Result<Published> {
        self.change(|topics, now| topics.publish(now, message, retain))
    }

    /// Publishes many messages, in order, each with its RETAIN flag. If several messages have the same topic, only the
    /// last one counts.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// use tidalite::topics::Message;
    ///
    /// let names: Vec<String> = (0..1000).map(|i| format!("car/{i}/speed")).collect();
    /// let messages: Vec<Message> = names.iter().map(|name| Message::new(name, b"120")).collect();
    /// let mut tx = db.begin_write()?;
    /// let published = tx.topics("broker")?.publish_batch(messages.iter().map(|message| (message, true)))?;
    /// assert_eq!(published.created, 1000);
    /// tx.commit()?;
    /// # Ok::<(), tidalite::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for `publish`; an error of one message refuses all.
    ///
    /// # Cost
    /// Sorts the messages by topic; neighbouring topics share the pages of their descents.
    pub fn publish_batch<'m>(
        &mut self,
        messages: impl IntoIterator<Item = (&'m Message<'m>, bool)>,
    ) -> Result<Published> {
        self.change(|topics, now| topics.publish_batch(now, messages))
    }

    /// Sets the message of a topic with its original time of publication, even if it has expired. This is meant
    /// for copies and imports.
    ///
    /// # Errors
    /// As for `publish`; `InvalidInput` for an empty payload.
    pub fn set(&mut self, message: &Message<'_>, time: Timestamp) -> Result<Published> {
        self.change(|topics, _| topics.set(time.0, message))
    }

    /// Removes the message of a topic; returns whether there was one.
    ///
    /// # Errors
    /// `InvalidName` for a text that is not a topic; a damaged page, a full disk.
    pub fn remove(&mut self, topic: &str) -> Result<bool> {
        self.txn.free_space();
        self.change(|topics, _| topics.remove(topic))
    }

    /// Removes at most `limit` messages whose topics match a filter, beginning at the position `token` of an earlier
    /// call. A dry run only counts them. The filter `name/#` drops a whole namespace.
    ///
    /// # Errors
    /// `InvalidInput` for a token of another filter; a damaged page, a full disk.
    ///
    /// # Cost
    /// As much as a search, and the removal of the messages in one batch.
    pub fn remove_matches(
        &mut self,
        filter: &Filter,
        token: Option<&[u8]>,
        limit: u64,
        is_dry_run: bool,
    ) -> Result<Removed> {
        self.txn.free_space();
        self.change(|topics, _| topics.remove_matches(filter, token, limit, is_dry_run))
    }

    /// Removes messages that have expired, at most `limit`. Expired messages are never found, even before this call,
    /// which frees their space. Call it from time to time, repeatedly until nothing is left to do;
    /// [`Database::maintain`](crate::Database::maintain) does this for all tables.
    ///
    /// # Errors
    /// A damaged page, a full disk.
    pub fn maintain(&mut self, limit: u64) -> Result<TopicsMaintenance> {
        self.maintain_at(Timestamp(self.txn.now_ns()), limit)
    }

    pub(crate) fn maintain_at(&mut self, now: Timestamp, limit: u64) -> Result<TopicsMaintenance> {
        self.txn.free_space();
        self.change(|topics, _| topics.maintain(now.0, limit))
    }

    /// Rebuilds everything except the messages, for topics that may have lost parts.
    pub(crate) fn recover(&mut self) -> Result<RecoveredTopics> {
        self.txn.change_table(self.index, |tree, pages| {
            TopicsWriter::recover(tree, pages).map(|(_, recovered)| recovered)
        })
    }
}
