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
    pub(crate) fn contain(&self, value: &str) -> bool {
        self.exact.contains(value) || self.globs.iter().any(|glob| glob.matches(value))
    }
}

impl Glob {
    /// Matches in O(glob x text) without recursion: on a mismatch it backtracks to the last `*` and extends its match
    /// by one character.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let glob = &self.0;
        let (mut g, mut rest) = (0, text);
        // The position after the last `*`, and the text that the `*` has not matched yet.
        let mut star: Option<(usize, &str)> = None;
        loop {
            let mut chars = rest.chars();
            match (glob.get(g), chars.next()) {
                (None, None) => return true,
                (Some(Wanted::Any), _) => {
                    g += 1;
                    star = Some((g, rest));
                }
                (Some(&wanted), Some(c)) if wanted == Wanted::One || wanted == Wanted::Char(c) => {
                    g += 1;
                    rest = chars.as_str();
                }
                _ => {
                    let Some((behind, unmatched)) = star else {
                        return false;
                    };
                    let mut chars = unmatched.chars();
                    if chars.next().is_none() {
                        return false;
                    }
                    (g, rest) = (behind, chars.as_str());
                    star = Some((behind, rest));
                }
            }
        }
    }
}
