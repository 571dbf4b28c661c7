//! Tests in which a process dies in the middle of an operation, another process continues, and then the power fails.
//! The operations are: file growth that is not synced, the write of a meta record of which one copy is not on the
//! medium yet, and the write of a meta record that contains the commits of the redo log.

use crate::toy::{Content, SLOTS, app, apply, id_of, options, read, root_of};
use std::io::{self, Cursor, Read, Write};
use std::ops::Range;
use std::sync::{Arc, Mutex};
use tidalite_pager::{Durability, Error, LockMemory, Options, Pager, Storage, Ticket, restore};
use tidalite_testkit::rng::Rng;
use tidalite_testkit::{Fault, FaultKind, Hook, Op, Replay, SimDisk, Tap, forward_storage};

/// Number of power failures simulated in each situation.
const SEEDS: u64 = 24;
/// Number of commits made to scatter the free space.
const SCATTERED: u64 = 100;
/// Addresses of the four meta blocks.
const META_BLOCKS: [u64; 4] = [4096, 8192, 16_384, 20_480];

/// Opens the file of a dead process, with an empty lock area.
fn open(disk: &Arc<SimDisk>) -> Result<Pager, Error> {
    let storage = Arc::clone(disk) as Arc<dyn Storage>;
    Pager::open_storage_with(storage, &LockMemory::new(), &options())
}

/// Begins a commit that writes the given version into some slots.
fn change(
    pager: &Pager,
    slots: Range<usize>,
    version: u64,
    durability: Durability,
) -> Result<Ticket, Error> {
    let mut txn = pager.begin_write()?;
    let mut root = root_of(txn.app());
    let slots: Vec<_> = slots.map(|slot| (slot, version)).collect();
    for part in slots.chunks(40) {
        root = apply(&mut txn, &root, part)?;
    }
    txn.commit_ticket(&app(&root, version), durability)
}

fn commit(pager: &Pager, slots: Range<usize>, version: u64) -> Result<(), Error> {
    change(pager, slots, version, Durability::Durable)?.wait()?;
    Ok(())
}

/// Returns the number and the content of the commit that an open file shows.
fn found(pager: &Pager) -> Result<(u64, Content), Error> {
    let snapshot = pager.begin_read()?;
    let content = read(&snapshot, &root_of(snapshot.app()), &mut |_, _| ())?;
    Ok((id_of(snapshot.app()), content))
}

/// Returns the number and the content of the commit found in an image of the disk.
fn found_in(image: Vec<u8>) -> Result<(u64, Content), Error> {
    found(&open(&Arc::new(SimDisk::from_image(image)))?)
}

fn die_at(disk: &SimDisk, call: u64) {
    disk.set_fault(Some(Fault {
        at_call: call,
        forever: true,
        kind: FaultKind::Killed,
    }));
}

/// A process that grows the file is killed at each of its calls. The next process uses the space that it finds. If a
/// power failure reverts the length of the file, the acknowledged commits of the next process must not lie beyond
/// that length.
#[test]
fn growth_of_a_killed_process_is_synced_before_a_commit_needs_it() {
    tidalite_testkit::watch();
    let mut longer = 0;
    for call in 0.. {
        let (disk, done) = killed_while_growing(call);
        if done.is_ok() {
            break;
        }
        let image = disk.image();
        longer += u64::from(image.len() > killed_while_growing(0).0.image().len());
        // Make commits of several sizes: some need exactly the pages by which the file has grown.
        for slots in [10, 20, 30, 40, 60, 80, 100, SLOTS] {
            let (disk, _) = killed_while_growing(call);
            let pager = open(&disk).unwrap();
            commit(&pager, 0..slots, 3).unwrap();
            let expected = found(&pager).unwrap();
            assert_eq!(expected.0, 3);
            let replay = Replay::at_end(&disk.recording());
            drop(pager);
            for seed in 0..SEEDS {
                let after = found_in(replay.power_cut(&mut Rng::new(seed)));
                assert_eq!(
                    after.as_ref().ok(),
                    Some(&expected),
                    "killed at call {call}, then {slots} slots, seed {seed}: {after:?}"
                );
            }
        }
    }
    assert!(longer > 0, "the file was found longer than its record says");
}

