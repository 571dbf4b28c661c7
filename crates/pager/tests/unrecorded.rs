//! Tests of a commit that is named only by the lock file. Such a commit must be verified before use, with everything
//! that it points to: pinned versions, the table of pins, the clock, and the free-space lists.

use crate::toy::{self, SLOTS, app, apply, id_of, problems, read, root_of};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tidalite_pager::{Durability, LockMemory, Options, PageRead, Pager, Ticket, Verifier};
use tidalite_testkit::rng::Rng;
use tidalite_testkit::{Replay, SimDisk};

/// Number of bytes that a medium writes atomically.
const SECTOR: usize = 512;
/// The numbers of the last durable commit, of the commit with a pin among the lazy commits after it, and of the newest.
const DURABLE: u64 = 60;
const PINNED: u64 = 110;
const NEWEST: u64 = 160;

/// Commits changes of eight scattered slots. `pin`: whether to pin the commit.
fn commit(pager: &Pager, id: u64, durability: Durability, pin: bool) -> Ticket {
    let mut txn = pager.begin_write().unwrap();
    let root = root_of(txn.app());
    let slots: Vec<_> = (0..8)
        .map(|i| ((id * 37 + i * 29) as usize % SLOTS, id))
        .collect();
    let root = apply(&mut txn, &root, &slots).unwrap();
    if pin {
        txn.pin("held").unwrap();
    }
    txn.commit_ticket(&app(&root, id), durability).unwrap()
}

/// Simulates the loss of each sector that was written since the newest durable commit, while the lock file stays
/// unchanged. Opening must detect every loss.
#[test]
fn a_lost_sector_of_anything_that_the_lock_file_leads_to_is_noticed() {
    tidalite_testkit::watch();
    let options = Options {
        log_bytes: 0,
        shrink_bytes: 1 << 20,
        clock_step: Duration::ZERO,
        ..toy::options()
    };
    let open = |disk: &Arc<SimDisk>, memory: &LockMemory| {
        Pager::open_storage_with(disk.clone(), memory, &options).unwrap()
    };
    let (disk, memory) = (Arc::new(SimDisk::new()), LockMemory::new());
    let pager = open(&disk, &memory);
    for id in 1..=DURABLE {
        commit(&pager, id, Durability::Durable, id == 1)
            .wait()
            .unwrap();
    }
    let before = disk.image();
    for id in DURABLE + 1..PINNED {
        drop(commit(&pager, id, Durability::Lazy, false));
    }
    // Commits with pins are durable. The test does not wait for this commit, so it gets no meta record.
    let mut txn = pager.begin_write().unwrap();
    txn.unpin("held").unwrap();
    txn.pin("again").unwrap();
    let content = txn.app().to_vec();
    let waiting = txn.commit_ticket(&content, Durability::Durable).unwrap();
    for id in PINNED..=NEWEST {
        drop(commit(&pager, id, Durability::Lazy, false));
    }
    let (after, area) = (disk.image(), memory.image());
    memory.kill_all();
    drop((waiting, pager));
    let (mut dropped, mut unused) = (0, 0);
    for at in (0..after.len()).step_by(SECTOR) {
        let end = (at + SECTOR).min(after.len());
        let mut old = vec![0; end - at];
        if let Some(there) = before.get(at..end.min(before.len())) {
            old[..there.len()].copy_from_slice(there);
        }
        if at >= before.len() {
            // The sector did not exist before. It was written since, perhaps with zeros, so let it contain garbage.
            old.fill(0xa5);
        }
        if old == after[at..end] {
            continue;
        }
        let mut image = after.clone();
        image[at..end].copy_from_slice(&old);
        let disk = Arc::new(SimDisk::from_image(image));
        let pager = open(&disk, &LockMemory::from_image(&area));
        let found = id_of(pager.begin_read().unwrap().app());
        let name = if pager.recovery().dropped_unrecorded.is_some() {
            assert!((DURABLE..NEWEST).contains(&found), "byte {at}: {found}");
            dropped += 1;
            if found < PINNED - 1 { "held" } else { "again" }
        } else {
            assert_eq!(found, NEWEST, "byte {at}");
            unused += 1;
            "again"
        };
        let problems = problems(&pager).unwrap();
        assert!(problems.is_empty(), "byte {at}: {problems:?}");
        if let Some(pinned) = pager.begin_read_at(name).unwrap() {
            let whole = read(&pinned, &root_of(pinned.app()), &mut |_, _| ());
            assert!(whole.is_ok(), "byte {at}, {name}: {whole:?}");
        }
        let txn = pager.begin_read().unwrap();
        let now = txn.txn_at(i64::MAX);
        assert!(now.is_ok(), "byte {at}: {now:?}");
    }
    println!("{dropped} sectors were missed, {unused} that nothing reaches were not");
    assert!(dropped > 100 && unused > 0);
}

