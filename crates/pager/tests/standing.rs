//! Tests of many threads that commit together: the leader thread that leads flushes for all of them, the end of the
//! leader thread, and the effect of a failed flush on all threads.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod toy;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tidalite_pager::{Durability, Error, Event, LockMemory, Logger, Options, Pager, Result};
use tidalite_testkit::rng::Rng;
use tidalite_testkit::{Fault, FaultKind, Replay, SimDisk, Tap};
use toy::{app, apply, id_of, options, problems, root_of};

/// Lock that each test takes, so that one test runs at a time. (The tests examine the threads and open files of the
/// whole process.)
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    tidalite_testkit::watch();
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

const THREADS: u64 = 8;
const BARRIER: Duration = Duration::from_micros(500);
/// A time longer than any expected wait on any machine.
const LONG: Duration = Duration::from_secs(20);

/// Opens a database on a simulated disk with slow syncs, so that other commits arrive during a sync.
fn slow() -> (Pager, Arc<Tap>, Arc<SimDisk>, LockMemory) {
    let (disk, memory) = (Arc::new(SimDisk::new()), LockMemory::new());
    let tap = Tap::new(disk.clone(), &disk, &memory, Vec::new());
    let pager = Pager::open_storage_with(tap.clone(), &memory, &options()).unwrap();
    tap.set_hook(Some(Box::new(|| thread::sleep(BARRIER))));
    (pager, tap, disk, memory)
}

/// Whether the current thread is the leader thread.
fn is_leader() -> bool {
    thread::current().name() == Some("tidalite-leader")
}

/// Makes the next commit. Returns the number of the commit when the commit is durable.
fn commit(pager: &Pager, durability: Durability) -> Result<u64> {
    let mut txn = pager.begin_write()?;
    let (old, id) = (root_of(txn.app()), id_of(txn.app()) + 1);
    let slot = (id * 7 % toy::SLOTS as u64) as usize;
    let root = apply(&mut txn, &old, &[(slot, id)])?;
    txn.commit(&app(&root, id), durability)?;
    Ok(id)
}

/// Runs threads that each make `commits` commits or stop at an error. Returns the newest acknowledged commit, and the
/// errors of the threads.
fn together(pager: &Pager, commits: u64, kinds: &[Durability]) -> (u64, Vec<Error>) {
    let newest = AtomicU64::new(0);
    let run = |thread: u64| -> Result<()> {
        for round in 0..commits {
            let kind = kinds[((thread + round) % kinds.len() as u64) as usize];
            newest.fetch_max(commit(pager, kind)?, Ordering::SeqCst);
        }
        Ok(())
    };
    let errors = thread::scope(|scope| {
        let run = &run;
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || run(thread)))
            .collect();
        let ended = threads.into_iter().map(|thread| thread.join().unwrap());
        ended.filter_map(Result::err).collect()
    });
    (newest.into_inner(), errors)
}

/// Returns the number of files in `folder` that this process has open.
fn open_in(folder: &Path) -> usize {
    let held = fs::read_dir("/proc/self/fd").unwrap();
    let links = held.filter_map(|fd| fs::read_link(fd.ok()?.path()).ok());
    links.filter(|link| link.starts_with(folder)).count()
}

fn leaders() -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let name = |task: fs::DirEntry| fs::read_to_string(task.path().join("comm"));
    let names = tasks.filter_map(|task| name(task.ok()?).ok());
    names
        .filter(|name| name.trim() == "tidalite-leader")
        .count()
}

/// Commits of all kinds of durability must share flushes that the leader thread leads. All commits must be present,
/// and be acknowledged in order. A single committing thread must lead its own flushes. The leader thread must end
/// when the handle is closed.
#[test]
fn a_thread_leads_where_many_wait_and_ends_with_the_handle() {
    let _alone = alone();
    for kinds in [
        &[Durability::Durable][..],
        &[Durability::OneFlush],
        &[Durability::Durable, Durability::OneFlush, Durability::Lazy],
    ] {
        let (pager, tap, disk, memory) = slow();
        for _ in 0..20 {
            commit(&pager, kinds[0]).unwrap();
        }
        assert_eq!(pager.metrics().flushes_by_leader, 0, "of one thread");
        let (newest, errors) = together(&pager, 40, kinds);
        assert!(errors.is_empty(), "{errors:?}");
        let metrics = pager.metrics();
        let flushes = metrics.records + metrics.appends;
        println!(
            "{flushes} flushes for {} commits, {} of them led by the thread",
            metrics.commits, metrics.flushes_by_leader
        );
        assert!(metrics.flushes_by_leader > flushes / 4 && flushes < metrics.commits / 2);
        assert_eq!(id_of(pager.begin_read().unwrap().app()), newest);
        assert_eq!(newest, 20 + 40 * THREADS);
        assert_eq!(problems(&pager).unwrap(), [""; 0]);
        // The leader thread does not lead any more: a single committing thread leads its own flushes again.
        commit(&pager, kinds[0]).unwrap();
        let off = pager.metrics().flushes_by_leader;
        for _ in 0..5 {
            commit(&pager, kinds[0]).unwrap();
        }
        assert_eq!(pager.metrics().flushes_by_leader, off);
        drop((pager, tap, disk, memory));
    }
    let begun = Instant::now();
    while leaders() > 0 {
        assert!(begun.elapsed() < LONG, "not ended");
        thread::sleep(Duration::from_millis(2));
    }
}

