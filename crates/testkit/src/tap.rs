//! A storage around the simulated disk, for recorded runs with a lock area. Whenever the lock area has changed, the
//! storage notes this in the disk's log. It can run a hook before a sync, for example to let other threads commit.

use crate::explore::Note;
use crate::simdisk::SimDisk;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidalite_disk::storage::{Growth, Observer, Places};
use tidalite_pager::{LockMemory, Storage};

/// Offsets of two words in the lock area, as in `crates/disk/src/lock/layout.rs`: the time at which the writer took the
/// writer lock, and the number of reader slots ever used.
const WRITER_SINCE_AT: usize = 192 + 3 * 8;
const SLOTS_USED_AT: usize = 384 + 8;

/// A callback to run before a sync.
pub type Hook = Box<dyn FnMut() + Send>;

/// A storage that notes the lock area before every operation.
pub struct Tap {
    inner: Arc<dyn Storage>,
    disk: Arc<SimDisk>,
    memory: LockMemory,
    areas: Mutex<Vec<Vec<u8>>>,
    hook: Mutex<Option<Hook>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets words that the seed of a run does not determine to 0, in an image of the lock area. The writer's time comes
/// from the system's clock, so a tick between two operations would add a note. The number of reader slots depends on
/// the thread, which chooses its slots by its own number.
fn clear_unseeded(area: &mut [u8]) {
    for at in [WRITER_SINCE_AT, SLOTS_USED_AT] {
        area[at..at + 8].fill(0);
    }
}

impl Tap {
    /// Wraps `inner`, which is the disk or forwards to it. `areas` are the images of the lock area to which the disk's
    /// log refers so far.
    pub fn new(
        inner: Arc<dyn Storage>,
        disk: &Arc<SimDisk>,
        memory: &LockMemory,
        areas: Vec<Vec<u8>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            inner,
            disk: Arc::clone(disk),
            memory: memory.clone(),
            areas: Mutex::new(areas),
            hook: Mutex::new(None),
        })
    }

    /// Sets a hook that runs before each sync, except for syncs that the hook itself causes.
    pub fn set_hook(&self, hook: Option<Hook>) {
        *lock(&self.hook) = hook;
    }

    /// Notes the lock area in the log if it has changed. Changes after the simulated death of the process are ignored,
    /// because a dead process makes none.
    pub fn note(&self) {
        if self.disk.is_dead() {
            return;
        }
        let mut image = self.memory.image();
        clear_unseeded(&mut image);
        let mut areas = lock(&self.areas);
        if areas.last() != Some(&image) {
            self.disk.mark(Note::Area(areas.len() as u64).encode());
            areas.push(image);
        }
    }

    /// The image of the lock area that was noted last.
    #[must_use]
    pub fn area(&self) -> Vec<u8> {
        lock(&self.areas).last().cloned().unwrap_or_default()
    }

    /// Takes all images of the lock area to which the log refers.
    #[must_use]
    pub fn take_areas(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut *lock(&self.areas))
    }

    /// Runs the hook, then notes the lock area if it has changed.
    pub(crate) fn before_sync(&self) {
        let hook = lock(&self.hook).take();
        if let Some(mut hook) = hook {
            hook();
            lock(&self.hook).get_or_insert(hook);
        }
        self.note();
    }
}

impl Storage for Tap {
    fn read_at(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.inner.read_at(at, bytes)
    }
    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.note();
        self.inner.write_at(at, bytes)
    }
    fn places(&self) -> Option<Box<dyn Places>> {
        self.inner.places()
    }
    fn changed_in_place(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.note();
        self.inner.changed_in_place(at, bytes)
    }
    fn write_durably(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.before_sync();
        self.inner.write_durably(at, bytes)
    }
    fn sync(&self) -> io::Result<()> {
        self.before_sync();
        self.inner.sync()
    }
    fn sync_all(&self) -> io::Result<()> {
        self.before_sync();
        self.inner.sync_all()
    }
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }
    fn grow(&self, len: u64, how: Growth) -> io::Result<()> {
        self.note();
        self.inner.grow(len, how)
    }
    fn cut(&self, len: u64) -> io::Result<()> {
        self.note();
        self.inner.cut(len)
    }
    fn punch(&self, at: u64, len: u64) -> io::Result<bool> {
        self.note();
        self.inner.punch(at, len)
    }
    fn mapped(&self, at: u64, len: usize) -> Option<&[u8]> {
        self.inner.mapped(at, len)
    }
    fn observer(&self) -> Option<&dyn Observer> {
        self.inner.observer()
    }
}
