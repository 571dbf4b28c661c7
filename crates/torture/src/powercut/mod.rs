//! Real power cuts: a process writes to ext4 on a disk that loses unflushed writes; the oracle runs outside.
//!
//! ```text
//! oracle (this process) <- pipe of acknowledgements - writer (another process)
//!    |                                                   |
//!    | cuts, revives, mounts, opens, compares            | the library
//!    v                                                   v
//! device (FUSE, memory)  <-  loop device  <-  ext4  <-  name.tdl
//!                                      or the database on the loop device, without ext4
//! ```
//!
//! A cut comes at a counted write or flush of the disk, at any time: in a commit, in the file system's journal, while
//! the file is created or reopened, while the file system replays its journal. Afterwards the file system is mounted
//! again, and
//! 1. the file opens (it may be missing only if its creation was not acknowledged), and its check is clean;
//! 2. it has the last transaction acknowledged as durable, or a later one for which a durable commit or a sync had
//!    begun (so a lazy commit that no flush has covered is lost, unless a surviving durable commit was built on it).
//!    After every other cut the lock file is kept, as when a disk fails and returns while the computer runs: then a
//!    later lazy commit may be found, if it is complete;
//! 3. its content is exactly the content of this transaction.

#![expect(clippy::print_stdout, reason = "a program talks")]

mod cut;
pub mod device;
mod promise;
pub mod rig;
mod tally;
pub mod writer;

use crate::arguments::Arguments;
use crate::model::digest_of_snapshot;
use crate::seeded::enable_by_name;
use crate::workload::script::{Oracle, Script, number_of};
use cut::{Cut, Writer};
use promise::Promise;
use rig::{FLAVOURS, Rig};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
pub use tally::Tally;
use tidalite::ErrorKind;
use tidalite_testkit::rng::Rng;

/// Size of the simulated disk in bytes.
const DISK_BYTES: u64 = 48 << 20;
/// Number of power cuts after which the file system is created anew.
const CUTS_OF_A_LIFE: u64 = 25;
/// One in this many writers gets a failing flush before the power cut.
const FAILED_FLUSH_ONE_IN: u64 = 8;
/// One in this many replays of the file system's journal is cut as well.
const CUT_REPLAY_ONE_IN: u64 = 8;
/// Name of a deliberate bug that affects opening a file. This process opens the file, too, so it enables the bug as
/// well.
const OPENING_BUG: &str = "UnsyncedMetaUnverified";
/// Interval at which `end_when_stuck` checks that a power cut was completed since its last check; if not, this process
/// ends. The cause is then not a hanging writer, which the search reports within 40 seconds (`SILENCE` and `END` in
/// `cut.rs`).
const STUCK_AFTER: Duration = Duration::from_secs(90);
/// The exit code of a process that is stuck, and (below) the number of attempts to run it.
const STUCK: i32 = 75;
const ATTEMPTS: u32 = 3;
static PROGRESS: AtomicU64 = AtomicU64::new(0);

/// Runs this search.
///
/// # Errors
/// Returns the failure that the search found, with the seed.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let seed = arguments.number("--seed", 0)?;
    let cuts = arguments.number("--cuts", 200)?;
    let mut own: Vec<String> = vec!["powercut".to_owned()];
    own.extend(arguments.0.iter().cloned());
    for attempt in 1.. {
        match rig::in_own_namespace(&own) {
            Ok(None) => break,
            Ok(Some(0)) => return Ok(()),
            Ok(Some(STUCK)) if attempt < ATTEMPTS => println!("stuck in the kernel, once more"),
            Ok(Some(code)) => return Err(format!("ended with {code}")),
            Err(why) => return skipped(&why),
        }
    }
    std::thread::spawn(end_when_stuck);
    let mut rng = Rng::new(seed);
    let flavour = match arguments.text("--flavour") {
        None => None,
        Some(name) => {
            let found = FLAVOURS.iter().find(|flavour| flavour.name == name);
            let names = FLAVOURS.map(|flavour| flavour.name);
            Some(found.ok_or(format!("{name} is none of {names:?}"))?)
        }
    };
    let mut rig = match Rig::new(DISK_BYTES, FLAVOURS[0]) {
        Ok(rig) => rig,
        Err(why) => return skipped(&why),
    };
    if let Err(why) = rig.mount().and_then(|()| rig.unmount()) {
        return skipped(&why);
    }
    if let Some(name @ OPENING_BUG) = arguments.text("--bug") {
        enable_by_name(name)?;
    }
    let started = Instant::now();
    let mut tally = Tally::default();
    while tally.cuts < cuts {
        let sound = FLAVOURS.iter().filter(|flavour| !flavour.may_be_lost);
        let drawn = &FLAVOURS[rng.index(sound.count())];
        let flavour = *flavour.unwrap_or(drawn);
        let (life_seed, at) = (rng.u64(), tally.cuts);
        if arguments.has("--verbose") {
            let seconds = started.elapsed().as_secs_f64();
            println!("{seconds:.1} s, {}: {tally:?}", flavour.name);
        }
        let plan = Life {
            flavour,
            seed: life_seed,
            cuts,
            bug: arguments.text("--bug"),
        };
        life(&mut rig, &plan, &mut tally).map_err(|problem| {
            format!(
                "seed {seed}, {}, cut {} (life from {at}): {problem}",
                flavour.name, tally.cuts
            )
        })?;
    }
    println!(
        "{tally:?}, seed {seed}, {:.1} s, nothing lost",
        started.elapsed().as_secs_f64()
    );
    Ok(())
}

