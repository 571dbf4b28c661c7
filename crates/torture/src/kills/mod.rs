//! Kills and freezes processes at random instants, while others continue.
//!
//! The oracle is this process. It receives acknowledgements through pipes, so it knows the required commits whichever
//! process was killed; its own database in memory gives the content after each number. It checks that
//! 1. each snapshot of a reader or of the oracle has exactly the content of its number;
//! 2. no acknowledged number is missing, lazy commits included: the oracle's snapshots, and the file reopened after all
//!    processes are dead, have the last number acknowledged to the oracle or a later one;
//! 3. no process blocks: after a writer was killed, the oracle gets the writer lock; frozen readers do not stop others;
//! 4. an evictable snapshot is evicted only if the options allow it (`oust_after`), with a typed error;
//! 5. nothing leaks: at the end all slots are available, and pages held by dead processes become free;
//! 6. killed processes leave no damage: when all are dead, a check through a read-only handle finds no problem;
//! 7. no acknowledgement of a queue is lost or comes twice: when all are dead, each group gets exactly the messages
//!    that a table, which consumers changed in the same transactions, knows as open (`crash/messages.rs`). Topics and
//!    objects are used up in the same way.

#![expect(clippy::print_stdout, reason = "a program talks")]

pub mod child;
mod setup;

use crate::arguments::{Arguments, folder, own_program};
use crate::crash::messages::use_up;
use crate::model::{digest_of_snapshot, model_of};
use crate::workload::script::{Oracle, Script, number_of};
use child::Said;
use rustix::process::{Pid, Signal, kill_process};
pub use setup::script;
use setup::{open, options, oust_after};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use tidalite::{Database, Durability};
use tidalite_pager::READERS_MAX;
use tidalite_testkit::rng::{Rng, mix};

/// Number of writing and (below) of reading processes that run at the same time.
const WRITERS: usize = 2;
const READERS: usize = 3;
/// One in this many readers holds an evictable snapshot.
const EVICTABLE_ONE_IN: u64 = 3;
/// After one in this many kills of a writer, all other processes are killed, too, and the file is reopened with a new
/// handle.
const ALL_DIE_ONE_IN: u64 = 3;
/// Maximum time to wait for a lock or slot that only dead processes held.
const PATIENCE: Duration = Duration::from_secs(20);
/// Number of transactions in a file; then a new file is started, so that contents stay small.
const TRANSACTIONS_OF_A_FILE: u64 = 3_000;
/// Name of the helper threads, shortened to the 15 bytes that the system keeps.
const ENCODING: &str = "tidalite-encode";
/// Maximum number of reported lines that are processed between two kills.
const HEARD_AT_ONCE: usize = 500;
/// Maximum percentage of pages that may be pending (freed but not reusable) after all processes are dead and some
/// commits were made.
const WAITING_PERCENT_MAX: u64 = 20;

/// Counters of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Number of readers that were killed.
    pub readers_killed: u64,
    /// Number of writers that were killed.
    pub writers_killed: u64,
    /// Number of writers that were killed while helper threads were encoding.
    pub flushing_killed: u64,
    /// Number of readers and writers that were killed in a process id namespace of their own.
    pub in_own_namespace: u64,
    /// Number of readers with evictable snapshots that were killed.
    pub evictable_killed: u64,
    /// Number of snapshots that were evicted.
    pub evicted: u64,
    /// Number of times that all processes were dead.
    pub all_dead: u64,
    /// Number of times that the newest commit found after the death of all processes was lazy.
    pub lazy_found: u64,
    /// Number of notes that a check reported after the death of all processes, before a writer opened the file.
    pub notes: u64,
    /// Number of readers that were frozen for a while.
    pub readers_frozen: u64,
    /// Number of commits that were acknowledged.
    pub acknowledged: u64,
    /// Number of snapshots of readers that were compared with the expected content.
    pub seen: u64,
    /// Number of snapshots of this process that were compared with the expected content.
    pub judged: u64,
    /// Longest wait in milliseconds for the writer lock after a writer was killed.
    pub wait_ms_max: u64,
}

/// A child process that is to be killed.
struct Victim {
    process: Child,
    reader: bool,
    evictable: bool,
    /// True if the known process id belongs to `unshare`, which is the parent of the child process.
    namespace: bool,
    /// True if the process has reported a line, so that it certainly has the file open.
    has_spoken: Arc<AtomicBool>,
}

