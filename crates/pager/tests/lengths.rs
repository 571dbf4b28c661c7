//! Tests of two handles on one file: neither handle may rely on space that the other has truncated.

use std::path::Path;
use tidalite_pager::{
    Durability, Kind, OpenMode, Options, PageRead, PageWrite, Pager, Ptr, WriteTxn,
};

const PAGE: usize = 512;

fn open(path: &Path) -> Pager {
    let options = Options {
        mode: OpenMode::CreateOrOpen,
        page_size: PAGE,
        growth_bytes_min: 16 << 10,
        growth_bytes_max: 16 << 10,
        shrink_bytes: 8 << 10,
        reserve_bytes: 0,
        log_bytes: 0,
        ..Options::default()
    };
    Pager::open(path, &options).unwrap()
}

fn pages(txn: &mut WriteTxn, count: u64) -> Vec<Ptr> {
    let mut page = |number: u64| {
        let ptr = txn.new_page(Kind::KvLeaf, 7).unwrap();
        txn.page_mut(&ptr).unwrap()[64..72].copy_from_slice(&number.to_le_bytes());
        txn.seal_page(&ptr).unwrap()
    };
    (0..count).map(&mut page).collect()
}

#[test]
fn a_file_that_another_handle_has_cut_grows_again() {
    tidalite_testkit::watch();
    let folder = std::env::temp_dir().join(format!("tidalite-lengths-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("cut.tdl");
    let len = || std::fs::metadata(&path).unwrap().len();
    for (as_extent, durability) in [
        (false, Durability::Durable),
        (true, Durability::Durable),
        // Lazy commits write pages through the memory map.
        (false, Durability::Lazy),
    ] {
        let (a, b) = (open(&path), open(&path));
        let mut txn = a.begin_write().unwrap();
        let all = pages(&mut txn, 2000);
        txn.commit(b"long", Durability::Durable).unwrap();
        let longest = len();
        let mut txn = b.begin_write().unwrap();
        all.iter().for_each(|ptr| txn.free_page(ptr));
        txn.commit(b"freed", Durability::Durable).unwrap();
        for round in 0..5u8 {
            let mut txn = b.begin_write().unwrap();
            txn.set_user_data(&[round]).unwrap();
            txn.commit(b"short", Durability::Durable).unwrap();
        }
        assert!(len() < longest / 2, "{} of {longest} bytes", len());
        // The transaction needs more pages than are free now, but fewer than the file had before the other handle
        // truncated it.
        let mut txn = a.begin_write().unwrap();
        let (mut taken, mut extent) = (Vec::new(), None);
        if as_extent {
            let own = txn.alloc_extent(1500).unwrap();
            txn.write_extent(own.addr, &vec![3; 1500 * PAGE - 100])
                .unwrap();
            extent = Some(own);
        } else {
            taken = pages(&mut txn, 1500);
        }
        txn.commit(b"long again", durability).unwrap();
        let c = open(&path);
        let snapshot = c.begin_read().unwrap();
        assert_eq!(snapshot.app(), b"long again");
        assert!(c.begin_check().unwrap().snapshot().app() == b"long again");
        for (number, ptr) in taken.iter().enumerate() {
            let page = snapshot.page(ptr).unwrap();
            assert_eq!(page[64..72], (number as u64).to_le_bytes());
        }
        drop(snapshot);
        let mut txn = c.begin_write().unwrap();
        taken.iter().for_each(|ptr| txn.free_page(ptr));
        extent.iter().for_each(|extent| txn.free_extent(extent));
        txn.commit(b"", Durability::Durable).unwrap();
    }
    std::fs::remove_dir_all(folder).unwrap();
}
