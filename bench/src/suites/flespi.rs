//! `flespi`: the kinds of messages that a telemetry platform handles: retained topics, containers, a queue, objects.
//!
//! | part | question | peers | sizes |
//! |---|---|---|---|
//! | `topics` | a million topics overwritten once a second for ten minutes, with wildcard reads meanwhile ([`telemetry`]) | LMDB | `--topics`, `--batch`, `--seconds` |
//! | `topics-max` | the same as fast as possible | LMDB | the same |
//! | `load` | ten million topics: load, memory, reopening, filters beside a full scan ([`load`]) | LMDB | `--keys` |
//! | `layouts` | one ordered keyspace, nested tables, a plain table ([`load`], [`store`]) | LMDB | `--topics`, `--batch` |
//! | `window` | a million matches through a window of 20 ([`window`]) | | `--topics` |
//! | `containers` | messages of 20 fields by device and time: write, read in blocks and at random, aggregates ([`containers`]) | SQLite | `--documents` |
//! | `queue` | push, lease and ack; ordering keys, groups ([`queue`]) | LMDB, SQLite | `--messages` |
//! | `objects` | an object of 1 GiB in and out ([`objects`]) | a plain file | `--mib` |
//!
//! `--only` selects the parts. Every commit is durable and waits for the disk, like the commits of the peers. Every
//! part checks the results of its reads; a wrong result ends the run with an error.
//!
//! ```text
//! names       topics and payloads          face       the interface of the stores of topics
//! keyspace, nested, flat                   the stores; store: their kinds
//! telemetry   topics, topics-max           reader     wildcard reads beside the writer
//! load        load, layouts                containers, window, queue, objects    the other parts
//! aims        the aims beside the figures
//! ```

mod aims;
mod containers;
mod face;
mod flat;
mod keyspace;
mod load;
mod names;
mod nested;
mod objects;
mod queue;
mod reader;
mod store;
mod telemetry;
mod window;

use crate::args::Options;
use crate::contest::Contest;
use crate::engine::Result;

pub(crate) use aims::aims;

/// Input of a part: the options, the number of the round, and the function that measures a store in another process.
struct Run<'r> {
    options: &'r Options,
    round: usize,
    one: load::Run<'r>,
    contest: &'r mut Contest,
}

type Part = (&'static str, fn(&mut Run<'_>) -> Result<()>);

const PARTS: [Part; 8] = [
    ("topics", |run| {
        telemetry::run("topics", true, run.options, run.round, run.contest)
    }),
    ("topics-max", |run| {
        telemetry::run("topics-max", false, run.options, run.round, run.contest)
    }),
    ("load", |run| {
        load::run("load", run.options, run.round, run.one, run.contest)
    }),
    ("layouts", |run| {
        load::run("layouts", run.options, run.round, run.one, run.contest)
    }),
    ("window", |run| window::run(run.options, run.contest)),
    ("containers", |run| {
        containers::run(run.options, run.round, run.contest)
    }),
    ("queue", |run| {
        queue::run(run.options, run.round, run.contest)
    }),
    ("objects", |run| {
        objects::run(run.options, run.round, run.contest)
    }),
];

/// Runs the suite `flespi`.
pub(crate) fn run(options: &Options) -> Result<Contest> {
    run_with(options, &mut load::in_a_process)
}

/// The main function of the child process, which measures one store.
pub(crate) fn one(options: &Options) -> Result<()> {
    load::one(options)
}

