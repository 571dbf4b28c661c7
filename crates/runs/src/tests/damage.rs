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

#[test]
fn every_flipped_bit_is_found_by_check() {
    let mut world = filled();
    let mut rng = Rng::new(5);
    for (addr, pages) in world.pages.live_ranges() {
        for _ in 0..pages * 2 {
            let at = addr + rng.below(pages * 512);
            let bit = rng.below(8) as u8;
            let before = world.check();
            world.pages.flip_bit(at, bit);
            let front = Front::load(&world.pages, &world.root);
            let report = front.and_then(|f| f.check(&world.pages, &mut |_| {}, &mut |_| {}));
            // The padding after the last block of an extent is covered by nothing.
            assert!(report.is_err() || report.is_ok_and(|report| report == before));
            world.pages.flip_bit(at, bit);
        }
    }
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
            kind: Kind::FrontRecord,
            flags: 0,
            owner: 0,
            address: extent.addr,
            birth: pages.txn(),
        };
        let ptr = seal_block(&mut bytes, &header);
        pages.write_extent(extent.addr, &bytes).unwrap();
        let root = FrontRoot {
            record: ptr,
            ..FrontRoot::default()
        };
        let _ = Front::load(&pages, &root);
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
            .front
            .commit(&mut world.pages, &mut world.staging, &mut world.leaves);
        world.pages.fail_after(None);
        if result.is_ok() {
            return;
        }
        world.pages.rollback();
        world.staging.reset();
        world.root = before;
        world.reopen();
        world.check();
    }
    panic!("forty calls suffice for a small commit");
}
