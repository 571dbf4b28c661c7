//! A simulated disk that loses more data than any real disk, for tests of crashes.
//!
//! After a power cut, each 512-byte sector written since the last `sync` may hold its old content, any version written
//! since, or garbage. The file's length is durable only after `sync_all`. If a sync fails, the data that it should have
//! made durable stays lost: later syncs succeed without this data, as on Linux.
//!
//! All operations are logged. From one recorded run, `Replay` builds the images of a power cut after every single
//! operation, without another run.

use crate::places::Buffers;
use crate::rng::Rng;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidalite_disk::storage::{Growth, Places};
use tidalite_pager::Storage;

/// Size in bytes of a sector, the unit that a power cut keeps, loses or corrupts.
pub const SECTOR_BYTES: usize = 512;

/// One operation in the log of a disk.
#[derive(Clone, Debug)]
pub enum Op {
    /// A write of these bytes at this offset of the file.
    Write(u64, Arc<[u8]>),
    /// Growth of the file to this length in bytes.
    Grow(u64),
    /// Truncation of the file to this length in bytes.
    Cut(u64),
    /// A sync: all writes before it are durable; with `true`, the length of the file, too.
    Sync(bool),
    /// A sync of one range of the file: offset and number of bytes.
    SyncRange(u64, u64),
    /// A sync that failed, so that writes before it may stay lost.
    SyncFailed,
    /// A note of the crash harness between two operations.
    Mark(u64),
}

/// The way in which calls of a simulated disk fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// Writes and growth fail because the disk is full.
    DiskFull,
    /// No byte is free on the disk: growth fails, and so do writes into punched holes.
    NoSpace,
    /// Writes, growth and syncs fail with an error of the medium.
    Medium,
    /// A write stores half of its bytes, and then fails with an error of the medium.
    ShortWrite,
    /// Syncs fail.
    SyncFails,
    /// Reads, and queries of the file's length, fail with an error of the medium.
    ReadFails,
    /// Space cannot be released: truncation and hole punching fail.
    CutFails,
    /// The process is dead: no operation reaches the disk any more, and reads fail, too.
    Killed,
}

/// A fault that is scheduled for a simulated disk.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The number of the first call that fails, counted from 0 among writes, growth and syncs; faults of reads and of
    /// truncation count only reads and truncations.
    pub at_call: u64,
    /// True if every later call fails, too; false if only this call fails.
    pub forever: bool,
    /// The kind of failure.
    pub kind: FaultKind,
}

/// The operations of a disk since it was created.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The durable content of the disk at the beginning.
    pub base: Vec<u8>,
    /// The operations, in the order of their execution.
    pub ops: Vec<Op>,
}

#[derive(Debug)]
struct State {
    bytes: Vec<u8>,
    recording: Recording,
    calls: u64,
    reads: u64,
    cuts: u64,
    fault: Option<Fault>,
    fault_hit: bool,
    /// True if the process was killed between two calls.
    killed: bool,
    /// Ranges of the file (from, to) that were punched and not written since.
    holes: Vec<(u64, u64)>,
}

/// A simulated disk with one file.
#[derive(Debug)]
pub struct SimDisk {
    state: Mutex<State>,
}

impl Default for SimDisk {
    fn default() -> Self {
        Self::from_image(Vec::new())
    }
}

