//! Splits words in two parts: the high bits (sign, exponent and a few more) have few distinct values and are stored as
//! indices into a list; the low bits are stored unencoded. Trailing zero bits that all words have are left out (ALP-RD,
//! Afroozeh, Kuffó and Boncz, 2023).

use crate::chunk::SPLIT_HIGH_MAX;
use crate::kernel;
use crate::loops::pack::packed_bytes;
use crate::loops::scan::bits;
use tidalite_base::limits::VECTOR_ROWS;

/// Size in bits of an exception, a word that is stored unencoded: the row number and the word.
const EXCEPTION_BITS: u64 = 80;
/// Size in bits of an entry in the list of high parts.
const ENTRY_BITS: u64 = 16;
/// Maximum number of entries in the list of high parts.
const ENTRIES_MAX: usize = 256;

/// A position at which to split words, and the list of their high parts.
pub(super) struct Split {
    /// Number of trailing zero bits that all words have.
    pub(super) zeros: u32,
    /// Number of bits between the trailing zeros and the high part.
    pub(super) low: u32,
    pub(super) entries: Vec<u16>,
    /// Length of the payload in bits.
    pub(super) bits: u64,
}

/// High parts of words, each with the number of rows that have it, the most frequent first.
type Counts = Vec<(u16, u16)>;

impl Split {
    /// The cheapest split that costs less than `bits_max`; `None` if there is no such split.
    pub(super) fn search(words: &[u64], mut bits_max: u64) -> Option<Self> {
        let zeros = kernel::or(words).trailing_zeros();
        let mut best: Option<Self> = None;
        for high in 1..=SPLIT_HIGH_MAX {
            // The low bits alone may cost too much. This rules out every split position for decimal words, which have
            // hundreds of distinct high parts.
            let low = 64u32.saturating_sub(zeros).saturating_sub(high);
            if 8 * packed_bytes(words.len(), low) as u64 >= bits_max {
                continue;
            }
            if let Some(found) = Self::at(words, high)
                && found.bits < bits_max
            {
                bits_max = found.bits;
                best = Some(found);
            }
        }
        best
    }

    /// The split with a high part of `high` bits (1 to 16); `None` if the words have fewer bits.
    pub(super) fn at(words: &[u64], high: u32) -> Option<Self> {
        let zeros = kernel::or(words).trailing_zeros();
        let low = 64u32.checked_sub(zeros)?.checked_sub(high)?;
        let counts = counts(words, 64 - high);
        let rows = words.len();
        let low_bits = 8 * packed_bytes(rows, low) as u64;
        let mut best: Option<(u64, usize)> = None;
        let (mut covered, mut taken) = (0, 0);
        for width in 0..=ENTRIES_MAX.ilog2() {
            let entries = counts.len().min(1 << width);
            covered += counts[taken..entries]
                .iter()
                .map(|&(_, n)| u64::from(n))
                .sum::<u64>();
            taken = entries;
            // The number of bits of an index into `entries` entries; less than `width` if the list has fewer than
            // 2^width entries.
            let own = bits(entries as u64 - 1);
            let cost = 8 * packed_bytes(rows, own) as u64
                + low_bits
                + ENTRY_BITS * entries as u64
                + EXCEPTION_BITS * (rows as u64 - covered);
            if best.is_none_or(|(bits, _)| cost < bits) {
                best = Some((cost, entries));
            }
            if entries == counts.len() {
                break;
            }
        }
        let (bits, entries) = best?;
        let mut entries: Vec<u16> = counts[..entries].iter().map(|&(high, _)| high).collect();
        entries.sort_unstable();
        Some(Self {
            zeros,
            low,
            entries,
            bits,
        })
    }

    /// Number of bits of an index into the list.
    pub(super) fn width(&self) -> u32 {
        bits(self.entries.len() as u64 - 1)
    }

    /// The index in the list of a word's high part; `None` if the list lacks this high part.
    pub(super) fn code(&self, word: u64) -> Option<u64> {
        let high = (word >> self.zeros >> self.low) as u16;
        self.entries
            .binary_search(&high)
            .ok()
            .map(|code| code as u64)
    }

    /// Number of bits of the high part.
    pub(super) fn high(&self) -> u32 {
        64 - self.zeros - self.low
    }
}

/// Counts the high parts of words, the bits from bit `from` up: the most frequent first, equally frequent ones in
/// ascending order.
fn counts(words: &[u64], from: u32) -> Counts {
    let mut highs = [0u16; VECTOR_ROWS];
    let highs = &mut highs[..words.len()];
    for (high, &word) in highs.iter_mut().zip(words) {
        *high = (word >> from) as u16;
    }
    highs.sort_unstable();
    let mut counts: Counts = Vec::new();
    for &mut high in highs {
        match counts.last_mut() {
            Some((last, n)) if *last == high => *n += 1,
            _ => counts.push((high, 1)),
        }
    }
    counts.sort_unstable_by_key(|&(high, n)| (core::cmp::Reverse(n), high));
    counts
}
