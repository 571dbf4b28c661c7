//! Compares random operations on a series with a sorted map.

use super::World;
use crate::{Found, Lines, NextRows, Row, SeriesTree, Window, WindowGrid};
use std::collections::BTreeMap;
use tidalite_codec::{COLD, ColumnType, Parts, Rows, RowsRef, Stats};
use tidalite_testkit::rng::Rng;

/// Pattern of the timestamps in a test.
#[derive(Clone, Copy)]
struct Clock {
    start: i64,
    step: i64,
    jitter: i64,
}

const CLOCKS: [Clock; 5] = [
    Clock {
        start: 1_400_000_000_000_000_000,
        step: 1_000_000_000,
        jitter: 0,
    },
    Clock {
        start: 0,
        step: 600_000_000,
        jitter: 0,
    }, // .NET ticks of year 1
    Clock {
        start: i64::MIN,
        step: 1000,
        jitter: 900,
    },
    Clock {
        start: i64::MAX - 40_000_000,
        step: 1000,
        jitter: 3,
    },
    Clock {
        start: -20_000,
        step: 1,
        jitter: 0,
    },
];

fn word(rng: &mut Rng, ty: ColumnType, style: u64, i: i64) -> u64 {
    let specials = [
        f64::NAN.to_bits(),
        0xfff0_0000_0000_0001, // a signalling NaN with its payload
        (-0.0f64).to_bits(),
        0.0f64.to_bits(),
        f64::INFINITY.to_bits(),
        f64::NEG_INFINITY.to_bits(),
        5e-324f64.to_bits(),
    ];
    match (ty, style) {
        (ColumnType::F64, 0) => (i as f64 * 0.25).to_bits(),
        (ColumnType::F64, 1) => ((rng.below(10_000) as f64 - 3000.0) / 100.0).to_bits(),
        (ColumnType::F64, 2) if rng.one_in(7) => *rng.pick(&specials),
        (ColumnType::F64, 2) => (rng.f64() * 1e6).to_bits(),
        (ColumnType::F64, _) => (rng.f64() * 10f64.powi(rng.between(-100, 100) as i32)).to_bits(),
        (_, 0) => 0,
        (_, 1) => i as u64,
        (_, 2) => rng.below(4),
        (_, _) => rng.u64(),
    }
}

fn words(rng: &mut Rng, types: &[ColumnType], style: u64, i: i64) -> Vec<u64> {
    types.iter().map(|&ty| word(rng, ty, style, i)).collect()
}

/// Creates sorted rows with times in `from ..= to`, about `count` of them.
fn between(rng: &mut Rng, world: &World, from: i64, to: i64, count: u64, style: u64) -> Rows {
    let mut rows = BTreeMap::new();
    for i in 0..count {
        let time = rng.between(from, to);
        rows.insert(time, words(rng, world.tree.types(), style, i as i64));
    }
    let mut out = Rows::new(world.tree.types().len());
    for (time, words) in rows {
        out.push_row(time, &words);
    }
    out
}

fn later(rng: &mut Rng, world: &World, clock: Clock, count: u64, style: u64) -> Rows {
    let mut out = Rows::new(world.tree.types().len());
    let mut last = world.model.keys().next_back().copied();
    for i in 0..count {
        let next = match last {
            None => Some(clock.start),
            Some(last) => {
                let gap = if rng.one_in(2000) {
                    clock.step.saturating_mul(50)
                } else {
                    clock.step
                };
                let jitter = if clock.jitter > 0 {
                    rng.between(0, clock.jitter)
                } else {
                    0
                };
                last.checked_add(gap)
                    .and_then(|time| time.checked_add(jitter))
            }
        };
        let Some(time) = next else { break };
        out.push_row(time, &words(rng, world.tree.types(), style, i as i64));
        last = Some(time);
    }
    out
}

fn a_time(rng: &mut Rng, rows: &Rows) -> i64 {
    match rng.below(12) {
        0 => i64::MIN,
        1 => i64::MAX,
        2 => 0,
        _ if rows.is_empty() => rng.u64() as i64,
        _ => {
            let time = rows.times[rng.index(rows.len())];
            time.saturating_add(rng.between(-1, 1))
        }
    }
}

