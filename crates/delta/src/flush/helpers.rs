//! Helper threads for the flush of a transaction: they group and encode its rows, and the transaction's own thread
//! collects the results.
//!
//! ```text
//! flush_with ─┬─ link rows that are ready
//!             ├─ series written in turn have whole vectors ──> (lent log comes back) ──> their log is lent, continue
//!             └─ budget ──> lent log comes back ──> each log is lent, and comes back at once
//! finish_background        link, help, link ... until all is linked or held back, and the log is back
//! store_with    finish_background, each log once more with all rows that justify a leaf, the rest by `store`
//! ```
//!
//! Invariants: 1. While a log is lent, nothing else is flushed: the rows of the log come back first.
//! 2. Only the transaction's own thread touches pages, the delta or the sink, in this file.

use crate::buffer::group::KeptRows;
use crate::buffer::write_buffer::{Ready, WriteBuffer};
use crate::delta::Delta;
use crate::flush::threads::{BackgroundFlush, Piece, Running, WorkerScratch};
use crate::link::overlap::OverlapCheck;
use crate::link::sink::EncodingSink;
use crate::link::threshold::Take;
use crate::run::tail::expect_series;
use std::collections::BTreeSet;
use std::sync::Mutex;
use tidalite_codec::ColumnType;
use tidalite_pager::{PageWrite, Result};

/// Minimum size in bytes of the buffered rows for which a commit uses helper threads: starting a thread costs as much
/// as encoding some vectors.
const HELP_BYTES_MIN: usize = 1 << 20;

impl Delta {
    /// Lends the log of a layout to `threads` threads, which group and encode it while the transaction continues.
    fn encode_in_background<W: PageWrite, S: EncodingSink<W>>(
        &mut self,
        w: &mut W,
        buffer: &mut WriteBuffer,
        sink: &mut S,
        background: &mut BackgroundFlush<S::Encoded>,
        (layout, take, threads): (usize, Take, usize),
    ) -> Result<()> {
        debug_assert!(background.running.is_none(), "one log is lent at a time");
        let log = buffer.lend_log(layout);
        let mut begun = Vec::new();
        log.each_slot(|series, rows| {
            let mut encoded = None;
            if rows >= take.rows_min() {
                let memory = encoded.insert(background.pool.pop().unwrap_or_default());
                sink.begin(w, series, log.types(), memory)?;
            }
            begun.push(Mutex::new(encoded));
            Ok(())
        })?;
        let running = Running::begin((layout, log), take, threads, begun, S::encode);
        background.running = Some(running);
        Ok(())
    }

    /// Installs encoded pieces as leaves. Slots of pieces that do not come after all existing rows of their series
    /// are recorded in `refused` instead.
    fn link_pieces<W: PageWrite, S: EncodingSink<W>>(
        &mut self,
        w: &mut W,
        sink: &mut S,
        types: &[ColumnType],
        pieces: impl IntoIterator<Item = Piece<S::Encoded>>,
        (pool, refused): (&mut Vec<S::Encoded>, &mut BTreeSet<u32>),
    ) -> Result<()> {
        let class = self.class_of(types);
        let mut overlap = None;
        for piece in pieces {
            expect_series(piece.series)?;
            let (first, last) = piece.span;
            debug_assert!(
                first <= last && piece.rows > 0,
                "a piece has rows in time order"
            );
            // A layout without a class was never stored in the delta, so no rows of the delta can overlap.
            let met = match class {
                Some(class) => overlap
                    .get_or_insert_with(|| OverlapCheck::new(self, 0, true))
                    .overlaps(w, (class, piece.series), first, last)?,
                None => false,
            };
            if met || !sink.link_encoded(w, piece.series, types, &piece.encoded)? {
                refused.insert(piece.slot);
            } else {
                self.note_linked(piece.series, piece.rows, types.len());
                self.work.rows_encoded_by_helpers += piece.rows as u64;
            }
            pool.push(piece.encoded);
        }
        Ok(())
    }

    /// Installs as leaves the pieces that helper threads have encoded so far.
    fn link_ready<W: PageWrite, S: EncodingSink<W>>(
        &mut self,
        w: &mut W,
        sink: &mut S,
        background: &mut BackgroundFlush<S::Encoded>,
    ) -> Result<()> {
        let BackgroundFlush { running, pool } = background;
        match running {
            Some(Running { job, refused, .. }) => {
                let pieces = job.pieces(false);
                self.link_pieces(w, sink, job.log.types(), pieces, (pool, refused))
            }
            None => Ok(()),
        }
    }

