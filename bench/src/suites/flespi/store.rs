//! Stores of retained topics behind one interface: ours, and other ways to keep the same messages.
//!
//! ```text
//! keyspace   TIDALITE       the topics of Tidalite: one ordered keyspace, with sets of the names of each level
//! nested     NESTED         tables of Tidalite, a nested table for each level of the topics
//! flat       PLAIN_TABLE    a table of Tidalite whose keys are topics with a zero byte for each `/`
//! flat       LMDB           the same in LMDB
//! ```

use std::path::Path;
use std::time::Duration;

use ::tidalite::topics::Message;

use super::flat::{Lmdb, PlainTable};
use super::keyspace::Keyspace;
use super::names::Payload;
use super::nested::Nested;
use crate::contest::takes_part;
use crate::engine::{Kind, LMDB, Result, TIDALITE};

/// Nested tables of Tidalite.
pub(super) const NESTED: Kind = Kind {
    name: "nested-tables",
    ours: false,
    open: |_, _| Err("a store of topics".into()),
};

/// A plain table of Tidalite.
pub(super) const PLAIN_TABLE: Kind = Kind {
    name: "plain-table",
    ours: false,
    open: |_, _| Err("a store of topics".into()),
};

/// All stores; without LMDB if the peers exclude it.
pub(super) fn layouts(peers: &[String]) -> Result<Vec<Kind>> {
    let mut kinds = vec![TIDALITE, NESTED, PLAIN_TABLE];
    if takes_part("lmdb", peers)? {
        kinds.push(LMDB);
    }
    Ok(kinds)
}

/// Ours, and LMDB unless the peers exclude it.
pub(super) fn beside_lmdb(peers: &[String]) -> Result<Vec<Kind>> {
    let mut kinds = layouts(peers)?;
    kinds.retain(|kind| kind.ours || kind.name == LMDB.name);
    Ok(kinds)
}

/// Opens or creates the store of a kind. `data_bytes` is the maximum size of all messages, for the size of memory maps.
pub(super) fn open(kind: Kind, dir: &Path, data_bytes: u64) -> Result<Box<dyn Store>> {
    Ok(match kind.name {
        name if name == TIDALITE.name => Box::new(Keyspace::open(dir)?),
        name if name == NESTED.name => Box::new(Nested::open(dir)?),
        name if name == PLAIN_TABLE.name => Box::new(PlainTable::open(dir)?),
        name if name == LMDB.name => Box::new(Lmdb::open(dir, data_bytes)?),
        name => return Err(format!("{name} is no store of topics").into()),
    })
}

/// An open store; dropping it closes its file.
pub(super) trait Store: Sync {
    /// Stores messages in place of the messages of their topics, in one durable transaction. Returns the time that the
    /// commit took.
    fn publish(&self, messages: &[Message<'_>]) -> Result<Duration>;
    /// Runs work that reads in one snapshot.
    fn read(&self, work: &mut dyn FnMut(&dyn View) -> Result<()>) -> Result<()>;
    /// Number of waits for the disk since the store was opened that are not calls of `fsync` or similar functions.
    fn silent_syncs(&self) -> u64;
}

/// Receives the topics and payloads of matches.
pub(super) type Each<'e> = &'e mut dyn FnMut(&str, &[u8]);

/// A snapshot of a store.
pub(super) trait View {
    /// The payload of a topic; `None` if it has no message.
    fn get(&self, topic: &str) -> Result<Option<Payload>>;
    /// Passes all messages whose topics match a filter to `each`.
    fn find(&self, filter: &str, each: Each<'_>) -> Result<Work>;
}

/// Work of a search.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Work {
    /// Number of rows compared with the filter.
    pub(super) rows: u64,
    /// Number of pages read; `None` if the store does not count them.
    pub(super) pages: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::TempDir;
    use crate::suites::flespi::names::payload;
    use std::collections::BTreeMap;
    use tidalite::topics::Filter;

    #[test]
    fn every_store_finds_what_a_map_has() {
        let names = [
            "a/b/1/4", "a/b/2/4", "a/b/2/5", "a/b/x", "a/c/2/4", "b/b/2/4", "b/b/x", "a-/b", "ab/c",
        ];
        let filters = [
            "#", "a/#", "a/b/#", "+/#", "a/b/+/4", "+/+/x", "+/+/+/+", "+/b/2/4", "a/b/2/4",
            "a/b/x/#", "z/#", "a/+", "+",
        ];
        for kind in layouts(&[]).unwrap() {
            let dir = TempDir::new(kind.name).unwrap();
            let mut model = BTreeMap::new();
            for round in 0..3 {
                let store = open(kind, dir.path(), 1 << 20).unwrap();
                // The second round overwrites only some of the topics, in descending order.
                let chosen: Vec<(usize, &str)> = names.iter().copied().enumerate().collect();
                let chosen: Vec<_> = chosen
                    .into_iter()
                    .filter(|(i, _)| round != 1 || i % 2 == 0)
                    .rev()
                    .collect();
                let payloads: Vec<Payload> = chosen
                    .iter()
                    .map(|(n, _)| payload(round, *n as u64))
                    .collect();
                let messages: Vec<Message<'_>> = chosen
                    .iter()
                    .zip(&payloads)
                    .map(|((_, name), payload)| Message::new(name, payload))
                    .collect();
                store.publish(&messages).unwrap();
                model.extend(chosen.iter().map(|(_, name)| *name).zip(payloads.clone()));
                store
                    .read(&mut |view| {
                        for (name, payload) in &model {
                            assert_eq!(view.get(name)?, Some(*payload), "{} {name}", kind.name);
                        }
                        assert_eq!(view.get("a/b/9")?, None);
                        for text in filters {
                            let filter = Filter::parse(text)?;
                            let mut found = BTreeMap::new();
                            let work = view.find(text, &mut |topic, payload| {
                                let again = found.insert(topic.to_owned(), payload.to_vec());
                                assert_eq!(again, None, "{} {text}: {topic} twice", kind.name);
                            })?;
                            let expected: BTreeMap<String, Vec<u8>> = model
                                .iter()
                                .filter(|(name, _)| filter.matches(name))
                                .map(|(name, payload)| ((*name).to_owned(), payload.to_vec()))
                                .collect();
                            assert_eq!(found, expected, "{} {text}", kind.name);
                            assert!(work.rows >= found.len() as u64, "{} {text}", kind.name);
                        }
                        Ok(())
                    })
                    .unwrap();
            }
        }
    }
}
