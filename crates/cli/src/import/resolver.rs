//! Infers from the order of the rows which instant a repeated local time stands for.
//!
//! When clocks are set back, the local times of an hour occur twice: each stands for two instants. The threads that
//! parse blocks cannot know which instant is meant, because that depends on the rows before and after; they record both
//! instants. The batches then pass in order through a [`Resolver`], which decides for each combination of tags
//! separately:
//!
//! 1. A *run* is a sequence of consecutive rows with repeated times. Most rows around it ascend, or most descend;
//!    otherwise the order is not conclusive and all rows of the run are rejected.
//! 2. In ascending rows, the second pass of the hour begins where a time is not after the time before it. If that
//!    happens more than once, the rows of the run are rejected. Descending rows are treated in the same way in reverse.
//! 3. If it does not happen, only one pass may be present. Every place where the second pass could begin is tried
//!    (before the run, between two of its rows, after it). The best place is the one at which most steps are as long as
//!    the step before the run; among several, the one whose longest step is shortest; among several, the last, which
//!    takes the earlier instants. Times that only the last rule decides are counted as guessed.
//!
//! Invariants:
//! 1. Batches are returned in order, and only after each of their rows is resolved or rejected.
//! 2. At most [`WAITING_MAX`] batches wait for the end of a run. Beyond that, the rows of the runs so far, and all
//!    later rows of these runs, are resolved by rule 2.

use crate::exit::{Failure, Outcome};
use crate::import::batch::Batch;
use crate::import::local_times::Twofold;
use crate::import::readers::Batches;
use crate::time::Nanos;
use std::collections::{HashMap, VecDeque};

/// Maximum number of batches that wait: 32 MiB of input, which is about an hour of 200 rows per second.
const WAITING_MAX: usize = 128;

/// At most one in `STEPS_PER_EXCEPTION` steps may go against the direction of the others: an input may consist of
/// several files, one after the other.
const STEPS_PER_EXCEPTION: u64 = 4;

/// The decision about the instant of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Earlier,
    Later,
    Refused,
}

/// A row of a run for which no instant was chosen yet.
#[derive(Clone, Copy, Debug)]
struct Pending {
    batch: u64,
    twofold: Twofold,
}

/// A run: consecutive rows with repeated local times, of one combination of tags.
#[derive(Debug)]
struct Run {
    pending: Vec<Pending>,
    /// Distance in nanoseconds between the two instants of each row.
    fold: Nanos,
    /// Time of the last row before the run; `step` is the time between that row and the row before it.
    before: Option<Nanos>,
    step: Option<Nanos>,
    /// The earlier instant of the newest row in the run.
    newest: Nanos,
    /// Set if rows had to be resolved before the run ended: the direction of the rows, and the number of times that
    /// were not after the time before them in that direction.
    forced: Option<(Option<Way>, u32)>,
}

/// Whether the times of most rows ascend or descend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

/// Number of ascending and of descending steps.
#[derive(Clone, Copy, Debug, Default)]
struct Steps {
    up: u64,
    down: u64,
}

impl Steps {
    fn count(&mut self, from: Nanos, to: Nanos) {
        self.up += u64::from(from < to);
        self.down += u64::from(to < from);
    }

    /// The direction of most steps; `None` if neither direction prevails.
    fn way(self) -> Option<Way> {
        if self.down * STEPS_PER_EXCEPTION <= self.up {
            Some(Way::Up)
        } else if self.up * STEPS_PER_EXCEPTION <= self.down {
            Some(Way::Down)
        } else {
            None
        }
    }
}

/// The state of the rows with one combination of tags.
#[derive(Debug, Default)]
struct Track {
    last: Option<Nanos>,
    step: Option<Nanos>,
    steps: Steps,
    run: Option<Run>,
}

/// Decisions on rows, each with whether it is only a guess.
type Decided = Vec<(Pending, Verdict, bool)>;

impl Track {
    /// Takes a row whose local time stands for a single instant.
    fn plain(&mut self, time: Nanos, decided: &mut Decided) {
        if self.run.is_some() {
            self.end_run(Some(time), decided);
        }
        if let Some(last) = self.last {
            self.steps.count(last, time);
            self.step = Some((time - last).abs());
        }
        self.last = Some(time);
    }

