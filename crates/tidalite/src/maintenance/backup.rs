//! Backups as streams, full and incremental, and the restored file; images as streams.
//!
//! A backup is physical (docs/decisions/0900-backups-are-pages.md): the pages of one version, or those written since a
//! pinned one. A copy is logical: packed anew, see `copy.rs`.

use crate::database::handle::Database;
use crate::maintenance::watch::{Running, Watch};
use crate::types::error::Result;
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};

pub use tidalite_pager::BackupInfo;

impl Database {
    /// A backup of the newest version, or of a pin: full, or of the changes since another pin. It is written
    /// concurrently with writers.
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

    /// The newest version as a database file, page by page: the layout is kept, pins included, with free pages as zeros.
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

    /// Writes only the pages written since this pin: an increment on the backup of the pin. Pages shared by both
    /// versions are not read.
    pub fn since(mut self, pin: &'a str) -> Self {
        self.base = Some(pin);
        self
    }

    /// Reports to this watch, and writes at most at its rate.
    pub fn watch(mut self, watch: Watch<'a>) -> Self {
        self.watch = watch;
        self
    }

    /// Writes the backup to a stream.
    ///
    /// # Errors
    /// No such pin; a base that is newer than the version; an error of the stream;
    /// [`Cancelled`](crate::ErrorKind::Cancelled) if the watch stops it.
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
    /// Reports to this watch, and writes at most at its rate.
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

/// What the pager calls after each piece, with its bytes, the pages done, and the pages in total.
fn progress(watch: Watch<'_>) -> impl FnMut(u64, u64, u64) -> tidalite_pager::Result<()> {
    let mut running = Running::new(watch, 0);
    running.at("pages");
    move |bytes, done, total| {
        (running.done, running.total) = (done, total);
        running.moved(bytes)
    }
}

/// Creates a database from a full backup and its increments, in order: see [`Database::backup`].
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

    /// The path of the second file, perhaps on another disk, if the backup has values of such a file (default: next to
    /// the new file, with the suffix `-large`). It must not exist.
    pub fn large_values(mut self, path: impl Into<PathBuf>) -> Self {
        self.large_values = Some(path.into());
        self
    }

    /// Reports to this watch, and writes at most at its rate.
    pub fn watch(mut self, watch: Watch<'a>) -> Self {
        self.watch = watch;
        self
    }

    /// Creates the database, which must not exist. It gets its own identity and has no pins. After an error no file has
    /// its name.
    ///
    /// # Errors
    /// A backup that is damaged, cut off, or does not build on the one before; a full disk;
    /// [`Cancelled`](crate::ErrorKind::Cancelled) if the watch stops it.
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
