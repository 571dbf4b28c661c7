//! Databases that store large values in a second file.

use crate::common::{Folder, assert_clean, pairs_of};
use std::path::Path;
use std::sync::Arc;
use tidalite::maintenance::{Restore, Salvage};
use tidalite::storage::{LockMemory, MemoryStorage};
use tidalite::{Database, Error, ErrorKind, OpenMode, Options};

fn value(seed: u8, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| ((i * 31) >> 3) as u8 ^ seed).collect()
}

fn fill(db: &Database, from: u8, to: u8) {
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.table("pictures").unwrap();
    for i in from..to {
        // Some values are shorter than the bound for the second file, some longer.
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
    assert_eq!(error.kind(), ErrorKind::LargeFile, "{error}");
    error.found_and_expected().unwrap().0
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

    // Another handle, like another process, finds the second file by its name.
    let other = Database::open(&path).unwrap();
    verify(&other, 0, 30);
    let old = other.begin_read().unwrap();
    {
        let mut tx = other.begin_write().unwrap();
        let mut table = tx.table("pictures").unwrap();
        for i in 0..15 {
            table.remove(&[i]).unwrap();
        }
        // The value stored here is rolled back below.
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

    // Space freed in the second file is reused.
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

    // A copy combines both files in one. An image holds only the first file, so making one is refused.
    let copy = folder.file("copy.tdl");
    db.copy().to(&copy).unwrap();
    let refused = db.image().to_writer(&mut Vec::new()).err().unwrap();
    assert!(problem(&refused).contains("copy"), "{refused}");
    drop((db, other));
    let copied = Database::open(&copy).unwrap();
    verify(&copied, 15, 40);
    assert_eq!(copied.stat().unwrap().large_bytes, 0);

    let saved = Salvage::of(&path).to(folder.file("saved.tdl")).unwrap();
    assert!(saved.is_complete(), "{:?}", saved.lost);
    verify(&Database::open(folder.file("saved.tdl")).unwrap(), 15, 40);
}

#[test]
fn a_missing_or_foreign_second_file_is_named() {
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
    // After a move, the new path of the second file must be given once.
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
    // An older version of the second file has the right identity but lacks later writes.
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
    tidalite_testkit::watch();
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

#[test]
fn backups_carry_the_second_file() {
    let folder = Folder::new("large");
    std::fs::create_dir(folder.file("disk2")).unwrap();
    let path = folder.file("plant.tdl");
    let db = options(&folder).open(&path).unwrap();
    fill(&db, 0, 12);
    db.pin("monday").unwrap();
    let (mut full, mut more) = (Vec::new(), Vec::new());
    db.backup().of("monday").to_writer(&mut full).unwrap();
    let mut tx = db.begin_write().unwrap();
    for i in 0..5 {
        tx.table("pictures").unwrap().remove(&[i]).unwrap();
    }
    tx.commit().unwrap();
    fill(&db, 12, 16);
    let info = db.backup().since("monday").to_writer(&mut more).unwrap();
    // The increment has three new large values and a small one; older data is not included again.
    assert!(info.bytes < 900_000, "{info:?}");

    let restored = folder.file("restored.tdl");
    Restore::from([&full[..]]).to(&restored).unwrap();
    let monday = Database::open(&restored).unwrap();
    verify(&monday, 0, 12);
    assert_clean(&monday);
    assert!(folder.file("restored.tdl-large").exists());
    // The restored database has a second file of its own.
    let mut tx = monday.begin_write().unwrap();
    for i in 0..12 {
        tx.table("pictures").unwrap().remove(&[i]).unwrap();
    }
    tx.commit().unwrap();
    fill(&monday, 20, 40);
    verify(&monday, 20, 40);
    assert_clean(&monday);
    verify(&db, 5, 16);
    assert_clean(&db);

    let (first, second) = (
        folder.file("tuesday.tdl"),
        folder.file("disk2").join("tuesday.values"),
    );
    Restore::from([&full[..], &more[..]])
        .large_values(&second)
        .to(&first)
        .unwrap();
    let tuesday = Database::open(&first).unwrap();
    verify(&tuesday, 5, 16);
    assert_clean(&tuesday);
    assert!(tuesday.pins().unwrap().is_empty());
    drop(tuesday);

    // A backup that is truncated or damaged in the pages of the second file leaves no files behind.
    let (cut, mut bent) = (&full[..full.len() - 200_000], full.clone());
    bent[full.len() - 100_000] ^= 4;
    for broken in [cut, &bent] {
        let (first, second) = (folder.file("none.tdl"), folder.file("none.values"));
        let error = Restore::from([broken]).large_values(&second).to(&first);
        error.expect_err("a damaged backup");
        assert!(!first.exists() && !second.exists());
    }
    // If a file already exists at the second path, it stays unchanged.
    let (first, second) = (folder.file("none.tdl"), folder.file("in the way"));
    std::fs::write(&second, b"mine").unwrap();
    Restore::from([&full[..]])
        .large_values(&second)
        .to(&first)
        .expect_err("there is something");
    assert_eq!(std::fs::read(&second).unwrap(), b"mine");
    assert!(!first.exists());
}

#[test]
fn compaction_packs_the_second_file() {
    let folder = Folder::new("large");
    std::fs::create_dir(folder.file("disk2")).unwrap();
    let path = folder.file("plant.tdl");
    let second = folder.file("disk2").join("plant.values");
    let db = options(&folder).open(&path).unwrap();
    fill(&db, 0, 120);
    let full = std::fs::metadata(&second).unwrap().len();
    let held = db.begin_read().unwrap();
    let mut tx = db.begin_write().unwrap();
    for i in 0..100 {
        tx.table("pictures").unwrap().remove(&[i]).unwrap();
    }
    tx.commit().unwrap();
    // The snapshot keeps all pages of the second file in place.
    while !db.compact(512 << 10).unwrap().done {}
    assert!(std::fs::metadata(&second).unwrap().len() >= full - (2 << 20));
    let table = held.table("pictures").unwrap().unwrap();
    assert!(table.get(&[1]).unwrap().unwrap() == value(1, 150_001));
    drop(table);
    drop(held);
    let steps = (0..)
        .take_while(|_| !db.compact(512 << 10).unwrap().done)
        .count();
    assert!(steps >= 3, "in steps: {steps}");
    let packed = std::fs::metadata(&second).unwrap().len();
    let used = 14 * 150_000 + 128 * 1024;
    assert!(
        packed < used + used / 8 + (1 << 20),
        "{packed} of {full} bytes"
    );
    verify(&db, 100, 120);
    assert_clean(&db);
    // The shortened file can grow again, from this handle and from another handle.
    fill(&Database::open(&path).unwrap(), 120, 160);
    verify(&db, 100, 160);
    fill(&db, 160, 170);
    assert_clean(&db);
    drop(db);
    let db = Database::open(&path).unwrap();
    verify(&db, 100, 170);
    assert_clean(&db);
}

#[test]
fn damage_of_the_second_file_is_named_healed_and_worked_around() {
    let folder = Folder::new("large");
    std::fs::create_dir(folder.file("disk2")).unwrap();
    let path = folder.file("plant.tdl");
    let second = folder.file("disk2").join("plant.values");
    let db = options(&folder).open(&path).unwrap();
    fill(&db, 0, 6);
    // The test damages one copy of the second file's head while the database is open.
    let sound = std::fs::read(&second).unwrap();
    let mut bytes = sound.clone();
    bytes[12_288 + 70] ^= 1;
    std::fs::write(&second, &bytes).unwrap();
    let problems = db.check().unwrap().problems;
    assert!(
        problems.len() == 1 && problems[0].to_string().contains("head of the second file"),
        "{problems:?}"
    );
    drop(db);
    let db = Database::open(&path).unwrap();
    assert_clean(&db);
    drop(db);
    assert_eq!(std::fs::read(&second).unwrap(), sound);

    // The test damages a value; the check must report the key and the address of that value.
    let piece = &value(5, 150_005)[90_000..90_064];
    let at = sound.windows(64).position(|bytes| bytes == piece).unwrap();
    let mut bytes = sound.clone();
    bytes[at] ^= 1;
    std::fs::write(&second, &bytes).unwrap();
    let db = Database::open(&path).unwrap();
    let problems = db.check().unwrap().problems;
    let text = format!("{problems:?}");
    assert!(text.contains("of the second file"), "{text}");
    assert!(text.contains("pictures"), "{text}");
    drop(db);
    let saved = Salvage::of(&path).to(folder.file("saved.tdl")).unwrap();
    assert!(!saved.is_complete());
    let db = Database::open(folder.file("saved.tdl")).unwrap();
    let kept = db
        .begin_read()
        .unwrap()
        .table("pictures")
        .unwrap()
        .unwrap()
        .count();
    assert_eq!(kept, 5, "one value is lost");

    // The test moves the second file and destroys its head, and the head of the first file, too.
    let mut bytes = sound.clone();
    bytes[..16_384].fill(0);
    let moved = folder.file("moved");
    std::fs::remove_file(&second).unwrap();
    std::fs::write(&moved, &bytes).unwrap();
    let mut first = std::fs::read(&path).unwrap();
    first[..24_576].fill(0);
    std::fs::write(&path, &first).unwrap();
    let saved = Salvage::of(&path)
        .large_values(&moved)
        .to(folder.file("all.tdl"))
        .unwrap();
    let db = Database::open(folder.file("all.tdl")).unwrap();
    let names = db.begin_read().unwrap().tables().unwrap();
    assert_eq!(names.len(), 1, "{saved:?}");
    let snap = db.begin_read().unwrap();
    let table = snap.table(&names[0]).unwrap().unwrap();
    for i in 0..6 {
        let bytes = if i % 3 == 0 {
            20_000
        } else {
            150_000 + usize::from(i)
        };
        assert!(
            table.get(&[i]).unwrap().unwrap() == value(i, bytes),
            "value {i}"
        );
    }
}
