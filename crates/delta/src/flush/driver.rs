//! Flushes the write buffer: whole vectors become leaves, the other rows go to the tail page or to a run.

use crate::buffer::group::{Group, Grouped};
use crate::buffer::write_buffer::{Ready, WriteBuffer};
use crate::compaction::memory::CompactionScratch;
use crate::counters::Work;
use crate::delta::{Delta, Layouts};
use crate::link::overlap::OverlapCheck;
use crate::link::sink::Sink;
use crate::link::threshold::{BULK_REST_ROWS_MIN, linkable, whole_vectors};
use crate::record::DeltaRoot;
use crate::run::block::row_bytes;
use crate::run::descriptor::Run;
use crate::run::tail::{self, Piece, expect_series};
use crate::run::writer::{RunWriter, WriterScratch};
use tidalite_base::SeriesId;
use tidalite_codec::{Rows, RowsRef};
use tidalite_pager::{Error, PageWrite, Ptr, Result};

/// Rows that a flush removes from the write buffer.
#[derive(Clone, Copy, Debug)]
enum Amount {
    /// The whole vectors of the layout with this index; the remainder of each series stays in the write buffer.
    Whole(usize),
    /// The whole vectors of all layouts; the remainder of each series stays in the write buffer.
    AllWhole,
    /// All rows; up to this many bytes of them may go to the tail page.
    All(usize),
}

/// Destination of rows that cannot become leaves yet: held for the tail page while they fit, otherwise written as a new
/// run. The run also absorbs the tail page, whose rows are older and must not keep precedence over newer ones.
struct Rest<'l> {
    layouts: &'l Layouts,
    held: Vec<Piece>,
    room_bytes: usize,
    writer: Option<RunWriter<'l>>,
    /// Memory for the run writer, until the writer exists.
    scratch: WriterScratch,
    run: Run,
    tail_page: Ptr,
    /// Rows of the old tail page that are not yet in the run, last series first. They are read from the page when the
    /// run begins.
    tail: Vec<Piece>,
}

impl Rest<'_> {
    /// Like `put`, for rows of several series; `series` has the series of each row.
    fn put_few<W: PageWrite>(
        &mut self,
        w: &mut W,
        work: &mut Work,
        class: u32,
        series: &[u64],
        rows: RowsRef<'_>,
    ) -> Result<()> {
        let bytes = rows.len() * row_bytes(rows.column_count()) as usize;
        if self.writer.is_none() && bytes > self.room_bytes {
            self.begin(w, work)?;
        }
        match &mut self.writer {
            // If no rows of the tail page are left, the rows need not be merged with them and can be written
            // together.
            Some(writer) if self.tail.is_empty() => writer.push_many(w, work, class, series, rows),
            _ => {
                let mut from = 0;
                for same in series.chunk_by(|a, b| a == b) {
                    let own = rows.slice(from..from + same.len());
                    self.put(w, work, (class, SeriesId(same[0])), own)?;
                    from += same.len();
                }
                Ok(())
            }
        }
    }

    /// Begins a run and writes the rows collected for the tail page so far to it.
    fn begin<W: PageWrite>(&mut self, w: &mut W, work: &mut Work) -> Result<()> {
        debug_assert!(self.writer.is_none(), "a flush writes at most one run");
        self.tail = tail::pieces(w, &self.tail_page, self.layouts)?;
        self.tail.reverse();
        let scratch = std::mem::take(&mut self.scratch);
        self.writer = Some(RunWriter::new(self.run, self.layouts, scratch));
        for piece in std::mem::take(&mut self.held) {
            self.write(w, work, piece.place(), piece.rows.view())?;
        }
        Ok(())
    }

    fn put<W: PageWrite>(
        &mut self,
        w: &mut W,
        work: &mut Work,
        place: (u32, SeriesId),
        rows: RowsRef<'_>,
    ) -> Result<()> {
        if self.writer.is_none() {
            let bytes = rows.len() * row_bytes(rows.column_count()) as usize;
            if bytes <= self.room_bytes {
                self.room_bytes -= bytes;
                self.held.push(Piece {
                    class: place.0,
                    series: place.1,
                    rows: rows.to_rows(),
                });
                return Ok(());
            }
            self.begin(w, work)?;
        }
        self.write(w, work, place, rows)
    }

    /// Writes rows to the run, merged with the rows of the tail page that sort before or among them.
    fn write<W: PageWrite>(
        &mut self,
        w: &mut W,
        work: &mut Work,
        place: (u32, SeriesId),
        rows: RowsRef<'_>,
    ) -> Result<()> {
        let Some(writer) = &mut self.writer else {
            unreachable!("opened by the caller");
        };
        debug_assert!(rows.is_sorted(), "rows of a series are sorted by time");
        let mut merged: Option<Rows> = None;
        while let Some(mut piece) = self.tail.pop_if(|piece| piece.place() <= place) {
            if piece.place() < place {
                writer.push(w, work, piece.place(), piece.rows.view())?;
                continue;
            }
            // More rows of the series may follow (another part, after a part that became a leaf). Later rows of the
            // tail page therefore wait, so that the run stays sorted.
            let upto = rows.times().last().map_or(0, |&last| {
                piece.rows.times.partition_point(|&time| time <= last)
            });
            merged = Some(Rows::merge_newest(piece.rows.slice(0..upto), rows));
            piece.rows.remove(0..upto);
            if !piece.rows.is_empty() {
                self.tail.push(piece);
            }
            break;
        }
        let rows = merged.as_ref().map_or(rows, Rows::view);
        writer.push(w, work, place, rows)
    }

    /// Returns the run, if one was begun; otherwise the rows that must be appended to the tail page.
    fn finish<W: PageWrite>(
        mut self,
        w: &mut W,
        work: &mut Work,
    ) -> Result<(Result<Run, Vec<Piece>>, WriterScratch)> {
        let Some(mut writer) = self.writer.take() else {
            return Ok((Err(self.held), self.scratch));
        };
        while let Some(piece) = self.tail.pop() {
            writer.push(w, work, piece.place(), piece.rows.view())?;
        }
        let (run, scratch) = writer.finish(w, work)?;
        Ok((Ok(run), scratch))
    }
}

