//! The position of a search for matches, as bytes.
//!
//! ```text
//!  0  u8    version: 1
//!  1  u64   hash of the filters, so that a token is not used with other filters
//!  9  u32   number of the filter
//! 13  u8    0 the filter has not begun, 1 walk, 2 terms
//! 14  walk: the least key that is still to be read; terms: the least id that is still to be read, u64 big-endian
//! ```

use crate::topics::filter::Filter;
use crate::topics::key::TOPIC_BYTES_MAX;
use tidalite_base::{checksum, get_u32, get_u64};
use tidalite_pager::{Error, Result};

const VERSION: u8 = 1;
const HEAD_BYTES: usize = 14;

const NOT_BEGUN: u8 = 0;
const WALK: u8 = 1;
const TERMS: u8 = 2;

/// Where a search for the matches of one filter goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    NotBegun,
    Walk(Vec<u8>),
    Terms(u64),
}

fn hash(filters: &[Filter]) -> u64 {
    let mut text = Vec::new();
    for filter in filters {
        text.extend_from_slice(filter.text().as_bytes());
        text.push(0);
    }
    checksum(&text)
}

pub(super) fn encode(filters: &[Filter], filter: usize, place: &Place) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    bytes.extend_from_slice(&hash(filters).to_le_bytes());
    bytes.extend_from_slice(&(filter as u32).to_le_bytes());
    match place {
        Place::NotBegun => bytes.push(NOT_BEGUN),
        Place::Walk(key) => {
            bytes.push(WALK);
            bytes.extend_from_slice(key);
        }
        Place::Terms(id) => {
            bytes.push(TERMS);
            bytes.extend_from_slice(&id.to_be_bytes());
        }
    }
    bytes
}

pub(super) fn decode(filters: &[Filter], bytes: &[u8]) -> Result<(usize, Place)> {
    let parsed = bytes.split_at_checked(HEAD_BYTES).and_then(|(head, rest)| {
        let filter = get_u32(head, 9) as usize;
        let place = match (head[13], rest.len()) {
            (NOT_BEGUN, 0) => Place::NotBegun,
            // One byte more than a key: the end of the range below a topic.
            (WALK, 0..=KEY_BYTES_MAX) => Place::Walk(rest.to_vec()),
            (TERMS, 8) => Place::Terms(u64::from_be_bytes(rest.try_into().ok()?)),
            _ => return None,
        };
        let fits = head[0] == VERSION && get_u64(head, 1) == hash(filters);
        (fits && filter <= filters.len()).then_some((filter, place))
    });
    parsed.ok_or_else(|| Error::Unsupported {
        found: format!("a token of {} bytes", bytes.len()),
        expected: "a token of a search with the same filters".into(),
    })
}

/// A target of a walk may be a topic, the rest of a filter and one byte.
const KEY_BYTES_MAX: usize = 2 * TOPIC_BYTES_MAX + 2;
