//! Power cuts and kills over the whole database.
//!
//! A seeded run of processes is recorded on the simulated disk: transactions over tables (plain, nested, of multi-values), series, appenders,
//! policies and pins with every durability, tickets that wait, commits inside the syncs of others, compaction, maintenance,
//! backups, two handles that take turns, snapshots held, kills, disks that fail, reopenings. Then, after every single operation of the recording, what a power cut or the
//! death of the process could leave is opened, and what is left of the disk beside a lock file of another instant: it must open, check clean
//! (also before a writer has healed anything), and hold exactly the content of a commit that was promised
//! (`tidalite_testkit::Promise`). A share of the seeds has large values on a second disk, and both lose what they like. Some of it is gone on with (healing, further commits), and cut again inside that.
//!
//! ```text
//! history   contents by number, and which one a file holds
//! process   what is done with the database
//! queries   a few queries, answered by the model too
//! damaged   one damaged sector after a commit was acknowledged
//! ```

mod damaged;
mod history;
mod process;
mod queries;

use crate::workload::Shape;
use crate::workload::round_robin::STAGING_BYTES;
use history::History;
use process::{Process, World, inside, lock, open};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tidalite::{Database, LockMemory, OpenMode, Options, Storage};
use tidalite_base::get_u64;
use tidalite_testkit::rng::{Rng, mix};
use tidalite_testkit::{
    Crash, Cut, Fault, FaultKind, Hook, Monitor, Note, Op, Promise, Second, SimDisk, Tap, Taped,
    explore,
};

/// One of so many operations feeds series in turn where threads help with that.
const TURNS_ONE_IN: u64 = 12;
/// Calls that change the disk within which a fault hits a step.
const FAULT_CALLS: u64 = 14;
/// Operations shown when a run goes wrong.
const OPERATIONS_SHOWN: usize = 80;
/// Crashes inside each other at most: in the run, in the reopening after it, in the reopening after that ...
const DEPTH_MAX: u32 = 3;
/// One of so many states inside a reopening is gone on with.
const DEEPER_ONE_IN: u64 = 60;
/// One of so many states is asked a few questions, which the model answers too.
const QUESTIONS_ONE_IN: u64 = 10;
/// One of so many states is checked through a handle that only reads, before a writer heals anything.
const READ_ONLY_ONE_IN: u64 = 4;
/// Steps that are added to a state found after a crash.
const NESTED_STEPS: u64 = 2;
/// Bytes of the head of a file.
const HEAD_BYTES: usize = 6 * 4096;

/// How a run is recorded and judged.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Steps of a run; most are transactions.
    pub steps: u64,
    /// Outcomes of a power cut that are looked at after every operation.
    pub images: u64,
    /// After one of so many operations the death of the process is looked at, too; 0 = never.
    pub kill_one_in: u64,
    /// One of so many images is gone on with and cut again; 0 = none.
    pub nest_one_in: u64,
    /// Large values lie on a second disk.
    pub two_disks: bool,
    /// Threads that encode beside a writer (`Options::sealing_threads`). With any, where pages lie is not that of the seed: the run is recorded as it
    /// went, and another of the same seed goes another way.
    pub sealing_threads: usize,
    /// Bytes of a page.
    pub page_size: usize,
    /// Shape of the transactions.
    pub shape: Shape,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            steps: 16,
            images: 2,
            kill_one_in: 3,
            nest_one_in: 50,
            two_disks: false,
            sealing_threads: 0,
            page_size: 512,
            shape: Shape::default(),
        }
    }
}

impl Plan {
    /// The plan of a seed: one in eight runs is long, so that runs pile up and merges are cut in the middle; one in four, long or
    /// not, has two disks; and one in three has small durable commits, so that many follow each other in the log.
    #[must_use]
    pub fn of_seed(seed: u64, page_size: usize) -> Self {
        let plan = Self {
            page_size,
            two_disks: (seed / 8 + seed) % 4 == 2,
            shape: if seed % 3 == 1 {
                Shape::small_and_durable()
            } else {
                Shape::default()
            },
            ..Self::default()
        };
        if Self::is_long(seed) {
            plan.long()
        } else {
            plan
        }
    }

    /// The same with threads that encode beside the writer, and with series that are fed in turn, which these help with.
    #[must_use]
    pub fn helped(self, sealing_threads: usize) -> Self {
        let shape = Shape {
            turns_one_in: TURNS_ONE_IN,
            ..self.shape
        };
        Self {
            sealing_threads,
            shape,
            ..self
        }
    }

