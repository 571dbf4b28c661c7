//! Writing values to the rows of a bitmap with AVX-512, eight rows at a time.

use core::arch::x86_64::*;

use super::avx512::{EIGHT, load, store};
use crate::loops::scan;

/// AVX-512 form of [`scan::expand`].
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,bmi2,popcnt")]
pub(super) fn expand(bitmap: &[u8], values: &[u64], out: &mut [u64]) {
    let (words, _) = bitmap.as_chunks::<8>();
    let (blocks, _) = out.as_chunks_mut::<64>();
    let (mut done, mut at) = (0, 0);
    for (block, word) in blocks.iter_mut().zip(words) {
        let bits = u64::from_le_bytes(*word);
        // Byte i is the number of bits that are set in the bytes up to byte i, so that eight loads need not wait for
        // one another.
        let counts = scan::ones_up_to(bits);
        for i in 0..8 {
            let from = at + (counts << 8 >> (8 * i) & 0xff) as usize;
            let Some(eight) = values.get(from..).and_then(<[u64]>::first_chunk) else {
                return;
            };
            if let Some(group) = block[EIGHT * i..].first_chunk_mut() {
                let mixed = _mm512_mask_expand_epi64(load(group), word[i], load(eight));
                store(group, mixed);
            }
        }
        at += (counts >> 56) as usize;
        done += 1;
    }
    let rest = (&bitmap[8 * done..], values.get(at..).unwrap_or_default());
    scan::expand(rest.0, rest.1, &mut out[64 * done..]);
}
