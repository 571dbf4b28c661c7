//! What an open merge has passed goes before the merge ends.
//!
//! Rows of the inputs up to the watermark are not seen any more: they are in leaves, or in the output. Kept until the end they
//! would take their space a second time, and the merge of the largest tier has about as many rows as all leaves that were made
//! since the one before it. So the blocks behind the watermark leave the directory when there are enough of them, and an extent
//! is free with the last of its blocks. Snapshots of earlier commits have the directory as it was, and hold what it leads to.
//!
//! Invariant: of an input of an open merge, no block that has rows above the watermark is gone; `rows` and `bytes` of the run
//! count what its directory still names.

use crate::counters::Work;
use crate::key::Key;
use crate::run::block::row_bytes;
use crate::run::descriptor::Run;
use crate::run::directory::{self, entries_from};
use crate::step_sizes::{large_step_bytes, passed_bytes};
use tidalite_codec::ColumnType;
use tidalite_pager::{PageWrite, Result};

/// Inputs whose directories a step changes as soon as it is worth while. They all come there at about the same time: the
/// others follow with the next steps, unless these are so large that twice as much was passed.
const INPUTS_A_STEP: usize = 2;

/// Frees the blocks of the inputs that lie at or before `watermark`, where they are worth the pages of the directory that this
/// writes. The step has merged `merged_bytes` of rows.
///
/// # Cost
/// Nothing for short runs. Else two entries and a rank are looked up an input; where blocks go, their entries are read, and cut off
/// as a range: some pages of the directory for half a mebibyte.
pub(super) fn free_passed<W: PageWrite>(
    w: &mut W,
    work: &mut Work,
    inputs: &mut [Run],
    layouts: &[Box<[ColumnType]>],
    (watermark, merged_bytes): (&Key, u64),
) -> Result<()> {
    let large = merged_bytes >= large_step_bytes();
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
    // Blocks of a run are about as long as its first, or as the one that the merge has come to: a layout of few rows, which may be the
    // first, has short ones, and so has whoever was deleted from.
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
