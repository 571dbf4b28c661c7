//! Columns of f32 and columns with nulls round-trip, have the expected size, and give the right counts.

use super::round_trip::shape;
use super::{Rng, column_round_trip, few};
use crate::{ColumnType, EncoderState, Stats, chunk, decode_column};

/// Sets some words to null: none, some, nearly all, or one contiguous run.
fn with_nulls(rng: &mut Rng, null: u64, words: &mut [u64]) {
    let (share, from) = (
        [0, 1, 30, 512, 1000][rng.below(5) as usize],
        rng.below(1024),
    );
    for (i, word) in words.iter_mut().enumerate() {
        let in_range = share == 1 && (i as u64) >= from;
        if in_range || rng.below(1024) < share {
            *word = null;
        }
    }
}

#[test]
fn every_type_round_trips_with_nulls_anywhere() {
    crate::kernel::at_every_level(|_| {
        let mut states = [EncoderState::default(); 8];
        for seed in 0..few(600) {
            let mut rng = Rng(seed);
            let n = [1024, 1, 2, 300, 1000, 17][seed as usize % 6];
            for (ty, state) in ColumnType::ALL.into_iter().zip(&mut states) {
                let mut words = shape(&mut rng, n);
                if let Some(null) = ty.null() {
                    with_nulls(&mut rng, null, &mut words);
                }
                column_round_trip(ty, &words, state);
            }
        }
    });
}

#[test]
fn nulls_cost_nine_bits_or_one() {
    let few: Vec<u64> = (0..1024u64)
        .map(|i| if i % 100 == 7 { 1 << 63 } else { i % 2 })
        .collect();
    let (chunk, bytes) = column_round_trip(ColumnType::NullI64, &few, &mut EncoderState::default());
    assert_eq!((chunk.flags, bytes.len()), (chunk::NULLS, 4 + 11 + 2 + 128));
    let half: Vec<u64> = (0..1024u64)
        .map(|i| if i % 2 == 0 { 1 << 63 } else { 5 })
        .collect();
    let (_, bytes) = column_round_trip(ColumnType::NullI64, &half, &mut EncoderState::default());
    assert_eq!(bytes.len(), 4 + 128);
    let all = [ColumnType::NullF64.fill(); 1024];
    let (_, bytes) = column_round_trip(ColumnType::NullF64, &all, &mut EncoderState::default());
    assert!(bytes.is_empty());
    // In a column with nulls, a vector without nulls takes no more bytes than in a column without nulls.
    let none: Vec<u64> = (0..1024).map(|i| i % 7).collect();
    let mut sizes = [ColumnType::I64, ColumnType::NullI64].map(|ty| {
        column_round_trip(ty, &none, &mut EncoderState::default())
            .1
            .len()
    });
    sizes.sort_unstable();
    assert_eq!(sizes[0], sizes[1]);
}

#[test]
fn f32_are_decimals_or_four_bytes() {
    let mut rng = Rng(5);
    let decimal: Vec<u64> = (0..1024)
        .map(|_| ColumnType::widen(rng.below(10_000) as f32 / 100.0))
        .collect();
    let (chunk, bytes) = column_round_trip(ColumnType::F32, &decimal, &mut EncoderState::default());
    assert_eq!((chunk.flags, bytes.len()), (chunk::NARROW, 14 * 128));
    let noise: Vec<u64> = (0..1024)
        .map(|_| ColumnType::widen((rng.unit() - 0.5) as f32))
        .collect();
    let (_, bytes) = column_round_trip(ColumnType::F32, &noise, &mut EncoderState::default());
    assert!(bytes.len() <= 4096, "{}", bytes.len());
    // Floats of random bits, including signalling NaN.
    let bits: Vec<u64> = (0..1024)
        .map(|_| ColumnType::widen(f32::from_bits(rng.next() as u32)))
        .collect();
    let (_, bytes) = column_round_trip(ColumnType::F32, &bits, &mut EncoderState::default());
    assert_eq!(bytes.len(), 4096);
    // Decimals mixed with a few other words, including NaN and null.
    let mut mixed = decimal;
    for (i, odd) in [f32::NAN, f32::INFINITY, -0.0, f32::MIN_POSITIVE, 1.0 / 3.0]
        .into_iter()
        .enumerate()
    {
        mixed[100 * i] = ColumnType::widen(odd);
    }
    mixed[700] = ColumnType::NullF32.fill();
    let (chunk, bytes) =
        column_round_trip(ColumnType::NullF32, &mixed, &mut EncoderState::default());
    assert_eq!(chunk.flags & chunk::NARROW, chunk::NARROW);
    assert!(bytes.len() < 15 * 128, "{}", bytes.len());
    // Words that did not come from f32 must round-trip, too.
    let double: Vec<u64> = (0..100).map(|i| (f64::from(i) * 0.1).to_bits()).collect();
    column_round_trip(ColumnType::F32, &double, &mut EncoderState::default());
}

