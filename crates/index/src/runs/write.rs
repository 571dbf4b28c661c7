//! Creates runs, and merges runs of similar size.
//!
//! Runs belong to classes by the bytes of their blocks; the size limit of each class is `FAN_IN` times the one of the
//! class below. When the newest end of the list has `FAN_IN` neighbouring runs of one class, they are merged into one
//! run, together with all smaller runs that are newer. So an entry is rewritten once for each class, and each class has
//! at most `FAN_IN` runs.

use crate::block::BlockBuilder;
use crate::parts::{Part, change, part};
use crate::runs::filter::{self, FilterBuilder};
use crate::runs::merge::{Group, Merge};
use crate::runs::state::{Run, Runs, row_key};
use tidalite_kv::Tree;
use tidalite_pager::{PageRead, PageWrite, Result};

/// Number of bytes of entries after which a block is closed.
pub(crate) const BLOCK_BYTES: usize = if cfg!(test) { 300 } else { 16 << 10 };
/// Maximum bytes of a run in the smallest class.
const CLASS_BYTES: u64 = if cfg!(test) { 300 } else { 4 << 10 };
const FAN_IN: usize = 8;
/// Runs with at least this many bytes are no longer merged with others, because their blocks would not stay in the
/// processor's cache.
const RUN_BYTES_MAX: u64 = 32 << 20;
/// Bytes of blocks that are collected in memory before they are written.
const STEP_BYTES: usize = if cfg!(test) { 1000 } else { 1 << 20 };
/// Number of entries that are merged before the results are written.
const STEP_ENTRIES: usize = if cfg!(test) { 100 } else { 1 << 17 };

/// Rules that decide which entries of a key are kept in a merge.
pub(crate) trait Rules {
    /// Removes the entries of `group` that newer ones replace. If `in_main`, the group includes the oldest entries of
    /// its key.
    fn settle<R: PageRead>(
        &mut self,
        root: &Tree,
        r: &R,
        group: &mut Group,
        in_main: bool,
    ) -> Result<()>;

    /// Stores the changes that result from settled entries, which frees their memory.
    fn apply<W: PageWrite>(&mut self, _: &mut Tree, _: &mut W) -> Result<()> {
        Ok(())
    }
}

/// The blocks of one run, collected until they are written.
struct RunWriter {
    run: Run,
    block: BlockBuilder,
    filter: FilterBuilder,
    rows: Vec<(Vec<u8>, Vec<u8>)>,
    /// Bytes of the blocks in `rows`.
    bytes: usize,
}

impl RunWriter {
    /// A writer of a run with at most `entries` entries.
    fn new(number: u64, entries: u64) -> Self {
        Self {
            filter: FilterBuilder::new(entries),
            run: Run {
                number,
                entries: 0,
                bytes: 0,
                filter_lines: 0,
            },
            block: BlockBuilder::default(),
            rows: Vec::new(),
            bytes: 0,
        }
    }

    /// Adds the entries of one key. All of them must be passed in one call, so that they are in one block.
    fn push<'a>(&mut self, key: &[u8], payloads: impl Iterator<Item = &'a [u8]>) {
        if self.block.block_bytes() >= BLOCK_BYTES {
            self.close();
        }
        debug_assert!(
            self.block.len() == 0 || self.block.entry(self.block.len() - 1).key < key,
            "keys ascend, and the entries of one come together"
        );
        self.filter.add(key);
        for payload in payloads {
            self.block.push(key, payload);
            self.run.entries += 1;
        }
    }

    fn close(&mut self) {
        if self.block.len() > 0 {
            let row = row_key(self.run.number, self.block.entry(0).key);
            let block = self.block.encode();
            self.run.bytes += block.len() as u64;
            self.bytes += block.len();
            self.rows.push((row, block));
            self.block.clear();
        }
    }

    /// Adds the run to the list, after all its blocks are written.
    fn finish<W: PageWrite>(mut self, root: &mut Tree, w: &mut W, runs: &mut Runs) -> Result<()> {
        debug_assert!(
            self.block.len() == 0 && self.rows.is_empty(),
            "all blocks are written"
        );
        if self.run.entries > 0 {
            self.run.filter_lines = self.filter.write(root, w, self.run.number)?;
            runs.list.push(self.run);
        }
        Ok(())
    }

    fn write<W: PageWrite>(&mut self, root: &mut Tree, w: &mut W) -> Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        change(root, w, Part::Runs, &mut |w, front| {
            front.extend(w, rows_of(&rows)).map(drop)
        })
    }
}

fn rows_of(rows: &[(Vec<u8>, Vec<u8>)]) -> Vec<(&[u8], &[u8])> {
    rows.iter()
        .map(|(row, block)| (row.as_slice(), block.as_slice()))
        .collect()
}

