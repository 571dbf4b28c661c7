//! State of the single writer: the free space and the newest durable meta record. The functions of this file also
//! allocate pages and grow the data file.
//!
//! Invariants
//! 1. Before a page is reused for the first time after open, the durable meta record that was found is rewritten and
//!    synced (`confirm`), one block at a time. A process may have been killed after it wrote that meta record and
//!    before it synced it; in that case only the previous meta record is on the medium.
//! 2. `length_unsynced` is set while a power failure may lose the file's length; the next durable commit then syncs
//!    the length too, before any meta record relies on it.

mod confirming;
mod evict;
mod freed;
pub(crate) mod last;
mod log_state;
mod poison_freed;
mod second_file;
mod truncate;

use crate::commit::files::Files;
use crate::commit::found::Found;
use crate::commit::shared::Shared;
use crate::error::{Error, Result};
use crate::format::layout::{LARGE_AT, first_page, meta_at};
use crate::format::meta::{COUNT_MAX, FreedRange, Meta};
use crate::format::pins::Pins;
use crate::format::ptr::Ptr;
use crate::format::superblock::read_failed;
use crate::options::Options;
use crate::options::event::Event;
use crate::seeded::{Bug, active};
use crate::space::build::Built;
use crate::space::free_space::Space;
use crate::space::large::Large;
use crate::space::{LISTS_PER_COMMIT, TxnSpace, load};
use crate::txn::dirty::Recycled;
use confirming::Confirming;
use freed::Freed;
use last::Last;
use log_state::LogState;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tidalite_disk::Error as DiskError;
use tidalite_disk::storage::Growth;

/// A transaction counts as a bulk write once it has allocated this many bytes, or needs this many bytes at once.
const BULK_BYTES: u64 = 1 << 20;
/// Maximum number of additional bytes that are reserved when a bulk write grows the file: a quarter of the bytes
/// already written, but at most this number.
const BULK_GROWTH_BYTES_MAX: u64 = 64 << 20;
/// Minimum length of the reserve in pages, for files that use more pages than this.
const RESERVE_PAGES_MIN: u64 = 64;
/// Number of extra pages in the reserve of a small file, which has room for a copy of each page in use and for these
/// pages. The extra pages are for the free-space structure, and for copies that are a page longer than their
/// original.
const RESERVE_SPARE_PAGES: u64 = 4;
/// Transactions that free slightly fewer pages than they allocate may use up 1/`RESERVE_WORN_PART` of the reserve, but
/// at least one page.
const RESERVE_WORN_PART: u64 = 8;

/// Maximum number of entries of the map `ends` for each live transaction; a longer map is pruned.
const ENDS_PER_LIVE: usize = 16;

#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) space: Space,
    /// The newest meta record, on which the next one builds.
    pub(crate) meta: Arc<Meta>,
    pub(crate) length_unsynced: bool,
    pub(crate) pins: Pins,
    /// Transactions whose pages must be kept, in ascending order, as of the last `reclaim`: snapshots, pins and
    /// durable meta records.
    live: Vec<u64>,
    /// For each transaction, the file length in pages that its readers and its meta record require.
    ends: BTreeMap<u64, u64>,
    cannot_punch: bool,
    cannot_punch_large: bool,
    confirming: Confirming,
    pub(crate) freed: Freed,
    pub(crate) log: LogState,
    /// Buffers of the last transaction, which the next transaction reuses.
    pub(crate) spare: Recycled,
    /// Kind of the last commit of this handle; the next commit is likely to be of the same kind.
    pub(crate) last: Last,
}

/// Returns an error unless this handle has opened the second file that the meta record names. Otherwise a commit
/// could leave values in the second file unsynced, or write values to another file. Another process may have added
/// the second file since this handle was opened.
fn expect_known(files: &Files, large: Option<&Large>) -> Result<()> {
    let (path, problem) = match (&files.large, large) {
        (None, Some(large)) => (
            PathBuf::from(&large.id.name),
            "another process added this second file after this handle was opened without one",
        ),
        (Some(file), Some(large)) if file.id.uuid != large.id.uuid => (
            file.path.clone(),
            "the database names another second file since this handle was opened",
        ),
        _ => return Ok(()),
    };
    Err(Error::LargeFile {
        path,
        problem: problem.into(),
    })
}

/// Returns an error if a transaction or sequence number is suspiciously large. A number beyond `COUNT_MAX` could be
/// committed, but not read again. Only a damaged file comes near it, since real use never exhausts half of the
/// numbers.
fn expect_numbers(count: u64) -> Result<()> {
    let limit = COUNT_MAX / 2;
    if count < limit {
        return Ok(());
    }
    Err(Error::Limit {
        what: "transactions and durable commits of a file",
        found: count,
        limit,
    })
}

