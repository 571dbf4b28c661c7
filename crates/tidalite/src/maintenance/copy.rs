//! Online copy: the contents of one snapshot, written to a new file concurrently with writers.
//!
//! The copy is logical: tables are packed into full pages and rows are encoded again, so that the new file has neither
//! holes nor half-filled leaves. Series ids are kept. The copy is one durable commit: an interrupted copy is an empty
//! database, never half of one.

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
use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidalite_pager::{DiskError, Error as StoreError, FileStorage, Storage};

/// Number of bytes read from the temporary file at a time.
const COPY_BYTES: usize = 1 << 20;

/// A packed copy of one version, from [`Database::copy`] or [`ReadTxn::copy`]: tables in full pages, rows encoded
/// again.
///
/// ```
/// # let dir = std::env::temp_dir().join(format!("tidalite-doc-copy-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir)?;
/// use tidalite::{Database, maintenance::Watch};
/// let db = Database::open(dir.join("plant.tdl"))?;
/// db.copy().to(dir.join("copy.tdl"))?;
/// let mut bytes = Vec::new();
/// db.copy().watch(Watch::new().bytes_per_second(50 << 20)).to_writer(&mut bytes)?;
/// # drop(db); std::fs::remove_dir_all(dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub struct DatabaseCopy<'a> {
    snapshot: Result<ReadTxn>,
    temporary_in: Option<PathBuf>,
    watch: Watch<'a>,
}

impl<'a> DatabaseCopy<'a> {
    fn of(snapshot: Result<ReadTxn>) -> Self {
        Self {
            snapshot,
            temporary_in: None,
            watch: Watch::new(),
        }
    }

    /// Reports progress to this watch, and copies no faster than the rate it allows. Progress counts the bytes of keys
    /// and values, and 8 bytes for each time and value of a series; the total is not known in advance. For a copy to a
    /// stream, progress then counts the bytes of the file.
    pub fn watch(mut self, watch: Watch<'a>) -> Self {
        self.watch = watch;
        self
    }

    /// Sets the folder for the temporary file of [`to_writer`](Self::to_writer).
    pub fn temporary_in(mut self, folder: impl Into<PathBuf>) -> Self {
        self.temporary_in = Some(folder.into());
        self
    }

    /// Writes the copy to a new file, and returns the number of bytes written.
    ///
    /// # Errors
    /// As for [`Database::begin_read`]; the file already exists or cannot be written; damage found on the way (nothing
    /// is skipped silently); [`Cancelled`](crate::ErrorKind::Cancelled) if the watch stops the copy. After an error no
    /// copy is left.
    pub fn to(self, path: impl AsRef<Path>) -> Result<u64> {
        self.snapshot?
            .copy_to(path.as_ref(), &mut Running::new(self.watch, 0))
    }

    /// Writes the copy, as a database file, to a stream; returns the size of the copy in bytes. The database is first
    /// built in a temporary file, because a database is not written front to back. Both steps run at the rate of the
    /// watch.
    ///
    /// The temporary file has no name and is private to this process; it disappears at the end of the call, or when the
    /// process is killed. It takes as much space as the copy, in the folder of the database; if the database is not a
    /// file, or its folder is not writable, in the system's folder for temporary files.
    ///
    /// # Errors
    /// As for [`to`](Self::to); an error of the stream; a folder for the temporary file that does not exist or is not
    /// writable.
    pub fn to_writer(self, mut out: impl Write) -> Result<u64> {
        let snapshot = self.snapshot?;
        let temporary = temporary(self.temporary_in.as_deref(), snapshot.pages.path())?;
        snapshot.copy_through(temporary, &mut out, self.watch)
    }
}

/// Creates a nameless temporary file: in `folder` if it is given, otherwise in the folder of `file` if that is
/// writable, otherwise in the system's folder for temporary files.
fn temporary(folder: Option<&Path>, file: Option<&Path>) -> Result<FileStorage> {
    use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    let made = |folder: &Path| {
        let made = FileStorage::unnamed(folder, true);
        made.map_err(|source| StoreError::from(DiskError::of_open(folder, source)))
    };
    if let Some(folder) = folder {
        return Ok(made(folder)?);
    }
    if let Some(beside) = file.filter(|file| file.is_file()).and_then(Path::parent) {
        match FileStorage::unnamed(beside, true) {
            Err(error) if matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem) => {}
            Err(source) => return Err(StoreError::from(DiskError::of_open(beside, source)).into()),
            Ok(made) => return Ok(made),
        }
    }
    Ok(made(&std::env::temp_dir())?)
}

