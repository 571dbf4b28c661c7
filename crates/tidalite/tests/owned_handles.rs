//! Tables and series that own their snapshot outlive the function that took it, and continue to read its version.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;
use tidalite::storage::MemoryStorage;
use tidalite::table::OwnedTable;
use tidalite::{Database, ErrorKind, Options, OwnedSeries, Result, Steps};

struct Held {
    numbers: OwnedTable<u32, u64>,
    bytes: OwnedTable,
    wind: OwnedSeries,
}

fn held(db: &Database) -> Result<Held> {
    let snap = db.begin_read()?;
    Ok(Held {
        numbers: snap.owned_typed_table("numbers")?.unwrap(),
        bytes: snap.owned_table("bytes")?.unwrap(),
        wind: snap.owned_series("wind")?.unwrap(),
    })
}

fn entries(db: &Database) -> Result<impl Iterator<Item = Result<(u32, u64)>> + use<>> {
    let snap = db.begin_read()?;
    let table = snap.owned_typed_table::<u32, u64>("numbers")?.unwrap();
    Ok(table.into_entries(50..))
}

#[test]
fn owned_handles_keep_seeing_their_commit() {
    tidalite_testkit::watch();
    let storage = Arc::new(MemoryStorage::new());
    let db = Options::new().page_size(512).open_storage(storage).unwrap();
    let mut tx = db.begin_write().unwrap();
    let mut numbers = tx.typed_table::<u32, u64>("numbers").unwrap();
    numbers.extend((0..1000).map(|n| (n, 7))).unwrap();
    tx.table("bytes").unwrap().put(b"k", b"v").unwrap();
    tx.set_table("sets").unwrap().put(b"k", b"v").unwrap();
    let mut wind = tx.series("wind").unwrap();
    for t in 0..3000 {
        wind.insert(Steps(t), 1.5).unwrap();
    }
    tx.commit().unwrap();

    let held = held(&db).unwrap();
    let mut entries = entries(&db).unwrap();
    assert_eq!(entries.next().unwrap().unwrap(), (50, 7));
    let mut tx = db.begin_write().unwrap();
    tx.typed_table::<u32, u64>("numbers")
        .unwrap()
        .clear()
        .unwrap();
    tx.table("bytes").unwrap().put(b"k", b"w").unwrap();
    tx.series("wind").unwrap().insert(Steps(5000), 9.0).unwrap();
    tx.commit().unwrap();

    assert!(entries.map(Result::unwrap).eq((51..1000).map(|n| (n, 7))));
    let held = std::thread::spawn(move || {
        let wind = held.wind.view();
        assert_eq!(wind.count().unwrap(), 3000);
        assert_eq!(
            wind.query(..).aggregate("value").unwrap().max(),
            Some((1.5, 0))
        );
        held
    });
    let held = held.join().unwrap();
    assert_eq!(held.numbers.clone().view().count(), 1000);
    assert_eq!(held.bytes.view().get(b"k").unwrap(), Some(b"v".to_vec()));
    assert!(held.bytes.snapshot().txn() < db.begin_read().unwrap().txn());

    let snap = db.begin_read().unwrap();
    assert!(snap.owned_table("none").unwrap().is_none());
    assert!(snap.owned_series("none").unwrap().is_none());
    let kind = |made: Option<tidalite::Error>| made.map(|error| error.kind());
    let sets = kind(snap.owned_table("sets").err());
    let types = kind(snap.owned_typed_table::<i64, u64>("numbers").err());
    assert_eq!(
        (sets, types),
        (Some(ErrorKind::WrongType), Some(ErrorKind::WrongType))
    );
}
