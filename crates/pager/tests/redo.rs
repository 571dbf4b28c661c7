//! Tests of the redo log: when it is used, its cost, its guarantees, and damage to it. (For crashes see
//! tests/crash.rs and tests/lazy.rs.)

use crate::toy::{self, app, apply, id_of, problems, read, root_of};
use std::sync::Arc;
use std::time::Duration;
use tidalite_base::TxnId;
use tidalite_pager::{Durability, LockMemory, Options, PageWrite, Pager, RawFile};
use tidalite_testkit::SimDisk;

const BLOCK: usize = 4096;

fn options() -> Options {
    Options {
        log_bytes: 256 << 10,
        shrink_bytes: 1 << 20,
        ..toy::options()
    }
}

fn open(disk: &Arc<SimDisk>) -> Pager {
    Pager::open_storage(disk.clone(), &options()).unwrap()
}

fn commit(pager: &Pager, id: u64, durability: Durability) {
    let mut txn = pager.begin_write().unwrap();
    let old = root_of(txn.app());
    let slot = (id * 7 % toy::SLOTS as u64) as usize;
    let root = apply(&mut txn, &old, &[(slot, id)]).unwrap();
    txn.commit(&app(&root, id), durability).unwrap();
}

/// Creates a database with the commits from 1 up to, but not including, commit `below`.
fn filled(below: u64, durability: Durability) -> (Arc<SimDisk>, Pager) {
    let disk = Arc::new(SimDisk::new());
    let pager = open(&disk);
    (1..below).for_each(|id| commit(&pager, id, durability));
    (disk, pager)
}

/// Returns the number of the newest commit, after reading its data and checking the file.
fn newest(pager: &Pager) -> u64 {
    let reader = pager.begin_read().unwrap();
    let id = id_of(reader.app());
    read(&reader, &root_of(reader.app()), &mut |_, _| {}).unwrap();
    drop(reader);
    assert_eq!(problems(pager).unwrap(), [""; 0]);
    id
}

/// Returns the disk after a power failure at which all writes had reached the medium. Only the lock file is lost.
fn after_power_cut(disk: &SimDisk) -> Arc<SimDisk> {
    Arc::new(SimDisk::from_image(disk.image()))
}

/// Returns the byte offset of the redo log, and the number of its blocks that begin with a checksum.
fn log_of(image: &[u8]) -> (usize, usize) {
    // According to section 3 of docs/format.md, the meta record with the higher sequence number contains the place of
    // the redo log.
    let word = |at: usize| u64::from_le_bytes(image[at..at + 8].try_into().unwrap());
    let newest = [4096, 8192]
        .into_iter()
        .max_by_key(|at| word(at + 48))
        .unwrap();
    let (at, len) = (
        word(newest + 1952) * toy::PAGE as u64,
        word(newest + 1960) * toy::PAGE as u64,
    );
    let log = &image[at as usize..(at + len) as usize];
    let written = log.chunks(BLOCK).take_while(|block| block[..8] != [0; 8]);
    (at as usize, written.count())
}

#[test]
fn a_commit_with_one_barrier_is_one_sync() {
    tidalite_testkit::watch();
    let disk = Arc::new(SimDisk::new());
    let pager = open(&disk);
    commit(&pager, 1, Durability::Durable);
    // The first `OneFlush` commit creates the redo log. A meta record must name the log, so this commit is not in the
    // log itself.
    commit(&pager, 2, Durability::OneFlush);
    for id in 3..40 {
        let (before, durability) = (pager.metrics(), [Durability::OneFlush, Durability::Durable]);
        commit(&pager, id, durability[id as usize % 2]);
        let after = pager.metrics();
        assert_eq!(
            (after.syncs - before.syncs, after.records - before.records),
            (1, 0)
        );
        let copies = 1 + id % 2;
        assert_eq!(
            (after.bytes_log - before.bytes_log) % (copies * BLOCK as u64),
            0
        );
    }
    // A lazy commit is not in the redo log, so the next durable commit writes a meta record.
    commit(&pager, 40, Durability::Lazy);
    let before = pager.metrics();
    commit(&pager, 41, Durability::OneFlush);
    assert_eq!(pager.metrics().records - before.records, 1);
    assert_eq!(newest(&pager), 41);
}

