//! Tests that input blocks consumed by an open compaction are freed before the compaction ends.

use super::*;
use crate::key::Key;
use crate::limits::FAN_IN;
use crate::run::directory::entries_from;
use crate::step_sizes::passed_bytes;
use tidalite_testkit::rng::Rng;

const SERIES: u64 = 64;

/// Commits forty rows per series, which fill several extents of a run.
fn commit(world: &mut World, rng: &mut Rng, round: i64) -> Work {
    commit_of(world, rng, round, (40, 24))
}

/// Commits `rows` rows per series, with values of `bits` bits.
fn commit_of(world: &mut World, rng: &mut Rng, round: i64, (rows, bits): (i64, u32)) -> Work {
    for series in 0..SERIES {
        for row in 0..rows {
            let words: Vec<u64> = types_of(series)
                .iter()
                .map(|_| rng.u64() >> (64 - bits))
                .collect();
            world.put(series, round * rows + row, &words);
        }
    }
    world.commit()
}

#[test]
fn rows_that_a_compaction_has_passed_are_freed_early() {
    crate::short_extents(true);
    let (mut world, mut rng) = (World::new(4096, 4 << 20), Rng::new(11));
    for round in 0..FAN_IN as i64 {
        commit(&mut world, &mut rng, round);
    }
    let (mut passed, mut before, mut fell) = (0, u64::MAX, 0);
    for round in FAN_IN as i64.. {
        let work = commit(&mut world, &mut rng, round);
        world.check();
        for series in [0, 1, SERIES / 2, SERIES - 1] {
            world.compare(series, i64::MIN, i64::MAX);
        }
        if work.compactions_ended > 0 {
            break;
        }
        passed += work.blocks_passed;
        let inputs = &world.delta.record.tiers[0].runs[..FAN_IN];
        let rows = inputs.iter().map(|run| run.rows).sum();
        fell += u64::from(rows < before);
        before = rows;
        if round % 3 == 0 {
            world.reopen();
        }
    }
    assert!(
        passed > 2 * FAN_IN as u64,
        "{passed} blocks were freed while the compaction was open"
    );
    assert!(fell > 2, "they went step by step, {fell} times");
}

/// Large commits make large steps. After each step, no input may have enough consumed blocks left to be worth
/// freeing.
#[test]
fn a_large_step_frees_passed_rows_of_all_inputs() {
    crate::short_extents(true);
    let (mut world, mut rng) = (World::new(4096, 4 << 20), Rng::new(14));
    let mut steps = 0;
    for round in 0.. {
        // The rows give blocks so short that a small step would not free two of them.
        let work = commit_of(&mut world, &mut rng, round, (160, 4));
        world.check();
        if work.compactions_ended > 0 {
            break;
        }
        let tier = &world.delta.record.tiers[0];
        let Some(watermark) = tier.compaction.and_then(|compaction| compaction.watermark) else {
            continue;
        };
        steps += 1;
        for run in &tier.runs[..FAN_IN] {
            let mut blocks = Vec::new();
            entries_from(&run.directory, &world.pages, &Key::MIN, 99, &mut blocks).unwrap();
            let behind = blocks.iter().filter(|block| block.last <= watermark);
            let bytes: u64 = behind.map(|block| u64::from(block.ptr.len)).sum();
            // Blocks of rows without columns can be so short that they are not freed.
            assert!(bytes < passed_bytes() / 8, "{bytes} bytes in round {round}");
        }
    }
    assert!(steps > 4, "{steps} steps");
}

/// Each commit has one row of a layout that comes first in every run. The consumed blocks of other layouts must be
/// judged by their own length, not by the length of the first block.
#[test]
fn a_short_first_block_does_not_retain_later_blocks() {
    crate::short_extents(true);
    let (mut world, mut rng) = (World::new(4096, 4 << 20), Rng::new(13));
    let lone = 6;
    world.put(lone, -1, &[]);
    world.commit();
    let mut passed = 0;
    for round in 0.. {
        world.put(lone, round, &[]);
        for series in (0..SERIES).filter(|&series| types_of(series) == types_of(0)) {
            for row in 0..40 {
                let words: Vec<u64> = types_of(series).iter().map(|_| rng.u64() >> 40).collect();
                world.put(series, round * 40 + row, &words);
            }
        }
        let work = world.commit();
        world.check();
        if work.compactions_ended > 0 {
            break;
        }
        passed += work.blocks_passed;
    }
    assert_eq!(world.delta.class_of(types_of(lone)), Some(0));
    assert!(
        passed > FAN_IN as u64,
        "{passed} blocks were freed while the compaction was open"
    );
}

#[test]
fn rows_are_deleted_and_found_beside_passed_rows() {
    crate::short_extents(true);
    let (mut world, mut rng) = (World::new(512, 4 << 20), Rng::new(12));
    for round in 0..3 * FAN_IN as i64 {
        commit(&mut world, &mut rng, round);
        let series = rng.below(SERIES);
        let from = rng.between(0, round * 40);
        world.delete(series, from, from + 90);
        world.commit();
        world.compare(series, i64::MIN, i64::MAX);
        world.check();
    }
}
