//! A series for readers: intervals, aggregates, windows, vectors, cursor.
//!
//! Every query covers rows in the tree and rows in the delta (or in the open transaction) alike: the latter are
//! collected once, when the series is opened, and laid over the tree.

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

/// A series without the pages that it is read from.
pub(crate) struct Movable {
    state: Arc<OpenedSeries>,
    texts: Tree,
    annotations: Tree,
}

impl Movable {
    /// The series, read through a snapshot of the same commit, without helpers.
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
    /// Maximum number of helper threads of a query.
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

    /// The series, with at most this many helper threads for a query.
    pub(crate) fn with_helpers(self, scan_threads: usize) -> Self {
        Self {
            scan_threads,
            ..self
        }
    }

    /// The data that another thread needs to read the series through its own snapshot.
    pub(crate) fn movable(&self) -> Movable {
        Movable {
            state: Arc::clone(&self.state),
            texts: self.texts,
            annotations: self.annotations,
        }
    }

    /// The helpers of a query.
    pub(crate) fn helpers(&self) -> Option<Helpers<'a>> {
        Helpers::of(&self.pages, self.scan_threads)
    }

    pub(crate) fn pages(&self) -> &Pages<'a> {
        &self.pages
    }

    /// Name, schema, id.
    #[must_use]
    pub fn info(&self) -> &SeriesInfo {
        &self.state.info
    }

    /// The series id in this file.
    #[must_use]
    pub fn id(&self) -> SeriesId {
        self.state.info.id
    }

    /// First and last timestamp. Reads nothing.
    #[must_use]
    pub fn span(&self) -> Option<(i64, i64)> {
        self.view().span()
    }

    /// Size of its leaves in bytes, without the delta. Reads nothing.
    #[must_use]
    pub fn stored_bytes(&self) -> u64 {
        self.state.tree.stored_bytes()
    }

    /// Number of rows in the delta or in the transaction, not yet in a leaf.
    #[must_use]
    pub fn waiting_rows(&self) -> u64 {
        self.state.late.len() as u64
    }

    /// Levels of the tree above the leaves.
    #[must_use]
    pub fn height(&self) -> u8 {
        self.state.tree.height()
    }

    /// The newest row. Reads nothing: the statistics of a column include its last word.
    ///
    /// For many series, [`ReadTxn::latest`](crate::ReadTxn::latest) avoids opening them.
    ///
    /// # Errors
    /// None at present.
    pub fn latest(&self) -> Result<Option<Row>> {
        Ok(self.view().last().map(Row::from))
    }

    /// The values of a row.
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

    /// Decodes a word of a column.
    ///
    /// # Errors
    /// A damaged or unreadable block; a missing text.
    ///
    /// # Panics
    /// If the column does not exist.
    ///
    /// # Cost
    /// For a text a lookup, and up to 32 KiB to unpack for a long one; the last block read is cached.
    pub fn value(&self, column: usize, word: u64) -> Result<Value> {
        let own = &self.state.info.schema.columns[column];
        if !own.ty.is_text() || own.is_null(word) {
            return Ok(own.value(word));
        }
        own.of_text(self.text(column, word)?)
    }

    /// The bytes of a text, for a word that is not null.
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

    /// A cursor before the first row.
    #[must_use]
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor {
            inner: self.view().cursor(),
            unit: self.state.info.schema.unit,
        }
    }

    /// The times in which the leaves of this version may differ from an older one's.
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
