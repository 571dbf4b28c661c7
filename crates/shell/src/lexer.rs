//! Splits SQL text into tokens, as needed to separate and colour statements.

use std::ops::Range;

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Blanks and line ends.
    Space,
    /// A comment: `-- to the end of the line` or `/* nested */`.
    Comment,
    /// A string: `'text'`, `E'text'` or `$tag$text$tag$`.
    String,
    /// A quoted name: `"name"` or `` `name` ``.
    Quoted,
    /// A keyword or a name without quotes.
    Word,
    /// A number.
    Number,
    /// A semicolon.
    Semicolon,
    /// An operator or other punctuation, one character.
    Other,
}

/// A token and its place in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub kind: Kind,
    /// Range of bytes in the text.
    pub range: Range<usize>,
    /// False if the text ends before the end of a string, quoted name or block comment.
    pub complete: bool,
}

/// Iterates over the tokens of a text. The tokens cover the text without gaps.
pub(crate) fn tokens(text: &str) -> Tokens<'_> {
    Tokens { text, at: 0 }
}

/// The iterator over the tokens of a text.
pub(crate) struct Tokens<'t> {
    text: &'t str,
    at: usize,
}

impl Iterator for Tokens<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        let rest = &self.text[self.at..];
        let first = rest.chars().next()?;
        let (kind, length) = scan(rest, first);
        let start = self.at;
        self.at += length.unwrap_or(rest.len());
        Some(Token {
            kind,
            range: start..self.at,
            complete: length.is_some(),
        })
    }
}

/// The kind and the length of the token at the start of a text; `None` as the length if the text ends inside the token.
fn scan(rest: &str, first: char) -> (Kind, Option<usize>) {
    match first {
        ';' => (Kind::Semicolon, Some(1)),
        '\'' => (Kind::String, quoted(rest, 1, '\'', false)),
        'e' | 'E' if rest[1..].starts_with('\'') => (Kind::String, quoted(rest, 2, '\'', true)),
        '"' | '`' => (Kind::Quoted, quoted(rest, 1, first, false)),
        '$' => match dollar_tag(rest) {
            Some(tag) => {
                let end = rest[tag.len()..].find(tag);
                (Kind::String, end.map(|end| end + 2 * tag.len()))
            }
            None => (Kind::Other, Some(1)),
        },
        '-' if rest.starts_with("--") => {
            (Kind::Comment, Some(rest.find('\n').unwrap_or(rest.len())))
        }
        '/' if rest.starts_with("/*") => (Kind::Comment, block_comment(rest)),
        '.' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => {
            (Kind::Number, Some(number(rest)))
        }
        c if c.is_ascii_digit() => (Kind::Number, Some(number(rest))),
        c if c.is_whitespace() => (Kind::Space, Some(run(rest, char::is_whitespace))),
        c if is_name(c) => (Kind::Word, Some(run(rest, |c| is_name(c) || c == '$'))),
        c => (Kind::Other, Some(c.len_utf8())),
    }
}

/// True for the characters of names without quotes.
pub(crate) fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Number of bytes at the start of a text whose characters satisfy a condition.
fn run(text: &str, mut condition: impl FnMut(char) -> bool) -> usize {
    text.find(|c| !condition(c)).unwrap_or(text.len())
}

/// Length of a quoted text. The quote character is doubled inside, or optionally escaped by a backslash.
fn quoted(text: &str, start: usize, quote: char, backslash: bool) -> Option<usize> {
    let mut chars = text[start..].char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c == '\\' && backslash {
            chars.next();
        } else if c == quote && chars.next_if(|(_, next)| *next == quote).is_none() {
            return Some(start + at + quote.len_utf8());
        }
    }
    None
}

/// The opening tag of a dollar-quoted string at the start of a text: `$$` or `$tag$`.
fn dollar_tag(text: &str) -> Option<&str> {
    let name = run(&text[1..], is_name);
    let is_tag =
        text[1 + name..].starts_with('$') && !text[1..].starts_with(|c: char| c.is_ascii_digit());
    is_tag.then(|| &text[..name + 2])
}

/// Length of a block comment; such comments nest.
fn block_comment(text: &str) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return Some(at);
            }
        } else {
            at += 1;
        }
    }
    None
}

/// Length of a number: digits with a fraction and an exponent, or hexadecimal.
fn number(text: &str) -> usize {
    let mut previous = ' ';
    run(text, |c| {
        let sign = matches!(c, '+' | '-') && matches!(previous, 'e' | 'E');
        previous = c;
        sign || c == '.' || is_name(c)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kinds and texts of all tokens except spaces; `!` marks an incomplete one.
    fn shown(text: &str) -> Vec<String> {
        let shown = tokens(text).filter(|token| token.kind != Kind::Space);
        shown
            .map(|token| {
                let end = if token.complete { "" } else { "!" };
                format!("{:?} {}{end}", token.kind, &text[token.range])
            })
            .collect()
    }

    #[test]
    fn tokens_cover_the_text() {
        let text = "SELECT 'a;b', \"c\" /* x */ -- y\n+ 1e-3 $$q$$ ; ä";
        let all: String = tokens(text).map(|token| &text[token.range]).collect();
        assert_eq!(all, text);
    }

    #[test]
    fn quotes_end_at_single_quotes_only() {
        assert_eq!(shown("'it''s' x"), ["String 'it''s'", "Word x"]);
        assert_eq!(shown("'a\\' x"), ["String 'a\\'", "Word x"]);
        assert_eq!(shown("E'a\\'b' x"), ["String E'a\\'b'", "Word x"]);
        assert_eq!(shown("\"a\"\"b\" `c`"), ["Quoted \"a\"\"b\"", "Quoted `c`"]);
        assert_eq!(shown("'open; "), ["String 'open; !"]);
    }

    #[test]
    fn dollar_quotes_need_a_tag() {
        assert_eq!(shown("$$a;'b$$ 1"), ["String $$a;'b$$", "Number 1"]);
        assert_eq!(shown("$f$a $$ b$f$"), ["String $f$a $$ b$f$"]);
        assert_eq!(shown("$1;"), ["Other $", "Number 1", "Semicolon ;"]);
        assert_eq!(shown("$f$ open $$"), ["String $f$ open $$!"]);
        assert_eq!(shown("a$b$c"), ["Word a$b$c"]);
    }

    #[test]
    fn comments_nest_and_may_be_open() {
        assert_eq!(
            shown("/* a /* b */ c */ d"),
            ["Comment /* a /* b */ c */", "Word d"]
        );
        assert_eq!(shown("/* a /* b */"), ["Comment /* a /* b */!"]);
        assert_eq!(shown("-- ; '\nx"), ["Comment -- ; '", "Word x"]);
        assert_eq!(shown("-- end"), ["Comment -- end"]);
    }

    #[test]
    fn numbers_have_fractions_and_exponents() {
        assert_eq!(
            shown("1.5e-3+.5"),
            ["Number 1.5e-3", "Other +", "Number .5"]
        );
        assert_eq!(shown("1-2"), ["Number 1", "Other -", "Number 2"]);
        assert_eq!(shown("0xff"), ["Number 0xff"]);
    }
}
