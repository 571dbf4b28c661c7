//! A process, or two, on the simulated disk: commits of every kind with tickets that wait, commits inside the syncs of others,
//! readers, and all that a database does in the background, as steps of one thread, so that a seed is a run.

use super::history::{History, Made, user_of};
use super::{Judged, options};
use crate::model::{Model, digest_of_snapshot};
use crate::workload::{Shape, TIME_MAX, chance, durability, operations, pins};
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidalite::{
    Budget, Database, Durability, LockMemory, MemoryStorage, Options, ReadTxn, Storage, StoreError,
    Ticket, Timestamp, Watch,
};
use tidalite_testkit::rng::Rng;
use tidalite_testkit::{Fault, Note, SimDisk};

/// Snapshots held at a time.
const READERS_MAX: usize = 3;
/// Values of so many bytes lie on the second disk, where there is one.
const LARGE_BYTES_MIN: u64 = 600;
/// Tickets that wait at a time; the oldest is waited for then.
const WAITING_MAX: usize = 3;

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// What all processes of a run share.
pub(super) struct World {
    pub(super) disk: Arc<SimDisk>,
    /// Where large values lie.
    pub(super) second: Option<Arc<SimDisk>>,
    pub(super) history: Mutex<History>,
    pub(super) shape: Shape,
    pub(super) page_size: usize,
    pub(super) sealing_threads: usize,
}

/// A commit whose acknowledgement is still to come.
pub(super) struct Waiting {
    number: u64,
    ticket: Ticket,
}

impl World {
    /// A fault of one of the disks.
    pub(super) fn set_fault(&self, fault: Option<Fault>, rng: &mut Rng) {
        let other = self.second.as_ref();
        match (fault, other) {
            (Some(fault), Some(second)) if rng.one_in(3) => second.set_fault(Some(fault)),
            (Some(fault), _) => self.disk.set_fault(Some(fault)),
            (None, _) => {
                self.disk.set_fault(None);
                other.inspect(|second| second.set_fault(None));
            }
        }
    }

    pub(super) fn fault_hit(&self) -> bool {
        let second = self.second.as_ref();
        self.disk.fault_hit() || second.is_some_and(|second| second.fault_hit())
    }

    /// The process dies as it is.
    pub(super) fn kill(&self) {
        self.disk.kill();
        if let Some(second) = &self.second {
            second.kill();
        }
    }

    pub(super) fn note(&self, note: Note) {
        self.disk.mark(note.encode());
    }

    /// A content begins to be committed; with a record it may be found from now on.
    fn begin(&self, user: Option<u64>, model: Arc<Model>, made: Made, recorded: bool) -> u64 {
        let mut history = lock(&self.history);
        let number = history.next();
        history.add(user.unwrap_or(number), model, made);
        drop(history);
        self.note(Note::Begun(number));
        if recorded {
            self.note(Note::Recorded(number));
        }
        number
    }

    /// One transaction on whatever is the newest commit; `None` when another one has the turn, or it was rolled back. While it is under way `due`
    /// is waited for.
    pub(super) fn commit(
        &self,
        db: &Database,
        rng: &mut Rng,
        shape: &Shape,
        due: Option<&Waiting>,
    ) -> tidalite::Result<Option<(Waiting, Durability)>> {
        let Some(mut tx) = db.try_begin_write()? else {
            return Ok(None);
        };
        let user = user_of(tx.user_data());
        let mut model = {
            let history = lock(&self.history);
            let base = history.of_user(user).expect("built on what is known");
            Model::clone(&history.content(base).model)
        };
        operations(&mut tx, &mut model, rng, shape)?;
        if let Some(due) = due {
            self.settle(db, due)?;
            operations(&mut tx, &mut model, rng, shape)?;
        }
        if chance(rng, shape.rollback_one_in) {
            return Ok(None);
        }
        let durability = match pins(&mut tx, &mut model, rng, shape)? {
            true => Durability::Durable,
            false => durability(rng, shape),
        };
        let number = lock(&self.history).next();
        tx.set_user_data(&number.to_le_bytes())?;
        let recorded = durability != Durability::None;
        let work = tx.front_work();
        let made = Made {
            leaves: work.rows_linked_beside > 0,
            blocks: work.rows_in_blocks > 0,
        };
        let begun = self.begin(None, Arc::new(model), made, recorded);
        assert_eq!(number, begun, "nobody else has the turn");
        let ticket = tx.commit_ticket(durability)?;
        lock(&self.history).stands_on(number);
        if durability == Durability::Lazy {
            self.note(Note::Lazy(number));
        }
        Ok(Some((Waiting { number, ticket }, durability)))
    }