#[test]
fn small_durable_commits_that_follow_each_other_go_to_a_log() {
    tidalite_testkit::watch();
    let (_, pager) = filled(60, Durability::Durable);
    let metrics = pager.metrics();
    assert!(
        (9..15).contains(&metrics.records) && metrics.appends > 40,
        "{metrics:?}"
    );
    // With `log_bytes: 0`, no redo log is created.
    let without = Options {
        log_bytes: 0,
        ..options()
    };
    let pager = Pager::open_storage(Arc::new(SimDisk::new()), &without).unwrap();
    for id in 1..60 {
        commit(
            &pager,
            id,
            [Durability::Durable, Durability::OneFlush][id as usize % 2],
        );
    }
    assert_eq!((pager.metrics().appends, pager.metrics().records), (0, 59));
}

#[test]
fn a_commit_with_many_extents_skips_the_log() {
    tidalite_testkit::watch();
    let (_, pager) = filled(20, Durability::Durable);
    // The redo log would store these zeros in few bytes, but the decision counts the bytes of the extents.
    let sizes = [(60 << 10, true), (80 << 10, false), (60 << 10, true)];
    for (id, (bytes, is_logged)) in (20..).step_by(2).zip(sizes) {
        // A small commit comes first, so that the redo log is complete up to the measured commit.
        commit(&pager, id, Durability::OneFlush);
        let before = pager.metrics();
        let mut txn = pager.begin_write().unwrap();
        let old = root_of(txn.app());
        let root = apply(&mut txn, &old, &[(1, id + 1)]).unwrap();
        let extent = txn.alloc_extent(bytes as u64 / toy::PAGE as u64).unwrap();
        txn.write_extent(extent.addr, &vec![0; bytes]).unwrap();
        txn.free_extent(&extent);
        txn.commit(&app(&root, id + 1), Durability::OneFlush)
            .unwrap();
        let after = pager.metrics();
        let found = (
            after.appends - before.appends,
            after.records - before.records,
        );
        let expected = if is_logged { (1, 0) } else { (0, 1) };
        assert_eq!(found, expected, "{bytes} bytes");
    }
    assert_eq!(newest(&pager), 25);
}

#[test]
fn a_full_log_is_emptied_into_a_record_and_begins_anew() {
    tidalite_testkit::watch();
    let disk = Arc::new(SimDisk::new());
    let pager = open(&disk);
    for id in 1..600 {
        commit(&pager, id, Durability::OneFlush);
        if id % 50 == 0 {
            assert_eq!(newest(&open(&after_power_cut(&disk))), id);
        }
    }
    let metrics = pager.metrics();
    assert!((8..30).contains(&metrics.records), "{metrics:?}");
    assert_eq!(newest(&pager), 599);
}

fn log_bytes(pager: &Pager) -> u64 {
    pager.stat().unwrap().log_pages * toy::PAGE as u64
}

/// In a file of limited length, the redo log must leave most of the space for data.
#[test]
fn the_log_of_a_bounded_file_is_an_eighth_of_it() {
    tidalite_testkit::watch();
    let bounded = Options {
        file_bytes_max: 1 << 20,
        ..options()
    };
    let disk = Arc::new(SimDisk::new());
    let pager = Pager::open_storage(disk.clone(), &bounded).unwrap();
    (1..600).for_each(|id| commit(&pager, id, Durability::OneFlush));
    assert_eq!(log_bytes(&pager), 128 << 10);
    assert!(pager.metrics().appends > 500, "{:?}", pager.metrics());
    assert_eq!(newest(&pager), 599);
}

