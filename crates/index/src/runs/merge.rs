//! Reads several runs, and optionally the main table, as one sequence.

use crate::block::{Entry, head, out_of_order};
use crate::runs::cursor::{BlockCursor, Order};
use crate::runs::state::Runs;
use std::cmp::Ordering;
use tidalite_kv::{Cursor, TableReader};
use tidalite_pager::{PageRead, Result};

/// All entries of one key, oldest first.
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

    /// Discards all payloads except the newest.
    pub(crate) fn keep_newest(&mut self) {
        if self.len() > 1 {
            let newest = self.payload(self.len() - 1).to_vec();
            self.clear();
            self.push(&newest);
        }
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

/// A source of entries for a merge.
enum Source<'r, R: PageRead> {
    Blocks(BlockCursor<'r, R>),
    /// A table with one row for each key, with the payload and the head of the current row; at the end, the payload is
    /// empty.
    Rows {
        rows: Cursor<'r, R>,
        payload: Vec<u8>,
        head: u64,
    },
}

impl<R: PageRead> Source<'_, R> {
    fn is_at_end(&self) -> bool {
        match self {
            Self::Blocks(cursor) => cursor.is_at_end(),
            Self::Rows { payload, .. } => payload.is_empty(),
        }
    }

    fn head(&self) -> u64 {
        match self {
            Self::Blocks(cursor) => cursor.head(),
            Self::Rows { head, .. } => *head,
        }
    }

    fn entry(&self) -> Result<Entry<'_>> {
        match self {
            Self::Blocks(cursor) => cursor.entry(),
            Self::Rows { rows, payload, .. } => Ok(Entry {
                key: rows.key(),
                payload,
            }),
        }
    }

    fn step(&mut self, order: Order) -> Result<()> {
        match self {
            Self::Blocks(cursor) => cursor.step(),
            Self::Rows { rows, .. } => {
                let there = match order {
                    Order::Ascending => rows.next()?,
                    Order::Descending => rows.previous()?,
                };
                self.load(there)
            }
        }
    }

    /// Reads the current row, if the cursor is at one.
    fn load(&mut self, there: bool) -> Result<()> {
        if let Self::Rows {
            rows,
            payload,
            head: own,
        } = self
        {
            payload.clear();
            if there {
                payload.push(PUT);
                for chunk in rows.value()?.chunks() {
                    payload.extend_from_slice(&chunk?);
                }
                *own = head(rows.key());
            }
        }
        Ok(())
    }
}

/// First byte of a payload that contains a value, in a buffered table.
pub(crate) const PUT: u8 = 1;

/// A merge of sources, which are ordered from oldest to newest.
pub(crate) struct Merge<'r, R: PageRead> {
    sources: Vec<Source<'r, R>>,
    order: Order,
    has_begun: bool,
}

impl<'r, R: PageRead> Merge<'r, R> {
    /// The runs at `range` of the list, beginning at the key `from`.
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
            sources.push(Source::Blocks(BlockCursor::of_run(front, r, run, from)?));
        }
        Ok(Self {
            sources,
            order: Order::Ascending,
            has_begun: false,
        })
    }

    /// All runs in descending order of keys: the keys less than `to`, or all keys.
    pub(crate) fn below(
        runs: &Runs,
        front: &TableReader<'r>,
        r: &'r R,
        to: Option<&[u8]>,
    ) -> Result<Self> {
        let mut sources = Vec::with_capacity(runs.list.len());
        for run in &runs.list {
            let source = BlockCursor::of_run_below(front, r, run.number, to)?;
            sources.push(Source::Blocks(source));
        }
        Ok(Self {
            sources,
            order: Order::Descending,
            has_begun: false,
        })
    }

    /// Adds a table of blocks, which is older than all other sources.
    pub(crate) fn add_oldest(&mut self, blocks: BlockCursor<'r, R>) {
        self.sources.insert(0, Source::Blocks(blocks));
    }

    /// Adds a table with one row for each key, which is older than all other sources. Reading begins at the current
    /// row, if the cursor is at one.
    pub(crate) fn add_rows(&mut self, rows: Cursor<'r, R>, there: bool) -> Result<()> {
        let mut source = Source::Rows {
            rows,
            payload: Vec::new(),
            head: 0,
        };
        source.load(there)?;
        self.sources.insert(0, source);
        Ok(())
    }

    /// Replaces `group` with the entries of the next key and moves past them; returns false at the end. All calls must
    /// pass the same group.
    pub(crate) fn next(&mut self, group: &mut Group) -> Result<bool> {
        group.clear();
        self.sources.retain(|source| !source.is_at_end());
        let Some(next) = self.next_source()? else {
            return Ok(false);
        };
        let key = self.sources[next].entry()?.key;
        // A merge of damaged blocks would otherwise write blocks out of order.
        if self.has_begun && key.cmp(&group.key) != self.order.later() {
            return Err(out_of_order(key));
        }
        group.key.clear();
        group.key.extend_from_slice(key);
        self.has_begun = true;
        let head = self.sources[next].head();
        // The keys of the sources before this one are later in the order.
        for source in &mut self.sources[next..] {
            while !source.is_at_end() && source.head() == head {
                let entry = source.entry()?;
                if entry.key != group.key {
                    break;
                }
                group.push(entry.payload);
                source.step(self.order)?;
            }
        }
        Ok(true)
    }

    /// Index of the oldest source among those with the next key. No source may be at its end.
    fn next_source(&self) -> Result<Option<usize>> {
        let mut sources = self.sources.iter().enumerate();
        let Some((mut next, first)) = sources.next() else {
            return Ok(None);
        };
        let mut head = first.head();
        let first_of = match self.order {
            Order::Ascending => Ordering::Less,
            Order::Descending => Ordering::Greater,
        };
        for (index, source) in sources {
            let order = match source.head().cmp(&head) {
                Ordering::Equal => source.entry()?.key.cmp(self.sources[next].entry()?.key),
                decided => decided,
            };
            if order == first_of {
                (next, head) = (index, source.head());
            }
        }
        Ok(Some(next))
    }
}
