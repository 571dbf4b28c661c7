//! Compares tables of sets with a map of sets, and nested tables with a map of maps; tests range deletes and ranks.

use super::pair_moves::exact_moves;
use super::ranks::ranks;
use super::{all_rows, check_all, claims, few, random_key, random_value};
use crate::{
    AppendCursor, Error, MissingTable, PairCursor, Relocation, Result, TableReader, TableWriter,
    Tree,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use tidalite_base::limits::PAGE_SIZE_MAX;
use tidalite_pager::PageRead;
use tidalite_testkit::ScratchPages;
use tidalite_testkit::rng::Rng;

pub(super) type Sets = BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>;
pub(super) type Pair = (Vec<u8>, Vec<u8>);

/// A random pair. There are few keys, so that some sets get large; the values of some keys have one length, those of
/// other keys any length.
pub(super) fn pair(rng: &mut Rng, page_size: usize) -> Pair {
    let key = vec![b'k'; 1 + rng.index(3)]
        .into_iter()
        .chain([rng.below(9) as u8])
        .collect::<Vec<u8>>();
    let value = match key[key.len() - 1] {
        0..3 => (rng.below(400) as u32).to_be_bytes().to_vec(),
        3 => vec![7; rng.index(2)],
        _ => random_key(rng, page_size),
    };
    (key, value)
}

pub(super) fn at<R: PageRead>(cursor: &PairCursor<'_, R>) -> Option<Pair> {
    cursor
        .is_at_row()
        .then(|| (cursor.key().to_vec(), cursor.value().to_vec()))
}

fn look(rng: &mut Rng, tree: &Tree, pages: &ScratchPages, model: &Sets) {
    let all: Vec<Pair> = model
        .iter()
        .flat_map(|(key, set)| set.iter().map(|value| (key.clone(), value.clone())))
        .collect();
    assert_eq!(tree.len(), all.len() as u64);
    assert_eq!(tree.keys(), model.len() as u64);
    let probe = pair(rng, pages.page_size());
    let (key, value) = (&probe.0[..], &probe.1[..]);
    let count = model.get(key).map_or(0, |set| set.len() as u64);
    assert_eq!(tree.values_of(pages, key).unwrap(), count);
    let there = model.get(key).is_some_and(|set| set.contains(value));
    assert_eq!(tree.contains_pair(pages, key, value).unwrap(), there);
    let below = all.partition_point(|pair| pair.0.as_slice() < key);
    assert_eq!(tree.rank(pages, key).unwrap(), below as u64);

    let mut cursor = tree.pair_cursor(pages);
    let ge = all.partition_point(|pair| *pair < probe);
    let gt = all.partition_point(|pair| *pair <= probe);
    cursor.seek_ge(key, value).unwrap();
    assert_eq!(at(&cursor).as_ref(), all.get(ge));
    cursor.seek_gt(key, value).unwrap();
    assert_eq!(at(&cursor).as_ref(), all.get(gt));
    cursor.seek_lt(key, value).unwrap();
    assert_eq!(at(&cursor).as_ref(), ge.checked_sub(1).map(|at| &all[at]));
    cursor.seek_le(key, value).unwrap();
    assert_eq!(at(&cursor).as_ref(), gt.checked_sub(1).map(|at| &all[at]));
    assert_eq!(cursor.seek(key, value).unwrap(), there);
    exact_moves(&mut cursor, &all, &probe);
    ranks(rng, tree, pages, &all, (key, value));

    if !cursor.seek_ge(key, value).unwrap() {
        return;
    }
    let mut place = ge;
    for _ in 0..rng.index(40) {
        let same = |a: usize, b: usize| all[a].0 == all[b].0;
        assert_eq!(at(&cursor).as_ref(), Some(&all[place]));
        assert_eq!(cursor.count(), model[&all[place].0].len() as u64);
        assert_eq!(cursor.on_first(), place == 0);
        assert_eq!(cursor.on_last(), place + 1 == all.len());
        let first = (0..=place)
            .rev()
            .take_while(|&at| same(at, place))
            .last()
            .unwrap();
        let last = (place..all.len())
            .take_while(|&at| same(at, place))
            .last()
            .unwrap();
        assert_eq!(cursor.on_first_dup(), place == first);
        assert_eq!(cursor.on_last_dup(), place == last);
        let kept = cursor.clone();
        let (moved, to) = match rng.below(8) {
            0 => (cursor.next().unwrap(), Some(place + 1)),
            1 => (cursor.previous().unwrap(), place.checked_sub(1)),
            2 => (cursor.next_nodup().unwrap(), Some(last + 1)),
            3 => (cursor.previous_nodup().unwrap(), first.checked_sub(1)),
            4 => (cursor.first_dup().unwrap(), Some(first)),
            5 => (cursor.last_dup().unwrap(), Some(last)),
            6 => {
                let moved = cursor.next_dup().unwrap();
                assert_eq!(moved, place < last);
                (true, Some(place + usize::from(moved)))
            }
            _ => {
                let mut taken = Vec::new();
                cursor
                    .get_multiple(5, |value| taken.push(value.to_vec()))
                    .unwrap();
                let end = last.min(place + 4);
                let expected: Vec<_> = all[place..=end].iter().map(|pair| pair.1.clone()).collect();
                assert_eq!(taken, expected);
                (true, Some(end))
            }
        };
        match to.filter(|&to| to < all.len()) {
            Some(to) => {
                assert!(moved);
                place = to;
            }
            None => {
                assert!(!moved && !cursor.is_at_row());
                cursor = kept;
            }
        }
    }
}

#[test]
fn pairs_agree_with_a_map_of_sets() {
    for seed in 0..few(6) {
        let page_size = [512, 512, 4096][seed as usize % 3];
        let printed = super::Seed::of(seed, page_size);
        let mut rng = Rng::new(9000 + seed);
        let mut pages = ScratchPages::new(page_size);
        let mut tree = Tree::new_multi(5);
        let mut model = Sets::new();
        for transaction in 0..few(24) {
            let growth = if transaction % 8 < 5 { 85 } else { 10 };
            for _ in 0..rng.index(400) {
                let (key, value) = pair(&mut rng, page_size);
                if rng.below(100) < growth {
                    let new = tree.pairs().insert(&mut pages, &key, &value).unwrap();
                    assert_eq!(new, model.entry(key).or_default().insert(value));
                } else if rng.one_in(30) {
                    let removed = tree.pairs().remove_all(&mut pages, &key).unwrap();
                    let set = model.remove(&key);
                    assert_eq!(removed, set.map_or(0, |set| set.len() as u64));
                } else {
                    let was = tree.pairs().remove(&mut pages, &key, &value).unwrap();
                    let set = model.get_mut(&key);
                    assert_eq!(was, set.is_some_and(|set| set.remove(&value)));
                    model.retain(|_, set| !set.is_empty());
                }
                if rng.one_in(20) {
                    look(&mut rng, &tree, &pages, &model);
                }
            }
            tree.seal(&mut pages).unwrap();
            check_all(&tree, &pages);
            assert_eq!(Tree::decode(&tree.encode()).unwrap(), tree);
            pages.commit();
        }
        let (a, b) = (b"kk".to_vec(), b"kkk\x05".to_vec());
        let gone: usize = model
            .range(a.clone()..b.clone())
            .map(|(_, set)| set.len())
            .sum();
        assert_eq!(tree.remove_range(&mut pages, &a, &b).unwrap(), gone as u64);
        tree.seal(&mut pages).unwrap();
        check_all(&tree, &pages);
        tree.clear(&mut pages).unwrap();
        assert_eq!((pages.live_pages(), tree.keys()), (0, 0));
        printed.passed();
    }
}

/// The content stored under a key in a model of nested tables.
#[derive(Clone, Debug, PartialEq)]
enum Held {
    Value(Vec<u8>),
    Table(BTreeMap<Vec<u8>, Held>),
}

fn table_at<'m>(
    table: &'m mut BTreeMap<Vec<u8>, Held>,
    path: &[Vec<u8>],
    create: bool,
) -> Option<&'m mut BTreeMap<Vec<u8>, Held>> {
    let Some((key, rest)) = path.split_first() else {
        return Some(table);
    };
    if create && !table.contains_key(key) {
        table.insert(key.clone(), Held::Table(BTreeMap::new()));
    }
    match table.get_mut(key)? {
        Held::Table(below) => table_at(below, rest, create),
        Held::Value(_) => None,
    }
}

