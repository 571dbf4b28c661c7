//! Compaction: pages at the file's end move into free space further down, in write transactions of bounded size,
//! concurrently with readers and other writers; then the file is truncated.
//!
//! First the log is given up, and commits without changes let dead pages become free. A *pass* then fixes a boundary
//! slightly beyond the pages in use. It walks every structure once and moves the pages at or after the boundary, the
//! leaves in sparse extents, and values at the end of the second file that fit further down. Passes repeat while they
//! gain something. The position between steps is kept in memory (`Pass`); pages that other writers place after the
//! boundary meanwhile are found by the next pass. Correctness does not depend on a pass being finished.
//!
//! ```text
//! tables (by name, by key) -> catalog -> leaves (by series, by time) -> their records, extents table -> delta -> settle
//! ```

use crate::catalog::table_roots::{find_table, table_from};
use crate::database::handle::Database;
use crate::txn::compaction_pass::{At, Pass};
use crate::txn::open_table::OpenTable;
use crate::txn::write::WriteTxn;
use crate::types::error::Result;
use std::ops::Bound;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use tidalite_base::SeriesId;
use tidalite_base::limits::SECOND_FILE_AT;
use tidalite_delta::DeltaPosition;
use tidalite_kv::Relocation;
use tidalite_pager::{Durability, PageRead};
use tidalite_series::Moving;

/// Branch pages that a step may read for each page that it may move.
const LOOKS_PER_PAGE: u64 = 64;
const PAGES_MIN: u64 = 16;
/// Maximum number of passes. Each pass moves at most the pages after its boundary; the first one also moves the leaves
/// of sparse extents.
const PASSES_MAX: u32 = 8;
/// Maximum number of consecutive passes that gain nothing. One such pass is allowed: if free space was fragmented, a
/// large extent had to move to the end of the file, and only this made the pages that it left contiguous.
const FRUITLESS_MAX: u32 = 2;
/// The boundary of a pass is this fraction of the pages in use, and two pages, beyond the pages in use. The slack
/// allows for free fragments that are too small for anything.
const SLACK_PART: u64 = 128;
const SLACK_PAGES: u64 = 2;
/// A second file that exceeds its minimum length by at most this much is short enough.
const SECOND_STEP_BYTES: u64 = 1 << 20;
/// Maximum number of commits before the first pass and after each pass that wait until moved pages are free and the
/// file is truncated.
const SETTLING: u32 = 6;

/// Progress of a compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compaction {
    /// True if nothing more can be moved or truncated at present.
    pub done: bool,
    /// Bytes moved by this step, approximately.
    pub moved_bytes: u64,
    /// Current size of the file in bytes.
    pub file_bytes: u64,
    /// Bytes in use, including pages retained by snapshots.
    pub used_bytes: u64,
    /// Current size of the second file in bytes; 0 if there is no second file.
    pub large_bytes: u64,
    /// Bytes currently free inside the file, including the reserve.
    pub free_bytes: u64,
    /// Free bytes that the file keeps so that points and rows can be removed on a full disk
    /// ([`Tuning::reserve_bytes`](crate::Tuning::reserve_bytes)).
    pub reserve_bytes: u64,
    /// Bytes that the newest version does not need, but that a reader, a pin or the previous durable record may still
    /// read. Another compaction can return them once no reader, pin or record needs them.
    pub waiting_bytes: u64,
}

impl Database {
    /// Performs a step of compaction in one write transaction: moves up to about `budget_bytes` from the file's end
    /// into free space further down, and truncates the file as far as no snapshot needs its end. Call this until the
    /// result has `done`; a reader that retains old pages prevents truncation, but not the moving of pages.
    ///
    /// # Errors
    /// As for a write transaction; a damaged page in the way (then nothing was moved; `check` reports the page).
    ///
    /// # Cost
    /// Moving the budget, reading branches to find the pages to move, and a durable commit. A value in an extent counts
    /// in full.
    pub fn compact(&self, budget_bytes: u64) -> Result<Compaction> {
        let mut kept = self
            .shared
            .pass
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if kept.is_none() {
            if let Some(done) = self.nothing_changed()? {
                return Ok(done);
            }
            self.free_what_waits()?;
        }
        let mut tx = self.begin_write()?;
        let page_size = tx.pages.page_size() as u64;
        let pages = (budget_bytes / page_size).max(PAGES_MIN);
        let mut pass = match kept.take() {
            Some(pass) => pass,
            None => match begin_pass(&tx, 0, 0)? {
                Some(pass) => pass,
                None => {
                    drop(tx);
                    self.shorten()?;
                    return self.compacted(true, 0);
                }
            },
        };
        let mut step = Relocation {
            boundary: pass.moving.boundary,
            second_boundary: pass.second_boundary,
            pages,
            reads: pages.saturating_mul(LOOKS_PER_PAGE),
        };
        tx.pages.compact(step.boundary);
        while !step.is_over() && !matches!(pass.at, At::Settle) {
            advance(&mut pass, &mut tx, &mut step)?;
        }
        tx.commit_with(Durability::Durable)?;
        let moved = pages - step.pages;
        pass.moved += moved;
        let mut done = false;
        if let At::Settle = pass.at {
            self.shorten()?;
            let tx = self.begin_write()?;
            let now = ends(&tx);
            let better = (0..2).any(|file| now[file] < pass.ends[file]);
            let fruitless = if better { 0 } else { pass.fruitless + 1 };
            let more = fruitless < FRUITLESS_MAX && pass.number + 1 < PASSES_MAX;
            match begin_pass(&tx, pass.number + 1, fruitless)? {
                Some(next) if more && pass.moved > 0 => *kept = Some(next),
                _ => done = true,
            }
        } else {
            *kept = Some(pass);
        }
        self.compacted(done, moved * page_size)
    }

