//! Prints the speed of encoding and decoding on this machine, in million values per second: the best of several rounds.
//! Run: `cargo run --release -p tidalite-codec --example codec_speed`
#![expect(clippy::print_stdout, reason = "prints its measurements")]

use std::hint::black_box;
use std::time::Instant;
use tidalite_codec::{
    ColumnType, EncoderState, Stats, decode_column, decode_times, encode_column, encode_times,
};

const ROWS: usize = 1024;

fn rate(name: &str, mut work: impl FnMut()) {
    const CALLS: usize = 300;
    let mut best = f64::MAX;
    for _ in 0..30 {
        let start = Instant::now();
        for _ in 0..CALLS {
            work();
        }
        best = best.min(start.elapsed().as_secs_f64());
    }
    let per_second = (CALLS * ROWS) as f64 / best;
    println!(
        "{name:<28} {:>9.0} M/s {:>7.3} ns",
        per_second / 1e6,
        1e9 / per_second
    );
}

fn main() {
    let mut seed = 1u64;
    let mut random = move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        seed >> 33
    };
    let mut walk = 1000i64;
    let mut column = |of: &mut dyn FnMut(u64, u64, &mut i64) -> u64| -> Vec<u64> {
        (0..ROWS as u64)
            .map(|i| of(i, random(), &mut walk))
            .collect()
    };
    let cases = [
        (
            "ramp",
            ColumnType::F64,
            column(&mut |i, _, _| (i as f64).to_bits()),
        ),
        (
            "decimals",
            ColumnType::F64,
            column(&mut |_, r, _| ((r % 10_000) as f64 / 100.0).to_bits()),
        ),
        (
            "decimals 1% NaN",
            ColumnType::F64,
            column(&mut |_, r, _| {
                if r % 100 == 0 {
                    f64::NAN
                } else {
                    (r % 10_000) as f64 / 100.0
                }
                .to_bits()
            }),
        ),
        (
            "decimals 10% NaN",
            ColumnType::F64,
            column(&mut |_, r, _| {
                if r % 10 == 0 {
                    f64::NAN
                } else {
                    (r % 10_000) as f64 / 100.0
                }
                .to_bits()
            }),
        ),
        (
            "counts * 0.01",
            ColumnType::F64,
            column(&mut |_, r, _| ((r % 10_000) as f64 * 0.01).to_bits()),
        ),
        (
            "walk /100",
            ColumnType::F64,
            column(&mut |_, r, w| {
                *w += (r % 101) as i64 - 50;
                (*w as f64 / 100.0).to_bits()
            }),
        ),
        (
            "single precision",
            ColumnType::F64,
            column(&mut |_, r, _| f64::from(r as f32 / 3.0).to_bits()),
        ),
        (
            "few words",
            ColumnType::F64,
            column(&mut |_, r, _| ((r % 20) as f64).sqrt().to_bits()),
        ),
        (
            "noise",
            ColumnType::F64,
            column(&mut |_, r, _| (r as f64).sqrt().to_bits()),
        ),
        ("flags", ColumnType::I64, vec![3; ROWS]),
        ("integers", ColumnType::I64, column(&mut |_, r, _| r % 1000)),
        (
            "ids",
            ColumnType::I64,
            column(&mut |_, r, w| {
                *w += (r % 9) as i64;
                *w as u64
            }),
        ),
        (
            "wide integers",
            ColumnType::U64,
            column(&mut |_, r, _| r << 30),
        ),
    ];
    let times: Vec<i64> = (0..ROWS as i64).map(|i| 1_400_000_000 + i * 60).collect();
    for (name, ty, words) in &cases {
        let mut state = EncoderState::default();
        let mut out = Vec::with_capacity(16 * ROWS);
        let chunk = encode_column(*ty, words, &mut state, &mut out);
        let bytes = out.clone();
        println!("-- {name}: {:.2} bits", bytes.len() as f64 / 128.0);
        rate("encode", || {
            out.clear();
            black_box(encode_column(*ty, black_box(words), &mut state, &mut out));
        });
        rate("encode without state", || {
            out.clear();
            black_box(encode_column(
                *ty,
                black_box(words),
                &mut EncoderState::default(),
                &mut out,
            ));
        });
        let mut back = vec![0; ROWS];
        rate("decode", || {
            let done = decode_column(black_box(&chunk), black_box(&bytes), &mut back);
            assert!(done.is_ok());
            black_box(&back);
        });
        rate("statistics", || {
            black_box(Stats::of(*ty, &times, black_box(words)));
        });
    }
    println!("-- decimals in vectors of 16 (rates of values)");
    let words = &cases[1].2;
    let mut state = EncoderState::default();
    let mut out = Vec::with_capacity(16 * ROWS);
    rate("encode", || {
        out.clear();
        for part in black_box(words).chunks(16) {
            black_box(encode_column(ColumnType::F64, part, &mut state, &mut out));
        }
    });
    rate("statistics", || {
        for (times, part) in times.chunks(16).zip(black_box(words).chunks(16)) {
            black_box(Stats::of(ColumnType::F64, times, part));
        }
    });
    out.clear();
    let chunks: Vec<_> = words
        .chunks(16)
        .map(|part| encode_column(ColumnType::F64, part, &mut state, &mut out))
        .collect();
    let mut back = [0; 16];
    rate("decode", || {
        let mut at = 0;
        for chunk in &chunks {
            let bytes = &out[at..at + chunk.len()];
            assert!(decode_column(chunk, bytes, &mut back).is_ok());
            black_box(&back);
            at += chunk.len();
        }
    });
    let jitter: Vec<i64> = (0..ROWS as i64)
        .map(|i| i * 1_000_000 + i * 7919 % 1000 * 1000)
        .collect();
    let mut at = 0;
    let microseconds: Vec<i64> = (0..ROWS)
        .map(|_| {
            at += 10_000_000 + (random() % 1000) as i64 * 10;
            at
        })
        .collect();
    let mut gaps = microseconds.clone();
    for gap in [100, 300, 310, 900] {
        gaps[gap..].iter_mut().for_each(|time| *time += 77_000_000);
    }
    let cases = [
        ("constant step", &times),
        ("jitter", &jitter),
        ("random microseconds", &microseconds),
        ("gaps", &gaps),
    ];
    for (name, times) in cases {
        let mut out = Vec::with_capacity(16 * ROWS);
        let mut state = EncoderState::default();
        let chunk = encode_times(times, &mut state, &mut out);
        let bytes = out.clone();
        println!("-- times, {name}: {:.2} bits", bytes.len() as f64 / 128.0);
        rate("encode", || {
            out.clear();
            black_box(encode_times(black_box(times), &mut state, &mut out));
        });
        println!("{:>8.2} bits", out.len() as f64 / 128.0);
        rate("encode without state", || {
            out.clear();
            black_box(encode_times(
                black_box(times),
                &mut EncoderState::default(),
                &mut out,
            ));
        });
        let mut back = vec![0; ROWS];
        rate("decode", || {
            let done = decode_times(black_box(&chunk), black_box(&bytes), &mut back);
            assert!(done.is_ok());
            black_box(&back);
        });
    }
}
