//! Any bytes decode to values or give `Corrupt`; no bytes cause a panic.

use super::{Rng, few};
use crate::chunk;
use crate::{Chunk, ColumnType, EncoderState, STATS_BYTES, Stats};
use crate::{Line, count_up_to, decode_column, decode_times, encode_column, word_at};

fn try_all(chunk: &Chunk, bytes: &[u8], rows: usize) -> bool {
    let mut words = vec![0; rows];
    let mut times = vec![0; rows];
    let read = decode_column(chunk, bytes, &mut words).is_ok();
    assert_eq!(decode_times(chunk, bytes, &mut times).is_ok(), read);
    for row in [0, rows / 2, rows - 1] {
        match word_at(chunk, bytes, rows, row) {
            Ok(Some(word)) => assert!(!read || word == words[row], "row {row} of {chunk:?}"),
            Ok(None) => {}
            Err(_) => assert!(!read, "row {row} of {chunk:?}"),
        }
        let count = count_up_to(chunk, bytes, rows, words[row]);
        assert!(count.is_err() || count.is_ok_and(|count| count.is_none_or(|n| n <= rows)));
    }
    if let Ok(Some(line)) = Line::of(chunk, bytes, rows) {
        assert!(read, "a line of {chunk:?} and {} bytes", bytes.len());
        let again: Vec<u64> = (0..rows).map(|row| line.word(row)).collect();
        assert_eq!(again, words, "{chunk:?}");
        if let Some(quick) = line.words() {
            let again: Vec<u64> = (0..rows).map(|row| quick.at(row)).collect();
            assert_eq!(again, words, "{chunk:?}");
            let one = |row| match quick.is_integer() {
                true => quick.integer(row),
                false => quick.float(row),
            };
            let again: Vec<u64> = (0..rows).map(one).collect();
            assert_eq!(again, words, "{chunk:?}");
        }
    }
    read
}

#[test]
fn random_chunks_and_payloads() {
    let mut read = 0;
    for seed in 0..few(60_000) {
        let mut rng = Rng(seed);
        let rows = 1 + rng.below(1024) as usize;
        let bytes: Vec<u8> = (0..rng.below(9000)).map(|i| (i ^ seed) as u8).collect();
        let mut number = |bits: u32| match rng.below(3) {
            0 => rng.next() >> (64 - bits),
            _ => 0,
        };
        let mut chunk = Chunk {
            exponent: number(8) as u8,
            factor: number(8) as u8,
            exceptions: number(10) as u16,
            patches: number(10) as u16,
            patch_width: number(4) as u8 | [0, chunk::UNSIGNED][(seed % 2) as usize],
            flags: number(4) as u8,
            correction: chunk::Correction {
                width: number(4) as u8,
                depth: number(8) as u8,
            },
            base: number(64),
            start: number(64),
            encoding: rng.below(16) as u8,
            width: rng.below(70) as u8,
            rows: rows as u16,
            length: bytes.len() as u32,
        };
        try_all(&chunk, &bytes, rows);
        // Makes the payload as long as the chunk requires, so that decoding reaches the checks after the length check.
        let asked = decode_column(&chunk, &bytes, &mut vec![0; rows]);
        let Some(length) = asked.err().filter(|e| e.what == "chunk: length") else {
            continue;
        };
        let length: u32 = length.expected.parse().unwrap();
        chunk.length = length;
        let bytes: Vec<u8> = (0..length)
            .map(|_| rng.next() as u8 & (seed as u8))
            .collect();
        read += usize::from(try_all(&chunk, &bytes, rows));
    }
    assert!(
        cfg!(miri) || read > 500,
        "only {read} of the random chunks were readable"
    );
}

