//! XXH3-64 with seed 0 for inputs of more than 240 bytes, eight lanes (64-bit integers) at a time.
//!
//! The crate that hashes all other inputs chooses its vector width at compile time; in a portable program that is 128
//! bits. This loop is also compiled for wider vectors and chosen at run time; the results are identical. It requires
//! a processor with AVX2 or AVX-512.

const STRIPE_BYTES: usize = 64;
/// Number of stripes of 64 bytes in a block. The key moves forward by eight bytes in the secret with each stripe.
const BLOCK_STRIPES: usize = (SECRET_BYTES - STRIPE_BYTES) / 8;
const SECRET_BYTES: usize = 192;
/// Byte offset in the secret of the key for the last stripe, and below it, of the key for merging the lanes.
const LAST_AT: usize = SECRET_BYTES - STRIPE_BYTES - 7;
const MERGE_AT: usize = 11;

/// Minimum length in bytes of an input for which this loop is right.
pub(super) const BYTES_MIN: usize = 241;

const PRIME32_1: u64 = 0x9e37_79b1;
const PRIME64_1: u64 = 0x9e37_79b1_85eb_ca87;

const START: Lanes = [
    0xc2b2_ae3d, // the third prime of 32 bits
    PRIME64_1,
    0xc2b2_ae3d_27d4_eb4f,
    0x1656_67b1_9e37_79f9,
    0x85eb_ca77_c2b2_ae63,
    0x85eb_ca77, // the second
    0x27d4_eb2f_1656_67c5,
    PRIME32_1,
];

/// The default secret of the XXH3 specification.
#[rustfmt::skip]
const SECRET: [u8; SECRET_BYTES] = [
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
    0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
    0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
    0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
    0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
    0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
    0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
    0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
    0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
    0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
    0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
];

type Lanes = [u64; 8];

/// Eight integers of the secret, starting at byte `at`.
const fn key(at: usize) -> Lanes {
    let (mut lanes, mut lane) = ([0; 8], 0);
    while lane < 8 {
        let (mut number, mut byte) = (0, 8);
        while byte > 0 {
            byte -= 1;
            number = number << 8 | SECRET[at + 8 * lane + byte] as u64;
        }
        lanes[lane] = number;
        lane += 1;
    }
    lanes
}

const fn block_keys() -> [Lanes; BLOCK_STRIPES] {
    let (mut keys, mut stripe) = ([[0; 8]; BLOCK_STRIPES], 0);
    while stripe < BLOCK_STRIPES {
        keys[stripe] = key(8 * stripe);
        stripe += 1;
    }
    keys
}

static BLOCK_KEYS: [Lanes; BLOCK_STRIPES] = block_keys();
const SCRAMBLE_KEY: Lanes = key(SECRET_BYTES - STRIPE_BYTES);
const LAST_KEY: Lanes = key(LAST_AT);
const MERGE_KEY: Lanes = key(MERGE_AT);

/// Eight lanes of 64 bits, held in vectors of one width.
trait Vectors: Copy {
    fn of(lanes: &Lanes) -> Self;
    fn lanes(self) -> Lanes;
    fn accumulate(self, stripe: &[u8; STRIPE_BYTES], key: &Lanes) -> Self;
    fn scramble(self, key: &Lanes) -> Self;
}

#[inline(always)]
fn body<V: Vectors>(bytes: &[u8]) -> u64 {
    let Some(last) = bytes.last_chunk::<STRIPE_BYTES>() else {
        unreachable!("the caller asks for the length")
    };
    let mut lanes = V::of(&START);
    // The last byte is left to the last stripe, which may overlap the stripe before it.
    let (stripes, _) = bytes[..bytes.len() - 1].as_chunks::<STRIPE_BYTES>();
    for block in stripes.chunks(BLOCK_STRIPES) {
        for (stripe, key) in block.iter().zip(&BLOCK_KEYS) {
            lanes = lanes.accumulate(stripe, key);
        }
        if block.len() == BLOCK_STRIPES {
            lanes = lanes.scramble(&SCRAMBLE_KEY);
        }
    }
    let lanes = lanes.accumulate(last, &LAST_KEY).lanes();
    let mut hash = (bytes.len() as u64).wrapping_mul(PRIME64_1);
    for pair in 0..4 {
        let [a, b] = [2 * pair, 2 * pair + 1].map(|lane| lanes[lane] ^ MERGE_KEY[lane]);
        let product = u128::from(a) * u128::from(b);
        hash = hash.wrapping_add(product as u64 ^ (product >> 64) as u64);
    }
    hash = (hash ^ hash >> 37).wrapping_mul(0x1656_6791_9e37_79f9);
    hash ^ hash >> 32
}

