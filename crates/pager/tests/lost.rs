//! Tests of lost durable commits, when the damage exceeds the redundancy of the file: each open must report the loss,
//! and the evidence must not be overwritten without consent.

use crate::toy::{self, app, apply, id_of, problems, read, root_of};
use std::io;
use std::sync::{Arc, Mutex};
use tidalite_pager::{
    Durability, Error, Event, Header, LockMemory, Logger, LossCause, LostCommits, Options, Pager,
    Ptr, Storage,
};
use tidalite_testkit::rng::Rng;
use tidalite_testkit::{Hook, SimDisk, forward_storage};

const BLOCK: usize = 4096;
/// Block numbers of the two copies of a meta record, for each of the two pairs.
const PAIRS: [[usize; 2]; 2] = [[1, 4], [2, 5]];

fn options(log_bytes: u64) -> Options {
    Options {
        log_bytes,
        shrink_bytes: 1 << 20,
        ..toy::options()
    }
}

fn reading() -> Options {
    Options {
        read_only: true,
        ..options(256 << 10)
    }
}

fn accepting() -> Options {
    Options {
        accept_lost_commits: true,
        ..options(256 << 10)
    }
}

fn disk_of(image: &[u8]) -> Arc<SimDisk> {
    Arc::new(SimDisk::from_image(image.to_vec()))
}

fn open(disk: &Arc<SimDisk>, options: &Options) -> Result<Pager, Error> {
    Pager::open_storage(disk.clone(), options)
}

fn commit(pager: &Pager, id: u64, durability: Durability) {
    let mut txn = pager.begin_write().unwrap();
    let old = root_of(txn.app());
    let slot = (id * 7 % toy::SLOTS as u64) as usize;
    let root = apply(&mut txn, &old, &[(slot, id)]).unwrap();
    txn.commit(&app(&root, id), durability).unwrap();
}

fn newest(pager: &Pager) -> u64 {
    id_of(pager.begin_read().unwrap().app())
}

/// Whether the data of the newest commit are complete and unchanged.
fn is_whole(pager: &Pager) -> bool {
    let reader = pager.begin_read().unwrap();
    read(&reader, &root_of(reader.app()), &mut |_, _| {}).is_ok()
}

fn word(image: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(image[at..at + 8].try_into().unwrap())
}

/// Returns, for each flush in the redo log of the newest meta record, the numbers of its blocks, including all
/// copies. docs/format.md describes the fields in section 3.
fn flushes_of(image: &[u8]) -> Vec<Vec<usize>> {
    let newest = PAIRS.iter().map(|pair| pair[0] * BLOCK);
    let newest = newest.max_by_key(|at| word(image, at + 48)).unwrap();
    let at = word(image, newest + 1952) as usize * toy::PAGE;
    let len = word(image, newest + 1960) as usize * toy::PAGE;
    let mut flushes: Vec<Vec<usize>> = Vec::new();
    for block in (at..at + len).step_by(BLOCK) {
        let first =
            |block: usize| u32::from_le_bytes(image[block + 48..block + 52].try_into().unwrap());
        if word(image, block + 32) != word(image, newest + 48) {
            continue;
        }
        match flushes.last_mut() {
            Some(flush) if first(flush[0]) == first(block) => flush.push(block),
            _ => flushes.push(vec![block]),
        }
    }
    flushes
}

fn refused(opened: Result<Pager, Error>) -> LostCommits {
    match opened {
        Err(Error::CommitsLost(lost)) => lost,
        Err(other) => panic!("{other}"),
        Ok(pager) => panic!("opened for writing at commit {}", newest(&pager)),
    }
}

