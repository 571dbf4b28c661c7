//! The trait through which the data file is read and written, and the one by which tests watch it.

use super::places::Places;
use std::io;

/// How new space at the end of the file comes to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// Written with zeros: a later small write and its sync then cost half, because no block needs to be
    /// allocated or marked as written.
    Zeros,
    /// Allocated only: for bulk writes, which would otherwise write everything twice.
    Reserve,
}

/// The data file.
pub trait Storage: Send + Sync {
    /// Fills `bytes` from byte `at` on.
    ///
    /// # Errors
    /// The system's; `UnexpectedEof` when the file ends before.
    fn read_at(&self, at: u64, bytes: &mut [u8]) -> io::Result<()>;

    /// Writes all of `bytes` at byte `at`, inside the file.
    ///
    /// # Errors
    /// The system's. Part of the bytes may have been written.
    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()>;

    /// Writes pieces one after the other, the first at byte `at`, as `write_at` would write them joined.
    ///
    /// # Errors
    /// As for `write_at`.
    fn write_pieces(&self, at: u64, pieces: &[&[u8]]) -> io::Result<()> {
        self.write_at(at, &pieces.concat())
    }

    /// As `write_pieces`, for what no sync is to follow and is likely to be written over soon.
    ///
    /// # Errors
    /// As for `write_at`.
    fn write_passing(&self, at: u64, pieces: &[&[u8]]) -> io::Result<()> {
        match pieces {
            [piece] => self.write_at(at, piece),
            _ => self.write_pieces(at, pieces),
        }
    }

    /// Memory of the file for pages that are changed where they lie, if the storage has such and nobody else has it now.
    fn places(&self) -> Option<Box<dyn Places>> {
        None
    }

    /// A page of `places` has these bytes now: told when its change begins, and when it has ended. For storages that watch or
    /// imitate; where the memory is the file's there is nothing to do.
    ///
    /// # Errors
    /// As for `write_at`.
    fn changed_in_place(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let _ = (at, bytes);
        Ok(())
    }

    /// A hint that a sync of these bytes will follow: the system begins to write them to the medium, and this does not wait for it.
    fn write_back(&self, at: u64, len: u64) {
        let _ = (at, len);
    }

    /// Whether `write_back` does anything. Where it does not, nobody is made to call it beside the writer, and what is written early
    /// depends on the transaction alone.
    fn writes_back(&self) -> bool {
        false
    }

    /// Makes everything written durable. The file's length only as far as `sync_all` made it so:
    /// nobody should rely on more.
    ///
    /// # Errors
    /// The system's. After that nothing may be believed about what is durable.
    fn sync(&self) -> io::Result<()>;

    /// Makes everything written and the file's length durable.
    ///
    /// # Errors
    /// As for `sync`.
    fn sync_all(&self) -> io::Result<()>;

    /// Writes all of `bytes` at byte `at`, inside the file, and makes them durable: these bytes, and nothing else that was written.
    ///
    /// # Errors
    /// As for `sync`.
    fn write_durably(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_at(at, bytes)?;
        self.sync()
    }

    /// Bytes of the file.
    ///
    /// # Errors
    /// The system's.
    fn len(&self) -> io::Result<u64>;

    /// False: the storage has all its bytes from the beginning and keeps them, as a block device does. `len` then says what it
    /// can hold, not what was used of it so far.
    fn resizes(&self) -> bool {
        true
    }

    /// Another process may have made the file longer or shorter: asks anew what `len` answers.
    ///
    /// # Errors
    /// The system's.
    fn refresh(&self) -> io::Result<()> {
        Ok(())
    }

    /// Makes the file at least `len` bytes long. Not durable until `sync_all`.
    ///
    /// # Errors
    /// The system's; the file is as long as before or longer.
    fn grow(&self, len: u64, how: Growth) -> io::Result<()>;

    /// Cuts the file's end off. Nothing that lies there is lent any more, nor will be before the file grows again.
    ///
    /// # Errors
    /// The system's; nothing depends on it.
    fn cut(&self, len: u64) -> io::Result<()> {
        let _ = len;
        Ok(())
    }

    /// Gives the space of a stretch inside the file back to the file system; it reads as zeros, and the length stays.
    /// False: this storage cannot, and nothing has changed.
    ///
    /// # Errors
    /// The system's; nothing depends on it.
    fn punch(&self, at: u64, len: u64) -> io::Result<bool> {
        let _ = (at, len);
        Ok(false)
    }

    /// The bytes `[at, at + len)` without copying, if the storage can and they lie inside the file.
    fn mapped(&self, at: u64, len: usize) -> Option<&[u8]> {
        let _ = (at, len);
        None
    }

    /// As `mapped`, for a single page: what lies beside it will hardly be read next.
    fn mapped_page(&self, at: u64, len: usize) -> Option<&[u8]> {
        self.mapped(at, len)
    }

    /// A hint that these bytes will be read soon: the system begins to read them, and this does not wait for it.
    ///
    /// # Errors
    /// The system's; nothing depends on it.
    fn read_ahead(&self, at: u64, len: u64) -> io::Result<()> {
        let _ = (at, len);
        Ok(())
    }

    /// The first so many bytes stay in memory from now on, those behind them need not; waits until they are there. Returns how many are held: none
    /// where nothing is mapped.
    ///
    /// # Errors
    /// The system's: it lets a process hold so much and no more. Nothing is held then.
    fn lock_in_memory(&self, bytes: u64) -> io::Result<u64> {
        let _ = bytes;
        Ok(0)
    }

    /// True when the system reads a page of `mapped_page` that is not in memory alone, while whoever wanted it waits: then who knows which
    /// pages come next does well to say so by `read_ahead`.
    fn reads_alone(&self) -> bool {
        false
    }

    /// True when around a page of `mapped_stretch` the system reads although it reads those of `mapped_page` alone: then who reads pages in
    /// the order in which they lie does well to read them there, and need not ask for them.
    fn reads_stretches(&self) -> bool {
        false
    }

    /// As `mapped_page`, for one of many pages that are read in the order in which they lie.
    fn mapped_stretch(&self, at: u64, len: usize) -> Option<&[u8]> {
        self.mapped_page(at, len)
    }

    /// Who wants to be told what commits allocate and free: the write-protocol monitor of the tests.
    fn observer(&self) -> Option<&dyn Observer> {
        None
    }

    /// True when the file has no bytes.
    ///
    /// # Errors
    /// The system's.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// What one commit changed.
#[derive(Clone, Debug)]
pub struct Committed<'a> {
    /// Which transaction.
    pub txn: u64,
    /// Ranges it allocated: (byte address, bytes).
    pub allocated: &'a [(u64, u64)],
    /// Ranges it freed: (byte address, bytes, birth).
    pub freed: &'a [(u64, u64, u64)],
    /// Those of the allocated ranges that are not written yet: they will be before a record names them.
    pub unwritten: &'a [(u64, u64)],
}

/// Hears of commits and snapshots, to judge each write by itself.
pub trait Observer {
    /// A commit is whole: its pages are written, or kept in memory (`unwritten`), and the next one builds on it. Nothing is
    /// promised yet.
    fn committed(&self, commit: &Committed<'_>);
    /// A commit begins to be made durable, with all before it.
    fn flush_began(&self, txn: u64);
    /// A commit is acknowledged as durable, with all before it.
    fn durable(&self, txn: u64);
    /// A commit is acknowledged as lazy: its record is in the lock area.
    fn weak(&self, txn: u64);
    /// A reader at this transaction began.
    fn reader_began(&self, txn: u64);
    /// A reader at this transaction ended.
    fn reader_ended(&self, txn: u64);
}
