//! Rows that arrived in rounds (`round_robin.rs`). They form a matrix at the end of the log, with one line per round;
//! grouping by series transposes this matrix.
//!
//! ```text
//! log     ... | a b c d | a b c d | a b c d | a b      a round has one row per series, ordered by series id
//! grouped     | a a a a | b b b b | c c c | d d d |
//! ```
//!
//! Grouping by batches would instead write and read an index entry per row, and look up the target of the row twice.

use crate::buffer::log::Log;
use std::ops::Range;
use tidalite_base::prefetch;

/// Maximum number of series whose rows are transposed at a time. The rows of each round are in different pages: with
/// fewer series, the processor would translate an address for only a few words; with more, the rows would not stay in
/// the cache until they are encoded.
pub(super) const TRANSPOSED_SLOTS: usize = 32;

/// Minimum number of series whose rows are transposed at a time, used if more would exceed `TRANSPOSED_BYTES`. The
/// values of eight series fill one cache line per round.
const TRANSPOSED_SLOTS_MIN: usize = 8;

/// Size in bytes of transposed rows that stay in the cache of a processor core until they are encoded.
const TRANSPOSED_BYTES: usize = 768 << 10;

/// Number of rounds that are transposed at a time. The values of one series in these rounds fill one cache line of
/// the target.
const TILE_ROUNDS: usize = 8;

/// The rows at the end of a log that arrived in rounds; the last round may be incomplete.
pub(super) struct TransposedBatch {
    rows: Range<usize>,
    /// Ranks of the series of a round in the order of their ids, ascending.
    ranks: Vec<u32>,
}

impl TransposedBatch {
    /// Returns the rows of a log that arrived in rounds, if there are any; `ranks` maps slots to ranks.
    pub(super) fn of(log: &Log, ranks: &[u32]) -> Option<Self> {
        let rows = log.round_robin_rows();
        let slots = log.round_robin.slots().iter();
        (!rows.is_empty()).then(|| Self {
            rows,
            ranks: slots.map(|&slot| ranks[slot as usize]).collect(),
        })
    }

    /// Number of series copied at a time if their rows have `row_bytes` bytes.
    pub(super) fn slots_at_once(&self, row_bytes: usize) -> usize {
        let each = self.rows_of(0) * row_bytes;
        let slots = (TRANSPOSED_BYTES / each.max(1)).clamp(TRANSPOSED_SLOTS_MIN, TRANSPOSED_SLOTS);
        1 << slots.ilog2()
    }

    /// The positions within a round of the series whose ranks are in `ranks`.
    pub(super) fn places(&self, ranks: Range<usize>) -> Range<usize> {
        let [from, to] = [ranks.start, ranks.end]
            .map(|end| self.ranks.partition_point(|&rank| (rank as usize) < end));
        from..to
    }

    /// The rank of the series at position `place` of a round.
    pub(super) fn rank(&self, place: usize) -> usize {
        self.ranks[place] as usize
    }

    /// Number of rows of the series at position `place` of a round.
    pub(super) fn rows_of(&self, place: usize) -> usize {
        let (whole, rest) = (
            self.rows.len() / self.ranks.len(),
            self.rows.len() % self.ranks.len(),
        );
        whole + usize::from(place < rest)
    }

