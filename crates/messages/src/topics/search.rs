//! Finds all messages whose topics match at least one of several filters, a page at a time.
//!
//! Invariants:
//! 1. The filters are processed one after the other. A topic that an earlier filter matches was already returned, so
//!    no list of returned topics is needed.
//! 2. The position does not depend on the snapshot: it is the least key or topic id that was not read yet. A topic that
//!    has a message in all snapshots of a search is returned once. A topic whose message is removed and set again
//!    during a search gets a new id, and may be returned twice.

use crate::topics::filter::Filter;
use crate::topics::found::{Match, SearchCounters, SearchOptions, SearchPage};
use crate::topics::key::{BEHIND, TopicText};
use crate::topics::parts::{Part, id_of};
use crate::topics::plan::{Plan, TRIAL_ROWS, advance, candidates, choose, seek};
use crate::topics::read::TopicsReader;
use crate::topics::record::{self, Head, head_in};
use crate::topics::steps::{Step, first_target, step, step_after_match};
use crate::topics::token::{self, Place};
use std::sync::atomic::Ordering;
use tidalite_index::RoaringTreemap;
use tidalite_kv::Value;
use tidalite_pager::{PageRead, Result};

/// Number of topics from sets that are looked up at a time.
const LOOKUPS: usize = 128;

/// A search for the messages whose topics match filters. It borrows no snapshot: each page may use another one.
#[derive(Clone, Debug)]
pub struct TopicSearch {
    filters: Vec<Filter>,
    options: SearchOptions,
    /// Index of the filter that is being processed.
    at: usize,
    place: Place,
    /// The topics from the sets, while they are being read.
    candidates: Option<Candidates>,
    counters: SearchCounters,
}

/// Topics from the sets of a filter.
#[derive(Clone, Debug)]
struct Candidates {
    ids: RoaringTreemap,
    /// `State::next_id` of the snapshot from which the topics were read. A snapshot with the same number has no topics
    /// with newer ids.
    next_id: u64,
}

/// Callback that receives the key of a topic, the filters that match it, the head of its record and the record.
pub(super) type OnFound<'f> = dyn FnMut(&[u8], &[usize], &Head, &Value<'_>) -> Result<()> + 'f;

/// The numbers of messages and rows that a page may still return and read.
struct Budget {
    credit: u64,
    rows: u64,
}

impl Budget {
    fn is_spent(&self) -> bool {
        self.credit == 0 || self.rows == 0
    }
}

impl TopicSearch {
    /// A search that begins at the first filter. Shared subscriptions find nothing.
    #[must_use]
    pub fn new(filters: Vec<Filter>, options: SearchOptions) -> Self {
        Self {
            filters,
            options,
            at: 0,
            place: Place::NotBegun,
            candidates: None,
            counters: SearchCounters::default(),
        }
    }

    /// Continues a search at the position that `token` has returned.
    ///
    /// # Errors
    /// `InvalidInput` for bytes that are not a token of a search with these filters.
    pub fn resume(filters: Vec<Filter>, options: SearchOptions, token: &[u8]) -> Result<Self> {
        let (at, place) = token::decode(&filters, token)?;
        let mut search = Self::new(filters, options);
        (search.at, search.place) = (at, place);
        Ok(search)
    }

    /// The position as bytes. `resume` continues there, even in another transaction or process.
    #[must_use]
    pub fn token(&self) -> Vec<u8> {
        token::encode(&self.filters, self.at, &self.place)
    }

