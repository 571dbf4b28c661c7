//! A lock file that does not match its data file: the lazy commits that it records are only a hint, never evidence.

use crate::common::{Folder, assert_clean};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tidalite::monitor::Event;
use tidalite::storage::{LockMemory, MemoryStorage, Storage};
use tidalite::tuning::Verify;
use tidalite::{ColumnType, Database, Durability, Options, Schema, Steps, Tuning, Unit};
use tidalite_pager::{HEADER_BYTES, Header, Kind};

/// Number of bytes that a disk writes atomically.
const SECTOR: usize = 512;

/// The number that `commit` stored as user data in the newest commit.
fn number_of(db: &Database) -> u64 {
    let snap = db.begin_read().unwrap();
    let user = snap.user_data();
    user.try_into().map_or(0, u64::from_le_bytes)
}

/// Makes a small commit to a table and a series.
fn commit(db: &Database, number: u64, durability: Durability) {
    let mut tx = db.begin_write().unwrap();
    tx.set_user_data(&number.to_le_bytes()).unwrap();
    let mut table = tx.table("config").unwrap();
    table
        .put(&(number % 40).to_be_bytes(), &[number as u8; 90])
        .unwrap();
    let mut series = tx.series("wind").unwrap();
    series.insert_point(Steps(number as i64), 0, 1.5).unwrap();
    tx.commit_with(durability).unwrap();
}

/// Makes a commit that changes every structure: plain, nested and set tables, long keys, large values, leaves, the
/// delta, texts, annotations.
fn commit_to_all(db: &Database, number: u64, durability: Durability) {
    let texts = Schema::new(Unit::Seconds, [("state", ColumnType::String)]);
    let mut tx = db.begin_write().unwrap();
    tx.set_user_data(&number.to_le_bytes()).unwrap();
    let mut table = tx.table("config").unwrap();
    for i in 0..60u64 {
        let key = (i * 7 + number * 3) % 200;
        table.put(&key.to_be_bytes(), &[number as u8; 40]).unwrap();
    }
    table.put(b"large", &vec![number as u8; 20_000]).unwrap();
    table
        .put(b"in the second file", &vec![number as u8; 40_000])
        .unwrap();
    table.put(&[number as u8; 3000], b"a long key").unwrap();
    for i in 0..80u64 {
        let mut nested = table.nested(b"nested");
        nested
            .put(&(i * number).to_be_bytes(), &[number as u8; 50])
            .unwrap();
    }
    table
        .nested(b"small")
        .put(b"n", &number.to_le_bytes())
        .unwrap();
    let mut pairs = tx.set_table("pairs").unwrap();
    let values: Vec<[u8; 8]> = (0..200).map(|i| (i * number).to_be_bytes()).collect();
    pairs.put_many(b"many", &values).unwrap();
    for name in ["wind", "power"] {
        let mut series = tx.series(name).unwrap();
        for i in 0..1500i64 {
            let t = number as i64 * 1500 + i;
            series
                .insert_point(Steps(t), 0, (t * t) as f64 / 7.0)
                .unwrap();
        }
    }
    let mut log = tx.series_with("log", &texts).unwrap();
    for i in 0..100i64 {
        let text = format!("row {} of {number}", i * 31);
        log.insert_values(Steps(number as i64 * 100 + i), &[text.into()])
            .unwrap();
    }
    log.annotate(&format!("{number}"), "says something")
        .unwrap();
    for i in 0..50 {
        let mut series = tx.series(&format!("late-{}", (i * number) % 70)).unwrap();
        series.insert_point(Steps(number as i64), 0, 1.5).unwrap();
    }
    // A commit with a pin must be durable.
    if durability == Durability::Durable {
        tx.pin(&format!("pin {number}")).unwrap();
    }
    tx.commit_with(durability).unwrap();
}

fn image(storage: &MemoryStorage) -> Vec<u8> {
    let mut bytes = vec![0; storage.len().unwrap() as usize];
    storage.read_at(0, &mut bytes).unwrap();
    bytes
}

