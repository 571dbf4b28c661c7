//! One power cut: the time of the cut, the writing process until then, and the lock file afterwards.
//!
//! A lock file is shared memory, and its copy on the file system is usually older than the disk. A process that
//! survives a failed sync also drops its lazy commits from it. So at some cuts the writer is killed while the disk is
//! stopped, and the lock file of that moment, or of an earlier or later one, is put back: its unsynced meta record may
//! then name pages that the disk has lost.

use super::device::Seen;
use super::rig::Rig;
use super::tally::Tally;
use super::writer::Said;
use crate::arguments::own_program;
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tidalite_testkit::rng::Rng;

/// Maximum time without a disk call of the writer; after it the writer counts as hanging.
const SILENCE: Duration = Duration::from_secs(30);
/// Maximum time that a writer may take to end when it has lost its disk.
const END: Duration = Duration::from_secs(10);
/// Time to wait for the lines that the writer reported before the disk stopped.
const HEARING: Duration = Duration::from_millis(3);
/// Maximum number of disk calls between the cut and a later lock file.
const LATER_MAX: u64 = 24;

/// Maximum number of lazy commits for which a cut waits.
const LAZY_MAX: usize = 8;

/// Offsets in the lock file of the boot id and of the data file's identity, as in `docs/format.md`, section 10.
const BOOT_ID: Range<usize> = 24..40;
const DATA_FILE: Range<usize> = 80..96;

/// The lock file that the writer's successor finds after the cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// The lock file is from another boot of the system, as after a power cut of the whole computer.
    OtherRun,
    /// The lock file is as it is found on the file system.
    AsFound,
    /// The lock file is as it was at the cut, when the writer is killed.
    AtCut,
    /// The lock file is as it was some time before the cut.
    Older,
    /// The lock file is as it was some time after the disk ceased to keep writes.
    Newer,
}

impl Kept {
    /// Draws a random kind of lock file; seven in ten are from the same boot.
    pub(super) fn draw(rng: &mut Rng) -> Self {
        use Kept::{AsFound, AtCut, Newer, Older, OtherRun};
        let kinds = [
            OtherRun, OtherRun, OtherRun, AsFound, AtCut, AtCut, AtCut, AtCut, Older, Newer,
        ];
        *rng.pick(&kinds)
    }

    /// True if unsynced meta records in this lock file may count, because the file is from the same boot of the system.
    pub(super) fn is_same_run(self) -> bool {
        self != Self::OtherRun
    }

    fn kills(self) -> bool {
        matches!(self, Self::AtCut | Self::Older | Self::Newer)
    }
}

/// The time of the power cut, in disk calls, and the kind of lock file afterwards.
pub(super) struct Cut {
    pub(super) kept: Kept,
    /// Numbers of the disk calls at which the disk stops: to copy the lock file, to cut the power, and to kill the
    /// writer.
    image_at: Option<u64>,
    cut_at: u64,
    death_at: u64,
    /// Number of lazy commits after which the cut comes earlier than planned, because a meta record then refers to
    /// unsynced pages.
    lazy_commits: usize,
}

impl Cut {
    /// Draws a random cut, and tells the disk when to stop.
    pub(super) fn plan(rig: &Rig, rng: &mut Rng) -> Self {
        let bound = *rng.pick(&[12, 60, 600]);
        let calls = 1 + rng.below(bound);
        let kept = Kept::draw(rng);
        let device = &rig.device;
        let beyond = match kept {
            Kept::Newer => 1 + rng.below(LATER_MAX),
            _ => 0,
        };
        device.cut_after(calls + beyond);
        let mut cut = Self {
            kept,
            image_at: None,
            cut_at: u64::MAX,
            death_at: u64::MAX,
            lazy_commits: usize::MAX,
        };
        if kept.kills() {
            cut.cut_at = device.stop_after(calls);
            cut.death_at = device.stop_after(calls + beyond);
            cut.image_at = match kept {
                Kept::Older => Some(device.stop_after(rng.below(calls).max(1))),
                _ => Some(cut.death_at),
            };
        }
        if kept == Kept::AtCut && rng.one_in(2) {
            cut.lazy_commits = 1 + rng.index(LAZY_MAX);
        }
        if beyond > 0 {
            device.lie_after(calls);
        }
        cut
    }
}

/// The state after a cut.
pub(super) struct Ended {
    /// All lines that the writer has reported.
    pub(super) said: Vec<Said>,
    /// Number of lines that the writer had reported when the disk ceased to keep writes.
    pub(super) before_cut: usize,
    /// The lock file to put back before the next opening, if there is one.
    pub(super) image: Option<Vec<u8>>,
}

/// The writing process.
pub(super) struct Writer<'a> {
    pub(super) file: &'a Path,
    pub(super) lock: &'a Path,
    pub(super) script: u64,
    pub(super) map: bool,
    pub(super) bug: Option<&'a str>,
}

