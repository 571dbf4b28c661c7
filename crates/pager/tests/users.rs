//! Tests of the permissions of a second user that reads while a writer is active. This program starts itself as that
//! user, from a folder accessible to all. These tests need the superuser; without it they report that they are
//! skipped.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use tidalite_pager::{DiskError, Durability, Error, OpenMode, Options, Pager};

const FILE: &str = "TIDALITE_USERS_FILE";
const ROLE: &str = "TIDALITE_USERS_ROLE";
/// Numbers of a user and of groups. They need not be registered in the system.
const SOMEBODY: u32 = 65_533;
const READERS: u32 = 65_532;
const OTHERS: u32 = 65_531;

fn is_superuser() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// Lock that each test takes, so that one test runs at a time: a child process that is being started briefly has the
/// files of this process open.
static ALONE: Mutex<()> = Mutex::new(());

/// A folder that everyone can read, with a copy of this program in it.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let name = format!("tidalite-users-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        set_mode(&path, 0o755);
        let program = path.join("program");
        fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        set_mode(&program, 0o755);
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("plant.tdl")
    }

    fn lock(&self) -> PathBuf {
        self.0.join("plant.tdl-lock")
    }

    /// Starts this program as another user in the given group. Returns the output of the program.
    fn as_somebody(&self, group: u32, role: &str) -> String {
        let mut command = Command::new(self.0.join("program"));
        command
            .args(["--exact", "child", "--nocapture"])
            .env(FILE, self.file())
            .env(ROLE, role)
            .current_dir(&self.0)
            .uid(SOMEBODY)
            .gid(group);
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let told = text.lines().find_map(|line| line.strip_prefix("child: "));
        told.unwrap_or_else(|| panic!("{output:?}")).to_owned()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

fn mode_of(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

fn open(path: &Path, read_only: bool) -> Result<Pager, Error> {
    let options = Options {
        read_only,
        mode: OpenMode::CreateOrOpen,
        ..Options::default()
    };
    Pager::open(path, &options)
}

/// This is not a test of its own: the process of the other user runs this function.
#[test]
fn child() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    tidalite_testkit::watch();
    let path = PathBuf::from(std::env::var(FILE).unwrap());
    let seen = open(&path, role == "read")
        .and_then(|pager| Ok(String::from_utf8_lossy(pager.begin_read()?.app()).into_owned()));
    println!();
    match seen {
        Ok(app) => println!("child: reads {app}"),
        Err(Error::Disk(DiskError::LockRefused { path, source })) => {
            println!("child: refused {} {:?}", path.display(), source.kind());
        }
        Err(Error::Disk(DiskError::Open { path, source })) => {
            println!("child: cannot open {} {:?}", path.display(), source.kind());
        }
        Err(error) => println!("child: {error:?}"),
    }
}

/// A member of the group that may read the database must be able to read while a writer is active. Other users must
/// get an error that names the file that refuses access.
#[test]
fn readers_of_the_group_read_beside_the_writer() {
    if !is_superuser() {
        println!("skipped");
        return;
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    tidalite_testkit::watch();
    let place = Place::new("group");
    drop(open(&place.file(), false).unwrap());
    chown(place.file(), None, Some(READERS)).unwrap();
    set_mode(&place.file(), 0o640);
    // The next lock file must get the permissions of the data file.
    fs::remove_file(place.lock()).unwrap();
    let writer = open(&place.file(), false).unwrap();
    assert_eq!(mode_of(&place.lock()), 0o660);
    assert_eq!(fs::metadata(place.lock()).unwrap().gid(), READERS);
    let txn = writer.begin_write().unwrap();
    txn.commit(b"one", Durability::Durable).unwrap();
    assert_eq!(place.as_somebody(READERS, "read"), "reads one");
    let held = writer.begin_write().unwrap();
    assert_eq!(place.as_somebody(READERS, "read"), "reads one");
    drop(held);
    // Even if everyone may read the data file, the lock file must not be accessible to everyone.
    set_mode(&place.file(), 0o644);
    let lock = fs::canonicalize(place.lock()).unwrap();
    let lock = lock.display();
    let refused = format!("refused {lock} PermissionDenied");
    assert_eq!(place.as_somebody(OTHERS, "read"), refused);
    set_mode(&place.file(), 0o646);
    let refused = format!("cannot open {lock} PermissionDenied");
    assert_eq!(place.as_somebody(OTHERS, "write"), refused);
    // Permissions that someone has set for the lock file must be respected and kept.
    set_mode(&place.lock(), 0o666);
    assert_eq!(place.as_somebody(OTHERS, "read"), "reads one");
    drop(writer);
    assert_eq!(mode_of(&place.lock()), 0o666);
    // Without a writer, reading requires only access to the data file.
    set_mode(&place.lock(), 0o600);
    assert_eq!(place.as_somebody(OTHERS, "read"), "reads one");
}

/// When the superuser opens a database of another user, the new lock file must not lock that user out.
#[test]
fn a_lock_file_has_the_owner_of_the_database() {
    if !is_superuser() {
        println!("skipped");
        return;
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    tidalite_testkit::watch();
    let place = Place::new("owner");
    let pager = open(&place.file(), false).unwrap();
    let txn = pager.begin_write().unwrap();
    txn.commit(b"two", Durability::Durable).unwrap();
    drop(pager);
    set_mode(&place.file(), 0o600);
    chown(place.file(), Some(SOMEBODY), Some(OTHERS)).unwrap();
    fs::remove_file(place.lock()).unwrap();
    drop(open(&place.file(), true).unwrap());
    assert_eq!(mode_of(&place.lock()), 0o600);
    let owner = fs::metadata(place.lock()).unwrap();
    assert_eq!((owner.uid(), owner.gid()), (SOMEBODY, OTHERS));
    assert_eq!(place.as_somebody(OTHERS, "write"), "reads two");
}
