//! Single rules, one test each.

use super::{Table, doc};
use crate::containers::append::{Append, AppendOutcome, Rejection};
use crate::containers::cursor::MessageQuery;
use crate::containers::document::Document;
use crate::containers::edit::DeleteRange;
use crate::containers::options::{
    CONTAINER_NAME_BYTES_MAX, ContainerOptions, ContainerOverflow, ContainerTableOptions,
    OnDuplicate,
};
use crate::containers::restore::RestoreRange;
use crate::containers::value::FieldValue;
use std::time::Duration;
use tidalite_kv::Tree;
use tidalite_pager::Error;
use tidalite_testkit::ScratchPages;
use tidalite_time::Timestamp;

pub(super) fn limit_of<T: std::fmt::Debug>(
    found: tidalite_pager::Result<T>,
) -> (&'static str, u64, u64) {
    match found {
        Err(Error::Limit { what, found, limit }) => (what, found, limit),
        other => panic!("{other:?}"),
    }
}

pub(super) fn is_refused<T>(found: &tidalite_pager::Result<T>) -> bool {
    matches!(found, Err(Error::Refused { .. }))
}

#[test]
fn messages_of_one_time_follow_the_policy() {
    let first = doc(&[("a", 1), ("b", 2)]);
    let second = doc(&[("b", 3), ("c", 4)]);
    for (on_duplicate, expected) in [
        (OnDuplicate::KeepFirst, vec![(5, 0, first.clone())]),
        (OnDuplicate::Replace, vec![(5, 0, second.clone())]),
        (
            OnDuplicate::KeepAll,
            vec![(5, 0, first.clone()), (5, 1, second.clone())],
        ),
        (
            OnDuplicate::Merge,
            vec![(5, 0, doc(&[("a", 1), ("b", 3), ("c", 4)]))],
        ),
    ] {
        let options = ContainerOptions {
            on_duplicate,
            ..ContainerOptions::default()
        };
        let items = [("x", 5, first.clone()), ("x", 5, second.clone())];
        // In one call, in two calls, and after a later message.
        let mut one = Table::with(options.clone());
        one.append_all(0, &items);
        let mut two = Table::with(options.clone());
        two.append_all(0, &items[..1]);
        two.append_all(0, &items[1..]);
        let mut late = Table::with(options);
        late.append(0, "x", 9, &[]);
        late.append_all(0, &items);
        assert_eq!(one.documents("x", 9), expected, "{on_duplicate:?}");
        assert_eq!(two.documents("x", 9), expected, "{on_duplicate:?}");
        assert_eq!(late.documents("x", 9)[..expected.len()], expected[..]);
        for mut table in [one, two, late] {
            table.assert_whole();
        }
    }
}

#[test]
fn a_late_message_sets_only_older_values() {
    let mut table = Table::with(ContainerOptions::default());
    table.append(0, "x", 10, &[("a", 1), ("b", 2)]);
    table.append(0, "x", 5, &[("a", 8), ("c", 3)]);
    table.append(0, "x", 10, &[("b", 4)]);
    let latest = table.reader().latest("x").unwrap();
    let latest: Vec<_> = latest
        .iter()
        .map(|value| (value.field.as_str(), value.time.0, value.value.clone()))
        .collect();
    let integer = FieldValue::Integer;
    let expected = [
        ("a", 10, integer(1)),
        ("b", 10, integer(4)),
        ("c", 5, integer(3)),
    ];
    assert_eq!(latest, expected);
    let some = table.reader().latest_of("x", &["c", "none", "a"]).unwrap();
    let times: Vec<_> = some
        .iter()
        .map(|value| value.as_ref().map(|v| v.time.0))
        .collect();
    assert_eq!(times, [Some(5), None, Some(10)]);
    // Deleting the messages does not change the latest values.
    let range = DeleteRange::default();
    let mut writer = table.writer();
    writer
        .delete_messages(0, "x", &range, &mut |_| Ok(true))
        .unwrap();
    assert_eq!(table.reader().latest("x").unwrap().len(), 3);
    table.assert_whole();
}