impl Writer<'_> {
    fn command(&self) -> Command {
        let mut command = own_program();
        command
            .arg("write")
            .args(["--script", &self.script.to_string()])
            .args(["--map", if self.map { "1" } else { "0" }])
            .arg("--file")
            .arg(self.file)
            .arg("--lock")
            .arg(self.lock)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        if let Some(bug) = self.bug {
            command.args(["--bug", bug]);
        }
        command
    }

    /// Runs the writer until the power is off and the process has ended.
    pub(super) fn run(&self, rig: &Rig, cut: &Cut, tally: &mut Tally) -> Result<Ended, String> {
        let mut child = self
            .command()
            .spawn()
            .map_err(|error| format!("writer: {error}"))?;
        let out = child.stdout.take().ok_or("no pipe")?;
        let heard = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&heard);
        let listener = std::thread::spawn(move || {
            let mut lines = BufReader::new(out).lines().map_while(Result::ok);
            lines.try_for_each(|line| {
                let said = Said::parse(&line).ok_or(line)?;
                told.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(said);
                Ok(())
            })
        });
        let count = || heard.lock().unwrap_or_else(PoisonError::into_inner).len();
        let lazy_commits = || {
            let heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
            let lazy = heard.iter().filter(|said| matches!(said, Said::Lazy(_)));
            lazy.count()
        };
        let mut watch = Watch {
            cut,
            lock: self.lock,
            count: &count,
            lazy_commits: &lazy_commits,
            before_cut: None,
            image: None,
            killed: false,
        };
        let ended = watch.await_end(rig, &mut child);
        if ended.is_err() {
            rig.device.cut_now();
            let _ = child.kill();
            let _ = child.wait();
        }
        let listened: Result<(), String> = listener.join().map_err(|_| "the listener panicked")?;
        listened.map_err(|line| format!("the writer says {line:?}"))?;
        let (before_cut, image, killed) = (watch.before_cut, watch.image, watch.killed);
        let said = std::mem::take(&mut *heard.lock().unwrap_or_else(PoisonError::into_inner));
        let status = ended?;
        let failed = said.iter().any(|said| matches!(said, Said::Failed(_)));
        match (status.code(), status.signal()) {
            (_, Some(9)) if killed => tally.killed += 1,
            (Some(0), _) if failed => tally.typed_errors += 1,
            // SIGBUS is expected only for a memory map whose disk has failed, not for reads by `pread`.
            (_, Some(7)) if self.map => tally.bus_errors += 1,
            _ => return Err(format!("the writer ended with {status}: {:?}", said.last())),
        }
        tally.lock_files += u64::from(image.is_some());
        Ok(Ended {
            before_cut: before_cut.unwrap_or(said.len()),
            said,
            image,
        })
    }
}

/// Waits for the end of a writer, and acts each time the disk stops.
struct Watch<'a> {
    cut: &'a Cut,
    lock: &'a Path,
    /// Function that returns the number of lines reported by the writer.
    count: &'a dyn Fn() -> usize,
    /// Function that returns the number of lazy commits reported by the writer.
    lazy_commits: &'a dyn Fn() -> usize,
    before_cut: Option<usize>,
    image: Option<Vec<u8>>,
    killed: bool,
}

impl Watch<'_> {
    /// Waits until the writer has ended, and then cuts the power if it is still on.
    fn await_end(&mut self, rig: &Rig, child: &mut Child) -> Result<ExitStatus, String> {
        let (mut until, mut dead) = (Instant::now() + SILENCE, false);
        loop {
            if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
                rig.device.cut_now();
                return Ok(status);
            }
            if !dead && !self.killed && (self.lazy_commits)() >= self.cut.lazy_commits {
                self.killed = child.kill().is_ok();
                rig.device.cut_now();
                self.take_image();
            }
            if !dead {
                match rig.device.wait(Duration::from_millis(1)) {
                    Seen::Nothing => {}
                    Seen::Stopped(call) => {
                        self.stopped(call, child);
                        rig.device.go_on();
                    }
                    Seen::Cut => (dead, until) = (true, Instant::now() + END),
                }
            }
            if Instant::now() > until {
                return Err(if dead {
                    "the writer hangs without its disk".to_owned()
                } else {
                    "the writer hangs".to_owned()
                });
            }
            if dead {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// Ends the run at the disk call at which the disk stopped. By then the disk has received the syncs of all commits
    /// that were acknowledged as durable.
    fn stopped(&mut self, call: u64, child: &mut Child) {
        if call == self.cut.cut_at {
            std::thread::sleep(HEARING);
            self.before_cut = Some((self.count)());
        }
        if call == self.cut.death_at {
            // A thread of the writer that waits for the disk dies only when its call returns.
            self.killed = child.kill().is_ok();
        }
        if self.cut.image_at == Some(call) {
            self.take_image();
        }
    }

    /// Copies the lock file; there is no copy while the lock file is still being created.
    fn take_image(&mut self) {
        self.image = fs::read(self.lock).ok().filter(|image| !image.is_empty());
    }
}

/// Prepares the lock file for the situation after this cut. After a power cut of the computer the lock file is from
/// another boot, so its lazy commits do not count; the rest of it is unchanged. If the computer keeps running, the disk
/// comes back under the same name.
pub(super) fn leave_lock(rig: &Rig, kept: Kept, image: Option<&[u8]>) -> Result<(), String> {
    let path = rig.lock();
    let failed = |error: std::io::Error| format!("lock file: {error}");
    if let Some(image) = image {
        let mut image = image.to_vec();
        let found = fs::metadata(rig.file());
        if let (Ok(found), Some(place)) = (found, image.get_mut(DATA_FILE)) {
            let id = match found.file_type().is_block_device() {
                true => [found.rdev(), 0],
                false => [found.dev(), found.ino()],
            };
            let words: Vec<u8> = id.iter().flat_map(|word| word.to_ne_bytes()).collect();
            place.copy_from_slice(&words);
        }
        return fs::write(path, image).map_err(failed);
    }
    if kept.is_same_run() {
        return Ok(());
    }
    let Ok(lock) = OpenOptions::new().write(true).open(path) else {
        return Ok(());
    };
    if lock.metadata().map_err(failed)?.len() < BOOT_ID.end as u64 {
        return Ok(());
    }
    lock.write_all_at(&[0xb0; BOOT_ID.end - BOOT_ID.start], BOOT_ID.start as u64)
        .map_err(failed)
}