/// After three lazy commits to every structure, each sector of either file is lost in turn, while the lock file
/// survives. Opening must find a complete commit.
#[test]
fn any_lost_sector_of_lazy_commits_is_detected() {
    const DURABLE: u64 = 3;
    const NEWEST: u64 = 6;
    tidalite_testkit::watch();
    let files = [MemoryStorage::new(), MemoryStorage::new()].map(Arc::new);
    let options = Options::new()
        .page_size(1024)
        .tuning(Tuning::new().log_bytes(0))
        .large_values("", 30_000);
    let open = |files: [Arc<MemoryStorage>; 2], memory: &LockMemory| {
        let [first, second] = files;
        options.open_storages(first, second, memory).unwrap()
    };
    let memory = LockMemory::new();
    let db = open(files.clone(), &memory);
    for number in 1..=DURABLE {
        commit_to_all(&db, number, Durability::Durable);
    }
    db.sync().unwrap();
    let before = files.clone().map(|file| image(&file));
    for number in DURABLE + 1..=NEWEST {
        commit_to_all(&db, number, Durability::Lazy);
    }
    let (after, area) = (files.clone().map(|file| image(&file)), memory.image());
    memory.kill_all();
    drop(db);
    let (mut dropped, mut unused) = (0, 0);
    for lost in 0..2 {
        for at in (0..after[lost].len()).step_by(SECTOR) {
            let end = (at + SECTOR).min(after[lost].len());
            let mut old = vec![0; end - at];
            if let Some(there) = before[lost].get(at..end.min(before[lost].len())) {
                old[..there.len()].copy_from_slice(there);
            }
            if old == after[lost][at..end] {
                continue;
            }
            let mut images = after.clone();
            images[lost][at..end].copy_from_slice(&old);
            let files = images.map(|image| Arc::new(MemoryStorage::from_image(image)));
            let db = open(files, &LockMemory::from_image(&area));
            let place = format!("file {lost}, byte {at}");
            let report = db.check().unwrap();
            assert!(report.is_clean(), "{place}: {:#?}", report.problems);
            let (found, recovery) = (number_of(&db), db.recovery());
            if recovery.dropped_unrecorded.is_some() {
                assert!((DURABLE..NEWEST).contains(&found), "{place}: {found}");
                dropped += 1;
            } else {
                assert_eq!(found, NEWEST, "{place}");
                unused += 1;
            }
        }
    }
    println!("{dropped} sectors were missed, {unused} that nothing reaches were not");
    assert!(dropped > 300 && unused > 0);
}

/// Kind of the block at the beginning of a page, if its header names this address.
fn kind_at(image: &[u8], at: usize) -> Option<Kind> {
    let header = Header::decode(image.get(at..at + HEADER_BYTES)?);
    (header.address == at as u64).then_some(header.kind)
}

