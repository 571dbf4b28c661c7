//! The second file, which stores large values, possibly on another disk. It contains only extents; all pointers to
//! them, the free space and the meta record are in the first file, so one meta record commits both files.
//!
//! ```text
//! 0        32            48            52          56  60     76                        92  4096      at 0 and, again, at 12288
//! | header | magic 16 B  | version u32 | page size | 0 | uuid | uuid of the first file  | 0 |
//! ```
//!
//! Byte b of the second file has address `LARGE_AT` + b in the pointers of the first file.
//!
//! Invariants
//! 1. `unsynced` is set after every write that still needs a sync, and when another process may have written. Before
//!    a meta record becomes durable, the data and the length of this file are synced.
//! 2. Each of the two files stores the uuid of the other; neither works with any other file.

use crate::PageRef;
use crate::error::{Error, Result};
use crate::format::header::HEADER_BYTES;
use crate::format::header::verify_block;
use crate::format::kind::Kind;
use crate::format::layout::{BLOCK_BYTES, LARGE_AT, first_page, superblock_at};
use crate::format::meta::Meta;
use crate::format::ptr::Ptr;
use crate::format::superblock::{Superblock, read_block, read_failed, seal_copy, verify_own};
use crate::options::Options;
use crate::seeded::{Bug, active};
use crate::space::large::{LargeId, NAME_BYTES_MAX, read_id};
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tidalite_base::{Corrupt, get_u32, put_u32};
use tidalite_disk::Error as DiskError;
use tidalite_disk::storage::{FileStorage, Growth, Storage, create_file, sync_directory};
use tidalite_disk::system::new_uuid;

const MAGIC: [u8; 16] = *b"Tidalite values\n";
const VERSION: u32 = 1;
const MAGIC_AT: usize = HEADER_BYTES;
const VERSION_AT: usize = MAGIC_AT + MAGIC.len();
const PAGE_SIZE_AT: usize = VERSION_AT + 4;
const UUID_AT: usize = PAGE_SIZE_AT + 8;
const OWNER_AT: usize = UUID_AT + 16;

/// The open second file, which stores large values.
pub(crate) struct LargeFile {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) id: LargeId,
    pub(crate) path: PathBuf,
    unsynced: AtomicBool,
}

/// Location of the second file: a storage that the user supplies if the first file is such a storage, or a path.
pub(crate) enum LargePlace<'a> {
    Storage(Arc<dyn Storage>),
    /// The second file has a path. A name without a folder is relative to the folder of this (first) file.
    NextTo(&'a Path),
    Nowhere,
}

fn block_of(page_size: usize, uuid: &[u8; 16], owner: &[u8; 16], copy: usize) -> Vec<u8> {
    let mut block = vec![0u8; BLOCK_BYTES];
    block[MAGIC_AT..VERSION_AT].copy_from_slice(&MAGIC);
    put_u32(&mut block, VERSION_AT, VERSION);
    put_u32(&mut block, PAGE_SIZE_AT, page_size as u32);
    block[UUID_AT..OWNER_AT].copy_from_slice(uuid);
    block[OWNER_AT..OWNER_AT + 16].copy_from_slice(owner);
    seal_copy(&mut block, copy);
    block
}

/// The UUIDs of a second file and of the first file to which it belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    uuid: [u8; 16],
    owner: [u8; 16],
}

/// Reads and verifies copy 0 or 1 of the head of a second file.
fn read_head(storage: &dyn Storage, page_size: usize, copy: usize) -> Result<Identity> {
    let at = superblock_at(copy);
    let block = read_block(storage, at)?;
    verify_own(&block, Kind::Superblock, at)?;
    let wrong = |found: String, expected: String| {
        Corrupt::new("head of the second file", LARGE_AT + at, found, expected)
    };
    if block[MAGIC_AT..VERSION_AT] != MAGIC || get_u32(&block, VERSION_AT) != VERSION {
        return Err(wrong("another file".into(), "a file of large values".into()).into());
    }
    let found = get_u32(&block, PAGE_SIZE_AT) as usize;
    if found != page_size {
        return Err(wrong(format!("pages of {found}"), page_size.to_string()).into());
    }
    let (mut uuid, mut owner) = ([0; 16], [0; 16]);
    uuid.copy_from_slice(&block[UUID_AT..OWNER_AT]);
    owner.copy_from_slice(&block[OWNER_AT..OWNER_AT + 16]);
    Ok(Identity { uuid, owner })
}

/// Returns the UUIDs in the head of a second file, from either intact copy.
fn identity(storage: &dyn Storage, page_size: usize) -> Result<Identity> {
    let first = read_head(storage, page_size, 0);
    first.or_else(|error| read_head(storage, page_size, 1).map_err(|_| error))
}

