use super::*;
use tidalite_testkit::rng::Rng;

fn filled() -> World {
    let mut world = World::new(512, 1 << 20);
    for i in 0..3_000i64 {
        world.point((i % 30) as u64 * 7, i, i as u64 * 3);
        if i % 60 == 0 {
            world.commit();
        }
    }
    world.commit();
    world
}

fn live_pages(world: &World) -> u64 {
    let ranges = world.pages.live_ranges().into_iter();
    ranges.map(|(_, pages)| pages).sum()
}

/// A file with blocks that a delete replaced, and with extents of which a delete removed some blocks but not all.
fn filled_with_dead_blocks() -> World {
    let mut world = World::new(512, 1 << 20);
    // Writes one run of several blocks in one extent.
    for i in 0..9_000i64 {
        world.point((i % 30) as u64 * 7, i, i as u64 * 3);
    }
    world.commit();
    let before = live_pages(&world);
    for series in [0, 70, 196] {
        world.delete(series, 3_000, 3_500);
        world.commit();
    }
    assert!(live_pages(&world) > before, "dead blocks stay");
    world
}

#[test]
fn every_flipped_bit_is_found_by_check() {
    for mut world in [filled(), filled_with_dead_blocks()] {
        let mut rng = Rng::new(5);
        world.check();
        for (addr, pages) in world.pages.live_ranges() {
            for _ in 0..pages * 2 {
                let at = addr + rng.below(pages * 512);
                let bit = rng.below(8) as u8;
                world.pages.flip_bit(at, bit);
                let delta = Delta::load(&world.pages, &world.root);
                let report = delta.and_then(|f| f.check(&world.pages, &mut |_| {}, &mut |_| {}));
                assert!(report.is_err(), "bit {bit} of byte {at}");
                world.pages.flip_bit(at, bit);
            }
        }
        world.check();
    }
}

#[test]
fn an_extent_goes_with_its_last_block() {
    let mut world = World::new(512, 1 << 20);
    for i in 0..900i64 {
        world.point((i % 30) as u64 * 7, i, i as u64 * 3);
    }
    world.commit();
    let before = live_pages(&world);
    // Deletes the last rows of each series. A gap in the middle could make the remaining rows take more bytes than
    // before.
    for series in 0..30 {
        world.delete(series * 7, 700, 900);
    }
    world.commit();
    world.check();
    assert!(
        live_pages(&world) <= before,
        "thirty deletes leave one block"
    );
}

#[test]
fn garbage_under_a_valid_checksum_is_an_error_not_a_panic() {
    use tidalite_pager::{Header, Kind, seal_block};
    let world = filled();
    let record = world.root.record;
    let good = world.pages.block(&record).unwrap().to_vec();
    let mut rng = Rng::new(9);
    let mut pages = ScratchPages::new(512);
    for _ in 0..3_000 {
        let mut bytes = good.clone();
        for _ in 0..1 + rng.below(4) {
            let at = 32 + rng.index(bytes.len() - 32);
            bytes[at] = rng.u64() as u8;
        }
        let cut = 32 + rng.index(bytes.len() - 32);
        if rng.one_in(3) {
            bytes.truncate(cut);
        }
        let extent = pages
            .alloc_extent(bytes.len().div_ceil(512) as u64)
            .unwrap();
        let header = Header {
            kind: Kind::DeltaRecord,
            flags: 0,
            owner: 0,
            address: extent.addr,
            birth: pages.txn(),
        };
        let ptr = seal_block(&mut bytes, &header);
        pages.write_extent(extent.addr, &bytes).unwrap();
        let root = DeltaRoot {
            record: ptr,
            ..DeltaRoot::default()
        };
        let _ = Delta::load(&pages, &root);
        pages.free_extent(&extent);
    }
}

#[test]
fn a_full_disk_is_an_error_and_rolls_back() {
    let mut world = filled();
    for calls in 0..40 {
        let before = world.root;
        for i in 0..400i64 {
            world.point((i % 30) as u64 * 7, 10_000 + i, 1);
        }
        world.pages.fail_after(Some(calls));
        let result = world
            .delta
            .commit(&mut world.pages, &mut world.buffer, &mut world.leaves);
        world.pages.fail_after(None);
        if result.is_ok() {
            return;
        }
        world.pages.rollback();
        world.buffer.reset();
        world.root = before;
        world.reopen();
        world.check();
    }
    panic!("forty calls suffice for a small commit");
}

/// Returns a forged copy of a block or page: its checksum is valid, but its contents are nonsense.
fn forge(rng: &mut Rng, good: &[u8], head: usize) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for _ in 0..1 + rng.below(5) {
        let near = if rng.one_in(2) {
            head.min(bytes.len() - 32)
        } else {
            bytes.len() - 32
        };
        let at = 32 + rng.index(near);
        bytes[at] = if rng.one_in(3) { 255 } else { rng.u64() as u8 };
    }
    bytes
}

