//! The table of medians, and the comparison of the results.

use crate::cells::median;
use crate::options::Options;
use crate::tsbs::queries::Query;
use std::error::Error;

/// The times of a query, and its results.
pub(crate) struct Timed {
    pub(crate) name: String,
    about: String,
    /// Milliseconds of each round.
    times: Vec<f64>,
    /// Number of rows and sum of all numbers of each round.
    found: Vec<(usize, f64)>,
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

/// The measured peers, and the errors of failed ones.
#[derive(Default)]
pub(crate) struct Peers {
    pub(crate) measured: Vec<Peer>,
    pub(crate) failures: Vec<String>,
}

impl Timed {
    pub(crate) fn new(query: &Query, times: Vec<f64>, found: Vec<(usize, f64)>) -> Self {
        Self {
            name: query.name.to_owned(),
            about: query.about.to_owned(),
            times,
            found,
        }
    }

    /// Adds a round.
    pub(crate) fn push(&mut self, time: f64, found: (usize, f64)) {
        self.times.push(time);
        self.found.push(found);
    }

    fn median(&self) -> f64 {
        median(&self.times)
    }

    /// Whether a peer found the same in all rounds that it ran.
    pub(crate) fn agrees(&self, other: &Self) -> bool {
        let close =
            |one: f64, other: f64| (one - other).abs() <= 1e-9 * (one.abs() + other.abs() + 1.0);
        let mut rounds = self.found.iter().zip(&other.found);
        !other.found.is_empty()
            && rounds.all(|(own, other)| own.0 == other.0 && close(own.1, other.1))
    }
}

/// Prints medians in milliseconds, and the ratio of the best peer's to ours.
///
/// # Errors
/// A peer failed or found something else.
pub(crate) fn print(options: &Options, own: &[Timed], peers: &Peers) -> Result<(), Box<dyn Error>> {
    let (hosts, hours, rounds) = (options.hosts, options.hours, options.rounds);
    println!(
        "\n{hosts} hosts, {hours} hours, ten integers every 10 s; medians of {rounds} rounds in ms\n"
    );
    let measured = &peers.measured;
    let names: Vec<&str> = measured.iter().map(|peer| peer.name.as_str()).collect();
    let peers_head: String = names.iter().map(|name| format!(" {name} |")).collect();
    println!("| query | description | ours |{peers_head} best peer / ours |");
    println!("|---|---|---|{}---|", "---|".repeat(names.len()));
    let mut differences = peers.failures.clone();
    for query in own {
        let mut line = format!(
            "| {} | {} | {:.3} |",
            query.name,
            query.about,
            query.median()
        );
        let mut best = f64::INFINITY;
        for peer in measured {
            let Some(other) = peer.timed.iter().find(|other| other.name == query.name) else {
                line.push_str(" |");
                continue;
            };
            best = best.min(other.median());
            line.push_str(&format!(" {:.3} |", other.median()));
            if !query.agrees(other) {
                differences.push(format!(
                    "{}: {} found something else",
                    query.name, peer.name
                ));
            }
        }
        let ratio = if best.is_finite() {
            format!("{:.1}", best / query.median())
        } else {
            String::new()
        };
        println!("{line} {ratio} |");
    }
    match differences.is_empty() {
        true => Ok(()),
        false => Err(differences.join("\n").into()),
    }
}
