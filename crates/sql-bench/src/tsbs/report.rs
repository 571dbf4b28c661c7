//! The table of medians, and the comparison of the results.

use crate::cells::{median, two_digits};
use crate::options::Options;
use crate::tsbs::expected::{Expected, Summary};
use crate::tsbs::queries::Query;
use std::error::Error;

/// The times of a query, and its results.
pub(crate) struct Timed {
    /// The name of the query.
    pub(crate) name: String,
    /// Milliseconds of each round.
    times: Vec<f64>,
    pub(crate) found: Vec<Summary>,
}

/// The measurement of a query in Tidalite.
pub(crate) struct Own {
    /// The query is planned in every round.
    pub(crate) planned: Timed,
    /// Every round repeats the first one, so its plan is reused.
    pub(crate) kept: Timed,
}

/// The measurements of a peer.
pub(crate) struct Peer {
    /// The engine and its version.
    pub(crate) name: String,
    /// Seconds until the rows were loaded and visible.
    pub(crate) seconds: f64,
    /// Bytes of the rows on disk.
    pub(crate) bytes: f64,
    pub(crate) timed: Vec<Timed>,
}

/// The peers that were measured, and the errors of the others.
#[derive(Default)]
pub(crate) struct Peers {
    pub(crate) measured: Vec<Peer>,
    pub(crate) failures: Vec<String>,
}

impl Timed {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            times: Vec::new(),
            found: Vec::new(),
        }
    }

    /// Adds a round.
    pub(crate) fn push(&mut self, time: f64, found: Summary) {
        self.times.push(time);
        self.found.push(found);
    }

    fn median(&self) -> f64 {
        median(&self.times)
    }

    /// The median, with a mark if the query was slow or its results are wrong.
    fn shown(&self, options: &Options, is_right: bool) -> String {
        let mut shown = format!("{:.3}", self.median());
        if self.times.len() < options.rounds {
            shown.push_str(" †");
        }
        if !is_right {
            shown.push_str(" ≠");
        }
        shown
    }
}

/// Prints medians in milliseconds, and the ratio of the best peer's median to Tidalite's.
///
/// # Errors
/// A peer failed, or an engine found a wrong result.
pub(crate) fn print(
    options: &Options,
    (queries, expected): (&[Query], &[Expected]),
    own: &[Own],
    peers: &Peers,
) -> Result<(), Box<dyn Error>> {
    let (hosts, hours, rounds) = (options.hosts, options.hours, options.rounds);
    println!(
        "\n{hosts} hosts, {hours} hours, ten integers every 10 s; medians of {rounds} rounds in ms"
    );
    println!(
        "† a round takes more than a second and is the only one; ≠ a wrong result, and not a best peer\n"
    );
    let measured = &peers.measured;
    let names: String = measured
        .iter()
        .map(|peer| format!(" {} |", peer.name))
        .collect();
    println!("| query | description | ours | ours, plan kept |{names} best peer / ours |");
    println!("|---|---|---:|---:|{}---:|", "---:|".repeat(measured.len()));
    let mut problems = peers.failures.clone();
    for ((query, expected), own) in queries.iter().zip(expected).zip(own) {
        let (name, planned, kept) = (query.name, &own.planned, &own.kept);
        let is_right = [
            expected.agrees(&planned.found),
            kept.found.iter().all(|first| expected.agrees(&[*first])),
        ];
        if is_right != [true; 2] {
            problems.push(format!("{name}: ours found a wrong result"));
        }
        let planned_shown = planned.shown(options, is_right[0]);
        let kept_shown = kept.shown(options, is_right[1]);
        let mut line = format!(
            "| {name} | {} | {planned_shown} | {kept_shown} |",
            query.about
        );
        let mut best = f64::INFINITY;
        for peer in measured {
            let Some(timed) = peer.timed.iter().find(|timed| timed.name == name) else {
                line.push_str(" |");
                continue;
            };
            let is_right = expected.agrees(&timed.found);
            line.push_str(&format!(" {} |", timed.shown(options, is_right)));
            match is_right {
                true => best = best.min(timed.median()),
                false => problems.push(format!("{name}: {} found a wrong result", peer.name)),
            }
        }
        let ratio = match best.is_finite() {
            true => two_digits(best / planned.median()),
            false => String::new(),
        };
        println!("{line} {ratio} |");
    }
    match problems.is_empty() {
        true => Ok(()),
        false => Err(problems.join("\n").into()),
    }
}
