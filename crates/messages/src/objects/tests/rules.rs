//! The rules of conditions, expiry, rotation, limits, copies and links, one by one.

use super::common::{Bucket, SMALL, bytes_of, hash_of};
use crate::objects::keys::{CONTENT_MAX, COUNT_MAX};
use crate::{
    BucketOptions, BucketOverflow, BucketWriter, CHUNKS_FREED_AT_ONCE, LinkId, ListQuery,
    ObjectAttributes, ObjectChange, ObjectCondition, ObjectOutcome, ObjectPut,
    PUT_ABANDONED_AFTER_NS, UploadId, UploadMode,
};
use tidalite_kv::Tree;
use tidalite_pager::{Error, Result};
use tidalite_testkit::ScratchPages;
use tidalite_time::Timestamp;

fn limit_of<T: std::fmt::Debug>(result: Result<T>) -> (&'static str, u64, u64) {
    match result {
        Err(Error::Limit { what, found, limit }) => (what, found, limit),
        other => panic!("expected a limit, found {other:?}"),
    }
}

fn expiring(expires: i64, protected: bool) -> ObjectAttributes {
    ObjectAttributes {
        expires: Some(Timestamp(expires)),
        protected,
        ..ObjectAttributes::default()
    }
}

fn names(bucket: &Bucket, now: i64) -> Vec<String> {
    let page = bucket.reader().list(&ListQuery::default(), now).unwrap();
    page.objects.into_iter().map(|info| info.name).collect()
}

#[test]
fn conditions_hold_as_their_table_says() {
    let mut bucket = Bucket::new(SMALL);
    let (own, other) = (hash_of(16, b"old"), hash_of(16, b"other"));
    let table = [
        // Columns: condition; does a put replace an existing object; does it create a missing one.
        (ObjectCondition::Always, true, true),
        (ObjectCondition::Missing, false, true),
        (ObjectCondition::Exists, true, false),
        (ObjectCondition::Hash(own), true, false),
        (ObjectCondition::Hash(other), false, false),
        (ObjectCondition::NotHash(own), false, true),
        (ObjectCondition::NotHash(other), true, true),
    ];
    for (condition, over, without) in table {
        for (exists, expected) in [(true, over), (false, without)] {
            // An expired object counts as missing.
            let expires = if exists { 10 } else { 5 };
            bucket
                .put_with("a", b"old", expiring(expires, false), 0)
                .unwrap();
            let attributes = ObjectAttributes::default();
            let found = bucket
                .writer()
                .put("a", b"new", attributes, &condition, 5)
                .unwrap();
            match found {
                ObjectOutcome::Done(stored) => {
                    assert!(expected, "{condition:?} {exists}");
                    assert_eq!(stored.replaced, exists);
                }
                ObjectOutcome::Refused(current) => {
                    assert!(!expected, "{condition:?} {exists}");
                    assert_eq!(current.map(|info| info.hash), exists.then_some(own));
                }
                ObjectOutcome::NotFound => panic!("a put needs no object"),
            }
        }
    }
    bucket.put("a", b"old", 0);
    let reader = bucket.reader();
    let unchanged = reader
        .info_if("a", &ObjectCondition::NotHash(own), 0)
        .unwrap();
    assert!(matches!(unchanged, ObjectOutcome::Refused(Some(info)) if info.hash == own));
    assert!(
        reader
            .info_if("a", &ObjectCondition::Hash(own), 0)
            .unwrap()
            .done()
            .is_some()
    );
    let missing = reader.info_if("b", &ObjectCondition::Missing, 0).unwrap();
    assert_eq!(missing, ObjectOutcome::NotFound);
}

