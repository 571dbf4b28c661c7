//! Patterns: `*` matches any characters, `?` matches one, and a character after `\` matches itself.

use std::str::Chars;

/// Whether the whole text matches a pattern.
///
/// # Cost
/// At most the product of the two lengths; for usual patterns about the length of the text.
pub(super) fn matches(text: &str, pattern: &str) -> bool {
    let (mut text, mut pattern) = (text.chars(), pattern.chars());
    // The remaining text and pattern after the last `*`. If the match fails later, the `*` matches one more character
    // and the match is tried again. Earlier `*` need no second try, because the last one can match any characters that
    // they could.
    let mut last: Option<(Chars<'_>, Chars<'_>)> = None;
    loop {
        let is_match = match pattern.next() {
            Some('*') => {
                last = Some((text.clone(), pattern.clone()));
                true
            }
            Some(symbol) => {
                let Some(letter) = text.next() else {
                    return false;
                };
                match symbol {
                    '?' => true,
                    '\\' => letter == pattern.next().unwrap_or('\\'),
                    symbol => letter == symbol,
                }
            }
            None if text.as_str().is_empty() => return true,
            None => false,
        };
        if is_match {
            continue;
        }
        let Some((rest, behind)) = &mut last else {
            return false;
        };
        if behind.as_str().is_empty() {
            return true;
        }
        if rest.next().is_none() {
            return false;
        }
        (text, pattern) = (rest.clone(), behind.clone());
    }
}