/// Neumaier's sum, which is far more precise than the tested bound.
fn reference_sum(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (mut sum, mut rest, mut magnitudes) = (0.0f64, 0.0f64, 0.0f64);
    for value in values {
        let next = sum + value;
        let lost = if sum.abs() >= value.abs() {
            (sum - next) + value
        } else {
            (value - next) + sum
        };
        rest += lost;
        sum = next;
        magnitudes += value.abs();
    }
    (if sum.is_finite() { sum + rest } else { sum }, magnitudes)
}

fn number(ty: ColumnType, word: u64) -> f64 {
    match ty {
        ColumnType::F64 => f64::from_bits(word),
        ColumnType::I64 => word as i64 as f64,
        _ => word as f64,
    }
}

/// Compares statistics with the statistics computed from the rows.
pub(super) fn assert_stats(stats: &Stats, ty: ColumnType, rows: RowsRef<'_>, column: usize) {
    let words = rows.column(column);
    let nan = |word: u64| ty == ColumnType::F64 && f64::from_bits(word).is_nan();
    let values = || words.iter().copied().filter(|&word| !nan(word));
    assert_eq!(stats.count(), rows.len() as u64, "count");
    assert_eq!(
        stats.nan_count(),
        (rows.len() - values().count()) as u64,
        "nan count"
    );
    assert_eq!(stats.first(), words.first().copied(), "first");
    assert_eq!(stats.last(), words.last().copied(), "last");
    let with_times = || {
        words
            .iter()
            .zip(rows.times())
            .filter(|(word, _)| !nan(**word))
    };
    let min = with_times().min_by_key(|(word, time)| (ty.order_key(**word), **time));
    assert_eq!(stats.min(), min.map(|(word, time)| (*word, *time)), "min");
    let max = with_times().max_by_key(|(word, time)| (ty.order_key(**word), -(**time as i128)));
    assert_eq!(stats.max(), max.map(|(word, time)| (*word, *time)), "max");
    let close = |found: f64, expected: f64, magnitudes: f64, what: &str| {
        let bound = magnitudes * 2f64.powi(-50);
        let close = (found - expected).abs() <= bound
            || found == expected
            || (found.is_nan() && expected.is_nan())
            || !magnitudes.is_finite() && !found.is_finite();
        assert!(close, "{what}: {found}, expected {expected} within {bound}");
    };
    let (sum, magnitudes) = reference_sum(values().map(|word| number(ty, word)));
    close(stats.sum(), sum, magnitudes, "sum");
    let (squares, _) = reference_sum(values().map(|word| number(ty, word) * number(ty, word)));
    // Each reference square is rounded once.
    close(stats.square_sum(), squares, squares * 8.0, "sum of squares");
}

fn compare(rng: &mut Rng, world: &World) {
    let all = world.rows();
    let view = world.view();
    let types = world.tree.types().to_vec();
    assert_eq!(
        view.span(),
        all.times.first().copied().zip(all.times.last().copied())
    );
    let row = |at: usize| Row {
        time: all.times[at],
        words: all.columns.iter().map(|column| column[at]).collect(),
    };
    let last = all.len().checked_sub(1).map(row);
    assert_eq!(view.first(), last.as_ref().map(|_| row(0)), "first");
    assert_eq!(view.last(), last, "last");
    let stored = world.tree.encode();
    let newest = SeriesTree::last_row_of(world.tree.id(), &stored, &types).unwrap();
    assert_eq!(newest, world.tree.last_row(), "last of the record");
    for round in 0..6 {
        let (from, to) = if round == 0 {
            (i64::MIN, i64::MAX)
        } else {
            let (a, b) = (a_time(rng, &all), a_time(rng, &all));
            if rng.one_in(10) {
                (a, b)
            } else {
                (a.min(b), a.max(b))
            }
        };
        let expected = if from <= to {
            all.view().between(from, to)
        } else {
            all.slice(0..0)
        };
        let column = rng.index(types.len());
        scan(rng, world, (from, to), expected);
        assert_eq!(
            view.count(from, to).unwrap(),
            expected.len() as u64,
            "count"
        );
        let stats = view.aggregate(from, to, column).unwrap();
        assert_stats(&stats, types[column], expected, column);
        windows(rng, world, (from, to), column, expected);
        super::matching::candles(rng, world, (from, to), column, expected);
        super::matching::filter(rng, world, (from, to), column, expected);
    }
    cursor(rng, world, &all);
}

