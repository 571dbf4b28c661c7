//! The place where flushed rows go: the trees of the series that a transaction touches, and the extents into which
//! their leaves are packed.
//!
//! Invariants: 1. `trees` holds the newest state of every series tree that this transaction has changed; the table of
//! series records still holds the old state until `finish`. 2. Leaves buffered by the packer cannot be read before
//! `flush`, nor rows of a tree's open leaf before that leaf is closed. 3. Open leaves take at most `open_bytes_max`
//! bytes after each installed batch.

use crate::catalog::entries::id_key;
use crate::catalog::roots::Roots;
use crate::types::error::Result;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use tidalite_base::{Corrupt, SeriesId};
use tidalite_codec::{ColumnType, RowsRef};
use tidalite_delta::{EncodingSink, Sink};
use tidalite_kv::{Relocation, Tree};
use tidalite_pager::{PageRead, PageWrite};
use tidalite_series::{Cooling, EncodedVectors, KeptHot, Moving, Packer, SeriesTree};

/// The open leaves of a transaction, one per series, may take up to 1/`OPEN_PART` of the size of its write buffer, in
/// addition to the buffer.
const OPEN_PART: usize = 4;

struct OpenTree {
    tree: SeriesTree,
    changed: bool,
}

/// The series trees of a write transaction.
pub(crate) struct Leaves {
    pub(crate) records: Tree,
    pub(crate) packer: Packer,
    trees: HashMap<SeriesId, OpenTree>,
    open_bytes_max: usize,
}

impl Leaves {
    /// Creates the trees of a transaction that buffers up to `write_buffer_bytes`, with leaves of up to `leaf_vectors`
    /// vectors.
    pub(crate) fn new(roots: &Roots, write_buffer_bytes: usize, leaf_vectors: usize) -> Self {
        Self {
            records: roots.records,
            packer: Packer::new(roots.extents).with_leaf_vectors(leaf_vectors),
            trees: HashMap::new(),
            open_bytes_max: write_buffer_bytes / OPEN_PART,
        }
    }

    /// The tree of a series with the changes of this transaction. Closes the open leaf of the series, so that the tree
    /// is readable.
    pub(crate) fn tree<W: PageWrite>(
        &mut self,
        pages: &mut W,
        id: SeriesId,
        types: &[ColumnType],
    ) -> Result<&SeriesTree> {
        let open = open(&mut self.trees, &self.records, pages, id, Some(types))?;
        open.tree.close_leaf(pages, &mut self.packer)?;
        self.packer.flush(pages)?;
        Ok(&open.tree)
    }

    /// The tree of a series with the changes of this transaction, if the transaction has loaded it.
    pub(crate) fn known(&self, id: SeriesId) -> Option<&SeriesTree> {
        self.trees.get(&id).map(|open| &open.tree)
    }

    /// Appends the columns `added` to a series; in its existing rows these columns are null, or zero.
    pub(crate) fn add_columns<W: PageWrite>(
        &mut self,
        pages: &mut W,
        id: SeriesId,
        types: &[ColumnType],
        added: &[ColumnType],
    ) -> Result<()> {
        let open = open(&mut self.trees, &self.records, pages, id, Some(types))?;
        open.tree.close_leaf(pages, &mut self.packer)?;
        open.tree = open.tree.clone().with_added(added)?;
        open.changed = true;
        Ok(())
    }

    /// Removes the rows of the times `from..=to` from a series' leaves.
    pub(crate) fn delete<W: PageWrite>(
        &mut self,
        pages: &mut W,
        id: SeriesId,
        types: &[ColumnType],
        (from, to): (i64, i64),
    ) -> Result<()> {
        let open = open(&mut self.trees, &self.records, pages, id, Some(types))?;
        open.changed |= open.tree.delete(pages, &mut self.packer, from, to)? > 0;
        Ok(())
    }

