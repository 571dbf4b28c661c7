//! Tests of the check of the blocks at the head of a file: traces of a crash must be notes, damage must be a problem.

use crate::toy::{self, app, apply, id_of, root_of};
use std::sync::Arc;
use tidalite_pager::{CheckReport, Durability, Options, Pager, Storage};
use tidalite_testkit::SimDisk;

const BLOCK: usize = 4096;

fn commit(pager: &Pager, id: u64) {
    let mut txn = pager.begin_write().unwrap();
    let old = root_of(txn.app());
    let root = apply(&mut txn, &old, &[(id as usize, id)]).unwrap();
    txn.commit(&app(&root, id), Durability::Durable).unwrap();
}

fn options(read_only: bool) -> Options {
    Options {
        read_only,
        log_bytes: 0,
        ..toy::options()
    }
}

fn open(image: &[u8], read_only: bool) -> (Arc<SimDisk>, Pager) {
    let storage = Arc::new(SimDisk::from_image(image.to_vec()));
    let pager = Pager::open_storage(storage.clone(), &options(read_only)).unwrap();
    (storage, pager)
}

/// Checks the whole file; the report also contains problems of the toy data structure.
fn checked(pager: &Pager) -> CheckReport {
    let mut check = pager.begin_check().unwrap();
    let root = root_of(check.snapshot().app());
    let snapshot = check.snapshot().clone();
    let mut claims = Vec::new();
    toy::read(&snapshot, &root, &mut |addr, bytes| {
        claims.push((addr, bytes.div_ceil(toy::PAGE as u64)));
    })
    .unwrap();
    for (addr, pages) in claims {
        assert!(check.claim(addr, pages, "toy"));
    }
    check.finish()
}

fn newest(pager: &Pager) -> u64 {
    id_of(pager.begin_read().unwrap().app())
}

/// Returns the bytes of a file two commits before the commit `newest`, and after it. The meta record of the newest
/// commit has replaced the older meta record, since both are written to the same pair of meta blocks.
fn two_states(newest: u64) -> (Vec<u8>, Vec<u8>) {
    let storage = Arc::new(SimDisk::new());
    let pager = Pager::open_storage(storage.clone(), &options(false)).unwrap();
    (1..newest - 1).for_each(|id| commit(&pager, id));
    let old = storage.image();
    (newest - 1..=newest).for_each(|id| commit(&pager, id));
    (old, storage.image())
}

/// Returns the block numbers of the two meta blocks with the newest meta record.
fn newest_pair(old: &[u8], new: &[u8]) -> [usize; 2] {
    let txn =
        |image: &[u8], at: usize| u64::from_le_bytes(image[at + 24..at + 32].try_into().unwrap());
    let newest = [1, 2, 4, 5]
        .map(|block| txn(new, block * BLOCK))
        .into_iter()
        .max();
    let blocks = [1, 2, 4, 5].into_iter();
    let pair: Vec<usize> = blocks
        .filter(|block| Some(txn(new, block * BLOCK)) == newest)
        .collect();
    assert!(
        pair.iter()
            .all(|block| txn(old, block * BLOCK) + 2 == newest.unwrap())
    );
    [pair[0] * BLOCK, pair[1] * BLOCK]
}

/// A power failure between the writes of the two copies of a new meta record leaves one copy old or torn. No data is
/// lost, and a writer repairs the copy, so a check must add a note and find no problem.
#[test]
fn a_power_cut_between_the_copies_of_the_newest_record_leaves_no_problem() {
    tidalite_testkit::watch();
    for commits in [6, 7] {
        let (old, new) = two_states(commits);
        for at in newest_pair(&old, &new) {
            for torn in [false, true] {
                let mut image = new.clone();
                image[at..at + BLOCK].copy_from_slice(&old[at..at + BLOCK]);
                if torn {
                    image[at + 512..at + 1024].fill(0xa5);
                }
                let (storage, pager) = open(&image, true);
                let report = checked(&pager);
                assert_eq!(report.problems, [""; 0], "block at {at}, torn: {torn}");
                assert_eq!(report.notes.len(), 1, "{:?}", report.notes);
                assert!(
                    report.notes[0].contains("for writing"),
                    "{:?}",
                    report.notes
                );
                assert_eq!(newest(&pager), commits);
                assert!(storage.image() == image, "a reader wrote");

                // A handle for writing repairs the block when it opens the file, so its check finds no problem. If
                // such a handle finds damage later, that damage is new.
                let (storage, pager) = open(&image, false);
                let healed = checked(&pager);
                assert!(healed.is_clean() && healed.notes.is_empty(), "{healed:?}");
                storage.write_at(at as u64, &image[at..at + BLOCK]).unwrap();
                let report = checked(&pager);
                assert_eq!(report.problems.len(), 1, "{report:?}");
                assert_eq!(report.problems_healable, 1);
            }
        }
    }
}

/// A crash never damages blocks of both pairs, or a superblock. A check must report such blocks as damage, although a
/// writer repairs them.
#[test]
fn damage_that_no_crash_leaves_stays_a_problem() {
    tidalite_testkit::watch();
    let (_, new) = two_states(6);
    for (damaged, problems) in [(&[0][..], 1), (&[3], 1), (&[1, 2], 2), (&[4, 5], 2)] {
        let mut image = new.clone();
        for block in damaged {
            image[block * BLOCK + 40] ^= 1;
        }
        let report = checked(&open(&image, true).1);
        assert_eq!(
            report.problems.len(),
            problems,
            "blocks {damaged:?}: {report:?}"
        );
        assert_eq!(report.problems_healable, problems as u64);
        for problem in &report.problems {
            assert!(
                problem.contains("opens the file for writing rewrites it"),
                "{problem}"
            );
        }
        let healed = checked(&open(&image, false).1);
        assert!(healed.is_clean(), "blocks {damaged:?}: {healed:?}");
    }
}
