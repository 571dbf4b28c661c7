//! What the one writer needs: the free space and the newest durable record. Growth of the file.
//!
//! Invariants
//! 1. Before a page is reused for the first time after open, the durable record that was found is
//!    rewritten (`confirm`), one block at a time: it may have come from a process that was killed before
//!    its sync, and then only the record before it is on the medium.
//! 2. `length_unsynced` while the file's length may be lost by a power cut; the next durable commit then
//!    syncs the length too, before any meta record relies on it.

mod evict;
mod freed;
pub(crate) mod last;
mod poison_freed;
mod second_file;
mod truncate;

use crate::commit::found::Found;
use crate::commit::redo::Recorder;
use crate::commit::shared::Shared;
use crate::error::{Error, Result};
use crate::format::layout::{LARGE_AT, first_page, meta_at};
use crate::format::meta::{COUNT_MAX, Dead, Meta};
use crate::format::meta_blocks::Confirmation;
use crate::format::pins::Pins;
use crate::format::ptr::Ptr;
use crate::format::superblock::read_failed;
use crate::options::event::Event;
use crate::seeded::{Bug, active};
use crate::space::build::Built;
use crate::space::free_space::Space;
use crate::space::large::Large;
use crate::space::{LISTS_PER_COMMIT, TxnSpace, load};
use crate::storage::Growth;
use crate::txn::dirty::Spare;
use freed::Freed;
use last::Last;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A transaction that has allocated this much, or needs this much at once, is a bulk write.
const BULK_BYTES: u64 = 1 << 20;
/// A bulk write reserves a quarter of what it has written already, at most this.
const BULK_GROWTH_BYTES_MAX: u64 = 64 << 20;
/// The smallest reserve of a file that uses more pages than this.
const RESERVE_PAGES_MIN: u64 = 64;
/// The reserve of a smaller file is a copy of each page in use and this many pages more: for the free-space structure, and for a copy that
/// is a page longer than its original.
const RESERVE_SPARE_PAGES: u64 = 4;
/// This part of the reserve, at least a page, may be lost to transactions that free a little less than they take.
const RESERVE_WORN_PART: u64 = 8;

/// The ends of commits that nobody sees any more are forgotten when there are so many to each that somebody does.
const ENDS_PER_LIVE: usize = 16;

#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) space: Space,
    /// The newest record made: what the next one builds on.
    pub(crate) meta: Arc<Meta>,
    pub(crate) length_unsynced: bool,
    pub(crate) pins: Pins,
    /// The snapshots that lived when this transaction began, ascending.
    live: Vec<u64>,
    /// How far readers of a transaction may look, and how long a file its record asks for, whichever is more; in pages.
    ends: BTreeMap<u64, u64>,
    /// Where free stretches were punched last.
    punch_zone: usize,
    cannot_punch: bool,
    cannot_punch_large: bool,
    /// How the record is rewritten.
    confirmation: Confirmation,
    /// Copies of the record that were rewritten; 2 when it is confirmed.
    confirmed: usize,
    pub(crate) freed: Freed,
    /// Pages in use when this handle made the log.
    pub(crate) log_made_at: u64,
    /// There was no room for a log twice as long.
    pub(crate) log_bytes_most: u64,
    /// For the log.
    pub(crate) recorder: Option<Recorder>,
    /// Memory for the next transaction.
    pub(crate) spare: Spare,
    /// The commit before of this handle: the next one is likely to be of its kind.
    pub(crate) last: Last,
}

/// Who writes must have the second file that the record names: else a record would be made of values that nobody has synced, or values
/// go to another file. Another process may have given the database one since it was opened here.
fn expect_known(shared: &Shared, large: Option<&Large>) -> Result<()> {
    let (path, problem) = match (&shared.files.large, large) {
        (None, Some(large)) => (
            PathBuf::from(&large.id.name),
            "the database has come to have it since it was opened here without one",
        ),
        (Some(file), Some(large)) if file.id.uuid != large.id.uuid => (
            file.path.clone(),
            "the database has come to name another one since it was opened here",
        ),
        _ => return Ok(()),
    };
    Err(Error::LargeFile {
        path,
        problem: problem.into(),
    })
}

