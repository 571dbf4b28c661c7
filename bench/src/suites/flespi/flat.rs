//! Topics as keys of an ordered table, with a zero byte for each `/`: in a table of Tidalite, and in LMDB.
//!
//! A filter is answered by a scan of the keys that begin with its levels before the first wildcard.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ::tidalite::topics::Message;
use ::tidalite::{Database, ReadTxn, Table};

use super::face::{Each, Store, View, Work};
use super::names::Payload;
use crate::engine::Result;
use crate::lmdb_engine::lmdb::{Env, Txn};

/// Name of the table of Tidalite.
const TABLE: &str = "flat";

/// Writes the key of a topic to `key`.
fn to_key(topic: &str, key: &mut Vec<u8>) {
    key.clear();
    key.extend(
        topic
            .bytes()
            .map(|byte| if byte == b'/' { 0 } else { byte }),
    );
}

/// True if the levels of a filter match a key.
fn matches(levels: &[&str], key: &[u8]) -> bool {
    let mut names = key.split(|byte| *byte == 0);
    for level in levels {
        if *level == "#" {
            return true;
        }
        match names.next() {
            Some(name) if *level == "+" || level.as_bytes() == name => {}
            _ => return false,
        }
    }
    names.next().is_none()
}

/// Callback that receives the keys and values of a scan.
type OnEntry<'e> = &'e mut dyn FnMut(&[u8], &[u8]) -> Result<()>;

/// A table with ordered keys.
trait Ordered {
    fn value(&self, key: &[u8]) -> Result<Option<Payload>>;
    /// Passes all entries whose keys begin with `prefix` to `each`.
    fn scan(&self, prefix: &[u8], each: OnEntry<'_>) -> Result<()>;
    /// Number of pages read so far; `None` if they are not counted.
    fn pages(&self) -> Option<u64>;
}

impl<T: Ordered> View for T {
    fn get(&self, topic: &str) -> Result<Option<Payload>> {
        let mut key = Vec::with_capacity(topic.len());
        to_key(topic, &mut key);
        self.value(&key)
    }

    fn find(&self, filter: &str, each: Each<'_>) -> Result<Work> {
        let before = self.pages();
        let levels: Vec<&str> = filter.split('/').collect();
        let is_wildcard = |level: &&str| matches!(*level, "+" | "#");
        let Some(first) = levels.iter().position(is_wildcard) else {
            if let Some(payload) = self.get(filter)? {
                each(filter, &payload);
            }
            return Ok(Work {
                rows: 1,
                pages: pages_since(before, self.pages()),
            });
        };
        let mut prefix = Vec::new();
        to_key(&levels[..first].join("/"), &mut prefix);
        let (mut rows, mut topic) = (0, String::with_capacity(64));
        if first > 0 {
            // The filter `a/#` matches the topic `a`, too.
            if levels[first] == "#"
                && let Some(payload) = self.value(&prefix)?
            {
                rows += 1;
                each(&levels[..first].join("/"), &payload);
            }
            prefix.push(0);
        }
        self.scan(&prefix, &mut |key, value| {
            rows += 1;
            if matches(&levels, key) {
                topic.clear();
                for (i, name) in key.split(|byte| *byte == 0).enumerate() {
                    if i > 0 {
                        topic.push('/');
                    }
                    topic.push_str(std::str::from_utf8(name)?);
                }
                each(&topic, value);
            }
            Ok(())
        })?;
        Ok(Work {
            rows,
            pages: pages_since(before, self.pages()),
        })
    }
}

fn pages_since(before: Option<u64>, now: Option<u64>) -> Option<u64> {
    Some(now?.saturating_sub(before?))
}

/// A database of Tidalite with one table.
pub(super) struct PlainTable(Database);

impl PlainTable {
    pub(super) fn open(dir: &Path) -> Result<Self> {
        Ok(Self(Database::open(dir.join("bench.tdl"))?))
    }
}

impl Store for PlainTable {
    fn publish(&self, messages: &[Message<'_>]) -> Result<Duration> {
        let mut txn = self.0.begin_write()?;
        let mut table = txn.table(TABLE)?;
        let mut key = Vec::new();
        for message in messages {
            to_key(message.topic, &mut key);
            table.put(&key, message.payload)?;
        }
        let begin = Instant::now();
        txn.commit()?;
        Ok(begin.elapsed())
    }

    fn read(&self, work: &mut dyn FnMut(&dyn View) -> Result<()>) -> Result<()> {
        let snapshot = self.0.begin_read()?;
        let table = snapshot.table(TABLE)?.ok_or("there is no table")?;
        work(&PlainView {
            snapshot: &snapshot,
            table,
        })
    }

    fn silent_syncs(&self) -> u64 {
        self.0.metrics().appends
    }
}

struct PlainView<'s> {
    snapshot: &'s ReadTxn,
    table: Table<'s>,
}

impl Ordered for PlainView<'_> {
    fn value(&self, key: &[u8]) -> Result<Option<Payload>> {
        match self.table.get_ref(key)? {
            Some(value) => Ok(Some(value[..].try_into()?)),
            None => Ok(None),
        }
    }

