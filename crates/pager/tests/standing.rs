//! Many threads that commit together: the thread that leads their flushes, its end, and what becomes of all when a flush fails.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod toy;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tidalite_pager::{Durability, Error, LockMemory, Options, Pager, Result};
use tidalite_testkit::rng::Rng;
use tidalite_testkit::{Fault, FaultKind, Replay, SimDisk, Tap};
use toy::{app, apply, id_of, options, problems, root_of};

const THREADS: u64 = 8;
/// What nobody waits for on any machine.
const LONG: Duration = Duration::from_secs(20);

/// A database on a medium that needs a while for each barrier, so that others come meanwhile.
fn slow() -> (Pager, Arc<Tap>, Arc<SimDisk>, LockMemory) {
    let (disk, memory) = (Arc::new(SimDisk::new()), LockMemory::new());
    let tap = Tap::new(disk.clone(), &disk, &memory, Vec::new());
    let pager = Pager::open_storage_with(tap.clone(), &memory, &options()).unwrap();
    tap.set_hook(Some(Box::new(|| thread::sleep(Duration::from_micros(500)))));
    (pager, tap, disk, memory)
}

/// One commit, whose number is one more than that of the commit before; returned when it is durable.
fn commit(pager: &Pager, durability: Durability) -> Result<u64> {
    let mut txn = pager.begin_write()?;
    let (old, id) = (root_of(txn.app()), id_of(txn.app()) + 1);
    let slot = (id * 7 % toy::SLOTS as u64) as usize;
    let root = apply(&mut txn, &old, &[(slot, id)])?;
    txn.commit(&app(&root, id), durability)?;
    Ok(id)
}

/// As many threads, each until it has made so many commits or met an error. Returns the newest number that was acknowledged, and the errors.
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

/// Files in this folder that the program has open.
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

/// Commits of all kinds share flushes that the thread leads; all are there, and none without having been acknowledged in its turn. One thread
/// alone leads its own; and the thread ends with the handle.
#[test]
fn a_thread_leads_where_many_wait_and_ends_with_the_handle() {
    tidalite_testkit::watch();
    let before = leaders();
    for kinds in [
        &[Durability::Durable][..],
        &[Durability::OneFlush],
        &[Durability::Durable, Durability::OneFlush, Durability::Lazy],
    ] {
        let (pager, tap, disk, memory) = slow();
        for _ in 0..20 {
            commit(&pager, kinds[0]).unwrap();
        }
        assert_eq!(pager.metrics().flushes_standing, 0, "of one thread");
        let (newest, errors) = together(&pager, 40, kinds);
        assert!(errors.is_empty(), "{errors:?}");
        let metrics = pager.metrics();
        let flushes = metrics.records + metrics.appends;
        println!(
            "{flushes} flushes for {} commits, {} of them led by the thread",
            metrics.commits, metrics.flushes_standing
        );
        assert!(metrics.flushes_standing > flushes / 4 && flushes < metrics.commits / 2);
        assert_eq!(id_of(pager.begin_read().unwrap().app()), newest);
        assert_eq!(newest, 20 + 40 * THREADS);
        assert_eq!(problems(&pager).unwrap(), [""; 0]);
        // It is off duty: one thread leads its own again, without it.
        commit(&pager, kinds[0]).unwrap();
        let off = pager.metrics().flushes_standing;
        for _ in 0..5 {
            commit(&pager, kinds[0]).unwrap();
        }
        assert_eq!(pager.metrics().flushes_standing, off);
        drop((pager, tap, disk, memory));
    }
    let begun = Instant::now();
    while leaders() > before {
        assert!(begun.elapsed() < LONG, "not ended");
        thread::sleep(Duration::from_millis(2));
    }
}

/// A barrier fails while the thread leads: every waiting thread gets an error, nobody sleeps on, and what was acknowledged is there after a power
/// cut.
#[test]
fn a_flush_that_fails_under_the_thread_wakes_all() {
    tidalite_testkit::watch();
    let mut under_it = 0;
    for seed in 0..12u64 {
        let (pager, tap, disk, memory) = slow();
        let kind = [Durability::Durable, Durability::OneFlush][seed as usize % 2];
        for _ in 0..12 {
            commit(&pager, kind).unwrap();
        }
        disk.set_fault(Some(Fault {
            at_call: 150 + seed * 37,
            forever: true,
            kind: FaultKind::SyncFails,
        }));
        let (newest, errors) = together(&pager, 10_000, &[kind]);
        assert_eq!(errors.len() as u64, THREADS, "each meets it");
        assert!(
            commit(&pager, kind).is_err(),
            "nothing more is acknowledged"
        );
        under_it += u64::from(pager.metrics().flushes_standing > 0);
        let cut = Replay::at_end(&disk.recording()).power_cut(&mut Rng::new(seed));
        drop((pager, tap, memory));
        let found = Pager::open_storage(Arc::new(SimDisk::from_image(cut)), &options()).unwrap();
        let id = id_of(found.begin_read().unwrap().app());
        assert!(id >= newest, "seed {seed}: {id} instead of {newest}");
        assert_eq!(problems(&found).unwrap(), [""; 0], "seed {seed}");
    }
    assert!(under_it > 6, "{under_it}");
}

/// Ends the threads, also when an assertion fails.
struct Stop<'a>(&'a AtomicU64);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(1, Ordering::Relaxed);
    }
}

/// Who waits with an end to its patience leaves, also where the thread leads; who wants a record gets one.
#[test]
fn others_than_committers_wait_beside_the_thread() {
    tidalite_testkit::watch();
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
        while pager.metrics().flushes_standing < 200 || waits < 50 {
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

/// A handle on a file that is closed as soon as all have committed can be opened and closed again at once: the thread holds nothing of it.
#[test]
fn the_thread_holds_no_handle_that_its_users_have_let_go() {
    tidalite_testkit::watch();
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
        led += pager.metrics().flushes_standing;
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
