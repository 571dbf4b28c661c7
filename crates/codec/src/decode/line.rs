//! Lines: vectors whose words follow a rule from row to row: integers or decimals with a constant delta.
//!
//! A caller that visits row after row can compute each word where it needs it: the processor then overlaps this
//! computation with the caller's work on the word before.

use crate::chunk::{self, Chunk};
use crate::decode;
use crate::kernel;
use crate::loops::float::{Alp, Rule};
use tidalite_base::Corrupt;

/// The rule of a vector: the word of row i is computed from start + i * step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    start: u64,
    step: u64,
    /// The rule that converts integers to floats; `None` if the integers themselves are the words.
    decimals: Option<Alp>,
}

impl Line {
    /// Creates the rule for the words start, start + step, start + 2 * step ..., with wrapping addition.
    #[must_use]
    pub fn integers(start: u64, step: u64) -> Self {
        Self {
            start,
            step,
            decimals: None,
        }
    }

    /// The rule of a vector of `rows` rows; `None` if the words of the vector follow no rule.
    ///
    /// # Errors
    /// [`Corrupt`] if chunk and payload contradict each other or `rows`.
    pub fn of(chunk: &Chunk, bytes: &[u8], rows: usize) -> Result<Option<Self>, Corrupt> {
        decode::check(chunk, bytes, rows)?;
        if chunk.flags & (chunk::NULLS | chunk::NARROW) != 0 || chunk.correction.width > 0 {
            return Ok(None);
        }
        let level = chunk.width == 0 && chunk.patches == 0 && chunk.exceptions == 0;
        let (start, step) = match chunk.encoding {
            chunk::CONSTANT => return Ok(Some(Self::integers(chunk.base, 0))),
            chunk::FOR | chunk::ALP_FOR if level => (chunk.base, 0),
            chunk::DELTA | chunk::ALP_DELTA if level => (chunk.start, chunk.base),
            _ => return Ok(None),
        };
        let decimal = matches!(chunk.encoding, chunk::ALP_FOR | chunk::ALP_DELTA);
        let decimals = decimal.then_some(Alp {
            exponent: chunk.exponent,
            factor: chunk.factor,
        });
        Ok(Some(Self {
            start,
            step,
            decimals,
        }))
    }

    /// True if the whole vector of `chunk` continues the rule of the vector before it, whose chunk is `before` and
    /// which must follow a rule. Compares only the chunks, which is much cheaper than `of`.
    #[must_use]
    pub fn goes_on(before: &Chunk, chunk: &Chunk) -> bool {
        let start = match before.encoding {
            chunk::CONSTANT | chunk::FOR | chunk::ALP_FOR => before.start,
            _ => {
                let span = before.base.wrapping_mul(before.rows() as u64);
                before.start.wrapping_add(span)
            }
        };
        *chunk == Chunk { start, ..*before }
    }

    /// True if all rows have the same word.
    #[must_use]
    #[inline]
    pub fn is_constant(&self) -> bool {
        self.step == 0
    }

    /// Computes the word of this row of the vector.
    #[must_use]
    pub fn word(&self, row: usize) -> u64 {
        let mut word = [self.start.wrapping_add(self.step.wrapping_mul(row as u64))];
        if let Some(alp) = self.decimals {
            kernel::alp_decode(alp, &mut word);
        }
        word[0]
    }

    /// A generator of single words; `None` if computing a word would need a division.
    #[must_use]
    pub fn words(&self) -> Option<LineWords> {
        Some(LineWords {
            start: self.start,
            step: self.step,
            rule: match self.decimals {
                None => Rule::INTEGER,
                Some(alp) => Rule::of(alp)?,
            },
        })
    }
}

/// Computes the words of a [`Line`] in any order, without memory accesses.
#[derive(Clone, Copy, Debug)]
pub struct LineWords {
    start: u64,
    step: u64,
    rule: Rule,
}

impl Default for LineWords {
    /// A generator for words that are all zero.
    fn default() -> Self {
        Self {
            start: 0,
            step: 0,
            rule: Rule::INTEGER,
        }
    }
}

impl LineWords {
    /// Computes the word of this row of the vector.
    #[must_use]
    #[inline(always)]
    pub fn at(&self, row: usize) -> u64 {
        self.rule.word(self.integer(row))
    }

    /// True if the words are the integers themselves, not floats computed from them.
    #[must_use]
    pub fn is_integer(&self) -> bool {
        self.rule.is_integer()
    }

    /// Computes the word of this row if the words are integers; takes half the instructions of `at`.
    #[must_use]
    #[inline(always)]
    pub fn integer(&self, row: usize) -> u64 {
        self.start.wrapping_add(self.step.wrapping_mul(row as u64))
    }

    /// Computes the word of this row if the words are floats; takes half the instructions of `at`.
    #[must_use]
    #[inline(always)]
    pub fn float(&self, row: usize) -> u64 {
        self.rule.product(self.integer(row))
    }
}
