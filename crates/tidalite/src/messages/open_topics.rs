//! Opening topics, in a snapshot or in a write transaction.

use crate::messages::open::other_options;
use crate::messages::topics::Topics;
use crate::messages::topics_mut::TopicsMut;
use crate::txn::pages::ReadSource;
use crate::txn::read::Reading;
use crate::txn::write::WriteTxn;
use crate::types::error::Result;
use crate::types::table_types::TableLayout;
use tidalite_messages::{TopicOptions, TopicsWriter, check_options};

const LAYOUT: TableLayout = TableLayout::Topics;

impl<S: ReadSource> Reading<S> {
    /// Opens the topics with this name; returns `None` if they do not exist.
    ///
    /// # Errors
    /// `WrongType` for another kind of table; a damaged or unreadable page.
    pub fn topics(&self, name: &str) -> Result<Option<Topics<'_>>> {
        let Some(found) = self.find_untyped(name, LAYOUT)? else {
            return Ok(None);
        };
        Topics::of(self.pages.view(), found, self.clock().now().0).map(Some)
    }
}

impl WriteTxn {
    /// Opens topics; creates them with the default options if they do not exist.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// use tidalite::topics::{Filter, Message};
    ///
    /// let mut tx = db.begin_write()?;
    /// let mut topics = tx.topics("broker")?;
    /// topics.publish(&Message::new("hall/1/temperature", b"21.5"), true)?;
    /// topics.publish(&Message::new("hall/2/temperature", b"19.0"), true)?;
    /// tx.commit()?;
    ///
    /// let snap = db.begin_read()?;
    /// let topics = snap.topics("broker")?.ok_or("no topics")?;
    /// let found = topics.get("hall/1/temperature")?.ok_or("no message")?;
    /// assert_eq!(found.retained()?.message.payload, b"21.5");
    /// assert_eq!(topics.count(&Filter::parse("hall/+/temperature")?)?, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidName` for an empty or too long name; `WrongType` for another kind of table; `Broken`; errors of the
    /// file.
    pub fn topics(&mut self, name: &str) -> Result<TopicsMut<'_>> {
        self.open_topics(name, None)
    }

    /// Opens topics; creates them with these options if they do not exist.
    ///
    /// # Errors
    /// As for [`topics`](Self::topics); `InvalidInput` for options that cannot be used; `WrongType` if the topics exist
    /// and have other options.
    pub fn topics_with(&mut self, name: &str, options: &TopicOptions) -> Result<TopicsMut<'_>> {
        self.open_topics(name, Some(options))
    }

    /// Opens existing topics for changes; returns `None`, and creates nothing, if they do not exist.
    ///
    /// # Errors
    /// As for [`topics`](Self::topics).
    pub fn topics_if_exists(&mut self, name: &str) -> Result<Option<TopicsMut<'_>>> {
        let index = self.open_untyped(name, LAYOUT)?;
        Ok(index.map(|index| TopicsMut::new(self, index)))
    }

    fn open_topics(&mut self, name: &str, asked: Option<&TopicOptions>) -> Result<TopicsMut<'_>> {
        let Some(index) = self.open_untyped(name, LAYOUT)? else {
            let options = asked.copied().unwrap_or_default();
            check_options(options.problem())?;
            let index = self.create_untyped(name, LAYOUT, |tree, pages| {
                TopicsWriter::create(tree, pages, options).map(drop)
            })?;
            return Ok(TopicsMut::new(self, index));
        };
        let topics = TopicsMut::new(self, index);
        if let Some(asked) = asked {
            let stored = topics.options()?;
            if stored != *asked {
                return Err(other_options(name, &stored, asked));
            }
        }
        Ok(topics)
    }
}
