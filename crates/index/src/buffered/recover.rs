//! Rebuilds a damaged buffered table.
//!
//! Only the rows and the blocks of the runs are needed. The state lists the runs, and how far their entries have been
//! merged into the rows.

use crate::block::{Block, BlockBuilder};
use crate::buffered::write::{BUFFERED_KEY_MAX, BUFFERED_VALUE_MAX, BufferedWriter};
use crate::buffered::{REMOVE, value_of};
use crate::parts::{Part, change, part, row};
use crate::runs::check::OnProblem;
use crate::runs::state::{COUNT_MAX, Run, Runs, row_key};
use tidalite_kv::Tree;
use tidalite_pager::{PageWrite, Result};

/// Maximum number of runs in a list.
const RUNS_MAX: usize = u16::MAX as usize;

impl BufferedWriter {
    /// Opens a buffered table that may have lost parts: removes everything that does not belong to it, and lists the
    /// remaining runs. Calls `problem` with each defect.
    ///
    /// Entries of merging runs below the watermark agree with the rows, so they are kept in case a row is lost. But if
    /// a part of these runs is lost, it may have contained the newest entry of a key; then the entries are removed, and
    /// the rows are authoritative.
    ///
    /// # Errors
    /// A full disk; an unreadable page.
    pub fn recover<W: PageWrite>(
        root: &mut Tree,
        w: &mut W,
        problem: &mut OnProblem<'_>,
    ) -> Result<Self> {
        let state = row(root, &*w, Part::State).and_then(|row| Runs::decode(&row));
        let mut unknown = remove_all_but_rows_and_runs(root, w)?;
        unknown += remove_tables_in_rows(root, w)?;
        let known = state.ok();
        if known.is_none() {
            problem("the list of the runs is lost: values that were replaced may be back".into());
        }
        let (mut list, removed) = sound_runs(root, w, known.as_ref())?;
        unknown += removed;
        if unknown > 0 {
            problem(format!(
                "{unknown} rows that do not belong to a buffered table"
            ));
        }
        if let Some(known) = &known {
            let merging = &known.list[..known.merging];
            let is_whole = |run: &Run| {
                let mut found = list.iter().filter(|found| found.number == run.number);
                found.any(|found| (found.entries, found.bytes) == (run.entries, run.bytes))
            };
            if !merging.iter().all(is_whole) {
                for run in merging {
                    remove_below(root, w, run.number, &known.watermark)?;
                }
                (list, _) = sound_runs(root, w, Some(known))?;
            }
        }
        let next = list.last().map_or(0, |run| run.number + 1);
        let runs = Runs {
            next: known.map_or(0, |known| known.next).max(next),
            list,
            ..Runs::default()
        };
        Self::with_runs(root, w, runs)
    }
}

/// Removes all rows of the root table except the nested tables of the rows and of the runs. Returns the number of
/// removed rows that do not occur in a buffered table.
fn remove_all_but_rows_and_runs<W: PageWrite>(root: &mut Tree, w: &mut W) -> Result<u64> {
    let (mut stale, mut unknown) = (Vec::new(), 0);
    {
        let mut rows = root.cursor(&*w);
        let mut there = rows.first()?;
        while there {
            let is = |part: Part| rows.key() == part.key();
            let stays = rows.is_nested() && (is(Part::Main) || is(Part::Runs));
            let is_derived = match rows.is_nested() {
                true => is(Part::Filters),
                false => is(Part::State),
            };
            if !stays {
                unknown += u64::from(!is_derived);
                stale.push(rows.key().to_vec());
            }
            there = rows.next()?;
        }
    }
    for key in stale {
        root.remove(w, &key)?;
    }
    Ok(unknown)
}

/// Removes nested tables from the rows. Returns their number.
fn remove_tables_in_rows<W: PageWrite>(root: &mut Tree, w: &mut W) -> Result<u64> {
    let mut tables = Vec::new();
    {
        let main = part(root, &*w, Part::Main)?;
        let mut rows = main.cursor(&*w)?;
        let mut there = rows.first()?;
        while there {
            if rows.is_nested() {
                tables.push(rows.key().to_vec());
            }
            there = rows.next()?;
        }
    }
    remove_rows(root, w, Part::Main, &tables)
}

fn remove_rows<W: PageWrite>(
    root: &mut Tree,
    w: &mut W,
    part: Part,
    keys: &[Vec<u8>],
) -> Result<u64> {
    if !keys.is_empty() {
        change(root, w, part, &mut |w, table| {
            for key in keys {
                table.remove(w, key)?;
            }
            Ok(())
        })?;
    }
    Ok(keys.len() as u64)
}

