//! Tests that move the pages of the delta towards the beginning of the file, in steps.

use super::*;
use crate::DeltaPosition;
use tidalite_kv::Relocation;
use tidalite_testkit::rng::Rng;

/// All pages lie beyond the boundary of the compaction, before and after they are moved. A step has room for less
/// than an extent, and other writers commit between steps. A pass must still end, after each page has moved about
/// once.
#[test]
fn a_pass_ends_even_if_nothing_fits_further_down() {
    crate::short_extents(true);
    let seed = 17;
    println!("seed {seed}");
    let (mut world, mut rng) = (World::new(4096, 4 << 20), Rng::new(seed));
    for round in 0..6 {
        for series in 0..64 {
            for row in 0..40 {
                let words: Vec<u64> = types_of(series).iter().map(|_| rng.u64() >> 40).collect();
                world.put(series, round * 40 + row, &words);
            }
        }
        world.commit();
    }
    let (mut position, mut steps, mut moved) = (DeltaPosition::default(), 0, 0);
    loop {
        let mut step = Relocation {
            boundary: 1,
            second_boundary: u64::MAX,
            pages: 2,
            reads: 128,
        };
        let next = world
            .delta
            .relocate(&mut world.pages, &mut step, &position)
            .unwrap();
        steps += 1;
        moved += 2 - step.pages;
        if steps % 5 == 0 {
            world.put(
                1,
                10_000 + steps,
                &types_of(1).iter().map(|_| 7).collect::<Vec<_>>(),
            );
        }
        world.commit();
        world.check();
        match next {
            Some(next) => position = next,
            None => break,
        }
        assert!(steps < 1000, "{position:?}");
    }
    assert!(steps > 10 && moved > 10, "{steps} steps, {moved} pages");
    for series in 0..64 {
        world.compare(series, i64::MIN, i64::MAX);
    }
    world.reopen();
    world.check();
    world.compare(3, i64::MIN, i64::MAX);
}
