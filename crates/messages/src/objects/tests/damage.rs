//! Damaged rows cause typed errors, a check finds them, and a recovery drops no more than necessary.

use super::common::{Bucket, SMALL, bytes_of, hash_of};
use crate::objects::chunks::{ChunkHash, shares_of};
use crate::objects::keys::{CONTENT_MAX, COUNT_MAX, chunk_key, chunk_of, time_key};
use crate::objects::links::ObjectLink;
use crate::objects::parts::{Part, part};
use crate::objects::state::State;
use crate::{
    BucketOptions, BucketWriter, LinkId, ListQuery, ObjectAttributes, ObjectCondition, ObjectInfo,
    UploadCompletion, UploadId, UploadInfo, UploadMode,
};
use tidalite_pager::Error;
use tidalite_testkit::rng::Rng;
use tidalite_time::Timestamp;

const PARTS: [Part; 14] = [
    Part::Options,
    Part::State,
    Part::Objects,
    Part::Chunks,
    Part::Hashes,
    Part::Expiry,
    Part::Ages,
    Part::Shares,
    Part::Orphans,
    Part::Uploads,
    Part::UploadExpiry,
    Part::Tails,
    Part::Links,
    Part::LinkExpiry,
];

/// A bucket with rows in every part.
fn full() -> Bucket {
    let mut bucket = Bucket::new(SMALL);
    for number in 0..20_u32 {
        let attributes = ObjectAttributes {
            content_type: "text/plain".into(),
            metadata: vec![("key".into(), "value".into())],
            expires: (number % 3 == 0).then_some(Timestamp(1000 + i64::from(number))),
            protected: number % 7 == 0,
        };
        let bytes = bytes_of(number.into(), number as usize * 9);
        bucket
            .put_with(&format!("object {number}"), &bytes, attributes, 1)
            .unwrap();
    }
    bucket.put("orphan", &bytes_of(77, 800), 1);
    let mut writer = bucket.writer();
    let always = ObjectCondition::Always;
    let _ = writer.copy("object 5", "copy", None, &always, 2).unwrap();
    let _ = writer.delete("orphan", &always, 2).unwrap();
    for mode in [UploadMode::Append, UploadMode::Parts { chunks: 2 }] {
        let attributes = ObjectAttributes::default();
        let id = writer
            .begin_upload("upload", attributes, mode, (2, 2000))
            .unwrap();
        match mode {
            UploadMode::Append => drop(writer.append(id, 0, &bytes_of(5, 70), 2)),
            UploadMode::Parts { .. } => drop(writer.put_part(id, 1, &bytes_of(6, 30), 2)),
        }
    }
    writer
        .link_object(LinkId([7; 16]), "copy", Some(Timestamp(3000)))
        .unwrap();
    bucket.assert_sound();
    bucket
}

fn rows(bucket: &Bucket, of: Part) -> Vec<(Vec<u8>, Vec<u8>)> {
    let table = part(&bucket.root, &bucket.pages, of).unwrap();
    let mut rows = table.cursor(&bucket.pages).unwrap();
    let mut found = Vec::new();
    while rows.next().unwrap() {
        found.push((rows.key().to_vec(), rows.value().unwrap().to_vec().unwrap()));
    }
    found
}

fn set(bucket: &mut Bucket, of: Part, key: &[u8], value: Option<&[u8]>) {
    let mut writer = bucket.writer();
    match value {
        Some(value) => writer.insert(of, key, value).unwrap(),
        None => assert!(writer.remove(of, key).unwrap()),
    }
}

/// Expects a check to find a problem that contains `text`.
fn finds(bucket: &Bucket, text: &str) {
    let found = match bucket.problems() {
        Ok(problems) => problems.join("; "),
        Err(error) => error.to_string(),
    };
    assert!(found.contains(text), "{text}: found {found}");
}

fn recover(bucket: &mut Bucket) -> Vec<String> {
    let mut losses = Vec::new();
    let mut report = |loss| losses.push(loss);
    BucketWriter::recover(&mut bucket.root, &mut bucket.pages, SMALL, &mut report).unwrap();
    losses
}