#[test]
fn expiry_is_absolute_and_can_be_extended_and_cleared() {
    let mut bucket = Bucket::new(SMALL);
    bucket.put_with("a", b"1", expiring(10, false), 0).unwrap();
    bucket
        .put_with("safe", b"2", expiring(10, true), 0)
        .unwrap();
    bucket.put("b", b"3", 0);
    assert_eq!(names(&bucket, 9), ["a", "b", "safe"]);
    assert_eq!(names(&bucket, 10), ["b", "safe"]);
    let change = |bucket: &mut Bucket, name: &str, expires: Option<Option<i64>>, protected, now| {
        let change = ObjectChange {
            expires: expires.map(|time| time.map(Timestamp)),
            protected,
            ..ObjectChange::default()
        };
        let always = ObjectCondition::Always;
        bucket
            .writer()
            .set_attributes(name, &change, &always, now)
            .unwrap()
    };
    assert!(
        change(&mut bucket, "a", Some(Some(20)), None, 9)
            .done()
            .is_some()
    );
    assert_eq!(bucket.writer().purge_expired(19, 10).unwrap().objects, 0);
    assert!(
        change(&mut bucket, "a", Some(None), None, 19)
            .done()
            .is_some()
    );
    assert_eq!(names(&bucket, i64::MAX), ["a", "b", "safe"]);
    // An expired object cannot be restored.
    assert!(
        change(&mut bucket, "b", Some(Some(30)), None, 20)
            .done()
            .is_some()
    );
    assert_eq!(
        change(&mut bucket, "b", Some(None), None, 30),
        ObjectOutcome::NotFound
    );
    // An object that is no longer protected expires at its time.
    assert!(
        change(&mut bucket, "safe", None, Some(false), 40)
            .done()
            .is_some()
    );
    assert_eq!(names(&bucket, 40), ["a"]);
    bucket.assert_sound();
    let removed = bucket.writer().purge_expired(40, 1).unwrap();
    assert_eq!((removed.objects, removed.bytes, removed.more), (1, 1, true));
    let removed = bucket.writer().purge_expired(40, 1).unwrap();
    assert_eq!((removed.objects, removed.more), (1, false));
    assert_eq!(bucket.reader().stat().unwrap().objects, 1);
    bucket.assert_sound();
}

#[test]
fn rotation_removes_expired_and_then_the_oldest_but_no_protected_objects() {
    let mut bucket = Bucket::new(BucketOptions {
        overflow: BucketOverflow::DropOldest,
        bytes_max: Some(100),
        ..SMALL
    });
    bucket
        .put_with("protected", &[1; 20], expiring(1000, true), 1)
        .unwrap();
    bucket.put("oldest", &[2; 30], 2);
    bucket.put("young", &[3; 20], 4);
    bucket.put("middle", &[3; 20], 3);
    bucket
        .put_with("expired", &[4; 10], expiring(6, false), 5)
        .unwrap();
    let stored = bucket.put("new", &[5; 10], 7);
    assert_eq!((stored.removed.objects, stored.removed.bytes), (1, 10));
    assert_eq!(
        names(&bucket, 0),
        ["middle", "new", "oldest", "protected", "young"]
    );
    let stored = bucket.put("newer", &[6; 50], 8);
    assert_eq!((stored.removed.objects, stored.removed.bytes), (2, 50));
    assert_eq!(names(&bucket, 8), ["new", "newer", "protected", "young"]);
    // Removing all unprotected objects would not make enough room: nothing is removed.
    let found = bucket.put_with("huge", &[7; 90], ObjectAttributes::default(), 9);
    assert_eq!(
        limit_of(found),
        ("bytes of all objects of the bucket", 110, 100)
    );
    assert_eq!(names(&bucket, 9), ["new", "newer", "protected", "young"]);
    // Lowered limits apply to the next put, or when room is made.
    bucket
        .writer()
        .set_options(BucketOptions {
            objects_max: Some(3),
            overflow: BucketOverflow::DropOldest,
            ..SMALL
        })
        .unwrap();
    let removed = bucket.writer().make_room((1, 0), 9, 1).unwrap();
    assert_eq!((removed.objects, removed.more), (1, true));
    let removed = bucket.writer().make_room((1, 0), 9, 9).unwrap();
    assert_eq!((removed.objects, removed.more), (1, false));
    assert_eq!(names(&bucket, 9), ["newer", "protected"]);
    bucket.assert_sound();
}

#[test]
fn a_full_bucket_rejects_but_expired_objects_make_room() {
    let mut bucket = Bucket::new(BucketOptions {
        objects_max: Some(2),
        object_bytes_max: Some(40),
        bytes_max: Some(50),
        uploads_max: 1,
        ..SMALL
    });
    bucket
        .put_with("a", &[1; 40], expiring(5, false), 0)
        .unwrap();
    bucket.put("b", &[1; 5], 0);
    let none = ObjectAttributes::default;
    assert_eq!(
        limit_of(bucket.put_with("c", b"", none(), 4)),
        ("objects of the bucket", 3, 2)
    );
    assert_eq!(
        limit_of(bucket.put_with("b", &[1; 11], none(), 4)),
        ("bytes of all objects of the bucket", 51, 50)
    );
    assert_eq!(
        limit_of(bucket.put_with("b", &[1; 41], none(), 4)),
        ("bytes of an object", 41, 40)
    );
    // A refused put of several chunks leaves no chunks.
    let before = bucket.reader().stat().unwrap();
    limit_of(bucket.put_with("b", &[1; 39], none(), 4));
    assert_eq!(bucket.reader().stat().unwrap(), before);
    assert_eq!(bucket.put("c", b"", 5).removed.objects, 1);
    let mut writer = bucket.writer();
    let id = writer
        .begin_upload("d", none(), UploadMode::Append, (0, 9))
        .unwrap();
    let more = writer.begin_upload("d", none(), UploadMode::Append, (0, 9));
    assert_eq!(limit_of(more), ("uploads of the bucket", 2, 1));
    assert_eq!(
        limit_of(writer.append(id, 0, &[1; 41], 0)),
        ("bytes of an object", 41, 40)
    );
    bucket.assert_sound();
}