/// Ends the process if no power cut completes for a long time: a FUSE request was once left unanswered while the server
/// waited for requests. Ending the process closes the connection, and thus ends the wait.
fn end_when_stuck() {
    let mut seen = u64::MAX;
    loop {
        let now = PROGRESS.load(Ordering::Relaxed);
        if now == seen {
            std::process::exit(STUCK);
        }
        seen = now;
        std::thread::sleep(STUCK_AFTER);
    }
}

#[expect(clippy::unnecessary_wraps, reason = "what a program may end with")]
fn skipped(why: &str) -> Result<(), String> {
    println!("skipped: {why}");
    Ok(())
}

/// Parameters for the life of one file system, from its creation through many power cuts.
struct Life<'a> {
    flavour: rig::Flavour,
    seed: u64,
    /// Number of power cuts in total, over all file systems.
    cuts: u64,
    bug: Option<&'a str>,
}

/// Creates a file system and cuts its power repeatedly.
fn life(rig: &mut Rig, plan: &Life<'_>, tally: &mut Tally) -> Result<(), String> {
    let mut rng = Rng::new(plan.seed);
    let script = Script::new(rng.u64());
    let mut oracle = Oracle::new(script).map_err(|error| format!("shadow: {error}"))?;
    let mut promise = Promise::default();
    rig.format(DISK_BYTES, plan.flavour)?;
    rig.mount()?;
    for _ in 0..CUTS_OF_A_LIFE {
        if tally.cuts >= plan.cuts {
            break;
        }
        if rng.one_in(FAILED_FLUSH_ONE_IN) {
            rig.device.fail_flush_after(rng.below(60));
        }
        let cut = Cut::plan(rig, &mut rng);
        // The loop device may have a new number after each mount, so the paths are asked for again.
        let (file, lock) = (rig.file(), rig.lock());
        let writer = Writer {
            file: &file,
            lock: &lock,
            script: script.seed,
            map: !rng.one_in(4),
            bug: plan.bug,
        };
        let ended = writer.run(rig, &cut, tally)?;
        promise.hear_all(&ended, tally);
        tally.cuts += 1;
        PROGRESS.fetch_add(1, Ordering::Relaxed);
        tally.before_opened += u64::from(!promise.opened);
        rig.unmount()?;
        if !power_on(rig, &mut rng, plan.flavour, tally)? {
            return Ok(());
        }
        let same_boot = cut.kept.is_same_run();
        cut::leave_lock(rig, cut.kept, ended.image.as_deref())?;
        tally.same_boot += u64::from(same_boot);
        if !judge(rig, &mut promise, &mut oracle, (&mut rng, same_boot), tally)? {
            break;
        }
    }
    rig.unmount()
}

/// Turns the power on and mounts the file system, sometimes with another power cut in between. Returns false if the
/// file system itself is lost, which is accepted only for ext4's fast commits.
fn power_on(
    rig: &mut Rig,
    rng: &mut Rng,
    flavour: rig::Flavour,
    tally: &mut Tally,
) -> Result<bool, String> {
    loop {
        let loss = rig.device.revive(rng);
        tally.sectors_unsynced += loss.unsynced;
        tally.sectors_lost += loss.lost;
        if rng.one_in(CUT_REPLAY_ONE_IN) {
            rig.device.cut_after(1 + rng.below(20));
        }
        match rig.mount() {
            Ok(()) if !rig.device.is_dead() => {
                rig.device.cut_after(u64::MAX >> 1);
                return Ok(true);
            }
            Ok(()) => rig.unmount()?,
            Err(_) if rig.device.is_dead() => {}
            Err(_) if flavour.may_be_lost => {
                tally.file_systems_lost += 1;
                return Ok(false);
            }
            Err(problem) => return Err(format!("the file system does not come back: {problem}")),
        }
        tally.replays_cut += 1;
    }
}

/// Opens the database and compares its content. Returns false for a device with an incomplete database whose creation
/// was not acknowledged: creating a database there again requires permission to overwrite the device.
fn judge(
    rig: &Rig,
    promise: &mut Promise,
    oracle: &mut Oracle,
    (rng, same_boot): (&mut Rng, bool),
    tally: &mut Tally,
) -> Result<bool, String> {
    let file = rig.file();
    if !file.exists() {
        return if promise.opened {
            Err("the file is gone, though its making was acknowledged".to_owned())
        } else {
            Ok(true)
        };
    }
    let read_only = promise.opened && rng.one_in(2);
    let options = writer::options(true)
        .lock_path(rig.lock())
        .read_only(read_only);
    let db = match options.open(file) {
        Err(error)
            if error.kind() == ErrorKind::NotADatabase && rig.is_raw() && !promise.opened =>
        {
            return Ok(false);
        }
        opened => opened.map_err(|error| format!("open: {error}"))?,
    };
    let snap = db.begin_read().map_err(|error| format!("read: {error}"))?;
    let number = number_of(&snap).map_err(|error| format!("number: {error}"))?;
    if !promise.allows(number, same_boot) {
        return Err(format!(
            "stands on transaction {number}; {} was acknowledged, begun were {:?}, lazily {:?}",
            promise.last, promise.begun, promise.lazy
        ));
    }
    let found = digest_of_snapshot(&snap).map_err(|error| format!("content: {error}"))?;
    let expected = oracle
        .digest(number)
        .map_err(|error| format!("shadow: {error}"))?;
    if found != expected {
        return Err(format!(
            "the content is not that of transaction {number}, on which it stands"
        ));
    }
    let report = db.check().map_err(|error| format!("check: {error}"))?;
    if !report.problems.is_empty() {
        return Err(format!("check: {:?}", report.problems));
    }
    tally.later_found += u64::from(number != promise.last);
    let dropped = db.recovery().dropped_unrecorded;
    tally.dropped += u64::from(dropped.is_some());
    tally.lazy_found += u64::from(same_boot && promise.lazy.contains(&number));
    promise.found(number, same_boot);
    Ok(true)
}
