//! Reading one state of the database: a snapshot, which is isolated from later commits, or a write transaction at one
//! moment. The code below serves both kinds of state.
//!
//! Invariants
//! 1. The decoded state in `CommitCache` never changes. All users of one `CommitCache` read the same state.
//! 2. For a state that may end early (an evictable snapshot, an unfinished transaction) no opened series and no table
//!    is cached: each query reads pages, and thereby detects the end.

use crate::catalog::entries::{self, SeriesInfo};
use crate::catalog::roots::Roots;
use crate::txn::catalog_cache::{CatalogCache, CatalogVersion};
use crate::txn::open_series::WriterSeries;
use crate::txn::open_table::OpenTable;
use crate::txn::pages::{AnySource, ReadSource};
use crate::txn::series_cache::SeriesCache;
use crate::txn::table_cache::TableCache;
use crate::types::error::Result;
use crate::types::pattern::SeriesPattern;
use arc_swap::ArcSwapOption;
use std::sync::Arc;
use tidalite_base::{SeriesId, TxnId};
use tidalite_delta::Delta;
use tidalite_pager::{Counters, Pager, Shown, Snapshot, UncommittedRead};
use tidalite_time::Timestamp;

/// A readable state of the database: a [`ReadTxn`] or an [`UncommittedRead`](crate::UncommittedRead). A function that
/// accepts either of them is generic over the source `S`.
///
/// ```
/// # use std::sync::Arc;
/// # use tidalite::Options;
/// # use tidalite::storage::MemoryStorage;
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
    pub(crate) cache: Arc<CommitCache>,
}

/// A snapshot of the database. Never blocks, never changes; may be shared between threads. A clone is another handle to
/// the same snapshot, made without accessing the file.
pub type ReadTxn = Reading<Snapshot>;

/// A [`ReadTxn`], or an [`UncommittedRead`](crate::UncommittedRead) that is shared by its clones: for programs that
/// choose between the two when they run. Both convert into it.
///
/// ```
/// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
/// use tidalite::AnyRead;
///
/// let mut tx = db.begin_write()?;
/// tx.table("config")?.put(b"speed", b"7")?;
/// for (state, tables) in [(AnyRead::from(tx.reader()?), 1), (AnyRead::from(db.begin_read()?), 0)] {
///     assert_eq!(state.tables()?.len(), tables);
/// }
/// # Ok::<(), tidalite::Error>(())
/// ```
pub type AnyRead = Reading<AnySource>;

impl From<ReadTxn> for AnyRead {
    fn from(state: ReadTxn) -> Self {
        Self {
            pages: AnySource::Snapshot(state.pages),
            cache: state.cache,
        }
    }
}

impl From<Reading<UncommittedRead>> for AnyRead {
    fn from(state: Reading<UncommittedRead>) -> Self {
        Self {
            pages: AnySource::Uncommitted(Arc::new(state.pages)),
            cache: state.cache,
        }
    }
}

/// The decoded state of the newest commit, which all new snapshots share.
#[derive(Default)]
pub(crate) struct NewestCommit {
    cache: ArcSwapOption<CommitCache>,
    pub(crate) writer_series: Arc<WriterSeries>,
}

impl NewestCommit {
    /// The decoded catalog of the newest commit if `roots` has the same one, otherwise an empty cache.
    pub(crate) fn catalog_of(&self, roots: &Roots) -> Arc<CatalogCache> {
        match self.cache.load().as_deref() {
            Some(cache) if cache.catalog.is_of(roots) => Arc::clone(&cache.catalog),
            _ => Arc::new(CatalogCache::new(roots, Arc::default())),
        }
    }

    /// Takes a snapshot with the decoded state of the last one; returns `None` if there was a commit since then.
    #[inline]
    pub(crate) fn begin(&self, pager: &Pager) -> Result<Option<ReadTxn>> {
        let cache = self.cache.load();
        let Some((cache, shown)) = cache
            .as_ref()
            .and_then(|cache| Some((cache, cache.shown.as_ref()?)))
        else {
            return Ok(None);
        };
        let pages = pager.begin_read_as(shown)?;
        Ok(pages.map(|pages| Reading {
            pages,
            cache: Arc::clone(cache),
        }))
    }
}

/// The decoded state of one commit, shared by its snapshots: roots, and the catalog entries, series and tables found so
/// far.
pub(crate) struct CommitCache {
    /// The commit from which this state was decoded; `None` for an unfinished transaction.
    shown: Option<Shown>,
    pub(crate) roots: Roots,
    pub(crate) delta: Delta,
    pub(crate) catalog: Arc<CatalogCache>,
    pub(crate) series: SeriesCache,
    pub(crate) tables: TableCache,
    /// Tables that an unfinished transaction has open; their catalog entries are out of date.
    pub(crate) open: Vec<OpenTable>,
    /// Maximum number of helper threads of a query (`Options::scan_threads`).
    pub(crate) scan_threads: usize,
}

