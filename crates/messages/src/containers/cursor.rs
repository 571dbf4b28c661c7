//! Reading the messages of one container in the order of their times.

use crate::containers::keys::MessageKey;
use crate::containers::message::{ContainerMessage, decode_head};
use crate::containers::options::ContainerOptions;
use crate::containers::parts::{Part, part};
use crate::containers::read::ContainersReader;
use crate::containers::record::Record;
use crate::containers::token::MessageToken;
use tidalite_kv::Cursor;
use tidalite_pager::{Error, PageRead, Refusal, Result};
use tidalite_time::Timestamp;

/// A query for messages: times, order, limit and position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageQuery {
    /// The earliest time.
    pub from: Timestamp,
    /// The latest time, inclusive.
    pub to: Timestamp,
    /// Whether the latest message comes first.
    pub reverse: bool,
    /// Maximum number of messages.
    pub limit: u64,
    /// Position at which an earlier query stopped.
    pub after: Option<MessageToken>,
}

impl Default for MessageQuery {
    /// All messages, the oldest first.
    fn default() -> Self {
        Self {
            from: Timestamp::MIN,
            to: Timestamp::MAX,
            reverse: false,
            limit: u64::MAX,
            after: None,
        }
    }
}

/// The range of times that a cursor reads in one container.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) from: i64,
    pub(crate) to: i64,
    pub(crate) reverse: bool,
    /// The cursor begins after this message, in its own direction.
    pub(crate) behind: Option<MessageKey>,
}

/// Reads messages of one container in the order of their times; messages of one time in the order of their ties.
pub struct MessageCursor<'r, R> {
    /// `None` for a container that does not exist.
    rows: Option<Cursor<'r, R>>,
    number: u32,
    span: Span,
    options: ContainerOptions,
    now: i64,
    left: u64,
    is_open: bool,
    examined: u64,
    /// The bytes of the current row, if it is stored outside its leaf.
    buffer: Vec<u8>,
}

impl<R: PageRead> ContainersReader<R> {
    /// Reads the messages of a container that have not expired at `now`; none if the container does not exist.
    ///
    /// # Errors
    /// `InvalidInput` for a token of another container; a damaged or unreadable page.
    ///
    /// # Cost
    /// The record of the container and a descent, then a step for each message. Expired messages that are not removed
    /// yet are read and skipped only if the container has protected messages.
    pub fn messages(
        &self,
        container: &str,
        query: &MessageQuery,
        now: i64,
    ) -> Result<MessageCursor<'_, R>> {
        let span = Span {
            from: query.from.0,
            to: query.to.0,
            reverse: query.reverse,
            behind: query.after.map(|after| after.key),
        };
        let record = self.record(container)?;
        if let (Some(record), Some(after)) = (&record, query.after)
            && after.key.container != record.number
        {
            return Err(Error::refused(
                Refusal::InvalidInput,
                "a token of another container",
                "a token of a query of this container",
            ));
        }
        self.span(record.as_ref(), span, query.limit, now)
    }

    /// Opens a cursor over a part of a container.
    pub(crate) fn span(
        &self,
        record: Option<&Record>,
        mut span: Span,
        limit: u64,
        now: i64,
    ) -> Result<MessageCursor<'_, R>> {
        let defaults = &self.options.defaults;
        let options = record.map_or(defaults, |record| record.options(defaults));
        let all_expire = record.is_some_and(|record| record.protected_messages == 0);
        if all_expire
            && options.ttl.is_some()
            && let Some(expired) = now.checked_sub(options.ttl_ns())
        {
            span.from = span.from.max(expired.saturating_add(1));
        }
        let rows = match record {
            Some(_) => Some(part(&self.root, &self.r, Part::Messages)?.cursor(&self.r)?),
            None => None,
        };
        Ok(MessageCursor {
            rows,
            number: record.map_or(0, |record| record.number),
            span,
            options: options.clone(),
            now,
            left: limit,
            is_open: false,
            examined: 0,
            buffer: Vec::new(),
        })
    }
}

impl<R: PageRead> MessageCursor<'_, R> {
    /// Number of rows that have been read so far.
    #[must_use]
    pub fn examined(&self) -> u64 {
        self.examined
    }

    /// The next message; `None` at the end.
    ///
    /// # Errors
    /// A damaged or unreadable page or row.
    #[expect(
        clippy::should_implement_trait,
        reason = "the message is borrowed from the cursor"
    )]
    pub fn next(&mut self) -> Result<Option<ContainerMessage<'_>>> {
        match self.advance()? {
            Some(key) => self.current(key).map(Some),
            None => Ok(None),
        }
    }

    /// Moves to the next message; returns its key.
    pub(crate) fn advance(&mut self) -> Result<Option<MessageKey>> {
        loop {
            if self.left == 0 || !self.step()? {
                self.left = 0;
                return Ok(None);
            }
            let Some(rows) = &self.rows else {
                return Ok(None);
            };
            let key = MessageKey::decode(rows.key())?;
            let is_within = (self.span.from..=self.span.to).contains(&key.time.0);
            if key.container != self.number || !is_within {
                self.left = 0;
                return Ok(None);
            }
            self.examined += 1;
            self.buffer.clear();
            let is_protected = match rows.value_slice() {
                Some(row) => decode_head(row)?.is_protected,
                None => {
                    self.buffer = rows.value()?.to_vec()?;
                    decode_head(&self.buffer)?.is_protected
                }
            };
            if !self.options.is_expired(key.time.0, is_protected, self.now) {
                self.left -= 1;
                return Ok(Some(key));
            }
        }
    }

    fn step(&mut self) -> Result<bool> {
        let Some(rows) = &mut self.rows else {
            return Ok(false);
        };
        if std::mem::replace(&mut self.is_open, true) {
            return match self.span.reverse {
                true => rows.previous(),
                false => rows.next(),
            };
        }
        let Span {
            from,
            to,
            reverse,
            behind,
        } = self.span;
        let number = self.number;
        let behind = behind.map(|key| MessageKey {
            container: number,
            ..key
        });
        if reverse {
            let end = MessageKey::new(number, to, u32::MAX);
            return match behind.filter(|behind| *behind <= end) {
                Some(behind) => rows.seek_lt(&behind.encode()),
                None => rows.seek_le(&end.encode()),
            };
        }
        let start = MessageKey::new(number, from, 0);
        match behind.filter(|behind| *behind >= start) {
            Some(behind) => rows.seek_gt(&behind.encode()),
            None => rows.seek_ge(&start.encode()),
        }
    }

    /// The message at which the cursor is positioned.
    pub(crate) fn current(&self, key: MessageKey) -> Result<ContainerMessage<'_>> {
        let inline = match &self.rows {
            Some(rows) if self.buffer.is_empty() => rows.value_slice(),
            _ => None,
        };
        ContainerMessage::decode(key, inline.unwrap_or(&self.buffer))
    }
}
