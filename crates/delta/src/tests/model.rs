use super::*;
use tidalite_testkit::ScratchSnapshot;
use tidalite_testkit::rng::Rng;

struct Old {
    snapshot: ScratchSnapshot,
    root: DeltaRoot,
    leaves: Map,
    truth: Map,
}

struct Shape {
    page_size: usize,
    write_buffer_bytes: usize,
    series: u64,
    commits: u64,
    /// Maximum number of rows in a commit.
    rows: u64,
    /// One row in this many is late, that is, older than earlier rows.
    late: u64,
    deletes: bool,
}

fn run(seed: u64, shape: &Shape) -> (u64, Work) {
    println!("seed {seed}");
    crate::short_extents(seed % 2 == 1);
    let mut rng = Rng::new(seed);
    let mut world = World::new(shape.page_size, shape.write_buffer_bytes);
    let mut clock = 0i64;
    let mut old: Vec<Old> = Vec::new();
    let mut total = Work::default();
    for _ in 0..shape.commits {
        let rows = 1 + rng.below(shape.rows);
        let mut left = rows;
        while left > 0 {
            let series = rng.below(shape.series);
            let batch = if rng.one_in(3) {
                1 + rng.below(left)
            } else {
                1
            };
            left -= batch;
            let late = rng.one_in(shape.late);
            let mut time = if late { rng.between(-5, clock) } else { clock };
            for _ in 0..batch {
                time += 1 + rng.below(2) as i64;
                let words: Vec<u64> = (0..types_of(series).len())
                    .map(|c| if c == 0 { 0 } else { rng.u64() >> 40 })
                    .collect();
                world.put(series, time, &words);
            }
            clock = clock.max(time);
            if shape.deletes && rng.one_in(60) {
                let from = rng.between(-5, clock);
                let to = from.saturating_add(rng.between(-2, 3_000));
                world.delete(rng.below(shape.series), from, to);
            }
            if rng.one_in(200) {
                world.compare(series, rng.between(0, clock), i64::MAX);
            }
        }
        if rng.one_in(20) {
            world.pages.rollback();
            world.buffer.reset();
            world.reopen();
            // The model's leaves are not rolled back, so the expected data is rebuilt from leaves and delta.
            let mut truth = Map::new();
            for series in 0..shape.series {
                let all = (i64::MIN, i64::MAX);
                truth.extend(visible(
                    &world.delta,
                    &world.pages,
                    &world.leaves.rows,
                    series,
                    all.0,
                    all.1,
                ));
            }
            world.truth = truth;
            continue;
        }
        let work = world.commit();
        total.rows_linked += work.rows_linked;
        total.rows_linked_by_compaction += work.rows_linked_by_compaction;
        total.compactions_ended += work.compactions_ended;
        total.compactions_forced += work.compactions_forced;
        if rng.one_in(3) {
            world.reopen();
        }
        let series = rng.below(shape.series);
        world.compare(series, rng.between(-5, clock), rng.between(-5, clock));
        if rng.one_in(10) {
            world.check();
            for series in 0..shape.series {
                world.compare(series, i64::MIN, i64::MAX);
            }
            world.buffer.reset();
        }
        if rng.one_in(15) {
            old.push(Old {
                snapshot: world.pages.snapshot(),
                root: world.root,
                leaves: world.leaves.rows.clone(),
                truth: world.truth.clone(),
            });
            if old.len() > 2 {
                let old = old.swap_remove(rng.index(3));
                let delta = Delta::load(&old.snapshot, &old.root).unwrap();
                for series in 0..shape.series.min(20) {
                    let (from, to) = (i64::MIN, i64::MAX);
                    let seen = visible(&delta, &old.snapshot, &old.leaves, series, from, to);
                    let expected = part(&old.truth, series, from, to);
                    assert!(seen == expected, "an old snapshot changed");
                }
            }
        }
    }
    world.check();
    for series in 0..shape.series {
        world.compare(series, i64::MIN, i64::MAX);
    }
    let counts = world.delta.series_row_counts(&world.pages).unwrap();
    for (series, count) in counts {
        let rows = delta_rows(&world.delta, &world.pages, series.0, i64::MIN, i64::MAX);
        assert!(rows.len() as u64 <= count);
    }
    (world.leaves.links, total)
}

#[test]
fn many_series_in_small_commits() {
    let shape = Shape {
        page_size: 512,
        write_buffer_bytes: 1 << 20,
        series: 40,
        commits: 600,
        rows: 60,
        late: 10,
        deletes: true,
    };
    for seed in 0..4 {
        let (_, work) = run(seed, &shape);
        assert!(work.compactions_ended > 0);
    }
}

