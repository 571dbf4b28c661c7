//! Detects file systems that other computers can write to. A process on another computer cannot share the lock area
//! as memory nor, on some of these file systems, detect locks of this computer, so two writers would not exclude each
//! other.

use crate::error::{Error, Result};
use rustix::fs::statfs;
use std::path::Path;

/// Names of the kinds of file systems (`statfs`, `linux/magic.h`) whose files may be open on other computers, or, for
/// `9p` and `vboxsf`, on the host of this machine.
const NETWORK: [(u32, &str); 16] = [
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB2"),
    (0x564c, "NCP"),
    (0x5346_414f, "AFS"),
    (0x6b41_4653, "AFS"),
    (0x7375_7245, "Coda"),
    (0x0102_1997, "9p"),
    (0x00c3_6400, "Ceph"),
    (0x0bd0_0bd0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x1983_0326, "BeeGFS"),
    (0x7461_636f, "OCFS2"),
    (0x0116_1970, "GFS2"),
    (0x786f_4256, "vboxsf"),
];

/// Returns the name of a file system that other computers can write to; `None` for a local one. FUSE is not listed:
/// most FUSE file systems are local, and the number of FUSE does not identify the others.
pub fn name_of(kind: u32) -> Option<&'static str> {
    let known = NETWORK.iter().find(|(number, _)| *number == kind);
    known.map(|(_, name)| *name)
}

/// Returns an error if the file at `path`, which need not exist yet, lies or would lie on a file system that other
/// computers can write to.
pub fn refuse(path: &Path) -> Result<()> {
    // If the file system is unknown because a system call failed, opening the file reports the reason.
    let Some(kind) = kind_at(path) else {
        return Ok(());
    };
    match name_of(kind) {
        None => Ok(()),
        Some(kind) => Err(Error::NetworkFileSystem {
            path: path.to_owned(),
            kind,
        }),
    }
}

/// Test hook that pretends that a folder is on another kind of file system.
#[cfg(feature = "test-hooks")]
mod pretended {
    use std::cell::RefCell;
    use std::path::{Path, PathBuf};

    thread_local! {
        static FOLDER: RefCell<Option<(PathBuf, u32)>> = const { RefCell::new(None) };
    }

    /// From now on, this thread treats the folder and all paths in it as if they were on a file system of this kind;
    /// `None` ends the pretence.
    pub fn pretend(folder: Option<(PathBuf, u32)>) {
        FOLDER.set(folder);
    }

    pub(super) fn kind_of(path: &Path) -> Option<u32> {
        FOLDER.with_borrow(|pretended| {
            let (folder, kind) = pretended.as_ref()?;
            path.starts_with(folder).then_some(*kind)
        })
    }
}
#[cfg(feature = "test-hooks")]
pub use pretended::pretend;

/// Returns the kind of the file system on which `path` lies. If there is no file at `path`, the kind of its folder is
/// returned.
fn kind_at(path: &Path) -> Option<u32> {
    #[cfg(feature = "test-hooks")]
    if let Some(kind) = pretended::kind_of(path) {
        return Some(kind);
    }
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let found = statfs(path).or_else(|_| statfs(folder)).ok()?;
    Some(found.f_type as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NFS: u32 = 0x6969;
    const EXT4: u32 = 0xef53;

    #[test]
    fn kinds_of_file_systems_are_told_apart() {
        let names = [
            (NFS, Some("NFS")),
            (0x517b, Some("SMB")),
            (0xff53_4d42, Some("CIFS")),
            (0xfe53_4d42, Some("SMB2")),
            (0x0102_1997, Some("9p")),
            (0x00c3_6400, Some("Ceph")),
            (0x5346_414f, Some("AFS")),
            (0x6b41_4653, Some("AFS")),
            // The other kinds are XFS, btrfs, tmpfs, overlayfs and FUSE (sshfs among others).
            (EXT4, None),
            (0x5846_5342, None),
            (0x9123_683e, None),
            (0x0102_1994, None),
            (0x794c_7630, None),
            (0x6573_5546, None),
        ];
        for (kind, name) in names {
            assert_eq!(name_of(kind), name, "{kind:#x}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "a file system of the system")]
    fn a_file_system_of_this_computer_is_not_refused() {
        let folder = std::env::temp_dir();
        refuse(&folder).expect("a local one");
        refuse(&folder.join("not-there.tdl")).expect("a local one");
        refuse(Path::new("/not-there/plant.tdl")).expect("opening it tells");
    }
}
