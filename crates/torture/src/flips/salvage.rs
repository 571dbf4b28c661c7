//! Salvage of a file with topics, a queue, a bucket and containers of which one page is damaged: the saved file is
//! sound, and
//!
//! 1. if the page is a leaf that holds messages or a part of an object, only these are lost;
//! 2. if it is a page above leaves, or the root of a table, the rows of the leaves show to which nested table they
//!    belong, and only rows of that table are lost, in few cases;
//! 3. the series of each container has the numbers of all of its messages, and may have numbers of lost ones;
//! 4. the report tells of every loss.

use super::contents::{object_names, object_of, options, sound_file};
use super::image::{HEAD_BYTES, PAGE_BYTES};
use super::{Contents, image::open};
use crate::model::layout_of;
use crate::model::messages::containers::missing_row;
use crate::model::messages::{BROKER, DEVICES, FILES, JOBS};
use std::collections::BTreeSet;
use std::sync::Arc;
use tidalite::containers::Select;
use tidalite::maintenance::{Finding, Salvage};
use tidalite::storage::MemoryStorage;
use tidalite::topics::Filter;
use tidalite::{Database, ReadTxn, TableLayout};

/// Number of bytes that a page and an object have in common if the page holds a part of the object.
const COMMON_BYTES: usize = 12;

/// Maximum number of failures in the text of an error.
const FAILURES_MAX: usize = 20;

/// How the pages of a file were saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// Number of pages that were damaged, one after the other.
    pub pages: u64,
    /// Number of pages whose damage lost nothing.
    pub whole: u64,
    /// Number of pages whose damage lost messages or objects that were in other pages.
    pub above: u64,
    /// Number of pages whose damage lost the options of the topics, which are a table of plain rows then.
    pub without_options: u64,
    /// Numbers of messages of topics, messages of the queue, objects and messages of containers that were lost.
    pub lost: [u64; 4],
}

/// Payloads of topics, payloads of the queue, names of sound objects, and texts of containers.
type Contained = [BTreeSet<String>; 4];

/// The valid file.
struct Sound {
    bytes: Vec<u8>,
    all: Contained,
    /// Hashes of the objects, which their manifests contain.
    hashes: Vec<[u8; 32]>,
}

/// Damages each page of a file, one after the other, by `damage`, and salvages it.
///
/// # Errors
/// Returns the failures, as sentences.
pub fn salvaged(seed: u64, damage: fn(&mut [u8])) -> Result<Saved, String> {
    let (bytes, _) = sound_file(Contents::Messages, seed)?;
    let db = open(&bytes, 0, 0).map_err(|error| error.to_string())?;
    let sound = Sound {
        all: contained(&db)?.0,
        hashes: hashes(&db).map_err(|error| error.to_string())?,
        bytes,
    };
    let (mut saved, mut failures) = (Saved::default(), Vec::new());
    for page in HEAD_BYTES / PAGE_BYTES..sound.bytes.len() / PAGE_BYTES {
        if let Err(problem) = one(&sound, page, damage, &mut saved) {
            failures.push(format!("page {page}: {problem}"));
        }
    }
    match failures.len() {
        0 => Ok(saved),
        count => {
            failures.truncate(FAILURES_MAX);
            let failures = failures.join("\n");
            Err(format!("{count} failures, {saved:?}:\n{failures}"))
        }
    }
}

