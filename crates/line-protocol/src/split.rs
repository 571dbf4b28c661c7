//! Divides a text into lines. A string may contain line feeds, so a line does not end at every one.

/// The part of a line to which the next byte belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// At the beginning of a line.
    #[default]
    Begin,
    /// In a comment.
    Comment,
    /// In the measurement or the tags.
    Key,
    /// Among the fields.
    Fields,
    /// After the equals sign of a field: a quote opens a string here.
    Value,
    /// In a string.
    String,
}

/// Finds the ends of lines byte by byte, in a text that arrives in parts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scanner {
    place: Place,
    /// Whether the previous byte is a backslash that escapes the next one.
    escaped: bool,
}

impl Scanner {
    /// Takes the next byte; returns whether it ends a line.
    pub fn next(&mut self, byte: u8) -> bool {
        let escaped = std::mem::take(&mut self.escaped);
        // In a string a backslash can escape a backslash; elsewhere every one may escape the next character.
        self.escaped = byte == b'\\' && !(escaped && self.place == Place::String);
        if byte == b'\n' && self.place != Place::String {
            *self = Self::default();
            return true;
        }
        self.place = match (self.place, byte) {
            (Place::Begin, b'#') => Place::Comment,
            (Place::Begin, b' ' | b'\t' | b'\r') => Place::Begin,
            (Place::Key, b' ') if !escaped => Place::Fields,
            (Place::Begin, _) => Place::Key,
            (Place::Fields, b'=') if !escaped => Place::Value,
            (Place::Value, b'"') => Place::String,
            (Place::Value, _) => Place::Fields,
            (Place::String, b'"') if !escaped => Place::Fields,
            (same, _) => same,
        };
        false
    }

    /// Whether the next byte is in a string, in which a line feed ends no line.
    #[must_use]
    pub fn is_in_string(&self) -> bool {
        self.place == Place::String
    }
}

/// Divides a text into lines, each with its offset and with the line feed at its end.
#[must_use]
pub fn lines(text: &[u8]) -> Lines<'_> {
    Lines { text, at: 0 }
}

/// An iterator over the lines of a text.
#[derive(Clone, Debug)]
pub struct Lines<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Lines<'a> {
    type Item = (usize, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (start, rest) = (self.at, self.text.get(self.at..)?);
        if rest.is_empty() {
            return None;
        }
        // A line without a quote ends at its first line feed.
        let first = rest.iter().position(|byte| matches!(byte, b'\n' | b'"'));
        let length = match first {
            None => rest.len(),
            Some(end) if rest[end] == b'\n' => end + 1,
            Some(_) => {
                let mut scanner = Scanner::default();
                let end = rest.iter().position(|byte| scanner.next(*byte));
                end.map_or(rest.len(), |end| end + 1)
            }
        };
        self.at += length;
        Some((start, &rest[..length]))
    }
}
