//! Tests of readers that keep their snapshot, of readers that may be evicted, and of the callbacks of the writer.

use crate::toy::{SLOTS, app, apply, id_of, options, problems, read, root_of};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tidalite_disk::storage::Growth;
use tidalite_pager::{
    DiskError, Durability, Error, LockMemory, LongReader, LongReaderAction, MemoryStorage,
    OnLongReader, OnWait, Options, PageRead, Pager, ReaderKind, Snapshot, Storage,
};
use tidalite_testkit::Monitor;
use tidalite_testkit::rng::Rng;

fn open(options: &Options) -> Pager {
    Pager::open_storage(Monitor::new(Arc::new(MemoryStorage::new())), options).unwrap()
}

/// Makes a commit that rewrites every slot of the toy data structure.
fn churn(pager: &Pager) -> Result<u64, Error> {
    let mut txn = pager.begin_write()?;
    let id = id_of(txn.app()) + 1;
    let root = root_of(txn.app());
    let all: Vec<_> = (0..SLOTS).map(|slot| (slot, id)).collect();
    let root = apply(&mut txn, &root, &all)?;
    txn.commit(&app(&root, id), Durability::Durable)?;
    Ok(id)
}

fn look(reader: &Snapshot) -> Result<u64, Error> {
    let id = id_of(reader.app());
    let found = read(reader, &root_of(reader.app()), &mut |_, _| {})?;
    assert_eq!(found, vec![id; SLOTS]);
    Ok(id)
}

fn evicted<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Evicted { .. }))
}

fn asked(answer: impl Fn(&LongReader) -> LongReaderAction + Send + Sync + 'static) -> Options {
    Options {
        long_reader_bytes: 40 << 10,
        on_long_reader: Some(OnLongReader(Arc::new(answer))),
        ..options()
    }
}

#[test]
fn readers_are_listed_with_the_bytes_that_they_retain() {
    tidalite_testkit::watch();
    let pager = open(&options());
    churn(&pager).unwrap();
    assert_eq!(pager.readers().unwrap(), []);
    let first = pager.begin_read().unwrap();
    let clone = first.clone();
    churn(&pager).unwrap();
    let second = pager.begin_read_evictable().unwrap();
    for _ in 0..3 {
        churn(&pager).unwrap();
    }
    let pending = pager.stat().unwrap().pages_pending * 512;
    let readers = pager.readers().unwrap();
    assert_eq!(readers.len(), 2, "a clone shares its slot: {readers:#?}");
    for (reader, snapshot) in readers.iter().zip([&first, &second]) {
        assert_eq!(reader.txn, snapshot.txn());
        assert_eq!(reader.process, std::process::id());
        assert!(reader.own && reader.thread != 0);
        assert!(reader.retained_bytes > 50 << 10 && reader.retained_bytes <= pending);
        assert!(reader.freed_bytes >= reader.retained_bytes);
    }
    assert_eq!(readers[0].kind, ReaderKind::Read);
    assert_eq!(readers[1].kind, ReaderKind::Evictable);
    assert_eq!((readers[0].lag_txns, readers[1].lag_txns), (4, 3));
    drop(first);
    assert_eq!(pager.readers().unwrap().len(), 2, "the clone keeps it");
    let parked = clone.park();
    assert_eq!(pager.readers().unwrap()[0].kind, ReaderKind::Parked);
    drop((parked, second));
    assert_eq!(pager.readers().unwrap(), []);
}

#[test]
fn renewing_goes_on_to_the_newest_commit() {
    tidalite_testkit::watch();
    let pager = open(&options());
    churn(&pager).unwrap();
    let mut reader = pager.begin_read().unwrap();
    let clone = reader.clone();
    assert_eq!(look(&reader).unwrap(), 1);
    let read_before = reader.counters().pages_read.load(Ordering::Relaxed);
    churn(&pager).unwrap();
    reader.renew().unwrap();
    assert_eq!((look(&reader).unwrap(), look(&clone).unwrap()), (2, 1));
    assert!(reader.counters().pages_read.load(Ordering::Relaxed) > read_before);
    let mut evictable = pager.begin_read_evictable().unwrap();
    evictable.renew().unwrap();
    assert!(evictable.is_evictable() && !reader.is_evictable());
}