impl Victim {
    /// True if the process has helper threads at this moment, according to `/proc`.
    fn is_flushing(&self) -> bool {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.process.id()));
        let named = |path: PathBuf| std::fs::read_to_string(path).unwrap_or_default();
        let mut tasks = tasks.into_iter().flatten().flatten();
        tasks.any(|task| named(task.path().join("comm")).trim_end() == ENCODING)
    }

    /// Kills the child process.
    fn end(&mut self) -> Result<(), String> {
        if !self.namespace {
            return self.process.kill().map_err(|error| error.to_string());
        }
        // The process to kill is a child of `unshare`; if `unshare` were killed before it has forked, that child would
        // survive.
        let parent = self.process.id();
        let begun = Instant::now();
        loop {
            let children =
                std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"))
                    .unwrap_or_default();
            let child = children.split(' ').next().and_then(|id| id.parse().ok());
            if let Some(pid) = child.and_then(Pid::from_raw) {
                return kill_process(pid, Signal::KILL).map_err(|error| error.to_string());
            }
            // A child process that fails reports it.
            let ended = self.process.try_wait();
            if ended.map_err(|error| error.to_string())?.is_some() {
                return Ok(());
            }
            if begun.elapsed() > PATIENCE {
                return Err("a namespace without a process".to_owned());
            }
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}

struct Arena<'a> {
    file: &'a Path,
    script: Script,
    namespaces: bool,
    bug: Option<&'a str>,
    rng: Rng,
    victims: Vec<Victim>,
    told: Receiver<Said>,
    teller: Sender<Said>,
    oracle: Oracle,
    acknowledged: u64,
}

/// Runs this search; `--readers` and `--writers` are the numbers of kills.
///
/// # Errors
/// Returns the failure that the search found, with the seed.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let seed = arguments.number("--seed", 0)?;
    let readers = arguments.number("--readers", 10_000)?;
    let writers = arguments.number("--writers", 1_000)?;
    let folder = folder("kills").map_err(|error| error.to_string())?;
    let namespaces = namespaces();
    if let Err(why) = &namespaces {
        println!("namespaces skipped: {why}");
    }
    let (started, mut tally, mut file) = (Instant::now(), Tally::default(), 0);
    let mut result = Ok(());
    while result.is_ok() && (tally.readers_killed < readers || tally.writers_killed < writers) {
        let path = folder.join(format!("{file}.tdl"));
        result = Arena::new(&path, seed, file, namespaces.is_ok())
            .and_then(|mut arena| {
                arena.bug = arguments.text("--bug");
                arena.play(readers, writers, &mut tally)
            })
            .map_err(|problem| format!("seed {seed}, file {file}: {problem}; {tally:?}"));
        file += 1;
    }
    if result.is_ok() {
        let _ = std::fs::remove_dir_all(&folder);
        println!(
            "{tally:?}, seed {seed}, {:.1} s, nothing lost, leaked or blocked",
            started.elapsed().as_secs_f64()
        );
    }
    result
}

fn namespaces() -> Result<(), String> {
    let status = Command::new("unshare")
        .args(["--pid", "--fork", "--kill-child", "true"])
        .stderr(Stdio::null())
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("unshare: {status}")),
        Err(error) => Err(format!("unshare: {error}")),
    }
}

fn text(error: tidalite::Error) -> String {
    error.to_string()
}

impl<'a> Arena<'a> {
    fn new(file: &'a Path, seed: u64, number: u64, namespaces: bool) -> Result<Self, String> {
        let mut rng = Rng::new(mix(seed ^ mix(number)));
        let script = script(rng.u64());
        let (teller, told) = channel();
        Ok(Self {
            file,
            script,
            namespaces,
            bug: None,
            rng,
            victims: Vec::new(),
            told,
            teller,
            oracle: Oracle::new(script).map_err(text)?,
            acknowledged: 0,
        })
    }

