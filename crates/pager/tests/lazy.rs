//! Lazy commits, tickets and group commit under power cuts and kills, and the proof that the harness bites.
//!
//! One seed again: `TIDALITE_CRASH_SEED=17 cargo test -p tidalite-pager --test lazy crash`.

#[path = "toy/lazy.rs"]
mod harness;
mod toy;

use harness::{Tally, examine, watch};
use std::sync::Arc;
use tidalite_base::{checksum, put_u64};
use tidalite_pager::seeded::{Bug, LAZY_BUGS, enable};
use tidalite_pager::{Durability, LockMemory, MemoryStorage, Pager, Storage};
use tidalite_testkit::rng::Rng;
use toy::{app, apply, id_of, options, read, root_of};

const SEEDS: u64 = 3;
const COMMITS: u64 = 14;
const IMAGES: u64 = 1;
/// A deliberate bug must show within this many seeds.
const BUG_SEEDS: u64 = 24;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn a_crash_anywhere_keeps_what_each_commit_promised() {
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
    for bug in LAZY_BUGS
        .into_iter()
        .chain([Bug::SkipSync, Bug::ReuseEarly])
    {
        enable(Some(bug));
        let find = |seed| examine(seed, COMMITS, IMAGES, &mut Tally::default());
        let found = (0..BUG_SEEDS).find_map(|seed| Some((seed + 1, find(seed).err()?)));
        enable(None);
        match found {
            Some((seeds, how)) => println!("{bug:?}: found by seed {seeds}: {how}"),
            None => panic!("{bug:?} is not found within {BUG_SEEDS} seeds"),
        }
    }
}

/// Whoever writes the lock file may say anything, under right checksums: what is opened is a typed error at worst, and the durable commit stays.
#[test]
fn a_hostile_weak_record_does_no_harm_to_the_durable_commit() {
    const WEAK_AT: usize = 4096;
    const WEAK_BYTES: usize = 4096;
    tidalite_testkit::watch();
    let storage = Arc::new(MemoryStorage::new());
    let memory = LockMemory::new();
    let open = |storage: &Arc<MemoryStorage>, memory: &LockMemory| {
        let storage = Arc::clone(storage) as Arc<dyn Storage>;
        Pager::open_storage_with(storage, memory, &options())
    };
    let pager = open(&storage, &memory).expect("created");
    for (id, durability) in [(1, Durability::Durable), (2, Durability::Lazy)] {
        let mut txn = pager.begin_write().expect("the turn");
        let changes: Vec<_> = (0..30).map(|slot| (slot * 4, id)).collect();
        let root = root_of(txn.app());
        let root = apply(&mut txn, &root, &changes).expect("changed");
        txn.commit(&app(&root, id), durability).expect("committed");
    }
    let mut image = vec![0; storage.len().expect("a length") as usize];
    storage.read_at(0, &mut image).expect("its bytes");
    let area = memory.image();
    drop(pager);
    let mut rng = Rng::new(24);
    let (mut dropped, mut believed) = (0, 0);
    for round in 0..4000 {
        let mut area = area.clone();
        let record = &mut area[WEAK_AT..WEAK_AT + WEAK_BYTES];
        for _ in 0..=rng.below(2) {
            // Pointers and counts, the app area and the changes; not the standing.
            let at = *rng.pick(&[56, 384, 1920, 2048]) + 8 * rng.index(20);
            let value = match rng.below(4) {
                0 => rng.u64(),
                1 => rng.below(1 << 20),
                2 => 1 << rng.below(64),
                _ => u64::from_le_bytes(record[at..at + 8].try_into().expect("8 bytes")) + 512,
            };
            put_u64(record, at, value);
        }
        let sum = checksum(&record[8..]);
        put_u64(record, 0, sum);
        let storage = Arc::new(MemoryStorage::from_image(image.clone()));
        let pager = open(&storage, &LockMemory::from_image(&area)).expect("opened");
        if pager.recovery().dropped_unrecorded.is_some() {
            dropped += 1;
        } else {
            believed += 1;
            continue;
        }
        let reader = pager.begin_read().expect("a snapshot");
        assert_eq!(id_of(reader.app()), 1, "round {round}");
        read(&reader, &root_of(reader.app()), &mut |_, _| {}).expect("the durable commit");
    }
    println!(
        "{dropped} were dropped, {believed} not: what was changed did not matter, or is no record"
    );
    assert!(dropped > 500);
}
