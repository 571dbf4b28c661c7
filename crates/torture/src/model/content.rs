//! The model: the expected content of the database as plain maps.

use super::digest::{Digest, with_pins};
use super::hash::Hash;
use super::messages::state::Messages;
use super::pairs::Pairs;
use super::relation::Relation;
use super::wide::{self, Wide};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tidalite::retention::Retention;

/// The table whose values are nested tables.
pub const TOPICS: &str = "topics";

/// Rows of a series with the default schema: for each time the flags and value bits of each row at that time, in order
/// of arrival. Only a series that keeps duplicates has several rows at a time. No entry is empty.
pub type Rows = BTreeMap<i64, Vec<[u64; 2]>>;

/// The expected content of a database.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// Pairs of each table, by name of the table.
    pub tables: BTreeMap<String, Pairs>,
    /// Sets of values of each table of sets, by name of the table and key.
    pub multis: BTreeMap<String, BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>>,
    /// Hash tables, by name.
    pub hashes: BTreeMap<String, Arc<Hash>>,
    /// Pairs of the tables nested in the table [`TOPICS`], by key; no nested table is empty.
    pub topics: BTreeMap<Vec<u8>, Pairs>,
    /// Rows of the series with the default schema, by name.
    pub series: BTreeMap<String, Rows>,
    /// Series with other columns, by name. Their names sort after all names of series with the default schema.
    pub wide: BTreeMap<String, Arc<Wide>>,
    /// Text of each annotation, by series and key.
    pub annotations: BTreeMap<(String, String), String>,
    /// Retention policies, by name.
    pub retentions: BTreeMap<String, Retention>,
    /// Topics, the queue, the bucket and the containers.
    pub messages: Messages,
    /// Relations, by name.
    pub relations: BTreeMap<String, Arc<Relation>>,
    /// Digest of the pinned content of each pin, by name.
    pub pins: BTreeMap<String, u64>,
}

impl Model {
    /// Digest of the content and the pins.
    #[must_use]
    pub fn digest(&self) -> u64 {
        with_pins(self.content_digest(), &self.pins)
    }

    fn relation_lines(&self) -> Vec<String> {
        let relations = self.relations.iter();
        relations
            .flat_map(|(name, relation)| relation.lines(name))
            .collect()
    }

    /// Digest of the content without pins, as a snapshot shows it.
    #[must_use]
    pub fn content_digest(&self) -> u64 {
        let mut digest = Digest::default();
        for (name, pairs) in &self.tables {
            digest.bytes(name.as_bytes());
            for (key, value) in pairs {
                digest.pair(key, value);
            }
        }
        for (name, keys) in &self.multis {
            digest.bytes(name.as_bytes());
            for (key, values) in keys {
                for value in values {
                    digest.pair(key, value);
                }
            }
        }
        for (name, hash) in &self.hashes {
            digest.bytes(name.as_bytes());
            hash.answers(name).fold(&mut digest);
        }
        for (key, pairs) in &self.topics {
            digest.bytes(key);
            for (key, value) in pairs {
                digest.pair(key, value);
            }
        }
        for (name, policy) in &self.retentions {
            digest.policy(name, policy);
        }
        for (name, rows) in &self.series {
            digest.bytes(name.as_bytes());
            for (&time, rows) in rows {
                for words in rows {
                    digest.row(time, words);
                }
            }
        }
        for (name, wide) in &self.wide {
            digest.bytes(name.as_bytes());
            wide.fold(&mut digest);
        }
        for ((name, key), text) in &self.annotations {
            digest.bytes(name.as_bytes());
            digest.pair(key.as_bytes(), text.as_bytes());
        }
        digest.lines(&self.messages.expected());
        digest.lines(&self.relation_lines());
        digest.0
    }
}

impl Model {
    /// Describes, for error messages, which series and tables differ from those in `found`, and the first difference
    /// in each.
    #[must_use]
    pub fn differs(&self, found: &Self) -> String {
        let none = Rows::new();
        let names: BTreeSet<_> = self.series.keys().chain(found.series.keys()).collect();
        let mut told = String::new();
        for name in names {
            let [own, other] = [self, found].map(|of| of.series.get(name));
            if own.is_some() != other.is_some() {
                told += &format!("\n{name} is there: {}", other.is_some());
            }
            let [own, other] = [own, other].map(|rows| rows.unwrap_or(&none));
            let times: BTreeSet<_> = own.keys().chain(other.keys()).collect();
            let differ = |time: &&i64| own.get(time) != other.get(time);
            let times: Vec<_> = times.into_iter().filter(differ).collect();
            if let Some(first) = times.first() {
                told += &format!(
                    "\n{name}: {} times, at {first} are {:?}, were {:?}",
                    times.len(),
                    other.get(first),
                    own.get(first)
                );
            }
        }
        let names: BTreeSet<_> = self.wide.keys().chain(found.wide.keys()).collect();
        for name in names {
            if let Some(how) = wide::differs(self.wide.get(name), found.wide.get(name)) {
                told += &format!("\n{name}: {how}");
            }
        }
        let names: BTreeSet<_> = self.tables.keys().chain(found.tables.keys()).collect();
        for name in names {
            let [own, other] = [self, found].map(|of| of.tables.get(name));
            if own != other {
                told += &format!("\n{name} has {other:?}, expected are {own:?}");
            }
        }
        let names: BTreeSet<_> = self.hashes.keys().chain(found.hashes.keys()).collect();
        for name in names {
            let [own, other] = [self, found].map(|of| of.hashes.get(name));
            let [own, other] = [own, other].map(|hash| hash.map(|hash| hash.answers(name)));
            if own != other {
                told += &format!("\n{name} answers {other:?}, expected are {own:?}");
            }
        }
        let (own, other) = (self.messages.expected(), found.messages.expected());
        if own != other {
            told += &differing_lines(&own, &other);
        }
        let (own, other) = (self.relation_lines(), found.relation_lines());
        if own != other {
            told += &differing_lines(&own, &other);
        }
        told
    }
}

/// Describes the lines that only one of two contents has.
fn differing_lines(own: &[String], other: &[String]) -> String {
    let lacks = |lines: &[String], of: &[String]| -> Vec<String> {
        let lacking = of.iter().filter(|line| !lines.contains(line));
        lacking.cloned().collect()
    };
    let (missing, added) = (lacks(other, own), lacks(own, other));
    format!("\nmessages and relations answer {added:#?}, expected are {missing:#?}")
}