    fn spawn(&mut self, reader: bool, tally: &mut Tally) -> Result<(), String> {
        let namespace = self.namespaces && self.rng.one_in(8);
        let mut command = if namespace {
            let mut command = Command::new("unshare");
            let own = std::env::current_exe().map_err(|error| error.to_string())?;
            // `unshare` prints a signal mask when its child is killed, so its error output is ignored.
            command
                .args(["--pid", "--fork", "--kill-child"])
                .arg(own)
                .stderr(Stdio::null());
            command
        } else {
            own_program()
        };
        command
            .arg("kills-child")
            .args(["--script", &self.script.seed.to_string()])
            .args(["--seed", &self.rng.u64().to_string()])
            .arg("--file")
            .arg(self.file);
        let evictable = reader && self.rng.one_in(EVICTABLE_ONE_IN);
        if reader {
            command.arg(if evictable { "--evictable" } else { "--reader" });
        } else if let Some(bug) = self.bug {
            command.args(["--bug", bug]);
        }
        let mut process = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("child: {error}"))?;
        let (out, teller) = (process.stdout.take().ok_or("no pipe")?, self.teller.clone());
        let has_spoken = Arc::new(AtomicBool::new(false));
        let speaks = Arc::clone(&has_spoken);
        std::thread::spawn(move || {
            // An incomplete line of a killed process is ignored.
            let mut out = BufReader::new(out);
            let mut line = String::new();
            while out.read_line(&mut line).is_ok_and(|bytes| bytes > 0) && line.ends_with('\n') {
                let _ = teller.send(Said::parse(line.trim_end()));
                speaks.store(true, Ordering::Relaxed);
                line.clear();
            }
        });
        tally.in_own_namespace += u64::from(namespace);
        self.victims.push(Victim {
            process,
            reader,
            evictable,
            namespace,
            has_spoken,
        });
        Ok(())
    }

    /// Processes the lines that child processes have reported; returns false if there were no lines.
    fn hear(&mut self, tally: &mut Tally) -> Result<bool, String> {
        let mut heard = false;
        // The number of lines is limited, because running processes keep reporting.
        for said in self.told.try_iter().take(HEARD_AT_ONCE) {
            heard = true;
            match said {
                Said::Opened => {}
                Said::Acknowledged(number) => {
                    tally.acknowledged += 1;
                    self.acknowledged = self.acknowledged.max(number);
                }
                Said::Seen(number, digest) => {
                    tally.seen += 1;
                    if self.oracle.digest(number).map_err(text)? != digest {
                        return Err(format!("a reader of {number} saw something else"));
                    }
                }
                Said::Evicted => {
                    tally.evicted += 1;
                    if oust_after(self.script.seed).is_none() {
                        return Err("a snapshot was taken away that nobody may take".to_owned());
                    }
                }
                Said::Failed(what) => return Err(format!("a child says: {what}")),
            }
        }
        Ok(heard)
    }

    fn play(&mut self, readers: u64, writers: u64, tally: &mut Tally) -> Result<(), String> {
        let mut db = open(self.file, self.script).map_err(text)?;
        // Writers and readers are killed in a fixed proportion, so that each file gets the same mixture of kills.
        let one_writer_in = (readers + writers).div_ceil(writers.max(1)).max(1);
        while (tally.readers_killed < readers || tally.writers_killed < writers)
            && self.acknowledged < TRANSACTIONS_OF_A_FILE
        {
            for (reader, wanted) in [(false, WRITERS), (true, READERS)] {
                let there = self.victims.iter().filter(|v| v.reader == reader).count();
                for _ in there..wanted {
                    self.spawn(reader, tally)?;
                }
            }
            std::thread::sleep(Duration::from_micros(self.rng.below(4_000)));
            let writer = tally.readers_killed >= readers
                || (tally.writers_killed < writers && self.rng.one_in(one_writer_in));
            if !writer && self.rng.one_in(20) {
                self.freeze(&db, tally)?;
            }
            self.kill(writer, tally)?;
            self.hear(tally)?;
            if writer {
                self.take_turn(&db, tally)?;
            }
            if writer || self.rng.one_in(10) {
                self.judge(&db, tally)?;
            }
            if writer && self.rng.one_in(ALL_DIE_ONE_IN) {
                db = self.all_die(db, tally)?;
            }
        }
        let db = self.all_die(db, tally)?;
        self.nothing_leaks(&db)
    }

    /// Kills all processes and closes the handle of this process, without a sync. The next handle must find all
    /// acknowledged commits.
    fn all_die(&mut self, db: Database, tally: &mut Tally) -> Result<Database, String> {
        while !self.victims.is_empty() {
            let reader = self.victims[0].reader;
            self.kill(!reader, tally)?;
        }
        while self.hear(tally)? {}
        drop(db);
        self.checked_read_only(tally)?;
        let db = open(self.file, self.script).map_err(text)?;
        self.judge(&db, tally)?;
        let number = number_of(&db.begin_read().map_err(text)?).map_err(text)?;
        self.use_up_messages(&db)?;
        tally.all_dead += 1;
        tally.lazy_found += u64::from(self.script.durability(number) == Durability::Lazy);
        Ok(db)
    }

    /// Uses up topics, queue, bucket and containers in a transaction that is rolled back.
    fn use_up_messages(&self, db: &Database) -> Result<(), String> {
        let model = model_of(&db.begin_read().map_err(text)?).map_err(text)?;
        let mut tx = db.begin_write().map_err(text)?;
        use_up(&mut tx, &model.messages)
            .map(drop)
            .map_err(|error| format!("messages after {}: {error}", self.acknowledged))
    }

    /// Checks the file while no process has it open: the killed processes must have left no damage. A writer would
    /// repair the file, so this uses a read-only handle.
    fn checked_read_only(&self, tally: &mut Tally) -> Result<(), String> {
        let db = options(self.file, self.script).read_only(true);
        let report = db.open(self.file).and_then(|db| db.check());
        let report = report.map_err(text)?;
        if !report.is_clean() {
            let problems = report.problems;
            return Err(format!("check before a writer opened it: {problems:?}"));
        }
        tally.notes += report.notes.len() as u64;
        Ok(())
    }

    fn kill(&mut self, writer: bool, tally: &mut Tally) -> Result<(), String> {
        let wanted: Vec<usize> = (0..self.victims.len())
            .filter(|&i| self.victims[i].reader != writer)
            .collect();
        let mut victim = self.victims.swap_remove(*self.rng.pick(&wanted));
        let flushing = writer && victim.is_flushing();
        victim.end()?;
        tally.flushing_killed += u64::from(flushing);
        let status = victim.process.wait().map_err(|error| error.to_string())?;
        if status.code().is_some() && !victim.namespace {
            return Err(format!("a child had ended by itself: {status}"));
        }
        *(if writer {
            &mut tally.writers_killed
        } else {
            &mut tally.readers_killed
        }) += 1;
        tally.evictable_killed += u64::from(victim.evictable);
        Ok(())
    }

    /// Takes and releases the writer lock in this process, which must be possible even if a writer was killed while it
    /// held the lock.
    fn take_turn(&mut self, db: &Database, tally: &mut Tally) -> Result<(), String> {
        let begun = Instant::now();
        drop(db.begin_write().map_err(text)?);
        let waited = begun.elapsed();
        if waited > PATIENCE {
            return Err(format!("waited {waited:?} for the turn"));
        }
        tally.wait_ms_max = tally.wait_ms_max.max(waited.as_millis() as u64);
        Ok(())
    }

    /// Freezes a reader while the other processes continue to commit. The reader must have the file open: a process
    /// that is frozen while it opens the file blocks other openings, which fail after 10 s.
    fn freeze(&mut self, db: &Database, tally: &mut Tally) -> Result<(), String> {
        let found = self.victims.iter().find(|victim| {
            victim.reader && !victim.namespace && victim.has_spoken.load(Ordering::Relaxed)
        });
        let Some(pid) = found.and_then(|victim| Pid::from_raw(victim.process.id() as i32)) else {
            return Ok(());
        };
        kill_process(pid, Signal::STOP).map_err(|error| error.to_string())?;
        tally.readers_frozen += 1;
        let (before, begun) = (self.acknowledged, Instant::now());
        while self.acknowledged < before + 3 {
            if begun.elapsed() > PATIENCE {
                return Err("no commit while a reader is frozen".to_owned());
            }
            if !self.hear(tally)? {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
        self.judge(db, tally)?;
        kill_process(pid, Signal::CONT).map_err(|error| error.to_string())
    }

    /// Compares the content of the newest snapshot with the expected content.
    fn judge(&mut self, db: &Database, tally: &mut Tally) -> Result<(), String> {
        let acknowledged = self.acknowledged;
        // Opens the snapshot through the long-lived handle, or through a new handle.
        let fresh = match self.rng.one_in(4) {
            true => Some(open(self.file, self.script).map_err(text)?),
            false => None,
        };
        let snap = fresh.as_ref().unwrap_or(db).begin_read().map_err(text)?;
        let number = number_of(&snap).map_err(text)?;
        if number < acknowledged {
            return Err(format!(
                "{acknowledged} was acknowledged, found is {number}"
            ));
        }
        let found = digest_of_snapshot(&snap).map_err(text)?;
        if found != self.oracle.digest(number).map_err(text)? {
            return Err(format!("the content is not that of {number}"));
        }
        tally.judged += 1;
        Ok(())
    }

    /// Checks, when all other processes are dead, that all reader slots are available, and that pages held by the dead
    /// processes become free after some commits.
    fn nothing_leaks(&mut self, db: &Database) -> Result<(), String> {
        let mut held = Vec::new();
        while held.len() < READERS_MAX {
            match db.begin_read() {
                Ok(snap) => held.push(snap),
                Err(error) => {
                    return Err(format!("{} of {READERS_MAX} slots: {error}", held.len()));
                }
            }
        }
        drop(held);
        for i in 0..8_u8 {
            let mut tx = db.begin_write().map_err(text)?;
            tx.table("last")
                .map_err(text)?
                .put(b"k", &[i])
                .map_err(text)?;
            tx.commit().map_err(text)?;
        }
        let report = db.check().map_err(text)?;
        if !report.is_clean() {
            return Err(format!("check: {:?}", report.problems));
        }
        let stat = db.stat().map_err(text)?;
        if stat.pages_pending * 100 > stat.pages_total * WAITING_PERCENT_MAX {
            return Err(format!("the dead still hold pages: {stat:?}"));
        }
        Ok(())
    }
}

impl Drop for Arena<'_> {
    fn drop(&mut self) {
        for victim in &mut self.victims {
            let _ = victim.end();
            let _ = victim.process.wait();
        }
        let lock = PathBuf::from(format!("{}-lock", self.file.display()));
        let _ = std::fs::remove_file(self.file);
        let _ = std::fs::remove_file(lock);
    }
}