/// A sync fails while the leader thread leads a flush. Every waiting thread must get an error, and no thread may
/// continue to sleep. The acknowledged commits must survive a power failure.
#[test]
fn a_flush_that_fails_under_the_thread_wakes_all() {
    let _alone = alone();
    for seed in 0..12u64 {
        let (pager, tap, disk, memory) = slow();
        let kind = [Durability::Durable, Durability::OneFlush][seed as usize % 2];
        for _ in 0..12 {
            commit(&pager, kind).unwrap();
        }
        // The scheduler chooses who leads: after some syncs, the first one that the leader thread makes fails.
        let mut left = 40 + seed * 10;
        let failing = disk.clone();
        tap.set_hook(Some(Box::new(move || {
            thread::sleep(BARRIER);
            left = left.saturating_sub(1);
            if left == 0 && is_leader() && !failing.fault_hit() {
                failing.set_fault(Some(Fault {
                    at_call: 0,
                    forever: true,
                    kind: FaultKind::SyncFails,
                }));
            }
        })));
        let (newest, errors) = together(&pager, 10_000, &[kind]);
        assert!(disk.fault_hit(), "seed {seed}: the leader thread has led");
        assert_eq!(errors.len() as u64, THREADS, "each meets it");
        assert!(
            commit(&pager, kind).is_err(),
            "nothing more is acknowledged"
        );
        let cut = Replay::at_end(&disk.recording()).power_cut(&mut Rng::new(seed));
        drop((pager, tap, memory));
        let found = Pager::open_storage(Arc::new(SimDisk::from_image(cut)), &options()).unwrap();
        let id = id_of(found.begin_read().unwrap().app());
        assert!(id >= newest, "seed {seed}: {id} instead of {newest}");
        assert_eq!(problems(&found).unwrap(), [""; 0], "seed {seed}");
    }
}

/// A user-supplied storage panics inside a flush, in the leader thread or in a committing thread. Every waiting
/// thread must get an error, and the acknowledged commits must be present.
#[test]
fn a_panic_inside_a_flush_wakes_all() {
    let _alone = alone();
    for (seed, in_leader) in [true, false, true, false].into_iter().enumerate() {
        let (pager, tap, disk, memory) = slow();
        let kind = [Durability::Durable, Durability::OneFlush][seed / 2];
        for _ in 0..12 {
            commit(&pager, kind).unwrap();
        }
        let mut left = 20;
        tap.set_hook(Some(Box::new(move || {
            thread::sleep(BARRIER);
            left -= u32::from(is_leader() == in_leader && left > 0);
            assert!(left > 0, "the storage panics, as it should here");
        })));
        // With many threads, the leader thread leads the flushes. A single thread leads its own flush, so the panic
        // occurs in this thread.
        let threads = if in_leader { THREADS } else { 1 };
        let newest = AtomicU64::new(0);
        let ended: Vec<_> = thread::scope(|scope| {
            let run = || -> Result<()> {
                loop {
                    newest.fetch_max(commit(&pager, kind)?, Ordering::SeqCst);
                }
            };
            let begun: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
            begun.into_iter().map(|thread| thread.join()).collect()
        });
        for end in ended {
            match end {
                Ok(Err(Error::Poisoned { first })) => {
                    assert!(in_leader && first.contains("panic"), "{first}");
                }
                Ok(end) => panic!("{end:?}"),
                Err(_) => assert!(!in_leader, "the panic is met by who flushes"),
            }
        }
        let again = commit(&pager, kind);
        assert!(matches!(again, Err(Error::Poisoned { .. })), "{again:?}");
        tap.set_hook(None);
        let cut = Replay::at_end(&disk.recording()).power_cut(&mut Rng::new(seed as u64));
        drop((pager, tap, memory));
        let found = Pager::open_storage(Arc::new(SimDisk::from_image(cut)), &options()).unwrap();
        let id = id_of(found.begin_read().unwrap().app());
        assert!(id >= newest.into_inner());
        assert_eq!(problems(&found).unwrap(), [""; 0]);
    }
}

