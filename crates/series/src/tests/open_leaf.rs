//! Tests leaves that stay open within a transaction: their contents, their number, and their memory while they are
//! open.

use super::model::assert_stats;
use super::{POINT, World, ramp};
use crate::{Packer, SeriesTree, View};
use tidalite_base::SeriesId;
use tidalite_codec::{ColumnType, Rows};
use tidalite_testkit::rng::Rng;

/// Creates the rows of a vector after time `last`, with one of several patterns of times and columns.
pub(super) fn vector(rng: &mut Rng, types: &[ColumnType], last: i64, rows: usize) -> Rows {
    let (step, jitter) = *rng.pick(&[(10, 0), (10, 0), (10, 0), (7, 0), (10, 5)]);
    let manners: Vec<u64> = types.iter().map(|_| rng.below(4)).collect();
    let mut out = Rows::with_capacity(types.len(), rows);
    let mut time = last;
    for i in 0..rows {
        time += step
            + if jitter > 0 {
                rng.between(0, jitter)
            } else {
                0
            };
        let words: Vec<u64> = manners
            .iter()
            .zip(types)
            .map(|(manner, ty)| match (manner, ty) {
                (0 | 1, _) => 3,
                (2, ColumnType::F64) => (i as f64 * 0.25).to_bits(),
                (2, _) => i as u64,
                (_, ColumnType::F64) => rng.f64().to_bits(),
                (_, _) => rng.u64(),
            })
            .collect();
        out.push_row(time, &words);
    }
    out
}

#[test]
fn single_vectors_fill_a_leaf() {
    let mut world = World::new(4096, 64, &POINT);
    let vectors = 40;
    world.transact(|tree, pages, packer| {
        for v in 0..vectors {
            let rows = ramp(v * 10_240, 10, 1024);
            tree.link(pages, packer, rows.view()).unwrap();
        }
    });
    for v in 0..vectors {
        world.note(ramp(v * 10_240, 10, 1024).view());
    }
    assert_eq!(world.check().leaves, 3, "16, 16 and 8 vectors");
    assert_eq!(collect(&world), world.rows());
}

/// A short last vector does not end its leaf: later rows of the transaction complete it.
#[test]
fn batches_that_end_within_a_vector_fill_a_leaf() {
    let mut world = World::new(4096, 64, &POINT);
    let pieces = [1000, 250, 64, 1, 2000, 23, 700, 5000, 962];
    let mut from = 0;
    let pieces = pieces.map(|rows| {
        from += rows;
        ramp((from - rows) as i64 * 10, 10, rows)
    });
    world.transact(|tree, pages, packer| {
        for piece in &pieces {
            tree.link(pages, packer, piece.view()).unwrap();
        }
    });
    for piece in &pieces {
        world.note(piece.view());
    }
    assert_eq!(from, 10_000);
    assert_eq!(world.check().leaves, 1, "ten vectors");
    assert_eq!(collect(&world), world.rows());
    let mut vectors = Vec::new();
    let all = (i64::MIN, i64::MAX);
    let view = world.view();
    view.for_each_vector(all.0, all.1, &[], |vector| {
        vectors.push(vector.times().len())
    })
    .unwrap();
    assert_eq!(vectors, [[1024; 9].as_slice(), &[784]].concat());
}

fn collect(world: &World) -> Rows {
    let columns: Vec<usize> = (0..world.tree.types().len()).collect();
    let mut seen = Rows::new(columns.len());
    let all = (i64::MIN, i64::MAX);
    let view = world.view();
    view.for_each_vector(all.0, all.1, &columns, |vector| {
        seen.times.extend_from_slice(vector.times());
        for (c, column) in seen.columns.iter_mut().enumerate() {
            column.extend_from_slice(vector.words(c));
        }
    })
    .unwrap();
    seen
}

/// Mixes regular and irregular vectors, short vectors, late rows, deletes and reads within one transaction.
#[test]
fn open_leaves_equal_a_sorted_map_under_random_operations() {
    let types = [ColumnType::I64, ColumnType::F64, ColumnType::U64];
    for seed in 0..30 {
        let mut rng = Rng::new(seed);
        let mut world = World::new(1024, 4, &types);
        for _ in 0..3 {
            let mut model = std::mem::take(&mut world.model);
            world.transact(|tree, pages, packer| {
                for _ in 0..rng.between(1, 30) {
                    let last = model.keys().next_back().copied().unwrap_or(0);
                    let rows = match rng.below(20) {
                        0 => {
                            let back = rng.between(0, 30_000);
                            vector(&mut rng, &types, last - back, 300)
                        }
                        1 => {
                            let from = rng.between(0, last);
                            let to = from + 5000;
                            tree.delete(pages, packer, from, to).unwrap();
                            model.retain(|&time, _| time < from || time > to);
                            continue;
                        }
                        2 => {
                            tree.close_leaf(pages, packer).unwrap();
                            packer.flush(pages).unwrap();
                            let none = Rows::new(types.len());
                            let count = View::new(pages, tree, none.view())
                                .count(i64::MIN, i64::MAX)
                                .unwrap();
                            assert_eq!(count, model.len() as u64, "seed {seed}");
                            continue;
                        }
                        3 => vector(&mut rng, &types, last, 700),
                        4 => vector(&mut rng, &types, last, 1),
                        _ => vector(&mut rng, &types, last, 1024),
                    };
                    tree.link(pages, packer, rows.view()).unwrap();
                    for (i, &time) in rows.times.iter().enumerate() {
                        let words = rows.columns.iter().map(|column| column[i]).collect();
                        model.insert(time, words);
                    }
                }
            });
            world.model = model;
            world.check();
            let all = world.rows();
            assert_eq!(collect(&world), all, "seed {seed}");
            for (c, &ty) in types.iter().enumerate() {
                let stats = world.view().aggregate(i64::MIN, i64::MAX, c).unwrap();
                assert_stats(&stats, ty, all.view(), c);
            }
        }
    }
}

#[test]
fn memory_of_open_leaves_is_counted_and_released() {
    let mut world = World::new(4096, 64, &POINT);
    let mut packer = Packer::new(world.table);
    let mut trees: Vec<SeriesTree> = (0..20)
        .map(|id| SeriesTree::new(SeriesId(id), &POINT).unwrap())
        .collect();
    let mut rng = Rng::new(3);
    for round in 0..5 {
        for tree in &mut trees {
            let rows = vector(&mut rng, &POINT, round * 100_000, 1024);
            tree.link(&mut world.pages, &mut packer, rows.view())
                .unwrap();
        }
        let open: usize = trees.iter().map(SeriesTree::open_bytes).sum();
        assert_eq!(packer.open_bytes(), open);
        assert!(open >= 20 * 16, "every tree has an open leaf");
    }
    for tree in &mut trees {
        tree.close_leaf(&mut world.pages, &mut packer).unwrap();
        assert_eq!(tree.open_bytes(), 0);
    }
    assert_eq!(packer.open_bytes(), 0);
}
