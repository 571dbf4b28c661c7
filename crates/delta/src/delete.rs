//! Deletes an interval of a series immediately, everywhere in the delta.
//!
//! Blocks entirely within the interval lose their directory entry; blocks that overlap it partly are rewritten without
//! the deleted rows. The old block stays intact in its extent until the last block of that extent is replaced or the
//! run is freed. There are no tombstones, so readers and compactions need not know about deletes.

use crate::counters::Work;
use crate::delta::Delta;
use crate::key::Key;
use crate::run::block::{Block, encode_block, row_bytes};
use crate::run::descriptor::Run;
use crate::run::directory::{self, Entry, entries_from};
use crate::run::tail;
use crate::run::writer::BlockStore;
use tidalite_base::SeriesId;
use tidalite_codec::ColumnType;
use tidalite_pager::{PageWrite, Ptr, Result};

/// Number of directory entries of a run that are read at once.
const ENTRIES_AT_ONCE: usize = 64;

impl Delta {
    /// Removes all rows of a series with `from <= time <= to`. Returns the removed times, sorted and without
    /// duplicates. Rows in the write buffer and in leaves are not removed; the caller must do that.
    ///
    /// # Errors
    /// `Corrupt`, `Io`, `DiskFull`; the transaction must then be rolled back.
    ///
    /// # Cost
    /// Rewrites the blocks at the edges of the interval in every live run, their directory pages and the tail page.
    pub fn delete<W: PageWrite>(
        &mut self,
        w: &mut W,
        series: SeriesId,
        types: &[ColumnType],
        (from, to): (i64, i64),
    ) -> Result<Vec<i64>> {
        let mut removed = Vec::new();
        let Some(class) = self.class_of(types) else {
            return Ok(removed);
        };
        let place = (class, series);
        let tail = tail::delete(w, &self.tail, &self.layouts, place, (from, to))?;
        if let Some((ptr, rows, times)) = tail {
            (self.tail, self.tail_rows) = (ptr, rows);
            removed = times;
        }
        let layouts = self.layouts.clone();
        for tier in &mut self.record.tiers {
            let (inputs, watermark) = match &tier.compaction {
                Some(compaction) => (compaction.inputs, compaction.watermark),
                None => (0, None),
            };
            let mut delete = |run: &mut Run, after: Option<Key>, work: &mut Work| {
                let delete = DeleteInRun {
                    layouts: &layouts,
                    place,
                    from,
                    to,
                    after,
                };
                delete.run(w, run, work, &mut removed)
            };
            for (i, run) in tier.runs.iter_mut().enumerate() {
                let after = watermark.filter(|_| i < inputs);
                self.changed |= delete(run, after, &mut self.work)?;
            }
            if let Some(run) = tier
                .compaction
                .as_mut()
                .and_then(|compaction| compaction.output.as_mut())
            {
                self.changed |= delete(run, None, &mut self.work)?;
            }
            // A run without rows is freed, unless an open compaction uses it as input.
            let mut i = inputs;
            while i < tier.runs.len() {
                if tier.runs[i].rows == 0 {
                    tier.runs.remove(i).free(w)?;
                } else {
                    i += 1;
                }
            }
        }
        removed.sort_unstable();
        removed.dedup();
        Ok(removed)
    }
}

struct DeleteInRun<'l> {
    layouts: &'l [Box<[ColumnType]>],
    place: (u32, SeriesId),
    from: i64,
    to: i64,
    /// Watermark of the open compaction that reads this run, if there is one. Rows up to this key are already hidden
    /// from readers, so they are deleted but not counted.
    after: Option<Key>,
}

impl DeleteInRun<'_> {
    /// Deletes the rows of the interval from one run; returns true if any were removed.
    fn run<W: PageWrite>(
        &self,
        w: &mut W,
        run: &mut Run,
        work: &mut Work,
        removed: &mut Vec<i64>,
    ) -> Result<bool> {
        if !run.may_hold(self.place, self.from, self.to) {
            return Ok(false);
        }
        let high = Key::new(self.place.0, self.place.1, self.to);
        let mut store = BlockStore::default();
        let mut block = Block::default();
        let mut next = Some(Key::new(self.place.0, self.place.1, self.from));
        let mut entries = Vec::new();
        let rows_before = run.rows;
        while let Some(low) = next {
            entries.clear();
            entries_from(&run.directory, w, &low, ENTRIES_AT_ONCE, &mut entries)?;
            next = None;
            for entry in &entries {
                if entry.first > high {
                    next = None;
                    break;
                }
                block.read(w, &entry.ptr, self.layouts, true)?;
                self.block(w, run, work, &mut store, entry, &mut block, removed)?;
                next = entry.last.next().filter(|next| *next <= high);
            }
        }
        store.flush(run, w, work)?;
        Ok(run.rows < rows_before)
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one loop body")]
    fn block<W: PageWrite>(
        &self,
        w: &mut W,
        run: &mut Run,
        work: &mut Work,
        store: &mut BlockStore,
        entry: &Entry,
        block: &mut Block,
        removed: &mut Vec<i64>,
    ) -> Result<()> {
        let begin = block.lower_bound(&Key::new(self.place.0, self.place.1, self.from));
        let high = Key::new(self.place.0, self.place.1, self.to);
        let end = high
            .next()
            .map_or(block.len(), |next| block.lower_bound(&next));
        if begin >= end {
            return Ok(());
        }
        for row in begin..end {
            let key = block.key(row);
            if self.after.is_none_or(|after| after < key) {
                removed.push(key.time);
            }
        }
        block.series.drain(begin..end);
        block.rows.remove(begin..end);
        debug_assert_eq!(block.series.len(), block.rows.len(), "a series a row");
        directory::remove_entry(&mut run.directory, w, entry)?;
        let rows = (end - begin) as u64;
        run.rows = run.rows.saturating_sub(rows);
        run.bytes = run
            .bytes
            .saturating_sub(rows * row_bytes(block.rows.columns.len()));
        let Some(last) = block.len().checked_sub(1) else {
            return Ok(());
        };
        let entry = Entry {
            first: block.key(0),
            last: block.key(last),
            ptr: Ptr::NULL,
            rows: block.len() as u32,
        };
        let types = &self.layouts[block.class as usize];
        store.add(run, w, work, entry, |out| {
            let mut encoder_states = Vec::new();
            let (series, rows) = (&block.series, block.rows.view());
            encode_block(block.class, types, series, rows, &mut encoder_states, out);
        })
    }
}
