//! Helper threads for the flush of a transaction: they group and encode its rows, and the transaction's own thread
//! collects the results.
//!
//! ```text
//! flush_with ─┬─ link rows that are ready
//!             ├─ series written in turn have whole vectors ──> (lent log comes back) ──> their log is lent, continue
//!             └─ budget ──> lent log comes back ──> each log is lent, and comes back at once
//! settle        link, help, link ... until all is linked or held back, and the log is back
//! store_with    settle, each log once more with all rows that justify a leaf, the rest by `store`
//! ```
//!
//! Invariants: 1. While a log is lent, nothing else is flushed: its rows come back first.
//! 2. Everything that touches pages, the delta or the sink is done here, by the transaction's own thread.

use crate::buffer::group::Kept;
use crate::buffer::staging::{Ready, Staging};
use crate::flush::threads::{Beside, Desk, Piece, Running};
use crate::front::Front;
use crate::link::obstacles::Obstacles;
use crate::link::sink::SealingSink;
use crate::link::threshold::Take;
use crate::run::tail::expect_series;
use std::collections::BTreeSet;
use std::sync::Mutex;
use tidalite_codec::ColumnType;
use tidalite_pager::{PageWrite, Result};

/// Buffered bytes from which a commit uses helper threads: starting one costs as much as encoding some vectors.
const HELP_BYTES_MIN: usize = 1 << 20;

impl Front {
    /// Lends the log of a layout to `threads` threads, which group and encode it while the transaction continues.
    fn seal_beside<W: PageWrite, S: SealingSink<W>>(
        &mut self,
        w: &mut W,
        staging: &mut Staging,
        sink: &mut S,
        beside: &mut Beside<S::Sealed>,
        (layout, take, threads): (usize, Take, usize),
    ) -> Result<()> {
        let log = staging.take_away(layout);
        let mut begun = Vec::new();
        log.each_slot(|series, rows| {
            let mut sealed = None;
            if rows >= take.rows_min() {
                let memory = sealed.insert(beside.pool.pop().unwrap_or_default());
                sink.begin(w, series, log.types(), memory)?;
            }
            begun.push(Mutex::new(sealed));
            Ok(())
        })?;
        let running = Running::begin((layout, log), take, threads, begun, S::seal);
        beside.running = Some(running);
        Ok(())
    }

    /// Links pieces; records the slots of pieces that do not simply follow the existing rows.
    fn link_pieces<W: PageWrite, S: SealingSink<W>>(
        &mut self,
        w: &mut W,
        sink: &mut S,
        types: &[ColumnType],
        pieces: impl IntoIterator<Item = Piece<S::Sealed>>,
        (pool, refused): (&mut Vec<S::Sealed>, &mut BTreeSet<u32>),
    ) -> Result<()> {
        let class = self.class_of(types);
        let mut obstacles = None;
        for piece in pieces {
            expect_series(piece.series)?;
            let (first, last) = piece.span;
            // If the layout was never stored here, no rows can overlap.
            let met = match class {
                Some(class) => obstacles
                    .get_or_insert_with(|| Obstacles::new(self, 0, true))
                    .within(w, (class, piece.series), first, last)?,
                None => false,
            };
            if met || !sink.link_sealed(w, piece.series, types, &piece.sealed)? {
                refused.insert(piece.slot);
            } else {
                self.note_linked(piece.series, piece.rows, types.len());
                self.work.rows_linked_beside += piece.rows as u64;
            }
            pool.push(piece.sealed);
        }
        Ok(())
    }

    /// Links the pieces that helper threads have encoded so far.
    fn link_ready<W: PageWrite, S: SealingSink<W>>(
        &mut self,
        w: &mut W,
        sink: &mut S,
        beside: &mut Beside<S::Sealed>,
    ) -> Result<()> {
        let Beside { running, pool } = beside;
        match running {
            Some(Running { job, refused, .. }) => {
                let pieces = job.pieces(false);
                self.link_pieces(w, sink, job.log.types(), pieces, (pool, refused))
            }
            None => Ok(()),
        }
    }

