//! Objects as JSON and as text, and the outcomes of conditional changes.

use super::place::no_object;
use crate::commands::messages::{Place, pairs_json, time_text};
use crate::exit::{Failure, Outcome};
use crate::output::{bytes_text, plural};
use crate::terminal::Terminal;
use serde_json::{Map, Value, json};
use tidalite::objects::{ObjectAttributes, ObjectInfo, ObjectOutcome, StoredObject};

/// Adds attributes to a JSON object. Attributes that are not set are omitted.
pub(super) fn put_attributes(object: &mut Map<String, Value>, attributes: &ObjectAttributes) {
    let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
    put("protected", attributes.protected.into());
    if !attributes.content_type.is_empty() {
        put("type", attributes.content_type.as_str().into());
    }
    if let Some(expires) = attributes.expires {
        put("expires", time_text(expires).into());
    }
    if !attributes.metadata.is_empty() {
        let pairs = attributes.metadata.iter();
        let pairs = pairs.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        put("metadata", pairs_json(pairs));
    }
}

/// An object as JSON.
pub(super) fn json_of(info: &ObjectInfo) -> Map<String, Value> {
    let mut object = Map::new();
    let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
    put("name", info.name.as_str().into());
    put("size", info.size.into());
    put("hash", info.hash.to_string().into());
    put("created", time_text(info.created).into());
    put("modified", time_text(info.modified).into());
    put("chunk_bytes", info.chunk_bytes.into());
    put_attributes(&mut object, &info.attributes);
    object
}

/// Prints an object that was stored.
pub(super) fn tell_stored(
    place: &Place<'_>,
    stored: &StoredObject,
    json: bool,
    terminal: &mut Terminal<'_>,
) -> Outcome {
    let (info, removed) = (&stored.info, &stored.removed);
    if json {
        let mut object = json_of(info);
        object.insert("replaced".to_owned(), stored.replaced.into());
        object.insert("removed_objects".to_owned(), json!(removed.objects));
        writeln!(terminal.out, "{}", Value::Object(object))?;
        return Ok(terminal.out.flush()?);
    }
    let done = match stored.replaced {
        true => "replaced",
        false => "stored",
    };
    let mut text = format!(
        "{} {done} in {}: {}, hash {}",
        info.name,
        place.table,
        bytes_text(info.size),
        info.hash
    );
    if removed.objects > 0 {
        let objects = plural(removed.objects, "old object", "old objects");
        text += &format!("; {objects} removed to make room");
    }
    crate::commands::messages::told(&text, terminal)
}

/// The failure for a condition that is not met; `found` is the object that has the name.
pub(super) fn refused(found: Option<&ObjectInfo>, name: &str) -> Failure {
    match found {
        Some(found) => Failure::bad_input(format!(
            "nothing was changed: {name} exists, with the hash {}",
            found.hash
        )),
        None => Failure::bad_input(format!("nothing was changed: {name} does not exist")),
    }
    .hint("the options that begin with --if state the condition; `tidalite object info` prints the object")
}

/// Returns the result of a conditional change, or a failure. `from` is the name of the object to change, `to` is the
/// name to which the condition applies.
pub(super) fn done<T>(
    place: &Place<'_>,
    outcome: ObjectOutcome<T>,
    (from, to): (&str, &str),
) -> Outcome<T> {
    match outcome {
        ObjectOutcome::Done(done) => Ok(done),
        ObjectOutcome::Refused(found) => Err(refused(found.as_deref(), to)),
        ObjectOutcome::NotFound => Err(no_object(place, from)),
    }
}
