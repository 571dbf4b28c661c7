//! `object upload`: objects whose bytes arrive in several commands.

use super::line::{put_attributes, refused, tell_stored};
use super::place::{bucket, bucket_mut, name_failure};
use super::source::Source;
use crate::args::{
    ObjectUploadAbortArgs, ObjectUploadAppendArgs, ObjectUploadBeginArgs, ObjectUploadCompleteArgs,
    ObjectUploadExtendArgs, ObjectUploadListArgs, ObjectUploadPartArgs,
};
use crate::commands::messages::{Place, time_text, told};
use crate::exit::{Failure, Outcome};
use crate::output::{bytes_text, printable};
use crate::terminal::Terminal;
use serde_json::{Map, Value, json};
use std::io::Read;
use std::time::Duration;
use tidalite::Database;
use tidalite::objects::{
    StoredObject, UploadAppend, UploadCompletion, UploadId, UploadInfo, UploadMode, UploadOutcome,
};

/// Number of bytes of an upload that are committed at a time.
pub(super) const COMMIT_BYTES: usize = 16 << 20;

/// Number of uploads or parts that are read in one call.
const LISTED_AT_ONCE: usize = 1000;

fn lifetime(nanos: i64) -> Duration {
    Duration::from_nanos(nanos.unsigned_abs())
}

/// The failure for an upload that does not exist.
fn no_upload(place: &Place<'_>, id: UploadId) -> Failure {
    Failure::not_found(format!(
        "{} has no upload {}, or it has expired",
        place.table, id.0
    ))
    .hint(format!(
        "`tidalite object upload list {} --table {}` lists the uploads",
        place.path.display(),
        place.table
    ))
}

/// Runs the command `tidalite object upload begin`.
pub(super) fn begin(args: &ObjectUploadBeginArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let (db, _) = place.open_or_create()?;
    let mut tx = place.begin(&db)?;
    let attributes = args.attributes.attributes(tx.clock().now());
    let mode = match args.parts {
        None => UploadMode::Append,
        Some(chunks) => UploadMode::Parts { chunks },
    };
    let mut bucket = bucket_mut(&place, &mut tx)?;
    let id = bucket.begin_upload(&args.name, attributes, mode, lifetime(args.lifetime));
    let id = id.map_err(|error| name_failure(&place, &error))?;
    let upload = bucket.view().and_then(|view| view.upload(id));
    let upload = upload.map_err(|error| place.fail(&error))?;
    place.finish(tx, db)?;
    let upload = upload.ok_or_else(|| no_upload(&place, id))?;
    if args.format.is_json() {
        writeln!(terminal.out, "{}", json_of(&upload))?;
        return Ok(terminal.out.flush()?);
    }
    let parts = match upload.part_bytes() {
        Some(bytes) => format!(", in parts of {bytes} bytes"),
        None => String::new(),
    };
    told(
        &format!("upload {} of {} begun{parts}", id.0, args.name),
        terminal,
    )
}

/// Returns the number of bytes of an upload after an append, or a failure.
pub(super) fn appended(place: &Place<'_>, append: UploadAppend, id: UploadId) -> Outcome<u64> {
    match append {
        UploadAppend::Done { len } => Ok(len),
        UploadAppend::Expected { offset } => Err(Failure::bad_input(format!(
            "upload {} has {offset} bytes; nothing was appended",
            id.0
        ))
        .hint(format!("go on with the bytes from offset {offset} on"))),
        UploadAppend::NotFound => Err(no_upload(place, id)),
    }
}

/// An upload, which must exist.
fn upload(place: &Place<'_>, db: &Database, id: UploadId) -> Outcome<UploadInfo> {
    let snap = db.begin_read().map_err(|error| place.fail(&error))?;
    let upload = bucket(place, &snap)?.upload(id);
    let upload = upload.map_err(|error| place.fail(&error))?;
    upload.ok_or_else(|| no_upload(place, id))
}

/// Runs the command `tidalite object upload append`.
pub(super) fn append(args: &ObjectUploadAppendArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let id = UploadId(args.id);
    let mut source = Source::open(args.source.as_deref(), true)?;
    let db = place.open_to_write()?;
    let found = upload(&place, &db, id)?;
    if found.mode != UploadMode::Append {
        return Err(
            Failure::bad_input(format!("upload {} has numbered parts", args.id))
                .hint("store a part: tidalite object upload part"),
        );
    }
    let mut at = args.offset.unwrap_or(found.len);
    let mut buffer = vec![0; COMMIT_BYTES];
    loop {
        let len = source.fill(&mut buffer)?;
        let mut tx = place.begin(&db)?;
        // Even an append without bytes is made, so that a wrong offset is reported.
        let append = bucket_mut(&place, &mut tx)?.append_upload(id, at, &buffer[..len]);
        at = appended(&place, append.map_err(|error| place.fail(&error))?, id)?;
        place.commit(tx)?;
        if len < buffer.len() {
            break;
        }
    }
    place.close(db)?;
    told(&format!("upload {} has {at} bytes now", args.id), terminal)
}

/// Runs the command `tidalite object upload part`.
pub(super) fn part(args: &ObjectUploadPartArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let id = UploadId(args.id);
    let mut source = Source::open(args.source.as_deref(), true)?;
    let db = place.open_to_write()?;
    let Some(most) = upload(&place, &db, id)?.part_bytes() else {
        return Err(
            Failure::bad_input(format!("upload {} has no numbered parts", args.id))
                .hint("append bytes: tidalite object upload append"),
        );
    };
    let mut bytes = Vec::new();
    let read = (&mut source)
        .take(most.saturating_add(1))
        .read_to_end(&mut bytes);
    if read.is_err() {
        return Err(source
            .failure()
            .unwrap_or_else(|| Failure::bad_input("reading failed")));
    }
    let mut tx = place.begin(&db)?;
    let stored = bucket_mut(&place, &mut tx)?.put_part(id, args.number, &bytes);
    if !stored.map_err(|error| place.fail(&error))? {
        return Err(no_upload(&place, id));
    }
    place.finish(tx, db)?;
    let len = bytes_text(bytes.len() as u64);
    told(
        &format!("part {} of upload {} stored: {len}", args.number, args.id),
        terminal,
    )
}

