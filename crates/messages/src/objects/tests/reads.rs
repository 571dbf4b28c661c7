//! Reading: ranges, cursors, snapshots, cost, and objects larger than ten gigabytes.

use super::common::{Bucket, SMALL, bytes_of, hash_of};
use crate::objects::keys::{check_chunk_count, chunk_count, chunk_key, chunk_len};
use crate::{
    BucketOptions, BucketReader, ContentHash, ListQuery, ObjectAttributes, ObjectCondition,
    UploadMode,
};
use std::io::Read;
use std::sync::atomic::Ordering;
use tidalite_pager::PageRead;

const GIB: u64 = 1 << 30;
const MIB: u32 = 1 << 20;

fn reads(bucket: &Bucket) -> u64 {
    let counters = bucket.pages.counters();
    counters.pages_read.load(Ordering::Relaxed) + counters.blocks_read.load(Ordering::Relaxed)
}

#[test]
fn the_hash_of_an_object_is_blake3_over_the_hashes_of_its_chunks() {
    let (first, second) = (blake3::hash(b"12345678"), blake3::hash(b"9"));
    let both = [&first.as_bytes()[..], second.as_bytes()].concat();
    let expected = ContentHash(*blake3::hash(&both).as_bytes());
    assert_eq!(hash_of(8, b"123456789"), expected);
    let mut bucket = Bucket::new(BucketOptions {
        chunk_bytes: 8,
        ..SMALL
    });
    assert_eq!(bucket.put("a", b"123456789", 0).info.hash, expected);
    // The hash of an empty object is BLAKE3 of an empty input.
    let empty = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
    let stored = bucket.put("empty", b"", 0).info;
    assert_eq!(
        (stored.size, stored.hash.to_string()),
        (0, empty.to_owned())
    );
    assert_eq!(ContentHash::from_hex(empty), Some(stored.hash));
    assert_eq!(ContentHash::from_hex(&empty[1..]), None);
    assert_eq!(ContentHash::from_hex(&empty.replace('a', "g")), None);
    assert_eq!(bucket.get("empty", 0), Some(Vec::new()));
}

#[test]
fn division_into_chunks_is_right_beyond_ten_gigabytes() {
    let size = 12 * GIB + 5;
    assert_eq!(chunk_count(size, 4 * MIB), 3073);
    assert_eq!(chunk_len(size, 4 * MIB, 3071), 4 << 20);
    assert_eq!(chunk_len(size, 4 * MIB, 3072), 5);
    assert_eq!(chunk_len(size, 4 * MIB, 3073), 0);
    assert_eq!(chunk_len(size, 4 * MIB, u64::MAX), 0);
    let most = u64::from(u32::MAX) * u64::from(MIB);
    assert!(check_chunk_count(most, MIB).is_ok());
    assert!(check_chunk_count(most + 1, MIB).is_err());
    assert!(check_chunk_count(u64::MAX, MIB).is_err());
    assert!(chunk_key(1, 255) < chunk_key(1, 256) && chunk_key(1, u32::MAX) < chunk_key(2, 0));
}

#[test]
fn an_object_beyond_twelve_gigabytes_is_read_at_its_end() {
    // Only the last part of the object is stored, and its manifest is written by hand.
    let mut bucket = Bucket::new(BucketOptions {
        chunk_bytes: MIB,
        ..SMALL
    });
    let (last, bytes) = (12_300, bytes_of(1, 70_000));
    let mut writer = bucket.writer();
    let mode = UploadMode::Parts { chunks: 1 };
    let attributes = ObjectAttributes::default();
    let id = writer
        .begin_upload("film", attributes, mode, (0, 9))
        .unwrap();
    assert!(writer.put_part(id, last, &bytes, 0).unwrap());
    let mut info = bucket.put("film", b"", 0).info;
    let begin = u64::from(last) * u64::from(MIB);
    (info.size, info.content) = (begin + bytes.len() as u64, id.0);
    let reader = bucket.reader();
    let mut found = Vec::new();
    let mut add = |slice: &[u8]| {
        found.extend_from_slice(slice);
        Ok(())
    };
    assert_eq!(reader.read(&info, begin + 3, 100, &mut add).unwrap(), 100);
    assert_eq!(found, &bytes[3..103]);
    let mut cursor = reader.cursor(&info).unwrap();
    cursor.seek(begin + 60_000);
    let mut rest = Vec::new();
    cursor.read_to_end(&mut rest).unwrap();
    assert_eq!(
        (&rest[..], cursor.position()),
        (&bytes[60_000..], info.size)
    );
    cursor.seek(u64::MAX);
    assert!(cursor.next_slice(10).unwrap().is_none());
    cursor.seek(begin - 1);
    assert!(
        cursor
            .next_slice(10)
            .unwrap_err()
            .to_string()
            .contains("no such row")
    );
}

