//! Several runs, and perhaps the main table, read as one.

use crate::runs::cursor::BlockCursor;
use crate::runs::state::Runs;
use std::cmp::Ordering;
use tidalite_kv::TableReader;
use tidalite_pager::{PageRead, Result};

/// All entries of one key, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) key: Vec<u8>,
    payloads: Vec<u8>,
    ends: Vec<usize>,
}

impl Group {
    pub(crate) fn push(&mut self, payload: &[u8]) {
        self.payloads.extend_from_slice(payload);
        self.ends.push(self.payloads.len());
    }

    pub(crate) fn clear(&mut self) {
        self.payloads.clear();
        self.ends.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub(crate) fn payload(&self, index: usize) -> &[u8] {
        let start = match index {
            0 => 0,
            index => self.ends[index - 1],
        };
        &self.payloads[start..self.ends[index]]
    }

    pub(crate) fn payloads(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.payload(index))
    }
}

/// A merge of sources, the oldest first.
pub(crate) struct Merge<'r, R: PageRead> {
    sources: Vec<BlockCursor<'r, R>>,
}

impl<'r, R: PageRead> Merge<'r, R> {
    /// The runs at `range` of the list, from the key `from` on.
    pub(crate) fn of_runs(
        runs: &Runs,
        range: std::ops::Range<usize>,
        front: &TableReader<'r>,
        r: &'r R,
        from: &[u8],
    ) -> Result<Self> {
        let mut sources = Vec::with_capacity(range.len());
        for index in range {
            let from = match index < runs.merging {
                true => from.max(&runs.watermark),
                false => from,
            };
            let run = runs.list[index].number;
            sources.push(BlockCursor::of_run(front, r, run, from)?);
        }
        Ok(Self { sources })
    }

    /// Adds a source that is older than all others.
    pub(crate) fn add_oldest(&mut self, source: BlockCursor<'r, R>) {
        self.sources.insert(0, source);
    }

    /// Replaces `group` with the entries of the least key and moves behind it; returns false at the end.
    pub(crate) fn next(&mut self, group: &mut Group) -> Result<bool> {
        group.clear();
        self.sources.retain(|source| !source.is_at_end());
        let Some(least) = self.least()? else {
            return Ok(false);
        };
        group.key.clear();
        group
            .key
            .extend_from_slice(self.sources[least].entry()?.key);
        let head = self.sources[least].head();
        // Sources before `least` are greater.
        for source in &mut self.sources[least..] {
            while !source.is_at_end() && source.head() == head {
                let entry = source.entry()?;
                if entry.key != group.key {
                    break;
                }
                group.push(entry.payload);
                source.next()?;
            }
        }
        Ok(true)
    }

    /// Index of the oldest of the sources with the least key. No source may be at its end.
    fn least(&self) -> Result<Option<usize>> {
        let mut sources = self.sources.iter().enumerate();
        let Some((mut least, first)) = sources.next() else {
            return Ok(None);
        };
        let mut head = first.head();
        for (index, source) in sources {
            let is_less = match source.head().cmp(&head) {
                Ordering::Less => true,
                Ordering::Greater => false,
                Ordering::Equal => source.entry()?.key < self.sources[least].entry()?.key,
            };
            if is_less {
                (least, head) = (index, source.head());
            }
        }
        Ok(Some(least))
    }
}