    /// Rewrites leaves of a series whose rows are before `before` in cold form, except those in `kept`; returns whether
    /// further such leaves are left for another step.
    pub(crate) fn cool<W: PageWrite>(
        &mut self,
        pages: &mut W,
        id: SeriesId,
        types: &[ColumnType],
        before: i64,
        (step, kept): (&mut Cooling, &mut KeptHot),
    ) -> Result<bool> {
        let open = open(&mut self.trees, &self.records, pages, id, Some(types))?;
        let more = open
            .tree
            .cool(pages, &mut self.packer, before, step, kept)?;
        open.changed |= step.rows > 0;
        Ok(more)
    }

    /// Moves leaves and nodes of series, as a step of compaction, beginning at a series and a time. Returns the series
    /// and time at which the next step continues; `None` after the last series.
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
                if id < next.0 {
                    // In a damaged tree whose keys do not ascend, the walk would never end.
                    let (found, expected) = (format!("series {id}"), format!("{next:?} or later"));
                    return Err(Corrupt::new("record of a series", 0, found, expected).into());
                }
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
            let Some(beyond) = id.0.checked_add(1) else {
                return Ok(None);
            };
            (next, time) = (SeriesId(beyond), i64::MIN);
        }
        Ok(Some((next, time)))
    }

    /// Closes open leaves if all of them together exceed their memory limit.
    fn keep_within<W: PageWrite>(&mut self, pages: &mut W) -> tidalite_pager::Result<()> {
        if self.packer.open_bytes() > self.open_bytes_max {
            self.close_fullest(pages)?;
        }
        Ok(())
    }

    /// Closes the open leaves that take most memory until a quarter of the memory limit is free.
    ///
    /// Cost: visits every series of the transaction; the next call comes only after that quarter is filled again.
    #[cold]
    fn close_fullest<W: PageWrite>(&mut self, pages: &mut W) -> tidalite_pager::Result<()> {
        let mut open: Vec<(usize, SeriesId)> = Vec::new();
        for (&id, open_tree) in &self.trees {
            let bytes = open_tree.tree.open_bytes();
            if bytes > 0 {
                open.push((bytes, id));
            }
        }
        open.sort_unstable_by_key(|&(bytes, id)| (Reverse(bytes), id));
        for (_, id) in open {
            if self.packer.open_bytes() <= self.open_bytes_max / 4 * 3 {
                break;
            }
            if let Some(open_tree) = self.trees.get_mut(&id) {
                open_tree.tree.close_leaf(pages, &mut self.packer)?;
            }
        }
        Ok(())
    }

    /// Writes buffered leaves and the records of the changed series; sets the new roots of the tables of records and
    /// extents.
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

/// Reads the tree of a series from the table of records; the tree is empty if the series has no record yet.
pub(crate) fn stored_tree<R: PageRead>(
    records: &Tree,
    pages: &R,
    id: SeriesId,
    types: &[ColumnType],
) -> tidalite_pager::Result<SeriesTree> {
    match records.get(pages, &id_key(id))? {
        Some(record) => {
            let tree = SeriesTree::decode(id, &record.bytes()?)?;
            // A record that was written before the last columns were added lacks these columns.
            let Some(added) = types.strip_prefix(tree.types()) else {
                let (found, expected) = (format!("{:?}", tree.types()), format!("{types:?}"));
                return Err(Corrupt::new(format!("record of {id}"), 0, found, expected).into());
            };
            if added.is_empty() {
                return Ok(tree);
            }
            tree.with_added(added)
        }
        None => SeriesTree::new(id, types),
    }
}

/// Reads the last row of a series' leaves from the table of records.
pub(crate) fn stored_last_row<R: PageRead>(
    records: &Tree,
    pages: &R,
    id: SeriesId,
    types: &[ColumnType],
) -> tidalite_pager::Result<Option<tidalite_series::Row>> {
    match records.get(pages, &id_key(id))? {
        Some(record) => SeriesTree::last_row_of(id, &record.bytes()?, types),
        None => Ok(None),
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
    ) -> tidalite_pager::Result<bool> {
        let open = open(&mut self.trees, &self.records, pages, id, Some(types))?;
        open.changed = true;
        let first = rows.times().first();
        let behind = first.is_none_or(|&first| open.tree.ends_before(first));
        open.tree.link(pages, &mut self.packer, rows)?;
        self.keep_within(pages)?;
        Ok(behind)
    }
}

