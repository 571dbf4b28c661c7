//! Terms: sets of topic ids by the name of one level. They are used for filters with wildcards before names.
//!
//! ```text
//! 0  u8      number of the level, from 0
//! 1  u8      1 if it is the last level of the topic, else 0
//! 2  name    its first 64 bytes
//! .  u8      0, which no name contains, so that no term is a prefix of another
//! ```
//!
//! The sets only narrow a search: each topic from them is compared with the filter. They change only when a topic gets
//! its first message or loses its message.

use crate::topics::filter::{Filter, Level};
use crate::topics::key::SEPARATOR;
use std::collections::HashMap;
use tidalite_index::{Changes, apply};
use tidalite_kv::TableWriter;
use tidalite_pager::{PageWrite, Result};

/// Maximum number of bytes of a name in a term.
pub(super) const NAME_BYTES_MAX: usize = 64;

const INNER: u8 = 0;
const LAST: u8 = 1;

fn put_term(level: usize, kind: u8, name: &[u8], term: &mut Vec<u8>) {
    debug_assert!(level <= usize::from(u8::MAX), "the levels are limited");
    term.clear();
    term.extend_from_slice(&[level as u8, kind]);
    term.extend_from_slice(&name[..name.len().min(NAME_BYTES_MAX)]);
    term.push(SEPARATOR);
}

/// Passes each term of the topic with this key to `each`.
pub(super) fn of_key(key: &[u8], each: &mut dyn FnMut(&[u8])) {
    let mut term = Vec::with_capacity(NAME_BYTES_MAX + 3);
    let mut names = key.split(|byte| *byte == SEPARATOR).enumerate().peekable();
    while let Some((level, name)) = names.next() {
        let kind = if names.peek().is_none() { LAST } else { INNER };
        put_term(level, kind, name, &mut term);
        each(&term);
    }
}

/// Whether the topic with this key has this term.
pub(super) fn has_term(key: &[u8], term: &[u8]) -> bool {
    let mut found = false;
    of_key(key, &mut |own| found |= own == term);
    found
}

/// For each name of a filter, lists the terms of which a matching topic must have one. The list is empty if the filter
/// has no names, or more levels than a topic can have.
pub(super) fn of_filter(filter: &Filter) -> Vec<Vec<Vec<u8>>> {
    let last = filter.levels.len().saturating_sub(1);
    if last > usize::from(u8::MAX) {
        return Vec::new();
    }
    let names = filter.levels.iter().enumerate();
    let names = names.filter_map(|(level, name)| match name {
        Level::Name(name) => Some((level, name)),
        Level::Any => None,
    });
    names
        .map(|(level, name)| {
            let kinds: &[u8] = match (level == last, filter.has_rest) {
                (false, _) => &[INNER],
                (true, false) => &[LAST],
                (true, true) => &[INNER, LAST],
            };
            let term = |kind: &u8| {
                let mut term = Vec::new();
                put_term(level, *kind, name, &mut term);
                term
            };
            kinds.iter().map(term).collect()
        })
        .collect()
}

/// Topics that are added to sets or removed from them, grouped by set. Most topics share their terms with others, and
/// sorting the few terms is much cheaper than sorting all changes.
#[derive(Default)]
pub(super) struct SetChanges {
    by_term: HashMap<Box<[u8]>, Vec<(u64, bool)>>,
    /// Number of changes.
    pub(super) count: usize,
}

impl SetChanges {
    pub(super) fn add(&mut self, term: &[u8], id: u64, is_new: bool) {
        self.count += 1;
        match self.by_term.get_mut(term) {
            Some(ids) => ids.push((id, is_new)),
            None => {
                self.by_term.insert(term.into(), vec![(id, is_new)]);
            }
        }
    }

    /// Stores the changes and clears them.
    pub(super) fn apply<W: PageWrite>(&mut self, w: &mut W, table: &mut TableWriter) -> Result<()> {
        self.count = 0;
        let mut by_term: Vec<_> = self.by_term.drain().collect();
        by_term.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let mut changes = Changes::default();
        for (term, ids) in &mut by_term {
            ids.sort_unstable();
            for (id, is_new) in ids {
                match is_new {
                    true => changes.add(term, *id),
                    false => changes.remove(term, *id),
                }
            }
        }
        apply(table, w, &mut changes)
    }
}
