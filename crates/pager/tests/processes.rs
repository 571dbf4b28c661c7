//! Tests with several real processes on one file. The test program starts itself; an environment variable names the
//! role of a child; the child's messages are lines that begin with `child: `.
//!
//! The contents after commit n follow from n alone, so any process can verify the commits of any other.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod toy;

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use tidalite_pager::{
    DiskError, Durability, Error, HANDLES_MAX, OpenMode, Options, Pager, READERS_MAX,
};
use tidalite_testkit::rng::{Rng, mix};
use toy::{Content, SLOTS, app, apply, changes, id_of, options, problems, read, root_of};

const ROLE: &str = "TIDALITE_PROCESS_ROLE";
const FILE: &str = "TIDALITE_PROCESS_FILE";
const PATIENCE: Duration = Duration::from_secs(20);

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tidalite-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("plant.tdl")
    }

    fn lock(&self) -> PathBuf {
        self.0.join("plant.tdl-lock")
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

fn open_to_read(path: &Path) -> Result<Pager, Error> {
    let options = Options {
        read_only: true,
        mode: OpenMode::Open,
        ..options()
    };
    Pager::open(path, &options)
}

/// Opens a file that this process has closed, and retries for a while. A child that another test starts at this
/// moment may hold the file until the child executes its program.
fn soon(open: impl Fn() -> Result<Pager, Error>) -> Pager {
    let begun = Instant::now();
    loop {
        match open() {
            Err(
                Error::Disk(DiskError::OpenElsewhere { .. })
                | Error::Disk(DiskError::LockFile { .. }),
            ) if begun.elapsed() < Duration::from_secs(5) => {
                std::thread::sleep(Duration::from_millis(5));
            }
            opened => return opened.unwrap(),
        }
    }
}

/// The expected contents of each commit, computed on demand.
struct Model(Vec<Content>);

impl Model {
    fn new() -> Self {
        Self(vec![vec![0; SLOTS]])
    }

    fn after(&mut self, id: u64) -> &Content {
        while self.0.len() as u64 <= id {
            let next = self.0.len() as u64;
            let mut content = self.0[next as usize - 1].clone();
            for (slot, version) in changes(&mut Rng::new(mix(next)), next) {
                content[slot] = version;
            }
            self.0.push(content);
        }
        &self.0[id as usize]
    }
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

/// Returns the number of the newest commit, after comparing its contents with the model.
fn look(pager: &Pager, model: &mut Model) -> u64 {
    let reader = pager.begin_read().unwrap();
    let id = id_of(reader.app());
    let found = read(&reader, &root_of(reader.app()), &mut |_, _| {}).unwrap();
    assert_eq!(&found, model.after(id), "content of commit {id}");
    id
}

fn assert_clean(pager: &Pager) {
    let problems = problems(pager).unwrap();
    assert!(problems.is_empty(), "{problems:#?}");
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

/// This is not a test of its own: the child processes run this function, each in its role.
#[test]
fn role_of_a_child() {
    let (Ok(role), Ok(path)) = (std::env::var(ROLE), std::env::var(FILE)) else {
        return;
    };
    let path = Path::new(&path);
    let mut model = Model::new();
    match role.as_str() {
        "write some" => {
            let pager = open(path).unwrap();
            for _ in 0..100 {
                say(commit(&pager, Durability::Durable).unwrap());
                look(&pager, &mut model);
            }
        }
        "write" => {
            let pager = open(path).unwrap();
            loop {
                say(commit(&pager, Durability::Durable).unwrap());
            }
        }
        "read" => {
            let pager = open_to_read(path).unwrap();
            let mut newest = 0;
            loop {
                let id = look(&pager, &mut model);
                assert!(id >= newest, "{id} after {newest}");
                if id > newest {
                    say(id);
                }
                newest = id;
            }
        }
        "hold" => {
            let pager = open_to_read(path).unwrap();
            let reader = pager.begin_read().unwrap();
            let id = id_of(reader.app());
            say(format!("holds {id}"));
            while !order().is_empty() {
                let found = read(&reader, &root_of(reader.app()), &mut |_, _| {}).unwrap();
                assert_eq!(
                    &found,
                    model.after(id),
                    "the snapshot of commit {id} changed"
                );
                say("same");
            }
        }
        "fail to sync" => {
            let pager = open(path).unwrap();
            commit(&pager, Durability::Durable).unwrap_err();
            say("failed");
            order();
        }
        "begin write" => {
            let pager = open(path).unwrap();
            let txn = pager.begin_write().unwrap();
            say("writes");
            order();
            drop(txn);
        }
        "wait to write" => {
            let pager = open(path).unwrap();
            say("waits");
            let txn = pager.begin_write().unwrap();
            say(id_of(txn.app()));
        }
        "unpublished" => {
            let pager = open(path).unwrap();
            commit(&pager, Durability::None).unwrap();
            say(look(&pager, &mut model));
            if order() == "flush" {
                say(commit(&pager, Durability::Durable).unwrap());
                order();
            }
        }
        "slots" => {
            let pager = open_to_read(path).unwrap();
            let readers: Vec<_> = (0..READERS_MAX / 2)
                .map(|_| pager.begin_read().unwrap())
                .collect();
            say(readers.len());
            order();
        }
        other => panic!("no such role: {other}"),
    }
}

struct Process {
    child: Child,
    input: Option<ChildStdin>,
    told: Receiver<String>,
}

impl Process {
    fn start(role: &str, path: &Path) -> Self {
        Self::start_by(&[], role, path)
    }

    /// Like `start`, but `by`, another program with its arguments, starts the child.
    fn start_by(by: &[&str], role: &str, path: &Path) -> Self {
        let own = std::env::current_exe().unwrap();
        let mut words = by.iter().map(std::ffi::OsStr::new).chain([own.as_os_str()]);
        let mut child = Command::new(words.next().unwrap())
            .args(words)
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
        let (send, told) = channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                // The line may begin with output of the test harness.
                if let Some((_, text)) = line.split_once("child: ") {
                    let _ = send.send(text.to_owned());
                }
            }
        });
        Self {
            input: child.stdin.take(),
            child,
            told,
        }
    }

    fn told(&self) -> String {
        self.told.recv_timeout(PATIENCE).expect("the child tells")
    }

    fn number(&self) -> u64 {
        self.told().parse().unwrap()
    }

    fn order(&mut self, text: &str) {
        writeln!(self.input.as_mut().unwrap(), "{text}").unwrap();
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.unwrap().success());
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Returns all messages of a child, which must end successfully.
    fn all(mut self) -> Vec<u64> {
        drop(self.input.take());
        assert!(self.child.wait().unwrap().success());
        self.told.iter().map(|text| text.parse().unwrap()).collect()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn two_processes_commit_in_turn_and_others_read() {
    let folder = Folder::new("turns");
    let path = folder.file();
    let pager = open(&path).unwrap();
    let mut readers: Vec<Process> = (0..2).map(|_| Process::start("read", &path)).collect();
    let writers: Vec<Process> = (0..2)
        .map(|_| Process::start("write some", &path))
        .collect();
    let mut ids: Vec<u64> = (0..60)
        .map(|_| commit(&pager, Durability::Durable).unwrap())
        .collect();
    for writer in writers {
        let told = writer.all();
        assert_eq!(told.len(), 100);
        ids.extend(told);
    }
    ids.sort_unstable();
    assert!(ids.iter().copied().eq(1..=260), "{ids:?}");
    assert_eq!(look(&pager, &mut Model::new()), 260);
    for reader in &mut readers {
        while reader.number() < 260 {}
        reader.kill();
    }
    assert_clean(&pager);
}

#[test]
fn checkpoints_keep_the_writer_lock_from_other_processes() {
    let folder = Folder::new("checkpoints");
    let path = folder.file();
    let pager = open(&path).unwrap();
    commit(&pager, Durability::Durable).unwrap();
    let mut txn = pager.begin_write().unwrap();
    let waits = Process::start("wait to write", &path);
    assert_eq!(waits.told(), "waits");
    for id in 2..=20 {
        let durability = match id % 3 {
            0 => Durability::None,
            1 => Durability::Lazy,
            _ => Durability::Durable,
        };
        let root = root_of(txn.app());
        let root = apply(&mut txn, &root, &changes(&mut Rng::new(mix(id)), id)).unwrap();
        (_, txn) = txn.checkpoint(&app(&root, id), durability).unwrap();
        let between = waits.told.recv_timeout(Duration::from_millis(20));
        assert!(between.is_err(), "{between:?} before {id}");
    }
    drop(txn);
    assert_eq!(waits.number(), 20);
    assert_eq!(look(&pager, &mut Model::new()), 20);
    assert_clean(&pager);
}

#[test]
fn a_reader_keeps_its_snapshot_under_any_writer() {
    let folder = Folder::new("keeps");
    let path = folder.file();
    let pager = open(&path).unwrap();
    for _ in 0..20 {
        commit(&pager, Durability::Durable).unwrap();
    }
    let mut holder = Process::start("hold", &path);
    assert_eq!(holder.told(), "holds 20");
    let own = pager.begin_read().unwrap();
    let mut other = Some(open(&path).unwrap());
    let mut model = Model::new();
    for round in 0..80 {
        // Two handles of this process write in turn, and later new handles.
        let writer = if round % 2 == 0 {
            &pager
        } else {
            other.as_ref().unwrap()
        };
        commit(writer, Durability::Durable).unwrap();
        if round % 20 == 19 {
            other = Some(open(&path).unwrap());
        }
        if round % 8 == 0 {
            holder.order("look");
            assert_eq!(holder.told(), "same");
        }
        let found = read(&own, &root_of(own.app()), &mut |_, _| {}).unwrap();
        assert_eq!(&found, model.after(20), "own snapshot");
    }
    assert_eq!(look(&pager, &mut model), 100);
    holder.order("look");
    assert_eq!(holder.told(), "same");
    assert_clean(&pager);
}

#[test]
fn a_killed_reader_holds_nothing() {
    let folder = Folder::new("killed-reader");
    let path = folder.file();
    // Each commit writes a meta record, so pages that it frees are retained only for the reader, not for older
    // commits.
    let options = Options {
        log_bytes: 0,
        ..options()
    };
    let pager = Pager::open(&path, &options).unwrap();
    for _ in 0..30 {
        commit(&pager, Durability::Durable).unwrap();
    }
    let mut holder = Process::start("hold", &path);
    assert_eq!(holder.told(), "holds 30");
    for _ in 0..60 {
        commit(&pager, Durability::Durable).unwrap();
    }
    let held = pager.stat().unwrap().pages_pending;
    holder.signal("STOP");
    commit(&pager, Durability::Durable).unwrap();
    assert!(
        pager.stat().unwrap().pages_pending >= held,
        "frozen, not dead"
    );
    holder.kill();
    for _ in 0..3 {
        commit(&pager, Durability::Durable).unwrap();
    }
    let after = pager.stat().unwrap().pages_pending;
    assert!(after < held / 2, "{after} of {held} pages are still held");
    assert_clean(&pager);
}

#[test]
fn readers_killed_at_random_leave_no_slot_behind() {
    let folder = Folder::new("killed-readers");
    let path = folder.file();
    let pager = open(&path).unwrap();
    commit(&pager, Durability::Durable).unwrap();
    for round in 0..12u64 {
        let mut readers: Vec<Process> = (0..2).map(|_| Process::start("read", &path)).collect();
        for reader in &readers {
            reader.number();
        }
        for _ in 0..5 {
            commit(&pager, Durability::Durable).unwrap();
        }
        std::thread::sleep(Duration::from_micros(mix(round) % 2000));
        for reader in &mut readers {
            reader.kill();
        }
        assert_eq!(pager.readers().unwrap(), [], "round {round}");
    }
    // The reader slots of dead processes must have been reused.
    let image = fs::read(folder.lock()).unwrap();
    let used = u64::from_ne_bytes(image[392..400].try_into().unwrap());
    assert!(used < 32, "{used} slots were used");
    assert_clean(&pager);
}

#[test]
fn a_reader_in_another_pid_namespace_counts() {
    let folder = Folder::new("namespace");
    let path = folder.file();
    let pager = open(&path).unwrap();
    for _ in 0..5 {
        commit(&pager, Durability::Durable).unwrap();
    }
    let probe = Command::new("unshare")
        .args(["--pid", "--fork", "true"])
        .output();
    if !probe.is_ok_and(|output| output.status.success()) {
        println!("skipped: no PID namespace can be made here");
        return;
    }
    let mut holder = Process::start_by(
        &["unshare", "--pid", "--fork", "--kill-child"],
        "hold",
        &path,
    );
    assert_eq!(holder.told(), "holds 5");
    let readers = pager.readers().unwrap();
    assert_eq!(readers.len(), 1);
    // The reported process id is the small number that the reader has in its own PID namespace; in this namespace
    // that number belongs to another process.
    assert!(readers[0].process < 10, "{readers:?}");
    for _ in 0..40 {
        commit(&pager, Durability::Durable).unwrap();
    }
    holder.order("look");
    assert_eq!(holder.told(), "same");
    holder.kill();
    let begun = Instant::now();
    while !pager.readers().unwrap().is_empty() {
        assert!(begun.elapsed() < PATIENCE, "its slot stays");
    }
    assert_clean(&pager);
}

#[test]
fn a_killed_writer_blocks_no_process_and_loses_nothing() {
    let folder = Folder::new("killed-writer");
    let path = folder.file();
    let pager = open(&path).unwrap();
    let mut model = Model::new();
    let mut acknowledged = 0;
    for round in 0..12u64 {
        let mut writer = Process::start("write", &path);
        for _ in 0..=round {
            acknowledged = writer.number();
        }
        std::thread::sleep(Duration::from_micros(mix(round) % 3000));
        writer.kill();
        acknowledged = writer
            .told
            .try_iter()
            .fold(acknowledged, |_, text| text.parse().unwrap());
        let begun = Instant::now();
        let found = look(&pager, &mut model);
        assert!(found >= acknowledged, "{found} after {acknowledged}");
        let id = commit(&pager, Durability::Durable).unwrap();
        let waited = begun.elapsed();
        assert!(waited < Duration::from_secs(3), "{waited:?}");
        // The writer may have been killed between its last sync and its message.
        assert!(id == found + 1 || id == found + 2, "{id} after {found}");
        assert_eq!(look(&pager, &mut model), id);
    }
    assert_clean(&pager);
}

#[test]
fn a_frozen_writer_is_named_and_a_frozen_reader_harmless() {
    let folder = Folder::new("frozen");
    let path = folder.file();
    let pager = open(&path).unwrap();
    commit(&pager, Durability::Durable).unwrap();
    let mut writer = Process::start("begin write", &path);
    assert_eq!(writer.told(), "writes");
    writer.signal("STOP");
    assert!(pager.try_begin_write().unwrap().is_none());
    let patience = Duration::from_millis(60);
    match pager.begin_write_within(patience).err() {
        Some(Error::WriterBusy { process, since, .. }) => {
            assert_eq!(process, writer.child.id());
            assert!(since >= patience / 2, "{since:?}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(look(&pager, &mut Model::new()), 1, "reading goes on");
    let third = open(&path).unwrap();
    writer.signal("CONT");
    writer.order("end");
    commit(&third, Durability::Durable).unwrap();
    commit(&pager, Durability::Durable).unwrap();
    let mut holder = Process::start("hold", &path);
    assert_eq!(holder.told(), "holds 3");
    holder.signal("STOP");
    for _ in 0..20 {
        commit(&pager, Durability::Durable).unwrap();
    }
    holder.signal("CONT");
    holder.order("look");
    assert_eq!(holder.told(), "same");
}

#[test]
fn commits_invisible_to_other_processes_keep_the_writer_lock() {
    let folder = Folder::new("unpublished");
    let path = folder.file();
    let pager = open(&path).unwrap();
    let mut model = Model::new();
    commit(&pager, Durability::Durable).unwrap();
    let mut writer = Process::start("unpublished", &path);
    assert_eq!(writer.number(), 2);
    assert_eq!(look(&pager, &mut model), 1);
    let busy = pager.begin_write_within(Duration::from_millis(30));
    assert!(matches!(busy, Err(Error::WriterBusy { .. })));
    writer.kill();
    assert_eq!(
        commit(&pager, Durability::Durable).unwrap(),
        2,
        "it is lost"
    );
    let mut writer = Process::start("unpublished", &path);
    assert_eq!(writer.number(), 3);
    writer.order("flush");
    assert_eq!(writer.number(), 4);
    assert_eq!(look(&pager, &mut model), 4);
    assert_eq!(commit(&pager, Durability::Durable).unwrap(), 5);
    assert_clean(&pager);
}

#[test]
fn slots_and_handles_have_an_end_and_come_back() {
    let folder = Folder::new("slots");
    let path = folder.file();
    let pager = open(&path).unwrap();
    let mut child = Process::start("slots", &path);
    assert_eq!(child.number(), READERS_MAX as u64 / 2);
    let mut readers = Vec::new();
    let error = loop {
        match pager.begin_read() {
            Ok(reader) => readers.push(reader),
            Err(error) => break error,
        }
    };
    assert_eq!(readers.len(), READERS_MAX - READERS_MAX / 2);
    assert!(
        matches!(error, Error::Limit { limit, .. } if limit == READERS_MAX as u64),
        "{error:?}"
    );
    let clone = readers[7].clone();
    readers.pop();
    readers.push(pager.begin_read().unwrap());
    child.kill();
    readers.push(pager.begin_read().unwrap());
    drop((readers, clone));

    let mut handles = Vec::new();
    let error = loop {
        match open_to_read(&path) {
            Ok(handle) => handles.push(handle),
            Err(error) => break error,
        }
    };
    if handles.len() + 1 < HANDLES_MAX {
        println!(
            "skipped: the system allows {} handles: {error}",
            handles.len()
        );
        return;
    }
    assert!(
        matches!(error, Error::Limit { limit, .. } if limit == HANDLES_MAX as u64),
        "{error:?}"
    );
    handles.pop();
    open_to_read(&path).unwrap();
}

#[test]
fn two_handles_in_one_process() {
    let folder = Folder::new("two");
    let path = folder.file();
    let (a, b) = (open(&path).unwrap(), open(&path).unwrap());
    let mut model = Model::new();
    let mut ids = HashMap::new();
    std::thread::scope(|scope| {
        let work = |pager: &Pager| -> Vec<u64> {
            (0..60)
                .map(|_| commit(pager, Durability::Durable).unwrap())
                .collect()
        };
        let others: Vec<_> = [&a, &a, &b, &b]
            .map(|pager| scope.spawn(move || work(pager)))
            .into();
        for (number, thread) in others.into_iter().enumerate() {
            for id in thread.join().unwrap() {
                assert_eq!(ids.insert(id, number), None, "{id} twice");
            }
        }
    });
    assert_eq!(ids.len(), 240);
    assert_eq!((look(&a, &mut model), look(&b, &mut model)), (240, 240));
    let txn = a.begin_write().unwrap();
    assert!(b.try_begin_write().unwrap().is_none());
    drop(txn);
    drop(b.try_begin_write().unwrap().unwrap());
    drop(a);
    commit(&b, Durability::Durable).unwrap();
    assert_clean(&b);
}

#[test]
fn a_lock_file_that_disappears_or_is_of_no_use() {
    let folder = Folder::new("lock-file");
    let path = folder.file();
    let pager = open(&path).unwrap();
    commit(&pager, Durability::Durable).unwrap();
    // The lock file is renamed while it is in use. The next open must fail, since it would use another lock file.
    fs::rename(folder.lock(), folder.0.join("away")).unwrap();
    assert!(matches!(
        open(&path),
        Err(Error::Disk(DiskError::OpenElsewhere { .. }))
    ));
    assert!(matches!(
        open_to_read(&path),
        Err(Error::Disk(DiskError::OpenElsewhere { .. }))
    ));
    commit(&pager, Durability::Durable).unwrap();
    fs::rename(folder.0.join("away"), folder.lock()).unwrap();
    let second = open(&path).unwrap();
    assert_eq!(look(&second, &mut Model::new()), 2);
    // A lock file that is deleted or overwritten while it is not in use must be created anew.
    drop((pager, second));
    fs::remove_file(folder.lock()).unwrap();
    assert_eq!(
        commit(&soon(|| open(&path)), Durability::Durable).unwrap(),
        3
    );
    for content in [&b"short"[..], &[0xff; 400_000]] {
        fs::write(folder.lock(), content).unwrap();
        let pager = soon(|| open(&path));
        assert_eq!(
            look(&pager, &mut Model::new()),
            id_of(pager.begin_read().unwrap().app())
        );
        commit(&pager, Durability::Durable).unwrap();
        assert_clean(&pager);
    }
    // A folder has the name of the lock file.
    fs::remove_file(folder.lock()).unwrap();
    fs::create_dir(folder.lock()).unwrap();
    assert!(matches!(
        open(&path),
        Err(Error::Disk(DiskError::Open { .. }))
    ));
    let reader = soon(|| open_to_read(&path));
    assert_eq!(look(&reader, &mut Model::new()), 5);
    let also = open_to_read(&path).unwrap();
    fs::remove_dir(folder.lock()).unwrap();
    // A writer would not detect these readers, so opening for writing must fail.
    assert!(matches!(
        open(&path),
        Err(Error::Disk(DiskError::OpenElsewhere { .. }))
    ));
    drop((reader, also));
    soon(|| open(&path));
}

#[test]
fn a_failed_sync_stops_all_until_all_have_closed() {
    use std::sync::Arc;
    use tidalite_pager::{LockMemory, Storage};
    use tidalite_testkit::{Fault, FaultKind, SimDisk};
    let disk = Arc::new(SimDisk::new());
    let memory = LockMemory::new();
    let open = || {
        let storage = Arc::clone(&disk) as Arc<dyn Storage>;
        Pager::open_storage_with(storage, &memory, &options()).unwrap()
    };
    let (a, b) = (open(), open());
    commit(&a, Durability::Durable).unwrap();
    commit(&b, Durability::Durable).unwrap();
    disk.set_fault(Some(Fault {
        at_call: 0,
        forever: true,
        kind: FaultKind::SyncFails,
    }));
    commit(&a, Durability::Durable).unwrap_err();
    disk.set_fault(None);
    let poisoned = |pager: &Pager| {
        matches!(
            commit(pager, Durability::Durable),
            Err(Error::Poisoned { .. })
        )
    };
    assert!(poisoned(&a) && poisoned(&b));
    assert_eq!(look(&b, &mut Model::new()), 2, "reading goes on");
    drop(a);
    let c = open();
    assert!(poisoned(&b) && poisoned(&c));
    drop((b, c));
    assert_eq!(commit(&open(), Durability::Durable).unwrap(), 3);
}

/// A failed sync in another process must stop all handles. strace makes the syncs of that process fail.
#[test]
fn a_failed_sync_of_another_process_stops_all() {
    let strace = "strace -f -qq -o /dev/null -e inject=fdatasync,pwritev2:error=EIO";
    let strace: Vec<&str> = strace.split(' ').collect();
    let there = Command::new(strace[0])
        .args(&strace[1..])
        .arg("true")
        .status();
    if !there.is_ok_and(|status| status.success()) {
        println!("skipped: no strace that may trace");
        return;
    }
    let folder = Folder::new("failed-elsewhere");
    let path = folder.file();
    let pager = open(&path).unwrap();
    assert_eq!(commit(&pager, Durability::Durable).unwrap(), 1);
    let mut failing = Process::start_by(&strace, "fail to sync", &path);
    assert_eq!(failing.told(), "failed");
    let poisoned = |pager: &Pager| {
        let done = commit(pager, Durability::Durable);
        matches!(done, Err(Error::Poisoned { .. }))
    };
    assert!(poisoned(&pager));
    assert_eq!(look(&pager, &mut Model::new()), 1, "reading goes on");
    failing.order("end");
    assert!(failing.child.wait().unwrap().success());
    let also = open(&path).unwrap();
    assert!(poisoned(&pager) && poisoned(&also));
    drop((pager, also));
    assert_eq!(
        commit(&open(&path).unwrap(), Durability::Durable).unwrap(),
        2
    );
}

/// The callback about a long-lived reader in another process must get the process id and the number of retained
/// bytes.
#[test]
fn a_long_reader_of_another_process_is_named() {
    use std::sync::{Arc, Mutex};
    use tidalite_pager::{LongReaderAction, OnLongReader};
    let folder = Folder::new("long-reader-elsewhere");
    let path = folder.file();
    let asked = Arc::new(Mutex::new(None));
    let told = Arc::clone(&asked);
    let options = Options {
        long_reader_bytes: 0,
        on_long_reader: Some(OnLongReader(Arc::new(move |long_reader| {
            *told.lock().unwrap() = Some(long_reader.reader);
            LongReaderAction::GiveUp
        }))),
        ..options()
    };
    let pager = Pager::open(&path, &options).unwrap();
    commit(&pager, Durability::Durable).unwrap();
    let mut holding = Process::start("hold", &path);
    assert_eq!(holding.told(), "holds 1");
    let mut commits = 0;
    let reader = loop {
        commit(&pager, Durability::Durable).unwrap();
        commits += 1;
        if let Some(reader) = asked.lock().unwrap().take() {
            break reader;
        }
        assert!(commits < 10_000, "the file grows for it");
    };
    assert_eq!(reader.process, holding.child.id());
    assert!(reader.retained_bytes > 0 && reader.thread > 0);
    assert!(reader.lag_txns > 0 && reader.lag_txns <= commits);
    holding.order("look");
    assert_eq!(holding.told(), "same");
}

#[test]
fn handles_on_storage_in_memory_die_as_processes_do() {
    use std::sync::Arc;
    use tidalite_pager::{LockMemory, MemoryStorage, Storage};
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let memory = LockMemory::new();
    let open = || Pager::open_storage_with(Arc::clone(&storage), &memory, &options()).unwrap();
    let (a, b) = (open(), open());
    let held = a.begin_read().unwrap();
    let txn = b.begin_write().unwrap();
    memory.kill_all();
    let c = open();
    assert_eq!(
        commit(&c, Durability::Durable).unwrap(),
        1,
        "the dead write no more"
    );
    for _ in 0..20 {
        commit(&c, Durability::Durable).unwrap();
    }
    drop((txn, held, a, b));
    assert_eq!(look(&c, &mut Model::new()), 21);
    assert_clean(&c);
}
