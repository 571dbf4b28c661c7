//! A disk that fails at every single call: full, with errors, with short writes. The transaction is rolled
//! back or the file poisoned, never half of either; bit flips are healed or reported.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod toy;

use std::sync::Arc;
use tidalite_pager::{Durability, Error, Pager, Storage};
use tidalite_testkit::rng::Rng;
use tidalite_testkit::{Fault, FaultKind, Monitor, SimDisk};
use toy::{Content, app, apply, changes, id_of, is_disk_error, options, problems, read, root_of};

fn open(disk: &Arc<SimDisk>) -> Result<Pager, Error> {
    let monitor = Monitor::new(Arc::clone(disk) as Arc<dyn Storage>);
    Pager::open_storage(monitor, &options())
}

/// A disk with some commits, their content, and the number of the last.
fn prepared(seed: u64, commits: u64) -> (Vec<u8>, Content) {
    let disk = Arc::new(SimDisk::new());
    let pager = open(&disk).unwrap();
    let mut rng = Rng::new(seed);
    let mut content = vec![0; toy::SLOTS];
    for id in 1..=commits {
        commit(&pager, &mut rng, id, Durability::Durable, &mut content).unwrap();
    }
    // Nothing is in the log: what is damaged is not made anew from there.
    pager.close().unwrap();
    (disk.image(), content)
}

/// `content` is changed only when the commit succeeds.
fn commit(
    pager: &Pager,
    rng: &mut Rng,
    id: u64,
    durability: Durability,
    content: &mut Content,
) -> Result<(), Error> {
    let changes = changes(rng, id);
    let mut txn = pager.begin_write()?;
    let old = root_of(txn.app());
    let root = apply(&mut txn, &old, &changes)?;
    txn.commit(&app(&root, id), durability)?;
    for (slot, version) in changes {
        content[slot] = version;
    }
    Ok(())
}

fn content_of(pager: &Pager) -> Content {
    let reader = pager.begin_read().unwrap();
    read(&reader, &root_of(reader.app()), &mut |_, _| {}).unwrap()
}

/// Runs commits with a fault at every call in turn; `judge` looks at what is left each time.
fn at_every_call(kind: FaultKind, forever: bool) {
    let (image, before) = prepared(5, 10);
    for at_call in 0.. {
        let disk = Arc::new(SimDisk::from_image(image.clone()));
        disk.set_fault(Some(Fault {
            at_call,
            forever,
            kind,
        }));
        let mut content = before.clone();
        let mut rng = Rng::new(at_call);
        let mut failed = None;
        match open(&disk) {
            Err(error) => failed = Some(error),
            Ok(pager) => {
                for id in 11..23 {
                    let durability = if id % 3 == 0 {
                        Durability::None
                    } else {
                        Durability::Durable
                    };
                    let done = commit(&pager, &mut rng, id, durability, &mut content);
                    if let Err(error) = done {
                        failed = Some(error);
                        break;
                    }
                }
                assert_eq!(content_of(&pager), content, "{kind:?} at call {at_call}");
                let hit = disk.fault_hit();
                disk.set_fault(None);
                if hit && matches!(failed, Some(Error::DiskFull { .. })) {
                    // Space came back: the database goes on as if nothing had happened.
                    commit(&pager, &mut rng, 99, Durability::Durable, &mut content).unwrap();
                    assert_eq!(
                        problems(&pager).unwrap(),
                        [""; 0],
                        "{kind:?} at call {at_call}"
                    );
                    drop(pager);
                    let pager = open(&disk).unwrap();
                    assert_eq!(content_of(&pager), content, "{kind:?} at call {at_call}");
                } else if hit {
                    // Poisoned, or a failed write: whatever is said, a reopened file is sound.
                    let poisoned = matches!(pager.begin_write(), Err(Error::Poisoned { .. }));
                    drop(pager);
                    let pager = open(&disk).unwrap();
                    assert_eq!(
                        problems(&pager).unwrap(),
                        [""; 0],
                        "{kind:?} at call {at_call}"
                    );
                    let found = content_of(&pager);
                    assert!(
                        poisoned
                            || found == content
                            || id_of(pager.begin_read().unwrap().app()) > 10
                    );
                }
            }
        }
        if let Some(error) = &failed {
            assert!(is_disk_error(error), "{kind:?} at call {at_call}: {error}");
        }
        if disk.calls() <= at_call {
            assert!(at_call > 40, "{kind:?}: only {at_call} calls to fail");
            return;
        }
    }
}

