//! The part of the long crash search that runs with the test suite: power cuts, the write protocol, deliberate bugs.
//!
//! To run more, or one seed again: `cargo run --release -p tidalite-torture -- crash --states N --seed S`.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use tidalite_torture::crash::{Plan, Tally, describe, examine, watch};
use tidalite_torture::seeded;

/// Number of seeds that the longest test examines, which is also enough for each deliberate bug. Every eighth is a long run,
/// every eighth has messages, one in four has two disks, and one in three has small durable commits, so each shape
/// occurs several times.
const SEEDS: u64 = seeded::SEEDS_MAX;
const THREADS: usize = 2;
const PAGE_BYTES: usize = 512;

#[test]
fn a_power_cut_anywhere_leaves_a_promised_state() {
    // Seeds without messages, and seeds with messages.
    let (tallies, next) = ([Tally::default(), Tally::default()], AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= SEEDS {
                        break;
                    }
                    let plan = Plan::of_seed(seed, PAGE_BYTES);
                    let tally = &tallies[usize::from(plan.shape.messages_one_in > 0)];
                    if let Err(problem) = examine(seed, &plan, tally) {
                        panic!("seed {seed}: {problem}");
                    }
                }
            });
        }
    });
    let sum = |of: fn(&Tally) -> &AtomicU64| {
        let counts = tallies
            .iter()
            .map(|tally| of(tally).load(Ordering::Relaxed));
        counts.sum::<u64>()
    };
    let states = sum(|tally| &tally.states);
    let (nested, deep) = (sum(|tally| &tally.nested), sum(|tally| &tally.deep));
    let (kept, dropped) = (sum(|tally| &tally.kept), sum(|tally| &tally.dropped));
    let (asked, related) = (sum(|tally| &tally.asked), sum(|tally| &tally.related));
    let (used_up, read_only) = (sum(|tally| &tally.used_up), sum(|tally| &tally.read_only));
    println!(
        "{states} crash states of {SEEDS} seeds, {nested} in or after a reopening, {deep} times in one of that, {asked} asked questions, \
         {related} with rows of relations and an index, {used_up} used up their messages, \
         {kept} with a lock file of another instant, which named commits that were not there in {dropped}",
    );
    assert!(nested > states / 50, "reopenings are cut too");
    assert!(deep > 0, "and reopenings after that");
    assert!(kept > states / 10, "lock files outlive what the disk loses");
    assert!(dropped > kept / 50, "and name what is not there");
    assert!(asked > states / 20, "answers are compared too");
    assert!(related > states / 3, "relations have rows and an index");
    let [without, with] = tallies;
    assert_eq!(without.used_up.into_inner(), 0, "there are no messages");
    assert!(
        used_up > with.states.into_inner() / 50,
        "messages are used up in some states"
    );
    assert!(
        read_only > states / 10,
        "and some states are checked before a writer opens them"
    );
}

/// A run whose shape has neither messages nor relations counts none.
#[test]
fn a_run_without_messages_and_relations_has_none() {
    let mut plan = Plan::of_seed(5, PAGE_BYTES);
    (plan.shape.messages_one_in, plan.shape.relations_one_in) = (0, 0);
    let tally = Tally::default();
    assert_eq!(examine(5, &plan, &tally), Ok(()));
    assert!(tally.states.into_inner() > 0);
    assert_eq!(tally.used_up.into_inner(), 0);
    assert_eq!(tally.related.into_inner(), 0);
}

/// A seed gives the same run twice, also on another thread, which uses other reader slots.
#[test]
fn a_seed_reproduces_its_run() {
    for seed in 0..8 {
        let run = move || describe(seed, &Plan::of_seed(seed, PAGE_BYTES)).unwrap();
        let first = std::thread::spawn(run).join().unwrap();
        let second = run();
        let lines = first.lines().zip(second.lines());
        let differs = lines.into_iter().find(|(first, second)| first != second);
        assert_eq!(differs, None, "seed {seed}");
        assert_eq!(first.len(), second.len(), "seed {seed}");
    }
}

/// A power cut while helper threads encode must leave a promised state. To run more: `crash --flush-threads 2`.
#[test]
fn a_power_cut_beside_threads_that_encode_leaves_a_promised_state() {
    let tally = Tally::default();
    for seed in 0..4 {
        let mut plan = Plan::of_seed(seed, PAGE_BYTES).helped(1 + seed as usize % 3);
        // Appenders are switched off, because they would otherwise encode the rows instead of the helper threads.
        plan.shape.appenders_one_in = 0;
        if let Err(problem) = examine(seed, &plan, &tally) {
            panic!("seed {seed}: {problem}");
        }
    }
    let (states, leaves) = (tally.states.into_inner(), tally.leaves.into_inner());
    println!("{states} crash states, {leaves} with leaves that others encoded");
    assert!(leaves > 0);
}

#[test]
fn larger_pages_crash_as_well() {
    for seed in 0..6 {
        if let Err(problem) = examine(seed, &Plan::of_seed(seed, 4096), &Tally::default()) {
            panic!("seed {seed}, pages of 4096 bytes: {problem}");
        }
    }
}

#[test]
fn the_write_protocol_holds_in_random_runs() {
    let plan = Plan {
        steps: 40,
        ..Plan::default()
    };
    for seed in 5_000..5_080 {
        if let Err(problem) = watch(seed, &plan) {
            panic!("seed {seed}: {problem}");
        }
    }
}

#[test]
fn every_deliberate_bug_is_found() {
    for switch in seeded::switches() {
        let finding = seeded::find(&switch, 0);
        assert!(finding.found.is_some(), "{finding}");
        // Bypasses the output capture of the test runner, so that every run shows how soon each bug is found.
        std::io::stderr()
            .write_all(format!("{finding}\n").as_bytes())
            .expect("a place to say it");
    }
}
