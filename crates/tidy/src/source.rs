//! Splits a Rust file into code and comments, without a parser, and lists its identifiers and functions. The result is
//! good enough for questions about words and lines, not about grammar.

/// The code and the comments of a file: two copies of the text, each with everything else replaced by blanks, so that
/// lines and columns match the file. Strings and character literals are in neither copy.
#[derive(Debug)]
pub struct Source {
    /// The text with everything except code replaced by blanks.
    pub code: String,
    /// The text with everything except comments replaced by blanks.
    pub comments: String,
}

/// A function in a file: its name, the line of its `fn`, and its length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Name of the function.
    pub name: String,
    /// Line of the keyword `fn`, counted from 1.
    pub line: usize,
    /// Number of lines from `fn` to the closing brace.
    pub lines: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Code,
    Comment,
    Literal,
}

impl Source {
    /// Splits the text of a file into code and comments.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let chars: Vec<char> = text.chars().collect();
        let mut source = Self {
            code: String::with_capacity(text.len()),
            comments: String::new(),
        };
        let mut at = 0;
        while at < chars.len() {
            let (part, end) = token(&chars, at);
            for &c in &chars[at..end] {
                let blank = if c == '\n' { '\n' } else { ' ' };
                source.code.push(if part == Part::Code { c } else { blank });
                source
                    .comments
                    .push(if part == Part::Comment { c } else { blank });
            }
            at = end;
        }
        source
    }

    /// The identifiers and keywords of the code.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        words(&self.code)
    }

    /// All functions with a body, in the order of the file, including nested functions.
    #[must_use]
    pub fn functions(&self) -> Vec<Function> {
        let bytes = self.code.as_bytes();
        let mut found = Vec::new();
        for (at, word) in word_indices(&self.code) {
            if word != "fn" {
                continue;
            }
            let Some((_, name)) = word_indices(&self.code[at + 2..]).next() else {
                continue;
            };
            let Some(end) = body_end(bytes, at) else {
                continue;
            };
            let before = line_of(&self.code, at);
            found.push(Function {
                name: name.to_string(),
                line: before,
                lines: line_of(&self.code, end) - before + 1,
            });
        }
        found
    }
}

/// The byte offset of the brace that closes the body of the function whose `fn` is at `at`; `None` for a declaration
/// or a function type.
fn body_end(code: &[u8], at: usize) -> Option<usize> {
    let mut inside = 0i32;
    let mut depth = 0i32;
    for (i, &byte) in code.iter().enumerate().skip(at) {
        match byte {
            b'(' | b'[' => inside += 1,
            b')' | b']' => {
                inside -= 1;
                // A function type among parameters: the parameter list that contains it ends before any body.
                if inside < 0 && depth == 0 {
                    return None;
                }
            }
            b';' if inside == 0 && depth == 0 => return None,
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth <= 0 {
                    return (depth == 0).then_some(i);
                }
            }
            _ => {}
        }
    }
    None
}

/// The kind of the token that begins at `at`, and the offset of the token's end.
fn token(chars: &[char], at: usize) -> (Part, usize) {
    let next = |ahead: usize| chars.get(at + ahead).copied();
    let (part, end) = match chars[at] {
        '/' if next(1) == Some('/') => (Part::Comment, until(chars, at, '\n')),
        '/' if next(1) == Some('*') => (Part::Comment, block_comment(chars, at)),
        '"' => (Part::Literal, string(chars, at)),
        'r' if at == 0 || !is_word(chars[at - 1]) || chars[at - 1] == 'b' => {
            let marks = chars[at + 1..].iter().take_while(|&&c| c == '#').count();
            if chars.get(at + 1 + marks) == Some(&'"') {
                (Part::Literal, raw_string(chars, at + 1 + marks, marks))
            } else {
                (Part::Code, at + 1)
            }
        }
        '\'' if next(1) == Some('\\') => (Part::Literal, until(chars, at + 3, '\'') + 1),
        '\'' if next(2) == Some('\'') => (Part::Literal, at + 3),
        _ => (Part::Code, at + 1),
    };
    (part, end.min(chars.len()))
}

fn until(chars: &[char], from: usize, end: char) -> usize {
    let found = chars.iter().skip(from).position(|&c| c == end);
    found.map_or(chars.len(), |ahead| from + ahead)
}

fn string(chars: &[char], at: usize) -> usize {
    let mut i = at + 1;
    while i < chars.len() {
        match chars[i] {
            '\\' => i += 2,
            '"' => return i + 1,
            _ => i += 1,
        }
    }
    chars.len()
}

fn raw_string(chars: &[char], quote: usize, marks: usize) -> usize {
    let mut i = quote + 1;
    while i < chars.len() {
        let tail = &chars[i + 1..];
        if chars[i] == '"' && tail.len() >= marks && tail[..marks].iter().all(|&c| c == '#') {
            return i + 1 + marks;
        }
        i += 1;
    }
    chars.len()
}

fn block_comment(chars: &[char], at: usize) -> usize {
    let mut depth = 0;
    let mut i = at;
    while i + 1 < chars.len() {
        match (chars[i], chars[i + 1]) {
            ('/', '*') => (depth, i) = (depth + 1, i + 2),
            ('*', '/') => (depth, i) = (depth - 1, i + 2),
            _ => i += 1,
        }
        if depth == 0 {
            return i;
        }
    }
    chars.len()
}

pub(crate) fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The identifiers, keywords and numbers of a text.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_word(c)).filter(|word| !word.is_empty())
}

/// Like [`words`], but returns each word with its byte offset.
pub fn word_indices(text: &str) -> impl Iterator<Item = (usize, &str)> {
    words(text).map(|word| (word.as_ptr() as usize - text.as_ptr() as usize, word))
}

/// The line number of a byte offset, counted from 1.
#[must_use]
pub fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at]
        .iter()
        .filter(|&&b| b == b'\n')
        .count()
        + 1
}

/// The text of a file without the test module at its end.
#[must_use]
pub fn without_tests(text: &str) -> &str {
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_end() == "#[cfg(test)]" {
            return &text[..end];
        }
        end += line.len();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_not_code() {
        let text = r####"let a = "unsafe // no"; // unsafe
let b = r#"un"safe"#; /* unsafe /* nested */ unsafe */ let c = '"'; let d: &'static str = b"\"x";
let e = '\''; done();"####;
        let source = Source::new(text);
        assert!(
            !source.words().any(|word| word == "unsafe"),
            "{}",
            source.code
        );
        for word in ["a", "b", "c", "d", "e", "static", "done"] {
            assert!(source.words().any(|found| found == word), "{word}");
        }
        assert!(source.comments.contains("nested"));
        assert_eq!(source.code.lines().count(), text.lines().count());
    }

    #[test]
    fn functions_are_measured_from_fn_to_the_brace() {
        let text = "trait T { fn declared(&self); }\nfn outer(f: fn(u8) -> u8) {\n    fn inner() {}\n    if a { b }\n}\n";
        let found = Source::new(text).functions();
        let expect = |name: &str, line, lines| Function {
            name: name.to_string(),
            line,
            lines,
        };
        assert!(found.contains(&expect("outer", 2, 4)), "{found:?}");
        assert!(found.contains(&expect("inner", 3, 1)), "{found:?}");
        assert!(!found.iter().any(|function| function.name == "declared"));
    }
}
