//! Opens a database: finds the newest durable commit, repairs blocks of the head that a crash or a single fault has
//! damaged, and writes a meta record for the commits in the redo log.

use super::data_file;
use super::flusher;
use super::recover;
use crate::commit::found::Found;
use crate::commit::found::Recovery;
use crate::commit::heal::{check_length, heal_metas, heal_superblocks};
use crate::commit::lost_commits;
use crate::commit::redo;
use crate::commit::redo::Replayed;
use crate::commit::second_file;
use crate::commit::second_file::LargePlace;
use crate::error::{Error, Result};
use crate::format::layout::{HEAD_BYTES, first_page, meta_at, page_size_ok, superblock_at};
use crate::format::meta::{FIRST_TXN, Meta};
use crate::format::meta_blocks::MetaBlocks;
use crate::format::superblock;
use crate::format::superblock::{Superblock, read_failed};
use crate::options::event::Event;
use crate::options::{OpenMode, Options};
use crate::txn::inner::Inner;
use crate::txn::inner::Pager;
use std::path::Path;
use std::sync::Arc;
use tidalite_base::limits::PAGE_SIZE_MAX;
use tidalite_base::{Corrupt, TxnId};
use tidalite_disk::lock::Attachment;
use tidalite_disk::lock::{Identity, LockMemory, protocol};
use tidalite_disk::storage::{self, FileId, FileStorage, Growth, Named, Storage};
use tidalite_disk::system::boot_id;
use tidalite_disk::system::new_uuid;

/// Returns the initial contents of a new file, which is only its head.
fn initial_image(page_size: usize, time_ns: i64) -> Result<Vec<u8>> {
    if !page_size_ok(page_size) {
        return Err(Error::Limit {
            what: "page size: a power of two from 512 bytes",
            found: page_size as u64,
            limit: PAGE_SIZE_MAX as u64,
        });
    }
    let uuid = new_uuid()?;
    let pages = first_page(page_size);
    let mut image = vec![0u8; pages as usize * page_size];
    let mut put = |at: u64, block: Vec<u8>| {
        image[at as usize..at as usize + block.len()].copy_from_slice(&block);
    };
    let superblock = Superblock::new(page_size, uuid);
    let meta = Meta::first(uuid, pages, time_ns);
    for copy in [0, 1] {
        put(superblock_at(copy), superblock.encode(copy));
        for pair in [0, 1] {
            put(meta_at(pair, copy), meta.encode(meta_at(pair, copy)));
        }
    }
    Ok(image)
}

impl Pager {
    /// Opens or creates the file at `path`, as the options say.
    ///
    /// # Errors
    /// `Open` (with the system's reason), `OpenElsewhere`, `FileReplaced`, `NetworkFileSystem`, `NotADatabase`,
    /// `Unsupported`, `Corrupt`, `Io`.
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Self> {
        let path = path.as_ref();
        let opened = data_file::open(path, options, &|| {
            initial_image(options.page_size, options.clock.wall_ns())
        })?;
        let storage = FileStorage::new(opened.file, options.map)
            .map_err(|source| Error::of_open(path, source))?;
        let mut storage = storage.read_ahead(options.read_ahead);
        if options.map && options.map_writes && !options.read_only {
            storage = storage.write_map();
        }
        let named = storage.named(storage::real_path(path));
        let place = Place {
            named: Some(named.map_err(|error| read_failed(0, error))?),
            storage: Arc::new(storage),
            large: LargePlace::NextTo(path),
            path,
            boot: boot_id(),
        };
        match opened.attachment {
            Some(attachment) => Self::open_attached(place, options, attachment),
            // If the lock file cannot be opened, the handle uses a lock area in its own memory. A lock on the data
            // file excludes writers.
            None => {
                let attachment = LockMemory::new().attachment();
                attachment.begin()?;
                Self::open_attached(place, options, attachment)
            }
        }
    }

    /// Opens the database in a storage; creates a database in an empty storage if the open mode permits this. Takes
    /// no locks: the caller must be the only user of the storage.
    ///
    /// # Errors
    /// As for `open`.
    pub fn open_storage(storage: Arc<dyn Storage>, options: &Options) -> Result<Self> {
        Self::open_storage_with(storage, &LockMemory::new(), options)
    }

    /// Opens the database in a storage together with other handles that use the same lock area, as several processes
    /// open a file.
    ///
    /// # Errors
    /// As for `open`.
    pub fn open_storage_with(
        storage: Arc<dyn Storage>,
        memory: &LockMemory,
        options: &Options,
    ) -> Result<Self> {
        Self::open_storages(storage, None, memory, options)
    }

