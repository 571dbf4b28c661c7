//! Rebuilding topics, queues and buckets from the rows that a salvage has found.

use crate::txn::write::WriteTxn;
use crate::types::error::Result;
use crate::types::table_types::TableLayout;

impl WriteTxn {
    /// Rebuilds the derived rows of topics, of a queue or of a bucket; does nothing for tables of other layouts. Passes
    /// a description of each loss to `problem`.
    pub(crate) fn recover_messages(
        &mut self,
        name: &str,
        layout: Option<TableLayout>,
        problem: &mut dyn FnMut(String),
    ) -> Result<()> {
        match layout {
            Some(TableLayout::Topics) => self.recover_topics(name, problem),
            Some(TableLayout::Queue) => self.recover_queue(name, problem),
            Some(TableLayout::Bucket) => match self.bucket_if_exists(name)? {
                Some(mut bucket) => bucket.recover(problem),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn recover_topics(&mut self, name: &str, problem: &mut dyn FnMut(String)) -> Result<()> {
        let Some(mut topics) = self.topics_if_exists(name)? else {
            return Ok(());
        };
        let recovered = topics.recover()?;
        if recovered.removed > 0 {
            let removed = recovered.removed;
            problem(format!("{removed} messages of topics could not be decoded"));
        }
        if recovered.has_lost_options {
            problem("the options of the topics are lost: they have the default ones".to_owned());
        }
        Ok(())
    }

    fn recover_queue(&mut self, name: &str, problem: &mut dyn FnMut(String)) -> Result<()> {
        let Some(mut queue) = self.queue_if_exists(name)? else {
            return Ok(());
        };
        let recovered = queue.recover()?;
        for (count, lost) in [
            (recovered.removed, "messages could not be decoded"),
            (
                recovered.reopened,
                "messages may be delivered to a group that has acknowledged them",
            ),
            (
                recovered.forgotten,
                "messages have lost their lease, delay or number of deliveries",
            ),
        ] {
            if count > 0 {
                problem(format!("{count} {lost}"));
            }
        }
        Ok(())
    }
}
