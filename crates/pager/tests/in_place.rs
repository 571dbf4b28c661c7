//! Tests of a transaction that changes pages in place while a background thread writes other pages. Late writes of
//! the thread must not overwrite the pages changed in place.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use tidalite_disk::storage::{Growth, Places};
use tidalite_pager::{
    Durability, Kind, MemoryStorage, Options, PageRead, PageWrite, Pager, Ptr, Storage, WriteTxn,
};

/// Number of pages that the large transaction adds, which is enough for it to count as large.
const PAGES: u64 = 2600;
/// Number of changed pages, which is more than a transaction changes in place.
const CHANGED: usize = 100;
/// Offset in a page of the word that the test writes.
const WORD_AT: usize = 100;

/// A storage that allows any page to be changed in place, and delays the writes of leaves.
#[derive(Default)]
struct Lent {
    memory: MemoryStorage,
    /// Offsets of the pages whose change in place has begun.
    begun: Arc<Mutex<BTreeSet<u64>>>,
    /// Whether the background thread has written one of the pages in `begun` after its change had begun.
    hit: AtomicBool,
}

#[derive(Debug)]
struct Buffers {
    begun: Arc<Mutex<BTreeSet<u64>>>,
    pages: HashMap<u64, Box<[u8]>>,
}

impl Places for Buffers {
    fn may(&mut self, at: u64, len: usize) -> bool {
        self.begun.lock().unwrap().insert(at);
        self.pages.insert(at, vec![0; len].into());
        true
    }
    fn bytes(&self, at: u64, _: usize) -> &[u8] {
        &self.pages[&at]
    }
    fn bytes_mut(&mut self, at: u64, _: usize) -> &mut [u8] {
        self.pages.get_mut(&at).unwrap()
    }
}

impl Storage for Lent {
    fn read_at(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.memory.read_at(at, bytes)
    }
    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        if thread::current().name() == Some("tidalite-write") {
            thread::sleep(Duration::from_millis(2));
            let begun = self.begun.lock().unwrap();
            if begun.range(at..at + bytes.len() as u64).next().is_some() {
                self.hit.store(true, Ordering::SeqCst);
            }
        }
        self.memory.write_at(at, bytes)
    }
    fn places(&self) -> Option<Box<dyn Places>> {
        Some(Box::new(Buffers {
            begun: Arc::clone(&self.begun),
            pages: HashMap::new(),
        }))
    }
    fn changed_in_place(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.memory.write_at(at, bytes)
    }
    fn writes_back(&self) -> bool {
        true
    }
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
    fn sync_all(&self) -> io::Result<()> {
        Ok(())
    }
    fn len(&self) -> io::Result<u64> {
        self.memory.len()
    }
    fn grow(&self, len: u64, how: Growth) -> io::Result<()> {
        self.memory.grow(len, how)
    }
}

fn new_page(txn: &mut WriteTxn, word: u64) -> Ptr {
    let ptr = txn.new_page(Kind::KvLeaf, 7).unwrap();
    txn.page_mut(&ptr).unwrap()[WORD_AT..WORD_AT + 8].copy_from_slice(&word.to_le_bytes());
    ptr
}

/// Changes pages of earlier commits, seals them, and commits the transaction.
fn change(mut txn: WriteTxn, pages: &mut [Ptr], word: u64, durability: Durability) {
    for ptr in pages {
        *ptr = txn.shadow(ptr).unwrap();
        let bytes = txn.page_mut(ptr).unwrap();
        bytes[WORD_AT..WORD_AT + 8].copy_from_slice(&word.to_le_bytes());
        *ptr = txn.seal_page(ptr).unwrap();
    }
    txn.commit(b"", durability).unwrap();
}

fn look(pager: &Pager, pages: &[Ptr], word: u64) {
    let reader = pager.begin_read().unwrap();
    for ptr in pages {
        let page = reader.page(ptr).unwrap();
        assert_eq!(page[WORD_AT..WORD_AT + 8], word.to_le_bytes());
    }
}

/// Leaves of a large transaction are passed to the background thread and freed. Copies of older pages are then
/// allocated at the same addresses. These copies must not be changed in place while the thread writes.
#[test]
fn no_page_is_changed_in_place_while_a_thread_writes_beside() {
    tidalite_testkit::watch();
    if thread::available_parallelism().is_ok_and(|cores| cores.get() < 2) {
        println!("skipped: one processor, no thread");
        return;
    }
    let storage = Arc::new(Lent::default());
    let options = Options {
        log_bytes: 0,
        reserve_bytes: 0,
        // The file has room for only a few more pages than are in use at a time, so that freed addresses are reused
        // soon.
        file_bytes_max: (PAGES + 3 * CHANGED as u64) * 4096,
        ..Options::default()
    };
    let pager = Pager::open_storage(storage.clone(), &options).unwrap();
    let mut txn = pager.begin_write().unwrap();
    let mut pages: Vec<Ptr> = (0..CHANGED).map(|_| new_page(&mut txn, 0)).collect();
    for ptr in &mut pages {
        *ptr = txn.seal_page(ptr).unwrap();
    }
    txn.commit(b"", Durability::Durable).unwrap();
    for round in 1..4 {
        // The transaction after a lazy commit changes pages in place.
        change(
            pager.begin_write().unwrap(),
            &mut pages,
            10 * round,
            Durability::Lazy,
        );
        change(
            pager.begin_write().unwrap(),
            &mut pages[..9],
            10 * round,
            Durability::Lazy,
        );
        let in_place = storage.begun.lock().unwrap().len();
        assert!(in_place > 0, "round {round}");
        look(&pager, &pages, 10 * round);
        storage.begun.lock().unwrap().clear();

        let mut txn = pager.begin_write().unwrap();
        let leaves: Vec<Ptr> = (0..PAGES).map(|at| new_page(&mut txn, at)).collect();
        txn.write_leaves().unwrap();
        leaves.iter().for_each(|ptr| txn.free_page(ptr));
        change(txn, &mut pages, 10 * round + 1, Durability::Durable);
        look(&pager, &pages, 10 * round + 1);
        let places = pages
            .iter()
            .filter(|ptr| leaves.iter().any(|leaf| leaf.addr == ptr.addr));
        assert!(
            places.count() > CHANGED / 2,
            "they take the places of leaves"
        );
        assert!(
            !storage.hit.load(Ordering::SeqCst),
            "round {round}: what was late lies over it"
        );
        storage.begun.lock().unwrap().clear();
    }
}
