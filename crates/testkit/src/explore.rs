//! The crash harness, independent of the data structure under test: it replays a recorded run, builds the state that a
//! power cut or the death of the process leaves after every operation, and computes which commits must have survived.
//! The caller opens that state and checks it.
//!
//! Each commit of a run has a number, its *content*, which ascends in the order of commits. A run leaves notes:
//!
//! ```text
//! Begun n      a commit of content n begins          Recorded n   it gets a meta record, so it may be found
//! Lazy n       acknowledged: survives a kill         Durable n    acknowledged: survives a power cut
//! Area i       the lock area is now image i of the run
//! Second n     the second disk has executed its first n operations
//! ```
//!
//! After a power cut the newest content acknowledged as durable must be found, or a later content with a meta record.
//! This holds without a lock area, and also if the lock area comes from another moment of the run. After a kill, which
//! leaves the lock area, the newest content acknowledged as durable or lazy must be found, or a later content. After a
//! failed sync, or after a failed write of a meta record, lazy acknowledgements no longer count.

use crate::rng::Rng;
use crate::simdisk::{Op, Recording, Replay};
use std::collections::BTreeSet;

/// Offset of the unsynced meta records in the lock area, and the length in bytes of each, as in
/// `crates/disk/src/lock/layout.rs`.
const WEAK_AT: usize = 4096;
const WEAK_BYTES: usize = 4096;
/// Offset in the lock area of the field that marks a failed sync or a failed write of a meta record.
const POISON_AT: usize = 128;
/// One power cut in this many is also examined with a lock area that has survived the cut.
const KEPT_ONE_IN: u64 = 3;
/// Number of bits of an encoded note that hold its kind.
const KIND_BITS: u32 = 3;

/// A note that a run leaves in its recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// A commit of the content with this number begins.
    Begun(u64),
    /// The content with this number has a meta record, or is about to get one.
    Recorded(u64),
    /// The content with this number is acknowledged, and survives the death of the process.
    Lazy(u64),
    /// The content with this number is acknowledged, and survives a power cut.
    Durable(u64),
    /// From this note on, the lock area is the image with this index.
    Area(u64),
    /// From this note on, the second disk has executed this many of its operations.
    Second(u64),
}

impl Note {
    /// Encodes the note as a mark in the log of the disk.
    #[must_use]
    pub const fn encode(self) -> u64 {
        let (kind, number) = match self {
            Self::Begun(number) => (0, number),
            Self::Recorded(number) => (1, number),
            Self::Lazy(number) => (2, number),
            Self::Durable(number) => (3, number),
            Self::Area(number) => (4, number),
            Self::Second(number) => (5, number),
        };
        number << KIND_BITS | kind
    }

    /// Decodes the note in a mark of the log.
    #[must_use]
    pub const fn decode(mark: u64) -> Self {
        let number = mark >> KIND_BITS;
        match mark & ((1 << KIND_BITS) - 1) {
            0 => Self::Begun(number),
            1 => Self::Recorded(number),
            2 => Self::Lazy(number),
            3 => Self::Durable(number),
            4 => Self::Area(number),
            _ => Self::Second(number),
        }
    }
}

/// The recording of a run that has a lock area.
#[derive(Clone, Debug)]
pub struct Taped {
    /// The operations of the first disk.
    pub recording: Recording,
    /// The operations of the second disk, if there is one; notes in the recording of the first disk tell when they
    /// occur.
    pub second: Option<Recording>,
    /// The images of the lock area during the run. A [`Note::Area`] in `recording` contains an index into this list:
    /// from that note on, the lock area has this image.
    pub areas: Vec<Vec<u8>>,
}

/// Which contents (commits) may be found after a crash.
#[derive(Clone, Debug, Default)]
pub struct Promise {
    /// The newest content that was acknowledged as durable.
    pub durable: u64,
    /// The newest content that was acknowledged as lazy; 0 if lazy acknowledgements no longer count.
    pub lazy: u64,
    /// The newest content whose commit has begun.
    pub begun: u64,
    /// Contents whose commits began without a meta record, so that they can never be found.
    unrecorded: BTreeSet<u64>,
}

impl Promise {
    fn step(&mut self, note: Note) {
        match note {
            Note::Begun(number) => {
                self.begun = self.begun.max(number);
                self.unrecorded.insert(number);
            }
            Note::Recorded(number) => drop(self.unrecorded.remove(&number)),
            Note::Lazy(number) => self.lazy = number,
            Note::Durable(number) => self.durable = self.durable.max(number),
            Note::Area(_) | Note::Second(_) => {}
        }
    }

