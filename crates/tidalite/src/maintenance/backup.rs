//! Backups as streams, full and incremental, and the file that is made of them; copies as streams.
//!
//! A backup is physical (docs/decisions/0900-backups-are-pages.md): the pages of one version, or those written since a
//! pinned one. `copy_to` is logical: packed anew, see `copy.rs`.

use crate::database::handle::Database;
use crate::maintenance::watch::{Running, Watch};
use crate::types::error::Result;
use std::io::{BufReader, Read, Write};
use std::path::Path;
use std::sync::Arc;
use tidalite_pager::{Error as StoreError, FileStorage, Storage};

pub use tidalite_pager::BackupInfo;

/// What a copy reads of its temporary file at once.
const COPY_BYTES: usize = 1 << 20;

impl Database {
    /// Writes a full backup to a stream while writing goes on: of the newest version (what was committed without being
    /// durable becomes so first), or of a pin, so that increments can follow.
    ///
    /// ```
    /// # let dir = std::env::temp_dir().join(format!("tidalite-doc-backup-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir)?;
    /// use tidalite::{Database, Watch, restore};
    /// # let db = Database::open(dir.join("plant.tdl"))?;
    /// db.pin("monday")?;
    /// let (mut full, mut more) = (Vec::new(), Vec::new());
    /// db.backup(Some("monday"), &mut full, Watch::new())?;
    /// // ... a day later: only what was written since goes into the next one.
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
    /// No such pin; what the stream reports; `Cancelled`.
    pub fn backup(
        &self,
        pin: Option<&str>,
        out: &mut dyn Write,
        watch: Watch<'_>,
    ) -> Result<BackupInfo> {
        self.back_up(pin, None, out, watch)
    }

    /// Writes what was written since a pin to a stream: an increment on the backup of that pin. No page that both
    /// versions have is read.
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

    /// Writes the newest version as a database file, page by page, to a stream: the same layout, pins included, free
    /// pages as zeros. Returns its bytes.
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

    /// Writes the newest version, packed anew, as a database file to a stream. It is made in a temporary file first,
    /// because a database is not written front to back; both at the rate of the watch, which hears of what is copied first and of the file's
    /// bytes then. Returns its bytes.
    ///
    /// The temporary file has no name and is this process's alone; it is gone with the call, and when the process is killed. It takes as much
    /// space as the copy, beside the database; where that is no file, or its folder cannot be written to, in the system's folder for temporary
    /// files. [`copy_compact_in`](Self::copy_compact_in) puts it elsewhere.
    ///
    /// # Errors
    /// As for [`copy_to`](Self::copy_to); what the stream reports.
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

    /// As [`copy_compact`](Self::copy_compact), with the temporary file in this folder.
    ///
    /// # Errors
    /// As for `copy_compact`; a folder that is not there or cannot be written to.
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
        let failed = |at| {
            move |source| StoreError::Io {
                what: "copying".into(),
                at,
                source,
            }
        };
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

/// A temporary file could not be made there.
fn no_room_in(folder: &Path) -> impl FnOnce(std::io::Error) -> StoreError {
    let path = folder.to_owned();
    move |source| StoreError::Open { path, source }
}

/// Makes a database of a full backup and the increments on it, in order. It must not exist, has an identity of its
/// own and no pins; when anything is wrong there is nothing under its name. Large values that the original has in a second file
/// come to lie in one beside it, `-large` behind its name; see [`restore_in_two`].
///
/// # Errors
/// `Store` with: a backup that is damaged, cut off, or does not build on the one before; a full disk.
pub fn restore<R: Read>(
    chain: impl IntoIterator<Item = R>,
    path: impl AsRef<Path>,
    watch: Watch<'_>,
) -> Result<BackupInfo> {
    restore_from(chain, path.as_ref(), None, watch)
}

/// As [`restore`], with the second file under a name of its own, on another disk perhaps. It must not exist; it is made only when
/// the backup has something for it.
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
