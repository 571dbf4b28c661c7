//! Tests of the costs of small transactions by counters: pages that a commit allocates, writes and retains.

use crate::toy;
use std::sync::Arc;
use tidalite_pager::{Durability, Kind, Options, PageWrite, Pager, Snapshot};
use tidalite_testkit::SimDisk;

const PAGE: usize = 512;

fn open(options: Options) -> (Arc<SimDisk>, Pager) {
    let disk = Arc::new(SimDisk::new());
    let options = Options {
        page_size: PAGE,
        growth_bytes_min: 4 << 10,
        ..options
    };
    let pager = Pager::open_storage(disk.clone(), &options).unwrap();
    (disk, pager)
}

/// Commits a transaction that allocates `pages` pages and frees no pages.
fn take(pager: &Pager, pages: u64, id: u64, frees_space: bool) {
    let mut txn = pager.begin_write().unwrap();
    if frees_space {
        txn.free_space();
    }
    for page in 0..pages {
        let ptr = txn.new_page(Kind::KvLeaf, id).unwrap();
        txn.page_mut(&ptr).unwrap()[40] = page as u8;
        txn.seal_page(&ptr).unwrap();
    }
    txn.commit(&id.to_le_bytes(), Durability::Lazy).unwrap();
}

/// Transactions that remove data must be able to allocate more pages than they free as long as the file can grow.
/// (Regression: the reserve, which is a share of the space in use, became larger than the free space, and the commit
/// failed.)
#[test]
fn removing_is_not_refused_while_the_file_can_grow() {
    tidalite_testkit::watch();
    let (_disk, pager) = open(Options::default());
    for id in 1..1500 {
        take(&pager, 1 + id % 3, id, true);
    }
}

/// Commits version `id` of one slot of the toy data structure; returns the number of pages written.
fn push(pager: &Pager, id: u64, durability: Durability) -> u64 {
    let mut txn = pager.begin_write().unwrap();
    let old = toy::root_of(txn.app());
    let slot = (id * 7 % toy::SLOTS as u64) as usize;
    let root = toy::apply(&mut txn, &old, &[(slot, id)]).unwrap();
    let info = txn.commit(&toy::app(&root, id), durability).unwrap();
    info.pages_written
}

fn content(snapshot: &Snapshot) -> toy::Content {
    toy::read(snapshot, &toy::root_of(snapshot.app()), &mut |_, _| ()).unwrap()
}

/// Commits with `Durability::None` must write no page, and each reader must see the data of its own commit. The next
/// durable commit must write the pages that are still in use, each once.
#[test]
fn commits_that_promise_nothing_are_written_once_and_late() {
    tidalite_testkit::watch();
    let (disk, pager) = open(Options::default());
    push(&pager, 1, Durability::Durable);
    let before = pager.metrics();
    let mut readers = Vec::new();
    for id in 2..300 {
        // No whole page is written. (Slots that are extents are written at once, but are not counted here.)
        assert_eq!(push(&pager, id, Durability::None), 0);
        if id % 40 == 0 {
            readers.push((id, pager.begin_read().unwrap()));
        }
        let newest = pager.begin_read().unwrap();
        assert_eq!(toy::id_of(newest.app()), id);
        content(&newest);
    }
    assert_eq!(pager.metrics().writes, before.writes);
    let kept: Vec<_> = readers.iter().map(|(_, reader)| content(reader)).collect();
    let pages = push(&pager, 300, Durability::Durable);
    // The pages are one root, at most twelve branches, the leaves in pages, and the free-space structure.
    assert!((20..160).contains(&pages), "{pages} pages");
    let writes = pager.metrics().writes - before.writes;
    assert!(writes <= pages, "{writes} writes of {pages} pages");
    for ((id, reader), kept) in readers.iter().zip(&kept) {
        assert_eq!(toy::id_of(reader.app()), *id);
        let again = content(reader);
        assert_eq!(&again, kept, "as of {id}");
    }
    let newest = pager.begin_read().unwrap();
    let last = content(&newest);
    drop((newest, readers));
    assert_eq!(toy::problems(&pager).unwrap(), [""; 0]);
    drop(pager);
    let pager = Pager::open_storage(disk, &Options::default()).unwrap();
    let again = pager.begin_read().unwrap();
    assert_eq!(content(&again), last);
}

/// A commit that would exceed the limit for unwritten pages must write them, so that they leave the memory.
#[test]
fn pages_kept_in_memory_are_bounded() {
    tidalite_testkit::watch();
    let (_disk, pager) = open(Options {
        unwritten_bytes_max: 40 * PAGE,
        ..Options::default()
    });
    push(&pager, 1, Durability::Durable);
    let mut writing = 0;
    for id in 2..400 {
        let pages = push(&pager, id, Durability::None);
        assert!(pages <= 40 + 4, "{pages} pages");
        writing += u64::from(pages > 0);
    }
    assert!((5..100).contains(&writing), "{writing} commits wrote");
    assert_eq!(toy::problems(&pager).unwrap(), [""; 0]);
}

/// Adjacent pages must be written by one call.
#[test]
fn neighbours_are_one_write() {
    tidalite_testkit::watch();
    let (_disk, pager) = open(Options::default());
    take(&pager, 3, 1, false);
    let before = pager.metrics().writes;
    take(&pager, 100, 2, false);
    let writes = pager.metrics().writes - before;
    assert!(writes <= 2, "{writes} writes of 100 neighbouring pages");
}
