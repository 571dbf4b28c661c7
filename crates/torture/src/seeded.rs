//! Deliberate bugs, and how many seeds it takes to find each.

use crate::crash::{Plan, Tally, examine};
use tidalite_pager::seeded::{BUGS, Bug, enable};
use tidalite_runs::set_merge_forgets_watermark;

/// Seeds within which a deliberate bug must show.
pub const SEEDS_MAX: u64 = 60;

const MERGE: &str = "MergeForgetsWatermark";

/// How a deliberate bug was found.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Which bug.
    pub bug: String,
    /// Seeds it took; `None` when it was not found.
    pub seeds: Option<u64>,
    /// What was seen.
    pub seen: String,
}

/// A deliberate bug: its name, and its switch.
pub type Switch = (String, Box<dyn Fn(bool)>);

/// Every deliberate bug. The switches act on the calling thread.
#[must_use]
pub fn switches() -> Vec<Switch> {
    let mut switches: Vec<Switch> = Vec::new();
    for bug in BUGS {
        let switch = move |on: bool| enable(on.then_some(bug));
        switches.push((format!("{bug:?}"), Box::new(switch)));
    }
    let merge: Switch = (
        "MergeForgetsWatermark".to_owned(),
        Box::new(set_merge_forgets_watermark),
    );
    switches.push(merge);
    switches
}

/// Turns the pager's bug of this name on for the calling thread.
///
/// # Errors
/// That no bug has this name.
pub fn enable_by_name(name: &str) -> Result<(), String> {
    let mut known = BUGS.into_iter().chain([Bug::ForgetReaders]);
    let bug = known.find(|bug| format!("{bug:?}") == name);
    enable(Some(bug.ok_or_else(|| format!("no bug is called {name}"))?));
    Ok(())
}

/// Looks for a bug with seed after seed.
#[must_use]
pub fn find((bug, switch): &Switch) -> Finding {
    // Merges begin when sixteen runs are there: that bug is looked for in long runs only.
    let plan = |seed| match bug.as_str() {
        MERGE => Plan::default().long(),
        _ => Plan::of_seed(seed, Plan::default().page_size),
    };
    switch(true);
    let found = (0..SEEDS_MAX).find_map(|seed| {
        // A bug may also show as a failed assertion.
        let result = std::panic::catch_unwind(|| examine(seed, &plan(seed), &Tally::default()));
        let seen = match result {
            Ok(Ok(())) => return None,
            Ok(Err(seen)) => seen,
            Err(_) => "a failed assertion".to_owned(),
        };
        Some((seed + 1, seen))
    });
    switch(false);
    let seen = found
        .as_ref()
        .map(|(_, seen)| seen.lines().next().unwrap_or("").to_owned());
    Finding {
        bug: bug.clone(),
        seeds: found.map(|(seeds, _)| seeds),
        seen: seen.unwrap_or_default(),
    }
}