    /// Returns the result of a compaction with nothing to do, if the newest commit is still the one at which the last
    /// compaction finished without pages retained by a reader or pin. Returns `None` if a compaction may gain
    /// something.
    fn nothing_changed(&self) -> Result<Option<Compaction>> {
        let tx = self.begin_write()?;
        let known = self.shared.compacted.load(Ordering::Relaxed) == tx.pages.base_txn().0;
        Ok(known.then(|| Self::figures(&tx, true, 0)))
    }

    /// Commits until the log is given up and pages freed by earlier commits can be allocated, as far as no reader and
    /// no pin retains them. Such pages count as in use, so the boundary of the first pass would be too high.
    fn free_what_waits(&self) -> Result<()> {
        let mut before = u64::MAX;
        for _ in 0..SETTLING {
            let tx = self.begin_write()?;
            let (waiting, log) = (tx.pages.pages_waiting(), tx.pages.log_pages());
            drop(tx);
            // The first commit gives up the log, whose pages are pending then.
            if waiting + log == 0 || waiting >= before && log == 0 {
                break;
            }
            before = if log > 0 { u64::MAX } else { waiting };
            self.settle(u64::MAX)?;
        }
        Ok(())
    }

    /// Commits until the old places of moved pages are free and the file is truncated.
    fn shorten(&self) -> Result<()> {
        for _ in 0..SETTLING {
            let tx = self.begin_write()?;
            let [end, second_end] = ends(&tx);
            let page_size = tx.pages.page_size() as u64;
            let second_pages = tx.pages.second_file().bytes / page_size;
            let short = tx.pages.file_pages()
                <= end.max(tx.pages.pages_in_use().0 + tx.pages.pages_reserved());
            let second_short = second_pages <= second_end + SECOND_STEP_BYTES / page_size;
            drop(tx);
            if short && second_short {
                break;
            }
            self.settle(u64::MAX)?;
        }
        Ok(())
    }

    /// Makes a durable commit without changes: pages that could be reused only after a durable commit become free, and
    /// the end of the file is truncated.
    fn settle(&self, boundary: u64) -> Result<()> {
        let mut tx = self.begin_write()?;
        tx.pages.compact(boundary);
        tx.commit_with(Durability::Durable)?;
        Ok(())
    }

    fn compacted(&self, done: bool, moved_bytes: u64) -> Result<Compaction> {
        let tx = self.begin_write()?;
        // If a reader or a pin retains pages, no commit is recorded as compacted, so that a later call tries again.
        if done {
            let is_final = tx.pages.pages_waiting() == 0;
            let newest = if is_final { tx.pages.base_txn().0 } else { 0 };
            self.shared.compacted.store(newest, Ordering::Relaxed);
        }
        Ok(Self::figures(&tx, done, moved_bytes))
    }

    fn figures(tx: &WriteTxn, done: bool, moved_bytes: u64) -> Compaction {
        let page_size = tx.pages.page_size() as u64;
        let (used, _) = tx.pages.pages_in_use();
        let file_pages = tx.pages.file_pages();
        Compaction {
            done,
            moved_bytes,
            file_bytes: file_pages * page_size,
            used_bytes: used * page_size,
            large_bytes: tx.pages.second_file().bytes,
            free_bytes: file_pages.saturating_sub(used) * page_size,
            reserve_bytes: tx.pages.pages_reserved() * page_size,
            waiting_bytes: tx.pages.pages_waiting() * page_size,
        }
    }
}