    /// True if the content `number` may be found, given that no content older than `from` may be found.
    #[must_use]
    pub fn allows(&self, number: u64, from: u64) -> bool {
        (from..=self.begun.max(from)).contains(&number) && !self.unrecorded.contains(&number)
    }

    /// The promise at the beginning of a run that continues after a crash of kind `cut`. `from` is the oldest content
    /// that the crash could leave.
    #[must_use]
    pub fn after(&self, cut: Cut, from: u64) -> Self {
        Self {
            lazy: if cut == Cut::Killed { from } else { 0 },
            ..self.clone()
        }
    }
}

/// The event that ended the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The power failed, so the lock area is empty.
    Power,
    /// The disk lost the data that a power cut loses, but the system continued to run; or the file was replaced by a
    /// version from another moment. The lock area remains, from the same, an earlier or a later moment.
    Disk,
    /// The process died; the lock area may be half written.
    Killed,
    /// There was no crash, but a commit was just acknowledged as durable. `Crash::from` is the content that was durable
    /// before this commit.
    Acknowledged,
}

/// The state that a crash leaves.
#[derive(Debug)]
pub struct Crash<'a> {
    /// The kind of crash.
    pub cut: Cut,
    /// The content of the file.
    pub image: Vec<u8>,
    /// The content of the second file, if there is one.
    pub second: Option<Vec<u8>>,
    /// The content of the lock area.
    pub area: Vec<u8>,
    /// The oldest content that may be found.
    pub from: u64,
    /// The promise: which contents may be found.
    pub promise: &'a Promise,
}

/// The state of both disks during a replay.
struct Disks<'a> {
    first: Replay,
    second: Option<(Replay, &'a [Op])>,
    /// Number of operations of the second disk that were replayed.
    at: usize,
}

impl Disks<'_> {
    /// Replays the second disk up to operation `to`; returns true if one of its syncs has failed.
    fn second_to(&mut self, to: u64) -> bool {
        let Some((replay, ops)) = &mut self.second else {
            return false;
        };
        let ops = &ops[self.at..to as usize];
        self.at = to as usize;
        ops.iter().for_each(|op| replay.step(op));
        ops.iter().any(|op| matches!(op, Op::SyncFailed))
    }

    fn at_stake(&self) -> bool {
        let second = self.second.as_ref();
        self.first.at_stake() || second.is_some_and(|(replay, _)| replay.at_stake())
    }

    fn killed(&self) -> (Vec<u8>, Option<Vec<u8>>) {
        let second = self.second.as_ref();
        (
            self.first.killed(),
            second.map(|(replay, _)| replay.killed()),
        )
    }

    fn power_cut(&self, rng: &mut Rng) -> (Vec<u8>, Option<Vec<u8>>) {
        let first = self.first.power_cut(rng);
        let second = self.second.as_ref();
        (first, second.map(|(replay, _)| replay.power_cut(rng)))
    }
}

