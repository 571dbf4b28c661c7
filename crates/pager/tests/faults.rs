//! Tests with a simulated disk that fails at every single call in turn, once or from then on: it is full, or has
//! errors, short writes, or failing syncs. The operations include all kinds of commits, tickets, pins, readers,
//! compaction and images. A failure either rolls a transaction back or poisons the file. The commit found later is
//! exactly the acknowledged one, or a later commit with a meta record. Another test flips bits, which must be
//! repaired or reported.

use crate::harness::days::{Day, Tally, at_every_call, undisturbed};
use crate::harness::faulty::Step::{
    Check, Checkpoint, Commit, Compact, Doze, GoOn, Hold, HoldEvictable, Image, LetGo, Park, Pin,
    Read, RollBack, Savepoint, Small, Sync, Ticket, Unpark, Unpin, Wait,
};
use crate::toy::{
    self, Content, app, apply, changes, is_disk_error, options, problems, read, root_of,
};
use std::sync::Arc;
use tidalite_pager::Durability::{Durable, Lazy, OneFlush};
use tidalite_pager::seeded::Bug;
use tidalite_pager::{DiskError, Durability, Error, Pager, Storage};
use tidalite_testkit::rng::Rng;
use tidalite_testkit::{Deliberate, Fault, FaultKind, Mistake, Monitor, SimDisk};

fn open(disk: &Arc<SimDisk>) -> Result<Pager, Error> {
    let monitor = Monitor::new(Arc::clone(disk) as Arc<dyn Storage>);
    Pager::open_storage(monitor, &options())
}

/// Returns the bytes of a disk after some commits, and the contents of the last commit.
fn prepared(seed: u64, commits: u64) -> (Vec<u8>, Content) {
    let disk = Arc::new(SimDisk::new());
    let pager = open(&disk).unwrap();
    let mut rng = Rng::new(seed);
    let mut content = vec![0; toy::SLOTS];
    for id in 1..=commits {
        commit(&pager, &mut rng, id, Durability::Durable, &mut content).unwrap();
    }
    // Closing empties the redo log, so that damage cannot be repaired from the log.
    pager.close().unwrap();
    (disk.image(), content)
}

/// Commits random changes. `content` is updated only if the commit succeeds.
fn commit(
    pager: &Pager,
    rng: &mut Rng,
    id: u64,
    durability: Durability,
    content: &mut Content,
) -> Result<(), Error> {
    let changes = changes(rng, id);
    let mut txn = pager.begin_write()?;
    let old = root_of(txn.app());
    let root = apply(&mut txn, &old, &changes)?;
    txn.commit(&app(&root, id), durability)?;
    for (slot, version) in changes {
        content[slot] = version;
    }
    Ok(())
}

fn content_of(pager: &Pager) -> Content {
    let reader = pager.begin_read().unwrap();
    read(&reader, &root_of(reader.app()), &mut |_, _| {}).unwrap()
}

/// Length of the redo log in bytes, which is so short that a few commits fill the log.
const LOG_BYTES: u64 = 16 << 10;

/// Operations with small commits that fill the redo log several times.
const LOGGED: Day = Day {
    before: &[
        Commit(Durable),
        Small(OneFlush),
        Small(OneFlush),
        Small(Durable),
        Small(Lazy),
    ],
    by_power_cut: false,
    steps: &[
        Small(OneFlush),
        Small(OneFlush),
        Hold,
        Small(Durable),
        Small(OneFlush),
        Ticket(OneFlush),
        Ticket(Durable),
        Ticket(OneFlush),
        Wait,
        Small(OneFlush),
        HoldEvictable,
        Small(Durable),
        Small(Durable),
        Wait,
        Read,
        Small(OneFlush),
        Small(OneFlush),
        Small(OneFlush),
        Small(Durable),
        Small(OneFlush),
        Wait,
        Commit(Lazy),
        Small(OneFlush),
        Small(Durable),
        LetGo,
        Small(OneFlush),
        Small(Durable),
        Checkpoint,
        Small(OneFlush),
        Compact(Durable),
        Ticket(OneFlush),
        Ticket(Durable),
    ],
    sync_bytes: None,
    flusher: false,
    log_bytes: LOG_BYTES,
    seed: 41,
};

/// Operations that start with a redo log that opening must replay and for which it must write a meta record.
const SETTLED: Day = Day {
    by_power_cut: true,
    steps: &[
        Small(OneFlush),
        Small(Lazy),
        Hold,
        Small(Durable),
        Pin("a"),
        Small(OneFlush),
        Read,
    ],
    before: &[
        Commit(Durable),
        Pin("b"),
        Small(OneFlush),
        Small(OneFlush),
        Small(Durable),
        Small(Durable),
        Small(OneFlush),
        Small(Lazy),
        Small(Lazy),
    ],
    ..LOGGED
};

