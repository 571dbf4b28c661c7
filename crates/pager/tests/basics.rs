//! Tests that create a file, write it, read it under snapshots, reopen it and check it; freed pages must be reused.

use std::sync::Arc;
use tidalite_pager::{
    Check, Durability, Error, Kind, MemoryStorage, Options, PageRead, PageWrite, Pager, Ptr,
    Storage, WriteTxn,
};
use tidalite_testkit::Monitor;

fn options() -> Options {
    Options {
        page_size: 512,
        growth_bytes_min: 16 << 10,
        growth_bytes_max: 64 << 10,
        log_bytes: 0,
        ..Options::default()
    }
}

/// Writes a number into a page and returns the pointer to the page. In these tests the app area of a commit contains
/// this pointer.
fn put(txn: &mut WriteTxn, old: &Ptr, number: u8) -> Ptr {
    let ptr = if old.is_null() {
        txn.new_page(Kind::KvLeaf, 7).unwrap()
    } else {
        txn.shadow(old).unwrap()
    };
    txn.page_mut(&ptr).unwrap()[100] = number;
    txn.seal_page(&ptr).unwrap()
}

fn app(ptr: &Ptr) -> [u8; 32] {
    let mut bytes = [0; 32];
    ptr.encode(&mut bytes, 0);
    bytes
}

fn claim_one(check: &mut Check) {
    if !check.snapshot().app().is_empty() {
        let ptr = Ptr::decode(check.snapshot().app(), 0);
        check.claim(ptr.addr, 1, "the page");
    }
}

fn assert_clean(pager: &Pager) {
    let mut check = pager.begin_check().unwrap();
    claim_one(&mut check);
    let report = check.finish();
    assert!(report.is_clean(), "{:#?}", report.problems);
}

#[test]
fn snapshots_stay_and_pages_come_back() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let pager = Pager::open_storage(Arc::clone(&storage), &options()).unwrap();
    let mut ptr = Ptr::NULL;
    let mut readers = Vec::new();
    let mut sizes = Vec::new();
    for number in 0..200u8 {
        let mut txn = pager.begin_write().unwrap();
        ptr = put(&mut txn, &ptr, number);
        let durability = if number % 3 == 1 {
            Durability::None
        } else {
            Durability::Durable
        };
        txn.commit(&app(&ptr), durability).unwrap();
        if number % 16 == 0 {
            readers.push((number, ptr, pager.begin_read().unwrap()));
        }
        for (number, ptr, reader) in &readers {
            assert_eq!(reader.page(ptr).unwrap()[100], *number);
        }
        if number % 64 == 63 {
            readers.clear();
        }
        assert_clean(&pager);
        sizes.push(pager.stat().unwrap().pages_total);
    }
    assert_eq!(
        sizes[10], sizes[199],
        "a page that is rewritten takes no new space"
    );
    drop((readers, pager));
    let pager = Pager::open_storage(storage, &options()).unwrap();
    let reader = pager.begin_read().unwrap();
    let ptr = Ptr::decode(reader.app(), 0);
    assert_eq!(
        reader.page(&ptr).unwrap()[100],
        198,
        "the last durable commit"
    );
    assert_clean(&pager);
    let txn = pager.begin_write().unwrap();
    assert!(pager.try_begin_write().unwrap().is_none());
    drop(txn);
    assert!(pager.try_begin_write().unwrap().is_some());
}

#[test]
fn a_small_commit_writes_its_page_and_two_meta_blocks() {
    let pager =
        Pager::open_storage(Monitor::new(Arc::new(MemoryStorage::new())), &options()).unwrap();
    let mut ptr = Ptr::NULL;
    for number in 0..100 {
        let mut txn = pager.begin_write().unwrap();
        ptr = put(&mut txn, &ptr, number);
        let info = txn.commit(&app(&ptr), Durability::Durable).unwrap();
        assert_eq!(info.pages_written, 1);
        assert_eq!(info.bytes_written, 512 + 2 * 4096);
    }
    let txn = pager.begin_write().unwrap();
    let info = txn.commit(&app(&ptr), Durability::Durable).unwrap();
    assert_eq!(info.bytes_written, 0, "nothing changed, nothing written");
}