impl ReadTxn {
    pub(crate) fn begin(pages: Snapshot, scan_threads: usize) -> Result<Self> {
        let roots = Roots::decode(pages.app())?;
        let catalog = Arc::new(CatalogCache::new(&roots, Arc::default()));
        let shown = Some(pages.shown());
        Self::decoded(pages, shown, (roots, catalog), Vec::new(), scan_threads)
    }

    /// Takes over a snapshot like `begin`, reusing the parts of the previous commit's decoded state that have not
    /// changed.
    pub(crate) fn begin_again(
        pages: Snapshot,
        newest: &NewestCommit,
        scan_threads: usize,
    ) -> Result<Self> {
        let cache = newest.cache.load();
        if let Some(cache) = cache.as_ref()
            && cache
                .shown
                .as_ref()
                .is_some_and(|shown| shown.is_of(&pages))
        {
            let cache = Arc::clone(cache);
            return Ok(Self { pages, cache });
        }
        let roots = Roots::decode(pages.app())?;
        let catalog = match cache.as_deref() {
            Some(cache) if cache.catalog.is_of(&roots) => Arc::clone(&cache.catalog),
            _ => Arc::new(CatalogCache::new(&roots, Arc::clone(&newest.writer_series))),
        };
        let shown = Some(pages.shown());
        let own = Self::decoded(pages, shown, (roots, catalog), Vec::new(), scan_threads)?;
        newest.cache.store(Some(Arc::clone(&own.cache)));
        Ok(own)
    }

    /// Time of the commit that this state shows, by the wall clock of the committing process.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tidalite::{Options, Timestamp};
    /// # use tidalite::storage::MemoryStorage;
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
    /// A reader of a write transaction in its current state. All rows must have been stored in pages.
    pub(crate) fn uncommitted(
        pages: S,
        (roots, catalog): (Roots, Arc<CatalogCache>),
        open: Vec<OpenTable>,
    ) -> Result<Self> {
        Self::decoded(pages, None, (roots, catalog), open, 0)
    }

    fn decoded(
        pages: S,
        shown: Option<Shown>,
        (roots, catalog): (Roots, Arc<CatalogCache>),
        open: Vec<OpenTable>,
        scan_threads: usize,
    ) -> Result<Self> {
        let cache = Arc::new(CommitCache {
            shown,
            delta: Delta::load(&pages, &roots.delta)?,
            roots,
            catalog,
            series: SeriesCache::default(),
            tables: TableCache::default(),
            open,
            scan_threads,
        });
        Ok(Self { pages, cache })
    }

    /// Number of the commit that this state shows; for an unfinished transaction the number that its commit will have.
    #[must_use]
    pub fn txn(&self) -> TxnId {
        self.pages.txn()
    }

    /// The user data stored with the commit that this state shows, set by
    /// [`WriteTxn::set_user_data`](crate::WriteTxn::set_user_data).
    #[must_use]
    pub fn user_data(&self) -> &[u8] {
        self.pages.user_data()
    }

    /// Lists the series that a [pattern](SeriesPattern) selects, ordered by id. A pattern is a glob over the metric,
    /// and conditions on tags, such as `hb.*{turbine=~"R8.*",state!="VIC"}`; the empty text selects all series.
    ///
    /// # Cost
    /// Conditions on values are looked up in an index; the names of the series found are then compared with the
    /// pattern. Wildcards and regular expressions walk over the values of their tag.
    ///
    /// # Errors
    /// `InvalidName` for an invalid pattern; a damaged or unreadable page.
    pub fn list(&self, pattern: &str) -> Result<Vec<Arc<SeriesInfo>>> {
        let pattern = SeriesPattern::parse(pattern)?;
        entries::list(&self.cache.roots, &self.pages, &pattern, |id| self.info(id))
    }

    /// Reads the catalog entry of a series, unless it is cached.
    pub(crate) fn info(&self, id: SeriesId) -> Result<Option<Arc<SeriesInfo>>> {
        let stored = || entries::info(&self.cache.roots, &self.pages, id);
        let catalog = &self.cache.catalog;
        let written = catalog.written(id);
        debug_assert!(
            written.is_none() || stored().is_ok_and(|stored| stored == written),
            "what the writer knew of {id} is what it stored"
        );
        if let Some(info) = written.or_else(|| catalog.by_id(id)) {
            return Ok(Some(info));
        }
        let info = stored()?;
        if let Some(info) = &info {
            catalog.note_id(info);
        }
        Ok(info)
    }

    /// The version of the list of series in this state. It retains no pages.
    #[must_use]
    pub fn catalog_version(&self) -> CatalogVersion {
        CatalogVersion(Arc::clone(&self.cache.catalog))
    }

    /// Size in bytes of the file in this state.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.pages.file_bytes()
    }

    /// Counters of reads through this state so far: pages, blocks, nodes, vectors.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        self.pages.counters()
    }
}
