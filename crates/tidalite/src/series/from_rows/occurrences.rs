//! How often each value occurs: the number of distinct values, and the most frequent one.
//!
//! Exact, with memory for each distinct value. Numbers are counted by their stored words; both zeros are one value. A
//! text may have several words, so texts are counted by their bytes.

use crate::types::column::ColumnType;
use std::collections::{HashMap, HashSet};

/// Occurrences of values.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Occurrences {
    words: HashMap<u64, u64>,
    texts: HashSet<Vec<u8>>,
}

impl Occurrences {
    pub(super) fn extend(&mut self, ty: ColumnType, words: &[u64]) {
        let is_float = matches!(ty, ColumnType::F64 | ColumnType::F32);
        const NEGATIVE_ZERO: u64 = 1 << 63;
        for same in words.chunk_by(|a, b| a == b) {
            let word = match same[0] {
                NEGATIVE_ZERO if is_float => 0,
                word => word,
            };
            *self.words.entry(word).or_default() += same.len() as u64;
        }
    }

    /// Replaces the words, which stand for texts, by the texts.
    pub(super) fn resolve<E>(
        &mut self,
        mut text: impl FnMut(u64) -> Result<Vec<u8>, E>,
    ) -> Result<(), E> {
        for (word, _) in self.words.drain() {
            self.texts.insert(text(word)?);
        }
        Ok(())
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (&word, &count) in &other.words {
            *self.words.entry(word).or_default() += count;
        }
        self.texts.extend(other.texts.iter().cloned());
    }

    pub(super) fn distinct(&self) -> u64 {
        (self.words.len() + self.texts.len()) as u64
    }

    /// The most frequent value; of equally frequent ones the smallest.
    pub(super) fn mode(&self, ty: ColumnType) -> Option<f64> {
        let most = self.words.values().max()?;
        let leaders = self.words.iter().filter(|(_, count)| *count == most);
        let values = leaders.filter_map(|(&word, _)| ty.number(word));
        values.min_by(f64::total_cmp)
    }
}