/// A forged meta record could make the traversal of the pages endless, so the total number of reads must be bounded.
#[test]
fn reads_of_an_unrecorded_state_are_bounded() {
    const READS_MAX: u64 = 1 << 20;
    tidalite_testkit::watch();
    let (disk, memory) = (Arc::new(SimDisk::new()), LockMemory::new());
    let pager = Pager::open_storage_with(disk.clone(), &memory, &toy::options()).unwrap();
    commit(&pager, 1, Durability::Durable, false)
        .wait()
        .unwrap();
    drop(commit(&pager, 2, Durability::Lazy, false));
    let (image, area) = (disk.image(), memory.image());
    memory.kill_all();
    drop(pager);
    let reads = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&reads);
    let options = Options {
        verifier: Some(Verifier::new(move |state| {
            let root = root_of(state.app());
            while counted.fetch_add(1, Ordering::Relaxed) < READS_MAX {
                state.page(&root)?;
            }
            Ok(())
        })),
        ..toy::options()
    };
    let len = image.len() as u64;
    let disk = Arc::new(SimDisk::from_image(image));
    let pager = Pager::open_storage_with(disk, &LockMemory::from_image(&area), &options).unwrap();
    assert!(pager.recovery().dropped_unrecorded.is_some());
    assert_eq!(id_of(pager.begin_read().unwrap().app()), 1);
    let bytes = reads.load(Ordering::Relaxed) * toy::PAGE as u64;
    assert!(bytes < 32 * len, "{bytes} bytes read of {len}");
}

/// Commits in the redo log must be replayed from it. The lock file names them too, but the loss of their pages must
/// not be reported, since the redo log restores them.
#[test]
fn commits_in_the_log_need_no_word_of_the_lock_file() {
    tidalite_testkit::watch();
    let (disk, memory) = (Arc::new(SimDisk::new()), LockMemory::new());
    let options = Options {
        log_bytes: 256 << 10,
        ..toy::options()
    };
    let pager = Pager::open_storage_with(disk.clone(), &memory, &options).unwrap();
    for id in 1..20 {
        commit(&pager, id, Durability::OneFlush, false)
            .wait()
            .unwrap();
    }
    assert!(pager.metrics().appends > 0);
    let (replay, area) = (Replay::at_end(&disk.recording()), memory.image());
    memory.kill_all();
    drop(pager);
    let mut lost = 0;
    for seed in 0..16 {
        let image = replay.power_cut(&mut Rng::new(seed));
        lost += u64::from(image != disk.image());
        let disk = Arc::new(SimDisk::from_image(image));
        let area = LockMemory::from_image(&area);
        let pager = Pager::open_storage_with(disk, &area, &options).unwrap();
        assert_eq!(id_of(pager.begin_read().unwrap().app()), 19);
        let recovery = pager.recovery();
        assert!(recovery.replayed > 0, "seed {seed}: {recovery:?}");
        assert_eq!(recovery.dropped_unrecorded, None, "seed {seed}");
    }
    assert!(lost > 0, "sectors were at stake");
}
