//! Staged rows that are grouped and encoded by several threads, or by one that is not the writer's.
//!
//! Each thread takes a part of the series after the other. Only for linking, and for a look at the front before that, it turns
//! to the writer (`Linker`); what may not be linked, and what is left of whole vectors, stays staged.

use super::group::{Copies, Grouping, Kept, Sorting};
use super::log::NO_OVERLAY;
use super::{Ready, Staging};
use crate::handover::{linkable, whole_vectors};
use crate::sealing::{Linked, Linker, SealedOf, seal_and_link};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tidalite_base::SeriesId;
use tidalite_codec::{ColumnType, RowsRef};
use tidalite_pager::Error;

/// How many rows of a series are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Take {
    /// Whole vectors.
    Whole,
    /// What is worth a leaf at the end of a transaction.
    AtCommit,
}

impl Take {
    fn of(self, rows: RowsRef<'_>) -> usize {
        match self {
            Self::Whole => whole_vectors(rows),
            Self::AtCommit => linkable(rows, false),
        }
    }
}

impl Staging {
    /// Links what may be linked of a layout, or of all, with `threads` besides this one. The other rows stay staged, and those of
    /// series that were read.
    pub(crate) fn link_whole<L: Linker>(
        &mut self,
        linker: &L,
        threads: usize,
        take: Take,
        only: Option<usize>,
    ) -> Result<(), L::Error> {
        self.copies
            .resize_with(self.copies.len().max(threads + 1), Copies::default);
        for (layout, log) in self.logs.iter_mut().enumerate() {
            log.close_stretch();
            if log.rows() == 0 || only.is_some_and(|only| only != layout) {
                continue;
            }
            let rounds = log.rounds.whole();
            let grouping = Grouping::new(log, &mut self.grouping);
            let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
            let work = |copies: &mut Copies| {
                let mut kept = Kept::new(log.types.len());
                let mut sorting = Sorting::new(log.types.len());
                let (mut sealed, mut follow) = (Default::default(), true);
                while !stop.load(Ordering::Relaxed) {
                    let part = next.fetch_add(1, Ordering::Relaxed);
                    if part >= grouping.parts() {
                        break;
                    }
                    let mut failed = None;
                    let done = grouping.part(part, copies, |slot, rows| {
                        let state = log.slots[slot as usize];
                        if rows.is_empty() || state.overlay != NO_OVERLAY || failed.is_some() {
                            return Ok(());
                        }
                        sorting.with(rows, |rows| {
                            let whole = rows.slice(0..take.of(rows));
                            let place = (state.series, &*log.types);
                            match seal_and_link(linker, place, whole, &mut sealed) {
                                Ok(Linked::No) => {
                                    follow &= whole.is_empty();
                                    kept.keep(slot, rows, 0);
                                }
                                Ok(linked) => {
                                    follow &= linked == Linked::Behind;
                                    kept.keep(slot, rows, whole.len());
                                }
                                Err(error) => failed = Some(error),
                            }
                        });
                        Ok(())
                    });
                    let done = done.map_err(L::Error::from);
                    if let Err(error) = failed.map_or(done, Err) {
                        stop.store(true, Ordering::Relaxed);
                        return Err(error);
                    }
                }
                Ok((kept, sorting.late || !follow))
            };
            let mut all = Vec::with_capacity(threads + 1);
            let (own, others) = self.copies.split_at_mut(1);
            let helpers = threads.min(grouping.parts().saturating_sub(1));
            std::thread::scope(|scope| {
                let work = &work;
                let others: Vec<_> = others
                    .iter_mut()
                    .take(helpers)
                    .map(|copies| scope.spawn(move || work(copies)))
                    .collect();
                all.push(work(&mut own[0]));
                for thread in others {
                    match thread.join() {
                        Ok(done) => all.push(done),
                        Err(panic) => std::panic::resume_unwind(panic),
                    }
                }
            });
            let all: Vec<(Kept, bool)> = all.into_iter().collect::<Result<_, _>>()?;
            log.clear();
            for (kept, late) in &all {
                kept.stage(log);
                log.late |= late;
            }
            if let Some(slots) = rounds {
                log.resume_rounds(slots);
            }
        }
        self.grouped();
        Ok(())
    }

    /// Links what is ready, after a push or append said so, where the staging is that of a thread beside the writer's. True: the
    /// budget is used up by rows that may not be linked, which must be taken out.
    ///
    /// # Errors
    /// Those of the linker; the transaction must then be rolled back.
    pub fn flush<L: Linker>(&mut self, linker: &L) -> Result<bool, L::Error> {
        loop {
            match self.ready() {
                Ready::Nothing => return Ok(false),
                Ready::Leaf(layout) => {
                    let mut sealed = SealedOf::<L>::default();
                    let linked = self.with_leaf(layout, |series, types, rows| {
                        seal_and_link(linker, (series, types), rows, &mut sealed)
                    })?;
                    if linked == Linked::No {
                        self.leaf_refused(layout);
                    } else {
                        self.leaf_linked(layout);
                    }
                }
                Ready::Rounds(layout) => self.link_whole(linker, 0, Take::Whole, Some(layout))?,
                Ready::Budget => {
                    self.link_whole(linker, 0, Take::Whole, None)?;
                    if self.bytes() > self.budget_bytes() / 2 {
                        return Ok(true);
                    }
                }
            }
        }
    }

    /// Links all that may be linked and is worth a leaf: no more rows come.
    ///
    /// # Errors
    /// As `flush`.
    pub fn link_all<L: Linker>(&mut self, linker: &L) -> Result<(), L::Error> {
        self.link_whole(linker, 0, Take::AtCommit, None)
    }

    /// Takes all rows out, series by series, each series' sorted by time.
    ///
    /// # Errors
    /// Those of `f`; the rest of the rows is gone then.
    pub fn drain<E: From<Error>>(
        &mut self,
        mut f: impl FnMut(SeriesId, &[ColumnType], RowsRef<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut failed = None;
        for layout in 0..self.logs.len() {
            let types = self.logs[layout].types.clone();
            self.group(layout, |group| {
                if failed.is_none() {
                    failed = f(group.series, &types, group.rows).err();
                }
                Ok(group.rows.len())
            })?;
        }
        self.grouped();
        failed.map_or(Ok(()), Err)
    }
}
