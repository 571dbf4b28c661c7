//! One or two processes on the simulated disk. Commits of every kind with waiting tickets, commits inside the syncs of
//! other commits, readers, and all background work of a database are steps of one thread, so that a seed determines the
//! run.

use super::backup::{Stream, restored};
use super::history::{Made, user_of};
use super::open::{Judged, checked, lock, options, text};
use super::world::{Waiting, World};
use crate::model::{Model, digest_of_snapshot};
use crate::workload::TIME_MAX;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidalite::retention::Budget;
use tidalite::storage::{MemoryStorage, Storage};
use tidalite::{Database, Durability, ReadTxn, Timestamp};
use tidalite_testkit::Note;
use tidalite_testkit::rng::Rng;

/// Maximum number of snapshots that are held at a time.
const READERS_MAX: usize = 3;
/// Maximum number of tickets (commits that are not awaited yet); when there are more, the newest ticket is awaited.
const WAITING_MAX: usize = 3;

/// A process with the database open.
pub(super) struct Process<'a> {
    pub(super) world: &'a Arc<World>,
    pub(super) db: Database,
    pub(super) rng: Rng,
    pub(super) readers: Vec<(ReadTxn, u64)>,
    pub(super) waiting: Arc<Mutex<Vec<Waiting>>>,
    /// True if other transactions commit during a sync.
    pub(super) overlap: Arc<Mutex<bool>>,
    /// The newest lazy commit, if it was not awaited yet.
    pub(super) lazy: Option<Waiting>,
}

impl Process<'_> {
    /// True if the writer lock is free.
    pub(super) fn has_turn(&self) -> Judged<bool> {
        Ok(self.db.try_begin_write().map_err(text)?.is_some())
    }

    /// Number of the content with which the next writer starts.
    fn tip(&self) -> Judged<u64> {
        let tx = self.db.try_begin_write().map_err(text)?;
        let tx = tx.ok_or("the turn is not free")?;
        let user = user_of(tx.user_data());
        lock(&self.world.history)
            .of_user(user)
            .ok_or_else(|| format!("built on {user}, which never was"))
    }

    /// Compares the committed content with the model, and checks the whole database.
    pub(super) fn compare(&self) -> Judged {
        self.shown()?;
        checked(&self.db)
    }

    /// Checks that readers see a committed content, and the newest one if no ticket is waiting.
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

    /// Performs one operation of the program or of its background threads.
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
        // A pending flush, or a lazy commit that is not durable yet, is awaited during the next transaction.
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

    /// Sometimes takes another snapshot, and sometimes compares a snapshot with the model and drops it.
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

    /// Syncs the database, as its background flusher would do.
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

    /// Performs a step of compaction, whose commits do not change the content.
    fn compact(&mut self) -> Judged {
        if !self.has_turn()? {
            return Ok(());
        }
        let number = self.same_again()?;
        let budget = self.rng.below(64) * self.world.page_size as u64;
        self.db
            .compact(budget)
            .map_err(|error| format!("compact: {error}"))?;
        // The sync makes the content durable even if compaction moved nothing and made no commit.
        if self.rng.one_in(2) && self.has_turn()? {
            self.db.sync().map_err(text)?;
            self.world.note(Note::Durable(number));
        }
        Ok(())
    }

    /// Adds the current content again under a new number, for commits that do not change the content.
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

    /// Applies the retention policies in one commit, whose result the model computes in advance. Commits inside syncs
    /// are switched off meanwhile, because the model cannot predict them.
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
        // Some messages are due at any time, such as the messages of a dropped group. They are removed first, so that the
        // policies make one commit.
        self.world
            .maintain_messages(&self.db, &mut self.rng)
            .map_err(|error| format!("maintain messages: {error}"))?;
        // Maintenance decides by the content that readers see, so the sync makes the newest content visible first.
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

    /// Writes a backup while others commit; the backup must contain a committed content, or the pinned content if a pin
    /// is backed up.
    fn back_up(&mut self) -> Judged {
        if !self.has_turn()? {
            return Ok(());
        }
        // A commit that still waits for its sync is not visible yet; a visible commit that is not durable yet is made
        // durable first.
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
            self.db.backup().to_writer(&mut out).map_err(failed)?;
            let full = [&out.bytes[..]];
            return restored(&full, &history(), self.world.page_size, shown);
        }
        if self.world.second.is_none() && (pins.is_empty() || self.rng.one_in(2)) {
            self.db.image().to_writer(&mut out).map_err(failed)?;
            let copy: Arc<dyn Storage> = Arc::new(MemoryStorage::from_image(out.bytes));
            let copy = options(self.world.page_size)
                .open_storage(copy)
                .map_err(|error| format!("copy of the file: {error}"))?;
            history()
                .identify(&copy, allowed)
                .map_err(|error| format!("copy of the file: {error}, {shown} was shown"))?;
            return checked(&copy).map_err(|error| format!("copy of the file: {error}"));
        }
        let pin = &self.rng.pick(&pins).name;
        let info = self.db.backup().of(pin).to_writer(&mut out);
        let info = info.map_err(failed)?;
        let full = std::mem::take(&mut out.bytes);
        // During the backup another version may have been pinned under the same name; an increment from that version
        // does not fit this backup.
        let mut now = self.db.pins().map_err(text)?.into_iter();
        if !now.any(|now| now.name == *pin && now.txn == info.txn) {
            return Ok(());
        }
        self.db
            .backup()
            .since(pin)
            .to_writer(&mut out)
            .map_err(failed)?;
        let chain = [&full[..], &out.bytes[..]];
        restored(&chain, &history(), self.world.page_size, shown)
    }
}

/// Applies the retention policies to the model. (Times are in nanoseconds, and the policies' patterns are metrics.)
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