    /// Whether all matches have been returned.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.at >= self.filters.len()
    }

    /// Counters of the work since the search was created.
    #[must_use]
    pub fn counters(&self) -> &SearchCounters {
        &self.counters
    }

    /// Returns the next matches, at most `credit`, omitting messages that have expired at the time `now`. A page may
    /// have fewer messages, or none, even if more exist.
    ///
    /// # Errors
    /// A damaged or unreadable page; errors of `each`, after which the search must not be continued.
    ///
    /// # Cost
    /// Reads at most `SearchOptions::rows_max` rows. Each page begins with a descent. A search that was resumed from a
    /// token, or continues in a snapshot with new topics, may read the sets of a filter again.
    pub fn page<R: PageRead>(
        &mut self,
        reader: &TopicsReader<R>,
        now: i64,
        credit: u64,
        each: &mut dyn FnMut(Match<'_>) -> Result<()>,
    ) -> Result<SearchPage> {
        let mut text = TopicText::default();
        self.run(reader, Some(now), credit, &mut |key, filters, _, value| {
            let record = value.bytes()?;
            let retained = record::decode(text.of_key(key)?, &record)?;
            each(Match { retained, filters })
        })
    }

    /// Like `page`, but returns undecoded messages. Without a time, no message counts as expired.
    pub(super) fn run<R: PageRead>(
        &mut self,
        reader: &TopicsReader<R>,
        now: Option<i64>,
        credit: u64,
        each: &mut OnFound<'_>,
    ) -> Result<SearchPage> {
        let pages = &reader.r.counters().pages_read;
        let (pages_before, before) = (pages.load(Ordering::Relaxed), self.counters.delivered);
        let mut budget = Budget {
            credit,
            rows: self.options.rows_max.max(1),
        };
        while !self.is_done() && !budget.is_spent() {
            let has_ended = match &self.place {
                _ if self.filters[self.at].is_shared() => true,
                Place::NotBegun => {
                    self.place = Place::Trial(first_target(&self.filters[self.at]));
                    self.counters.walks += 1;
                    false
                }
                Place::Trial(_) => {
                    let mut trial = Budget {
                        credit: budget.credit,
                        rows: budget.rows.min(TRIAL_ROWS),
                    };
                    let has_ended = self.walk(reader, now, &mut trial, each)?;
                    budget.rows -= budget.rows.min(TRIAL_ROWS) - trial.rows;
                    budget.credit = trial.credit;
                    if !has_ended && trial.rows == 0 {
                        self.plan(reader)?;
                    }
                    has_ended
                }
                Place::Walk(_) => self.walk(reader, now, &mut budget, each)?,
                Place::Terms(..) => self.look_up(reader, now, &mut budget, each)?,
            };
            if has_ended {
                self.at += 1;
                (self.place, self.candidates) = (Place::NotBegun, None);
            }
        }
        self.counters.pages += pages.load(Ordering::Relaxed).saturating_sub(pages_before);
        Ok(SearchPage {
            delivered: self.counters.delivered - before,
            is_done: self.is_done(),
        })
    }

    /// Chooses how the search continues after the trial.
    fn plan<R: PageRead>(&mut self, reader: &TopicsReader<R>) -> Result<()> {
        let Place::Trial(target) = std::mem::replace(&mut self.place, Place::NotBegun) else {
            return Ok(());
        };
        self.place = match choose(reader, &self.filters[self.at])? {
            Plan::Walk => Place::Walk(target),
            Plan::Terms => {
                self.counters.term_lookups += 1;
                Place::Terms(0, target)
            }
        };
        Ok(())
    }

    /// Walks through the keys; returns true at the end of the filter.
    fn walk<R: PageRead>(
        &mut self,
        reader: &TopicsReader<R>,
        now: Option<i64>,
        budget: &mut Budget,
        each: &mut OnFound<'_>,
    ) -> Result<bool> {
        let (mut target, place): (_, fn(Vec<u8>) -> Place) =
            match std::mem::replace(&mut self.place, Place::NotBegun) {
                Place::Walk(target) => (target, Place::Walk),
                Place::Trial(target) => (target, Place::Trial),
                _ => return Ok(true),
            };
        let messages = reader.part(Part::Messages)?;
        let mut cursor = messages.cursor(&reader.r)?;
        self.counters.seeks += 1;
        let mut there = seek(&mut cursor, &target)?;
        while there {
            if budget.is_spent() {
                cursor.key().clone_into(&mut target);
                self.place = place(target);
                return Ok(false);
            }
            budget.rows -= 1;
            self.counters.rows += 1;
            let key = cursor.key();
            let mut next = step(&self.filters[self.at], key, &mut target);
            if next == Step::Match {
                next = match self.passed(key, &mut target) {
                    Some(next) => next,
                    None => {
                        self.deliver(key, &cursor.value()?, now, budget, each)?;
                        step_after_match(&self.filters[self.at], key, &mut target)
                    }
                };
            }
            if next != Step::Skip {
                return Ok(true);
            }
            let counts = (&mut self.counters.steps, &mut self.counters.seeks);
            if budget.is_spent() {
                self.place = place(target);
                return Ok(false);
            }
            there = advance(&mut cursor, &target, counts)?;
        }
        Ok(true)
    }

    /// The step past the range of an earlier filter that contains this key, if such a filter exists.
    fn passed(&self, key: &[u8], target: &mut Vec<u8>) -> Option<Step> {
        let earlier = self.filters[..self.at].iter();
        let mut earlier = earlier.filter(|filter| !filter.is_shared() && filter.matches_key(key));
        let range_end = |filter: &Filter| Some((filter.range_end()?, filter.hides_dollar_topics()));
        let (end, hides_dollar_topics) = earlier.find_map(range_end)?;
        target.clear();
        match end {
            Some(end) => target.extend_from_slice(&end),
            // `#` matches all topics but the ones that begin with `$`.
            None if key < b"$" && hides_dollar_topics => target.push(b'$'),
            None => return Some(Step::End),
        }
        debug_assert!(
            target.last() == Some(&BEHIND) || target[..] == *b"$",
            "the end of a range"
        );
        Some(Step::Skip)
    }

    /// Looks up the topics of the filter's sets; returns true at the end of the filter.
    fn look_up<R: PageRead>(
        &mut self,
        reader: &TopicsReader<R>,
        now: Option<i64>,
        budget: &mut Budget,
        each: &mut OnFound<'_>,
    ) -> Result<bool> {
        let Place::Terms(first, from) = std::mem::replace(&mut self.place, Place::NotBegun) else {
            return Ok(true);
        };
        let next_id = reader.state.next_id;
        let cached = self.candidates.take();
        let found = match cached.filter(|found| found.next_id == next_id) {
            Some(found) => found,
            None => {
                let ids = candidates(reader, &self.filters[self.at])?;
                self.counters.candidates += ids.len();
                Candidates { ids, next_id }
            }
        };
        let (ids, messages) = (reader.part(Part::Ids)?, reader.part(Part::Messages)?);
        let mut numbers = found.ids.iter();
        numbers.advance_to(first);
        let mut chunk: Vec<[u8; 8]> = Vec::with_capacity(LOOKUPS);
        let mut keys: Vec<Option<Vec<u8>>> = Vec::with_capacity(LOOKUPS);
        loop {
            chunk.clear();
            keys.clear();
            let most = LOOKUPS.min(usize::try_from(budget.credit.max(16)).unwrap_or(LOOKUPS));
            chunk.extend(numbers.by_ref().take(most).map(u64::to_be_bytes));
            if chunk.is_empty() {
                return Ok(true);
            }
            ids.get_many(&reader.r, &chunk, |_, key| {
                keys.push(key.map(|key| key.to_vec()).transpose()?);
                Ok(())
            })?;
            for (id, key) in chunk.iter().zip(&keys) {
                let id = id_of(id)?;
                if budget.is_spent() {
                    self.place = Place::Terms(id, from);
                    self.candidates = Some(found);
                    return Ok(false);
                }
                budget.rows -= 1;
                self.counters.rows += 1;
                // The topic may have lost its message since the sets were read.
                let Some(key) = key else { continue };
                if *key < from || !self.filters[self.at].matches_key(key) {
                    continue;
                }
                if let Some(value) = messages.get(&reader.r, key)? {
                    self.deliver(key, &value, now, budget, each)?;
                }
            }
        }
    }

    /// Returns a match to the caller, unless an earlier filter matches it, too, or the options exclude it.
    fn deliver(
        &mut self,
        key: &[u8],
        value: &Value<'_>,
        now: Option<i64>,
        budget: &mut Budget,
        each: &mut OnFound<'_>,
    ) -> Result<()> {
        let (earlier, others) = self.filters.split_at(self.at);
        let is_match = |filter: &Filter| !filter.is_shared() && filter.matches_key(key);
        if earlier.iter().any(is_match) {
            return Ok(());
        }
        let head = head_in(value)?;
        let is_expired = match (head.expires, now) {
            (Some(expires), Some(now)) => expires <= now,
            _ => false,
        };
        if is_expired || head.sequence <= self.options.since || head.sequence > self.options.until {
            return Ok(());
        }
        let matching = others.iter().enumerate();
        let matching = matching.filter(|(index, filter)| *index == 0 || is_match(filter));
        let matching: Vec<usize> = matching.map(|(index, _)| self.at + index).collect();
        each(key, &matching, &head, value)?;
        self.counters.delivered += 1;
        budget.credit -= 1;
        Ok(())
    }
}
