//! Tests of the events that the logger receives, and of checks of a file after a power failure.

use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidalite_pager::{
    Durability, Event, LockMemory, Logger, OpenMode, Options, PageWrite, Pager, Storage, Verifier,
};
use tidalite_testkit::SimDisk;

type Heard = Arc<Mutex<Vec<Event>>>;

fn options() -> (Options, Heard) {
    let heard = Heard::default();
    let own = Arc::clone(&heard);
    let logger = Logger::new(move |event: &Event| {
        let mut heard = own.lock().expect("nobody panics here");
        assert!(!event.to_string().is_empty());
        heard.push(event.clone());
    });
    let options = Options {
        logger: Some(logger),
        verifier: Some(Verifier::new(|_| Ok(()))),
        shrink_bytes: 1 << 20,
        long_reader_bytes: 1 << 20,
        ..Options::default()
    };
    (options, heard)
}

fn has(heard: &Heard, wanted: impl Fn(&Event) -> bool) -> bool {
    heard.lock().expect("nobody panics here").iter().any(wanted)
}

fn fill(pager: &Pager, pages: u64) -> tidalite_pager::Extent {
    let mut txn = pager.begin_write().expect("a writer");
    let extent = txn.alloc_extent(pages).expect("an extent");
    txn.commit(b"filled", Durability::Durable)
        .expect("a commit");
    extent
}

#[test]
fn unusual_events_are_logged() {
    tidalite_testkit::watch();
    let (mut options, heard) = options();
    options.slow_commit = Duration::ZERO;
    let disk = Arc::new(SimDisk::new());
    let memory = LockMemory::new();
    let open = |options: &Options| {
        let storage = Arc::clone(&disk) as Arc<dyn Storage>;
        Pager::open_storage_with(storage, &memory, options).expect("a database")
    };
    let pager = open(&options);
    let extent = fill(&pager, 1024);
    assert!(has(&heard, |event| matches!(event, Event::Grew { .. })));
    assert!(has(&heard, |event| matches!(
        event,
        Event::SlowCommit { .. }
    )));

    // A reader retains 4 MiB while the file must grow, so an event is expected.
    let reader = pager.begin_read().expect("a snapshot");
    let mut txn = pager.begin_write().expect("a writer");
    txn.free_extent(&extent);
    txn.commit(b"freed", Durability::Durable).expect("a commit");
    let more = fill(&pager, 2048);
    let holds = |event: &Event| matches!(event, Event::LongReader(seen) if seen.reader.retained_bytes >= 4 << 20);
    assert!(has(&heard, holds));
    drop(reader);
    let mut txn = pager.begin_write().expect("a writer");
    txn.free_extent(&more);
    txn.commit(b"free", Durability::Durable).expect("a commit");
    for i in 0..6u8 {
        let txn = pager.begin_write().expect("a writer");
        txn.commit(&[i], Durability::Durable).expect("a commit");
    }
    assert!(has(&heard, |event| matches!(event, Event::Cut { .. })));

    // The process is killed after a lazy commit, and half of a meta block is overwritten with random bytes.
    let txn = pager.begin_write().expect("a writer");
    txn.commit(b"lazy", Durability::Lazy).expect("a commit");
    memory.kill_all();
    drop(pager);
    let txn = open(&options).begin_read().expect("a snapshot").txn();
    let lazy =
        |event: &Event| matches!(event, Event::FoundUnrecorded { txn: found, .. } if *found == txn);
    assert!(has(&heard, lazy));
    disk.flip_bit(4096 + 300, 3);
    heard.lock().expect("nobody panics here").clear();
    drop(open(&options));
    assert!(has(&heard, |event| *event == Event::Healed { at: 4096 }));
}

#[test]
fn a_torn_record_that_does_not_count_is_not_damage() {
    tidalite_testkit::watch();
    let disk = Arc::new(SimDisk::new());
    let storage = || Arc::clone(&disk) as Arc<dyn Storage>;
    let pager = Pager::open_storage(storage(), &Options::default()).expect("a database");
    fill(&pager, 3);
    let sequence = pager.metrics().records;
    drop(pager);
    let read_only = Options {
        read_only: true,
        mode: OpenMode::Open,
        ..Options::default()
    };
    let check = || {
        let pager = Pager::open_storage(storage(), &read_only).expect("the database");
        let mut check = pager.begin_check().expect("a check");
        // Claims the only extent of the file.
        check.claim(6 * 4096, 3, "an extent");
        check.finish()
    };
    assert!(check().is_clean(), "{:?}", check().problems);
    let newest = (sequence % 2) as usize;
    let other = 4096 + 4096 * (1 - newest);
    disk.flip_bit(other + 2000, 1);
    disk.flip_bit(other + 12288 + 2000, 1);
    let report = check();
    assert!(report.is_clean(), "{:?}", report.problems);
    assert_eq!(report.notes.len(), 2, "{:?}", report.notes);
    // A block of the other pair of meta blocks, which has the newest meta record, is damaged as well. That must be a
    // problem.
    disk.flip_bit(4096 + 4096 * newest + 2000, 1);
    assert!(!check().is_clean());
}