    /// Works beside the other threads until all rows of the lent log are in leaves or back in the write buffer.
    /// Afterwards no other thread has rows of the transaction.
    ///
    /// # Errors
    /// As `flush`.
    ///
    /// # Panics
    /// If a helper thread has panicked.
    pub fn finish_background<W: PageWrite, S: EncodingSink<W>>(
        &mut self,
        w: &mut W,
        buffer: &mut WriteBuffer,
        sink: &mut S,
        background: &mut BackgroundFlush<S::Encoded>,
    ) -> Result<()> {
        let Some(mut running) = background.running.take() else {
            return Ok(());
        };
        let pool = &mut background.pool;
        let Running { job, refused, .. } = &mut running;
        let types = job.log.types();
        let mut scratch = WorkerScratch::new(types.len());
        let mut more = true;
        while more {
            self.link_pieces(w, sink, types, job.pieces(false), (pool, refused))?;
            more = job.part(&mut scratch, |piece| {
                self.link_pieces(w, sink, types, [piece], (pool, refused))
            })?;
        }
        loop {
            let pieces = job.pieces(true);
            if pieces.is_empty() {
                break;
            }
            self.link_pieces(w, sink, types, pieces, (pool, refused))?;
        }
        let (back, late) = match refused.is_empty() {
            true => (KeptRows::new(types.len()), false),
            false => self.link_refused(w, sink, &running, &mut scratch)?,
        };
        running.job.put_down(scratch);
        let layout = running.layout;
        let (mut kept, unsorted, log) = running.end();
        // Within each series, rows of refused pieces are older than the remainders that threads kept back, so the
        // refused rows come first.
        kept.insert(0, back);
        buffer.take_back_log(layout, log, &kept, late || unsorted);
        debug_assert!(!buffer.has_lent_log(), "the log is back");
        Ok(())
    }

    /// Installs refused rows (rows that do not come after all existing rows of their series) as leaves if the delta
    /// has no overlapping rows. Returns the other refused rows, and whether any rows of leaves or the delta were not
    /// older.
    fn link_refused<W: PageWrite, S: EncodingSink<W>>(
        &mut self,
        w: &mut W,
        sink: &mut S,
        running: &Running<S::Encoded>,
        scratch: &mut WorkerScratch,
    ) -> Result<(KeptRows, bool)> {
        let job = &running.job;
        let types = job.log.types();
        let class = self.class_of(types);
        let mut overlap = OverlapCheck::new(self, 0, true);
        let (mut kept, mut late) = (KeptRows::new(types.len()), false);
        job.again(&running.refused, scratch, |slot, series, rows| {
            let (Some(&first), Some(&last)) = (rows.times().first(), rows.times().last()) else {
                return Ok(());
            };
            if let Some(class) = class
                && overlap.overlaps(w, (class, series), first, last)?
            {
                late = true;
                kept.keep(slot, rows, 0);
                return Ok(());
            }
            late |= !sink.link(w, series, types, rows)?;
            self.note_linked(series, rows.len(), types.len());
            Ok(())
        })?;
        Ok((kept, late))
    }

    /// Like `flush`, but `threads` helper threads group and encode the rows. Series written in turn are encoded while
    /// the transaction continues, other series when the budget is used up.
    ///
    /// # Errors
    /// As `flush`.
    ///
    /// # Panics
    /// If a helper thread panics.
    pub fn flush_with<W: PageWrite, S: EncodingSink<W>>(
        &mut self,
        w: &mut W,
        buffer: &mut WriteBuffer,
        sink: &mut S,
        background: &mut BackgroundFlush<S::Encoded>,
        threads: usize,
    ) -> Result<()> {
        if threads == 0 {
            return self.flush(w, buffer, sink);
        }
        self.link_ready(w, sink, background)?;
        loop {
            let ready = buffer.ready();
            if ready == Ready::Nothing {
                return Ok(());
            }
            if background.running.is_some() {
                self.finish_background(w, buffer, sink, background)?;
                continue;
            }
            match ready {
                Ready::RoundRobin(layout) => {
                    let what = (layout, Take::Whole, threads);
                    self.encode_in_background(w, buffer, sink, background, what)?;
                }
                Ready::Budget => {
                    self.encode_all(w, buffer, sink, background, (Take::Whole, threads))?;
                    // Many rows may remain that cannot become leaves; `flush` moves them to the delta.
                    return self.flush(w, buffer, sink);
                }
                Ready::Leaf(_) | Ready::Nothing => return self.flush(w, buffer, sink),
            }
        }
    }

    /// Installs as leaves all rows of all layouts that may become leaves, with the help of other threads. This thread
    /// flushes a layout with few such rows itself: rows that do not become leaves would be copied twice, out of the
    /// write buffer and back into it.
    fn encode_all<W: PageWrite, S: EncodingSink<W>>(
        &mut self,
        w: &mut W,
        buffer: &mut WriteBuffer,
        sink: &mut S,
        background: &mut BackgroundFlush<S::Encoded>,
        (take, threads): (Take, usize),
    ) -> Result<()> {
        for layout in buffer.layouts_with_rows() {
            if !buffer.is_mostly_long(layout, take.rows_min()) {
                continue;
            }
            self.work.logs_lent += 1;
            self.encode_in_background(w, buffer, sink, background, (layout, take, threads))?;
            self.finish_background(w, buffer, sink, background)?;
        }
        Ok(())
    }

    /// Flushes all buffered rows, with the help of `threads` helper threads.
    ///
    /// # Errors
    /// As `commit`.
    ///
    /// # Panics
    /// If a helper thread panics.
    pub fn store_with<W: PageWrite, S: EncodingSink<W>>(
        &mut self,
        w: &mut W,
        buffer: &mut WriteBuffer,
        sink: &mut S,
        background: &mut BackgroundFlush<S::Encoded>,
        threads: usize,
    ) -> Result<()> {
        self.finish_background(w, buffer, sink, background)?;
        if threads > 0 && buffer.bytes() >= HELP_BYTES_MIN {
            self.encode_all(w, buffer, sink, background, (Take::AtCommit, threads))?;
        }
        self.store(w, buffer, sink)
    }
}