impl Writer {
    /// Creates the writer state for the meta record `found`, by reading its free space.
    pub(crate) fn load(files: &Files, found: Found) -> Result<Self> {
        let Found {
            meta,
            durable,
            before,
            confirmation,
            ..
        } = &found;
        let end = meta.pages * files.page_size as u64;
        let mut space = load::load(files.page_size, meta, *before, &|ptr| files.page(ptr, end))?;
        let mut pins = Pins::load(meta, &|ptr| files.block(ptr, end))?;
        if durable.txn < meta.txn {
            let end = durable.pages * files.page_size as u64;
            pins.keep_those_of(durable, meta.txn, &|ptr| files.block(ptr, end))?;
        }
        space.durable = [durable.txn, *before];
        if files.options.recent_first {
            space.take_recent_first();
        }
        if files.options.poison_freed {
            space.remember_freed();
        }
        let len = files.storage.len().map_err(|error| read_failed(0, error))?;
        let pages = if files.storage.resizes() {
            (len / files.page_size as u64).max(meta.pages)
        } else {
            // The storage has a fixed length. Space after the last page is taken step by step, as if the file grew.
            meta.pages
        };
        if !files.options.read_only {
            expect_known(files, space.large.as_deref())?;
            expect_numbers(meta.txn.max(durable.sequence))?;
        }
        if let Some(file) = &files.large {
            let large = space
                .large
                .get_or_insert_with(|| Box::new(Large::new(files.page_size, file.id.clone())));
            large.rename(&file.id.name);
            if file.storage.resizes() {
                let len = file.storage.len();
                let len = len.map_err(|error| read_failed(LARGE_AT, error))?;
                // The second file may have been truncated after the newest meta record was written.
                large.cut(len / files.page_size as u64);
            }
        }
        let known = files.lock.area.durable().load(Ordering::Acquire);
        let is_known = known == durable.txn;
        let longer = pages > meta.pages;
        if longer {
            // The file is longer than the meta record says, because it grew for a transaction that was never
            // committed.
            space.grow(pages);
        }
        Ok(Self {
            space,
            meta: Arc::new(meta.clone()),
            length_unsynced: longer,
            pins,
            live: Vec::new(),
            ends: BTreeMap::from([(meta.txn, meta.pages)]),
            cannot_punch: false,
            cannot_punch_large: false,
            confirming: Confirming::new(*confirmation, is_known),
            freed: Freed::default(),
            log: LogState::default(),
            spare: Recycled::default(),
            last: Last::default(),
        })
    }

    /// Ensures that the durable meta record on which this process builds is on the medium, by rewriting it if
    /// necessary.
    pub(crate) fn confirm(&mut self, shared: &Shared) -> Result<()> {
        if self.confirming.is_done() {
            return Ok(());
        }
        let mut record = shared.pipeline.durable();
        while let Some((number, copy)) = self.confirming.next() {
            record.confirmations = number;
            let at = meta_at(record.pair(), copy);
            let block = record.encode(at);
            let failed = |error| Error::of_write("meta write", at, block.len() as u64, error);
            shared.files.storage.write_at(at, &block).map_err(failed)?;
            let pipeline = &shared.pipeline;
            pipeline.sync_in_background(&shared.files, "sync of a meta block", at, false)?;
            self.confirming.copy_is_written();
        }
        shared.files.note_durable(record.txn);
        shared.pipeline.confirmed();
        Ok(())
    }

    /// Records that the commit `txn` is the newest with a durable meta record.
    pub(crate) fn durable_is(&mut self, txn: u64) {
        if txn != self.space.durable[0] {
            self.freed.record();
        }
        self.space.durable_is(txn);
    }

    /// Whether the pages of the older durable meta record are kept: on request, or because the newest may not be on
    /// the medium.
    fn keeps_older(&self, options: &Options) -> bool {
        options.keep_older || !self.confirming.is_done()
    }

    /// Frees pages that no snapshot retains any more, in a step of bounded work. The caller must hold the writer
    /// lock.
    pub(crate) fn reclaim(&mut self, shared: &Shared) {
        self.reclaim_in_memory(shared);
        self.poison(&shared.files);
        self.note_retained(&shared.files.lock);
    }

