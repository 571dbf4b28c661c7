//! Tests of read errors of the medium, temporary or permanent. When meta blocks are unreadable, an older commit must
//! never be mistaken for the newest. In another test every read of a process fails in turn: an unreadable block must
//! cause a typed error, and nothing may be lost.

use crate::harness::days::{Day, Tally, at_every_call};
use crate::harness::faulty::Step::{
    Check, Commit, Compact, Hold, HoldEvictable, Image, LetGo, Pin, Read, Small, Sync, Ticket, Wait,
};
use std::io;
use std::sync::Arc;
use tidalite_pager::Durability::{Durable, Lazy, OneFlush};
use tidalite_pager::{DiskError, Durability, Error, MemoryStorage, Options, Pager, Storage};
use tidalite_testkit::FaultKind;

/// Addresses of the four meta blocks, by meta record and copy.
const BLOCKS: [u64; 4] = [4096, 16384, 8192, 20480];

/// A file with some unreadable blocks.
struct Unreadable {
    inner: Arc<MemoryStorage>,
    blocks: Vec<u64>,
}

impl Storage for Unreadable {
    tidalite_testkit::forward_storage!(inner: write_at, sync, sync_all, len, grow);

    fn read_at(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        if self.blocks.contains(&at) {
            return Err(io::Error::from_raw_os_error(5));
        }
        self.inner.read_at(at, bytes)
    }
}

fn commit(pager: &Pager, app: &[u8]) -> Result<(), Error> {
    let txn = pager.begin_write()?;
    txn.commit(app, Durability::Durable).map(drop)
}

#[test]
fn blocks_that_cannot_be_read_hide_no_commit() {
    tidalite_testkit::watch();
    for commits in 1..=4_u8 {
        for set in 0..16_u32 {
            let file = Arc::new(MemoryStorage::new());
            let options = Options::default();
            let pager =
                Pager::open_storage(Arc::clone(&file) as Arc<dyn Storage>, &options).unwrap();
            for number in 1..=commits {
                commit(&pager, &[number]).unwrap();
            }
            drop(pager);
            let missing = (0..4).filter(|i| set & 1 << i != 0);
            let storage = Arc::new(Unreadable {
                inner: Arc::clone(&file),
                blocks: missing.map(|i: usize| BLOCKS[i]).collect(),
            });
            let whole_pair_missing = set & 0b11 == 0b11 || set & 0b1100 == 0b1100;
            match Pager::open_storage(storage, &options) {
                Ok(pager) => {
                    assert!(!whole_pair_missing, "{set:04b} after {commits}");
                    assert_eq!(pager.begin_read().unwrap().app(), [commits]);
                }
                Err(Error::Disk(DiskError::Io { .. })) => {
                    assert!(whole_pair_missing, "{set:04b} after {commits}");
                }
                Err(error) => panic!("{set:04b} after {commits}: {error}"),
            }
            // The medium has recovered, and nothing was lost in the meantime.
            let pager =
                Pager::open_storage(Arc::clone(&file) as Arc<dyn Storage>, &options).unwrap();
            assert_eq!(pager.begin_read().unwrap().app(), [commits], "{set:04b}");
        }
    }
}

/// Commits after a power failure: opening the file replays the redo log and writes its commits as a meta record.
const CUT: Day = Day {
    before: &[
        Commit(Durable),
        Pin("a"),
        Small(OneFlush),
        Small(OneFlush),
        Small(Durable),
        Small(Lazy),
    ],
    by_power_cut: true,
    steps: &[
        Hold,
        Small(OneFlush),
        Small(Lazy),
        HoldEvictable,
        Ticket(Durable),
        Small(Durability::None),
        Wait,
        Read,
        Pin("b"),
        Compact(Durable),
        LetGo,
        Small(OneFlush),
        Image,
        Check,
        Small(Lazy),
        Sync,
    ],
    sync_bytes: None,
    flusher: false,
    log_bytes: 16 << 10,
    seed: 35,
};

/// Commits after a kill: opening the file finds an unsynced meta record.
const KILLED: Day = Day {
    by_power_cut: false,
    ..CUT
};

#[test]
fn every_read_fails() {
    let mut tally = Tally::default();
    for day in [&CUT, &KILLED] {
        for forever in [false, true] {
            let reads = at_every_call(day, FaultKind::ReadFails, forever, &mut tally);
            assert!(reads > 200, "only {reads} reads to fail");
        }
    }
    assert!(tally.rolled_back > 200 && tally.not_opened > 20);
}
