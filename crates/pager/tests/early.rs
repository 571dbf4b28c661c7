//! Tests of large transactions whose leaves are written while the transactions are open, compared with a model. After
//! pages are written, they are changed again, freed, or retained by a savepoint or a reader of uncommitted data; some
//! transactions are rolled back.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tidalite_pager::{
    DiskError, Durability, Error, Kind, MemoryStorage, Options, PageRead, PageWrite, Pager, Ptr,
    Storage, WriteTxn,
};
use tidalite_testkit::rng::Rng;
use tidalite_testkit::{Monitor, Op, SimDisk};

/// Number of pages that a transaction changes, which is enough for the transaction to count as large.
const PAGES: u64 = 2600;
/// Offsets in a page of its number and of the version that was written last.
const NUMBER_AT: usize = 100;
const VERSION_AT: usize = 4000;

type Model = BTreeMap<u64, (Ptr, u64)>;

fn change(txn: &mut WriteTxn, model: &mut Model, number: u64, version: u64) {
    let old = model.get(&number).copied();
    let ptr = match old {
        Some((ptr, _)) => txn.shadow(&ptr).unwrap(),
        None => txn.new_page(Kind::KvLeaf, 7).unwrap(),
    };
    let page = txn.page_mut(&ptr).unwrap();
    page[NUMBER_AT..NUMBER_AT + 8].copy_from_slice(&number.to_le_bytes());
    page[VERSION_AT..VERSION_AT + 8].copy_from_slice(&version.to_le_bytes());
    model.insert(number, (ptr, version));
}

fn look<R: PageRead>(reader: &R, model: &Model) {
    for (number, (ptr, version)) in model {
        let page = reader.page(ptr).unwrap();
        assert_eq!(page[NUMBER_AT..NUMBER_AT + 8], number.to_le_bytes());
        assert_eq!(page[VERSION_AT..VERSION_AT + 8], version.to_le_bytes());
    }
}

fn seal(txn: &mut WriteTxn, model: &mut Model) {
    for (ptr, _) in model.values_mut() {
        if ptr.birth == txn.txn() {
            *ptr = txn.seal_page(ptr).unwrap();
        }
    }
}

/// Changes all pages in random order; some pages are changed twice.
fn change_all(txn: &mut WriteTxn, model: &mut Model, rng: &mut Rng, version: u64, again: u64) {
    let start = rng.below(PAGES);
    for step in 0..PAGES {
        change(txn, model, (start + step * 7) % PAGES, version);
        if again > 0 && rng.below(again) == 0 {
            change(txn, model, rng.below(PAGES), version + 1);
        }
    }
}

/// A storage in memory that makes the transaction use a background thread for writes, and that delays writes.
struct Beside {
    memory: Arc<dyn Storage>,
    /// Whether writes of the background thread fail.
    fails: AtomicBool,
}

impl Storage for Beside {
    tidalite_testkit::forward_storage!(memory: read_at, sync, sync_all, len, grow);

    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        if thread::current().name() == Some("tidalite-write") {
            thread::sleep(Duration::from_micros(1));
            if self.fails.load(Ordering::SeqCst) {
                return Err(io::ErrorKind::StorageFull.into());
            }
        }
        self.memory.write_at(at, bytes)
    }
    fn writes_back(&self) -> bool {
        true
    }
}

fn beside_of(memory: Arc<dyn Storage>) -> Arc<Beside> {
    let fails = AtomicBool::new(false);
    Arc::new(Beside { memory, fails })
}

/// Returns a storage in memory. If `beside` is set, it lets a background thread write pages, as a file does.
fn storage(beside: bool) -> Arc<dyn Storage> {
    let memory: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let lent = if beside { beside_of(memory) } else { memory };
    Monitor::new(lent)
}

