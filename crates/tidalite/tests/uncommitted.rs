//! Uncommitted data is read by the same calls as committed data, with the same results.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;
use tidalite::retention::Retention;
use tidalite::storage::MemoryStorage;
use tidalite::{
    Database, ErrorKind, Grid, Options, ReadSource, Reading, Schema, SeriesId, Steps, WriteTxn,
};
use tidalite_testkit::rng::Rng;

fn memory() -> Database {
    tidalite_testkit::watch();
    Options::new()
        .page_size(512)
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap()
}

/// Reads all contents of a state with every reading call, as lines that can be compared.
fn told<S: ReadSource>(state: &Reading<S>) -> Vec<String> {
    let mut told = vec![format!("{} {:?}", state.txn(), state.user_data())];
    for name in state.tables().unwrap() {
        let multi = state.is_set_table(&name).unwrap().unwrap();
        told.push(format!("{name} {multi}"));
        if multi {
            let table = state.set_table(&name).unwrap().unwrap();
            assert!(
                matches!(state.table(&name), Err(ref error) if error.kind() == ErrorKind::WrongType)
            );
            let mut cursor = table.cursor();
            let mut rank = 0;
            while cursor.next().unwrap() {
                let (key, value) = (cursor.key(), cursor.value());
                assert_eq!(table.rank_pair(key, value).unwrap(), rank);
                told.push(format!("{key:?} {value:?}"));
                rank += 1;
            }
        } else {
            let table = state.table(&name).unwrap().unwrap();
            let mut cursor = table.cursor();
            for rank in 0..table.count() {
                assert!(cursor.select(rank).unwrap());
                told.push(format!("{:?} {:?}", cursor.key(), cursor.value().unwrap()));
            }
            assert_eq!(
                table.split(.., 2).unwrap().len(),
                usize::from(table.count() > 1)
            );
        }
    }
    assert_eq!(state.is_set_table("none").unwrap(), None);
    for info in state.list("").unwrap() {
        let by_id = state.series_by_id(info.id).unwrap().unwrap();
        let latest = by_id.latest().unwrap();
        assert_eq!(latest, state.latest(info.id).unwrap());
        let count = by_id.count().unwrap();
        told.push(format!("{} {count} {latest:?}", info.label()));
        let found = match (&info.name, &info.guid) {
            (Some(_), _) => state.series(&info.label()).unwrap(),
            (None, Some(guid)) => state.series_of_guid(guid).unwrap(),
            _ => None,
        };
        assert_eq!(found.unwrap().id(), info.id);
    }
    assert!(state.series_by_id(SeriesId(9999)).unwrap().is_none());
    let chosen = state.select("load").unwrap();
    told.push(format!("{:?}", chosen.latest().unwrap()));
    for window in chosen
        .query(..)
        .windows(&Grid::nanos(1000), "value")
        .unwrap()
    {
        told.push(format!("{:?} {:?}", window.start, window.aggregate.mean()));
    }
    told.push(format!("{:?}", state.retentions().unwrap()));
    told
}

fn change(tx: &mut WriteTxn, rng: &mut Rng) {
    match rng.below(9) {
        0 => drop(tx.drop_table("t1").unwrap()),
        1 => {
            if !tx.tables().unwrap().contains(&"moved".to_owned()) {
                tx.rename_table("t2", "moved").unwrap();
            }
        }
        2 => tx.set_user_data(&[rng.below(256) as u8; 5]).unwrap(),
        3 => {
            let mut series = tx
                .series_of_guid([rng.below(3) as u8; 16], &Schema::point())
                .unwrap();
            series
                .insert_point(Steps(rng.below(1000) as i64), 0, 1.0)
                .unwrap();
        }
        4 => {
            let policy = Retention {
                pattern: "load".into(),
                bytes: Some(1 + rng.below(1 << 40)),
                ..Retention::default()
            };
            tx.set_retention("keep", &policy).unwrap();
        }
        5 => {
            let mut pairs = tx.set_table("m").unwrap();
            let key = [rng.below(4) as u8];
            for _ in 0..rng.index(60) {
                pairs.put(&key, &rng.below(500).to_be_bytes()).unwrap();
            }
        }
        6 => {
            let name = format!("load{{host=\"{}\"}}", rng.below(4));
            let mut series = tx.series(&name).unwrap();
            for _ in 0..rng.index(500) {
                let time = rng.below(100_000) as i64;
                series.insert_point(Steps(time), 0, time as f64).unwrap();
            }
        }
        table => {
            let mut table = tx.table(&format!("t{}", table - 6)).unwrap();
            for _ in 0..rng.index(60) {
                let key = rng.below(300).to_be_bytes();
                table.put(&key, &vec![1; rng.index(40)]).unwrap();
            }
        }
    }
}

/// Checks that two lists of lines are equal, or reports the first line that differs.
#[track_caller]
fn same(seed: u64, found: &[String], expected: &[String]) {
    for line in 0..found.len().max(expected.len()) {
        let (found, expected) = (found.get(line), expected.get(line));
        assert_eq!(found, expected, "seed {seed}, line {line}");
    }
}

#[test]
fn uncommitted_answers_equal_answers_after_the_commit() {
    for seed in 0..6 {
        let db = memory();
        let mut rng = Rng::new(700 + seed);
        for _ in 0..12 {
            let mut tx = db.begin_write().unwrap();
            let before = told(&db.begin_read().unwrap());
            // This makes sure that the transaction has changes, because only then it gets a number.
            tx.table("t3")
                .unwrap()
                .put(b"key", &rng.below(1 << 60).to_be_bytes())
                .unwrap();
            for _ in 0..rng.index(12) {
                change(&mut tx, &mut rng);
            }
            let reader = tx.reader().unwrap();
            let uncommitted = told(&reader);
            // The reader does not change while the transaction continues, and neither does the earlier snapshot.
            let point = tx.savepoint().unwrap();
            for _ in 0..rng.index(6) {
                change(&mut tx, &mut rng);
            }
            same(seed, &told(&reader), &uncommitted);
            same(seed, &told(&db.begin_read().unwrap()), &before);
            tx.rollback_to(&point).unwrap();
            tx.commit().unwrap();
            same(seed, &told(&db.begin_read().unwrap()), &uncommitted);
        }
        assert!(db.check().unwrap().is_clean());
    }
}

#[test]
fn a_series_is_not_readable_after_its_transaction() {
    let db = memory();
    let mut tx = db.begin_write().unwrap();
    for time in 0..5000 {
        let mut series = tx.series("load").unwrap();
        series.insert_point(Steps(time), 0, 1.0).unwrap();
    }
    let reader = tx.reader().unwrap();
    assert_eq!(
        reader.series("load").unwrap().unwrap().count().unwrap(),
        5000
    );
    assert_eq!(reader.select("load").unwrap().len(), 1);
    drop(tx);
    assert!(reader.has_ended());
    let ended = reader.series("load").map(drop);
    assert!(
        matches!(ended, Err(ref error) if error.kind() == ErrorKind::Evicted),
        "{ended:?}"
    );
    let ended = reader.select("load").map(drop);
    assert!(
        matches!(ended, Err(ref error) if error.kind() == ErrorKind::Evicted),
        "{ended:?}"
    );
}
