//! Finds evidence, when a file is opened, that durable commits are missing.
//!
//! There are three kinds of evidence, and an ordinary crash leaves none of them:
//!
//! 1. The redo log has a gap: the blocks of a flush are missing, and a block of a later flush is present. A flush
//!    begins only after the sync of the previous flush has succeeded, so the missing flush was durable.
//! 2. The redo log has blocks that name a newer meta record than the newest one found. A redo log begins only when
//!    its meta record is durable.
//! 3. A page to which the newest durable meta record found points was overwritten by a later commit. Pages of the
//!    newest durable meta record are not reused, so there was a newer meta record.
//!
//! In the last two cases both copies of a meta record were lost, for instance because the disk dropped their writes.
//! docs/durability.md, "Damage", shows that each case cannot result from power failures, killed processes and failed
//! syncs.

use super::redo::Logged;
use crate::error::lost_commits::{LossCause, LostCommits};
use crate::error::{Error, Result};
use crate::format::header::verify_block;
use crate::format::header::{HEADER_BYTES, Header};
use crate::format::meta::Meta;
use crate::format::ptr::Ptr;
use crate::format::superblock::verify_own;
use crate::options::{Options, RootsOf};
use tidalite_base::TxnId;
use tidalite_disk::storage::Storage;

/// Maximum length in bytes of a block whose birth is compared. A longer block would delay opening, or its pointer is
/// damaged.
const BLOCK_BYTES_MAX: usize = 1 << 20;

/// Finds out which durable commits are missing after the newest commit that was found. This commit comes from the
/// newest durable meta record, the redo log of that record, or an unsynced meta record; `known` is its transaction.
pub(crate) fn find(
    storage: &dyn Storage,
    (page_size, roots): (usize, Option<RootsOf>),
    (durable, known): (&Meta, u64),
    logged: &Logged,
) -> Option<LostCommits> {
    let shown = logged.replayed.as_ref().map_or(0, |all| all.meta.txn);
    let shown = shown.max(known);
    let is_missing = |newest: &TxnId| newest.0 > shown;
    let stale = || {
        logged
            .newer
            .or_else(|| later(storage, page_size, durable, roots))
    };
    let record = stale().filter(is_missing);
    let record = record.map(|newest| (newest, LossCause::Record));
    let hole = logged.lost.filter(is_missing);
    let hole = hole.map(|newest| (newest, LossCause::Log));
    let (newest, cause) = record.or(hole)?;
    Some(LostCommits {
        found: TxnId(shown),
        newest,
        cause,
    })
}

/// Returns an error if durable commits of the file are lost, since the next durable commit would overwrite the
/// evidence. Returns no error if the file is opened read-only or if the options accept the loss.
///
/// # Errors
/// `CommitsLost`.
pub(crate) fn refuse(lost: Option<LostCommits>, options: &Options) -> Result<()> {
    match lost {
        Some(lost) if !options.read_only && !options.accept_lost_commits => {
            Err(Error::CommitsLost(lost))
        }
        _ => Ok(()),
    }
}

/// Returns the newest commit that overwrote a page to which the meta record `durable` points. The result may also be
/// an older commit, if the write of the page was lost.
fn later(
    storage: &dyn Storage,
    page_size: usize,
    durable: &Meta,
    roots: Option<RootsOf>,
) -> Option<TxnId> {
    let own = [
        durable.free_root,
        durable.freed_directory,
        durable.pins,
        durable.clock,
        durable.large,
    ];
    let app = roots.map_or_else(Vec::new, |roots| roots(&durable.app));
    let pages = own.iter().chain(&app);
    let births = pages.filter_map(|ptr| birth_of_another(storage, page_size, ptr));
    births.max()
}

/// Returns the commit that wrote the page at the address of `ptr`, if this page is intact but is not the page to
/// which `ptr` points.
fn birth_of_another(storage: &dyn Storage, page_size: usize, ptr: &Ptr) -> Option<TxnId> {
    let len = ptr.len as usize;
    if ptr.is_null() || !(HEADER_BYTES..=BLOCK_BYTES_MAX).contains(&len) {
        return None;
    }
    let mut bytes = vec![0; len.max(page_size)];
    storage.read_at(ptr.addr, &mut bytes).ok()?;
    if verify_block(&bytes[..len], ptr).is_ok() {
        return None;
    }
    let page = &bytes[..page_size];
    let header = Header::decode(page);
    verify_own(page, header.kind, ptr.addr).ok()?;
    Some(header.birth)
}
