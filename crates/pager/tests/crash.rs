//! Simulates power failures after every operation of random runs, and proves that these tests find deliberate bugs.
//!
//! To run more seeds: `TIDALITE_CRASH_SEEDS=1000 cargo test -p tidalite-pager --test unwatched crash::a_power -- --nocapture`. To
//! repeat one seed: `TIDALITE_CRASH_SEED=17`.

use crate::harness::crash::{Tally, examine, record};
use tidalite_pager::seeded::Bug;
use tidalite_testkit::{Deliberate, Mistake};

const SEEDS: u64 = 6;
const COMMITS: u64 = 24;
const IMAGES: u64 = 3;
/// Number of seeds within which a deliberate bug must be found.
const BUG_SEEDS: u64 = 12;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn a_power_cut_anywhere_leaves_a_promised_state() {
    let mut tally = Tally::default();
    let seeds = match number("TIDALITE_CRASH_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("TIDALITE_CRASH_SEEDS").unwrap_or(SEEDS),
    };
    for seed in seeds {
        if let Err(problem) = examine(seed, COMMITS, IMAGES, &mut tally) {
            panic!("TIDALITE_CRASH_SEED={seed}: {problem}");
        }
    }
    println!(
        "{} crash states, {} of them inside a reopening, {} checked before a writer opened them",
        tally.states, tally.nested, tally.read_only
    );
}

#[test]
fn the_write_protocol_holds_in_random_runs() {
    for seed in 1000..1040 {
        if let Err(problem) = record(seed, 60, true) {
            panic!("seed {seed}: {problem}");
        }
    }
}

fn seeds_to_find(
    bug: Deliberate,
    find: impl Fn(u64) -> Result<(), String>,
) -> Option<(u64, String)> {
    bug.switch(true);
    let found = (0..BUG_SEEDS).find_map(|seed| Some((seed + 1, find(seed).err()?)));
    bug.switch(false);
    found
}

#[test]
fn every_deliberate_bug_is_found_by_crashing() {
    for bug in Deliberate::of_sequential_commits() {
        let find = |seed| examine(seed, COMMITS, IMAGES, &mut Tally::default());
        match seeds_to_find(bug, find) {
            Some((seeds, how)) => println!("{bug}: found by seed {seeds}: {how}"),
            None => panic!("{bug} is not found within {BUG_SEEDS} seeds"),
        }
    }
}

#[test]
fn the_monitor_finds_mistakes_of_order_without_a_crash() {
    for bug in [
        Deliberate::Storage(Mistake::SkipSync),
        Deliberate::Storage(Mistake::MetaBeforeData),
        Deliberate::Pager(Bug::ReuseEarly),
        Deliberate::Pager(Bug::CopiesInOneBlock),
    ] {
        match seeds_to_find(bug, |seed| record(seed, COMMITS, true).map(|_| ())) {
            Some((seeds, how)) => println!("{bug}: found by seed {seeds}: {how}"),
            None => panic!("{bug} is not found within {BUG_SEEDS} seeds"),
        }
    }
}