#[test]
fn mutated_chunks_and_payloads() {
    let mut state = EncoderState::default();
    for seed in 0..few(20_000) {
        let mut rng = Rng(seed);
        let n = 1 + rng.below(200) as usize;
        let kind = rng.below(8);
        let words: Vec<u64> = (0..n as u64)
            .map(|i| match kind {
                0 => rng.below(5000),
                1 => i * 1000 + if rng.below(50) == 0 { rng.next() } else { 0 },
                2 => (rng.below(5000) as f64 / 10.0).to_bits(),
                3 => (rng.below(5) as f64).sqrt().to_bits(),
                4 => (rng.below(90) as f64 * 0.1 + 0.3).to_bits(),
                5 => ((i / 7) as f64).sqrt().to_bits(),
                6 => (rng.below(1 + n as u64 / 3) as f64 * 0.51).to_bits(),
                _ => (rng.unit() as f32 as f64).to_bits(),
            })
            .collect();
        let ty = if kind < 2 {
            ColumnType::I64
        } else {
            ColumnType::F64
        };
        let mut bytes = Vec::new();
        let chunk = encode_column(ty, &words, &mut state, &mut bytes);
        let mut description = Vec::new();
        chunk.put(&mut description);
        for _ in 0..1 + rng.below(3) {
            match rng.below(3) {
                0 => {
                    let at = rng.below(description.len() as u64) as usize;
                    description[at] ^= 1 << rng.below(8);
                }
                1 if !bytes.is_empty() => {
                    let at = rng.below(bytes.len() as u64) as usize;
                    bytes[at] ^= 1 << rng.below(8);
                }
                _ => bytes.truncate(rng.below(1 + bytes.len() as u64) as usize),
            }
        }
        for rows in [n, n + 1] {
            if let Some((chunk, _)) = Chunk::get(&description, 0, (rows, bytes.len())) {
                try_all(&chunk, &bytes, rows);
            }
        }
    }
}

/// Any bytes either are a description of a chunk, which then behaves like any chunk, or are rejected.
#[test]
fn random_descriptions() {
    let mut found = 0;
    for seed in 0..few(20_000) {
        let mut rng = Rng(seed);
        let mut bytes: Vec<u8> = (0..rng.below(60)).map(|_| rng.next() as u8).collect();
        let at = rng.below(3) as usize;
        for lengths in bytes.iter_mut().skip(at + 2).take(2) {
            *lengths &= if seed % 4 == 0 { 0xff } else { 0x55 };
        }
        let rows = 1 + rng.below(1024) as usize;
        let payload: Vec<u8> = (0..rng.below(9000)).map(|_| rng.next() as u8).collect();
        let Some((chunk, end)) = Chunk::get(&bytes, at, (rows, payload.len())) else {
            continue;
        };
        assert!(end <= bytes.len() && chunk.rows() == rows && chunk.len() == payload.len());
        try_all(&chunk, &payload, rows);
        found += 1;
    }
    assert!(found > 0, "all were refused");
    for at in [6, 9, usize::MAX] {
        assert_eq!(Chunk::get(&[0; 8], at, (1, 0)), None);
    }
}

#[test]
fn random_statistics() {
    let mut total = Stats::empty(ColumnType::I64);
    for seed in 0..few(5000) {
        let mut rng = Rng(seed);
        let mut bytes = [0; STATS_BYTES];
        for byte in &mut bytes[..96] {
            *byte = rng.next() as u8;
        }
        for ty in [ColumnType::F64, ColumnType::I64, ColumnType::U64] {
            bytes[96] = ty.code();
            let Ok(mut stats) = Stats::decode(ty, &bytes) else {
                continue;
            };
            let other = stats;
            stats.merge_after(&other);
            let _ = (
                stats.mean(),
                stats.stddev(),
                stats.sample_stddev(),
                stats.min(),
            );
            if ty == ColumnType::I64 {
                total.merge_after(&stats);
            }
        }
        assert!(Stats::decode(ColumnType::F64, &bytes[..103]).is_err());
        bytes[100] = 1;
        assert!(Stats::decode(ColumnType::U64, &bytes).is_err());
    }
}