/// Asserts the behaviour of every kind of handle of a file that lacks commits: the handle shows commit `found`, and
/// reports `cause` and the newest known commit.
fn is_told(image: &[u8], found: u64, known: u64, cause: LossCause) {
    let disk = disk_of(image);
    let lost = refused(open(&disk, &options(256 << 10)));
    assert_eq!((lost.cause, lost.missing() > 0), (cause, true), "{lost}");
    assert_eq!(lost.newest.0, known, "{lost}");
    assert!(disk.image() == image, "who was refused has written");

    // A reader must see the commits that remain and report the loss, and so must a second reader that opens the file
    // later.
    let memory = LockMemory::new();
    let beside = |options: &Options| Pager::open_storage_with(disk.clone(), &memory, options);
    let (one, two) = (beside(&reading()).unwrap(), beside(&reading()).unwrap());
    for reader in [&one, &two] {
        assert_eq!(
            (newest(reader), reader.recovery().lost),
            (found, Some(lost))
        );
        let problems = problems(reader).unwrap();
        assert!(problems.contains(&lost.to_string()), "{problems:?}");
        // If the meta record is out of date, later commits may have overwritten pages that it needs.
        let sound = is_whole(reader) && problems.len() == 1;
        assert!(sound || cause == LossCause::Record, "{problems:?}");
    }
    assert_eq!(refused(beside(&options(256 << 10))), lost);
    assert!(disk.image() == image, "a reader has written");
    drop((one, two));

    // A handle that accepts the loss can write, and reports the loss. Its next commit ends the report of the loss.
    let events = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&events);
    let logger = Logger::new(move |event| told.lock().unwrap().push(event.clone()));
    let logging = Options {
        logger: Some(logger),
        ..accepting()
    };
    let pager = open(&disk, &logging).unwrap();
    assert_eq!((newest(&pager), pager.recovery().lost), (found, Some(lost)));
    if !is_whole(&pager) {
        return;
    }
    assert_eq!(problems(&pager).unwrap(), [""; 0]);
    (1000..1040).for_each(|id| commit(&pager, id, Durability::Durable));
    drop(pager);
    let events = events.lock().unwrap();
    let told = events
        .iter()
        .filter(|event| **event == Event::WentBack(lost));
    assert_eq!(told.count(), 1);
    let pager = open(&disk, &options(256 << 10)).unwrap();
    assert_eq!((newest(&pager), pager.recovery().lost), (1039, None));
}

/// Damages each flush of the redo log in turn: one of its blocks, in all copies. Unless this is the last flush, the
/// loss must be reported, and writers must be refused.
#[test]
fn a_hole_in_the_log_stops_writers_and_is_reported() {
    tidalite_testkit::watch();
    for (durability, copies) in [(Durability::Durable, 2), (Durability::OneFlush, 1)] {
        let disk = Arc::new(SimDisk::new());
        let pager = open(&disk, &options(256 << 10)).unwrap();
        (1..40).for_each(|id| commit(&pager, id, durability));
        let known = pager.begin_read().unwrap().txn().0;
        let image = disk.image();
        let flushes = flushes_of(&image);
        assert!(flushes.len() > 5, "{flushes:?}");
        let mut before = 0;
        for (number, flush) in flushes.iter().enumerate() {
            let mut damaged = image.clone();
            for block in flush.iter().take(copies) {
                damaged[block + 100] ^= 4;
            }
            let reader = open(&disk_of(&damaged), &reading()).unwrap();
            let found = newest(&reader);
            assert!(found > before, "{found} after {before}");
            before = found;
            if number + 1 < flushes.len() {
                is_told(&damaged, found, known, LossCause::Log);
            } else {
                // A damaged last flush looks like a flush that a power failure has interrupted, which was not
                // acknowledged.
                assert_eq!((found, reader.recovery().lost), (38, None));
            }
        }
    }
}

/// The disk has dropped the writes of both copies of the newest meta record. In their place, the meta record from two
/// commits earlier is still on the disk, but the blocks of the redo log name the dropped meta record. Opening must
/// report the loss.
#[test]
fn a_log_shows_that_the_newest_record_is_stale() {
    tidalite_testkit::watch();
    for before in 20..26 {
        let disk = Arc::new(SimDisk::new());
        let pager = open(&disk, &options(256 << 10)).unwrap();
        // Creates a redo log, whose place later meta records name.
        (1..before).for_each(|id| commit(&pager, id, Durability::Durable));
        pager.checkpoint().unwrap();
        let old = disk.image();
        commit(&pager, 100, Durability::Lazy);
        pager.checkpoint().unwrap();
        (101..110).for_each(|id| commit(&pager, id, Durability::Durable));
        assert!(pager.metrics().appends > 9);
        let known = pager.begin_read().unwrap().txn().0;
        let mut image = disk.image();
        let pair = PAIRS
            .iter()
            .max_by_key(|pair| word(&image, pair[0] * BLOCK + 48));
        for block in pair.unwrap() {
            let bytes = block * BLOCK..(block + 1) * BLOCK;
            image[bytes.clone()].copy_from_slice(&old[bytes]);
        }
        let by_log_alone = Options {
            roots: None,
            ..reading()
        };
        let reader = open(&disk_of(&image), &by_log_alone).unwrap();
        assert_eq!(reader.recovery().lost.unwrap().newest.0, known);
        let found = newest(&reader);
        assert!(found < 109);
        is_told(&image, found, known, LossCause::Record);
    }
}