fn assert_same(pages: &ScratchPages, sub: &TableReader<'_>, model: &BTreeMap<Vec<u8>, Held>) {
    assert_eq!(sub.len(), model.len() as u64);
    let mut cursor = sub.cursor(pages).unwrap();
    for (rank, (key, held)) in model.iter().enumerate() {
        assert!(cursor.next().unwrap());
        assert_eq!(cursor.key(), key);
        assert_eq!(sub.rank(pages, key).unwrap(), rank as u64);
        assert!(sub.contains(pages, key).unwrap());
        match held {
            Held::Value(value) => {
                assert_eq!(&cursor.value().unwrap().to_vec().unwrap(), value);
                let got = sub.get(pages, key).unwrap().unwrap();
                assert_eq!(&got.to_vec().unwrap(), value);
                let nested = sub.nested(pages, key);
                assert!(matches!(nested, Err(Error::Refused { .. })));
            }
            Held::Table(below) => {
                assert!(cursor.is_nested() && cursor.value().is_err());
                let refused = [sub.get(pages, key), cursor.plain_value().map(Some)];
                for refused in refused {
                    let named =
                        matches!(&refused, Err(Error::IsTable { key: found }) if found == key);
                    assert!(named, "{refused:?}");
                }
                assert_same(pages, &cursor.nested().unwrap(), below);
                assert_same(pages, &sub.nested(pages, key).unwrap().unwrap(), below);
            }
        }
    }
    assert!(!cursor.next().unwrap() && cursor.eof());
    for rank in [0, model.len() / 2, model.len()] {
        assert_eq!(cursor.select(rank as u64).unwrap(), rank < model.len());
        if let Some((key, _)) = model.iter().nth(rank) {
            assert_eq!(cursor.key(), key);
        }
    }
}

