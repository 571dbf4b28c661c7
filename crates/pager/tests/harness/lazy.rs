//! Crash tests with commits of every durability, tickets, and commits during a flush. A run has one thread and is
//! determined by its seed. Three kinds of crash are examined after every operation:
//!
//! 1. A power failure, at which the lock area is lost.
//! 2. A power failure of the disk, combined with the lock area of the same moment, an earlier or a later one. This
//!    happens when a disk disappears and returns while the system runs, or when a folder is copied or a backup
//!    restored.
//! 3. The death of the process. The lock area stays, perhaps with a half-written unsynced meta record.
//!
//! Some of the crashed files are used by another run, whose crashes are examined too, to depth 3.
//!
//! Promises: after a power failure, the newest commit acknowledged as durable is found, or a later one, whatever is
//! in the lock area. After the death of the process, the newest commit acknowledged as durable or lazy is found, or a
//! later one. (After a failed sync, lazy commits are not promised.)

use crate::toy::{
    Content, app, apply, changes, describe, id_of, options, problems, problems_read_only, read,
    root_of,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tidalite_pager::{Durability, LockMemory, Pager, Storage, Ticket};
use tidalite_testkit::rng::Rng;
use tidalite_testkit::{
    Fault, FaultKind, Hook, Monitor, Note, Op, Recording, Replay, SimDisk, Tap,
};

/// Number of bytes at the start of a lock area that are kept after a crash: the fields of the file and the unsynced
/// meta records. The rest describes readers and handles, which die with the process.
const LOCK_BYTES: usize = 12_288;
const UNSYNCED_META_AT: usize = 4096;
const SECOND_UNSYNCED_META_AT: usize = 8192;

type Judged<T = ()> = Result<T, String>;

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One in this many crashed files is checked through a read-only handle before a writer repairs anything.
const READ_ONLY_ONE_IN: u64 = 2;

/// Counts of the crashed files examined.
#[derive(Default)]
pub struct Tally {
    pub cuts: u64,
    /// Number of power failures of the disk alone, after which the lock area still exists or belongs to another time.
    pub kept: u64,
    pub kills: u64,
    pub nested: u64,
    /// Number of crashed files checked before a writer opened them.
    pub read_only: u64,
}

/// Contents of commits by the number of the commit, and whether each commit has a meta record, so that it may be
/// found.
#[derive(Clone, Default)]
struct History {
    contents: BTreeMap<u64, Content>,
    recorded: BTreeMap<u64, bool>,
}

/// A recorded run.
struct Run {
    recording: Recording,
    locks: Vec<Vec<u8>>,
    history: History,
}

/// The disk of a running process, the history of its commits, and the number of the next commit.
struct World {
    disk: Arc<SimDisk>,
    history: Arc<Mutex<History>>,
    next: Arc<Mutex<u64>>,
}

/// Makes a transaction on the newest commit. Does nothing if another transaction is open.
fn commit(
    world: &World,
    pager: &Pager,
    rng: &mut Rng,
    durability: Durability,
) -> Judged<Option<(u64, Ticket)>> {
    let words = |error: tidalite_pager::Error| error.to_string();
    let Some(mut txn) = pager.try_begin_write().map_err(words)? else {
        return Ok(None);
    };
    let id = {
        let mut next = lock(&world.next);
        *next += 1;
        *next
    };
    let base = id_of(txn.app());
    let mut root = root_of(txn.app());
    let mut content = lock(&world.history).contents[&base].clone();
    let changes = changes(rng, id);
    for part in changes.chunks(40) {
        root = apply(&mut txn, &root, part).map_err(words)?;
    }
    for (slot, version) in changes {
        content[slot] = version;
    }
    {
        let mut history = lock(&world.history);
        history.contents.insert(id, content);
        history.recorded.insert(id, durability != Durability::None);
    }
    world.disk.mark(Note::Begun(id).encode());
    let ticket = txn
        .commit_ticket(&app(&root, id), durability)
        .map_err(words)?;
    if durability == Durability::Lazy {
        world.disk.mark(Note::Lazy(id).encode());
    }
    Ok(Some((id, ticket)))
}

/// Waits for a commit and marks it as acknowledged.
fn settled(world: &World, pager: &Pager, (id, ticket): &(u64, Ticket)) -> Judged {
    // Waiting gives a meta record even to a commit with `Durability::None`.
    lock(&world.history).recorded.insert(*id, true);
    ticket.wait().map_err(|error| error.to_string())?;
    let reader = pager.begin_read().map_err(|error| error.to_string())?;
    if reader.txn() < ticket.info().txn {
        return Err("a durable commit is not shown".into());
    }
    world.disk.mark(Note::Durable(*id).encode());
    Ok(())
}

/// Records a run that begins with the given disk and lock area. The run consists of commits of all kinds, kills, and
/// reopenings of the file.
fn record(
    (image, area): (&[u8], &[u8]),
    history: History,
    first_id: u64,
    commits: u64,
    rng: &mut Rng,
    watch: bool,
) -> Judged<Run> {
    let disk = Arc::new(SimDisk::from_image(image.to_vec()));
    let mut memory = memory_of(area);
    let world = Arc::new(World {
        disk: Arc::clone(&disk),
        history: Arc::new(Mutex::new(history)),
        next: Arc::new(Mutex::new(first_id)),
    });
    let mut locks = Vec::new();
    let mut left = commits;
    while left > 0 {
        let inner: Arc<dyn Storage> = Arc::clone(&disk) as Arc<dyn Storage>;
        let monitor = watch.then(|| Monitor::new(Arc::clone(&inner)));
        let inner = match &monitor {
            Some(monitor) => Arc::clone(monitor) as Arc<dyn Storage>,
            None => inner,
        };
        let tap = Tap::new(inner, &disk, &memory, std::mem::take(&mut locks));
        let storage = Arc::clone(&tap) as Arc<dyn Storage>;
        let pager = Pager::open_storage_with(storage, &memory, &options())
            .map_err(|error| format!("open: {error}"))?;
        // Make more commits during each sync. They must not wait for the sync.
        let waiting: Arc<Mutex<Vec<(u64, Ticket)>>> = Arc::default();
        let (inside, kept, weak) = (
            Arc::clone(&world),
            Arc::clone(&waiting),
            Arc::downgrade(&tap),
        );
        let mut hook_rng = Rng::new(rng.u64());
        let hooked = pager.clone();
        let hook: Hook = Box::new(move || {
            if weak.strong_count() == 0 || !hook_rng.one_in(2) {
                return;
            }
            for _ in 0..=hook_rng.below(2) {
                let kinds = [Durability::Durable, Durability::Lazy, Durability::OneFlush];
                let durability = *hook_rng.pick(&kinds);
                if let Ok(Some(ticket)) = commit(&inside, &hooked, &mut hook_rng, durability) {
                    lock(&kept).push(ticket);
                }
            }
        });
        tap.set_hook(Some(hook));
        let killed = life(&world, &pager, &waiting, rng, &mut left);
        tap.set_hook(None);
        let faulted = disk.fault_hit();
        if let Err(error) = &killed
            && !faulted
        {
            return Err(error.clone());
        }
        if rng.one_in(2) || killed.is_err() {
            // The process dies at once, without closing the file properly.
            tap.note();
            disk.set_fault(Some(Fault {
                at_call: 0,
                forever: true,
                kind: FaultKind::Killed,
            }));
            let image = tap.area();
            memory.kill_all();
            lock(&waiting).clear();
            drop(pager);
            memory = memory_of(&image);
            disk.set_fault(None);
        } else {
            for ticket in lock(&waiting).drain(..) {
                drop(ticket);
            }
            drop(pager);
        }
        if let Some(monitor) = monitor {
            let found = monitor.take_violations();
            if !found.is_empty() {
                return Err(format!("monitor: {found:?}"));
            }
        }
        locks = tap.take_areas();
    }
    let history = lock(&world.history).clone();
    Ok(Run {
        recording: disk.recording(),
        locks,
        history,
    })
}

fn memory_of(area: &[u8]) -> LockMemory {
    let mut image = LockMemory::new().image();
    image[..area.len()].copy_from_slice(area);
    LockMemory::from_image(&image)
}

/// Runs the steps of one process, until all steps are done or the disk fails.
fn life(
    world: &World,
    pager: &Pager,
    waiting: &Mutex<Vec<(u64, Ticket)>>,
    rng: &mut Rng,
    left: &mut u64,
) -> Judged {
    let mut readers = Vec::new();
    while *left > 0 {
        *left -= 1;
        if rng.one_in(14) {
            let kind = *rng.pick(&[FaultKind::Killed, FaultKind::SyncFails]);
            world.disk.set_fault(Some(Fault {
                at_call: rng.below(10),
                forever: kind == FaultKind::Killed,
                kind,
            }));
        }
        let durability = match rng.below(6) {
            0 => Durability::None,
            1 | 2 => Durability::Lazy,
            3 | 4 => Durability::OneFlush,
            _ => Durability::Durable,
        };
        let Some(ticket) = commit(world, pager, rng, durability)? else {
            return Err("the writer lock is not free".into());
        };
        match durability {
            Durability::Durable | Durability::OneFlush if rng.one_in(3) => {
                lock(waiting).push(ticket);
            }
            Durability::Durable | Durability::OneFlush => settled(world, pager, &ticket)?,
            _ if rng.one_in(4) => settled(world, pager, &ticket)?,
            _ => {}
        }
        let due = rng.one_in(4).then(|| lock(waiting).pop()).flatten();
        if let Some(ticket) = due {
            settled(world, pager, &ticket)?;
        }
        let reader = pager.begin_read().map_err(|error| error.to_string())?;
        if rng.one_in(3) {
            readers.push(reader);
        }
        if readers.len() > 2 {
            readers.swap_remove(rng.index(readers.len()));
        }
        for reader in &readers {
            let found = read(reader, &root_of(reader.app()), &mut |_, _| {});
            let id = id_of(reader.app());
            if found.as_ref().ok() != Some(&lock(&world.history).contents[&id]) {
                return Err(format!("a snapshot of commit {id} changed"));
            }
        }
        if rng.one_in(9) {
            break;
        }
    }
    Ok(())
}

/// The promises at one moment: the newest commits acknowledged as durable and as lazy, and the newest commit begun.
#[derive(Clone, Copy, Debug, Default)]
struct Promise {
    durable: u64,
    lazy: u64,
    begun: u64,
    /// Whether an earlier crash may have lost writes of commits that the lock area names.
    has_lost: bool,
}

/// The data that remains after a crash: the file, and the lock area.
#[derive(Clone, Copy)]
struct State<'a> {
    image: &'a [u8],
    area: &'a [u8],
    /// Whether only the process died, so that all writes are present.
    killed: bool,
}

