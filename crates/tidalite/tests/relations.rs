//! Relations: transactions, snapshots, the version of the catalog, and what maintenance does with them.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;
use tidalite::maintenance::{Change, Salvage};
use tidalite::relation::{Cell, Column, ColumnType, Index, KeyBounds, Relation, Schema};
use tidalite::storage::{MemoryStorage, Storage};
use tidalite::{Database, ErrorKind, Options, TableLayout, Tuning};

const PAGE: usize = 512;

fn memory() -> (Arc<MemoryStorage>, Database) {
    tidalite_testkit::watch();
    let storage = Arc::new(MemoryStorage::new());
    let db = options().open_storage(storage.clone()).unwrap();
    (storage, db)
}

fn schema() -> Schema {
    Schema::new()
        .column(Column::new("id", ColumnType::I64))
        .column(Column::new("name", ColumnType::Text).not_null())
        .column(Column::new("power", ColumnType::F64).default(1.0))
        .primary_key(["id"])
        .index(Index::new("by_name", ["name"]).unique())
        .index(Index::new("by_power", ["power"]))
}

fn row(id: i64) -> Vec<Cell> {
    let name = Cell::from(format!("turbine {id} of the park in the north"));
    vec![Cell::I64(id), name, Cell::F64((id % 10) as f64)]
}

fn filled(rows: i64) -> (Arc<MemoryStorage>, Database) {
    let (storage, db) = memory();
    let mut tx = db.begin_write().unwrap();
    let mut relation = tx.create_relation("turbines", &schema()).unwrap();
    for id in 0..rows {
        relation.insert(&row(id)).unwrap();
    }
    tx.commit().unwrap();
    (storage, db)
}

fn rows_of(relation: &Relation<'_>) -> Vec<Vec<Cell>> {
    let mut rows = relation.rows(KeyBounds::all()).unwrap();
    let mut found = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        found.push(row.to_cells().unwrap());
    }
    found
}

fn all(db: &Database) -> Vec<Vec<Cell>> {
    let snap = db.begin_read().unwrap();
    rows_of(&snap.relation("turbines").unwrap().unwrap())
}

fn assert_clean(db: &Database) {
    let report = db.check().unwrap();
    assert!(report.is_clean(), "{report:?}");
}

#[test]
fn names_and_kinds_of_tables_are_kept_apart() {
    let (_, db) = filled(3);
    let mut tx = db.begin_write().unwrap();
    let kind = |error: tidalite::Error| error.kind();
    let taken = tx.create_relation("turbines", &schema()).map(drop);
    assert_eq!(kind(taken.unwrap_err()), ErrorKind::AlreadyExists);
    tx.table("plain").unwrap().put(b"a", b"b").unwrap();
    let taken = tx.create_relation("plain", &schema()).map(drop);
    assert_eq!(kind(taken.unwrap_err()), ErrorKind::AlreadyExists);
    let other = tx.relation_mut("plain").map(drop);
    assert_eq!(kind(other.unwrap_err()), ErrorKind::WrongType);
    let other = tx.table("turbines").map(drop);
    assert_eq!(kind(other.unwrap_err()), ErrorKind::WrongType);
    let unusable = tx.create_relation("none", &Schema::new()).map(drop);
    assert_eq!(kind(unusable.unwrap_err()), ErrorKind::Schema);
    let unusable = tx.create_relation("", &schema()).map(drop);
    assert_eq!(kind(unusable.unwrap_err()), ErrorKind::InvalidName);
    assert!(tx.relation_mut("none").unwrap().is_none());
    assert!(tx.view_relation("none").unwrap().is_none());
    assert_eq!(tx.tables().unwrap(), ["plain", "turbines"]);
    let types = tx.table_types("turbines").unwrap().unwrap();
    assert_eq!(types.layout(), TableLayout::Relation);
    assert_eq!(types.to_string(), "relation");
    tx.commit().unwrap();
    assert_clean(&db);
}

