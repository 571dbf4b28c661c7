//! The aims of the suite with the measured figures.

use crate::args::Options;
use crate::contest::Contest;
use crate::engine::TIDALITE_HASH;
use crate::report::{self, Aim};

const B_TREES: [&str; 3] = ["lmdb", "libmdbx", "redb"];
const LSM_TREES: [&str; 2] = ["fjall", "rocksdb"];

/// Formats the aims as a table in Markdown. They apply to ten million and to a hundred million keys.
pub(crate) fn aims(contest: &Contest, options: &Options) -> String {
    let ours = |case: &str| contest.median(case, TIDALITE_HASH.name);
    let best = |cases: &[&str], peers: &[&str]| {
        let all = cases
            .iter()
            .flat_map(|case| peers.iter().filter_map(|peer| contest.median(case, peer)));
        all.reduce(f64::max)
    };
    let ratio = |above: Option<f64>, below: Option<f64>| Some(above? / below?);
    let all: Vec<&str> = B_TREES.iter().chain(&LSM_TREES).copied().collect();
    let many = ["get-many", "settled-get-many", "get", "settled-get"];
    let million = 1e6;
    let sets = if options.keys < 100_000_000 { 1.5 } else { 1.0 };
    let lines = [
        Aim::at_least("durable sets/s", ours("set"), sets * million),
        Aim::at_least(
            "sets, of the best B+tree",
            ratio(ours("set"), best(&["set"], &B_TREES)),
            10.0,
        ),
        Aim::at_least(
            "sets, of the best LSM tree",
            ratio(ours("set"), best(&["set"], &LSM_TREES)),
            2.0,
        ),
        Aim::at_least(
            "sets of the last part, of the first",
            ratio(ours("set-last"), ours("set-first")),
            0.5,
        ),
        Aim::at_least("gets/s, settled", ours("settled-get"), 3.0 * million),
        Aim::at_least("gets/s while loading", ours("get-loading"), 1.5 * million),
        Aim::at_least(
            "gets/s of many, settled",
            ours("settled-get-many"),
            6.0 * million,
        ),
        Aim::at_least(
            "gets of two threads, of one",
            ratio(ours("settled-get-2"), ours("settled-get")),
            1.8,
        ),
        Aim::at_least(
            "gets after the load, of the best peer",
            ratio(ours("get"), best(&["get"], &all)),
            2.0,
        ),
        Aim::at_least(
            "gets settled, of the best peer",
            ratio(ours("settled-get"), best(&["settled-get"], &all)),
            2.0,
        ),
        Aim::at_least(
            "gets of many settled, of the best peer's gets",
            ratio(ours("settled-get-many"), best(&many, &all)),
            3.0,
        ),
        Aim::at_most("anonymous memory, MiB", ours("memory"), 256.0),
        Aim::at_most("reopen, ms", ours("reopen"), 10.0),
    ];
    report::aims(&lines)
}