    fn twofold(&mut self, row: Pending, decided: &mut Decided) {
        let Twofold { earlier, later, .. } = row.twofold;
        let fold = later - earlier;
        let goes_on = |run: &Run| run.fold == fold && (run.newest - earlier).abs() < fold;
        if self.run.as_ref().is_some_and(|run| !goes_on(run)) {
            self.end_run(Some(earlier), decided);
        }
        let run = self.run.get_or_insert_with(|| Run {
            pending: Vec::new(),
            fold,
            before: self.last,
            step: self.step,
            newest: earlier,
            forced: None,
        });
        run.pending.push(row);
        if run.forced.is_some() {
            self.force(decided);
        } else {
            run.newest = earlier;
        }
    }

    /// Resolves the rows of a run before the end of the run is known, because too many batches wait.
    fn force(&mut self, decided: &mut Decided) {
        let Some(run) = &mut self.run else { return };
        let (way, mut turns) = match run.forced {
            Some(forced) => forced,
            None => (run.way(self.steps, None), 0),
        };
        let mut newest = run.forced.map(|_| run.newest);
        for row in run.pending.drain(..) {
            let time = row.twofold.earlier;
            let turned = |newest| match way {
                Some(Way::Down) => time >= newest,
                _ => time <= newest,
            };
            turns += u32::from(newest.is_some_and(turned));
            newest = Some(time);
            let verdict = match (way, turns) {
                (Some(Way::Up), 0) | (Some(Way::Down), 1) => Verdict::Earlier,
                (Some(Way::Up), 1) | (Some(Way::Down), 0) => Verdict::Later,
                _ => Verdict::Refused,
            };
            self.last = taken(row.twofold, verdict).or(self.last);
            decided.push((row, verdict, false));
        }
        run.newest = newest.unwrap_or(run.newest);
        run.forced = Some((way, turns));
    }

    /// Resolves the rows of the current run, which ends before a row of the time `next`, or with the input (`None`).
    fn end_run(&mut self, next: Option<Nanos>, decided: &mut Decided) {
        let Some(run) = self.run.take() else { return };
        let way = run.way(self.steps, next);
        let (verdicts, guessed) = run.verdicts(way, next);
        for (row, verdict) in run.pending.iter().zip(verdicts) {
            self.last = taken(row.twofold, verdict).or(self.last);
            decided.push((*row, verdict, guessed));
        }
    }
}

fn taken(row: Twofold, verdict: Verdict) -> Option<Nanos> {
    match verdict {
        Verdict::Earlier => Some(row.earlier),
        Verdict::Later => Some(row.later),
        Verdict::Refused => None,
    }
}

impl Run {
    /// The direction of the rows around the run; the rows of the run itself count only if there are no others.
    fn way(&self, steps: Steps, next: Option<Nanos>) -> Option<Way> {
        let (mut around, mut within) = (steps, Steps::default());
        if let (Some(before), Some(first)) = (self.before, self.pending.first()) {
            around.count(before, first.twofold.earlier);
        }
        if let (Some(last), Some(next)) = (self.pending.last(), next) {
            around.count(last.twofold.earlier, next);
        }
        if around.up + around.down > 0 {
            return around.way();
        }
        for pair in self.pending.windows(2) {
            within.count(pair[0].twofold.earlier, pair[1].twofold.earlier);
        }
        Some(match within.up >= within.down {
            true => Way::Up,
            false => Way::Down,
        })
    }