/// Returns a disk whose process was killed at the given call of a large commit, and the result of the commit.
fn killed_while_growing(call: u64) -> (Arc<SimDisk>, Result<(), Error>) {
    let disk = Arc::new(SimDisk::new());
    let pager = open(&disk).unwrap();
    commit(&pager, 0..12, 1).unwrap();
    die_at(&disk, call);
    let done = commit(&pager, 0..SLOTS, 2);
    drop(pager);
    disk.set_fault(None);
    (disk, done)
}

/// After a failed sync, the cache of the operating system has a meta record that no later sync writes to the medium.
/// A process that makes this meta record durable must rewrite both copies, so that damage to one block does not undo
/// commits acknowledged by `sync`.
#[test]
fn sync_brings_both_copies_of_a_found_record_to_the_medium() {
    tidalite_testkit::watch();
    let mut newer = 0;
    for call in 0.. {
        let disk = Arc::new(SimDisk::new());
        let pager = open(&disk).unwrap();
        commit(&pager, 0..40, 1).unwrap();
        disk.set_fault(Some(Fault {
            at_call: call,
            forever: false,
            kind: FaultKind::SyncFails,
        }));
        let calls = disk.calls();
        let done = commit(&pager, 0..SLOTS, 2);
        let (struck, calls) = (disk.fault_hit(), disk.calls() - calls);
        drop(pager);
        disk.set_fault(None);
        if !struck {
            done.unwrap();
            if call >= calls {
                break;
            }
            // The call was not a sync, so the fault did not occur.
            continue;
        }
        let pager = open(&disk).unwrap();
        // The pages of the second commit may be lost with the failed sync. The meta record that points to them was
        // not written then either.
        let Ok(expected) = found(&pager) else {
            continue;
        };
        pager.sync().unwrap();
        let replay = Replay::at_end(&disk.recording());
        drop(pager);
        newer += u64::from(expected.0 == 2);
        for seed in 0..SEEDS {
            for at in META_BLOCKS {
                let mut image = replay.power_cut(&mut Rng::new(seed));
                image[at as usize + 100] ^= 1;
                let after = found_in(image);
                assert_eq!(
                    after.as_ref().ok(),
                    Some(&expected),
                    "sync {call} failed, block at {at} damaged, seed {seed}: {after:?}"
                );
            }
        }
    }
    assert!(newer > 0, "a record was found whose sync had failed");
}

/// A process is killed at each call while it rewrites the newest meta record, so one copy may not be on the medium.
/// The next process rewrites the meta record too, and the power fails after each of its operations. It must begin
/// with the copy that may not be on the medium.
#[test]
fn a_death_inside_a_confirmation_leaves_one_copy_whole() {
    tidalite_testkit::watch();
    let mut deaths = 0;
    // The copy that is written first alternates from round to round.
    for rounds in 0..4 {
        for call in 0.. {
            let disk = Arc::new(SimDisk::new());
            let pager = open(&disk).unwrap();
            commit(&pager, 0..20, 1).unwrap();
            commit(&pager, 0..40, 2).unwrap();
            let expected = found(&pager).unwrap();
            drop(pager);
            for _ in 0..rounds {
                drop(open(&disk).unwrap().begin_write().unwrap());
            }
            let pager = open(&disk).unwrap();
            die_at(&disk, call);
            let begun = pager.begin_write().map(drop);
            let killed = disk.is_dead();
            drop(pager);
            disk.set_fault(None);
            if !killed {
                assert!(begun.is_ok());
                break;
            }
            deaths += 1;
            let operations = disk.operations();
            let pager = open(&disk).unwrap();
            drop(pager.begin_write().unwrap());
            let recording = disk.recording();
            drop(pager);
            let mut replay = Replay::new(&recording);
            for (number, op) in recording.ops.iter().enumerate() {
                replay.step(op);
                if (number as u64) < operations || !replay.at_stake() {
                    continue;
                }
                for seed in 0..SEEDS {
                    let after = found_in(replay.power_cut(&mut Rng::new(seed)));
                    assert_eq!(
                        after.as_ref().ok(),
                        Some(&expected),
                        "{rounds} rounds, killed at call {call}, power cut after operation {number}, seed {seed}: {after:?}"
                    );
                }
            }
        }
    }
    assert!(deaths >= 4 * 2, "killed {deaths} times");
}