/// A lazy commit must be dropped if any byte of its pages is damaged. The test damages bytes that no pointer of this
/// commit alone covers: the tail page, the padding after the delta's record, and the padding after the leaves of a
/// packed extent.
#[test]
fn one_damaged_byte_of_tail_or_padding_drops_a_lazy_commit() {
    const PAGE: usize = 1024;
    tidalite_testkit::watch();
    let storage = Arc::new(MemoryStorage::new());
    let options = Options::new()
        .page_size(PAGE)
        .tuning(Tuning::new().log_bytes(0));
    let open = |storage: Arc<MemoryStorage>, memory: &LockMemory| {
        let second = Arc::new(MemoryStorage::new());
        options.open_storages(storage, second, memory).unwrap()
    };
    let memory = LockMemory::new();
    let db = open(storage.clone(), &memory);
    commit_to_all(&db, 1, Durability::Durable);
    db.sync().unwrap();
    let before = image(&storage);
    // Whole vectors go to leaves, many rows of many series to a run, then a few rows to the tail page.
    commit_to_all(&db, 2, Durability::Lazy);
    commit(&db, 3, Durability::Lazy);
    let (after, area) = (image(&storage), memory.image());
    memory.kill_all();
    drop(db);
    let (mut kind, mut found) = (None, BTreeMap::new());
    for at in (0..after.len() - PAGE).step_by(PAGE) {
        kind = kind_at(&after, at).or(kind);
        let page = at..at + PAGE;
        let is_old = before.get(page.clone()) == Some(&after[page.clone()]);
        let is_last = kind_at(&after, at + PAGE).is_some();
        let name = match kind {
            Some(Kind::Tail) => "tail",
            Some(Kind::DeltaRecord) => "padding of the record",
            Some(Kind::SeriesLeaf) if is_last => "padding of an extent",
            _ => continue,
        };
        if is_old || name != "tail" && after[page.end - 8..page.end] != [0; 8] {
            continue;
        }
        let mut damaged = after.clone();
        damaged[page.end - 1] ^= 0x40;
        let storage = Arc::new(MemoryStorage::from_image(damaged));
        let db = open(storage, &LockMemory::from_image(&area));
        let dropped = db.recovery().dropped_unrecorded.is_some();
        let newest = number_of(&db);
        assert_eq!(newest < 3, dropped, "{name}, byte {at}: commit {newest}");
        let report = db.check().unwrap();
        // If the damage does not make the opening drop the commit, the damaged bytes are not part of the commit.
        assert!(report.is_clean(), "{name}: {:?}", report.problems);
        *found.entry(name).or_insert(0) += u32::from(dropped);
    }
    println!("{found:?}");
    assert!(
        found.len() == 3 && found.values().all(|n| *n > 0),
        "{found:?}"
    );
}

/// Copies the data file or the lock file of a killed process.
fn copy_beside(path: &Path, copy: &Path, name: &str) {
    fs::copy(path.with_file_name(name), copy.with_file_name(name)).unwrap();
}

/// The test copies a folder file by file while commits go on, and opens the copy on the same machine. It must hold the
/// durable commits of its data file.
#[test]
fn a_copy_of_a_folder_in_use_holds_the_durable_commits_of_its_data_file() {
    let folder = Folder::new("copied-while-in-use");
    let path = folder.file("a.tdl");
    let db = Database::open(&path).unwrap();
    let (mut number, mut durable) = (0, 0);
    let mut dropped = 0;
    for round in 0..48u64 {
        let copy = folder.file(&format!("copy-{round}")).join("a.tdl");
        fs::create_dir(copy.parent().unwrap()).unwrap();
        let mut work = |commits: u64| {
            for _ in 0..commits {
                number += 1;
                // Some rounds have only durable commits, which go to the redo log, some have only lazy commits, and
                // some have both.
                let lazy = match round % 3 {
                    0 => false,
                    1 => true,
                    _ => number % 3 != 0,
                };
                if lazy {
                    commit(&db, number, Durability::Lazy);
                } else {
                    commit(&db, number, Durability::Durable);
                    durable = number;
                }
            }
            durable
        };
        let (data, lock) = ("a.tdl", "a.tdl-lock");
        let (first, second) = if round % 2 == 0 {
            (data, lock)
        } else {
            (lock, data)
        };
        let before = work(3);
        copy_beside(&path, &copy, first);
        let after = work(1 + round % 5);
        copy_beside(&path, &copy, second);
        let promised = if first == data { before } else { after };
        let copied = Database::open(&copy).unwrap();
        assert_clean(&copied);
        let found = number_of(&copied);
        assert!(found >= promised, "round {round}: {found}, not {promised}");
        dropped += u64::from(copied.recovery().dropped_unrecorded.is_some());
        // The copy accepts further commits, which become durable when the copy is closed.
        commit(&copied, 1000, Durability::Lazy);
        copied.close().unwrap();
        fs::remove_file(copy.with_file_name(lock)).unwrap();
        let copied = Database::open(&copy).unwrap();
        assert_clean(&copied);
        assert_eq!(number_of(&copied), 1000, "round {round}");
    }
    println!("{dropped} times the lock file named a commit that was not copied");
}