#[test]
fn a_time_to_live_of_zero_only_forwards() {
    let mut table = Table::with(ContainerOptions {
        ttl: Some(Duration::ZERO),
        ..ContainerOptions::default()
    });
    let outcome = table.append(7, "x", 100, &[("a", 1)]);
    assert_eq!(outcome, AppendOutcome::NotStored);
    assert!(table.times("x", 7).is_empty());
    let latest = table.reader().latest("x").unwrap();
    assert_eq!((latest.len(), latest[0].time), (1, Timestamp(100)));
    table.assert_whole();
}

#[test]
fn expired_messages_cannot_be_seen_before_they_are_removed() {
    let mut table = Table::with(ContainerOptions {
        ttl: Some(Duration::from_nanos(100)),
        protect: Some("keep".into()),
        ..ContainerOptions::default()
    });
    let mut keep = doc(&[("a", 1)]);
    keep.set("keep", FieldValue::Bool(true));
    table.append_all(
        0,
        &[("x", 0, doc(&[])), ("x", 1, keep), ("x", 50, doc(&[]))],
    );
    assert_eq!(table.times("x", 99), [0, 1, 50]);
    assert_eq!(table.times("x", 100), [1, 50]);
    assert_eq!(table.times("x", 150), [1]);
    assert!(table.reader().get("x", 0, 100).unwrap().is_empty());
    let mut writer = table.writer();
    assert!(writer.delete_message(100, "x", (0, 0)).unwrap().is_none());
    assert!(
        writer
            .replace_message(100, "x", (0, 0), &doc(&[]))
            .unwrap()
            .is_none()
    );
    let mut removed = Vec::new();
    let done = writer
        .maintain(149, 100, &mut |message| {
            removed.push(message.message.key.time.0);
            Ok(())
        })
        .unwrap();
    assert!(!done.more);
    assert_eq!(removed, [0]);
    let done = table.writer().maintain(150, 100, &mut |_| Ok(())).unwrap();
    assert_eq!((done.expired, done.removed[0].from), (1, Timestamp(50)));
    let info = table.reader().container("x").unwrap().unwrap();
    assert_eq!(
        (info.messages, info.protected_messages, info.expired),
        (1, 1, 2)
    );
    // A message that has already expired on arrival is not stored.
    assert_eq!(table.append(300, "x", 199, &[]), AppendOutcome::NotStored);
    table.assert_whole();
}

#[test]
fn full_containers_reject_or_rotate() {
    let options = ContainerOptions {
        messages_max: Some(3),
        overflow: ContainerOverflow::DropOldest,
        ..ContainerOptions::default()
    };
    let mut table = Table::with(options.clone());
    let items: Vec<_> = (0..5).map(|time| ("x", time, doc(&[]))).collect();
    let appended = table.append_all(0, &items);
    let rotated: Vec<_> = appended
        .rotated
        .iter()
        .map(|m| m.message.key.time.0)
        .collect();
    assert_eq!(rotated, [0, 1]);
    assert_eq!(table.times("x", 0), [2, 3, 4]);
    // The message is older than all others: it is stored and removed at once.
    let appended = table.append_all(0, &[("x", -9, doc(&[]))]);
    assert_eq!(appended.rotated[0].message.key.time.0, -9);
    table.assert_whole();
    let mut table = Table::with(ContainerOptions {
        overflow: ContainerOverflow::Reject,
        ttl: Some(Duration::from_nanos(10)),
        ..options
    });
    let appended = table.append_all(0, &items);
    let full = AppendOutcome::Rejected(Rejection::ContainerFull);
    assert_eq!(appended.outcomes[3..], [full.clone(), full]);
    assert_eq!(table.times("x", 0), [0, 1, 2]);
    // Expired messages make room.
    let appended = table.append_all(11, &[("x", 11, doc(&[])), ("x", 12, doc(&[]))]);
    assert_eq!(appended.expired.len(), 2);
    assert_eq!(table.times("x", 11), [2, 11, 12]);
    assert_eq!(table.reader().container("x").unwrap().unwrap().rejected, 2);
    table.assert_whole();
}

#[test]
fn a_message_larger_than_its_container_is_rejected() {
    let mut table = Table::with(ContainerOptions {
        bytes_max: Some(100),
        ..ContainerOptions::default()
    });
    let mut large = Document::default();
    large.set("text", FieldValue::Text("x".repeat(100)));
    let appended = table.append_all(0, &[("x", 1, doc(&[])), ("x", 2, large)]);
    let full = AppendOutcome::Rejected(Rejection::ContainerFull);
    assert_eq!(appended.outcomes[1], full);
    assert_eq!(table.times("x", 0), [1]);
    table.assert_whole();
}

