//! Crash tests: a random run is recorded, and the file is examined after a power failure at every operation. The file
//! is opened again, the power also fails during that, and the commit that is found is compared with the promises of
//! durability.

use crate::toy::{
    Content, apply, changes, describe, id_of, options, problems, problems_read_only, read, root_of,
};
use std::collections::HashMap;
use std::sync::Arc;
use tidalite_pager::{Durability, LockMemory, Pager, Storage};
use tidalite_testkit::rng::{Rng, mix};
use tidalite_testkit::{Fault, FaultKind, Monitor, Op, Recording, Replay, SimDisk};

/// Marks in the recording: commit `id` begins to be stored, or commit `id` is acknowledged as durable.
const BEGUN: u64 = 0;
const ACKNOWLEDGED: u64 = 1;

/// A recorded run of the workload, with the data needed to judge crashes in it.
pub struct Run {
    pub recording: Recording,
    history: HashMap<u64, Content>,
    /// Durable commits that may be found after a crash at the beginning of the recording.
    first: Vec<u64>,
}

/// One in this many crashed files is checked through a read-only handle before a writer repairs anything.
const READ_ONLY_ONE_IN: u64 = 2;

/// Counts of the crashed files examined.
#[derive(Default)]
pub struct Tally {
    pub states: u64,
    pub nested: u64,
    /// Number of crashed files checked before a writer opened them.
    pub read_only: u64,
}

type Judged = Result<(), String>;

fn open(disk: &Arc<SimDisk>, watch: bool) -> (Result<Pager, String>, Option<Arc<Monitor>>) {
    let storage: Arc<dyn Storage> = Arc::clone(disk) as Arc<dyn Storage>;
    if !watch {
        let pager = Pager::open_storage(storage, &options());
        return (pager.map_err(|e| e.to_string()), None);
    }
    let monitor = Monitor::new(storage);
    let pager = Pager::open_storage(Arc::clone(&monitor) as Arc<dyn Storage>, &options());
    (pager.map_err(|e| e.to_string()), Some(monitor))
}

/// Runs a random workload with kills and failing syncs on a fresh disk. `watch`: whether to check the order of writes
/// and syncs with the monitor.
pub fn record(seed: u64, commits: u64, watch: bool) -> Result<Run, String> {
    let mut rng = Rng::new(seed);
    let empty = Arc::new(SimDisk::new());
    drop(open(&empty, false).0?);
    let disk = Arc::new(SimDisk::from_image(empty.image()));
    let mut run = Run {
        recording: Recording {
            base: Vec::new(),
            ops: Vec::new(),
        },
        history: HashMap::from([(0, vec![0; crate::toy::SLOTS])]),
        first: vec![0],
    };
    let mut id = 0;
    while id < commits {
        let (pager, monitor) = open(&disk, watch);
        let pager = pager?;
        let mut readers = Vec::new();
        let violations = |monitor: &Option<Arc<Monitor>>| -> Judged {
            let found = monitor.as_ref().map(|m| m.take_violations());
            match found {
                Some(found) if !found.is_empty() => Err(format!("monitor: {found:?}")),
                _ => Ok(()),
            }
        };
        loop {
            if id >= commits {
                break;
            }
            id += 1;
            if rng.one_in(9) {
                // The process dies, or a sync fails, during this commit.
                let kind = *rng.pick(&[FaultKind::Killed, FaultKind::Killed, FaultKind::SyncFails]);
                let fault = Fault {
                    at_call: rng.below(8),
                    forever: kind == FaultKind::Killed,
                    kind,
                };
                disk.set_fault(Some(fault));
            }
            let durable = !rng.one_in(3);
            let acknowledged = commit(&disk, &pager, &mut rng, id, durable, &mut run.history);
            disk.set_fault(None);
            violations(&monitor)?;
            match acknowledged {
                Err(error) if error.starts_with("check") => return Err(error),
                // After a failed sync or a killed process, open the file as it is now.
                Err(_) => break,
                Ok(()) => {}
            }
            if rng.one_in(4) {
                let reader = pager.begin_read().map_err(|e| e.to_string())?;
                readers.push((id_of(reader.app()), reader));
            }
            if rng.one_in(5) && !readers.is_empty() {
                readers.swap_remove(rng.index(readers.len()));
            }
            for (id, reader) in &readers {
                let found = read(reader, &root_of(reader.app()), &mut |_, _| {});
                if found.as_ref().ok() != Some(&run.history[id]) {
                    return Err(format!("a snapshot of commit {id} changed"));
                }
            }
            if rng.one_in(12) {
                break;
            }
        }
        drop((readers, pager));
        violations(&monitor)?;
    }
    run.recording = disk.recording();
    Ok(run)
}

fn commit(
    disk: &SimDisk,
    pager: &Pager,
    rng: &mut Rng,
    id: u64,
    durable: bool,
    history: &mut HashMap<u64, Content>,
) -> Judged {
    let words = |error: tidalite_pager::Error| error.to_string();
    let mut txn = pager.begin_write().map_err(words)?;
    let base = id_of(txn.app());
    let mut root = root_of(txn.app());
    let changes = changes(rng, id);
    for part in changes.chunks(40) {
        root = apply(&mut txn, &root, part).map_err(words)?;
    }
    let mut content = history[&base].clone();
    for (slot, version) in changes {
        content[slot] = version;
    }
    history.insert(id, content);
    if rng.one_in(10) {
        drop(txn);
        return describe(problems(pager));
    }
    let durability = if durable {
        disk.mark(id << 1 | BEGUN);
        Durability::Durable
    } else {
        Durability::None
    };
    txn.commit(&crate::toy::app(&root, id), durability)
        .map_err(words)?;
    if durable {
        disk.mark(id << 1 | ACKNOWLEDGED);
    }
    if rng.one_in(3) {
        describe(problems(pager))?;
    }
    Ok(())
}

