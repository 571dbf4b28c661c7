//! The kinds of the errors with which containers, topics, queues, buckets and hash tables refuse calls.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;
use std::time::Duration;
use tidalite::containers::{
    AggregateQuery, Append, ContainerOptions, ContainerTableOptions, Document, Expression,
    FieldValue, MessageQuery, MessageToken, Projection, Select, Thinning, ThinningRule,
};
use tidalite::hash_table::{HashTableOptions, History};
use tidalite::objects::{
    BucketOptions, LinkId, ObjectAttributes, ObjectCondition, PART_CHUNKS_MAX, UploadMode,
};
use tidalite::queue::{
    BATCH_MAX, DEFAULT_GROUP, GroupStart, LeaseLimits, NewMessage, QueueOptions,
};
use tidalite::storage::MemoryStorage;
use tidalite::topics::{Filter, Message, SearchOptions, TopicOptions, TopicSearch, topic_of_bytes};
use tidalite::{Database, ErrorKind, Options, Result, Timestamp, WriteTxn};

/// The name of a call, the kind of its error, and the call.
type Refused = (&'static str, ErrorKind, fn(&mut WriteTxn) -> Result<()>);

fn memory() -> Database {
    tidalite_testkit::watch();
    let storage = Arc::new(MemoryStorage::new());
    Options::new().open_storage(storage).unwrap()
}

/// Makes each call in one transaction, which stays usable, and compares kind and text of its error.
fn assert_kinds(tx: &mut WriteTxn, calls: &[Refused]) {
    for (name, kind, call) in calls {
        let error = call(tx).expect_err(name);
        assert_eq!(error.kind(), *kind, "{name}: {error}");
        let facts = (error.found_and_expected(), error.limit());
        let says = match facts {
            (Some((found, expected)), _) => !found.is_empty() && !expected.is_empty(),
            (None, limit) => limit.is_some() || *kind == ErrorKind::WrongType,
        };
        assert!(says, "{name}: {error}");
    }
}

fn document() -> Document {
    Document::from_json(r#"{"state": "n/a", "x": 1}"#).unwrap()
}

#[test]
fn containers_refuse_calls_by_kind() {
    let db = memory();
    let mut tx = db.begin_write().unwrap();
    let mut cars = tx.containers("cars").unwrap();
    cars.append(&Append::new("red", Timestamp(1), &document()))
        .unwrap();
    cars.append(&Append::new("blue", Timestamp(1), &document()))
        .unwrap();
    cars.append(&Append::new("blue", Timestamp(2), &document()))
        .unwrap();
    let calls: [Refused; 25] = [
        ("options of none", ErrorKind::NotFound, |tx| {
            tx.containers("cars")?.set_options("none", None)
        }),
        ("rename none", ErrorKind::NotFound, |tx| {
            tx.containers("cars")?.rename_container("none", "new")
        }),
        ("drop none", ErrorKind::NotFound, |tx| {
            tx.containers("cars")?.drop_container("none").map(drop)
        }),
        ("restore none", ErrorKind::NotFound, |tx| {
            tx.containers("cars")?
                .restore_container("none", "none")
                .map(drop)
        }),
        ("thin none", ErrorKind::NotFound, |tx| {
            tx.containers("cars")?.set_thinning("none", None)
        }),
        ("columns of none", ErrorKind::NotFound, |tx| {
            tx.containers("cars")?.add_columns("none", &[])
        }),
        ("delete in none", ErrorKind::NotFound, |tx| {
            tx.containers("cars")?
                .delete_message("none", (Timestamp(1), 0))
                .map(drop)
        }),
        ("replace in none", ErrorKind::NotFound, |tx| {
            tx.containers("cars")?
                .replace_message("none", (Timestamp(1), 0), &document())
                .map(drop)
        }),
        ("create a taken name", ErrorKind::AlreadyExists, |tx| {
            tx.containers("cars")?
                .create_container("red", None)
                .map(drop)
        }),
        ("rename to a taken name", ErrorKind::AlreadyExists, |tx| {
            tx.containers("cars")?.rename_container("red", "blue")
        }),
        ("a field without a name", ErrorKind::InvalidName, |tx| {
            let mut document = Document::default();
            document.set("", FieldValue::Bool(true));
            let mut cars = tx.containers("cars")?;
            cars.append(&Append::new("red", Timestamp(5), &document))
                .map(drop)
        }),
        ("a projection to no name", ErrorKind::InvalidName, |_| {
            Ok(Projection::new(&[""]).map(drop)?)
        }),
        ("two fields of one name", ErrorKind::InvalidInput, |_| {
            let fields = vec![("a", FieldValue::Null), ("a", FieldValue::Null)];
            Ok(Document::new(fields).map(drop)?)
        }),
        (
            "a number that is not finite",
            ErrorKind::InvalidInput,
            |tx| {
                let mut document = Document::default();
                document.set("x", FieldValue::Float(f64::NAN));
                let mut cars = tx.containers("cars")?;
                cars.append(&Append::new("red", Timestamp(5), &document))
                    .map(drop)
            },
        ),
        ("a text that is not JSON", ErrorKind::InvalidInput, |_| {
            Ok(Document::from_json("{").map(drop)?)
        }),
        ("a line that is not JSON", ErrorKind::InvalidInput, |_| {
            let mut lines = Document::from_json_lines("{}\n[]\n").skip(1);
            lines.try_for_each(|line| line.map(drop))?;
            Ok(())
        }),
        ("an expression", ErrorKind::InvalidInput, |_| {
            let parsed = Expression::parse("x >");
            parsed
                .map(drop)
                .map_err(|error| tidalite_pager::Error::from(error).into())
        }),
        ("operands of a filter", ErrorKind::InvalidInput, |tx| {
            let select = Select {
                filter: Some(Expression::parse("state + 1 > 2").unwrap()),
                ..Select::default()
            };
            tx.containers("cars")?
                .view()?
                .page("red", &select)
                .map(drop)
        }),
        (
            "bytes that are not a token",
            ErrorKind::InvalidInput,
            |_| Ok(MessageToken::of_bytes(b"no").map(drop)?),
        ),
        (
            "a token of another container",
            ErrorKind::InvalidInput,
            |tx| {
                let cars = tx.containers("cars")?;
                let view = cars.view()?;
                let mut select = Select {
                    query: MessageQuery {
                        limit: 1,
                        ..MessageQuery::default()
                    },
                    ..Select::default()
                };
                select.query.after = view.page("blue", &select)?.next;
                assert!(select.query.after.is_some());
                view.page("red", &select).map(drop)
            },
        ),
        ("options of a table", ErrorKind::InvalidInput, |tx| {
            let options = ContainerTableOptions {
                idempotency_window: Some(Duration::ZERO),
                ..ContainerTableOptions::default()
            };
            tx.containers_with("new", &options).map(drop)
        }),
        ("options of a container", ErrorKind::InvalidInput, |tx| {
            let options = ContainerOptions {
                messages_max: Some(0),
                ..ContainerOptions::default()
            };
            tx.containers("cars")?.set_options("red", Some(&options))
        }),
        ("the greatest maximum", ErrorKind::InvalidInput, |tx| {
            let options = ContainerOptions {
                messages_max: Some(u64::MAX),
                ..ContainerOptions::default()
            };
            tx.containers("cars")?.set_options("red", Some(&options))
        }),
        ("rules of thinning", ErrorKind::InvalidInput, |tx| {
            let rule = ThinningRule {
                age: Duration::ZERO,
                step: Duration::ZERO,
            };
            let thinning = Thinning {
                rules: vec![rule],
                ..Thinning::default()
            };
            tx.containers("cars")?.set_thinning("red", Some(&thinning))
        }),
        ("a table with other options", ErrorKind::WrongType, |tx| {
            let options = ContainerTableOptions {
                fields_max: 7,
                ..ContainerTableOptions::default()
            };
            tx.containers_with("cars", &options).map(drop)
        }),
    ];
    assert_kinds(&mut tx, &calls);
    let query = AggregateQuery {
        step: Some(Duration::ZERO),
        ..AggregateQuery::default()
    };
    let cars = tx.containers("cars").unwrap();
    let refused = cars.view().unwrap().aggregate("red", &query);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidInput);
    tx.commit().unwrap();
}

#[test]
fn topics_refuse_calls_by_kind() {
    let db = memory();
    let mut tx = db.begin_write().unwrap();
    tx.topics("broker").unwrap();
    let calls: [Refused; 11] = [
        ("a topic with a wildcard", ErrorKind::InvalidName, |tx| {
            let message = Message::new("a/+", b"x");
            tx.topics("broker")?.publish(&message, true).map(drop)
        }),
        ("an empty topic", ErrorKind::InvalidName, |tx| {
            tx.topics("broker")?.remove("").map(drop)
        }),
        ("a topic that is not UTF-8", ErrorKind::InvalidName, |_| {
            Ok(topic_of_bytes(b"\xff").map(drop)?)
        }),
        ("a filter", ErrorKind::InvalidName, |_| {
            Ok(Filter::parse("a/#/b").map(drop)?)
        }),
        ("a topic that is too long", ErrorKind::Limit, |tx| {
            let long = "a".repeat(tidalite::topics::TOPIC_BYTES_MAX + 1);
            tx.topics("broker")?.remove(&long).map(drop)
        }),
        ("a property with NUL", ErrorKind::InvalidInput, |tx| {
            let mut message = Message::new("a", b"x");
            message.properties.content_type = Some("\0");
            tx.topics("broker")?.publish(&message, true).map(drop)
        }),
        ("an empty payload", ErrorKind::InvalidInput, |tx| {
            let message = Message::new("a", b"");
            tx.topics("broker")?.set(&message, Timestamp(0)).map(drop)
        }),
        ("a token", ErrorKind::InvalidInput, |_| {
            let filters = vec![Filter::parse("a").unwrap()];
            Ok(TopicSearch::resume(filters, SearchOptions::default(), b"no").map(drop)?)
        }),
        ("options", ErrorKind::InvalidInput, |tx| {
            let options = TopicOptions {
                levels_max: 0,
                ..TopicOptions::default()
            };
            tx.topics("broker")?.set_options(&options)
        }),
        ("the greatest maximum", ErrorKind::InvalidInput, |tx| {
            let options = TopicOptions {
                bytes_max: Some(u64::MAX),
                ..TopicOptions::default()
            };
            tx.topics("broker")?.set_options(&options)
        }),
        ("topics with other options", ErrorKind::WrongType, |tx| {
            let options = TopicOptions {
                levels_max: 3,
                ..TopicOptions::default()
            };
            tx.topics_with("broker", &options).map(drop)
        }),
    ];
    assert_kinds(&mut tx, &calls);
    tx.commit().unwrap();
}

#[test]
fn queues_refuse_calls_by_kind() {
    let db = memory();
    let mut tx = db.begin_write().unwrap();
    let mut queue = tx.queue("jobs").unwrap();
    queue.push(&NewMessage::new(b"a")).unwrap();
    let calls: [Refused; 9] = [
        ("lease for no group", ErrorKind::NotFound, |tx| {
            let mut queue = tx.queue("jobs")?;
            let minute = Duration::from_secs(60);
            queue
                .lease("none", "me", minute, LeaseLimits::messages(1))
                .map(drop)
        }),
        ("ack for no group", ErrorKind::NotFound, |tx| {
            tx.queue("jobs")?.ack("none", "me", &[1]).map(drop)
        }),
        ("requeue for no group", ErrorKind::NotFound, |tx| {
            tx.queue("jobs")?.requeue_dead("none", &[1]).map(drop)
        }),
        ("counters of no group", ErrorKind::NotFound, |tx| {
            tx.queue("jobs")?.view()?.group_stat("none").map(drop)
        }),
        ("messages of no group", ErrorKind::NotFound, |tx| {
            tx.queue("jobs")?.view()?.peek("none", 1).map(drop)
        }),
        ("a group without a name", ErrorKind::InvalidName, |tx| {
            tx.queue("jobs")?
                .create_group("", GroupStart::Oldest)
                .map(drop)
        }),
        ("too many ids", ErrorKind::Limit, |tx| {
            let ids = vec![1; BATCH_MAX + 1];
            tx.queue("jobs")?.ack(DEFAULT_GROUP, "me", &ids).map(drop)
        }),
        ("options", ErrorKind::InvalidInput, |tx| {
            let options = QueueOptions {
                retention: Some(Duration::ZERO),
                ..QueueOptions::default()
            };
            tx.queue("jobs")?.set_options(&options)
        }),
        ("a queue with other options", ErrorKind::WrongType, |tx| {
            let options = QueueOptions {
                messages_max: Some(2),
                ..QueueOptions::default()
            };
            tx.queue_with("jobs", &options).map(drop)
        }),
    ];
    assert_kinds(&mut tx, &calls);
    tx.commit().unwrap();
}

#[test]
fn buckets_refuse_calls_by_kind() {
    let db = memory();
    let mut tx = db.begin_write().unwrap();
    tx.bucket("files").unwrap();
    let calls: [Refused; 10] = [
        ("put without a name", ErrorKind::InvalidName, |tx| {
            let (attributes, always) = (ObjectAttributes::default(), ObjectCondition::Always);
            tx.bucket("files")?
                .put("", b"x", attributes, &always)
                .map(drop)
        }),
        ("link without a name", ErrorKind::InvalidName, |tx| {
            tx.bucket("files")?
                .link_object(LinkId([1; 16]), "", None)
                .map(drop)
        }),
        ("a name that is too long", ErrorKind::Limit, |tx| {
            let long = "a".repeat(tidalite::objects::OBJECT_NAME_BYTES_MAX + 1);
            tx.bucket("files")?
                .link_object(LinkId([1; 16]), &long, None)
                .map(drop)
        }),
        ("parts of a wrong size", ErrorKind::InvalidInput, |tx| {
            let mode = UploadMode::Parts {
                chunks: PART_CHUNKS_MAX + 1,
            };
            upload(tx, mode).map(drop)
        }),
        ("a part without bytes", ErrorKind::InvalidInput, |tx| {
            let id = upload(tx, UploadMode::Parts { chunks: 1 })?;
            tx.bucket("files")?.put_part(id, 0, b"").map(drop)
        }),
        (
            "a part of an upload by appending",
            ErrorKind::WrongType,
            |tx| {
                let id = upload(tx, UploadMode::Append)?;
                tx.bucket("files")?.put_part(id, 0, b"x").map(drop)
            },
        ),
        (
            "an append to an upload in parts",
            ErrorKind::WrongType,
            |tx| {
                let id = upload(tx, UploadMode::Parts { chunks: 1 })?;
                tx.bucket("files")?.append_upload(id, 0, b"x").map(drop)
            },
        ),
        ("options", ErrorKind::InvalidInput, |tx| {
            let options = BucketOptions {
                chunk_bytes: 1,
                ..BucketOptions::default()
            };
            tx.bucket("files")?.set_options(&options)
        }),
        ("the greatest maximum", ErrorKind::InvalidInput, |tx| {
            let options = BucketOptions {
                objects_max: Some(u64::MAX),
                ..BucketOptions::default()
            };
            tx.bucket("files")?.set_options(&options)
        }),
        ("a bucket with other options", ErrorKind::WrongType, |tx| {
            let options = BucketOptions {
                uploads_max: 1,
                ..BucketOptions::default()
            };
            tx.bucket_with("files", &options).map(drop)
        }),
    ];
    assert_kinds(&mut tx, &calls);
    tx.commit().unwrap();
}

fn upload(tx: &mut WriteTxn, mode: UploadMode) -> Result<tidalite::objects::UploadId> {
    let hour = Duration::from_secs(3600);
    tx.bucket("files")?
        .begin_upload("u", ObjectAttributes::default(), mode, hour)
}

#[test]
fn hash_tables_refuse_calls_by_kind() {
    let db = memory();
    let mut tx = db.begin_write().unwrap();
    let folded = HashTableOptions::new().fold_case(true);
    tx.hash_table_with::<[u8], u64>("folded", &folded).unwrap();
    let mut plain = tx.hash_table::<str, u64>("plain").unwrap();
    plain.set("a", &1).unwrap();
    let calls: [Refused; 5] = [
        ("options that contradict", ErrorKind::InvalidInput, |tx| {
            let options = HashTableOptions::new()
                .duplicates(true)
                .history(History::All);
            tx.hash_table_with::<str, u64>("new", &options).map(drop)
        }),
        ("a key without case", ErrorKind::InvalidInput, |tx| {
            let mut table = tx.hash_table::<[u8], u64>("folded")?;
            table.set(b"\xff", &1).map(drop)
        }),
        ("other options", ErrorKind::WrongType, |tx| {
            let options = HashTableOptions::new().duplicates(true);
            tx.hash_table_with::<str, u64>("plain", &options).map(drop)
        }),
        ("one record of a key", ErrorKind::WrongType, |tx| {
            let mut table = tx.hash_table::<str, u64>("plain")?;
            table.remove_record("a", 0).map(drop)
        }),
        ("another layout", ErrorKind::WrongType, |tx| {
            tx.buffered_table::<str, u64>("plain").map(drop)
        }),
    ];
    assert_kinds(&mut tx, &calls);
    tx.commit().unwrap();
}
