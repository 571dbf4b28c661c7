//! The file gets shorter and gets holes, keeps to its bounds, and frees space at zero bytes free.

use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use tidalite_pager::{Durability, Error, Extent, Options, PageRead, PageWrite, Pager};
use tidalite_testkit::{Fault, FaultKind, Monitor, SimDisk};

const MIB: u64 = 1 << 20;

fn options() -> Options {
    Options {
        shrink_bytes: 2 * MIB,
        ..Options::default()
    }
}

/// A folder that goes with the test.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("tidalite-space-{name}-{}", std::process::id()));
        drop(std::fs::remove_dir_all(&path));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn fill(pager: &Pager, bytes: u64) -> Extent {
    let mut txn = pager.begin_write().expect("a writer");
    let extent = txn.alloc_extent(bytes / 4096).expect("an extent");
    for at in 0..bytes / MIB {
        let piece = vec![at as u8 + 1; MIB as usize];
        txn.write_extent(extent.addr + at * MIB, &piece)
            .expect("written");
    }
    txn.commit(b"filled", Durability::Durable)
        .expect("committed");
    extent
}

fn free(pager: &Pager, extent: &Extent) {
    let mut txn = pager.begin_write().expect("a writer");
    txn.free_extent(extent);
    txn.commit(b"freed", Durability::Durable)
        .expect("committed");
}

fn idle(pager: &Pager, commits: usize) {
    for i in 0..commits {
        let txn = pager.begin_write().expect("a writer");
        txn.commit(&[i as u8, 1], Durability::Durable)
            .expect("committed");
    }
}

#[test]
fn the_tail_is_cut_when_no_snapshot_ends_there() {
    let dir = Folder::new("cut");
    let path = dir.0.join("a.tdl");
    let pager = Pager::open(&path, &options()).unwrap();
    let len = || std::fs::metadata(&path).unwrap().len();
    let extent = fill(&pager, 16 * MIB);
    let reader = pager.begin_read().unwrap();
    free(&pager, &extent);
    idle(&pager, 6);
    assert!(len() > 16 * MIB, "the reader sees it");
    assert!(
        reader
            .bytes(extent.addr, 4096)
            .unwrap()
            .iter()
            .all(|&byte| byte == 1)
    );
    drop(reader);
    idle(&pager, 6);
    assert!(len() < 5 * MIB, "{} bytes", len());
    // And it grows again.
    let extent = fill(&pager, 4 * MIB);
    let mut check = pager.begin_check().unwrap();
    check.claim(extent.addr, extent.pages, "the extent");
    let report = check.finish();
    assert!(report.is_clean(), "{:?}", report.problems);
    drop(report);
    drop(pager);
    let pager = Pager::open(&path, &options()).unwrap();
    let bytes = pager
        .begin_read()
        .unwrap()
        .bytes(extent.addr + MIB, 4096)
        .unwrap()
        .to_vec();
    assert!(bytes.iter().all(|&byte| byte == 2));
}

#[test]
fn long_free_stretches_become_holes_and_small_commits_go_elsewhere() {
    let dir = Folder::new("holes");
    let path = dir.0.join("a.tdl");
    let pager = Pager::open(&path, &options()).unwrap();
    let blocks = || std::fs::metadata(&path).unwrap().blocks() * 512;
    let first = fill(&pager, 16 * MIB);
    let last = fill(&pager, 4 * MIB);
    assert!(blocks() > 20 * MIB);
    free(&pager, &first);
    idle(&pager, 6);
    let (taken, len) = (blocks(), std::fs::metadata(&path).unwrap().len());
    if taken > 16 * MIB {
        println!("skipped: this file system has no holes");
        return;
    }
    assert!(len > 20 * MIB, "what lies behind stays where it is");
    // Small commits use what is written.
    for i in 0..20u8 {
        let mut txn = pager.begin_write().unwrap();
        let page = txn.new_page(tidalite_pager::Kind::KvLeaf, 1).unwrap();
        txn.page_mut(&page).unwrap()[100] = i;
        txn.seal_page(&page).unwrap();
        txn.commit(&[i], Durability::Durable).unwrap();
    }
    assert!(
        blocks() <= taken + MIB / 2,
        "{} bytes, then {}",
        taken,
        blocks()
    );
    let snapshot = pager.begin_read().unwrap();
    assert!(
        snapshot
            .bytes(last.addr, 4096)
            .unwrap()
            .iter()
            .all(|&byte| byte == 1)
    );
    drop(snapshot);
    // What was punched can be used like any other space.
    let again = fill(&pager, 12 * MIB);
    assert!(again.addr < last.addr, "in the hole");
}

