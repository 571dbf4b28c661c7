//! A disk in memory, served through FUSE, that loses unflushed writes at a power cut.
//!
//! The kernel sees a file system with one file, `disk`; a loop device on that file turns each of its writes and flushes
//! into a call here.
//!
//! 1. `durable` holds all flushed data; `unsynced` every version of each 512-byte sector since, oldest first.
//! 2. After the cut every call fails with EIO, and later data is discarded. A cut may have two stages
//!    (`lie_after`): after the first, writes are discarded but acknowledged; at the second the disk fails.
//! 3. A disk set to stop at a call (`stop_after`) answers this and all other calls only after `go_on`. Meanwhile the
//!    oracle inspects the computer's memory and may kill processes.
//! 4. `revive` decides the result of the cut: each unsynced sector independently has its old content, or any version
//!    since. Only the 1,024 bytes of a superblock of ext4 or of its journal stay together: ext4 treats them as atomic,
//!    and a disk that tears them destroys the file system, not the file.

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyWrite, Request, WriteFlags,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};
use tidalite_testkit::SECTOR_BYTES;
use tidalite_testkit::rng::Rng;

/// Time after which a stopped disk continues by itself, because an uncached read would otherwise wait forever.
const STOP: Duration = Duration::from_secs(1);

/// Name of the file that stands for the disk.
pub const NAME: &str = "disk";
const DISK: INodeNo = INodeNo(2);
/// Time for which the kernel may cache the attributes of the disk. Only the content changes without the kernel's
/// knowledge, and the kernel does not cache it.
const TTL: Duration = Duration::from_secs(3600);

#[derive(Default)]
struct State {
    /// The current content of the disk, as reads see it.
    bytes: Vec<u8>,
    durable: Vec<u8>,
    unsynced: BTreeMap<usize, Vec<[u8; SECTOR_BYTES]>>,
    dead: bool,
    /// Number of writes and flushes since the last call of `revive`.
    calls: u64,
    cut_at: Option<u64>,
    /// Number of the call from which writes are acknowledged but discarded.
    lie_at: Option<u64>,
    /// Numbers of the calls at which the disk stops.
    stops: BTreeSet<u64>,
    stopped: bool,
    /// The first flush at or after the call with this number fails once with EIO, without a power cut.
    fail_flush_at: Option<u64>,
}

impl State {
    /// Counts a call; returns false if the power is off, before or because of this call.
    fn count(&mut self) -> bool {
        self.calls += 1;
        if self.cut_at.is_some_and(|at| self.calls >= at) {
            self.dead = true;
        }
        !self.dead
    }

    /// True if the data of the current call may reach the medium.
    fn keeps(&self) -> bool {
        !self.dead && self.lie_at.is_none_or(|at| self.calls < at)
    }

    fn write(&mut self, offset: usize, data: &[u8]) {
        self.bytes[offset..offset + data.len()].copy_from_slice(data);
    }

    fn keep(&mut self, offset: usize, data: &[u8]) {
        let end = offset + data.len();
        self.write(offset, data);
        for sector in offset / SECTOR_BYTES..end.div_ceil(SECTOR_BYTES) {
            let from = sector * SECTOR_BYTES;
            if let Some(bytes) = self.bytes[from..].first_chunk() {
                self.unsynced.entry(sector).or_default().push(*bytes);
            }
        }
    }

    fn flush(&mut self) {
        for &sector in self.unsynced.keys() {
            let range = sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES;
            self.durable[range.clone()].copy_from_slice(&self.bytes[range]);
        }
        self.unsynced.clear();
    }
}

/// The data lost at a power cut.
#[derive(Clone, Copy, Debug, Default)]
pub struct Loss {
    /// Number of sectors written since the last flush.
    pub unsynced: u64,
    /// Number of unsynced sectors that have lost their last version.
    pub lost: u64,
}

/// The event that ended a wait for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The wait ended without an event, because of the timeout.
    Nothing,
    /// The disk has stopped at the call with this number.
    Stopped(u64),
    /// The power of the disk is off.
    Cut,
}

