//! Tests that a database on a network file system, to which other computers may write, can be opened only
//! exclusively.

use std::fs;
use std::path::Path;
use tidalite_disk::storage::network::pretend;
use tidalite_pager::{DiskError, Error, Options, Pager};

const NFS: u32 = 0x6969;
const EXT4: u32 = 0xef53;

/// Runs a test with a folder and a subfolder, which is treated as a mounted file system of this kind.
fn with_mount<T>(name: &str, kind: u32, test: impl FnOnce(&Path, &Path) -> T) -> T {
    let name = format!("tidalite-network-{name}-{}", std::process::id());
    let here = std::env::temp_dir().join(name);
    let mount = here.join("mount");
    fs::create_dir_all(&mount).unwrap();
    let here = fs::canonicalize(&here).unwrap();
    let mount = here.join("mount");
    pretend(Some((mount.clone(), kind)));
    let result = test(&here, &mount);
    pretend(None);
    fs::remove_dir_all(&here).unwrap();
    result
}

fn is_refused(path: &Path, options: &Options, place: &Path) {
    match Pager::open(path, options) {
        Err(Error::Disk(DiskError::NetworkFileSystem { path, kind })) => {
            assert_eq!((path.as_path(), kind), (place, "NFS"));
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("{} is opened", path.display()),
    }
}

#[test]
fn a_database_there_is_refused_unless_it_is_opened_exclusively() {
    let shared = Options::default();
    let exclusive = Options {
        exclusive: true,
        ..Options::default()
    };
    tidalite_testkit::watch();
    with_mount("shared", NFS, |_, mount| {
        let path = mount.join("plant.tdl");
        is_refused(&path, &shared, &path);
        assert_eq!(fs::read_dir(mount).unwrap().count(), 0, "nothing is made");
        drop(Pager::open(&path, &exclusive).unwrap());
        // Now that the file exists, opening it for writing or reading must fail in the same way.
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
fn a_lock_file_there_is_refused_beside_a_local_database() {
    tidalite_testkit::watch();
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
fn a_database_on_a_local_file_system_is_shared() {
    tidalite_testkit::watch();
    with_mount("local", EXT4, |_, mount| {
        drop(Pager::open(mount.join("plant.tdl"), &Options::default()).unwrap());
    });
}
