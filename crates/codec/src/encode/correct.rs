//! Corrections for floats that are almost decimals: 7.119999900000001 stands for 7.1199999 and differs from it by one
//! unit in the last place. The difference is stored in a few bits next to the decimal; storing the word unencoded would
//! take 80 bits.

use crate::chunk::Correction;
use crate::kernel;
use crate::loops::float::{self, Alp};
use tidalite_base::limits::VECTOR_ROWS;

/// Size in bits of an exception, a word that is stored unencoded: the row number and the word.
const EXCEPTION_BITS: u64 = 80;

/// Maximum magnitude of the corrections that the histogram counts.
const FAR: i64 = 32;

/// Ranges of corrections that are tried, the narrowest first: ranges around zero and, up to three bits, also ranges on
/// one side of zero.
const TRIED: [Correction; 15] = {
    const fn of(width: u8, depth: u8) -> Correction {
        Correction { width, depth }
    }
    [
        of(1, 0),
        of(1, 1),
        of(2, 0),
        of(2, 1),
        of(2, 2),
        of(2, 3),
        of(3, 0),
        of(3, 2),
        of(3, 3),
        of(3, 4),
        of(3, 7),
        of(4, 7),
        of(4, 8),
        of(5, 16),
        of(6, 32),
    ]
};

/// For each correction, the number of rows that need it.
struct Histogram {
    counts: [u16; 2 * FAR as usize + 1],
}

impl Histogram {
    fn new() -> Self {
        Self {
            counts: [0; 2 * FAR as usize + 1],
        }
    }

    fn within(&self, low: i64, high: i64) -> u64 {
        let place = |at: i64| (at.clamp(-FAR, FAR) + FAR) as usize;
        let counts = &self.counts[place(low)..=place(high)];
        counts.iter().map(|&count| u64::from(count)).sum()
    }

    /// The correction range that costs least for this number of rows, and the total size in bits of corrections and
    /// remaining exceptions (words stored unencoded).
    fn cheapest(&self, rows: u64) -> (Correction, u64) {
        let mut best = (
            Correction::default(),
            EXCEPTION_BITS * (rows - self.within(0, 0)),
        );
        for correction in TRIED {
            let own = rows * u64::from(correction.width);
            if own >= best.1 {
                break;
            }
            let least = -i64::from(correction.depth);
            let inside = self.within(least, least + (1 << correction.width) - 1);
            let bits = own + EXCEPTION_BITS * (rows - inside);
            if bits < best.1 {
                best = (correction, bits);
            }
        }
        best
    }
}

/// Distance of `word` from `made`, the word that the decimal rule gives for `int`; `None` if `int` or the distance is
/// out of range.
#[inline]
fn distance(int: u64, made: u64, word: u64) -> Option<i64> {
    let distance = word.wrapping_sub(made) as i64;
    (float::is_in_range(int) && (-FAR..=FAR).contains(&distance)).then_some(distance)
}

/// Chooses a range of corrections for the rows in `bad`, whose words `alp` does not reproduce, and writes the packed
/// corrections of all rows to `corrections`. Returns the range and the number of rows that remain exceptions (stored
/// unencoded); these rows are moved to the front of `bad`.
pub(super) fn correct(
    alp: Alp,
    words: &[u64],
    ints: &[u64],
    bad: &mut [u16],
    corrections: &mut [u64],
) -> (Correction, usize) {
    let mut made = [0; VECTOR_ROWS];
    let made = &mut made[..bad.len()];
    for (place, &row) in made.iter_mut().zip(bad.iter()) {
        *place = ints[usize::from(row)];
    }
    kernel::alp_decode(alp, made);
    let of = |row: u16, made: u64| distance(ints[usize::from(row)], made, words[usize::from(row)]);
    let mut histogram = Histogram::new();
    histogram.counts[FAR as usize] = (words.len() - bad.len()) as u16;
    for (&row, &made) in bad.iter().zip(made.iter()) {
        if let Some(distance) = of(row, made) {
            histogram.counts[(distance + FAR) as usize] += 1;
        }
    }
    let (correction, _) = histogram.cheapest(words.len() as u64);
    if correction.width == 0 {
        return (correction, bad.len());
    }
    let depth = u64::from(correction.depth);
    let most = (1u64 << correction.width) - 1;
    corrections.fill(depth);
    let mut remain = 0;
    for i in 0..bad.len() {
        let row = bad[i];
        let stored = of(row, made[i]).map(|distance| (distance as u64).wrapping_add(depth));
        match stored.filter(|&stored| stored <= most) {
            Some(stored) => corrections[usize::from(row)] = stored,
            None => {
                bad[remain] = row;
                remain += 1;
            }
        }
    }
    (correction, remain)
}

/// Size in bits of the words of the sample that the decimal rule does not reproduce, in addition to the integers of the
/// sample; includes corrections if these save space.
pub(super) fn sample_bits(alp: Alp, words: &[u64], ints: &[u64], bad: &[u16]) -> u64 {
    let mut histogram = Histogram::new();
    histogram.counts[FAR as usize] = (words.len() - bad.len()) as u16;
    for &row in bad {
        let mut made = [ints[usize::from(row)]];
        float::alp_decode::<false>(alp, &mut made);
        if let Some(distance) = distance(ints[usize::from(row)], made[0], words[usize::from(row)]) {
            histogram.counts[(distance + FAR) as usize] += 1;
        }
    }
    histogram.cheapest(words.len() as u64).1
}
