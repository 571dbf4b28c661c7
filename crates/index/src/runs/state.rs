//! The list of runs.
//!
//! ```text
//!  0  u64   number of the next run
//!  8  u64   entries of the oldest m runs that have been merged into the main table
//! 16  u16   n, the number of runs
//! 18  u16   m, the number of the oldest runs, which are being merged into the main table
//! 20  n times: u64 number of the run | u64 entries | u64 bytes of its blocks | u32 lines of its filter
//!  .  the watermark: entries of these m runs with lesser keys are in the main table
//! ```
//!
//! Invariants:
//! 1. Runs are listed from the oldest to the newest, and their numbers ascend.
//! 2. If several runs have entries of a key, the entry in the newest run is the newest. Entries in runs are newer than
//!    those in the main table.
//! 3. The main table has all entries of the merging runs below the watermark, and no entries of these runs at or above
//!    the watermark.

use tidalite_base::{Corrupt, get_u16, get_u32, get_u64};
use tidalite_pager::{Error, Result};

const HEAD_BYTES: usize = 20;
const RUN_BYTES: usize = 28;
/// Maximum of every number in the state of an index. No real file reaches it.
pub(crate) const COUNT_MAX: u64 = 1 << 47;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) number: u64,
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
    /// Number of lines of its filter; 0 if it has none.
    pub(crate) filter_lines: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Runs {
    pub(crate) next: u64,
    pub(crate) list: Vec<Run>,
    /// Number of runs that are being merged into the main table; these are the oldest ones.
    pub(crate) merging: usize,
    /// Number of entries of these runs that have been merged.
    pub(crate) merged: u64,
    /// The entries of these runs with lesser keys have been merged.
    pub(crate) watermark: Vec<u8>,
}

impl Runs {
    pub(crate) fn encode(&self) -> Vec<u8> {
        debug_assert!(self.is_ordered(), "a list that can be read: {self:?}");
        debug_assert!(
            self.list.iter().all(|run| run.entries <= run.bytes),
            "an entry takes a byte at least: {self:?}"
        );
        let mut bytes = Vec::with_capacity(HEAD_BYTES + self.list.len() * RUN_BYTES);
        bytes.extend_from_slice(&self.next.to_le_bytes());
        bytes.extend_from_slice(&self.merged.to_le_bytes());
        bytes.extend_from_slice(&(self.list.len() as u16).to_le_bytes());
        bytes.extend_from_slice(&(self.merging as u16).to_le_bytes());
        for run in &self.list {
            bytes.extend_from_slice(&run.number.to_le_bytes());
            bytes.extend_from_slice(&run.entries.to_le_bytes());
            bytes.extend_from_slice(&run.bytes.to_le_bytes());
            bytes.extend_from_slice(&run.filter_lines.to_le_bytes());
        }
        bytes.extend_from_slice(&self.watermark);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let damaged = |found: String| -> Error {
            Corrupt::new("list of runs", 0, found, "runs with ascending numbers").into()
        };
        let Some((head, rest)) = bytes.split_first_chunk::<HEAD_BYTES>() else {
            return Err(damaged(format!("{} bytes", bytes.len())));
        };
        let count = usize::from(get_u16(head, 16));
        let Some((listed, watermark)) = rest.split_at_checked(count * RUN_BYTES) else {
            return Err(damaged(format!("{count} runs in {} bytes", bytes.len())));
        };
        let list: Vec<Run> = listed
            .chunks_exact(RUN_BYTES)
            .map(|run| Run {
                number: get_u64(run, 0),
                entries: get_u64(run, 8),
                bytes: get_u64(run, 16),
                filter_lines: get_u32(run, 24),
            })
            .collect();
        let runs = Self {
            next: get_u64(head, 0),
            merging: usize::from(get_u16(head, 18)),
            merged: get_u64(head, 8),
            list,
            watermark: watermark.to_vec(),
        };
        if !runs.is_ordered() {
            return Err(damaged(format!("{:?}", runs.list)));
        }
        // The limit ensures that no sum of a few of these numbers overflows.
        let counts = runs.list.iter().flat_map(|run| [run.entries, run.bytes]);
        let greatest = counts.chain([runs.next, runs.merged]).max();
        if greatest.is_some_and(|greatest| greatest > COUNT_MAX) {
            return Err(damaged(format!("a count of {greatest:?}")));
        }
        // An entry takes at least one byte.
        if let Some(run) = runs.list.iter().find(|run| run.entries > run.bytes) {
            return Err(damaged(format!("{run:?}")));
        }
        Ok(runs)
    }

    /// Whether the runs ascend, have numbers below the next one, and include the ones being merged; only a merge has
    /// merged entries and a watermark.
    fn is_ordered(&self) -> bool {
        self.list.is_sorted_by(|a, b| a.number < b.number)
            && self.list.last().is_none_or(|last| last.number < self.next)
            && self.merging <= self.list.len()
            && (self.merging > 0 || (self.merged == 0 && self.watermark.is_empty()))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.list.iter().map(|run| run.bytes).sum()
    }

    /// Number of entries in runs that are not in the main table yet.
    pub(crate) fn entries(&self) -> u64 {
        let all: u64 = self.list.iter().map(|run| run.entries).sum();
        all.saturating_sub(self.merged)
    }

    /// Whether the run at `index` of the list may have `key`. False if its entry would be below the watermark and is
    /// therefore already merged.
    pub(crate) fn has(&self, index: usize, key: &[u8]) -> bool {
        index >= self.merging || key >= self.watermark.as_slice()
    }

    /// The runs that may have `key`, from oldest to newest, with their indexes.
    pub(crate) fn with_key(&self, key: &[u8]) -> impl DoubleEndedIterator<Item = (usize, &Run)> {
        let skipped = match key < self.watermark.as_slice() {
            true => self.merging,
            false => 0,
        };
        self.list.iter().enumerate().skip(skipped)
    }
}

/// Key of the row for the block of a run whose first key is `key`.
pub(crate) fn row_key(run: u64, key: &[u8]) -> Vec<u8> {
    let mut row = Vec::with_capacity(8 + key.len());
    row.extend_from_slice(&run.to_be_bytes());
    row.extend_from_slice(key);
    row
}
