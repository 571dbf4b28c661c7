//! Names and their escapes.

use std::borrow::Cow;

/// Offset of the first of these bytes that no backslash precedes.
pub(crate) fn find(text: &str, wanted: impl Fn(u8) -> bool) -> Option<usize> {
    let bytes = text.as_bytes();
    let is_escaped = |at: usize| {
        at.checked_sub(1)
            .is_some_and(|before| bytes[before] == b'\\')
    };
    (0..bytes.len()).find(|&at| wanted(bytes[at]) && !is_escaped(at))
}

/// Removes the backslashes before these characters.
pub(crate) fn unescaped(text: &str, escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match rest.peek() {
            Some(&next) if c == '\\' && escaped(next) => {
                plain.push(next);
                rest.next();
            }
            _ => plain.push(c),
        }
    }
    Cow::Owned(plain)
}

/// Removes the escapes of a key or of the value of a tag.
pub(crate) fn name(text: &str) -> Cow<'_, str> {
    unescaped(text, |c| matches!(c, ',' | '=' | ' '))
}

/// Removes the escapes of a measurement.
pub(crate) fn measurement(text: &str) -> Cow<'_, str> {
    unescaped(text, |c| matches!(c, ',' | ' '))
}
