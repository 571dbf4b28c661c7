//! Frees input blocks that an open compaction has consumed, before the compaction ends.
//!
//! Rows of the inputs up to the watermark are hidden: they are in leaves or in the output. Keeping them until the end
//! would store them twice, and the compaction of the largest tier has about as many rows as all leaves created since
//! the previous compaction. Blocks before the watermark are therefore removed from the directory once there are enough
//! of them, and an extent is freed with its last block. Snapshots of earlier commits keep the old directory and the
//! blocks it points to.
//!
//! Invariant: for an input of an open compaction, every block with rows above the watermark is still present; `rows`
//! and `bytes` of the run count only the blocks that its directory still lists.

use crate::counters::Work;
use crate::key::Key;
use crate::limits::FAN_IN;
use crate::run::block::row_bytes;
use crate::run::descriptor::Run;
use crate::run::directory::{self, entries_from};
use crate::step_sizes::{large_step_bytes, passed_bytes};
use tidalite_codec::ColumnType;
use tidalite_pager::{PageWrite, Result};

/// If a step changes the directories of this many inputs, the other inputs wait for later steps, because all inputs
/// reach the threshold at about the same time. An input with twice as many consumed bytes does not wait.
const INPUTS_A_STEP: usize = 2;

/// Frees the input blocks whose rows are all at or before `watermark`, if there are enough of them to justify writing
/// the directory pages. `compacted_bytes` is the size of the rows that the current step of the compaction has merged.
///
/// # Cost
/// Nothing for short runs. For other runs, two directory entries and a rank are looked up per input. If blocks are
/// freed, their entries are read and removed as a range: a few directory pages per half a mebibyte of blocks.
pub(super) fn free_passed<W: PageWrite>(
    w: &mut W,
    work: &mut Work,
    inputs: &mut [Run],
    layouts: &[Box<[ColumnType]>],
    (watermark, compacted_bytes): (&Key, u64),
) -> Result<()> {
    let large = compacted_bytes >= large_step_bytes();
    debug_assert!(inputs.len() <= FAN_IN, "inputs of one compaction");
    let mut freed = 0;
    for run in inputs {
        let least_bytes = match freed < INPUTS_A_STEP {
            _ if large => passed_bytes() / 8,
            true => passed_bytes(),
            false => 2 * passed_bytes(),
        };
        let before = work.blocks_passed;
        of_input(w, work, run, layouts, (watermark, least_bytes))?;
        freed += usize::from(work.blocks_passed > before);
    }
    Ok(())
}

fn of_input<W: PageWrite>(
    w: &mut W,
    work: &mut Work,
    run: &mut Run,
    layouts: &[Box<[ColumnType]>],
    (watermark, least_bytes): (&Key, u64),
) -> Result<()> {
    if run.bytes < least_bytes {
        return Ok(());
    }
    let mut entries = Vec::new();
    entries_from(&run.directory, w, &Key::MIN, 1, &mut entries)?;
    if let Some(next) = watermark.next() {
        entries_from(&run.directory, w, &next, 2, &mut entries)?;
    }
    let (first, next) = match entries[..] {
        [first, next, ..] => (first, Some(next)),
        [first] => (first, None),
        [] => return Ok(()),
    };
    if first.last > *watermark {
        return Ok(());
    }
    let end = next.map_or(directory::END_OF_BLOCKS, |next| next.first);
    // Blocks of a run are assumed to be as long as the longer of its first block and the block at the compaction
    // position. Single blocks can be short: the first one if its layout has few rows, or a block after a range
    // delete.
    let len = next.map_or(first.ptr.len, |next| first.ptr.len.max(next.ptr.len));
    let passed = run.directory.rank(w, &end.encode())?;
    if passed.saturating_mul(u64::from(len)) < least_bytes {
        return Ok(());
    }
    let (mut rows, mut bytes) = (0, 0);
    directory::remove_before(&mut run.directory, w, end, |entry| {
        let columns = layouts
            .get(entry.first.class as usize)
            .map_or(0, |types| types.len());
        rows += u64::from(entry.rows);
        bytes += u64::from(entry.rows) * row_bytes(columns);
        work.blocks_passed += 1;
    })?;
    run.rows = run.rows.saturating_sub(rows);
    run.bytes = run.bytes.saturating_sub(bytes);
    Ok(())
}