#[target_feature(enable = "avx512f,avx512dq")]
fn with_avx512(bytes: &[u8]) -> u64 {
    body::<x86::Of512>(bytes)
}

#[target_feature(enable = "avx2")]
fn with_avx2(bytes: &[u8]) -> u64 {
    body::<x86::Of256>(bytes)
}

mod x86 {
    use super::{Lanes, PRIME32_1, STRIPE_BYTES, Vectors};
    use std::arch::x86_64::*;

    /// Eight lanes in one 512-bit vector.
    #[derive(Clone, Copy)]
    pub(super) struct Of512(__m512i);
    /// Eight lanes in two 256-bit vectors.
    #[derive(Clone, Copy)]
    pub(super) struct Of256([__m256i; 2]);

    // SAFETY of all blocks below: only the functions above use these types; these functions are compiled for the
    // instruction sets that they name, and called only if the processor has these. Each load reads 64 bytes of a
    // 64-byte array, unaligned.

    impl Vectors for Of512 {
        #[inline(always)]
        fn of(lanes: &Lanes) -> Self {
            // SAFETY: the processor has these vectors, and the array has 64 bytes; the comment above this `impl` says
            // why.
            #[expect(unsafe_code, reason = "vectors of the processor")]
            Self(unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) })
        }

        #[inline(always)]
        fn lanes(self) -> Lanes {
            let mut lanes = [0; 8];
            // SAFETY: the processor has these vectors, and the array has 64 bytes; the comment above this `impl` says
            // why.
            #[expect(unsafe_code, reason = "vectors of the processor")]
            unsafe {
                _mm512_storeu_si512(lanes.as_mut_ptr().cast(), self.0);
            }
            lanes
        }

        #[inline(always)]
        fn accumulate(self, stripe: &[u8; STRIPE_BYTES], key: &Lanes) -> Self {
            // SAFETY: the processor has these vectors, and the arrays have 64 bytes; the comment above this `impl` says
            // why.
            #[expect(unsafe_code, reason = "vectors of the processor")]
            unsafe {
                let data = _mm512_loadu_si512(stripe.as_ptr().cast());
                let mixed = _mm512_xor_si512(data, _mm512_loadu_si512(key.as_ptr().cast()));
                let product = _mm512_mul_epu32(mixed, _mm512_srli_epi64::<32>(mixed));
                // Swaps the two 64-bit integers of each pair, so that each lane gets the data of its neighbour.
                let swapped = _mm512_shuffle_epi32::<0b01_00_11_10>(data);
                Self(_mm512_add_epi64(product, _mm512_add_epi64(self.0, swapped)))
            }
        }

        #[inline(always)]
        fn scramble(self, key: &Lanes) -> Self {
            // SAFETY: the processor has these vectors, and the array has 64 bytes; the comment above this `impl` says
            // why.
            #[expect(unsafe_code, reason = "vectors of the processor")]
            unsafe {
                let key = _mm512_loadu_si512(key.as_ptr().cast());
                let mixed = _mm512_xor_si512(self.0, _mm512_srli_epi64::<47>(self.0));
                let mixed = _mm512_xor_si512(mixed, key);
                let prime = _mm512_set1_epi64(PRIME32_1.cast_signed());
                Self(_mm512_mullo_epi64(mixed, prime))
            }
        }
    }

    impl Of256 {
        /// Loads the two halves of 64 bytes.
        #[inline(always)]
        fn load(bytes: *const u8) -> [__m256i; 2] {
            // SAFETY: the processor has these vectors, and callers pass 64 bytes; the comment above the `impl` of
            // `Of512` says why.
            #[expect(unsafe_code, reason = "vectors of the processor")]
            unsafe {
                [
                    _mm256_loadu_si256(bytes.cast()),
                    _mm256_loadu_si256(bytes.add(32).cast()),
                ]
            }
        }
    }

    impl Vectors for Of256 {
        #[inline(always)]
        fn of(lanes: &Lanes) -> Self {
            Self(Self::load(lanes.as_ptr().cast()))
        }

        #[inline(always)]
        fn lanes(self) -> Lanes {
            let mut lanes = [0u64; 8];
            let (low, high) = lanes.split_at_mut(4);
            // SAFETY: the processor has these vectors, and each half has 32 bytes; the comment above the `impl` of
            // `Of512` says why.
            #[expect(unsafe_code, reason = "vectors of the processor")]
            unsafe {
                _mm256_storeu_si256(low.as_mut_ptr().cast(), self.0[0]);
                _mm256_storeu_si256(high.as_mut_ptr().cast(), self.0[1]);
            }
            lanes
        }

        #[inline(always)]
        fn accumulate(mut self, stripe: &[u8; STRIPE_BYTES], key: &Lanes) -> Self {
            let (data, key) = (Self::load(stripe.as_ptr()), Self::load(key.as_ptr().cast()));
            for half in 0..2 {
                let (data, lanes) = (data[half], self.0[half]);
                // SAFETY: the processor has these vectors; the comment above the `impl` of `Of512` says why.
                #[expect(unsafe_code, reason = "vectors of the processor")]
                unsafe {
                    let mixed = _mm256_xor_si256(data, key[half]);
                    let product = _mm256_mul_epu32(mixed, _mm256_srli_epi64::<32>(mixed));
                    let swapped = _mm256_shuffle_epi32::<0b01_00_11_10>(data);
                    let sum = _mm256_add_epi64(lanes, swapped);
                    self.0[half] = _mm256_add_epi64(product, sum);
                }
            }
            self
        }

        #[inline(always)]
        fn scramble(mut self, key: &Lanes) -> Self {
            let key = Self::load(key.as_ptr().cast());
            for (lanes, key) in self.0.iter_mut().zip(key) {
                // SAFETY: the processor has these vectors; the comment above the `impl` of `Of512` says why.
                #[expect(unsafe_code, reason = "vectors of the processor")]
                unsafe {
                    let mixed = _mm256_xor_si256(*lanes, _mm256_srli_epi64::<47>(*lanes));
                    let mixed = _mm256_xor_si256(mixed, key);
                    let prime = _mm256_set1_epi64x(PRIME32_1.cast_signed());
                    let low = _mm256_mul_epu32(mixed, prime);
                    let high = _mm256_mul_epu32(_mm256_srli_epi64::<32>(mixed), prime);
                    *lanes = _mm256_add_epi64(low, _mm256_slli_epi64::<32>(high));
                }
            }
            self
        }
    }
}

