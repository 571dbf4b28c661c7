//! Threads that help a transaction to hand over: they have its rows, and it goes for what they have encoded.
//!
//! ```text
//! flush_with ─┬─ link what is ready
//!             ├─ series in turn have whole vectors ──> (what is away comes back) ──> their log goes away, and on
//!             └─ budget ──> what is away comes back ──> each log goes away, and comes back at once
//! settle        link, help, link ... until all is linked or held back, and the log is back
//! store_with    settle, each log once more with all that is worth a leaf, the rest by `store`
//! ```
//!
//! Invariants: 1. While rows are away, nothing else is handed over: they come back first.
//! 2. All that touches pages, the front or the sink is done here, by the transaction's own thread.

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

/// Staged bytes at a commit from which other threads are asked for help: to begin one costs as much as to encode some vectors.
const HELP_BYTES_MIN: usize = 1 << 20;

impl Front {
    /// Gives the rows of a layout to `threads` threads, which group and encode them while the transaction goes on.
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

    /// Links pieces; those that do not simply follow what is there are noted.
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
            // Of a layout that was never stored here there is nothing that could be in the way.
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

    /// Links what other threads have encoded so far.
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

    /// Helps the other threads until all that they have is linked, or back in staging; nobody else has rows of the transaction
    /// then.
    ///
    /// # Errors
    /// As `flush`.
    ///
    /// # Panics
    /// When one of them has.
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
        // Of a series the rows that were refused are older than what was held back of them.
        kept.insert(0, back);
        staging.bring_back(layout, log, &kept, late || unsorted);
        Ok(())
    }

    /// Links rows that do not simply follow, if the front has none in their way. Answers the others, and whether not all came
    /// behind those that were there.
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

    /// As `flush`, where `threads` besides this one group and encode: series that are fed in turn while the transaction goes on,
    /// others when the budget is used up.
    ///
    /// # Errors
    /// As `flush`.
    ///
    /// # Panics
    /// When one of them does.
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
                    // What may not be linked, if it is much.
                    return self.flush(w, staging, sink);
                }
                Ready::Leaf(_) | Ready::Nothing => return self.flush(w, staging, sink),
            }
        }
    }

    /// Links what may be linked of all layouts, with the help of other threads; where that is little, this thread links it alone: what
    /// is held back is copied out and in again.
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

    /// Hands over everything that is staged, with the help of `threads` besides this one.
    ///
    /// # Errors
    /// As `commit`.
    ///
    /// # Panics
    /// When one of them does.
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
