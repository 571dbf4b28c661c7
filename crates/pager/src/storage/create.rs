//! Opening and creating the data file and its lock file, with an error for each way it can go wrong.
//!
//! A new file is written under a temporary name, synced, given its name without overwriting anything,
//! and the directory is synced: a crash leaves no half-made database under the name.

use crate::error::{Error, Result};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// An open data file and the lock that keeps others away.
pub(crate) struct OpenFile {
    pub(crate) file: File,
    /// `None` only for a read-only file where no lock file can be made. (The data file is locked as well.)
    pub(crate) lock: Option<File>,
}

fn failed(path: &Path, source: io::Error) -> Error {
    Error::Open {
        path: path.to_owned(),
        source,
    }
}

/// `name.tdl-lock` beside `name.tdl`.
fn lock_path(path: &Path) -> PathBuf {
    let mut name = OsString::from(path.as_os_str());
    name.push("-lock");
    PathBuf::from(name)
}

/// Opens the file; creates it with `initial` content if asked to.
pub(crate) fn open(
    path: &Path,
    create: bool,
    open_existing: bool,
    read_only: bool,
    exclusive: bool,
    initial: &dyn Fn() -> Result<Vec<u8>>,
) -> Result<OpenFile> {
    let exists = match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => {
            return Err(failed(path, ErrorKind::IsADirectory.into()));
        }
        Ok(_) => true,
        Err(error) if error.kind() == ErrorKind::NotFound => false,
        Err(error) => return Err(failed(path, error)),
    };
    if exists && !open_existing {
        return Err(failed(path, ErrorKind::AlreadyExists.into()));
    }
    if !exists && !create {
        return Err(failed(path, ErrorKind::NotFound.into()));
    }
    if !exists && read_only {
        return Err(failed(path, ErrorKind::NotFound.into()));
    }
    let lock = lock(path, read_only, exclusive)?;
    if !exists {
        create_file(path, &initial()?)?;
    }
    let file = OpenOptions::new()
        .read(true)
        .write(!read_only)
        .open(path)
        .map_err(|error| failed(path, error))?;
    // The data file too: it may have another name (a link), and then another lock file.
    try_lock(&file, path, path, !read_only || exclusive)?;
    Ok(OpenFile { file, lock })
}

fn try_lock(file: &File, named: &Path, path: &Path, alone: bool) -> Result<()> {
    let locked = if alone {
        file.try_lock()
    } else {
        file.try_lock_shared()
    };
    match locked {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(Error::OpenElsewhere {
            path: path.to_owned(),
        }),
        Err(TryLockError::Error(error)) => Err(failed(named, error)),
    }
}

fn lock(path: &Path, read_only: bool, exclusive: bool) -> Result<Option<File>> {
    let lock_path = lock_path(path);
    let opened = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&lock_path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if read_only => match File::open(&lock_path) {
            Ok(file) => file,
            // A medium that cannot hold a lock file has no writer either.
            Err(missing) if missing.kind() == ErrorKind::NotFound => return Ok(None),
            Err(_) => return Err(failed(&lock_path, error)),
        },
        Err(error) => return Err(failed(&lock_path, error)),
    };
    try_lock(&file, &lock_path, path, !read_only || exclusive)?;
    Ok(Some(file))
}

fn create_file(path: &Path, initial: &[u8]) -> Result<()> {
    let mut name = OsString::from(path.as_os_str());
    name.push(format!(".new-{}", std::process::id()));
    let temporary = PathBuf::from(name);
    let created = write_file(&temporary, initial).and_then(|()| give_name(&temporary, path));
    drop(fs::remove_file(&temporary));
    created.map_err(|error| failed(path, error))?;
    sync_directory(path).map_err(|error| failed(path, error))
}

fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // We hold the lock, so a temporary file of this name is a leftover of a crash.
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn give_name(temporary: &Path, path: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match fs::hard_link(temporary, path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            // Some file systems have no links.
            Ok(renameat_with(
                CWD,
                temporary,
                CWD,
                path,
                RenameFlags::NOREPLACE,
            )?)
        }
        other => other,
    }
}

fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(parent)?.sync_all()
}
