//! Uploads: each operation adds bytes, so that an upload lasts over several transactions.

use super::bucket::One;
use crate::model::clock::UNIT;
use crate::model::messages::bucket::{CHUNK_BYTES, Object, Upload, attributes, bytes_of};
use std::collections::BTreeMap;
use std::time::Duration;
use tidalite::Result;
use tidalite::objects::{
    ObjectOutcome, UploadAppend, UploadCompletion, UploadId, UploadMode, UploadOutcome,
};

/// Maximum number of uploads at a time.
const UPLOADS_MAX: usize = 3;

/// Begins an upload, or changes a random one.
pub(super) fn work(one: &mut One<'_, '_>) -> Result<()> {
    let ids: Vec<u64> = one.bucket.uploads.keys().copied().collect();
    if ids.is_empty() || ids.len() < UPLOADS_MAX && one.rng.one_in(4) {
        return begin(one);
    }
    let id = *one.rng.pick(&ids);
    let mut upload = one.bucket.uploads[&id].clone();
    if upload.expires <= one.now {
        let found = one.table.append_upload(UploadId(id), 0, b"late")?;
        assert_eq!(found, UploadAppend::NotFound, "upload {id} has expired");
        return Ok(());
    }
    match one.rng.below(10) {
        0 => {
            assert!(
                one.table.abort_upload(UploadId(id))?,
                "upload {id} is there"
            );
            one.bucket.uploads.remove(&id);
            return Ok(());
        }
        1 => {
            let units = one.rng.between(1, 100);
            upload.expires = one.now + units * UNIT;
            let lifetime = Duration::from_nanos((units * UNIT) as u64);
            assert!(one.table.extend_upload(UploadId(id), lifetime)?);
        }
        2..=4 => return complete(one, id, &upload),
        _ => add(one, id, &mut upload)?,
    }
    one.bucket.uploads.insert(id, upload);
    Ok(())
}

fn begin(one: &mut One<'_, '_>) -> Result<()> {
    let (name, seed) = (one.name(), one.rng.u64());
    let units = *one.rng.pick(&[1, 30, 1_000]);
    let chunks = one.rng.one_in(2).then(|| 1 + one.rng.below(2) as u32);
    let mode = chunks.map_or(UploadMode::Append, |chunks| UploadMode::Parts { chunks });
    let lifetime = Duration::from_nanos((units * UNIT) as u64);
    let given = attributes(seed, None, false);
    let id = one.table.begin_upload(&name, given, mode, lifetime)?;
    let upload = Upload {
        name,
        seed,
        expires: one.now + units * UNIT,
        appended: 0,
        parts: chunks.map(|chunks| (chunks, BTreeMap::new())),
    };
    let before = one.bucket.uploads.insert(id.0, upload);
    assert_eq!(before, None, "the id of an upload is used again");
    Ok(())
}

fn add(one: &mut One<'_, '_>, id: u64, upload: &mut Upload) -> Result<()> {
    let Some((chunks, parts)) = &mut upload.parts else {
        let offset = upload.appended;
        let len = one.rng.index(2 * CHUNK_BYTES as usize);
        let bytes = bytes_of(upload.seed, offset, len);
        if one.rng.one_in(6) {
            let found = one.table.append_upload(UploadId(id), offset + 1, &bytes)?;
            assert_eq!(found, UploadAppend::Expected { offset });
            return Ok(());
        }
        upload.appended += len as u64;
        let found = one.table.append_upload(UploadId(id), offset, &bytes)?;
        let len = upload.appended;
        assert_eq!(found, UploadAppend::Done { len }, "append to {id}");
        return Ok(());
    };
    let whole = Upload::part_bytes(*chunks);
    let number = one.rng.below(3) as u32;
    let len = match one.rng.one_in(5) {
        true => 1 + one.rng.below(whole),
        false => whole,
    };
    let bytes = bytes_of(upload.seed, u64::from(number) * whole, len as usize);
    assert!(one.table.put_part(UploadId(id), number, &bytes)?);
    parts.insert(number, len);
    Ok(())
}

fn complete(one: &mut One<'_, '_>, id: u64, upload: &Upload) -> Result<()> {
    let name = &upload.name;
    let (condition, holds) = one.condition(name);
    let completion = UploadCompletion {
        size: one.rng.one_in(2).then(|| upload.len()),
        condition,
        ..UploadCompletion::default()
    };
    let found = one.table.complete_upload(UploadId(id), &completion)?;
    if let Some(number) = upload.missing() {
        let known = UploadOutcome::MissingPart { number };
        assert_eq!(found, known, "completion of {id}");
        return Ok(());
    }
    let found = match found {
        UploadOutcome::Done(stored) => ObjectOutcome::Done(*stored),
        UploadOutcome::Refused(object) => ObjectOutcome::Refused(object),
        other => panic!("the completion of {id} gave {other:?}"),
    };
    let object = Object {
        seed: upload.seed,
        size: upload.len(),
        created: one.now,
        modified: one.now,
        expires: None,
        is_protected: false,
    };
    one.stored(name, object, holds, &found);
    if holds {
        one.bucket.uploads.remove(&id);
    }
    Ok(())
}
