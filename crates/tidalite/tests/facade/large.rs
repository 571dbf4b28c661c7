//! Large values in a second file.

use crate::common::{Folder, assert_clean, pairs_of};
use std::path::Path;
use std::sync::Arc;
use tidalite::{
    Database, Error, LockMemory, MemoryStorage, OpenMode, Options, StoreError, Watch, salvage,
};

fn value(seed: u8, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| ((i * 31) >> 3) as u8 ^ seed).collect()
}

fn fill(db: &Database, from: u8, to: u8) {
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.table("pictures").unwrap();
    for i in from..to {
        // Some below, some above the bound.
        let bytes = if i % 3 == 0 {
            20_000
        } else {
            150_000 + usize::from(i)
        };
        table.put(&[i], &value(i, bytes)).unwrap();
    }
    tx.commit().unwrap();
}

fn verify(db: &Database, from: u8, to: u8) {
    let snap = db.begin_read().unwrap();
    let table = snap.table("pictures").unwrap().unwrap();
    assert_eq!(table.count(), u64::from(to - from));
    for i in from..to {
        let found = table.get(&[i]).unwrap().unwrap();
        let bytes = if i % 3 == 0 {
            20_000
        } else {
            150_000 + usize::from(i)
        };
        assert!(found == value(i, bytes), "value {i}");
    }
}

fn problem(error: &Error) -> &str {
    match error {
        Error::Store(StoreError::LargeFile { problem, .. }) => problem,
        other => panic!("{other}"),
    }
}

fn options(folder: &Folder) -> Options {
    Options::new().large_values(folder.file("disk2").join("plant.values"), 100_000)
}

#[test]
fn large_values_lie_in_the_second_file() {
    let folder = Folder::new("large");
    std::fs::create_dir(folder.file("disk2")).unwrap();
    let path = folder.file("plant.tdl");
    let db = options(&folder).open(&path).unwrap();
    fill(&db, 0, 30);
    verify(&db, 0, 30);
    assert_clean(&db);
    let stat = db.stat().unwrap();
    assert!(stat.large_bytes > 20 * 150_000, "{stat:?}");
    assert!(stat.file_bytes < 5 << 20, "{stat:?}");
    db.pin("before").unwrap();

    // Another handle, as another process, finds it by its name.
    let other = Database::open(&path).unwrap();
    verify(&other, 0, 30);
    let old = other.begin_read().unwrap();
    {
        let mut tx = other.begin_write().unwrap();
        let mut table = tx.table("pictures").unwrap();
        for i in 0..15 {
            table.remove(&[i]).unwrap();
        }
        // Not of this transaction any more.
        let savepoint = tx.savepoint().unwrap();
        tx.table("pictures")
            .unwrap()
            .put(b"x", &value(1, 300_000))
            .unwrap();
        tx.rollback_to(&savepoint).unwrap();
        tx.commit().unwrap();
    }
    verify(&db, 15, 30);
    fill(&db, 30, 40);
    verify(&other, 15, 40);
    assert_eq!(old.table("pictures").unwrap().unwrap().count(), 30);
    let pinned = db.begin_read_at("before").unwrap();
    for snap in [&old, &pinned] {
        let found = snap.table("pictures").unwrap().unwrap().get(&[1]).unwrap();
        assert!(found.unwrap() == value(1, 150_001));
    }
    drop((old, pinned));
    db.unpin("before").unwrap();
    assert_clean(&db);

    // What is gone is used again.
    let before = db.stat().unwrap().large_bytes;
    for _ in 0..6 {
        let mut tx = db.begin_write().unwrap();
        for i in 15..40 {
            tx.table("pictures").unwrap().remove(&[i]).unwrap();
        }
        tx.commit().unwrap();
        fill(&db, 15, 40);
    }
    let after = db.stat().unwrap().large_bytes;
    assert!(after < before * 3, "{before} to {after}");
    while !db.compact(1 << 20).unwrap().done {}
    verify(&db, 15, 40);
    assert_clean(&db);

    // Both come together in one file; a stream of pages does not hold the second one.
    let copy = folder.file("copy.tdl");
    db.copy_to(&copy).unwrap();
    let refused = db
        .backup(None, &mut Vec::new(), Watch::new())
        .err()
        .unwrap();
    assert!(problem(&refused).contains("copy"), "{refused}");
    drop((db, other));
    let copied = Database::open(&copy).unwrap();
    verify(&copied, 15, 40);
    assert_eq!(copied.stat().unwrap().large_bytes, 0);

    let saved = salvage(&path, folder.file("saved.tdl"), Watch::new()).unwrap();
    assert!(saved.is_complete(), "{:?}", saved.lost);
    verify(&Database::open(folder.file("saved.tdl")).unwrap(), 15, 40);
}