struct Shared {
    state: Mutex<State>,
    /// Signalled at a power cut, when the disk stops, and when it continues.
    cut: Condvar,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops the disk at the call that was counted last, if this was requested.
    fn stop<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let call = state.calls;
        if !state.stops.remove(&call) {
            return state;
        }
        state.stopped = true;
        self.cut.notify_all();
        let waits = |state: &mut State| state.stopped;
        let mut state = self
            .cut
            .wait_timeout_while(state, STOP, waits)
            .map_or_else(|poisoned| poisoned.into_inner().0, |(state, _)| state);
        state.stopped = false;
        state
    }
}

/// A handle to the simulated disk and its power switch.
#[derive(Clone)]
pub struct Device(Arc<Shared>);

impl Device {
    /// Creates a disk with this content, which must be a whole number of sectors.
    #[must_use]
    pub fn new(image: Vec<u8>) -> Self {
        let device = Self(Arc::new(Shared {
            state: Mutex::new(State::default()),
            cut: Condvar::new(),
        }));
        device.format(image);
        device
    }

    /// Replaces the whole durable content of the disk. The disk must not be mounted.
    pub fn format(&self, image: Vec<u8>) {
        assert_eq!(image.len() % SECTOR_BYTES, 0, "whole sectors");
        *self.0.state() = State {
            bytes: image.clone(),
            durable: image,
            ..State::default()
        };
    }

    /// Serves the disk as the file `directory/disk`.
    ///
    /// # Errors
    /// An I/O error.
    pub fn serve(&self, directory: &Path) -> io::Result<BackgroundSession> {
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName("tidalite-powercut".to_owned()),
            MountOption::NoAtime,
        ];
        fuser::spawn_mount(Server(self.clone()), directory, &config)
    }

    /// Cuts the power at the `calls`-th write or flush from now on.
    pub fn cut_after(&self, calls: u64) {
        let mut state = self.0.state();
        state.cut_at = Some(state.calls + calls);
    }

    /// Cuts the power of the disk now.
    pub fn cut_now(&self) {
        self.0.state().dead = true;
        self.0.cut.notify_all();
    }

    /// Makes the first flush after this many more calls fail with EIO; the disk itself keeps working.
    pub fn fail_flush_after(&self, calls: u64) {
        let mut state = self.0.state();
        state.fail_flush_at = Some(state.calls + calls);
    }

    /// True if the power of the disk is off.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.0.state().dead
    }

    /// From the `calls`-th write or flush from now on, the disk acknowledges calls but discards their data.
    pub fn lie_after(&self, calls: u64) {
        let mut state = self.0.state();
        state.lie_at = Some(state.calls + calls);
    }

    /// Stops the disk at the `calls`-th write or flush from now on; returns the number of that call, which `wait`
    /// reports.
    pub fn stop_after(&self, calls: u64) -> u64 {
        let mut state = self.0.state();
        let at = state.calls + calls;
        state.stops.insert(at);
        at
    }

    /// Lets a stopped disk continue to answer calls.
    pub fn go_on(&self) {
        self.0.state().stopped = false;
        self.0.cut.notify_all();
    }

    /// Waits until the power is cut or the disk stops, for at most `at_most`.
    #[must_use]
    pub fn wait(&self, at_most: Duration) -> Seen {
        let state = self.0.state();
        let nothing = |state: &mut State| !state.dead && !state.stopped;
        let state = self
            .0
            .cut
            .wait_timeout_while(state, at_most, nothing)
            .map_or_else(|poisoned| poisoned.into_inner().0, |(state, _)| state);
        match (state.stopped, state.dead) {
            (true, _) => Seen::Stopped(state.calls),
            (_, true) => Seen::Cut,
            _ => Seen::Nothing,
        }
    }

    /// Decides which unsynced sectors are lost at the cut, and turns the power on again.
    pub fn revive(&self, rng: &mut Rng) -> Loss {
        let mut state = self.0.state();
        let mut loss = Loss::default();
        // Number of sectors in 16 that are lost; real disks often lose none, all or few.
        let lost_of_16 = *rng.pick(&[0, 16, 16, 8, 1, 15, 5]);
        let unsynced = std::mem::take(&mut state.unsynced);
        let mut before: Option<(usize, Option<usize>)> = None;
        for (&sector, versions) in &unsynced {
            loss.unsynced += 1;
            // Number of versions to go back from the last one; `None` stands for the durable content.
            let back = match before {
                Some((first, back)) if first + 1 == sector && is_superblock(first, &unsynced) => {
                    back.map(|back| back.min(versions.len() - 1))
                }
                _ if rng.below(16) < lost_of_16 => None,
                _ if rng.one_in(4) => Some(rng.index(versions.len())),
                _ => Some(0),
            };
            before = Some((sector, back));
            loss.lost += u64::from(back != Some(0));
            if let Some(back) = back {
                let range = sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES;
                state.durable[range].copy_from_slice(&versions[versions.len() - 1 - back]);
            }
        }
        *state = State {
            bytes: state.durable.clone(),
            durable: std::mem::take(&mut state.durable),
            ..State::default()
        };
        loss
    }
}