/// All other operations, with automatic flushes of lazy commits.
const MIXED: Day = Day {
    before: &[
        Commit(Durable),
        Pin("a"),
        Commit(Lazy),
        Commit(Durability::None),
        Commit(Lazy),
    ],
    steps: &[
        Hold,
        Commit(Lazy),
        HoldEvictable,
        Commit(Durability::None),
        Commit(Lazy),
        Park,
        Ticket(Lazy),
        Ticket(Durable),
        Savepoint(Lazy),
        Read,
        Wait,
        Pin("b"),
        Commit(Durability::None),
        Image,
        Compact(Durable),
        Commit(Lazy),
        Unpark,
        RollBack,
        GoOn(Lazy),
        Hold,
        GoOn(Durable),
        Unpin("a"),
        Ticket(Durability::None),
        Wait,
        Compact(Lazy),
        Read,
        LetGo,
        Wait,
        Sync,
        Commit(Lazy),
        Pin("b"),
        Compact(Durable),
        Check,
        Commit(OneFlush),
        Image,
        Ticket(OneFlush),
        Commit(Lazy),
    ],
    by_power_cut: false,
    sync_bytes: Some(12 << 10),
    flusher: false,
    log_bytes: LOG_BYTES,
    seed: 35,
};

/// Lazy commits that a background thread makes durable between and during commits.
const FLUSHED: Day = Day {
    before: &[Commit(Durable), Small(Lazy)],
    steps: &[
        Small(Lazy),
        Small(Lazy),
        Doze,
        Small(Lazy),
        Small(Lazy),
        Hold,
        Pin("a"),
        Small(Lazy),
        Doze,
        Small(Durability::None),
        Ticket(Durable),
        Doze,
        Small(Lazy),
        Read,
        Compact(Lazy),
        Small(Lazy),
    ],
    sync_bytes: None,
    flusher: true,
    ..LOGGED
};

/// Runs the first three days (sequences of operations) with every call failing in turn, once and from then on.
fn at_every_call_of_all(kind: FaultKind) -> Tally {
    let mut tally = Tally::default();
    for (day, calls_min) in [(&LOGGED, 90), (&SETTLED, 20), (&MIXED, 150)] {
        for forever in [false, true] {
            let calls = at_every_call(day, kind, forever, &mut tally);
            assert!(calls > calls_min, "{kind:?}: only {calls} calls to fail");
        }
    }
    tally
}

/// If any call fails while a new file is created, opening must return an error and have no other effect.
#[test]
fn a_file_that_cannot_be_made() {
    for kind in [
        FaultKind::DiskFull,
        FaultKind::Medium,
        FaultKind::ShortWrite,
        FaultKind::SyncFails,
    ] {
        let made = |at_call: u64| {
            let disk = Arc::new(SimDisk::new());
            disk.set_fault(Some(Fault {
                at_call,
                forever: true,
                kind,
            }));
            let opened = open(&disk);
            let error = opened.err();
            assert!(
                error.as_ref().is_none_or(is_disk_error),
                "{kind:?}: {error:?}"
            );
            error.is_none()
        };
        let failed = (0..).take_while(|&at_call| !made(at_call)).count();
        assert!(failed >= 3, "{kind:?}: only {failed} calls to fail");
    }
}

#[test]
fn the_days_use_the_log_and_fill_it() {
    let logged = undisturbed(&LOGGED);
    let endless = undisturbed(&Day {
        log_bytes: 4 << 20,
        ..LOGGED
    });
    // With a very long redo log, fewer meta records are written: some commits above wrote a meta record only because
    // the log was full.
    assert!(logged.appends >= 10 && logged.records >= endless.records + 2);
}

#[test]
fn a_full_disk_at_every_write() {
    let tally = at_every_call_of_all(FaultKind::DiskFull);
    assert!(tally.rolled_back > 50 && tally.evicted > 5 && tally.lazy_survived > 50);
    assert!(tally.images > 50, "the file was copied");
}

#[test]
fn an_error_of_the_medium_at_every_write() {
    let tally = at_every_call_of_all(FaultKind::Medium);
    assert!(tally.rolled_back > 50 && tally.poisoned > 50 && tally.not_opened > 5);
}

#[test]
fn half_of_every_write() {
    let tally = at_every_call_of_all(FaultKind::ShortWrite);
    assert!(tally.rolled_back > 50 && tally.poisoned > 50 && tally.not_opened > 5);
}

#[test]
fn every_sync_fails() {
    let tally = at_every_call_of_all(FaultKind::SyncFails);
    assert!(tally.rolled_back == 0 && tally.poisoned > 50 && tally.not_opened > 5);
}

#[test]
fn a_thread_flushes_while_calls_fail() {
    let kinds = [FaultKind::DiskFull, FaultKind::Medium, FaultKind::SyncFails];
    for kind in kinds {
        let mut tally = Tally::default();
        for forever in [false, true] {
            let calls = at_every_call(&FLUSHED, kind, forever, &mut tally);
            assert!(calls > 30, "{kind:?}: only {calls} calls to fail");
        }
        assert!(tally.poisoned > 10);
    }
}