    /// The decision for each row of the run, and whether the decisions are only a guess.
    fn verdicts(&self, way: Option<Way>, next: Option<Nanos>) -> (Vec<Verdict>, bool) {
        let mut times: Vec<Nanos> = self.pending.iter().map(|row| row.twofold.earlier).collect();
        let count = times.len();
        let (mut before, mut behind) = (self.before, next);
        match way {
            _ if count == 0 => return (Vec::new(), false),
            None => return (vec![Verdict::Refused; count], false),
            Some(Way::Up) => {}
            Some(Way::Down) => {
                times.reverse();
                (before, behind) = (behind, before);
            }
        }
        // A row next to the run that is out of order does not show the length of the steps, so it is ignored.
        before = before.filter(|before| *before < times[0]);
        behind = behind.filter(|behind| *behind > times[count - 1]);
        let turns = times.windows(2).filter(|pair| pair[1] <= pair[0]).count();
        let (earlier, guessed) = match turns {
            0 => self.likely_turn(&times, before, behind),
            1 => {
                let turn = times.windows(2).position(|pair| pair[1] <= pair[0]);
                (turn.map_or(count, |at| at + 1), false)
            }
            _ => return (vec![Verdict::Refused; count], false),
        };
        let mut verdicts = vec![Verdict::Earlier; earlier];
        verdicts.resize(count, Verdict::Later);
        if way == Some(Way::Down) {
            verdicts.reverse();
        }
        (verdicts, guessed)
    }

    /// The number of ascending times that belong to the first pass, and whether that number is only a guess.
    fn likely_turn(
        &self,
        times: &[Nanos],
        before: Option<Nanos>,
        behind: Option<Nanos>,
    ) -> (usize, bool) {
        // These are the steps if no second pass begins within the run. The second pass begins after the last row at the
        // latest, so that step is measured from the later instant.
        let mut steps = vec![before.map(|before| times[0] - before)];
        steps.extend(times.windows(2).map(|pair| Some(pair[1] - pair[0])));
        steps.push(behind.map(|behind| behind - times[times.len() - 1] - self.fold));
        let is_odd = |step: Nanos| usize::from(self.step.is_some_and(|usual| usual != step));
        let known = || steps.iter().flatten().copied();
        let odd: usize = known().map(is_odd).sum();
        let longest = known().max().unwrap_or(0);
        let rank = |turn: usize| match steps[turn] {
            None => (odd, longest),
            Some(step) => {
                let grown = step + self.fold;
                (odd - is_odd(step) + is_odd(grown), longest.max(grown))
            }
        };
        let (mut best, mut equals) = (times.len(), 0);
        for turn in (0..times.len()).rev() {
            match rank(turn).cmp(&rank(best)) {
                std::cmp::Ordering::Less => (best, equals) = (turn, 0),
                std::cmp::Ordering::Equal => equals += 1,
                std::cmp::Ordering::Greater => {}
            }
        }
        (best, equals > 0)
    }
}

/// Chooses the instants of repeated local times, for all batches of one input.
pub(crate) struct Resolver {
    /// Whether rows must be inspected: times with an offset are never repeated.
    is_local: bool,
    waiting_max: usize,
    keys: HashMap<Vec<String>, usize>,
    /// For each reader thread, the index in `tracks` for each of its numbers of combinations of tags.
    by_reader: Vec<Vec<usize>>,
    tracks: Vec<Track>,
    /// Indices of the tracks that have a run with unresolved rows.
    open: Vec<usize>,
    /// Batches that wait, each with the number of its unresolved rows.
    waiting: VecDeque<(Batch, usize)>,
    /// Number of the first batch in `waiting`, counted from the beginning of the input.
    first: u64,
    /// The result to return after all waiting batches: the end of the input, or an error.
    end: Option<Outcome>,
}

impl Resolver {
    /// Creates the resolver for one input. `is_local` is true if the input may have local times.
    pub(crate) fn new(is_local: bool) -> Self {
        Self {
            is_local,
            waiting_max: WAITING_MAX,
            keys: HashMap::new(),
            by_reader: Vec::new(),
            tracks: Vec::new(),
            open: Vec::new(),
            waiting: VecDeque::new(),
            first: 0,
            end: None,
        }
    }

    /// Returns the next batch whose rows are all resolved; `None` after the last.
    pub(crate) fn next(&mut self, batches: &mut Batches) -> Outcome<Option<Batch>> {
        self.next_of(|| batches.next())
    }

