//! Bytes that no writer writes cause errors, never panics; a check finds rows that contradict each other.

use super::{Table, doc};
use crate::containers::append::Append;
use crate::containers::cursor::MessageQuery;
use crate::containers::deletion::Deletion;
use crate::containers::due::Due;
use crate::containers::edit::DeleteRange;
use crate::containers::keys;
use crate::containers::latest::{Latest, merge};
use crate::containers::message::decode_head;
use crate::containers::options::{ContainerOptions, ContainerTableOptions};
use crate::containers::parts::{Part, change, part};
use crate::containers::read::ContainersReader;
use crate::containers::record::{DroppedRecord, Record};
use crate::containers::restore::RestoreRange;
use crate::containers::seen;
use crate::containers::state::State;
use crate::containers::thinning::ThinningRow;
use crate::containers::write::ContainersWriter;
use std::time::Duration;
use tidalite_kv::Tree;
use tidalite_pager::{Error, Result};
use tidalite_testkit::ScratchPages;
use tidalite_testkit::rng::Rng;
use tidalite_time::Timestamp;

/// All nested parts.
pub(super) const TABLES: [Part; 13] = [
    Part::Containers,
    Part::Numbers,
    Part::Messages,
    Part::Fields,
    Part::FieldNames,
    Part::Latest,
    Part::Seen,
    Part::SeenTimes,
    Part::Due,
    Part::Dropped,
    Part::Deletions,
    Part::Trash,
    Part::Thinning,
];

/// A table with rows in all parts.
pub(super) fn full() -> Table {
    let options = ContainerTableOptions {
        idempotency_window: Some(Duration::from_nanos(10_000)),
        defaults: ContainerOptions {
            ttl: Some(Duration::from_nanos(1000)),
            keep_deleted: Duration::from_nanos(500),
            protect: Some("keep".into()),
            ..ContainerOptions::default()
        },
        ..ContainerTableOptions::default()
    };
    let mut table = Table::new(512, options);
    let names = ["a", "b", "c", "d"];
    for at in 0..60_i64 {
        let key = at.to_be_bytes();
        let mut document = doc(&[("n", at), ("m", at % 7)]);
        if at % 9 == 0 {
            document.set("keep", crate::containers::value::FieldValue::Bool(true));
        }
        let item = Append {
            idempotency_key: (at % 3 == 0).then_some(&key[..]),
            ..Append::new(names[at as usize % 4], Timestamp(at / 2), &document)
        };
        table.writer().append_batch(at, &[item]).unwrap();
    }
    let mut writer = table.writer();
    let own = ContainerOptions {
        messages_max: Some(12),
        ..ContainerOptions::default()
    };
    writer.set_options("b", Some(own)).unwrap();
    for from in [3, 9] {
        let range = DeleteRange {
            from: Timestamp(from),
            to: Timestamp(from + 4),
            ..DeleteRange::default()
        };
        let deleted = writer.delete_messages(70, "a", &range, &mut |_| Ok(true));
        assert!(deleted.unwrap().messages > 0);
    }
    for name in ["a", "b", "d"] {
        let thinning = super::thinning::rules(&[(60, 5), (70, 10)]);
        writer.set_thinning(name, Some(thinning)).unwrap();
    }
    writer.drop_container(80, "d").unwrap();
    table.assert_whole();
    for of in TABLES {
        let rows = part(&table.root, &table.pages, of).unwrap().len();
        assert!(rows > 0, "{of:?}");
    }
    table
}

/// The rows of a part.
pub(super) fn rows(table: &Table, of: Part) -> Vec<(Vec<u8>, Vec<u8>)> {
    let part = part(&table.root, &table.pages, of).unwrap();
    let mut cursor = part.cursor(&table.pages).unwrap();
    let mut rows = Vec::new();
    let mut there = cursor.first().unwrap();
    while there {
        let value = cursor.value().unwrap().to_vec().unwrap();
        rows.push((cursor.key().to_vec(), value));
        there = cursor.next().unwrap();
    }
    rows
}

pub(super) fn put(table: &mut Table, of: Part, key: &[u8], value: Option<&[u8]>) {
    let Table { root, pages } = table;
    change(root, pages, of, &mut |w, table| match value {
        Some(value) => table.insert(w, key, value).map(drop),
        None => table.remove(w, key).map(drop),
    })
    .unwrap();
}