/// Begins a pass; returns `None` if the file is as short as can be expected.
fn begin_pass(tx: &WriteTxn, number: u32, fruitless: u32) -> Result<Option<Pass>> {
    let (used, _) = tx.pages.pages_in_use();
    let [end, second_end] = ends(tx);
    let page_size = tx.pages.page_size() as u64;
    let boundary = used + used / SLACK_PART + SLACK_PAGES;
    let second_used = tx.pages.second_file().used;
    let second_boundary = second_used + second_used / 32 + PAGES_MIN;
    // Only the first pass rewrites sparse extents: their leaves may be placed at the end, from where later passes move
    // them down.
    let (extents, at) = (&tx.roots.extents, boundary * page_size);
    let moving = Moving::new(&tx.pages, extents, at, number == 0)?;
    let short = end <= boundary && second_end <= second_boundary;
    if short && moving.sparse_extents() == 0 {
        return Ok(None);
    }
    Ok(Some(Pass {
        at: At::Tables {
            name: String::new(),
            key: Vec::new(),
        },
        moving,
        second_boundary: SECOND_FILE_AT + second_boundary * page_size,
        number,
        fruitless,
        moved: 0,
        ends: [end, second_end],
    }))
}

/// Continues the pass until the budget of the step is used or one structure is done.
fn advance(pass: &mut Pass, tx: &mut WriteTxn, step: &mut Relocation) -> Result<()> {
    let start = Vec::new;
    pass.at = match std::mem::replace(&mut pass.at, At::Settle) {
        At::Tables { name, key } => match relocate_table(tx, &name, &key, step)? {
            Some((name, key)) => At::Tables { name, key },
            None => At::Catalog {
                tree: 0,
                key: start(),
            },
        },
        At::Catalog { tree, key } => {
            let mut trees = tx.roots.catalog_trees();
            match trees.get_mut(tree) {
                None => At::Leaves {
                    series: SeriesId(0),
                    time: i64::MIN,
                },
                Some(found) => match found.relocate(&mut tx.pages, step, &key)? {
                    Some(key) => At::Catalog { tree, key },
                    None => At::Catalog {
                        tree: tree + 1,
                        key: start(),
                    },
                },
            }
        }
        At::Leaves { series, time } => {
            let pages = &mut tx.pages;
            match tx
                .leaves
                .relocate(pages, &pass.moving, step, (series, time))?
            {
                Some((series, time)) => At::Leaves { series, time },
                None => At::Records { key: start() },
            }
        }
        At::Records { key } => match tx.leaves.records.relocate(&mut tx.pages, step, &key)? {
            Some(key) => At::Records { key },
            None => At::Extents { key: start() },
        },
        At::Extents { key } => {
            let packer = &mut tx.leaves.packer;
            match packer.relocate_table(&mut tx.pages, step, &key)? {
                Some(key) => At::Extents { key },
                None => At::Delta(DeltaPosition::default()),
            }
        }
        At::Delta(from) => match tx.delta.relocate(&mut tx.pages, step, &from)? {
            Some(next) => At::Delta(next),
            None => At::Settle,
        },
        settle @ At::Settle => settle,
    };
    Ok(())
}

/// The numbers of the first pages after the used space, in the main file and in the second file.
fn ends(tx: &WriteTxn) -> [u64; 2] {
    [tx.pages.pages_in_use().1, tx.pages.second_file().end]
}

/// Moves pages of the table `name`, from `key` on; if that table does not exist, of the next table. Returns the
/// position at which the next step continues; `None` after the last table.
fn relocate_table(
    tx: &mut WriteTxn,
    name: &str,
    key: &[u8],
    step: &mut Relocation,
) -> Result<Option<(String, Vec<u8>)>> {
    let tables = tx.roots.tables;
    let from = Bound::Included(name.as_bytes());
    let Some(found) = table_from(&tables, &tx.pages, from)? else {
        return Ok(None);
    };
    let from = if found == name { key } else { &[] };
    let Some(entry) = find_table(&tx.roots, &tx.pages, &found)? else {
        return Ok(None);
    };
    let before = entry.tree;
    let mut open = OpenTable::of(found.clone(), entry, false);
    let stop = open.tree.relocate(&mut tx.pages, step, from)?;
    if open.tree != before {
        open.changed = true;
        tx.tables.push(open);
        tx.keep_table_roots()?;
        tx.tables.clear();
        tx.known.1.clear();
    }
    if let Some(key) = stop {
        return Ok(Some((found, key)));
    }
    let tables = tx.roots.tables;
    let next = table_from(&tables, &tx.pages, Bound::Excluded(found.as_bytes()))?;
    Ok(next.map(|name| (name, Vec::new())))
}
