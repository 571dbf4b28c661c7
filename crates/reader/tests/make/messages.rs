//! A file with topics, a queue, a bucket and containers.

use super::tables::noise;
use super::{Made, make, small, small_tuning};
use std::time::Duration;
use tidalite::containers::{
    Append, ContainerOptions, ContainerTableOptions, DeleteRange, Document, FieldValue,
    OnDuplicate, Thinning, ThinningFigure, ThinningRule,
};
use tidalite::objects::{
    BucketOptions, BucketOverflow, LinkId, ObjectAttributes, ObjectCondition, UploadMode,
};
use tidalite::queue::{DEFAULT_GROUP, GroupStart, LeaseLimits, NewMessage, Overflow, QueueOptions};
use tidalite::retention::Clocks;
use tidalite::topics::{Message, Properties, Qos, TopicOptions};
use tidalite::{Database, Options, Timestamp};

/// The time that the clock shows, so that each file is the same.
pub(super) const NOW: i64 = 1_700_000_000_000_000_000;

/// The duration of all leases, the delay of messages that are given back, and the name of all consumers.
pub(super) const LEASE: Duration = Duration::from_secs(30);
pub(super) const DELAY: Duration = Duration::from_secs(90);
pub(super) const CONSUMER: &str = "worker";

const SECOND: i64 = 1_000_000_000;

fn options() -> Options {
    let clocks = || Clocks {
        wall_ns: NOW,
        since_boot_ns: 60_000_000_000,
        boot: 1,
    };
    small(512).tuning(small_tuning(512).clock(clocks))
}

pub(crate) fn messages() -> Made {
    make(&options(), |db| {
        topics(db);
        queues(db);
        bucket(db);
        containers(db);
    })
}

/// A file with objects of several chunks, which is too large to be stored.
pub(crate) fn large_objects() -> Made {
    make(&options(), |db| {
        let mut tx = db.begin_write().unwrap();
        let options = BucketOptions {
            chunk_bytes: 1 << 20,
            ..BucketOptions::default()
        };
        let mut bucket = tx.bucket_with("large", &options).unwrap();
        let always = ObjectCondition::Always;
        for (name, bytes) in [("two", 2 << 20), ("three", (2 << 20) + 1)] {
            let bytes = noise(bytes as u64, bytes);
            let put = bucket.put(name, &bytes, ObjectAttributes::default(), &always);
            assert!(put.unwrap().done().is_some());
        }
        let mode = UploadMode::Parts { chunks: 2 };
        for mode in [UploadMode::Append, mode] {
            let attributes = ObjectAttributes::default();
            let id = bucket.begin_upload("u", attributes, mode, LEASE).unwrap();
            let bytes = noise(3, (1 << 20) + 5);
            match mode {
                UploadMode::Append => {
                    let _ = bucket.append_upload(id, 0, &bytes[..7]).unwrap();
                    let _ = bucket.append_upload(id, 7, &bytes[7..]).unwrap();
                }
                UploadMode::Parts { .. } => assert!(bucket.put_part(id, 1, &bytes).unwrap()),
            }
        }
        tx.commit().unwrap();
    })
}

fn topics(db: &Database) {
    let mut tx = db.begin_write().unwrap();
    tx.topics("no topics").unwrap();
    let options = TopicOptions {
        feed_changes: 20,
        ..TopicOptions::default()
    };
    let mut topics = tx.topics_with("topics", &options).unwrap();
    for hall in 0..40 {
        let topic = format!("hall/{hall}/door");
        let payload = noise(hall, hall as usize * 7 + 1);
        topics
            .publish(&Message::new(&topic, &payload), true)
            .unwrap();
    }
    let long = format!("/{}/{}", "level ".repeat(15), "x".repeat(64));
    for topic in ["/", "a", "a!", "a//b", "a/b", &long] {
        topics.publish(&Message::new(topic, b"at"), true).unwrap();
    }
    for (number, qos) in [Qos::AtMostOnce, Qos::AtLeastOnce, Qos::ExactlyOnce]
        .into_iter()
        .enumerate()
    {
        let topic = format!("full/{number}");
        let mut message = Message {
            qos,
            publisher: "gw \u{fc}",
            expires: Some(Timestamp(NOW + 100 * SECOND)),
            is_text: number == 1,
            properties: Properties {
                content_type: Some("text/plain"),
                response_topic: (number > 0).then_some("a/b"),
                correlation_data: (number > 1).then_some(b"\x00\xff"),
                user: vec![("unit", "C"), ("unit", "F"), ("", "")],
            },
            ..Message::new(&topic, b"21.5")
        };
        topics.publish(&message, true).unwrap();
        message.expires = Some(Timestamp(NOW + 200 * SECOND));
        topics.publish(&message, true).unwrap();
    }
    topics
        .set(&Message::new("long", &noise(1, 2000)), Timestamp(-5))
        .unwrap();
    assert!(topics.remove("hall/3/door").unwrap());
    topics
        .publish(&Message::new("hall/4/door", b""), true)
        .unwrap();
    tx.commit().unwrap();
}

