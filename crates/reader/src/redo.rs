//! Replays the redo log ("The log" in section 3 of docs/format.md).

use crate::block::{HEADER_BYTES, Header, kind};
use crate::bytes::{Fields, index, unzigzag};
use crate::error::{Error, Result};
use crate::head::{HEAD_BLOCK_BYTES, Meta, Superblock};
use std::collections::BTreeMap;

/// Length in bytes of a block of the redo log.
const LOG_BLOCK_BYTES: usize = 4096;

/// Number of bytes in front of the payload of a block of the redo log.
const LOG_HEAD_BYTES: usize = 56;

/// Maximum length in bytes of a redo log.
const LOG_BYTES_MAX: usize = 64 << 20;

/// The result of replaying a redo log.
#[derive(Debug)]
pub struct Replayed {
    /// The meta record of the newest commit: of a commit in the log, or the record with which the replay began.
    pub meta: Meta,
    /// The pages that the commits in the log have changed, by address.
    pub pages: BTreeMap<u64, Vec<u8>>,
    /// A transaction that was durable but is missing, because blocks of the log are damaged; `None` if none is missing.
    pub lost: Option<u64>,
}

struct LogBlock<'a> {
    blocks: usize,
    birth: u64,
    payload: &'a [u8],
}

/// Replays the redo log that `record` names on top of the pages of the file.
///
/// # Errors
/// If undamaged blocks of the log contradict the format.
pub fn replay(file: &[u8], superblock: &Superblock, record: Meta) -> Result<Replayed> {
    let mut replayed = Replayed {
        meta: record.clone(),
        pages: BTreeMap::new(),
        lost: None,
    };
    let Some(log) = record.log else {
        return Ok(replayed);
    };
    let begin = index(log.page.saturating_mul(superblock.page_bytes as u64));
    let bytes = index(log.pages.saturating_mul(superblock.page_bytes as u64));
    if bytes > LOG_BYTES_MAX {
        return Err(Error::damaged(begin as u64, "the log is too long"));
    }
    let end = begin.saturating_add(bytes);
    let Some(places) = file.get(begin..end) else {
        return Err(Error::damaged(begin as u64, "the log is not in the file"));
    };

    // The blocks of the log, by the number of the first block of their flush and by their own number.
    let committed = record.committed_checksum();
    let mut blocks: BTreeMap<(u64, u64), LogBlock<'_>> = BTreeMap::new();
    for (place, block) in places.chunks_exact(LOG_BLOCK_BYTES).enumerate() {
        let address = (begin + place * LOG_BLOCK_BYTES) as u64;
        let Ok(header) = Header::read_at(block, address, kind::LOG) else {
            continue;
        };
        let mut fields = Fields::from(block, HEADER_BYTES, address)?;
        let sequence = fields.u64()?;
        if sequence > record.sequence {
            replayed.lost = Some(header.birth);
        }
        if sequence != record.sequence || fields.u64()? != committed {
            continue;
        }
        let first = fields.u32()? as u64;
        let count = fields.u16()?;
        let used = fields.u16()?;
        debug_assert_eq!(fields.position(), LOG_HEAD_BYTES);
        let payload = fields.take(used)?;
        fields.require(
            first <= header.owner && header.owner < first + count as u64,
            "a block of the log outside its flush",
        )?;
        let block = LogBlock {
            blocks: count,
            birth: header.birth,
            payload,
        };
        blocks.entry((first, header.owner)).or_insert(block);
    }

    let mut next = 0;
    let mut meta_block = record.as_in_log();
    while let Some((payload, count, birth)) = flush(&blocks, next) {
        let mut fields = Fields::new(&payload, begin as u64);
        let mut transaction = 0;
        while fields.left() > 0 {
            let bytes = fields.u32()?;
            let mut commit = Fields::new(fields.take(bytes)?, begin as u64);
            transaction = commit.u64()?;
            let bytes = commit.u32()?;
            let mut steps = Fields::new(commit.take(bytes)?, begin as u64);
            meta_block = patched(&meta_block, HEAD_BLOCK_BYTES, &mut steps)?;
            replay_pages(
                file,
                superblock.page_bytes,
                &mut commit,
                &mut replayed.pages,
            )?;
            let meta = Meta::read(&meta_block, 0, &superblock.uuid)?;
            fields.require(
                meta.transaction == transaction && transaction > replayed.meta.transaction,
                "transactions of the log do not ascend",
            )?;
            replayed.meta = meta;
        }
        fields.require(transaction == birth, "the last commit of a flush")?;
        next += count as u64;
    }
    if let Some(((_, _), later)) = blocks.iter().find(|((first, _), _)| *first > next) {
        replayed.lost = Some(later.birth);
    }
    Ok(replayed)
}