    /// Waits for a commit, which is durable then.
    fn settle(&self, db: &Database, waiting: &Waiting) -> tidalite::Result<()> {
        // Waiting gives a `None` commit a record.
        self.note(Note::Recorded(waiting.number));
        waiting.ticket.wait()?;
        let shown = db.begin_read()?.txn();
        assert!(
            shown >= waiting.ticket.info().txn,
            "a durable commit is not shown"
        );
        self.note(Note::Durable(waiting.number));
        Ok(())
    }
}

/// One process that has the database open.
pub(super) struct Process<'a> {
    pub(super) world: &'a Arc<World>,
    pub(super) db: Database,
    pub(super) rng: Rng,
    pub(super) readers: Vec<(ReadTxn, u64)>,
    pub(super) waiting: Arc<Mutex<Vec<Waiting>>>,
    /// Commits of others come while a sync is under way.
    pub(super) overlap: Arc<Mutex<bool>>,
    /// The newest lazy commit that was not waited for.
    pub(super) lazy: Option<Waiting>,
}

impl Process<'_> {
    /// Whether a call that waits for the turn would get it.
    pub(super) fn has_turn(&self) -> Judged<bool> {
        Ok(self.db.try_begin_write().map_err(text)?.is_some())
    }

    /// The number of the content that the next writer builds on.
    fn tip(&self) -> Judged<u64> {
        let tx = self.db.try_begin_write().map_err(text)?;
        let tx = tx.ok_or("the turn is not free")?;
        let user = user_of(tx.user_data());
        lock(&self.world.history)
            .of_user(user)
            .ok_or_else(|| format!("built on {user}, which never was"))
    }

    /// What is committed and what the model says.
    pub(super) fn compare(&self) -> Judged {
        self.shown()?;
        super::checked(&self.db)
    }

    /// What readers get is a content that was committed; the newest one when nothing waits.
    fn shown(&self) -> Judged {
        let history = lock(&self.world.history);
        let found = history
            .identify(&self.db, |_| true)
            .map_err(|error| format!("after a step: {error}"))?;
        drop(history);
        let tip = self.tip()?;
        let hidden = !lock(&self.waiting).is_empty();
        if found == tip || hidden {
            Ok(())
        } else {
            Err(format!("content {found} is shown, {tip} was committed"))
        }
    }

    /// Does one thing that a program or its background threads may do.
    pub(super) fn step(&mut self) -> Judged {
        match self.rng.below(24) {
            0..=1 => self.compact()?,
            2 => self.maintain()?,
            3 => self.back_up()?,
            4 => self.sync()?,
            _ => self.transaction()?,
        }
        self.readers()
    }

    fn transaction(&mut self) -> Judged {
        let world = Arc::clone(self.world);
        // Beside the next transaction: one that waits for its flush, or a lazy one, which nobody has made durable.
        let due = match self.rng.below(12) {
            0 => lock(&self.waiting).pop(),
            1 => self.lazy.take(),
            _ => None,
        };
        let commit = world.commit(&self.db, &mut self.rng, &world.shape, due.as_ref());
        let Some((commit, durability)) = commit.map_err(|error| format!("transaction: {error}"))?
        else {
            return Ok(());
        };
        let late = match durability {
            Durability::Durable | Durability::OneFlush => self.rng.one_in(3),
            _ => !self.rng.one_in(5),
        };
        match durability {
            _ if !late => self.world.settle(&self.db, &commit).map_err(text)?,
            Durability::Durable | Durability::OneFlush => lock(&self.waiting).push(commit),
            Durability::Lazy => self.lazy = Some(commit),
            _ => {}
        }
        let full = lock(&self.waiting).len() > WAITING_MAX;
        if full || self.rng.one_in(4) {
            let due = lock(&self.waiting).pop();
            if let Some(due) = due {
                self.world.settle(&self.db, &due).map_err(text)?;
            }
        }
        Ok(())
    }

    /// Now and then one more snapshot, and now and then one that ends after it was compared.
    fn readers(&mut self) -> Judged {
        if self.rng.one_in(4) && self.readers.len() < READERS_MAX {
            let snap = match self.rng.below(3) {
                0 => self.db.begin_read_evictable(),
                _ => self.db.begin_read(),
            };
            let snap = snap.map_err(|error| format!("read: {error}"))?;
            let digest = lock(&self.world.history).is_known(&snap)?;
            self.readers.push((snap, digest));
        }
        if self.rng.one_in(6) && !self.readers.is_empty() {
            let chosen = self.rng.index(self.readers.len());
            let (snap, digest) = self.readers.swap_remove(chosen);
            let found = digest_of_snapshot(&snap).map_err(|error| format!("snapshot: {error}"))?;
            if found != digest {
                return Err("a snapshot that is held has changed".to_owned());
            }
        }
        Ok(())
    }

    /// What the background flusher does, and `sync`.
    pub(super) fn sync(&mut self) -> Judged {
        if !self.has_turn()? {
            return Ok(());
        }
        let tip = self.tip()?;
        self.world.note(Note::Recorded(tip));
        self.db.sync().map_err(text)?;
        self.world.note(Note::Durable(tip));
        Ok(())
    }

    /// A step of compaction: commits that change no content.
    fn compact(&mut self) -> Judged {
        if !self.has_turn()? {
            return Ok(());
        }
        let number = self.same_again()?;
        let budget = self.rng.below(64) * self.world.page_size as u64;
        self.db
            .compact(budget)
            .map_err(|error| format!("compact: {error}"))?;
        // Where nothing is to be moved nothing is committed.
        if self.rng.one_in(2) && self.has_turn()? {
            self.db.sync().map_err(text)?;
            self.world.note(Note::Durable(number));
        }
        Ok(())
    }

    /// The content of the tip under a number of its own, for commits that change nothing.
    fn same_again(&self) -> Judged<u64> {
        let tip = self.tip()?;
        let (user, model) = {
            let history = lock(&self.world.history);
            let content = history.content(tip);
            (content.user(), Arc::clone(&content.model))
        };
        let number = self.world.begin(Some(user), model, Made::default(), true);
        lock(&self.world.history).stands_on(number);
        Ok(number)
    }

    /// Keeps to the policies: one commit, which the model knows beforehand. (Commits inside its syncs would not be foreseen.)
    fn maintain(&mut self) -> Judged {
        if !self.has_turn()? {
            return Ok(());
        }
        *lock(&self.overlap) = false;
        let done = self.maintain_alone();
        *lock(&self.overlap) = true;
        done
    }

    fn maintain_alone(&mut self) -> Judged {
        // Plans are made from what is shown.
        self.sync()?;
        let now = TIME_MAX + self.rng.below(TIME_MAX as u64) as i64;
        let tip = self.tip()?;
        let (user, mut model) = {
            let history = lock(&self.world.history);
            let content = history.content(tip);
            (content.user(), Model::clone(&content.model))
        };
        cut(&mut model, now);
        let model = Arc::new(model);
        let number = (self.world).begin(Some(user), model, Made::default(), true);
        let budget = Budget {
            time: Duration::from_secs(60),
            now: Some(Timestamp(now)),
            ..Budget::default()
        };
        let done = self.db.maintain(&budget);
        done.map_err(|error| format!("maintain: {error}"))?;
        lock(&self.world.history).stands_on(number);
        self.world.note(Note::Durable(number));
        Ok(())
    }

    /// A backup while others write; what it gives must be a content, and the pin's where it is of one.
    fn back_up(&mut self) -> Judged {
        if !self.has_turn()? {
            return Ok(());
        }
        // What waits for its sync is not shown yet; what is shown and not durable becomes so first.
        let shown = lock(&self.world.history).identify(&self.db, |_| true)?;
        self.world.note(Note::Recorded(shown));
        let pins = self.db.pins().map_err(text)?;
        let mut out = Stream {
            world: self.world,
            db: self.db.clone(),
            rng: Rng::new(self.rng.u64()),
            bytes: Vec::new(),
            overlap: *lock(&self.overlap),
            failed: false,
        };
        let failed = |error: tidalite::Error| format!("backup: {error}");
        let allowed = |number: u64| number >= shown;
        let history = || lock(&self.world.history).clone();
        if pins.is_empty() && self.world.second.is_some() {
            self.db
                .backup(None, &mut out, Watch::new())
                .map_err(failed)?;
            let full = [&out.bytes[..]];
            return restored(&full, &history(), self.world.page_size, shown);
        }
        if self.world.second.is_none() && (pins.is_empty() || self.rng.one_in(2)) {
            self.db.copy_image(&mut out, Watch::new()).map_err(failed)?;
            let copy: Arc<dyn Storage> = Arc::new(MemoryStorage::from_image(out.bytes));
            let copy = options(self.world.page_size)
                .open_storage(copy)
                .map_err(|error| format!("copy of the file: {error}"))?;
            history()
                .identify(&copy, allowed)
                .map_err(|error| format!("copy of the file: {error}, {shown} was shown"))?;
            return super::checked(&copy).map_err(|error| format!("copy of the file: {error}"));
        }
        let pin = &self.rng.pick(&pins).name;
        let info = self.db.backup(Some(pin), &mut out, Watch::new());
        let info = info.map_err(failed)?;
        let full = std::mem::take(&mut out.bytes);
        // While the backup was written the name may have been given to another version: an increment on that
        // is none on this backup.
        let mut now = self.db.pins().map_err(text)?.into_iter();
        if !now.any(|now| now.name == *pin && now.txn == info.txn) {
            return Ok(());
        }
        self.db
            .backup_incremental(pin, None, &mut out, Watch::new())
            .map_err(failed)?;
        let chain = [&full[..], &out.bytes[..]];
        restored(&chain, &history(), self.world.page_size, shown)
    }
}

