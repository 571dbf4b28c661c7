//! Names of series: a metric and tags, `wind.speed{farm="hb",turbine="R80711"}`.
//!
//! The grammar, in which `bare` is any character but white space, control characters and `{}",=*?\`:
//!
//! ```text
//! name    = word [ "{" [ tag *( "," tag ) ] "}" ]
//! tag     = word "=" quoted
//! word    = 1*bare | quoted
//! quoted  = '"' *( any character but '"' and '\' | '\"' | '\\' | '\n' | '\t' | '\r' ) '"'
//! ```
//!
//! White space around `{`, `}`, `,` and `=` is ignored when read and never written. The canonical form sorts tags by
//! key, quotes every value and quotes a word only where necessary; two names denote one series if their canonical forms
//! are the same bytes.
//!
//! A pattern has a glob for the metric, lists of values, and any number of sets of tags. In quotes `*` and `?` are
//! ordinary characters, so every printed name is a pattern that matches this name:
//!
//! ```text
//! pattern = [ 1*( glob | quoted ) ] *( "{" [ choice *( "," choice ) ] "}" )
//! choice  = word "=" ( quoted | "[" quoted *( "," quoted ) "]" )
//! glob    = 1*( bare | "*" | "?" )
//! ```

use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use std::fmt;

/// Maximum length of a canonical name in bytes.
pub const SERIES_NAME_BYTES_MAX: usize = 1024;

/// A parsed series name, with its tags in canonical order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeriesName {
    metric: String,
    tags: Vec<(String, String)>,
}

impl SeriesName {
    /// Builds a name from its parts.
    ///
    /// # Errors
    /// [`InvalidName`](crate::ErrorKind::InvalidName) if the metric or a tag key is empty, a tag is given twice, or the
    /// canonical form is longer than [`SERIES_NAME_BYTES_MAX`].
    pub fn new(
        metric: impl Into<String>,
        tags: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self> {
        let mut name = Self {
            metric: metric.into(),
            tags: tags.into_iter().collect(),
        };
        name.tags.sort();
        let problem = if name.metric.is_empty() || name.tags.iter().any(|(key, _)| key.is_empty()) {
            Some("a metric and every tag key need at least one character".to_owned())
        } else {
            let twice = name.tags.windows(2).find(|pair| pair[0].0 == pair[1].0);
            twice.map(|pair| format!("tag {} is given twice", pair[0].0))
        };
        let text = name.to_string();
        if let Some(problem) = problem {
            return Err(Error::from(Cause::Name {
                name: text,
                problem,
            }));
        }
        if text.len() > SERIES_NAME_BYTES_MAX {
            let problem = format!(
                "{} bytes are beyond the {SERIES_NAME_BYTES_MAX}",
                text.len()
            );
            return Err(Error::from(Cause::Name {
                name: text,
                problem,
            }));
        }
        Ok(name)
    }

    /// Parses a series name, such as `wind.speed{farm="hb"}`.
    ///
    /// # Errors
    /// [`InvalidName`](crate::ErrorKind::InvalidName) with the position and the problem.
    ///
    /// ```
    /// let name = tidalite::SeriesName::parse(r#"wind.speed{turbine="R80711", farm="hb"}"#)?;
    /// assert_eq!(name.to_string(), r#"wind.speed{farm="hb",turbine="R80711"}"#);
    /// # Ok::<(), tidalite::Error>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self> {
        let mut parser = Parser::new(text);
        let metric = parser.word()?;
        let tags = parser.tags()?;
        parser.end()?;
        Self::new(metric, tags)
    }

    /// The metric of the name, such as `wind.speed`.
    #[must_use]
    pub fn metric(&self) -> &str {
        &self.metric
    }

    /// The tags of the name as pairs of key and value, sorted by key.
    #[must_use]
    pub fn tags(&self) -> &[(String, String)] {
        &self.tags
    }

    /// The value of the tag with this key, if the name has it.
    #[must_use]
    pub fn tag(&self, key: &str) -> Option<&str> {
        self.tags
            .iter()
            .find(|(k, _)| k == key)
            .map(|(_, value)| value.as_str())
    }
}

