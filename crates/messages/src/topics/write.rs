//! Changing a table of topics.

use crate::topics::apply::{Apply, Published, trim_feed};
use crate::topics::batch::{Batch, CHANGES_MAX};
use crate::topics::key::{check_topic, key_of};
use crate::topics::message::{Message, limited};
use crate::topics::options::TopicOptions;
use crate::topics::parts::{Part, change, row};
use crate::topics::read::TopicsReader;
use crate::topics::state::State;
use tidalite_kv::Tree;
use tidalite_pager::{Error, PageRead, PageWrite, Refusal, Result};

/// A table of topics in a write transaction.
///
/// After an error other than `Limit` and `Refused` the table may be partly changed, and the transaction must be
/// rolled back.
pub struct TopicsWriter<'a, W> {
    pub(super) root: &'a mut Tree,
    pub(super) w: &'a mut W,
    pub(super) options: TopicOptions,
    pub(super) state: State,
}

impl<'a, W: PageWrite> TopicsWriter<'a, W> {
    /// Creates a table of topics in an empty table.
    ///
    /// # Errors
    /// `InvalidInput` for options that cannot be used; a full disk, a damaged page.
    pub fn create(root: &'a mut Tree, w: &'a mut W, options: TopicOptions) -> Result<Self> {
        options.check()?;
        let state = State::default();
        root.insert(w, &Part::Options.key(), &options.encode())?;
        root.insert(w, &Part::State.key(), &state.encode())?;
        Ok(Self {
            root,
            w,
            options,
            state,
        })
    }

    /// Opens a table of topics.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// One page of the root.
    pub fn open(root: &'a mut Tree, w: &'a mut W) -> Result<Self> {
        let options = TopicOptions::decode(&row(root, &*w, Part::Options)?)?;
        let state = State::decode(&row(root, &*w, Part::State)?)?;
        Ok(Self {
            root,
            w,
            options,
            state,
        })
    }

    /// The options.
    #[must_use]
    pub fn options(&self) -> &TopicOptions {
        &self.options
    }

    /// Changes the options. Messages that exceed a lower limit remain and can be removed; the table then accepts only
    /// changes that do not make it larger. A feed that is turned on contains the changes from now on.
    ///
    /// # Errors
    /// `InvalidInput` for options that cannot be used; a damaged page, a full disk.
    pub fn set_options(&mut self, options: TopicOptions) -> Result<()> {
        options.check()?;
        let state = &mut self.state;
        if options.feed_changes < self.options.feed_changes {
            change(self.root, self.w, Part::Feed, &mut |w, table| {
                trim_feed(w, table, options.feed_changes, state)
            })?;
        }
        if options.feed_changes == 0 || self.options.feed_changes == 0 {
            state.feed_from = state.sequence + 1;
        }
        self.options = options;
        let row = options.encode();
        self.root.insert(self.w, &Part::Options.key(), &row)?;
        self.apply_parts().put_state()
    }

