//! Finding the newest record in the file and the lock area.

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

/// Maximum time for which a reader searches for the record of the published commit.
const PUBLISHED_WAIT: Duration = Duration::from_secs(2);

/// Transaction and slot (in the lock area) of the newest unsynced meta record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnsyncedMeta {
    pub(crate) txn: u64,
    pub(crate) slot: usize,
}

/// Work done at opening to find an intact state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// Number of commits found in the log.
    pub replayed: u64,
    /// Durable commits that cannot be found any more. A handle for writing opens such a file only with
    /// [`Options::accept_lost_commits`](crate::Options::accept_lost_commits).
    pub lost: Option<LostCommits>,
    /// The newest commit named by the lock file, if it was dropped because some of its pages are not in the file. No
    /// durable commit is lost.
    pub dropped_unrecorded: Option<TxnId>,
    /// Bytes read to verify commits named by the lock file.
    pub verified_bytes: u64,
}

/// The newest records of the file and the lock area.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// The newest state: `durable`, or an unsynced meta record that builds on it.
    pub(crate) meta: Meta,
    pub(crate) durable: Meta,
    /// The transaction of the previous durable record.
    pub(crate) before: u64,
    /// How the durable record is rewritten to confirm it.
    pub(crate) confirmation: Confirmation,
    pub(crate) unsynced_meta: Option<UnsyncedMeta>,
    /// Set if `meta` is the newest commit in the log; its pages are not all in the file.
    pub(crate) replayed: Option<Arc<Replayed>>,
}

impl Found {
    /// The newest record of the file.
    pub(crate) fn newest(blocks: &MetaBlocks) -> Result<Self> {
        let (meta, older) = blocks.newest()?;
        // If the older record is not readable, assume that it is as new as possible: all pending pages then count as
        // needed by it.
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

    /// The unsynced meta records that build on the durable record and are newer than `meta`, ascending.
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

    /// The log of the durable record, if it contains commits newer than `meta`.
    pub(crate) fn logged(&self, storage: &dyn Storage, page_size: usize) -> Result<Logged> {
        if active(Bug::LogIgnored) {
            return Ok(Logged::default());
        }
        redo::read(storage, page_size, &self.durable, self.meta.txn)
    }

    /// The durable commits missing after this state and its log.
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

    /// Replaces the newest state by the newest commit in the log.
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

    /// The record of the published commit; `None` if it is `known`.
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
            // Two more commits may overwrite the record while it is read. In that case `published` names a newer
            // commit, and the search is repeated.
            let blocks = MetaBlocks::load(storage, &superblock.uuid);
            let mut found =
                Self::of_txn(&blocks, word).or_else(|| Self::of_unsynced(&blocks, lock, word));
            if found.is_none() && known.is_none() {
                // The commit may be in the log only: a read-only handle that opened the file first could not replay it.
                found = Self::of_log(storage, superblock.page_size, &blocks, word)?;
            }
            if let Some(found) = found {
                storage.refresh().map_err(|error| read_failed(0, error))?;
                if found.replayed.is_none()
                    && let Err(error) = check_length(storage, superblock, &found.meta)
                {
                    if lock.area.published().load(Ordering::SeqCst) != word {
                        // No reader held this commit, so the newer one may have truncated the file.
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

    /// The record of a transaction, if one of its copies is readable.
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

    /// The newest commit in the log, if it is this transaction.
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

    /// The unsynced meta record of a transaction.
    fn of_unsynced(blocks: &MetaBlocks, lock: &Lock, txn: u64) -> Option<Self> {
        let found = Self::newest(blocks).ok()?;
        let (_, older) = blocks.newest().ok()?;
        // The process that was writing the newest durable record may have been killed before it published it. The
        // unsynced meta record then builds on the previous durable record.
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

/// The unsynced meta record in a slot, if it builds on this durable record.
fn unsynced_meta(lock: &Lock, slot: usize, durable: &Meta) -> Option<Meta> {
    let record = Meta::decode(&lock.area.unsynced_meta(slot), 0, &durable.uuid).ok()?;
    let lazy_base = &record.lazy_base;
    let checksum = checksum_of(durable);
    // On systems without a boot id both ids are 0 and thus equal. That is safe: the first handle to open the file has
    // discarded records of an earlier boot.
    let same_boot = lazy_base.boot_id == lock.area.identity().boot;
    let on_it = (lazy_base.sequence, lazy_base.checksum) == (durable.sequence, checksum);
    let on_the_one_before =
        lazy_base.sequence + 1 == durable.sequence && lazy_base.next_checksum == checksum;
    (same_boot && (on_it || on_the_one_before)).then_some(record)
}
