//! Tests of rarely used options: reuse of the most recently freed pages, overwriting freed pages with a pattern,
//! readahead, and opening at the meta record before the newest.

use std::collections::BTreeSet;
use std::sync::Arc;
use tidalite_pager::{
    Durability, Error, Kind, MemoryStorage, OpenMode, Options, PageRead, PageWrite, Pager, Ptr,
    ReadAhead, Storage, Verify, inspect,
};
use tidalite_testkit::Monitor;

const PAGE: usize = 512;

/// Number of pages that a commit replaces if it changes all pages.
const CHANGED_PAGES: u64 = 6000;

fn options() -> Options {
    Options {
        mode: OpenMode::CreateOrOpen,
        page_size: PAGE,
        ..Options::default()
    }
}

/// Returns options that open a file at the meta record before the newest.
fn older_record() -> Options {
    Options {
        older_record: true,
        read_only: true,
        exclusive: true,
        mode: OpenMode::Open,
        ..options()
    }
}

/// Adds a page that contains `number`, and returns the pointer to it.
fn page(txn: &mut tidalite_pager::WriteTxn, number: u64) -> Ptr {
    let ptr = txn.new_page(Kind::KvLeaf, 7).unwrap();
    txn.page_mut(&ptr).unwrap()[64..72].copy_from_slice(&number.to_le_bytes());
    txn.seal_page(&ptr).unwrap()
}

/// Frees pages. Returns the address of the page that was freed last, and the addresses of the pages that the next
/// commits allocate.
fn places(recent_first: bool) -> (u64, BTreeSet<u64>) {
    let options = Options {
        recent_first,
        ..options()
    };
    let pager =
        Pager::open_storage(Monitor::new(Arc::new(MemoryStorage::new())), &options).unwrap();
    let mut txn = pager.begin_write().unwrap();
    let all: Vec<Ptr> = (0..200).map(|number| page(&mut txn, number)).collect();
    txn.commit(b"", Durability::Durable).unwrap();
    // A long range at lower addresses is freed first, and a single page at a higher address last.
    for part in [&all[..100], &all[150..151]] {
        let mut txn = pager.begin_write().unwrap();
        part.iter().for_each(|ptr| txn.free_page(ptr));
        txn.commit(b"", Durability::Durable).unwrap();
    }
    let mut places = BTreeSet::new();
    for round in 0..4 {
        let mut txn = pager.begin_write().unwrap();
        places.insert(page(&mut txn, round).addr);
        txn.commit(&[round as u8], Durability::Durable).unwrap();
    }
    assert_eq!(pager.begin_check().unwrap().snapshot().app(), [3]);
    (all[150].addr, places)
}

#[test]
fn pages_that_became_free_last_are_taken_first() {
    tidalite_testkit::watch();
    let (last, places_taken) = places(true);
    assert!(places_taken.contains(&last), "{last} of {places_taken:?}");
    let (last, places_taken) = places(false);
    assert!(!places_taken.contains(&last), "{last} of {places_taken:?}");
}

#[test]
fn a_page_that_became_free_is_poisoned() {
    tidalite_testkit::watch();
    let storage = Arc::new(MemoryStorage::new());
    for poison_freed in [false, true] {
        let options = Options {
            poison_freed,
            log_bytes: 0,
            ..options()
        };
        let pager =
            Pager::open_storage(Arc::clone(&storage) as Arc<dyn Storage>, &options).unwrap();
        let mut txn = pager.begin_write().unwrap();
        let ptr = page(&mut txn, 9);
        txn.commit(b"a", Durability::Durable).unwrap();
        let held = pager.begin_read().unwrap();
        let mut txn = pager.begin_write().unwrap();
        txn.free_page(&ptr);
        txn.commit(b"b", Durability::Durable).unwrap();
        for round in 0..4u8 {
            let mut txn = pager.begin_write().unwrap();
            txn.set_user_data(&[round]).unwrap();
            txn.commit(b"c", Durability::Durable).unwrap();
        }
        // The snapshot retains the old version of the page.
        assert_eq!(held.page(&ptr).unwrap()[64], 9);
        drop(held);
        for round in 0..4u8 {
            let mut txn = pager.begin_write().unwrap();
            txn.set_user_data(&[round]).unwrap();
            txn.commit(b"d", Durability::Durable).unwrap();
        }
        let mut bytes = [0; PAGE];
        storage.read_at(ptr.addr, &mut bytes).unwrap();
        assert_eq!(bytes.iter().all(|byte| *byte == 0xdb), poison_freed);
    }
}

