//! Tests of system calls: short writes must continue where they stopped, and every promise of durability must be kept
//! by a sync. Each test runs this program again as a second process.

#![cfg(target_os = "linux")]
#![expect(clippy::print_stdout, reason = "a test says what it skips")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tidalite_pager::{Durability, FileStorage, Kind, Options, PageWrite, Pager, Storage, restore};

const ROLE: &str = "TIDALITE_TEST_SYSTEM_CALLS_ROLE";
const FOLDER: &str = "TIDALITE_TEST_SYSTEM_CALLS_FOLDER";

/// A folder that is removed after the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("tidalite-calls-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Runs this program again in the given role. If `by` is not empty, it is the command line of another program, which
/// starts this program.
fn run(by: &[&str], role: &str, folder: &Path) -> Output {
    let own = std::env::current_exe().unwrap();
    let mut words = by.iter().map(OsStr::new).chain([own.as_os_str()]);
    Command::new(words.next().unwrap())
        .args(words)
        .args(["role_of_a_child", "--exact", "--nocapture"])
        .env(ROLE, role)
        .env(FOLDER, folder)
        .output()
        .unwrap()
}

fn expect_success(output: &Output) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{out}{errors}");
}

#[test]
fn role_of_a_child() {
    let (Some(role), Some(folder)) = (std::env::var_os(ROLE), std::env::var_os(FOLDER)) else {
        return;
    };
    let folder = PathBuf::from(folder);
    match role.to_str().unwrap() {
        "short writes" => write_beyond_the_limit(&folder),
        "commits" => commit_in_every_way(&folder),
        "restore" => {
            let backup = Box::new(File::open(folder.join("backup")).unwrap());
            let mut chain = std::iter::once(Ok(backup as Box<dyn Read>));
            restore(&mut chain, &folder.join("b.tdl"), None, &mut |_, _, _| {
                Ok(())
            })
            .unwrap();
        }
        "open" => drop(Pager::open(folder.join("b.tdl"), &Options::default()).unwrap()),
        other => panic!("no role {other}"),
    }
}

/// Number of bytes written in the tests of short writes.
const BYTES: usize = 3 << 20;

fn pattern() -> Vec<u8> {
    (0..BYTES)
        .map(|at| (at * 31 + (at >> 8) * 7) as u8)
        .collect()
}

/// A limit on the file length cuts a write short: the system writes up to the limit and returns the number of bytes
/// written. Writing the rest must return an error, and must not write anywhere else.
#[test]
fn writes_that_are_cut_short_go_on_where_they_stopped() {
    let folder = Folder::new("short");
    // The limit is half a MiB or one MiB, depending on the unit of the shell. Without the trap, the signal SIGXFSZ
    // would end the process.
    let shell = r#"trap "" XFSZ; ulimit -f 1024 || exit 77; exec "$0" "$@""#;
    let output = run(&["sh", "-c", shell], "short writes", &folder.0);
    if output.status.code() == Some(77) {
        println!("skipped: no limit");
        return;
    }
    expect_success(&output);
}