#[test]
fn a_second_file_that_is_gone_or_another_is_named() {
    let folder = Folder::new("large");
    std::fs::create_dir(folder.file("disk2")).unwrap();
    let (path, second) = (
        folder.file("plant.tdl"),
        folder.file("disk2").join("plant.values"),
    );
    fill(&options(&folder).open(&path).unwrap(), 0, 5);
    let moved = folder.file("elsewhere");
    std::fs::rename(&second, &moved).unwrap();
    let gone = Database::open(&path).err().unwrap();
    assert!(gone.to_string().contains("plant.values"), "{gone}");
    problem(&gone);
    // Where it is now: said once.
    let db = Options::new()
        .large_values(&moved, 100_000)
        .open(&path)
        .unwrap();
    verify(&db, 0, 5);
    fill(&db, 5, 6);
    drop(db);
    let db = Options::new().read_only(true).open(&path).unwrap();
    verify(&db, 0, 6);
    drop(db);

    let other = folder.file("other.tdl");
    let db = Options::new()
        .large_values(folder.file("other.values"), 100_000)
        .open(&other)
        .unwrap();
    fill(&db, 0, 5);
    drop(db);
    let with = |first: &Path, second: &Path| {
        let opened = Options::new().large_values(second, 1).open(first);
        opened.err().unwrap()
    };
    let wrong = with(&path, &folder.file("other.values"));
    assert!(problem(&wrong).contains("another database"), "{wrong}");
    let wrong = with(&path, &other);
    assert!(problem(&wrong).contains("another file"), "{wrong}");
    // An older image of it has the right name and lacks what was written since.
    let old = std::fs::read(&moved).unwrap();
    fill(&Database::open(&path).unwrap(), 6, 12);
    std::fs::write(&moved, &old[..old.len() / 2]).unwrap();
    let db = Database::open(&path).unwrap();
    let report = db.check().unwrap();
    assert!(!report.is_clean());
    let snap = db.begin_read().unwrap();
    let table = snap.table("pictures").unwrap().unwrap();
    let lost = (0..12).filter(|i| table.get(&[*i]).is_err()).count();
    assert!(lost > 0 && table.get(&[3]).unwrap().is_some());
}

#[test]
fn the_second_file_can_come_later_and_lie_in_memory() {
    let (first, second) = (
        Arc::new(MemoryStorage::new()),
        Arc::new(MemoryStorage::new()),
    );
    let memory = LockMemory::new();
    let options = Options::new().mode(OpenMode::CreateOrOpen);
    let db = options.open_storage_with(first.clone(), &memory).unwrap();
    fill(&db, 0, 10);
    drop(db);
    let options = options.large_values("", 100_000);
    let open = || options.open_storages(first.clone(), second.clone(), &memory);
    let db = open().unwrap();
    verify(&db, 0, 10);
    fill(&db, 5, 20);
    assert!(db.stat().unwrap().large_bytes > 10 * 150_000);
    let beside = open().unwrap();
    verify(&beside, 0, 20);
    assert_clean(&beside);
    let snap = beside.begin_read().unwrap();
    assert_eq!(
        pairs_of(&snap.table("pictures").unwrap().unwrap())
            .unwrap()
            .len(),
        20
    );
}
