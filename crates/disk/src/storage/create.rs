//! Atomic creation of a file: a crash leaves all of it or nothing.
//!
//! A new file is written under a temporary name and synced, given its name without overwriting anything, the
//! directory is synced, and the temporary name removed. A crash never leaves an incomplete database under the name.
//!
//! A process killed in between leaves a complete database in a directory that was not synced. The next handle to open
//! it for writing therefore syncs the directory if that may be missing (`finish_creation`): while the file has a second
//! name, while nothing was committed to it, and, on file systems without hard links, while an empty marker file exists
//! beside it (`unsynced_mark`).

use super::{FileId, Named};
use crate::error::{Error, Result};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Returns the path with symbolic links resolved. The lock file is found by the resolved path, so that all symbolic
/// links to a data file lead to the same lock file. Resolves only the folder if the file does not exist.
pub fn real_path(path: &Path) -> PathBuf {
    if let Ok(real) = fs::canonicalize(path) {
        return real;
    }
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    match (fs::canonicalize(parent), path.file_name()) {
        (Ok(parent), Some(name)) => parent.join(name),
        _ => path.to_owned(),
    }
}

/// Creates a file with the contents `initial` at `path`, atomically: after a crash, the file is complete or does not
/// exist. Fails if `path` exists.
pub fn create_file(path: &Path, initial: &[u8]) -> Result<()> {
    let mut name = OsString::from(path.as_os_str());
    name.push(format!(".new-{}", std::process::id()));
    let temporary = PathBuf::from(name);
    let created = write_file(&temporary, initial)
        .and_then(|()| give_name(&temporary, path))
        // While the file has two names, the next open knows that the directory may not be synced yet.
        .and_then(|()| sync_name(path));
    drop(fs::remove_file(&temporary));
    created.map_err(|error| Error::of_open(path, error))
}

/// Completes the creation or restore of the data file if a process was killed in the middle: removes the temporary
/// name and syncs the directory. Without the sync, a power failure could remove the file with all its commits.
/// `is_new` says that nothing was committed to the file yet. The caller must hold the setup lock, which excludes a
/// concurrent creation.
pub fn finish_creation(path: &Path, named: &Named, is_new: bool) -> Result<()> {
    let fail = |error| Error::of_open(path, error);
    if !named.is_file() {
        return Ok(());
    }
    let real = real_path(path);
    let mark = unsynced_mark(&real);
    if !is_new && named.names().map_err(fail)? == 1 && !mark.exists() {
        return Ok(());
    }
    remove_temporary_names(&real, named.id);
    match sync_directory(&real) {
        // Without permission to read the directory, this process cannot sync only the directory, so it syncs the
        // whole file system.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => named.sync_file_system(),
        synced => synced,
    }
    .map_err(fail)?;
    drop(fs::remove_file(mark));
    Ok(())
}

/// Removes temporary names of the data file (further hard links that end in `.new-` and a process id). Names that
/// cannot be removed stay.
fn remove_temporary_names(path: &Path, id: FileId) {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return;
    };
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let is_temporary = entry
            .file_name()
            .as_bytes()
            .strip_prefix(name.as_bytes())
            .and_then(|rest| rest.strip_prefix(b".new-"))
            .is_some_and(|number| number.iter().all(u8::is_ascii_digit));
        // For a symbolic link, this is the metadata of the link itself, so a link is never removed.
        let is_this = || entry.metadata().is_ok_and(|found| FileId::of(&found) == id);
        if is_temporary && is_this() {
            drop(fs::remove_file(entry.path()));
        }
    }
}

fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // The caller holds the setup lock, so an existing file at `path` is left over from a crash, or is a link that
    // somebody has planted. In both cases it must not be written to.
    drop(fs::remove_file(path));
    let mut file = File::create_new(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Path of the empty marker file that replaces the second name on file systems without hard links.
fn unsynced_mark(path: &Path) -> PathBuf {
    let mut name = OsString::from(path.as_os_str());
    name.push(".unsynced");
    PathBuf::from(name)
}

/// Gives the file at `temporary` the name `path`; fails if `path` exists. The name is durable only after `sync_name`.
pub fn give_name(temporary: &Path, path: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match fs::hard_link(temporary, path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            // Some file systems have no hard links. A renamed file never has two names, so a marker file replaces the
            // second name as the sign that the directory is not synced yet.
            let mark = unsynced_mark(path);
            File::create(&mark)?;
            let renamed = renameat_with(CWD, temporary, CWD, path, RenameFlags::NOREPLACE);
            if renamed.is_err() {
                drop(fs::remove_file(mark));
            }
            Ok(renamed?)
        }
        other => other,
    }
}

/// Syncs the directory in which `give_name` has added a name, and removes the marker file.
pub fn sync_name(path: &Path) -> io::Result<()> {
    let synced = sync_directory(path);
    // If the sync failed, the caller removes the file or reports the error, so the marker file is not needed either.
    drop(fs::remove_file(unsynced_mark(path)));
    synced
}

/// Syncs the directory that contains `path`, which makes names added to or removed from the directory durable.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(parent)?.sync_all()
}
