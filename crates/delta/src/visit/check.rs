//! Checks every rule of the file format of the delta, and claims every page and extent that belongs to the delta.

use crate::delta::Delta;
use crate::key::Key;
use crate::limits::{TIER_RUNS_MAX, TIERS_MAX};
use crate::record::record_extent;
use crate::run::block::{Block, row_bytes};
use crate::run::descriptor::Run;
use crate::run::directory::{self, Entry};
use crate::run::tail;
use crate::visit::around::Around;
use crate::visit::damage::{DeltaDamage, Hit};
use crate::visit::extents;
use tidalite_base::{Corrupt, SeriesId, TxnId};
use tidalite_kv::UsedPages;
use tidalite_pager::{Error, Extent, Header, PageRead, Ptr, Result, expect_zeros};

/// A range of the file that belongs to the delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeltaClaim {
    /// Byte offset of the range in the file.
    pub addr: u64,
    /// Length of the range in pages.
    pub pages: u64,
    /// Text that names the contents of the range.
    pub what: &'static str,
}

/// Rows of a series that are visible in a live run or in the tail page. The caller compares them with the leaves:
/// none of these rows may be older than a leaf's row with the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveRows {
    /// The class (number in the delta) of the layout of the rows.
    pub class: u32,
    /// Id of the series that has the rows.
    pub series: SeriesId,
    /// Time of the first visible row.
    pub first: i64,
    /// Time of the last visible row.
    pub last: i64,
    /// Number of visible rows of the series.
    pub rows: u64,
    /// Oldest and newest transaction that wrote the rows; 0 and 0 for the tail page.
    pub txns: (TxnId, TxnId),
}

/// Callbacks that a check calls for its findings.
struct Findings<'h> {
    claim: &'h mut dyn FnMut(DeltaClaim),
    held: &'h mut dyn FnMut(LiveRows),
    damage: &'h mut dyn FnMut(DeltaDamage),
}