/// If truncation fails, the file must keep the space, and no commit may fail.
#[test]
fn a_file_that_cannot_be_cut() {
    let mut tally = Tally::default();
    for forever in [false, true] {
        let calls = at_every_call(&MIXED, FaultKind::CutFails, forever, &mut tally);
        // The sequence of operations must cause at least this many truncations.
        assert!(calls >= 5, "only {calls} calls to fail");
    }
    assert_eq!(tally.rolled_back + tally.poisoned + tally.not_opened, 0);
}

#[test]
fn a_failed_sync_poisons_until_reopened() {
    let (image, mut content) = prepared(5, 3);
    let disk = Arc::new(SimDisk::from_image(image));
    let pager = open(&disk).unwrap();
    let mut rng = Rng::new(1);
    commit(&pager, &mut rng, 4, Durability::Durable, &mut content).unwrap();
    disk.set_fault(Some(Fault {
        at_call: 0,
        forever: false,
        kind: FaultKind::SyncFails,
    }));
    let mut at_call = 0;
    loop {
        let failed = commit(&pager, &mut rng, 5, Durability::Durable, &mut content);
        match failed {
            Err(Error::Disk(DiskError::Io { .. })) => break,
            Err(error) => panic!("{error}"),
            Ok(()) => at_call += 1,
        }
        disk.set_fault(Some(Fault {
            at_call,
            forever: false,
            kind: FaultKind::SyncFails,
        }));
    }
    let again = commit(&pager, &mut rng, 6, Durability::None, &mut content);
    assert!(matches!(again, Err(Error::Poisoned { .. })));
    assert_eq!(content_of(&pager), content, "reading goes on");
    drop(pager);
    let pager = open(&disk).unwrap();
    commit(&pager, &mut rng, 7, Durability::Durable, &mut content).unwrap();
}

#[test]
fn each_bit_flip_is_healed_or_reported() {
    let (image, content) = prepared(9, 40);
    let probe =
        Pager::open_storage(Arc::new(SimDisk::from_image(image.clone())), &options()).unwrap();
    let mut covered = vec![false; image.len()];
    let check = probe.begin_check().unwrap();
    let root = root_of(check.snapshot().app());
    read(check.snapshot(), &root, &mut |addr, bytes| {
        covered[addr as usize..(addr + bytes) as usize].fill(true);
    })
    .unwrap();
    drop(check);
    let mut rng = Rng::new(3);
    for number in 0..4000 {
        let at = rng.index(image.len());
        let disk = Arc::new(SimDisk::from_image(image.clone()));
        disk.flip_bit(at, rng.below(8) as u8);
        let read_only = number % 2 == 1;
        let options = tidalite_pager::Options {
            read_only,
            ..options()
        };
        let pager = Pager::open_storage(disk, &options).unwrap();
        let found = problems(&pager);
        let noted = pager
            .begin_check()
            .is_ok_and(|check| !check.finish().notes.is_empty());
        let reader = pager.begin_read().unwrap();
        let answer = read(&reader, &root_of(reader.app()), &mut |_, _| {});
        match answer {
            Ok(answer) => assert_eq!(answer, content, "flip at byte {at}"),
            Err(error) => assert!(matches!(error, Error::Corrupt(_)), "{error}"),
        }
        let clean = found.is_ok_and(|problems| problems.is_empty());
        if at < 24 << 10 {
            // Damage in the head is harmless: a read-only handle must report the damage, and a writer must repair it
            // at opening.
            let told = !clean || noted;
            assert_eq!(told, read_only, "flip at byte {at} of the head");
        } else if covered[at] {
            assert!(!clean, "flip at byte {at} is not reported");
        }
    }
}

/// The checks at the end of a sequence of operations, not the monitor, must find these bugs.
#[test]
fn deliberate_bugs_are_found_by_failing_calls() {
    let of_pager = Deliberate::Pager;
    let ignored = Deliberate::Storage(Mistake::IgnoreFailedSync);
    let unsynced = Deliberate::Storage(Mistake::LogUnsynced);
    for (bug, day, kind) in [
        (ignored, &LOGGED, FaultKind::SyncFails),
        (
            of_pager(Bug::GrowthNotDurable),
            &LOGGED,
            FaultKind::DiskFull,
        ),
        (unsynced, &LOGGED, FaultKind::ShortWrite),
        (of_pager(Bug::LogIgnored), &LOGGED, FaultKind::ShortWrite),
        (
            of_pager(Bug::UnsyncedMetaBeforeData),
            &SETTLED,
            FaultKind::Medium,
        ),
    ] {
        bug.switch(true);
        let days = || at_every_call(day, kind, true, &mut Tally::default());
        let found = std::panic::catch_unwind(days);
        bug.switch(false);
        assert!(found.is_err(), "{bug} is not found");
    }
}
