//! Topics with retained messages, for reading.

use crate::catalog::table_name::Named;
use crate::tables::open_write::Found;
use crate::txn::pages::Pages;
use crate::types::error::Result;
use tidalite_messages::{
    Filter, FoundMessage, Match, SearchPage, TopicChanges, TopicCount, TopicList, TopicOptions,
    TopicSearch, TopicsReader, TopicsStat,
};
use tidalite_time::Timestamp;

/// Topics with retained messages, in a snapshot or in the current state of a write transaction.
///
/// Each topic has at most one message, the one that was published last. Filters with wildcards find topics as in MQTT.
/// Messages that had expired when the view was opened are not found.
pub struct Topics<'a> {
    reader: TopicsReader<Pages<'a>>,
    named: Named<'a>,
    now: i64,
}

impl<'a> Topics<'a> {
    pub(super) fn of(pages: Pages<'a>, found: Found<'a>, now: i64) -> Result<Self> {
        Ok(Self {
            reader: TopicsReader::open(&found.tree, pages)?,
            named: found.named,
            now,
        })
    }

    /// The same view at the time `now`: messages that expire at or before it are not found.
    #[must_use]
    pub fn at(self, now: Timestamp) -> Self {
        Self { now: now.0, ..self }
    }

    /// Name of the table.
    #[must_use]
    pub fn name(&self) -> &str {
        self.named.as_str()
    }

    /// Whether `maintain` has work at the time `now`.
    pub(crate) fn is_maintenance_due(&self, now: Timestamp) -> Result<bool> {
        Ok(self.reader.is_maintenance_due(now.0)?)
    }

    /// The options.
    #[must_use]
    pub fn options(&self) -> &TopicOptions {
        self.reader.options()
    }

    /// Totals.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn stat(&self) -> Result<TopicsStat> {
        Ok(self.reader.stat()?)
    }

    /// Sequence number of the newest change; 0 before the first. A subscriber that has read this snapshot and then
    /// reads the [`changes`](Self::changes) after this number misses no change and sees none twice.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.reader.sequence()
    }

    /// The message of a topic; `None` if it does not exist or has expired.
    ///
    /// # Errors
    /// `InvalidName` for a text that is not a topic; a damaged or unreadable page.
    ///
    /// # Cost
    /// One descent.
    pub fn get(&self, topic: &str) -> Result<Option<FoundMessage<'_>>> {
        Ok(self.reader.get(topic, self.now)?)
    }

    /// Passes the next matches of a search to `each`, at most `credit`. The page may have fewer than `credit` matches
    /// although more exist; the result says so. Each page may use another snapshot.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// use tidalite::topics::{Filter, Message, SearchOptions, TopicSearch};
    ///
    /// let mut tx = db.begin_write()?;
    /// let mut topics = tx.topics("broker")?;
    /// for hall in 1..=50 {
    ///     topics.publish(&Message::new(&format!("hall/{hall}/door"), b"shut"), true)?;
    /// }
    /// tx.commit()?;
    ///
    /// let filters = vec![Filter::parse("hall/+/door")?, Filter::parse("hall/7/#")?];
    /// let mut search = TopicSearch::new(filters, SearchOptions::default());
    /// let mut delivered = 0;
    /// while !search.is_done() {
    ///     let snap = db.begin_read()?;
    ///     let topics = snap.topics("broker")?.ok_or("no topics")?;
    ///     // A client with a receive maximum of 20 takes 20 messages, and acknowledges them before the next page.
    ///     delivered += topics.search(&mut search, 20, &mut |_| ())?.delivered;
    /// }
    /// assert_eq!(delivered, 50);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// Reads at most as many rows as `rows_max` of the search's options.
    pub fn search(
        &self,
        search: &mut TopicSearch,
        credit: u64,
        each: &mut dyn FnMut(Match<'_>),
    ) -> Result<SearchPage> {
        let mut each = |found: Match<'_>| {
            each(found);
            Ok(())
        };
        Ok(search.page(&self.reader, self.now, credit, &mut each)?)
    }

    /// Lists at most `limit` messages whose topics match a filter, from the position `token` of an earlier page. If
    /// more messages may exist, the page has a next position, even if it has fewer than `limit` messages.
    ///
    /// # Errors
    /// `InvalidInput` for a token of another filter; a damaged or unreadable page.
    pub fn list(&self, filter: &Filter, token: Option<&[u8]>, limit: u64) -> Result<TopicList> {
        Ok(self.reader.list(filter, self.now, token, limit)?)
    }

    /// Counts the messages whose topics match a filter.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// Two descents if no message of the table can expire and the filter is `#` or a topic followed by `/#`; otherwise
    /// a search.
    pub fn count(&self, filter: &Filter) -> Result<u64> {
        let (mut messages, mut token) = (0, None);
        loop {
            let page = self.count_page(filter, token.as_deref(), u64::MAX)?;
            messages += page.messages;
            match page.next {
                Some(next) => token = Some(next),
                None => return Ok(messages),
            }
        }
    }

    /// Counts messages like [`count`](Self::count), but reads at most `rows_max` rows, beginning at the position
    /// `token` of an earlier count.
    ///
    /// # Errors
    /// `InvalidInput` for a token of another filter; a damaged or unreadable page.
    pub fn count_page(
        &self,
        filter: &Filter,
        token: Option<&[u8]>,
        rows_max: u64,
    ) -> Result<TopicCount> {
        Ok(self.reader.count(filter, self.now, token, rows_max)?)
    }

    /// Reads at most `limit` changes after the sequence number `after` from the feed.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// One descent, then a row for each change.
    pub fn changes(&self, after: u64, limit: usize) -> Result<TopicChanges> {
        Ok(self.reader.changes(after, limit)?)
    }

    /// Checks every rule of the format for the rows of the table, and calls `problem` with each violation. The check of
    /// a database does the same with all tables, and also checks their pages.
    ///
    /// # Errors
    /// A damaged or unreadable page, rows that cannot be decoded.
    ///
    /// # Cost
    /// Reads the whole table.
    pub fn check(&self, problem: &mut dyn FnMut(&str)) -> Result<()> {
        Ok(self.reader.check(&mut |text| problem(&text))?)
    }
}