    /// Like `open_storage_with`, with a second storage for large values, as [`Options::large_values_path`] does for
    /// files. The second storage must be empty, or the one that this database has used before.
    ///
    /// # Errors
    /// As for `open`; `LargeFile`.
    pub fn open_storages(
        storage: Arc<dyn Storage>,
        large: Option<Arc<dyn Storage>>,
        memory: &LockMemory,
        options: &Options,
    ) -> Result<Self> {
        let attachment = memory.attachment();
        attachment.begin()?;
        let len = storage.len().map_err(|e| superblock::read_failed(0, e))?;
        if len == 0 && options.mode != OpenMode::Open && !options.read_only {
            create_in(&*storage, options)?;
        }
        let place = Place {
            storage,
            large: large.map_or(LargePlace::Nowhere, LargePlace::Storage),
            path: Path::new("(memory)"),
            named: None,
            boot: MEMORY_BOOT,
        };
        Self::open_attached(place, options, attachment)
    }

    /// Opens the files. The caller must have the setup lock.
    fn open_attached(place: Place<'_>, options: &Options, attachment: Attachment) -> Result<Self> {
        let mut storage = place.storage;
        let (superblock, damaged) = superblock::load(&*storage)?;
        if !options.read_only {
            superblock.check_writable()?;
        }
        let identity = Identity {
            boot: place.boot,
            uuid: superblock.uuid,
            file: place.named.as_ref().map_or(FileId::default(), |it| it.id),
        };
        let (exclusive, read_only) = (options.exclusive, options.read_only);
        let (lock, first) = attachment.attach(&identity, exclusive, read_only, place.path)?;
        let mut recovery = Recovery::default();
        let (mut healed, mut dropped) = (Vec::new(), None);
        let found = if first {
            let mut blocks = MetaBlocks::load(&*storage, &superblock.uuid);
            storage = storage::watched(storage, place.path, first);
            let mut found = Found::newest(&blocks)?;
            if options.older_record {
                found = older(&mut blocks, &found.meta, options)?;
            }
            check_length(&*storage, &superblock, &found.meta)?;
            if !options.read_only {
                let done = heal_superblocks(&*storage, &superblock, &damaged).and_then(|at| {
                    healed.extend(at);
                    heal_metas(&*storage, &mut blocks, &found.meta)
                });
                // A failed sync may also have lost unsynced writes of a killed process, so the unsynced meta records
                // of that process must not be used. Poisoning the lock area makes them invalid.
                healed.extend(done.inspect_err(|_| lock.poison())?);
                found = Found::newest(&blocks)?;
            }
            if !options.older_record {
                (found, dropped) = recover::recovered(
                    found,
                    &*storage,
                    &superblock,
                    &lock,
                    &place.large,
                    options,
                    &mut recovery,
                )?;
            }
            protocol::publish(lock.area.published(), found.meta.txn);
            found
        } else {
            storage = storage::watched(storage, place.path, first);
            // A writer may be active. Only a handle that has the writer lock may repair the head, so the head is not
            // repaired here.
            let found = Found::published(&*storage, &superblock, &lock, None)?;
            let found = found.ok_or_else(|| Corrupt::new("meta records", 0, "none", "one"))?;
            recovery.lost =
                recover::find_with_others(&*storage, &superblock, &lock, &found, options);
            lost_commits::refuse(recovery.lost, options)?;
            found
        };
        let large = second_file::open(&*storage, &superblock, &found.meta, &place.large, options)?;
        if let Some(large) = large.as_ref().filter(|_| first && !options.read_only) {
            let done = large.heal(superblock.page_size, &superblock.uuid);
            healed.extend(done.inspect_err(|_| lock.poison())?);
        }
        let mut found = found;
        if let Some(replayed) = found.replayed.take() {
            (storage, found) = over(storage, found, &superblock, replayed, read_only)
                .inspect_err(|_| lock.poison())?;
        }
        if let Some(named) = place.named.as_ref().filter(|_| !read_only) {
            storage::finish_creation(place.path, named, found.durable.txn == FIRST_TXN)?;
        }
        lock.opened()?;
        let unsynced = found.unsynced_meta.filter(|_| first);
        let unrecorded = unsynced.map(|unsynced| (TxnId(unsynced.txn), TxnId(found.durable.txn)));
        let mut inner = Inner::new(storage, superblock, options.clone(), found, lock);
        inner.recovery = recovery;
        inner.shared.files.large = large;
        if let LargePlace::NextTo(path) = place.large {
            inner.shared.files.path = Some(storage::real_path(path));
        }
        inner.shared.files.named = place.named;
        let inner = Arc::new(inner);
        for at in healed {
            inner.files.log(&Event::Healed { at });
        }
        if recovery.replayed > 0 {
            let (commits, txn) = (recovery.replayed, inner.state().txn);
            inner.files.log(&Event::Replayed { commits, txn });
        }
        if let Some(lost) = recovery.lost {
            inner.files.log(&Event::WentBack(lost));
        }
        if let Some(dropped) = dropped {
            inner.files.log(&dropped);
        }
        if let Some((txn, recorded)) = unrecorded {
            inner.files.log(&Event::FoundUnrecorded { txn, recorded });
        }
        let state = inner.state();
        inner.files.log(&Event::Opened {
            txn: state.txn,
            bytes: state.bytes,
            read_only: options.read_only,
        });
        if let Some(pause) = options.background_flush.filter(|_| !options.read_only) {
            inner.set_flusher(flusher::start(&inner, pause));
        }
        Ok(Self { inner })
    }
}

