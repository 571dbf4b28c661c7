//! Computes how far a search for the matches of a filter can skip: from a key to the least greater key that may match.
//!
//! ```text
//! filter  a/+/x      keys  a/b/x   a match: on to a/b BEHIND, the next sibling of b
//!                          a/c/d   d < x: on to a/c/x
//!                          a/d/y   y > x: on to a/d BEHIND
//!                          a/e     too short: on to a/e/x
//!                          a/e/x/z too long: on to a/e BEHIND
//! ```
//!
//! Every skip leads to a greater key, so every search ends.

use crate::topics::filter::{Filter, Level};
use crate::topics::key::{BEHIND, SEPARATOR};
use std::cmp::Ordering;

/// The result of comparing a key with a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The key matches.
    Match,
    /// The next match is at the target key or after it.
    Skip,
    /// There are no more matches.
    End,
}

/// The least key that can match a filter.
pub(super) fn first_target(filter: &Filter) -> Vec<u8> {
    let mut target = Vec::new();
    filter.put_names(0, &mut target);
    target
}

/// Compares a key with a filter. For `Skip`, `target` becomes the key at which to continue, which is greater than
/// `key`.
pub(super) fn step(filter: &Filter, key: &[u8], target: &mut Vec<u8>) -> Step {
    target.clear();
    if key.first() == Some(&b'$') && filter.hides_dollar_topics() {
        target.push(b'$' + 1);
        return Step::Skip;
    }
    // End of the last level that `+` matched, and beginning of the current level.
    let (mut any_end, mut at) = (None, 0);
    for (index, level) in filter.levels.iter().enumerate() {
        if at > key.len() {
            target.extend_from_slice(key);
            filter.put_names(index, target);
            return Step::Skip;
        }
        let end = level_end(key, at);
        match level {
            Level::Any => any_end = Some(end),
            Level::Name(name) => match key[at..end].cmp(name) {
                Ordering::Equal => {}
                Ordering::Less => {
                    target.extend_from_slice(&key[..at]);
                    target.extend_from_slice(name);
                    filter.put_names(index + 1, target);
                    return Step::Skip;
                }
                Ordering::Greater => return behind(key, any_end, target),
            },
        }
        at = end + 1;
    }
    match filter.has_rest || at > key.len() {
        true => Step::Match,
        false => behind(key, any_end, target),
    }
}

/// The step after a match: `Skip` or `End`.
pub(super) fn step_after_match(filter: &Filter, key: &[u8], target: &mut Vec<u8>) -> Step {
    target.clear();
    if filter.has_rest {
        target.extend_from_slice(key);
        target.push(SEPARATOR);
        return Step::Skip;
    }
    let (mut any_end, mut at) = (None, 0);
    for level in &filter.levels {
        let end = level_end(key, at.min(key.len()));
        if *level == Level::Any {
            any_end = Some(end);
        }
        at = end + 1;
    }
    behind(key, any_end, target)
}

fn level_end(key: &[u8], at: usize) -> usize {
    let found = key[at..].iter().position(|byte| *byte == SEPARATOR);
    found.map_or(key.len(), |len| at + len)
}

/// Skips all keys below the last level that `+` matched. Only names follow that level in the filter, so at most one
/// topic can match below it.
fn behind(key: &[u8], any_end: Option<usize>, target: &mut Vec<u8>) -> Step {
    match any_end {
        Some(end) => {
            target.extend_from_slice(&key[..end]);
            target.push(BEHIND);
            Step::Skip
        }
        None => Step::End,
    }
}
