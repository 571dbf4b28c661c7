//! The model: plain maps that say what the database must hold.

use super::digest::{Digest, with_pins};
use super::wide::{self, Wide};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tidalite::Retention;

/// The table whose entries are tables.
pub const TOPICS: &str = "topics";

/// Rows of a series of default points: time -> flags and value bits of its rows, in the order in which they arrived. Only a series that
/// keeps all has more than one of a time; none has no row.
pub type Rows = BTreeMap<i64, Vec<[u64; 2]>>;

/// Pairs of a table.
pub type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

/// What a database must hold.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// Tables by name.
    pub tables: BTreeMap<String, Pairs>,
    /// Tables of multi-values by name.
    pub multis: BTreeMap<String, BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>>,
    /// The tables in the table [`TOPICS`]; none is empty.
    pub topics: BTreeMap<Vec<u8>, Pairs>,
    /// Series of default points by name.
    pub series: BTreeMap<String, Rows>,
    /// Series of other columns by name. All names come behind those of the series of points.
    pub wide: BTreeMap<String, Arc<Wide>>,
    /// Annotations: of which series, key -> text.
    pub annotations: BTreeMap<(String, String), String>,
    /// Retention policies by name.
    pub retentions: BTreeMap<String, Retention>,
    /// Pins by name: the digest of the pinned content.
    pub pins: BTreeMap<String, u64>,
}

impl Model {
    /// The digest of the model's content and pins.
    #[must_use]
    pub fn digest(&self) -> u64 {
        with_pins(self.content_digest(), &self.pins)
    }

    /// The digest of the model's content without pins: what a snapshot shows.
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
        digest.0
    }
}

impl Model {
    /// Which series of another content differ, and in what first, for the eye.
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
        told
    }
}
