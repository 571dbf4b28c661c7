//! A *day* is a list of steps of a process on a disk. Each day is repeated with every call to the disk failing in
//! turn: either only this call, or this call and all later calls. The remaining file is judged exactly: as the
//! process continues, after a kill, after a power failure, and after the file is opened again.

use super::exact::{Exact, is_poisoned, memory_of};
use super::faulty::{Process, Step};
use crate::toy::{id_of, is_disk_error, options};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidalite_pager::{
    DiskError, Durability, Error, Event, LockMemory, Logger, MetricsReport, Options, Pager, Result,
    Storage,
};
use tidalite_testkit::rng::{Rng, mix};
use tidalite_testkit::{Fault, FaultKind, Monitor, Op, Replay, SimDisk};

/// Shortest pause between two flushes of the background flusher.
const PAUSE: Duration = Duration::from_millis(1);
/// Number of power failures simulated at the end of a day, and again after a commit of the next process.
const CUTS: u64 = 2;

/// Totals over all days of a test.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub days: u64,
    pub rolled_back: u64,
    pub poisoned: u64,
    /// Number of days on which the failed call had no visible effect.
    pub unnoticed: u64,
    pub not_opened: u64,
    pub evicted: u64,
    pub images: u64,
    pub lazy_survived: u64,
}

/// Prints the description of the day if a check panics.
struct Place(String);

impl Drop for Place {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.0);
        }
    }
}

/// A day: the steps of a first process, which is then killed, and the steps of a second process, on whose calls the
/// fault occurs.
#[derive(Clone, Copy, Debug)]
pub struct Day {
    pub before: &'static [Step],
    /// Whether the first process ends by a power failure, which also loses the lock area and unsynced writes.
    pub by_power_cut: bool,
    pub steps: &'static [Step],
    /// Number of bytes of lazy commits after which they are made durable.
    pub sync_bytes: Option<u64>,
    /// Whether the background flusher makes lazy commits durable.
    pub flusher: bool,
    pub log_bytes: u64,
    pub seed: u64,
}

fn monitored(disk: &Arc<SimDisk>) -> Arc<Monitor> {
    Monitor::new(Arc::clone(disk) as Arc<dyn Storage>)
}

fn open(
    storage: Arc<Monitor>,
    memory: &LockMemory,
    day: &Day,
    evicted: &Arc<Mutex<BTreeSet<u64>>>,
) -> Result<Pager> {
    let evicted = Arc::clone(evicted);
    let options = Options {
        sync_bytes: day.sync_bytes,
        background_flush: day.flusher.then_some(PAUSE),
        log_bytes: day.log_bytes,
        logger: Some(Logger::new(move |event| {
            if let Event::Evicted { txn, .. } = event {
                let mut evicted = evicted.lock().unwrap_or_else(PoisonError::into_inner);
                evicted.insert(txn.0);
            }
        })),
        ..options()
    };
    Pager::open_storage_with(storage, memory, &options)
}

impl Process {
    /// Judges the file left by this process while the fault persists, and again after the disk has recovered. Then
    /// judges the next process.
    fn end(mut self, mut machine: Machine, day: &Day, rng: &mut Rng, tally: &mut Tally) {
        if let Err(error) = self.read() {
            assert_eq!(self.kind, FaultKind::ReadFails, "{error}");
        }
        let poisoned = is_poisoned(&self.memory.image());
        let ops = &self.disk.recording().ops[self.first_op..];
        let sync_failed = ops.iter().any(|op| matches!(op, Op::SyncFailed));
        let full = |error: &Error| matches!(error, Error::Disk(DiskError::DiskFull { .. }));
        let reads_or_cuts = matches!(self.kind, FaultKind::ReadFails | FaultKind::CutFails);
        assert!(poisoned || !sync_failed, "a failed sync that nobody noted");
        assert!(!poisoned || !reads_or_cuts, "poisoned, and all was written");
        assert!(
            !poisoned || !self.failures.iter().all(full),
            "poisoned by a full disk"
        );
        assert!(
            poisoned || self.forever || self.failures.len() <= 1,
            "more than the one that failed"
        );
        tally.poisoned += u64::from(poisoned);
        tally.rolled_back += u64::from(!poisoned && !self.failures.is_empty());
        let struck = self.disk.fault_hit();
        tally.unnoticed += u64::from(struck && !poisoned && self.failures.is_empty());
        tally.images += self.images;
        tally.evicted += self
            .evicted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len() as u64;
        machine.exact = self.exact.clone();
        tally.lazy_survived += u64::from(!poisoned && self.exact.lazy > self.exact.durable);
        machine.judge(rng);
        self.disk.set_fault(None);
        if poisoned {
            let refused =
                |pager: &Pager| matches!(pager.begin_write(), Err(Error::Poisoned { .. }));
            let other = open(monitored(&self.disk), &self.memory, day, &self.evicted);
            assert!(refused(&self.pager), "it writes after a failed sync");
            assert!(
                refused(&other.expect("it may be read")),
                "another one writes"
            );
        } else {
            for step in [Step::Commit(Durability::Durable), Step::Check] {
                self.step(step).expect("the disk has recovered");
            }
        }
        self.read().expect("reading goes on");
        machine.exact = self.exact.clone();
        drop(self);
        if day.flusher && poisoned {
            // The flusher may use the lock area a moment longer, but the file can be opened again only when all
            // handles are closed. Continue with a copy of the lock area.
            machine.memory = memory_of(&machine.memory.image());
        }
        let mut next = machine
            .process(day, monitored(&machine.disk))
            .expect("it is opened anew");
        let found = next.exact.judge(&next.pager, machine.exact.durable);
        let found = found.expect("opened anew");
        assert!(
            poisoned || found == machine.exact.newest(),
            "nothing was begun since"
        );
        next.step(Step::Commit(Durability::Durable))
            .expect("it goes on");
        machine.exact = next.exact.clone();
        machine.judge(rng);
    }
}

