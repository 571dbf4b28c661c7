//! Removal by size: the oldest rows of the series under a cap, in units of a leaf or less, until the bytes in use do
//! not exceed the cap.
//!
//! The bytes freed by a removal are known only afterwards: leaves share extents, and nodes and table pages are freed
//! with them. Each step therefore removes at most the rows that are certainly in excess, and then measures again.

use super::age::Candidate;
use super::cuts::{Cuts, add_cut, clock_of};
use super::report::{CapState, Holder};
use super::run::Run;
use crate::database::handle::Database;
use crate::txn::read::ReadTxn;
use crate::txn::write::WriteTxn;
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use crate::types::instant::Steps;
use tidalite_base::SeriesId;
use tidalite_pager::PageRead as _;
use tidalite_pager::Stat;
use tidalite_series::Moving;

/// Number of parts into which the newest leaf of a series, and the rows of the series in the delta, are divided for
/// removal.
const PARTS: i64 = 16;
/// Assumed size in bytes of a row in the delta.
const WAITING_ROW_BYTES: u64 = 8;
/// The log counts for at most this fraction, a quarter, of a cap for the whole file: the log is emptied and rebuilt by
/// small commits, and under a small cap all rows would be removed for it.
const LOG_PART: u64 = 4;
/// At most this fraction, half, of the bytes of all rows is removed before the freed bytes are measured again.
const SHARE_PART: u64 = 2;
/// Maximum factor by which the number of bytes freed per byte of removed rows may fall between two measurements.
const GAIN_FALL: f64 = 4.0;
/// Minimum number of bytes freed per byte of removed rows at which a round removes less than the excess. A round that
/// falls just short needs another commit, and the log of that commit counts against the cap.
const GAIN_MIN: f64 = 1.5;
/// If this multiple of the excess can be removed, the cap can certainly be met, and no trial removal is made to find
/// out.
const SURE_TIMES: u64 = 4;
/// Maximum number of commits without changes that are made so that free pages at the end of the file are truncated.
const SETTLING: u32 = 3;
/// The file is compacted when it is longer than necessary by this fraction, a quarter. Under a cap, with rows added and
/// removed, about a tenth of the file is free in fragments that the next rows fill; repeated compaction makes such a
/// file longer.
const WORTH_PART: u64 = 4;

/// A part of a series, a leaf or a fraction of one, that can be removed once all earlier rows of the series are
/// removed.
pub(super) struct Unit {
    /// Time at which the unit ends, in nanoseconds since 1970; the oldest units are removed first.
    end: i128,
    pub(super) id: SeriesId,
    /// Raw time of the series; if this unit is removed, all rows before this time are removed.
    pub(super) cut: i64,
    bytes: u64,
}

/// Number of bytes in use, as counted for a cap for the whole file.
pub(super) fn used_bytes(stat: &Stat, cap: u64) -> u64 {
    let page_size = stat.page_size as u64;
    let idle = stat.pages_free.saturating_add(stat.pages_pending);
    let used = stat.pages_total.saturating_sub(idle) * page_size;
    used - used.min((stat.log_pages * page_size).saturating_sub(cap / LOG_PART))
}

/// The oldest units that together have at least `excess` bytes, or all units if they have less.
pub(super) fn oldest(mut units: Vec<Unit>, excess: u64) -> Vec<Unit> {
    units.sort_unstable_by_key(|unit| (unit.end, unit.id, unit.cut));
    let mut bytes = 0u64;
    let enough = units.iter().position(|unit| {
        bytes = bytes.saturating_add(unit.bytes);
        bytes >= excess
    });
    units.truncate(enough.map_or(units.len(), |last| last + 1));
    units
}

pub(super) fn cuts_of(units: &[Unit]) -> Cuts {
    let mut cuts = Cuts::new();
    for unit in units {
        add_cut(&mut cuts, unit.id, unit.cut);
    }
    cuts
}

impl Candidate {
    /// Approximate bytes of the series' rows: leaves, texts and rows in the delta.
    fn bytes(&self, texts: u64) -> u64 {
        let waiting = self.waiting.map_or(0, |(rows, ..)| rows);
        let waiting = waiting.saturating_mul(WAITING_ROW_BYTES);
        let leaves = self.tree.stored_bytes();
        leaves.saturating_add(texts).saturating_add(waiting)
    }