#[test]
fn names_and_attributes_have_limits() {
    let mut bucket = Bucket::new(SMALL);
    let longest = "ä".repeat(512);
    bucket.put(&longest, b"x", 0);
    assert_eq!(bucket.get(&longest, 0).unwrap(), b"x");
    let none = ObjectAttributes::default;
    let found = bucket.put_with(&format!("{longest}a"), b"x", none(), 0);
    assert_eq!(
        limit_of(found),
        ("bytes of the name of an object", 1025, 1024)
    );
    assert!(matches!(
        bucket.put_with("", b"x", none(), 0),
        Err(Error::Refused { .. })
    ));
    let pair = |len| ("k".to_owned(), "v".repeat(len));
    let with = |content_type: usize, metadata| ObjectAttributes {
        content_type: "t".repeat(content_type),
        metadata,
        ..ObjectAttributes::default()
    };
    let most = with(255, vec![pair((16 << 10) - 1)]);
    assert_eq!(
        bucket
            .put_with("a", b"", most.clone(), 0)
            .unwrap()
            .info
            .attributes,
        most
    );
    assert_eq!(
        bucket.reader().info("a", 0).unwrap().unwrap().attributes,
        most
    );
    let refused = [
        (with(256, Vec::new()), "bytes of a content type"),
        (
            with(0, vec![pair(16 << 10)]),
            "bytes of metadata of an object",
        ),
        (
            with(0, vec![pair(1); 257]),
            "pairs of metadata of an object",
        ),
    ];
    for (attributes, what) in refused {
        assert_eq!(limit_of(bucket.put_with("a", b"", attributes, 0)).0, what);
    }
    bucket
        .put_with("a", b"", with(0, vec![pair(1); 256]), 0)
        .unwrap();
    bucket.assert_sound();
    let (mut root, mut pages) = (Tree::new(1), ScratchPages::new(512));
    for chunk_bytes in [7, (8 << 20) + 1] {
        let options = BucketOptions {
            chunk_bytes,
            ..SMALL
        };
        let created = BucketWriter::create(&mut root, &mut pages, options);
        assert!(matches!(created, Err(Error::Refused { .. })));
    }
}

#[test]
fn copies_share_their_chunks_until_the_last_one_is_gone() {
    let mut bucket = Bucket::new(SMALL);
    let bytes = bytes_of(1, 16 * 20);
    bucket.put("a", &bytes, 0);
    let always = ObjectCondition::Always;
    let written = bucket.pages.bytes_written();
    for name in ["b", "c", "a"] {
        let copy = bucket.writer().copy("a", name, None, &always, 1).unwrap();
        assert_eq!(copy.done().unwrap().info.hash, hash_of(16, &bytes));
    }
    assert_eq!(bucket.pages.bytes_written(), written);
    let stat = bucket.reader().stat().unwrap();
    assert_eq!((stat.objects, stat.bytes, stat.chunks), (3, 960, 20));
    for name in ["a", "c"] {
        assert!(
            bucket
                .writer()
                .delete(name, &always, 1)
                .unwrap()
                .done()
                .is_some()
        );
        assert_eq!(bucket.get("b", 1).unwrap(), bytes);
        bucket.assert_sound();
    }
    assert!(
        bucket
            .writer()
            .delete("b", &always, 1)
            .unwrap()
            .done()
            .is_some()
    );
    let stat = bucket.reader().stat().unwrap();
    assert_eq!((stat.objects, stat.chunks, stat.orphans), (0, 20, 1));
    bucket.assert_sound();
}

