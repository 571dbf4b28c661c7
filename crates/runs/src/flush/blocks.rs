//! Rows of threads beside the writer that are not worth leaves: each thread encodes its own as blocks of a run, and the writer
//! gives them their places.
//!
//! ```text
//! a thread   group | encode: block block block ──┐
//! another    group | encode: block block ────────┼─> Front::add_blocks: a run, block after block
//! ...                                           ─┘
//! ```
//!
//! Else they would be copied to the writer's staging, grouped there once more, and encoded by one thread while the others have
//! nothing to do (decision 0423).
//!
//! Invariants:
//! 1. The rows of a list are of one class and ascend by series and time; none is there twice.
//! 2. All blocks of a list are full but the last.
//! 3. What the bytes of a list are depends on its rows, and on what was learned before the threads began: not on what other threads do.
//! 4. Lists are handed over while no rows are away (`helpers.rs`).

use crate::buffer::staging::Staging;
use crate::bugs::{Bug, active};
use crate::compaction::memory::Merging;
use crate::front::Front;
use crate::key::Key;
use crate::link::sink::Sink;
use crate::run::block::{BLOCK_ALIGN, block_rows_max, encode_block, row_bytes};
use crate::run::descriptor::Run;
use crate::run::directory::Entry;
use crate::run::tail::{self, expect_series};
use crate::run::writer::{BlockStore, RunWriter};
use std::ops::Range;
use tidalite_base::SeriesId;
use tidalite_codec::{ColumnType, Hint, Rows, RowsRef, time_span};
use tidalite_pager::{PageWrite, Ptr, Result};

/// Blocks of rows that are in no page yet. See the head of `blocks.rs`.
#[derive(Debug, Default)]
pub struct Blocks {
    class: u32,
    types: Box<[ColumnType]>,
    bytes: Vec<u8>,
    /// Where each block lies in `bytes`, and its entry; the pointer is still null.
    blocks: Vec<(Range<usize>, Entry)>,
    rows: u64,
    times: (i64, i64),
    hints: Vec<Hint>,
    /// The rows of the next block, and the series of each.
    open: (Vec<u64>, Rows),
}

impl Blocks {
    /// None, of a layout; its class, and what was learned of its rows before.
    pub(crate) fn new(types: &[ColumnType], (class, hints): (u32, Vec<Hint>)) -> Self {
        Self {
            class,
            hints,
            types: types.into(),
            times: (i64::MAX, i64::MIN),
            open: (Vec::new(), Rows::new(types.len())),
            ..Self::default()
        }
    }

    /// Appends rows that lie behind all that are there; `series` has that of each row.
    pub(crate) fn push(&mut self, series: &[u64], rows: RowsRef<'_>) -> Result<()> {
        debug_assert_eq!(series.len(), rows.len(), "a series a row");
        let Some(&last) = series.last() else {
            return Ok(());
        };
        expect_series(SeriesId(last))?;
        let max = block_rows_max(self.types.len());
        let mut from = 0;
        while from < rows.len() {
            let to = rows.len().min(from + max - self.open.0.len());
            let (own, part) = (&series[from..to], rows.slice(from..to));
            if part.len() == max {
                self.encode(own, part);
            } else {
                self.open.0.extend_from_slice(own);
                self.open.1.extend(part);
                if self.open.0.len() == max {
                    self.cut();
                }
            }
            from = to;
        }
        Ok(())
    }

    /// Encodes the rows that are left: no more come.
    pub(crate) fn finish(&mut self) {
        self.cut();
        self.open = <(Vec<u64>, Rows)>::default();
    }

    fn cut(&mut self) {
        let (series, rows) = std::mem::take(&mut self.open);
        if !series.is_empty() {
            self.encode(&series, rows.view());
        }
        self.open = (series, rows);
        self.open.0.clear();
        self.open.1.clear();
    }

    fn encode(&mut self, series: &[u64], rows: RowsRef<'_>) {
        let times = rows.times();
        let key = |row: usize| Key::new(self.class, SeriesId(series[row]), times[row]);
        let entry = Entry {
            first: key(0),
            last: key(rows.len() - 1),
            ptr: Ptr::NULL,
            rows: rows.len() as u32,
        };
        let (least, greatest) = time_span(times);
        self.times = (self.times.0.min(least), self.times.1.max(greatest));
        self.rows += rows.len() as u64;
        let start = self.bytes.len().next_multiple_of(BLOCK_ALIGN);
        self.bytes.resize(start, 0);
        let (hints, out) = (&mut self.hints, &mut self.bytes);
        encode_block(self.class, &self.types, series, rows, hints, out);
        self.blocks.push((start..self.bytes.len(), entry));
    }

