//! Opening series for reading, in a snapshot or in a write transaction.

use crate::catalog::entries::{self, SeriesInfo, SeriesKey};
use crate::series::helpers::Helpers;
use crate::series::read::Series;
use crate::txn::leaves::{stored_last_row, stored_tree};
use crate::txn::pages::ReadSource;
use crate::txn::read::{CommitCache, Reading};
use crate::txn::series_cache::OpenedSeries;
use crate::types::error::Result;
use crate::types::interval::EVER;
use crate::types::name::SeriesName;
use crate::types::row::Row;
use std::sync::Arc;
use tidalite_base::SeriesId;
use tidalite_codec::{ColumnType as WordType, Rows};
use tidalite_pager::{PageRead, Snapshot};
use tidalite_series::View;

impl<S: ReadSource> Reading<S> {
    /// Opens the series with this name; returns `None` if it does not exist.
    ///
    /// # Errors
    /// `InvalidName` for an invalid name; a damaged or unreadable page.
    pub fn series(&self, name: &str) -> Result<Option<Series<'_>>> {
        if let Some(info) = self.cache.catalog.by_name(name) {
            return self.open_series(info).map(Some);
        }
        let parsed = SeriesName::parse(name)?;
        let info = self.entry(SeriesKey::Name(&parsed))?;
        if let Some(info) = &info {
            self.cache.catalog.note_name(name, info);
        }
        self.opened(info)
    }

    /// Opens the series that has this GUID; returns `None` if it does not exist.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn series_of_guid(&self, guid: &[u8; 16]) -> Result<Option<Series<'_>>> {
        if let Some(info) = self.cache.catalog.by_guid(guid) {
            return self.open_series(info).map(Some);
        }
        let info = self.entry(SeriesKey::Guid(guid))?;
        if let Some(info) = &info {
            self.cache.catalog.note_guid(guid, info);
        }
        self.opened(info)
    }

    /// Opens the series with this id; returns `None` if it does not exist.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn series_by_id(&self, id: SeriesId) -> Result<Option<Series<'_>>> {
        if let Some(state) = self.kept(id) {
            return Ok(Some(self.of_state(state)));
        }
        self.opened(self.info(id)?)
    }

    /// Reads the newest row of the series with this id; returns `None` if the series has no rows or does not exist.
    /// Equals `series_by_id(id)?.latest()`, for callers that need nothing else of the series.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// If a snapshot of this commit has opened the series before, nothing is read. Otherwise two tree lookups, the end
    /// of the series' record, and the newer part of the delta: the tail page, and usually one run.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tidalite::Options;
    /// # use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let mut series = tx.series("room.temperature")?;
    /// series.insert("2014-06-01", 21.5)?;
    /// let id = series.id();
    /// tx.commit()?;
    /// let row = db.begin_read()?.latest(id)?.expect("a row");
    /// assert_eq!(row.f64(1), 21.5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn latest(&self, id: SeriesId) -> Result<Option<Row>> {
        if let Some(state) = self.kept(id) {
            return self.of_state(state).latest();
        }
        match self.word_types(id)? {
            Some(types) => self.cache.latest(&self.pages, id, &types),
            None => Ok(None),
        }
    }

    /// Reads the newest rows of these series, on the available threads, without opening the series.
    pub(crate) fn latest_of(&self, infos: &[Arc<SeriesInfo>]) -> Result<Vec<Option<Row>>> {
        /// Number of series that a thread reads at a time.
        const EACH: usize = 64;
        let cache = &*self.cache;
        let (pages, use_opened) = (self.pages.view(), !self.pages.may_end());
        match Helpers::of(&pages, cache.scan_threads).filter(|_| infos.len() > 2 * EACH) {
            Some(helpers) => {
                let pieces: Vec<_> = infos.chunks(EACH).collect();
                let read = |snapshot: &Snapshot, piece: usize| {
                    let infos = pieces[piece].iter();
                    infos
                        .map(|info| cache.latest_of(snapshot, info, use_opened))
                        .collect::<Result<Vec<_>>>()
                };
                Ok(helpers
                    .share_out(pieces.len(), read)?
                    .into_iter()
                    .flatten()
                    .collect())
            }
            None => infos
                .iter()
                .map(|info| cache.latest_of(&pages, info, use_opened))
                .collect(),
        }
    }

    /// Looks up the catalog entry for a name or a GUID.
    fn entry(&self, key: SeriesKey<'_>) -> Result<Option<Arc<SeriesInfo>>> {
        match entries::find(&self.cache.roots, &self.pages, key)? {
            Some(id) => self.info(id),
            None => Ok(None),
        }
    }

    /// Reads the storage types of a series' columns without decoding the rest of its catalog entry.
    fn word_types(&self, id: SeriesId) -> Result<Option<Vec<WordType>>> {
        match self.cache.catalog.written(id) {
            Some(info) => Ok(Some(info.schema.word_types())),
            None => entries::word_types(&self.cache.roots, &self.pages, id),
        }
    }

    fn opened(&self, info: Option<Arc<SeriesInfo>>) -> Result<Option<Series<'_>>> {
        info.map(|info| self.open_series(info)).transpose()
    }

    /// Opens a series that is in the catalog. Uses the state that a snapshot of the same commit has cached, if there is
    /// one.
    pub(crate) fn open_series(&self, info: Arc<SeriesInfo>) -> Result<Series<'_>> {
        let state = match self.kept(info.id) {
            Some(state) => state,
            None => {
                let state = Arc::new(self.series_state(info)?);
                if !self.pages.may_end() {
                    self.cache.series.note(&state);
                }
                state
            }
        };
        Ok(self.of_state(state))
    }

    fn of_state(&self, state: Arc<OpenedSeries>) -> Series<'_> {
        let threads = self.cache.scan_threads;
        Series::new(self.pages.view(), state, &self.cache.roots, threads)
    }

    /// The state of a series as cached by a snapshot of this commit. An evictable snapshot must not use it: it has to
    /// read pages, because that is how it notices its eviction.
    fn kept(&self, id: SeriesId) -> Option<Arc<OpenedSeries>> {
        match self.pages.may_end() {
            true => None,
            false => self.cache.series.get(id),
        }
    }

    fn series_state(&self, info: Arc<SeriesInfo>) -> Result<OpenedSeries> {
        let id = info.id;
        let types = info.schema.word_types();
        let tree = stored_tree(&self.cache.roots.records, &self.pages, id, &types)?;
        let mut late = Rows::new(types.len());
        self.cache
            .delta
            .rows(&self.pages, id, &types, EVER, &mut late)?;
        Ok(OpenedSeries { info, tree, late })
    }
}

impl CommitCache {
    /// Reads the newest row of a series, or takes it from the series if a snapshot of this commit has opened it.
    fn latest_of<R: PageRead>(
        &self,
        pages: &R,
        info: &SeriesInfo,
        use_opened: bool,
    ) -> Result<Option<Row>> {
        if use_opened && let Some(state) = self.series.get(info.id) {
            let view = View::new(pages, &state.tree, state.late.view());
            return Ok(view.last().map(Row::from));
        }
        self.latest(pages, info.id, &info.schema.word_types())
    }

    /// Reads the newest row of a series whose columns have these storage types.
    fn latest<R: PageRead>(
        &self,
        pages: &R,
        id: SeriesId,
        types: &[WordType],
    ) -> Result<Option<Row>> {
        let stored = stored_last_row(&self.roots.records, pages, id, types)?;
        let from = stored.as_ref().map_or(i64::MIN, |row| row.time);
        // At equal times the row in the delta is newer than the row in the leaves.
        let waiting = self.delta.latest(pages, id, types, (from, i64::MAX))?;
        let waiting = waiting.map(|(time, words)| Row { time, words });
        Ok(waiting.or(stored.map(Row::from)))
    }
}
