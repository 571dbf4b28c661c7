//! Several threads link rows: each encodes by itself, and turns to the writer for what touches pages.
//!
//! ```text
//! a thread   group its part | begin |  encode   | link | begin |  encode  | link | ...
//! another    group its part         | begin |  encode   | link | ...
//!                                ^-- under the writer's lock: a look at the front, copying bytes
//! ```
//!
//! Invariant: a series' rows come from one thread at a time in their order. Where several threads have rows of one series, which
//! of two at the same time is the newer is nobody's to say.

use crate::front::Front;
use crate::handover::Obstacles;
use crate::run::row_bytes;
use crate::sink::SealingSink;
use crate::staging::{Ready, Staging, Take};
use crate::tail::SERIES_MAX;
use std::sync::Mutex;
use tidalite_base::SeriesId;
use tidalite_codec::{ColumnType, RowsRef};
use tidalite_pager::{Error, PageWrite, Result};

/// Staged bytes at a commit from which other threads are asked for help: to begin one costs as much as to encode some vectors.
const HELP_BYTES_MIN: usize = 1 << 20;

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

    fn begin(
        &mut self,
        (series, types): (SeriesId, &[ColumnType]),
        (first, last): (i64, i64),
        sealed: &mut S::Sealed,
    ) -> Result<bool> {
        if series.0 > SERIES_MAX {
            return Err(Error::Limit {
                what: "series id",
                found: series.0,
                limit: SERIES_MAX,
            });
        }
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
        let work = &mut self.front.work;
        work.rows_given += rows.len() as u64;
        work.rows_linked += rows.len() as u64;
        work.bytes_given += rows.len() as u64 * row_bytes(rows.column_count());
        self.front.linked.insert(series);
        self.sink
            .link_sealed(self.pages, series, types, rows, sealed)
    }
}

/// The writer's own threads.
struct Own<'a, W, S>(Mutex<Linking<'a, W, S>>);

impl<W: PageWrite + Send, S: SealingSink<W> + Send> Linker for Own<'_, W, S> {
    type Pages = W;
    type Sink = S;
    type Error = Error;

    fn with<T>(&self, f: impl FnOnce(&mut Linking<'_, W, S>) -> Result<T>) -> Result<T> {
        let Ok(mut writer) = self.0.lock() else {
            panic!("another thread has panicked while it linked rows");
        };
        f(&mut writer)
    }
}

impl Front {
    /// Links what is staged and may be linked, with the help of `threads` besides this one.
    pub(crate) fn link_staged<W: PageWrite + Send, S: SealingSink<W> + Send>(
        &mut self,
        w: &mut W,
        staging: &mut Staging,
        sink: &mut S,
        (threads, take, only): (usize, Take, Option<usize>),
    ) -> Result<()> {
        let mut obstacles = None;
        let own = Own(Mutex::new(Linking::new(
            self,
            w,
            sink,
            None,
            &mut obstacles,
        )));
        staging.link_whole(&own, threads, take, only)
    }

    /// As `flush`; when the budget is reached, `threads` besides this one group and encode.
    ///
    /// # Errors
    /// As `flush`.
    ///
    /// # Panics
    /// When one of them does.
    pub fn flush_with<W: PageWrite + Send, S: SealingSink<W> + Send>(
        &mut self,
        w: &mut W,
        staging: &mut Staging,
        sink: &mut S,
        threads: usize,
    ) -> Result<()> {
        if threads > 0 {
            match staging.ready() {
                Ready::Rounds(layout) => {
                    let what = (threads, Take::Whole, Some(layout));
                    self.link_staged(w, staging, sink, what)?;
                }
                Ready::Budget => {
                    self.link_staged(w, staging, sink, (threads, Take::Whole, None))?;
                }
                Ready::Leaf(_) | Ready::Nothing => {}
            }
        }
        self.flush(w, staging, sink)
    }

    /// Hands over everything that is staged, with the help of `threads` besides this one.
    ///
    /// # Errors
    /// As `commit`.
    ///
    /// # Panics
    /// When one of them does.
    pub fn store_with<W: PageWrite + Send, S: SealingSink<W> + Send>(
        &mut self,
        w: &mut W,
        staging: &mut Staging,
        sink: &mut S,
        threads: usize,
    ) -> Result<()> {
        if threads > 0 && staging.bytes() >= HELP_BYTES_MIN {
            self.link_staged(w, staging, sink, (threads, Take::AtCommit, None))?;
        }
        self.store(w, staging, sink)
    }
}