    /// The least key and the greatest.
    fn span(&self) -> Option<(Key, Key)> {
        let (first, last) = (self.blocks.first()?, self.blocks.last()?);
        Some((first.1.first, last.1.last))
    }
}

impl Front {
    /// Makes the blocks of threads beside the writer a run: they are newer than all that is in the front. Lists whose rows lie among each
    /// other become runs of their own. The tail, which is older and must not stay in front of them, becomes a run before that.
    ///
    /// # Errors
    /// Those of the sink and the pager; the transaction must then be rolled back.
    ///
    /// # Cost
    /// Checksums and copies of the blocks, an entry of a directory for each; then the merges, as for `commit`.
    pub fn add_blocks<W: PageWrite, S: Sink<W>>(
        &mut self,
        w: &mut W,
        staging: &mut Staging,
        sink: &mut S,
        mut lists: Vec<Blocks>,
    ) -> Result<()> {
        debug_assert!(!staging.has_away(), "what is away comes first");
        lists.retain(|list| !list.blocks.is_empty());
        lists.sort_by_key(Blocks::span);
        if lists.is_empty() {
            return Ok(());
        }
        self.tail_to_run(w, staging, sink)?;
        let mut rest = lists.as_slice();
        while !rest.is_empty() {
            let apart = |two: &[Blocks]| {
                two[0].span().map(|(_, last)| last) < two[1].span().map(|(first, _)| first)
            };
            let count = 1 + rest.windows(2).take_while(|two| apart(two)).count();
            let (own, others) = rest.split_at(count);
            let run = self.run_of(w, own)?;
            self.add_run(w, sink, staging.merging(), run)?;
            rest = others;
        }
        if let Some(last) = lists.pop() {
            let mut kit = staging.merging().take_kit(Merging::NEW);
            kit.learn(&last.types, last.hints);
            staging.merging().give_kit(Merging::NEW, kit);
        }
        Ok(())
    }

    /// Writes lists that lie one after the other as a run.
    fn run_of<W: PageWrite>(&mut self, w: &mut W, lists: &[Blocks]) -> Result<Run> {
        let mut run = Run::new(self.next_run(), w.txn(), w.txn());
        let mut store = BlockStore::default();
        let mut work = self.work;
        for list in lists {
            for (place, entry) in &list.blocks {
                store.add(&mut run, w, &mut work, *entry, |out| {
                    out.extend_from_slice(&list.bytes[place.clone()]);
                })?;
            }
            let Some(span) = list.span() else {
                continue;
            };
            run.count((list.rows, list.types.len()), span, list.times);
            work.rows_given += list.rows;
            work.rows_in_blocks += list.rows;
            work.bytes_given += list.rows * row_bytes(list.types.len());
        }
        store.flush(&mut run, w, &mut work)?;
        self.work = work;
        Ok(run)
    }

    /// The rows of the tail page become a run.
    fn tail_to_run<W: PageWrite, S: Sink<W>>(
        &mut self,
        w: &mut W,
        staging: &mut Staging,
        sink: &mut S,
    ) -> Result<()> {
        if self.tail.is_null() || active(Bug::BlocksPassTail) {
            return Ok(());
        }
        let layouts = self.layouts.clone();
        let run = Run::new(self.next_run(), self.tail_oldest(w), w.txn());
        let kit = staging.merging().take_kit(Merging::NEW);
        let mut writer = RunWriter::new(run, &layouts, kit);
        let mut work = self.work;
        for piece in tail::pieces(w, &self.tail, &layouts)? {
            writer.push(w, &mut work, piece.place(), piece.rows.view())?;
        }
        let (run, kit) = writer.finish(w, &mut work)?;
        staging.merging().give_kit(Merging::NEW, kit);
        self.work = work;
        self.free_tail(w);
        self.add_run(w, sink, staging.merging(), run)
    }
}