#[test]
fn few_series_in_order_are_linked_by_merges() {
    let shape = Shape {
        page_size: 4096,
        write_buffer_bytes: 1 << 20,
        series: 2,
        commits: 300,
        rows: 600,
        late: 1_000_000,
        deletes: false,
    };
    for seed in 100..103 {
        let (links, work) = run(seed, &shape);
        assert!(
            links > 0 && work.rows_linked_by_compaction > 20_000,
            "{work:?}"
        );
    }
}

#[test]
fn late_rows_overwrite_linked_rows() {
    let shape = Shape {
        page_size: 512,
        write_buffer_bytes: 60_000,
        series: 5,
        commits: 100,
        rows: 3_000,
        late: 4,
        deletes: true,
    };
    for seed in 200..202 {
        let (links, work) = run(seed, &shape);
        assert!(links > 0 && work.compactions_ended > 0, "{work:?}");
    }
}

#[test]
fn the_budget_is_reached_within_a_transaction() {
    let shape = Shape {
        page_size: 4096,
        write_buffer_bytes: 20_000,
        series: 9,
        commits: 40,
        rows: 8_000,
        late: 30,
        deletes: true,
    };
    for seed in 300..303 {
        let (links, work) = run(seed, &shape);
        assert!(links > 0 && work.rows_linked > 0, "{work:?}");
    }
}

#[test]
fn many_short_batches_merge_as_the_model() {
    for seed in 0..6 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let mut world = World::new(4096, 1 << 20);
        // The series have three layouts. In some files the series ids are so sparse that series are merged one by
        // one.
        let (series, apart) = (rng.between(200, 1_500) as u64, [1, 3, 50][rng.index(3)]);
        let (late, skips) = (rng.one_in(2), rng.one_in(2));
        let mut merged = 0;
        for commit in 0..70i64 {
            for one in 0..series {
                if skips && rng.one_in(8) {
                    continue;
                }
                let late = if late && rng.one_in(200) { 15 } else { 0 };
                for time in 0..1 + u64::from(rng.one_in(60)) * rng.below(40) {
                    let words = vec![rng.u64() >> 40; types_of(one * apart).len()];
                    world.put(one * apart, (commit - late) * 64 + time as i64, &words);
                }
            }
            world.keeps_slots = rng.one_in(2);
            merged += world.commit().rows_compacted;
            if rng.one_in(9) {
                world.delete(rng.below(series) * apart, commit * 32, commit * 64);
                world.commit();
            }
            if rng.one_in(12) {
                world.reopen();
                world.check();
                for _ in 0..20 {
                    world.compare(rng.below(series) * apart, i64::MIN, i64::MAX);
                }
            }
        }
        for one in 0..series {
            world.compare(one * apart, i64::MIN, i64::MAX);
        }
        assert!(merged > 0, "seed {seed}");
    }
}

#[test]
fn the_last_tier_merges_into_itself() {
    let mut world = World::new(512, 1 << 20);
    let mut clock = 0i64;
    let last = crate::TIERS_MAX - 1;
    for _ in 0..60 {
        for _ in 0..8 {
            for i in 0..12 {
                clock += 1;
                let time = if i % 4 == 0 { clock / 2 } else { clock };
                world.put(clock as u64 % 9 * 7, time, &[0, clock as u64]);
            }
            world.commit();
        }
        // Ages all runs at once: moves the newest runs to the last tier.
        let tiers = &mut world.delta.record.tiers;
        tiers.resize_with(last + 1, crate::record::Tier::default);
        assert!(tiers[1..last].iter().all(|tier| tier.runs.is_empty()));
        let young = std::mem::take(&mut tiers[0].runs);
        for run in young {
            if tiers[last].runs.len() < crate::TIER_RUNS_MAX {
                tiers[last].runs.push(run);
            } else {
                tiers[0].runs.push(run);
            }
        }
        world.delta.changed = true;
        world.commit();
        world.reopen();
        world.check();
        for series in 0..9 {
            world.compare(series * 7, i64::MIN, i64::MAX);
        }
        world.buffer.reset();
    }
    assert!(
        world.delta.tier_runs()[last] < crate::TIER_RUNS_MAX,
        "{:?}",
        world.delta.tier_runs()
    );
}

#[test]
fn deleting_everything_during_a_merge_leaks_nothing() {
    // Rows are wide and steps small, so that a compaction stays open for several commits.
    let mut world = World::new(512, 1 << 20);
    let mut opened = 0;
    for commit in 0..400i64 {
        for i in 0..90 {
            world.put(
                5 + 7 * (i % 9) as u64,
                commit * 100 + i,
                &[commit as u64; 12],
            );
        }
        world.commit();
        if world.check().compactions > 0 {
            opened += 1;
            if opened % 5 == 0 {
                for series in 0..9 {
                    world.delete(5 + 7 * series, i64::MIN, i64::MAX);
                }
                world.commit();
                world.check();
                assert!(world.truth.is_empty() && world.delta.is_empty());
            }
        }
    }
    assert!(opened > 5, "{opened}");
    world.check();
}