#[test]
fn rows_of_any_bytes_are_decoded_or_refused() {
    let info = ObjectInfo {
        name: "name".into(),
        size: 99,
        chunk_bytes: 16,
        created: Timestamp(-5),
        modified: Timestamp(7),
        hash: hash_of(16, b"x"),
        attributes: ObjectAttributes {
            content_type: "text/plain".into(),
            metadata: vec![
                ("key".into(), "wert ä".into()),
                (String::new(), String::new()),
            ],
            expires: Some(Timestamp::MIN),
            protected: true,
        },
        content: 12,
    };
    let upload = UploadInfo {
        id: UploadId(12),
        name: "name".into(),
        mode: UploadMode::Parts { chunks: 7 },
        len: 99,
        chunk_bytes: 16,
        began: Timestamp(1),
        expires: Timestamp(2),
        attributes: info.attributes.clone(),
        is_put: false,
    };
    let put = UploadInfo {
        mode: UploadMode::Append,
        is_put: true,
        ..upload.clone()
    };
    let link = ObjectLink {
        name: "name".into(),
        expires: None,
        reads: 1,
        bytes: 2,
    };
    let hash = ChunkHash {
        hash: info.hash,
        len: 9,
    };
    /// Decodes a row and encodes it again; `None` if it is damaged.
    type Again = fn(&[u8]) -> Option<Vec<u8>>;
    let table: [(Vec<u8>, Again); 8] = [
        (info.encode(), |b| {
            Some(ObjectInfo::decode(b"name", b).ok()?.encode())
        }),
        (upload.encode(), |b| {
            Some(UploadInfo::decode(12, b).ok()?.encode())
        }),
        (put.encode(), |b| {
            Some(UploadInfo::decode(12, b).ok()?.encode())
        }),
        (link.encode(), |b| {
            Some(ObjectLink::decode(b).ok()?.encode())
        }),
        (hash.encode(), |b| Some(ChunkHash::decode(b).ok()?.encode())),
        (SMALL.encode(), |b| {
            Some(BucketOptions::decode(b).ok()?.encode())
        }),
        (State::default().encode(), |b| {
            Some(State::decode(b).ok()?.encode())
        }),
        (vec![1, 0, 0, 0, 0, 0, 0, 0], |b| {
            Some(shares_of(b).ok()?.to_le_bytes().to_vec())
        }),
    ];
    let seed = 3;
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    for (row, again) in table {
        assert_eq!(again(&row), Some(row.clone()));
        for len in 0..row.len() {
            assert!(again(&row[..len]).is_none_or(|found| found == row[..len]));
        }
        for _ in 0..3000 {
            let mut bytes = row.clone();
            for _ in 0..1 + rng.below(4) {
                let at = rng.index(bytes.len());
                bytes[at] = rng.u64() as u8;
            }
            if rng.one_in(10) {
                bytes.push(rng.u64() as u8);
            }
            if let Some(found) = again(&bytes) {
                assert_eq!(found, bytes);
            }
        }
    }
    for name in [&b""[..], &[0xff], &[b'a'; 1025]] {
        assert!(matches!(
            ObjectInfo::decode(name, &info.encode()),
            Err(Error::Corrupt(_))
        ));
    }
}

#[test]
fn a_check_finds_each_broken_rule() {
    type Wrong = fn(&mut State);
    let wrong: [Wrong; 7] = [
        |state| state.next_content = 3,
        |state| state.objects += 1,
        |state| state.bytes -= 1,
        |state| state.chunks += 1,
        |state| state.chunk_bytes -= 1,
        |state| state.uploads += 1,
        |state| state.upload_bytes -= 1,
    ];
    for (number, wrong) in wrong.into_iter().enumerate() {
        let mut bucket = full();
        let mut writer = bucket.writer();
        wrong(&mut writer.state);
        writer.save().unwrap();
        finds(
            &bucket,
            if number == 0 {
                "the next ones are 3"
            } else {
                "is noted"
            },
        );
    }
    let table = [
        (Part::Expiry, "Expiry at byte 0: found no such row"),
        (Part::Ages, "Ages at byte 0: found no such row"),
        (Part::Shares, "shares: "),
        (Part::Orphans, "an owner of them"),
        (Part::Chunks, "None bytes"),
        (Part::Hashes, "chunks"),
        (
            Part::UploadExpiry,
            "UploadExpiry at byte 0: found no such row",
        ),
        (Part::Tails, "tail of an upload"),
        (Part::Objects, "an owner of them"),
        (Part::Uploads, "an owner of them"),
        (Part::LinkExpiry, "LinkExpiry at byte 0: found no such row"),
    ];
    for (of, text) in table {
        // Every row of the part is necessary.
        for (key, _) in rows(&full(), of).into_iter().step_by(5) {
            let mut bucket = full();
            set(&mut bucket, of, &key, None);
            if of != Part::Objects {
                finds(&bucket, text);
            }
            assert!(!bucket.problems().unwrap().is_empty());
        }
    }
    for of in [
        Part::Expiry,
        Part::Ages,
        Part::UploadExpiry,
        Part::Tails,
        Part::LinkExpiry,
    ] {
        let mut bucket = full();
        let key = [&[0x90; 8][..], &[0; 16]].concat();
        set(&mut bucket, of, &key, Some(b""));
        finds(&bucket, "belong there");
    }
}

