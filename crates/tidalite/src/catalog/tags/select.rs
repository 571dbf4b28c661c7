//! Finds the series that a pattern selects.
//!
//! The index gives a set of candidates that contains all series selected, and the names of the candidates decide. So
//! only conditions that reduce the candidates much are looked up, cheap ones first, and none once few candidates are
//! left:
//!
//! 1. prefixes of few values, by a walk over these values, unless an exact value has few series;
//! 2. exact values, smallest set first;
//! 3. sets to subtract: `!=`, and the tag whose absence is asked for;
//! 4. other prefixes, wildcards and regular expressions, by a walk over the values of the tag. It ends where testing
//!    the names of the remaining candidates is cheaper.
//!
//! A group `not (...)` is decided by names alone.

use crate::catalog::tags::keys::{self, METRIC};
use crate::types::error::Result;
use crate::types::pattern::ast::{Condition, Glob, Pattern, Test, Values};
use tidalite_index::RoaringTreemap;
use tidalite_kv::Tree;
use tidalite_pager::PageRead;

/// With so few candidates left, testing their names costs less than reading more sets.
const FEW: u64 = 256;

/// Number of values of a tag that can be walked over in the time in which one name is read and tested.
const VALUES_PER_NAME: u64 = 8;

/// Number of values that begin with a given text that are walked over before a large set is read.
const VALUES_FIRST: u64 = 1000;

/// The ids of all series that a pattern may select, and perhaps of some others.
pub(crate) fn candidates<R: PageRead>(
    tree: &Tree,
    r: &R,
    pattern: &Pattern,
) -> Result<RoaringTreemap> {
    let index = Index { tree, r };
    let metric = pattern.metric.as_ref();
    if pattern.sets.is_empty() {
        return index.of_set(metric, &[]);
    }
    let mut all = RoaringTreemap::new();
    for set in &pattern.sets {
        all |= index.of_set(metric, set)?;
    }
    Ok(all)
}

struct Index<'a, R> {
    tree: &'a Tree,
    r: &'a R,
}

/// Values of a tag that can only be found by a walk.
struct Walk<'p> {
    tag: &'p str,
    prefix: String,
    accepts: Box<dyn Fn(&str) -> bool + 'p>,
}

/// The conditions of a set, by the way in which the index answers them.
#[derive(Default)]
struct Plan<'p> {
    /// The series are in the union of these sets, for each element.
    exact: Vec<Vec<Vec<u8>>>,
    /// Sets to subtract, each with an optional set of series to keep.
    without: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    walks: Vec<Walk<'p>>,
}

impl<'p> Plan<'p> {
    fn of(metric: Option<&'p Glob>, conditions: &'p [Condition]) -> Self {
        let mut plan = Self::default();
        for condition in conditions {
            if let Condition::Tag { key, test, negated } = condition {
                plan.condition(key, test, *negated);
            }
        }
        // Last, because a metric mostly has more series than a tag with its value.
        if let Some(glob) = metric {
            plan.metric(glob);
        }
        plan
    }

    /// A series without a name has the text of its GUID as its metric.
    fn metric(&mut self, glob: &'p Glob) {
        match glob.exact() {
            Some(metric) => {
                let named = keys::value(METRIC, &metric);
                self.exact.push(vec![named, keys::unnamed()]);
            }
            None => self.walks.push(Walk {
                tag: METRIC,
                prefix: glob.prefix(),
                accepts: Box::new(|metric| glob.matches(metric)),
            }),
        }
    }

    fn condition(&mut self, tag: &'p str, test: &'p Test, negated: bool) {
        let of_value = |value: &String| keys::value(tag, value);
        let values = match test {
            Test::Values(values) => Some(values),
            Test::Expression(expression) => expression.list(),
        };
        match (values, negated, test.accepts("")) {
            // The tag is there, and has a value that the test accepts.
            (Some(values), false, false) if values.globs.is_empty() => {
                self.exact.push(values.exact.iter().map(of_value).collect());
            }
            (_, false, false) => self.walks.push(Walk {
                tag,
                prefix: values.map(prefix).unwrap_or_default(),
                accepts: Box::new(|value| test.accepts(value)),
            }),
            // The tag is missing or empty.
            (Some(values), false, true) if values.globs.is_empty() && values.exact.len() == 1 => {
                self.without
                    .push((keys::any(tag), Some(keys::value(tag, ""))));
            }
            // The tag is missing, or has one of several values: not worth a plan of its own.
            (_, false, true) => {}
            // Not one of these values; the tag may be missing.
            (Some(values), true, false) => {
                let sets = values.exact.iter().map(of_value);
                self.without.extend(sets.map(|set| (set, None)));
            }
            (None, true, false) => {}
            // The tag is there.
            (_, true, true) => self.exact.push(vec![keys::any(tag)]),
        }
    }
}

