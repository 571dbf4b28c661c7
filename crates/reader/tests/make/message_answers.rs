//! Reads topics, queues, buckets and containers through the engine's public interface.

use super::messages::{CONSUMER, DELAY, LEASE, NOW};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use tidalite::containers::{
    ContainerInfo, ContainerOptions, Document, FieldValue, OnDuplicate, Select, ThinningFigure,
};
use tidalite::objects::{LinkId, ListQuery, ObjectAttributes, UploadId, UploadMode};
use tidalite::queue::{Answered, DeadReason, Overflow, QueueMessage};
use tidalite::topics::{Filter, TopicChanges};
use tidalite::{Database, ReadTxn, Timestamp};
use tidalite_reader::bucket::{self, Bucket};
use tidalite_reader::containers::{self, Containers};
use tidalite_reader::document;
use tidalite_reader::queue::{self, Queue, State};
use tidalite_reader::topics::{self, Topics};

/// More rows than any table of the files has.
const ALL: usize = 10_000;

pub(super) fn topics(snap: &ReadTxn, name: &str) -> Topics {
    let topics = snap.topics(name).unwrap().expect("topics");
    let topics = topics.at(Timestamp::MIN);
    let options = topics.options();
    let stat = topics.stat().unwrap();
    let list = topics.list(&Filter::parse("#").unwrap(), None, u64::MAX);
    let list = list.unwrap();
    assert!(list.next.is_none());
    let messages = list.messages.iter().map(|found| {
        let retained = found.retained().unwrap();
        let message = &retained.message;
        let properties = &message.properties;
        topics::Message {
            topic: found.topic().to_owned(),
            id: retained.id,
            sequence: retained.sequence,
            time: retained.time.0,
            qos: message.qos as u8,
            is_text: message.is_text,
            expires: message.expires.map(|time| time.0),
            publisher: message.publisher.to_owned(),
            properties: topics::Properties {
                content_type: properties.content_type.map(str::to_owned),
                response_topic: properties.response_topic.map(str::to_owned),
                correlation_data: properties.correlation_data.map(<[u8]>::to_vec),
                user: properties
                    .user
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                    .collect(),
            },
            payload: message.payload.to_vec(),
        }
    });
    let mut messages: Vec<_> = messages.collect();
    messages.sort_by_key(|message| message.topic.replace('/', "\0"));
    assert_eq!(messages.len() as u64, stat.messages);
    let expiring = messages.iter().filter(|message| message.expires.is_some());
    assert_eq!(expiring.count() as u64, stat.expiring);
    let changes = topics
        .changes(stat.sequence - stat.feed_changes, ALL)
        .unwrap();
    let TopicChanges::Some { changes, .. } = changes else {
        panic!("a feed");
    };
    let changes = changes.into_iter();
    Topics {
        options: topics::Options {
            levels_max: options.levels_max,
            topic_bytes_max: options.topic_bytes_max.into(),
            payload_bytes_max: options.payload_bytes_max as usize,
            messages_max: options.messages_max.unwrap_or(u64::MAX),
            bytes_max: options.bytes_max.unwrap_or(u64::MAX),
            feed_changes: options.feed_changes,
        },
        bytes: stat.bytes,
        sequence: stat.sequence,
        messages,
        changes: changes
            .map(|change| (change.sequence, change.topic, change.is_removed))
            .collect(),
    }
}

pub(super) fn queue(db: &Database, snap: &ReadTxn, name: &str) -> Queue {
    let queue = snap.queue(name).unwrap().expect("a queue");
    let (options, stat) = (queue.options(), queue.stat().unwrap());
    let messages = queue.messages(0, ALL).unwrap();
    assert_eq!(messages.len() as u64, stat.messages);
    let names = queue.group_names().into_iter();
    let groups = names.map(|group| {
        let stat = queue.group_stat(group).unwrap();
        let open = states(db, &queue, group, &messages);
        let count = |is_counted: fn(&State) -> bool| {
            let counted = open.iter().filter(|(_, _, state)| is_counted(state));
            counted.count() as u64
        };
        assert_eq!(count(|state| *state == State::Ready), stat.ready);
        assert_eq!(count(|state| *state == State::Waiting), stat.waiting);
        let is_delayed = |state: &State| matches!(state, State::Delayed { .. });
        assert_eq!(count(is_delayed), stat.delayed);
        let is_leased = |state: &State| matches!(state, State::Leased { .. });
        assert_eq!(count(is_leased), stat.leased);
        let is_dead = |state: &State| matches!(state, State::Dead { .. });
        assert_eq!(count(is_dead), stat.dead);
        queue::Group {
            name: group.to_owned(),
            totals: [stat.acked, stat.redelivered, stat.buried],
            open,
        }
    });
    Queue {
        options: queue::Options {
            overflow: match options.overflow {
                Overflow::Reject => 0,
                Overflow::DropOldest => 1,
                Overflow::DropNewest => 2,
            },
            deliveries_max: options.deliveries_max.unwrap_or(0) as usize,
            messages_max: options.messages_max.unwrap_or(0),
            bytes_max: options.bytes_max.unwrap_or(0),
            retention: options.retention.map_or(0, |age| age.as_nanos() as i64),
            window: options
                .idempotency_window
                .map_or(0, |window| window.as_nanos() as i64),
        },
        next_id: stat.next_id,
        bytes: stat.bytes,
        totals: [
            stat.pushed,
            stat.repeated,
            stat.dropped_oldest,
            stat.dropped_newest,
            stat.expired,
            stat.aged,
            stat.purged,
        ],
        groups: groups.collect(),
        messages: messages.iter().map(queue_message).collect(),
    }
}

