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
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // If `statfs` fails for both, opening the file reports the reason.
    let Ok(found) = statfs(path).or_else(|_| statfs(folder)) else {
        return Ok(());
    };
    match name_of(found.f_type as u32) {
        None => Ok(()),
        Some(kind) => Err(Error::NetworkFileSystem {
            path: path.to_owned(),
            kind,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_file_systems_are_told_apart() {
        let names = [
            (0x6969, Some("NFS")),
            (0xfe53_4d42, Some("SMB2")),
            (0x0102_1997, Some("9p")),
            (0x00c3_6400, Some("Ceph")),
            // ext4, XFS, btrfs, tmpfs, overlayfs, FUSE.
            (0xef53, None),
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