    /// Like `reclaim`, but without effects outside this process.
    pub(crate) fn reclaim_in_memory(&mut self, shared: &Shared) {
        let durable = &self.space.durable[..=usize::from(self.keeps_older(&shared.files.options))];
        self.live = shared.live();
        self.live.extend(self.pins.live(durable[durable.len() - 1]));
        if !active(Bug::ReuseEarly) {
            self.live.extend_from_slice(durable);
        }
        self.live.sort_unstable();
        self.live.dedup();
        assert!(!self.live.is_empty(), "some state is always alive");
        if self.ends.len() > ENDS_PER_LIVE * (self.live.len() + 1) {
            let newest = self.live.last().copied().unwrap_or(0);
            let live = &self.live;
            self.ends
                .retain(|txn, _| *txn > newest || live.binary_search(txn).is_ok());
        }
        self.take_lists(&shared.files, LISTS_PER_COMMIT);
    }

    /// Takes up to `lists_max` list pages with pending ranges that no snapshot needs, and frees these ranges. Returns
    /// whether there was such a list page.
    fn take_lists(&mut self, files: &Files, lists_max: usize) -> bool {
        let end = self.space.pages() * files.page_size as u64;
        let read = |ptr: &Ptr| files.page(ptr, end);
        self.space.reclaim(&self.live, lists_max, &read) > 0
    }

    /// Plans and builds the free-space part of a meta record, and allocates the pages for it. `freed_ranges` are the
    /// ranges that the transaction has freed; `txn` are its allocations so far, all of them staged.
    pub(crate) fn build_lists(
        &mut self,
        shared: &Shared,
        txn: &mut TxnSpace,
        number: u64,
        freed_ranges: &[FreedRange],
    ) -> Result<Built> {
        let end = self.space.pages() * shared.files.page_size as u64;
        let read = |ptr: &Ptr| shared.files.page(ptr, end);
        let plan = self.space.plan(number, freed_ranges, &self.live, &read);
        let pieces = self.alloc_pieces(shared, txn, plan.pages(), plan.pieces_max())?;
        self.space.build(plan, pieces, &read)
    }

    /// Adopts the result of `build_lists` after the meta record was written.
    pub(crate) fn install_lists(&mut self, built: Built) {
        self.space.install(built, &self.live);
    }

    /// Allocates pages as one extent, adjacent to the transaction's other extents if possible, otherwise as several
    /// extents. The file grows only if there is no other way: in a file with only single free pages, each request for
    /// a few pages would otherwise grow the file.
    fn alloc_pieces(
        &mut self,
        shared: &Shared,
        txn: &mut TxnSpace,
        pages: u64,
        pieces_max: usize,
    ) -> Result<Vec<(u64, u64)>> {
        if pages == 0 {
            return Ok(Vec::new());
        }
        let enough =
            self.space.written_free_pages() >= pages + self.reserve_with(&shared.files, pages);
        if enough && !txn.compacts {
            if let Some(page) = self.space.take_next_to(pages) {
                txn.take(page, pages);
                return Ok(vec![(page, pages)]);
            }
            if let Some(pieces) = self.take_pieces(txn, pages, pieces_max) {
                return Ok(pieces);
            }
        }
        let full = match self.alloc(shared, txn, pages, true, false) {
            Ok(page) => return Ok(vec![(page, pages)]),
            Err(error) if error.is_full() => error,
            Err(error) => return Err(error),
        };
        self.take_pieces(txn, pages, pieces_max).ok_or(full)
    }

    /// Allocates currently free pages as a few extents. Returns `None`, with no pages allocated, if there are not
    /// enough.
    fn take_pieces(
        &mut self,
        txn: &mut TxnSpace,
        pages: u64,
        pieces_max: usize,
    ) -> Option<Vec<(u64, u64)>> {
        let (mut pieces, mut left) = (Vec::new(), pages);
        while left > 0 && pieces.len() < pieces_max {
            let mut size = left.min(self.space.longest_free().max(1));
            let page = loop {
                match self.space.take_extent(size) {
                    Some(page) => break Some(page),
                    None if size > 1 => size /= 2,
                    None => break None,
                }
            };
            let Some(page) = page else {
                break;
            };
            pieces.push((page, size));
            left -= size;
        }
        if left > 0 {
            for (page, pages) in pieces {
                self.space.release(page, pages);
            }
            return None;
        }
        assert!(pieces.len() <= pieces_max, "more extents than were planned");
        debug_assert_eq!(
            pieces.iter().map(|(_, size)| size).sum::<u64>(),
            pages,
            "as many pages as were planned"
        );
        for &(page, pages) in &pieces {
            txn.take(page, pages);
        }
        Some(pieces)
    }

