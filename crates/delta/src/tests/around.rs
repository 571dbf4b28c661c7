//! Tests that rows hidden by damage are reported as affected, and that few other rows are reported.

use super::*;
use crate::key::Key;
use crate::{Hit, HitRows};
use std::collections::BTreeMap;
use tidalite_testkit::rng::Rng;

/// A damaged page of a run's directory hides the blocks that it lists. Only the rows of these blocks must be
/// reported.
#[test]
fn a_damaged_directory_takes_along_the_rows_that_it_hides() {
    let mut world = World::new(512, 8 << 20);
    let mut rng = Rng::new(3);
    for i in 0..60_000i64 {
        world.point((i % 3_000) as u64 * 7, i, rng.u64());
    }
    world.commit();
    let mut pages = Vec::new();
    let delta = Delta::load(&world.pages, &world.root).unwrap();
    let mut rows = Vec::new();
    delta
        .check(
            &world.pages,
            &mut |claim| {
                if claim.what == "directory of a run" {
                    pages.push(claim.addr);
                }
            },
            &mut |held| rows.push((held.series, held.first, held.last)),
        )
        .unwrap();
    assert!(pages.len() > 6, "{} pages of directories", pages.len());
    let (mut ranges, mut whole) = (0, 0);
    for addr in pages {
        world.pages.flip_bit(addr + 300, 2);
        let delta = Delta::load(&world.pages, &world.root).unwrap();
        let (mut damages, mut seen) = (Vec::new(), Vec::new());
        delta
            .check_each(
                &world.pages,
                &mut |_| {},
                &mut |held| seen.push((held.series, held.first, held.last)),
                &mut |damage| damages.push(damage.hit),
            )
            .unwrap();
        let hit = match damages[..] {
            [Hit::Rows(hit)] => hit,
            // The damaged directory page lists only extents, so the damage hides no rows.
            [Hit::Nothing] => {
                assert_eq!(seen, rows);
                world.pages.flip_bit(addr + 300, 2);
                continue;
            }
            _ => panic!("{damages:?}"),
        };
        // If no range of a series is reported, all its rows are readable; and no row within a reported range was
        // read.
        for &(series, first, last) in &rows {
            let there = seen.iter().filter(|(found, ..)| *found == series);
            match hit.times_of(0, series) {
                None => assert!(there.clone().any(|&(_, a, b)| (a, b) == (first, last))),
                Some((from, to)) => {
                    for &(_, a, b) in there {
                        assert!(b < from || to < a, "{series}: {a}..{b} in {from}..{to}");
                    }
                }
            }
        }
        let hit = rows.iter().filter(|row| hit.times_of(0, row.0).is_some());
        match hit.count() {
            all if all == rows.len() => whole += 1,
            _ => ranges += 1,
        }
        world.pages.flip_bit(addr + 300, 2);
    }
    assert!(ranges > 4 && whole <= 2, "{ranges} parts, {whole} wholes");
}

type Found = BTreeMap<(u64, i64), u64>;

/// Salvages a file without searching for blocks by their headers. Returns the count of each row, and the affected
/// ranges.
fn salvaged(world: &World) -> (Found, Vec<Hit>) {
    let delta = Delta::load(&world.pages, &world.root).unwrap();
    let (mut found, mut hits) = (Found::new(), Vec::new());
    delta
        .salvage(
            &world.pages,
            &[],
            &mut |series, rows| {
                for time in rows.times() {
                    *found.entry((series.0, *time)).or_default() += 1;
                }
                Ok(())
            },
            &mut |damage| hits.push(damage.hit),
        )
        .unwrap();
    (found, hits)
}

fn covers(hit: &HitRows, delta: &Delta, (series, time): (u64, i64)) -> bool {
    let class = delta.class_of(types_of(series)).unwrap();
    let times = hit.times_of(class, SeriesId(series));
    times.is_some_and(|(from, to)| from <= time && time <= to)
}

/// Every row that a salvage cannot recover must lie in a reported range. The ranges must usually cover only a part of
/// the rows.
#[test]
fn a_salvage_reports_the_rows_that_it_cannot_read() {
    let mut world = World::new(512, 8 << 20);
    let mut rng = Rng::new(4);
    for i in 0..60_000i64 {
        world.point((i % 3_000) as u64 * 7, i, rng.u64());
    }
    world.commit();
    let (all, hits) = salvaged(&world);
    assert!(hits.is_empty());
    let delta = Delta::load(&world.pages, &world.root).unwrap();
    let mut pages = Vec::new();
    for (run, _) in delta.live_runs(0) {
        let mut claim = |claim: tidalite_kv::UsedPages| pages.push(claim.addr);
        run.directory.check(&world.pages, &mut claim).unwrap();
    }
    let mut parts = 0;
    for &addr in &pages {
        world.pages.flip_bit(addr + 300, 2);
        let (found, hits) = salvaged(&world);
        let lost: Vec<_> = all.keys().filter(|row| !found.contains_key(row)).collect();
        let rows = hits.iter().filter_map(|hit| match hit {
            Hit::Rows(rows) => Some(rows),
            _ => None,
        });
        let covered = |row: (u64, i64)| rows.clone().any(|rows| covers(rows, &delta, row));
        for row in &lost {
            assert!(covered(**row), "{row:?} of {hits:?}");
        }
        let reported = all.keys().filter(|row| covered(**row)).count();
        assert!(reported >= lost.len() && !hits.is_empty());
        println!("{} lost, {reported} reported {hits:?}", lost.len());
        parts += usize::from(reported > 0 && reported * 2 < all.len());
        world.pages.flip_bit(addr + 300, 2);
    }
    assert!(
        parts * 2 > pages.len(),
        "{parts} parts of {} pages",
        pages.len()
    );
}

/// If an input of an open compaction is damaged, only rows that the compaction has not consumed yet must be reported.
#[test]
fn rows_that_an_open_compaction_has_passed_are_skipped() {
    let (mut world, mut rng) = (World::new(512, 4 << 20), Rng::new(12));
    let mut reported = 0;
    for round in 0.. {
        for series in 0..64 {
            for row in 0..40 {
                let words: Vec<u64> = types_of(series).iter().map(|_| rng.u64() >> 40).collect();
                world.put(series, round * 40 + row, &words);
            }
        }
        if world.commit().compactions_ended > 0 {
            break;
        }
        let delta = Delta::load(&world.pages, &world.root).unwrap();
        let mut pages: Vec<(u64, Key)> = Vec::new();
        for (run, after) in delta.live_runs(0) {
            let Some(after) = after else {
                continue;
            };
            let mut claim = |claim: tidalite_kv::UsedPages| pages.push((claim.addr, after));
            run.directory.check(&world.pages, &mut claim).unwrap();
        }
        for (addr, after) in pages.into_iter().step_by(3) {
            world.pages.flip_bit(addr + 300, 2);
            let mut hits = Vec::new();
            let mut damage = |damage: crate::DeltaDamage| hits.push(damage.hit);
            let damage = &mut damage;
            delta
                .check_each(&world.pages, &mut |_| {}, &mut |_| {}, damage)
                .unwrap();
            world.pages.flip_bit(addr + 300, 2);
            assert!(!hits.is_empty());
            for hit in hits {
                match hit {
                    Hit::Rows(rows) => {
                        assert!(
                            *rows.places().start() >= after.place(),
                            "{rows:?}, {after:?}"
                        );
                        reported += 1;
                    }
                    Hit::Nothing => {}
                    Hit::All => panic!("of one page of a directory"),
                }
            }
        }
    }
    assert!(reported > 20, "{reported} hits");
}