fn queues(db: &Database) {
    let mut tx = db.begin_write().unwrap();
    let mut plain = tx.queue("plain queue").unwrap();
    for number in 0..70_u8 {
        plain.push(&NewMessage::new(&[number])).unwrap();
    }
    let first = LeaseLimits::messages(10);
    let taken = plain.take(DEFAULT_GROUP, first).unwrap();
    assert_eq!(taken.len(), 10);
    let leased = plain.lease(DEFAULT_GROUP, CONSUMER, LEASE, first).unwrap();
    let ids: Vec<u64> = leased.iter().map(|delivery| delivery.message.id).collect();
    plain
        .nack(DEFAULT_GROUP, CONSUMER, &ids[..3], Duration::ZERO)
        .unwrap();

    let options = QueueOptions {
        overflow: Overflow::DropOldest,
        deliveries_max: Some(1),
        messages_max: Some(100),
        retention: Some(Duration::from_secs(1000)),
        idempotency_window: Some(Duration::from_secs(500)),
        ..QueueOptions::default()
    };
    let mut queue = tx.queue_with("queue", &options).unwrap();
    for name in ["audit", "dropped", "work"] {
        assert!(queue.create_group(name, GroupStart::Oldest).unwrap());
    }
    for number in 0..110_u64 {
        let text = format!("message {number}");
        let key = format!("key {}", number % 4);
        let headers: [(&[u8], &[u8]); 2] = [(b"a", b"xyz"), (b"", b"")];
        let message = NewMessage {
            key: (number % 3 == 1 && number % 10 != 5).then_some(key.as_bytes()),
            priority: (number % 5) as u8 * 50,
            not_before: (number % 10 == 5).then_some(Timestamp(NOW + 60 * SECOND)),
            expires: number
                .is_multiple_of(7)
                .then_some(Timestamp(NOW + 400 * SECOND)),
            headers: &headers[..number as usize % 3],
            idempotency_key: (number % 4 == 2).then_some(text.as_bytes()),
            ..NewMessage::new(text.as_bytes())
        };
        queue.push(&message).unwrap();
        if number == 106 {
            queue.push(&message).unwrap();
        }
    }
    queue.push(&NewMessage::new(&noise(5, 3000))).unwrap();
    let some = LeaseLimits::messages(30);
    let leased = queue.lease("work", CONSUMER, LEASE, some).unwrap();
    let ids: Vec<u64> = leased.iter().map(|delivery| delivery.message.id).collect();
    queue.ack("work", CONSUMER, &ids[..6]).unwrap();
    queue.reject("work", CONSUMER, &ids[6..9]).unwrap();
    let without_keys = leased[9..]
        .iter()
        .filter(|leased| leased.message.key.is_none());
    let ids: Vec<u64> = without_keys
        .map(|leased| leased.message.id)
        .take(4)
        .collect();
    queue.nack("work", CONSUMER, &ids, DELAY).unwrap();
    queue.take("audit", some).unwrap();
    assert!(queue.drop_group("dropped").unwrap());
    tx.commit().unwrap();
}

fn bucket(db: &Database) {
    let mut tx = db.begin_write().unwrap();
    tx.bucket("no objects").unwrap();
    let options = BucketOptions {
        overflow: BucketOverflow::DropOldest,
        objects_max: Some(50),
        ..BucketOptions::default()
    };
    let mut bucket = tx.bucket_with("bucket", &options).unwrap();
    let always = ObjectCondition::Always;
    let attributes = |number: i64| ObjectAttributes {
        content_type: if number % 2 == 0 { "" } else { "text/plain" }.to_owned(),
        metadata: (0..number % 3)
            .map(|pair| (format!("key {pair}"), "\u{fc}".repeat(pair as usize)))
            .collect(),
        expires: (number % 4 == 1).then_some(Timestamp(NOW + number * SECOND)),
        protected: number % 5 == 0,
    };
    for number in 0..12_i64 {
        let name = format!("folder {}/object {number}", number % 2);
        let bytes = noise(number.unsigned_abs(), number as usize * 300);
        let put = bucket.put(&name, &bytes, attributes(number), &always);
        assert!(put.unwrap().done().is_some());
    }
    for (to, attributes) in [("copy", None), ("other copy", Some(attributes(5)))] {
        let copied = bucket.copy("folder 1/object 7", to, attributes, &always);
        assert!(copied.unwrap().done().is_some());
    }
    let renamed = bucket.rename("folder 0/object 2", "renamed", &always);
    assert!(renamed.unwrap().done().is_some());
    let deleted = bucket.delete("folder 1/object 3", &always).unwrap();
    assert!(deleted.done().is_some());

    let appended = bucket
        .begin_upload("appended", attributes(1), UploadMode::Append, LEASE)
        .unwrap();
    let _ = bucket.append_upload(appended, 0, b"some ").unwrap();
    let _ = bucket.append_upload(appended, 5, b"bytes").unwrap();
    let mode = UploadMode::Parts { chunks: 2 };
    let parts = bucket
        .begin_upload("parts", attributes(2), mode, LEASE)
        .unwrap();
    assert!(bucket.put_part(parts, 3, &noise(2, 700)).unwrap());
    for (number, expires) in [(1, None), (2, Some(Timestamp(NOW + SECOND)))] {
        let id = LinkId([number; 16]);
        bucket.link_object(id, "copy", expires).unwrap();
        bucket.count_link_read(id, 77).unwrap();
    }
    tx.commit().unwrap();
}

