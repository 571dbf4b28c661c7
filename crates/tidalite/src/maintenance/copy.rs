//! Online backup: what one snapshot shows, written to a new file while writing goes on.
//!
//! The copy is logical: tables are packed to full pages and rows are encoded anew, so that the new file has
//! neither holes nor half-filled leaves. Ids of series stay. It is one durable commit: a copy that was
//! interrupted is an empty database, never half of one.

use crate::catalog::entries;
use crate::catalog::table_roots::expect_first_time;
use crate::database::handle::Database;
use crate::database::options::{OpenMode, Options};
use crate::maintenance::read_ahead::{Copier, read_ahead};
use crate::maintenance::watch::{Running, Watch};
use crate::series::read::Series;
use crate::series::write::SeriesMut;
use crate::tables::table::Table;
use crate::tables::table_mut::TableMut;
use crate::txn::read::ReadTxn;
use crate::types::error::Result;
use crate::types::merge_policy::MergePolicy;
use crate::types::name::SeriesPattern;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use tidalite_pager::Storage;

impl ReadTxn {
    /// Writes everything that this snapshot shows to a new file and returns the bytes written.
    ///
    /// # Errors
    /// When the file is there already or cannot be written; damage met on the way (nothing is left out
    /// silently).
    pub fn copy_to(&self, path: impl AsRef<Path>) -> Result<u64> {
        self.copy_to_watched(path, Watch::new())
    }

    /// As [`copy_to`](Self::copy_to), watched, and no faster than the watch allows. What is counted are the bytes of keys and values, and 8 of each
    /// time and value of a series; how many there are in all is not known before.
    ///
    /// # Errors
    /// As there; `Store(Cancelled)` when the watch ends it: there is no copy then.
    pub fn copy_to_watched(&self, path: impl AsRef<Path>, watch: Watch<'_>) -> Result<u64> {
        self.copy_to_running(path.as_ref(), &mut Running::new(watch, 0))
    }

    pub(crate) fn copy_to_running(&self, path: &Path, running: &mut Running<'_>) -> Result<u64> {
        let page_size = tidalite_pager::PageRead::page_size(&self.pages);
        let copy = Options::new()
            .mode(OpenMode::Create)
            // A copy may go to a network file system, where nothing else is opened.
            .exclusive(true)
            .page_size(page_size)
            .open(path)?;
        let copied = self.copy_into(&copy, running);
        drop(copy);
        if copied.is_err() {
            discard(path);
        }
        copied
    }

    /// The same into a storage that is empty.
    pub(crate) fn copy_to_storage(
        &self,
        storage: Arc<dyn Storage>,
        running: &mut Running<'_>,
    ) -> Result<()> {
        let page_size = tidalite_pager::PageRead::page_size(&self.pages);
        let copy = Options::new()
            .mode(OpenMode::Create)
            .page_size(page_size)
            .open_storage(storage)?;
        self.copy_into(&copy, running).map(drop)
    }

    fn copy_into(&self, copy: &Database, running: &mut Running<'_>) -> Result<u64> {
        let mut tx = copy.begin_write()?;
        for name in self.tables()? {
            running.at(&name);
            if self.is_multi_table(&name)? == Some(true) {
                let Some(table) = self.multi_table(&name)? else {
                    continue;
                };
                let mut to = tx.multi_table(&name)?;
                to.extend_lent(|put| {
                    table.lend_pairs(&mut |key, value| {
                        running.done_with(key.len() + value.len())?;
                        put(key, value)
                    })
                })?;
                to.take_sequence(table.sequence())?;
                continue;
            }
            let Some(table) = self.table(&name)? else {
                continue;
            };
            let mut to = tx.table(&name)?;
            copy_table(&table, &mut to, (&mut HashSet::new(), running))?;
        }
        for info in entries::list(&self.begun.roots, &self.pages, &SeriesPattern::parse("")?)? {
            let Some(series) = self.series_by_id(info.id)? else {
                continue;
            };
            tx.roots.next_series = info.id.0;
            let mut to = match (&info.name, &info.guid) {
                (Some(name), _) => tx.series_with(&name.to_string(), &info.schema)?,
                (None, Some(guid)) => tx.series_of_guid(*guid, &info.schema)?,
                (None, None) => unreachable!("the catalog refuses such an entry"),
            };
            if info.several {
                to.set_merge(MergePolicy::KeepAll)?;
            }
            // Rows that are alone at their times need not be asked.
            running.at(&info.label());
            copy_series_rows(&series, &mut to, running)?;
            to.set_merge(info.merge)?;
            for (key, text) in series.annotations()? {
                to.annotate(&key, &text)?;
            }
        }
        for (name, policy) in self.retentions()? {
            tx.set_retention(&name, &policy)?;
        }
        tx.roots.next_series = tx.roots.next_series.max(self.begun.roots.next_series);
        tx.set_user_data(self.user_data())?;
        // A copy that is made while the wall clock is ahead does not believe it either.
        tx.roots.clock = self.begun.roots.clock;
        Ok(tx.commit()?.bytes_written)
    }
}