/// A commit waits for a write to the redo log, but the next flush writes a meta record that contains the commit.
/// Another commit arrives during that flush. The redo log that follows the meta record must contain only commits that
/// are not in the meta record.
#[test]
fn a_new_log_omits_commits_of_its_record() {
    tidalite_testkit::watch();
    let (disk, memory) = (Arc::new(SimDisk::new()), LockMemory::new());
    let tap = Tap::new(
        Arc::clone(&disk) as Arc<dyn Storage>,
        &disk,
        &memory,
        Vec::new(),
    );
    let storage = Arc::clone(&tap) as Arc<dyn Storage>;
    let pager = Pager::open_storage_with(storage, &memory, &options()).unwrap();
    let mut version = 0;
    let mut next = || {
        version += 1;
        version
    };
    commit(&pager, 0..SLOTS, next()).unwrap();
    // The second of these commits creates the redo log.
    for _ in 0..6 {
        let ticket = change(&pager, 0..1, next(), Durability::OneFlush).unwrap();
        ticket.wait().unwrap();
    }
    let appends = pager.metrics().appends;
    assert!(appends > 0, "small commits go to the log");
    for _ in 0..20 {
        let waiting = change(&pager, 0..1, next(), Durability::Durable).unwrap();
        let number = next();
        let during: Arc<Mutex<Option<Ticket>>> = Arc::default();
        let hook = {
            let (during, pager) = (Arc::clone(&during), pager.clone());
            move || {
                let mut during = during.lock().unwrap();
                if during.is_none() {
                    *during = change(&pager, 1..2, number, Durability::Durable).ok();
                }
            }
        };
        tap.set_hook(Some(Box::new(hook)));
        pager.checkpoint().unwrap();
        tap.set_hook(None);
        waiting.wait().unwrap();
        let during = during.lock().unwrap().take();
        during.unwrap().wait().unwrap();
        let left = disk.image();
        assert_eq!(found_in(left).unwrap().0, number);
    }
    assert!(pager.metrics().appends > appends);
}

/// The last sync of the previous flush has covered the data of a commit, so its own flush need not sync the data. But
/// that sync did not cover the file length that the commit needs, so the flush must sync the length.
#[test]
fn growth_of_a_commit_whose_data_is_synced_is_synced_too() {
    tidalite_testkit::watch();
    let (disk, memory) = (Arc::new(SimDisk::new()), LockMemory::new());
    let storage = Arc::clone(&disk) as Arc<dyn Storage>;
    let tap = Tap::new(storage, &disk, &memory, Vec::new());
    let options = Options {
        log_bytes: 0,
        // Nothing is truncated, so the flush of the first commit has no changed length to sync.
        shrink_bytes: 1 << 20,
        ..options()
    };
    let storage = Arc::clone(&tap) as Arc<dyn Storage>;
    let pager = Pager::open_storage_with(storage, &memory, &options).unwrap();
    commit(&pager, 0..12, 1).unwrap();
    let first = change(&pager, 0..12, 2, Durability::Durable).unwrap();
    let len = disk.image().len();
    let begun = disk.operations() as usize;
    let during: Arc<Mutex<Option<Ticket>>> = Arc::default();
    let (beside, kept) = (pager.clone(), Arc::clone(&during));
    tap.set_hook(Some(Box::new(move || {
        let mut kept = kept.lock().unwrap();
        if kept.is_none() {
            // Growth after a lazy commit is not synced at once.
            drop(change(&beside, 0..1, 3, Durability::Lazy).unwrap());
            *kept = change(&beside, 0..SLOTS, 4, Durability::Durable).ok();
        }
    })));
    first.wait().unwrap();
    tap.set_hook(None);
    let of_length = |op: &&Op| matches!(op, Op::Sync(true));
    let ops = disk.recording().ops;
    let synced = ops[begun..].iter().filter(of_length).count();
    assert_eq!(
        synced, 0,
        "the first flush synced what the second one has to"
    );
    let second = during.lock().unwrap().take().unwrap();
    second.wait().unwrap();
    assert!(disk.image().len() > len, "the file has grown");
    is_kept(&pager, &disk, 4);
}