fn scan(rng: &mut Rng, world: &World, (from, to): (i64, i64), expected: RowsRef<'_>) {
    let types = world.tree.types();
    let wanted: Vec<usize> = (0..types.len()).filter(|_| !rng.one_in(3)).collect();
    for reverse in [false, true] {
        let mut parts: Vec<Rows> = Vec::new();
        let mut take = |vector: &crate::Vector<'_>| {
            assert!((1..=1024).contains(&vector.len()));
            let mut part = Rows::new(types.len());
            part.times.extend_from_slice(vector.times());
            for c in 0..types.len() {
                assert_eq!(vector.words(c).is_empty(), !wanted.contains(&c));
                part.columns[c].extend_from_slice(vector.words(c));
            }
            parts.push(part);
        };
        let rows = if reverse {
            world
                .view()
                .for_each_vector_reverse(from, to, &wanted, &mut take)
                .unwrap()
        } else {
            world
                .view()
                .for_each_vector(from, to, &wanted, &mut take)
                .unwrap()
        };
        if reverse {
            parts.reverse();
        }
        let times: Vec<i64> = parts
            .iter()
            .flat_map(|part| part.times.iter().copied())
            .collect();
        assert_eq!(times, expected.times(), "times, reverse: {reverse}");
        for &c in &wanted {
            let words: Vec<u64> = parts
                .iter()
                .flat_map(|part| part.columns[c].iter().copied())
                .collect();
            assert_eq!(words, expected.column(c), "column {c}, reverse: {reverse}");
        }
        assert_eq!(rows, expected.len() as u64);
    }
    assert_eq!(rows_and_lines(world, (from, to)).0, expected.to_rows());
}

/// The rows that a row-by-row caller gets, and how often they came as lines (start and constant step).
pub(super) fn rows_and_lines(world: &World, (from, to): (i64, i64)) -> (Rows, usize) {
    let all: Vec<usize> = (0..world.tree.types().len()).collect();
    let (mut rows, mut of_lines) = (Rows::new(all.len()), 0);
    let (mut scan, mut lines) = (world.view().scan(from, to, &all), Lines::default());
    while let Some(next) = scan.next_rows_or_lines(&mut lines).unwrap() {
        match next {
            NextRows::Vector(vector) => {
                rows.times.extend_from_slice(vector.times());
                for &c in &all {
                    rows.columns[c].extend_from_slice(vector.words(c));
                }
            }
            NextRows::Lines => {
                of_lines += 1;
                for row in 0..lines.rows() {
                    rows.times.push(lines.times().at(row) as i64);
                    for &c in &all {
                        rows.columns[c].push(lines.column(c).at(row));
                    }
                }
            }
        }
    }
    (rows, of_lines)
}

/// A random choice of aggregate functions.
fn some_parts(rng: &mut Rng) -> Parts {
    let each = [
        Parts::SUM,
        Parts::SQUARES,
        Parts::EXTREMES,
        Parts::ENDS,
        Parts::TIMES,
    ];
    match rng.below(3) {
        0 => *rng.pick(&each),
        _ => {
            let some = each.iter().filter(|_| rng.one_in(3));
            some.fold(Parts::COUNTS, |all, &one| all.and(one))
        }
    }
}

fn windows(
    rng: &mut Rng,
    world: &World,
    (from, to): (i64, i64),
    column: usize,
    expected: RowsRef<'_>,
) {
    let span = match (expected.times().first(), expected.times().last()) {
        (Some(&first), Some(&last)) => i128::from(last) - i128::from(first),
        _ => 1000,
    };
    let width = (span / i128::from(rng.between(1, 3000))).clamp(1, i64::MAX.into()) as i64;
    let width = if rng.one_in(20) { i64::MAX } else { width };
    let origin = match rng.below(4) {
        0 => i64::MIN,
        1 => i64::MAX,
        _ => rng.u64() as i64,
    };
    // Queries also other columns, and occasionally the same column twice.
    let types = world.tree.types();
    let mut columns = vec![column];
    columns.extend((0..rng.index(4)).map(|_| rng.index(types.len())));
    let mut all: Vec<Vec<Window>> = vec![Vec::new(); columns.len()];
    let view = world.view();
    let whole = (&columns[..], Parts::ALL);
    view.windows_of(
        (from, to),
        WindowGrid::Even { width, origin },
        whole,
        &[],
        |i, window| {
            all[i].push(window);
        },
    )
    .unwrap();
    some_figures(rng, world, (from, to), (width, origin), &columns, &all);
    let mut alone = Vec::new();
    view.windows(from, to, width, origin, column, |window| alone.push(window))
        .unwrap();
    assert_eq!(format!("{alone:?}"), format!("{:?}", all[0]));
    for (&column, found) in columns.iter().zip(&all) {
        windows_of_one(world, width, origin, column, found, expected);
    }
}

