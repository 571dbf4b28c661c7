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
//! plan      how a run is recorded and judged
//! tally     how many states were looked at
//! open      how databases are opened and checked
//! trace     a recording as lines
//! history   contents by number, and which one a file holds
//! world     what the processes of a run share
//! backup    a backup while others commit
//! process   what is done with the database
//! record    records a run
//! queries   a few queries, answered by the model too
//! damaged   one damaged sector after a commit was acknowledged
//! judge     opens what each crash leaves, and goes on from that
//! ```

mod backup;
mod damaged;
mod history;
mod judge;
mod open;
mod plan;
mod process;
mod queries;
mod record;
mod tally;
mod trace;
mod world;

use history::History;
use judge::Judge;
use open::{Judged, open, options};
pub use plan::Plan;
use record::{Run, Start};
use std::sync::Arc;
pub use tally::Tally;
use tidalite::{LockMemory, Storage};
use tidalite_testkit::rng::{Rng, mix};
use tidalite_testkit::{Promise, SimDisk};
use trace::lines;

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
