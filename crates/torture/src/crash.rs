//! Power cuts over the whole database.
//!
//! A seeded run of transactions over tables and series, with kills, failing syncs and reopenings, is recorded on
//! the simulated disk. Then, after every single operation of the recording, the images that a power cut could leave
//! are opened: each must open, check clean, and hold exactly the content of a commit that was promised. Some images
//! are gone on with (healing, further commits), and cut again inside that.
//!
//! What is promised: the newest acknowledged durable commit, or one begun after it.

use crate::model::{Model, digest_of, digest_of_snapshot};
use crate::workload::{Ended, Shape, transaction};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tidalite::{Database, Durability, OpenMode, Options, ReadTxn, Storage};
use tidalite_testkit::rng::{Rng, mix};
use tidalite_testkit::{Fault, FaultKind, Monitor, Op, Recording, Replay, SimDisk};

/// A mark in the recording: a durable commit begins to be stored, or was acknowledged.
const BEGUN: u64 = 0;
const ACKNOWLEDGED: u64 = 1;
/// Calls that change the disk within which a fault hits a commit.
const FAULT_CALLS: u64 = 14;
/// Operations shown when a file does not open again.
const OPERATIONS_SHOWN: usize = 60;
/// Snapshots held at a time.
const READERS_MAX: usize = 3;
/// Crashes inside each other at most: in the run, in the reopening after it, in the reopening after that ...
const DEPTH_MAX: u32 = 3;
/// One of so many states inside a reopening is gone on with.
const DEEPER_ONE_IN: u64 = 40;
/// Transactions that are added to a state found after a crash.
const NESTED_TRANSACTIONS: u64 = 2;

/// How a run is recorded and judged.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Transactions of a run.
    pub transactions: u64,
    /// Outcomes of a power cut that are looked at after every operation.
    pub images: u64,
    /// One of so many images is gone on with and cut again; 0 = none.
    pub nest_one_in: u64,
    /// Bytes of a page.
    pub page_size: usize,
    /// Shape of the transactions.
    pub shape: Shape,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            transactions: 14,
            images: 3,
            nest_one_in: 40,
            page_size: 512,
            shape: Shape::default(),
        }
    }
}

impl Plan {
    /// The plan of a seed: one in eight runs is long, so that runs pile up and merges are cut in the middle.
    #[must_use]
    pub fn of_seed(seed: u64, page_size: usize) -> Self {
        let plan = Self {
            page_size,
            ..Self::default()
        };
        if seed % 8 == 7 { plan.long() } else { plan }
    }

    /// A long run, looked at more coarsely.
    #[must_use]
    pub fn long(self) -> Self {
        Self {
            transactions: 70,
            images: 1,
            nest_one_in: 100,
            ..self
        }
    }
}

/// How many crash states were looked at.
#[derive(Debug, Default)]
pub struct Tally {
    /// Images opened and judged.
    pub states: AtomicU64,
    /// Those of them that were cut inside a reopening or after it.
    pub nested: AtomicU64,
    /// Reopenings inside a crash of a reopening that were gone on with.
    pub deep: AtomicU64,
}

impl Tally {
    fn add(&self, nested: bool) {
        self.states.fetch_add(1, Ordering::Relaxed);
        self.nested.fetch_add(u64::from(nested), Ordering::Relaxed);
    }
}

type Judged<T = ()> = Result<T, String>;

/// What a run leaves for judging.
struct Run {
    recording: Recording,
    /// Digests of the contents, by the number in the marks.
    digests: Vec<u64>,
    /// Contents that may be found at the beginning. Inside a reopening these are all that were promised to it:
    /// while its torn meta block is being healed, a commit that was under way may still show, whole.
    first: Vec<u64>,
    /// The contents themselves, by digest.
    models: HashMap<u64, Model>,
}

fn options(page_size: usize) -> Options {
    Options::new()
        .mode(OpenMode::CreateOrOpen)
        .page_size(page_size)
        .growth_bytes(16 << 10, 64 << 10)
        .shrink_bytes(64 << 10)
        .reserve_bytes(32 << 10)
        .dirty_bytes(16 << 10)
        .staging_bytes(256 << 10)
}