/// Opens the second file that the newest meta record (`meta`) names. Returns `None` if the database has no second
/// file and the options do not ask for one.
pub(crate) fn open(
    first: &dyn Storage,
    superblock: &Superblock,
    meta: &Meta,
    place: &LargePlace<'_>,
    options: &Options,
) -> Result<Option<LargeFile>> {
    let page_size = superblock.page_size;
    let read = |ptr: &Ptr| read_page(first, page_size, ptr);
    // If the page with the name of the second file is damaged, the data in the first file are still readable.
    let found = read_id(&meta.large, &read);
    let lost = found.is_err();
    let known = found.unwrap_or(None);
    let asked = options.large_values_path.as_deref();
    let path = match (asked, &known, place) {
        (Some(asked), ..) => asked.to_owned(),
        (None, Some(known), LargePlace::NextTo(beside)) if !known.name.is_empty() => {
            let folder = beside.parent().unwrap_or(Path::new(""));
            folder.join(&known.name)
        }
        (None, Some(known), _) => PathBuf::from(&known.name),
        (None, None, _) => PathBuf::new(),
    };
    let failed = |problem: String| Error::LargeFile {
        path: path.clone(),
        problem,
    };
    let is_new = known.is_none() && !lost;
    let storage: Arc<dyn Storage> = match place {
        LargePlace::Nowhere if is_new || lost => return Ok(None),
        LargePlace::NextTo(_) if lost && asked.is_none() => return Ok(None),
        LargePlace::Nowhere => return Err(failed("it is not here".into())),
        LargePlace::Storage(storage) => Arc::clone(storage),
        LargePlace::NextTo(_) if is_new && (asked.is_none() || options.read_only) => {
            return Ok(None);
        }
        LargePlace::NextTo(_) => {
            let storage = open_file(&path, is_new, superblock, options);
            Arc::new(storage.map_err(|source| failed(source.to_string()))?)
        }
    };
    if is_new && storage.is_empty().map_err(|error| read_failed(0, error))? {
        if options.read_only {
            return Ok(None);
        }
        create_in(&*storage, superblock)?;
    }
    let Identity { uuid, owner } =
        identity(&*storage, page_size).map_err(|error| failed(error.to_string()))?;
    if owner != superblock.uuid {
        return Err(failed("it belongs to another database".into()));
    }
    if known.as_ref().is_some_and(|known| known.uuid != uuid) {
        return Err(failed("it is not the file that the database names".into()));
    }
    let name = match (asked, known) {
        (Some(_), _) => short_name(&path, place),
        (None, known) => known.map(|known| known.name).unwrap_or_default(),
    };
    Ok(Some(LargeFile {
        storage,
        id: LargeId { uuid, name },
        path,
        unsynced: AtomicBool::new(true),
    }))
}

/// Returns the name of the second file that the first file stores: without the folder if both files are in the same
/// folder.
fn short_name(path: &Path, place: &LargePlace<'_>) -> String {
    let LargePlace::NextTo(beside) = place else {
        return String::new();
    };
    let here = |path: &Path| {
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        std::fs::canonicalize(folder.unwrap_or(Path::new("."))).ok()
    };
    let named = match path.file_name() {
        Some(name) if here(path).is_some() && here(path) == here(beside) => PathBuf::from(name),
        Some(name) => here(path).map_or(path.to_owned(), |folder| folder.join(name)),
        None => path.to_owned(),
    };
    let name = named.to_str().unwrap_or_default();
    if name.len() <= NAME_BYTES_MAX {
        name.to_owned()
    } else {
        String::new()
    }
}

fn open_file(
    path: &Path,
    create: bool,
    superblock: &Superblock,
    options: &Options,
) -> io::Result<FileStorage> {
    if create && !path.exists() {
        let uuid = new_uuid().map_err(io::Error::other)?;
        let created = create_file(path, &image(superblock.page_size, &superblock.uuid, &uuid));
        created.map_err(|error| match error {
            DiskError::Open { source, .. } => io::Error::new(source.kind(), source),
            other => io::Error::other(other),
        })?;
    } else if create {
        // The process that created the second file may have been killed before it synced the folder.
        sync_directory(path)?;
    }
    let opened = OpenOptions::new()
        .read(true)
        .write(!options.read_only)
        .open(path)?;
    let storage = FileStorage::new(opened, options.map)?;
    Ok(storage.read_ahead(options.read_ahead))
}

/// Returns the initial contents of a second file, which is its head.
pub(crate) fn image(page_size: usize, owner: &[u8; 16], uuid: &[u8; 16]) -> Vec<u8> {
    let mut image = vec![0; first_page(page_size) as usize * page_size];
    for copy in [0, 1] {
        let at = superblock_at(copy) as usize;
        let block = block_of(page_size, uuid, owner, copy);
        image[at..at + BLOCK_BYTES].copy_from_slice(&block);
    }
    image
}

fn create_in(storage: &dyn Storage, superblock: &Superblock) -> Result<()> {
    let image = image(superblock.page_size, &superblock.uuid, &new_uuid()?);
    let len = image.len() as u64;
    let failed = |error| Error::of_write("creation", LARGE_AT, len, error);
    storage.grow(len, Growth::Zeros).map_err(failed)?;
    storage.write_at(0, &image).map_err(failed)?;
    storage.sync_all().map_err(failed)
}

