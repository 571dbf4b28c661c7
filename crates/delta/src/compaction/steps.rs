//! Compaction of the runs of a tier, in steps of bounded work.
//!
//! A compaction turns the oldest runs of a tier into the newest run of the next tier, one step at a time: each run that
//! a commit writes advances the open compactions. The record holds the progress of each compaction, so any later writer
//! can continue it.
//!
//! A tier must finish its compaction before the tier below delivers enough runs to fill it. The progress of the
//! compaction in the tier below shows how much time is left. In each step a tier completes the same fraction of its
//! remaining work as the tier below has used of the remaining time, so no commit does much more work than another
//! ("Evenly paced compaction" in docs/performance/series-ingest.md).
//!
//! Within a step, series are processed one by one: the rows of all inputs are gathered in time order, and for equal
//! times the newest input takes precedence. Whole vectors without overlapping older rows are linked; the rest goes to
//! the output. Many series of a few rows each are merged together (`batch_merge.rs`). Input blocks before the
//! watermark are freed while the compaction is open (`reclaim.rs`).

use crate::compaction::batch_merge::BatchMerge;
use crate::compaction::memory::CompactionScratch;
use crate::compaction::reclaim::free_passed;
use crate::counters::Work;
use crate::delta::Delta;
use crate::key::Key;
use crate::limits::{
    COMPACTION_OVERSHOOT_BYTES, COMPACTION_STEP_BYTES, LEAF_ROWS, TIER_RUNS_MAX, TIERS_MAX,
};
use crate::link::overlap::{OverlapCheck, Part};
use crate::link::sink::Sink;
use crate::link::threshold::whole_vectors;
use crate::record::{Compaction, Tier};
use crate::run::block::row_bytes;
use crate::run::cursor::RunCursor;
use crate::run::descriptor::Run;
use crate::run::writer::RunWriter;
use std::ops::Range;
use tidalite_base::limits::VECTOR_ROWS;
use tidalite_base::{Corrupt, SeriesId};
use tidalite_codec::{ColumnType, Rows};
use tidalite_pager::{PageRead, PageWrite, Result};

/// A compaction that can end within this many minimal steps is not deferred.
const STEPS_FEW: u64 = 16;

impl Delta {
    /// Adds a run as the newest run of a tier. If the tier is full, completes its compaction first.
    pub(crate) fn push_run<W: PageWrite, S: Sink<W>>(
        &mut self,
        w: &mut W,
        sink: &mut S,
        memory: &mut CompactionScratch,
        tier: usize,
        run: Run,
    ) -> Result<()> {
        while self.record.tiers.len() <= tier {
            self.record.tiers.push(Tier::default());
        }
        assert!(self.record.tiers.len() <= TIERS_MAX, "tiers are bounded");
        if self.record.tiers[tier].runs.len() >= TIER_RUNS_MAX {
            self.open_compaction(tier);
            self.work.compactions_forced += 1;
            let (ended, _) = self.step(w, sink, memory, tier, u64::MAX)?;
            assert!(ended, "a compaction without limit ends");
        }
        let runs = &mut self.record.tiers[tier].runs;
        runs.push(run);
        assert!(
            runs.len() <= TIER_RUNS_MAX,
            "live runs of a tier are bounded"
        );
        Ok(())
    }