    /// Divides the rows between two times into `PARTS` units at most; the newest row of the series belongs to no unit.
    fn parts(&self, (begin, end): (i64, i64), bytes: u64, units: &mut Vec<Unit>) {
        let (begin, length) = (i128::from(begin), i128::from(end) - i128::from(begin));
        // If the newest row of the series is in this span, it is the last row, and no unit may include it.
        let last = length + i128::from(end < self.end);
        let offset = |part: i64| last * i128::from(part) / i128::from(PARTS);
        let mut offsets: Vec<i128> = (1..=PARTS).map(offset).collect();
        offsets.dedup();
        offsets.retain(|&offset| offset > 0);
        let each = bytes / (offsets.len() as u64).max(1);
        for offset in offsets {
            // The cut is at most one step after the span. It does not overflow, because a later row exists then.
            units.push(self.unit((begin + offset) as i64, each));
        }
    }

    fn unit(&self, cut: i64, bytes: u64) -> Unit {
        Unit {
            end: clock_of(self.info.schema.unit, cut),
            id: self.info.id,
            cut,
            bytes,
        }
    }
}

impl ReadTxn {
    fn text_bytes(&self, own: &Candidate) -> Result<u64> {
        let columns = own.info.schema.columns.iter().enumerate();
        let columns = columns.filter(|(_, column)| column.ty.is_text());
        let texts = &self.cache.roots.texts;
        crate::catalog::texts::block_bytes(&self.pages, texts, own.info.id, columns.map(|(c, _)| c))
    }

    /// Approximate bytes of the rows of the pattern's series.
    pub(super) fn series_bytes(&self, pattern: &str) -> Result<u64> {
        let waiting = self.waiting()?;
        let mut bytes = 0u64;
        for info in self.list_for_policies(pattern)? {
            if let Some(own) = self.candidate(info, &waiting)? {
                bytes = bytes.saturating_add(own.bytes(self.text_bytes(&own)?));
            }
        }
        Ok(bytes)
    }

    /// Approximate bytes of the leaves that could be removed, and of the dead space in extents.
    fn removable_bytes(&self) -> Result<u64> {
        let mut bytes = self.dead_room()?;
        for info in self.list_for_policies("")? {
            let tree = self.tree_of(&info)?;
            if tree.span().is_some_and(|(begin, end)| begin < end) {
                bytes = bytes.saturating_add(tree.stored_bytes());
            }
        }
        Ok(bytes)
    }

    /// Time of the newest row of each series: cutting there leaves only that row.
    fn newest_rows(&self) -> Result<Cuts> {
        let waiting = self.waiting()?;
        let mut cuts = Cuts::new();
        for info in self.list_for_policies("")? {
            let id = info.id;
            if let Some(own) = self.candidate(info, &waiting)? {
                cuts.insert(id, own.end);
            }
        }
        Ok(cuts)
    }

    /// Removable units of the pattern's series. Each series contributes its oldest units until their bytes reach
    /// `excess`.
    pub(super) fn units(&self, pattern: &str, excess: u64) -> Result<Vec<Unit>> {
        let waiting = self.waiting()?;
        let mut units = Vec::new();
        for info in self.list_for_policies(pattern)? {
            if let Some(own) = self.candidate(info, &waiting)? {
                self.units_of(&own, excess, &mut units)?;
            }
        }
        Ok(units)
    }

    fn units_of(&self, own: &Candidate, excess: u64, units: &mut Vec<Unit>) -> Result<()> {
        let texts = self.text_bytes(own)?;
        let rows = own.tree.count().max(1);
        let mut seen = 0u64;
        own.tree.for_each_leaf_while(&self.pages, |leaf| {
            // Texts are assumed to be equally long in all leaves.
            let texts = u128::from(texts) * u128::from(leaf.count) / u128::from(rows);
            let bytes = leaf.bytes.saturating_add(texts as u64);
            if leaf.end < own.end {
                units.push(own.unit(leaf.end.saturating_add(1), bytes));
            } else {
                own.parts((leaf.begin, leaf.end), bytes, units);
            }
            seen = seen.saturating_add(bytes);
            seen < excess
        })?;
        if let Some((rows, first, last)) = own.waiting {
            own.parts((first, last), rows.saturating_mul(WAITING_ROW_BYTES), units);
        }
        Ok(())
    }
}

