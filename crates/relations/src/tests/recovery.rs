//! A recovery keeps all sound rows and writes the indexes again.

use crate::cell::Cell;
use crate::kind::ColumnType;
use crate::parts::{ROWS, SCHEMA, index_key};
use crate::recover::{RelationRecovery, recover_relation};
use crate::schema::{Column, Index, Schema};
use crate::tests::damage::{put, rows};
use crate::tests::table::{Table, full};

#[test]
fn indexes_and_rows_are_repaired() {
    tidalite_testkit::watch();
    let mut table = full(512, 200);
    let before = table.rows();
    let parts = [index_key(0), index_key(1)];
    for part in &parts {
        for (key, _) in rows(&table, part).into_iter().step_by(3) {
            put(&mut table, part, &key, None);
        }
        put(&mut table, part, b"foreign", Some(b"value"));
    }
    put(&mut table, &index_key(5), b"foreign", Some(b""));
    // A row that cannot be decoded, and a row with the name of another row.
    let all = rows(&table, &ROWS);
    put(&mut table, &ROWS, &all[10].0, Some(b"\x7f"));
    put(&mut table, &ROWS, &all[11].0, Some(&all[12].1));
    let Table { root, pages } = &mut table;
    let done = recover_relation(root, pages).unwrap().unwrap();
    let expected = RelationRecovery {
        removed: 1,
        conflicts: 1,
    };
    assert_eq!(done, expected);
    table.assert_whole();
    let after = table.rows();
    let lost = before.iter().filter(|row| !after.contains(row)).count();
    // Of two rows with the same name the first one is kept; in this case it has the values of the other.
    assert_eq!((after.len(), lost), (198, 3));
}

#[test]
fn hidden_keys_go_on_behind_the_greatest_one() {
    let schema = Schema::new()
        .column(Column::new("x", ColumnType::I64))
        .index(Index::new("by_x", ["x"]));
    let mut table = Table::new(512, &schema);
    for x in 0..50 {
        table.write().insert(&[Cell::I64(x)]).unwrap();
    }
    let (_, value) = rows(&table, &ROWS).swap_remove(0);
    put(&mut table, &ROWS, &700_u64.to_be_bytes(), Some(&value));
    let Table { root, pages } = &mut table;
    let done = recover_relation(root, pages).unwrap().unwrap();
    assert_eq!(done, RelationRecovery::default());
    assert_eq!(table.rows().len(), 51);
    table.assert_whole();
    let key = table.write().insert(&[Cell::Null]).unwrap();
    assert_eq!(key.as_bytes(), 701_u64.to_be_bytes());
}

#[test]
fn without_a_schema_nothing_is_changed() {
    let mut table = full(512, 30);
    let Table { root, pages } = &mut table;
    root.insert(pages, &SCHEMA, b"no schema").unwrap();
    let before = rows(&table, &ROWS);
    let Table { root, pages } = &mut table;
    assert_eq!(recover_relation(root, pages).unwrap(), None);
    assert_eq!(rows(&table, &ROWS), before);
}