/// The runs whose blocks exist, without filters, and the number of rows that were removed because they are not blocks
/// of such a run. If the list `known` is given, only its runs are accepted.
fn sound_runs<W: PageWrite>(
    root: &mut Tree,
    w: &mut W,
    known: Option<&Runs>,
) -> Result<(Vec<Run>, u64)> {
    let mut list: Vec<Run> = Vec::new();
    let mut broken = Vec::new();
    {
        let blocks = part(root, &*w, Part::Runs)?;
        let mut rows = blocks.cursor(&*w)?;
        let mut there = rows.first()?;
        // The last key of the previous block, in the newest run of the list.
        let mut last = Vec::new();
        while there {
            let number = number_of(rows.key(), known);
            let found = match number {
                Some(number) if !rows.is_nested() => {
                    let is_next = list.last().is_some_and(|run| run.number == number);
                    let value = rows.value()?.to_vec()?;
                    let last_before = is_next.then_some(last.as_slice());
                    let found = in_block(&rows.key()[8..], &value, last_before);
                    let is_allowed = is_next || list.len() < RUNS_MAX;
                    let found = found.filter(|_| is_allowed);
                    found.map(|(entries, last)| (number, is_next, entries, value.len(), last))
                }
                _ => None,
            };
            match found {
                Some((number, is_next, entries, bytes, last_key)) => {
                    if !is_next {
                        list.push(Run {
                            number,
                            entries: 0,
                            bytes: 0,
                            filter_lines: 0,
                        });
                    }
                    if let Some(run) = list.last_mut() {
                        run.entries += entries;
                        run.bytes += bytes as u64;
                    }
                    last = last_key;
                }
                None => broken.push(rows.key().to_vec()),
            }
            there = rows.next()?;
        }
    }
    let removed = remove_rows(root, w, Part::Runs, &broken)?;
    Ok((list, removed))
}

/// The number of the run in the key of a row; `None` if the run does not exist.
fn number_of(key: &[u8], known: Option<&Runs>) -> Option<u64> {
    let number = u64::from_be_bytes(*key.first_chunk()?);
    let is_listed = |known: &Runs| known.list.iter().any(|run| run.number == number);
    (number < COUNT_MAX && known.is_none_or(is_listed)).then_some(number)
}

/// The number of the run, if a row contains a block of a run.
pub(crate) fn run_of_block(key: &[u8], value: &[u8]) -> Option<u64> {
    let number = number_of(key, None)?;
    in_block(&key[8..], value, None).map(|_| number)
}

/// The number of entries of a block and its last key; `None` if the bytes are not a block whose first key is `first`
/// and whose keys are all greater than `last`.
fn in_block(first: &[u8], value: &[u8], last: Option<&[u8]>) -> Option<(u64, Vec<u8>)> {
    let block = Block::parse(value).ok()?;
    let mut last = last;
    for place in 0..block.len() {
        let entry = block.entry(place).ok()?;
        let is_placed = place > 0 || entry.key == first;
        let is_above = last.is_none_or(|last| last < entry.key);
        let is_known = value_of(entry.payload).map_or(entry.payload == [REMOVE], |value| {
            value.len() <= BUFFERED_VALUE_MAX
        });
        if !is_placed || !is_above || !is_known || entry.key.len() > BUFFERED_KEY_MAX {
            return None;
        }
        last = Some(entry.key);
    }
    let last = last.filter(|last| block.ends_with(last))?;
    Some((block.len() as u64, last.to_vec()))
}

/// Removes the entries of a run whose keys are less than `watermark`. Its blocks must be sound.
fn remove_below<W: PageWrite>(
    root: &mut Tree,
    w: &mut W,
    run: u64,
    watermark: &[u8],
) -> Result<()> {
    let mut stale = Vec::new();
    let mut rest = BlockBuilder::default();
    {
        let blocks = part(root, &*w, Part::Runs)?;
        let mut rows = blocks.cursor(&*w)?;
        let mut there = rows.seek_ge(&run.to_be_bytes())?;
        while there && rows.key() < row_key(run, watermark).as_slice() {
            let value = rows.value()?.to_vec()?;
            let block = Block::parse(&value)?;
            for place in block.lower_bound(watermark)?..block.len() {
                let entry = block.entry(place)?;
                rest.push(entry.key, entry.payload);
            }
            stale.push(rows.key().to_vec());
            there = rows.next()?;
        }
    }
    remove_rows(root, w, Part::Runs, &stale)?;
    if rest.len() > 0 {
        let (key, block) = (row_key(run, rest.entry(0).key), rest.encode());
        change(root, w, Part::Runs, &mut |w, blocks| {
            blocks.insert(w, &key, &block).map(drop)
        })?;
    }
    Ok(())
}