/// The text with which all these values begin.
fn prefix(values: &Values) -> String {
    let globs = values.globs.iter().map(Glob::prefix);
    let mut prefixes = globs.chain(values.exact.iter().cloned());
    let first = prefixes.next().unwrap_or_default();
    prefixes.fold(first, |common, other| {
        let same = common
            .chars()
            .zip(other.chars())
            .take_while(|(a, b)| a == b);
        same.map(|(a, _)| a).collect()
    })
}

impl<R: PageRead> Index<'_, R> {
    fn of_set(&self, metric: Option<&Glob>, conditions: &[Condition]) -> Result<RoaringTreemap> {
        let plan = Plan::of(metric, conditions);
        let mut found: Option<RoaringTreemap> = None;
        let mut exact = Vec::with_capacity(plan.exact.len());
        for sets in &plan.exact {
            let mut count = 0;
            for set in sets {
                count += tidalite_index::count(self.tree, self.r, set)?;
            }
            exact.push((count, sets));
            if count <= FEW {
                break;
            }
        }
        exact.sort_by_key(|(count, _)| *count);
        // A walk over few values costs less than a large set.
        let mut walks: Vec<&Walk<'_>> = plan.walks.iter().collect();
        if exact.first().is_none_or(|(count, _)| *count > FEW) {
            let mut left = Vec::with_capacity(walks.len());
            for walk in walks {
                let union = match walk.prefix.is_empty() {
                    true => None,
                    false => self.walk(walk, VALUES_FIRST)?,
                };
                match union {
                    Some(union) => intersect(&mut found, union),
                    None => left.push(walk),
                }
            }
            walks = left;
        }
        for (_, sets) in exact {
            if is_few(found.as_ref()) {
                break;
            }
            let mut union = RoaringTreemap::new();
            for set in sets {
                union |= self.get(set, found.as_ref())?;
            }
            intersect(&mut found, union);
        }
        let mut found = match found {
            Some(found) => found,
            None => self.get(&keys::any(METRIC), None)?,
        };
        for (set, except) in &plan.without {
            if is_few(Some(&found)) {
                break;
            }
            let mut set = self.get(set, Some(&found))?;
            if let Some(except) = except {
                set -= self.get(except, Some(&found))?;
            }
            found -= set;
        }
        for walk in walks {
            if is_few(Some(&found)) {
                break;
            }
            let values = found.len().saturating_mul(VALUES_PER_NAME);
            if let Some(union) = self.walk(walk, values)? {
                found &= union;
            }
        }
        Ok(found)
    }

    /// Reads a set; skips the blocks in which there are no candidates.
    fn get(&self, set: &[u8], candidates: Option<&RoaringTreemap>) -> Result<RoaringTreemap> {
        Ok(match candidates {
            Some(found) => tidalite_index::get_within(self.tree, self.r, set, found)?,
            None => tidalite_index::get(self.tree, self.r, set)?,
        })
    }

    /// The series with an accepted value. `None` if there are more than `values` values to test.
    fn walk(&self, walk: &Walk<'_>, values: u64) -> Result<Option<RoaringTreemap>> {
        let mut union = RoaringTreemap::new();
        if walk.tag == METRIC {
            union |= self.get(&keys::unnamed(), None)?;
        }
        let begin = keys::values(walk.tag, &walk.prefix);
        let Some(mut cursor) = tidalite_index::set_cursor(self.tree, self.r, &begin)? else {
            return Ok(Some(union));
        };
        let tag = keys::values(walk.tag, "").len();
        let mut left = values;
        while cursor.key().starts_with(&begin) {
            if left == 0 {
                return Ok(None);
            }
            left -= 1;
            let value = keys::value_of(&cursor.key()[tag..])?;
            let more = if (walk.accepts)(&value) {
                cursor.add_to(&mut union)?
            } else {
                cursor.skip()?
            };
            if !more {
                break;
            }
        }
        Ok(Some(union))
    }
}

fn intersect(found: &mut Option<RoaringTreemap>, union: RoaringTreemap) {
    match found {
        Some(found) => *found &= union,
        None => *found = Some(union),
    }
}

fn is_few(found: Option<&RoaringTreemap>) -> bool {
    found.is_some_and(|found| found.len() <= FEW)
}