#[test]
fn derived_parts_are_rebuilt() {
    let sound = full();
    let objects: Vec<_> = rows(&sound, Part::Objects);
    for of in PARTS {
        if matches!(
            of,
            Part::Objects | Part::Chunks | Part::Uploads | Part::Tails | Part::Links
        ) {
            continue;
        }
        let mut bucket = full();
        assert!(
            bucket
                .root
                .remove(&mut bucket.pages, &of.key())
                .is_ok_and(|was| was)
                || bucket
                    .writer()
                    .change(of, &mut |w, table| table.clear(w))
                    .is_ok()
        );
        let losses = recover(&mut bucket);
        assert_eq!(
            losses.len(),
            usize::from(of == Part::Options),
            "{of:?}: {losses:?}"
        );
        bucket.assert_sound();
        assert_eq!(rows(&bucket, Part::Objects), objects);
        for (name, _) in &objects {
            let name = std::str::from_utf8(name).unwrap();
            assert_eq!(bucket.get(name, 3), sound.get(name, 3));
        }
        if of != Part::State {
            let stat = bucket.reader().stat().unwrap();
            assert_eq!(stat, sound.reader().stat().unwrap());
        }
    }
}

#[test]
fn objects_without_all_their_chunks_are_dropped_and_the_rest_is_freed() {
    let mut bucket = full();
    let info = bucket.reader().info("object 15", 3).unwrap().unwrap();
    set(&mut bucket, Part::Chunks, &chunk_key(info.content, 2), None);
    let verified = bucket.reader().verify("object 15", 3).unwrap().unwrap();
    assert_eq!((verified.damaged, verified.hash_matches), (vec![2], false));
    let losses = recover(&mut bucket);
    assert!(
        losses.len() == 1 && losses[0].contains("object 15"),
        "{losses:?}"
    );
    bucket.assert_sound();
    assert_eq!(bucket.get("object 15", 3), None);
    assert_eq!(bucket.get("object 14", 3).unwrap(), bytes_of(14, 14 * 9));
    // All manifests are lost: all chunks except chunks of uploads are freed.
    for (key, _) in rows(&bucket, Part::Objects) {
        set(&mut bucket, Part::Objects, &key, None);
    }
    assert_eq!(recover(&mut bucket), Vec::<String>::new());
    bucket.assert_sound();
    while bucket.writer().maintain(3, 3).unwrap().more {}
    let stat = bucket.reader().stat().unwrap();
    assert_eq!(
        (stat.objects, stat.orphans, stat.uploads, stat.chunks),
        (0, 0, 2, 6)
    );
    bucket.assert_sound();
}

#[test]
fn a_changed_chunk_is_found_by_verification() {
    let mut bucket = full();
    let info = bucket.reader().info("object 19", 3).unwrap().unwrap();
    let key = chunk_key(info.content, 1);
    set(&mut bucket, Part::Chunks, &key, Some(&[9; 16]));
    let verified = bucket.reader().verify("object 19", 3).unwrap().unwrap();
    assert_eq!((verified.damaged, verified.chunks), (vec![1], 11));
    assert!(
        bucket
            .reader()
            .verify("object 18", 3)
            .unwrap()
            .unwrap()
            .is_sound()
    );
    assert_eq!(bucket.reader().verify("missing", 3).unwrap(), None);
}