/// Makes a file of a backup and its increment, and compares it.
fn restored(chain: &[&[u8]], history: &History, page_size: usize, shown: u64) -> Judged {
    static NUMBER: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let memory = std::path::Path::new("/dev/shm");
    let folder = match memory.is_dir() {
        true => memory.to_owned(),
        false => std::env::temp_dir(),
    };
    let path = folder.join(format!(
        "tidalite-crash-{}-{number}.tdl",
        std::process::id()
    ));
    let judged = || -> Judged {
        tidalite::restore(chain.iter().copied(), &path, Watch::new()).map_err(text)?;
        let db = options(page_size).open(&path).map_err(text)?;
        history.identify_without_pins(&db, |number| number >= shown)?;
        super::checked(&db)
    };
    let result = judged();
    let _ = std::fs::remove_file(&path);
    for end in ["lock", "large"] {
        let _ = std::fs::remove_file(format!("{}-{end}", path.display()));
    }
    result.map_err(|error| format!("restored: {error}, {shown} was shown"))
}

/// What the policies leave at this time. (Times are in nanoseconds, and patterns are metrics.)
fn cut(model: &mut Model, now: i64) {
    for policy in model.retentions.values() {
        let keep = policy.keep.map_or(0, |keep| keep.as_nanos() as i64);
        let metric = |name: &str| name.split('{').next() == Some(&policy.pattern);
        let series = model.series.iter_mut();
        for (_, rows) in series.filter(|(name, _)| metric(name)) {
            rows.retain(|&time, _| time >= now - keep);
        }
        let wide = model.wide.iter_mut();
        for (_, wide) in wide.filter(|(name, _)| metric(name)) {
            Arc::make_mut(wide)
                .rows
                .retain(|&time, _| time >= now - keep);
        }
    }
}