fn queue_message(message: &QueueMessage) -> queue::Message {
    queue::Message {
        id: message.id,
        priority: message.priority,
        time: message.pushed.0,
        not_before: message.not_before.map(|time| time.0),
        expires: message.expires.map(|time| time.0),
        key: message.key.clone(),
        idempotency_key: message.idempotency_key.clone(),
        headers: message.headers.clone(),
        payload: message.payload.clone(),
    }
}

/// The states of messages in a group. The interface does not list leased and delayed messages: a transaction that is not
/// committed tells them by the answers of consumers. Of these, each was delivered once, and by [`CONSUMER`]; no delayed
/// message has a key.
fn states(
    db: &Database,
    queue: &tidalite::queue::Queue<'_>,
    group: &str,
    messages: &[QueueMessage],
) -> Vec<(u64, usize, State)> {
    let ready = queue.peek(group, ALL).unwrap().into_iter();
    let ready: BTreeMap<u64, u32> = ready
        .map(|(message, deliveries)| (message.id, deliveries))
        .collect();
    let dead = queue.dead_letters(group, 0, ALL).unwrap().into_iter();
    let dead: BTreeMap<u64, _> = dead.map(|letter| (letter.message.id, letter)).collect();
    let ids: Vec<u64> = messages.iter().map(|message| message.id).collect();
    let mut tx = db.begin_write().unwrap();
    let mut writer = tx.queue(queue.name()).unwrap();
    let others = writer.ack(group, "another consumer", &ids).unwrap();
    let answers = writer.ack(group, CONSUMER, &ids).unwrap();
    drop(tx);
    let mut states = Vec::new();
    for ((message, answer), other) in messages.iter().zip(answers).zip(others) {
        let nanos = |duration: std::time::Duration| duration.as_nanos() as i64;
        let (deliveries, state) = match answer {
            Answered::Unknown => continue,
            Answered::Done => {
                assert_eq!(other, Answered::HeldByOther);
                let until = NOW + nanos(LEASE);
                let consumer = CONSUMER.as_bytes().to_vec();
                (1, State::Leased { until, consumer })
            }
            Answered::NotLeased => {
                if let Some(deliveries) = ready.get(&message.id) {
                    (*deliveries as usize, State::Ready)
                } else if let Some(letter) = dead.get(&message.id) {
                    let state = State::Dead {
                        since: letter.died.0,
                        is_rejected: letter.reason == DeadReason::Rejected,
                    };
                    (letter.deliveries as usize, state)
                } else if let Some(until) = message.not_before.filter(|_| message.key.is_none()) {
                    let until = until.0;
                    (0, State::Delayed { until })
                } else if message.key.is_some() {
                    (0, State::Waiting)
                } else {
                    let until = NOW + nanos(DELAY);
                    (1, State::Delayed { until })
                }
            }
            answer => panic!("{answer:?} about {}", message.id),
        };
        states.push((message.id, deliveries, state));
    }
    states
}

fn attributes(attributes: ObjectAttributes) -> bucket::Attributes {
    bucket::Attributes {
        expires: attributes.expires.map(|time| time.0),
        is_protected: attributes.protected,
        content_type: attributes.content_type,
        metadata: attributes.metadata,
    }
}

