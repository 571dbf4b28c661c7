//! Finds the newest meta record in the file and in the lock area.

use super::heal::check_length;
use super::lost_commits;
use super::redo;
use super::redo::{Logged, Replayed};
use crate::error::Result;
use crate::error::lost_commits::LostCommits;
use crate::format::layout::first_page;
use crate::format::meta::Meta;
use crate::format::meta::checksum_of;
use crate::format::meta_blocks::{Confirmation, MetaBlocks};
use crate::format::superblock::{Superblock, read_failed};
use crate::options::Options;
use crate::seeded::{Bug, active};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tidalite_base::{Corrupt, TxnId};
use tidalite_disk::lock::Lock;
use tidalite_disk::storage::Storage;

/// Maximum time for which a reader searches for the meta record of the newest published commit.
const PUBLISHED_WAIT: Duration = Duration::from_secs(2);

/// Transaction number of the newest unsynced meta record, and its slot in the lock area (0 or 1).
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnsyncedMeta {
    pub(crate) txn: u64,
    pub(crate) slot: usize,
}

/// Work that was done at opening to find the newest intact commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// Number of commits that were found in the redo log.
    pub replayed: u64,
    /// Durable commits that cannot be found any more. A handle for writing opens such a file only with
    /// [`Options::accept_lost_commits`](crate::Options::accept_lost_commits).
    pub lost: Option<LostCommits>,
    /// The newest commit with an unsynced meta record in the lock file, if it was dropped because some of its pages
    /// are not in the file. No durable commit is lost.
    pub dropped_unrecorded: Option<TxnId>,
    /// Number of bytes read to verify commits with unsynced meta records in the lock file.
    pub verified_bytes: u64,
}

/// The newest meta records in the file and in the lock area.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// Meta record of the newest commit: `durable`, an unsynced meta record that builds on it, or the result of
    /// replaying the redo log.
    pub(crate) meta: Meta,
    pub(crate) durable: Meta,
    /// The transaction of the durable meta record before `durable`.
    pub(crate) before: u64,
    /// How the durable meta record is rewritten to confirm it.
    pub(crate) confirmation: Confirmation,
    pub(crate) unsynced_meta: Option<UnsyncedMeta>,
    /// Set if `meta` is the newest commit in the redo log; its pages are not all in the file.
    pub(crate) replayed: Option<Arc<Replayed>>,
}

impl Found {
    /// Returns the newest meta record of the file.
    pub(crate) fn newest(blocks: &MetaBlocks) -> Result<Self> {
        let (meta, older) = blocks.newest()?;
        // If the older meta record is not readable, it is assumed to be as new as possible, so that all pending pages
        // count as needed by it.
        let before = older.map_or(meta.txn.saturating_sub(1), |older| older.txn);
        let confirmation = Confirmation::after(blocks.confirmations(&meta));
        Ok(Self {
            durable: meta.clone(),
            meta,
            before,
            confirmation,
            unsynced_meta: None,
            replayed: None,
        })
    }

    /// Adds the newest unsynced meta record that builds on the durable record, if any. Its pages are not verified here.
    /// Therefore a live handle must have had the file open since the record was written, or must have verified it: see
    /// `open/unsynced_state.rs`.
    pub(crate) fn with_unsynced(
        self,
        storage: &dyn Storage,
        page_size: usize,
        lock: &Lock,
    ) -> Result<Self> {
        let len = storage.len().map_err(|error| read_failed(0, error))?;
        let pages = first_page(page_size)..=len / page_size as u64;
        let mut records = self.unsynced_metas(lock);
        records.retain(|(_, record)| pages.contains(&record.pages));
        Ok(match records.pop() {
            Some(newest) => self.with(newest),
            None => self,
        })
    }

    /// Returns the unsynced meta records that build on the durable meta record and are newer than `meta`, in
    /// ascending order.
    pub(crate) fn unsynced_metas(&self, lock: &Lock) -> Vec<(UnsyncedMeta, Meta)> {
        let record = |slot| {
            let record = unsynced_meta(lock, slot, &self.durable)?;
            let txn = record.txn;
            (txn > self.meta.txn).then_some((UnsyncedMeta { txn, slot }, record))
        };
        let mut found: Vec<_> = [0, 1].into_iter().filter_map(record).collect();
        found.sort_by_key(|(unsynced_meta, _)| unsynced_meta.txn);
        found
    }

    pub(crate) fn with(self, (unsynced_meta, meta): (UnsyncedMeta, Meta)) -> Self {
        assert_eq!(unsynced_meta.txn, meta.txn, "the record of another commit");
        assert!(
            meta.txn > self.meta.txn,
            "an unsynced meta record is newer than the state below it"
        );
        Self {
            meta,
            unsynced_meta: Some(unsynced_meta),
            ..self
        }
    }

    /// Reads the redo log of the durable meta record, if it contains commits newer than `meta`.
    pub(crate) fn logged(&self, storage: &dyn Storage, page_size: usize) -> Result<Logged> {
        if active(Bug::LogIgnored) {
            return Ok(Logged::default());
        }
        redo::read(storage, page_size, &self.durable, self.meta.txn)
    }

    /// Returns the durable commits that are missing after this commit and the commits in its redo log, if any.
    pub(crate) fn lost(
        &self,
        storage: &dyn Storage,
        page_size: usize,
        options: &Options,
        logged: &Logged,
    ) -> Option<LostCommits> {
        let record = (&self.durable, self.meta.txn);
        lost_commits::find(storage, (page_size, options.roots), record, logged)
    }