    /// Whether the run of this seed is a long one.
    #[must_use]
    pub fn is_long(seed: u64) -> bool {
        seed % 8 == 7
    }

    /// A long run, looked at more coarsely.
    #[must_use]
    pub fn long(self) -> Self {
        Self {
            steps: 80,
            images: 1,
            kill_one_in: 6,
            nest_one_in: 200,
            ..self
        }
    }
}

/// How many crash states were looked at.
#[derive(Debug, Default)]
pub struct Tally {
    /// Images opened and judged.
    pub states: AtomicU64,
    /// Those of them that a kill left.
    pub kills: AtomicU64,
    /// Those with what a power cut left of the disk and a lock area of some instant of the run.
    pub kept: AtomicU64,
    /// Those of which the lock area named a commit that was not all there.
    pub dropped: AtomicU64,
    /// Those that were cut inside a reopening or after it.
    pub nested: AtomicU64,
    /// Reopenings inside a crash of a reopening that were gone on with.
    pub deep: AtomicU64,
    /// Those in which commits were found in the log.
    pub replayed: AtomicU64,
    /// Those that had lost commits of the log to damage.
    pub went_back: AtomicU64,
    /// Those whose newest commit, begun or done, has leaves that an appender encoded.
    pub leaves: AtomicU64,
    /// The same with blocks of runs.
    pub blocks: AtomicU64,
    /// Those that were asked questions.
    pub asked: AtomicU64,
    /// Those that were checked before a writer opened them.
    pub read_only: AtomicU64,
}

pub(crate) type Judged<T = ()> = Result<T, String>;

/// What a run leaves for judging.
struct Run {
    taped: Taped,
    history: History,
}

pub(crate) fn options(page_size: usize) -> Options {
    Options::new()
        .mode(OpenMode::CreateOrOpen)
        .page_size(page_size)
        .growth_bytes(16 << 10, 64 << 10)
        .shrink_bytes(32 << 10)
        .reserve_bytes(32 << 10)
        .log_bytes(48 << 10)
        .dirty_bytes(16 << 10)
        .early_bytes(1 << 10)
        .staging_bytes(256 << 10)
}

/// So that a writer hands its rows to so many threads now and then.
fn helped(options: Options, threads: usize) -> Options {
    match threads {
        0 => options,
        _ => options
            .sealing_threads(threads)
            .staging_bytes(STAGING_BYTES),
    }
}

pub(crate) fn checked(db: &Database) -> Judged {
    let report = db.check().map_err(|error| format!("check: {error}"))?;
    if report.is_clean() {
        Ok(())
    } else {
        Err(format!("check: {:?}", report.problems))
    }
}

/// What a run begins with.
struct Start<'a> {
    image: Vec<u8>,
    second: Option<Vec<u8>>,
    area: Vec<u8>,
    history: History,
    steps: u64,
    plan: &'a Plan,
    /// Under the write-protocol monitor.
    watch: bool,
}

impl Start<'_> {
    /// Records steps of processes with kills and failing disks in between.
    fn record(self, rng: &mut Rng) -> Judged<Run> {
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
            sealing_threads: self.plan.sealing_threads,
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

/// One process, or two that take turns: until they have had enough, are killed, or meet an error of the disk.
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
        let options = helped(options(world.page_size), world.sealing_threads);
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
    // What a process that died left in the system's cache is not durable for having been found.
    if rng.one_in(4) {
        processes[0].sync()?;
    }
    // In a sync: more commits, which must not wait.
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
        // The process dies as it is: nothing of what closing does is done.
        world.kill();
        memory.kill_all();
    }
    // Who ends waits for its commits, and for the turn where it has to lead: whoever has that, for commits that nobody sees yet,
    // ends first. All are one thread here.
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
        // A commit inside a sync may have met the fault.
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

fn count(of: &AtomicU64, whether: bool) {
    of.fetch_add(u64::from(whether), Ordering::Relaxed);
}

/// What goes on from states that were found.
struct Judge<'a> {
    plan: &'a Plan,
    tally: &'a Tally,
    history: &'a History,
    /// Crashes before this one.
    depth: u32,
    /// In one of these the disk lost what the lock area named.
    has_lost: bool,
}

