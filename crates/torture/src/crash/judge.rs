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
use crate::model::{Model, Reading};
use crate::workload::Shape;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tidalite::storage::{LockMemory, Storage};
use tidalite_testkit::rng::Rng;
use tidalite_testkit::{Crash, Cut, Promise, SimDisk, explore};

/// Maximum depth of nested crashes: in the first run, in the run after the reopening, in the run after that one ...
const DEPTH_MAX: u32 = 3;
/// The run is continued from one in `DEEPER_ONE_IN` states inside or after a reopening.
const DEEPER_ONE_IN: u64 = 200;
/// One in `QUESTIONS_ONE_IN` states is also queried, and the answers are compared with the model.
const QUESTIONS_ONE_IN: u64 = 10;
/// In one in `ASKED_AGAIN_ONE_IN` states, hash tables, buffered tables and relations are read in every possible way.
const ASKED_AGAIN_ONE_IN: u64 = 10;
/// In one in `PINS_READ_ONE_IN` states, the pinned versions are read and compared, too.
const PINS_READ_ONE_IN: u64 = 4;
/// In one in `USED_UP_ONE_IN` states with messages, all messages are consumed, to check that each is delivered and no
/// orphan chunk remains.
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
    /// Approximate number of states of the first run.
    pub(super) states: u64,
    /// The run is continued, and crashed again, from one in this many states; 0 for never.
    pub(super) nest_one_in: u64,
    /// Number of states inside or after a reopening that were judged so far, of the whole run.
    pub(super) nested: &'a Cell<u64>,
}

/// Whether a model has a relation with rows and an index.
fn has_related_rows(model: &Model) -> bool {
    let mut relations = model.relations.values();
    relations.any(|relation| !relation.rows.is_empty() && !relation.schema.indexes.is_empty())
}

impl Judge<'_> {
    pub(super) fn run(&self, run: &Run, first: &Promise, rng: &mut Rng) -> Judged {
        let (images, kill_one_in) = match self.depth {
            1 => (self.plan.images, self.plan.kill_one_in),
            _ => (1, self.plan.kill_one_in),
        };
        let mut look = |crash: Crash<'_>, rng: &mut Rng| match crash.cut {
            Cut::Power | Cut::Disk | Cut::Killed if !self.examines(rng) => Ok(()),
            Cut::Acknowledged if self.depth > 1 => Ok(()),
            Cut::Acknowledged => damaged(crash, self.plan, self.tally, self.history, rng),
            cut => self
                .crashed(crash, rng)
                .map_err(|error| format!("{cut:?}: {error}")),
        };
        explore(&run.taped, first, (images, kill_one_in), rng, &mut look)
    }

    /// Whether the next state is examined: a part of the states of a long run, and a limited number inside or after
    /// reopenings.
    fn examines(&self, rng: &mut Rng) -> bool {
        match self.depth {
            1 => {
                self.states <= self.plan.states_max || rng.below(self.states) < self.plan.states_max
            }
            _ => self.nests(),
        }
    }

    /// Whether another state inside or after a reopening may be examined.
    fn nests(&self) -> bool {
        self.nested.get() < self.plan.nested_max
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
        if rng.one_in(READ_ONLY_ONE_IN) {
            self.checked_read_only(&disk, &crash)?;
        }
        let memory = LockMemory::from_image(&crash.area);
        let db = open(
            disk,
            storage_of(crash.second.as_ref()),
            &memory,
            options(self.plan.page_size),
        )?;
        let is_nested = self.depth > 1;
        self.tally.opened(&db, crash.cut, is_nested);
        self.nested.set(self.nested.get() + u64::from(is_nested));
        let dropped = db.recovery().dropped_unrecorded;
        if let Some(dropped) = dropped.filter(|_| crash.cut == Cut::Killed && !self.has_lost) {
            return Err(format!("{dropped} was dropped, although nothing was lost"));
        }
        let made = self.history.content(crash.promise.begun).made();
        count(&self.tally.leaves, made.leaves);
        count(&self.tally.blocks, made.blocks);
        let allowed = |number: u64| crash.promise.allows(number, crash.from);
        let (from, begun) = (crash.from, crash.promise.begun);
        let reading = Reading {
            asks_again: rng.one_in(ASKED_AGAIN_ONE_IN),
            reads_pins: rng.one_in(PINS_READ_ONE_IN),
        };
        let found = self.history.identify_by(&db, reading, allowed);
        let found = found.map_err(|error| {
            format!("{error}, promised was one of {from} to {begun} with a record")
        })?;
        let model = &self.history.content(found).model;
        count(&self.tally.related, has_related_rows(model));
        checked(&db).map_err(|error| format!("content {found}: {error}"))?;
        if rng.one_in(QUESTIONS_ONE_IN) {
            queries::ask(&db, model, rng).map_err(|error| format!("content {found}: {error}"))?;
            count(&self.tally.asked, true);
        }
        if model.messages.exist() && rng.one_in(USED_UP_ONE_IN) {
            messages::used_up(&db, model).map_err(|error| format!("content {found}: {error}"))?;
            count(&self.tally.used_up, true);
        }
        drop(db);
        let goes_on = self.depth < DEPTH_MAX && self.nests() && self.nest_one_in > 0;
        if goes_on && rng.one_in(self.nest_one_in) {
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
        // Batches of many rows would make the states of short runs slow to compare.
        let plan = Plan {
            shape: Shape {
                bulk_one_in: 0,
                ..self.plan.shape
            },
            ..*self.plan
        };
        let run = Start {
            image: crash.image,
            second: crash.second,
            area: crash.area,
            history: self.history.up_to(crash.promise.begun),
            steps: NESTED_STEPS,
            plan: &plan,
            watch: false,
        }
        .record(&mut inner)
        .map_err(|error| format!("reopening {}: {error}", self.depth))?;
        let deeper = Judge {
            history: &run.history,
            depth: self.depth + 1,
            has_lost,
            nest_one_in: DEEPER_ONE_IN,
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
