//! Tests of lazy commits, tickets and group commit under power failures and kills, and the proof that these tests
//! find deliberate bugs.
//!
//! To repeat one seed: `TIDALITE_CRASH_SEED=17 cargo test -p tidalite-pager --test unwatched lazy::a_crash`.

use crate::harness::lazy::{Tally, examine, watch};
use tidalite_pager::seeded::{Bug, LAZY_BUGS};
use tidalite_testkit::{Deliberate, Mistake};

const SEEDS: u64 = 3;
const COMMITS: u64 = 14;
const IMAGES: u64 = 1;
/// Number of seeds within which a deliberate bug must be found.
const BUG_SEEDS: u64 = 24;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn a_crash_anywhere_keeps_the_promise_of_each_commit() {
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
        "{} power cuts, {} of them with a lock area too, {} kills, {} of these states gone on with, {} checked before a writer opened them",
        tally.cuts, tally.kept, tally.kills, tally.nested, tally.read_only
    );
    assert!(tally.kills > 500 && tally.kept > 500 && tally.nested > 5);
}

#[test]
fn the_write_protocol_holds_while_commits_overlap() {
    for seed in 1000..1020 {
        if let Err(problem) = watch(seed, 60) {
            panic!("seed {seed}: {problem}");
        }
    }
}

#[test]
fn every_deliberate_bug_is_found_by_crashing() {
    let of_pager = LAZY_BUGS.into_iter().chain([Bug::ReuseEarly]);
    let of_storage = [Mistake::SkipSync, Mistake::LogUnsynced].map(Deliberate::Storage);
    for bug in of_pager.map(Deliberate::Pager).chain(of_storage) {
        bug.switch(true);
        let find = |seed| examine(seed, COMMITS, IMAGES, &mut Tally::default());
        let found = (0..BUG_SEEDS).find_map(|seed| Some((seed + 1, find(seed).err()?)));
        bug.switch(false);
        match found {
            Some((seeds, how)) => println!("{bug}: found by seed {seeds}: {how}"),
            None => panic!("{bug} is not found within {BUG_SEEDS} seeds"),
        }
    }
}
