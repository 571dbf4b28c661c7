//! Backups as streams, full and incremental, and the restored file; copies as streams.
//!
//! A backup is physical (docs/decisions/0900-backups-are-pages.md): the pages of one version, or those written since a
//! pinned one. `copy_to` is logical: packed anew, see `copy.rs`.

use crate::database::handle::Database;
use crate::maintenance::watch::{Running, Watch};
use crate::types::error::Result;
use std::io::{BufReader, Read, Write};
use std::path::Path;
use std::sync::Arc;
use tidalite_pager::{DiskError, Error as StoreError, FileStorage, Storage};

pub use tidalite_pager::BackupInfo;

/// Bytes read from the temporary file at a time.
const COPY_BYTES: usize = 1 << 20;

impl Database {
    /// Writes a full backup to a stream, concurrently with writers: of the newest version (commits that are not durable
    /// are made durable first), or of a pin, so that increments can follow.
    ///
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("tidalite-doc-backup-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir)?;
    /// use tidalite::Database;
    /// use tidalite::maintenance::{Watch, restore};
    /// # let db = Database::open(dir.join("plant.tdl"))?;
    /// db.pin("monday")?;
    /// let (mut full, mut more) = (Vec::new(), Vec::new());
    /// db.backup(Some("monday"), &mut full, Watch::new())?;
    /// // ... a day later: the next backup contains only pages written since.
    /// db.pin("tuesday")?;
    /// db.backup_incremental("monday", Some("tuesday"), &mut more, Watch::new())?;
    /// db.unpin("monday")?;
    ///
    /// restore([&full[..], &more[..]], dir.join("restored.tdl"), Watch::new())?;
    /// # drop(db); std::fs::remove_dir_all(dir)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// No such pin; an error of the stream; `Cancelled`.
    pub fn backup(
        &self,
        pin: Option<&str>,
        out: &mut dyn Write,
        watch: Watch<'_>,
    ) -> Result<BackupInfo> {
        self.back_up(pin, None, out, watch)
    }

    /// Writes the pages written since a pin to a stream: an increment on the backup of that pin. Pages shared by both
    /// versions are not read.
    ///
    /// # Errors
    /// As for `backup`; a base that is newer than the version.
    pub fn backup_incremental(
        &self,
        base: &str,
        pin: Option<&str>,
        out: &mut dyn Write,
        watch: Watch<'_>,
    ) -> Result<BackupInfo> {
        self.back_up(pin, Some(base), out, watch)
    }

    fn back_up(
        &self,
        pin: Option<&str>,
        base: Option<&str>,
        out: &mut dyn Write,
        watch: Watch<'_>,
    ) -> Result<BackupInfo> {
        let mut running = Running::new(watch, 0);
        running.at("pages");
        Ok(self
            .pager
            .backup(pin, base, out, &mut |bytes, done, total| {
                (running.done, running.total) = (done, total);
                running.moved(bytes)
            })?)
    }

    /// Writes the newest version as a database file, page by page, to a stream: the layout is kept, pins included, with
    /// free pages as zeros. Returns its size in bytes.
    ///
    /// # Errors
    /// As for `backup`.
    pub fn copy_image(&self, out: &mut dyn Write, watch: Watch<'_>) -> Result<u64> {
        let mut running = Running::new(watch, 0);
        running.at("pages");
        Ok(self.pager.copy_image(out, &mut |bytes, done, total| {
            (running.done, running.total) = (done, total);
            running.moved(bytes)
        })?)
    }

    /// Writes the newest version, packed anew, as a database file to a stream. The file is first built in a temporary
    /// file, because a database is not written front to back. Both steps run at the rate of the watch, which reports
    /// first the data copied, then the bytes of the file. Returns its size in bytes.
    ///
    /// The temporary file has no name and is private to this process; it disappears with the call, and if the process
    /// is killed. It takes as much space as the copy, next to the database; if the database is not a file, or its
    /// folder is not writable, in the system's folder for temporary files. [`copy_compact_in`](Self::copy_compact_in)
    /// chooses another folder.
    ///
    /// # Errors
    /// As for [`copy_to`](Self::copy_to); an error of the stream.
    pub fn copy_compact(&self, out: &mut dyn Write, watch: Watch<'_>) -> Result<u64> {
        use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
        let file = self.pager.path().filter(|path| path.is_file());
        if let Some(folder) = file.and_then(Path::parent) {
            match FileStorage::unnamed(folder, true) {
                Err(error) if matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem) => {}
                made => return self.copy_through(made.map_err(no_room_in(folder))?, out, watch),
            }
        }
        self.copy_compact_in(&std::env::temp_dir(), out, watch)
    }

    /// Like [`copy_compact`](Self::copy_compact), with the temporary file in this folder.
    ///
    /// # Errors
    /// As for `copy_compact`; a folder that does not exist or is not writable.
    pub fn copy_compact_in(
        &self,
        folder: &Path,
        out: &mut dyn Write,
        watch: Watch<'_>,
    ) -> Result<u64> {
        let made = FileStorage::unnamed(folder, true).map_err(no_room_in(folder))?;
        self.copy_through(made, out, watch)
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
        self.begin_read()?.copy_to_storage(whole, &mut running)?;
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
}

/// The error for a temporary file that could not be created.
fn no_room_in(folder: &Path) -> impl FnOnce(std::io::Error) -> StoreError {
    let path = folder.to_owned();
    move |source| DiskError::of_open(&path, source).into()
}

/// Creates a database from a full backup and its increments, in order. The database must not exist; it gets its own
/// identity and has no pins. After an error no file has its name. Large values that the original keeps in a second file
/// go to a second file next to the new one, named with the suffix `-large`; see [`restore_in_two`].
///
/// # Errors
/// A backup that is damaged, cut off, or does not build on the one before; a full disk.
pub fn restore<R: Read>(
    chain: impl IntoIterator<Item = R>,
    path: impl AsRef<Path>,
    watch: Watch<'_>,
) -> Result<BackupInfo> {
    restore_from(chain, path.as_ref(), None, watch)
}

/// Like [`restore`], with another path for the second file, perhaps on another disk. It must not exist; it is created
/// only if the backup has data for it.
///
/// # Errors
/// As for [`restore`].
pub fn restore_in_two<R: Read>(
    chain: impl IntoIterator<Item = R>,
    path: impl AsRef<Path>,
    second: impl AsRef<Path>,
    watch: Watch<'_>,
) -> Result<BackupInfo> {
    restore_from(chain, path.as_ref(), Some(second.as_ref()), watch)
}

fn restore_from<R: Read>(
    chain: impl IntoIterator<Item = R>,
    path: &Path,
    second: Option<&Path>,
    watch: Watch<'_>,
) -> Result<BackupInfo> {
    let mut running = Running::new(watch, 0);
    running.at("pages");
    let mut chain = chain.into_iter().map(|from| {
        let from: Box<dyn Read + '_> = Box::new(BufReader::with_capacity(1 << 16, from));
        Ok(from)
    });
    let mut moved = |bytes, done, total| {
        (running.done, running.total) = (done, total);
        running.moved(bytes)
    };
    Ok(tidalite_pager::restore(
        &mut chain, path, second, &mut moved,
    )?)
}
