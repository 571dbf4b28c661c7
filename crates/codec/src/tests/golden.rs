//! Compares the bytes of every encoding with golden.txt. `TIDALITE_REWRITE=1` rewrites that file; a change of the file
//! is a change of the format.

use super::{column_round_trip, times_round_trip};
use crate::{Chunk, ColumnType, EncoderState, Stats};
use core::fmt::Write;

fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (i, byte) in bytes.iter().enumerate() {
        let gap = if i % 8 == 0 && i > 0 { " " } else { "" };
        let _ = write!(text, "{gap}{byte:02x}");
    }
    text
}

fn describe(text: &mut String, name: &str, (chunk, bytes): (Chunk, Vec<u8>)) {
    let _ = writeln!(text, "# {name}");
    let _ = writeln!(
        text,
        "encoding {} width {} decimals {} {} corrections {} {} rows {} exceptions {} patches {} of {} flags {}",
        chunk.encoding,
        chunk.width,
        chunk.exponent,
        chunk.factor,
        chunk.correction.width,
        chunk.correction.depth,
        chunk.rows,
        chunk.exceptions,
        chunk.patches,
        chunk.patch_width,
        chunk.flags
    );
    let mut description = Vec::new();
    chunk.put(&mut description);
    let _ = writeln!(text, "chunk   {}", hex(&description));
    let _ = writeln!(text, "payload {}\n", hex(&bytes));
}

