//! Tests of the second file with several handles: a handle that lacks the second file, or has another one, must not
//! write. They also cover read errors of the second file.

use crate::toy::{self, app, apply, options, read, root_of};
use std::sync::Arc;
use tidalite_pager::{
    DiskError, Durability, Error, LockMemory, Options, PageRead, PageWrite, Pager,
};
use tidalite_testkit::{Fault, FaultKind, SimDisk};

fn open(first: &Arc<SimDisk>, second: Option<&Arc<SimDisk>>, memory: &LockMemory) -> Pager {
    let options = Options {
        large_values_min: 600,
        ..options()
    };
    let second = second.map(|second| Arc::clone(second) as Arc<_>);
    Pager::open_storages(first.clone(), second, memory, &options).unwrap()
}

/// Commits a value that is stored in the second file; returns its address.
fn put(pager: &Pager, durability: Durability) -> Result<u64, Error> {
    let mut txn = pager.begin_write()?;
    let extent = txn.alloc_value(2, 1024)?;
    txn.write_extent(extent.addr, &[7; 1024])?;
    txn.commit(&extent.addr.to_le_bytes(), durability)?;
    Ok(extent.addr)
}

/// A handle that has not opened the second file must refuse to write once another handle has created this file.
/// Otherwise the handle could commit pointers to values in the second file, which the handle cannot sync.
#[test]
fn a_handle_without_the_second_file_refuses_to_write_once_there_is_one() {
    tidalite_testkit::watch();
    let (first, second, memory) = (Arc::default(), Arc::default(), LockMemory::new());
    let without = open(&first, None, &memory);
    drop(without.begin_write().unwrap());
    let with = open(&first, Some(&second), &memory);
    put(&with, Durability::Lazy).unwrap();
    let refused = without.begin_write().err();
    assert!(matches!(refused, Some(Error::LargeFile { .. })));
    assert_eq!(without.begin_read().unwrap().app().len(), 8);
    put(&with, Durability::Durable).unwrap();
}

/// Two handles open a database without a second file, and each names a second file in its options. The first handle
/// that commits a value must decide which file is used.
#[test]
fn values_go_to_the_second_file_that_the_database_names() {
    tidalite_testkit::watch();
    let (first, x, y, memory) = (
        Arc::default(),
        Arc::default(),
        Arc::default(),
        LockMemory::new(),
    );
    let (a, b) = (
        open(&first, Some(&x), &memory),
        open(&first, Some(&y), &memory),
    );
    let at = put(&a, Durability::Durable).unwrap();
    let refused = put(&b, Durability::Durable).err();
    assert!(matches!(refused, Some(Error::LargeFile { .. })));
    drop((a, b));
    let pager = open(&first, Some(&x), &LockMemory::new());
    let snapshot = pager.begin_read().unwrap();
    assert!(
        snapshot
            .bytes(at, 1024)
            .unwrap()
            .iter()
            .all(|&byte| byte == 7)
    );
}

#[test]
fn an_error_of_the_medium_takes_no_snapshot_away() {
    tidalite_testkit::watch();
    let (first, second, memory) = (Arc::default(), Arc::default(), LockMemory::new());
    let pager = open(&first, Some(&second), &memory);
    let write = |id: u64| {
        let mut txn = pager.begin_write().unwrap();
        let all: Vec<_> = (0..toy::SLOTS).map(|slot| (slot, id)).collect();
        let old = root_of(txn.app());
        let root = apply(&mut txn, &old, &all).unwrap();
        txn.commit(&app(&root, id), Durability::Durable).unwrap();
    };
    write(1);
    let reader = pager.begin_read_evictable().unwrap();
    write(2);
    let mut txn = pager.begin_write().unwrap();
    assert!(pager.readers().unwrap()[0].retained_bytes > 0);
    second.set_fault(Some(Fault {
        at_call: 0,
        forever: true,
        kind: FaultKind::Medium,
    }));
    let refused = txn.alloc_value(2, 1024).err();
    assert!(
        matches!(refused, Some(Error::Disk(DiskError::Io { .. }))),
        "{refused:?}"
    );
    drop(txn);
    read(&reader, &root_of(reader.app()), &mut |_, _| {}).unwrap();
}