impl SimDisk {
    /// Creates a disk with an empty file.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a disk whose file has this durable content.
    #[must_use]
    pub fn from_image(image: Vec<u8>) -> Self {
        let recording = Recording {
            base: image.clone(),
            ops: Vec::new(),
        };
        Self {
            state: Mutex::new(State {
                bytes: image,
                recording,
                calls: 0,
                reads: 0,
                cuts: 0,
                fault: None,
                fault_hit: false,
                killed: false,
                holes: Vec::new(),
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A copy of the log with all operations so far.
    #[must_use]
    pub fn recording(&self) -> Recording {
        self.state().recording.clone()
    }

    /// The current content of the file, as a process sees it.
    #[must_use]
    pub fn image(&self) -> Vec<u8> {
        self.state().bytes.clone()
    }

    /// Adds a note of the crash harness to the log.
    pub fn mark(&self, note: u64) {
        self.state().recording.ops.push(Op::Mark(note));
    }

    /// Number of operations and notes in the log.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.state().recording.ops.len() as u64
    }

    /// Number of writes, growths and syncs so far.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// Number of calls so far that count for faults of this kind.
    #[must_use]
    pub fn calls_of(&self, kind: FaultKind) -> u64 {
        self.state().calls_of(kind)
    }

    /// Schedules a fault, or removes the scheduled one; `at_call` counts calls from now on.
    pub fn set_fault(&self, fault: Option<Fault>) {
        let mut state = self.state();
        state.fault_hit = false;
        state.killed = false;
        state.fault = fault.map(|fault| Fault {
            at_call: fault.at_call + state.calls_of(fault.kind),
            ..fault
        });
    }

    /// Kills the process that uses this disk, until a fault is scheduled or removed.
    pub fn kill(&self) {
        self.state().killed = true;
    }

    /// True if the scheduled fault has occurred.
    #[must_use]
    pub fn fault_hit(&self) -> bool {
        self.state().fault_hit
    }

    /// True if a fault has killed the process that uses this disk.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.state().is_dead()
    }

    /// Flips one bit of the durable content and of the current content.
    pub fn flip_bit(&self, at: usize, bit: u8) {
        let mut state = self.state();
        state.bytes[at] ^= 1 << bit;
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    Write,
    Grow,
    Sync,
    Read,
    Cut,
}

impl State {
    fn calls_of(&self, kind: FaultKind) -> u64 {
        match kind {
            FaultKind::ReadFails => self.reads,
            FaultKind::CutFails => self.cuts,
            _ => self.calls,
        }
    }

    /// Counts a call; returns the kind of fault that the call triggers, if any.
    fn strike(&mut self, call: Call) -> Option<FaultKind> {
        let counter = match call {
            Call::Read => &mut self.reads,
            Call::Cut => &mut self.cuts,
            Call::Write | Call::Grow | Call::Sync => &mut self.calls,
        };
        let number = *counter;
        *counter += 1;
        if matches!(call, Call::Read | Call::Cut) && self.is_dead() || self.killed {
            return Some(FaultKind::Killed);
        }
        let fault = self.fault?;
        let due = number == fault.at_call || (fault.forever && number > fault.at_call);
        let fits = match fault.kind {
            FaultKind::DiskFull => matches!(call, Call::Write | Call::Grow),
            FaultKind::NoSpace => call == Call::Grow,
            FaultKind::SyncFails => call == Call::Sync,
            FaultKind::ReadFails => call == Call::Read,
            FaultKind::CutFails => call == Call::Cut,
            FaultKind::Medium | FaultKind::Killed | FaultKind::ShortWrite => {
                !matches!(call, Call::Read | Call::Cut)
            }
        };
        if !due || !fits {
            return None;
        }
        self.fault_hit = true;
        Some(fault.kind)
    }

    fn is_dead(&self) -> bool {
        let killed = |fault: Fault| fault.kind == FaultKind::Killed && self.calls > fault.at_call;
        self.killed || self.fault.is_some_and(killed)
    }

    /// Removes the written range from the holes of the file; returns true if the write touched a hole.
    fn fill_holes(&mut self, at: u64, len: usize) -> bool {
        let end = at + len as u64;
        if !self.holes.iter().any(|&(from, to)| from < end && at < to) {
            return false;
        }
        let parts = self
            .holes
            .drain(..)
            .flat_map(|(from, to)| [(from, to.min(at).max(from)), (from.max(end).min(to), to)]);
        self.holes = parts.filter(|(from, to)| from < to).collect();
        true
    }

    fn put(&mut self, at: u64, bytes: &[u8]) {
        let from = at as usize;
        self.bytes[from..from + bytes.len()].copy_from_slice(bytes);
        self.recording.ops.push(Op::Write(at, bytes.into()));
    }

    fn sync(&mut self, op: Op) -> io::Result<()> {
        match self.strike(Call::Sync) {
            None => {
                self.recording.ops.push(op);
                Ok(())
            }
            Some(FaultKind::Killed) => Err(dead()),
            Some(_) => {
                self.recording.ops.push(Op::SyncFailed);
                Err(medium())
            }
        }
    }
}

fn dead() -> io::Error {
    io::Error::other("the process was killed")
}

fn medium() -> io::Error {
    io::Error::other("simulated error of the medium")
}

fn error_of(kind: FaultKind) -> io::Error {
    match kind {
        FaultKind::DiskFull | FaultKind::NoSpace => ErrorKind::StorageFull.into(),
        FaultKind::Killed => dead(),
        _ => medium(),
    }
}

impl Storage for SimDisk {
    fn read_at(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        let mut state = self.state();
        if let Some(kind) = state.strike(Call::Read) {
            return Err(error_of(kind));
        }
        let end = at.checked_add(bytes.len() as u64);
        if end.is_none_or(|end| end > state.bytes.len() as u64) {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        bytes.copy_from_slice(&state.bytes[at as usize..at as usize + bytes.len()]);
        Ok(())
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        assert!(
            at + bytes.len() as u64 <= state.bytes.len() as u64,
            "a write of {} bytes at {at} is beyond the file's end",
            bytes.len()
        );
        let call = if state.fill_holes(at, bytes.len()) {
            Call::Grow
        } else {
            Call::Write
        };
        match state.strike(call) {
            None => {
                state.put(at, bytes);
                Ok(())
            }
            Some(kind) => {
                if kind == FaultKind::ShortWrite {
                    state.put(at, &bytes[..bytes.len() / 2]);
                }
                Err(error_of(kind))
            }
        }
    }

    fn places(&self) -> Option<Box<dyn Places>> {
        Some(Box::new(Buffers::default()))
    }

    fn changed_in_place(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_at(at, bytes)
    }

    fn write_durably(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_at(at, bytes)?;
        self.state().sync(Op::SyncRange(at, bytes.len() as u64))
    }

    fn sync(&self) -> io::Result<()> {
        self.state().sync(Op::Sync(false))
    }

    fn sync_all(&self) -> io::Result<()> {
        self.state().sync(Op::Sync(true))
    }

    fn len(&self) -> io::Result<u64> {
        let mut state = self.state();
        if let Some(kind) = state.strike(Call::Read) {
            return Err(error_of(kind));
        }
        Ok(state.bytes.len() as u64)
    }

    fn grow(&self, len: u64, _: Growth) -> io::Result<()> {
        let mut state = self.state();
        if len <= state.bytes.len() as u64 {
            return Ok(());
        }
        if let Some(kind) = state.strike(Call::Grow) {
            return Err(error_of(kind));
        }
        state.bytes.resize(len as usize, 0);
        state.recording.ops.push(Op::Grow(len));
        Ok(())
    }

    fn cut(&self, len: u64) -> io::Result<()> {
        let mut state = self.state();
        if let Some(kind) = state.strike(Call::Cut) {
            return Err(error_of(kind));
        }
        if len < state.bytes.len() as u64 {
            state.bytes.truncate(len as usize);
            state.holes.retain(|&(at, _)| at < len);
            state.recording.ops.push(Op::Cut(len));
        }
        Ok(())
    }

    fn punch(&self, at: u64, len: u64) -> io::Result<bool> {
        let mut state = self.state();
        if let Some(kind) = state.strike(Call::Cut) {
            return Err(error_of(kind));
        }
        let zeros = vec![0; len as usize];
        state.put(at, &zeros);
        state.holes.push((at, at + len));
        Ok(true)
    }
}

#[derive(Clone, Debug)]
struct Version {
    bytes: [u8; SECTOR_BYTES],
    doomed: bool,
}

/// The state of a disk during the replay of its recording: the durable content, and the writes that a power cut may
/// lose.
#[derive(Clone, Debug)]
pub struct Replay {
    durable: Vec<u8>,
    durable_len: usize,
    current: Vec<u8>,
    /// For each sector, the versions written since the last sync, oldest first.
    unsynced: BTreeMap<usize, Vec<Version>>,
}

impl Replay {
    /// Creates the state at the beginning of a recording.
    #[must_use]
    pub fn new(recording: &Recording) -> Self {
        Self {
            durable: recording.base.clone(),
            durable_len: recording.base.len(),
            current: recording.base.clone(),
            unsynced: BTreeMap::new(),
        }
    }

    /// Creates the state at the end of a recording.
    #[must_use]
    pub fn at_end(recording: &Recording) -> Self {
        let mut replay = Self::new(recording);
        recording.ops.iter().for_each(|op| replay.step(op));
        replay
    }

    /// True if a power cut at this moment could lose data.
    #[must_use]
    pub fn at_stake(&self) -> bool {
        !self.unsynced.is_empty() || self.durable_len != self.current.len()
    }

    /// The content of the file if the process is killed at this moment.
    #[must_use]
    pub fn killed(&self) -> Vec<u8> {
        self.current.clone()
    }

    /// Replays one more operation.
    pub fn step(&mut self, op: &Op) {
        match op {
            Op::Write(at, bytes) => self.write(*at as usize, bytes),
            Op::Grow(len) => {
                self.current.resize(*len as usize, 0);
                let len = (*len as usize).max(self.durable.len());
                self.durable.resize(len, 0);
            }
            Op::Cut(len) => {
                let len = *len as usize;
                self.current.truncate(len);
                self.unsynced
                    .retain(|&sector, _| sector * SECTOR_BYTES < len);
                // The old content of the removed range is unreliable, whether or not the truncation survives a power
                // cut.
                self.durable[len..].fill(0);
            }
            Op::Sync(all) => {
                self.sync(0..usize::MAX);
                if *all {
                    self.durable_len = self.current.len();
                    self.durable.truncate(self.durable_len);
                }
            }
            Op::SyncRange(at, len) => {
                let (from, to) = (*at as usize, (*at + *len) as usize);
                self.sync(from / SECTOR_BYTES..to.div_ceil(SECTOR_BYTES));
            }
            Op::SyncFailed => {
                for version in self.unsynced.values_mut().flatten() {
                    version.doomed = true;
                }
            }
            Op::Mark(_) => {}
        }
    }

    fn write(&mut self, at: usize, bytes: &[u8]) {
        self.current[at..at + bytes.len()].copy_from_slice(bytes);
        if bytes.is_empty() {
            return;
        }
        for sector in at / SECTOR_BYTES..=(at + bytes.len() - 1) / SECTOR_BYTES {
            let from = sector * SECTOR_BYTES;
            let to = (from + SECTOR_BYTES).min(self.current.len());
            let mut content = [0; SECTOR_BYTES];
            content[..to - from].copy_from_slice(&self.current[from..to]);
            self.unsynced.entry(sector).or_default().push(Version {
                bytes: content,
                doomed: false,
            });
        }
    }

    fn sync(&mut self, sectors: Range<usize>) {
        let (durable, len) = (&mut self.durable, self.current.len());
        self.unsynced.retain(|&sector, versions| {
            if !sectors.contains(&sector) {
                return true;
            }
            let Some(last) = versions.last() else {
                return false;
            };
            if last.doomed {
                return true;
            }
            let from = sector * SECTOR_BYTES;
            let to = (from + SECTOR_BYTES).min(len);
            durable[from..to].copy_from_slice(&last.bytes[..to - from]);
            false
        });
    }

    /// The content of the file after a power cut at this moment: one of the many possible outcomes, chosen by `rng`.
    #[must_use]
    pub fn power_cut(&self, rng: &mut Rng) -> Vec<u8> {
        let len = match rng.below(3) {
            0 => self.durable_len,
            1 => self.current.len(),
            _ => {
                let least = self.durable_len.min(self.current.len());
                let differ = self.durable_len.abs_diff(self.current.len()) / SECTOR_BYTES;
                least + rng.index(differ + 1) * SECTOR_BYTES
            }
        };
        let mut image = self.durable[..len].to_vec();
        // Two probabilities in sixteenths: that a sector keeps its old content, and that it becomes garbage. All
        // sectors or no sectors is common in practice.
        let (old, garbage) = *rng.pick(&[(0, 0), (16, 0), (8, 0), (1, 0), (15, 0), (5, 5), (0, 2)]);
        let spoilt = match rng.below(4) {
            0 => self
                .unsynced
                .keys()
                .nth(rng.index(self.unsynced.len().max(1))),
            _ => None,
        };
        for (&sector, versions) in &self.unsynced {
            let from = sector * SECTOR_BYTES;
            let to = (from + SECTOR_BYTES).min(len);
            if from >= to {
                continue;
            }
            let chance = rng.below(16);
            let target = &mut image[from..to];
            if chance < garbage || spoilt == Some(&sector) {
                rng.fill(target);
            } else if chance < garbage + old {
                continue;
            } else {
                let version = if rng.one_in(4) {
                    rng.pick(versions)
                } else {
                    &versions[versions.len() - 1]
                };
                target.copy_from_slice(&version.bytes[..to - from]);
            }
        }
        image
    }
}
