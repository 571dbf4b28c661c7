//! Reads the statistics of vectors without decoding the vectors, and prefetches vectors that will be decoded soon.

use crate::leaf::directory::{SectionPosition, number_of};
use crate::leaf::entry::Entry;
use crate::leaf::reader::Leaf;
use tidalite_base::limits::VECTOR_ROWS;
use tidalite_codec::{ColumnType, Stats};
use tidalite_pager::{PageRead, Result};

/// Number of bytes of a payload that are prefetched. The processor itself prefetches the bytes that follow; prefetching
/// the whole payload was slower.
const AHEAD_BYTES: usize = 512;

impl Leaf<'_> {
    /// Statistics of column `c` in vector `v`, read from the directory.
    pub(crate) fn stats(&self, v: usize, c: usize, ty: ColumnType) -> Result<Stats> {
        if let Some(word) = self.constant(c) {
            return Ok(self.stats_of_one(v, ty, word));
        }
        let entry = self.column_entry(v, c)?;
        Ok(entry.stats(ty, &self.full_span(v))?)
    }

    /// Merges the statistics of column `c` in vector `v` into `all`, which covers the preceding rows. `reached` holds
    /// the position after the previous call for this column and leaf, because entries of consecutive vectors are
    /// adjacent.
    #[inline]
    pub(crate) fn merge_stats(
        &self,
        v: usize,
        c: usize,
        reached: &mut SectionPosition,
        all: &mut Stats,
    ) -> Result<()> {
        if let Some(word) = self.constant(c) {
            all.merge_after(&self.stats_of_one(v, all.column_type(), word));
            return Ok(());
        }
        let of = (number_of(c), self.vectors);
        let position = self.sections.find_on(&self.block, of, v, reached)?;
        let span = self.full_span(v);
        Ok(Entry::at(&self.block, position).merge_stats(&span, all)?)
    }

    /// Statistics of vector `v` of a column in which all values equal `word`.
    #[inline(never)]
    fn stats_of_one(&self, v: usize, ty: ColumnType, word: u64) -> Stats {
        // The minimum and maximum of equal values are at the first row, whatever the times of the other rows are.
        let n = self.rows_of(v);
        debug_assert!((1..=VECTOR_ROWS).contains(&n), "rows of a vector");
        let times = [self.span(v).0; VECTOR_ROWS];
        let words = [word; VECTOR_ROWS];
        Stats::of(ty, &times[..n], &words[..n])
    }

    /// Prefetches the payloads of the times and of the given columns of vector `v`, which will be decoded soon.
    pub(crate) fn prefetch_vector<R: PageRead>(&self, r: &R, v: usize, columns: &[usize]) {
        if self.step.is_none() {
            self.prefetch_payload(r, v, 0);
        }
        for &c in columns {
            self.prefetch_column(r, v, c);
        }
    }

    /// Prefetches the payload of column `c` of vector `v`.
    pub(crate) fn prefetch_column<R: PageRead>(&self, r: &R, v: usize, c: usize) {
        if self.constant(c).is_none() {
            self.prefetch_payload(r, v, number_of(c));
        }
    }

    fn prefetch_payload<R: PageRead>(&self, r: &R, v: usize, number: usize) {
        // A damaged entry is ignored here; a later read of the vector reports the damage.
        if let Ok(position) = self.sections.find(&self.block, number, v, self.vectors) {
            let at = self.ptr.addr + (self.block.len() + position.offset) as u64;
            r.prefetch_bytes(at, position.payload_bytes.min(AHEAD_BYTES));
        }
    }
}