/// Adds the entries of `new`, which must be ascending, as the newest run, and merges runs.
pub(crate) fn add_run<W: PageWrite>(
    root: &mut Tree,
    w: &mut W,
    runs: &mut Runs,
    new: &BlockBuilder,
    rules: &mut impl Rules,
) -> Result<()> {
    let mut writer = RunWriter::new(runs.next, new.len() as u64);
    runs.next += 1;
    let mut group = Group::default();
    let mut index = 0;
    while index < new.len() {
        let key = new.entry(index).key;
        let mut end = index + 1;
        while end < new.len() && new.entry(end).key == key {
            end += 1;
        }
        if end == index + 1 {
            writer.push(key, std::iter::once(new.entry(index).payload));
        } else {
            group.clear();
            key.clone_into(&mut group.key);
            for index in index..end {
                group.push(new.entry(index).payload);
            }
            rules.settle(root, &*w, &mut group, false)?;
            writer.push(key, group.payloads());
        }
        index = end;
    }
    writer.close();
    writer.write(root, w)?;
    writer.finish(root, w, runs)?;
    while let Some(first) = due(runs) {
        merge_from(root, w, runs, first, rules)?;
    }
    Ok(())
}

fn class(bytes: u64) -> u32 {
    let mut class = 0;
    let mut limit = CLASS_BYTES;
    while bytes >= limit {
        class += 1;
        limit *= FAN_IN as u64;
    }
    class
}

/// Index of the first run to merge, if some of the newest runs should be merged into one; `None` otherwise.
fn due(runs: &Runs) -> Option<usize> {
    let mut class_now = 0;
    let mut of_class = 0;
    for (index, run) in runs.list.iter().enumerate().skip(runs.merging).rev() {
        if run.bytes >= RUN_BYTES_MAX {
            return None;
        }
        match class(run.bytes).cmp(&class_now) {
            std::cmp::Ordering::Greater => (class_now, of_class) = (class(run.bytes), 1),
            std::cmp::Ordering::Equal => of_class += 1,
            std::cmp::Ordering::Less => {}
        }
        if of_class == FAN_IN {
            return Some(index);
        }
    }
    None
}

/// Merges the runs from index `first` up to the newest into one run.
fn merge_from<W: PageWrite>(
    root: &mut Tree,
    w: &mut W,
    runs: &mut Runs,
    first: usize,
    rules: &mut impl Rules,
) -> Result<()> {
    let entries = runs.list[first..].iter().map(|run| run.entries).sum();
    let mut writer = RunWriter::new(runs.next, entries);
    runs.next += 1;
    let mut from = Vec::new();
    let mut more = true;
    while more {
        let front = part(root, &*w, Part::Runs)?;
        let mut merge = Merge::of_runs(runs, first..runs.list.len(), &front, &*w, &from)?;
        let mut group = Group::default();
        let mut count = 0;
        more = merge.next(&mut group)?;
        while more {
            if writer.bytes >= STEP_BYTES || count >= STEP_ENTRIES {
                // This key has not been merged: the next step begins with it.
                from.clone_from(&group.key);
                break;
            }
            count += group.len();
            rules.settle(root, &*w, &mut group, false)?;
            writer.push(&group.key, group.payloads());
            more = merge.next(&mut group)?;
        }
        drop(merge);
        if !more {
            writer.close();
        }
        writer.write(root, w)?;
        rules.apply(root, w)?;
    }
    debug_assert!(
        first >= runs.merging,
        "runs being merged into the main table stay as they are"
    );
    for run in runs.list.split_off(first) {
        remove_run(root, w, &run)?;
    }
    writer.finish(root, w, runs)?;
    Ok(())
}

fn remove_run<W: PageWrite>(root: &mut Tree, w: &mut W, run: &Run) -> Result<()> {
    let (from, to) = (run.number.to_be_bytes(), (run.number + 1).to_be_bytes());
    change(root, w, Part::Runs, &mut |w, front| {
        front.remove_range(w, &from, &to).map(drop)
    })?;
    filter::remove(root, w, run)
}

/// Begins to merge all runs into the main table.
pub(crate) fn begin_merge(runs: &mut Runs) {
    if runs.merging == 0 {
        runs.merging = runs.list.len();
    }
}

/// Takes about `entries` further entries to be merged into the main table. They then no longer count as entries of the
/// runs, so the caller must merge them. `None` if no merge into the main table is in progress.
pub(crate) fn take_merged<W: PageWrite>(
    root: &mut Tree,
    w: &mut W,
    runs: &mut Runs,
    entries: usize,
    rules: &mut impl Rules,
) -> Result<Option<BlockBuilder>> {
    if runs.merging == 0 {
        return Ok(None);
    }
    let mut taken = BlockBuilder::default();
    let mut group = Group::default();
    let mut is_last = true;
    {
        let front = part(root, &*w, Part::Runs)?;
        let mut merge = Merge::of_runs(runs, 0..runs.merging, &front, &*w, b"")?;
        let mut count = 0;
        while merge.next(&mut group)? {
            if count >= entries || taken.bytes() >= STEP_BYTES {
                is_last = false;
                break;
            }
            count += group.len();
            rules.settle(root, &*w, &mut group, false)?;
            for payload in group.payloads() {
                taken.push(&group.key, payload);
            }
        }
        runs.merged += count as u64;
    }
    if !is_last {
        debug_assert!(runs.watermark < group.key, "a merge goes forward");
        runs.watermark = group.key;
        return Ok(Some(taken));
    }
    for run in runs.list.drain(..runs.merging) {
        remove_run(root, w, &run)?;
    }
    (runs.merging, runs.merged) = (0, 0);
    runs.watermark.clear();
    Ok(Some(taken))
}
