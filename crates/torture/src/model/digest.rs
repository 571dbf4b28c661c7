//! A digest of the content of a database, computed from both the model and the database.
//!
//! A digest represents the whole content: every table with every pair, every series with every row, in
//! order. Two contents with the same digest are taken as equal (64 bits; a chance of 1 in 10^19).

use std::collections::BTreeMap;
use tidalite::retention::Retention;
use tidalite_base::checksum;

/// Combines parts of a content into one number, which depends on the order and the boundaries of the parts.
#[derive(Default)]
pub(crate) struct Digest(pub(super) u64);

impl Digest {
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        self.word(checksum(bytes));
    }

    pub(crate) fn word(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 29;
    }

    /// Adds lines of text; an empty list does not change the digest.
    pub(super) fn lines(&mut self, lines: &[String]) {
        lines.iter().for_each(|line| self.bytes(line.as_bytes()));
    }

    pub(super) fn pair(&mut self, key: &[u8], value: &[u8]) {
        self.bytes(key);
        self.bytes(value);
    }

    pub(super) fn policy(&mut self, name: &str, policy: &Retention) {
        self.bytes(name.as_bytes());
        self.bytes(policy.pattern.as_bytes());
        self.word(policy.keep.map_or(0, |keep| keep.as_nanos() as u64));
        self.word(policy.bytes.unwrap_or(0));
    }

    pub(super) fn row(&mut self, time: i64, words: &[u64]) {
        self.word(time as u64);
        for &word in words {
            self.word(word);
        }
    }
}

/// The digest of a content and its pins; if there are no pins, equal to the digest of the content alone.
pub(super) fn with_pins(content: u64, pins: &BTreeMap<String, u64>) -> u64 {
    if pins.is_empty() {
        return content;
    }
    let mut digest = Digest(content);
    for (name, &pinned) in pins {
        digest.bytes(name.as_bytes());
        digest.word(pinned);
    }
    digest.0
}
