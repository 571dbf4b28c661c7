//! Reads a damaged file without trusting its head. Every page and block can be found by its own header, which
//! contains its kind, owner, address, birth and checksum.

use crate::commit::lost_commits;
use crate::commit::redo;
use crate::commit::redo::Logged;
use crate::commit::second_file;
use crate::commit::second_file::{LargeFile, LargePlace};
use crate::error::lost_commits::LostCommits;
use crate::error::{Error, Result};
use crate::format::header::{HEADER_BYTES, Header, verify_block};
use crate::format::kind::Kind;
use crate::format::layout::{BLOCK_BYTES, HEAD_BYTES, LARGE_AT, meta_at, page_size_ok};
use crate::format::meta::Meta;
use crate::format::pages::{Counters, PageRead, PageRef};
use crate::format::ptr::Ptr;
use crate::format::superblock;
use crate::format::superblock::{read_block, read_failed};
use crate::options::Options;
use crate::space::load;
use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use tidalite_base::limits::{CHECKSUM_SPAN_MAX, PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX, PAGE_SIZE_MIN};
use tidalite_base::{Corrupt, TxnId, get_u64};
use tidalite_disk::storage::{FileStorage, Storage};

/// Alignment in bytes of blocks inside extents.
const BLOCK_ALIGN: usize = 8;
/// Number of bytes of the file that are scanned at a time.
const WINDOW_BYTES: usize = 1 << 20;
/// Number of pages whose checksum is computed for each possible page size, if both superblocks are lost.
const GUESSES_MAX: usize = 64;

/// The newest readable meta record, in the head of the file or in the redo log.
#[derive(Clone, Debug)]
pub struct RawState {
    /// Transaction number of the meta record.
    pub txn: TxnId,
    /// The app area of the meta record, in which the layers above the pager store their data.
    pub app: Arc<[u8]>,
    meta: Meta,
}

/// A page or block whose header contains the address at which it was found. Its checksum is not verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The header of the page or block.
    pub header: Header,
    /// The checksum in the header of the page or block.
    pub checksum: u64,
}

impl RawState {
    fn of(meta: Meta) -> Self {
        Self {
            txn: TxnId(meta.txn),
            app: Arc::clone(&meta.app),
            meta,
        }
    }
}

impl Candidate {
    /// Returns a pointer to the block, assuming that the block is `len` bytes long.
    #[must_use]
    pub fn ptr(&self, len: usize) -> Ptr {
        Ptr {
            addr: self.header.address,
            len: u32::try_from(len).unwrap_or(u32::MAX),
            kind: self.header.kind,
            checksum: self.checksum,
            birth: self.header.birth,
        }
    }
}

/// A damaged file. Its head is not trusted; only pages and blocks that match their checksums are. Every read verifies
/// the checksums, and nothing is written.
pub struct RawFile {
    storage: Arc<dyn Storage>,
    /// The second file with large values, if it was found.
    large: Option<LargeFile>,
    page_size: usize,
    len: u64,
    state: Option<RawState>,
    lost: Option<LostCommits>,
    counters: Counters,
}

