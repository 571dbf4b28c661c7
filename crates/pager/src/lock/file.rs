//! The lock file: `name.tdl-lock` beside `name.tdl`, or where `Options::lock_path` says. It is safe to delete when nobody has the database open;
//! what it says about weak commits is then gone, and with them the commits.
//!
//! Whoever has locked a file under this name looks whether the name still means that file: it may have been
//! deleted and made anew meanwhile. Who works with which lock file is also said by a lock on the data file
//! (`join`), so that a lock file that is deleted while in use, or a data file that has two names, is noticed.
//!
//! Whoever reads beside a writer enters itself in the lock file, so it must be able to write to it; and whoever can write to it can stop the
//! writers, or make them believe in commits that nobody made. A new lock file is for those who may write the data file, and for its
//! group where that may read it: so the readers of a service are put into a group. Everybody is not let in by that everybody may read: that is
//! how most files are made. Whoever wants that changes the mode, which stays as it is.

use super::area::Area;
use super::bytes::{ByteLocks, LockedFile};
use super::layout::AREA_BYTES;
use super::map::SharedMap;
use super::ofd;
use super::ofd::Mode;
use super::seat::{Seat, wait_for_setup};
use crate::error::{Error, Result, copy_of};
use rustix::fs::{FallocateFlags, fallocate};
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Locks on the data file: everybody shares the byte of the lock file that it uses. Far beyond any data.
const GROUPS: u64 = 1 << 61;
const GROUPS_LEN: u64 = 1 << 60;
/// The mode of a lock file before it is shared.
const OWNER_ONLY: u32 = 0o600;
/// Attempts to lock a file that somebody keeps deleting.
const ATTEMPTS: usize = 100;

/// The lock file of a database.
pub(crate) enum Opened {
    /// Locked for setup.
    Here {
        seat: Seat,
        /// Among lock files.
        number: u64,
        /// Nobody has used it yet.
        is_new: bool,
    },
    /// A reader cannot have one, so it must see to it that nobody writes.
    Refused { path: PathBuf, source: io::Error },
}

impl Opened {
    pub(crate) fn seat(self) -> Option<Seat> {
        match self {
            Self::Here { seat, .. } => Some(seat),
            Self::Refused { .. } => None,
        }
    }

    /// A new lock file is for those for whom the data file is. Where the system refuses that it stays with who made it.
    pub(crate) fn share_as(&self, data: &File) {
        if let Self::Here { seat, is_new, .. } = self
            && *is_new
            && let ByteLocks::File(LockedFile(file)) = &seat.locks
        {
            drop(data.metadata().and_then(|data| share_as(file, &data)));
        }
    }
}

fn share_as(file: &File, data: &Metadata) -> io::Result<()> {
    let (uid, gid) = (Some(data.uid()), Some(data.gid()));
    // The superuser makes it for the owner of the data; others give it to a group that they are in.
    if fchown(file, uid, gid).is_err() {
        drop(fchown(file, None, gid));
    }
    let same_group = file.metadata()?.gid() == data.gid();
    file.set_permissions(Permissions::from_mode(mode_as(data.mode(), same_group)))
}

/// Owner, group and others either read and write a lock file, or have nothing to do with it: a lock on a byte is in the way of others whoever has it.
fn mode_as(data: u32, same_group: bool) -> u32 {
    let group = same_group && data & 0o040 != 0;
    let others = data & 0o006 == 0o006;
    OWNER_ONLY | if group { 0o060 } else { 0 } | if others { 0o006 } else { 0 }
}

/// One that is there is not asked to be made: in a folder that all may write to, the system refuses that for the files of others.
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

/// Opens it, and makes it where it is not there.
pub(crate) fn open(path: PathBuf, read_only: bool) -> Result<Opened> {
    for _ in 0..ATTEMPTS {
        // One for the locks and one for the map: a map keeps what it was made of open, in forked children too.
        let opened = open_or_make(&path);
        let (file, mapped) = match opened.and_then(|file| Ok((file, open_or_make(&path)?))) {
            Ok(files) => files,
            Err(source) if read_only => return Ok(Opened::Refused { path, source }),
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
                return Ok(Opened::Here {
                    seat: Seat { area, locks, path },
                    number,
                    is_new: metadata.len() < AREA_BYTES as u64,
                });
            }
            Err(source) if read_only => return Ok(Opened::Refused { path, source }),
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

/// Says on the data file which lock file is used, if one is, and fails when others use another one.
pub(crate) fn join(file: &File, opened: &Opened, exclusive: bool, path: &Path) -> Result<()> {
    let fail = |error| Error::of_open(path, error);
    let number = match opened {
        Opened::Here { number, .. } => Some(number),
        Opened::Refused { .. } => None,
    };
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
    match opened {
        _ if free => Ok(()),
        Opened::Here { .. } => Err(Error::OpenElsewhere {
            path: path.to_owned(),
        }),
        Opened::Refused { path, source } => Err(Error::LockRefused {
            path: path.clone(),
            source: copy_of(source),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    /// Descriptors of this process on a file of this name.
    fn descriptors(path: &Path) -> usize {
        let all = fs::read_dir("/proc/self/fd").expect("what is open");
        let named = all.filter(|entry| {
            let link = entry.as_ref().map(|entry| fs::read_link(entry.path()));
            matches!(link, Ok(Ok(link)) if link == path)
        });
        named.count()
    }

    /// Who waited for a lock file that lost its name meanwhile does not work with it.
    #[test]
    #[cfg_attr(miri, ignore = "files of the system")]
    fn a_lock_file_that_lost_its_name_while_it_was_waited_for_is_not_used() {
        let folder = std::env::temp_dir().join(format!("tidalite-lock-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        // As the system names it.
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
        let Opened::Here { number, is_new, .. } = &second else {
            panic!("it may write there")
        };
        let named = fs::metadata(&path).expect("made anew").ino();
        assert!(*is_new && *number == named);
        assert_ne!(named, fs::metadata(&other).expect("it is there").ino());
        drop(second);
        fs::remove_dir_all(folder).expect("removed");
    }
}
