//! The queue of Tidalite.

use std::path::Path;
use std::time::Duration;

use ::tidalite::Database;
use ::tidalite::queue::{Answered, GroupStart, LeaseLimits, NewMessage, Pushed};

use super::face::{Delivered, Job, Queue};
use crate::engine::Result;

const TABLE: &str = "jobs";
const CONSUMER: &str = "consumer";
/// Longer than any run, so that no lease lapses.
const LEASE: Duration = Duration::from_secs(24 * 3600);

/// A database with one queue.
pub(super) struct Ours {
    db: Database,
    groups: Vec<String>,
}

impl Ours {
    pub(super) fn open(dir: &Path, groups: usize) -> Result<Self> {
        let db = Database::open(dir.join("bench.tdl"))?;
        let groups: Vec<String> = (0..groups).map(|n| format!("group-{n}")).collect();
        let mut txn = db.begin_write()?;
        let mut queue = txn.queue(TABLE)?;
        for group in &groups {
            queue.create_group(group, GroupStart::Oldest)?;
        }
        txn.commit()?;
        Ok(Self { db, groups })
    }
}

impl Queue for Ours {
    fn push(&mut self, jobs: &[Job]) -> Result<()> {
        let messages: Vec<NewMessage<'_>> = jobs
            .iter()
            .map(|job| NewMessage {
                key: job.key.as_ref().map(|key| &key[..]),
                ..NewMessage::new(&job.payload)
            })
            .collect();
        let mut txn = self.db.begin_write()?;
        let pushed = txn.queue(TABLE)?.push_many(&messages)?;
        txn.commit()?;
        match pushed
            .iter()
            .find(|pushed| !matches!(pushed, Pushed::Stored(_)))
        {
            Some(other) => Err(format!("a push is answered by {other:?}").into()),
            None => Ok(()),
        }
    }

    fn lease(&mut self, group: usize, limit: usize) -> Result<Vec<Delivered>> {
        let mut txn = self.db.begin_write()?;
        let limits = LeaseLimits::messages(limit);
        let found = txn
            .queue(TABLE)?
            .lease(&self.groups[group], CONSUMER, LEASE, limits)?;
        txn.commit()?;
        if let Some(again) = found.iter().find(|found| found.deliveries != 1) {
            return Err(format!("a message has {} deliveries", again.deliveries).into());
        }
        let messages = found.into_iter().map(|found| found.message);
        Ok(messages
            .map(|message| (message.id, message.payload))
            .collect())
    }

    fn ack(&mut self, group: usize, ids: &[u64]) -> Result<()> {
        let mut txn = self.db.begin_write()?;
        let answers = txn.queue(TABLE)?.ack(&self.groups[group], CONSUMER, ids)?;
        txn.commit()?;
        match answers.iter().find(|answer| **answer != Answered::Done) {
            Some(other) => Err(format!("an acknowledgement is answered by {other:?}").into()),
            None => Ok(()),
        }
    }

    fn left(&self) -> Result<u64> {
        let snapshot = self.db.begin_read()?;
        let queue = snapshot.queue(TABLE)?.ok_or("there is no queue")?;
        Ok(queue.stat()?.messages)
    }

    fn silent_syncs(&self) -> u64 {
        self.db.metrics().appends
    }
}
