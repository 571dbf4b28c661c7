//! A flipped bit in a chunk damages one object: every other object, the queue, the topics and the containers stay
//! readable.

use super::contents::{object_names, object_of, sound_file};
use super::{Contents, image::open};
use crate::model::messages::{BROKER, DEVICES, FILES, JOBS};
use tidalite::containers::Select;
use tidalite::topics::Filter;
use tidalite::{Database, ReadTxn};

/// Number of bytes of a chunk that are used to find its place in the file.
const SAMPLE_BYTES: usize = 24;

/// Flips a bit of every chunk of every object, one after the other; returns their number.
///
/// # Errors
/// Returns the failure, as a sentence.
pub fn isolated(seed: u64) -> Result<u64, String> {
    let (bytes, _) = sound_file(Contents::Messages, seed)?;
    let names = object_names();
    let mut flipped = 0;
    for (number, name) in names.iter().enumerate() {
        let (object, chunk) = (object_of(number), super::contents::CHUNK as usize);
        for (index, part) in object.chunks(chunk).enumerate() {
            let at = part.len() / 2;
            let sample = &part[at..(at + SAMPLE_BYTES).min(part.len())];
            let place = bytes
                .windows(sample.len())
                .position(|found| found == sample);
            let place =
                place.ok_or_else(|| format!("chunk {index} of {name} is not in the file"))?;
            let db = open(&bytes, place, 1 << (index % 8)).map_err(|error| error.to_string())?;
            one_is_damaged(&db, &names, (name, index as u32))
                .map_err(|problem| format!("chunk {index} of {name} is damaged: {problem}"))?;
            flipped += 1;
        }
    }
    Ok(flipped)
}

fn one_is_damaged(db: &Database, names: &[String], damaged: (&str, u32)) -> Result<(), String> {
    let text = |error: tidalite::Error| error.to_string();
    let report = db.check().map_err(text)?;
    if report.is_clean() {
        return Err("the check finds nothing".to_owned());
    }
    let snap = db.begin_read().map_err(text)?;
    let bucket = snap.bucket(FILES).map_err(text)?.ok_or("no bucket")?;
    for (number, name) in names.iter().enumerate() {
        let info = bucket.info(name).map_err(text)?;
        let info = info.ok_or_else(|| format!("{name} is gone"))?;
        let found = bucket.verify(name).map_err(text)?;
        let found = found.ok_or_else(|| format!("{name} is gone"))?;
        let bytes = bucket.read(&info, 0, u64::MAX);
        if name == damaged.0 {
            if found.damaged != [damaged.1] || found.is_sound() || bytes.is_ok() {
                return Err(format!("it is not reported: {found:?}"));
            }
        } else if !found.is_sound() || bytes.map_err(text)? != object_of(number) {
            return Err(format!("{name} is damaged as well: {found:?}"));
        }
    }
    others(&snap).map_err(text)
}

/// Reads the queue, the topics and the containers.
fn others(snap: &ReadTxn) -> tidalite::Result<()> {
    if let Some(queue) = snap.queue(JOBS)? {
        queue.messages(0, usize::MAX)?;
        for group in queue.group_names() {
            queue.peek(group, usize::MAX)?;
        }
    }
    if let Some(topics) = snap.topics(BROKER)? {
        topics.list(&Filter::parse("#")?, None, u64::MAX)?;
    }
    if let Some(containers) = snap.containers(DEVICES)? {
        for info in containers.list("", None, usize::MAX)? {
            containers.page(&info.name, &Select::default())?;
        }
    }
    Ok(())
}
