//! Opening queues, in a snapshot or in a write transaction.

use crate::messages::open::other_options;
use crate::messages::queue::Queue;
use crate::messages::queue_mut::QueueMut;
use crate::txn::pages::ReadSource;
use crate::txn::read::Reading;
use crate::txn::write::WriteTxn;
use crate::types::error::Result;
use crate::types::table_types::TableLayout;
use tidalite_messages::{QueueOptions, QueueWriter, check_options};

const LAYOUT: TableLayout = TableLayout::Queue;

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
    /// Many writers push messages. Consumers lease messages for some time, work on them, and acknowledge them; a
    /// message that is not acknowledged in time is delivered again. Each group of consumers gets every message.
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
    /// `InvalidName` for an empty or too long name; `WrongType` for another kind of table; `Broken`; errors of the
    /// file.
    pub fn queue(&mut self, name: &str) -> Result<QueueMut<'_>> {
        self.open_queue(name, None)
    }

    /// Opens a queue; creates it with these options if it does not exist.
    ///
    /// # Errors
    /// As for [`queue`](Self::queue); `InvalidInput` for options that cannot be used; `WrongType` if the queue exists
    /// and has other options.
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
