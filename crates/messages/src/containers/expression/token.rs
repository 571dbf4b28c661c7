//! Splits the text of an expression into tokens.

use super::error::{ExpressionError, position};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Integer(u64),
    Float(f64),
    Text(String),
    /// A name without `$`: a field, a function or a word of the language.
    Name(String),
    /// A name after `$` or in backticks: a field.
    Field(String),
    /// An operator or a bracket.
    Symbol(&'static str),
    End,
}

impl Token {
    pub(super) fn is_name(&self, name: &str) -> bool {
        matches!(self, Self::Name(found) if found == name)
    }

    /// The token as it is shown in an error.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Integer(number) => format!("the number {number}"),
            Self::Float(number) => format!("the number {number:?}"),
            Self::Text(text) => format!("the text {}", shortened(text)),
            Self::Name(name) => format!("the name {}", shortened(name)),
            Self::Field(name) => format!("the field {}", shortened(name)),
            Self::Symbol(symbol) => format!("\"{symbol}\""),
            Self::End => "the end".to_owned(),
        }
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((at, _)) => format!("{:?}...", &text[..at]),
        None => format!("{text:?}"),
    }
}

/// All symbols. If one symbol is the beginning of another, the longer one comes first.
const SYMBOLS: [&str; 21] = [
    "&&", "||", "==", "!=", "<=", ">=", "!~", "<", ">", "~", "!", "+", "-", "*", "/", "%", "?",
    ":", "(", ")", ",",
];

/// Common slips, each with the symbol that was probably intended.
const SLIPS: [(&str, &str); 6] = [
    ("===", "\"==\""),
    ("<>", "\"!=\""),
    ("=~", "\"~\""),
    ("=", "\"==\""),
    ("&", "\"&&\""),
    ("|", "\"||\""),
];

