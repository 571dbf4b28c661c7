//! Puts that outlive their transaction, and puts that have failed.

use super::common::{Bucket, SMALL, bytes_of};
use crate::{
    BucketOptions, ObjectAttributes, ObjectCondition, ObjectPut, UploadAppend, UploadCompletion,
    UploadId, UploadOutcome,
};
use tidalite_pager::Error;

fn begin(bucket: &mut Bucket, name: &str, now: i64) -> ObjectPut {
    let (attributes, condition) = (ObjectAttributes::default(), ObjectCondition::Always);
    ObjectPut::new(&bucket.writer(), name, attributes, condition, now).unwrap()
}

#[test]
fn a_put_that_was_rolled_back_leaves_other_puts_alone() {
    // Other puts: with another name, another time, and another number of bytes.
    for (name, began, len) in [("b", 0, 40), ("a", 1, 40), ("a", 0, 60)] {
        let mut bucket = Bucket::new(SMALL);
        bucket.assert_sound();
        bucket.pages.commit();
        let root = bucket.root;
        let mut stale = Vec::new();
        for _ in 0..3 {
            let mut put = begin(&mut bucket, "a", 0);
            put.write(&mut bucket.writer(), &[1; 40]).unwrap();
            bucket.pages.rollback();
            bucket.root = root;
            stale.push(put);
        }
        let bytes = bytes_of(1, len);
        let mut other = begin(&mut bucket, name, began);
        other.write(&mut bucket.writer(), &bytes).unwrap();
        let [mut written, finished, aborted] = <[_; 3]>::try_from(stale).unwrap();
        let found = written.write(&mut bucket.writer(), &[2; 40]);
        assert!(matches!(found, Err(Error::Refused { .. })));
        let found = finished.finish(&mut bucket.writer(), 2);
        assert!(matches!(found, Err(Error::Refused { .. })));
        aborted.abort(&mut bucket.writer()).unwrap();
        assert!(
            other
                .finish(&mut bucket.writer(), 2)
                .unwrap()
                .done()
                .is_some()
        );
        assert_eq!(bucket.get(name, 2).unwrap(), bytes);
        bucket.assert_sound();
    }
}

#[test]
fn a_put_whose_write_failed_can_only_be_aborted() {
    let options = BucketOptions {
        object_bytes_max: Some(100),
        ..SMALL
    };
    for first in [&b"few"[..], &[1; 90]] {
        let mut bucket = Bucket::new(options);
        let mut put = begin(&mut bucket, "a", 0);
        let mut lost = begin(&mut bucket, "b", 0);
        let mut writer = bucket.writer();
        for put in [&mut put, &mut lost] {
            put.write(&mut writer, first).unwrap();
            let failed = put.write(&mut writer, &[1; 100]);
            assert!(matches!(failed, Err(Error::Limit { .. })));
            let again = put.write(&mut writer, b"x");
            assert!(matches!(again, Err(Error::Refused { .. })));
        }
        let finished = lost.finish(&mut writer, 1);
        assert!(matches!(finished, Err(Error::Refused { .. })));
        put.abort(&mut writer).unwrap();
        assert_eq!(bucket.get("b", 1), None);
        bucket.assert_sound();
    }
}

#[test]
fn calls_for_uploads_do_not_reach_a_put() {
    let mut bucket = Bucket::new(SMALL);
    let bytes = bytes_of(3, 100);
    let mut put = begin(&mut bucket, "a", 0);
    let mut writer = bucket.writer();
    put.write(&mut writer, &bytes).unwrap();
    let id = UploadId(0);
    assert_eq!(writer.stat().unwrap().uploads, 1);
    assert_eq!(writer.reader().uploads(id, 5).unwrap(), []);
    assert_eq!(writer.reader().upload(id, 1).unwrap(), None);
    assert_eq!(writer.reader().upload_parts(id, 0, 5).unwrap(), []);
    let appended = writer.append(id, 96, b"x", 1).unwrap();
    assert_eq!(appended, UploadAppend::NotFound);
    assert!(!writer.put_part(id, 0, b"x", 1).unwrap());
    assert!(!writer.extend_upload(id, 1, 2).unwrap());
    assert!(!writer.abort_upload(id).unwrap());
    let completed = writer.complete_upload(id, &UploadCompletion::default(), 1);
    assert_eq!(completed.unwrap(), UploadOutcome::NotFound);
    assert!(put.finish(&mut writer, 1).unwrap().done().is_some());
    assert_eq!(bucket.get("a", 1).unwrap(), bytes);
    bucket.assert_sound();
}