/// Returns the object of a completed upload, or a failure.
pub(super) fn completed(
    place: &Place<'_>,
    outcome: UploadOutcome,
    upload: &UploadInfo,
) -> Outcome<StoredObject> {
    let id = upload.id.0;
    let problem = match outcome {
        UploadOutcome::Done(stored) => return Ok(*stored),
        UploadOutcome::Refused(found) => return Err(refused(found.as_deref(), &upload.name)),
        UploadOutcome::NotFound => return Err(no_upload(place, upload.id)),
        UploadOutcome::MissingPart { number } => {
            format!("part {number} of upload {id} is missing, or shorter than the others")
        }
        UploadOutcome::WrongSize { found } => format!("upload {id} has {found} bytes"),
        UploadOutcome::WrongHash { found } => format!("upload {id} has the hash {found}"),
    };
    Err(
        Failure::bad_input(format!("{problem}; the upload stays as it is"))
            .hint("store the missing bytes, or remove it: tidalite object upload abort"),
    )
}

/// Runs the command `tidalite object upload complete`.
pub(super) fn complete(args: &ObjectUploadCompleteArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let id = UploadId(args.id);
    let db = place.open_to_write()?;
    let upload = upload(&place, &db, id)?;
    let completion = UploadCompletion {
        size: args.size,
        hash: args.hash,
        condition: args.condition.condition(),
    };
    let mut tx = place.begin(&db)?;
    let outcome = bucket_mut(&place, &mut tx)?.complete_upload(id, &completion);
    let outcome = outcome.map_err(|error| place.fail(&error))?;
    let stored = completed(&place, outcome, &upload)?;
    place.finish(tx, db)?;
    tell_stored(&place, &stored, args.format.is_json(), terminal)
}

/// Runs the command `tidalite object upload extend`.
pub(super) fn extend(args: &ObjectUploadExtendArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let id = UploadId(args.id);
    let db = place.open_to_write()?;
    let mut tx = place.begin(&db)?;
    let extended = bucket_mut(&place, &mut tx)?.extend_upload(id, lifetime(args.lifetime));
    if !extended.map_err(|error| place.fail(&error))? {
        return Err(no_upload(&place, id));
    }
    place.finish(tx, db)?;
    told(&format!("upload {} extended", args.id), terminal)
}

/// Runs the command `tidalite object upload abort`.
pub(super) fn abort(args: &ObjectUploadAbortArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let id = UploadId(args.id);
    let db = place.open_to_write()?;
    let mut tx = place.begin(&db)?;
    let aborted = bucket_mut(&place, &mut tx)?.abort_upload(id);
    if !aborted.map_err(|error| place.fail(&error))? {
        return Err(no_upload(&place, id));
    }
    place.finish(tx, db)?;
    told(&format!("upload {} removed", args.id), terminal)
}

fn json_of(upload: &UploadInfo) -> Value {
    let mut object = Map::new();
    let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
    put("id", upload.id.0.into());
    put("name", upload.name.as_str().into());
    put("bytes", upload.len.into());
    put("part_bytes", json!(upload.part_bytes()));
    put("chunk_bytes", upload.chunk_bytes.into());
    put("began", time_text(upload.began).into());
    put("ends", time_text(upload.expires).into());
    put_attributes(&mut object, &upload.attributes);
    Value::Object(object)
}

/// Runs the command `tidalite object upload list`.
pub(super) fn list(args: &ObjectUploadListArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let (db, snap) = place.open()?;
    let bucket = bucket(&place, &snap)?;
    let json = args.format.is_json();
    if let Some(id) = args.parts {
        let id = upload(&place, &db, UploadId(id))?.id;
        let mut from = 0;
        loop {
            let parts = bucket.upload_parts(id, from, LISTED_AT_ONCE);
            let parts = parts.map_err(|error| place.fail(&error))?;
            for part in &parts {
                let line = match json {
                    true => json!({
                        "number": part.number, "bytes": part.bytes, "hash": part.hash.to_string(),
                    })
                    .to_string(),
                    false => format!("{}\t{}\t{}", part.number, part.bytes, part.hash),
                };
                writeln!(terminal.out, "{line}")?;
            }
            match parts.last().and_then(|last| last.number.checked_add(1)) {
                Some(next) => from = next,
                None => break,
            }
        }
        return Ok(terminal.out.flush()?);
    }
    let mut from = UploadId(0);
    loop {
        let uploads = bucket.uploads(from, LISTED_AT_ONCE);
        let uploads = uploads.map_err(|error| place.fail(&error))?;
        for upload in &uploads {
            let line = match json {
                true => json_of(upload).to_string(),
                false => format!(
                    "{}\t{}\t{}\tuntil {}",
                    upload.id.0,
                    printable(&upload.name),
                    bytes_text(upload.len),
                    time_text(upload.expires)
                ),
            };
            writeln!(terminal.out, "{line}")?;
        }
        match uploads.last().and_then(|last| last.id.0.checked_add(1)) {
            Some(next) => from = UploadId(next),
            None => break,
        }
    }
    Ok(terminal.out.flush()?)
}
