//! `raptor`: compares a hash table of GUIDs and texts with other engines, and repeats the tests of RaptorDB's article,
//! with the article's figures.
//!
//! **Engines.** Keys are GUIDs of 16 bytes in random order, and values are the 36 characters of the GUID as text. Every
//! engine runs in a process of its own, in durable transactions of 10,000 sets. Gets return the value, and all of its
//! bytes are compared. A *part* is a tenth of the keys, but at most a million.
//!
//! | case | |
//! |---|---|
//! | `set` | sets/s of the whole load |
//! | `set-first`, `set-last` | sets/s of the first and of the last part |
//! | `written` | bytes per key that the engine passes to `write` and similar calls during the load |
//! | `bytes` | file bytes per key, after closing |
//! | `reopen` | ms to open the database again and begin to read |
//! | `count` | ms to count the keys, by the engine's fastest exact method |
//! | `get`, `get-2` | random gets/s of one and of two threads, hot, right after the load |
//! | `get-many` | gets/s in batches of 100 keys, where the engine has such a call |
//! | `get-loading` | random gets/s of a thread while the main thread sets one more part; a snapshot for 1,000 gets |
//! | `set-beside` | sets/s of the main thread meanwhile |
//! | `settle` | seconds that the engine needs to merge what the load has left (LSM trees and hash tables) |
//! | `settled-...` | the gets again, and the file bytes, after that |
//! | `memory` | MiB of anonymous memory of the process, the maximum of all cases |
//!
//! **The article.** Cases are named after the number of keys. With `--keys` of ten million they have the article's
//! counts (the article's sizes of up to a hundred million need `--keys 100000000`). The quoted figures are shown next
//! to ours where the sizes are equal.
//!
//! | cases | article | |
//! |---|---|---|
//! | `index-...` | Pure Index speed | GUIDs and numbers in memory, beside `hashbrown` and `BTreeMap` |
//! | `set-1m`, `get-1m` ... | `One_Million_Set_Get`, `Ten_...`, `Twenty_...` | GUIDs and texts on disk |
//! | `compact-...` | `Ten_Million_Optimized_GUID`, `Twenty_...` | the index holds hashes |
//! | `page-size-...` | Index parameter tuning | page sizes of the database; items of a page in the article |
//! | `duplicates-...` | `Duplicates_Set_and_Get` | 100 records for each of 1,000 GUIDs |
//! | `long-strings-...` | `RaptorDBString_test` | 100,000 keys of 1 KB, without regard to case |
//! | `strings-...` | `StringKeyTest` | keys of up to 250 bytes |
//! | `enumerate` | `Enumerate` | all keys from one on |
//! | `restart-...` | `One_Million_Set_Shutdown_Get` | set, close, open, get |
//! | `remove`, `remove-get` | `RemoveKeyTest` | removed keys stay removed between openings |
//! | `writers-...` | `Multithread_test` | two writers of a million keys each, and a reader of two million |
//!
//! `--only` selects from the groups `engines`, `index`, `sizes`, `compact`, `page-size`, `duplicates`, `strings`,
//! `enumerate`, `restart`, `remove` and `writers`. A B+tree needs hours for a hundred million keys, so select the
//! `--peers`.

mod aims;
mod duplicates;
mod engines;
mod enumerate;
mod guids;
mod index;
mod own;
mod quoted;
mod restarts;
mod sizes;
mod strings;
mod writers;

use crate::args::Options;
use crate::child;
use crate::contest::Contest;
use crate::engine::{PEERS, Promise, Result, Setup, TIDALITE_HASH};
use crate::os;

pub(crate) use aims::aims;
use own::Own;

/// A group of the article's tests, on Tidalite.
type Group = (&'static str, fn(&mut Own<'_>) -> Result<()>);