    /// Advances the compaction of every tier after a run was added.
    pub(crate) fn advance<W: PageWrite, S: Sink<W>>(
        &mut self,
        w: &mut W,
        sink: &mut S,
        memory: &mut CompactionScratch,
    ) -> Result<()> {
        // `came` is the input that arrived in the tier, as a fraction of a run; `begun` is the finished fraction of
        // the next run.
        let (mut came, mut begun) = (1.0, 0.0);
        let mut tier = 0;
        while tier < self.record.tiers.len() {
            self.open_compaction(tier);
            let at = &self.record.tiers[tier];
            let Some(compaction) = at.compaction else {
                (came, begun) = (0.0, 0.0);
                tier += 1;
                continue;
            };
            let all = compaction.input_bytes.max(1);
            let left = all.saturating_sub(compaction.compacted_bytes);
            let room = (TIER_RUNS_MAX + 1).saturating_sub(at.runs.len()) as f64 - begun;
            let share = if came < room { came / room } else { 1.0 };
            debug_assert!(
                (0.0..=1.0).contains(&share),
                "a step takes a fraction of the rest"
            );
            let share_bytes = (left as f64 * share).ceil() as u64;
            // A compaction without new input can wait: smaller steps would take more time for the same work.
            let waits = came == 0.0 && left > COMPACTION_STEP_BYTES * STEPS_FEW;
            let (ended, bytes) = if waits {
                (false, 0)
            } else {
                let budget_bytes = share_bytes.max(COMPACTION_STEP_BYTES);
                self.step(w, sink, memory, tier, budget_bytes)?
            };
            let compacted_bytes = compaction.compacted_bytes.saturating_add(bytes);
            came = bytes.min(all) as f64 / all as f64;
            begun = if ended {
                0.0
            } else {
                compacted_bytes.min(all) as f64 / all as f64
            };
            tier += 1;
        }
        Ok(())
    }

    /// Opens a compaction of the oldest runs of the tier if it has enough runs and no open compaction.
    fn open_compaction(&mut self, tier: usize) {
        let tier = &mut self.record.tiers[tier];
        let fan_in = crate::step_sizes::fan_in();
        if tier.compaction.is_none() && tier.runs.len() >= fan_in {
            let inputs = tier.runs[..fan_in].iter();
            tier.compaction = Some(Compaction {
                inputs: fan_in,
                output: None,
                watermark: None,
                compacted_bytes: 0,
                input_bytes: inputs.fold(0, |all, run| all.saturating_add(run.bytes)),
            });
            self.changed = true;
        }
    }

    /// Advances the open compaction of a tier by about `budget_bytes` of input; returns whether it ended, and the
    /// number of bytes merged.
    fn step<W: PageWrite, S: Sink<W>>(
        &mut self,
        w: &mut W,
        sink: &mut S,
        memory: &mut CompactionScratch,
        tier: usize,
        budget_bytes: u64,
    ) -> Result<(bool, u64)> {
        let Some(compaction) = self.record.tiers[tier].compaction else {
            return Ok((true, 0));
        };
        self.changed = true;
        let inputs: Vec<Run> = self.record.tiers[tier].runs[..compaction.inputs].to_vec();
        let target = (tier + 1).min(TIERS_MAX - 1);
        // In the last tier the inputs are the oldest runs of all, so the check for overlapping older rows covers no
        // runs.
        let older = if target == tier { TIERS_MAX } else { target };
        let output = compaction.output.unwrap_or_else(|| {
            let txns = inputs.iter().map(|run| (run.txn_oldest, run.txn_newest));
            let (oldest, newest): (Vec<_>, Vec<_>) = txns.unzip();
            let oldest = oldest.into_iter().min().unwrap_or_default();
            let newest = newest.into_iter().max().unwrap_or_default();
            Run::new(self.next_run(), oldest, newest)
        });
        let layouts = self.layouts.clone();
        let from = match compaction.watermark {
            None => Some(Key::MIN),
            Some(watermark) => watermark.next(),
        };
        let mut cursors = Vec::new();
        if let Some(from) = from {
            for run in &inputs {
                let block = memory.blocks.pop().unwrap_or_default();
                cursors.push(RunCursor::seek_with(w, run, &layouts, &from, block)?);
            }
        }
        let mut step = Step {
            cursors,
            layouts: &layouts,
            overlap: OverlapCheck::new(self, older, false),
            writer: RunWriter::new(output, &layouts, memory.take_writer(1 + tier)),
            watermark: compaction.watermark,
            compacted_bytes: 0,
            parts: Vec::new(),
            batch: std::mem::take(&mut memory.batch),
            gathered: std::mem::take(&mut memory.gathered),
            work: self.work,
        };
        let ended = step.run(w, sink, budget_bytes)?;
        let Step {
            cursors,
            writer,
            watermark,
            compacted_bytes,
            batch,
            gathered,
            mut work,
            ..
        } = step;
        let (output, scratch) = writer.finish(w, &mut work)?;
        memory.return_writer(1 + tier, scratch);
        memory.batch = batch;
        memory.gathered = gathered;
        let blocks = cursors.into_iter().map(|cursor| cursor.block);
        memory.blocks.extend(blocks);
        work.compactions_ended += u64::from(ended);
        self.work = work;
        if !ended {
            if let Some(watermark) = &watermark {
                let runs = &mut self.record.tiers[tier].runs[..compaction.inputs];
                let of = (watermark, compacted_bytes);
                free_passed(w, &mut self.work, runs, &layouts, of)?;
            }
            self.record.tiers[tier].compaction = Some(Compaction {
                // Deletes may have removed all rows of the output, but it still owns its extents while its directory
                // has entries.
                output: (!output.directory.is_empty()).then_some(output),
                watermark,
                compacted_bytes: compaction.compacted_bytes.saturating_add(compacted_bytes),
                ..compaction
            });
            return Ok((false, compacted_bytes));
        }
        let done = &mut self.record.tiers[tier];
        done.compaction = None;
        done.runs.drain(..inputs.len());
        for run in inputs {
            run.free(w)?;
        }
        if output.rows == 0 {
            output.free(w)?;
        } else if target == tier {
            self.record.tiers[tier].runs.insert(0, output);
        } else {
            self.push_run(w, sink, memory, target, output)?;
        }
        Ok((true, compacted_bytes))
    }

