//! The trait for access to the data file, and the trait by which tests observe it.

use super::places::Places;
use std::io;

/// How new space at the end of the file is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// Written with zeros. A later small write and its sync then cost half, because no block has to be allocated or
    /// marked as written.
    Zeros,
    /// Only allocated, for bulk writes, which would otherwise write everything twice.
    Reserve,
}

/// The data file.
pub trait Storage: Send + Sync {
    /// Fills `bytes` from byte `at` on.
    ///
    /// # Errors
    /// Errors of the system; `UnexpectedEof` if the file is too short.
    fn read_at(&self, at: u64, bytes: &mut [u8]) -> io::Result<()>;

    /// Writes all of `bytes` at byte `at`, inside the file.
    ///
    /// # Errors
    /// Errors of the system. Part of the bytes may have been written.
    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()>;

    /// Writes pieces one after the other, the first at byte `at`, as `write_at` would write them joined.
    ///
    /// # Errors
    /// As for `write_at`.
    fn write_pieces(&self, at: u64, pieces: &[&[u8]]) -> io::Result<()> {
        self.write_at(at, &pieces.concat())
    }

    /// Like `write_pieces`, for data that is likely to be overwritten soon, and after which no sync follows.
    ///
    /// # Errors
    /// As for `write_at`.
    fn write_passing(&self, at: u64, pieces: &[&[u8]]) -> io::Result<()> {
        match pieces {
            [piece] => self.write_at(at, piece),
            _ => self.write_pieces(at, pieces),
        }
    }

    /// Memory of the file for pages that are changed in place. `None` if the storage does not support it, or if it is
    /// in use.
    fn places(&self) -> Option<Box<dyn Places>> {
        None
    }

    /// Reports the current bytes of a page of `places`, when its change begins and when it has ended. This is for
    /// storages that observe or simulate a file. A storage whose memory is the file itself has nothing to do.
    ///
    /// # Errors
    /// As for `write_at`.
    fn changed_in_place(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let _ = (at, bytes);
        Ok(())
    }

    /// A hint that a sync of these bytes will follow: the system starts to write them to the medium, without waiting.
    fn write_back(&self, at: u64, len: u64) {
        let _ = (at, len);
    }

    /// Whether `write_back` has an effect. If it has none, no other thread calls it, and early writes depend on the
    /// transaction alone.
    fn writes_back(&self) -> bool {
        false
    }

    /// Makes everything written durable. The file's length is durable only after `sync_all`, even if this call happens
    /// to make it durable.
    ///
    /// # Errors
    /// Errors of the system. Afterwards the durable content is unknown.
    fn sync(&self) -> io::Result<()>;

    /// Makes everything written and the file's length durable.
    ///
    /// # Errors
    /// As for `sync`.
    fn sync_all(&self) -> io::Result<()>;

    /// Writes all of `bytes` at byte `at`, inside the file, and makes them durable, but no other write.
    ///
    /// # Errors
    /// As for `sync`.
    fn write_durably(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_at(at, bytes)?;
        self.sync()
    }

    /// Length of the file in bytes.
    ///
    /// # Errors
    /// Errors of the system.
    fn len(&self) -> io::Result<u64>;

    /// False if the storage has a fixed length, as a block device does. `len` is then its capacity, not the used part.
    fn resizes(&self) -> bool {
        true
    }

    /// Reads the length again, because another process may have changed it.
    ///
    /// # Errors
    /// Errors of the system.
    fn refresh(&self) -> io::Result<()> {
        Ok(())
    }

    /// Makes the file at least `len` bytes long. The new length is not durable until `sync_all`.
    ///
    /// # Errors
    /// Errors of the system; the file is then at least as long as before.
    fn grow(&self, len: u64, how: Growth) -> io::Result<()>;

