//! The outcomes of an engine, their comparison, and the table.

use crate::cells::{Cell, difference, median};
use crate::options::Options;
use std::error::Error;

/// The outcomes of all queries in an engine.
pub(crate) struct Engine {
    pub(crate) name: &'static str,
    pub(crate) outcomes: Vec<Outcome>,
}

/// The outcome of a query.
pub(crate) enum Outcome {
    Found {
        /// Milliseconds of each round.
        times: Vec<f64>,
        rows: Vec<Vec<Cell>>,
    },
    Failed(String),
    /// The query did not finish in time.
    Slow,
}

/// Prints medians in milliseconds. All engines that completed a query must have found the same rows as the first one.
///
/// # Errors
/// A query failed, or two engines found different rows. Failures of peers are included.
pub(crate) fn print(
    options: &Options,
    engines: &[Engine],
    failures: Vec<String>,
) -> Result<(), Box<dyn Error>> {
    println!("\nMedians of {} rounds in ms", options.tpch_rounds);
    println!("† a round takes more than five seconds and is the only one\n");
    let names: String = engines
        .iter()
        .map(|one| format!(" {} |", one.name))
        .collect();
    println!("| query | rows |{names}");
    println!("|---|---:|{}", "---:|".repeat(engines.len()));
    let mut problems = failures;
    let mut totals = vec![0.0; engines.len()];
    let queries = engines.first().map_or(0, |engine| engine.outcomes.len());
    for at in 0..queries {
        let query = at + 1;
        let expected = engines
            .iter()
            .find_map(|engine| match &engine.outcomes[at] {
                Outcome::Found { rows, .. } => Some(rows),
                _ => None,
            });
        let rows = expected.map_or(String::new(), |rows| rows.len().to_string());
        let mut line = format!("| {query} | {rows} |");
        for (engine, total) in engines.iter().zip(&mut totals) {
            let name = engine.name;
            match &engine.outcomes[at] {
                Outcome::Found { times, rows } => {
                    let time = median(times);
                    *total += time;
                    let is_slow = times.len() < options.tpch_rounds;
                    let mark = if is_slow { " †" } else { "" };
                    line.push_str(&format!(" {time:.1}{mark} |"));
                    if let Some(found) = expected.and_then(|expected| difference(rows, expected)) {
                        problems.push(format!("query {query}, {name}: {found}"));
                    }
                }
                Outcome::Failed(problem) => {
                    *total = f64::NAN;
                    line.push_str(" failed |");
                    problems.push(format!("query {query}, {name}: {problem}"));
                }
                Outcome::Slow => {
                    *total = f64::NAN;
                    line.push_str(" too slow |");
                }
            }
        }
        println!("{line}");
    }
    // If an engine has not completed all queries, it has no total.
    let total = |total: f64| match total.is_nan() {
        true => " |".to_owned(),
        false => format!(" {total:.0} |"),
    };
    let totals: String = totals.into_iter().map(total).collect();
    println!("| total | |{totals}");
    match problems.is_empty() {
        true => Ok(()),
        false => Err(problems.join("\n").into()),
    }
}
