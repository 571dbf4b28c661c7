//! Sets of ids, stored as Roaring bitmaps with one row for each block. Their keys end with the number of the block
//! (`keys`).

use crate::queues::keys::{BLOCK_BITS, split_block};
use crate::queues::parts::{Part, change, damaged, part};
use tidalite_index::{Changes, RoaringTreemap, apply, get, set_cursor};
use tidalite_kv::Tree;
use tidalite_pager::{PageRead, PageWrite, Result};

/// Changes of sets, by part.
#[derive(Default)]
pub(crate) struct SetChanges {
    parts: [(Option<Part>, Changes); PARTS],
}

/// Number of parts that are tables of sets.
const PARTS: usize = 6;

impl SetChanges {
    fn of(&mut self, part: Part) -> &mut Changes {
        let index = match part {
            Part::Open => 0,
            Part::Ready => 1,
            Part::Due => 2,
            Part::Waiting => 3,
            Part::Dead => 4,
            _ => PARTS - 1,
        };
        self.parts[index].0 = Some(part);
        &mut self.parts[index].1
    }

    pub(crate) fn add(&mut self, part: Part, key: &[u8], id: u64) {
        self.of(part).add(key, id & ((1 << BLOCK_BITS) - 1));
    }

    pub(crate) fn remove(&mut self, part: Part, key: &[u8], id: u64) {
        self.of(part).remove(key, id & ((1 << BLOCK_BITS) - 1));
    }

    /// Stores the changes of one part.
    pub(crate) fn store_part<W: PageWrite>(
        &mut self,
        root: &mut Tree,
        w: &mut W,
        part: Part,
    ) -> Result<()> {
        let changes = self.of(part);
        if changes.is_empty() {
            return Ok(());
        }
        change(root, w, part, &mut |w, table| apply(table, w, changes))
    }

    /// Number of changes that are not stored yet.
    pub(crate) fn len(&self) -> usize {
        self.parts.iter().map(|(_, changes)| changes.len()).sum()
    }

    /// Stores all changes.
    pub(crate) fn store<W: PageWrite>(&mut self, root: &mut Tree, w: &mut W) -> Result<()> {
        for index in 0..PARTS {
            if let Some(part) = self.parts[index].0 {
                self.store_part(root, w, part)?;
            }
        }
        Ok(())
    }
}

/// The ids of one set in ascending order.
pub(crate) fn ids(base: u64, members: &RoaringTreemap) -> impl Iterator<Item = u64> + '_ {
    members.iter().map(move |low| base | low)
}

/// Callback that receives the key of a set without the number of the block, the least id of the block, and the members
/// relative to that id. It returns whether to continue.
pub(crate) type OnSet<'f> = dyn FnMut(&[u8], u64, &RoaringTreemap) -> Result<bool> + 'f;

/// Calls `each` with the sets whose keys start with `prefix`, beginning at the key `from`, in the order of their keys.
/// The keys that `each` receives include `prefix`.
pub(crate) fn each_set<R: PageRead>(
    root: &Tree,
    r: &R,
    of: Part,
    prefix: &[u8],
    from: &[u8],
    each: &mut OnSet<'_>,
) -> Result<()> {
    let table = part(root, r, of)?;
    if table.is_empty() {
        return Ok(());
    }
    let Some(mut sets) = set_cursor(table, r, from)? else {
        return Ok(());
    };
    loop {
        let key = sets.key().to_vec();
        if !key.starts_with(prefix) {
            return Ok(());
        }
        let own = split_block(&key).filter(|(own, _)| own.starts_with(prefix));
        let Some((own, base)) = own else {
            return Err(damaged("set of ids", key.escape_ascii(), "a longer key"));
        };
        let mut members = RoaringTreemap::new();
        let has_next = sets.add_to(&mut members)?;
        if members.max().is_some_and(|low| low >> BLOCK_BITS != 0) {
            return Err(damaged(
                "set of ids",
                key.escape_ascii(),
                "ids of one block",
            ));
        }
        if !each(own, base, &members)? || !has_next {
            return Ok(());
        }
    }
}

/// The set with exactly this key; ids are relative to the least id of the block.
pub(crate) fn block<R: PageRead>(
    root: &Tree,
    r: &R,
    of: Part,
    key: &[u8],
) -> Result<RoaringTreemap> {
    get(part(root, r, of)?, r, key)
}

/// Selects the ids that are in the sets of the part `of`; `key` returns the key of the set for an id. The ids must
/// ascend.
pub(crate) fn within<R: PageRead>(
    root: &Tree,
    r: &R,
    of: Part,
    ids: &[u64],
    key: &dyn Fn(u64) -> Vec<u8>,
) -> Result<Vec<u64>> {
    let mut found = Vec::new();
    for group in ids.chunk_by(|a, b| a >> BLOCK_BITS == b >> BLOCK_BITS) {
        let members = block(root, r, of, &key(group[0]))?;
        let mask = (1 << BLOCK_BITS) - 1;
        found.extend(group.iter().filter(|id| members.contains(**id & mask)));
    }
    Ok(found)
}