#[test]
fn nested_tables_agree_with_maps_in_maps() {
    for seed in 0..few(6) {
        let page_size = [512, 512, 4096][seed as usize % 3];
        let printed = super::Seed::of(seed, page_size);
        let mut rng = Rng::new(7000 + seed);
        let mut pages = ScratchPages::new(page_size);
        let mut tree = Tree::new(5);
        let mut model = BTreeMap::new();
        let mut sequences: BTreeMap<Vec<Vec<u8>>, u64> = BTreeMap::new();
        let mut small = 0;
        for transaction in 0..few(16) {
            let growth = if transaction % 8 < 5 { 85 } else { 10 };
            for _ in 0..rng.index(300) {
                let depth = rng.index(4);
                let path: Vec<Vec<u8>> = (0..depth)
                    .map(|_| vec![b'a' + rng.below(3) as u8])
                    .collect();
                let key = vec![b'c' + rng.below(3) as u8, rng.below(40) as u8];
                let value = random_value(&mut rng, page_size);
                let put = rng.below(100) < growth;
                let clear = rng.one_in(60);
                let missing = match (put, clear) {
                    (false, _) => MissingTable::Ignore,
                    (true, false) => MissingTable::CreateToFill,
                    (true, true) => MissingTable::Create,
                };
                let taken = rng.below(3) * rng.below(200);
                let mut work = TableWriter::of(tree);
                let name = vec![b'a' + rng.below(3) as u8];
                let table = table_at(&mut model, &path, false);
                if let Some(table) = table.filter(|_| rng.one_in(8))
                    && matches!(table.get(&name), Some(Held::Table(_)))
                {
                    // Putting a value never replaces a nested table; values put before the error stay.
                    let long = vec![1; rng.index(3 * page_size)];
                    let refused = work.at(&mut pages, &path, missing, &mut |w, table| {
                        table.insert(w, &key, &value)?;
                        table.insert(w, &name, &long)
                    });
                    let expected = matches!(&refused, Err(Error::IsTable { key }) if *key == name);
                    assert!(expected, "{refused:?}");
                    table.insert(key, Held::Value(value));
                    tree = *work.tree().unwrap();
                    continue;
                }
                let mut done = None;
                let result: Result<Option<()>> =
                    work.at(&mut pages, &path, missing, &mut |w, table| {
                        if clear {
                            table.clear(w)?;
                        } else if put {
                            done = Some(table.insert(w, &key, &value)?);
                            let next = sequences.entry(path.clone()).or_default();
                            assert_eq!(table.take_sequence(taken), Some(*next));
                            *next += taken;
                        } else {
                            done = Some(table.remove(w, &key)?);
                        }
                        Ok(())
                    });
                let there = result.unwrap().is_some();
                tree = *work.tree().unwrap();
                let table = table_at(&mut model, &path, put);
                assert_eq!(there, table.is_some());
                if let Some(table) = table {
                    if clear {
                        sequences.retain(|at, _| at.len() <= path.len() || !at.starts_with(&path));
                        table.clear();
                    } else if put {
                        let old = table.insert(key, Held::Value(value));
                        assert_eq!(done, Some(old.is_some()));
                    } else {
                        assert_eq!(done, Some(table.remove(&key).is_some()));
                    }
                }
            }
            tree.seal(&mut pages).unwrap();
            check_all(&tree, &pages);
            assert_same(&pages, &TableReader::of(tree), &model);
            for (path, next) in &sequences {
                let mut sub = TableReader::of(tree);
                for key in path {
                    sub = sub.nested(&pages, key).unwrap().unwrap();
                }
                assert_eq!(sub.sequence(), *next);
            }
            let top = TableReader::of(tree);
            small += usize::from(
                matches!(top.nested(&pages, b"a"), Ok(Some(sub)) if sub.tree().is_none()),
            );
            pages.commit();
        }
        assert!(cfg!(miri) || small > 0, "some nested table lay in its leaf");
        tree.clear(&mut pages).unwrap();
        assert_eq!(pages.live_pages(), 0);
        printed.passed();
    }
}

