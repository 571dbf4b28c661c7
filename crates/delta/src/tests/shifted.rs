//! Tests of blocks in which the times of each series lie near a line, with a separate time shift per series.

use super::*;
use crate::key::Key;
use crate::run::block::{Block, encode_block, encoded_len};
use crate::run::directory::entries_from;
use tidalite_codec::{EncoderState, SHIFTS_BYTES_MAX};
use tidalite_pager::{Extent, HEADER_BYTES, Header, Kind, Ptr, seal_block};
use tidalite_testkit::rng::Rng;

/// Offset in a block of the byte with the length of the time shifts.
const SHIFTS_AT: usize = HEADER_BYTES + 3;
const TICK: i64 = 1_000_000_000;

/// Returns a time that follows the time of the row before by about one tick.
fn late(rng: &mut Rng, begin: i64, row: i64) -> i64 {
    begin + row * TICK + (rng.below(1 << 20) * 100) as i64
}

/// Returns rows of three series; the times of each series lie near a separate line.
fn sample(rng: &mut Rng) -> (Vec<u64>, Rows) {
    let (mut series, mut rows) = (Vec::new(), Rows::default());
    rows.columns.resize(2, Vec::new());
    for (id, begin) in [(3, i64::MIN), (4, i64::MAX - 400 * TICK), (u64::MAX, 0)] {
        for row in 0..300 {
            series.push(id);
            rows.times.push(late(rng, begin, row));
            rows.columns[0].push(id.wrapping_add(row as u64));
            rows.columns[1].push((rng.below(1000) as f64 / 10.0).to_bits());
        }
    }
    (series, rows)
}

/// Writes a block, with a valid header but arbitrary contents, to an extent.
fn placed(pages: &mut ScratchPages, bytes: &mut [u8]) -> (Ptr, Extent) {
    let count = bytes.len().div_ceil(512) as u64;
    let extent = pages.alloc_extent(count).unwrap();
    let header = Header {
        kind: Kind::RunBlock,
        flags: 0,
        owner: 0,
        address: extent.addr,
        birth: pages.txn(),
    };
    let ptr = seal_block(bytes, &header);
    pages.write_extent(extent.addr, bytes).unwrap();
    (ptr, extent)
}

#[test]
fn times_from_one_end_to_the_other_come_back() {
    let mut rng = Rng::new(433);
    let layouts: [Box<[ColumnType]>; 1] = [POINT.into()];
    let mut pages = ScratchPages::new(512);
    let (mut encoder_states, mut block) = (Vec::<EncoderState>::new(), Block::default());
    for _ in 0..20 {
        let (series, rows) = sample(&mut rng);
        let mut bytes = Vec::new();
        encode_block(
            0,
            &POINT,
            &series,
            rows.view(),
            &mut encoder_states,
            &mut bytes,
        );
        assert!((1..=SHIFTS_BYTES_MAX).contains(&usize::from(bytes[SHIFTS_AT])));
        assert_eq!(encoded_len(&bytes), Some(bytes.len()));
        let (ptr, extent) = placed(&mut pages, &mut bytes);
        for columns in [true, false] {
            block.read(&pages, &ptr, &layouts, columns).unwrap();
            assert_eq!(block.series, series);
            assert_eq!(block.rows.times, rows.times);
            assert!(!columns || block.rows.columns == rows.columns);
        }
        for id in [0, 3, 4, 5, u64::MAX] {
            let place = (0, SeriesId(id));
            let last = block.read_last(&pages, &ptr, &layouts, place).unwrap();
            let row = series.iter().rposition(|&other| other == id);
            let row = row.map(|row| {
                let words = rows.columns.iter().map(|column| column[row]).collect();
                (rows.times[row], words)
            });
            assert_eq!(last, row, "series {id}");
        }
        pages.free_extent(&extent);
    }
}

