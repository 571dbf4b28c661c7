//! Tests of durability and waiting across transactions: syncs that cover commits of other handles, tickets with
//! timeouts, the background flusher, and the writer lock after a failed sync.

use crate::toy::{self, app, apply, id_of, options, read, root_of};
use std::fs;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};
use tidalite_pager::{
    DiskError, Durability, Error, LockMemory, MemoryStorage, Options, PageWrite, Pager, Ticket,
    WriteTxn,
};
use tidalite_testkit::rng::Rng;
use tidalite_testkit::{Fault, FaultKind, Replay, SimDisk};

fn open(disk: &Arc<SimDisk>, memory: &LockMemory, options: &Options) -> Pager {
    Pager::open_storage_with(disk.clone(), memory, options).unwrap()
}

fn commit(pager: &Pager, id: u64, durability: Durability) -> Ticket {
    let mut txn = pager.begin_write().unwrap();
    let old = root_of(txn.app());
    let slot = (id * 7 % toy::SLOTS as u64) as usize;
    let root = apply(&mut txn, &old, &[(slot, id)]).unwrap();
    txn.commit_ticket(&app(&root, id), durability).unwrap()
}

fn fail(disk: &SimDisk, at_call: u64, kind: FaultKind) {
    disk.set_fault(Some(Fault {
        at_call,
        forever: true,
        kind,
    }));
}

/// Asserts that after any power failure at this moment, commit `id` or a later commit is found.
fn expect_kept(disk: &SimDisk, id: u64) {
    let replay = Replay::at_end(&disk.recording());
    for seed in 0..40 {
        let image = replay.power_cut(&mut Rng::new(seed));
        let pager = Pager::open_storage(Arc::new(SimDisk::from_image(image)), &options()).unwrap();
        let reader = pager.begin_read().unwrap();
        let found = id_of(reader.app());
        assert!(found >= id, "seed {seed}: commit {found} instead of {id}");
        read(&reader, &root_of(reader.app()), &mut |_, _| {}).unwrap();
    }
}

/// A process is killed during the flush of its lazy commit. The next open finds the meta record of that commit,
/// perhaps only in the cache of the operating system. A `sync` must then make everything durable, although this
/// process has committed nothing.
#[test]
fn a_sync_makes_sure_of_the_record_that_was_found() {
    tidalite_testkit::watch();
    let mut found = [0; 3];
    for at_call in 0..8 {
        let (disk, memory) = (Arc::new(SimDisk::new()), LockMemory::new());
        let killed = open(&disk, &memory, &options());
        commit(&killed, 1, Durability::Durable).wait().unwrap();
        drop(commit(&killed, 2, Durability::Lazy));
        fail(&disk, at_call, FaultKind::Killed);
        let _ = killed.sync();
        disk.kill();
        memory.kill_all();
        let area = memory.image();
        drop(killed);
        disk.set_fault(None);
        // Try both: with the unsynced meta record of the lazy commit, and without it.
        let weak = at_call % 2 == 0;
        let memory = match weak {
            true => LockMemory::from_image(&area),
            false => LockMemory::new(),
        };
        let pager = open(&disk, &memory, &options());
        let id = id_of(pager.begin_read().unwrap().app());
        pager.sync().unwrap();
        expect_kept(&disk, id);
        found[id as usize] += 1;
    }
    assert!(found[1] > 0 && found[2] > 0, "{found:?}");
}

/// Closing a file that was only read must write nothing.
#[test]
fn closing_a_file_that_was_only_read_writes_nothing() {
    tidalite_testkit::watch();
    let (disk, memory) = (Arc::new(SimDisk::new()), LockMemory::new());
    let pager = open(&disk, &memory, &options());
    commit(&pager, 1, Durability::Durable).wait().unwrap();
    pager.close().unwrap();
    let pager = open(&disk, &memory, &options());
    let calls = disk.calls();
    drop(pager.begin_read().unwrap());
    pager.clone().close().unwrap();
    assert_eq!(disk.calls(), calls);
    pager.sync().unwrap();
    assert!(disk.calls() > calls);
    let calls = disk.calls();
    pager.sync().unwrap();
    assert_eq!(disk.calls(), calls, "it is known to be on the medium now");
}