impl<'a> State<'a> {
    fn killed(image: &'a [u8], area: &'a [u8]) -> Self {
        let killed = true;
        Self {
            image,
            area,
            killed,
        }
    }

    fn cut(image: &'a [u8], area: &'a [u8]) -> Self {
        Self {
            killed: false,
            ..Self::killed(image, area)
        }
    }
}

struct Explorer<'a> {
    rng: Rng,
    tally: &'a mut Tally,
    images: u64,
}

impl Explorer<'_> {
    fn judge(&mut self, run: &Run, first: Promise, depth: u32) -> Judged {
        let mut replay = Replay::new(&run.recording);
        let (mut promise, mut before) = (first, first);
        let (mut area, mut areas): (&[u8], usize) = (&[], 0);
        for (at, op) in run.recording.ops.iter().enumerate() {
            replay.step(op);
            let place = |error: String| format!("depth {depth}, operation {at}: {error}");
            match op {
                Op::Mark(mark) => match Note::decode(*mark) {
                    Note::Begun(id) => promise.begun = id,
                    Note::Durable(id) => promise.durable = promise.durable.max(id),
                    Note::Lazy(id) => promise.lazy = id,
                    Note::Recorded(_) | Note::Second(_) => {}
                    Note::Area(number) => {
                        let next = &run.locks[number as usize];
                        let torn = torn(area, next, &mut self.rng);
                        // The commit of a half-written meta record has not been acknowledged yet.
                        let by = if torn == *next { promise } else { before };
                        let from = by.durable.max(by.lazy);
                        before = promise;
                        let killed = replay.killed();
                        self.tally.kills += 1;
                        self.look(run, State::killed(&killed, &torn), from, promise, depth)
                            .map_err(|e| place(format!("killed: {e}")))?;
                        (area, areas) = (next, number as usize + 1);
                    }
                },
                Op::SyncFailed => (promise.lazy, before.lazy) = (0, 0),
                _ => {
                    for _ in 0..self.images {
                        let image = replay.power_cut(&mut self.rng);
                        self.tally.cuts += 1;
                        self.look(
                            run,
                            State::cut(&image, &[]),
                            promise.durable,
                            promise,
                            depth,
                        )
                        .map_err(|e| place(format!("power cut: {e}")))?;
                        if let Some((when, kept)) = self.kept(run, area, areas) {
                            self.tally.kept += 1;
                            self.look(
                                run,
                                State::cut(&image, kept),
                                promise.durable,
                                promise,
                                depth,
                            )
                            .map_err(|e| place(format!("power cut, lock area {when}: {e}")))?;
                        }
                        if !replay.at_stake() {
                            break;
                        }
                        let killed = replay.killed();
                        self.tally.kills += 1;
                        let from = promise.durable.max(promise.lazy);
                        self.look(run, State::killed(&killed, area), from, promise, depth)
                            .map_err(|e| place(format!("killed: {e}")))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns a lock area to combine with the disk after a power failure: the one of the same moment, an earlier
    /// one, or a later one.
    fn kept<'r>(
        &mut self,
        run: &'r Run,
        now: &'r [u8],
        areas: usize,
    ) -> Option<(&'static str, &'r [u8])> {
        let (older, newer) = run.locks.split_at(areas);
        let one_of = |rng: &mut Rng, of: &'r [Vec<u8>]| {
            (!of.is_empty()).then(|| of[rng.index(of.len())].as_slice())
        };
        match self.rng.below(3) {
            0 => Some(("of that instant", now)),
            1 => Some(("of an earlier instant", one_of(&mut self.rng, older)?)),
            _ => Some(("of a later instant", one_of(&mut self.rng, newer)?)),
        }
    }

    fn look(
        &mut self,
        run: &Run,
        state: State<'_>,
        from: u64,
        promise: Promise,
        depth: u32,
    ) -> Judged {
        let State { image, area, .. } = state;
        let disk = Arc::new(SimDisk::from_image(image.to_vec()));
        let storage = Arc::clone(&disk) as Arc<dyn Storage>;
        // Use a copy of the random generator, so that this choice does not change the rest of the run.
        if self.rng.clone().one_in(READ_ONLY_ONE_IN) {
            self.tally.read_only += 1;
            describe(problems_read_only(Arc::clone(&storage), &memory_of(area)))
                .map_err(|error| format!("before a writer opened it: {error}"))?;
        }
        let memory = memory_of(area);
        let pager = Pager::open_storage_with(storage, &memory, &options())
            .map_err(|error| format!("open: {error}"))?;
        if let Some(dropped) = pager
            .recovery()
            .dropped_unrecorded
            .filter(|_| state.killed && !promise.has_lost)
        {
            return Err(format!("{dropped} was dropped, although nothing was lost"));
        }
        let reader = pager.begin_read().map_err(|error| error.to_string())?;
        let id = id_of(reader.app());
        let has_meta = id == 0 || run.history.recorded.get(&id) == Some(&true);
        if id < from || id > promise.begun.max(from) || !has_meta {
            return Err(format!(
                "found commit {id}, promised was one from {from} to {} with a record",
                promise.begun
            ));
        }
        let found = read(&reader, &root_of(reader.app()), &mut |_, _| {});
        match found {
            Ok(found) if Some(&found) == run.history.contents.get(&id) => {}
            Ok(_) => return Err(format!("not the content of commit {id}")),
            Err(error) => return Err(format!("content of commit {id}: {error}")),
        }
        drop(reader);
        describe(problems(&pager))?;
        drop(pager);
        if depth < 3 && self.rng.one_in(if depth == 1 { 60 } else { 90 }) {
            self.tally.nested += 1;
            let first = promise.begun + (1 << (20 * depth));
            let mut rng = Rng::new(self.rng.u64());
            let history = run.history.clone();
            let inner = record((image, area), history, first, 3, &mut rng, false)
                .map_err(|error| format!("goes on: {error}"))?;
            let first = Promise {
                durable: promise.durable,
                lazy: if area.is_empty() { 0 } else { from },
                begun: promise.begun,
                has_lost: promise.has_lost || !state.killed && !area.is_empty(),
            };
            self.judge(&inner, first, depth + 1)
                .map_err(|error| format!("{error}\n{}", described(&inner, 30)))?;
        }
        Ok(())
    }
}

/// Returns the first operations of a run as readable text.
fn described(run: &Run, count: usize) -> String {
    let line = |(at, op): (usize, &Op)| match op {
        Op::Write(address, bytes) => format!("{at}: write {address} +{}\n", bytes.len()),
        Op::Mark(mark) => match Note::decode(*mark) {
            Note::Area(number) => {
                let area = &run.locks[number as usize];
                let weak = |slot: usize| {
                    let at = UNSYNCED_META_AT + slot * 4096;
                    let word = |at: usize| {
                        u64::from_le_bytes(area[at..at + 8].try_into().unwrap_or([0; 8]))
                    };
                    format!("txn {} on {}", word(at + 24), word(at + 216))
                };
                format!("{at}: lock area: weak {}, {}\n", weak(0), weak(1))
            }
            note => format!("{at}: {note:?}\n"),
        },
        other => format!("{at}: {other:?}\n"),
    };
    let ops = run.recording.ops.iter().enumerate().take(count);
    ops.map(line).collect()
}

/// Returns the lock area as it is while an unsynced meta record is being written. Its words are written in ascending
/// order.
fn torn(before: &[u8], after: &[u8], rng: &mut Rng) -> Vec<u8> {
    let same = |from: usize, to: usize| before[from..to] == after[from..to];
    // An area that is being reset is invalid until it is complete.
    if before.is_empty()
        || same(UNSYNCED_META_AT, SECOND_UNSYNCED_META_AT)
            == same(SECOND_UNSYNCED_META_AT, LOCK_BYTES)
        || rng.one_in(2)
    {
        return after.to_vec();
    }
    let mut torn = after.to_vec();
    let words = (LOCK_BYTES - UNSYNCED_META_AT) / 8;
    let at = UNSYNCED_META_AT + rng.index(words) * 8;
    torn[at..].copy_from_slice(&before[at..]);
    torn
}

fn fresh() -> Judged<Vec<u8>> {
    let disk = Arc::new(SimDisk::new());
    let storage = Arc::clone(&disk) as Arc<dyn Storage>;
    drop(Pager::open_storage(storage, &options()).map_err(|error| error.to_string())?);
    Ok(disk.image())
}

fn empty_history() -> History {
    History {
        contents: BTreeMap::from([(0, vec![0; crate::toy::SLOTS])]),
        recorded: BTreeMap::new(),
    }
}

/// Examines one seed: records a run, and judges crashes at every operation.
pub fn examine(seed: u64, commits: u64, images: u64, tally: &mut Tally) -> Judged {
    let mut rng = Rng::new(seed);
    let run = record(
        (&fresh()?, &[]),
        empty_history(),
        0,
        commits,
        &mut rng,
        false,
    )?;
    let mut explorer = Explorer { rng, tally, images };
    explorer.judge(&run, Promise::default(), 1)
}

/// Records a run without crashes, while the monitor checks the order of writes and syncs.
pub fn watch(seed: u64, commits: u64) -> Judged {
    let mut rng = Rng::new(seed);
    record(
        (&fresh()?, &[]),
        empty_history(),
        0,
        commits,
        &mut rng,
        true,
    )
    .map(|_| ())
}