fn containers(db: &Database) {
    let mut tx = db.begin_write().unwrap();
    tx.containers("no containers").unwrap();
    let options = ContainerTableOptions {
        idempotency_window: Some(Duration::from_secs(60)),
        defaults: ContainerOptions {
            keep_deleted: Duration::from_secs(1000),
            ..ContainerOptions::default()
        },
        ..ContainerTableOptions::default()
    };
    let mut containers = tx.containers_with("containers", &options).unwrap();
    let own = ContainerOptions {
        on_duplicate: OnDuplicate::Merge,
        ttl: Some(Duration::from_secs(300)),
        messages_max: Some(30),
        protect: Some("keep".to_owned()),
        keep_deleted: Duration::from_nanos(5),
        ..ContainerOptions::default()
    };
    containers.create_container("own", Some(&own)).unwrap();
    containers.create_container("empty", None).unwrap();
    for number in 0..40_i64 {
        let json = format!(
            r#"{{"n": {number}, "s": "{}", "keep": {}}}"#,
            "x".repeat(number as usize * 3),
            number % 9 == 0
        );
        let document = Document::from_json(&json).unwrap();
        let time = Timestamp(NOW + (number / 2 - 30) * SECOND);
        for container in ["own", "dropped", "thinned"] {
            let key = number.to_le_bytes();
            let append = Append {
                idempotency_key: (number % 4 == 0).then_some(&key[..]),
                ..Append::new(container, time, &document)
            };
            containers.append(&append).unwrap();
        }
    }
    for (number, json) in DOCUMENTS.iter().enumerate() {
        let mut document = Document::from_json(json).unwrap();
        document.set("zero", FieldValue::Float(-0.0));
        let time = Timestamp(number as i64 * SECOND - 3 * SECOND);
        containers
            .append(&Append::new("values", time, &document))
            .unwrap();
        let copy = Append::new("values", time, &document);
        containers.append(&copy).unwrap();
    }
    let of_dropped = DeleteRange {
        from: Timestamp(NOW - 20 * SECOND),
        to: Timestamp(NOW - 18 * SECOND),
        ..DeleteRange::default()
    };
    let deleted = containers.delete_messages("dropped", &of_dropped, None);
    assert_eq!(deleted.unwrap().messages, 6);
    for time in [SECOND, -2 * SECOND].map(Timestamp) {
        let deleted = containers.delete_message("values", (time, 0)).unwrap();
        assert!(deleted.is_some());
    }
    let range = DeleteRange {
        from: Timestamp(2 * SECOND),
        to: Timestamp(3 * SECOND),
        ..DeleteRange::default()
    };
    containers.delete_messages("values", &range, None).unwrap();
    let thinning = Thinning {
        rules: [(3, 4), (8, 10)]
            .map(|(age, step)| ThinningRule {
                age: Duration::from_secs(age),
                step: Duration::from_secs(step),
            })
            .to_vec(),
        others: ThinningFigure::Last,
        fields: vec![
            ("n".to_owned(), ThinningFigure::Mean),
            ("keep".to_owned(), ThinningFigure::Drop),
        ],
    };
    containers.set_thinning("thinned", Some(&thinning)).unwrap();
    containers.thin(1000).unwrap();
    containers.drop_container("dropped").unwrap();
    containers.rename_container("values", "all values").unwrap();
    tx.commit().unwrap();
}

/// Documents with values of each form.
const DOCUMENTS: [&str; 7] = [
    r#"{"null": null, "true": true, "false": false, "empty": "", "list": [], "object": {}}"#,
    r#"{"i": 0, "j": 127, "k": 128, "l": 255, "m": 256, "n": 18446744073709551615}"#,
    r#"{"i": -1, "j": -256, "k": -257, "l": -9223372036854775808, "m": 9223372036854775807}"#,
    r#"{"f": 5.0, "g": -12.5, "h": 0.1, "i": 1e300, "j": 3.141592653589793, "k": 123456789.01, "l": 1e-11}"#,
    r#"{"short": "sixty-three bytes, the longest text whose length is in the tag: ab", "long": "more than sixty-three bytes, so that the length stands in a varint of its own"}"#,
    r#"{"list": [1, [2, [3, "\u00fc", {"a": -0.5}]], null], "gps": {"lat": -33.25, "lon": {"deg": 7, "min": 1.5}}}"#,
    r#"{"a.b": 1, "\u00e9\ud83d\ude00": "\"\\\n"}"#,
];
