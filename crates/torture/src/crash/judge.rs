//! Judges a recorded run: opens the file that each crash would leave, checks it, and continues from some of these
//! files.

use super::damaged::damaged;
use super::history::History;
use super::messages;
use super::open::{Judged, checked, open, options, storage_of};
use super::plan::Plan;
use super::queries;
use super::record::{Run, Start};
use super::tally::{Tally, count};
use super::trace::{OPERATIONS_SHOWN, lines};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tidalite::storage::{LockMemory, Storage};
use tidalite_testkit::rng::Rng;
use tidalite_testkit::{Crash, Cut, Promise, SimDisk, explore};

/// Maximum depth of nested crashes: in the first run, in the run after the reopening, in the run after that one ...
const DEPTH_MAX: u32 = 3;
/// After one in this many states inside a reopening, the run is continued.
const DEEPER_ONE_IN: u64 = 60;
/// In one of this many states, queries are run and their answers compared with the model.
const QUESTIONS_ONE_IN: u64 = 10;
/// In one of this many states, the messages are used up, to see that each is delivered and no orphan chunk stays.
const USED_UP_ONE_IN: u64 = 24;
/// One in this many states is checked through a read-only handle, before a writer repairs anything.
const READ_ONLY_ONE_IN: u64 = 4;
/// Number of steps of a run that continues after a crash.
const NESTED_STEPS: u64 = 2;

/// Judges the states that crashes leave, and continues the run from some of them.
pub(super) struct Judge<'a> {
    pub(super) plan: &'a Plan,
    pub(super) tally: &'a Tally,
    pub(super) history: &'a History,
    /// Nesting depth of the crash that is judged; 1 in the first run.
    pub(super) depth: u32,
    /// True if an earlier crash was a `Cut::Disk`, so that pages to which the lock area refers may be lost.
    pub(super) has_lost: bool,
}

impl Judge<'_> {
    pub(super) fn run(&self, run: &Run, first: &Promise, rng: &mut Rng) -> Judged {
        let (images, kill_one_in) = match self.depth {
            1 => (self.plan.images, self.plan.kill_one_in),
            _ => (1, self.plan.kill_one_in),
        };
        let mut look = |crash: Crash<'_>, rng: &mut Rng| match crash.cut {
            Cut::Acknowledged if self.depth > 1 => Ok(()),
            Cut::Acknowledged => damaged(crash, self.plan, self.tally, self.history, rng),
            cut => self
                .crashed(crash, rng)
                .map_err(|error| format!("{cut:?}: {error}")),
        };
        explore(&run.taped, first, (images, kill_one_in), rng, &mut look)
    }

    /// Checks the file through a read-only handle, before a writer repairs anything: there must be no damage and no
    /// lost durable commit.
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

    /// Opens the file that a crash leaves, identifies its content, checks it, and sometimes continues the run from
    /// there. (A file that seems to lack durable commits is refused for writing, so this also shows that no crash
    /// produces such a file.)
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
        self.tally.opened(&db, crash.cut, self.depth > 1);
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
        if rng.clone().one_in(USED_UP_ONE_IN) {
            messages::used_up(&db, &self.history.content(found).model)
                .map_err(|error| format!("content {found}: {error}"))?;
            count(&self.tally.used_up, true);
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

    /// Continues the run from the state after a crash, and crashes it again.
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
