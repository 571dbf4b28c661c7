//! Tests of savepoints and readers of uncommitted data, compared with a model, while pages are written early.

use crate::toy::{self, Content, app, apply, changes, options, problems, read, root_of};
use std::sync::Arc;
use tidalite_pager::{Durability, Error, Kind, Options, PageRead, PageWrite, Pager, Ptr};
use tidalite_testkit::rng::Rng;
use tidalite_testkit::{Monitor, SimDisk};

fn pager(dirty_pages: usize) -> Pager {
    let options = Options {
        dirty_bytes_max: dirty_pages * toy::PAGE,
        ..options()
    };
    Pager::open_storage(Monitor::new(Arc::new(SimDisk::new())), &options).unwrap()
}

/// Runs one random transaction with savepoints and readers. Returns the contents after the transaction, which are
/// `before` if it was rolled back.
fn transaction(pager: &Pager, rng: &mut Rng, id: u64, before: &Content) -> Content {
    let mut txn = pager.begin_write().unwrap();
    let (mut root, mut content) = (root_of(txn.app()), before.clone());
    let mut savepoints = Vec::new();
    let mut readers = Vec::new();
    for step in 0..4 + rng.below(30) {
        match rng.below(9) {
            0 | 1 => savepoints.push((txn.savepoint().unwrap(), root, content.clone())),
            2 if !savepoints.is_empty() => {
                let to = rng.index(savepoints.len());
                savepoints.truncate(to + 1);
                let (savepoint, old, then) = &savepoints[to];
                txn.rollback_to(savepoint).unwrap();
                (root, content) = (*old, then.clone());
                readers.retain(|(reader, ..): &(tidalite_pager::UncommittedRead, _, _)| {
                    !reader.has_ended()
                });
            }
            3 if !savepoints.is_empty() => {
                drop(savepoints.swap_remove(rng.index(savepoints.len())));
                // The other savepoints are dropped as well: a rollback to one savepoint invalidates later ones, so
                // their order would matter.
                savepoints.clear();
            }
            4 => readers.push((txn.reader().unwrap(), root, content.clone())),
            5 if !readers.is_empty() => drop(readers.swap_remove(rng.index(readers.len()))),
            _ => {
                let mut changed = changes(rng, id * 100 + step);
                changed.truncate(40);
                root = apply(&mut txn, &root, &changed).unwrap();
                for (slot, version) in changed {
                    content[slot] = version;
                }
            }
        }
        for (reader, root, then) in &readers {
            assert!(!reader.has_ended());
            assert_eq!(&read(reader, root, &mut |_, _| {}).unwrap(), then);
        }
        assert_eq!(read(&txn, &root, &mut |_, _| {}).unwrap(), content);
    }
    if rng.one_in(4) {
        drop(txn);
        assert!(readers.iter().all(|(reader, ..)| reader.has_ended()));
        return before.clone();
    }
    // A transaction after a non-durable commit may change pages in place.
    let kinds = [
        Durability::Durable,
        Durability::Lazy,
        Durability::Lazy,
        Durability::None,
    ];
    txn.commit(&app(&root, id), *rng.pick(&kinds)).unwrap();
    for (reader, root, _) in &readers {
        let found = read(reader, root, &mut |_, _| {});
        assert!(root.is_null() || matches!(found, Err(Error::Ended) | Ok(_)));
        assert!(reader.has_ended());
    }
    content
}

#[test]
fn going_back_restores_everything_and_leaks_nothing() {
    tidalite_testkit::watch();
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let pager = pager(*rng.pick(&[16, 64, 4096]));
        let mut content = vec![0; toy::SLOTS];
        for id in 1..12 {
            content = transaction(&pager, &mut rng, id, &content);
            let reader = pager.begin_read().unwrap();
            let found = read(&reader, &root_of(reader.app()), &mut |_, _| {}).unwrap();
            assert_eq!(found, content, "seed {seed}, transaction {id}");
            assert_eq!(problems(&pager).unwrap(), [""; 0], "seed {seed}, {id}");
        }
    }
}

#[test]
fn uncommitted_state_is_read_by_other_threads_while_writing_goes_on() {
    tidalite_testkit::watch();
    let pager = pager(32);
    let mut rng = Rng::new(77);
    let mut txn = pager.begin_write().unwrap();
    let (mut root, mut content) = (Ptr::NULL, vec![0; toy::SLOTS]);
    std::thread::scope(|scope| {
        for id in 1..200 {
            let changed = changes(&mut rng, id);
            for part in changed.chunks(40) {
                root = apply(&mut txn, &root, part).unwrap();
            }
            for (slot, version) in changed {
                content[slot] = version;
            }
            if id % 5 == 0 {
                let (reader, root, then) = (txn.reader().unwrap(), root, content.clone());
                scope.spawn(move || {
                    for _ in 0..3 {
                        assert_eq!(read(&reader, &root, &mut |_, _| {}).unwrap(), then);
                    }
                });
            }
        }
    });
    txn.commit(&app(&root, 1), Durability::Durable).unwrap();
    assert_eq!(problems(&pager).unwrap(), [""; 0]);
}

