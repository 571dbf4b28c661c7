//! Checks whether the open data file is still the file at its path. Other programs may replace, rename or delete the
//! file while it is open; the system then continues to write to the old file, which cannot be found again.
//!
//! ```text
//! look         system calls                 when
//! quick        fstat of the open file       each time the writer lock is acquired
//! full         fstat, stat of the path      before a flush is acknowledged; when the writer lock comes from another
//!                                           handle; when the number of links has changed; else every `FULL_LOOK_NS`
//! ```
//!
//! Invariants
//! 1. The path is the real one, resolved when the file was opened: a later change of a symbolic link has no effect.
//! 2. A file that was found moved stays so for this handle, even if it is moved back: another process may have opened
//!    the path in between.
//! 3. Only certain findings count. If the path cannot be resolved (no permission, or its folder is missing after a
//!    rename of the folder or a `chroot`), a file that still has a name counts as unmoved.

use super::device;
use crate::error::{Error, Result};
use crate::system::now_ns;
use rustix::fs::{Stat, fstat, stat, syncfs};
use rustix::io::Errno;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Maximum interval between checks of the path during commits, in nanoseconds. A check costs three times an `fstat`
/// (decision 0028). Between two checks, no data of a renamed file are lost, and a deleted file is detected by its
/// number of names.
const FULL_LOOK_NS: u64 = 20_000_000;

/// Identity of a file: its device and inode. For a block device it is the device number and 0. If both numbers are 0,
/// the storage is not a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileId {
    /// Number of the device on which the file lies, or of the block device itself.
    pub device: u64,
    /// Inode number of the file; 0 for a block device.
    pub inode: u64,
}

impl FileId {
    /// Returns the identity of the file or block device with this metadata.
    #[must_use]
    pub fn of(metadata: &Metadata) -> Self {
        if device::is_device(metadata) {
            return Self {
                device: metadata.rdev(),
                inode: 0,
            };
        }
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }

    /// Whether `found`, the result of a `stat` call, describes the file or block device with this identity.
    fn is_of(self, found: &Stat) -> bool {
        let is_device = rustix::fs::FileType::from_raw_mode(found.st_mode).is_block_device();
        match self.inode {
            0 => is_device && found.st_rdev == self.device,
            inode => !is_device && (found.st_dev, found.st_ino) == (self.device, inode),
        }
    }

    fn is_device(self) -> bool {
        self.inode == 0
    }
}

/// The open data file and its expected path.
#[derive(Debug)]
pub struct Named {
    file: Arc<File>,
    path: PathBuf,
    /// Identity of the open file.
    pub id: FileId,
    /// Number of names (hard links) of the file at the last check of the path.
    links: AtomicU64,
    /// Time of the last check of the path, on the clock of `now_ns`; 0 before the first check.
    looked_ns: AtomicU64,
    moved: OnceLock<Error>,
}

/// How thoroughly a check looks for a moved file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveCheck {
    /// Checks the path only if the number of names of the open file has changed, or if the last check of the path was
    /// long ago.
    Quick,
    /// Always checks the path.
    Full,
}

impl Named {
    /// Creates the value for an open file; `path` is the path of the file without symbolic links.
    pub(super) fn new(file: Arc<File>, path: PathBuf, metadata: &Metadata) -> Self {
        Self {
            id: FileId::of(metadata),
            file,
            path,
            links: AtomicU64::new(metadata.nlink()),
            looked_ns: AtomicU64::new(0),
            moved: OnceLock::new(),
        }
    }

    /// Whether this is a file, not a block device.
    pub(super) fn is_file(&self) -> bool {
        !self.id.is_device()
    }

    /// Returns the current number of names (hard links) of the open file.
    pub(super) fn names(&self) -> io::Result<u64> {
        Ok(links(&fstat(&self.file)?))
    }

    /// Makes everything that was written to the file's file system durable, including the names of files.
    pub(super) fn sync_file_system(&self) -> io::Result<()> {
        Ok(syncfs(&self.file)?)
    }

    /// Returns an error if an earlier check found that the file was moved.
    #[inline]
    pub fn known(&self) -> Result<()> {
        match self.moved.get() {
            None => Ok(()),
            Some(error) => Err(error.clone()),
        }
    }

    /// Returns an error if the file at the path is no longer the open file.
    pub fn check(&self, check_path: MoveCheck) -> Result<()> {
        self.known()?;
        let now = now_ns();
        let is_due = now.saturating_sub(self.looked_ns.load(Ordering::Relaxed)) >= FULL_LOOK_NS;
        if check_path == MoveCheck::Full || is_due {
            return self.check_path(now);
        }
        if self.id.is_device() {
            return Ok(());
        }
        match fstat(&self.file) {
            Ok(own) if links(&own) == self.links.load(Ordering::Relaxed) => Ok(()),
            _ => self.check_path(now),
        }
    }

    fn check_path(&self, now: u64) -> Result<()> {
        let own = fstat(&self.file)
            .map_err(|error| Error::of_call("fstat of the data file", 0, error))?;
        let links = links(&own);
        let unlinked = links == 0 && !self.id.is_device();
        let found = match stat(&self.path) {
            Ok(there) if self.id.is_of(&there) => None,
            Ok(_) => Some("another file has taken its place"),
            Err(Errno::NOENT | Errno::NOTDIR) if unlinked => Some("it was deleted"),
            // The folder exists but has no entry of this name.
            Err(Errno::NOENT) if !self.id.is_device() && self.folder_exists() => {
                Some("nothing has this name any more")
            }
            Err(_) if unlinked && self.links.load(Ordering::Relaxed) != 0 => Some("it was deleted"),
            Err(_) => None,
        };
        let Some(found) = found else {
            self.links.store(links, Ordering::Relaxed);
            self.looked_ns.store(now, Ordering::Relaxed);
            return Ok(());
        };
        let error = self.moved.get_or_init(|| Error::FileMoved {
            path: self.path.clone(),
            found,
            now_at: (links > 0).then(|| self.name_now()).flatten(),
        });
        Err(error.clone())
    }