#[test]
fn a_full_disk_at_every_write() {
    at_every_call(FaultKind::DiskFull, false);
    at_every_call(FaultKind::DiskFull, true);
}

#[test]
fn an_error_of_the_medium_at_every_write() {
    at_every_call(FaultKind::Medium, false);
    at_every_call(FaultKind::Medium, true);
    at_every_call(FaultKind::ShortWrite, false);
}

#[test]
fn a_failed_sync_poisons_until_reopened() {
    let (image, mut content) = prepared(5, 3);
    let disk = Arc::new(SimDisk::from_image(image));
    let pager = open(&disk).unwrap();
    let mut rng = Rng::new(1);
    commit(&pager, &mut rng, 4, Durability::Durable, &mut content).unwrap();
    disk.set_fault(Some(Fault {
        at_call: 0,
        forever: false,
        kind: FaultKind::SyncFails,
    }));
    let mut at_call = 0;
    loop {
        let failed = commit(&pager, &mut rng, 5, Durability::Durable, &mut content);
        match failed {
            Err(Error::Io { .. }) => break,
            Err(error) => panic!("{error}"),
            Ok(()) => at_call += 1,
        }
        disk.set_fault(Some(Fault {
            at_call,
            forever: false,
            kind: FaultKind::SyncFails,
        }));
    }
    let again = commit(&pager, &mut rng, 6, Durability::None, &mut content);
    assert!(matches!(again, Err(Error::Poisoned { .. })));
    assert_eq!(content_of(&pager), content, "reading goes on");
    drop(pager);
    let pager = open(&disk).unwrap();
    commit(&pager, &mut rng, 7, Durability::Durable, &mut content).unwrap();
}

#[test]
fn each_bit_flip_is_healed_or_reported() {
    let (image, content) = prepared(9, 40);
    let probe =
        Pager::open_storage(Arc::new(SimDisk::from_image(image.clone())), &options()).unwrap();
    let mut covered = vec![false; image.len()];
    let check = probe.begin_check().unwrap();
    let root = root_of(check.snapshot().app());
    read(check.snapshot(), &root, &mut |addr, bytes| {
        covered[addr as usize..(addr + bytes) as usize].fill(true);
    })
    .unwrap();
    drop(check);
    let mut rng = Rng::new(3);
    for number in 0..4000 {
        let at = rng.index(image.len());
        let disk = Arc::new(SimDisk::from_image(image.clone()));
        disk.flip_bit(at, rng.below(8) as u8);
        let read_only = number % 2 == 1;
        let options = tidalite_pager::Options {
            read_only,
            ..options()
        };
        let pager = Pager::open_storage(disk, &options).unwrap();
        let found = problems(&pager);
        let noted = pager
            .begin_check()
            .is_ok_and(|check| !check.finish().notes.is_empty());
        let reader = pager.begin_read().unwrap();
        let answer = read(&reader, &root_of(reader.app()), &mut |_, _| {});
        match answer {
            Ok(answer) => assert_eq!(answer, content, "flip at byte {at}"),
            Err(error) => assert!(matches!(error, Error::Corrupt(_)), "{error}"),
        }
        let clean = found.is_ok_and(|problems| problems.is_empty());
        if at < 24 << 10 {
            // A record that does not count is none: who only reads is told, who writes heals it.
            let told = !clean || noted;
            assert_eq!(told, read_only, "flip at byte {at} of the head");
        } else if covered[at] {
            assert!(!clean, "flip at byte {at} is not reported");
        }
    }
}
