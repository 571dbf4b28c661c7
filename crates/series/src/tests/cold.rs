//! Tests trees with leaves in cold form, which is smaller but slower to read.

use super::World;
use crate::{KeptHot, Moving};
use tidalite_codec::{ColumnType, Rows};
use tidalite_kv::Relocation;
use tidalite_pager::Kind;
use tidalite_testkit::rng::Rng;

const TYPES: [ColumnType; 3] = [ColumnType::F64, ColumnType::I64, ColumnType::NullF32];

/// Creates rows with jittered times, a random walk with two decimals, a skewed count, and single-precision values with
/// gaps.
fn rows(rng: &mut Rng, begin: i64, count: usize) -> Rows {
    let mut rows = Rows::new(3);
    let (mut time, mut walk) = (begin, 0i64);
    for _ in 0..count {
        time += 1_000_000 + rng.below(100) as i64 * rng.below(100) as i64;
        walk += rng.below(5) as i64 * rng.below(5) as i64 - 4;
        let single = match rng.one_in(9) {
            true => TYPES[2].null().unwrap_or_default(),
            false => ColumnType::widen((rng.f64() * rng.f64()) as f32),
        };
        let words = [
            (walk as f64 / 100.0).to_bits(),
            rng.u64().leading_zeros().into(),
            single,
        ];
        rows.push_row(time, &words);
    }
    rows
}

fn kinds(world: &World) -> (usize, usize) {
    let (mut cold, mut all) = (0, 0);
    let count = |link: &crate::Link| {
        all += 1;
        cold += usize::from(link.ptr.kind == Kind::SeriesCold);
        true
    };
    world.tree.for_each_leaf_while(&world.pages, count).unwrap();
    (cold, all)
}

#[test]
fn old_leaves_shrink_in_cold_form_and_keep_their_rows() {
    let mut rng = Rng::new(5);
    let mut world = World::new(4096, 4, &TYPES);
    let mut begin = 0;
    for _ in 0..12 {
        let rows = rows(&mut rng, begin, 9000);
        begin = rows.times[rows.len() - 1];
        world.link(rows.view());
    }
    let before = world.tree.stored_bytes();
    // Rewrites the leaves before the middle in cold form, in steps of at least one leaf each.
    let middle = begin / 2;
    let mut steps = 0;
    while world
        .tree
        .has_warm_leaves(&world.pages, middle, &KeptHot::new())
        .unwrap()
    {
        let done = world.cool(middle, 20_000);
        assert!(
            done.rows > 0 && done.bytes_after < done.bytes_before,
            "{done:?}"
        );
        world.check();
        steps += 1;
    }
    assert!(steps > 1, "{steps} steps");
    let (cold, all) = kinds(&world);
    assert!(cold > 0 && cold < all, "{cold} of {all} leaves are cold");
    assert_eq!(
        world.cool(middle, u64::MAX).leaves,
        0,
        "nothing is done twice"
    );

    let rest = world.cool(i64::MAX, u64::MAX);
    assert!(rest.leaves > 0);
    let (cold, all) = kinds(&world);
    assert_eq!(cold, all);
    let after = world.tree.stored_bytes();
    println!("{before} bytes hot, {after} cold, {all} leaves");
    assert!(
        after * 100 < before * 95,
        "{before} bytes hot, {after} cold"
    );
    world.check();

    // Leaves in cold form keep this form when they are moved.
    let moving = Moving::new(&world.pages, &world.table, 0, true).unwrap();
    let mut step = Relocation {
        boundary: 0,
        second_boundary: 0,
        pages: 1 << 20,
        reads: 1 << 20,
    };
    world.transact(|tree, pages, packer| {
        let stop = tree.relocate(pages, packer, &moving, &mut step, i64::MIN);
        assert_eq!(stop.unwrap(), None);
    });
    assert_eq!(kinds(&world), (cold, all));
    assert_eq!(world.tree.stored_bytes(), after);
    world.check();

    // Modified leaves become normal leaves; then they are rewritten in cold form again.
    let late = rows(&mut rng, begin / 3, 40);
    world.link(late.view());
    assert!(kinds(&world).0 < all);
    world.delete(begin / 4, begin / 4 + 300_000_000);
    world.check();
    assert!(world.cool(i64::MAX, u64::MAX).leaves > 0);
    let (cold, all) = kinds(&world);
    assert_eq!(cold, all);
    let expected = world.rows();
    assert_eq!(
        super::model::rows_and_lines(&world, (i64::MIN, i64::MAX)).0,
        expected
    );
    world.check();
}