/// Simulates power failures after every operation of the run. For each operation, `images` random outcomes are
/// examined.
pub fn judge(run: &Run, seed: u64, images: u64, tally: &mut Tally) -> Judged {
    let mut rng = Rng::new(mix(seed));
    let mut replay = Replay::new(&run.recording);
    let mut allowed = run.first.clone();
    for (at, op) in run.recording.ops.iter().enumerate() {
        replay.step(op);
        if let Op::Mark(mark) = op {
            if mark & 1 == ACKNOWLEDGED {
                allowed.clear();
            }
            allowed.push(mark >> 1);
            if mark & 1 == ACKNOWLEDGED {
                let image = replay.power_cut(&mut rng);
                one_damaged_block(run, &image, &allowed, &mut rng)
                    .map_err(|e| format!("operation {at}, one damaged block: {e}"))?;
                tally.states += 1;
            }
            continue;
        }
        let killed = replay.killed();
        for image in 0..images {
            let image = match image {
                0 if rng.one_in(4) => killed.clone(),
                _ => replay.power_cut(&mut rng),
            };
            let nest = rng.one_in(6);
            look(run, image, &allowed, nest, &mut rng, tally)
                .map_err(|e| format!("operation {at}: {e}"))?;
            if !replay.at_stake() {
                break;
            }
        }
    }
    Ok(())
}

/// Damages one block of the file head. This must not undo an acknowledged commit.
fn one_damaged_block(run: &Run, image: &[u8], allowed: &[u64], rng: &mut Rng) -> Judged {
    let mut image = image.to_vec();
    let block = rng.index(6) * 4096;
    rng.fill(&mut image[block..block + 4096]);
    let disk = Arc::new(SimDisk::from_image(image));
    judge_disk(run, &disk, allowed).map(|_| ())
}

/// Opens the file, compares its content with the run, and checks it. Returns the number of the commit that was found.
fn judge_disk(run: &Run, disk: &Arc<SimDisk>, allowed: &[u64]) -> Result<(Pager, u64), String> {
    let pager = open(disk, false).0.map_err(|e| format!("open: {e}"))?;
    let reader = pager.begin_read().map_err(|e| e.to_string())?;
    let id = id_of(reader.app());
    if !allowed.contains(&id) {
        return Err(format!(
            "found commit {id}, promised was one of {allowed:?}"
        ));
    }
    let found = read(&reader, &root_of(reader.app()), &mut |_, _| {});
    match found {
        Ok(found) if Some(&found) == run.history.get(&id) => {}
        Ok(_) => return Err(format!("not the content of commit {id}")),
        Err(error) => return Err(format!("content of commit {id}: {error}")),
    }
    describe(problems(&pager))?;
    drop(reader);
    Ok((pager, id))
}

/// Checks some of the crashed files through a read-only handle, before anything is repaired. A crash must leave no
/// damage.
fn checked_read_only(disk: &Arc<SimDisk>, rng: &Rng, tally: &mut Tally) -> Judged {
    // Use a copy of the random generator, so that this choice does not change the rest of the run.
    if !rng.clone().one_in(READ_ONLY_ONE_IN) {
        return Ok(());
    }
    tally.read_only += 1;
    let storage = Arc::clone(disk) as Arc<dyn Storage>;
    describe(problems_read_only(storage, &LockMemory::new()))
        .map_err(|error| format!("before a writer opened it: {error}"))
}

fn look(
    run: &Run,
    image: Vec<u8>,
    allowed: &[u64],
    nest: bool,
    rng: &mut Rng,
    tally: &mut Tally,
) -> Judged {
    tally.states += 1;
    let disk = Arc::new(SimDisk::from_image(image));
    checked_read_only(&disk, rng, tally)?;
    let (pager, id) = judge_disk(run, &disk, allowed)?;
    if !nest {
        return Ok(());
    }
    // The file was repaired when it was opened. Make a few commits, and let the power fail after each operation since
    // then.
    let mut history = run.history.clone();
    for next in (1 << 32)..(1 << 32) + 2 {
        commit(&disk, &pager, rng, next, true, &mut history)
            .map_err(|e| format!("goes on: {e}"))?;
    }
    drop(pager);
    let inner = Run {
        recording: disk.recording(),
        history,
        first: vec![id],
    };
    let mut replay = Replay::new(&inner.recording);
    let mut allowed = inner.first.clone();
    for (at, op) in inner.recording.ops.iter().enumerate() {
        replay.step(op);
        if let Op::Mark(mark) = op {
            if mark & 1 == ACKNOWLEDGED {
                allowed.clear();
            }
            allowed.push(mark >> 1);
            continue;
        }
        tally.states += 1;
        tally.nested += 1;
        let disk = Arc::new(SimDisk::from_image(replay.power_cut(rng)));
        checked_read_only(&disk, rng, tally)
            .and_then(|()| judge_disk(&inner, &disk, &allowed))
            .map_err(|e| format!("inside the reopening, operation {at}: {e}"))?;
    }
    Ok(())
}

/// Examines one seed: records a run, and judges crashes at every operation.
pub fn examine(seed: u64, commits: u64, images: u64, tally: &mut Tally) -> Judged {
    let run = record(seed, commits, false)?;
    judge(&run, seed, images, tally)
}
