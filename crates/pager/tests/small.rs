//! Small transactions, by counters: what a commit takes, writes and keeps.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;
use tidalite_pager::{Durability, Kind, Options, PageWrite, Pager};
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

/// A transaction that takes so many pages and gives none back.
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

/// Transactions that remove something may take more than they free as long as the file can grow. (The reserve is a share of
/// what is in use: it became larger than what was free, and the commit was refused.)
#[test]
fn removing_is_not_refused_while_the_file_can_grow() {
    let (_disk, pager) = open(Options::default());
    for id in 1..1500 {
        take(&pager, 1 + id % 3, id, true);
    }
}