#[test]
fn a_sync_covers_what_other_handles_have_committed() {
    tidalite_testkit::watch();
    let (disk, memory) = (Arc::new(SimDisk::new()), LockMemory::new());
    let (a, b) = (
        open(&disk, &memory, &options()),
        open(&disk, &memory, &options()),
    );
    commit(&a, 1, Durability::Durable).wait().unwrap();
    drop(commit(&b, 2, Durability::Durable));
    drop(commit(&a, 3, Durability::Lazy));
    b.sync().unwrap();
    expect_kept(&disk, 3);
    // Syncing commits that another handle has made durable must cost nothing.
    commit(&a, 4, Durability::Durable).wait().unwrap();
    a.checkpoint().unwrap();
    let calls = disk.calls();
    b.sync().unwrap();
    b.checkpoint().unwrap();
    assert_eq!(disk.calls(), calls);
}

/// A thread waits for the ticket of a commit while another transaction is open: one of another handle, or one of the
/// same handle while the commit has no meta record yet. The wait must time out.
#[test]
fn waiting_for_a_ticket_times_out_while_another_writes() {
    tidalite_testkit::watch();
    for (durability, same) in [(Durability::Lazy, false), (Durability::None, true)] {
        let (disk, memory) = (Arc::new(SimDisk::new()), LockMemory::new());
        let pager = open(&disk, &memory, &options());
        let other = open(&disk, &memory, &options());
        let ticket = commit(&pager, 1, durability);
        let txn = if same { &pager } else { &other }.begin_write().unwrap();
        let (tell, told) = channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                let waited = ticket.wait_for(Duration::from_millis(20)).unwrap();
                tell.send(waited).unwrap();
            });
            let waited = told.recv_timeout(Duration::from_secs(10));
            drop(txn);
            assert_eq!(waited, Ok(false), "it waited for the writer");
        });
        assert!(ticket.wait_for(Duration::from_secs(60)).unwrap());
    }
}

/// A commit waits for its flush when a sync of another transaction fails. The handle must not keep the writer lock
/// for a commit that will never be published.
#[test]
fn after_a_failed_sync_no_thread_waits_for_the_writer_lock() {
    tidalite_testkit::watch();
    let (disk, memory) = (Arc::new(SimDisk::new()), LockMemory::new());
    let (a, b) = (
        open(&disk, &memory, &options()),
        open(&disk, &memory, &options()),
    );
    commit(&a, 1, Durability::Durable).wait().unwrap();
    let ticket = commit(&a, 2, Durability::Durable);
    let mut txn = a.begin_write().unwrap();
    let (tell, told) = channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            let begun = b.begin_write_within(Duration::from_secs(20)).err();
            tell.send(begun).unwrap();
        });
        // After this time the other handle waits for the writer lock.
        assert!(told.recv_timeout(Duration::from_millis(100)).is_err());
        fail(&disk, 0, FaultKind::SyncFails);
        let refused = (0..200).find_map(|_| txn.alloc_extent(8).err());
        assert!(
            matches!(refused, Some(Error::Disk(DiskError::Io { .. }))),
            "{refused:?}"
        );
        drop(txn);
        disk.set_fault(None);
        assert!(matches!(ticket.wait(), Err(Error::Poisoned { .. })));
        let begun = told.recv().unwrap();
        assert!(matches!(begun, Some(Error::Poisoned { .. })), "{begun:?}");
    });
}

/// Changes a slot, commits, and continues with the next transaction.
fn checkpoint(mut txn: WriteTxn, id: u64, durability: Durability) -> Result<WriteTxn, Error> {
    let slot = (id * 7 % toy::SLOTS as u64) as usize;
    let root = root_of(txn.app());
    let root = apply(&mut txn, &root, &[(slot, id)])?;
    let (info, next) = txn.checkpoint(&app(&root, id), durability)?;
    assert_eq!(id_of(next.app()), id, "after {}", info.txn);
    Ok(next)
}

