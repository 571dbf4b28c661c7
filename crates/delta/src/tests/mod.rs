//! Tests the delta against a model of two maps: one has all rows, the other the rows that became leaves.

mod around;
mod background;
mod blocks;
mod bounds;
#[cfg(feature = "seeded-bugs")]
mod bug;
mod damage;
mod model;
pub(crate) mod passed;
mod relocated;
mod shifted;

use crate::{Delta, DeltaClaim, DeltaReport, DeltaRoot, Sink, Work, WriteBuffer};
use std::collections::BTreeMap;
use tidalite_base::SeriesId;
use tidalite_codec::{ColumnType, Rows, RowsRef};
use tidalite_pager::{PageRead, PageWrite, Result};
use tidalite_testkit::ScratchPages;

pub(super) const POINT: [ColumnType; 2] = [ColumnType::I64, ColumnType::F64];
const WIDE: [ColumnType; 12] = [ColumnType::F64; 12];

pub(super) type Map = BTreeMap<(u64, i64), Vec<u64>>;

/// The layout of a series in these tests.
pub(super) fn types_of(series: u64) -> &'static [ColumnType] {
    match series % 7 {
        5 => &WIDE,
        6 => &[],
        _ => &POINT,
    }
}

/// A map that stands for the leaves of all series in these tests.
#[derive(Clone, Debug, Default)]
pub(super) struct Leaves {
    pub(super) rows: Map,
    pub(super) links: u64,
}

impl<W: PageWrite> Sink<W> for Leaves {
    fn link(
        &mut self,
        _: &mut W,
        series: SeriesId,
        _: &[ColumnType],
        rows: RowsRef<'_>,
    ) -> Result<bool> {
        assert!(rows.is_sorted_unique() && rows.len() >= 64);
        self.links += 1;
        let behind = (series.0, rows.times()[0])..=(series.0, i64::MAX);
        let behind = self.rows.range(behind).next().is_none();
        for (i, &time) in rows.times().iter().enumerate() {
            let words = (0..rows.column_count())
                .map(|c| rows.column(c)[i])
                .collect();
            self.rows.insert((series.0, time), words);
        }
        Ok(behind)
    }
}

/// A file with a delta, its leaves, and the expected data of the tests.
pub(super) struct World {
    pub(super) pages: ScratchPages,
    pub(super) root: DeltaRoot,
    pub(super) delta: Delta,
    pub(super) buffer: WriteBuffer,
    pub(super) leaves: Leaves,
    pub(super) truth: Map,
    /// Whether the next transaction reuses the slots of the current one.
    pub(super) keeps_slots: bool,
}

impl World {
    pub(super) fn new(page_size: usize, write_buffer_bytes: usize) -> Self {
        let pages = ScratchPages::new(page_size);
        let root = DeltaRoot::default();
        let delta = Delta::load(&pages, &root).unwrap();
        Self {
            pages,
            root,
            delta,
            buffer: WriteBuffer::new(write_buffer_bytes),
            leaves: Leaves::default(),
            truth: Map::new(),
            keeps_slots: false,
        }
    }

    pub(super) fn put(&mut self, series: u64, time: i64, words: &[u64]) {
        self.truth.insert((series, time), words.to_vec());
        let slot = self.buffer.slot(SeriesId(series), types_of(series));
        if self.buffer.push(slot, time, words) {
            self.delta
                .flush(&mut self.pages, &mut self.buffer, &mut self.leaves)
                .unwrap();
        }
    }

    /// Pushes a point of the default layout without adding it to the expected data.
    pub(super) fn point(&mut self, series: u64, time: i64, value: u64) {
        let slot = self.buffer.slot(SeriesId(series), &POINT);
        if self.buffer.push_point(slot, time, 0, value) {
            self.delta
                .flush(&mut self.pages, &mut self.buffer, &mut self.leaves)
                .unwrap();
        }
    }

    pub(super) fn commit(&mut self) -> Work {
        let root = self
            .delta
            .commit(&mut self.pages, &mut self.buffer, &mut self.leaves)
            .unwrap();
        self.root = DeltaRoot::decode(&root.encode());
        assert_eq!(root, self.root);
        let work = std::mem::take(&mut self.delta.work);
        self.pages.commit();
        match self.keeps_slots {
            true => self.buffer.forget_rows(),
            false => self.buffer.reset(),
        }
        work
    }