#[test]
fn a_long_reader_is_waited_for_evicted_or_endured() {
    tidalite_testkit::watch();
    // The callback decides to wait, and drops the snapshot of the reader at the third call.
    let held: Arc<Mutex<Option<Snapshot>>> = Arc::default();
    let (asked_times, theirs) = (Arc::new(AtomicU32::new(0)), Arc::clone(&held));
    let times = Arc::clone(&asked_times);
    let pager = open(&asked(move |long_reader| {
        assert_eq!(long_reader.reader.kind, ReaderKind::Read);
        assert!(long_reader.reader.retained_bytes >= 40 << 10 && !long_reader.disk_full);
        assert_eq!(long_reader.retries, times.fetch_add(1, Ordering::Relaxed));
        if long_reader.retries == 2 {
            drop(theirs.lock().unwrap().take());
        }
        LongReaderAction::Wait
    }));
    churn(&pager).unwrap();
    *held.lock().unwrap() = Some(pager.begin_read().unwrap());
    while asked_times.load(Ordering::Relaxed) == 0 {
        churn(&pager).unwrap();
    }
    assert_eq!(asked_times.load(Ordering::Relaxed), 3);
    assert!(held.lock().unwrap().is_none());

    // The callback decides to evict: an evictable reader is evicted; any other reader is tolerated, and the file
    // grows.
    let pager = open(&asked(|_| LongReaderAction::Evict));
    churn(&pager).unwrap();
    let evictable = pager.begin_read_evictable().unwrap();
    assert_eq!(look(&evictable).unwrap(), 1);
    let clone = evictable.clone();
    while look(&evictable).is_ok() {
        churn(&pager).unwrap();
    }
    assert!(evicted(look(&evictable)) && evicted(look(&clone)));
    let size = pager.stat().unwrap().file_bytes;
    let fixed = pager.begin_read().unwrap();
    for _ in 0..40 {
        churn(&pager).unwrap();
    }
    look(&fixed).unwrap();
    assert!(pager.stat().unwrap().file_bytes <= size + (400 << 10));
    // The reader that retains most cannot be evicted, so the evictable reader is evicted instead.
    let evictable = pager.begin_read_evictable().unwrap();
    let size = pager.stat().unwrap().file_bytes;
    let mut more = Vec::new();
    while pager.stat().unwrap().file_bytes <= size + (400 << 10) && look(&evictable).is_ok() {
        churn(&pager).unwrap();
        // Begin another reader that cannot be evicted. It retains pages, so the file must grow.
        more.push(pager.begin_read().unwrap());
    }
    assert!(evicted(look(&evictable)));
    look(&fixed).unwrap();
    assert!(problems(&pager).unwrap().is_empty());
}

#[test]
fn the_age_of_a_reader_that_may_lose_its_snapshot_is_bounded() {
    tidalite_testkit::watch();
    let pager = open(&Options {
        evictable_age_max: Some(Duration::ZERO),
        ..options()
    });
    churn(&pager).unwrap();
    let (fixed, evictable) = (
        pager.begin_read().unwrap(),
        pager.begin_read_evictable().unwrap(),
    );
    // The evictable reader is evicted when the file would grow and no other reader retains the pages.
    let begun = Instant::now();
    drop(fixed);
    let fixed = loop {
        std::thread::sleep(Duration::from_millis(5));
        let fixed = pager.begin_read().unwrap();
        churn(&pager).unwrap();
        if look(&evictable).is_err() {
            break fixed;
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "never ousted");
    };
    assert!(evicted(look(&evictable)));
    assert!(look(&fixed).unwrap() > 1);
}

