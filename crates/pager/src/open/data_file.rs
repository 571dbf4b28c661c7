//! Opens or creates the data file and its lock file, and returns a typed error for each way in which this can fail.

use crate::error::{Error, Result};
use crate::format::layout::{BLOCK_BYTES, superblock_at};
use crate::options::{OpenMode, Options};
use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::path::Path;
use tidalite_disk::Error as DiskError;
use tidalite_disk::lock;
use tidalite_disk::lock::Attachment;
use tidalite_disk::lock::path_next_to;
use tidalite_disk::storage::{create_file, device, network, real_path};

/// An open data file, with access to its lock file.
pub(crate) struct OpenFile {
    pub(crate) file: File,
    /// Access to the lock file. `None` only for a reader that cannot open a lock file; no writer can exist then,
    /// since a lock on the data file excludes writers.
    pub(crate) attachment: Option<Attachment>,
}

/// Opens the data file and its lock file; creates the data file with the contents `initial` if the options ask for
/// this. When the function returns, the caller has the setup lock.
pub(crate) fn open(
    path: &Path,
    options: &Options,
    initial: &dyn Fn() -> Result<Vec<u8>>,
) -> Result<OpenFile> {
    let (create, open_existing) = (
        options.mode != OpenMode::Open && !options.read_only,
        options.mode != OpenMode::Create,
    );
    let exists = match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => {
            return Err(Error::of_open(path, ErrorKind::IsADirectory.into()));
        }
        Ok(metadata) if device::is_device(&metadata) => {
            return open_device(path, options, create, initial);
        }
        Ok(_) => true,
        Err(error) if error.kind() == ErrorKind::NotFound => false,
        Err(error) => return Err(Error::of_open(path, error)),
    };
    if exists && !open_existing {
        return Err(Error::of_open(path, ErrorKind::AlreadyExists.into()));
    }
    if !exists && !create {
        return Err(Error::of_open(path, ErrorKind::NotFound.into()));
    }
    let lock_path = match &options.lock_path {
        Some(lock_path) => lock_path.clone(),
        None => path_next_to(&real_path(path)),
    };
    if !options.exclusive {
        network::refuse(path)?;
        network::refuse(&lock_path)?;
    }
    let opened = lock::file::open(lock_path, options.read_only)?;
    if !exists && !path.exists() {
        if let lock::file::Opened::Attached { attachment, .. } = &opened {
            attachment.expect_unused(path)?;
        }
        create_file(path, &initial()?)?;
    } else if !exists && !open_existing {
        return Err(Error::of_open(path, ErrorKind::AlreadyExists.into()));
    }
    let file = open_existing_file(path, options)?;
    opened.share_as(&file);
    lock::file::join(&file, &opened, options.exclusive, path)?;
    let attachment = opened.attachment();
    Ok(OpenFile { file, attachment })
}

fn open_existing_file(path: &Path, options: &Options) -> Result<File> {
    OpenOptions::new()
        .read(true)
        .write(!options.read_only)
        .open(path)
        .map_err(|error| Error::of_open(path, error))
}

/// Like `open`, for a block device, which always exists but need not contain a database.
fn open_device(
    path: &Path,
    options: &Options,
    create: bool,
    initial: &dyn Fn() -> Result<Vec<u8>>,
) -> Result<OpenFile> {
    let Some(lock_path) = &options.lock_path else {
        return Err(DiskError::LockFile {
            path: path_next_to(path),
            problem: "a database on a block device has its lock file elsewhere: say where (Options::lock_path)".into(),
        }
        .into());
    };
    if !options.exclusive {
        network::refuse(lock_path)?;
    }
    let opened = lock::file::open(lock_path.clone(), options.read_only)?;
    if !options.read_only {
        device::check_unclaimed(path).map_err(|error| Error::of_open(path, error))?;
    }
    let file = open_existing_file(path, options)?;
    opened.share_as(&file);
    lock::file::join(&file, &opened, options.exclusive, path)?;
    let attachment = opened.attachment();
    if create {
        let blank = device::is_blank(&file).map_err(|error| Error::of_open(path, error))?;
        let asked = options.mode == OpenMode::Create;
        if asked && !blank && !options.overwrite_device {
            return Err(Error::of_open(path, device::holds_something()));
        }
        if asked || blank {
            // A device may be overwritten only if no other handle uses it.
            if let Some(attachment) = &attachment
                && !attachment.is_alone()?
            {
                return Err(DiskError::OpenElsewhere {
                    path: path.to_owned(),
                }
                .into());
            }
            // The superblocks are written last, the second copy before the first.
            let superblock = |copy| {
                let at = superblock_at(copy) as usize;
                at..at + BLOCK_BYTES
            };
            device::create(&file, &initial()?, &[superblock(1), superblock(0)], path)?;
        }
    }
    Ok(OpenFile { file, attachment })
}
