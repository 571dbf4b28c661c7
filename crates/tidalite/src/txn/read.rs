//! Reading one state of the database: a snapshot, which is everything as it was when it began, whatever is committed meanwhile; or a
//! write transaction as it stood. Both answer by the code below.
//!
//! Invariants
//! 1. What is decoded in `Begun` never changes. Who shares it reads the same state.
//! 2. Of a state that may end early (an evictable snapshot, an unfinished transaction) no opened series and no table is kept: each question reads, and
//!    so learns of the end.

use crate::catalog::entries::{self as catalog, SeriesInfo, SeriesKey};
use crate::catalog::roots::Roots;
use crate::catalog::table_name::Named;
use crate::catalog::table_roots::find_table;
use crate::series::read::Series;
use crate::tables::multi::MultiTable;
use crate::tables::open::expect_kind;
use crate::tables::table::Table;
use crate::txn::catalog_cache::Known;
use crate::txn::leaves::{stored_last_row, stored_tree};
use crate::txn::open_series::Kept;
use crate::txn::series_cache::{Opened, OpenedSeries};
use crate::txn::table_cache::FoundTables;
use crate::txn::write::OpenTable;
use crate::types::error::Result;
use crate::types::interval::EVER;
use crate::types::name::{SeriesName, SeriesPattern};
use crate::types::row::Row;
use crate::types::time::Timestamp;
use arc_swap::ArcSwapOption;
use std::sync::Arc;
use tidalite_base::{SeriesId, TxnId};
use tidalite_codec::{ColumnType as WordType, Rows};
use tidalite_kv::Tree;
use tidalite_pager::{Counters, Pager, Shown, Snapshot};
use tidalite_runs::Front;

/// What a state is read by. The library has two: those of [`ReadTxn`] and of [`UncommittedRead`](crate::UncommittedRead).
pub trait ReadSource: source::Source {}

impl ReadSource for Snapshot {}
impl ReadSource for tidalite_pager::UncommittedRead {}

mod source {
    use crate::txn::pages::Pages;
    use tidalite_base::TxnId;
    use tidalite_pager::{PageRead, Snapshot, UncommittedRead};

    pub trait Source: PageRead {
        fn view(&self) -> Pages<'_>;
        fn txn(&self) -> TxnId;
        fn user_data(&self) -> &[u8];
        fn file_bytes(&self) -> u64;
        /// It may be taken away while it is held.
        fn may_end(&self) -> bool;
    }

    impl Source for Snapshot {
        fn view(&self) -> Pages<'_> {
            Pages::Snapshot(self)
        }

        fn txn(&self) -> TxnId {
            self.txn()
        }

        fn user_data(&self) -> &[u8] {
            self.user_data()
        }

        fn file_bytes(&self) -> u64 {
            self.file_bytes()
        }

        fn may_end(&self) -> bool {
            self.is_evictable()
        }
    }

    impl Source for UncommittedRead {
        fn view(&self) -> Pages<'_> {
            Pages::Uncommitted(self)
        }

        fn txn(&self) -> TxnId {
            self.txn()
        }

        fn user_data(&self) -> &[u8] {
            self.user_data()
        }

        fn file_bytes(&self) -> u64 {
            self.file_bytes()
        }

        fn may_end(&self) -> bool {
            true
        }
    }
}

/// One state of the database, for reading: see [`ReadTxn`] and [`UncommittedRead`](crate::UncommittedRead). A function that takes
/// either is generic over its source.
///
/// ```
/// # use std::sync::Arc;
/// # use tidalite::{MemoryStorage, Options};
/// use tidalite::{ReadSource, Reading};
///
/// fn entries<S: ReadSource>(state: &Reading<S>) -> tidalite::Result<u64> {
///     let mut entries = 0;
///     for name in state.tables()? {
///         entries += state.table(&name)?.map_or(0, |table| table.count());
///     }
///     Ok(entries)
/// }
///
/// let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
/// let mut tx = db.begin_write()?;
/// tx.table("config")?.put(b"speed", b"7")?;
/// assert_eq!(entries(&tx.reader()?)?, 1);
/// assert_eq!(entries(&db.begin_read()?)?, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Reading<S> {
    pub(crate) pages: S,
    pub(crate) begun: Arc<Begun>,
}

