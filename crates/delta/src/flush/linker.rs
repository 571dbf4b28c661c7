//! Links rows of several threads, that is, installs them as leaves. Each thread encodes its own rows, and calls the
//! writer for operations that touch pages.
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
    /// Rows in the writer's own buffer, which are newer than all rows of the leaves and of the delta.
    buffered: Option<&'a WriteBuffer>,
    overlap: &'a mut Option<OverlapCheck>,
}

/// Gives helper threads access to the state of the writer, one thread at a time.
pub trait Linker: Sync {
    /// Type through which the writer reads and writes pages.
    type Pages: PageWrite;
    /// Type that receives rows that are ready to become leaves.
    type Sink: EncodingSink<Self::Pages>;
    /// Type of the errors that the writer returns.
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

/// Type of the encoded rows that a thread passes to the sink of linker `L`.
pub(crate) type EncodedOf<L> = <<L as Linker>::Sink as EncodingSink<<L as Linker>::Pages>>::Encoded;

/// Outcome of an attempt to install rows as leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linked {
    /// The rows came after all existing rows of the series.
    Behind,
    /// The rows were inserted among existing rows of the series.
    Among,
    /// There were no rows, or the delta has older rows within their time span.
    No,
}

/// Encodes rows and installs them as leaves, unless the delta has older rows within their time span.
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
    /// Bundles the writer's state. `buffered` has rows of the writer in addition to the rows of the linking threads;
    /// `overlap` is kept between calls, and must be reset to `None` whenever the delta changes in another way.
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

    /// The class (number in the delta) of a layout with rows that will go to the delta.
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
        // A layout without a class was never stored in the delta, so no rows of the delta can overlap.
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
