//! The model: plain maps that say what the database must hold, and a digest that both sides share.
//!
//! A digest stands for the whole content: every table with every pair, every series with every row, in
//! order. Two contents with the same digest are taken as equal (64 bits; a chance of 1 in 10^19).

use super::wide::{self, Wide};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tidalite::{Database, ReadTxn, Result, Retention};
use tidalite_base::checksum;

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

/// Folds parts of a content into one number; the order and the borders of the parts count.
#[derive(Default)]
pub(crate) struct Digest(u64);

impl Digest {
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        self.word(checksum(bytes));
    }

    pub(crate) fn word(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 29;
    }

    fn pair(&mut self, key: &[u8], value: &[u8]) {
        self.bytes(key);
        self.bytes(value);
    }

    fn policy(&mut self, name: &str, policy: &Retention) {
        self.bytes(name.as_bytes());
        self.bytes(policy.pattern.as_bytes());
        self.word(policy.keep.map_or(0, |keep| keep.as_nanos() as u64));
        self.word(policy.bytes.unwrap_or(0));
    }

    fn row(&mut self, time: i64, words: &[u64]) {
        self.word(time as u64);
        for &word in words {
            self.word(word);
        }
    }
}

/// The digest of a content and of what is pinned; that of the content where nothing is.
fn with_pins(content: u64, pins: &BTreeMap<String, u64>) -> u64 {
    if pins.is_empty() {
        return content;
    }
    let mut digest = Digest(content);
    for (name, &pinned) in pins {
        digest.bytes(name.as_bytes());
        digest.word(pinned);
    }
    digest.0
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

/// What a snapshot holds, as a model.
///
/// # Errors
/// What the database reports.
pub fn model_of(snap: &ReadTxn) -> Result<Model> {
    let mut model = Model::default();
    for name in snap.tables()? {
        if name == TOPICS {
            nested(snap, |topic, pair| {
                let pairs = model.topics.entry(topic.to_vec()).or_default();
                if let Some((key, value)) = pair {
                    pairs.insert(key.to_vec(), value.to_vec());
                }
            })?;
        } else if snap.is_multi_table(&name)? == Some(true) {
            let keys = model.multis.entry(name.clone()).or_default();
            multi(snap, &name, |key, value| {
                let values = keys.entry(key.to_vec()).or_default();
                values.insert(value.to_vec());
            })?;
        } else {
            let pairs = model.tables.entry(name.clone()).or_default();
            if let Some(table) = snap.table(&name)? {
                table.for_each(|key, value| drop(pairs.insert(key.to_vec(), value.to_vec())))?;
            }
        }
    }
    model.retentions = snap.retentions()?.into_iter().collect();
    for name in snap.list("")?.iter().map(|info| info.label()) {
        if let Some(series) = snap.series(&name)? {
            for (key, text) in series.annotations()? {
                model.annotations.insert((name.clone(), key), text);
            }
            if wide::is_wide(&series) {
                model.wide.insert(name, Arc::new(wide::wide_of(&series)?));
                continue;
            }
            let rows = model.series.entry(name).or_default();
            series.all().for_each(|time, words| {
                rows.entry(time).or_default().push([words[0], words[1]]);
            })?;
        }
    }
    Ok(model)
}

/// Calls `f` with each nested table's key, and then with it and each of its pairs.
fn nested(snap: &ReadTxn, mut f: impl FnMut(&[u8], Option<(&[u8], &[u8])>)) -> Result<()> {
    let Some(table) = snap.table(TOPICS)? else {
        return Ok(());
    };
    let mut cursor = table.cursor();
    let mut more = cursor.first()?;
    while more {
        let topic = cursor.key();
        f(topic, None);
        if let Some(pairs) = table.nested(topic)? {
            pairs.for_each(|key, value| f(topic, Some((key, value))))?;
        }
        more = cursor.next()?;
    }
    Ok(())
}

fn multi(snap: &ReadTxn, name: &str, mut f: impl FnMut(&[u8], &[u8])) -> Result<()> {
    if let Some(table) = snap.multi_table(name)? {
        let mut cursor = table.cursor();
        while cursor.next_pair()? {
            f(cursor.key(), cursor.value());
        }
    }
    Ok(())
}

/// The digest of what a database holds and has pinned, read through the public API.
///
/// # Errors
/// What the database reports.
pub fn digest_of(db: &Database) -> Result<u64> {
    let content = digest_of_snapshot(&db.begin_read()?)?;
    let mut pins = BTreeMap::new();
    for pin in db.pins()? {
        let pinned = digest_of_snapshot(&db.begin_read_at(&pin.name)?)?;
        pins.insert(pin.name, pinned);
    }
    Ok(with_pins(content, &pins))
}

/// The digest of what a snapshot holds.
///
/// # Errors
/// What the database reports.
pub fn digest_of_snapshot(snap: &ReadTxn) -> Result<u64> {
    let mut digest = Digest::default();
    let mut multis = Vec::new();
    for name in snap.tables()? {
        if name == TOPICS {
            continue;
        }
        if snap.is_multi_table(&name)? == Some(true) {
            multis.push(name);
            continue;
        }
        if let Some(table) = snap.table(&name)? {
            digest.bytes(name.as_bytes());
            table.for_each(|key, value| digest.pair(key, value))?;
        }
    }
    for name in multis {
        digest.bytes(name.as_bytes());
        multi(snap, &name, |key, value| digest.pair(key, value))?;
    }
    nested(snap, |topic, pair| match pair {
        None => digest.bytes(topic),
        Some((key, value)) => digest.pair(key, value),
    })?;
    for (name, policy) in snap.retentions()? {
        digest.policy(&name, &policy);
    }
    let mut names: Vec<String> = snap.list("")?.iter().map(|info| info.label()).collect();
    names.sort();
    let mut annotations = Vec::new();
    for name in names {
        let Some(series) = snap.series(&name)? else {
            continue;
        };
        digest.bytes(name.as_bytes());
        if wide::is_wide(&series) {
            wide::fold(&series, &mut digest)?;
        } else {
            series
                .all()
                .for_each(|time, words| digest.row(time, words))?;
        }
        let own = series.annotations()?.into_iter();
        annotations.extend(own.map(|(key, text)| (name.clone(), key, text)));
    }
    for (name, key, text) in annotations {
        digest.bytes(name.as_bytes());
        digest.pair(key.as_bytes(), text.as_bytes());
    }
    Ok(digest.0)
}