/// A lazy commit that was found in the lock area must be made durable together with the file length that it needs.
#[test]
fn growth_of_a_lazy_commit_that_was_found_is_synced() {
    tidalite_testkit::watch();
    let (disk, memory) = (Arc::new(SimDisk::new()), LockMemory::new());
    let open = |memory: &LockMemory| {
        let storage = Arc::clone(&disk) as Arc<dyn Storage>;
        Pager::open_storage_with(storage, memory, &options()).unwrap()
    };
    let pager = open(&memory);
    commit(&pager, 0..12, 1).unwrap();
    let len = disk.image().len();
    drop(change(&pager, 0..1, 2, Durability::Lazy).unwrap());
    drop(change(&pager, 0..SLOTS, 3, Durability::Lazy).unwrap());
    assert!(disk.image().len() > len, "the file has grown");
    let area = memory.image();
    memory.kill_all();
    drop(pager);
    let pager = open(&LockMemory::from_image(&area));
    assert_eq!(found(&pager).unwrap().0, 3);
    pager.sync().unwrap();
    is_kept(&pager, &disk, 3);
}

/// Small commits that follow unsynced file growth must be durable too, with each kind of durable commit.
#[test]
fn commits_after_growth_that_is_not_synced_are_durable() {
    tidalite_testkit::watch();
    for durability in [Durability::OneFlush, Durability::Durable] {
        let disk = Arc::new(SimDisk::new());
        let pager = open(&disk).unwrap();
        commit(&pager, 0..12, 1).unwrap();
        for version in 2..6 {
            let ticket = change(&pager, 0..1, version, Durability::OneFlush).unwrap();
            ticket.wait().unwrap();
        }
        assert!(pager.metrics().appends > 0, "there is a log");
        for (slots, version) in [(0..1, 6), (0..SLOTS / 2, 7)] {
            drop(change(&pager, slots, version, Durability::Lazy).unwrap());
        }
        for version in 8..12 {
            let ticket = change(&pager, 0..3, version, durability).unwrap();
            ticket.wait().unwrap();
            is_kept(&pager, &disk, version);
        }
    }
}

/// Asserts that this version would survive any power failure at this moment.
fn is_kept(pager: &Pager, disk: &Arc<SimDisk>, version: u64) {
    let expected = found(pager).unwrap();
    assert_eq!(expected.0, version);
    let replay = Replay::at_end(&disk.recording());
    for seed in 0..SEEDS {
        let after = found_in(replay.power_cut(&mut Rng::new(seed)));
        assert_eq!(
            after.as_ref().ok(),
            Some(&expected),
            "seed {seed}: {after:?}"
        );
    }
}

/// A lock file from another time names lazy commits that build on the meta record before the newest one. They must
/// count only if they also name the newest meta record by its checksum. Otherwise that meta record may belong to
/// another history of the file, in which these commits were never made.
#[test]
fn unsynced_metas_of_another_history_of_the_file_do_not_count() {
    tidalite_testkit::watch();
    let (disk, memory) = (Arc::new(SimDisk::new()), LockMemory::new());
    // Prevent truncation and hole punching of free pages.
    let options = Options {
        shrink_bytes: 1 << 20,
        ..options()
    };
    let open_next_to = |disk: &Arc<SimDisk>, memory: &LockMemory| {
        Pager::open_storage_with(Arc::clone(disk) as Arc<dyn Storage>, memory, &options).unwrap()
    };
    let pager = open_next_to(&disk, &memory);
    commit(&pager, 0..40, 1).unwrap();
    for version in [2, 3] {
        drop(change(&pager, 0..5, version, Durability::Lazy).unwrap());
    }
    let lock_file = memory.image();
    assert_eq!(found(&pager).unwrap().0, 3);
    // The pages of the lazy commits are in the file, but without the lock file these commits are not found.
    let other = Arc::new(SimDisk::from_image(disk.image()));
    drop(pager);
    let pager = open_next_to(&other, &LockMemory::new());
    let txn = pager.begin_write().unwrap();
    let root = root_of(txn.app());
    // Make a commit that writes no page.
    txn.commit(&app(&root, 4), Durability::Durable).unwrap();
    let expected = found(&pager).unwrap();
    assert_eq!(expected.0, 4);
    drop(pager);
    let pager = open_next_to(&other, &LockMemory::from_image(&lock_file));
    assert_eq!(found(&pager).unwrap(), expected);
}