impl fmt::Display for SeriesName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_word(f, &self.metric)?;
        for (i, (key, value)) in self.tags.iter().enumerate() {
            f.write_str(if i == 0 { "{" } else { "," })?;
            write_word(f, key)?;
            f.write_str("=")?;
            write_quoted(f, value)?;
        }
        if self.tags.is_empty() {
            Ok(())
        } else {
            f.write_str("}")
        }
    }
}

/// Selects series by a glob over the metric (`*` stands for any characters, `?` for a single one) and by tags, each
/// with one or several accepted values. If there are several sets of tags, one of them must match. Quoted text is
/// literal, so a printed name selects the series with this metric and these tags. A quoted part and a glob may follow
/// each other: `"wind speed "*`.
#[derive(Clone, Debug)]
pub struct SeriesPattern {
    /// The pattern for the metric; `None` selects any metric.
    metric: Option<Vec<Wanted>>,
    /// The sets of tags, of which one must match; if there are no sets, any tags match.
    sets: Vec<Vec<Choice>>,
}

/// One element of the pattern for a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// Matches exactly this character.
    Char(char),
    /// `?`: matches any single character.
    One,
    /// `*`: matches any number of any characters.
    Any,
}

impl Wanted {
    /// Converts a character of a pattern outside quotes.
    fn of_glob(c: char) -> Self {
        match c {
            '?' => Self::One,
            '*' => Self::Any,
            c => Self::Char(c),
        }
    }
}

/// Key of a tag, and the values that the pattern accepts for it.
type Choice = (String, Vec<String>);

impl SeriesPattern {
    /// Parses a pattern such as `hb.*{turbine="R80711"}`. The empty text selects all series, `{farm="hb"}` series of
    /// any metric.
    ///
    /// ```
    /// use tidalite::{SeriesName, SeriesPattern};
    ///
    /// let power = SeriesName::parse(r#"power{farm="hb",turbine="R2"}"#)?;
    /// // Either of two turbines.
    /// assert!(SeriesPattern::parse(r#"power{farm="hb",turbine=["R1","R2"]}"#)?.matches(&power));
    /// // One turbine of this farm, or all of that one.
    /// let either = SeriesPattern::parse(r#"power{farm="hb",turbine="R1"}{farm="sea"}"#)?;
    /// assert!(!either.matches(&power));
    /// # Ok::<(), tidalite::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`InvalidName`](crate::ErrorKind::InvalidName) with the position and the problem.
    pub fn parse(text: &str) -> Result<Self> {
        let mut parser = Parser::new(text);
        let metric = match parser.peek() {
            None | Some('{') => None,
            Some(_) => Some(parser.glob()?),
        };
        let mut sets = Vec::new();
        while parser.peek() == Some('{') {
            sets.push(parser.listed(Parser::values)?);
        }
        parser.end()?;
        Ok(Self { metric, sets })
    }

    /// True if the metric of the name matches, and the name has every tag of one of the sets, with an accepted value.
    #[must_use]
    pub fn matches(&self, name: &SeriesName) -> bool {
        let has = |(key, values): &Choice| {
            name.tag(key)
                .is_some_and(|own| values.iter().any(|value| value == own))
        };
        self.metric
            .as_ref()
            .is_none_or(|glob| glob_matches(glob, name.metric()))
            && (self.sets.is_empty() || self.sets.iter().any(|set| set.iter().all(has)))
    }
}

