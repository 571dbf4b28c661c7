//! Topic filters of MQTT 5 (4.7 and 4.8.2).
//!
//! - `+` matches one level, including an empty one; `#`, only at the end, matches the level before it and all levels
//!   below.
//! - A filter that begins with a wildcard matches no topic that begins with `$`, unless this is requested
//!   ([`Filter::with_dollar_topics`]).
//! - A leading `/` makes an empty first level.
//! - `$share/group/filter` is a shared subscription: it matches the topics of `filter`, but gets no retained messages.

use crate::topics::key::{BEHIND, SEPARATOR, check_len, refused};
use tidalite_pager::Result;

const SHARE: &str = "$share/";

/// One level of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Name(Box<[u8]>),
    Any,
}

/// A topic filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    text: String,
    /// Length in bytes of the group of a shared subscription.
    group_len: Option<usize>,
    /// The levels, without a `#` at the end.
    pub(super) levels: Vec<Level>,
    /// Whether a `#` follows the levels.
    pub(super) has_rest: bool,
    /// Whether wildcards at the beginning also match topics that begin with `$`.
    has_dollar_topics: bool,
}

impl Filter {
    /// Parses a filter.
    ///
    /// # Errors
    /// `Limit` for a filter that is too long; `InvalidName` for any other text that is not a filter.
    pub fn parse(text: &str) -> Result<Self> {
        let bytes = text.as_bytes();
        check_len(bytes)?;
        if bytes.contains(&0) {
            return Err(refused(bytes, "a filter without NUL"));
        }
        let (mut group_len, mut filter) = (None, text);
        if let Some(shared) = text.strip_prefix(SHARE) {
            match shared.split_once('/') {
                Some((group, rest))
                    if !group.is_empty() && !group.contains(['+', '#']) && !rest.is_empty() =>
                {
                    (group_len, filter) = (Some(group.len()), rest);
                }
                _ => {
                    return Err(refused(
                        bytes,
                        "$share/, a group without wildcards, / and a filter",
                    ));
                }
            }
        }
        let (mut levels, mut has_rest) = (Vec::new(), false);
        for level in filter.split('/') {
            if has_rest {
                return Err(refused(bytes, "# at the end only"));
            }
            match level {
                "#" => has_rest = true,
                "+" => levels.push(Level::Any),
                name if name.contains(['+', '#']) => {
                    return Err(refused(
                        bytes,
                        "a wildcard as the only character of its level",
                    ));
                }
                name => levels.push(Level::Name(name.as_bytes().into())),
            }
        }
        Ok(Self {
            text: text.to_owned(),
            group_len,
            levels,
            has_rest,
            has_dollar_topics: false,
        })
    }

    /// Returns the same filter, but with wildcards at its beginning that also match topics that begin with `$`. In MQTT
    /// they do not, so no MQTT filter finds all topics.
    ///
    /// ```
    /// use tidalite_messages::Filter;
    /// let all = Filter::parse("#")?;
    /// assert!(!all.matches("$SYS/uptime"));
    /// assert!(all.with_dollar_topics().matches("$SYS/uptime"));
    /// # Ok::<(), tidalite_pager::Error>(())
    /// ```
    #[must_use]
    pub fn with_dollar_topics(self) -> Self {
        Self {
            has_dollar_topics: true,
            ..self
        }
    }

    /// Whether the filter was created by [`with_dollar_topics`](Self::with_dollar_topics).
    pub(super) fn has_dollar_topics(&self) -> bool {
        self.has_dollar_topics
    }

    /// The text of the filter, as it was given.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The group of a shared subscription; `None` for any other filter.
    #[must_use]
    pub fn group(&self) -> Option<&str> {
        self.text.get(SHARE.len()..SHARE.len() + self.group_len?)
    }

    /// Whether the filter is a shared subscription, which gets no retained messages.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.group_len.is_some()
    }

    /// Whether the filter matches a topic. For a shared subscription, the part after the group is compared.
    #[must_use]
    pub fn matches(&self, topic: &str) -> bool {
        !topic.is_empty() && self.matches_split(topic.as_bytes(), b'/')
    }

    /// Like `matches`, for the key of a topic.
    pub(super) fn matches_key(&self, key: &[u8]) -> bool {
        self.matches_split(key, SEPARATOR)
    }

    fn matches_split(&self, topic: &[u8], separator: u8) -> bool {
        if topic.first() == Some(&b'$') && self.hides_dollar_topics() {
            return false;
        }
        let mut found = topic.split(|byte| *byte == separator);
        for level in &self.levels {
            match (level, found.next()) {
                (_, None) => return false,
                (Level::Name(name), Some(found)) if **name != *found => return false,
                _ => {}
            }
        }
        self.has_rest || found.next().is_none()
    }

    /// Whether the filter matches no topic that begins with `$`, because it begins with a wildcard.
    pub(super) fn hides_dollar_topics(&self) -> bool {
        !self.has_dollar_topics && self.levels.first().is_none_or(|level| *level == Level::Any)
    }

    /// The end of the range of keys that match `#`, or a topic followed by `/#`. The inner `None` means the end of the
    /// table.
    pub(super) fn range_end(&self) -> Option<Option<Vec<u8>>> {
        if !self.has_rest || self.levels.contains(&Level::Any) {
            return None;
        }
        let mut end = Vec::new();
        self.put_names(0, &mut end);
        end.push(BEHIND);
        Some((!self.levels.is_empty()).then_some(end))
    }

    /// Appends the names of the levels beginning with `from`, up to the first wildcard: this is the least continuation
    /// of a matching key. Every level except the first is preceded by a separator.
    pub(super) fn put_names(&self, from: usize, key: &mut Vec<u8>) {
        for (index, level) in self.levels.iter().enumerate().skip(from) {
            if index > 0 {
                key.push(SEPARATOR);
            }
            match level {
                Level::Name(name) => key.extend_from_slice(name),
                Level::Any => break,
            }
        }
    }
}

/// Whether a filter matches a topic.
///
/// # Errors
/// As for [`Filter::parse`].
pub fn matches(filter: &str, topic: &str) -> Result<bool> {
    Ok(Filter::parse(filter)?.matches(topic))
}
