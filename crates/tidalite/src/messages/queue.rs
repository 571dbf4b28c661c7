//! Queues of jobs, for reading.

use crate::catalog::table_name::Named;
use crate::tables::open_write::Found;
use crate::txn::pages::Pages;
use crate::types::error::Result;
use tidalite_messages::{
    DeadLetter, GroupStat, QueueMessage, QueueOptions, QueueReader, QueueStat,
};
use tidalite_time::Timestamp;

/// A queue of jobs, in a snapshot or in the current state of a write transaction.
pub struct Queue<'a> {
    reader: QueueReader<Pages<'a>>,
    named: Named<'a>,
    now: i64,
}

impl<'a> Queue<'a> {
    pub(super) fn of(pages: Pages<'a>, found: Found<'a>, now: i64) -> Result<Self> {
        Ok(Self {
            reader: QueueReader::open(&found.tree, pages)?,
            named: found.named,
            now,
        })
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
    pub fn options(&self) -> &QueueOptions {
        self.reader.options()
    }

    /// Names of the groups of consumers, in order.
    #[must_use]
    pub fn group_names(&self) -> Vec<&str> {
        self.reader.group_names()
    }

    /// Counters of the queue.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn stat(&self) -> Result<QueueStat> {
        Ok(self.reader.stat()?)
    }

    /// Counters of a group.
    ///
    /// # Errors
    /// `NotFound` for a group that does not exist; a damaged or unreadable page.
    pub fn group_stat(&self, group: &str) -> Result<GroupStat> {
        Ok(self.reader.group_stat(group)?)
    }

    /// The message with this id; `None` if no group needs it any longer.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn message(&self, id: u64) -> Result<Option<QueueMessage>> {
        Ok(self.reader.message(id)?)
    }

    /// Lists at most `limit` stored messages, beginning with the id `from`, in any state.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn messages(&self, from: u64, limit: usize) -> Result<Vec<QueueMessage>> {
        Ok(self.reader.messages(from, limit)?)
    }

    /// The messages that a group would get next, at most `limit`, with the number of times each was delivered so far.
    /// Leases nothing.
    ///
    /// # Errors
    /// `NotFound` for a group that does not exist; a damaged or unreadable page.
    pub fn peek(&self, group: &str, limit: usize) -> Result<Vec<(QueueMessage, u32)>> {
        Ok(self.reader.peek(group, limit, self.now)?)
    }

    /// At most `limit` dead letters of a group, beginning with the id `from`: messages that were delivered too often or
    /// rejected.
    ///
    /// # Errors
    /// `NotFound` for a group that does not exist; a damaged or unreadable page.
    pub fn dead_letters(&self, group: &str, from: u64, limit: usize) -> Result<Vec<DeadLetter>> {
        Ok(self.reader.dead_letters(group, from, limit)?)
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
