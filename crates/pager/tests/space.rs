//! Tests of the space of the file: the file is truncated and punched, its length stays within the limits, and space
//! can be freed on a full disk.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex};
use tidalite_disk::storage::Growth;
use tidalite_pager::{
    DiskError, Durability, Error, Extent, Kind, LockMemory, MemoryStorage, OpenMode, Options,
    PageRead, PageWrite, Pager, Storage, Verifier,
};
use tidalite_testkit::rng::Rng;
use tidalite_testkit::{Fault, FaultKind, Monitor, Op, SimDisk};

const MIB: u64 = 1 << 20;

fn options() -> Options {
    Options {
        shrink_bytes: 2 * MIB,
        // Without a redo log, the file contains only the pages of the test. (For a redo log at the end of a file see
        // tests/redo.rs.)
        log_bytes: 0,
        ..Options::default()
    }
}

/// A folder that is removed after the test.
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
    tidalite_testkit::watch();
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
    // After the truncation, the file must be able to grow again.
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
fn long_free_ranges_become_holes_and_small_commits_go_elsewhere() {
    tidalite_testkit::watch();
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
    // Small commits must use free pages outside of the punched holes.
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
    // A large extent may use the space of punched holes.
    let again = fill(&pager, 12 * MIB);
    assert!(again.addr < last.addr, "in the hole");
}

/// A storage in memory that records how the file grows.
#[derive(Default)]
struct Growing {
    memory: MemoryStorage,
    grown: Mutex<Vec<(u64, Growth)>>,
}

impl Growing {
    fn taken(&self) -> Vec<(u64, Growth)> {
        std::mem::take(&mut *self.grown.lock().expect("nobody panicked"))
    }
}

impl Storage for Growing {
    tidalite_testkit::forward_storage!(memory: read_at, write_at, sync, sync_all, len);

    fn grow(&self, len: u64, how: Growth) -> io::Result<()> {
        let grown = &mut *self.grown.lock().expect("nobody panicked");
        grown.push((len - self.memory.len()?, how));
        self.memory.grow(len, how)
    }
}

fn small_commit(pager: &Pager, pages: u64) {
    let mut txn = pager.begin_write().expect("a writer");
    for _ in 0..pages {
        let ptr = txn
            .new_page(tidalite_pager::Kind::KvLeaf, 1)
            .expect("a page");
        txn.seal_page(&ptr).expect("sealed");
    }
    txn.commit(b"small", Durability::Durable)
        .expect("committed");
}

/// Small commits must grow the file by one step, which is written with zeros. A bulk write must only reserve space. A
/// minimum length must be reached at once.
#[test]
fn the_file_grows_by_its_step_in_zeros_and_is_reserved_for_bulk_writes() {
    tidalite_testkit::watch();
    const STEP: u64 = 128 << 10;
    let open = |options: Options| {
        let storage = Arc::new(Growing::default());
        let pager = Pager::open_storage(Arc::clone(&storage) as Arc<dyn Storage>, &options);
        storage.taken();
        (pager.expect("open"), storage)
    };
    let (pager, storage) = open(Options {
        growth_bytes_min: STEP,
        growth_bytes_max: STEP,
        ..options()
    });
    // The file must first reach the length from which it grows by whole steps.
    while storage.len().expect("its length") < STEP {
        small_commit(&pager, 3);
    }
    storage.taken();
    (0..100).for_each(|_| small_commit(&pager, 3));
    let grown = storage.taken();
    assert!(grown.len() > 5, "{grown:?}");
    for step in grown {
        assert_eq!(step, (STEP, Growth::Zeros));
    }
    fill(&pager, 4 * MIB);
    let grown = storage.taken();
    assert!(!grown.is_empty() && grown.iter().all(|(_, how)| *how == Growth::Reserve));
    // Between the minimum and the maximum, a growth step is proportional to the file length.
    let (pager, storage) = open(Options {
        growth_bytes_min: STEP,
        growth_bytes_max: 16 * STEP,
        ..options()
    });
    fill(&pager, 8 * MIB);
    storage.taken();
    while storage.grown.lock().expect("nobody panicked").is_empty() {
        small_commit(&pager, 3);
    }
    let [(step, Growth::Zeros)] = storage.taken()[..] else {
        panic!("one step of zeros");
    };
    assert!(
        step > 7 * STEP && step < 16 * STEP,
        "{step} bytes for 8 MiB"
    );
    // The file must reach its minimum length at once.
    let (pager, storage) = open(Options {
        file_bytes_min: 3 * MIB,
        ..options()
    });
    small_commit(&pager, 1);
    (0..8).for_each(|_| small_commit(&pager, 3));
    let len = storage.len().expect("its length");
    assert!((3 * MIB..4 * MIB).contains(&len), "{len} bytes");
}