/// Compares the results of some aggregate functions, bit by bit, with the results of a query for all functions.
fn some_figures(
    rng: &mut Rng,
    world: &World,
    (from, to): (i64, i64),
    (width, origin): (i64, i64),
    columns: &[usize],
    all: &[Vec<Window>],
) {
    let (view, parts) = (world.view(), some_parts(rng));
    let mut seen = vec![0; columns.len()];
    // The same windows, given by a function.
    let window_at = |t: i64| {
        let (t, width) = (i128::from(t), i128::from(width));
        let start = t - (t - i128::from(origin)).rem_euclid(width);
        let clamp = |t: i128| t.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        (clamp(start), clamp(start + width - 1))
    };
    let grid = WindowGrid::Calendar(&window_at);
    view.windows_of((from, to), grid, (columns, parts), &[], |i, window| {
        let mut expected = all[i][seen[i]].clone();
        expected.stats = expected.stats.only(parts);
        // Results that differ may be NaN on both sides, which compares as different.
        if window != expected {
            assert_eq!(format!("{window:?}"), format!("{expected:?}"));
        }
        seen[i] += 1;
    })
    .unwrap();
    assert!(seen.iter().zip(all).all(|(&seen, all)| seen == all.len()));
    for &column in columns {
        let mut whole = view.summary(from, to, column, Parts::ALL, &[]).unwrap();
        if let Some(whole) = &mut whole {
            whole.stats = whole.stats.only(parts);
        }
        let some = view.summary(from, to, column, parts, &[]).unwrap();
        assert_eq!(format!("{some:?}"), format!("{whole:?}"));
    }
}

fn windows_of_one(
    world: &World,
    width: i64,
    origin: i64,
    column: usize,
    found: &[Window],
    expected: RowsRef<'_>,
) {
    let index = |time: i64| (i128::from(time) - i128::from(origin)).div_euclid(width.into());
    let mut at = 0;
    for window in found {
        let rows =
            expected.times()[at..].partition_point(|&t| index(t) <= index(expected.times()[at]));
        let part = expected.slice(at..at + rows);
        let start = i128::from(origin) + index(part.times()[0]) * i128::from(width);
        let last = start + i128::from(width) - 1;
        assert_eq!(
            i128::from(window.start),
            start.max(i64::MIN.into()),
            "start"
        );
        assert_eq!(i128::from(window.last), last.min(i64::MAX.into()), "last");
        assert_stats(&window.stats, world.tree.types()[column], part, column);
        let times = part.times().first().zip(part.times().last());
        assert_eq!(times, Some((&window.first_time, &window.last_time)));
        at += rows;
    }
    assert_eq!(at, expected.len(), "windows hold every row");
}

fn cursor(rng: &mut Rng, world: &World, all: &Rows) {
    let mut cursor = world.view().cursor();
    // Position of the cursor: -1 is before the first row, the number of rows is after the last row.
    let mut at = -1i64;
    for _ in 0..60 {
        match rng.below(5) {
            0 => {
                let t = a_time(rng, all);
                let found = cursor.search(t).unwrap();
                at = all.times.partition_point(|&time| time <= t) as i64 - 1;
                let exact = at >= 0 && all.times[at as usize] == t;
                let expected = match (at, exact) {
                    (-1, _) => Found::Nothing,
                    (_, true) => Found::Exact,
                    (_, false) => Found::Before,
                };
                assert_eq!(found, expected, "search for {t}");
            }
            1 if rng.one_in(4) => {
                assert_eq!(cursor.first().unwrap(), !all.is_empty());
                at = if all.is_empty() { -1 } else { 0 };
            }
            2 if rng.one_in(4) => {
                assert_eq!(cursor.last().unwrap(), !all.is_empty());
                at = all.len() as i64 - 1;
                if all.is_empty() {
                    assert!(!cursor.previous().unwrap());
                    at = -1;
                }
            }
            step => {
                let forward = step < 3;
                for _ in 0..rng.below(1500) {
                    let moved = if forward {
                        cursor.next()
                    } else {
                        cursor.previous()
                    }
                    .unwrap();
                    at = (at + if forward { 1 } else { -1 }).clamp(-1, all.len() as i64);
                    let row = usize::try_from(at).ok().filter(|&at| at < all.len());
                    assert_eq!(moved, row.is_some(), "a step to row {at} of {}", all.len());
                    assert_eq!(cursor.time(), row.map(|row| all.times[row]));
                    if row.is_none() {
                        break;
                    }
                }
            }
        }
        let row = usize::try_from(at).ok().filter(|&at| at < all.len());
        let found = cursor.row().map(|row| (row.time, row.words));
        let expected = row.map(|row| {
            let words = all
                .columns
                .iter()
                .map(|column| column[row])
                .collect::<Vec<_>>();
            (all.times[row], words)
        });
        assert_eq!(found, expected);
    }
}