impl Findings<'_> {
    /// If `result` is an error about damage, reports the damage with the affected rows `hit` and returns `None`;
    /// returns other errors.
    fn report<T>(&mut self, hit: Hit, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(found) => Ok(Some(found)),
            Err(Error::Corrupt(corrupt)) => {
                (self.damage)(DeltaDamage { hit, corrupt });
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Counts that a check of the delta returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeltaReport {
    /// Number of runs, including the outputs of open compactions.
    pub runs: u64,
    /// Number of blocks in runs.
    pub blocks: u64,
    /// Number of rows in runs.
    pub rows: u64,
    /// Number of rows in the tail page.
    pub tail_rows: u64,
    /// Number of open compactions.
    pub compactions: u64,
}

fn damaged(what: &str, at: u64, found: impl ToString, expected: impl ToString) -> Error {
    Corrupt::new(what, at, found.to_string(), expected.to_string()).into()
}

impl Delta {
    /// Reads the whole delta and checks it: bounds, counts, order within and between blocks, their descriptions in
    /// the directories and the record, block positions, watermarks, ages. Every page and extent is claimed once. For
    /// every series with visible rows in a run or the tail page, `held` is called with its contiguous rows there.
    ///
    /// # Errors
    /// `Corrupt` names the first damage; `Io`.
    ///
    /// # Cost
    /// Reads every page and block once.
    pub fn check<R: PageRead>(
        &self,
        r: &R,
        claim: &mut dyn FnMut(DeltaClaim),
        held: &mut dyn FnMut(LiveRows),
    ) -> Result<DeltaReport> {
        let mut first = None;
        let report = self.check_each(r, claim, held, &mut |damage| {
            first.get_or_insert(damage.corrupt);
        })?;
        first.map_or(Ok(report), |corrupt| Err(Error::Corrupt(corrupt)))
    }

    /// Like [`check`](Self::check), but continues after damage and reports each damage with the rows that it affects.
    ///
    /// # Errors
    /// `Io`, and any other error that is not damage.
    ///
    /// # Cost
    /// As `check`.
    pub fn check_each<R: PageRead>(
        &self,
        r: &R,
        claim: &mut dyn FnMut(DeltaClaim),
        held: &mut dyn FnMut(LiveRows),
        damage: &mut dyn FnMut(DeltaDamage),
    ) -> Result<DeltaReport> {
        let mut report = DeltaReport::default();
        let mut findings = Findings {
            claim,
            held,
            damage,
        };
        let record = self.check_record(r, &mut findings, &mut report);
        findings.report(Hit::All, record)?;
        for (run, after) in self.live_runs(0) {
            let checked = self.check_run(r, run, after, &mut findings, &mut report);
            findings.report(Hit::of(run, after, run.first, run.last), checked)?;
        }
        let tail = self.check_tail(r, &mut findings, &mut report);
        findings.report(Hit::All, tail)?;
        Ok(report)
    }

    /// Checks the record of the delta: its extent, and the bounds, ages and numbers of the runs.
    fn check_record<R: PageRead>(
        &self,
        r: &R,
        findings: &mut Findings<'_>,
        report: &mut DeltaReport,
    ) -> Result<()> {
        let at = self.record_ptr.addr;
        if !self.record_ptr.is_null() {
            let extent = record_extent(&self.record_ptr, r.page_size());
            (findings.claim)(DeltaClaim {
                addr: extent.addr,
                pages: extent.pages,
                what: "record of the delta",
            });
            let len = u64::from(self.record_ptr.len);
            let padding = extent.pages * r.page_size() as u64 - len;
            expect_zeros(r, at.saturating_add(len), padding as usize)?;
        }
        if self.record.tiers.len() > TIERS_MAX {
            return Err(damaged("delta", at, self.record.tiers.len(), TIERS_MAX));
        }
        let mut seqs = Vec::new();
        let mut newer: Option<TxnId> = None;
        for tier in &self.record.tiers {
            if tier.runs.len() > TIER_RUNS_MAX {
                return Err(damaged(
                    "tier of the delta",
                    at,
                    tier.runs.len(),
                    TIER_RUNS_MAX,
                ));
            }
            if let Some(compaction) = &tier.compaction {
                report.compactions += 1;
                if compaction.inputs > tier.runs.len() {
                    return Err(damaged(
                        "open compaction",
                        at,
                        compaction.inputs,
                        tier.runs.len(),
                    ));
                }
                if let Some(output) = &compaction.output
                    && Some(output.last) > compaction.watermark
                {
                    let found = format!("a row at {:?}", output.last);
                    let expected = format!("none beyond {:?}", compaction.watermark);
                    return Err(damaged("output of an open compaction", at, found, expected));
                }
            }
            for run in tier.runs.iter().rev() {
                // Runs that one transaction wrote have the same transaction number; otherwise an older run must end
                // before a newer one begins.
                if run.txn_oldest > run.txn_newest || newer.is_some_and(|t| run.txn_newest > t) {
                    let found = format!("run {} up to {}", run.seq, run.txn_newest);
                    let expected = format!("at most {:?}", newer);
                    return Err(damaged("age of a run", at, found, expected));
                }
                newer = Some(run.txn_oldest);
            }
        }
        seqs.extend(self.live_runs(0).map(|(run, _)| run.seq));
        seqs.sort_unstable();
        if seqs.windows(2).any(|pair| pair[0] == pair[1])
            || seqs.last().is_some_and(|&last| last > self.record.next_run)
        {
            return Err(damaged(
                "numbers of runs",
                at,
                format!("{seqs:?}"),
                "each once",
            ));
        }
        Ok(())
    }

    fn check_tail<R: PageRead>(
        &self,
        r: &R,
        findings: &mut Findings<'_>,
        report: &mut DeltaReport,
    ) -> Result<()> {
        if self.tail.is_null() {
            return match self.tail_rows {
                0 => Ok(()),
                rows => Err(damaged("delta root", 0, format!("{rows} tail rows"), "0")),
            };
        }
        (findings.claim)(DeltaClaim {
            addr: self.tail.addr,
            pages: 1,
            what: "tail page",
        });
        let rows = tail::row_count(r, &self.tail)?;
        if rows != self.tail_rows {
            return Err(damaged("tail page", self.tail.addr, rows, self.tail_rows));
        }
        report.tail_rows = rows;
        for piece in tail::pieces(r, &self.tail, &self.layouts)? {
            let times = &piece.rows.times;
            (findings.held)(LiveRows {
                class: piece.class,
                series: piece.series,
                first: times[0],
                last: times[times.len() - 1],
                rows: times.len() as u64,
                txns: (TxnId(0), TxnId(0)),
            });
        }
        Ok(())
    }

    fn check_run<R: PageRead>(
        &self,
        r: &R,
        run: &Run,
        after: Option<Key>,
        findings: &mut Findings<'_>,
        report: &mut DeltaReport,
    ) -> Result<()> {
        let at = run.directory.root().addr;
        let mut broken = Vec::new();
        let mut claim = |page: UsedPages| {
            (findings.claim)(DeltaClaim {
                addr: page.addr,
                pages: page.pages,
                what: "directory of a run",
            });
        };
        let directory = &run.directory;
        directory.check_each(r, &mut claim, &mut |damage| broken.push(damage))?;
        let directory_is_whole = broken.is_empty();
        let mut extents: Vec<(Extent, u64)> = Vec::new();
        let listed = directory::each_extent(&run.directory, r, |extent, blocks| {
            (findings.claim)(DeltaClaim {
                addr: extent.addr,
                pages: extent.pages,
                what: "blocks of a run",
            });
            extents.push((extent, blocks));
            Ok(())
        });
        match listed {
            // A damaged directory page is not reported here but below, with the rows that the page hides.
            Err(Error::Corrupt(_)) if !directory_is_whole => {}
            listed => listed?,
        }
        let (mut rows, mut bytes) = (0, 0);
        let mut blocks: Vec<Ptr> = Vec::new();
        let mut damaged_blocks = 0;
        let mut before: Option<Key> = None;
        let mut block = Block::default();
        let mut open_rows: Option<LiveRows> = None;
        let mut entries = Vec::new();
        let mut around = Around::new(run, after, broken);
        while around.more(r, &mut entries, findings.damage)? {
            for entry in &entries {
                let checked = self.check_block(r, run, entry, &mut block);
                let hit = Hit::of(run, after, entry.first, entry.last);
                if findings.report(hit, checked)?.is_none() {
                    damaged_blocks += 1;
                    continue;
                }
                blocks.push(entry.ptr);
                rows += block.len() as u64;
                bytes += block.len() as u64 * row_bytes(block.rows.columns.len());
                for row in 0..block.len() {
                    let key = block.key(row);
                    // Within a block, several rows may have the same time; across blocks, times must ascend.
                    let ends =
                        before.is_some_and(|before| before > key || (row == 0 && before == key));
                    if ends {
                        let found = format!("{key:?}");
                        let expected = format!("a key after {before:?}");
                        return Err(damaged("order of a run", entry.ptr.addr, found, expected));
                    }
                    before = Some(key);
                    if after.is_some_and(|after| key <= after) {
                        continue;
                    }
                    match &mut open_rows {
                        Some(open) if (open.class, open.series) == key.place() => {
                            open.last = key.time;
                            open.rows += 1;
                        }
                        _ => {
                            let new = LiveRows {
                                class: key.class,
                                series: key.series,
                                first: key.time,
                                last: key.time,
                                rows: 1,
                                txns: (run.txn_oldest, run.txn_newest),
                            };
                            if let Some(done) = open_rows.replace(new) {
                                (findings.held)(done);
                            }
                        }
                    }
                }
            }
        }
        if let Some(done) = open_rows {
            (findings.held)(done);
        }
        if damaged_blocks > 0 || !directory_is_whole {
            report.runs += 1;
            return Ok(());
        }
        if (rows, bytes) != (run.rows, run.bytes) {
            let found = format!("{rows} rows of {bytes} bytes");
            let expected = format!("{} rows of {} bytes", run.rows, run.bytes);
            return Err(damaged("run", at, found, expected));
        }
        if (blocks.len() + extents.len()) as u64 != run.directory.len() {
            let found = format!("{} blocks and {} extents", blocks.len(), extents.len());
            let expected = format!("{} entries", run.directory.len());
            return Err(damaged("directory of a run", at, found, expected));
        }
        report.runs += 1;
        report.blocks += blocks.len() as u64;
        let between = extents::check(r, run.directory.id(), &extents, &mut blocks);
        findings.report(Hit::Nothing, between)?;
        report.rows += rows;
        Ok(())
    }

    fn check_block<R: PageRead>(
        &self,
        r: &R,
        run: &Run,
        entry: &Entry,
        block: &mut Block,
    ) -> Result<()> {
        let (ptr, from) = (&entry.ptr, entry.ptr.addr);
        let header = Header::decode(&r.block(ptr)?);
        if header.owner != run.directory.id() {
            return Err(damaged("run block", from, header.owner, run.directory.id()));
        }
        block.read(r, ptr, &self.layouts, true)?;
        let (first, last) = (block.key(0), block.key(block.len() - 1));
        if (first, last, block.len()) != (entry.first, entry.last, entry.rows as usize) {
            let found = format!("{} rows from {first:?} to {last:?}", block.len());
            let expected = format!("{} from {:?} to {:?}", entry.rows, entry.first, entry.last);
            return Err(damaged("run block", from, found, expected));
        }
        let (times, run_times) = (&block.rows.times, run.time_least..=run.time_greatest);
        let least = times
            .iter()
            .min()
            .is_none_or(|time| run_times.contains(time));
        let greatest = times
            .iter()
            .max()
            .is_none_or(|time| run_times.contains(time));
        if first < run.first || last > run.last || !least || !greatest {
            let found = format!("{first:?} to {last:?}");
            let expected = format!("within {:?} to {:?}, {run_times:?}", run.first, run.last);
            return Err(damaged("run block", from, found, expected));
        }
        Ok(())
    }
}