/// Without a redo log, the loss is noticed only when a page of the older meta record has been overwritten. Wrong data
/// must never be returned: a read returns the data of the older meta record, or an error.
#[test]
fn a_page_of_a_later_commit_shows_that_the_newest_record_is_stale() {
    tidalite_testkit::watch();
    let (mut told, mut silent) = (0, 0);
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let disk = Arc::new(SimDisk::new());
        let pager = open(&disk, &options(0)).unwrap();
        let commits = 10 + rng.below(30);
        (1..commits).for_each(|id| commit(&pager, id, Durability::Durable));
        let old = disk.image();
        commit(&pager, commits, Durability::Durable);
        // These commits may reuse pages that the newest meta record does not need any more.
        let lazy = rng.below(4);
        (0..lazy).for_each(|id| commit(&pager, 1000 + id, Durability::Lazy));
        let mut image = disk.image();
        let pair = PAIRS
            .iter()
            .max_by_key(|pair| word(&image, pair[0] * BLOCK + 48));
        for block in pair.unwrap() {
            let bytes = block * BLOCK..(block + 1) * BLOCK;
            image[bytes.clone()].copy_from_slice(&old[bytes]);
        }
        let disk = disk_of(&image);
        let reader = open(&disk, &reading()).unwrap();
        if let Some(lost) = reader.recovery().lost {
            assert_eq!(lost.cause, LossCause::Record);
            assert!(lost.newest > lost.found, "seed {seed}: {lost}");
            assert_eq!(refused(open(&disk, &options(0))), lost);
            assert!(disk.image() == image, "who was refused has written");
            told += 1;
        } else {
            let snapshot = reader.begin_read().unwrap();
            assert_eq!(id_of(snapshot.app()), commits - 1, "seed {seed}");
            silent += 1;
        }
    }
    println!("{told} of {} stale records are told", told + silent);
    assert!(told > 10 && silent > 10, "{told} told, {silent} silent");
}

/// Whether the page to which a pointer in the meta record points was overwritten by an intact page of another commit.
fn is_written_over(image: &[u8], pointer: usize) -> bool {
    let ptr = Ptr::decode(image, pointer);
    let page = ptr.addr as usize..ptr.addr as usize + toy::PAGE;
    !ptr.is_null()
        && image.get(page).is_some_and(|page| {
            let header = Header::decode(page);
            header.address == ptr.addr && header.birth > ptr.birth
        })
}

