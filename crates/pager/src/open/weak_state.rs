//! Verifying a state that only the lock file names, before an opener believes it.
//!
//! The lock file says which commit was the newest; it is no evidence that the pages of that commit are in the data file. The two files may be
//! of different instants: a copied folder, a backup put in place, a disk that lost its unsynced sectors while the lock file was kept. So
//! the first opener reads everything that such a state reaches and that was written after the durable record, and compares it with the
//! checksums in the pointers to it. Older pages were synced with that record.
//!
//! Invariants
//! 1. Nothing that is read here is trusted: each page, block and chunk is verified whatever `Options::verify` says, by `read_at`, never
//!    through the map, and no mark of it is kept.
//! 2. A hostile record ends: all reads together are bounded by a multiple of the lengths of the files, and each one by `READ_BYTES_MAX`.
//! 3. A pointer's birth is the transaction that wrote what it names, and no page names a younger one. So what is not younger than the durable
//!    record need not be read, nor anything below it.

use crate::commit::second_file;
use crate::commit::second_file::{LargeFile, LargePlace};
use crate::error::{Error, Result};
use crate::format::header::verify_block;
use crate::format::kind::Kind;
use crate::format::layout::{HEAD_BYTES, LARGE_AT, first_page};
use crate::format::meta::Meta;
use crate::format::pages::{Counters, PageRead, PageRef, expect_zeros};
use crate::format::pins;
use crate::format::pins::Alone;
use crate::format::ptr::Ptr;
use crate::format::superblock::{Superblock, read_failed};
use crate::options::Options;
use crate::space::load;
use crate::space::reclaim::walk;
use crate::storage::Storage;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tidalite_base::{Corrupt, TxnId};

/// All reads together, as a multiple of the bytes of the files. Walking a sound state reads each byte a few times.
const READS_OF_A_BYTE_MAX: u64 = 16;
/// One read: the longest is the padding of an extent, or a block.
const READ_BYTES_MAX: usize = 64 << 20;

/// Walks over a state and verifies all of it that is younger than a transaction. Supplied by the layer that knows how its structures find
/// their pages; see [`Options::verifier`].
#[derive(Clone)]
pub struct Verifier(Arc<Walk>);

type Walk = dyn Fn(&Unrecorded<'_>) -> Result<()> + Send + Sync;

impl Verifier {
    /// A verifier that calls `f`, which returns an error when anything that it reads is not as the pointer to it says. It must not open the
    /// database.
    pub fn new(f: impl Fn(&Unrecorded<'_>) -> Result<()> + Send + Sync + 'static) -> Self {
        Self(Arc::new(f))
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Verifier")
    }
}

/// A state that only the lock file names, while it is being verified. Every read is verified against the pointer.
pub struct Unrecorded<'a> {
    files: &'a Files<'a>,
    app: Arc<[u8]>,
    since: TxnId,
    end: u64,
}

/// The files of the database, and how much was read of them.
struct Files<'a> {
    first: &'a dyn Storage,
    first_bytes: u64,
    second: Option<LargeFile>,
    second_bytes: u64,
    page_size: usize,
    read_bytes: AtomicU64,
    counters: Counters,
}

/// Verifies the state of a record, which nothing else vouches for, as far as it is younger than the durable record that it stands on. Returns the
/// bytes read, and why the state is not to be used, if so.
pub(crate) fn verify(
    storage: &dyn Storage,
    superblock: &Superblock,
    (record, durable): (&Meta, &Meta),
    place: &LargePlace<'_>,
    options: &Options,
) -> (u64, Result<()>) {
    let files = match Files::open(storage, superblock, record, place, options) {
        Ok(files) => files,
        Err(error) => return (0, Err(error)),
    };
    let verified = files.verify(superblock, record, TxnId(durable.txn), options);
    (files.read_bytes.load(Ordering::Relaxed), verified)
}

impl<'a> Files<'a> {
    fn open(
        first: &'a dyn Storage,
        superblock: &Superblock,
        record: &Meta,
        place: &LargePlace<'_>,
        options: &Options,
    ) -> Result<Self> {
        let second = second_file::open(first, superblock, record, place, options)?;
        let len = |storage: &dyn Storage| storage.len().map_err(|error| read_failed(0, error));
        let second_bytes = match &second {
            Some(second) => len(&*second.storage)?,
            None => 0,
        };
        Ok(Self {
            first,
            first_bytes: len(first)?,
            second,
            second_bytes,
            page_size: superblock.page_size,
            read_bytes: AtomicU64::new(0),
            counters: Counters::default(),
        })
    }

    fn verify(
        &self,
        superblock: &Superblock,
        record: &Meta,
        since: TxnId,
        options: &Options,
    ) -> Result<()> {
        let Some(Verifier(walk)) = &options.verifier else {
            return Err(Error::Unsupported {
                found: "a state that only the lock file names".into(),
                expected: "Options::verifier, which verifies one".into(),
            });
        };
        let end = record.pages.saturating_mul(self.page_size as u64);
        if end > self.first_bytes || record.pages < first_page(self.page_size) {
            let expected = format!("{end} bytes or more, which are {} pages", record.pages);
            let found = format!("{} bytes", self.first_bytes);
            return Err(Corrupt::new("file length", 0, found, expected).into());
        }
        let newest = self.state(record, since, end);
        newest.verify_space(record)?;
        newest.verify_alone(&record.clock)?;
        if record.clock.birth > since {
            pins::read_clock(&record.clock, &|ptr| newest.block(ptr))?;
        }
        walk(&newest)?;
        if record.pins.birth <= since {
            return Ok(());
        }
        newest.verify_alone(&record.pins)?;
        for pin in pins::read_table(&record.pins, &|ptr| newest.block(ptr))? {
            // The birth of a pinned record is that of its version: the pin may be younger.
            let block = newest.block(&pin.record)?;
            let pinned = Meta::decode(&block, pin.record.addr, &superblock.uuid)?;
            newest.verify_padding(&pin.record)?;
            if pin.txn > since {
                walk(&self.state(&pinned, since, self.first_bytes))?;
            }
        }
        Ok(())
    }