    /// Allocates pages for a transaction, and grows the file if necessary.
    pub(crate) fn alloc(
        &mut self,
        shared: &Shared,
        txn: &mut TxnSpace,
        pages: u64,
        extent: bool,
        may_reclaim: bool,
    ) -> Result<u64> {
        let reserve = self.reserve_with(&shared.files, pages);
        let compacts = txn.compacts;
        let take = |space: &mut Space| {
            // Pages of the reserve are not available to this transaction.
            if space.written_free_pages() < pages + reserve {
                None
            } else if compacts {
                space.take_lowest(pages)
            } else if extent {
                space.take_extent(pages)
            } else {
                space.take_page()
            }
        };
        let mut retries = 0;
        let page = loop {
            let mut found = take(&mut self.space);
            // Before the file grows, pages are reclaimed from the list pages with pending ranges.
            while found.is_none() && may_reclaim && self.take_lists(&shared.files, 1) {
                found = take(&mut self.space);
            }
            if let Some(page) = found {
                break page;
            }
            if may_reclaim && self.wait_for_long_reader(shared, retries, false) {
                retries += 1;
                continue;
            }
            match self.alloc_grown(shared, txn, pages, extent, reserve) {
                Ok(page) => break page,
                Err(error)
                    if error.is_full()
                        && may_reclaim
                        && self.wait_for_long_reader(shared, retries, true) =>
                {
                    retries += 1;
                }
                Err(error) => return Err(error),
            }
        };
        txn.take(page, pages);
        Ok(page)
    }

    /// Grows the file to allocate pages, because there is no free range for them, or because they would use the
    /// reserve.
    fn alloc_grown(
        &mut self,
        shared: &Shared,
        txn: &mut TxnSpace,
        pages: u64,
        extent: bool,
        reserve: u64,
    ) -> Result<u64> {
        let tail = self.space.tail_free();
        let missing = (pages + reserve).saturating_sub(self.space.written_free_pages());
        // The pages are taken from the beginning of the free end of the file, so that space reserved for growth stays
        // at the end.
        let start = self.space.pages() - tail;
        let grown = self.grow(shared, txn, pages.max(tail + missing));
        let refused = match grown {
            Ok(()) => None,
            Err(error) if error.is_full() => {
                // Meta records are requested soon, since they make freed pages available.
                self.freed.ask_for_records();
                Some(error)
            }
            Err(error) => return Err(error),
        };
        let compacts = txn.compacts;
        let take = |space: &mut Space| match (compacts, extent || pages > 1) {
            (true, _) => space.take_lowest(pages),
            (false, true) => space.take_extent(pages),
            (false, false) => space.take_page(),
        };
        let free = match &refused {
            None => None,
            Some(_) if !txn.frees_space => None,
            Some(_) => take(&mut self.space),
        };
        match (free, refused) {
            (Some(page), _) => {
                txn.took_reserve = true;
                Ok(page)
            }
            (None, Some(error)) => Err(error),
            (None, None) => Ok(match take(&mut self.space) {
                Some(page) => page,
                None => self.space.take_at(start, pages),
            }),
        }
    }

    /// Number of pages that are kept free for transactions that free space.
    pub(crate) fn reserve_pages(&self, files: &Files) -> u64 {
        self.reserve_with(files, 0)
    }

    /// Length in pages of the reserve once `more` pages are in use: an extent that is large relative to the file
    /// increases the reserve.
    fn reserve_with(&self, files: &Files, more: u64) -> u64 {
        let in_use = self.space.pages() - self.space.free_pages();
        reserve_for(in_use + more, files)
    }

    /// Checks a transaction that has used the reserve: returns an error unless it frees as many pages as it allocates,
    /// or leaves the reserve nearly whole. Deleting a few rows copies a leaf, and the copy, or a page above it, may be
    /// a page longer. At most an eighth of the reserve may be lost this way.
    pub(crate) fn check_reserve(&self, files: &Files, txn: &TxnSpace) -> Result<()> {
        // The reserve is computed for the start of the transaction. The copies that the transaction has made count as
        // in use now, but they replace pages that it frees.
        let in_use = self.space.pages() - self.space.free_pages();
        let reserve = reserve_for(in_use.saturating_sub(txn.own_pages), files);
        let free = self.space.written_free_pages();
        // `took_reserve` is false if the file could grow. The reserve was not used then, even if it now exceeds the
        // number of free pages because more pages are in use.
        let worn = (reserve / RESERVE_WORN_PART).max(1);
        let whole = free + txn.freed_pages >= reserve.saturating_sub(worn);
        if !txn.took_reserve || free >= reserve || whole || txn.freed_pages >= txn.own_pages {
            return Ok(());
        }
        Err(DiskError::DiskFull {
            needed_bytes: (reserve - free) * files.page_size as u64,
        }
        .into())
    }