impl Judge<'_> {
    fn run(&self, run: &Run, first: &Promise, rng: &mut Rng) -> Judged {
        let (images, kill_one_in) = match self.depth {
            1 => (self.plan.images, self.plan.kill_one_in),
            _ => (1, self.plan.kill_one_in),
        };
        let mut look = |crash: Crash<'_>, rng: &mut Rng| match crash.cut {
            Cut::Acknowledged => self.damaged(crash, rng),
            cut => self
                .crashed(crash, rng)
                .map_err(|error| format!("{cut:?}: {error}")),
        };
        explore(&run.taped, first, (images, kill_one_in), rng, &mut look)
    }

    fn count(&self, db: &Database, cut: Cut) {
        count(&self.tally.states, true);
        count(&self.tally.kills, cut == Cut::Killed);
        count(&self.tally.kept, cut == Cut::Disk);
        count(&self.tally.nested, self.depth > 1);
        let recovery = db.recovery();
        count(&self.tally.replayed, recovery.replayed > 0);
        count(&self.tally.went_back, recovery.lost.is_some());
        count(&self.tally.dropped, recovery.dropped_unrecorded.is_some());
    }

    /// A crash leaves no damage and loses no durable commit, and a check says so before anybody heals what it leaves.
    fn checked_read_only(&self, disk: &Arc<SimDisk>, crash: &Crash<'_>) -> Judged {
        let place = |error: String| format!("before a writer opened it: {error}");
        let db = open(
            Arc::clone(disk) as Arc<dyn Storage>,
            storage_of(crash.second.as_ref()),
            &LockMemory::from_image(&crash.area),
            options(self.plan.page_size).read_only(true),
        );
        checked(&db.map_err(place)?).map_err(place)?;
        count(&self.tally.read_only, true);
        Ok(())
    }

    /// Opens what a crash leaves, compares it, checks it, and now and then goes on. (A file that seems to lack durable commits is not opened
    /// for writing, so this shows that no crash looks like that.)
    fn crashed(&self, crash: Crash<'_>, rng: &mut Rng) -> Judged {
        let disk = Arc::new(SimDisk::from_image(crash.image.clone()));
        if rng.clone().one_in(READ_ONLY_ONE_IN) {
            self.checked_read_only(&disk, &crash)?;
        }
        let memory = LockMemory::from_image(&crash.area);
        let db = open(
            disk,
            storage_of(crash.second.as_ref()),
            &memory,
            options(self.plan.page_size),
        )?;
        self.count(&db, crash.cut);
        let dropped = db.recovery().dropped_unrecorded;
        if let Some(dropped) = dropped.filter(|_| crash.cut == Cut::Killed && !self.has_lost) {
            return Err(format!("{dropped} was dropped, although nothing was lost"));
        }
        let made = self.history.content(crash.promise.begun).made();
        count(&self.tally.leaves, made.leaves);
        count(&self.tally.blocks, made.blocks);
        let allowed = |number: u64| crash.promise.allows(number, crash.from);
        let (from, begun) = (crash.from, crash.promise.begun);
        let found = self.history.identify(&db, allowed).map_err(|error| {
            format!("{error}, promised was one of {from} to {begun} with a record")
        })?;
        checked(&db).map_err(|error| format!("content {found}: {error}"))?;
        if rng.one_in(QUESTIONS_ONE_IN) {
            queries::ask(&db, &self.history.content(found).model, rng)
                .map_err(|error| format!("content {found}: {error}"))?;
            count(&self.tally.asked, true);
        }
        drop(db);
        let one_in = match self.depth {
            1 => self.plan.nest_one_in,
            _ => DEEPER_ONE_IN,
        };
        if self.depth < DEPTH_MAX && one_in > 0 && rng.one_in(one_in) {
            self.go_on(crash, rng)?;
        }
        Ok(())
    }

    /// Goes on from a state that was found, and cuts the power inside that, again and again.
    fn go_on(&self, crash: Crash<'_>, rng: &mut Rng) -> Judged {
        let deep = u64::from(self.depth > 1);
        self.tally.deep.fetch_add(deep, Ordering::Relaxed);
        let mut inner = Rng::new(rng.u64());
        let promise = crash.promise.after(crash.cut, crash.from);
        let has_lost = self.has_lost || crash.cut == Cut::Disk;
        let run = Start {
            image: crash.image,
            second: crash.second,
            area: crash.area,
            history: self.history.up_to(crash.promise.begun),
            steps: NESTED_STEPS,
            plan: self.plan,
            watch: false,
        }
        .record(&mut inner)
        .map_err(|error| format!("reopening {}: {error}", self.depth))?;
        let deeper = Judge {
            history: &run.history,
            depth: self.depth + 1,
            has_lost,
            ..*self
        };
        deeper.run(&run, &promise, rng).map_err(|error| {
            let ops = lines(&run.taped.recording.ops, &run.taped.areas);
            let ops: String = ops.take(OPERATIONS_SHOWN).collect();
            format!(
                "inside reopening {}: {error}\nthe reopening and after:\n{ops}",
                self.depth
            )
        })
    }
}

