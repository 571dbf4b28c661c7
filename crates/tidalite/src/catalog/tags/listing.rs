//! Lists metrics, tag keys and values with the number of series that have each.

use crate::catalog::tags::keys::{self, METRIC, SetKey};
use crate::types::error::Result;
use tidalite_kv::Tree;
use tidalite_pager::PageRead;

/// A metric, a tag key or a tag value, and the number of series that have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagCount {
    /// The metric, the tag key or the value.
    pub text: String,
    /// Number of series.
    pub series: u64,
}

/// How many different tags the series of a database have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cardinality {
    /// Number of series.
    pub series: u64,
    /// Number of different metrics.
    pub metrics: u64,
    /// The tag keys, ascending.
    pub tags: Vec<TagCardinality>,
}

/// How many values a tag has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagCardinality {
    /// Key of the tag.
    pub key: String,
    /// Number of series with this tag.
    pub series: u64,
    /// Number of different values.
    pub values: u64,
}

/// The values of a tag that begin with `prefix`, ascending, at most `limit` of them.
pub(crate) fn values<R: PageRead>(
    tree: &Tree,
    r: &R,
    tag: &str,
    prefix: &str,
    limit: usize,
) -> Result<Vec<TagCount>> {
    let begin = keys::values(tag, prefix);
    let mut found = Vec::new();
    let Some(mut cursor) = tidalite_index::set_cursor(tree, r, &begin)? else {
        return Ok(found);
    };
    let tag = keys::values(tag, "").len();
    while found.len() < limit && cursor.key().starts_with(&begin) {
        let text = keys::value_of(&cursor.key()[tag..])?.into_owned();
        let mut series = 0;
        let more = cursor.count_to(&mut series)?;
        found.push(TagCount { text, series });
        if !more {
            break;
        }
    }
    Ok(found)
}

/// The tag keys that begin with `prefix`, ascending, at most `limit` of them.
pub(crate) fn tag_keys<R: PageRead>(
    tree: &Tree,
    r: &R,
    prefix: &str,
    limit: usize,
) -> Result<Vec<TagCount>> {
    let begin = keys::tags(prefix);
    let mut found = Vec::new();
    // The metrics come first, under the empty key.
    let from = if prefix.is_empty() {
        keys::after(METRIC)
    } else {
        begin.clone()
    };
    let Some(mut cursor) = tidalite_index::set_cursor(tree, r, &from)? else {
        return Ok(found);
    };
    while found.len() < limit && cursor.key().starts_with(&begin) {
        let (SetKey::Any(text) | SetKey::Value(text, _)) = keys::parse(cursor.key())? else {
            break;
        };
        let series = tidalite_index::count(tree, r, &keys::any(&text))?;
        let after = keys::after(&text);
        found.push(TagCount { text, series });
        if !cursor.skip_to(&after)? {
            break;
        }
    }
    Ok(found)
}

/// Counts metrics, tag keys and values. Walks over the whole index.
pub(crate) fn cardinality<R: PageRead>(tree: &Tree, r: &R) -> Result<Cardinality> {
    let mut counted = Cardinality {
        series: tidalite_index::count(tree, r, &keys::any(METRIC))?,
        ..Cardinality::default()
    };
    let Some(mut cursor) = tidalite_index::set_cursor(tree, r, b"")? else {
        return Ok(counted);
    };
    loop {
        let more = match keys::parse(cursor.key())? {
            SetKey::Any(key) if key.is_empty() => cursor.skip()?,
            SetKey::Any(key) => {
                let mut series = 0;
                let more = cursor.count_to(&mut series)?;
                let values = 0;
                counted.tags.push(TagCardinality {
                    key,
                    series,
                    values,
                });
                more
            }
            SetKey::Value(key, _) => {
                if key.is_empty() {
                    counted.metrics += 1;
                } else if let Some(tag) = counted.tags.last_mut() {
                    tag.values += 1;
                }
                cursor.skip()?
            }
            SetKey::Unnamed => cursor.skip()?,
        };
        if !more {
            return Ok(counted);
        }
    }
}
