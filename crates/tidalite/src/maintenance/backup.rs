//! Full and incremental backups as streams, the restore of a file from them, and images of a file as streams.
//!
//! A backup is physical (docs/decisions/0900-backups-are-pages.md): it holds the pages of one version, or those written
//! since a pinned version. A copy (`copy.rs`) is logical: its contents are packed again.

use crate::database::handle::Database;
use crate::maintenance::watch::{Running, Watch};
use crate::types::error::Result;
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};

pub use tidalite_pager::BackupInfo;

impl Database {
    /// Prepares a backup of the newest version or of a pin, either full or with the changes since another pin. Writers
    /// continue while it is written.
    ///
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("tidalite-doc-backup-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir)?;
    /// use tidalite::Database;
    /// use tidalite::maintenance::Restore;
    /// # let db = Database::open(dir.join("plant.tdl"))?;
    /// db.pin("monday")?;
    /// let (mut full, mut more) = (Vec::new(), Vec::new());
    /// db.backup().of("monday").to_writer(&mut full)?;
    /// // ... a day later: the next backup contains only pages written since.
    /// db.pin("tuesday")?;
    /// db.backup().of("tuesday").since("monday").to_writer(&mut more)?;
    /// db.unpin("monday")?;
    ///
    /// Restore::from([&full[..], &more[..]]).to(dir.join("restored.tdl"))?;
    /// # drop(db); std::fs::remove_dir_all(dir)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn backup(&self) -> Backup<'_> {
        Backup {
            database: self,
            pin: None,
            base: None,
            watch: Watch::new(),
        }
    }

    /// Prepares an image: the newest version as a database file, page by page. The layout and the pins are kept; free
    /// pages are written as zeros.
    pub fn image(&self) -> Image<'_> {
        Image {
            database: self,
            watch: Watch::new(),
        }
    }
}

/// A backup of one version, from [`Database::backup`].
#[must_use]
pub struct Backup<'a> {
    database: &'a Database,
    pin: Option<&'a str>,
    base: Option<&'a str>,
    watch: Watch<'a>,
}

impl<'a> Backup<'a> {
    /// Backs up the version of this pin, so that increments can follow (default: the newest version, which is made
    /// durable first).
    pub fn of(mut self, pin: &'a str) -> Self {
        self.pin = Some(pin);
        self
    }

    /// Writes only the pages written since the version of this pin: an increment to a backup of that pin. Pages that
    /// both versions share are not read.
    pub fn since(mut self, pin: &'a str) -> Self {
        self.base = Some(pin);
        self
    }

    /// Reports progress to this watch, and writes no faster than the rate it allows.
    pub fn watch(mut self, watch: Watch<'a>) -> Self {
        self.watch = watch;
        self
    }

    /// Writes the backup to a stream.
    ///
    /// # Errors
    /// A pin does not exist; the base of an increment is newer than the version; an error of the stream;
    /// [`Cancelled`](crate::ErrorKind::Cancelled) if the watch stops the backup.
    pub fn to_writer(self, mut out: impl Write) -> Result<BackupInfo> {
        let pager = &self.database.pager;
        let mut moved = progress(self.watch);
        Ok(pager.backup(self.pin, self.base, &mut out, &mut moved)?)
    }
}

/// An image of the newest version, from [`Database::image`].
#[must_use]
pub struct Image<'a> {
    database: &'a Database,
    watch: Watch<'a>,
}

impl<'a> Image<'a> {
    /// Reports progress to this watch, and writes no faster than the rate it allows.
    pub fn watch(mut self, watch: Watch<'a>) -> Self {
        self.watch = watch;
        self
    }

    /// Writes the image to a stream, and returns its size in bytes.
    ///
    /// # Errors
    /// As for [`Backup::to_writer`]; [`LargeFile`](crate::ErrorKind::LargeFile) for a database with a second file.
    pub fn to_writer(self, mut out: impl Write) -> Result<u64> {
        let pager = &self.database.pager;
        Ok(pager.copy_image(&mut out, &mut progress(self.watch))?)
    }
}

/// Returns the progress callback for the pager, which is called after each piece with the bytes of the piece, the pages
/// done, and the pages in total.
fn progress(watch: Watch<'_>) -> impl FnMut(u64, u64, u64) -> tidalite_pager::Result<()> {
    let mut running = Running::new(watch, 0);
    running.at("pages");
    move |bytes, done, total| {
        (running.done, running.total) = (done, total);
        running.moved(bytes)
    }
}

/// Creates a database from a full backup and the increments on it, in order: see [`Database::backup`].
#[must_use]
pub struct Restore<'a, I> {
    chain: I,
    large_values: Option<PathBuf>,
    watch: Watch<'a>,
}

impl<'a, I: IntoIterator<Item: Read>> Restore<'a, I> {
    /// Restores from a full backup and its increments, in this order.
    pub fn from(chain: I) -> Self {
        Self {
            chain,
            large_values: None,
            watch: Watch::new(),
        }
    }

    /// Path of the new second file, perhaps on another disk, if the backed-up database had such a file for large values
    /// (default: next to the new file, with the suffix `-large`). The path must not exist.
    pub fn large_values(mut self, path: impl Into<PathBuf>) -> Self {
        self.large_values = Some(path.into());
        self
    }

    /// Reports progress to this watch, and writes no faster than the rate it allows.
    pub fn watch(mut self, watch: Watch<'a>) -> Self {
        self.watch = watch;
        self
    }

    /// Creates the database at `path`, where no file must exist. The new database gets its own identity and has no
    /// pins. After an error no file is left at `path`.
    ///
    /// # Errors
    /// A backup is damaged, cut off, or does not build on the one before; a full disk;
    /// [`Cancelled`](crate::ErrorKind::Cancelled) if the watch stops the restore.
    pub fn to(self, path: impl AsRef<Path>) -> Result<BackupInfo> {
        let mut moved = progress(self.watch);
        let mut chain = self.chain.into_iter().map(|from| {
            let from: Box<dyn Read + '_> = Box::new(BufReader::with_capacity(1 << 16, from));
            Ok(from)
        });
        let (path, second) = (path.as_ref(), self.large_values.as_deref());
        Ok(tidalite_pager::restore(
            &mut chain, path, second, &mut moved,
        )?)
    }
}