#[test]
fn idempotency_keys_are_remembered_for_their_window() {
    let mut table = Table::with(ContainerOptions::default());
    let document = doc(&[]);
    let item = |container, time| Append {
        idempotency_key: Some(b"key"),
        ..Append::new(container, Timestamp(time), &document)
    };
    let items = [item("x", 1), item("x", 2), item("y", 3)];
    let found = table.writer().append_batch(0, &items).unwrap();
    assert_eq!(found.outcomes[1], AppendOutcome::Repeated);
    assert_eq!(
        (table.times("x", 0), table.times("y", 0)),
        (vec![1], vec![3])
    );
    let repeat = |table: &mut Table, now| {
        let found = table.writer().append_batch(now, &[item("x", 9)]).unwrap();
        found.outcomes[0] == AppendOutcome::Repeated
    };
    assert!(repeat(&mut table, 999));
    assert!(!repeat(&mut table, 1000));
    assert_eq!(table.reader().stat().unwrap().idempotency_keys, 1);
    table.assert_whole();
    let done = table.writer().maintain(2000, 10, &mut |_| Ok(())).unwrap();
    assert_eq!(done.forgotten_keys, 1);
    table.assert_whole();
}

#[test]
fn refused_batches_change_nothing() {
    let mut options = ContainerTableOptions {
        fields_max: 2,
        ..ContainerTableOptions::default()
    };
    let mut table = Table::new(1024, options.clone());
    table.append(0, "x", 1, &[("a", 1)]);
    let (root, pages) = (table.root, table.pages.live_pages());
    let (good, wide) = (doc(&[("b", 1)]), doc(&[("c", 1), ("d", 1)]));
    let name = "n".repeat(CONTAINER_NAME_BYTES_MAX + 1);
    let mut writer = table.writer();
    let found = writer.append_batch(
        0,
        &[
            Append::new("x", Timestamp(2), &good),
            Append::new("y", Timestamp(1), &wide),
        ],
    );
    assert_eq!(limit_of(found), ("fields of a table", 4, 2));
    let found = writer.append_batch(0, &[Append::new(&name, Timestamp(2), &good)]);
    assert_eq!(limit_of(found).1, CONTAINER_NAME_BYTES_MAX as u64 + 1);
    for name in ["", "a\0"] {
        let found = writer.append_batch(
            0,
            &[
                Append::new("x", Timestamp(2), &good),
                Append::new(name, Timestamp(2), &good),
            ],
        );
        assert!(is_refused(&found));
    }
    let key = [0; 257];
    let long = Append {
        idempotency_key: Some(&key),
        ..Append::new("x", Timestamp(2), &good)
    };
    assert_eq!(limit_of(writer.append_batch(0, &[long])).1, 257);
    assert_eq!(
        limit_of(writer.replace_message(0, "x", (1, 0), &wide)).0,
        "fields of a table"
    );
    drop(writer);
    assert_eq!((table.root, table.pages.live_pages()), (root, pages));
    // New names of a call that was refused are not stored.
    let mut writer = table.writer();
    let refused = writer.append_batch(0, &[Append::new("x", Timestamp(2), &wide)]);
    assert!(refused.is_err());
    writer
        .append_batch(0, &[Append::new("x", Timestamp(2), &good)])
        .unwrap();
    assert_eq!(table.reader().field_number("b").unwrap(), Some(1));
    table.assert_whole();
    options.creates_containers = false;
    table.writer().set_table_options(options).unwrap();
    let outcome = table.append(0, "new", 1, &[]);
    assert_eq!(outcome, AppendOutcome::Rejected(Rejection::NoContainer));
    table.writer().create_container(0, "new", None).unwrap();
    assert!(is_refused(&table.writer().create_container(0, "new", None)));
    assert!(matches!(
        table.append(0, "new", 1, &[]),
        AppendOutcome::Stored { .. }
    ));
    table.assert_whole();
}