    /// Helps the other threads until all rows of the lent log are linked or back in the write buffer; afterwards no
    /// other thread has rows of the transaction.
    ///
    /// # Errors
    /// As `flush`.
    ///
    /// # Panics
    /// If a helper thread has panicked.
    pub fn settle<W: PageWrite, S: SealingSink<W>>(
        &mut self,
        w: &mut W,
        staging: &mut Staging,
        sink: &mut S,
        beside: &mut Beside<S::Sealed>,
    ) -> Result<()> {
        let Some(mut running) = beside.running.take() else {
            return Ok(());
        };
        let pool = &mut beside.pool;
        let Running { job, refused, .. } = &mut running;
        let types = job.log.types();
        let mut desk = Desk::new(types.len());
        let mut more = true;
        while more {
            self.link_pieces(w, sink, types, job.pieces(false), (pool, refused))?;
            more = job.part(&mut desk, |piece| {
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
            true => (Kept::new(types.len()), false),
            false => self.link_refused(w, sink, &running, &mut desk)?,
        };
        running.job.put_down(desk);
        let layout = running.layout;
        let (mut kept, unsorted, log) = running.end();
        // For each series, refused rows are older than the rows held back.
        kept.insert(0, back);
        staging.bring_back(layout, log, &kept, late || unsorted);
        Ok(())
    }

    /// Links rows that do not simply follow the existing ones, if the delta has no overlapping rows. Returns the other
    /// rows, and whether some rows did not come after all existing ones.
    fn link_refused<W: PageWrite, S: SealingSink<W>>(
        &mut self,
        w: &mut W,
        sink: &mut S,
        running: &Running<S::Sealed>,
        desk: &mut Desk,
    ) -> Result<(Kept, bool)> {
        let job = &running.job;
        let types = job.log.types();
        let class = self.class_of(types);
        let mut obstacles = Obstacles::new(self, 0, true);
        let (mut kept, mut late) = (Kept::new(types.len()), false);
        job.again(&running.refused, desk, |slot, series, rows| {
            let (Some(&first), Some(&last)) = (rows.times().first(), rows.times().last()) else {
                return Ok(());
            };
            if let Some(class) = class
                && obstacles.within(w, (class, series), first, last)?
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

    /// Like `flush`, with `threads` helper threads that group and encode: series written in turn while the transaction
    /// continues, other series when the budget is used up.
    ///
    /// # Errors
    /// As `flush`.
    ///
    /// # Panics
    /// If a helper thread panics.
    pub fn flush_with<W: PageWrite, S: SealingSink<W>>(
        &mut self,
        w: &mut W,
        staging: &mut Staging,
        sink: &mut S,
        beside: &mut Beside<S::Sealed>,
        threads: usize,
    ) -> Result<()> {
        if threads == 0 {
            return self.flush(w, staging, sink);
        }
        self.link_ready(w, sink, beside)?;
        loop {
            let ready = staging.ready();
            if ready == Ready::Nothing {
                return Ok(());
            }
            if beside.running.is_some() {
                self.settle(w, staging, sink, beside)?;
                continue;
            }
            match ready {
                Ready::Rounds(layout) => {
                    let what = (layout, Take::Whole, threads);
                    self.seal_beside(w, staging, sink, beside, what)?;
                }
                Ready::Budget => {
                    self.seal_all(w, staging, sink, beside, (Take::Whole, threads))?;
                    // Flushes rows that may not be linked, if there are many.
                    return self.flush(w, staging, sink);
                }
                Ready::Leaf(_) | Ready::Nothing => return self.flush(w, staging, sink),
            }
        }
    }

    /// Links all rows of all layouts that may be linked, with the help of other threads. A layout with few such rows is
    /// left to this thread, since held-back rows are copied out and back in.
    fn seal_all<W: PageWrite, S: SealingSink<W>>(
        &mut self,
        w: &mut W,
        staging: &mut Staging,
        sink: &mut S,
        beside: &mut Beside<S::Sealed>,
        (take, threads): (Take, usize),
    ) -> Result<()> {
        for layout in staging.logged() {
            if !staging.is_mostly_long(layout, take.rows_min()) {
                continue;
            }
            self.work.logs_lent += 1;
            self.seal_beside(w, staging, sink, beside, (layout, take, threads))?;
            self.settle(w, staging, sink, beside)?;
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
    pub fn store_with<W: PageWrite, S: SealingSink<W>>(
        &mut self,
        w: &mut W,
        staging: &mut Staging,
        sink: &mut S,
        beside: &mut Beside<S::Sealed>,
        threads: usize,
    ) -> Result<()> {
        self.settle(w, staging, sink, beside)?;
        if threads > 0 && staging.bytes() >= HELP_BYTES_MIN {
            self.seal_all(w, staging, sink, beside, (Take::AtCommit, threads))?;
        }
        self.store(w, staging, sink)
    }
}
