//! Links rows of several threads. Each thread encodes its own rows, and calls the writer for operations that touch
//! pages.
//!
//! ```text
//! a thread   group its part | begin |  encode   | link | begin |  encode  | link | ...
//! another    group its part         | begin |  encode   | link | ...
//!                                ^-- one thread at a time: check the delta, copy bytes
//! ```
//!
//! Appenders, each with its own write buffer, work like this, too. They encode rows that do not justify leaves as
//! blocks of a run (`blocks.rs`). Helper threads of a transaction do not call the writer: the transaction collects
//! their results (`helpers.rs`).
//!
//! Invariant: rows of a series come from one thread at a time, in order. If several threads have rows of one series
//! with equal times, it is unspecified which row counts as newer.

use crate::buffer::write_buffer::WriteBuffer;
use crate::delta::Delta;
use crate::link::overlap::OverlapCheck;
use crate::link::sink::EncodingSink;
use crate::run::tail::expect_series;
use tidalite_base::SeriesId;
use tidalite_codec::{ColumnType, RowsRef};
use tidalite_pager::{Error, PageWrite, Result};

/// The writer's state, to which one thread at a time has access.
pub struct Linking<'a, W, S> {
    delta: &'a mut Delta,
    pages: &'a mut W,
    sink: &'a mut S,
    /// Buffered rows of the writer, which are newer than all rows of the leaves and of the delta.
    buffered: Option<&'a WriteBuffer>,
    overlap: &'a mut Option<OverlapCheck>,
}

/// Access to the writer for helper threads.
pub trait Linker: Sync {
    /// The writer's pages.
    type Pages: PageWrite;
    /// Receives rows that are ready to become leaves.
    type Sink: EncodingSink<Self::Pages>;
    /// The error type of the writer.
    type Error: From<Error> + Send;

    /// Runs `f` with the writer's state, to which no other thread has access meanwhile.
    ///
    /// # Errors
    /// Errors of `f`; the transaction is then poisoned.
    fn with<T>(
        &self,
        f: impl FnOnce(&mut Linking<'_, Self::Pages, Self::Sink>) -> Result<T>,
    ) -> Result<T, Self::Error>;
}

/// Buffer type for the encoded rows of a linker's threads.
pub(crate) type EncodedOf<L> = <<L as Linker>::Sink as EncodingSink<<L as Linker>::Pages>>::Encoded;

/// The outcome of linking rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linked {
    /// The rows came after all existing rows.
    Behind,
    /// The rows were placed among existing rows.
    Among,
    /// The rows are empty or may not be linked.
    No,
}

/// Encodes rows and links them.
pub(crate) fn encode_and_link<L: Linker>(
    linker: &L,
    (series, types): (SeriesId, &[ColumnType]),
    rows: RowsRef<'_>,
    encoded: &mut EncodedOf<L>,
) -> Result<Linked, L::Error> {
    let (Some(&first), Some(&last)) = (rows.times().first(), rows.times().last()) else {
        return Ok(Linked::No);
    };
    debug_assert!(first <= last, "rows are sorted by time");
    let place = (series, types);
    if !linker.with(|writer| writer.begin(place, (first, last), encoded))? {
        return Ok(Linked::No);
    }
    L::Sink::encode(types, rows, encoded);
    let behind = linker.with(|writer| writer.link(place, rows, encoded))?;
    Ok(if behind {
        Linked::Behind
    } else {
        Linked::Among
    })
}

impl<'a, W: PageWrite, S: EncodingSink<W>> Linking<'a, W, S> {
    /// Bundles the writer's state. `buffered` holds rows besides the linking threads' own; `overlap` is kept
    /// between calls, and must be reset to `None` whenever the delta changes otherwise.
    pub fn new(
        delta: &'a mut Delta,
        pages: &'a mut W,
        sink: &'a mut S,
        buffered: Option<&'a WriteBuffer>,
        overlap: &'a mut Option<OverlapCheck>,
    ) -> Self {
        Self {
            delta,
            pages,
            sink,
            buffered,
            overlap,
        }
    }

    /// The class of a layout with rows that will not be linked.
    pub(crate) fn class(&mut self, types: &[ColumnType]) -> Result<u32> {
        self.delta.add_class(types)
    }

    fn begin(
        &mut self,
        (series, types): (SeriesId, &[ColumnType]),
        (first, last): (i64, i64),
        encoded: &mut S::Encoded,
    ) -> Result<bool> {
        expect_series(series)?;
        let buffered = self
            .buffered
            .and_then(|buffered| Some((buffered, buffered.find(series)?)));
        if buffered.is_some_and(|(buffered, slot)| buffered.has_rows(slot)) {
            return Ok(false);
        }
        // A layout without a class was never stored here, so no rows can overlap.
        if let Some(class) = self.delta.class_of(types) {
            let delta = &*self.delta;
            let overlap = self
                .overlap
                .get_or_insert_with(|| OverlapCheck::new(delta, 0, true));
            if overlap.overlaps(self.pages, (class, series), first, last)? {
                return Ok(false);
            }
        }
        self.sink.begin(self.pages, series, types, encoded)?;
        Ok(true)
    }

    fn link(
        &mut self,
        (series, types): (SeriesId, &[ColumnType]),
        rows: RowsRef<'_>,
        encoded: &S::Encoded,
    ) -> Result<bool> {
        self.delta
            .note_linked(series, rows.len(), rows.column_count());
        if self.sink.link_encoded(self.pages, series, types, encoded)? {
            self.delta.work.rows_encoded_by_helpers += rows.len() as u64;
            return Ok(true);
        }
        self.sink.link(self.pages, series, types, rows)
    }
}