/// A redo log that is too small for its file must be replaced by a longer redo log. If a longer redo log does not
/// fit, the next redo log must have the same length as before.
#[test]
fn where_a_longer_log_does_not_fit_there_is_one_as_long_as_before() {
    tidalite_testkit::watch();
    const MIB: u64 = 1 << 20;
    for (file_bytes_max, expected) in [(u64::MAX, 4 * MIB), (34 * MIB, 2 * MIB)] {
        let roomy = Options {
            log_bytes: 4 * MIB,
            file_bytes_max,
            ..toy::options()
        };
        let disk = Arc::new(SimDisk::new());
        let pager = Pager::open_storage(disk.clone(), &roomy).unwrap();
        (1..20).for_each(|id| commit(&pager, id, Durability::OneFlush));
        assert_eq!(log_bytes(&pager), 2 * MIB);
        let mut txn = pager.begin_write().unwrap();
        let extent = txn.alloc_extent(29 * MIB / toy::PAGE as u64).unwrap();
        txn.write_extent(extent.addr, &vec![1; 29 * MIB as usize])
            .unwrap();
        let content = txn.app().to_vec();
        txn.commit(&content, Durability::Durable).unwrap();
        (20..60).for_each(|id| commit(&pager, id, Durability::OneFlush));
        assert_eq!(log_bytes(&pager), expected);
        let before = pager.metrics().appends;
        (60..100).for_each(|id| commit(&pager, id, Durability::OneFlush));
        assert!(pager.metrics().appends - before > 30);
        assert_eq!(id_of(pager.begin_read().unwrap().app()), 99);
    }
}

/// Without the lock file, the newest commits are only in the redo log. Opening the file must write a meta record for
/// them.
#[test]
fn opening_after_a_power_cut_records_the_commits_of_the_log() {
    tidalite_testkit::watch();
    let disk = Arc::new(SimDisk::new());
    // Every commit stores its time in a separate block.
    let noting = Options {
        clock_step: Duration::from_nanos(1),
        ..options()
    };
    let pager = Pager::open_storage(disk.clone(), &noting).unwrap();
    for id in 1..50 {
        commit(&pager, id, Durability::OneFlush);
    }
    let seen = pager.txn_at(i64::MAX).unwrap();
    let disk = after_power_cut(&disk);
    let again = open(&disk);
    assert!(again.recovery().replayed > 10, "{:?}", again.recovery());
    assert_eq!(
        (newest(&again), again.txn_at(i64::MAX).unwrap()),
        (49, seen)
    );
    // For all earlier commit times, the two handles must report the same commits.
    let mut time = seen.unwrap().1;
    for _ in 0..40 {
        let (before, after) = (pager.txn_at(time - 1), again.txn_at(time - 1));
        assert_eq!(before.as_ref().unwrap(), after.as_ref().unwrap());
        time = before.unwrap().unwrap().1;
    }
    drop(again);
    let again = open(&disk);
    assert_eq!(again.recovery(), tidalite_pager::Recovery::default());
    commit(&again, 50, Durability::Durable);
    assert_eq!(newest(&again), 50);
}

#[test]
fn closing_leaves_nothing_in_the_log_and_dropping_loses_nothing() {
    tidalite_testkit::watch();
    for closes in [true, false] {
        let (disk, pager) = filled(30, Durability::OneFlush);
        if closes {
            pager.close().unwrap();
        } else {
            drop(pager);
        }
        let again = open(&after_power_cut(&disk));
        assert_eq!(again.recovery().replayed == 0, closes);
        assert_eq!(newest(&again), 29);
    }
}

