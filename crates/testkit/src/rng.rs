//! A small seeded random number generator: a seed gives the same test on every machine. It is xoshiro256++ (Blackman
//! and Vigna), seeded by splitmix64.

/// A seeded random number generator.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

/// One step of the generator splitmix64: maps any number to a number that looks random.
#[must_use]
pub fn mix(seed: u64) -> u64 {
    let z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Rng {
    /// Creates a generator for this seed; neighbouring seeds give unrelated random numbers.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let a = mix(seed);
        let b = mix(a);
        let c = mix(b);
        Self {
            state: [a, b, c, mix(c)],
        }
    }

    /// The next 64 random bits.
    pub fn u64(&mut self) -> u64 {
        let [s0, s1, s2, s3] = self.state;
        let result = s0.wrapping_add(s3).rotate_left(23).wrapping_add(s0);
        let (s2, s3) = (s2 ^ s0, s3 ^ s1);
        self.state = [s0 ^ s3, s1 ^ s2, s2 ^ (s1 << 17), s3.rotate_left(45)];
        result
    }

    /// A random number in `0..bound`.
    ///
    /// # Panics
    /// If `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "an empty range has no numbers");
        ((u128::from(self.u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A random index in `0..bound`.
    ///
    /// # Panics
    /// If `bound` is 0.
    pub fn index(&mut self, bound: usize) -> usize {
        self.below(bound as u64) as usize
    }

    /// A random number in `from..=to`.
    ///
    /// # Panics
    /// If `from > to`.
    pub fn between(&mut self, from: i64, to: i64) -> i64 {
        assert!(from <= to, "an empty range has no numbers");
        let span = to.wrapping_sub(from) as u64;
        if span == u64::MAX {
            return self.u64() as i64;
        }
        from.wrapping_add(self.below(span + 1) as i64)
    }

    /// True once in `n` times on average.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// A random float in `0.0..1.0`.
    pub fn f64(&mut self) -> f64 {
        (self.u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Fills a slice with random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for part in bytes.chunks_mut(8) {
            let word = self.u64().to_le_bytes();
            part.copy_from_slice(&word[..part.len()]);
        }
    }

    /// A random element of a slice.
    ///
    /// # Panics
    /// If the slice is empty.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.index(of.len())]
    }

    /// Shuffles the elements of a slice.
    pub fn shuffle<T>(&mut self, of: &mut [T]) {
        for i in (1..of.len()).rev() {
            of.swap(i, self.index(i + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_ranges_hold() {
        let mut a = Rng::new(7);
        let mut b = Rng::new(7);
        let mut c = Rng::new(8);
        assert_ne!(a.clone().u64(), c.u64());
        for _ in 0..1000 {
            assert_eq!(a.u64(), b.u64());
            assert!(a.below(10) < 10);
            b.below(10);
            assert!((-3..=4).contains(&a.between(-3, 4)));
            b.between(-3, 4);
        }
        a.between(i64::MIN, i64::MAX);
    }
}