#[test]
#[cfg_attr(miri, ignore = "tens of thousands of rows, counted")]
fn range_delete_frees_inner_pages_without_reading_them() {
    let mut pages = ScratchPages::new(512);
    let mut tree = Tree::new(5);
    let rows = 20_000u64;
    tree.append(
        &mut pages,
        (0..rows).map(|i| (i.to_be_bytes(), i.to_le_bytes())),
    )
    .unwrap();
    tree.seal(&mut pages).unwrap();
    pages.commit();
    let live = pages.live_pages();
    let before = pages.counters().pages_read.load(Ordering::Relaxed);
    let (from, to) = (100u64.to_be_bytes(), 19_900u64.to_be_bytes());
    assert_eq!(tree.remove_range(&mut pages, &from, &to).unwrap(), 19_800);
    let read = pages.counters().pages_read.load(Ordering::Relaxed) - before;
    let freed = live - pages.live_pages();
    assert!(freed * 100 > live * 95, "{freed} of {live} pages freed");
    // With this page size about one page in thirteen is a branch, and a range delete reads only branches.
    assert!(read * 8 < freed, "{read} pages read, {freed} freed");
    tree.seal(&mut pages).unwrap();
    check_all(&tree, &pages);
    assert_eq!(tree.len(), 200);
}

#[test]
fn range_deletes_agree_with_a_model() {
    for seed in 0..few(8) {
        let printed = super::Seed::of(seed, 512);
        let mut rng = Rng::new(3000 + seed);
        let mut pages = ScratchPages::new(512);
        let mut tree = Tree::new(5);
        let mut model = BTreeMap::new();
        for _ in 0..12 {
            for _ in 0..rng.below(few(500)) {
                let (key, value) = (random_key(&mut rng, 512), random_value(&mut rng, 512));
                tree.insert(&mut pages, &key, &value).unwrap();
                model.insert(key, value);
            }
            let (mut a, mut b) = (random_key(&mut rng, 512), random_key(&mut rng, 512));
            if a > b {
                std::mem::swap(&mut a, &mut b);
            }
            let before = model.len();
            model.retain(|key, _| !(a <= *key && *key < b));
            let removed = tree.remove_range(&mut pages, &a, &b).unwrap();
            assert_eq!(removed, (before - model.len()) as u64);
            tree.seal(&mut pages).unwrap();
            check_all(&tree, &pages);
            pages.commit();
            let mut rows = all_rows(&tree, &pages);
            for (key, value) in &model {
                let (k, v) = rows.next().unwrap();
                assert_eq!((&k, &v.to_vec().unwrap()), (key, value));
            }
            assert!(rows.next().is_none());
            places(&mut rng, &tree, &pages, &model);
        }
        assert_eq!(
            tree.remove_range(&mut pages, b"", &[0xff; 200]).unwrap(),
            model.len() as u64
        );
        assert_eq!(pages.live_pages(), 0);
        printed.passed();
    }
}