impl Run<'_> {
    /// Removes rows until no cap is exceeded. Returns false if the call of `maintain` must end here.
    pub(super) fn by_size(&mut self) -> Result<bool> {
        let policies = self.database.begin_read()?.retentions()?;
        let caps = policies
            .into_iter()
            .filter_map(|(_, policy)| Some((policy.pattern, policy.bytes?)));
        let (whole, caps): (Vec<_>, Vec<_>) = caps.partition(|(pattern, _)| pattern.is_empty());
        let file_cap = whole.into_iter().map(|(_, cap)| cap).min();
        if let Some(cap) = file_cap
            && !self.budget.time.is_zero()
        {
            self.database.expect_possible(cap, self.begin)?;
        }
        for (pattern, cap) in caps {
            if !self.cap_series(&pattern, cap)? {
                return Ok(false);
            }
        }
        match file_cap {
            Some(cap) => self.cap_file(cap),
            None => Ok(true),
        }
    }

    /// Removes the oldest rows of the pattern's series until their bytes do not exceed the cap.
    fn cap_series(&mut self, pattern: &str, cap: u64) -> Result<bool> {
        loop {
            let snap = self.database.begin_read()?;
            let Some(excess) = snap.series_bytes(pattern)?.checked_sub(cap + 1) else {
                return Ok(true);
            };
            let cuts = cuts_of(&oldest(snap.units(pattern, excess + 1)?, excess + 1));
            drop(snap);
            if !self.remove_some(cuts)? {
                return Ok(!self.done.more);
            }
        }
    }

    /// Removes rows until the bytes in use of the file do not exceed the cap.
    fn cap_file(&mut self, cap: u64) -> Result<bool> {
        let before = used_bytes(&self.database.pager.stat()?, cap);
        let done = self.remove_until(cap);
        let state = self.database.cap_state(cap, before)?;
        if before > cap || state.file_bytes > cap {
            self.done.cap = Some(state);
        }
        done
    }

    fn remove_until(&mut self, cap: u64) -> Result<bool> {
        // Whether moving leaves out of extents with dead space frees nothing more at present.
        let mut packed = false;
        // Number of bytes freed per byte of removed rows, as measured in the last round: removing rows also frees pages
        // that are not leaves.
        let mut measured = None;
        loop {
            let stat = self.database.pager.stat()?;
            let used = used_bytes(&stat, cap);
            if used <= cap {
                return Ok(true);
            }
            let excess = used - cap;
            let snap = self.database.begin_read()?;
            let dead = snap.dead_room()?;
            let room = if packed { 0 } else { dead };
            if room >= excess {
                drop(snap);
                if !self.repack(excess)? {
                    return Ok(false);
                }
                let now = used_bytes(&self.database.pager.stat()?, cap);
                packed = now.saturating_add(stat.page_size as u64) > used;
                continue;
            }
            let (live, rows) = (used.saturating_sub(dead), snap.series_bytes("")?);
            let gain = measured.unwrap_or(live as f64 / rows.max(1) as f64);
            let divisor = if gain < GAIN_MIN { 1.0 } else { gain };
            let wanted = ((excess - room) as f64 / divisor) as u64;
            let wanted = wanted.min(rows / SHARE_PART).max(1);
            let units = oldest(snap.units("", wanted)?, wanted);
            let bytes: u64 = units.iter().map(|unit| unit.bytes).sum();
            drop(snap);
            if self.remove_some(cuts_of(&units))? {
                packed = false;
                let now = used_bytes(&self.database.pager.stat()?, cap);
                let dead = self.database.begin_read()?.dead_room()?;
                let freed = live.saturating_sub(now.saturating_sub(dead));
                // The measured ratio varies from round to round, because a removal frees whole pages.
                let now = freed as f64 / bytes.max(1) as f64;
                measured = Some(now.max(gain / GAIN_FALL));
            } else if self.done.more || room == 0 {
                return Ok(!self.done.more);
            } else if !self.repack(room)? {
                return Ok(false);
            } else {
                // Nothing removable is left, and all fragments are packed.
                return Ok(true);
            }
        }
    }

    /// Removes rows; returns false if no rows were removed, or the call of `maintain` must end here.
    fn remove_some(&mut self, cuts: Cuts) -> Result<bool> {
        let before = self.done.rows;
        Ok(self.remove(cuts)? && self.done.rows > before)
    }
}