#[test]
fn large_contents_are_freed_in_steps_and_small_ones_at_once() {
    let mut bucket = Bucket::new(SMALL);
    let always = ObjectCondition::Always;
    bucket.put("small", &bytes_of(1, 16 * CHUNKS_FREED_AT_ONCE as usize), 0);
    bucket.put("large", &bytes_of(2, 16 * 1000), 0);
    assert!(
        bucket
            .writer()
            .delete("small", &always, 0)
            .unwrap()
            .done()
            .is_some()
    );
    assert_eq!(bucket.reader().stat().unwrap().chunks, 1000);
    bucket.assert_sound();
    bucket.pages.commit();
    let before = bucket.pages.pages_allocated();
    assert!(
        bucket
            .writer()
            .delete("large", &always, 0)
            .unwrap()
            .done()
            .is_some()
    );
    assert!(bucket.pages.pages_allocated() - before < 20);
    assert_eq!(bucket.get("large", 0), None);
    for step in 1..=10 {
        let done = bucket.writer().maintain(0, 100).unwrap();
        assert_eq!((done.chunks, done.chunk_bytes), (100, 1600));
        assert_eq!(done.more, step < 10);
        bucket.assert_sound();
        bucket.pages.commit();
    }
    assert_eq!(bucket.reader().stat().unwrap().orphans, 0);
}

#[test]
fn a_dropped_put_is_removed_after_a_day() {
    let mut bucket = Bucket::new(SMALL);
    let mut writer = bucket.writer();
    let condition = ObjectCondition::Always;
    let attributes = ObjectAttributes::default();
    let mut put = ObjectPut::new(&writer, "a", attributes, condition, 0).unwrap();
    put.write(&mut writer, &[1; 1000]).unwrap();
    let mut late = ObjectPut::new(&writer, "b", ObjectAttributes::default(), condition, 0).unwrap();
    late.write(&mut writer, &[1; 100]).unwrap();
    drop(put);
    let done = writer.maintain(PUT_ABANDONED_AFTER_NS - 1, 1000).unwrap();
    assert_eq!(done.uploads, 0);
    let done = writer.maintain(PUT_ABANDONED_AFTER_NS, 1000).unwrap();
    assert_eq!((done.uploads, done.more), (2, false));
    assert!(late.write(&mut writer, &[1; 100]).is_err());
    assert!(late.finish(&mut writer, 1).is_err());
    assert_eq!(bucket.reader().stat().unwrap().chunks, 0);
    bucket.assert_sound();
}

#[test]
fn links_lead_to_names_until_they_expire_or_are_revoked() {
    let mut bucket = Bucket::new(SMALL);
    bucket.put("a", b"1", 0);
    let (first, second) = (LinkId([1; 16]), LinkId([2; 16]));
    let mut writer = bucket.writer();
    writer.link_object(first, "a", Some(Timestamp(10))).unwrap();
    writer.link_object(second, "a", None).unwrap();
    assert!(writer.count_link_read(first, 7).unwrap());
    assert!(writer.count_link_read(first, 3).unwrap());
    assert!(!writer.count_link_read(LinkId([3; 16]), 3).unwrap());
    let reader = bucket.reader();
    assert_eq!(reader.linked(first, 9).unwrap().unwrap().name, "a");
    assert!(reader.linked(first, 10).unwrap().is_none());
    let link = reader.link(first, 9).unwrap().unwrap();
    assert_eq!((link.reads, link.bytes), (2, 10));
    assert_eq!(reader.links(LinkId([0; 16]), 5).unwrap().len(), 2);
    bucket.assert_sound();
    assert_eq!(bucket.writer().maintain(10, 5).unwrap().links, 1);
    assert!(bucket.writer().revoke_link(second).unwrap());
    assert!(!bucket.writer().revoke_link(second).unwrap());
    assert!(bucket.reader().linked(second, 0).unwrap().is_none());
    assert_eq!(bucket.reader().uploads(UploadId(0), 5).unwrap(), []);
    bucket.assert_sound();
}

#[test]
fn a_put_lasts_over_commits_and_keeps_the_size_of_its_chunks() {
    let mut bucket = Bucket::new(SMALL);
    let bytes = bytes_of(9, 700);
    let always = ObjectCondition::Always;
    let attributes = ObjectAttributes::default();
    let mut put = ObjectPut::new(&bucket.writer(), "a", attributes, always, 0).unwrap();
    for (number, piece) in (0..).zip(bytes.chunks(70)) {
        put.write(&mut bucket.writer(), piece).unwrap();
        bucket.assert_sound();
        bucket.pages.commit();
        let options = BucketOptions {
            chunk_bytes: 16 + number,
            ..SMALL
        };
        bucket.writer().set_options(options).unwrap();
    }
    let stored = put.finish(&mut bucket.writer(), 5).unwrap().done().unwrap();
    assert_eq!(
        (stored.info.hash, stored.info.created),
        (hash_of(16, &bytes), Timestamp(5))
    );
    assert_eq!(bucket.get("a", 5).unwrap(), bytes);
    bucket.assert_sound();
}