#[test]
fn rollback_and_panic_leave_nothing_behind() {
    let pager =
        Pager::open_storage(Monitor::new(Arc::new(MemoryStorage::new())), &options()).unwrap();
    let mut txn = pager.begin_write().unwrap();
    let ptr = put(&mut txn, &Ptr::NULL, 1);
    txn.commit(&app(&ptr), Durability::Durable).unwrap();
    let in_use = |pager: &Pager| {
        let stat = pager.stat().unwrap();
        stat.pages_total - stat.pages_free
    };
    let before = in_use(&pager);
    let mut txn = pager.begin_write().unwrap();
    put(&mut txn, &ptr, 2);
    txn.alloc_extent(3).unwrap();
    drop(txn);
    let other = pager.clone();
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let mut txn = other.begin_write().unwrap();
        txn.new_page(Kind::KvLeaf, 1).unwrap();
        panic!("in the middle of a transaction");
    }));
    assert!(unwound.is_err());
    assert_eq!(in_use(&pager), before);
    let mut txn = pager.begin_write().unwrap();
    txn.new_page(Kind::KvLeaf, 1).unwrap();
    let unsealed = txn.commit(&[], Durability::Durable);
    assert!(matches!(unsealed, Err(Error::Corrupt(_))), "{unsealed:?}");
    assert_eq!(in_use(&pager), before);
    assert_clean(&pager);
}

