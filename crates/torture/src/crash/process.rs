//! A process, or two, on the simulated disk: commits of every kind with tickets that wait, commits inside the syncs of others,
//! readers, and all that a database does in the background, as steps of one thread, so that a seed is a run.

use super::backup::{Stream, restored};
use super::history::{Made, user_of};
use super::open::{Judged, checked, lock, options, text};
use super::world::{Waiting, World};
use crate::model::{Model, digest_of_snapshot};
use crate::workload::TIME_MAX;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidalite::{Budget, Database, Durability, MemoryStorage, ReadTxn, Storage, Timestamp, Watch};
use tidalite_testkit::Note;
use tidalite_testkit::rng::Rng;

/// Snapshots held at a time.
const READERS_MAX: usize = 3;
/// Tickets that wait at a time; the oldest is waited for then.
const WAITING_MAX: usize = 3;

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
        checked(&self.db)
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
            return checked(&copy).map_err(|error| format!("copy of the file: {error}"));
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
