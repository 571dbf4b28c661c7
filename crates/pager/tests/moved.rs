//! Tests in which the data file is replaced, renamed or deleted while another process has it open and commits. The
//! test program starts itself as that process: an environment variable names the role of the child, and the child's
//! messages are lines that begin with `child: `.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod toy;

use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tidalite_pager::{DiskError, Durability, Error, OpenMode, Options, Pager};
use tidalite_testkit::rng::{Rng, mix};
use toy::{app, apply, changes, id_of, options, problems, read, root_of};

const ROLE: &str = "TIDALITE_MOVED_ROLE";
const FILE: &str = "TIDALITE_MOVED_FILE";
/// Number of commits that are in the file before the test begins.
const BEFORE: u64 = 5;
/// Time after which a child process stops if its commits do not fail.
const PATIENCE: Duration = Duration::from_secs(20);
/// Maximum time in nanoseconds until a process notices that the file was renamed: 20 ms, and two ticks of a coarse
/// clock.
const NOTICED_NS: u64 = 40_000_000;

/// Held while a child process starts, and by a test whose files no child may hold open. Until it runs its own program, a
/// child has a copy of each open file of this process, with its locks.
static STARTING: Mutex<()> = Mutex::new(());

fn starting() -> MutexGuard<'static, ()> {
    STARTING.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tidalite-{name}-{}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        fs::create_dir_all(&path).unwrap();
        Self(fs::canonicalize(path).unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn file(&self) -> PathBuf {
        self.at("plant.tdl")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn open(path: &Path) -> Result<Pager, Error> {
    Pager::open(path, &options())
}

/// Returns the time in nanoseconds on a clock that all processes share.
fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// Makes the next commit; returns its number.
fn commit(pager: &Pager, durability: Durability) -> Result<u64, Error> {
    let mut txn = pager.begin_write()?;
    let id = id_of(txn.app()) + 1;
    let root = root_of(txn.app());
    let root = apply(&mut txn, &root, &changes(&mut Rng::new(mix(id)), id))?;
    txn.commit(&app(&root, id), durability)?;
    Ok(id)
}

/// Returns the number of the newest commit, after reading all its data.
fn look(pager: &Pager) -> u64 {
    let reader = pager.begin_read().unwrap();
    read(&reader, &root_of(reader.app()), &mut |_, _| {}).unwrap();
    id_of(reader.app())
}

/// Creates a database with a few commits and closes it.
fn create(path: &Path) {
    let pager = open(path).unwrap();
    for _ in 0..BEFORE {
        commit(&pager, Durability::Durable).unwrap();
    }
    pager.close().unwrap();
}

fn say(text: impl std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "child: {text}").unwrap();
    out.flush().unwrap();
}

fn order() -> String {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    line.trim().to_owned()
}

fn is_moved<T>(done: Result<T, Error>) -> bool {
    matches!(done, Err(Error::Disk(DiskError::FileMoved { .. })))
}

/// Makes commits until one fails; returns the times at which the commits were acknowledged.
fn commit_until_refused(pager: &Pager, durability: Durability, done: &AtomicU64) -> Vec<u64> {
    let mut acknowledged = Vec::new();
    let begun = Instant::now();
    loop {
        assert!(
            begun.elapsed() < PATIENCE,
            "commits are acknowledged for ever"
        );
        match commit(pager, durability) {
            Ok(_) => acknowledged.push(now_ns()),
            Err(error) => {
                assert!(
                    matches!(error, Error::Disk(DiskError::FileMoved { .. })),
                    "{error}"
                );
                return acknowledged;
            }
        }
        if done.fetch_add(1, Ordering::Relaxed) == 20 {
            say("commits");
        }
    }
}

/// This is not a test of its own: the child processes run this function, each in its role.
#[test]
fn role_of_a_child() {
    let (Ok(role), Ok(path)) = (std::env::var(ROLE), std::env::var(FILE)) else {
        return;
    };
    tidalite_testkit::watch();
    let pager = open(Path::new(&path)).unwrap();
    let (durability, threads) = match role.as_str() {
        "Durable" => (Durability::Durable, 1),
        "OneFlush" => (Durability::OneFlush, 1),
        "Lazy" => (Durability::Lazy, 1),
        "Durable by many" => (Durability::Durable, 4),
        other => panic!("no such role: {other}"),
    };
    let before = look(&pager);
    let held = pager.begin_read().unwrap();
    say("ready");
    order();
    let done = AtomicU64::new(0);
    let acknowledged: Vec<u64> = std::thread::scope(|scope| {
        let work = || commit_until_refused(&pager, durability, &done);
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let all = threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap());
        all.collect()
    });
    // Reads must still work, and no operation may falsely report durability.
    assert_eq!(id_of(held.app()), before);
    look(&pager);
    assert!(is_moved(pager.begin_write()));
    assert!(is_moved(pager.try_begin_write()));
    assert!(is_moved(pager.sync()));
    assert!(is_moved(pager.checkpoint()));
    say("refused");
    let since: u64 = order().parse().unwrap();
    say(acknowledged.iter().filter(|&&at| at > since).count());
    order();
    drop(held);
    assert!(is_moved(pager.close()));
}

