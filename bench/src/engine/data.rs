//! The pairs that the benchmarks store. A key is computed from its number, and a value is a part of a pool of random
//! bytes. Creating a pair costs only a few nanoseconds, which are the same for every engine, and values cannot be
//! compressed.

/// Lengths of keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) key_bytes: usize,
    pub(crate) value_bytes: usize,
}

impl Shape {
    /// Length of a pair (key and value) in bytes.
    pub(crate) fn pair_bytes(self) -> u64 {
        (self.key_bytes + self.value_bytes) as u64
    }
}

/// Maximum length of a key in bytes.
const KEY_BYTES_MAX: usize = 24;

/// Size of the pool of random bytes; large enough that nearly all small values differ.
const POOL_BYTES: usize = 1 << 20;

/// A key, stored on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    bytes: [u8; KEY_BYTES_MAX],
    len: u8,
}

impl Key {
    fn new(words: [u64; 3], len: usize) -> Self {
        let mut bytes = [0; KEY_BYTES_MAX];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_be_bytes());
        }
        Self {
            bytes,
            len: len.min(KEY_BYTES_MAX) as u8,
        }
    }

    /// A key of 16 bytes made of a series and a time.
    pub(crate) fn of_point(series: u64, time: i64) -> Self {
        Self::new([series, time as u64, 0], 16)
    }
}

impl AsRef<[u8]> for Key {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// The pairs of one shape, which are computed when needed.
pub(crate) struct Data {
    pub(crate) shape: Shape,
    pool: Vec<u8>,
}

impl Data {
    /// Creates the data, which is the same in every run.
    pub(crate) fn new(shape: Shape) -> Self {
        let mut random = Random::new(1);
        let words = (POOL_BYTES + shape.value_bytes).div_ceil(8);
        let pool = (0..words)
            .flat_map(|_| random.next().to_le_bytes())
            .collect();
        Self { shape, pool }
    }

    /// Key `n` of the sequence of keys in random order.
    #[inline]
    pub(crate) fn scattered(&self, n: u64) -> Key {
        // The mapping of 64 bits is one-to-one, so all keys differ.
        let first = mixed(n);
        Key::new([first, mixed(first), n], self.shape.key_bytes)
    }

    /// Key `n` of the sequence of ascending keys.
    #[inline]
    pub(crate) fn ascending(&self, n: u64) -> Key {
        let first = mixed(n);
        Key::new([n << 8, first, mixed(first)], self.shape.key_bytes)
    }

    /// The value of key `n` in this `version`.
    #[inline]
    pub(crate) fn value(&self, n: u64, version: u64) -> &[u8] {
        let at = mixed(n ^ (version << 40)) as usize & (POOL_BYTES - 1);
        &self.pool[at..at + self.shape.value_bytes]
    }

    /// The first `count` pairs with ascending keys.
    pub(crate) fn load(&self, count: u64) -> Ascending<'_> {
        self.between(0, count)
    }

    /// The pairs with ascending keys from number `next` up to but excluding `end`.
    pub(crate) fn between(&self, next: u64, end: u64) -> Ascending<'_> {
        Ascending {
            data: self,
            next,
            end,
        }
    }
}

/// Iterator over pairs in key order.
#[derive(Clone)]
pub(crate) struct Ascending<'d> {
    data: &'d Data,
    next: u64,
    end: u64,
}

impl<'d> Iterator for Ascending<'d> {
    type Item = (Key, &'d [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.end {
            return None;
        }
        let n = self.next;
        self.next += 1;
        Some((self.data.ascending(n), self.data.value(n, 0)))
    }
}

/// Generator of deterministic random numbers (SplitMix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(mixed(seed))
    }

    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        finish(self.0)
    }

    /// A random number below `bound`, which must not be 0.
    #[inline]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

#[inline]
fn mixed(n: u64) -> u64 {
    finish(n.wrapping_add(0x9e37_79b9_7f4a_7c15))
}

#[inline]
fn finish(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_ascend_or_scatter_and_have_their_length() {
        let data = Data::new(Shape {
            key_bytes: 16,
            value_bytes: 8,
        });
        let pairs: Vec<_> = data.load(100).map(|(key, _)| key).collect();
        assert!(pairs.is_sorted() && pairs.len() == 100);
        assert_eq!(pairs[0].as_ref().len(), 16);
        assert!(!(0..100).map(|n| data.scattered(n)).is_sorted());
        assert_eq!(data.value(3, 0).len(), 8);
        assert_ne!(data.value(3, 0), data.value(3, 1));
    }

    #[test]
    fn random_numbers_stay_below() {
        let mut random = Random::new(7);
        assert!((0..1000).all(|_| random.below(10) < 10));
    }
}