/// Two threads, one in this handle and one in another, begin to wait for the writer lock before the first checkpoint
/// of a transaction. They must get it only after the last checkpoint.
#[test]
fn checkpoints_keep_the_writer_lock() {
    tidalite_testkit::watch();
    use Durability::{Durable, Lazy, None, OneFlush};
    for durability in [Durable, OneFlush, Lazy, None] {
        let (disk, memory) = (Arc::new(SimDisk::new()), LockMemory::new());
        // Lazy commits must be made durable at once, so each checkpoint makes its own commit durable.
        let options = Options {
            sync_bytes: Some(1),
            ..options()
        };
        let a = open(&disk, &memory, &options);
        let b = open(&disk, &memory, &options);
        commit(&a, 1, Durable).wait().unwrap();
        let mut txn = a.begin_write().unwrap();
        let (tell, told) = channel();
        thread::scope(|scope| {
            for pager in [&a, &b] {
                let tell = tell.clone();
                scope.spawn(move || {
                    let txn = pager.begin_write().unwrap();
                    tell.send(id_of(txn.app())).unwrap();
                });
            }
            for id in 2..10 {
                // This time is longer than the time for which a running thread may take the lock before a waiting
                // one.
                let between = told.recv_timeout(Duration::from_millis(15));
                assert!(between.is_err(), "{between:?} before {id}, {durability:?}");
                txn = checkpoint(txn, id, durability).unwrap();
                if durability != None {
                    assert_eq!(id_of(b.begin_read().unwrap().app()), id);
                }
                if matches!(durability, Durable | OneFlush | Lazy) {
                    expect_kept(&disk, id);
                }
            }
            drop(checkpoint(txn, 10, Durable).unwrap());
            for _ in 0..2 {
                let seen = told.recv_timeout(Duration::from_secs(20));
                assert_eq!(seen, Ok(10), "{durability:?}");
            }
        });
    }
}

/// Lazy checkpoints must become durable without the background flusher, which waits for the writer lock all the time.
#[test]
fn lazy_checkpoints_become_durable_without_the_flusher() {
    tidalite_testkit::watch();
    let pause = Duration::from_millis(20);
    for (sync_bytes, sync_after, flush, behind) in [
        (Some(1), None, Duration::from_hours(1), 0),
        (None, Some(pause), Duration::from_hours(1), 1),
        (None, None, pause, 1),
    ] {
        let (disk, memory) = (Arc::new(SimDisk::new()), LockMemory::new());
        let options = Options {
            sync_bytes,
            sync_after,
            background_flush: Some(flush),
            ..options()
        };
        let pager = open(&disk, &memory, &options);
        commit(&pager, 1, Durability::Durable).wait().unwrap();
        let mut txn = pager.begin_write().unwrap();
        for id in 2..8 {
            txn = checkpoint(txn, id, Durability::Lazy).unwrap();
            expect_kept(&disk, id - behind);
            thread::sleep(2 * pause);
        }
    }
}

/// A writer makes a chain of checkpoints. Another thread waits for a commit before the chain, or for one of the
/// checkpoints; its wait begins before or during the chain. The commit must become durable although the waiting
/// thread does not get the writer lock, and before the chain ends. The writing thread may wait for the other thread,
/// too.
#[test]
fn a_commit_becomes_durable_while_another_holds_the_writer_lock() {
    tidalite_testkit::watch();
    for before in [Durability::Lazy, Durability::None] {
        let (disk, memory) = (Arc::new(SimDisk::new()), LockMemory::new());
        let a = open(&disk, &memory, &options());
        let b = open(&disk, &memory, &options());
        commit(&a, 1, Durability::Durable).wait().unwrap();
        let early = commit(&a, 2, before);
        // This channel transports the results of the waiting threads.
        let (tell, told) = channel();
        let mut txn = a.begin_write().unwrap();
        thread::scope(|scope| {
            let waits = || {
                let tell = tell.clone();
                let early = &early;
                scope.spawn(move || tell.send(early.wait().map(drop)).unwrap());
            };
            waits();
            thread::sleep(Duration::from_millis(5));
            if before == Durability::None {
                // This commit has no meta record. The wait lasts until one of the checkpoints has a meta record.
                assert!(told.try_recv().is_err() && !early.is_durable());
                assert!(!early.wait_for(Duration::from_millis(5)).unwrap());
            }
            txn = checkpoint(txn, 3, Durability::Lazy).unwrap();
            told.recv_timeout(Duration::from_secs(20)).unwrap().unwrap();
            expect_kept(&disk, 2);
            txn = checkpoint(txn, 4, Durability::Lazy).unwrap();
            a.sync().unwrap();
            expect_kept(&disk, 4);
            waits();
            told.recv_timeout(Duration::from_secs(20)).unwrap().unwrap();
            assert!(
                b.try_begin_write().unwrap().is_none(),
                "all under one writer lock"
            );
            txn = checkpoint(txn, 5, Durability::Lazy).unwrap();
            drop(txn);
            let txn = b.begin_write_within(Duration::from_secs(20)).unwrap();
            assert_eq!(id_of(txn.app()), 5);
        });
    }
}

