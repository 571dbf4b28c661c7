//! Tests that the randomized tests detect the deliberate bugs quickly.

use super::*;
use crate::bugs::{Bug, enable};
use tidalite_testkit::rng::Rng;

/// Whether a random run with reopening fails in a way that `check` or a comparison with the model detects.
fn goes_wrong(seed: u64) -> bool {
    let mut rng = Rng::new(seed);
    let mut world = World::new(512, 1 << 20);
    for commit in 0..500i64 {
        // Rows are wide, so that a compaction needs several steps.
        for i in 0..12 {
            let series = 5 + 7 * rng.below(40);
            world.put(series, commit * 100 + i, &[rng.u64(); 12]);
        }
        world.commit();
        world.reopen();
        let report = world.delta.check(&world.pages, &mut |_| {}, &mut |_| {});
        if report.is_err() {
            return true;
        }
    }
    false
}

#[test]
fn a_merge_that_forgets_its_watermark_is_found() {
    assert!(!goes_wrong(0), "without the bug all is well");
    enable(Some(Bug::CompactionForgetsWatermark));
    let found = (1..10).find(|&seed| goes_wrong(seed));
    enable(None);
    println!("seeds to find: {found:?}");
    assert!(found.is_some());
}
