//! Tests of blocks of runs that helper threads have encoded.

use super::{POINT, World, types_of};
use crate::Blocks;
use tidalite_codec::{Rows, RowsRef};
use tidalite_testkit::rng::Rng;

/// Returns blocks with ascending rows of several series of one layout, and adds the rows to the expected data.
fn list(world: &mut World, rng: &mut Rng, series: &[u64], from: i64) -> Blocks {
    let types = types_of(series[0]);
    let learned = (
        world.delta.add_class(types).unwrap(),
        world.buffer.run_encoder_states(types),
    );
    let mut list = Blocks::new(types, learned);
    for &id in series {
        assert_eq!(types_of(id), types, "one layout");
        let mut rows = Rows::new(types.len());
        let mut time = from;
        for _ in 0..rng.below(700) {
            time += rng.between(1, 9);
            let words: Vec<u64> = types.iter().map(|_| rng.below(500)).collect();
            let columns: Vec<&[u64]> = words.iter().map(std::slice::from_ref).collect();
            rows.extend(RowsRef::new(&[time], &columns));
            world.truth.insert((id, time), words);
        }
        // The rows of a series are pushed in several pieces.
        let mut at = 0;
        while at < rows.len() {
            let to = rows.len().min(at + 1 + rng.index(900));
            list.push(&vec![id; to - at], rows.slice(at..to)).unwrap();
            at = to;
        }
    }
    list.finish();
    list
}

#[test]
fn blocks_are_newer_than_all_that_was_there() {
    for seed in 0..40 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let mut world = World::new(4096, 1 << 20);
        let points: Vec<u64> = (0..60).filter(|id| *types_of(*id) == POINT).collect();
        let wide = [5, 12, 19, 26];
        let mut runs_at_once = 0;
        for round in 0..20 {
            // Pushes a few rows for the tail page, or enough for a run, or none.
            for _ in 0..[0, 20, 3000][rng.index(3)] {
                let id = points[rng.index(points.len())];
                let time = round * 1000 + rng.between(0, 2000);
                world.put(id, time, &[0, rng.below(500)]);
            }
            if rng.one_in(2) {
                world.commit();
            }
            let (buffer, leaves) = (&mut world.buffer, &mut world.leaves);
            let pages = &mut world.pages;
            world.delta.store(pages, buffer, leaves).unwrap();
            let parts = 1 + rng.index(4);
            let mut lists = Vec::new();
            // The lists have disjoint ranges of series, or (rarely) interleaved ranges; in some rounds there is no
            // list.
            let among = rng.one_in(5);
            for part in 0..parts {
                let own: Vec<u64> = match among {
                    true => points.iter().copied().skip(part).step_by(parts).collect(),
                    false => points
                        .chunks(points.len() / parts)
                        .nth(part)
                        .unwrap()
                        .to_vec(),
                };
                let from = round * 1000 - rng.between(0, 900);
                lists.push(list(&mut world, &mut rng, &own, from));
            }
            lists.push(list(&mut world, &mut rng, &wide, round * 1000));
            if rng.one_in(2) {
                lists.reverse();
            }
            let before = world.delta.work().runs_written;
            let (buffer, leaves) = (&mut world.buffer, &mut world.leaves);
            let pages = &mut world.pages;
            world
                .delta
                .add_blocks(pages, buffer, leaves, lists)
                .unwrap();
            runs_at_once += u64::from(world.delta.work().runs_written == before + 1);
            assert_eq!(world.delta.tail_rows(), 0);
            world.commit();
            if rng.one_in(3) {
                world.reopen();
            }
            let id = points[rng.index(points.len())];
            world.compare(id, i64::MIN, i64::MAX);
            world.compare(id, round * 1000, round * 1000 + 300);
            world.compare(wide[rng.index(4)], i64::MIN, i64::MAX);
            world.buffer.reset();
            world.check();
        }
        assert!(runs_at_once > 0, "lists that lie apart are one run");
        for id in points {
            world.compare(id, i64::MIN, i64::MAX);
        }
    }
}
