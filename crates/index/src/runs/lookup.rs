//! Finds the entries of one key in a run or in a table of blocks.

use crate::block::Block;
use crate::runs::state::row_key;
use tidalite_kv::{TableReader, Value};
use tidalite_pager::{PageRead, Result};

/// Callback that receives the payload of an entry.
pub(crate) type OnPayload<'f> = dyn FnMut(&[u8]) -> Result<()> + 'f;

/// Calls `each` with the entries of `key` in a run, oldest first.
pub(crate) fn in_run<'r, R: PageRead>(
    front: &TableReader<'r>,
    r: &'r R,
    run: u64,
    key: &[u8],
    each: &mut OnPayload<'_>,
) -> Result<()> {
    match front.floor(r, &row_key(run, key), &run.to_be_bytes())? {
        Some(block) => in_value(&block, key, each),
        None => Ok(()),
    }
}

/// Calls `each` with the entries of `key` in a table of blocks, oldest first.
pub(crate) fn in_table<'r, R: PageRead>(
    table: &TableReader<'r>,
    r: &'r R,
    key: &[u8],
    each: &mut OnPayload<'_>,
) -> Result<()> {
    match table.floor(r, key, b"")? {
        Some(block) => in_value(&block, key, each),
        None => Ok(()),
    }
}

/// Calls `each` with the entries of `key` in a block, oldest first.
fn in_value(value: &Value<'_>, key: &[u8], each: &mut OnPayload<'_>) -> Result<()> {
    if let Some(bytes) = value.as_slice() {
        return in_block(bytes, key, each);
    }
    let mut chunks = value.chunks();
    let Some(first) = chunks.next() else {
        return Ok(());
    };
    let first = first?;
    if first.len() as u64 == value.len() {
        return in_block(&first, key, each);
    }
    // If a block has more than one chunk, it has very many entries of one key, or very large ones.
    in_block(&value.to_vec()?, key, each)
}

fn in_block(bytes: &[u8], key: &[u8], each: &mut OnPayload<'_>) -> Result<()> {
    let block = Block::parse(bytes)?;
    for index in block.lower_bound(key)?..block.len() {
        let entry = block.entry(index)?;
        if entry.key != key {
            break;
        }
        each(entry.payload)?;
    }
    Ok(())
}
