//! Tests the bytes of leaf directories one by one, and rows at the limits of the format.

use super::World;
use std::fmt::Write;
use tidalite_base::SeriesId;
use tidalite_codec::{ColumnType, Rows};
use tidalite_pager::PageRead;
use tidalite_testkit::rng::Rng;

/// The bytes of the directories of all leaves, each after its header.
fn directories(world: &World) -> String {
    let mut out = String::new();
    for entry in world.tree.tops() {
        let ptr = &entry.link.ptr;
        let block = world.pages.bytes(ptr.addr, ptr.len as usize).unwrap();
        for byte in &block[32..] {
            write!(out, "{byte:02x}").unwrap();
        }
    }
    out
}

/// The hexadecimal bytes of a text, without the comments in the text.
fn bytes_of(golden: &str) -> String {
    let lines = golden.lines().map(|line| line.split('#').next().unwrap());
    lines.flat_map(str::split_whitespace).collect()
}

/// Compares the example of docs/format.md byte by byte.
#[test]
fn directory_bytes_match_the_golden_file() {
    let types = [ColumnType::I64, ColumnType::NullF64, ColumnType::U64];
    let mut world = World::new(4096, 8, &types);
    let mut rows = Rows::new(3);
    for i in 0..5u64 {
        let float = [0.5, f64::NAN, 2.0, -0.25, 0.0][i as usize].to_bits();
        let word = if i == 3 { types[1].fill() } else { float };
        rows.push_row(1000 + 10 * i as i64, &[(i * i) ^ 1, word, 9]);
    }
    world.link(rows.view());
    world.check();
    assert_eq!(directories(&world), bytes_of(STEPPED));
    let mut world = World::new(4096, 8, &types[..1]);
    let mut rows = Rows::new(1);
    for (time, word) in [(-300, u64::MAX), (-7, 2), (90, 2)] {
        rows.push_row(time, &[word]);
    }
    world.link(rows.view());
    world.check();
    assert_eq!(directories(&world), bytes_of(IRREGULAR));
}

const STEPPED: &str = "
    05000000 01 03 0000           # 5 rows in 1 vector of 3 columns
    b0000000 15000000             # bytes of the directory, of payloads
    e803000000000000 1004000000000000
    01 00 0800 00000000           # times: stepped
    00 02 1e00 08000000           # i64: entries of 30 bytes, 8 bytes of payloads
    00 11 2200 0d000000           # f64 with nulls
    01 03 0800 00000000           # u64: one word
    0a00000000000000              # the step
    1b 0800                       # an entry of 27 bytes, 8 bytes of payload
    011111010300                  # lengths of the 12 numbers of the statistics
    01 11 11                      # first 1 more than min, which is 0; max and last 17 more
    01 04                         # min in row 1, max in row 4
    3e 4077b0                     # sum 31, squares 379.0
    03 05 0000                    # encoding, width, lengths of the 4 numbers of the chunk
    10ea591b38698460              # checksum
    1f 0d00
    010111020211
    05 14                         # tenths: first 5 more than min, which is 0; max 20 more, last 0
    04 02 4004 4011               # min in row 4, max in row 2, sum 2.5, squares 4.25
    01 22                         # one NaN, one null; code 2: tenths
    07 0c 0300 330004             # exponent 51 (low zeros), flags 4: nulls
    12e1574f95a57c5e
    0900000000000000              # the word
";
const IRREGULAR: &str = "
    03000000 01 01 0000
    8c000000 20000000
    d4feffffffffffff 5a00000000000000
    00 00 1b00 10000000           # times: entries of 27 bytes, 16 bytes of payloads
    00 02 2100 10000000
    18 1000                       # an entry of 24 bytes, 16 bytes of payload
    2002 8601 fd03                # 390 from begin to end; 1021 rows fewer than 1024
    04 01 0321                    # encoding, width, lengths of the 4 numbers of the chunk
    000001 c2 5702                # flags 1: scaled; the smallest step is 97, the first time -300
    104276e6655ae084
    1e 1000
    101120010200
    01 03 03                      # min -1, which is first; max and last 3 more
    2501                          # max 293 after the begin
    06 4022                       # sum 3, squares 9.0
    03 01 0301 000001 01          # the least word is -1
    d49cc514012afb84
";

#[test]
fn extreme_values_round_trip() {
    let seed = 421;
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    for round in 0..60 {
        let types: Vec<ColumnType> = (0..rng.between(1, 6))
            .map(|_| *rng.pick(&ColumnType::ALL))
            .collect();
        let mut world = World::new(4096, 4, &types);
        let mut time = *rng.pick(&[i64::MIN, -1_000_000, 0, i64::MAX - (1 << 50)]);
        let step = *rng.pick(&[1, 1000, 1 << 32]);
        let even = rng.one_in(2);
        let plain = rng.one_in(2);
        let mut rows = Rows::new(types.len());
        for i in 0..*rng.pick(&[1u64, 2, 1023, 1024, 1025, 5000]) {
            let words: Vec<u64> = types
                .iter()
                .map(|ty| match rng.below(if plain { 200 } else { 8 }) {
                    0 => i64::MIN as u64,
                    1 => i64::MAX as u64,
                    2 => u64::MAX,
                    3 => f64::NAN.to_bits(),
                    4 => (-0.0f64).to_bits(),
                    5 => ty.fill(),
                    6 => f64::NEG_INFINITY.to_bits(),
                    _ if ty.is_float() => (i as f64 / 4.0).to_bits(),
                    _ => i % 77,
                })
                .collect();
            rows.push_row(time, &words);
            time += if even { step } else { rng.between(1, step) };
        }
        world.link(rows.view());
        let report = world.check();
        assert_eq!(report.problems.len(), 0, "round {round}");
        let mut found = Rows::new(types.len());
        let wanted: Vec<usize> = (0..types.len()).collect();
        let read = world
            .view()
            .for_each_vector(i64::MIN, i64::MAX, &wanted, |vector| {
                found.times.extend_from_slice(vector.times());
                for &c in &wanted {
                    found.columns[c].extend_from_slice(vector.words(c));
                }
            });
        read.unwrap();
        assert_eq!(found, rows, "round {round}: {types:?}");
    }
}

/// A check also verifies bytes of the directory that readers never access.
#[test]
fn check_reports_a_directory_that_is_not_canonical() {
    let mut world = World::new(4096, 8, &[ColumnType::I64]);
    let mut rows = Rows::new(1);
    for i in 0..600i64 {
        rows.push_row(i * i, &[(i % 5) as u64]);
    }
    world.link(rows.view());
    let (report, ptr) = (world.check(), world.tree.tops().next().unwrap().link.ptr);
    assert_eq!(report.leaves, 1);
    assert_eq!(SeriesId(7), world.tree.id());
    // The two bytes between the number of columns and the lengths must be 0.
    let changed = super::damage::with_changes(&world, &[(ptr.addr + 38, 1)]);
    assert!(!changed.is_empty(), "a field that is not 0");
}
