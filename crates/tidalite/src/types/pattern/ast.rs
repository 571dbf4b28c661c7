//! The parsed form of a pattern. `matches.rs` evaluates it; a future index of the catalog would instead need the key of
//! each condition, the values that are given exactly, and the texts with which matching values begin.

use regex_lite::{Regex, RegexBuilder};
use std::collections::BTreeSet;

/// Maximum size in bytes of the compiled form of a regular expression. A few thousand values with `|` between them fit;
/// `a{1000}{1000}` does not. The time to match a value grows with this size.
pub(crate) const REGEX_BYTES_MAX: usize = 1 << 20;

/// One element of a glob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wanted {
    /// Matches exactly this character.
    Char(char),
    /// `?`: matches any single character.
    One,
    /// `*`: matches any number of any characters.
    Any,
}

/// A text with wildcards.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Glob(pub Vec<Wanted>);

impl Glob {
    /// The characters before the first wildcard: every matching text begins with them.
    pub(crate) fn prefix(&self) -> String {
        let chars = self.0.iter().map_while(|wanted| match wanted {
            Wanted::Char(c) => Some(*c),
            Wanted::One | Wanted::Any => None,
        });
        chars.collect()
    }

    /// The only text that matches, if there are no wildcards.
    pub(crate) fn exact(&self) -> Option<String> {
        let prefix = self.prefix();
        (prefix.chars().count() == self.0.len()).then_some(prefix)
    }
}

/// The values that a condition accepts, or that it excludes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Values {
    /// Values that are given exactly.
    pub exact: BTreeSet<String>,
    /// Values with wildcards.
    pub globs: BTreeSet<Glob>,
}

impl Values {
    pub(crate) fn insert(&mut self, glob: Glob) {
        match glob.exact() {
            Some(value) => self.exact.insert(value),
            None => self.globs.insert(glob),
        };
    }
}

/// A regular expression that must match a whole value.
#[derive(Clone, Debug)]
pub(crate) struct Expression {
    text: String,
    compiled: Regex,
}

impl Expression {
    /// Compiles an expression. The error is the description of the problem.
    pub(crate) fn new(text: String) -> Result<Self, String> {
        let compile = |text: &str| {
            let built = RegexBuilder::new(text).size_limit(REGEX_BYTES_MAX).build();
            built.map_err(|error| error.to_string())
        };
        // Alone first: in the group, `a)(b` would be valid.
        compile(&text)?;
        // `.` also matches the end of a line, as in Prometheus, so that `.*` matches every value.
        let compiled = compile(&format!(r"\A(?s:{text})\z"))?;
        Ok(Self { text, compiled })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn matches(&self, value: &str) -> bool {
        self.compiled.is_match(value)
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// The test of a tag's value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Test {
    /// `=` and `in`: the value is one of these.
    Values(Values),
    /// `=~`: the expression matches the whole value.
    Expression(Expression),
}

/// A condition on the tags of a name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Condition {
    /// A test of one tag; a missing tag has the empty value.
    Tag {
        /// Key of the tag.
        key: String,
        /// Test of its value.
        test: Test,
        /// True if the test must fail: `!=`, `!~`, `not in`.
        negated: bool,
    },
    /// `not (...)`: these conditions do not all hold.
    Not(Vec<Condition>),
}

/// A parsed pattern.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pattern {
    /// The glob for the metric; `None` accepts any metric.
    pub metric: Option<Glob>,
    /// Sets of conditions. In one of them all conditions must hold; without sets, any tags match.
    pub sets: Vec<Vec<Condition>>,
}