#[test]
fn a_range_costs_its_chunks_only() {
    let mut bucket = Bucket::new(SMALL);
    let bytes = bytes_of(2, 16 * 3000);
    let info = bucket.put("a", &bytes, 0).info;
    bucket.assert_sound();
    let before = reads(&bucket);
    let mut found = Vec::new();
    let mut add = |slice: &[u8]| {
        found.extend_from_slice(slice);
        Ok(())
    };
    bucket.reader().read(&info, 30_000, 40, &mut add).unwrap();
    assert_eq!(found, &bytes[30_000..30_040]);
    assert!(
        reads(&bucket) - before < 40,
        "{} reads",
        reads(&bucket) - before
    );
}

#[test]
fn a_slice_is_at_most_a_block_and_seeks_go_both_ways() {
    let mut bucket = Bucket::new(BucketOptions {
        chunk_bytes: 200_000,
        ..SMALL
    });
    let bytes = bytes_of(3, 500_000);
    let info = bucket.put("a", &bytes, 0).info;
    let reader = bucket.reader();
    let mut cursor = reader.cursor(&info).unwrap();
    for at in [0, 150_000, 150_001, 70_000, 399_999, 0, 499_999] {
        cursor.seek(at);
        let slice = cursor.next_slice(u64::MAX).unwrap().unwrap().to_vec();
        assert!((1..=64 << 10).contains(&slice.len()));
        assert_eq!(slice, &bytes[at as usize..at as usize + slice.len()]);
    }
    let mut all = Vec::new();
    cursor.seek(0);
    cursor.read_to_end(&mut all).unwrap();
    assert_eq!(all, bytes);
}

#[test]
fn a_list_skips_the_objects_below_a_prefix() {
    let mut bucket = Bucket::new(SMALL);
    for folder in ["a", "b", "c"] {
        for number in 0..1000 {
            bucket.put(&format!("{folder}/{number:04}"), b"x", 0);
        }
    }
    let query = ListQuery {
        delimiter: Some("/".into()),
        ..ListQuery::default()
    };
    let before = reads(&bucket);
    let page = bucket.reader().list(&query, 0).unwrap();
    assert_eq!(
        (page.prefixes, page.objects.len()),
        (vec!["a/".into(), "b/".into(), "c/".into()], 0)
    );
    assert!(
        reads(&bucket) - before < 60,
        "{} reads",
        reads(&bucket) - before
    );
}

#[test]
fn a_snapshot_keeps_the_old_contents_and_never_sees_a_half() {
    let mut bucket = Bucket::new(SMALL);
    let (old, new) = (bytes_of(4, 1000), bytes_of(5, 2000));
    bucket.put("a", &old, 0);
    bucket.root.seal(&mut bucket.pages).unwrap();
    bucket.pages.commit();
    let (root, snapshot) = (bucket.root, bucket.pages.snapshot());
    let mut writer = bucket.writer();
    let condition = ObjectCondition::Always;
    let attributes = ObjectAttributes::default();
    let mut put = crate::ObjectPut::new(&writer, "a", attributes, condition, 1).unwrap();
    put.write(&mut writer, &new[..1500]).unwrap();
    // Until the manifest is stored, even the same transaction sees the old contents.
    assert_eq!(bucket.get("a", 1).unwrap(), old);
    let mut writer = bucket.writer();
    put.write(&mut writer, &new[1500..]).unwrap();
    assert!(put.finish(&mut writer, 1).unwrap().done().unwrap().replaced);
    assert_eq!(bucket.get("a", 1).unwrap(), new);
    while bucket.writer().maintain(1, 5).unwrap().more {}
    let reader = BucketReader::open(&root, &snapshot).unwrap();
    let info = reader.info("a", 1).unwrap().unwrap();
    let mut found = Vec::new();
    reader
        .cursor(&info)
        .unwrap()
        .read_to_end(&mut found)
        .unwrap();
    assert_eq!(found, old);
}
