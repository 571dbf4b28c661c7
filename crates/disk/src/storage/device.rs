//! Block devices: inspection of their content, and creation of a database on one.
//!
//! Invariants
//! 1. Nothing is written to a device that a file system or another user in the kernel has claimed. Unless requested,
//!    nothing is written to a device with any content in its first or last MiB, where file systems, partition tables
//!    and volume managers keep their signatures.
//! 2. The device becomes a database only when the superblocks (`last`) are written, after everything else was synced.
//!    An interrupted creation is refused like any other content.

use crate::error::{Error, Result};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Number of bytes at each end of a device that are inspected for contents, and overwritten on request.
const ENDS_BYTES: u64 = 1 << 20;

/// Whether `metadata` describes a block device.
#[must_use]
pub fn is_device(metadata: &Metadata) -> bool {
    metadata.file_type().is_block_device()
}

/// Returns the length of a device in bytes, which the metadata of a device does not contain.
pub fn len(mut file: &File) -> io::Result<u64> {
    file.seek(SeekFrom::End(0))
}

/// Returns an error if a file system on the device is mounted, or if another user in the kernel has claimed the
/// device.
pub fn check_unclaimed(path: &Path) -> io::Result<()> {
    let exclusive = libc::O_EXCL | libc::O_CLOEXEC;
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(exclusive)
        .open(path);
    opened.map(drop)
}

/// Returns the first and the last MiB of a device, each as offset and length in bytes.
fn ends(len: u64) -> [(u64, u64); 2] {
    let bytes = len.min(ENDS_BYTES);
    [(0, bytes), (len - bytes, bytes)]
}

/// Whether both ends of a device, where signatures of file systems would be, contain only zeros.
pub fn is_blank(file: &File) -> io::Result<bool> {
    let mut bytes = Vec::new();
    for (at, len) in ends(len(file)?) {
        bytes.resize(len as usize, 0);
        file.read_exact_at(&mut bytes, at)?;
        if bytes.iter().any(|&byte| byte != 0) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Creates a database on a device and discards the device's content. The parts of the image in `last` are written one
/// after the other, after everything else has been synced.
pub fn create(file: &File, image: &[u8], last: &[Range<usize>], path: &Path) -> Result<()> {
    let failed = |source| Error::of_open(path, source);
    let len = len(file).map_err(failed)?;
    if len < image.len() as u64 {
        return Err(Error::DiskFull {
            needed_bytes: image.len() as u64,
        });
    }
    write(file, len, image, last).map_err(failed)
}

fn write(file: &File, len: u64, image: &[u8], last: &[Range<usize>]) -> io::Result<()> {
    for (at, bytes) in ends(len) {
        file.write_all_at(&vec![0; bytes as usize], at)?;
    }
    file.sync_all()?;
    let mut rest = image.to_vec();
    for part in last {
        rest[part.clone()].fill(0);
    }
    file.write_all_at(&rest, 0)?;
    file.sync_all()?;
    for part in last {
        file.write_all_at(&image[part.clone()], part.start as u64)?;
    }
    file.sync_all()
}

/// Creates the error for a device that is not empty.
pub fn holds_something() -> io::Error {
    let reason = "the device holds something already (Options::overwrite_device would wipe it)";
    io::Error::new(ErrorKind::AlreadyExists, reason)
}