/// A user-supplied logger panics when it gets the report of a failed flush. No thread may continue to sleep.
#[test]
fn a_logger_that_panics_in_a_flush_leaves_no_thread_asleep() {
    let _alone = alone();
    let (disk, memory) = (Arc::new(SimDisk::new()), LockMemory::new());
    let tap = Tap::new(disk.clone(), &disk, &memory, Vec::new());
    let panics = Logger::new(|event| {
        let poisoned = matches!(event, Event::Poisoned { .. });
        assert!(!poisoned, "the logger panics, as it should here");
    });
    let options = Options {
        logger: Some(panics),
        ..options()
    };
    let pager = Pager::open_storage_with(tap.clone(), &memory, &options).unwrap();
    tap.set_hook(Some(Box::new(|| thread::sleep(BARRIER))));
    for _ in 0..12 {
        commit(&pager, Durability::OneFlush).unwrap();
    }
    disk.set_fault(Some(Fault {
        at_call: 200,
        forever: true,
        kind: FaultKind::SyncFails,
    }));
    thread::scope(|scope| {
        let run = || while commit(&pager, Durability::OneFlush).is_ok() {};
        let begun: Vec<_> = (0..THREADS).map(|_| scope.spawn(run)).collect();
        let panicked = begun.into_iter().map(|thread| thread.join().is_err());
        // Only the thread that led the flush called the logger. It may have been the leader thread, which is not
        // counted here.
        assert!(panicked.filter(|panicked| *panicked).count() <= 1);
    });
    let again = commit(&pager, Durability::OneFlush);
    assert!(matches!(again, Err(Error::Poisoned { .. })), "{again:?}");
}

/// Stops the threads of a test when this value is dropped, even if an assertion fails.
struct Stop<'a>(&'a AtomicU64);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(1, Ordering::Relaxed);
    }
}

/// While the leader thread leads a flush, a thread that waits with a timeout must return in time, and a thread that
/// waits for a meta record must get one.
#[test]
fn others_than_committers_wait_in_the_background() {
    let _alone = alone();
    let (pager, _tap, _disk, _memory) = slow();
    commit(&pager, Durability::OneFlush).unwrap();
    let stop = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while stop.load(Ordering::Relaxed) == 0 {
                    commit(&pager, Durability::OneFlush).unwrap();
                }
            });
        }
        let _ends = Stop(&stop);
        let begun = Instant::now();
        let mut waits = 0;
        while pager.metrics().flushes_by_leader < 200 || waits < 50 {
            assert!(begun.elapsed() < LONG, "the thread does not lead");
            let mut txn = pager.begin_write().unwrap();
            let (old, id) = (root_of(txn.app()), id_of(txn.app()) + 1);
            let root = apply(&mut txn, &old, &[(1, id)]).unwrap();
            let ticket = txn.commit_ticket(&app(&root, id), Durability::Durable);
            let ticket = ticket.unwrap();
            if !ticket.wait_for(Duration::from_micros(100)).unwrap() {
                waits += 1;
                ticket.wait().unwrap();
            }
            pager.checkpoint().unwrap();
        }
    });
    assert_eq!(problems(&pager).unwrap(), [""; 0]);
}

/// As soon as all threads have committed, it must be possible to close the file and to open it again at once: the
/// leader thread must not keep the handle open.
#[test]
fn the_thread_holds_no_handle_that_its_users_have_let_go() {
    let _alone = alone();
    let name = format!("tidalite-standing-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    fs::create_dir_all(&folder).unwrap();
    let folder = folder.canonicalize().unwrap();
    let path = folder.join("a.tdl");
    let mut led = 0;
    for round in 0..20u8 {
        let pager = Pager::open(&path, &Options::default()).unwrap();
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let pager = &pager;
                scope.spawn(move || {
                    for commit in 0..10 {
                        let txn = pager.begin_write().unwrap();
                        let content = [round, thread as u8, commit];
                        txn.commit(&content, Durability::Durable).unwrap();
                    }
                });
            }
        });
        led += pager.metrics().flushes_by_leader;
        pager.close().unwrap();
        let begun = Instant::now();
        while open_in(&folder) > 0 {
            assert!(begun.elapsed() < LONG, "round {round}");
            thread::yield_now();
        }
    }
    println!("{led} flushes led by the thread");
    fs::remove_dir_all(&folder).unwrap();
}