#[test]
fn every_way_of_reading_ahead_reads_the_same() {
    tidalite_testkit::watch();
    let folder = std::env::temp_dir().join(format!("tidalite-choices-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("ahead.tdl");
    let pager = Pager::open(&path, &options()).unwrap();
    let mut txn = pager.begin_write().unwrap();
    let ptrs: Vec<Ptr> = (0..300).map(|number| page(&mut txn, number)).collect();
    txn.commit(b"", Durability::Durable).unwrap();
    drop(pager);
    for read_ahead in [ReadAhead::Auto, ReadAhead::On, ReadAhead::Off] {
        let options = Options {
            read_ahead,
            verify: Verify::Always,
            ..options()
        };
        let pager = Pager::open(&path, &options).unwrap();
        let snapshot = pager.begin_read().unwrap();
        snapshot.read_ahead(ptrs[0].addr, 300 * u64::from(ptrs[0].len));
        snapshot.read_ahead(u64::MAX - 1, 7);
        for (number, ptr) in ptrs.iter().enumerate() {
            let page = snapshot.page(ptr).unwrap();
            assert_eq!(
                page[64..72],
                (number as u64).to_le_bytes(),
                "{read_ahead:?}"
            );
            assert_eq!(page[..], snapshot.page_in_order(ptr).unwrap()[..]);
            let wrong = Ptr {
                checksum: !ptr.checksum,
                ..*ptr
            };
            assert!(snapshot.page_in_order(&wrong).is_err());
        }
        // The file is small, so by default the system reads ahead.
        assert_eq!(snapshot.reads_single_pages(), read_ahead == ReadAhead::Off);
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn one_may_look_before_opening_and_open_the_record_before() {
    tidalite_testkit::watch();
    let folder = std::env::temp_dir().join(format!("tidalite-inspect-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("inspect.tdl");
    let kept = Options {
        keep_older: true,
        ..options()
    };
    let pager = Pager::open(&path, &kept).unwrap();
    for number in 1..=3u8 {
        let mut txn = pager.begin_write().unwrap();
        page(&mut txn, u64::from(number));
        txn.set_user_data(&[number]).unwrap();
        txn.commit(&[number], Durability::Durable).unwrap();
    }
    drop(pager);
    let before = std::fs::read(&path).unwrap();
    let seen = inspect(&path).unwrap();
    assert_eq!((seen.page_size, seen.bytes), (PAGE, before.len() as u64));
    assert_eq!(seen.txns().len(), 2, "{seen:?}");
    let newest = seen.records.iter().flat_map(|place| &place.record);
    let newest = newest.max_by_key(|record| record.txn).unwrap();
    assert_eq!((newest.user.as_slice(), newest.log), (&[3][..], None));

    let older = older_record();
    let pager = Pager::open(&path, &older).unwrap();
    let snapshot = pager.begin_read().unwrap();
    assert_eq!((snapshot.app(), snapshot.user_data()), (&[2][..], &[2][..]));
    assert_eq!(Some(&snapshot.txn()), seen.txns().get(1));
    drop((snapshot, pager));
    assert_eq!(std::fs::read(&path).unwrap(), before, "nothing is written");
    let joined = Options {
        exclusive: false,
        ..older.clone()
    };
    assert!(matches!(
        Pager::open(&path, &joined),
        Err(Error::Corrupt(_))
    ));
    let pager = Pager::open(&path, &options()).unwrap();
    assert_eq!(pager.begin_read().unwrap().app(), [3]);
    drop(pager);

    // A damaged meta record must be reported, not repaired.
    let mut bytes = before.clone();
    bytes[4096 + 100] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let seen = inspect(&path).unwrap();
    let damaged = seen.records.iter().filter(|place| place.record.is_err());
    assert_eq!(damaged.map(|place| place.at).collect::<Vec<_>>(), [4096]);
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    std::fs::remove_dir_all(folder).unwrap();
}

/// Makes commits that each replace all pages. Returns the length of the file, and the number of the `CHANGED_PAGES`
/// pages that are intact in the meta record before the newest. Reading any other page must return an error.
fn after_commits_that_change_everything(keep_older: bool) -> (u64, usize) {
    let memory = Arc::new(MemoryStorage::new()) as Arc<dyn Storage>;
    let watched = match keep_older {
        true => Monitor::keeping_older(Arc::clone(&memory)),
        false => Monitor::new(Arc::clone(&memory)),
    };
    let with = Options {
        keep_older,
        ..options()
    };
    let pager = Pager::open_storage(watched, &with).unwrap();
    let number = |commit: u8, n: u64| u64::from(commit) * CHANGED_PAGES + n;
    let mut commits: Vec<Vec<Ptr>> = Vec::new();
    for commit in 1..=8 {
        let mut txn = pager.begin_write().unwrap();
        let old = commits.last().into_iter().flatten();
        old.for_each(|ptr| txn.free_page(ptr));
        let new = (0..CHANGED_PAGES).map(|n| page(&mut txn, number(commit, n)));
        commits.push(new.collect());
        // Each of these commits writes a meta record, since it is too large for the redo log.
        txn.set_user_data(&[commit]).unwrap();
        txn.commit(&[commit], Durability::Durable).unwrap();
    }
    let bytes = pager.stat().unwrap().file_bytes;
    // The pages of the seventh commit are free now, so a lazy commit may allocate them.
    let mut txn = pager.begin_write().unwrap();
    (0..CHANGED_PAGES).for_each(|n| {
        page(&mut txn, number(9, n));
    });
    txn.commit(&[9], Durability::Lazy).unwrap();
    pager.close_without_sync();
    let pager = Pager::open_storage(memory, &older_record()).unwrap();
    let snapshot = pager.begin_read().unwrap();
    assert_eq!(snapshot.app(), [7]);
    let mut whole = 0;
    for (ptr, n) in commits[6].iter().zip(0..) {
        if let Ok(page) = snapshot.page(ptr) {
            assert_eq!(page[64..72], number(7, n).to_le_bytes());
            whole += 1;
        }
    }
    (bytes, whole)
}

#[test]
fn the_record_before_the_newest_stays_whole_on_request() {
    let (with, whole) = after_commits_that_change_everything(true);
    assert_eq!(whole as u64, CHANGED_PAGES);
    // Without the option `keep_older`, some pages are overwritten or truncated; reading them returns an error.
    let (without, whole) = after_commits_that_change_everything(false);
    assert!((whole as u64) < CHANGED_PAGES, "nothing was used again");
    assert!(
        without * 4 <= with * 3 + (1 << 20),
        "{without} of {with} bytes"
    );
}
