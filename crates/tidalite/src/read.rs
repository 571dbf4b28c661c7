//! A snapshot: everything as it was when it began, whatever is committed meanwhile.

use crate::catalog::{self, SeriesInfo, SeriesKey};
use crate::cursor::Row;
use crate::error::Result;
use crate::known::Known;
use crate::leaves::{stored_last_row, stored_tree};
use crate::multi::MultiTable;
use crate::name::{SeriesName, SeriesPattern};
use crate::open_series::Kept;
use crate::opened::{Opened, OpenedSeries};
use crate::pages::Pages;
use crate::roots::Roots;
use crate::series::{EVER, Series};
use crate::table::Table;
use crate::table_roots::find_table;
use crate::tables::expect_kind;
use arc_swap::ArcSwapOption;
use std::sync::Arc;
use tidalite_base::{SeriesId, TxnId};
use tidalite_codec::Rows;
use tidalite_pager::{Counters, PageRead, Snapshot};
use tidalite_runs::Front;

/// A snapshot of the database. Never blocks, never changes; may be shared between threads. A clone is the same
/// snapshot once more, without looking at the file.
#[derive(Clone)]
pub struct ReadTxn {
    pub(crate) pages: Snapshot,
    pub(crate) begun: Arc<Begun>,
}

/// What the newest snapshots of an open database begin with, decoded once a commit.
#[derive(Default)]
pub(crate) struct Newest {
    begun: ArcSwapOption<Begun>,
    pub(crate) kept: Arc<Kept>,
}

/// What the snapshots of one commit share.
pub(crate) struct Begun {
    txn: TxnId,
    /// The bytes that `roots` was decoded from: they tell commits of one number apart.
    app: Box<[u8]>,
    pub(crate) roots: Roots,
    pub(crate) front: Front,
    pub(crate) known: Arc<Known>,
    pub(crate) opened: Opened,
    /// See `Options::scan_threads`.
    pub(crate) scan_threads: usize,
}

impl ReadTxn {
    pub(crate) fn begin(pages: Snapshot, scan_threads: usize) -> Result<Self> {
        let roots = Roots::decode(pages.app())?;
        let known = Arc::new(Known::new(&roots, Arc::default()));
        Self::decoded(pages, roots, known, scan_threads)
    }

    fn decoded(
        pages: Snapshot,
        roots: Roots,
        known: Arc<Known>,
        scan_threads: usize,
    ) -> Result<Self> {
        let begun = Begun {
            txn: pages.txn(),
            app: pages.app().into(),
            front: Front::load(&pages, &roots.front)?,
            roots,
            known,
            opened: Opened::default(),
            scan_threads,
        };
        let begun = Arc::new(begun);
        Ok(Self { pages, begun })
    }

    /// As `begin`, without decoding again what the snapshot before has decoded.
    pub(crate) fn begin_again(
        pages: Snapshot,
        newest: &Newest,
        scan_threads: usize,
    ) -> Result<Self> {
        let begun = newest.begun.load();
        if let Some(begun) = begun.as_ref()
            && begun.txn == pages.txn()
            && *begun.app == *pages.app()
        {
            let begun = Arc::clone(begun);
            return Ok(Self { pages, begun });
        }
        let roots = Roots::decode(pages.app())?;
        let known = match begun.as_deref() {
            Some(begun) if begun.known.is_of(&roots) => Arc::clone(&begun.known),
            _ => Arc::new(Known::new(&roots, Arc::clone(&newest.kept))),
        };
        let own = Self::decoded(pages, roots, known, scan_threads)?;
        newest.begun.store(Some(Arc::clone(&own.begun)));
        Ok(own)
    }

    /// The number of the newest commit that this snapshot shows.
    #[must_use]
    pub fn txn(&self) -> TxnId {
        self.pages.txn()
    }

    /// The user data of that commit, see [`WriteTxn::set_user_data`](crate::WriteTxn::set_user_data).
    #[must_use]
    pub fn user_data(&self) -> &[u8] {
        self.pages.user_data()
    }