/// A stream into memory; while it is written others commit.
struct Stream<'a> {
    world: &'a Arc<World>,
    db: Database,
    rng: Rng,
    bytes: Vec<u8>,
    overlap: bool,
    failed: bool,
}

impl Write for Stream<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.overlap && !self.failed && self.rng.one_in(6) {
            let shape = inside(&self.world.shape);
            // An error of the disk is found by whoever comes next.
            let commit = self.world.commit(&self.db, &mut self.rng, &shape, None);
            self.failed = commit.is_err();
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The shape of transactions that come while something else waits: pins would wait for their own flush.
pub(super) fn inside(shape: &Shape) -> Shape {
    Shape {
        pin_one_in: 0,
        none_one_in: 0,
        ..*shape
    }
}

/// Opens the database of a process.
pub(super) fn open(
    storage: Arc<dyn Storage>,
    second: Option<Arc<dyn Storage>>,
    memory: &LockMemory,
    options: Options,
) -> Result<Database, String> {
    let opened = match second {
        None => options.open_storage_with(storage, memory),
        Some(second) => options
            .large_values("", LARGE_BYTES_MIN)
            .open_storages(storage, second, memory),
    };
    opened.map_err(|error| match error {
        tidalite::Error::Store(StoreError::Io { source, .. }) => format!("open: {source}"),
        error => format!("open: {error}"),
    })
}
