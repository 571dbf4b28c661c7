//! Columns in cold form round-trip bit by bit; damaged columns are rejected.

use super::{Rng, few};
use crate::{Chunk, ColdColumn, ColumnType, decode_cold, encode_cold};

const TYPES: [ColumnType; 8] = ColumnType::ALL;

/// Creates words of some shape; words of an f32 column are widened floats, except in one kind of words.
fn words(rng: &mut Rng, ty: ColumnType, rows: usize) -> Vec<u64> {
    let kind = rng.below(8);
    let mut walk = 0i64;
    let null = ty.null();
    let mut word = |i: u64| {
        walk += rng.below(7) as i64 - 3;
        let number = match kind {
            0 => walk as f64,
            1 => walk as f64 / 100.0,
            2 => rng.unit(),
            3 => (i as f64 / 10.0).sin(),
            4 => (rng.below(40) * rng.below(40)) as f64 * 0.1 + 0.3,
            5 => (i * 1000 + rng.below(30)) as f64,
            6 => [f64::NAN, -0.0, f64::INFINITY, 5e-324, 1.5][rng.below(5) as usize],
            _ => f64::from_bits(rng.next()),
        };
        if rng.below(20) == 0
            && let Some(null) = null
        {
            return null;
        }
        match ty.base() {
            ColumnType::F64 => number.to_bits(),
            ColumnType::F32 if kind == 7 => rng.next(),
            ColumnType::F32 => ColumnType::widen(number as f32),
            _ if kind == 7 => rng.next(),
            _ => (number * 10.0) as i64 as u64,
        }
    };
    (0..rows as u64).map(&mut word).collect()
}

fn vectors(rng: &mut Rng, ty: ColumnType) -> Vec<Vec<u64>> {
    let whole = rng.below(4) as usize;
    let last = 1 + rng.below(1024) as usize;
    let all = words(rng, ty, whole * 1024 + last);
    let mut vectors: Vec<Vec<u64>> = all.chunks(1024).map(<[u64]>::to_vec).collect();
    if rng.below(3) == 0 {
        vectors[0].fill(7); // a vector whose words are all equal has no cold form
    }
    vectors
}

fn cold(ty: ColumnType, vectors: &[Vec<u64>]) -> Option<ColdColumn> {
    let slices: Vec<&[u64]> = vectors.iter().map(Vec::as_slice).collect();
    encode_cold(ty, &slices)
}

#[test]
fn columns_come_back() {
    let mut seen = 0;
    for seed in 0..few(600) {
        let mut rng = Rng(seed);
        let ty = TYPES[rng.below(8) as usize];
        let vectors = vectors(&mut rng, ty);
        let Some(column) = cold(ty, &vectors) else {
            let flat = vectors.iter().all(|v| v.iter().all(|w| *w == v[0]));
            assert!(flat, "seed {seed}: {ty:?} is not encoded");
            continue;
        };
        assert_eq!(column.vectors.len(), vectors.len());
        for (words, encoded) in vectors.iter().zip(&column.vectors) {
            let Some((chunk, payload)) = encoded else {
                assert!(words.iter().all(|word| *word == words[0]), "seed {seed}");
                continue;
            };
            assert!(chunk.is_cold() && chunk.len() == payload.len());
            let chunk = super::described(chunk);
            let mut back = vec![0x5555; words.len()];
            decode_cold(&column.model, &chunk, payload, &mut back)
                .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            assert_eq!(back, *words, "seed {seed}: {ty:?}");
            seen += 1;
            // The decoder of the normal form rejects a vector in cold form; the cold decoder rejects another number of
            // rows.
            assert!(crate::decode_column(&chunk, payload, &mut back).is_err());
            let mut short = vec![0; words.len() - 1];
            assert!(decode_cold(&column.model, &chunk, payload, &mut short).is_err());
        }
    }
    assert!(cfg!(miri) || seen > 800, "{seen} vectors");
}

/// Any bytes give values or `Corrupt`: the test changes bits and bytes of model, chunk and page, and cuts, swaps and
/// invents pages.
#[test]
fn damaged_columns() {
    let (mut refused, mut read) = (0, 0);
    for seed in 0..few(ROUNDS) {
        let mut rng = Rng(seed ^ 0xc01d);
        let ty = TYPES[rng.below(8) as usize];
        let vectors = vectors(&mut rng, ty);
        let Some(column) = cold(ty, &vectors) else {
            continue;
        };
        for (words, encoded) in vectors.iter().zip(&column.vectors) {
            let Some((chunk, payload)) = encoded else {
                continue;
            };
            for _ in 0..MUTATIONS {
                let (mut model, mut page) = (column.model.clone(), payload.clone());
                let mut description = Vec::new();
                chunk.put(&mut description);
                for _ in 0..1 + rng.below(3) {
                    let length = model.len() as u64;
                    match rng.below(8) {
                        0..=2 => {
                            // Changes a byte near the beginning, where modes, widths and counts are.
                            let near = 1 + rng.below(20);
                            let at = rng.below(length.min(near)) as usize;
                            model[at] ^= 1 << rng.below(8);
                        }
                        3 => {
                            let at = rng.below(length) as usize;
                            model[at] = rng.next() as u8;
                        }
                        4 => model.truncate(rng.below(1 + length) as usize),
                        5 if !page.is_empty() => {
                            let at = rng.below(page.len() as u64) as usize;
                            page[at] ^= 1 << rng.below(8);
                        }
                        6 => page.truncate(rng.below(1 + page.len() as u64) as usize),
                        _ => {
                            let at = rng.below(description.len() as u64) as usize;
                            description[at] ^= 1 << rng.below(8);
                        }
                    }
                    if model.is_empty() {
                        model.push(rng.next() as u8);
                    }
                }
                let mut out = vec![0; words.len()];
                let of = (words.len(), page.len());
                let is_read = Chunk::get(&description, 0, of)
                    .is_some_and(|(chunk, _)| decode_cold(&model, &chunk, &page, &mut out).is_ok());
                refused += usize::from(!is_read);
                read += usize::from(is_read);
            }
        }
    }
    println!("{refused} refused, {read} read");
    assert!(
        refused > 1000 && read > 100,
        "{refused} refused, {read} read"
    );
}

const ROUNDS: u64 = 150;
const MUTATIONS: usize = 40;
