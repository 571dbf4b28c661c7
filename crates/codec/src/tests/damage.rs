//! Any bytes give values or `Corrupt`, never a panic.

use super::{Rng, few};
use crate::{CHUNK_BYTES, Chunk, ColumnType, Hint, STATS_BYTES, Stats};
use crate::{Line, count_up_to, decode_column, decode_times, encode_column, word_at};

fn try_all(chunk: &[u8; CHUNK_BYTES], bytes: &[u8], rows: usize) -> bool {
    let chunk = Chunk::decode(chunk);
    let mut words = vec![0; rows];
    let mut times = vec![0; rows];
    let read = decode_column(&chunk, bytes, &mut words).is_ok();
    assert_eq!(decode_times(&chunk, bytes, &mut times).is_ok(), read);
    for row in [0, rows / 2, rows - 1] {
        match word_at(&chunk, bytes, rows, row) {
            Ok(Some(word)) => assert!(!read || word == words[row], "row {row} of {chunk:?}"),
            Ok(None) => {}
            Err(_) => assert!(!read, "row {row} of {chunk:?}"),
        }
        let count = count_up_to(&chunk, bytes, rows, words[row]);
        assert!(count.is_err() || count.is_ok_and(|count| count.is_none_or(|n| n <= rows)));
    }
    if let Ok(Some(line)) = Line::of(&chunk, bytes, rows) {
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
        let mut chunk = [0; CHUNK_BYTES];
        for byte in &mut chunk {
            *byte = if rng.below(3) == 0 {
                rng.next() as u8
            } else {
                0
            };
        }
        let rows = 1 + rng.below(1024) as usize;
        chunk[0] = rng.below(16) as u8;
        chunk[1] = rng.below(70) as u8;
        chunk[4..6].copy_from_slice(&(rows as u16).to_le_bytes());
        let bytes: Vec<u8> = (0..rng.below(9000)).map(|i| (i ^ seed) as u8).collect();
        chunk[12..16].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        try_all(&chunk, &bytes, rows);
        // Uses the length that the chunk requires, so that the checks after the length check are reached.
        let asked = decode_column(&Chunk::decode(&chunk), &bytes, &mut vec![0; rows]);
        let Some(length) = asked.err().filter(|e| e.what == "chunk: length") else {
            continue;
        };
        let length: u32 = length.expected.parse().unwrap();
        if length > 30_000 {
            continue; // required by an inner chunk; would take too much memory for a test
        }
        chunk[12..16].copy_from_slice(&length.to_le_bytes());
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
    let mut hint = Hint::default();
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
        let mut chunk = encode_column(ty, &words, &mut hint, &mut bytes).to_bytes();
        for _ in 0..1 + rng.below(3) {
            match rng.below(3) {
                0 => chunk[rng.below(16) as usize] ^= 1 << rng.below(8),
                1 if !bytes.is_empty() => {
                    let at = rng.below(bytes.len() as u64) as usize;
                    bytes[at] ^= 1 << rng.below(8);
                }
                _ => bytes.truncate(rng.below(1 + bytes.len() as u64) as usize),
            }
        }
        try_all(&chunk, &bytes, n);
        try_all(&chunk, &bytes, n + 1);
    }
}

/// Any bytes either are a chunk in its short form, which then behaves like any chunk, or are rejected.
#[test]
fn random_short_chunks() {
    let mut found = 0;
    for seed in 0..few(20_000) {
        let mut rng = Rng(seed);
        let mut bytes: Vec<u8> = (0..rng.below(60)).map(|_| rng.next() as u8).collect();
        for lengths in bytes.iter_mut().take(2) {
            *lengths &= if seed % 4 == 0 { 0xff } else { 0x77 };
        }
        let at = rng.below(3) as usize;
        let rows = 1 + rng.below(1024) as usize;
        let Some((chunk, end)) = Chunk::get_short(&bytes, at, rows) else {
            continue;
        };
        assert!(end <= bytes.len() && chunk.rows() == rows);
        if chunk.len() < 9000 {
            let payload: Vec<u8> = (0..chunk.len()).map(|_| rng.next() as u8).collect();
            try_all(&chunk.to_bytes(), &payload, rows);
        }
        found += 1;
    }
    assert!(found > 0, "all were refused");
    assert_eq!(Chunk::get_short(&[0; 8], 5, 1), None);
    assert_eq!(Chunk::get_short(&[0; 8], 9, 1), None);
    assert_eq!(Chunk::get_short(&[0; 8], usize::MAX, 1), None);
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
