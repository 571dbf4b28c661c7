//! Keys of one length, stored contiguously in ascending order: the packed form of an inline table.

use std::cmp::Ordering;

/// Borrowed keys of one length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FixedWidthKeys<'a> {
    keys: &'a [u8],
    size: usize,
    count: usize,
}

impl<'a> FixedWidthKeys<'a> {
    /// Returns `None` if the length of `keys` is not `size * count` bytes.
    pub(crate) fn new(keys: &'a [u8], size: usize, count: usize) -> Option<Self> {
        let fits = size.checked_mul(count) == Some(keys.len());
        fits.then_some(Self { keys, size, count })
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// True if the keys ascend strictly. Cost: reads all keys; keys of 4, 8 and 16 bytes are compared as numbers.
    pub(crate) fn ascend(&self) -> bool {
        match self.size {
            0 => self.count < 2,
            4 => ascend(self.keys, |key| u32::from_be_bytes(*key)),
            8 => ascend(self.keys, |key| u64::from_be_bytes(*key)),
            16 => ascend(self.keys, |key| u128::from_be_bytes(*key)),
            _ => self.iter().is_sorted_by(|a, b| a < b),
        }
    }

    pub(crate) fn nth(&self, index: usize) -> &'a [u8] {
        debug_assert!(index < self.count, "the key exists");
        &self.keys[index * self.size..][..self.size]
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = &'a [u8]> {
        (0..self.count).map(move |index| self.nth(index))
    }

    /// The index of this key (`Ok`), or the index at which it would be inserted (`Err`).
    pub(crate) fn place(&self, key: &[u8]) -> Result<usize, usize> {
        let below = self.below(key, false);
        match below < self.count && self.nth(below) == key {
            true => Ok(below),
            false => Err(below),
        }
    }

    /// Number of keys below `key`; if `or_equal`, number of keys that are not above it.
    pub(crate) fn below(&self, key: &[u8], or_equal: bool) -> usize {
        let (mut from, mut to) = (0, self.count);
        while from < to {
            let middle = usize::midpoint(from, to);
            match self.nth(middle).cmp(key) {
                Ordering::Greater => to = middle,
                Ordering::Equal if !or_equal => to = middle,
                _ => from = middle + 1,
            }
        }
        debug_assert!(from <= self.count, "a position among the keys");
        from
    }
}

fn ascend<const N: usize, T: Ord>(keys: &[u8], number: impl Fn(&[u8; N]) -> T) -> bool {
    let keys = keys.as_chunks::<N>().0;
    // The loop has no branch, because nearly always the keys ascend and an early exit would gain nothing.
    let pairs = keys.iter().zip(keys.iter().skip(1));
    pairs.fold(true, |ascend, (a, b)| ascend & (number(a) < number(b)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use tidalite_testkit::rng::Rng;

    #[test]
    fn positions_agree_with_a_sorted_set() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let size = *rng.pick(&[0, 1, 3, 4, 8, 9, 16, 24]);
            let mut set = BTreeSet::new();
            for _ in 0..rng.below(40) {
                set.insert((0..size).map(|_| rng.below(4) as u8).collect::<Vec<u8>>());
            }
            let bytes: Vec<u8> = set.iter().flatten().copied().collect();
            let keys = FixedWidthKeys::new(&bytes, size, set.len()).unwrap();
            assert!(keys.ascend(), "seed {seed}");
            assert!(keys.iter().eq(set.iter().map(Vec::as_slice)));
            for _ in 0..20 {
                let length = size + rng.index(2);
                let key: Vec<u8> = (0..length).map(|_| rng.below(4) as u8).collect();
                let below = set.range::<Vec<u8>, _>(..&key).count();
                let there = set.contains(&key);
                let place = if there { Ok(below) } else { Err(below) };
                assert_eq!(keys.place(&key), place, "seed {seed}");
                assert_eq!(keys.below(&key, true), below + usize::from(there));
            }
            // Makes the keys invalid: swaps two of them, or stores one twice.
            if set.len() > 1 && size > 0 {
                let at = rng.index(set.len() - 1) * size;
                let mut turned = bytes.clone();
                let (a, b) = turned[at..at + 2 * size].split_at_mut(size);
                match rng.one_in(2) {
                    true => a.swap_with_slice(b),
                    false => a.copy_from_slice(b),
                }
                assert!(
                    !FixedWidthKeys::new(&turned, size, set.len())
                        .unwrap()
                        .ascend()
                );
            }
            assert!(FixedWidthKeys::new(&bytes, size + 1, set.len()).is_none() || set.is_empty());
        }
        assert!(FixedWidthKeys::new(&[], usize::MAX, 3).is_none());
        assert!(!FixedWidthKeys::new(&[], 0, 2).unwrap().ascend());
    }
}
