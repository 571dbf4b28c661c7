//! The decoded schema of a relation is kept in memory by snapshots and write transactions. Each sees the schema of its own state:
//! after changes, rollbacks, renames, and commits of another handle.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;
use tidalite::relation::{Cell, Column, ColumnType, KeyBounds, Relation, Schema};
use tidalite::storage::MemoryStorage;
use tidalite::{Database, Options, WriteTxn};

const NAME: &str = "turbines";

fn schema(columns: &[&str]) -> Schema {
    let columns = columns.iter();
    let columns = columns.map(|name| Column::new(*name, ColumnType::I64));
    columns.fold(Schema::new(), Schema::column)
}

fn create(tx: &mut WriteTxn, name: &str, columns: &[&str]) {
    drop(tx.create_relation(name, &schema(columns)).unwrap());
}

fn database() -> Database {
    tidalite_testkit::watch();
    let db = Options::new()
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap();
    let mut tx = db.begin_write().unwrap();
    create(&mut tx, NAME, &["a"]);
    tx.commit().unwrap();
    insert(&db, 1);
    db
}

/// Inserts a row with this number of cells, in a transaction of its own.
fn insert(db: &Database, cells: usize) {
    let mut tx = db.begin_write().unwrap();
    insert_into(&mut tx, cells);
    tx.commit().unwrap();
}

fn insert_into(tx: &mut WriteTxn, cells: usize) {
    let mut relation = tx.relation_mut(NAME).unwrap().unwrap();
    relation.insert(&vec![Cell::I64(1); cells]).unwrap();
}

fn add(tx: &mut WriteTxn, column: &str) {
    let mut relation = tx.relation_mut(NAME).unwrap().unwrap();
    let column = Column::new(column, ColumnType::I64).default(7_i64);
    relation.add_column(column).unwrap();
}

/// Expects these columns in the schema, and as many cells in each row.
fn assert_columns(relation: &Relation<'_>, expected: &[&str]) {
    let columns = relation.schema().columns().iter();
    let names: Vec<&str> = columns.map(|column| &column.name[..]).collect();
    assert_eq!(names, expected);
    let mut rows = relation.rows(KeyBounds::all()).unwrap();
    while let Some(row) = rows.next().unwrap() {
        assert_eq!(row.to_cells().unwrap().len(), expected.len());
    }
}

/// Expects these columns in every way in which a transaction opens a relation.
fn sees(tx: &mut WriteTxn, name: &str, expected: &[&str]) {
    assert_columns(&tx.view_relation(name).unwrap().unwrap(), expected);
    let relation = tx.relation_mut(name).unwrap().unwrap();
    assert_eq!(relation.schema().columns().len(), expected.len());
    assert_columns(&relation.view().unwrap(), expected);
    assert_columns(&tx.view_relation(name).unwrap().unwrap(), expected);
}

/// Expects these columns in the newest snapshot, each time that the relation is opened.
fn stores(db: &Database, name: &str, expected: &[&str]) {
    for _ in 0..2 {
        let snap = db.begin_read().unwrap();
        for snap in [snap.clone(), snap] {
            assert_columns(&snap.relation(name).unwrap().unwrap(), expected);
        }
    }
}

#[test]
fn a_transaction_sees_its_own_changes() {
    let db = database();
    let mut tx = db.begin_write().unwrap();
    sees(&mut tx, NAME, &["a"]);
    add(&mut tx, "b");
    sees(&mut tx, NAME, &["a", "b"]);
    insert_into(&mut tx, 2);
    let mut relation = tx.relation_mut(NAME).unwrap().unwrap();
    relation.rename_column("a", "first").unwrap();
    relation.drop_column("b").unwrap();
    sees(&mut tx, NAME, &["first"]);
    insert_into(&mut tx, 1);
    stores(&db, NAME, &["a"]);
    tx.commit().unwrap();
    stores(&db, NAME, &["first"]);
    // The next transaction begins with the tables of this one.
    let mut tx = db.begin_write().unwrap();
    sees(&mut tx, NAME, &["first"]);
    add(&mut tx, "c");
    sees(&mut tx, NAME, &["first", "c"]);
    drop(tx);
    let mut tx = db.begin_write().unwrap();
    sees(&mut tx, NAME, &["first"]);
    insert_into(&mut tx, 1);
    tx.commit().unwrap();
    stores(&db, NAME, &["first"]);
}