pub(super) fn bucket(snap: &ReadTxn, name: &str) -> Bucket {
    let bucket = snap.bucket(name).unwrap().expect("a bucket");
    let (options, stat) = (bucket.options(), bucket.stat().unwrap());
    let list = bucket.list(&ListQuery::default()).unwrap();
    assert!(list.next.is_none());
    let objects = list.objects.into_iter().map(|info| {
        let verified = bucket.verify(&info.name).unwrap();
        assert!(verified.is_some());
        bucket::Object {
            contents: bucket.read(&info, 0, info.size).unwrap(),
            chunk_bytes: info.chunk_bytes as usize,
            created: info.created.0,
            modified: info.modified.0,
            hash: info.hash.0,
            attributes: attributes(info.attributes),
            name: info.name,
        }
    });
    let uploads = bucket.uploads(UploadId(0), ALL).unwrap().into_iter();
    let uploads = uploads.map(|upload| {
        let parts = match upload.mode {
            UploadMode::Append => Vec::new(),
            UploadMode::Parts { .. } => bucket.upload_parts(upload.id, 0, ALL).unwrap(),
        };
        bucket::Upload {
            id: upload.id.0,
            name: upload.name,
            part_chunks: match upload.mode {
                UploadMode::Append => 0,
                UploadMode::Parts { chunks } => chunks as usize,
            },
            began: upload.began.0,
            expires: upload.expires.0,
            bytes: upload.len,
            chunk_bytes: upload.chunk_bytes as usize,
            attributes: attributes(upload.attributes),
            parts: parts
                .iter()
                .map(|part| (part.number, part.bytes, part.hash.0))
                .collect(),
        }
    });
    let links = bucket.links(LinkId([0; 16]), ALL).unwrap().into_iter();
    let links = links.map(|(id, link)| bucket::Link {
        key: id.0,
        name: link.name,
        expires: link.expires.map(|time| time.0),
        reads: (link.reads, link.bytes),
    });
    let found = Bucket {
        options: bucket::Options {
            chunk_bytes: options.chunk_bytes as usize,
            rotates: options.overflow == tidalite::objects::BucketOverflow::DropOldest,
            object_bytes_max: options.object_bytes_max.unwrap_or(u64::MAX),
            objects_max: options.objects_max.unwrap_or(u64::MAX),
            bytes_max: options.bytes_max.unwrap_or(u64::MAX),
            uploads_max: options.uploads_max,
        },
        chunks: (stat.chunks, stat.chunk_bytes),
        orphans: stat.orphans as usize,
        objects: objects.collect(),
        uploads: uploads.collect(),
        links: links.collect(),
    };
    assert_eq!(found.objects.len() as u64, stat.objects);
    assert_eq!(found.uploads.len() as u64, stat.uploads);
    found
}

pub(super) fn containers(db: &Database, snap: &ReadTxn, name: &str) -> Containers {
    let table = snap.containers(name).unwrap().expect("containers");
    let (options, stat) = (table.options(), table.stat().unwrap());
    let infos = table.list("", None, ALL).unwrap().into_iter();
    let all = infos.map(|info| {
        let deletions = table.deletions(&info.name, None, ALL).unwrap().into_iter();
        let deletions = deletions.rev().map(|deletion| containers::Deletion {
            number: deletion.number,
            time: deletion.deleted_at.0,
            until: deletion.free_at.0,
            messages: (deletion.messages, deletion.bytes),
        });
        let thinning = table.thinning(&info.name).unwrap();
        let latest = table.latest(&info.name).unwrap().into_iter();
        let mut latest: Vec<_> = latest
            .map(|latest| (latest.field, latest.time.0, value(&latest.value)))
            .collect();
        latest.sort_by(|a, b| a.0.cmp(&b.0));
        containers::Container {
            messages: container_messages(db, &table, &info.name),
            latest,
            deletions: deletions.collect(),
            thinning: thinning.map(|thinning| containers::Thinning {
                rules: thinning
                    .rules
                    .iter()
                    .map(|rule| (rule.age.as_nanos() as i64, rule.step.as_nanos() as i64))
                    .collect(),
                others: figure(thinning.others),
                fields: thinning
                    .fields
                    .into_iter()
                    .map(|(name, of)| (name, figure(of)))
                    .collect(),
            }),
            number: info.number.into(),
            options: info
                .has_own_options
                .then(|| container_options(&info.options)),
            totals: totals(&info),
            name: info.name,
        }
    });
    let dropped = table.dropped("", None, ALL).unwrap().into_iter();
    let dropped = dropped.map(|dropped| containers::Dropped {
        name: dropped.name,
        number: dropped.number.into(),
        time: dropped.dropped_at.0,
        until: dropped.free_at.expect("a time").0,
        messages: (dropped.messages, dropped.bytes),
    });
    let names = table.field_names().unwrap().by_number();
    let names: BTreeMap<u32, &str> = names.into_iter().collect();
    assert_eq!(names.len() as u64, stat.fields);
    let found = Containers {
        options: containers::TableOptions {
            creates: options.creates_containers,
            containers_max: options.containers_max as usize,
            fields_max: options.fields_max as usize,
            window: options
                .idempotency_window
                .map_or(0, |window| window.as_nanos() as i64),
            of_containers: container_options(&options.defaults),
        },
        deleted: (stat.deleted_messages, stat.deleted_bytes),
        fields: names.into_values().map(str::to_owned).collect(),
        keys: stat.idempotency_keys as usize,
        containers: all.collect(),
        dropped: dropped.collect(),
    };
    assert_eq!(found.containers.len() as u64, stat.containers);
    assert_eq!(found.dropped.len() as u64, stat.dropped_containers);
    found
}

