//! The main table of a hash table's index: blocks of entries, each in a row whose key is a lower bound of its entries.
//!
//! This is the MGIndex of RaptorDB (<https://www.codeproject.com/Articles/316816>): a sorted list of pages, here a
//! table, each with hundreds of entries.
//!
//! Invariants:
//! 1. The entries of a block are not less than the key of its row, and less than the key of the next row.
//! 2. All entries of a key are in one block. A table without duplicates has one entry for each key (several if
//!    different keys have the same hash).
//! 3. No block is empty.

use crate::block::{Block, BlockBuilder, out_of_order};
use crate::hash::settle::HashRules;
use crate::hash::state::State;
use crate::parts::{Part, change, part};
use crate::runs::merge::Group;
use crate::runs::write::Rules;
use tidalite_kv::Tree;
use tidalite_pager::{PageRead, PageWrite, Result};

/// Length in bytes at which a block is split: with the headers of a large value it occupies 16 KiB. Blocks whose
/// entries differ in size, or all have the same key, may be longer.
const BLOCK_BYTES_MAX: usize = if cfg!(test) { 400 } else { (16 << 10) - 64 };
/// A block with fewer bytes is joined to the previous block, if that one has changed, too.
const BLOCK_BYTES_MIN: usize = BLOCK_BYTES_MAX / 4;
/// Bytes of new blocks that are collected in memory before they are written.
const STEP_BYTES: usize = if cfg!(test) { 1000 } else { 4 << 20 };

/// A row of the main table, and the key of the next row.
#[derive(Default)]
struct Row {
    key: Vec<u8>,
    next: Option<Vec<u8>>,
    block: Option<Vec<u8>>,
}

/// The row to which `key` belongs. If no row is at or before `key`, this is a new row with an empty key.
fn row_of<R: PageRead>(root: &Tree, r: &R, key: &[u8]) -> Result<Row> {
    let table = part(root, r, Part::Main)?;
    let mut rows = table.cursor(r)?;
    let mut row = Row::default();
    let there = rows.seek_le(key)?;
    if there {
        row.key = rows.key().to_vec();
        row.block = Some(rows.value()?.to_vec()?);
    }
    let has_next = match there {
        true => rows.next()?,
        false => rows.first()?,
    };
    row.next = has_next.then(|| rows.key().to_vec());
    Ok(row)
}

/// Changed rows with their new blocks; `None` removes the row.
type Changed = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// Entries that will become blocks of consecutive rows.
#[derive(Default)]
struct Output {
    /// Groups of entries with equal keys, one after the other, and the end of each group in `entries`.
    entries: BlockBuilder,
    group_ends: Vec<usize>,
}

impl Output {
    fn push(&mut self, group: &Group) {
        if group.is_empty() {
            return;
        }
        for payload in group.payloads() {
            self.entries.push(&group.key, payload);
        }
        self.group_ends.push(self.entries.len());
    }

    fn clear(&mut self) {
        self.entries.clear();
        self.group_ends.clear();
    }

    /// Splits the entries into blocks of equal size, or into full blocks if `fill`; the first block is stored in `row`.
    fn close(&mut self, row: &[u8], fill: bool, changed: &mut Changed, state: &mut State) {
        let total = self.entries.block_bytes();
        let blocks = total.div_ceil(BLOCK_BYTES_MAX).max(1);
        let most = match fill {
            true => BLOCK_BYTES_MAX,
            false => total / blocks + 64,
        };
        let mut block = BlockBuilder::default();
        let mut start = 0;
        let mut key = row.to_vec();
        for &end in &self.group_ends {
            let bytes: usize = (start..end)
                .map(|index| self.entries.entry(index))
                .map(|entry| entry.key.len() + entry.payload.len())
                .sum();
            if block.len() > 0 && block.block_bytes() + bytes > most.min(BLOCK_BYTES_MAX) {
                put(std::mem::take(&mut key), &mut block, changed, state);
                key = self.entries.entry(start).key.to_vec();
            }
            for index in start..end {
                let entry = self.entries.entry(index);
                block.push(entry.key, entry.payload);
            }
            start = end;
        }
        if block.len() > 0 {
            put(key, &mut block, changed, state);
        } else {
            changed.push((key, None));
        }
        self.clear();
    }
}

fn put(key: Vec<u8>, block: &mut BlockBuilder, changed: &mut Changed, state: &mut State) {
    debug_assert!(block.len() > 0, "no block is empty");
    debug_assert!(
        key.as_slice() <= block.entry(0).key,
        "the key of a row is a lower bound of its entries"
    );
    let bytes = block.encode();
    state.main_bytes += bytes.len() as u64;
    changed.push((key, Some(bytes)));
    block.clear();
}

