//! Puts that outlive their transaction, and puts that have failed.

use super::common::{Bucket, SMALL, bytes_of};
use crate::{BucketOptions, ObjectAttributes, ObjectCondition, ObjectPut};
use tidalite_pager::Error;

fn begin(bucket: &mut Bucket, name: &str, now: i64) -> ObjectPut {
    let (attributes, condition) = (ObjectAttributes::default(), ObjectCondition::Always);
    ObjectPut::new(&bucket.writer(), name, attributes, condition, now).unwrap()
}

#[test]
fn a_put_that_was_rolled_back_leaves_other_puts_alone() {
    // Another put of another name, of another time, and with another number of bytes.
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
        assert!(matches!(found, Err(Error::Unsupported { .. })));
        let found = finished.finish(&mut bucket.writer(), 2);
        assert!(matches!(found, Err(Error::Unsupported { .. })));
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
        object_bytes_max: 100,
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
            assert!(matches!(again, Err(Error::Unsupported { .. })));
        }
        let finished = lost.finish(&mut writer, 1);
        assert!(matches!(finished, Err(Error::Unsupported { .. })));
        put.abort(&mut writer).unwrap();
        assert_eq!(bucket.get("b", 1), None);
        bucket.assert_sound();
    }
}
