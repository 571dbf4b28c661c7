//! Limits of appends: the largest accepted value of each limit, and the smallest refused one.

use super::damage::put;
use super::rules::limit_of;
use super::{Table, doc};
use crate::containers::append::{Append, AppendOutcome, Rejection};
use crate::containers::document::{DOCUMENT_FIELDS_MAX, DOCUMENT_VALUES_MAX, Document};
use crate::containers::keys::MessageKey;
use crate::containers::message::put_head;
use crate::containers::options::{
    APPENDS_MAX, ContainerOptions, ContainerTableOptions, MESSAGE_IDEMPOTENCY_KEY_BYTES_MAX,
    OnDuplicate,
};
use crate::containers::parts::Part;
use crate::containers::value::FieldValue;
use tidalite_time::Timestamp;

#[test]
fn an_idempotency_key_has_a_limit() {
    let mut table = Table::with(ContainerOptions::default());
    let document = doc(&[]);
    let mut append = |len: usize| {
        let key = vec![7; len];
        let item = Append {
            idempotency_key: Some(&key),
            ..Append::new("x", Timestamp(1), &document)
        };
        table.writer().append_batch(0, &[item])
    };
    append(MESSAGE_IDEMPOTENCY_KEY_BYTES_MAX).unwrap();
    let found = limit_of(append(MESSAGE_IDEMPOTENCY_KEY_BYTES_MAX + 1));
    assert_eq!(found, ("bytes of an idempotency key", 257, 256));
}

#[test]
fn a_call_has_a_limit_of_messages() {
    let mut table = Table::with(ContainerOptions::default());
    let options = ContainerTableOptions {
        creates_containers: false,
        ..ContainerTableOptions::default()
    };
    table.writer().set_table_options(options).unwrap();
    let document = doc(&[]);
    let mut items = vec![Append::new("x", Timestamp(1), &document); APPENDS_MAX];
    let appended = table.writer().append_batch(0, &items).unwrap();
    assert_eq!(appended.outcomes.len(), APPENDS_MAX);
    items.push(items[0]);
    let (_, found, limit) = limit_of(table.writer().append_batch(0, &items));
    assert_eq!((found, limit), ((1 << 20) + 1, 1 << 20));
}

#[test]
fn a_table_has_a_limit_of_containers() {
    let options = ContainerTableOptions {
        containers_max: 2,
        ..ContainerTableOptions::default()
    };
    let mut table = Table::new(1024, options);
    table.append(0, "a", 1, &[]);
    table.append(0, "b", 1, &[]);
    let rejected = AppendOutcome::Rejected(Rejection::NoContainer);
    assert_eq!(table.append(0, "c", 1, &[]), rejected);
    let (_, found, limit) = limit_of(table.writer().create_container(0, "c", None));
    assert_eq!((found, limit), (3, 2));
    table.writer().drop_container(0, "a").unwrap();
    let stored = table.append(0, "c", 1, &[]);
    assert!(matches!(stored, AppendOutcome::Stored { .. }), "{stored:?}");
    table.assert_whole();
}

#[test]
fn a_merged_message_has_the_limits_of_a_message() {
    let mut table = Table::with(ContainerOptions {
        on_duplicate: OnDuplicate::Merge,
        ..ContainerOptions::default()
    });
    let fields = |from: usize, count: usize| {
        let names = (from..from + count).map(|at| format!("f{at}"));
        Document::new(names.map(|name| (name, FieldValue::Null)).collect()).unwrap()
    };
    let half = DOCUMENT_FIELDS_MAX / 2;
    let mut append = |document: Document| {
        let mut appended = table.append_all(0, &[("x", 1, document)]);
        appended.outcomes.remove(0)
    };
    append(fields(0, half));
    let merged = append(fields(half, half));
    assert!(matches!(merged, AppendOutcome::Merged { .. }));
    let rejected = AppendOutcome::Rejected(Rejection::MergedTooLarge);
    assert_eq!(append(fields(2 * half, 1)), rejected);
    assert!(matches!(append(fields(3, 1)), AppendOutcome::Merged { .. }));
    let large =
        |name: &str| Document::new(vec![(name, FieldValue::Text("x".repeat(8 << 20)))]).unwrap();
    let mut append = |document: Document| {
        let mut appended = table.append_all(0, &[("y", 1, document)]);
        appended.outcomes.remove(0)
    };
    append(large("a"));
    assert_eq!(append(large("b")), rejected);
    let many = |name: &str, values: usize| {
        let list = FieldValue::List(vec![FieldValue::Null; values]);
        Document::new(vec![(name, list)]).unwrap()
    };
    let mut append = |document: Document| {
        let mut appended = table.append_all(0, &[("z", 1, document)]);
        appended.outcomes.remove(0)
    };
    append(many("a", DOCUMENT_VALUES_MAX - 10));
    assert_eq!(append(many("b", 9)), rejected);
    assert!(matches!(append(many("b", 8)), AppendOutcome::Merged { .. }));
    table.assert_whole();
}

#[test]
fn messages_of_one_time_have_a_limit() {
    let mut table = Table::with(ContainerOptions::default());
    table.append(0, "x", 5, &[]);
    let mut row = Vec::new();
    put_head(false, Timestamp(0), &mut row);
    row.push(0);
    let key = |tie| MessageKey::new(0, 5, tie);
    put(
        &mut table,
        Part::Messages,
        &key(u32::MAX - 1).encode(),
        Some(&row),
    );
    let stored = AppendOutcome::Stored { key: key(u32::MAX) };
    assert_eq!(table.append(0, "x", 5, &[]), stored);
    let rejected = AppendOutcome::Rejected(Rejection::TooManyTies);
    assert_eq!(table.append(0, "x", 5, &[]), rejected);
    assert_eq!(table.times("x", 0), [5; 3]);
}
