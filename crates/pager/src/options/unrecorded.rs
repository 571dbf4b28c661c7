//! A lazy commit that only the lock file names, in the form in which the crate above the pager traverses and verifies
//! its pages.
//!
//! Invariants
//! 1. No byte that this file reads is trusted. Each page, block and chunk is read by `read_at` instead of the map,
//!    and verified whatever `Options::verify` says. No page is marked as verified.
//! 2. A forged meta record cannot make the traversal endless: all reads together are bounded by a multiple of the
//!    file lengths, and each read by `READ_BYTES_MAX`.

use crate::error::Result;
use crate::format::header::verify_block;
use crate::format::layout::{HEAD_BYTES, LARGE_AT};
use crate::format::pages::{Counters, PageRead, PageRef};
use crate::format::ptr::Ptr;
use crate::format::superblock::read_failed;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tidalite_base::{Corrupt, TxnId};
use tidalite_disk::storage::Storage;

/// Maximum total number of bytes read for a verification, as a multiple of the file lengths. A traversal of a sound
/// database reads each byte only a few times.
const READS_OF_A_BYTE_MAX: u64 = 16;
/// Maximum number of bytes of one read. The longest reads are blocks and the padding of extents.
const READ_BYTES_MAX: usize = 64 << 20;

/// Function that traverses a commit and verifies all its pages and blocks that are newer than a given transaction.
/// The layer that knows how to find the pages of its structures supplies it; see
/// [`Options::verifier`](crate::Options::verifier).
#[derive(Clone)]
pub struct Verifier(pub(crate) Arc<Walk>);

type Walk = dyn Fn(&Unrecorded<'_>) -> Result<()> + Send + Sync;

impl Verifier {
    /// Creates a verifier that calls `f`. `f` returns an error if any bytes do not match the pointer to them, and
    /// must not open the database.
    pub fn new(f: impl Fn(&Unrecorded<'_>) -> Result<()> + Send + Sync + 'static) -> Self {
        Self(Arc::new(f))
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Verifier")
    }
}

/// A lazy commit that only the lock file names, while it is being verified. Every read is verified against the
/// pointer.
pub struct Unrecorded<'a> {
    pub(crate) files: &'a Files<'a>,
    pub(crate) app: Arc<[u8]>,
    pub(crate) since: TxnId,
    pub(crate) end: u64,
}

/// The files of the database, and the number of bytes read from them so far.
pub(crate) struct Files<'a> {
    pub(crate) first: &'a dyn Storage,
    pub(crate) first_bytes: u64,
    pub(crate) second: Option<Arc<dyn Storage>>,
    pub(crate) second_bytes: u64,
    pub(crate) page_size: usize,
    pub(crate) read_bytes: AtomicU64,
    pub(crate) counters: Counters,
}

impl Unrecorded<'_> {
    /// Returns the app area of the commit, in which the layers above the pager store their data.
    #[must_use]
    pub fn app(&self) -> &[u8] {
        &self.app
    }

    /// Returns the transaction of the durable meta record. Pages written by this transaction or earlier need not be
    /// read.
    #[must_use]
    pub fn since(&self) -> TxnId {
        self.since
    }

    fn read(&self, addr: u64, len: usize) -> Result<PageRef<'_>> {
        let files = self.files;
        let (storage, at, from, end) = match (addr.checked_sub(LARGE_AT), &files.second) {
            (None, _) => (files.first, addr, HEAD_BYTES, self.end),
            (Some(at), Some(second)) => (&**second, at, 0, files.second_bytes),
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
