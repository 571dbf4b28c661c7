//! Tests limits, extreme values and failures.

use super::{POINT, World, ramp};
use crate::{Found, Packer, SeriesTree, View};
use tidalite_base::SeriesId;
use tidalite_base::limits::COLUMNS_MAX;
use tidalite_codec::{ColumnType, Rows};
use tidalite_pager::{DiskError, Error};

#[test]
fn an_empty_series_can_be_queried() {
    let mut world = World::new(512, 4, &POINT);
    world.transact(|_, _, _| ());
    assert_eq!(world.view().span(), None);
    assert_eq!(world.view().first(), None);
    assert_eq!(world.view().last(), None);
    assert_eq!(world.view().count(i64::MIN, i64::MAX).unwrap(), 0);
    assert_eq!(
        world
            .view()
            .aggregate(i64::MIN, i64::MAX, 1)
            .unwrap()
            .count(),
        0
    );
    let mut cursor = world.view().cursor();
    assert_eq!(cursor.search(i64::MAX).unwrap(), Found::Nothing);
    assert!(!cursor.next().unwrap() && !cursor.previous().unwrap());
    world.delete(i64::MIN, i64::MAX);
    world.check();
}

#[test]
fn the_extreme_timestamps_are_ordinary_rows() {
    let mut world = World::new(512, 4, &POINT);
    let mut rows = Rows::new(2);
    for time in [i64::MIN, -1, 0, i64::MAX] {
        rows.push_row(time, &[0, (time as f64).to_bits()]);
    }
    world.link(rows.view());
    world.check();
    assert_eq!(world.view().count(i64::MAX, i64::MAX).unwrap(), 1);
    assert_eq!(world.view().count(i64::MIN, i64::MIN).unwrap(), 1);
    let mut starts = Vec::new();
    let take = |window: crate::Window| starts.push((window.start, window.last));
    world
        .view()
        .windows(i64::MIN, i64::MAX, i64::MAX, 0, 1, take)
        .unwrap();
    let half = i64::MAX - 1;
    assert_eq!(
        starts,
        [
            (i64::MIN, -i64::MAX - 1),
            (-i64::MAX, -1),
            (0, half),
            (i64::MAX, i64::MAX)
        ]
    );
    world.delete(i64::MAX, i64::MAX);
    world.delete(i64::MIN, i64::MIN);
    assert_eq!(world.view().span(), Some((-1, 0)));
    let narrow = world.view().windows(0, 1, 0, 0, 1, |_| ());
    assert!(
        matches!(narrow, Err(Error::Limit { .. })),
        "a width of 0 is refused"
    );
    world.check();
}

#[test]
fn a_series_can_have_64_columns() {
    let types = [ColumnType::U64; COLUMNS_MAX];
    let mut world = World::new(4096, 4, &types);
    for i in 0..3 {
        let mut rows = Rows::new(types.len());
        for row in 0..8000 {
            let words: Vec<u64> = (0..64).map(|c| (row * c) ^ i).collect();
            rows.push_row(((i * 8000 + row) * 10) as i64, &words);
        }
        world.link(rows.view());
    }
    let report = world.check();
    assert!(
        report.leaves == 6,
        "directories stay below 64 KiB: {} leaves",
        report.leaves
    );
    let record = world.tree.encode();
    assert!(
        record.len() <= 15 + 9 * 64 + 9 * (72 + 103 * 64),
        "{} bytes",
        record.len()
    );
    let many = vec![ColumnType::U64; COLUMNS_MAX + 1];
    assert!(matches!(
        SeriesTree::new(SeriesId(1), &many),
        Err(Error::Limit { .. })
    ));
}

#[test]
fn a_series_without_columns_stores_events() {
    let mut world = World::new(512, 4, &[]);
    let rows = Rows {
        times: (0..5000).map(|i| i * i).collect(),
        columns: Vec::new(),
    };
    world.link(rows.view());
    assert_eq!(world.view().count(100, 10_000).unwrap(), 91);
    world.check();
}

#[test]
fn a_failed_change_keeps_the_old_tree() {
    let mut world = World::new(512, 3, &POINT);
    for i in 0..20 {
        world.link(ramp(i * 100_000, 7, 900).view());
    }
    let report = world.check();
    let late = ramp(33, 50_001, 40);
    let mut failures = 0;
    for calls in 0..200 {
        let mut tree = world.tree.clone();
        let mut packer = Packer::new(world.table);
        world.pages.fail_after(Some(calls));
        let result = tree
            .link(&mut world.pages, &mut packer, late.view())
            .and_then(|()| tree.delete(&mut world.pages, &mut packer, 150_000, 1_250_000))
            .and_then(|_| tree.save(&mut world.pages, &mut packer))
            .and_then(|_| packer.finish(&mut world.pages));
        world.pages.fail_after(None);
        world.pages.rollback();
        if let Err(error) = result {
            assert!(
                matches!(error, Error::Disk(DiskError::DiskFull { .. })),
                "{error}"
            );
            failures += 1;
        }
        assert_eq!(world.check(), report);
    }
    assert!(failures > 20, "{failures} failures");
}

