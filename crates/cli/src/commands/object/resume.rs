//! `object put --resume`: stores a file as an upload that can be continued after an interruption.
//!
//! The bytes are committed in pieces. Another run of the same command finds the upload by its name, reads the stored
//! part of the file only to compute the hash, and appends the rest. The upload becomes an object only if the hash of
//! the whole file matches, so a change of the file between the runs is detected.

use super::line::{refused, tell_stored};
use super::place::{bucket_mut, name_failure};
use super::source::Source;
use super::upload::{COMMIT_BYTES, appended, completed};
use crate::args::ObjectPutArgs;
use crate::commands::messages::Place;
use crate::exit::{Failure, Outcome};
use crate::terminal::Terminal;
use std::time::Duration;
use tidalite::Database;
use tidalite::objects::{
    ContentHasher, ObjectAttributes, UploadCompletion, UploadId, UploadInfo, UploadMode,
};

/// Lifetime of the upload: a week.
const LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);

/// Number of uploads that are read in one call.
const UPLOADS_AT_ONCE: usize = 1000;

/// Runs the command `tidalite object put --resume`.
pub(super) fn run(args: &ObjectPutArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let mut source = Source::open(args.source.as_deref(), args.quiet)?;
    let Some(size) = source.size else {
        return Err(
            Failure::usage("--resume: only a file can be read again from a place")
                .hint("without --resume standard input is stored in one transaction"),
        );
    };
    let (db, _) = place.open_or_create()?;
    let upload = begin(args, &place, &db)?;
    if upload.len > 0 {
        let (note, len) = (terminal.messages.warning("note:"), upload.len);
        eprintln!("{note} upload {} goes on after {len} bytes", upload.id.0);
    }
    if upload.len > size {
        return Err(changed(&place, &upload));
    }
    let mut hasher = ContentHasher::new(upload.chunk_bytes);
    let mut buffer = vec![0; COMMIT_BYTES];
    let mut at = 0;
    while at < upload.len {
        let most = usize::try_from(upload.len - at).unwrap_or(COMMIT_BYTES);
        let len = source.fill(&mut buffer[..most.min(COMMIT_BYTES)])?;
        if len == 0 {
            return Err(changed(&place, &upload));
        }
        hasher.update(&buffer[..len]);
        at += len as u64;
    }
    loop {
        let len = source.fill(&mut buffer)?;
        if len == 0 {
            break;
        }
        hasher.update(&buffer[..len]);
        let mut tx = place.begin(&db)?;
        let append = bucket_mut(&place, &mut tx)?.append_upload(upload.id, at, &buffer[..len]);
        at = appended(
            &place,
            append.map_err(|error| place.fail(&error))?,
            upload.id,
        )?;
        place.commit(tx)?;
    }
    source.clear();
    let completion = UploadCompletion {
        size: Some(at),
        hash: Some(hasher.finish()),
        condition: args.condition.condition(),
    };
    let mut tx = place.begin(&db)?;
    let outcome = bucket_mut(&place, &mut tx)?.complete_upload(upload.id, &completion);
    let outcome = outcome.map_err(|error| place.fail(&error))?;
    if matches!(outcome, tidalite::objects::UploadOutcome::WrongHash { .. }) {
        return Err(changed(&place, &upload));
    }
    let stored = completed(&place, outcome, &upload)?;
    place.finish(tx, db)?;
    tell_stored(&place, &stored, args.format.is_json(), terminal)
}

/// The failure for a file whose beginning differs from the uploaded bytes.
fn changed(place: &Place<'_>, upload: &UploadInfo) -> Failure {
    Failure::bad_input(format!(
        "the file is another than the one of upload {}, of which {} bytes are stored",
        upload.id.0, upload.len
    ))
    .hint(format!(
        "remove the upload: tidalite object upload abort {} {} --table {}",
        place.path.display(),
        upload.id.0,
        place.table
    ))
}

/// The newest upload with this name to which bytes can be appended, or a new one.
fn begin(args: &ObjectPutArgs, place: &Place<'_>, db: &Database) -> Outcome<UploadInfo> {
    let fail = |error: tidalite::Error| name_failure(place, &error);
    let mut tx = place.begin(db)?;
    let now = tx.clock().now();
    let attributes = args.attributes.attributes(now);
    let condition = args.condition.condition();
    let mut bucket = bucket_mut(place, &mut tx)?;
    let view = bucket.view().map_err(fail)?;
    let object = view.info(&args.name).map_err(fail)?;
    if !condition.holds(object.as_ref()) {
        return Err(refused(object.as_ref(), &args.name));
    }
    let (mut found, mut from) = (None, UploadId(0));
    loop {
        let uploads = view.uploads(from, UPLOADS_AT_ONCE).map_err(fail)?;
        let Some(last) = uploads.last().map(|upload| upload.id.0) else {
            break;
        };
        from = UploadId(last.saturating_add(1));
        let own = uploads.into_iter().rfind(|upload| {
            upload.name == args.name && upload.mode == UploadMode::Append && upload.expires > now
        });
        found = own.or(found);
    }
    drop(view);
    if let Some(found) = found {
        expect_attributes(place, &found, &attributes)?;
        return Ok(found);
    }
    let id = bucket.begin_upload(&args.name, attributes, UploadMode::Append, LIFETIME);
    let id = id.map_err(fail)?;
    let upload = bucket
        .view()
        .and_then(|view| view.upload(id))
        .map_err(fail)?;
    place.commit(tx)?;
    upload.ok_or_else(|| Failure::bad_input("the upload has expired").hint("repeat the command"))
}

/// Returns an error if the attributes differ from those with which the upload began. The expiry may differ, because it
/// can be relative to the current time.
fn expect_attributes(place: &Place<'_>, upload: &UploadInfo, wanted: &ObjectAttributes) -> Outcome {
    let stored = &upload.attributes;
    let same = stored.content_type == wanted.content_type
        && stored.metadata == wanted.metadata
        && stored.protected == wanted.protected
        && stored.expires.is_some() == wanted.expires.is_some();
    match same {
        true => Ok(()),
        false => Err(Failure::bad_input(format!(
            "upload {} of {} began with other attributes",
            upload.id.0, upload.name
        ))
        .hint(format!(
            "give the same --type, --meta, --expires and --protect, or remove the upload: tidalite object upload abort {} {} --table {}",
            place.path.display(),
            upload.id.0,
            place.table
        ))),
    }
}