/// The checksum of at least `BYTES_MIN` bytes; `None` if the processor has no vectors wider than 128 bits.
#[inline]
pub(super) fn checksum(bytes: &[u8]) -> Option<u64> {
    use std::is_x86_feature_detected as has;
    if has!("avx512f") && has!("avx512dq") {
        // SAFETY: the processor has AVX-512, for which the function is compiled.
        #[expect(unsafe_code, reason = "which vectors there are is known when it runs")]
        return Some(unsafe { with_avx512(bytes) });
    }
    if has!("avx2") {
        // SAFETY: the processor has AVX2, for which the function is compiled.
        #[expect(unsafe_code, reason = "which vectors there are is known when it runs")]
        return Some(unsafe { with_avx2(bytes) });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::BYTES_MIN;

    #[test]
    fn every_length_has_the_specified_checksum() {
        let mut bytes = vec![0u8; 9000];
        let mut number = 1u64;
        for byte in &mut bytes {
            number = number.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            *byte = (number >> 56) as u8;
        }
        let near = (4000..4200).chain([8184, 8192, 9000]);
        let step = if cfg!(miri) { 251 } else { 1 };
        for len in (BYTES_MIN..2500).chain(near).step_by(step) {
            let part = &bytes[9000 - len..];
            let expected = xxhash_rust::xxh3::xxh3_64(part);
            assert!(super::checksum(part).is_none_or(|found| found == expected));
            if is_x86_feature_detected!("avx2") {
                #[expect(unsafe_code, reason = "the one that is not chosen is tried, too")]
                // SAFETY: the processor has AVX2, for which the function is compiled.
                let found = unsafe { super::with_avx2(part) };
                assert_eq!(found, expected, "{len} bytes");
            }
        }
    }
}
