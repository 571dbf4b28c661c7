//! Freeing dead space inside extents: live leaves move to new extents.
//!
//! An extent holds leaves of many series, and is free only once all of them are dead. If each extent holds one series
//! after the other, as after an import, a cap for the whole file that removes the oldest leaves of each series would
//! free nothing.

use super::run::Run;
use crate::txn::read::ReadTxn;
use crate::types::error::Result;
use crate::types::error::kind::ErrorKind;
use tidalite_base::SeriesId;
use tidalite_kv::Relocation;
use tidalite_pager::PageRead;
use tidalite_series::Moving;

/// Number of bytes moved per commit: the copies need additional space until the next commit.
pub(super) const STEP_BYTES: u64 = 1 << 20;

impl ReadTxn {
    /// Number of bytes that moving leaves could free, counting the extents with more than a page of dead space.
    pub(super) fn dead_room(&self) -> Result<u64> {
        let page_size = self.pages.page_size() as u64;
        Ok(Moving::most_dead(&self.pages, &self.cache.roots.extents, page_size, u64::MAX)?.1)
    }
}

impl Run<'_> {
    /// Moves leaves out of the extents with the highest ratio of dead to live bytes, until about `wanted` bytes are
    /// free. Returns false if the call of `maintain` must end here. On a full disk nothing is moved: removals then
    /// continue until whole extents are dead.
    pub(super) fn repack(&mut self, wanted: u64) -> Result<bool> {
        let snap = self.database.begin_read()?;
        let page_size = snap.pages.page_size() as u64;
        let extents = &snap.cache.roots.extents;
        let (moving, room) = Moving::most_dead(&snap.pages, extents, page_size, wanted)?;
        drop(snap);
        if room == 0 {
            return Ok(true);
        }
        let mut at = (SeriesId(0), i64::MIN);
        loop {
            let Some(mut txn) = self.begin()? else {
                return Ok(false);
            };
            txn.free_space();
            let mut step = Relocation {
                boundary: u64::MAX,
                second_boundary: u64::MAX,
                pages: (STEP_BYTES / page_size).max(1),
                reads: u64::MAX,
            };
            let pages = step.pages;
            let moved =
                txn.changing(|txn| txn.leaves.relocate(&mut txn.pages, &moving, &mut step, at));
            let done = moved.and_then(|next| {
                if step.pages < pages {
                    txn.commit()?;
                }
                Ok(next)
            });
            match done {
                Err(error) if error.kind() == ErrorKind::Full => {
                    return Ok(true);
                }
                next => {
                    self.done.commits += u64::from(step.pages < pages);
                    match next? {
                        Some(next) => at = next,
                        None => return Ok(true),
                    }
                }
            }
        }
    }
}