/// Checks ranks, division into parts of equal size, and lookups of many keys at once.
fn places(rng: &mut Rng, tree: &Tree, pages: &ScratchPages, model: &BTreeMap<Vec<u8>, Vec<u8>>) {
    let keys: Vec<&Vec<u8>> = model.keys().collect();
    let mut cursor = tree.cursor(pages);
    for _ in 0..20 {
        let rank = rng.index(keys.len() + 2);
        assert_eq!(cursor.select(rank as u64).unwrap(), rank < keys.len());
        if rank < keys.len() {
            assert_eq!(cursor.key(), keys[rank]);
            assert_eq!(
                (cursor.on_first(), cursor.on_last()),
                (rank == 0, rank + 1 == keys.len())
            );
        }
    }
    let parts = 1 + rng.index(9);
    let cuts = tree.split_range(pages, (0, tree.len()), parts).unwrap();
    assert_eq!(cuts.len(), parts.min(keys.len().max(1)) - 1);
    let bounds = cuts
        .iter()
        .map(|cut| keys.partition_point(|key| *key < cut));
    let bounds: Vec<usize> = [0].into_iter().chain(bounds).chain([keys.len()]).collect();
    let sizes: Vec<usize> = bounds.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(
        sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1,
        "{sizes:?}"
    );
    let wanted: Vec<Vec<u8>> = (0..rng.index(50)).map(|_| random_key(rng, 512)).collect();
    let mut got = vec![None; wanted.len()];
    tree.get_many(pages, &wanted, |place, value| {
        got[place] = value.map(|value| value.to_vec()).transpose()?;
        Ok(())
    })
    .unwrap();
    for (key, value) in wanted.iter().zip(&got) {
        assert_eq!(value.as_ref(), model.get(key));
    }
}

#[test]
fn append_refuses_lower_keys_and_insert_with_fills_zeros() {
    let mut pages = ScratchPages::new(512);
    let mut tree = Tree::new(5);
    let mut append = |key: &[u8], value| {
        let cursor = &mut AppendCursor::default();
        tree.append_hinted(&mut pages, cursor, key, value).unwrap()
    };
    assert!(append(b"b", b"1"));
    for key in [&b"a"[..], b"b", b""] {
        assert!(!append(key, b"2"));
    }
    assert!(append(b"c", b"3"));
    assert_eq!(tree.len(), 2);
    for len in [0, 1, 100, 127, 129, 200, 5000] {
        let mut work = TableWriter::of(tree);
        let was = work
            .insert_with(&mut pages, b"bb", len, |bytes| {
                assert!(bytes.iter().all(|byte| *byte == 0));
                bytes.fill(7);
            })
            .unwrap();
        assert_eq!(was, len > 0);
        tree = *work.tree().unwrap();
        let got = tree.get(&pages, b"bb").unwrap().unwrap();
        assert_eq!(got.to_vec().unwrap(), vec![7; len]);
    }
    assert!(tree.is_dirty(&pages, b"bb").unwrap());
    tree.seal(&mut pages).unwrap();
    check_all(&tree, &pages);
    pages.commit();
    assert!(!tree.is_dirty(&pages, b"bb").unwrap());
}

#[test]
fn nesting_depth_is_limited() {
    let mut pages = ScratchPages::new(512);
    let mut work = TableWriter::of(Tree::new(5));
    for depth in [crate::DEPTH_MAX - 1, crate::DEPTH_MAX] {
        let path = vec![vec![b'd']; depth];
        let done = work.at(
            &mut pages,
            &path,
            MissingTable::CreateToFill,
            &mut |w, table| table.insert(w, b"k", b"v"),
        );
        assert_eq!(done.is_ok(), depth < crate::DEPTH_MAX);
    }
    let mut tree = *work.tree().unwrap();
    tree.seal(&mut pages).unwrap();
    check_all(&tree, &pages);
    tree.clear(&mut pages).unwrap();
    assert_eq!(pages.live_pages(), 0);
}