#[test]
fn parked_snapshots_resume_or_report_their_eviction() {
    tidalite_testkit::watch();
    let pager = open(&asked(|_| LongReaderAction::Evict));
    churn(&pager).unwrap();
    let parked = pager.begin_read().unwrap().park();
    let reader = parked.unpark().unwrap();
    assert_eq!(look(&reader).unwrap(), 1);
    let clone = reader.clone();
    let kept = reader.park();
    for _ in 0..30 {
        churn(&pager).unwrap();
    }
    assert_eq!(look(&clone).unwrap(), 1, "a clone is no parked reader");
    drop(clone);
    let reader = kept.unpark().unwrap();
    for outcome in [false, true] {
        let parked = pager.begin_read().unwrap().park();
        let txn = parked.txn();
        drop(pager.begin_read().unwrap());
        while pager
            .readers()
            .unwrap()
            .iter()
            .any(|reader| reader.txn == txn)
        {
            churn(&pager).unwrap();
        }
        if outcome {
            assert_eq!(
                look(&parked.unpark_or_renew().unwrap()).unwrap(),
                churn(&pager).unwrap() - 1
            );
        } else {
            assert!(evicted(parked.unpark()));
        }
    }
    assert_eq!(look(&reader).unwrap(), 1);
}

/// A disk of limited size, on which the file cannot grow beyond the limit.
#[derive(Default)]
struct Small {
    memory: MemoryStorage,
    limit: AtomicU64,
}

impl Storage for Small {
    tidalite_testkit::forward_storage!(memory: read_at, write_at, sync, sync_all, len);

    fn grow(&self, len: u64, how: Growth) -> io::Result<()> {
        if len > self.limit.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.memory.grow(len, how)
    }
}

