//! Tests that a thread which waits for a commit is woken by the thread or handle that makes the commit durable.

use super::{Flushing, Until, Waited};
use crate::commit::files::Files;
use crate::commit::found::Found;
use crate::commit::versions::State;
use crate::{Durability, MemoryStorage, Options, Pager};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Timeout that is longer than any of these waits on any machine.
const LONG: Duration = Duration::from_secs(20);

/// Starts a thread that waits for a commit and sends the result. The thread is not joined, since it may sleep for
/// ever.
fn waiting_for(pager: &Pager, txn: u64) -> Receiver<Waited> {
    let (tell, told) = channel();
    let inner = Arc::clone(&pager.inner);
    thread::spawn(move || {
        let waited = inner.wait((txn, Until::Kept), None);
        tell.send(waited.expect("no error"))
    });
    told
}

/// A flush of this handle is under way, and two threads wait for two later commits. The flush ends. Before the next
/// flush, another handle takes the writer lock and makes the first of the two commits durable. Both waiting threads
/// must wake.
#[test]
fn what_another_handle_made_durable_wakes_who_waits() {
    tidalite_testkit::watch();
    let pager = Pager::open_storage(Arc::new(MemoryStorage::new()), &Options::default());
    let pager = pager.expect("a database");
    let txn = pager.begin_write().expect("the writer lock");
    txn.commit(b"one", Durability::Durable).expect("a commit");
    let pipeline = &pager.inner.pipeline;
    let Files {
        storage,
        superblock,
        lock,
        ..
    } = &pager.inner.files;
    let found = Found::published(&**storage, superblock, lock, None).expect("no error");
    let mut found = found.expect("what was committed");
    let (first, second) = (found.durable.txn + 1, found.durable.txn + 2);
    pipeline.stages().flushing = Some(Flushing {
        txn: found.durable.txn,
        checksum: 0,
    });
    let (one, other) = (waiting_for(&pager, first), waiting_for(&pager, second));
    let begun = Instant::now();
    while pipeline.stages().waiting.len() < 2 {
        assert!(begun.elapsed() < LONG, "they wait for the flush");
        thread::yield_now();
    }
    pipeline.stages().flushing = None;
    // Simulates a meta record that another handle has written to the file.
    found.durable.txn = first;
    found.meta.txn = first;
    let state = State::of_meta(&found.meta, pager.inner.files.page_size);
    pipeline.reset(&found, &Arc::new(state), true);
    assert_eq!(one.recv_timeout(LONG), Ok(Waited::Durable));
    // The thread that waits for the second commit must lead a flush itself, since no other thread can.
    assert_eq!(other.recv_timeout(LONG), Ok(Waited::NeedsWriterLock));
}