#[test]
fn forged_shifts_are_errors_or_rows_never_panics() {
    let mut rng = Rng::new(434);
    let layouts: [Box<[ColumnType]>; 1] = [POINT.into()];
    let (series, rows) = sample(&mut rng);
    let (mut encoder_states, mut good) = (Vec::<EncoderState>::new(), Vec::new());
    encode_block(
        0,
        &POINT,
        &series,
        rows.view(),
        &mut encoder_states,
        &mut good,
    );
    let mut pages = ScratchPages::new(512);
    let (mut errors, mut read, mut block) = (0, 0, Block::default());
    // The chunks (encoding descriptions) and time shifts, in which bits are flipped, lie within the first two hundred
    // bytes.
    for _ in 0..20_000 {
        let mut bytes = good.clone();
        for _ in 0..1 + rng.below(3) {
            let at = HEADER_BYTES + rng.index(200);
            bytes[at] = match rng.below(3) {
                0 => 255,
                1 => bytes[at] ^ 1 << rng.below(8),
                _ => rng.u64() as u8,
            };
        }
        if rng.one_in(9) {
            bytes.truncate(HEADER_BYTES + rng.index(bytes.len() - HEADER_BYTES));
        }
        assert!(encoded_len(&bytes).is_none_or(|len| len <= bytes.len()));
        let (ptr, extent) = placed(&mut pages, &mut bytes);
        match block.read(&pages, &ptr, &layouts, true) {
            Ok(()) => read += 1,
            Err(_) => errors += 1,
        }
        let place = (0, SeriesId(series[rng.index(series.len())]));
        let _ = block.read_last(&pages, &ptr, &layouts, place);
        pages.free_extent(&extent);
    }
    // Sets the length of the time shifts to values that are too small or too large.
    for bytes in [0, good[SHIFTS_AT] - 1, good[SHIFTS_AT] + 1, 255] {
        let mut odd = good.clone();
        odd[SHIFTS_AT] = bytes;
        let (ptr, _) = placed(&mut pages, &mut odd);
        assert!(block.read(&pages, &ptr, &layouts, true).is_err());
    }
    assert!(errors > 1_000 && read > 1_000, "{errors}, {read}");
}

/// Makes commits and compactions in, deletes from, and reopens a delta whose blocks mostly have time shifts.
#[test]
fn shifted_rows_are_found_deleted_and_merged() {
    let (mut world, mut rng) = (World::new(4096, 16 << 20), Rng::new(435));
    let (mut shifted, mut blocks) = (0, 0);
    for round in 0..24 {
        for series in (0..30).filter(|series| series % 7 < 5) {
            for row in 0..200 {
                let time = late(&mut rng, series as i64 * 77, round * 200 + row);
                let value = rng.below(1000) as f64 / 10.0;
                world.put(series, time, &[row as u64, value.to_bits()]);
            }
        }
        world.commit();
        world.check();
        let (run, _) = world.delta.live_runs(0).next().unwrap();
        let mut entries = Vec::new();
        entries_from(&run.directory, &world.pages, &Key::MIN, 99, &mut entries).unwrap();
        for entry in entries {
            let bytes = world.pages.block(&entry.ptr).unwrap();
            shifted += u64::from(bytes[SHIFTS_AT] != 0);
            blocks += 1;
        }
        let series = [0, 7, 8, 14, 23][round as usize % 5];
        let from = rng.below(200 * (round as u64 + 1)) as i64 * TICK;
        world.delete(series, from, from + 50 * TICK);
        world.compare(series, i64::MIN, i64::MAX);
        if round % 5 == 4 {
            world.commit();
            world.reopen();
        }
    }
    world.commit();
    world.check();
    for series in 0..30 {
        world.compare(series, i64::MIN, i64::MAX);
        let from = rng.below(4800) as i64 * TICK;
        world.compare(series, from, from + 300 * TICK);
    }
    assert!(shifted > blocks / 2, "{shifted} of {blocks} blocks");
}