#[test]
fn errors_name_the_relation_and_the_rule() {
    let (_, db) = filled(3);
    let mut tx = db.begin_write().unwrap();
    let mut turbines = tx.relation_mut("turbines").unwrap().unwrap();
    let error = turbines.insert(&row(1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UniqueViolation);
    assert_eq!(
        error.to_string(),
        "another row of turbines has the same primary key (id = 1); update that row, or insert other values"
    );
    let mut same = row(7);
    same[1] = row(2)[1].clone();
    let error = turbines.insert(&same).unwrap_err();
    assert_eq!(error.unique_violation().unwrap().0.to_string(), "by_name");
    assert_eq!(error.table(), Some("turbines"));
    same[1] = Cell::Null;
    let error = turbines.insert(&same).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotNullViolation);
    assert_eq!(error.not_null_violation(), Some("name"));
    same[1] = Cell::Bool(true);
    assert_eq!(
        turbines.insert(&same).unwrap_err().kind(),
        ErrorKind::Schema
    );
    let key = turbines.view().unwrap().row_key(&[Cell::I64(9)]).unwrap();
    assert_eq!(
        turbines.update(&key, &row(9)).unwrap_err().kind(),
        ErrorKind::NotFound
    );
    // The transaction continues.
    turbines.insert(&row(9)).unwrap();
    tx.commit().unwrap();
    assert_eq!(all(&db).len(), 4);
}

#[test]
fn snapshots_savepoints_and_uncommitted_readers_see_their_own_state() {
    let (_, db) = filled(20);
    let before = db.begin_read().unwrap();
    let mut tx = db.begin_write().unwrap();
    let mut turbines = tx.relation_mut("turbines").unwrap().unwrap();
    turbines
        .add_column(Column::new("site", ColumnType::Text).default("north"))
        .unwrap();
    let point = tx.savepoint().unwrap();
    let mut turbines = tx.relation_mut("turbines").unwrap().unwrap();
    turbines.drop_column("power").unwrap_err();
    assert!(turbines.drop_index("by_power").unwrap());
    turbines.drop_column("power").unwrap();
    turbines.clear().unwrap();
    let reader = tx.reader().unwrap();
    let uncommitted = reader.relation("turbines").unwrap().unwrap();
    assert_eq!(
        (uncommitted.count(), uncommitted.schema().columns().len()),
        (0, 3)
    );
    drop(uncommitted);
    tx.rollback_to(&point).unwrap();
    let refused = tx.nested(|tx| {
        tx.relation_mut("turbines")?
            .unwrap()
            .rename_column("site", "place")?;
        Err::<(), _>(tidalite::Error::schema("no"))
    });
    assert!(refused.is_err());
    let view = tx.view_relation("turbines").unwrap().unwrap();
    assert_eq!(view.schema().position("site"), Some(3));
    assert_eq!(
        view.get(&[Cell::I64(7)]).unwrap().unwrap()[3],
        Cell::from("north")
    );
    tx.commit().unwrap();
    let old = before.relation("turbines").unwrap().unwrap();
    assert_eq!((old.count(), old.schema().columns().len()), (20, 3));
    assert_eq!(all(&db)[0].len(), 4);
    assert_clean(&db);
}

