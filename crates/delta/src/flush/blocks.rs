//! Blocks of a run from rows of helper threads that do not justify leaves. Each thread encodes its rows, and the
//! writer assigns the addresses.
//!
//! ```text
//! a thread   group | encode: block block block ──┐
//! another    group | encode: block block ────────┼─> Delta::add_blocks: a run, block after block
//! ...                                           ─┘
//! ```
//!
//! Otherwise these rows would be copied to the writer's buffer, grouped there once more, and encoded by one thread
//! while the others are idle (docs/performance/series-ingest.md).
//!
//! Invariants:
//! 1. The rows of a list have one class and ascend by series and time, without duplicates.
//! 2. All blocks of a list are full except the last.
//! 3. The bytes of a list depend on its rows and on the encoder states at the start of the threads, not on the work of
//!    other threads.
//! 4. Lists are passed to the writer while no rows are lent to helper threads (`helpers.rs`).

use crate::buffer::write_buffer::WriteBuffer;
use crate::bugs::{Bug, active};
use crate::compaction::memory::CompactionScratch;
use crate::delta::Delta;
use crate::key::Key;
use crate::link::sink::Sink;
use crate::run::block::{BLOCK_ALIGN, block_rows_max, encode_block, row_bytes};
use crate::run::descriptor::Run;
use crate::run::directory::Entry;
use crate::run::tail::{self, expect_series};
use crate::run::writer::{BlockStore, RunWriter};
use std::ops::Range;
use tidalite_base::SeriesId;
use tidalite_codec::{ColumnType, EncoderState, Rows, RowsRef, time_span};
use tidalite_pager::{PageWrite, Ptr, Result};

/// Encoded blocks of a run that do not have addresses yet. The head of `blocks.rs` lists the invariants.
#[derive(Debug, Default)]
pub struct Blocks {
    class: u32,
    types: Box<[ColumnType]>,
    bytes: Vec<u8>,
    /// Range of each block in `bytes`, and the directory entry of the block, whose pointer is still null.
    blocks: Vec<(Range<usize>, Entry)>,
    rows: u64,
    times: (i64, i64),
    encoder_states: Vec<EncoderState>,
    /// The series and the rows that will form the next block.
    open: (Vec<u64>, Rows),
}

impl Blocks {
    /// Creates an empty list of blocks for rows of the layout `types`, given the class of the layout and the encoder
    /// states.
    pub(crate) fn new(
        types: &[ColumnType],
        (class, encoder_states): (u32, Vec<EncoderState>),
    ) -> Self {
        Self {
            class,
            encoder_states,
            types: types.into(),
            times: (i64::MAX, i64::MIN),
            open: (Vec::new(), Rows::new(types.len())),
            ..Self::default()
        }
    }

    /// Appends rows that sort after all rows of the list; `series` has the series of each row.
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

    /// Encodes the remaining rows as the last block. No rows may be pushed afterwards.
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
        debug_assert!(
            self.blocks
                .last()
                .is_none_or(|(_, last)| last.last < entry.first),
            "blocks of a list ascend"
        );
        let (least, greatest) = time_span(times);
        self.times = (self.times.0.min(least), self.times.1.max(greatest));
        self.rows += rows.len() as u64;
        let start = self.bytes.len().next_multiple_of(BLOCK_ALIGN);
        self.bytes.resize(start, 0);
        let (encoder_states, out) = (&mut self.encoder_states, &mut self.bytes);
        encode_block(self.class, &self.types, series, rows, encoder_states, out);
        self.blocks.push((start..self.bytes.len(), entry));
    }

    /// The first and the last key of the rows in the list, or `None` if the list is empty.
    fn span(&self) -> Option<(Key, Key)> {
        let (first, last) = (self.blocks.first()?, self.blocks.last()?);
        Some((first.1.first, last.1.last))
    }
}

impl Delta {
    /// Turns the blocks of helper threads into a run, which is newer than all rows in the delta. Lists with
    /// overlapping rows become separate runs. Before that, the rows of the tail page become a run: they are older,
    /// and a later commit would otherwise treat them as newer than the blocks.
    ///
    /// # Errors
    /// Errors of the sink and the pager; the transaction must then be rolled back.
    ///
    /// # Cost
    /// Copies the blocks, computes their checksums and adds a directory entry for each; then advances the compactions
    /// as `commit` does.
    pub fn add_blocks<W: PageWrite, S: Sink<W>>(
        &mut self,
        w: &mut W,
        buffer: &mut WriteBuffer,
        sink: &mut S,
        mut lists: Vec<Blocks>,
    ) -> Result<()> {
        debug_assert!(!buffer.has_lent_log(), "what is away comes first");
        lists.retain(|list| !list.blocks.is_empty());
        lists.sort_by_key(Blocks::span);
        if lists.is_empty() {
            return Ok(());
        }
        self.tail_to_run(w, buffer, sink)?;
        let mut rest = lists.as_slice();
        while !rest.is_empty() {
            let apart = |two: &[Blocks]| {
                two[0].span().map(|(_, last)| last) < two[1].span().map(|(first, _)| first)
            };
            let count = 1 + rest.windows(2).take_while(|two| apart(two)).count();
            let (own, others) = rest.split_at(count);
            let run = self.run_of(w, own)?;
            self.add_run(w, sink, buffer.scratch(), run)?;
            rest = others;
        }
        if let Some(last) = lists.pop() {
            let mut scratch = buffer.scratch().take_writer(CompactionScratch::NEW);
            scratch.set_encoder_states(&last.types, last.encoder_states);
            buffer
                .scratch()
                .return_writer(CompactionScratch::NEW, scratch);
        }
        Ok(())
    }

    /// Writes lists of blocks as one run; the lists must be ordered and must not overlap.
    fn run_of<W: PageWrite>(&mut self, w: &mut W, lists: &[Blocks]) -> Result<Run> {
        let mut run = Run::new(self.next_run(), w.txn(), w.txn());
        debug_assert!(
            lists.is_sorted_by_key(Blocks::span),
            "lists of a run are in order"
        );
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
            work.rows_flushed += list.rows;
            work.rows_in_blocks += list.rows;
            work.bytes_flushed += list.rows * row_bytes(list.types.len());
        }
        store.flush(&mut run, w, &mut work)?;
        self.work = work;
        Ok(run)
    }

    /// Writes the rows of the tail page as a new run and frees the page.
    fn tail_to_run<W: PageWrite, S: Sink<W>>(
        &mut self,
        w: &mut W,
        buffer: &mut WriteBuffer,
        sink: &mut S,
    ) -> Result<()> {
        if self.tail.is_null() || active(Bug::BlocksPassTail) {
            return Ok(());
        }
        let layouts = self.layouts.clone();
        let run = Run::new(self.next_run(), self.tail_oldest(w), w.txn());
        let scratch = buffer.scratch().take_writer(CompactionScratch::NEW);
        let mut writer = RunWriter::new(run, &layouts, scratch);
        let mut work = self.work;
        for piece in tail::pieces(w, &self.tail, &layouts)? {
            writer.push(w, &mut work, piece.place(), piece.rows.view())?;
        }
        let (run, scratch) = writer.finish(w, &mut work)?;
        buffer
            .scratch()
            .return_writer(CompactionScratch::NEW, scratch);
        self.work = work;
        self.free_tail(w);
        self.add_run(w, sink, buffer.scratch(), run)
    }
}
