//! Marks: the states of open ids that are not simply ready. A row covers 64 ids and stores runs of ids with equal
//! marks.
//!
//! ```text
//! 0  u8    first id % 64        8  i64   leased: deadline; delayed: end; dead: time at which it died; else 0
//! 1  u8    last id % 64        16  u64   leased: number of the lease; dead: reason; else 0
//! 2  u8    phase
//! 3  u8    priority            24 bytes for each run; the runs ascend
//! 4  u32   deliveries
//! ```

use crate::queues::keys;
use crate::queues::parts::{Part, change, damaged, part};
use std::collections::BTreeMap;
use tidalite_base::{get_i64, get_u32, get_u64};
use tidalite_kv::Tree;
use tidalite_pager::{PageRead, PageWrite, Result};

/// Number of ids in one row.
pub(crate) const IDS: usize = 64;
const RUN_BYTES: usize = 24;

/// The state of an open id in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Ready,
    Leased,
    Delayed,
    Waiting,
    Dead,
}

/// The state of an open id, with the number of deliveries and times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) phase: Phase,
    pub(crate) priority: u8,
    /// Number of deliveries so far.
    pub(crate) count: u32,
    /// Deadline of the lease, end of the delay, or time at which the message became a dead letter; otherwise 0.
    pub(crate) time: i64,
    /// Number of the lease, or the reason of a dead letter; otherwise 0.
    pub(crate) lease: u64,
}

impl Mark {
    /// A message that is ready after `count` deliveries.
    pub(crate) fn ready(priority: u8, count: u32) -> Self {
        Self {
            phase: Phase::Ready,
            priority,
            count,
            time: 0,
            lease: 0,
        }
    }

    pub(crate) fn waiting(priority: u8, count: u32) -> Self {
        Self {
            phase: Phase::Waiting,
            ..Self::ready(priority, count)
        }
    }

    pub(crate) fn delayed(priority: u8, count: u32, until: i64) -> Self {
        Self {
            phase: Phase::Delayed,
            time: until,
            ..Self::ready(priority, count)
        }
    }

    /// Whether the mark need not be stored: the message is ready and was never delivered.
    fn is_plain(&self) -> bool {
        self.phase == Phase::Ready && self.count == 0
    }

    fn is_whole(&self) -> bool {
        let (timed, numbered) = match self.phase {
            Phase::Ready | Phase::Waiting => (false, false),
            Phase::Delayed => (true, false),
            Phase::Leased | Phase::Dead => (true, true),
        };
        (timed || self.time == 0) && (numbered || self.lease == 0) && !self.is_plain()
    }
}

pub(crate) type Block = [Option<Mark>; IDS];

/// Decodes a row.
pub(crate) fn decode(bytes: &[u8]) -> Result<Box<Block>> {
    let mut block = Box::new([None; IDS]);
    let wrong = || damaged("marks of a queue", bytes.escape_ascii(), "runs of marks");
    if bytes.is_empty() || !bytes.len().is_multiple_of(RUN_BYTES) {
        return Err(wrong());
    }
    let mut next = 0;
    for run in bytes.chunks_exact(RUN_BYTES) {
        let (first, last) = (usize::from(run[0]), usize::from(run[1]));
        let phase = match run[2] {
            0 => Phase::Ready,
            1 => Phase::Leased,
            2 => Phase::Delayed,
            3 => Phase::Waiting,
            4 => Phase::Dead,
            _ => return Err(wrong()),
        };
        let mark = Mark {
            phase,
            priority: run[3],
            count: get_u32(run, 4),
            time: get_i64(run, 8),
            lease: get_u64(run, 16),
        };
        if first < next || first > last || last >= IDS || !mark.is_whole() {
            return Err(wrong());
        }
        block[first..=last].fill(Some(mark));
        next = last + 1;
    }
    Ok(block)
}

/// Encodes a row; returns no bytes if the row has no mark.
pub(crate) fn encode(block: &Block) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut at = 0;
    while at < IDS {
        let Some(mark) = block[at] else {
            at += 1;
            continue;
        };
        let first = at;
        while at < IDS && block[at] == Some(mark) {
            at += 1;
        }
        bytes.extend_from_slice(&[first as u8, at as u8 - 1, mark.phase as u8, mark.priority]);
        bytes.extend_from_slice(&mark.count.to_le_bytes());
        bytes.extend_from_slice(&mark.time.to_le_bytes());
        bytes.extend_from_slice(&mark.lease.to_le_bytes());
    }
    bytes
}

struct Loaded {
    block: Box<Block>,
    was_stored: bool,
    is_changed: bool,
}

/// The marks of a group that a call reads and changes.
pub(crate) struct Marks {
    group: u32,
    loaded: BTreeMap<u64, Loaded>,
}

impl Marks {
    pub(crate) fn new(group: u32) -> Self {
        Self {
            group,
            loaded: BTreeMap::new(),
        }
    }

    fn load<R: PageRead>(&mut self, root: &Tree, r: &R, id: u64) -> Result<&mut Loaded> {
        let row = id / IDS as u64;
        if !self.loaded.contains_key(&row) {
            let key = keys::pair(self.group, row);
            let value = part(root, r, Part::Marks)?.get(r, &key)?;
            let block = match &value {
                Some(value) => decode(&value.bytes()?)?,
                None => Box::new([None; IDS]),
            };
            let loaded = Loaded {
                block,
                was_stored: value.is_some(),
                is_changed: false,
            };
            self.loaded.insert(row, loaded);
        }
        match self.loaded.get_mut(&row) {
            Some(loaded) => Ok(loaded),
            None => Err(damaged("marks of a queue", "none", "marks")),
        }
    }

    /// The mark of an id; `None` if it has none, or is not open.
    pub(crate) fn get<R: PageRead>(&mut self, root: &Tree, r: &R, id: u64) -> Result<Option<Mark>> {
        Ok(self.load(root, r, id)?.block[(id % IDS as u64) as usize])
    }

    /// Sets the mark of an id. A mark that need not be stored is removed.
    pub(crate) fn set<R: PageRead>(
        &mut self,
        root: &Tree,
        r: &R,
        id: u64,
        mark: Option<Mark>,
    ) -> Result<()> {
        let loaded = self.load(root, r, id)?;
        loaded.block[(id % IDS as u64) as usize] = mark.filter(|mark| !mark.is_plain());
        loaded.is_changed = true;
        Ok(())
    }

    pub(crate) fn store<W: PageWrite>(&self, root: &mut Tree, w: &mut W) -> Result<()> {
        if !self.loaded.values().any(|loaded| loaded.is_changed) {
            return Ok(());
        }
        change(root, w, Part::Marks, &mut |w, table| {
            for (row, loaded) in &self.loaded {
                let bytes = encode(&loaded.block);
                let key = keys::pair(self.group, *row);
                match (loaded.is_changed, bytes.is_empty(), loaded.was_stored) {
                    (false, ..) | (true, true, false) => false,
                    (true, true, true) => table.remove(w, &key)?,
                    (true, false, _) => table.insert(w, &key, &bytes)?,
                };
            }
            Ok(())
        })
    }
}
