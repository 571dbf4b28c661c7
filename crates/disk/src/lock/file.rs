//! The lock file: `name.tdl-lock` beside `name.tdl`, or the path in `Options::lock_path`. It may be deleted while no
//! handle has the database open; its unsynced meta records, and with them the lazy commits, are then lost.
//!
//! After locking a file under this name, a handle checks that the name still denotes that file, which may have been
//! deleted and recreated in between. A lock on the data file (`join`) identifies the lock file in use, which detects a
//! lock file deleted while in use, or a data file with two names.
//!
//! A reader beside a writer registers itself in the lock file, so it needs write permission; and write permission
//! suffices to stop the writers, or to forge commits. A new lock file is writable for those who may write the data
//! file, and for its group if the group may read it: the readers of a service should form a group. World-readable data
//! does not make the lock file world-writable, because most files are created world-readable. A mode changed by hand is
//! kept.

use super::area::Area;
use super::attachment::{Attachment, wait_for_closed, wait_for_setup};
use super::bytes::{ByteLocks, LockedFile};
use super::layout::AREA_BYTES;
use super::map::SharedMap;
use super::ofd;
use super::ofd::Mode;
use crate::error::{Error, Result};
use rustix::fs::{FallocateFlags, fallocate};
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// First byte of a range of locks on the data file, far beyond any data. Each handle takes a shared lock on the byte
/// that stands for its lock file, so that handles with different lock files are detected.
const GROUPS: u64 = 1 << 61;
const GROUPS_LEN: u64 = 1 << 60;
/// Permission bits of a new lock file until `share_as` sets others.
const OWNER_ONLY: u32 = 0o600;
/// Maximum number of attempts to lock a file that is deleted again and again.
const ATTEMPTS: usize = 100;

/// Result of opening the lock file of a database.
pub enum Opened {
    /// The lock file was opened, and the caller has the setup lock.
    Attached {
        /// The lock area, in which the handle is not registered yet.
        attachment: Attachment,
        /// Inode number of the lock file.
        number: u64,
        /// Whether the lock file is new, that is, it was never used before.
        is_new: bool,
    },
    /// The system does not permit the process to write to the lock file, so a reader must exclude writers in another
    /// way.
    Refused {
        /// Path of the lock file.
        path: PathBuf,
        /// Error that the operating system returned.
        source: Arc<io::Error>,
    },
}

impl Opened {
    /// Returns the lock area, or `None` if the lock file could not be opened for writing.
    #[must_use]
    pub fn attachment(self) -> Option<Attachment> {
        match self {
            Self::Attached { attachment, .. } => Some(attachment),
            Self::Refused { .. } => None,
        }
    }

    /// Gives a new lock file the owner, the group and suitable permissions of the data file. If the system does not
    /// permit this, the lock file keeps the owner and group of its creator.
    pub fn share_as(&self, data: &File) {
        if let Self::Attached {
            attachment, is_new, ..
        } = self
            && *is_new
            && let ByteLocks::File(LockedFile(file)) = &attachment.locks
        {
            drop(data.metadata().and_then(|data| share_as(file, &data)));
        }
    }
}

fn share_as(file: &File, data: &Metadata) -> io::Result<()> {
    let (uid, gid) = (Some(data.uid()), Some(data.gid()));
    // The superuser can set the owner; other users can only set a group to which they belong.
    if fchown(file, uid, gid).is_err() {
        drop(fchown(file, None, gid));
    }
    let same_group = file.metadata()?.gid() == data.gid();
    file.set_permissions(Permissions::from_mode(mode_as(data.mode(), same_group)))
}

/// Computes the permission bits of the lock file. Owner, group and others may each read and write the file, or
/// neither: a process that can only read could already block other processes by a byte lock.
fn mode_as(data: u32, same_group: bool) -> u32 {
    let group = same_group && data & 0o040 != 0;
    let others = data & 0o006 == 0o006;
    OWNER_ONLY | if group { 0o060 } else { 0 } | if others { 0o006 } else { 0 }
}

/// Opens a lock file, or creates it if it is missing. An existing file is opened without the create flag, because in a
/// world-writable folder the system refuses that flag for files of other users.
fn open_or_make(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            options.create(true).mode(OWNER_ONLY).open(path)
        }
        opened => opened,
    }
}

/// Opens the lock file, or creates it if it is missing.
pub fn open(path: PathBuf, read_only: bool) -> Result<Opened> {
    for _ in 0..ATTEMPTS {
        // The file is opened twice, once for the locks and once for the memory map, because a map keeps its open file
        // alive, even in forked children.
        let opened = open_or_make(&path);
        let (file, mapped) = match opened.and_then(|file| Ok((file, open_or_make(&path)?))) {
            Ok(files) => files,
            Err(source) if read_only => {
                let source = Arc::new(source);
                return Ok(Opened::Refused { path, source });
            }
            Err(error) => return Err(Error::of_open(&path, error)),
        };
        let fail = |error| Error::of_open(&path, error);
        let number = file.metadata().map_err(fail)?.ino();
        let locks = ByteLocks::File(LockedFile::new(file));
        wait_for_setup(&locks, &path)?;
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
                return Ok(Opened::Attached {
                    attachment: Attachment { area, locks, path },
                    number,
                    is_new: metadata.len() < AREA_BYTES as u64,
                });
            }
            Err(source) if read_only => {
                let source = Arc::new(source);
                return Ok(Opened::Refused { path, source });
            }
            Err(error) => return Err(fail(error)),
        }
    }
    Err(Error::LockFile {
        path,
        problem: "somebody keeps deleting it".into(),
    })
}

