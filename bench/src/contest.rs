//! A contest: many engines run the same cases. This file holds the participants, their order in each round, and their
//! results.
//!
//! A JSON line describes one (case, mode of Tidalite, peer), with the fields of `harlinn` and the costs of Tidalite and
//! of the peer. The printed table has one row for each (case, engine).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::engine::{Kind, PEERS, Result};
use crate::meter::Sample;
use crate::report::{median, short, spread};

/// The participating engines and their results.
pub(crate) struct Contest {
    suite: &'static str,
    kinds: Vec<Kind>,
    cases: Vec<Case>,
    /// The answer in each case and round, with the engine that gave it first.
    answers: BTreeMap<(String, u64), (&'static str, u64)>,
}

struct Case {
    name: String,
    unit: &'static str,
    less_is_better: bool,
    /// For each engine, one sample per round.
    sides: Vec<(Kind, Vec<Sample>)>,
}

impl Contest {
    /// Creates a contest of these engines.
    pub(crate) fn among(suite: &'static str, kinds: &[Kind]) -> Self {
        Self {
            suite,
            kinds: kinds.to_vec(),
            cases: Vec::new(),
            answers: BTreeMap::new(),
        }
    }

    /// Creates a contest of Tidalite and a single peer, unless `peers` excludes that peer. An engine on LMDB counts as
    /// `lmdb`.
    pub(crate) fn beside(
        suite: &'static str,
        ours: Kind,
        peer: Kind,
        peers: &[String],
    ) -> Result<Self> {
        let family = peer.name.split('-').next().unwrap_or_default();
        Ok(match takes_part(family, peers)? {
            true => Self::among(suite, &[ours, peer]),
            false => Self::among(suite, &[ours]),
        })
    }

    /// Creates a contest of Tidalite in these modes and all peers, or only the named peers; the name `none` selects no
    /// peer.
    pub(crate) fn new(suite: &'static str, ours: &[Kind], peers: &[String]) -> Result<Self> {
        expect_peers(peers)?;
        let chosen = |peer: &Kind| peers.is_empty() || peers.iter().any(|name| name == peer.name);
        let peers = PEERS.iter().copied().filter(chosen);
        let kinds: Vec<Kind> = ours.iter().copied().chain(peers).collect();
        Ok(Self::among(suite, &kinds))
    }

    /// The engines in the order of this round. The order rotates, so that each engine comes first in some round.
    pub(crate) fn order(&self, round: usize) -> Vec<Kind> {
        let mut order = self.kinds.clone();
        order.rotate_left(round % self.kinds.len().max(1));
        order
    }

    /// Adds a sample: a rate, or with `less_is_better` a size or a time.
    pub(crate) fn add(
        &mut self,
        case: &str,
        unit: &'static str,
        less_is_better: bool,
        kind: Kind,
        sample: Sample,
    ) {
        eprintln!(
            "  {case:<18} {:<16} {:>12} {unit}",
            kind.name,
            short(sample.value)
        );
        let at = match self.cases.iter().position(|known| known.name == case) {
            Some(at) => at,
            None => {
                self.cases.push(Case {
                    name: case.to_owned(),
                    unit,
                    less_is_better,
                    sides: Vec::new(),
                });
                self.cases.len() - 1
            }
        };
        let sides = &mut self.cases[at].sides;
        match sides.iter_mut().find(|(known, _)| known.name == kind.name) {
            Some((_, samples)) => samples.push(sample),
            None => sides.push((kind, vec![sample])),
        }
    }

    /// Compares the answer of an engine with the answer of the first engine.
    ///
    /// # Errors
    /// If the answers differ: one of them is wrong, so the speed of that engine is meaningless.
    pub(crate) fn check(&mut self, case: &str, step: u64, kind: Kind, answer: u64) -> Result<()> {
        let key = (case.to_owned(), step);
        let (first, expected) = *self.answers.entry(key).or_insert((kind.name, answer));
        if answer == expected {
            return Ok(());
        }
        let (suite, name) = (self.suite, kind.name);
        Err(format!("{suite} {case}: {name} answers {answer}, {first} {expected}").into())
    }

    /// The median of an engine in a case; `None` if the engine did not take part.
    pub(crate) fn median(&self, case: &str, engine: &str) -> Option<f64> {
        let case = self.cases.iter().find(|known| known.name == case)?;
        let (_, samples) = case.sides.iter().find(|(kind, _)| kind.name == engine)?;
        let values: Vec<f64> = samples.iter().map(|sample| sample.value).collect();
        Some(median(&values))
    }

