use super::*;
use crate::{COMPACTION_OVERSHOOT_BYTES, COMPACTION_STEP_BYTES, FAN_IN, TIER_RUNS_MAX};
use tidalite_testkit::rng::Rng;

/// Number of pages that a step of a compaction may write beyond its rows: a half-empty page for each of its extents,
/// and the directory pages on the path to the last entries.
const STEP_PAGES: u64 = 4;
/// Number of pages that a commit may write beyond its rows: a tail page, a run and a record of the delta.
const COMMIT_PAGES: u64 = 24;
/// Maximum number of times that a row is written per tier: by the commit or the compaction, and again where a step of
/// the compaction was cut off.
const WRITTEN_PER_TIER: u64 = 2;

/// Maximum number of pages that a commit writes: a constant plus a multiple of `bytes_flushed`.
fn pages_bound(world: &World, bytes_flushed: u64) -> u64 {
    let page = 4096;
    let tiers = world.delta.tier_runs().len() as u64 + 1;
    let step = (COMPACTION_STEP_BYTES + COMPACTION_OVERSHOOT_BYTES) / page + STEP_PAGES;
    let a = tiers * step + COMMIT_PAGES;
    let b_bytes = bytes_flushed * (tiers + 1) * WRITTEN_PER_TIER;
    a + b_bytes / page
}

fn small_commits(series: u64, commits: u64, rows_max: u64, seed: u64) -> Work {
    let mut rng = Rng::new(seed);
    let mut world = World::new(4096, 1 << 20);
    let (mut clock, mut most, mut total) = (0i64, 0, Work::default());
    let mut pages_all = 0;
    for commit in 0..commits {
        let rows = 1 + rng.below(rows_max);
        for _ in 0..rows {
            clock += 1;
            let time = if rng.one_in(20) {
                rng.between(0, clock)
            } else {
                clock
            };
            world.point(rng.below(series) * 7, time, clock as u64);
        }
        let before = world.pages.pages_allocated();
        let work = world.commit();
        let pages = world.pages.pages_allocated() - before;
        let bound = pages_bound(&world, rows * 32);
        assert!(
            pages <= bound,
            "commit {commit} of {rows} rows: {pages} pages, bound {bound}"
        );
        most = most.max(pages);
        pages_all += pages;
        for runs in world.delta.tier_runs() {
            assert!(runs <= TIER_RUNS_MAX);
        }
        total.rows_compacted += work.rows_compacted;
        total.rows_flushed += work.rows_flushed;
        total.compactions_ended += work.compactions_ended;
        total.compactions_forced += work.compactions_forced;
        total.rows_linked_by_compaction += work.rows_linked_by_compaction;
    }
    let tiers = world.delta.tier_runs().len() as u64;
    println!(
        "{commits} commits: {:.2} pages a commit, {most} at most; tiers {:?}; {total:?}",
        pages_all as f64 / commits as f64,
        world.delta.tier_runs()
    );
    // Every row is read at most once per tier, except that rows at which a step was cut off are read again.
    assert!(total.rows_compacted <= total.rows_flushed * tiers * 5 / 4);
    assert_eq!(
        total.compactions_forced, 0,
        "the pace of the compactions suffices"
    );
    world.check();
    total
}

#[test]
fn the_work_of_small_commits_is_bounded() {
    let work = small_commits(10_000, 100_000, 3, 1);
    assert!(work.compactions_ended > 50);
}

#[test]
fn the_work_of_small_commits_to_few_series_is_bounded() {
    let work = small_commits(3, 30_000, 20, 2);
    assert!(work.rows_linked_by_compaction > 100_000, "{work:?}");
}

#[test]
fn each_commit_of_series_in_turn_does_about_as_much() {
    let mut world = World::new(4096, 64 << 20);
    world.keeps_slots = true;
    let (series, mut written, mut merged) = (2_500, Vec::new(), Vec::new());
    // The number of commits is large enough for compactions of three tiers, and for rows to become leaves.
    for commit in 0..4_500 {
        for one in 0..series {
            world.point(one * 7, commit, one);
        }
        let before = world.pages.pages_allocated();
        let work = world.commit();
        assert_eq!(work.compactions_forced, 0, "commit {commit}");
        written.push(world.pages.pages_allocated() - before);
        merged.push(work.rows_compacted);
        world.leaves.rows.clear();
    }
    assert!(world.leaves.links > 0, "rows were linked");
    written.sort_unstable();
    let (middle, most) = (written[written.len() / 2], written[written.len() - 1]);
    let merged = merged.into_iter().max().unwrap_or(0);
    println!("pages: median {middle}, most {most}; rows merged by a commit: {merged} at most");
    assert!(most <= 4 * middle, "{most} where the median is {middle}");
    // In each of three tiers, a step merges at most twice its share, because it continues to the end of a block, and
    // then to the end of a series.
    assert!(merged <= 16 * series, "{merged}");
    world.check();
}

#[test]
fn runs_of_very_different_sizes_do_not_pile_up() {
    let mut world = World::new(4096, 64 << 20);
    let mut clock = 0;
    for round in 0..40u64 {
        // The first commits have rows of so many series that no rows can become leaves.
        for i in 0..if round < 20 { 20_000 } else { 0 } {
            clock += 1;
            world.point(i % 2_000 * 7, clock, 1);
        }
        world.commit();
        for _ in 0..40 {
            clock += 1;
            for series in 0..50 {
                world.point(series * 7, clock, 2);
            }
            world.commit();
        }
        assert!(
            world
                .delta
                .tier_runs()
                .iter()
                .all(|&runs| runs <= TIER_RUNS_MAX)
        );
    }
    world.check();
    assert!(world.delta.run_count() < 4 * FAN_IN * world.delta.tier_runs().len());
}

#[test]
fn a_small_commit_writes_one_page() {
    let mut world = World::new(4096, 1 << 20);
    world.point(7, 1, 1);
    world.commit();
    for time in 2..100 {
        let before = world.pages.pages_allocated();
        world.point(7, time, 1);
        world.commit();
        assert_eq!(world.pages.pages_allocated() - before, 1);
    }
    assert_eq!(world.delta.tail_rows(), 99);
    assert_eq!(world.delta.run_count(), 0);
}

#[test]
fn a_long_transaction_stays_within_its_budget() {
    let mut world = World::new(4096, 4 << 20);
    let mut greatest = 0;
    for i in 0..2_000_000i64 {
        world.point((i % 70) as u64 * 7, i, i as u64);
        if i % 1000 == 0 {
            greatest = greatest.max(world.buffer.bytes());
            world.leaves.rows.clear();
        }
    }
    assert!(greatest <= (4 << 20) + 200_000, "{greatest}");
    world.commit();
    assert!(world.leaves.links > 0);
    world.check();
}