fn write_beyond_the_limit(folder: &Path) {
    let bytes = pattern();
    // The limit is a power of two. It is not a multiple of the length of these pieces, so it cuts a piece.
    let pieces: Vec<&[u8]> = bytes.chunks(300_007).collect();
    type Write<'a> = &'a dyn Fn(&FileStorage) -> std::io::Result<()>;
    let whole = |storage: &FileStorage| storage.write_at(0, &bytes);
    let in_pieces = |storage: &FileStorage| storage.write_pieces(0, &pieces);
    let passing = |storage: &FileStorage| storage.write_passing(0, &pieces);
    let durably = |storage: &FileStorage| storage.write_durably(0, &bytes);
    let ways: [(&str, Write<'_>); 4] = [
        ("whole", &whole),
        ("in pieces", &in_pieces),
        ("passing", &passing),
        ("durably", &durably),
    ];
    for (name, write) in ways {
        let path = folder.join(name);
        let open = || {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(true);
            options.open(&path)
        };
        let storage = FileStorage::new(open().unwrap(), false).unwrap();
        let written = write(&storage);
        let found = fs::read(&path).unwrap();
        assert!(written.is_err(), "{name}: {} bytes", found.len());
        assert!(!found.is_empty() && found.len() < BYTES, "{name}");
        assert!(found == bytes[..found.len()], "{name}: other bytes");
    }
}

/// Creates a file, and makes commits with two syncs and a commit in the redo log.
fn commit_in_every_way(folder: &Path) {
    let pager = Pager::open(folder.join("a.tdl"), &Options::default()).unwrap();
    let commit = |durability, pages: usize| {
        let mut txn = pager.begin_write().unwrap();
        for _ in 0..pages {
            let page = txn.new_page(Kind::KvLeaf, 1).unwrap();
            txn.seal_page(&page).unwrap();
        }
        let mark = format!("{durability:?}");
        File::create(folder.join(format!("before-{mark}-{pages}"))).unwrap();
        txn.commit(mark.as_bytes(), durability).unwrap();
        File::create(folder.join(format!("after-{mark}-{pages}"))).unwrap();
    };
    commit(Durability::Durable, 1);
    commit(Durability::OneFlush, 1);
    // The first `OneFlush` commit has created the redo log, and this commit is written to the redo log.
    commit(Durability::OneFlush, 2);
    // This commit needs more pages than the file has, so the file grows.
    commit(Durability::Durable, 4000);
}

/// Returns the system calls of a process, as reported by strace, or `None` if strace is not permitted to trace.
fn calls(role: &str, folder: &Path) -> Option<Vec<String>> {
    let (output, calls) = injected(&[], role, folder)?;
    expect_success(&output);
    Some(calls)
}

/// Returns the output and the system calls of a process into which strace injects errors and signals.
fn injected(what: &[&str], role: &str, folder: &Path) -> Option<(Output, Vec<String>)> {
    let log = folder.join("calls");
    let watched = "trace=openat,linkat,renameat2,fsync,fdatasync,pwrite64,pwritev,pwritev2";
    let mut by = vec![
        "strace",
        "-f",
        "-qq",
        "-y",
        "-e",
        watched,
        "-o",
        log.to_str()?,
    ];
    for what in what {
        by.extend(["-e", what]);
    }
    let there = Command::new(by[0]).args(&by[1..]).arg("true").output();
    if !there.is_ok_and(|output| output.status.success()) {
        println!("skipped: strace");
        return None;
    }
    let output = run(&by, role, folder);
    let text = fs::read_to_string(&log).unwrap();
    Some((output, text.lines().map(str::to_owned).collect()))
}

/// Returns the system calls from the first call that names the file `from` up to the first call that names `to`.
fn between<'c>(calls: &'c [String], from: &str, to: &str) -> &'c [String] {
    let at = |name: &str| calls.iter().position(|call| call.contains(name));
    &calls[at(from).unwrap()..at(to).unwrap()]
}

fn count(calls: &[String], call: &str, what: &str) -> usize {
    let is_one = |line: &&String| line.contains(&format!("{call}(")) && line.contains(what);
    calls.iter().filter(is_one).count()
}

