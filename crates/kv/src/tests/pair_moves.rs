//! Tests seeks to exactly one pair, key or value, existing or not, and range deletes in tables of sets.

use super::pairs::{Pair, Sets, at, pair};
use super::{check_all, few};
use crate::{PairCursor, Tree};
use std::sync::atomic::Ordering;
use tidalite_pager::PageRead;
use tidalite_testkit::ScratchPages;
use tidalite_testkit::rng::Rng;

/// Makes cursor moves that search `probe`. Each move must end at `to`, an index in `all` (-1: before the first pair),
/// and return whether its target exists. Steps from there must skip no pair.
pub(super) fn exact_moves<R: PageRead>(cursor: &mut PairCursor<'_, R>, all: &[Pair], probe: &Pair) {
    let (key, value) = (&probe.0[..], &probe.1[..]);
    let index = |place: usize| isize::try_from(place).unwrap();
    let ge = index(all.partition_point(|pair| pair < probe));
    let gt = index(all.partition_point(|pair| pair <= probe));
    let key_ge = index(all.partition_point(|pair| &pair.0[..] < key));
    let key_gt = index(all.partition_point(|pair| &pair.0[..] <= key));
    let of = |place: isize| usize::try_from(place).ok().and_then(|place| all.get(place));
    let of_key = |place| of(place).is_some_and(|pair| pair.0 == key);
    type Move<'p, 'r, R> = fn(&mut PairCursor<'r, R>, &'p [u8], &'p [u8]) -> crate::Result<bool>;
    let moves: [(Move<'_, '_, R>, isize, bool); 9] = [
        (|c, k, v| c.seek(k, v), ge, of(ge) == Some(probe)),
        (|c, k, _| c.seek_key(k), key_ge, of_key(key_ge)),
        (|c, k, _| c.seek_key_gt(k), key_gt, of(key_gt).is_some()),
        (|c, k, _| c.seek_key_le(k), key_gt - 1, key_gt > 0),
        (|c, k, _| c.seek_key_lt(k), key_ge - 1, key_ge > 0),
        (|c, k, v| c.seek_value_ge(k, v), ge, of_key(ge)),
        (|c, k, v| c.seek_value_gt(k, v), gt, of_key(gt)),
        (|c, k, v| c.seek_value_le(k, v), gt - 1, of_key(gt - 1)),
        (|c, k, v| c.seek_value_lt(k, v), ge - 1, of_key(ge - 1)),
    ];
    for (number, (go, to, there)) in moves.into_iter().enumerate() {
        assert_eq!(go(cursor, key, value).unwrap(), there, "move {number}");
        assert_eq!(at(cursor).as_ref(), of(to), "move {number}");
        let (mut next, mut previous) = (cursor.clone(), cursor.clone());
        next.next().unwrap();
        assert_eq!(at(&next).as_ref(), of(to + 1), "behind move {number}");
        previous.previous().unwrap();
        assert_eq!(at(&previous).as_ref(), of(to - 1), "before move {number}");
    }
}

#[test]
fn range_deletes_of_pairs_agree_with_a_list() {
    for seed in 0..few(40) {
        let page_size = [512, 1024][seed as usize % 2];
        let printed = super::Seed::of(seed, page_size);
        let mut rng = Rng::new(7100 + seed);
        let mut pages = ScratchPages::new(page_size);
        let mut tree = Tree::new_multi(5);
        let mut model = Sets::new();
        for _ in 0..6 {
            for _ in 0..rng.below(few(700)) {
                let (mut key, value) = pair(&mut rng, page_size);
                if rng.one_in(3) {
                    key = (rng.below(500) as u32).to_be_bytes().to_vec();
                }
                tree.pairs().insert(&mut pages, &key, &value).unwrap();
                model.entry(key).or_default().insert(value);
            }
            let all = |model: &Sets| -> Vec<Pair> {
                let pairs = model.iter().flat_map(|(key, set)| {
                    let own = set.iter();
                    own.map(|value| (key.clone(), value.clone()))
                });
                pairs.collect()
            };
            let mut end = || {
                let mut pair = pair(&mut rng, page_size);
                let here = all(&model);
                if !here.is_empty() && rng.one_in(2) {
                    pair = here[rng.index(here.len())].clone();
                }
                if rng.one_in(3) {
                    pair.1.clear();
                }
                (pair, rng.one_in(4))
            };
            let ((from, _), (to, open)) = (end(), end());
            let gone = |pair: &Pair| *pair >= from && (open || *pair < to);
            let kept: Vec<Pair> = all(&model).into_iter().filter(|pair| !gone(pair)).collect();
            let expected = tree.len() - kept.len() as u64;
            let upto = (!open).then_some((&to.0[..], &to.1[..]));
            let mut pairs = tree.pairs();
            let removed = pairs.remove_range(&mut pages, (&from.0, &from.1), upto);
            assert_eq!(removed.unwrap(), expected, "{from:?} {to:?} {open}");
            model.clear();
            for (key, value) in kept.clone() {
                model.entry(key).or_default().insert(value);
            }
            tree.seal(&mut pages).unwrap();
            check_all(&tree, &pages);
            pages.commit();
            assert_eq!(tree.keys(), model.len() as u64);
            let (mut cursor, mut found) = (tree.pair_cursor(&pages), Vec::new());
            while cursor.next().unwrap() {
                found.extend(at(&cursor));
            }
            assert_eq!(found, kept);
        }
        printed.passed();
    }
}

/// Small sets of values lie in the leaves: a range delete reads the leaves between the two edges of the range to count
/// the keys, but does not write these leaves.
#[test]
#[cfg_attr(miri, ignore = "tens of thousands of rows, counted")]
fn range_delete_of_pairs_writes_two_paths() {
    let mut pages = ScratchPages::new(512);
    let mut tree = Tree::new_multi(5);
    for key in 0..4000u32 {
        for value in 0..1 + key % 4 {
            let (key, value) = (key.to_be_bytes(), value.to_be_bytes());
            tree.pairs().insert(&mut pages, &key, &value).unwrap();
        }
    }
    tree.seal(&mut pages).unwrap();
    pages.commit();
    let live = pages.live_pages();
    let before = pages.counters().pages_read.load(Ordering::Relaxed);
    let (from, to) = (10u32.to_be_bytes(), 3990u32.to_be_bytes());
    tree.remove_range(&mut pages, &from, &to).unwrap();
    let read = pages.counters().pages_read.load(Ordering::Relaxed) - before;
    let freed = live - pages.live_pages();
    assert!(freed * 100 > live * 95, "{freed} of {live} pages freed");
    assert!(read < 2 * live, "{read} pages read, {live} were there");
    tree.seal(&mut pages).unwrap();
    check_all(&tree, &pages);
    assert_eq!((tree.keys(), tree.len()), (20, 50));
}