fn open(disk: &Arc<SimDisk>, page_size: usize) -> Judged<Database> {
    let storage: Arc<dyn Storage> = Arc::clone(disk) as Arc<dyn Storage>;
    options(page_size)
        .open_storage(storage)
        .map_err(|error| format!("open: {error}"))
}

fn checked(db: &Database) -> Judged {
    let report = db.check().map_err(|error| format!("check: {error}"))?;
    if report.is_clean() {
        Ok(())
    } else {
        Err(format!("check: {:?}", report.problems))
    }
}

/// A disk that is being recorded, and what its database has held so far.
struct Recorder {
    plan: Plan,
    rng: Rng,
    disk: Arc<SimDisk>,
    monitor: Option<Arc<Monitor>>,
    digests: Vec<u64>,
    models: HashMap<u64, Model>,
}

impl Recorder {
    fn new(disk: Arc<SimDisk>, rng: Rng, plan: Plan, start: Model) -> Self {
        let digest = start.digest();
        let models = HashMap::from([(digest, start)]);
        Self {
            plan,
            rng,
            disk,
            monitor: None,
            digests: vec![digest],
            models,
        }
    }

    fn open(&mut self, watch: bool) -> Judged<Database> {
        if !watch {
            return open(&self.disk, self.plan.page_size);
        }
        let monitor = Monitor::new(Arc::clone(&self.disk) as Arc<dyn Storage>);
        self.monitor = Some(Arc::clone(&monitor));
        let db = options(self.plan.page_size).open_storage(monitor);
        db.map_err(|error| format!("open: {error}"))
    }

    fn violations(&self) -> Judged {
        let found = self
            .monitor
            .as_ref()
            .map(|monitor| monitor.take_violations());
        match found {
            Some(found) if !found.is_empty() => Err(format!("monitor: {found:?}")),
            _ => Ok(()),
        }
    }

    /// One transaction; an error of the disk is passed on as `Ok(None)`: begin anew with what is there.
    fn transaction(&mut self, db: &Database, model: &Model) -> Judged<Option<Model>> {
        let mut begun = None;
        let (disk, digests, models) = (&self.disk, &mut self.digests, &mut self.models);
        let result = transaction(
            db,
            model,
            &mut self.rng,
            &self.plan.shape,
            |next, durability| {
                // A lazy commit may come to the medium with the next flush, and with no other promise.
                if durability != Durability::None {
                    let number = digests.len() as u64;
                    digests.push(next.digest());
                    models.insert(next.digest(), next.clone());
                    disk.mark(number << 1 | BEGUN);
                    begun = Some(number);
                }
            },
        );
        let (next, ended) = match result {
            Ok(result) => result,
            Err(_) if disk.fault_hit() => return Ok(None),
            Err(error) => return Err(format!("transaction: {error}")),
        };
        if let (Ended::Committed(Durability::Durable), Some(number)) = (ended, begun) {
            disk.mark(number << 1 | ACKNOWLEDGED);
        }
        Ok(Some(next))
    }
}

/// Snapshots that are held while the run goes on, each with the digest it must have.
#[derive(Default)]
struct Readers(Vec<(ReadTxn, u64)>);

impl Readers {
    /// Now and then one more, and now and then one that ends after it was compared.
    fn step(&mut self, db: &Database, model: &Model, rng: &mut Rng) -> Judged {
        if rng.one_in(4) && self.0.len() < READERS_MAX {
            let snap = db.begin_read().map_err(|error| format!("read: {error}"))?;
            self.0.push((snap, model.content_digest()));
        }
        if rng.one_in(6) && !self.0.is_empty() {
            let (snap, digest) = self.0.swap_remove(rng.index(self.0.len()));
            let found = digest_of_snapshot(&snap).map_err(|error| format!("snapshot: {error}"))?;
            if found != digest {
                return Err("a snapshot that is held has changed".to_owned());
            }
        }
        Ok(())
    }
}

