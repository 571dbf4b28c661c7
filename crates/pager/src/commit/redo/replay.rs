//! Reads the redo log when a file is opened, and writes a durable meta record for its newest commit.
//!
//! Invariants
//! 1. Nothing is written before the whole redo log is decoded. `write_replayed` then writes pages that the durable
//!    meta record does not use, syncs, writes the meta record of the newest commit over the other pair of meta
//!    blocks, and syncs again. After a crash before the second sync, opening finds the same redo log again.
//! 2. A page rebuilt from a damaged base does not match its checksum, so its readers get an error.

use super::area::{Area, BYTES_MAX, REPLAY_BYTES_MAX};
use super::block::{LogBase, Place, flush, newest, newest_behind, newest_of_later};
use super::delta;
use super::record::{Changed, damaged, decode};
use crate::error::{Error, Result};
use crate::format::layout::{BLOCK_BYTES, first_page, meta_at};
use crate::format::meta::checksum_of;
use crate::format::meta::{LazyBase, Meta};
use crate::format::superblock::read_failed;
use std::collections::BTreeMap;
use tidalite_base::TxnId;
use tidalite_disk::storage::{Growth, Storage};

/// The database after the newest commit in the redo log.
#[derive(Clone, Debug)]
pub(crate) struct Replayed {
    /// Meta record of the newest commit in the redo log.
    pub(crate) meta: Meta,
    /// Final contents of the pages that commits in the redo log have changed, by page number.
    pub(crate) pages: BTreeMap<u64, Vec<u8>>,
    pub(crate) commits: u64,
}

/// Result of reading a redo log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Logged {
    pub(crate) replayed: Option<Replayed>,
    /// If a flush is missing in the redo log, the newest commit of the flushes after it: these commits are lost.
    pub(crate) lost: Option<TxnId>,
    /// The newest commit in blocks that belong to a later meta record, which is lost.
    pub(crate) newer: Option<TxnId>,
}

/// Reads the redo log that builds on a durable meta record. Returns its commits if any of them is newer than `known`.
///
/// # Errors
/// `Io`; `Corrupt` if blocks with valid checksums have contents that no writer would write.
pub(crate) fn read(
    storage: &dyn Storage,
    page_size: usize,
    durable: &Meta,
    known: u64,
) -> Result<Logged> {
    let Some(area) = Area::of(durable, page_size) else {
        return Ok(Logged::default());
    };
    let len = usize::try_from(area.bytes.min(BYTES_MAX)).unwrap_or(0);
    let mut copy = Vec::new();
    let log = match storage.mapped(area.at, len) {
        Some(log) => log,
        None => {
            copy.resize(len, 0);
            storage
                .read_at(area.at, &mut copy)
                .map_err(|error| read_failed(area.at, error))?;
            &copy
        }
    };
    let log_base = LogBase {
        sequence: durable.sequence,
        checksum: checksum_of(durable),
    };
    let newer = newest_of_later(log, &area, log_base);
    if newest(log, &area, log_base).is_none_or(|newest| newest.0 <= known) {
        return Ok(Logged {
            newer,
            ..Logged::default()
        });
    }
    let mut found = Replayed {
        meta: durable.clone(),
        pages: BTreeMap::new(),
        commits: 0,
    };
    // A log entry for a file of more pages than this is damaged. Growth is synced before commits that need it are
    // logged, so the file is long enough for them; the allowance is for growth that a power failure may have undone.
    let len = storage.len().map_err(|error| read_failed(0, error))?;
    let pages_max = (len + REPLAY_BYTES_MAX) / page_size as u64;
    let mut place = Place::default();
    while let Some(next) = flush(log, &area, place, log_base) {
        place = next.next;
        let mut records = &*next.payload;
        while !records.is_empty() {
            let record = decode(&mut records, &found.meta)?;
            if record.meta.pages > pages_max {
                let found = format!("a file of {} pages", record.meta.pages);
                return Err(damaged(&found, &format!("{pages_max} at most")));
            }
            for changed in &record.pages {
                let page = found.page(storage, page_size, &record.meta, changed)?;
                found.pages.insert(changed.page, page);
                let bytes = found.pages.len() as u64 * page_size as u64;
                if bytes > REPLAY_BYTES_MAX {
                    let expected = format!("{REPLAY_BYTES_MAX} at most");
                    return Err(damaged(&format!("{bytes} bytes of pages"), &expected));
                }
            }
            found.meta = record.meta;
            found.commits += 1;
        }
    }
    Ok(Logged {
        replayed: (found.meta.txn > known).then_some(found),
        lost: newest_behind(log, &area, place, log_base),
        newer,
    })
}

impl Replayed {
    /// Rebuilds a page of the next commit, whose meta record is `meta`, from the page on which its log entry is
    /// based.
    fn page(
        &self,
        storage: &dyn Storage,
        page_size: usize,
        meta: &Meta,
        changed: &Changed<'_>,
    ) -> Result<Vec<u8>> {
        let inside = |page, meta: &Meta| (first_page(page_size)..meta.pages).contains(&page);
        if !inside(changed.page, meta) || changed.base != 0 && !inside(changed.base, &self.meta) {
            let found = format!("page {} from page {}", changed.page, changed.base);
            return Err(damaged(&found, "pages of the file"));
        }
        let mut read = vec![0; page_size];
        let base = match (changed.base, self.pages.get(&changed.base)) {
            (0, _) => &read,
            (_, Some(page)) => page,
            (base, None) => {
                let at = base * page_size as u64;
                storage
                    .read_at(at, &mut read)
                    .map_err(|error| read_failed(at, error))?;
                &read
            }
        };
        delta::decode(changed.steps, base)
            .ok_or_else(|| damaged("steps that make no page", "a page"))
    }
}

