//! Compares candlesticks and value filters with the plain rows; counters show which parts of the tree are not read.

use super::model::assert_stats;
use super::{World, ramp};
use crate::{Candle, CandleSize, Direction, ValueRange, Vector};
use std::sync::atomic::Ordering;
use tidalite_codec::{ColumnType, Parts, Rows, RowsRef};
use tidalite_pager::PageRead;
use tidalite_testkit::rng::Rng;

/// Checks that candles contain each expected row once, in order, and respect their maximum size.
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
    let whole = view.summary(from, to, column, Parts::ALL, &[]).unwrap();
    let times = whole.map(|whole| (whole.first_time, whole.last_time));
    let span = expected.times().first().zip(expected.times().last());
    assert_eq!(times, span.map(|(first, last)| (*first, *last)));
}

/// The rows that a filter finds, collected in ascending order.
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
    // Finds the expected rows by comparing plain numbers if these are exact, otherwise by the order of the column type.
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

/// A filter for few values of an ascending ramp of a million rows decodes few vectors.
#[test]
fn a_filter_decodes_only_vectors_that_may_match_and_candles_decode_no_vector() {
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

/// Late rows (not in the tree yet) lie after the tree and in a gap of the tree; if a filtered scan searched for them
/// one by one, each would be a separate segment.
#[test]
fn late_rows_that_may_match_are_delivered_together() {
    let mut world = World::new(4096, 64, &[ColumnType::I64, ColumnType::F64]);
    for begin in [0, 100_000_000] {
        world.link(ramp(begin, 1000, 4096).view());
    }
    for begin in [50_000_000, 200_000_000] {
        world.late.extend(ramp(begin, 10, 5000).view());
    }
    let all = world.rows();
    let everything = ValueRange::new(0, ColumnType::I64, i64::MIN as u64, i64::MAX as u64);
    for (from, to) in [(i64::MIN, i64::MAX), (50_000_005, 200_000_005)] {
        let view = world.view();
        let mut scan = view.matching(vec![everything]).scan(from, to, &[0]);
        let (mut vectors, mut times) = (0, Vec::new());
        while let Some(vector) = scan.next().unwrap() {
            vectors += 1;
            times.extend_from_slice(vector.times());
        }
        let inside = all.times.iter().filter(|&&time| from <= time && time <= to);
        assert_eq!(times, inside.copied().collect::<Vec<_>>());
        assert!(vectors <= 22, "{vectors} for {} rows", times.len());
    }
}

/// For any tree and any late rows, also at extreme times, a filtered scan delivers each matching row exactly once and
/// in order, and `nth` finds a row by its number.
#[test]
fn a_filtered_scan_returns_every_matching_row() {
    for seed in 0..300 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let mut world = World::new(4096, 4, &[ColumnType::I64]);
        let mut batch = |most: usize| {
            let mut times: Vec<i64> = Vec::new();
            for _ in 0..rng.index(5) {
                let begin = *rng.pick(&[i64::MIN, -5000, 0, 3000, 9000, i64::MAX - 3000]);
                let step = rng.between(1, 9);
                let count = rng.index(most) as i64;
                times.extend((0..count).filter_map(|i| begin.checked_add(i.checked_mul(step)?)));
            }
            if rng.one_in(3) {
                times.extend([i64::MIN, i64::MAX]);
            }
            times.sort_unstable();
            times.dedup();
            let mut rows = Rows::new(1);
            for time in times {
                rows.push_row(time, &[(time.wrapping_div(64) & 127) as u64]);
            }
            rows
        };
        let (tree, late) = (batch(4000), batch(900));
        if !tree.is_empty() {
            world.link(tree.view());
        }
        world.late = late;
        let all = world.rows();
        let view = world.view();
        for _ in 0..8 {
            let low = rng.between(-1, 127);
            let high = low + rng.between(-1, 40);
            let range = ValueRange::new(0, ColumnType::I64, low as u64, high as u64);
            let ends = [
                i64::MIN,
                i64::MIN + 1,
                -4000,
                100,
                4000,
                i64::MAX - 1,
                i64::MAX,
            ];
            let (from, to) = (*rng.pick(&ends), *rng.pick(&ends));
            let matching = view.matching(vec![range]);
            let mut scan = matching.scan(from, to, &[0]);
            let mut found = Vec::new();
            while let Some(vector) = scan.next().unwrap() {
                let rows = vector.times().iter().zip(vector.words(0));
                found.extend(rows.map(|(&time, &word)| (time, word)));
            }
            assert!(found.is_sorted_by(|a, b| a.0 < b.0));
            assert!(found.iter().all(|row| from <= row.0 && row.0 <= to));
            found.retain(|row| range.contains(row.1));
            let rows = all.times.iter().zip(&all.columns[0]);
            let rows = rows.filter(|row| from <= *row.0 && *row.0 <= to && range.contains(*row.1));
            let expected: Vec<(i64, u64)> = rows.map(|(&time, &word)| (time, word)).collect();
            assert_eq!(found, expected, "{low}..={high} in {from}..={to}");
            assert_eq!(matching.count(from, to).unwrap(), expected.len() as u64);
            let mut cursor = view.cursor();
            let n = rng.index(all.len() + 2);
            assert_eq!(cursor.nth(n as u64).unwrap(), n < all.len());
            assert_eq!(cursor.time(), all.times.get(n).copied());
        }
    }
}
