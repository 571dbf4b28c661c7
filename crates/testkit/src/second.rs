//! A second simulated disk, for the second file of a database. Each disk has its own log of operations, and the log of
//! the first disk notes the progress of the second. Together the logs give the order of all operations, so a power cut
//! hits both disks at the same moment, each with its own losses.
//!
//! Both disks belong to one process: a fault that kills this process on one disk kills it on both.

use crate::explore::Note;
use crate::simdisk::SimDisk;
use crate::tap::Tap;
use std::io;
use std::sync::Arc;
use tidalite_disk::storage::Growth;
use tidalite_pager::Storage;

/// The storage of the second simulated disk.
pub struct Second {
    disk: Arc<SimDisk>,
    first: Arc<SimDisk>,
    tap: Arc<Tap>,
}

impl Second {
    /// Creates the storage of `disk`; `tap` is the storage around `first`, whose log notes the progress of `disk`.
    pub fn new(disk: &Arc<SimDisk>, first: &Arc<SimDisk>, tap: &Arc<Tap>) -> Arc<Self> {
        Arc::new(Self {
            disk: Arc::clone(disk),
            first: Arc::clone(first),
            tap: Arc::clone(tap),
        })
    }

    fn change<T>(&self, call: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        if self.first.is_dead() {
            self.disk.kill();
        }
        let done = call();
        if self.disk.is_dead() {
            self.first.kill();
        } else {
            self.first
                .mark(Note::Second(self.disk.operations()).encode());
        }
        done
    }
}

impl Storage for Second {
    fn read_at(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.disk.read_at(at, bytes)
    }
    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.tap.note();
        self.change(|| self.disk.write_at(at, bytes))
    }
    fn sync(&self) -> io::Result<()> {
        self.tap.before_sync();
        self.change(|| self.disk.sync())
    }
    fn sync_all(&self) -> io::Result<()> {
        self.tap.before_sync();
        self.change(|| self.disk.sync_all())
    }
    fn len(&self) -> io::Result<u64> {
        self.disk.len()
    }
    fn grow(&self, len: u64, how: Growth) -> io::Result<()> {
        self.tap.note();
        self.change(|| self.disk.grow(len, how))
    }
    fn cut(&self, len: u64) -> io::Result<()> {
        self.tap.note();
        self.change(|| self.disk.cut(len))
    }
    fn punch(&self, at: u64, len: u64) -> io::Result<bool> {
        self.tap.note();
        self.change(|| self.disk.punch(at, len))
    }
    fn mapped(&self, at: u64, len: usize) -> Option<&[u8]> {
        self.disk.mapped(at, len)
    }
}
