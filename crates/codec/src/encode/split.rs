//! Words split in two: the high bits (sign, exponent and a few more) take few distinct values and are indices into a
//! list; the low bits are stored unencoded. Trailing zero bits that all words have are left out (ALP-RD, Afroozeh,
//! Kuffó and Boncz, 2023).

use crate::chunk::SPLIT_HIGH_MAX;
use crate::kernel;
use crate::loops::pack::packed_bytes;
use crate::loops::scan::bits;
use tidalite_base::limits::VECTOR_ROWS;

/// Size of an exception in bits: row and word.
const EXCEPTION_BITS: u64 = 80;
/// Size of a list entry in bits.
const ENTRY_BITS: u64 = 16;
/// Maximum length of the list.
const ENTRIES_MAX: usize = 256;

/// A split position, and the list for it.
pub(super) struct Split {
    /// Trailing zero bits that all words have.
    pub(super) zeros: u32,
    /// Bits between the trailing zeros and the high part.
    pub(super) low: u32,
    pub(super) entries: Vec<u16>,
    /// Size of the payload.
    pub(super) bits: u64,
}

/// High parts with their numbers of rows, most frequent first.
type Counts = Vec<(u16, u16)>;

impl Split {
    /// The cheapest split that costs less than `bits_max`, if there is one.
    pub(super) fn search(words: &[u64], mut bits_max: u64) -> Option<Self> {
        let zeros = kernel::or(words).trailing_zeros();
        let mut best: Option<Self> = None;
        for high in 1..=SPLIT_HIGH_MAX {
            // The low bits alone may cost too much. Decimal words, with their hundreds of distinct high parts, are
            // ruled out here at every split position.
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

    /// The split with a high part of `high` bits, 1 to 16.
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
            // The width of an index into this number of entries; less than `width` if the list ends before 2^width
            // entries.
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

    /// Bits per code.
    pub(super) fn width(&self) -> u32 {
        bits(self.entries.len() as u64 - 1)
    }

    /// The index in the list of a word's high part.
    pub(super) fn code(&self, word: u64) -> Option<u64> {
        let high = (word >> self.zeros >> self.low) as u16;
        self.entries
            .binary_search(&high)
            .ok()
            .map(|code| code as u64)
    }

    /// Bits of the high part.
    pub(super) fn high(&self) -> u32 {
        64 - self.zeros - self.low
    }
}

/// The high parts above bit `from`, most frequent first; ties by value.
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
