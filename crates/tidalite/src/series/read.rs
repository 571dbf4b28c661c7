//! A series for reading: intervals, aggregates, windows, vectors, cursors.
//!
//! Every query covers the rows in the tree and the late rows: those in the delta or in the open transaction. Late rows
//! are collected once, when the series is opened, and laid over the tree.

use crate::catalog::entries::SeriesInfo;
use crate::catalog::roots::Roots;
use crate::catalog::texts::{self, TextCache};
use crate::series::cursor::Cursor;
use crate::series::helpers::Helpers;
use crate::txn::pages::Pages;
use crate::txn::series_cache::OpenedSeries;
use crate::types::error::Result;
use crate::types::row::Row;
use crate::types::value::Value;
use std::sync::{Arc, Mutex, PoisonError};
use tidalite_base::SeriesId;
use tidalite_kv::Tree;
use tidalite_pager::Snapshot;
use tidalite_series::View;

/// An opened series without its source of pages, so that another thread can read it through another snapshot.
pub(crate) struct Movable {
    state: Arc<OpenedSeries>,
    texts: Tree,
    annotations: Tree,
}

impl Movable {
    /// The series, read through a snapshot of the same commit; its queries use no helper threads.
    pub(crate) fn on<'a>(&self, snapshot: &'a Snapshot) -> Series<'a> {
        let own = Self {
            state: Arc::clone(&self.state),
            ..*self
        };
        own.over(Pages::Snapshot(snapshot))
    }

    fn over(self, pages: Pages<'_>) -> Series<'_> {
        Series {
            pages,
            state: self.state,
            texts: self.texts,
            annotations: self.annotations,
            text_cache: Mutex::default(),
            scan_threads: 0,
        }
    }
}

/// A series in a snapshot, or in the current state of a write transaction.
pub struct Series<'a> {
    pages: Pages<'a>,
    pub(crate) state: Arc<OpenedSeries>,
    texts: Tree,
    pub(crate) annotations: Tree,
    text_cache: Mutex<TextCache>,
    /// Maximum number of helper threads for a query.
    scan_threads: usize,
}

impl<'a> Series<'a> {
    pub(crate) fn new(
        pages: Pages<'a>,
        state: Arc<OpenedSeries>,
        roots: &Roots,
        scan_threads: usize,
    ) -> Self {
        let movable = Movable {
            state,
            texts: roots.texts,
            annotations: roots.annotations,
        };
        Self {
            scan_threads,
            ..movable.over(pages)
        }
    }

    /// Returns the series with this maximum number of helper threads for a query.
    pub(crate) fn with_helpers(self, scan_threads: usize) -> Self {
        Self {
            scan_threads,
            ..self
        }
    }

    /// The data that another thread needs to read the series through a snapshot of its own.
    pub(crate) fn movable(&self) -> Movable {
        Movable {
            state: Arc::clone(&self.state),
            texts: self.texts,
            annotations: self.annotations,
        }
    }

    /// The helper threads for a query; `None` if the query may not use any.
    pub(crate) fn helpers(&self) -> Option<Helpers<'a>> {
        Helpers::of(&self.pages, self.scan_threads)
    }

    pub(crate) fn pages(&self) -> &Pages<'a> {
        &self.pages
    }

    /// Name, schema and id of the series.
    #[must_use]
    pub fn info(&self) -> &SeriesInfo {
        &self.state.info
    }

    /// Id of the series in this file.
    #[must_use]
    pub fn id(&self) -> SeriesId {
        self.state.info.id
    }

    /// Times of the first and the last row; `None` if there are no rows. Reads nothing.
    #[must_use]
    pub fn span(&self) -> Option<(i64, i64)> {
        self.view().span()
    }

    /// Size in bytes of the series' leaves; rows in the delta are not counted. Reads nothing.
    #[must_use]
    pub fn stored_bytes(&self) -> u64 {
        self.state.tree.stored_bytes()
    }

    /// Number of rows that are not in leaves yet: in the delta, or in the transaction that this is a view of.
    #[must_use]
    pub fn waiting_rows(&self) -> u64 {
        self.state.late.len() as u64
    }

    /// Number of levels of the series' tree above the leaves.
    #[must_use]
    pub fn height(&self) -> u8 {
        self.state.tree.height()
    }

    /// The newest row; `None` if there are no rows. Reads nothing, because the statistics of a column include its last
    /// word.
    ///
    /// For many series, [`ReadTxn::latest`](crate::ReadTxn::latest) avoids opening them.
    ///
    /// # Errors
    /// No error is possible at present.
    pub fn latest(&self) -> Result<Option<Row>> {
        Ok(self.view().last().map(Row::from))
    }

    /// Decodes the words of a row to the values of its columns.
    ///
    /// # Errors
    /// A damaged or unreadable block.
    ///
    /// # Panics
    /// If the row belongs to a series with more columns.
    pub fn values(&self, row: &Row) -> Result<Vec<Value>> {
        let words = row.words.iter().enumerate();
        words.map(|(c, &word)| self.value(c, word)).collect()
    }

    /// Decodes the word of a value in a column.
    ///
    /// # Errors
    /// A damaged or unreadable block; a missing text.
    ///
    /// # Panics
    /// If the column does not exist.
    ///
    /// # Cost
    /// A text needs a lookup, and for a long text up to 32 KiB are unpacked; the last block read is cached.
    pub fn value(&self, column: usize, word: u64) -> Result<Value> {
        let own = &self.state.info.schema.columns[column];
        if !own.ty.is_text() || own.is_null(word) {
            return Ok(own.value(word));
        }
        own.of_text(self.text(column, word)?)
    }

    /// Reads the bytes of the text that a word stands for. The word must not be null.
    pub(crate) fn text(&self, column: usize, word: u64) -> Result<Vec<u8>> {
        let mut cache = self
            .text_cache
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        cache.text(&self.pages, &self.texts, (self.state.info.id, column), word)
    }

    /// Whether a word of this version and one of another version of the series have equal values in a column: numbers
    /// are compared by their bits, texts by content, because a text may have several words.
    pub(crate) fn says_the_same(
        &self,
        column: usize,
        word: u64,
        (other, its): (&Self, u64),
    ) -> Result<bool> {
        if word == its || !self.state.info.schema.columns[column].ty.is_text() {
            return Ok(word == its);
        }
        texts::are_equal([word, its], |place| match place {
            0 => self.text(column, word),
            _ => other.text(column, its),
        })
    }

    /// Returns a cursor before the first row.
    #[must_use]
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor {
            inner: self.view().cursor(),
            unit: self.state.info.schema.unit,
        }
    }

    /// Adds to `ranges` the spans of times in which the leaves of this version may differ from the older version
    /// `base`.
    pub(crate) fn leaves_changed_since(
        &self,
        base: &Self,
        ranges: &mut Vec<(i64, i64)>,
    ) -> Result<()> {
        let add = |from, to| {
            ranges.push((from, to));
            Ok(())
        };
        Ok(self
            .state
            .tree
            .changed_since(&self.pages, &base.state.tree, &base.pages, add)?)
    }

    pub(crate) fn view(&self) -> View<'_, Pages<'a>> {
        View::new(&self.pages, &self.state.tree, self.state.late.view())
    }
}
