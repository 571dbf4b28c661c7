//! Patterns that select series by the metric and the tags of their names. The grammar, in which `word`, `quoted` and
//! `bare` are those of names (`name.rs`):
//!
//! ```text
//! pattern   = [ glob ] *( "{" [ all ] "}" )
//! all       = condition *( "," condition )
//! condition = key ( "=" | "!=" ) value
//!           | key ( "=~" | "!~" ) quoted
//!           | key [ "not" ] "in" "(" value *( "," value ) ")"
//!           | "not" 1*space "(" all ")"
//! key       = 1*( bare but "!" ) | quoted
//! value     = 1*( bare but "(", ")", "[", "]" | "*" | "?" | quoted )
//! glob      = 1*( bare | "*" | "?" | quoted )
//! ```
//!
//! White space between these is ignored, but none may stand in a `value` or `glob`. After `=` and `!=` a list in square
//! brackets is the older form of `in (...)`. Every printed name is a pattern that matches this name, so a key with `!`
//! is quoted in names.
//!
//! ```text
//! print, matches   a pattern as text; evaluation for one name
//! parser           text to pattern
//! ast              the parsed form
//! ```

pub(crate) mod ast;
mod matches;
pub(crate) mod parser;
mod print;
#[cfg(test)]
mod tests;

use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use crate::types::name::SeriesName;
use ast::{Condition, Pattern};
use std::collections::BTreeSet;
use std::fmt;

/// Selects series by their metric and tags; docs/patterns.md has the grammar and more examples.
///
/// - The metric is a glob: `*` stands for any characters, `?` for a single one. Without it any metric matches.
/// - Conditions on tags stand in braces, and all must hold. If there are several sets in braces, one must match.
/// - `=` and `!=` compare with a value, `in (...)` and `not in (...)` with several. Values may have wildcards too:
///   `site="north"*` selects values that begin with `north`. Quotes are needed only around special characters.
/// - `=~` and `!~` take a regular expression, which must match the whole value. Its syntax is that of the crate
///   `regex-lite`; matching takes time linear in the value.
/// - `not (...)` holds if the conditions in it do not all hold.
/// - A tag that a name lacks has the empty value, as in Prometheus: `farm=""` selects series without the tag `farm`,
///   `farm!=""` those with it, and `farm!="hb"` also those without it.
///
/// Quoted text is literal, so a printed name selects the series with this metric and these tags.
///
/// ```
/// use tidalite::{SeriesName, SeriesPattern};
///
/// let power = SeriesName::parse(r#"power{farm="hb",turbine="R80711"}"#)?;
/// for (pattern, selected) in [
///     ("pow*", true),
///     (r#"power{farm="hb",turbine!="R80711"}"#, false),
///     (r#"power{turbine in ("R80711","R80721")}"#, true),
///     (r#"power{turbine="R807"*}"#, true),
///     (r#"power{turbine=~"R80(711|721)"}"#, true),
///     (r#"power{turbine=~"R80"}"#, false), // The whole value must match.
///     (r#"power{not (farm="hb",turbine="R80721")}"#, true),
///     (r#"power{state=""}"#, true), // There is no tag `state`.
///     (r#"power{farm="sea"}{turbine="R80711"}"#, true), // One set or the other.
/// ] {
///     assert_eq!(SeriesPattern::parse(pattern)?.matches(&power), selected, "{pattern}");
/// }
/// # Ok::<(), tidalite::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesPattern(Pattern);

impl SeriesPattern {
    /// Parses a pattern such as `hb.*{turbine!="R80711"}`. The empty text selects all series, `{farm="hb"}` series of
    /// any metric.
    ///
    /// # Errors
    /// [`InvalidName`](crate::ErrorKind::InvalidName) with the problem, its [position](Error::position) and the next
    /// step. Groups may be nested 32 deep, and the compiled form of a regular expression has at most 1 MiB.
    pub fn parse(text: &str) -> Result<Self> {
        let parsed = parser::parse(text).map_err(|problem| Cause::Pattern {
            pattern: text.to_owned(),
            at: problem.at,
            problem: problem.what.into_owned(),
            next: problem.next,
        });
        Ok(Self(parsed.map_err(Error::from)?))
    }

    /// The keys of the tags in the conditions of the pattern, each once. A key that no series has may be misspelt: a
    /// condition such as `farn!="hb"` selects all series.
    #[must_use]
    pub fn keys(&self) -> BTreeSet<&str> {
        let mut keys = BTreeSet::new();
        let mut left: Vec<&Condition> = self.0.sets.iter().flatten().collect();
        while let Some(condition) = left.pop() {
            match condition {
                Condition::Tag { key, .. } => {
                    keys.insert(key.as_str());
                }
                Condition::Not(conditions) => left.extend(conditions),
            }
        }
        keys
    }

    /// True for the pattern without metric and conditions.
    pub(crate) fn selects_all(&self) -> bool {
        self.0.metric.is_none() && self.0.sets.is_empty()
    }

    pub(crate) fn parsed(&self) -> &Pattern {
        &self.0
    }

    /// True if the pattern selects a series of this name.
    #[must_use]
    pub fn matches(&self, name: &SeriesName) -> bool {
        self.0.matches(name)
    }
}

/// Writes the pattern in one form: lists as `in (...)`, values in quotes. Parsing it gives an equal pattern.
impl fmt::Display for SeriesPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
