//! Repairs damaged blocks at the head of the file from their other copies, and checks the file length against a meta
//! record.

use crate::error::{Error, Result};
use crate::format::layout::{BLOCK_BYTES, HEAD_BYTES, first_page, meta_at, superblock_at};
use crate::format::meta::Meta;
use crate::format::meta_blocks::{Confirmation, MetaBlocks};
use crate::format::superblock::{self, Superblock};
use tidalite_base::Corrupt;
use tidalite_disk::storage::Storage;

/// Returns an error if the file is shorter than the newest meta record requires, that is, if it was truncated.
pub(crate) fn check_length(
    storage: &dyn Storage,
    superblock: &Superblock,
    meta: &Meta,
) -> Result<()> {
    let len = storage.len().map_err(|e| superblock::read_failed(0, e))?;
    let needed = meta.pages.checked_mul(superblock.page_size as u64);
    if needed.is_some_and(|needed| needed <= len) && meta.pages >= first_page(superblock.page_size)
    {
        return Ok(());
    }
    Err(Corrupt::new(
        "file length",
        len,
        format!("{len} bytes (was the file truncated?)"),
        match needed {
            Some(needed) => format!("{needed} bytes or more, which are {} pages", meta.pages),
            None => format!("{} pages of {} bytes", meta.pages, superblock.page_size),
        },
    )
    .into())
}

fn heal(storage: &dyn Storage, at: u64, block: &[u8]) -> Result<()> {
    assert_eq!(block.len(), BLOCK_BYTES, "the head consists of blocks");
    assert!(
        at + block.len() as u64 <= HEAD_BYTES,
        "only blocks of the head are healed"
    );
    let failed = |error| Error::of_write("healing", at, block.len() as u64, error);
    storage.write_at(at, block).map_err(failed)?;
    storage.sync().map_err(failed)
}

pub(crate) fn heal_superblocks(
    storage: &dyn Storage,
    superblock: &Superblock,
    damaged: &[Option<Error>; 2],
) -> Result<Vec<u64>> {
    let mut at_all = Vec::new();
    for (copy, damage) in damaged.iter().enumerate() {
        if damage.is_some() {
            heal(storage, superblock_at(copy), &superblock.encode(copy))?;
            at_all.push(superblock_at(copy));
        }
    }
    Ok(at_all)
}

/// Rewrites damaged meta blocks, one at a time and each followed by a sync: first in the pair of the newest meta
/// record, then in the other pair (torn by a crash during a commit). Returns the addresses of the rewritten blocks.
pub(crate) fn heal_metas(
    storage: &dyn Storage,
    blocks: &mut MetaBlocks,
    newest: &Meta,
) -> Result<Vec<u64>> {
    let mut at_all = Vec::new();
    let own = newest.pair();
    for pair in [own, 1 - own] {
        let content = blocks.best(pair).unwrap_or(newest).clone();
        for (copy, found) in blocks.copies[pair].iter_mut().enumerate() {
            if !matches!(found, Ok(meta) if meta.is_copy_of(&content)) {
                let at = meta_at(pair, copy);
                let mut healed = content.clone();
                healed.confirmations = Confirmation::of_healed(copy, content.confirmations);
                heal(storage, at, &healed.encode(at))?;
                at_all.push(at);
                *found = Ok(healed);
            }
        }
    }
    Ok(at_all)
}
