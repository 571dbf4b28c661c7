//! Topics, queues and buckets: transactions, snapshots, the clock, and what maintenance does with them.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tidalite::maintenance::{Change, Salvage};
use tidalite::objects::{
    BucketOptions, CHUNK_BYTES_MIN, ObjectAttributes, ObjectCondition, UploadAppend,
    UploadCompletion, UploadId, UploadMode, UploadOutcome,
};
use tidalite::queue::{
    Answered, DEFAULT_GROUP, LeaseLimits, NewMessage, Overflow, Pushed, QueueOptions,
};
use tidalite::retention::Clocks;
use tidalite::storage::MemoryStorage;
use tidalite::topics::{Filter, Message, TopicChanges, TopicOptions};
use tidalite::{Database, ErrorKind, Options, Steps, TableLayout, Timestamp, Tuning};

const SECOND: i64 = 1_000_000_000;

fn folder(name: &str) -> std::path::PathBuf {
    tidalite_testkit::watch();
    let folder =
        std::env::temp_dir().join(format!("tidalite-messages-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A database in memory, with a clock that a test moves.
fn with_clock() -> (Database, Arc<AtomicI64>) {
    tidalite_testkit::watch();
    let time = Arc::new(AtomicI64::new(1_700_000_000 * SECOND));
    let own = Arc::clone(&time);
    let clocks = move || {
        let wall_ns = own.load(Ordering::Relaxed);
        Clocks {
            wall_ns,
            since_boot_ns: wall_ns.unsigned_abs(),
            boot: 1,
        }
    };
    let options = Options::new().tuning(Tuning::new().clock(clocks));
    let storage = Arc::new(MemoryStorage::new());
    (options.open_storage(storage).unwrap(), time)
}

fn payload_of(db: &Database, topic: &str) -> Option<Vec<u8>> {
    let snap = db.begin_read().unwrap();
    let topics = snap.topics("broker").unwrap()?;
    let found = topics.get(topic).unwrap()?;
    Some(found.retained().unwrap().message.payload.to_vec())
}

fn object_of(db: &Database, name: &str) -> Option<Vec<u8>> {
    let snap = db.begin_read().unwrap();
    let bucket = snap.bucket("files").unwrap()?;
    let info = bucket.info(name).unwrap()?;
    Some(bucket.read(&info, 0, u64::MAX).unwrap())
}

/// Content of every kind: a series, rows, topics, a queue with a lease and a dead letter, objects.
fn fill(db: &Database) {
    let mut tx = db.begin_write().unwrap();
    let mut series = tx.series("speed").unwrap();
    for step in 0..1000 {
        series.insert(Steps(step), step as f64).unwrap();
    }
    tx.table("config").unwrap().put(b"speed", b"7").unwrap();
    let names: Vec<String> = (0..500)
        .map(|i| format!("hall/{}/machine/{i}", i % 7))
        .collect();
    let options = TopicOptions {
        feed_changes: 100,
        ..TopicOptions::default()
    };
    let mut topics = tx.topics_with("broker", &options).unwrap();
    let messages: Vec<Message> = names
        .iter()
        .map(|name| Message::new(name, name.as_bytes()))
        .collect();
    topics
        .publish_batch(messages.iter().map(|message| (message, true)))
        .unwrap();
    let mut queue = tx.queue("jobs").unwrap();
    let payloads: Vec<String> = (0..300).map(|i| format!("job {i}")).collect();
    let jobs: Vec<NewMessage> = payloads
        .iter()
        .map(|payload| NewMessage::new(payload.as_bytes()))
        .collect();
    queue.push_many(&jobs).unwrap();
    let limits = LeaseLimits::messages(10);
    let leased = queue
        .lease(DEFAULT_GROUP, "worker", Duration::from_secs(3600), limits)
        .unwrap();
    let ids: Vec<u64> = leased.iter().map(|one| one.message.id).collect();
    queue.ack(DEFAULT_GROUP, "worker", &ids[..5]).unwrap();
    queue.reject(DEFAULT_GROUP, "worker", &ids[5..6]).unwrap();
    let options = BucketOptions {
        chunk_bytes: CHUNK_BYTES_MIN,
        ..BucketOptions::default()
    };
    let mut bucket = tx.bucket_with("files", &options).unwrap();
    for (name, len) in [("small", 10), ("large", 3 * CHUNK_BYTES_MIN as usize + 17)] {
        let bytes: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
        let attributes = ObjectAttributes::default();
        let condition = ObjectCondition::Missing;
        let stored = bucket
            .put_from(name, &mut &bytes[..], attributes, condition)
            .unwrap();
        assert!(!stored.done().unwrap().replaced);
    }
    tx.commit().unwrap();
}

/// Checks that the content is what `fill` has written.
fn assert_filled(db: &Database) {
    assert_eq!(
        payload_of(db, "hall/3/machine/3").unwrap(),
        b"hall/3/machine/3"
    );
    let snap = db.begin_read().unwrap();
    let topics = snap.topics("broker").unwrap().unwrap();
    let count = |filter| topics.count(&Filter::parse(filter).unwrap()).unwrap();
    assert_eq!(count("#"), 500);
    assert_eq!(count("hall/2/#"), 72);
    assert_eq!(count("+/+/machine/77"), 1);
    let queue = snap.queue("jobs").unwrap().unwrap();
    let group = queue.group_stat(DEFAULT_GROUP).unwrap();
    assert_eq!((group.ready, group.leased, group.dead), (290, 4, 1));
    assert_eq!(queue.dead_letters(DEFAULT_GROUP, 0, 10).unwrap().len(), 1);
    let len = 3 * CHUNK_BYTES_MIN as usize + 17;
    assert_eq!(object_of(db, "large").unwrap().len(), len);
    let bucket = snap.bucket("files").unwrap().unwrap();
    for name in ["small", "large"] {
        assert!(bucket.verify(name).unwrap().unwrap().is_sound());
    }
    let report = db.check().unwrap();
    assert!(report.is_clean(), "{report:?}");
}

#[test]
fn all_kinds_commit_together_and_survive_maintenance() {
    let folder = folder("together");
    let path = folder.join("a.tdl");
    let db = Database::open(&path).unwrap();
    fill(&db);
    assert_filled(&db);
    let mut tx = db.begin_write().unwrap();
    tx.topics("broker")
        .unwrap()
        .publish(&Message::new("hall/3/machine/3", b"lost"), true)
        .unwrap();
    tx.queue("jobs")
        .unwrap()
        .push(&NewMessage::new(b"lost"))
        .unwrap();
    let removed = tx
        .bucket("files")
        .unwrap()
        .delete("large", &ObjectCondition::Always)
        .unwrap();
    assert!(removed.done().is_some());
    drop(tx);
    assert_filled(&db);
    let backup = folder.join("backup.tdl");
    db.copy().to(&backup).unwrap();
    assert_filled(&Database::open(&backup).unwrap());
    drop(db);
    let db = Database::open(&path).unwrap();
    assert_filled(&db);
    db.compact(u64::MAX).unwrap();
    assert_filled(&db);
    let snap = db.begin_read().unwrap();
    for (name, layout, text) in [
        ("broker", TableLayout::Topics, "topics"),
        ("jobs", TableLayout::Queue, "queue"),
        ("files", TableLayout::Bucket, "bucket"),
    ] {
        let types = snap.table_types(name).unwrap().unwrap();
        assert_eq!((types.layout(), &*types.to_string()), (layout, text));
    }
    drop((snap, db));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_salvaged_file_has_all_messages() {
    let folder = folder("salvage");
    let path = folder.join("a.tdl");
    let db = Database::open(&path).unwrap();
    fill(&db);
    drop(db);
    let to = folder.join("b.tdl");
    let report = Salvage::of(&path).to(&to).unwrap();
    assert!(report.is_complete(), "{report:?}");
    assert_filled(&Database::open(&to).unwrap());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn differences_name_messages_and_objects() {
    let (db, _) = with_clock();
    fill(&db);
    let base = db.begin_read().unwrap();
    let mut tx = db.begin_write().unwrap();
    tx.topics("broker")
        .unwrap()
        .publish(&Message::new("new/topic", b"1"), true)
        .unwrap();
    tx.queue("jobs")
        .unwrap()
        .push(&NewMessage::new(b"job"))
        .unwrap();
    let bucket = &mut tx.bucket("files").unwrap();
    let outcome = bucket
        .put(
            "third",
            b"abc",
            ObjectAttributes::default(),
            &ObjectCondition::Always,
        )
        .unwrap();
    assert!(outcome.done().is_some());
    tx.commit().unwrap();
    let mut seen = Vec::new();
    let snap = db.begin_read().unwrap();
    snap.diff(&base, &mut |change| {
        if let Change::Inserted { table, key, .. } = change {
            seen.push((table.to_owned(), key.to_vec()));
        }
        Ok(())
    })
    .unwrap();
    seen.sort();
    assert_eq!(seen.len(), 3);
    assert_eq!(seen[1], ("files".to_owned(), b"third".to_vec()));
    assert_eq!(seen[2], ("jobs".to_owned(), 301u64.to_be_bytes().to_vec()));
}

#[test]
fn expiry_leases_and_delays_follow_the_commit_clock() {
    let (db, time) = with_clock();
    let now = time.load(Ordering::Relaxed);
    let mut tx = db.begin_write().unwrap();
    let mut message = Message::new("door", b"open");
    message.expires = Some(Timestamp(now + 10 * SECOND));
    tx.topics("broker")
        .unwrap()
        .publish(&message, true)
        .unwrap();
    let mut queue = tx.queue("jobs").unwrap();
    queue.push(&NewMessage::new(b"job")).unwrap();
    let leased = queue
        .lease(
            DEFAULT_GROUP,
            "one",
            Duration::from_secs(10),
            LeaseLimits::messages(1),
        )
        .unwrap();
    let attributes = ObjectAttributes {
        expires: Some(Timestamp(now + 10 * SECOND)),
        ..ObjectAttributes::default()
    };
    let mut bucket = tx.bucket("files").unwrap();
    let put = bucket
        .put("object", b"x", attributes, &ObjectCondition::Always)
        .unwrap();
    assert!(put.done().is_some());
    tx.commit().unwrap();
    assert!(payload_of(&db, "door").is_some() && object_of(&db, "object").is_some());

    // A jump of the wall clock without elapsed time would need a restart in which nothing is known: here time passes.
    time.fetch_add(11 * SECOND, Ordering::Relaxed);
    assert!(payload_of(&db, "door").is_none() && object_of(&db, "object").is_none());
    let mut tx = db.begin_write().unwrap();
    let id = leased[0].message.id;
    let mut queue = tx.queue("jobs").unwrap();
    assert_eq!(
        queue.ack(DEFAULT_GROUP, "one", &[id]).unwrap(),
        [Answered::Lapsed]
    );
    let again = queue
        .lease(
            DEFAULT_GROUP,
            "two",
            Duration::from_secs(10),
            LeaseLimits::messages(5),
        )
        .unwrap();
    assert_eq!((again.len(), again[0].deliveries), (1, 2));
    let done = tx.topics("broker").unwrap().maintain(100).unwrap();
    assert_eq!(done.expired, 1);
    let maintained = tx.bucket("files").unwrap().maintain(100).unwrap();
    assert_eq!(maintained.expired.objects, 1);
    tx.commit().unwrap();
    assert!(db.check().unwrap().is_clean());
}

#[test]
fn a_refused_call_leaves_the_transaction_usable() {
    let (db, _) = with_clock();
    let mut tx = db.begin_write().unwrap();
    let options = QueueOptions {
        messages_max: Some(2),
        overflow: Overflow::Reject,
        ..QueueOptions::default()
    };
    let mut queue = tx.queue_with("jobs", &options).unwrap();
    let jobs = [NewMessage::new(b"a"); 3];
    assert_eq!(queue.push_many(&jobs).unwrap_err().kind(), ErrorKind::Limit);
    assert_eq!(queue.push(&jobs[0]).unwrap(), Pushed::Stored(1));
    let mut topics = tx.topics("broker").unwrap();
    let wrong = topics.publish(&Message::new("a/+/b", b"x"), true);
    assert_eq!(wrong.unwrap_err().kind(), ErrorKind::InvalidName);
    topics.publish(&Message::new("a/b", b"x"), true).unwrap();
    assert_eq!(
        tx.queue("broker").map(drop).unwrap_err().kind(),
        ErrorKind::WrongType
    );
    assert_eq!(
        tx.table("broker").map(drop).unwrap_err().kind(),
        ErrorKind::WrongType
    );
    assert_eq!(
        tx.raw_table("jobs").map(drop).unwrap_err().kind(),
        ErrorKind::WrongType
    );
    tx.table("rows").unwrap().put(b"k", b"v").unwrap();
    assert_eq!(
        tx.bucket("rows").map(drop).unwrap_err().kind(),
        ErrorKind::WrongType
    );
    let other = tx.queue_with("jobs", &QueueOptions::default()).map(drop);
    assert_eq!(other.unwrap_err().kind(), ErrorKind::WrongType);
    let wrong = TopicOptions {
        levels_max: 0,
        ..TopicOptions::default()
    };
    let refused = tx.topics_with("other", &wrong).map(drop);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(tx.tables().unwrap(), ["broker", "jobs", "rows"]);
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    assert!(snap.queue("missing").unwrap().is_none());
    assert_eq!(
        snap.queue("broker").map(drop).unwrap_err().kind(),
        ErrorKind::WrongType
    );
    assert!(db.check().unwrap().is_clean());
}

#[test]
fn options_of_a_queue_can_change() {
    let (db, time) = with_clock();
    let mut tx = db.begin_write().unwrap();
    let options = QueueOptions {
        idempotency_window: Some(Duration::from_secs(10)),
        ..QueueOptions::default()
    };
    let mut queue = tx.queue_with("jobs", &options).unwrap();
    let mut job = NewMessage::new(b"a");
    job.idempotency_key = Some(b"key");
    assert_eq!(queue.push(&job).unwrap(), Pushed::Stored(1));
    assert_eq!(queue.push(&job).unwrap(), Pushed::Repeated(1));
    for _ in 0..5 {
        queue.push(&NewMessage::new(b"b")).unwrap();
    }
    let options = QueueOptions {
        messages_max: Some(3),
        retention: Some(Duration::from_secs(5)),
        overflow: Overflow::DropOldest,
        ..QueueOptions::default()
    };
    queue.set_options(&options).unwrap();
    assert_eq!(queue.options().unwrap(), options);
    assert_eq!(queue.push(&job).unwrap(), Pushed::Stored(7));
    assert_eq!(queue.view().unwrap().stat().unwrap().messages, 3);
    tx.commit().unwrap();
    assert!(db.check().unwrap().is_clean());
    time.fetch_add(6 * SECOND, Ordering::Relaxed);
    let mut tx = db.begin_write().unwrap();
    let mut queue = tx.queue("jobs").unwrap();
    while queue.maintain(1).unwrap().more {}
    assert_eq!(queue.view().unwrap().stat().unwrap().messages, 0);
    tx.commit().unwrap();
    assert!(db.check().unwrap().is_clean());
}

#[test]
fn an_upload_goes_on_after_a_restart() {
    let folder = folder("upload");
    let path = folder.join("a.tdl");
    let bytes: Vec<u8> = (0..3_000_000).map(|i| (i % 253) as u8).collect();
    let db = Database::open(&path).unwrap();
    let mut tx = db.begin_write().unwrap();
    let mut bucket = tx.bucket("files").unwrap();
    let day = Duration::from_secs(86_400);
    let id = bucket
        .begin_upload(
            "video",
            ObjectAttributes::default(),
            UploadMode::Append,
            day,
        )
        .unwrap();
    let done = bucket.append_upload(id, 0, &bytes[..1_700_000]).unwrap();
    assert_eq!(done, UploadAppend::Done { len: 1_700_000 });
    tx.commit().unwrap();
    drop(db);

    let db = Database::open(&path).unwrap();
    let snap = db.begin_read().unwrap();
    let uploads = snap.bucket("files").unwrap().unwrap();
    let uploads = uploads.uploads(UploadId(0), 10).unwrap();
    assert_eq!((uploads.len(), uploads[0].len), (1, 1_700_000));
    let mut tx = db.begin_write().unwrap();
    let mut bucket = tx.bucket("files").unwrap();
    let wrong = bucket.append_upload(id, 5, b"x").unwrap();
    assert_eq!(wrong, UploadAppend::Expected { offset: 1_700_000 });
    let done = bucket
        .append_upload(id, 1_700_000, &bytes[1_700_000..])
        .unwrap();
    assert_eq!(done, UploadAppend::Done { len: 3_000_000 });
    let outcome = bucket
        .complete_upload(id, &UploadCompletion::default())
        .unwrap();
    assert!(matches!(outcome, UploadOutcome::Done(_)));
    tx.commit().unwrap();
    assert_eq!(object_of(&db, "video").unwrap(), bytes);
    assert!(db.check().unwrap().is_clean());
    drop((snap, db));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_subscriber_reads_a_snapshot_and_then_the_feed() {
    let (db, _) = with_clock();
    fill(&db);
    let snap = db.begin_read().unwrap();
    let topics = snap.topics("broker").unwrap().unwrap();
    let after = topics.sequence();
    let mut tx = db.begin_write().unwrap();
    let mut writer = tx.topics("broker").unwrap();
    writer.publish(&Message::new("a", b"1"), true).unwrap();
    assert!(writer.remove("hall/0/machine/0").unwrap());
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let topics = snap.topics("broker").unwrap().unwrap();
    let TopicChanges::Some { changes, .. } = topics.changes(after, 10).unwrap() else {
        unreachable!("the feed has 100 changes");
    };
    let seen: Vec<&str> = changes.iter().map(|change| &*change.topic).collect();
    assert_eq!(seen, ["a", "hall/0/machine/0"]);
}
