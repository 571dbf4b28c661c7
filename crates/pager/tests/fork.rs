//! Tests that a forked child neither uses nor keeps the handles of its parent.

use std::time::{Duration, Instant};
use tidalite_pager::{DiskError, Durability, Error, Kind, Options, PageWrite, Pager, ReaderKind};

/// A forked child must neither complete nor change the work of its parent.
#[test]
fn a_forked_child_commits_and_flushes_nothing_of_its_parent() {
    let folder = std::env::temp_dir().join(format!("tidalite-forked-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("plant.tdl");
    let pager = Pager::open(&path, &Options::default()).expect("a new file");
    let begin = || {
        let mut txn = pager.begin_write().expect("the writer lock");
        let ptr = txn.new_page(Kind::KvLeaf, 1).expect("a page");
        txn.seal_page(&ptr).expect("sealed");
        txn
    };
    let ticket = begin().commit_ticket(b"one", Durability::Durable);
    let ticket = ticket.expect("a commit");
    let snapshot = pager.begin_read().expect("a snapshot");
    let mut txn = begin();
    let before = std::fs::read(&path).expect("the file");
    let child = fork();
    if child == 0 {
        let forked = |result: Option<Error>| matches!(result, Some(Error::Disk(DiskError::Forked)));
        let mut wrong = i32::from(!forked(ticket.wait().err()));
        wrong |= i32::from(!forked(ticket.wait_for(Duration::ZERO).err())) << 1;
        wrong |= i32::from(!forked(txn.new_page(Kind::KvLeaf, 1).err())) << 2;
        wrong |= i32::from(!forked(txn.commit(b"two", Durability::Durable).err())) << 3;
        drop((snapshot.park(), ticket, pager));
        leave(wrong);
    }
    assert_eq!(wait(child), 0);
    assert!(std::fs::read(&path).expect("the file") == before, "written");
    let readers = pager.readers().expect("a listing");
    assert_eq!(readers[0].kind, ReaderKind::Read);
    ticket.wait().expect("the parent's flush");
    let info = txn.commit(b"two", Durability::Durable);
    assert_eq!(info.expect("the parent's commit").txn.0, 3);
    drop((snapshot, ticket, pager));
    std::fs::remove_dir_all(&folder).expect("removed");
}

/// Runs checks in a forked child. Returns the failed checks as bits; 0 means that no check failed.
fn in_child(pager: &Pager, path: &std::path::Path) -> i32 {
    let mut wrong = 0;
    let forked = |result: Option<Error>| matches!(result, Some(Error::Disk(DiskError::Forked)));
    wrong |= i32::from(!forked(pager.begin_read().err()));
    wrong |= i32::from(!forked(pager.begin_write().err())) << 1;
    wrong |= i32::from(!forked(pager.stat().err())) << 2;
    match Pager::open(path, &Options::default()) {
        // The parent holds a write transaction at this time.
        Ok(own) => {
            wrong |= i32::from(own.begin_read().is_err()) << 3;
            wrong |= i32::from(!matches!(own.try_begin_write(), Ok(None))) << 4;
        }
        Err(_) => wrong |= 32,
    }
    wrong
}

#[expect(unsafe_code, reason = "the test forks")]
fn fork() -> i32 {
    // SAFETY: the forked children only allocate memory, which glibc permits after a fork, and end with `_exit`.
    unsafe { libc::fork() }
}

#[expect(unsafe_code, reason = "the test forks")]
fn leave(status: i32) -> ! {
    // SAFETY: `_exit` ends a child without running the exit handlers of the parent.
    unsafe { libc::_exit(status) }
}

#[expect(unsafe_code, reason = "the test forks")]
fn wait(child: i32) -> i32 {
    let mut status = 0;
    // SAFETY: the status is written to a live variable.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(waited, child);
    status
}

#[test]
fn a_forked_child_neither_uses_nor_keeps_what_its_parent_opened() {
    let folder = std::env::temp_dir().join(format!("tidalite-fork-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("plant.tdl");
    let pager = Pager::open(&path, &Options::default()).expect("a new file");
    let snapshot = pager.begin_read().expect("a snapshot");
    let mut txn = pager.begin_write().expect("the writer lock");
    let child = fork();
    if child == 0 {
        let wrong = in_child(&pager, &path);
        // If the child drops these values, the parent must keep its reader slot and the writer lock.
        drop((snapshot, txn, pager));
        leave(wrong);
    }
    assert_eq!(wait(child), 0);
    assert_eq!(pager.readers().expect("the parent's own").len(), 1);
    let ptr = txn.new_page(Kind::KvLeaf, 1).expect("a page");
    txn.seal_page(&ptr).expect("sealed");
    txn.commit(b"one", Durability::Durable).expect("a commit");
    drop((snapshot, pager));

    // A process that holds the writer lock and a snapshot forks and dies, while its child continues to run.
    let parent = fork();
    if parent == 0 {
        let pager = Pager::open(&path, &Options::default()).ok();
        let held = pager
            .as_ref()
            .map(|p| (p.begin_read().ok(), p.begin_write().ok()));
        if fork() == 0 {
            std::thread::sleep(Duration::from_secs(3));
        }
        std::mem::forget(held);
        leave(0);
    }
    assert_eq!(wait(parent), 0);
    let begun = Instant::now();
    let pager = Pager::open(&path, &Options::default()).expect("the file");
    // The grandchild releases the inherited locks when it first runs, which may be a moment after its parent has
    // ended.
    while !pager.readers().expect("a listing").is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(2), "still a reader");
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(pager.begin_write().expect("the writer lock"));
    assert!(
        begun.elapsed() < Duration::from_secs(2),
        "waited for the child"
    );
    drop(pager);
    std::fs::remove_dir_all(&folder).expect("removed");
}