    fn scan(&self, prefix: &[u8], each: OnEntry<'_>) -> Result<()> {
        let mut cursor = self.table.cursor();
        let mut is_there = cursor.seek_ge(prefix)?;
        while is_there && cursor.key().starts_with(prefix) {
            match cursor.value_ref() {
                Some(value) => each(cursor.key(), value)?,
                None => each(cursor.key(), &cursor.value()?)?,
            }
            is_there = cursor.next()?;
        }
        Ok(())
    }

    fn pages(&self) -> Option<u64> {
        Some(self.snapshot.counters().pages_read.load(Ordering::Relaxed))
    }
}

/// An environment of LMDB with its default durability, as for `Promise::Synced`.
pub(super) struct Lmdb {
    env: Env,
    commits: AtomicU64,
}

impl Lmdb {
    pub(super) fn open(dir: &Path, data_bytes: u64) -> Result<Self> {
        // The memory map has room for half-filled pages and for pages that readers hold.
        let map_bytes = data_bytes * 8 + (1 << 30);
        Ok(Self {
            env: Env::open_with(dir, map_bytes as usize, 0)?,
            commits: AtomicU64::new(0),
        })
    }
}

impl Store for Lmdb {
    fn publish(&self, messages: &[Message<'_>]) -> Result<Duration> {
        let mut txn = self.env.begin(true)?;
        let mut key = Vec::new();
        for message in messages {
            to_key(message.topic, &mut key);
            txn.put(&key, message.payload)?;
        }
        let begin = Instant::now();
        txn.commit()?;
        self.commits.fetch_add(1, Ordering::Relaxed);
        Ok(begin.elapsed())
    }

    fn read(&self, work: &mut dyn FnMut(&dyn View) -> Result<()>) -> Result<()> {
        work(&self.env.begin(false)?)
    }

    /// A commit writes its meta page through a descriptor with `O_DSYNC`.
    fn silent_syncs(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }
}

impl Ordered for Txn<'_> {
    fn value(&self, key: &[u8]) -> Result<Option<Payload>> {
        match self.get(key)? {
            Some(value) => Ok(Some(value.try_into()?)),
            None => Ok(None),
        }
    }

    fn scan(&self, prefix: &[u8], each: OnEntry<'_>) -> Result<()> {
        let mut cursor = self.cursor()?;
        // LMDB does not accept an empty key, so the smallest key is used instead.
        let from = if prefix.is_empty() { &[0][..] } else { prefix };
        let mut entry = cursor.seek(from)?;
        while let Some((key, value)) = entry.filter(|(key, _)| key.starts_with(prefix)) {
            each(key, value)?;
            entry = cursor.next()?;
        }
        Ok(())
    }

    fn pages(&self) -> Option<u64> {
        None
    }
}
