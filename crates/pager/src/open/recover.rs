//! Recovery at opening, from the data file and the lock file: finds the newest intact commit, and detects lost
//! durable commits.

use super::unsynced_state;
use crate::commit::found::{Found, Recovery};
use crate::commit::second_file::LargePlace;
use crate::commit::{lost_commits, second_file};
use crate::error::lost_commits::LostCommits;
use crate::error::{Error, Result};
use crate::format::meta_blocks::MetaBlocks;
use crate::format::superblock::Superblock;
use crate::options::Options;
use crate::options::event::Event;
use crate::seeded::{Bug, active};
use std::sync::atomic::Ordering;
use tidalite_base::TxnId;
use tidalite_disk::Error as DiskError;
use tidalite_disk::lock::Lock;
use tidalite_disk::storage::Storage;

/// Recovers the database when no other handle has the file open: finds the newest commit in the durable meta record,
/// the redo log, and the verified unsynced meta records. Slots of other unsynced meta records are cleared, so that
/// these cannot be mistaken for a later commit with the same number.
pub(crate) fn recovered(
    own: Found,
    storage: &dyn Storage,
    superblock: &Superblock,
    lock: &Lock,
    place: &LargePlace<'_>,
    options: &Options,
    recovery: &mut Recovery,
) -> Result<(Found, Option<Event>)> {
    let mut logged = own.logged(storage, superblock.page_size)?;
    let records = own.unsynced_metas(lock);
    let mut found = match logged.replayed.take() {
        Some(replayed) => own.with_replayed(replayed),
        None => own,
    };
    let mut dropped = None;
    for (unsynced_meta, record) in records.into_iter().rev() {
        // The redo log contains this commit or a newer one, so the unsynced meta record is not needed.
        if record.txn <= found.meta.txn {
            break;
        }
        if !found.durable.large.is_null() {
            // If the second file is missing, this is reported as an error. It does not mean that the unsynced meta
            // record is invalid.
            second_file::open(storage, superblock, &found.durable, place, options)?;
        }
        let records = (&record, &found.durable);
        let (bytes, verified) =
            unsynced_state::verify(storage, superblock, records, place, options);
        recovery.verified_bytes += bytes;
        match verified {
            // A page that cannot be read may be intact. No commit is dropped then, since the next attempt to open may
            // succeed.
            Err(Error::Disk(DiskError::Io { what, at, source })) => {
                let (txn, without) = (TxnId(record.txn), TxnId(found.meta.txn));
                let what = format!(
                    "{what} of {txn}, which only the lock file names (to give it up and open \
                     {without}, delete the lock file),"
                );
                return Err(DiskError::Io { what, at, source }.into());
            }
            Err(error) if !active(Bug::UnsyncedMetaUnverified) => {
                dropped.get_or_insert((TxnId(record.txn), error.to_string()));
            }
            _ => {
                found.replayed = None;
                found = found.with((unsynced_meta, record));
                break;
            }
        }
    }
    recovery.lost = found.lost(storage, superblock.page_size, options, &logged);
    lost_commits::refuse(recovery.lost, options)?;
    lock.area
        .clear_unsynced_meta(found.unsynced_meta.map(|unsynced_meta| unsynced_meta.slot));
    recovery.replayed = found.replayed.as_ref().map_or(0, |log| log.commits);
    recovery.dropped_unrecorded = dropped.as_ref().map(|(txn, _)| *txn);
    let used = TxnId(found.meta.txn);
    let told = dropped.map(|(txn, reason)| Event::DroppedUnrecorded { txn, used, reason });
    Ok((found, told))
}

/// Finds lost durable commits, for a handle that opens a file that other handles have open. Once a writer has made a
/// commit durable, no search is made: that writer found the file intact or accepted the loss, and a redo log that is
/// being written must not be read. A writer may begin during the search, so the result counts only if the meta record
/// is still the newest one afterwards.
pub(crate) fn find_with_others(
    storage: &dyn Storage,
    superblock: &Superblock,
    lock: &Lock,
    found: &Found,
    options: &Options,
) -> Option<LostCommits> {
    if lock.area.durable().load(Ordering::SeqCst) != 0 {
        return None;
    }
    let page_size = superblock.page_size;
    // Errors are ignored, since the first read that needs these bytes will report them.
    let logged = found.logged(storage, page_size).ok()?;
    let lost = found.lost(storage, page_size, options, &logged)?;
    let (newest, _) = MetaBlocks::load(storage, &superblock.uuid).newest().ok()?;
    (newest.sequence == found.durable.sequence).then_some(lost)
}
