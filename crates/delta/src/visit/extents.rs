//! Checks all bytes of the extents of a run.
//!
//! 1. Every block that the directory lists lies in an extent of its transaction, at a multiple of 8, without overlap.
//! 2. Each extent has as many of these blocks as the directory counts, at least one.
//! 3. The rest of an extent consists of intact blocks that a delete replaced or a compaction has consumed.
//! 4. Zeros fill the space between a block and the next multiple of 8, and from there to the end of the last page.

use crate::limits::BLOCK_BYTES_MAX;
use crate::run::block::{BLOCK_ALIGN, encoded_len};
use tidalite_base::{Corrupt, get_u64};
use tidalite_pager::{
    Error, Extent, HEADER_BYTES, Header, Kind, PageRead, Ptr, Result, expect_zeros, verify_block,
};

const ALIGN: u64 = BLOCK_ALIGN as u64;

fn damaged(at: u64, found: String, expected: String) -> Error {
    Corrupt::new("extent of a run", at, found, expected).into()
}

/// Checks `extents`, which belong to the run `owner` and are in ascending order, each with the number of its blocks
/// that the directory lists. `blocks` are all blocks that the directory lists; this function sorts them.
pub(crate) fn check<R: PageRead>(
    r: &R,
    owner: u64,
    extents: &[(Extent, u64)],
    blocks: &mut [Ptr],
) -> Result<()> {
    blocks.sort_unstable_by_key(|ptr| ptr.addr);
    let mut next = blocks.iter().peekable();
    for (extent, counted) in extents {
        let bytes = extent.pages.saturating_mul(r.page_size() as u64);
        let end = extent.addr.saturating_add(bytes);
        let (mut at, mut found) = (extent.addr, 0u64);
        while let Some(ptr) = next.next_if(|ptr| ptr.addr < end) {
            while at < ptr.addr {
                at = dead_block(r, owner, extent, at, ptr.addr)?;
            }
            let to = ptr.addr.saturating_add(u64::from(ptr.len));
            if at != ptr.addr || to > end || ptr.birth != extent.birth {
                let found = format!("a block of {} at {}..{to}", ptr.birth, ptr.addr);
                let expected = format!("blocks of {} within {at}..{end}", extent.birth);
                return Err(damaged(extent.addr, found, expected));
            }
            at = padded(r, to, end)?;
            found += 1;
        }
        if found != *counted || found == 0 {
            let expected = format!("{found}, at least 1");
            return Err(damaged(extent.addr, format!("{counted} blocks"), expected));
        }
        while at < end && !is_zero(r, at, end)? {
            at = dead_block(r, owner, extent, at, end)?;
        }
    }
    match next.next() {
        None => Ok(()),
        Some(ptr) => {
            let found = format!("a block at {}", ptr.addr);
            Err(damaged(ptr.addr, found, "blocks in its extents".into()))
        }
    }
}

/// Checks that the padding after a block that ends at `to` is zero; returns the start of the next block.
fn padded<R: PageRead>(r: &R, to: u64, end: u64) -> Result<u64> {
    let at = to.saturating_add(to.wrapping_neg() % ALIGN).min(end);
    expect_zeros(r, to, at.saturating_sub(to) as usize)?;
    Ok(at)
}

/// Whether the extent has only padding from `at` on: less than a page, and all zeros.
fn is_zero<R: PageRead>(r: &R, at: u64, end: u64) -> Result<bool> {
    let rest = (end - at) as usize;
    Ok(rest < r.page_size() && r.bytes(at, rest)?.iter().all(|&byte| byte == 0))
}

/// Verifies a block that the directory does not list, because a delete replaced it or a compaction consumed it.
/// Returns the position of the next block.
fn dead_block<R: PageRead>(r: &R, owner: u64, extent: &Extent, at: u64, end: u64) -> Result<u64> {
    let bytes = r.bytes(at, (end - at).min(BLOCK_BYTES_MAX as u64) as usize)?;
    let Some(len) = encoded_len(&bytes) else {
        let found = format!("{} bytes that are none", bytes.len());
        return Err(damaged(at, found, "a whole block or zeros".into()));
    };
    let ptr = Ptr {
        addr: at,
        len: len as u32,
        kind: Kind::RunBlock,
        checksum: get_u64(&bytes, 0),
        birth: extent.birth,
    };
    verify_block(&bytes[..len], &ptr)?;
    let header = Header::decode(&bytes[..HEADER_BYTES]);
    if header.owner != owner {
        return Err(damaged(
            at,
            format!("a block of {}", header.owner),
            format!("{owner}"),
        ));
    }
    padded(r, at + len as u64, end)
}