    /// The series with this name.
    ///
    /// # Errors
    /// `Name` for a text that is no name; a damaged or unreadable page.
    pub fn series(&self, name: &str) -> Result<Option<Series<'_>>> {
        if let Some(info) = self.begun.known.by_name(name) {
            return self.open_series(info);
        }
        let parsed = SeriesName::parse(name)?;
        let info = self.entry(SeriesKey::Name(&parsed))?;
        if let Some(info) = &info {
            self.begun.known.note_name(name, info);
        }
        self.opened(info)
    }

    /// The series that a GUID identifies.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn series_of_guid(&self, guid: &[u8; 16]) -> Result<Option<Series<'_>>> {
        if let Some(info) = self.begun.known.by_guid(guid) {
            return self.open_series(info);
        }
        let info = self.entry(SeriesKey::Guid(guid))?;
        if let Some(info) = &info {
            self.begun.known.note_guid(guid, info);
        }
        self.opened(info)
    }

    /// The series with this number.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn series_by_id(&self, id: SeriesId) -> Result<Option<Series<'_>>> {
        if let Some(state) = self.kept(id) {
            return Ok(Some(self.of_state(state)));
        }
        self.opened(self.info(id)?)
    }

    /// The newest row of the series with this number; `None` without rows, and without such a series. As
    /// `series_by_id(id)?.latest()` tells it, for who wants nothing else of the series.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// What a snapshot of this commit has opened is at hand. Else two lookups in trees, of the record only the end, and of the front what
    /// may be newer than that: the tail page, and mostly one run.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tidalite::{MemoryStorage, Options};
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
        let Some(info) = self.info(id)? else {
            return Ok(None);
        };
        let (begun, types) = (&*self.begun, info.schema.word_types());
        let stored = stored_last_row(&begun.roots.records, &self.pages, id, &types)?;
        let from = stored.as_ref().map_or(i64::MIN, |row| row.time);
        // Of equal times, that in the front is newer.
        let waiting = begun
            .front
            .latest(&self.pages, id, &types, (from, i64::MAX))?;
        let waiting = waiting.map(|(time, words)| Row { time, words });
        Ok(waiting.or(stored.map(Row::from)))
    }

    /// The series that a pattern selects, ordered by id: a glob over the metric and exact tags, such as
    /// `hb.*{turbine="R80711"}`; the empty text selects all. Walks the whole catalog.
    ///
    /// # Errors
    /// `Name` for a text that is no pattern; a damaged or unreadable page.
    pub fn list(&self, pattern: &str) -> Result<Vec<Arc<SeriesInfo>>> {
        catalog::list(
            &self.begun.roots,
            &self.pages,
            &SeriesPattern::parse(pattern)?,
        )
    }

    /// The table with this name.
    ///
    /// # Errors
    /// `TableKind` for a table of multi-values; a damaged or unreadable page.
    pub fn table(&self, name: &str) -> Result<Option<Table<'_>>> {
        if name.is_empty() || name.len() > crate::write::TABLE_NAME_BYTES_MAX {
            return Ok(None);
        }
        let found = find_table(&self.begun.roots, &self.pages, name)?;
        let found = expect_kind(found, name, false)?;
        Ok(found.map(|(_, tree)| Table::new(Pages::Snapshot(&self.pages), tree)))
    }

    /// The table of multi-values with this name.
    ///
    /// # Errors
    /// `TableKind` for a table that has one value a key; a damaged or unreadable page.
    pub fn multi_table(&self, name: &str) -> Result<Option<MultiTable<'_>>> {
        if name.is_empty() || name.len() > crate::write::TABLE_NAME_BYTES_MAX {
            return Ok(None);
        }
        let found = find_table(&self.begun.roots, &self.pages, name)?;
        let found = expect_kind(found, name, true)?;
        Ok(found.map(|(_, tree)| MultiTable::new(Pages::Snapshot(&self.pages), tree)))
    }

    /// Whether the table with this name has multi-values; `None` without one.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn is_multi_table(&self, name: &str) -> Result<Option<bool>> {
        let found = find_table(&self.begun.roots, &self.pages, name)?;
        Ok(found.map(|(_, tree)| tree.is_multi()))
    }

    /// The names of all tables, in order.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn tables(&self) -> Result<Vec<String>> {
        crate::tables::names(&self.begun.roots, &self.pages)
    }

    /// Bytes of the file as of this snapshot.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.pages.file_bytes()
    }

    /// What this snapshot read so far: pages, blocks, nodes, vectors.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        self.pages.counters()
    }

    /// The entry of the catalog that a name or a GUID leads to.
    fn entry(&self, key: SeriesKey<'_>) -> Result<Option<Arc<SeriesInfo>>> {
        match catalog::find(&self.begun.roots, &self.pages, key)? {
            Some(id) => self.info(id),
            None => Ok(None),
        }
    }

    fn info(&self, id: SeriesId) -> Result<Option<Arc<SeriesInfo>>> {
        let stored = || catalog::info(&self.begun.roots, &self.pages, id);
        let written = self.begun.known.written(id);
        debug_assert!(
            written.is_none() || stored().is_ok_and(|stored| stored == written),
            "what the writer knew of {id} is what it stored"
        );
        written.map_or_else(stored, |info| Ok(Some(info)))
    }

    fn opened(&self, info: Option<Arc<SeriesInfo>>) -> Result<Option<Series<'_>>> {
        info.map_or(Ok(None), |info| self.open_series(info))
    }

    /// Opens a series of the catalog, unless a snapshot of this commit has done so.
    pub(crate) fn open_series(&self, info: Arc<SeriesInfo>) -> Result<Option<Series<'_>>> {
        let state = match self.kept(info.id) {
            Some(state) => state,
            None => {
                let state = Arc::new(self.series_state(info)?);
                if !self.pages.is_evictable() {
                    self.begun.opened.note(&state);
                }
                state
            }
        };
        Ok(Some(self.of_state(state)))
    }

    fn of_state(&self, state: Arc<OpenedSeries>) -> Series<'_> {
        let pages = Pages::Snapshot(&self.pages);
        Series::new(pages, state, &self.begun.roots, self.begun.scan_threads)
    }

    /// What a snapshot of this commit has decoded of a series. One that may be taken away has to read what it tells.
    fn kept(&self, id: SeriesId) -> Option<Arc<OpenedSeries>> {
        match self.pages.is_evictable() {
            true => None,
            false => self.begun.opened.get(id),
        }
    }

    fn series_state(&self, info: Arc<SeriesInfo>) -> Result<OpenedSeries> {
        let id = info.id;
        let types = info.schema.word_types();
        let tree = stored_tree(&self.begun.roots.records, &self.pages, id, &types)?;
        let mut late = Rows::new(types.len());
        self.begun
            .front
            .rows(&self.pages, id, &types, EVER, &mut late)?;
        Ok(OpenedSeries { info, tree, late })
    }
}
