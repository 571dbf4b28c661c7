//! Tests of the guarantees of each kind of commit, without crashes: tickets, lazy commits across reopening, automatic
//! syncs, failed syncs. (For the redo log see tests/redo.rs, for crashes tests/crash.rs and tests/lazy.rs.)

use crate::toy::{self, SLOTS, app, apply, id_of, options, problems, read, root_of};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tidalite_pager::{
    Durability, Error, Kind, LockMemory, Options, PageWrite, Pager, Phase, Ticket, Verifier,
    WriteTxn,
};
use tidalite_testkit::rng::Rng;
use tidalite_testkit::{Fault, FaultKind, Replay, SimDisk, Tap};

fn open(disk: &Arc<SimDisk>, options: &Options) -> Pager {
    Pager::open_storage(disk.clone(), options).unwrap()
}

fn commit(pager: &Pager, id: u64, durability: Durability) -> Ticket {
    commit_in(pager.begin_write().unwrap(), id, durability)
}

fn commit_in(mut txn: WriteTxn, id: u64, durability: Durability) -> Ticket {
    let old = root_of(txn.app());
    let slot = (id * 7 % toy::SLOTS as u64) as usize;
    let root = apply(&mut txn, &old, &[(slot, id)]).unwrap();
    txn.commit_ticket(&app(&root, id), durability).unwrap()
}

#[test]
fn tickets_of_many_commits_share_one_flush() {
    tidalite_testkit::watch();
    let disk = Arc::new(SimDisk::new());
    let pager = open(&disk, &options());
    commit(&pager, 1, Durability::Durable).wait().unwrap();
    let before = pager.metrics();
    let tickets: Vec<_> = (2..12)
        .map(|id| commit(&pager, id, Durability::Durable))
        .collect();
    // A durable commit is invisible until it is durable, although the next writer builds on it.
    assert_eq!(id_of(pager.begin_read().unwrap().app()), 1);
    assert_eq!(id_of(pager.begin_write().unwrap().app()), 11);
    assert!(tickets.iter().all(|ticket| !ticket.is_durable()));
    tickets[3].wait().unwrap();
    assert!(tickets.iter().all(Ticket::is_durable));
    assert_eq!(id_of(pager.begin_read().unwrap().app()), 11);
    let after = pager.metrics();
    assert_eq!(after.records - before.records, 1);
    assert_eq!(after.commits_durable - before.commits_durable, 10);
    for phase in [Phase::WaitForWriter, Phase::Write, Phase::SyncMeta] {
        assert!(
            after.phase(phase).count > before.phase(phase).count,
            "{phase:?}"
        );
    }
    assert_eq!(problems(&pager).unwrap(), [""; 0]);
}

/// Each phase of a commit must have a histogram. Its count is the number of commits, meta records or flushes that had
/// this phase.
#[test]
fn every_phase_of_a_commit_has_its_histogram() {
    tidalite_testkit::watch();
    let options = tidalite_pager::Options {
        log_bytes: 64 << 10,
        ..options()
    };
    let pager = open(&Arc::new(SimDisk::new()), &options);
    for id in 1..60 {
        let kind = [Durability::Durable, Durability::OneFlush, Durability::Lazy][id as usize % 3];
        commit(&pager, id, kind).wait().unwrap();
    }
    let metrics = pager.metrics();
    let count = |phase: Phase| metrics.phase(phase).count;
    assert!(metrics.records > 0 && metrics.appends > 0);
    for (phase, expected) in [
        (Phase::WaitForWriter, metrics.commits),
        (Phase::Commit, metrics.commits_durable),
        (Phase::SyncMeta, metrics.records),
        (Phase::Log, metrics.appends),
    ] {
        assert_eq!(count(phase), expected, "{phase:?}");
    }
    // One commit may run through these phases more than once.
    assert!(count(Phase::Seal) >= metrics.commits && count(Phase::Write) > 0);
    assert!(count(Phase::SyncData) > 0);
    assert!(count(Phase::MetaWrite) >= metrics.records && count(Phase::Publish) > 0);
    for (phase, times) in &metrics.phases {
        let in_buckets: u64 = times.buckets.iter().map(|bucket| bucket.1).sum();
        assert_eq!(in_buckets, times.count, "{phase:?}");
    }
}