/// A snapshot of the database. Never blocks, never changes; may be shared between threads. A clone is the same
/// snapshot once more, without looking at the file.
pub type ReadTxn = Reading<Snapshot>;

/// What the newest snapshots of an open database begin with, decoded once a commit.
#[derive(Default)]
pub(crate) struct Newest {
    begun: ArcSwapOption<Begun>,
    pub(crate) kept: Arc<Kept>,
}

impl Newest {
    /// A snapshot of the commit that the last one showed, if nobody has committed since.
    #[inline]
    pub(crate) fn begin(&self, pager: &Pager) -> Result<Option<ReadTxn>> {
        let begun = self.begun.load();
        let Some((begun, shown)) = begun
            .as_ref()
            .and_then(|begun| Some((begun, begun.shown.as_ref()?)))
        else {
            return Ok(None);
        };
        let pages = pager.begin_read_as(shown)?;
        Ok(pages.map(|pages| Reading {
            pages,
            begun: Arc::clone(begun),
        }))
    }
}

/// What the snapshots of one commit share.
pub(crate) struct Begun {
    /// What it was decoded from; `None` for an unfinished transaction.
    shown: Option<Shown>,
    pub(crate) roots: Roots,
    pub(crate) front: Front,
    pub(crate) known: Arc<Known>,
    pub(crate) opened: Opened,
    tables: FoundTables,
    /// Tables that are not in the catalog as they are: those that an unfinished transaction has open.
    open: Vec<OpenTable>,
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
            shown: Some(pages.shown()),
            front: Front::load(&pages, &roots.front)?,
            roots,
            known,
            opened: Opened::default(),
            tables: FoundTables::default(),
            open: Vec::new(),
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
            && begun
                .shown
                .as_ref()
                .is_some_and(|shown| shown.is_of(&pages))
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

    /// When the commit that this shows was done, by the wall clock of who did.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tidalite::{MemoryStorage, Options, Timestamp};
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let before = Timestamp::now();
    /// let mut tx = db.begin_write()?;
    /// tx.table("config")?.put(b"speed", b"7")?;
    /// tx.commit()?;
    /// let snap = db.begin_read()?;
    /// assert!(snap.commit_time() >= before);
    /// assert_eq!(db.txn_at(snap.commit_time())?, Some((snap.txn(), snap.commit_time())));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn commit_time(&self) -> Timestamp {
        Timestamp(self.pages.commit_time_ns())
    }
}

impl<S: ReadSource> Reading<S> {
    /// A write transaction as it stands, whose rows are all in pages.
    pub(crate) fn uncommitted(pages: S, roots: Roots, open: Vec<OpenTable>) -> Result<Self> {
        let begun = Begun {
            shown: None,
            front: Front::load(&pages, &roots.front)?,
            known: Arc::new(Known::new(&roots, Arc::default())),
            roots,
            opened: Opened::default(),
            tables: FoundTables::default(),
            open,
            scan_threads: 0,
        };
        let begun = Arc::new(begun);
        Ok(Self { pages, begun })
    }