fn run_with(options: &Options, one: load::Run<'_>) -> Result<Contest> {
    let mut contest = Contest::among("flespi", &[]);
    for round in 0..options.rounds {
        for (name, part) in PARTS {
            if options.chosen(name) {
                part(&mut Run {
                    options,
                    round,
                    one: &mut *one,
                    contest: &mut contest,
                })
                .map_err(|error| format!("{name}: {error}"))?;
            }
        }
    }
    Ok(contest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse;
    use crate::os;

    #[test]
    fn every_part_gives_right_answers_and_has_its_cases() {
        let dir = os::TempDir::new("flespi").unwrap();
        let place = dir.path().to_str().unwrap();
        let line = [
            "flespi",
            "--topics",
            "2000",
            "--batch",
            "500",
            "--seconds",
            "1",
            "--keys",
            "3000",
            "--documents",
            "3000",
            "--messages",
            "3000",
            "--mib",
            "9",
            "--rounds",
            "1",
            "--dir",
            place,
        ];
        let options = parse(line.map(str::to_owned)).unwrap().unwrap();
        let contest = run_with(&options, &mut load::in_this_process).unwrap();
        for (case, engines) in [
            ("topics-rate", "tidalite lmdb"),
            ("topics-first", "tidalite lmdb"),
            ("topics-commit", "tidalite lmdb"),
            ("topics-read", "tidalite lmdb"),
            ("topics-read-speed", "tidalite lmdb"),
            ("topics-max-rate", "tidalite lmdb"),
            ("topics-max-written", "tidalite lmdb"),
            ("load-load", "tidalite lmdb"),
            ("load-memory", "tidalite lmdb"),
            ("load-reopen-cold", "tidalite lmdb"),
            ("load-plus-plus-x", "tidalite lmdb"),
            ("load-plus-plus-x-pages", "tidalite"),
            (
                "layouts-overwrite",
                "tidalite nested-tables plain-table lmdb",
            ),
            ("layouts-get", "tidalite nested-tables plain-table lmdb"),
            (
                "layouts-a-b-plus-4",
                "tidalite nested-tables plain-table lmdb",
            ),
            (
                "layouts-all-rows",
                "tidalite nested-tables plain-table lmdb",
            ),
            ("layouts-bytes", "tidalite nested-tables plain-table lmdb"),
            ("window", "tidalite"),
            ("window-overlapping", "tidalite"),
            ("containers-write", "tidalite sqlite"),
            ("containers-write-json", "tidalite sqlite"),
            ("containers-bytes", "tidalite sqlite"),
            ("containers-blocks-cold", "tidalite sqlite sqlite-parsed"),
            ("containers-fields", "tidalite sqlite"),
            ("containers-filter", "tidalite sqlite"),
            ("containers-random-cold", "tidalite sqlite sqlite-parsed"),
            ("containers-latest", "tidalite sqlite"),
            ("containers-hours", "tidalite sqlite"),
            ("containers-hours-documents", "tidalite sqlite"),
            ("containers-one-write", "tidalite sqlite"),
            ("containers-one-blocks", "tidalite sqlite sqlite-parsed"),
            ("containers-one-random", "tidalite sqlite sqlite-parsed"),
            ("containers-one-hours-cold", "tidalite sqlite"),
            ("queue-push", "tidalite lmdb sqlite"),
            ("queue-lease-ack", "tidalite lmdb sqlite"),
            ("queue-one-lease-ack", "tidalite lmdb sqlite"),
            ("queue-scattered-lease-ack", "tidalite"),
            ("queue-keys-lease-ack", "tidalite"),
            ("queue-groups-lease-ack", "tidalite"),
            ("object-in", "tidalite plain-file"),
            ("object-out", "tidalite plain-file"),
            ("object-ranges", "tidalite plain-file"),
            ("object-eighth-in", "tidalite plain-file"),
            ("object-hash", "tidalite"),
        ] {
            for engine in engines.split(' ') {
                assert!(contest.median(case, engine).is_some(), "{case} {engine}");
            }
        }
        let aims = aims(&contest, &options);
        assert!(!aims.contains("not measured"), "{aims}");
        assert!(options.all_known().is_ok());
    }

    #[test]
    fn parts_and_peers_can_be_chosen() {
        let dir = os::TempDir::new("flespi").unwrap();
        let place = dir.path().to_str().unwrap();
        let line = [
            "flespi",
            "--only",
            "queue",
            "--peers",
            "sqlite",
            "--messages",
            "100",
            "--rounds",
            "1",
            "--dir",
            place,
        ];
        let options = parse(line.map(str::to_owned)).unwrap().unwrap();
        let contest = run_with(&options, &mut load::in_this_process).unwrap();
        assert!(contest.median("queue-push", "sqlite").is_some());
        assert!(contest.median("queue-push", "lmdb").is_none());
        assert!(contest.median("object-in", "tidalite").is_none());
        assert!(options.all_known().is_ok());
    }
}