#[test]
fn a_bound_of_the_file_is_a_typed_error_and_the_database_goes_on() {
    let bounded = Options {
        file_bytes_min: 3 * MIB,
        file_bytes_max: 8 * MIB,
        ..options()
    };
    let disk = Arc::new(SimDisk::new());
    let pager = Pager::open_storage(disk.clone(), &bounded).unwrap();
    let extent = fill(&pager, 2 * MIB);
    assert!(disk.image().len() as u64 >= 3 * MIB);
    let mut txn = pager.begin_write().unwrap();
    let refused = txn.alloc_extent(8 * MIB / 4096);
    assert!(matches!(refused, Err(Error::FileFull { bytes_max, .. }) if bytes_max == 8 * MIB));
    drop(txn);
    assert!(disk.image().len() as u64 <= 8 * MIB);
    free(&pager, &extent);
    idle(&pager, 3);
    fill(&pager, 2 * MIB);
}

/// At zero bytes free an ordinary transaction is refused, one that frees space is not, and then there is space.
#[test]
fn what_is_reserved_frees_space_on_a_full_disk() {
    let disk = Arc::new(SimDisk::new());
    let pager = Pager::open_storage(Monitor::new(disk.clone()), &options()).unwrap();
    let mut extents = vec![fill(&pager, 2 * MIB)];
    idle(&pager, 2);
    disk.set_fault(Some(Fault {
        at_call: 0,
        forever: true,
        kind: FaultKind::NoSpace,
    }));
    // Until nothing goes any more, a page at a time.
    let refused = loop {
        let mut txn = pager.begin_write().unwrap();
        match txn.alloc_extent(16) {
            Ok(extent) => {
                txn.write_extent(extent.addr, &[7; 4096]).unwrap();
                match txn.commit(b"more", Durability::Durable) {
                    Ok(_) => extents.push(extent),
                    Err(error) => break error,
                }
            }
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, Error::DiskFull { .. }), "{refused}");
    // Taking without giving is refused also for who says that it frees.
    let mut txn = pager.begin_write().unwrap();
    txn.free_space();
    let taken = txn.alloc_extent(40).unwrap();
    txn.write_extent(taken.addr, &[8; 4096]).unwrap();
    let refused = txn.commit(b"cheat", Durability::Durable);
    assert!(matches!(refused, Err(Error::DiskFull { .. })));
    // A page or two more than are freed are granted, until an eighth of the reserve, less than 256 pages, is gone.
    let mut lost = 0;
    let refused = loop {
        let mut txn = pager.begin_write().unwrap();
        txn.free_space();
        let taken = txn.alloc_extent(2).unwrap();
        txn.write_extent(taken.addr, &[8; 8192]).unwrap();
        match txn.commit(b"wear", Durability::Durable) {
            Ok(_) => lost += 2,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, Error::DiskFull { .. }), "{refused}");
    assert!((2..16 + 256 / 8).contains(&lost), "{lost} pages");
    // Copying some pages to let others go, at once and often.
    let mut rounds = 0;
    while let Some(extent) = extents.pop() {
        let mut txn = pager.begin_write().unwrap();
        txn.free_space();
        let copy = txn.alloc_extent(4).unwrap();
        txn.write_extent(copy.addr, &[9; 4096]).unwrap();
        txn.free_extent(&extent);
        txn.free_extent(&copy);
        txn.commit(b"less", Durability::Durable).unwrap();
        rounds += 1;
    }
    assert!(rounds > 2, "{rounds} rounds");
    idle(&pager, 3);
    assert!(
        fill(&pager, MIB).pages == 256,
        "and writing goes on, the disk still being full"
    );
}