    /// The number of the newest commit that this state shows; of an unfinished transaction the one that it will have.
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
        let Some(types) = self.word_types(id)? else {
            return Ok(None);
        };
        let begun = &*self.begun;
        let stored = stored_last_row(&begun.roots.records, &self.pages, id, &types)?;
        let from = stored.as_ref().map_or(i64::MIN, |row| row.time);
        // Of equal times, that in the front is newer.
        let waiting = begun
            .front
            .latest(&self.pages, id, &types, (from, i64::MAX))?;
        let waiting = waiting.map(|(time, words)| Row { time, words });
        Ok(waiting.or(stored.map(Row::from)))
    }

    /// The series that a [pattern](SeriesPattern) selects, ordered by id: a glob over the metric and tags with the values that they may have, such as
    /// `hb.*{turbine=["R80711","R80712"]}`; the empty text selects all. Walks the whole catalog.
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

    /// A table's name and root.
    fn find(&self, name: &str) -> Result<Option<(Named<'_>, Tree)>> {
        match self.begun.open.iter().find(|open| open.name == name) {
            Some(open) => Ok(Some((Named::Lent(&open.name), open.tree))),
            None if name.is_empty() || name.len() > crate::txn::write::TABLE_NAME_BYTES_MAX => {
                Ok(None)
            }
            // One that may be taken away has to read what it tells.
            None if self.pages.may_end() => self.look_for(name),
            None => self.find_kept(name),
        }
    }

    /// As `find`, by what a snapshot of this commit has found.
    fn find_kept(&self, name: &str) -> Result<Option<(Named<'_>, Tree)>> {
        let kept = &self.begun.tables;
        if let Some((name, tree)) = kept.get(name) {
            return Ok(Some((Named::Lent(name), tree)));
        }
        let found = self.look_for(name)?;
        if let Some((_, tree)) = found {
            kept.note(name, tree);
        }
        Ok(found)
    }

    /// As `find`, in the catalog.
    fn look_for(&self, name: &str) -> Result<Option<(Named<'_>, Tree)>> {
        let found = find_table(&self.begun.roots, &self.pages, name)?;
        Ok(found.map(|(_, tree)| (Named::of(name), tree)))
    }

    /// The table with this name.
    ///
    /// # Errors
    /// `TableKind` for a table of multi-values; a damaged or unreadable page.
    pub fn table(&self, name: &str) -> Result<Option<Table<'_>>> {
        let found = expect_kind(self.find(name)?, name, false)?;
        Ok(found.map(|(named, tree)| Table::new(self.pages.view(), tree, named)))
    }

    /// The table of multi-values with this name.
    ///
    /// # Errors
    /// `TableKind` for a table that has one value a key; a damaged or unreadable page.
    pub fn multi_table(&self, name: &str) -> Result<Option<MultiTable<'_>>> {
        let found = expect_kind(self.find(name)?, name, true)?;
        let named = |(named, tree)| MultiTable::new(self.pages.view(), tree, named);
        Ok(found.map(named))
    }

    /// Whether the table with this name has multi-values; `None` without one.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn is_multi_table(&self, name: &str) -> Result<Option<bool>> {
        Ok(self.find(name)?.map(|(_, tree)| tree.is_multi()))
    }

    /// The names of all tables, in order.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn tables(&self) -> Result<Vec<String>> {
        crate::tables::open::names(&self.begun.roots, &self.pages, &self.begun.open)
    }

    /// Bytes of the file as of this state.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.pages.file_bytes()
    }

    /// What was read by this so far: pages, blocks, nodes, vectors.
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

    pub(crate) fn info(&self, id: SeriesId) -> Result<Option<Arc<SeriesInfo>>> {
        let stored = || catalog::info(&self.begun.roots, &self.pages, id);
        let written = self.begun.known.written(id);
        debug_assert!(
            written.is_none() || stored().is_ok_and(|stored| stored == written),
            "what the writer knew of {id} is what it stored"
        );
        written.map_or_else(stored, |info| Ok(Some(info)))
    }

    /// The types of a series' words; nothing else of its entry is looked at.
    fn word_types(&self, id: SeriesId) -> Result<Option<Vec<WordType>>> {
        match self.begun.known.written(id) {
            Some(info) => Ok(Some(info.schema.word_types())),
            None => catalog::word_types(&self.begun.roots, &self.pages, id),
        }
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
                if !self.pages.may_end() {
                    self.begun.opened.note(&state);
                }
                state
            }
        };
        Ok(Some(self.of_state(state)))
    }

    fn of_state(&self, state: Arc<OpenedSeries>) -> Series<'_> {
        let threads = self.begun.scan_threads;
        Series::new(self.pages.view(), state, &self.begun.roots, threads)
    }

    /// What a snapshot of this commit has decoded of a series. One that may be taken away has to read what it tells.
    fn kept(&self, id: SeriesId) -> Option<Arc<OpenedSeries>> {
        match self.pages.may_end() {
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