#[test]
fn a_reader_moves_across_threads_and_writers_wait_in_order() {
    let pager =
        Pager::open_storage(Monitor::new(Arc::new(MemoryStorage::new())), &options()).unwrap();
    let txn = pager.begin_write().unwrap();
    let (send, receive) = std::sync::mpsc::channel();
    let mut threads = Vec::new();
    for number in 0..3u8 {
        let (pager, send) = (pager.clone(), send.clone());
        threads.push(std::thread::spawn(move || {
            let mut txn = pager.begin_write().unwrap();
            send.send(number).unwrap();
            let old = match txn.app() {
                [] => Ptr::NULL,
                bytes => Ptr::decode(bytes, 0),
            };
            let ptr = put(&mut txn, &old, number);
            txn.commit(&app(&ptr), Durability::Durable).unwrap();
        }));
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let moved = std::thread::spawn(move || drop(txn));
    moved.join().unwrap();
    for thread in threads {
        thread.join().unwrap();
    }
    let order: Vec<u8> = receive.try_iter().collect();
    assert_eq!(order, [0, 1, 2], "first come, first served");
    assert_clean(&pager);
}

#[test]
fn pages_written_behind_are_read_back() {
    let options = Options {
        dirty_bytes_max: 16 * 512,
        ..options()
    };
    let pager =
        Pager::open_storage(Monitor::new(Arc::new(MemoryStorage::new())), &options).unwrap();
    let mut txn = pager.begin_write().unwrap();
    let mut ptrs = Vec::new();
    for number in 0..200u8 {
        let ptr = txn.new_page(Kind::KvLeaf, 1).unwrap();
        txn.page_mut(&ptr).unwrap()[50] = number;
        ptrs.push(ptr);
    }
    for (number, ptr) in ptrs.iter_mut().enumerate() {
        assert_eq!(txn.page(ptr).unwrap()[50], number as u8);
        if number % 2 == 0 {
            txn.page_mut(ptr).unwrap()[51] = 1;
        }
        *ptr = txn.seal_page(ptr).unwrap();
    }
    txn.commit(&[], Durability::Durable).unwrap();
    // The transaction has changed far more pages than fit into the memory limit, so many were written early.
    let spilled = pager.metrics().pages_spilled;
    assert!(
        spilled >= 200 - 2 * 16,
        "{spilled} pages were written early"
    );
    let reader = pager.begin_read().unwrap();
    for (number, ptr) in ptrs.iter().enumerate() {
        let page = reader.page(ptr).unwrap();
        assert_eq!(
            (page[50], page[51]),
            (number as u8, (number % 2 == 0) as u8)
        );
    }
    let mut check = pager.begin_check().unwrap();
    for ptr in &ptrs {
        check.claim(ptr.addr, 1, "page");
    }
    check.claim(ptrs[0].addr, 1, "page again");
    let problems = check.finish().problems;
    assert_eq!(problems.len(), 1, "{problems:?}");
}

/// The test adds more complete pages than the memory limit permits. Some of them are then changed, some freed, and
/// the others left unchanged. The contents must be correct afterwards.
#[test]
fn bulk_pages_are_written_behind_and_may_be_changed_all_the_same() {
    for dirty_pages in [16, 20_000] {
        let options = Options {
            dirty_bytes_max: dirty_pages * 512,
            ..options()
        };
        let storage = Monitor::new(Arc::new(MemoryStorage::new()));
        let pager = Pager::open_storage(storage, &options).unwrap();
        let mut txn = pager.begin_write().unwrap();
        // The transaction adds so many pages that some are written early, even with the larger memory limit.
        let count = 10_000u32;
        let mut ptrs = Vec::new();
        for number in 0..count {
            let mut bytes = [0; 512];
            bytes[50..54].copy_from_slice(&number.to_le_bytes());
            let ptr = txn.add_page(Kind::KvLeaf, 1, &bytes).unwrap();
            assert_eq!(txn.sealed(&ptr), Some(ptr));
            ptrs.push(ptr);
        }
        let savepoint = txn.savepoint().unwrap();
        let gone = txn.add_page(Kind::KvLeaf, 1, &[7; 512]).unwrap();
        txn.rollback_to(&savepoint).unwrap();
        drop(savepoint);
        assert!(txn.page(&gone).is_err());
        let mut kept = Vec::new();
        for (number, ptr) in (0..count).zip(&ptrs) {
            match number % 7 {
                0 => {
                    assert_eq!(txn.page(ptr).unwrap()[50..54], number.to_le_bytes());
                    txn.page_mut(ptr).unwrap()[54] = 1;
                    kept.push((number, txn.seal_page(ptr).unwrap()));
                }
                1 => txn.free_page(ptr),
                _ => kept.push((number, *ptr)),
            }
        }
        txn.commit(&[], Durability::Durable).unwrap();
        let reader = pager.begin_read().unwrap();
        let mut check = pager.begin_check().unwrap();
        for (number, ptr) in &kept {
            let page = reader.page(ptr).unwrap();
            assert_eq!(page[50..54], number.to_le_bytes());
            assert_eq!(page[54] == 1, number % 7 == 0);
            check.claim(ptr.addr, 1, "page");
        }
        let problems = check.finish().problems;
        assert!(problems.is_empty(), "{problems:?}");
    }
}

#[test]
fn impossible_pointers_are_typed_errors() {
    let pager =
        Pager::open_storage(Monitor::new(Arc::new(MemoryStorage::new())), &options()).unwrap();
    let mut txn = pager.begin_write().unwrap();
    let own = txn.txn();
    for (addr, birth) in [
        (24576, 1),
        (1 << 50, 1),
        (u64::MAX - 511, 1),
        (25088, own.0),
        (7, 1),
    ] {
        let ptr = Ptr {
            addr,
            len: 512,
            kind: Kind::KvLeaf,
            checksum: 5,
            birth: tidalite_base::TxnId(birth),
        };
        assert!(matches!(txn.page(&ptr), Err(Error::Corrupt(_))));
        assert!(matches!(txn.block(&ptr), Err(Error::Corrupt(_))));
        assert!(matches!(txn.shadow(&ptr), Err(Error::Corrupt(_))));
        let mut other = Ptr { ..ptr };
        other.len = 100;
        assert!(txn.page(&other).is_err());
        txn.free_page(&ptr);
    }
    assert!(matches!(
        txn.commit(&[], Durability::Durable),
        Err(Error::Corrupt(_))
    ));
    assert_clean(&pager);
}
