//! Tests of tickets as futures, and of two handles of one file that write in turn.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};
use tidalite_pager::{Durability, Error, Options, Pager, Storage, Ticket};
use tidalite_testkit::{Fault, FaultKind, SimDisk};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// A single-threaded runtime: polls the given tickets until all are complete, and returns their results.
fn block_on(tickets: Vec<Ticket>) -> Vec<Result<u64, Error>> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut waiting: Vec<_> = tickets.into_iter().map(Box::pin).collect();
    let mut done = Vec::new();
    let begun = Instant::now();
    while !waiting.is_empty() {
        waiting.retain_mut(|ticket| match Pin::new(ticket).poll(&mut context) {
            Poll::Pending => true,
            Poll::Ready(result) => {
                done.push(result.map(|info| info.txn.0));
                false
            }
        });
        assert!(begun.elapsed() < Duration::from_secs(20), "nobody woke us");
        if !waiting.is_empty() {
            thread::park_timeout(Duration::from_secs(5));
        }
    }
    done
}

fn commit(pager: &Pager, number: u64, durability: Durability) -> Ticket {
    let txn = pager.begin_write().expect("the writer lock");
    let app = number.to_le_bytes();
    txn.commit_ticket(&app, durability).expect("a commit")
}

#[test]
fn tickets_are_futures_that_share_a_flush() {
    tidalite_testkit::watch();
    let disk = Arc::new(SimDisk::new());
    let storage = Arc::clone(&disk) as Arc<dyn Storage>;
    let pager = Pager::open_storage(storage, &Options::default()).expect("a database");
    let before = pager.metrics().records;
    let mut tickets = Vec::new();
    for number in 0..32 {
        let durability = [Durability::Durable, Durability::Lazy][number as usize % 2];
        tickets.push(commit(&pager, number, durability));
    }
    let done = block_on(tickets);
    let mut txns: Vec<u64> = done.into_iter().map(|txn| txn.expect("durable")).collect();
    txns.sort_unstable();
    txns.dedup();
    assert_eq!(txns.len(), 32);
    let records = pager.metrics().records - before;
    assert!(records <= 4, "{records} records for 32 commits");
    assert_eq!(
        pager.begin_read().expect("a snapshot").app(),
        31u64.to_le_bytes()
    );

    // The ticket of a commit that cannot become durable must return an error.
    let ticket = commit(&pager, 99, Durability::Lazy);
    disk.set_fault(Some(Fault {
        at_call: 0,
        forever: true,
        kind: FaultKind::SyncFails,
    }));
    let failed = block_on(vec![ticket]);
    assert!(failed[0].is_err(), "{failed:?}");
    assert!(matches!(
        pager.begin_write().err(),
        Some(Error::Poisoned { .. })
    ));
}

#[test]
fn commits_without_end_let_another_handle_write() {
    tidalite_testkit::watch();
    let folder = std::env::temp_dir().join(format!("tidalite-fair-{}", std::process::id()));
    drop(std::fs::remove_dir_all(&folder));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("plant.tdl");
    let busy = Pager::open(&path, &Options::default()).expect("a file");
    let (stop, made) = (AtomicBool::new(false), AtomicU64::new(0));
    let ready = Barrier::new(9);
    thread::scope(|threads| {
        for _ in 0..8 {
            threads.spawn(|| {
                ready.wait();
                while !stop.load(Ordering::Relaxed) {
                    let number = made.fetch_add(1, Ordering::Relaxed);
                    let ticket = commit(&busy, number, Durability::Durable);
                    ticket.wait().expect("durable");
                }
            });
        }
        ready.wait();
        // A separate handle with its own locks behaves like another process.
        let other = Pager::open(&path, &Options::default()).expect("the file");
        let mut writer_lock = Vec::new();
        for number in 0..20u64 {
            let begun = Instant::now();
            let txn = other.begin_write_within(Duration::from_secs(5));
            let Ok(txn) = txn else {
                break;
            };
            writer_lock.push(begun.elapsed());
            let app = (1000 + number).to_le_bytes();
            txn.commit(&app, Durability::Durable).expect("a commit");
        }
        stop.store(true, Ordering::Relaxed);
        let worst = writer_lock.iter().max();
        assert_eq!(
            writer_lock.len(),
            20,
            "the writer lock never came; before, it took {worst:?} at most"
        );
    });
    let commits = made.load(Ordering::Relaxed);
    println!("20 turns beside {commits} commits of 8 threads");
    drop(busy);
    drop(std::fs::remove_dir_all(&folder));
}