impl Delta {
    /// Flushes the rows that are ready, after `push` or `append` has returned true: the rows of one leaf, or, if the
    /// memory budget is used up, all whole vectors. Does nothing if no rows are ready.
    ///
    /// # Errors
    /// Errors of the sink and the pager; the transaction must then be rolled back.
    pub fn flush<W: PageWrite, S: Sink<W>>(
        &mut self,
        w: &mut W,
        buffer: &mut WriteBuffer,
        sink: &mut S,
    ) -> Result<()> {
        loop {
            match buffer.ready() {
                Ready::Nothing => return Ok(()),
                Ready::Leaf(layout) => self.flush_leaf(w, buffer, layout, sink)?,
                Ready::RoundRobin(layout) => {
                    self.flush_amount(w, buffer, sink, Amount::Whole(layout))?
                }
                Ready::Budget => {
                    let left = buffer.remainder();
                    let keep = left.buffered_bytes <= buffer.budget_bytes() / 2;
                    let amount = if keep {
                        Amount::AllWhole
                    } else {
                        Amount::All(0)
                    };
                    self.flush_amount(w, buffer, sink, amount)?;
                }
            }
        }
    }

    /// Flushes all buffered rows and writes all changes of the delta. Returns the root of the delta, which the caller
    /// must store with the commit.
    ///
    /// # Errors
    /// As for `flush`.
    ///
    /// # Cost
    /// If the rows fit into the tail page after the existing ones, only that page is written. Otherwise a run is
    /// written, and each tier makes a step of its open compaction. The step is the fraction of the remaining work
    /// that corresponds to the time used up until the tier is full: at least `COMPACTION_STEP_BYTES`, and up to twice
    /// its size where it would end within a block.
    pub fn commit<W: PageWrite, S: Sink<W>>(
        &mut self,
        w: &mut W,
        buffer: &mut WriteBuffer,
        sink: &mut S,
    ) -> Result<DeltaRoot> {
        self.store(w, buffer, sink)?;
        self.linked.clear();
        self.seal(w)
    }

    /// Flushes all buffered rows to leaves and to the delta, but does not seal the delta for the commit.
    ///
    /// # Errors
    /// As for `flush`.
    pub fn store<W: PageWrite, S: Sink<W>>(
        &mut self,
        w: &mut W,
        buffer: &mut WriteBuffer,
        sink: &mut S,
    ) -> Result<()> {
        if buffer.is_empty() {
            return Ok(());
        }
        let left = buffer.remainder();
        let room = tail::tail_capacity(w.page_size()) - tail::used(w, &self.tail)?;
        let fits = left.row_bytes <= room;
        self.flush_amount(w, buffer, sink, Amount::All(if fits { room } else { 0 }))?;
        debug_assert!(buffer.is_empty(), "everything is flushed");
        Ok(())
    }

