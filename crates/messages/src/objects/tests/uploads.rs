//! Uploads over several transactions.

use super::common::{Bucket, SMALL, bytes_of, hash_of};
use crate::{
    ObjectAttributes, ObjectCondition, UploadAppend, UploadCompletion, UploadId, UploadMode,
    UploadOutcome,
};
use tidalite_pager::Error;

fn begin(bucket: &mut Bucket, mode: UploadMode) -> UploadId {
    let attributes = ObjectAttributes::default();
    bucket
        .writer()
        .begin_upload("a", attributes, mode, (0, 100))
        .unwrap()
}

fn commit(bucket: &mut Bucket) {
    bucket.assert_sound();
    bucket.pages.commit();
}

#[test]
fn an_upload_continues_where_it_stopped_and_copies_only_its_last_chunk() {
    let mut bucket = Bucket::new(SMALL);
    let bytes = bytes_of(1, 5000);
    let id = begin(&mut bucket, UploadMode::Append);
    let mut offset = 0;
    while offset < bytes.len() {
        let end = (offset + 333).min(bytes.len());
        let piece = &bytes[offset..end];
        let found = bucket.writer().append(id, offset as u64, piece, 1).unwrap();
        assert_eq!(found, UploadAppend::Done { len: end as u64 });
        // The client repeats the call, because it has not received the response.
        let found = bucket.writer().append(id, offset as u64, piece, 1).unwrap();
        assert_eq!(found, UploadAppend::Expected { offset: end as u64 });
        offset = end;
        commit(&mut bucket);
    }
    assert_eq!(bucket.get("a", 1), None);
    assert_eq!(
        bucket.reader().upload_parts(id, 0, 10_000).unwrap().len(),
        5000 / 16
    );
    let before = bucket.pages.pages_allocated();
    let completion = UploadCompletion {
        size: Some(5000),
        hash: Some(hash_of(16, &bytes)),
        condition: ObjectCondition::Missing,
    };
    let found = bucket.writer().complete_upload(id, &completion, 2).unwrap();
    assert!(matches!(found, UploadOutcome::Done(stored) if stored.info.size == 5000));
    assert!(bucket.pages.pages_allocated() - before < 30);
    assert_eq!(bucket.get("a", 2).unwrap(), bytes);
    let again = bucket.writer().complete_upload(id, &completion, 2).unwrap();
    assert_eq!(again, UploadOutcome::NotFound);
    commit(&mut bucket);
}

#[test]
fn parts_arrive_in_any_order_and_can_be_replaced() {
    let mut bucket = Bucket::new(SMALL);
    let id = begin(&mut bucket, UploadMode::Parts { chunks: 2 });
    let bytes = bytes_of(2, 32 * 4 + 5);
    let put = |bucket: &mut Bucket, number, part: &[u8]| {
        assert!(bucket.writer().put_part(id, number, part, 1).unwrap());
        commit(bucket);
    };
    put(&mut bucket, 4, &bytes[128..]);
    put(&mut bucket, 2, &bytes[64..96]);
    put(&mut bucket, 0, &bytes[..32]);
    let complete = |bucket: &mut Bucket| {
        let completion = UploadCompletion::default();
        bucket.writer().complete_upload(id, &completion, 2).unwrap()
    };
    assert_eq!(
        complete(&mut bucket),
        UploadOutcome::MissingPart { number: 1 }
    );
    put(&mut bucket, 1, &bytes[32..50]);
    put(&mut bucket, 3, &bytes[96..128]);
    assert_eq!(
        complete(&mut bucket),
        UploadOutcome::MissingPart { number: 1 }
    );
    put(&mut bucket, 1, &[0; 32]);
    put(&mut bucket, 1, &bytes[32..64]);
    let parts = bucket.reader().upload_parts(id, 1, 2).unwrap();
    assert_eq!(
        parts.iter().map(|part| part.number).collect::<Vec<_>>(),
        [1, 2]
    );
    assert_eq!(parts[0].hash, hash_of(16, &bytes[32..64]));
    assert!(matches!(complete(&mut bucket), UploadOutcome::Done(_)));
    assert_eq!(bucket.get("a", 2).unwrap(), bytes);
    commit(&mut bucket);
}

#[test]
fn wrong_calls_are_refused_and_change_nothing() {
    let mut bucket = Bucket::new(SMALL);
    let appended = begin(&mut bucket, UploadMode::Append);
    let in_parts = begin(&mut bucket, UploadMode::Parts { chunks: 2 });
    let mut writer = bucket.writer();
    assert!(matches!(
        writer.put_part(appended, 0, b"x", 1),
        Err(Error::Refused { .. })
    ));
    assert!(matches!(
        writer.append(in_parts, 0, b"x", 1),
        Err(Error::Refused { .. })
    ));
    assert!(matches!(
        writer.put_part(in_parts, 0, b"", 1),
        Err(Error::Refused { .. })
    ));
    assert!(matches!(
        writer.put_part(in_parts, 0, &[1; 33], 1),
        Err(Error::Limit { .. })
    ));
    assert!(matches!(
        writer.put_part(in_parts, u32::MAX, b"x", 1),
        Err(Error::Limit { .. })
    ));
    assert!(!writer.put_part(UploadId(99), 0, b"x", 1).unwrap());
    for chunks in [0, 1025] {
        let mode = UploadMode::Parts { chunks };
        let begun = writer.begin_upload("a", ObjectAttributes::default(), mode, (0, 1));
        assert!(matches!(begun, Err(Error::Refused { .. })));
    }
    let _ = writer.append(appended, 0, b"some bytes", 1).unwrap();
    let completion = |size, hash| UploadCompletion {
        size,
        hash,
        condition: ObjectCondition::Exists,
    };
    let found = writer
        .complete_upload(appended, &completion(Some(9), None), 1)
        .unwrap();
    assert_eq!(found, UploadOutcome::WrongSize { found: 10 });
    let hash = hash_of(16, b"some bytes");
    let other = Some(hash_of(16, b"other"));
    let found = writer
        .complete_upload(appended, &completion(None, other), 1)
        .unwrap();
    assert_eq!(found, UploadOutcome::WrongHash { found: hash });
    let found = writer
        .complete_upload(appended, &completion(Some(10), Some(hash)), 1)
        .unwrap();
    assert_eq!(found, UploadOutcome::Refused(None));
    let found = writer
        .complete_upload(appended, &completion(Some(10), Some(hash)), 100)
        .unwrap();
    assert_eq!(found, UploadOutcome::NotFound);
    assert!(!writer.extend_upload(appended, 100, 200).unwrap());
    assert_eq!(writer.stat().unwrap().upload_bytes, 10);
    bucket.assert_sound();
    assert_eq!(bucket.writer().maintain(100, 10).unwrap().uploads, 2);
    assert_eq!(bucket.reader().stat().unwrap().uploads, 0);
    bucket.assert_sound();
}