impl Database {
    /// Writes what the newest commit shows to a new file while writing goes on; returns its bytes.
    ///
    /// # Errors
    /// As for [`ReadTxn::copy_to`].
    pub fn copy_to(&self, path: impl AsRef<Path>) -> Result<u64> {
        self.begin_read()?.copy_to(path)
    }

    /// As [`copy_to`](Self::copy_to), watched, and no faster than the watch allows.
    ///
    /// # Errors
    /// As for [`ReadTxn::copy_to_watched`].
    pub fn copy_to_watched(&self, path: impl AsRef<Path>, watch: Watch<'_>) -> Result<u64> {
        self.begin_read()?.copy_to_watched(path, watch)
    }
}

/// Removes a database that was made and not finished, an empty one at best, with its lock file: the next attempt must find nothing in its
/// way, and a full disk has no room for either.
pub(crate) fn discard(path: &Path) {
    let mut lock = path.as_os_str().to_owned();
    lock.push("-lock");
    for file in [path.as_os_str(), &lock] {
        let _ = std::fs::remove_file(file);
    }
}

/// Copies a table with all that is nested in it. Recursion is as deep as tables are nested. `copied` has the roots of those that were: a
/// hostile file may lead to one in many ways.
fn copy_table(
    from: &Table<'_>,
    to: &mut TableMut<'_>,
    (copied, running): (&mut HashSet<u64>, &mut Running<'_>),
) -> Result<()> {
    let (pages, tree) = from.parts();
    if let Some(tree) = tree {
        expect_first_time(tree, copied)?;
    }
    read_ahead(pages, tree, |copier| {
        copy_rows(from, to, copier, (copied, running))
    })
}

fn copy_rows(
    from: &Table<'_>,
    to: &mut TableMut<'_>,
    copier: &mut Copier<'_>,
    (copied, running): (&mut HashSet<u64>, &mut Running<'_>),
) -> Result<()> {
    if from.sequence() > 0 {
        to.take_sequence(from.sequence())?;
    }
    let mut cursor = from.cursor();
    let mut more = cursor.first()?;
    while more {
        if let Some(below) = cursor.nested()? {
            let mut to = to.nested(cursor.key());
            to.make()?;
            copy_table(&below, &mut to, (&mut *copied, &mut *running))?;
            copier.copied();
            more = cursor.next()?;
            continue;
        }
        // Rows up to the next nested table, which are laid out page by page.
        to.extend_lent(|put| {
            more = cursor.lend_rows(&mut |key, value| {
                copier.copied();
                running.done_with(key.len() + value.len())?;
                put(key, value)
            })?;
            Ok(())
        })?;
    }
    Ok(())
}

/// Appends all rows of a series to one with the same columns.
fn copy_series_rows(
    from: &Series<'_>,
    to: &mut SeriesMut<'_>,
    running: &mut Running<'_>,
) -> Result<()> {
    let columns = from.state.info.schema.columns.len();
    let all = from.all();
    let mut scan = all.scan();
    while let Some(vector) = scan.next()? {
        let mut texts: Vec<Vec<u64>> = Vec::new();
        for (c, column) in from.state.info.schema.columns.iter().enumerate() {
            if !column.ty.is_text() {
                texts.push(Vec::new());
                continue;
            }
            let word = |&word: &u64| match column.is_null(word) {
                true => Ok(word),
                false => to.text_word(c, &from.text(c, word)?),
            };
            texts.push(vector.words(c).iter().map(word).collect::<Result<_>>()?);
        }
        let words = (0..columns).map(|c| match &texts[c][..] {
            [] => vector.words(c),
            texts => texts,
        });
        let words: Vec<&[u64]> = words.collect();
        to.append_rows(vector.times(), &words)?;
        running.done_with(8 * vector.times().len() * (1 + columns))?;
    }
    Ok(())
}
