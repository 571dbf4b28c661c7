//! Staged rows that are grouped and encoded by a thread that is not the writer's.
//!
//! Only for linking, and for a look at the front before that, it turns to the writer (`Linker`); what may not be linked, and
//! what is left of whole vectors, stays staged. At the end much of that becomes blocks of a run (`blocks.rs`).

use crate::buffer::group::{Group, Grouped};
use crate::buffer::staging::{Ready, Staging};
use crate::flush::blocks::Blocks;
use crate::flush::linker::{Linked, Linker, SealedOf, seal_and_link};
use crate::link::threshold::{
    BULK_REST_ROWS_MIN, LINKED_ROWS_MIN, Take, linkable_of, whole_vectors,
};
use tidalite_base::SeriesId;
use tidalite_base::limits::VECTOR_ROWS;
use tidalite_codec::{ColumnType, RowsRef};
use tidalite_pager::Error;

/// Bytes of rows that a thread encodes as blocks rather than leave them to the writer: fewer may fit into the tail page, and would
/// make a run that is soon merged with others.
const BLOCKS_BYTES_MIN: usize = 1 << 20;

impl Staging {
    /// Links whole vectors that may be linked, of a layout or of all. The other rows stay staged, and those of series that were read.
    fn link_whole<L: Linker>(&mut self, linker: &L, only: Option<usize>) -> Result<(), L::Error> {
        let mut sealed = SealedOf::<L>::default();
        for layout in 0..self.logs.len() {
            if only.is_some_and(|only| only != layout) {
                continue;
            }
            let types = self.logs[layout].types.clone();
            let mut failed = None;
            let (mut follow, mut any) = (true, false);
            self.group_log(layout, |Group { series, rows }| {
                let whole = rows.slice(0..whole_vectors(rows));
                if failed.is_some() || whole.is_empty() {
                    return Ok(0);
                }
                match seal_and_link(linker, (series, &types), whole, &mut sealed) {
                    Ok(linked) => {
                        follow &= linked == Linked::Behind;
                        any |= linked != Linked::No;
                        Ok(if linked == Linked::No { 0 } else { whole.len() })
                    }
                    Err(error) => {
                        failed = Some(error);
                        Ok(0)
                    }
                }
            })?;
            if let Some(error) = failed {
                return Err(error);
            }
            self.linked |= any;
            if !follow {
                self.note_late(layout);
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
                        self.linked = true;
                        self.leaf_linked(layout);
                    }
                }
                Ready::Rounds(layout) => self.link_whole(linker, Some(layout))?,
                Ready::Budget => {
                    self.link_whole(linker, None)?;
                    if self.bytes() > self.budget_bytes() / 2 {
                        return Ok(true);
                    }
                }
            }
        }
    }

    /// Whether so many rows are left here that would be neither linked nor put elsewhere by `end` that they are worth blocks of their
    /// own. Repeated times are counted as often as they were pushed.
    pub fn is_worth_blocks(&mut self) -> bool {
        let least = BLOCKS_BYTES_MIN.min(self.budget_bytes() / 4);
        let max = self.rest_rows_max();
        let left = self.left_of(|rows| {
            let whole = rows / VECTOR_ROWS * VECTOR_ROWS;
            let left = rows - linkable_of(rows, whole, false);
            if left <= max { left } else { 0 }
        });
        left.row_bytes >= least
    }

    /// Rows that a series may have left to go into blocks. Behind rows that were linked a shorter rest may be worth a leaf: the commit
    /// links it.
    fn rest_rows_max(&self) -> usize {
        match self.linked {
            true => BULK_REST_ROWS_MIN - 1,
            false => LINKED_ROWS_MIN - 1,
        }
    }

    /// Takes all rows out: no more come. What may be linked and is worth a leaf is linked. The other rows are added to `blocks`, if that
    /// is given: no row of their series may be staged elsewhere then. `rest` gets those that are not, series by series, each series'
    /// sorted by time.
    ///
    /// # Errors
    /// Those of the linker and of `rest`; the rest of the rows is gone then, and the transaction must be rolled back.
    pub fn end<L: Linker>(
        &mut self,
        linker: &L,
        mut blocks: Option<&mut Vec<Blocks>>,
        mut rest: impl FnMut(SeriesId, &[ColumnType], RowsRef<'_>) -> Result<(), L::Error>,
    ) -> Result<(), L::Error> {
        let mut sealed = SealedOf::<L>::default();
        let mut failed = None;
        let rest_rows_max = self.rest_rows_max();
        for layout in 0..self.logs.len() {
            if self.logs[layout].slots.is_empty() {
                continue;
            }
            let types = self.logs[layout].types.clone();
            let as_blocks = blocks.is_some();
            let few = if as_blocks { rest_rows_max } else { 0 };
            let (mut list, learned) = (None, self.run_hints(&types));
            // A layout has a class once there are rows that are not linked.
            let mut encode = |series: &[u64], rows: RowsRef<'_>| {
                let list = match &mut list {
                    Some(list) => list,
                    None => {
                        let class = linker.with(|writer| writer.class(&types))?;
                        list.insert(Blocks::new(&types, (class, learned.clone())))
                    }
                };
                Ok::<_, L::Error>(list.push(series, rows)?)
            };
            let mut series_of = Vec::new();
            self.group_all(layout, false, few, |grouped| {
                let rows = match &grouped {
                    Grouped::One(Group { rows, .. }) | Grouped::Few { rows, .. } => *rows,
                };
                if failed.is_none() {
                    let mut hand_over = || {
                        let series = match grouped {
                            Grouped::One(Group { series, .. }) => series,
                            Grouped::Few { series, .. } => return encode(series, rows),
                        };
                        let mut taken = Take::AtCommit.of(rows);
                        if taken > 0 {
                            let part = rows.slice(0..taken);
                            match seal_and_link(linker, (series, &types), part, &mut sealed)? {
                                Linked::No => taken = 0,
                                Linked::Behind | Linked::Among => {}
                            }
                        }
                        let left = rows.slice(taken..rows.len());
                        if left.is_empty() {
                            Ok(())
                        } else if as_blocks && left.len() <= rest_rows_max {
                            series_of.clear();
                            series_of.resize(left.len(), series.0);
                            encode(&series_of, left)
                        } else {
                            rest(series, &types, left)
                        }
                    };
                    failed = hand_over().err();
                }
                Ok(rows.len())
            })?;
            if let (Some(mut list), Some(blocks)) = (list, &mut blocks) {
                list.finish();
                blocks.push(list);
            }
        }
        match failed {
            Some(error) => Err(error),
            None => self.drain(rest),
        }
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