fn run(seed: u64, operations: usize) {
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    let every = [
        ColumnType::I64,
        ColumnType::F64,
        ColumnType::U64,
        ColumnType::F64,
    ];
    let types = &every[..rng.between(1, 4) as usize];
    let page_size = *rng.pick(&[512, 4096]);
    let fanout = *rng.pick(&[2, 3, 4, 8]);
    let clock = *rng.pick(&CLOCKS);
    let mut world = World::new(page_size, fanout, types);
    let mut highest = 0;
    for _ in 0..operations {
        let style = rng.below(4);
        let rows_before = world.rows();
        match rng.below(if COLD { 14 } else { 12 }) {
            0..=3 => {
                let count = *rng.pick(&[1, 5, 300, 1024, 2048, 5000]);
                let rows = later(&mut rng, &world, clock, count, style);
                if !rows.is_empty() {
                    world.link(rows.view());
                }
            }
            4 => {
                // Links several batches of rows in one transaction.
                let mut packer_rows = Vec::new();
                let mut ghost = World::new(512, 4, types);
                ghost.model = world.model.clone();
                for _ in 0..rng.below(12) {
                    let rows = later(&mut rng, &ghost, clock, 1024, style);
                    ghost.note(rows.view());
                    packer_rows.push(rows);
                }
                world.transact(|tree, pages, packer| {
                    for rows in &packer_rows {
                        tree.link(pages, packer, rows.view()).unwrap();
                    }
                });
                packer_rows.iter().for_each(|rows| world.note(rows.view()));
            }
            5..=7 => {
                let (a, b) = (
                    a_time(&mut rng, &rows_before),
                    a_time(&mut rng, &rows_before),
                );
                let count = *rng.pick(&[1, 3, 40, 700, 3000]);
                let rows = between(&mut rng, &world, a.min(b), a.max(b), count, style);
                world.link(rows.view());
            }
            8 => {
                // Links rows that overwrite existing rows.
                let mut rows = Rows::new(types.len());
                for (&time, _) in world.model.iter().step_by(rng.between(1, 50) as usize) {
                    let new = words(&mut rng, types, style, 9);
                    rows.push_row(time, &new);
                }
                world.link(rows.view());
            }
            9 | 10 => {
                let (a, b) = (
                    a_time(&mut rng, &rows_before),
                    a_time(&mut rng, &rows_before),
                );
                if rng.one_in(3) || world.model.range(a.min(b)..=a.max(b)).count() < 3000 {
                    world.delete(a.min(b), a.max(b));
                }
            }
            12 | 13 => {
                let before = a_time(&mut rng, &rows_before);
                let rows_left = *rng.pick(&[1, 4000, u64::MAX]);
                world.cool(before, rows_left);
            }
            _ => {
                let (a, b) = (
                    a_time(&mut rng, &rows_before),
                    a_time(&mut rng, &rows_before),
                );
                let count = *rng.pick(&[0, 1, 30, 2500]);
                world.late = between(&mut rng, &world, a.min(b), a.max(b), count, style);
                if rng.one_in(2) {
                    let more = later(&mut rng, &world, clock, 1500, style);
                    world.late = Rows::merge_newest(world.late.view(), more.view());
                }
            }
        }
        highest = highest.max(world.tree.height());
        world.check();
        compare(&mut rng, &world);
    }
    println!(
        "seed {seed}: {} rows, height up to {highest}",
        world.model.len()
    );
}

#[test]
fn equals_a_sorted_map_under_random_operations() {
    for seed in 1..=40 {
        run(seed, 30);
    }
}