/// Joins the payloads of the flush that begins with block `first`; also returns its number of blocks and its birth.
/// `None` unless all blocks of the flush exist.
fn flush(blocks: &BTreeMap<(u64, u64), LogBlock<'_>>, first: u64) -> Option<(Vec<u8>, usize, u64)> {
    let head = blocks.get(&(first, first))?;
    let mut payload = Vec::new();
    for number in 0..head.blocks as u64 {
        payload.extend_from_slice(blocks.get(&(first, first + number))?.payload);
    }
    Some((payload, head.blocks, head.birth))
}

/// Replays the changes of the pages by one commit.
fn replay_pages(
    file: &[u8],
    page_bytes: usize,
    commit: &mut Fields<'_>,
    pages: &mut BTreeMap<u64, Vec<u8>>,
) -> Result<()> {
    let count = commit.u32()?;
    let mut changed = BTreeMap::new();
    let mut before = None;
    for _ in 0..count {
        let page = commit.u64()?;
        let base = commit.u64()?;
        let bytes = commit.u32()?;
        let mut steps = Fields::new(commit.take(bytes)?, 0);
        commit.require(before < Some(page), "pages of a commit do not ascend")?;
        before = Some(page);
        let address = |page: u64| page.checked_mul(page_bytes as u64);
        let (Some(at), Some(base_at)) = (address(page), address(base)) else {
            return Err(commit.damaged("a page number of the log"));
        };
        let base = match pages.get(&base_at) {
            _ if base == 0 => &vec![0; page_bytes],
            Some(made) => made,
            None => {
                let begin = index(base_at);
                let stored = file.get(begin..begin.saturating_add(page_bytes));
                &stored
                    .ok_or_else(|| commit.damaged("a base page is not in the file"))?
                    .to_vec()
            }
        };
        changed.insert(at, patched(base, page_bytes, &mut steps)?);
    }
    commit.require(commit.left() == 0, "a commit of the log goes on")?;
    pages.extend(changed);
    let held = pages.len() * page_bytes;
    commit.require(held <= LOG_BYTES_MAX, "the log leads to too many pages")
}

/// Applies the steps of a change to the old bytes `base`: each step adds new bytes, then copies bytes of `base`.
fn patched(base: &[u8], length: usize, steps: &mut Fields<'_>) -> Result<Vec<u8>> {
    let mut made = Vec::with_capacity(length);
    let mut copied_to: u64 = 0;
    while made.len() < length {
        let new = index(steps.varint()?);
        steps.require(new <= length - made.len(), "a step beyond the page")?;
        made.extend_from_slice(steps.take(new)?);
        let copied = index(steps.varint()?);
        steps.require(copied <= length - made.len(), "a step beyond the page")?;
        if copied == 0 {
            continue;
        }
        let from = copied_to.wrapping_add(unzigzag(steps.varint()?));
        let begin = index(from);
        let Some(bytes) = base.get(begin..begin.saturating_add(copied)) else {
            return Err(steps.damaged("a step copies from outside its base"));
        };
        made.extend_from_slice(bytes);
        copied_to = from + copied as u64;
    }
    steps.require(steps.left() == 0, "steps behind a full page")?;
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_add_new_bytes_and_copy_from_the_base() {
        let steps = [1, b'x', 2, 4, 0, 2, 7, 1, b'y', 0];
        let made = patched(b"abcdef", 6, &mut Fields::new(&steps, 0));
        assert_eq!(made.as_deref(), Ok(&b"xcdaby"[..]));
        for outside in [[0, 7, 0], [0, 6, 2], [7, 0, 0]] {
            assert!(patched(b"abcdef", 6, &mut Fields::new(&outside, 0)).is_err());
        }
    }
}