impl RawFile {
    /// Opens a file for salvage. No other handle should have the file open.
    ///
    /// # Errors
    /// `Open`, `Io`; `NotADatabase` if the page size cannot be determined.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let failed = |source| Error::of_open(path, source);
        let file = File::open(path).map_err(failed)?;
        let storage = FileStorage::new(file, false).map_err(failed)?;
        let mut raw = Self::of_storage(Arc::new(storage))?;
        raw.large = raw.find_large(path);
        Ok(raw)
    }

    /// Makes this file read large values from the second file at path `second`. The head of the second file may be
    /// damaged.
    ///
    /// # Errors
    /// As for `open`.
    pub fn use_large(&mut self, second: impl AsRef<Path>) -> Result<()> {
        self.large = Some(LargeFile::raw(second.as_ref())?);
        Ok(())
    }

    /// Finds the second file by its name in the newest meta record. Returns `None` if it is not found; its values are
    /// then lost.
    fn find_large(&self, path: &Path) -> Option<LargeFile> {
        let (superblock, _) = superblock::load(&*self.storage).ok()?;
        let options = Options {
            read_only: true,
            map: false,
            ..Options::default()
        };
        let meta = &self.state.as_ref()?.meta;
        let place = LargePlace::NextTo(path);
        second_file::open(&*self.storage, &superblock, meta, &place, &options).ok()?
    }

    /// Like `open`, for a storage.
    ///
    /// # Errors
    /// As for `open`.
    pub fn of_storage(storage: Arc<dyn Storage>) -> Result<Self> {
        let len = storage.len().map_err(|error| read_failed(0, error))?;
        let superblock = superblock::load(&*storage).ok().map(|(found, _)| found);
        let state = newest_state(&*storage, superblock.map(|found| found.uuid));
        let mut raw = Self {
            storage,
            large: None,
            page_size: superblock.map_or(PAGE_SIZE_MIN, |found| found.page_size),
            len,
            state,
            lost: None,
            counters: Counters::default(),
        };
        if superblock.is_none() {
            raw.page_size = raw.guess_page_size()?;
        }
        raw.lay_log_over();
        Ok(raw)
    }

    /// Replays the redo log into an overlay over the file, since the newest commits may be only in the redo log. If
    /// the redo log is damaged, only the meta record in the head is used.
    fn lay_log_over(&mut self) {
        let Some(state) = &self.state else {
            return;
        };
        let logged = redo::read(&*self.storage, self.page_size, &state.meta, state.txn.0);
        if let Ok(logged) = &logged {
            let record = (&state.meta, state.txn.0);
            self.lost = lost_commits::find(&*self.storage, (self.page_size, None), record, logged);
        }
        if let Ok(Logged {
            replayed: Some(replayed),
            ..
        }) = logged
        {
            self.state = Some(RawState::of(replayed.meta));
            let below = Arc::clone(&self.storage);
            let over = redo::Overlay::new(below, self.page_size, replayed.pages);
            self.len = over.len().unwrap_or(self.len);
            self.storage = Arc::new(over);
        }
    }

    /// Returns the newest readable meta record, if any.
    #[must_use]
    pub fn state(&self) -> Option<&RawState> {
        self.state.as_ref()
    }

    /// Returns the durable commits that are missing according to the redo log.
    #[must_use]
    pub fn lost_commits(&self) -> Option<LostCommits> {
        self.lost
    }

    /// Length of the file in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the file has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns one flag for each page, which is set if the page is free according to the newest meta record; `None`
    /// if the free-space structure is not readable.
    #[must_use]
    pub fn free_pages(&self) -> Option<Vec<bool>> {
        let meta = &self.state.as_ref()?.meta;
        let pages = self.len / self.page_size as u64;
        if meta.pages > pages {
            return None;
        }
        let read = |ptr: &Ptr| self.page(ptr);
        let before = meta.txn.saturating_sub(1);
        let mut space = load::load(self.page_size, meta, before, &read).ok()?;
        let mut free = vec![false; pages as usize];
        space.for_each_free(|page| free[page as usize] = true);
        Some(free)
    }

    /// Passes every candidate after the head of the file to `f`, in ascending order of addresses. A candidate is a
    /// page or block whose header contains its own address. `f` also gets the number of bytes scanned so far.
    ///
    /// # Errors
    /// `Io`, and errors of `f`. Unreadable ranges are skipped.
    pub fn scan(&self, f: &mut dyn FnMut(Candidate, u64) -> Result<()>) -> Result<()> {
        let mut window = vec![0u8; WINDOW_BYTES + HEADER_BYTES];
        let mut from = HEAD_BYTES;
        while from + HEADER_BYTES as u64 <= self.len {
            let there = (self.len - from).min(window.len() as u64) as usize;
            let bytes = &mut window[..there];
            if self.storage.read_at(from, bytes).is_err() {
                self.read_in_parts(from, bytes);
            }
            let last = there - HEADER_BYTES;
            for at in (0..=last.min(WINDOW_BYTES - BLOCK_ALIGN)).step_by(BLOCK_ALIGN) {
                // A header contains its own address; other data hardly ever match this condition.
                if get_u64(bytes, at + 16) != from + at as u64 {
                    continue;
                }
                let header = Header::decode(&bytes[at..]);
                if header.kind != Kind::None && header.birth.0 > 0 {
                    let checksum = get_u64(bytes, at);
                    f(
                        Candidate { header, checksum },
                        from + at as u64 - HEAD_BYTES,
                    )?;
                }
            }
            from += WINDOW_BYTES as u64;
        }
        Ok(())
    }

    /// Reads block by block after the read of a whole range has failed; unreadable blocks become zeros.
    fn read_in_parts(&self, from: u64, bytes: &mut [u8]) {
        for (i, part) in bytes.chunks_mut(BLOCK_BYTES).enumerate() {
            if self
                .storage
                .read_at(from + (i * BLOCK_BYTES) as u64, part)
                .is_err()
            {
                part.fill(0);
            }
        }
    }

    /// Determines the page size by trying which size makes most pages match their checksums.
    fn guess_page_size(&self) -> Result<usize> {
        let mut candidates = Vec::new();
        let scanned = self.scan(&mut |found, _| {
            let kind = found.header.kind;
            if matches!(kind, Kind::KvLeaf | Kind::KvBranch | Kind::Tail) {
                candidates.push(found);
            }
            if candidates.len() < GUESSES_MAX {
                Ok(())
            } else {
                Err(Error::Cancelled)
            }
        });
        if let Err(error) = scanned
            && !matches!(error, Error::Cancelled)
        {
            return Err(error);
        }
        let mut votes: HashMap<usize, usize> = HashMap::new();
        for found in &candidates {
            let mut size = PAGE_SIZE_MIN;
            while size <= PAGE_SIZE_MAX {
                let ptr = found.ptr(size);
                let whole = found.header.address % size as u64 == 0;
                if whole
                    && self
                        .read(ptr.addr, size)
                        .is_ok_and(|b| verify_block(&b, &ptr).is_ok())
                {
                    *votes.entry(size).or_default() += 1;
                }
                size *= 2;
            }
        }
        match votes.into_iter().max_by_key(|(_, count)| *count) {
            Some((size, _)) if page_size_ok(size) => Ok(size),
            // A file with only series has no table pages. Any page size is suitable then, since series leaves do not
            // depend on it.
            _ if self.len > HEAD_BYTES => Ok(PAGE_SIZE_DEFAULT),
            _ => Err(Error::NotADatabase {
                found: "no superblock and no page of a table".into(),
            }),
        }
    }

    fn read(&self, addr: u64, len: usize) -> Result<PageRef<'_>> {
        if addr >= LARGE_AT {
            let damage =
                |error: Error| Corrupt::new("second file", addr, error, format!("{len} bytes"));
            return match &self.large {
                Some(large) if len <= CHECKSUM_SPAN_MAX => large
                    .bytes(addr, len, false)
                    .map_err(|error| damage(error).into()),
                _ => Err(Corrupt::new("second file", addr, "none", "the one that is named").into()),
            };
        }
        let inside = addr
            .checked_add(len as u64)
            .is_some_and(|end| end <= self.len);
        if !inside || addr < HEAD_BYTES || len > PAGE_SIZE_MAX.max(CHECKSUM_SPAN_MAX) {
            let expected = format!("a range between {HEAD_BYTES} and {}", self.len);
            let found = format!("{len} bytes at {addr}");
            return Err(Corrupt::new("pointer", addr, found, expected).into());
        }
        let mut bytes = vec![0u8; len];
        self.storage
            .read_at(addr, &mut bytes)
            // During salvage, a bad sector of the medium is reported as damage.
            .map_err(|error| Corrupt::new("medium", addr, error, format!("{len} bytes")))?;
        Ok(PageRef::Owned(bytes.into()))
    }
}

