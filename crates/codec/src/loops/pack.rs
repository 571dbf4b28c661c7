//! Bit packing of values of `width` bits, 1 to 64.
//!
//! n values lie in L lanes, value i in lane i mod L at row i / L:
//!
//! ```text
//!     n      1..=127   128..=255   256..=511   512..=1023   1024
//!     L         1          2           4           8          16
//! ```
//!
//! Each lane is a little-endian bit stream of its rows in words of 64 bits: the value of row r
//! takes bits r * width to (r + 1) * width of its lane, lowest bit first. Word k of lane l is the
//! (k * L + l)-th word of the payload, so that one row of all lanes is one vector register or two.
//! Unused bits at the end are zero.

/// Packed values: value i is `base + packed[i] * scale`. `bytes` has at least `packed_bytes` bytes; `width` is not 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packed<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) width: u32,
    pub(crate) base: u64,
    pub(crate) scale: u64,
}

impl Packed<'_> {
    /// Unpacks value `row` of a vector of `rows` values.
    pub(crate) fn at(&self, row: usize, rows: usize) -> u64 {
        if self.width == 0 {
            return self.base;
        }
        let lanes = lanes(rows);
        let (lane, bit) = (row % lanes, row / lanes * self.width as usize);
        let (words, _) = self.bytes.as_chunks::<8>();
        let word = |at: usize| {
            let word = words.get(at * lanes + lane);
            word.map_or(0, |word| u64::from_le_bytes(*word))
        };
        let (at, shift) = (bit / 64, (bit % 64) as u32);
        let mut value = word(at) >> shift;
        if shift + self.width > 64 {
            value |= word(at + 1) << (64 - shift);
        }
        (value & mask(self.width))
            .wrapping_mul(self.scale)
            .wrapping_add(self.base)
    }
}

/// Number of lanes (parallel bit streams) into which `n` values are packed.
#[inline(always)]
pub(crate) fn lanes(n: usize) -> usize {
    match n {
        1024.. => 16,
        512..1024 => 8,
        256..512 => 4,
        128..256 => 2,
        _ => 1,
    }
}

/// Length in bytes of `n` packed values of `width` bits.
#[inline]
pub(crate) fn packed_bytes(n: usize, width: u32) -> usize {
    let lanes = lanes(n);
    (n.div_ceil(lanes) * width as usize).div_ceil(64) * lanes * 8
}

/// Maximum number of values in a single lane.
pub(crate) const LANE_MAX: usize = 127;

/// Length in bytes of packed values if a single lane takes no more bytes than it needs.
#[inline]
pub(crate) fn units_bytes(n: usize, width: u32) -> usize {
    match n {
        ..=LANE_MAX => (n * width as usize).div_ceil(8),
        _ => packed_bytes(n, width),
    }
}

/// Number of bytes that a buffer for the packed values of a single lane has beyond eight for each value.
pub(crate) const LANE_BEHIND: usize = 8;

/// Unpacks values of a single lane: `out[i] = base + packed[i] * scale`. `lane` has eight bytes for each value and
/// [`LANE_BEHIND`] more.
#[inline(always)]
pub(crate) fn unpack_lane(lane: &[u8], width: u32, base: u64, scale: u64, out: &mut [u64]) {
    /// Greatest width at which eight loaded bytes always contain the whole value.
    const LOADED: u32 = 57;
    if width > LOADED {
        return unpack(lane, width, base, scale, out);
    }
    let mask = mask(width);
    let mut bit = 0;
    for place in out {
        let load = lane.get(bit / 8..).and_then(<[u8]>::first_chunk);
        let load = load.map_or(0, |load| u64::from_le_bytes(*load));
        *place = base.wrapping_add((load >> (bit % 8) & mask).wrapping_mul(scale));
        bit += width as usize;
    }
}

/// Mask of the `width` lowest bits, 1 to 64.
#[inline(always)]
fn mask(width: u32) -> u64 {
    u64::MAX >> (64 - width)
}

/// Packs `values[i] - base`, which must fit `width` bits; `out` has `packed_bytes` bytes.
#[inline(always)]
pub(crate) fn pack(values: &[u64], width: u32, base: u64, out: &mut [u8]) {
    match lanes(values.len()) {
        16 => pack_lanes::<16>(values, width, base, out),
        8 => pack_lanes::<8>(values, width, base, out),
        4 => pack_lanes::<4>(values, width, base, out),
        2 => pack_lanes::<2>(values, width, base, out),
        _ => pack_lanes::<1>(values, width, base, out),
    }
}