/// Runs a random workload with kills and failing syncs. `watch`: under the write-protocol monitor.
fn record(seed: u64, plan: &Plan, watch: bool) -> Judged<Run> {
    let empty = Arc::new(SimDisk::new());
    drop(open(&empty, plan.page_size)?);
    let disk = Arc::new(SimDisk::from_image(empty.image()));
    let mut recorder = Recorder::new(disk, Rng::new(seed), *plan, Model::default());
    let mut left = plan.transactions;
    while left > 0 {
        let db = recorder.open(watch).map_err(|error| {
            let recording = recorder.disk.recording();
            let from = recording.ops.len().saturating_sub(OPERATIONS_SHOWN);
            let ops: String = lines(&recording.ops).skip(from).collect();
            format!("{error}\n{ops}")
        })?;
        let digest = digest_of(&db).map_err(|error| format!("reopened: {error}"))?;
        let Some(mut model) = recorder.models.get(&digest).cloned() else {
            return Err("reopened: not the content of any durable commit".to_owned());
        };
        let mut readers = Readers::default();
        while left > 0 {
            left -= 1;
            if recorder.rng.one_in(9) {
                let kinds = [FaultKind::Killed, FaultKind::Killed, FaultKind::SyncFails];
                let kind = *recorder.rng.pick(&kinds);
                let at_call = recorder.rng.below(FAULT_CALLS);
                let forever = kind == FaultKind::Killed;
                recorder.disk.set_fault(Some(Fault {
                    at_call,
                    forever,
                    kind,
                }));
            }
            let next = recorder.transaction(&db, &model)?;
            recorder.disk.set_fault(None);
            recorder.violations()?;
            let Some(next) = next else { break };
            model = next;
            readers.step(&db, &model, &mut recorder.rng)?;
            if recorder.rng.one_in(3) {
                let found = digest_of(&db).map_err(|error| format!("after a commit: {error}"))?;
                if found != model.digest() {
                    return Err("after a commit: not the content of the model".to_owned());
                }
                checked(&db)?;
            }
            if recorder.rng.one_in(12) {
                break;
            }
        }
        drop(readers);
        drop(db);
        recorder.violations()?;
    }
    let recording = recorder.disk.recording();
    Ok(Run {
        recording,
        first: vec![recorder.digests[0]],
        digests: recorder.digests,
        models: recorder.models,
    })
}

/// Goes through a recording and calls `cut` after every operation with the contents that are promised there.
fn after_each_operation(run: &Run, mut cut: impl FnMut(&Replay, &[u64]) -> Judged) -> Judged {
    let mut replay = Replay::new(&run.recording);
    let mut allowed = run.first.clone();
    for (at, op) in run.recording.ops.iter().enumerate() {
        replay.step(op);
        if let Op::Mark(mark) = op {
            if mark & 1 == ACKNOWLEDGED {
                allowed.clear();
            }
            allowed.push(run.digests[(mark >> 1) as usize]);
            continue;
        }
        cut(&replay, &allowed).map_err(|error| format!("operation {at}: {error}"))?;
    }
    Ok(())
}

/// Opens an image, checks it, compares it. Returns the database and the digest found.
fn judge(disk: &Arc<SimDisk>, allowed: &[u64], run: &Run, plan: &Plan) -> Judged<(Database, u64)> {
    let db = open(disk, plan.page_size)?;
    let digest = digest_of(&db).map_err(|error| format!("content: {error}"))?;
    if !allowed.contains(&digest) {
        let number = |digest: &u64| run.digests.iter().position(|known| known == digest);
        let promised: Vec<_> = allowed.iter().filter_map(number).collect();
        return Err(match number(&digest) {
            Some(found) => format!("found content {found}, promised was one of {promised:?}"),
            None => format!("found what was never committed, promised was one of {promised:?}"),
        });
    }
    checked(&db)?;
    Ok((db, digest))
}

/// What goes on from a state that was found.
struct Nest<'a> {
    plan: &'a Plan,
    tally: &'a Tally,
    /// Crashes before this one.
    depth: u32,
    /// Contents by digest.
    models: Vec<&'a HashMap<u64, Model>>,
}

