//! Deliberate bugs of the database, and how many seeds the crash search needs to find each.

use crate::crash::{Plan, Tally, examine};
use std::fmt;
use tidalite_delta::bugs;
use tidalite_pager::seeded::{Bug, LAZY_BUGS};
use tidalite_testkit::{Deliberate, Mistake};

/// Maximum number of seeds within which each deliberate bug must be found; the test suite examines as many.
pub const SEEDS_MAX: u64 = 64;

/// Result of the search for a deliberate bug.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Name of the deliberate bug.
    pub bug: String,
    /// The seed that found the bug, the number of seeds tried before it, and the failure; `None` if the bug was not
    /// found.
    pub found: Option<(u64, u64, String)>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bug = &self.bug;
        match &self.found {
            Some((seed, before, seen)) => write!(
                f,
                "{bug}: found by seed {seed}, run {} (again: tidalite-torture crash --bug {bug} --seed {seed} --states 1 --threads 1): {seen}",
                before + 1
            ),
            None => write!(f, "{bug}: not found within {SEEDS_MAX} seeds"),
        }
    }
}

/// A deliberate bug: its name and the function that turns it on or off.
pub type Switch = (String, Box<dyn Fn(bool)>);

fn of(bug: Deliberate) -> Switch {
    (bug.to_string(), Box::new(move |on| bug.switch(on)))
}

fn of_pager(bug: Bug) -> Switch {
    of(Deliberate::Pager(bug))
}

fn of_delta(bug: bugs::Bug) -> Switch {
    let switch = move |on: bool| bugs::enable(on.then_some(bug));
    (format!("{bug:?}"), Box::new(switch))
}

/// The deliberate bugs that the crash search must find. Each function enables or disables a bug for the calling thread.
#[must_use]
pub fn switches() -> Vec<Switch> {
    let commits = Deliberate::of_sequential_commits().into_iter();
    let mut switches: Vec<Switch> = commits.map(of).collect();
    switches.push(of_pager(Bug::UnsyncedMetaUnverified));
    switches.extend(bugs::BUGS.into_iter().map(of_delta));
    switches
}

/// The deliberate bug with this name, from [`switches`] or from the bugs that only other searches find.
///
/// # Errors
/// If no bug has this name.
pub fn switch(name: &str) -> Result<Switch, String> {
    let others = [Bug::ForgetReaders, Bug::SkipLargeSync];
    let others = LAZY_BUGS.into_iter().chain(others).map(of_pager);
    let mut known = switches();
    known.extend(others);
    known.push(of(Deliberate::Storage(Mistake::LogUnsynced)));
    let names: Vec<String> = known.iter().map(|(name, _)| name.clone()).collect();
    known
        .into_iter()
        .find(|(known, _)| known == name)
        .ok_or_else(|| format!("no bug is called {name}: {}", names.join(", ")))
}

/// Enables the bug with this name for the calling thread.
///
/// # Errors
/// If no bug has this name.
pub fn enable_by_name(name: &str) -> Result<(), String> {
    let (_, switch) = switch(name)?;
    switch(true);
    Ok(())
}

/// Searches for a deliberate bug with the seeds from `first` on, each with its plan in the test suite.
#[must_use]
pub fn find((bug, switch): &Switch, first: u64) -> Finding {
    let plan = |seed| Plan::of_seed(seed, Plan::default().page_size);
    // Compaction begins only when the delta has sixteen runs. Seeds with short workloads never have that many, so they
    // are skipped for the bug in compaction.
    let merges = *bug == format!("{:?}", bugs::Bug::CompactionForgetsWatermark);
    let tried = (first..first + SEEDS_MAX).filter(|&seed| !merges || Plan::is_long(seed));
    switch(true);
    let found = tried.enumerate().find_map(|(before, seed)| {
        // The bug may also make an assertion fail, so a panic counts as a failure found.
        let result = std::panic::catch_unwind(|| examine(seed, &plan(seed), &Tally::default()));
        let seen = match result {
            Ok(Ok(())) => return None,
            Ok(Err(seen)) => seen.lines().next().unwrap_or("").to_owned(),
            Err(_) => "a failed assertion".to_owned(),
        };
        Some((seed, before as u64, seen))
    });
    switch(false);
    Finding {
        bug: bug.clone(),
        found,
    }
}