    /// A reader of the table with the changes made so far.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn reader(&self) -> TopicsReader<&W> {
        TopicsReader::with(*self.root, &*self.w, self.options, self.state)
    }

    pub(super) fn apply_parts(&mut self) -> Apply<'_, W> {
        Apply {
            root: self.root,
            w: self.w,
            options: &self.options,
            state: &mut self.state,
        }
    }

    /// Publishes a message by the rules of MQTT. Without the RETAIN flag nothing changes. With it the message replaces
    /// the message of the topic; an empty payload, or an expiry at or before `now`, removes the topic's message.
    ///
    /// # Errors
    /// `Limit`, `InvalidName` and `InvalidInput` for a message that the table does not take: nothing has changed then,
    /// whether or not the flag is set. Of a message with an empty payload only the topic is checked, without regard to
    /// the table's limits. A damaged page, a full disk.
    ///
    /// # Cost
    /// A descent to read the old message, and one to write the new one. The first message of a topic also needs a row
    /// for each level.
    pub fn publish(&mut self, now: i64, message: &Message<'_>, retain: bool) -> Result<Published> {
        self.publish_batch(now, [(message, retain)])
    }

    /// Publishes many messages in one pass over the table, with the same result as calling `publish` for each in order.
    /// If several messages have the same topic, only the last one counts. Sequence numbers ascend in the order of the
    /// topics.
    ///
    /// # Errors
    /// As for `publish`; a refusal of one message refuses all.
    ///
    /// # Cost
    /// Sorts the messages by topic. Neighbouring topics share the pages of their descents.
    pub fn publish_batch<'m>(
        &mut self,
        now: i64,
        messages: impl IntoIterator<Item = (&'m Message<'m>, bool)>,
    ) -> Result<Published> {
        let messages = messages.into_iter();
        let count = messages.size_hint().0.min(1 << 20);
        let mut batch = Batch::with_capacity(count, 32 * count);
        let mut retained = Vec::with_capacity(count);
        for (message, retain) in messages {
            let is_empty = message.payload.is_empty();
            match is_empty {
                // Limits may have been lowered since the topic got its message; it must still be possible to remove the
                // message.
                true => check_topic(message.topic)?,
                false => self.check(message)?,
            }
            if !retain {
                continue;
            }
            let is_dead = message.expires.is_some_and(|expires| expires.0 <= now);
            self.add(&mut batch, &mut retained, message, is_empty || is_dead)?;
        }
        batch.sort();
        self.apply_parts().run(now, &batch, &retained)
    }

    fn add<'m>(
        &self,
        batch: &mut Batch,
        retained: &mut Vec<&'m Message<'m>>,
        message: &'m Message<'m>,
        is_removal: bool,
    ) -> Result<()> {
        limited("messages of a batch", batch.changes.len() + 1, CHANGES_MAX)?;
        if is_removal {
            batch.push(message.topic, None);
        } else {
            batch.push(message.topic, Some(retained.len()));
            retained.push(message);
        }
        Ok(())
    }

    /// Sets the message of a topic, with `time` as its time of publication, even if it has expired.
    ///
    /// # Errors
    /// As for `publish`; `InvalidInput` for an empty payload, which no retained message has.
    pub fn set(&mut self, time: i64, message: &Message<'_>) -> Result<Published> {
        self.check(message)?;
        if message.payload.is_empty() {
            return Err(Error::refused(
                Refusal::InvalidInput,
                format!("an empty payload for the topic {:?}", message.topic),
                "a payload that is not empty",
            ));
        }
        let mut batch = Batch::default();
        batch.push(message.topic, Some(0));
        batch.sort();
        self.apply_parts().run(time, &batch, &[message])
    }

    /// Removes the message of a topic; returns whether there was one.
    ///
    /// # Errors
    /// `InvalidName` for a text that is not a topic; a damaged page, a full disk.
    pub fn remove(&mut self, topic: &str) -> Result<bool> {
        check_topic(topic)?;
        let removed = self.remove_keys(&[key_of(topic)])?;
        Ok(removed > 0)
    }

    /// Removes the messages with these keys; returns the number of removed messages.
    pub(super) fn remove_keys(&mut self, keys: &[Vec<u8>]) -> Result<u64> {
        let mut batch = Batch::default();
        for key in keys {
            batch.push_removal(key);
        }
        batch.sort();
        // No message is written, so the time is not used.
        Ok(self.apply_parts().run(0, &batch, &[])?.removed)
    }

    /// Checks that the table accepts a message.
    fn check(&self, message: &Message<'_>) -> Result<()> {
        message.check()?;
        let options = &self.options;
        let (topic, payload) = (message.topic.as_bytes(), message.payload.len());
        limited(
            "bytes of a topic",
            topic.len(),
            options.topic_bytes_max.into(),
        )?;
        limited(
            "bytes of a payload",
            payload,
            options.payload_bytes_max as usize,
        )?;
        let separators = topic.iter().filter(|byte| **byte == b'/').count();
        limited(
            "levels of a topic",
            separators + 1,
            options.levels_max.into(),
        )
    }

    /// The page writer of the transaction.
    pub(super) fn pages(&self) -> &impl PageRead {
        &*self.w
    }
}