const GROUPS: [Group; 10] = [
    ("index", index::run),
    ("sizes", sizes::plain),
    ("compact", sizes::compact),
    ("page-size", sizes::page_sizes),
    ("duplicates", duplicates::run),
    ("strings", strings::run),
    ("enumerate", enumerate::run),
    ("restart", restarts::shutdown),
    ("remove", restarts::removals),
    ("writers", writers::run),
];

/// Runs the suite `raptor`.
pub(crate) fn run(options: &Options) -> Result<Contest> {
    run_with(options, &mut engines::in_a_process)
}

/// The main function of the child process, which measures one engine.
pub(crate) fn one(options: &Options) -> Result<()> {
    let [name] = options.peers.as_slice() else {
        return Err("one engine is wanted".into());
    };
    let mut kinds = [TIDALITE_HASH].into_iter().chain(PEERS.iter().copied());
    let kind = kinds.find(|kind| kind.name == name);
    let kind = kind.ok_or("there is no such engine")?;
    engines::measure(kind, &options.dir, options, &mut |case, unit, sample| {
        child::tell(case, unit, &sample);
        Ok(())
    })
}

fn run_with(options: &Options, engine: engines::Run<'_>) -> Result<Contest> {
    // SQLite is a peer only in other suites.
    let peers: Vec<String> = match options.peers.as_slice() {
        [] => {
            let names = PEERS.iter().map(|peer| peer.name);
            let chosen = names.filter(|name| *name != "sqlite");
            chosen.map(str::to_owned).collect()
        }
        named => named.to_vec(),
    };
    let mut contest = Contest::new("raptor", &[TIDALITE_HASH], &peers)?;
    for round in 0..options.rounds {
        if options.chosen("engines") {
            for kind in contest.order(round) {
                let dir = os::TempDir::within(&options.dir, kind.name)?;
                let setup = Setup::new(Promise::Synced, options.keys * guids::PAIR_BYTES);
                os::expect_disk(dir.path(), setup.data_bytes * 4 + (64 << 20))
                    .map_err(|short| format!("{short}: use --keys"))?;
                os::settle(dir.path())?;
                // Only memory for the page cache is touched, because the heap belongs to another process.
                os::touch_memory(setup.data_bytes * 2, 0);
                engine(kind, dir.path(), options, &mut contest)?;
            }
            quoted::add("memory", options.keys, ("MiB", true), &mut contest);
        }
        let mut own = Own {
            options,
            contest: &mut contest,
        };
        for (group, run) in GROUPS {
            if options.chosen(group) {
                run(&mut own)?;
            }
        }
    }
    Ok(contest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse;

    #[test]
    fn every_engine_gives_right_answers_and_every_group_has_cases() {
        let dir = os::TempDir::new("raptor").unwrap();
        let place = dir.path().to_str().unwrap();
        let line = ["raptor", "--keys", "3000", "--rounds", "1", "--dir", place];
        let options = parse(line.map(str::to_owned)).unwrap().unwrap();
        let contest = run_with(&options, &mut engines::in_this_process).unwrap();
        for peer in PEERS.iter().filter(|peer| peer.name != "sqlite") {
            for case in ["set", "set-last", "bytes", "reopen", "count", "get-2"] {
                assert!(contest.median(case, peer.name).is_some(), "{case}");
            }
        }
        for case in [
            "get-many",
            "get-loading",
            "settled-get-many",
            "memory",
            "index-get",
            "set-3000",
            "compact-get-3000",
            "page-size-set",
            "duplicates-get",
            "long-strings-get",
            "strings-get",
            "enumerate",
            "restart-open",
            "remove",
            "writers-get",
        ] {
            assert!(contest.median(case, "tidalite-hash").is_some(), "{case}");
        }
        assert!(contest.median("index-set", "hashbrown").is_some());
        let aims = aims(&contest, &options);
        assert_eq!(aims.lines().count(), 2 + 13, "{aims}");
        assert!(!aims.contains("not measured"), "{aims}");
        assert!(options.all_known().is_ok());
    }
}