#[test]
fn a_read_only_handle_overlays_the_log_and_writes_nothing() {
    let (disk, _pager) = filled(50, Durability::OneFlush);
    let (disk, memory) = (after_power_cut(&disk), LockMemory::new());
    let before = disk.image();
    let reads = Options {
        read_only: true,
        ..options()
    };
    let open =
        |options: &Options| Pager::open_storage_with(disk.clone(), &memory, options).unwrap();
    let (one, two) = (open(&reads), open(&reads));
    assert_eq!([newest(&one), newest(&two)], [49, 49]);
    assert!(disk.image() == before, "something was written");
    // A writer that opens the file while readers have it open first writes a meta record for the commits in the redo
    // log. The readers' snapshots must not change.
    let held = one.begin_read().unwrap();
    let writer = open(&options());
    assert_eq!(newest(&writer), 49);
    for id in 50..90 {
        commit(&writer, id, Durability::OneFlush);
    }
    assert_eq!(id_of(held.app()), 49);
    read(&held, &root_of(held.app()), &mut |_, _| {}).unwrap();
    assert_eq!([newest(&one), newest(&two), newest(&writer)], [89, 89, 89]);
    read(&held, &root_of(held.app()), &mut |_, _| {}).unwrap();
}

/// Damages each block of the redo log in turn. A `Durable` commit has two copies of each block and must not be lost.
/// If a `OneFlush` commit with later commits is damaged, opening must go back to the commit before it and report the
/// loss.
#[test]
fn one_damaged_block_undoes_no_durable_commit() {
    tidalite_testkit::watch();
    for durability in [Durability::Durable, Durability::OneFlush] {
        let (disk, pager) = filled(40, durability);
        let txn = pager.begin_read().unwrap().txn();
        let image = disk.image();
        let (at, blocks) = log_of(&image);
        assert!(blocks > 20, "{blocks} blocks");
        for block in 0..blocks {
            let mut damaged = image.clone();
            damaged[at + block * BLOCK + 100] ^= 4;
            let accepting = Options {
                accept_lost_commits: true,
                ..options()
            };
            let disk = Arc::new(SimDisk::from_image(damaged));
            let pager = Pager::open_storage(disk, &accepting).unwrap();
            let found = newest(&pager);
            let told = pager.recovery().lost.map(|lost| lost.newest);
            if durability == Durability::Durable {
                assert_eq!((found, told), (39, None), "block {block}");
            } else if found < 38 {
                assert_eq!(told, Some(txn), "block {block}");
            } else {
                // A damaged last flush looks like a flush that was not completed.
                assert_eq!(told, None, "block {block} of {blocks}, {found}");
            }
            commit(&pager, 100, Durability::Durable);
            assert_eq!(newest(&pager), 100);
        }
    }
}

/// A page in the redo log is rebuilt from its base page. If the base page is damaged, reading the rebuilt page must
/// return an error; all other pages are intact.
#[test]
fn a_damaged_base_page_is_reported_when_it_is_read() {
    let (disk, pager) = filled(30, Durability::Durable);
    pager.checkpoint().unwrap();
    let root = root_of(pager.begin_read().unwrap().app());
    commit(&pager, 30, Durability::Durable);
    let mut image = disk.image();
    image[root.addr as usize + toy::PAGE - 1] ^= 1;
    let pager = open(&Arc::new(SimDisk::from_image(image)));
    assert!(pager.recovery().replayed > 0);
    let reader = pager.begin_read().unwrap();
    assert_eq!(id_of(reader.app()), 30);
    assert!(read(&reader, &root_of(reader.app()), &mut |_, _| {}).is_err());
}

/// Two handles write in turn, as two processes would. Each handle must see the commits of the other handle in the
/// redo log, whether the other handle was closed or its process killed.
#[test]
fn handles_take_turns_over_one_log() {
    tidalite_testkit::watch();
    let (disk, memory) = (Arc::new(SimDisk::new()), LockMemory::new());
    let open = || Pager::open_storage_with(disk.clone(), &memory, &options()).unwrap();
    let (one, two) = (open(), open());
    let mut id = 0;
    for round in 0..30 {
        for pager in [&one, &two] {
            for _ in 0..1 + round % 5 {
                id += 1;
                commit(pager, id, Durability::OneFlush);
                let seen = [&one, &two].map(|pager| id_of(pager.begin_read().unwrap().app()));
                assert_eq!(seen, [id, id]);
            }
            let power = Pager::open_storage(after_power_cut(&disk), &options()).unwrap();
            assert_eq!(newest(&power), id);
        }
    }
    assert!(one.metrics().appends > 20 && two.metrics().appends > 20);
}