    pub(super) fn reopen(&mut self) {
        self.delta = Delta::load(&self.pages, &self.root).unwrap();
    }

    pub(super) fn delete(&mut self, series: u64, from: i64, to: i64) {
        let types = types_of(series);
        let slot = self.buffer.slot(SeriesId(series), types);
        let before = delta_rows(&self.delta, &self.pages, series, from, to);
        self.buffer.delete(slot, from, to);
        let removed = self
            .delta
            .delete(&mut self.pages, SeriesId(series), types, (from, to))
            .unwrap();
        assert_eq!(removed, before.times);
        if from <= to {
            for map in [&mut self.leaves.rows, &mut self.truth] {
                let gone: Vec<_> = map
                    .range((series, from)..=(series, to))
                    .map(|e| *e.0)
                    .collect();
                for key in gone {
                    map.remove(&key);
                }
            }
        }
    }

    /// Checks that the delta and the leaves together have the expected rows of a series in an interval.
    pub(super) fn compare(&mut self, series: u64, from: i64, to: i64) {
        let slot = self.buffer.slot(SeriesId(series), types_of(series));
        let mut seen = visible(
            &self.delta,
            &self.pages,
            &self.leaves.rows,
            series,
            from,
            to,
        );
        let buffered = self.buffer.rows(slot).between(from, to);
        overlay(&mut seen, series, buffered);
        let expected = part(&self.truth, series, from, to);
        assert!(seen == expected, "series {series} from {from} to {to}");
    }

    pub(super) fn check(&self) -> DeltaReport {
        let mut claims = Vec::new();
        let report = self
            .delta
            .check(
                &self.pages,
                &mut |DeltaClaim { addr, pages, .. }| claims.push((addr, pages)),
                &mut |_| {},
            )
            .unwrap();
        self.pages.assert_all_claimed(&claims);
        report
    }
}

pub(super) fn delta_rows<R: PageRead>(
    delta: &Delta,
    r: &R,
    series: u64,
    from: i64,
    to: i64,
) -> Rows {
    let mut rows = Rows::default();
    let types = types_of(series);
    delta
        .rows(r, SeriesId(series), types, (from, to), &mut rows)
        .unwrap();
    assert!(rows.view().is_sorted_unique());
    let row = |i: usize| {
        let words: Vec<u64> = rows.columns.iter().map(|column| column[i]).collect();
        (rows.times[i], words)
    };
    if from <= to {
        let first = delta.first(r, SeriesId(series), types, from).unwrap();
        let latest = delta
            .latest(r, SeriesId(series), types, (from, to))
            .unwrap();
        let within = |found: Option<(i64, Vec<u64>)>| found.filter(|f| from <= f.0 && f.0 <= to);
        let (at_first, at_last) = match rows.len() {
            0 => (None, None),
            n => (Some(row(0)), Some(row(n - 1))),
        };
        assert_eq!(
            within(first),
            at_first,
            "first of series {series} from {from}"
        );
        assert_eq!(latest, at_last, "latest of series {series} up to {to}");
    }
    rows
}

pub(super) fn overlay(map: &mut Map, series: u64, rows: RowsRef<'_>) {
    for (i, &time) in rows.times().iter().enumerate() {
        let words = (0..rows.column_count())
            .map(|c| rows.column(c)[i])
            .collect();
        map.insert((series, time), words);
    }
}

pub(super) fn part(map: &Map, series: u64, from: i64, to: i64) -> Map {
    if from > to {
        return Map::new();
    }
    let range = map.range((series, from)..=(series, to));
    range.map(|(key, words)| (*key, words.clone())).collect()
}

/// Returns the rows that a reader of leaves and delta sees: rows of the delta take precedence.
pub(super) fn visible<R: PageRead>(
    delta: &Delta,
    r: &R,
    leaves: &Map,
    series: u64,
    from: i64,
    to: i64,
) -> Map {
    let mut seen = part(leaves, series, from, to);
    overlay(
        &mut seen,
        series,
        delta_rows(delta, r, series, from, to).view(),
    );
    seen
}
