//! Reading a table of topics.

use crate::topics::feed::{self, TopicChange};
use crate::topics::key::{TopicText, check_topic, key_of};
use crate::topics::message::Retained;
use crate::topics::options::TopicOptions;
use crate::topics::parts::{Part, part, row};
use crate::topics::record;
use crate::topics::state::State;
use tidalite_base::Corrupt;
use tidalite_kv::{PageSlice, TableReader, Tree, Value};
use tidalite_pager::{Error, PageRead, Result};
use tidalite_time::Timestamp;

/// A table of topics in a snapshot.
#[derive(Clone, Debug)]
pub struct TopicsReader<R> {
    pub(super) root: Tree,
    pub(super) r: R,
    pub(super) options: TopicOptions,
    pub(super) state: State,
}

/// Totals of a table of topics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicsStat {
    /// Number of messages, including expired ones until they are purged.
    pub messages: u64,
    /// Number of bytes of all messages: topics, publishers, properties and payloads.
    pub bytes: u64,
    /// Number of messages that have an expiry.
    pub expiring: u64,
    /// Number of changes in the feed.
    pub feed_changes: u64,
    /// Sequence number of the newest change; 0 before the first.
    pub sequence: u64,
}

/// A retained message that was found: its topic and its record. The record is borrowed from the leaf if it is stored
/// there.
#[derive(Clone, Debug)]
pub struct FoundMessage<'r> {
    topic: String,
    record: Record<'r>,
}

#[derive(Clone, Debug)]
enum Record<'r> {
    Page(PageSlice<'r>),
    Owned(Vec<u8>),
}

impl<'r> FoundMessage<'r> {
    pub(super) fn of(key: &[u8], value: Value<'r>) -> Result<Self> {
        Ok(Self {
            topic: TopicText::default().of_key(key)?.to_owned(),
            record: match value.into_piece() {
                Ok(slice) => Record::Page(slice),
                Err(extent) => Record::Owned(extent.to_vec()?),
            },
        })
    }

    /// Like `of`, but borrows nothing.
    pub(super) fn owned(key: &[u8], value: &Value<'_>) -> Result<Self> {
        Ok(Self {
            topic: TopicText::default().of_key(key)?.to_owned(),
            record: Record::Owned(value.to_vec()?),
        })
    }

    /// The topic.
    #[must_use]
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// The message.
    ///
    /// # Errors
    /// `Corrupt` for a record that cannot be decoded.
    pub fn retained(&self) -> Result<Retained<'_>> {
        let record = match &self.record {
            Record::Page(slice) => slice,
            Record::Owned(bytes) => &bytes[..],
        };
        record::decode(&self.topic, record)
    }
}

#[cold]
fn missing(sequence: u64, newest: u64) -> Error {
    let expected = format!("change {sequence} if it is not after {newest}, and none after that");
    Corrupt::new("feed of topics", 0, "other changes", expected).into()
}

/// Changes from the feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopicChanges {
    /// The changes after the requested number, ascending; `next` is the number after which to continue.
    Some {
        /// The changes.
        changes: Vec<TopicChange>,
        /// Sequence number after which to continue.
        next: u64,
        /// Whether the feed has further changes.
        has_more: bool,
    },
    /// The feed no longer has all changes after the requested number, or the requested number is greater than the
    /// number of the newest change: the subscriber must read a snapshot.
    Truncated {
        /// The feed has every change from this number on.
        from: u64,
    },
}

impl<R: PageRead> TopicsReader<R> {
    /// Opens a table of topics.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// One page of the root.
    pub fn open(root: &Tree, r: R) -> Result<Self> {
        let options = TopicOptions::decode(&row(root, &r, Part::Options)?)?;
        let state = State::decode(&row(root, &r, Part::State)?)?;
        Ok(Self::with(*root, r, options, state))
    }

    pub(super) fn with(root: Tree, r: R, options: TopicOptions, state: State) -> Self {
        Self {
            root,
            r,
            options,
            state,
        }
    }

    /// The options.
    #[must_use]
    pub fn options(&self) -> &TopicOptions {
        &self.options
    }

    /// Sequence number of the newest change; 0 before the first. A subscriber that has read this snapshot and then
    /// reads the changes of the feed after this number misses none.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.state.sequence
    }

    /// Totals.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// One page of the root.
    pub fn stat(&self) -> Result<TopicsStat> {
        Ok(TopicsStat {
            messages: self.state.messages,
            bytes: self.state.bytes,
            expiring: self.part(Part::Expiry)?.len(),
            feed_changes: self.part(Part::Feed)?.len(),
            sequence: self.state.sequence,
        })
    }

    pub(super) fn part(&self, which: Part) -> Result<TableReader<'_>> {
        part(&self.root, &self.r, which)
    }

    /// The message of a topic; `None` if it does not exist or has expired at the time `now`.
    ///
    /// # Errors
    /// `InvalidName` for a text that is not a topic; a damaged or unreadable page.
    ///
    /// # Cost
    /// One descent.
    pub fn get(&self, topic: &str, now: i64) -> Result<Option<FoundMessage<'_>>> {
        check_topic(topic)?;
        let key = key_of(topic);
        let Some(value) = self.part(Part::Messages)?.get(&self.r, &key)? else {
            return Ok(None);
        };
        let found = FoundMessage::of(&key, value)?;
        let is_expired = found.retained()?.is_expired(Timestamp(now));
        Ok((!is_expired).then_some(found))
    }

    /// Reads at most `limit` changes after the sequence number `after` from the feed.
    ///
    /// # Errors
    /// `Corrupt` if a change is missing; a damaged or unreadable page.
    ///
    /// # Cost
    /// One descent, then a row for each change.
    pub fn changes(&self, after: u64, limit: usize) -> Result<TopicChanges> {
        let (from, newest) = (self.state.feed_from, self.state.sequence);
        if after < from - 1 || after > newest {
            return Ok(TopicChanges::Truncated { from });
        }
        let (mut changes, mut next) = (Vec::new(), after);
        let mut rows = self.part(Part::Feed)?.cursor(&self.r)?;
        let mut there = after < newest && rows.seek_ge(&(after + 1).to_be_bytes())?;
        while there && changes.len() < limit {
            let change = feed::decode(rows.key(), &rows.value()?.bytes()?)?;
            if change.sequence != next + 1 || change.sequence > newest {
                return Err(missing(next + 1, newest));
            }
            next = change.sequence;
            changes.push(change);
            there = rows.next()?;
        }
        let has_more = next < newest;
        if has_more != there {
            return Err(missing(next + 1, newest));
        }
        Ok(TopicChanges::Some {
            changes,
            next,
            has_more,
        })
    }
}