struct Process {
    child: Child,
    out: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn start(role: &str, path: &Path) -> Self {
        let starting = starting();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "role_of_a_child",
                "--exact",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(ROLE, role)
            .env(FILE, path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        drop(starting);
        let out = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, out }
    }

    fn told(&mut self) -> String {
        for line in self.out.by_ref() {
            // The line may begin with output of the test harness.
            if let Some((_, text)) = line.unwrap().split_once("child: ") {
                return text.to_owned();
            }
        }
        panic!("the child has ended");
    }

    fn order(&mut self, text: impl std::fmt::Display) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{text}").unwrap();
    }

    fn ends_well(&mut self) {
        self.order("end");
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// A copy is renamed over the file (`cp plant.tdl copy; mv copy plant.tdl`), as a restore or rsync does.
    CopyOver,
    Delete,
    /// Another database is renamed over the file.
    OtherOver,
    /// The file is renamed, and a copy of it gets the old name.
    Away,
}

const WAYS: [Way; 4] = [Way::CopyOver, Way::Delete, Way::OtherOver, Way::Away];

/// A process commits, the file is moved, and the commits of the process must fail; then other handles open the file
/// at the path.
fn move_it(way: Way, role: &str, acknowledged_max: u64) {
    tidalite_testkit::watch();
    let folder = Folder::new(&format!("moved-{way:?}-{}", role.replace(' ', "-")));
    let path = folder.file();
    let (copy, away) = (folder.at("copy.tdl"), folder.at("away.tdl"));
    create(&path);
    let mut child = Process::start(role, &path);
    assert_eq!(child.told(), "ready");
    match way {
        Way::OtherOver => create(&copy),
        _ => drop(fs::copy(&path, &copy).unwrap()),
    }
    child.order("commit");
    assert_eq!(child.told(), "commits");
    match way {
        Way::CopyOver | Way::OtherOver => fs::rename(&copy, &path).unwrap(),
        Way::Delete => fs::remove_file(&path).unwrap(),
        Way::Away => {
            fs::rename(&path, &away).unwrap();
            fs::rename(&copy, &path).unwrap();
        }
    }
    let moved = now_ns();
    assert_eq!(child.told(), "refused", "{way:?}, {role}");
    let slack = match (way, role) {
        (Way::Away, "Lazy") => NOTICED_NS,
        _ => 0,
    };
    child.order(moved + slack);
    let after: u64 = child.told().parse().unwrap();
    assert!(
        after <= acknowledged_max,
        "{way:?}, {role}: {after} acknowledged"
    );
    // While the process runs, no other handle may open another file at this path, even for reading, and no file may
    // be created.
    let to_read = Options {
        read_only: true,
        mode: OpenMode::Open,
        ..options()
    };
    let opened = match way {
        Way::Delete => vec![open(&path)],
        _ => vec![open(&path), Pager::open(&path, &to_read)],
    };
    for opened in opened {
        let Err(Error::Disk(DiskError::FileReplaced { process, .. })) = opened else {
            panic!("{way:?}, {role}: {:?}", opened.err());
        };
        assert_eq!(process, child.child.id());
    }
    assert_eq!(path.exists(), way != Way::Delete);
    child.ends_well();
    // The meta records left in the lock file belong to the moved file and must not be used for the file at this path.
    let pager = open(&path).unwrap();
    if way == Way::Delete {
        assert_eq!(pager.begin_read().unwrap().app(), b"");
    } else {
        assert_eq!(look(&pager), BEFORE, "{way:?}, {role}");
        commit(&pager, Durability::Durable).unwrap();
    }
    assert_eq!(problems(&pager).unwrap(), Vec::<String>::new());
}

