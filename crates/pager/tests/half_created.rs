//! Tests of a database whose creating process was killed: the file is complete and has its name, but the directory
//! was not synced, and the temporary name may still exist. The next open for writing must sync the directory and
//! remove the temporary name before any commit is acknowledged.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use tidalite_pager::{Durability, OpenMode, Options, Pager};

const FILE: &str = "TIDALITE_HALF_CREATED_FILE";

/// Locked by each test, so that only one test runs at a time. One test starts processes. Until such a child executes
/// its program, it holds the locks of all open files, even of files that the other test has closed since; these files
/// then seem to be in use.
static ALONE: Mutex<()> = Mutex::new(());

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tidalite-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(fs::canonicalize(path).unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn open(path: &Path, read_only: bool) -> Pager {
    let options = Options {
        read_only,
        mode: match read_only {
            true => OpenMode::Open,
            false => OpenMode::CreateOrOpen,
        },
        ..Options::default()
    };
    Pager::open(path, &options).unwrap()
}

fn commit(pager: &Pager) {
    let txn = pager.begin_write().unwrap();
    txn.commit(b"something", Durability::Durable).unwrap();
}

fn names(path: &Path) -> u64 {
    fs::metadata(path).unwrap().nlink()
}

/// The creating process was killed before it removed the temporary name. Opening for writing must remove this name.
#[test]
fn opening_for_writing_removes_the_temporary_name() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    tidalite_testkit::watch();
    let folder = Folder::new("half-created");
    let path = folder.at("plant.tdl");
    let others = [
        // These names must stay: a name of another file, a name without a number, a shorter name, and a name with a
        // suffix.
        "plant.tdl.new-77",
        "plant.tdl.new-7x",
        "plan.tdl.new-7",
        "plant.tdl.new-7-lock",
    ];
    for with_commits in [false, true] {
        drop(open(&path, false));
        if with_commits {
            let pager = open(&path, false);
            commit(&pager);
            pager.close().unwrap();
        }
        let temporary = folder.at("plant.tdl.new-7");
        fs::hard_link(&path, &temporary).unwrap();
        for (number, name) in others.iter().enumerate() {
            match number {
                0 => fs::write(folder.at(name), b"another").unwrap(),
                _ => fs::hard_link(&path, folder.at(name)).unwrap(),
            }
        }
        drop(open(&path, true));
        assert!(temporary.exists(), "a reader changes nothing");
        let pager = open(&path, false);
        assert!(!temporary.exists(), "with commits: {with_commits}");
        commit(&pager);
        pager.close().unwrap();
        for name in others {
            fs::remove_file(folder.at(name)).unwrap();
        }
        assert_eq!(names(&path), 1);
        fs::remove_file(&path).unwrap();
    }
}

/// This is not a test of its own: the process that is started under strace runs this function.
#[test]
fn opens_and_commits() {
    if let Ok(path) = std::env::var(FILE) {
        tidalite_testkit::watch();
        let pager = open(Path::new(&path), false);
        commit(&pager);
        pager.close().unwrap();
    }
}

/// Runs a process that opens the file and commits. Returns the number of its directory syncs, and whether they come
/// before the first sync of the file; `None` if strace is missing or lacks permission.
fn directory_syncs(folder: &Folder, path: &Path) -> Option<(usize, bool)> {
    let log = folder.at("log");
    let done = Command::new("strace")
        .args(["-f", "-qq", "-y", "-e", "trace=fsync,fdatasync,pwritev2"])
        .arg("-o")
        .arg(&log)
        .arg(std::env::current_exe().unwrap())
        .args(["opens_and_commits", "--exact", "--test-threads=1"])
        .env(FILE, path)
        .output();
    if !done.is_ok_and(|output| output.status.success()) {
        return None;
    }
    let log = fs::read_to_string(log).unwrap();
    let of = |path: &Path| format!("<{}>", path.display());
    let (directory, file) = (of(&folder.0), of(path));
    let syncs: Vec<bool> = log
        .lines()
        .filter_map(|line| match () {
            () if line.contains(&directory) => Some(true),
            () if line.contains(&file) => Some(false),
            () => None,
        })
        .collect();
    assert!(syncs.contains(&false), "it syncs its commit: {log}");
    let count = syncs.iter().filter(|&&is_directory| is_directory).count();
    Some((count, syncs[0]))
}

#[test]
fn the_directory_is_synced_where_a_killed_process_may_not_have_done_it() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    tidalite_testkit::watch();
    let folder = Folder::new("half-created-directory");
    let path = folder.at("plant.tdl");
    drop(open(&path, false));
    // The file has no commits yet. The process that created the file may have been killed right before it synced the
    // directory, so opening must sync it.
    let Some(found) = directory_syncs(&folder, &path) else {
        println!("skipped: no strace that may trace");
        return;
    };
    assert_eq!(found, (1, true), "a new file");
    // The first process has committed, so the directory is known to be synced.
    assert_eq!(directory_syncs(&folder, &path), Some((0, false)));
    // A process that restored the file and was killed before the directory sync leaves commits and a second name.
    fs::hard_link(&path, folder.at("plant.tdl.new-7")).unwrap();
    assert_eq!(directory_syncs(&folder, &path), Some((1, true)));
    assert_eq!(directory_syncs(&folder, &path), Some((0, false)));
}