    /// Formats the results as one JSON object for each (case, mode of Tidalite, peer).
    pub(crate) fn json(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for case in &self.cases {
            let (ours, peers): (Vec<_>, Vec<_>) =
                case.sides.iter().partition(|(kind, _)| kind.ours);
            for (mode, our) in &ours {
                for (peer, their) in &peers {
                    lines.push(self.line(case, (mode.name, our), (peer.name, their)));
                }
                if peers.is_empty() {
                    lines.push(self.line(case, (mode.name, our), ("", &Vec::new())));
                }
            }
            if ours.is_empty() {
                // No mode of Tidalite took part in the case, so it is a reference measurement, such as of the bare
                // disk.
                for (peer, their) in &peers {
                    lines.push(self.line(case, (peer.name, their), ("", &Vec::new())));
                }
            }
        }
        lines
    }

    fn line(&self, case: &Case, ours: (&str, &[Sample]), peer: (&str, &[Sample])) -> String {
        let (suite, name, unit) = (self.suite, &case.name, case.unit);
        let values = |samples: &[Sample]| -> Vec<f64> { samples.iter().map(|s| s.value).collect() };
        let (our, their) = (values(ours.1), values(peer.1));
        let mut text = format!(
            r#"{{"suite":"{suite}","case":"{name}","unit":"{unit}","mode":"{}","ours":{:.4}"#,
            ours.0,
            median(&our)
        );
        if !their.is_empty() {
            // Writing to a `String` cannot fail, so the result is ignored.
            let _ = write!(
                text,
                r#","peer":"{}","theirs":{:.4},"ratio":{:.4},"ours_spread":{:.4},"theirs_spread":{:.4},"theirs_cost":{}"#,
                peer.0,
                median(&their),
                ratio(&our, &their, case.less_is_better),
                spread(&our),
                spread(&their),
                cost(peer.1),
            );
        }
        let _ = write!(text, r#","ours_cost":{}}}"#, cost(ours.1));
        text
    }

    /// Formats the results as a table in Markdown. The ratio compares the first mode of Tidalite with each peer.
    pub(crate) fn table(&self) -> String {
        let mut text = String::from(
            "| case | engine | value | unit | ratio | spread | p50 us | p99 us | p99.9 us | max us | CPU s | MB handed over | calls | MB to disk | syncs | file MB |\n\
             |---|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
        );
        for case in &self.cases {
            let first = case.sides.iter().find(|(kind, _)| kind.ours);
            for (kind, samples) in &case.sides {
                let values: Vec<f64> = samples.iter().map(|sample| sample.value).collect();
                let ratio = match first {
                    Some((_, ours)) if !kind.ours => {
                        let ours: Vec<f64> = ours.iter().map(|sample| sample.value).collect();
                        short(ratio(&ours, &values, case.less_is_better))
                    }
                    _ => String::new(),
                };
                let of = |field: &dyn Fn(&Sample) -> f64| {
                    let all: Vec<f64> = samples.iter().map(field).collect();
                    match median(&all) {
                        0.0 => String::new(),
                        value => short(value),
                    }
                };
                let _ = writeln!(
                    text,
                    "| {} | {} | {} | {} | {ratio} | {:.0} % | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                    case.name,
                    kind.name,
                    short(median(&values)),
                    case.unit,
                    spread(&values) * 100.0,
                    of(&|s| s.latency.p50),
                    of(&|s| s.latency.p99),
                    of(&|s| s.latency.p999),
                    of(&|s| s.latency.max),
                    of(&|s| s.cpu_seconds),
                    of(&|s| s.written.handed as f64 / 1e6),
                    of(&|s| s.written.calls as f64),
                    of(&|s| s.written.disk as f64 / 1e6),
                    of(&|s| s.syncs as f64),
                    of(&|s| s.file_bytes as f64 / 1e6),
                );
            }
        }
        text
    }
}

/// How many times better Tidalite is than the peer.
fn ratio(ours: &[f64], theirs: &[f64], less_is_better: bool) -> f64 {
    let ratio = median(ours) / median(theirs);
    if less_is_better { 1.0 / ratio } else { ratio }
}

/// True if `peers` includes the single peer of a suite.
pub(crate) fn takes_part(peer: &str, peers: &[String]) -> Result<bool> {
    expect_peers(peers)?;
    Ok(peers.is_empty() || peers.iter().any(|name| name == peer))
}

/// Returns an error if a name is not the name of a peer.
fn expect_peers(peers: &[String]) -> Result<()> {
    let known = |name: &&String| *name == "none" || PEERS.iter().any(|peer| peer.name == **name);
    let Some(name) = peers.iter().find(|name| !known(name)) else {
        return Ok(());
    };
    let known: Vec<_> = PEERS.iter().map(|peer| peer.name).collect();
    Err(format!("there is no peer {name}: {}", known.join(", ")).into())
}

/// Formats the costs of one engine: medians over the rounds, but the maximum for the longest operation.
fn cost(samples: &[Sample]) -> String {
    let of =
        |field: &dyn Fn(&Sample) -> f64| median(&samples.iter().map(field).collect::<Vec<f64>>());
    let max = samples.iter().map(|s| s.latency.max).fold(0.0, f64::max);
    format!(
        r#"{{"p50_us":{:.2},"p99_us":{:.2},"p999_us":{:.2},"max_us":{max:.2},"cpu_s":{:.3},"bytes_handed":{:.0},"write_calls":{:.0},"bytes_dirtied":{:.0},"bytes_disk":{:.0},"syncs":{:.0},"file_bytes":{:.0}}}"#,
        of(&|s| s.latency.p50),
        of(&|s| s.latency.p99),
        of(&|s| s.latency.p999),
        of(&|s| s.cpu_seconds),
        of(&|s| s.written.handed as f64),
        of(&|s| s.written.calls as f64),
        of(&|s| s.written.dirtied as f64),
        of(&|s| s.written.disk as f64),
        of(&|s| s.syncs as f64),
        of(&|s| s.file_bytes as f64),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{LMDB, TIDALITE};

    #[test]
    fn a_line_for_each_peer_and_a_row_for_each_engine() {
        let peers = ["lmdb".to_owned(), "redb".to_owned()];
        let mut contest = Contest::new("commit", &[TIDALITE], &peers).unwrap();
        let names = |round| -> Vec<_> { contest.order(round).iter().map(|k| k.name).collect() };
        assert_eq!(names(0), ["tidalite", "lmdb", "redb"]);
        assert_eq!(names(1), ["lmdb", "redb", "tidalite"]);
        for kind in contest.order(0) {
            let value = if kind.ours { 30.0 } else { 20.0 };
            contest.add("1-row", "commits/s", false, kind, Sample::of(value));
        }
        let json = contest.json();
        assert_eq!(json.len(), 2);
        assert!(
            json[0].contains(r#""peer":"lmdb","theirs":20.0000,"ratio":1.5000"#),
            "{json:?}"
        );
        assert_eq!(contest.table().lines().count(), 2 + 3);
        assert_eq!(contest.median("1-row", "tidalite"), Some(30.0));
        assert_eq!(contest.median("1-row", "fjall"), None);
    }

    #[test]
    fn one_peer_is_there_unless_others_are_named() {
        let of = |peers: &[&str]| -> Vec<_> {
            let peers: Vec<_> = peers.iter().copied().map(str::to_owned).collect();
            let contest = Contest::beside("ticks", TIDALITE, LMDB, &peers).unwrap();
            contest.order(0).iter().map(|kind| kind.name).collect()
        };
        assert_eq!(of(&[]), ["tidalite", "lmdb"]);
        assert_eq!(of(&["sqlite", "lmdb"]), ["tidalite", "lmdb"]);
        assert_eq!(of(&["none"]), ["tidalite"]);
        let wrong = ["lmbd".to_owned()];
        assert!(Contest::beside("ticks", TIDALITE, LMDB, &wrong).is_err());
    }

    #[test]
    fn two_answers_are_an_error() {
        let mut contest = Contest::new("mdbx", &[TIDALITE], &[]).unwrap();
        assert!(contest.check("get", 0, TIDALITE, 1).is_ok());
        assert!(contest.check("get", 0, LMDB, 1).is_ok());
        assert!(contest.check("get", 0, LMDB, 2).is_err());
        assert!(contest.check("get", 1, LMDB, 2).is_ok());
        assert!(Contest::new("mdbx", &[], &["nobody".to_owned()]).is_err());
    }
}