/// Writes the rebuilt pages to the file, then writes a durable meta record for the newest commit in the redo log, and
/// returns this record.
///
/// # Errors
/// `DiskFull`, `Io`.
pub(crate) fn write_replayed(
    storage: &dyn Storage,
    page_size: usize,
    durable: &Meta,
    replayed: &Replayed,
) -> Result<Meta> {
    assert!(
        replayed.meta.txn > durable.txn,
        "a log leads to a newer commit than its record"
    );
    let bytes = replayed.meta.pages * page_size as u64;
    let len = storage.len().map_err(|error| read_failed(0, error))?;
    let failed = |at, len| move |error| Error::of_write("what the log holds", at, len, error);
    if len < bytes {
        let grown = storage.grow(bytes, Growth::Zeros);
        grown.map_err(failed(len, bytes - len))?;
    }
    for (page, bytes) in &replayed.pages {
        assert_eq!(bytes.len(), page_size, "a log rebuilds whole pages");
        assert!(
            *page >= first_page(page_size),
            "a log rebuilds no meta record"
        );
        // A later commit in the redo log has truncated the file before this page.
        if *page >= replayed.meta.pages {
            continue;
        }
        let at = page * page_size as u64;
        let written = storage.write_at(at, bytes);
        written.map_err(failed(at, bytes.len() as u64))?;
    }
    storage.sync_all().map_err(failed(0, bytes))?;
    let record = Meta {
        sequence: durable.sequence + 1,
        lazy_base: LazyBase::default(),
        confirmations: 0,
        ..replayed.meta.clone()
    };
    assert_ne!(
        record.pair(),
        durable.pair(),
        "a meta record overwrites the durable one"
    );
    for copy in [0, 1] {
        let at = meta_at(record.pair(), copy);
        let written = storage.write_at(at, &record.encode(at));
        written.map_err(failed(at, BLOCK_BYTES as u64))?;
    }
    storage.sync().map_err(failed(0, BLOCK_BYTES as u64))?;
    if let Some(observer) = storage.observer() {
        observer.durable(record.txn);
    }
    Ok(record)
}

#[cfg(test)]
mod tests {
    use crate::commit::redo::area::Area;
    use crate::commit::redo::block::{LogBase, Place, encode};
    use crate::commit::redo::record::{PageOf, Recorder};
    use crate::commit::redo::replay::{read, *};
    use crate::format::meta::Redo;
    use std::sync::Arc;
    use tidalite_disk::storage::MemoryStorage;

    /// A commit in the redo log truncates the file after an earlier commit has written a page beyond the new end.
    /// Replaying the redo log must not write that page.
    #[test]
    fn pages_past_the_replayed_end_are_left_out() {
        const PAGE: usize = 4096;
        let durable = Meta::first([7; 16], 64, 0);
        let mut meta = durable.clone();
        (meta.txn, meta.pages) = (2, 64);
        let pages = [(63, vec![1; PAGE]), (64, vec![2; PAGE])].into();
        let replayed = Replayed {
            meta,
            pages,
            commits: 1,
        };
        let storage = MemoryStorage::from_image(vec![0; 64 * PAGE]);
        write_replayed(&storage, PAGE, &durable, &replayed).expect("a whole disk");
        assert_eq!(storage.len().expect("a length"), 64 * PAGE as u64);
        let mut page = vec![0; PAGE];
        storage
            .read_at(63 * PAGE as u64, &mut page)
            .expect("page 63");
        assert_eq!(page, vec![1; PAGE]);
    }

    /// Replay must stop at the maximum number of pages that a redo log may rebuild, however many pages one entry
    /// lists.
    #[test]
    #[cfg_attr(miri, ignore = "64 MiB of pages, byte for byte")]
    fn a_record_of_too_many_pages_ends_where_it_is_too_much() {
        const PAGE: usize = 256 << 10;
        let mut durable = Meta::first([7; 16], 64, 0);
        durable.redo = Some(Redo {
            page: 1,
            pages: 1,
            birth: 1,
        });
        let mut meta = durable.clone();
        (meta.txn, meta.pages) = (2, 310);
        let zeros = vec![0; PAGE];
        let pages = (2..302).map(|page| PageOf {
            page,
            base: None,
            bytes: &zeros,
        });
        let pages: Vec<PageOf<'_>> = pages.collect();
        let records = (&Arc::new(meta), &Arc::new(durable.clone()));
        let payload = Recorder::default().encode(records, pages.into_iter(), 1 << 20);
        let area = Area::of(&durable, PAGE).expect("a log");
        let log_base = LogBase {
            sequence: durable.sequence,
            checksum: checksum_of(&durable),
        };
        let place = (&area, Place::default(), log_base);
        let blocks = encode(&payload.expect("short"), place, (TxnId(2), 1));
        let mut image = vec![0; 64 * PAGE];
        image[PAGE..PAGE + blocks.len()].copy_from_slice(&blocks);
        let storage = MemoryStorage::from_image(image);
        let found = read(&storage, PAGE, &durable, 1).err();
        let found = found.map(|error| error.to_string()).unwrap_or_default();
        let first = format!("{} bytes", REPLAY_BYTES_MAX + PAGE as u64);
        assert!(found.contains(&first), "{found}");
    }
}
