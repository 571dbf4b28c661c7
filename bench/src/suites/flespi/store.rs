//! The stores of retained topics: ours, and alternative layouts for the same messages.
//!
//! ```text
//! keyspace   TIDALITE       the topics of Tidalite: one ordered keyspace, with sets of the names of each level
//! nested     NESTED         tables of Tidalite, a nested table for each level of the topics
//! flat       PLAIN_TABLE    a table of Tidalite whose keys are topics with a zero byte for each `/`
//! flat       LMDB           the same in LMDB
//! ```

use std::path::Path;

use super::face::Store;
use super::flat::{Lmdb, PlainTable};
use super::keyspace::Keyspace;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::TempDir;
    use crate::suites::flespi::names::{Payload, payload};
    use std::collections::BTreeMap;
    use tidalite::topics::{Filter, Message};

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