#[test]
fn a_full_disk_rolls_back_to_the_old_object() {
    let mut bucket = Bucket::new(SMALL);
    let (old, new) = (bytes_of(1, 500), bytes_of(2, 900));
    bucket.put("a", &old, 0);
    bucket.assert_sound();
    bucket.pages.commit();
    let root = bucket.root;
    for calls in 0.. {
        bucket.pages.fail_after(Some(calls));
        let stored = bucket.put_with("a", &new, ObjectAttributes::default(), 1);
        bucket.pages.fail_after(None);
        if stored.is_ok() {
            assert!(calls > 3, "the put allocates pages");
            break;
        }
        assert!(matches!(stored, Err(Error::Disk(_))));
        bucket.pages.rollback();
        bucket.root = root;
        assert_eq!(bucket.get("a", 1).unwrap(), old);
        bucket.assert_sound();
    }
    assert_eq!(bucket.get("a", 1).unwrap(), new);
    bucket.assert_sound();
}

#[test]
fn counters_stay_readable_at_their_maximum() {
    let mut bucket = Bucket::new(SMALL);
    let none = ObjectAttributes::default;
    let mut writer = bucket.writer();
    writer.state.bytes = COUNT_MAX - 10;
    writer.save().unwrap();
    assert_eq!(
        limit_of(bucket.put_with("a", &[1; 11], none(), 0)),
        (
            "bytes of all objects of the bucket",
            COUNT_MAX + 1,
            COUNT_MAX
        )
    );
    bucket.put("a", &[1; 10], 0);
    assert_eq!(bucket.reader().stat().unwrap().bytes, COUNT_MAX);
    let mut bucket = Bucket::new(SMALL);
    let mut writer = bucket.writer();
    writer.state.next_content = CONTENT_MAX - 1;
    writer.save().unwrap();
    bucket.put("a", b"last", 0);
    let expected = ("content ids of the bucket", CONTENT_MAX + 1, CONTENT_MAX);
    assert_eq!(limit_of(bucket.put_with("b", b"x", none(), 0)), expected);
    let mut writer = bucket.writer();
    let begun = writer.begin_upload("b", none(), UploadMode::Append, (0, 9));
    assert_eq!(limit_of(begun), expected);
    assert_eq!(bucket.get("a", 0).unwrap(), b"last");
    bucket.assert_sound();
}

#[test]
fn a_part_can_be_replaced_above_a_lowered_total() {
    let mut bucket = Bucket::new(SMALL);
    let none = ObjectAttributes::default;
    let mut writer = bucket.writer();
    let mode = UploadMode::Parts { chunks: 1 };
    let first = writer.begin_upload("a", none(), mode, (0, 9)).unwrap();
    let second = writer.begin_upload("b", none(), mode, (0, 9)).unwrap();
    assert!(writer.put_part(first, 0, &[1; 16], 0).unwrap());
    assert!(writer.put_part(second, 0, &[1; 16], 0).unwrap());
    let options = BucketOptions {
        bytes_max: Some(20),
        ..SMALL
    };
    writer.set_options(options).unwrap();
    assert!(writer.put_part(first, 0, &[2; 16], 0).unwrap());
    assert!(writer.put_part(first, 0, &[2; 9], 0).unwrap());
    assert_eq!(
        limit_of(writer.put_part(first, 0, &[2; 10], 0)),
        ("bytes of all uploads of the bucket", 26, 20)
    );
    bucket.assert_sound();
}

#[test]
fn a_limit_of_0_makes_progress() {
    let mut bucket = Bucket::new(SMALL);
    for name in ["a", "b", "c"] {
        bucket.put(name, b"x", 0);
    }
    let query = ListQuery {
        limit: 0,
        ..ListQuery::default()
    };
    let page = bucket.reader().list(&query, 0).unwrap();
    assert_eq!((page.objects.len(), page.next.is_some()), (1, true));
    let (removed, next) = bucket.writer().delete_listed(&query, 0).unwrap();
    assert_eq!((removed.objects, next.is_some()), (1, true));
    let options = BucketOptions {
        overflow: BucketOverflow::DropOldest,
        objects_max: Some(1),
        ..SMALL
    };
    bucket.writer().set_options(options).unwrap();
    let removed = bucket.writer().make_room((0, 0), 0, 0).unwrap();
    assert_eq!((removed.objects, removed.more), (1, false));
    bucket.assert_sound();
}
