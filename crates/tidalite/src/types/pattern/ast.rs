//! The parsed form of a pattern. `matches.rs` evaluates it for one name; the index of tags (catalog/tags/select.rs)
//! looks up the values that are given exactly, and walks over the values that begin with the texts before wildcards.

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
    /// The same values as a list, if the expression consists of texts, `.`, `.*` and `.+`, perhaps with `|` between
    /// several: most expressions do. A list is looked up in the index, and its wildcards match several times as fast.
    list: Option<Values>,
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
        let list = list_of(&text);
        Ok(Self {
            text,
            compiled,
            list,
        })
    }

    pub(crate) fn list(&self) -> Option<&Values> {
        self.list.as_ref()
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn matches(&self, value: &str) -> bool {
        match &self.list {
            Some(list) => list.contain(value),
            None => self.compiled.is_match(value),
        }
    }
}

/// The values of an expression that consists of texts and wildcards.
fn list_of(expression: &str) -> Option<Values> {
    let mut values = Values::default();
    for alternative in expression.split('|') {
        let mut glob = Vec::new();
        let mut chars = alternative.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '.' => glob.extend(match chars.peek() {
                    Some('*') => &[Wanted::Any][..],
                    Some('+') => &[Wanted::One, Wanted::Any],
                    _ => &[Wanted::One],
                }),
                // An escaped `|` also ends here: the text was divided at it.
                '\\' => match chars.next() {
                    // `\<` and `\>` are the beginning and the end of a word.
                    Some(c) if c.is_ascii_punctuation() && !matches!(c, '<' | '>') => {
                        glob.push(Wanted::Char(c));
                    }
                    _ => return None,
                },
                '^' | '$' | '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' => return None,
                c => glob.push(Wanted::Char(c)),
            }
            if c == '.' && matches!(chars.peek(), Some('*' | '+')) {
                chars.next();
            }
            // An expression that repeats anything but `.` is not a list.
            if matches!(chars.peek(), Some('*' | '+' | '?' | '{')) {
                return None;
            }
        }
        values.insert(Glob(glob));
    }
    Some(values)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_of_texts_and_wildcards_are_lists() {
        let texts = [
            "", "a", "ab", "a.b", "axb", "a|b", "\n", "ä", "a*", "aa", "b", "a\\",
        ];
        let lists = [
            "", "a", "a|b|", ".", ".*", ".+", "a.b", r"a\.b", "a.*|.+b", ".*a.*", "ä", "a-b/c",
            "..*",
        ];
        let others = [
            "a*", "a?", "a+", "(a|b)", "[ab]", "^a", "a$", r"\d", ".{2}", ".?", ".*?", ".+?",
            r"a\|b", r"\.*", r"\<a", r"a\>", "(?i)a", "a{2}", r"\n",
        ];
        for (list, expressions) in [(true, &lists[..]), (false, &others)] {
            for text in expressions {
                let expression = Expression::new((*text).to_owned()).unwrap();
                assert_eq!(expression.list.is_some(), list, "{text}");
                for value in texts {
                    let expected = expression.compiled.is_match(value);
                    assert_eq!(expression.matches(value), expected, "{text} {value:?}");
                }
            }
        }
    }

    #[test]
    fn escaped_punctuation_is_a_text_if_it_is_one_in_the_expression() {
        for c in (0..128u8)
            .map(char::from)
            .filter(char::is_ascii_punctuation)
        {
            let expression = Expression::new(format!(r"a\{c}b"));
            let Ok(expression) = expression else { continue };
            for value in [format!("a{c}b"), format!(r"a\{c}b"), "ab".to_owned()] {
                let expected = expression.compiled.is_match(&value);
                assert_eq!(expression.matches(&value), expected, r"a\{c}b {value}");
            }
        }
    }
}