#[test]
fn a_full_disk_evicts_evictable_readers() {
    tidalite_testkit::watch();
    let disk = Arc::new(Small::default());
    disk.limit.store(u64::MAX, Ordering::Relaxed);
    let (told, full) = (
        Arc::new(AtomicU32::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let (count, is_full) = (Arc::clone(&told), Arc::clone(&full));
    let options = Options {
        long_reader_bytes: u64::MAX,
        ..asked(move |long_reader| {
            assert!(long_reader.disk_full && is_full.load(Ordering::Relaxed));
            count.fetch_add(1, Ordering::Relaxed);
            LongReaderAction::GiveUp
        })
    };
    let pager = Pager::open_storage(Arc::clone(&disk) as Arc<dyn Storage>, &options).unwrap();
    churn(&pager).unwrap();
    let evictable = pager.begin_read_evictable().unwrap();
    for _ in 0..4 {
        churn(&pager).unwrap();
    }
    look(&evictable).unwrap();
    let fixed = pager.begin_read().unwrap();
    churn(&pager).unwrap();
    // From now on the file cannot grow.
    let space = pager.stat().unwrap();
    full.store(true, Ordering::Relaxed);
    disk.limit.store(space.file_bytes, Ordering::Relaxed);
    let error = (0..50).find_map(|_| churn(&pager).err());
    assert!(
        matches!(error, Some(Error::Disk(DiskError::DiskFull { .. }))),
        "{error:?}"
    );
    assert!(evicted(look(&evictable)));
    look(&fixed).unwrap();
    assert!(told.load(Ordering::Relaxed) > 0, "asked before giving up");
}

#[test]
fn a_waiting_writer_learns_the_current_writer() {
    tidalite_testkit::watch();
    let told = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&told);
    let memory = LockMemory::new();
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let waiting = Options {
        on_wait: Some(OnWait(Arc::new(move |writer| {
            assert_eq!(writer.process, std::process::id());
            assert!(writer.since >= Duration::from_millis(900));
            count.fetch_add(1, Ordering::Relaxed);
        }))),
        ..options()
    };
    let a = Pager::open_storage_with(Arc::clone(&storage), &memory, &options()).unwrap();
    let b = Pager::open_storage_with(storage, &memory, &waiting).unwrap();
    let txn = a.begin_write().unwrap();
    assert_eq!(b.writer().unwrap().process, std::process::id());
    let thread = std::thread::spawn(move || drop(b.begin_write().unwrap()));
    while told.load(Ordering::Relaxed) == 0 {
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(txn);
    thread.join().unwrap();
    assert_eq!(a.writer(), None);
}

/// A snapshot of a commit that an earlier snapshot showed must be reused only while this commit is the newest of all
/// handles, and only in the same handle.
#[test]
fn an_unchanged_newest_snapshot_is_reused() {
    tidalite_testkit::watch();
    let memory = LockMemory::new();
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let open = || Pager::open_storage_with(Arc::clone(&storage), &memory, &options()).unwrap();
    let (one, other) = (open(), open());
    let stranger = self::open(&options());
    churn(&stranger).unwrap();
    churn(&one).unwrap();
    let snapshot = one.begin_read().unwrap();
    let shown = snapshot.shown();
    assert!(shown.is_of(&snapshot));
    drop(snapshot);
    let again = one.begin_read_as(&shown).unwrap().unwrap();
    assert_eq!(look(&again).unwrap(), 1);
    assert_eq!(
        one.readers().unwrap().len(),
        1,
        "it is a reader like others"
    );
    for strange in [&other, &stranger] {
        assert!(strange.begin_read_as(&shown).unwrap().is_none());
    }
    for (writer, number) in [(&one, 2), (&other, 3)] {
        let shown = one.begin_read().unwrap().shown();
        churn(writer).unwrap();
        assert!(one.begin_read_as(&shown).unwrap().is_none());
        let newest = one.begin_read().unwrap();
        assert!(!shown.is_of(&newest) && newest.shown().is_of(&newest));
        assert_eq!(look(&newest).unwrap(), number);
        let shown = newest.shown();
        drop(newest);
        assert_eq!(
            look(&one.begin_read_as(&shown).unwrap().unwrap()).unwrap(),
            number
        );
    }
    drop(again);
    assert!(
        one.readers().unwrap().is_empty(),
        "nothing is left of what was in vain"
    );
    // The commit of a pin is not the newest one, even if no commit has followed: it does not contain the pin.
    let mut txn = one.begin_write().unwrap();
    txn.pin("now").unwrap();
    let (data, id) = (txn.app().to_vec(), id_of(txn.app()));
    txn.commit(&data, Durability::Durable).unwrap();
    let pinned = one.begin_read_at("now").unwrap().unwrap();
    assert_eq!(look(&pinned).unwrap(), id);
    assert!(one.begin_read_as(&pinned.shown()).unwrap().is_none());
    assert_eq!(one.pins().unwrap().len(), 1);
    drop(pinned);
    drop((one, other));
    // A commit that a snapshot has shown does not keep the file open.
    let alone = Options {
        exclusive: true,
        ..options()
    };
    let alone = Pager::open_storage_with(storage, &memory, &alone).unwrap();
    assert!(alone.begin_read_as(&shown).unwrap().is_none());
}

/// A reader must begin, read and end without waiting while another handle holds the writer lock with uncommitted
/// pages, and a third handle waits for the lock.
#[test]
fn readers_wait_for_no_writer() {
    tidalite_testkit::watch();
    let memory = LockMemory::new();
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let open = || Pager::open_storage_with(Arc::clone(&storage), &memory, &options()).unwrap();
    let (writing, waiting, reading) = (open(), open(), open());
    let before = churn(&writing).unwrap();
    let mut txn = writing.begin_write().unwrap();
    let root = root_of(txn.app());
    let root = apply(&mut txn, &root, &[(0, before + 1)]).unwrap();
    let asks = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let behind = scope.spawn(|| {
            asks.store(true, Ordering::Relaxed);
            churn(&waiting).unwrap()
        });
        while !asks.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        for reader in [&reading, &writing, &waiting] {
            let plain = reader.begin_read().unwrap();
            let evictable = reader.begin_read_evictable().unwrap();
            assert_eq!(look(&plain).unwrap(), before);
            assert_eq!(look(&evictable).unwrap(), before);
            assert_eq!(reading.readers().unwrap().len(), 2);
        }
        assert!(
            !behind.is_finished(),
            "the writer lock was held all the while"
        );
        let all: Vec<_> = (1..SLOTS).map(|slot| (slot, before + 1)).collect();
        let root = apply(&mut txn, &root, &all).unwrap();
        txn.commit(&app(&root, before + 1), Durability::Durable)
            .unwrap();
        assert_eq!(behind.join().unwrap(), before + 2);
    });
    assert_eq!(look(&reading.begin_read().unwrap()).unwrap(), before + 2);
}