/// Allocates all blocks of the area, so that writing to the map cannot fail. The caller must have the setup lock.
fn make_whole(file: &File, len: u64) -> io::Result<()> {
    if len < AREA_BYTES as u64 {
        // Zeros are written instead of reserving blocks, so that later writes to the mapped file allocate no blocks.
        // The file is not mapped yet.
        let written = file.write_all_at(&[0; AREA_BYTES], 0);
        if written.is_err() {
            drop(file.set_len(0));
        }
        return written;
    }
    // The lock file may have holes if it was copied; they are filled as well.
    match fallocate(file, FallocateFlags::empty(), 0, AREA_BYTES as u64) {
        Err(error) if error != rustix::io::Errno::OPNOTSUPP => Err(error.into()),
        _ => Ok(()),
    }
}

/// Marks on the data file that this handle uses lock file `number`. Returns whether no other handle uses another lock
/// file.
fn try_join(file: &File, number: Option<u64>, exclusive: bool) -> io::Result<bool> {
    let group = number.map_or(0, |number| 1 + number % (GROUPS_LEN - 1));
    let (byte, end) = (GROUPS + group, GROUPS + GROUPS_LEN);
    let mut free = ofd::try_lock(file, byte, 1, Mode::Shared)?;
    for (from, to) in [(GROUPS, byte), (byte + 1, end)] {
        free = free && (from == to || !ofd::taken(file, from, to - from)?);
    }
    if number.is_none() {
        // If a handle has no lock file, only a lock on the data file can exclude other handles.
        let locked = if exclusive {
            file.try_lock()
        } else {
            file.try_lock_shared()
        };
        free = free && locked.is_ok();
    }
    Ok(free)
}

/// Marks on the data file which lock file this handle uses, if any. Returns an error if other handles use another
/// lock file.
pub fn join(file: &File, opened: &Opened, exclusive: bool, path: &Path) -> Result<()> {
    let number = match opened {
        Opened::Attached { number, .. } => Some(*number),
        Opened::Refused { .. } => None,
    };
    let joined = wait_for_closed(|| try_join(file, number, exclusive));
    let free = joined.map_err(|error| Error::of_open(path, error))?;
    match opened {
        _ if free => Ok(()),
        Opened::Attached { .. } => Err(Error::OpenElsewhere {
            path: path.to_owned(),
        }),
        Opened::Refused { path, source } => Err(Error::LockRefused {
            path: path.clone(),
            source: Arc::clone(source),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    /// Number of open descriptors that this process has for the file at `path`.
    fn descriptors(path: &Path) -> usize {
        let all = fs::read_dir("/proc/self/fd").expect("what is open");
        let named = all.filter(|entry| {
            let link = entry.as_ref().map(|entry| fs::read_link(entry.path()));
            matches!(link, Ok(Ok(link)) if link == path)
        });
        named.count()
    }

    /// A handle that waits for a lock file must not use it if the file lost its name during the wait: other handles
    /// would use a new lock file.
    #[test]
    #[cfg_attr(miri, ignore = "files of the system")]
    fn a_lock_file_that_lost_its_name_while_it_was_waited_for_is_not_used() {
        let folder = std::env::temp_dir().join(format!("tidalite-lock-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        // The folder must have the path that the system reports in `/proc`.
        let folder = fs::canonicalize(folder).expect("its path");
        let (path, other) = (folder.join("a-lock"), folder.join("away"));
        let first = open(path.clone(), false).expect("a lock file");
        let opened_by_one = descriptors(&path);
        let waiting = std::thread::spawn({
            let path = path.clone();
            move || open(path, false)
        });
        let begun = Instant::now();
        while descriptors(&path) < opened_by_one + 2 {
            assert!(
                begun.elapsed() < Duration::from_secs(10),
                "it opens the file"
            );
            std::thread::yield_now();
        }
        fs::rename(&path, &other).expect("renamed");
        drop(first);
        let second = waiting.join().expect("no panic").expect("a lock file");
        let Opened::Attached { number, is_new, .. } = &second else {
            panic!("it may write there")
        };
        let named = fs::metadata(&path).expect("made anew").ino();
        assert!(*is_new && *number == named);
        assert_ne!(named, fs::metadata(&other).expect("it is there").ino());
        drop(second);
        fs::remove_dir_all(folder).expect("removed");
    }
}