#[test]
fn a_file_that_is_made_shorter_gives_its_log_up() {
    tidalite_testkit::watch();
    let (_, pager) = filled(30, Durability::OneFlush);
    let used = pager.stat().unwrap();
    let mut txn = pager.begin_write().unwrap();
    txn.compact(0);
    let app = txn.app().to_vec();
    txn.commit(&app, Durability::Durable).unwrap();
    for id in 30..33 {
        commit(&pager, id, Durability::Lazy);
        pager.checkpoint().unwrap();
    }
    let less = pager.stat().unwrap();
    let in_use = |stat: &tidalite_pager::Stat| stat.pages_total - stat.pages_free;
    assert!(in_use(&less) + 400 < in_use(&used), "{used:?}, {less:?}");
    assert_eq!(newest(&pager), 32);
}

/// A redo log that was created when the file was long lies at the end of the file. The log must move when the space
/// before it becomes free.
#[test]
fn a_log_at_the_end_of_a_file_does_not_keep_it_long() {
    tidalite_testkit::watch();
    let disk = Arc::new(SimDisk::new());
    let pager = open(&disk);
    commit(&pager, 1, Durability::Durable);
    let mut txn = pager.begin_write().unwrap();
    let extent = txn.alloc_extent((4 << 20) / toy::PAGE as u64).unwrap();
    let app = txn.app().to_vec();
    txn.commit(&app, Durability::Durable).unwrap();
    for id in 2..20 {
        commit(&pager, id, Durability::Durable);
    }
    let (at, _) = log_of(&disk.image());
    assert!(at > 4 << 20, "the log is at byte {at}");
    let mut txn = pager.begin_write().unwrap();
    txn.free_extent(&extent);
    let app = txn.app().to_vec();
    txn.commit(&app, Durability::Durable).unwrap();
    for id in 20..40 {
        commit(&pager, id, Durability::Durable);
    }
    let (at, _) = log_of(&disk.image());
    assert!(at < 1 << 20, "the log is at byte {at}");
    assert!(pager.metrics().appends > 20);
    assert_eq!(newest(&open(&after_power_cut(&disk))), 39);
}

/// As long as the redo log is intact, salvage must begin with the same commit that opening would show.
#[test]
fn salvage_begins_with_the_newest_commit_in_the_log() {
    let (disk, _pager) = filled(50, Durability::Durable);
    for damaged in [false, true] {
        let mut image = disk.image();
        let (at, blocks) = log_of(&image);
        if damaged {
            image[at..at + blocks * BLOCK].fill(7);
        }
        let raw = RawFile::of_storage(Arc::new(SimDisk::from_image(image))).unwrap();
        let state = raw.state().unwrap();
        assert_eq!(id_of(&state.app) == 49, !damaged);
        read(&raw, &root_of(&state.app), &mut |_, _| {}).unwrap();
    }
}

/// A backup has a meta record of its own, and no redo log. It must contain the commits that were only in the redo
/// log.
#[test]
fn a_backup_contains_commits_that_are_only_in_the_log() {
    tidalite_testkit::watch();
    let (_, pager) = filled(50, Durability::Durable);
    let mut image = Vec::new();
    pager.copy_image(&mut image, &mut |_, _, _| Ok(())).unwrap();
    commit(&pager, 50, Durability::Durable);
    let copy = open(&Arc::new(SimDisk::from_image(image)));
    assert_eq!(copy.recovery().replayed, 0);
    assert_eq!(newest(&copy), 49);
    commit(&copy, 51, Durability::Durable);
    assert_eq!((newest(&copy), newest(&pager)), (51, 50));
    assert!(copy.begin_read().unwrap().txn() > TxnId(1));
}