/// A column of f64 whose values came from f32 takes no more space than a column of f32, also behind an encoder state
/// that was stored, and in vectors that alternate with others.
#[test]
fn f64_that_came_from_f32_are_decimals() {
    let mut rng = Rng(6);
    let mut state = EncoderState::default();
    for vector in 0..40u32 {
        let digits = 1 + vector / 8;
        let words: Vec<u64> = (0..1024)
            .map(|_| {
                let decimal = rng.below(4000) as f64 / 10f64.powi(digits as i32);
                match (vector % 4, rng.below(100)) {
                    (3, _) => decimal.to_bits(),
                    (2, 0) => ColumnType::widen(rng.unit() as f32),
                    (_, 1) => f64::NAN.to_bits(),
                    _ => ColumnType::widen(decimal as f32),
                }
            })
            .collect();
        let (chunk, bytes) = column_round_trip(ColumnType::F64, &words, &mut state);
        let narrow = chunk.flags & chunk::NARROW != 0;
        assert_eq!(narrow, vector % 4 != 3, "vector {vector}");
        assert!(bytes.len() < 15 * 128, "vector {vector}: {}", bytes.len());
        state = EncoderState::from_bytes(state.to_bytes());
    }
    // With full precision, decimals are longer than the floats themselves.
    let full: Vec<u64> = (0..1024)
        .map(|_| ColumnType::widen((rng.unit() - 0.5) as f32))
        .collect();
    let (chunk, bytes) = column_round_trip(ColumnType::F64, &full, &mut state);
    assert!(bytes.len() <= 4096, "{chunk:?}");
    // Whole numbers need no rounding after decoding.
    let whole: Vec<u64> = (0..1024)
        .map(|_| (rng.below(5000) as f64).to_bits())
        .collect();
    for ty in [ColumnType::F64, ColumnType::F32] {
        let (chunk, _) = column_round_trip(ty, &whole, &mut state);
        assert_eq!(chunk.flags, 0);
    }
}

/// Statistics of rows with nulls equal the statistics of the other rows, however the rows are split and merged.
#[test]
fn nulls_count_in_nothing_but_their_number() {
    for seed in 0..few(400) {
        let mut rng = Rng(seed);
        let n = 1 + rng.below(300) as usize;
        for base in [
            ColumnType::F64,
            ColumnType::I64,
            ColumnType::U64,
            ColumnType::F32,
        ] {
            let ty = base.or_null();
            let null = ty.fill();
            let mut words = shape(&mut rng, n);
            with_nulls(&mut rng, null, &mut words);
            let times: Vec<i64> = (0..n as i64).map(|i| 10 * i).collect();
            let kept: Vec<usize> = (0..n).filter(|&i| words[i] != null).collect();
            let kept_times: Vec<i64> = kept.iter().map(|&i| times[i]).collect();
            let kept_words: Vec<u64> = kept.iter().map(|&i| words[i]).collect();
            let expected = Stats::of(base, &kept_times, &kept_words);
            let found = Stats::of(ty, &times, &words);
            let cut = rng.below(1 + n as u64) as usize;
            let mut merged = Stats::of(ty, &times[..cut], &words[..cut]);
            merged.merge_after(&Stats::of(ty, &times[cut..], &words[cut..]));
            for (stats, exact) in [(found, true), (merged, false)] {
                assert_eq!(stats.count(), n as u64);
                assert_eq!(stats.null_count(), (n - kept.len()) as u64);
                assert_eq!(stats.nan_count(), expected.nan_count());
                assert_eq!(stats.value_count(), expected.value_count());
                assert_eq!((stats.min(), stats.max()), (expected.min(), expected.max()));
                assert_eq!(
                    (stats.first(), stats.last()),
                    (Some(words[0]), Some(words[n - 1]))
                );
                assert_eq!(stats.int_sum(), expected.int_sum());
                if exact {
                    assert_eq!(stats.sum().to_bits(), expected.sum().to_bits());
                }
                let bytes = stats.to_bytes();
                assert_eq!(Stats::decode(ty, &bytes).unwrap().to_bytes(), bytes);
                assert!(Stats::decode(base, &bytes).is_err());
            }
            let fill = Stats::of_fill(ty, 3, n as u64);
            let by_rows = Stats::of(ty, &times, &vec![null; n]);
            assert_eq!(fill.to_bytes(), by_rows.to_bytes());
        }
    }
}

#[test]
fn damaged_nulls_and_f32_are_corrupt_or_words() {
    let mut read = [0; 2];
    for seed in 0..few(40_000) {
        let mut rng = Rng(seed);
        let n = 1 + rng.below(200) as usize;
        let ty = [ColumnType::NullI64, ColumnType::NullF32, ColumnType::F32][seed as usize % 3];
        let mut words: Vec<u64> = (0..n)
            .map(|_| ColumnType::widen(rng.below(500) as f32 / 10.0))
            .collect();
        if let Some(null) = ty.null() {
            with_nulls(&mut rng, null, &mut words);
        }
        let mut bytes = Vec::new();
        let mut chunk = crate::encode_column(ty, &words, &mut EncoderState::default(), &mut bytes);
        for _ in 0..1 + rng.below(3) {
            match rng.below(4) {
                0 => chunk.flags ^= 1 << rng.below(8),
                1 => chunk.rows ^= 1 << rng.below(11),
                2 if !bytes.is_empty() => {
                    let at = rng.below(bytes.len() as u64).min(rng.below(40)) as usize;
                    bytes[at] ^= 1 << rng.below(8);
                }
                _ => chunk.length = chunk.length.wrapping_sub(rng.below(4) as u32),
            }
        }
        for rows in [n, chunk.rows()] {
            let mut out = vec![0; rows];
            let found = decode_column(&chunk, &bytes, &mut out).is_ok();
            read[usize::from(found)] += 1;
            if let Ok(Some(line)) = crate::Line::of(&chunk, &bytes, rows) {
                assert!(found);
                let again: Vec<u64> = (0..rows).map(|row| line.word(row)).collect();
                assert_eq!(again, out);
            }
        }
    }
    let enough = read[0] > 1000 && read[1] > 1000;
    assert!(cfg!(miri) || enough, "{read:?}");
}
