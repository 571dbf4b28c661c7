//! Records a run: steps of processes on the simulated disk, with kills and failing disks in between.

use super::history::History;
use super::open::{Judged, helped, lock, open, options};
use super::plan::Plan;
use super::process::Process;
use super::trace::last_lines;
use super::world::{World, inside};
use std::sync::{Arc, Mutex};
use tidalite::storage::{LockMemory, Storage};
use tidalite_testkit::rng::Rng;
use tidalite_testkit::{Fault, FaultKind, Hook, Monitor, Second, SimDisk, Tap, Taped};

/// A fault hits one of the next calls that change the disk, at most this many calls away.
const FAULT_CALLS: u64 = 14;

/// A recorded run, to be judged.
pub(super) struct Run {
    pub(super) taped: Taped,
    pub(super) history: History,
}

/// The state from which a run is recorded.
pub(super) struct Start<'a> {
    pub(super) image: Vec<u8>,
    pub(super) second: Option<Vec<u8>>,
    pub(super) area: Vec<u8>,
    pub(super) history: History,
    pub(super) steps: u64,
    pub(super) plan: &'a Plan,
    /// True if the run is recorded under the write-protocol monitor.
    pub(super) watch: bool,
}

impl Start<'_> {
    /// Records steps of processes, with kills and failing disks in between.
    pub(super) fn record(self, rng: &mut Rng) -> Judged<Run> {
        let disk = Arc::new(SimDisk::from_image(self.image));
        let second = self
            .second
            .map(|image| Arc::new(SimDisk::from_image(image)));
        let world = Arc::new(World {
            disk: Arc::clone(&disk),
            second: second.clone(),
            history: Mutex::new(self.history),
            shape: self.plan.shape,
            page_size: self.plan.page_size,
            flush_threads: self.plan.flush_threads,
        });
        let mut memory = LockMemory::from_image(&self.area);
        let (mut areas, mut left) = (Vec::new(), self.steps);
        while left > 0 {
            let inner: Arc<dyn Storage> = Arc::clone(&disk) as Arc<dyn Storage>;
            let monitor = self.watch.then(|| Monitor::new(Arc::clone(&inner)));
            let inner = match &monitor {
                Some(monitor) => Arc::clone(monitor) as Arc<dyn Storage>,
                None => inner,
            };
            let tap = Tap::new(inner, &disk, &memory, std::mem::take(&mut areas));
            let lived = live(&world, &tap, &memory, rng, &mut left, self.watch);
            tap.set_hook(None);
            if let Err(error) = lived {
                return Err(format!("{error}\n{}", last_lines(&disk)));
            }
            memory = LockMemory::from_image(&memory.image());
            if disk.is_dead() {
                memory = LockMemory::from_image(&tap.area());
            }
            world.set_fault(None, rng);
            if let Some(found) = monitor.map(|monitor| monitor.take_violations())
                && !found.is_empty()
            {
                return Err(format!("monitor: {found:#?}\n{}", last_lines(&disk)));
            }
            areas = tap.take_areas();
        }
        Ok(Run {
            taped: Taped {
                recording: disk.recording(),
                second: second.map(|second| second.recording()),
                areas,
            },
            history: lock(&world.history).clone(),
        })
    }
}

/// Runs one process, or two processes in turn, until they stop, are killed, or meet an error of the disk.
fn live(
    world: &Arc<World>,
    tap: &Arc<Tap>,
    memory: &LockMemory,
    rng: &mut Rng,
    left: &mut u64,
    watch: bool,
) -> Judged {
    let second = world.second.as_ref();
    let second = second.map(|second| Second::new(second, &world.disk, tap) as Arc<dyn Storage>);
    let opened = || {
        let first = Arc::clone(tap) as Arc<dyn Storage>;
        let options = helped(options(world.page_size), world.flush_threads);
        open(first, second.clone(), memory, options)
    };
    let handles = if watch || !rng.one_in(4) { 1 } else { 2 };
    let (waiting, overlap) = (Arc::default(), Arc::new(Mutex::new(true)));
    let mut processes = Vec::new();
    for _ in 0..handles {
        processes.push(Process {
            world,
            db: opened()?,
            rng: Rng::new(rng.u64()),
            readers: Vec::new(),
            waiting: if processes.is_empty() {
                Arc::clone(&waiting)
            } else {
                Arc::default()
            },
            overlap: Arc::clone(&overlap),
            lazy: None,
        });
    }
    {
        let mut history = lock(&world.history);
        let found = history.identify(&processes[0].db, |_| true);
        let found = found.map_err(|error| format!("reopened: {error}"))?;
        history.stands_on(found);
    }
    // A commit that a dead process left in the system's cache is found after opening but is not durable yet.
    if rng.one_in(4) {
        processes[0].sync()?;
    }
    // The hook makes further commits inside a sync; these commits must not wait for a sync.
    let (inside_world, hooked) = (Arc::clone(world), processes[0].db.clone());
    let (kept, may) = (Arc::clone(&waiting), Arc::clone(&overlap));
    let mut hook_rng = Rng::new(rng.u64());
    let shape = inside(&world.shape);
    let hook: Hook = Box::new(move || {
        if !*lock(&may) || !hook_rng.one_in(3) {
            return;
        }
        for _ in 0..=hook_rng.below(2) {
            let commit = inside_world.commit(&hooked, &mut hook_rng, &shape, None);
            if let Ok(Some((commit, _))) = commit {
                lock(&kept).push(commit);
            }
        }
    });
    tap.set_hook(Some(hook));
    let lived = steps(world, &mut processes, rng, left);
    tap.set_hook(None);
    let faulted = world.fault_hit();
    if let Err(error) = &lived
        && !faulted
    {
        return Err(error.clone());
    }
    tap.note();
    if lived.is_err() || rng.one_in(2) {
        // The process dies without closing its database.
        world.kill();
        memory.kill_all();
    }
    // A process that closes its database waits for its commits, and for the writer lock if it has to flush them. All
    // processes run on one thread here, so the process that can take the writer lock must close first.
    processes.sort_by_key(|process| !process.has_turn().unwrap_or(false));
    for process in processes {
        lock(&process.waiting).clear();
    }
    Ok(())
}

fn steps(world: &World, processes: &mut [Process<'_>], rng: &mut Rng, left: &mut u64) -> Judged {
    let mut at = 0;
    while *left > 0 {
        *left -= 1;
        if rng.one_in(10) {
            let kinds = [
                FaultKind::Killed,
                FaultKind::Killed,
                FaultKind::SyncFails,
                FaultKind::Medium,
                FaultKind::ShortWrite,
                FaultKind::DiskFull,
            ];
            let kind = *rng.pick(&kinds);
            let fault = Fault {
                at_call: rng.below(FAULT_CALLS),
                forever: kind == FaultKind::Killed,
                kind,
            };
            world.set_fault(Some(fault), rng);
        }
        if rng.one_in(3) {
            let other = processes.len() - 1 - at;
            if processes[other].has_turn()? {
                at = other;
            }
        }
        let process = &mut processes[at];
        process.step()?;
        // The fault may have hit a commit inside a sync.
        if world.fault_hit() {
            return Err("an error of the disk".to_owned());
        }
        if rng.one_in(3) && process.has_turn()? {
            process.compare()?;
        }
        if rng.one_in(12) {
            break;
        }
    }
    Ok(())
}