impl ReadTxn {
    /// Prepares a packed copy of the version that this transaction reads.
    pub fn copy(&self) -> DatabaseCopy<'_> {
        DatabaseCopy::of(Ok(self.clone()))
    }

    fn copy_to(&self, path: &Path, running: &mut Running<'_>) -> Result<u64> {
        let page_size = tidalite_pager::PageRead::page_size(&self.pages);
        into_new(path, page_size, |copy| self.copy_into(copy, running))
    }

    fn copy_through(
        &self,
        temporary: FileStorage,
        out: &mut dyn Write,
        watch: Watch<'_>,
    ) -> Result<u64> {
        let temporary = Arc::new(temporary);
        let mut running = Running::new(watch, 0);
        let whole = Arc::clone(&temporary) as Arc<dyn Storage>;
        self.copy_to_storage(whole, &mut running)?;
        let failed = |at| move |source| StoreError::from(DiskError::of_call("copying", at, source));
        let total = temporary.len().map_err(failed(0))?;
        (running.done, running.total) = (0, total);
        running.at("file");
        let mut buffer = vec![0u8; COPY_BYTES];
        let mut at = 0;
        while at < total {
            let piece = &mut buffer[..(total - at).min(COPY_BYTES as u64) as usize];
            temporary.read_at(at, piece).map_err(failed(at))?;
            out.write_all(piece).map_err(failed(at))?;
            at += piece.len() as u64;
            running.done_with(piece.len())?;
        }
        out.flush().map_err(failed(at))?;
        Ok(total)
    }

    /// Creates a database in an empty storage and copies this version into it. Returns the number of bytes written.
    fn copy_to_storage(&self, storage: Arc<dyn Storage>, running: &mut Running<'_>) -> Result<()> {
        let page_size = tidalite_pager::PageRead::page_size(&self.pages);
        let copy = Options::new()
            .mode(OpenMode::Create)
            .page_size(page_size)
            .open_storage(storage)?;
        self.copy_into(&copy, running).map(drop)
    }

    fn copy_into(&self, copy: &Database, running: &mut Running<'_>) -> Result<u64> {
        let mut tx = copy.begin_write()?;
        tx.changes_containers = true;
        for name in self.tables()? {
            running.at(&name);
            let types = self.table_types(&name)?;
            if self.is_set_table(&name)? == Some(true) {
                let Some(table) = self.set_table(&name)? else {
                    continue;
                };
                tx.open_with(&name, true, types)?;
                let mut to = tx.raw_set_table(&name)?;
                to.extend_lent(|put| {
                    table.lend_pairs(&mut |key, value| {
                        running.done_with(key.len() + value.len())?;
                        put(key, value)
                    })
                })?;
                to.take_sequence(table.sequence())?;
                continue;
            }
            let Some(table) = self.raw_table(&name)? else {
                continue;
            };
            let mut to = tx.table_to_fill(&name, types)?;
            copy_table(&table, &mut to, (&mut HashSet::new(), running))?;
        }
        for info in self.list("")? {
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
            // The rows of the copied series already obey the merge policy, so they are added without the checks of that
            // policy.
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
        tx.roots.next_series = tx.roots.next_series.max(self.cache.roots.next_series);
        tx.set_user_data(self.user_data())?;
        // If the copy is made while the wall clock is ahead, the new file must not trust the wall clock either: it
        // keeps the old commit clock.
        tx.roots.clock = self.cache.roots.clock;
        Ok(tx.commit()?.bytes_written)
    }
}

impl Database {
    /// Prepares a packed copy of the newest commit. Writers continue while it is made.
    pub fn copy(&self) -> DatabaseCopy<'_> {
        DatabaseCopy::of(self.begin_read())
    }
}

/// Fills a new database file, which must not exist; removes it again if that fails.
pub(crate) fn into_new<T>(
    path: &Path,
    page_size: usize,
    fill: impl FnOnce(&Database) -> Result<T>,
) -> Result<T> {
    let db = Options::new()
        .mode(OpenMode::Create)
        // The new file may be on a network file system, where only exclusive access is possible.
        .exclusive(true)
        .page_size(page_size)
        .open(path)?;
    let filled = fill(&db);
    drop(db);
    if filled.is_err() {
        discard(path);
    }
    filled
}

/// Removes an unfinished database and its lock file, so that they neither prevent the next attempt nor take space on
/// a full disk.
fn discard(path: &Path) {
    let mut lock = path.as_os_str().to_owned();
    lock.push("-lock");
    for file in [path.as_os_str(), &lock] {
        let _ = std::fs::remove_file(file);
    }
}

/// Copies a table with all nested tables. Recursion is as deep as tables are nested. `copied` holds the roots of the
/// nested tables copied so far, because in a hostile file many paths may lead to one table.
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
        // Rows up to the next nested table are written a page at a time.
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

/// Appends all rows of the series `from` to a series with the same columns.
fn copy_series_rows(
    from: &Series<'_>,
    to: &mut SeriesMut<'_>,
    running: &mut Running<'_>,
) -> Result<()> {
    let columns = from.state.info.schema.columns.len();
    let all = from.query(..);
    let mut scan = all.scan()?;
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
