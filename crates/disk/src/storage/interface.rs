//! The trait for access to the data file, and the trait by which tests observe it.

use super::places::Places;
use std::io;

/// Way in which new space at the end of the file is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// The space is filled with zeros. A later small write and its sync then take half the time, because no block has
    /// to be allocated or marked as written.
    Zeros,
    /// The space is only allocated. Used for bulk writes, for which zeros would double the written bytes.
    Reserve,
}

/// Access to a data file: reads, writes, syncs, and changes of the length.
pub trait Storage: Send + Sync {
    /// Fills `bytes` with the contents of the file from byte offset `at` on.
    ///
    /// # Errors
    /// Errors of the system; `UnexpectedEof` if the file is too short.
    fn read_at(&self, at: u64, bytes: &mut [u8]) -> io::Result<()>;

    /// Writes all of `bytes` at byte offset `at`. The range must lie inside the file.
    ///
    /// # Errors
    /// Errors of the system. Part of the bytes may have been written.
    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()>;

    /// Writes pieces one after the other, the first at byte offset `at`, as `write_at` would write the joined pieces.
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

    /// Returns memory of the file for pages that are changed in place. `None` if the storage does not support changes
    /// in place, or if another transaction has this memory.
    fn places(&self) -> Option<Box<dyn Places>> {
        None
    }

    /// Reports the current bytes of a page in the memory that `places` returned, when a change of the page begins and
    /// when it has ended. Meant for storages that observe or simulate a file. A storage whose memory is the file
    /// itself has nothing to do.
    ///
    /// # Errors
    /// As for `write_at`.
    fn changed_in_place(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let _ = (at, bytes);
        Ok(())
    }

    /// Hints that a sync of these bytes will follow: the system starts to write them to the medium, without waiting.
    fn write_back(&self, at: u64, len: u64) {
        let _ = (at, len);
    }

    /// Whether `write_back` has an effect. If not, no thread calls it, and the transaction alone decides when pages
    /// are written early.
    fn writes_back(&self) -> bool {
        false
    }

    /// Makes everything written durable. The file's length is durable only after `sync_all`, although this call may
    /// happen to make the length durable.
    ///
    /// # Errors
    /// Errors of the system. After an error, it is unknown which writes are durable.
    fn sync(&self) -> io::Result<()>;

    /// Makes everything written and the file's length durable.
    ///
    /// # Errors
    /// As for `sync`.
    fn sync_all(&self) -> io::Result<()>;

    /// Writes all of `bytes` at byte offset `at` and makes them durable. Other writes need not become durable. The
    /// range must lie inside the file.
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

    /// Whether the length of the storage can change. A block device has a fixed length; `len` is then its capacity,
    /// not the used part.
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

    /// Truncates the file to `len` bytes. From the call on until the file grows again, `mapped` does not return bytes
    /// of the truncated range.
    ///
    /// # Errors
    /// Errors of the system; the caller may ignore them.
    fn cut(&self, len: u64) -> io::Result<()> {
        let _ = len;
        Ok(())
    }

    /// Returns the space of a range inside the file to the file system. The range then reads as zeros, and the length
    /// of the file does not change. Returns false, without any effect, if the storage does not support this
    /// operation.
    ///
    /// # Errors
    /// Errors of the system; the caller may ignore them.
    fn punch(&self, at: u64, len: u64) -> io::Result<bool> {
        let _ = (at, len);
        Ok(false)
    }

    /// Returns the bytes `[at, at + len)` without copying. `None` if the storage does not support this, or if the
    /// range does not lie inside the file.
    fn mapped(&self, at: u64, len: usize) -> Option<&[u8]> {
        let _ = (at, len);
        None
    }

    /// Like `mapped`, for a single page after which its neighbours are unlikely to be read.
    fn mapped_page(&self, at: u64, len: usize) -> Option<&[u8]> {
        self.mapped(at, len)
    }

    /// Hints that these bytes will be read soon: the system starts to read them into memory, without waiting.
    ///
    /// # Errors
    /// Errors of the system; the caller may ignore them.
    fn read_ahead(&self, at: u64, len: u64) -> io::Result<()> {
        let _ = (at, len);
        Ok(())
    }

    /// Locks the first `bytes` bytes of the file in memory and unlocks the rest; waits until the bytes are loaded.
    /// Returns the number of locked bytes, which is 0 if nothing is mapped.
    ///
    /// # Errors
    /// Errors of the system, for instance if the process may not lock so much memory. No bytes are locked then.
    fn lock_in_memory(&self, bytes: u64) -> io::Result<u64> {
        let _ = bytes;
        Ok(0)
    }

    /// Whether a page that `mapped_page` returns is read without readahead if it is not in memory, while its reader
    /// waits. Callers that know the next pages should then announce them by `read_ahead`.
    fn reads_single_pages(&self) -> bool {
        false
    }

    /// Whether the system reads ahead for `mapped_in_order` although it does not for `mapped_page`. Callers that read
    /// pages in file order should then use `mapped_in_order`, and need not prefetch.
    fn reads_ahead_in_order(&self) -> bool {
        false
    }

    /// Like `mapped_page`, for one of many pages that are read in file order.
    fn mapped_in_order(&self, at: u64, len: usize) -> Option<&[u8]> {
        self.mapped_page(at, len)
    }

    /// Returns the observer of commits, if the storage has one. Tests use an observer to check the order of writes.
    fn observer(&self) -> Option<&dyn Observer> {
        None
    }

    /// Whether the length of the file is 0.
    ///
    /// # Errors
    /// Errors of the system.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// The page ranges that one commit allocated and freed.
#[derive(Clone, Debug)]
pub struct Committed<'a> {
    /// Transaction number of the commit.
    pub txn: u64,
    /// Ranges that the transaction allocated: byte offset, length in bytes.
    pub allocated: &'a [(u64, u64)],
    /// Ranges that the transaction freed: byte offset, length in bytes, and birth (the transaction that wrote the
    /// range).
    pub freed: &'a [(u64, u64, u64)],
    /// Allocated ranges whose pages are still only in memory: byte offset, length in bytes. They are written before a
    /// meta record refers to them.
    pub unwritten: &'a [(u64, u64)],
}

/// Observer of commits and snapshots, with which a test can check every single write.
pub trait Observer {
    /// A commit is complete: its pages are written or kept in memory (`unwritten`), and the next commit builds on it.
    /// The caller of the commit does not know it yet.
    fn committed(&self, commit: &Committed<'_>);
    /// The flush of commit `txn` and all commits before it begins.
    fn flush_began(&self, txn: u64);
    /// The callers of commit `txn` and all commits before it are told that their commits are durable.
    fn durable(&self, txn: u64);
    /// The caller of the lazy commit `txn` is told that it has succeeded: its meta record is in the lock area.
    fn unsynced_meta(&self, txn: u64);
    /// A reader of the snapshot of transaction `txn` began.
    fn reader_began(&self, txn: u64);
    /// A reader of the snapshot of transaction `txn` ended.
    fn reader_ended(&self, txn: u64);
}