/// Calls all functions: errors are permitted, panics are not.
fn exercise(bucket: &mut Bucket, rng: &mut Rng) {
    let now = rng.between(0, 4000);
    let name = format!("object {}", rng.below(20));
    let always = ObjectCondition::Always;
    let (mut root, pages) = (bucket.root, &mut bucket.pages);
    if let Ok(reader) = crate::BucketReader::open(&root, &*pages) {
        let _ = reader.stat();
        let _ = reader.list(&ListQuery::default(), now);
        let _ = reader.verify(&name, now);
        let _ = reader.uploads(UploadId(0), 100);
        let _ = reader.links(LinkId([0; 16]), 100);
        let _ = reader.check(&mut |_| ());
        if let Ok(Some(info)) = reader.info(&name, now) {
            let _ = reader.read(&info, rng.below(200), 100, &mut |_| Ok(()));
        }
        for id in 20..26 {
            let _ = reader.upload_parts(UploadId(id), 0, 100);
        }
    }
    if let Ok(mut writer) = BucketWriter::open(&mut root, pages) {
        let _ = match rng.below(6) {
            0 => writer.maintain(now, 50).map(drop),
            1 => writer.delete(&name, &always, now).map(drop),
            2 => writer.copy(&name, "other", None, &always, now).map(drop),
            3 => writer.make_room((9, 9), now, 9).map(drop),
            4 => {
                let id = UploadId(20 + rng.below(6));
                let _ = writer.append(id, 70, &[1; 50], now);
                let _ = writer.put_part(id, 0, &[1; 32], now);
                writer
                    .complete_upload(id, &UploadCompletion::default(), now)
                    .map(drop)
            }
            _ => writer
                .put(&name, &[1; 40], ObjectAttributes::default(), &always, now)
                .map(drop),
        };
    }
}

#[test]
fn damaged_rows_cause_no_panic_and_are_recovered() {
    tidalite_testkit::watch();
    for seed in 0..400 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let mut bucket = full();
        bucket.pages.commit();
        for _ in 0..1 + rng.below(3) {
            let of = *rng.pick(&PARTS[2..]);
            let all = rows(&bucket, of);
            let (mut key, mut value) = rng.pick(&all).clone();
            let bytes = if rng.one_in(3) || value.is_empty() {
                &mut key
            } else {
                &mut value
            };
            let at = rng.index(bytes.len());
            bytes[at] ^= 1 << rng.below(8);
            if rng.one_in(4) {
                bytes.truncate(at);
            }
            set(&mut bucket, of, &key, Some(&value));
        }
        if rng.one_in(4) {
            let mut state = rows_of_state(&bucket);
            let at = rng.index(state.len());
            state[at] = rng.u64() as u8;
            bucket
                .root
                .insert(&mut bucket.pages, &Part::State.key(), &state)
                .unwrap();
        }
        bucket.root.seal(&mut bucket.pages).unwrap();
        bucket.pages.commit();
        let before = bucket.root;
        exercise(&mut bucket, &mut rng);
        bucket.pages.rollback();
        bucket.root = before;
        recover(&mut bucket);
        bucket.assert_sound();
        while bucket.writer().maintain(i64::MAX, 100).unwrap().more {}
        bucket.assert_sound();
    }
}

fn rows_of_state(bucket: &Bucket) -> Vec<u8> {
    crate::objects::parts::row(&bucket.root, &bucket.pages, Part::State).unwrap()
}

#[test]
fn numbers_beyond_their_maximum_are_damage() {
    assert!(shares_of(&(COUNT_MAX - 1).to_le_bytes()).is_ok());
    assert!(shares_of(&COUNT_MAX.to_le_bytes()).is_err());
    assert!(chunk_of(&chunk_key(1, u32::MAX - 1)).is_ok());
    assert!(chunk_of(&chunk_key(1, u32::MAX)).is_err());
    let state = |next_content| State {
        next_content,
        ..State::default()
    };
    assert!(State::decode(&state(CONTENT_MAX).encode()).is_ok());
    assert!(State::decode(&state(CONTENT_MAX + 1).encode()).is_err());
}

#[test]
fn wrong_rows_of_an_index_remove_nothing_else() {
    let mut bucket = full();
    let options = BucketOptions {
        overflow: crate::BucketOverflow::DropOldest,
        objects_max: Some(20),
        ..SMALL
    };
    bucket.writer().set_options(options).unwrap();
    let id = [7; 16];
    let wrong = [
        (Part::Expiry, time_key(Timestamp(0), b"object 5")),
        (Part::Ages, time_key(Timestamp(0), b"object 2")),
        (Part::Ages, time_key(Timestamp(-1), b"object 7")),
        (Part::LinkExpiry, time_key(Timestamp(0), &id)),
    ];
    for (of, key) in &wrong {
        set(&mut bucket, *of, key, Some(b""));
    }
    let removed = bucket.writer().make_room((0, 0), 3, 9).unwrap();
    assert_eq!(removed.objects, 1);
    for name in ["object 2", "object 5", "object 7"] {
        assert!(bucket.get(name, 3).is_some(), "{name}");
    }
    let _ = bucket.writer().maintain(3, 100).unwrap();
    assert!(bucket.reader().link(LinkId(id), 3).unwrap().is_some());
}