    /// Copies the values of the series at the positions `places` of a round from `source`, a column of the log, to
    /// `target`. The values of each series go to the offset in `starts`.
    pub(super) fn copy<T: Copy>(
        &self,
        places: Range<usize>,
        starts: &[usize],
        source: &[T],
        target: &mut [T],
    ) {
        let slots = self.ranks.len();
        debug_assert_eq!(starts.len(), places.len(), "a target for each series");
        debug_assert!(self.rows.end <= source.len(), "the column has these rows");
        let source = &source[self.rows.clone()];
        let whole = source.len() / slots;
        let round = |round: usize| &source[round * slots..][places.clone()];
        let tiles = whole / TILE_ROUNDS;
        for tile in 0..tiles {
            let at = tile * TILE_ROUNDS;
            // The next rounds are prefetched by hand: each is in a different page, where the hardware prefetcher does
            // not help.
            for next in at + TILE_ROUNDS..(at + 2 * TILE_ROUNDS).min(whole) {
                prefetch(round(next));
            }
            let lines: [&[T]; TILE_ROUNDS] = std::array::from_fn(|i| round(at + i));
            for (i, start) in starts.iter().enumerate() {
                let to = &mut target[start + at..][..TILE_ROUNDS];
                for (word, line) in to.iter_mut().zip(lines) {
                    *word = line[i];
                }
            }
        }
        for at in tiles * TILE_ROUNDS..whole {
            for (start, word) in starts.iter().zip(round(at)) {
                target[start + at] = *word;
            }
        }
        let last = &source[whole * slots..];
        for (start, place) in starts.iter().zip(places) {
            if let Some(&word) = last.get(place) {
                target[start + whole] = word;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::buffer::group::Group;
    use crate::buffer::write_buffer::{Ready, WriteBuffer};
    use std::collections::BTreeMap;
    use tidalite_base::SeriesId;
    use tidalite_codec::ColumnType;
    use tidalite_testkit::rng::Rng;

    type Model = BTreeMap<u64, BTreeMap<i64, [u64; 2]>>;

    /// Removes all rows from the write buffer except rows that `keep` leaves in it, and compares the removed rows
    /// with the model.
    fn take(buffer: &mut WriteBuffer, model: &mut Model, keep: usize) {
        let mut seen = 0;
        buffer
            .group(0, true, |Group { series, rows }| {
                let own = model.get_mut(&series.0).unwrap();
                assert!(rows.is_sorted_unique() && rows.len() == own.len());
                for (i, (time, words)) in own.iter().enumerate() {
                    let row = (rows.times()[i], rows.column(0)[i], rows.column(1)[i]);
                    assert_eq!(row, (*time, words[0], words[1]), "{series}, row {i}");
                }
                seen += 1;
                let taken = rows.len().saturating_sub(keep);
                own.retain(|time, _| rows.times()[taken..].contains(time));
                Ok(taken)
            })
            .unwrap();
        buffer.grouped();
        model.retain(|_, rows| !rows.is_empty());
        assert!(seen >= model.len(), "every series");
    }

    #[test]
    fn rounds_come_out_series_by_series_whatever_disturbs_them() {
        let types = [ColumnType::I64, ColumnType::F64];
        let mut in_turn = 0;
        for seed in 0..60 {
            let mut rng = Rng::new(seed);
            let mut buffer = WriteBuffer::default();
            let series = rng.between(2, 300) as u64;
            let mut slots: Vec<_> = (0..series)
                .map(|id| (id * 3, buffer.slot(SeriesId(id * 3), &types)))
                .collect();
            if rng.one_in(6) {
                slots.reverse();
            }
            let (skips, repeats) = (rng.one_in(4), rng.one_in(4));
            let mut model = Model::new();
            let mut time = 0;
            for _ in 0..3 {
                let rows = rng.below(100 * series);
                let start = rng.index(slots.len());
                for i in 0..rows as usize {
                    let (id, slot) = slots[(start + i) % slots.len()];
                    if skips && rng.one_in(500) {
                        continue;
                    }
                    for _ in 0..if repeats && rng.one_in(900) { 5 } else { 1 } {
                        time += 1;
                        let late = if rng.one_in(50) { 400 } else { 0 };
                        let flags = u64::from(seed % 5 == 0 && rng.one_in(10));
                        let value = rng.u64();
                        if buffer.push_point(slot, time - late, flags, value) {
                            assert_eq!(buffer.ready(), Ready::Nothing);
                        }
                        let own = model.entry(id).or_default();
                        own.insert(time - late, [flags, value]);
                    }
                }
                if rng.one_in(10) {
                    // Reading a slot moves its rows from the log to an overlay; the batches of these rows stay in the
                    // log as gaps.
                    let (_, slot) = *rng.pick(&slots);
                    let _ = buffer.rows(slot);
                }
                in_turn += u64::from(buffer.logs[0].round_robin.is_active());
                let keep = rng.below(20) as usize;
                take(&mut buffer, &mut model, keep);
            }
            take(&mut buffer, &mut model, 0);
            assert!(model.is_empty());
        }
        println!("{in_turn} of 180 logs had rounds");
        assert!((30..170).contains(&in_turn), "{in_turn}");
    }
}