    fn next_of(
        &mut self,
        mut batches: impl FnMut() -> Outcome<Option<Batch>>,
    ) -> Outcome<Option<Batch>> {
        loop {
            if self.waiting.front().is_some_and(|(_, open)| *open == 0) {
                self.first += 1;
                return Ok(self.waiting.pop_front().map(|(batch, _)| batch));
            }
            if self.waiting.len() >= self.waiting_max {
                self.decide_all(Track::force);
                continue;
            }
            if let Some(end) = self.end.take() {
                if !self.waiting.is_empty() {
                    self.end = Some(end);
                    self.decide_all(|track, decided| track.end_run(None, decided));
                    continue;
                }
                return end.map(|()| None);
            }
            match batches() {
                Ok(Some(batch)) => {
                    if let Some(batch) = self.take(batch) {
                        return Ok(Some(batch));
                    }
                }
                Ok(None) => self.end = Some(Ok(())),
                Err(failure) => self.end = Some(Err::<(), Failure>(failure)),
            }
        }
    }

    /// Adds a batch to the waiting batches, or returns the batch at once if it has nothing to resolve.
    fn take(&mut self, batch: Batch) -> Option<Batch> {
        if self.by_reader.len() <= batch.reader {
            self.by_reader.resize_with(batch.reader + 1, Vec::new);
        }
        for tags in &batch.combinations {
            let next = self.keys.len();
            let key = *self.keys.entry(tags.clone()).or_insert(next);
            if key == next {
                self.tracks.push(Track::default());
            }
            self.by_reader[batch.reader].push(key);
        }
        let has_twofold = !batch.local.twofold.is_empty();
        if !self.is_local && !has_twofold && self.open.is_empty() {
            if self.waiting.is_empty() {
                self.first += 1;
                return Some(batch);
            }
            self.waiting.push_back((batch, 0));
            return None;
        }
        let number = self.first + self.waiting.len() as u64;
        let keys = &self.by_reader[batch.reader];
        let mut decided = Vec::new();
        let mut twofold = batch.local.twofold.iter().peekable();
        for (row, (time, tags)) in batch.times.iter().zip(&batch.tags).enumerate() {
            let key = keys[*tags as usize];
            let track = &mut self.tracks[key];
            match twofold.next_if(|twofold| twofold.row == row) {
                None => track.plain(*time, &mut decided),
                Some(twofold) => {
                    if track.run.as_ref().is_none_or(|run| run.pending.is_empty()) {
                        self.open.push(key);
                    }
                    let row = Pending {
                        batch: number,
                        twofold: *twofold,
                    };
                    track.twofold(row, &mut decided);
                }
            }
        }
        if !has_twofold && self.waiting.is_empty() && decided.is_empty() {
            self.first += 1;
            return Some(batch);
        }
        let open = batch.local.twofold.len();
        self.waiting.push_back((batch, open));
        self.apply(decided);
        self.drop_closed();
        None
    }

    fn drop_closed(&mut self) {
        let tracks = &self.tracks;
        self.open.retain(|key| {
            let run = tracks[*key].run.as_ref();
            run.is_some_and(|run| !run.pending.is_empty())
        });
    }

    fn decide_all(&mut self, decide: impl Fn(&mut Track, &mut Decided)) {
        let mut decided = Vec::new();
        for key in std::mem::take(&mut self.open) {
            decide(&mut self.tracks[key], &mut decided);
        }
        self.apply(decided);
    }

    fn apply(&mut self, decided: Decided) {
        for (Pending { batch, twofold }, verdict, guessed) in decided {
            let index = usize::try_from(batch - self.first).unwrap_or(usize::MAX);
            let Some((batch, open)) = self.waiting.get_mut(index) else {
                continue;
            };
            *open -= 1;
            let local = &mut batch.local;
            match taken(twofold, verdict) {
                Some(instant) => {
                    batch.times[twofold.row] = instant;
                    local.tally.repeated += 1;
                    local.tally.guessed += u64::from(guessed);
                }
                None => {
                    let at = local.refused.partition_point(|own| own.row < twofold.row);
                    local.refused.insert(at, twofold);
                    local.tally.refused += 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