    /// Replaces the newest commit by the newest commit in the redo log.
    pub(crate) fn with_replayed(self, replayed: Replayed) -> Self {
        assert!(
            replayed.meta.txn > self.durable.txn,
            "a log leads to a newer commit than its record"
        );
        Self {
            meta: replayed.meta.clone(),
            unsynced_meta: None,
            replayed: Some(Arc::new(replayed)),
            ..self
        }
    }

    /// Finds the meta record of the newest published commit; returns `None` if that commit is `known`.
    pub(crate) fn published(
        storage: &dyn Storage,
        superblock: &Superblock,
        lock: &Lock,
        known: Option<u64>,
    ) -> Result<Option<Self>> {
        let begun = Instant::now();
        let mut wanted = 0;
        loop {
            let word = lock.area.published().load(Ordering::SeqCst);
            if known == Some(word) {
                return Ok(None);
            }
            // Two more commits may overwrite the meta record while it is read. In that case `published` names a newer
            // commit, and the search is repeated.
            let blocks = MetaBlocks::load(storage, &superblock.uuid);
            let mut found =
                Self::of_txn(&blocks, word).or_else(|| Self::of_unsynced(&blocks, lock, word));
            if found.is_none() && known.is_none() {
                // The commit may be only in the redo log: a read-only handle that opened the file first could not
                // replay the log.
                found = Self::of_log(storage, superblock.page_size, &blocks, word)?;
            }
            if let Some(found) = found {
                storage.refresh().map_err(|error| read_failed(0, error))?;
                if found.replayed.is_none()
                    && let Err(error) = check_length(storage, superblock, &found.meta)
                {
                    if lock.area.published().load(Ordering::SeqCst) != word {
                        // No reader held this commit, so a newer commit may have truncated the file.
                        continue;
                    }
                    return Err(error);
                }
                return Ok(Some(found));
            }
            if wanted == word && begun.elapsed() > PUBLISHED_WAIT {
                return Err(match blocks.newest() {
                    Err(error) => error,
                    Ok((newest, _)) => {
                        let found = format!("transaction {} as the newest one", newest.txn);
                        let wanted = format!("transaction {word}, which was published");
                        Corrupt::new("meta records", 0, found, wanted).into()
                    }
                });
            }
            wanted = word;
            std::thread::yield_now();
        }
    }

    /// Finds the meta record of a transaction in the meta blocks, if one of its copies is readable.
    fn of_txn(blocks: &MetaBlocks, txn: u64) -> Option<Self> {
        let mut copies = blocks.copies.iter().flatten().flatten();
        let meta = copies.find(|meta| meta.txn == txn)?.clone();
        let copies = blocks.copies.iter().flatten().flatten();
        let older = copies.map(|copy| copy.txn).filter(|&other| other < txn);
        Some(Self {
            before: older.max().unwrap_or(txn.saturating_sub(1)),
            confirmation: Confirmation::after(blocks.confirmations(&meta)),
            durable: meta.clone(),
            meta,
            unsynced_meta: None,
            replayed: None,
        })
    }

    /// Finds the commit `txn` in the redo log, if it is the newest commit there.
    fn of_log(
        storage: &dyn Storage,
        page_size: usize,
        blocks: &MetaBlocks,
        txn: u64,
    ) -> Result<Option<Self>> {
        let Ok(newest) = Self::newest(blocks) else {
            return Ok(None);
        };
        let replayed = newest.logged(storage, page_size)?.replayed;
        let wanted = replayed.filter(|replayed| replayed.meta.txn == txn);
        Ok(wanted.map(|replayed| newest.with_replayed(replayed)))
    }

    /// Finds the unsynced meta record of a transaction.
    fn of_unsynced(blocks: &MetaBlocks, lock: &Lock, txn: u64) -> Option<Self> {
        let found = Self::newest(blocks).ok()?;
        let (_, older) = blocks.newest().ok()?;
        // The process that was writing the newest durable meta record may have been killed before it published the
        // commit. The unsynced meta record then builds on the previous durable meta record.
        let before = older.map(|older| Self {
            before: older.txn.saturating_sub(1),
            confirmation: Confirmation::after(blocks.confirmations(&older)),
            durable: older,
            ..found.clone()
        });
        for found in [Some(found), before].into_iter().flatten() {
            for slot in [0, 1] {
                let record = unsynced_meta(lock, slot, &found.durable);
                if let Some(meta) = record.filter(|record| record.txn == txn) {
                    let unsynced_meta = Some(UnsyncedMeta { txn, slot });
                    return Some(Self {
                        meta,
                        unsynced_meta,
                        ..found
                    });
                }
            }
        }
        None
    }
}

/// Returns the unsynced meta record in slot 0 or 1 of the lock area, if it builds on the meta record `durable`.
fn unsynced_meta(lock: &Lock, slot: usize, durable: &Meta) -> Option<Meta> {
    let record = Meta::decode(&lock.area.unsynced_meta(slot), 0, &durable.uuid).ok()?;
    let lazy_base = &record.lazy_base;
    let checksum = checksum_of(durable);
    // On systems without a boot id, both ids are 0 and thus equal. That is safe, since the first handle that opened
    // the file discarded unsynced meta records of an earlier boot.
    let same_boot = lazy_base.boot_id == lock.area.identity().boot;
    let on_it = (lazy_base.sequence, lazy_base.checksum) == (durable.sequence, checksum);
    let on_the_one_before =
        lazy_base.sequence + 1 == durable.sequence && lazy_base.next_checksum == checksum;
    (same_boot && (on_it || on_the_one_before)).then_some(record)
}
