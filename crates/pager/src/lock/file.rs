//! The lock file: `name.tdl-lock` beside `name.tdl`, or where `Options::lock_path` says. It is safe to delete when nobody has the database open;
//! what it says about weak commits is then gone, and with them the commits.
//!
//! Whoever has locked a file under this name looks whether the name still means that file: it may have been
//! deleted and made anew meanwhile. Who works with which lock file is also said by a lock on the data file
//! (`join`), so that a lock file that is deleted while in use, or a data file that has two names, is noticed.

use super::area::{AREA_BYTES, Area};
use super::bytes::{ByteLocks, LockedFile, Mode};
use super::map::SharedMap;
use super::{Seat, failed, ofd};
use crate::error::{Error, Result};
use rustix::fs::{FallocateFlags, fallocate};
use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Locks on the data file: everybody shares the byte of the lock file that it uses. Far beyond any data.
const GROUPS: u64 = 1 << 61;
const GROUPS_LEN: u64 = 1 << 60;
/// Attempts to lock a file that somebody keeps deleting.
const ATTEMPTS: usize = 100;

/// `name.tdl-lock` beside `name.tdl`.
pub(crate) fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(path.as_os_str());
    name.push("-lock");
    PathBuf::from(name)
}

/// The lock file of a database, locked for setup, and its number among lock files. `None`: a reader cannot
/// have one, so it must see to it that nobody writes.
pub(crate) fn open(path: PathBuf, read_only: bool) -> Result<Option<(Seat, u64)>> {
    for _ in 0..ATTEMPTS {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        // One for the locks and one for the map: a map keeps what it was made of open, in forked children too.
        let opened = options.open(&path);
        let (file, mapped) = match opened.and_then(|file| Ok((file, options.open(&path)?))) {
            Ok(files) => files,
            Err(_) if read_only => return Ok(None),
            Err(error) => return Err(failed(&path, error)),
        };
        let fail = |error| failed(&path, error);
        let number = file.metadata().map_err(fail)?.ino();
        let locks = ByteLocks::File(LockedFile::new(file));
        super::wait_for_setup(&locks, &path)?;
        let ByteLocks::File(LockedFile(file)) = &locks else {
            unreachable!("it was made of a file")
        };
        let named = match fs::metadata(&path) {
            Ok(metadata) => Some((metadata.dev(), metadata.ino())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(fail(error)),
        };
        let metadata = file.metadata().map_err(fail)?;
        let is_named = |of: &Metadata| named == Some((of.dev(), of.ino()));
        if !is_named(&metadata) || !is_named(&mapped.metadata().map_err(fail)?) {
            continue;
        }
        match make_whole(file, metadata.len()).and_then(|()| SharedMap::new(&mapped)) {
            Ok(map) => {
                let area = Area::Mapped(Arc::new(map));
                return Ok(Some((Seat { area, locks, path }, number)));
            }
            Err(_) if read_only => return Ok(None),
            Err(error) => return Err(fail(error)),
        }
    }
    Err(Error::LockFile {
        path,
        problem: "somebody keeps deleting it".into(),
    })
}

/// All blocks of the area exist, so that writing to the map cannot fail. Under the setup lock.
fn make_whole(file: &File, len: u64) -> io::Result<()> {
    if len < AREA_BYTES as u64 {
        // Nobody has mapped it yet. Written, not only reserved: a first write then allocates nothing at all.
        let written = file.write_all_at(&[0; AREA_BYTES], 0);
        if written.is_err() {
            drop(file.set_len(0));
        }
        return written;
    }
    // A copy of a lock file may have holes.
    match fallocate(file, FallocateFlags::empty(), 0, AREA_BYTES as u64) {
        Err(error) if error != rustix::io::Errno::OPNOTSUPP => Err(error.into()),
        _ => Ok(()),
    }
}

/// Says on the data file which lock file is used (`None`: none), and fails when others use another one.
pub(crate) fn join(file: &File, number: Option<u64>, exclusive: bool, path: &Path) -> Result<()> {
    let fail = |error| failed(path, error);
    let group = number.map_or(0, |number| 1 + number % (GROUPS_LEN - 1));
    let (byte, end) = (GROUPS + group, GROUPS + GROUPS_LEN);
    let mut free = ofd::try_lock(file, byte, 1, Mode::Shared).map_err(fail)?;
    for (from, to) in [(GROUPS, byte), (byte + 1, end)] {
        free = free && (from == to || !ofd::taken(file, from, to - from).map_err(fail)?);
    }
    if number.is_none() {
        // Without a lock file only the data file can keep others away.
        let locked = if exclusive {
            file.try_lock()
        } else {
            file.try_lock_shared()
        };
        free = free && locked.is_ok();
    }
    if free {
        Ok(())
    } else {
        Err(Error::OpenElsewhere {
            path: path.to_owned(),
        })
    }
}

/// Which start of the system this is.
pub(crate) fn boot_id() -> [u8; 16] {
    let mut id = [0; 16];
    let Ok(text) = fs::read_to_string("/proc/sys/kernel/random/boot_id") else {
        return id;
    };
    let digits: Vec<u8> = text
        .chars()
        .filter_map(|c| c.to_digit(16).map(|digit| digit as u8))
        .collect();
    for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = pair[0] << 4 | pair[1];
    }
    id
}