#[inline(always)]
fn pack_lanes<const L: usize>(values: &[u64], width: u32, base: u64, out: &mut [u8]) {
    let mask = mask(width);
    let (words, _) = out.as_chunks_mut::<8>();
    let (mut words, _) = words.as_chunks_mut::<L>();
    let mut full = [0u64; L];
    let mut shift = 0;
    let mut row = |values: &[u64; L]| {
        let mut spill = [0u64; L];
        for l in 0..L {
            let value = values[l].wrapping_sub(base) & mask;
            full[l] |= value << shift;
            // Shifts twice, because a single shift by 64 bits is undefined.
            spill[l] = value >> 1 >> (63 - shift);
        }
        shift += width;
        if shift >= 64 {
            shift -= 64;
            if let Some((word, rest)) = core::mem::take(&mut words).split_first_mut() {
                for l in 0..L {
                    word[l] = full[l].to_le_bytes();
                }
                words = rest;
            }
            full = spill;
        }
    };
    let (rows, rest) = values.as_chunks::<L>();
    for values in rows {
        row(values);
    }
    if !rest.is_empty() {
        let mut last = [base; L];
        last[..rest.len()].copy_from_slice(rest);
        row(&last);
    }
    if let Some(word) = words.first_mut() {
        for l in 0..L {
            word[l] = full[l].to_le_bytes();
        }
    }
}

/// Unpacks values: `out[i] = base + packed[i] * scale`; `bytes` has at least `packed_bytes` bytes.
#[inline(always)]
pub(crate) fn unpack(bytes: &[u8], width: u32, base: u64, scale: u64, out: &mut [u64]) {
    if scale == 1 {
        unpack_with(
            bytes,
            width,
            out,
            #[inline(always)]
            |x| x.wrapping_add(base),
        );
    } else {
        unpack_with(
            bytes,
            width,
            out,
            #[inline(always)]
            |x| x.wrapping_mul(scale).wrapping_add(base),
        );
    }
}

/// Unpacks values and converts each: `out[i] = finish(packed[i])`.
#[inline(always)]
pub(crate) fn unpack_with(
    bytes: &[u8],
    width: u32,
    out: &mut [u64],
    finish: impl Fn(u64) -> u64 + Copy,
) {
    match lanes(out.len()) {
        16 => unpack_lanes::<16>(bytes, width, out, finish),
        8 => unpack_lanes::<8>(bytes, width, out, finish),
        4 => unpack_lanes::<4>(bytes, width, out, finish),
        2 => unpack_lanes::<2>(bytes, width, out, finish),
        _ => unpack_lanes::<1>(bytes, width, out, finish),
    }
}

/// Unpacks values and adds them: `out[i] += values[i]`; the scale must be 1.
#[inline(always)]
pub(crate) fn unpack_onto(values: Packed<'_>, out: &mut [u64]) {
    let Packed {
        bytes, width, base, ..
    } = values;
    change_with(
        bytes,
        width,
        out,
        #[inline(always)]
        |old, x| old.wrapping_add(x.wrapping_add(base)),
    );
}

/// Unpacks low bits and joins them to the high bits in `out`: `out[i] = (out[i] << width | packed[i]) << zeros`;
/// `width` is below 64.
#[inline(always)]
pub(crate) fn join(bytes: &[u8], width: u32, zeros: u32, out: &mut [u64]) {
    change_with(
        bytes,
        width,
        out,
        #[inline(always)]
        |old, x| (old << width | x) << zeros,
    );
}

/// Unpacks values and combines each with the word in its place: `out[i] = finish(out[i], packed[i])`.
#[inline(always)]
fn change_with(bytes: &[u8], width: u32, out: &mut [u64], finish: impl Fn(u64, u64) -> u64 + Copy) {
    match lanes(out.len()) {
        16 => change_lanes::<16>(bytes, width, out, finish),
        8 => change_lanes::<8>(bytes, width, out, finish),
        4 => change_lanes::<4>(bytes, width, out, finish),
        2 => change_lanes::<2>(bytes, width, out, finish),
        _ => change_lanes::<1>(bytes, width, out, finish),
    }
}

