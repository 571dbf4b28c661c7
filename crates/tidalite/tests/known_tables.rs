//! A write transaction reuses the tables that the previous one opened. Two handles of one file alternate with puts,
//! renames, removals, new tables, savepoints and rollbacks; the tables are compared with a model.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use tidalite::{Database, Durability, Options, WriteTxn};
use tidalite_testkit::rng::Rng;

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

type Model = BTreeMap<&'static str, BTreeMap<u8, u8>>;

/// Views all tables at the same time and compares them with the model.
fn views_agree(txn: &WriteTxn, model: &Model) {
    let views = NAMES.map(|name| (name, txn.view_table(name).unwrap()));
    for (name, view) in views {
        let mut rows = BTreeMap::new();
        if let Some(view) = &view {
            view.for_each(|key, value| {
                rows.insert(key[0], value[0]);
            })
            .unwrap();
        }
        assert_eq!(view.is_some(), model.contains_key(name), "{name}");
        assert_eq!(rows, model.get(name).cloned().unwrap_or_default(), "{name}");
        let multi = txn.is_set_table(name).unwrap();
        assert_eq!(multi, view.map(|_| false), "{name}");
    }
}

fn step(txn: &mut WriteTxn, model: &mut Model, rng: &mut Rng) {
    let name = NAMES[rng.below(5) as usize];
    let (key, value) = (rng.below(20) as u8, rng.below(256) as u8);
    match rng.below(12) {
        0 => {
            let to = NAMES[rng.below(5) as usize];
            let may = model.contains_key(name) && (name == to || !model.contains_key(to));
            let done = txn.rename_table(name, to);
            assert_eq!(done.is_ok_and(|done| done), may, "{name} to {to}");
            if may {
                let rows = model.remove(name).unwrap();
                model.insert(to, rows);
            }
        }
        1 => assert_eq!(txn.drop_table(name).unwrap(), model.remove(name).is_some()),
        2 => {
            let table = txn.table_if_exists(name).unwrap();
            assert_eq!(table.is_some(), model.contains_key(name));
        }
        // A view must not create the table.
        9 => views_agree(txn, model),
        3 => {
            // A table of single values cannot be opened as a table of sets.
            if model.contains_key(name) {
                assert!(txn.set_table(name).is_err());
            }
        }
        4 => {
            let savepoint = txn.savepoint().unwrap();
            let mut gone = model.clone();
            step(txn, &mut gone, rng);
            step(txn, &mut gone, rng);
            txn.rollback_to(&savepoint).unwrap();
        }
        _ => {
            let rows = model.entry(name).or_default();
            let before = rows.insert(key, value);
            let mut table = txn.table(name).unwrap();
            assert_eq!(table.put(&[key], &[value]).unwrap(), before.is_none());
        }
    }
}

fn look(db: &Database, model: &Model) {
    let txn = db.begin_read().unwrap();
    for name in NAMES {
        let table = txn.table(name).unwrap();
        assert_eq!(table.is_some(), model.contains_key(name), "{name}");
        let Some((table, rows)) = table.zip(model.get(name)) else {
            continue;
        };
        assert_eq!(table.count(), rows.len() as u64);
        for (key, value) in rows {
            assert_eq!(table.get(&[*key]).unwrap(), Some(vec![*value]));
        }
    }
}

#[test]
fn tables_are_those_of_the_newest_commit() {
    tidalite_testkit::watch();
    for seed in 0..20 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        // The database gets a folder of its own, because its lock file is next to it.
        let name = format!("tidalite-known-{}-{seed}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        drop(std::fs::remove_dir_all(&dir));
        std::fs::create_dir(&dir).unwrap();
        let path = dir.join("known.tdl");
        let handles = [0, 1].map(|_| Options::new().open(&path).unwrap());
        let mut model = Model::new();
        for _ in 0..120 {
            // Mostly the first handle is used: a commit through the other handle makes the first one's cached tables
            // invalid.
            let db = &handles[usize::from(rng.below(6) == 0)];
            let mut txn = db.begin_write().unwrap();
            let mut next = model.clone();
            for _ in 0..1 + rng.below(4) {
                step(&mut txn, &mut next, &mut rng);
            }
            match rng.below(8) {
                0 => drop(txn),
                kind => {
                    let durability = match kind {
                        1 => Durability::Durable,
                        _ => Durability::Lazy,
                    };
                    txn.commit_with(durability).unwrap();
                    model = next;
                }
            }
            look(db, &model);
        }
        handles.iter().for_each(|db| look(db, &model));
        drop(handles);
        std::fs::remove_dir_all(dir).unwrap();
    }
}
