//! Unnamed files for temporary data: no other process can open one, guess its place or put another file there, and it
//! disappears with the process, however that ends.

use crate::system::{new_uuid, uuid_text};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Permission for the owner alone, whose process is the only one that can reach the file anyway.
const MODE: u32 = 0o600;

/// Creates an unnamed file in this folder.
pub(super) fn create(folder: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match open(folder, flags, Mode::from_raw_mode(MODE)) {
        Ok(file) => Ok(file.into()),
        // Some file systems, and some systems, have no unnamed files.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => create_and_unlink(folder),
        Err(error) => Err(error.into()),
    }
}

/// Creates a file under a name that cannot be guessed, and removes the name at once.
fn create_and_unlink(folder: &Path) -> io::Result<File> {
    let random = new_uuid().map_err(io::Error::other)?;
    let path = folder.join(format!(".tidalite-{}", uuid_text(&random)));
    // `create_new` follows no link and takes no existing file.
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
