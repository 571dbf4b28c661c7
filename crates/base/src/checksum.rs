//! The only checksum of the file format: XXH3-64 with seed 0 (Yann Collet, xxHash 0.8 specification). It detects
//! accidents, not attackers.

#[cfg(target_arch = "x86_64")]
mod wide;

/// The XXH3-64 hash of `bytes`. Takes about 0.06 ns per byte from the cache, and a third of that with 512-bit vectors.
#[must_use]
#[inline]
pub fn checksum(bytes: &[u8]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if bytes.len() >= wide::BYTES_MIN
        && let Some(sum) = wide::checksum(bytes)
    {
        return sum;
    }
    xxhash_rust::xxh3::xxh3_64(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_the_published_vectors() {
        assert_eq!(checksum(b""), 0x2d06_8005_38d3_94c2);
        assert_ne!(checksum(b"a"), checksum(b"b"));
    }
}
