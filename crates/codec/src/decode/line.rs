//! Vectors that follow a rule: values that rise by the same step, as integers or as decimals.
//!
//! A caller that goes from row to row has each word made where it is used: the processor does that while it still waits for
//! what the caller does with the word before.

use crate::chunk::{self, Chunk};
use crate::decode;
use crate::kernel;
use crate::loops::float::{Alp, Rule};
use tidalite_base::Corrupt;

/// The words of a vector by their rule: word i is made of start + i * step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    start: u64,
    step: u64,
    /// How integers become floats; `None` when they are the words.
    decimals: Option<Alp>,
}

impl Line {
    /// start, start + step ... wrapping.
    #[must_use]
    pub fn integers(start: u64, step: u64) -> Self {
        Self {
            start,
            step,
            decimals: None,
        }
    }

    /// The rule of a vector of `rows` rows; `None` when it has none.
    ///
    /// # Errors
    /// [`Corrupt`] when chunk and payload contradict each other or `rows`.
    pub fn of(chunk: &Chunk, bytes: &[u8], rows: usize) -> Result<Option<Self>, Corrupt> {
        decode::check(chunk, bytes, rows)?;
        if chunk.flags & (chunk::NULLS | chunk::NARROW | chunk::CORRECTION) != 0 {
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

    /// Whether the rule of the vector of `before`, which has one, goes on in the whole vector of `chunk`, which follows it.
    /// Compares, which is much cheaper than `of`.
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

    /// Whether all rows have one word.
    #[must_use]
    #[inline]
    pub fn is_constant(&self) -> bool {
        self.step == 0
    }

    /// Word `row`.
    #[must_use]
    pub fn word(&self, row: usize) -> u64 {
        let mut word = [self.start.wrapping_add(self.step.wrapping_mul(row as u64))];
        if let Some(alp) = self.decimals {
            kernel::alp_decode(alp, &mut word);
        }
        word[0]
    }

    /// What makes the words one by one; `None` where each takes a division.
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

/// Makes the words of a [`Line`], in any order, without memory.
#[derive(Clone, Copy, Debug)]
pub struct LineWords {
    start: u64,
    step: u64,
    rule: Rule,
}

impl Default for LineWords {
    /// Zeros.
    fn default() -> Self {
        Self {
            start: 0,
            step: 0,
            rule: Rule::INTEGER,
        }
    }
}

impl LineWords {
    /// Word `row`.
    #[must_use]
    #[inline(always)]
    pub fn at(&self, row: usize) -> u64 {
        self.rule.word(self.integer(row))
    }

    /// Whether each word is an integer, not the float that it is turned into.
    #[must_use]
    pub fn is_integer(&self) -> bool {
        self.rule.is_integer()
    }

    /// Word `row` where the words are integers: half the instructions.
    #[must_use]
    #[inline(always)]
    pub fn integer(&self, row: usize) -> u64 {
        self.start.wrapping_add(self.step.wrapping_mul(row as u64))
    }

    /// Word `row` where they are floats: half the instructions.
    #[must_use]
    #[inline(always)]
    pub fn float(&self, row: usize) -> u64 {
        self.rule.product(self.integer(row))
    }
}