#[test]
fn a_snapshot_does_not_change() {
    let mut world = World::new(512, 3, &POINT);
    for i in 0..20 {
        world.link(ramp(i * 100_000, 7, 900).view());
    }
    let (snapshot, tree, rows) = (world.pages.snapshot(), world.tree.clone(), world.rows());
    world.link(ramp(1, 9001, 300).view());
    world.delete(300_000, 1_500_000);
    let none = Rows::new(2);
    let mut seen = Rows::new(2);
    let view = View::new(&snapshot, &tree, none.view());
    view.for_each_vector(i64::MIN, i64::MAX, &[0, 1], |vector| {
        seen.times.extend_from_slice(vector.times());
        seen.columns[0].extend_from_slice(vector.words(0));
        seen.columns[1].extend_from_slice(vector.words(1));
    })
    .unwrap();
    assert_eq!(seen, rows);
    world.check();
}

#[test]
fn own_writes_are_readable_after_a_flush() {
    let mut world = World::new(4096, 64, &POINT);
    let none = Rows::new(2);
    world.transact(|tree, pages, packer| {
        for i in 0..3 {
            tree.link(pages, packer, ramp(i * 10_240, 10, 1024).view())
                .unwrap();
            tree.close_leaf(pages, packer).unwrap();
            packer.flush(pages).unwrap();
            let view = View::new(pages, tree, none.view());
            assert_eq!(view.last().map(|row| row.time), Some(i * 10_240 + 10_230));
        }
        // Rewrites leaves in the same transaction that wrote them.
        tree.link(pages, packer, ramp(5, 10, 2000).view()).unwrap();
        tree.delete(pages, packer, 0, 500).unwrap();
    });
    assert_eq!(world.tree.count(), 3 * 1024 + 2000 - 51 - 50);
}

#[test]
fn small_appends_fill_whole_leaves() {
    let mut world = World::new(4096, 64, &POINT);
    for i in 0..1000 {
        world.link(ramp(i * 100, 10, 10).view());
    }
    let report = world.check();
    assert!(
        report.leaves <= 10_000 / 500,
        "{} leaves for 10,000 rows",
        report.leaves
    );
}

#[test]
fn deleting_the_last_row_frees_all_pages() {
    let mut world = World::new(512, 3, &POINT);
    for i in 0..40 {
        world.link(ramp(i * 100_000, 7, 900).view());
    }
    world.delete(i64::MIN, i64::MAX);
    let report = world.check();
    assert_eq!((report.leaves, report.nodes, report.extents), (0, 0, 0));
    assert_eq!(world.pages.live_pages(), world.table.height().into());
    assert_eq!(world.tree.height(), 0);
}

/// Links enough rows for a separate leaf, which begin at the last time of an existing leaf: at that time the new row
/// replaces the old row, and no time occurs twice.
#[test]
fn many_rows_from_the_end_of_a_leaf_on_replace_its_last_row() {
    let mut world = World::new(4096, 4, &POINT);
    world.link(ramp(0, 1, 3000).view());
    world.link(ramp(10_000, 1, 3000).view());
    let columns: Vec<usize> = (0..POINT.len()).collect();
    for (number, end) in [2999, 12_999].into_iter().enumerate() {
        let mut rows = ramp(end, 1, 2000);
        rows.columns[0].fill(number as u64);
        world.link(rows.view());
        world.check();
        let mut times = Vec::new();
        let mut words = Vec::new();
        let read = world
            .view()
            .for_each_vector(i64::MIN, i64::MAX, &columns, |vector| {
                times.extend_from_slice(vector.times());
                words.extend_from_slice(vector.words(0));
            });
        read.unwrap();
        let expected = world.rows();
        assert!(
            times == expected.times && words == expected.columns[0],
            "{end}"
        );
    }
}

/// If a time has several rows, a leaf ends after the last of them, whatever its capacity.
#[test]
fn rows_with_equal_times_share_one_leaf() {
    for each in [3, 7, 100] {
        let mut world = World::new(4096, 4, &POINT);
        let mut rows = Rows::with_capacity(2, 200_000);
        for i in 0..200_000 {
            rows.push_row(i / each, &[0, (i as f64).to_bits()]);
        }
        world.transact(|tree, pages, packer| tree.link(pages, packer, rows.view()).unwrap());
        let (mut leaves, mut end) = (0, -1);
        let walked = world.tree.for_each_leaf_while(&world.pages, |leaf| {
            assert!(leaf.begin > end, "{each} rows each: {end} is in two leaves");
            (leaves, end) = (leaves + 1, leaf.end);
            true
        });
        walked.unwrap();
        assert!(leaves > 2);
    }
}

/// When a tree of several levels has only one leaf left, one node remains above that leaf. Each root that was replaced
/// by its only child is freed, which `check` finds by counting the pages in use.
#[test]
fn a_root_replaced_by_its_only_child_is_freed() {
    let mut world = World::new(512, 4, &POINT);
    for i in 0..100 {
        world.link(ramp(i * 1000, 1, 900).view());
    }
    let high = world.tree.height();
    assert!(high >= 3, "height {high}");
    let mut heights = vec![high];
    for rows in [70_000, 20_000, 9000, 5000, 1000] {
        world.delete(rows, i64::MAX);
        world.check();
        heights.push(world.tree.height());
    }
    heights.dedup();
    assert!(heights.is_sorted_by(|a, b| a > b), "{heights:?}");
    assert_eq!(heights.last(), Some(&1));
    assert_eq!(world.count_links().1, 1);
}