/// Merges entries, which must be ascending, into the main table.
pub(crate) fn merge_in<W: PageWrite>(
    root: &mut Tree,
    w: &mut W,
    state: &mut State,
    new: &BlockBuilder,
    rules: &mut HashRules<'_>,
) -> Result<()> {
    let mut at = 0;
    while at < new.len() {
        let mut changed = Changed::new();
        let mut bytes = 0;
        let mut next = None;
        while at < new.len() && bytes < STEP_BYTES {
            let row = row_of(root, &*w, new.entry(at).key)?;
            let before = changed.len();
            let first = at;
            at = merge_row(root, &*w, state, &row, new, at, rules, &mut changed)?;
            if at == first {
                // The key of the next row is not greater.
                return Err(out_of_order(&row.key));
            }
            if next.as_ref() == Some(&row.key) {
                join_small(&mut changed, before, state);
            }
            next = row.next;
            bytes += changed[before..]
                .iter()
                .map(|(_, block)| block.as_ref().map_or(0, Vec::len))
                .sum::<usize>();
        }
        change(root, w, Part::Main, &mut |w, table| {
            for (key, block) in &changed {
                match block {
                    Some(block) => table.insert(w, key, block)?,
                    None => table.remove(w, key)?,
                };
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Merges the new entries that belong to `row` into it, beginning at index `at`. Returns the index of the first entry
/// that does not belong to it.
#[expect(clippy::too_many_arguments, reason = "the parts of one step of a loop")]
fn merge_row<R: PageRead>(
    root: &Tree,
    r: &R,
    state: &mut State,
    row: &Row,
    new: &BlockBuilder,
    mut at: usize,
    rules: &mut HashRules<'_>,
    changed: &mut Changed,
) -> Result<usize> {
    let old = row.block.as_deref().map(Block::parse).transpose()?;
    let old_len = old.map_or(0, |old| old.len());
    if let Some(old) = &old {
        let (first, last) = (old.entry(0)?.key, old.entry(old_len - 1)?.key);
        if first < row.key.as_slice() || row.next.as_deref().is_some_and(|next| last >= next) {
            return Err(out_of_order(first));
        }
    }
    state.main_bytes = state
        .main_bytes
        .saturating_sub(row.block.as_ref().map_or(0, Vec::len) as u64);
    let mut output = Output::default();
    let mut group = Group::default();
    let mut index = 0;
    let (mut is_appended, mut has_begun) = (true, false);
    let end = match &row.next {
        None => new.len(),
        Some(next) => {
            let mut end = at;
            while end < new.len() && new.entry(end).key < next.as_slice() {
                end += 1;
            }
            end
        }
    };
    loop {
        let old_entry = match &old {
            Some(old) if index < old_len => Some(old.entry(index)?),
            _ => None,
        };
        let new_entry = (at < end).then(|| new.entry(at));
        let key = match (old_entry, new_entry) {
            (Some(old), Some(new)) => old.key.min(new.key),
            (Some(one), None) | (None, Some(one)) => one.key,
            (None, None) => break,
        };
        if has_begun && key <= group.key.as_slice() {
            return Err(out_of_order(key));
        }
        has_begun = true;
        group.clear();
        group.key.clear();
        group.key.extend_from_slice(key);
        let mut keys_before = 0;
        if let Some(old) = &old {
            while index < old_len {
                let entry = old.entry(index)?;
                if entry.key != group.key {
                    break;
                }
                group.push(entry.payload);
                keys_before += 1;
                index += 1;
            }
        }
        let from_old = group.len();
        while at < end && new.entry(at).key == group.key {
            group.push(new.entry(at).payload);
            at += 1;
        }
        if group.len() > from_old {
            is_appended &= index == old_len;
            rules.settle(root, r, &mut group, true)?;
            state.main_keys = (state.main_keys + keys_of(rules, group.len()))
                .saturating_sub(keys_of(rules, keys_before));
        }
        output.push(&group);
    }
    let fill = is_appended && row.next.is_none();
    output.close(&row.key, fill, changed, state);
    Ok(at)
}

/// Number of different keys among `entries` entries with the same key of the index.
fn keys_of(rules: &HashRules<'_>, entries: usize) -> u64 {
    match rules.has_duplicates() {
        true => u64::from(entries > 0),
        false => entries as u64,
    }
}

/// Joins the block at index `before` to the previous block, if it is small and the last one. The previous block must
/// belong to the previous row.
fn join_small(changed: &mut Changed, before: usize, state: &mut State) {
    let is_only = changed.len() == before + 1;
    let [.., (_, Some(left)), (_, Some(right))] = changed.as_slice() else {
        return;
    };
    if !is_only || right.len() >= BLOCK_BYTES_MIN || left.len() + right.len() > BLOCK_BYTES_MAX {
        return;
    }
    let (Ok(one), Ok(two)) = (Block::parse(left), Block::parse(right)) else {
        return;
    };
    let ends = one
        .entry(one.len() - 1)
        .and_then(|last| Ok(last.key < two.entry(0)?.key));
    if !matches!(ends, Ok(true)) {
        return;
    }
    let mut joined = BlockBuilder::default();
    for block in [one, two] {
        for index in 0..block.len() {
            let Ok(entry) = block.entry(index) else {
                return;
            };
            joined.push(entry.key, entry.payload);
        }
    }
    let block = joined.encode();
    // If sizes of entries differ, each entry takes more bytes than in a block whose entries have one size.
    if block.len() > BLOCK_BYTES_MAX {
        return;
    }
    state.main_bytes = state
        .main_bytes
        .saturating_sub((left.len() + right.len()) as u64)
        + block.len() as u64;
    changed[before - 1].1 = Some(block);
    changed[before].1 = None;
}
