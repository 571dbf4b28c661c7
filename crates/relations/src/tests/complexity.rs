//! Complexity, measured with counters.

use crate::cell::Cell;
use crate::kind::ColumnType;
use crate::schema::Column;
use crate::tests::table::{Table, full};
use std::sync::atomic::Ordering::Relaxed;
use tidalite_pager::PageRead;

/// Number of pages that a call reads and allocates.
fn pages_of(table: &mut Table, call: impl FnOnce(&mut Table)) -> [u64; 2] {
    table.commit();
    let count = |table: &Table| {
        let read = table.pages.counters().pages_read.load(Relaxed);
        [read, table.pages.pages_allocated()]
    };
    let before = count(table);
    call(table);
    let after = count(table);
    [after[0] - before[0], after[1] - before[1]]
}

fn new_row(i: i64) -> Vec<Cell> {
    vec![
        Cell::from("site\0new"),
        Cell::I64(i),
        Cell::from(format!("name {i}")),
        Cell::F64(0.5),
        Cell::Decimal(7),
        Cell::Guid([9; 16]),
        Cell::from("later"),
    ]
}

#[test]
fn calls_touch_few_pages_of_a_large_relation() {
    tidalite_testkit::watch();
    let mut counts = Vec::new();
    for rows in [1_000, 40_000] {
        let mut table = full(4096, rows);
        let mut key = None;
        let insert = pages_of(&mut table, |table| {
            key = Some(table.write().insert(&new_row(100_000)).unwrap());
        });
        let key = key.unwrap();
        let get = pages_of(&mut table, |table| {
            assert!(table.read().get_row(&key).unwrap().is_some());
        });
        let update = pages_of(&mut table, |table| {
            table.write().update(&key, &new_row(200_000)).unwrap();
        });
        let refused = pages_of(&mut table, |table| {
            assert!(table.write().insert(&new_row(200_000)).is_err());
        });
        assert_eq!(refused[1], 0, "a refused row writes nothing");
        let alter = pages_of(&mut table, |table| {
            let column = Column::new("added", ColumnType::I64)
                .not_null()
                .default(1_i64);
            table.write().add_column(column).unwrap();
            table.write().rename_column("name", "title").unwrap();
            table.write().drop_column("guid").unwrap();
        });
        let unindexed = pages_of(&mut table, |table| {
            let key = table
                .read()
                .row_key(&[Cell::from("site\0new"), Cell::I64(200_000)]);
            let key = key.unwrap();
            let mut row = table.read().get_row(&key).unwrap().unwrap();
            row[5] = Cell::from("another");
            table.write().update(&key, &row).unwrap();
        });
        assert!(
            unindexed[0] < update[0],
            "unique indexes whose columns stay are not searched"
        );
        let calls = [insert, get, update, refused, alter, unindexed];
        counts.push(calls);
    }
    println!("{counts:?}");
    for calls in &counts {
        let [insert, get, update, _, alter, unindexed] = calls;
        assert!(insert[0] < 40 && insert[1] < 20, "{counts:?}");
        assert!(get[0] < 8, "{counts:?}");
        assert!(update[0] < 60 && update[1] < 24, "{counts:?}");
        // Only the root of the relation.
        assert!(alter[0] < 40 && alter[1] <= 2, "{counts:?}");
        // The root and one path of the rows.
        assert!(unindexed[1] <= 5, "{counts:?}");
    }
    assert_eq!(
        counts[0][4], counts[1][4],
        "changes of columns do not depend on the rows"
    );
}