#[test]
fn exceeding_the_file_bound_is_a_typed_error_and_rolls_back() {
    tidalite_testkit::watch();
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

/// On a full disk, an ordinary transaction must fail, but a transaction that frees space must not. Afterwards there
/// must be space again.
#[test]
fn the_reserve_frees_space_on_a_full_disk() {
    tidalite_testkit::watch();
    let disk = Arc::new(SimDisk::new());
    // The option prevents holes from being punched: a full disk would have no room for the data that must fill a
    // hole.
    let options = Options {
        shrink_bytes: 16 * MIB,
        ..options()
    };
    let pager = Pager::open_storage(Monitor::new(disk.clone()), &options).unwrap();
    let mut extents = vec![fill(&pager, 2 * MIB)];
    (0..3).for_each(|_| extents.push(fill(&pager, MIB)));
    idle(&pager, 2);
    disk.set_fault(Some(Fault {
        at_call: 0,
        forever: true,
        kind: FaultKind::NoSpace,
    }));
    // The test allocates extents until the disk is full.
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
    assert!(
        matches!(refused, Error::Disk(DiskError::DiskFull { .. })),
        "{refused}"
    );
    // A transaction that allocates pages without freeing any must fail even if it declares that it frees space.
    let mut txn = pager.begin_write().unwrap();
    txn.free_space();
    let taken = txn.alloc_extent(40).unwrap();
    txn.write_extent(taken.addr, &[8; 4096]).unwrap();
    let refused = txn.commit(b"cheat", Durability::Durable);
    assert!(matches!(
        refused,
        Err(Error::Disk(DiskError::DiskFull { .. }))
    ));
    // A transaction may allocate a page or two more than it frees, until an eighth of the reserve (of fewer than 256
    // pages) is used up.
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
    assert!(
        matches!(refused, Error::Disk(DiskError::DiskFull { .. })),
        "{refused}"
    );
    assert!((2..16 + 256 / 8).contains(&lost), "{lost} pages");
    // Transactions that copy some pages to free others must succeed, any number of times.
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

/// Holes must not be punched in the reserve. On a full disk a hole has no room for new data, and no data could be
/// deleted.
#[test]
fn holes_leave_the_reserve_written() {
    tidalite_testkit::watch();
    let disk = Arc::new(SimDisk::new());
    // Holes are punched even if the free space is much less than the reserve, and the file grows little in advance.
    let options = Options {
        shrink_bytes: 64 << 10,
        growth_bytes_min: 64 << 10,
        growth_bytes_max: 64 << 10,
        reserve_bytes: MIB,
        ..options()
    };
    let pager = Pager::open_storage(Monitor::new(disk.clone()), &options).unwrap();
    let (first, second, _last) = (
        fill(&pager, 4 * MIB),
        fill(&pager, 4 * MIB),
        fill(&pager, 4 * MIB),
    );
    free(&pager, &first);
    idle(&pager, 6);
    let punched = disk.recording().ops.iter().any(
        |op| matches!(op, Op::Write(_, bytes) if bytes.len() >= MIB as usize && bytes[0] == 0),
    );
    assert!(punched, "most of what is free was given back");
    disk.set_fault(Some(Fault {
        at_call: 0,
        forever: true,
        kind: FaultKind::NoSpace,
    }));
    // A deletion that first copies 200 pages must still succeed.
    let mut txn = pager.begin_write().unwrap();
    txn.free_space();
    for _ in 0..200 {
        let page = txn.new_page(Kind::KvLeaf, 1).unwrap();
        txn.seal_page(&page).unwrap();
    }
    txn.free_extent(&second);
    txn.commit(b"deleted", Durability::Durable).unwrap();
}

/// A simulated disk that checks the file right after every truncation: it must open after the process was killed, and
/// after a power failure at which all writes had reached the medium.
struct Cuts {
    disk: SimDisk,
    memory: LockMemory,
    options: Options,
    /// Number of truncations, and descriptions of the disk states that could not be opened.
    seen: Mutex<(u64, Vec<String>)>,
}

impl Storage for Cuts {
    tidalite_testkit::forward_storage!(disk: read_at, write_at, sync, sync_all, len, grow);

    fn cut(&self, len: u64) -> io::Result<()> {
        self.disk.cut(len)?;
        let mut seen = self.seen.lock().expect("one thread");
        seen.0 += 1;
        let image = self.disk.image();
        let killed = LockMemory::from_image(&self.memory.image());
        let crashes = [
            ("killed", image.clone(), killed),
            ("power", image, LockMemory::new()),
        ];
        for (what, image, memory) in crashes {
            let disk = Arc::new(SimDisk::from_image(image));
            // A user who wants to discard the newest commit opens the meta record before it.
            let older = Options {
                older_record: true,
                read_only: true,
                exclusive: true,
                mode: OpenMode::Open,
                ..self.options.clone()
            };
            if self.options.keep_older
                && let Err(error) =
                    Pager::open_storage_with(disk.clone(), &LockMemory::new(), &older)
            {
                seen.1.push(format!("{what}, older record: {error}"));
            }
            if let Err(error) = Pager::open_storage_with(disk, &memory, &self.options) {
                seen.1.push(format!("{what}: {error}"));
            }
        }
        Ok(())
    }
}

/// A meta record may count free pages at the end of the file, because the bitmaps describe these pages. New bitmaps
/// describe fewer pages, and then the file may be truncated, but only as far as every meta record that opening may
/// find permits.
#[test]
fn a_file_is_never_cut_below_a_record_that_may_be_found() {
    tidalite_testkit::watch();
    let options = Options {
        page_size: 512,
        growth_bytes_min: 16 << 10,
        growth_bytes_max: 32 << 10,
        shrink_bytes: 16 << 10,
        reserve_bytes: 8 << 10,
        verifier: Some(Verifier::new(|_| Ok(()))),
        ..Options::default()
    };
    let mut cuts = 0;
    for seed in 0..30 {
        let options = Options {
            keep_older: seed % 2 == 1,
            ..options.clone()
        };
        let mut rng = Rng::new(seed);
        let storage = Arc::new(Cuts {
            disk: SimDisk::new(),
            memory: LockMemory::new(),
            options: options.clone(),
            seen: Mutex::default(),
        });
        let open = || Pager::open_storage_with(storage.clone(), &storage.memory, &options).unwrap();
        let mut pager = open();
        let mut extents: Vec<Extent> = Vec::new();
        for step in 0..300u64 {
            let mut txn = pager.begin_write().unwrap();
            // The file becomes fuller and emptier in turn.
            let emptier = step / 25 % 2 == 1;
            for _ in 0..rng.below(24) {
                if rng.one_in(3) == emptier || extents.is_empty() {
                    let extent = txn.alloc_extent(1 + rng.below(8)).unwrap();
                    let bytes = vec![step as u8; extent.pages as usize * 512];
                    txn.write_extent(extent.addr, &bytes).unwrap();
                    extents.push(extent);
                } else {
                    let extent = extents.swap_remove(rng.index(extents.len()));
                    txn.free_extent(&extent);
                }
            }
            let durability = match rng.below(4) {
                0 | 1 => Durability::Durable,
                2 => Durability::OneFlush,
                _ => Durability::Lazy,
            };
            txn.commit(&step.to_le_bytes(), durability).unwrap();
            if rng.one_in(40) {
                if rng.one_in(2) {
                    drop(pager);
                } else {
                    // Without a sync at close, the newest meta record belongs to a lazy commit.
                    pager.close_without_sync();
                }
                pager = open();
            }
        }
        drop(pager);
        let seen = storage.seen.lock().unwrap();
        assert_eq!(seen.1, [""; 0], "seed {seed}");
        cuts += seen.0;
    }
    println!("{cuts} cuts");
    assert!(cuts > 200, "{cuts} cuts");
}