/// Damages one page.
fn one(sound: &Sound, page: usize, damage: fn(&mut [u8]), saved: &mut Saved) -> Result<(), String> {
    let text = |error: tidalite::Error| error.to_string();
    let mut image = sound.bytes.clone();
    let range = page * PAGE_BYTES..(page + 1) * PAGE_BYTES;
    damage(&mut image[range.clone()]);
    let held = &sound.bytes[range];
    let fresh = options()
        .open_storage(Arc::new(MemoryStorage::new()))
        .map_err(text)?;
    let report = Salvage::of_storage(Arc::new(MemoryStorage::from_image(image)))
        .to_database(&fresh)
        .map_err(text)?;
    let check = fresh.check().map_err(text)?;
    if !check.is_clean() {
        return Err(format!("saved: {:?}", check.problems));
    }
    let (left, has_topics) = contained(&fresh)?;
    let missing = fresh.begin_read().and_then(|snap| missing_row(&snap));
    if let Some(missing) = missing.map_err(text)? {
        return Err(missing);
    }
    saved.pages += 1;
    saved.without_options += u64::from(!has_topics);
    let is_whole = has_topics && left == sound.all;
    saved.whole += u64::from(is_whole);
    if !is_whole && report.is_complete() {
        return Err("the report does not tell of a loss".to_owned());
    }
    for (kind, (all, left)) in sound.all.iter().zip(&left).enumerate() {
        if let Some(other) = left.difference(all).next() {
            return Err(format!("{other} was never there"));
        }
        let lost: Vec<&String> = all.difference(left).collect();
        if lost.is_empty() || kind == 0 && !has_topics {
            continue;
        }
        saved.lost[kind] += lost.len() as u64;
        let is_held = |item: &String| match kind {
            2 => holds_object(held, item, &sound.hashes),
            _ => contains(held, item.as_bytes()),
        };
        if lost.iter().all(|item| is_held(item)) {
            continue;
        }
        saved.above += 1;
        let table = format!("name: {:?}", [BROKER, JOBS, FILES, DEVICES][kind]);
        let is_told = |finding: &Finding| format!("{finding:?}").contains(&table);
        let is_leaf = kind != 2 && all.iter().any(is_held);
        if is_leaf || !report.lost.iter().all(is_told) {
            let told = &report.lost;
            return Err(format!("{lost:?} are lost but elsewhere: {told:?}"));
        }
    }
    Ok(())
}

fn contains(page: &[u8], text: &[u8]) -> bool {
    page.windows(text.len()).any(|found| found == text)
}

/// Whether a page holds a part of an object: some bytes, or its manifest.
fn holds_object(page: &[u8], name: &str, hashes: &[[u8; 32]]) -> bool {
    let number = object_names().iter().position(|other| other == name);
    let Some(number) = number else {
        return false;
    };
    let bytes = object_of(number);
    let parts = page.chunks_exact(COMMON_BYTES);
    contains(page, &hashes[number]) || parts.into_iter().any(|part| contains(&bytes, part))
}

/// The hashes of the objects, which their manifests contain.
fn hashes(db: &Database) -> tidalite::Result<Vec<[u8; 32]>> {
    let snap = db.begin_read()?;
    let Some(bucket) = snap.bucket(FILES)? else {
        return Ok(Vec::new());
    };
    let names = object_names();
    let hash = |name: &String| -> tidalite::Result<[u8; 32]> {
        let info = bucket.info(name)?;
        Ok(info.map_or([0; 32], |info| info.hash.0))
    };
    names.iter().map(hash).collect()
}

/// The content of a database, and whether it has topics.
fn contained(db: &Database) -> Result<(Contained, bool), String> {
    let snap = db.begin_read().map_err(|error| error.to_string())?;
    content_of(&snap).map_err(|error| error.to_string())
}

fn content_of(snap: &ReadTxn) -> tidalite::Result<(Contained, bool)> {
    let mut all = Contained::default();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let has_topics = snap.tables()?.iter().any(|name| name == BROKER)
        && layout_of(snap, BROKER)? == TableLayout::Topics;
    if has_topics && let Some(topics) = snap.topics(BROKER)? {
        let list = topics.list(&Filter::parse("#")?, None, u64::MAX)?;
        for found in &list.messages {
            all[0].insert(text(found.retained()?.message.payload));
        }
    }
    if let Some(queue) = snap.queue(JOBS)? {
        let messages = queue.messages(0, usize::MAX)?.into_iter();
        all[1].extend(messages.map(|message| text(&message.payload)));
    }
    if let Some(bucket) = snap.bucket(FILES)? {
        for (number, name) in object_names().into_iter().enumerate() {
            let Some(info) = bucket.info(&name)? else {
                continue;
            };
            let sound = bucket.verify(&name)?.is_some_and(|found| found.is_sound());
            if sound && bucket.read(&info, 0, u64::MAX)? == object_of(number) {
                all[2].insert(name);
            }
        }
    }
    if let Some(containers) = snap.containers(DEVICES)? {
        for info in containers.list("", None, usize::MAX)? {
            let page = containers.page(&info.name, &Select::default())?;
            let texts = page.messages.iter().map(|found| &found.document);
            let texts = texts.filter_map(|document| document.get("text")?.as_text());
            all[3].extend(texts.map(str::to_owned));
        }
    }
    Ok((all, has_topics))
}
