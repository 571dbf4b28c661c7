//! The options of a search and its results.

use crate::topics::message::Retained;

/// Default of `SearchOptions::rows_max`.
const ROWS_MAX: u64 = 1 << 16;

/// Options of a search: which messages it returns, and how many rows it reads at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchOptions {
    /// Returns only messages with a greater sequence number, that is, messages that changed after this number.
    pub since: u64,
    /// Returns only messages with a sequence number up to this one. A subscriber that later receives live changes sets
    /// it to the sequence number of its first snapshot, and then sees nothing twice.
    pub until: u64,
    /// Maximum number of rows that one page reads. When it is reached, the page ends before it is full.
    pub rows_max: u64,
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self {
            since: 0,
            until: u64::MAX,
            rows_max: ROWS_MAX,
        }
    }
}

/// Counters of the work of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchCounters {
    /// Number of filters whose search has begun. Each search begins with a walk through the keys.
    pub walks: u64,
    /// Number of filters whose search continued with sets of topics.
    pub term_lookups: u64,
    /// Number of rows that were compared with a filter, including topics from sets.
    pub rows: u64,
    /// Number of steps of cursors from row to row.
    pub steps: u64,
    /// Number of seeks of cursors.
    pub seeks: u64,
    /// Number of topics that the intersected sets of the filters contained.
    pub candidates: u64,
    /// Number of pages read, as counted by the page reader.
    pub pages: u64,
    /// Number of messages returned.
    pub delivered: u64,
}

/// Result of a page of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchPage {
    /// Number of messages on the page.
    pub delivered: u64,
    /// Whether all matches have been delivered.
    pub is_done: bool,
}

/// A message that a search has found.
#[derive(Clone, Debug)]
pub struct Match<'m> {
    /// The message.
    pub retained: Retained<'m>,
    /// Indexes of the filters that match its topic, ascending.
    pub filters: &'m [usize],
}
