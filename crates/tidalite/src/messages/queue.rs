//! Queues of jobs, for reading.

use crate::catalog::table_name::Named;
use crate::messages::open::{check_options, other_options};
use crate::messages::queue_mut::QueueMut;
use crate::tables::open_write::Found;
use crate::txn::pages::{Pages, ReadSource};
use crate::txn::read::Reading;
use crate::txn::write::WriteTxn;
use crate::types::error::Result;
use crate::types::table_types::TableLayout;
use tidalite_messages::{
    DeadLetter, GroupStat, QueueMessage, QueueOptions, QueueReader, QueueStat, QueueWriter,
};

const LAYOUT: TableLayout = TableLayout::Queue;

/// A queue of jobs, in a snapshot or in the current state of a write transaction.
pub struct Queue<'a> {
    reader: QueueReader<Pages<'a>>,
    named: Named<'a>,
    now: i64,
}

impl<S: ReadSource> Reading<S> {
    /// Opens the queue with this name; returns `None` if it does not exist.
    ///
    /// # Errors
    /// `WrongType` for another kind of table; a damaged or unreadable page.
    pub fn queue(&self, name: &str) -> Result<Option<Queue<'_>>> {
        let Some(found) = self.find_untyped(name, LAYOUT)? else {
            return Ok(None);
        };
        Queue::of(self.pages.view(), found, self.clock().now().0).map(Some)
    }
}

impl WriteTxn {
    /// Opens a queue; creates it with the default options if it does not exist.
    ///
    /// Many writers push messages. Consumers lease messages for a time, work on them, and acknowledge them; a message that
    /// is not acknowledged in time is delivered again. Each group of consumers gets every message.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// use std::time::Duration;
    /// use tidalite::queue::{DEFAULT_GROUP, LeaseLimits, NewMessage};
    ///
    /// let mut tx = db.begin_write()?;
    /// tx.queue("jobs")?.push(&NewMessage::new(b"resize 17.jpg"))?;
    /// tx.commit()?;
    ///
    /// let mut tx = db.begin_write()?;
    /// let mut jobs = tx.queue("jobs")?;
    /// let minute = Duration::from_secs(60);
    /// let leased = jobs.lease(DEFAULT_GROUP, "worker 1", minute, LeaseLimits::messages(10))?;
    /// assert_eq!(leased[0].message.payload, b"resize 17.jpg");
    /// tx.commit()?;
    ///
    /// // The work is done here. Its result and the acknowledgement can go into one transaction.
    /// let mut tx = db.begin_write()?;
    /// tx.table("results")?.put(b"17.jpg", b"done")?;
    /// tx.queue("jobs")?.ack(DEFAULT_GROUP, "worker 1", &[leased[0].message.id])?;
    /// tx.commit()?;
    /// # Ok::<(), tidalite::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidName` for an empty or too long name; `WrongType` for another kind of table; `Broken`; errors of the file.
    pub fn queue(&mut self, name: &str) -> Result<QueueMut<'_>> {
        self.open_queue(name, None)
    }

    /// Opens a queue; creates it with these options if it does not exist.
    ///
    /// # Errors
    /// As for [`queue`](Self::queue); `Unsupported` for options that cannot be used, or if the queue exists and has other
    /// options.
    pub fn queue_with(&mut self, name: &str, options: &QueueOptions) -> Result<QueueMut<'_>> {
        self.open_queue(name, Some(options))
    }

    /// Opens an existing queue for changes; returns `None`, and creates nothing, if it does not exist.
    ///
    /// # Errors
    /// As for [`queue`](Self::queue).
    pub fn queue_if_exists(&mut self, name: &str) -> Result<Option<QueueMut<'_>>> {
        let index = self.open_untyped(name, LAYOUT)?;
        Ok(index.map(|index| QueueMut::new(self, index)))
    }

    fn open_queue(&mut self, name: &str, asked: Option<&QueueOptions>) -> Result<QueueMut<'_>> {
        let Some(index) = self.open_untyped(name, LAYOUT)? else {
            let options = asked.copied().unwrap_or_default();
            check_options(options.problem())?;
            let index = self.create_untyped(name, LAYOUT, |tree, pages| {
                QueueWriter::create(tree, pages, options).map(drop)
            })?;
            return Ok(QueueMut::new(self, index));
        };
        let queue = QueueMut::new(self, index);
        if let Some(asked) = asked {
            let stored = queue.options()?;
            if stored != *asked {
                return Err(other_options(name, &stored, asked));
            }
        }
        Ok(queue)
    }
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
    /// `Unsupported` for a group that does not exist; a damaged or unreadable page.
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

    /// The stored messages from an id on, at most `limit`, whatever their state.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn messages(&self, from: u64, limit: usize) -> Result<Vec<QueueMessage>> {
        Ok(self.reader.messages(from, limit)?)
    }

    /// The messages that a group would get next, at most `limit`, with the number of their deliveries so far. Nothing is
    /// leased.
    ///
    /// # Errors
    /// `Unsupported` for a group that does not exist; a damaged or unreadable page.
    pub fn peek(&self, group: &str, limit: usize) -> Result<Vec<(QueueMessage, u32)>> {
        Ok(self.reader.peek(group, limit, self.now)?)
    }

    /// The dead letters of a group from an id on, at most `limit`: messages that were delivered too often or rejected.
    ///
    /// # Errors
    /// `Unsupported` for a group that does not exist; a damaged or unreadable page.
    pub fn dead_letters(&self, group: &str, from: u64, limit: usize) -> Result<Vec<DeadLetter>> {
        Ok(self.reader.dead_letters(group, from, limit)?)
    }

    /// Checks every rule of the format about the rows of the table, and calls `problem` with each violation. The check of a
    /// database does the same with all tables, and checks their pages, too.
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
