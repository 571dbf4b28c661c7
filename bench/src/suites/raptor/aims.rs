//! The aims of the suite beside the measured figures.

use std::fmt::Write as _;

use crate::args::Options;
use crate::contest::Contest;
use crate::engine::TIDALITE_HASH;
use crate::report::short;

const B_TREES: [&str; 3] = ["lmdb", "libmdbx", "redb"];
const LSM_TREES: [&str; 2] = ["fjall", "rocksdb"];

/// A measured figure and its bound: at least, or at most.
struct Aim {
    text: &'static str,
    figure: Option<f64>,
    bound: f64,
    at_most: bool,
}

/// Formats the aims as a table in Markdown. They are meant for ten and for a hundred million keys.
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
    let at_least = |text, figure, bound| Aim {
        text,
        figure,
        bound,
        at_most: false,
    };
    let at_most = |text, figure, bound| Aim {
        at_most: true,
        ..at_least(text, figure, bound)
    };
    let lines = [
        at_least("durable sets/s", ours("set"), sets * million),
        at_least(
            "sets, of the best B+tree",
            ratio(ours("set"), best(&["set"], &B_TREES)),
            10.0,
        ),
        at_least(
            "sets, of the best LSM tree",
            ratio(ours("set"), best(&["set"], &LSM_TREES)),
            2.0,
        ),
        at_least(
            "sets of the last part, of the first",
            ratio(ours("set-last"), ours("set-first")),
            0.5,
        ),
        at_least("gets/s, settled", ours("settled-get"), 3.0 * million),
        at_least("gets/s while loading", ours("get-loading"), 1.5 * million),
        at_least(
            "gets/s of many, settled",
            ours("settled-get-many"),
            6.0 * million,
        ),
        at_least(
            "gets of two threads, of one",
            ratio(ours("settled-get-2"), ours("settled-get")),
            1.8,
        ),
        at_least(
            "gets after the load, of the best peer",
            ratio(ours("get"), best(&["get"], &all)),
            2.0,
        ),
        at_least(
            "gets settled, of the best peer",
            ratio(ours("settled-get"), best(&["settled-get"], &all)),
            2.0,
        ),
        at_least(
            "gets of many settled, of the best peer's gets",
            ratio(ours("settled-get-many"), best(&many, &all)),
            3.0,
        ),
        at_most("anonymous memory, MiB", ours("memory"), 256.0),
        at_most("reopen, ms", ours("reopen"), 10.0),
    ];
    let mut text = String::from("| aim | bound | measured | met |\n|---|---:|---:|---|\n");
    for aim in lines {
        let bound = match aim.at_most {
            true => format!("<= {}", short(aim.bound)),
            false => format!(">= {}", short(aim.bound)),
        };
        let (measured, met) = match aim.figure {
            None => ("not measured".to_owned(), ""),
            Some(figure) => {
                let is_met = match aim.at_most {
                    true => figure <= aim.bound,
                    false => figure >= aim.bound,
                };
                (short(figure), if is_met { "yes" } else { "**no**" })
            }
        };
        // Writing to a `String` cannot fail, so the result is ignored.
        let _ = writeln!(text, "| {} | {bound} | {measured} | {met} |", aim.text);
    }
    text
}