#[test]
fn a_check_while_commits_wait_for_their_sync_is_clean() {
    tidalite_testkit::watch();
    let pager = open(&Arc::new(SimDisk::new()), &options());
    commit(&pager, 1, Durability::Durable).wait().unwrap();
    for id in 2..30 {
        // A commit with `Durability::None` on top of waiting commits has no meta record.
        let last = if id % 3 == 0 {
            Durability::None
        } else {
            Durability::Durable
        };
        let first = commit(&pager, id, Durability::Durable);
        let second = commit(&pager, id + 100, last);
        assert_eq!(problems(&pager).unwrap(), [""; 0]);
        drop((first, second));
        assert_eq!(id_of(pager.begin_read().unwrap().app()), id + 100);
    }
}

/// After a failed sync, the system's cache contains blocks of the redo log that no later sync writes to the medium.
/// The commit in these blocks was not acknowledged. The next open may still find the commit, and must then write it
/// again completely before any commit builds on it.
#[test]
fn a_commit_whose_barrier_failed_is_written_again() {
    tidalite_testkit::watch();
    for durability in [Durability::Durable, Durability::OneFlush] {
        let (disk, memory) = (Arc::new(SimDisk::new()), LockMemory::new());
        let open = || Pager::open_storage_with(disk.clone(), &memory, &options()).unwrap();
        let pager = open();
        for id in 1..30 {
            commit(&pager, id, durability).wait().unwrap();
        }
        assert!(pager.metrics().appends > 10);
        let ticket = commit(&pager, 30, durability);
        disk.set_fault(Some(Fault {
            at_call: 0,
            forever: true,
            kind: FaultKind::SyncFails,
        }));
        assert!(ticket.wait().is_err());
        disk.set_fault(None);
        drop((ticket, pager));
        let pager = open();
        assert_eq!(id_of(pager.begin_read().unwrap().app()), 30);
        drop(pager);
        // The commit must survive, whichever of the writes before the failed sync are lost.
        let replay = Replay::at_end(&disk.recording());
        for seed in 0..40 {
            let image = replay.power_cut(&mut Rng::new(seed));
            let disk = Arc::new(SimDisk::from_image(image));
            let pager = Pager::open_storage(disk, &options()).unwrap();
            let reader = pager.begin_read().unwrap();
            assert_eq!(id_of(reader.app()), 30);
            read(&reader, &root_of(reader.app()), &mut |_, _| {}).unwrap();
            drop(reader);
            assert_eq!(problems(&pager).unwrap(), [""; 0]);
        }
    }
}