    /// Truncates the file. Bytes of the truncated range are not lent any more, nor will be before the file grows again.
    ///
    /// # Errors
    /// Errors of the system; the caller may ignore them.
    fn cut(&self, len: u64) -> io::Result<()> {
        let _ = len;
        Ok(())
    }

    /// Returns the space of a range inside the file to the file system; it then reads as zeros, and the length stays.
    /// Returns false if the storage cannot do this; nothing has changed then.
    ///
    /// # Errors
    /// Errors of the system; the caller may ignore them.
    fn punch(&self, at: u64, len: u64) -> io::Result<bool> {
        let _ = (at, len);
        Ok(false)
    }

    /// The bytes `[at, at + len)` without copying. `None` if the storage does not support it or if they are not inside
    /// the file.
    fn mapped(&self, at: u64, len: usize) -> Option<&[u8]> {
        let _ = (at, len);
        None
    }

    /// Like `mapped`, for a single page whose neighbours are unlikely to be read next.
    fn mapped_page(&self, at: u64, len: usize) -> Option<&[u8]> {
        self.mapped(at, len)
    }

    /// A hint that these bytes will be read soon: the system starts to read them, without waiting.
    ///
    /// # Errors
    /// Errors of the system; the caller may ignore them.
    fn read_ahead(&self, at: u64, len: u64) -> io::Result<()> {
        let _ = (at, len);
        Ok(())
    }

    /// Locks the first `bytes` bytes in memory and unlocks the rest; waits until they are loaded. Returns the number of
    /// locked bytes, which is 0 if nothing is mapped.
    ///
    /// # Errors
    /// Errors of the system: the limit of locked memory of a process. Nothing is locked then.
    fn lock_in_memory(&self, bytes: u64) -> io::Result<u64> {
        let _ = bytes;
        Ok(0)
    }

    /// Whether a page of `mapped_page` that is not in memory is read alone, while its reader waits. Callers that know
    /// the next pages should then announce them by `read_ahead`.
    fn reads_single_pages(&self) -> bool {
        false
    }

    /// Whether pages of `mapped_in_order` get readahead although pages of `mapped_page` do not. Callers that read pages
    /// in file order should then use `mapped_in_order`, and need not prefetch.
    fn reads_ahead_in_order(&self) -> bool {
        false
    }

    /// Like `mapped_page`, for one of many pages that are read in file order.
    fn mapped_in_order(&self, at: u64, len: usize) -> Option<&[u8]> {
        self.mapped_page(at, len)
    }

    /// Observer of the allocations and frees of commits: the write-protocol monitor of the tests.
    fn observer(&self) -> Option<&dyn Observer> {
        None
    }

    /// True if the length is 0.
    ///
    /// # Errors
    /// Errors of the system.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// The changes of one commit.
#[derive(Clone, Debug)]
pub struct Committed<'a> {
    /// The transaction.
    pub txn: u64,
    /// Ranges that the transaction allocated: (byte address, bytes).
    pub allocated: &'a [(u64, u64)],
    /// Ranges that the transaction freed: (byte address, bytes, birth).
    pub freed: &'a [(u64, u64, u64)],
    /// Allocated ranges that are not written yet. They will be written before a meta record names them.
    pub unwritten: &'a [(u64, u64)],
}

/// Observes commits and snapshots, so that a test can judge every single write.
pub trait Observer {
    /// A commit is complete: its pages are written or kept in memory (`unwritten`), and the next commit builds on it.
    /// It is not acknowledged yet.
    fn committed(&self, commit: &Committed<'_>);
    /// The flush of a commit begins, with all commits before it.
    fn flush_began(&self, txn: u64);
    /// A commit is acknowledged as durable, with all commits before it.
    fn durable(&self, txn: u64);
    /// A commit is acknowledged as lazy: its record is in the lock area.
    fn unsynced_meta(&self, txn: u64);
    /// A reader at this transaction began.
    fn reader_began(&self, txn: u64);
    /// A reader at this transaction ended.
    fn reader_ended(&self, txn: u64);
}
