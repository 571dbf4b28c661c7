//! Tests columns that are added to a series with rows, and columns with nulls.

use super::World;
use crate::{Direction, ValueRange};
use tidalite_codec::{ColumnType, Rows, Stats};
use tidalite_testkit::rng::Rng;

fn rows(rng: &mut Rng, types: &[ColumnType], from: i64, count: i64, step: i64) -> Rows {
    let mut rows = Rows::new(types.len());
    for i in 0..count {
        let word = |ty: &ColumnType| match ty.base() {
            _ if rng.one_in(5) => ty.fill(),
            ColumnType::F64 | ColumnType::F32 => (rng.between(-999, 999) as f64 / 4.0).to_bits(),
            _ => rng.below(1000),
        };
        let words: Vec<u64> = types.iter().map(word).collect();
        rows.push_row(from + i * step, &words);
    }
    rows
}

/// Adds columns to the series; existing rows get the fill value of the type.
fn add(world: &mut World, types: &[ColumnType]) {
    world.tree = world.tree.clone().with_added(types).unwrap();
    for words in world.model.values_mut() {
        words.extend(types.iter().map(|ty| ty.fill()));
    }
    world.late = Rows::new(world.tree.types().len());
}

fn compare(rng: &mut Rng, world: &World) {
    let expected = world.rows();
    let view = world.view();
    let types = world.tree.types().to_vec();
    let all: Vec<usize> = (0..types.len()).collect();
    let mut found = Rows::new(types.len());
    view.for_each_vector(i64::MIN, i64::MAX, &all, |vector| {
        found.times.extend_from_slice(vector.times());
        for (c, column) in found.columns.iter_mut().enumerate() {
            column.extend_from_slice(vector.words(c));
        }
    })
    .unwrap();
    assert_eq!(found, expected);
    let last = expected.times.last().copied().unwrap_or_default();
    for (c, &ty) in types.iter().enumerate() {
        let (a, b) = (rng.between(-9, last + 9), rng.between(-9, last + 9));
        let (from, to) = (a.min(b), a.max(b));
        let rows = expected.view().between(from, to);
        let stats = view.aggregate(from, to, c).unwrap();
        let own = Stats::of(ty, rows.times(), rows.column(c));
        let figures = |s: &Stats| {
            let ends = (s.first(), s.last(), s.min(), s.max());
            (s.count(), s.null_count(), s.value_count(), ends)
        };
        assert_eq!(figures(&stats), figures(&own), "column {c} of {types:?}");
        assert!((stats.sum() - own.sum()).abs() < 1e-6);
        let range = ValueRange::new(c, ty, 0, if ty.is_float() { 50f64.to_bits() } else { 500 });
        let holds = |word: u64| {
            Some(word) != ty.null()
                && if ty.is_float() {
                    (0.0..=50.0).contains(&f64::from_bits(word))
                } else {
                    word <= 500
                }
        };
        let matching = rows.column(c).iter().filter(|&&word| holds(word)).count();
        let rows = view.matching(vec![range]);
        let matched = rows.for_each_vector(from, to, &[c], Direction::Forward, |_| {});
        assert_eq!(matched.unwrap(), matching as u64);
    }
}

#[test]
fn columns_are_added_without_rewriting_and_read_as_null_or_zero() {
    for seed in 0..3 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let mut world = World::new(1024, 3, &[ColumnType::NullI64, ColumnType::F64]);
        let mut types = vec![ColumnType::NullI64, ColumnType::F64];
        for round in 0..12 {
            let last = world.model.keys().next_back().map_or(0, |&t| t + 7);
            let count = *rng.pick(&[5, 700, 9000]);
            let new = rows(&mut rng, &types, last, count, 7);
            world.link(new.view());
            let from = rng.between(0, last);
            let late = rows(&mut rng, &types, from, 40, 11);
            world.link(late.view());
            if round % 3 == 2 {
                let leaves = world.check().leaves;
                let added = [*rng.pick(&ColumnType::ALL), ColumnType::NullF32];
                let added = &added[..1 + rng.index(2)];
                add(&mut world, added);
                types.extend(added);
                // Adding columns writes no leaf: the leaves are unchanged and pass the check.
                assert_eq!(world.check().leaves, leaves);
                compare(&mut rng, &world);
            }
            if rng.one_in(3) {
                let (a, b) = (rng.between(0, last + 9), rng.between(0, last + 9));
                world.delete(a.min(b), a.min(b) + (a - b).abs() / 3);
            }
            world.check();
            compare(&mut rng, &world);
        }
    }
}
