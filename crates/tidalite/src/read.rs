//! A snapshot: everything as it was when it began, whatever is committed meanwhile.

use crate::catalog::{self, SeriesInfo, SeriesKey};
use crate::error::Result;
use crate::known::Known;
use crate::leaves::stored_tree;
use crate::multi::MultiTable;
use crate::name::{SeriesName, SeriesPattern};
use crate::open_series::Kept;
use crate::pages::Pages;
use crate::roots::Roots;
use crate::series::{EVER, Series};
use crate::table::Table;
use crate::tables::expect_kind;
use crate::write::find_table;
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
    pub(crate) roots: Arc<Roots>,
    pub(crate) front: Arc<Front>,
    pub(crate) known: Arc<Known>,
}

/// What the newest snapshots of an open database begin with, decoded once a commit.
#[derive(Default)]
pub(crate) struct Opened {
    newest: ArcSwapOption<Begun>,
    pub(crate) kept: Arc<Kept>,
}

struct Begun {
    txn: TxnId,
    /// The bytes that `roots` was decoded from: they tell commits of one number apart.
    app: Box<[u8]>,
    roots: Arc<Roots>,
    front: Arc<Front>,
    known: Arc<Known>,
}

impl ReadTxn {
    pub(crate) fn begin(pages: Snapshot) -> Result<Self> {
        let roots = Roots::decode(pages.app())?;
        let known = Arc::new(Known::new(&roots, Arc::default()));
        Self::decoded(pages, roots, known)
    }

    fn decoded(pages: Snapshot, roots: Roots, known: Arc<Known>) -> Result<Self> {
        let front = Front::load(&pages, &roots.front)?;
        Ok(Self {
            pages,
            roots: Arc::new(roots),
            front: Arc::new(front),
            known,
        })
    }

    /// As `begin`, without decoding again what the snapshot before has decoded.
    pub(crate) fn begin_again(pages: Snapshot, opened: &Opened) -> Result<Self> {
        let newest = opened.newest.load();
        if let Some(begun) = newest.as_deref()
            && begun.txn == pages.txn()
            && *begun.app == *pages.app()
        {
            return Ok(Self {
                pages,
                roots: Arc::clone(&begun.roots),
                front: Arc::clone(&begun.front),
                known: Arc::clone(&begun.known),
            });
        }
        let roots = Roots::decode(pages.app())?;
        let known = match newest.as_deref() {
            Some(begun) if begun.known.is_of(&roots) => Arc::clone(&begun.known),
            _ => Arc::new(Known::new(&roots, Arc::clone(&opened.kept))),
        };
        let begun = Self::decoded(pages, roots, known)?;
        opened.newest.store(Some(Arc::new(Begun {
            txn: begun.txn(),
            app: begun.pages.app().into(),
            roots: Arc::clone(&begun.roots),
            front: Arc::clone(&begun.front),
            known: Arc::clone(&begun.known),
        })));
        Ok(begun)
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
        if let Some(info) = self.known.by_name(name) {
            return self.open_series(info);
        }
        let parsed = SeriesName::parse(name)?;
        let info = self.entry(SeriesKey::Name(&parsed))?;
        if let Some(info) = &info {
            self.known.note_name(name, info);
        }
        self.opened(info)
    }

    /// The series that a GUID identifies.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn series_of_guid(&self, guid: &[u8; 16]) -> Result<Option<Series<'_>>> {
        if let Some(info) = self.known.by_guid(guid) {
            return self.open_series(info);
        }
        let info = self.entry(SeriesKey::Guid(guid))?;
        if let Some(info) = &info {
            self.known.note_guid(guid, info);
        }
        self.opened(info)
    }

    /// The series with this number.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn series_by_id(&self, id: SeriesId) -> Result<Option<Series<'_>>> {
        self.opened(self.info(id)?)
    }

    /// The series that a pattern selects, ordered by id: a glob over the metric and exact tags, such as
    /// `hb.*{turbine="R80711"}`; the empty text selects all. Walks the whole catalog.
    ///
    /// # Errors
    /// `Name` for a text that is no pattern; a damaged or unreadable page.
    pub fn list(&self, pattern: &str) -> Result<Vec<Arc<SeriesInfo>>> {
        catalog::list(&self.roots, &self.pages, &SeriesPattern::parse(pattern)?)
    }

    /// The table with this name.
    ///
    /// # Errors
    /// `TableKind` for a table of multi-values; a damaged or unreadable page.
    pub fn table(&self, name: &str) -> Result<Option<Table<'_>>> {
        if name.is_empty() || name.len() > crate::write::TABLE_NAME_BYTES_MAX {
            return Ok(None);
        }
        let found = find_table(&self.roots, &self.pages, name)?;
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
        let found = find_table(&self.roots, &self.pages, name)?;
        let found = expect_kind(found, name, true)?;
        Ok(found.map(|(_, tree)| MultiTable::new(Pages::Snapshot(&self.pages), tree)))
    }

    /// Whether the table with this name has multi-values; `None` without one.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn is_multi_table(&self, name: &str) -> Result<Option<bool>> {
        let found = find_table(&self.roots, &self.pages, name)?;
        Ok(found.map(|(_, tree)| tree.is_multi()))
    }

    /// The names of all tables, in order.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn tables(&self) -> Result<Vec<String>> {
        crate::tables::names(&self.roots, &self.pages)
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
        match catalog::find(&self.roots, &self.pages, key)? {
            Some(id) => self.info(id),
            None => Ok(None),
        }
    }

    fn info(&self, id: SeriesId) -> Result<Option<Arc<SeriesInfo>>> {
        let stored = || catalog::info(&self.roots, &self.pages, id);
        let written = self.known.written(id);
        debug_assert!(
            written.is_none() || stored().is_ok_and(|stored| stored == written),
            "what the writer knew of {id} is what it stored"
        );
        written.map_or_else(stored, |info| Ok(Some(info)))
    }

    fn opened(&self, info: Option<Arc<SeriesInfo>>) -> Result<Option<Series<'_>>> {
        info.map_or(Ok(None), |info| self.open_series(info))
    }

    /// Opens a series of the catalog.
    pub(crate) fn open_series(&self, info: Arc<SeriesInfo>) -> Result<Option<Series<'_>>> {
        let id = info.id;
        let types = info.schema.word_types();
        let tree = stored_tree(&self.roots.records, &self.pages, id, &types)?;
        let mut late = Rows::new(types.len());
        self.front.rows(&self.pages, id, &types, EVER, &mut late)?;
        Ok(Some(Series::new(
            Pages::Snapshot(&self.pages),
            info,
            tree,
            late,
            &self.roots,
        )))
    }
}
