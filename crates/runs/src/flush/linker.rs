//! Several threads link rows: each encodes by itself, and turns to the writer for what touches pages.
//!
//! ```text
//! a thread   group its part | begin |  encode   | link | begin |  encode  | link | ...
//! another    group its part         | begin |  encode   | link | ...
//!                                ^-- under the writer's lock: a look at the front, copying bytes
//! ```
//!
//! So do appenders, each of which has staging of its own; what is not worth leaves they encode as blocks of a run (`blocks.rs`). The
//! threads that a transaction has beside its own do not turn to it: it comes for what they have encoded (`helpers.rs`).
//!
//! Invariant: a series' rows come from one thread at a time in their order. Where several threads have rows of one series, which
//! of two at the same time is the newer is nobody's to say.

use crate::buffer::staging::Staging;
use crate::front::Front;
use crate::link::obstacles::Obstacles;
use crate::link::sink::SealingSink;
use crate::run::tail::expect_series;
use tidalite_base::SeriesId;
use tidalite_codec::{ColumnType, RowsRef};
use tidalite_pager::{Error, PageWrite, Result};

/// What the writer's lock covers.
pub struct Linking<'a, W, S> {
    front: &'a mut Front,
    pages: &'a mut W,
    sink: &'a mut S,
    /// Rows that are newer than everything in the series and in the front.
    staged: Option<&'a Staging>,
    obstacles: &'a mut Option<Obstacles>,
}

/// The writer, as a thread beside it reaches it.
pub trait Linker: Sync {
    /// Its pages.
    type Pages: PageWrite;
    /// Where finished stretches go.
    type Sink: SealingSink<Self::Pages>;
    /// What may go wrong.
    type Error: From<Error> + Send;

    /// Runs something while no other thread does.
    ///
    /// # Errors
    /// Those of `f`; the transaction is broken then.
    fn with<T>(
        &self,
        f: impl FnOnce(&mut Linking<'_, Self::Pages, Self::Sink>) -> Result<T>,
    ) -> Result<T, Self::Error>;
}

/// What a linker's threads encode into.
pub(crate) type SealedOf<L> = <<L as Linker>::Sink as SealingSink<<L as Linker>::Pages>>::Sealed;

/// What became of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linked {
    /// Behind all that were there.
    Behind,
    /// Among others.
    Among,
    /// They may not be linked, or there are none.
    No,
}

/// Encodes rows and links them.
pub(crate) fn seal_and_link<L: Linker>(
    linker: &L,
    (series, types): (SeriesId, &[ColumnType]),
    rows: RowsRef<'_>,
    sealed: &mut SealedOf<L>,
) -> Result<Linked, L::Error> {
    let (Some(&first), Some(&last)) = (rows.times().first(), rows.times().last()) else {
        return Ok(Linked::No);
    };
    let place = (series, types);
    if !linker.with(|writer| writer.begin(place, (first, last), sealed))? {
        return Ok(Linked::No);
    }
    L::Sink::seal(types, rows, sealed);
    let behind = linker.with(|writer| writer.link(place, rows, sealed))?;
    Ok(if behind {
        Linked::Behind
    } else {
        Linked::Among
    })
}

impl<'a, W: PageWrite, S: SealingSink<W>> Linking<'a, W, S> {
    /// The writer's parts. `staged` are rows beside those of the threads that link; `obstacles` is kept between calls, and
    /// forgotten (`None`) when anything else changed the front.
    pub fn new(
        front: &'a mut Front,
        pages: &'a mut W,
        sink: &'a mut S,
        staged: Option<&'a Staging>,
        obstacles: &'a mut Option<Obstacles>,
    ) -> Self {
        Self {
            front,
            pages,
            sink,
            staged,
            obstacles,
        }
    }

    /// The class of a layout, of which there are rows that will not be linked.
    pub(crate) fn class(&mut self, types: &[ColumnType]) -> Result<u32> {
        self.front.add_class(types)
    }

    fn begin(
        &mut self,
        (series, types): (SeriesId, &[ColumnType]),
        (first, last): (i64, i64),
        sealed: &mut S::Sealed,
    ) -> Result<bool> {
        expect_series(series)?;
        let staged = self
            .staged
            .and_then(|staged| Some((staged, staged.find(series)?)));
        if staged.is_some_and(|(staged, slot)| staged.has_rows(slot)) {
            return Ok(false);
        }
        // Of a layout that was never stored here there is nothing that could be in the way.
        if let Some(class) = self.front.class_of(types) {
            let front = &*self.front;
            let obstacles = self
                .obstacles
                .get_or_insert_with(|| Obstacles::new(front, 0, true));
            if obstacles.within(self.pages, (class, series), first, last)? {
                return Ok(false);
            }
        }
        self.sink.begin(self.pages, series, types, sealed)?;
        Ok(true)
    }

    fn link(
        &mut self,
        (series, types): (SeriesId, &[ColumnType]),
        rows: RowsRef<'_>,
        sealed: &S::Sealed,
    ) -> Result<bool> {
        self.front
            .note_linked(series, rows.len(), rows.column_count());
        if self.sink.link_sealed(self.pages, series, types, sealed)? {
            self.front.work.rows_linked_beside += rows.len() as u64;
            return Ok(true);
        }
        self.sink.link(self.pages, series, types, rows)
    }
}
