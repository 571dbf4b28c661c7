//! The topics of Tidalite.

use std::path::Path;
use std::time::{Duration, Instant};

use ::tidalite::Database;
use ::tidalite::topics::{Filter, Message, SearchOptions, TopicSearch};

use super::face::{Each, Store, View, Work};
use super::names::Payload;
use crate::engine::Result;

/// Name of the table.
const TABLE: &str = "broker";

/// A database with one table of topics.
pub(super) struct Keyspace(Database);

impl Keyspace {
    pub(super) fn open(dir: &Path) -> Result<Self> {
        Ok(Self(Database::open(dir.join("bench.tdl"))?))
    }
}

impl Store for Keyspace {
    fn publish(&self, messages: &[Message<'_>]) -> Result<Duration> {
        let mut txn = self.0.begin_write()?;
        let mut topics = txn.topics(TABLE)?;
        let published = topics.publish_batch(messages.iter().map(|message| (message, true)))?;
        let begin = Instant::now();
        txn.commit()?;
        let elapsed = begin.elapsed();
        let stored = published.created + published.replaced;
        if stored != messages.len() as u64 {
            return Err(format!("{stored} of {} messages were stored", messages.len()).into());
        }
        Ok(elapsed)
    }

    fn read(&self, work: &mut dyn FnMut(&dyn View) -> Result<()>) -> Result<()> {
        let snapshot = self.0.begin_read()?;
        let topics = snapshot.topics(TABLE)?;
        work(&topics.ok_or("there are no topics")?)
    }

    fn silent_syncs(&self) -> u64 {
        self.0.metrics().appends
    }
}

impl View for ::tidalite::topics::Topics<'_> {
    fn get(&self, topic: &str) -> Result<Option<Payload>> {
        let Some(found) = self.get(topic)? else {
            return Ok(None);
        };
        Ok(Some(found.retained()?.message.payload.try_into()?))
    }

    fn find(&self, filter: &str, each: Each<'_>) -> Result<Work> {
        let filters = vec![Filter::parse(filter)?];
        let mut search = TopicSearch::new(filters, SearchOptions::default());
        while !search.is_done() {
            self.search(&mut search, u64::MAX, &mut |found| {
                let message = &found.retained.message;
                each(message.topic, message.payload);
            })?;
        }
        let counters = search.counters();
        Ok(Work {
            rows: counters.rows,
            pages: Some(counters.pages),
        })
    }
}
