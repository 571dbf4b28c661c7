//! Chooses the method with which the matches of a filter are found.
//!
//! ```text
//! walk    goes through the keys in order and skips keys that cannot match (`steps.rs`)
//! terms   intersects the sets of the filter's names (`terms.rs`), then compares each remaining topic
//! ```
//!
//! Each search begins with a walk of a few rows, and most searches end there. A longer walk is slow if wildcards that
//! match many names come before names: `+/+/x` visits each pair of names. The cost of a walk is estimated from a few
//! steps at some positions of its range; the cost of the sets is estimated from the size of the smallest set.

use crate::topics::filter::{Filter, Level};
use crate::topics::key::BEHIND;
use crate::topics::parts::Part;
use crate::topics::read::TopicsReader;
use crate::topics::steps::{Step, step, step_after_match};
use crate::topics::terms;
use tidalite_base::Corrupt;
use tidalite_index::{RoaringTreemap, count, get, get_within};
use tidalite_kv::Cursor;
use tidalite_pager::{PageRead, Result};

/// Number of rows that a search walks through before a plan is made.
pub(super) const TRIAL_ROWS: u64 = if cfg!(test) { 4 } else { 16 };

/// Ranges of up to this many rows are walked without an estimate, because the estimate would cost more than the walk.
const SMALL_ROWS: u64 = if cfg!(test) { 8 } else { 256 };

/// Number of positions at which a walk is sampled, and number of steps at each.
const SAMPLES: u64 = 4;
const SAMPLE_STEPS: u32 = 8;

/// Costs of a seek and of a topic from the sets (a lookup of its key and one of its message). The unit is one step of a
/// cursor. Measured in memory with a million topics.
const SEEK_COST: u64 = 30;
const CANDIDATE_COST: u64 = 60;

/// Number of rows that a cursor steps over before it seeks.
const STEPS_BEFORE_SEEK: u32 = 8;

/// A set is intersected only if it has at most this many times as many members as the smallest one.
const LARGER_SETS: u64 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    Walk,
    Terms,
}

/// Moves a cursor forward to the first row that is not below `target`; counts steps and seeks.
pub(super) fn advance<R: PageRead>(
    cursor: &mut Cursor<'_, R>,
    target: &[u8],
    (steps, seeks): (&mut u64, &mut u64),
) -> Result<bool> {
    for _ in 0..STEPS_BEFORE_SEEK {
        *steps += 1;
        if !cursor.next()? {
            return Ok(false);
        }
        if cursor.key() >= target {
            return Ok(true);
        }
    }
    *seeks += 1;
    seek(cursor, target)
}

/// Moves a cursor to the first row that is not below `target`. Keys that are out of order cause an error; otherwise a
/// walk could return to the same row again and again.
pub(super) fn seek<R: PageRead>(cursor: &mut Cursor<'_, R>, target: &[u8]) -> Result<bool> {
    let there = cursor.seek_ge(target)?;
    if there && cursor.key() < target {
        let found = format!("{} after a search", cursor.key().escape_ascii());
        let expected = format!("{} or a greater one", target.escape_ascii());
        return Err(Corrupt::new("key of a topic", 0, found, expected).into());
    }
    Ok(there)
}

/// Chooses the plan for a filter.
pub(super) fn choose<R: PageRead>(reader: &TopicsReader<R>, filter: &Filter) -> Result<Plan> {
    let is_name = |level: &Level| matches!(level, Level::Name(_));
    let prefix_levels = filter
        .levels
        .iter()
        .take_while(|level| is_name(level))
        .count();
    let has_late_name = filter.levels[prefix_levels..].iter().any(is_name);
    if !has_late_name || reader.state.messages <= SMALL_ROWS {
        return Ok(Plan::Walk);
    }
    let messages = reader.part(Part::Messages)?;
    let (mut from, mut to) = (0, messages.len());
    if prefix_levels > 0 {
        let mut key = Vec::new();
        filter.put_names(0, &mut key);
        // The key ends with a separator and no name: it is the least key below the prefix.
        from = messages.rank(&reader.r, &key)?;
        key.pop();
        key.push(BEHIND);
        to = messages.rank(&reader.r, &key)?;
    }
    let rows = to.saturating_sub(from);
    if rows <= SMALL_ROWS {
        return Ok(Plan::Walk);
    }
    let walk = walk_cost(reader, filter, from, rows)?;
    let sets = reader.part(Part::Terms)?;
    let mut least = u64::MAX;
    for terms in terms::of_filter(filter) {
        let mut members = 0;
        for term in &terms {
            members += count(&sets, &reader.r, term)?;
        }
        least = least.min(members);
    }
    match least.saturating_mul(CANDIDATE_COST) < walk {
        true => Ok(Plan::Terms),
        false => Ok(Plan::Walk),
    }
}

/// The estimated cost of walking through `rows` rows from the rank `from` on, from samples at a few positions.
fn walk_cost<R: PageRead>(
    reader: &TopicsReader<R>,
    filter: &Filter,
    from: u64,
    rows: u64,
) -> Result<u64> {
    let messages = reader.part(Part::Messages)?;
    let mut cursor = messages.cursor(&reader.r)?;
    let (mut steps, mut seeks, mut passed) = (0, 0, 0);
    let mut target = Vec::new();
    for sample in 0..SAMPLES {
        let first = from + rows / SAMPLES * sample;
        if !cursor.select(first)? {
            break;
        }
        let mut last = first;
        for _ in 0..SAMPLE_STEPS {
            let next = match step(filter, cursor.key(), &mut target) {
                Step::Match => step_after_match(filter, cursor.key(), &mut target),
                other => other,
            };
            if next != Step::Skip || !advance(&mut cursor, &target, (&mut steps, &mut seeks))? {
                last = from + rows;
                break;
            }
            last = cursor.rank()?.unwrap_or(from + rows);
        }
        passed += last.min(from + rows).saturating_sub(first).max(1);
    }
    let cost = u128::from(steps + SEEK_COST * seeks) * u128::from(rows) / u128::from(passed.max(1));
    Ok(u64::try_from(cost).unwrap_or(u64::MAX))
}

/// The ids of the topics that may match: the intersection of the sets of the filter's names. Sets that are much larger
/// than the smallest one are ignored.
pub(super) fn candidates<R: PageRead>(
    reader: &TopicsReader<R>,
    filter: &Filter,
) -> Result<RoaringTreemap> {
    let sets = reader.part(Part::Terms)?;
    let mut named = Vec::new();
    for terms in terms::of_filter(filter) {
        let mut members = 0;
        for term in &terms {
            members += count(&sets, &reader.r, term)?;
        }
        named.push((members, terms));
    }
    named.sort_by_key(|(members, _)| *members);
    let Some(((least, first), others)) = named.split_first() else {
        return Ok(RoaringTreemap::new());
    };
    let mut found = RoaringTreemap::new();
    for term in first {
        found |= get(&sets, &reader.r, term)?;
    }
    for (members, terms) in others {
        if *members > least.saturating_mul(LARGER_SETS) {
            break;
        }
        let mut own = RoaringTreemap::new();
        for term in terms {
            own |= get_within(&sets, &reader.r, term, &found)?;
        }
        found &= own;
    }
    Ok(found)
}
