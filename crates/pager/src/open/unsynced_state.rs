//! Verifies a lazy commit that only the lock file names, before a handle that opens the file uses the commit.
//!
//! The lock file names the newest commit, but does not prove that the pages of that commit are in the data file. The
//! two files may stem from different moments: a copied folder, a restored backup, a disk that lost unsynced sectors
//! while the lock file survived. The first handle that opens the file therefore reads every page of such a commit
//! that was written after the durable meta record, and compares it with the checksum in the pointer to it. Older
//! pages were synced with the durable meta record.
//!
//! Invariants (see also `options/unrecorded.rs`)
//! 1. A pointer's birth is the transaction that wrote its target, and no page points to a younger page. Pages not
//!    younger than the durable meta record, and everything below them, therefore need not be read.

use crate::commit::second_file;
use crate::commit::second_file::LargePlace;
use crate::error::{Error, Result};
use crate::format::kind::Kind;
use crate::format::layout::first_page;
use crate::format::meta::Meta;
use crate::format::pages::{Counters, PageRead, PageRef, expect_zeros};
use crate::format::pins;
use crate::format::pins::SoleBlock;
use crate::format::ptr::Ptr;
use crate::format::superblock::{Superblock, read_failed};
use crate::options::Options;
use crate::options::unrecorded::{Files, Unrecorded, Verifier};
use crate::space::load;
use crate::space::reclaim::walk;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tidalite_base::{Corrupt, TxnId};
use tidalite_disk::storage::Storage;

/// Verifies the pages of an unsynced meta record that are younger than the durable meta record on which it builds.
/// Returns the number of bytes read, and an error if the unsynced meta record must not be used.
pub(crate) fn verify(
    storage: &dyn Storage,
    superblock: &Superblock,
    (record, durable): (&Meta, &Meta),
    place: &LargePlace<'_>,
    options: &Options,
) -> (u64, Result<()>) {
    let files = match open(storage, superblock, record, place, options) {
        Ok(files) => files,
        Err(error) => return (0, Err(error)),
    };
    let verified = verify_state(&files, superblock, record, TxnId(durable.txn), options);
    (files.read_bytes.load(Ordering::Relaxed), verified)
}

fn open<'a>(
    first: &'a dyn Storage,
    superblock: &Superblock,
    record: &Meta,
    place: &LargePlace<'_>,
    options: &Options,
) -> Result<Files<'a>> {
    let second = second_file::open(first, superblock, record, place, options)?;
    let len = |storage: &dyn Storage| storage.len().map_err(|error| read_failed(0, error));
    let second_bytes = match &second {
        Some(second) => len(&*second.storage)?,
        None => 0,
    };
    Ok(Files {
        first,
        first_bytes: len(first)?,
        second: second.map(|second| second.storage),
        second_bytes,
        page_size: superblock.page_size,
        read_bytes: AtomicU64::new(0),
        counters: Counters::default(),
    })
}

fn verify_state(
    files: &Files<'_>,
    superblock: &Superblock,
    record: &Meta,
    since: TxnId,
    options: &Options,
) -> Result<()> {
    let Some(Verifier(walk)) = &options.verifier else {
        return Err(Error::Unsupported {
            found: "a state that only the lock file names".into(),
            expected: "Options::verifier, which verifies one".into(),
        });
    };
    let end = record.pages.saturating_mul(files.page_size as u64);
    if end > files.first_bytes || record.pages < first_page(files.page_size) {
        let expected = format!("{end} bytes or more, which are {} pages", record.pages);
        let found = format!("{} bytes", files.first_bytes);
        return Err(Corrupt::new("file length", 0, found, expected).into());
    }
    let newest = state_of(files, record, since, end);
    verify_space(&newest, record)?;
    verify_standalone(&newest, &record.clock)?;
    if record.clock.birth > since {
        pins::read_clock(&record.clock, &|ptr| newest.block(ptr))?;
    }
    walk(&newest)?;
    if record.pins.birth <= since {
        return Ok(());
    }
    verify_standalone(&newest, &record.pins)?;
    for pin in pins::read_table(&record.pins, &|ptr| newest.block(ptr))? {
        // The birth of a pin's meta record is the birth of the pinned version, although the pin may be younger.
        let block = newest.block(&pin.record)?;
        let pinned = Meta::decode(&block, pin.record.addr, &superblock.uuid)?;
        verify_padding(&newest, &pin.record)?;
        if pin.txn > since {
            walk(&state_of(files, &pinned, since, files.first_bytes))?;
        }
    }
    Ok(())
}

fn state_of<'a>(files: &'a Files<'a>, record: &Meta, since: TxnId, end: u64) -> Unrecorded<'a> {
    Unrecorded {
        files,
        app: Arc::clone(&record.app),
        since,
        end,
    }
}

/// Verifies the free space of the commit: its structure, and the lists of freed ranges.
fn verify_space(state: &Unrecorded<'_>, record: &Meta) -> Result<()> {
    let since = state.since;
    let page_size = state.files.page_size;
    let read = |ptr: &Ptr| {
        if ptr.kind == Kind::FreeBitmap && ptr.birth <= since {
            // An old bitmap need not be read: it does not matter here which pages are free, so an empty bitmap is
            // used.
            return Ok(PageRef::Owned(vec![0; page_size].into()));
        }
        state.page(ptr)
    };
    let before = record.txn.saturating_sub(1);
    let space = load::load(page_size, record, before, &read)?;
    for stack in space
        .stacks()
        .iter()
        .filter(|stack| stack.top.birth > since)
    {
        walk(stack, &read, &mut |_, list| list.next.birth > since)?;
    }
    Ok(())
}

/// Verifies a block that has an extent of its own, if the block is younger than the durable meta record.
fn verify_standalone(state: &Unrecorded<'_>, ptr: &Ptr) -> Result<()> {
    if ptr.birth <= state.since {
        return Ok(());
    }
    state.block(ptr)?;
    verify_padding(state, ptr)
}

fn verify_padding(state: &Unrecorded<'_>, ptr: &Ptr) -> Result<()> {
    let pages = SoleBlock(*ptr).extent(state.files.page_size).pages;
    let room = (pages * state.files.page_size as u64).saturating_sub(u64::from(ptr.len));
    let at = ptr.addr.saturating_add(u64::from(ptr.len));
    expect_zeros(state, at, room as usize)
}