    fn state(&'a self, record: &Meta, since: TxnId, end: u64) -> Unrecorded<'a> {
        Unrecorded {
            files: self,
            app: Arc::clone(&record.app),
            since,
            end,
        }
    }
}

impl Unrecorded<'_> {
    /// What the layers above stored with that commit.
    #[must_use]
    pub fn app(&self) -> &[u8] {
        &self.app
    }

    /// The durable record's transaction: what was written by it, or before, need not be read.
    #[must_use]
    pub fn since(&self) -> TxnId {
        self.since
    }

    fn read(&self, addr: u64, len: usize) -> Result<PageRef<'_>> {
        let files = self.files;
        let (storage, at, from, end) = match (addr.checked_sub(LARGE_AT), &files.second) {
            (None, _) => (files.first, addr, HEAD_BYTES, self.end),
            (Some(at), Some(second)) => (&*second.storage, at, 0, files.second_bytes),
            (Some(_), None) => (files.first, addr, HEAD_BYTES, 0),
        };
        let inside = at
            .checked_add(len as u64)
            .is_some_and(|to| to <= end && at >= from);
        let before = files.read_bytes.fetch_add(len as u64, Ordering::Relaxed);
        let all = files.first_bytes.saturating_add(files.second_bytes);
        let most = all.saturating_mul(READS_OF_A_BYTE_MAX);
        if !inside || len > READ_BYTES_MAX || before.saturating_add(len as u64) > most {
            let found = format!("{len} bytes at {addr}, after {before} bytes that were read");
            let expected = format!("a range between {from} and {end}; {most} bytes read in all");
            return Err(Corrupt::new("pointer", addr, found, expected).into());
        }
        let mut bytes = vec![0; len];
        let read = storage.read_at(at, &mut bytes);
        read.map_err(|error| read_failed(addr, error))?;
        Ok(PageRef::Owned(bytes.into()))
    }

    /// Verifies the free space: its structure, and the lists of dead ranges.
    fn verify_space(&self, record: &Meta) -> Result<()> {
        let since = self.since;
        let page_size = self.files.page_size;
        let read = |ptr: &Ptr| {
            if ptr.kind == Kind::FreeBitmap && ptr.birth <= since {
                // Which pages are free does not matter here: nothing free is as good as anything.
                return Ok(PageRef::Owned(vec![0; page_size].into()));
            }
            self.page(ptr)
        };
        let before = record.txn.saturating_sub(1);
        let space = load::load(page_size, record, before, &read)?;
        for stack in space
            .stacks()
            .iter()
            .filter(|stack| stack.top.birth > since)
        {
            walk(stack, &read, &mut |_, list| list.next.birth > since)?;
        }
        Ok(())
    }

    /// Verifies a block alone in its extent, if it is young.
    fn verify_alone(&self, ptr: &Ptr) -> Result<()> {
        if ptr.birth <= self.since {
            return Ok(());
        }
        self.block(ptr)?;
        self.verify_padding(ptr)
    }

    fn verify_padding(&self, ptr: &Ptr) -> Result<()> {
        let pages = Alone(*ptr).extent(self.files.page_size).pages;
        let room = (pages * self.files.page_size as u64).saturating_sub(u64::from(ptr.len));
        let at = ptr.addr.saturating_add(u64::from(ptr.len));
        expect_zeros(self, at, room as usize)
    }
}

impl PageRead for Unrecorded<'_> {
    fn page_size(&self) -> usize {
        self.files.page_size
    }

    fn page(&self, ptr: &Ptr) -> Result<PageRef<'_>> {
        let page_size = self.files.page_size;
        if ptr.len as usize != page_size || !ptr.addr.is_multiple_of(page_size as u64) {
            let found = format!("{} bytes", ptr.len);
            let expected = format!("{page_size} bytes at a multiple of that");
            return Err(Corrupt::new("pointer to a page", ptr.addr, found, expected).into());
        }
        Counters::bump(&self.files.counters.pages_read);
        let bytes = self.read(ptr.addr, page_size)?;
        verify_block(&bytes, ptr)?;
        Ok(bytes)
    }

    fn block(&self, ptr: &Ptr) -> Result<PageRef<'_>> {
        Counters::bump(&self.files.counters.blocks_read);
        let bytes = self.read(ptr.addr, ptr.len as usize)?;
        verify_block(&bytes, ptr)?;
        Ok(bytes)
    }

    fn bytes(&self, addr: u64, len: usize) -> Result<PageRef<'_>> {
        self.read(addr, len)
    }

    fn counters(&self) -> &Counters {
        &self.files.counters
    }
}