/// Creation must sync a file before the file gets its name, and must sync its folder afterwards. A commit with two
/// syncs must make two system calls that sync, and a commit in the redo log one synchronous write. Growth must be
/// synced together with the file length.
#[test]
fn every_barrier_is_a_call_of_the_system() {
    let folder = Folder::new("barriers");
    let Some(calls) = calls("commits", &folder.0) else {
        return;
    };
    let folder_name = fs::canonicalize(&folder.0).unwrap();
    let folder_name = format!("<{}>", folder_name.to_str().unwrap());
    let linked = calls.iter().position(|call| call.contains("linkat("));
    let (making, made) = calls.split_at(linked.expect("the file gets its name"));
    assert!(count(making, "fsync", "a.tdl.new-") > 0, "before its name");
    let made = between(made, "linkat(", "before-Durable-1");
    assert!(
        count(made, "fsync", &folder_name) > 0,
        "the folder: {made:?}"
    );

    let durable = between(&calls, "before-Durable-1\"", "after-Durable-1\"");
    let syncs = count(durable, "fdatasync", "a.tdl>") + count(durable, "fsync", "a.tdl>");
    assert!(syncs >= 2, "two barriers: {durable:?}");
    let logged = between(&calls, "before-OneFlush-2\"", "after-OneFlush-2\"");
    assert_eq!(count(logged, "pwritev2", "RWF_DSYNC"), 1, "{logged:?}");
    let grown = between(&calls, "before-Durable-4000\"", "after-Durable-4000\"");
    assert!(count(grown, "fsync", "a.tdl>") > 0, "its length: {grown:?}");
}

/// On a file system without hard links, a restored file is renamed to its final name. Its folder must still be
/// synced: by the restoring process or, if that process is killed just before the sync, by the next open.
#[test]
fn the_folder_of_a_restored_file_is_synced_without_hard_links() {
    const NO_LINKS: &str = "inject=linkat:error=EPERM";
    let folder = Folder::new("links");
    let pager = Pager::open(folder.0.join("a.tdl"), &Options::default()).unwrap();
    for app in [b"one", b"two"] {
        let txn = pager.begin_write().unwrap();
        txn.commit(app, Durability::Durable).unwrap();
    }
    let mut backup = File::create(folder.0.join("backup")).unwrap();
    let moved = &mut |_, _, _| Ok(());
    pager.backup(None, None, &mut backup, moved).unwrap();
    drop(pager);
    let restored = folder.0.join("b.tdl");
    let folder_name = fs::canonicalize(&folder.0).unwrap();
    let folder_name = format!("<{}>", folder_name.to_str().unwrap());

    let Some((output, calls)) = injected(&[NO_LINKS], "restore", &folder.0) else {
        return;
    };
    expect_success(&output);
    let renamed = calls.iter().position(|call| call.contains("renameat2("));
    let renamed = renamed.expect("it has no other way");
    let is_sync = |call: &String| call.contains("fsync(") && call.contains(&folder_name);
    let synced = calls[renamed..].iter().position(is_sync);
    let synced = renamed + synced.expect("the folder");
    let left = || {
        let names = fs::read_dir(&folder.0).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names
            .filter(|name| name.starts_with("b.") && !name.ends_with("-lock"))
            .collect();
        names.sort();
        names
    };
    assert_eq!(left(), ["b.tdl"], "nothing else is left");

    // Now the process is killed at the sync of the folder.
    fs::remove_file(&restored).unwrap();
    let thread = calls[synced].split(' ').next().unwrap();
    let of_thread = |call: &&String| call.starts_with(thread) && call.contains("fsync(");
    let before = calls[..=synced].iter().filter(of_thread).count();
    let kill = format!("inject=fsync:signal=SIGKILL:when={before}");
    let (output, calls) = injected(&[NO_LINKS, &kill], "restore", &folder.0).unwrap();
    let killed = output.status.signal() == Some(9) || output.status.code() == Some(137);
    assert!(killed, "{:?}: {calls:#?}", output.status);
    assert!(count(&calls, "renameat2", "b.tdl") > 0, "{calls:?}");
    assert!(restored.exists());
    let (output, calls) = injected(&[], "open", &folder.0).unwrap();
    expect_success(&output);
    assert!(calls.iter().any(is_sync), "the folder: {calls:#?}");
    assert_eq!(left(), ["b.tdl"], "nothing else is left");
    // After the open that synced the folder, nothing remains to be synced, so the next open must not sync.
    let (output, calls) = injected(&[], "open", &folder.0).unwrap();
    expect_success(&output);
    assert!(!calls.iter().any(is_sync), "{calls:#?}");
}