impl<W: PageWrite> EncodingSink<W> for Leaves {
    type Encoded = EncodedVectors;

    fn begin(
        &mut self,
        pages: &mut W,
        id: SeriesId,
        types: &[ColumnType],
        encoded: &mut EncodedVectors,
    ) -> tidalite_pager::Result<()> {
        let open = open(&mut self.trees, &self.records, pages, id, Some(types))?;
        encoded.begin(&open.tree);
        Ok(())
    }

    fn encode(types: &[ColumnType], rows: RowsRef<'_>, encoded: &mut EncodedVectors) {
        encoded.encode(types, rows);
    }

    fn link_encoded(
        &mut self,
        pages: &mut W,
        id: SeriesId,
        types: &[ColumnType],
        encoded: &EncodedVectors,
    ) -> tidalite_pager::Result<bool> {
        let open = open(&mut self.trees, &self.records, pages, id, Some(types))?;
        let linked = open.tree.link_encoded(pages, &mut self.packer, encoded)?;
        open.changed |= linked;
        self.keep_within(pages)?;
        Ok(linked)
    }
}

#[cfg(test)]
mod tests {
    use crate::Steps;
    use crate::storage::MemoryStorage;
    use crate::{Options, Tuning, WriteTxn};
    use std::sync::Arc;
    use tidalite_testkit::rng::Rng;

    const WRITE_BUFFER_BYTES: usize = 512 << 10;
    const SERIES: usize = 20;

    fn names() -> Vec<String> {
        (0..SERIES).map(|i| format!("series.{i}")).collect()
    }

    /// Adds rows to all series, one row to each in turn, with random values that compress badly.
    fn feed(txn: &mut WriteTxn, rng: &mut Rng, times: std::ops::Range<i64>) {
        let names = names();
        for time in times {
            for name in &names {
                let mut series = txn.series(name).unwrap();
                let value = rng.below(1000) as f64 / 100.0;
                series.insert(Steps(time * 10), value).unwrap();
            }
            let open = txn.leaves.packer.open_bytes();
            assert!(
                open <= WRITE_BUFFER_BYTES / super::OPEN_PART,
                "{open} bytes"
            );
        }
    }

    #[test]
    fn leaves_stay_open_within_their_memory() {
        let mut rng = Rng::new(11);
        let options = Options::new().tuning(Tuning::new().write_buffer_bytes(WRITE_BUFFER_BYTES));
        let db = options
            .open_storage(Arc::new(MemoryStorage::new()))
            .unwrap();
        let mut txn = db.begin_write().unwrap();
        feed(&mut txn, &mut rng, 0..10_000);
        // The transaction reads, deletes and rolls back between its inserts, which closes open leaves.
        let mut first = txn.series("series.0").unwrap();
        assert_eq!(first.view().unwrap().count().unwrap(), 10_000);
        assert_eq!(first.delete(Steps(50_000)..Steps(60_000)).unwrap(), 1000);
        let savepoint = txn.savepoint().unwrap();
        feed(&mut txn, &mut rng, 10_000..12_000);
        txn.rollback_to(&savepoint).unwrap();
        let mut first = txn.series("series.0").unwrap();
        assert_eq!(first.view().unwrap().count().unwrap(), 9000);
        for i in 5000..6000 {
            first.insert(Steps(i * 10), 0.5).unwrap();
        }
        feed(&mut txn, &mut rng, 10_000..20_000);
        txn.commit().unwrap();
        let report = db.check().unwrap();
        assert!(report.is_clean(), "{report:?}");
        let snap = db.begin_read().unwrap();
        for name in names() {
            let series = snap.series(&name).unwrap().unwrap();
            assert_eq!(series.count().unwrap(), 20_000, "{name}");
        }
        // Each series has twenty vectors: there would be nearly as many leaves as vectors if no leaf stayed open.
        let leaves = report.leaves;
        println!("{leaves} leaves of {SERIES} series");
        assert!(leaves < 10 * SERIES as u64, "{leaves} leaves");
    }
}
