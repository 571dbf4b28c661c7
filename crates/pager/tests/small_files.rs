//! Tests of small files: their length, growth steps, the reserve for transactions that free space, and the empty redo
//! log after closing.

use std::sync::Arc;
use tidalite_pager::{Durability, Kind, Options, PageRead, PageWrite, Pager, Ptr, Storage};
use tidalite_testkit::{Fault, FaultKind, SimDisk};

const PAGE_SIZES: [usize; 4] = [512, 4096, 8192, 65536];

fn open(disk: &Arc<SimDisk>, page_size: usize) -> Pager {
    let options = Options {
        page_size,
        ..Options::default()
    };
    let storage = Arc::clone(disk) as Arc<dyn Storage>;
    Pager::open_storage(storage, &options).unwrap()
}

/// Replaces the pages by copies that contain `number`; missing pages are created.
fn write(pager: &Pager, pages: &mut Vec<Ptr>, many: usize, number: u64) {
    let mut txn = pager.begin_write().unwrap();
    txn.free_space();
    for at in 0..many {
        let own = match pages.get(at) {
            Some(old) => txn.shadow(old).unwrap(),
            None => txn.new_page(Kind::KvLeaf, 1).unwrap(),
        };
        txn.page_mut(&own).unwrap()[40..48].copy_from_slice(&number.to_le_bytes());
        let sealed = txn.seal_page(&own).unwrap();
        match pages.get_mut(at) {
            Some(page) => *page = sealed,
            None => pages.push(sealed),
        }
    }
    txn.commit(&number.to_le_bytes(), Durability::Durable)
        .unwrap();
}

/// Returns the data file without its lock file, as if the data file were copied to another machine.
fn data_file_alone(disk: &SimDisk) -> Arc<SimDisk> {
    Arc::new(SimDisk::from_image(disk.image()))
}

#[test]
fn a_closed_file_has_an_empty_log_and_gives_its_pages_back() {
    tidalite_testkit::watch();
    for page_size in PAGE_SIZES {
        for commits in [2u64, 12, 300] {
            let disk = Arc::new(SimDisk::new());
            let pager = open(&disk, page_size);
            let mut pages = Vec::new();
            for number in 1..=commits {
                write(&pager, &mut pages, 1, number);
            }
            // The redo log is created after a few small commits.
            assert_eq!(pager.metrics().appends > 0, commits > 10, "{page_size}");
            pager.close().unwrap();
            let file_bytes = disk.image().len() as u64;
            let pager = open(&data_file_alone(&disk), page_size);
            assert_eq!(pager.recovery().replayed, 0, "{page_size}, {commits}");
            let snapshot = pager.begin_read().unwrap();
            assert_eq!(snapshot.app(), commits.to_le_bytes());
            assert_eq!(snapshot.page(&pages[0]).unwrap()[40], commits as u8);
            let stat = pager.stat().unwrap();
            assert_eq!(stat.log_pages, 0);
            // The file has the head, a few pages, and as many pages for the reserve.
            let most = (24 << 10) + 24 * page_size as u64;
            println!("pages of {page_size}, {commits} commits: {file_bytes} bytes, {stat:?}");
            assert!(file_bytes <= most, "{file_bytes} of {most}");
        }
    }
}

/// A killed handle must leave commits in the redo log. This proves that the redo log was in use in the test above.
#[test]
fn a_file_that_was_not_closed_has_commits_in_the_log() {
    tidalite_testkit::watch();
    let disk = Arc::new(SimDisk::new());
    let pager = open(&disk, 4096);
    let mut pages = Vec::new();
    (1..=40).for_each(|number| write(&pager, &mut pages, 1, number));
    let alone = data_file_alone(&disk);
    drop(pager);
    assert!(open(&alone, 4096).recovery().replayed > 0);
}

/// Each growth of the file costs a sync of the length. A small file must therefore grow only when its length has
/// doubled, not at each commit.
#[test]
fn the_steps_of_a_small_file_double() {
    tidalite_testkit::watch();
    let disk = Arc::new(SimDisk::new());
    let pager = open(&disk, 4096);
    let (mut pages, mut lengths) = (Vec::new(), vec![pager.stat().unwrap().file_bytes]);
    for many in 1..1_200 {
        write(&pager, &mut pages, many, many as u64);
        let length = pager.stat().unwrap().file_bytes;
        if length != lengths[lengths.len() - 1] {
            lengths.push(length);
        }
        if length > 8 << 20 {
            break;
        }
    }
    println!("{lengths:?}");
    let small = lengths.iter().filter(|length| **length < 1 << 20).count();
    assert!((3..=8).contains(&small), "{lengths:?}");
    for step in lengths.windows(2) {
        let grown = step[1] - step[0];
        assert!(grown >= step[0].min(1 << 20), "{lengths:?}");
    }
}

/// On a full disk, a transaction must be able to copy every page of a small file, again and again. Removing data
/// never needs more than that.
#[test]
fn the_reserve_of_a_small_file_is_a_copy_of_it() {
    tidalite_testkit::watch();
    for page_size in PAGE_SIZES {
        for many in [1usize, 2, 5, 20, 60, 64] {
            let disk = Arc::new(SimDisk::new());
            let pager = open(&disk, page_size);
            let mut pages = Vec::new();
            write(&pager, &mut pages, many, 1);
            write(&pager, &mut pages, many, 2);
            disk.set_fault(Some(Fault {
                at_call: 0,
                forever: true,
                kind: FaultKind::NoSpace,
            }));
            for number in 3..9 {
                write(&pager, &mut pages, many, number);
            }
            let snapshot = pager.begin_read().unwrap();
            for page in &pages {
                assert_eq!(snapshot.page(page).unwrap()[40], 8);
            }
        }
    }
}