fn totals(info: &ContainerInfo) -> containers::Totals {
    containers::Totals {
        messages: (info.messages, info.bytes),
        protected: (info.protected_messages, info.protected_bytes),
        times: (info.oldest.zip(info.newest)).map(|(oldest, newest)| (oldest.0, newest.0)),
        created: info.created.0,
        past: [info.changes, info.rejected, info.expired, info.rotated],
    }
}

fn container_options(options: &ContainerOptions) -> containers::Options {
    containers::Options {
        duplicates: match options.on_duplicate {
            OnDuplicate::KeepFirst => 0,
            OnDuplicate::Replace => 1,
            OnDuplicate::KeepAll => 2,
            OnDuplicate::Merge => 3,
        },
        rotates: options.overflow == tidalite::containers::ContainerOverflow::DropOldest,
        ttl: options.ttl.map_or(i64::MAX, |ttl| ttl.as_nanos() as i64),
        keep_deleted: options.keep_deleted.as_nanos() as i64,
        messages_max: options.messages_max.unwrap_or(u64::MAX),
        bytes_max: options.bytes_max.unwrap_or(u64::MAX),
        protect: options.protect.clone().unwrap_or_default(),
    }
}

fn figure(figure: ThinningFigure) -> u8 {
    match figure {
        ThinningFigure::First => 0,
        ThinningFigure::Last => 1,
        ThinningFigure::Min => 2,
        ThinningFigure::Max => 3,
        ThinningFigure::Mean => 4,
        ThinningFigure::Sum => 5,
        ThinningFigure::Drop => 6,
    }
}

/// The messages of a container. Only a message that was deleted says for how many it stands, so a transaction that is not
/// committed deletes them.
fn container_messages(
    db: &Database,
    table: &tidalite::containers::Containers<'_>,
    name: &str,
) -> Vec<containers::Message> {
    let mut messages = Vec::new();
    let select = Select::default();
    table
        .each(name, &select, &mut |found| {
            let document = found.document()?;
            messages.push(containers::Message {
                time: found.time().0,
                tie: found.tie().into(),
                is_protected: found.is_protected(),
                received: found.received().0,
                stands_for: 0,
                document: fields(&document),
            });
            Ok(ControlFlow::Continue(()))
        })
        .unwrap();
    let mut tx = db.begin_write().unwrap();
    let mut writer = tx.containers(table.name()).unwrap();
    let mut seen = BTreeSet::new();
    for message in &mut messages {
        let place = (Timestamp(message.time), message.tie as u32);
        assert!(seen.insert(place));
        let deleted = writer.delete_message(name, place).unwrap();
        message.stands_for = deleted.expect("a message").stands_for as usize;
    }
    messages
}

fn fields(document: &Document) -> Vec<(String, document::FieldValue)> {
    let fields = document.iter();
    fields
        .map(|(name, of)| (name.to_owned(), value(of)))
        .collect()
}

fn value(of: &FieldValue) -> document::FieldValue {
    match of {
        FieldValue::Null => document::FieldValue::Null,
        FieldValue::Bool(bool) => document::FieldValue::Bool(*bool),
        FieldValue::Integer(number) => document::FieldValue::Integer(*number),
        FieldValue::Float(number) => document::FieldValue::Float(number.to_bits()),
        FieldValue::Text(text) => document::FieldValue::Text(text.clone()),
        FieldValue::List(items) => document::FieldValue::List(items.iter().map(value).collect()),
        FieldValue::Object(object) => document::FieldValue::Object(
            object
                .iter()
                .map(|(name, of)| (name.to_string(), value(of)))
                .collect(),
        ),
    }
}