#[test]
fn a_rollback_brings_the_schema_back() {
    let db = database();
    // The relation is open before the savepoint, or opened after it.
    for is_open in [false, true] {
        let mut tx = db.begin_write().unwrap();
        if is_open {
            sees(&mut tx, NAME, &["a"]);
        }
        let first = tx.savepoint().unwrap();
        add(&mut tx, "b");
        let second = tx.savepoint().unwrap();
        add(&mut tx, "c");
        sees(&mut tx, NAME, &["a", "b", "c"]);
        tx.rollback_to(&second).unwrap();
        sees(&mut tx, NAME, &["a", "b"]);
        insert_into(&mut tx, 2);
        tx.rollback_to(&first).unwrap();
        sees(&mut tx, NAME, &["a"]);
        insert_into(&mut tx, 1);
        let refused = tx.nested(|tx| {
            add(tx, "d");
            tx.drop_table("none")?;
            tx.rename_table(NAME, NAME)?;
            sees(tx, NAME, &["a", "d"]);
            Err::<(), tidalite::Error>(
                tx.create_relation(NAME, &schema(&["x"]))
                    .map(drop)
                    .unwrap_err(),
            )
        });
        refused.unwrap_err();
        sees(&mut tx, NAME, &["a"]);
        let third = tx.savepoint().unwrap();
        assert!(tx.drop_table(NAME).unwrap());
        create(&mut tx, NAME, &["x", "y"]);
        sees(&mut tx, NAME, &["x", "y"]);
        tx.rollback_to(&third).unwrap();
        sees(&mut tx, NAME, &["a"]);
        insert_into(&mut tx, 1);
        tx.commit().unwrap();
        stores(&db, NAME, &["a"]);
        assert!(db.check().unwrap().is_clean());
    }
}

#[test]
fn each_snapshot_has_the_schema_of_its_commit() {
    let db = database();
    let mut held = Vec::new();
    let mut columns = vec!["a"];
    for name in ["b", "c", "d"] {
        let before = db.begin_read().unwrap();
        // Half of the snapshots open the relation for the first time after the change.
        if name != "c" {
            assert_columns(&before.relation(NAME).unwrap().unwrap(), &columns);
        }
        held.push((before, columns.clone()));
        let mut tx = db.begin_write().unwrap();
        add(&mut tx, name);
        tx.commit().unwrap();
        columns.push(name);
        insert(&db, columns.len());
        for (snap, columns) in &held {
            assert_columns(&snap.relation(NAME).unwrap().unwrap(), columns);
        }
        stores(&db, NAME, &columns);
        let evictable = db.begin_read_evictable().unwrap();
        assert_columns(&evictable.relation(NAME).unwrap().unwrap(), &columns);
    }
}

#[test]
fn names_are_exchanged_with_their_schemas() {
    let db = database();
    let mut tx = db.begin_write().unwrap();
    create(&mut tx, "other", &["x", "y"]);
    tx.commit().unwrap();
    let before = db.begin_read().unwrap();
    let mut tx = db.begin_write().unwrap();
    sees(&mut tx, NAME, &["a"]);
    sees(&mut tx, "other", &["x", "y"]);
    for (from, to) in [(NAME, "third"), ("other", NAME), ("third", "other")] {
        assert!(tx.rename_table(from, to).unwrap());
    }
    sees(&mut tx, NAME, &["x", "y"]);
    sees(&mut tx, "other", &["a"]);
    insert_into(&mut tx, 2);
    tx.commit().unwrap();
    stores(&db, NAME, &["x", "y"]);
    stores(&db, "other", &["a"]);
    assert_columns(&before.relation(NAME).unwrap().unwrap(), &["a"]);
    let mut tx = db.begin_write().unwrap();
    sees(&mut tx, "other", &["a"]);
    assert!(tx.drop_table("other").unwrap());
    create(&mut tx, "other", &["new"]);
    sees(&mut tx, "other", &["new"]);
    tx.commit().unwrap();
    stores(&db, "other", &["new"]);
}

#[test]
fn changes_of_another_handle_are_seen() {
    tidalite_testkit::watch();
    // The database gets a folder of its own, because its lock file is next to it.
    let dir = std::env::temp_dir().join(format!("tidalite-layouts-{}", std::process::id()));
    drop(std::fs::remove_dir_all(&dir));
    std::fs::create_dir(&dir).unwrap();
    let path = dir.join("layouts.tdl");
    let [one, other] = [0, 1].map(|_| Options::new().open(&path).unwrap());
    let mut tx = one.begin_write().unwrap();
    create(&mut tx, NAME, &["a"]);
    tx.commit().unwrap();
    let mut columns = vec!["a"];
    for (db, name) in [(&one, "b"), (&other, "c"), (&other, "d"), (&one, "e")] {
        for db in [&one, &other] {
            stores(db, NAME, &columns);
            insert(db, columns.len());
        }
        let mut tx = db.begin_write().unwrap();
        sees(&mut tx, NAME, &columns);
        add(&mut tx, name);
        tx.commit().unwrap();
        columns.push(name);
    }
    for db in [&one, &other] {
        stores(db, NAME, &columns);
        assert!(db.check().unwrap().is_clean());
    }
    drop((one, other));
    std::fs::remove_dir_all(&dir).unwrap();
}
