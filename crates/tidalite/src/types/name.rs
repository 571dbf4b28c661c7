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
//! are the same bytes. A key with `!` is quoted too, because every printed name is also a pattern (`pattern/mod.rs`).

use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use crate::types::name_text::{Read, TextReader, is_bare, write_key, write_quoted, write_word};
use std::fmt;

/// Maximum length of a canonical name in bytes.
pub const SERIES_NAME_BYTES_MAX: usize = 1024;

/// The tag whose value is the name of the container.
pub const CONTAINER_TAG: &str = "container";

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
        // Quotes and escapes at most double a text, so most names need not be written to know that they fit.
        let bytes = |text: &str| 2 * text.len() + 3;
        let tags = name.tags.iter();
        let tags: usize = tags.map(|(key, value)| bytes(key) + bytes(value)).sum();
        if problem.is_none() && bytes(&name.metric) + tags < SERIES_NAME_BYTES_MAX {
            return Ok(name);
        }
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
        let (metric, tags) = parts(text).map_err(|problem| {
            Error::from(Cause::Name {
                name: text.to_owned(),
                problem: format!("{} at character {}", problem.what, problem.at),
            })
        })?;
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

    /// The name of the container of which this is the series, if there is such a container: the series has this tag
    /// alone, and its metric is the name of the table.
    pub(crate) fn container(&self) -> Option<&str> {
        match &self.tags[..] {
            [(key, container)] if key == CONTAINER_TAG => Some(container),
            _ => None,
        }
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
            write_key(f, key)?;
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

/// Reads the metric and the tags of a name.
fn parts(text: &str) -> Read<(String, Vec<(String, String)>)> {
    let mut reader = TextReader::new(text);
    let metric = reader.word(is_bare)?;
    let tags = tags(&mut reader)?;
    reader.end()?;
    Ok((metric, tags))
}

fn tags(reader: &mut TextReader<'_>) -> Read<Vec<(String, String)>> {
    let mut tags = Vec::new();
    if !reader.take('{') || reader.take('}') {
        return Ok(tags);
    }
    loop {
        let key = reader.word(is_bare)?;
        if !reader.take('=') {
            return reader.fail("expected =");
        }
        tags.push((key, reader.quoted()?));
        if reader.take('}') {
            return Ok(tags);
        }
        if !reader.take(',') {
            return reader.fail("expected , or }");
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
    fn a_name_has_one_value_per_tag() {
        assert!(SeriesName::parse("a{b=[\"c\"]}").is_err());
        assert!(SeriesName::parse("a{b=\"c\"}{d=\"e\"}").is_err());
        assert!(SeriesName::parse("a{b=c}").is_err());
    }

    /// In a pattern, `a!="x"` excludes a value.
    #[test]
    fn a_key_with_an_exclamation_mark_is_quoted() {
        let name = SeriesName::parse("m{a!=\"x\"}").unwrap();
        assert_eq!(name.to_string(), "m{\"a!\"=\"x\"}");
        assert_eq!(SeriesName::parse(&name.to_string()).unwrap(), name);
    }
}
