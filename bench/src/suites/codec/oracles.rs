//! Compares Tidalite's codec with the crates `alp`, `fastlanes` and `pco`. All coders must restore random columns bit
//! by bit. Tidalite's codec must never be longer than plain ALP (alp and fastlanes) plus the bytes that make its
//! vectors readable alone. It must never store integers near a base in more bits than fastlanes. Over all columns, the
//! size of the cold form must be within a twentieth of the size of pco.

use super::coders::{CODERS, Coder, Encoded, Room};
use super::columns::Kind;
use crate::engine::data::Random;
use fastlanes::BitPacking;

const VECTOR: usize = 1024;
const ROWS: usize = 16 * VECTOR;
/// Number of bytes by which the head of a vector may be longer: a vector of Tidalite begins with a length and a chunk
/// of up to 32 bytes, a vector of plain ALP with a head of 16 bytes.
const CHUNK_MORE_BYTES: usize = 16;
const SEEDS: u64 = 60;

/// Creates random columns of floats like sensor values, prices and arbitrary data.
fn floats(random: &mut Random) -> Vec<u64> {
    let scale = 10f64.powi(random.below(9) as i32);
    let spread = 1 << random.below(34);
    let (kind, exceptions) = (random.below(5), random.below(40));
    let mut walk = random.below(1 << 30) as i64;
    let one = |_| {
        let step = random.below(spread) as i64 - spread as i64 / 2;
        walk += step;
        let value = match kind {
            0 => step as f64 / scale,
            1 => walk as f64 / scale,
            // Values with more digits than decimals can have.
            2 => (walk as f64 / scale).sqrt(),
            3 => f64::from(walk as f32) / scale,
            _ => (walk / 1000) as f64,
        };
        match random.below(1000) {
            at if at >= exceptions => value.to_bits(),
            0..5 => (-0.0f64).to_bits(),
            5..10 => f64::NAN.to_bits() | random.below(1 << 50),
            10..15 => f64::INFINITY.to_bits(),
            _ => random.next(),
        }
    };
    (0..ROWS).map(one).collect()
}

fn integers(random: &mut Random) -> Vec<u64> {
    let (base, width) = (random.next() >> 2, random.below(40));
    let steps = random.below(2) == 0;
    let mut value = base;
    let one = |_| {
        let moved = random.below(1 << width);
        value = if steps { value + moved } else { base + moved };
        value
    };
    (0..ROWS).map(one).collect()
}

fn encoded(coder: Coder, kind: Kind, words: &[u64]) -> Encoded {
    let mut to = Encoded::default();
    coder.encode(kind, words, &mut to).expect("it is encoded");
    let (mut room, mut at) = (Room::new(), 0);
    coder
        .decode(kind, &to, &mut room, |seen| {
            let rows = seen.len();
            assert!(
                seen.is(&words[at..at + rows]),
                "{} loses bits",
                coder.name()
            );
            at += rows;
        })
        .expect("it is decoded");
    assert_eq!(at, words.len(), "{}", coder.name());
    to
}

/// All coders must restore every bit. Tidalite's codec must be as short as plain ALP, and its cold form nearly as short
/// as pco.
#[test]
fn alp_and_pco_have_the_same_bits_and_are_hardly_shorter() {
    let (mut ours, mut cold, mut pco) = (0, 0, 0);
    for seed in 0..SEEDS {
        let random = &mut Random::new(seed);
        for kind in [Kind::Float, Kind::Integer] {
            let words = match kind {
                Kind::Float => floats(random),
                _ => integers(random),
            };
            let takes = |coder: &&Coder| coder.takes(kind);
            let sizes: Vec<(Coder, usize)> = CODERS
                .iter()
                .filter(takes)
                .map(|coder| (*coder, encoded(*coder, kind, &words).size()))
                .collect();
            let of = |coder| sizes.iter().find(|(other, _)| *other == coder);
            let size = |coder| of(coder).map_or(usize::MAX, |(_, size)| *size);
            if kind == Kind::Float {
                let alp = size(Coder::Alp) + ROWS / VECTOR * CHUNK_MORE_BYTES;
                assert!(
                    size(Coder::Ours) <= alp,
                    "seed {seed}: {sizes:?}, with chunks {alp}"
                );
            }
            ours += size(Coder::Ours);
            cold += size(Coder::Cold);
            pco += size(Coder::Pco);
        }
    }
    assert!(cold <= ours, "{cold} bytes in cold form, {ours} in hot");
    println!("ours {ours}, cold {cold}, pco {pco}");
    assert!(
        cold <= pco + pco / 20,
        "{cold} bytes in cold form, pco {pco}"
    );
}

/// Checks that integers near a base take no more bits than `fastlanes` needs, plus the chunk.
fn as_wide_as_packed<const WIDTH: usize, const PACKED: usize>(random: &mut Random) {
    let base = random.next() >> 2;
    let mut moved = [0; VECTOR];
    for value in &mut moved {
        *value = random.below(1 << WIDTH);
    }
    (moved[0], moved[1]) = (0, (1 << WIDTH) - 1);
    let mut packed = [0u64; PACKED];
    BitPacking::pack::<WIDTH, PACKED>(&moved, &mut packed);
    let mut back = [0; VECTOR];
    BitPacking::unpack::<WIDTH, PACKED>(&packed, &mut back);
    assert!(back == moved);
    let words = moved.map(|value| base + value);
    let size = encoded(Coder::Ours, Kind::Integer, &words).size();
    let bound = 2 + tidalite_codec::CHUNK_BYTES_MAX + 8 * PACKED;
    assert!(
        size <= bound,
        "{size} bytes of {WIDTH} bits, {bound} packed"
    );
}

#[test]
fn integers_are_as_wide_as_fastlanes_packs_them() {
    let random = &mut Random::new(7);
    for _ in 0..20 {
        as_wide_as_packed::<1, 16>(random);
        as_wide_as_packed::<3, 48>(random);
        as_wide_as_packed::<8, 128>(random);
        as_wide_as_packed::<13, 208>(random);
        as_wide_as_packed::<21, 336>(random);
        as_wide_as_packed::<32, 512>(random);
        as_wide_as_packed::<47, 752>(random);
        as_wide_as_packed::<60, 960>(random);
    }
}
