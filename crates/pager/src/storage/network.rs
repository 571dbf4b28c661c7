//! File systems that other computers can write to. A process there cannot share our lock area as memory nor, on some of
//! them, see our locks: two writers would not exclude each other.

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

/// Name of a file system that other computers can write to; `None` for a local one. FUSE is not listed: most such file
/// systems are local, and its kind does not identify the others.
pub(crate) fn name_of(kind: u32) -> Option<&'static str> {
    let known = NETWORK.iter().find(|(number, _)| *number == kind);
    known.map(|(_, name)| *name)
}

/// Fails if the file of this path, which need not exist yet, would lie on such a file system.
pub(crate) fn refuse(path: &Path) -> Result<()> {
    // If the kind is unknown, opening the file reports the reason.
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

/// The kind of file system of a path, or of its folder where nothing is there yet.
fn kind_at(path: &Path) -> Option<u32> {
    #[cfg(test)]
    if let Some(kind) = tests::pretended(path) {
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
    use crate::{Options, Pager};
    use std::cell::RefCell;
    use std::fs;
    use std::path::PathBuf;

    const NFS: u32 = 0x6969;
    const EXT4: u32 = 0xef53;

    thread_local! {
        /// A folder, and the kind of file system that this thread takes it for.
        static PRETENDED: RefCell<Option<(PathBuf, u32)>> = const { RefCell::new(None) };
    }

    pub(super) fn pretended(path: &Path) -> Option<u32> {
        PRETENDED.with_borrow(|pretended| {
            let (folder, kind) = pretended.as_ref()?;
            path.starts_with(folder).then_some(*kind)
        })
    }

    /// A folder of this test's own, with one inside that is taken for a file system of this kind.
    fn with_mount<T>(name: &str, kind: u32, test: impl FnOnce(&Path, &Path) -> T) -> T {
        let name = format!("tidalite-network-{name}-{}", std::process::id());
        let here = std::env::temp_dir().join(name);
        let mount = here.join("mount");
        fs::create_dir_all(&mount).unwrap();
        let here = fs::canonicalize(&here).unwrap();
        let mount = here.join("mount");
        PRETENDED.set(Some((mount.clone(), kind)));
        let result = test(&here, &mount);
        PRETENDED.set(None);
        fs::remove_dir_all(&here).unwrap();
        result
    }

    fn is_refused(path: &Path, options: &Options, place: &Path) {
        match Pager::open(path, options) {
            Err(Error::NetworkFileSystem { path, kind }) => {
                assert_eq!((path.as_path(), kind), (place, "NFS"));
            }
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("{} is opened", path.display()),
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "files of the system")]
    fn a_database_there_is_refused_unless_it_is_opened_exclusively() {
        let shared = Options::default();
        let exclusive = Options {
            exclusive: true,
            ..Options::default()
        };
        with_mount("shared", NFS, |_, mount| {
            let path = mount.join("plant.tdl");
            is_refused(&path, &shared, &path);
            assert_eq!(fs::read_dir(mount).unwrap().count(), 0, "nothing is made");
            drop(Pager::open(&path, &exclusive).unwrap());
            // Now that it is there, writers and readers are refused alike.
            is_refused(&path, &shared, &path);
            let reading = Options {
                read_only: true,
                ..Options::default()
            };
            is_refused(&path, &reading, &path);
            drop(Pager::open(&path, &exclusive).unwrap());
        });
    }

    #[test]
    #[cfg_attr(miri, ignore = "files of the system")]
    fn a_lock_file_there_is_refused_beside_a_local_database() {
        with_mount("lock", NFS, |here, mount| {
            let lock_path = mount.join("plant.tdl-lock");
            let mut options = Options {
                lock_path: Some(lock_path.clone()),
                ..Options::default()
            };
            is_refused(&here.join("plant.tdl"), &options, &lock_path);
            options.exclusive = true;
            drop(Pager::open(here.join("plant.tdl"), &options).unwrap());
        });
    }

    #[test]
    #[cfg_attr(miri, ignore = "files of the system")]
    fn a_database_on_a_local_file_system_is_shared() {
        with_mount("local", EXT4, |_, mount| {
            drop(Pager::open(mount.join("plant.tdl"), &Options::default()).unwrap());
        });
    }

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
            // ext4, XFS, btrfs, tmpfs, overlayfs, FUSE (sshfs among others).
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
