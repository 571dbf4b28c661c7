//! Where finished stretches go: the trees of the series that a transaction touches, and the extents
//! that their leaves are packed into.
//!
//! Invariants: 1. `trees` holds the newest state of every series tree that this transaction changed;
//! the records table still holds the old one until `finish`. 2. What the packer buffers cannot be read
//! before `flush`.

use crate::catalog::id_key;
use crate::error::Result;
use crate::roots::Roots;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use tidalite_base::{Corrupt, SeriesId};
use tidalite_codec::{ColumnType, RowsRef};
use tidalite_kv::{Relocation, Tree};
use tidalite_pager::{PageRead, PageWrite};
use tidalite_runs::Sink;
use tidalite_series::{Moving, Packer, SeriesTree};

struct OpenTree {
    tree: SeriesTree,
    changed: bool,
}

/// The series trees of a write transaction.
pub(crate) struct Leaves {
    records: Tree,
    packer: Packer,
    trees: HashMap<SeriesId, OpenTree>,
}

impl Leaves {
    pub(crate) fn new(roots: &Roots) -> Self {
        Self {
            records: roots.records,
            packer: Packer::new(roots.extents),
            trees: HashMap::new(),
        }
    }

    /// The tree of a series as it stands in this transaction.
    pub(crate) fn tree<W: PageWrite>(
        &mut self,
        pages: &mut W,
        id: SeriesId,
        types: &[ColumnType],
    ) -> Result<&SeriesTree> {
        self.packer.flush(pages)?;
        Ok(&open(&mut self.trees, &self.records, pages, id, Some(types))?.tree)
    }

    /// Removes the rows from..=to of a series' leaves.
    pub(crate) fn delete<W: PageWrite>(
        &mut self,
        pages: &mut W,
        id: SeriesId,
        types: &[ColumnType],
        (from, to): (i64, i64),
    ) -> Result<()> {
        self.packer.flush(pages)?;
        let open = open(&mut self.trees, &self.records, pages, id, Some(types))?;
        open.changed |= open.tree.delete(pages, &mut self.packer, from, to)? > 0;
        Ok(())
    }

    /// Moves leaves and nodes, from a series and a time on. Where to go on; `None` behind the last series.
    pub(crate) fn relocate<W: PageWrite>(
        &mut self,
        pages: &mut W,
        moving: &Moving,
        step: &mut Relocation,
        from: (SeriesId, i64),
    ) -> Result<Option<(SeriesId, i64)>> {
        let (mut next, mut time) = from;
        while step.pages > 0 {
            let (id, record) = {
                let mut cursor = self.records.cursor(&*pages);
                if !cursor.seek_ge(&id_key(next))? {
                    return Ok(None);
                }
                let id = <[u8; 8]>::try_from(cursor.key()).map(u64::from_be_bytes);
                let Ok(id) = id else {
                    let found = format!("a key of {} bytes", cursor.key().len());
                    return Err(Corrupt::new("record of a series", 0, found, "8 bytes").into());
                };
                (SeriesId(id), cursor.value()?.to_vec()?)
            };
            let from = if id == next { time } else { i64::MIN };
            let mut tree = SeriesTree::decode(id, &record)?;
            let before = step.pages;
            let stop = tree.relocate(pages, &mut self.packer, moving, step, from)?;
            if step.pages != before {
                let record = tree.save(pages, &mut self.packer)?;
                self.records.insert(pages, &id_key(id), &record)?;
            }
            if let Some(stop) = stop {
                return Ok(Some((id, stop)));
            }
            (next, time) = (SeriesId(id.0.saturating_add(1)), i64::MIN);
        }
        Ok(Some((next, time)))
    }

    /// Moves pages of the table of records.
    pub(crate) fn relocate_records<W: PageWrite>(
        &mut self,
        pages: &mut W,
        step: &mut Relocation,
        from: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        Ok(self.records.relocate(pages, step, from)?)
    }

    /// Moves pages of the extents table.
    pub(crate) fn relocate_extents_table<W: PageWrite>(
        &mut self,
        pages: &mut W,
        step: &mut Relocation,
        from: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        Ok(self.packer.relocate_table(pages, step, from)?)
    }

    /// Writes what waits and the records of the changed series; puts the new roots.
    pub(crate) fn finish<W: PageWrite>(&mut self, pages: &mut W, roots: &mut Roots) -> Result<()> {
        let mut changed: Vec<_> = self
            .trees
            .iter_mut()
            .filter(|(_, open)| open.changed)
            .collect();
        changed.sort_unstable_by_key(|(id, _)| **id);
        for (id, open) in changed {
            let record = open.tree.save(pages, &mut self.packer)?;
            self.records.insert(pages, &id_key(*id), &record)?;
        }
        roots.extents = self.packer.finish(pages)?;
        self.records.seal(pages)?;
        roots.records = self.records;
        Ok(())
    }
}

/// The tree of a series under a snapshot; an empty one when it has no record yet.
pub(crate) fn stored_tree<R: PageRead>(
    records: &Tree,
    pages: &R,
    id: SeriesId,
    types: &[ColumnType],
) -> tidalite_pager::Result<SeriesTree> {
    match records.get(pages, &id_key(id))? {
        Some(record) => {
            let tree = SeriesTree::decode(id, &record.to_vec()?)?;
            if tree.types() != types {
                let (found, expected) = (format!("{:?}", tree.types()), format!("{types:?}"));
                return Err(Corrupt::new(format!("record of {id}"), 0, found, expected).into());
            }
            Ok(tree)
        }
        None => SeriesTree::new(id, types),
    }
}

fn open<'t, W: PageWrite>(
    trees: &'t mut HashMap<SeriesId, OpenTree>,
    records: &Tree,
    pages: &W,
    id: SeriesId,
    types: Option<&[ColumnType]>,
) -> tidalite_pager::Result<&'t mut OpenTree> {
    Ok(match trees.entry(id) {
        Entry::Occupied(entry) => entry.into_mut(),
        Entry::Vacant(entry) => {
            let tree = stored_tree(records, pages, id, types.unwrap_or_default())?;
            entry.insert(OpenTree {
                tree,
                changed: false,
            })
        }
    })
}

impl<W: PageWrite> Sink<W> for Leaves {
    fn link(
        &mut self,
        pages: &mut W,
        id: SeriesId,
        types: &[ColumnType],
        rows: RowsRef<'_>,
    ) -> tidalite_pager::Result<()> {
        let open = open(&mut self.trees, &self.records, pages, id, Some(types))?;
        open.changed = true;
        // Merging into leaves reads them: what this transaction wrote must be readable.
        if open
            .tree
            .span()
            .is_some_and(|(_, end)| rows.times().first().is_some_and(|&t| t <= end))
        {
            self.packer.flush(pages)?;
        }
        open.tree.link(pages, &mut self.packer, rows)
    }
}
