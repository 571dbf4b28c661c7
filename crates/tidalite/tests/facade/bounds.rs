//! Upper bounds of costs, counted instead of timed: bytes written by a small commit, pages read for an aggregate of an
//! interval, number of runs.

use crate::common::{assert_clean, in_memory, rows_of};
use std::sync::atomic::Ordering;
use tidalite::{Database, Durability, Options, ReadTxn, Series, Steps, Tuning};
use tidalite_delta::{BYTES_A_BYTE_MAX, PAGES_A_COMMIT_MAX, TIER_RUNS_MAX};

/// Length in bytes of both copies of a meta record.
const META_BYTES: u64 = 2 * 4096;
const PAGE_BYTES: u64 = 4096;

#[test]
fn a_row_costs_one_page_and_the_meta_blocks() {
    let db = in_memory(&Options::new().tuning(Tuning::new().log_bytes(0)));
    let mut tx = db.begin_write().unwrap();
    for name in ["a", "b"] {
        let mut series = tx.series(name).unwrap();
        for i in 0..5_000 {
            series.insert_point(Steps(i), 0, i as f64).unwrap();
        }
    }
    tx.commit().unwrap();
    for i in 0..60 {
        let mut tx = db.begin_write().unwrap();
        tx.series("a")
            .unwrap()
            .insert_point(Steps(5_000 + i), 0, 1.5)
            .unwrap();
        let done = tx.commit().unwrap();
        assert_eq!(done.pages_written, 1, "row {i}");
        assert_eq!(done.bytes_written, PAGE_BYTES + META_BYTES);
    }
    // Late rows have the same cost.
    let mut tx = db.begin_write().unwrap();
    tx.series("b")
        .unwrap()
        .insert_point(Steps(77), 0, 1.5)
        .unwrap();
    assert_eq!(tx.commit().unwrap().pages_written, 1);
    // A commit without changes writes nothing.
    let done = db.begin_write().unwrap().commit().unwrap();
    assert_eq!((done.pages_written, done.bytes_written), (0, 0));
    assert_clean(&db);
}

#[test]
fn a_pair_costs_the_path_of_its_table() {
    let db = in_memory(&Options::new().tuning(Tuning::new().log_bytes(0)));
    let mut tx = db.begin_write().unwrap();
    for (name, pairs) in [("one", 1u32), ("some", 2_000), ("many", 200_000)] {
        let pairs = (0..pairs).map(|i| (i.to_be_bytes(), [7u8; 20]));
        tx.table(name).unwrap().extend(pairs).unwrap();
    }
    tx.commit().unwrap();
    let mut levels_seen = Vec::new();
    for name in ["one", "some", "many"] {
        let snap = db.begin_read().unwrap();
        let table = snap.table(name).unwrap().unwrap();
        let before = snap.counters().pages_read.load(Ordering::Relaxed);
        table.get(&0u32.to_be_bytes()).unwrap().unwrap();
        let levels = snap.counters().pages_read.load(Ordering::Relaxed) - before;
        levels_seen.push(levels);
        for i in 0..20 {
            let mut tx = db.begin_write().unwrap();
            let mut table = tx.table(name).unwrap();
            table.put(&0u32.to_be_bytes(), &[i; 20]).unwrap();
            let done = tx.commit().unwrap();
            assert_eq!(done.pages_written, levels, "{name}");
            assert_eq!(done.bytes_written, levels * PAGE_BYTES + META_BYTES);
        }
    }
    assert_eq!(levels_seen, [1, 2, 3]);
    assert_clean(&db);
}

/// Number of pages of a table, and the number of levels that a get reads.
fn pages_and_levels(db: &Database, table: &str) -> (u64, u64) {
    let of_it = format!("table {table}: ");
    let mut pages = 0;
    db.pages(&mut |range| {
        if range.what.starts_with(&of_it) {
            pages += range.pages;
        }
    })
    .unwrap();
    let snap = db.begin_read().unwrap();
    let table = snap.table(table).unwrap().unwrap();
    let read = || snap.counters().pages_read.load(Ordering::Relaxed);
    let before = read();
    table.get(&[0; 8]).unwrap();
    (pages, read() - before)
}