/// A handle keeps the writer lock for a flush. It must release the lock after the flush, whichever of the flush and a
/// transaction ends first.
#[test]
fn the_writer_lock_passes_on_when_a_flush_and_a_transaction_end_at_once() {
    tidalite_testkit::watch();
    let memory = LockMemory::new();
    let disk = Arc::new(MemoryStorage::new());
    let open = || Pager::open_storage_with(disk.clone(), &memory, &options()).unwrap();
    let (a, b) = (open(), open());
    let mut id = 0;
    while id < 6_000 {
        id += 3;
        let first = commit(&a, id, Durability::Durable);
        thread::scope(|scope| {
            scope.spawn(|| first.wait().unwrap());
            // This transaction ends while the other thread flushes.
            drop(a.begin_write().unwrap());
            let second = commit(&a, id + 1, Durability::Lazy);
            scope.spawn(move || second.wait().unwrap());
            drop(a.begin_write().unwrap());
        });
        let turn = b.begin_write_within(Duration::from_secs(5));
        drop(turn.unwrap_or_else(|error| panic!("after {id}: {error}")));
    }
}

/// Whichever call of a checkpoint fails, the writer lock must be released afterwards, and the file must have the
/// commit of the checkpoint or the one before.
#[test]
fn a_checkpoint_that_fails_passes_the_writer_lock_on() {
    tidalite_testkit::watch();
    let (mut failed, mut poisoned) = (0, 0);
    for at_call in 0..12 {
        for kind in [FaultKind::Medium, FaultKind::SyncFails] {
            let (disk, memory) = (Arc::new(SimDisk::new()), LockMemory::new());
            let a = open(&disk, &memory, &options());
            let b = open(&disk, &memory, &options());
            commit(&a, 1, Durability::Durable).wait().unwrap();
            let txn = a.begin_write().unwrap();
            fail(&disk, at_call, kind);
            let done = checkpoint(txn, 2, Durability::Durable);
            disk.set_fault(None);
            failed += u64::from(done.is_err());
            drop(done);
            for pager in [&a, &b] {
                match pager.begin_write_within(Duration::from_secs(20)) {
                    Ok(txn) => assert!([1, 2].contains(&id_of(txn.app()))),
                    Err(Error::Poisoned { .. }) => poisoned += 1,
                    Err(error) => panic!("{kind:?} at {at_call}: {error}"),
                }
            }
            drop((a, b));
            expect_kept(&disk, 1);
        }
    }
    assert!(failed > 4 && poisoned > 0, "{failed} {poisoned}");
}

#[test]
fn the_flusher_outlives_an_error_that_passes() {
    tidalite_testkit::watch();
    let (disk, memory) = (Arc::new(SimDisk::new()), LockMemory::new());
    let flushing = Options {
        background_flush: Some(Duration::from_millis(100)),
        ..options()
    };
    let a = open(&disk, &memory, &options());
    let b = open(&disk, &memory, &flushing);
    commit(&a, 1, Durability::Durable).wait().unwrap();
    let ticket = commit(&b, 2, Durability::Lazy);
    // Handle `b` has the flusher. Because handle `a` makes the newest commit, the flusher must read from the file. The
    // killed disk fails this read; the flusher must try again later, and then make the commit of `b` durable.
    drop(commit(&a, 3, Durability::Lazy));
    drop(b.begin_read().unwrap());
    disk.kill();
    thread::sleep(Duration::from_millis(400));
    disk.set_fault(None);
    let begun = Instant::now();
    while !ticket.is_durable() {
        assert!(begun.elapsed() < Duration::from_secs(10), "no flush");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_flusher_ends_when_the_file_is_closed() {
    tidalite_testkit::watch();
    let flushers = || {
        let tasks = fs::read_dir("/proc/self/task").unwrap();
        let name = |task: fs::DirEntry| fs::read_to_string(task.path().join("comm"));
        let names = tasks.filter_map(|task| name(task.ok()?).ok());
        names.filter(|name| name.trim() == "tidalite-flush").count()
    };
    // Flushers of other tests run at the same time, but have shorter intervals.
    let pause = Duration::from_secs(1000);
    let flushing = Options {
        background_flush: Some(pause),
        ..options()
    };
    let all: Vec<Pager> = (0..8)
        .map(|_| open(&Arc::new(SimDisk::new()), &LockMemory::new(), &flushing))
        .collect();
    let begun = Instant::now();
    while flushers() < all.len() {
        assert!(begun.elapsed() < Duration::from_secs(10), "not begun");
        thread::sleep(Duration::from_millis(5));
    }
    drop(all);
    while flushers() > 1 {
        assert!(begun.elapsed() < Duration::from_secs(20), "not ended");
        thread::sleep(Duration::from_millis(5));
    }
}