/// Only a page of the free-space structure was overwritten. This page alone must reveal the loss, since no page of
/// tables or series does.
#[test]
fn a_page_of_the_free_space_alone_shows_that_the_newest_record_is_stale() {
    tidalite_testkit::watch();
    // Offsets in the meta record of the pointers to the root of the free space and to the directory of freed ranges
    // (docs/format.md section 3).
    const POINTERS: [usize; 2] = [72, 120];
    let newest = |image: &[u8]| {
        let pairs = PAIRS.iter();
        *pairs
            .max_by_key(|pair| word(image, pair[0] * BLOCK + 48))
            .unwrap()
    };
    let of_own_pages = |options: Options| Options {
        roots: None,
        ..options
    };
    let mut rng = Rng::new(1);
    let disk = Arc::new(SimDisk::new());
    let pager = open(&disk, &options(0)).unwrap();
    let mut alone = [0; POINTERS.len()];
    // Each reader prevents freed ranges from being reused.
    let mut readers = Vec::new();
    for id in 1..400 {
        if id % 7 == 0 {
            readers.push(pager.begin_read().unwrap());
            readers.drain(..readers.len().saturating_sub(20));
        }
        let old = disk.image();
        let mut txn = pager.begin_write().unwrap();
        let root = root_of(txn.app());
        let slots: Vec<_> = (0..1 + rng.below(20))
            .map(|_| (rng.index(toy::SLOTS), id))
            .collect();
        let root = apply(&mut txn, &root, &slots).unwrap();
        txn.commit(&app(&root, id), Durability::Durable).unwrap();
        let mut image = disk.image();
        let (before, after) = (newest(&old)[0] * BLOCK, newest(&image)[0] * BLOCK);
        let moved = |at: &usize| old[before + at..][..32] != image[after + at..][..32];
        if id == 1 || !POINTERS.iter().any(moved) {
            continue;
        }
        // Further commits reuse pages that the newest meta record no longer needs.
        let beside = disk_of(&image);
        let lazy = open(&beside, &options(0)).unwrap();
        (0..40).for_each(|id| commit(&lazy, 1000 + id, Durability::Lazy));
        lazy.begin_write().unwrap();
        image = beside.image();
        for block in newest(&image) {
            let bytes = block * BLOCK..(block + 1) * BLOCK;
            image[bytes.clone()].copy_from_slice(&old[bytes]);
        }
        let record = newest(&image)[0] * BLOCK;
        let over = POINTERS.map(|at| is_written_over(&image, record + at));
        let reader = open(&disk_of(&image), &of_own_pages(reading())).unwrap();
        let lost = reader.recovery().lost;
        assert_eq!(lost.is_some(), over != [false; 2], "commit {id}: {lost:?}");
        if lost.is_some() {
            let refusing = open(&disk_of(&image), &of_own_pages(options(0)));
            assert_eq!(Some(refused(refusing)), lost);
        }
        alone[0] += u32::from(over == [true, false]);
        alone[1] += u32::from(over == [false, true]);
    }
    println!("by the root, by the directory of pending ranges: {alone:?}");
    assert!(alone.iter().all(|cases| *cases > 0), "{alone:?}");
}

/// A disk that runs a callback before a read.
struct Reads {
    disk: Arc<SimDisk>,
    /// Number of reads that are still to be made before the callback runs.
    left: Mutex<u64>,
    hook: Mutex<Option<Hook>>,
}

impl Storage for Reads {
    fn read_at(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        let mut left = self.left.lock().unwrap();
        if *left > 0 {
            *left -= 1;
        } else if let Some(mut hook) = self.hook.lock().unwrap().take() {
            hook();
        }
        drop(left);
        self.disk.read_at(at, bytes)
    }
    forward_storage!(disk: write_at, sync, sync_all, len, grow);
}

/// While a handle opens the file, at any of its reads, another handle begins to write. The new commits overwrite
/// pages of the meta record that the opening handle has found, but no commit is lost. Opening must not fail because
/// of lost commits.
#[test]
fn commits_beside_an_opening_handle_are_no_loss() {
    tidalite_testkit::watch();
    for log_bytes in [0, 256 << 10] {
        let options = options(log_bytes);
        let (mut opened, mut reads) = (0, 0);
        for left in 0.. {
            let disk = Arc::new(SimDisk::new());
            let pager = open(&disk, &options).unwrap();
            (1..20).for_each(|id| commit(&pager, id, Durability::Durable));
            drop(pager);
            // The first handle has opened the file, but has not written to it yet.
            let memory = LockMemory::new();
            let first = Pager::open_storage_with(disk.clone(), &memory, &options).unwrap();
            let writes = move || (20..30).for_each(|id| commit(&first, id, Durability::Durable));
            let storage = Arc::new(Reads {
                disk,
                left: Mutex::new(left),
                hook: Mutex::new(Some(Box::new(writes))),
            });
            let pager = Pager::open_storage_with(storage.clone(), &memory, &options);
            if storage.hook.lock().unwrap().is_some() {
                break;
            }
            let pager = pager.unwrap_or_else(|error| panic!("at read {left}: {error}"));
            assert_eq!(pager.recovery().lost, None, "at read {left}");
            assert_eq!(newest(&pager), 29, "at read {left}");
            (opened, reads) = (opened + 1, left);
        }
        println!("{opened} times, of {reads} reads");
        assert!(opened > 5, "{opened} reads");
    }
}