/// A change of a schema.
type Alter = fn(&mut tidalite::relation::RelationMut<'_>);

#[test]
fn only_changes_of_schemas_change_the_version_of_the_catalog() {
    let (_, db) = filled(3);
    let mut version = db.begin_read().unwrap().catalog_version();
    let mut changes = |tx: tidalite::WriteTxn, expected: bool, what: &str| {
        tx.commit().unwrap();
        let now = db.begin_read().unwrap().catalog_version();
        assert_eq!(now != version, expected, "{what}");
        version = now;
    };
    for id in 10..40 {
        let mut tx = db.begin_write().unwrap();
        let mut turbines = tx.relation_mut("turbines").unwrap().unwrap();
        turbines.insert(&row(id)).unwrap();
        let key = turbines.view().unwrap().row_key(&[Cell::I64(id)]).unwrap();
        turbines.update(&key, &row(id + 100)).unwrap();
        // More tables than roots that are kept in the meta block.
        tx.table(&format!("table {id}"))
            .unwrap()
            .put(b"a", b"b")
            .unwrap();
        changes(tx, false, "rows");
    }
    let alter: [(&str, Alter); 6] = [
        ("add", |one| {
            one.add_column(Column::new("x", ColumnType::I64)).unwrap()
        }),
        ("rename", |one| one.rename_column("x", "y").unwrap()),
        ("default", |one| {
            one.set_default("y", Some(Cell::I64(1))).unwrap()
        }),
        ("drop", |one| one.drop_column("y").unwrap()),
        ("index", |one| {
            one.create_index(Index::new("i", ["id"])).unwrap()
        }),
        ("no index", |one| assert!(one.drop_index("i").unwrap())),
    ];
    for (what, change) in alter {
        let mut tx = db.begin_write().unwrap();
        change(&mut tx.relation_mut("turbines").unwrap().unwrap());
        changes(tx, true, what);
    }
    let mut tx = db.begin_write().unwrap();
    drop(tx.create_relation("other", &schema()).unwrap());
    changes(tx, true, "create");
    let mut tx = db.begin_write().unwrap();
    assert!(tx.rename_table("other", "renamed").unwrap());
    changes(tx, true, "rename");
    let mut tx = db.begin_write().unwrap();
    assert!(tx.drop_table("renamed").unwrap());
    changes(tx, true, "drop");
    let mut tx = db.begin_write().unwrap();
    let refused = tx
        .relation_mut("turbines")
        .unwrap()
        .unwrap()
        .drop_column("id");
    refused.unwrap_err();
    changes(tx, false, "refused");
    let mut tx = db.begin_write().unwrap();
    let mut turbines = tx.relation_mut("turbines").unwrap().unwrap();
    turbines.rename_column("name", "name").unwrap();
    assert!(!turbines.drop_index("none").unwrap());
    changes(tx, false, "calls without an effect");
}

#[test]
fn renamed_and_dropped_relations() {
    let (storage, db) = filled(50);
    let mut tx = db.begin_write().unwrap();
    assert!(tx.rename_table("turbines", "machines").unwrap());
    let mut machines = tx.relation_mut("machines").unwrap().unwrap();
    machines.insert(&row(70)).unwrap();
    tx.commit().unwrap();
    drop(db);
    let db = Options::new().open_storage(storage).unwrap();
    let snap = db.begin_read().unwrap();
    assert_eq!(snap.relation("machines").unwrap().unwrap().count(), 51);
    assert!(snap.relation("turbines").unwrap().is_none());
    drop(snap);
    let mut tx = db.begin_write().unwrap();
    assert!(tx.drop_table("machines").unwrap());
    tx.commit().unwrap();
    assert!(db.begin_read().unwrap().tables().unwrap().is_empty());
    assert_clean(&db);
}

#[test]
fn copies_compaction_and_differences() {
    let (_, db) = filled(300);
    let folder = std::env::temp_dir().join(format!("tidalite-relations-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let before = db.begin_read().unwrap();
    let mut tx = db.begin_write().unwrap();
    let mut turbines = tx.relation_mut("turbines").unwrap().unwrap();
    turbines
        .add_column(Column::new("site", ColumnType::Text).default("north"))
        .unwrap();
    for id in 0..200 {
        let key = turbines.view().unwrap().row_key(&[Cell::I64(id)]).unwrap();
        assert!(turbines.remove(&key).unwrap());
    }
    let schema = Schema::new().column(Column::new("line", ColumnType::Text));
    let mut log = tx.create_relation("log", &schema).unwrap();
    for _ in 0..5 {
        log.insert(&[Cell::from("line")]).unwrap();
    }
    log.clear().unwrap();
    tx.commit().unwrap();
    let (mut changes, mut schemas) = ((0, 0), 0);
    let now = db.begin_read().unwrap();
    now.diff(&before, &mut |change| {
        match change {
            Change::TableCreated(name) => assert_eq!(name, "log"),
            Change::SchemaChanged {
                table,
                before,
                after,
            } => {
                assert_eq!((table, changes), ("turbines", (0, 0)), "before the rows");
                assert_eq!(before.columns, after.columns[..after.columns.len() - 1]);
                assert_eq!(after.columns.last().map(|new| &new.name[..]), Some("site"));
                schemas += 1;
            }
            Change::Removed { table, key, .. } => {
                assert_eq!((table, key.len()), ("turbines", 8));
                changes.0 += 1;
            }
            _ => changes.1 += 1,
        }
        Ok(())
    })
    .unwrap();
    assert_eq!((changes, schemas), ((200, 0), 1));
    drop((before, now));
    db.copy().to(folder.join("copy.tdl")).unwrap();
    let copy = Database::open(folder.join("copy.tdl")).unwrap();
    assert_clean(&copy);
    assert_eq!(all(&copy), all(&db));
    let mut tx = copy.begin_write().unwrap();
    let mut log = tx.relation_mut("log").unwrap().unwrap();
    let key = log.insert(&[Cell::Null]).unwrap();
    assert_eq!(key.as_bytes(), 5_u64.to_be_bytes(), "the hidden keys go on");
    drop(tx);
    drop(copy);
    let rows = all(&db);
    db.compact(64 << 10).unwrap();
    assert_eq!(all(&db), rows);
    assert_clean(&db);
    std::fs::remove_dir_all(folder).unwrap();
}

/// Kinds of pages in their headers, from docs/format.md, section 2.
const BRANCH: u8 = 3;
const LEAF: u8 = 4;
/// Number of the first table of a user.
const FIRST_TABLE: u8 = 16;

fn options() -> Options {
    // Without a log, so that all pages are in their places.
    Options::new()
        .page_size(PAGE)
        .tuning(Tuning::new().log_bytes(0))
}

/// The database that salvage makes of a file.
fn saved(bytes: Vec<u8>) -> Database {
    let db = options()
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap();
    let damaged = Arc::new(MemoryStorage::from_image(bytes));
    Salvage::of_storage(damaged).to_database(&db).unwrap();
    assert_clean(&db);
    db
}

/// Calls `each` with files in which one page of the table that the newest version uses is damaged, for each such page.
fn damaged(bytes: &[u8], kind: u8, each: &mut dyn FnMut(Vec<u8>)) -> usize {
    let pages = 24_576 / PAGE..bytes.len() / PAGE;
    let is_of = |page: &usize| {
        let header = &bytes[page * PAGE..];
        let address = u64::from_le_bytes(header[16..24].try_into().unwrap());
        header[8] == kind && header[10] == FIRST_TABLE && address == (page * PAGE) as u64
    };
    let mut count = 0;
    for page in pages.filter(is_of) {
        let mut wrong = bytes.to_vec();
        wrong[page * PAGE + 60] ^= 1;
        let storage = Arc::new(MemoryStorage::from_image(wrong.clone()));
        let opened = options().open_storage(storage);
        if !opened.is_ok_and(|db| db.check().unwrap().is_clean()) {
            count += 1;
            each(wrong);
        }
    }
    count
}

/// Whichever page is lost: salvage ends with a clean file. Rows are lost only with their own leaf, or with the page that has
/// the schema; of an index nothing is lost.
#[test]
fn any_lost_page_leaves_a_clean_file() {
    // Of the page with the schema, salvage finds an older version only if the relation has changed since it was created.
    lose_pages(true);
    lose_pages(false);
}

fn lose_pages(is_changed: bool) {
    let (storage, db) = filled(400);
    let mut tx = db.begin_write().unwrap();
    let mut turbines = tx.relation_mut("turbines").unwrap().unwrap();
    for id in (100..150).filter(|_| is_changed) {
        let key = turbines.view().unwrap().row_key(&[Cell::I64(id)]).unwrap();
        turbines.update(&key, &row(id + 1000)).unwrap();
    }
    match is_changed {
        true => drop(tx.commit().unwrap()),
        false => drop(tx),
    }
    let expected = all(&db);
    drop(db);
    let mut bytes = vec![0; storage.len().unwrap() as usize];
    storage.read_at(0, &mut bytes).unwrap();
    assert_eq!(all(&saved(bytes.clone())), expected);
    let branches = damaged(&bytes, BRANCH, &mut |wrong| {
        assert_eq!(all(&saved(wrong)), expected);
    });
    let (mut whole, mut less, mut bytes_only) = (0, 0, 0);
    damaged(&bytes, LEAF, &mut |wrong| {
        let db = saved(wrong);
        let snap = db.begin_read().unwrap();
        match snap.relation("turbines") {
            Ok(Some(relation)) => {
                let found = rows_of(&relation);
                let older: Vec<Vec<Cell>> = (0..400).map(row).collect();
                assert!(
                    found
                        .iter()
                        .all(|row| expected.contains(row) || older.contains(row))
                );
                if found == expected {
                    whole += 1;
                } else {
                    less += 1;
                }
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WrongType);
                let raw = snap.table("turbines").unwrap().unwrap();
                assert_eq!(raw.nested(&[1]).unwrap().unwrap().count(), 400);
                bytes_only += 1;
            }
            Ok(None) => panic!("no table"),
        }
    });
    assert!(
        branches >= 3 && whole > 20 && less > 20,
        "{branches} branches; leaves: {whole} whole, {less} with fewer rows"
    );
    assert_eq!(bytes_only, usize::from(!is_changed));
}