#[test]
fn a_dropped_container_comes_back_whole_or_goes_as_a_range() {
    let mut table = Table::with(ContainerOptions {
        keep_deleted: Duration::from_nanos(100),
        ..ContainerOptions::default()
    });
    for time in 0..50 {
        table.append(0, "x", time, &[("a", time)]);
        table.append(0, "y", time, &[("a", time)]);
    }
    let mut writer = table.writer();
    let dropped = writer.drop_container(10, "x").unwrap();
    assert_eq!(
        (dropped.messages, dropped.free_at),
        (50, Some(Timestamp(110)))
    );
    // The name is available to another container.
    writer.create_container(11, "x", None).unwrap();
    assert!(is_refused(&writer.restore_container(12, "x", "x")));
    assert_eq!(
        writer.restore_container(12, "x", "z").unwrap(),
        dropped.number
    );
    assert_eq!(table.times("z", 12).len(), 50);
    assert_eq!(table.reader().latest("z").unwrap()[0].time, Timestamp(49));
    table.assert_whole();
    table.writer().drop_container(20, "z").unwrap();
    assert_eq!(table.reader().dropped("z", 20, None, 9).unwrap().len(), 1);
    let done = table.writer().maintain(120, 1000, &mut |_| Ok(())).unwrap();
    assert_eq!(done.freed_containers, [(dropped.number, "z".to_owned())]);
    assert_eq!(table.reader().stat().unwrap().messages, 50);
    assert!(is_refused(&table.writer().restore_container(121, "z", "z")));
    table.assert_whole();
}

#[test]
fn deleted_messages_come_back_within_their_window() {
    let mut table = Table::with(ContainerOptions {
        keep_deleted: Duration::from_nanos(100),
        on_duplicate: OnDuplicate::Replace,
        ..ContainerOptions::default()
    });
    for time in 0..10 {
        table.append(0, "x", time, &[("a", time)]);
    }
    let range = DeleteRange {
        from: Timestamp(3),
        to: Timestamp(6),
        ..DeleteRange::default()
    };
    let mut writer = table.writer();
    let dry = DeleteRange {
        dry_run: true,
        ..range
    };
    let counted = writer
        .delete_messages(1, "x", &dry, &mut |_| Ok(true))
        .unwrap();
    let deleted = writer
        .delete_messages(1, "x", &range, &mut |_| Ok(true))
        .unwrap();
    assert_eq!((counted.messages, deleted.messages), (4, 4));
    let stat = table.reader().stat().unwrap();
    assert_eq!((stat.messages, stat.deleted_messages), (6, 4));
    table.append(2, "x", 4, &[("a", 40)]);
    let restore = RestoreRange {
        to: Timestamp(5),
        ..RestoreRange::default()
    };
    let mut writer = table.writer();
    let restored = writer.restore_messages(50, "x", &restore).unwrap();
    assert_eq!((restored.messages.len(), restored.skipped), (2, 1));
    assert_eq!(table.times("x", 50), [0, 1, 2, 3, 4, 5, 7, 8, 9]);
    table.assert_whole();
    let left = table.reader().deletions("x", 50, None, 9).unwrap();
    assert_eq!(
        (left.len(), left[0].messages, left[0].free_at),
        (1, 2, Timestamp(101))
    );
    let mut writer = table.writer();
    let all = RestoreRange::default();
    assert!(
        writer
            .restore_messages(101, "x", &all)
            .unwrap()
            .messages
            .is_empty()
    );
    let done = writer.maintain(101, 100, &mut |_| Ok(())).unwrap();
    assert_eq!(done.freed_messages, 2);
    assert_eq!(table.reader().stat().unwrap().deleted_messages, 0);
    table.assert_whole();
}

#[test]
fn options_hold_for_stored_messages() {
    let mut table = Table::with(ContainerOptions::default());
    for time in 0..200 {
        table.append(0, "x", time, &[]);
        table.append(0, "y", time, &[]);
    }
    let short = ContainerOptions {
        ttl: Some(Duration::from_nanos(10)),
        ..ContainerOptions::default()
    };
    table.writer().set_options("x", Some(short)).unwrap();
    let mut options = table.reader().options().clone();
    options.defaults.messages_max = Some(5);
    table.writer().set_table_options(options).unwrap();
    table.assert_whole();
    let mut steps = 0;
    loop {
        steps += 1;
        let done = table.writer().maintain(110, 50, &mut |_| Ok(())).unwrap();
        table.assert_whole();
        if !done.more {
            break;
        }
    }
    assert!(steps >= 5, "{steps}");
    assert_eq!(table.times("x", 110), (101..200).collect::<Vec<_>>());
    assert_eq!(table.times("y", 110), (195..200).collect::<Vec<_>>());
}

