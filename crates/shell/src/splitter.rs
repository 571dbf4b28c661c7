//! Separates input into statements and dot commands.
//!
//! A statement ends at a semicolon outside quotes and comments. A dot command is a line that begins with a dot at a
//! position where a statement could begin; it ends at the end of the line.

use crate::lexer::{Kind, tokens};

/// A part of the input that can be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// A statement without its semicolon and without the comments before it.
    Statement(Statement),
    /// A dot command without surrounding blanks.
    Command(String),
}

/// A statement and its place in the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    pub text: String,
    /// Line in the input at which it begins, counted from 1.
    pub line: usize,
}

/// Collects input, and returns statements as soon as they are complete.
///
/// Cost: every token is scanned once. A token that is still incomplete, such as a string of several lines, is scanned
/// again whenever input is added.
#[derive(Debug)]
pub(crate) struct Splitter {
    /// Input that is not part of a returned piece yet.
    pending: String,
    /// Number of bytes of `pending` that need not be scanned again.
    scanned: usize,
    /// Start of the statement in `pending`, if it has begun.
    start: Option<usize>,
    /// Line in the input at which `pending` begins.
    line: usize,
}

impl Splitter {
    pub(crate) fn new() -> Self {
        Self {
            pending: String::new(),
            scanned: 0,
            start: None,
            line: 1,
        }
    }

    /// Adds input, which must consist of whole lines; otherwise a token could be split.
    pub(crate) fn push(&mut self, text: &str) {
        self.pending.push_str(text);
    }

    /// Removes the first complete piece from the input and returns it. At the end of the input, a statement needs no
    /// semicolon.
    pub(crate) fn next(&mut self, at_end: bool) -> Option<Piece> {
        loop {
            let from = self.scanned;
            let rest = &self.pending[from..];
            let Some(token) = tokens(rest).next() else {
                break;
            };
            if !token.complete {
                self.start.get_or_insert(from);
                break;
            }
            let end = from + token.range.end;
            match (token.kind, self.start) {
                (Kind::Semicolon, Some(start)) => return Some(self.statement(start, from, end)),
                (Kind::Semicolon, None) => self.discard(end),
                (Kind::Other, None) if rest.starts_with('.') => {
                    let end = rest.find('\n').map_or(rest.len(), |at| at + 1);
                    let command = rest[..end].trim_end().to_owned();
                    self.discard(from + end);
                    return Some(Piece::Command(command));
                }
                (Kind::Space | Kind::Comment, _) => self.scanned = end,
                (_, start) => {
                    self.start = Some(start.unwrap_or(from));
                    self.scanned = end;
                }
            }
        }
        match self.start {
            Some(start) if at_end => {
                let all = self.pending.len();
                Some(self.statement(start, all, all))
            }
            _ => None,
        }
    }

    /// Removes a statement from the input: the statement is the text from `start` to `end`, and everything before
    /// `next` is removed.
    fn statement(&mut self, start: usize, end: usize, next: usize) -> Piece {
        let text = self.pending[start..end].trim_end().to_owned();
        let line = self.line + line_ends(&self.pending[..start]);
        self.discard(next);
        Piece::Statement(Statement { text, line })
    }

    /// Removes input that is not needed by later pieces.
    fn discard(&mut self, bytes: usize) {
        self.line += line_ends(&self.pending[..bytes]);
        self.pending.drain(..bytes);
        (self.scanned, self.start) = (0, None);
    }
}

fn line_ends(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

/// True if a text consists of complete pieces only, so that an editor need not ask for another line.
pub(crate) fn is_complete(text: &str) -> bool {
    let mut splitter = Splitter::new();
    splitter.push(text);
    while splitter.next(false).is_some() {}
    splitter.start.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pieces of a text that is added line by line: for each statement its line and its text, and the commands.
    fn pieces(text: &str) -> Vec<String> {
        let mut splitter = Splitter::new();
        let mut found = Vec::new();
        let mut add = |piece| match piece {
            Piece::Statement(statement) => {
                found.push(format!("{}: {}", statement.line, statement.text));
            }
            Piece::Command(command) => found.push(command),
        };
        for line in text.split_inclusive('\n') {
            splitter.push(line);
            while let Some(piece) = splitter.next(false) {
                add(piece);
            }
        }
        while let Some(piece) = splitter.next(true) {
            add(piece);
        }
        found
    }

    #[test]
    fn semicolons_separate_statements() {
        assert_eq!(pieces("a; b ;c"), ["1: a", "1: b", "1: c"]);
        assert_eq!(pieces(";; a ;;\n;"), ["1: a"]);
        assert_eq!(pieces(""), [""; 0]);
    }

    #[test]
    fn semicolons_in_quotes_and_comments_do_not() {
        let text = "select ';', \";\" /* ; */ -- ;\n, $$;$$, E'\\';' ; next";
        assert_eq!(
            pieces(text),
            [
                "1: select ';', \";\" /* ; */ -- ;\n, $$;$$, E'\\';'",
                "1: next"
            ]
            .map(|piece| piece.replace("1: next", "2: next"))
        );
        assert_eq!(pieces("'a\n;\nb';\nc;"), ["1: 'a\n;\nb'", "4: c"]);
    }

    #[test]
    fn comments_alone_are_no_statement() {
        assert_eq!(pieces("-- a\n/* b */;\n-- c"), [""; 0]);
        assert_eq!(pieces("-- a\n\n  b\n;"), ["3: b"]);
    }

    #[test]
    fn a_dot_begins_a_command_only_where_a_statement_begins() {
        assert_eq!(
            pieces(".mode csv ; \nselect a\n.b;\n  .quit\n"),
            [".mode csv ;", "2: select a\n.b", ".quit"]
        );
        assert_eq!(pieces("a; .timer on\nb"), ["1: a", ".timer on", "2: b"]);
    }

    #[test]
    fn an_open_string_ends_with_the_input() {
        assert_eq!(pieces("select 'a;\nb"), ["1: select 'a;\nb"]);
        assert_eq!(pieces("/* open;"), ["1: /* open;"]);
    }

    #[test]
    fn the_editor_asks_for_another_line_until_a_semicolon() {
        for complete in [
            "",
            "  ",
            "a;",
            "a; b;",
            ".mode csv",
            "-- a",
            "a; -- b",
            "a; .help",
        ] {
            assert!(is_complete(complete), "{complete}");
        }
        for open in ["a", "a; b", "a ';", "a -- ;", "/* a;", "$$ ;", "a\n.mode"] {
            assert!(!is_complete(open), "{open}");
        }
    }
}
