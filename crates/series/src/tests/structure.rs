//! Tests properties of the tree's structure by counters and sizes, without measuring time.

use super::model::rows_and_lines;
use super::{POINT, World, ramp};
use std::sync::atomic::Ordering;
use tidalite_codec::{ColumnType, Rows};
use tidalite_pager::PageRead;
use tidalite_testkit::rng::Rng;

/// Number of nodes read and number of vectors decoded while `work` runs.
fn counted(world: &World, work: impl FnOnce()) -> (u64, u64) {
    let counters = world.pages.counters();
    let read = || {
        let nodes = counters.nodes_read.load(Ordering::Relaxed);
        (nodes, counters.vectors_decoded.load(Ordering::Relaxed))
    };
    let before = read();
    work();
    let after = read();
    (after.0 - before.0, after.1 - before.1)
}

/// Creates a tree of many small leaves, so that the tree is high.
fn high(fanout: usize) -> World {
    let mut world = World::new(4096, fanout, &POINT);
    for i in 0..160 {
        let rows = ramp(i * 10_240, 10, 1024);
        world.link(rows.view());
    }
    world
}

#[test]
fn a_leaf_of_constant_steps_is_read_as_lines_once() {
    let mut world = World::new(4096, 8, &POINT);
    world.link(ramp(0, 10, 40_000).view());
    let (rows, of_lines) = rows_and_lines(&world, (i64::MIN, i64::MAX));
    assert_eq!(rows, world.rows());
    // There are three leaves; the last vector of the last leaf is short and therefore a line of its own.
    assert_eq!(of_lines, 4);
    // The interval begins and ends in the middle of vectors and has a late row inside; whole vectors still come as
    // lines.
    let mut late = Rows::new(2);
    late.push_row(100_005, &[7, 8]);
    world.late = late;
    let (rows, of_lines) = rows_and_lines(&world, (5_000, 350_000));
    assert_eq!(rows.len(), 34_502);
    assert!((3..=5).contains(&of_lines), "{of_lines}");
}

#[test]
fn an_interval_aggregate_reads_two_nodes_a_level_and_two_vectors() {
    let world = high(4);
    let height = u64::from(world.tree.height());
    assert!(height >= 4, "height {height}");
    let all = world.rows();
    let mut rng = Rng::new(5);
    for _ in 0..300 {
        let (a, b) = (rng.between(-100, 1_700_000), rng.between(-100, 1_700_000));
        let (from, to) = (a.min(b), a.max(b));
        let (nodes, vectors) = counted(&world, || {
            let stats = world.view().aggregate(from, to, 1).unwrap();
            let rows = all.view().between(from, to);
            super::model::assert_stats(&stats, ColumnType::F64, rows, 1);
        });
        assert!(
            nodes <= 2 * height,
            "{nodes} nodes in a tree of height {height}"
        );
        assert!(vectors <= 2, "{vectors} vectors");
        let (nodes, vectors) = counted(&world, || {
            world.view().count(from, to).unwrap();
        });
        assert!(
            nodes <= 2 * height && vectors <= 2,
            "count: {nodes} nodes, {vectors} vectors"
        );
    }
    let (nodes, vectors) = counted(&world, || {
        world.view().aggregate(i64::MIN, i64::MAX, 1).unwrap();
    });
    assert_eq!(
        (nodes, vectors),
        (0, 0),
        "the whole series is in the record"
    );
}

#[test]
fn late_rows_decode_only_vectors_that_they_overlap() {
    let mut world = high(4);
    // Adds late rows: one inside a vector, one between two vectors, and one after all rows.
    let mut late = Rows::new(2);
    for time in [55_555, 10_240 * 9 - 5, 10_240 * 200] {
        late.push_row(time, &[1, 7.5f64.to_bits()]);
    }
    world.late = late;
    let all = world.rows();
    let (_, vectors) = counted(&world, || {
        let stats = world.view().aggregate(i64::MIN, i64::MAX, 1).unwrap();
        super::model::assert_stats(&stats, ColumnType::F64, all.view(), 1);
    });
    assert_eq!(vectors, 1);
}

#[test]
fn windows_wider_than_a_vector_decode_only_at_their_edges() {
    let world = high(4);
    let mut windows = 0;
    let (nodes, vectors) = counted(&world, || {
        world
            .view()
            .windows(i64::MIN, i64::MAX, 102_403, 0, 1, |_| windows += 1)
            .unwrap();
    });
    assert_eq!(windows, 16);
    assert!(
        vectors <= windows + 1,
        "{vectors} vectors for {windows} windows"
    );
    let (mut leaves, mut total) = (0u64, 0);
    world
        .tree
        .for_each_leaf_while(&world.pages, |link| {
            leaves += 1;
            total += link.count;
            true
        })
        .unwrap();
    assert_eq!(total, world.tree.count());
    assert!(nodes <= leaves, "{nodes} nodes for {leaves} leaves");
}

#[test]
fn steps_of_a_cursor_read_each_node_and_vector_once() {
    let world = high(4);
    let nodes_in_tree = world.check().nodes;
    for forward in [true, false] {
        let (nodes, vectors) = counted(&world, || {
            let mut cursor = world.view().cursor();
            let mut on = if forward {
                cursor.first()
            } else {
                cursor.last()
            }
            .unwrap();
            while on {
                on = if forward {
                    cursor.next()
                } else {
                    cursor.previous()
                }
                .unwrap();
            }
        });
        assert_eq!(vectors, 160);
        assert!(
            nodes <= nodes_in_tree,
            "{nodes} reads of {nodes_in_tree} nodes"
        );
    }
}

#[test]
fn a_ramp_takes_a_quarter_of_a_byte_a_point() {
    let mut world = World::new(4096, 64, &POINT);
    let rows = ramp(0, 1_000_000_000, 1 << 20);
    world.link(rows.view());
    let report = world.check();
    let table_pages = 1;
    let bytes = (world.pages.live_pages() - table_pages) * 4096;
    let per_point = bytes as f64 / rows.len() as f64;
    println!(
        "{} leaves, {} nodes, {per_point:.4} bytes a point",
        report.leaves, report.nodes
    );
    assert!(per_point < 0.25, "{per_point} bytes a point");
    assert_eq!(report.leaves, 64);

    // Tests a leaf with a single vector.
    let mut world = World::new(4096, 64, &POINT);
    world.link(rows.slice(0..1024));
    let bytes = world.check().live_bytes;
    assert!(bytes <= 1024, "{bytes} bytes for a leaf of 1024 rows");
}

#[test]
fn a_node_is_rewritten_once_for_eight_commits() {
    let mut world = World::new(4096, 64, &POINT);
    for i in 0..160 {
        let rows = ramp(i * 10_240, 10, 1024);
        let before = world.pages.bytes_written();
        world.link(rows.view());
        let written = world.pages.bytes_written() - before;
        if i % 8 != 0 {
            assert!(written <= 4096, "commit {i} wrote {written} bytes");
        }
    }
}