#[test]
fn at_most_one_durable_commit_is_acknowledged_after_the_file_was_moved() {
    for way in WAYS {
        move_it(way, "Durable", 1);
    }
}

#[test]
fn at_most_one_commit_to_the_log_is_acknowledged_after_the_file_was_moved() {
    for way in WAYS {
        move_it(way, "OneFlush", 1);
    }
}

#[test]
fn at_most_one_lazy_commit_is_acknowledged_after_the_file_was_moved() {
    for way in WAYS {
        move_it(way, "Lazy", 1);
    }
}

/// Several threads share flushes. A thread may learn late that its commit was acknowledged before the file was moved.
/// No flush may acknowledge commits after the move.
#[test]
fn no_flush_acknowledges_commits_after_the_file_was_moved() {
    for way in WAYS {
        move_it(way, "Durable by many", 4);
    }
}

/// A killed process leaves lazy commits in the lock file. They must apply to the file that the process had open, not
/// to a copy.
#[test]
fn lazy_commits_do_not_apply_to_a_file_restored_over_theirs() {
    tidalite_testkit::watch();
    let folder = Folder::new("moved-weak");
    let _no_child = starting();
    let (path, backup) = (folder.file(), folder.at("backup.tdl"));
    create(&path);
    fs::copy(&path, &backup).unwrap();
    let pager = open(&path).unwrap();
    let lazy = commit(&pager, Durability::Lazy).unwrap();
    pager.close_without_sync();
    let pager = open(&path).unwrap();
    assert_eq!(look(&pager), lazy, "the same file");
    pager.close_without_sync();
    fs::rename(&backup, &path).unwrap();
    let pager = open(&path).unwrap();
    assert_eq!(look(&pager), BEFORE);
    assert_eq!(problems(&pager).unwrap(), Vec::<String>::new());
}

/// Changes of links to the file, and of the name of its folder, must not count as a move of the file.
#[test]
fn links_and_renamed_folders_do_not_move_a_file() {
    tidalite_testkit::watch();
    let folder = Folder::new("moved-not");
    let data = folder.at("data");
    fs::create_dir(&data).unwrap();
    let (path, link) = (data.join("plant.tdl"), folder.at("link.tdl"));
    create(&path);
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let pager = open(&link).unwrap();
    let goes_on = || commit(&pager, Durability::Durable).unwrap();
    goes_on();
    // Removing a symbolic link to the file does not move the file.
    fs::remove_file(&link).unwrap();
    goes_on();
    let second = folder.at("second.tdl");
    fs::hard_link(&path, &second).unwrap();
    goes_on();
    fs::remove_file(&second).unwrap();
    goes_on();
    // Renaming the folder moves the data file and the lock file together.
    fs::rename(&data, folder.at("renamed")).unwrap();
    goes_on();
    let renamed = folder.at("renamed").join("plant.tdl");
    let other = open(&renamed).unwrap();
    let seen = look(&other);
    assert_eq!(commit(&other, Durability::Durable).unwrap(), seen + 1);
    let newest = goes_on();
    assert_eq!(look(&other), newest);
    drop(other);
    // Another file is created at the old path.
    fs::create_dir(&data).unwrap();
    fs::write(&path, b"another").unwrap();
    match commit(&pager, Durability::Durable) {
        Err(Error::Disk(DiskError::FileMoved { now_at, .. })) => assert_eq!(now_at, Some(renamed)),
        other => panic!("{other:?}"),
    }
    assert_eq!(look(&pager), newest, "reading goes on");
}

/// The lock file stores device and inode of the data file, so that a copied lock file must not apply to another file.
#[test]
fn the_lock_file_names_the_inode_of_the_data_file() {
    tidalite_testkit::watch();
    let folder = Folder::new("moved-inode");
    let path = folder.file();
    let pager = open(&path).unwrap();
    let image = fs::read(folder.at("plant.tdl-lock")).unwrap();
    let word = |at: usize| u64::from_ne_bytes(image[at..at + 8].try_into().unwrap());
    let data = fs::metadata(&path).unwrap();
    assert_eq!((word(80), word(88)), (data.dev(), data.ino()));
    drop(pager);
}
