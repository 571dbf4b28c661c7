//! Reads a pattern.

use crate::types::name_text::{Read, TextReader, is_bare};
use crate::types::pattern::ast::{Condition, Expression, Glob, Pattern, Test, Values, Wanted};

/// Maximum number of `not (` inside each other. Bounds the recursion of parsing, printing and matching.
pub(crate) const PATTERN_DEPTH_MAX: usize = 32;

const CONDITIONS: &str =
    r#"a condition is key="value", !=, =~"regex", !~, in ("a","b"), not in ("a","b") or not (...)"#;

/// Parses the text of a pattern.
pub(crate) fn parse(text: &str) -> Read<Pattern> {
    let mut parser = Parser {
        reader: TextReader::new(text),
    };
    let metric = match parser.reader.peek() {
        None | Some('{') => None,
        Some(_) => Some(parser.glob(is_bare)?),
    };
    let mut sets = Vec::new();
    while parser.reader.take('{') {
        sets.push(match parser.reader.take('}') {
            true => Vec::new(),
            false => parser.conditions('}', 0)?,
        });
    }
    parser.reader.end()?;
    Ok(Pattern { metric, sets })
}

/// A key without quotes has no `!`, which begins `!=` and `!~`.
fn in_key(c: char) -> bool {
    is_bare(c) && c != '!'
}

/// A value without quotes has no brackets: they end and begin lists and groups.
fn in_value(c: char) -> bool {
    is_bare(c) && !"()[]".contains(c)
}

struct Parser<'a> {
    reader: TextReader<'a>,
}

impl Parser<'_> {
    /// Parses conditions up to the closing character.
    fn conditions(&mut self, close: char, depth: usize) -> Read<Vec<Condition>> {
        let mut conditions = vec![self.condition(depth)?];
        while !self.reader.take(close) {
            if !self.reader.take(',') {
                return self.reader.fail(format!("expected , or {close}"));
            }
            conditions.push(self.condition(depth)?);
        }
        Ok(conditions)
    }

    fn condition(&mut self, depth: usize) -> Read<Condition> {
        self.reader.peek();
        let begin = self.reader.at();
        if self.not_and_bracket() {
            if depth == PATTERN_DEPTH_MAX {
                return self.reader.fail_at(
                    begin,
                    format!("more than {PATTERN_DEPTH_MAX} groups inside each other"),
                    "write fewer: not (not (a)) is a",
                );
            }
            return Ok(Condition::Not(self.conditions(')', depth + 1)?));
        }
        let key = self.reader.word(in_key)?;
        if key.is_empty() {
            return self
                .reader
                .fail_at(begin, "the key of a tag has at least one character", "");
        }
        let (negated, test) = self.test(begin, &key)?;
        Ok(Condition::Tag { key, test, negated })
    }

    /// Takes `not (`. The space distinguishes it from a key such as `not(a`.
    fn not_and_bracket(&mut self) -> bool {
        let Some(rest) = self.reader.rest().strip_prefix("not") else {
            return false;
        };
        let bracket = rest.trim_start();
        if !bracket.starts_with('(') || bracket.len() == rest.len() {
            return false;
        }
        self.reader.skip("not".len());
        self.reader.take('(')
    }

    /// Parses an operator and its operand. The key, which begins at byte `begin`, stands before them.
    fn test(&mut self, begin: usize, key: &str) -> Read<(bool, Test)> {
        self.reader.peek();
        let rest = self.reader.rest();
        for (operator, negated) in [("=~", false), ("!~", true)] {
            if rest.starts_with(operator) {
                self.reader.skip(operator.len());
                return Ok((negated, self.expression()?));
            }
        }
        for (operator, negated) in [("=", false), ("!=", true)] {
            if rest.starts_with(operator) {
                self.reader.skip(operator.len());
                return Ok((negated, Test::Values(self.value_or_values()?)));
            }
        }
        let negated = self.keyword("not");
        if self.keyword("in") {
            if !self.reader.take('(') {
                return self.reader.fail("expected ( and a list of values");
            }
            return Ok((negated, Test::Values(self.values(')')?)));
        }
        let space = key
            .starts_with("not(")
            .then_some("a group needs a space: not (...)");
        let at = if space.is_some() {
            begin
        } else {
            self.reader.at()
        };
        self.reader.fail_at(
            at,
            "expected =, !=, =~, !~, in or not in",
            space.unwrap_or(CONDITIONS),
        )
    }

    /// Takes this word if it is next and ends there.
    fn keyword(&mut self, word: &str) -> bool {
        self.reader.peek();
        let Some(after) = self.reader.rest().strip_prefix(word) else {
            return false;
        };
        let ends = !after.starts_with(in_value);
        if ends {
            self.reader.skip(word.len());
        }
        ends
    }

    fn expression(&mut self) -> Read<Test> {
        self.reader.peek();
        let begin = self.reader.at();
        let text = self.reader.quoted()?;
        match Expression::new(text) {
            Ok(expression) => Ok(Test::Expression(expression)),
            Err(problem) => self.reader.fail_at(
                begin,
                format!("an invalid regular expression: {problem}"),
                "the syntax is that of the crate regex-lite",
            ),
        }
    }

    /// Parses one value, or several in brackets, the older form of `in (...)`.
    fn value_or_values(&mut self) -> Read<Values> {
        if self.reader.take('[') {
            return self.values(']');
        }
        let mut values = Values::default();
        self.reader.peek();
        values.insert(self.glob(in_value)?);
        Ok(values)
    }

    /// Parses a list of values up to the closing bracket.
    fn values(&mut self, close: char) -> Read<Values> {
        let mut values = Values::default();
        loop {
            self.reader.peek();
            values.insert(self.glob(in_value)?);
            if self.reader.take(close) {
                return Ok(values);
            }
            if !self.reader.take(',') {
                return self.reader.fail(format!("expected , or {close}"));
            }
        }
    }

    /// Parses wildcards, accepted characters and quoted texts that follow each other without a space.
    fn glob(&mut self, accepts: impl Fn(char) -> bool) -> Read<Glob> {
        let mut glob = Vec::new();
        let mut any = false;
        loop {
            let run = self.reader.run(|c| accepts(c) || c == '*' || c == '?');
            if !run.is_empty() {
                glob.extend(run.chars().map(|c| match c {
                    '*' => Wanted::Any,
                    '?' => Wanted::One,
                    c => Wanted::Char(c),
                }));
            } else if self.reader.rest().starts_with('"') {
                glob.extend(self.reader.quoted()?.chars().map(Wanted::Char));
            } else if any {
                return Ok(Glob(glob));
            } else {
                return self.reader.fail("expected a word or a quoted text");
            }
            any = true;
        }
    }
}