    /// Records how many pages of the file a committed transaction needs. These are the pages up to the last used
    /// page, or `recorded`, the page count in its meta record, which is larger if the bitmaps also describe free
    /// pages at the end. Returns the number of the first page after the last used page.
    pub(crate) fn note_end(&mut self, txn: u64, recorded: Option<u64>) -> u64 {
        let end = self.space.end();
        assert!(
            end <= self.space.pages(),
            "pages are in use behind the end of the file"
        );
        self.ends.insert(txn, end.max(recorded.unwrap_or(0)));
        end
    }

    /// Minimum number of bytes by which the file grows: the current length, up to the step set in the options. A
    /// small file thus stays small, and the number of growth steps is logarithmic in the length.
    fn growth_bytes(&self, files: &Files) -> u64 {
        let file_bytes = self.space.pages() * files.page_size as u64;
        files.options.growth_bytes_min.min(file_bytes)
    }

    /// Grows the file so that at least `pages` pages at its end are free.
    fn grow(&mut self, shared: &Shared, txn: &TxnSpace, pages: u64) -> Result<()> {
        let page_bytes = shared.files.page_size as u64;
        let need = pages.saturating_sub(self.space.tail_free());
        if need == 0 {
            return Ok(());
        }
        let options = &shared.files.options;
        let (old, written) = (self.space.pages(), txn.own_pages * page_bytes);
        let most = options.growth_bytes_max.max(options.growth_bytes_min);
        let bulk = need * page_bytes >= BULK_BYTES || written >= BULK_BYTES;
        // Reserving space for a bulk write costs a call but no write of zeros, and the rest of the space is wasted
        // when the bulk write ends. The growth step of a bulk write is therefore smaller.
        let part = if bulk { 16 } else { 8 };
        let step = (old * page_bytes / part).clamp(self.growth_bytes(&shared.files), most);
        let bytes_max = shared.files.bounds.most_bytes();
        let bound = bytes_max / page_bytes;
        if old + need > bound {
            return Err(Error::FileFull {
                needed_bytes: need * page_bytes,
                bytes_max,
            });
        }
        let least = (shared.files.bounds.least_bytes() / page_bytes).saturating_sub(old);
        let (step, how) = if bulk {
            let step = step.max((written / 4).min(BULK_GROWTH_BYTES_MAX));
            (need + step / page_bytes, Growth::Reserve)
        } else {
            (need.max(step / page_bytes), Growth::Zeros)
        };
        let step = step.max(least).min(bound - old);
        assert!(step >= need, "the file grows by what is needed");
        let (mut more, mut grown) = (step, self.extend(&shared.files, old + step, how));
        if grown.is_err() && step > need {
            (more, grown) = (need, self.extend(&shared.files, old + need, how));
        }
        grown.map_err(|source| {
            let bytes = need * page_bytes;
            Error::of_write("growth", old * page_bytes, bytes, source)
        })?;
        self.space.grow(old + more);
        shared.files.log(&Event::Grew {
            from: old * page_bytes,
            to: (old + more) * page_bytes,
        });
        if how == Growth::Zeros && !self.last.lazy && !active(Bug::GrowthNotDurable) {
            // The length is synced now, so that later small commits find space that is already written and durable.
            // Lazy commits need no sync; the first durable commit after them syncs the length (invariant 2).
            self.sync_length(shared)?;
        }
        Ok(())
    }

    fn extend(&mut self, files: &Files, pages: u64, how: Growth) -> std::io::Result<()> {
        let grown = files.storage.grow(pages * files.page_size as u64, how);
        self.length_unsynced = true;
        grown
    }

    /// Syncs the data and the length of the file. A failure poisons the handle.
    pub(crate) fn sync_length(&mut self, shared: &Shared) -> Result<()> {
        shared
            .pipeline
            .sync_in_background(&shared.files, "sync", 0, true)?;
        self.length_unsynced = false;
        Ok(())
    }
}

/// Returns the length in pages of the reserve of a file with `in_use` pages in use, including the head. It is a
/// quarter of these pages, at most the limit in the options. A small file needs more: a transaction that removes data
/// copies each page at most once, so room for a copy of every page and for a few extra pages suffices. This minimum
/// never exceeds [`RESERVE_PAGES_MIN`].
fn reserve_for(in_use: u64, files: &Files) -> u64 {
    let content = in_use.saturating_sub(first_page(files.page_size));
    let small = (content + RESERVE_SPARE_PAGES).min(RESERVE_PAGES_MIN);
    let most = files.options.reserve_bytes / files.page_size as u64;
    // The head of the file is not counted, since it is never copied or freed.
    most.min((content / 4).max(small))
}
