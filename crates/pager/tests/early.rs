//! Large transactions whose leaves are written while they are open, against a model: pages are changed again afterwards, freed, held by a savepoint and by
//! a reader of uncommitted state, and some transactions are given up.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::sync::Arc;
use tidalite_pager::{
    Durability, Kind, MemoryStorage, Options, PageRead, PageWrite, Pager, Ptr, Storage, WriteTxn,
};
use tidalite_testkit::rng::Rng;
use tidalite_testkit::{Monitor, Op, SimDisk};

/// More than what makes a transaction a large one.
const PAGES: u64 = 2600;
/// Where the number of a page and what was last written to it are.
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

/// All pages, in an order of its own, some of them twice.
fn change_all(txn: &mut WriteTxn, model: &mut Model, rng: &mut Rng, version: u64, again: u64) {
    let start = rng.below(PAGES);
    for step in 0..PAGES {
        change(txn, model, (start + step * 7) % PAGES, version);
        if again > 0 && rng.below(again) == 0 {
            change(txn, model, rng.below(PAGES), version + 1);
        }
    }
}

/// Whether some page was written twice.
fn run(seed: u64, dirty_bytes_max: usize) -> bool {
    let mut rng = Rng::new(seed);
    let options = Options {
        dirty_bytes_max,
        log_bytes: 0,
        ..Options::default()
    };
    let storage: Arc<dyn Storage> = Monitor::new(Arc::new(MemoryStorage::new()));
    let pager = Pager::open_storage(storage, &options).unwrap();
    let (mut model, mut twice) = (Model::new(), false);
    for round in 0..12u64 {
        let version = round * 100;
        let mut txn = pager.begin_write().unwrap();
        let mut next = model.clone();
        // Few come back mostly; now and then so many that it ends.
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
    // A durable one last, whatever the others were.
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
fn pages_that_were_written_early_may_be_changed_all_the_same() {
    let mut early = 0;
    for seed in 0..6 {
        println!("seed {seed}");
        early += u32::from(run(seed, 64 << 20));
        run(seed, 6 << 20);
    }
    assert!(
        early > 0,
        "with enough memory nothing else writes a page twice"
    );
}

/// Pages that were added whole and are changed before they are written are written early like any others.
#[test]
fn whole_pages_that_are_changed_do_not_stay_in_memory() {
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
