//! Verifies by checksum that the part of the delta that was written after a transaction is completely in the file.
//! Nothing is decoded.
//!
//! Every change of the delta writes a new record, and a changed run has a new root of its directory. Pages that are
//! not younger than the transaction are skipped, together with all pages below them in the tree. Every block of an
//! extent was written by the transaction that wrote the extent.

use crate::delta::Delta;
use crate::record::{DeltaRoot, record_extent};
use crate::run::descriptor::Run;
use crate::run::directory::{self, decode_entry};
use crate::visit::extents;
use tidalite_base::TxnId;
use tidalite_pager::{Extent, PageRead, Ptr, Result, expect_zeros};

/// Verifies the checksums of all pages and blocks reachable from this root that were written after the transaction
/// `since`.
///
/// # Errors
/// `Corrupt` names the first page or block that does not match its pointer; `Io`.
///
/// # Cost
/// Reads every page and block written after `since` once or twice.
pub fn check_since<R: PageRead>(r: &R, root: &DeltaRoot, since: TxnId) -> Result<()> {
    if root.tail.birth > since {
        r.page(&root.tail)?;
    }
    let record = &root.record;
    if record.birth <= since {
        return Ok(());
    }
    let delta = Delta::load(r, root)?;
    let room = record_extent(record, r.page_size()).pages * r.page_size() as u64;
    let padding = room.saturating_sub(u64::from(record.len));
    let at = record.addr.saturating_add(u64::from(record.len));
    expect_zeros(r, at, padding as usize)?;
    for (run, _) in delta.live_runs(0) {
        if run.directory.root().birth > since {
            check_run(r, run, since)?;
        }
    }
    Ok(())
}

fn check_run<R: PageRead>(r: &R, run: &Run, since: TxnId) -> Result<()> {
    run.directory.check_since(r, since)?;
    let mut blocks: Vec<Ptr> = Vec::new();
    let mut extents: Vec<(Extent, u64)> = Vec::new();
    run.directory.leaves_since(r, since, &mut |leaf| {
        let mut cursor = leaf.cursor(r);
        let mut there = cursor.first()?;
        while there {
            let value = cursor.inline_value()?.unwrap_or_default();
            let Some(entry) = decode_entry(cursor.key(), value, leaf)? else {
                break;
            };
            if entry.ptr.birth > since {
                r.block(&entry.ptr)?;
                blocks.push(entry.ptr);
            }
            there = cursor.next()?;
        }
        directory::each_extent(leaf, r, |extent, blocks| {
            if extent.birth > since {
                extents.push((extent, blocks));
            }
            Ok(())
        })
    })?;
    extents::check(r, run.directory.id(), &extents, &mut blocks)
}
