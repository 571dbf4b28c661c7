//! Reads the content of a database through the public API, as a model or as a digest.

use super::buffered::buffered_of;
use super::content::{Model, TOPICS};
use super::digest::{Digest, with_pins};
use super::hash::{hash_of, layout_of};
use super::messages::{DEVICES, add_to_model, answers};
use super::reading::Reading;
use super::relation::relation_of;
use super::wide;
use std::collections::BTreeMap;
use std::sync::Arc;
use tidalite::{Database, ReadTxn, Result, TableLayout};

/// The content of a database, as digests.
#[derive(Clone, Debug)]
pub struct Digests {
    /// Digest of the newest content.
    pub content: u64,
    /// Digest of the pinned content of each pin, by name; `None` if it was not read.
    pub pins: BTreeMap<String, Option<u64>>,
}

impl Digests {
    /// Whether these may be the digests of a content with this digest and these pins.
    pub(crate) fn fit(&self, content: u64, pins: &BTreeMap<String, u64>) -> bool {
        let fits =
            |((name, found), (known, digest)): ((&String, &Option<u64>), (&String, &u64))| {
                name == known && found.is_none_or(|found| found == *digest)
            };
        self.content == content
            && self.pins.len() == pins.len()
            && self.pins.iter().zip(pins).all(fits)
    }
}

/// Reads the content of a snapshot into a model.
///
/// # Errors
/// An error of the database.
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
        } else if snap.is_set_table(&name)? == Some(true) {
            let keys = model.multis.entry(name.clone()).or_default();
            multi(snap, &name, |key, value| {
                let values = keys.entry(key.to_vec()).or_default();
                values.insert(value.to_vec());
            })?;
        } else if layout_of(snap, &name)? == TableLayout::Hash {
            let (_, hash) = hash_of(snap, &name, Reading::FULL)?;
            model.hashes.insert(name, Arc::new(hash));
        } else if layout_of(snap, &name)? == TableLayout::Relation {
            let relation = relation_of(snap, &name, Reading::FULL)?;
            model.relations.insert(name, Arc::new(relation));
        } else if !is_of_messages(layout_of(snap, &name)?) {
            let pairs = model.tables.entry(name.clone()).or_default();
            each_pair(snap, &name, Reading::FULL, |key, value| {
                pairs.insert(key.to_vec(), value.to_vec());
            })?;
        }
    }
    add_to_model(snap, &model.tables, &mut model.messages)?;
    model.retentions = snap.retentions()?.into_iter().collect();
    for name in own_series(snap)? {
        if let Some(series) = snap.series(&name)? {
            for (key, text) in series.annotations()? {
                model.annotations.insert((name.clone(), key), text);
            }
            if wide::is_wide(&series) {
                model.wide.insert(name, Arc::new(wide::wide_of(&series)?));
                continue;
            }
            let rows = model.series.entry(name).or_default();
            series.query(..).for_each(|time, words| {
                rows.entry(time).or_default().push([words[0], words[1]]);
            })?;
        }
    }
    Ok(model)
}

/// Names of the series. The series of containers are left out, because they are compared with the messages.
fn own_series(snap: &ReadTxn) -> Result<Vec<String>> {
    let names = snap.list("")?.into_iter().map(|info| info.label());
    let of_containers = format!("{DEVICES}{{");
    Ok(names
        .filter(|name| !name.starts_with(&of_containers))
        .collect())
}

/// True for the layouts of topics, queues, buckets and containers, whose rows are not compared as pairs.
fn is_of_messages(layout: TableLayout) -> bool {
    matches!(
        layout,
        TableLayout::Topics | TableLayout::Queue | TableLayout::Bucket | TableLayout::Containers
    )
}

/// For each nested table, calls `f` first with the key of the table, then with that key and each pair of the table.
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

