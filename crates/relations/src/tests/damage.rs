//! Bytes that no writer writes cause errors, never panics; a check finds rows that contradict each other.

use crate::bounds::KeyBounds;
use crate::cell::Cell;
use crate::kind::ColumnType;
use crate::layout::Layout;
use crate::parts::{ROWS, SCHEMA, index_key};
use crate::read::RelationReader;
use crate::recover::recover_relation;
use crate::schema::{Column, Index, Schema};
use crate::tests::table::{Table, full, row, schema};
use crate::write::RelationWriter;
use std::ops::Bound;
use std::sync::Arc;
use tidalite_kv::{Tree, change_part, part};
use tidalite_pager::PageWrite;
use tidalite_testkit::rng::Rng;

/// The rows of a part.
pub(super) fn rows(table: &Table, of: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
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

pub(super) fn put(table: &mut Table, of: &[u8], key: &[u8], value: Option<&[u8]>) {
    let Table { root, pages } = table;
    change_part(root, pages, of, &mut |w, table| match value {
        Some(value) => table.insert(w, key, value).map(drop),
        None => table.remove(w, key).map(drop),
    })
    .unwrap();
}

fn parts() -> [Vec<u8>; 3] {
    [ROWS.to_vec(), index_key(0).to_vec(), index_key(1).to_vec()]
}

/// Expects the check to find a problem, or to fail.
fn finds(table: &Table, what: &str) {
    if let Ok(problems) = table.problems() {
        assert!(!problems.is_empty(), "{what}");
    }
}

#[test]
fn a_check_finds_every_missing_and_every_foreign_row() {
    tidalite_testkit::watch();
    for of in parts() {
        for at in (0..120).step_by(17) {
            let mut table = full(512, 120);
            table.assert_whole();
            let (key, value) = rows(&table, &of).swap_remove(at);
            put(&mut table, &of, &key, None);
            finds(&table, &format!("{of:?}: the row {}", key.escape_ascii()));
            let mut other = key.clone();
            let end = other.len() - 1;
            other[end] ^= 0x40;
            put(&mut table, &of, &key, Some(&value));
            put(&mut table, &of, &other, Some(&value));
            finds(&table, &format!("{of:?}: a row {}", other.escape_ascii()));
        }
    }
    let mut table = full(512, 20);
    put(&mut table, &index_key(7), b"x", Some(b""));
    finds(&table, "an index that the schema does not have");
}

#[test]
fn a_check_finds_rows_that_break_the_schema() {
    // Null in a column that refuses it: the schema is changed without changing the rows.
    let mut table = full(512, 20);
    let mut layout = Layout::clone(&table.read().into_layout());
    let power = layout.schema.position("power").unwrap();
    layout.schema.columns[power].not_null = true;
    let Table { root, pages } = &mut table;
    root.insert(pages, &SCHEMA, &layout.encode()).unwrap();
    finds(&table, "null");
    // Duplicate values in a unique index.
    let mut table = full(512, 20);
    let mut layout = Layout::clone(&table.read().into_layout());
    layout.schema.indexes[1].unique = true;
    layout.indexes[1].columns = vec![power];
    layout.schema.indexes[1].columns = vec!["power".into()];
    let Table { root, pages } = &mut table;
    root.insert(pages, &SCHEMA, &layout.encode()).unwrap();
    finds(&table, "a unique index");
    // A hidden key that was never assigned.
    let mut table = Table::new(
        512,
        &Schema::new().column(Column::new("x", ColumnType::I64)),
    );
    table.write().insert(&[Cell::I64(1)]).unwrap();
    table.assert_whole();
    let (_, value) = rows(&table, &ROWS).swap_remove(0);
    put(&mut table, &ROWS, &1_u64.to_be_bytes(), Some(&value));
    finds(&table, "a hidden key");
}

/// Changed bytes in any row cause an error or other results, never a panic or an endless loop.
#[test]
fn changed_rows_do_no_harm() {
    tidalite_testkit::watch();
    let rng = &mut Rng::new(11);
    for round in 0..600 {
        let mut table = full(512, 40);
        let all = parts();
        let of = rng.pick(&all);
        let (key, mut value) = rng.pick(&rows(&table, of)).clone();
        let mut other = key.clone();
        match rng.below(6) {
            0 => value.truncate(rng.index(value.len() + 1)),
            1 => value.push(rng.below(256) as u8),
            2 => other.truncate(rng.index(key.len() + 1)),
            3 => {
                let at = rng.index(other.len());
                other[at] = rng.below(256) as u8;
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
        println!("round {round}: {of:?} {}", key.escape_ascii());
        if rng.one_in(2) {
            put(&mut table, of, &key, None);
        }
        put(&mut table, of, &other, Some(&value));
        if let Ok(reader) = RelationReader::open(&table.root, &table.pages) {
            read_all(&reader);
        }
        let Table { root, pages } = &mut table;
        drop(use_all(root, pages));
        drop(recover_relation(root, pages));
    }
}

fn read_all<R: tidalite_pager::PageRead>(reader: &RelationReader<R>) {
    drop(reader.check(&mut |_| ()));
    drop(reader.count());
    for i in 0..40 {
        drop(reader.get(&row(i)[..2]));
    }
    let range = KeyBounds::new(Bound::Excluded(vec![Cell::Null]), Bound::Unbounded);
    let all = [
        reader.rows(&KeyBounds::all()),
        reader.rows(&KeyBounds::all()).map(crate::rows::Rows::rev),
        reader.rows_by("by_name", &KeyBounds::all()),
        reader.rows_by("by_power", &range),
    ];
    for mut rows in all.into_iter().flatten() {
        while let Ok(Some(row)) = rows.next() {
            drop(row.to_cells());
            let _ = row.cell(0).map(|cell| cell.to_cell());
        }
    }
}

/// Calls all functions until the first error.
fn use_all<W: PageWrite>(root: &mut Tree, w: &mut W) -> crate::Result<()> {
    let layout = RelationReader::open(root, &*w)?.into_layout();
    let mut relation = RelationWriter::with_layout(root, w, layout);
    let found = |relation: &RelationWriter<'_, W>| -> crate::Result<Vec<_>> {
        let reader = relation.reader();
        let mut rows = reader.rows(&KeyBounds::all())?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push((row.key(), row.to_cells()?));
        }
        Ok(found)
    };
    for (key, row) in found(&relation)?.iter().step_by(3) {
        drop(relation.reader().find_conflict(row));
        let mut moved = row.clone();
        moved[1] = Cell::I64(5000);
        moved[2] = Cell::from("another");
        relation.update(key, &moved)?;
        relation.update(&relation.reader().row_key(&moved[..2])?, row)?;
        relation.upsert(row)?;
    }
    relation.create_index(Index::new("new", ["guid", "later"]))?;
    relation.drop_index("by_power")?;
    relation.add_column(Column::new("n", ColumnType::I16))?;
    for (key, _) in found(&relation)?.iter().step_by(2) {
        relation.remove(key)?;
    }
    relation.clear()
}

/// Changed bytes of the schema are refused or give another schema. Reading rows with that schema does not panic.
#[test]
fn changed_schemas_do_no_harm() {
    tidalite_testkit::watch();
    let rng = &mut Rng::new(12);
    let whole = full(512, 20);
    let bytes = whole.read().into_layout().encode();
    let (mut refused, mut other) = (0, 0);
    for _ in 0..4000 {
        let mut changed = bytes.clone();
        for _ in 0..1 + rng.index(3) {
            let at = rng.index(changed.len());
            changed[at] ^= 1 << rng.below(8);
        }
        if rng.one_in(10) {
            changed.truncate(rng.index(changed.len()));
        }
        match Layout::decode(&changed) {
            Err(_) => refused += 1,
            Ok(layout) => {
                assert_eq!(
                    Layout::decode(&layout.encode()).unwrap().encode(),
                    layout.encode()
                );
                other += 1;
                let layout = Arc::new(layout);
                read_all(&RelationReader::with_layout(
                    &whole.root,
                    &whole.pages,
                    layout,
                ));
            }
        }
    }
    assert!(refused > 1000 && other > 100, "{refused} {other}");
    for len in 0..bytes.len() {
        assert!(Layout::decode(&bytes[..len]).is_err());
    }
    assert!(Layout::decode(&[&bytes[..], &[0]].concat()).is_err());
}

#[test]
fn a_schema_comes_back_from_its_bytes() {
    let layout = Layout::of(schema()).unwrap();
    assert_eq!(Layout::decode(&layout.encode()).unwrap(), layout);
}