/// Many protected messages among the oldest ones are skipped only once.
#[test]
fn rotation_passes_protected_messages() {
    let mut table = Table::with(ContainerOptions {
        messages_max: Some(2),
        protect: Some("keep".into()),
        ..ContainerOptions::default()
    });
    let mut keep = doc(&[]);
    keep.set("keep", FieldValue::Bool(true));
    let mut items: Vec<_> = (0..500).map(|time| ("x", time, keep.clone())).collect();
    items.push(("x", 500, keep.clone()));
    items.extend((0..300).map(|_| ("x", 501, keep.clone())));
    table.append_all(0, &items);
    for time in 600..620 {
        table.append(0, "x", time, &[]);
    }
    let done = table.writer().maintain(0, 10_000, &mut |_| Ok(())).unwrap();
    assert!(!done.more);
    let info = table.reader().container("x").unwrap().unwrap();
    assert_eq!((info.messages, info.protected_messages), (803, 801));
    assert_eq!(
        (info.oldest, info.newest),
        (Some(Timestamp(0)), Some(Timestamp(619)))
    );
    table.assert_whole();
}

#[test]
fn a_full_disk_rolls_back_to_the_old_state() {
    let mut table = Table::with(ContainerOptions {
        keep_deleted: Duration::from_nanos(100),
        ..ContainerOptions::default()
    });
    let items: Vec<_> = (0..600)
        .map(|time| ("x", time, doc(&[("a", time)])))
        .collect();
    table.append_all(0, &items[..400]);
    table.commit();
    let root = table.root;
    for calls in 0.. {
        table.pages.fail_after(Some(calls));
        let done = change_all(&mut table.root, &mut table.pages, &items);
        table.pages.fail_after(None);
        if done.is_ok() {
            assert!(calls > 10, "the calls allocate pages");
            break;
        }
        assert!(matches!(done, Err(Error::Disk(_))), "{done:?}");
        table.pages.rollback();
        table.root = root;
        assert_eq!(table.times("x", 0).len(), 400);
        table.assert_whole();
    }
    table.assert_whole();
}

fn change_all(
    root: &mut Tree,
    pages: &mut ScratchPages,
    items: &[(&str, i64, Document)],
) -> tidalite_pager::Result<()> {
    let mut writer = crate::containers::write::ContainersWriter::open(root, pages)?;
    let items: Vec<_> = items[300..]
        .iter()
        .map(|(container, time, document)| Append::new(container, Timestamp(*time), document))
        .collect();
    writer.append_batch(1, &items)?;
    writer.delete_messages(2, "x", &DeleteRange::default(), &mut |m| {
        Ok(m.key.time.0 % 9 == 0)
    })?;
    writer.rename("x", "y")?;
    writer.drop_container(3, "y").map(drop)
}

#[test]
fn a_table_without_containers_is_empty() {
    let mut table = Table::with(ContainerOptions::default());
    let reader = table.reader();
    assert!(reader.list("", None, 9).unwrap().is_empty());
    assert!(reader.container("x").unwrap().is_none());
    assert!(reader.get("x", 0, 0).unwrap().is_empty());
    assert!(reader.latest("x").unwrap().is_empty());
    let query = MessageQuery::default();
    assert!(
        reader
            .messages("x", &query, 0)
            .unwrap()
            .next()
            .unwrap()
            .is_none()
    );
    assert!(
        reader
            .merged_messages(&["x"], &query, 0)
            .unwrap()
            .next()
            .unwrap()
            .is_none()
    );
    assert!(
        table
            .writer()
            .append_batch(0, &[])
            .unwrap()
            .outcomes
            .is_empty()
    );
    assert!(is_refused(&table.writer().drop_container(0, "x")));
    let done = table.writer().maintain(0, 1, &mut |_| Ok(())).unwrap();
    assert!(!done.more);
    table.assert_whole();
}