/// The test copies a backup over a file with lazy commits, into the same inode, and no handle was closed properly.
/// Opening must use the backup and ignore the lazy commits.
#[test]
fn a_backup_in_place_of_lazy_commits_is_opened_as_it_is() {
    for (verify, read_only) in [
        (Verify::OnFirstTouch, false),
        (Verify::Never, false),
        (Verify::OnFirstTouch, true),
    ] {
        let folder = Folder::new("backup-in-place");
        let (path, backup) = (folder.file("a.tdl"), folder.file("backup"));
        let db = Database::open(&path).unwrap();
        for number in 1..=20 {
            commit(&db, number, Durability::Durable);
        }
        fs::copy(&path, &backup).unwrap();
        for number in 21..=26 {
            commit(&db, number, Durability::Lazy);
        }
        drop(db);
        fs::copy(&backup, &path).unwrap();
        let heard: Arc<Mutex<Vec<Event>>> = Arc::default();
        let ear = Arc::clone(&heard);
        let options = Options::new()
            .tuning(Tuning::new().verify(verify))
            .on_event(move |event| ear.lock().unwrap().push(event.clone()));
        let db = options.clone().read_only(read_only).open(&path).unwrap();
        assert_eq!(number_of(&db), 20);
        assert_clean(&db);
        let dropped = db.recovery().dropped_unrecorded;
        let newest = db.begin_read().unwrap().txn();
        let told = |event: &Event| matches!(event, Event::DroppedUnrecorded { txn, used, .. } if Some(*txn) == dropped && *used == newest);
        // No commit is dropped if the lock file already shows that it does not belong to this data file.
        assert!(dropped.is_none() || heard.lock().unwrap().iter().any(told));
        if !read_only {
            // Dropped commits do not reappear.
            let mut tx = db.begin_write().unwrap();
            tx.table("config").unwrap().put(b"given", b"up").unwrap();
            drop(tx);
            db.sync().unwrap();
            commit(&db, 21, Durability::Lazy);
        }
        let expected = number_of(&db);
        drop(db);
        let db = Database::open(&path).unwrap();
        assert_eq!(number_of(&db), expected);
        assert_clean(&db);
        db.sync().unwrap();
        db.close().unwrap();
        fs::remove_file(folder.file("a.tdl-lock")).unwrap();
        let db = Database::open(&path).unwrap();
        assert_eq!(number_of(&db), expected);
        assert_clean(&db);
    }
}

/// The next process that opens the file after a kill reads only the pages of the lazy commits to verify them.
#[test]
fn verifying_lazy_commits_reads_only_their_pages() {
    let folder = Folder::new("believing-lazy-commits");
    let path = folder.file("a.tdl");
    let db = Database::open(&path).unwrap();
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.table("config").unwrap();
    for key in 0..60_000u64 {
        table.put(&key.to_be_bytes(), &[7; 90]).unwrap();
    }
    let mut series = tx.series("wind").unwrap();
    for t in 0..400_000i64 {
        series
            .insert_point(Steps(t), 0, (t * t) as f64 / 7.0)
            .unwrap();
    }
    tx.commit().unwrap();
    db.sync().unwrap();
    for number in 1..=10 {
        commit(&db, number, Durability::Lazy);
    }
    let newest = number_of(&db);
    let bytes = db.stat().unwrap().file_bytes;
    assert!(bytes > 8 << 20, "{bytes}");
    drop(db);
    let db = Database::open(&path).unwrap();
    let recovery = db.recovery();
    println!("{} bytes of {bytes} read", recovery.verified_bytes);
    assert_eq!(
        (number_of(&db), recovery.dropped_unrecorded),
        (newest, None)
    );
    assert!((4096..200_000).contains(&recovery.verified_bytes));
    // Once the commits are durable, the lock file is not needed any more.
    db.close().unwrap();
    let db = Database::open(&path).unwrap();
    assert_eq!(db.recovery().verified_bytes, 0);
    assert_clean(&db);
}