/// Runs random transactions. Returns whether any page was written twice.
fn run(seed: u64, dirty_bytes_max: usize, beside: bool) -> bool {
    let mut rng = Rng::new(seed);
    let options = Options {
        dirty_bytes_max,
        log_bytes: 0,
        ..Options::default()
    };
    let pager = Pager::open_storage(storage(beside), &options).unwrap();
    let (mut model, mut twice) = (Model::new(), false);
    for round in 0..12u64 {
        let version = round * 100;
        let mut txn = pager.begin_write().unwrap();
        let mut next = model.clone();
        // Usually a few pages are changed again; sometimes so many that write-behind stops.
        let again = [0, 40, 40, 3][rng.below(4) as usize];
        change_all(&mut txn, &mut next, &mut rng, version, again);
        let kind = rng.below(4);
        match kind {
            0 => {
                seal(&mut txn, &mut next);
                let savepoint = txn.savepoint().unwrap();
                let before = next.clone();
                let uncommitted = txn.reader().unwrap();
                change_all(&mut txn, &mut next, &mut rng, version + 2, 40);
                look(&txn, &next);
                look(&uncommitted, &before);
                txn.rollback_to(&savepoint).unwrap();
                next = before;
            }
            1 => {
                drop(txn);
                look(&pager.begin_read().unwrap(), &model);
                continue;
            }
            2 => {
                for number in (0..PAGES).step_by(50) {
                    let (ptr, _) = next.remove(&number).unwrap();
                    txn.free_page(&ptr);
                    change(&mut txn, &mut next, number, version + 3);
                }
            }
            _ => {}
        }
        look(&txn, &next);
        if rng.below(2) == 0 {
            txn.write_leaves().unwrap();
            change(&mut txn, &mut next, rng.below(PAGES), version + 4);
        }
        seal(&mut txn, &mut next);
        let durability = match rng.below(6) {
            0 => Durability::Lazy,
            1 => Durability::None,
            _ => Durability::Durable,
        };
        let info = txn.commit(&[], durability).unwrap();
        twice |= kind == 3 && info.pages_written > PAGES + info.space_pages_written;
        model = next;
        look(&pager.begin_read().unwrap(), &model);
    }
    // The last commit is durable, whatever the other commits were.
    let mut txn = pager.begin_write().unwrap();
    change(&mut txn, &mut model, 0, 9999);
    seal(&mut txn, &mut model);
    txn.commit(&[], Durability::Durable).unwrap();
    let mut check = pager.begin_check().unwrap();
    look(check.snapshot(), &model);
    for (number, (ptr, _)) in &model {
        check.claim(ptr.addr, 1, &format!("page {number}"));
    }
    let problems = check.finish().problems;
    assert!(problems.is_empty(), "seed {seed}: {problems:?}");
    twice
}

#[test]
fn pages_that_were_written_behind_may_be_changed_all_the_same() {
    let mut early = 0;
    for seed in 0..6 {
        println!("seed {seed}");
        early += u32::from(run(seed, 64 << 20, false));
        run(seed, 6 << 20, false);
        run(seed, 64 << 20, true);
        run(seed, 6 << 20, true);
    }
    assert!(
        early > 0,
        "with enough memory nothing else writes a page twice"
    );
}

/// Bulk pages that are changed before they are written must still be written early, like any other page.
#[test]
fn bulk_pages_that_are_changed_do_not_stay_in_memory() {
    tidalite_testkit::watch();
    const ADDED: u64 = 4096;
    let disk = Arc::new(SimDisk::new());
    let options = Options {
        dirty_bytes_max: 1 << 20,
        ..Options::default()
    };
    let pager = Pager::open_storage(disk.clone(), &options).unwrap();
    let mut txn = pager.begin_write().unwrap();
    let mut model = Model::new();
    for number in 0..ADDED {
        let ptr = txn.add_page(Kind::KvBranch, 7, &[0; 4096]).unwrap();
        model.insert(number, (ptr, 0));
        change(&mut txn, &mut model, number, 1);
    }
    let is_page = |op: &&Op| matches!(op, Op::Write(_, bytes) if bytes.get(8) == Some(&(Kind::KvBranch as u8)));
    let recording = disk.recording();
    let written = recording.ops.iter().filter(is_page);
    let pages: usize = written
        .map(|op| match op {
            Op::Write(_, bytes) => bytes.len() / 4096,
            _ => 0,
        })
        .sum();
    let in_memory = (1 << 20) / 4096;
    assert!(pages + in_memory >= ADDED as usize, "{pages} pages written");
    look(&txn, &model);
    seal(&mut txn, &mut model);
    txn.commit(b"", Durability::Durable).unwrap();
    look(&pager.begin_read().unwrap(), &model);
}

