//! Rows selected by their text, compared with a scan of every text.

use std::collections::BTreeMap;
use std::sync::Arc;
use tidalite::storage::MemoryStorage;
use tidalite::{Column, ColumnType, MergePolicy, Options, Schema, Steps, Unit, Value};
use tidalite_testkit::rng::Rng;

/// A random text of few words, sometimes long: texts beyond the dictionary's capacity are stored in blocks.
fn text(rng: &mut Rng) -> String {
    let words = ["pump", "valve", "Pump", "", "timeout", "7", "äöü"];
    let mut text = String::new();
    for _ in 0..rng.index(4) {
        text += words[rng.index(words.len())];
        text += " ";
    }
    if rng.one_in(20) {
        text += &"long ".repeat(rng.index(60));
    }
    if rng.one_in(3) {
        text += &rng.below(10_000).to_string();
    }
    text
}

#[test]
fn rows_by_their_text_equal_brute_force() {
    for seed in 0..8 {
        println!("seed {seed}");
        tidalite_testkit::watch();
        let mut rng = Rng::new(seed);
        let db = Options::new()
            .open_storage(Arc::new(MemoryStorage::new()))
            .unwrap();
        let schema = Schema::new(Unit::Nanos, [("level", ColumnType::I64)])
            .with(Column::nullable("message", ColumnType::String));
        let merge = *rng.pick(&[MergePolicy::Replace, MergePolicy::KeepAll]);
        let mut rows: BTreeMap<i64, Vec<(i64, Option<String>)>> = BTreeMap::new();
        for _ in 0..3 {
            let mut tx = db.begin_write().unwrap();
            let mut log = tx
                .open_series("log")
                .schema(&schema)
                .merge(merge)
                .open()
                .unwrap();
            for _ in 0..rng.between(1, 4000) {
                let time = rng.between(0, 20_000);
                let message = (!rng.one_in(9)).then(|| text(&mut rng));
                let level = rng.between(0, 5);
                log.insert_values(Steps(time), &[level.into(), message.clone().into()])
                    .unwrap();
                let same = rows.entry(time).or_default();
                if merge == MergePolicy::Replace {
                    same.clear();
                }
                same.push((level, message));
            }
            tx.commit().unwrap();
        }
        let snap = db.begin_read().unwrap();
        let log = snap.series("log").unwrap().unwrap();
        let filters: [fn(&str) -> bool; 4] = [
            |text| text.contains("pump"),
            |text| text.starts_with("valve"),
            |text| text.is_empty(),
            |text| text.len() > 100,
        ];
        for filter in filters {
            let (from, to) = (rng.between(0, 9000), rng.between(0, 20_001));
            let mut asked = 0;
            let found = log.query(Steps(from)..Steps(to)).text_matches(1, |text| {
                asked += 1;
                filter(text)
            });
            let found = found.unwrap().map(|row| {
                let row = row.unwrap();
                (row.time, log.values(&row).unwrap())
            });
            let found: Vec<(i64, Vec<Value>)> = found.collect();
            let inside = rows.iter().filter(|(time, _)| (from..to).contains(*time));
            let all = inside.flat_map(|(time, rows)| rows.iter().map(move |row| (*time, row)));
            let texts = all.clone().filter(|(_, row)| row.1.is_some()).count();
            let wanted = all.filter(|(_, row)| row.1.as_deref().is_some_and(filter));
            let wanted = wanted.map(|(time, row)| (time, vec![row.0.into(), row.1.clone().into()]));
            assert_eq!(found, wanted.collect::<Vec<_>>());
            assert!(
                asked <= texts && (texts < 2000 || asked < texts),
                "{asked} of {texts}"
            );
        }
        let mut none = log
            .query(Steps(5)..Steps(5))
            .text_matches(1, |_| true)
            .unwrap();
        assert!(none.next().is_none() && none.next().is_none());
        assert!(log.query(..).text_matches(0, |_| true).is_err());
        assert!(log.query(..).text_matches(2, |_| true).is_err());
    }
}
