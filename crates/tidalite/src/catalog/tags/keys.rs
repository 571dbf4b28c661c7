//! Keys of the sets in the index of tags. Each text is followed by an end that no text contains, so keys sort like
//! their texts and no key is a prefix of another.
//!
//! ```text
//! text     the bytes, each 0 as 0 255; then 0 1
//! key      text of the tag key | 0                          series with this tag, whatever its value
//!          text of the tag key | 1 | text of the value      series with this value of the tag
//!          text of the tag key | 2                          series without a name, under the empty key only
//! ```
//!
//! The metric is the value of the empty tag key, which no tag has; the set under the empty key and 0 holds all series.

use crate::types::error::Result;
use std::borrow::Cow;
use std::fmt;
use tidalite_base::Corrupt;

const ANY: u8 = 0;
const VALUE: u8 = 1;
const UNNAMED: u8 = 2;

/// The tag key under which metrics are found.
pub(crate) const METRIC: &str = "";

fn text(text: &str, key: &mut Vec<u8>) {
    for byte in text.bytes() {
        key.push(byte);
        if byte == 0 {
            key.push(255);
        }
    }
}

fn of_key(tag: &str, kind: u8) -> Vec<u8> {
    let mut key = Vec::with_capacity(tag.len() + 16);
    text(tag, &mut key);
    key.extend([0, 1, kind]);
    key
}

/// Key of the set of series with a tag of this key; all series for the empty key.
pub(crate) fn any(tag: &str) -> Vec<u8> {
    of_key(tag, ANY)
}

/// Key of the set of series with this value of a tag.
pub(crate) fn value(tag: &str, value: &str) -> Vec<u8> {
    let mut key = values(tag, value);
    key.extend([0, 1]);
    key
}

/// The beginning of the keys of all values of a tag that begin with `prefix`.
pub(crate) fn values(tag: &str, prefix: &str) -> Vec<u8> {
    let mut key = of_key(tag, VALUE);
    text(prefix, &mut key);
    key
}

/// Key of the set of series without a name.
pub(crate) fn unnamed() -> Vec<u8> {
    of_key(METRIC, UNNAMED)
}

/// The beginning of the keys of all tags whose key begins with `prefix`.
pub(crate) fn tags(prefix: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(prefix.len() + 1);
    text(prefix, &mut key);
    key
}

/// A position after all sets of a tag and before the sets of the next one.
pub(crate) fn after(tag: &str) -> Vec<u8> {
    of_key(tag, u8::MAX)
}

/// The parts of a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SetKey {
    /// Series with a tag of this key.
    Any(String),
    /// Series with a tag of this key and this value.
    Value(String, String),
    /// Series without a name.
    Unnamed,
}

/// The value at the end of the key of a set.
pub(crate) fn value_of(mut text: &[u8]) -> Result<Cow<'_, str>> {
    if let Some((value, [0, 1])) = text.split_last_chunk()
        && !value.contains(&0)
        && let Ok(value) = std::str::from_utf8(value)
    {
        return Ok(Cow::Borrowed(value));
    }
    let key = text;
    let value = take_text(&mut text).filter(|_| text.is_empty());
    Ok(Cow::Owned(value.ok_or_else(|| damaged(key))?))
}

fn damaged(key: &[u8]) -> Corrupt {
    let found = key.escape_ascii().to_string();
    let expected = "a tag, perhaps with a value";
    Corrupt::new("key in the index of tags", 0, found, expected)
}

impl fmt::Display for SetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any(key) if key == METRIC => f.write_str("the database"),
            Self::Any(key) => write!(f, "the tag {key}"),
            Self::Value(key, metric) if key == METRIC => write!(f, "the metric {metric}"),
            Self::Value(key, value) => write!(f, "{key}={value:?}"),
            Self::Unnamed => f.write_str("those without a name"),
        }
    }
}

/// Splits a key.
pub(crate) fn parse(key: &[u8]) -> Result<SetKey> {
    let damaged = || damaged(key);
    let mut rest = key;
    let tag = take_text(&mut rest).ok_or_else(damaged)?;
    let parsed = match rest {
        [ANY] => Some(SetKey::Any(tag)),
        [UNNAMED] if tag.is_empty() => Some(SetKey::Unnamed),
        [VALUE, value @ ..] => {
            rest = value;
            let value = take_text(&mut rest).ok_or_else(damaged)?;
            rest.is_empty().then_some(SetKey::Value(tag, value))
        }
        _ => None,
    };
    Ok(parsed.ok_or_else(damaged)?)
}

fn take_text(rest: &mut &[u8]) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        match rest {
            [0, 255, after @ ..] => {
                bytes.push(0);
                *rest = after;
            }
            [0, 1, after @ ..] => {
                *rest = after;
                return String::from_utf8(bytes).ok();
            }
            [0, ..] | [] => return None,
            [byte, after @ ..] => {
                bytes.push(*byte);
                *rest = after;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_like_their_texts_and_none_is_a_prefix_of_another() {
        let texts = [
            "", "\0", "\0\u{1}", "a", "a\0", "a\0b", "a\u{1}", "ab", "b", "ä",
        ];
        let mut keys = Vec::new();
        for tag in texts {
            keys.push((any(tag), SetKey::Any(tag.to_owned())));
            for own in texts {
                let parts = SetKey::Value(tag.to_owned(), own.to_owned());
                keys.push((value(tag, own), parts));
            }
            if tag.is_empty() {
                keys.push((unnamed(), SetKey::Unnamed));
            }
        }
        for (key, parts) in &keys {
            assert_eq!(parse(key).ok().as_ref(), Some(parts));
            assert!(parse(&key[..key.len() - 1]).is_err());
            if let SetKey::Value(tag, value) = parts {
                let found = value_of(&key[values(tag, "").len()..]);
                assert_eq!(found.ok().as_deref(), Some(value.as_str()));
            }
        }
        for pair in keys.windows(2) {
            assert!(pair[0].0 < pair[1].0, "{:?} {:?}", pair[0].1, pair[1].1);
            assert!(!pair[1].0.starts_with(&pair[0].0));
        }
        assert!(after("a") > value("a", "\u{10ffff}") && after("a") < any("a\0"));
        assert!(value("a", "north west").starts_with(&values("a", "north")));
    }
}