fn newest_state(storage: &dyn Storage, uuid: Option<[u8; 16]>) -> Option<RawState> {
    let mut newest: Option<Meta> = None;
    for pair in [0, 1] {
        for copy in [0, 1] {
            let at = meta_at(pair, copy);
            let Ok(block) = read_block(storage, at) else {
                continue;
            };
            let mut own = [0; 16];
            own.copy_from_slice(&block[HEADER_BYTES..HEADER_BYTES + 16]);
            let Ok(meta) = Meta::decode(&block, at, &uuid.unwrap_or(own)) else {
                continue;
            };
            if newest.as_ref().is_none_or(|best| best.txn < meta.txn) {
                newest = Some(meta);
            }
        }
    }
    newest.map(RawState::of)
}

impl PageRead for RawFile {
    fn page_size(&self) -> usize {
        self.page_size
    }

    fn page(&self, ptr: &Ptr) -> Result<PageRef<'_>> {
        if ptr.len as usize != self.page_size || !ptr.addr.is_multiple_of(self.page_size as u64) {
            let found = format!("{} bytes at {}", ptr.len, ptr.addr);
            return Err(Corrupt::new("pointer", ptr.addr, found, "a whole page").into());
        }
        self.block(ptr)
    }

    fn block(&self, ptr: &Ptr) -> Result<PageRef<'_>> {
        let bytes = self.read(ptr.addr, ptr.len as usize)?;
        verify_block(&bytes, ptr)?;
        Ok(bytes)
    }

    fn bytes(&self, addr: u64, len: usize) -> Result<PageRef<'_>> {
        self.read(addr, len)
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}