/// Wildcard match in O(pattern x text) without recursion: on a mismatch it backtracks to the last `*` and extends its
/// match by one character.
fn glob_matches(glob: &[Wanted], text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
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

fn is_bare(c: char) -> bool {
    !c.is_whitespace() && !c.is_control() && !"{}\",=*?\\".contains(c)
}

fn write_word(f: &mut fmt::Formatter<'_>, word: &str) -> fmt::Result {
    if !word.is_empty() && word.chars().all(is_bare) {
        f.write_str(word)
    } else {
        write_quoted(f, word)
    }
}

fn write_quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    for c in text.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\t' => f.write_str("\\t")?,
            '\r' => f.write_str("\\r")?,
            c => write!(f, "{c}")?,
        }
    }
    f.write_str("\"")
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn fail<T>(&self, problem: &str) -> Result<T> {
        let problem = format!(
            "{problem} at character {}",
            self.text[..self.at].chars().count()
        );
        Err(Error::from(Cause::Name {
            name: self.text.to_owned(),
            problem,
        }))
    }

    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.text[self.at..].chars().next()
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn word(&mut self) -> Result<String> {
        if self.peek() == Some('"') {
            return self.quoted();
        }
        let rest = &self.text[self.at..];
        let len = rest.find(|c| !is_bare(c)).unwrap_or(rest.len());
        if len == 0 {
            return self.fail("expected a word or a quoted text");
        }
        self.at += len;
        Ok(rest[..len].to_owned())
    }

    /// Parses the pattern of a metric: globs and quoted texts that follow each other without a space.
    fn glob(&mut self) -> Result<Vec<Wanted>> {
        let mut glob = Vec::new();
        loop {
            let rest = &self.text[self.at..];
            let len = rest
                .find(|c| !(is_bare(c) || c == '*' || c == '?'))
                .unwrap_or(rest.len());
            if len > 0 {
                glob.extend(rest[..len].chars().map(Wanted::of_glob));
                self.at += len;
            } else if rest.starts_with('"') {
                glob.extend(self.quoted()?.chars().map(Wanted::Char));
            } else if glob.is_empty() {
                return self.fail("expected a word or a quoted text");
            } else {
                return Ok(glob);
            }
        }
    }

    fn quoted(&mut self) -> Result<String> {
        if !self.take('"') {
            return self.fail("expected a quoted text");
        }
        let mut out = String::new();
        let mut chars = self.text[self.at..].char_indices();
        while let Some((i, c)) = chars.next() {
            match c {
                '"' => {
                    self.at += i + 1;
                    return Ok(out);
                }
                '\\' => match chars.next() {
                    Some((_, '"')) => out.push('"'),
                    Some((_, '\\')) => out.push('\\'),
                    Some((_, 'n')) => out.push('\n'),
                    Some((_, 't')) => out.push('\t'),
                    Some((_, 'r')) => out.push('\r'),
                    _ => {
                        self.at += i;
                        return self.fail("unknown escape");
                    }
                },
                c => out.push(c),
            }
        }
        self.fail("quoted text without an end")
    }

    fn tags(&mut self) -> Result<Vec<(String, String)>> {
        self.listed(Self::quoted)
    }

    /// Parses a list in braces of keys, each followed by `=` and an item that `value` parses. Returns an empty list if
    /// there are no braces.
    fn listed<T>(&mut self, value: impl Fn(&mut Self) -> Result<T>) -> Result<Vec<(String, T)>> {
        let mut tags = Vec::new();
        if !self.take('{') || self.take('}') {
            return Ok(tags);
        }
        loop {
            let key = self.word()?;
            if !self.take('=') {
                return self.fail("expected =");
            }
            tags.push((key, value(self)?));
            if self.take('}') {
                return Ok(tags);
            }
            if !self.take(',') {
                return self.fail("expected , or }");
            }
        }
    }

    /// Parses one quoted value, or several in brackets.
    fn values(&mut self) -> Result<Vec<String>> {
        if !self.take('[') {
            return Ok(vec![self.quoted()?]);
        }
        let mut values = vec![self.quoted()?];
        while !self.take(']') {
            if !self.take(',') {
                return self.fail("expected , or ]");
            }
            values.push(self.quoted()?);
        }
        Ok(values)
    }

    fn end(&mut self) -> Result<()> {
        match self.peek() {
            None => Ok(()),
            Some(_) => self.fail("unexpected text"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_form_sorts_and_quotes_only_where_needed() {
        let name = SeriesName::parse(" temp { b = \"2\" , a=\"x\\\"y\" } ").unwrap();
        assert_eq!(name.to_string(), r#"temp{a="x\"y",b="2"}"#);
        assert_eq!(SeriesName::parse(&name.to_string()).unwrap(), name);
        let odd = SeriesName::new("two words", [("k=".to_owned(), "\n\\".to_owned())]).unwrap();
        assert_eq!(odd.to_string(), "\"two words\"{\"k=\"=\"\\n\\\\\"}");
        assert_eq!(SeriesName::parse(&odd.to_string()).unwrap(), odd);
        assert_eq!(
            SeriesName::parse("größe.m²/s").unwrap().metric(),
            "größe.m²/s"
        );
    }

    #[test]
    fn errors_in_names_have_a_position() {
        for (text, word) in [
            ("", "expected a word"),
            ("a{", "expected a word"),
            ("a{b}", "expected ="),
            ("a{b=c}", "expected a quoted text"),
            ("a{b=\"c\"", "expected , or }"),
            ("a{b=\"c\"} d", "unexpected text at character 9"),
            ("a{b=\"\\q\"}", "unknown escape"),
            ("a{b=\"1\",b=\"2\"}", "given twice"),
            ("a\"", "unexpected text"),
        ] {
            let error = SeriesName::parse(text).unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
        let long = "m".repeat(SERIES_NAME_BYTES_MAX);
        assert!(SeriesName::parse(&long).is_ok());
        assert!(SeriesName::parse(&format!("{long}m")).is_err());
    }

    #[test]
    fn errors_in_patterns_have_a_position() {
        for (text, word) in [
            ("a{b=[]}", "expected a quoted text at character 5"),
            ("a{b=[\"c\"}", "expected , or ] at character 8"),
            ("a{b=[\"c\",]}", "expected a quoted text at character 9"),
            ("a{b=\"c\"}{", "expected a word"),
            ("a{b=\"c\"}d", "unexpected text at character 8"),
            ("a b", "unexpected text at character 2"),
            ("\"a", "quoted text without an end"),
        ] {
            let error = SeriesPattern::parse(text).unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
        // Unlike a pattern, a name has one value per tag, and one set of tags.
        assert!(SeriesName::parse("a{b=[\"c\"]}").is_err());
        assert!(SeriesName::parse("a{b=\"c\"}{d=\"e\"}").is_err());
    }

    #[test]
    fn patterns_select_by_glob_and_tags() {
        let name = SeriesName::parse(r#"hb.wind.speed{farm="hb",turbine="R80711"}"#).unwrap();
        for (pattern, expected) in [
            ("", true),
            ("hb.*", true),
            ("hb.*.speed", true),
            ("*", true),
            ("hb.wind.spee?", true),
            ("hb.wind.spee", false),
            ("h?.*{turbine=\"R80711\"}", true),
            ("{turbine=\"R80711\"}", true),
            ("{turbine=\"R80712\"}", false),
            ("{nosuch=\"\"}", false),
            ("{turbine=[\"R80711\"]}", true),
            ("{turbine=[ \"R80710\" , \"R80711\" ],farm=\"hb\"}", true),
            ("{turbine=[\"R80710\",\"R80711\"],farm=\"sea\"}", false),
            ("{farm=[\"sea\",\"land\"]}", false),
            ("hb.*{farm=\"sea\"}{turbine=\"R80711\"}", true),
            ("hb.*{farm=\"sea\"} {turbine=\"R1\"}", false),
            ("sea.*{farm=\"sea\"}{turbine=\"R80711\"}", false),
            ("hb.*{}", true),
            ("\"hb.wind.speed\"", true),
            ("\"hb.\"*", true),
            ("hb.\"wind\".*{farm=\"hb\"}", true),
            ("*\".speed\"", true),
            ("\"hb.*\"", false),
            ("\"hb.wind.spee?\"", false),
        ] {
            let found = SeriesPattern::parse(pattern).unwrap().matches(&name);
            assert_eq!(found, expected, "{pattern}");
        }
    }

    /// The test prints names and checks that each selects itself and no other metric.
    #[test]
    fn a_printed_name_selects_itself_alone() {
        let metrics = [
            "a*b", "aXb", "ab", "a?b", "a b", "a\"b", "a\\b", "*", "?", "**", "a\nb", "größe", "{",
            "\"", "\\*",
        ];
        let name =
            |metric: &str| SeriesName::new(metric, [("k".to_owned(), "*".to_owned())]).unwrap();
        for metric in metrics {
            let printed = name(metric).to_string();
            let pattern = SeriesPattern::parse(&printed).unwrap();
            for other in metrics {
                assert_eq!(
                    pattern.matches(&name(other)),
                    other == metric,
                    "{printed} of {other}"
                );
            }
            let other = SeriesName::new(metric, [("k".to_owned(), "x".to_owned())]).unwrap();
            assert!(!pattern.matches(&other), "values of tags are no globs");
        }
        // Only the part of the pattern outside the quotes is a glob.
        let begins = SeriesPattern::parse(r#""a*"*"#).unwrap();
        assert!(begins.matches(&name("a*b")) && !begins.matches(&name("aXb")));
    }
}