/// Pages that were passed to the background thread are freed, and an extent is allocated at their addresses. Pending
/// writes of the thread must not overwrite the extent.
#[test]
fn pages_given_up_do_not_overwrite_later_ones() {
    tidalite_testkit::watch();
    let options = Options {
        log_bytes: 0,
        ..Options::default()
    };
    let pager = Pager::open_storage(storage(true), &options).unwrap();
    let mut model = Model::new();
    for round in 0..6 {
        let mut txn = pager.begin_write().unwrap();
        for number in 0..PAGES {
            change(&mut txn, &mut model, number, round);
        }
        txn.write_leaves().unwrap();
        let given_up: Vec<_> = (0..PAGES).filter_map(|at| model.remove(&at)).collect();
        given_up.iter().for_each(|(ptr, _)| txn.free_page(ptr));
        let mut extents = Vec::new();
        for at in 0..PAGES / 16 {
            let extent = txn.alloc_extent(8).unwrap();
            txn.write_extent(extent.addr, &[at as u8; 8 * 4096])
                .unwrap();
            extents.push(extent);
        }
        txn.commit(b"", Durability::Durable).unwrap();
        let reader = pager.begin_read().unwrap();
        for (at, extent) in extents.iter().enumerate() {
            let bytes = reader.bytes(extent.addr, 8 * 4096).unwrap();
            assert!(bytes.iter().all(|byte| *byte == at as u8), "extent {at}");
        }
        drop(reader);
        let mut txn = pager.begin_write().unwrap();
        extents.iter().for_each(|extent| txn.free_extent(extent));
        txn.commit(b"", Durability::Durable).unwrap();
    }
}

/// The writes of the background thread fail. The commit must return the error and have no effect. After a rollback to
/// a savepoint, the transaction must write its pages itself.
#[test]
fn pages_that_the_thread_failed_to_write_do_not_count_as_written() {
    tidalite_testkit::watch();
    if thread::available_parallelism().is_ok_and(|cores| cores.get() < 2) {
        println!("skipped: one processor, no thread");
        return;
    }
    let storage = beside_of(Arc::new(MemoryStorage::new()));
    let options = Options {
        log_bytes: 0,
        ..Options::default()
    };
    let pager = Pager::open_storage(storage.clone(), &options).unwrap();
    let (mut model, mut rng) = (Model::new(), Rng::new(1));
    for round in 0..8 {
        let mut txn = pager.begin_write().unwrap();
        let mut next = model.clone();
        change_all(&mut txn, &mut next, &mut rng, round * 10, 40);
        storage.fails.store(round % 2 == 1, Ordering::SeqCst);
        let savepoint = txn.savepoint().unwrap();
        txn.write_leaves().unwrap();
        seal(&mut txn, &mut next);
        if round % 4 == 3 {
            let extent = txn.alloc_extent(1).unwrap();
            let found = txn.write_extent(extent.addr, &[1; 4096]).unwrap_err();
            assert!(
                matches!(found, Error::Disk(DiskError::DiskFull { .. })),
                "{found:?}"
            );
            txn.rollback_to(&savepoint).unwrap();
            seal(&mut txn, &mut next);
        }
        match txn.commit(b"", Durability::Durable) {
            Ok(_) if round % 4 != 1 => model = next,
            Err(Error::Disk(DiskError::DiskFull { .. })) if round % 4 == 1 => {}
            other => panic!("{other:?} in round {round}"),
        }
        storage.fails.store(false, Ordering::SeqCst);
        look(&pager.begin_read().unwrap(), &model);
    }
}