/// A number beyond `COUNT_MAX` could be committed, but not read again. Only a damaged file comes near: half of them are never used up.
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
    /// Reads the free space of a record.
    pub(crate) fn load(shared: &Shared, found: Found) -> Result<Self> {
        let Found {
            meta,
            durable,
            before,
            confirmation,
            ..
        } = &found;
        let end = meta.pages * shared.files.page_size as u64;
        let mut space = load::load(shared.files.page_size, meta, *before, &|ptr| {
            shared.files.page(ptr, end)
        })?;
        let mut pins = Pins::load(meta, &|ptr| shared.files.block(ptr, end))?;
        if durable.txn < meta.txn {
            let end = durable.pages * shared.files.page_size as u64;
            pins.keep_those_of(durable, meta.txn, &|ptr| shared.files.block(ptr, end))?;
        }
        space.durable = [durable.txn, *before];
        if shared.files.options.recent_first {
            space.take_recent_first();
        }
        if shared.files.options.spoil_freed {
            space.remember_freed();
        }
        let len = shared
            .files
            .storage
            .len()
            .map_err(|error| read_failed(0, error))?;
        let pages = if shared.files.storage.resizes() {
            (len / shared.files.page_size as u64).max(meta.pages)
        } else {
            // What lies behind is taken step by step, as if the file grew.
            meta.pages
        };
        if !shared.files.options.read_only {
            expect_known(shared, space.large.as_deref())?;
            expect_numbers(meta.txn.max(durable.sequence))?;
        }
        if let Some(file) = &shared.files.large {
            let large = space.large.get_or_insert_with(|| {
                Box::new(Large::new(shared.files.page_size, file.id.clone()))
            });
            large.rename(&file.id.name);
            if file.storage.resizes() {
                let len = file.storage.len();
                let len = len.map_err(|error| read_failed(LARGE_AT, error))?;
                // Cut, and no record told of it.
                large.cut(len / shared.files.page_size as u64);
            }
        }
        let longer = pages > meta.pages;
        if longer {
            // Left by a growth that no commit came to use.
            space.grow(pages);
        }
        Ok(Self {
            space,
            meta: Arc::new(meta.clone()),
            length_unsynced: longer,
            pins,
            live: Vec::new(),
            ends: BTreeMap::from([(meta.txn, meta.pages)]),
            punch_zone: 0,
            cannot_punch: false,
            cannot_punch_large: false,
            confirmation: *confirmation,
            freed: Freed::default(),
            log_made_at: 0,
            log_bytes_most: u64::MAX,
            recorder: None,
            spare: Spare::default(),
            last: Last::default(),
            // Another process that is alive, or was a moment ago, may have said that it is on the medium.
            confirmed: if shared.files.lock.area.durable().load(Ordering::Acquire) == durable.txn {
                2
            } else {
                0
            },
        })
    }

    /// Makes sure that the record this process stands on is on the medium.
    pub(crate) fn confirm(&mut self, shared: &Shared) -> Result<()> {
        // After a failed write the next attempt goes on with that copy: the other one is sound.
        let Confirmation { number, first } = self.confirmation;
        if self.confirmed == 2 {
            return Ok(());
        }
        let mut record = shared.pipeline.durable();
        record.confirmations = number;
        for step in self.confirmed..2 {
            let at = meta_at(record.pair(), if step == 0 { first } else { 1 - first });
            let block = record.encode(at);
            let failed = |error| Error::of_write("meta write", at, block.len() as u64, error);
            shared.files.storage.write_at(at, &block).map_err(failed)?;
            let pipeline = &shared.pipeline;
            pipeline.sync_beside(&shared.files, "sync of a meta block", at, false)?;
            self.confirmed = step + 1;
        }
        shared.files.note_durable(record.txn);
        shared.pipeline.confirmed();
        Ok(())
    }

    /// This is the newest durable record.
    pub(crate) fn durable_is(&mut self, txn: u64) {
        if txn != self.space.durable[0] {
            self.freed.record();
        }
        self.space.durable_is(txn);
    }

    /// The older durable state was asked for, or the newest may not be on the medium.
    fn keeps_older(&self, shared: &Shared) -> bool {
        shared.files.options.keep_older || self.confirmed < 2
    }

    /// Frees what no snapshot holds any more, a bounded step. Only for who has the turn.
    pub(crate) fn reclaim(&mut self, shared: &Shared) {
        self.reclaim_in_memory(shared);
        self.spoil(shared);
        self.note_held(shared);
    }

    /// The same, and nobody learns of it.
    pub(crate) fn reclaim_in_memory(&mut self, shared: &Shared) {
        let durable = &self.space.durable[..=usize::from(self.keeps_older(shared))];
        self.live = shared.live();
        self.live.extend(self.pins.live(durable[durable.len() - 1]));
        if !active(Bug::ReuseEarly) {
            self.live.extend_from_slice(durable);
        }
        self.live.sort_unstable();
        self.live.dedup();
        if self.ends.len() > ENDS_PER_LIVE * (self.live.len() + 1) {
            let newest = self.live.last().copied().unwrap_or(0);
            let live = &self.live;
            self.ends
                .retain(|txn, _| *txn > newest || live.binary_search(txn).is_ok());
        }
        self.take_lists(shared, LISTS_PER_COMMIT);
    }

    /// Takes up to so many lists of dead ranges whose holders are gone; true when there was one.
    fn take_lists(&mut self, shared: &Shared, lists_max: usize) -> bool {
        let end = self.space.pages() * shared.files.page_size as u64;
        let read = |ptr: &Ptr| shared.files.page(ptr, end);
        self.space.reclaim(&self.live, lists_max, &read) > 0
    }

    /// Plans and builds what a record says about space, with the pages for it. `dead` is what its transaction
    /// freed, `txn` what it allocated so far (all of it staged).
    pub(crate) fn build_lists(
        &mut self,
        shared: &Shared,
        txn: &mut TxnSpace,
        number: u64,
        dead: &[Dead],
    ) -> Result<Built> {
        let end = self.space.pages() * shared.files.page_size as u64;
        let read = |ptr: &Ptr| shared.files.page(ptr, end);
        let plan = self.space.plan(number, dead, &self.live, &read);
        let pieces = self.alloc_pieces(shared, txn, plan.pages(), plan.pieces_max())?;
        self.space.build(plan, pieces, &read)
    }

    /// Takes over what `build_lists` built: the record was written.
    pub(crate) fn install_lists(&mut self, built: Built) {
        self.space.install(built, &self.live);
    }

    /// Takes pages in one extent, beside those of the transaction if that can be, or in several. A longer file is the last resort: where
    /// a few pages are looked for in a file of single free ones, it would grow for them again and again.
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
        let enough = self.space.written_free_pages() >= pages + self.reserve_with(shared, pages);
        if enough && !txn.compacts {
            if let Some(page) = self.space.take_beside(pages) {
                txn.take(page, pages);
                return Ok(vec![(page, pages)]);
            }
            if let Some(pieces) = self.take_pieces(txn, pages, pieces_max) {
                return Ok(pieces);
            }
        }
        let full = match self.alloc(shared, txn, pages, true, false) {
            Ok(page) => return Ok(vec![(page, pages)]),
            Err(error @ (Error::DiskFull { .. } | Error::FileFull { .. })) => error,
            Err(error) => return Err(error),
        };
        self.take_pieces(txn, pages, pieces_max).ok_or(full)
    }

    /// Takes pages that are free now, in few extents; `None`, and nothing taken, when these do not do.
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
        for &(page, pages) in &pieces {
            txn.take(page, pages);
        }
        Some(pieces)
    }

    /// Takes pages for a transaction; the file grows when it must.
    pub(crate) fn alloc(
        &mut self,
        shared: &Shared,
        txn: &mut TxnSpace,
        pages: u64,
        extent: bool,
        may_reclaim: bool,
    ) -> Result<u64> {
        let reserve = self.reserve_with(shared, pages);
        let compacts = txn.compacts;
        let take = |space: &mut Space| {
            // As if what is reserved were not there.
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
            // What waits on the lists comes before a longer file.
            while found.is_none() && may_reclaim && self.take_lists(shared, 1) {
                found = take(&mut self.space);
            }
            if let Some(page) = found {
                break page;
            }
            if may_reclaim && self.relieve(shared, retries, false) {
                retries += 1;
                continue;
            }
            match self.alloc_grown(shared, txn, pages, extent, reserve) {
                Ok(page) => break page,
                Err(Error::DiskFull { .. } | Error::FileFull { .. })
                    if may_reclaim && self.relieve(shared, retries, true) =>
                {
                    retries += 1;
                }
                Err(error) => return Err(error),
            }
        };
        txn.take(page, pages);
        Ok(page)
    }

    /// Takes pages that would leave less than the reserve, or that are not there: the file grows, so that both are there.
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
        // From where the free end of the file begins, so that what is grown ahead stays behind.
        let start = self.space.pages() - tail;
        let grown = self.grow(shared, txn, pages.max(tail + missing));
        let refused = match grown {
            Ok(()) => None,
            Err(error @ (Error::DiskFull { .. } | Error::FileFull { .. })) => {
                // What is freed from here on is to come back soon.
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

    /// Pages that stay free for transactions that free space.
    pub(crate) fn reserve_pages(&self, shared: &Shared) -> u64 {
        self.reserve_with(shared, 0)
    }

    /// The same once so many more pages are in use: an extent that is large beside the file takes its own share of the reserve along.
    fn reserve_with(&self, shared: &Shared, more: u64) -> u64 {
        let in_use = self.space.pages() - self.space.free_pages();
        reserve_for(in_use + more, shared)
    }

    /// Whether a transaction that has taken of the reserve gives as much as it takes, or leaves it all but whole: to delete a few rows
    /// copies a leaf, and the copy, or a page above it, may be a page longer. An eighth of the reserve may be lost so, not more.
    pub(crate) fn check_reserve(&self, shared: &Shared, txn: &TxnSpace) -> Result<()> {
        // The reserve that the transaction found. Its copies count as in use now, but they replace pages that it frees.
        let in_use = self.space.pages() - self.space.free_pages();
        let reserve = reserve_for(in_use.saturating_sub(txn.own_pages), shared);
        let free = self.space.written_free_pages();
        // Where the file could grow nothing was taken of the reserve, even if a reserve that grows with what is in use
        // has become larger than what is free.
        let worn = (reserve / RESERVE_WORN_PART).max(1);
        let whole = free + txn.freed_pages >= reserve.saturating_sub(worn);
        if !txn.took_reserve || free >= reserve || whole || txn.freed_pages >= txn.own_pages {
            return Ok(());
        }
        Err(Error::DiskFull {
            needed_bytes: (reserve - free) * shared.files.page_size as u64,
        })
    }

    /// A commit is done: how far its readers may look. `recorded`: the pages that its record counts, which are more where
    /// the structure of free space describes a tail that is free.
    pub(crate) fn note_end(&mut self, txn: u64, recorded: Option<u64>) -> u64 {
        let end = self.space.end();
        self.ends.insert(txn, end.max(recorded.unwrap_or(0)));
        end
    }

    /// The smallest step by which the file grows: as much as it is long, until that is the step of the options. So a small file stays
    /// small, and the number of steps to a length grows with its logarithm.
    fn growth_bytes(&self, shared: &Shared) -> u64 {
        let file_bytes = self.space.pages() * shared.files.page_size as u64;
        shared.files.options.growth_bytes_min.min(file_bytes)
    }

    /// Makes the file longer, so that it ends with `pages` free pages at least.
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
        // What a bulk write reserves costs a call and no write of zeros, and is there for nothing when it ends.
        let part = if bulk { 16 } else { 8 };
        let step = (old * page_bytes / part).clamp(self.growth_bytes(shared), most);
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
        let (mut more, mut grown) = (step, self.extend(shared, old + step, how));
        if grown.is_err() && step > need {
            (more, grown) = (need, self.extend(shared, old + need, how));
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
            // Ahead, so that the small commits to come find written, durable space. Lazy ones need none; the first durable one
            // after them syncs the length (invariant 2).
            self.sync_length(shared)?;
        }
        Ok(())
    }

    fn extend(&mut self, shared: &Shared, pages: u64, how: Growth) -> std::io::Result<()> {
        let grown = shared
            .files
            .storage
            .grow(pages * shared.files.page_size as u64, how);
        self.length_unsynced = true;
        grown
    }

    /// Syncs data and length. A failure poisons.
    pub(crate) fn sync_length(&mut self, shared: &Shared) -> Result<()> {
        shared
            .pipeline
            .sync_beside(&shared.files, "sync", 0, true)?;
        self.length_unsynced = false;
        Ok(())
    }
}

/// The reserve of a file with so many pages in use, those of the head among them: a quarter of them, at most what the options say. In a small file
/// a transaction that removes something copies each page once at most, so a copy of every page, and a few for the record, are
/// enough, whatever it removes; from [`RESERVE_PAGES_MIN`] pages on it need not be more than these.
fn reserve_for(in_use: u64, shared: &Shared) -> u64 {
    let content = in_use.saturating_sub(first_page(shared.files.page_size));
    let small = (content + RESERVE_SPARE_PAGES).min(RESERVE_PAGES_MIN);
    let most = shared.files.options.reserve_bytes / shared.files.page_size as u64;
    // The head is never freed: it is not counted.
    most.min((content / 4).max(small))
}