/// The system reports a lost write to only one of the concurrent syncs. Here the sync of a writer that grows the file
/// fails, and the sync of the concurrent flush succeeds. The flush must not acknowledge its commits.
#[test]
fn a_flush_beside_a_sync_that_failed_acknowledges_nothing() {
    tidalite_testkit::watch();
    for durability in [Durability::Durable, Durability::OneFlush] {
        let (disk, memory) = (Arc::new(SimDisk::new()), LockMemory::new());
        let tap = Tap::new(disk.clone(), &disk, &memory, Vec::new());
        let pager = Pager::open_storage_with(tap.clone(), &memory, &options()).unwrap();
        commit(&pager, 1, durability).wait().unwrap();
        let ticket = commit(&pager, 2, durability);
        let (beside, failing, failed) = (pager.clone(), disk.clone(), Arc::default());
        let seen: Arc<Mutex<Option<String>>> = Arc::clone(&failed);
        tap.set_hook(Some(Box::new(move || {
            failing.set_fault(Some(Fault {
                at_call: 0,
                forever: true,
                kind: FaultKind::SyncFails,
            }));
            let mut txn = beside.begin_write().unwrap();
            let mut written = || {
                let page = txn.new_page(Kind::KvLeaf, 1)?;
                txn.seal_page(&page)
            };
            let grown = (0..200).find_map(|_| written().err());
            failing.set_fault(None);
            *seen.lock().unwrap() = grown.map(|error| error.to_string());
        })));
        let waited = ticket.wait();
        assert!(failed.lock().unwrap().is_some(), "no sync beside the flush");
        assert!(matches!(waited, Err(Error::Poisoned { .. })), "{waited:?}");
        tap.set_hook(None);
        drop((ticket, pager, tap));
        // The database may be at either commit: it is unknown whether the data of the second commit reached the
        // medium.
        let pager = open(&Arc::new(SimDisk::from_image(disk.image())), &options());
        assert!(id_of(pager.begin_read().unwrap().app()) <= 2);
    }
}

/// A commit removes a pin and waits for its sync. A lazy commit on top of it is published, so another handle may
/// write. The durable meta record still has the pin, and after a power failure the pin exists again. The other handle
/// must therefore keep the pages of the pinned version.
#[test]
fn another_handle_keeps_what_a_pin_of_the_durable_record_holds() {
    tidalite_testkit::watch();
    let (disk, memory) = (Arc::new(SimDisk::new()), LockMemory::new());
    let open = |memory| Pager::open_storage_with(disk.clone(), memory, &options()).unwrap();
    let first = open(&memory);
    for id in 1..40 {
        commit(&first, id, Durability::Durable).wait().unwrap();
    }
    let mut txn = first.begin_write().unwrap();
    txn.pin("old").unwrap();
    let content = txn.app().to_vec();
    txn.commit(&content, Durability::Durable).unwrap();
    let pinned = first.begin_read_at("old").unwrap().unwrap();
    let then = read(&pinned, &root_of(pinned.app()), &mut |_, _| {}).unwrap();
    drop(pinned);
    for id in 40..120 {
        commit(&first, id, Durability::Durable).wait().unwrap();
    }
    let mut txn = first.begin_write().unwrap();
    assert!(txn.unpin("old").unwrap());
    let content = txn.app().to_vec();
    let waiting = txn.commit_ticket(&content, Durability::Durable).unwrap();
    let lazy = commit(&first, 120, Durability::Lazy);
    let second = open(&memory);
    for id in 121..200 {
        drop(commit(&second, id, Durability::Lazy));
    }
    // Simulates a power failure at which all writes have reached the medium, but the lock area is lost.
    let image = Arc::new(SimDisk::from_image(disk.image()));
    let pager = Pager::open_storage(image, &options()).unwrap();
    let pinned = pager.begin_read_at("old").unwrap().expect("still pinned");
    let found = read(&pinned, &root_of(pinned.app()), &mut |_, _| {});
    assert_eq!(found.unwrap(), then);
    drop((waiting, lazy, second));
}

#[test]
fn threads_commit_together() {
    tidalite_testkit::watch();
    let pager = open(&Arc::new(SimDisk::new()), &options());
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let pager = pager.clone();
            scope.spawn(move || {
                for i in 0..25 {
                    let ticket = commit(&pager, thread * 25 + i + 1, Durability::Durable);
                    ticket.wait().unwrap();
                    let shown = pager.begin_read().unwrap().txn();
                    assert!(shown >= ticket.info().txn && ticket.is_durable());
                }
            });
        }
    });
    let metrics = pager.metrics();
    assert_eq!(metrics.commits_durable, 200);
    assert!(metrics.records <= 200);
    println!(
        "200 commits, {} records, {} syncs of which {} saved",
        metrics.records, metrics.syncs, metrics.syncs_saved
    );
    assert_eq!(problems(&pager).unwrap(), [""; 0]);
}

