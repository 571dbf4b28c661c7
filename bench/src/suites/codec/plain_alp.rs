//! The coder plain ALP: exponents and integers are computed by the crate `alp`, and packed relative to their minimum
//! with `fastlanes`, in vectors of 1024 values.
//!
//! ```text
//! e u8 | f u8 | width u8 | 0 | exceptions u32 | base i64 | packed | rows u16 | words u64
//! ```
//!
//! A last vector with fewer values is packed as if it had 1024 values, because `fastlanes` packs no other length. Only
//! the part for its own values counts in the size.

use fastlanes::BitPacking as _;

const VECTOR: usize = 1024;
const HEAD: usize = 16;

/// Encodes a vector and appends it to `out`; the returned size excludes padding bytes.
pub(crate) fn encode(values: &[f64], out: &mut Vec<u8>) -> usize {
    let begin = out.len();
    let (exponents, mut ints, rows, exceptions, _) = alp::encode(values, None);
    let low = ints.iter().copied().min().unwrap_or(0);
    let high = ints.iter().copied().max().unwrap_or(0);
    let width = 64 - (high.wrapping_sub(low) as u64).leading_zeros();
    out.extend([exponents.e, exponents.f, width as u8, 0]);
    out.extend((rows.len() as u32).to_le_bytes());
    out.extend(low.to_le_bytes());
    ints.resize(VECTOR, low);
    let moved: Vec<u64> = ints
        .iter()
        .map(|int| int.wrapping_sub(low) as u64)
        .collect();
    let mut packed = vec![0; VECTOR * width as usize / 64];
    // SAFETY: the call reads 1024 values, and `packed` has room for 1024 values of `width` <= 64 bits.
    #[expect(unsafe_code, reason = "the peer's call for a width known at run time")]
    unsafe {
        u64::unchecked_pack(width as usize, &moved, &mut packed);
    }
    out.extend(packed.iter().flat_map(|word| word.to_le_bytes()));
    for row in &rows {
        out.extend((*row as u16).to_le_bytes());
    }
    for value in &exceptions {
        out.extend(value.to_bits().to_le_bytes());
    }
    let padding = (VECTOR - values.len()) * width as usize / 8;
    out.len() - begin - padding
}

/// Decodes as many values as fit into `out`, at most 1024.
pub(crate) fn decode(bytes: &[u8], out: &mut [f64]) {
    let width = usize::from(bytes[2]);
    let count = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]) as usize;
    let words = bytes[8..].as_chunks::<8>().0;
    let low = i64::from_le_bytes(words[0]);
    let packed_words = VECTOR * width / 64;
    let mut packed = [0; VECTOR];
    for (place, word) in packed.iter_mut().zip(&words[1..=packed_words]) {
        *place = u64::from_le_bytes(*word);
    }
    let mut moved = [0u64; VECTOR];
    // SAFETY: `packed` has exactly the words that 1024 values of `width` <= 64 bits take, and the output has room for
    // 1024 values.
    #[expect(unsafe_code, reason = "the peer's call for a width known at run time")]
    unsafe {
        u64::unchecked_unpack(width, &packed[..packed_words], &mut moved);
    }
    let ints = moved.map(|int| (int as i64).wrapping_add(low));
    let exponents = alp::Exponents {
        e: bytes[0],
        f: bytes[1],
    };
    alp::decode_into(&ints[..out.len()], exponents, out);
    let rest = &bytes[HEAD + 8 * packed_words..];
    let (rows, exceptions) = rest.split_at(2 * count);
    let exceptions = exceptions.as_chunks::<8>().0;
    for (row, word) in rows.as_chunks::<2>().0.iter().zip(exceptions) {
        let value = f64::from_bits(u64::from_le_bytes(*word));
        out[usize::from(u16::from_le_bytes(*row))] = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back() {
        for n in [1, 100, VECTOR] {
            let mut values: Vec<f64> = (0..n).map(|i| (i % 97) as f64 / 10.0).collect();
            values[n / 2] = f64::NAN;
            let mut bytes = Vec::new();
            let size = encode(&values, &mut bytes);
            assert!(size <= bytes.len() && size < HEAD + 11 + 10 * n / 8 + 16);
            let mut back = vec![0.0; n];
            decode(&bytes, &mut back);
            let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&back), bits(&values));
        }
    }
}
