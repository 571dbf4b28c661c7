//! Compares random moves of a cursor with positions in a sorted list.

use super::{few, random_key, random_value};
use crate::Tree;
use std::collections::BTreeMap;
use tidalite_testkit::ScratchPages;
use tidalite_testkit::rng::Rng;

/// Number of moves of a cursor over one table.
const MOVES: usize = if cfg!(miri) { 60 } else { 3000 };

/// Position of a cursor: before the first row, at a row, after the last.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Spot {
    Before,
    At(usize),
    After,
}

fn go_about(seed: u64, page_size: usize) {
    let mut rng = Rng::new(seed);
    let mut pages = ScratchPages::new(page_size);
    let mut tree = Tree::new(1);
    let mut model = BTreeMap::new();
    for _ in 0..rng.below(few(1500)) {
        let key = random_key(&mut rng, page_size);
        let value = random_value(&mut rng, page_size);
        tree.insert(&mut pages, &key, &value).unwrap();
        model.insert(key, value);
    }
    let rows: Vec<_> = model.into_iter().collect();
    let place = |at: Option<usize>, off: Spot| at.map_or(off, Spot::At);
    let from = |at: usize| (at < rows.len()).then_some(at);
    let mut cursor = tree.cursor(&pages);
    let mut spot = Spot::Before;
    for step in 0..MOVES {
        let key = random_key(&mut rng, page_size);
        let below = rows.partition_point(|(have, _)| *have < key);
        let reach = rows.partition_point(|(have, _)| *have <= key);
        let moved = match rng.below(24) {
            0 => {
                spot = place(from(below), Spot::After);
                cursor.seek_ge(&key)
            }
            1 => {
                spot = place(from(reach), Spot::After);
                cursor.seek_gt(&key)
            }
            2 => {
                spot = place(reach.checked_sub(1), Spot::Before);
                cursor.seek_le(&key)
            }
            3 => {
                spot = place(below.checked_sub(1), Spot::Before);
                cursor.seek_lt(&key)
            }
            4 => {
                let rank = rng.index(rows.len() + 2);
                spot = place(from(rank), Spot::After);
                cursor.select(rank as u64)
            }
            5 => {
                cursor = cursor.clone();
                continue;
            }
            6 if step % 16 == 0 => {
                cursor.renew(&tree, &pages);
                spot = Spot::Before;
                continue;
            }
            7..11 => {
                spot = match spot {
                    Spot::Before => Spot::Before,
                    Spot::At(at) => place(at.checked_sub(1), Spot::Before),
                    Spot::After => place(rows.len().checked_sub(1), Spot::After),
                };
                cursor.previous()
            }
            _ => {
                spot = match spot {
                    Spot::Before => place(from(0), Spot::Before),
                    Spot::At(at) => place(from(at + 1), Spot::After),
                    Spot::After => Spot::After,
                };
                cursor.next()
            }
        };
        let at = match spot {
            Spot::At(at) => Some(at),
            _ => None,
        };
        let said = format!("seed {seed:#x}, page size {page_size}, move {step}, {spot:?}");
        assert_eq!(moved.unwrap(), at.is_some(), "{said}");
        assert_eq!(cursor.is_at_row(), at.is_some(), "{said}");
        assert_eq!(cursor.on_first(), at == Some(0), "{said}");
        assert_eq!(
            cursor.on_last(),
            at.map(|at| at + 1) == Some(rows.len()),
            "{said}"
        );
        if let Some(at) = at {
            let (key, value) = &rows[at];
            assert_eq!(cursor.key(), key, "{said}");
            assert_eq!(cursor.value().unwrap().to_vec().unwrap(), *value, "{said}");
            if let Some(slice) = cursor.value_slice() {
                assert_eq!(slice, value, "{said}");
            }
        }
    }
}

#[test]
fn cursor_moves_agree_with_a_sorted_list() {
    tidalite_testkit::watch();
    for page_size in [512, 1024, 4096, 64 << 10, 128 << 10] {
        for seed in 0..few(6) {
            go_about(0x0504_0000 + seed, page_size);
        }
    }
}