#[test]
fn a_lazy_commit_outlives_its_handle_and_none_does_not() {
    tidalite_testkit::watch();
    let name = format!("tidalite-lazy-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("a.tdl");
    // The data of these commits are in the meta record itself, so no pages need verification.
    let options = Options {
        verifier: Some(Verifier::new(|_| Ok(()))),
        ..Options::default()
    };
    let open = || Pager::open(&path, &options).unwrap();
    let page = |pager: &Pager, id: u8, durability| {
        let txn = pager.begin_write().unwrap();
        txn.commit(&[id], durability).unwrap();
    };
    let pager = open();
    page(&pager, 1, Durability::Durable);
    page(&pager, 2, Durability::Lazy);
    page(&pager, 3, Durability::Lazy);
    // A commit with `Durability::None` neither waits for a sync nor causes one.
    let before = pager.metrics().syncs;
    for _ in 0..50 {
        page(&pager, 4, Durability::None);
    }
    assert_eq!(pager.metrics().syncs, before);
    assert_eq!(pager.begin_read().unwrap().app(), [4]);
    pager.close_without_sync();
    let pager = open();
    assert_eq!(pager.begin_read().unwrap().app(), [3]);
    page(&pager, 5, Durability::None);
    pager.close().unwrap();
    // Without the lock area, as after a system crash, only synced commits may remain.
    std::fs::remove_file(folder.join("a.tdl-lock")).unwrap();
    let pager = open();
    assert_eq!(pager.begin_read().unwrap().app(), [5]);
    page(&pager, 6, Durability::Lazy);
    drop(pager);
    std::fs::remove_file(folder.join("a.tdl-lock")).unwrap();
    assert_eq!(open().begin_read().unwrap().app(), [5]);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn lazy_commits_become_durable_by_bytes_by_time_and_in_the_background() {
    tidalite_testkit::watch();
    let by_bytes = Options {
        sync_bytes: Some(3000),
        ..options()
    };
    let pager = open(&Arc::new(SimDisk::new()), &by_bytes);
    let tickets: Vec<_> = (1..8)
        .map(|id| commit(&pager, id, Durability::Lazy))
        .collect();
    assert!(tickets[0].is_durable());
    let by_time = Options {
        sync_after: Some(Duration::from_millis(20)),
        ..options()
    };
    let pager = open(&Arc::new(SimDisk::new()), &by_time);
    let first = commit(&pager, 1, Durability::Lazy);
    std::thread::sleep(Duration::from_millis(30));
    let second = commit(&pager, 2, Durability::Lazy);
    assert!(first.is_durable() && second.is_durable());
    let in_background = Options {
        background_flush: Some(Duration::from_millis(2)),
        ..options()
    };
    let pager = open(&Arc::new(SimDisk::new()), &in_background);
    let ticket = commit(&pager, 1, Durability::Lazy);
    let begun = Instant::now();
    while !ticket.is_durable() {
        assert!(begun.elapsed() < Duration::from_secs(20), "no flush came");
        std::thread::yield_now();
    }
    assert!(pager.metrics().records > 0);
}

/// A flush writes a meta record because many commits wait for the next meta record, or because a commit was too large
/// for the redo log. Other commits are made during that flush. Later flushes must append to the redo log again.
#[test]
fn the_log_goes_on_after_a_record_that_others_did_not_wait_for() {
    tidalite_testkit::watch();
    for large in [false, true] {
        let (disk, memory) = (Arc::new(SimDisk::new()), LockMemory::new());
        let tap = Tap::new(disk.clone(), &disk, &memory, Vec::new());
        let options = Options {
            shrink_bytes: 0,
            log_bytes: 48 << 10,
            ..options()
        };
        let pager = Pager::open_storage_with(tap.clone(), &memory, &options).unwrap();
        for id in 1..4 {
            commit(&pager, id, Durability::OneFlush).wait().unwrap();
        }
        let appends = pager.metrics().appends;
        assert!(appends > 0, "there is a log");
        // Makes a commit inside each sync, unless a transaction is open. The ticket of the commit is kept, since
        // dropping it here would wait for the running flush.
        let id = Arc::new(AtomicU64::new(4));
        let tickets: Arc<Mutex<Vec<Ticket>>> = Arc::default();
        let (beside, next, kept) = (pager.clone(), id.clone(), tickets.clone());
        tap.set_hook(Some(Box::new(move || {
            if let Some(txn) = beside.try_begin_write().unwrap() {
                let id = next.fetch_add(1, Ordering::Relaxed);
                kept.lock()
                    .unwrap()
                    .push(commit_in(txn, id, Durability::OneFlush));
            }
        })));
        let before = pager.metrics();
        if large {
            let mut txn = pager.begin_write().unwrap();
            for _ in 0..100 {
                let page = txn.new_page(Kind::KvLeaf, 1).unwrap();
                txn.seal_page(&page).unwrap();
            }
            let content = txn.app().to_vec();
            let ticket = txn.commit_ticket(&content, Durability::OneFlush).unwrap();
            ticket.wait().unwrap();
        }
        for _ in 0..40 {
            let id = id.fetch_add(1, Ordering::Relaxed);
            commit(&pager, id, Durability::OneFlush).wait().unwrap();
        }
        tap.set_hook(None);
        let after = pager.metrics();
        let (records, appends) = (
            after.records - before.records,
            after.appends - before.appends,
        );
        assert!(
            appends > 2 * records,
            "{records} records, {appends} appends, large: {large}"
        );
        drop(pager);
        let pager = open(&Arc::new(SimDisk::from_image(disk.image())), &options);
        let found = id_of(pager.begin_read().unwrap().app());
        assert!(found + 2 >= id.load(Ordering::Relaxed), "{found}");
    }
}

/// The redo log has only one copy of the blocks of `OneFlush` commits, so damage to a block undoes such a commit. A
/// commit with a pin must not be undone that way.
#[test]
fn a_commit_with_a_pin_does_not_go_to_the_log() {
    tidalite_testkit::watch();
    let pager = open(&Arc::new(SimDisk::new()), &options());
    for id in 1..6 {
        commit(&pager, id, Durability::OneFlush).wait().unwrap();
    }
    let before = pager.metrics();
    assert!(before.appends > 0, "there is a log");
    let mut txn = pager.begin_write().unwrap();
    txn.pin("kept").unwrap();
    let content = txn.app().to_vec();
    txn.commit(&content, Durability::OneFlush).unwrap();
    let after = pager.metrics();
    assert_eq!(after.appends, before.appends);
    assert!(after.records > before.records);
}

/// Pages that a lazy commit has freed must become reusable after durable commits have followed it.
#[test]
fn pages_of_a_lazy_commit_come_back_after_durable_ones() {
    tidalite_testkit::watch();
    let pending = |lazy: bool| {
        let pager = open(&Arc::new(SimDisk::new()), &options());
        let everything = |id: u64, durability| {
            let mut txn = pager.begin_write().unwrap();
            let mut root = root_of(txn.app());
            let slots: Vec<_> = (0..SLOTS).map(|slot| (slot, id)).collect();
            for part in slots.chunks(40) {
                root = apply(&mut txn, &root, part).unwrap();
            }
            txn.commit(&app(&root, id), durability).unwrap();
        };
        everything(1, Durability::Durable);
        if lazy {
            everything(2, Durability::Lazy);
        }
        (3..9).for_each(|id| everything(id, Durability::Durable));
        pager.stat().unwrap().pages_pending
    };
    let (without, with) = (pending(false), pending(true));
    assert!(
        with <= without + SLOTS as u64 / 8,
        "{with}, {without} without"
    );
}
