//! A recovery repairs a queue that has lost rows or parts: no stored message is lost, and each is delivered at least
//! once.

use crate::queues::groups::GroupStart;
use crate::queues::keys;
use crate::queues::lease::LeaseLimits;
use crate::queues::message::NewMessage;
use crate::queues::options::{IDS_MAX, QueueOptions};
use crate::queues::parts::{Part, change};
use crate::queues::recover::recover_queue;
use crate::queues::tests::damage::{TABLES, full, put, rows};
use crate::queues::tests::table::Table;
use std::collections::BTreeSet;
use tidalite_pager::Error;
use tidalite_testkit::rng::Rng;

fn lose(table: &mut Table, of: Part) {
    let Table { root, pages } = table;
    change(root, pages, of, &mut |w, table| table.clear(w)).unwrap();
}

fn stored(table: &Table) -> BTreeSet<u64> {
    let all = table.read().messages(0, usize::MAX).unwrap();
    all.iter().map(|message| message.id).collect()
}

fn open_ids(table: &Table, group: &str) -> BTreeSet<u64> {
    let number = table.read().groups[group].number;
    let open = crate::queues::derive::read_open(&table.root, &table.pages).unwrap();
    open.get(&number).into_iter().flatten().collect()
}

/// Delivers everything that the group has not finished, one message at a time, until nothing is left.
fn drain(table: &mut Table, group: &str) -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    let mut now = 8000;
    loop {
        now += 20;
        let letters = table.read().dead_letters(group, 0, 1000).unwrap();
        found.extend(letters.iter().map(|letter| letter.message.id));
        let limits = LeaseLimits::messages(50);
        let taken = table.write().take(group, limits, now).unwrap();
        if taken.is_empty() && now > 8400 {
            return found;
        }
        found.extend(taken.iter().map(|taken| taken.message.id));
    }
}

#[test]
fn a_whole_queue_stays_as_it_is() {
    let mut table = full();
    let before: Vec<_> = TABLES.iter().map(|of| rows(&table, *of)).collect();
    let Table { root, pages } = &mut table;
    let done = recover_queue(root, pages, None).unwrap();
    assert_eq!((done.removed, done.reopened, done.forgotten), (0, 0, 0));
    let after: Vec<_> = TABLES.iter().map(|of| rows(&table, *of)).collect();
    assert_eq!(after, before);
    table.assert_whole();
}

#[test]
fn every_part_can_be_lost() {
    tidalite_testkit::watch();
    for of in TABLES {
        println!("{of:?}");
        let mut table = full();
        let (ids, before) = (stored(&table), open_ids(&table, "a"));
        lose(&mut table, of);
        let Table { root, pages } = &mut table;
        recover_queue(root, pages, None).unwrap();
        table.assert_whole();
        if of == Part::Messages {
            assert_eq!(table.read().stat().unwrap().messages, 0);
            continue;
        }
        assert_eq!(stored(&table), ids);
        let names: Vec<String> = table.read().groups.keys().cloned().collect();
        let group = if of == Part::Groups { &names[0] } else { "a" };
        let open = open_ids(&table, group);
        assert!(open.is_superset(&before), "{of:?}");
        if of == Part::Open {
            assert_eq!(open, ids);
        }
        assert_eq!(drain(&mut table, group), open, "{of:?}");
        table.assert_whole();
    }
}

#[test]
fn all_parts_but_the_messages_can_be_lost() {
    let mut table = full();
    let (ids, options) = (stored(&table), *table.read().options());
    let next_id = table.read().stat().unwrap().next_id;
    for of in TABLES {
        if of != Part::Messages {
            lose(&mut table, of);
        }
    }
    let Table { root, pages } = &mut table;
    for of in [Part::Options, Part::State] {
        root.remove(pages, &of.key()).unwrap();
    }
    let none = recover_queue(root, pages, None);
    assert!(matches!(none, Err(Error::Refused { .. })));
    let done = recover_queue(root, pages, Some(options)).unwrap();
    assert_eq!(done.messages, ids.len() as u64);
    table.assert_whole();
    assert_eq!(table.read().stat().unwrap().next_id, next_id);
    assert_eq!(*table.read().options(), options);
    table
        .write()
        .create_group("new", GroupStart::Oldest, 0)
        .unwrap();
    assert_eq!(drain(&mut table, "new"), ids);
    table.assert_whole();
}

#[test]
fn too_large_numbers_of_leases_are_dropped() {
    let mut table = full();
    let number = table.read().groups["a"].number;
    let (_, value) = rows(&table, Part::Leases).swap_remove(0);
    let key = keys::pair(number, IDS_MAX);
    put(&mut table, Part::Leases, &key, Some(&value));
    let Table { root, pages } = &mut table;
    recover_queue(root, pages, None).unwrap();
    table.assert_whole();
}

#[test]
fn an_empty_queue_is_recovered() {
    let mut table = Table::new(512, QueueOptions::default());
    lose(&mut table, Part::Groups);
    let Table { root, pages } = &mut table;
    recover_queue(root, pages, None).unwrap();
    table.assert_whole();
    table.write().push(&NewMessage::new(b"job"), 0).unwrap();
    table.assert_whole();
}

#[test]
fn changed_rows_are_repaired() {
    tidalite_testkit::watch();
    let rng = &mut Rng::new(17);
    for round in 0..400 {
        let mut table = full();
        for _ in 0..1 + rng.index(4) {
            let of = *rng.pick(&TABLES);
            let all = rows(&table, of);
            if all.is_empty() {
                continue;
            }
            let (key, mut value) = rng.pick(&all).clone();
            println!("round {round}: {of:?} {}", key.escape_ascii());
            match rng.below(4) {
                0 => put(&mut table, of, &key, None),
                1 => put(&mut table, of, &[&key[..], b"x"].concat(), Some(&value)),
                _ => {
                    if !value.is_empty() {
                        let at = rng.index(value.len());
                        value[at] ^= 1 << rng.below(8);
                    }
                    put(&mut table, of, &key, Some(&value));
                }
            }
        }
        let Table { root, pages } = &mut table;
        recover_queue(root, pages, None).unwrap();
        table.assert_whole();
        let ids = stored(&table);
        let mut open = BTreeSet::new();
        let names: Vec<String> = table.read().groups.keys().cloned().collect();
        for name in names {
            open.extend(open_ids(&table, &name));
        }
        assert_eq!(open, ids);
    }
}
