//! Topics in nested tables of Tidalite: a table for each level. The name of the last level is the key of the message.
//!
//! The layout is simpler than a broker needs, which favours it: a topic that has other topics below it cannot have a
//! message, and there is no order of changes, no expiry, and no id of a topic.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ::tidalite::topics::Message;
use ::tidalite::{Database, ReadTxn, Table, TableCursor};

use super::face::{Each, Store, View, Work};
use super::names::Payload;
use crate::engine::Result;

/// Name of the outermost table.
const TABLE: &str = "levels";

/// A database with nested tables.
pub(super) struct Nested(Database);

impl Nested {
    pub(super) fn open(dir: &Path) -> Result<Self> {
        Ok(Self(Database::open(dir.join("bench.tdl"))?))
    }
}

/// The levels above the last one, and the last level.
fn split(topic: &str) -> (&str, &str) {
    topic.rsplit_once('/').unwrap_or(("", topic))
}

impl Store for Nested {
    fn publish(&self, messages: &[Message<'_>]) -> Result<Duration> {
        let mut txn = self.0.begin_write()?;
        let mut outermost = txn.table(TABLE)?;
        // The parameters of a message of a device share one descent through the upper levels.
        let is_beside = |a: &Message<'_>, b: &Message<'_>| split(a.topic).0 == split(b.topic).0;
        for beside in messages.chunk_by(is_beside) {
            let above = split(beside[0].topic).0;
            let path: Vec<&str> = above.split('/').filter(|name| !name.is_empty()).collect();
            let entries = beside
                .iter()
                .map(|message| (split(message.topic).1, message.payload));
            outermost.nested_at(&path).extend(entries)?;
        }
        let begin = Instant::now();
        txn.commit()?;
        Ok(begin.elapsed())
    }

    fn read(&self, work: &mut dyn FnMut(&dyn View) -> Result<()>) -> Result<()> {
        let snapshot = self.0.begin_read()?;
        let outermost = snapshot.table(TABLE)?.ok_or("there is no table")?;
        work(&Levels {
            snapshot: &snapshot,
            outermost,
        })
    }

    fn silent_syncs(&self) -> u64 {
        self.0.metrics().appends
    }
}

struct Levels<'s> {
    snapshot: &'s ReadTxn,
    outermost: Table<'s>,
}

impl Levels<'_> {
    fn pages(&self) -> u64 {
        self.snapshot.counters().pages_read.load(Ordering::Relaxed)
    }
}

impl View for Levels<'_> {
    fn get(&self, topic: &str) -> Result<Option<Payload>> {
        let (above, name) = split(topic);
        let path: Vec<&str> = above.split('/').filter(|name| !name.is_empty()).collect();
        let Some(table) = self.outermost.nested_at(&path)? else {
            return Ok(None);
        };
        match table.get_ref(name.as_bytes())? {
            Some(value) => Ok(Some(value[..].try_into()?)),
            None => Ok(None),
        }
    }

    fn find(&self, filter: &str, each: Each<'_>) -> Result<Work> {
        let before = self.pages();
        let levels: Vec<&str> = filter.split('/').collect();
        let mut walk = Walk {
            topic: String::with_capacity(64),
            rows: 0,
            each,
        };
        walk.below(&self.outermost, &levels)?;
        Ok(Work {
            rows: walk.rows,
            pages: Some(self.pages() - before),
        })
    }
}

/// A walk through the levels of a filter.
struct Walk<'e> {
    topic: String,
    rows: u64,
    each: Each<'e>,
}

impl Walk<'_> {
    fn below(&mut self, table: &Table<'_>, levels: &[&str]) -> Result<()> {
        let Some((level, below)) = levels.split_first() else {
            return Ok(());
        };
        let mut cursor = table.cursor();
        if !matches!(*level, "+" | "#") {
            self.rows += 1;
            return match cursor.seek(level.as_bytes())? {
                true => self.entry(&cursor, below),
                false => Ok(()),
            };
        }
        let below = if *level == "#" { levels } else { below };
        let mut is_there = cursor.first()?;
        while is_there {
            self.rows += 1;
            self.entry(&cursor, below)?;
            is_there = cursor.next()?;
        }
        Ok(())
    }

    /// Returns the message at the cursor, or continues in the nested table at the cursor.
    fn entry(&mut self, cursor: &TableCursor<'_>, below: &[&str]) -> Result<()> {
        let len = self.topic.len();
        if len > 0 {
            self.topic.push('/');
        }
        self.topic.push_str(std::str::from_utf8(cursor.key())?);
        match cursor.nested()? {
            Some(nested) => self.below(&nested, below)?,
            // The filter `a/#` matches the topic `a`, too.
            None if matches!(below, [] | ["#"]) => match cursor.value_ref() {
                Some(value) => (self.each)(&self.topic, value),
                None => (self.each)(&self.topic, &cursor.value()?),
            },
            None => {}
        }
        self.topic.truncate(len);
        Ok(())
    }
}