/// Other commits are made while a backup determines the pages to copy, and while its stream is written. They must not
/// affect the version that is backed up.
#[test]
fn a_backup_of_the_newest_version_is_of_one_version() {
    tidalite_testkit::watch();
    for incremental in [false, true] {
        let reads = Arc::new(Reads::default());
        let storage = Arc::clone(&reads) as Arc<dyn Storage>;
        let pager = Pager::open_storage(storage, &options()).unwrap();
        let mut full = Vec::new();
        commit(&pager, 0..SLOTS, 1).unwrap();
        if incremental {
            let mut txn = pager.begin_write().unwrap();
            let root = root_of(txn.app());
            txn.pin("base").unwrap();
            txn.commit(&app(&root, 1), Durability::Durable).unwrap();
            pager
                .backup(Some("base"), None, &mut full, &mut |_, _, _| Ok(()))
                .unwrap();
        }
        // Scatter the free space until its list does not fit in a meta record, so that a backup reads pages of the
        // free-space lists.
        for version in 2..SCATTERED {
            let from = version as usize * 53 % (SLOTS - 20);
            commit(&pager, from..from + 20, version).unwrap();
        }
        let expected = found(&pager).unwrap();
        let busy = pager.clone();
        *reads.hook.lock().unwrap() = Some(Box::new(move || {
            // The writer lock must be free here, so this read was not made by a commit.
            let is_free = busy.try_begin_write().unwrap().is_some();
            for version in SCATTERED..SCATTERED + 3 {
                assert!(is_free, "the backup reads before it writes");
                commit(&busy, 0..SLOTS, version).unwrap();
            }
        }));
        let mut out = CommitsWhileWritten {
            pager: &pager,
            version: SCATTERED + 3,
            bytes: Vec::new(),
        };
        let base = incremental.then_some("base");
        pager
            .backup(None, base, &mut out, &mut |_, _, _| Ok(()))
            .unwrap();
        assert!(reads.hook.lock().unwrap().is_none(), "it read something");
        assert!(out.version > SCATTERED + 9, "it was written in parts");
        let name = format!("tidalite-one-version-{}-{incremental}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("restored.tdl");
        let chain = [full, out.bytes]
            .into_iter()
            .filter(|part| !part.is_empty());
        let mut chain = chain.map(|part| Ok(Box::new(Cursor::new(part)) as Box<dyn Read>));
        restore(&mut chain, &path, None, &mut |_, _, _| Ok(())).unwrap();
        let restored = Pager::open(&path, &options()).unwrap();
        assert_eq!(found(&restored).unwrap(), expected);
        drop(restored);
        std::fs::remove_dir_all(folder).unwrap();
    }
}

/// A stream that makes some commits, which rewrite all slots, before it accepts each part of the backup.
struct CommitsWhileWritten<'a> {
    pager: &'a Pager,
    version: u64,
    bytes: Vec<u8>,
}

impl Write for CommitsWhileWritten<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for _ in 0..3 {
            self.version += 1;
            commit(self.pager, 0..SLOTS, self.version).map_err(io::Error::other)?;
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A disk that runs a callback before a read.
#[derive(Default)]
struct Reads {
    disk: SimDisk,
    hook: Mutex<Option<Hook>>,
}

impl Storage for Reads {
    fn read_at(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        let hook = self.hook.lock().unwrap().take();
        if let Some(mut hook) = hook {
            hook();
        }
        self.disk.read_at(at, bytes)
    }
    forward_storage!(disk: write_at, sync, sync_all, len, grow);
}