/// Evictable and other readers begin and end in threads of two handles while both handles write and evict. Data
/// returned to an evictable reader must be correct, and other readers must never be evicted.
#[test]
fn readers_and_writers_of_two_handles_in_a_crowd() {
    tidalite_testkit::watch();
    let memory = LockMemory::new();
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let options = Options {
        long_reader_bytes: 0,
        ..asked(|_| LongReaderAction::Evict)
    };
    let open = || Pager::open_storage_with(Arc::clone(&storage), &memory, &options).unwrap();
    let handles = [open(), open()];
    churn(&handles[0]).unwrap();
    let stop = AtomicBool::new(false);
    let evicted = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for number in 0..4u64 {
            let (pager, stop, evicted) = (&handles[number as usize % 2], &stop, &evicted);
            scope.spawn(move || {
                let mut rng = Rng::new(number);
                while !stop.load(Ordering::Relaxed) {
                    if rng.one_in(2) {
                        look(&pager.begin_read().unwrap()).unwrap();
                        continue;
                    }
                    let reader = pager.begin_read_evictable().unwrap();
                    for _ in 0..rng.below(6) {
                        match look(&reader) {
                            Ok(_) => {}
                            Err(Error::Evicted { .. }) => {
                                evicted.fetch_add(1, Ordering::Relaxed);
                                break;
                            }
                            Err(error) => panic!("{error}"),
                        }
                    }
                }
            });
        }
        for round in 0..150 {
            churn(&handles[round % 2]).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    println!("{} times ousted", evicted.load(Ordering::Relaxed));
    assert!(problems(&handles[0]).unwrap().is_empty());
}

/// Handles that once had many snapshots must give their unused reader slots to other handles.
#[test]
fn idle_handles_leave_room_for_the_snapshots_of_others() {
    tidalite_testkit::watch();
    let (storage, memory) = (Arc::new(MemoryStorage::new()), LockMemory::new());
    let open = || Pager::open_storage_with(storage.clone(), &memory, &options()).unwrap();
    let idle: Vec<Pager> = (0..16).map(|_| open()).collect();
    for handle in &idle {
        let held: Vec<_> = (0..256).map(|_| handle.begin_read().unwrap()).collect();
        drop(held);
    }
    assert!(idle[0].readers().unwrap().is_empty());
    let other = open();
    let held: Vec<_> = (0..3072).map(|_| other.begin_read().unwrap()).collect();
    assert_eq!(other.readers().unwrap().len(), held.len());
}

/// Reading threads must not contend for cache lines: once a thread has a reader slot, its reads write no shared word.
#[test]
fn a_read_writes_no_word_that_is_shared() {
    tidalite_testkit::watch();
    let memory = LockMemory::new();
    let storage = Monitor::new(Arc::new(MemoryStorage::new()));
    let pager = Pager::open_storage_with(storage, &memory, &options()).unwrap();
    churn(&pager).unwrap();
    for _ in 0..8 {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                drop(pager.begin_read().unwrap());
                let before = memory.image();
                for _ in 0..3 {
                    let reader = pager.begin_read().unwrap();
                    look(&reader).unwrap();
                    assert!(memory.image() == before, "beside the slot");
                }
                assert!(memory.image() == before, "at the end");
            });
        });
    }
    let before = memory.image();
    churn(&pager).unwrap();
    assert!(memory.image() != before, "a commit writes there");
}