/// Applies the redo log at opening. The rebuilt pages are written to the file with a durable meta record for the
/// newest commit of the redo log; for a read-only handle, the rebuilt pages are laid over the file instead. No writer
/// has the file open, since a writer would have applied the redo log already.
fn over(
    storage: Arc<dyn Storage>,
    found: Found,
    superblock: &Superblock,
    replayed: Arc<Replayed>,
    read_only: bool,
) -> Result<(Arc<dyn Storage>, Found)> {
    let page_size = superblock.page_size;
    if read_only {
        let pages = Arc::unwrap_or_clone(replayed).pages;
        let over = redo::Overlay::new(storage, page_size, pages);
        check_length(&over, superblock, &found.meta)?;
        return Ok((Arc::new(over), found));
    }
    redo::write_replayed(&*storage, page_size, &found.durable, &replayed)?;
    let found = Found::newest(&MetaBlocks::load(&*storage, &superblock.uuid))?;
    Ok((storage, found))
}

/// The storages and paths of the database that is being opened.
struct Place<'a> {
    storage: Arc<dyn Storage>,
    large: LargePlace<'a>,
    path: &'a Path,
    named: Option<Named>,
    boot: [u8; 16],
}

/// Boot id of storages in memory, which do not live longer than their lock area.
const MEMORY_BOOT: [u8; 16] = [0xff; 16];

fn create_in(storage: &dyn Storage, options: &Options) -> Result<()> {
    let image = initial_image(options.page_size, options.clock.wall_ns())?;
    let len = image.len() as u64;
    let write = |error| Error::of_write("creation", 0, len, error);
    storage.grow(len, Growth::Zeros).map_err(write)?;
    // The head with the superblocks is written last: until then an interrupted creation does not count as a database.
    let head = HEAD_BYTES as usize;
    storage
        .write_at(HEAD_BYTES, &image[head..])
        .map_err(write)?;
    storage.write_at(0, &image[..head]).map_err(write)?;
    storage.sync_all().map_err(write)
}