fn start(seed: u64, plan: &Plan, watch: bool) -> Judged<Run> {
    // Runs of the front are short here: in half of the seeds they have several extents nevertheless.
    tidalite_runs::short_extents(seed % 2 == 1);
    let empty = Arc::new(SimDisk::new());
    let second = plan.two_disks.then(|| Arc::new(SimDisk::new()));
    drop(open(
        Arc::clone(&empty) as Arc<dyn Storage>,
        second.clone().map(|second| second as Arc<dyn Storage>),
        &LockMemory::new(),
        options(plan.page_size),
    )?);
    Start {
        image: empty.image(),
        second: second.map(|second| second.image()),
        area: Vec::new(),
        history: History::new(),
        steps: plan.steps,
        plan,
        watch,
    }
    .record(&mut Rng::new(seed))
}

fn storage_of(image: Option<&Vec<u8>>) -> Option<Arc<dyn Storage>> {
    image.map(|image| Arc::new(SimDisk::from_image(image.clone())) as Arc<dyn Storage>)
}

/// One seed: a run, and every crash of it.
///
/// # Errors
/// What was found, as a sentence.
pub fn examine(seed: u64, plan: &Plan, tally: &Tally) -> Result<(), String> {
    let run = start(seed, plan, false)?;
    let judge = Judge {
        plan,
        tally,
        history: &run.history,
        depth: 1,
        has_lost: false,
    };
    judge.run(&run, &Promise::default(), &mut Rng::new(mix(seed ^ 0xc4a5)))
}

/// A run under the write-protocol monitor, without crashes.
///
/// # Errors
/// What was found, as a sentence.
pub fn watch(seed: u64, plan: &Plan) -> Result<(), String> {
    start(seed, plan, true).map(|_| ())
}

/// Prints the recording of a seed, for the eye.
///
/// # Errors
/// What was found while it was recorded.
pub fn describe(seed: u64, plan: &Plan) -> Result<String, String> {
    let run = start(seed, plan, false)?;
    Ok(lines(&run.taped.recording.ops, &run.taped.areas).collect())
}

/// The end of what a disk went through, for the eye.
fn last_lines(disk: &SimDisk) -> String {
    let recording = disk.recording();
    let from = recording.ops.len().saturating_sub(OPERATIONS_SHOWN);
    lines(&recording.ops, &[]).skip(from).collect()
}

/// What a run did, for the eye.
fn lines<'a>(ops: &'a [Op], areas: &'a [Vec<u8>]) -> impl Iterator<Item = String> + 'a {
    // Where things stand in a record; docs/format.md section 3.
    let record = |bytes: &[u8]| {
        let (txn, sequence) = (get_u64(bytes, 24), get_u64(bytes, 48));
        (txn, sequence, get_u64(bytes, 216))
    };
    ops.iter().enumerate().map(move |(at, op)| match op {
        Op::Write(address, bytes) if bytes.len() == 4096 && *address < HEAD_BYTES as u64 => {
            let (txn, sequence, _) = record(bytes);
            format!("{at}: record at {address}: txn {txn}, sequence {sequence}\n")
        }
        Op::Write(address, bytes) => format!("{at}: write {address} +{}\n", bytes.len()),
        Op::Mark(mark) => match (Note::decode(*mark), areas) {
            (Note::Area(number), [_, ..]) => {
                let area = &areas[number as usize];
                let weak = [4096, 8192].map(|at| {
                    let (txn, _, on) = record(&area[at..]);
                    format!("weak txn {txn} on {on}")
                });
                let word = |at| get_u64(area, at);
                let words = format!("published {}, durable {}", word(64), word(72));
                format!("{at}: area: {words}, {}, {}\n", weak[0], weak[1])
            }
            (note, _) => format!("{at}: {note:?}\n"),
        },
        other => format!("{at}: {other:?}\n"),
    })
}