/// Reads tokens from a text.
pub(super) struct Tokens<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Tokens<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    /// The next token and the position in bytes at which it begins.
    pub(super) fn next(&mut self) -> Result<(usize, Token), ExpressionError> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        let start = self.at;
        Ok((start, self.token()?))
    }

    fn token(&mut self) -> Result<Token, ExpressionError> {
        let start = self.at;
        let rest = &self.text[start..];
        let Some(first) = rest.chars().next() else {
            return Ok(Token::End);
        };
        match first {
            '0'..='9' => return self.number(),
            '"' | '\'' => return self.quoted(first).map(Token::Text),
            '`' => return self.field(start, Self::quoted_by_backticks),
            '$' => {
                self.at += 1;
                return self.field(start, Self::behind_dollar);
            }
            _ => {}
        }
        if is_letter(first) {
            return Ok(Token::Name(self.name().to_owned()));
        }
        for (slip, meant) in SLIPS {
            if rest.starts_with(slip) && !["==", "&&", "||"].iter().any(|s| is_exactly(rest, s)) {
                let expected = format!("an operator: did you mean {meant}?");
                return Err(self.wrong(start, format!("\"{slip}\""), &expected));
            }
        }
        if let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            self.at += symbol.len();
            return Ok(Token::Symbol(symbol));
        }
        let found = format!("the character {first:?}");
        Err(self.wrong(start, found, "a field, a number, a text or an operator"))
    }

    fn field(
        &mut self,
        start: usize,
        read: fn(&mut Self) -> Result<String, ExpressionError>,
    ) -> Result<Token, ExpressionError> {
        let name = read(self)?;
        if name.is_empty() {
            let found = "a field without a name".to_owned();
            return Err(self.wrong(
                start,
                found,
                "the name of a field behind \"$\" or in backticks",
            ));
        }
        Ok(Token::Field(name))
    }

    fn quoted_by_backticks(&mut self) -> Result<String, ExpressionError> {
        self.quoted('`')
    }

    fn behind_dollar(&mut self) -> Result<String, ExpressionError> {
        match self.text[self.at..].chars().next() {
            Some(quote @ ('"' | '\'')) => self.quoted(quote),
            _ => Ok(self.name().to_owned()),
        }
    }

    /// Reads a name. Its first character is not checked.
    fn name(&mut self) -> &'t str {
        let rest = &self.text[self.at..];
        let mut chars = rest.char_indices().peekable();
        let mut end = 0;
        while let Some((at, letter)) = chars.next() {
            let next_is_letter = chars
                .peek()
                .is_some_and(|(_, next)| is_letter_or_digit(*next));
            if !(is_letter_or_digit(letter) || letter == '.' && at > 0 && next_is_letter) {
                break;
            }
            end = at + letter.len_utf8();
        }
        self.at += end;
        &rest[..end]
    }

    fn digits(&mut self) -> bool {
        let rest = &self.text.as_bytes()[self.at..];
        let len = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += len;
        len > 0
    }

    fn eat(&mut self, bytes: &[u8]) -> bool {
        let found = self.text.as_bytes().get(self.at);
        let is_found = found.is_some_and(|byte| bytes.contains(byte));
        self.at += usize::from(is_found);
        is_found
    }

    fn number(&mut self) -> Result<Token, ExpressionError> {
        let start = self.at;
        self.digits();
        let (mut is_integer, mut is_whole) = (true, true);
        if self.eat(b".") {
            is_integer = false;
            is_whole = self.digits();
        }
        if is_whole && self.eat(b"eE") {
            is_integer = false;
            self.eat(b"+-");
            is_whole = self.digits();
        }
        // `1.5.2` and `12km` are reported as slips instead of being read as two tokens.
        let next = self.text[self.at..].chars().next();
        is_whole &= next.is_none_or(|next| !is_letter_or_digit(next) && next != '.');
        let digits = &self.text[start..self.at];
        if !is_whole {
            let found = format!("the number {}", shortened(digits));
            let expected = "a number such as 12, 1.5 or 1e-3, and no letter behind it; a field whose name begins with a digit needs \"$\" before it";
            return Err(self.wrong(start, found, expected));
        }
        if is_integer {
            let number = digits.parse().map(Token::Integer);
            return number.map_err(|_| {
                let expected =
                    format!("an integer up to {}, or a number with a fraction", u64::MAX);
                self.wrong(
                    start,
                    format!("the number {}", shortened(digits)),
                    &expected,
                )
            });
        }
        let number = digits
            .parse()
            .ok()
            .filter(|number: &f64| number.is_finite());
        number.map(Token::Float).ok_or_else(|| {
            let found = format!("the number {}", shortened(digits));
            self.wrong(
                start,
                found,
                "a number within the range of 64-bit floating-point numbers",
            )
        })
    }

    /// Reads the characters between two `quote`s.
    fn quoted(&mut self, quote: char) -> Result<String, ExpressionError> {
        let start = self.at;
        let mut text = String::new();
        let mut chars = self.text[start..].char_indices().skip(1);
        while let Some((at, letter)) = chars.next() {
            if letter == quote {
                self.at = start + at + letter.len_utf8();
                return Ok(text);
            }
            if letter != '\\' {
                text.push(letter);
                continue;
            }
            let escaped = match chars.next() {
                Some((_, 'n')) => Some('\n'),
                Some((_, 'r')) => Some('\r'),
                Some((_, 't')) => Some('\t'),
                Some((_, letter @ ('\\' | '"' | '\'' | '`'))) => Some(letter),
                Some((_, 'u')) => {
                    let rest = &self.text[start + at + 2..];
                    let digits = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
                    let digits = digits.map(|(digits, _)| digits).filter(|digits| {
                        digits.len() <= 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
                    });
                    let number = digits.and_then(|digits| {
                        // The escape's brackets and digits have been read.
                        chars.nth(digits.len() + 1)?;
                        u32::from_str_radix(digits, 16).ok()
                    });
                    number.and_then(char::from_u32)
                }
                _ => None,
            };
            let Some(escaped) = escaped else {
                let expected = "\\n, \\r, \\t, \\u{1F600}, or \\\\, \\\", \\' or \\`";
                return Err(self.wrong(start + at, "an unknown escape".to_owned(), expected));
            };
            text.push(escaped);
        }
        let expected = format!("another {quote} at its end");
        Err(self.wrong(start, format!("a text that begins with {quote}"), &expected))
    }

    #[cold]
    fn wrong(&self, at: usize, found: String, expected: &str) -> ExpressionError {
        ExpressionError::Syntax {
            at: position(self.text, at),
            found,
            expected: expected.to_owned(),
        }
    }
}

/// Whether a text begins with a symbol that is not followed by `=`, which would turn it into another symbol.
fn is_exactly(text: &str, symbol: &str) -> bool {
    text.strip_prefix(symbol)
        .is_some_and(|rest| !rest.starts_with('='))
}

fn is_letter(letter: char) -> bool {
    letter.is_alphabetic() || letter == '_'
}

fn is_letter_or_digit(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Reserved words; a field with such a name is written with `$`.
pub(super) const WORDS: [&str; 6] = ["in", "true", "false", "null", "time", "received"];

/// Whether a field with this name needs no `$`.
pub(super) fn is_plain(name: &str) -> bool {
    let mut tokens = Tokens::new(name);
    name.starts_with(is_letter) && tokens.name().len() == name.len() && !WORDS.contains(&name)
}