/// Expects the check to find a problem, or to fail.
fn finds(table: &Table, what: &str) {
    if let Ok(problems) = table.problems() {
        assert!(!problems.is_empty(), "{what}");
    }
}

#[test]
fn a_check_finds_every_missing_row() {
    tidalite_testkit::watch();
    // A container need not have thinning rules.
    for of in TABLES.into_iter().filter(|of| *of != Part::Thinning) {
        let count = rows(&full(), of).len();
        for at in (0..count).step_by(1 + count / 12) {
            let mut table = full();
            let (key, _) = rows(&table, of).swap_remove(at);
            put(&mut table, of, &key, None);
            finds(&table, &format!("{of:?}: the row {}", key.escape_ascii()));
        }
    }
}

#[test]
fn a_check_finds_wrong_counters() {
    tidalite_testkit::watch();
    let state = |wrong: &dyn Fn(&mut State)| {
        let mut table = full();
        let mut state = table.reader().state;
        wrong(&mut state);
        let Table { root, pages } = &mut table;
        root.insert(pages, &Part::State.key(), &state.encode())
            .unwrap();
        finds(&table, &format!("{state:?}"));
    };
    state(&|state| state.containers -= 1);
    state(&|state| state.messages += 1);
    state(&|state| state.bytes += 1);
    state(&|state| state.deleted_messages += 1);
    state(&|state| state.deleted_bytes += 1);
    state(&|state| state.next_container -= 1);
    state(&|state| state.next_field -= 1);
    state(&|state| state.next_deletion -= 1);
    let record = |wrong: &dyn Fn(&mut Record)| {
        let mut table = full();
        let (key, value) = rows(&table, Part::Containers).swap_remove(1);
        let mut record = Record::decode(&value).unwrap();
        wrong(&mut record);
        put(&mut table, Part::Containers, &key, Some(&record.encode()));
        finds(&table, &format!("{record:?}"));
    };
    record(&|record| record.number = 2);
    record(&|record| record.number = 99);
    record(&|record| record.messages += 1);
    record(&|record| record.bytes += 1);
    record(&|record| record.protected_messages -= 1);
    record(&|record| record.protected_bytes -= 1);
    record(&|record| record.oldest -= 1);
    record(&|record| record.newest += 1);
    record(&|record| record.unprotected_from = i64::MAX);
    record(&|record| record.due = i64::MAX);
}

/// Changed bytes in any row cause an error or other results, never a panic or an endless loop.
#[test]
fn changed_rows_do_no_harm() {
    tidalite_testkit::watch();
    let seed = 11;
    let rng = &mut Rng::new(seed);
    for round in 0..1500 {
        let mut table = full();
        let of = *rng.pick(&TABLES);
        let all = rows(&table, of);
        let (mut key, mut value) = rng.pick(&all).clone();
        match rng.below(6) {
            0 => value.truncate(rng.index(value.len() + 1)),
            1 => value.push(rng.below(256) as u8),
            2 => put(&mut table, of, &[&key[..], b"x"].concat(), Some(&value)),
            3 => {
                put(&mut table, of, &key, None);
                let at = rng.index(key.len());
                key[at] ^= 1 << rng.below(8);
            }
            _ => {
                for _ in 0..1 + rng.index(3) {
                    if !value.is_empty() {
                        let at = rng.index(value.len());
                        value[at] ^= 1 << rng.below(8);
                    }
                }
            }
        }
        put(&mut table, of, &key, Some(&value));
        println!("seed {seed} round {round}: {of:?} {}", key.escape_ascii());
        drop(read_all(&table));
        let Table { root, pages } = &mut table;
        drop(use_all(root, pages));
    }
}

/// Maintenance of a container that has no record: a refusal would mean that nothing has changed.
#[test]
fn work_without_a_record_is_damage() {
    for of in [Part::Containers, Part::Dropped] {
        let mut table = full();
        for (key, _) in rows(&table, of) {
            put(&mut table, of, &key, None);
        }
        let done = table.writer().maintain(100_000, 1000, &mut |_| Ok(()));
        assert!(matches!(done, Err(Error::Corrupt(_))), "{of:?}: {done:?}");
    }
}