/// Reads and verifies a page of the first file while that file is being opened.
fn read_page<'a>(storage: &dyn Storage, page_size: usize, ptr: &Ptr) -> Result<PageRef<'a>> {
    if ptr.len as usize != page_size || !ptr.addr.is_multiple_of(page_size as u64) {
        let found = format!("{} bytes at {}", ptr.len, ptr.addr);
        return Err(Corrupt::new("pointer", ptr.addr, found, "a whole page").into());
    }
    let mut bytes = vec![0; page_size];
    let read = storage.read_at(ptr.addr, &mut bytes);
    read.map_err(|error| read_failed(ptr.addr, error))?;
    verify_block(&bytes, ptr)?;
    Ok(PageRef::Owned(bytes.into()))
}

impl LargeFile {
    /// Opens a second file for salvage. Its head is ignored, since large values carry checksums of their own.
    pub(crate) fn raw(path: &Path) -> Result<Self> {
        let failed = |source| Error::of_open(path, source);
        let file = std::fs::File::open(path).map_err(failed)?;
        let storage = FileStorage::new(file, false).map_err(failed)?;
        Ok(Self {
            storage: Arc::new(storage),
            id: LargeId {
                uuid: [0; 16],
                name: String::new(),
            },
            path: path.to_owned(),
            unsynced: AtomicBool::new(false),
        })
    }

    /// Returns the damaged copies of the head, each with the error that reading it caused.
    pub(crate) fn damaged_heads(&self, page_size: usize) -> Vec<(usize, Error)> {
        let read = |copy| read_head(&*self.storage, page_size, copy).err();
        let damaged = [0, 1].into_iter();
        damaged
            .filter_map(|copy| read(copy).map(|error| (copy, error)))
            .collect()
    }

    /// Rewrites a damaged copy of the head and returns its address. The other copy is intact; otherwise the file
    /// could not have been opened.
    pub(crate) fn heal(&self, page_size: usize, owner: &[u8; 16]) -> Result<Option<u64>> {
        let damaged = self.damaged_heads(page_size);
        let [(copy, _)] = damaged[..] else {
            return Ok(None);
        };
        let at = superblock_at(copy);
        let block = block_of(page_size, &self.id.uuid, owner, copy);
        let len = block.len() as u64;
        let failed = |error| Error::of_write("healing", LARGE_AT + at, len, error);
        self.storage.write_at(at, &block).map_err(failed)?;
        self.storage.sync_all().map_err(failed)?;
        Ok(Some(LARGE_AT + at))
    }

    /// Reads bytes at an address of the second file, without verification. With `lend`, borrows them from the memory
    /// map if possible.
    pub(crate) fn bytes(&self, addr: u64, len: usize, lend: bool) -> Result<PageRef<'_>> {
        let at = addr - LARGE_AT;
        if lend && let Some(bytes) = self.storage.mapped(at, len) {
            return Ok(PageRef::Borrowed(bytes));
        }
        // The bytes may lie beyond the known end of the file, because another process has made the file longer.
        let end = at.saturating_add(len as u64);
        let here = |storage: &dyn Storage| storage.len().is_ok_and(|all| end <= all);
        if !here(&*self.storage) {
            let refreshed = self.storage.refresh();
            refreshed.map_err(|error| read_failed(addr, error))?;
        }
        if !here(&*self.storage) {
            let expected = "a range inside the second file";
            return Err(Corrupt::new("pointer", addr, format!("{len} bytes"), expected).into());
        }
        let mut bytes = vec![0u8; len];
        let read = self.storage.read_at(at, &mut bytes);
        read.map_err(|source| {
            Error::of_call(
                format!("read of {len} bytes of the second file"),
                addr,
                source,
            )
        })?;
        Ok(PageRef::Owned(bytes.into()))
    }

    pub(crate) fn write(&self, addr: u64, bytes: &[u8]) -> Result<()> {
        let written = self.storage.write_at(addr - LARGE_AT, bytes);
        self.unsynced.store(true, Ordering::SeqCst);
        let failed = |error| Error::of_write("write", addr, bytes.len() as u64, error);
        written.map_err(failed)
    }

    /// Makes the file at least `len` bytes long, and longer by another `step` bytes if the disk has room.
    pub(crate) fn grow(&self, len: u64, step: u64) -> io::Result<()> {
        self.unsynced.store(true, Ordering::SeqCst);
        let with_step = self.storage.grow(len + step, Growth::Reserve);
        with_step.or_else(|_| self.storage.grow(len, Growth::Reserve))
    }

    /// Records that another process may have written to the file, so that the next flush must sync it.
    pub(crate) fn touched_by_others(&self) -> Result<()> {
        self.unsynced.store(true, Ordering::SeqCst);
        let refreshed = self.storage.refresh();
        refreshed.map_err(|error| read_failed(LARGE_AT, error))
    }

    /// Syncs the file, if it was written since the last sync, before a meta record is written to the first file.
    pub(crate) fn sync(&self) -> io::Result<()> {
        if active(Bug::SkipLargeSync) || !self.unsynced.swap(false, Ordering::SeqCst) {
            return Ok(());
        }
        // A failure poisons the database, so no later attempt will need the flag `unsynced`.
        self.storage.sync_all()
    }
}
