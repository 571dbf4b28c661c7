//! A cursor over the rows of a series, which moves in both directions.

use crate::txn::pages::Pages;
use crate::types::error::Result;
use crate::types::instant::Instant;
use crate::types::row::Row;
use tidalite_series::Found;

/// Position of the cursor after a search with [`Cursor::seek`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SearchResult {
    /// At no row, because the series has no rows.
    Empty,
    /// At the last row before the given time; there is no row of that time.
    Less,
    /// At the row of the given time; at the last to arrive if there are several.
    Equal,
    /// At the first row, which is after the given time: there is no row at or before that time.
    Greater,
}

/// A position in a series. Each move returns the row at its new position.
pub struct Cursor<'s> {
    pub(crate) inner: tidalite_series::Cursor<'s, Pages<'s>>,
    pub(crate) unit: crate::Unit,
}

impl Cursor<'_> {
    /// Moves to the last row at or before `t`; returns `None` if there is no such row.
    ///
    /// # Errors
    /// A damaged or unreadable block; `InvalidInput` if `t` does not fit the unit.
    pub fn search(&mut self, t: impl Instant) -> Result<Option<Row>> {
        self.go_to(t)?;
        Ok(self.current())
    }

    /// Moves to the row at `t`; if there is none, to the last row before `t`; if there is none either, to the first row
    /// after `t`. Returns which of these it is. The search of the LMDB time-series engine behaves likewise.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{Options, SearchResult};
    /// use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let mut wind = tx.series("wind")?;
    /// wind.insert("2020-01-01", 1.0)?;
    /// wind.insert("2020-01-03", 3.0)?;
    /// let wind = wind.view()?;
    /// let mut cursor = wind.cursor();
    /// assert_eq!(cursor.seek("2020-01-02T12:00")?, SearchResult::Less);
    /// assert_eq!(cursor.current().map(|row| row.f64(1)), Some(1.0));
    /// assert_eq!(cursor.seek("2019-01-01")?, SearchResult::Greater);
    /// assert_eq!(cursor.current().map(|row| row.f64(1)), Some(1.0));
    /// assert_eq!(cursor.seek("2020-01-03")?, SearchResult::Equal);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for `search`.
    pub fn seek(&mut self, t: impl Instant) -> Result<SearchResult> {
        let (t, next) = t.steps_around(self.unit)?;
        Ok(match self.inner.search(t)? {
            // If `t` lies between two steps, a row at the step before `t` is not an exact match.
            Found::Exact if t == next => SearchResult::Equal,
            Found::Exact | Found::Before => SearchResult::Less,
            Found::Nothing if self.inner.first()? => SearchResult::Greater,
            Found::Nothing => SearchResult::Empty,
        })
    }

    /// Moves to the last row at or before `t`; returns whether there is one.
    pub(crate) fn go_to(&mut self, t: impl Instant) -> Result<bool> {
        Ok(self.inner.search(t.in_unit(self.unit)?)? != Found::Nothing)
    }

    /// Moves to the row with index `n`, counted from 0. If there are at most `n` rows, moves past the last row and
    /// returns `None`. The n-th row of an interval that begins at `t` has the index `series.between(..t).count()? + n`.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tidalite::{Options, Steps};
    /// # use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// # let mut tx = db.begin_write()?;
    /// # for time in 0..5000_i64 { tx.series("wind")?.insert(Steps(2 * time), 0.5)?; }
    /// # tx.commit()?;
    /// let snap = db.begin_read()?;
    /// let wind = snap.series("wind")?.expect("it is there");
    /// let mut cursor = wind.cursor();
    /// assert_eq!(cursor.nth(4000)?.map(|row| row.time), Some(8000)); // the first of a page
    /// assert_eq!(cursor.next()?.map(|row| row.time), Some(8002));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A damaged or unreadable block.
    ///
    /// # Cost
    /// Rows of the tree are counted by the numbers in its links, not read: a node per level and a vector or two are
    /// read, and the preceding vectors that late rows overlap.
    pub fn nth(&mut self, n: u64) -> Result<Option<Row>> {
        self.inner.nth(n)?;
        Ok(self.current())
    }

    /// Moves to the first row; returns `None` if there are no rows.
    ///
    /// # Errors
    /// A damaged or unreadable block. All moves of the cursor can return this error.
    pub fn first(&mut self) -> Result<Option<Row>> {
        self.inner.first()?;
        Ok(self.current())
    }

    /// Moves to the last row; returns `None` if there are no rows.
    ///
    /// # Errors
    /// A damaged or unreadable block.
    pub fn last(&mut self) -> Result<Option<Row>> {
        self.inner.last()?;
        Ok(self.current())
    }

    /// Moves to the next row; `None` after the last.
    ///
    /// # Errors
    /// A damaged or unreadable block.
    #[expect(
        clippy::should_implement_trait,
        reason = "a fallible step, not an iterator"
    )]
    pub fn next(&mut self) -> Result<Option<Row>> {
        self.inner.next()?;
        Ok(self.current())
    }

    /// Moves to the previous row; `None` before the first.
    ///
    /// # Errors
    /// A damaged or unreadable block.
    pub fn previous(&mut self) -> Result<Option<Row>> {
        self.inner.previous()?;
        Ok(self.current())
    }

    /// A copy of the row at the cursor; `None` if the cursor is at no row.
    #[must_use]
    pub fn current(&self) -> Option<Row> {
        self.inner.row().map(Row::from)
    }

    /// The time of the row at the cursor, without copying the row.
    #[must_use]
    pub fn time(&self) -> Option<i64> {
        self.inner.time()
    }
}
