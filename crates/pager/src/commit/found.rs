//! What is found in the file and the lock area: which record is the newest.

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
use crate::lock::handle::Lock;
use crate::options::Options;
use crate::seeded::{Bug, active};
use crate::storage::Storage;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tidalite_base::{Corrupt, TxnId};

/// A record that was published is looked for this long.
const PUBLISHED_WAIT: Duration = Duration::from_secs(2);

/// The newest weak record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weak {
    pub(crate) txn: u64,
    pub(crate) slot: usize,
}

/// What opening had to do to find a state that is whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// Commits that were found in the log.
    pub replayed: u64,
    /// Durable commits that cannot be found any more. A handle for writing has them only with
    /// [`Options::accept_lost_commits`](crate::Options::accept_lost_commits).
    pub lost: Option<LostCommits>,
    /// The newest commit that the lock file named and of which pages are not in the file: it was dropped. No durable commit is lost by that.
    pub dropped_unrecorded: Option<TxnId>,
    /// Bytes read to verify what the lock file named.
    pub verified_bytes: u64,
}

/// What the file and the lock area hold.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// The newest state: `durable`, or a weak record that stands on it.
    pub(crate) meta: Meta,
    pub(crate) durable: Meta,
    /// The transaction of the durable record before.
    pub(crate) before: u64,
    /// How the durable record is rewritten.
    pub(crate) confirmation: Confirmation,
    pub(crate) weak: Option<Weak>,
    /// `meta` is that of the newest commit in the log, and what the log leads to is not in the file.
    pub(crate) replayed: Option<Arc<Replayed>>,
}

impl Found {
    /// The newest record of the file.
    pub(crate) fn newest(blocks: &MetaBlocks) -> Result<Self> {
        let (meta, older) = blocks.newest()?;
        // Without a readable older record, everything pending counts as needed by it.
        let before = older.map_or(meta.txn.saturating_sub(1), |older| older.txn);
        let confirmation = Confirmation::after(blocks.confirmations(&meta));
        Ok(Self {
            durable: meta.clone(),
            meta,
            before,
            confirmation,
            weak: None,
            replayed: None,
        })
    }

    /// The same with the newest weak record that stands on it, if there is one. Only beside a live handle, which has opened the file since the
    /// record was written, or has verified it: see `open/weak_state.rs`.
    pub(crate) fn with_weak(
        self,
        storage: &dyn Storage,
        page_size: usize,
        lock: &Lock,
    ) -> Result<Self> {
        let len = storage.len().map_err(|error| read_failed(0, error))?;
        let pages = first_page(page_size)..=len / page_size as u64;
        let mut records = self.weak_records(lock);
        records.retain(|(_, record)| pages.contains(&record.pages));
        Ok(match records.pop() {
            Some(newest) => self.with(newest),
            None => self,
        })
    }

    /// The weak records that stand on the durable record and are newer than this, ascending.
    pub(crate) fn weak_records(&self, lock: &Lock) -> Vec<(Weak, Meta)> {
        let record = |slot| {
            let record = weak_record(lock, slot, &self.durable)?;
            let txn = record.txn;
            (txn > self.meta.txn).then_some((Weak { txn, slot }, record))
        };
        let mut found: Vec<_> = [0, 1].into_iter().filter_map(record).collect();
        found.sort_by_key(|(weak, _)| weak.txn);
        found
    }

    pub(crate) fn with(self, (weak, meta): (Weak, Meta)) -> Self {
        Self {
            meta,
            weak: Some(weak),
            ..self
        }
    }

    /// The log of the durable record, where it leads further than this.
    pub(crate) fn logged(&self, storage: &dyn Storage, page_size: usize) -> Result<Logged> {
        if active(Bug::LogIgnored) {
            return Ok(Logged::default());
        }
        redo::read(storage, page_size, &self.durable, self.meta.txn)
    }

    /// The durable commits that are missing behind this and its log.
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

    /// The state that the log leads to, on top of this.
    pub(crate) fn with_replayed(self, replayed: Replayed) -> Self {
        Self {
            meta: replayed.meta.clone(),
            weak: None,
            replayed: Some(Arc::new(replayed)),
            ..self
        }
    }

    /// The record of what is published; `None` when that is `known`.
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
            // While it is being read, two more commits may write over it; then there is a newer one.
            let blocks = MetaBlocks::load(storage, &superblock.uuid);
            let mut found =
                Self::of_txn(&blocks, word).or_else(|| Self::of_weak(&blocks, lock, word));
            if found.is_none() && known.is_none() {
                // Who came first could only read.
                found = Self::of_log(storage, superblock.page_size, &blocks, word)?;
            }
            if let Some(found) = found {
                storage.refresh().map_err(|error| read_failed(0, error))?;
                if found.replayed.is_none()
                    && let Err(error) = check_length(storage, superblock, &found.meta)
                {
                    if lock.area.published().load(Ordering::SeqCst) != word {
                        // Nobody held it, so the file may have been cut for the newer one.
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

    /// The record of a transaction, if one of its copies can be read.
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
            weak: None,
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

    /// The weak record of a transaction.
    fn of_weak(blocks: &MetaBlocks, lock: &Lock, txn: u64) -> Option<Self> {
        let found = Self::newest(blocks).ok()?;
        let (_, older) = blocks.newest().ok()?;
        // Whoever was making a newer record may be dead, and nobody has said so yet: then it stands on the one before.
        let before = older.map(|older| Self {
            before: older.txn.saturating_sub(1),
            confirmation: Confirmation::after(blocks.confirmations(&older)),
            durable: older,
            ..found.clone()
        });
        for found in [Some(found), before].into_iter().flatten() {
            for slot in [0, 1] {
                let record = weak_record(lock, slot, &found.durable);
                if let Some(meta) = record.filter(|record| record.txn == txn) {
                    let weak = Some(Weak { txn, slot });
                    return Some(Self {
                        meta,
                        weak,
                        ..found
                    });
                }
            }
        }
        None
    }
}

/// What a slot for weak records holds, if it stands on this durable record.
fn weak_record(lock: &Lock, slot: usize, durable: &Meta) -> Option<Meta> {
    let record = Meta::decode(&lock.area.weak(slot), 0, &durable.uuid).ok()?;
    let standing = &record.standing;
    let checksum = checksum_of(durable);
    // Unknown to all (0) it is the same: what was there before the first of them opened the file is not kept then.
    let same_boot = standing.boot_id == lock.area.identity().boot;
    let on_it = (standing.sequence, standing.checksum) == (durable.sequence, checksum);
    let on_the_one_before =
        standing.sequence + 1 == durable.sequence && standing.next_checksum == checksum;
    (same_boot && (on_it || on_the_one_before)).then_some(record)
}
