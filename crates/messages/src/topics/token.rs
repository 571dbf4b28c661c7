//! The position of a search, encoded as bytes.
//!
//! ```text
//!  0  u8    version: 1
//!  1  u64   hash of the filters, so that a token is not used with other filters
//!  9  u32   number of the filter
//! 13  u8    0 the filter has not begun, 1 trial, 2 walk, 3 terms
//! 14  trial, walk: the least key that is still to be read
//! 14  terms: the least id that is still to be read, u64 big-endian; the trial has returned all matches below this key
//! ```

use crate::topics::filter::Filter;
use crate::topics::key::TOPIC_BYTES_MAX;
use tidalite_base::{checksum, get_u32, get_u64};
use tidalite_pager::{Error, Refusal, Result};

const VERSION: u8 = 1;
const HEAD_BYTES: usize = 14;

const NOT_BEGUN: u8 = 0;
const TRIAL: u8 = 1;
const WALK: u8 = 2;
const TERMS: u8 = 3;

/// The position at which the search for the matches of one filter continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    NotBegun,
    /// The walk over the first rows, which needs no plan.
    Trial(Vec<u8>),
    Walk(Vec<u8>),
    /// The least id that is still to be read, and a key: topics with smaller keys were already returned by the trial.
    Terms(u64, Vec<u8>),
}

fn hash(filters: &[Filter]) -> u64 {
    let mut text = Vec::new();
    for filter in filters {
        text.extend_from_slice(filter.text().as_bytes());
        // No filter is empty or contains a zero byte.
        text.extend_from_slice(match filter.has_dollar_topics() {
            true => &[0, 0],
            false => &[0],
        });
    }
    checksum(&text)
}

pub(super) fn encode(filters: &[Filter], filter: usize, place: &Place) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    bytes.extend_from_slice(&hash(filters).to_le_bytes());
    bytes.extend_from_slice(&(filter as u32).to_le_bytes());
    match place {
        Place::NotBegun => bytes.push(NOT_BEGUN),
        Place::Trial(key) => {
            bytes.push(TRIAL);
            bytes.extend_from_slice(key);
        }
        Place::Walk(key) => {
            bytes.push(WALK);
            bytes.extend_from_slice(key);
        }
        Place::Terms(id, key) => {
            bytes.push(TERMS);
            bytes.extend_from_slice(&id.to_be_bytes());
            bytes.extend_from_slice(key);
        }
    }
    bytes
}

pub(super) fn decode(filters: &[Filter], bytes: &[u8]) -> Result<(usize, Place)> {
    let parsed = bytes.split_at_checked(HEAD_BYTES).and_then(|(head, rest)| {
        let filter = get_u32(head, 9) as usize;
        let place = match (head[13], rest.len()) {
            (NOT_BEGUN, 0) => Place::NotBegun,
            (TRIAL, 0..=KEY_BYTES_MAX) => Place::Trial(rest.to_vec()),
            (WALK, 0..=KEY_BYTES_MAX) => Place::Walk(rest.to_vec()),
            (TERMS, 8..=TERMS_BYTES_MAX) => {
                let (id, key) = rest.split_first_chunk()?;
                Place::Terms(u64::from_be_bytes(*id), key.to_vec())
            }
            _ => return None,
        };
        let fits = head[0] == VERSION && get_u64(head, 1) == hash(filters);
        (fits && filter <= filters.len()).then_some((filter, place))
    });
    parsed.ok_or_else(|| {
        Error::refused(
            Refusal::InvalidInput,
            format!("a token of {} bytes", bytes.len()),
            "a token of a search with the same filters",
        )
    })
}

/// A target of a walk may consist of a topic, the rest of a filter and one byte.
const KEY_BYTES_MAX: usize = 2 * TOPIC_BYTES_MAX + 2;
const TERMS_BYTES_MAX: usize = 8 + KEY_BYTES_MAX;
