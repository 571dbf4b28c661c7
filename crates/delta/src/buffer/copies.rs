//! Copies the rows of a part of a log (a group of neighbouring series, see `group.rs`) so that the rows of each
//! series are contiguous.

use crate::buffer::log::{Fill, Log};
use crate::buffer::transposed::{TRANSPOSED_SLOTS, TransposedBatch};
use std::ops::Range;
use tidalite_codec::RowsRef;

/// Number of series whose batches are copied together; these series form a part.
pub(super) const PART_SLOTS: usize = 1 << PART_BITS;
const PART_BITS: u32 = 7;

/// Packed reference to a batch: rows << 39 | place of its series within the part << 32 | start in the log.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Route(u64);

impl Route {
    pub(super) fn new(start: usize, rows: usize, place: usize) -> Self {
        debug_assert!(rows < 1 << (32 - PART_BITS) && place < PART_SLOTS);
        debug_assert!(
            start <= u32::MAX as usize,
            "rows of a log are numbered in 32 bits"
        );
        Self((rows as u64) << (32 + PART_BITS) | (place as u64) << 32 | start as u64)
    }

    pub(super) fn start(self) -> usize {
        (self.0 & u64::from(u32::MAX)) as usize
    }

    pub(super) fn rows(self) -> usize {
        (self.0 >> (32 + PART_BITS)) as usize
    }

    pub(super) fn place(self) -> usize {
        (self.0 >> 32) as usize & (PART_SLOTS - 1)
    }
}

/// Begin and end of the copied rows of each series of a part.
pub(super) type Places = [(usize, usize); PART_SLOTS];

/// Copies of the rows of one part, grouped by series.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    pub(super) times: Vec<i64>,
    columns: Vec<Vec<u64>>,
    pub(super) fill: Fill,
}

impl Copies {
    /// Copies the rows of a part, grouped by series: within a series, first the rows from batches, then rows that
    /// arrived in rounds. `first` is the rank of the first series of the part. Returns the row range of each series
    /// in the copies.
    pub(super) fn copy_part(
        &mut self,
        log: &Log,
        index: &[Route],
        first: usize,
        transposed: Option<(&TransposedBatch, Range<usize>)>,
    ) -> Places {
        let mut ends = [0usize; PART_SLOTS];
        for route in index {
            ends[route.place()] += route.rows();
        }
        let in_batches = ends;
        if let Some((transposed, round)) = &transposed {
            for place in round.clone() {
                ends[transposed.rank(place) - first] += transposed.rows_of(place);
            }
        }
        let mut places = [(0, 0); PART_SLOTS];
        let mut total = 0;
        for (place, rows) in places.iter_mut().zip(ends) {
            *place = (total, total);
            total += rows;
        }
        debug_assert!(total <= log.rows(), "a part copies rows of its log only");
        if self.times.len() < total {
            self.times.resize(total, 0);
        }
        let varying = log.columns.iter().filter(|column| !column.constant).count();
        self.columns
            .resize_with(varying.max(self.columns.len()), Vec::new);
        for column in &mut self.columns[..varying] {
            if column.len() < total {
                column.resize(total, 0);
            }
        }
        // The copy handles one array (the times or a column) after another, so that more reads are in flight at once
        // than if each row were finished first.
        let begins = places.map(|(begin, _)| begin);
        scatter(index, begins, log.times(), &mut self.times);
        let sources = log.columns.iter().filter(|column| !column.constant);
        for (target, source) in self.columns.iter_mut().zip(sources) {
            scatter(index, begins, &source.words, target);
        }
        if let Some((transposed, round)) = transposed {
            assert!(
                round.len() <= TRANSPOSED_SLOTS,
                "a part has few series of a round"
            );
            let mut starts = [0; TRANSPOSED_SLOTS];
            for (start, place) in starts.iter_mut().zip(round.clone()) {
                let slot = transposed.rank(place) - first;
                *start = begins[slot] + in_batches[slot];
            }
            let starts = &starts[..round.len()];
            transposed.copy(round.clone(), starts, log.times(), &mut self.times);
            let sources = log.columns.iter().filter(|column| !column.constant);
            for (target, source) in self.columns.iter_mut().zip(sources) {
                transposed.copy(round.clone(), starts, &source.words, target);
            }
        }
        for (place, rows) in places.iter_mut().zip(ends) {
            place.1 += rows;
        }
        debug_assert!(
            places
                .iter()
                .all(|place| place.0 <= place.1 && place.1 <= total),
            "each series has a range of the copied rows"
        );
        places
    }

    /// Calls `f` with the copied rows `from..to`.
    pub(super) fn with_rows<T>(
        &mut self,
        log: &Log,
        from: usize,
        to: usize,
        f: impl FnOnce(RowsRef<'_>) -> T,
    ) -> T {
        debug_assert!(
            from <= to && to <= self.times.len(),
            "these rows were copied"
        );
        self.fill.prepare(&log.columns, to - from);
        let (mut elided, mut stored) = (0, 0);
        let slices: Vec<&[u64]> = log
            .columns
            .iter()
            .map(|column| {
                if column.constant {
                    elided += 1;
                    self.fill.words(elided - 1, to - from)
                } else {
                    stored += 1;
                    &self.columns[stored - 1][from..to]
                }
            })
            .collect();
        f(RowsRef::new(&self.times[from..to], &slices))
    }
}

/// Copies every batch from `source` to the position of its series in `target`, and advances this position.
fn scatter<T: Copy>(
    index: &[Route],
    mut next: [usize; PART_SLOTS],
    source: &[T],
    target: &mut [T],
) {
    for route in index {
        let (from, rows) = (route.start(), route.rows());
        let to = next[route.place()];
        next[route.place()] = to + rows;
        // A single row is the common case, and a call of memcpy costs more than copying the row.
        if rows == 1 {
            target[to] = source[from];
        } else {
            target[to..to + rows].copy_from_slice(&source[from..from + rows]);
        }
    }
}