    fn folder_exists(&self) -> bool {
        self.path.parent().is_some_and(Path::is_dir)
    }

    /// Returns the current path of the open file if the system reports one, and if the path leads to this file.
    fn name_now(&self) -> Option<PathBuf> {
        let descriptor = self.file.as_fd().as_raw_fd();
        let name = fs::read_link(format!("/proc/self/fd/{descriptor}")).ok()?;
        let there = stat(&name).ok()?;
        self.id.is_of(&there).then_some(name)
    }
}

/// Number of names (hard links) of a file. The integer type of `st_nlink` has 4 or 8 bytes, depending on the
/// platform.
fn links(found: &Stat) -> u64 {
    u128::from(found.st_nlink) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path =
                std::env::temp_dir().join(format!("tidalite-named-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).expect("a folder");
            Self(fs::canonicalize(path).expect("its path"))
        }

        fn named(&self) -> Named {
            let path = self.0.join("plant.tdl");
            let file = File::create(&path).expect("a file");
            let metadata = file.metadata().expect("its metadata");
            Named::new(Arc::new(file), path, &metadata)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            drop(fs::remove_dir_all(&self.0));
        }
    }

    /// Returns the current path of the file in a `FileMoved` error.
    fn now_at(done: Result<()>) -> Option<PathBuf> {
        match done {
            Err(Error::FileMoved { now_at, .. }) => now_at,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "files of the system")]
    fn a_deleted_file_is_found_by_the_next_quick_check() {
        let folder = Folder::new("deleted");
        let named = folder.named();
        named.check(MoveCheck::Full).expect("as it was opened");
        named.check(MoveCheck::Quick).expect("as it was opened");
        fs::remove_file(&named.path).expect("deleted");
        assert_eq!(now_at(named.check(MoveCheck::Quick)), None);
        // The file still counts as moved if another file appears at its path.
        File::create(&named.path).expect("another one");
        assert_eq!(now_at(named.known()), None);
    }

    #[test]
    #[cfg_attr(miri, ignore = "files of the system")]
    fn a_file_that_loses_one_of_two_names_is_moved_only_if_it_is_that_of_its_path() {
        let folder = Folder::new("links");
        let named = folder.named();
        named.check(MoveCheck::Full).expect("as it was opened");
        let second = folder.0.join("second.tdl");
        fs::hard_link(&named.path, &second).expect("a second name");
        named.check(MoveCheck::Quick).expect("it has its name");
        fs::remove_file(&second).expect("deleted");
        named.check(MoveCheck::Quick).expect("it has its name");
        fs::hard_link(&named.path, &second).expect("a second name");
        named.check(MoveCheck::Quick).expect("it has its name");
        fs::remove_file(&named.path).expect("deleted");
        let found = named.check(MoveCheck::Quick).expect_err("it has not");
        assert!(
            found.to_string().contains("nothing has this name"),
            "{found}"
        );
    }

    #[test]
    #[cfg_attr(miri, ignore = "files of the system")]
    fn a_renamed_file_is_found_by_a_full_check_and_its_new_name_told() {
        let folder = Folder::new("renamed");
        let named = folder.named();
        let away = folder.0.join("away.tdl");
        fs::rename(&named.path, &away).expect("renamed");
        assert_eq!(now_at(named.check(MoveCheck::Full)), Some(away.clone()));
        // The file still counts as moved after it is moved back, because another process may have opened the path in
        // between.
        fs::rename(&away, &named.path).expect("renamed back");
        assert_eq!(now_at(named.check(MoveCheck::Full)), Some(away));
    }

    #[test]
    #[cfg_attr(miri, ignore = "files of the system")]
    fn a_file_of_this_inode_on_another_device_is_another_file() {
        let folder = Folder::new("device");
        let named = folder.named();
        let found = stat(&named.path).expect("its metadata");
        let FileId { device, inode } = named.id;
        assert!(named.id.is_of(&found));
        let elsewhere = FileId {
            device: device + 1,
            inode,
        };
        assert!(!elsewhere.is_of(&found));
    }

    #[test]
    #[cfg_attr(miri, ignore = "files of the system")]
    fn a_file_whose_folder_was_renamed_is_used_until_another_one_is_at_its_path() {
        let folder = Folder::new("folder");
        let inner = Folder(folder.0.join("data"));
        fs::create_dir_all(&inner.0).expect("a folder");
        let named = inner.named();
        let old = folder.0.join("data.old");
        fs::rename(&inner.0, &old).expect("renamed");
        named
            .check(MoveCheck::Full)
            .expect("the folder is gone, the file is not");
        fs::create_dir_all(&inner.0).expect("a folder");
        fs::write(&named.path, b"another").expect("a file");
        assert_eq!(
            now_at(named.check(MoveCheck::Full)),
            Some(old.join("plant.tdl"))
        );
    }

    #[test]
    #[cfg_attr(miri, ignore = "files of the system")]
    fn a_file_whose_folder_was_deleted_with_it_is_moved() {
        let folder = Folder::new("emptied");
        let inner = Folder(folder.0.join("data"));
        fs::create_dir_all(&inner.0).expect("a folder");
        let named = inner.named();
        fs::remove_dir_all(&inner.0).expect("deleted");
        assert_eq!(now_at(named.check(MoveCheck::Quick)), None);
    }
}