/// True if this sector was written as the first half of the superblock of ext4 or of ext4's journal.
fn is_superblock(sector: usize, unsynced: &BTreeMap<usize, Vec<[u8; SECTOR_BYTES]>>) -> bool {
    // The journal superblock begins with a magic number and, also in big-endian order, block type 3 or 4.
    const JOURNAL: [[u8; 8]; 2] = [
        [0xc0, 0x3b, 0x39, 0x98, 0, 0, 0, 3],
        [0xc0, 0x3b, 0x39, 0x98, 0, 0, 0, 4],
    ];
    let journal = |version: &[u8; SECTOR_BYTES]| JOURNAL.iter().any(|m| version.starts_with(m));
    let versions = unsynced.get(&sector);
    sector == 2 || versions.is_some_and(|versions| versions.iter().any(journal))
}

struct Server(Device);

impl Server {
    fn attributes(&self, ino: INodeNo) -> FileAttr {
        let size = self.0.0.state().bytes.len() as u64;
        let disk = ino == DISK;
        FileAttr {
            ino,
            size: if disk { size } else { 0 },
            blocks: size / 512,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if disk {
                FileType::RegularFile
            } else {
                FileType::Directory
            },
            perm: if disk { 0o600 } else { 0o700 },
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

impl Filesystem for Server {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if parent == INodeNo::ROOT && name == NAME {
            reply.entry(&TTL, &self.attributes(DISK), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&TTL, &self.attributes(ino));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let state = self.0.0.state();
        if state.dead {
            return reply.error(Errno::EIO);
        }
        let from = (offset as usize).min(state.bytes.len());
        let to = (from + size as usize).min(state.bytes.len());
        reply.data(&state.bytes[from..to]);
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let mut state = self.0.0.state();
        let (was_dead, kept) = (state.dead, state.keeps());
        let lives = state.count();
        let offset = offset as usize;
        if offset + data.len() > state.bytes.len() {
            return reply.error(Errno::ENOSPC);
        }
        // Data that was on its way at the cut may still reach the medium.
        if kept {
            state.keep(offset, data);
        } else if !was_dead {
            state.write(offset, data);
        }
        drop(self.0.0.stop(state));
        if lives {
            reply.written(data.len() as u32);
        } else {
            self.0.0.cut.notify_all();
            reply.error(Errno::EIO);
        }
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let mut state = self.0.0.state();
        let lives = state.count();
        if lives && state.fail_flush_at.is_none_or(|at| state.calls < at) && state.keeps() {
            state.flush();
        }
        state = self.0.0.stop(state);
        if !lives {
            drop(state);
            self.0.0.cut.notify_all();
            return reply.error(Errno::EIO);
        }
        if state.fail_flush_at.is_some_and(|at| state.calls >= at) {
            state.fail_flush_at = None;
            return reply.error(Errno::EIO);
        }
        reply.ok();
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // The kernel calls this for `close`; it does not ask for a flush of the disk.
        reply.ok();
    }
}
