//! Power cuts and process kills on a whole database.
//!
//! A seeded run of processes is recorded on the simulated disk. It has transactions over tables (plain, nested, of
//! sets) and series, appenders, policies and pins, with every durability, tickets that wait, and commits inside the
//! syncs of others; also compaction, maintenance, backups, two handles in turn, held snapshots, kills, failing disks
//! and reopenings.
//!
//! Then the judge opens, for every operation of the recording, the states that a power cut or the death of the process
//! may leave, also with the lock file of another moment. Each must open, check clean (even before a writer has healed
//! anything), and hold exactly the content of a commit that was promised (`tidalite_testkit::Promise`). In some seeds
//! large values are on a second disk, and each disk loses sectors independently. From some states the run continues
//! (healing, further commits) and is cut again.
//!
//! ```text
//! plan      parameters of a run and of its judging
//! tally     number of states examined
//! open      opens and checks databases
//! trace     a recording as text
//! history   contents by number, and which one a file holds
//! world     state shared by the processes of a run
//! backup    a backup while others commit
//! process   operations of a process on the database
//! record    records a run
//! messages  the promises of topics, queues, buckets and containers after a crash
//! queries   queries whose answers are compared with the model
//! relations the same for relations
//! damaged   one damaged sector after an acknowledged commit
//! judge     opens the image of each crash, and continues from some
//! ```

mod backup;
mod damaged;
mod history;
mod judge;
pub(crate) mod messages;
mod open;
mod plan;
mod process;
mod queries;
mod record;
mod relations;
mod tally;
mod trace;
mod world;

use crate::model::clock;
use history::History;
use judge::Judge;
use open::{Judged, open, options};
pub use plan::Plan;
use record::{Run, Start};
use std::cell::Cell;
use std::sync::Arc;
pub use tally::Tally;
use tidalite::storage::{LockMemory, Storage};
use tidalite_testkit::rng::{Rng, mix};
use tidalite_testkit::{Op, Promise, SimDisk};
use trace::lines;

fn start(seed: u64, plan: &Plan, watch: bool) -> Judged<Run> {
    // Recordings are short in this test. Half of the seeds use short extents, so that a run of the delta still has
    // several extents.
    tidalite_delta::short_extents(seed % 2 == 1);
    // An earlier run of this thread has left its time.
    clock::reset();
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

/// Records the run of one seed, and judges every crash of it.
///
/// # Errors
/// Returns the failure, as a sentence.
pub fn examine(seed: u64, plan: &Plan, tally: &Tally) -> Result<(), String> {
    let run = start(seed, plan, false)?;
    let operations = run.taped.recording.ops.iter();
    let operations = operations.filter(|op| !matches!(op, Op::Mark(_))).count() as u64;
    let states = plan.states_of(operations, run.taped.areas.len() as u64);
    let judge = Judge {
        plan,
        tally,
        history: &run.history,
        depth: 1,
        has_lost: false,
        states,
        nest_one_in: plan.nest_one_in(states),
        nested: &Cell::new(0),
    };
    judge.run(&run, &Promise::default(), &mut Rng::new(mix(seed ^ 0xc4a5)))
}

/// Runs a seed under the write-protocol monitor, without crashes.
///
/// # Errors
/// Returns the failure, as a sentence.
pub fn watch(seed: u64, plan: &Plan) -> Result<(), String> {
    start(seed, plan, true).map(|_| ())
}

/// Records the run of a seed, and describes the recording as text.
///
/// # Errors
/// If the run fails while it is recorded.
pub fn describe(seed: u64, plan: &Plan) -> Result<String, String> {
    let run = start(seed, plan, false)?;
    Ok(lines(&run.taped.recording.ops, &run.taped.areas).collect())
}
