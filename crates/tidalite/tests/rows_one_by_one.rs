//! `for_each` assembles rows from columns. It has separate loops for small numbers of columns, so each number is
//! tested.

use tidalite::{ColumnType, Database, Schema, Steps, Unit};

#[test]
fn for_each_gives_every_column_of_every_row() {
    tidalite_testkit::watch();
    let dir = std::env::temp_dir().join(format!("tidalite-rows-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let db = Database::open(dir.join("rows.tdl")).unwrap();
    let word = |row: u64, column: u64| row * 10 + column;
    let names: Vec<String> = (0..6).map(|c| format!("c{c}")).collect();
    for columns in 1..=6usize {
        let named = names[..columns]
            .iter()
            .map(|name| (name.as_str(), ColumnType::U64));
        let schema = Schema::new(Unit::Nanos, named);
        let name = format!("rows.of.{columns}");
        let mut txn = db.begin_write().unwrap();
        let mut series = txn.series_with(&name, &schema).unwrap();
        for row in 0..3000u64 {
            let words: Vec<u64> = (0..columns as u64).map(|c| word(row, c)).collect();
            series.insert_row(Steps(row as i64), &words).unwrap();
        }
        txn.commit().unwrap();

        let txn = db.begin_read().unwrap();
        let series = txn.series(&name).unwrap().unwrap();
        let mut row = 100;
        let rows = series
            .query(Steps(100)..Steps(2900))
            .for_each(|time, words| {
                assert_eq!(time, row as i64);
                assert!(
                    (0..columns as u64)
                        .map(|c| word(row, c))
                        .eq(words.iter().copied())
                );
                row += 1;
            })
            .unwrap();
        assert_eq!((rows, row), (2800, 2900));
    }
    drop(db);
    std::fs::remove_dir_all(&dir).unwrap();
}
