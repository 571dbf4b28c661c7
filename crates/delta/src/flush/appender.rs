//! Groups and encodes buffered rows in a thread other than the writer thread.
//!
//! Such a thread encodes rows without access to the writer. Through `Linker` the thread checks before the encoding
//! whether the delta has older rows in the same time span, and links the encoded rows afterwards. Rows that may not be
//! linked stay in the write buffer, and so do the rows of a series that do not fill a whole vector. When the write
//! buffer is emptied at the end, many of the rows that stayed become blocks of a run (`blocks.rs`).

use crate::buffer::group::{Group, Grouped};
use crate::buffer::write_buffer::{Ready, WriteBuffer};
use crate::flush::blocks::Blocks;
use crate::flush::linker::{EncodedOf, Linked, Linker, encode_and_link};
use crate::link::threshold::{
    BULK_REST_ROWS_MIN, LINKED_ROWS_MIN, Take, linkable_of, whole_vectors,
};
use tidalite_base::SeriesId;
use tidalite_base::limits::VECTOR_ROWS;
use tidalite_codec::{ColumnType, RowsRef};
use tidalite_pager::Error;

/// Minimum size in bytes of the rows that a thread encodes as blocks of a run itself. Fewer rows are passed to the
/// writer: they may fit into the tail page, and as a separate run they would soon be merged with other runs.
const BLOCKS_BYTES_MIN: usize = 1 << 20;

impl WriteBuffer {
    /// Installs the whole vectors of each series as leaves where the delta has no overlapping rows; `only` restricts
    /// this to one layout. Other rows, and rows of series with overlays, stay in the write buffer.
    fn link_whole<L: Linker>(&mut self, linker: &L, only: Option<usize>) -> Result<(), L::Error> {
        let mut encoded = EncodedOf::<L>::default();
        for layout in 0..self.logs.len() {
            if only.is_some_and(|only| only != layout) {
                continue;
            }
            let types = self.logs[layout].types.clone();
            let mut failed = None;
            let (mut follow, mut any) = (true, false);
            self.group(layout, false, |Group { series, rows }| {
                let whole = rows.slice(0..whole_vectors(rows));
                if failed.is_some() || whole.is_empty() {
                    return Ok(0);
                }
                match encode_and_link(linker, (series, &types), whole, &mut encoded) {
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

    /// Installs the rows that are ready as leaves, after `push` or `append` has returned true, in the write buffer of
    /// a helper thread. Returns true if rows that may not become leaves use up the memory budget; the caller must
    /// then take these rows out.
    ///
    /// # Errors
    /// Errors of the linker; the transaction must then be rolled back.
    pub fn flush<L: Linker>(&mut self, linker: &L) -> Result<bool, L::Error> {
        loop {
            match self.ready() {
                Ready::Nothing => return Ok(false),
                Ready::Leaf(layout) => {
                    let mut encoded = EncodedOf::<L>::default();
                    let linked = self.with_leaf(layout, |series, types, rows| {
                        encode_and_link(linker, (series, types), rows, &mut encoded)
                    })?;
                    if linked == Linked::No {
                        self.leaf_refused(layout);
                    } else {
                        self.linked = true;
                        self.leaf_linked(layout);
                    }
                }
                Ready::RoundRobin(layout) => self.link_whole(linker, Some(layout))?,
                Ready::Budget => {
                    self.link_whole(linker, None)?;
                    if self.bytes() > self.budget_bytes() / 2 {
                        return Ok(true);
                    }
                }
            }
        }
    }

    /// Whether the rows that `end` would neither install as leaves nor leave to the tail page are enough for separate
    /// blocks of a run. Repeated times are counted as often as they were pushed.
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

    /// Maximum number of rows of a series that go into blocks. If leaves already have rows of the series, a shorter
    /// remainder may justify a leaf, which the commit adds.
    fn rest_rows_max(&self) -> usize {
        match self.linked {
            true => BULK_REST_ROWS_MIN - 1,
            false => LINKED_ROWS_MIN - 1,
        }
    }

    /// Empties the write buffer at the end of its use. Rows that justify a leaf become one if the delta has no
    /// overlapping rows. Short remainders of series are added to `blocks`, if `blocks` is given; in this case no
    /// other write buffer may have rows of these series. `rest` receives all remaining rows, series by series, sorted
    /// by time within a series.
    ///
    /// # Errors
    /// Errors of the linker and of `rest`; the remaining rows are then lost, and the transaction must be rolled back.
    pub fn end<L: Linker>(
        &mut self,
        linker: &L,
        mut blocks: Option<&mut Vec<Blocks>>,
        mut rest: impl FnMut(SeriesId, &[ColumnType], RowsRef<'_>) -> Result<(), L::Error>,
    ) -> Result<(), L::Error> {
        let mut encoded = EncodedOf::<L>::default();
        let mut failed = None;
        let rest_rows_max = self.rest_rows_max();
        for layout in 0..self.logs.len() {
            if self.logs[layout].slots.is_empty() {
                continue;
            }
            let types = self.logs[layout].types.clone();
            let as_blocks = blocks.is_some();
            let few = if as_blocks { rest_rows_max } else { 0 };
            let (mut list, learned) = (None, self.run_encoder_states(&types));
            // A layout gets its class (its number in the delta) only when it has rows for the delta.
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
                    let mut flush_amount = || {
                        let series = match grouped {
                            Grouped::One(Group { series, .. }) => series,
                            Grouped::Few { series, .. } => return encode(series, rows),
                        };
                        let mut taken = Take::AtCommit.of(rows);
                        if taken > 0 {
                            let part = rows.slice(0..taken);
                            match encode_and_link(linker, (series, &types), part, &mut encoded)? {
                                Linked::No => taken = 0,
                                Linked::Behind | Linked::Among => {}
                            }
                        }
                        debug_assert!(
                            taken <= rows.len(),
                            "no more rows are linked than there are"
                        );
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
                    failed = flush_amount().err();
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

    /// Empties the write buffer: passes all rows to `f`, series by series, sorted by time within a series.
    ///
    /// # Errors
    /// Errors of `f`; the remaining rows are then lost.
    pub fn drain<E: From<Error>>(
        &mut self,
        mut f: impl FnMut(SeriesId, &[ColumnType], RowsRef<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut failed = None;
        for layout in 0..self.logs.len() {
            let types = self.logs[layout].types.clone();
            self.group(layout, true, |group| {
                if failed.is_none() {
                    failed = f(group.series, &types, group.rows).err();
                }
                Ok(group.rows.len())
            })?;
        }
        self.grouped();
        debug_assert!(self.is_empty(), "every row was passed on");
        failed.map_or(Ok(()), Err)
    }
}