/// Replays a run and calls `look` with the state that each crash leaves. After every operation this function tries
/// `images` outcomes of a power cut. It tries the death of the process after one operation in `kill_one_in`, and
/// whenever the lock area has changed.
///
/// # Errors
/// Returns the errors that `look` reports, with the position in the run.
pub fn explore(
    taped: &Taped,
    first: &Promise,
    (images, kill_one_in): (u64, u64),
    rng: &mut Rng,
    look: &mut dyn FnMut(Crash<'_>, &mut Rng) -> Result<(), String>,
) -> Result<(), String> {
    let second = taped.second.as_ref();
    let mut disks = Disks {
        first: Replay::new(&taped.recording),
        second: second.map(|second| (Replay::new(second), &second.ops[..])),
        at: 0,
    };
    let mut promise = first.clone();
    // A lazy commit is noted before the image of its lock area. If that image is half written, only the commits
    // promised before must survive.
    let mut lazy_before = first.lazy;
    let (mut area, mut areas): (&[u8], usize) = (&[], 0);
    for (at, op) in taped.recording.ops.iter().enumerate() {
        disks.first.step(op);
        let place = |error: String| format!("operation {at}: {error}");
        let note = match op {
            Op::Mark(mark) => Some(Note::decode(*mark)),
            _ => None,
        };
        let crash = |cut, (image, second), area, from, promise| Crash {
            cut,
            image,
            second,
            area,
            from,
            promise,
        };
        match note {
            Some(Note::Area(number)) => {
                let next = &taped.areas[number as usize];
                if next[POISON_AT..POISON_AT + 8] != [0; 8] {
                    (promise.lazy, lazy_before) = (0, 0);
                }
                let torn = torn(area, next, rng);
                let lazy = if torn == *next {
                    promise.lazy
                } else {
                    lazy_before
                };
                let from = promise.durable.max(lazy);
                let crash = crash(Cut::Killed, disks.killed(), torn, from, &promise);
                look(crash, rng).map_err(place)?;
                (area, lazy_before) = (next, promise.lazy);
                areas = number as usize + 1;
                continue;
            }
            // The second disk continues, and one of its syncs fails.
            Some(Note::Second(to)) if disks.second_to(to) => {
                (promise.lazy, lazy_before) = (0, 0);
                continue;
            }
            Some(Note::Second(_)) => {}
            Some(note) => {
                let before = promise.durable;
                promise.step(note);
                if promise.durable > before {
                    let left = disks.killed();
                    let crash = crash(Cut::Acknowledged, left, Vec::new(), before, &promise);
                    look(crash, rng).map_err(place)?;
                }
                continue;
            }
            None if matches!(op, Op::SyncFailed) => {
                (promise.lazy, lazy_before) = (0, 0);
                continue;
            }
            None => {}
        }
        for _ in 0..images {
            let left = disks.power_cut(rng);
            if rng.one_in(KEPT_ONE_IN) {
                let (image, second) = left.clone();
                let (area, allowed) = kept(taped, at, (area, areas), &promise, rng);
                let crash = Crash {
                    cut: Cut::Disk,
                    image,
                    second,
                    area,
                    from: promise.durable,
                    promise: &allowed,
                };
                look(crash, rng).map_err(place)?;
            }
            let crash = crash(Cut::Power, left, Vec::new(), promise.durable, &promise);
            look(crash, rng).map_err(place)?;
            if !disks.at_stake() {
                break;
            }
        }
        if kill_one_in > 0 && rng.one_in(kill_one_in) {
            let from = promise.durable.max(promise.lazy);
            let crash = crash(Cut::Killed, disks.killed(), area.to_vec(), from, &promise);
            look(crash, rng).map_err(place)?;
        }
    }
    Ok(())
}

/// The lock area that is found with the data of the disk after operation `at`, and the promise that holds then. The
/// lock area is the newest of `areas`, from this moment, or an older or newer one. With a newer lock area the newest
/// content begun by that time may be found, if all of its data is on the disk.
fn kept(
    taped: &Taped,
    at: usize,
    (area, areas): (&[u8], usize),
    promise: &Promise,
    rng: &mut Rng,
) -> (Vec<u8>, Promise) {
    let (older, newer) = taped.areas.split_at(areas);
    match rng.below(3) {
        0 if !older.is_empty() => (older[rng.index(older.len())].clone(), promise.clone()),
        1 if !newer.is_empty() => {
            let number = areas + rng.index(newer.len());
            let mut later = promise.clone();
            for op in &taped.recording.ops[at..] {
                match op {
                    Op::Mark(mark) if *mark == Note::Area(number as u64).encode() => break,
                    Op::Mark(mark) => later.step(Note::decode(*mark)),
                    _ => {}
                }
            }
            later.durable = promise.durable;
            (taped.areas[number].clone(), later)
        }
        _ => (area.to_vec(), promise.clone()),
    }
}

/// The lock area while an unsynced meta record is being written to it: words are written in order, and the last words
/// still have their old value.
fn torn(before: &[u8], after: &[u8], rng: &mut Rng) -> Vec<u8> {
    let slot = |number: usize| WEAK_AT + number * WEAK_BYTES..WEAK_AT + (number + 1) * WEAK_BYTES;
    let same = |number: usize| before[slot(number)] == after[slot(number)];
    // A lock area that was just created is not valid until it is complete.
    if before.is_empty() || same(0) == same(1) || rng.one_in(2) {
        return after.to_vec();
    }
    let mut torn = after.to_vec();
    let at = WEAK_AT + rng.index(2 * WEAK_BYTES / 8) * 8;
    torn[at..slot(1).end].copy_from_slice(&before[at..slot(1).end]);
    torn
}
