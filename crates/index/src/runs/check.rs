//! Checks the rules of the format for blocks and runs.

use crate::block::{Block, Entry};
use crate::parts::Part;
use crate::runs::filter::{Filters, rows_of};
use crate::runs::state::{Run, Runs};
use tidalite_kv::{TableReader, Tree};
use tidalite_pager::{PageRead, Result};

/// Callback that receives a problem as text.
pub(crate) type OnProblem<'f> = dyn FnMut(String) + 'f;

/// Callback that checks an entry.
pub(crate) type OnEntry<'f> = dyn FnMut(&Placed<'_>, &mut OnProblem<'_>) -> Result<()> + 'f;

/// An entry, and its position.
pub(crate) struct Placed<'a> {
    /// The name of the run or of the table.
    pub(crate) what: &'a str,
    pub(crate) entry: Entry<'a>,
    /// Its position among the entries of its key in this run or table, from 1.
    pub(crate) of_key: usize,
    /// Whether the entry is in a run and has already been merged into the main table.
    pub(crate) is_merged: bool,
}

/// Counts of the blocks of a run, or of a table of blocks.
#[derive(Default)]
pub(crate) struct Found {
    rows: u64,
    pub(crate) bytes: u64,
    pub(crate) entries: u64,
    /// Number of different keys.
    pub(crate) keys: u64,
}

/// The runs of a table, and the parts that contain them.
pub(crate) struct RunParts<'c, R> {
    pub(crate) runs: &'c Runs,
    pub(crate) blocks: TableReader<'c>,
    /// The filters. Their places must have been read.
    pub(crate) filters: &'c Filters,
    pub(crate) filter_table: TableReader<'c>,
    pub(crate) r: &'c R,
}

/// Checks a table of blocks. The key of a row may be less than the first key of its block.
pub(crate) fn check_table<'r, R: PageRead>(
    what: &str,
    table: &TableReader<'r>,
    r: &'r R,
    each: &mut OnEntry<'_>,
    problem: &mut OnProblem<'_>,
) -> Result<Found> {
    check_blocks((what, b""), table, r, &mut |_| Ok(false), each, problem)
}

impl<R: PageRead> RunParts<'_, R> {
    /// Checks all runs and their filters.
    pub(crate) fn check(&self, each: &mut OnEntry<'_>, problem: &mut OnProblem<'_>) -> Result<()> {
        let (mut rows, mut filter_rows, mut merged) = (0, 0, 0);
        for (index, run) in self.runs.list.iter().enumerate() {
            rows += self.check_run(index, run, &mut merged, each, problem)?;
            filter_rows += rows_of(run);
        }
        let all = self.blocks.len();
        if rows != all {
            problem(format!("runs: {rows} blocks of listed runs, {all} in all"));
        }
        let all = self.filter_table.len();
        if filter_rows != all {
            problem(format!(
                "filters: {filter_rows} rows of listed runs, {all} in all"
            ));
        }
        let noted = self.runs.merged;
        if merged != noted {
            problem(format!(
                "runs: {merged} entries are merged, {noted} are noted"
            ));
        }
        Ok(())
    }

    /// Checks a run and its filter, and returns the number of its blocks.
    fn check_run(
        &self,
        index: usize,
        run: &Run,
        merged: &mut u64,
        each: &mut OnEntry<'_>,
        problem: &mut OnProblem<'_>,
    ) -> Result<u64> {
        let what = format!("run {}", run.number);
        let prefix = run.number.to_be_bytes();
        let mut unfiltered = 0;
        let mut is_merged = |key: &[u8]| {
            unfiltered += u64::from(!self.filters.may_have(index, key, self.r)?);
            let is_merged = !self.runs.has(index, key);
            *merged += u64::from(is_merged);
            Ok(is_merged)
        };
        let place = (what.as_str(), &prefix[..]);
        let found = check_blocks(place, &self.blocks, self.r, &mut is_merged, each, problem)?;
        let Found { bytes, entries, .. } = found;
        if (bytes, entries) != (run.bytes, run.entries) {
            problem(format!(
                "{what}: {entries} entries in blocks of {bytes} bytes, {} in {} are noted",
                run.entries, run.bytes
            ));
        }
        if unfiltered > 0 {
            problem(format!(
                "{what}: {unfiltered} entries are not in its filter"
            ));
        }
        Ok(found.rows)
    }
}

/// Checks the blocks whose rows begin with the prefix. `is_merged` returns whether an entry with this key has been
/// merged.
fn check_blocks<'r, R: PageRead>(
    (what, prefix): (&str, &[u8]),
    table: &TableReader<'r>,
    r: &'r R,
    is_merged: &mut dyn FnMut(&[u8]) -> Result<bool>,
    each: &mut OnEntry<'_>,
    problem: &mut OnProblem<'_>,
) -> Result<Found> {
    let mut rows = table.cursor(r)?;
    let mut there = rows.seek_ge(prefix)?;
    let mut found = Found::default();
    let mut last: Option<Vec<u8>> = None;
    while there && rows.key().starts_with(prefix) {
        let row = &rows.key()[prefix.len()..];
        if last.as_deref().is_some_and(|last| last >= row) {
            let row = row.escape_ascii();
            problem(format!("{what}: a row at {row} behind greater keys"));
        }
        let value = rows.value()?.to_vec()?;
        let block = Block::parse(&value)?;
        found.rows += 1;
        found.bytes += value.len() as u64;
        found.entries += block.len() as u64;
        let mut of_key = 0;
        for place in 0..block.len() {
            let entry = block.entry(place)?;
            let is_behind = last.as_deref().is_some_and(|last| last > entry.key);
            // In a run, the key of a row is the first key of its block.
            let is_placed = match (place, prefix) {
                (0, [_, ..]) => entry.key == row,
                _ => entry.key >= row,
            };
            if is_behind || !is_placed {
                let key = entry.key.escape_ascii();
                problem(format!("{what}: {key} is out of order"));
            }
            let is_same = place > 0 && last.as_deref() == Some(entry.key);
            of_key = if is_same { of_key + 1 } else { 1 };
            found.keys += u64::from(!is_same);
            if !is_same {
                last = Some(entry.key.to_vec());
            }
            let placed = Placed {
                what,
                is_merged: is_merged(entry.key)?,
                entry,
                of_key,
            };
            each(&placed, problem)?;
        }
        if !block.ends_with(last.as_deref().unwrap_or_default()) {
            let row = row.escape_ascii();
            problem(format!("{what}: the header of the block at {row}"));
        }
        there = rows.next()?;
    }
    Ok(found)
}

/// Checks that the root table has no rows other than these values and these nested tables.
pub(crate) fn check_root<R: PageRead>(
    root: &Tree,
    r: &R,
    (values, tables): (&[Part], &[Part]),
    problem: &mut OnProblem<'_>,
) -> Result<()> {
    let mut rows = root.cursor(r);
    let mut there = rows.first()?;
    while there {
        let parts = if rows.is_nested() { tables } else { values };
        if !parts.iter().any(|part| rows.key() == part.key()) {
            let key = rows.key().escape_ascii();
            problem(format!("a row with the key {key}, which no part has"));
        }
        there = rows.next()?;
    }
    Ok(())
}
