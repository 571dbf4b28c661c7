//! Unnamed files for temporary data. No other process can open such a file, guess its name or replace it, and the
//! system removes it when the process ends for any reason.

use crate::system::{new_uuid, uuid_text};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Permission bits of an unnamed file: only its owner may access it.
const MODE: u32 = 0o600;

/// Creates an unnamed file in `folder`.
pub(super) fn create(folder: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match open(folder, flags, Mode::from_raw_mode(MODE)) {
        Ok(file) => Ok(file.into()),
        // Some file systems and some kernels do not support unnamed files.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => create_and_unlink(folder),
        Err(error) => Err(error.into()),
    }
}

/// Creates a file with a name that cannot be guessed, and removes the name at once.
fn create_and_unlink(folder: &Path) -> io::Result<File> {
    let random = new_uuid().map_err(io::Error::other)?;
    let path = folder.join(format!(".tidalite-{}", uuid_text(&random)));
    // `create_new` does not follow symbolic links and fails if the name exists.
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(MODE);
    let file = options.open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::{MODE, create, create_and_unlink};
    use std::fs;
    use std::os::unix::fs::{FileExt, MetadataExt};

    #[test]
    fn it_has_no_name_and_is_its_owners_alone() {
        let name = format!("tidalite-unnamed-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a folder");
        for make in [create, create_and_unlink] {
            let file = make(&folder).expect("a file");
            assert_eq!(fs::read_dir(&folder).expect("its names").count(), 0);
            let metadata = file.metadata().expect("its mode");
            assert_eq!((metadata.mode() & 0o777, metadata.nlink()), (MODE, 0));
            file.write_all_at(b"kept", 0).expect("written");
            let mut bytes = [0; 4];
            file.read_exact_at(&mut bytes, 0).expect("read");
            assert_eq!(&bytes, b"kept");
        }
        fs::remove_dir(&folder).expect("an empty folder");
    }
}