#[inline(always)]
fn change_lanes<const L: usize>(
    bytes: &[u8],
    width: u32,
    out: &mut [u64],
    finish: impl Fn(u64, u64) -> u64 + Copy,
) {
    let (words, _) = bytes.as_chunks::<8>();
    let (words, _) = words.as_chunks::<L>();
    let (rows, rest) = out.as_chunks_mut::<L>();
    let count = rows.len();
    for (r, out) in rows.iter_mut().enumerate() {
        let row = unpack_row::<L>(words, width, r, core::convert::identity);
        for l in 0..L {
            out[l] = finish(out[l], row[l]);
        }
    }
    if !rest.is_empty() {
        let row = unpack_row::<L>(words, width, count, core::convert::identity);
        for (place, &x) in rest.iter_mut().zip(&row) {
            *place = finish(*place, x);
        }
    }
}

#[inline(always)]
fn unpack_lanes<const L: usize>(
    bytes: &[u8],
    width: u32,
    out: &mut [u64],
    finish: impl Fn(u64) -> u64 + Copy,
) {
    let (words, _) = bytes.as_chunks::<8>();
    let (words, _) = words.as_chunks::<L>();
    let (rows, rest) = out.as_chunks_mut::<L>();
    let count = rows.len();
    for (r, out) in rows.iter_mut().enumerate() {
        *out = unpack_row::<L>(words, width, r, finish);
    }
    if !rest.is_empty() {
        let row = unpack_row::<L>(words, width, count, finish);
        rest.copy_from_slice(&row[..rest.len()]);
    }
}

/// Unpacks one value of each lane. Arrays of constant length let the lanes become vector registers.
#[inline(always)]
fn unpack_row<const L: usize>(
    words: &[[[u8; 8]; L]],
    width: u32,
    row: usize,
    finish: impl Fn(u64) -> u64 + Copy,
) -> [u64; L] {
    let mask = mask(width);
    let bit = row * width as usize;
    let (k, shift) = (bit / 64, (bit % 64) as u32);
    let mut out = [0; L];
    if shift + width <= 64 {
        // The values lie within one word per lane; most narrow values do, so the branch is well predicted.
        let word = words[k];
        for l in 0..L {
            out[l] = u64::from_le_bytes(word[l]) >> shift;
        }
    } else {
        let (low, high) = (words[k], words[k + 1]);
        for l in 0..L {
            out[l] = (u64::from_le_bytes(low[l]) >> shift)
                | (u64::from_le_bytes(high[l]) << (64 - shift));
        }
    }
    for value in &mut out {
        *value = finish(*value & mask);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_and_length_round_trips_as_described() {
        let mut seed = 7u64;
        let mut next = move || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        for n in [
            1, 2, 3, 63, 64, 65, 127, 128, 129, 200, 256, 511, 512, 777, 1000, 1023, 1024,
        ] {
            for width in (1..=64).step_by(if cfg!(miri) { 9 } else { 1 }) {
                let values: Vec<u64> = (0..n).map(|_| next() & mask(width)).collect();
                let base = next();
                let moved: Vec<u64> = values.iter().map(|v| v.wrapping_add(base)).collect();
                let mut bytes = vec![0u8; packed_bytes(n, width)];
                crate::kernel::pack(&moved, width, base, &mut bytes);
                let mut portable = vec![0u8; bytes.len()];
                pack(&moved, width, base, &mut portable);
                assert_eq!(bytes, portable, "n {n} width {width}");
                let mut back = vec![0u64; n];
                crate::kernel::unpack(&bytes, width, base, 1, &mut back);
                assert_eq!(back, moved, "n {n} width {width}");
                crate::kernel::unpack(&bytes, width, 5, 3, &mut back);
                let mut again = vec![0u64; n];
                unpack(&bytes, width, 5, 3, &mut again);
                assert_eq!(back, again);
                for (i, &value) in values.iter().enumerate() {
                    assert_eq!(
                        described(&bytes, n, width as usize, i),
                        value,
                        "n {n} i {i}"
                    );
                }
            }
        }
    }

    /// Reads one value bit by bit, as described in docs/format.md.
    fn described(bytes: &[u8], n: usize, width: usize, i: usize) -> u64 {
        let lanes = lanes(n);
        let (lane, row) = (i % lanes, i / lanes);
        let mut value = 0;
        for b in 0..width {
            let bit = row * width + b;
            let word = (bit / 64) * lanes + lane;
            let byte = bytes[word * 8 + bit % 64 / 8];
            value |= u64::from(byte >> (bit % 8) & 1) << b;
        }
        value
    }
}