    /// Adds a new run as the newest run of tier 0 and advances the compactions of all tiers.
    pub(crate) fn add_run<W: PageWrite, S: Sink<W>>(
        &mut self,
        w: &mut W,
        sink: &mut S,
        memory: &mut CompactionScratch,
        run: Run,
    ) -> Result<()> {
        if self.record.tiers.is_empty() {
            self.record.tiers.push(Tier::default());
        }
        self.changed = true;
        debug_assert!(
            run.txn_newest == w.txn(),
            "a new run ends with the running transaction"
        );
        self.work.runs_written += 1;
        self.push_run(w, sink, memory, 0, run)?;
        self.advance(w, sink, memory)
    }
}

/// State of one step of a compaction.
struct Step<'l> {
    /// Read positions in the input runs, the oldest run first.
    cursors: Vec<RunCursor>,
    layouts: &'l [Box<[ColumnType]>],
    overlap: OverlapCheck,
    writer: RunWriter<'l>,
    watermark: Option<Key>,
    compacted_bytes: u64,
    parts: Vec<Part>,
    batch: BatchMerge,
    /// Rows of the current series, gathered from all inputs.
    gathered: Rows,
    work: Work,
}

impl Step<'_> {
    fn run<W: PageWrite, S: Sink<W>>(
        &mut self,
        w: &mut W,
        sink: &mut S,
        budget_bytes: u64,
    ) -> Result<bool> {
        loop {
            for cursor in &mut self.cursors {
                cursor.load_next(w, self.layouts)?;
            }
            let Some(place) = self.next_place() else {
                return Ok(true);
            };
            if !self.batch(w, sink, place, budget_bytes)? {
                if !self.series(w, sink, place, budget_bytes)? {
                    return Ok(false);
                }
                self.watermark = Some(Key::new(place.0, place.1, i64::MAX));
            }
            // A step may exceed its budget here, because stopping within a block would require that the next step
            // decodes the block again.
            let far = self.compacted_bytes >= budget_bytes.saturating_mul(2);
            let amid = self.cursors.iter().any(RunCursor::is_amid);
            if self.compacted_bytes >= budget_bytes && (far || !amid) {
                return Ok(!self.cursors.iter().any(RunCursor::may_have_rows));
            }
        }
    }

    /// Merges many series with few rows each together. Returns false, without any effect, if a batch would take
    /// longer than merging series one by one.
    fn batch<W: PageWrite, S: Sink<W>>(
        &mut self,
        w: &mut W,
        sink: &mut S,
        place: (u32, SeriesId),
        budget_bytes: u64,
    ) -> Result<bool> {
        let class = place.0;
        let columns = self.layouts[class as usize].len();
        let left_bytes = budget_bytes.saturating_sub(self.compacted_bytes);
        let rows_max = (left_bytes.saturating_mul(2) / row_bytes(columns)).max(1);
        let rows_max = usize::try_from(rows_max).unwrap_or(usize::MAX / 2);
        let mut batch = std::mem::take(&mut self.batch);
        if !batch.fill(&self.cursors, class, columns, rows_max) {
            self.batch = batch;
            return Ok(false);
        }
        let mut written = 0;
        for (series, rows) in batch.each_series() {
            let ascending = batch.rows.times[rows.clone()].is_sorted_by(|a, b| a < b);
            if ascending && rows.len() < VECTOR_ROWS {
                continue;
            }
            self.write_batch(w, class, &batch, written..rows.start)?;
            written = rows.end;
            let mut rows = batch.rows.slice(rows).to_rows();
            if !ascending {
                rows.sort_newest_of(&batch.begins(&self.cursors, series));
            }
            let taken = self.place_vectors(w, sink, (class, series), &rows)?;
            let left = rows.slice(taken..rows.len());
            self.writer.push(w, &mut self.work, (class, series), left)?;
        }
        let total = batch.series.len();
        debug_assert!(written <= total, "rows are written in order");
        self.write_batch(w, class, &batch, written..total)?;
        for i in 0..self.cursors.len() {
            let taken = batch.taken(&self.cursors, i);
            self.cursors[i].pass(taken);
        }
        self.watermark = batch
            .series
            .last()
            .map(|&last| Key::new(class, SeriesId(last), i64::MAX));
        self.compacted_bytes += total as u64 * row_bytes(columns);
        self.work.rows_compacted += total as u64;
        self.batch = batch;
        Ok(true)
    }

    fn write_batch<W: PageWrite>(
        &mut self,
        w: &mut W,
        class: u32,
        batch: &BatchMerge,
        rows: Range<usize>,
    ) -> Result<()> {
        let (series, rows) = (&batch.series[rows.clone()], batch.rows.slice(rows));
        self.writer
            .push_many(w, &mut self.work, class, series, rows)
    }

    fn next_place(&self) -> Option<(u32, SeriesId)> {
        self.cursors.iter().filter_map(RunCursor::place).min()
    }

    /// Merges the rows of one series. Returns false if the budget is used up within the series; the watermark is then
    /// at the last finished row.
    fn series<W: PageWrite, S: Sink<W>>(
        &mut self,
        w: &mut W,
        sink: &mut S,
        place: (u32, SeriesId),
        budget_bytes: u64,
    ) -> Result<bool> {
        let mut rows = std::mem::take(&mut self.gathered);
        rows.clear();
        rows.columns
            .resize_with(self.layouts[place.0 as usize].len(), Vec::new);
        let ended = self.merge_series(w, sink, place, budget_bytes, &mut rows);
        self.gathered = rows;
        ended
    }

    fn merge_series<W: PageWrite, S: Sink<W>>(
        &mut self,
        w: &mut W,
        sink: &mut S,
        place: (u32, SeriesId),
        budget_bytes: u64,
        rows: &mut Rows,
    ) -> Result<bool> {
        let stop_bytes = budget_bytes.saturating_add(COMPACTION_OVERSHOOT_BYTES);
        while self.gather(w, place, rows)? {
            let stop = self.compacted_bytes >= stop_bytes;
            if rows.len() < LEAF_ROWS && !stop {
                continue;
            }
            let mut taken = self.place_vectors(w, sink, place, rows)?;
            if taken == 0 {
                self.writer.push(w, &mut self.work, place, rows.view())?;
                taken = rows.len();
            }
            if stop && taken > 0 {
                // Rows gathered after this one are not merged in this step; the next step gathers them again.
                self.watermark = Some(Key::new(place.0, place.1, rows.times[taken - 1]));
                return Ok(false);
            }
            debug_assert!(
                taken <= rows.len(),
                "no more rows are placed than were gathered"
            );
            rows.remove(0..taken);
        }
        let taken = self.place_vectors(w, sink, place, rows)?;
        let left = rows.slice(taken..rows.len());
        self.writer.push(w, &mut self.work, place, left)?;
        Ok(true)
    }

    /// Installs the whole vectors of the gathered rows as leaves, or writes the rows to the output run if older rows
    /// overlap. Returns the number of rows consumed.
    fn place_vectors<W: PageWrite, S: Sink<W>>(
        &mut self,
        w: &mut W,
        sink: &mut S,
        place: (u32, SeriesId),
        rows: &Rows,
    ) -> Result<usize> {
        let mut parts = std::mem::take(&mut self.parts);
        let whole = whole_vectors(rows.view());
        self.overlap
            .plan(w, place, rows.view(), whole, &mut parts)?;
        for part in &parts {
            let rows = rows.slice(part.rows.clone());
            if part.link {
                sink.link(w, place.1, &self.layouts[place.0 as usize], rows)?;
                self.work.rows_linked_by_compaction += rows.len() as u64;
            } else {
                self.writer.push(w, &mut self.work, place, rows)?;
            }
        }
        let taken = parts.last().map_or(0, |part| part.rows.end);
        debug_assert!(taken <= whole, "only whole vectors are placed");
        self.parts = parts;
        Ok(taken)
    }

    /// Appends the next rows of a series to `rows`; returns false if the series has no more rows. Takes rows up to
    /// the smallest end time among the decoded blocks, so that rows of all runs arrive in time order.
    fn gather<R: PageRead>(
        &mut self,
        r: &R,
        place: (u32, SeriesId),
        rows: &mut Rows,
    ) -> Result<bool> {
        let mut cut = i64::MAX;
        let mut sources = 0;
        for cursor in &self.cursors {
            if cursor.place() == Some(place) {
                sources += 1;
                let end = cursor.block.series_end(cursor.row, place.1);
                if end == cursor.block.len() && end > cursor.row {
                    cut = cut.min(cursor.block.rows.times[end - 1]);
                }
            }
        }
        if sources == 0 {
            return Ok(false);
        }
        let begin = rows.len();
        let mut begins = Vec::new();
        for i in 0..self.cursors.len() {
            let cursor = &mut self.cursors[i];
            if cursor.place() != Some(place) {
                continue;
            }
            let end = cursor.block.series_end(cursor.row, place.1);
            let times = &cursor.block.rows.times[cursor.row..end];
            // In a damaged block, times may not ascend. Taking at least one row guarantees that the compaction ends.
            let taken = times.partition_point(|&time| time <= cut);
            let taken = if sources == 1 { taken.max(1) } else { taken };
            begins.push(rows.len() - begin);
            rows.extend(cursor.block.rows.slice(cursor.row..cursor.row + taken));
            let bytes = taken as u64 * row_bytes(rows.columns.len());
            self.compacted_bytes += bytes;
            self.work.rows_compacted += taken as u64;
            if taken > 0 {
                cursor.advance(r, self.layouts, taken)?;
            }
        }
        sort_from(rows, begin, &begins);
        let forward = match (rows.times[..begin].last(), rows.times.get(begin)) {
            (_, None) => false,
            (Some(before), Some(next)) => before < next,
            (None, Some(_)) => true,
        };
        if !forward {
            let found = format!("times of {} out of order", place.1);
            return Err(Corrupt::new("run block", 0, found, "ascending times").into());
        }
        Ok(true)
    }
}

/// Sorts the rows from `begin` on, which come from several runs; `begins` holds the start of each run's rows. For equal
/// times the rows of the last run are kept.
fn sort_from(rows: &mut Rows, begin: usize, begins: &[usize]) {
    debug_assert!(begins.is_sorted(), "rows of the runs follow each other");
    if rows.times[begin..].is_sorted_by(|a, b| a < b) {
        return;
    }
    let mut part = rows.slice(begin..rows.len()).to_rows();
    part.sort_newest_of(begins);
    rows.truncate(begin);
    rows.extend(part.view());
}
