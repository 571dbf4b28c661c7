//! Evaluates a pattern for one name.

use crate::types::name::SeriesName;
use crate::types::pattern::ast::{Condition, Glob, Pattern, Test, Values, Wanted};

impl Pattern {
    pub(crate) fn matches(&self, name: &SeriesName) -> bool {
        let metric = self.metric.as_ref();
        metric.is_none_or(|glob| glob.matches(name.metric()))
            && (self.sets.is_empty() || self.sets.iter().any(|set| all_hold(set, name)))
    }
}

fn all_hold(conditions: &[Condition], name: &SeriesName) -> bool {
    conditions.iter().all(|condition| match condition {
        Condition::Tag { key, test, negated } => {
            test.accepts(name.tag(key).unwrap_or_default()) != *negated
        }
        Condition::Not(conditions) => !all_hold(conditions, name),
    })
}

impl Test {
    /// True if the test succeeds for this value; a missing tag has the empty value.
    pub(crate) fn accepts(&self, value: &str) -> bool {
        match self {
            Self::Values(values) => values.contain(value),
            Self::Expression(expression) => expression.matches(value),
        }
    }
}

impl Values {
    fn contain(&self, value: &str) -> bool {
        self.exact.contains(value) || self.globs.iter().any(|glob| glob.matches(value))
    }
}

impl Glob {
    /// Matches in O(glob x text) without recursion: on a mismatch it backtracks to the last `*` and extends its match
    /// by one character.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let (glob, text) = (&self.0, text.chars().collect::<Vec<_>>());
        let (mut g, mut t) = (0, 0);
        let mut star: Option<(usize, usize)> = None;
        while t < text.len() {
            match glob.get(g) {
                Some(Wanted::Any) => {
                    star = Some((g, t));
                    g += 1;
                }
                Some(&wanted) if wanted == Wanted::One || wanted == Wanted::Char(text[t]) => {
                    g += 1;
                    t += 1;
                }
                _ => {
                    let Some((star_g, star_t)) = star else {
                        return false;
                    };
                    g = star_g + 1;
                    t = star_t + 1;
                    star = Some((star_g, t));
                }
            }
        }
        glob[g..].iter().all(|&wanted| wanted == Wanted::Any)
    }
}