fn generate() -> String {
    let mut text = String::new();
    let t = &mut text;
    let state = EncoderState::default;
    describe(
        t,
        "times 100, 160 .. 1240",
        times_round_trip(&(0..20).map(|i| 100 + 60 * i).collect::<Vec<_>>()),
    );
    let mut gap: Vec<i64> = (0..20).map(|i| 1000 * i + i % 2 * 10).collect();
    gap[12..].iter_mut().for_each(|time| *time += 86_400_000);
    describe(
        t,
        "times 1000 i + 10 (i mod 2), from row 12 on a day later",
        times_round_trip(&gap),
    );
    // Times that are late by up to 31 ms, so that the deltas have no pattern.
    let late: Vec<i64> = (0..130)
        .map(|i| 1000 * i + crate::encode::fit::scattered((i * i) as usize) as i64 % 32)
        .collect();
    describe(
        t,
        "times 1000 i and up to 31, 130 rows",
        times_round_trip(&late),
    );
    describe(
        t,
        "times far apart",
        times_round_trip(&[i64::MAX, i64::MIN, 0, 77]),
    );

    let mut ints = |name: &str, of: &dyn Fn(i64) -> i64, n: i64| {
        let words: Vec<u64> = (0..n).map(|i| of(i) as u64).collect();
        describe(
            t,
            name,
            column_round_trip(ColumnType::I64, &words, &mut state()),
        );
    };
    ints("i64 -5, 20 rows", &|_| -5, 20);
    ints(
        "i64 -100 + 25 (i * i mod 7), 20 rows",
        &|i| -100 + 25 * (i * i % 7),
        20,
    );
    ints(
        "i64 i * i mod 7, row 9: 10^12, 20 rows",
        &|i| if i == 9 { 1_000_000_000_000 } else { i * i % 7 },
        20,
    );
    ints("i64 i * i mod 7, 130 rows: two lanes", &|i| i * i % 7, 130);
    ints("i64 i * i * i, 20 rows", &|i| i * i * i, 20);
    ints(
        "i64 100 + i * i mod 97 in every third row, else 7: patches in a bitmap, 60 rows",
        &|i| if i % 3 == 0 { 100 + i * i % 97 } else { 7 },
        60,
    );
    ints(
        "i64 i * i mod 101, 10 i above or below in every 12th row: patches with signs, 130 rows",
        &|i| match i % 24 {
            5 => i * i % 101 + 10 * i,
            17 => i * i % 101 - 10 * i,
            _ => i * i % 101,
        },
        130,
    );
    ints(
        "i64 1000 + 37 i mod 509 in every third row, else 7: patches in two lanes, 510 rows",
        &|i| if i % 3 == 0 { 1000 + 37 * i % 509 } else { 7 },
        510,
    );
    let words: Vec<u64> = (0..20).map(|i| u64::MAX - i * i % 7).collect();
    describe(
        t,
        "u64 2^64 - 1 - (i * i mod 7), 20 rows",
        column_round_trip(ColumnType::U64, &words, &mut state()),
    );

    let mut floats = |name: &str, of: &dyn Fn(i32) -> f64, n: i32| {
        let words: Vec<u64> = (0..n).map(|i| of(i).to_bits()).collect();
        describe(
            t,
            name,
            column_round_trip(ColumnType::F64, &words, &mut state()),
        );
    };
    floats("f64 NaN, 20 rows", &|_| f64::NAN, 20);
    floats("f64 i, 20 rows", &f64::from, 20);
    floats(
        "f64 (i * i mod 7) / 100, 20 rows",
        &|i| f64::from(i * i % 7) / 100.0,
        20,
    );
    floats(
        "f64 (100003 i mod 1000003) / 1000, 24 rows",
        &|i| f64::from(i * 100_003 % 1_000_003) / 1000.0,
        24,
    );
    floats(
        "f64 (10^13 + 100003 i mod 1000003) / 1000, 24 rows",
        &|i| (1e13 + f64::from(i * 100_003 % 1_000_003)) / 1000.0,
        24,
    );
    floats(
        "f64 (i * i mod 7) * 0.01, rows 3 and 5: infinity, 24 rows",
        &|i| {
            if i == 3 || i == 5 {
                f64::INFINITY
            } else {
                f64::from(i * i % 7) * 0.01
            }
        },
        24,
    );
    floats(
        "f64 i * i / 10, row 7: -0.0, 24 rows",
        &|i| {
            if i == 7 {
                -0.0
            } else {
                f64::from(i * i) / 10.0
            }
        },
        24,
    );
    floats(
        "f64 (i * i * 12347 mod 10007 + 30000) * 2^-60, 24 rows",
        &|i| f64::from(i * i * 12_347 % 10_007 + 30_000) * 2f64.powi(-60),
        24,
    );
    floats(
        "f64 (65536 + i * i) * 2^-60, 24 rows",
        &|i| f64::from(65_536 + i * i) * 2f64.powi(-60),
        24,
    );
    floats(
        "f64 1 / 3, 10 / 3, 2 / 3, 20 / 3 in turn: a list, 24 rows",
        &|i| f64::from(1 + i / 2 % 2) / 3.0 * 10f64.powi(i % 2),
        24,
    );
    floats(
        "f64 1 / (i + 3)^2, 6 rows",
        &|i| 1.0 / f64::from((i + 3) * (i + 3)),
        6,
    );

    floats(
        "f64 0.1 * (i * i * 37 mod 997) + 0.2: corrections, 64 rows",
        &|i| 0.1 * f64::from(i * i * 37 % 997) + 0.2,
        64,
    );
    floats(
        "f64 (i * i * 12347 mod 10007 - 5000) * 2^-60 and 2^40 in row 5: split with zeros left out, both signs, 24 rows",
        &|i| {
            if i == 5 {
                2f64.powi(40)
            } else {
                f64::from(i * i * 12_347 % 10_007 - 5000) * 2f64.powi(-60)
            }
        },
        24,
    );
    floats(
        "f64 square root of (3 + 7919 i i mod 10007), negative in odd rows: quotients with wide corrections, 64 rows",
        &|i| (f64::from(3 + 7919 * i * i % 10_007)).sqrt() * f64::from(1 - i % 2 * 2),
        64,
    );
    floats(
        "f64 square root of (i div 8 * 7919 mod 101): runs, 256 rows",
        &|i| f64::from(i / 8 * 7919 % 101).sqrt(),
        256,
    );
    floats(
        "f64 square root of (i * i mod 181): a list, 600 rows",
        &|i| f64::from(i * i % 181).sqrt(),
        600,
    );
    let word = |i: u32| ColumnType::widen((i * i % 7) as f32 / 100.0);
    let words: Vec<u64> = (0..20).map(word).collect();
    describe(
        t,
        "f32 (i * i mod 7) / 100, 20 rows",
        column_round_trip(ColumnType::F32, &words, &mut state()),
    );
    let words: Vec<u64> = (1..5)
        .map(|i| ColumnType::widen(1.0 / i as f32 - 0.4))
        .collect();
    describe(
        t,
        "f32 1 / i - 0.4, i from 1 to 4",
        column_round_trip(ColumnType::F32, &words, &mut state()),
    );
    let nulls = |ty: ColumnType, every: u64| -> Vec<u64> {
        let word = |i| if i % every == 5 { ty.fill() } else { i * i % 7 };
        (0..20).map(word).collect()
    };
    for (name, ty, every) in [
        (
            "i64 i * i mod 7, row 5: null, 20 rows",
            ColumnType::NullI64,
            20,
        ),
        (
            "u64 i * i mod 7, i mod 6 = 5: null, 20 rows",
            ColumnType::NullU64,
            6,
        ),
    ] {
        describe(
            t,
            name,
            column_round_trip(ty, &nulls(ty, every), &mut state()),
        );
    }

    let times: Vec<i64> = (0..20).map(|i| 100 + 60 * i).collect();
    let words: Vec<u64> = (0..20)
        .map(|i| {
            if i == 4 {
                f64::NAN
            } else {
                f64::from(i - 9) / 8.0
            }
            .to_bits()
        })
        .collect();
    let _ = writeln!(
        text,
        "# statistics of f64 (i - 9) / 8, row 4: NaN, times 100 + 60 i, 20 rows"
    );
    let _ = writeln!(
        text,
        "{}\n",
        hex(&Stats::of(ColumnType::F64, &times, &words).to_bytes())
    );
    let words: Vec<u64> = (0..20).map(|i: i64| (i - 9) as u64).collect();
    let _ = writeln!(text, "# statistics of i64 i - 9, times 100 + 60 i, 20 rows");
    let _ = writeln!(
        text,
        "{}\n",
        hex(&Stats::of(ColumnType::I64, &times, &words).to_bytes())
    );
    let words = nulls(ColumnType::NullI64, 6);
    let _ = writeln!(
        text,
        "# statistics of i64 i * i mod 7, i mod 6 = 5: null, times 100 + 60 i, 20 rows"
    );
    let _ = writeln!(
        text,
        "{}",
        hex(&Stats::of(ColumnType::NullI64, &times, &words).to_bytes())
    );
    text
}

#[test]
fn the_bytes_have_not_changed() {
    let found = generate();
    if std::env::var_os("TIDALITE_REWRITE").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/tests/golden.txt");
        std::fs::write(path, &found).unwrap();
        return;
    }
    let expected = include_str!("golden.txt");
    for (found, expected) in found.split("\n\n").zip(expected.split("\n\n")) {
        assert_eq!(found, expected);
    }
    assert_eq!(found, expected);
}