#[test]
fn forged_blocks_and_tails_are_errors_or_rows_never_panics() {
    use crate::run::block::Block;
    use tidalite_pager::{Header, Kind, seal_block};
    let mut world = filled();
    for time in 0..4 {
        world.point(7, 100_000 + time, 1);
    }
    world.commit();
    let mut rng = Rng::new(77);
    let (run, _) = world.delta.live_runs(0).next().unwrap();
    let entry = crate::run::directory::entry_at_or_before(
        &run.directory,
        &world.pages,
        &crate::key::Key::new(0, SeriesId(7 * 7), i64::MAX),
    )
    .unwrap()
    .unwrap();
    let good = world.pages.block(&entry.ptr).unwrap().to_vec();
    let tail = world.pages.page(&world.root.tail).unwrap().to_vec();
    let mut pages = ScratchPages::new(512);
    let (mut errors, mut block) = (0, Block::default());
    for round in 0..20_000 {
        let mut bytes = forge(&mut rng, &good, 200);
        if rng.one_in(9) {
            bytes.truncate(32 + rng.index(bytes.len() - 32));
        }
        let extent = pages
            .alloc_extent(bytes.len().div_ceil(512) as u64)
            .unwrap();
        let header = Header {
            kind: Kind::RunBlock,
            flags: 0,
            owner: 0,
            address: extent.addr,
            birth: pages.txn(),
        };
        let ptr = seal_block(&mut bytes, &header);
        pages.write_extent(extent.addr, &bytes).unwrap();
        errors += u32::from(
            block
                .read(&pages, &ptr, &world.delta.layouts, true)
                .is_err(),
        );
        pages.free_extent(&extent);

        let forged = forge(&mut rng, &tail, 24);
        let ptr = pages.new_page(Kind::Tail, 0).unwrap();
        pages.page_mut(&ptr).unwrap()[32..].copy_from_slice(&forged[32..]);
        let ptr = pages.seal_page(&ptr).unwrap();
        let pieces = crate::run::tail::pieces(&pages, &ptr, &world.delta.layouts);
        errors += u32::from(pieces.is_err());
        let delta = Delta {
            tail: ptr,
            ..world.delta.clone()
        };
        let mut rows = Rows::default();
        let everything = (i64::MIN, i64::MAX);
        let one = Delta {
            record: crate::record::Record::default(),
            ..delta
        };
        let _ = one.rows(&pages, SeriesId(7), &POINT, everything, &mut rows);
        let mut appended = one.tail;
        if round % 50 == 0 && crate::run::tail::used(&pages, &appended).is_ok() {
            let deleted = crate::run::tail::delete(
                &mut pages,
                &appended,
                &one.layouts,
                (0, SeriesId(7)),
                everything,
            );
            if let Ok(Some((ptr, ..))) = deleted {
                appended = ptr;
            }
        }
        if !appended.is_null() {
            pages.free_page(&appended);
        }
    }
    assert!(errors > 1_000, "{errors}");
}

#[test]
fn a_forged_run_is_walked_without_panic() {
    // Forges inconsistent directory entries: the blocks are in another order, of another run, or with other bounds.
    let mut rng = Rng::new(123);
    for round in 0..60 {
        let mut world = filled();
        let runs: Vec<_> = world.delta.live_runs(0).map(|(run, _)| *run).collect();
        let mut entries = Vec::new();
        for run in &runs {
            let all = crate::key::Key::MIN;
            crate::run::directory::entries_from(
                &run.directory,
                &world.pages,
                &all,
                99,
                &mut entries,
            )
            .unwrap();
        }
        for tier in &mut world.delta.record.tiers {
            for run in &mut tier.runs {
                for _ in 0..1 + rng.below(3) {
                    let mut entry = *rng.pick(&entries);
                    if rng.one_in(2) {
                        entry.first.series = SeriesId(rng.below(210));
                    }
                    if rng.one_in(2) {
                        entry.last.time = rng.u64() as i64;
                    }
                    entry.rows = rng.below(2_000) as u32;
                    crate::run::directory::put_entry(&mut run.directory, &mut world.pages, &entry)
                        .unwrap();
                }
            }
        }
        let checked = world.delta.check(&world.pages, &mut |_| {}, &mut |_| {});
        assert!(checked.is_err(), "round {round}");
        let mut rows = Rows::default();
        for series in 0..30 {
            let (series, span) = (SeriesId(series * 7), (rng.between(0, 3_000), i64::MAX));
            let _ = world
                .delta
                .rows(&world.pages, series, &POINT, span, &mut rows);
            let _ = world.delta.latest(&world.pages, series, &POINT, span);
            let _ = world.delta.first(&world.pages, series, &POINT, span.0);
        }
        let _ = world.delta.series_row_counts(&world.pages);
        // A writer then compacts the damaged runs, which must end with an error or with valid pages.
        for time in 0..2_000i64 {
            world.point((time % 30) as u64 * 7, 5_000 + time, 1);
            if time % 20 == 19 {
                let commit =
                    world
                        .delta
                        .commit(&mut world.pages, &mut world.buffer, &mut world.leaves);
                if commit.is_err() {
                    break;
                }
                world.buffer.reset();
            }
        }
    }
}
