//! The part of the long crash search that runs with the test suite: power cuts, the write protocol, deliberate bugs.
//!
//! To run more, or one seed again: `cargo run --release -p tidalite-torture -- crash --states N --seed S`.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use tidalite_torture::crash::{Plan, Tally, describe, examine, watch};
use tidalite_torture::seeded;

/// Minimum number of crash states that this test examines.
const STATES: u64 = 50_000;
const THREADS: usize = 2;
const PAGE_BYTES: usize = 512;

#[test]
fn a_power_cut_anywhere_leaves_a_promised_state() {
    let (tally, next) = (Tally::default(), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while tally.states.load(Ordering::Relaxed) < STATES {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if let Err(problem) = examine(seed, &Plan::of_seed(seed, PAGE_BYTES), &tally) {
                        panic!("seed {seed}: {problem}");
                    }
                }
            });
        }
    });
    let (states, nested) = (tally.states.into_inner(), tally.nested.into_inner());
    let (kept, dropped) = (tally.kept.into_inner(), tally.dropped.into_inner());
    let (asked, deep) = (tally.asked.into_inner(), tally.deep.into_inner());
    println!(
        "{states} crash states of {} seeds, {nested} in or after a reopening, {deep} times in one of that, {asked} asked questions, \
         {kept} with a lock file of another instant, which named commits that were not there in {dropped}",
        next.into_inner()
    );
    assert!(nested > states / 50, "reopenings are cut too");
    assert!(deep > 0, "and reopenings after that");
    assert!(kept > states / 10, "lock files outlive what the disk loses");
    assert!(dropped > kept / 50, "and name what is not there");
    assert!(asked > states / 20, "answers are compared too");
    let used_up = tally.used_up.into_inner();
    assert!(used_up > states / 50, "messages are used up in some states");
    let read_only = tally.read_only.into_inner();
    assert!(
        read_only > states / 10,
        "and some states are checked before a writer opens them"
    );
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