#[test]
fn a_savepoint_is_of_one_transaction_and_one_branch() {
    tidalite_testkit::watch();
    let pager = pager(64);
    let mut first = pager.begin_write().unwrap();
    let foreign = first.savepoint().unwrap();
    drop(first);
    let mut txn = pager.begin_write().unwrap();
    let undone = txn.rollback_to(&foreign);
    assert!(matches!(undone, Err(Error::NoSavepoint)));
    let outer = txn.savepoint().unwrap();
    let page = txn.new_page(Kind::KvLeaf, 1).unwrap();
    assert!(txn.may_change(&page));
    let inner = txn.savepoint().unwrap();
    assert!(!txn.may_change(&page));
    let copy = txn.shadow(&page).unwrap();
    assert_ne!(copy.addr, page.addr);
    txn.rollback_to(&inner).unwrap();
    assert!(txn.page(&page).is_ok());
    assert!(txn.page(&copy).is_err());
    txn.rollback_to(&outer).unwrap();
    let undone = txn.rollback_to(&inner);
    assert!(matches!(undone, Err(Error::NoSavepoint)));
    // A dropped savepoint has no effect, so the page may be changed in place.
    let page = txn.new_page(Kind::KvLeaf, 1).unwrap();
    drop(txn.savepoint().unwrap());
    assert!(txn.may_change(&page));
    assert_eq!(txn.shadow(&page).unwrap(), page);
    // A rollback also restores the user data.
    txn.set_user_data(b"a").unwrap();
    let savepoint = txn.savepoint().unwrap();
    txn.set_user_data(b"b").unwrap();
    txn.rollback_to(&savepoint).unwrap();
    assert_eq!(txn.user_data(), b"a");
}

#[test]
fn going_back_mends_a_transaction_that_failed() {
    tidalite_testkit::watch();
    let disk = Arc::new(SimDisk::new());
    let pager = Pager::open_storage(disk.clone(), &options()).unwrap();
    let mut txn = pager.begin_write().unwrap();
    let mut root = apply(&mut txn, &Ptr::NULL, &[(1, 1), (10, 1)]).unwrap();
    let savepoint = txn.savepoint().unwrap();
    disk.set_fault(Some(tidalite_testkit::Fault {
        at_call: 0,
        forever: true,
        kind: tidalite_testkit::FaultKind::DiskFull,
    }));
    let many: Vec<_> = (0..toy::SLOTS).map(|slot| (slot, 2)).collect();
    assert!(apply(&mut txn, &root, &many).is_err());
    assert!(txn.savepoint().is_err());
    disk.set_fault(None);
    txn.rollback_to(&savepoint).unwrap();
    root = apply(&mut txn, &root, &[(2, 3)]).unwrap();
    txn.commit(&app(&root, 1), Durability::Durable).unwrap();
    let reader = pager.begin_read().unwrap();
    let found = read(&reader, &root, &mut |_, _| {}).unwrap();
    assert_eq!((found[1], found[2], found[3], found[10]), (1, 3, 0, 1));
    assert_eq!(problems(&pager).unwrap(), [""; 0]);
}

/// The commit on which a transaction builds must be retained for readers of its uncommitted data, whatever is
/// committed after the transaction has ended.
#[test]
fn the_base_of_a_transaction_stays_as_long_as_its_readers() {
    tidalite_testkit::watch();
    let pager = pager(64);
    let commit = |id: u64| {
        let mut txn = pager.begin_write().unwrap();
        let old = root_of(txn.app());
        let slot = (id * 7 % toy::SLOTS as u64) as usize;
        let root = apply(&mut txn, &old, &[(slot, id)]).unwrap();
        txn.commit(&app(&root, id), Durability::Durable).unwrap();
    };
    (1..40).for_each(commit);
    let mut txn = pager.begin_write().unwrap();
    let root = root_of(txn.app());
    let content = read(&txn, &root, &mut |_, _| {}).unwrap();
    let reader = txn.reader().unwrap();
    let new = apply(&mut txn, &root, &[(7, 100)]).unwrap();
    txn.commit(&app(&new, 100), Durability::Durable).unwrap();
    assert!(reader.has_ended());
    for id in 101..200 {
        commit(id);
        assert_eq!(read(&reader, &root, &mut |_, _| {}).unwrap(), content);
    }
    assert_eq!(pager.readers().unwrap().len(), 1);
    drop(reader);
    assert_eq!(pager.readers().unwrap().len(), 0);
}

#[test]
fn pins_go_back_with_the_savepoint() {
    tidalite_testkit::watch();
    let pager = pager(64);
    let mut txn = pager.begin_write().unwrap();
    txn.pin("old").unwrap();
    txn.commit(b"", Durability::Durable).unwrap();
    let mut txn = pager.begin_write().unwrap();
    txn.pin("outer").unwrap();
    let before = txn.savepoint().unwrap();
    txn.pin("inner").unwrap();
    txn.unpin("old").unwrap();
    txn.unpin("outer").unwrap();
    txn.rollback_to(&before).unwrap();
    assert_eq!(txn.pin_names(), ["old", "outer"]);
    txn.commit(b"", Durability::Durable).unwrap();
    let names: Vec<String> = pager
        .pins()
        .unwrap()
        .into_iter()
        .map(|pin| pin.name)
        .collect();
    assert_eq!(names, ["old", "outer"]);
}