/// Coarse changes come from the inner nodes alone: no leaf is read, because links to unchanged leaves are equal.
#[test]
fn coarse_changes_are_reported_without_reading_leaves() {
    let db = in_memory(&Options::new());
    let fill = |times: std::ops::Range<i64>| {
        let mut tx = db.begin_write().unwrap();
        let mut series = tx.series("s").unwrap();
        for time in times {
            let noise = (time as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            series.insert(Steps(time), noise as f64).unwrap();
        }
        tx.commit().unwrap();
        db.begin_read().unwrap()
    };
    let before = fill(0..200_000);
    let now = fill(200_000..600_000);
    let id = now.series("s").unwrap().unwrap().id();
    let read = || now.counters().vectors_decoded.load(Ordering::Relaxed);
    let (begun, exact) = (read(), now.changed_ranges(&before, id).unwrap());
    let all = read() - begun;
    let (begun, coarse) = (
        read(),
        now.changed_ranges_within(&before, id, 1 << 20).unwrap(),
    );
    let links = read() - begun;
    assert_eq!((exact[0].0, exact[exact.len() - 1].1), (200_000, 599_999));
    assert!(coarse.len() == 1 && coarse[0].0 <= 200_000 && coarse[0].1 == 599_999);
    assert!(all > 100 && links == 0, "{links} vectors decoded of {all}");
}

#[test]
fn page_outcomes_are_counted() {
    let options = Options::new().tuning(Tuning::new().log_bytes(0).dirty_bytes(128 << 10));
    let db = in_memory(&options);
    let key = |i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
    let mut tx = db.begin_write().unwrap();
    for i in 0..20_000 {
        tx.table("t").unwrap().put(&key(i), &[7; 40]).unwrap();
    }
    tx.commit().unwrap();
    // Each page comes from a split, except the first one and those added above the two halves of a split root.
    let (pages, levels) = pages_and_levels(&db, "t");
    let filled = db.metrics();
    assert_eq!(filled.pages_split, pages - levels);
    assert_eq!((filled.pages_merged, filled.pages_copied), (0, 0));
    assert!(filled.pages_read_back > 0 && filled.pages_spilled > filled.pages_read_back);

    // The transaction copies the path to the leaf once, and once more because a savepoint retains the first copy. A
    // rolled-back change is not counted.
    let change = |tx: &mut tidalite::WriteTxn, with: u8| {
        tx.table("t").unwrap().put(&key(5), &[with; 40]).unwrap();
    };
    change(&mut db.begin_write().unwrap(), 1);
    let mut tx = db.begin_write().unwrap();
    change(&mut tx, 2);
    change(&mut tx, 3);
    let _held = tx.savepoint().unwrap();
    change(&mut tx, 4);
    tx.commit().unwrap();
    let changed = db.metrics();
    assert_eq!(changed.pages_copied, 2 * levels);
    assert_eq!(changed.pages_split, filled.pages_split);

    let mut tx = db.begin_write().unwrap();
    for i in (0..20_000).filter(|i| i % 64 > 0) {
        assert!(tx.table("t").unwrap().remove(&key(i)).unwrap());
    }
    tx.commit().unwrap();
    // All removed pages were merged, except the few that a merge left as only children or a removal left empty.
    let (left, lower) = pages_and_levels(&db, "t");
    let merged = db.metrics().pages_merged;
    let gone = pages - left - (levels - lower);
    assert!(
        merged <= gone && merged > gone * 9 / 10,
        "{merged} of {gone}"
    );
    assert_clean(&db);
}

/// Length in bytes of a row as the delta counts it: series, time, two columns.
const ROW_BYTES: u64 = 32;

#[test]
fn a_hundred_thousand_small_commits_stay_cheap() {
    small_commits(&Options::new(), 4096, 100_000, 50);
}

#[test]
fn small_commits_into_small_pages_stay_cheap() {
    // The redo log is off, because its blocks are 4 KiB whatever the page size is.
    small_commits(
        &Options::new().tuning(Tuning::new().log_bytes(0)),
        512,
        20_000,
        7,
    );
}

/// With the redo log, a commit of one row writes its page, which is synced only later, and a log block, twice if
/// durable, with one sync.
#[test]
fn a_row_in_the_log_costs_a_block_twice_and_one_sync() {
    let db = in_memory(&Options::new());
    let put = |i: i64, durability: Durability| {
        let mut tx = db.begin_write().unwrap();
        let mut series = tx.series("a").unwrap();
        series.insert_point(Steps(i), 0, i as f64).unwrap();
        tx.commit_with(durability).unwrap()
    };
    for i in 0..20 {
        put(i, Durability::Durable);
    }
    for (i, durability, copies) in [
        (20, Durability::Durable, 2),
        (21, Durability::OneFlush, 1),
        (22, Durability::Durable, 2),
    ] {
        let before = db.metrics();
        let done = put(i, durability);
        let after = db.metrics();
        assert_eq!(done.pages_written, 1);
        assert_eq!(done.bytes_written, PAGE_BYTES + copies * 4096);
        assert_eq!(after.bytes_log - before.bytes_log, copies * 4096);
        assert_eq!(
            (after.syncs - before.syncs, after.records),
            (1, before.records)
        );
    }
    assert_clean(&db);
}

fn small_commits(options: &Options, page_size: u64, commits: u64, series: u64) {
    let db = in_memory(&options.clone().page_size(page_size as usize));
    let mut tx = db.begin_write().unwrap();
    let ids: Vec<_> = (0..series)
        .map(|i| tx.series(&format!("s{i}")).unwrap().id())
        .collect();
    tx.commit().unwrap();
    let (mut pages, mut bytes, mut rows, mut highest_runs) = (0, 0, 0, 0);
    let mut next = vec![0i64; series as usize];
    for commit in 0..commits {
        let mut tx = db.begin_write().unwrap();
        let count = match commit % 10 {
            0 => 12,
            5 => 3,
            _ => 1,
        };
        for i in 0..count {
            let at = ((commit * 7 + i * 13) % series) as usize;
            // One row in 97 is late.
            let time = if (commit + i) % 97 == 0 {
                next[at] / 2
            } else {
                next[at]
            };
            next[at] += 10;
            let mut series = tx.series_by_id(ids[at]).unwrap();
            series
                .insert_point(Steps(time), 0, (time as f64).sqrt())
                .unwrap();
            rows += 1;
        }
        let done = tx.commit_with(Durability::Durable).unwrap();
        pages += done.pages_written;
        bytes += done.bytes_written - META_BYTES;
        if commit % 500 == 499 {
            let runs = db.stat().unwrap().tier_runs.into_iter().max().unwrap_or(0);
            highest_runs = highest_runs.max(runs);
            assert!(runs <= TIER_RUNS_MAX, "{runs} runs after {commit} commits");
        }
    }
    // Pages of extents are counted only in the bytes, so the bound is computed from bytes.
    let all_pages = bytes.div_ceil(page_size);
    let bound = PAGES_A_COMMIT_MAX * commits as f64
        + BYTES_A_BYTE_MAX * (rows * ROW_BYTES) as f64 / page_size as f64;
    println!(
        "{commits} commits of {rows} rows: {pages} single pages, {all_pages} pages in all, bound {bound:.0}; at most {highest_runs} runs in a tier"
    );
    assert!(pages <= all_pages && (all_pages as f64) < bound);
    let stat = db.stat().unwrap();
    let stored: u64 = ids
        .iter()
        .map(|&id| {
            let snap = db.begin_read().unwrap();
            rows_of(&snap.series_by_id(id).unwrap().unwrap())
                .unwrap()
                .len() as u64
        })
        .sum();
    assert!(stored > rows * 9 / 10 && stored <= stat.rows());
    println!(
        "{stored} rows, {} of them in leaves, {} pages in all",
        stat.leaf_rows, stat.pages_total
    );
    assert_clean(&db);
}

/// Returns the result of a call, with the numbers of nodes that it read and of vectors that it decoded.
fn counted<T>(snap: &ReadTxn, call: impl FnOnce() -> T) -> (T, u64, u64) {
    let now = || {
        let counters = snap.counters();
        let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        (load(&counters.nodes_read), load(&counters.vectors_decoded))
    };
    let before = now();
    let result = call();
    let after = now();
    (result, after.0 - before.0, after.1 - before.1)
}

#[test]
fn an_interval_of_three_million_rows_reads_two_paths_and_two_vectors() {
    const ROWS: i64 = 3_000_000;
    let db = in_memory(&Options::new());
    let mut tx = db.begin_write().unwrap();
    let times: Vec<i64> = (0..ROWS).map(|i| i * 1_000).collect();
    let flags = vec![0; times.len()];
    let values: Vec<u64> = (0..ROWS).map(|i| (i as f64).to_bits()).collect();
    tx.series("ramp")
        .unwrap()
        .append_rows(&times, &[&flags, &values])
        .unwrap();
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let series = snap.series("ramp").unwrap().unwrap();
    let height = u64::from(series.height());
    println!(
        "{ROWS} rows, {height} levels, {} bytes",
        series.stored_bytes()
    );
    let sum = |from: i64, to: i64| (from + to) as f64 * ((to - from + 1) as f64 / 2.0);
    for (first, last) in [
        (0, ROWS - 1),
        (1, ROWS - 2),
        (1_500_000, 1_500_000),
        (123_456, 2_345_678),
        (17, 18),
        (2_999_000, ROWS - 1),
    ] {
        let range = series.query(Steps(first * 1_000 - 3)..=Steps(last * 1_000 + 3));
        let (found, nodes, vectors) = counted(&snap, || range.aggregate(1).unwrap());
        assert_eq!(found.count(), (last - first + 1) as u64);
        assert_eq!(found.sum(), sum(first, last));
        assert_eq!(found.min(), Some((first as f64, first * 1_000)));
        assert_eq!(found.max(), Some((last as f64, last * 1_000)));
        assert!(
            nodes <= 2 * height && vectors <= 2,
            "{first} to {last}: {nodes} nodes, {vectors} vectors"
        );
        let (count, nodes, vectors) = counted(&snap, || range.count().unwrap());
        assert_eq!(count, (last - first + 1) as u64);
        assert!(
            nodes <= 2 * height && vectors <= 2,
            "count: {nodes} nodes, {vectors} vectors"
        );
    }
    let (latest, nodes, vectors) = counted(&snap, || series.latest().unwrap().unwrap());
    assert_eq!(latest.time, (ROWS - 1) * 1_000);
    assert!(
        nodes <= height && vectors <= 1,
        "{nodes} nodes, {vectors} vectors"
    );
    let mut cursor = series.cursor();
    let (found, nodes, vectors) = counted(&snap, || {
        cursor.search(Steps(1_234_567_890)).unwrap().unwrap()
    });
    assert_eq!(found.time, 1_234_567_000);
    assert!(
        nodes <= height && vectors <= 1,
        "{nodes} nodes, {vectors} vectors"
    );
}

#[test]
fn a_snapshot_sees_no_later_commit() {
    let db = in_memory(&Options::new());
    let mut snaps = Vec::new();
    for commit in 0..40i64 {
        let mut tx = db.begin_write().unwrap();
        for i in 0..200 {
            tx.series("s")
                .unwrap()
                .insert_point(Steps(commit * 100 + i), commit, i as f64)
                .unwrap();
        }
        tx.table("t")
            .unwrap()
            .put(&[commit as u8 % 7], &[commit as u8])
            .unwrap();
        snaps.push((db.begin_read().unwrap(), commit));
        let durability = if commit % 3 == 0 {
            Durability::None
        } else {
            Durability::Durable
        };
        tx.commit_with(durability).unwrap();
        snaps.push((db.begin_read().unwrap(), commit + 1));
    }
    for (snap, commits) in snaps {
        let Some(series) = snap.series("s").unwrap() else {
            assert_eq!(commits, 0);
            continue;
        };
        assert_eq!(series.count().unwrap(), commits as u64 * 100 + 100);
        let newest = series.latest().unwrap().unwrap();
        assert_eq!(
            (newest.time, newest.i64(0)),
            (commits * 100 + 99, commits - 1)
        );
        let entry = snap
            .table("t")
            .unwrap()
            .unwrap()
            .get(&[(commits - 1) as u8 % 7])
            .unwrap();
        assert_eq!(entry, Some(vec![commits as u8 - 1]));
    }
    assert_clean(&db);
}

/// The results of all queries as text, to compare the same rows in different states of the delta.
fn answers(series: &Series<'_>) -> String {
    let mut text = String::new();
    let mut add = |part: &dyn std::fmt::Debug| text.push_str(&format!("{part:?}\n"));
    add(&rows_of(series).unwrap());
    add(&(series.span(), series.latest().unwrap()));
    for (from, to) in [
        (i64::MIN, i64::MAX),
        (100, 20_000),
        (777, 9_999),
        (30_000, 30_003),
    ] {
        let range = series.query(Steps(from)..=Steps(to));
        add(&range.count().unwrap());
        for column in 0..2 {
            let found = range.aggregate(column).unwrap();
            add(&(
                found.count(),
                found.sum(),
                found.min(),
                found.max(),
                found.first(),
                found.last(),
            ));
            for window in range.windows((Steps(1_000), Steps(7)), column).unwrap() {
                let found = &window.aggregate;
                add(&(
                    window.start,
                    window.last,
                    found.count(),
                    found.min(),
                    found.max(),
                    found.sum(),
                ));
            }
        }
        let mut backward = Vec::new();
        range
            .reverse()
            .for_each_vector(|vector| backward.extend(vector.times().iter().rev().copied()))
            .unwrap();
        add(&backward);
    }
    let mut cursor = series.cursor();
    for t in [-5i64, 0, 99, 12_345, 40_000, i64::MAX] {
        add(&(
            cursor.search(Steps(t)).unwrap(),
            cursor.next().unwrap(),
            cursor.previous().unwrap(),
        ));
    }
    text
}

#[test]
fn waiting_and_linked_rows_give_equal_answers() {
    // Values with exact sums, so that the order of summing has no effect.
    let rows: Vec<(i64, f64)> = (0..4_000)
        .map(|i| (i * 9, f64::from((i % 1_000) as i32) / 4.0))
        .collect();
    let insert = |db: &Database, part: &[(i64, f64)]| {
        let mut tx = db.begin_write().unwrap();
        let mut series = tx.series("s").unwrap();
        for &(time, value) in part {
            series.insert_point(Steps(time), time % 3, value).unwrap();
        }
        // A row of another series is added, so that pages of the delta hold rows of both series.
        tx.series("other")
            .unwrap()
            .insert_point(Steps(part[0].0), 0, 1.0)
            .unwrap();
        tx.commit().unwrap();
    };
    let shown = |db: &Database| {
        let snap = db.begin_read().unwrap();
        let series = snap.series("s").unwrap().unwrap();
        (answers(&series), series.waiting_rows())
    };
    let sealed = in_memory(&Options::new());
    insert(&sealed, &rows);
    let (expected, waiting) = shown(&sealed);
    assert!(waiting < 1_024, "{waiting}");
    let mut states = Vec::new();
    for (many, backwards) in [
        (1, false),
        (3, false),
        (17, true),
        (500, true),
        (1_000, false),
    ] {
        let db = in_memory(&Options::new());
        let mut parts: Vec<_> = rows.chunks(many).collect();
        if backwards {
            parts.reverse();
        }
        for part in parts {
            insert(&db, part);
        }
        let (found, waiting) = shown(&db);
        assert_eq!(
            found, expected,
            "{many} rows a commit, backwards: {backwards}"
        );
        states.push(waiting);
        assert_clean(&db);
    }
    // The same case again, but wrong rows are committed first and then overwritten in a transaction that stays open.
    let db = in_memory(&Options::new());
    let wrong: Vec<_> = rows.iter().map(|&(time, value)| (time, -value)).collect();
    insert(&db, &wrong);
    let mut tx = db.begin_write().unwrap();
    for &(time, value) in &rows {
        tx.series("s")
            .unwrap()
            .insert_point(Steps(time), time % 3, value)
            .unwrap();
    }
    let mut series = tx.series("s").unwrap();
    assert_eq!(answers(&series.view().unwrap()), expected);
    println!("rows waiting in the delta: {states:?}");
    assert!(states.iter().any(|&waiting| waiting > 500), "{states:?}");
}
