//! Checks the rules of the format that `sets.rs` and `container.rs` describe.

use crate::postings::container;
use crate::postings::sets::parse;
use roaring::RoaringBitmap;
use tidalite_base::Corrupt;
use tidalite_kv::{TableReader, Tree};
use tidalite_pager::{PageRead, Result};

/// Callback that receives the key of a set, the number of a container, and the lowest 32 bits of its members.
type OnContainer<'f> = dyn FnMut(&[u8], u32, &RoaringBitmap) -> Result<()> + 'f;

/// Reads all sets in ascending order, and checks the form of their containers. Calls `each` with the key of the set,
/// the number of the container and the lowest 32 bits of its members. The pages of the table are checked by
/// `Tree::check`.
///
/// # Errors
/// `Corrupt` for the first container that violates a rule; errors of `each`.
pub fn check<R: PageRead>(tree: &Tree, r: &R, each: &mut OnContainer<'_>) -> Result<()> {
    check_rows(tree, r, each)
}

/// Like `check`, for any table of sets.
pub(crate) fn check_rows<'r, R: PageRead>(
    table: impl Into<TableReader<'r>>,
    r: &'r R,
    each: &mut OnContainer<'_>,
) -> Result<()> {
    let mut cursor = table.into().cursor(r)?;
    let mut there = cursor.first()?;
    while there {
        let (key, block) = parse(cursor.key())?;
        let value = cursor.value()?;
        let bytes = value.bytes()?;
        let mut members = container::decode(block, &bytes)?;
        if container::encode(&mut members) != *bytes {
            let what = format!("container {block} of {}", key.escape_ascii());
            return Err(Corrupt::new(what, 0, "another form", "the form of its members").into());
        }
        each(key, block, &members)?;
        there = cursor.next()?;
    }
    Ok(())
}
