//! Vectors that are encoded separately from their leaf must have the bytes that the leaf would encode.

use super::open_leaf::vector;
use super::{POINT, World};
use crate::EncodedVectors;
use tidalite_codec::{ColumnType, Rows};
use tidalite_testkit::rng::Rng;

#[test]
fn encoded_vectors_produce_the_same_bytes() {
    let wide = [ColumnType::F64, ColumnType::U64, ColumnType::F32];
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let types: &[ColumnType] = if seed % 2 == 0 { &POINT } else { &wide };
        let mut worlds = [World::new(4096, 4, types), World::new(4096, 4, types)];
        let mut encoded = EncodedVectors::default();
        let mut last = 0;
        for _ in 0..3 {
            let mut all: Vec<Rows> = Vec::new();
            for _ in 0..rng.between(1, 25) {
                let mut rows = Rows::new(types.len());
                // Some batches have several vectors, some end with a short vector, and some begin among earlier rows.
                let from = if rng.one_in(12) { last - 5000 } else { last };
                for _ in 0..rng.between(1, 4) {
                    let begin = rows.times.last().copied().unwrap_or(from);
                    rows.extend(vector(&mut rng, types, begin, 1024).view());
                }
                if rng.one_in(9) {
                    let begin = rows.times.last().copied().unwrap_or(from);
                    let short = rng.between(1, 1023) as usize;
                    rows.extend(vector(&mut rng, types, begin, short).view());
                }
                last = last.max(rows.times.last().copied().unwrap_or(last));
                all.push(rows);
            }
            worlds[0].transact(|tree, pages, packer| {
                for rows in &all {
                    tree.link(pages, packer, rows.view()).unwrap();
                }
            });
            worlds[1].transact(|tree, pages, packer| {
                for rows in &all {
                    encoded.begin(tree);
                    encoded.encode(types, rows.view());
                    if !tree.link_encoded(pages, packer, &encoded).unwrap() {
                        tree.link(pages, packer, rows.view()).unwrap();
                    }
                }
            });
            for world in &mut worlds {
                for rows in &all {
                    world.note(rows.view());
                }
            }
        }
        let [linked, other] = &worlds;
        assert_eq!(linked.check(), other.check(), "seed {seed}");
        // A record contains the checksums of the blocks below it, so equal records prove that all bytes are equal.
        assert_eq!(linked.tree.encode(), other.tree.encode(), "seed {seed}");
    }
}
