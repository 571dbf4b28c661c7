//! The crash harness without the structure under test: it goes through a recorded run, makes what a power cut or the death of
//! the process leaves after every operation, and says what was promised there. Whoever uses it opens that and judges it.
//!
//! Contents of commits are known by numbers that ascend in the order of the commits. A run leaves notes:
//!
//! ```text
//! Begun n      a commit of content n begins          Recorded n   it gets a record, so it may be found
//! Lazy n       acknowledged: survives a kill         Durable n    acknowledged: survives a power cut
//! Area i       the lock area is now image i of the run
//! ```
//!
//! Promised is, after a power cut (the lock area is gone), the newest content acknowledged as durable, or a later one with a
//! record; after a kill (the area stays) the newest acknowledged as durable or lazy, or a later one. A failed sync, or
//! a record that could not be written, voids what was lazy.

use crate::rng::Rng;
use crate::simdisk::{Op, Recording, Replay};
use std::collections::BTreeSet;

/// Where the weak records begin in the lock area, and their length; `crates/pager/src/lock/area.rs`.
const WEAK_AT: usize = 4096;
const WEAK_BYTES: usize = 4096;
/// Where it says that a sync, or the write of a record, has failed.
const POISON_AT: usize = 128;
/// Bits of a note that say what it is.
const KIND_BITS: u32 = 3;

/// A note in a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// A commit of this content begins.
    Begun(u64),
    /// It has a record, or is about to get one.
    Recorded(u64),
    /// It is acknowledged: the death of the process leaves it.
    Lazy(u64),
    /// It is acknowledged: a power cut leaves it.
    Durable(u64),
    /// From here on the lock area is this image.
    Area(u64),
}

impl Note {
    /// As a mark in the log.
    #[must_use]
    pub const fn encode(self) -> u64 {
        let (kind, number) = match self {
            Self::Begun(number) => (0, number),
            Self::Recorded(number) => (1, number),
            Self::Lazy(number) => (2, number),
            Self::Durable(number) => (3, number),
            Self::Area(number) => (4, number),
        };
        number << KIND_BITS | kind
    }

    /// The note in a mark.
    #[must_use]
    pub const fn decode(mark: u64) -> Self {
        let number = mark >> KIND_BITS;
        match mark & ((1 << KIND_BITS) - 1) {
            0 => Self::Begun(number),
            1 => Self::Recorded(number),
            2 => Self::Lazy(number),
            3 => Self::Durable(number),
            _ => Self::Area(number),
        }
    }
}

/// A recorded run with a lock area.
#[derive(Clone, Debug)]
pub struct Taped {
    /// What happened to the disk.
    pub recording: Recording,
    /// The images that its notes name.
    pub areas: Vec<Vec<u8>>,
}

/// What may be found.
#[derive(Clone, Debug, Default)]
pub struct Promise {
    /// The newest content acknowledged as durable.
    pub durable: u64,
    /// The newest acknowledged as lazy, 0 when that is void.
    pub lazy: u64,
    /// The newest begun.
    pub begun: u64,
    /// Begun and without a record: these are never found.
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
            Note::Area(_) => {}
        }
    }

    /// Whether this content may be found when nothing older than `from` may.
    #[must_use]
    pub fn allows(&self, number: u64, from: u64) -> bool {
        (from..=self.begun.max(from)).contains(&number) && !self.unrecorded.contains(&number)
    }

    /// What is promised to whoever goes on from a crash that left nothing older than `from`.
    #[must_use]
    pub fn after(&self, cut: Cut, from: u64) -> Self {
        Self {
            lazy: if cut == Cut::Killed { from } else { 0 },
            ..self.clone()
        }
    }
}

/// What happened to the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The power went: the lock area is empty.
    Power,
    /// The process died; the area may have been written half.
    Killed,
    /// Nothing: a commit was acknowledged as durable a moment ago. `from` is what was durable before.
    Acknowledged,
}

/// What one crash leaves.
#[derive(Debug)]
pub struct Crash<'a> {
    /// What happened.
    pub cut: Cut,
    /// The file.
    pub image: Vec<u8>,
    /// The lock area.
    pub area: Vec<u8>,
    /// Nothing older may be found.
    pub from: u64,
    /// What may be found.
    pub promise: &'a Promise,
}

/// Goes through a run and calls `look` with what each crash leaves: after every operation the outcomes of `images` power cuts and,
/// one time in `kill_one_in` and whenever the lock area has changed, that of a kill.
///
/// # Errors
/// What `look` reports, and where.
pub fn explore(
    taped: &Taped,
    first: &Promise,
    (images, kill_one_in): (u64, u64),
    rng: &mut Rng,
    look: &mut dyn FnMut(Crash<'_>, &mut Rng) -> Result<(), String>,
) -> Result<(), String> {
    let mut replay = Replay::new(&taped.recording);
    let mut promise = first.clone();
    // A lazy commit is acknowledged after its area and noted before: half an area holds to what was said before.
    let mut lazy_before = first.lazy;
    let mut area: &[u8] = &[];
    for (at, op) in taped.recording.ops.iter().enumerate() {
        replay.step(op);
        let place = |error: String| format!("operation {at}: {error}");
        let killed = |replay: &Replay, area: Vec<u8>, lazy: u64, promise| Crash {
            cut: Cut::Killed,
            image: replay.killed(),
            area,
            from: lazy,
            promise,
        };
        match op {
            Op::Mark(mark) => match Note::decode(*mark) {
                Note::Area(number) => {
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
                    look(killed(&replay, torn, from, &promise), rng).map_err(place)?;
                    (area, lazy_before) = (next, promise.lazy);
                }
                note => {
                    let before = promise.durable;
                    promise.step(note);
                    if promise.durable > before {
                        let crash = Crash {
                            cut: Cut::Acknowledged,
                            image: replay.killed(),
                            area: Vec::new(),
                            from: before,
                            promise: &promise,
                        };
                        look(crash, rng).map_err(place)?;
                    }
                }
            },
            Op::SyncFailed => (promise.lazy, lazy_before) = (0, 0),
            _ => {
                for _ in 0..images {
                    let crash = Crash {
                        cut: Cut::Power,
                        image: replay.power_cut(rng),
                        area: Vec::new(),
                        from: promise.durable,
                        promise: &promise,
                    };
                    look(crash, rng).map_err(place)?;
                    if !replay.at_stake() {
                        break;
                    }
                }
                if kill_one_in > 0 && rng.one_in(kill_one_in) {
                    let from = promise.durable.max(promise.lazy);
                    let crash = killed(&replay, area.to_vec(), from, &promise);
                    look(crash, rng).map_err(place)?;
                }
            }
        }
    }
    Ok(())
}

/// The lock area while a weak record is being written: words in order.
fn torn(before: &[u8], after: &[u8], rng: &mut Rng) -> Vec<u8> {
    let slot = |number: usize| WEAK_AT + number * WEAK_BYTES..WEAK_AT + (number + 1) * WEAK_BYTES;
    let same = |number: usize| before[slot(number)] == after[slot(number)];
    // An area that is made anew is no area until it is done.
    if before.is_empty() || same(0) == same(1) || rng.one_in(2) {
        return after.to_vec();
    }
    let mut torn = after.to_vec();
    let at = WEAK_AT + rng.index(2 * WEAK_BYTES / 8) * 8;
    torn[at..slot(1).end].copy_from_slice(&before[at..slot(1).end]);
    torn
}