/// Returns the older durable meta record, for `Options::older_record`.
fn older(blocks: &mut MetaBlocks, newest: &Meta, options: &Options) -> Result<Found> {
    let expected = "an older durable record; and with older_record, exclusive and read_only";
    let none = |found: &str| Error::from(Corrupt::new("meta records", 0, found, expected));
    if !options.read_only || !options.exclusive {
        return Err(none("an opening that others could join"));
    }
    let newest_pair = newest.pair();
    for copy in &mut blocks.copies[newest_pair] {
        *copy = Err(none("the newest record, which is not wanted"));
    }
    let found = Found::newest(blocks)?;
    if found.meta.txn == newest.txn {
        return Err(none("the newest record in both pairs"));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::meta::COUNT_MAX;
    use crate::format::meta::Redo;
    use crate::{Durability, PageWrite, Verifier};
    use tidalite_disk::storage::MemoryStorage;

    fn image(change: impl Fn(&mut Meta)) -> Vec<u8> {
        let mut image = initial_image(4096, 0).expect("a size of pages");
        let (uuid, meta) = {
            let storage = MemoryStorage::from_image(image.clone());
            let (superblock, _) = superblock::load(&storage).expect("a superblock");
            let blocks = MetaBlocks::load(&storage, &superblock.uuid);
            (superblock.uuid, blocks.newest().expect("a record").0)
        };
        assert_eq!(meta.uuid, uuid);
        let mut meta = meta;
        change(&mut meta);
        for at in [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(pair, copy)| meta_at(pair, copy)) {
            image[at as usize..at as usize + 4096].copy_from_slice(&meta.encode(at));
        }
        image
    }

    fn open(image: Vec<u8>) -> Pager {
        let storage = Arc::new(MemoryStorage::from_image(image));
        Pager::open_storage(storage, &Options::default()).expect("its head is sound")
    }

    /// A meta record whose redo log overlaps the head of the file must be rejected: otherwise writes to the log would
    /// overwrite the meta records.
    #[test]
    fn a_log_in_the_head_of_the_file_is_damage() {
        let pager = open(image(|meta| {
            meta.redo = Some(Redo {
                page: 1,
                pages: 4,
                birth: 1,
            });
        }));
        let refused = pager.begin_write().err();
        assert!(matches!(refused, Some(Error::Corrupt(_))), "{refused:?}");
    }

    /// A meta record with a number beyond the limit could not be read again, so the commit must fail.
    #[test]
    fn nothing_is_committed_beyond_the_last_number() {
        for sequence in [false, true] {
            let pager = open(image(|meta| match sequence {
                true => meta.sequence = COUNT_MAX - 1,
                false => meta.txn = COUNT_MAX - 1,
            }));
            for _ in 0..2 {
                let refused = pager.begin_write().err();
                assert!(matches!(refused, Some(Error::Limit { .. })), "{refused:?}");
            }
        }
    }

    /// A database in memory with its lock area, which tests open with different boot ids.
    struct Machine {
        storage: Arc<MemoryStorage>,
        memory: LockMemory,
    }

    impl Machine {
        fn new() -> Self {
            let storage = Arc::new(MemoryStorage::from_image(image(|_| ())));
            let memory = LockMemory::new();
            Self { storage, memory }
        }

        fn open(&self, start: u8) -> Pager {
            let attachment = self.memory.attachment();
            attachment.begin().expect("nobody else is opening it");
            let place = Place {
                storage: Arc::clone(&self.storage) as Arc<dyn Storage>,
                large: LargePlace::Nowhere,
                path: Path::new("(memory)"),
                named: None,
                boot: [start; 16],
            };
            let options = Options {
                // The data of these commits are in the meta record, so no pages need verification.
                verifier: Some(Verifier::new(|_| Ok(()))),
                ..Options::default()
            };
            Pager::open_attached(place, &options, attachment).expect("open")
        }
    }

    fn commit(pager: &Pager, app: &[u8], durability: Durability) {
        let mut txn = pager.begin_write().expect("the writer lock");
        let page = txn.new_page(crate::Kind::KvLeaf, 1).expect("a page");
        txn.seal_page(&page).expect("sealed");
        txn.commit(app, durability).expect("committed");
    }

    fn newest(pager: &Pager) -> Vec<u8> {
        pager.begin_read().expect("its record").app().to_vec()
    }

    /// The lock area keeps lazy commits until the system reboots. After a reboot it is unknown whether their pages
    /// reached the medium, so the database must be at its last durable commit.
    #[test]
    #[cfg_attr(miri, ignore = "several handles, each with a lock area of its own")]
    fn a_lazy_commit_counts_until_the_system_starts_anew() {
        for (start, expected) in [(1, &b"lazy"[..]), (2, b"durable"), (0, b"durable")] {
            let machine = Machine::new();
            let pager = machine.open(1);
            commit(&pager, b"durable", Durability::Durable);
            commit(&pager, b"lazy", Durability::Lazy);
            drop(pager);
            let pager = machine.open(start);
            assert_eq!(newest(&pager), expected, "start {start}");
            // Later lazy commits are visible to other handles of the same boot.
            commit(&pager, b"after", Durability::Lazy);
            assert_eq!(newest(&machine.open(start)), b"after");
        }
    }

    /// If the system reports no boot id, lazy commits must still be visible to all processes, but they are lost when
    /// the last of these processes ends.
    #[test]
    #[cfg_attr(miri, ignore = "three handles, each with a lock area of its own")]
    fn lazy_commits_are_seen_by_others_where_the_start_of_the_system_is_unknown() {
        let machine = Machine::new();
        let (a, b) = (machine.open(0), machine.open(0));
        commit(&a, b"durable", Durability::Durable);
        commit(&a, b"lazy", Durability::Lazy);
        assert_eq!(newest(&b), b"lazy");
        commit(&b, b"on top", Durability::Lazy);
        assert_eq!(newest(&a), b"on top");
        drop((a, b));
        // Without a boot id, the system may have been rebooted, so the lazy commit must not be used.
        assert_eq!(newest(&machine.open(0)), b"durable");
    }
}