    fn flush_leaf<W: PageWrite, S: Sink<W>>(
        &mut self,
        w: &mut W,
        buffer: &mut WriteBuffer,
        layout: usize,
        sink: &mut S,
    ) -> Result<()> {
        let linked = buffer.with_leaf(layout, |series, types, rows| {
            // A layout without a class was never stored in the delta, so no rows of the delta can overlap.
            if let Some(class) = self.class_of(types) {
                let place = (class, series);
                let mut overlap = OverlapCheck::new(self, 0, true);
                let (first, last) = (rows.times()[0], rows.times()[rows.len() - 1]);
                if overlap.overlaps(w, place, first, last)? {
                    return Ok(false);
                }
            }
            let bytes = rows.len() as u64 * row_bytes(rows.column_count());
            self.work.rows_flushed += rows.len() as u64;
            self.work.bytes_flushed += bytes;
            let whole = whole_vectors(rows);
            debug_assert_eq!(whole, rows.len(), "a leaf is whole vectors");
            self.work.rows_linked += whole as u64;
            self.linked.insert(series);
            sink.link(w, series, types, rows)?;
            Ok::<_, Error>(true)
        })?;
        if linked {
            buffer.leaf_linked(layout);
        } else {
            buffer.leaf_refused(layout);
        }
        Ok(())
    }

    fn flush_amount<W: PageWrite, S: Sink<W>>(
        &mut self,
        w: &mut W,
        buffer: &mut WriteBuffer,
        sink: &mut S,
        amount: Amount,
    ) -> Result<()> {
        let (only, keep, room_bytes) = match amount {
            Amount::Whole(layout) => (Some(layout), true, 0),
            Amount::AllWhole => (None, true, 0),
            Amount::All(room_bytes) => (None, false, room_bytes),
        };
        assert!(!buffer.has_lent_log(), "a lent log comes back first");
        let mut order = Vec::new();
        let layouts: Vec<_> = buffer
            .layouts()
            .filter(|&(layout, _)| only.is_none_or(|only| only == layout))
            .map(|(layout, types)| (layout, types.to_vec()))
            .collect();
        for (layout, types) in layouts {
            order.push((self.add_class(&types)?, layout));
        }
        order.sort_unstable();
        let mut overlap = OverlapCheck::new(self, 0, true);
        let seq = self.next_run();
        let layouts = self.layouts.clone();
        let txn_oldest = self.tail_oldest(w);
        let mut rest = Rest {
            layouts: &layouts,
            held: Vec::new(),
            room_bytes,
            writer: None,
            scratch: buffer.scratch().take_writer(CompactionScratch::NEW),
            run: Run::new(seq, txn_oldest, w.txn()),
            tail_page: self.tail,
            tail: Vec::new(),
        };
        let mut work = self.work;
        let mut linked = std::mem::take(&mut self.linked);
        let mut parts = Vec::new();
        for (class, layout) in order {
            let mut follow = true;
            // Series with at most this many rows never become leaves, so they need not be passed one by one.
            let few = if keep { 0 } else { BULK_REST_ROWS_MIN - 1 };
            buffer.group_all(layout, true, few, |grouped| {
                let (series, rows) = match grouped {
                    Grouped::One(Group { series, rows }) => (series, rows),
                    Grouped::Few { series, rows } => {
                        series
                            .last()
                            .map_or(Ok(()), |&last| expect_series(SeriesId(last)))?;
                        rest.put_few(w, &mut work, class, series, rows)?;
                        work.rows_flushed += rows.len() as u64;
                        work.bytes_flushed += rows.len() as u64 * row_bytes(rows.column_count());
                        return Ok(rows.len());
                    }
                };
                expect_series(series)?;
                let place = (class, series);
                let whole = if keep {
                    whole_vectors(rows)
                } else {
                    linkable(rows, linked.contains(&series))
                };
                overlap.plan(w, place, rows, whole, &mut parts)?;
                for part in &parts {
                    let rows = rows.slice(part.rows.clone());
                    if part.link {
                        follow &= sink.link(w, series, &layouts[class as usize], rows)?;
                        work.rows_linked += rows.len() as u64;
                        linked.insert(series);
                    } else {
                        follow = false;
                        rest.put(w, &mut work, place, rows)?;
                    }
                }
                let taken = if keep { whole } else { rows.len() };
                debug_assert!(whole <= taken, "linked rows are taken");
                if taken > whole {
                    rest.put(w, &mut work, place, rows.slice(whole..taken))?;
                }
                work.rows_flushed += taken as u64;
                work.bytes_flushed += taken as u64 * row_bytes(rows.column_count());
                Ok(taken)
            })?;
            if !follow {
                buffer.note_late(layout);
            }
        }
        buffer.grouped();
        self.linked = linked;
        let (outcome, scratch) = rest.finish(w, &mut work)?;
        buffer
            .scratch()
            .return_writer(CompactionScratch::NEW, scratch);
        self.work = work;
        match outcome {
            Err(held) if held.is_empty() => Ok(()),
            Err(held) => {
                (self.tail, self.tail_rows) = tail::append(w, &self.tail, &held)?;
                Ok(())
            }
            Ok(run) => {
                self.free_tail(w);
                self.add_run(w, sink, buffer.scratch(), run)
            }
        }
    }
}