/// An inline table takes at most a quarter of a page, but a table of many short rows takes more as a leaf with slots:
/// in the largest pages, more than two-byte offsets can address.
#[test]
#[cfg_attr(miri, ignore = "pages as large as can be, byte for byte")]
fn inline_table_is_scanned_in_every_page_size() {
    for page_size in [512, 4096, 1 << 16, 1 << 17, PAGE_SIZE_MAX] {
        let mut pages = ScratchPages::new(page_size);
        let mut tree = Tree::new_multi(3);
        // Few enough values to fit the row even without the packed form: each takes four bytes, a length and a tag.
        let count = ((page_size / 4 - 8) / 6) as u32;
        let values: Vec<_> = (0..count).map(u32::to_be_bytes).collect();
        let new = tree.pairs().insert_many(&mut pages, b"k", &values).unwrap();
        assert_eq!(new, u64::from(count));
        check_all(&tree, &pages);
        let mut cursor = tree.pair_cursor(&pages);
        assert!(cursor.first().unwrap(), "pages of {page_size}");
        for (at, value) in values.iter().enumerate() {
            assert_eq!(cursor.value(), value);
            assert_eq!(cursor.next().unwrap(), at + 1 < values.len());
        }
        for value in [&values[0], &values[values.len() / 2]] {
            assert!(cursor.seek(b"k", value).unwrap());
            assert_eq!(cursor.value(), value);
        }
        assert!(cursor.last().unwrap());
        assert_eq!(Some(cursor.value()), values.last().map(|value| &value[..]));
    }
}

/// Compaction moves every page, including the pages of a table that is nested in an inline table.
#[test]
#[cfg_attr(miri, ignore = "tens of thousands of pairs")]
fn pages_below_inline_tables_are_relocated() {
    for page_size in [512, 4096] {
        let mut pages = ScratchPages::new(page_size);
        let mut work = TableWriter::of(Tree::new(5));
        let rows = page_size as u32 / 4;
        for topic in 0..40u8 {
            let path = [vec![b'a', topic], vec![b's'], vec![b'b']];
            work.at(
                &mut pages,
                &path[..1 + usize::from(topic) % 3],
                MissingTable::CreateToFill,
                &mut |w, table| {
                    for row in 0..rows {
                        table.insert(w, &row.to_be_bytes(), &[topic; 9])?;
                    }
                    Ok(())
                },
            )
            .unwrap();
        }
        let mut tree = *work.tree().unwrap();
        tree.seal(&mut pages).unwrap();
        pages.commit();
        let below = pages.live_ranges().into_iter().map(|(addr, _)| addr).max();
        let before = claims(&tree, &pages).len();
        let mut step = Relocation {
            boundary: 0,
            second_boundary: u64::MAX,
            pages: u64::MAX,
            reads: u64::MAX,
        };
        assert_eq!(tree.relocate(&mut pages, &mut step, b"").unwrap(), None);
        tree.seal(&mut pages).unwrap();
        check_all(&tree, &pages);
        let moved = claims(&tree, &pages);
        assert_eq!(moved.len(), before);
        let left = moved
            .iter()
            .filter(|(addr, _)| Some(*addr) <= below)
            .count();
        assert_eq!(left, 0, "of {before} pages of {page_size}");
        for topic in 0..40u8 {
            let path = [vec![b'a', topic], vec![b's'], vec![b'b']];
            let mut sub = TableReader::of(tree);
            for key in &path[..1 + usize::from(topic) % 3] {
                sub = sub.nested(&pages, key).unwrap().unwrap();
            }
            assert_eq!(sub.len(), u64::from(rows));
            let row = sub.get(&pages, &(rows - 1).to_be_bytes()).unwrap().unwrap();
            assert_eq!(row.to_vec().unwrap(), [topic; 9]);
        }
    }
}