impl WriteTxn {
    /// The number of bytes that would be in use, instead of `used`, if all rows before these times were removed.
    /// Removes the rows without a commit to find out.
    fn used_without(mut self, cuts: Cuts, used: u64) -> Result<u64> {
        self.free_space();
        for (id, cut) in cuts {
            self.series_by_id(id)?.delete(..Steps(cut))?;
        }
        self.bring_into_pages()?;
        let page_size = self.pages.page_size() as u64;
        let (taken, freed) = self.pages.pages_changed();
        let (_, dead) = Moving::most_dead(&self.pages, &self.roots.extents, page_size, u64::MAX)?;
        let used = used.saturating_add(taken * page_size);
        Ok(used.saturating_sub(freed * page_size).saturating_sub(dead))
    }
}

impl Database {
    /// Returns an error for a cap that cannot be met: even with only the newest row of each series, more would be in
    /// use. If `begin` returns no transaction, the cap is accepted.
    pub(super) fn expect_possible(
        &self,
        cap: u64,
        begin: &dyn Fn() -> Result<Option<WriteTxn>>,
    ) -> Result<()> {
        let used = used_bytes(&self.pager.stat()?, cap);
        let enough = used.saturating_sub(cap).saturating_mul(SURE_TIMES);
        if enough == 0 || self.begin_read()?.removable_bytes()? >= enough {
            return Ok(());
        }
        let Some(txn) = begin()? else {
            return Ok(());
        };
        let cuts = self.begin_read()?.newest_rows()?;
        let least_bytes = txn.used_without(cuts, used)?;
        if least_bytes > cap {
            return Err(Error::from(Cause::CapTooSmall {
                cap_bytes: cap,
                least_bytes,
            }));
        }
        Ok(())
    }

    /// Measures the sizes of the file under a cap.
    pub(super) fn cap_state(&self, cap: u64, used_before: u64) -> Result<CapState> {
        let stat = self.pager.stat()?;
        let mut state = CapState {
            cap_bytes: cap,
            used_before,
            used_bytes: used_bytes(&stat, cap),
            file_bytes: stat.file_bytes,
            retained_bytes: stat.pages_pending * stat.page_size as u64,
            holders: Vec::new(),
        };
        if state.file_bytes > cap && state.retained_bytes > 0 {
            let pins = self.pins()?.into_iter().filter(|pin| pin.txn < stat.txn);
            state.holders.extend(pins.map(|pin| Holder::Pin {
                name: pin.name,
                txn: pin.txn,
            }));
            let readers = self.readers()?.into_iter();
            let readers = readers.filter(|reader| reader.lag_txns > 0);
            state.holders.extend(readers.map(|reader| Holder::Reader {
                process: reader.process,
                txn: reader.txn,
            }));
        }
        Ok(state)
    }

    /// Shortens the file towards the cap: commits until freed pages are truncated at its end, and compacts if free
    /// space is inside.
    pub(super) fn shorten_to(&self, cap: u64) -> Result<()> {
        for _ in 0..SETTLING {
            if self.pager.stat()?.file_bytes <= cap {
                return Ok(());
            }
            let mut txn = self.begin_write()?;
            txn.pages.compact(u64::MAX);
            txn.commit()?;
        }
        let stat = self.pager.stat()?;
        let reserved = self.begin_write()?.pages.pages_reserved();
        let used = stat.pages_total.saturating_sub(stat.pages_free);
        // The minimum that compaction can reach: pages in use or retained, and the reserve.
        let least = used.saturating_add(reserved) * stat.page_size as u64;
        if stat.file_bytes <= cap || stat.file_bytes < least + least / WORTH_PART {
            return Ok(());
        }
        while !self.compact(super::repack::STEP_BYTES)?.done {}
        Ok(())
    }
}
