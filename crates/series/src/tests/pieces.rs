//! Candlesticks and value filters against the plain rows; what they may leave unread, by counters.

use super::model::assert_stats;
use super::{World, ramp};
use crate::{Candle, CandleSize, Direction, ValueRange, Vector};
use std::sync::atomic::Ordering;
use tidalite_codec::{ColumnType, Parts, Rows, RowsRef};
use tidalite_pager::PageRead;
use tidalite_testkit::rng::Rng;

/// Candles hold each expected row once, in order, and keep to their size.
pub(super) fn candles(
    rng: &mut Rng,
    world: &World,
    (from, to): (i64, i64),
    column: usize,
    expected: RowsRef<'_>,
) {
    let span = match (expected.times().first(), expected.times().last()) {
        (Some(&first), Some(&last)) => last.abs_diff(first),
        _ => 1000,
    };
    let size = if rng.one_in(2) {
        CandleSize::Level(rng.below(5) as u8)
    } else {
        CandleSize::Width((span / rng.between(1, 500) as u64).max(1))
    };
    let mut found: Vec<Candle> = Vec::new();
    let view = world.view();
    view.candles(from, to, column, size, |candle| found.push(candle))
        .unwrap();
    let mut at = 0;
    for candle in &found {
        let rows = candle.stats.count() as usize;
        let part = expected.slice(at..at + rows);
        assert_stats(&candle.stats, world.tree.types()[column], part, column);
        assert_eq!(Some(&candle.first_time), part.times().first(), "{size:?}");
        assert_eq!(Some(&candle.last_time), part.times().last(), "{size:?}");
        match size {
            CandleSize::Level(level) => {
                let room = [1 << 10, 1 << 14, 1 << 20, 1 << 26, 1 << 32][usize::from(level)];
                assert!(rows <= room, "{rows} rows in a candle of level {level}");
            }
            CandleSize::Width(width) => {
                assert!(candle.last_time.abs_diff(candle.first_time) < width);
            }
        }
        at += rows;
    }
    assert_eq!(at, expected.len(), "candles hold every row");
    let whole = view.summary(from, to, column, Parts::ALL).unwrap();
    let times = whole.map(|whole| (whole.first_time, whole.last_time));
    let span = expected.times().first().zip(expected.times().last());
    assert_eq!(times, span.map(|(first, last)| (*first, *last)));
}

/// The rows of a filter, put together in ascending order.
fn matches(
    world: &World,
    (from, to): (i64, i64),
    range: ValueRange,
    columns: &[usize],
    direction: Direction,
) -> Rows {
    let types = world.tree.types();
    let mut parts: Vec<Rows> = Vec::new();
    let take = |vector: &Vector<'_>| {
        assert!((1..=1024).contains(&vector.len()));
        let mut part = Rows::new(types.len());
        part.times.extend_from_slice(vector.times());
        for (c, column) in part.columns.iter_mut().enumerate() {
            assert_eq!(vector.words(c).is_empty(), !columns.contains(&c));
            column.extend_from_slice(vector.words(c));
        }
        parts.push(part);
    };
    let view = world.view();
    let matching = view.matching(vec![range]);
    let count = matching.for_each_vector(from, to, columns, direction, take);
    if direction == Direction::Backward {
        parts.reverse();
    }
    let mut all = Rows::new(types.len());
    for part in parts {
        all.times.extend(part.times);
        for (column, words) in all.columns.iter_mut().zip(part.columns) {
            column.extend(words);
        }
    }
    assert_eq!(count.unwrap(), all.times.len() as u64);
    assert_eq!(matching.count(from, to).unwrap(), all.times.len() as u64);
    all
}

pub(super) fn filter(
    rng: &mut Rng,
    world: &World,
    interval: (i64, i64),
    column: usize,
    expected: RowsRef<'_>,
) {
    let ty = world.tree.types()[column];
    let number = |word: u64| match ty {
        ColumnType::F64 => f64::from_bits(word),
        ColumnType::I64 => word as i64 as f64,
        _ => word as f64,
    };
    let words = expected.column(column);
    let mut bounds: Vec<u64> = (0..2)
        .map(|_| {
            if words.is_empty() || rng.one_in(8) {
                rng.u64()
            } else {
                words[rng.index(words.len())]
            }
        })
        .collect();
    if !rng.one_in(5) {
        bounds.sort_by_key(|&word| ty.order_key(word));
    }
    let (low, high) = (bounds[0], bounds[1]);
    // Brute force in the plain numbers where these are exact, in the type's own order where not.
    let within = |word: u64| match ty {
        ColumnType::F64 => number(low) <= number(word) && number(word) <= number(high),
        ColumnType::I64 => low as i64 <= word as i64 && word as i64 <= high as i64,
        _ => low <= word && word <= high,
    };
    let wanted: Vec<usize> = (0..world.tree.types().len())
        .filter(|_| !rng.one_in(3))
        .collect();
    let hits: Vec<usize> = (0..words.len()).filter(|&i| within(words[i])).collect();
    let range = ValueRange::new(column, ty, low, high);
    for direction in [Direction::Forward, Direction::Backward] {
        let found = matches(world, interval, range, &wanted, direction);
        let times: Vec<i64> = hits.iter().map(|&i| expected.times()[i]).collect();
        assert_eq!(found.times, times, "{low:x} to {high:x}, {direction:?}");
        for &c in &wanted {
            let words: Vec<u64> = hits.iter().map(|&i| expected.column(c)[i]).collect();
            assert_eq!(found.columns[c], words, "column {c}, {direction:?}");
        }
    }
}

/// A ramp of a million rows: its values ascend, so a filter for few of them needs few vectors.
#[test]
fn a_filter_decodes_only_vectors_that_can_match_and_candles_none() {
    let mut world = World::new(4096, 64, &[ColumnType::I64, ColumnType::F64]);
    for part in 0..16 {
        let rows = ramp(part * 65_536_000, 1000, 65_536);
        world.link(rows.view());
    }
    let values = world.rows().columns[1].clone();
    let (low, high) = (values[500_000], values[500_009]);
    let counters = world.pages.counters();
    let before = counters.vectors_decoded.load(Ordering::Relaxed);
    let range = ValueRange::new(1, ColumnType::F64, low, high);
    let everywhere = (i64::MIN, i64::MAX);
    let found = matches(&world, everywhere, range, &[0, 1], Direction::Backward);
    assert_eq!(found.times.len(), 10);
    let decoded = counters.vectors_decoded.load(Ordering::Relaxed) - before;
    assert!(decoded <= 2, "{decoded} vectors decoded");

    let before = counters.vectors_decoded.load(Ordering::Relaxed);
    let leaves = counters.blocks_read.load(Ordering::Relaxed);
    let mut candles = 0;
    let view = world.view();
    view.candles(everywhere.0, everywhere.1, 1, CandleSize::Level(1), |_| {
        candles += 1
    })
    .unwrap();
    assert_eq!(candles, 64, "a candle a leaf");
    assert_eq!(counters.vectors_decoded.load(Ordering::Relaxed), before);
    let blocks = counters.blocks_read.load(Ordering::Relaxed) - leaves;
    assert!(
        blocks <= 8,
        "{blocks} blocks read for the nodes' statistics"
    );
}