impl Nest<'_> {
    /// Goes on from a state that was found, and cuts the power inside that, again and again.
    fn go_on(
        &self,
        disk: &Arc<SimDisk>,
        (db, digest): (Database, u64),
        promised: &[u64],
        rng: &mut Rng,
    ) -> Judged {
        let Some(start) = self.models.iter().find_map(|models| models.get(&digest)) else {
            return Ok(());
        };
        let mut model = start.clone();
        let inner = Rng::new(rng.u64());
        let mut recorder = Recorder::new(Arc::clone(disk), inner, *self.plan, model.clone());
        for _ in 0..NESTED_TRANSACTIONS {
            match recorder.transaction(&db, &model)? {
                Some(next) => model = next,
                None => break,
            }
        }
        drop(db);
        let run = Run {
            recording: disk.recording(),
            first: promised.to_vec(),
            digests: recorder.digests,
            models: recorder.models,
        };
        let deeper = Nest {
            depth: self.depth + 1,
            models: self.models.iter().copied().chain([&run.models]).collect(),
            ..*self
        };
        after_each_operation(&run, |replay, allowed| {
            self.tally.add(true);
            let disk = Arc::new(SimDisk::from_image(replay.power_cut(rng)));
            let found = judge(&disk, allowed, &run, self.plan)
                .map_err(|error| format!("inside reopening {}: {error}", self.depth))?;
            if deeper.depth < DEPTH_MAX && rng.one_in(DEEPER_ONE_IN) {
                self.tally.deep.fetch_add(1, Ordering::Relaxed);
                deeper.go_on(&disk, found, allowed, rng)?;
            }
            Ok(())
        })
        .map_err(|error| format!("{error}\nthe reopening and after:\n{}", describe_run(&run)))
    }
}

/// One seed: a run, and every crash of it.
///
/// # Errors
/// What was found, as a sentence.
pub fn examine(seed: u64, plan: &Plan, tally: &Tally) -> Result<(), String> {
    let run = record(seed, plan, false)?;
    let mut rng = Rng::new(mix(seed ^ 0xc4a5));
    after_each_operation(&run, |replay, allowed| {
        for image in 0..plan.images {
            let bytes = match image {
                0 if rng.one_in(4) => replay.killed(),
                _ => replay.power_cut(&mut rng),
            };
            tally.add(false);
            let disk = Arc::new(SimDisk::from_image(bytes));
            let found = judge(&disk, allowed, &run, plan)?;
            if plan.nest_one_in > 0 && rng.one_in(plan.nest_one_in) {
                let nest = Nest {
                    plan,
                    tally,
                    depth: 1,
                    models: vec![&run.models],
                };
                nest.go_on(&disk, found, allowed, &mut rng)?;
            }
            if !replay.at_stake() {
                break;
            }
        }
        Ok(())
    })
}

/// A run under the write-protocol monitor, without crashes.
///
/// # Errors
/// What was found, as a sentence.
pub fn watch(seed: u64, plan: &Plan) -> Result<(), String> {
    record(seed, plan, true).map(|_| ())
}

/// Prints the recording of a seed, for the eye.
///
/// # Errors
/// What was found while it was recorded.
pub fn describe(seed: u64, plan: &Plan) -> Result<String, String> {
    Ok(describe_run(&record(seed, plan, false)?))
}

fn describe_run(run: &Run) -> String {
    lines(&run.recording.ops).collect()
}

fn lines(ops: &[Op]) -> impl Iterator<Item = String> {
    ops.iter().enumerate().map(|(at, op)| match op {
        Op::Write(address, bytes) => format!("{at}: write {address} +{}\n", bytes.len()),
        Op::Mark(mark) if mark & 1 == BEGUN => format!("{at}: content {} begun\n", mark >> 1),
        Op::Mark(mark) => format!("{at}: content {} acknowledged\n", mark >> 1),
        other => format!("{at}: {other:?}\n"),
    })
}
