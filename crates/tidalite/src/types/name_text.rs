//! The words and quoted texts of names and patterns: reading and writing them.

use std::borrow::Cow;
use std::fmt;

/// True for a character that a word may contain without quotes.
pub(crate) fn is_bare(c: char) -> bool {
    if c.is_ascii() {
        // Most characters of most names.
        return c.is_ascii_graphic()
            && !matches!(c, '{' | '}' | '"' | ',' | '=' | '*' | '?' | '\\');
    }
    !c.is_whitespace() && !c.is_control()
}

/// Writes a word, in quotes only if necessary.
pub(crate) fn write_word(f: &mut fmt::Formatter<'_>, word: &str) -> fmt::Result {
    if !word.is_empty() && word.chars().all(is_bare) {
        f.write_str(word)
    } else {
        write_quoted(f, word)
    }
}

/// Writes the key of a tag. Unlike other words, a key with `!` is quoted, because `a!="x"` is a condition in a pattern.
pub(crate) fn write_key(f: &mut fmt::Formatter<'_>, key: &str) -> fmt::Result {
    if key.contains('!') {
        write_quoted(f, key)
    } else {
        write_word(f, key)
    }
}

pub(crate) fn write_quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    let mut rest = text;
    let is_escaped = |byte: u8| matches!(byte, b'"' | b'\\' | b'\n' | b'\t' | b'\r');
    while let Some(at) = rest.bytes().position(is_escaped) {
        f.write_str(&rest[..at])?;
        f.write_str(match rest.as_bytes()[at] {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\t' => "\\t",
            _ => "\\r",
        })?;
        rest = &rest[at + 1..];
    }
    f.write_str(rest)?;
    f.write_str("\"")
}

/// A problem in a text, with its place and the next step.
#[derive(Debug)]
pub(crate) struct Problem {
    /// Position of the problem in the text, in characters from 0.
    pub at: usize,
    /// Description of the problem.
    pub what: Cow<'static, str>,
    /// The text to write instead; empty if the description names it.
    pub next: &'static str,
}

/// A result of reading, before the error names the whole text.
pub(crate) type Read<T> = Result<T, Problem>;

/// A position in a text that is being read.
pub(crate) struct TextReader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> TextReader<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The text from the position on.
    pub(crate) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// The position in bytes, for `fail_at`.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Moves past the next `len` bytes, which must end between two characters.
    pub(crate) fn skip(&mut self, len: usize) {
        self.at += len;
    }

    pub(crate) fn fail<T>(&self, what: impl Into<Cow<'static, str>>) -> Read<T> {
        self.fail_at(self.at, what, "")
    }

    /// The error for a problem at this byte of the text.
    pub(crate) fn fail_at<T>(
        &self,
        at: usize,
        what: impl Into<Cow<'static, str>>,
        next: &'static str,
    ) -> Read<T> {
        Err(Problem {
            at: self.text[..at].chars().count(),
            what: what.into(),
            next,
        })
    }

    /// Skips white space, and returns the next character.
    pub(crate) fn peek(&mut self) -> Option<char> {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
        self.rest().chars().next()
    }

    /// Skips white space, and this character if it is next.
    pub(crate) fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    /// Reads the longest text whose characters are all accepted; it may be empty.
    pub(crate) fn run(&mut self, accepts: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let len = rest.find(|c| !accepts(c)).unwrap_or(rest.len());
        self.at += len;
        &rest[..len]
    }

    /// Reads a quoted text, or a word of accepted characters.
    pub(crate) fn word(&mut self, accepts: impl Fn(char) -> bool) -> Read<String> {
        if self.peek() == Some('"') {
            return self.quoted();
        }
        match self.run(accepts) {
            "" => self.fail("expected a word or a quoted text"),
            word => Ok(word.to_owned()),
        }
    }

    pub(crate) fn quoted(&mut self) -> Read<String> {
        if !self.take('"') {
            return self.fail("expected a quoted text");
        }
        let mut out = String::new();
        let mut rest = self.rest();
        while let Some(at) = rest.bytes().position(|byte| matches!(byte, b'"' | b'\\')) {
            out.push_str(&rest[..at]);
            let behind = &rest[at + 1..];
            if rest.as_bytes()[at] == b'"' {
                self.at = self.text.len() - behind.len();
                return Ok(out);
            }
            out.push(match behind.as_bytes().first() {
                Some(escaped @ (b'"' | b'\\')) => char::from(*escaped),
                Some(b'n') => '\n',
                Some(b't') => '\t',
                Some(b'r') => '\r',
                _ => {
                    let next = r#"the escapes are \" \\ \n \t \r; a regular expression needs \\ for each \"#;
                    let at = self.text.len() - behind.len() - 1;
                    return self.fail_at(at, "unknown escape", next);
                }
            });
            rest = &behind[1..];
        }
        self.fail("quoted text without an end")
    }

    pub(crate) fn end(&mut self) -> Read<()> {
        match self.peek() {
            None => Ok(()),
            Some(_) => self.fail("unexpected text"),
        }
    }
}