/// A simulated machine: the disk, and the other data that outlives a process.
struct Machine {
    disk: Arc<SimDisk>,
    memory: LockMemory,
    exact: Exact,
}

impl Machine {
    /// Starts the next process, if it can open the file. (The monitor has read the head of the file before the first
    /// call that may fail.)
    fn process(&self, day: &Day, storage: Arc<Monitor>) -> Result<Process> {
        let from = self.exact.after_kill(&self.memory.image());
        let (evicted, first_op) = (Arc::default(), self.disk.operations() as usize);
        let pager = open(storage, &self.memory, day, &evicted)?;
        let found = id_of(pager.begin_read()?.app());
        assert!(
            self.exact.allows(found, from),
            "{found} where {from} was promised"
        );
        let mut exact = self.exact.clone();
        exact.goes_on_from(found);
        Ok(Process {
            disk: Arc::clone(&self.disk),
            memory: self.memory.clone(),
            pager,
            exact,
            seed: day.seed,
            first_op,
            readers: Vec::new(),
            parked: None,
            tickets: Vec::new(),
            evicted,
            failures: Vec::new(),
            images: 0,
            kind: FaultKind::Killed,
            forever: false,
        })
    }

    /// Kills the process: it makes no more calls, and the file is not closed properly.
    fn kill(&mut self, process: Process) {
        let area = self.memory.image();
        self.disk.kill();
        self.memory.kill_all();
        self.exact = process.exact.clone();
        drop(process);
        self.memory = memory_of(&area);
        self.disk.set_fault(None);
    }

    /// Judges the file after a kill of the process at this moment, and after power failures at this moment.
    fn judge(&self, rng: &mut Rng) {
        let (exact, area) = (&self.exact, self.memory.image());
        let killed = exact.look(self.disk.image(), &area, exact.after_kill(&area), true);
        killed.expect("killed");
        let replay = Replay::at_end(&self.disk.recording());
        for _ in 0..CUTS {
            let image = replay.power_cut(rng);
            let kept = exact.look(image.clone(), &area, exact.durable, false);
            kept.expect("after a power cut that left the lock area");
            let cut = exact.look(image, &[], exact.durable, false);
            cut.expect("after a power cut");
        }
    }
}

/// Runs a day with the given fault. Returns false if the day has too few calls for the fault to occur.
fn live(day: &Day, fault: Fault, tally: &mut Tally) -> bool {
    let _place = Place(format!("{fault:?}, seed {}", day.seed));
    let mut rng = Rng::new(mix(fault.at_call));
    let mut machine = Machine {
        disk: Arc::new(SimDisk::new()),
        memory: LockMemory::new(),
        exact: Exact::empty(),
    };
    if !day.before.is_empty() {
        // Run without the flusher, because its thread would outlive the kill for a moment.
        let alone = Day {
            flusher: false,
            ..*day
        };
        let begun = machine.process(&alone, monitored(&machine.disk));
        let mut process = begun.expect("no fault yet");
        for &step in day.before {
            process.step(step).expect("no fault yet");
        }
        machine.kill(process);
        if day.by_power_cut {
            let cut = Replay::at_end(&machine.disk.recording());
            let image = cut.power_cut(&mut Rng::new(day.seed));
            machine.disk = Arc::new(SimDisk::from_image(image));
            machine.memory = LockMemory::new();
            machine.exact.lazy = 0;
        }
    }
    let disk = Arc::clone(&machine.disk);
    let storage = monitored(&disk);
    let first = disk.calls_of(fault.kind);
    disk.set_fault(Some(fault));
    tally.days += 1;
    let mut opened = machine.process(day, storage);
    if let Err(error) = &opened {
        assert!(is_disk_error(error), "{error}");
        tally.not_opened += 1;
        machine.judge(&mut rng);
        if fault.forever {
            disk.set_fault(None);
        }
        opened = machine.process(day, monitored(&disk));
    }
    let mut process = opened.expect("the disk has recovered");
    (process.kind, process.forever) = (fault.kind, fault.forever);
    for &step in day.steps {
        if let Err(error) = process.step(step) {
            assert!(is_disk_error(&error), "{step:?}: {error}");
            process.failures.push(error);
        }
    }
    if day.flusher {
        // After this sync the flusher has nothing to do, or the file is poisoned. So the file does not change while
        // it is judged.
        let failed = process.step(Step::Sync).err();
        process.failures.extend(failed);
    }
    let enough = disk.calls_of(fault.kind) - first > fault.at_call;
    process.end(machine, day, &mut rng, tally);
    enough
}

/// Runs the day with every call failing in turn. Returns the number of calls.
pub fn at_every_call(day: &Day, kind: FaultKind, forever: bool, tally: &mut Tally) -> u64 {
    let fault = |at_call| Fault {
        at_call,
        forever,
        kind,
    };
    let calls = (0..).take_while(|&at_call| live(day, fault(at_call), tally));
    calls.count() as u64
}

/// Runs both parts of a day in one process without faults.
pub fn undisturbed(day: &Day) -> MetricsReport {
    let machine = Machine {
        disk: Arc::new(SimDisk::new()),
        memory: LockMemory::new(),
        exact: Exact::empty(),
    };
    let mut process = machine
        .process(day, monitored(&machine.disk))
        .expect("no fault");
    for &step in day.before.iter().chain(day.steps) {
        process.step(step).expect("no fault");
    }
    process.pager.metrics()
}