fn read_all(table: &Table) -> Result<()> {
    let reader = ContainersReader::open(&table.root, &table.pages)?;
    drop(reader.check(&mut |_| ()));
    drop(reader.stat());
    drop(reader.list("", None, 100));
    drop(reader.dropped("", 90, None, 100));
    drop(reader.field_names());
    drop(reader.thinned_containers(None, 100));
    for name in ["a", "b", "c"] {
        drop(reader.latest(name));
        drop(reader.thinning(name));
        drop(reader.deletions(name, 90, None, 100));
        drop(reader.get(name, 5, 90));
        if let Ok(mut cursor) = reader.messages(name, &MessageQuery::default(), 90) {
            while let Ok(Some(_)) = cursor.next() {}
        }
    }
    let mut cursor = reader.merged_messages(&["a", "b", "c"], &MessageQuery::default(), 90)?;
    while cursor.next()?.is_some() {}
    Ok(())
}

/// Calls all functions, even after errors.
fn use_all(root: &mut Tree, pages: &mut ScratchPages) -> Result<()> {
    let document = doc(&[("n", 5), ("new", 5)]);
    let mut writer = ContainersWriter::open(root, pages)?;
    for (name, time) in [("a", 100), ("b", 4), ("c", 8), ("e", 9)] {
        let item = Append {
            idempotency_key: Some(b"new"),
            ..Append::new(name, Timestamp(time), &document)
        };
        drop(writer.append_batch(90, &[item]));
    }
    drop(writer.replace_message(90, "a", (0, 0), &document));
    let range = DeleteRange {
        examined_max: 5,
        ..DeleteRange::default()
    };
    drop(writer.delete_messages(90, "b", &range, &mut |_| Ok(true)));
    drop(writer.restore_messages(90, "a", &RestoreRange::default()));
    drop(writer.restore_container(91, "d", "d"));
    drop(writer.rename("c", "z"));
    for (name, examined_max) in [("a", 4), ("b", 1000), ("a", 1000)] {
        drop(writer.thin(94, name, examined_max));
    }
    drop(writer.maintain(95, 20, &mut |_| Ok(())));
    drop(writer.drop_container(96, "a"));
    for budget in [1, 10, 1000, 1000] {
        drop(writer.maintain(100_000, budget, &mut |_| Ok(())));
    }
    Ok(())
}

#[test]
fn random_bytes_are_decoded_without_harm() {
    let rng = &mut Rng::new(5);
    for _ in 0..30_000 {
        let mut bytes = vec![0; rng.index(180)];
        rng.fill(&mut bytes);
        if rng.one_in(2) {
            // Mostly small numbers: these are plausible as lengths and flags.
            bytes.iter_mut().for_each(|byte| *byte &= 0x1f);
        }
        drop(ContainerTableOptions::decode(&bytes));
        drop(ContainerOptions::decode(&bytes));
        drop(State::decode(&bytes));
        drop(Record::decode(&bytes));
        drop(DroppedRecord::decode(&bytes));
        drop(Deletion::decode(1, &bytes));
        drop(Due::decode(&bytes));
        drop(seen::decode(&bytes));
        drop(ThinningRow::decode(&bytes));
        drop(decode_head(&bytes));
        drop(Latest::decode_all(&bytes));
        drop(merge(&bytes, &bytes));
        drop(keys::split_trash(&bytes));
        drop(keys::split_deletion(&bytes));
        drop(keys::split_dropped(&bytes));
        drop(keys::split_seen_time(&bytes));
    }
}

#[test]
fn rows_come_back_from_their_bytes() {
    let table = full();
    for (key, value) in rows(&table, Part::Containers) {
        let record = Record::decode(&value).unwrap();
        assert_eq!(record.encode(), value, "{}", key.escape_ascii());
    }
    for (_, value) in rows(&table, Part::Dropped) {
        assert_eq!(DroppedRecord::decode(&value).unwrap().encode(), value);
    }
    for (_, value) in rows(&table, Part::Latest) {
        assert_eq!(Latest::decode(&value).unwrap().encode(), value);
    }
    for (key, _) in rows(&table, Part::Due) {
        assert_eq!(Due::decode(&key).unwrap().encode(), key);
    }
    for (_, value) in rows(&table, Part::Thinning) {
        assert_eq!(ThinningRow::decode(&value).unwrap().encode(), value);
    }
    for (_, value) in rows(&table, Part::Deletions) {
        assert_eq!(Deletion::decode(3, &value).unwrap().encode()[..], value);
    }
}