/// Calls `f` with the pairs of a table of rows or of a buffered table.
fn each_pair(
    snap: &ReadTxn,
    name: &str,
    reading: Reading,
    mut f: impl FnMut(&[u8], &[u8]),
) -> Result<()> {
    if layout_of(snap, name)? == TableLayout::Buffered {
        let pairs = buffered_of(snap, name, reading)?;
        pairs.iter().for_each(|(key, value)| f(key, value));
    } else if let Some(table) = snap.table(name)? {
        table.for_each(f)?;
    }
    Ok(())
}

fn multi(snap: &ReadTxn, name: &str, mut f: impl FnMut(&[u8], &[u8])) -> Result<()> {
    if let Some(table) = snap.set_table(name)? {
        let mut cursor = table.cursor();
        while cursor.next()? {
            f(cursor.key(), cursor.value());
        }
    }
    Ok(())
}

/// Digest of the content and the pins of a database, read through the public API.
///
/// # Errors
/// An error of the database.
pub fn digest_of(db: &Database) -> Result<u64> {
    let found = digests_of(db, Reading::FULL)?;
    let pins = found.pins.into_iter();
    let pins = pins.filter_map(|(name, digest)| Some((name, digest?)));
    Ok(with_pins(found.content, &pins.collect()))
}

/// Digests of the content and the pins of a database, read through the public API.
///
/// # Errors
/// An error of the database.
pub fn digests_of(db: &Database, reading: Reading) -> Result<Digests> {
    let content = content_digest_of(&db.begin_read()?, reading)?;
    let mut pins = BTreeMap::new();
    for pin in db.pins()? {
        let pinned = || content_digest_of(&db.begin_read_at(&pin.name)?, reading);
        let pinned = reading.reads_pins.then(pinned).transpose()?;
        pins.insert(pin.name, pinned);
    }
    Ok(Digests { content, pins })
}

/// Digest of the content of a snapshot.
///
/// # Errors
/// An error of the database.
pub fn digest_of_snapshot(snap: &ReadTxn) -> Result<u64> {
    content_digest_of(snap, Reading::FULL)
}

fn content_digest_of(snap: &ReadTxn, reading: Reading) -> Result<u64> {
    let mut digest = Digest::default();
    let (mut multis, mut hashes, mut relations) = (Vec::new(), Vec::new(), Vec::new());
    for name in snap.tables()? {
        if name == TOPICS {
            continue;
        }
        if snap.is_set_table(&name)? == Some(true) {
            multis.push(name);
            continue;
        }
        match layout_of(snap, &name)? {
            TableLayout::Hash => {
                hashes.push(name);
                continue;
            }
            TableLayout::Relation => {
                relations.push(name);
                continue;
            }
            layout if is_of_messages(layout) => continue,
            _ => {}
        }
        digest.bytes(name.as_bytes());
        each_pair(snap, &name, reading, |key, value| {
            digest.pair(key, value);
        })?;
    }
    for name in multis {
        digest.bytes(name.as_bytes());
        multi(snap, &name, |key, value| digest.pair(key, value))?;
    }
    for name in hashes {
        digest.bytes(name.as_bytes());
        hash_of(snap, &name, reading)?.0.fold(&mut digest);
    }
    nested(snap, |topic, pair| match pair {
        None => digest.bytes(topic),
        Some((key, value)) => digest.pair(key, value),
    })?;
    for (name, policy) in snap.retentions()? {
        digest.policy(&name, &policy);
    }
    let mut names = own_series(snap)?;
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
                .query(..)
                .for_each(|time, words| digest.row(time, words))?;
        }
        let own = series.annotations()?.into_iter();
        annotations.extend(own.map(|(key, text)| (name.clone(), key, text)));
    }
    for (name, key, text) in annotations {
        digest.bytes(name.as_bytes());
        digest.pair(key.as_bytes(), text.as_bytes());
    }
    digest.lines(&answers(snap)?);
    for name in relations {
        digest.lines(&relation_of(snap, &name, reading)?.lines(&name));
    }
    Ok(digest.0)
}
